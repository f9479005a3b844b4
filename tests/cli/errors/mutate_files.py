"""Damages files and lets the tools read them: mutate_files.py BIN COUNT [SEED]"""

import concurrent.futures
import os
import random
import resource
import shutil
import struct
import subprocess
import sys
import tempfile
import zipfile

binaries, count = sys.argv[1], int(sys.argv[2])
seed = int(sys.argv[3]) if len(sys.argv) > 3 else 4711
SECONDS, MEMORY, MOST_LINES = 60, 6 << 30, 12
train, infer = os.path.join(binaries, "paddle-train"), os.path.join(binaries, "paddle-infer")
formats = "tests/data/formats"


def limits():
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def run(command):
    return subprocess.run(command, capture_output=True, timeout=SECONDS, preexec_fn=limits)


NUMBERS = """
model:
  inputs: {x: "float32[batch, 2]"}
  model: [{linear: 3}]
  outputs: [logits]
loss: cross_entropy(logits, label)
optimizer: {name: adam, lr: 0.1}
data:
  batch_size: 8
  train: {kind: csv, path: rows.csv, fields: [{name: x, columns: [a, b], scaling: standard}, {name: label, scalar: true, dtype: int64}]}
train: {epochs: 2, checkpoint_every: 1}
"""


def prepare(folder):
    """Good files, and for each of them the command that reads it (with FOLDER as its copy)."""
    with open(f"{folder}/run.yaml", "w") as f:
        f.write(NUMBERS)
    with open(f"{folder}/rows.csv", "w") as f:
        f.write("a,b,label\n" + "".join(f"{i * 0.25},{1 - i * 0.5},\"{i % 3}\"\n" for i in range(24)))

    def npy(descr, shape, data):
        header = str({"descr": descr, "fortran_order": False, "shape": shape}).encode()
        header += b" " * (-(10 + len(header) + 1) % 64) + b"\n"
        return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + data

    arrays = {"x": npy("<f4", (24, 2), struct.pack("<48f", *[i / 9 for i in range(48)])),
              "label": npy("<i8", (24,), struct.pack("<24q", *[i % 3 for i in range(24)]))}
    for name, method in (("stored", zipfile.ZIP_STORED), ("deflated", zipfile.ZIP_DEFLATED)):
        with zipfile.ZipFile(f"{folder}/{name}.npz", "w", method) as z:
            for key, content in arrays.items():
                z.writestr(key + ".npy", content)
    for key, content in arrays.items():
        with open(f"{folder}/{key}.npy", "wb") as f:
            f.write(content)
    for name in ("rgb.png", "palette.png", "rgb.jpg", "cmyk.jpg", "images.idx", "images.idx.gz"):
        os.makedirs(f"{folder}/pictures", exist_ok=True)
        shutil.copy(f"{formats}/{name}", f"{folder}/pictures/{name}")
    done = run([train, f"{folder}/run.yaml", "--output", f"{folder}/run"])
    assert done.returncode == 0, done.stderr
    fresh = ["--overwrite", "--output", "FOLDER/new", "--threads", "1"]
    tasks = [("rows.csv", [train, "FOLDER/run.yaml"] + fresh)]
    for name in ("stored", "deflated"):
        tasks.append((f"{name}.npz", [train, "FOLDER/run.yaml", f"data.train={{kind: npz, path: FOLDER/{name}.npz}}"] + fresh))
        tasks.append((f"{name}.npz", [infer, "FOLDER/run/model", f"FOLDER/{name}.npz"]))
    for name in ("x.npy", "label.npy"):
        tasks.append((name, [train, "FOLDER/run.yaml", "data.train={kind: npy, files: {x: FOLDER/x.npy, label: FOLDER/label.npy}}"] + fresh))
    for name in ("rgb.png", "palette.png", "rgb.jpg", "cmyk.jpg"):
        tasks.append((f"pictures/{name}", [train, "FOLDER/run.yaml", f"data.train={{kind: images, files: [FOLDER/pictures/{name}]}}", "--check-data"]))
    for name in ("images.idx", "images.idx.gz"):
        tasks.append((f"pictures/{name}", [train, "FOLDER/run.yaml", f"data.train={{kind: idx, images: FOLDER/pictures/{name}}}", "--check-data"]))
    for name in sorted(os.listdir(f"{folder}/run/model")):
        tasks.append((f"run/model/{name}", [infer, "FOLDER/run/model", "FOLDER/rows.csv"]))
        tasks.append((f"run/model/{name}", [infer, "FOLDER/run/model", "--benchmark", "1", "--batch", "2"]))
    tasks.append(("run/model/model.safetensors", [train, "FOLDER/run.yaml", "--init", "FOLDER/run/model/model.safetensors"] + fresh))
    tasks.append(("run/model/module.txt", [os.path.join(binaries, "paddle-ir"), "verify", "FOLDER/run/model/module.txt"]))
    tasks.append(("run/model/module.txt", [os.path.join(binaries, "paddle-ir"), "opt", "FOLDER/run/model/module.txt"]))
    newest = max((s for s in os.listdir(f"{folder}/run/checkpoints") if s.isdigit()), key=int)
    files = [f for f in os.listdir(f"{folder}/run/checkpoints/{newest}") if f != "inference"]
    for name in sorted(files):
        tasks.append((f"run/checkpoints/{newest}/{name}", [train, "--resume", "FOLDER/run", "train.epochs=3", "--threads", "1"]))
    for name in ("metrics.jsonl", "config.yaml", "run.json"):
        tasks.append((f"run/{name}", [train, "--resume", "FOLDER/run", "train.epochs=3", "--threads", "1"]))
    return tasks


def damage(content, rng):
    data = bytearray(content)
    for _ in range(rng.choice([1, 1, 2, 4])):
        at = rng.randrange(len(data)) if data else 0
        kind = rng.randrange(8)
        if kind == 0:
            data = data[:at]
        elif kind == 1:
            data[at:at] = data[at : at + rng.randrange(1, 64)]
        elif kind == 2:
            del data[at : at + rng.randrange(1, 16)]
        elif kind == 3 and data:
            data[at : at + 4] = struct.pack("<I", rng.choice([0, 1, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF]))
        elif kind == 4 and data:
            data[at : at + 8] = struct.pack("<Q", rng.choice([0, 1 << 31, 1 << 40, (1 << 63) - 1, (1 << 64) - 1]))
        elif kind == 5 and data:  # another digit: a number in a text
            digits = [i for i, c in enumerate(data) if 48 <= c <= 57]
            if digits:
                data[rng.choice(digits)] = rng.choice(b"0123456789-.e")
        elif data:
            data[at] ^= 1 << rng.randrange(8)
    return bytes(data)


def judge(number, base, task, content):
    name, command = task
    folder = tempfile.mkdtemp(prefix="paddle_damaged_")
    try:
        shutil.copytree(base, folder, dirs_exist_ok=True, symlinks=True)
        with open(f"{folder}/{name}", "wb") as f:
            f.write(content)
        done = run([word.replace("FOLDER", folder) for word in command])
    except subprocess.TimeoutExpired:
        return f"takes more than {SECONDS} seconds"
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    errors = done.stderr.decode("utf-8", "replace").strip("\n")
    if done.returncode not in (0, 2, 3, 4, 5, 6):
        return f"status {done.returncode}: {errors[:400]}"
    if done.returncode and not any(line.startswith("error: ") for line in errors.split("\n")):
        return f"no error is reported: {errors[:400]}"
    if done.returncode and len(errors.split("\n")) > MOST_LINES:
        return f"too much is reported: {errors[:400]}"
    return None


def main():
    rng = random.Random(seed)
    base = tempfile.mkdtemp(prefix="paddle_whole_")
    keep = os.environ.get("KEEP_MUTATIONS")
    try:
        tasks = prepare(base)
        jobs = []
        for number in range(count):
            task = tasks[number % len(tasks)]
            with open(f"{base}/{task[0]}", "rb") as f:
                jobs.append((number, base, task, damage(f.read(), rng)))
        failed = 0
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            for job, wrong in zip(jobs, pool.map(lambda j: judge(*j), jobs)):
                if wrong:
                    failed += 1
                    print(f"FAIL: damage {job[0]} (seed {seed}) of {job[2][0]}: {' '.join(job[2][1])}: {wrong}")
                    if keep:
                        with open(f"{keep}/{job[0]}.{os.path.basename(job[2][0])}", "wb") as f:
                            f.write(job[3])
        print(f"{count - failed} of {count} damaged files end as documented")
        return failed > 0
    finally:
        shutil.rmtree(base, ignore_errors=True)


sys.exit(main())
