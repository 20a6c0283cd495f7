"""What people enter about an audit: annotations, decisions, agreement, and their database. No server, no HTML."""

from ..core import require

require("sqlalchemy", "app")

# ruff: noqa: E402 - below what names the cure where the package is missing
from .agreement import Agreement, Disagreement, Majority, Pair
from .answers import QueueProgress
from .curation import DrawnSlice, TestedHypothesis
from .database import Unavailable
from .entries import AcceptedSlice, Annotation, Conflict, Decision, Drawing, Edit, Entry, Hypothesis, Standing
from .exchange import ANNOTATIONS, RECORDS, ImportCounts
from .records import Records

__all__ = [
    "ANNOTATIONS",
    "RECORDS",
    "AcceptedSlice",
    "Agreement",
    "Annotation",
    "Conflict",
    "Decision",
    "Disagreement",
    "Drawing",
    "DrawnSlice",
    "Edit",
    "Entry",
    "Hypothesis",
    "ImportCounts",
    "Majority",
    "Pair",
    "QueueProgress",
    "Records",
    "Standing",
    "TestedHypothesis",
    "Unavailable",
]
