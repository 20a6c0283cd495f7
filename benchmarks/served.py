"""Audits to serve, made at once, and a server of one in a process of its own: for the tests of the app and its load."""

from __future__ import annotations

import http.client
import io
import os
import signal
import socket
import subprocess
import sys
import time
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import uvicorn
from PIL import Image

from errata import workflow
from errata.core import Audit, Evaluation
from errata.explain.map import RowMap
from errata.inputs.media import ImageBytes, Texts

DARK = 0.15  # of the rows, wrong four times in six; the others are wrong once in twenty


def pictured(n: int = 1000, *, seed: int = 0, classes: tuple[str, ...] = ("cat", "dog"), **changes: Any) -> Evaluation:
    """Small pictures of two classes; the model fails on the dark ones."""
    rng = np.random.default_rng(seed)
    dark, label = rng.random(n) < DARK, rng.integers(0, 2, n)
    wrong = rng.random(n) < np.where(dark, 0.65, 0.05)
    said = np.where(wrong, 1 - label, label)
    sure = rng.uniform(0.6, 0.99, n)
    probs = np.empty((n, 2))
    probs[np.arange(n), said], probs[np.arange(n), 1 - said] = sure, 1 - sure
    spread = rng.normal(size=(n, 6))
    spread[:, 0] += 8 * dark
    spread[:, 1] += 4 * label
    plain: dict[str, Any] = {
        "ids": np.array([f"row-{i}" for i in range(n)]),
        "labels": label,
        "predictions": said,
        "probs": probs,
        "losses": -np.log(probs[np.arange(n), label]),
        "class_names": classes,
        "representations": {"features": spread},
        "metadata": {"light": np.where(dark, "night", "day"), "size": rng.uniform(1, 9, n).round(2)},
        "media": ImageBytes([picture(i, bool(dark[i]), int(label[i])) for i in range(n)]),
    }
    return Evaluation(**{**plain, **changes})


def picture(i: int, dark: bool, label: int, px: int = 32) -> bytes:
    """A square or a bar on a grey ground, as PNG."""
    ground = np.full((px, px, 3), 40 + i % 20 if dark else 190 + i % 40, dtype=np.uint8)
    at = 4 + i % 12
    ground[at : at + 12, at : at + (12 if label else 4)] = (200, 90, 60) if label else (60, 110, 190)
    kept = io.BytesIO()
    Image.fromarray(ground).save(kept, "PNG")
    return kept.getvalue()


def written(n: int = 600, texts: Any = None, **changes: Any) -> Evaluation:
    """The same rows as texts."""
    words = [f"a {'dim' if i % 7 == 0 else 'bright'} room, number {i}" for i in range(n)]
    return pictured(n, **{"media": Texts(words if texts is None else texts), **changes})


def audited(evaluation: Evaluation, names: Mapping[str, str] | None = None, method: str = "domino") -> Audit:
    """Searched by one fast method, with a map: the first two features, as they are."""
    found = workflow.audit(evaluation, methods=[method])
    if names:
        slices = tuple(replace(one, name=names.get(one.id, one.name)) for one in found.slices)
        found = replace(found, slices=slices)
    return mapped(found)


def mapped(audit: Audit) -> Audit:
    xy = audit.evaluation.representations["features"][:, :2]
    low, high = xy.min(axis=0), xy.max(axis=0)
    places = np.round((2 * (xy - low) / (high - low) - 1) * 32_767).astype("<i2")
    data = {"representation": "features", "n": len(places), "xy": b64encode(places.tobytes()).decode()}
    return replace(audit, explanations=(*audit.explanations, RowMap.from_json(data)))


def tiled(audit: Audit, times: int) -> Audit:
    """Every row that often, a little apart on the map, and without pictures: large audits at once."""
    kept, n = audit.evaluation, len(audit.evaluation) * times
    assert kept.labels is not None
    assert kept.predictions is not None
    spread = np.tile(kept.representations["features"], (times, 1)) + np.random.default_rng(0).normal(0, 0.1, (n, 6))
    evaluation = Evaluation(
        ids=np.arange(n),
        labels=np.tile(kept.labels, times),
        predictions=np.tile(kept.predictions, times),
        class_names=kept.class_names,
        representations={"features": spread},
        metadata={name: np.tile(column, times) for name, column in kept.metadata.items()},
    )
    slices = tuple(replace(one, weights=np.tile(one.weights, times)) for one in audit.slices[:3])
    others = tuple(one for one in audit.explanations if one.kind != "map")
    whole = replace(audit, evaluation=evaluation, slices=slices, discover=np.tile(audit.discover, times))
    return mapped(replace(whole, explanations=others))


class Serving:
    """`errata serve` in a process of its own, until it is closed or killed."""

    def __init__(self, folder: Path | str, *words: str, port: int = 0):
        environment = {**os.environ, "PYTHONPATH": str(Path(workflow.__file__).parents[1]), "PYTHONUNBUFFERED": "1"}
        command = [sys.executable, "-m", "errata", "serve", str(folder), "--port", str(port), *words]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
        assert self.process.stdout is not None
        self.address = self.process.stdout.readline().strip().rstrip("/")
        if not self.address:
            raise RuntimeError(f"the server did not start: it ended with {self.process.wait()}")

    def __enter__(self) -> Serving:
        return self

    def __exit__(self, *_: object) -> None:
        self.end(signal.SIGTERM)

    def end(self, how: signal.Signals = signal.SIGKILL) -> None:
        if self.process.poll() is None:
            self.process.send_signal(how)
        self.process.wait(timeout=60)
        if self.process.stdout is not None:
            self.process.stdout.close()


class Threaded:
    """An app on a port of its own in a thread of this process: at once, and gone at the end."""

    def __init__(self, app: Any):
        self._server = uvicorn.Server(uvicorn.Config(app, host="127.0.0.1", port=0, log_level="critical"))
        self._thread = Thread(target=self._server.run, daemon=True)

    def __enter__(self) -> str:
        """Its address."""
        self._thread.start()
        while not self._server.started:
            time.sleep(0.01)
        return f"http://127.0.0.1:{self._server.servers[0].sockets[0].getsockname()[1]}"

    def __exit__(self, *_: object) -> None:
        self._server.should_exit = self._server.force_exit = True
        self._thread.join(timeout=30)


class Forked:
    """The app in a process of its own that can be killed, as often as one likes: it begins where this one is."""

    def __init__(self, audit: Audit, folder: Path, port: int = 0):
        names = {found.id: found.name for found in audit.slices}
        taken = socket.socket(
            socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP
        )  # named, or answers wait for 40 ms
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.bind(("127.0.0.1", port))
        taken.listen(128)
        self.port = taken.getsockname()[1]
        self.process = get_context("fork").Process(target=_run, args=(audit, folder, names, taken), daemon=True)
        self.process.start()
        taken.close()
        _wait_for(self.port)

    def kill(self) -> None:
        assert self.process.pid is not None
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.join()


def _run(audit: Audit, folder: Path, names: dict[str, str], taken: socket.socket) -> None:
    from errata.app.server import create_app
    from errata.people.records import Records

    with Records(folder, fingerprint=audit.evaluation.fingerprint, slices=names) as records:
        config = uvicorn.Config(create_app(audit, records), log_level="critical")
        uvicorn.Server(config).run(sockets=[taken])


def _wait_for(port: int) -> None:
    for _ in range(600):
        try:
            line = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
            line.request("GET", "/static/page.js")
            line.getresponse().read()
            line.close()
            return
        except OSError:
            time.sleep(0.02)
    raise RuntimeError("the server did not start")
