"""Makes golden.npz: averaged weights with batch norms by PyTorch's torch.optim.swa_utils.

Needs PyTorch. The network has a batch norm of its own and one that is called twice; the weights
after updates 6, 10, 14, … of 30 are averaged, then update_bn computes the running statistics from
all batches. Schedule-free AdamW, written down here, evaluates averages too: update_bn goes with
them, as its authors advise. PyTorch keeps unbiased variances, ours are biased: with batches of one size the two
differ by a factor. Weights of linear layers are stored as [inputs, outputs].
"""
import os

import numpy as np
import torch
from torch.optim.swa_utils import AveragedModel, update_bn

torch.set_default_dtype(torch.float64)
torch.manual_seed(5)
BATCH, STEPS, START, EVERY, RATE = 16, 30, 6, 4, 0.1
x = torch.randn(64, 5) * torch.tensor([1.0, 2.0, 0.5, 3.0, 1.0]) + torch.tensor([0.0, 1.0, -2.0, 0.5, 3.0])
y = torch.randn(64, 3)


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = torch.nn.Linear(5, 8)
        self.norm = torch.nn.BatchNorm1d(8)
        self.shared = torch.nn.BatchNorm1d(8)
        self.fc2 = torch.nn.Linear(8, 3)

    def forward(self, x):
        h = torch.tanh(self.norm(self.fc1(x)))
        h = self.shared(h)
        h = h + torch.tanh(self.shared(h * h))
        return self.fc2(h)


def stored(model, size):
    out = {}
    for name, value in model.state_dict().items():
        if name.endswith("num_batches_tracked"):
            continue
        if value.ndim == 2:
            value = value.T
        if name.endswith("running_var"):
            value = value * (size - 1) / size
        out[name] = value.detach().numpy().copy()
    return out


def train(parts):
    model = Net()
    model.load_state_dict(initial)
    averaged = AveragedModel(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=RATE)
    model.train()
    for step in range(1, STEPS + 1):
        first = (step - 1) * BATCH % len(x)
        optimizer.zero_grad()
        for rows in torch.arange(first, first + BATCH).chunk(parts):
            (((model(x[rows]) - y[rows]) ** 2).mean() / parts).backward()
        optimizer.step()
        if step >= START and (step - START) % EVERY == 0:
            averaged.update_parameters(model)
    size = BATCH // parts
    update_bn(x.split(size), averaged)
    return stored(averaged.module, size)


class ScheduleFree:
    """Defazio et al., The Road Less Scheduled: the parameters are y, between z and the average x."""

    def __init__(self, parameters, lr=0.01, b1=0.9, b2=0.999, eps=1e-8):
        self.parameters, self.t, self.sum = list(parameters), 0, 0.0
        self.x = [p.detach().clone() for p in self.parameters]
        self.z = [p.detach().clone() for p in self.parameters]
        self.v = [torch.zeros_like(p) for p in self.parameters]
        self.options = lr, b1, b2, eps

    @torch.no_grad()
    def step(self):
        lr, b1, b2, eps = self.options
        self.t += 1
        self.sum += lr**2
        for p, x, z, v in zip(self.parameters, self.x, self.z, self.v):
            v.mul_(b2).add_((1 - b2) * p.grad**2)
            z.sub_(lr * p.grad / ((v / (1 - b2**self.t)).sqrt() + eps))
            x.lerp_(z, lr**2 / self.sum)
            p.copy_(z.lerp(x, b1))


def train_schedule_free():
    model = Net()
    model.load_state_dict(initial)
    optimizer = ScheduleFree(model.parameters())
    for step in range(1, STEPS + 1):
        first = (step - 1) * BATCH % len(x)
        model.zero_grad()
        ((model(x[first : first + BATCH]) - y[first : first + BATCH]) ** 2).mean().backward()
        optimizer.step()
    with torch.no_grad():
        for p, average in zip(model.parameters(), optimizer.x):
            p.copy_(average)
    update_bn(x.split(BATCH), model)
    return stored(model, BATCH)


initial = {name: value.clone() for name, value in Net().state_dict().items()}
first = Net()
first.load_state_dict(initial)
out = {"x": x.numpy(), "y": y.numpy()}
for name, value in stored(first, 2).items():
    if "running" not in name:
        out[name] = value
for case, parts in (("whole", 1), ("parts", 2)):
    for name, value in train(parts).items():
        out[f"{case}/{name}"] = value
for name, value in train_schedule_free().items():
    out[f"free/{name}"] = value
np.savez(os.path.join(os.path.dirname(os.path.abspath(__file__)), "golden.npz"), **out)
