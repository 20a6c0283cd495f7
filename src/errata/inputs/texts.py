"""Candidate texts with their embeddings: from whatever embeds texts, or from a file."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..core import Captions, InputError
from ..core.captions import CaptionScore
from ..core.errors import unknown
from .files import check_file
from .names import has_prefix
from .npz import open_npz, read_array

ARRAYS = ("texts", "references", "score")
# Any sentence encoder: a list of m texts -> (m, d). `SentenceTransformer(folder).encode` and `ClipSpace.texts` are.
Encoder = Callable[[list[str]], Any]


def embed_captions(
    texts: Sequence[str] | str | Path,
    encode: Encoder,
    representation: str,
    *,
    references: Sequence[str] | None = None,
    score: CaptionScore = "correlation",
) -> Captions:
    """Candidate texts for `audit(..., texts=)`.

    texts: a list, or a text file with one on each line. encode: the encoder whose space `representation` is.
    references: for each class the plainest text, "a photo of a dog"; those that are not among the texts are added.
    score: what captions of a direction are chosen by, as in `Captions`.
    """
    if isinstance(texts, str | Path):
        texts = _lines(Path(texts))
    candidates = list(dict.fromkeys([*(references or ()), *texts]))
    return Captions(candidates, np.asarray(encode(candidates)), representation, references, score)


def read_texts(path: str | Path) -> Captions:
    """Candidate texts from an `.npz` with `texts` (m,) and `embedding` or `embedding:NAME` (m, d).

    It may hold `references` (k,) too, for each class the plainest of the texts; and `score`, a text, as in `Captions`.
    """
    path = Path(path)
    check_file(path, (".npz",))
    with open_npz(path) as archive:
        spaces = [name for name in archive.files if name == "embedding" or has_prefix(name, ("embedding:",))]
        for name in archive.files:
            if name not in (*ARRAYS, *spaces):
                raise unknown(f"array in `{path.name}`:", name, (*ARRAYS, "embedding", "embedding:"))
        if "texts" not in archive.files or len(spaces) != 1:
            raise InputError(
                f"`{path.name}` must hold `texts` (m,) and one of `embedding` or `embedding:NAME` (m, d); "
                f"got {', '.join(f'`{name}`' for name in archive.files) or 'nothing'}"
            )
        texts = read_array(path, archive, "texts")
        embeddings = read_array(path, archive, spaces[0])
        further: dict[str, Any] = {}
        if "references" in archive.files:
            further["references"] = read_array(path, archive, "references")
        if "score" in archive.files:
            further["score"] = str(read_array(path, archive, "score"))
    representation = spaces[0].partition(":")[2] or spaces[0]
    return Captions(texts, embeddings, representation, **further)


def read_vocabulary(path: str | Path) -> list[str]:
    """Words and phrases that may describe slices of texts, from a text file, one a line."""
    phrases = _lines(Path(path))
    if not phrases:
        raise InputError(f"`{path}` has no word; write words and phrases, one a line")
    return phrases


def _lines(path: Path) -> list[str]:
    if os.path.exists(path) and not os.path.isfile(path):  # a device may have no end; a long name is no error here
        raise InputError(f"`{path}` is no file; give a text file in UTF-8, one text a line")
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"`{path}` cannot be read ({error}); give a text file in UTF-8, one text a line") from error
    return [line.strip() for line in lines if line.strip()]
