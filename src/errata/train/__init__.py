"""Small honest training: a few networks, one loop, and the same loop against an adversary. Needs torch."""

from .adversarial import fit_robust, robust_accuracy
from .loop import Epoch, fit, outputs, prepared, scaled
from .networks import NETWORKS, network
from .resnet import ResNet18
from .small import SmallCNN

__all__ = [
    "NETWORKS",
    "Epoch",
    "ResNet18",
    "SmallCNN",
    "fit",
    "fit_robust",
    "network",
    "outputs",
    "prepared",
    "robust_accuracy",
    "scaled",
]
