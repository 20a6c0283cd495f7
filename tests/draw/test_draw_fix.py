"""A plan of pictures, followed to its end: captions of a slice are drawn, the last layer learns them, rows kept apart
say what that changed. The pictures are noise, so nothing is asked of the change but that it is measured."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import torch

import errata
from errata import Evaluation, Source
from errata.draw import draw_captions
from errata.train import fine_tune_head, network, outputs
from support.explanations import captions

PX = 16


def pictures(n: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Noise, whose embedding knows where an untrained network is wrong."""
    rng = np.random.default_rng(seed)
    return rng.integers(0, 256, (n, PX, PX, 3), dtype=np.uint8), rng.integers(2, size=n), rng.normal(size=(n, 4))


def evaluated(model: Any, images: np.ndarray, labels: np.ndarray, E: np.ndarray, first: int) -> Evaluation:
    said = (outputs(model, images)[0][:, 0] > 0).astype(int)
    E = E + 3 * ((said != labels) & (labels == 1))[:, None]  # so that there is a slice to find
    return Evaluation(
        labels=labels, predictions=said, representations={"seen": E}, sources={"seen": Source(from_model=False)},
        ids=first + np.arange(len(labels)),
    )  # fmt: skip


def captioned(audit: errata.Audit) -> errata.Audit:
    """As `texts` would: a caption on each side of every direction."""
    explanation = captions("red", ["blue"], ["green"])
    slices = [replace(slice_, explanations=(*slice_.explanations, explanation)) for slice_ in audit.slices]
    return replace(audit, slices=tuple(slices))


def test_pictures_of_a_slice_are_drawn_learnt_and_judged(pipelines: Callable[[str], Any]) -> None:
    pipeline = pipelines("stable")
    model: Any = network("small", px=PX, seed=1)
    with torch.no_grad():  # so that it says either class as often
        model.head.bias -= float(np.median(outputs(model, pictures(600, 0)[0])[0]))
    found = errata.audit(evaluated(model, *pictures(600, 0), 0), methods=["directions"])
    assert found.confirmed
    audit = captioned(found)
    plan = errata.plan_prompts(audit, 4)
    assert [(prompt.text, prompt.count) for prompt in plan.prompts] == [("blue", 4)] * len(audit.confirmed)
    fresh = pictures(200, 1)
    drawn: list[np.ndarray] = []

    def train(plan: errata.Plan) -> Any:
        better = copy.deepcopy(model)
        for prompt in plan.prompts:
            size = {"height": PX, "width": PX}
            drawn.append(draw_captions([prompt.text], pipeline, prompt.count, steps=2, options=size))
            fine_tune_head(better, drawn[-1], np.full(prompt.count, prompt.label), epochs=20, lr=0.1)
        return better

    before = evaluated(model, *fresh, 10_000)
    better, comparison = errata.correct(audit, plan, train, lambda one: evaluated(one, *fresh, 10_000), before)
    assert drawn[0].shape[0] == 4
    moved = outputs(better, drawn[0])[0][:, 0]
    assert (moved > 0).all()  # it learnt what the pictures were drawn for
    assert comparison["overall"].n == 200
    assert comparison["overall"].after_errors == evaluated(better, *fresh, 10_000).errors.sum()
