#!/usr/bin/env python3
"""Makes the programs of data with PaddlePaddle 3: small nets in both forms, with inputs and outputs.

  make_programs.py                   (runs itself once for each form)
"""
import os
import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).parent / "data"


def nets():
    import paddle
    from paddle import nn
    from paddle.nn import functional as F

    def program_op(type, inputs, made="float32", **attributes):
        """An operation of a program in protobuf, for functions of PaddlePaddle 3 that only take PIR's values."""
        helper = paddle.base.layer_helper.LayerHelper(type)
        out = helper.create_variable_for_type_inference(made)
        helper.append_op(type=type, inputs=inputs, outputs={"Out": out}, attrs=attributes)
        return out

    def in_protobuf():
        return not paddle.in_dynamic_mode() and os.environ["FLAGS_enable_pir_api"] == "0"

    def product(x, y, transpose_y=False):
        if in_protobuf():
            return program_op("matmul_v2", {"X": x, "Y": y}, trans_x=False, trans_y=transpose_y)
        return paddle.matmul(x, y, transpose_y=transpose_y)

    def unary(type, x, function):
        return program_op(type, {"X": x}) if in_protobuf() else function(x)

    def best_of(x):
        if in_protobuf():
            return program_op("arg_max", {"X": x}, "int64", axis=-1, keepdims=False, flatten=False, dtype=3)
        return x.argmax(axis=-1)

    def row_sum(x):
        if in_protobuf():
            return program_op("reduce_sum", {"X": x}, dim=[1], keep_dim=True, reduce_all=False, in_dtype=-1, out_dtype=-1)
        return x.sum(axis=1, keepdim=True)

    def gelu(x):
        return program_op("gelu", {"X": x}, approximate=False) if in_protobuf() else F.gelu(x)

    class Pictures(nn.Layer):
        """Convolutions, normalization, pooling, resizing and padding."""

        def __init__(self):
            super().__init__()
            self.first, self.norm = nn.Conv2D(3, 4, 3, stride=2, padding=1), nn.BatchNorm2D(4)
            self.depthwise = nn.Conv2D(4, 4, 3, padding=[1, 0], groups=4, bias_attr=False)
            self.pool, self.average = nn.MaxPool2D(2, 2), nn.AvgPool2D(3, 1, padding=1)
            self.up, self.groups = nn.Conv2DTranspose(4, 4, 2, stride=2), nn.GroupNorm(2, 4)
            self.slope, self.one = nn.PReLU(4), nn.AdaptiveAvgPool2D(1)
            self.drop, self.head = nn.Dropout(0.5), nn.Linear(4, 5)

        def forward(self, x):
            x = F.relu(self.norm(self.first(x)))
            x = F.hardswish(self.depthwise(F.pad(x, [1, 1, 0, 0]))) + x
            x = self.average(self.pool(x))
            x = F.leaky_relu(self.groups(self.up(x)))
            y = F.interpolate(x, scale_factor=2, mode="nearest")
            y = F.interpolate(y, size=[5, 7], mode="bilinear")
            x = F.relu6(x) * F.hardsigmoid(x)
            x = paddle.concat([x, F.swish(x)], axis=1)[:, 2:6]
            x = self.one(self.slope(x)) + self.one(y)
            return F.softmax(self.head(self.drop(paddle.flatten(x, 1))), axis=-1)

    class Words(nn.Layer):
        """Attention over an embedding, shapes from values, reductions and indices."""

        def __init__(self):
            super().__init__()
            self.words, self.norm = nn.Embedding(20, 8, padding_idx=0), nn.LayerNorm(8)
            self.qkv, self.out, self.head = nn.Linear(8, 24), nn.Linear(8, 8), nn.Linear(8, 3)

        def forward(self, tokens, mask):
            x = self.words(tokens)
            batch, length = paddle.shape(x)[0], paddle.shape(x)[1]
            parts = self.qkv(self.norm(x)).split(3, axis=-1)
            q, k, v = [p.reshape([batch, length, 2, 4]).transpose([0, 2, 1, 3]) for p in parts]
            scores = product(q, k, transpose_y=True) * 0.5
            scores = scores + ((1.0 - mask.cast("float32")) * -1e4).unsqueeze([1, 2])
            y = product(F.softmax(scores), v).transpose([0, 2, 1, 3]).reshape([0, 0, 8])
            x = unary("tanh", paddle.mean(gelu(x + self.out(y)), axis=1), paddle.tanh)
            logits = self.head(x)
            best, places = paddle.topk(logits, 2)
            squares = row_sum(paddle.square(logits - paddle.max(logits)))
            return logits, best_of(logits), paddle.clip(unary("exp", logits, paddle.exp), 0.1, 2.0), best, places, squares

    class Steps(nn.Layer):
        """Recurrent layers."""

        def __init__(self):
            super().__init__()
            self.lstm, self.gru, self.head = nn.LSTM(4, 3, 2, direction="bidirect"), nn.GRU(6, 3), nn.Linear(3, 2)

        def forward(self, x):
            y, (h, c) = self.lstm(x)
            y, last = self.gru(y)
            return self.head(y[:, -1]), h, c, last

    spec = paddle.static.InputSpec
    return [("pictures", Pictures, [spec([None, 3, 12, 12], "float32", "image")]),
            ("words", Words, [spec([None, None], "int64", "tokens"), spec([None, None], "int64", "mask")]),
            ("steps", Steps, [spec([None, 5, 4], "float32", "x")])]


def values_of(spec, random):
    shape = [{0: 2}.get(i, 5) if d in (None, -1) else d for i, d in enumerate(spec.shape)]
    if spec.name == "mask":
        return (random.uniform(size=shape) < 0.8).astype("int64") | (random.permutation(shape[1]) == 0)
    if spec.name == "tokens":
        return random.integers(0, 20, size=shape)
    return random.normal(size=shape).astype("float32")


def make(form):
    import numpy as np
    import paddle

    for name, net, specs in nets():
        paddle.seed(3)
        random = np.random.default_rng(5)
        net = net()
        net.eval()
        if name == "pictures":
            net.norm._mean.set_value(random.normal(size=4).astype("float32"))
            net.norm._variance.set_value(random.uniform(0.5, 2, size=4).astype("float32"))
        inputs = [values_of(s, random) for s in specs]
        outputs = net(*[paddle.to_tensor(i) for i in inputs])
        outputs = outputs if isinstance(outputs, (list, tuple)) else [outputs]
        path = FOLDER / (f"{name}_{form}")
        if form == "pir":
            paddle.jit.save(net, str(path), input_spec=specs)
            np.savez(FOLDER / f"{name}.npz", **{f"in{i}": v for i, v in enumerate(inputs)}, **{f"out{i}": v.numpy() for i, v in enumerate(outputs)})
            continue
        paddle.enable_static()
        program, start = paddle.static.Program(), paddle.static.Program()
        with paddle.utils.unique_name.guard(), paddle.static.program_guard(program, start):
            feeds = [paddle.static.data(s.name, s.shape, s.dtype) for s in specs]
            paddle.disable_static()
            weights = [p.numpy() for p in net.parameters()] + [b.numpy() for b in net.buffers()]
            paddle.enable_static()
            fresh = type(net)()
            fresh.eval()
            fetched = fresh(*feeds)
            fetched = list(fetched) if isinstance(fetched, (list, tuple)) else [fetched]
            executor = paddle.static.Executor(paddle.CPUPlace())
            executor.run(start)
            for variable, value in zip(list(fresh.parameters()) + list(fresh.buffers()), weights):
                paddle.static.global_scope().find_var(variable.name).get_tensor().set(value, paddle.CPUPlace())
            program = program.clone(for_test=True)
            paddle.static.save_inference_model(str(path), feeds, fetched, executor, program=program)
        saved = FOLDER / f"{name}_{form}.pdmodel"
        stripped = paddle.static.deserialize_program(saved.read_bytes())
        for op in stripped.global_block().ops:
            op.desc.remove_attr("op_callstack")  # paths of the machine
        saved.write_bytes(stripped.desc.serialize_to_string())
        paddle.disable_static()


def main():
    FOLDER.mkdir(parents=True, exist_ok=True)
    if len(sys.argv) > 1:
        return make(sys.argv[1])
    for form, pir in (("pir", "1"), ("program", "0")):
        subprocess.run([sys.executable, __file__, form], check=True, env={**os.environ, "FLAGS_enable_pir_api": pir})


main()
