"""Trains the same nets from the same weights on the same batches here and in PyTorch, and compares
the losses step by step. Called by scripts/parity; needs torch, numpy, safetensors and onnx.

  parity.py BIN [NET…]    BIN: folder of paddle-train; nets: lenet char_gpt lstm deepfm resnet18 onnx,
                           and mixed precision: lenet_mixed char_gpt_mixed
"""
import json
import math
import os
import subprocess
import sys
import tempfile

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from safetensors.numpy import save_file

sys.dont_write_bytecode = True  # no caches in the source tree
from torch_nets import DeepFM, GPT, LSTM, LeNet, SparseAdam, token_loss

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
STEPS = 20


def ours(binary, config, weights, arrays, extra=()):
    """Losses of a run of paddle-train on the arrays, batch by batch in order."""
    with tempfile.TemporaryDirectory() as folder:
        np.savez(os.path.join(folder, "data.npz"), **arrays)
        text = config.replace("DATA", os.path.join(folder, "data.npz")).replace("ROOT", ROOT)
        path = os.path.join(folder, "config.yaml")
        with open(path, "w") as f:
            f.write(text)
        command = [os.path.join(binary, "paddle-train"), path, "--output", os.path.join(folder, "run"), *extra]
        if weights is not None:
            save_file({k: np.ascontiguousarray(v) for k, v in weights.items()}, os.path.join(folder, "w.safetensors"))
            command += ["--init", os.path.join(folder, "w.safetensors")]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            raise SystemExit(f"paddle-train failed: {done.stderr.strip()}")
        with open(os.path.join(folder, "run", "metrics.jsonl")) as f:
            lines = [json.loads(line) for line in f]
        return [line["loss"] for line in lines if line["kind"] == "train"]


TAIL = """
data: {batch_size: BATCH, shuffle: false, train: {kind: npz, path: DATA}}
train: {steps: STEPS, log_every: 1, checkpoint_every: never}
""".replace("STEPS", str(STEPS))


def train(model, loss_of, optimizer, batches, low=None):
    losses = []
    scaler = torch.amp.GradScaler("cpu", enabled=low is torch.float16)
    for batch in batches:
        optimizer.zero_grad()
        with torch.autocast("cpu", low or torch.bfloat16, enabled=low is not None):
            loss = loss_of(model, *batch)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        losses.append(loss.item())
    return losses


def mixed(net):
    """The net in both 16-bit types at both levels, against torch.autocast."""
    def run(binary, rng):
        for low in (torch.bfloat16, torch.float16):
            for level in ("O1", "O2"):
                torch.manual_seed(0)
                name = str(low).split(".")[1]
                mine, theirs, _, steps = net(binary, np.random.default_rng(0), low,
                                             (f"precision={name}", f"amp.level={level}"))
                report(f"{net.__name__} in {name} at {level}", mine, theirs, 2e-2, steps)
    return run


def numpy_of(tensor):
    return tensor.detach().numpy().copy()


def lenet(binary, rng, low=None, extra=()):
    model = LeNet(kernel=5, padding=2, activations=True)
    weights = model.weights()
    x = rng.standard_normal((STEPS * 64, 1, 28, 28)).astype(np.float32)
    y = rng.integers(0, 10, STEPS * 64)
    config = """
model: ROOT/models/lenet.yaml
loss: cross_entropy(logits, label)
optimizer: {name: adam, lr: 1e-3}
""" + TAIL.replace("BATCH", "64")
    batches = [(torch.from_numpy(x[i * 64:i * 64 + 64]), torch.from_numpy(y[i * 64:i * 64 + 64])) for i in range(STEPS)]
    theirs = train(model, lambda m, a, b: F.cross_entropy(m(a), b), torch.optim.Adam(model.parameters(), 1e-3), batches, low)
    return ours(binary, config, weights, {"image": x, "label": y}, extra), theirs, 1e-4, STEPS


def char_gpt(binary, rng, low=None, extra=()):
    model = GPT()
    weights = model.weights()
    tokens = rng.integers(0, 65, (STEPS * 12, 65))
    x, y = tokens[:, :-1].copy(), tokens[:, 1:].copy()
    config = """
model: ROOT/models/char_gpt.yaml
loss: cross_entropy(logits, targets)
optimizer: {name: adamw, lr: 1e-3, weight_decay: 0.1}
""" + TAIL.replace("BATCH", "12")
    batches = [(torch.from_numpy(x[i * 12:i * 12 + 12]), torch.from_numpy(y[i * 12:i * 12 + 12])) for i in range(STEPS)]
    theirs = train(model, lambda m, a, b: token_loss(m(a), b),
                   torch.optim.AdamW(model.parameters(), 1e-3, weight_decay=0.1), batches, low)
    return ours(binary, config, weights, {"tokens": x, "targets": y}, extra), theirs, 1e-4, STEPS


def lstm(binary, rng):
    model = LSTM()
    weights = model.weights()
    tokens = rng.integers(0, 65, (STEPS * 16, 33))
    x, y = tokens[:, :-1].copy(), tokens[:, 1:].copy()
    config = """
model: ROOT/models/char_lstm.yaml
params: {width: 64, hidden: 96, dropout: 0.0}
loss: cross_entropy(logits, targets)
optimizer: {name: adam, lr: 1e-3}
""" + TAIL.replace("BATCH", "16")
    batches = [(torch.from_numpy(x[i * 16:i * 16 + 16]), torch.from_numpy(y[i * 16:i * 16 + 16])) for i in range(STEPS)]
    theirs = train(model, lambda m, a, b: token_loss(m(a), b), torch.optim.Adam(model.parameters(), 1e-3), batches)
    return ours(binary, config, weights, {"tokens": x, "targets": y}), theirs, 1e-4, STEPS


def deepfm(binary, rng):
    model = DeepFM()
    weights = model.weights()
    n = STEPS * 64
    sparse, dense = rng.integers(0, 5000, (n, 26)), rng.standard_normal((n, 13)).astype(np.float32)
    label = rng.integers(0, 2, n).astype(np.float32)
    config = """
model: ROOT/models/deepfm.yaml
params: {rows: 5000}
loss: binary_cross_entropy_with_logits(logit, label)
optimizer: {name: adam, lr: 1e-4}
""" + TAIL.replace("BATCH", "64")
    batches = [tuple(torch.from_numpy(a[i * 64:i * 64 + 64]) for a in (sparse, dense, label)) for i in range(STEPS)]
    # A low rate: on random labels Adam turns rounding of tiny gradients into whole steps.
    theirs = train(model, lambda m, s, d, y: F.binary_cross_entropy_with_logits(m(s, d), y),
                   SparseAdam(model, 1e-4), batches)
    return ours(binary, config, weights, {"sparse": sparse, "dense": dense, "label": label}), theirs, 1e-4, STEPS


class BasicBlock(nn.Module):
    def __init__(self, inputs, mid, stride):
        super().__init__()
        conv = lambda i, o, k, s: nn.Sequential(nn.Conv2d(i, o, k, s, k // 2, bias=False), nn.BatchNorm2d(o))
        self.a, self.b = conv(inputs, mid, 3, stride), conv(mid, mid, 3, 1)
        self.short = conv(inputs, mid, 1, stride) if stride != 1 or inputs != mid else None

    def forward(self, x):
        y = self.b(F.relu(self.a(x)))
        return F.relu((self.short(x) if self.short else x) + y)


def resnet18(binary, rng):
    results = None
    for dtype, tolerance, steps in ((torch.float32, 1e-5, 1), (torch.float64, 1e-7, STEPS)):
        torch.manual_seed(0)
        stem = nn.Sequential(nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64))
        blocks, channels = [], 64
        for stage in range(4):
            for i in range(2):
                blocks.append(BasicBlock(channels, 64 * 2 ** stage, 2 if i == 0 and stage > 0 else 1))
                channels = 64 * 2 ** stage
        model = nn.ModuleDict({"stem": stem, "blocks": nn.ModuleList(blocks), "fc": nn.Linear(512, 10)}).to(dtype)
        weights = {}

        def put(path, pair):
            weights[path + ".conv2d.weight"] = numpy_of(pair[0].weight)
            for ours_name, theirs_name in (("weight", "weight"), ("bias", "bias"), ("running_mean", "running_mean"),
                                           ("running_var", "running_var")):
                weights[path + ".batch_norm." + ours_name] = numpy_of(getattr(pair[1], theirs_name))

        put("conv_bn", stem)
        for n, block in enumerate(blocks):
            path = f"basic_block.{n // 2}.{n % 2}."
            put(path + "conv_bn", block.a)
            put(path + "conv_bn_2", block.b)
            if block.short:
                put(path + "conv_bn_3", block.short)
        weights["linear.weight"], weights["linear.bias"] = numpy_of(model["fc"].weight.T), numpy_of(model["fc"].bias)
        batch = 4
        x = rng.standard_normal((STEPS * batch, 3, 64, 64)).astype(np.float32)
        y = rng.integers(0, 10, STEPS * batch)
        config = """
model: ROOT/models/resnet.yaml:resnet18
params: {classes: 10}
loss: cross_entropy(logits, label)
optimizer: {name: momentum, lr: 0.01, momentum: 0.9}
""" + TAIL.replace("BATCH", str(batch)).replace(f"steps: {STEPS}", f"steps: {steps}")

        def loss_of(m, a, b):
            h = F.max_pool2d(F.relu(m["stem"](a)), 3, 2, 1)
            for block in m["blocks"]:
                h = block(h)
            return F.cross_entropy(m["fc"](h.mean((2, 3))), b)

        batches = [(torch.from_numpy(x[i * batch:(i + 1) * batch]).to(dtype), torch.from_numpy(y[i * batch:(i + 1) * batch]))
                   for i in range(steps)]
        theirs = train(model, loss_of, torch.optim.SGD(model.parameters(), 0.01, momentum=0.9), batches)
        extra = [] if dtype == torch.float32 else ["precision=float64"]
        results = (ours(binary, config, weights, {"image": x, "label": y}, extra), theirs, tolerance, steps)
        report("resnet18 " + str(dtype).split(".")[1], *results)
    return None


class Exported(nn.Module):
    """A convolution, an encoder layer written out, and a classifier: what is exported and trained on."""

    def __init__(self):
        super().__init__()
        self.patch, self.norm1, self.norm2 = nn.Conv2d(1, 32, 7, 7), nn.LayerNorm(32), nn.LayerNorm(32)
        self.qkv, self.out = nn.Linear(32, 96), nn.Linear(32, 32)
        self.up, self.down, self.head = nn.Linear(32, 64), nn.Linear(64, 32), nn.Linear(32, 10)
        for norm in (self.norm1, self.norm2):  # the exporter merges equal weights
            nn.init.normal_(norm.weight, 1, 0.1), nn.init.normal_(norm.bias, 0, 0.1)

    def forward(self, image):
        x = self.patch(image).flatten(2).transpose(1, 2)
        q, k, v = (a.unflatten(2, (4, 8)).transpose(1, 2) for a in self.qkv(self.norm1(x)).chunk(3, 2))
        a = torch.softmax(q @ k.transpose(2, 3) / math.sqrt(8), -1) @ v
        x = x + self.out(a.transpose(1, 2).flatten(2))
        x = x + self.down(F.gelu(self.up(self.norm2(x))))
        return self.head(x.mean(1))


def onnx(binary, rng):
    torch.manual_seed(0)
    model = Exported()
    x = rng.standard_normal((STEPS * 16, 1, 28, 28)).astype(np.float32)
    y = rng.integers(0, 10, STEPS * 16)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "exported.onnx")
        torch.onnx.export(model, (torch.from_numpy(x[:2]),), path, dynamo=False, opset_version=16, input_names=["pixels"],
                          output_names=["logits"], dynamic_axes={"pixels": {0: "batch"}}, do_constant_folding=False)
        config = f"""
model: {{onnx: {path}, inputs: {{image: pixels}}}}
frozen: [patch.*]
loss: cross_entropy(logits, label)
optimizer: {{name: momentum, lr: 0.05, weight_decay: 0.01}}
""" + TAIL.replace("BATCH", "16")
        batches = [(torch.from_numpy(x[i * 16:i * 16 + 16]), torch.from_numpy(y[i * 16:i * 16 + 16]))
                   for i in range(STEPS)]
        model.patch.requires_grad_(False)
        theirs = train(model, lambda m, a, b: F.cross_entropy(m(a), b),
                       torch.optim.SGD([p for p in model.parameters() if p.requires_grad], 0.05, momentum=0.9,
                                       weight_decay=0.01), batches)
        return ours(binary, config, None, {"image": x, "label": y}), theirs, 1e-5, STEPS


def report(name, ours_losses, theirs, tolerance, steps):
    worst = max(abs(a - b) / max(abs(b), 1e-12) for a, b in zip(ours_losses[:steps], theirs[:steps]))
    good = len(ours_losses) >= steps and worst <= tolerance and math.isfinite(worst)
    print(f"{'ok  ' if good else 'FAIL'} {name}: {steps} losses, worst relative difference {worst:.2e} (allowed {tolerance:.0e})")
    report.failed += not good
    report.passed += good


report.failed = report.passed = 0

if __name__ == "__main__":
    binary, wanted = sys.argv[1], sys.argv[2:]
    nets = {"lenet": lenet, "char_gpt": char_gpt, "lstm": lstm, "deepfm": deepfm, "resnet18": resnet18,
            "onnx": onnx, "lenet_mixed": mixed(lenet), "char_gpt_mixed": mixed(char_gpt)}
    for name in wanted or nets:
        torch.manual_seed(0)
        result = nets[name](binary, np.random.default_rng(0))
        if result:
            report(name, *result)
    print(f"{report.passed} passed, {report.failed} failed")
    sys.exit(1 if report.failed else 0)
