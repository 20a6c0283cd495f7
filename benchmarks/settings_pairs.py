"""InfEmbed beside Domino on the settings of a folder, setting by setting, and what its precision hangs on.

    python benchmarks/settings_pairs.py FOLDER [--seed 0]   of `errata bench settings TABLE --model trained -o FOLDER`

Two parts. Pairs: differences of precision at 10 between methods that were judged there, 95% intervals by Student's t
over settings. Causes: `infembed` on the same models with one thing changed at a time: all its clusters count instead of
the first five; rows of a cluster are ranked by their loss instead of by how well they fit; fewer and larger clusters;
normalised centroids; embeddings of length one, which know no size; the curvature of valid and test rows, three times as
many, instead of valid rows. Nothing here chooses a default.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from bridge import table
from errata import Evaluation
from errata.bench import metrics
from errata.inputs.influence import add_influence
from errata.slicers import make
from trained import over_runs

Array = np.ndarray
KINDS = ("correlation", "noisy", "rare")
PAIRS = (
    ("infembed-recommended", "domino-recommended"),
    ("infembed-as_published", "domino-as_published"),
    ("infembed-recommended", "domino-as_published"),
    ("infembed-recommended", "high-loss-within_label"),
    ("domino-as_published", "high-loss-within_label"),
    ("consensus", "infembed-recommended"),
)
TOP = 5  # hypotheses that count


@dataclass(frozen=True)
class Variant:
    """`infembed` with one thing changed."""

    options: dict[str, Any] = field(default_factory=dict)
    top: int = TOP
    by_loss: bool = False
    more_rows: bool = False  # curvature of valid and test rows


VARIANTS = {
    "as it is": Variant(),
    "all ten clusters count": Variant(top=10),
    "rows ranked by loss": Variant(by_loss=True),
    "five clusters": Variant({"slices": 5}),
    "five clusters, ranked by loss": Variant({"slices": 5}, by_loss=True),
    "normalised centroids": Variant({"clusterer": "normalised"}),
    "embeddings of length one": Variant({"unit_length": True}),
    "of length one, ranked by loss": Variant({"unit_length": True}, by_loss=True),
    "curvature of 1,500 rows": Variant(more_rows=True),
}


def pairs(folder: Path) -> None:
    rows = []
    for kind in KINDS:
        for first, second in PAIRS:
            files = sorted(folder.glob(f"trained-{kind}-*-own-{first}.json"))
            others = [file.with_name(file.name.replace(f"-own-{first}", f"-own-{second}")) for file in files]
            gaps = [precision(file) - precision(other) for file, other in zip(files, others, strict=True)]
            if len(gaps) > 1:
                rows.append([kind, first, second, over_runs(gaps)])
    table(["settings", "precision at 10 of", "less that of", "difference"], rows)


def precision(file: Path) -> float:
    return float(json.loads(file.read_text())["p10"])


def judge(path: Path, variant: Variant, seed: int) -> float:
    """Precision at 10 of the best hypothesis for each slice, as `errata bench settings` counts it."""
    with np.load(path, allow_pickle=False) as arrays:
        test = arrays["test"]
        truth = arrays["slices"][test]
        plain = Evaluation(
            labels=arrays["labels"], probs=arrays["probs"], representations={"penultimate": arrays["penultimate"]}
        )
    curvature = np.full(len(test), True) if variant.more_rows else ~test
    rows, _ = add_influence(plain, rows=curvature)
    slicer = make("infembed", seed=seed, options=variant.options).fit(rows.rows(~test))
    weights = slicer.membership(rows.rows(test))[:, : variant.top]
    if variant.by_loss:
        inside = weights >= slicer.thresholds_[: variant.top]
        weights = inside * np.asarray(rows.rows(test).losses)[:, None]
    return float(metrics.best_precision_at(weights, truth, 10, seed).mean())


def causes(folder: Path, seed: int) -> None:
    rows = []
    for kind in KINDS:
        files = [path for path in sorted(folder.glob(f"trained-{kind}-*.npz")) if kept(path)]
        if len(files) < 2:
            continue
        before = np.array([judge(path, VARIANTS["as it is"], seed) for path in files])
        for name, variant in VARIANTS.items():
            after = np.array([judge(path, variant, seed) for path in files])
            rows.append([kind, name, over_runs(after), over_runs(after - before)])
    table(["settings", "infembed", "precision at 10", "more than as it is"], rows)


def kept(path: Path) -> bool:
    """Whether the model of a setting fails on its slice."""
    with np.load(path, allow_pickle=False) as arrays:
        return any(json.loads(str(arrays["facts"]))["kept"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seed", type=int, default=0, help="that the folder was made with")
    asked = parser.parse_args()
    pairs(asked.folder)
    causes(asked.folder, asked.seed)


if __name__ == "__main__":
    main()
