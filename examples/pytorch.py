"""Audit a PyTorch classifier: the penultimate layer is found by itself, the model is left as it was."""

import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import errata

torch.manual_seed(0)
corner = torch.rand(6000) < 0.06  # inputs of a kind that the training rows hardly have
x = torch.randn(6000, 10) + 4 * corner[:, None]
y = ((x[:, 0] > x[:, 1]) ^ corner).long()  # and that follow another rule
train = torch.arange(6000) < 2000
keep = train & ~corner

model = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 2))
adam = torch.optim.Adam(model.parameters(), lr=1e-2)
for _ in range(200):
    adam.zero_grad()
    nn.functional.cross_entropy(model(x[keep]), y[keep]).backward()
    adam.step()

evaluation = errata.collect(model, DataLoader(TensorDataset(x[~train], y[~train]), batch_size=256))
audit = errata.audit(evaluation, methods=["spotlight"], options={"spotlight": {"size": 0.05}})
first = audit.confirmed[0]
inside = first.members & ~audit.discover
sys.stdout.write(
    f"{first.confirm.errors} of {first.confirm.n} held-out rows are wrong; "
    f"{corner[~train].numpy()[inside].mean():.0%} of them are of the rare kind\n"
)
