"""Words and ways of writing numbers that several rooms share."""

from __future__ import annotations

import re

WORD = r"[^\W_]+(?:['’][^\W_]+)*"  # letters and digits of any script; "don't" is one word
FEWEST_FOR_PERCENT = 20  # rows; of fewer, a percentage pretends to know more than it does
READS_OUTCOME = "The method reads the outcome of a row, so a high error is by construction."
SAYS_NOTHING = (
    "The method reads the outcome of a row. What was measured in its place does not, holds mostly other rows, and was "
    "not confirmed: it says nothing of the rows that the method found."
)
ERROR = "error"  # `Overall.outcome` where an outcome is an error


def words_of(text: str) -> list[str]:
    """The words of a text in lower case, in their order."""
    return re.findall(WORD, text.lower())


def memory_size(count: int) -> str:
    """ "1,000 bytes", "11.7 KiB", "4.0 GiB": so many bytes, in the largest unit of which there is one as it is told."""
    if count == 1:
        return "1 byte"
    if count < 1024:
        return f"{count:,} bytes"
    size = count / 1024
    unit = "KiB"
    for larger in ("MiB", "GiB", "TiB"):
        if round(size, 1) < 1024:
            break
        size /= 1024
        unit = larger
    return f"{size:,.1f} {unit}"


def clipped(text: str, most: int) -> str:
    """The beginning of a text, on one line."""
    line = " ".join(text.split())
    return line if len(line) <= most else line[: most - 1].rstrip() + "…"
