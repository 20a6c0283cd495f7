"""kill -9 of the server while people answer: what was acknowledged is there. Fifty rounds are in benchmarks/app.py."""

from __future__ import annotations

from pathlib import Path

import app
from served import audited, pictured


def test_no_acknowledged_answer_is_lost_when_the_server_is_killed(tmp_path: Path) -> None:
    audit = audited(pictured(1000))
    told = [app.burst(audit, tmp_path, seed) for seed in range(5)]
    assert all(acknowledged > 0 for acknowledged, _ in told)
    assert sum(lost for _, lost in told) == 0
