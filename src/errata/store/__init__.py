"""An Audit as a folder of plain files: JSON, parquet, safetensors. Never pickle."""

from .folder import check_file_target, check_target, earlier_audits, load, save, weights_table, whole_file

__all__ = [
    "check_file_target",
    "check_target",
    "earlier_audits",
    "load",
    "save",
    "weights_table",
    "whole_file",
]
