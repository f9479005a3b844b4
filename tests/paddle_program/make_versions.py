#!/usr/bin/env python3
"""Makes programs of data that only one version of PaddlePaddle writes, with its results.

  VENV_OF_2.6.2/bin/python make_versions.py     before3_program: meanings that PaddlePaddle 3 changed
  VENV_OF_3.3.1/bin/python make_versions.py     since33_pir: operations that earlier versions have not
"""
from pathlib import Path

import numpy as np
import paddle
from paddle import nn
from paddle.nn import functional as F

from make_models import without_lines

FOLDER = Path(__file__).parent / "data"
random = np.random.default_rng(6)
IS_OLD = paddle.__version__.startswith("2.")


class Before3(nn.Layer):
    def forward(self, x, y):
        backwards = [paddle.strided_slice(x, [1], [2], [end], [-1]) for end in (-2, -5)]
        weight = paddle.to_tensor(np.arange(1, 5, dtype="float32"))
        return [*backwards, F.binary_cross_entropy_with_logits(x, F.sigmoid(y), reduction="none", pos_weight=weight)]


class Since33(nn.Layer):
    def forward(self, x, square):
        ops, scale, bias = paddle._C_ops, x[0] * 2, x[1]
        normed = paddle.incubate.nn.functional.fused_rms_norm(x, scale, None, 1e-6, 1)[0]
        return [normed, ops.std(x, [1], False, True, 1.0), ops.var(x, [0], True, True, 0.0),
                *ops.slogdet_v2(square), ops.nansum(paddle.log(x), [1], paddle.float32, False), ops.linear_v2(x, square[0], bias[:4], False),
                ops.trunc_divide(x * 5, x[:1])]


def main():
    name, net, inputs = (("before3_program", Before3(), [(3, 4), (3, 4)]) if IS_OLD else ("since33_pir", Since33(), [(3, 4), (2, 4, 4)]))
    given = {f"in{i}": random.normal(size=shape).astype("float32") for i, shape in enumerate(inputs)}
    net.eval()
    specs = [paddle.static.InputSpec(list(value.shape), "float32", key) for key, value in given.items()]
    path = FOLDER / name
    paddle.jit.save(paddle.jit.to_static(net, full_graph=True, input_spec=specs), str(path))
    for extra in (".pdiparams", ".pdiparams.info"):
        path.with_suffix(extra).unlink(missing_ok=True)
    paddle.enable_static()
    if IS_OLD:
        without_lines(path.with_suffix(".pdmodel"))
    executor = paddle.static.Executor(paddle.CPUPlace())
    program, feeds, fetched = paddle.static.load_inference_model(str(path), executor)
    made = executor.run(program, feed={key: given[key] for key in feeds}, fetch_list=fetched, return_numpy=False)
    np.savez_compressed(FOLDER / f"{name}.npz", **given, **{f"out{i}": np.array(value) for i, value in enumerate(made)})


main()
