#!/usr/bin/env python3
"""Times ONNX Runtime on paddle-export's file against PyTorch's export of the same net.

Both files are made here, with random weights, and run in one process by turns, so that both see the same
machine. A ratio is the median over turns of our least time by theirs.

  export_speed.py BIN [CASE...] [--turns N] [--threads T] [--keep FOLDER]

Needs torch, torchvision, transformers, onnx, onnxscript and onnxruntime. Exit code 1 if a ratio is above 1.05.
"""
import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
import warnings

import numpy as np

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
LIMIT = 1.05
LAYERS, HEADS, WIDTH, WORDS, CONTEXT = 12, 12, 768, 50257, 1024


def gpt_model():
    """A step of GPT-2 with its cache as inputs and outputs, in the model language."""
    cache = "".join(f', {kind}{i}: "float32[batch, {HEADS}, past, {WIDTH // HEADS}]"' for i in range(LAYERS) for kind in "kv")
    body = []
    for i in range(LAYERS):
        body += [
            f"qkv = reshape(linear(layer_norm(x), {3 * WIDTH}), [batch, 1, 3, {HEADS}, {WIDTH // HEADS}])",
            "qkv = transpose(qkv, [2, 0, 3, 1, 4])",
            f"key{i} = concat([k{i}, qkv[1]], 2)",
            f"value{i} = concat([v{i}, qkv[2]], 2)",
            f"scores = matmul(qkv[0] * {(WIDTH // HEADS) ** -0.5}, key{i}, transpose_y=true)",
            f"y = matmul(softmax(scores), value{i})",
            f"x = x + linear(reshape(transpose(y, [0, 2, 1, 3]), [batch, 1, {WIDTH}]), {WIDTH})",
            f"x = x + linear(gelu(linear(layer_norm(x), {4 * WIDTH}), approximate=true), {WIDTH})",
        ]
    names = ["logits"] + [f"{kind}{i}" for i in range(LAYERS) for kind in ("key", "value")]
    return "\n".join([
        "name: gpt",
        'inputs: {tokens: "int64[batch, 1]"' + cache + "}",
        "model: |",
        f'  x = embedding(tokens, {WORDS}, {WIDTH}, name="words")',
        f'  x = x + embedding(arange(past, past + 1, 1, dtype="int64"), {CONTEXT}, {WIDTH}, name="positions")',
        *("  " + line for line in body),
        '  logits = matmul(layer_norm(x), get("words.weight"), transpose_y=true)',
        "outputs: [" + ", ".join(names) + "]",
        "",
    ])


def torch_gpt():
    import torch
    from torch import nn
    from torch.nn import functional as F

    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
            self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
            self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

        def forward(self, x, k, v):
            batch = x.shape[0]
            qkv = self.qkv(self.first(x)).reshape(batch, 1, 3, HEADS, WIDTH // HEADS).permute(2, 0, 3, 1, 4)
            k, v = torch.cat([k, qkv[1]], 2), torch.cat([v, qkv[2]], 2)
            y = F.scaled_dot_product_attention(qkv[0], k, v)
            x = x + self.out(y.transpose(1, 2).reshape(batch, 1, WIDTH))
            return x + self.down(F.gelu(self.up(self.second(x)), approximate="tanh")), k, v

    class Gpt(nn.Module):
        def __init__(self):
            super().__init__()
            self.words, self.positions = nn.Embedding(WORDS, WIDTH), nn.Embedding(CONTEXT, WIDTH)
            self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))
            self.norm = nn.LayerNorm(WIDTH)

        def forward(self, tokens, cache):
            past = cache[0].shape[2]
            x = self.words(tokens) + self.positions(torch.arange(past, past + 1))
            out = []
            for i, layer in enumerate(self.layers):
                x, k, v = layer(x, cache[2 * i], cache[2 * i + 1])
                out += [k, v]
            return (F.linear(self.norm(x), self.words.weight), *out)

    return Gpt()


def cache_of(batch, past):
    random = np.random.default_rng(1)
    return [random.normal(size=(batch, HEADS, past, WIDTH // HEADS)).astype(np.float32) for _ in range(2 * LAYERS)]


def resnet50():
    import torch
    import torchvision

    image = np.random.default_rng(0).normal(size=(2, 3, 224, 224)).astype(np.float32)
    net = torchvision.models.resnet50(weights=None)
    # As of a trained net: biases of zeros would be left out of the file.
    for module in net.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            module.bias.data.normal_(std=0.1)
            module.running_mean.data.normal_(std=0.1)
    return net, [image], ({0: "batch"},)


def bert():
    import torch
    import transformers

    config = transformers.BertConfig(attn_implementation="sdpa")

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.bert, self.head = transformers.BertModel(config, add_pooling_layer=False), torch.nn.Linear(768, 2)

        def forward(self, tokens):
            return self.head(self.bert(tokens).last_hidden_state[:, 0])

    tokens = np.random.default_rng(0).integers(0, 30000, size=(2, 128))
    return Net(), [tokens], ({0: "batch", 1: "length"},)


def gpt():
    tokens = np.array([[5], [7]])
    dims = [{0: "batch", 2: "past"} for _ in range(2 * LAYERS)]
    return torch_gpt(), [tokens, cache_of(2, 16)], ({0: "batch"}, dims)


# The net of PyTorch, the model of ours, inputs to time with and runs in a turn.
CASES = {
    "resnet50": (resnet50, "models/resnet.yaml:resnet50", lambda: [np.ones((1, 3, 224, 224), np.float32)], 10),
    "bert": (bert, "models/bert.yaml", lambda: [np.arange(128)[None]], 5),
    "gpt": (gpt, None, lambda: [np.array([[5]]), *cache_of(1, 256)], 20),
}


def torch_export(case, path):
    import torch

    net, arrays, shapes = CASES[case][0]()
    given = tuple([torch.from_numpy(each) for each in a] if isinstance(a, list) else torch.from_numpy(a) for a in arrays)
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        program = torch.onnx.export(net.eval(), given, dynamic_shapes=shapes, dynamo=True, verbose=False)
        program.save(path)


def our_export(case, path, binary, folder):
    model = CASES[case][1]
    if model is None:
        model = os.path.join(folder, case + ".yaml")
        with open(model, "w") as f:
            f.write(gpt_model())
    ran = subprocess.run([os.path.join(binary, "paddle-export"), model, "-o", path, "--no-check", "--overwrite"],
                         cwd=ROOT, capture_output=True, text=True)
    if ran.returncode:
        sys.exit(f"{case}: {ran.stderr}")


def session_of(path, threads):
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def nodes_of(path):
    import onnx

    return len(onnx.load(path, load_external_data=False).graph.node)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin")
    parser.add_argument("cases", nargs="*", choices=[*CASES, []])
    parser.add_argument("--turns", type=int, default=7)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--keep", help="a folder for the files")
    options = parser.parse_args()
    worst = 0
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.keep or scratch
        os.makedirs(folder, exist_ok=True)
        for case in options.cases or CASES:
            paths = [os.path.join(folder, f"{case}_{side}.onnx") for side in ("ours", "torch")]
            our_export(case, paths[0], os.path.abspath(options.bin), folder)
            if not (options.keep and os.path.exists(paths[1])):
                torch_export(case, paths[1])
            sessions = [session_of(path, options.threads) for path in paths]
            values, runs = CASES[case][2](), CASES[case][3]
            feeds = [{i.name: v for i, v in zip(s.get_inputs(), values)} for s in sessions]
            times = [[], []]
            for turn in range(options.turns + 1):
                for side in ((0, 1) if turn % 2 else (1, 0)):
                    least = float("inf")
                    for _ in range(runs):
                        begun = time.perf_counter()
                        sessions[side].run(None, feeds[side])
                        least = min(least, time.perf_counter() - begun)
                    if turn:
                        times[side].append(1e3 * least)
            ratio = statistics.median(a / b for a, b in zip(*times))
            worst = max(worst, ratio)
            print(f"{case}: ours {statistics.median(times[0]):.2f} ms ({nodes_of(paths[0])} nodes), torch "
                  f"{statistics.median(times[1]):.2f} ms ({nodes_of(paths[1])} nodes), ratio {ratio:.3f}", flush=True)
    return 1 if worst > LIMIT else 0


if __name__ == "__main__":
    sys.exit(main())
