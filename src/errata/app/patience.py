"""A server that a slow or silent client cannot stop: requests must arrive in time, and connections are counted."""

from __future__ import annotations

import asyncio
import logging
import time
from typing import Any

from uvicorn.protocols.http.auto import AutoHTTPProtocol

REQUEST_SECONDS = 15.0  # from an open connection to a whole header
MOST_CONNECTIONS = 256  # a quarter of the files that a process usually may open
LINES_A_MINUTE = 20  # of a log


class PatientProtocol(AutoHTTPProtocol):  # type: ignore[misc, valid-type]  # one of two classes of uvicorn
    """A connection that is closed when no request arrives, and when it is the longest idle of too many."""

    _idle_since: float = 0.0
    _last_request: Any = None
    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """Take a connection; the one that has waited longest goes where there are too many."""
        super().connection_made(transport)
        self._idle_since = time.monotonic()
        self._watch()
        if len(self.connections) > MOST_CONNECTIONS:
            waiting = [other for other in self.connections if other.is_waiting]
            if waiting:
                min(waiting, key=lambda other: other._idle_since).transport.abort()
            else:
                transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        if self._timer is not None:
            self._timer.cancel()
        super().connection_lost(exc)

    @property
    def is_waiting(self) -> bool:
        """Whether no request is being answered."""
        return self.cycle is None or bool(self.cycle.response_complete)

    def _watch(self) -> None:
        self._timer = self.loop.call_later(REQUEST_SECONDS, self._look)

    def _look(self) -> None:
        """Close a connection on which no new request has come since the last look."""
        if self.is_waiting and self.cycle is self._last_request:
            self.transport.close()
            return
        if self.cycle is not self._last_request:
            self._last_request = self.cycle
            self._idle_since = time.monotonic()
        self._watch()


class RateLimit(logging.Filter):
    """So many lines a minute; the next one that passes says how many did not."""

    def __init__(self, lines: int = LINES_A_MINUTE) -> None:
        super().__init__()
        self._lines = lines
        self._minute = 0
        self._passed = 0
        self._dropped = 0

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether the line is written."""
        minute = int(time.monotonic() // 60)
        if minute != self._minute:
            self._minute = minute
            self._passed = 0
        if self._passed >= self._lines:
            self._dropped += 1
            return False
        self._passed += 1
        if self._dropped:
            record.msg = f"{record.getMessage()} ({self._dropped:,} lines before it were left out)"
            record.args = ()
            self._dropped = 0
        return True
