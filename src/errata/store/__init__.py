"""An Audit as a folder of plain files: JSON, parquet, safetensors. Never pickle."""

from .folder import check_file_target, check_target, earlier_audits, load, save, weights_table, whole_file
from .plans import load_plan, save_plan
from .runs import Run, is_run

__all__ = [
    "Run",
    "check_file_target",
    "check_target",
    "earlier_audits",
    "is_run",
    "load",
    "load_plan",
    "save",
    "save_plan",
    "weights_table",
    "whole_file",
]
