"""The plan `labels`: opponents with doubtful labels, relabelled or dropped, and what that changes on other rows."""

from dataclasses import replace

import numpy as np
import pytest

import errata
from errata.core import InputError
from errata.explain.training_opponents import Opponents
from errata.fix.labels import plan_labels as plan_embedded
from errata.store import load_plan, save_plan
from support.command import run


class World:
    """Group 0 of four is mislabelled in training nearly half of the time; a linear model learns what it is shown."""

    def __init__(self, seed=0, n=1500):
        self.rng = np.random.default_rng(seed)
        self.X, self.truth, self.said = self.draw(n, 0.45)
        self.model = self.learn(self.said)
        self.train = self.rows(self.X, self.said, 100_000)
        everything = self.rows(*self.draw(2 * n, 0.0)[:2], 0)
        self.audited, self.held = errata.hold_out(everything, share=0.5)
        self.audit = errata.audit(self.audited, train=self.train, methods=["infembed"])

    def draw(self, n, rate):
        group = self.rng.integers(0, 4, n)
        truth = group % 2
        said = np.where((group == 0) & (self.rng.random(n) < rate), 1 - truth, truth)
        return 2.5 * np.eye(4, 5)[group] + self.rng.normal(size=(n, 5)), truth, said

    def learn(self, labels, weights=None):
        from sklearn.linear_model import LogisticRegression

        return LogisticRegression(max_iter=1000).fit(self.X, labels, sample_weight=weights)

    def rows(self, X, labels, first):
        P = self.model.predict_proba(X)
        return errata.Evaluation(labels=labels, probs=P, representations={"x": X}, ids=np.arange(len(X)) + first)

    def changed(self, plan):
        """Change of the error rate on held-out rows when the model learns again by a plan."""
        after = self.learn(plan.labels_of(self.train), plan.weights_of(self.train))
        predictions = after.predict(np.asarray(self.held.representations["x"]))
        return float((predictions != self.held.labels).mean() - self.held.errors.mean())


@pytest.fixture(scope="module")
def world():
    return World()


@pytest.mark.parametrize("action", ["relabel", "drop"])
def test_opponents_are_the_mislabelled_rows_and_the_model_is_better_without_them(world, action):
    plan = errata.plan_labels(world.audit, world.train, 100, action=action)
    rows = plan.rows_of(world.train)
    wrong = world.said != world.truth
    assert 20 < len(rows) <= 100
    assert wrong[rows].mean() > 0.7 > 3 * wrong.mean()
    if action == "drop":
        assert plan.weights_of(world.train)[rows].max() == 0
        np.testing.assert_array_equal(plan.labels_of(world.train), world.said)
    else:
        np.testing.assert_array_equal(plan.labels_of(world.train)[rows], 1 - world.said[rows])
        assert (plan.labels_of(world.train) != world.said).sum() == len(rows)
    assert world.changed(plan) < -0.02
    chance = errata.plan_labels(world.audit, world.train, 100, action=action, by="random")
    assert world.changed(plan) < world.changed(chance)


def test_influence_is_made_again_as_the_audit_made_it(world):
    from errata.workflow.planning import with_influence

    audit, train = with_influence(world.audit, world.train)
    made = audit.evaluation.representations["influence"]
    np.testing.assert_allclose(made, world.audit.evaluation.representations["influence"], atol=1e-4)
    assert train.representations["influence"].shape[1] == made.shape[1]


def test_the_curvature_is_of_as_many_training_rows_as_in_the_audit(world):
    from errata.workflow.planning import with_influence

    made_with = {"rows": 60, "damping": 0.01}
    audit = errata.audit(world.audited, train=world.train, methods=["infembed"], influence=made_with)
    again, _ = with_influence(audit, world.train)
    expected = audit.evaluation.representations["influence"]
    np.testing.assert_allclose(again.evaluation.representations["influence"], expected, atol=1e-4)


def test_the_basis_is_that_of_the_audit(world):
    from errata.workflow.planning import with_influence

    audit = errata.audit(world.audited, train=world.train, methods=["infembed"], influence={"basis": 2**33})
    assert audit.settings["influence"]["basis"] == 2**33
    audit.settings["influence"]["basis"] = 1
    with pytest.raises(InputError, match="`basis` allows 1 byte"):
        with_influence(audit, world.train)


def test_damping_of_an_audit_before_version_0_7_1_does_what_it_did(world):
    """It counted double for a file of two classes: .01 was what .02 is now."""
    from errata.workflow.planning import with_influence

    made_with = {"damping": 0.02, "rows": 60}
    audit = errata.audit(world.audited, train=world.train, methods=["infembed"], influence=made_with)
    older = {**audit.settings["influence"], "damping": 0.01}
    del older["basis"]
    again, _ = with_influence(replace(audit, settings={**audit.settings, "influence": older}), world.train)
    expected = audit.evaluation.representations["influence"]
    np.testing.assert_allclose(again.evaluation.representations["influence"], expected, atol=1e-4)


def test_a_plan_takes_all_its_training_rows_where_the_audit_had_none(world):
    """The audit's curvature is then of its search rows: how many there were says nothing of training rows."""
    from errata.workflow.planning import with_influence

    few = world.audited.rows(np.arange(len(world.audited)) < 600)
    audit = errata.audit(few, methods=["infembed"])
    assert audit.settings["influence"]["rows"] < len(world.train)
    again, _ = with_influence(audit, world.train)
    whole, _ = errata.inputs.add_influence(world.audited, world.train)
    expected = whole.representations["influence"][:600]
    np.testing.assert_allclose(again.evaluation.representations["influence"], expected, atol=1e-4)


def test_a_plan_of_labels_survives_its_file(world, tmp_path):
    plan = errata.plan_labels(world.audit, world.train, 30)
    save_plan(plan, tmp_path / "plan.parquet")
    again = load_plan(tmp_path / "plan.parquet")
    assert again.kind == "labels"
    np.testing.assert_array_equal(again.labels_of(world.train), plan.labels_of(world.train))
    assert again.facts == {"action": "relabel", "by": "opponents"}


def test_the_command_writes_the_same_plan(world, tmp_path):
    folder = errata.save(world.audit, tmp_path / "audit")
    train = world.train
    np.savez(tmp_path / "train.npz", **{"embedding:x": train.representations["x"]}, labels=train.labels,
             probs=train.probs, ids=train.ids)  # fmt: skip
    out = tmp_path / "plan.parquet"
    done = run("plan", "labels", folder, tmp_path / "train.npz", "-o", out, "--count", 30, "--action", "drop")
    assert done.code == 0, done.err
    assert "leave out 30 of 1,500 training rows that oppose" in done.out
    plan = errata.plan_labels(world.audit, train, 30, action="drop")
    assert set(load_plan(out).ids.tolist()) == set(plan.ids.tolist())


def test_what_cannot_be_planned_is_said(world):
    for given, words in (
        ({"count": 0}, "at least 1"),
        ({"action": "burn"}, "unknown action"),
        ({"by": "taste"}, "unknown order"),
    ):
        with pytest.raises(InputError, match=words):
            plan_embedded(world.audit, world.train, **given)
    with pytest.raises(InputError, match="opponents need the representation"):
        plan_embedded(world.audit, world.train)
    with pytest.raises(InputError, match="rows of the audit are also training rows"):
        errata.plan_labels(world.audit, world.audited, by="loss")


def test_an_audit_with_more_training_rows_than_rows_is_saved_opened_and_planned_from(world, tmp_path):
    """A shown training row has a number among the training rows, of which there may be more than audited ones."""
    few = world.audited.rows(np.arange(len(world.audited)) < 600)
    audit = errata.audit(few, train=world.train, methods=["infembed"], map=False, self_test=False)
    shown = [row.row for slice_ in audit.slices for row in slice_.explanation(Opponents).opponents]
    assert max(shown) >= len(few)
    errata.save(audit, tmp_path / "audit")
    again = errata.load(tmp_path / "audit")
    ids = [slice_.id for slice_ in again.slices]
    plan = errata.plan_labels(again, world.train, 100, slices=ids)
    assert plan.ids.tolist() == errata.plan_labels(audit, world.train, 100, slices=ids).ids.tolist()


def test_opponents_of_a_class_audited_by_its_false_negatives_are_found_among_all_training_rows():
    world = World(seed=3)
    foreign = replace(world.audited, sources={"x": errata.Source(from_model=False)})  # else the outcome is known there
    audit = errata.audit(
        foreign, train=world.train, methods=["gmm"], metric="fnr", positive=0, map=False, self_test=False
    )
    assert audit.slices
    plan = errata.plan_labels(audit, world.train, 50, slices=[slice_.id for slice_ in audit.slices])
    rows = plan.rows_of(world.train)
    wrong = world.said != world.truth
    assert wrong[rows].mean() > 0.7 > 3 * wrong.mean()
    np.testing.assert_array_equal(plan.labels_of(world.train)[rows], 1 - world.said[rows])
