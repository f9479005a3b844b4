#!/usr/bin/env python3
"""Figures of servers of tables.

    tests/bench/table_servers.py [BIN] [bits] [log] [hostile] [--rounds N]

BIN is the folder of the programs (build/bin). Without names all parts are measured. Rows a second and
restarts are measured by tests/bench/table_servers.cc, kills by tests/cli/train/table_chaos.sh.

bits     checkpoints for 0, 1, 2, 3 and 8 servers with 1 to 16 lanes, for 1 and 2 workers
log      training samples a second with servers that log, against servers that do not
hostile  training samples a second while 1,000 connections are idle and others send damaged
         handshakes, against those without, and the memory of the server
"""

import argparse
import filecmp
import os
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


def main():
    global BIN
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("arguments", nargs="*")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    parts = {"bits": bits, "log": log, "hostile": hostile}
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
