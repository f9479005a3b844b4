#!/usr/bin/env python3
"""Compares the noise that paddle-quant and ONNX Runtime's quantizer put into int8 models.

Both calibrate on the same random inputs by min-max, with one scale a channel of the weights; ONNX
Runtime runs both files on other inputs. Usage: quantizers.py BIN [NET...]
"""
import os
import subprocess
import sys
import tempfile

import numpy as np
import onnxruntime as ort
from onnxruntime.quantization import (CalibrationDataReader, CalibrationMethod, QuantFormat,
                                      QuantType, quant_pre_process, quantize_static)

NETS = {
    "resnet50": ("models/resnet.yaml:resnet50", "image", (3, 224, 224)),
    "mobilenet_v3": ("models/vision/mobilenet_v3.yaml", "image", (3, 224, 224)),
    "bert": ("models/bert.yaml", "tokens", (128,)),
}


class Reader(CalibrationDataReader):
    def __init__(self, name, values):
        self.batches = iter([{name: values[i:i + 1]} for i in range(len(values))])

    def get_next(self):
        return next(self.batches, None)


def values_of(shape, count, seed):
    random = np.random.default_rng(seed)
    if len(shape) == 1:
        return random.integers(0, 30000, size=(count, *shape))
    return random.normal(size=(count, *shape)).astype(np.float32)


def outputs(path, name, values):
    session = ort.InferenceSession(path, providers=["CPUExecutionProvider"])
    return np.concatenate([session.run(None, {name: values[i:i + 1]})[0] for i in range(len(values))])


def sqnr(reference, found):
    return 10 * np.log10((reference ** 2).sum() / ((reference - found) ** 2).sum())


def main():
    folder_of_tools, nets = sys.argv[1], sys.argv[2:] or list(NETS)
    for net in nets:
        model, name, shape = NETS[net]
        with tempfile.TemporaryDirectory() as folder:
            file = lambda n: os.path.join(folder, n)
            tool = lambda t, *a: subprocess.run([os.path.join(folder_of_tools, t), *a], check=True,
                                                stdout=subprocess.DEVNULL)
            tool("paddle-export", model, "-o", file("float.onnx"), "--seed", "1", "--no-check")
            calibration, test = values_of(shape, 16, 1), values_of(shape, 8, 2)
            np.savez(file("data.npz"), **{name: calibration})
            tool("paddle-quant", file("float.onnx"), "-o", file("ours.onnx"), "--data",
                 file("data.npz"), "--target", "onnxruntime", "--no-check")
            quant_pre_process(file("float.onnx"), file("prepared.onnx"), skip_symbolic_shape=True)
            quantize_static(file("prepared.onnx"), file("theirs.onnx"), Reader(name, calibration),
                            quant_format=QuantFormat.QDQ, per_channel=True,
                            activation_type=QuantType.QUInt8, weight_type=QuantType.QInt8,
                            calibrate_method=CalibrationMethod.MinMax)
            reference = outputs(file("float.onnx"), name, test)
            ours = sqnr(reference, outputs(file("ours.onnx"), name, test))
            theirs = sqnr(reference, outputs(file("theirs.onnx"), name, test))
            print(f"{net:14} ours {ours:6.2f} dB   onnxruntime {theirs:6.2f} dB", flush=True)


if __name__ == "__main__":
    main()
