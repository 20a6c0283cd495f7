"""Are business texts that name a country taken for world news, and is that what a slice of them is? (AG News)

    python benchmarks/infembed_countries.py [--space words] [--seeds 5]

Wang et al. 2023, table 3, show a slice of business texts taken for world news, "perhaps predicting any text with a
country name in it to be world". Models, slices and their rule are those of benchmarks/infembed_share.py (5,000 rows
of true labels, drawn by the seed); slices that are for the most part business texts taken for world news are put
together. A country is named where one of the names below stands in the text; the United States are left out, which most
business texts of these agencies name.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

from errata.bench.tables import data_folder
from infembed_share import Line, News, low_slices, read
from trained import over_runs

Array = np.ndarray
WORLD, BUSINESS = 0, 2
LEARNT = 5000  # rows, which the seed draws, so that models differ
LINES = {"as it is": Line(LEARNT), "logits times 4": Line(LEARNT, sharper=4)}
COUNTRIES = """Afghanistan Albania Algeria Angola Argentina Australia Austria Azerbaijan Bahrain Bangladesh Belarus
Belgium Bolivia Bosnia Botswana Brazil Britain Bulgaria Burma Burundi Cambodia Cameroon Canada Chad Chile China Colombia
Congo Croatia Cuba Cyprus Denmark Ecuador Egypt Ethiopia Finland France Georgia Germany Ghana Greece Guatemala Guinea
Haiti Honduras Hungary Iceland India Indonesia Iran Iraq Ireland Israel Italy Jamaica Japan Jordan Kazakhstan Kenya
Korea Kuwait Latvia Lebanon Liberia Libya Lithuania Luxembourg Macedonia Malaysia Malta Mexico Moldova Mongolia Morocco
Myanmar Namibia Nepal Netherlands Nicaragua Niger Nigeria Norway Oman Pakistan Panama Paraguay Peru Philippines Poland
Portugal Qatar Romania Russia Rwanda Senegal Serbia Singapore Slovakia Slovenia Somalia Spain Sudan Sweden Switzerland
Syria Taiwan Tanzania Thailand Tunisia Turkey Uganda Ukraine Uruguay Uzbekistan Venezuela Vietnam Yemen Zambia
Zimbabwe"""


def named(texts: pd.Series) -> Array:
    """(n,) bool"""
    words = "|".join([*COUNTRIES.split(), "South Africa", "Saudi Arabia", "Sri Lanka", "New Zealand", "Hong Kong"])
    return texts.str.contains(rf"\b(?:{words})\b", regex=True).to_numpy()


def measured(news: News, line: Line, space: str, seed: int, country: Array) -> dict[str, float]:
    """country: (n,) of the test rows."""
    test, inside = low_slices(news, line, space, seed)
    business = np.asarray(test.labels) == BUSINESS
    taken = business & (np.asarray(test.predictions) == WORLD)
    mine = [members for members in inside.T if (members & taken).sum() > members.sum() / 2]
    held = np.any(mine, axis=0) if mine else np.zeros(len(taken), bool)
    return {
        "business texts taken for world, a country is named": float(taken[business & country].mean()),
        "taken for world, none is": float(taken[business & ~country].mean()),
        "slices": len(mine),
        "rows": int(held.sum()),
        "of the slices name a country": float(country[held].mean()) if mine else np.nan,
        "of other business texts taken for world": float(country[taken & ~held].mean()),
        "of business texts that are right": float(country[business & ~np.asarray(test.errors)].mean()),
        "of world texts": float(country[np.asarray(test.labels) == WORLD].mean()),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--space", choices=["minilm", "words"], default="minilm")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--cache", type=Path, default=Path(tempfile.gettempdir()) / "errata-studies")
    asked = parser.parse_args()
    news = read(asked.space, asked.cache)
    frame = pd.read_parquet(data_folder() / "agnews.parquet")
    country = named(frame["text"])[~news.learnt]
    for name, line in LINES.items():
        runs = [measured(news, line, asked.space, seed, country) for seed in range(asked.seeds)]
        print(f"\n{asked.space}, {name}; n = {len(runs)} models")
        for key in runs[0]:
            values = [run[key] for run in runs if not np.isnan(run[key])]
            print(f"- {key}: {over_runs(values) if len(values) > 1 else values}")


if __name__ == "__main__":
    main()
