"""Images of a failure direction and of captions, drawn by diffusion models of the user's own; and studies of them.

Importing this room imports neither torch nor diffusers; what draws needs errata[diffusion].
"""

from .direction import normal_of, slerp, walk
from .images import decode, draw_captions
from .pipelines import load_pipeline
from .studies import Accuracy, alpha_study, caption_study

__all__ = [
    "Accuracy",
    "alpha_study",
    "caption_study",
    "decode",
    "draw_captions",
    "load_pipeline",
    "normal_of",
    "slerp",
    "walk",
]
