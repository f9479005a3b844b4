#!/usr/bin/env python3
"""Measures what int8 costs in accuracy, here and with ONNX Runtime's quantizer, on trained models.

Trains LeNet, a net of the ResNet-18 class, an LSTM and a GPT on characters for a short time, quantizes each
float file with both quantizers on the same calibration samples, and runs all three files in ONNX Runtime on
the same held-out data. Accuracy is the share of right classes, or of right next characters; drops are in
points (percent of predictions), with the 95% interval of the paired difference.

  metric_drop.py BIN [CASE...] [--keep FOLDER] [--options WORD...]

Exit code 1 if a drop is above 0.5 points, or above that of ONNX Runtime's quantizer by more than the
interval of their paired difference.
"""
import argparse
import gzip
import json
import logging
import os
import subprocess
import sys
import tempfile

import numpy as np
import onnxruntime as ort
from onnxruntime.quantization import (CalibrationDataReader, CalibrationMethod, QuantFormat, QuantType,
                                      quant_pre_process, quantize_static)

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
DATA = os.environ.get("PADDLE_TEST_DATA", os.path.join(os.path.dirname(ROOT), "shared", "data"))
# ResNet-18 for images of 28 x 28: the stem keeps the size, and layers have a quarter of the channels.
RESNET18 = """name: resnet18
inputs: {image: "float32[batch, 1, 28, 28]"}
blocks:
  conv_bn(x, channels, kernel, stride=1): |
    return batch_norm(conv2d(x, channels, kernel, stride=stride, padding=kernel // 2, bias=false))
  basic_block(x, mid, stride=1): |
    y = relu(conv_bn(x, mid, 3, stride))
    y = conv_bn(y, mid, 3)
    if stride != 1 or x.shape[1] != mid:
      x = conv_bn(x, mid, 1, stride)
    return relu(x + y)
model: |
  x = relu(conv_bn(image, 16, 3))
  for stage in range(4):
    for i in range(2):
      x = basic_block(x, 16 * 2 ** stage, stride=2 if i == 0 and stage > 0 else 1)
  logits = linear(mean(x, [2, 3]), 10)
outputs: [logits]
"""
# Config, name of the input, further words of the training.
CASES = {
    "lenet": ("configs/mnist/lenet.yaml", "image", ["train.epochs=4"]),
    "resnet18": ("configs/mnist/lenet.yaml", "image", ["model=resnet18.yaml", "train.epochs=3"]),
    "char_lstm": ("configs/text/char_lstm.yaml", "tokens", ["train.steps=250"]),
    "char_gpt": ("configs/text/char_gpt.yaml", "tokens", ["train.steps=600"]),
}
MOST_POINTS = 0.5
CALIBRATION_SAMPLES = 256


def images():
    read = lambda name, skip: np.frombuffer(
        gzip.open(os.path.join(DATA, "mnist", name)).read()[skip:], dtype=np.uint8)
    x = read("t10k-images-idx3-ubyte.gz", 16).reshape(-1, 1, 28, 28).astype(np.float32) / np.float32(255)
    y = read("t10k-labels-idx1-ubyte.gz", 8).astype(np.int64)
    return x[:CALIBRATION_SAMPLES], x[8000:], y[8000:]


def characters(run, context=64):
    """Windows of the training part, and of the validation part with the characters that follow."""
    with open(os.path.join(run, "model", "vocabulary.json"), encoding="utf-8") as file:
        vocabulary = json.load(file)
    while isinstance(vocabulary, dict) and not all(isinstance(v, int) for v in vocabulary.values()):
        vocabulary = next(v for v in vocabulary.values() if isinstance(v, (dict, list)))
    if isinstance(vocabulary, list):
        vocabulary = {c: i for i, c in enumerate(vocabulary)}
    with open(os.path.join(DATA, "text", "tinyshakespeare.txt"), encoding="utf-8") as file:
        ids = np.array([vocabulary[c] for c in file.read()], dtype=np.int64)
    split = int(0.9 * len(ids))
    random = np.random.default_rng(1)
    starts = random.integers(0, split - context, CALIBRATION_SAMPLES)
    calibration = np.stack([ids[s:s + context] for s in starts])
    windows = (len(ids) - split - 1) // context
    held = ids[split:split + windows * context].reshape(windows, context)
    following = ids[split + 1:split + 1 + windows * context].reshape(windows, context)
    return calibration, held, following


class Reader(CalibrationDataReader):
    def __init__(self, name, values):
        self.batches = iter([{name: values[i:i + 1]} for i in range(len(values))])

    def get_next(self):
        return next(self.batches, None)


def outputs(path, name, values):
    options = ort.SessionOptions()
    options.log_severity_level = 4
    # Sums of products of bytes are exact without VNNI too.
    options.add_session_config_entry("session.x64quantprecision", "1")
    try:
        session = ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    except Exception:  # some of its optimizations fail on some of its own files
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_BASIC
        session = ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    return np.concatenate([session.run(None, {name: values[i:i + 64]})[0] for i in range(0, len(values), 64)])


def sqnr(reference, found):
    return 10 * np.log10((reference ** 2).sum() / ((reference - found) ** 2).sum())


def drop(before, after):
    """Points, and the half-width of the 95% interval of the paired difference."""
    difference = before.astype(float) - after.astype(float)
    return 100 * difference.mean(), 196 * difference.std() / np.sqrt(difference.size)


def measure(case, options, folder):
    config, name, words = CASES[case]
    tool = lambda t, *a: subprocess.run([os.path.join(options.bin, t), *a], check=True, cwd=ROOT,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    run, base = os.path.join(folder, case), os.path.join(folder, case)
    files = {each: f"{base}_{each}.onnx" for each in ("float", "ours", "theirs", "prepared")}
    if not os.path.exists(files["float"]):
        with open(os.path.join(folder, "resnet18.yaml"), "w", encoding="utf-8") as file:
            file.write(RESNET18)
        words = [w.replace("model=", "model=" + folder + "/") for w in words]
        tool("paddle-train", config, "--output", run, "--overwrite", *words)
        tool("paddle-export", run, "-o", files["float"], "--no-check")
    calibration, held, wanted = characters(run) if name == "tokens" else images()
    np.savez(base + "_calibration.npz", **{name: calibration})
    tool("paddle-quant", files["float"], "-o", files["ours"], "--data", base + "_calibration.npz", "--target",
         "onnxruntime", "--no-check", "--overwrite", *options.options)
    logging.getLogger().setLevel(logging.ERROR)
    np.seterr(all="ignore")
    quant_pre_process(files["float"], files["prepared"], skip_symbolic_shape=True)
    quantize_static(files["prepared"], files["theirs"], Reader(name, calibration), quant_format=QuantFormat.QDQ,
                    per_channel=True, activation_type=QuantType.QUInt8, weight_type=QuantType.QInt8,
                    calibrate_method=CalibrationMethod.MinMax)
    found = {each: outputs(files[each], name, held) for each in ("float", "ours", "theirs")}
    right = {each: value.argmax(-1) == wanted for each, value in found.items()}
    ours, theirs = (drop(right["float"], right[each]) for each in ("ours", "theirs"))
    against, interval = drop(right["theirs"], right["ours"])
    lost = ours[0] > MOST_POINTS or against > interval
    size = lambda each: os.path.getsize(files[each]) / os.path.getsize(files["float"])
    print(f"{case:10} {right['float'].size:7} predictions  float {100 * right['float'].mean():6.2f}%   "
          f"drop here {ours[0]:+.3f} ±{ours[1]:.3f} ({sqnr(found['float'], found['ours']):.1f} dB, {size('ours'):.2f} of the size)"
          f"   of onnxruntime {theirs[0]:+.3f} ±{theirs[1]:.3f} ({sqnr(found['float'], found['theirs']):.1f} dB, "
          f"{size('theirs'):.2f})" + ("   BEHIND" if lost else ""), flush=True)
    return lost


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin", help="folder of our tools")
    parser.add_argument("cases", nargs="*", help=f"any of {', '.join(CASES)} (default: all)")
    parser.add_argument("--keep", metavar="FOLDER", help="keep the models there, or use those that are there")
    parser.add_argument("--options", nargs="+", default=[], help="further words for paddle-quant")
    options = parser.parse_args()
    options.bin = os.path.abspath(options.bin)
    for case in options.cases:
        if case not in CASES:
            parser.error(f"unknown case '{case}', expected one of {', '.join(CASES)}")
    with tempfile.TemporaryDirectory() as temporary:
        folder = os.path.abspath(options.keep or temporary)
        os.makedirs(folder, exist_ok=True)
        return 1 if sum(measure(case, options, folder) for case in options.cases or CASES) else 0


if __name__ == "__main__":
    sys.exit(main())
