"""Small honest training: a few networks, one loop, and the same loop against an adversary. Needs torch."""

from .adversarial import fit_robust, robust_accuracy
from .head import fine_tune_head
from .joint import Tuned, accuracy_of, tune_beside
from .loop import Epoch, fit, generalised_cross_entropy, outputs, prepared, said, scaled
from .networks import NETWORKS, network
from .resnet import ResNet18
from .small import SmallCNN

__all__ = [
    "NETWORKS",
    "Epoch",
    "ResNet18",
    "SmallCNN",
    "Tuned",
    "accuracy_of",
    "fine_tune_head",
    "fit",
    "fit_robust",
    "generalised_cross_entropy",
    "network",
    "outputs",
    "prepared",
    "robust_accuracy",
    "said",
    "scaled",
    "tune_beside",
]
