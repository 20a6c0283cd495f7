"""Workers of a Ray cluster: the bits of a local engine, whoever dies on the way, and nothing left behind."""

from __future__ import annotations

import importlib.util
import json
import os
import random
import secrets
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import errata
from errata.bench import spotcheck
from errata.core import ErrataError, InputError, RowView
from errata.engine import Cluster, Local, open_engine, parts, parts_of
from errata.engine.workers import AHEAD
from errata.slicers.directions import Directions

# Not imported here: the engine sets what Ray reads when it is imported.
if importlib.util.find_spec("ray") is None:
    pytest.skip("Ray is not installed: pip install 'errata[ray]'", allow_module_level=True)

ROWS = 600_000  # of 16 columns of doubles: five parts


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(workers=2) as engine:
        yield engine


@pytest.fixture(scope="module")
def X() -> Any:
    return np.random.default_rng(0).normal(size=(ROWS, 16))


@pytest.fixture(scope="module")
def file(X: Any, tmp_path_factory: Any) -> Path:
    path: Path = tmp_path_factory.mktemp("map") / "x.npy"
    np.save(path, X)
    return path


def moments(block: Any, centre: Any) -> tuple[Any, ...]:
    offset = block - centre
    return len(block), offset.sum(axis=0), offset.T @ offset


def local_total(*columns: Any) -> Any:
    return Local(threads=2).hold(*columns).total(moments, np.ones(16))


def same_bits(a: Any, b: Any) -> bool:
    return all(np.array_equal(x, y) for x, y in zip(a, b, strict=True))


def backing(block: Any) -> tuple[bool, int, Any]:
    """Whether a block is mapped from a file, who says so, and its strides."""
    base = block
    while isinstance(base, np.ndarray) and not isinstance(base, np.memmap):
        base = base.base
    return isinstance(base, np.memmap), os.getpid(), block.strides


@pytest.mark.parametrize("order", ["C", "F"])
def test_totals_have_the_bits_of_a_local_engine(cluster: Cluster, X: Any, order: Any) -> None:
    X = np.asarray(X, order=order)
    assert len(parts_of(X)) > 4
    with cluster.hold(X) as rows:
        first = rows.total(moments, np.ones(16))
        again = rows.total(moments, np.ones(16))  # of the parts that are held by now
    assert same_bits(first, local_total(X))
    assert same_bits(again, first)


def test_parts_stay_where_they_are_and_go_when_they_are_let_go(cluster: Cluster, X: Any) -> None:
    with cluster.hold(X) as rows:
        places = [[place for _, (_, place, _) in rows.each(backing)] for _ in range(2)]
        assert places[0] == places[1]
        assert len(set(places[0])) == 2
        assert sum(len(slot.held) for slot in cluster.pool.slots) == len(rows.parts)
    assert sum(len(slot.held) for slot in cluster.pool.slots) == 0


def test_a_mapped_file_is_read_where_it_lies(cluster: Cluster, X: Any, file: Path) -> None:
    mapped = np.load(file, mmap_mode="r", allow_pickle=False)
    later = mapped[1000:, 2:]
    with cluster.hold(mapped, mapped[:, 3]) as rows:
        assert all(is_mapped for _, (is_mapped, _, _) in rows.each(first_backing))
        assert sum(size for slot in cluster.pool.slots for size in slot.held.values()) == 0
    with cluster.hold(later) as rows:
        assert same_bits(rows.total(moments, np.ones(14)), Local(threads=2).hold(later).total(moments, np.ones(14)))
        assert next(rows.each(backing))[1][2] == later.strides


def first_backing(block: Any, other: Any) -> Any:
    return backing(block)


def test_some_rows_of_a_file_travel_as_their_numbers(cluster: Cluster, X: Any, file: Path) -> None:
    mapped = np.load(file, mmap_mode="r", allow_pickle=False)
    index = np.random.default_rng(1).permutation(ROWS)[: ROWS - 7]
    view = RowView(mapped, index)
    with cluster.hold(view) as rows:
        assert same_bits(rows.total(moments, np.ones(16)), local_total(X[index]))
        assert sum(size for slot in cluster.pool.slots for size in slot.held.values()) == index.nbytes


def test_where_a_file_is_not_seen_its_rows_are_sent(cluster: Cluster, X: Any, file: Path, monkeypatch: Any) -> None:
    mapped = np.load(file, mmap_mode="r", allow_pickle=False)
    # What this process sees of the file is not what workers see, as if theirs were another machine's.
    monkeypatch.setattr("errata.engine.travel.file_stamp", lambda path: (1, 1))
    with cluster.hold(mapped) as rows:
        assert not any(is_mapped for _, (is_mapped, _, _) in rows.each(backing))
        assert same_bits(rows.total(moments, np.ones(16)), local_total(X))
        assert list(cluster.each(read_sum, [0], mapped)) == [(False, float(mapped[:, 0].sum()))]
    for slot in cluster.pool.slots:
        assert slot.blind
        slot.blind = False


def test_a_deleted_file_is_read_by_who_still_has_it(cluster: Cluster, X: Any, tmp_path: Path) -> None:
    path = tmp_path / "gone.npy"
    np.save(path, X)
    mapped = np.load(path, mmap_mode="r", allow_pickle=False)
    path.unlink()
    with cluster.hold(mapped) as rows:
        assert same_bits(rows.total(moments, np.ones(16)), local_total(X))


def sum_by_group(part: errata.Evaluation, weight: float) -> tuple[Any, ...]:
    assert part.media is None
    return np.bincount(part.metadata["m"], part.losses * weight), part.representations["x"].sum(axis=0)


def test_an_evaluation_is_a_column(cluster: Cluster, X: Any, file: Path) -> None:
    evaluation = errata.Evaluation(
        losses=np.abs(X[:, 0]),
        representations={"x": np.load(file, mmap_mode="r", allow_pickle=False)},
        metadata={"m": np.arange(ROWS) % 7},
    )
    for rows_ in (evaluation, evaluation.rows(np.arange(ROWS)[::-1])):
        with cluster.hold(rows_) as rows:
            result = rows.total(sum_by_group, 2.0)
        assert same_bits(result, Local(threads=2).hold(rows_).total(sum_by_group, 2.0))


def scaled(item: int, factor: Any) -> tuple[int, float]:
    time.sleep(0.02 * (item % 3))
    return item, float(factor.sum()) * item


def test_items_come_in_their_order(cluster: Cluster) -> None:
    factor = np.arange(1000.0)
    assert list(cluster.each(scaled, range(20), factor)) == list(Local(threads=2).each(scaled, range(20), factor))


def test_few_items_are_taken_ahead(cluster: Cluster) -> None:
    taken: list[int] = []

    def items() -> Iterator[int]:
        for i in range(50):
            taken.append(i)
            yield i

    results = cluster.each(scaled, items(), np.ones(3))
    assert next(results) == (0, 0.0)
    assert len(taken) <= 2 * AHEAD + 1
    assert [i for i, _ in results] == list(range(1, 50))


class Point(NamedTuple):
    x: int
    y: int


@dataclass(frozen=True)
class Found:
    rows: Any
    more: dict[str, Any]


def find(item: int) -> tuple[Any, ...]:
    found = np.full(100_000, item)
    return Found(found, {"a": [found]}), Counter({item: 1}), Point(item, 2), found


def test_results_are_the_callers_own_whatever_their_type(cluster: Cluster) -> None:
    for found, counted, point, array in cluster.each(find, range(2)):
        for rows in (found.rows, found.more["a"][0], array):
            rows += 1  # not in the memory that workers share, which would be full some day
        assert isinstance(counted, Counter)
        assert point.y == 2


def refuse(item: int) -> None:
    raise InputError(f"`{item}` is no item")


def test_an_error_is_the_callers(cluster: Cluster) -> None:
    with pytest.raises(InputError, match=r"^`0` is no item$"):
        list(cluster.each(refuse, range(3)))


def run_nested(item: int, engine: Any) -> Any:
    return engine.name, list(engine.each(abs, [-item]))


def test_an_engine_that_is_sent_along_is_local_there(cluster: Cluster) -> None:
    assert list(cluster.each(run_nested, [3], cluster)) == [("local", [3])]


def die(item: int) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def test_an_item_that_every_worker_dies_at_is_given_up(cluster: Cluster) -> None:
    with pytest.raises(ErrataError, match=r"^item 0 could not be computed: 4 workers died at it, the last because "):
        list(cluster.each(die, range(3)))
    assert list(cluster.each(abs, [-1, 2])) == [1, 2]  # and others have workers again


def slow_moments(block: Any, centre: Any) -> tuple[Any, ...]:
    time.sleep(0.3)
    return moments(block, centre)


def kill_at_random(cluster: Cluster, killed: list[int], done: threading.Event) -> None:
    """Ten workers, one after the other, each as soon as it is there and then a random time later."""
    import ray

    rng = random.Random(0)
    while len(killed) < 10 and not done.is_set():
        slot = rng.choice(cluster.pool.slots)
        try:
            pid = ray.get(slot.actor.process.remote(), timeout=20)
        except ray.exceptions.RayError:
            continue
        time.sleep(rng.uniform(0, 0.4))
        if pid not in killed:
            os.kill(pid, signal.SIGKILL)
            killed.append(pid)


def test_ten_workers_that_die_change_no_bit(cluster: Cluster, X: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(cluster.pool, "_tries", 100)  # on a busy machine one part may meet several of the ten deaths
    killed: list[int] = []
    done = threading.Event()
    killer = threading.Thread(target=kill_at_random, args=(cluster, killed, done))
    totals = []
    with cluster.hold(X) as rows:
        rows.total(moments, np.ones(16))
        killer.start()
        while len(killed) < 10 and len(totals) < 200:
            totals.append(rows.total(slow_moments, np.ones(16)))
        done.set()
        killer.join()
        totals.append(rows.total(slow_moments, np.ones(16)))
    assert len(set(killed)) == 10
    assert all(same_bits(total, local_total(X)) for total in totals)


def private_bytes(block: Any) -> tuple[int, int]:
    lines = Path("/proc/self/status").read_text().splitlines()
    return os.getpid(), next(int(line.split()[1]) << 10 for line in lines if line.startswith("RssAnon"))


def test_a_worker_holds_no_more_than_it_may(cluster: Cluster, X: Any, monkeypatch: Any) -> None:
    assert cluster.pool.kept_bytes == cluster.memory // 2
    monkeypatch.setattr(cluster.pool, "kept_bytes", 32 << 20)
    big = np.concatenate([X] * 4)  # 307 MB: eighteen parts, of which two fit a worker
    with cluster.hold(big) as rows:
        first = dict(result for _, result in rows.each(private_bytes))
        last = dict(result for _, result in rows.each(private_bytes))
        held = [sum(slot.held.values()) for slot in cluster.pool.slots]
        assert same_bits(rows.total(moments, np.ones(16)), local_total(big))
    assert all(0 < size <= 32 << 20 for size in held)
    assert all(last[worker] - first[worker] < 16 << 20 for worker in first.keys() & last.keys())


def test_progress_is_told(cluster: Cluster, X: Any) -> None:
    seen: list[tuple[str, float]] = []
    cluster.progress = lambda stage, share: seen.append((stage, share))
    list(cluster.each(scaled, range(4), np.ones(1)))
    cluster.progress = lambda stage, share: None
    assert seen == [("scaled", share) for share in (0.25, 0.5, 0.75, 1.0)]


def read_sum(item: int, array: Any) -> tuple[bool, float]:
    return backing(array)[0], float(array[:, item].sum())


def test_a_large_array_of_the_engine_has_a_file_that_goes_with_it(cluster: Cluster) -> None:
    array = cluster.empty((20_000_000, 2))
    array[:, 1] = 1
    path = Path(array.filename)  # type: ignore[attr-defined]
    assert list(cluster.each(read_sum, [0, 1], array)) == [(True, 0.0), (True, 20_000_000.0)]
    assert path.exists()
    del array
    assert not path.exists()


def build_network() -> Any:
    import torch

    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.Dropout(), torch.nn.ReLU(), torch.nn.Linear(8, 3))


class Squares:
    """A dataset that says which process read it."""

    def __init__(self, readers: Path):
        self._readers = readers

    def __len__(self) -> int:
        return 50

    def __getitem__(self, i: int) -> dict[str, Any]:
        import torch

        (self._readers / str(os.getpid())).touch()
        return {"input": torch.arange(6.0) * i, "label": i % 3, "id": i, "site": i % 2}


def same_evaluations(a: errata.Evaluation, b: errata.Evaluation) -> bool:
    columns: list[list[Any]] = [[], []]
    for evaluation, arrays in zip((a, b), columns, strict=True):
        evaluation.map_columns(arrays.append)
    return len(a) == len(b) and same_bits(*columns)


@pytest.mark.parametrize("form", ["dataset", "batches"])
def test_a_model_is_collected_by_a_copy_in_each_worker(cluster: Cluster, tmp_path: Path, form: str) -> None:
    torch = pytest.importorskip("torch")
    model = build_network().train()
    loader = torch.utils.data.DataLoader(Squares(tmp_path), batch_size=8)
    batches = loader if form == "dataset" else list(loader)
    for path in tmp_path.iterdir():
        path.unlink()
    elsewhere = errata.collect(model, batches, metadata=["site"], engine=cluster)
    readers = {int(path.name) for path in tmp_path.iterdir()}
    assert os.getpid() not in readers
    assert bool(readers) == (form == "dataset")
    assert same_evaluations(elsewhere, errata.collect(model, batches, metadata=["site"]))
    assert model.training
    assert not any(module._forward_hooks for module in model.modules())


def test_gradients_of_rows_come_from_workers(cluster: Cluster) -> None:
    torch = pytest.importorskip("torch")
    model = build_network()
    X = torch.randn(40, 6, generator=torch.Generator().manual_seed(1))
    batches = [(X[i : i + 10], torch.arange(i, i + 10) % 3) for i in range(0, 40, 10)]
    fitted = errata.inputs.fit_influence(model, batches, layers=["0", "3"], rank=5)
    here = fitted.transform(model, batches)
    assert np.array_equal(fitted.transform(model, batches, engine=cluster), here)
    assert np.abs(here).max() > 0
    with pytest.raises(InputError, match="`folder` is of runs in this process"):
        fitted.transform(model, batches, engine=cluster, folder="x")


def test_classes_are_fitted_by_workers(cluster: Cluster, monkeypatch: Any) -> None:
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 5, 1500)
    X = rng.normal(size=(1500, 4))
    wrong = rng.random(1500) < np.where(X[:, 0] > 0.5, 0.6, 0.1)
    evaluation = errata.Evaluation(
        labels=labels, predictions=np.where(wrong, (labels + 1) % 5, labels), representations={"x": X}
    )
    monkeypatch.setattr("errata.slicers.directions.slicer.BATCH", 1 << 17)  # several batches of classes
    fitted = [Directions(permutations=3), Directions(permutations=3)]
    fitted[0].engine = cluster
    shares: list[float] = []
    fitted[0].report_progress = lambda stage, share: shares.append(share)
    for slicer in fitted:
        slicer.fit(evaluation)
    assert len(shares) > 1
    assert len(fitted[1].directions_) > 1
    assert np.array_equal(fitted[0].directions_, fitted[1].directions_)
    assert fitted[0].rules_ == fitted[1].rules_


def test_worlds_of_a_benchmark_are_judged_by_workers(cluster: Cluster, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    benchmark = spotcheck.SpotCheckBenchmark(configs=2)
    rng = np.random.default_rng(0)
    facts = json.dumps({"replaced": 0})
    for i in range(2):
        cluster_of = rng.integers(0, 6, 300)
        X = rng.normal(0, 8, (6, 4))[cluster_of] + rng.normal(size=(300, 4))
        blindspot = (cluster_of == 0)[:, None]
        arrays = {"labels": np.ones(300, dtype=np.int8), "logits": np.where(blindspot[:, 0], -4.0, 4.0)}
        arrays |= {"penultimate": X.astype(np.float16), "influence": X, "blindspot": blindspot}
        for name in ("here", "there"):
            path = benchmark.world_path(tmp_path / name, i)
            path.parent.mkdir(exist_ok=True)
            np.savez(path, **arrays, facts=np.array(facts))
    seen: list[float] = []
    far = spotcheck.run(
        benchmark, ["gmm"], Path("there"), engine=cluster, progress=lambda stage, share: seen.append(share)
    )
    near = spotcheck.run(benchmark, ["gmm"], Path("here"))
    assert [{**row, "seconds": 0} for row in far] == [{**row, "seconds": 0} for row in near]
    assert far[0]["raw_dr"] == 1.0
    assert seen == sorted(seen)


def test_names_of_engines() -> None:
    assert open_engine("ray").name == "ray"
    assert open_engine("ray:10.0.0.1:6379").address == "10.0.0.1:6379"  # type: ignore[attr-defined]
    assert open_engine("ray://head:10001").address == "ray://head:10001"  # type: ignore[attr-defined]
    held = open_engine("ray")
    assert open_engine("ray") is held


JOIN = """
import sys
from errata.core import ErrataError
from errata.engine import open_engine
for address in sys.argv[1:]:
    engine = open_engine(address)
    try:
        assert list(engine.each(abs, range(-3, 0))) == [3, 2, 1]
        print("joined", len(engine.pool.slots))
    except ErrataError as error:
        print(error)
    engine.close()
"""


def join(*addresses: str, **environment: str) -> list[str]:
    """What a process says that uses some clusters, one after the other."""
    command = [sys.executable, "-c", JOIN, *addresses]
    done = subprocess.run(command, env=os.environ | environment, capture_output=True, text=True, timeout=180)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def wait_for(head: subprocess.Popen[str]) -> None:
    assert head.stdout is not None
    said = []
    for line in head.stdout:
        said.append(line)
        if "Ray runtime started" in line:
            return
    pytest.fail("".join(said))


def test_a_cluster_is_joined_by_its_address_and_left_as_it_was() -> None:
    address = f"127.0.0.1:{20_000 + os.getpid() % 10_000}"
    key = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
    start = f"start --head --port={address[10:]} --num-cpus=2 --include-dashboard=false --block".split()
    command = [sys.executable, "-m", "ray.scripts.scripts", *start]
    output = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    head: subprocess.Popen[str] = subprocess.Popen(command, env=os.environ | key, **output)  # type: ignore[call-overload]
    try:
        wait_for(head)
        # The first leaves it running, with all its places.
        assert join(f"ray:{address}", f"ray:{address}", **key) == ["joined 2", "joined 2"]
        [refused] = join(f"ray:{address}", RAY_AUTH_MODE="disabled")
        assert refused.startswith(f"the Ray cluster at `{address}` asks for a token")
    finally:
        head.terminate()
        head.communicate(timeout=30)
    [gone] = join(f"ray:{address}", **key)
    assert gone == f"there is no Ray cluster at `{address}`; start one with `ray start`"


@pytest.mark.skipif(importlib.util.find_spec("grpc") is not None, reason="Ray's client is installed")
def test_the_client_of_ray_is_asked_for_where_it_is_needed() -> None:
    [answer] = join("ray://127.0.0.1:10001")
    assert answer.startswith("`ray://127.0.0.1:10001` is the address of Ray's client, which is not installed; pip")


def test_a_cluster_of_this_process_obeys_nobody_else(cluster: Cluster) -> None:
    import ray

    assert cluster.pool.slots
    address = ray.get_runtime_context().gcs_address
    [refused] = join(f"ray:{address}", RAY_AUTH_MODE="disabled")
    assert refused.startswith(f"the Ray cluster at `{address}` asks for a token")


def test_an_audit_by_workers_is_that_of_this_process(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts.parts_of, "__kwdefaults__", {"most": 1 << 16})
    rng = np.random.default_rng(0)
    x = rng.normal(size=(4000, 6)).astype(np.float32)
    labels = rng.integers(0, 2, 4000)
    wrong = rng.random(4000) < np.where(x[:, 0] > 1.2, 0.6, 0.08)
    positive = np.where(labels ^ wrong, 0.8, 0.2) + 0.1 * rng.random(4000)
    evaluation = errata.Evaluation(
        labels=labels,
        probs=positive,
        representations={"x": x},
        metadata={"age": x[:, 2]},
        sources={"x": errata.Source(from_model=False)},
    )
    methods = ["consensus", "rules", "domino", "directions", "gmm", "planespot"]
    told: list[tuple[str, float]] = []
    here = errata.audit(evaluation, methods=methods, engine=Local(threads=2))
    there = errata.audit(evaluation, methods=methods, engine=cluster, progress=lambda *step: told.append(step))
    placing = [share for stage, share in told if stage == "gmm, all rows"]
    assert len(placing) > 2
    assert placing == sorted(placing)
    assert placing[-1] == 1
    assert len(here.confirmed) > 0
    assert [slice_.verdict for slice_ in there.slices] == [slice_.verdict for slice_ in here.slices]
    assert all(np.array_equal(a.weights, b.weights) for a, b in zip(here.slices, there.slices, strict=True))
