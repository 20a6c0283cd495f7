"""Workers of a Ray cluster: each holds parts of rows and runs one call at a time; one that dies is replaced."""

from __future__ import annotations

import os
from collections import Counter, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import count, islice
from typing import Any

from threadpoolctl import threadpool_limits

from ..core import ErrataError
from .parts import cut
from .travel import NeedsCopy, narrow, pack, sent_bytes, unpack

AHEAD = 4  # calls that a worker has waiting or at work: the next is there when one is done, and few results wait
START_SECONDS = 120
EVERYTHING = slice(None)

numbers = count()


class Worker:
    """What runs in a process of the cluster."""

    def __init__(self) -> None:
        threadpool_limits(1)  # as the threads of a local engine: sums do not depend on the number of cores
        self._parts: dict[tuple[int, int], tuple[Any, ...]] = {}
        self._number: int | None = None
        self._work: tuple[Any, ...] = ()

    def process(self) -> int:
        """The number of its process."""
        return os.getpid()

    def run(self, number: int, reference: list[Any], item: Any) -> Any:
        """The function of a call, on an item."""
        function, shared = self._call(number, reference)
        return function(unpack(item), *shared)

    def run_part(self, number: int, reference: list[Any], key: tuple[int, int], packed: Any, keep: bool) -> Any:
        """The function of a call, on a part of rows that is sent along, or held from an earlier call."""
        function, shared = self._call(number, reference)
        if packed is None and key not in self._parts:
            raise NeedsCopy(key)
        columns = self._parts[key] if packed is None else unpack(packed, own=keep)
        if keep:
            self._parts[key] = columns
        return function(*(cut(column, EVERYTHING) for column in columns), *shared)

    def forget(self, rows: int) -> None:
        """Let go of the parts of some rows."""
        self._parts = {key: columns for key, columns in self._parts.items() if key[0] != rows}

    def _call(self, number: int, reference: list[Any]) -> tuple[Any, ...]:
        """The function and what it shares, read once for all items of a call: a model is built once a worker."""
        if number != self._number:
            import ray

            self._work = ()  # before the next is read: there may not be room for both
            self._number = None
            function, shared = ray.get(reference[0])
            self._work = (function, unpack(shared))
            self._number = number
        return self._work


@dataclass
class Slot:
    """The place of a worker, whoever has it."""

    actor: Any
    generation: int = 0
    blind: bool = False  # its machine does not see the files of this one
    held: dict[tuple[int, int], int] = field(default_factory=dict)  # part -> bytes


class Call:
    """A function and what it shares, put where all workers can read it: once, and once more if some see no files."""

    def __init__(self, ray: Any, function: Callable[..., Any], shared: tuple[Any, ...]):
        self.number = next(numbers)
        self._ray = ray
        self._function = function
        self._shared = shared
        self._references: dict[bool, list[Any]] = {}

    def reference(self, copied: bool) -> list[Any]:
        """In a list, so that Ray does not read it for every item."""
        if copied not in self._references:
            self._references[copied] = [self._ray.put((self._function, pack(self._shared, copied)))]
        return self._references[copied]


@dataclass
class Task:
    """One item or one part of a call, at work or waiting. Its result is taken once, whoever computed it."""

    name: str
    send: Callable[[Slot], Any]  # -> a reference to the result
    place: int | None = None  # of the slot that holds its part; any where it is None
    key: tuple[int, int] | None = None
    tries: int = 0
    slot: Slot | None = None
    generation: int = 0
    result: Any = None


class Pool:
    """All workers of an engine. `kept_bytes`: of the parts that each may hold. `tries`: of a task, at most."""

    def __init__(self, ray: Any, workers: int, kept_bytes: int, tries: int):
        self._ray = ray
        self.kept_bytes = kept_bytes
        self._tries = tries
        self._remote = ray.remote(num_cpus=1, max_restarts=0)(Worker)
        actors = [self._remote.remote() for _ in range(workers)]
        started = [actor.process.remote() for actor in actors]
        there, late = ray.wait(started, num_returns=workers, timeout=START_SECONDS)
        self.slots = [Slot(actor) for actor, ready in zip(actors, started, strict=True) if ready in there]
        for actor, ready in zip(actors, started, strict=True):
            if ready in late:  # a cluster that others use too has fewer places than cores
                ray.kill(actor)
        if not there:
            raise ErrataError(
                f"no worker started within {START_SECONDS} seconds; the cluster has "
                f"{ray.available_resources().get('CPU', 0):g} free cores"
            )
        try:
            ray.get(there)
        except ray.exceptions.RayError as error:
            raise ErrataError(
                f"workers of the Ray cluster do not start: {_reason(error)}; is errata installed on its machines?"
            ) from error

    def items(self, call: Call, items: Iterator[Any]) -> Iterator[Task]:
        """A task for each item, for whoever has least to do."""
        for i, item in enumerate(items):

            def send(slot: Slot, item: Any = item) -> Any:
                return slot.actor.run.remote(call.number, call.reference(slot.blind), pack(item, slot.blind))

            yield Task(f"item {i:,}", send)

    def parts(self, call: Call, rows: int, columns: tuple[Any, ...], parts: tuple[slice, ...]) -> Iterator[Task]:
        """A task for each part, for the worker that holds it."""
        for i, part in enumerate(parts):
            key = (rows, i)

            def send(slot: Slot, key: tuple[int, int] = key, part: slice = part) -> Any:
                packed = None
                keep = False
                if key not in slot.held:
                    packed = pack(tuple(narrow(column, part) for column in columns), slot.blind)
                    keep = self._keeps(slot, key, sent_bytes(packed))
                return slot.actor.run_part.remote(call.number, call.reference(slot.blind), key, packed, keep)

            yield Task(f"rows {part.start:,} to {part.stop - 1:,}", send, i % len(self.slots), key)

    def results(self, tasks: Iterator[Task]) -> Iterator[Any]:
        """Results in the order of tasks; those ahead of the first that is not done are few."""
        waiting: deque[Task] = deque()
        for task in islice(tasks, AHEAD * len(self.slots)):
            waiting.append(self._send(task, waiting))
        while waiting:
            yield self._result(waiting.popleft())
            for task in islice(tasks, 1):
                waiting.append(self._send(task, waiting))

    def forget(self, rows: int) -> None:
        """Let go of rows that were held."""
        for slot in self.slots:
            slot.held = {key: size for key, size in slot.held.items() if key[0] != rows}
            slot.actor.forget.remote(rows)

    def close(self) -> None:
        """End all workers."""
        for slot in self.slots:
            self._ray.kill(slot.actor)

    def _keeps(self, slot: Slot, key: tuple[int, int], size: int) -> bool:
        """Whether there is room for a part, which is then taken."""
        if sum(slot.held.values()) + size > self.kept_bytes:
            return False
        slot.held[key] = size
        return True

    def _send(self, task: Task, waiting: deque[Task]) -> Task:
        place = task.place
        if place is None:
            place = self._idlest(waiting)
        task.slot = self.slots[place]
        return self._send_again(task)

    def _send_again(self, task: Task) -> Task:
        assert task.slot is not None
        task.generation = task.slot.generation
        task.result = task.send(task.slot)
        return task

    def _idlest(self, waiting: deque[Task]) -> int:
        """The slot with the fewest tasks that are not done."""
        if not waiting:
            return 0
        _, undone = self._ray.wait([task.result for task in waiting], num_returns=len(waiting), timeout=0)
        unfinished = set(undone)
        load = Counter(id(task.slot) for task in waiting if task.result in unfinished)
        return min(range(len(self.slots)), key=lambda place: load[id(self.slots[place])])

    def _result(self, task: Task) -> Any:
        """The result of a task, from its worker or from the one that took its place."""
        errors = self._ray.exceptions
        while True:
            assert task.slot is not None
            try:
                return unpack(self._ray.get(task.result), own=True)
            except errors.RayTaskError as error:
                if not isinstance(error.cause, NeedsCopy):
                    raise (error.cause or error) from error  # the caller's own, as it would be in this process
                self._send_without_files(task, error.cause)
            except errors.RayError as error:
                self._recover(task, error)

    def _send_without_files(self, task: Task, error: NeedsCopy) -> None:
        assert task.slot is not None
        if isinstance(error.args[0], str):  # a path; otherwise a part that is not held
            task.slot.blind = True
        if task.key is not None:
            task.slot.held.pop(task.key, None)
        self._send_again(task)

    def _recover(self, task: Task, error: Exception) -> None:
        """Put a new worker in the place of one that died, and send the task to it."""
        slot = task.slot
        assert slot is not None
        if task.generation == slot.generation:  # else it died with a task before this one, and was replaced then
            task.tries += 1
            if task.tries == self._tries:
                raise ErrataError(
                    f"{task.name} could not be computed: {task.tries} workers died at it, the last because "
                    f"{_reason(error)}; it may need more memory than a worker has"
                ) from error
            self._ray.kill(slot.actor)  # where it cannot be reached any more but lives
            slot.actor = self._remote.remote()
            slot.generation += 1
            slot.held = {}
            slot.blind = False
        self._send_again(task)


def _reason(error: Exception) -> str:
    """The first line of what Ray says."""
    return str(error).strip().partition("\n")[0].rstrip(".")
