"""What several commands share: options of methods as text, and an audit written and summarised."""

from __future__ import annotations

import math
import os
import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..core import InputError
from ..core.extensions import ExtensionWarning
from ..core.json_text import parse_json
from ..report.printing import echo, safe_console

if TYPE_CHECKING:
    from ..core import Audit, Evaluation

# What Python takes for a number and JSON does not: .05, 5., +1. With leading zeros it may be an id, and stays text.
NUMBER = re.compile(r"[+-]?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
Names = list[str]
Dir = Annotated[Path, typer.Argument(metavar="DIR", help="A saved audit.")]


def _check_database(url: str | None) -> str | None:
    if url is not None and not url.strip():  # an unset variable of a script would quietly be the file in DIR
        raise InputError("`--database` is empty; name a database, or leave it out for the file in DIR")
    return url


Database = Annotated[
    str | None,
    typer.Option(metavar="URL", callback=_check_database, help="Database of the records. Default: a file in DIR."),
]
Chosen = Annotated[
    Names,
    typer.Option(
        "--slices",
        "--slice",
        metavar="accepted|confirmed|all|ID",
        help="Which slices; repeat, or separate by commas. Default: those that people accepted, if any.",
    ),
]
EngineName = Annotated[
    str, typer.Option(metavar="NAME", help="local, cuda, ray, ray:auto, ray:HOST:PORT or ray://HOST:PORT.")
]
Sets = Annotated[Names, typer.Option("--set", metavar="METHOD.KEY=VALUE", help="An option of a method.")]


def read_options(methods: Sequence[str], sets: Sequence[str], representations: Sequence[str]) -> dict[str, Any]:
    """Return {"spotlight": {"size": 0.05}} from METHOD.KEY=VALUE and [METHOD=]NAME."""
    options: dict[str, dict[str, Any]] = {}
    for text in sets:
        target, equals, value = text.partition("=")
        method, dot, key = target.partition(".")
        if not (equals and dot and method and key):
            raise InputError(f"`--set` takes METHOD.KEY=VALUE; got {text!r}; for example spotlight.size=0.05")
        options.setdefault(method, {})[key] = read_value(value)
    for text in representations:
        method, equals, name = text.rpartition("=")
        searching = [method] if equals else _searching(methods)
        if not searching:
            raise InputError(f"`--representation {name}`: none of {', '.join(methods)} searches one; leave it out")
        for method in searching:
            options.setdefault(method, {})["representation"] = name
    return options


def chosen_words(slices: Sequence[str]) -> list[str] | None:
    """Return words and ids from `--slices`; None where nobody named any."""
    words = [word.strip() for text in slices for word in text.split(",") if word.strip()]
    if slices and not words:
        raise InputError("`--slices` names none; give accepted, confirmed, all or ids, or leave it out")
    return words or None


def read_like(path: Path, audit: Audit) -> Evaluation:
    """Read a file of rows with all of its columns where the rules of an audit may name one."""
    from ..inputs import read

    columns = ["all"] if audit.evaluation.metadata else []
    return read(path, metadata=columns)


def tell_choice(
    audit: Audit,
    words: Sequence[str] | None,
    default: Any = "confirmed",
    *,
    by_rule: bool = True,
    quiet: bool = False,
) -> None:
    """Print which slices a command starts from, where nobody named them and people accepted some.

    by_rule: the command finds members by rule among other rows, where single moves of people say nothing, and where
    loops that they drew are left out.
    """
    from ..core.judgement import NO_RULE, choose, moved_words

    no_loops = NO_RULE if by_rule else ""
    choice = choose(audit, words, default, no_loops=no_loops)
    sentences = [choice.sentence, choice.left_out]
    if by_rule:
        sentences.append(moved_words(choice.slices))
    for sentence in filter(None, sentences):
        echo(sentence, err=quiet)


def _searching(methods: Sequence[str]) -> list[str]:
    """Return the methods that search a representation; unknown ones too, which are refused by name later."""
    from ..slicers import registry

    known = registry()
    names = {method.partition(":")[0] for method in methods}
    return [name for name in sorted(names) if name not in known or "representation" in known[name].options()]


def read_value(text: str) -> Any:
    """Return a value as JSON has it, or a number as Python writes it; else the text."""
    try:
        value = parse_json(text)
    except ValueError:
        if not NUMBER.fullmatch(text.strip()):
            return text
        value = _number(text.strip())
    if isinstance(value, float) and not math.isfinite(value):
        raise InputError(f"`--set` takes finite numbers; got {text!r}; give a number")
    return value


def _number(text: str) -> float:
    """Return what `NUMBER` matched: whole where it is written so; infinity where it is too large."""
    number = float(text)
    written_whole = set(text).isdisjoint(".eE")
    return int(text) if written_whole and math.isfinite(number) else number


@contextmanager
def plain_warnings() -> Iterator[None]:
    """Print what reading a file warns of as one line each on stderr, without the place in the code."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.simplefilter("ignore", ResourceWarning)  # about our code, not about the file
        yield
    for warning in caught:
        if issubclass(warning.category, ExtensionWarning):
            warnings.showwarning(warning.message, warning.category, warning.filename, warning.lineno)
            continue
        echo(f"Warning: {warning.message}", err=True)


def write_audit(
    audit: Audit,
    output: Path,
    *,
    as_json: bool = False,
    reference: Mapping[str, Any] | None = None,
    note: str | None = None,
    commands: Sequence[str] = (),
    check: Callable[[], None] | None = None,
) -> None:
    """Write the folder, then print what is in it and the path of the report.

    commands: what the notes of the audit recommend, to be copied. check: the last word before the folder is kept.
    """
    from rich.text import Text

    from .. import report, store

    store.save(audit, output, report=report.to_html(audit), reference=reference, check=check)
    if as_json:
        # Its real path: `nope/../out` is written without a folder `nope`, and cannot be read by that name.
        echo((Path(os.path.realpath(output)) / "audit.json").read_text(), nl=False)
        return
    console = safe_console(highlight=False)
    console.print(report.to_terminal(audit))
    if note:
        console.print(Text(f"\n{note}"))
    if commands:
        echo("\nWhat the notes recommend, with this input and these options:")
    for line in (*commands, str(output / "report.html")):
        echo(f"\n{line}")  # not through the console: a line that is wrapped cannot be copied
