"""Metrics by group: the numbers of scikit-learn, group by group; intervals that hold."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sklearn import metrics as peer

from errata.core import Evaluation, InputError
from errata.core.metrics import MEANINGS
from errata.core.metrics_by import MISSING, GroupMetrics, by

CLASSES = ("no", "yes")


def binary(n: int = 400, seed: int = 0, **changes: Any) -> Evaluation:
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 2, n)
    positive = np.clip(0.5 + 0.3 * (2 * labels - 1) * rng.normal(0.6, 1, n), 0.01, 0.99)
    arguments: dict[str, Any] = {
        "labels": labels,
        "probs": np.stack([1 - positive, positive], axis=1),
        "class_names": CLASSES,
        "metadata": {"site": rng.choice(["a", "b", ""], n), "age": rng.normal(40, 9, n), "ward": rng.integers(0, 3, n)},
    }
    return Evaluation(**{**arguments, **changes})


def targets(n: int = 300, seed: int = 0, **changes: Any) -> Evaluation:
    rng = np.random.default_rng(seed)
    labels = rng.normal(size=n)
    arguments: dict[str, Any] = {
        "labels": labels,
        "predictions": labels + rng.normal(0.2, 1, n),
        "metadata": {"site": rng.choice(["a", "b"], n)},
    }
    return Evaluation(**{**arguments, **changes})


def value(result: GroupMetrics, metric: str, *group: str) -> float:
    return result.by_group[metric][result.groups.index(group)].value


def mean_above_zero(values: Any) -> float:
    return sum(max(float(value), 0.0) for value in values) / len(values)


PEERS: dict[str, Callable[[Evaluation], float]] = {
    "error": lambda rows: peer.zero_one_loss(rows.labels, rows.predictions),
    "precision": lambda rows: peer.precision_score(rows.labels, rows.predictions),
    "recall": lambda rows: peer.recall_score(rows.labels, rows.predictions),
    "fnr": lambda rows: 1 - peer.recall_score(rows.labels, rows.predictions),
    "fpr": lambda rows: 1 - peer.recall_score(rows.labels, rows.predictions, pos_label=0),
    "selection_rate": lambda rows: float(np.mean(rows.predictions)),
    "log_loss": lambda rows: peer.log_loss(rows.labels, rows.probs),
    "mae": lambda rows: peer.mean_absolute_error(rows.labels, rows.predictions),
    "rmse": lambda rows: math.sqrt(peer.mean_squared_error(rows.labels, rows.predictions)),
    "over_prediction": lambda rows: mean_above_zero(rows.predictions - rows.labels),
    "under_prediction": lambda rows: mean_above_zero(rows.labels - rows.predictions),
    "loss": lambda rows: float(np.mean(rows.losses)),
}


def test_there_is_a_peer_of_every_metric() -> None:
    assert set(PEERS) == set(MEANINGS)


@pytest.mark.parametrize("rows", [binary(), targets(), Evaluation(losses=np.arange(9.0))], ids=lambda rows: rows.task)
def test_metrics_are_those_of_scikit_learn(rows: Evaluation) -> None:
    sites = rows.metadata.get("site", np.array(list("aaabbbbba")))
    result = by(rows, {"site": sites})
    for name in result.by_group:
        assert result.overall[name].value == pytest.approx(PEERS[name](rows), abs=1e-12)
        for site in set(sites.tolist()):
            mask = sites == site
            assert value(result, name, site or MISSING) == pytest.approx(PEERS[name](rows.rows(mask)), abs=1e-12)
    assert sum(result.rows) == len(rows)


def test_all_metrics_of_a_task_are_measured() -> None:
    assert set(by(binary(), "site").by_group) | set(by(targets(), "site").by_group) | {"loss"} == set(MEANINGS)
    assert list(by(binary(), "site", metrics=["recall", "error"]).by_group) == ["recall", "error"]


def test_differences_and_ratios_by_hand() -> None:
    labels = np.zeros(300, dtype=int)
    wrong = np.r_[np.arange(100) < 10, np.arange(100) < 20, np.arange(100) < 60]
    rows = Evaluation(labels=labels, predictions=wrong.astype(int), metadata={"g": np.repeat(["a", "b", "c"], 100)})
    result = by(rows, "g", metrics=["error"])
    assert result.difference() == pytest.approx({"error": 0.5})
    assert result.ratio() == pytest.approx({"error": 1 / 6})
    assert result.difference("to_overall") == pytest.approx({"error": 0.3})
    assert result.ratio("to_overall") == pytest.approx({"error": 1 / 3})  # 10% of 30%; 60% is twice it
    with pytest.raises(InputError, match="unknown method `to_all`"):
        result.difference("to_all")  # type: ignore[arg-type]


def test_one_class_against_the_others() -> None:
    rng = np.random.default_rng(1)
    labels = rng.integers(0, 3, 500)
    predictions = np.where(rng.random(500) < 0.3, rng.integers(0, 3, 500), labels)
    rows = Evaluation(labels=labels, predictions=predictions, class_names=("cat", "dog", "cow"))
    assert list(by(rows, "label").by_group) == ["error"]
    result = by(rows, {"all": np.zeros(500)}, positive="cow")
    assert result.overall["precision"].value == peer.precision_score(labels == 2, predictions == 2)
    right = peer.recall_score(labels == 2, predictions == 2, pos_label=0)
    assert result.overall["fpr"].value == pytest.approx(1 - right)
    assert by(rows, "label", positive=2).overall == result.overall
    assert by(rows, "label").groups == (("cat",), ("cow",), ("dog",))
    with pytest.raises(InputError, match="unknown class `cwo`; did you mean `cow`"):
        by(rows, "label", positive="cwo")
    with pytest.raises(InputError, match="these rows have no `fnr`; they have error; name the class as `positive`"):
        by(rows, "label", metrics=["fnr"])


def test_one_label_of_several() -> None:
    rng = np.random.default_rng(2)
    labels = rng.integers(0, 2, (200, 2))
    rows = Evaluation(labels=labels, probs=rng.random((200, 2)), class_names=("hat", "coat"))
    result = by(rows, {"g": np.arange(200) % 2}, positive="coat")
    assert result.overall["recall"].value == peer.recall_score(labels[:, 1], rows.predictions[:, 1])
    with pytest.raises(InputError, match="name one as `positive`: hat, coat"):
        by(rows, {"g": np.arange(200) % 2})


def test_groups_of_every_kind() -> None:
    rows = binary()
    age = rows.metadata["age"]
    assert by(rows, "site").groups == (("a",), ("b",), (MISSING,))
    crossed = by(rows, ["site", "ward"])
    assert crossed.columns == ("site", "ward")
    assert len(crossed) == 9
    both = rows.rows((rows.metadata["site"] == "b") & (rows.metadata["ward"] == 2))
    assert value(crossed, "error", "b", "2") == pytest.approx(both.errors.mean())
    masked = by(rows, age > 50)
    assert masked.groups == (("false",), ("true",))
    assert value(masked, "error", "true") == rows.errors[age > 50].mean()

    def old(rows: Evaluation) -> Any:
        return rows.metadata["age"] > 50

    assert by(rows, old).columns == ("old",)
    assert by(rows, old).by_group == masked.by_group
    assert by(rows, lambda rows: rows.metadata["ward"]).groups == (("0",), ("1",), ("2",))


def test_numbers_are_cut_into_quarters() -> None:
    result = by(binary(), "age")
    assert result.rows == (100, 100, 100, 100)
    lows = [float(group[0].split(" to ")[0]) for group in result.groups]
    assert lows == sorted(lows)
    few = by(binary(), "ward")
    assert few.groups == (("0",), ("1",), ("2",))
    tied = np.r_[np.zeros(300), np.arange(100) * 1.5]  # most rows have one value
    assert sum(by(binary(), {"tied": tied}).rows) == 400


def test_numbers_sort_as_numbers() -> None:
    assert [group[0] for group in by(binary(), {"k": np.arange(400) % 12}).groups] == [str(k) for k in range(12)]


def test_what_is_not_there_is_not_measured() -> None:
    rows = Evaluation(labels=[0, 0, 1, 1], predictions=[0, 0, 1, 0], metadata={"g": list("aabb")})
    result = by(rows, "g")
    assert result.by_group["recall"][0].n == 0
    assert math.isnan(result.by_group["recall"][0].value)
    assert result.difference()["recall"] == 0  # of one group
    assert math.isnan(result.ratio()["fnr"]) is False
    assert "none" in repr(result)


@pytest.mark.parametrize(
    ("columns", "options", "message"),
    [
        ("seit", {}, "unknown column `seit`; did you mean `site`"),
        ([], {}, "one value a row"),
        ({}, {}, "at least one column"),
        (np.zeros(3), {}, "`group` must have one value a row, 400; got shape"),
        ("site", {"metrics": ["eror"]}, "unknown metric `eror`; did you mean `error`"),
        ("site", {"metrics": ["mae"]}, "these rows have no `mae`"),
        ("site", {"level": 95}, "`level` must be between 0 and 1"),
        ({"id": [f"row {i}" for i in range(400)] }, {"positive": 2}, "unknown class `2`"),
    ],
)  # fmt: skip
def test_a_mistake_is_one_sentence(columns: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        by(binary(), columns, **options)
    with pytest.raises(InputError, match="1,001 groups"):
        by(Evaluation(losses=np.zeros(1001)), {"id": [f"row {i}" for i in range(1001)]})


def test_row_order_does_not_matter() -> None:
    rows = binary()
    shuffled = rows.rows(np.random.default_rng(5).permutation(400))
    first = by(rows, ["site", "age"])
    second = by(shuffled, ["site", "age"])
    assert (first.groups, first.rows) == (second.groups, second.rows)
    assert first.overall["log_loss"].value == pytest.approx(second.overall["log_loss"].value)


def test_a_repr_is_a_table() -> None:
    lines = repr(by(binary(), "site", metrics=["error"])).splitlines()
    assert [line.split()[0] for line in lines] == ["site", "a", "b", "missing", "all"]
    many = repr(by(binary(), {"k": [f"k{i % 90}" for i in range(400)]}))
    assert len(many.splitlines()) == 23
    assert "… and 70 more" in many


def test_a_frame_has_every_estimate() -> None:
    result = by(binary(), ["site", "ward"])
    frame = result.to_frame()
    assert len(frame) == (len(result) + 1) * len(result.by_group)
    place = result.groups.index(("b", "2"))
    assert frame.loc[("b", "2", "recall"), "value"] == result.by_group["recall"][place].value
    assert frame.loc[("all", "", "error"), "low"] == result.overall["error"].low


# --- intervals -------------------------------------------------------------------------------------------------


def covered(rows: Callable[[int], Evaluation], metric: str, truth: float, times: int = 400) -> float:
    hits = 0
    for seed in range(times):
        one = by(rows(seed), {"g": np.zeros(len(rows(seed)))}, metrics=[metric]).overall[metric]
        hits += one.low <= truth <= one.high
    return hits / times


def test_intervals_hold_as_often_as_they_say() -> None:
    def errors(seed: int) -> Evaluation:
        wrong = np.random.default_rng(seed).random(60) < 0.2
        return Evaluation(labels=np.zeros(60, dtype=int), predictions=wrong.astype(int))

    def normal(seed: int) -> Evaluation:
        labels = np.random.default_rng(seed).normal(size=40)
        return Evaluation(labels=labels, predictions=labels + np.random.default_rng(seed + 9999).normal(size=40))

    assert 0.92 <= covered(errors, "error", 0.2) <= 0.98
    assert 0.92 <= covered(normal, "mae", math.sqrt(2 / math.pi)) <= 0.98
    assert 0.91 <= covered(normal, "rmse", 1.0) <= 0.98


def test_rows_that_belong_together_count_as_fewer() -> None:
    """Forty patients of ten rows each, all wrong or all right: without them, an interval is far too short."""

    def patients(seed: int, known: bool) -> Evaluation:
        rng = np.random.default_rng(seed)
        wrong = np.repeat(rng.random(40) < 0.3, 10)
        noise = np.repeat(rng.normal(size=40), 10)
        groups = np.repeat(np.arange(40), 10) if known else None
        return Evaluation(
            labels=np.zeros(400, dtype=int), predictions=wrong.astype(int), losses=3 + noise, groups=groups
        )

    assert covered(lambda seed: patients(seed, True), "error", 0.3, 300) >= 0.92
    assert covered(lambda seed: patients(seed, False), "error", 0.3, 300) < 0.6

    def losses(seed: int) -> Evaluation:
        rows = patients(seed, True)
        return Evaluation(losses=rows.losses, groups=rows.groups)

    assert 0.91 <= covered(losses, "loss", 3.0, 300) <= 0.98
