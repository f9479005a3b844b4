#!/usr/bin/env bash
# Tables whose workers update rows of their own and send the changes (mode: geo): one worker that sends
# them after each step has the numbers of steps of all workers; replays have the bits of the run, also
# after it was stopped and continued and after servers and workers were killed; states of the
# optimizers of workers are in checkpoints.
# needs: python3
set -uo pipefail
command -v python3 > /dev/null || { echo "python3 is missing"; exit 77; }
source "$(dirname "${BASH_SOURCE[0]}")/../expect.bash"
source "$(dirname "${BASH_SOURCE[0]}")/replays.bash"
launch="$bin/paddle-launch"
cd "$folder" || exit 1
python3 - <<'P'
import random
random.seed(5)
with open("rows.csv", "w") as f:
    f.write("user,item,label\n")
    for i in range(900):
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
  user: {optimizer: {name: adagrad, lr: 0.05, per: row}}
  item: {optimizer: {name: adam, lr: 0.01}}
parameter_server: {servers: 2, mode: geo, geo: {every: 7}}
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
train: {epochs: 2, evaluate_every: 1 epoch, checkpoint_every: 10, keep_checkpoints: 100}
Y
# One worker, whose changes are added after each step: rounded once more than those of sync.
ok "$train" c.yaml --servers 1 parameter_server.mode=sync precision=float64 --output sync
ok "$train" c.yaml --servers 2 parameter_server.geo.every=1 parameter_server.geo.combine=sum precision=float64 \
  --output one
cat > rows.py <<'P'
import json, struct
def tensors(path):
    data = open(path, "rb").read()
    size = struct.unpack("<Q", data[:8])[0]
    out = {}
    for name, info in json.loads(data[8:8 + size]).items():
        if name == "__metadata__": continue
        begin, end = info["data_offsets"]
        form = {"F64": "d", "F32": "f", "I64": "q", "U64": "Q"}[info["dtype"]]
        out[name] = struct.unpack(f"<{(end - begin) // struct.calcsize(form)}{form}", data[8 + size + begin:8 + size + end])
    return out
P
python3 - <<'P' || fail "one worker has other rows than with sync"
from rows import tensors
sync, one = (tensors(f"{run}/checkpoints/latest/model.safetensors") for run in ("sync", "one"))
assert set(sync) == set(one)
for name in sync:
    assert len(sync[name]) == len(one[name])
    assert max(abs(a - b) for a, b in zip(sync[name], one[name])) < 1e-9, name
P
# Replays, of other numbers of servers.
forms=("parameter_server.ahead=2" "parameter_server.geo.every=1 parameter_server.geo.combine=sum"
  "parameter_server.geo.every=400 parameter_server.ahead=0")
for i in 0 1 2; do
  # shellcheck disable=SC2086
  ok "$train" c.yaml --servers 2 parallel.data=3 --simulate 3 ${forms[i]} --output "run$i"
  ok "$train" --replay "run$i" --check --simulate 3 --servers $((3 * i + 1)) --output "again$i"
  same "run$i" "again$i"
  metrics "run$i" "again$i"
done
ok "$train" --replay run0 --check --simulate 3 --until 40 --output early
same run0 early 40
ok "$train" --replay run0 --check --simulate 3 --from 20 --until 70 --output late
same run0 late 70
[[ -e run0/checkpoints/20/workers/2/tables/item/manifest.json ]] || fail "the checkpoint lacks states of workers"
# Workers that send nothing until the end of the epoch have trained rows until then.
python3 - <<'P' || fail "changes of workers are not in the tables"
from rows import tensors
first, last = (tensors(f"run2/checkpoints/{step}/model.safetensors") for step in (10, 80))
assert set(first["item.keys"]) == set(last["item.keys"]) and first["item.weight"] != last["item.weight"]
P
# Stopped and continued: the replay of it, and of its second part.
ok "$train" c.yaml --servers 2 parallel.data=3 --simulate 3 --until 33 --output parts
ok "$train" --resume parts --servers 2 --simulate 3
ok "$train" --replay parts --check --simulate 3 --output parts-again
same parts parts-again
ok "$train" --replay parts --check --simulate 3 --from 33 --output parts-late
same parts parts-late
# With one worker nothing depends on the order: a continued run has the bits of one that was not.
# Changes are sent after step 35 by both.
ok "$train" c.yaml --servers 1 train.checkpoint_every=35 --output whole
ok "$train" c.yaml --servers 1 train.checkpoint_every=35 --until 35 --output halves
ok "$train" --resume halves --servers 1
same whole halves
# Processes, of which servers and workers are killed.
kill_some 1 "$launch" --servers 2 -n 2 --restarts 100 paddle-train c.yaml parallel.data=2 train.epochs=3 \
  data.batch_size=7 --output killed > output 2>&1 || fail "the run with kills ends with an error"
grep -q "killed [1-5]" output || fail "nothing was killed"
ok "$train" --replay killed --check --simulate 2 --output killed-again
same killed killed-again
# Options that do not fit are named.
for wrong in staleness=3 merge=2 cache.refresh=4; do
  expect 3 "parameter_server.${wrong%%[.=]*} is for mode: async" "$train" c.yaml --servers 1 "parameter_server.$wrong" \
    --output x
done
expect 3 "geo.every" "$train" c.yaml --servers 1 parameter_server.geo.every=0 --output x
expect 3 "sync and async, not geo" "$train" c.yaml --servers 1 tables.user.entry.count=2 --output x
expect 3 "placement: servers" "$train" c.yaml parameter_server.placement=workers --output x
rm run0/checkpoints/40/workers/1/tables/user/base-40/0000-0127.safetensors
ln -sfn 40 run0/checkpoints/latest
for step in 50 60 70 80 86; do rm -rf "run0/checkpoints/$step"; done
ok "$train" --resume run0 --servers 2 --simulate 3
grep -q "workers/1/tables/user" "$folder/error" || fail "the damaged checkpoint is not named"
finish
