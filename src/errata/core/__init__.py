"""The spine: what is audited (`Evaluation`), what is found (`Slice`, `Audit`), and how it is confirmed."""

from .lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
