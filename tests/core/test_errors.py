"""The error for an unknown name: a suggestion is worth having only where it is likely the one that was meant."""

from __future__ import annotations

import pytest

from errata.core.errors import unknown

SETTINGS = ("epochs", "latent", "strengths", "tau")


@pytest.mark.parametrize(
    ("got", "known", "words"),
    [
        ("epoch", SETTINGS, "unknown setting `epoch`; did you mean `epochs`?"),
        ("probs", ("logits", "probabilities"), "did you mean `probabilities`?"),  # a short form
        ("nosuch", SETTINGS, "unknown setting `nosuch`; known: epochs, latent, strengths, tau"),  # half its letters
        ("x", (), "unknown setting `x`; known: none"),
    ],
)
def test_only_a_name_that_is_near_is_suggested(got: str, known: tuple[str, ...], words: str) -> None:
    assert words in str(unknown("setting", got, known))
