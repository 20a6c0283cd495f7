import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402  # only once torch is known to be there

from errata.core import InputError  # noqa: E402
from errata.tensors import LayerCapture, capture_layer, evaluating, is_head, unwrap  # noqa: E402

torch.set_num_threads(1)


def hooks(model):
    return sum(len(m._forward_hooks) + len(m._forward_pre_hooks) for m in model.modules())


class Branches(nn.Module):
    """Registers its layers in another order than they run; one never runs."""

    def __init__(self):
        super().__init__()
        self.head = nn.Linear(3, 2)
        self.body = nn.Linear(4, 3)
        self.unused = nn.Linear(3, 7)

    def forward(self, x):
        return self.head(torch.relu(self.body(x)))


def test_last_linear_is_the_one_that_runs_last_not_the_one_registered_last():
    model, x = Branches(), torch.randn(5, 4)
    with capture_layer(model) as capture, torch.no_grad():
        model(x)
        seen = capture.take(5)
        assert capture.layer == "head"
        assert torch.equal(seen, torch.relu(model.body(x)))
        assert hooks(model) == 1  # the others are let go after the first batch
    assert hooks(model) == 0


def test_named_layer_gives_its_output_even_when_it_is_overwritten_in_place():
    model, x = nn.Sequential(nn.Linear(4, 3), nn.ReLU(inplace=True), nn.Linear(3, 2)), torch.randn(6, 4)
    with capture_layer(model, "0") as capture, torch.no_grad():
        model(x)
        seen = capture.take(6)
        assert torch.equal(seen, model[0](x))
        assert (seen < 0).any()


def test_convolution_head_is_averaged_over_pixels():
    model, x = nn.Sequential(nn.Conv2d(3, 8, 3), nn.Conv2d(8, 2, 1)), torch.randn(2, 3, 6, 6)
    with capture_layer(model) as capture, torch.no_grad():
        model(x)
        assert torch.allclose(capture.take(2), model[0](x).mean(dim=(2, 3)), atol=1e-6)
        assert capture.layer == "1"


def test_linear_over_tokens_is_averaged_over_tokens():
    model, x = nn.Linear(4, 2), torch.randn(3, 5, 4)
    with capture_layer(model) as capture, torch.no_grad():
        model(x)
        assert torch.allclose(capture.take(3), x.mean(dim=1), atol=1e-6)


def test_named_layer_with_a_tuple_output_gives_its_first_tensor():
    model, x = nn.Sequential(nn.LSTM(4, 3, batch_first=True)), torch.randn(2, 5, 4)
    with capture_layer(model, "0") as capture, torch.no_grad():
        output, _ = model(x)
        assert torch.equal(capture.take(2), output.reshape(2, 15))


def test_keyword_input_and_half_precision_are_kept_as_float32():
    class Keyword(nn.Module):
        def __init__(self):
            super().__init__()
            self.head = nn.Linear(4, 2).bfloat16()

        def forward(self, x):
            return self.head(input=x)

    model = Keyword()
    with capture_layer(model) as capture, torch.no_grad():
        model(torch.ones(3, 4, dtype=torch.bfloat16))
        seen = capture.take(3)
    assert seen.dtype == torch.float32
    assert (seen == 1).all()


def test_what_counts_as_a_head():
    assert is_head(nn.Linear(2, 2))
    assert is_head(nn.Conv1d(2, 2, 1))
    assert not is_head(nn.Conv2d(2, 2, 3))
    assert not is_head(nn.ReLU())


def test_unknown_layer_names_the_nearest():
    with pytest.raises(InputError, match="unknown layer `heat`; did you mean `head`"):
        LayerCapture(Branches(), "heat")


def test_layers_that_do_not_run_or_have_other_rows_say_so():
    model, x = Branches(), torch.randn(5, 4)
    with capture_layer(model, "unused") as capture:
        model(x)
        with pytest.raises(InputError, match=r"`unused` never ran.*`layer`"):
            capture.take(5)
    with capture_layer(nn.ReLU()) as capture, pytest.raises(InputError, match=r"no linear layer ran.*`layer`"):
        capture.take(5)
    with capture_layer(model) as capture:
        model(x)
        with pytest.raises(InputError, match="5 rows for a batch of 4"):
            capture.take(4)


def test_modes_flags_and_hooks_are_restored_after_an_error():
    model = nn.Sequential(nn.Linear(2, 2), nn.Dropout(), nn.BatchNorm1d(2))
    model.train()
    model[2].eval()
    model[0].weight.requires_grad_(False)

    def fail():
        with evaluating(model), capture_layer(model):
            assert not model[1].training
            assert not torch.is_grad_enabled()
            model.requires_grad_(False)
            raise RuntimeError("boom")

    with pytest.raises(RuntimeError, match="boom"):
        fail()
    assert [m.training for m in model.modules()] == [True, True, True, False]
    assert [p.requires_grad for p in model.parameters()] == [False, True, True, True]
    assert hooks(model) == 0
    assert torch.is_grad_enabled()


def test_unwrap_gives_the_users_module():
    inner = nn.Linear(2, 2)
    assert unwrap(nn.DataParallel(inner)) is inner
    assert unwrap(torch.compile(inner)) is inner
    assert unwrap(inner) is inner
