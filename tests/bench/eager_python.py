#!/usr/bin/env python3
"""Compares the Python package with PyTorch on one thread, by turns in one process.

Additions of float32 [8] without and with a record, 100 additions forward and back, a product with a number, a
training step of a small net (batch 32, 3 layers, AdamW); a call of x + 1 that is compiled, the first call of a compiled
function of 200 lines, and the time to import the package in a new process.

  PYTHONPATH=build/python PYTHON_WITH_TORCH tests/bench/eager_python.py [--rounds N]
"""
import argparse
import importlib.util
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time

import paddle_toolchain as paddle
import torch
from paddle_toolchain import nn


def adding(x, y):
    def body(times):
        for _ in range(times):
            x + y

    return body


def scaling(x):
    def body(times):
        for _ in range(times):
            x * 2.0

    return body


def there_and_back(w, y, clear):
    def body(times):
        for _ in range(times):
            total = w
            for _ in range(100):
                total = total + y
            total.sum().backward()
            clear(w)

    return body


def training(net, loss_of, optimizer, clear, x, labels):
    def body(times):
        for _ in range(times):
            loss_of(net(x), labels).backward()
            optimizer.step()
            clear()

    return body


def our_net():
    net = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 10))
    optimizer = paddle.optimizer.AdamW(1e-3, parameters=net.parameters())
    labels = paddle.to_tensor([i % 10 for i in range(32)])
    return training(net, nn.functional.cross_entropy, optimizer, optimizer.clear_grad, paddle.uniform([32, 64]), labels)


def their_net():
    net = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Linear(128, 128), torch.nn.ReLU(),
                              torch.nn.Linear(128, 10))
    optimizer = torch.optim.AdamW(net.parameters(), 1e-3)
    labels = torch.tensor([i % 10 for i in range(32)])
    return training(net, torch.nn.functional.cross_entropy, optimizer, optimizer.zero_grad, torch.rand(32, 64), labels)


def cases():
    x, y = paddle.to_tensor([1.0] * 8), paddle.to_tensor([2.0] * 8)
    w = paddle.to_tensor([1.0] * 8, stop_gradient=False)
    tx, ty, tw = torch.ones(8), torch.full((8,), 2.0), torch.ones(8, requires_grad=True)
    return [("add", adding(x, y), adding(tx, ty), 50000),
            ("add, recorded", adding(w, y), adding(tw, ty), 50000),
            ("times a number", scaling(x), scaling(tx), 50000),
            ("100 adds and back", there_and_back(w, y, lambda t: t.clear_grad()),
             there_and_back(tw, ty, lambda t: setattr(t, "grad", None)), 100),
            ("training step", our_net(), their_net(), 100),
            ("compiled x + 1", calling(paddle.jit.to_static(lambda t: t + 1), x), calling(torch.compile(lambda t: t + 1), tx), 5000)]


def calling(function, x):
    def body(times):
        for _ in range(times):
            function(x)

    return body


def first_call_seconds():
    """Of a function of 200 lines, a quarter of them decisions by tensors."""
    lines = ["def model(x):"]
    for _ in range(50):
        lines += ["    y = x * 1.01 + 0.5", "    if y.sum() > 0:", "        y = y - 0.5", "    x = y.tanh()"]
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.py")
        with open(path, "w", encoding="utf-8") as file:
            file.write("\n".join([*lines, "    return x"]) + "\n")
        spec = importlib.util.spec_from_file_location("model", path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        static = paddle.jit.to_static(module.model)
        begin = time.perf_counter()
        static(paddle.ones([64]))
        seconds = time.perf_counter() - begin
        assert static.reason is None, static.reason
        return seconds


def microseconds(body, times):
    body(times // 10 + 1)
    begin = time.perf_counter_ns()
    body(times)
    return (time.perf_counter_ns() - begin) / times / 1000


def import_milliseconds(statement):
    """Of the processor, since time on the clock depends on other programs."""
    begin = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", statement], check=True)
    end = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (end.ru_utime + end.ru_stime - begin.ru_utime - begin.ru_stime) * 1000


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    torch.set_num_threads(1)
    paddle.set_num_threads(1)
    print(f"{'microseconds':18} {'ours':>9} {'torch':>9} {'ratio':>6}")
    for name, ours, theirs, times in cases():
        pairs = [(microseconds(ours, times), microseconds(theirs, times)) for _ in range(rounds)]
        mine, other = (statistics.median(column) for column in zip(*pairs))
        print(f"{name:18} {mine:9.2f} {other:9.2f} {mine / other:6.2f}")
    print(f"first call of 200 lines: {statistics.median(first_call_seconds() for _ in range(3)):.2f} s")
    pairs = [(import_milliseconds("import paddle_toolchain"), import_milliseconds("pass")) for _ in range(2 * rounds)]
    ours, bare = (statistics.median(column) for column in zip(*pairs))
    print(f"import: {ours - bare:.0f} ms more than Python's start of {bare:.0f} ms")


if __name__ == "__main__":
    main()
