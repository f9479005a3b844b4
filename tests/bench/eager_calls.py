#!/usr/bin/env python3
"""Compares eager calls on float32 [8] tensors with PyTorch, by turns in one run, each on one thread.

An addition without and with a record for its gradient, and the way forward and back through 100
additions and a sum. A ratio is the median of ours by the median of theirs.

  eager_calls.py PROGRAM [--rounds N] [--calls N] [--limit RATIO]

PROGRAM is build/bin/bench_eager_calls (target of that name). PADDLE_BENCH_PYTHON names a Python with
torch. Exit code 1 if the ratio of an addition is above the limit (1.5).
"""
import argparse
import json
import os
import statistics
import subprocess
import sys

TORCH = """
import json, sys, time, torch
torch.set_num_threads(1)
calls = int(sys.argv[1])
x, y, w = torch.ones(8), torch.ones(8), torch.ones(8, requires_grad=True)

def add(times):
    for _ in range(times):
        x + y

def add_recorded(times):
    for _ in range(times):
        w + y

def backward_100(times):
    for _ in range(times):
        total = w
        for _ in range(100):
            total = total + y
        total.sum().backward()
        w.grad = None

def nanoseconds(body, times):
    body(times // 10 + 1)
    begin = time.perf_counter_ns()
    body(times)
    return (time.perf_counter_ns() - begin) / times

print(json.dumps({"add": nanoseconds(add, calls), "add_recorded": nanoseconds(add_recorded, calls),
                  "backward_100": nanoseconds(backward_100, calls // 100 + 1)}))
"""


def measured(command):
    done = subprocess.run(command, capture_output=True, text=True, env=dict(os.environ, OMP_NUM_THREADS="1"))
    if done.returncode != 0:
        last = (done.stderr.strip() or "no message").splitlines()[-1]
        sys.exit(f"error: {command[0]} ended with status {done.returncode}: {last}")
    return json.loads(done.stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--calls", type=int, default=100000)
    parser.add_argument("--limit", type=float, default=1.5)
    arguments = parser.parse_args()
    python = os.environ.get("PADDLE_BENCH_PYTHON", sys.executable)
    ours, theirs = [], []
    for _ in range(arguments.rounds):
        ours.append(measured([arguments.program, str(arguments.calls)]))
        theirs.append(measured([python, "-c", TORCH, str(arguments.calls)]))
    print(f"{'':14} {'ours ns':>10} {'torch ns':>10} {'ratio':>7}")
    above = False
    for key in ours[0]:
        mine = statistics.median(line[key] for line in ours)
        other = statistics.median(line[key] for line in theirs)
        print(f"{key:14} {mine:10.0f} {other:10.0f} {mine / other:7.2f}")
        above = above or (key != "backward_100" and mine / other > arguments.limit)
    return 1 if above else 0


if __name__ == "__main__":
    sys.exit(main())
