"""What tests of the report share."""

from __future__ import annotations

from errata.core import Audit
from errata.report import View
from errata.report.image_sources import EmbeddedImages
from errata.report.saved import saved_view

SCRIPTS = 7  # modules of a saved report: page, rank, hypothesis, groups of rows, all rows, map, answers as a file


def view_of(audit: Audit) -> View:
    """What the pages and parts of a saved report are given, without images."""
    return saved_view(audit, EmbeddedImages(None))
