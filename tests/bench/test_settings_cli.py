"""`errata bench settings`: files of one's own as tables, what the command refuses, and that it goes on."""

import io
import json
import sys
from contextlib import nullcontext

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from errata.bench import settings, tables
from errata.bench.own import from_file
from errata.bench.tables import Table
from errata.cli import app as cli
from errata.cli import bench as bench_cli
from errata.cli.bench import read_table, settings_table, trainer
from errata.core import InputError

N = 3000


def columns(n=N, seed=0):
    """An embedding that shows the target, the attribute and a third thing."""
    rng = np.random.default_rng(seed)
    target, town = rng.random(n) < 0.5, rng.random(n) < 0.4
    X = np.column_stack([target, town, rng.random(n) < 0.5]) * 4.0 + rng.normal(size=(n, 3))
    return {"ill": np.where(target, "yes", "no"), "town": town, "embedding": X.astype(np.float32)}


def frame(given):
    return pd.DataFrame({**given, "embedding": [row.tolist() for row in given["embedding"]]})


def picture(shade):
    file = io.BytesIO()
    Image.new("RGB", (40, 20), (shade, 10, 200)).save(file, "PNG")
    return file.getvalue()


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """x.npz and nothing else, in the folder where the command runs."""
    np.savez(tmp_path / "x.npz", **columns())
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def bench(monkeypatch, capsys):
    def run(*words):
        capsys.readouterr()
        monkeypatch.setattr(sys, "argv", ["errata", "bench", "settings", *map(str, words)])
        with pytest.raises(SystemExit) as stop:
            cli.main()
        said = capsys.readouterr()
        return stop.value.code, said.out, said.err

    return run


OWN = ("x.npz", "--target", "ill", "--attribute", "town")
QUICK = (
    "--settings",
    "2",
    "--n",
    "1500",
    "--kind",
    "noisy,correlation",
    "--kind",
    "noisy",
    "--method",
    "confusion,gmm",
)


# --- the command ---------------------------------------------------------------------------------------------


def test_a_file_of_ones_own(folder, bench):
    code, out, err = bench(*OWN, *QUICK, "--set", "gmm.components=3", "--json", "rows.json")
    assert (code, err) == (0, "")
    assert out.startswith(
        "x, synthetic models; 1,500 rows a setting; seed 0\n| method | noisy: P@10 | AP | correlation"
    )
    rows = json.loads((folder / "rows.json").read_text())["rows"]
    assert [(row["kind"], row["method"]) for row in rows] == [
        (kind, method) for kind in ("noisy", "correlation") for method in ("confusion", "gmm")
    ]
    assert all(row["settings"] >= 1 and 0 <= row["p10"] <= 1 for row in rows)
    assert rows[1]["representation"] == "embedding"
    judged = json.loads(next((folder / "bench-results" / "settings-x-seed0").glob("*-gmm.json")).read_text())
    assert judged["options"] == {"components": 3}


def test_a_run_goes_on_from_its_folder(folder, bench, monkeypatch):
    first = bench(*OWN, *QUICK, "-o", "run")
    assert first[0] == 0
    monkeypatch.setattr(settings, "prepare", lambda *given: pytest.fail("a model was made again"))
    monkeypatch.setattr(settings, "score", lambda *given, **more: pytest.fail("a method was judged again"))
    assert bench(*OWN, *QUICK, "-o", "run") == first


def test_a_folder_does_not_answer_for_a_file_that_has_changed(folder, bench):
    assert bench(*OWN, *QUICK, "-o", "run")[0] == 0
    np.savez(folder / "x.npz", **columns(seed=1))
    code, _, err = bench(*OWN, *QUICK, "-o", "run")
    assert code == 2
    assert "`run` holds another benchmark" in err


def test_trained_models_and_their_representation(folder, bench):
    words = ["--model", "trained", "--kind", "noisy", "--method", "gmm", "--settings", "1", "-o", "run"]
    assert "| penultimate |" in bench(*OWN, *words)[1]
    assert "| embedding |" in bench(*OWN, *words, "--foreign")[1]


def test_the_bar_runs_forward_to_the_last_method(folder, bench, monkeypatch):
    heard = []
    monkeypatch.setattr(bench_cli, "progress_bar", lambda: nullcontext(lambda what, share: heard.append((what, share))))
    assert bench(*OWN, *QUICK)[0] == 0
    shares = [share for _, share in heard]
    assert shares == sorted(shares)
    assert (shares[0], heard[-1]) == (0.0, ("correlation: gmm", 0.875))
    assert ("noisy: confusion", 0.25) in heard
    assert len({share for what, share in heard if "synthetic model" in what}) > 2


BAD = [
    (["cifar"], "did you mean `cifar10`"),
    (["x.npz"], "`x.npz` needs `--target COLUMN` and at least one `--attribute COLUMN`"),
    (["x.npz", "--target", "ill"], "at least one `--attribute COLUMN`"),
    (["x.npz", "--target", "il", "--attribute", "town"], "did you mean `ill`"),
    (["x.npz", "--target", "ill", "--attribute", "twon"], "did you mean `town`"),
    (["y.npz", "--target", "ill", "--attribute", "town"], "the file `y.npz` does not exist"),
    (["y.csv", "--target", "ill", "--attribute", "town"], "the file `y.csv` does not exist"),
    (["x.txt", "--target", "ill", "--attribute", "town"], "must end in .npz, .safetensors, .parquet, .csv"),
    (["scenes", "--target", "ill"], "`--target` and `--attribute` are for a file"),
    (["scenes", "--positive", "vehicle"], "`--positive` is for cifar10"),
    (["cifar10", "--positive", "vehicles"], "did you mean `vehicle`"),
    ([*OWN, "--rows", "50"], "`x.npz` is read whole"),
    ([*OWN, "--model", "train"], "did you mean `trained`"),
    ([*OWN, "--foreign"], "`--foreign` is for `--model trained`"),
    ([*OWN, "--kind", "noise"], "did you mean `noisy`"),
    ([*OWN, "--kind", ","], "`--kind` is empty"),
    ([*OWN, "--method", "gmn"], "did you mean `gmm`"),
    ([*OWN, "--method", "gmm", "--set", "domino.slices=3"], "an option is for method `domino`"),
    ([*OWN, "--settings", "0"], "`--settings` must be at least 1; got 0"),
    ([*OWN, "--n", "-1"], "`--n` must be at least 1; got -1"),
    ([*OWN, "--n", "5000"], "the table has"),
    ([*OWN, "--json", "nowhere/rows.json"], "the folder `nowhere` does not exist"),
    ([*OWN, "--json", "."], "`--json .` is a folder"),
]


@pytest.mark.parametrize(("words", "sentence"), BAD)
def test_bad_input_is_one_sentence_and_nothing_is_written(folder, bench, words, sentence):
    code, out, err = bench(*words)
    assert (code, out) == (2, "")
    assert err.startswith("errata: ")
    assert sentence in err
    assert err.count("\n") == 1
    assert [path.name for path in folder.iterdir()] == ["x.npz"]


def test_ready_tables_get_what_was_asked(monkeypatch, tmp_path):
    asked = []
    for name in ("cifar10", "utkface"):
        monkeypatch.setattr(tables, name, lambda name=name, **given: asked.append((name, given)))
    monkeypatch.setattr(tables, "from_scenes", lambda rows: asked.append(("scenes", rows)))
    read_table("cifar10", None, [], 300, tmp_path, "vehicle")
    read_table("utkface", None, [], None, tmp_path, "animal")
    read_table("scenes", None, [], None, tmp_path, "animal")
    assert asked == [
        ("cifar10", {"rows": 300, "cache": tmp_path, "positive": "vehicle"}),
        ("utkface", {"rows": 25_000, "cache": tmp_path}),
        ("scenes", 25_000),
    ]


def test_the_classes_of_cifar10_are_not_correlated_with_what_they_make_up(monkeypatch, folder, bench):
    given = columns()
    marks = dict.fromkeys(("cat", "truck", *bench_cli.PIXELS), given["town"])
    made = Table("cifar10-animal", (given["ill"] == "yes").astype(int), marks, given["embedding"], "layer")
    monkeypatch.setattr(bench_cli, "read_table", lambda *given: made)
    assert bench("cifar10", *QUICK, "-o", "run")[0] == 0
    names = {path.name[10:14]: settings.read_facts(path)["name"] for path in (folder / "run").glob("*.npz")}
    assert names["nois"] in ("cat", "truck")
    assert names["corr"] in bench_cli.PIXELS


def test_pictures_train_a_network_and_columns_a_regression():
    pytest.importorskip("torch")
    X, target = np.zeros((4, 2)), np.array([0, 1, 0, 1])
    plain = Table("t", target, {}, X, "x")
    pictures = Table("t", target, {}, X, "x", np.zeros((4, 8, 8, 3), dtype=np.uint8))
    assert trainer(plain, "synthetic", 3) is None
    assert trainer(plain, "trained", 3).func is tables._train_logistic
    network = trainer(pictures, "trained", 3)
    assert (network.func, network.keywords["epochs"]) == (tables._train_network, 3)


# --- the table that is printed -------------------------------------------------------------------------------


def row(method, kind, each):
    plain = {"method": method, "preset": "recommended", "kind": kind, "settings": len(each), "dropped": 1, "ap": 0.25}
    numbers = {"p10": float(np.mean(each)), "p10_se": 0.05, "base": 0.1, "seconds": 2.0, "representation": "x"}
    return {**plain, **numbers, "each": each}


def test_differences_are_paired_over_all_settings():
    """gmm - confusion: .1 and .3 in one kind, .2 in the other: mean .2, standard error .1 / sqrt(3)."""
    rows = [
        row("confusion", "rare", [0.2, 0.3]), row("gmm", "rare", [0.3, 0.6]),
        row("confusion", "noisy", [0.5]), row("gmm", "noisy", [0.7]),
    ]  # fmt: skip
    lines = settings_table(rows, ["rare", "noisy"]).splitlines()
    assert lines[2].startswith("| *settings* | 2 kept, 1 dropped |  | 1 kept, 1 dropped |")
    assert lines[-1] == "| gmm:recommended | 0.45 ± 0.05 | 0.25 | 0.70 ± 0.05 | 0.25 | +0.20 ± 0.06 | 2.00 | x |"
    assert "| +0.00 ± 0.00 |" in lines[-2]
    assert len({line.count("|") for line in lines[:2] + lines[4:]}) == 1
    assert "|  | 2.00 |" in settings_table(rows[1::2], ["rare", "noisy"])  # nothing to compare with


def test_a_kind_without_a_setting_has_dashes():
    none = dict.fromkeys(("p10", "p10_se", "ap", "base", "seconds", "representation"))
    empty = {**row("gmm", "rare", [0.0]), **none, "settings": 0, "each": []}
    (last,) = settings_table([empty], ["rare"]).splitlines()[4:]
    assert last == "| gmm:recommended | – ± – | – |  | – | – |"


# --- files ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["npz", "parquet", "csv"])
def test_the_same_table_from_each_form(tmp_path, form):
    given, path = columns(), tmp_path / f"people.{form}"
    if form == "npz":
        np.savez(path, **given, groups=np.arange(N) // 3)
    else:
        rows = frame(given).assign(groups=np.arange(N) // 3, unrelated="x")
        rows.to_parquet(path) if form == "parquet" else rows.to_csv(path, index=False)
    made = from_file(path, "ill", ["town"])
    assert (made.name, made.features_name, made.images) == ("people", "embedding", None)
    np.testing.assert_array_equal(made.target, given["ill"] == "yes")
    np.testing.assert_array_equal(made.attributes["town"], given["town"])
    np.testing.assert_allclose(made.features, given["embedding"], rtol=1e-6)
    np.testing.assert_array_equal(made.groups, np.arange(N) // 3)


def test_columns_under_the_names_of_an_audit(tmp_path):
    given = columns()
    named = {"labels": (given["ill"] == "yes").astype(int), "metadata:town": given["town"]}
    np.savez(tmp_path / "x.npz", **named, **{"embedding:clip": given["embedding"]})
    made = from_file(tmp_path / "x.npz", "labels", ["metadata:town"])
    np.testing.assert_array_equal(made.target, given["ill"] == "yes")
    assert (list(made.attributes), made.features_name) == (["town"], "clip")


def test_missing_attributes_are_in_no_slice(tmp_path):
    given = columns()
    job = np.array(["a", "b", "c", None], dtype=object)[np.arange(N) % 4]
    frame({**given, "job": job}).to_parquet(tmp_path / "x.parquet")
    made = from_file(tmp_path / "x.parquet", "ill", ["job"])
    assert list(made.attributes) == ["job=a", "job=b", "job=c"]
    assert not np.any([mark[3::4] for mark in made.attributes.values()])


def test_pictures_come_along(tmp_path):
    given = {**columns(60), "image": [picture(4 * i) for i in range(60)]}
    frame(given).to_parquet(tmp_path / "x.parquet")
    made = from_file(tmp_path / "x.parquet", "ill", ["town"])
    assert (made.images.shape, made.images.dtype) == ((60, 32, 32, 3), np.uint8)
    np.testing.assert_allclose(made.images[:, 5, 5, 0], 4 * np.arange(60), atol=4)
    np.testing.assert_allclose(made.images[..., 2], 200, atol=4)


def test_a_broken_picture_is_named(tmp_path):
    pictures = [picture(1)] * 30 + [b"not a picture"] + [picture(1)] * 29
    frame({**columns(60), "image": pictures}).to_parquet(tmp_path / "x.parquet")
    with pytest.raises(InputError, match="image of row 30 is missing or broken"):
        from_file(tmp_path / "x.parquet", "ill", ["town"])


@pytest.mark.parametrize("form", ["parquet", "csv"])
def test_without_an_embedding_the_other_columns_are_the_features(tmp_path, form):
    rng, path = np.random.default_rng(0), tmp_path / f"x.{form}"
    rows = pd.DataFrame({"ids": np.arange(90), "groups": np.arange(90) // 2, "ill": rng.integers(0, 2, 90)})
    rows = rows.assign(age=rng.normal(size=90), job=np.array(["a", "b", "c"])[np.arange(90) % 3], sex=rows["ids"] % 2)
    rows.to_parquet(path) if form == "parquet" else rows.to_csv(path, index=False)
    made = from_file(path, "ill", ["sex"])
    assert (made.features.shape, made.features_name) == ((90, 4), "standardised columns")  # age and three jobs
    np.testing.assert_array_equal(made.groups, np.arange(90) // 2)


def test_what_a_plain_table_cannot_be(tmp_path):
    plain = pd.DataFrame({"ill": [0, 1] * 150, "sex": [0, 0, 1] * 100, "name": [f"person {i}" for i in range(300)]})
    plain.to_csv(tmp_path / "x.csv", index=False)
    with pytest.raises(InputError, match="column `name` has 300 different texts; drop it or bin it"):
        from_file(tmp_path / "x.csv", "ill", ["sex"])
    pq.write_table(pa.table({"ill": [0, 1], "sex": [0, 1], "image": [b"", b""]}), tmp_path / "x.parquet")
    with pytest.raises(InputError, match="has images but no `embedding`"):
        from_file(tmp_path / "x.parquet", "ill", ["sex"])
    (tmp_path / "y.csv").write_text("ill,sex,age\n0,1,2\n1,0,2,3,4\n")
    with pytest.raises(InputError, match=r"y.csv` cannot be read .*; write it again"):
        from_file(tmp_path / "y.csv", "ill", ["sex"])
    (tmp_path / "y.parquet").write_bytes(b"PAR1 and then nothing")
    with pytest.raises(InputError, match="damaged or not what its name says"):
        from_file(tmp_path / "y.parquet", "ill", ["sex"])
    with pytest.raises(InputError, match="`ill` must have two values and none missing; got 1"):
        from_file(_saved(tmp_path / "z.npz", {**columns(), "ill": np.zeros(N)}), "ill", ["town"])
    with pytest.raises(InputError, match="needs `representations`"):
        from_file(
            _saved(tmp_path / "w.npz", {"labels": np.arange(9) % 2, "town": np.arange(9) % 2}), "labels", ["town"]
        )


def _saved(path, arrays):
    np.savez(path, **arrays)
    return path
