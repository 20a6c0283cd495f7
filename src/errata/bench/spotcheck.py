"""The SpotCheck benchmark: models with planted blindspots, and how many of them each method finds.

Two stages, each resumed from the files it wrote: `prepare` trains one model a world and stores its outputs on
all test images; `judge` runs one method, or one audit, on one world. The table is computed from those files alone.

A method alone is judged both ways: `raw`, all its sets in order of importance, and `screened`, as an audit would screen
them. An audit is judged by its confirmed slices, and beside them by its error types.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from ..core import Array, Evaluation, InputError, Progress, Source, silent
from ..core.evaluation import INFLUENCE
from ..core.membership import drop_overlapping, standing_out
from ..engine import Engine, Local, open_engine
from ..inputs.influence import SOURCE, HeadInfluence, InfluenceOptions
from ..slicers import make
from ..workflow import audit, options_of
from . import metrics
from .methods import methods_of_audit
from .recipes import RECIPES, Recipe, measure_blindspots, splits
from .results import check_same_benchmark, write, write_npz
from .scenes import Scenes, World, sample_world

Rows = Literal["positive", "both"]
Layer = Literal["own", "second"]

ATTEMPTS = 20  # worlds tried before one configuration is given up
PAINT_ROWS = 2000


@dataclass(frozen=True)
class SpotCheckBenchmark:
    """What every method is measured on. The same benchmark gives the same table, but for its seconds."""

    scale: str = "small"  # a name of RECIPES
    configs: int = 4  # worlds
    seed: int = 0
    px: int | None = None  # other than the recipe's: a SpotCheck-like benchmark
    device: str = "cpu"
    jobs: int = 1  # processes
    foreign: bool = False  # also keep the layer of a second network, which was trained on the true labels
    rows: Rows = "positive"  # judged on: images with a square, as published, or all of them, as a user's file has
    layer: Layer = "own"  # searched: the model's, or that of the second network

    def __post_init__(self) -> None:
        allowed = {"scale": tuple(RECIPES), "rows": get_args(Rows), "layer": get_args(Layer)}
        for name, values in allowed.items():
            if getattr(self, name) not in values:
                raise InputError(f"`{name}` must be one of {', '.join(values)}; got {getattr(self, name)!r}")
        if self.configs < 1:
            raise InputError(f"`configs` must be at least 1; got {self.configs}")

    @property
    def recipe(self) -> Recipe:
        """How models are trained at this scale."""
        return RECIPES[self.scale]

    @property
    def size(self) -> int:
        """Width and height of an image in pixels."""
        return self.px or self.recipe.px

    @property
    def name(self) -> str:
        """Only the published size and network may be called SpotCheck."""
        name = "SpotCheck-like"
        if self.size == 224 and self.recipe.network == "resnet18":
            name = "SpotCheck"
        return f"{name}, {self.size} px, {self.recipe.network}"

    def world_path(self, folder: Path, i: int) -> Path:
        """The file of a prepared world."""
        return folder / f"world-{i:03d}.npz"

    def judged_path(self, folder: Path, i: int, method: str) -> Path:
        """The file of one method on one world; other rows and another layer have files of their own."""
        other = [value for value in (self.rows, self.layer) if value in ("both", "second")]
        return folder / ".".join([f"judged-{i:03d}-{method.replace(':', '-')}", *other, "json"])

    def missing(self, folder: Path) -> bool:
        """Whether a world of a folder has yet to be prepared."""
        return not all(self.world_path(folder, i).exists() for i in range(self.configs))


@dataclass(frozen=True)
class SetRates:
    """Hypothesised sets of one world beside its blindspots."""

    dr: float | None  # discovery rate
    fdr: float | None  # false discovery rate
    fdr_prefix: float | None  # that of the first hypotheses up to the one that completes the discovery
    hypotheses: int
    coherence: float | None


@dataclass(frozen=True)
class MethodResult:
    """One method or one audit on one world. `sets`: `raw` and `screened`, or `confirmed` and `error_types`."""

    method: str
    sets: dict[str, SetRates]
    representation: str
    seconds: float


def run(
    benchmark: SpotCheckBenchmark,
    methods: Sequence[str],
    folder: Path,
    *,
    options: dict[str, dict[str, Any]] | None = None,
    rule: metrics.Rule | None = None,
    engine: str | Engine = "local",
    progress: Progress = silent,
) -> list[dict[str, Any]]:
    """Prepare what is missing, judge what is missing, and return the rows of the table.

    options: of methods, by their names with or without a preset. rule: when a blindspot counts as discovered. engine:
    of the methods; "ray", or its address, for worlds by workers of a Ray cluster, all of which see the folder.
    """
    folder.mkdir(parents=True, exist_ok=True)
    folder = folder.resolve()  # workers are elsewhere
    _check_folder(benchmark, folder)
    engine = open_engine(engine)
    steps = benchmark.configs * 2
    progress(f"world 1 of {benchmark.configs}", 0.0)
    worlds = [(benchmark, i, folder) for i in range(benchmark.configs)]
    for done, _ in enumerate(_run_each(1, prepare, worlds, engine), 1):
        progress(f"world {min(done + 1, benchmark.configs)} of {benchmark.configs}", done / steps)
    tasks = [
        (benchmark, folder, i, method, options or {}, rule, engine)
        for i in range(benchmark.configs)
        for method in methods
    ]
    for done, _ in enumerate(_run_each(benchmark.jobs, _judge_files, tasks, engine)):
        _, _, i, method, *_ = tasks[done]
        share = (1 + done / len(tasks)) / 2  # the first half were the models
        progress(f"{method}, world {i + 1}", share)
    return summarise(benchmark, methods, folder)


def _check_folder(benchmark: SpotCheckBenchmark, folder: Path) -> None:
    """A folder holds the worlds of one benchmark; their number may grow, and they may be judged in several ways."""
    facts = {"scale": benchmark.scale, "seed": benchmark.seed, "px": benchmark.px}
    check_same_benchmark(folder / "exam.json", json.dumps(facts))


def _run_each(
    jobs: int, function: Callable[..., Any], arguments: Iterable[tuple[Any, ...]], engine: Engine | None = None
) -> Iterable[Any]:
    """In this process, in several, or by workers of an engine; in order either way."""
    if engine is not None and not isinstance(engine, Local):
        return engine.each(_spread, arguments, function)
    if jobs == 1:
        return (function(*values) for values in arguments)
    from joblib import Parallel, delayed

    workers = Parallel(n_jobs=jobs, return_as="generator")
    results: Iterable[Any] = workers(delayed(function)(*values) for values in arguments)
    return results


def _spread(values: tuple[Any, ...], function: Callable[..., Any]) -> Any:
    return function(*values)


def prepare(benchmark: SpotCheckBenchmark, i: int, folder: Path) -> None:
    """Train world i until its model has its blindspots and is otherwise accurate; worlds that fail are replaced."""
    path = benchmark.world_path(folder, i)
    if path.exists():
        return
    for attempt in range(ATTEMPTS):
        seed = int(np.random.SeedSequence([benchmark.seed, i, attempt]).generate_state(1)[0])
        arrays, facts = train_world(benchmark, sample_world(seed))
        if facts["worked"]:
            facts = {**facts, "seed": seed, "replaced": attempt}
            write_npz(path, {**arrays, "facts": np.array(json.dumps(facts))})
            return
    raise InputError(f"no model of world {i} had its blindspots in {ATTEMPTS} attempts; train longer or on more rows")


def train_world(benchmark: SpotCheckBenchmark, world: World) -> tuple[dict[str, Array], dict[str, Any]]:
    """Outputs of the trained model on all test images, and whether it is as blind as planted."""
    from ..train import outputs

    samples = splits(world, benchmark.recipe)
    train = samples["train"]
    test = samples["test"]
    images = paint_images(train, benchmark)
    test_images = paint_images(test, benchmark)
    model = _train_network(benchmark, images, train.labels, world.seed % 2**31)
    logits, penultimate = outputs(model, test_images, device=benchmark.device)
    outcome = measure_blindspots(logits, test)
    influence = _fit_influence(model, images, benchmark)
    arrays = {
        "labels": test.truth.astype(np.int8),
        "logits": logits[:, 0],
        "penultimate": penultimate.astype(np.float16),
        "influence": influence.transform(_evaluation(test.truth, logits[:, 0], penultimate)),
        "blindspot": test.blindspot,
    }
    if benchmark.foreign and outcome.worked:
        other = _train_network(benchmark, images, train.truth, (world.seed + 1) % 2**31)
        arrays["foreign"] = outputs(other, test_images, device=benchmark.device)[1].astype(np.float16)
    return arrays, {**asdict(outcome), "worked": outcome.worked, "features": world.n_features}


def _train_network(benchmark: SpotCheckBenchmark, images: Array, labels: Array, seed: int) -> Any:
    from ..train import fit, network

    recipe = benchmark.recipe
    model = network(recipe.network, px=benchmark.size, seed=seed)
    fit(
        model,
        images,
        labels,
        epochs=recipe.epochs,
        batch=recipe.batch,
        lr=recipe.lr,
        device=benchmark.device,
        seed=seed,
    )
    return model


def _fit_influence(model: Any, train: Array, benchmark: SpotCheckBenchmark) -> HeadInfluence:
    """Of the last layer, from training images: what InfEmbed's own replication used."""
    from ..train import outputs

    options = InfluenceOptions(seed=benchmark.seed)
    logits, penultimate = outputs(model, train[options.choose_rows(len(train))], device=benchmark.device)
    labels = np.ones(len(logits), dtype=np.int64)  # labels do not bend the loss
    return HeadInfluence.fit(_evaluation(labels, logits[:, 0], penultimate), options)


def _evaluation(labels: Array, logits: Array, penultimate: Array) -> Evaluation:
    """Images with their labels, of which 1 says that there is a square."""
    return Evaluation(
        labels=labels.astype(np.int64),
        probs=1 / (1 + np.exp(-logits.astype(np.float64))),
        representations={"penultimate": penultimate},
    )


def paint_images(scenes: Scenes, benchmark: SpotCheckBenchmark) -> Array:
    """(n, px, px, 3) uint8, painted by `jobs` processes."""
    parts = [np.arange(start, min(start + PAINT_ROWS, len(scenes))) for start in range(0, len(scenes), PAINT_ROWS)]
    painted = _run_each(benchmark.jobs, Scenes.images, [(scenes.rows(part), None, benchmark.size) for part in parts])
    out = np.empty((len(scenes), benchmark.size, benchmark.size, 3), dtype=np.uint8)
    for part, images in zip(parts, painted, strict=True):
        out[part] = images
    return out


def read_world(path: Path, both: bool = False, foreign: bool = False) -> tuple[Evaluation, Array]:
    """The evaluation of a prepared world, and its true blindspots (n, B).

    both: all test images; else those with a square, as in the published benchmark. foreign: by the second network.
    """
    with np.load(path, allow_pickle=False) as arrays:
        rows = arrays["labels"] == 1
        if both:
            rows = np.ones(len(rows), dtype=bool)
        X = _unit_columns(arrays["penultimate"][rows])
        evaluation = _evaluation(arrays["labels"][rows], arrays["logits"][rows], X)
        evaluation = evaluation.with_representation(INFLUENCE, arrays["influence"][rows], SOURCE)
        if foreign:
            if "foreign" not in arrays:
                raise InputError(f"`{path}` has no layer of a second network; prepare the worlds in another folder")
            evaluation = replace(
                evaluation,
                representations={"foreign": _unit_columns(arrays["foreign"][rows])},
                sources={"foreign": Source(from_model=False)},
            )
        return evaluation, arrays["blindspot"][rows]


def _unit_columns(X: Array) -> Array:
    """Columns of unit size on average: the published Spotlight starts at tau = 1e-4 and is dark from the first step
    where a row's squared length exceeds 1e4, as it does for networks trained from scratch."""
    X = X.astype(np.float32)
    X *= np.sqrt(X.shape[1] / np.square(X, dtype=np.float64).sum(axis=1).mean())
    return X


def read_facts(path: Path) -> dict[str, Any]:
    """What is known of a prepared world: its seed, how blind its model is, how many worlds it replaced."""
    with np.load(path, allow_pickle=False) as arrays:
        facts: dict[str, Any] = json.loads(str(arrays["facts"]))
    return facts


def _judge_files(
    benchmark: SpotCheckBenchmark,
    folder: Path,
    i: int,
    method: str,
    options: dict[str, dict[str, Any]],
    rule: metrics.Rule | None,
    engine: Engine,
) -> None:
    """Judge one method on one prepared world, unless its file says it was done with these options."""
    searched = methods_of_audit(method)
    if searched is None:
        own = options_of(method, options)
    else:
        own = {name: options_of(name, options) for name in searched if options_of(name, options)}
    path = benchmark.judged_path(folder, i, method)
    if path.exists():
        done = json.loads(path.read_text())
        if done["options"] == own and "sets" in done:  # earlier versions wrote one of the two rates only
            return
    evaluation, blindspots = read_world(
        benchmark.world_path(folder, i), both=benchmark.rows == "both", foreign=benchmark.layer == "second"
    )
    judge_world = judge if searched is None else judge_audit
    result = judge_world(method, evaluation, blindspots, own, rule, engine)
    write(path, json.dumps({"options": own, **asdict(result)}).encode())


def judge(
    method: str,
    evaluation: Evaluation,
    blindspots: Array,
    options: dict[str, Any],
    rule: metrics.Rule | None = None,
    engine: Engine | None = None,
) -> MethodResult:
    """Fit on the test rows, as published, and compare the hard sets with the planted blindspots."""
    rule = rule or metrics.Rule()
    start = time.perf_counter()
    slicer = make(method, options=options)
    if hasattr(slicer, "engine"):
        slicer.engine = engine or Local()
    slicer.fit(evaluation)
    h = slicer.membership(evaluation) >= slicer.thresholds_
    seconds = time.perf_counter() - start
    sets = {"raw": sort_by_importance(h, evaluation), "screened": screen(h, evaluation)}
    return MethodResult(
        method=method,
        sets={name: _rates(hard, evaluation, blindspots, rule) for name, hard in sets.items()},
        representation=getattr(slicer, "representation_", None) or "none",
        seconds=seconds,
    )


def judge_audit(
    method: str,
    evaluation: Evaluation,
    blindspots: Array,
    options: dict[str, Any],
    rule: metrics.Rule | None = None,
    engine: Engine | None = None,
) -> MethodResult:
    """Audit the test rows as a user does, half of them held out, and compare all rows of what is confirmed.

    All confirmed slices count, however many: each of them is a claim. options: of the methods, by their names.
    """
    rule = rule or metrics.Rule()
    start = time.perf_counter()
    result = audit(evaluation, methods=methods_of_audit(method) or None, options=options, engine=engine or "local")
    seconds = time.perf_counter() - start
    confirmed = [slice_ for slice_ in result.confirmed if slice_.side == "hard"]
    sets = {"confirmed": confirmed, "error_types": getattr(result, "error_types", ())}
    rates = {}
    for name, slices in sets.items():
        h = np.zeros((len(evaluation), len(slices)), dtype=bool)
        for j, slice_ in enumerate(slices):
            h[:, j] = slice_.members
        rates[name] = _rates(h, evaluation, blindspots, replace(rule, top=max(len(slices), 1)))
    names = dict.fromkeys(getattr(slicer, "representation_", None) or "none" for slicer in result.slicers.values())
    return MethodResult(method=method, sets=rates, representation=", ".join(names), seconds=seconds)


def _rates(h: Array, evaluation: Evaluation, blindspots: Array, rule: metrics.Rule) -> SetRates:
    rates = metrics.discovery(h, blindspots, rule)
    top = h[:, : rule.top]
    X = np.asarray(next(iter(evaluation.representations.values())), dtype=np.float64)
    return SetRates(
        dr=rates.dr,
        fdr=rates.fdr,
        fdr_prefix=metrics.discovery(h, blindspots, replace(rule, fdr_scope="prefix")).fdr,
        hypotheses=int(top.any(axis=0).sum()),
        coherence=metrics.coherence(top, X),
    )


def sort_by_importance(h: Array, evaluation: Evaluation) -> Array:
    """(n, s) the same sets, ordered by number of errors times error rate."""
    wrong = evaluation.errors
    assert wrong is not None
    errors = (h & wrong[:, None]).sum(axis=0)
    return h[:, np.argsort(-errors * errors / np.maximum(h.sum(axis=0), 1), kind="stable")]


def screen(h: Array, evaluation: Evaluation) -> Array:
    """(n, s) what an audit would then test: sets that stand out, near-duplicates merged, in order of importance."""
    assert evaluation.errors is not None
    h = sort_by_importance(h[:, standing_out(h, evaluation.errors.astype(np.float64))], evaluation)
    return h[:, drop_overlapping(h, np.arange(h.shape[1]))]


def summarise(benchmark: SpotCheckBenchmark, methods: Sequence[str], folder: Path) -> list[dict[str, Any]]:
    """One row a method: means over worlds with standard errors, as `raw_dr`, `raw_dr_se` and so on."""
    worlds = range(benchmark.configs)
    replaced = sum(read_facts(benchmark.world_path(folder, i))["replaced"] for i in worlds)
    rows = []
    for method in methods:
        name = method
        preset = ""
        if methods_of_audit(method) is None:
            name, _, preset = method.partition(":")
            preset = preset or "recommended"
        results = [json.loads(benchmark.judged_path(folder, i, method).read_text()) for i in worlds]
        row: dict[str, Any] = {"method": name, "preset": preset, "configs": benchmark.configs}
        row["rows"] = benchmark.rows
        row["layer"] = benchmark.layer
        row["sets"] = []
        for kind in results[0]["sets"]:
            rates = [result["sets"][kind] for result in results]
            # An audit whose methods never read the outcome has no error types, and so no rate of them.
            if kind != "error_types" or any(world["hypotheses"] for world in rates):
                row["sets"].append(kind)
                row |= _summarise_sets(kind, rates)
        row["seconds"] = float(np.mean([result["seconds"] for result in results]))
        row["representation"] = results[0]["representation"]
        row["replaced"] = replaced
        row["exam"] = benchmark.name
        rows.append(row)
    return rows


def _summarise_sets(kind: str, sets: Sequence[dict[str, Any]]) -> dict[str, Any]:
    row: dict[str, Any] = {}
    for key in ("dr", "fdr", "fdr_prefix", "hypotheses", "coherence"):
        row[f"{kind}_{key}"], error = metrics.mean_and_error([rates[key] for rates in sets])
        if key in ("dr", "fdr", "fdr_prefix"):
            row[f"{kind}_{key}_se"] = error
    return row
