"""What a kind of explanation is: a typed record that knows how to make itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from ..core import Audit, Explanation
from .view import SliceView

if TYPE_CHECKING:
    from .context import Context


class SliceExplanation(Explanation):
    """One kind of explanation of a slice: a frozen dataclass with its `kind`, what it `needs`, and `explain`."""

    needs: ClassVar[frozenset[str]] = frozenset()
    """Attributes of the slice's evaluation or of the context, such as "errors" or "texts", that must be there."""

    @classmethod
    def explain(cls, view: SliceView, context: Context) -> Explanation | None:
        """The explanation of one slice; None where there is nothing to say."""
        raise NotImplementedError(f"{cls.__name__} has no `explain`")


class AuditExplanation(Explanation):
    """One kind of explanation of an audit as a whole, with its `kind`, what it `needs`, and `explain`."""

    needs: ClassVar[frozenset[str]] = frozenset()
    """Attributes of the evaluation or of the context that must be there."""

    @classmethod
    def explain(cls, audit: Audit, context: Context) -> tuple[Explanation, ...]:
        """The explanations of an audit whose slices have their names: none, one, or one for each task."""
        raise NotImplementedError(f"{cls.__name__} has no `explain`")
