"""Writers of one output, side by side and killed: how many audits are half-written.

python benchmarks/writers.py --kills 200 --writers 120

Each kill forks a process that saves an audit, and ends it at a random moment. Writers save to one output, four at a
time, every one with the same process number, as the first processes of containers have. A folder counts as whole when
all its files have the bytes that a single writer gives them.
"""

from __future__ import annotations

import argparse
import os
import signal
import tempfile
import time
from pathlib import Path

import numpy as np

import errata
from errata import Audit, store
from errata.core import InputError

SIDE_BY_SIDE = 4


def main() -> None:
    """Print one line a kind of attack."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--writers", type=int, default=120)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        audit = _audit()
        start = time.perf_counter()
        store.save(audit, folder / "whole")
        duration = time.perf_counter() - start
        whole = _contents(folder / "whole")
        print(_kills(audit, folder / "kills", whole, arguments.kills, duration, np.random.default_rng(arguments.seed)))
        print(_writers(audit, folder / "writers", whole, arguments.writers))


def _audit() -> Audit:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 64)).astype(np.float32)
    labels = rng.integers(0, 2, 2000)
    wrong = (X[:, 0] > 1.5) | (rng.random(2000) < 0.1)
    positive = np.where(labels ^ wrong, 0.8, 0.3)
    evaluation = errata.Evaluation(
        labels=labels, probs=np.stack([1 - positive, positive], axis=1), representations={"embedding": X}
    )
    return errata.audit(evaluation, methods=["gmm", "spotlight"], map=False, self_test=False)


def _contents(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def _kills(
    audit: Audit, folder: Path, whole: dict[str, bytes], kills: int, duration: float, rng: np.random.Generator
) -> str:
    counts = {"whole": 0, "absent": 0, "half": 0}
    for i in range(kills):
        target = folder / str(i) / "audit"
        child = _start(audit, target)
        time.sleep(rng.uniform(0, 1.3) * duration)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        counts[_state(target, whole)] += 1
    return f"{kills} kills: {counts}"


def _writers(audit: Audit, folder: Path, whole: dict[str, bytes], writers: int) -> str:
    counts = {"whole": 0, "absent": 0, "half": 0}
    codes = {0: 0, 3: 0}
    for i in range(writers // SIDE_BY_SIDE):
        target = folder / str(i) / "audit"
        children = [_start(audit, target) for _ in range(SIDE_BY_SIDE)]
        for child in children:
            code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            codes[code] = codes.get(code, 0) + 1
        counts[_state(target, whole)] += 1
        assert [path.name for path in target.parent.iterdir()] == ["audit"], "something else is left"
    told = f"{codes.pop(0)} wrote, {codes.pop(3)} were told that it exists, other codes {codes}"
    return f"{writers} writers of {writers // SIDE_BY_SIDE} outputs: {counts}; {told}"


def _start(audit: Audit, target: Path) -> int:
    """Save in a child with the process number of every other; return its real number."""
    child = os.fork()
    if child == 0:
        os.getpid = lambda: 7
        try:
            store.save(audit, target)
        except InputError as error:
            os._exit(3 if "exists already" in str(error) else 4)
        except BaseException:
            os._exit(5)
        os._exit(0)
    return child


def _state(target: Path, whole: dict[str, bytes]) -> str:
    if not target.exists():
        return "absent"
    return "whole" if _contents(target) == whole else "half"


if __name__ == "__main__":
    main()
