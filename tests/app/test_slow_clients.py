"""Clients that open connections and say little: others are served meanwhile, and the connections are closed."""

from __future__ import annotations

import asyncio
import logging
import socket
import threading
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("uvicorn")

import uvicorn

from errata.app import guard, patience
from errata.app.patience import PatientProtocol, RateLimit
from errata.cli.serve import _listen, _listen_on
from errata.core import InputError

HALF = b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: "
POST = b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{"


async def hello(scope: Any, receive: Any, send: Any) -> None:
    """An app that greets."""
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"5")]})
    await send({"type": "http.response.body", "body": b"hello"})


@pytest.fixture
def port(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """A server as `errata serve` has it, that is patient for a second and has room for twenty."""
    monkeypatch.setattr(patience, "REQUEST_SECONDS", 1.0)
    monkeypatch.setattr(patience, "MOST_CONNECTIONS", 20)
    monkeypatch.setattr(guard, "BODY_SECONDS", 1.0)
    listening = _listen_on("127.0.0.1", 0)
    app = guard.Guard(hello)
    config = uvicorn.Config(app, http=PatientProtocol, ws="none", lifespan="off", log_level="critical")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    yield listening.getsockname()[1]
    server.should_exit = True
    server.force_exit = True
    thread.join(timeout=30)
    listening.close()


def ask(port: int) -> tuple[bytes, float]:
    start = time.monotonic()
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=10) as answer:
        return answer.read(), time.monotonic() - start


def closed_within(connection: socket.socket, seconds: float) -> bool:
    connection.settimeout(seconds)
    try:
        return connection.recv(1) == b""
    except ConnectionResetError:
        return True
    except TimeoutError:
        return False


@pytest.mark.parametrize("start", [b"", HALF], ids=["silent", "half of a header"])
def test_many_who_wait_stop_nobody(start: bytes, port: int) -> None:
    waiting = []
    for i in range(100):
        connection = socket.create_connection(("127.0.0.1", port))
        connection.sendall(start)
        waiting.append(connection)
        if i % 25 == 24:
            body, seconds = ask(port)
            assert body == b"hello"
            assert seconds < 5
    assert all(closed_within(connection, 8) for connection in waiting)
    assert ask(port)[0] == b"hello"


def test_who_drips_is_closed_too(port: int) -> None:
    with socket.create_connection(("127.0.0.1", port)) as connection:
        start = time.monotonic()
        connection.sendall(HALF)
        try:
            while time.monotonic() - start < 10:
                connection.sendall(b"x")
                time.sleep(0.1)
        except OSError:
            pass
        assert time.monotonic() - start < 6


def test_a_second_request_must_come_in_time_as_well(port: int) -> None:
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall(HALF + b"no\r\n\r\n")
        answer = b""
        while not answer.endswith(b"hello"):
            answer += connection.recv(1000)
        connection.sendall(HALF)
        assert closed_within(connection, 8)


def test_a_body_must_come_in_time(port: int) -> None:
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall(POST)
        connection.settimeout(8)
        assert connection.recv(1000).startswith(b"HTTP/1.1 408")


def test_a_slow_answer_is_not_cut(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only who sends nothing is impatiently waited for: a page may take long to make."""

    async def slow(scope: Any, receive: Any, send: Any, real: Any = hello) -> None:
        await asyncio.sleep(3)
        await real(scope, receive, send)

    monkeypatch.setattr(guard.Guard, "__call__", lambda self, scope, receive, send: slow(scope, receive, send))
    assert ask(port)[0] == b"hello"


def test_a_log_does_not_fill_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [600.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    limit = RateLimit(3)
    lines = []
    for second in range(70):
        clock[0] = 600.0 + second
        record = logging.LogRecord("uvicorn.error", logging.WARNING, "", 1, "line %d", (second,), None)
        if limit.filter(record):
            lines.append(record.getMessage())
    told = "line 60 (57 lines before it were left out)"
    assert lines == ["line 0", "line 1", "line 2", told, "line 61", "line 62"]


def test_a_port_that_is_taken_says_so() -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        refused = pytest.raises(InputError, match="is taken; name another with --port")
        with refused, _listen("127.0.0.1", other.getsockname()[1]):
            pass
    with pytest.raises(InputError, match="give an address of this machine"), _listen("192.0.2.1", 0):
        pass


def test_drivers_that_are_missing_say_so(tmp_path: Path) -> None:
    pytest.importorskip("sqlalchemy")
    from errata.people.database import connect

    with pytest.raises(InputError, match="needs the package"):
        connect("mysql://somebody@somewhere/records")
