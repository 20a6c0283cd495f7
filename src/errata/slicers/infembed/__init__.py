"""InfEmbed (Wang et al. 2023): clusters of influence embeddings, and a rule that splits them until they are wrong."""

from .rule import InfembedRule
from .slicer import Infembed

__all__ = ["Infembed", "InfembedRule"]
