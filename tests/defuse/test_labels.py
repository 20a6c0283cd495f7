"""What people say of samples, counted by hand; and samples of regions by their formula."""

from __future__ import annotations

import json

import numpy as np
import pytest

from errata.core import InputError
from errata.defuse.labels import NONE, Judged, MajorityAgreement, Vote, judge, majority, majority_agreement, told_name
from errata.defuse.regions import Regions


def votes(table: dict[int, list[int]], region: str = "r1") -> list[Vote]:
    """Of each sample what the first, the second, ... person says."""
    return [Vote(region, s, f"p{j}", label) for s, said in table.items() for j, label in enumerate(said)]


def one(table: dict[int, list[int]], predictions: list[int], rho: float = 0.5) -> Judged:
    return judge(["r1"], votes(table), np.array([predictions]), rho)[0]


@pytest.mark.parametrize(
    ("labels", "expected"),
    [([], None), ([3], 3), ([1, 2], None), ([1, 2, 2], 2), ([1, 1, 2, 2, 0], None), ([NONE, NONE, 4], NONE)],
)
def test_the_most_is_said_more_often_than_any_other(labels, expected):
    assert majority(labels) == expected


def test_a_region_by_hand():
    """Five people; the classifier says 7 of all.

    Samples 0 and 1 are a 1, by 5 and 3 of 5; 2 a 7, by 4; 3 is none of the above, by 3; 4 is a tie of 2 to 2.
    """
    table = {0: [1] * 5, 1: [1, 1, 1, 7, NONE], 2: [7, 7, 7, 7, 1], 3: [NONE] * 3 + [1, 1], 4: [1, 1, 7, 7, NONE]}
    found = one(table, [7] * 5)
    assert (found.verdict, found.label) == ("misclassified", 1)
    assert (found.samples, found.labelled, found.wrong, found.people) == (5, 3, 2, 5)
    assert found.share == pytest.approx(2 / 3)
    assert found.agreement == pytest.approx((1.0, 0.6, 0.8, 0.6, 0.4))
    # Wilson of 2 in 3: centre (2/3 + 3.8415/6) / (1 + 3.8415/3) = .57306, half of it .36545.
    assert found.interval == pytest.approx((0.20765, 0.93851), abs=5e-5)


@pytest.mark.parametrize(
    ("wrong", "rho", "verdict"),
    [
        (2, 0.5, "classified well"),  # exactly rho is not more than rho
        (3, 0.5, "misclassified"),
        (3, 0.75, "classified well"),
        (4, 0.75, "misclassified"),
        (0, 0.0, "classified well"),
        (1, 0.0, "misclassified"),
    ],
)
def test_misclassified_is_more_than_rho(wrong, rho, verdict):
    found = one({s: [1] for s in range(4)}, [0] * wrong + [1] * (4 - wrong), rho)
    assert (found.verdict, found.wrong, found.labelled) == (verdict, wrong, 4)


def test_one_person_is_a_majority():
    found = one({0: [2], 1: [2], 2: [0]}, [0, 0, 0])
    assert (found.verdict, found.label, found.wrong, found.people) == ("misclassified", 2, 2, 1)
    assert found.agreement == ()  # with nobody


@pytest.mark.parametrize(
    ("table", "labelled", "share"),
    [
        ({0: [NONE], 1: [NONE]}, 0, None),  # all are blots
        ({0: [NONE], 1: [NONE], 2: [1]}, 1, None),  # most are
        ({0: [1], 1: [2]}, 2, None),  # two classes, as often
        ({0: [1, 2], 1: [2, 1]}, 0, None),  # nobody agrees on any
    ],
)
def test_what_most_would_not_name_has_no_label_and_is_not_misclassified(table, labelled, share):
    found = one(table, [0, 0, 0])
    assert (found.verdict, found.label, found.labelled, found.share) == ("no common label", None, labelled, share)


def test_samples_without_a_class_count_neither_for_nor_against():
    found = one({0: [1], 1: [1], 2: [NONE]}, [0, 1, 0], 0.4)
    assert (found.wrong, found.labelled, found.verdict) == (1, 2, "misclassified")


def test_regions_are_judged_apart_and_one_without_a_vote_waits():
    said = votes({0: [1]}, "r3") + votes({1: [0]}, "r1")
    first, second, third = judge(["r1", "r2", "r3"], said, np.array([[1, 0], [0, 0], [0, 0]]))
    assert (first.id, first.verdict, first.samples) == ("r1", "classified well", 1)
    assert (second.verdict, second.label, second.people) == ("not labelled", None, 0)
    assert (second.samples, second.agreement, second.interval) == (0, (), (0.0, 1.0))
    assert third.verdict == "misclassified"


def test_the_last_word_of_a_person_counts():
    said = [Vote("r1", 0, "ann", 0), Vote("r1", 0, "ben", 1), Vote("r1", 0, "ann", 1)]
    found = judge(["r1"], said, np.array([[0]]))[0]
    assert (found.label, found.people, found.agreement) == (1, 2, (1.0,))


@pytest.mark.parametrize(
    ("vote", "words"),
    [
        (Vote("r2", 0, "ann", 0), "a vote of `ann` is on sample 0 of region `r2`; there are 1 regions with 3 samples"),
        (Vote("r1", 3, "ann", 0), "on sample 3 of region `r1`"),
        (Vote("r1", -1, "ann", 0), "on sample -1 of region `r1`"),
    ],
)
def test_a_vote_on_what_was_not_shown_is_refused(vote, words):
    with pytest.raises(InputError, match=words):
        judge(["r1"], [vote], np.zeros((1, 3), np.int64))


def test_what_was_judged_survives_json():
    for found in (one({0: [1, 2, 1], 1: [NONE]}, [0, 0]), one({}, [0])):
        assert Judged.from_json(json.loads(json.dumps(found.to_json()))) == found


# --- agreement -------------------------------------------------------------------------------------------------


def test_agreement_by_hand():
    """Shares 1, 3/5 of a misclassified region; 4/5, 4/5, 2/5 of another; of one person nothing."""
    shown = np.array([[0, 0, 0]] * 3)
    said = votes({0: [1] * 5, 1: [1, 1, 1, 0, 2]}, "r1")
    said += votes({0: [0] * 4 + [1], 1: [0] * 4 + [2], 2: [0, 0, 1, 1, 2]}, "r2")
    said += votes({0: [1], 1: [1]}, "r3")
    found = majority_agreement(judge(["r1", "r2", "r3"], said, shown))
    # sd of (1, .6) is .4 / sqrt 2; of (.8, .8, .4) .4 / sqrt 3; over the root of 2, of 3.
    assert found["misclassified"] == MajorityAgreement(2, pytest.approx(0.8), pytest.approx(0.2))
    assert found["others"] == MajorityAgreement(3, pytest.approx(2 / 3), pytest.approx(0.4 / 3))
    squares = (1 - 0.72) ** 2 + (0.6 - 0.72) ** 2 + 2 * (0.8 - 0.72) ** 2 + (0.4 - 0.72) ** 2
    assert found["all"] == MajorityAgreement(5, pytest.approx(0.72), pytest.approx((squares / 4 / 5) ** 0.5))


def test_agreement_of_little_is_not_measured():
    assert majority_agreement([]) == {
        name: MajorityAgreement(0, None, None) for name in ("misclassified", "others", "all")
    }
    found = majority_agreement([one({0: [1, 1]}, [0])])
    assert found["misclassified"] == MajorityAgreement(1, 1.0, None)


# --- samples of regions ----------------------------------------------------------------------------------------


def regions() -> Regions:
    root = np.array([[2.0, 0, 0], [1, 0.5, 0], [-1, 0.2, 0.1]])
    return Regions(
        means=np.array([[1.0, -3, 0], [0, 0, 9]]), covariances=np.stack([root @ root.T, np.eye(3)]),
        weights=np.array([0.7, 0.2]), sources=np.array([[5, 0], [1, 2]]), predictions=np.array([[0, 5], [3, 0]]),
    )  # fmt: skip


@pytest.mark.parametrize("tau", [0.05, 1.0])
def test_samples_have_the_mean_and_tau_times_the_covariance(tau):
    """Of 100,000 draws, within five standard errors of every mean and covariance."""
    given, n = regions(), 100_000
    drawn = given.sample(0, n, "tune", tau=tau).astype(np.float64)
    wanted = tau * given.covariances[0]
    variance = np.diag(wanted)
    assert (np.abs(drawn.mean(axis=0) - given.means[0]) < 5 * np.sqrt(variance / n)).all()
    error = np.sqrt((np.outer(variance, variance) + wanted**2) / n)
    assert (np.abs(np.cov(drawn.T) - wanted) < 5 * error).all()


def test_every_use_region_and_seed_has_its_own_chance_and_repeats_it():
    given = regions()
    plain = replace_second_by_first(given)  # so that only chance can tell the regions apart
    kept = {}
    for region in (0, 1):
        for use in ("show", "tune", "test"):
            for seed in (0, 1):
                drawn = plain.sample(region, 4, use, tau=0.5, seed=seed)
                assert drawn.tobytes() == plain.sample(region, 4, use, tau=0.5, seed=seed).tobytes()
                kept[drawn.tobytes()] = drawn
    assert len(kept) == 12
    assert len(np.unique(np.concatenate(list(kept.values())), axis=0)) == 48  # no sample is seen twice
    np.testing.assert_array_equal(given.sample(0, 9, "show", tau=0.5)[:4], given.sample(0, 4, "show", tau=0.5))


def replace_second_by_first(given: Regions) -> Regions:
    twice = [0, 0]
    return Regions(given.means[twice], given.covariances[twice], given.weights, given.sources, given.predictions)


def test_samples_of_several_regions_follow_each_other():
    given = regions()
    drawn = given.samples(np.array([1, 0]), 3, "test", tau=0.1, seed=2)
    assert drawn.dtype == np.float32
    np.testing.assert_array_equal(drawn[:3], given.sample(1, 3, "test", tau=0.1, seed=2))
    np.testing.assert_array_equal(drawn[3:], given.sample(0, 3, "test", tau=0.1, seed=2))


def test_regions_are_kept_as_they_are():
    given = regions()
    again = Regions.from_state(given.to_state())
    for name in ("means", "covariances", "weights", "sources", "predictions"):
        np.testing.assert_array_equal(getattr(again, name), getattr(given, name))
    assert again.sample(0, 5, "show", tau=1).tobytes() == given.sample(0, 5, "show", tau=1).tobytes()


@pytest.mark.parametrize(
    ("count", "use", "tau", "words"),
    [
        (1, "shown", 1.0, "`use` must be one of show, tune, test; got 'shown'"),
        (1, "show", 0.0, "`tau` must be above 0 and `count` not negative; got 0.0 and 1"),
        (-1, "show", 1.0, "got 1.0 and -1"),
    ],
)
def test_samples_that_cannot_be_are_refused(count, use, tau, words):
    with pytest.raises(InputError, match=words):
        regions().sample(0, count, use, tau=tau)


def test_a_quorum_of_people_must_label_a_sample():
    """As the paper has five: with fewer a sample is not labelled, unless somebody has said the last word."""
    said = [Vote("r1", 0, person, 1) for person in "abc"] + [Vote("r1", 1, "a", 1), Vote("r1", 2, "z", 1, final=True)]
    shown = np.array([[0, 0, 0]])
    assert [judge(["r1"], said, shown, quorum=q)[0].samples for q in (1, 2, 3, 4)] == [3, 2, 2, 1]
    assert judge(["r1"], said[:4], shown, quorum=4)[0].verdict == "not labelled"


def test_answers_by_too_few_people_wait():
    said = [Vote("r1", 0, person, 1) for person in "abc"] + [Vote("r1", 1, "a", 1), Vote("r1", 2, "z", 1, final=True)]
    shown = np.array([[0, 0, 0, 0]])
    assert [judge(["r1"], said, shown, quorum=q)[0].waiting for q in (1, 2, 3, 4)] == [0, 1, 1, 2]
    fields = judge(["r1"], said, shown, quorum=4)[0].to_json()
    assert Judged.from_json(fields).waiting == 2
    del fields["waiting"]  # of an older run
    assert Judged.from_json(fields).waiting == 0


def test_a_final_word_is_not_outvoted():
    final = [Vote("r1", i, "Ann", 1, final=True) for i in (0, 1)]
    others = [Vote("r1", 0, person, 2) for person in ("Ben", "Cy")]
    for votes in (final + others, others + final):
        for quorum in (1, 5):
            judged = judge(["r1"], votes, np.array([[0, 0]]), quorum=quorum)[0]
            assert (judged.label, judged.wrong, judged.people, judged.agreement) == (1, 2, 1, ())


def test_a_region_is_named_by_what_people_said():
    names = ("cat", "dog", "fox")
    shown = np.array([[1, 1, 2], [1, 1, 1], [1, 1, 2], [0, 0, 0]])
    said = [Vote("r1", i, "a", 0) for i in range(3)] + [Vote("r2", i, "a", 1) for i in range(3)]
    said += [Vote("r3", i, "a", NONE) for i in range(3)]
    judged = judge(["r1", "r2", "r3", "r4"], said, shown)
    told = [told_name("cat taken for dog", one, shown[j], names) for j, one in enumerate(judged)]
    assert told == ["cat taken for dog", "dog, classified well", "no common label, predicted dog", "cat taken for dog"]
    other = judge(["r1"], [Vote("r1", i, "a", 2) for i in range(2)], shown[:1])[0]
    assert told_name("cat taken for dog", other, shown[0], names) == "fox taken for dog"
