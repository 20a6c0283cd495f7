"""The page of audit.json: every key, what it holds, and the records inside it."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from code_words import (
    NOTE,
    fields_of,
    lead_of,
    prose_of,
    table,
)

TOP = {
    "schema": "Name and version of this format.",
    "origin": "Fingerprints of the audited `model`, `data` and `code`; null where not recorded.",
    "fingerprint": "Of ids and outcomes: two audits with the same one look at the same rows.",
    "settings": "What the audit ran with, see [settings](#settings).",
    "overall": "All rows and the held-out rows, see [overall](#overall).",
    "tasks": "The same for each label of a multi-label audit, with its name in `task`; else empty.",
    "slices": "The slices in order of importance, see [slices](#slices).",
    "error_types": "Slices that know the outcome, see [error_types](#error-types).",
    "silence": "What this audit could have missed: a line on the test, one on the search, one on the null run.",
    "explanations": "Explanations of the audit as a whole, see [explanations](#explanations).",
    "self_test": "What the search finds of groups planted in these rows, see [self_test](#self-test); null where it "
    "was not tested.",
    "null": "What it confirms where there is nothing to find, see [null](#null); null where it was not run.",
}
SETTINGS = {
    "version": "Of Errata.",
    "methods": "Names as they were given, `NAME` or `NAME:PRESET`.",
    "options": "Options given for each method.",
    "seed": "Of the search; it never moves the split.",
    "level": "Chance of a false confirmation that this run spends; `alpha` at the first look at these rows.",
    "within": "Where was searched: within each `label` or `prediction`, `none`, or `auto` for each method's own way.",
    "crossfit": "Whether both halves were searched.",
    "search_rows": "Search rows that methods were fitted to, at most; of more, as many were drawn.",
    "metric": "What was searched for: `error`, `fnr`, `fpr`, `over_prediction` or `under_prediction`.",
    "positive": "The class of `fnr` and `fpr`; null for the second of two.",
    "rows_of": "Fingerprint of the evaluation that the rows are of, where `metric` is not `error`; else null.",
    "look": "Hash of the rows, outcomes and settings that decide verdicts: the same in two audits that are one look.",
    "tested": "Slices tested: the number that the p-values are corrected for.",
    "hypotheses": "Since some were kept as slices: how many are `counted` in `tested`, and the ids of those `kept`.",
    "softness": "What a hard prediction leaves to other classes, where a method reads `probs` without any; or null.",
    "ownership": "Of each representation: `own`, whether it is taken to contain the prediction; `declared`, whether "
    "someone said so; else `r2`, the share of the logits within labels that it tells, or `auc`, how well it tells "
    "errors from others of their label.",
    "groups": "What rows belong together: `choice`, what was asked for; `given`, whether the evaluation has groups; "
    "`column`, the metadata column whose values were kept together; `alike`, columns within whose values errors are "
    "alike (`correlation`, and `z` above permuted errors, on search rows); `copies`: how many `rows` `of` all have a "
    "copy, in how many `groups`, the `largest`, `by` what, and whether `near` ones were looked for.",
    "influence": "How influence embeddings were made; null where there are none. `curvature`: `training rows`, `search "
    "rows`, or `given` where the evaluation had them; `rows` of it; `representation`, the last layer's input, and its "
    "`weights`; `steps` and `rank`, P and D of the paper, and how many `directions` were found; `damping`, "
    "`tolerance`, `seed`, and `basis`, bytes of vectors held at a time; `negative` eigenvalues that were left out.",
    "notes": "What methods say of their own search, such as lights that did not converge.",
    "trained_on_these_rows": "`no` where training rows were given and none of them is here, else `not known`.",
}
SLICE = {
    "rule": "How the method decides membership, see [rule](#rule).",
    "discover": "On the search rows, see [discover](#discover).",
    "confirm": "On the held-out rows, see [confirm](#confirm); null where nothing was measured.",
    "explanations": "See [explanations](#explanations).",
}
# Keys of explanations whose fields have no words in the code, since their names say it; RECORD.KEY where it is not the
# same in every record.
MEANINGS = {
    "chosen_on": "The rows on which it was chosen: `discover` for search rows, `confirm` for held-out rows.",
    "measured_on": "The rows on which it was measured, likewise.",
    "drawn_from": "The rows from which it was drawn, likewise.",
    "representation": "The representation that it was computed in.",
    "n": "Rows.",
    "errors": "Rows that are wrong; null where there are no errors to count.",
    "error_rate": "Their share.",
    "mean_loss": "Mean loss of the rows.",
    "id": "Id of the row.",
    "row": "Position of the row in the evaluation.",
    "label": "Its true class.",
    "prediction": "Its predicted class.",
    "loss": "Its loss.",
    "seed": "Seed of what was drawn at random.",
    "text": "In words.",
    "task": "The label, in a multi-label audit.",
    "class": "Name of the class.",
    "share": "Share of all rows.",
    "column": "Name of the column.",
    "value": "Its value.",
    "rows": "The entries, best first.",
    "of": "How many there were to choose from.",
    "which": "Which group it is.",
    "score": "What it was chosen by.",
    "base_rate": "Share of members among the rows: what chance gives.",
    "slice_share": "Share within the slice.",
    "rest_share": "Share outside.",
    "rest": "The same outside: rows with it, and rows.",
    "feature": "Which column of the representation.",
    "name": "Its name.",
    "failures": "Rows that are wrong.",
    "searched": "On the search rows.",
    "groups": "Groups of rows to look at.",
    "features": "One entry for each feature of the path.",
    "captions.left_out": "How many captions were excluded, and why.",
    "captions.class_rate": "The error rate of the class.",
    "captions.hard": "The hardest captions; those whose rows surely fail most often come first.",
    "captions.easy": "The easiest captions; those whose rows surely fail least often come first.",
    "classes.labels": "Shares of the labels.",
    "classes.predictions": "Shares of the predictions.",
    "classes.confused": "The most frequent confusions.",
    "Similarity.random": "The same of as many errors at random.",
    "Similarity.p_value": "Share of random draws with a cosine as high.",
    "Similarity.same_label_p": "Share of such draws with a cosine as high.",
    "coherence.random": "The same of as many errors at random.",
    "coherence.p_value": "Share of random draws with a cosine as high.",
    "coherence.same_label_p": "Share of such draws with a cosine as high.",
    "own_label.opponents": "Those whose influence points against the members most, by cosine.",
    "own_label.helpers": "Those whose influence points the same way most.",
    "own_label.shares": "Values that either have more or less often than the label, else the nearest; `fitted` last.",
    "LabelShare.opponents": "Of the strongest opponents: with the value, and all.",
    "LabelShare.helpers": "Of the strongest helpers: with the value, and all.",
    "LabelShare.label": "Of the training rows of the label: with the value, and all.",
    "LabelShare.helpers_interval": "The same of the share among helpers.",
    "Homogeneity.prediction": "The commonest prediction.",
    "Homogeneity.predictions": "Rows with it, of all that are counted.",
    "features.radius": "How far an attack may go.",
    "features.step": "Length of one step of an attack.",
    "features.steps": "Steps of an attack.",
    "metadata.columns": "One entry for each column.",
    "metadata.skipped": "Columns that were not used.",
    "opponents.opponents": "Training rows that raise the loss of its errors most.",
    "opponents.helpers": "Training rows that lower it most.",
    "opponents.profile": "Values that are commoner among the opponents than in training.",
    "path.knows_outcome": "Whether membership reads the outcome; there are then no held-out numbers.",
    "sizes.slices": "One point for each slice.",
    "sizes.clusters": "One point for each cluster, to compare with.",
    "tokens.length": "Lengths of the texts.",
    "CaptionRow.retrieval": "How well nearness to the caption finds members.",
    "CaptionRow.matches": "The rows nearest to the caption.",
    "ClusterPoint.cluster": "Which cluster.",
    "FeatureImages.pictures": "One entry for each of the most activating rows.",
    "FeatureImage.picture": "The image of the row.",
    "FeatureImage.attack": "The image after the attack.",
    "Lengths.slice": "Mean number of words within the slice.",
    "Lengths.slice_n": "Texts within the slice.",
    "Lengths.rest": "Mean number of words outside.",
    "Lengths.rest_n": "Texts outside.",
    "OpponentShare.opponents": "Opponents with the value, and opponents.",
    "OpponentShare.train": "Training rows with the value, and training rows.",
    "OpponentShare.lift": "The first share over the second.",
    "PathFeature.cuts": "Where the path cuts the feature.",
    "PathFeature.activating": "The rows with its largest values.",
    "PathFeature.range": "Rows at its quantiles.",
    "PathNumbers.group_n": "Rows of the group.",
    "PathNumbers.group_failures": "Those that are wrong.",
    "PathNumbers.base_error_rate": "BER, the error rate of the group.",
    "PathNumbers.error_rate": "ER, the error rate of the leaf.",
    "PathNumbers.error_coverage": "EC, the leaf's share of the group's failures.",
    "PathNumbers.importance": "IV, error rate times coverage.",
    "PathNumbers.aler": "ALER, the sum of the importance over all leaves.",
    "PickedExample.picked": "What it was picked by.",
    "QuantileExample.quantile": "Which quantile, from 0 to 1.",
    "SkippedColumn.distinct": "Distinct values.",
    "SlicePoint.id": "Id of the slice.",
    "SlicePoint.side": "`hard` or `easy`.",
    "SlicePoint.verdict": "Of the slice.",
    "TokenRow.token": "The word or phrase, in lower case.",
    "trees.groups": "One entry for each group.",
    "GroupTree.group": "The group: the values that its rows have.",
    "GroupTree.confirm": "Of held-out rows.",
    "GroupTree.tree": "The whole tree.",
    "Tree.nodes": "All nodes, the root first.",
    "TreeNode.depth": "From 0, the root.",
    "metrics.level": "Of each interval by itself.",
    "MetricRow.metric": "Its name, as `errata.by` has it.",
    "MetricRow.n": "Held-out rows of the slice that it is defined on: of a recall, the positive ones.",
    "MetricRow.value": "On those rows; null where there are none.",
    "MetricRow.low": "Lower end of its interval.",
    "MetricRow.high": "Upper end of its interval.",
    "MetricRow.rest_n": "Held-out rows of the rest that it is defined on.",
    "MetricRow.rest_value": "On those rows.",
    "MetricRow.rest_low": "Lower end of its interval.",
    "MetricRow.rest_high": "Upper end of its interval.",
    "ValueRow.found": "The same shares on the search rows.",
}
RULE = {
    "kind": "`ball`, `component`, `direction`, `path`, `cell`, `loss`, `ids`, `conditions`; `approximation`.",
    "of": "Of an approximation: the rule that it takes the place of.",
    "learner": "Of an approximation: `vote`, `vote within the prediction` or `regression`.",
    "match": "Of an approximation: F1 of its search rows with those of the slice, none judged by itself.",
    "representation": "Which one decides membership.",
    "scope": 'The rows that the slice is limited to, such as `{"label": 3}` or `{"prediction": 1}`.',
    "side": "`hard` or `easy`.",
    "light": "spotlight: which light, from 0.",
    "size": "spotlight: share of the rows that its lights were searched at.",
    "mass": "spotlight: the sum of the light's weights on the search rows, over the rows that it should hold.",
    "converged": "spotlight: whether that is near 1.",
    "component": "gmm, domino, george, planespot, infembed: which component or cluster, from 0.",
    "labels": "domino: share of each label in the component.",
    "predictions": "domino: share of each prediction in the component.",
    "found_in_class": "george: the class whose rows were clustered.",
    "columns": "infembed: leading columns of the influence embeddings that were clustered.",
    "clusterer": "infembed: how rows were clustered.",
    "label": "confusion: the true class.",
    "prediction": "confusion: what it is taken for.",
    "at_least": "high-loss: the lowest loss of a member.",
    "round": "multiaccuracy: which round found it.",
    "group": "directions: which group of the errors of a class.",
    "arrays": "directions: names of the fitted arrays in `slicers/NAME.safetensors`.",
    "C": "directions: the chosen C of the SVM.",
    "rows": "directions: search rows of the class.",
    "errors": "directions: those that are wrong.",
    "strength": "directions: balanced accuracy out of fold; null where it cannot be measured.",
    "null": "directions: `mean` and `spread` of the strength over `shuffles` of the outcome, `z`, `p_value`.",
    "note": "directions: why there is no strength.",
    "conditions": "barlow: the path, a list of `feature`, `op` and `value`. rules: a row meets all of them; each "
    "has its `column`, `low` (inclusive) and `high` (exclusive) or `values` and `negated`, and `missing`: whether a "
    "missing value meets it.",
    "names": "barlow: the features of the path in words.",
    "leaves": "barlow: the paths to all leaves of its tree.",
    "nodes": "barlow: the whole tree; of each node `feature`, `cut`, `left`, `right`.",
    "tree": "barlow: which tree.",
    "leaf": "barlow: which leaf of it.",
    "searched": "barlow: the paper's numbers on the search rows.",
}


def audit_json() -> str:
    from errata.core.audit import ErrorType, HeldOutMeasure, Mistake, Overall, SearchMeasure, Slice
    from errata.core.confirm import Settings
    from errata.core.self_test import NullRun, PlantedCell, SelfTest

    settings = {name: words for name, (_, words) in fields_of(Settings).items()}
    overall = fields_of(Overall)
    slice_ = {
        name: words for name, (_, words) in fields_of(Slice).items() if name not in ("weights", "audited", "judged")
    } | SLICE
    lines = ["# audit.json", "", NOTE, ""]
    lines += [
        "What an audit found, as plain JSON; `Audit.to_json()` in Python. Keys are added in later versions, none is "
        "renamed. `discover` means search rows and `confirm` means held-out rows.",
        "",
    ]
    lines += _keys(TOP)
    lines += ["## settings", "", *_keys(SETTINGS | settings)]
    lines += ["## overall", "", *_keys({name: words for name, (_, words) in overall.items()})]
    lines += ["## slices", "", *_keys(slice_)]
    lines += ["### discover", "", lead_of(prose_of(SearchMeasure), {}), "", *_keys(_words(SearchMeasure))]
    lines += ["### confirm", "", lead_of(prose_of(HeldOutMeasure), {}), "", *_keys(_words(HeldOutMeasure))]
    lines += ["### rule", "", "How the method decides membership; which keys there are depends on the method.", ""]
    lines += _keys(RULE)
    error_type = {name: words for name, words in _words(ErrorType).items() if name != "weights"}
    lines += ["## error_types", "", lead_of(prose_of(ErrorType), {}), "", *_keys(error_type)]
    lines += ["### mistakes", "", lead_of(prose_of(Mistake), {}), "", *_keys(_words(Mistake))]
    lines += ["## self_test", "", lead_of(prose_of(SelfTest), {}), "", *_keys(_words(SelfTest))]
    lines += ["### cells", "", lead_of(prose_of(PlantedCell), {}), "", *_keys(_words(PlantedCell))]
    lines += ["## null", "", lead_of(prose_of(NullRun), {}), "", *_keys(_words(NullRun))]
    lines += ["## explanations", "", *explanations()]
    return "\n".join(lines)


def _words(cls: type) -> dict[str, str]:
    return {name: words for name, (_, words) in fields_of(cls).items()}


def _keys(words: Mapping[str, str]) -> list[str]:
    return table(("key", "meaning"), ((f"`{name}`", text) for name, text in words.items()))


def explanations() -> list[str]:
    """The kinds of explanation, each with its keys, then the records that they are made of."""
    from errata import explain

    kinds = getattr(explain, "EXPLANATIONS", {})
    lines = [
        "Each has its `kind`, which says what the other keys are; `chosen_on` and `measured_on` say on which rows. A "
        "kind that this version does not know is kept as it is. A value that has keys itself is a record, see below.",
        "",
    ]
    records: dict[str, type] = {}
    for kind, cls in sorted(kinds.items()):
        lines += [f"### {kind}", "", lead_of(prose_of(cls), _words(cls)), "", *_record_keys(cls, records)]
    done: set[str] = set()
    while len(done) < len(records):
        for name in sorted(records.keys() - done):
            done.add(name)
            cls = records[name]
            lines += [f"### {name}", "", lead_of(prose_of(cls), _words(cls)), "", *_record_keys(cls, records)]
    return lines


def _record_keys(cls: type, records: dict[str, type]) -> list[str]:
    rows = [(f"`{key}`", _kind_of_value(hint, records), words) for key, hint, words in json_keys(cls)]
    return table(("key", "value", "meaning"), rows)


def json_keys(cls: type) -> Iterator[tuple[str, Any, str]]:
    """(key, type, words) of all that a record writes to JSON; flat records are spread out."""
    hints = get_type_hints(cls)
    words = _words(cls)
    for field in dataclasses.fields(cls):
        if field.metadata.get("flat"):
            yield from json_keys(_record_of(hints[field.name]))
        else:
            key = field.metadata.get("json", field.name)
            own = f"{getattr(cls, 'kind', cls.__name__)}.{key}"
            yield key, hints[field.name], words[field.name] or MEANINGS.get(own) or MEANINGS.get(key, "")


def _record_of(hint: Any) -> Any:
    """The record class in a type such as `tuple[Rate, ...] | None`; None where there is none."""
    if dataclasses.is_dataclass(hint):
        return hint
    return next(filter(None, map(_record_of, get_args(hint))), None)


def _kind_of_value(hint: Any, records: dict[str, type]) -> str:
    """What a value is in JSON, in words, with a link to its record."""
    parts = get_args(hint)
    if get_origin(hint) in (Union, UnionType):
        named = [_kind_of_value(part, records) for part in parts if part is not type(None)]
        null = " or null" if type(None) in parts else ""
        return " or ".join(dict.fromkeys(named)) + null
    if get_origin(hint) in (tuple, list, Sequence):
        return f"list of {_kind_of_value(parts[0], records)}" if parts else "list"
    if dataclasses.is_dataclass(hint):
        records.setdefault(hint.__name__, hint)
        return f"[{hint.__name__}](#{hint.__name__.lower()})"
    if get_origin(hint) is Literal:
        return " or ".join(f"`{part}`" for part in parts)
    plain = {str: "text", int: "number", float: "number", bool: "true or false", dict: "object"}
    return plain.get(get_origin(hint) or hint, "object" if "Mapping" in str(hint) else "any")
