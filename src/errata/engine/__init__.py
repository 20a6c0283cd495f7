"""Work over many rows: cut into parts, done where the parts are, put together in their order.

One interface, three engines: this process, one GPU, a Ray cluster. A method says what one part of the rows gives
(`statistics`) and what follows from the total (`update`); who runs the parts, and where, is no concern of it.
"""

from __future__ import annotations

import re
from weakref import WeakValueDictionary

from ..core import InputError
from ..core.errors import unknown
from ..core.scratch import DEFAULT_MEMORY
from .cluster import Cluster
from .contract import Engine, HeldRows, Totals
from .local import Local
from .memory import read_memory
from .parts import cut, parts_of

__all__ = [
    "DEFAULT_MEMORY",
    "ENGINES",
    "Cluster",
    "Engine",
    "HeldRows",
    "Local",
    "Totals",
    "cut",
    "open_engine",
    "parts_of",
    "read_memory",
]

ENGINES = ("local", "cuda", "ray")
RAY = r"ray(:auto|:(//)?(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+):[0-9]{1,5})?"

# Those that somebody uses: two of them would wait for each other's cores.
clusters: WeakValueDictionary[tuple[str, int], Cluster] = WeakValueDictionary()


def open_engine(engine: str | Engine = "local", memory: int | str | None = None) -> Engine:
    """The engine of a name, or the engine itself.

    Parameters
    ----------
    engine : str or Engine
        `local`, this process; `cuda`, one GPU; `ray`, a Ray cluster of this machine's cores; `ray:HOST:PORT`,
        the cluster that this machine belongs to (`ray:auto` finds it); `ray://HOST:PORT`, one elsewhere, by its client.
    memory : int or str, optional
        What arrays with a value for every row may take: bytes, or a text such as "2GB". Larger ones go to disk.
    """
    if not isinstance(engine, str):
        return engine
    bytes_ = read_memory(memory)
    if engine == "local":
        return Local(bytes_)
    if engine == "cuda":
        from .cuda import Cuda

        return Cuda(bytes_)
    if re.fullmatch(RAY, engine):
        return clusters.setdefault((engine, bytes_), Cluster(_address(engine), bytes_))
    if engine.startswith("ray:"):
        raise InputError(f"`{engine}` is no address of Ray; write ray:auto, ray:HOST:PORT or ray://HOST:PORT")
    raise unknown("engine", engine, ENGINES)


def _address(engine: str) -> str | None:
    """What Ray calls an address: none of `ray`, all of `ray://HOST:PORT`, what comes after `ray:` of others."""
    place = engine.partition(":")[2]
    return engine if place.startswith("//") else place or None
