"""What is wrong with the layout of a page, told by a browser: sideways scrolling, clipped and overlapping words."""

from __future__ import annotations

from typing import Any

# Words inside a box that scrolls by itself may leave the page; those of a closed fold are not drawn.
FAULTS = """() => {
  const faults = [];
  const width = document.documentElement.clientWidth;
  const whole = document.documentElement.scrollWidth;
  if (whole > width) faults.push(`scrolls sideways: ${whole}`);
  const drawn = (element) => element.checkVisibility({ contentVisibilityAuto: true }) && element.getClientRects()[0];
  const told = (element) => `${element.tagName}.${element.className} “${element.innerText.slice(0, 30)}”`;
  const scrolls = (element) => element.closest(".scroll, .toc, select, dialog, .vh, .skip, svg, .map-card");
  const boxes = [];
  const range = document.createRange();
  for (const element of document.querySelectorAll("body *")) {
    if (!drawn(element) || scrolls(element)) continue;
    const style = getComputedStyle(element);
    const shortened = style.textOverflow === "ellipsis"; // on purpose
    const cut = style.overflowX !== "visible" && !shortened && element.scrollWidth > element.clientWidth + 1;
    if (cut && element.innerText) faults.push(`clipped: ${told(element)}`);
    if (shortened) continue;
    for (const node of element.childNodes) {
      if (node.nodeType !== 3 || !node.textContent.trim()) continue;
      range.selectNodeContents(node);
      for (const box of range.getClientRects()) {
        if (box.right > width + 1) faults.push(`beyond the edge: ${told(element)}`);
        if (box.width > 1 && box.height > 1) boxes.push([element, box]);
      }
    }
  }
  const layer = (element) => element.closest(".bar, .decide, .toc, .beside"); // these lie above the page
  for (const [i, [a, x]] of boxes.entries()) for (const [b, y] of boxes.slice(i + 1)) {
    if (a === b || a.contains(b) || b.contains(a) || layer(a) !== layer(b)) continue;
    const across = Math.min(x.right, y.right) - Math.max(x.left, y.left);
    const down = Math.min(x.bottom, y.bottom) - Math.max(x.top, y.top);
    if (across > 2 && down > 4) faults.push(`on each other: ${told(a)} and ${told(b)}`);
  }
  return [...new Set(faults)].slice(0, 10);
}"""


def layout_faults(page: Any) -> list[str]:
    """One line for each fault of a page as it is shown now."""
    found: list[str] = page.evaluate(FAULTS)
    return found
