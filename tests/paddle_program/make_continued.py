#!/usr/bin/env python3
"""Trains a linear layer with optimizers of PaddlePaddle 3: data/continued/OPTIMIZER.pdparams and .pdopt after 5 updates.

continued.npz has the batch; continued.json the losses of the next 4 updates of each, and the weights after them.
"""
import json
from pathlib import Path

import numpy as np
import paddle
from paddle import optimizer as optimizers
from paddle.optimizer import lr

FOLDER = Path(__file__).parent / "data"
random = np.random.default_rng(2)
x, y = random.normal(size=(8, 4)).astype("float32"), random.normal(size=(8, 3)).astype("float32")
make = {
    "adam": lambda p: optimizers.Adam(lr.ExponentialDecay(0.05, 0.9), parameters=p),
    "adamw": lambda p: optimizers.AdamW(lr.StepDecay(0.05, 3, 0.5), weight_decay=0.1, parameters=p),
    "adamax": lambda p: optimizers.Adamax(0.05, parameters=p),
    "momentum": lambda p: optimizers.Momentum(lr.ExponentialDecay(0.05, 0.9), 0.9, parameters=p),
    "adagrad": lambda p: optimizers.Adagrad(0.1, parameters=p),
    "adadelta": lambda p: optimizers.Adadelta(1.0, parameters=p),
    "rmsprop": lambda p: optimizers.RMSProp(0.02, momentum=0.5, centered=True, parameters=p),
    "lamb": lambda p: optimizers.Lamb(0.02, lamb_weight_decay=0.01, parameters=p),
    "nadam": lambda p: optimizers.NAdam(0.02, parameters=p),
    "radam": lambda p: optimizers.RAdam(0.02, parameters=p),
    "rprop": lambda p: optimizers.Rprop(0.02, learning_rate_range=(1e-6, 50), parameters=p),
    "sgd": lambda p: optimizers.SGD(lr.ExponentialDecay(0.05, 0.9), parameters=p),
}
(FOLDER / "continued").mkdir(exist_ok=True)
wanted = {}
for name, of in make.items():
    paddle.seed(1)
    net = paddle.nn.Linear(4, 3)
    optimizer = of(net.parameters())
    schedule = optimizer._learning_rate if isinstance(optimizer._learning_rate, lr.LRScheduler) else None
    losses = []
    for update in range(9):
        if update == 5:
            paddle.save(net.state_dict(), str(FOLDER / "continued" / f"{name}.pdparams"))
            paddle.save(optimizer.state_dict(), str(FOLDER / "continued" / f"{name}.pdopt"))
        loss = paddle.mean(paddle.square(net(paddle.to_tensor(x)) - paddle.to_tensor(y)))
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        if schedule:
            schedule.step()
        if update >= 5:
            losses.append(float(loss))
    weights = {key: [float(f"{v:.7g}") for v in value.numpy().ravel()] for key, value in net.state_dict().items()}
    wanted[name] = {"losses": losses, "weights": weights}
np.savez_compressed(FOLDER / "continued.npz", x=x, y=y)
(FOLDER / "continued.json").write_text(json.dumps(wanted) + "\n")
