"""Influence embeddings, ours and captum's Arnoldi side by side: the same rows, layers, steps and rank.

    python benchmarks/influence.py head      the last layer: 5,000 rows, 512 features, 10 classes, P = 100, D = 50
    python benchmarks/influence.py layers    all convolutions and the last layer of a small ResNet (captum's vectorised
                                             gradients know no others): 256 pictures of 16 px, P = 100, D = 20
    python benchmarks/influence.py large [--device cuda] [--rows 5000]   ours alone: fc and the last stage of a
                                             ResNet-18, pictures of 224 px, P = 500, D = 100; time and memory
    python benchmarks/influence.py memory [--gib 4] [--rows 8]   ours alone: the last layer of a BERT-base of random
                                             weights, D = 100, as many steps as fill the basis and restart once: memory
                                             by the formula and as the system counts it

captum (pip install captum) runs with each of its batch sizes, and the best counts. `head` and `layers` exit 1 where the
ratio is below 30 and 3, or where one of the ten leading directions differs (cosine below .99).
"""

from __future__ import annotations

import argparse
import resource
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from errata import collect
from errata.core.progress import silent
from errata.inputs import HeadInfluence, fit_influence
from errata.inputs.influence.head import InfluenceOptions
from errata.train.resnet import Block, ResNet18

LEAST = {"head": 30, "layers": 3}
LEADING = 10


class SmallResNet(nn.Module):
    """Three stages of 16, 32 and 64 channels, one block each."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16), nn.ReLU())
        self.stages = nn.Sequential(Block(16, 16, 1), Block(16, 32, 2), Block(32, 64, 2))
        self.fc = nn.Linear(64, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.fc(self.stages(self.stem(x)).mean(dim=(2, 3)))


def head_problem() -> tuple[nn.Module, TensorDataset]:
    X = torch.relu(torch.randn(5000, 512))
    y = (X @ torch.randn(512, 10) * 0.1 + torch.randn(5000, 10)).argmax(dim=1)
    model = nn.Sequential(nn.Identity(), nn.Linear(512, 10))
    trained(model, X, y, steps=30)
    return model, TensorDataset(X, y)


def layers_problem() -> tuple[nn.Module, TensorDataset]:
    y = torch.randint(0, 10, (256,))
    X = torch.randn(10, 3, 16, 16)[y] + 2 * torch.randn(256, 3, 16, 16)
    model = SmallResNet()
    trained(model, X, y, steps=5)
    return model.eval(), TensorDataset(X, y)


def trained(model: nn.Module, X: torch.Tensor, y: torch.Tensor, steps: int) -> None:
    optimiser = torch.optim.LBFGS(model.parameters(), max_iter=steps)

    def closure() -> torch.Tensor:
        optimiser.zero_grad()
        loss = nn.functional.cross_entropy(model(X), y)
        torch.autograd.backward(loss)
        return loss

    optimiser.step(closure)  # type: ignore[arg-type]  # torch's annotation wants a float


def peer(
    model: nn.Module, rows: TensorDataset, layers: list[str], steps: int, rank: int, batch: int
) -> tuple[float, np.ndarray]:
    """Seconds and embeddings of captum, its sum over rows made ours, a mean."""
    from captum.influence._core.arnoldi_influence_function import ArnoldiInfluenceFunction

    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = str(Path(folder) / "model.pt")
        torch.save(model.state_dict(), path)
        began = time.perf_counter()
        found = ArnoldiInfluenceFunction(
            model,
            rows,
            path,
            _load,
            layers,
            nn.CrossEntropyLoss(reduction="sum"),
            batch,
            sample_wise_grads_per_batch=True,
            arnoldi_dim=steps + 1,
            arnoldi_tol=0.0,
            projection_dim=rank,
            hessian_reg=0.0,
            hessian_inverse_tol=1e-8,
        )
        embeddings = found.compute_intermediate_quantities(DataLoader(rows, batch_size=batch))
        seconds = time.perf_counter() - began
    return seconds, embeddings.numpy() * len(rows) ** 0.5


def _load(model: nn.Module, path: str) -> float:
    model.load_state_dict(torch.load(path, weights_only=True))
    return 1.0


def cosines(ours: np.ndarray, theirs: np.ndarray) -> np.ndarray:
    """(LEADING,) each of our first columns beside the one of theirs that is most like it."""
    a = ours[:, :LEADING] / np.linalg.norm(ours[:, :LEADING], axis=0)
    b = theirs / np.linalg.norm(theirs, axis=0)
    best: np.ndarray = np.abs(a.T @ b).max(axis=1)
    return best


def side_by_side(what: str) -> int:
    torch.manual_seed(0)
    if what == "head":
        model, rows = head_problem()
        layers = ["1"]
        steps = 100
        rank = 50
        batches = (500, 5000)
    else:
        model, rows = layers_problem()
        layers = [name for name, module in model.named_modules() if isinstance(module, nn.Conv2d | nn.Linear)]
        steps = 100
        rank = 20
        batches = (64, 256)
    times = {batch: peer(model, rows, layers, steps, rank, batch) for batch in batches}
    for batch, (seconds, _) in times.items():
        print(f"captum, batches of {batch}: {seconds:.2f} s")
    theirs = min(times.values(), key=lambda found: found[0])
    if what == "head":
        ours = [head(model, rows, steps, rank) for _ in range(3)]
    else:
        ours = [whole(model, rows, layers, steps, rank) for _ in range(3)]
    seconds, embeddings = min(ours, key=lambda found: found[0])
    close = cosines(embeddings, theirs[1])
    print(f"ours: {seconds:.3f} s; ratio {theirs[0] / seconds:.0f} (at least {LEAST[what]})")
    print(f"the ten leading directions: cosines {close.min():.4f} to {close.max():.4f}")
    return int(theirs[0] / seconds < LEAST[what] or close.min() < 0.99)


def head(model: nn.Module, rows: TensorDataset, steps: int, rank: int) -> tuple[float, np.ndarray]:
    """From cached features, as an audit has them; collecting them is printed beside it."""
    began = time.perf_counter()
    evaluation = collect(model, DataLoader(rows, batch_size=1000), progress=silent)
    collected = time.perf_counter()
    embeddings = HeadInfluence.fit(evaluation, InfluenceOptions(steps=steps, rank=rank)).transform(evaluation)
    seconds = time.perf_counter() - collected
    print(f"ours: collecting {collected - began:.3f} s, then {seconds:.3f} s")
    return seconds, embeddings


def whole(model: nn.Module, rows: TensorDataset, layers: list[str], steps: int, rank: int) -> tuple[float, np.ndarray]:
    began = time.perf_counter()
    loader = DataLoader(rows, batch_size=64)
    fitted: Any = fit_influence(model, loader, layers=layers, steps=steps, rank=rank, progress=silent)
    embeddings = fitted.transform(model, loader, progress=silent)
    return time.perf_counter() - began, embeddings


def large(device: str, n: int, px: int) -> int:
    """ResNet-18 with a thousand classes on noise: times do not depend on what is in the pictures."""
    torch.manual_seed(0)
    model = ResNet18(outputs=1000, px=px).to(device)
    batches = [(torch.randn(250, 3, px, px), torch.randint(0, 1000, (250,))) for _ in range(n // 250)]
    began = time.perf_counter()
    options = {"layers": ["fc", "stages.3"], "device": device, "memory": 60 << 30}
    fitted: Any = fit_influence(model, batches, **options, progress=silent)
    middle = time.perf_counter()
    embeddings = fitted.transform(model, batches, device=device, progress=silent)
    end = time.perf_counter()
    print(f"{fitted.directions.shape[1]:,} parameters, {n} pictures of {px} px, P = 500, D = {embeddings.shape[1]}")
    print(f"factor {middle - began:.1f} s, embeddings {end - middle:.1f} s")
    if device.startswith("cuda"):
        print(f"most memory on the device: {torch.cuda.max_memory_allocated() / 2**30:.1f} GiB")
    print(f"most memory of the process: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.1f} GiB")
    return 0


def resident() -> float:
    """GiB of the process now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 2**30


def most_resident() -> float:
    """GiB of the process at its largest so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def memory(n: int, gib: float, rank: int) -> int:
    """A restart needs as much as any later one, so the products of P = 500 are not waited for."""
    from transformers import BertConfig, BertForSequenceClassification

    torch.manual_seed(0)
    model = BertForSequenceClassification(BertConfig(num_labels=4, attn_implementation="eager")).eval()
    words = torch.randint(0, model.config.vocab_size, (n, 16))
    batches = [{"input_ids": words, "labels": torch.randint(0, 4, (n,))}]
    layers = ["bert.encoder.layer.11", "classifier"]
    named = dict(model.named_modules())
    weights = sum(parameter.numel() for name in layers for parameter in named[name].parameters())
    basis = int(gib * 2**30)
    held = InfluenceOptions(rank=rank, basis=basis).vectors(weights)
    formula = 4 * weights * held["most"] / 2**30
    print(f"{weights:,} weights, D = {rank}, {held['most']} vectors held: {formula:.2f} GiB by the formula", flush=True)
    before = resident()
    began = time.perf_counter()
    options = {"layers": layers, "rank": rank, "steps": held["most"] + 5, "basis": basis}
    fitted: Any = fit_influence(model, batches, **options, progress=silent)
    fit_peak = most_resident()
    print(f"before {before:.2f} GiB, most while fitting {fit_peak:.2f}: {fit_peak - before:.2f} for it", flush=True)
    print(f"after fitting {resident():.2f} GiB; {time.perf_counter() - began:.0f} s", flush=True)
    fitted.transform(model, batches, progress=silent)
    print(f"most while embedding {n} rows {most_resident():.2f} GiB: {most_resident() - before:.2f} for it")
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("head", "layers", "large", "memory"))
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--rows", type=int, help="Default: 5,000; 8 for `memory`")
    parser.add_argument("--px", type=int, default=224)
    parser.add_argument("--gib", type=float, default=4.0, help="of the basis")
    parser.add_argument("--rank", type=int, default=100)
    given = parser.parse_args()
    if given.what == "large":
        return large(given.device, given.rows or 5000, given.px)
    if given.what == "memory":
        return memory(given.rows or 8, given.gib, given.rank)
    return side_by_side(given.what)


if __name__ == "__main__":
    sys.exit(main())
