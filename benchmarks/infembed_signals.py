"""A signal on four of five training images of one label: do opponents of that label carry it? Prints markdown.

    python benchmarks/infembed_signals.py [--seeds 10] [--device cuda] [--jobs 12] [--only CASE ...] [--json FILE]

UTKFace in five age groups. The paper puts its signal on all images of a label, whose opponents of that label can then
not differ by it; here one in five goes without. A slice of the label's errors is found on untouched test images, and
training images *of its label* are ranked by the cosine of their influence embeddings with the sum of those of the
slice's errors; so for all errors of the label, and for all its test images. Beside it: influence itself, and low
training loss, which needs no influence. AUC: carriers before the others.

Cases were fixed before any was run: three signals; the same after so many epochs that every image is learnt; a tag that
a fifth of the other labels carry too; a tag that is hardly seen; no signal, where a random 80% count as carriers.
Data: ERRATA_DATA, or ../shared/data beside the clone.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

Array = np.ndarray
AGES = (21, 27, 35, 51)
GROUP = 4  # 51 and older
SHARE = 0.8  # of the group's training images that carry the signal
PX = 32
ROWS = 20_000  # images, chosen by seed 0,
TRAIN = 12_000  # of which so many are learnt
BATCH = 500
LOW = 0.4
LEAST = 25
T_975 = {3: 4.303, 5: 2.776, 10: 2.262, 20: 2.093}  # quantiles of Student's t, by the number of seeds


@dataclass(frozen=True)
class Case:
    """What is painted on whom, and how long the network learns."""

    signal: str
    epochs: int = 6
    others: float = 0.0  # share of the other labels' training images that carry it too


CASES = {
    "none": Case("none"),
    "tag": Case("tag"),
    "stripe": Case("stripe"),
    "blur": Case("blur"),
    "tag, 40 epochs": Case("tag", epochs=40),
    "stripe, 40 epochs": Case("stripe", epochs=40),
    "blur, 40 epochs": Case("blur", epochs=40),
    "tag, a fifth of others": Case("tag", others=0.2),
    "faint tag": Case("faint"),
}


def paint(images: Array, signal: str) -> Array:
    """(n, px, px, 3) bytes with the signal."""
    images = images.copy()
    if signal == "tag":
        images[:, 1:6, 1:6] = 255
    elif signal == "faint":
        images[:, 1:6, 1:6] = (0.8 * images[:, 1:6, 1:6] + 0.2 * 255).astype(np.uint8)
    elif signal == "stripe":
        images[:, :, -4:-2] = (255, 0, 0)
    elif signal == "blur":
        from PIL import Image, ImageFilter

        for i, image in enumerate(images):
            images[i] = np.asarray(Image.fromarray(image).filter(ImageFilter.GaussianBlur(1)))
    return images


def carriers(labels: Array, case: Case, rng: np.random.Generator) -> Array:
    """(n,) bool: four of five of the group, and a share of the others."""
    shares = np.where(labels == GROUP, SHARE, case.others)
    return np.asarray(rng.random(len(labels)) < shares)


def run_case(task: tuple[str, int, str, str]) -> dict[str, Any]:
    """One network: what it learnt, the slice, and the three rankings."""
    name, seed, path, device = task
    import torch

    from errata.train import fit, network

    torch.set_num_threads(1)
    case = CASES[name]
    with np.load(path) as file:
        images = file["images"]
        groups = file["groups"]
    began = time.time()
    rng = np.random.default_rng([seed, 17])
    order = np.random.default_rng(seed).permutation(len(images))
    count = min(TRAIN, len(images) * TRAIN // ROWS)
    learnt = order[:count]
    held = order[count:]
    has = carriers(groups[learnt], case, rng)
    X = images[learnt].copy()
    X[has] = paint(X[has], case.signal)
    model = network("small", px=PX, outputs=len(AGES) + 1, seed=seed)
    fit(model, X, groups[learnt], epochs=case.epochs, batch=128, lr=3e-3, seed=seed, device=device)
    model.to(device)
    test, train = embedded(model, (images[held], groups[held]), (X, groups[learnt]), device)
    facts = {"case": name, "seed": seed, "n_train": count, "n_test": len(held)}
    return {**facts, **measured(test, train, has, seed), "seconds": round(time.time() - began, 1)}


def embedded(model: Any, mine: tuple[Array, Array], theirs: tuple[Array, Array], device: str) -> tuple[Any, Any]:
    """Test and training rows with influence embeddings of the last layer; the Hessian is that of training rows."""
    import torch

    import errata
    from errata.core.progress import silent
    from errata.train import normalise_bytes

    def batches(rows: tuple[Array, Array]) -> list[Any]:
        images, labels = rows
        parts = [slice(start, start + BATCH) for start in range(0, len(images), BATCH)]
        return [(normalise_bytes(torch.from_numpy(images[at])), torch.from_numpy(labels[at])) for at in parts]

    fitted = errata.inputs.fit_influence(model, batches(theirs), rows=None, device=device, progress=silent)
    test, train = (
        errata.collect(model, batches(rows), influence=fitted, device=device, progress=silent)
        for rows in (mine, theirs)
    )
    return test, train


def measured(test: Any, train: Any, has: Array, seed: int) -> dict[str, Any]:
    """Accuracies, the slice, and how early each ranking of the label's training rows has its carriers."""
    own = test.labels == GROUP
    label = np.flatnonzero(train.labels == GROUP)
    carry = has[label]
    facts = {
        "accuracy_others": 1 - float(test.errors[~own].mean()),
        "accuracy_group": 1 - float(test.errors[own].mean()),
        "train_carriers": 1 - float(train.errors[label][carry].mean()),
        "train_without": 1 - float(train.errors[label][~carry].mean()),
        "loss_carriers": float(train.losses[label][carry].mean()),
        "loss_without": float(train.losses[label][~carry].mean()),
        "carriers": [int(carry.sum()), len(carry)],
        "auc_loss": auc(-train.losses[label], carry),
    }
    members = largest_slice(test, seed)
    asked = {"errors": own & test.errors, "label": own}
    if members is not None:
        asked["slice"] = members & own & test.errors
        facts |= {"slice_rows": int(members.sum()), "slice_accuracy": 1 - float(test.errors[members].mean())}
    for name, rows in asked.items():
        facts |= {f"{name}_{key}": value for key, value in ranked(test, train, rows, label, carry).items()}
    return facts


def largest_slice(test: Any, seed: int) -> Array | None:
    """(n,) bool: the largest slice of at most 40% accuracy in which the label is the commonest."""
    from errata.slicers.infembed import InfembedRule

    inside = InfembedRule(accuracy=LOW, min_rows=LEAST, seed=seed).fit(test).membership(test) > 0.5
    own = [members for members in inside.T if (test.labels[members] == GROUP).mean() > 0.5]
    return max(own, key=np.sum) if own else None


def ranked(test: Any, train: Any, asked: Array, label: Array, carry: Array) -> dict[str, Any]:
    """The fifty ends of the ranking by cosine within the label, as an audit shows them, and AUCs of all its rows."""
    from errata.explain.own_label import ends, label_cosines

    E = test.representations["influence"]
    cosines = label_cosines(E, train, asked, label)
    products = np.asarray(train.representations["influence"][label], dtype=np.float64) @ E[asked].sum(axis=0)
    opposing, helping = ends(cosines)
    return {
        "n": int(asked.sum()),
        "opponents": [int(carry[opposing].sum()), len(opposing)],
        "helpers": [int(carry[helping].sum()), len(helping)],
        "auc_cosine": auc(-cosines, carry),
        "auc_product": auc(-products, carry),
    }


def auc(scores: Array, positive: Array) -> float:
    """The share of pairs in which the positive row has the higher score; ties count half."""
    order = np.argsort(scores, kind="stable")
    values, codes = np.unique(scores[order], return_inverse=True)
    ends = np.cumsum(np.bincount(codes, minlength=len(values)))
    starts = np.concatenate([[0], ends[:-1]])
    ranks = np.empty(len(scores))
    ranks[order] = ((starts + ends + 1) / 2)[codes]
    n = int(positive.sum())
    return float((ranks[positive].sum() - n * (n + 1) / 2) / (n * (len(positive) - n)))


def mean_interval(values: list[float], digits: int = 2) -> str:
    """ ".98 (.97 to .99)": the mean over seeds with Student's 95% interval."""
    mean = float(np.mean(values))
    if len(values) not in T_975:
        return f"{mean:.{digits}f}"
    half = T_975[len(values)] * float(np.std(values, ddof=1)) / len(values) ** 0.5
    return f"{mean:.{digits}f} ({mean - half:.{digits}f} to {mean + half:.{digits}f})"


def told(rows: list[dict[str, Any]]) -> None:
    """The tables, from what was measured."""
    print("\n| case | seeds | accuracy of the label | training loss: carriers, without | slices of the label, rows |")
    print("|---|---|---|---|---|")
    for name, own in by_case(rows):
        found = [row["slice_rows"] for row in own if "slice_rows" in row]
        sizes = f"{min(found)} to {max(found)}" if found else "none"
        accuracy = [row["accuracy_group"] for row in own]
        losses = [f"{np.mean([row[key] for row in own]):.3f}" for key in ("loss_carriers", "loss_without")]
        print(f"| {name} | {len(own)} | {mean_interval(accuracy)} | {', '.join(losses)} | {len(found)}, {sizes} |")
    for what in WORDS:
        print(f"\nCarriers among the training rows that oppose or help {WORDS[what]}:\n")
        print(
            "| case | seeds | opponents | helpers | all of the label | AUC, cosine | AUC, influence | AUC, low loss "
            "| cosine less low loss, paired |"
        )
        print("|---" * 9 + "|")
        for name, own in by_case([row for row in rows if f"{what}_n" in row]):
            print(f"| {name} | {len(own)} | {' | '.join(line(own, what))} |")


WORDS = {"slice": "errors of the slice", "errors": "all errors of the label", "label": "all test images of the label"}


def line(own: list[dict[str, Any]], what: str) -> list[str]:
    cells = []
    for key in (f"{what}_opponents", f"{what}_helpers", "carriers"):
        hits, counted = np.sum([row[key] for row in own], axis=0)
        cells.append(f"{hits:,} of {counted:,} ({hits / max(1, counted):.2f})")
    for key in (f"{what}_auc_cosine", f"{what}_auc_product", "auc_loss"):
        cells.append(mean_interval([row[key] for row in own]))
    cells.append(mean_interval([row[f"{what}_auc_cosine"] - row["auc_loss"] for row in own], digits=3))
    return cells


def by_case(rows: list[dict[str, Any]]) -> list[tuple[str, list[dict[str, Any]]]]:
    grouped = [(name, [row for row in rows if row["case"] == name]) for name in CASES]
    return [(name, own) for name, own in grouped if own]


def packed(cache: Path) -> Path:
    """The images in 32 px and their groups as one file."""
    path = cache / "infembed-faces.npz"
    if not path.exists():
        import pandas as pd

        from errata.bench.tables import data_folder, decoded

        frame = pd.read_parquet(data_folder() / "utkface64.parquet")
        frame = frame.iloc[np.sort(np.random.default_rng(0).permutation(len(frame))[:ROWS])]
        path.parent.mkdir(parents=True, exist_ok=True)
        np.savez(path, images=decoded(frame["image"]), groups=np.digitize(frame["age"].to_numpy(), AGES))
    return path


def run_all(tasks: list[tuple[str, int, str, str]], jobs: int, target: Path | None) -> list[dict[str, Any]]:
    """Every task, the file written as they end."""
    rows: list[dict[str, Any]] = []
    os.environ["OMP_NUM_THREADS"] = "1"
    with ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn")) as pool:
        for future in as_completed([pool.submit(run_case, task) for task in tasks]):
            try:
                row = future.result()
            except RuntimeError as error:  # of a GPU that is too full for so many at a time; the others go on
                print(f"failed: {error}", flush=True)
                continue
            rows.append(row)
            print(f"{len(rows)} of {len(tasks)}: {row['case']}, seed {row['seed']}, {row['seconds']} s", flush=True)
            if target is not None:
                target.write_text(json.dumps(rows, indent=1))
    return sorted(rows, key=lambda row: (list(CASES).index(row["case"]), row["seed"]))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--only", nargs="*", choices=list(CASES), default=list(CASES))
    parser.add_argument("--json", type=Path, help="where every run is written")
    parser.add_argument("--show", type=Path, help="print the tables of such a file, and run nothing")
    parser.add_argument("--cache", type=Path, default=Path(tempfile.gettempdir()) / "errata-studies")
    asked = parser.parse_args()
    if asked.show is not None:
        told(json.loads(asked.show.read_text()))
        return 0
    path = str(packed(asked.cache))
    tasks = [
        (name, seed, path, asked.device)
        for name in asked.only
        for seed in range(asked.first, asked.first + asked.seeds)
    ]
    told(run_all(tasks, asked.jobs, asked.json))
    return 0


if __name__ == "__main__":
    sys.exit(main())
