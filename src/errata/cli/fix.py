"""`errata plan KIND`, generated from the registry of plans, and `errata recheck`."""

from __future__ import annotations

import inspect
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from ..report.printing import echo, safe_console
from .common import Chosen, Database, Dir, chosen_words, read_like, tell_choice
from .gates import Junit, Summary, check_gate, finish
from .plugins import Plugins, import_methods

if TYPE_CHECKING:
    from ..fix import PlanFunction

Output = Annotated[Path, typer.Option("-o", "--output", metavar="FILE", help="The .parquet to write.")]


def plan_commands() -> typer.Typer:
    """Return the group `errata plan` with one command for every plan of the registry."""
    from ..fix import registry

    app = typer.Typer(
        help="Plan how to fix a slice: rows that count more, labels to change, rows to add, images to draw."
    )
    app.callback()(lambda: None)  # a group, even with a single plan
    for kind, plan in registry().items():
        app.command(kind)(_command(plan))
    return app


def _command(plan: PlanFunction) -> Any:
    """Return a command whose arguments and options are the parameters of a plan function."""
    from ..core import Captions, Evaluation

    hints = get_type_hints(plan)
    parameters = list(inspect.signature(plan).parameters.values())[1:]  # the first is the audit
    rows = [parameter.name for parameter in parameters if hints.get(parameter.name) is Evaluation]
    texts = [parameter.name for parameter in parameters if hints.get(parameter.name) == Captions | None]
    helps = _parameter_helps(plan)
    fields = [_field("folder", Dir), *(_field(name, _file(name, helps)) for name in rows), _field("output", Output)]
    for parameter in parameters:
        if parameter.name == "slices":
            fields += [_field("slices", Chosen, []), _field("database", Database, None)]
        elif parameter.name not in rows:
            kind = Path | None if parameter.name in texts else _option_type(parameter.default)
            fields.append(_field(parameter.name, _option(parameter.name, kind, helps), parameter.default))

    def command(folder: Path, output: Path, **values: Any) -> None:
        from .. import store, workflow
        from ..inputs import read_texts

        store.check_parquet_output(output)
        takes_slices = "slices" in values
        audit = workflow.load(folder, judged=takes_slices, database=values.pop("database", None))
        for name in rows:
            values[name] = read_like(values[name], audit)
        for name in texts:
            if values[name] is not None:
                values[name] = read_texts(values[name])
        if takes_slices:
            values["slices"] = chosen_words(values["slices"])
        result = workflow.make_plan(plan, audit, values)
        store.save_plan(result, output)
        if takes_slices and (result.slices or audit.drawn):
            tell_choice(audit, values["slices"])
        echo(result.why)
        echo(str(output))

    command.__signature__ = inspect.Signature(fields)  # type: ignore[attr-defined]  # what typer reads
    command.__annotations__ = {field.name: field.annotation for field in fields}
    command.__doc__ = (inspect.getdoc(plan) or "").partition("\n")[0]
    return command


def _field(name: str, annotation: Any, default: Any = inspect.Parameter.empty) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _file(name: str, helps: dict[str, str]) -> Any:
    return Annotated[Path, typer.Argument(metavar=name.upper(), help=helps.get(name, "A file of rows."))]


def _option(name: str, kind: Any, helps: dict[str, str]) -> Any:
    metavar = "FILE" if kind == Path | None else None
    return Annotated[kind, typer.Option(metavar=metavar, help=helps.get(name, ""))]


def _option_type(default: Any) -> Any:
    """Return the type of an option's text: that of its default. A choice is text; the plan refuses a wrong one."""
    if isinstance(default, bool | int | float | Path):
        return type(default)
    return str | None if default is None else str


def _parameter_helps(function: Any) -> dict[str, str]:
    """Return the first sentence about each parameter, from the section "Parameters" of a docstring."""
    section = re.search(r"^Parameters\n-+\n(.*?)(?:\n\n\w+\n-+\n|\Z)", inspect.getdoc(function) or "", re.M | re.S)
    if section is None:
        return {}
    entries = re.findall(r"^(\w+) :.*\n((?:[ ]{4}.*\n?|\n)+)", section[1] + "\n", re.M)
    return {name: " ".join(text.split()).partition(". ")[0].rstrip(".") + "." for name, text in entries}


def recheck(
    folder: Dir,
    before: Annotated[Path, typer.Argument(metavar="BEFORE", help="Held-out rows under the audited model.")],
    after: Annotated[Path, typer.Argument(metavar="AFTER", help="The same rows under the other model.")],
    output: Annotated[Path | None, typer.Option("-o", "--output", metavar="FILE", help="A .json to write.")] = None,
    slices: Chosen = [],
    database: Database = None,
    alpha: Annotated[float, typer.Option(help="Chance that any interval misses, on each side.")] = 0.05,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of the table.")] = False,
    fail_on: Annotated[str | None, typer.Option(metavar="worse", help="Exit 1 if any group of rows got worse.")] = None,
    plugin: Plugins = [],
    junit: Junit = None,
    summary: Summary = None,
) -> None:
    """Compare two models in the slices of an audit, on rows that were not audited."""
    from .. import fix, report, store, workflow
    from ..report.gates import comparison_gate

    if output is not None:
        store.check_output(output)
    check_gate(fail_on, ("worse",), junit, summary, read=(folder, before, after), output=output)
    audit = workflow.load(folder, methods=import_methods(plugin), judged=True, database=database)
    words = chosen_words(slices)
    comparison = fix.recheck(audit, read_like(before, audit), read_like(after, audit), slices=words, alpha=alpha)
    tell_choice(audit, words, quiet=as_json)
    text = json.dumps(comparison.to_json(), indent=1)
    if output is not None:
        with store.atomic_file(output) as partial:
            partial.write_text(text + "\n")
    if as_json:
        echo(text)
    else:
        safe_console(highlight=False).print(report.comparison_table(comparison))
    finish(comparison_gate(comparison, "recheck", fail_on), junit, summary, quiet=as_json)
