"""`errata demo`: an embedded example, audited."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .common import write_audit


def demo(
    output: Annotated[Path, typer.Option("-o", "--output", metavar="DIR", help="The folder to write.")] = Path(
        "demo-audit"
    ),
    example: Annotated[str, typer.Option(help="`scenes`, which needs torch, or `digits`, which does not.")] = "scenes",
    seed: Annotated[int, typer.Option(help="Seed of the model and of the search.")] = 0,
) -> None:
    """Train a small model with hidden weaknesses, audit it, and report which of them the audit found."""
    from .. import store, workflow
    from ..core.errors import unknown
    from ..report.progress_bars import progress_bar
    from .examples import EXAMPLES, answer

    store.check_output(output)
    if example not in EXAMPLES:
        raise unknown("example", example, EXAMPLES)
    with progress_bar() as progress:
        planted = EXAMPLES[example](seed, progress)
    with progress_bar() as progress:  # a bar of its own: its time left has nothing to do with the training's
        audit = workflow.audit(planted.evaluation, seed=seed, map=True, progress=progress)
    write_audit(audit, output, note=answer(planted, audit))
