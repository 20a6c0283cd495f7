"""What runs a network on one GPU: influence of a ResNet-18, robust training, Defuse's search.

    python benchmarks/gpu_models.py [influence] [robust] [defuse] [--device cuda] [--images 5000]

Each beside its floor: operations over what a large product reaches in the same precision. Pixels are noise, since times
do not depend on them.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable

import numpy as np
import torch

from errata.core.progress import silent
from errata.defuse.identify import Classifier, identify
from errata.defuse.vae import fitting_architecture, new_vae
from errata.inputs.influence.layers import _row_losses
from errata.tensors import MeanHessian, RowProjections, evaluating, select_parameters, twice_differentiable
from errata.train.adversarial import fit_robust
from errata.train.networks import network
from errata.train.resnet import ResNet18

STAGE = 2 * 0.41e9  # operations of ResNet-18's last stage for one image of 224 px, forwards
WHOLE = 2 * 1.82e9
FINE = 2 * 0.56e9  # of the whole network for one image of 32 px, by the fine stem


def wait() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def seconds(work: Callable[[], object], times: int = 1) -> float:
    taken = []
    for _ in range(times):
        wait()
        began = time.perf_counter()
        work()
        wait()
        taken.append(time.perf_counter() - began)
    return float(np.median(taken))


def product_rate(dtype: torch.dtype, device: torch.device, tf32: bool = False) -> float:
    """Operations a second of a large product."""
    size = 8192 if device.type == "cuda" else 512
    before = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = tf32
    a = torch.randn(size, size, device=device, dtype=dtype)
    a @ a
    rate = 2 * size**3 / seconds(lambda: a @ a, 3)
    torch.backends.cuda.matmul.allow_tf32 = before
    return rate


def influence(device: torch.device, n: int) -> None:
    """fc and the last stage: 8.9 million parameters; P = 500 products and D = 100 directions are a published fit."""
    torch.manual_seed(0)
    size = 250 if n >= 1000 else 10
    model = ResNet18(outputs=1000, px=224).to(device)
    batches = [
        (((torch.randn(size, 3, 224, 224, device=device)),), {}, torch.randint(0, 1000, (size,), device=device))
        for _ in range(n // size)
    ]
    rate = product_rate(torch.float32, device, tf32=True)
    with evaluating(model), twice_differentiable(model):
        parameters = select_parameters(model, ["fc", "stages.3"])
        losses = _row_losses(model, "classes", None, device)
        hessian = MeanHessian(losses, parameters, batches, 60 << 30)
        v = torch.randn(sum(p.numel() for p in parameters.values()), device=device)
        first = seconds(lambda: hessian.product(v))
        each = seconds(lambda: hessian.product(v), 3)
        floor = 6 * STAGE * n / rate
        print(
            f"influence, {len(v):,} parameters, {n} images: the first product {first:.2f} s, the others {each:.3f} s, "
            f"{each / floor:.1f} times the floor {floor:.3f} s (TF32, {rate / 1e12:.0f} TFLOP/s)",
            flush=True,
        )
        directions = torch.randn(100, len(v), device=device)
        some = batches[: max(1, 1000 // size)]
        rows = sum(len(batch[2]) for batch in some)
        floor = (WHOLE + 3 * STAGE + 2 * 100 * len(v)) * rows / rate
        for memory in (1 << 28, 1 << 31, None):
            projections = RowProjections(losses, parameters, directions, memory)
            projections.of(some[0], size)
            taken = seconds(lambda projections=projections: [projections.of(batch, size) for batch in some])
            print(
                f"embeddings, D = 100, {projections._at_once} rows at a time by `{projections.route}`: "
                f"{taken / rows * 1e3:.2f} ms an image, {taken / floor:.1f} times the floor",
                flush=True,
            )


def robust(device: torch.device, n: int) -> None:
    """A ResNet-18 on images of 32 px, attacked in seven steps."""
    rng = np.random.default_rng(0)
    n = 10_240 if n >= 1000 else 64
    images = rng.integers(0, 256, (n, 32, 32, 3), dtype=np.uint8)
    labels = rng.integers(0, 10, n)
    model = ResNet18(outputs=10, px=32).to(device)
    rate = product_rate(torch.bfloat16, device)
    options = {"radius": 0.5, "batch": 512, "lr": 0.1, "device": device, "progress": silent}
    fit_robust(model, images[: n // 10], labels[: n // 10], epochs=1, **options)
    taken = seconds(lambda: fit_robust(model, images, labels, epochs=1, **options))
    floor = (7 * 2 + 3) * FINE * n / rate
    print(
        f"robust training, seven steps: {taken / n * 50_000:.1f} s an epoch of 50,000 images of 32 px, "
        f"{taken / floor:.1f} times the floor (bfloat16, {rate / 1e12:.0f} TFLOP/s)",
        flush=True,
    )


def defuse(device: torch.device, n: int) -> None:
    """Q = 500 codes of each image."""
    n = 2000 if n >= 1000 else 20
    images = np.random.default_rng(0).integers(0, 256, (n, 28, 28, 1), dtype=np.uint8)
    labels = np.zeros(n, dtype=np.int64)
    vae = new_vae(fitting_architecture(28, 28, 1)).to(device)
    classifier = Classifier(network("small", px=28, outputs=10).to(device), lambda x: x.expand(-1, 3, -1, -1))
    codes = torch.randn(min(8192, 4 * n), 10, device=device)

    def decode() -> None:
        with torch.no_grad():
            for _ in range(10):
                classifier.predict(vae.decode(codes))

    with evaluating(vae), evaluating(classifier.model):
        decode()
        floor = seconds(decode) / (10 * len(codes))
    identify(vae, classifier, images[:50], labels[:50], device=device)
    taken = seconds(lambda: identify(vae, classifier, images, labels, device=device))
    print(
        f"Defuse's search: {taken / (500 * n) * 30e6:.1f} s for 30,000,000 codes, "
        f"{taken / (500 * n) / floor:.1f} times decoding and classifying alone",
        flush=True,
    )


def main() -> int:
    parts = {"robust": robust, "defuse": defuse, "influence": influence}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", choices=[*parts, []])
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--images", type=int, default=5000)
    given = parser.parse_args()
    for name in given.parts or parts:
        parts[name](torch.device(given.device), given.images)
    return 0


if __name__ == "__main__":
    sys.exit(main())
