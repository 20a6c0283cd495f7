"""Influence as it is used: loaders, options, runs that are killed, and a model that is left as it was."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402  # only once torch is known to be there
from torch.nn import functional as F  # noqa: E402
from torch.utils.data import DataLoader, TensorDataset  # noqa: E402

from errata import collect  # noqa: E402
from errata.core import InputError  # noqa: E402
from errata.core.progress import silent  # noqa: E402
from errata.inputs import (  # noqa: E402
    HeadInfluence,
    fit_influence,
    progress,
)
from errata.tensors import MeanHessian, RowProjections  # noqa: E402

torch.set_num_threads(1)
N = 40
G = torch.Generator().manual_seed(0)
X = torch.randn(N, 4, generator=G)
Y = torch.randint(0, 3, (N,), generator=G)


def net():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.Tanh(), nn.Dropout(0.3), nn.Linear(6, 3)).eval()


def pairs(size=10, inputs=X, labels=Y):
    return [(inputs[i : i + size], labels[i : i + size]) for i in range(0, len(inputs), size)]


def fit(model, loader, **options):
    return fit_influence(model, loader, **{"layers": "all", "progress": silent, **options})


def rows(fitted, model, loader, **options):
    return fitted.transform(model, loader, progress=silent, **options)


class Killed(Exception):
    pass


def killed_at(monkeypatch, owner, name, call):
    """The method works until that call; a list of calls is given back."""
    calls, method = [], getattr(owner, name)

    def dies(self, *args):
        calls.append(args)
        if len(calls) == call:
            raise Killed
        return method(self, *args)

    monkeypatch.setattr(owner, name, dies)
    return calls


@pytest.mark.parametrize("double", [False, True])
@pytest.mark.parametrize("at", [1, 2, 9])
def test_a_fit_that_was_killed_goes_on(monkeypatch, tmp_path, at, double):
    model = net().double() if double else net()
    loader = pairs(inputs=X.double() if double else X)
    unbroken = fit(model, loader, steps=12)
    killed_at(monkeypatch, MeanHessian, "product", at)
    with pytest.raises(Killed):
        fit(model, loader, steps=12, folder=tmp_path)
    monkeypatch.undo()
    calls = killed_at(monkeypatch, MeanHessian, "product", 1000)
    again = fit(model, loader, steps=12, folder=tmp_path)
    assert len(calls) == 12 - at + 1
    assert again.directions.tobytes() == unbroken.directions.tobytes()
    assert again.values.tobytes() == unbroken.values.tobytes()


@pytest.mark.parametrize("cut", [0, 7, 100])
@pytest.mark.parametrize("at", [1, 2, 4])
def test_embeddings_that_were_killed_go_on(monkeypatch, tmp_path, at, cut):
    model = net()
    fitted = fit(model, pairs())
    unbroken = rows(fitted, model, pairs())
    killed_at(monkeypatch, RowProjections, "of", at)
    with pytest.raises(Killed):
        rows(fitted, model, pairs(), folder=tmp_path)
    monkeypatch.undo()
    kept = tmp_path / "rows.f32"
    whole = kept.read_bytes()
    kept.write_bytes(whole[: len(whole) - cut])  # half a row; a computer that lost its power
    calls = killed_at(monkeypatch, RowProjections, "of", 1000)
    again = rows(fitted, model, iter(pairs()), folder=tmp_path)
    assert len(calls) == 4 - at + 1 + (cut > 0 and at > 1)
    assert again.tobytes() == unbroken.tobytes()
    calls.clear()
    assert rows(fitted, model, pairs(), folder=tmp_path).tobytes() == unbroken.tobytes()
    assert not calls  # nothing is left to do


def test_rows_that_were_written_but_not_listed_are_made_again(tmp_path):
    model = net()
    fitted = fit(model, pairs())
    unbroken = rows(fitted, model, pairs(), folder=tmp_path)
    listed = (tmp_path / "batches.jsonl").read_text()
    for text in (listed[:-5], "", listed[: listed.index("\n") + 1]):
        (tmp_path / "batches.jsonl").write_text(text)
        assert rows(fitted, model, pairs(), folder=tmp_path).tobytes() == unbroken.tobytes()
        assert (tmp_path / "batches.jsonl").read_text() == listed
        assert (tmp_path / "rows.f32").stat().st_size == unbroken.nbytes


def test_a_folder_is_not_gone_on_from_with_other_rows_or_options(tmp_path):
    model = net()
    fitted = fit(model, pairs(), folder=tmp_path / "fit", rank=5)
    other = [(inputs + 1, labels) for inputs, labels in pairs()]
    with pytest.raises(InputError, match="holds the files of another run"):
        fit(model, other, folder=tmp_path / "fit", rank=5)
    with pytest.raises(InputError, match="holds the files of another run"):
        fit(model, [(inputs, (labels + 1) % 3) for inputs, labels in pairs()], folder=tmp_path / "fit", rank=5)
    with pytest.raises(InputError, match="holds the files of another run"):
        fit(model, pairs(), folder=tmp_path / "fit", rank=6)
    folder = tmp_path / "rows"
    rows(fitted, model, pairs(), folder=folder)
    for loader in (
        other,
        [(inputs, (labels + 1) % 3) for inputs, labels in pairs()],
        pairs()[:2],
        pairs(20),
        pairs()[1:],
    ):
        with pytest.raises(InputError, match="holds the rows of another loader; name another folder"):
            rows(fitted, model, loader, folder=folder)
    damped = fit(model, pairs(), rank=5, damping=1.0)
    with pytest.raises(InputError, match="holds the files of another run"):
        rows(damped, model, pairs(), folder=folder)


class Dicts:
    """Words, nests and numbers beside tensors: all of it says which rows they are."""

    def __init__(self, word="a", by=1.0):
        self.word, self.by = word, by

    def __iter__(self):
        for inputs, labels in pairs():
            yield {"x": inputs, "extra": {"by": [self.by, None]}, "word": self.word, "label": labels.tolist()}


class Takes(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = net()

    def forward(self, x, extra, word):
        return self.net(x * extra["by"][0] + len(word))


def test_everything_in_a_batch_says_which_rows_they_are(tmp_path):
    model = Takes()
    fitted = fit(model, Dicts())
    made = rows(fitted, model, Dicts(), folder=tmp_path)
    assert rows(fitted, model, Dicts(), folder=tmp_path).tobytes() == made.tobytes()
    for other in (Dicts(word="b"), Dicts(by=2.0)):
        with pytest.raises(InputError, match="another loader"):
            rows(fitted, model, other, folder=tmp_path)


@pytest.mark.parametrize("layers", [None, "all"])
def test_metadata_is_kept_from_the_model(layers):
    class Sites(Dicts):
        def __iter__(self):
            return ({**batch, "x-site": ["a"] * 10} for batch in super().__iter__())

    model = Takes()
    fitted = fit(model, Sites(), layers=layers, metadata="x-site")
    assert fitted.directions.tobytes() == fit(model, Dicts(), layers=layers).directions.tobytes()
    evaluation = collect(model, Sites(), metadata=["x-site"], influence=fitted, progress=silent)
    assert evaluation.metadata["x-site"].tolist() == ["a"] * N
    expected = collect(model, Dicts(), influence=fitted, progress=silent).representations["influence"]
    assert np.array_equal(evaluation.representations["influence"], expected)


def test_a_loader_that_can_be_read_once_is_refused_where_it_is_read_twice():
    model = net()
    with pytest.raises(InputError, match=r"40 rows at first and 0 when it was read again; give one that can be read"):
        collect(model, iter(pairs()), influence=fit(model, pairs()), progress=silent)
    head = fit(model, iter(pairs()), layers=None)  # once is enough to fit, and for the last layer
    assert isinstance(head, HeadInfluence)
    assert len(collect(model, iter(pairs()), influence=head, progress=silent)) == N
    assert fit(model, iter(pairs())).directions.tobytes() == fit(model, pairs()).directions.tobytes()


class Reshuffles:
    """Another order at every reading, and nothing to tell by."""

    def __init__(self, labels):
        self.labels, self.reading = labels, 0

    def __iter__(self):
        self.reading += 1
        order = torch.randperm(N, generator=torch.Generator().manual_seed(self.reading))
        return iter(pairs(10, X[order], self.labels[order]))


@pytest.mark.parametrize(
    "labels", [Y, Y[:, None], X.softmax(dim=1)[:, :3] / X.softmax(dim=1)[:, :3].sum(1, keepdim=True)]
)
def test_a_loader_that_shuffles_is_refused_where_it_is_read_twice(labels):
    model = net()
    fitted = fit(model, pairs(10, X, labels))
    assert len(collect(model, pairs(10, X, labels), influence=fitted, progress=silent)) == N
    with pytest.raises(InputError, match=r"another order when it was read again; give one that does not shuffle"):
        collect(model, Reshuffles(labels), influence=fitted, progress=silent)
    shuffling = DataLoader(TensorDataset(X, labels), batch_size=10, shuffle=True)
    with pytest.raises(InputError, match="another order"):
        collect(model, shuffling, influence=fitted, progress=silent)


def test_loaders_of_every_kind_give_the_same():
    model = net()
    expected = fit(model, pairs())
    loader = DataLoader(TensorDataset(X, Y), batch_size=10)
    for other in (loader, tuple(pairs()), nn.DataParallel):
        wrapped = other(model) if other is nn.DataParallel else model
        given = pairs() if other is nn.DataParallel else other
        fitted = fit(wrapped, given)
        assert np.array_equal(fitted.directions, expected.directions)
        assert np.array_equal(rows(fitted, wrapped, given), rows(expected, model, pairs()))
    assert rows(expected, model, []).shape == (0, len(expected.values))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"steps": 0}, "`steps` must be at least 1; got 0"),
        ({"rank": -1}, "`rank` must be at least 1; got -1"),
        ({"tolerance": 1.0}, "`tolerance` is a share of the largest eigenvalue, from 0 to 1; got 1.0"),
        ({"tolerance": float("nan")}, "`tolerance`.*got nan"),
        ({"damping": -0.1}, "`damping` must not be negative; got -0.1"),
        ({"damping": float("nan")}, "`damping`.*got nan"),
        ({"rows": 0}, "`rows` must be at least 1, or None for all; got 0"),
        ({"layers": "5"}, "unknown layer `5`; known: 0, 1, 2, 3, 4"),
        ({"layers": ["0", "nets"]}, "unknown layer `nets`"),
        ({"layers": ["2", "3"]}, r"the layers \['2', '3'\] have no parameters; name others"),
        ({"layers": []}, r"the layers \[\] have no parameters; name others"),
        ({"device": "gpu"}, "`device` must be one that torch knows, as 'cpu' or 'cuda:0'; got 'gpu'"),
        ({"loss": F.cross_entropy}, r"`loss` must give one value a row, shape \(10,\); got \(\); use reduction='none'"),
        ({"loss": lambda logits, labels: logits[:, 0] ** 2 * float("nan")}, "not finite; look for a row"),
        ({"loss": lambda logits, labels: logits.sum(dim=1)}, "no positive eigenvalue"),
    ],
)
@pytest.mark.parametrize("layers", ["4", None])
def test_bad_options_are_one_sentence(options, words, layers):
    with pytest.raises(InputError, match=words) as caught:
        fit(net(), pairs(), **{"layers": layers, **options})
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("loader", "words"),
    [
        ([], "the loader gave no batches"),
        ([X], r"a batch must be a pair \(inputs, labels\) or a dict"),
        ([(X[0], Y[0])], "the loader gives single examples; put them in batches"),
        ([(X, Y + 1)], "from 0 to 2.*got 3"),
        ([(X, torch.randn(N, 3))], r"labels of shape \(n, t\) must be 0 or 1"),
        ([(X, torch.full((N, 4), 0.25))], r"soft labels have shape \(40, 4\) and logits \(40, 3\)"),
    ],
)
@pytest.mark.parametrize("layers", ["4", None])
def test_bad_batches_are_one_sentence(loader, words, layers):
    with pytest.raises(InputError, match=words):
        fit(net(), loader, layers=layers)


def test_coarse_weights_are_refused():
    with pytest.raises(InputError, match=r"too coarse to differentiate twice; use model.float\(\)"):
        fit(net().bfloat16(), pairs(inputs=X.bfloat16()))


def condition(model):
    modes = [module.training for module in model.modules()]
    flags = [parameter.requires_grad for parameter in model.parameters()]
    hooks = [len(m._forward_hooks) + len(m._forward_pre_hooks) for m in model.modules()]
    bytes_ = [tensor.numpy().tobytes() for tensor in model.state_dict().values()]
    return modes, flags, hooks, bytes_, [p.grad is None for p in model.parameters()], torch.is_grad_enabled()


@pytest.mark.parametrize("layers", [None, "4", "all"])
def test_the_model_is_left_as_it_was(monkeypatch, layers):
    model = net().train()
    model[2].eval()
    model[0].weight.requires_grad_(False)
    before = condition(model)
    fitted = fit(model, pairs(), layers=layers, device="cpu")
    assert condition(model) == before
    collect(model, pairs(), influence=fitted, progress=silent)
    assert condition(model) == before
    if layers is None:
        return
    for owner, name, work in (
        (MeanHessian, "product", lambda: fit(model, pairs(), layers=layers)),
        (RowProjections, "of", lambda: rows(fitted, model, pairs())),
    ):
        killed_at(monkeypatch, owner, name, 2)
        with pytest.raises(Killed):
            work()
        assert condition(model) == before


def _cross_entropy(logits, labels):
    return F.cross_entropy(logits, labels, reduction="none")


def test_whole_batches_are_chosen_by_seed():
    chosen = {}
    for seed in range(4):
        seen = []

        class Seen(nn.Module):
            def __init__(self, seen):
                super().__init__()
                self.net, self.seen = net(), seen

            def forward(self, x):
                self.seen.append(int((x[0] == X).all(dim=1).nonzero()))
                return self.net(x)

        fit(Seen(seen), pairs(4), loss=_cross_entropy, rows=10, seed=seed, steps=4)
        chosen[seed] = tuple(seen)
    assert all(len(set(first)) == 3 for first in chosen.values())  # three batches of four are about ten rows
    assert len(set(chosen.values())) > 1
    assert any(0 not in some for some in chosen.values())  # the first is not a special one
    assert any(max(some) - min(some) > 8 for some in chosen.values())  # and they do not lie side by side
    assert all(first % 4 == 0 for some in chosen.values() for first in some)


def test_bars_are_drawn_on_a_terminal_only(capsys, monkeypatch):
    monkeypatch.setattr(progress, "PAUSE", 0.0)
    fitted = fit_influence(net(), pairs(), layers="all", steps=3)
    assert "curvature" not in capsys.readouterr().err
    monkeypatch.setenv("FORCE_COLOR", "1")  # what rich takes for a terminal
    fit_influence(net(), pairs(), layers="all", steps=3)
    captured = capsys.readouterr()
    assert "curvature" in captured.err
    assert "67%, 0:00 left" in captured.err
    assert captured.out == ""
    collect(net(), pairs(), influence=fitted)
    captured = capsys.readouterr()
    assert "influence" in captured.err
    assert captured.out == ""
