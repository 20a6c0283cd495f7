"""The third conductor: from a classifier to regions in which it errs beyond its data, and to a corrected one."""

from .run import Defused, defuse
from .settings import Settings

__all__ = ["Defused", "Settings", "defuse"]
