"""Makes golden.npz: 20 updates in float64 of a network over rows by key, by PyTorch.

The rows are those of nn.Embedding(sparse=True), whose gradients are sparse: SGD, Adagrad and
SparseAdam then update the rows that a batch has read and no others. PyTorch numbers the rows by the
order of the sorted keys. The network is tanh(sum of a sample's rows @ w1 + b1) @ w2 + b2 with the
mean squared error; weights are stored as [inputs, outputs]. Batches are 8 samples, in order.
"""
import os

import numpy as np
import torch

torch.set_default_dtype(torch.float64)
torch.manual_seed(5)
STEPS, BATCH, WIDTH = 20, 8, 4
keys = torch.tensor([-(2**63), -(2**62) - 1, -(2**62), -7, -1, 0, 1, 5, 2**31, 2**62 - 1, 2**62, 2**63 - 1])
numbers = torch.randint(0, len(keys), (24, 3))
numbers[:, 1] = torch.where(torch.rand(24) < 0.3, numbers[:, 0], numbers[:, 1])  # equal keys in a sample
others = torch.randint(0, len(keys), (24, 2))
y = torch.randn(24, 2)
rows = torch.randn(len(keys), WIDTH) * 0.5
weights = [torch.randn(WIDTH, 5) * 0.5, torch.randn(5) * 0.1, torch.randn(5, 2) * 0.5, torch.randn(2) * 0.1]
names = ["fc1.weight", "fc1.bias", "fc2.weight", "fc2.bias"]
out = {"ids": keys[numbers].numpy(), "others": keys[others].numpy(), "y": y.numpy(), "emb.keys": keys.numpy(), "emb.weight": rows.numpy()}
out.update({name: value.numpy() for name, value in zip(names, weights)})


def train(case, make_sparse, make_dense):
    table = torch.nn.Embedding(len(keys), WIDTH, sparse=True)
    table.weight.data.copy_(rows)
    p = [value.clone().requires_grad_() for value in weights]
    optimizers = [make_sparse([table.weight]), make_dense(p)]
    losses = []
    for step in range(STEPS):
        begin = step * BATCH % len(numbers)
        for optimizer in optimizers:
            optimizer.zero_grad()
        x = table(numbers[begin : begin + BATCH]).sum(1)
        prediction = torch.tanh(x @ p[0] + p[1]) @ p[2] + p[3]
        loss = ((prediction - y[begin : begin + BATCH]) ** 2).mean()
        loss.backward()
        losses.append(loss.item())
        for optimizer in optimizers:
            optimizer.step()
    out[f"{case}/losses"] = np.array(losses)
    out[f"{case}/emb.weight"] = table.weight.detach().numpy()
    for name, value in zip(names, p):
        out[f"{case}/{name}"] = value.detach().numpy()


optim = torch.optim
train("sgd", lambda p: optim.SGD(p, 0.1), lambda p: optim.SGD(p, 0.1))
train("adagrad", lambda p: optim.Adagrad(p, 0.1, eps=1e-10), lambda p: optim.Adagrad(p, 0.1, eps=1e-10))
train("adam", lambda p: optim.SparseAdam(p, 0.02), lambda p: optim.Adam(p, 0.02))
np.savez_compressed(os.path.join(os.path.dirname(__file__), "golden.npz"), **out)
