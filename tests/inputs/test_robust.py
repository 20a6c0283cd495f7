"""Features of another model for the same rows, and feature maps on demand."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402  # only once torch is known to be there
from torch.utils.data import DataLoader, TensorDataset  # noqa: E402

import errata  # noqa: E402
from errata.core import InputError  # noqa: E402
from errata.core.progress import silent  # noqa: E402
from errata.slicers.contract import knows_outcome  # noqa: E402

torch.set_num_threads(1)
N = 23  # no multiple of the batch size
X = torch.rand(N, 3, 10, 14, generator=torch.Generator().manual_seed(0))
Y = torch.arange(N) % 3
IMAGES = X.permute(0, 2, 3, 1).numpy()


class Net(nn.Module):
    def __init__(self, d: int):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, d, 3, stride=2), nn.ReLU())
        self.drop, self.head = nn.Dropout(0.5), nn.Linear(d, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.drop(self.body(x).mean(dim=(2, 3))))


def net(d: int, seed: int) -> Net:
    torch.manual_seed(seed)
    return Net(d)


def loader(x: torch.Tensor = X, y: torch.Tensor = Y, batch: int = 5) -> DataLoader:
    return DataLoader(TensorDataset(x, y), batch_size=batch)


AUDITED, ROBUST = net(6, 0), net(9, 1)
EVALUATION = errata.collect(AUDITED, loader(), progress=silent)


def added(model=ROBUST, data=None, **options):
    return errata.inputs.add_features(EVALUATION, model, loader() if data is None else data, progress=silent, **options)


def test_the_features_are_those_of_the_model_and_the_outcome_stays_the_audited_models():
    ev = added()
    own = errata.collect(ROBUST, loader(), progress=silent).representations["penultimate"]
    assert list(ev.representations) == ["penultimate", "robust"]
    assert ev.representations["robust"].dtype == np.float32
    np.testing.assert_allclose(ev.representations["robust"], own, atol=1e-6)
    assert np.array_equal(ev.probs, EVALUATION.probs)
    assert ev.origin == EVALUATION.origin


def test_another_models_features_do_not_know_the_outcome():
    """So paths within a label are confirmed as they are, as in the paper; on the model's own they are not."""
    ev = added()
    assert not ev.source("robust").from_model
    by_label = errata.slicers.SLICERS["barlow"](representation="robust")
    by_label.representation_ = "robust"
    assert not knows_outcome(by_label, ev)
    same = added(AUDITED, name="again")
    assert same.source("again").from_model
    by_label.representation_ = by_label.representation = "again"
    assert knows_outcome(by_label, same)


def test_a_layer_by_name_and_inputs_scaled_in_another_way():
    ev = added(data=loader(2 * X - 1, batch=7), layer="body", name="maps")
    with torch.no_grad():
        expected = ROBUST.body(2 * X - 1).flatten(1).numpy()
    np.testing.assert_allclose(ev.representations["maps"], expected, atol=1e-5)


def test_dict_batches_with_ids_and_metadata():
    parts = torch.arange(N).split(4)
    batches = [{"x": X[rows], "label": Y[rows], "id": rows, "site": ["a"] * len(rows)} for rows in parts]
    evaluation = errata.collect(AUDITED, batches, metadata=["site"], progress=silent)
    ev = errata.inputs.add_features(evaluation, ROBUST, batches, metadata=["site"], progress=silent)
    np.testing.assert_allclose(ev.representations["robust"], added().representations["robust"], atol=1e-6)
    wrong = [{**batch, "id": batch["id"] + (9 if i == 2 else 0)} for i, batch in enumerate(batches)]
    with pytest.raises(InputError, match="the loader's ids differ from the evaluation's, first in row 8"):
        errata.inputs.add_features(evaluation, ROBUST, wrong, metadata=["site"], progress=silent)


def test_a_file_holds_them_where_asked_and_nothing_is_left_of_half_a_run(tmp_path):
    ev = added(out=tmp_path / "robust.npy")
    assert isinstance(ev.representations["robust"], np.memmap)
    np.testing.assert_allclose(ev.representations["robust"], added().representations["robust"])
    with pytest.raises(InputError):
        added(data=loader(X[:20], Y[:20]), out=tmp_path / "half.npy")
    assert [path.name for path in tmp_path.iterdir()] == ["robust.npy"]


def test_the_model_is_left_as_it_was():
    model = net(9, 1).train()
    added(model)
    errata.inputs.feature_maps(model, IMAGES)
    assert model.training
    assert model.drop.training
    assert not any(module._forward_hooks for module in model.modules())


@pytest.mark.parametrize(
    ("data", "options", "words"),
    [
        (loader(X[:20], Y[:20]), {}, "the loader has 20 rows and the evaluation 23"),
        (loader(torch.cat([X, X]), torch.cat([Y, Y])), {}, "more rows than the evaluation, which has 23"),
        (loader(X.flip(0), Y.flip(0)), {}, r"labels differ .* first in row 0; .* shuffle=False"),
        (loader(), {"name": "penultimate"}, "has a representation `penultimate` already"),
        (loader(), {"layer": "bodi"}, "did you mean `body`"),
        ([(X, Y, Y)], {}, "a batch must be a pair"),
    ],
)
def test_bad_input_is_one_sentence(data, options, words):
    with pytest.raises(InputError, match=words):
        added(data=data, **options)


def test_feature_maps_are_what_the_features_are_the_mean_of():
    maps = errata.inputs.feature_maps(ROBUST, IMAGES[:7], batch=3)
    assert maps.shape == (7, 9, 4, 6)
    np.testing.assert_allclose(maps.mean(axis=(2, 3)), added().representations["robust"][:7], atol=1e-5)
    named = errata.inputs.feature_maps(ROBUST, IMAGES[:2], layer="body.0", prepare=lambda pixels: 2 * pixels - 1)
    with torch.no_grad():
        np.testing.assert_allclose(named, ROBUST.body[0](2 * X[:2] - 1), atol=1e-5)
    with pytest.raises(InputError, match="`images` is empty"):
        errata.inputs.feature_maps(ROBUST, IMAGES[:0])
