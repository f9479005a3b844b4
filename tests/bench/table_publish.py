"""Time from a checkpoint to a served row that has changed, and bytes of a delta.

table_publish.py [--rows N] [--changed N] [--rounds N]: trains a table of N rows and then some of its keys, publishes
both checkpoints and asks a server that follows the store. Prints one JSON object. Programs: PADDLE_BIN or build/bin.
"""

import argparse
import glob
import json
import os
import statistics
import subprocess
import tempfile
import time
import urllib.request

BIN = os.path.abspath(os.environ.get("PADDLE_BIN", "build/bin"))
WIDTH, BATCH = 16, 10_000
CONFIG = """
model:
  name: wide
  inputs: {{user: "int64[batch]"}}
  model: return sum(sparse_embedding(user, {width}, name="user"), 1)
  outputs: [logit]
loss: binary_cross_entropy_with_logits(logit, label)
optimizer: {{name: adagrad, lr: 0.5}}
data:
  batch_size: {batch}
  shuffle: false
  train: {{kind: csv, path: data.csv, fields: [{{name: user, dtype: int64, scalar: true}}, {{name: label, scalar: true}}]}}
train: {{epochs: 1, checkpoint_every: {first}, keep_checkpoints: 5}}
"""


def run(*words, **named):
    subprocess.run([f"{BIN}/{words[0]}", *words[1:]], check=True, stdout=subprocess.DEVNULL, **named)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--changed", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    times, files, ratios = [], [], []
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        first = options.rows // BATCH
        with open("data.csv", "w") as f:
            f.write("user,label\n")
            f.writelines(f"{i},{i % 2}\n" for i in range(options.rows))
            f.writelines(f"{i},{i % 2}\n" for i in range(options.changed))
        with open("c.yaml", "w") as f:
            f.write(CONFIG.format(width=WIDTH, batch=BATCH, first=first))
        run("paddle-train", "c.yaml", "--output", "run")
        last = (options.rows + options.changed) // BATCH
        for number in range(options.rounds):
            store = f"store{number}"
            run("paddle-ps", "publish", f"run/checkpoints/{first}", "--to", store)
            with open("serve.log", "w") as log:
                server = subprocess.Popen([f"{BIN}/paddle-serve", store, "--follow", "--port", "0"], stdout=log)
            while "listening on" not in open("serve.log").read():
                time.sleep(0.05)
            url = open("serve.log").read().split("listening on ")[1].split()[0]

            def asked():
                body = json.dumps({"inputs": {"user": [1]}}).encode()
                with urllib.request.urlopen(urllib.request.Request(f"{url}/v1/predict", body)) as answer:
                    return json.load(answer)["outputs"]["logit"]

            before = asked()
            begun = time.monotonic()
            publisher = subprocess.Popen(
                [f"{BIN}/paddle-ps", "publish", f"run/checkpoints/{last}", "--to", store], stdout=subprocess.DEVNULL
            )
            while asked() == before:
                time.sleep(0.01)
            times.append(time.monotonic() - begun)
            publisher.wait()
            server.terminate()
            server.wait()
            paths = glob.glob(f"{store}/{last}/tables/user/delta-*/*")
            content = [open(path, "rb").read() for path in paths]
            ratios.append(sum(map(len, content)) / (options.changed * (8 + 4 * WIDTH)))
            begun = time.monotonic()
            for i, each in enumerate(content):
                with open(f"copy{i}", "wb") as f:
                    f.write(each)
                    f.flush()
                    os.fsync(f.fileno())
            for i in range(len(content)):
                open(f"copy{i}", "rb").read()
            files.append(time.monotonic() - begun)
    print(
        json.dumps(
            {
                "seconds": statistics.median(times),
                "file_seconds": statistics.median(files),
                "allowed": 3 * statistics.median(files) + 1,
                "delta_bytes_ratio": statistics.median(ratios),
            }
        )
    )


main()
