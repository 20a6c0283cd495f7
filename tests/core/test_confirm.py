"""Verdicts on slices made by hand: even rows search, odd rows confirm."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from errata.core import Evaluation, InputError, gaps
from errata.core.confirm import (
    Settings,
    SliceCandidate,
    SplitTask,
    confirm_all,
    describe_sensitivity,
    select_candidates,
)
from errata.core.scope import rows_in_scope

N = 4000


def _trial(wrong, *, labels=None, probs=None, groups=None, discover=None, **settings):
    """A trial of two classes in which these rows are wrong."""
    n = len(wrong)
    labels = np.arange(n) // 2 % 2 if labels is None else labels
    predictions = np.where(wrong, (labels + 1) % 2, labels)
    evaluation = Evaluation(labels=labels, predictions=predictions, probs=probs, groups=groups)
    searched = np.arange(n) % 2 == 0 if discover is None else discover
    return SplitTask(evaluation, searched, Settings(**settings))


def _slice(inside, **changes):
    return replace(SliceCandidate("by hand", 0, np.asarray(inside, dtype=float), 0.5, {}), **changes)


def _wrong(inside, rate, rest_rate):
    """(n,) bool: in slice and rest, on both halves, exactly these shares of rows are wrong."""
    wrong = np.zeros(len(inside), dtype=bool)
    for half in (0, 1):
        for rows, share in ((inside, rate), (~inside, rest_rate)):
            mine = np.flatnonzero(rows & (np.arange(len(inside)) % 2 == half))
            wrong[mine[np.arange(len(mine)) * share % 1 + share >= 1 - 1e-9]] = True
    return wrong


def _first(rows, n=N):
    """A slice of the first rows: half of them confirm."""
    return np.arange(n) < rows


def _only(trial, candidate):
    (result,) = confirm_all([(trial, candidate)])
    return result


def test_slices_are_ordered_by_the_lower_bound_of_their_excess():
    result = _only(_trial(_wrong(_first(200), 0.5, 0.1)), _slice(_first(200)))
    assert result.verdict == "confirmed"
    wide, sure = (
        replace(result, held_out=replace(result.held_out, excess=excess)) for excess in ((50, 1, 99), (20, 10, 30))
    )
    explained = replace(wide, explained_by=("class",), held_out=replace(result.held_out, excess=(90, 80, 99)))
    unsure = replace(explained, verdict="not confirmed", explained_by=())
    assert sorted([unsure, explained, wide, sure], key=lambda r: r.priority) == [sure, wide, explained, unsure]


def test_a_slice_far_worse_is_confirmed_with_its_numbers():
    inside = _first(200)
    trial = _trial(_wrong(inside, 0.6, 0.1))
    result = _only(trial, _slice(inside))
    found, confirmed = result.search, result.held_out
    assert result.verdict == "confirmed"
    assert (confirmed.n, confirmed.errors, confirmed.rest_n) == (100, 60, 1900)
    assert confirmed.rate == confirmed.error_rate == 0.6
    assert confirmed.rest_rate == pytest.approx(0.1)
    assert confirmed.gap == pytest.approx(0.5)
    assert confirmed.interval == pytest.approx(gaps.interval(gaps.Counts(100, 60, 0.1, 1900), 0.05))
    assert confirmed.excess == pytest.approx((50, *(100 * np.array(confirmed.interval))))
    assert confirmed.p_value == pytest.approx(gaps.p_gap(gaps.Counts(100, 60, 0.1, 1900), 0.05))
    assert confirmed.q_value == confirmed.p_value
    assert (found.n, found.rate, found.gap) == (100, 0.6, pytest.approx(0.5))


def test_a_slice_like_the_rest_is_not_confirmed_where_rows_are_many():
    inside = _first(800)
    result = _only(_trial(_wrong(inside, 0.1, 0.1)), _slice(inside))
    assert result.verdict == "not confirmed"
    assert result.reason is None
    assert result.held_out.power >= 0.8
    assert result.held_out.rows_needed is None


def test_a_slice_of_few_rows_is_too_few_to_tell_and_says_what_it_would_take():
    inside = _first(20)
    result = _only(_trial(_wrong(inside, 0.1, 0.1)), _slice(inside))
    assert result.verdict == "too few to tell"
    assert result.held_out.power < 0.8
    assert result.held_out.visible_gap > 0.2
    assert result.held_out.rows_needed > 10


def test_whether_rows_are_few_does_not_depend_on_how_many_are_wrong():
    inside = _first(60)
    results = [_only(_trial(_wrong(inside, rate, 0.1)), _slice(inside)) for rate in (0.0, 0.1, 0.2)]
    assert len({r.held_out.power for r in results}) == 1
    assert len({r.verdict for r in results}) == 1


@pytest.mark.parametrize("value", [False, True])
def test_without_both_outcomes_nothing_can_be_told(value):
    inside = _first(800)
    result = _only(_trial(np.full(N, value)), _slice(inside))
    assert result.verdict == "too few to tell"
    assert result.beyond == ()


def test_errors_in_the_slice_alone_are_enough_to_decide():
    inside = _first(200)
    assert _only(_trial(_wrong(inside, 0.5, 0.0)), _slice(inside)).verdict == "confirmed"


def test_the_easy_side_is_the_hard_side_of_being_right():
    inside = _first(200)
    wrong = _wrong(inside, 0.6, 0.2)
    hard = _only(_trial(wrong, delta=0.05), _slice(inside))
    easy = _only(_trial(~wrong, delta=0.05), _slice(inside, side="easy"))
    assert (easy.verdict, easy.beyond) == (hard.verdict, hard.beyond)
    assert easy.held_out.p_value == hard.held_out.p_value
    assert easy.held_out.gap == pytest.approx(-hard.held_out.gap)
    assert easy.held_out.interval == pytest.approx((-hard.held_out.interval[1], -hard.held_out.interval[0]))
    assert easy.held_out.excess == pytest.approx(hard.held_out.excess)
    assert easy.held_out.rate == pytest.approx(0.4)
    assert easy.held_out.rest_rate == pytest.approx(0.8)
    assert easy.search.gap == pytest.approx(hard.search.gap)


def test_a_hard_slice_is_no_easy_one():
    inside = _first(200)
    assert _only(_trial(_wrong(inside, 0.6, 0.2)), _slice(inside, side="easy")).verdict == "not confirmed"


def test_a_slice_of_a_class_is_compared_within_the_class():
    """Class 1 is wrong half the time wherever one looks; class 0 never is."""
    labels = (np.arange(N) < N // 2).astype(int)
    inside = _first(300)
    wrong = (labels == 1) & (np.arange(N) // 2 % 2 == 0)
    trial = _trial(wrong, labels=labels)
    everywhere = _only(trial, _slice(inside))
    within = _only(trial, _slice(inside, rule={"scope": {"label": 1}}))
    assert everywhere.verdict == "confirmed"
    assert within.verdict == "not confirmed"
    assert within.held_out.rest_n == N // 4 - 150
    assert within.held_out.rest_rate == pytest.approx(0.5, abs=0.01)
    assert within.search.gap == pytest.approx(0, abs=0.02)


def test_a_scope_speaks_of_labels_predictions_and_metadata():
    evaluation = Evaluation(labels=[0, 1, 1, 1], predictions=[0, 0, 1, 1], metadata={"site": ["a", "a", "a", "b"]})
    assert rows_in_scope(evaluation, None).all()
    assert rows_in_scope(evaluation, {"label": 1}).tolist() == [False, True, True, True]
    assert rows_in_scope(evaluation, {"label": 1, "prediction": 1, "site": "a"}).tolist() == [False, False, True, False]
    with pytest.raises(InputError, match="colour 'red'"):
        rows_in_scope(evaluation, {"colour": "red"})


def test_the_gap_within_the_class_weighs_the_classes_as_the_slice_does():
    labels = (np.arange(N) < 1000).astype(int)
    inside = _first(400) | ((np.arange(N) >= 1000) & (np.arange(N) < 1100))  # 200 and 50 confirm rows
    wrong = np.zeros(N, dtype=bool)
    wrong[1:401:4] = True  # 100 of the slice's 200 in class 1
    wrong[401:1000:6] = True  # 100 of the other 300
    trial = _trial(wrong, labels=labels)
    result = _only(trial, _slice(inside))
    assert result.held_out.n == 250
    assert result.held_out.gap_in_class == pytest.approx(100 / 250 - 0.8 * 100 / 300)
    assert result.held_out.gap == pytest.approx(100 / 250 - 100 / 1750)


def test_without_classes_there_is_no_gap_within_one():
    losses = np.where(_wrong(_first(200), 0.6, 0.1), 1.0, 0.0)
    trial = SplitTask(Evaluation(losses=losses), np.arange(N) % 2 == 0, Settings(tolerance=0.5))
    result = _only(trial, _slice(_first(200)))
    assert result.verdict == "confirmed"
    assert result.held_out.gap_in_class is None
    assert result.held_out.error_rate is None
    assert result.held_out.rate == pytest.approx(0.6)
    assert (result.beyond, result.not_applicable) == ((), ("class", "confidence"))


def test_a_hard_class_explains_its_slices():
    labels = (np.arange(N) < 1200).astype(int)
    wrong = _wrong(labels == 1, 0.4, 0.05)
    result = _only(_trial(wrong, labels=labels), _slice(_first(400)))
    assert result.verdict == "confirmed"
    assert "class" in result.explained_by
    assert "class" not in result.beyond


def test_a_slice_worse_than_its_class_is_beyond_it():
    inside = _first(200)
    result = _only(_trial(_wrong(inside, 0.6, 0.1)), _slice(inside))
    assert "class" in result.beyond


def test_a_slice_that_is_its_class_is_explained_by_it():
    labels = (np.arange(N) < 400).astype(int)
    result = _only(_trial(_wrong(labels == 1, 0.5, 0.05), labels=labels), _slice(labels == 1))
    assert result.verdict == "confirmed"
    assert "class" in result.explained_by
    assert result.held_out.gap_in_class is None


def test_a_class_that_is_never_right_explains_its_slices():
    labels = (np.arange(N) < 1200).astype(int)
    result = _only(_trial(_wrong(labels == 1, 1.0, 0.05), labels=labels), _slice(_first(400)))
    assert result.verdict == "confirmed"
    assert result.held_out.gap_in_class == 0
    assert "class" in result.explained_by


def test_the_only_rows_that_are_right_are_not_confirmed_as_worse():
    inside = _first(200)
    assert _only(_trial(_wrong(inside, 0.5, 1.0)), _slice(inside)).verdict != "confirmed"


def _with_confidence(slice_rate, rate, doubt_rate):
    """Rows 0 to 799 are those the model is unsure of; the slice is the first 200 of them."""
    unsure = _first(800)
    wrong = _wrong(unsure, doubt_rate, rate)
    wrong[:200] = _wrong(np.ones(200, dtype=bool), slice_rate, 0)
    labels = np.arange(N) // 2 % 2
    predictions = np.where(wrong, 1 - labels, labels)
    top = np.where(unsure, 0.6, 0.95)
    probs = np.where(np.arange(2) == predictions[:, None], top[:, None], 1 - top[:, None])
    return _trial(wrong, probs=probs), _slice(_first(200))


def test_a_slice_the_model_doubts_is_explained_by_its_confidence():
    result = _only(*_with_confidence(0.4, 0.05, 0.4))
    assert result.verdict == "confirmed"
    assert "confidence" in result.explained_by
    assert "class" in result.beyond


def test_a_slice_worse_than_the_model_says_is_beyond_its_confidence():
    result = _only(*_with_confidence(0.9, 0.05, 0.2))
    assert result.beyond == ("class", "confidence")
    assert result.explained_by == ()


def test_beyond_a_reference_is_decided_at_the_level_of_the_whole_family():
    """The same slice beside many others: still confirmed, no longer beyond its confidence."""
    trial, candidate = _with_confidence(0.55, 0.05, 0.4)
    alone = _only(trial, candidate)
    among_many = confirm_all([(trial, candidate)] * 40)[0]
    assert alone.beyond == ("class", "confidence")
    assert among_many.verdict == "confirmed"
    assert "confidence" in among_many.explained_by


def test_in_an_audit_of_one_class_confidence_is_not_applicable():
    inside = _first(200)
    result = _only(_trial(_wrong(inside, 0.6, 0.1), labels=np.ones(N, dtype=int)), _slice(inside))
    assert result.verdict == "confirmed"
    assert result.not_applicable == ("confidence",)
    assert "confidence" not in result.explained_by


@pytest.mark.parametrize("s", [1, 4, 20])
def test_a_slice_is_confirmed_where_p_times_the_family_is_below_alpha(s):
    inside = _first(120)
    seen = set()
    for rate in np.linspace(0.2, 0.4, 9):
        family = [(_trial(_wrong(inside, rate, 0.1)), _slice(inside))] * s
        result = confirm_all(family)[0]
        assert (result.verdict == "confirmed") == (s * result.held_out.p_value <= 0.05)
        assert (result.held_out.interval[0] >= 0.05) == (result.verdict == "confirmed")
        seen.add(result.verdict)
    assert "confirmed" in seen
    assert len(seen) == 2


def test_q_values_are_over_the_whole_family():
    family = [
        (_trial(_wrong(_first(100), rate, 0.1)), _slice(_first(100), index=i)) for i, rate in enumerate((0.2, 0.5, 0.3))
    ]
    results = confirm_all(family)
    p_values = [r.held_out.p_value for r in results]
    assert len(set(p_values)) == 3
    assert [r.held_out.q_value for r in results] == pytest.approx(stats.false_discovery_control(p_values))
    assert [r.candidate.index for r in results] == [0, 1, 2]


def test_no_slices_have_no_results():
    assert confirm_all([]) == []


def test_every_look_at_the_same_rows_is_stricter_and_all_together_cost_twice_alpha():
    levels = [Settings(run=r).level for r in range(1, 2000)]
    assert levels[:4] == pytest.approx([0.05, 0.05 / 2, 0.05 / 6, 0.05 / 12])
    assert 0.0999 < sum(levels) <= 0.1
    inside = _first(120)
    wrong = _wrong(inside, 0.3, 0.1)
    p_value = _only(_trial(wrong), _slice(inside)).held_out.p_value
    for r in (1, 2, 5, 50):
        confirmed = _only(_trial(wrong, run=r), _slice(inside)).verdict == "confirmed"
        assert confirmed == (p_value <= Settings(run=r).level)
    assert not confirmed


def test_low_fidelity_makes_an_unconfirmed_slice_unconfirmable():
    inside = _first(800)
    trial = _trial(_wrong(inside, 0.1, 0.1))
    low, fair = (_only(trial, _slice(inside, fidelity=f)) for f in (0.29, 0.31))
    assert (low.verdict, low.reason) == ("not confirmed", "unconfirmable")
    assert (fair.verdict, fair.reason) == ("not confirmed", None)
    few = _first(20)
    result = _only(_trial(_wrong(few, 0.1, 0.1)), _slice(few, fidelity=0.1))
    assert (result.verdict, result.reason) == ("not confirmed", "unconfirmable")


def test_low_fidelity_does_not_undo_a_confirmed_slice():
    inside = _first(200)
    result = _only(_trial(_wrong(inside, 0.6, 0.1)), _slice(inside, fidelity=0.13))
    assert (result.verdict, result.reason) == ("confirmed", None)


def test_a_slice_in_groups_counts_its_groups():
    inside = _first(400)
    wrong = _wrong(inside, 0.0, 0.1)
    wrong[:120] = True  # whole patients of twenty rows, thirty percent of them
    groups = np.arange(N) // 40 + 1000 * (np.arange(N) % 2)
    alone, together = (_only(_trial(wrong, groups=g), _slice(inside)) for g in (None, groups))
    assert alone.verdict == "confirmed"
    assert together.verdict == "too few to tell"
    assert together.held_out.n == 200
    assert together.held_out.gap == pytest.approx(alone.held_out.gap)


def test_a_slice_with_nothing_outside_it_is_not_tested():
    """All but three rows of its class; of a class that is half wrong, so that it would be worse by far."""
    labels = (np.arange(N) < 400).astype(int)
    inside = _first(394)
    wrong = _first(200)
    trial = _trial(wrong, labels=labels)
    scoped = {"rule": {"scope": {"label": 1}}}
    assert select_candidates(trial, [_slice(inside, **scoped)]) == []
    assert len(select_candidates(trial, [_slice(_first(200), **scoped)])) == 1


def _everywhere(rows, settings=None):
    """Which candidates get tested, in a trial where the first 400 rows are bad and the next 100 worse."""
    wrong = _wrong(_first(400), 0.6, 0.1)
    wrong[400:500] = True
    trial = _trial(wrong)
    trial.settings = settings or trial.settings
    return [c.index for c in select_candidates(trial, [_slice(inside, index=i) for i, inside in enumerate(rows)])]


def test_slices_over_half_the_rows_are_not_tested():
    assert _everywhere([_first(N // 2 + 2)]) == []
    assert _everywhere([_first(N // 2)]) == [0]


def test_slices_that_one_half_has_no_row_of_are_not_tested():
    even = np.arange(N) % 2 == 0
    assert _everywhere([_first(400) & even, _first(400) & ~even, np.zeros(N), _first(300)]) == [3]


def test_slices_no_worse_than_the_margin_while_searching_are_not_tested():
    clean = (np.arange(N) >= 1000) & (np.arange(N) < 1400)
    assert _everywhere([clean, _first(400)]) == [1]
    assert _everywhere([clean]) == []
    assert _everywhere([]) == []


def test_of_slices_with_mostly_the_same_rows_the_one_with_more_excess_is_tested():
    assert _everywhere([_first(380), _first(400), _first(100)]) == [1, 2]


def test_the_worst_slices_come_first_and_at_most_as_many_of_a_method_as_are_set_are_tested():
    parts = [(np.arange(N) >= 50 * i) & (np.arange(N) < 50 * i + 50) for i in range(9)]
    assert _everywhere(parts)[0] == 8
    assert len(_everywhere(parts)) == 9
    assert _everywhere(parts, Settings(most=5)) == _everywhere(parts)[:5]


def test_easy_slices_are_chosen_by_how_seldom_they_are_wrong():
    wrong = _wrong(_first(N - 400), 0.4, 0.0)
    trial = _trial(wrong)
    slices = [_slice(_first(400), side="easy"), _slice(np.arange(N) >= N - 300, side="easy", index=1)]
    assert [c.index for c in select_candidates(trial, slices)] == [1]


def test_the_margin_is_half_the_error_rate_of_discover_rows_up_to_five_points():
    searched = np.arange(N) % 2 == 0
    rare = np.arange(N) % 50 == 0
    assert _trial(rare).delta == pytest.approx(0.04 / 2)  # all of them on even, discover, rows
    assert _trial(~rare).delta == 0.05
    assert _trial(rare, delta=0.2).delta == 0.2
    assert _trial(rare & ~searched).delta == 0


def test_without_errors_an_outcome_is_a_loss_in_the_worst_tenth_of_discover_rows():
    losses = np.arange(1000.0)
    searched = np.arange(1000) < 500
    trial = SplitTask(Evaluation(losses=losses), searched, Settings())
    assert trial.outcome_name == "loss above 449.1"
    assert trial.outcome[searched].sum() == 50
    assert trial.outcome[~searched].all()
    assert SplitTask(Evaluation(losses=losses), searched, Settings(tolerance=2.5)).outcome.sum() == 997


def test_rows_without_an_outcome_cannot_be_audited():
    trial = SplitTask(Evaluation(representations={"x": np.ones((40, 2))}), np.arange(40) < 20, Settings())
    with pytest.raises(InputError, match="needs losses, or labels"):
        _ = trial.outcome


def test_mean_loss_is_shown_with_a_welch_interval():
    inside = _first(200)
    rng = np.random.default_rng(0)
    losses = rng.exponential(1 + inside)
    trial = SplitTask(Evaluation(losses=losses), np.arange(N) % 2 == 0, Settings())
    shown = _only(trial, _slice(inside)).held_out
    odd = np.arange(N) % 2 == 1
    welch = stats.ttest_ind(losses[inside & odd], losses[~inside & odd], equal_var=False).confidence_interval(0.95)
    assert shown.loss_interval == pytest.approx((welch.low, welch.high))
    assert shown.loss_gap == pytest.approx(losses[inside & odd].mean() - losses[~inside & odd].mean())


def test_the_whole_is_described_with_its_confirm_rows():
    wrong = np.arange(N) % 8 == 1
    overall = _trial(wrong).overall()
    assert (overall.n, overall.confirm_n, overall.confirm_errors) == (N, N // 2, N // 8)
    assert overall.error_rate == 1 / 8
    assert overall.confirm_rate == 1 / 4
    assert overall.confirm_interval == pytest.approx(gaps.wilson(N // 8, N // 2))
    assert overall.outcome == "error"


def test_silence_says_what_would_have_been_seen():
    trial = _trial(_wrong(_first(0), 0, 0.1))
    rows = gaps.rows_needed(0.1, 2000, 0.05, 0.05 / 15, 0.2)
    assert f"{rows} of 2,000 held-out rows and 20 points more errors" in describe_sensitivity(trial, 15)
    assert "may have been missed" in describe_sensitivity(_trial(np.arange(40) % 10 < 2), 15)
    assert "no slice can be worse" in describe_sensitivity(_trial(np.ones(40, dtype=bool)), 1)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"alpha": 0}, "`alpha`.*got 0"),
        ({"alpha": 0.5}, "`alpha`.*got 0.5"),
        ({"alpha": float("nan")}, "`alpha`.*nan"),
        ({"share": 0.7}, "`share`.*got 0.7"),
        ({"share": 0.05}, "`share`.*got 0.05"),
        ({"delta": -0.1}, "`delta`.*got -0.1"),
        ({"delta": 1.0}, "`delta`.*got 1.0"),
        ({"most": 0}, "`most`.*got 0"),
        ({"run": 0}, "`run`.*and 0"),
        ({"tolerance": float("nan")}, "`tolerance`.*nan"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings, words):
    with pytest.raises(InputError, match=words):
        Settings(**settings)


def test_the_largest_losses_are_bad_where_many_rows_share_them():
    from errata.core.confirm import high_loss

    rng = np.random.default_rng(0)
    smooth = rng.random(1000)
    assert high_loss(smooth) == np.quantile(smooth, 0.9)
    for share in (0.02, 0.3, 0.95):
        losses = (rng.random(1000) < share).astype(float)
        assert ((losses > high_loss(losses)) == (losses == 1)).all()
    assert high_loss(np.ones(10)) == 1  # nothing is worse than anything else
