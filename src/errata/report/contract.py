"""What a page is, what a part of a page is, and what both are given: the contract behind `PAGES` and `PARTS`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol

from ..core import Array, Audit, Comparison, ErrataError, Evaluation, Slice
from . import script_data
from .class_trees import ClassTree, class_of, class_trees, saved_groups
from .feature_answers import FeatureAnswers
from .image_sources import Images
from .judgement_lines import standings_of
from .links import Links
from .marks import Axis
from .static_files import Script

Request = Mapping[str, str]  # parameters of a page's address, from its path and its query
Values = Mapping[str, Any]  # what a template shows


class PageNotFound(ErrataError):
    """The address of a page names something that does not exist."""


class Backend(Protocol):
    """What a server knows beside the audit: people's records, other audits, rows by their ids."""

    def standings(self) -> Mapping[str, Mapping[str, Any]]:
        """Slice id -> what was decided of it: decision, name, title, note, person, version."""
        ...

    def edits(self, slice_id: str) -> Mapping[str, bool]:
        """Row id -> whether a person put it into the slice (True) or out of it (False)."""
        ...

    def drawings(self) -> Sequence[Mapping[str, Any]]:
        """Slices that people drew on the map."""
        ...

    def members(self, slice_id: str) -> Array:
        """(n,) bool: the rows of a slice, of the audit or drawn; PageNotFound where it does not exist."""
        ...

    def row(self, row_id: str) -> int:
        """The position of a row; PageNotFound where it does not exist."""
        ...

    def hypotheses(self) -> Sequence[Mapping[str, Any]]:
        """Hypotheses that were tested, by slice: `slice`, `title`, `history`."""
        ...

    def other_audits(self) -> Mapping[str, Audit]:
        """Audits by name that this one may be compared with."""
        ...

    def compare(self, audit: Audit, other: str) -> Comparison:
        """The audit as people left it, beside another one by its name: what `errata compare` says of both."""
        ...

    def questionnaire(self) -> Mapping[str, Any] | None:
        """Limits and choices of the questionnaire; None where there is none."""
        ...

    def journal(self, person: str | None) -> Sequence[Mapping[str, Any]]:
        """All that people did, or one of them, oldest first: `at`, `person`, `action`, `about`, `detail`."""
        ...


@dataclass(frozen=True, eq=False)
class NoBackend:
    """Of a saved report: what people decided is in the audit as they left it, and nothing else is known."""

    audit: Audit | None = None

    def standings(self) -> Mapping[str, Mapping[str, Any]]:
        """What was decided, where the audit is as people left it."""
        return {} if self.audit is None else standings_of(self.audit)

    def edits(self, slice_id: str) -> Mapping[str, bool]:
        """No row was put into a slice or out of it."""
        return {}

    def drawings(self) -> Sequence[Mapping[str, Any]]:
        """No slice was drawn."""
        return ()

    def members(self, slice_id: str) -> Array:
        """Always raises PageNotFound."""
        raise PageNotFound(f"Slice {slice_id!r} does not exist.")

    def row(self, row_id: str) -> int:
        """Always raises PageNotFound."""
        raise PageNotFound(f"Row {row_id!r} does not exist.")

    def hypotheses(self) -> Sequence[Mapping[str, Any]]:
        """No hypothesis was tested."""
        return ()

    def other_audits(self) -> Mapping[str, Audit]:
        """No other audit is known."""
        return {}

    def compare(self, audit: Audit, other: str) -> Comparison:
        """Always raises PageNotFound."""
        raise PageNotFound(f"Audit {other!r} does not exist; it cannot be compared with.")

    def questionnaire(self) -> Mapping[str, Any] | None:
        """There is no questionnaire."""
        return None

    def journal(self, person: str | None) -> Sequence[Mapping[str, Any]]:
        """Nobody did anything."""
        return ()


@dataclass(frozen=True, eq=False)
class View:
    """What every page and part is given.

    audit: what is shown. images: where the image of a row is found. axis: the one axis of error rates.
    links: addresses of pages. backend: what a server knows beside the audit. pages, parts: all that are registered.
    """

    audit: Audit
    images: Images
    axis: Axis
    links: Links
    pages: Mapping[str, Page]
    parts: Mapping[str, Part]
    backend: Backend = field(default_factory=NoBackend)

    def slice(self, id: str) -> Slice:
        """A slice of the audit by its id."""
        for slice_ in self.audit.slices:
            if slice_.id == id:
                return slice_
        raise PageNotFound(f"Slice {id!r} does not exist.")

    def task_rows(self, slice_: Slice) -> Evaluation:
        """The rows under the slice's own task: one label of several, or all of the evaluation."""
        return dict(self.audit.evaluation.tasks())[slice_.task]

    @cached_property
    def classes(self) -> tuple[ClassTree, ...]:
        """The groups that trees were grown in."""
        return class_trees(self.audit)

    @cached_property
    def class_pages(self) -> tuple[ClassTree, ...]:
        """Those that have a page: on a server all."""
        return saved_groups(self.classes) if self.links.saved else self.classes

    def class_of(self, slice_: Slice) -> ClassTree | None:
        """The group whose tree a slice is a leaf of; None of a slice that is no path."""
        return class_of(self.classes, slice_)

    @cached_property
    def features(self) -> FeatureAnswers:
        """What people answered about features."""
        return FeatureAnswers(self.audit)

    @cached_property
    def held_out_data(self) -> dict[str, Any] | None:
        """The held-out rows as a saved page lists them and tests hypotheses on them; None where it cannot."""
        return script_data.held_out_data(self.audit)

    @property
    def testable(self) -> bool:
        """Whether a page can test a hypothesis."""
        has_outcomes = self.audit.evaluation.errors is not None
        return has_outcomes and (not self.links.saved or self.held_out_data is not None)

    @property
    def packages(self) -> tuple[str, ...]:
        """Packages whose templates are read."""
        packages = {page.package for page in self.pages.values()} | {part.package for part in self.parts.values()}
        return tuple(sorted(packages))


@dataclass(frozen=True)
class Page:
    """One page of the report and the app.

    name: its key in `PAGES`. template: extends `frame`, with the block `content`. context: a view and the parameters
    of the address -> the values of the template, `title` among them; the value `template` names another template.
    paths: addresses of the app, such as "/slice/{id}". nav: its entry in the navigation bar, where it has one.
    saved: an audit -> the parameters of each copy of the page in the saved report; None: it is not in there.
    saved_data: JSON for the scripts of the saved report, by the id of its element. scripts, keys: of this page;
    served_keys: keys that only the app has. package: where its templates are.
    """

    name: str
    template: str
    context: Callable[[View, Request], Values]
    paths: tuple[str, ...] = ()
    nav: str = ""
    saved: Callable[[Audit], Iterable[Request]] | None = None
    saved_data: Callable[[View], Mapping[str, Any]] | None = None
    scripts: tuple[Script, ...] = ()
    keys: tuple[tuple[str, str], ...] = ()
    served_keys: tuple[tuple[str, str], ...] = ()
    package: str = "errata.report"

    def anchor(self, request: Request) -> str:
        """The id of the page within the saved report: "overview", "slice/s1"."""
        path = self.paths[0] if self.paths else ""
        return path.format(**request).strip("/") or self.name


@dataclass(frozen=True)
class Section:
    """A stretch of a page under one heading, which holds parts.

    id: of its element, and what its parts name. heading: its title. order: its place on the page. note: a sentence
    under the heading. short: the heading in the list of contents. page: "slice" or "overview". template: how its parts
    are laid out. context: the view, the slice (None on the overview) and the values of its parts -> more values of the
    template. always: shown though it has no part.
    """

    id: str
    heading: str
    order: float
    note: str = ""
    short: str = ""
    page: str = "slice"
    template: str = "section.html"
    context: Callable[[View, Any, Sequence[Values]], Values] | None = None
    always: bool = False


@dataclass(frozen=True)
class Part:
    """What a page shows of one kind of explanation.

    kind: of the explanation; its key in `PARTS`. section: where it stands. context: the view and the slice (None on
    the overview) -> the values of the template as `part`; None: nothing to show. template: shows `part`. order: within
    its section. includes: further kinds that it shows. scripts: of this part. package: where its template is.
    """

    kind: str
    section: Section
    context: Callable[[View, Any], Values | None]
    template: str = ""
    order: float = 0.0
    includes: tuple[str, ...] = ()
    scripts: tuple[Script, ...] = ()
    package: str = "errata.report"
