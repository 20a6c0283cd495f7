"""kill -9 of the server while people answer: what was acknowledged is there. `benchmarks/app.py` has fifty rounds."""

from __future__ import annotations

from pathlib import Path

from support.killed_server import kill_while_answering
from support.small_audits import image_evaluation, quick_audit


def test_no_acknowledged_answer_is_lost_when_the_server_is_killed(tmp_path: Path) -> None:
    audit = quick_audit(image_evaluation(1000))
    counts = [kill_while_answering(audit, tmp_path, seed) for seed in range(5)]
    assert all(acknowledged > 0 for acknowledged, _ in counts)
    assert sum(lost for _, lost in counts) == 0
