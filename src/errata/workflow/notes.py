"""What an audit says about its input: what is possible, but probably not what was meant."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..core import Array, Audit, Captions, Evaluation, Slice
from ..inputs import other_order
from ..slicers.barlow import Barlow
from ..slicers.directions import Directions

# What a note has where the paths are not known: `audit` takes rows, not a file.
BY_PREDICTION = "--method barlow --set barlow.scope=prediction"
COMMAND = f"errata audit INPUT -o DIR {BY_PREDICTION}"
READ = "errata.inputs.read(INPUT)"


def input_notes(evaluation: Evaluation, slicers: Mapping[str, Any], texts: Captions | None) -> tuple[str, ...]:
    """Return sentences about classes in another order, and about texts that no method can use."""
    order = other_order(evaluation)
    notes = [] if order is None else [order]
    if texts is not None:
        searching = [slicer for slicer in slicers.values() if isinstance(slicer, Directions)]
        notes += [note for slicer in searching for note in _texts_note(evaluation, slicer, texts)]
    return tuple(notes)


def _texts_note(evaluation: Evaluation, slicer: Directions, texts: Captions) -> list[str]:
    """Return what `directions` does where the texts cannot caption its directions."""
    name = evaluation.representation(slicer.representation, slicer.name)
    if name != texts.representation:
        return [
            f"directions searches `{name}`, and the texts lie in `{texts.representation}`: its slices have the texts "
            "nearest to them, and no captions of the direction; for captions search that one with "
            f"--representation directions={texts.representation}"
        ]
    if evaluation.source(name).from_model and slicer.scope == "label":
        return [
            f"`{name}` is the model's own layer, where a direction within a label knows which rows are wrong; what is "
            "tested is an approximation, which has the texts nearest to it, and no captions of the direction; for "
            "captions give texts in a foreign space (CLIP), or search within predictions with --set "
            "directions.scope=prediction"
        ]
    return []


def drawn_note(discover: Array, search_rows: int) -> list[str]:
    """Return that methods were fitted to a sample, where they were."""
    n = int(discover.sum())
    if n <= search_rows:
        return []
    held_out = len(discover) - n
    return [
        f"The search looked at {search_rows:,} of {n:,} search rows, drawn at random; all {held_out:,} held-out rows "
        "were counted. A smaller slice may be found with more of them (--search-rows)."
    ]


def own_layer_notes(evaluation: Evaluation, slicers: Mapping[str, Any], slices: Sequence[Slice]) -> list[str]:
    """Return the way out where `barlow` searched the model's own layer by what it cannot test, and nothing held."""
    notes = []
    for slicer in slicers.values():
        if not isinstance(slicer, Barlow) or "label" not in slicer.reads:
            continue
        name = evaluation.representation(slicer.representation, slicer.name)
        verdicts = [slice_.verdict for slice_ in slices if slice_.method == slicer.name]
        if "confirmed" in verdicts or not evaluation.source(name).from_model:
            continue
        outcome = "approximations were tested, and none holds"
        if not verdicts:
            outcome = "only approximations can be tested, and there was none to test"
        notes.append(
            f"barlow searched `{name}`, the model's own layer, within each {slicer.scope}: there a path knows which "
            f"rows are wrong, so {outcome}. Paths within a prediction are tested as they are: `{COMMAND}`. So are "
            "paths of another model's features, best of a robust one; the rows need these features first: "
            f"`errata.audit(errata.inputs.add_features({READ}, robust_model, loader), methods=['barlow'], "
            "options={'barlow': {'representation': 'robust'}}, settings=errata.Settings(run=2))`. Either is another "
            "look at the same held-out rows, tested more strictly than the first."
        )
    return notes


def name_paths(audit: Audit, source: Path, output: Path, reading: Mapping[str, Any]) -> Audit:
    """Return the audit with paths in the commands of its notes: its input, and a new folder beside its own.

    reading: how the input is read, as arguments of `errata.inputs.read`.
    """
    given = {name: value for name, value in reading.items() if value}
    words = ["errata", "audit", str(source), "-o", f"{output}-prediction", *BY_PREDICTION.split()]
    for name, value in given.items():
        texts = [value] if isinstance(value, str) else value
        for text in texts:
            words += [f"--{name}", text]
    arguments = [repr(str(source)), *(f"{name}={value!r}" for name, value in given.items())]
    read = f"errata.inputs.read({', '.join(arguments)})"
    notes = [note.replace(COMMAND, shlex.join(words)).replace(READ, read) for note in audit.settings["notes"]]
    return replace(audit, settings={**audit.settings, "notes": notes})
