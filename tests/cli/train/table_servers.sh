#!/usr/bin/env bash
# Tables on servers: the files of a run are those of the same run with the rows in its ranks, for any
# number of servers and lanes, with clipped gradients, accumulated ones, removed rows, keys that wait
# and deltas; resumed with other servers; as threads and as processes; a server that is killed changes
# nothing; errors name their cause.
set -uo pipefail
command -v python3 > /dev/null || { echo "python3 is missing"; exit 77; }
source "$(dirname "${BASH_SOURCE[0]}")/../expect.bash"
launch="$bin/paddle-launch"
ps="$bin/paddle-ps"
cd "$folder" || exit 1
python3 - <<'P'
import random
random.seed(3)
with open("rows.csv", "w") as f:
    f.write("user,item,label\n")
    for i in range(330):
        key = random.choice([random.randrange(9), 50 + i // 40, 2**63 + random.randrange(60)])
        f.write(f"{key},{random.randrange(30)},{int(random.random() < 0.4)}\n")
P
cat > c.yaml <<'Y'
model:
  name: clicks
  inputs: {user: "uint64[batch]", item: "int64[batch]"}
  model: |
    u = sparse_embedding(user, 3, name="user", weight_init=normal(0, 0.1))
    i = sparse_embedding(item, 5, name="item", weight_init=normal(0, 0.1))
    logit = sum(u, 1) + sum(linear(concat([u, i], 1), 1), 1)
  outputs: [logit]
loss: binary_cross_entropy_with_logits(logit, label)
metrics: {auc: "auc(logit, label)"}
optimizer: {name: adagrad, lr: 0.1}
tables:
  user:
    entry: {count: 2}
    statistics: {show: 1, click: label}
    evict: {score_below: 0.2, unseen_days: 4, decay: 0.75}
  item: {optimizer: {name: adam, lr: 0.01}}
data:
  batch_size: 21
  shuffle: false
  train: &rows
    kind: csv
    path: rows.csv
    fields:
      - {name: user, scalar: true, dtype: uint64}
      - {name: item, scalar: true, dtype: int64}
      - {name: label, scalar: true, dtype: float32}
  valid: *rows
train: {epochs: 2, table_day: 3, evaluate_every: 1 epoch, checkpoint_every: 5, keep_checkpoints: 100}
Y
run() {  # FOLDER, COMMAND…
  local out="$1"
  shift
  ok "$@" --output "$out"
}
same() {  # RUN, RUN: checkpoints and metrics
  local step file
  for step in 5 20 32; do
    for file in model.safetensors optimizer.safetensors; do
      cmp -s "$1/checkpoints/$step/$file" "$2/checkpoints/$step/$file" || fail "$1 and $2 differ in $file of step $step"
    done
  done
  python3 - "$1" "$2" <<'P' || fail "$1 and $2 have other metrics"
import json, sys
def lines(run):
    timed = {"seconds", "samples_per_second", "data_wait"}
    return [{k: v for k, v in json.loads(l).items() if k not in timed} for l in open(f"{run}/metrics.jsonl")]
assert lines(sys.argv[1]) == lines(sys.argv[2])
P
}
run one "$train" c.yaml
run one-1 "$train" c.yaml --servers 1
run one-5 "$train" c.yaml parameter_server.placement=servers parameter_server.servers=5 parameter_server.lanes=7
same one one-1
same one one-5
for n in 2 3; do
  run "ranks$n" "$train" c.yaml parallel.data=$n --simulate $n
  for servers in 1 3; do
    run "servers$n-$servers" "$train" c.yaml parallel.data=$n --simulate $n --servers $servers
    same "ranks$n" "servers$n-$servers"
  done
done
# Norms of all tables together scale the gradients; micro-batches are one push.
run clipped "$train" c.yaml clip.global_norm=0.05 train.accumulate=3 parallel.data=2 --simulate 2
run clipped-2 "$train" c.yaml clip.global_norm=0.05 train.accumulate=3 parallel.data=2 --simulate 2 --servers 2 parameter_server.lanes=16
same clipped clipped-2
# Processes; then the run continues in the ranks, and with other servers.
run process "$launch" --servers 2 -n 2 paddle-train c.yaml parallel.data=2
same ranks2 process
[[ ! -e process/servers ]] || fail "the logs of the servers are left"
for how in "--simulate 2" "--simulate 2 --servers 3"; do
  rm -rf half
  run half "$launch" --servers 2 -n 2 paddle-train c.yaml parallel.data=2 --until 17
  # shellcheck disable=SC2086
  ok "$train" --resume half $how
  cmp -s half/checkpoints/32/model.safetensors ranks2/checkpoints/32/model.safetensors || fail "resumed $how, the run differs"
done
# Large tables are written by the lanes, whole and as deltas.
sed -i 's/(item, 5/(item, 200000/; s/concat(\[u, i\], 1)/concat([u, i * 0.001], 1)/; s/checkpoint_every: 5/checkpoint_every: 8/' c.yaml
run large "$train" c.yaml parallel.data=2 train.steps=16 --simulate 2
run large-3 "$train" c.yaml parallel.data=2 train.steps=16 --simulate 2 --servers 3
for step in 8 16; do
  for run in large large-3; do ok "$ps" merge $run/checkpoints/$step -o merged-$run-$step; done
  diff -r merged-large-$step/tables merged-large-3-$step/tables > /dev/null || fail "large tables differ at step $step"
  ok "$ps" verify large-3/checkpoints/$step
done
ls large-3/checkpoints/16/tables/item | grep -q delta || fail "servers write no deltas"
# Errors name their cause.
expect 2 "the run has no servers" "$launch" -n 2 paddle-train c.yaml parallel.data=2 parameter_server.placement=servers --output x
expect 2 "3 lanes are too few for 4 servers" "$train" c.yaml parameter_server.lanes=3 --servers 4 --output x
expect 3 "parameter_server.lanes" "$train" c.yaml parameter_server.placement=servers parameter_server.servers=4 parameter_server.lanes=3 --output x
expect 2 "PADDLE_SERVER_ADDRESSES" env PADDLE_SERVER_ADDRESSES=here "$train" c.yaml --output x
finish
