"""Slice settings: counts that can be checked by hand, and a benchmark whose best and worst marks are known."""

import json

import numpy as np
import pandas as pd
import pytest
from scipy.special import betainc

from errata.bench import settings, tables
from errata.bench.settings import SettingsBenchmark, correlation, noisy, rare, run, score, split_rows, synthetic, worse
from errata.bench.tables import Table, from_frame, from_scenes
from errata.core import Array, Evaluation, InputError
from errata.slicers import SLICERS, BaseSlicer

N = 4000


def columns(n=N, seed=0):
    """A target of 40% and an attribute of 30%, independent; 2,000 groups of two rows."""
    rng = np.random.default_rng(seed)
    return (rng.random(n) < 0.4).astype(int), rng.random(n) < 0.3, np.arange(n) // 2


def table(n=N):
    """The representation shows the attributes; the target can be learnt from one column."""
    target, a, groups = columns(n)
    rng = np.random.default_rng(1)
    b = rng.random(n) < 0.5
    X = np.column_stack([target, a, b]) * 4.0 + rng.normal(size=(n, 3))
    return Table("tiny", target, {"a": a, "b": b}, X, "columns", groups=groups)


class Oracle(BaseSlicer):
    """Reads the truth where the features have it: the last columns."""

    name = "oracle"
    needs = frozenset({"representations"})

    def _fit(self, evaluation: Evaluation, train: Evaluation | None) -> None:
        self.rules_ = ()

    def membership(self, evaluation: Evaluation) -> Array:
        return np.asarray(self.matrix(evaluation), dtype=float)


class Blind(Oracle):
    """All rows alike: only chance orders them."""

    name = "blind"

    def membership(self, evaluation: Evaluation) -> Array:
        return np.full((len(evaluation), 3), 0.5)


# --- settings ---------------------------------------------------------------------------------------------------


def test_rare_has_the_counts_that_were_asked_for():
    target, a, _ = columns()
    setting = rare(target, a, share=0.05, n=2000, balance=0.4, seed=1)
    assert len(np.unique(setting.rows)) == len(setting.rows) == 2000
    assert setting.labels.sum() == 800
    assert setting.slices.shape == (2000, 1)
    assert setting.slices.sum() == 40
    assert (a[setting.rows] & (target[setting.rows] == 1) == setting.slices[:, 0]).all()
    np.testing.assert_array_equal(setting.labels, target[setting.rows])


def test_rare_with_two_slices_leaves_positives_outside_both():
    target = np.repeat([1, 0], 500)
    member = np.zeros((1000, 2), dtype=bool)
    member[:50, 0], member[50:100, 1], member[600:, 0] = True, True, True  # negatives are never members
    setting = rare(target, member, share=0.1, n=400, balance=0.5)
    assert setting.slices.sum(axis=0).tolist() == [20, 20]
    assert (setting.labels == 1).sum() == 200


def test_rare_takes_the_largest_balance_up_to_a_half():
    target, member = np.repeat([1, 0], [300, 700]), np.arange(1000) < 10
    assert rare(target, member, share=0.05, n=600).labels.sum() == 200  # ten members are 5% of 200
    assert rare(target, member, share=0.05, n=300).labels.sum() == 150


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"share": 0.5, "n": 600, "balance": 0.5}, "needs 150 positives in the slice; the table has 10"),
        ({"share": 0.05, "n": 1000, "balance": 0.1}, "needs 900 negatives; the table has 700"),
        ({"share": 1.0, "n": 10}, "`share` must be positive"),
        ({"share": 0.01, "n": 20}, "no member of a slice"),
    ],
)
def test_a_rare_setting_that_the_table_cannot_give(options, words):
    with pytest.raises(InputError, match=words):
        rare(np.repeat([1, 0], [300, 700]), np.arange(1000) < 10, **options)


@pytest.mark.parametrize("rho", [-0.3, 0.0, 0.2, 0.5, 0.8])
def test_the_correlation_is_rho_to_rounding(rho):
    target, a, _ = columns()
    setting = correlation(target, a, rho=rho, n=1000, seed=3)
    y, x = setting.labels, a[setting.rows].astype(int)
    ones = y.sum()
    assert ones == x.sum() == round(1000 * min(target.mean(), a.mean()))
    half_a_row = 0.5 * 1000 / (ones * (1000 - ones))
    assert abs(np.corrcoef(y, x)[0, 1] - rho) <= half_a_row + 1e-12
    np.testing.assert_array_equal(setting.slices[:, 0], (y == 0) & (x == 1))
    np.testing.assert_array_equal(setting.slices[:, 1], (y == 1) & (x == 0))


def test_an_impossible_correlation_is_an_error():
    target, a, _ = columns()
    with pytest.raises(InputError, match="rows of target 1 and attribute 1"):
        correlation(target, a, rho=0.9, n=3000)
    with pytest.raises(InputError, match=r"needs -\d+ rows of target 1 and attribute 1"):
        correlation(target, a, rho=-0.9, n=1000)
    with pytest.raises(InputError, match="target 0 and attribute 1; the table has 0"):
        correlation(target, (target == 1) & a, rho=0.3, n=1000)


@pytest.mark.parametrize("flip", [0.0, 0.25, 1.0])
def test_noise_turns_exactly_that_share_and_only_in_the_slice(flip):
    target, a, _ = columns()
    setting = noisy(target, a, flip=flip, n=1000, seed=5)
    turned = setting.labels != target[setting.rows]
    inside = setting.slices[:, 0]
    np.testing.assert_array_equal(inside, a[setting.rows])
    assert turned[inside].sum() == round(flip * inside.sum())
    assert not turned[~inside].any()
    if flip == 0.25:
        assert all(turned[setting.split == part].any() for part in ("train", "valid", "test"))


def test_seeds_choose_rows():
    target, a, _ = columns()
    first, again, other = (noisy(target, a, flip=0.2, n=500, seed=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first.rows, again.rows)
    np.testing.assert_array_equal(first.labels, again.labels)
    assert not np.array_equal(first.rows, other.rows)


def test_the_split_hangs_on_the_row_alone():
    rows = np.arange(20_000)
    split = split_rows(rows)
    np.testing.assert_array_equal(split_rows(rows[::7]), split[::7])
    assert split[[0, 1, 2, 21]].tolist() == ["train", "test", "train", "valid"]  # as `printf 0 | b2sum -l 64` says
    for part, share in settings.SHARES.items():
        assert (split == part).mean() == pytest.approx(share, abs=0.01)


def test_groups_stay_together():
    target, a, groups = columns()
    setting = noisy(target, a, flip=0.2, n=N, groups=groups)
    assert (setting.split[::2] == setting.split[1::2]).all()
    assert not (split_rows(setting.rows)[::2] == split_rows(setting.rows)[1::2]).all()


# --- models -----------------------------------------------------------------------------------------------------


def test_the_synthetic_model_has_the_means_and_accuracies_of_its_formula():
    labels, inside = np.tile([0, 1], 20_000), np.repeat([True, False], 20_000)
    probs = synthetic(labels, inside, seed=0)
    true = np.where(labels == 1, probs, 1 - probs)
    for part, s in ((inside, 0.4), (~inside, 0.75)):
        for label in (0, 1):
            cell = part & (labels == label)
            assert true[cell].mean() == pytest.approx(s, abs=0.015)
            assert (true[cell] > 0.5).mean() == pytest.approx(1 - betainc(s, 1 - s, 0.5), abs=0.02)
    np.testing.assert_array_equal(probs, synthetic(labels, inside, seed=0))
    assert not np.array_equal(probs, synthetic(labels, inside, seed=1))


def test_only_worse_slices_are_kept():
    """Right inside: 50%, 100% and 88% of 200; outside 90% of 1,000: worse, better, and too near to tell."""
    slices = np.zeros((1600, 3), dtype=bool)
    for j in range(3):
        slices[200 * j : 200 * (j + 1), j] = True
    right = np.zeros(1600, dtype=bool)
    right[:100], right[200:400], right[400:576], right[600:1500] = True, True, True, True
    assert worse(right, slices).tolist() == [True, False, False]
    assert worse(~right, slices).tolist() == [False, True, False]  # signed: what was better is now worse
    assert worse(right[::20], slices[::20]).tolist() == [False, False, False]  # five times out of ten says little


def test_logistic_regression_learns_from_the_training_rows_alone():
    given = table()
    train = settings.train_logistic(given.features)
    rows, wanted = np.arange(2000), np.arange(2000, N)
    probs, layer = train(rows, given.target[:2000], wanted)
    assert ((probs > 0.5) == given.target[wanted]).mean() > 0.95
    assert layer.shape == (2000, 3)
    flipped, _ = train(rows, 1 - given.target[:2000], wanted)
    np.testing.assert_allclose(flipped, 1 - probs, atol=1e-3)


def test_a_network_learns_small_pictures():
    pytest.importorskip("torch")
    target = np.tile([0, 1], 200)
    images = np.random.default_rng(0).integers(0, 60, (400, 16, 16, 3), dtype=np.uint8)
    images[target == 1, 4:12] += 150
    train = settings.train_network(images, epochs=3, batch=32)
    probs, layer = train(np.arange(200), target[:200], np.arange(200, 400))
    assert ((probs > 0.5) == target[200:]).mean() > 0.9
    assert layer.shape == (200, 64)


# --- the benchmark ---------------------------------------------------------------------------------------------------


def test_an_oracle_scores_one_and_chance_the_base_rate():
    given = table()
    setting = rare(given.target, given.attributes["a"], share=0.2, n=3000, balance=0.4)
    unseen = setting.split != "train"
    slices, test = setting.slices[unseen], setting.split[unseen] == "test"
    probs = synthetic(setting.labels[unseen], slices[:, 0], seed=0)
    rows = Evaluation(labels=setting.labels[unseen], probs=probs, representations={"truth": slices.astype(float)})
    best = score(Oracle(), rows, test, slices)
    assert (best.p10, best.ap, best.representation) == (1.0, 1.0, "truth")
    assert best.base == slices[test].mean()
    chance = [score(Blind(), rows, test, slices, seed=seed, top=1) for seed in range(200)]
    assert np.mean([one.p10 for one in chance]) == pytest.approx(best.base, abs=0.03)
    assert chance[0].ap == pytest.approx(best.base)


def test_only_the_first_hypotheses_count():
    truth = np.arange(100)[:, None] < 20
    rows = Evaluation(
        labels=np.ones(100, dtype=int), probs=np.full(100, 0.7), representations={"x": np.hstack([~truth, truth]) * 1.0}
    )
    test = np.arange(100) % 2 == 0
    assert score(Oracle(), rows, test, truth, top=1).p10 == 0
    assert score(Oracle(), rows, test, truth, top=2).p10 == 1


def test_nothing_is_learnt_from_the_rows_it_is_judged_on():
    given = table()
    setting = noisy(given.target, given.attributes["a"], flip=0.4, n=2000)
    learnt = []

    def train(rows, labels, wanted):
        learnt.append((rows, labels, wanted))
        return np.full(len(wanted), 0.6), given.features[wanted]

    arrays = settings.prepare(setting, train, seed=0)
    ((rows, labels, wanted),) = learnt
    np.testing.assert_array_equal(rows, setting.rows[setting.split == "train"])
    np.testing.assert_array_equal(labels, setting.labels[setting.split == "train"])
    np.testing.assert_array_equal(wanted, setting.rows[setting.split != "train"])

    class Spy(Blind):
        def _fit(self, evaluation, train):
            self.rows, self.rules_ = evaluation.row_ids, ()

    spy = Spy()
    score(spy, settings.evaluation(given, arrays), arrays["test"], setting.slices[setting.split != "train"])
    np.testing.assert_array_equal(spy.rows, setting.rows[setting.split == "valid"])


BENCHMARK = SettingsBenchmark(
    n=1500, settings=2, strengths={"rare": (0.2,), "correlation": (0.5, 0.7), "noisy": (0.3, 0.4)}
)
KINDS = ("rare", "correlation", "noisy")


def test_the_exam_runs_and_goes_on(tmp_path, monkeypatch):
    monkeypatch.setitem(SLICERS, "blind", Blind)
    rows = run(table(), KINDS, ["confusion", "blind"], tmp_path, benchmark=BENCHMARK)
    assert [(row["kind"], row["method"]) for row in rows] == [(k, m) for k in KINDS for m in ("confusion", "blind")]
    expected = {
        "method", "preset", "kind", "model", "settings", "p10", "p10_se", "ap", "seconds", "representation", "dropped",
    }  # fmt: skip
    assert all(expected <= set(row) and row["model"] == "synthetic" for row in rows)
    assert all(row["settings"] == 2 and row["ap"] < 1 for row in rows)
    assert all(0 <= row["p10"] <= 1 for row in rows)
    assert rows[1]["ap"] == pytest.approx(rows[1]["base"])

    monkeypatch.setattr(settings, "prepare", lambda *given: pytest.fail("a model was made again"))
    monkeypatch.setattr(settings, "score", lambda *given, **more: pytest.fail("a method was judged again"))
    assert run(table(), KINDS, ["confusion", "blind"], tmp_path, benchmark=BENCHMARK) == rows


def test_a_trained_model_is_read_by_its_own_layer_or_the_tables(tmp_path):
    given = table()
    train = settings.train_logistic(given.features[:, :1])  # sees the target only: it fails where labels are noisy
    own = run(given, ["noisy"], ["gmm"], tmp_path, benchmark=BENCHMARK, train=train)
    foreign = run(
        given,
        ["noisy"],
        ["gmm"],
        tmp_path,
        benchmark=SettingsBenchmark(**{**vars(BENCHMARK), "own": False}),
        train=train,
    )
    assert (own[0]["representation"], foreign[0]["representation"]) == ("penultimate", "columns")
    assert own[0]["model"] == foreign[0]["model"] == "trained"
    assert foreign[0]["ap"] > own[0]["ap"]  # only the table's columns show the slice


def test_settings_whose_model_does_not_fail_are_dropped_and_counted(tmp_path):
    given = table()
    train = settings.train_logistic(given.features)
    (row,) = run(given, ["rare"], ["confusion"], tmp_path, benchmark=BENCHMARK, train=train)
    assert (row["settings"], row["dropped"], row["p10"]) == (0, 2, None)
    facts = settings.read_facts(tmp_path / "trained-rare-000.npz")
    assert min(facts["accuracies"]) > 0.9
    assert facts["kept"] == [False]


def test_a_folder_holds_one_exam(tmp_path):
    run(table(), ["noisy"], ["confusion"], tmp_path, benchmark=BENCHMARK)
    with pytest.raises(InputError, match="holds another benchmark"):
        run(
            table(),
            ["noisy"],
            ["confusion"],
            tmp_path,
            benchmark=SettingsBenchmark(n=1000, strengths=BENCHMARK.strengths),
        )
    more = SettingsBenchmark(**{**vars(BENCHMARK), "settings": 3})
    assert run(table(), ["noisy"], ["confusion"], tmp_path, benchmark=more)[0]["settings"] == 3
    run(
        table(),
        ["noisy"],
        ["confusion"],
        tmp_path,
        benchmark=BENCHMARK,
        train=settings.train_logistic(table().features),
    )
    with pytest.raises(InputError, match="another benchmark"):
        run(
            table(),
            ["noisy"],
            ["confusion"],
            tmp_path,
            benchmark=BENCHMARK,
            train=settings.train_logistic(table().features, C=9),
        )


def test_other_options_are_judged_again(tmp_path):
    run(table(), ["noisy"], ["gmm"], tmp_path, benchmark=BENCHMARK)
    run(table(), ["noisy"], ["gmm"], tmp_path, benchmark=BENCHMARK, options={"gmm": {"components": 3}})
    files = [json.loads(path.read_text()) for path in sorted(tmp_path.glob("*gmm.json"))]
    assert [file["options"] for file in files] == [{"components": 3}] * 2


def test_what_cannot_be_asked():
    with pytest.raises(InputError, match="did you mean `noisy`"):
        settings.candidates(table(), "noise", BENCHMARK)
    with pytest.raises(InputError, match="unknown attribute of table `tiny` `c`"):
        settings.candidates(table(), "rare", SettingsBenchmark(attributes={"rare": ("c",)}))
    with pytest.raises(InputError, match="allows no setting of kind `rare`: this setting needs"):
        settings.candidates(table(), "rare", SettingsBenchmark(n=100_000))


# --- tables -----------------------------------------------------------------------------------------------------


def frame():
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "income": np.where(rng.random(60) < 0.5, "high", "low"),
            "sex": np.where(np.arange(60) % 2 == 0, "f", "m"),
            "job": np.array(["a", "b", "c"])[np.arange(60) % 3],
            "age": rng.normal(40, 9, 60),
            "town": np.array(["x", "y"])[np.arange(60) % 2],
        }
    )


def test_a_users_own_frame():
    given = frame()
    made = from_frame(given, "income", ["sex", "job"], name="people")
    np.testing.assert_array_equal(made.target, given["income"] == "low")
    assert list(made.attributes) == ["sex", "job=a", "job=b", "job=c"]
    np.testing.assert_array_equal(made.attributes["sex"], given["sex"] == "m")
    assert made.features.shape == (60, 3)  # age and two towns: neither target nor attributes
    np.testing.assert_allclose(made.features.mean(axis=0), 0, atol=1e-12)


@pytest.mark.parametrize(
    ("change", "arguments", "words"),
    [
        ({}, ("incom", ["sex"]), "did you mean `income`"),
        ({}, ("job", ["sex"]), "must have two values"),
        ({}, ("income", ["age"]), "has 60 values; bin it"),
        ({"age": np.nan}, ("income", ["sex"]), "column `age` has missing"),
        ({}, ("income", ["sex", "job", "town"]), None),
    ],
)
def test_bad_frames(change, arguments, words):
    given = frame().assign(**change)
    if words is None:
        given, words = given.drop(columns="age"), "no columns are left"
    with pytest.raises(InputError, match=words):
        from_frame(given, *arguments)


def test_a_table_is_checked():
    X = np.zeros((4, 2))
    with pytest.raises(InputError, match="must be 0 or 1, and both"):
        Table("t", np.array([0, 1, 2, 1]), {}, X, "x")
    with pytest.raises(InputError, match="`a` of table `t` has 3 rows where `target` has 4"):
        Table("t", np.array([0, 1, 0, 1]), {"a": np.ones(3, dtype=bool)}, X, "x")


def test_scenes_as_a_table():
    made = from_scenes(120, seed=1, px=16)
    assert made.images.shape == (120, 16, 16, 3)
    assert made.images.dtype == np.uint8
    assert "square_presence" not in made.attributes
    assert all(column.any() and not column.all() for column in made.attributes.values())
    assert made.features.shape == (120, len(made.attributes) + 1)


def test_pixel_attributes_halve_the_pictures():
    images = np.zeros((10, 4, 4, 3), dtype=np.uint8)
    images[:5] = 200
    images[::2, ..., 0] += 20
    images[:, 0] += np.arange(10, dtype=np.uint8)[:, None, None]
    found = tables.pixel_attributes(images)
    assert found["bright"].tolist() == [True] * 5 + [False] * 5
    assert found["warm"].tolist() == [True, False] * 5
    assert found["contrasty"].sum() == 5


def test_a_missing_folder_is_named(tmp_path, monkeypatch):
    monkeypatch.setenv("ERRATA_DATA", str(tmp_path / "nowhere"))
    for load in (tables.cifar10, tables.utkface):
        with pytest.raises(InputError, match="nowhere"):
            load()


@pytest.mark.parametrize(
    ("load", "file", "kind", "name"),
    [
        (tables.cifar10, "cifar10.parquet", "correlation", "warm"),
        (tables.utkface, "utkface64.parquet", "rare", "age 60+"),
    ],
)
def test_real_tables(tmp_path, monkeypatch, load, file, kind, name):
    pytest.importorskip("torch")
    if not (tables.data_folder() / file).exists():
        pytest.skip(f"no {file} in {tables.data_folder()}")
    monkeypatch.setattr(tables, "EPOCHS", 1)
    made = load(rows=1000, cache=tmp_path)
    assert (len(made), made.images.shape) == (600, (600, 32, 32, 3))
    assert made.features.shape == (600, 64)
    assert 0.3 < made.target.mean() < 0.7
    benchmark = SettingsBenchmark(n=200, attributes={kind: (name,)}, strengths={kind: (0.1,)})
    (setting,) = settings.candidates(made, kind, benchmark)
    assert len(setting.rows) == 200
    again = load(rows=1000, cache=tmp_path)  # from the cache
    np.testing.assert_array_equal(again.features, made.features)
    np.testing.assert_array_equal(again.images, made.images)
