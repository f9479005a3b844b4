#!/usr/bin/env bash
# Kills a random rank of a parallel run at a random moment, repeatedly: without --restarts the
# run ends with exit code 7 within ten seconds and leaves no process; with them it continues and has
# the losses of a run that was never disturbed. KILLS (6) says how often.
set -u
command -v python3 > /dev/null || { echo "python3 is missing"; exit 77; }
folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT
python3 - "$folder" "${PADDLE_BIN:?}" "${KILLS:-6}" <<'P'
import json, os, random, signal, subprocess, sys, time

folder, bin_folder, kills = sys.argv[1], sys.argv[2], int(sys.argv[3])
random.seed(11)
with open(folder + "/rows.csv", "w") as f:
    f.write(",".join(f"p{i}" for i in range(16)) + ",label\n")
    for i in range(256):
        f.write(",".join(f"{random.gauss(0, 1):.4f}" for _ in range(16)) + f",{i % 4}\n")
with open(folder + "/net.yaml", "w") as f:
    f.write("""model:
  inputs: {x: "float32[batch, 16]"}
  model: |
    logits = linear(relu(linear(x, 64)), 4)
  outputs: [logits]
loss: cross_entropy(logits, label)
optimizer: {name: adamw, lr: 1e-3}
data:
  batch_size: 16
  train:
    kind: csv
    path: rows.csv
    fields: [{name: x, columns: ["p*"]}, {name: label, scalar: true, dtype: int64}]
train: {steps: 3000, log_every: 1, checkpoint_every: 300}
parallel: {data: 3}
""")


def start(name, *options):
    return subprocess.Popen(
        [bin_folder + "/paddle-launch", "-n", "3", *options, "paddle-train", folder + "/net.yaml",
         "--output", folder + "/" + name],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True)


def losses(name):
    found = {}
    for line in open(f"{folder}/{name}/metrics.jsonl"):
        line = json.loads(line)
        if line["kind"] == "train":
            found[line["step"]] = line["loss"]
    return found


def ranks(launcher):
    path = f"/proc/{launcher.pid}/task/{launcher.pid}/children"
    return [int(p) for p in open(path).read().split()] if os.path.exists(path) else []


def kill_one(launcher, latest):
    time.sleep(random.uniform(0.1, latest))
    children = ranks(launcher)
    if launcher.poll() is not None or not children:
        return None
    os.kill(random.choice(children), signal.SIGKILL)
    return time.monotonic()


begun = time.monotonic()
whole = start("whole")
assert whole.wait() == 0, whole.stderr.read()
length = time.monotonic() - begun
wanted = losses("whole")
assert len(wanted) == 3000
slowest = 0.0
for i in range(kills):
    name = f"run{i}"
    again = i % 2 == 1
    launcher = start(name, *(["--restarts", "1"] if again else []))
    at = kill_one(launcher, 0.8 * length)
    if at is None:
        print(f"kill {i}: the run was over before")
        launcher.wait()
        continue
    children = ranks(launcher)
    if again:
        status = launcher.wait()
        errors = launcher.stderr.read()
        assert status == 0, f"kill {i}: status {status}: {errors}"
        assert "restart 1 of 1" in errors, errors
        assert losses(name) == wanted, f"kill {i}: other losses after the restart"
        print(f"kill {i}: continued from the last checkpoint with the same losses")
    else:
        status = launcher.wait()
        took = time.monotonic() - at
        slowest = max(slowest, took)
        errors = launcher.stderr.read().strip().split("\n")
        if status == 0 and losses(name) == wanted:  # the rank had written all when it was killed
            print(f"kill {i}: the run was over before")
            continue
        assert status == 7, f"kill {i}: status {status}: {errors}"
        assert "was killed by signal 9" in errors[-1], errors
        assert took < 10, f"kill {i}: the run ended {took:.1f} s later"
        print(f"kill {i}: {errors[-1]}, {took:.2f} s later")
    for child in children:
        assert not os.path.exists(f"/proc/{child}"), f"kill {i}: process {child} is left"
print(f"{kills} kills, the run was ended at most {slowest:.2f} s later")
P
