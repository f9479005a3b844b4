#!/usr/bin/env python3
"""Measures programs of PaddlePaddle: ours against Paddle Inference, and against the same network as ONNX here.

Networks have random weights. Each turn runs our program, our ONNX file (made by paddle2onnx) and Paddle
Inference with oneDNN, each in a process of its own; times are the least of all turns. Needs a Python with
paddlepaddle and paddle2onnx.

  paddle_programs.py BIN [NET...] [--turns N] [--threads T] [--keep FOLDER]

`difference` is the largest one of our outputs and PaddlePaddle's, relative to the largest output. Exit code 1
if a net is slower than 1.3 times Paddle Inference's speed or takes more than 1.02 of its ONNX file's time.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile
import time

import numpy as np

sys.dont_write_bytecode = True

FASTER, SAME = 1.3, 1.02  # the least speed against Paddle Inference, the most time against ONNX


def resnet50():
    import paddle
    return paddle.vision.models.resnet50(num_classes=1000)


def bert():
    """BERT-base, 12 layers of width 768."""
    import paddle
    from paddle import nn

    class Bert(nn.Layer):
        def __init__(self):
            super().__init__()
            self.words, self.positions = nn.Embedding(30522, 768), nn.Embedding(512, 768)
            self.types, self.norm = nn.Embedding(2, 768), nn.LayerNorm(768, epsilon=1e-12)
            layer = nn.TransformerEncoderLayer(768, 12, 3072, dropout=0.1, activation="gelu")
            self.encoder, self.pooler = nn.TransformerEncoder(layer, 12), nn.Linear(768, 768)

        def forward(self, tokens):
            x = self.words(tokens) + self.positions(paddle.arange(128)) + self.types(paddle.zeros_like(tokens))
            x = self.encoder(self.norm(x))
            return x, paddle.tanh(self.pooler(x[:, 0]))

    return Bert()


def deepfm():
    """26 fields of 1000 values each: linear terms, products of pairs, and three layers."""
    import paddle
    from paddle import nn
    from paddle.nn import functional as F

    class DeepFM(nn.Layer):
        def __init__(self, fields=26, values=1000, width=16):
            super().__init__()
            self.linear, self.factors = nn.Embedding(fields * values, 1), nn.Embedding(fields * values, width)
            sizes = [fields * width, 400, 400, 400]
            self.layers = nn.LayerList([nn.Linear(a, b) for a, b in zip(sizes, sizes[1:])])
            self.head = nn.Linear(400, 1)

        def forward(self, ids):
            v = self.factors(ids)
            pairs = 0.5 * (v.sum(1).square() - v.square().sum(1)).sum(1, keepdim=True)
            deep = v.flatten(1)
            for layer in self.layers:
                deep = F.relu(layer(deep))
            return F.sigmoid(self.linear(ids).sum(1) + pairs + self.head(deep))

    return DeepFM()


def crnn():
    """Recognizes lines of writing: convolutions, two bidirectional LSTMs, a class for each step."""
    from paddle import nn

    class CRNN(nn.Layer):
        def __init__(self, classes=97):
            super().__init__()
            layers, channels = [], 1
            for i, (out, kernel, padding) in enumerate([(64, 3, 1), (128, 3, 1), (256, 3, 1), (256, 3, 1),
                                                        (512, 3, 1), (512, 3, 1), (512, 2, 0)]):
                layers.append(nn.Conv2D(channels, out, kernel, padding=padding))
                layers += [nn.BatchNorm2D(out)] if i in (2, 4, 6) else []
                layers.append(nn.ReLU())
                layers += [nn.MaxPool2D(2, 2)] if i < 2 else []
                layers += [nn.MaxPool2D((2, 2), (2, 1), (0, 1))] if i in (3, 5) else []
                channels = out
            self.features = nn.Sequential(*layers)
            self.rnn, self.head = nn.LSTM(512, 256, 2, "bidirect"), nn.Linear(512, classes)

        def forward(self, image):
            x = self.features(image).squeeze(2).transpose([0, 2, 1])
            return self.head(self.rnn(x)[0])

    return CRNN()


# Network, name and shape of the input, its least and largest integer (none: normal numbers), timed runs.
NETS = {
    "resnet50": (resnet50, "image", (1, 3, 224, 224), None, 12),
    "bert": (bert, "tokens", (1, 128), (0, 30522), 8),
    "deepfm": (deepfm, "ids", (256, 26), (0, 26000), 60),
    "crnn": (crnn, "image", (1, 1, 32, 160), None, 20),
}


def values_of(name):
    _, _, shape, limits, _ = NETS[name]
    random = np.random.default_rng(2)
    return random.integers(*limits, size=shape) if limits else random.normal(size=shape).astype(np.float32)


def make(name, base):
    """Saves the program; statistics of normalization are those of some batches."""
    import paddle

    build, key, shape, limits, _ = NETS[name]
    paddle.seed(1)
    net = build()
    if not limits:
        net.train()
        for _ in range(3):
            net(paddle.randn([2, *shape[1:]]))
    net.eval()
    spec = paddle.static.InputSpec([None, *shape[1:]], "int64" if limits else "float32", key)
    paddle.jit.save(paddle.jit.to_static(net, full_graph=True, input_spec=[spec]), base)


def program_of(base):
    return next(base + end for end in (".json", ".pdmodel") if os.path.exists(base + end))


def run_theirs(base, name, threads, steps):
    """In a process of its own: the least time of Paddle Inference, and its outputs."""
    from paddle import inference

    config = inference.Config(program_of(base), base + ".pdiparams")
    config.disable_gpu()
    config.enable_mkldnn()
    config.set_cpu_math_library_num_threads(threads)
    config.disable_glog_info()
    predictor = inference.create_predictor(config)
    given = values_of(name)

    def step():
        predictor.get_input_handle(predictor.get_input_names()[0]).copy_from_cpu(given)
        predictor.run()
        return [predictor.get_output_handle(each).copy_to_cpu() for each in predictor.get_output_names()]

    times, outputs = [], None
    for i in range(steps + 3):
        begun = time.perf_counter()
        outputs = step()
        if i >= 3:
            times.append(1e3 * (time.perf_counter() - begun))
    np.savez(base + "_theirs.npz", *outputs)
    print(json.dumps({"min_ms": min(times)}))


class Case:
    def __init__(self, options, name, folder):
        self.options, self.name, self.base = options, name, os.path.join(folder, name)
        self.steps = NETS[name][4]
        self.data = self.base + "_input.npz"
        np.savez(self.data, **{NETS[name][1]: values_of(name)})
        if not os.path.exists(self.base + ".pdiparams"):
            self.script("--make", name, self.base)
        if not os.path.exists(self.base + ".onnx"):
            self.script("--onnx", self.base)

    def script(self, *words):
        done = subprocess.run([sys.executable, os.path.abspath(__file__), *words], capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(f"{self.name}: {' '.join(words)} failed:\n{done.stderr[-2000:]}")
        return done.stdout

    def here(self, file):
        words = [os.path.join(self.options.bin, "paddle-infer"), file, "--input", self.data, "--benchmark",
                 str(self.steps), "--threads", str(self.options.threads)]
        done = subprocess.run(words, check=True, capture_output=True, text=True)
        return json.loads(done.stdout.strip().splitlines()[-1])["min_ms"]

    def there(self):
        out = self.script("--session", self.base, self.name, str(self.options.threads), str(self.steps))
        return json.loads(out.strip().splitlines()[-1])["min_ms"]

    def difference(self):
        made = self.base + "_ours.npz"
        subprocess.run([os.path.join(self.options.bin, "paddle-infer"), program_of(self.base), "--input", self.data,
                        "--raw", "-o", made], check=True, capture_output=True)
        worst = 0
        with np.load(made) as ours, np.load(self.base + "_theirs.npz") as theirs:
            for a, b in zip(ours.values(), theirs.values(), strict=True):
                worst = max(worst, np.abs(a - b).max() / np.abs(b).max())
        return worst

    def measure(self):
        sides = {"program": lambda: self.here(program_of(self.base)), "onnx": lambda: self.here(self.base + ".onnx"),
                 "theirs": self.there}
        times = {side: float("inf") for side in sides}
        for _ in range(self.options.turns):
            for side, run in sides.items():
                times[side] = min(times[side], run())
        return times


def main():
    words = sys.argv[1:]
    if words[:1] == ["--make"]:
        return make(*words[1:])
    if words[:1] == ["--onnx"]:
        import paddle2onnx
        paddle2onnx.export(program_of(words[1]), words[1] + ".pdiparams", words[1] + ".onnx", opset_version=17)
        return None
    if words[:1] == ["--session"]:
        return run_theirs(words[1], words[2], int(words[3]), int(words[4]))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin", help="folder of our tools")
    parser.add_argument("nets", nargs="*", metavar="NET", help=f"any of {', '.join(NETS)} (default: all)")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--keep", metavar="FOLDER", help="keep the files there, or use those that are there")
    options = parser.parse_args()
    for name in options.nets:
        if name not in NETS:
            parser.error(f"unknown net '{name}', expected one of {', '.join(NETS)}")
    if options.turns < 1:
        parser.error(f"--turns: expected 1 or more, found {options.turns}")
    missed = 0
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.keep or temporary
        os.makedirs(folder, exist_ok=True)
        for name in options.nets or NETS:
            case = Case(options, name, folder)
            t = case.measure()
            speed, share = t["theirs"] / t["program"], t["program"] / t["onnx"]
            lost = speed < FASTER or share > SAME
            missed += lost
            print(f"{name:10} program {t['program']:8.2f} ms   onnx {t['onnx']:8.2f} ms ({share:.2f} of its time)   "
                  f"Paddle Inference {t['theirs']:8.2f} ms ({speed:.2f}x its speed)   difference "
                  f"{case.difference():.1e}{'   MISSED' if lost else ''}", flush=True)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
