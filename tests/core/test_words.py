"""Sizes in words."""

import pytest

from errata.core.words import memory_size


@pytest.mark.parametrize(
    ("count", "words"),
    [
        (0, "0 bytes"),
        (1, "1 byte"),
        (1000, "1,000 bytes"),
        (1024, "1.0 KiB"),
        (2**20 - 1, "1.0 MiB"),
        (12_000, "11.7 KiB"),
        (2**32, "4.0 GiB"),
        (2**52, "4,096.0 TiB"),
    ],
)
def test_a_size_is_told_in_the_largest_unit_of_which_there_is_one(count, words):
    assert memory_size(count) == words
