"""One table of ratios: what takes how long here, and with the tool that people would use otherwise.

    python benchmarks/scoreboard.py                      all comparisons, as markdown; `make bench` runs this
    python benchmarks/scoreboard.py spotlight domino     some of them
    python benchmarks/scoreboard.py --install-peers      first install the other tools into .venv-peers, beside .venv

Every line is a process of its own, on one thread, with seed 0. Times are CPU seconds, so that another load on the
machine changes them little; ours is the best of a few rounds. A ratio above 1 says that ours is faster. Peers that are
not installed are named, and their line is left out. A line that takes longer than its limit is cut off, and says so.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import sysconfig
import time
import venv
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
PEERS = HERE.parent / ".venv-peers"
# Without their dependencies, which this environment has: pip would fetch another torch.
PACKAGES = (
    "accelerate", "divexplorer", "einconv", "einops", "igraph", "kronfluence", "mlxtend", "opt-einsum",
    "psutil", "python-igraph", "sliceline", "termcolor", "texttable",
)  # fmt: skip
VERSIONS = ("numpy", "scipy", "scikit-learn", "torch", "captum", "kronfluence", "sliceline", "divexplorer")
SEED = 0
LIMIT = 300  # seconds of a line


@dataclass(frozen=True)
class Line:
    """One comparison."""

    what: str
    n: str  # the size of the problem
    peer: str
    ours: float  # CPU seconds
    theirs: float
    note: str = ""

    @property
    def ratio(self) -> float:
        return self.theirs / self.ours


def cpu(work: Callable[[], Any], rounds: int = 1) -> tuple[float, Any]:
    """The fewest CPU seconds of a few rounds, and what the last returned."""
    best = float("inf")
    for _ in range(rounds):
        start = time.process_time()
        result = work()
        best = min(best, time.process_time() - start)
    return best, result


# --- comparisons ------------------------------------------------------------------------------------------------


def spotlight_step() -> list[Line]:
    """The published step beside ours, and a published run beside the recommended search."""
    import numpy as np

    import spotlight
    from errata.bench.loss_problems import planted
    from errata.slicers.spotlight.reader import Reader
    from errata.slicers.spotlight.slicer import AdamSettings, published_sphere, recommended_sphere

    X, rate, _ = planted(50_000, 512, 40, {0.02: 0.6, 0.05: 0.5}, seed=SEED)
    X = X.astype(np.float32)
    losses = (np.random.default_rng(SEED + 1).random(len(X)) < rate).astype(float)
    steps = 40
    theirs, _ = cpu(lambda: spotlight.published_step(X, losses, steps=3))
    theirs /= 4
    settings = AdamSettings(0.02 * len(X), 1.0, 1e-2, 10, steps, None)
    ours, _ = cpu(lambda: published_sphere(Reader(X), losses, settings), rounds=2)
    run, _ = cpu(lambda: recommended_sphere(Reader(X), losses, 0.02 * len(X)))
    n = "50,000 x 512"
    return [
        Line("a step of Spotlight", n, "the published step (torch)", ours / steps, theirs, "`as_published`, same step"),
        Line(
            "a light of Spotlight", n, "5,000 published steps", run, 5000 * theirs, "`recommended`; theirs from 4 steps"
        ),
    ]


def influence_head() -> list[Line]:
    """Influence embeddings of the last layer, by captum's Arnoldi iteration and ours."""
    import torch

    import influence

    torch.manual_seed(SEED)
    model, rows = influence.head_problem()
    theirs, (_, other) = cpu(lambda: influence.peer(model, rows, ["1"], 100, 50, 5000))
    ours, (_, embeddings) = cpu(lambda: influence.head(model, rows, 100, 50), rounds=3)
    close = influence.cosines(embeddings, other).min()
    note = f"with collecting the layer; the ten leading directions agree, cosine at least {close:.3f}"
    return [Line("influence, last layer", "5,000 x 512, 10 classes", "captum, Arnoldi", ours, theirs, note)]


def influence_layers() -> list[Line]:
    """Influence of all convolutions of a small ResNet, by captum and by kronfluence."""
    import torch
    from torch import nn

    import influence

    torch.manual_seed(SEED)
    model, rows = influence.layers_problem()
    layers = [name for name, module in model.named_modules() if isinstance(module, nn.Conv2d | nn.Linear)]
    ours, (_, embeddings) = cpu(lambda: influence.whole(model, rows, layers, 100, 20), rounds=2)
    theirs, (_, other) = cpu(lambda: influence.peer(model, rows, layers, 100, 20, 256))
    close = influence.cosines(embeddings, other).min()
    note = f"the ten leading directions agree, cosine at least {close:.3f}"
    return [Line("influence, all layers", "256 images, small ResNet", "captum, Arnoldi", ours, theirs, note)]


def influence_ekfac() -> list[Line]:
    """Influence of 256 training images on each other, by kronfluence's EKFAC and by our embeddings."""
    import tempfile

    import torch
    from kronfluence.analyzer import Analyzer, prepare_model
    from kronfluence.task import Task
    from torch import nn

    import influence

    class Classification(Task):
        def compute_train_loss(self, batch: Any, model: Any, sample: bool = False) -> Any:
            logits = model(batch[0])
            labels = torch.multinomial(logits.detach().softmax(1), 1).ravel() if sample else batch[1]
            return nn.functional.cross_entropy(logits, labels, reduction="sum")

        def compute_measurement(self, batch: Any, model: Any) -> Any:
            return nn.functional.cross_entropy(model(batch[0]), batch[1], reduction="sum")

    torch.manual_seed(SEED)
    model, rows = influence.layers_problem()
    layers = [name for name, module in model.named_modules() if isinstance(module, nn.Conv2d | nn.Linear)]

    def pairs() -> Any:
        _, embeddings = influence.whole(model, rows, layers, 100, 20)
        return embeddings @ embeddings.T

    ours, _ = cpu(pairs, rounds=2)
    with tempfile.TemporaryDirectory() as folder:
        task = Classification()
        analyzer = Analyzer("small", prepare_model(model, task), task, cpu=True, output_dir=folder)

        def factors_and_scores() -> None:
            analyzer.fit_all_factors("ekfac", rows, per_device_batch_size=64)
            analyzer.compute_pairwise_scores(
                "pairs", "ekfac", rows, rows, per_device_query_batch_size=64, per_device_train_batch_size=64
            )

        theirs, _ = cpu(factors_and_scores)
    note = "another approximation of the same Hessian: the scores differ"
    return [Line("influence of all pairs", "256 images, small ResNet", "kronfluence, EKFAC", ours, theirs, note)]


def directions_svc() -> list[Line]:
    """A linear SVM in each class, beside a loop of scikit-learn's SVC over the same grid and folds."""
    import numpy as np

    import directions
    from errata.slicers.directions.slicer import Directions

    lines = []
    for classes, rows, timed in ((1000, 50, 60), (10, 5000, 1)):
        found = directions.problem(classes, rows, 1)
        slicer = Directions(permutations=0, slices=None, advanced={"nested": False})
        ours, _ = cpu(lambda slicer=slicer, found=found: slicer.fit(found.evaluation))
        Z = slicer._standard(found.X)
        theirs = 0.0
        counted = 0
        for c in range(timed):
            y = np.where(found.wrong[found.labels == c], -1, 1)
            if min((y < 0).sum(), (y > 0).sum()) >= 2:
                seconds, _ = cpu(lambda Z=Z[found.labels == c], y=y: directions.loop(Z, y))
                theirs += seconds
                counted += 1
        note = f"theirs from {counted} of the classes"
        n = f"{classes:,} classes of {rows:,} x {directions.D}"
        lines.append(Line("failure directions", n, "a loop of SVC", ours, theirs * classes / counted, note))
    return lines


def information() -> list[Line]:
    """Mutual information of features and failure, beside scikit-learn's."""
    from sklearn.feature_selection import mutual_info_classif

    import barlow

    X, failed = barlow.problem(1.0, SEED)
    ours, found = cpu(lambda: barlow.threshold_information(X, failed), rounds=5)
    theirs, other = cpu(lambda: mutual_info_classif(X, failed, random_state=SEED))
    note = f"{len(barlow.top(found) & barlow.top(other))} of the first {barlow.CHOSEN} features are the same"
    return [Line("features that tell failures", "1,300 x 2,048", "mutual_info_classif", ours, theirs, note)]


def mixture() -> list[Line]:
    """Twenty steps of Domino's EM, beside those of scikit-learn's diagonal mixture."""
    import domino

    rows, shares = domino.problem(SEED)
    variance = domino.Variance(rows.Z.var(axis=0), added=1e-6)
    start = domino.maximise(domino.sums_of(shares, rows), variance)
    ours, _ = cpu(lambda: domino.ours(rows, shares, variance), rounds=2)
    theirs, _ = cpu(lambda: domino.peer(rows, start), rounds=2)
    n = f"{domino.N:,} x {domino.D}, {domino.COMPONENTS} components"
    note = "ours has labels and predictions too"
    return [Line("20 steps of Domino's mixture", n, "GaussianMixture, diagonal", ours, theirs, note)]


def rules() -> list[Line]:
    """All conjunctions of three bins of Adult, and the whole search, beside sliceline and DivExplorer."""
    import tempfile
    from importlib.util import find_spec

    import rules

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "adult.npz"
        rules.write_adult(path)
        installed = [name for name in ("sliceline", "divexplorer") if find_spec(name)]
        facts = {name: rules.run_one(name, path) for name in ("cells", "search", "product", *installed)}
    n = "Adult: 32,561 x 14, depth 3"
    counts = "counts of all conjunctions"
    cells = facts["cells"]["cpu"]
    same = facts["cells"]["digest"] == facts["product"]["digest"]
    lines = [Line(counts, n, "a matrix product", cells, facts["product"]["cpu"], f"the same counts: {same}")]
    notes = {"sliceline": "theirs: the best 20, pruned", "divexplorer": "theirs: of any length"}
    for name in installed:
        lines.append(Line(counts, n, name, cells, facts[name]["cpu"], notes[name]))
    if "sliceline" in installed:
        note = "ours also cuts columns, prices and refines"
        theirs = facts["sliceline"]["cpu"]
        lines.append(Line("a search for rules", n, "sliceline", facts["search"]["cpu"], theirs, note))
    return lines


COMPARISONS: dict[str, Callable[[], list[Line]]] = {
    "spotlight": spotlight_step,
    "head": influence_head,
    "layers": influence_layers,
    "ekfac": influence_ekfac,
    "directions": directions_svc,
    "information": information,
    "domino": mixture,
    "rules": rules,
}
NEED_PEERS = {"ekfac", "rules"}


# --- the table --------------------------------------------------------------------------------------------------


def install_peers() -> None:
    """Make .venv-peers: the other tools, and behind them the packages of this environment."""
    venv.create(PEERS, with_pip=True)
    python = str(PEERS / "bin" / "python")
    site = subprocess.check_output(
        [python, "-c", "import sysconfig; print(sysconfig.get_paths()['purelib'])"], text=True
    )
    Path(site.strip(), "this-environment.pth").write_text(sysconfig.get_paths()["purelib"] + "\n", encoding="utf-8")
    subprocess.run([python, "-m", "pip", "install", "--quiet", "--no-deps", *PACKAGES], check=True)


def measure(name: str, peer_python: str, limit: int) -> tuple[list[Line], str]:
    """The lines of a comparison, or why there are none."""
    python = peer_python if name in NEED_PEERS else sys.executable
    one = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    try:
        done = subprocess.run(
            [python, __file__, "--one", name],
            capture_output=True,
            text=True,
            timeout=limit,
            env={**os.environ, **one, "PYTHONPATH": os.pathsep.join([str(HERE.parent / "src"), str(HERE)])},
        )
    except subprocess.TimeoutExpired:
        return [], f"cut off after {limit} s"
    if done.returncode:
        reason = done.stderr.strip().splitlines()[-1]
        missing = reason.partition("ModuleNotFoundError: No module named ")[2]
        return [], f"{missing} is not installed; see --install-peers" if missing else f"failed: {reason}"
    return [Line(**fields) for fields in json.loads(done.stdout.splitlines()[-1])], ""


HEAD = "| what | size | peer | ours, CPU s | peer, CPU s | ratio | comparison | |\n" + "|---" * 8 + "|"


def row(name: str, line: Line) -> str:
    """A line as markdown."""
    cells = [line.what, line.n, line.peer, seconds(line.ours), seconds(line.theirs), f"{line.ratio:.3g}"]
    return "| " + " | ".join([*cells, f"`{name}`", line.note]) + " |"


def seconds(value: float) -> str:
    return f"{value:.3g}" if value < 100 else f"{value:,.0f}"


def versions(python: str) -> str:
    """Of the packages that an interpreter has."""
    code = "import sys, importlib.metadata as m; here = {d.name.lower(): d.version for d in m.distributions()}\n"
    code += "for name in sys.argv[1:]: print(name, here.get(name, 'not installed'))"
    return ", ".join(subprocess.check_output([python, "-c", code, *VERSIONS], text=True).splitlines())


def machine(python: str) -> str:
    """What all of it was measured on."""
    info = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    model = next((line.partition(":")[2].strip() for line in info if "model name" in line), platform.processor())
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    software = f"Python {platform.python_version()}, {versions(python)}"
    return f"{model}, {os.cpu_count()} cores, one thread; load {load}; {software}; seed {SEED}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(COMPARISONS)}; default: all")
    parser.add_argument("--one", choices=sorted(COMPARISONS), help="measure one comparison, here")
    parser.add_argument("--install-peers", action="store_true", help="first install the other tools into .venv-peers")
    parser.add_argument("--peer-python", default=None, help="the interpreter that has them; default: .venv-peers's")
    parser.add_argument("--limit", type=int, default=LIMIT, help="seconds of a comparison")
    given = parser.parse_args()
    if given.one:
        print(json.dumps([asdict(line) for line in COMPARISONS[given.one]()]))
        return 0
    if given.install_peers:
        install_peers()
    own = PEERS / "bin" / "python"
    python = given.peer_python or (str(own) if own.exists() else sys.executable)
    print(f"{machine(python)}\n", flush=True)
    print(HEAD, flush=True)
    for name in given.names or COMPARISONS:
        began = time.monotonic()
        lines, reason = measure(name, python, given.limit)
        for line in lines:
            print(row(name, line), flush=True)
        print(f"{name}: {reason or 'measured'}, {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
