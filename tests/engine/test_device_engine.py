"""An engine with a device gives the slices and verdicts of this process; CPU tensors stand for a GPU here."""

from __future__ import annotations

import numpy as np
import pytest

import errata
from errata.bench.loss_problems import planted
from errata.engine.cuda import Cuda

torch = pytest.importorskip("torch")

METHODS = ["domino", "gmm", "spotlight:as_published"]
# Few steps of a high rate: the late ones of the published search amplify rounding.
OPTIONS = {
    "spotlight": {
        "slices": 2,
        "advanced.steps": 60,
        "advanced.learning_rate": 0.1,
        "advanced.initial_precision": 0.01,
    }
}


def test_verdicts_are_those_of_this_process():
    X, rate, _ = planted(3000, 8, 8, {0.08: 0.8, 0.1: 0.6}, seed=0)
    rng = np.random.default_rng(1)
    labels = rng.integers(0, 3, len(X))
    wrong = rng.random(len(X)) < rate
    probs = np.full((len(X), 3), 0.1)
    probs[np.arange(len(X)), np.where(wrong, (labels + 1) % 3, labels)] = 0.8
    ev = errata.Evaluation(labels=labels, probs=probs, representations={"e": X.astype(np.float32)})
    here = errata.audit(ev, methods=METHODS, options=OPTIONS)
    there = errata.audit(ev, methods=METHODS, options=OPTIONS, engine=Cuda(device=torch.device("cpu")))
    assert "confirmed" in {slice_.verdict for slice_ in here.slices}
    assert {slice_.method for slice_ in here.slices} >= {"domino"}
    assert len(here.slices) == len(there.slices)
    for one, other in zip(here.slices, there.slices, strict=True):
        assert (one.id, one.verdict) == (other.id, other.verdict)
        assert np.array_equal(one.members, other.members)
