"""Audit a model's outputs that are already arrays: no framework is needed."""

import sys

import numpy as np

import errata

rng = np.random.default_rng(0)
n = 4000
cluster = rng.integers(0, 20, n)
embedding = rng.normal(0, 3, (20, 16))[cluster] + rng.normal(size=(n, 16))
labels = rng.integers(0, 4, n)
wrong = rng.random(n) < np.where(cluster == 7, 0.5, 0.05)  # the weakness that no label names
predictions = np.where(wrong, (labels + 1) % 4, labels)

evaluation = errata.Evaluation(labels=labels, predictions=predictions, representations={"embedding": embedding})
audit = errata.audit(evaluation)
for slice_ in audit.confirmed:
    low, high = slice_.confirm.interval
    share = (cluster[slice_.members] == 7).mean()
    sys.stdout.write(f"{slice_.name}: gap {low:.2f} to {high:.2f}; {share:.0%} of it is the planted cluster\n")
