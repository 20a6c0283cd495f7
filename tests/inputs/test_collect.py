import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.linear_model import LogisticRegression

from errata.core import InputError
from errata.core.progress import silent
from errata.inputs import collect


def test_files_and_tables(tmp_path):
    path = tmp_path / "r.npz"
    np.savez(path, losses=[1.0, 2.0])
    assert collect(path).losses.tolist() == [1, 2]
    assert collect(str(path)).losses.tolist() == [1, 2]
    frame = {"losses": [1.0, 2.0], "age": [1, 2]}
    for made in (pd.DataFrame(frame), pl.DataFrame(frame)):
        assert collect(made, metadata=["age"]).metadata["age"].tolist() == [1, 2]


def test_estimators_and_models():
    X, y = np.eye(4), [0, 1, 0, 1]
    model = LogisticRegression().fit(X, y)
    assert collect(model, (X, y)).labels.tolist() == y
    torch = pytest.importorskip("torch")
    torch.set_num_threads(1)
    net = torch.nn.Linear(4, 2)
    loader = [(torch.eye(4), torch.tensor(y))]
    assert collect(net, loader, progress=silent).labels.tolist() == y
    with pytest.raises(InputError, match=r"collect\(model, loader\)"):
        collect(net)


def test_what_is_missing_or_too_much_is_said():
    X, y = np.eye(4), [0, 1, 0, 1]
    model = LogisticRegression().fit(X, y)
    with pytest.raises(InputError, match=r"collect\(estimator, \(X, y\)\)"):
        collect(model, X)
    with pytest.raises(InputError, match="takes no data"):
        collect(pd.DataFrame({"losses": [1.0]}), X)
    with pytest.raises(InputError, match=r"takes a path .*table.*scikit-learn.*PyTorch.*got dict"):
        collect({"losses": [1.0]})
    with pytest.raises(InputError, match="option of from_estimator `feature`; did you mean `features`"):
        collect(model, (X, y), feature=False)


def test_importing_needs_neither_torch_nor_polars():
    code = (
        "import sys\n"
        "from errata.inputs import from_torch\n"
        "assert not {'polars', 'torch'} & set(sys.modules)\n"
        "sys.modules['torch'] = None\n"
        "from errata.core import MissingExtra\n"
        "try: from_torch(object(), [])\n"
        "except MissingExtra as e: assert 'errata[torch]' in str(e)\n"
        "else: raise SystemExit('no error')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
