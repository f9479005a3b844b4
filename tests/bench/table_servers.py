#!/usr/bin/env python3
"""Figures of servers of tables.

    tests/bench/table_servers.py [BIN] [bits] [log] [hostile] [replays] [order] [delay] [--rounds N]

BIN is the folder of the programs (build/bin). Without names all parts are measured. Rows a second and
restarts are measured by tests/bench/table_servers.cc, kills by tests/cli/train/table_chaos.sh.

bits     checkpoints for 0, 1, 2, 3 and 8 servers with 1 to 16 lanes, for 1 and 2 workers
log      training samples a second with servers that log, against servers that do not
hostile  training samples a second while 1,000 connections are idle and others send damaged
         handshakes, against those without, and the memory of the server
replays  asynchronous runs of four workers with two servers, of which some are killed, against their
         replays; bytes of the order of messages against those of gradients
order    processor time of a run with an order of messages, against one without
delay    steps a second with 5 ms more for each message, with rows that are asked for a step before
         against those that are asked for after the step before
"""

import argparse
import filecmp
import os
import queue
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BIN = os.path.join(ROOT, "build", "bin")

CONFIG = """
model:
  name: clicks
  inputs: {ids: "uint64[batch, 26]"}
  model: |
    e = sparse_embedding(ids, 16, name="ids", weight_init=normal(0, 0.01))
    x = relu(linear(reshape(e, [batch, 416]), 64))
    logit = sum(linear(x, 1), 1)
  outputs: [logit]
loss: binary_cross_entropy_with_logits(logit, label)
optimizer: {name: adagrad, lr: 0.05}
clip: {global_norm: 1}
data:
  batch_size: 2048
  shuffle: false
  train:
    kind: slots
    path: slots.txt
    slots: [label, SLOTS]
    fields:
      - {name: label, columns: label, scalar: true}
      - {name: ids, columns: [SLOTS], kind: keys, dtype: uint64}
train: {steps: 1, log_every: 1000, checkpoint_every: never}
"""


def write_data(samples):
    import random
    random.seed(1)
    names = ", ".join(f"s{i}" for i in range(26))
    with open("c.yaml", "w", encoding="utf-8") as file:
        file.write(CONFIG.replace("SLOTS", names))
    with open("slots.txt", "w", encoding="utf-8") as file:
        for _ in range(samples):
            keys = (int(random.paretovariate(0.3)) % 10**7 * 26 + i for i in range(26))
            file.write(f"1 {random.randrange(2)} " + " ".join(f"1 {key}" for key in keys) + "\n")


def run(*command, **environment):
    begun = time.time()
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **environment})
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: {(done.stdout + done.stderr)[-2000:]}")
    return time.time() - begun


def launched(output, steps, servers, *keys):
    return run(f"{BIN}/paddle-launch", "--servers", str(servers), "-n", "1", "paddle-train", "c.yaml", f"train.steps={steps}",
               "train.epochs=1000", "--output", output, "--overwrite", "--threads", "1", *keys)


def samples_a_second(output, *keys):
    short, long = 10, 110
    return 2048 * (long - short) / (launched(output, long, 1, *keys) - launched(output, short, 1, *keys))


def bits(_rounds):
    write_data(2048 * 4)
    same = 0
    for workers in (1, 2):
        train = [f"{BIN}/paddle-train", "c.yaml", "train.steps=8", "train.epochs=4", f"parallel.data={workers}", "data.batch_size=1001"]
        train += ["--simulate", str(workers)] if workers > 1 else []
        run(*train, "--output", f"ranks{workers}")
        for servers in (1, 2, 3, 8):
            for lanes in sorted({servers, 8, 16}):
                output = f"servers{workers}-{servers}-{lanes}"
                run(*train, "--servers", str(servers), f"parameter_server.lanes={lanes}", "--output", output)
                for name in ("model.safetensors", "optimizer.safetensors"):
                    if not filecmp.cmp(f"ranks{workers}/checkpoints/8/{name}", f"{output}/checkpoints/8/{name}", shallow=False):
                        sys.exit(f"bits: {output} differs in {name}")
                same += 1
    print(f"bits: {same} runs with servers have the checkpoints of the runs without")


def log(rounds):
    write_data(2048 * 20)
    speeds = {"none": [], "process": [], "machine": []}
    for _ in range(rounds):
        for durability, of in speeds.items():
            of.append(samples_a_second("log", f"parameter_server.durability={durability}"))
    median = {name: statistics.median(of) for name, of in speeds.items()}
    print(f"log: {median['none']:.0f} samples/s without, {median['process'] / median['none']:.2f} times with it, "
          f"{median['machine'] / median['none']:.2f} times when it is synced")


def hostile(rounds):
    write_data(2048 * 20)
    speeds = {False: [], True: []}
    most = 0
    for _ in range(rounds):
        for disturbed, of in speeds.items():
            with socket.socket() as free:
                free.bind(("127.0.0.1", 0))
                port = free.getsockname()[1]
            environment = {**os.environ, "PADDLE_RENDEZVOUS_TOKEN": "a", "PADDLE_SERVER_ADDRESSES": f"127.0.0.1:{port}"}
            times = []
            for steps in (10, 210):
                server = subprocess.Popen([f"{BIN}/paddle-ps", "serve", "c.yaml", "--listen", f"127.0.0.1:{port}", "-o", "hostile"],
                                          env=environment, stdout=subprocess.DEVNULL)
                ends, others = threading.Event(), []

                def disturb():
                    idle = []
                    while not ends.is_set():
                        try:
                            other = socket.create_connection(("127.0.0.1", port), timeout=1)
                            if len(idle) < 1000:
                                idle.append(other)
                            else:
                                other.sendall(os.urandom(400))
                                other.close()
                                time.sleep(0.01)
                        except OSError:
                            time.sleep(0.01)

                if disturbed:
                    others.append(threading.Thread(target=disturb))
                    others[0].start()
                    time.sleep(2)
                times.append(run(f"{BIN}/paddle-train", "c.yaml", f"train.steps={steps}", "train.epochs=1000", "--output", "hostile",
                                 "--overwrite", "--threads", "1", **{k: environment[k] for k in ("PADDLE_RENDEZVOUS_TOKEN", "PADDLE_SERVER_ADDRESSES")}))
                status = open(f"/proc/{server.pid}/status", encoding="utf-8").read() if server.poll() is None else ""
                found = re.search(r"VmHWM:\s*(\d+)", status)
                most = max(most, int(found.group(1)) if found else 0)
                ends.set()
                for other in others:
                    other.join()
                server.wait(timeout=20)
            of.append(2048 * 200 / (times[1] - times[0]))
    calm, disturbed = (statistics.median(speeds[key]) for key in (False, True))
    print(f"hostile: {calm:.0f} samples/s, {disturbed / calm:.2f} times with 1,000 idle connections and damaged handshakes; "
          f"the server had at most {most // 1024} MiB")


def batch_keys(samples):
    """Numbers of distinct keys of batches of `samples`."""
    lines = [line.split() for line in open("slots.txt", encoding="utf-8")]
    for first in range(0, len(lines) - samples + 1, samples):
        yield len({key for line in lines[first : first + samples] for key in line[3::2]})


def replays(rounds):
    workers, steps = 4, 40
    write_data(2048 * steps // 4)
    ratios, killed = [], 0
    runs = max(rounds, 1)
    for i in range(runs):
        mode = ["parameter_server.mode=geo", "parameter_server.geo.every=5"] if i % 2 else ["parameter_server.mode=async"]
        command = [f"{BIN}/paddle-launch", "--servers", "2", "-n", str(workers), "--restarts", "9", "paddle-train", "c.yaml",
                   f"train.steps={steps}", "train.epochs=4", f"parallel.data={workers}", "clip=",
                   "train.checkpoint_every=10", *mode, "--threads", "1", "--output", f"run{i}"]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        if i % 6 == 5:
            time.sleep(3)
            children = subprocess.run(["pgrep", "-P", str(process.pid)], capture_output=True, text=True, check=False).stdout.split()
            if children:
                os.kill(int(children[0]), 9)
                killed += 1
        if process.wait(timeout=600) != 0:
            sys.exit(f"replays: {' '.join(command)} has failed")
        run(f"{BIN}/paddle-train", "--replay", f"run{i}", "--check", "--simulate", str(workers), "--output", f"again{i}")
        for name in ("model.safetensors", "optimizer.safetensors"):
            if not filecmp.cmp(f"run{i}/checkpoints/{steps}/{name}", f"again{i}/checkpoints/{steps}/{name}", shallow=False):
                sys.exit(f"replays: run{i} differs from its replay in {name}")
        written = sum(os.path.getsize(os.path.join(of, name)) for of, _, names in os.walk(f"run{i}/order") for name in names)
        pushed = sum(keys * (8 + 4 * 16) for keys in batch_keys(2048 // workers)) * steps / (steps // 4)
        if mode[0].endswith("async") and i % 6 != 5:
            ratios.append(written / pushed)
    print(f"replays: {runs} runs, {killed} of them with a killed process, have the checkpoints of their replays; the order has "
          f"{statistics.median(ratios):.5f} times the bytes of keys and gradients")


def order(rounds):
    write_data(2048 * 20)
    times = {"true": [], "false": []}

    def processor_time():
        return sum(os.times()[2:4])  # of processes that have ended

    for _ in range(rounds):
        for value, of in times.items():
            begun = processor_time()
            launched("order", 200, 1, "clip=", "parameter_server.mode=async", f"parameter_server.order_log={value}")
            of.append(processor_time() - begun)
    median = {name: statistics.median(of) for name, of in times.items()}
    print(f"order: {median['false']:.1f} s of processor time without, {median['true'] / median['false']:.3f} times with it")


class DelayingProxy:
    """Passes what clients and a server send on, some time later."""

    def __init__(self, server_port, seconds):
        self.target, self.seconds = server_port, seconds
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
                server = socket.create_connection(("127.0.0.1", self.target))
            except OSError:
                return
            for a, b in ((client, server), (server, client)):
                for each in (a, b):
                    each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self.pump(a, b)

    def pump(self, source, sink):
        waiting = queue.Queue()

        def read():
            while True:
                try:
                    data = source.recv(1 << 20)
                except OSError:
                    data = b""
                waiting.put((time.monotonic() + self.seconds, data))
                if not data:
                    return

        def write():
            while True:
                at, data = waiting.get()
                time.sleep(max(0.0, at - time.monotonic()))
                try:
                    if not data:
                        sink.shutdown(socket.SHUT_WR)
                        return
                    sink.sendall(data)
                except OSError:
                    return

        for body in (read, write):
            threading.Thread(target=body, daemon=True).start()


def delayed(steps, *keys):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    token = {"PADDLE_RENDEZVOUS_TOKEN": "a"}
    keys = ("clip=", *keys)
    server = subprocess.Popen([f"{BIN}/paddle-ps", "serve", "c.yaml", *keys, "--listen", f"127.0.0.1:{port}", "-o", "delay"],
                              env={**os.environ, **token}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while True:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            break
        except OSError:
            time.sleep(0.1)
    proxy = DelayingProxy(port, 0.005)
    seconds = run(f"{BIN}/paddle-train", "c.yaml", *keys, f"train.steps={steps}", "train.epochs=1000", "--output", "delay", "--overwrite",
                  "--threads", "1", PADDLE_SERVER_ADDRESSES=f"127.0.0.1:{proxy.port}", **token)
    server.wait(timeout=30)
    proxy.listener.close()
    return seconds


def delay(rounds):
    write_data(256 * 40)
    forms = {"sync": ["parameter_server.mode=async", "parameter_server.ahead=0"], "ahead": ["parameter_server.mode=async"]}
    speeds = {name: [] for name in forms}
    for _ in range(rounds):
        for name, keys in forms.items():
            keys = [*keys, "data.batch_size=256"]
            speeds[name].append(100 / (delayed(110, *keys) - delayed(10, *keys)))
    median = {name: statistics.median(of) for name, of in speeds.items()}
    print(f"delay: {median['sync']:.1f} steps/s when rows are asked for after each step, {median['ahead'] / median['sync']:.2f} times "
          "when they are asked for a step before")


def main():
    global BIN
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("arguments", nargs="*")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    parts = {"bits": bits, "log": log, "hostile": hostile, "replays": replays, "order": order, "delay": delay}
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
