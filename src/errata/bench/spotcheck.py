"""The SpotCheck exam: models with planted blindspots, and how many of them each method finds.

Two stages, each resumable from the files it wrote: `prepare` trains one model a world and keeps what it does
on positive test pictures; `judge` runs one method on one world. The table is made from those files alone.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..core import Array, Evaluation, InputError
from ..core.membership import fold, standing_out
from ..inputs.influence import REPRESENTATION, SOURCE, HeadInfluence, InfluenceOptions
from ..slicers import make
from ..workflow import options_of
from . import metrics
from .files import hold_one_exam, write, write_npz
from .recipes import RECIPES, Recipe, planted, splits
from .scenes import Scenes, World, sample_world

ATTEMPTS = 20  # worlds tried before one configuration is given up
PAINT_ROWS = 2000

Progress = Callable[[str, float], None]


@dataclass(frozen=True)
class Exam:
    """What is asked. The same exam gives the same table, but for its seconds."""

    scale: str = "small"
    configs: int = 4
    seed: int = 0
    px: int | None = None  # other than the recipe's: a SpotCheck-like exam
    device: str = "cpu"
    jobs: int = 1

    def __post_init__(self) -> None:
        if self.scale not in RECIPES:
            raise InputError(f"`scale` must be one of {', '.join(RECIPES)}; got {self.scale!r}")
        if self.configs < 1:
            raise InputError(f"`configs` must be at least 1; got {self.configs}")

    @property
    def recipe(self) -> Recipe:
        return RECIPES[self.scale]

    @property
    def size(self) -> int:
        return self.px or self.recipe.px

    @property
    def name(self) -> str:
        """Only the published size and network may be called SpotCheck."""
        like = "" if self.size == 224 and self.recipe.network == "resnet18" else "-like"
        return f"SpotCheck{like}, {self.size} px, {self.recipe.network}"


@dataclass(frozen=True)
class Judged:
    """One method on one world."""

    method: str
    dr: float | None
    fdr: float | None
    fdr_prefix: float | None
    hypotheses: int
    coherence: float | None
    representation: str
    seconds: float


def run(
    exam: Exam,
    methods: Sequence[str],
    folder: Path,
    *,
    options: dict[str, dict[str, Any]] | None = None,
    rule: metrics.Rule | None = None,
    progress: Progress | None = None,
) -> list[dict[str, Any]]:
    """Prepare what is missing, judge what is missing, and return the rows of the table."""
    tell = progress or (lambda what, share: None)
    folder.mkdir(parents=True, exist_ok=True)
    _same_exam(exam, folder)
    steps = exam.configs * 2
    for i in range(exam.configs):
        tell(f"world {i + 1} of {exam.configs}", i / steps)
        prepare(exam, i, folder)
    asked = [(i, method) for i in range(exam.configs) for method in methods]
    for done, _ in enumerate(_each(exam.jobs, _judge_files, [(folder, i, m, options or {}, rule) for i, m in asked])):
        i, method = asked[done]
        tell(f"{method}, world {i + 1}", (exam.configs + exam.configs * done / len(asked)) / steps)
    return table(exam, methods, folder, options or {})


def _same_exam(exam: Exam, folder: Path) -> None:
    """A folder holds the files of one exam; its number of worlds may grow."""
    facts = {name: value for name, value in asdict(exam).items() if name not in ("configs", "jobs", "device")}
    hold_one_exam(folder / "exam.json", json.dumps(facts))


def _each(jobs: int, function: Callable[..., Any], arguments: Iterable[tuple[Any, ...]]) -> Iterable[Any]:
    """In this process, or in several; in order either way."""
    if jobs == 1:
        return (function(*given) for given in arguments)
    from joblib import Parallel, delayed

    workers = Parallel(n_jobs=jobs, return_as="generator")
    results: Iterable[Any] = workers(delayed(function)(*given) for given in arguments)
    return results


def prepare(exam: Exam, i: int, folder: Path) -> None:
    """Train world i until its model has its blindspots and is otherwise accurate; worlds that fail are replaced."""
    path = folder / f"world-{i:03d}.npz"
    if path.exists():
        return
    for attempt in range(ATTEMPTS):
        seed = int(np.random.SeedSequence([exam.seed, i, attempt]).generate_state(1)[0])
        arrays, facts = trained_world(exam, sample_world(seed))
        if facts["worked"]:
            facts = {**facts, "seed": seed, "replaced": attempt}
            write_npz(path, {**arrays, "facts": np.array(json.dumps(facts))})
            return
    raise InputError(f"no model of world {i} had its blindspots in {ATTEMPTS} attempts; train longer or on more rows")


def trained_world(exam: Exam, world: World) -> tuple[dict[str, Array], dict[str, Any]]:
    """What the trained model does on positive test pictures, and whether it is as blind as planted."""
    from ..train import fit, network, outputs

    recipe = exam.recipe
    drawn = splits(world, recipe)
    train, test = drawn["train"], drawn["test"]
    model = network(recipe.network, px=exam.size, seed=world.seed % 2**31)
    shown = pictures(train, exam)
    fit(
        model,
        shown,
        train.labels,
        epochs=recipe.epochs,
        batch=recipe.batch,
        lr=recipe.lr,
        device=exam.device,
        seed=world.seed % 2**31,
    )
    logits, penultimate = outputs(model, pictures(test, exam), device=exam.device)
    found = planted(logits, test)
    positive = test.truth == 1
    arrays = {
        "logits": logits[positive, 0],
        "penultimate": penultimate[positive].astype(np.float16),
        "influence": _influence(model, shown, exam).transform(_positives(logits[positive, 0], penultimate[positive])),
        "blindspot": test.blindspot[positive],
    }
    return arrays, {**asdict(found), "worked": found.worked, "features": world.n_features}


def _influence(model: Any, train: Array, exam: Exam) -> HeadInfluence:
    """Of the last layer, from training pictures: what InfEmbed's own replication used."""
    from ..train import outputs

    options = InfluenceOptions(seed=exam.seed)
    logits, penultimate = outputs(model, train[options.choose_rows(len(train))], device=exam.device)
    return HeadInfluence.fit(_positives(logits[:, 0], penultimate), options)  # labels do not bend the loss


def _positives(logits: Array, penultimate: Array) -> Evaluation:
    """What a model says of pictures with a square."""
    return Evaluation(
        labels=np.ones(len(logits), dtype=np.int64),
        probs=1 / (1 + np.exp(-logits.astype(np.float64))),
        representations={"penultimate": penultimate},
    )


def pictures(scenes: Scenes, exam: Exam) -> Array:
    """(n, px, px, 3) uint8, painted by several processes where asked."""
    parts = [np.arange(start, min(start + PAINT_ROWS, len(scenes))) for start in range(0, len(scenes), PAINT_ROWS)]
    painted = _each(exam.jobs, _painted, [(scenes.rows(part), exam.size) for part in parts])
    out = np.empty((len(scenes), exam.size, exam.size, 3), dtype=np.uint8)
    for part, images in zip(parts, painted, strict=True):
        out[part] = images
    return out


def _painted(scenes: Scenes, px: int) -> Array:
    return scenes.images(None, px)


def evaluation_of(path: Path) -> tuple[Evaluation, Array]:
    """The evaluation of a prepared world, and its true blindspots (n, B)."""
    with np.load(path, allow_pickle=False) as arrays:
        X = arrays["penultimate"].astype(np.float32)
        # Columns of unit size on average: the published Spotlight starts at tau = 1e-4 and is dark from the first
        # step where a row's squared length exceeds 1e4, as it does for networks trained from scratch.
        X *= np.sqrt(X.shape[1] / np.square(X, dtype=np.float64).sum(axis=1).mean())
        evaluation = _positives(arrays["logits"], X).with_representation(REPRESENTATION, arrays["influence"], SOURCE)
        return evaluation, arrays["blindspot"]


def facts_of(path: Path) -> dict[str, Any]:
    with np.load(path, allow_pickle=False) as arrays:
        facts: dict[str, Any] = json.loads(str(arrays["facts"]))
    return facts


def _judge_files(
    folder: Path, i: int, method: str, options: dict[str, dict[str, Any]], rule: metrics.Rule | None
) -> None:
    """Judge one method on one prepared world, unless its file says it was done with these options."""
    given = options_of(method, options)
    path = folder / f"judged-{i:03d}-{method.replace(':', '-')}.json"
    if path.exists() and json.loads(path.read_text())["options"] == given:
        return
    evaluation, blindspots = evaluation_of(folder / f"world-{i:03d}.npz")
    judged = judge(method, evaluation, blindspots, given, rule)
    write(path, json.dumps({"options": given, **asdict(judged)}).encode())


def judge(
    method: str, evaluation: Evaluation, blindspots: Array, options: dict[str, Any], rule: metrics.Rule | None = None
) -> Judged:
    """Fit on the positive test rows, as published, and compare the hard sets with the planted blindspots."""
    rule = rule or metrics.Rule()
    start = time.perf_counter()
    slicer = make(method, options=options).fit(evaluation)
    h = slicer.membership(evaluation) >= slicer.thresholds_
    seconds = time.perf_counter() - start
    published = method.endswith(":as_published")
    h = by_importance(h, evaluation) if published else screened(h, evaluation)
    rates = metrics.discovery(h, blindspots, rule)
    prefix = metrics.discovery(
        h, blindspots, metrics.Rule(rule.precision, rule.recall, rule.top, rule.strict, "prefix")
    )
    used = getattr(slicer, "representation_", None)
    X = np.asarray(evaluation.representations["penultimate"], dtype=np.float64)
    top = h[:, : rule.top]
    close = metrics.coherence(top, X)
    return Judged(method, rates.dr, rates.fdr, prefix.fdr, int(top.any(axis=0).sum()), close, used or "none", seconds)


def by_importance(h: Array, evaluation: Evaluation) -> Array:
    """(n, s) the same sets, ordered by number of errors times error rate."""
    wrong = evaluation.errors
    assert wrong is not None
    errors = (h & wrong[:, None]).sum(axis=0)
    return h[:, np.argsort(-errors * errors / np.maximum(h.sum(axis=0), 1), kind="stable")]


def screened(h: Array, evaluation: Evaluation) -> Array:
    """(n, s) what an audit would go on to test: sets that stand out, near-duplicates folded, in order of importance."""
    assert evaluation.errors is not None
    h = by_importance(h[:, standing_out(h, evaluation.errors.astype(np.float64))], evaluation)
    return h[:, fold(h, np.arange(h.shape[1]))]


def table(exam: Exam, methods: Sequence[str], folder: Path, options: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """One row a method: means over worlds with standard errors."""
    replaced = sum(facts_of(folder / f"world-{i:03d}.npz")["replaced"] for i in range(exam.configs))
    rows = []
    for method in methods:
        name, _, preset = method.partition(":")
        files = [folder / f"judged-{i:03d}-{method.replace(':', '-')}.json" for i in range(exam.configs)]
        judged = [json.loads(path.read_text()) for path in files]
        row: dict[str, Any] = {"method": name, "preset": preset or "recommended", "configs": exam.configs}
        for key in ("dr", "fdr", "fdr_prefix", "hypotheses", "coherence"):
            row[key], error = metrics.mean_and_error([one[key] for one in judged])
            if key in ("dr", "fdr", "fdr_prefix"):
                row[f"{key}_se"] = error
        row["seconds"] = float(np.mean([one["seconds"] for one in judged]))
        row["representation"], row["replaced"], row["exam"] = judged[0]["representation"], replaced, exam.name
        rows.append(row)
    return rows
