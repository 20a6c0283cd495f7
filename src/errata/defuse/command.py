"""`errata defuse`: from a trained classifier to a corrected one. The same command again goes on where it stopped."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

FUNCTION = "MODULE:FUNCTION"


def defuse(
    train: Annotated[Path, typer.Argument(metavar="TRAIN", help="Pictures and labels, .npz or .parquet.")],
    output: Annotated[Path, typer.Option("-o", "--output", metavar="DIR", help="The run; begun, or gone on with.")],
    model: Annotated[str, typer.Option(metavar=FUNCTION, help="Makes the classifier; or the name of one of ours.")],
    weights: Annotated[Path | None, typer.Option(metavar="FILE", help="Its weights, .safetensors.")] = None,
    prepare: Annotated[
        str | None, typer.Option(metavar=FUNCTION, help="From pixels in [0, 1] to what the classifier takes.")
    ] = None,
    validation: Annotated[Path | None, typer.Option(metavar="FILE", help="Rows that choose the strength.")] = None,
    test: Annotated[Path | None, typer.Option(metavar="FILE", help="Rows that nothing is chosen by.")] = None,
    oracle: Annotated[
        str | None, typer.Option(metavar=FUNCTION, help="Labels pictures; left out, people do, in `errata serve DIR`.")
    ] = None,
    vae: Annotated[Path | None, typer.Option(metavar="DIR", help="Another run, whose generator is used again.")] = None,
    partly: Annotated[bool, typer.Option("--partly", help="Go on though some samples have no label.")] = False,
    published: Annotated[bool, typer.Option("--published", help="The paper's settings instead of ours.")] = False,
    sets: Annotated[list[str], typer.Option("--set", metavar="KEY=VALUE", help="One of the settings.")] = [],
    device: Annotated[str | None, typer.Option(help="Left out: a GPU where there is one.")] = None,
    database: Annotated[
        str | None, typer.Option(metavar="URL", help="Where people's answers are, if not in DIR.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Find pictures beyond the data that a classifier gets wrong, have them labelled, and correct it."""
    from ..core import require

    torch = require("torch", "torch")
    from .. import report
    from ..report.progress_bars import stage_bar
    from . import defuse as whole
    from .images import read_pictures
    from .judgements import stored_votes

    settings = _settings(sets, published)
    images, labels, names = read_pictures(train)
    classifier, own = _classifier(model, weights, images.shape, int(labels.max()) + 1)
    others = {name: _like(path, names) for name, path in (("validation", validation), ("test", test))}
    where = device or ("cuda" if torch.cuda.is_available() else None)
    with stage_bar() as progress:
        found = whole(
            classifier, (images, labels), output, prepare=_function(prepare) if prepare else own,
            oracle=_function(oracle) if oracle else None, votes=lambda kept: stored_votes(kept, database),
            partly=partly, settings=settings, vae=_generator(vae), class_names=names, device=where, progress=progress,
            **others,
        )  # fmt: skip
    if as_json:
        typer.echo(json.dumps({"stage": found.stage, "words": found.words, "folder": str(found.folder)}))
        return
    typer.echo(f"{found.words[0].upper()}{found.words[1:]}.")
    if found.comparison is not None:
        Console(highlight=False).print(report.comparison_table(found.comparison))
    if found.stage == "to label":
        typer.echo(f"Label them with `errata serve {output}`, then give this command again: it goes on from here.")
    typer.echo(str(found.folder / "report.html"))


def _settings(sets: Iterable[str], published: bool) -> Any:
    from ..core import InputError
    from ..core.errors import unknown
    from .settings import KINDS, Settings, value_of

    given: dict[str, Any] = {}
    for text in sets:
        key, equals, value = text.partition("=")
        if not equals:
            raise InputError(f"`--set` takes KEY=VALUE; got `{text}`")
        if key not in KINDS:
            raise unknown("setting", key, KINDS)
        given[key] = value_of(key, value)
    return Settings.as_published(**given) if published else Settings(**given)


def _classifier(name: str, weights: Path | None, shape: tuple[int, ...], classes: int) -> tuple[Any, Any]:
    """The network, and how pixels are prepared where it is one of ours."""
    from ..core import InputError
    from ..train import NETWORKS, network, scaled

    if name in NETWORKS:
        if weights is None:
            raise InputError(f"`{name}` has no weights; give them with `--weights`")
        model, own = network(name, px=shape[1], outputs=classes), scaled
    else:
        model, own = _made(name), None
    if weights is not None:
        _load(model, weights)
    return model, own


def _made(name: str) -> Any:
    """MODULE:FUNCTION called; or what it names, where that is a network already."""
    from torch import nn

    from ..core import InputError

    found = _function(name)
    try:
        made = found if isinstance(found, nn.Module) else found()
    except Exception as error:  # in any of the ways another's code may fail
        words = _first_line(error)
        raise InputError(f"`{name}` must make the classifier, called without arguments; it fails ({words})") from error
    if not isinstance(made, nn.Module):
        raise InputError(f"`{name}` must make the classifier, a torch.nn.Module; got {type(made).__name__}")
    return made


def _first_line(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"


def _load(model: Any, weights: Path) -> None:
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    from ..core import InputError

    try:
        model.load_state_dict(load_file(weights))
    except (OSError, RuntimeError, ValueError, SafetensorError) as error:
        words = str(error).strip().replace("\n", " ")
        raise InputError(f"`{weights}` does not fit the classifier ({words[:200]})") from error


def _generator(folder: Path | None) -> Any:
    """That of another run, which has come so far."""
    from ..core import InputError
    from .stages import Run
    from .vae import Vae

    if folder is None:
        return None
    run = Run(folder)
    if not run.has("vae"):
        raise InputError(f"`{folder}` has no VAE yet; let its run train one")
    return Vae.from_state(run.load("vae"))


def _function(name: str) -> Any:
    """MODULE:FUNCTION, from an installed package or the working folder."""
    from ..core import InputError

    module, colon, function = name.partition(":")
    if not colon or not module or not function:
        raise InputError(f"`{name}` must be {FUNCTION}, such as `mine:classifier`")
    sys.path.insert(0, str(Path.cwd()))
    try:
        found = getattr(importlib.import_module(module), function)
    except (ImportError, AttributeError) as error:
        raise InputError(f"`{name}` cannot be had ({error})") from error
    finally:
        sys.path.pop(0)
    if not callable(found):  # an oracle is only called after hours
        raise InputError(f"`{name}` must be a function; got {type(found).__name__}")
    return found


def _like(path: Path | None, names: tuple[str, ...] | None) -> Any:
    """Rows of a further file, by the class numbers of the first."""
    import numpy as np

    from ..core import InputError
    from .images import read_pictures

    if path is None:
        return None
    images, labels, own = read_pictures(path)
    if (own is None) != (names is None):
        raise InputError(f"`{path}` and the training file must both have class numbers, or both names")
    if own is None or names is None:
        return images, labels
    unknown = sorted(set(own) - set(names))
    if unknown:
        raise InputError(f"`{path}` has a class {unknown[0]!r} that the training file has not")
    return images, np.array([names.index(one) for one in own])[labels]
