"""What an audit says about its input: what is possible, but probably not what was meant."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

from ..core import Array, Captions, Evaluation, Slice
from ..core.confirm import Settings
from ..inputs import other_order
from ..slicers.barlow import Barlow
from ..slicers.directions import Directions
from ..slicers.options import constructor_options
from .methods import options_of

# Words for what the user gave. A note is kept with its audit, whose bytes are the same wherever its files lie, and it
# is read by others: the command fills them in where it prints.
COMMAND = "errata audit INPUT -o DIR OPTIONS"
ROWS = "evaluation"


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


def own_layer_notes(
    evaluation: Evaluation,
    slicers: Mapping[str, Any],
    slices: Sequence[Slice],
    given: Mapping[str, Any],
    files: Mapping[str, Any],
    settings: Settings,
) -> list[str]:
    """Return the ways out where `barlow` searched the model's own layer by what it cannot test, and nothing held.

    given: the arguments of `audit` that are not its defaults. files: those that a note can only name, or None.
    settings: how strict this look is.
    """
    notes = []
    named = [name for name, value in files.items() if value is not None]
    for method, slicer in slicers.items():
        if not isinstance(slicer, Barlow) or "label" not in slicer.reads:
            continue
        name = evaluation.representation(slicer.representation, slicer.name)
        verdicts = [slice_.verdict for slice_ in slices if method in slice_.found_by]
        if "confirmed" in verdicts or not evaluation.source(name).from_model:
            continue
        options: Mapping[str, Any] = options_of(method, given.get("options", {}))
        if method not in given.get("methods", ()):
            options = _built_with(slicer)
        outcome = "approximations were tested, and none holds"
        if not verdicts:
            outcome = "only approximations can be tested, and there was none to test"
        line = _by_robust_features(method, options, given, named, settings)
        notes.append(
            f"barlow searched `{name}`, the model's own layer, within each {slicer.scope}: there a path knows which "
            f"rows are wrong, so {outcome}. Paths within a prediction are tested as they are: "
            f"`{COMMAND} --method {method} --set {method}.scope=prediction`, with the input and the other options of "
            "this audit and a new folder beside its own. So are paths of another model's features, best of a robust "
            f"one, which the rows need first: `{line}`. Either is another look at the same held-out rows "
            "(but for copies that the new features show, which are kept together), "
            "tested more strictly than the first: the command counts the audits beside its folder, and the line leaves "
            f"run {settings.run + 1} to it."
        )
    return notes


def _built_with(slicer: Barlow) -> dict[str, Any]:
    """Return the options of a slicer that the user built, but for defaults."""
    defaults = constructor_options(type(slicer))
    return {name: getattr(slicer, name) for name, default in defaults.items() if getattr(slicer, name) != default}


def _by_robust_features(
    method: str, options: Mapping[str, Any], given: Mapping[str, Any], named: Sequence[str], settings: Settings
) -> str:
    """Return the call that searches a robust model's features, with the other arguments of the audit as they were.

    options: of the method. named: arguments that were given and stand by their names alone, such as training rows.
    """
    arguments = {**given, "methods": [method], "options": {method: {**options, "representation": "robust"}}}
    later = replace(settings, run=settings.run + 2)
    strictness = [
        f"{field.name}={getattr(later, field.name)!r}"
        for field in fields(later)
        if getattr(later, field.name) != field.default
    ]
    words = [
        f"errata.inputs.add_features({ROWS}, robust_model, loader)",
        *(f"{name}={value!r}" for name, value in arguments.items()),
        *(f"{name}={name}" for name in named),
        f"settings=errata.Settings({', '.join(strictness)})",
    ]
    return f"errata.audit({', '.join(words)})"
