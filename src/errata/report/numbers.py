"""How every number on a page is written: one function each."""

from __future__ import annotations

from ..core.words import FEWEST_FOR_PERCENT

NOT_MEASURED = "not measured"
WORDS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")


def count(n: int) -> str:
    """4,786."""
    return f"{n:,}"


def counted(n: int, thing: str) -> str:
    """ "1 row", "214 rows"."""
    return f"{count(n)} {thing}" if n == 1 else f"{count(n)} {thing}s"


def in_words(n: int) -> str:
    """ "five"; figures beyond ten."""
    return WORDS[n] if n < len(WORDS) else count(n)


def rate(share: float | None) -> str:
    """45.8%; "0.0%" is a measured zero."""
    return NOT_MEASURED if share is None else f"{100 * share:.1f}%"


def rate_of(k: int, n: int) -> str:
    """45.8%, or "5 of 11" where there are too few rows for a percentage."""
    return rate(k / n) if n >= FEWEST_FOR_PERCENT else out_of(k, n)


def out_of(k: int, n: int) -> str:
    """ "98 of 214"; nothing of nothing was not measured."""
    return f"{count(k)} of {count(n)}" if n else NOT_MEASURED


def whole_rate(share: float) -> str:
    """58%, for titles; a little is not nothing and nearly all is not all."""
    if 0 < share < 0.005:
        return "under 1%"
    return "over 99%" if 0.995 <= share < 1 else f"{100 * share:.0f}%"


def points(gap: float) -> str:
    """38.2 or −1.9: a difference of rates, with a true minus sign."""
    return _minus(f"{100 * gap:.1f}")


def interval(low: float, high: float) -> str:
    """31.6 to 44.9."""
    return f"{points(low)} to {points(high)}"


def whole(value: float) -> str:
    """82 or −3: excess errors."""
    return _minus(f"{value:,.0f}")


def quantity(value: float | None) -> str:
    """A loss or a length: three digits that matter."""
    if value is None:
        return NOT_MEASURED
    if abs(value) >= 1000:
        return _minus(f"{value:,.0f}")
    return _minus(f"{value:.3g}")


def times(ratio: float | None) -> str:
    """3.1×; a dash where there is nothing to compare with."""
    return "–" if ratio is None else f"{ratio:.1f}×"


def p_value(p: float, letter: str = "p") -> str:
    """p = 0.012, p < 0.001; "q" is the letter of a false discovery rate."""
    return f"{letter} < 0.001" if p < 0.001 else f"{letter} = {p:.3f}"


def _minus(text: str) -> str:
    if not text.startswith("-"):
        return text
    return f"−{text[1:]}" if text.strip("-0.") else text[1:]  # −0.0 is 0.0
