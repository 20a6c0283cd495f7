"""Words and phrases of the rows' texts, counted once for all slices, and which of them members of a slice have more of.

A phrase is up to three words in a row. Which are telling is decided on the rows that choose, by Dunning's likelihood
ratio of the rows that have it (Dunning 1993), corrected for all phrases that were compared.
"""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy import special

from ..core import Array, Evaluation, InputError, Media
from ..core.words import words_of
from .function_words import is_telling
from .view import SliceView

if TYPE_CHECKING:
    from scipy import sparse

LONGEST = 3  # words of a phrase
FEWEST = 5  # rows that have it, and members
LEVEL = 0.05  # chance that any of the phrases of a slice is called telling without being so
KEPT = 0.9  # of the evidence of a shorter phrase: a longer one that keeps so much of it stands for both
SAME_ROWS = 0.9  # of the members with a phrase: where so many have one that overlaps it, one of them is enough
BLOCK = 4_000_000  # runs of words that are sorted at once, which bounds the memory


@dataclass(frozen=True, eq=False)
class Words:
    """Which row has which word or phrase that is about something; counted once for all slices."""

    phrases: tuple[str, ...]
    presence: sparse.csr_matrix  # (n, phrases) 1 where a row has it
    lengths: Array  # (n,) words

    def rows_with(self, rows: Array) -> Array:
        """(phrases,) how many of some rows ((n,) bool) have each phrase."""
        counts: Array = self.presence.T @ rows.astype(np.int32)
        return counts

    def have(self, column: int) -> Array:
        """(n,) bool: the rows that have one phrase."""
        rows: Array = self.presence[:, [column]].toarray().ravel() > 0
        return rows

    def present(self, rows: Array, columns: Sequence[int]) -> Array:
        """(rows, columns) bool: which of some rows, by their numbers, has which phrase."""
        present: Array = self.presence[rows][:, list(columns)].toarray() > 0
        return present


@dataclass(frozen=True, eq=False)
class Evidence:
    """How much more often, or less, the members of a slice have each phrase than the rest, on the rows that choose."""

    inside: Array  # (phrases,) members that have it
    outside: Array  # (phrases,) others that have it
    n: int  # members
    rest_n: int  # others
    ratio: Array  # (phrases,) the likelihood ratio, 2 ln(L1 / L0)
    p_value: Array  # (phrases,) corrected for all that were compared; 1 for the others
    compared: int  # phrases

    @property
    def points(self) -> Array:
        """(phrases,) the difference of both shares, in points."""
        difference: Array = 100 * (self.inside / max(self.n, 1) - self.outside / max(self.rest_n, 1))
        return difference

    @property
    def sure(self) -> Array:
        """(phrases,) bool: chance would hardly make both shares so different."""
        return self.p_value <= LEVEL


def count_words(media: Media, vocabulary: Sequence[str] | None = None) -> Words | None:
    """The words and phrases that enough rows have, or those of a vocabulary; None where there is no text or word."""
    if media.kind != "text":
        return None
    if vocabulary is not None:
        return _count_vocabulary(media, vocabulary)
    index: defaultdict[str, int] = defaultdict()
    index.default_factory = index.__len__  # a new word has the next number
    numbers = array("i")  # every word of every text by its number: four bytes, less than the text itself
    lengths = np.zeros(len(media), dtype=np.int64)
    for i in range(len(media)):
        words = words_of(media.text(i) or "")
        numbers.extend([index[word] for word in words])
        lengths[i] = len(words)
    if not index:
        return None
    runs = list(_runs(np.frombuffer(numbers, dtype=np.int32), lengths, list(index)))
    phrases = [phrase for run in runs for phrase in run.phrases]
    firsts = np.cumsum([0, *(len(run.phrases) for run in runs)])
    rows = np.concatenate([run.rows for run in runs])
    columns = np.concatenate([run.codes + np.int32(first) for run, first in zip(runs, firsts[:-1], strict=True)])
    return Words(tuple(phrases), _matrix(rows, columns, len(media), len(phrases)), lengths)


def check_vocabulary(vocabulary: Sequence[str], evaluation: Evaluation) -> tuple[str, ...]:
    """The words and phrases of the user's own, in lower case, each once; an InputError where they can match nothing."""
    if evaluation.media is None or evaluation.media.kind != "text":
        raise InputError("`vocabulary` is looked for in the texts of the rows, and these rows have none")
    if isinstance(vocabulary, str) or not len(vocabulary):
        raise InputError("`vocabulary` must be a list of words and phrases, at least one")
    phrases = []
    for i, phrase in enumerate(vocabulary):
        words = words_of(phrase)
        if not words:
            raise InputError(f"`vocabulary` has no word in {phrase!r}, entry {i + 1}; remove it")
        phrases.append(" ".join(words))
    return tuple(dict.fromkeys(phrases))


def _count_vocabulary(media: Media, vocabulary: Sequence[str]) -> Words:
    """The same of phrases that the user chose, of any length."""
    index = {phrase: j for j, phrase in enumerate(vocabulary)}
    sizes = sorted({len(phrase.split()) for phrase in vocabulary})
    lengths = np.zeros(len(media), dtype=np.int64)
    rows = array("i")
    columns = array("i")
    for i in range(len(media)):
        words = words_of(media.text(i) or "")
        lengths[i] = len(words)
        runs = {" ".join(words[at : at + size]) for size in sizes for at in range(len(words) - size + 1)}
        for phrase in sorted(runs & index.keys()):
            rows.append(i)
            columns.append(index[phrase])
    presence = _matrix(np.array(rows, dtype=np.int32), np.array(columns, dtype=np.int32), len(media), len(vocabulary))
    return Words(tuple(vocabulary), presence, lengths)


def _matrix(rows: Array, columns: Array, n: int, m: int) -> sparse.csr_matrix:
    from scipy import sparse

    return sparse.csr_matrix((np.ones(len(rows), dtype=np.int32), (rows, columns)), shape=(n, m))


@dataclass(frozen=True, eq=False)
class _Runs:
    """The frequent runs of so many words that are about something, and which row has which."""

    phrases: list[str]
    rows: Array  # (entries,) int32
    codes: Array  # (entries,) int32, a number in `phrases`


def _runs(numbers: Array, lengths: Array, words: list[str]) -> Iterator[_Runs]:
    """Frequent words, then pairs of them that follow each other, then threes: a rare part makes a rare phrase."""
    rows = np.repeat(np.arange(len(lengths), dtype=np.int32), lengths)
    keys = numbers.astype(np.int64)
    starts = np.arange(len(numbers))  # where a run of the current length begins
    word_tells = np.array([is_telling(word) for word in words], dtype=bool)
    before = [""]
    tells = np.zeros(1, dtype=bool)
    for size in range(1, LONGEST + 1):
        found = _frequent(keys, rows[starts])
        code, word = np.divmod(found.keys, len(words))
        before = [f"{before[i]} {words[j]}".lstrip() for i, j in zip(code.tolist(), word.tolist(), strict=True)]
        tells = tells[code] | word_tells[word]
        yield _about_something(before, tells, found)
        codes = np.full(len(numbers) + 1, -1, dtype=np.int32)
        codes[starts] = found.code_of_key
        follows = starts[starts + size < len(numbers)]
        goes_on = (codes[follows] >= 0) & (codes[follows + 1] >= 0) & (rows[follows] == rows[follows + size])
        starts = follows[goes_on]
        keys = codes[starts].astype(np.int64) * len(words) + numbers[starts + size]


def _about_something(phrases: list[str], tells: Array, found: _Frequent) -> _Runs:
    """The frequent runs without those of function words alone."""
    kept = tells[found.codes]
    numbers = np.cumsum(tells, dtype=np.int32) - np.int32(1)
    telling = [phrase for phrase, told in zip(phrases, tells.tolist(), strict=True) if told]
    return _Runs(telling, found.rows[kept], numbers[found.codes[kept]])


@dataclass(frozen=True, eq=False)
class _Frequent:
    """The keys that enough rows have, each with a code, and which row has which."""

    keys: Array  # (codes,)
    code_of_key: Array  # (all keys,) -1 where it is rare
    rows: Array  # (entries,)
    codes: Array  # (entries,)


def _frequent(keys: Array, rows: Array) -> _Frequent:
    """keys: one for each run of words. rows: in which it stands, in order."""
    passes = 1 + len(keys) // BLOCK
    code_of_key = np.full(len(keys), -1, dtype=np.int32)
    frequent = []
    entry_rows = []
    entry_codes = []
    number = 0
    for part in range(passes):  # each takes some of the keys, of all rows: nothing needs to be merged
        own = np.flatnonzero(keys % passes == part)
        order = own[np.argsort(keys[own], kind="stable")]
        key = keys[order]
        row = rows[order]
        new = np.ones(len(order), dtype=bool)
        new[1:] = key[1:] != key[:-1]
        first = new.copy()
        first[1:] |= row[1:] != row[:-1]  # of the key in its row
        group = np.cumsum(new) - 1
        often = np.bincount(group[first]) >= FEWEST
        code = np.where(often, number + np.cumsum(often) - 1, -1).astype(np.int32)[group]
        code_of_key[order] = code
        kept = first & (code >= 0)
        frequent.append(key[new][often])
        entry_rows.append(row[kept])
        entry_codes.append(code[kept])
        number += int(np.count_nonzero(often))
    return _Frequent(np.concatenate(frequent), code_of_key, np.concatenate(entry_rows), np.concatenate(entry_codes))


def likelihood_ratio(inside: Array, n: int, outside: Array, rest_n: int) -> Array:
    """2 ln(L1 / L0) of a share of its own in each of two groups against one share of both, from counts."""
    ratio = np.zeros(len(inside))
    total = max(n + rest_n, 1)
    for count, size in ((inside, n), (outside, rest_n)):
        having = (inside + outside) * (size / total)
        for observed, expected in ((count, having), (size - count, size - having)):
            ratio += special.xlogy(observed, observed / np.where(expected > 0, expected, 1.0))
    return np.maximum(2 * ratio, 0.0)


def phrase_evidence(view: SliceView, words: Words) -> Evidence:
    """Of all phrases, on the rows that choose; compared are those that enough of these rows have."""
    members = view.inside & view.chosen
    rest = view.rest & view.chosen
    inside = words.rows_with(members)
    outside = words.rows_with(rest)
    n = int(np.count_nonzero(members))
    rest_n = int(np.count_nonzero(rest))
    ratio = likelihood_ratio(inside, n, outside, rest_n)
    compared = inside + outside >= FEWEST
    number = int(np.count_nonzero(compared))
    p_value = np.where(compared, np.minimum(special.chdtrc(1, ratio) * number, 1.0), 1.0)
    return Evidence(inside, outside, n, rest_n, ratio, p_value, number)


def telling_phrases(view: SliceView, words: Words, evidence: Evidence, most: int) -> list[int]:
    """The phrases that members have more of beyond chance, by their number, the most evidence first.

    Of phrases within each other the longest stands that keeps the evidence; of phrases that overlap in the same
    members one is enough.
    """
    more = evidence.sure & (evidence.inside >= FEWEST) & (evidence.points > 0)
    candidates = _without_bare_edges(words, evidence, np.flatnonzero(more))
    size = np.array([len(words.phrases[j].split()) for j in candidates], dtype=np.int64)
    order = np.lexsort((candidates, -size, -np.round(evidence.ratio[candidates], 9)))
    candidates = candidates[order]
    members = np.flatnonzero(view.inside & view.chosen)
    held = words.presence[members][:, candidates].tocsc()
    place = {words.phrases[j]: i for i, j in enumerate(candidates)}
    longer = _longer(place)
    chosen: list[int] = []
    for i, j in enumerate(candidates):
        enough = KEPT * evidence.ratio[j]
        options = [k for k in longer.get(words.phrases[j], ()) if evidence.ratio[candidates[k]] >= enough]
        best = max(options, key=lambda k: (len(words.phrases[candidates[k]].split()), -k), default=i)
        if best not in chosen and not any(_says_the_same(words, candidates, held, best, k) for k in chosen):
            chosen.append(best)
        if len(chosen) == most:
            break
    return [int(candidates[k]) for k in chosen]


def _without_bare_edges(words: Words, evidence: Evidence, candidates: Array) -> Array:
    """Leave out “a refund was” where “refund” says nearly as much; “out of stock” stays where “stock” does not."""
    ratios = {words.phrases[j]: evidence.ratio[j] for j in candidates}
    kept = []
    for j in candidates:
        parts = words.phrases[j].split()
        telling = [i for i, word in enumerate(parts) if is_telling(word)]
        core = " ".join(parts[telling[0] : telling[-1] + 1]) if telling else words.phrases[j]
        if core == words.phrases[j] or ratios.get(core, 0.0) < KEPT * evidence.ratio[j]:
            kept.append(j)
    return np.array(kept, dtype=np.int64)


def _longer(place: dict[str, int]) -> dict[str, list[int]]:
    """Phrase -> the longer ones that it is part of."""
    longer: dict[str, list[int]] = {}
    for phrase, i in place.items():
        for part in _parts(phrase):
            longer.setdefault(part, []).append(i)
    return longer


def _parts(phrase: str) -> set[str]:
    """The shorter phrases within one."""
    words = phrase.split()
    return {" ".join(words[at : at + size]) for size in range(1, len(words)) for at in range(len(words) - size + 1)}


def _says_the_same(words: Words, candidates: Array, held: sparse.csc_matrix, first: int, second: int) -> bool:
    """Whether one phrase is part of the other, or shares a word with it and nearly all its members."""
    a = words.phrases[candidates[first]]
    b = words.phrases[candidates[second]]
    if a in _parts(b) or b in _parts(a):
        return True
    if not set(a.split()) & set(b.split()):
        return False
    rows = held.indices[held.indptr[first] : held.indptr[first + 1]]
    others = held.indices[held.indptr[second] : held.indptr[second + 1]]
    return len(np.intersect1d(rows, others)) >= SAME_ROWS * len(rows)
