"""`errata defuse`: from a trained classifier to a corrected one. The same command again resumes the run."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..report.printing import echo, safe_console

if TYPE_CHECKING:
    from .run import Defused
    from .settings import DefuseSettings

FUNCTION = "MODULE:FUNCTION"


Train = Annotated[Path, typer.Argument(metavar="TRAIN", help="Images and labels, .npz or .parquet.")]
Output = Annotated[Path, typer.Option("-o", "--output", metavar="DIR", help="The run; created, or resumed.")]
Model = Annotated[str, typer.Option(metavar=FUNCTION, help="Makes the classifier; or a network of Errata, by name.")]
Weights = Annotated[Path | None, typer.Option(metavar="FILE", help="Its weights, .safetensors.")]
Prepare = Annotated[
    str | None, typer.Option(metavar=FUNCTION, help="From pixels in [0, 1] to what the classifier takes.")
]
Validation = Annotated[Path | None, typer.Option(metavar="FILE", help="Rows that choose the strength.")]
Test = Annotated[Path | None, typer.Option(metavar="FILE", help="Rows that nothing is chosen by.")]
Oracle = Annotated[
    str | None, typer.Option(metavar=FUNCTION, help="Labels images. Default: people do, in `errata serve DIR`.")
]
OtherRun = Annotated[Path | None, typer.Option(metavar="DIR", help="Another run, whose generator is reused.")]
Partly = Annotated[bool, typer.Option("--partly", help="Correct even if some samples have no label.")]
Published = Annotated[bool, typer.Option("--published", help="The paper's settings instead of the defaults.")]
# By hand, since the settings need torch's room, which `--help` does not wait for; a test compares both.
SETTINGS = (
    "One of the settings; repeat. Generator: latent=10 beta=0.1 lr=0.001 epochs=auto batch=auto anneal=auto "
    "faithful=0.75. Search: check_prepare=true split=train a=50 b=50 scale=2 centred=true q=100 cap=20 most=50000. "
    "Regions: components=100 least=0.003 steps=200 tau=0.05 shown=10. Labels: quorum=1 rho=0.5. Correction: tuning=256 "
    "testing=256 strengths=1e-10,…,1000 tune_epochs=auto tune_batch=auto tune_lr=0.0001 selection=no-harm "
    "baseline=true. seed=0. `auto`: from the number of images."
)
Sets = Annotated[list[str], typer.Option("--set", metavar="KEY=VALUE", help=SETTINGS)]
Device = Annotated[str | None, typer.Option(help="Default: a GPU if available.")]
Database = Annotated[str | None, typer.Option(metavar="URL", help="The database of people's answers. Default: in DIR.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]


def defuse(
    train: Train,
    output: Output,
    model: Model,
    weights: Weights = None,
    prepare: Prepare = None,
    validation: Validation = None,
    test: Test = None,
    oracle: Oracle = None,
    vae: OtherRun = None,
    partly: Partly = False,
    published: Published = False,
    sets: Sets = [],
    device: Device = None,
    database: Database = None,
    as_json: AsJson = False,
) -> None:
    """Find generated images that a classifier gets wrong, have them labelled, and correct it."""
    from ..core import require

    torch = require("torch", "torch")
    from ..report.progress_bars import stage_bar
    from .images import read_images
    from .run import defuse as run_defuse
    from .votes import stored_votes

    settings = _settings(sets, published)
    images, labels, names = read_images(train)
    classifier, normalise = _classifier(model, weights, images.shape, int(labels.max()) + 1)
    if prepare is not None:
        normalise = _imported(prepare)
    label = None if oracle is None else _imported(oracle)
    if device is None and torch.cuda.is_available():
        device = "cuda"
    with stage_bar() as progress:
        result = run_defuse(
            classifier,
            (images, labels),
            output,
            validation=_further_rows(validation, names),
            test=_further_rows(test, names),
            prepare=normalise,
            oracle=label,
            votes=lambda run: stored_votes(run, database),
            partly=partly,
            settings=settings,
            vae=_saved_vae(vae),
            class_names=names,
            device=device,
            progress=progress,
        )
    _print_result(result, as_json)


def _print_result(result: Defused, as_json: bool) -> None:
    from .. import report

    if as_json:
        echo(json.dumps({"stage": result.stage, "words": result.words, "folder": str(result.folder)}))
        return
    echo(f"{result.words[0].upper()}{result.words[1:]}.")
    if result.comparison is not None:
        safe_console(highlight=False).print(report.comparison_table(result.comparison))
    if result.stage == "to label":
        echo(f"Label them with `errata serve {result.folder}`, then give this command again to resume the run.")
    echo(str(result.folder / "report.html"))


def _settings(sets: Iterable[str], published: bool) -> DefuseSettings:
    from ..core import InputError
    from ..core.errors import unknown
    from .settings import KINDS, DefuseSettings, parse_setting

    values: dict[str, Any] = {}
    for text in sets:
        key, equals, value = text.partition("=")
        if not equals:
            raise InputError(f"`--set` takes KEY=VALUE; got `{text}`")
        if key not in KINDS:
            raise unknown("setting", key, KINDS)
        values[key] = parse_setting(key, value)
    if published:
        return DefuseSettings.as_published(**values)
    return DefuseSettings(**values)


def _classifier(name: str, weights: Path | None, shape: tuple[int, ...], classes: int) -> tuple[Any, Any]:
    """The network, and how pixels are normalise_bytes where it is one of ours."""
    from ..core import InputError
    from ..train import NETWORKS, network, normalise_pixels

    prepare = None
    if name not in NETWORKS:
        model = _imported_network(name)
    elif weights is None:
        raise InputError(f"`{name}` has no weights; give them with `--weights`")
    else:
        channels = 1 if len(shape) == 3 else shape[3]
        model = network(name, px=shape[1], outputs=classes, channels=channels)
        prepare = normalise_pixels
    if weights is not None:
        _load_weights(model, weights)
    return model, prepare


def _imported_network(name: str) -> Any:
    """The network that MODULE:FUNCTION makes; or that it names, where it is a network itself."""
    from torch import nn

    from ..core import InputError

    model = _imported(name)
    if not isinstance(model, nn.Module):
        try:
            model = model()
        except (Exception, SystemExit) as error:  # another's code may do anything, and even end the program
            raise InputError(
                f"`{name}` must make the classifier, called without arguments; it fails ({_in_words(error)})"
            ) from error
    if not isinstance(model, nn.Module):
        raise InputError(f"`{name}` must make the classifier, a torch.nn.Module; got {type(model).__name__}")
    return model


def _load_weights(model: Any, weights: Path) -> None:
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    from ..core import InputError

    try:
        model.load_state_dict(load_file(weights))
    except (OSError, RuntimeError, ValueError, SafetensorError) as error:
        words = str(error).strip().replace("\n", " ")
        raise InputError(f"`{weights}` does not fit the classifier ({words[:200]})") from error


def _saved_vae(folder: Path | None) -> Any:
    """The VAE of another run."""
    from ..core import InputError
    from .stages import RunFolder
    from .vae import Vae

    if folder is None:
        return None
    run = RunFolder(folder)
    if not run.has("vae"):
        raise InputError(f"`{folder}` has no VAE yet; let its run train one")
    return Vae.from_state(run.load("vae"))


def _imported(name: str) -> Any:
    """MODULE:FUNCTION, from an installed package or the working folder."""
    from ..core import InputError

    module, colon, function = name.partition(":")
    if not colon or not module or not function:
        raise InputError(f"`{name}` must be {FUNCTION}, such as `mine:classifier`")
    here = str(Path.cwd())
    sys.path.append(here)  # after all installed packages: a file here never takes the place of one
    try:
        value = getattr(importlib.import_module(module), function)
    except (Exception, SystemExit) as error:  # another's code may do anything, and even end the program
        raise InputError(f"cannot import `{name}` ({_in_words(error)})") from error
    finally:
        sys.path.remove(here)
    if not callable(value):  # an oracle is only called after hours
        raise InputError(f"`{name}` must be a function; got {type(value).__name__}")
    return value


def _in_words(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}".partition("\n")[0]


def _further_rows(path: Path | None, names: tuple[str, ...] | None) -> Any:
    """Images and classes of a further file, by the class numbers of the training file."""
    import numpy as np

    from ..core import InputError
    from .images import read_images

    if path is None:
        return None
    images, labels, own = read_images(path)
    if (own is None) != (names is None):
        raise InputError(f"`{path}` and the training file must both have class numbers, or both names")
    if own is None or names is None:
        return images, labels
    unknown = sorted(set(own) - set(names))
    if unknown:
        raise InputError(f"`{path}` has the class {unknown[0]!r}, which the training file does not have")
    return images, np.array([names.index(name) for name in own])[labels]
