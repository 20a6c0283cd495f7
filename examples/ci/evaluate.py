"""Train a model of a table and write what it did on the test rows, for `errata audit` and `errata compare`.

python evaluate.py adult.parquet main.npz --model linear
python evaluate.py adult.parquet candidate.npz --without "capital_gain > 0"

The table has a column `income` to predict and a column `split` of `train` and `test`; every other column is a feature,
and is written as metadata too, so that slices can be told by it. `--without` leaves out training rows, as a broken
join would.
"""

import argparse
from pathlib import Path

import numpy as np
import pandas
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

TARGET = "income"
MODELS = {
    "boosted": lambda seed: HistGradientBoostingClassifier(max_iter=100, max_features=0.5, random_state=seed),
    "linear": lambda seed: LogisticRegression(max_iter=200),
}


def evaluate(table: pandas.DataFrame, model: str, without: str | None, seed: int) -> dict[str, np.ndarray]:
    """Return the arrays of an .npz file: outcomes on the test rows, features, and columns as metadata."""
    features = table.drop(columns=[TARGET, "split"])
    X = StandardScaler().fit_transform(pandas.get_dummies(features, dtype=float)).astype(np.float32)
    classes, y = np.unique(table[TARGET], return_inverse=True)
    test = (table["split"] == "test").to_numpy()
    train = ~test
    if without:
        train &= ~table.eval(without).to_numpy()
    fitted = MODELS[model](seed).fit(X[train], y[train])
    columns = {}
    for name in features:
        column = features[name][test]
        columns[f"metadata:{name}"] = column.to_numpy() if column.dtype.kind in "biuf" else column.to_numpy(dtype="U")
    return {
        "ids": np.flatnonzero(test),
        "labels": y[test],
        "probs": fitted.predict_proba(X[test]),
        "class_names": classes.astype("U"),
        "embedding": X[test],
        **columns,
    }


def main() -> None:
    """Read the command line, train, and write the file."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("table", type=Path, help="A .parquet file.")
    parser.add_argument("output", type=Path, help="The .npz to write.")
    parser.add_argument("--model", choices=MODELS, default="boosted")
    parser.add_argument("--without", help="Training rows to leave out, such as 'capital_gain > 0'.")
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    np.savez(asked.output, **evaluate(pandas.read_parquet(asked.table), asked.model, asked.without, asked.seed))


if __name__ == "__main__":
    main()
