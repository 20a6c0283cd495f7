"""A sheet of pictures of SpotCheck worlds, one world a row, to be looked at.

python benchmarks/contact_sheet.py [docs/images/spotcheck.png] [--worlds 4] [--each 12] [--px 112] [--seed 0]
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from PIL import Image

from errata.bench.scenes import sample_scenes, sample_world

GAP = 4


def sheet(worlds: int, each: int, px: int, seed: int) -> Image.Image:
    """Row w holds `each` scenes of world `seed + w`."""
    step = px + GAP
    canvas = np.full((worlds * step + GAP, each * step + GAP, 3), 90, dtype=np.uint8)
    for w in range(worlds):
        images = sample_scenes(sample_world(seed + w), each, seed).images(px=px)
        for i, image in enumerate(images):
            top = GAP + w * step
            left = GAP + i * step
            canvas[top : top + px, left : left + px] = image
    return Image.fromarray(canvas)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("path", nargs="?", type=Path, default=Path("docs/images/spotcheck.png"))
    parser.add_argument("--worlds", type=int, default=4)
    parser.add_argument("--each", type=int, default=12)
    parser.add_argument("--px", type=int, default=112)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    # Six colours: a palette keeps every pixel and a tenth of the bytes.
    sheet(asked.worlds, asked.each, asked.px, asked.seed).quantize(16, dither=Image.Dither.NONE).save(
        asked.path, optimize=True
    )
    print(f"{asked.path}: {asked.path.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
