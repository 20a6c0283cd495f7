"""An Audit as a folder of plain files: JSON, parquet, safetensors. Never pickle."""

from .folder import check_file_target, check_target, earlier_audits, load, save, weights_table, whole_file
from .plans import load_plan, save_plan

__all__ = [
    "check_file_target",
    "check_target",
    "earlier_audits",
    "load",
    "load_plan",
    "save",
    "save_plan",
    "weights_table",
    "whole_file",
]
