#!/usr/bin/env python3
"""Losses of parallel runs against those of one process: shipped configs in small forms, times
layouts of up to eight ranks, times precisions.

    tests/bench/equality_grid.py [BIN] [--configs A,B] [--layouts A,B] [--precisions A,B] [--steps N]
                                 [--jobs N] [--all]

BIN is the folder of the programs (build/bin). Each run is simulated (paddle-train --simulate) and
compared with a run of one rank of the same config and the same micro-batches: the largest relative
difference of a training loss over all steps. Bounds: 1e-10 in float64, 1e-5 in float32, 1e-2 in
bfloat16. Prints what is outside, the share within for each precision, and the layouts that a config
cannot have, which count as outside unless the guides list them; exits 1 below 95%. `--all` prints
every line. The data of some configs is looked for where PADDLE_TEST_DATA points.

How much of a difference is the rounding of the precision itself is measured too: `accumulate` is a
run of one rank that adds its batch up from two parts.
"""

import argparse
import concurrent.futures
import json
import os
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BOUNDS = {"float64": 1e-10, "float32": 1e-5, "bfloat16": 1e-2}

GPT = ["params.layers=4", "params.heads=4", "params.width=32", "params.positions=16",
       "data.train.context=16", "data.valid.context=16", "data.valid_batch_size=512", "data.batch_size=16"]
# Name: (config, overrides).
CONFIGS = {
    "gpt": ("configs/text/char_gpt.yaml", GPT),
    "gpt_dropout": ("configs/text/char_gpt.yaml",
                    [*GPT, "params.dropout=0.1", "params.layers=2", "data.batch_size=24"]),
    "lstm": ("configs/text/char_lstm.yaml",
             ["params.hidden=24", "params.width=12", "data.train.context=12", "data.valid.context=12",
              "data.valid_batch_size=512", "data.batch_size=16"]),
    "digits": ("configs/quickstart/digits.yaml",
               ["data.batch_size=16", "data.train.size=600", "data.train.range=[0, 500]",
                "data.valid.size=600", "data.valid.range=[500, 600]"]),
    "lenet": ("configs/mnist/lenet.yaml", ["data.batch_size=16", "data.valid.range=[8000, 8100]"]),
    "deepfm": ("configs/ctr/deepfm_criteo.yaml", ["data.batch_size=16", "params.hidden=[24, 16, 8]"]),
    "gan": ("configs/gan/digits.yaml",
            ["data.batch_size=16", "data.train.size=600", "data.valid.size=64"]),
    "wgan": ("configs/gan/digits_wgan_gp.yaml",
             ["data.batch_size=16", "data.train.size=600", "data.valid.size=64"]),
}


def pipelined(count, micro, *more):
    return [f"parallel.pipeline={count}", f"parallel.micro_batches={micro}", *more]


# Name: (ranks, micro-batches, settings).
LAYOUTS = {
    "data2": (2, 1, ["parallel.data=2"]),
    "data3": (3, 1, ["parallel.data=3"]),
    "data8": (8, 1, ["parallel.data=8"]),
    "data2 accumulate2": (2, 2, ["parallel.data=2", "train.accumulate=2"]),
    "tensor2": (2, 1, ["parallel.tensor=2"]),
    "tensor3": (3, 1, ["parallel.tensor=3"]),
    "tensor4 sequence": (4, 1, ["parallel.tensor=4", "parallel.sequence=true"]),
    "tensor8": (8, 1, ["parallel.tensor=8"]),
    "data2 tensor2": (4, 1, ["parallel.data=2", "parallel.tensor=2"]),
    "data4 tensor2 sequence": (8, 1, ["parallel.data=4", "parallel.tensor=2", "parallel.sequence=true"]),
    "data4 sharding1": (4, 1, ["parallel.data=4", "parallel.sharding=1"]),
    "data4 sharding2": (4, 2, ["parallel.data=4", "parallel.sharding=2", "train.accumulate=2"]),
    "data4 sharding3": (4, 1, ["parallel.data=4", "parallel.sharding=3"]),
    "data2 tensor2 sharding3": (4, 2, ["parallel.data=2", "parallel.tensor=2", "parallel.sharding=3", "train.accumulate=2"]),
    "data2 recompute": (2, 1, ["parallel.data=2", "parallel.recompute=full"]),
    "pipeline2 f_then_b": (2, 4, pipelined(2, 4, "parallel.schedule=f_then_b")),
    "pipeline2 1f1b": (2, 4, pipelined(2, 4)),
    "pipeline2 interleaved": (2, 4, pipelined(2, 4, "parallel.schedule=interleaved")),
    "pipeline2 zero_bubble": (2, 4, pipelined(2, 4, "parallel.schedule=zero_bubble")),
    "pipeline4 1f1b": (4, 8, pipelined(4, 8)),
    "pipeline4 zero_bubble": (4, 8, pipelined(4, 8, "parallel.schedule=zero_bubble")),
    "pipeline2 data2": (4, 4, pipelined(2, 4, "parallel.data=2")),
    "pipeline2 tensor2": (4, 4, pipelined(2, 4, "parallel.tensor=2")),
    "pipeline2 data2 tensor2": (8, 2, pipelined(2, 2, "parallel.data=2", "parallel.tensor=2")),
    "pipeline2 data4 sharding3": (8, 2, pipelined(2, 2, "parallel.data=4", "parallel.sharding=3")),
    "pipeline2 data2 sharding2 zero_bubble": (
        4, 4, pipelined(2, 4, "parallel.data=2", "parallel.sharding=2", "parallel.schedule=zero_bubble")),
}
# Rejections that the guides list: several optimizers have no stages.
DOCUMENTED = ("is not possible with 'optimizers'",)


def losses(folder):
    out = []
    with open(folder + "/metrics.jsonl") as f:
        for line in map(json.loads, f):
            if line["kind"] == "train":
                out.append(line["loss"])
    return out


class Grid:
    def __init__(self, options, scratch):
        self.options, self.scratch = options, scratch

    def run(self, config, precision, ranks, settings, name):
        path, overrides = CONFIGS[config]
        folder = f"{self.scratch}/{config}.{precision}.{name.replace(' ', '_')}"
        command = [os.path.join(self.options.bin, "paddle-train"), os.path.join(ROOT, path), *overrides,
                   f"precision={precision}", f"train.steps={self.options.steps}", "train.epochs=0",
                   "train.log_every=1", "train.evaluate_every=never", "train.checkpoint_every=never",
                   "data.workers=0", "train.threads=1", *settings, "--output", folder]
        if ranks > 1:
            command += ["--simulate", str(ranks)]
        done = subprocess.run(command, capture_output=True, text=True, cwd=self.scratch)
        if done.returncode != 0:
            lines = [line for line in done.stderr.strip().split("\n") if line] or ["?"]
            return None, f"exit {done.returncode}: {lines[-1]}"
        return losses(folder), ""

    def reference(self, config, precision, micro):
        settings = [f"train.accumulate={micro}"] if micro > 1 else []
        return self.run(config, precision, 1, settings, f"one{micro}")


def difference(wanted, found):
    if len(wanted) != len(found) or not wanted:
        return float("inf")
    worst = 0.0
    for a, b in zip(wanted, found):
        worst = max(worst, abs(a - b) / max(abs(a), 1e-300) if a == a and b == b else float("inf"))
    return worst


def chosen(text, known, what):
    if not text:
        return list(known)
    names = [name.strip() for name in text.split(",")]
    for name in names:
        if name not in known:
            sys.exit(f"--{what}: no '{name}'; there are {', '.join(known)}")
    return names


def main():
    parser = argparse.ArgumentParser(usage=__doc__.replace("%", "%%"))
    parser.add_argument("bin", nargs="?", default=os.path.join(ROOT, "build/bin"))
    for name in ("configs", "layouts", "precisions"):
        parser.add_argument("--" + name, default="")
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--all", action="store_true")
    options = parser.parse_args()
    options.bin = os.path.abspath(options.bin)
    configs = chosen(options.configs, CONFIGS, "configs")
    layouts = chosen(options.layouts, LAYOUTS, "layouts")
    precisions = chosen(options.precisions, BOUNDS, "precisions")
    failed = False
    with tempfile.TemporaryDirectory() as scratch, concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        grid = Grid(options, scratch)
        wanted = {}
        for precision in precisions:
            for config in configs:
                for micro in sorted({1, 2} | {LAYOUTS[name][1] for name in layouts}):
                    wanted[config, precision, micro] = pool.submit(grid.reference, config, precision, micro)
        found = {}
        for precision in precisions:
            for config in configs:
                for name in layouts:
                    ranks, _, settings = LAYOUTS[name]
                    found[config, precision, name] = pool.submit(grid.run, config, precision, ranks, settings, name)
        for precision in precisions:
            bound, within, counted, rejected, equal = BOUNDS[precision], 0, 0, 0, 0
            for config in configs:
                one, two = (wanted[config, precision, m].result()[0] for m in (1, 2))
                if one is None:
                    print(f"{precision:9} {config:12} left out, as one process rejects it: "
                          f"{wanted[config, precision, 1].result()[1]}", flush=True)
                    continue
                if one and two:
                    print(f"{precision:9} {config:12} accumulate: {difference(one, two):.1e}", flush=True)
                for name in layouts:
                    reference, problem = wanted[config, precision, LAYOUTS[name][1]].result()
                    values, other = found[config, precision, name].result()
                    if values is None or reference is None:
                        reason = other or problem
                        documented = any(text in reason for text in DOCUMENTED)
                        rejected += documented
                        counted += not documented
                        print(f"{precision:9} {config:12} {name:38} {'rejected' if documented else 'FAILED'}: {reason}", flush=True)
                        continue
                    worst = difference(reference, values)
                    counted += 1
                    within += worst <= bound
                    equal += worst == 0
                    if worst > bound or options.all:
                        print(f"{precision:9} {config:12} {name:38} {worst:.1e}{'' if worst <= bound else '  OUTSIDE'}", flush=True)
            if counted == 0:
                continue
            share = 100 * within / counted
            failed = failed or share < 95
            print(f"{precision}: {within} of {counted} within {bound:g} ({share:.1f}%), {equal} with the same bits; "
                  f"{rejected} layouts rejected", flush=True)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
