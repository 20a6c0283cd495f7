"""Logs of evaluations of language models, and rows as JSON."""

import json
import zipfile

import numpy as np
import pyarrow as pa
import pytest

import errata
from errata.core import InputError
from errata.inputs import InputWarning, read
from errata.inputs.inspect_log import read_member

STAMP = "2025-05-01T12-00-00.123456"
WORDS = ["energy", "force", "charge", "cell", "gene", "bone", "nerve", "orbit"]


def question(rng):
    return " ".join(rng.choice(WORDS, 8))


def write_choices(folder, task, n=800, seed=0, hard=0.6):
    """Samples of a multiple choice task as lm-evaluation-harness writes them; hard questions are mostly wrong."""
    rng = np.random.default_rng(seed)
    rows = []
    for i in range(n):
        gold = int(rng.integers(4))
        level = str(rng.choice(["easy", "hard"]))
        wrong = rng.random() < (hard if level == "hard" else 0.1)
        said = (gold + 1) % 4 if wrong else gold
        likelihoods = [["-5.0", "False"] for _ in range(4)]
        likelihoods[said] = ["-1.0", "True"]
        text = question(rng)
        rows.append(
            {
                "doc_id": i,
                "doc": {"question": text, "choices": list("wxyz"), "answer": gold, "level": level, "id": f"q{i}"},
                "target": str(gold),
                "arguments": {"gen_args_0": {"arg_0": f"Example. {text}", "arg_1": " w"}},
                "resps": [[one] for one in likelihoods],
                "filtered_resps": likelihoods,
                "filter": "none",
                "metrics": ["acc", "acc_norm"],
                "acc": float(said == gold),
                "acc_norm": 0.0,
                "doc_hash": "h",
            }
        )
    return write_lines(folder / f"samples_{task}_{STAMP}.jsonl", rows), rows


def write_lines(path, rows):
    path.write_text("\n".join(json.dumps(row) for row in rows))
    return path


def test_multiple_choice_samples_are_a_classification_of_the_choices(tmp_path):
    path, rows = write_choices(tmp_path, "physics")
    evaluation = read(path)
    assert evaluation.task == "classification"
    assert evaluation.class_names == ("A", "B", "C", "D")
    assert np.array_equal(evaluation.errors, [row["acc"] == 0 for row in rows])
    assert evaluation.labels.tolist() == [row["doc"]["answer"] for row in rows]
    assert sorted(evaluation.metadata) == ["level", "prompt words", "task"]  # neither answers nor ids
    assert set(evaluation.metadata["task"]) == {"physics"}
    assert evaluation.media.text(0).startswith(rows[0]["doc"]["question"] + "\n\nAnswer: ")
    assert list(evaluation.representations) == ["features"]
    assert not evaluation.source("features").from_model


def test_a_folder_of_samples_is_all_its_tasks_and_an_audit_finds_the_hard_ones(tmp_path):
    write_choices(tmp_path, "physics", seed=1)
    write_choices(tmp_path, "anatomy", seed=2, hard=0.1)
    older, _ = write_choices(tmp_path, "anatomy", n=5)
    older.rename(tmp_path / "samples_anatomy_2024-01-01T00-00-00.1.jsonl")
    write_choices(tmp_path, "anatomy", seed=2, hard=0.1)
    evaluation = errata.collect(tmp_path)
    assert len(evaluation) == 1600  # of each task the newest run
    assert evaluation.row_ids[0] == "anatomy/0"
    audit = errata.audit(evaluation)
    best = audit.confirmed[0]
    members = best.weights >= best.threshold
    planted = (evaluation.metadata["task"] == "physics") & (evaluation.metadata["level"] == "hard")
    assert planted[members].mean() > 0.8


def test_generated_answers_have_losses_and_the_first_filter_counts(tmp_path):
    rng = np.random.default_rng(0)
    rows = []
    for i in range(1500):
        steps = int(rng.integers(1, 9))
        right = bool(rng.random() > (0.7 if steps > 6 else 0.2))
        shared = {"doc_id": i, "doc": {"question": question(rng), "answer": "4", "steps": steps}, "target": "4"}
        shared |= {"resps": [["so 4"]], "filtered_resps": ["4"], "metrics": ["exact_match"]}
        rows.append({**shared, "filter": "strict-match", "exact_match": float(right)})
        rows.append({**shared, "filter": "flexible-extract", "exact_match": 1.0})
    path = write_lines(tmp_path / f"samples_gsm8k_{STAMP}.jsonl", rows)
    with pytest.warns(InputWarning, match="several filters: `strict-match` is read, flexible-extract not"):
        evaluation = read(path)
    assert evaluation.task == "loss"
    assert evaluation.losses.tolist() == [1 - row["exact_match"] for row in rows[::2]]
    audit = errata.audit(evaluation)  # losses of 0 and 1: the ones are bad, whatever share of the rows they are
    assert len(audit.confirmed) > 0
    best = audit.confirmed[0]
    assert (evaluation.metadata["steps"][best.weights >= best.threshold] > 6).mean() > 0.6


def test_samples_without_a_list_of_metrics_or_without_any(tmp_path):
    rows = [{"doc_id": i, "doc": {"text": f"word {i % 3}"}, "resps": [["x"]], "f1": 0.5} for i in range(30)]
    evaluation = read(write_lines(tmp_path / "samples_old.jsonl", rows))
    assert evaluation.losses.tolist() == [0.5] * 30
    rows = [{**row, "f1": 12.0, "bleu": "x"} for row in rows]
    with pytest.raises(InputError, match=r"no metric from 0 to 1 for all samples \(it has f1, bleu\)"):
        read(write_lines(tmp_path / "samples_old.jsonl", rows))


def inspect_log(n=400, grade=lambda right: "C" if right else "I"):
    rng = np.random.default_rng(0)
    samples = []
    for i in range(n):
        hard = bool(rng.random() < 0.3)
        for epoch in (1, 2):
            right = bool(rng.random() > (0.6 if hard else 0.1))
            samples.append(
                {
                    "id": f"s{i}",
                    "epoch": epoch,
                    "input": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": question(rng)}],
                    "target": "4",
                    "scores": {"match": {"value": grade(right), "answer": "4" if right else "5"}},
                    "metadata": {"subject": "hard" if hard else "easy"},
                }
            )
    return {"version": 2, "status": "success", "eval": {"task": "sums", "model": "m"}, "samples": samples}


@pytest.mark.parametrize("grade", [lambda right: "C" if right else "I", float, bool])
def test_a_log_of_inspect(tmp_path, grade):
    log = inspect_log(grade=grade)
    path = tmp_path / "log.json"
    path.write_text(json.dumps(log))
    evaluation = read(path)
    assert evaluation.task == "loss"
    right = [sample["scores"]["match"]["answer"] == "4" for sample in log["samples"]]
    assert np.array_equal(evaluation.losses == 0, right)
    assert evaluation.groups[0] == evaluation.groups[1] == "s0"  # epochs of one sample stay together
    assert evaluation.row_ids[1] == "s0, epoch 2"
    assert set(evaluation.metadata["subject"]) == {"hard", "easy"}
    assert "Be brief" not in evaluation.media.text(0)
    audit = errata.audit(evaluation)
    best = audit.confirmed[0]
    assert (evaluation.metadata["subject"][best.weights >= best.threshold] == "hard").mean() > 0.8


def test_a_log_in_inspects_own_format_is_the_same(tmp_path):
    log = inspect_log(60)
    (tmp_path / "log.json").write_text(json.dumps(log))
    header = {name: value for name, value in log.items() if name != "samples"}
    with zipfile.ZipFile(tmp_path / "log.eval", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("header.json", json.dumps(header))
        for sample in log["samples"]:
            archive.writestr(f"samples/{sample['id']}_epoch_{sample['epoch']}.json", json.dumps(sample))
    one = read(tmp_path / "log.json")
    other = read(tmp_path / "log.eval")
    assert one.fingerprint == other.fingerprint


@pytest.mark.parametrize("suffix", ["json", "eval"])
def test_logs_that_inspect_itself_writes_are_read(tmp_path, suffix):
    log = pytest.importorskip("inspect_ai.log")
    scorer = pytest.importorskip("inspect_ai.scorer")
    samples = [
        log.EvalSample(
            id=i,
            epoch=1,
            input=f"Which, {WORDS[i % 8]}?",
            choices=["x", "y"],
            target="A",
            scores={"choice": scorer.Score(value="CI"[i % 2], answer="AB"[i % 2])},
            metadata={"kind": "sum"},
        )
        for i in range(30)
    ]
    spec = log.EvalSpec(
        created="2025-01-01T00:00:00+00:00",
        task="letters",
        dataset=log.EvalDataset(),
        model="m",
        config=log.EvalConfig(),
    )
    path = tmp_path / f"log.{suffix}"
    log.write_eval_log(log.EvalLog(eval=spec, samples=samples, status="success"), str(path))
    evaluation = read(path)
    assert evaluation.task == "classification"
    assert evaluation.class_names == ("A", "B")
    assert evaluation.errors.sum() == 15
    assert set(evaluation.metadata["kind"]) == {"sum"}


def test_files_of_a_zip_that_zstd_compressed_are_read(tmp_path):
    """Written by hand, since this Python may not write them: a stored file whose bytes and kind are changed."""
    text = b'{"eval": {}}' * 50
    packed = pa.compress(text, codec="zstd", asbytes=True)
    path = tmp_path / "log.eval"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("other.json", "{}")
        archive.writestr("header.json", packed)
    with zipfile.ZipFile(path) as archive:
        archive.getinfo("header.json").compress_type = 93
        assert read_member(path, archive, "header.json") == text
        assert read_member(path, archive, "other.json") == b"{}"


def test_rows_as_json_are_a_table(tmp_path):
    rows = [{"labels": "a", "predictions": "b", "site": "x"}, {"labels": "b", "predictions": "b", "site": None}]
    (tmp_path / "rows.json").write_text(json.dumps(rows))
    for path in (tmp_path / "rows.json", write_lines(tmp_path / "rows.jsonl", rows)):
        evaluation = read(path, metadata=["all"])
        assert evaluation.errors.tolist() == [True, False]
        assert evaluation.metadata["site"].tolist() == ["x", ""]


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("x.json", "{", "damaged"),
        ("x.json", "{}", "neither a log of Inspect nor a list with one object a row; got a dict"),
        ("x.json", '{"eval": {"task": "t"}, "samples": []}', r"has no samples, only results"),
        ("x.json", '[{"bbox": [1, 2, 3, 4], "score": 0.5}]', r"call errata.inputs.read_detections\('x.json', LABELS\)"),
        (
            "x.json",
            '{"eval": {}, "samples": [{"id": 7, "scores": {"f": {"value": "fine"}}}]}',
            "the scorer `f` gave 'fine' for sample 7; scores are C, P, I, N or numbers",
        ),
        ("x.json", '{"eval": {}, "samples": [{"id": 7, "scores": {"f": {"value": 8}}}]}', "the score 8 for sample 7"),
        ("x.json", '{"eval": {}, "samples": [{"id": 7}]}', "no samples with a score"),
        ("x.jsonl", '{"labels": 1}\n{', "line 2 of .* is no JSON"),
        ("x.jsonl", '{"labels": 1}\n[1]', "line 2 of .* must be an object"),
        ("x.jsonl", "\n\n", "has no rows"),
        ("x.eval", "no zip", "damaged"),
    ],
)
def test_files_that_are_no_logs_say_so(tmp_path, name, text, words):
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(InputError, match=words) as caught:
        read(path)
    assert "\n" not in str(caught.value)
