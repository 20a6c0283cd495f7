"""A thousand clients that open a connection, send half of a request and wait: what others wait for meanwhile.

python benchmarks/slow_clients.py AUDIT --clients 1000
"""

from __future__ import annotations

import argparse
import re
import socket
import subprocess
import sys
import time
import urllib.request

import numpy as np

HALF = b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: "


def main() -> None:
    """Print how long an ordinary request took before, during and after the attack."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("audit")
    parser.add_argument("--clients", type=int, default=1000)
    arguments = parser.parse_args()
    command = [sys.executable, "-m", "errata", "serve", arguments.audit, "--port", "0", "--no-token"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        address = server.stdout.readline().strip()
        found = re.search(r":(\d+)/", address)
        assert found is not None, address
        try:
            _attack(address, int(found[1]), arguments.clients)
        finally:
            server.terminate()


def _attack(address: str, port: int, clients: int) -> None:
    print("before:", _ask(address, 10))
    waiting = []
    refused = 0
    during: list[float] = []
    for i in range(clients):
        try:
            connection = socket.create_connection(("127.0.0.1", port), timeout=5)
            connection.sendall(HALF)
            waiting.append(connection)
        except OSError:
            refused += 1
        if i % 50 == 49:
            during += _times(address, 1)
    print(f"during, with {clients:,} half-open requests ({refused} not taken):", _told(during))
    print("after:", _ask(address, 10))
    for connection in waiting:
        connection.close()


def _ask(address: str, count: int) -> str:
    return _told(_times(address, count))


def _told(times: list[float]) -> str:
    return f"{len(times)} answers, median {np.median(times):.3f} s, longest {max(times):.3f} s"


def _times(address: str, count: int) -> list[float]:
    times = []
    for _ in range(count):
        start = time.perf_counter()
        with urllib.request.urlopen(address, timeout=30) as answer:
            answer.read()
        times.append(time.perf_counter() - start)
    return times


if __name__ == "__main__":
    main()
