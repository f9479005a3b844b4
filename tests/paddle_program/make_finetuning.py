#!/usr/bin/env python3
"""Trains the program data/swin_pir with PaddlePaddle 3 from its saved weights: data/finetuning.npz has the samples, finetuning.json the loss of each step."""
import json
from pathlib import Path

import numpy as np
import paddle

FOLDER = Path(__file__).parent / "data"
random = np.random.default_rng(8)
image, label = random.normal(size=(8, 3, 16, 16)).astype("float32"), random.integers(0, 3, size=8)
net = paddle.jit.load(str(FOLDER / "swin_pir"))
net.train()
optimizer = paddle.optimizer.Momentum(0.02, 0.9, parameters=net.parameters())
losses = []
for step in range(6):
    rows = slice(step % 2 * 4, step % 2 * 4 + 4)
    loss = paddle.nn.functional.cross_entropy(net(paddle.to_tensor(image[rows])), paddle.to_tensor(label[rows]))
    loss.backward()
    optimizer.step()
    optimizer.clear_grad()
    losses.append(float(loss))
np.savez_compressed(FOLDER / "finetuning.npz", image=image, label=label)
(FOLDER / "finetuning.json").write_text(json.dumps(losses) + "\n")
