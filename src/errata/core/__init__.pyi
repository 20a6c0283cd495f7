"""The spine: what is audited (`Evaluation`), what is found (`Slice`, `Audit`), and how it is confirmed."""

from .audit import Audit, ErrorType, Explanation, HeldOutMeasure, Overall, SearchMeasure, Slice, UnknownExplanation
from .blocks import Array, Matrix, RowView
from .captions import Captions
from .comparison import Change, Comparison
from .errors import ErrataError, InputError, MissingExtra, MissingInput, require
from .evaluation import Evaluation, Origin, Source
from .media import Media
from .plan import Plan, Prompt
from .progress import Progress, silent
from .self_test import NullRun, PlantedCell, SelfTest
from .state import State

__all__ = [
    "Array",
    "Audit",
    "Captions",
    "Change",
    "Comparison",
    "ErrataError",
    "ErrorType",
    "Evaluation",
    "Explanation",
    "HeldOutMeasure",
    "InputError",
    "Matrix",
    "Media",
    "MissingExtra",
    "MissingInput",
    "NullRun",
    "Origin",
    "Overall",
    "Plan",
    "PlantedCell",
    "Progress",
    "Prompt",
    "RowView",
    "SearchMeasure",
    "SelfTest",
    "Slice",
    "Source",
    "State",
    "UnknownExplanation",
    "require",
    "silent",
]
