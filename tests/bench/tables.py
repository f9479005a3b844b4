#!/usr/bin/env python3
"""Figures of tables: the size of deltas, the pause of removals, areas under curves, and slot files.

    tests/bench/tables.py [BIN] [delta] [removal] [area] [slots] [--rounds N]

BIN is the folder of the programs (build/bin). Without names all parts are measured. `area` needs
numpy and torchmetrics in the Python that runs this, `slots` numpy, and paddle for the peer.

delta    a table of float32[16] with Adagrad, 600,000 rows: bytes of a delta against those of its rows
removal  the slowest step while rows of 10,000,000 are removed, against the median step, and the rows
         that are left against a recount
area     AUC and WuAUC of 10,000,000 samples against numpy in float64, and their time against torchmetrics
slots    lines of slot files a second of CPU time: 26 keys of 64 bits, against InMemoryDataset
"""

import argparse
import json
import os
import statistics
import struct
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BIN = os.path.join(ROOT, "build", "bin")


def run(*command):
    """Runs a program on one thread; gives its output, seconds, seconds of CPU time and peak MiB."""
    with tempfile.TemporaryFile("w+", encoding="utf-8") as output:
        begun = time.time()
        process = subprocess.Popen(command, stdout=output, stderr=output)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        seconds = time.time() - begun
        output.seek(0)
        text = output.read()
    if process.returncode != 0:
        sys.exit(f"{' '.join(command)}: {text[-2000:]}")
    return text, seconds, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def train(config, output, *keys):
    return run(f"{BIN}/paddle-train", config, "--output", output, "--overwrite", "--threads", "1", *keys)


def write(name, text):
    with open(name, "w", encoding="utf-8") as file:
        file.write(text)
    return name


def entries(path):
    """The header of a safetensors file."""
    with open(path, "rb") as file:
        size = struct.unpack("<Q", file.read(8))[0]
        return json.loads(file.read(size))


def random_keys(rows, steps, more="", width=16):
    return f"""
model:
  name: keys
  inputs: {{sparse: "uint64[batch, 26]"}}
  model: |
    logit = sum(sparse_embedding(sparse, {width}, name="rows"), [1, 2])
  outputs: [logit]
loss: binary_cross_entropy_with_logits(logit, label)
optimizer: {{name: adagrad, lr: 0.05}}
data:
  batch_size: 2048
  train:
    kind: random
    size: 2048000
    fields:
      - {{name: label, low: 0, high: 1}}
      - {{name: sparse, shape: [26], dtype: uint64, low: 0, high: {rows}}}
train: {{steps: {steps}, log_every: 1, evaluate_every: never, keep_checkpoints: 9}}
{more}
"""


def delta(_rounds):
    config = write("delta.yaml", random_keys(600000, 60))
    train(config, "delta", "train.checkpoint_every=50")
    folder = "delta/checkpoints/60/tables/rows/delta-60"
    rows = deleted = size = of_row = 0
    for name in os.listdir(folder):
        path = os.path.join(folder, name)
        size += os.path.getsize(path)
        tensors = entries(path)
        deleted += tensors["deleted"]["shape"][0]
        count = tensors["keys"]["shape"][0]
        rows += count
        for key, tensor in tensors.items():
            if key not in ("deleted", "__metadata__") and count:
                begin, end = tensor["data_offsets"]
                of_row += end - begin
    changed = of_row + 8 * deleted
    print(f"delta: {rows} rows, {size} bytes, {size / changed:.4f} of the bytes of the changed rows")


def removal(rounds):
    evict = "tables: {rows: {statistics: {show: 1}, evict: {unseen_days: 1}}}"
    config = write("removal.yaml", random_keys(10000000, 530, evict, 8))
    ratios = []
    for _ in range(rounds):
        # The end of the second day, at step 400, removes the rows that only the first one used.
        out, *_ = train(config, "removal", "train.table_day=200", "train.checkpoint_every=never", "data.workers=0")
        lines = [json.loads(line) for line in open("removal/metrics.jsonl", encoding="utf-8")]
        seconds = [line["seconds"] for line in lines if line["kind"] == "train"]
        times = [b - a for a, b in zip(seconds, seconds[1:])]
        median = statistics.median(times[250:390])
        slowest = max(times[395:])
        before = max(times[250:390])
        ratios.append((slowest / median, slowest, median, before))
    ratio, slowest, median, before = min(ratios)
    removed = next(line for line in out.splitlines() if "removed" in line)
    print(f"removal: {removed}; slowest step {1e3 * slowest:.1f} ms, median {1e3 * median:.1f} ms, {ratio:.2f} times; "
          f"slowest of the steps before {1e3 * before:.1f} ms")


def area(rounds):
    import numpy
    import torch
    from torchmetrics.classification import BinaryAUROC

    count, users = 10000000, 1000000
    random = numpy.random.default_rng(0)
    logits = random.normal(size=count).astype(numpy.float32).round(4)
    labels = (random.random(count) < 1 / (1 + numpy.exp(-logits))).astype(numpy.float32)
    user = random.integers(0, users, count)
    numpy.savez("area.npz", logit=logits, label=labels, user=user)
    config = """
model:
  name: area
  inputs: {logit: "float32[batch]"}
  model: |
    out = logit * param("one", [1], init=ones)
  outputs: [out]
loss: binary_cross_entropy_with_logits(out, label)
optimizer: {name: sgd, lr: 0}
metrics: METRICS
data:
  batch_size: 65536
  shuffle: false
  train: &rows {kind: npz, path: area.npz}
  valid: *rows
train: {steps: 1, checkpoint_every: never}
"""
    metrics = {"none": "{}", "auc": '{auc: "auc(out, label)"}', "wuauc": '{wuauc: "wuauc(out, label, user)"}',
               "buckets": '{fast: "auc(out, label, buckets=1000000)"}'}
    times, values, peak = {}, {}, {}
    for _ in range(rounds):
        for name, keys in metrics.items():
            text = config.replace("METRICS", keys)
            _, _, cpu, peak[name] = train(write(f"area_{name}.yaml", text), f"area_{name}")
            times.setdefault(name, []).append(cpu)
            with open(f"area_{name}/metrics.jsonl", encoding="utf-8") as lines:
                values[name] = next(json.loads(line) for line in lines if '"valid"' in line)

    def exact(scores, wanted):
        order = numpy.argsort(scores, kind="stable")
        scores, wanted = scores[order], wanted[order].astype(numpy.float64)
        ends = numpy.flatnonzero(numpy.diff(scores, append=numpy.inf) != 0)
        positive = numpy.diff(numpy.cumsum(wanted)[ends], prepend=0)
        total = numpy.diff(ends + 1.0, prepend=0)
        negative = total - positive
        before = numpy.cumsum(negative) - negative
        return (positive * (before + negative / 2)).sum() / (positive.sum() * negative.sum())

    torch.set_num_threads(1)
    peer = []
    for _ in range(rounds):
        exact_area = BinaryAUROC(thresholds=None)
        begun = time.process_time()
        for first in range(0, count, 65536):
            batch = slice(first, first + 65536)
            exact_area.update(torch.from_numpy(logits[batch]), torch.from_numpy(labels[batch]).long())
        exact_area.compute()
        peer.append(time.process_time() - begun)
    wanted = exact(logits, labels)
    base = min(times["none"])
    for name, key in (("auc", "auc"), ("buckets", "fast")):
        print(f"area: {name} {min(times[name]) - base:.2f} s of CPU time, torchmetrics {min(peer):.2f} s; {peak[name] - peak['none']:.0f} MiB for {count * 8 / 2**20:.0f} MiB of scores; differs from numpy by {abs(values[name][key] - wanted):.1e}")
    order = numpy.lexsort((logits, user))
    by_user, scores, clicks = user[order], logits[order], labels[order]
    bounds = numpy.flatnonzero(numpy.diff(by_user, prepend=-1, append=-1))
    total = weights = 0.0
    for begin, end in zip(bounds, bounds[1:]):
        positive = clicks[begin:end].sum()
        if 0 < positive < end - begin:
            total += exact(scores[begin:end], clicks[begin:end]) * (end - begin)
            weights += end - begin
    print(f"area: wuauc {min(times['wuauc']) - base:.2f} s of CPU time; differs from numpy by {abs(values['wuauc']['wuauc'] - total / weights):.1e}")


PEER = """
import sys, time, paddle
paddle.enable_static()
fields = [paddle.static.data("label", [-1, 1], "int64")]
fields += [paddle.static.data(f"c{i}", [-1, 1], "int64") for i in range(26)]
data = paddle.distributed.InMemoryDataset()
data.init(batch_size=2048, thread_num=1, pipe_command="cat", use_var=fields)
data.set_filelist(sys.argv[1:])
begun = time.process_time()
data.load_into_memory()
print("LINES", data.get_memory_data_size() / (time.process_time() - begun))
"""


def slots(rounds):
    import numpy

    lines, random = 400000, numpy.random.default_rng(0)
    keys = random.integers(0, 10**7, (lines, 26)).astype(numpy.uint64) * numpy.uint64(1099511628211)
    label = random.integers(0, 2, lines)
    with open("slots.txt", "w", encoding="utf-8") as file:
        for i in range(lines):
            file.write(f"1 {label[i]} " + " ".join(f"1 {key}" for key in keys[i]) + "\n")
    names = ", ".join(f"c{i}" for i in range(26))
    config = write("slots.yaml", f"""
model:
  name: slots
  inputs: {{ids: "uint64[batch, 26]"}}
  model: |
    logit = mean(cast(ids, "float32"), 1) * param("w", [1])
  outputs: [logit]
loss: mean(square(logit * 0 - label))
optimizer: {{name: sgd, lr: 0}}
data:
  batch_size: 2048
  shuffle: false
  workers: 0
  train:
    kind: slots
    path: slots.txt
    slots: [label, {names}]
    fields:
      - {{name: label, scalar: true}}
      - {{name: ids, columns: [{names}], kind: keys, dtype: uint64}}
train: {{log_every: 1000, checkpoint_every: never}}
""")
    ours, theirs = [], []
    for _ in range(rounds):
        _, _, short, _ = train(config, "slots", "train.steps=10")
        _, _, long, _ = train(config, "slots", "train.steps=190")
        ours.append(180 * 2048 / (long - short))
        try:
            out, *_ = run(sys.executable, write("peer.py", PEER), "slots.txt")
            theirs.append(float(out.split("LINES ")[1].split()[0]))
        except (IndexError, SystemExit):
            theirs.append(0)
    print(f"slots: {max(ours):.0f} lines/s of a core, InMemoryDataset {max(theirs):.0f}, {max(ours) / max(max(theirs), 1):.2f} times")


def main():
    global BIN
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("arguments", nargs="*")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    parts = {"delta": delta, "removal": removal, "area": area, "slots": slots}
    names = [name for name in options.arguments if name in parts]
    folders = [name for name in options.arguments if name not in parts]
    if folders:
        BIN = os.path.abspath(folders[0])
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for name in names or parts:
            parts[name](options.rounds)


if __name__ == "__main__":
    main()
