#!/usr/bin/env python3
"""Makes training programs with PaddlePaddle: data/training_pir.* (3.x) or data/training_program.* (2.6), by version.

The network has batch normalization and dropout, the optimizer weight decay, clipping and a schedule.
training_FORM.npz has a batch, training_FORM_out.npz PaddlePaddle's loss and logits for it in inference mode.
"""
import pickle
from pathlib import Path

import numpy as np
import paddle
from paddle import nn
from paddle.nn import functional as F

FOLDER = Path(__file__).parent / "data"


def layers():
    return [nn.Linear(6, 8), nn.BatchNorm1D(8), nn.Dropout(0.4), nn.Linear(8, 3)]


def compute(parts, x, y):
    first, norm, dropout, last = parts
    logits = last(dropout(paddle.tanh(norm(first(x)))))
    # The gradient of a square root reads its result, the loss.
    return paddle.sqrt(paddle.mean(paddle.square(F.cross_entropy(logits, y, reduction="none")))), logits


def main():
    form = "pir" if paddle.__version__ >= "3" else "program"
    random = np.random.default_rng(3)
    batch = {"x": random.normal(size=(12, 6)).astype("float32"), "y": random.integers(0, 3, size=(12, 1))}
    paddle.enable_static()
    paddle.seed(5)
    program, start = paddle.static.Program(), paddle.static.Program()
    with paddle.static.program_guard(program, start):
        x, y = paddle.static.data("x", [None, 6], "float32"), paddle.static.data("y", [None, 1], "int64")
        static = layers()
        loss, _ = compute(static, x, y)
        schedule, clip = paddle.optimizer.lr.StepDecay(0.05, 2), nn.ClipGradByGlobalNorm(1.0)
        paddle.optimizer.Momentum(schedule, 0.9, weight_decay=0.01, grad_clip=clip).minimize(loss)
    executor = paddle.static.Executor()
    executor.run(start)
    for _ in range(3):
        executor.run(program, feed=batch, fetch_list=[loss])
    if form == "program":
        for block in program.blocks:
            for operation in block.ops:
                operation._remove_attr("op_callstack")
    paddle.static.save(program, str(FOLDER / f"training_{form}"))
    (FOLDER / f"training_{form}.pdopt").unlink()
    names = [[value.name for value in part.state_dict().values()] for part in static]

    paddle.disable_static()
    with open(FOLDER / f"training_{form}.pdparams", "rb") as file:
        values = pickle.load(file)
    dynamic = layers()
    for part, variables in zip(dynamic, names):
        part.eval()
        part.set_state_dict({key: values[name] for key, name in zip(part.state_dict(), variables)})
    loss, logits = compute(dynamic, paddle.to_tensor(batch["x"]), paddle.to_tensor(batch["y"]))
    np.savez_compressed(FOLDER / f"training_{form}.npz", **batch)
    np.savez_compressed(FOLDER / f"training_{form}_out.npz", loss=loss.numpy(), logits=logits.numpy())


main()
