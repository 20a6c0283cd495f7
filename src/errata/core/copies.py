"""Which rows are copies of each other: equal, or nearly, in a representation, in their text or in their image's bytes.

A row and its copy share their outcome. With one among the search rows and one held out, the held-out row repeats what
the search saw, and chance is confirmed. No outcome is read here.

Equal rows are copies only where equality says something. In a coarse representation (a few categories, one score, few
distinct rows) rows are equal by chance. So at least two columns must have a value that no other row has, or all columns
together must be so unlikely a match that chance would not make one in n^3 rows.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from .blocks import Array, Matrix, blocks, take
from .evaluation import INFLUENCE, Evaluation
from .media import Fingerprinted, Media
from .near_copies import BLOCK, MOST_ROWS, find_near_copies

DROPPED_BITS = 4  # of a float's 24: about six digits are compared
FEWEST_LETTERS = 20  # of a text that tells whose copy it is
MOST_ALIKE = 20  # rows to one value on average: beyond it, values are categories
LARGEST_SHARE = 0.1  # of the rows: beyond it, and SMALL rows, an equal value is a default
SMALL = 10
SAMPLED_ROWS = 5000  # by which the values of equal rows are judged
SAMPLED_COLUMNS = 256
TELLING_COLUMNS = 2
TELLING_LOGS = 4  # logs of n: the information in a match that n^2 pairs do not reach by chance, with much to spare
COARSE_SHARE = 0.1  # of rows that are equal without being copies: from there on nearness says nothing either

NOT_WORDS = re.compile(r"[\W_]+")


@dataclass(frozen=True)
class Copies:
    """Rows that belong together because they are copies.

    Parameters
    ----------
    codes : array
        (n,) int: the same for rows that are copies of each other, of its own for every other row. The place of the
        group's first id among all ids in order, so that the order of rows does not matter.
    rows : mapping of str to int
        Where copies were found -> how many rows have one there.
    """

    codes: Array
    rows: Mapping[str, int]

    @property
    def sizes(self) -> Array:
        """How many rows each group of copies has, of those with more than one."""
        counts = np.unique(self.codes, return_counts=True)[1]
        return np.asarray(counts[counts > 1])


def find_copies(evaluation: Evaluation) -> Copies | None:
    """The rows that are copies of each other; None where there are none.

    Parameters
    ----------
    evaluation : Evaluation
        Its representations, texts and images are read; labels, predictions and losses are not.
    """
    order = np.argsort(evaluation.row_ids, kind="stable")
    media = _media_codes(evaluation.media)
    found: dict[str, Array] = {}
    blank = np.zeros(len(evaluation), dtype=bool)
    if media is not None:
        name = "text" if evaluation.media is not None and evaluation.media.kind == "text" else "image"
        blank = media < 0
        found[name] = media
    for name, X in evaluation.representations.items():
        if name != INFLUENCE:
            equal, near = _representation_codes(X, order)
            found[name] = np.where(blank, -1, equal)
            found[f"{name}, nearly"] = np.where(blank, -1, near)
    return _united(found, order)


def unite(groups: list[Array]) -> Array:
    """(n,) codes of rows that are together in any of several groupings; -1 in one of them says nothing."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    n = len(groups[0])
    rows = []
    firsts = []
    for codes in groups:
        some = np.flatnonzero(codes >= 0)
        _, first, inverse = np.unique(codes[some], return_index=True, return_inverse=True)
        rows.append(some)
        firsts.append(some[first[inverse]])
    edges = (np.ones(sum(map(len, rows)), dtype=bool), (np.concatenate(rows), np.concatenate(firsts)))
    united: Array = connected_components(coo_array(edges, shape=(n, n)), directed=False)[1]
    return united


def too_large(codes: Array) -> bool:
    """Whether one group holds more rows than copies of one thing do."""
    return int(np.unique(codes, return_counts=True)[1].max()) > max(LARGEST_SHARE * len(codes), SMALL)


def _united(found: Mapping[str, Array], order: Array) -> Copies | None:
    """All findings as one grouping; a finding that would join too many rows is left out."""
    codes = np.arange(len(order))
    rows = {}
    for name, own in found.items():
        if (own >= 0).any():
            own = _repeated(own)
        if not (own >= 0).any():
            continue
        together = unite([codes, own])
        if not too_large(together):
            codes = together
            rows[name] = int((own >= 0).sum())
    if not rows:
        return None
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    first = np.full(int(codes.max()) + 1, len(order))
    np.minimum.at(first, codes, place)
    return Copies(first[codes], rows)


def _repeated(codes: Array) -> Array:
    """The codes that more than one row has, and that are no default value; -1 elsewhere."""
    _, inverse, counts = np.unique(codes, return_inverse=True, return_counts=True)
    times = counts[inverse]
    most = max(LARGEST_SHARE * len(codes), SMALL)
    return np.where((codes >= 0) & (times > 1) & (times <= most), codes, -1)


def _media_codes(media: Media | None) -> Array | None:
    """(n,) the same code for the same text or image, -1 where a row has none that tells; None without such media."""
    if media is None:
        return None
    if media.kind == "text":
        prints = [_text_print(media.text(i)) for i in range(len(media))]
    else:
        if not isinstance(media, Fingerprinted):
            return None
        prints = media.fingerprints()
    known = [name for name in prints if name is not None]
    if media.kind == "text" and len(set(known)) * MOST_ALIKE < len(known):
        return None
    number: dict[bytes | None, int] = {None: -1}
    return np.array([number.setdefault(name, len(number)) for name in prints], dtype=np.int64)


def _text_print(text: str | None) -> bytes | None:
    """A hash of the words of a text, whatever its case, spaces and punctuation; None where it is short."""
    words = NOT_WORDS.sub(" ", (text or "").casefold()).strip()
    if len(words) < FEWEST_LETTERS:
        return None
    return hashlib.blake2b(words.encode("utf-8", errors="replace"), digest_size=16).digest()


def _representation_codes(X: Matrix, order: Array) -> tuple[Array, Array]:
    """(n,) codes of rows that are equal, and of rows that are nearly equal; -1 elsewhere."""
    none = np.full(len(X), -1, dtype=np.int32)
    keys = row_keys(X)
    if len(X) > MOST_ROWS and not _has_repeats(keys):  # nor are near copies looked for
        return none, none
    _, codes, sizes = np.unique(keys[order], return_inverse=True, return_counts=True)
    first = np.full(len(sizes), len(X))
    np.minimum.at(first, codes, np.arange(len(X)))  # places in the order of ids
    copied = np.flatnonzero(sizes > 1)
    telling = np.zeros(len(sizes), dtype=bool)
    if len(copied) and len(sizes) * MOST_ALIKE >= len(X):
        telling[copied] = _tells(X, order, codes, copied, order[first[copied]])
    equal = none.copy()
    equal[order] = np.where(telling[codes], codes, -1)
    if (sizes[~telling] - 1).sum() > COARSE_SHARE * len(X):
        return equal, none
    distinct = np.sort(order[first])
    rows = X if len(distinct) == len(X) else take(X, distinct)
    near = none.copy()
    near[distinct] = find_near_copies(rows, np.argsort(np.argsort(order)[distinct], kind="stable"))
    return equal, near


def _has_repeats(keys: Array) -> bool:
    keys = np.sort(keys)
    return bool((keys[1:] == keys[:-1]).any())


def row_keys(X: Matrix) -> Array:
    """(n,) uint64: equal for rows that are equal to about six digits, and for no others but by a rare accident."""
    weights = np.random.default_rng(0).integers(1, 2**63, size=X.shape[1], dtype=np.uint64) | np.uint64(1)
    keys = np.empty(len(X), dtype=np.uint64)
    for rows, block in blocks(X, BLOCK // 4):
        mixed = _rounded(block).astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        mixed ^= mixed >> np.uint64(29)
        keys[rows] = (mixed * weights).sum(axis=1, dtype=np.uint64)
    return keys


def _rounded(block: Array) -> Array:
    """Values as whole numbers that are equal where the values agree to about six digits."""
    bits = (np.ascontiguousarray(block, dtype=np.float32) + np.float32(0)).view(np.uint32)  # no -0
    return np.asarray((bits + np.uint32(1 << (DROPPED_BITS - 1))) >> np.uint32(DROPPED_BITS))


def _tells(X: Matrix, order: Array, codes: Array, copied: Array, leaders: Array) -> Array:
    """(g,) bool, of groups of equal rows: such a match is no chance.

    Parameters
    ----------
    X : array
        (n, d).
    order, codes : array
        (n,) rows in the order of ids, and the group of each.
    copied, leaders : array
        (g,) groups with more than one row, and one row of each.
    """
    n, d = X.shape
    rng = np.random.default_rng(0)
    places = np.sort(rng.permutation(n)[:SAMPLED_ROWS])
    columns = np.sort(rng.permutation(d)[:SAMPLED_COLUMNS])
    sample = np.asarray(X[order[places]])[:, columns]
    if d < 2 or np.linalg.matrix_rank(sample[:1000] - sample[:1000].mean(axis=0)) < 2:
        return np.zeros(len(copied), dtype=bool)
    own = np.bincount(codes[places], minlength=int(codes.max()) + 1)[copied]
    values = np.asarray(X[leaders])
    constant = values.max(axis=1) == values.min(axis=1)
    shared = _times(_rounded(sample), _rounded(values[:, columns]))
    unique = (shared <= own[:, None]).sum(axis=1)
    logs = np.log(len(places) / np.maximum(shared, 1)).sum(axis=1)
    return np.asarray(((unique >= TELLING_COLUMNS) | (logs >= TELLING_LOGS * np.log(n))) & ~constant)


def _times(sample: Array, values: Array) -> Array:
    """(g, c) how often each value occurs in its column of a sample."""
    times = np.empty(values.shape, dtype=np.int64)
    for j in range(values.shape[1]):
        column = np.sort(sample[:, j])
        times[:, j] = np.searchsorted(column, values[:, j], "right") - np.searchsorted(column, values[:, j], "left")
    return times
