"""The bytes of a JPEG without what a camera wrote beside the pixels: place, time, owner, a larger preview."""

from __future__ import annotations

START = b"\xff\xd8"
END = 0xD9
SCAN = 0xDA  # pixels follow
RESTARTS = range(0xD0, 0xD8)  # marks within the pixels
KEPT = {0xE0, 0xEE}  # of the application segments, those that say how colours are stored
APPLICATION = range(0xE0, 0xF0)
COMMENT = 0xFE


def without_metadata(data: bytes) -> bytes | None:
    """The same pixels, bit by bit; None where the segments of the file cannot be told apart."""
    if not data.startswith(START):
        return None
    parts = [START]
    at = len(START)
    while at + 4 <= len(data) and data[at] == 0xFF:
        kind = data[at + 1]
        if kind == END:
            break
        end = at + 2 + int.from_bytes(data[at + 2 : at + 4], "big")
        if kind == SCAN:
            end = _end_of_scan(data, end)
        if kind in KEPT or (kind not in APPLICATION and kind != COMMENT):
            parts.append(data[at:end])
        at = end
    if data[at : at + 2] != bytes((0xFF, END)):
        return None
    return b"".join([*parts, bytes((0xFF, END))])


def _end_of_scan(data: bytes, at: int) -> int:
    """Where the next segment starts: a mark that is neither a byte of pixels nor a restart."""
    while True:
        at = data.find(b"\xff", at)
        if at < 0 or at + 1 >= len(data):
            return len(data)
        if data[at + 1] != 0 and data[at + 1] not in RESTARTS:
            return at
        at += 2
