"""Audits and plans as plain files: JSON, parquet, safetensors. Never pickle."""

from .atomic import atomic_file, atomic_folder, check_output, check_parquet_output, check_replaceable, sole_writer
from .audits import load, save, update, write_memberships, write_table
from .looks import earlier_looks
from .plans import load_plan, save_plan

__all__ = [
    "atomic_file",
    "atomic_folder",
    "check_output",
    "check_parquet_output",
    "check_replaceable",
    "earlier_looks",
    "load",
    "load_plan",
    "save",
    "save_plan",
    "sole_writer",
    "update",
    "write_memberships",
    "write_table",
]
