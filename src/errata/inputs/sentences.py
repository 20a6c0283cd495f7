"""Texts with their embeddings, from whatever embeds texts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..core import Captions, InputError

# Any sentence encoder: a list of m texts -> (m, d). `SentenceTransformer(folder).encode` and `ClipSpace.texts` are.
Encoder = Callable[[list[str]], Any]


def embed_captions(
    texts: Sequence[str] | str | Path,
    encode: Encoder,
    representation: str,
    *,
    references: Sequence[str] | None = None,
) -> Captions:
    """Candidate texts for `audit(..., texts=)`.

    texts: a list, or a text file with one on each line. encode: the encoder whose space `representation` is.
    references: for each class the plainest text, "a photo of a dog"; those that are not among the texts are added.
    """
    given = _lines(Path(texts)) if isinstance(texts, str | Path) else list(texts)
    every = list(dict.fromkeys([*(references or ()), *given]))
    return Captions(every, np.asarray(encode(every)), representation, references)


def _lines(path: Path) -> list[str]:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"`{path}` cannot be read ({error}); give a text file in UTF-8, one text a line") from error
    return [line.strip() for line in lines if line.strip()]
