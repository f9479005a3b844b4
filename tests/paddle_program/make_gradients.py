#!/usr/bin/env python3
"""Makes data/gradients_pir with PaddlePaddle 3, a program of common operations with parameters before all of them.

data/gradients.npz has the input, and gradients.json the parameters after one step of plain gradient descent
with the rate 0.5 on the mean of squares.
"""
import json
import os
from pathlib import Path

os.environ["FLAGS_enable_pir_api"] = "1"

import numpy as np
import paddle
from paddle import nn
from paddle.nn import functional as F

FOLDER = Path(__file__).parent / "data"


class Common(nn.Layer):
    def __init__(self):
        super().__init__()
        self.scale = self.create_parameter([4, 6], default_initializer=nn.initializer.Normal(1.0, 0.3))
        self.linear, self.norm, self.conv = nn.Linear(6, 6), nn.LayerNorm(6), nn.Conv2D(1, 2, 3, padding=1)
        self.attention, self.rows = nn.MultiHeadAttention(6, 2), nn.Embedding(5, 6)

    def forward(self, x):
        x = self.norm(self.linear(x * self.scale)) + self.rows(paddle.to_tensor([0, 3, 3, 1]))
        images = F.interpolate(F.avg_pool2d(F.gelu(self.conv(x[None, None])), 2, 2), [3, 5], mode="bilinear")
        steps = self.attention(x.unsqueeze(0)).squeeze(0)
        left, right = paddle.split(steps, 2, axis=1)
        parts = [
            F.softmax(x) * F.silu(x), paddle.tanh(left) * paddle.exp(right * 0.1), F.pad(x, [1, 1, 0, 2], value=0.5).cumsum(1),
            paddle.where(x > 0, x, x * x).clip(-1, 1), paddle.matmul(x, steps, transpose_y=True),
            paddle.logsumexp(x, 1, keepdim=True) - x.max(1, keepdim=True), paddle.norm(x, 2, 1), paddle.gather(x, paddle.to_tensor([2, 0])),
            paddle.stack([x[1:3, ::2], x[:2, 1::2]], 1), x.transpose([1, 0]).reshape([3, 8]).std(1), F.log_softmax(x, 0).flip([0])[:2],
            paddle.sqrt(F.softplus(x)).prod(1), F.hardswish(x).tile([1, 2])[:, 3:9], images,
        ]
        return paddle.concat([part.flatten() * (1 + i % 3) for i, part in enumerate(parts)])


def main():
    paddle.seed(4)
    net, x = Common(), np.random.default_rng(9).normal(size=(4, 6)).astype("float32")
    net.eval()
    spec = [paddle.static.InputSpec(list(x.shape), "float32", "in0")]
    paddle.jit.save(paddle.jit.to_static(net, full_graph=True, input_spec=spec), str(FOLDER / "gradients_pir"))
    loaded = paddle.jit.load(str(FOLDER / "gradients_pir"))
    loaded.train()
    loss = paddle.mean(paddle.square(loaded(paddle.to_tensor(x))))
    loss.backward()  # names of loaded parameters have one more _0
    after = {p.name.removesuffix("_0"): p.numpy().astype("float64") - 0.5 * p.grad.numpy() for p in loaded.parameters() if p.grad is not None}
    np.savez_compressed(FOLDER / "gradients.npz", in0=x)
    rounded = {name: [float(f"{v:.7g}") for v in value.ravel()] for name, value in after.items()}
    (FOLDER / "gradients.json").write_text(json.dumps({"loss": float(loss), "after": rounded}) + "\n")


main()
