#!/usr/bin/env bash
# Faults of one rank of a parallel run: a full disk, another config, another model file, a bad
# sample in one rank's rows, a stopped peer, Ctrl-C. One line from one place, the documented exit
# code, no process left, and a checkpoint from which the run continues with the undisturbed losses.
set -uo pipefail
command -v python3 > /dev/null || { echo "python3 is missing"; exit 77; }
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
source "$here/../expect.bash"
launch="$bin/paddle-launch"
python3 - "$folder" <<'P'
import random, sys
random.seed(9)
lines = [",".join(f"p{i}" for i in range(32)) + ",label"]
for i in range(64):
    lines.append(",".join(f"{random.gauss(0, 1):.4f}" for _ in range(32)) + f",{i % 4}")
open(sys.argv[1] + "/rows.csv", "w").write("\n".join(lines) + "\n")
lines[60] = lines[60].rsplit(",", 1)[0] + ",9"  # a class that the model does not have
open(sys.argv[1] + "/bad.csv", "w").write("\n".join(lines) + "\n")
P
cat > "$folder/net.yaml" <<'Y'
model:
  inputs: {x: "float32[batch, 32]"}
  model: |
    logits = linear(relu(linear(x, 64)), 4)
  outputs: [logits]
loss: cross_entropy(logits, label)
optimizer: {name: adamw, lr: 1e-2}
data:
  batch_size: 8
  train:
    kind: csv
    path: rows.csv
    fields: [{name: x, columns: ["p*"]}, {name: label, scalar: true, dtype: int64}]
train: {steps: 12, log_every: 1, checkpoint_every: 3}
precision: float64
parallel: {data: 2}
Y
losses() { python3 -c '
import json, sys
for line in open(sys.argv[1] + "/metrics.jsonl"):
    line = json.loads(line)
    if line["kind"] == "train": print(line["step"], line["loss"])' "$1"; }
# No process may remain that was started with this folder.
no_orphans() {
  for _ in $(seq 50); do
    pgrep -f "paddle-train $folder/" > /dev/null || return 0
    sleep 0.1
  done
  fail "$1: processes are left: $(pgrep -af "paddle-train $folder/")"
}
# As rank RANK: runs the command under a limit or with another config.
cat > "$folder/as_rank" <<'E'
#!/bin/bash
rank="$1" how="$2"
shift 2
if [[ "$PADDLE_RANK" == "$rank" ]]; then
  case "$how" in
    full) trap "" XFSZ; ulimit -f 16 ;;
    config) set -- "$@" optimizer.lr=0.5 ;;
    model) set -- "${@/net.yaml/other.yaml}" ;;
    version) export PADDLE_MAX_ISA=sse4 ;;
  esac
fi
exec "$@"
E
chmod +x "$folder/as_rank"
"$launch" -n 2 paddle-train "$folder/net.yaml" --output "$folder/plain" > "$folder/out" 2> "$folder/error" || fail "the undisturbed run"

# --- a full disk on the rank that writes ---
most_lines=1
"$launch" -n 2 paddle-train "$folder/net.yaml" --output "$folder/full" train.steps=3 > "$folder/out" 2> "$folder/error" || fail "three steps"
expect 6 "error: cannot write" "$launch" -n 2 "$folder/as_rank" 0 full "$train" --resume "$folder/full" train.steps=12
grep -qE "File too large|No space left|cannot be written" "$folder/error" || fail "the cause should be told:"
no_orphans "a full disk"
[[ -e "$folder/full/checkpoints/3/state.json" ]] || fail "the checkpoint before is gone"
[[ ! -e "$folder/full/checkpoints/6" ]] || fail "there is a checkpoint that could not be written"
"$launch" -n 2 paddle-train --resume "$folder/full" train.steps=12 > "$folder/out" 2> "$folder/error" || fail "resume after a full disk"
diff <(losses "$folder/plain") <(losses "$folder/full") > "$folder/error" || fail "other losses after a full disk:"
# A rank that writes nothing needs no disk.
"$launch" -n 2 "$folder/as_rank" 1 full "$train" "$folder/net.yaml" --output "$folder/full1" > "$folder/out" 2> "$folder/error" || fail "a full disk on rank 1"

# --- another config or model on one rank ---
sed 's/64)), 4)/64)) * 1.5, 4)/' "$folder/net.yaml" > "$folder/other.yaml"
expect 3 "a different config than rank 0" "$launch" -n 2 "$folder/as_rank" 1 config "$train" "$folder/net.yaml" --output "$folder/bad"
expect 3 "rank 1 runs a different version of the program than rank 0" "$launch" -n 2 "$folder/as_rank" 1 version "$train" "$folder/net.yaml" --output "$folder/bad"
[[ ! -e "$folder/bad" ]] || fail "a rejected run left a folder"
expect 3 "rank 0" "$launch" -n 2 "$folder/as_rank" 1 model "$train" "$folder/net.yaml" --output "$folder/bad"

# --- a bad sample, which a single rank reads ---
expect 4 "label" "$launch" -n 2 paddle-train "$folder/net.yaml" data.train.path="$folder/bad.csv" data.shuffle=false --output "$folder/bad2"
no_orphans "a bad sample"

# --- a stopped peer, and Ctrl-C ---
"$launch" -n 2 paddle-train "$folder/net.yaml" train.steps=1000000 train.checkpoint_every=never --output "$folder/stopped" > "$folder/out" 2> "$folder/error" &
launcher=$!
for _ in $(seq 900); do grep -q "step 1 " "$folder/out" && break; sleep 0.1; done
kill -INT "$launcher"
wait "$launcher"
[[ $? == 130 ]] || fail "a run that Ctrl-C stops should exit with 130"
[[ -e "$folder/stopped/checkpoints/latest/state.json" ]] || fail "Ctrl-C leaves no checkpoint"
no_orphans "Ctrl-C"
"$launch" -n 2 --dead-after 1 paddle-train "$folder/net.yaml" train.steps=1000000 train.checkpoint_every=never --output "$folder/dead" > "$folder/out" 2> "$folder/error" &
launcher=$!
for _ in $(seq 900); do grep -q "step 1 " "$folder/out" && break; sleep 0.1; done
second_rank="$(tr ' ' '\n' < "/proc/$launcher/task/$launcher/children" | sed -n 2p)"
kill -STOP "$second_rank" || { kill "$launcher"; fail "the launcher has no second rank"; }
wait "$launcher"
[[ $? == 7 ]] || fail "a run with a stopped rank should exit with 7"
grep -qE "^error: rank 1 has (been stopped|sent no heartbeat)" "$folder/error" || fail "the stopped rank should be named:"
(($(wc -l < "$folder/error") == 1)) || fail "a stopped rank should be told in one line:"
grep -q "step 0" "$folder/error" && fail "the step of the stopped rank is wrong:"
no_orphans "a stopped peer"
finish
