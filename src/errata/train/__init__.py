"""Training of small networks: one loop, and what is built on it. Needs torch."""

from .adversarial import fit_robust, robust_accuracy
from .head import fine_tune_head
from .loop import (
    Epoch,
    fit,
    generalised_cross_entropy,
    normalise_bytes,
    normalise_pixels,
    outputs,
    predicted_classes,
    run_epoch,
)
from .networks import NETWORKS, network
from .resnet import ResNet18
from .small import SmallCNN
from .tuning import TuningEpoch, fine_tune, measure_accuracy

__all__ = [
    "NETWORKS",
    "Epoch",
    "ResNet18",
    "SmallCNN",
    "TuningEpoch",
    "fine_tune",
    "fine_tune_head",
    "fit",
    "fit_robust",
    "generalised_cross_entropy",
    "measure_accuracy",
    "network",
    "normalise_bytes",
    "normalise_pixels",
    "outputs",
    "predicted_classes",
    "robust_accuracy",
    "run_epoch",
]
