"""Servers of an audit for tests and benchmarks: in a process of its own, in a thread, or one that can be killed."""

from __future__ import annotations

import http.client
import os
import signal
import socket
import subprocess
import sys
import time
from multiprocessing import get_context
from pathlib import Path
from threading import Thread
from typing import Any

from errata import workflow
from errata.core import Audit


class ServerProcess:
    """`errata serve` in a process of its own, until it is closed or killed. words: options; without any, no token."""

    def __init__(self, folder: Path | str, *words: str, port: int = 0):
        words = words or ("--no-token",)
        environment = {**os.environ, "PYTHONPATH": str(Path(workflow.__file__).parents[2]), "PYTHONUNBUFFERED": "1"}
        command = [sys.executable, "-m", "errata", "serve", str(folder), "--port", str(port), *words]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
        assert self.process.stdout is not None
        self.address = self.process.stdout.readline().strip().rstrip("/")
        if not self.address:
            raise RuntimeError(f"the server did not start: it ended with {self.process.wait()}")

    def __enter__(self) -> ServerProcess:
        return self

    def __exit__(self, *_: object) -> None:
        self.end(signal.SIGTERM)

    def end(self, how: signal.Signals = signal.SIGKILL) -> None:
        """Send the process a signal and wait until it has ended."""
        if self.process.poll() is None:
            self.process.send_signal(how)
        self.process.wait(timeout=60)
        if self.process.stdout is not None:
            self.process.stdout.close()


class ServerThread:
    """An app on a port of its own in a thread of this process; `with` gives its address."""

    def __init__(self, app: Any):
        import uvicorn

        self._server = uvicorn.Server(uvicorn.Config(app, host="127.0.0.1", port=0, log_level="critical"))
        self._thread = Thread(target=self._server.run, daemon=True)

    def __enter__(self) -> str:
        """Its address."""
        self._thread.start()
        while not self._server.started:
            time.sleep(0.01)
        return f"http://127.0.0.1:{self._server.servers[0].sockets[0].getsockname()[1]}"

    def __exit__(self, *_: object) -> None:
        self._server.should_exit = True
        self._server.force_exit = True
        self._thread.join(timeout=30)


class KillableServer:
    """The app of an audit in a forked process that can be killed. port: that it listens on."""

    def __init__(self, audit: Audit, folder: Path, port: int = 0):
        names = {slice_.id: slice_.name for slice_ in audit.slices}
        # The protocol is named, or answers wait for 40 ms.
        listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", port))
        listener.listen(128)
        self.port = listener.getsockname()[1]
        self.process = get_context("fork").Process(target=_run, args=(audit, folder, names, listener), daemon=True)
        self.process.start()
        listener.close()
        _wait_for(self.port)

    def kill(self) -> None:
        """End the process with SIGKILL."""
        assert self.process.pid is not None
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.join()


def _run(audit: Audit, folder: Path, names: dict[str, str], listener: socket.socket) -> None:
    import uvicorn

    from errata.app.server import create_app
    from errata.people.records import Records

    with Records(folder, fingerprint=audit.evaluation.fingerprint, slices=names) as records:
        config = uvicorn.Config(create_app(audit, records), log_level="critical")
        uvicorn.Server(config).run(sockets=[listener])


def _wait_for(port: int) -> None:
    for _ in range(600):
        try:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
            connection.request("GET", "/static/page.js")
            connection.getresponse().read()
            connection.close()
            return
        except OSError:
            time.sleep(0.02)
    raise RuntimeError("the server did not start")
