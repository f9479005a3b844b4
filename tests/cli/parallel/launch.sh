#!/usr/bin/env bash
# Ranks under launchers of others, on several "machines", and started again: the same losses, and
# one line for what goes wrong.
# needs: python3
set -u
command -v python3 > /dev/null || { echo "python3 is missing"; exit 77; }
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
source "$here/../expect.bash"
launch="$bin/paddle-launch"
python3 - "$folder" <<'P'
import random, sys
random.seed(5)
with open(sys.argv[1] + "/rows.csv", "w") as f:
    f.write(",".join(f"p{i}" for i in range(6)) + ",label\n")
    for i in range(64):
        f.write(",".join(f"{random.gauss(0, 1):.4f}" for _ in range(6)) + f",{i % 3}\n")
P
cat > "$folder/net.yaml" <<'Y'
model:
  inputs: {x: "float32[batch, 6]"}
  model: |
    logits = linear(relu(linear(x, 8)), 3)
  outputs: [logits]
loss: cross_entropy(logits, label)
optimizer: {name: momentum, lr: 0.05}
data:
  batch_size: 8
  train:
    kind: csv
    path: rows.csv
    fields: [{name: x, columns: ["p*"]}, {name: label, scalar: true, dtype: int64}]
train: {steps: 40, log_every: 1, checkpoint_every: 10}
precision: float64
parallel: {data: 2}
Y
port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }
losses() { python3 -c '
import json, sys
for line in open(sys.argv[1] + "/metrics.jsonl"):
    line = json.loads(line)
    if line["kind"] == "train": print(line["step"], line["loss"])' "$1"; }
same() { diff <(losses "$folder/plain") <(losses "$folder/$1") > "$folder/difference" || fail "$1 has other losses"; }

"$launch" -n 2 paddle-train "$folder/net.yaml" --output "$folder/plain" > "$folder/out" 2> "$folder/error" || fail "paddle-launch"
(($(losses "$folder/plain" | wc -l) == 40)) || fail "a loss for each step"

# --- the environments of other launchers ---
both() {  # both NAME VARIABLES-OF-RANK-0 -- VARIABLES-OF-RANK-1
  local name="$1" first=() second=()
  shift
  while [[ "$1" != -- ]]; do first+=("$1"); shift; done
  shift
  second=("$@")
  env "${second[@]}" "$train" "$folder/net.yaml" --output "$folder/$name" > /dev/null 2> "$folder/other" &
  local other=$!
  env "${first[@]}" "$train" "$folder/net.yaml" --output "$folder/$name" > "$folder/out" 2> "$folder/error" || fail "$name, rank 0"
  wait "$other" || { cat "$folder/other"; fail "$name, rank 1"; }
  same "$name"
}
at="MASTER_PORT=$(port)"
both torchrun RANK=0 WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 "$at" TORCHELASTIC_USE_AGENT_STORE=True TORCHELASTIC_RUN_ID=none \
  -- RANK=1 WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 "$at" TORCHELASTIC_USE_AGENT_STORE=True TORCHELASTIC_RUN_ID=none
grep -q "rank 0 of 2, as torchrun says" "$folder/error" || fail "rank 0 should say how it was started"
at="PADDLE_RENDEZVOUS=127.0.0.1:$(port)"
both mpi OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_LOCAL_SIZE=1 PMIX_NAMESPACE=7 "$at" \
  -- OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_LOCAL_SIZE=1 PMIX_NAMESPACE=7 "$at"
both slurm SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=2 SLURM_JOB_ID=$$ SLURM_STEP_ID=0 SLURM_STEP_NODELIST=localhost \
  -- SLURM_PROCID=1 SLURM_STEP_NUM_TASKS=2 SLURM_JOB_ID=$$ SLURM_STEP_ID=0 SLURM_STEP_NODELIST=localhost
if command -v mpirun > /dev/null; then
  OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 mpirun --oversubscribe -n 2 \
    "$train" "$folder/net.yaml" --output "$folder/mpirun" > "$folder/out" 2> "$folder/error" || fail "mpirun"
  same mpirun
fi

# --- several machines ---
at="127.0.0.1:$(port)"
"$launch" --nodes 2 --node-rank 1 --rendezvous "$at" -n 1 paddle-train "$folder/net.yaml" --output "$folder/nodes" > "$folder/out1" 2>&1 &
other=$!
"$launch" --nodes 2 --rendezvous "$at" -n 1 paddle-train "$folder/net.yaml" --output "$folder/nodes" > "$folder/out" 2> "$folder/error" || fail "two nodes"
wait "$other" || fail "the second of two nodes: $(cat "$folder/out1")"
same nodes
cat > "$folder/ssh" <<'E'
#!/bin/sh
echo "$1" >> "$(dirname "$0")/hosts"
echo "$2" > "$(dirname "$0")/line"
exec sh -c "$2"
E
chmod +x "$folder/ssh"
"$launch" --hosts localhost:1,second:1 --ssh "$folder/ssh" --rendezvous 127.0.0.1:0 paddle-train "$folder/net.yaml" \
  --output "$folder/hosts.run" > "$folder/out" 2> "$folder/error" || fail "a list of hosts"
[[ "$(cat "$folder/hosts")" == second ]] || fail "one launcher is started by ssh"
grep -qE "[0-9a-f]{32}" "$folder/line" && fail "the command line of ssh shows the token: $(cat "$folder/line")"
same hosts.run
# Rank 1 is elsewhere, and fails: node 0 says why, and both end with its status.
"$launch" --nodes 2 --node-rank 1 --rendezvous "$at" -n 1 sh -c 'echo "error: my own trouble" >&2; exit 4' > "$folder/out1" 2>&1 &
other=$!
most_lines=1
expect 4 "rank 1: error: my own trouble" "$launch" --nodes 2 --rendezvous "$at" -n 1 sleep 2
wait "$other"
[[ $? == 4 ]] || fail "the launcher of the rank that failed should exit with 4"

# --- again from the last checkpoint ---
cat > "$folder/once" <<'E'
#!/bin/bash
# A rank 1 that dies in the middle of its first attempt.
if [[ "$PADDLE_RANK" == 1 && "$PADDLE_RESTART" == 0 ]]; then
  "$@" &
  for _ in $(seq 400); do [[ -e "$RUN/checkpoints/20/state.json" ]] && break; sleep 0.02; done
  kill -9 $!
  kill -9 $$
fi
exec "$@"
E
chmod +x "$folder/once"
RUN="$folder/again" "$launch" -n 2 --restarts 2 "$folder/once" "$train" "$folder/net.yaml" train.steps=40 --output "$folder/again" \
  > "$folder/out" 2> "$folder/error" || fail "a run that is started again"
grep -q "restart 1 of 2: rank 1 was killed by signal 9" "$folder/error" || fail "the restart should be told"
same again
most_lines=2
expect 7 "rank 1 was killed by signal 9" "$launch" -n 2 --restarts 1 sh -c '[ "$PADDLE_RANK" = 1 ] && kill -9 $$; exec sleep 1'
expect 2 "no such file" "$launch" -n 2 --restarts 3 paddle-train "$folder/none.yaml"

# --- bad input: one line ---
most_lines=1
expect 2 "needs --rendezvous" "$launch" --nodes 2 -n 1 true
expect 2 "set PADDLE_RENDEZVOUS_TOKEN to a shared secret" "$launch" --nodes 2 --rendezvous 192.0.2.1:4000 -n 1 true
expect 2 "set PADDLE_RENDEZVOUS_TOKEN to a shared secret" "$launch" --nodes 2 --node-rank 1 --rendezvous 192.0.2.1:4000 -n 1 true
expect 2 "--node-rank 2: the run has 2 launchers" "$launch" --nodes 2 --node-rank 2 --rendezvous 127.0.0.1:1 -n 1 true
expect 2 "expected host:port" "$launch" --nodes 2 --rendezvous nowhere -n 1 true
expect 2 "expected names with ranks" "$launch" --hosts a:x true
expect 2 "-n says how many" "$launch" true
expect 2 "RANK is 3, WORLD_SIZE 2" env RANK=3 WORLD_SIZE=2 "$train" "$folder/net.yaml"
expect 7 "waited 1 seconds at" "$launch" --nodes 2 --rendezvous 127.0.0.1:0 --join-timeout 1 -n 1 true
expect 7 "has waited 1 seconds for rank 0" env RANK=1 WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=1 PADDLE_JOIN_TIMEOUT=1 "$train" "$folder/net.yaml"
expect 2 "--node-rank has no effect without --nodes" "$launch" -n 1 --node-rank 0 true
expect 2 "--name has no effect without --emit" "$launch" -n 2 --name one true
expect 2 "--image has no effect with --emit slurm" "$launch" -n 2 --servers 1 --emit slurm --image one true
expect 2 "--restarts has no effect with --emit" "$launch" -n 2 --servers 1 --emit slurm --restarts 2 true
expect 2 "--timeout has no effect with --simulate: no rank is a process" "$launch" -n 2 --simulate --timeout 5 "$train" "$folder/net.yaml"
expect 2 "--simulate: 'sh' cannot run ranks in one process" "$launch" -n 2 --simulate sh -c true
expect 2 "--restart" "$launch" -n 2 --restart 3 "$train" "$folder/net.yaml"
expect 2 "--restarts" "$launch" -n 2 "$train" "$folder/net.yaml" --restarts 3
expect 3 "unknown key 'dta' in 'parallel'" "$launch" -n 2 "$train" "$folder/net.yaml" parallel.dta=2
expect 2 "--simulate: parallel.transport is for ranks that are processes" "$train" "$folder/net.yaml" --simulate 2 parallel.transport=tcp --output "$folder/bad"
[[ ! -e "$folder/bad" ]] || fail "a rejected run left a folder"
"$launch" -n 2 --simulate paddle-train "$folder/net.yaml" --output "$folder/threads" > "$folder/out" 2> "$folder/error" || fail "launch --simulate"
same threads
python3 -c "import socket, time
s = socket.socket(); s.bind(('127.0.0.1', 0)); s.listen()
print(s.getsockname()[1], flush=True); time.sleep(30)" > "$folder/taken" &
holder=$!
for _ in $(seq 100); do [[ -s "$folder/taken" ]] && break; sleep 0.1; done
taken="$(cat "$folder/taken")"
expect 6 "cannot listen on 127.0.0.1:$taken: Address already in use" "$launch" --nodes 2 --rendezvous "127.0.0.1:$taken" -n 1 true
kill "$holder"
finish
