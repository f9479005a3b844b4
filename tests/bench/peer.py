"""One peer's measurement in a process of its own, run by the Python that has the peer's packages.

  peer.py prepare LINE FOLDER [--onnx]     writes the weights, four batches and, on request, the ONNX model
  peer.py run LINE FOLDER PEER --steps N --threads T [--layout L] [--expected Y.npz]
      trains (or infers) as `paddle-train --benchmark` does: three steps to warm up, then N timed ones over
      four batches of host arrays in turn, every loss returned; prints one JSON line
"""
import argparse
import importlib.metadata
import json
import os
import resource
import sys
import time
import warnings

import numpy as np

sys.dont_write_bytecode = True
sys.path.insert(1, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "interop"))
import processor
from lines import LINES

BATCHES = 4
WARM_UP = 3


def torch_net(name):
    """The net of a line, seeded: every process builds the same weights."""
    import torch
    import torch_nets

    torch.manual_seed(0)
    if name == "lenet_relu":
        return torch_nets.LeNet(5, 2, True), torch_nets.NETS["lenet"]
    net = torch_nets.NETS[name]
    return net.build(), net


def prepare(line, folder, onnx):
    import torch
    from safetensors.numpy import save_file

    model, net = torch_net(line.net)
    rng = np.random.default_rng(0)
    # A net's batch is the largest that any of its lines takes.
    batches = [{key: a[:line.batch] for key, a in net.batch(rng).items()} for _ in range(BATCHES)]
    arrays = {key: np.concatenate([batch[key] for batch in batches]) for key in batches[0]}
    inputs = list(arrays)[:-1]  # the label is last
    save_file(model.weights(), os.path.join(folder, "weights.safetensors"))
    np.savez(os.path.join(folder, "data.npz"), **arrays)
    np.savez(os.path.join(folder, "input.npz"), **{key: batches[0][key] for key in inputs})
    if onnx:
        with torch.no_grad():
            torch.onnx.export(model.eval(), tuple(torch.from_numpy(batches[0][key]) for key in inputs),
                              os.path.join(folder, "model.onnx"), input_names=inputs, output_names=["logits"],
                              opset_version=17, dynamo=False)


def torch_step(line, peer, threads, layout):
    """A function of one batch's arrays that trains on it and returns the loss, or returns the outputs."""
    import torch

    torch.set_num_threads(threads)
    model, net = torch_net(line.net)
    images = layout == "channels_last"
    if images:
        model = model.to(memory_format=torch.channels_last)

    def tensor(array):
        t = torch.from_numpy(array)
        return t.contiguous(memory_format=torch.channels_last) if images and t.ndim == 4 else t

    def loss_of(*batch):
        with torch.autocast("cpu", torch.bfloat16, enabled=line.precision == "bfloat16"):
            logits = model(*batch[:-1])
        return net.loss(logits.float(), batch[-1])

    if not line.training:
        model.eval()
        forward = torch.compile(model) if peer == "compile" else model

        def infer(batch):
            with torch.inference_mode():
                return forward(*[tensor(a) for a in batch[:-1]]).numpy()
        return infer

    optimizer = net.optimizer(model)
    if peer == "compile":
        loss_of = torch.compile(loss_of)
        for part in getattr(optimizer, "each", [optimizer]):
            for group in part.param_groups if "fused" in part.defaults else []:
                group["fused"] = True

    def train(batch):
        optimizer.zero_grad()
        loss = loss_of(*[tensor(a) for a in batch])
        loss.backward()
        optimizer.step()
        return loss.item()
    return train


def paddle_step(line, folder):
    import paddle
    import paddle_nets
    from safetensors.numpy import load_file

    build, optimizer_of = paddle_nets.NETS[line.net]
    model = build()
    paddle_nets.load(model, load_file(os.path.join(folder, "weights.safetensors")))
    if not line.training:
        model.eval()

        def infer(batch):
            with paddle.no_grad():
                return model(*[paddle.to_tensor(a) for a in batch[:-1]]).numpy()
        return infer

    optimizer = optimizer_of(model.parameters())

    def train(batch):
        *inputs, label = [paddle.to_tensor(a) for a in batch]
        loss = paddle.nn.functional.cross_entropy(model(*inputs), label)
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        return loss.item()
    return train


def ort_session(path, threads):
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    # Without VNNI its default kernels let sums of two products of bytes overflow, and return wrong numbers.
    # With VNNI its sums are exact anyway, and the option would only take its fast kernels away.
    if not {"avx512_vnni", "avx_vnni"} & set(processor.flags()):
        options.add_session_config_entry("session.x64quantprecision", "1")
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def ort_step(folder, keys, threads):
    session = ort_session(os.path.join(folder, "model.onnx"), threads)
    return lambda batch: session.run(None, dict(zip(keys, batch[:-1])))[0]


def exported_step(path, inputs, threads):
    """A function that runs the file on the inputs and returns all outputs by name."""
    session = ort_session(path, threads)
    names = [output.name for output in session.get_outputs()]
    return lambda _: dict(zip(names, session.run(None, inputs)))


def greatest_difference(ours, theirs):
    """Of arrays by name, each relative to its largest magnitude."""
    differences = []
    for name, expected in ours.items():
        if expected.shape != theirs[name].shape:
            raise SystemExit(f"outputs differ in shape: {name} is {expected.shape} here, {theirs[name].shape} there")
        differences.append(float(np.abs(expected - theirs[name]).max() / np.abs(theirs[name]).max()))
    return max(differences)


def run(line, options):
    arrays = dict(np.load(os.path.join(options.folder, "input.npz" if line.exported else "data.npz")))
    batches = [[a[i * line.batch:(i + 1) * line.batch] for a in arrays.values()] for i in range(BATCHES)]
    if line.exported:
        step = exported_step(options.model, arrays, options.threads)
    elif options.peer == "paddle":
        step = paddle_step(line, options.folder)
    elif options.peer == "ort":
        step = ort_step(options.folder, list(arrays)[:-1], options.threads)
    else:
        step = torch_step(line, options.peer, options.threads, options.layout)
    times, results = [], []
    for i in range(WARM_UP + options.steps):
        begun = time.perf_counter()
        result = step(batches[i % BATCHES])
        if i >= WARM_UP:
            times.append(1e3 * (time.perf_counter() - begun))
        if line.training or i == 0:
            results.append(result)
    times.sort()
    package = {"torch": "torch", "compile": "torch", "paddle": "paddlepaddle", "ort": "onnxruntime"}[options.peer]
    out = {"median_ms": times[len(times) // 2], "min_ms": times[0],
           "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, "steps": len(times),
           "version": f"{package} {importlib.metadata.version(package)}", "layout": options.layout}
    if line.training:
        out |= {"first_loss": results[0], "last_loss": results[-1]}
    elif options.expected:
        ours = dict(np.load(options.expected))
        theirs = results[0] if line.exported else {next(iter(ours)): results[0]}
        out["difference"] = greatest_difference(ours, theirs)
    print(json.dumps(out))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("command", choices=["prepare", "run"])
    parser.add_argument("line", choices=LINES)
    parser.add_argument("folder")
    parser.add_argument("peer", nargs="?")
    parser.add_argument("--onnx", action="store_true")
    parser.add_argument("--steps", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--layout", default="contiguous")
    parser.add_argument("--expected")
    parser.add_argument("--model")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    line = LINES[options.line]
    if options.command == "prepare":
        prepare(line, options.folder, options.onnx)
    else:
        run(line, options)


if __name__ == "__main__":
    main()
