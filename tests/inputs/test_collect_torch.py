import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402  # only once torch is known to be there
from torch.nn import functional as F  # noqa: E402
from torch.utils.data import DataLoader, IterableDataset, TensorDataset  # noqa: E402

from errata.core import InputError  # noqa: E402
from errata.core.progress import silent  # noqa: E402
from errata.inputs import from_torch  # noqa: E402
from errata.tensors import state_fingerprint  # noqa: E402

torch.set_num_threads(1)
N = 22  # no multiple of the batch size


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(0)


def net(outputs):
    return nn.Sequential(nn.Linear(4, 6), nn.Dropout(0.5), nn.ReLU(), nn.Linear(6, outputs))


def pairs(labels, batch=5):
    return DataLoader(TensorDataset(X, labels), batch_size=batch)


X = torch.randn(N, 4, generator=torch.Generator().manual_seed(1))
TWO = (X[:, 0] > 0).long()
THREE = torch.bucketize(X[:, 0].contiguous(), torch.tensor([-0.5, 0.5]))


@torch.no_grad()
def outputs(model):
    mode = model.training
    result = model.eval()(X)
    model.train(mode)
    return result


def collected(model, loader, **options):
    return from_torch(model, loader, progress=silent, **options)


def test_many_classes_match_torch(seed):
    model = net(3)
    ev = collected(model, pairs(THREE))
    logits = outputs(model)
    assert np.allclose(ev.probs, logits.softmax(1), atol=1e-6)
    assert np.allclose(ev.losses, F.cross_entropy(logits, THREE, reduction="none"), atol=1e-5)
    assert np.array_equal(ev.predictions, logits.argmax(1))
    assert np.array_equal(ev.labels, THREE)
    assert ev.origin.model == state_fingerprint(model)


def test_penultimate_times_the_last_weights_gives_the_logits():
    model = net(3)
    ev = collected(model, pairs(THREE))
    hidden = ev.representations["penultimate"]
    assert hidden.dtype == np.float32
    logits = torch.from_numpy(np.array(hidden)) @ model[3].weight.T + model[3].bias
    assert torch.allclose(logits, outputs(model), atol=1e-5)
    assert ev.source("penultimate").from_model


def test_losses_keep_what_probabilities_would_lose():
    model = nn.Linear(1, 2, bias=False)
    with torch.no_grad():
        model.weight.copy_(torch.tensor([[0.0], [100.0]]))
    loader = DataLoader(TensorDataset(torch.ones(2, 1), torch.tensor([0, 1])), batch_size=2)
    assert np.allclose(collected(model, loader).losses, [100, 0], atol=1e-9)


@pytest.mark.parametrize("squeeze", [True, False])
def test_one_logit_is_binary(squeeze):
    model = nn.Sequential(net(1), nn.Flatten(0)) if squeeze else net(1)
    for labels in (TWO, TWO.float(), TWO[:, None].float()):
        ev = collected(model, pairs(labels))
        logits = outputs(model).reshape(-1)
        assert ev.task == "classification"
        assert np.allclose(ev.probs[:, 1], logits.sigmoid(), atol=1e-6)
        expected = F.binary_cross_entropy_with_logits(logits, TWO.float(), reduction="none")
        assert np.allclose(ev.losses, expected, atol=1e-6)


def test_two_logits_are_binary_too():
    model = net(2)
    ev = collected(model, pairs(TWO))
    assert ev.probs.shape == (N, 2)
    assert np.allclose(ev.probs, outputs(model).softmax(1), atol=1e-6)


def test_multilabel():
    model, labels = net(3), (X[:, :3] > 0).float()
    ev = collected(model, pairs(labels))
    assert ev.task == "multilabel"
    logits = outputs(model)
    assert np.allclose(ev.probs, logits.sigmoid(), atol=1e-6)
    expected = F.binary_cross_entropy_with_logits(logits, labels, reduction="none").mean(1)
    assert np.allclose(ev.losses, expected, atol=1e-6)


def test_regression():
    model, targets = net(1), X[:, 0] * 3
    ev = collected(model, pairs(targets))
    assert ev.task == "regression"
    assert np.allclose(ev.predictions, outputs(model)[:, 0], atol=1e-6)
    assert np.allclose(ev.losses, (targets - outputs(model)[:, 0]) ** 2, atol=1e-5)


class Keywords(nn.Module):
    """Takes keyword arguments and gives an object, as Hugging Face models do."""

    def __init__(self, form):
        super().__init__()
        self.body, self.head, self.form = nn.Linear(4, 6), nn.Linear(6, 2), form

    def forward(self, pixels, scale):
        logits = self.head(self.body(pixels * scale["by"]))
        forms = {"dict": {"logits": logits}, "tuple": (logits, None), "bad": {"scores": logits}}
        return forms[self.form] if self.form in forms else type("Output", (), {"logits": logits})()


class Dicts(torch.utils.data.Dataset):
    def __init__(self, key="labels"):
        self.key = key

    def __len__(self):
        return N

    def __getitem__(self, i):
        row = {"pixels": X[i], "scale": {"by": torch.ones(1)}, "id": f"row{i}", "site": "a" if i % 2 else "b"}
        return {**row, self.key: TWO[i], "group": i // 2}


@pytest.mark.parametrize("form", ["dict", "tuple", "object"])
@pytest.mark.parametrize("key", ["label", "labels", "y", "target", "targets"])
def test_dict_batches_and_outputs(form, key):
    model = Keywords(form)
    ev = collected(model, DataLoader(Dicts(key), batch_size=5), metadata=["site"])
    with torch.no_grad():
        expected = model.head(model.body(X)).softmax(1)
    assert np.allclose(ev.probs, expected, atol=1e-6)
    assert ev.row_ids.tolist() == [f"row{i}" for i in range(N)]
    assert ev.groups.tolist() == [i // 2 for i in range(N)]
    assert ev.metadata["site"].tolist()[:3] == ["b", "a", "b"]


def state(model):
    hooks = [len(m._forward_hooks) + len(m._forward_pre_hooks) for m in model.modules()]
    return [m.training for m in model.modules()], [p.requires_grad for p in model.parameters()], hooks


def test_the_model_is_left_as_it_was():
    model = nn.Sequential(net(3), nn.BatchNorm1d(3)).train()
    model[0][1].eval()
    model[0][0].weight.requires_grad_(False)
    before, weights = state(model), state_fingerprint(model)
    first = collected(model, pairs(THREE))
    assert state(model) == before
    assert state_fingerprint(model) == weights  # the running means of a batch norm too
    assert np.array_equal(first.losses, collected(model, pairs(THREE)).losses)  # no dropout


def test_an_error_in_the_forward_pass_restores_everything(tmp_path):
    class Fails(nn.Module):
        def __init__(self):
            super().__init__()
            self.net, self.calls = net(3), 0

        def forward(self, x):
            self.calls += 1
            if self.calls == 3:
                self.requires_grad_(False)
                raise RuntimeError("boom")
            return self.net(x)

    model = Fails().train()
    before = state(model)
    with pytest.raises(RuntimeError, match="boom"):
        collected(model, pairs(THREE), out=tmp_path / "rows.npy")
    assert state(model) == before
    assert list(tmp_path.iterdir()) == []
    assert torch.is_grad_enabled()


def test_convolution_head():
    class Conv(nn.Module):
        def __init__(self):
            super().__init__()
            self.body, self.head = nn.Conv2d(1, 5, 2), nn.Conv2d(5, 3, 1)

        def forward(self, x):
            return self.head(torch.relu(self.body(x))).mean(dim=(2, 3))

    model, images = Conv(), X.reshape(N, 1, 2, 2).repeat(1, 1, 2, 2)
    ev = collected(model, DataLoader(TensorDataset(images, THREE), batch_size=5))
    with torch.no_grad():
        expected = torch.relu(model.body(images)).mean(dim=(2, 3))
    assert np.allclose(ev.representations["penultimate"], expected, atol=1e-6)


def test_named_layer_gives_its_output_under_its_name(capsys):
    model = net(3)
    ev = from_torch(model, pairs(THREE), layer="0")
    with torch.no_grad():
        assert np.allclose(ev.representations["0"], model[0](X), atol=1e-6)
    assert capsys.readouterr().err == "representation: the output of `0`\n"
    with pytest.raises(InputError, match="unknown layer `haed`; did you mean `head`"):
        collected(Keywords("dict"), pairs(THREE), layer="haed")


def test_says_which_layer_was_taken_and_that_a_loader_shuffles(capsys):
    from_torch(net(3), pairs(THREE))
    assert capsys.readouterr().err == "representation: the input of the last linear layer, `3`\n"
    from_torch(net(3), DataLoader(TensorDataset(X, THREE), shuffle=True))
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "last linear layer, `3`" in captured.err
    assert "shuffles" in captured.err
    collected(net(3), pairs(THREE))
    assert capsys.readouterr().err == ""


def test_progress_rises_from_none_to_all_of_the_batches(capsys):
    steps = []
    from_torch(net(3), pairs(THREE), progress=lambda stage, share: steps.append((stage, share)))
    shares = [share for stage, share in steps]
    assert {stage for stage, share in steps} == {"collect"}
    assert shares == [i / (len(shares) - 1) for i in range(len(shares))]
    assert len(shares) == len(pairs(THREE)) + 1
    assert capsys.readouterr().err == ""  # notes are for the terminal's bar


def test_a_loader_without_a_length_has_no_share_until_its_end():
    shares = []
    from_torch(net(3), (batch for batch in pairs(THREE)), progress=lambda stage, share: shares.append(share))
    assert shares == [0.0] * len(pairs(THREE)) + [1.0]


def test_the_bar_shows_on_a_terminal_only(capsys, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")  # what rich takes for a terminal
    for loader in (pairs(THREE), iter(pairs(THREE))):
        assert len(from_torch(net(3), loader)) == N
        captured = capsys.readouterr()
        assert "collect" in captured.err
        assert captured.out == ""


class Stream(IterableDataset):
    def __iter__(self):
        return iter(zip(X, THREE, strict=True))


def test_loaders_without_length_give_the_same():
    model = net(3)
    expected = collected(model, pairs(THREE))
    for loader in (DataLoader(Stream(), batch_size=5), list(pairs(THREE)), iter(pairs(THREE, 1))):
        ev = collected(model, loader)
        assert len(ev) == N
        assert np.allclose(ev.losses, expected.losses, atol=1e-6)
        hidden = ev.representations["penultimate"]
        assert np.allclose(hidden, expected.representations["penultimate"], atol=1e-6)


class Elsewhere:
    """An engine that is not this process's own, as far as anybody can tell."""

    def each(self, function, items, *shared):
        return (function(item, *shared) for item in items)


def test_a_stream_is_read_here_and_its_batches_are_sent():
    model = net(3)
    expected = collected(model, pairs(THREE))
    for loader in (DataLoader(Stream(), batch_size=5), DataLoader(TensorDataset(X, THREE), batch_size=5)):
        ev = collected(model, loader, engine=Elsewhere())
        assert len(ev) == N
        assert np.allclose(ev.losses, expected.losses, atol=1e-6)


@pytest.mark.parametrize("known", [True, False])
def test_memory_map(tmp_path, known):
    model, path = net(3), tmp_path / "rows.npy"
    loader = pairs(THREE, 2) if known else DataLoader(Stream(), batch_size=2)
    ev = collected(model, loader, out=path)
    assert isinstance(ev.representations["penultimate"], np.memmap)
    assert np.load(path).shape == (N, 6)
    expected = collected(model, pairs(THREE, 2)).representations["penultimate"]
    assert np.array_equal(np.load(path), expected)
    assert [p.name for p in tmp_path.iterdir()] == ["rows.npy"]
    with pytest.raises(InputError, match=r"`out` must end in \.npy"):
        collected(model, loader, out=tmp_path / "rows.bin")
    with pytest.raises(InputError, match="create it first"):
        collected(model, loader, out=tmp_path / "no" / "rows.npy")


def test_own_losses_and_outputs_that_are_no_logits():
    model = net(3)
    ev = collected(model, pairs(THREE), loss=lambda logits, labels: logits[:, 0] + labels)
    assert np.allclose(ev.losses, outputs(model)[:, 0] + THREE, atol=1e-6)
    assert ev.probs is not None
    with pytest.raises(InputError, match=r"`loss` must give one value a row.*shape \(\).*reduction='none'"):
        collected(model, pairs(THREE), loss=F.cross_entropy)
    tokens = nn.Sequential(nn.Linear(4, 6), nn.Unflatten(1, (2, 3)), nn.Linear(3, 3))
    with pytest.raises(InputError, match=r"shape \(5, 2, 3\).*pass `loss`"):
        collected(tokens, pairs(THREE))
    ev = collected(tokens, pairs(THREE), loss=lambda logits, labels: logits.sum(dim=(1, 2)) ** 2)
    assert ev.task == "loss"
    assert ev.probs is None
    assert ev.representations["penultimate"].shape == (N, 3)


@pytest.mark.parametrize(
    ("model", "loader", "words"),
    [
        (net(3), [X[:5]], r"pair \(inputs, labels\) or a dict.*got a Tensor"),
        (net(3), [(X[:5], THREE[:5], THREE[:5])], "got a tuple of 3"),
        (Keywords("dict"), [{"pixels": X[:5]}], "keys pixels, of which none is the label.*targets"),
        (Keywords("bad"), DataLoader(Dicts()), "`logits`"),
        (net(3), [(X[:5], THREE[:4])], "batch of 4 labels"),
        (net(3), [], "no batches"),
        (net(3), [(X[:5], torch.tensor([0, 1, 2, 3, 0]))], "from 0 to 2.*got 3 at row 3"),
        (net(3), [(X[:2], torch.tensor([0.5, 1]))], "class indices; got 0.5 at row 0"),
        (net(3), [(X[:2], torch.zeros(2, 4))], r"\(2, 4\) and logits \(2, 3\)"),
        (net(3), [(X[:2], torch.full((2, 3), 0.5))], "must be 0 or 1; row 0"),
        (net(3), [(X[:2], ["a", "b"])], "labels must be numbers"),
        (nn.Flatten(), [(X[:2], TWO[:2])], "no linear layer ran"),
    ],
)
def test_errors_are_one_sentence(model, loader, words):
    options = {"metadata": ["site"]} if isinstance(loader, DataLoader) else {}
    with pytest.raises(InputError, match=words):
        collected(model, loader, **options)


def test_metadata_needs_dict_batches_that_have_it():
    with pytest.raises(InputError, match="this loader gives pairs"):
        collected(net(3), pairs(THREE), metadata=["site"])
    with pytest.raises(InputError, match="`sight`; did you mean `site`"):
        collected(Keywords("dict"), DataLoader(Dicts()), metadata=["sight"])


def test_layers_that_change_their_size_say_so():
    batches = [(torch.ones(2, 3, 4), TWO[:2]), (torch.ones(2, 5, 4), TWO[:2])]

    class Pooled(nn.Module):
        def __init__(self):
            super().__init__()
            self.body, self.head = nn.Linear(4, 3), nn.Linear(3, 2)

        def forward(self, x):
            return self.head(self.body(x).mean(dim=1))

    with pytest.raises(InputError, match=r"from \(9,\) to \(15,\) between batches"):
        collected(Pooled(), batches, layer="body")
    assert collected(Pooled(), batches).representations["penultimate"].shape == (4, 3)


def test_device_may_be_named_and_half_precision_is_taken():
    ev = collected(net(3), pairs(THREE), device="cpu")
    assert len(ev) == N
    half = net(3).bfloat16()
    ev = collected(half, DataLoader(TensorDataset(X.bfloat16(), THREE), batch_size=5))
    assert ev.representations["penultimate"].dtype == np.float32


def test_the_models_graph_is_not_kept():
    kept = []

    def spy(module, args, output):
        kept.append(output.requires_grad)

    model = net(3)
    handle = model.register_forward_hook(spy)
    collected(model, pairs(THREE))
    assert kept == [False] * 5
    assert model._forward_hooks  # the user's own hook is still there
    handle.remove()


# ---- what is given beside a loader, and outputs that are no logits


def batches(labels, torch, inputs=None):
    inputs = torch.arange(3.0 * len(labels)).reshape(-1, 3) if inputs is None else inputs
    return [(inputs[i : i + 7], labels[i : i + 7]) for i in range(0, len(labels), 7)]


def test_metadata_media_and_names_beside_a_loader_of_pairs():
    import pandas as pd

    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    net = torch.nn.Linear(3, 2)
    labels = torch.arange(20) % 2
    images = np.zeros((20, 8, 8, 3), dtype=np.uint8)
    for beside in ({"site": ["a", "b"] * 10}, pd.DataFrame({"site": ["a", "b"] * 10})):
        ev = from_torch(
            net, batches(labels, torch), metadata=beside, media=images, class_names=["no", "yes"], progress=silent
        )
        assert ev.metadata["site"].tolist() == ["a", "b"] * 10
        assert ev.media.thumbnail(0, 32)[:4] == b"\x89PNG"
        assert ev.class_names == ("no", "yes")
    with pytest.raises(InputError, match="metadata `site` has 3 values where there are 20 rows"):
        from_torch(net, batches(labels, torch), metadata={"site": [1, 2, 3]}, progress=silent)
    with pytest.raises(InputError, match="`media` has 3 items where the evaluation has 20 rows"):
        from_torch(net, batches(labels, torch), media=["a", "b", "c"], progress=silent)
    shuffled = torch.utils.data.DataLoader(list(zip(torch.eye(3), [0, 1, 0], strict=True)), shuffle=True)
    with pytest.raises(InputError, match="shuffles, so `metadata` and `media` beside it would be those of other rows"):
        from_torch(net, shuffled, media=["a", "b", "c"], progress=silent)


def test_outputs_that_are_probabilities_already_are_not_flattened_again(capsys):
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    inputs = torch.randn(40, 3)
    labels = (inputs[:, 0] > 0).long()
    linear = torch.nn.Linear(3, 2)
    logits = from_torch(linear, batches(labels, torch, inputs), progress=silent)
    softmax = torch.nn.Sequential(linear, torch.nn.Softmax(dim=1))
    ev = from_torch(softmax, batches(labels, torch, inputs))
    assert np.allclose(ev.probs, logits.probs, atol=1e-5)
    assert np.allclose(ev.losses, logits.losses, atol=1e-5)
    assert "sum to one, so they are read as probabilities" in capsys.readouterr().err
    one = torch.nn.Linear(3, 1)
    binary = from_torch(one, batches(labels, torch, inputs), progress=silent)
    sigmoid = torch.nn.Sequential(one, torch.nn.Sigmoid())
    ev = from_torch(sigmoid, batches(labels, torch, inputs))
    assert ev.task == "classification"
    assert np.allclose(ev.probs, binary.probs, atol=1e-5)
    assert "read as probabilities of 1" in capsys.readouterr().err


def test_whole_numbers_with_one_output_are_a_regression_and_said(capsys):
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    stars = torch.arange(30) % 5 + 1
    ev = from_torch(torch.nn.Linear(3, 1), batches(stars, torch))
    assert ev.task == "regression"
    assert "5 values, 1 to 5" in capsys.readouterr().err
