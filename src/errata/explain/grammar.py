"""Candidate captions: put together from lists, taken from the rows' own texts, or from WordNet.

The lists of colours and places are those of Jain et al. (2023), appendix C.1.2. Nothing here embeds anything.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from ..core import InputError, MissingExtra
from ..core.errors import unknown
from ..core.words import WORD

TEMPLATE = "a photo of {}"
ADJECTIVES = ("white", "blue", "red", "green", "black", "yellow", "orange", "brown")
PREPOSITIONS = (
    "outside",
    "inside",
    "on a black background",
    "on a white background",
    "on a green background",
    "on a blue background",
    "on a brown background",
)

Lists = Mapping[str, Sequence[str]]


def caption_candidates(
    classes: Sequence[str],
    *,
    adjectives: Sequence[str] = ADJECTIVES,
    prepositions: Sequence[str] = PREPOSITIONS,
    nouns: Lists | None = None,
    own: Lists | None = None,
    template: str = TEMPLATE,
) -> list[str]:
    """ "a photo of a white cat on the grass": every adjective or none, noun, and preposition or none, of each class.

    classes: their names. adjectives, prepositions: those that all classes have. nouns: class -> nouns beside its name.
    own: class -> prepositions beside those that all classes have. template: what stands around it, with {} for the
    phrase. No text comes twice.
    """
    _check(classes, nouns, own, template)
    captions = []
    for name in classes:
        class_nouns = (name, *(nouns or {}).get(name, ()))
        class_prepositions = ("", *prepositions, *(own or {}).get(name, ()))
        for words in itertools.product(("", *adjectives), class_nouns, class_prepositions):
            captions.append(_caption(template, words))
    return list(dict.fromkeys(captions))


def reference_captions(classes: Sequence[str], template: str = TEMPLATE) -> list[str]:
    """For each class its plainest caption, "a photo of a cat"."""
    _check(classes, None, None, template)
    return [_caption(template, (name,)) for name in classes]


def phrases(texts: Iterable[str], *, longest: int = 2, fewest: int = 5, most: int = 1000) -> list[str]:
    """Words and runs of words that at least `fewest` of the texts have, the most frequent first: captions of texts.

    texts: such as those of the rows. longest: words in a run. fewest: texts that must have it. most: how many to
    return.
    """
    from sklearn.feature_extraction.text import CountVectorizer

    if longest < 1 or fewest < 1 or most < 1:
        raise InputError(f"`longest`, `fewest` and `most` must be at least 1; got {longest}, {fewest} and {most}")
    counter = CountVectorizer(token_pattern=WORD, ngram_range=(1, longest), binary=True, min_df=fewest)
    try:
        counts = np.asarray(counter.fit_transform(texts).sum(axis=0)).ravel()
    except ValueError:  # its way of saying that no word is that frequent
        return []
    order = np.argsort(-counts, kind="stable")[:most]  # of equal ones the alphabet decides
    return [str(phrase) for phrase in counter.get_feature_names_out()[order]]


def hyponyms(noun: str) -> list[str]:
    """The names of all that WordNet has below a noun's first meaning: "tabby" for "cat". Needs nltk and its data."""
    try:
        from nltk.corpus import wordnet

        meanings = wordnet.synsets(noun.replace(" ", "_"), pos="n")
    except (ImportError, LookupError) as error:
        raise MissingExtra(
            "nouns from WordNet need nltk and its data, which are not installed; "
            "pip install nltk, then python -m nltk.downloader wordnet"
        ) from error
    if not meanings:
        raise InputError(f"WordNet has no noun {noun!r}; give nouns of your own")
    below = meanings[0].closure(lambda meaning: meaning.hyponyms())
    names = (name.replace("_", " ") for meaning in below for name in meaning.lemma_names())
    return list(dict.fromkeys(names))


def _caption(template: str, words: Sequence[str]) -> str:
    phrase = " ".join(filter(None, words))
    article = "an" if phrase[0].lower() in "aeiou" else "a"
    return template.replace("{}", f"{article} {phrase}")


def _check(classes: Sequence[str], nouns: Lists | None, own: Lists | None, template: str) -> None:
    if isinstance(classes, str) or not len(classes) or not all(classes):
        raise InputError("`classes` must be a list of names, at least one and none empty")
    if template.count("{}") != 1:
        raise InputError(f"`template` must hold one {{}} for the phrase; got {template!r}")
    for lists in (nouns, own):
        for name in lists or {}:
            if name not in classes:
                raise unknown("class", name, classes)
