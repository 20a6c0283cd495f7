"""Does it help to relabel or drop the opponents of a slice? AG News, a fifth of whose training labels are really wrong.

    python benchmarks/infembed_labels.py [--seeds 5] [--count 500]
    python benchmarks/infembed_labels.py --slices [--space words]   are rows of slices that fail mislabelled themselves?

Logistic regression on sentence embeddings learns the annotators' labels. 60% of the clean test rows are audited
(`infembed`, K = 25), the plan `labels` is made from what is confirmed, the model learns again by it, and both models
are compared in the same slices on the other 40%, which nothing has seen. Beside opponents: rows of highest training
loss, and random rows, with the same filter (their neighbours have another label); opponents with their true labels;
and all true labels, the most there is to gain. The count was fixed beforehand. `--slices`: half of the rows with
annotators' labels train the model and the other half is audited by those labels, of which a fifth are wrong; slices of
at most 10% accuracy and at least 10 rows are counted (section 4.4 of the paper). Data and cache: as of
benchmarks/infembed.py.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import errata
from bridge import kept, table
from errata import Evaluation
from errata.bench.tables import data_folder
from errata.inputs.influence.head import HeadInfluence, InfluenceOptions
from errata.slicers import make
from infembed import CLUSTERS, TOPICS, accuracy, commonest, mean_of, sentences, share, word_axes

Array = np.ndarray
HELD = 0.4
# slices that are looked at
LOW = 0.1
LEAST = 10
WAYS = ("opponents", "loss", "random")


def fitted(X: Array, labels: Array, weights: Array | None = None) -> Any:
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(C=1.0, max_iter=2000).fit(X, labels, sample_weight=weights)


def rows_of(model: Any, X: Array, labels: Array, ids: Array) -> Evaluation:
    P = model.predict_proba(X)
    return Evaluation(labels=labels, probs=P, representations={"minilm": X}, class_names=TOPICS, ids=ids)


def run_seed(X: Array, frame: pd.DataFrame, seed: int, count: int) -> list[dict[str, Any]]:
    """One split of the test rows: a line for every plan."""
    learnt = (frame["split"] == "train").to_numpy()
    true = frame["label"].to_numpy()
    said = frame["noisy_label"].to_numpy()[learnt]
    before = fitted(X[learnt], said)
    # The split is by id, so that ids in another order are another split.
    ids = np.random.default_rng(seed).permutation(int((~learnt).sum()))
    train = rows_of(before, X[learnt], said, np.arange(int(learnt.sum())) + 1_000_000)
    audited, held = errata.hold_out(rows_of(before, X[~learnt], true[~learnt], ids), share=HELD)
    audit = errata.audit(audited, train=train, methods=["infembed"], options={"infembed": {"slices": CLUSTERS}})
    wrong = said != true[learnt]
    plans = {f"{action} {by}": errata.plan_labels(audit, train, count, action=action, by=by, seed=seed)
             for by in WAYS for action in ("relabel", "drop")}  # fmt: skip
    lines = []
    for name, plan in plans.items():
        rows = plan.rows_of(train)
        after = fitted(X[learnt], plan.labels_of(train), plan.weights_of(train))
        lines.append(measured(name, audit, held, after, plan, wrong[rows]))
        if name == "relabel opponents":
            truth = said.copy()
            truth[rows] = true[learnt][rows]
            lines.append(measured("true labels of opponents", audit, held, fitted(X[learnt], truth), plan, wrong[rows]))
    whole = fitted(X[learnt], true[learnt])
    lines.append(measured("all true labels", audit, held, whole, plans["relabel opponents"], wrong))
    return [{"seed": seed, "confirmed": len(audit.confirmed), **line} for line in lines]


def measured(name: str, audit: Any, held: Evaluation, after: Any, plan: Any, wrong: Array) -> dict[str, Any]:
    """What changed on held-out rows: all of them, and those of the slices, each with the interval of `recheck`."""
    again = rows_of(after, np.asarray(held.representations["minilm"]), held.labels, held.row_ids)
    changes = errata.recheck(audit, held, again, slices=list(plan.slices)).changes
    overall = next(change for change in changes if change.id == "overall")
    inside = held_members(audit, held, plan.slices)
    error = held.errors.astype(float)
    error_after = again.errors.astype(float)
    return {
        "plan": name,
        "mislabelled": wrong,
        "n": len(held),
        "before": float(error.mean()),
        "change": float((error_after - error).mean()),
        "interval": overall.interval,
        "slice_n": int(inside.sum()),
        "slice_before": float(error[inside].mean()),
        "slice_change": float((error_after - error)[inside].mean()),
    }


def held_members(audit: Any, held: Evaluation, slices: tuple[str, ...]) -> Array:
    weights = errata.apply(audit, held)
    return np.any([weights[name] >= audit[name].threshold for name in slices], axis=0)


def told(rows: list[dict[str, Any]]) -> None:
    """Means over seeds with Student's interval; of the first seed the exact one of `recheck`."""
    lines = []
    for name in dict.fromkeys(row["plan"] for row in rows):
        own = [row for row in rows if row["plan"] == name]
        first = own[0]
        low, high = first["interval"]
        lines.append(
            [
                name,
                share(np.concatenate([row["mislabelled"] for row in own])),
                mean_of([row["change"] for row in own]),
                f"{first['change']:+.3f} ({low:+.3f} to {high:+.3f})",
                mean_of([row["slice_change"] for row in own]),
            ]
        )
    first = rows[0]
    print(
        f"\nheld-out rows a seed: {first['n']}, wrong {np.mean([row['before'] for row in rows]):.3f}; in the slices "
        f"{np.mean([row['slice_n'] for row in rows]):.0f}, wrong {np.mean([row['slice_before'] for row in rows]):.3f}; "
        f"confirmed slices {sorted({(row['seed'], row['confirmed']) for row in rows})}"
    )
    table(
        ["plan", "changed rows that were mislabelled", "change of the error rate", "seed 0, exact", "in the slices"],
        lines,
    )


def audit_annotators(X: Array, frame: pd.DataFrame, seed: int, preset: str) -> tuple[float, float] | None:
    """Of test rows labelled by annotators: who is mislabelled in slices that fail, among all errors and among all.
    Returns the first two shares, where there are slices."""
    learnt = np.flatnonzero((frame["split"] == "train").to_numpy())
    said = frame["noisy_label"].to_numpy()
    wrong = said != frame["label"].to_numpy()
    training, audited = np.array_split(np.random.default_rng(seed).permutation(learnt), 2)
    model = fitted(X[training], said[training])
    train = rows_of(model, X[training], said[training], training)
    fit = HeadInfluence.fit(train, InfluenceOptions(damping=1 / len(training), rows=None))
    test = fit.embed(rows_of(model, X[audited], said[audited], audited))
    slicer = make(f"infembed:{preset}", seed=seed, options={"slices": CLUSTERS}).fit(test)
    inside = np.zeros(len(audited), dtype=bool)
    lines = []
    for members in (slicer.membership(test) > 0.5).T:
        if members.sum() >= LEAST and accuracy(test, members) <= LOW:
            inside |= members
            named = [commonest(test, classes[members]) for classes in (test.labels, test.predictions)]
            lines.append([int(members.sum()), f"{accuracy(test, members):.2f}", *named, share(wrong[audited][members])])
    if seed == 0:
        table(["n", "accuracy", "label", "prediction", "mislabelled"], lines)
    print(
        f"\nseed {seed}, {preset}: {len(lines)} slices with {inside.sum()} rows; mislabelled in them "
        f"{share(wrong[audited][inside])}, among other errors {share(wrong[audited][test.errors & ~inside])}, "
        f"among all rows {share(wrong[audited])}",
        flush=True,
    )
    if not inside.any():
        return None
    return float(wrong[audited][inside].mean()), float(wrong[audited][test.errors & ~inside].mean())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--slices", action="store_true", help="audit rows by annotators' labels; nothing is relabelled")
    parser.add_argument("--space", choices=["minilm", "words"], default="minilm", help="what the classifier reads")
    parser.add_argument("--cache", type=Path, default=Path(tempfile.gettempdir()) / "errata-studies")
    asked = parser.parse_args()
    frame = pd.read_parquet(data_folder() / "agnews.parquet")
    if asked.space == "words":
        X = word_axes(frame["text"], (frame["split"] == "train").to_numpy())
    else:
        X = kept(asked.cache / "news.npy", lambda: sentences(frame["text"].tolist()))
    if asked.slices:
        for preset in ("recommended", "as_published"):
            made = [audit_annotators(X, frame, seed, preset) for seed in range(asked.seeds)]
            found = [shares for shares in made if shares is not None]
            if found:  # splits share rows: over splits, not over rows
                more = [inside - others for inside, others in found]
                print(f"{preset}, {len(found)} splits: {mean_of([one[0] for one in found])}, more {mean_of(more)}")
        return 0
    rows: list[dict[str, Any]] = []
    for seed in range(asked.seeds):
        rows += run_seed(X, frame, seed, asked.count)
        print(
            f"seed {seed}: " + ", ".join(f"{row['plan']} {row['change']:+.4f}" for row in rows if row["seed"] == seed),
            flush=True,
        )
    told(rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
