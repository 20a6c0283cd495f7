"""Write the pages of docs/reference that the code itself says: commands, methods, Python names, audit.json.

python docs/generate.py            write them
python docs/generate.py --check    exit 1 where a page differs from what would be written
"""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from audit_json import audit_json
from code_words import (
    NOTE,
    examples_of,
    fields_of,
    first_sentence,
    lead_of,
    paragraph,
    prose_of,
    signature,
    table,
    words_of,
)

REFERENCE = Path(__file__).parent / "reference"

ROOMS = {
    "inputs": "Models, data and files into an Evaluation.",
    "slicers": "Methods that find slices.",
    "explain": "Explanations of a slice.",
    "hypothesis": "A condition of one's own: parsed and tested.",
    "people": "Annotations, decisions and their database.",
    "fix": "Plans, and what they changed.",
    "defuse": "Errors beyond the data.",
    "draw": "Images of a direction or of a caption.",
    "tensors": "Shared torch numerics.",
    "train": "Small training loops.",
    "store": "An Audit as a folder.",
    "report": "An Audit as pages.",
    "notebook": "An Audit as frames, plots and the cell of a notebook.",
    "app": "Those pages served.",
    "bench": "Benchmarks of the methods.",
    "core": "The types that all of these share.",
}


# ---- the command line


def commands(command: Any, path: tuple[str, ...] = ("errata",)) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every command and group of commands with the words that call it."""
    yield path, command
    for name, child in getattr(command, "commands", {}).items():
        yield from commands(child, (*path, name))


def root_command() -> Any:
    """The whole tree of commands: `errata` imports the one that is asked for, and this all of them."""
    import typer

    from errata.cli import COMMANDS, create_app, load_command

    root: Any = typer.main.get_command(create_app())
    root.commands |= {name: load_command(name) for name in COMMANDS}
    return root


def _default(parameter: Any) -> str:
    default = parameter.default
    if callable(default) or default is None or default in ((), [], "") or type(default).__name__ == "Sentinel":
        return ""
    if isinstance(default, bool):
        names = [*parameter.opts, *parameter.secondary_opts]
        return f"`{names[0 if default else 1]}`" if parameter.secondary_opts else ""
    if isinstance(default, list | tuple):
        return "`" + ",".join(map(str, default)) + "`"
    return f"`{default}`"


def _option_names(parameter: Any) -> str:
    names = [*parameter.opts, *parameter.secondary_opts]
    value = "" if parameter.is_flag else f" `{parameter.metavar or names[-1].lstrip('-').upper()}`"
    return ", ".join(f"`{name}`" for name in names) + value


def command_line() -> str:
    lines = ["# Command line", "", NOTE, ""]
    lines += [
        "Exit codes: 0 done; 1 a gate failed; 2 bad input (one sentence, nothing written); 70 a fault of ours (one"
    ]
    lines += ["sentence; with ERRATA_TRACEBACK=1 in the environment the traceback too).", ""]
    for path, command in commands(root_command()):
        lines += [f"## {' '.join(path)}", "", prose_of_command(command), ""]
        if getattr(command, "commands", None):
            inner = command.commands.items()
            rows = ((f"`{' '.join((*path, name))}`", prose_of_command(child)) for name, child in inner)
            lines += table(("command", "what it does"), rows)
        parameters = [p for p in command.params if p.name != "help"]
        arguments = [p for p in parameters if p.param_type_name == "argument"]
        options = [p for p in parameters if p.param_type_name == "option"]
        if arguments or not getattr(command, "commands", None):
            usage = " ".join([*path, *map(_metavar, arguments)])
            lines += ["```text", usage + (" [OPTIONS]" if options else ""), "```", ""]
        if arguments:
            lines += table(("argument", "meaning"), ((f"`{_metavar(p)}`", p.help or "") for p in arguments))
        if options:
            rows = ((_option_names(p), _required(p) or _default(p), p.help or "") for p in options)
            lines += table(("option", "default", "meaning"), rows)
    return "\n".join(lines)


def _required(parameter: Any) -> str:
    return "required" if parameter.required else ""


def _metavar(parameter: Any) -> str:
    return str(parameter.metavar or parameter.name.upper())


def prose_of_command(command: Any) -> str:
    return paragraph(inspect.cleandoc(command.help or ""))


# ---- methods


def methods() -> str:
    from errata.slicers import describe, registry

    lines = ["# Methods and their options", "", NOTE, ""]
    lines += [
        "`errata audit --method NAME` runs a method, `NAME:as_published` as in its paper. `--set NAME.OPTION=VALUE` "
        "sets an option; in Python, `errata.audit(..., methods=[NAME], options={NAME: {OPTION: VALUE}})`. "
        "`errata methods` prints this list. A preset is a set of options: an empty cell under `as_published` means "
        "that it does not differ. Options named `advanced.KEY` are rarely set; in Python they are "
        "the mapping `advanced`.",
        "",
    ]
    for entry in describe():
        cls = registry()[entry["name"]]
        needs = ", ".join(f"`{name}`" for name in entry["needs"]) or "nothing beyond rows"
        presets = ", ".join(f"`{name}`" for name in entry["presets"])
        lead = lead_of(prose_of(cls), entry["options"])
        lines += [f"## {entry['name']}", "", lead, "", f"Needs {needs}. Presets: {presets}.", ""]
        lines += table(("option", "default", "`as_published`", "allowed", "meaning"), _options(entry, cls))
    return "\n".join(lines)


def _options(entry: Mapping[str, Any], cls: Any) -> Iterator[tuple[str, ...]]:
    """The options of a method, then the advanced ones, `advanced.KEY`."""
    recommended = _flat(cls.presets["recommended"])
    published = _flat(cls.presets["as_published"])
    advanced = {f"advanced.{key}": default for key, default in entry["advanced"].items()}
    for name, default in {**entry["options"], **advanced}.items():
        if name == "advanced":
            continue
        usual = recommended.get(name, default)
        differing = ""
        if name in published and published[name] != usual:
            differing = _json(published[name])
        yield (
            f"`{name}`",
            _json(usual),
            differing,
            entry["allowed"].get(name, ""),
            entry["about"].get(name, ""),
        )


def _flat(preset: Mapping[str, Any]) -> dict[str, Any]:
    """A preset with the keys of `advanced` as `advanced.KEY`."""
    inner = preset.get("advanced", {})
    return {**preset, **{f"advanced.{key}": value for key, value in inner.items()}}


def _json(value: Any) -> str:
    import json

    return "`" + json.dumps(value) + "`"


# ---- Python


def python_names() -> str:
    import errata

    lines = ["# Python", "", NOTE, "", "What `import errata` offers, then the names of each room below it.", ""]
    names = sorted(errata.__all__, key=str.lower)
    functions = [name for name in names if not inspect.isclass(getattr(errata, name))]
    classes = [name for name in names if inspect.isclass(getattr(errata, name))]
    for title, members in (("Functions", functions), ("Classes", classes)):
        lines += [f"## {title}", ""]
        for name in members:
            lines += _python_entry(f"errata.{name}", getattr(errata, name))
    lines += ["## Rooms", "", "Imported from where they are: `from errata.explain import opponents`.", ""]
    for room, words in sorted(ROOMS.items()):
        module = importlib.import_module(f"errata.{room}")
        offered = sorted(getattr(module, "__all__", ()), key=str.lower)
        if offered:
            lines += [f"### errata.{room}", "", words, ""]
            rows = ((f"`{name}`", _one_line(getattr(module, name))) for name in offered)
            lines += table(("name", "what it is"), rows)
    return "\n".join(lines)


def _one_line(thing: Any) -> str:
    if inspect.ismodule(thing) or inspect.isclass(thing) or callable(thing):
        return first_sentence(thing)
    return ""


def _python_entry(name: str, thing: Any) -> list[str]:
    text = prose_of(thing)
    fields = fields_of(thing) if dataclasses.is_dataclass(thing) else {}
    parameters = {} if inspect.isclass(thing) else _parameters(thing)
    words = words_of(text, fields or parameters)
    lines = [f"### {name}", "", "```text", signature(name, thing), "```", "", lead_of(text, words), ""]
    if fields:
        rows = ((f"`{key}`", f"`{kind}`", meaning) for key, (kind, meaning) in fields.items())
        lines += table(("field", "type", "meaning"), rows)
    elif words:
        lines += table(("parameter", "meaning"), ((f"`{key}`", words.get(key, "")) for key in parameters))
    if inspect.isclass(thing):
        lines += _members(thing)
    for example in examples_of(text):
        lines += [example, ""]
    return lines


def _parameters(thing: Any) -> dict[str, Any]:
    return dict(inspect.signature(thing).parameters)


def _members(cls: type) -> list[str]:
    """Public methods and properties with a docstring."""
    rows = []
    for name, member in sorted(vars(cls).items()):
        if name.startswith("_") or (dataclasses.is_dataclass(cls) and name in cls.__dataclass_fields__):
            continue
        inner = getattr(member, "__func__", getattr(member, "fget", getattr(member, "func", member)))
        if inner is not None and callable(inner) and inner.__doc__:
            called = "()" if inspect.isfunction(member) or isinstance(member, classmethod | staticmethod) else ""
            rows.append((f"`{name}{called}`", first_sentence(inner)))
    return table(("member", "what it is"), rows) if rows else []


PAGES: dict[str, Callable[[], str]] = {
    "command-line.md": command_line,
    "methods.md": methods,
    "python.md": python_names,
    "audit-json.md": audit_json,
}


def written(page: str) -> str:
    """A generated page as its file should be."""
    return PAGES[page]().rstrip() + "\n"


def main(arguments: list[str]) -> int:
    stale = []
    for page in PAGES:
        path = REFERENCE / page
        text = written(page)
        if path.exists() and path.read_text(encoding="utf-8") == text:
            continue
        stale.append(page)
        if "--check" not in arguments:
            path.write_text(text, encoding="utf-8")
    if stale and "--check" in arguments:
        sys.stderr.write(f"{', '.join(stale)}: not as the code has it; run `python docs/generate.py`\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
