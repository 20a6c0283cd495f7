"""The conductor on Evaluations: what is searched, folded, confirmed, ordered, refused and applied."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

import errata
from errata import Audit, Evaluation, Settings, Source, workflow
from errata.core import InputError, MissingInput
from errata.core.membership import jaccard
from errata.slicers import SLICERS, make
from errata.slicers.contract import BaseSlicer

N, D = 1000, 4
CORNER = np.arange(N) % 8 == 0


def planted(n: int = N, seed: int = 0, **others: Any) -> Evaluation:
    """Every eighth row lies in a corner where the model mostly fails; elsewhere it fails now and then."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, D))
    corner = np.arange(n) % 8 == 0
    X[corner] = 0.3 * X[corner] + 4
    labels = rng.integers(0, 2, n)
    wrong = np.where(corner, rng.random(n) < 0.85, rng.random(n) < 0.08)
    sure = rng.uniform(0.6, 0.9, n)
    positive = np.where(labels ^ wrong, sure, 1 - sure)
    arrays = {"labels": labels, "probs": np.stack([1 - positive, positive], axis=1), "representations": {"x": X}}
    return Evaluation(**{**arrays, **others})


def shuffled(evaluation: Evaluation, seed: int = 1) -> Evaluation:
    return evaluation.rows(np.random.default_rng(seed).permutation(len(evaluation)))


@pytest.fixture(scope="module")
def four() -> Audit:
    """The planted rows under four methods, with lights as large as the corner."""
    return errata.audit(
        planted(),
        methods=["spotlight", "gmm", "confusion", "high-loss"],
        options={"spotlight": {"size": 0.12}, "gmm": {"components": 4}},
    )


# --- agreement and order -------------------------------------------------------------------------------------


def test_methods_that_agree_are_one_finding(four: Audit) -> None:
    first = four.slices[0]
    assert first.verdict == "confirmed"
    assert {"spotlight", "gmm"} <= set(first.found_by)
    assert first.found_by[0] == first.method
    assert len(set(first.found_by)) == len(first.found_by)
    assert first.folded >= len(first.found_by) - 1
    assert (CORNER[first.members]).mean() > 0.95
    tested = [found for found in four.slices[1:] if found.confirm is not None]
    assert all(jaccard(found.members, first.members) < 0.5 for found in tested)


def test_alone_a_method_found_it_alone() -> None:
    audit = errata.audit(planted(), methods=["spotlight"], options={"spotlight": {"size": 0.12}})
    assert audit.slices[0].found_by == ("spotlight",)


def test_confirmed_come_first_then_by_what_nothing_explains_then_by_excess(four: Audit) -> None:
    tested = [found for found in four.slices if found.confirm is not None]
    ranks = [(s.verdict != "confirmed", bool(s.explained_by), -s.confirm.excess[1]) for s in tested if s.confirm]
    assert ranks == sorted(ranks)
    assert [found.id for found in four.slices] == [f"s{i + 1}" for i in range(len(four.slices))]
    untested = [found.confirm is None for found in four.slices]
    assert untested == sorted(untested)


def test_what_reads_the_outcome_is_measured_through_an_approximation_and_shown_as_an_error_type() -> None:
    audit = errata.audit(planted(), methods=["confusion", "high-loss"])
    assert audit.slices
    for found in audit.slices:
        assert found.rule["kind"] == "approximation"
        assert found.fidelity is not None
        assert found.confirm is not None
    first = audit.error_types[0]
    assert first.id == "e1"
    assert first.slice == audit.slices[0].id
    assert first.id in audit.slices[0].error_types
    assert audit.evaluation.errors is not None
    assert audit.evaluation.errors[first.members].all()  # a cell of the confusion matrix: its own face
    assert not audit.evaluation.errors[audit.slices[0].members].all()  # who is at risk
    assert first.errors == (first.members & ~audit.discover).sum()


class TwoFaces(BaseSlicer):
    """Two slices, of which the first reads the representation alone and the second also the label."""

    name = "two-faces"
    needs = frozenset({"representations", "labels"})

    @property
    def reads(self) -> frozenset[str]:
        return frozenset({"label"})

    def _fit(self, evaluation: Evaluation, train: Evaluation | None) -> None:
        scope = {"label": 1}
        self.rules_ = ({"kind": "corner", "reads": []}, {"kind": "corner", "scope": scope})

    def membership(self, evaluation: Evaluation) -> np.ndarray:
        x = np.asarray(self.matrix(evaluation))[:, 0]
        return np.stack([x > 1, (x < -1) & (evaluation.labels == 1)], axis=1).astype(float)


def test_only_slices_that_know_the_outcome_are_approximated(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(SLICERS, TwoFaces.name, TwoFaces)
    x = np.random.default_rng(0).normal(size=(2000, D))
    labels = np.arange(2000) % 2
    wrong = (x[:, 0] > 1) | ((x[:, 0] < -1) & (labels == 1))
    own = {"x": errata.Source(from_model=True)}
    evaluation = Evaluation(labels=labels, predictions=labels ^ wrong, representations={"x": x}, sources=own)
    audit = errata.audit(evaluation, methods=["two-faces"])
    kinds = {found.slicer: found.rule["kind"] for found in audit.slices}
    assert kinds == {"two-faces": "corner", "two-faces-approximation": "approximation"}
    assert {found.slicer: found.column for found in audit.slices} == {"two-faces": 0, "two-faces-approximation": 0}
    again = errata.load(errata.save(audit, tmp_path / "audit"))
    weights = errata.apply(again, evaluation)
    for found in audit.slices:
        np.testing.assert_allclose(weights[found.id], found.weights)


def test_a_slice_that_only_the_outcome_defines_is_an_error_type_without_a_slice(tmp_path: Path) -> None:
    """Forty errors at random: nothing tells them before the outcome, so they are shown, and not tested nor applied."""
    rng = np.random.default_rng(0)
    labels = np.arange(400) % 2
    wrong = rng.permutation(400) < 40
    evaluation = Evaluation(labels=labels, predictions=labels ^ wrong, representations={"x": rng.normal(size=(400, D))})
    audit = errata.audit(evaluation, methods=["confusion"])
    assert not audit.confirmed
    alone = [found for found in audit.error_types if found.slice is None]
    assert alone
    assert not set(errata.apply(audit, evaluation)) & {found.id for found in alone}
    assert audit.settings["tested"] == len(audit.slices)
    again = errata.load(errata.save(audit, tmp_path / "audit"))
    assert [found.to_json() for found in again.error_types] == [found.to_json() for found in audit.error_types]
    for found, before in zip(again.error_types, audit.error_types, strict=True):
        assert found.weights.tobytes() == before.weights.tobytes()


def test_the_search_never_sees_a_confirm_outcome() -> None:
    """Outcomes of confirm rows changed: the same rows are found, with other numbers."""
    plain = errata.audit(planted(), methods=["spotlight"], options={"spotlight": {"size": 0.12}})
    evaluation = plain.evaluation
    probs = np.array(evaluation.probs)
    probs[~plain.discover] = probs[~plain.discover][:, ::-1]
    assert evaluation.labels is not None
    other = errata.audit(planted(probs=probs), methods=["spotlight"], options={"spotlight": {"size": 0.12}})
    assert np.array_equal(plain.discover, other.discover)
    mine, theirs = plain.slicers["spotlight"], other.slicers["spotlight"]
    assert np.array_equal(mine.membership(evaluation), theirs.membership(evaluation))
    assert np.array_equal(mine.thresholds_, theirs.thresholds_)
    assert plain.confirmed
    assert not any(CORNER[found.members].mean() > 0.5 for found in other.confirmed)


# --- crossfit, sides, groups ---------------------------------------------------------------------------------


def test_crossfit_searches_both_halves_in_one_family() -> None:
    plain = errata.audit(planted(), methods=["spotlight"])
    both = errata.audit(planted(), methods=["spotlight"], crossfit=True)
    assert set(both.slicers) == {"spotlight", "spotlight-reverse"}
    assert both.settings["tested"] > plain.settings["tested"]
    assert {found.confirmed_on for found in both.slices} == {"confirm", "discover"}
    other_half = make("spotlight", seed=0).fit(both.evaluation.rows(~both.discover))
    assert np.array_equal(
        both.slicers["spotlight-reverse"].membership(both.evaluation), other_half.membership(both.evaluation)
    )
    assert {found.slicer for found in both.slices if found.confirmed_on == "discover"} <= {"spotlight-reverse"}
    for found in both.slices:
        assert found.confirm is not None
        rows = ~both.discover if found.confirmed_on == "confirm" else both.discover
        assert found.confirm.n == (found.members & rows).sum()
        assert found.discover is not None
        assert found.discover.n == (found.members & ~rows).sum()
    assert len(both.overall) == 1


def test_the_easy_side_finds_where_the_model_is_better() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, D))
    X[CORNER] = 0.3 * X[CORNER] + 4
    losses = np.where(CORNER, 0.05, rng.uniform(0.5, 2, N))
    labels = rng.integers(0, 2, N)
    wrong = np.where(CORNER, False, rng.random(N) < 0.5)
    evaluation = Evaluation(labels=labels, predictions=labels ^ wrong, losses=losses, representations={"x": X})
    audit = errata.audit(evaluation, methods=["spotlight"], options={"spotlight": {"side": "easy", "size": 0.12}})
    first = audit.confirmed[0]
    assert first.side == "easy"
    assert CORNER[first.members].mean() > 0.9
    assert first.confirm is not None
    assert first.confirm.gap < -0.3
    assert first.confirm.interval[0] <= first.confirm.gap <= first.confirm.interval[1] < 0
    assert first.confirm.excess[1] > 0


def test_groups_are_never_split() -> None:
    groups = np.array([f"patient {i}" for i in np.random.default_rng(0).integers(0, 120, N)])
    audit = errata.audit(planted(groups=groups))
    for name in np.unique(groups):
        assert len(set(audit.discover[groups == name])) == 1
    assert 0.4 < audit.discover.mean() < 0.6


def test_one_group_cannot_be_split() -> None:
    with pytest.raises(InputError, match="cannot be split in two"):
        errata.audit(planted(groups=np.zeros(N)))


# --- row order, seeds, bytes ---------------------------------------------------------------------------------


def by_row(audit: Audit) -> Iterator[tuple[Any, ...]]:
    """Slices as ids of their members, with their numbers."""
    ids = audit.evaluation.row_ids
    for found in audit.slices:
        yield found.id, found.method, found.found_by, found.verdict, sorted(ids[found.members].tolist()), found.confirm


def test_row_order_never_matters() -> None:
    names = np.array([f"row-{i:x}" for i in np.random.default_rng(5).permutation(N)])
    options = {"methods": ["spotlight", "gmm", "confusion"], "options": {"gmm": {"components": 4}}}
    one = errata.audit(planted(ids=names), **options)
    two = errata.audit(shuffled(planted(ids=names)), **options)
    split = [dict(zip(a.evaluation.row_ids.tolist(), a.discover.tolist(), strict=True)) for a in (one, two)]
    assert split[0] == split[1]
    assert len(one.slices) > 1
    for key in ("spotlight", "gmm", "confusion"):
        fitted = [audit.slicers[key].membership(one.evaluation) for audit in (one, two)]
        assert fitted[0].tobytes() == fitted[1].tobytes()
    for mine, theirs in zip(by_row(one), by_row(two), strict=True):
        assert mine[:5] == theirs[:5]
        if mine[5] is not None:
            assert mine[5].n == theirs[5].n
            assert mine[5].gap == pytest.approx(theirs[5].gap, abs=1e-12)


def test_a_seed_moves_the_search_and_never_the_split() -> None:
    one, two = errata.audit(planted(), seed=1), errata.audit(planted(), seed=2)
    assert np.array_equal(one.discover, two.discover)
    assert {slicer.seed for slicer in one.slicers.values()} == {1}
    again = errata.audit(planted(), seed=1)
    for mine, theirs in zip(one.slices, again.slices, strict=True):
        assert mine.weights.tobytes() == theirs.weights.tobytes()
        assert mine.to_json() == theirs.to_json()


@pytest.mark.parametrize("seed", [-1, 2**32])
def test_seeds_that_the_methods_cannot_take_are_refused(seed: int) -> None:
    with pytest.raises(InputError, match="`seed` must be between 0"):
        errata.audit(planted(), seed=seed)
    with pytest.raises(InputError, match=r"`spotlight\.seed` must be an integer between 0 and 4294967295"):
        errata.audit(planted(), methods=["spotlight"], options={"spotlight": {"seed": seed}})


# --- methods and options -------------------------------------------------------------------------------------


def test_options_of_a_preset_stand_above_those_of_the_method() -> None:
    audit = errata.audit(
        planted(),
        methods=["spotlight:as_published", "spotlight"],
        options={"spotlight": {"slices": 2, "advanced.steps": 30}, "spotlight:as_published": {"slices": 1}},
    )
    published, recommended = audit.slicers["spotlight-as_published"], audit.slicers["spotlight"]
    assert published.slices == 1
    assert published.advanced["steps"] == 30
    assert published.advanced["solver"] == "adam"
    assert (recommended.slices, recommended.advanced) == (2, {"steps": 30})


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "text for methods": ({"methods": "spotlight"}, "list of names"),
    "no methods": ({"methods": []}, "empty"),
    "twice": ({"methods": ["gmm", "gmm"]}, "twice"),
    "unknown": ({"methods": ["spotligt"]}, "did you mean `spotlight`"),
    "preset": ({"methods": ["gmm:best"]}, "unknown preset"),
    "option": ({"methods": ["spotlight"], "options": {"spotlight": {"sizes": 1}}}, "did you mean `size`"),
    "option of another": ({"methods": ["spotlight"], "options": {"gmm": {"components": 2}}}, "--method gmm"),
    "option of nobody": ({"options": {"gmmm": {"components": 2}}}, "did you mean `gmm`"),
    "option of a method that the default does not run": ({"options": {"barlow": {"slices": 2}}}, "--method barlow"),
    "type": ({"methods": ["spotlight"], "options": {"spotlight": {"size": "2%"}}}, "must be a number above 0"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_methods_and_options(name: str) -> None:
    given, words = BAD[name]
    with pytest.raises(InputError, match=words):
        errata.audit(planted(), **given)


def test_rows_that_cannot_be_audited() -> None:
    with pytest.raises(InputError, match="takes an Evaluation; got dict"):
        errata.audit({"labels": [1]})  # type: ignore[arg-type]  # that is the test
    with pytest.raises(InputError, match="at least 20 rows; got 19"):
        errata.audit(planted(19))
    with pytest.raises(MissingInput, match=r"`consensus` needs `losses`"):
        errata.audit(Evaluation(representations={"x": np.ones((30, 2))}))
    with pytest.raises(InputError, match="`alpha`"):
        Settings(alpha=2)


def test_twenty_rows_are_enough_to_say_little() -> None:
    audit = errata.audit(planted(20))
    assert len(audit.discover) == 20
    assert "may have been missed" in audit.silence


# --- training rows -------------------------------------------------------------------------------------------


def test_training_rows_are_refused() -> None:
    evaluation = planted()
    with pytest.raises(InputError, match="also in `train`"):
        errata.audit(evaluation, train=shuffled(evaluation))
    with pytest.raises(InputError, match="also in `train`"):
        errata.audit(evaluation.rows(np.arange(100)), train=evaluation)


def test_other_training_rows_are_taken() -> None:
    """The same ids are no proof: rows are numbered from zero where nobody names them."""
    audit = errata.audit(planted(), train=planted(seed=9))
    assert audit.settings["trained_on_these_rows"] == "no"
    assert errata.audit(planted()).settings["trained_on_these_rows"] == "not known"


# --- progress ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("methods", [["spotlight"], ["spotlight", "gmm", "confusion"], ["high-loss", "spotlight"]])
@pytest.mark.parametrize("crossfit", [False, True])
def test_progress_rises_to_one(methods: list[str], crossfit: bool) -> None:
    heard: list[tuple[str, float]] = []
    errata.audit(planted(400), methods=methods, crossfit=crossfit, progress=lambda *step: heard.append(step))
    shares = [share for _, share in heard]
    assert shares[0] == 0
    assert shares[-1] == 1
    assert shares == sorted(shares)
    names = {name.removesuffix("-reverse") for name, _ in heard}
    assert names == set(methods)


# --- apply ---------------------------------------------------------------------------------------------------


def test_apply_finds_the_same_group_among_new_rows() -> None:
    audit = errata.audit(planted(), methods=["spotlight"], options={"spotlight": {"size": 0.12}})
    first = audit.confirmed[0]
    new = planted(seed=77)
    bare = Evaluation(representations=new.representations)
    inside = errata.apply(audit, bare)[first.id] >= first.threshold
    assert inside.sum() > 0.6 * CORNER.sum()
    assert CORNER[inside].mean() > 0.95
    assert new.errors is not None
    assert new.errors[inside].mean() > 0.7


def test_apply_to_its_own_rows_gives_the_same_bits(four: Audit) -> None:
    again = errata.apply(four, four.evaluation)
    assert set(again) == {found.id for found in four.slices if found.column >= 0}
    for found in four.slices:
        if found.column >= 0:
            assert again[found.id].tobytes() == found.weights.tobytes()


def test_an_approximation_is_left_out_where_rows_lack_the_predictions_it_learnt_from() -> None:
    """Beside a foreign representation: the model's own contains them."""
    own = errata.audit(planted(sources={"x": Source(from_model=True)}), methods=["confusion"])
    foreign = errata.audit(planted(sources={"x": Source(from_model=False)}), methods=["confusion"])
    bare = Evaluation(representations=own.evaluation.representations)
    assert own.slices
    assert errata.apply(own, bare)
    assert foreign.slices
    assert errata.apply(foreign, bare) == {}  # within a prediction, which these rows do not have


def test_apply_refuses_other_columns() -> None:
    audit = errata.audit(planted())
    with pytest.raises(InputError, match="fitted on 4 columns; got 5"):
        errata.apply(audit, Evaluation(representations={"x": np.ones((3, 5))}))
    with pytest.raises(InputError, match="unknown representation `x`"):
        errata.apply(audit, Evaluation(representations={"y": np.ones((3, 4))}))


class Within(BaseSlicer):
    """Rows beyond a cut within one class: the smallest slice that has a scope."""

    name = "within"
    needs = frozenset({"representations", "labels"})
    reads = frozenset({"label"})
    fitted_arrays: ClassVar[tuple[str, ...]] = ()

    def _fit(self, evaluation: Evaluation, train: Evaluation | None) -> None:
        scope = {"label": 1}
        self.rules_ = ({"kind": "path", "representation": self.representation_, "scope": scope},)

    def membership(self, evaluation: Evaluation) -> Any:
        return (np.asarray(self.matrix(evaluation))[:, :1] > 2).astype(np.float64)


def test_a_slice_within_a_class_is_applied_within_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(errata.slicers.SLICERS, "within", Within)
    evaluation = planted()
    foreign = replace(evaluation, sources={"x": errata.Source(from_model=False)})
    audit = errata.audit(foreign, methods=["within"])
    first = audit.slices[0]
    assert foreign.labels is not None
    assert set(foreign.labels[first.members]) == {1}
    applied = errata.apply(audit, foreign)[first.id]
    assert applied.tobytes() == first.weights.tobytes()
    assert errata.apply(audit, Evaluation(representations=foreign.representations)) == {}


def test_an_audit_warns_about_nothing() -> None:
    """Losses of 0 and 1 and a slice that is always wrong: scipy's warning would reach the user's stderr."""
    rng = np.random.default_rng(0)
    evaluation = planted(probs=None)
    assert evaluation.labels is not None
    predictions = evaluation.labels ^ (CORNER | (rng.random(N) < 0.05))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        errata.audit(planted(probs=None, predictions=predictions))


def test_long_doubles_are_taken_or_refused() -> None:
    X = planted().representations["x"].astype(np.longdouble)  # type: ignore[union-attr]
    with contextlib.suppress(InputError):
        errata.audit(planted(representations={"x": X}))


def test_texts_beside_a_score_of_many_columns_describe_its_slices_and_caption_none() -> None:
    """The rule of `multiaccuracy` is a direction without a normal that captions could be compared with."""
    texts = errata.Captions(["a corner", "no corner"], np.eye(2, D), "x")
    audit = errata.audit(planted(), methods=["multiaccuracy"], texts=texts)
    kinds = {explanation.kind for slice_ in audit.slices for explanation in slice_.explanations}
    assert "descriptions" in kinds
    assert "captions" not in kinds


def test_several_looks_are_stricter() -> None:
    levels = [errata.audit(planted(200), settings=Settings(run=run)).settings["level"] for run in (1, 2, 3)]
    assert levels == pytest.approx([0.05, 0.025, 0.05 / 6])


def test_conductors_export_what_they_conduct() -> None:
    assert set(workflow.__all__) >= {"audit", "apply", "load", "save"}
    for name in ("audit", "apply", "load", "save"):
        assert getattr(errata, name) is getattr(workflow, name)


def test_without_a_method_the_best_that_can_read_the_evaluation_are_taken() -> None:
    full = planted()
    bare = errata.Evaluation(losses=full.losses, representations=full.representations)
    assert errata.audit(bare).settings["methods"] == ["consensus"]
    column = {"site": np.where(full.representations["x"][:, 0] > 0, "a", "b"), "one": np.ones(len(full))}
    table = errata.Evaluation(losses=full.losses, metadata=column)
    assert errata.audit(table).settings["methods"] == ["rules"]
    both = errata.Evaluation(losses=full.losses, representations=full.representations, metadata=column)
    assert errata.audit(both).settings["methods"] == ["consensus", "rules"]


@pytest.mark.parametrize("metadata", [{}, {"id": np.array([f"r{i}" for i in range(60)]), "one": np.ones(60)}])
def test_rows_with_nothing_to_search_say_what_is_missing(metadata) -> None:
    rows = Evaluation(losses=np.arange(60.0), metadata=metadata)
    with pytest.raises(InputError, match=r"neither an embedding nor metadata columns .*--metadata all"):
        errata.audit(rows)
    own = errata.audit(rows, slices={"mine": np.arange(60) < 30})  # nothing need be searched
    assert own.settings["methods"] == []


def test_an_option_of_a_method_never_replaces_the_default() -> None:
    method = workflow.DEFAULT_METHODS[0]
    rows = planted()
    audit = errata.audit(rows, options={method: {"slices": 3}})
    assert audit.settings["methods"] == list(workflow.default_methods(rows))
    assert audit.slicers[method].slices == 3


def test_rows_with_nothing_to_approximate_by_are_audited_all_the_same():
    """No representation, and one class predicted: what an approximation would be predicted from does not vary."""
    rows = Evaluation(labels=np.arange(60) % 2, predictions=np.zeros(60, int))
    found = errata.audit(rows, methods=["confusion"])
    assert not found.slices
