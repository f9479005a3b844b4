#!/usr/bin/env python3
"""Measures what int8 gains here and in ONNX Runtime: both run the float model and the quantized one.

Each turn runs our float and int8 files, then ONNX Runtime's, each in a process of its own; times are
medians over turns of the least time of a process. Weights are random. Our int8 files are those of
paddle-quant, ONNX Runtime's those of its own quantizer; --swap runs each runtime on the other one's file as
well. On processors without VNNI both quantizers write weights of 7 bits, since sums of two products of
bytes overflow there; with --eight-bits they do not, and ONNX Runtime computes exactly, but slowly
(session.x64quantprecision).

  int8_speed.py BIN [CASE...] [--turns N] [--threads T] [--eight-bits] [--swap] [--keep FOLDER]

Exit code 1 if a ratio, or a time of int8, is worse than ONNX Runtime's.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np

sys.dont_write_bytecode = True
import processor

# Model, input, shape of a sample, batch, scheme, timed steps of a process.
CASES = {
    "resnet50_1": ("models/resnet.yaml:resnet50", "image", (3, 224, 224), 1, "int8", 20),
    "resnet50_16": ("models/resnet.yaml:resnet50", "image", (3, 224, 224), 16, "int8", 4),
    "bert_1": ("models/bert.yaml", "tokens", (128,), 1, "int8_dynamic", 12),
    "bert_8": ("models/bert.yaml", "tokens", (128,), 8, "int8_dynamic", 4),
}
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def values_of(name, shape, count, seed):
    random = np.random.default_rng(seed)
    if name == "tokens":
        return random.integers(0, 30000, size=(count, *shape))
    return random.normal(size=(count, *shape)).astype(np.float32)


def run_session(file, data, steps, threads, exact):
    """In a process of its own: the least time of ONNX Runtime."""
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    if exact:
        options.add_session_config_entry("session.x64quantprecision", "1")
    session = ort.InferenceSession(file, options, providers=["CPUExecutionProvider"])
    feed = dict(np.load(data))
    times = []
    for step in range(steps + 3):
        begun = time.perf_counter()
        session.run(None, feed)
        if step >= 3:
            times.append(1e3 * (time.perf_counter() - begun))
    print(json.dumps({"min_ms": min(times)}))


def their_quantizer(plain, path, scheme, name, calibration, seven_bits):
    from onnxruntime.quantization import (CalibrationDataReader, CalibrationMethod, QuantFormat, QuantType,
                                          quant_pre_process, quantize_dynamic, quantize_static)

    class Reader(CalibrationDataReader):
        def __init__(self):
            self.batches = iter([{name: calibration[i:i + 1]} for i in range(len(calibration))])

        def get_next(self):
            return next(self.batches, None)

    if scheme == "int8_dynamic":
        return quantize_dynamic(plain, path, weight_type=QuantType.QInt8, per_channel=True,
                                reduce_range=seven_bits)
    ready = path + ".ready"
    quant_pre_process(plain, ready, skip_symbolic_shape=True)
    quantize_static(ready, path, Reader(), quant_format=QuantFormat.QDQ, per_channel=True,
                    reduce_range=seven_bits, activation_type=QuantType.QUInt8,
                    weight_type=QuantType.QInt8, calibrate_method=CalibrationMethod.MinMax)


class Case:
    def __init__(self, options, name, folder):
        self.options = options
        self.model, self.input, self.shape, self.batch, self.scheme, self.steps = CASES[name]
        base = os.path.join(folder, name.split("_")[0])
        self.plain, self.ours, self.theirs = base + ".onnx", base + "_ours.onnx", base + "_theirs.onnx"
        self.data = os.path.join(folder, name + ".npz")
        np.savez(self.data, **{self.input: values_of(self.input, self.shape, self.batch, 2)})
        calibration = values_of(self.input, self.shape, 8, 1)
        if not os.path.exists(self.plain):
            self.tool("paddle-export", self.model, "-o", self.plain, "--seed", "1", "--no-check")
        if not os.path.exists(self.ours):
            np.savez(base + "_calibration.npz", **{self.input: calibration})
            self.tool("paddle-quant", self.plain, "-o", self.ours, "--scheme", self.scheme, "--data",
                      base + "_calibration.npz", "--target",
                      "onnxruntime-avx2" if options.seven_bits else "onnxruntime", "--no-check")
        if not os.path.exists(self.theirs):
            their_quantizer(self.plain, self.theirs, self.scheme, self.input, calibration,
                            options.seven_bits)

    def tool(self, tool, *words):
        return subprocess.run([os.path.join(self.options.bin, tool), *words], check=True, cwd=ROOT,
                              capture_output=True, text=True).stdout

    def here(self, file):
        line = self.tool("paddle-infer", file, "--input", self.data, "--benchmark", str(self.steps), "--threads",
                         str(self.options.threads))
        return json.loads(line.strip().splitlines()[-1])["min_ms"]

    def there(self, file):
        words = [sys.executable, os.path.abspath(__file__), "--session", file, self.data, str(self.steps),
                 str(self.options.threads), str(int(self.options.exact))]
        done = subprocess.run(words, check=True, capture_output=True, text=True)
        return json.loads(done.stdout.strip().splitlines()[-1])["min_ms"]

    def measure(self):
        sides = {"ours_float": (self.here, self.plain), "ours_int8": (self.here, self.ours),
                 "theirs_float": (self.there, self.plain), "theirs_int8": (self.there, self.theirs)}
        if self.options.swap:
            sides |= {"ours_on_theirs": (self.here, self.theirs), "theirs_on_ours": (self.there, self.ours)}
        times = {side: [] for side in sides}
        for _ in range(self.options.turns):
            for side, (run, file) in sides.items():
                times[side].append(run(file))
        return {side: statistics.median(each) for side, each in times.items()}


def main():
    if sys.argv[1:2] == ["--session"]:
        file, data, steps, threads, exact = sys.argv[2:]
        return run_session(file, data, int(steps), int(threads), exact == "1")
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin", help="folder of our tools")
    parser.add_argument("cases", nargs="*", help=f"any of {', '.join(CASES)} (default: all)")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--eight-bits", action="store_true", help="weights of 8 bits on any processor")
    parser.add_argument("--swap", action="store_true", help="also each runtime on the other one's file")
    parser.add_argument("--keep", metavar="FOLDER", help="keep the models there, or use those that are there")
    options = parser.parse_args()
    options.bin = os.path.abspath(options.bin)
    has_vnni = bool({"avx512_vnni", "avx_vnni"} & set(processor.flags()))
    options.seven_bits = not has_vnni and not options.eight_bits
    options.exact = not has_vnni and options.eight_bits
    for name in options.cases:
        if name not in CASES:
            parser.error(f"unknown case '{name}', expected one of {', '.join(CASES)}")
    if options.turns < 1:
        parser.error(f"--turns: expected 1 or more, found {options.turns}")
    behind = 0
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.keep or temporary
        os.makedirs(folder, exist_ok=True)
        for name in options.cases or CASES:
            t = Case(options, name, folder).measure()
            ours, theirs = t["ours_float"] / t["ours_int8"], t["theirs_float"] / t["theirs_int8"]
            # Ratios of one run differ by about this from one run to the next.
            noise = 0.03
            lost = ours < theirs * (1 - noise) or t["ours_int8"] > t["theirs_int8"] * (1 + noise)
            behind += lost
            line = (f"{name:12} ours {t['ours_float']:8.2f} → {t['ours_int8']:8.2f} ms ({ours:.2f}x)   onnxruntime "
                    f"{t['theirs_float']:8.2f} → {t['theirs_int8']:8.2f} ms ({theirs:.2f}x)   int8 against int8 "
                    f"{t['theirs_int8'] / t['ours_int8']:.2f}x")
            if options.swap:
                line += f"   swapped files: {t['ours_on_theirs']:.2f}, {t['theirs_on_ours']:.2f} ms"
            print(line + ("   BEHIND" if lost else ""), flush=True)
    return 1 if behind else 0


if __name__ == "__main__":
    sys.exit(main())
