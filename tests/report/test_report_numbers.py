from __future__ import annotations

import pytest

from errata.report import numbers


@pytest.mark.parametrize(
    ("got", "wanted"),
    [
        (numbers.count(4786), "4,786"),
        (numbers.counted(1, "row"), "1 row"),
        (numbers.counted(1214, "row"), "1,214 rows"),
        (numbers.in_words(5), "five"),
        (numbers.in_words(31), "31"),
        (numbers.rate(0.4579), "45.8%"),
        (numbers.rate(0.0), "0.0%"),
        (numbers.rate(None), "not measured"),
        (numbers.rate_of(98, 214), "45.8%"),
        (numbers.rate_of(5, 11), "5 of 11"),
        (numbers.rate_of(5, 19), "5 of 19"),
        (numbers.rate_of(5, 20), "25.0%"),
        (numbers.out_of(1098, 5214), "1,098 of 5,214"),
        (numbers.out_of(0, 0), "not measured"),
        (numbers.whole_rate(0.579), "58%"),
        (numbers.whole_rate(0.002), "under 1%"),
        (numbers.whole_rate(0.998), "over 99%"),
        (numbers.whole_rate(0.0), "0%"),
        (numbers.whole_rate(1.0), "100%"),
        (numbers.points(0.382), "38.2"),
        (numbers.points(-0.019), "−1.9"),
        (numbers.points(-0.0001), "0.0"),
        (numbers.interval(-0.002, 0.128), "−0.2 to 12.8"),
        (numbers.whole(81.7), "82"),
        (numbers.whole(-2.6), "−3"),
        (numbers.whole(-0.2), "0"),
        (numbers.whole(1234.5), "1,234"),
        (numbers.quantity(0.41234), "0.412"),
        (numbers.quantity(12345.6), "12,346"),
        (numbers.quantity(-2.0), "−2"),
        (numbers.quantity(None), "not measured"),
        (numbers.times(3.14), "3.1×"),
        (numbers.times(None), "–"),
        (numbers.p_value(0.0004, "q"), "q < 0.001"),
        (numbers.p_value(0.0123, "q"), "q = 0.012"),
    ],
)
def test_every_number_is_written_one_way(got, wanted):
    assert got == wanted
