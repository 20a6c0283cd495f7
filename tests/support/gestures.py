"""What a hand does on a page."""

from __future__ import annotations

from typing import Any

import numpy as np


def lasso(page: Any, share: float = 0.9) -> None:
    """A loop around the middle of the map, by mouse."""
    from playwright.sync_api import expect

    canvas = page.locator("canvas:visible")
    canvas.scroll_into_view_if_needed()
    expect(page.locator(".map .fallback:visible, .map .placing:visible")).to_have_count(0)
    page.keyboard.press("l")
    box = canvas.bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    r = min(box["width"], box["height"]) / 2 * share
    page.mouse.move(x + r, y)
    page.mouse.down()
    for angle in np.linspace(0, 2 * np.pi, 40):
        page.mouse.move(x + r * np.cos(angle), y + r * np.sin(angle))
    page.mouse.up()
