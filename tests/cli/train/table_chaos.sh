#!/usr/bin/env bash
# Servers and workers of tables that are killed at random moments, and servers that are stopped: rows,
# shows and clicks are those of a recount from the data. Gradients are integers, so that each update
# that is lost or counted twice shows, in steps of all workers as well as in asynchronous ones.
#   table_chaos.sh [KILLS OF SERVERS [KILLS OF WORKERS [SEED]]]
set -uo pipefail
command -v python3 > /dev/null || { echo "python3 is missing"; exit 77; }
source "$(dirname "${BASH_SOURCE[0]}")/../expect.bash"
cd "$folder" || exit 1
cat > c.yaml <<'Y'
model:
  name: counts
  inputs: {user: "uint64[batch]", item: "int64[batch]"}
  model: |
    u = sparse_embedding(user, 2, name="user", weight_init=zeros)
    i = sparse_embedding(item, 3, name="item", weight_init=zeros)
    total = sum(u, 1) + sum(i, 1)
  outputs: [total]
loss: mean(total * one)
optimizer: {name: sgd, lr: 32}   # a key of a batch of 32 has the gradient of its occurrences / 32
tables: {user: {statistics: {show: 1, click: label}}}
data:
  batch_size: 32
  shuffle: false
  train:
    kind: csv
    path: rows.csv
    fields:
      - {name: user, scalar: true, dtype: uint64}
      - {name: item, scalar: true, dtype: int64}
      - {name: label, scalar: true, dtype: float32}
      - {name: one, scalar: true, dtype: float32}
train: {epochs: 1, checkpoint_every: 100, log_every: 1000}
Y
cat > chaos.py <<'P'
import json, os, random, signal, struct, subprocess, sys, time
launch, server_kills, worker_kills, seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
random.seed(seed)
SAMPLES, WORKERS, SERVERS = 48000, 2, 2
rows = [(int(random.paretovariate(0.3)) % 2**64, random.randrange(-500, 500), int(random.random() < 0.3)) for _ in range(SAMPLES)]
with open("rows.csv", "w") as f:
    f.write("user,item,label,one\n")
    f.writelines(f"{u},{i},{l},1\n" for u, i, l in rows)

MODES = [[], ["parameter_server.mode=async", "parameter_server.merge=3"],
         ["parameter_server.mode=async", "parameter_server.ahead=0", "parameter_server.staleness=2"]]

def processes(launcher):
    """The children of the launcher: servers, workers."""
    out = ([], [])
    for line in subprocess.run(["pgrep", "-P", str(launcher)], capture_output=True, text=True).stdout.split():
        try:
            environment = open(f"/proc/{line}/environ", "rb").read()
        except OSError:
            continue
        if b"PADDLE_SERVER=" in environment: out[0].append(int(line))
        elif b"PADDLE_RANK=" in environment: out[1].append(int(line))
    return out

def tensors(path):
    data = open(path, "rb").read()
    size = 8 + struct.unpack("<Q", data[:8])[0]
    kinds = {"U64": "Q", "I64": "q", "F32": "f"}
    out = {}
    for k, v in json.loads(data[8:size]).items():
        if k == "__metadata__" or v["dtype"] not in kinds: continue
        raw = data[size + v["data_offsets"][0] : size + v["data_offsets"][1]]
        out[k] = struct.unpack("<" + kinds[v["dtype"]] * (len(raw) // struct.calcsize(kinds[v["dtype"]])), raw)
    return out

def run(number, wanted):
    """Trains, and kills servers and workers, up to the wanted numbers; how many were killed."""
    killed = [0, 0]
    output = f"run{number}"
    with open(f"{output}.log", "w") as log:
        process = subprocess.Popen(
            [launch, "--servers", str(SERVERS), "-n", str(WORKERS), "--restarts", "1000", "paddle-train", "c.yaml",
             "parallel.data=2", f"parameter_server.lanes={random.choice([2, 3, 8])}", *MODES[number % len(MODES)], "--output", output],
            stdout=log, stderr=subprocess.STDOUT)
        while process.poll() is None:
            time.sleep(random.uniform(0.02, 0.5))
            left = [w - k for w, k in zip(wanted, killed)]
            if sum(left) <= 0: break
            kind = random.choices([0, 1], weights=[max(0, x) for x in left])[0]
            targets = processes(process.pid)[kind]
            if not targets: continue
            target = random.choice(targets)
            try:
                if kind == 0 and random.random() < 0.1:
                    os.kill(target, signal.SIGSTOP)
                    time.sleep(0.3)
                    os.kill(target, signal.SIGCONT)
                else:
                    os.kill(target, signal.SIGKILL)
                    killed[kind] += 1
            except ProcessLookupError:
                pass
        try:
            status = process.wait(timeout=300)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGTERM)
            raise
    if status != 0: sys.exit(f"run {number} ended with {status}:\n" + "".join(open(f"{output}.log").readlines()[-15:]))
    t = tensors(f"{output}/checkpoints/latest/model.safetensors")
    o = tensors(f"{output}/checkpoints/latest/optimizer.safetensors")
    for name, column, width in (("user", 0, 2), ("item", 1, 3)):
        count = {}
        for row in rows:
            seen = count.setdefault(row[column], [0, 0]); seen[0] += 1; seen[1] += row[2]
        keys = t[f"{name}.keys"]
        assert list(keys) == sorted(count), f"{output}: other keys of {name}"
        for i, key in enumerate(keys):
            got = t[f"{name}.weight"][width * i : width * (i + 1)]
            assert got == (-count[key][0],) * width, f"{output}: {name} {key}: {got}, counted {count[key]}"
            if name == "user":
                got = [o[f"optimizer/user.weight/{n}"][i] for n in ("show", "click")]
                assert got == count[key], f"{output}: {name} {key}: {got}, counted {count[key]}"
    return killed

number, left = 0, [server_kills, worker_kills]
while sum(left) > 0:
    killed = run(number, [min(left[0], 24, max(1, server_kills // 3)), min(left[1], 6)])
    left = [max(0, l - k) for l, k in zip(left, killed)]
    print(f"run {number}: {killed[0]} servers and {killed[1]} workers were killed, {left[0]} and {left[1]} are left", flush=True)
    number += 1
P
python3 chaos.py "$bin/paddle-launch" "${1:-6}" "${2:-2}" "${3:-1}" || fail "chaos"
finish
