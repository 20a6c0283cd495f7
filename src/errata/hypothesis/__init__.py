"""A hypothesis of the user's own, as words or a condition on columns: parsed, and tested on held-out rows.

`parse` reads a text, `run_test` measures the rows that match it on the held-out rows of an audit, and `adjust`
corrects a result for the number of hypotheses tested. `to_columns` gives a page the columns that a condition may name.
"""

from .columns import column_names, to_columns
from .own_slices import OwnSlices, read_slices, untestable, with_slice
from .parsing import ParsedHypothesis, WordQuery, parse
from .testing import HypothesisResult, adjust, run_test

__all__ = [
    "HypothesisResult",
    "OwnSlices",
    "ParsedHypothesis",
    "WordQuery",
    "adjust",
    "column_names",
    "parse",
    "read_slices",
    "run_test",
    "to_columns",
    "untestable",
    "with_slice",
]
