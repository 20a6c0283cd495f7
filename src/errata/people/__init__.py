"""What people say of an audit: annotations, decisions, agreement, and their database. No server, no HTML."""

from ..core import require

require("sqlalchemy", "app")

# ruff: noqa: E402 - below what names the cure where the package is missing
from .agreement import Agreement, Dispute, Majority, Pair
from .answers import Progress
from .curation import Drawn, TestedHypothesis
from .database import Unavailable
from .entries import Accepted, Annotation, Conflict, Decision, Drawing, Edit, Entry, Hypothesis, Standing
from .exchange import ANNOTATIONS, RECORDS, Imported
from .records import Records

__all__ = [
    "ANNOTATIONS",
    "RECORDS",
    "Accepted",
    "Agreement",
    "Annotation",
    "Conflict",
    "Decision",
    "Dispute",
    "Drawing",
    "Drawn",
    "Edit",
    "Entry",
    "Hypothesis",
    "Imported",
    "Majority",
    "Pair",
    "Progress",
    "Records",
    "Standing",
    "TestedHypothesis",
    "Unavailable",
]
