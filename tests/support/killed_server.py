"""What is lost when the server is killed while people answer: nothing that was acknowledged, or a test fails."""

from __future__ import annotations

import http.client
import json
import random
import threading
import time
import uuid
from pathlib import Path
from typing import Any

from errata.core import Audit

from .servers import KillableServer

HEADERS = {"content-type": "application/json"}


def send(connection: http.client.HTTPConnection, method: str, path: str, body: object = None) -> tuple[int, bytes]:
    """Status and content of the reply to one request; `body` goes as JSON."""
    if body is None:
        connection.request(method, path)
    else:
        connection.request(method, path, json.dumps(body), HEADERS)
    response = connection.getresponse()
    return response.status, response.read()


def example_answer(i: int) -> dict[str, Any]:
    """The i-th answer: three people, two classes, a thousand rows."""
    return {
        "queue": "s1",
        "item": f"row-{i % 1000}",
        "person": f"p{i % 3}",
        "task": "class",
        "answer": i % 2,
        "key": str(uuid.uuid4()),
    }


def kill_while_answering(audit: Audit, folder: Path, seed: int, clients: int = 4) -> tuple[int, int]:
    """The number of answers acknowledged before a kill -9 in their midst, and how many of them are not in the records.

    folder: of the records. seed: of the moment of the kill. clients: threads that answer at once.
    """
    from errata.people.records import Records

    server = KillableServer(audit, folder)
    acknowledged: list[str] = []

    def answer(client: int) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
        try:
            for i in range(client, 100_000, clients):
                body = example_answer(i)
                if send(connection, "POST", "/api/annotations", body)[0] == 200:
                    acknowledged.append(body["key"])
        except (OSError, http.client.HTTPException):
            pass  # the server is gone

    threads = [threading.Thread(target=answer, args=(client,)) for client in range(clients)]
    for thread in threads:
        thread.start()
    while not acknowledged:
        time.sleep(0.002)
    time.sleep(random.Random(seed).uniform(0.0, 0.3))
    server.kill()
    for thread in threads:
        thread.join()
    names = {slice_.id: slice_.name for slice_ in audit.slices}
    with Records(folder, fingerprint=audit.evaluation.fingerprint, slices=names) as records:
        stored = {entry.key for entry in records.log()}
    return len(acknowledged), len(set(acknowledged) - stored)
