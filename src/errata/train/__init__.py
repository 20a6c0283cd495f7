"""Small honest training: two networks and one loop. Only those who have torch import this room."""

from .loop import Epoch, fit, outputs, prepared
from .networks import NETWORKS, network
from .resnet import ResNet18
from .small import SmallCNN

__all__ = ["NETWORKS", "Epoch", "ResNet18", "SmallCNN", "fit", "network", "outputs", "prepared"]
