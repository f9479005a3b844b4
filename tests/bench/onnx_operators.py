#!/usr/bin/env python3
"""Times ONNX operators here and in ONNX Runtime: graphs of one node, in turns in one run, and prints a table.

  onnx_operators.py [PATTERN] [--threads N] [--rounds N] [--seconds S] [--limit R]

The ratio is ONNX Runtime's shortest time over ours: above 1 ours is faster. Results are compared first. With
--limit the exit status is 1 if a ratio is below it. PADDLE_BIN names the folder of our tools (build/bin).
"""
import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BIN = os.environ.get("PADDLE_BIN", os.path.join(ROOT, "build", "bin"))
RNG = np.random.default_rng(0)


@dataclass
class Case:
    """A node, its inputs in order, and which of them are constants of the graph."""

    name: str
    op: str
    inputs: list
    attributes: dict = field(default_factory=dict)
    constants: tuple = ()
    outputs: int = 1
    opset: int = 21
    domain: str = ""
    tolerance: float = 1e-4


def normal(*shape):
    return RNG.standard_normal(shape, dtype=np.float32)


def integers(low, high, *shape, dtype=np.int64):
    return RNG.integers(low, high, shape).astype(dtype)


def boxes(count):
    corners = RNG.random((1, count, 2), dtype=np.float32) * 900
    return np.concatenate([corners, corners + 10 + 90 * RNG.random((1, count, 2), dtype=np.float32)], 2)


def distinct(rows, size, count):
    """In each row `count` different indices."""
    return np.stack([RNG.permutation(size)[:count] for _ in range(rows)]).astype(np.int64)


def weights_in_4_bits(features, out):
    blocks = features // 32
    packed = RNG.integers(0, 256, (out, blocks, 16)).astype(np.uint8)
    return [normal(1, features), packed, (0.01 * RNG.random((out * blocks,))).astype(np.float32)]


def window(size, **more):
    return {"kernel_shape": list(size), **more}


def cases():
    regions = np.concatenate([RNG.random((64, 2)) * 200, 250 + RNG.random((64, 2)) * 500], 1).astype(np.float32)
    images = integers(0, 2, 64)
    gru = [normal(32, 1, 128), normal(1, 384, 128) / 16, normal(1, 384, 128) / 16, normal(1, 768)]
    return [
        Case("cumsum, axis 0", "CumSum", [normal(512, 1024), np.array(0, np.int64)], constants=(1,)),
        Case("cumsum, axis 1", "CumSum", [normal(64, 128, 256), np.array(1, np.int64)], constants=(1,)),
        Case("cumsum, last axis", "CumSum", [normal(512, 1024), np.array(1, np.int64)], constants=(1,)),
        Case("max pool 9x9", "MaxPool", [normal(1, 64, 56, 56)], window((9, 9), pads=[4] * 4)),
        Case("max pool 3x3 / 2", "MaxPool", [normal(1, 64, 112, 112)],
             window((3, 3), strides=[2, 2], pads=[1] * 4)),
        Case("max pool 3x3 / 1", "MaxPool", [normal(1, 64, 56, 56)], window((3, 3), pads=[1] * 4)),
        Case("max pool 2x2x2", "MaxPool", [normal(1, 32, 16, 56, 56)], window((2, 2, 2), strides=[2] * 3)),
        Case("max pool 3x3x3", "MaxPool", [normal(1, 32, 16, 28, 28)], window((3, 3, 3), pads=[1] * 6)),
        Case("scatter_nd", "ScatterND", [normal(4096, 64), distinct(1, 4096, 1024).T, normal(1024, 64)]),
        Case("scatter_nd, elements", "ScatterND",
             [normal(512, 512), integers(0, 512, 16384, 2), normal(16384)], tolerance=np.inf),
        Case("scatter_nd, add", "ScatterND", [normal(4096, 64), integers(0, 4096, 4096, 1), normal(4096, 64)],
             {"reduction": "add"}),
        Case("nms, one class", "NonMaxSuppression",
             [boxes(1000), RNG.random((1, 1, 1000), dtype=np.float32), np.array([200]), np.array([0.5], np.float32),
              np.array([0.05], np.float32)], constants=(2, 3, 4)),
        Case("nms, 80 classes", "NonMaxSuppression",
             [boxes(1000), RNG.random((1, 80, 1000), dtype=np.float32), np.array([100]), np.array([0.5], np.float32),
              np.array([0.3], np.float32)], constants=(2, 3, 4)),
        Case("gather, axis 1", "Gather", [normal(64, 512, 64), integers(0, 512, 128)], {"axis": 1}),
        Case("gather, last axis", "Gather", [normal(1024, 512), integers(0, 512, 128)], {"axis": 1}),
        Case("gather_elements, axis 1", "GatherElements", [normal(512, 1024), integers(0, 1024, 512, 256)],
             {"axis": 1}),
        Case("gather_elements, axis 0", "GatherElements", [normal(512, 1024), integers(0, 512, 256, 1024)],
             {"axis": 0}),
        Case("cast f32 to i8", "Cast", [100 * normal(1024, 512)], {"to": TensorProto.INT8}, tolerance=np.inf),
        Case("cast f32 to u8", "Cast", [np.abs(20 * normal(1024, 512))], {"to": TensorProto.UINT8}),
        Case("cast f32 to i64", "Cast", [100 * normal(1024, 512)], {"to": TensorProto.INT64}),
        Case("cast i64 to f32", "Cast", [integers(-99, 99, 1024, 512)], {"to": TensorProto.FLOAT}),
        Case("cast f32 to bool", "Cast", [normal(1024, 512)], {"to": TensorProto.BOOL}),
        Case("roi align", "RoiAlign", [normal(2, 64, 50, 50), regions, images],
             {"output_height": 7, "output_width": 7, "sampling_ratio": 2, "spatial_scale": 1 / 16}),
        Case("where, broadcast row", "Where", [normal(1, 1024) > 0, normal(512, 1024), normal(512, 1024)]),
        Case("where, broadcast column", "Where", [normal(512, 1) > 0, normal(512, 1024), normal(1, 1024)]),
        Case("where, scalar", "Where", [normal(8, 12, 128, 128) > 0, normal(8, 12, 128, 128),
                                        np.array(-1e9, np.float32)]),
        Case("where, mask of heads", "Where", [normal(8, 1, 128, 128) > 0, normal(8, 12, 128, 128),
                                               np.array(-1e9, np.float32)]),
        Case("top-k, 50 of 32000", "TopK", [normal(8, 32000), np.array([50])], constants=(1,), outputs=2),
        Case("top-k, 5 of 1000", "TopK", [normal(64, 1000), np.array([5])], constants=(1,), outputs=2),
        Case("top-k, 300 of 8400", "TopK", [normal(1, 8400), np.array([300])], constants=(1,), outputs=2),
        Case("top-k, 1000 of 1000", "TopK", [normal(16, 1000), np.array([1000])], constants=(1,), outputs=2),
        Case("divide int32", "Div", [integers(-999, 999, 1024, 512, dtype=np.int32),
                                     integers(1, 99, 1024, 512, dtype=np.int32)]),
        Case("divide int32 by one", "Div", [integers(-999, 999, 1024, 512, dtype=np.int32), np.array(7, np.int32)]),
        Case("divide int64", "Div", [integers(-999, 999, 1024, 512), integers(1, 99, 1024, 512)]),
        Case("scatter_elements, axis 1", "ScatterElements",
             [normal(512, 1024), distinct(512, 1024, 256), normal(512, 256)], {"axis": 1}),
        Case("scatter_elements, axis 0", "ScatterElements",
             [normal(512, 1024), distinct(1024, 512, 256).T.copy(), normal(256, 1024)], {"axis": 0}),
        Case("pad, reflect", "Pad", [normal(4, 64, 56, 56), np.array([0, 0, 1, 1, 0, 0, 1, 1])], {"mode": "reflect"},
             constants=(1,)),
        Case("pad, reflect by 3", "Pad", [normal(1, 3, 256, 256), np.array([0, 0, 3, 3, 0, 0, 3, 3])],
             {"mode": "reflect"}, constants=(1,)),
        Case("pad, edge", "Pad", [normal(4, 64, 56, 56), np.array([0, 0, 1, 1, 0, 0, 1, 1])], {"mode": "edge"},
             constants=(1,)),
        Case("pad, constant", "Pad", [normal(4, 64, 56, 56), np.array([0, 0, 1, 1, 0, 0, 1, 1])], constants=(1,)),
        Case("softmax of 1023", "Softmax", [normal(512, 1023)]),
        Case("softmax of 197", "Softmax", [normal(12, 197, 197)]),
        Case("softmax of 49", "Softmax", [normal(256, 12, 49)]),
        Case("log-softmax of 1023", "LogSoftmax", [normal(512, 1023)]),
        Case("log-softmax of 49", "LogSoftmax", [normal(256, 12, 49)]),
        Case("softmax, axis 1", "Softmax", [normal(8, 21, 64, 64)], {"axis": 1}),
        Case("nonzero, half", "NonZero", [normal(512, 512) > 0]),
        Case("nonzero, few", "NonZero", [normal(512, 512) > 2]),
        Case("nonzero of floats", "NonZero", [normal(512, 512) * (normal(512, 512) > 0)]),
        Case("tril", "Trilu", [normal(64, 128, 128)], {"upper": 0}),
        Case("triu", "Trilu", [normal(1, 1024, 1024)], {"upper": 1}),
        Case("conv1d, 128 taps, 16 groups", "Conv", [normal(1, 64, 2048), normal(64, 4, 128) / 16],
             window((128,), group=16, pads=[64, 63]), constants=(1,), tolerance=1e-3),
        Case("depthwise 7x7", "Conv", [normal(1, 96, 56, 56), normal(96, 1, 7, 7)],
             window((7, 7), group=96, pads=[3] * 4), constants=(1,), tolerance=1e-3),
        Case("gru, batch 1", "GRU", gru, {"hidden_size": 128, "linear_before_reset": 1}, constants=(1, 2, 3)),
        Case("gru, batch 1, reset first", "GRU", gru, {"hidden_size": 128}, constants=(1, 2, 3)),
        Case("lstm, batch 1", "LSTM", [normal(32, 1, 128), normal(1, 512, 128) / 16, normal(1, 512, 128) / 16,
                                       normal(1, 1024)], {"hidden_size": 128}, constants=(1, 2, 3)),
        Case("4-bit weights, one row", "MatMulNBits", weights_in_4_bits(2048, 2048),
             {"K": 2048, "N": 2048, "bits": 4, "block_size": 32}, constants=(1, 2), domain="com.microsoft",
             tolerance=1e-3),
        Case("transpose 0231", "Transpose", [normal(4, 64, 56, 56)], {"perm": [0, 2, 3, 1]}),
        Case("transpose 0312", "Transpose", [normal(4, 56, 56, 64)], {"perm": [0, 3, 1, 2]}),
        Case("transpose 0213", "Transpose", [normal(8, 128, 12, 64)], {"perm": [0, 2, 1, 3]}),
        Case("argmax, axis 1", "ArgMax", [normal(1, 21, 256, 256)], {"axis": 1}),
        Case("argmax, last axis", "ArgMax", [normal(1024, 1000)], {"axis": 1}),
    ]


def model_of(case, path):
    names = [f"x{i}" for i in range(len(case.inputs))]
    outputs = [f"y{i}" for i in range(case.outputs)]
    node = helper.make_node(case.op, names, outputs, domain=case.domain, **case.attributes)
    free = [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
            for i, (n, a) in enumerate(zip(names, case.inputs)) if i not in case.constants]
    kept = [numpy_helper.from_array(a, n) for i, (n, a) in enumerate(zip(names, case.inputs)) if i in case.constants]
    graph = helper.make_graph([node], "operator", free, [onnx.ValueInfoProto(name=n) for n in outputs], kept)
    opsets = [helper.make_opsetid("", case.opset)] + [helper.make_opsetid(case.domain, 1)] * bool(case.domain)
    model = helper.make_model(graph, opset_imports=opsets, ir_version=10)
    if not case.domain:
        model = onnx.shape_inference.infer_shapes(model)
    onnx.save(model, path)
    return {n: a for i, (n, a) in enumerate(zip(names, case.inputs)) if i not in case.constants}


def session_of(path, threads):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def shortest(run, seconds):
    best, begun = float("inf"), time.perf_counter()
    while time.perf_counter() - begun < seconds:
        start = time.perf_counter()
        run()
        best = min(best, time.perf_counter() - start)
    return 1e3 * best


def ours(words):
    done = subprocess.run([os.path.join(BIN, "paddle-infer"), *words], capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError((done.stderr.strip() or "no message").splitlines()[-1])
    return done.stdout


def difference(case, session, inputs, folder, words):
    """The largest difference of results, relative to the largest magnitude."""
    expected = session.run(None, inputs)
    out = os.path.join(folder, "out.npz")
    ours([*words, "--output", out, "--quiet"])
    found = np.load(out)
    worst = 0.0
    for name, want in zip([o.name for o in session.get_outputs()], expected):
        have = found[name]
        if have.shape != want.shape:
            raise RuntimeError(f"{name} is {have.shape} here, {want.shape} there")
        if want.size and np.isfinite(case.tolerance):
            scale = max(1.0, float(np.abs(want.astype(np.float64)).max()))
            worst = max(worst, float(np.abs(have.astype(np.float64) - want.astype(np.float64)).max()) / scale)
    return worst


def measure(case, options, folder):
    path, data = os.path.join(folder, "model.onnx"), os.path.join(folder, "in.npz")
    inputs = model_of(case, path)
    np.savez(data, **inputs)
    session = session_of(path, options.threads)
    words = [path, "--input", data, "--threads", str(options.threads)]
    worst = difference(case, session, inputs, folder, words)
    if worst > case.tolerance:
        raise RuntimeError(f"results differ by {worst:.1e}")
    mine = theirs = float("inf")
    steps = 20
    for _ in range(options.rounds):
        theirs = min(theirs, shortest(lambda: session.run(None, inputs), options.seconds))
        own = json.loads(ours([*words, "--benchmark", str(steps)]).strip().splitlines()[-1])["min_ms"]
        mine = min(mine, own)
        steps = max(5, min(20000, int(1e3 * options.seconds / max(mine, 1e-3))))
    return mine, theirs


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pattern", nargs="?", default="", help="a regular expression on the names of cases")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=0.2, help="of each side in each round")
    parser.add_argument("--limit", type=float, default=0.0)
    options = parser.parse_args()
    onnxruntime.set_default_logger_severity(3)
    slow = failed = 0
    print(f"onnxruntime {onnxruntime.__version__}, {options.threads} thread(s)\n")
    print("|    ours ms |  theirs ms | ratio | operator |\n| ---------- | ---------- | ----- | --- |")
    for case in cases():
        if not re.search(options.pattern, case.name):
            continue
        with tempfile.TemporaryDirectory() as folder:
            try:
                mine, theirs = measure(case, options, folder)
            except Exception as error:
                failed += 1
                print(f"| {'':10} | {'':10} |       | {case.name}: FAILED: {str(error).splitlines()[0]} |", flush=True)
                continue
        slow += theirs / mine < options.limit
        print(f"| {mine:10.4f} | {theirs:10.4f} | {theirs / mine:5.2f} | {case.name} |", flush=True)
    if slow or failed:
        print(f"\n{slow} below {options.limit}, {failed} failed")
    return 1 if slow or failed else 0


if __name__ == "__main__":
    sys.exit(main())
