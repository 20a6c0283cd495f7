"""Where mistakes lie among the codes of the training pictures: a t-SNE of both (Defuse, figure 2)."""

from __future__ import annotations

import numpy as np

from ..core import Evaluation, State
from ..explain.layout import FEWEST, lay_out
from .regions import Mistakes, Regions
from .search import Job
from .vae import Vae, encoded

PICTURES, MISTAKES = 2000, 1000
LANDMARKS = 1000


def drawn_map(job: Job, vae: Vae, mistakes: Mistakes, regions: Regions) -> None:
    """Places of some training pictures, of some mistakes, and of every region's centre."""
    if job.run.has("map"):
        return
    chance = np.random.default_rng([job.settings.seed, 9])
    rows = np.sort(chance.permutation(len(job.images))[:PICTURES])
    some = np.sort(chance.permutation(len(mistakes))[:MISTAKES])
    parts = (encoded(vae, job.images[rows], device=job.device), mistakes.codes[some], regions.means)
    codes = np.concatenate(parts).astype(np.float32)
    job.progress("draw the map", 0.0)
    losses = np.zeros(len(codes))
    known = Evaluation(losses=losses, representations={"code": codes}, ids=np.arange(len(codes)))
    xy = lay_out(known, "code", seed=job.settings.seed, landmarks=max(FEWEST, min(LANDMARKS, len(codes))))
    ends = np.cumsum([len(part) for part in parts])[:-1]
    named = zip(("pictures", "mistakes", "regions"), np.split(xy, ends), strict=True)
    job.run.save("map", State("map", {}, dict(named)))
    job.progress("draw the map", 1.0)
