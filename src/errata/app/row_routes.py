"""All rows of an audit, served: a page at a time, their columns as bars, what is lit on the map, and files of them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import Depends, FastAPI, Query
from fastapi.responses import StreamingResponse

from ..core import Array
from ..report.contract import PageNotFound
from ..report.row_facts import row_facts, row_in_brief
from ..report.script_data import packed
from .row_files import as_csv, as_ids, as_parquet
from .row_queries import RowFinder, RowQuery
from .served_audit import ServedAudit

MOST_ROWS = 200  # of a page
NEIGHBOURS = 6  # right rows of the same label, beside one row that is looked at
Asked = Annotated[RowQuery, Depends()]
KINDS = {
    "csv": ("text/csv; charset=utf-8", as_csv),
    "parquet": ("application/vnd.apache.parquet", as_parquet),
    "ids": ("text/plain; charset=utf-8", as_ids),
}


def add_routes(app: FastAPI, served: ServedAudit) -> None:
    """Rows by what is asked of them, and one row with what is near to it."""
    finder = RowFinder(served)
    _add_lists(app, served, finder)
    _add_single_rows(app, served, finder)


def _add_lists(app: FastAPI, served: ServedAudit, finder: RowFinder) -> None:
    @app.get("/api/rows")
    def read_rows(
        query: Asked,
        start: Annotated[int, Query(ge=0)] = 0,
        count: Annotated[int, Query(ge=1, le=MOST_ROWS)] = 60,
        beside: bool = False,
    ) -> dict[str, Any]:
        """Some of the rows that match; beside: each with its nearest right row of the same label."""
        rows = finder.find(query)
        shown = rows[start : start + count].tolist()
        weights = _weights(served, query.slice)
        lines = [_line(served, finder, weights, row) for row in shown]
        if beside and shown:
            for line, near in zip(lines, finder.right_neighbours(shown, 1), strict=True):
                line["beside"] = [row_in_brief(served.audit, row) for row in near]
        return {"total": len(rows), "start": start, "order": finder.order_of(query), "rows": lines}

    @app.get("/api/view")
    def read_view(query: Asked) -> dict[str, Any]:
        """The rows that match as numbers: how many, how many wrong, every column inside and outside, the map."""
        inside = finder.mask(query)
        columns = [_distribution(bars, inside) for bars in finder.columns]
        return {**served.rows.counts(inside), "columns": columns, "lit": _lit(served, inside)}

    @app.get("/api/export/rows.{kind}")
    def export_rows(kind: Literal["csv", "parquet", "ids"], query: Asked) -> StreamingResponse:
        """Every row that matches, as a file."""
        media, write = KINDS[kind]
        suffix = "txt" if kind == "ids" else kind
        headers = {"content-disposition": f'attachment; filename="errata-rows.{suffix}"'}
        parts = write(served.audit, finder.find(query), _weights(served, query.slice), finder.confidence)
        return StreamingResponse(parts, media_type=media, headers=headers)


def _add_single_rows(app: FastAPI, served: ServedAudit, finder: RowFinder) -> None:
    @app.get("/api/near/{row:path}")
    def read_neighbours(row: str) -> dict[str, Any]:
        """One row, and beside it the nearest rows of the same label that are right."""
        position = served.position(row)
        near = finder.right_neighbours([position], NEIGHBOURS)[0]
        inside = [slice_.id for slice_ in served.left().slices if slice_.members[position]]
        lines = [row_in_brief(served.audit, other) for other in near]
        return {**row_facts(served.audit, position), "slices": inside, "near": lines}

    @app.get("/api/at/{position}")
    def read_position(position: int) -> dict[str, Any]:
        """One row by its position: what a point of the map is."""
        if not 0 <= position < len(served.audit.evaluation):
            raise PageNotFound(f"Row {position} does not exist.")
        return row_in_brief(served.audit, position)


def _line(served: ServedAudit, finder: RowFinder, weights: Array | None, row: int) -> dict[str, Any]:
    line = row_in_brief(served.audit, row)
    if weights is not None:
        line["depth"] = round(float(weights[row]), 3)
    if finder.confidence is not None:
        line["confidence"] = round(float(finder.confidence[row]), 4)
    return line


def _weights(served: ServedAudit, slice_id: str) -> Array | None:
    """(n,) how firmly rows belong to a slice; None of a drawn one, or of none."""
    return next((slice_.weights for slice_ in served.left().slices if slice_.id == slice_id), None)


def _distribution(bars: Any, inside: Array) -> dict[str, Any]:
    """One column: the rows of each bar that match, and those that do not."""
    counts = zip(bars.bars, bars.count(inside), bars.count(~inside), strict=True)
    lines = [{"label": bar.label, "condition": bar.condition, "in": n, "out": others} for bar, n, others in counts]
    return {"name": bars.name, "bars": lines, "others": bars.others}


def _lit(served: ServedAudit, inside: Array) -> str | None:
    """One bit for each point that the map draws; None where there is no map."""
    drawn = served.rows.drawn
    return None if drawn is None else packed(inside[drawn])
