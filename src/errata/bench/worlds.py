"""A world of SpotCheck: which objects an image may hold, what varies about them, and where the model is to be blind.

Plumb et al. 2023 and its published generator, from a seed and without global state. A feature is written
`layer_attribute` and is 0 or 1; only the square's position relative to the middle row, which is known once the
objects are placed, is also -1 where there is no square.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from ..core import Array, InputError

ATTRIBUTES = {  # what may be enabled of a layer, in the order of painting
    "background": ("colour", "texture"),
    "square": ("size", "colour", "texture", "number"),
    "rectangle": ("size", "colour", "texture"),
    "circle": ("size", "colour", "texture"),
    "text": ("size", "colour", "texture"),
}
ALWAYS = ("background", "square")
TARGET = "square_presence"
POSITION = "background_position"
TRIES = 10_000  # candidates for one blindspot before all are drawn again
RESTARTS = 20
APART = 2  # features in which any two blindspots contradict each other

Blindspot = Mapping[str, int]


@dataclass(frozen=True)
class World:
    """`enabled` features are rolled with p=.5, all others are always 0."""

    seed: int
    layers: tuple[str, ...]
    enabled: tuple[str, ...]
    blindspots: tuple[Blindspot, ...]

    @property
    def features(self) -> tuple[str, ...]:
        """Every feature of every layer, in the order of the columns of `Scenes.features`."""
        return features_of(self.layers)

    @property
    def n_features(self) -> int:
        """As the paper counts: options, extra layers and the square's presence; each doubles the buckets."""
        return len(self.enabled)

    def inside(self, features: Array) -> Array:
        """(n, B) bool: which blindspots each row of `features` (n, F) belongs to."""
        column = {name: features[:, i] for i, name in enumerate(self.features)}
        inside = np.ones((len(features), len(self.blindspots)), dtype=bool)
        for b, blindspot in enumerate(self.blindspots):
            for name, value in blindspot.items():
                inside[:, b] &= column[name] == value
        return inside


def features_of(layers: Iterable[str]) -> tuple[str, ...]:
    """Names of the features that these layers have, in order."""
    names: list[str] = []
    for layer in layers:
        first = POSITION if layer == "background" else f"{layer}_presence"
        names += [first, *(f"{layer}_{attribute}" for attribute in ATTRIBUTES[layer])]
    return tuple(names)


def sample_world(seed: int) -> World:
    """Layers, options and blindspots by the published rules."""
    rng = np.random.default_rng(seed)
    others = [layer for layer in ATTRIBUTES if layer not in ALWAYS]
    n_extra = int(rng.integers(1, 4))
    extra = [others[i] for i in rng.choice(len(others), size=n_extra, replace=False)]
    layers = (*ALWAYS, *extra)
    options = _options(layers, int(rng.integers(5, 8)) - n_extra, rng)
    presences = [TARGET, *(f"{layer}_presence" for layer in extra)]
    enabled = tuple(name for name in features_of(layers) if name in {*presences, *options})
    sizes = sorted(int(size) for size in rng.integers(4, 7, size=rng.integers(1, 4)))
    return World(seed, layers, enabled, sample_blindspots(enabled, sizes, rng))


def _options(layers: tuple[str, ...], count: int, rng: np.random.Generator) -> list[str]:
    """Each option is one attribute, not yet enabled, of a random layer that has one left."""
    left = {layer: list(ATTRIBUTES[layer]) for layer in layers}
    options: list[str] = []
    for _ in range(count):
        layer = _pick([layer for layer in layers if left[layer]], rng)
        attribute = _pick(left[layer], rng)
        left[layer].remove(attribute)
        options.append(f"{layer}_{attribute}")
    return options


def sample_blindspots(enabled: tuple[str, ...], sizes: list[int], rng: np.random.Generator) -> tuple[Blindspot, ...]:
    """One blindspot of each size besides the square's presence, every pair contradicting in at least two features."""
    for _ in range(RESTARTS):
        chosen: list[Blindspot] = []
        for size in sizes:
            blindspot = _blindspot_apart(chosen, enabled, size, rng)
            if blindspot is None:
                break
            chosen.append(blindspot)
        else:
            return tuple(chosen)
    raise InputError(
        f"{len(sizes)} blindspots of {sizes} of {len(enabled)} features that contradict each other in {APART} were "
        f"not found in {RESTARTS} restarts of {TRIES} tries; ask for fewer or enable more features"
    )


def _blindspot_apart(
    chosen: list[Blindspot], enabled: tuple[str, ...], size: int, rng: np.random.Generator
) -> Blindspot | None:
    for _ in range(TRIES):
        candidate = _grow(enabled, size, rng)
        if all(contradictions(candidate, other) >= APART for other in chosen):
            return candidate
    return None


def _grow(enabled: tuple[str, ...], size: int, rng: np.random.Generator) -> Blindspot:
    """`size` features one at a time; an object's attribute only after its presence, which it makes certain."""
    pool = [POSITION, *(name for name in enabled if name != TARGET)]
    grown = {TARGET: 1}
    for _ in range(size):
        name = _pick([name for name in pool if name not in grown and _may_join(name, grown)], rng)
        grown[name] = int(rng.integers(2))
        if not name.endswith("_presence") and presence(name) in grown:
            grown[presence(name)] = 1
    return grown


def _may_join(name: str, grown: Blindspot) -> bool:
    return name.startswith("background") or name.endswith("_presence") or presence(name) in grown


def presence(name: str) -> str:
    """The presence of the object that a feature speaks of."""
    return f"{name.partition('_')[0]}_presence"


def contradictions(first: Blindspot, second: Blindspot) -> int:
    """In how many features two blindspots demand different values; one feature is enough to be disjoint."""
    return sum(name in second and second[name] != value for name, value in first.items())


def _pick(names: list[str], rng: np.random.Generator) -> str:
    if not names:
        raise InputError("a blindspot asks for more features than the world has; use smaller sizes")
    return names[int(rng.integers(len(names)))]
