"""A map of codes: where mistakes lie among the codes of training images, by a t-SNE of both (Defuse, figure 2)."""

from __future__ import annotations

import numpy as np

from ..core import Evaluation, State
from ..explain.layout import FEWEST, lay_out
from .regions import Mistakes, Regions
from .search import Job
from .vae import Vae, encode_images

IMAGES = 2000  # training images on the map
MISTAKES = 1000
LANDMARKS = 1000


def make_map(job: Job, vae: Vae, mistakes: Mistakes, regions: Regions) -> None:
    """The stage `map`: positions of some training images, of some mistakes, and of every region's centre."""
    if job.run.has("map"):
        return
    rng = np.random.default_rng([job.settings.seed, 9])
    rows = np.sort(rng.permutation(len(job.images))[:IMAGES])
    some = np.sort(rng.permutation(len(mistakes))[:MISTAKES])
    parts = (encode_images(vae, job.images[rows], device=job.device), mistakes.codes[some], regions.means)
    codes = np.concatenate(parts).astype(np.float32)
    job.progress("draw the map", 0.0)
    losses = np.zeros(len(codes))
    evaluation = Evaluation(losses=losses, representations={"code": codes}, ids=np.arange(len(codes)))
    xy = lay_out(evaluation, "code", seed=job.settings.seed, landmarks=max(FEWEST, min(LANDMARKS, len(codes))))
    ends = np.cumsum([len(part) for part in parts])[:-1]
    positions = dict(zip(("pictures", "mistakes", "regions"), np.split(xy, ends), strict=True))
    job.run.save("map", State("map", {}, positions))
    job.progress("draw the map", 1.0)
