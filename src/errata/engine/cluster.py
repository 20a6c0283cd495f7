"""A Ray cluster: parts of rows on workers that hold them, on this machine or on many."""

from __future__ import annotations

import os
import secrets
import shutil
import socket
import sys
import tempfile
import weakref
from collections.abc import Callable, Iterable, Iterator, Sized
from contextlib import contextmanager
from importlib.util import find_spec
from itertools import count
from typing import Any, Self, TypeVar

import numpy as np

from ..core import Array, ErrataError, InputError, MissingExtra, Progress, require, silent
from ..core.scratch import DEFAULT_MEMORY, empty_array
from .contract import OnDevice, Totals, add_up
from .local import Local, count_cores
from .parts import PART_BYTES, parts_of
from .travel import write_back
from .workers import AHEAD, Call, Pool

T = TypeVar("T")

STORE_SHARE = 4  # of the memory, for what is on its way between processes
LONGEST_FOLDER = 40  # characters: Ray's sockets lie in it, and the system allows them 107
KNOCK_SECONDS = 10
QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "RAY_DEDUP_LOGS_SKIP_REGEX": "A worker died or was killed",  # it is replaced, or the error says it
}

rows_held = count()


class Cluster:
    """Workers of a Ray cluster, one a core.

    It starts when it is first used: on this machine, or it joins a cluster. What it started ends with `close`, with the
    `with` block, or with the process. In a worker, an engine that was sent along is a local one.

    Parameters
    ----------
    address : str, optional
        `HOST:PORT` of a cluster that this machine belongs to, `auto` for the one that runs here, or `ray://HOST:PORT`
        of another one's client server. Default: a cluster of this machine alone, for this process.
    memory : int
        Bytes that arrays with a value for every row may take on each machine: the parts that its workers hold. Beside
        them there is what is on its way, a few parts a worker, and what a worker needs for the part it works on. Parts
        for which there is no room are sent each time.
    workers : int, optional
        Default: one a core.
    tries : int
        How many workers may die at one part or item before it is given up.
    progress : Progress
        Called with what is being done and the share of it that is done.
    """

    name = "ray"

    def __init__(
        self,
        address: str | None = None,
        memory: int = DEFAULT_MEMORY,
        workers: int | None = None,
        tries: int = 4,
        progress: Progress = silent,
    ):
        self.address = address
        self.memory = memory
        self.workers = workers
        self.tries = tries
        self.progress = progress
        self._pool: Pool | None = None
        self._end: Callable[[], Any] = _nothing

    def __reduce__(self) -> tuple[Any, ...]:
        return Local, (self.memory, 1)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def hold(self, *columns: Any) -> ClusterRows:
        """The rows, of which each worker holds some parts from the first pass on."""
        return ClusterRows(self, columns)

    def each(self, function: Callable[..., T], items: Iterable[Any], *shared: Any) -> Iterator[T]:
        """Results in the order of items; a few of them at work or waiting at any time."""
        pool = self.pool
        total = len(items) if isinstance(items, Sized) else None
        tasks = pool.items(Call(require("ray", "ray"), function, shared), iter(items))
        yield from self.watched(function, pool.results(tasks), total)

    def empty(self, shape: tuple[int, ...], dtype: Any = np.float64) -> Array:
        """A new array to fill; a large one in a file, which has a name while the array lives, for workers to read."""
        return empty_array(shape, dtype, self.memory, "F", named=True)

    def forget(self, rows: int) -> None:
        """Let go of rows that were held."""
        if self._pool is not None:
            self._pool.forget(rows)

    def close(self) -> None:
        """End what was started. The next use starts it again."""
        if self._pool is not None:
            self._pool.close()
        self._pool = None
        self._end()
        self._end = _nothing

    @property
    def pool(self) -> Pool:
        """The workers, started where they are not."""
        if self._pool is None:
            self._pool = self._start()
        return self._pool

    def _start(self) -> Pool:
        ray = _import_ray(own=self.address is None)
        self.progress("Ray starts", 0.0)
        if not ray.is_initialized():  # else by the user, whose it is
            self._end = weakref.finalize(self, *self._connect(ray))
        machines = [node["Resources"].get("CPU", 0) for node in ray.nodes() if node["Alive"]]
        workers = self.workers or max(1, int(sum(machines)))
        together = max(1, min(workers, int(max(machines))))  # on one machine
        pool = Pool(ray, workers, self.memory // together, self.tries)
        self.progress("Ray starts", 1.0)
        return pool

    def _connect(self, ray: Any) -> tuple[Any, ...]:
        """Start or join a cluster; what ends it, as a function and its arguments."""
        if self.address is None:
            workers = self.workers or count_cores()
            on_their_way = 2 * AHEAD * workers * PART_BYTES  # parts, and what they give
            return _start_here(ray, workers, max(on_their_way, self.memory // STORE_SHARE))
        if self.address.startswith("ray://") and find_spec("grpc") is None:
            raise MissingExtra(
                f"`{self.address}` is the address of Ray's client, which is not installed; pip install 'ray[client]', "
                "or use ray:HOST:PORT on a machine of the cluster"
            )
        try:
            _knock(self.address)
            ray.init(self.address, log_to_driver=False, logging_level="ERROR")
        except (OSError, RuntimeError, ValueError) as error:
            if "AuthenticationError" in str(error.__cause__):
                raise InputError(
                    f"the Ray cluster at `{self.address}` asks for a token; set RAY_AUTH_MODE=token and RAY_AUTH_TOKEN"
                ) from error
            raise InputError(f"there is no Ray cluster at `{self.address}`; start one with `ray start`") from error
        return (ray.shutdown,)

    def watched(self, function: Callable[..., Any], results: Iterator[T], total: int | None) -> Iterator[T]:
        """The results, told as progress where their number is known."""
        stage = getattr(function, "__name__", type(function).__name__).strip("_").replace("_", " ")
        for done, result in enumerate(results, 1):
            if total is not None:
                self.progress(stage, done / total)
            yield result


class ClusterRows:
    """Rows that workers of a cluster hold."""

    def __init__(self, engine: Cluster, columns: tuple[Any, ...]):
        self._engine = engine
        self._columns = columns
        self._number = next(rows_held)
        self._sent = False
        self.parts = parts_of(*columns)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._engine.forget(self._number)

    def each(self, function: Callable[..., T], *shared: Any) -> Iterator[tuple[slice, T]]:
        """Results of the parts, in the order of rows."""
        if len(self.parts) == 1:  # less work than sending it
            yield self.parts[0], function(*self._columns, *shared)
            return
        pool = self._engine.pool
        if not self._sent:
            write_back(*self._columns)
            self._sent = True
        call = Call(require("ray", "ray"), function, shared)
        results = pool.results(pool.parts(call, self._number, self._columns, self.parts))
        yield from zip(self.parts, self._engine.watched(function, results, len(self.parts)), strict=True)

    def total(self, statistics: Callable[..., Totals], *shared: Any, on_device: OnDevice | None = None) -> Totals:
        """The sum over parts, in the order of rows."""
        return add_up(self.each(statistics, *shared))


def _nothing() -> None:
    pass


def _import_ray(own: bool) -> Any:
    """Ray, which reads these settings when it is imported. own: for a cluster of this process.

    It listens on all addresses of a machine, and runs what it is sent: a token that nobody knows closes it.
    """
    for name, value in QUIET.items():
        os.environ.setdefault(name, value)
    if own and "ray" not in sys.modules and "RAY_AUTH_MODE" not in os.environ:
        os.environ["RAY_AUTH_MODE"] = "token"
        os.environ["RAY_AUTH_TOKEN"] = secrets.token_hex(32)
    return require("ray", "ray")


def _knock(address: str) -> None:
    """Fail at once where nobody answers: Ray would try for minutes."""
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if colon:
        socket.create_connection((host, int(port)), timeout=KNOCK_SECONDS).close()


def _start_here(ray: Any, workers: int, store: int) -> tuple[Any, ...]:
    """A cluster of this machine, without a dashboard, in a folder of its own."""
    folder: str | None = tempfile.mkdtemp(prefix="errata-ray-")
    assert folder is not None
    options: dict[str, Any] = {}
    if len(folder) <= LONGEST_FOLDER:
        options["_temp_dir"] = folder
    try:
        with _modules_of_this_process():
            ray.init(
                "local",
                num_cpus=workers,
                object_store_memory=store,
                include_dashboard=False,
                log_to_driver=False,
                logging_level="ERROR",
                **options,
            )
    except (ConnectionError, RuntimeError, TimeoutError) as error:
        shutil.rmtree(folder, ignore_errors=True)
        raise ErrataError(f"Ray does not start on this machine: {error}") from error
    return _end_here, ray, folder


def _end_here(ray: Any, folder: str) -> None:
    ray.shutdown()
    shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _modules_of_this_process() -> Iterator[None]:
    """Processes that are started meanwhile find the modules that this one finds."""
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
    try:
        yield
    finally:
        if before is None:
            del os.environ["PYTHONPATH"]
        else:
            os.environ["PYTHONPATH"] = before
