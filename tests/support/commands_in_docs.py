"""Commands that pages show, and whether each would be understood: read by its own parser, and then not run."""

from __future__ import annotations

import argparse
import contextlib
import importlib
import io
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from errata.cli.app import USAGE_ERROR, load_command

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
SPAN = re.compile(r"`((?:OMP_NUM_THREADS=1 )?(?:python )?benchmarks/[^`]+|errata bench [^`]+)`")


class Understood(Exception):
    """Raised where a script has read its arguments and would begin to work."""


class NotUnderstood(Exception):
    """What a script without a parser, or a group of commands, would say."""


def commands_in(text: str) -> list[str]:
    """Of code spans, which may go over two lines, the commands of benchmarks; the first of alternatives (`a|b`)."""
    found = []
    for span in SPAN.findall(text):
        plain = re.sub(r"^(OMP_NUM_THREADS=1 )?(python )?", "", " ".join(span.split()))
        found.append(re.sub(r"\|\S+", "", plain.replace("[", "").replace("]", "")))
    return found


def refusal_of(command: str) -> str | None:
    """What its parser says against a command; None where it would run."""
    program, *words = shlex.split(command)
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said), pytest.MonkeyPatch.context() as patch:
            if program == "errata":
                parse_errata(words)
            else:
                parse_benchmark(BENCHMARKS.parent / program, words, patch)
    except Understood:
        return None
    except (SystemExit, NotUnderstood, USAGE_ERROR, OSError) as error:
        last = said.getvalue().strip().splitlines()[-1:]
        return "".join(last) or str(error) or type(error).__name__
    return None


def parse_errata(words: list[str]) -> None:
    """Names, options and their types; nothing is invoked."""
    name, inner, *rest = words
    group = load_command(name)
    if inner not in group.commands:
        raise NotUnderstood(f"`errata {name}` has no command {inner}")
    group.commands[inner].make_context(inner, rest)


def parse_benchmark(path: Path, words: list[str], patch: pytest.MonkeyPatch) -> None:
    """A script without a parser of its own takes the words that its text names."""
    text = path.read_text(encoding="utf-8")
    if ".parse_args()" not in text:
        unknown = [word for word in words if f'"{word}"' not in text]
        if unknown:
            raise NotUnderstood(f"{path.name} does not know {unknown}")
        return
    parse = argparse.ArgumentParser.parse_args

    def only_parse(parser: argparse.ArgumentParser, *given: object) -> argparse.Namespace:
        parse(parser, words)
        raise Understood

    module = imported(path, patch)
    patch.setattr(argparse.ArgumentParser, "parse_args", only_parse)
    module.main()


def imported(path: Path, patch: pytest.MonkeyPatch) -> ModuleType:
    """Scripts import each other by name."""
    patch.syspath_prepend(str(path.parent))
    return importlib.import_module(path.stem)


def refused(text: str) -> Iterator[str]:
    """Each command of a page that would be refused, with the reason."""
    for command in dict.fromkeys(commands_in(text)):
        reason = refusal_of(command)
        if reason is not None:
            yield f"{command}: {reason}"
