from collections import namedtuple

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402  # only once torch is known to be there

from errata.core import InputError  # noqa: E402
from errata.tensors import device_of, is_out_of_memory, on_device, state_fingerprint, to_device  # noqa: E402

torch.set_num_threads(1)
Pair = namedtuple("Pair", "a b")


def test_nested_tensors_move_and_the_rest_stays():
    nested = {"x": torch.ones(2), "more": [torch.ones(1), ("text", 3)], "pair": Pair(torch.ones(1), None)}
    there = to_device(nested, "meta")
    assert there["x"].device.type == "meta"
    assert there["more"][0].device.type == "meta"
    assert there["more"][1] == ("text", 3)
    assert isinstance(there["pair"], Pair)
    assert there["pair"].a.device.type == "meta"
    assert nested["x"].device.type == "cpu"


def test_device_of_a_model_comes_from_parameters_or_buffers():
    assert device_of(nn.Linear(1, 1, device="meta")).type == "meta"
    only_buffers = nn.BatchNorm1d(2, affine=False, device="meta")
    assert device_of(only_buffers).type == "meta"
    assert device_of(nn.ReLU()).type == "cpu"


@pytest.mark.parametrize(
    ("words", "is_memory"),
    [
        ("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`", True),
        ("cuDNN error: CUDNN_STATUS_ALLOC_FAILED", True),
        ("CUDA error: out of memory", True),
        ("CUDA error: CUBLAS_STATUS_EXECUTION_FAILED when calling `cublasSgemm(...)`", False),
    ],
)
def test_libraries_of_a_gpu_say_in_their_own_way_that_memory_is_too_small(words, is_memory):
    assert is_out_of_memory(RuntimeError(words)) == is_memory


def test_moved_goes_back_home_and_rejects_what_it_cannot_move():
    model = nn.Linear(2, 2)
    with on_device(model, None) as where:
        assert where.type == "cpu"
    with on_device(model, "cpu") as where:
        assert where.type == "cpu"
    with pytest.raises(InputError, match=r"`device`.*'gpu'"), on_device(model, "gpu"):
        pass
    if not torch.cuda.is_available():
        with pytest.raises(InputError, match="no GPU here"), on_device(model, "cuda"):
            pass
    spread = nn.Sequential(nn.Linear(1, 1), nn.Linear(1, 1, device="meta"))
    with pytest.raises(InputError, match="spread over 2 devices"), on_device(spread, "cpu"):
        pass


def test_fingerprint_follows_names_shapes_and_values():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))
    first = state_fingerprint(model)
    assert first == state_fingerprint(model)
    with torch.no_grad():
        model[0].bias[0] += 1e-3
    assert state_fingerprint(model) != first
    one, other = nn.Linear(4, 1, bias=False), nn.Linear(2, 2, bias=False)
    with torch.no_grad():
        one.weight.fill_(1)
        other.weight.fill_(1)
    assert state_fingerprint(one) != state_fingerprint(other)
    assert len(state_fingerprint(nn.Linear(2, 2).bfloat16())) == 32
