"""Options as data: names that methods share, limits, renamed ones, and what `describe` lists of them."""

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import pytest

from errata.core import InputError, State
from errata.slicers import SLICERS, clone, describe, make, restore
from errata.slicers.contract import BaseSlicer, build
from errata.slicers.options import Interval, check_values, constructor_options, list_options, merge

METHODS = sorted(SLICERS)


@pytest.mark.parametrize("name", METHODS)
def test_a_method_shows_at_most_eight_options(name):
    assert len(constructor_options(SLICERS[name])) <= 8


@pytest.mark.parametrize("name", METHODS)
def test_shared_ideas_have_one_name(name):
    synonyms = {"count", "rounds", "reduce", "dims", "dims_a_class", "within", "group", "least", "most", "n_slices"}
    assert not synonyms & {option.key for option in list_options(SLICERS[name])}


@pytest.mark.parametrize("name", METHODS)
def test_every_option_is_described_and_every_limit_is_one_of_an_option(name):
    cls = SLICERS[name]
    options = list_options(cls)
    for option in options:
        assert option.about.endswith("."), option.name
        assert option.allowed != "anything", option.name
    assert set(cls.limits) <= {option.key for option in options}
    known = {option.name for option in options}
    assert set(cls.renamed.values()) <= known
    assert not set(cls.renamed) & known


@pytest.mark.parametrize("name", METHODS)
def test_defaults_and_presets_are_allowed(name):
    cls = SLICERS[name]
    check_values(cls, constructor_options(cls))
    for preset in cls.presets:
        build(cls, preset, 0, {})


@pytest.mark.parametrize(
    ("interval", "words", "inside", "outside"),
    [
        (Interval(1), "of at least 1", [1, 1e9], [0, -1, float("inf"), float("nan")]),
        (Interval(0, excluded="low"), "above 0", [1e-9], [0, -1]),
        (Interval(1, 3), "between 1 and 3", [1, 2, 3], [0, 4]),
        (Interval(0, 0.5, excluded="low"), "above 0 and at most 0.5", [0.1, 0.5], [0, 0.6]),
        (Interval(0, 1, excluded="high"), "of at least 0 and below 1", [0, 0.9], [1, -0.1]),
        (Interval(0, 1, excluded="both"), "above 0 and below 1", [0.5], [0, 1]),
        (Interval("few"), "of at least `few`", [7, 8], [6]),
    ],
)
def test_intervals_by_hand(interval, words, inside, outside):
    assert interval.words == words
    assert all(interval.allows(value, {"few": 7}) for value in inside)
    assert not any(interval.allows(value, {"few": 7}) for value in outside)


class Toy(BaseSlicer):
    """A method of the tests.

    Parameters
    ----------
    size
        Of a slice,
        in rows.
    advanced
        Rare ones.
    """

    name = "toy"
    limits: ClassVar = {"size": Interval(1)}
    presets: ClassVar = {"recommended": {}, "as_published": {"size": 2}}

    def __init__(self, size: int | None = 3, advanced: Mapping[str, Any] | None = None):
        self.size = size
        self.advanced = advanced


def test_one_message_form_before_any_work():
    with pytest.raises(InputError, match=r"^`toy\.size` must be an integer of at least 1 or null; got 0$"):
        build(Toy, "recommended", 0, {"size": 0})
    with pytest.raises(InputError, match=r"^`toy\.size` must be an integer of at least 1 or null; got True$"):
        build(Toy, "recommended", 0, {"size": True})
    assert build(Toy, "recommended", 0, {"size": np.int64(4)}).size == 4
    assert build(Toy, "recommended", 0, {"size": None}).size is None
    assert build(Toy, "as_published", 0, {}).size == 2


def test_what_is_listed_of_an_option():
    (option,) = list_options(Toy)
    assert (option.name, option.default, option.allowed) == ("size", 3, "an integer of at least 1 or null")
    assert option.about == "Of a slice, in rows."


def test_advanced_options_are_merged_key_by_key():
    layers = {"advanced": {"a": 1, "b": 2}}, {"advanced.b": 3, "size": 4}, {"advanced": {"c": 5}}
    assert merge(*layers) == {"size": 4, "advanced": {"a": 1, "b": 3, "c": 5}}
    published = make("domino:as_published", options={"advanced": {"noise": 0.5}})
    assert published.advanced["init"] == "confusion"
    assert published.advanced["noise"] == 0.5
    assert make("domino:as_published").advanced.get("noise") is None  # a preset is not changed


def test_names_that_do_not_exist_are_refused():
    with pytest.raises(InputError, match=r"`domino\.reduce` is now `domino\.axes`; use that name"):
        make("domino", options={"reduce": 3})
    with pytest.raises(InputError, match=r"`domino\.noise` is now `domino\.advanced\.noise`; use that name"):
        make("domino", options={"noise": 0.1})
    with pytest.raises(
        InputError, match=r"unknown option of method `domino` `advanced\.nose`; did you mean `advanced\."
    ):
        make("domino", options={"advanced": {"nose": 0.1}})
    with pytest.raises(InputError, match=r"`domino\.advanced` must be a mapping or null; got 3"):
        make("domino", options={"advanced": 3})
    with pytest.raises(InputError, match="unknown option of method `gmm` `advanced`"):
        make("gmm", options={"advanced": {"noise": 0.1}})


@pytest.mark.parametrize("method", ["george", "george:as_published", "domino:as_published"])
def test_a_slicer_that_version_one_saved_still_answers(method):
    """With its names of options, all in one level, and george's words for no reduction and no scope."""
    from test_contract import evaluation

    slicer = make(method).fit(evaluation())
    state = slicer.to_state()
    now = {**slicer.params(), **{key: getattr(slicer._rare, key) for key in slicer._rare.__dataclass_fields__}}
    del now["advanced"]
    old = {new.removeprefix("advanced."): name for name, new in type(slicer).renamed.items()}
    params = {old.get(key, key): value for key, value in now.items()}
    if "george" in method:
        params["within"] = {"all": "nearest"}.get(params["within"], params["within"])
        if params["dims"] is None:
            params["dims"] = 16
            params["reduction"] = "none"
    again = restore(State(state.name, {**state.facts, "params": params}, state.arrays))
    np.testing.assert_array_equal(again.membership(evaluation(1)), slicer.membership(evaluation(1)))
    assert again.reads == slicer.reads


def test_a_clone_has_the_options_and_nothing_learnt():
    slicer = make("gmm", seed=3, options={"components": 4})
    copy = clone(slicer)
    assert copy is not slicer
    assert copy.params() == slicer.params()


def test_what_describe_lists():
    listed = {method["name"]: method for method in describe()}
    domino = listed["domino"]
    assert domino["reads"] == []
    assert domino["options"]["slices"] == 10
    assert domino["advanced"]["steps"] == 100
    assert domino["presets"]["as_published"]["slices"] == 5
    assert domino["allowed"]["advanced.steps"] == "an integer of at least 1"
    assert domino["about"]["components"] == "Components of the mixture."
    assert listed["gmm"]["advanced"] == {}
    assert set(domino["about"]) == {*domino["options"], *(f"advanced.{key}" for key in domino["advanced"])}
