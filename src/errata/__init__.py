"""Errata finds, explains and fixes the systematic errors of a trained model.

The names of `__all__` are what most users need. Everything else is imported from its room, such as
`errata.inputs.Texts` or `errata.explain.opponents`. A name or a room is imported when it is first used;
`__init__.pyi` says where each is.
"""

from .core.lazy import attach
from .core.views import provide_views

__getattr__, __dir__, __all__ = attach(__name__, __file__)

provide_views(lambda: __getattr__("notebook").VIEWS)
