#!/usr/bin/env bash
# Asynchronous updates of tables: one worker has the numbers of steps of all workers; a replay has the
# bits of the run, as threads and as processes, with other servers, up to a step and from a checkpoint,
# after servers and workers were killed and after the run was stopped and continued; a damaged order of
# messages and other data are named.
# needs: python3
set -uo pipefail
command -v python3 > /dev/null || { echo "python3 is missing"; exit 77; }
source "$(dirname "${BASH_SOURCE[0]}")/../expect.bash"
source "$(dirname "${BASH_SOURCE[0]}")/replays.bash"
launch="$bin/paddle-launch"
cd "$folder" || exit 1
python3 - <<'P'
import random
random.seed(3)
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
  user:
    entry: {count: 2}
    statistics: {show: 1, click: label}
    evict: {score_below: 0.2, unseen_days: 4, decay: 0.75}
  item: {optimizer: {name: adam, lr: 0.01}}
parameter_server: {servers: 2, mode: async}
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
train: {epochs: 2, table_day: 6, evaluate_every: 1 epoch, checkpoint_every: 10, keep_checkpoints: 100}
Y
# One worker that asks for nothing ahead.
ok "$train" c.yaml --servers 1 parameter_server.mode=sync --output sync
ok "$train" c.yaml --servers 2 parameter_server.ahead=0 --output one
same sync one
# Replays as threads, of other numbers of servers, in parts.
forms=("parameter_server.ahead=1" "parameter_server.ahead=0 parameter_server.staleness=1" "parameter_server.merge=3"
  "parameter_server.ahead=4 parameter_server.cache.refresh=3 parameter_server.cache.memory=2KiB")
for i in 0 1 2 3; do
  # shellcheck disable=SC2086
  ok "$train" c.yaml --servers 2 parallel.data=3 --simulate 3 ${forms[i]} --output "run$i"
  ok "$train" --replay "run$i" --check --simulate 3 --servers $((2 * i + 1)) --output "again$i"
  same "run$i" "again$i"
  metrics "run$i" "again$i"
  for lane in "run$i"/order/0/*; do  # after the header, which has the time
    cmp -s -i 40 "$lane" "again$i/${lane#*/}" || fail "the order of again$i is another one in $lane"
  done
done
ok "$train" --replay run0 --check --simulate 3 --until 40 --output early
same run0 early 40
ok "$train" --replay run0 --check --simulate 3 --from 20 --until 70 --output late
same run0 late 70
[[ ! -e late/checkpoints/20 ]] || fail "the replay from step 20 began earlier"
# Without the gradients of a worker in two steps: the same up to the step before.
ok "$train" --replay run0 --simulate 3 --skip 1:25 --skip 1:41 --output without
cmp -s run0/checkpoints/20/model.safetensors without/checkpoints/20/model.safetensors ||
  fail "a step that is left out changes those before it"
cmp -s run0/checkpoints/30/model.safetensors without/checkpoints/30/model.safetensors &&
  fail "a step that is left out changes nothing"
python3 - <<'P' || fail "--skip changes other rows than those of its batch"
import csv, json, struct
def rows(run):
    data = open(f"{run}/checkpoints/30/model.safetensors", "rb").read()
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + size])
    def part(name):
        begin, end = header[name]["data_offsets"]
        return data[8 + size + begin:8 + size + end]
    keys = struct.unpack(f"<{header['item.keys']['shape'][0]}q", part("item.keys"))
    width = len(part("item.weight")) // len(keys)
    return {key: part("item.weight")[i * width:][:width] for i, key in enumerate(keys)}
run, without = rows("run0"), rows("without")
assert set(without) <= set(run)
# The items of worker 1 in step 25, of 43 steps an epoch with 21 samples, 7 of them of a worker.
lines = list(csv.DictReader(open("rows.csv")))[24 * 21 + 7:24 * 21 + 14]
changed = {key for key in run if run[key] != without.get(key)}
assert {int(line["item"]) for line in lines} <= changed
P
# The updates of a row.
ok "$train" --replay run0 --simulate 3 --watch item:7 --until 40 --output watched
same run0 watched 40
python3 - <<'P' || fail "the updates of a row are other ones"
import csv, json, struct
lines = list(csv.DictReader(open("rows.csv")))
wanted = set()
for step in range(40):
    for worker in range(3):
        part = lines[step * 21 + worker * 7:][:7]
        if any(line["item"] == "7" for line in part): wanted.add((step + 1, worker))
updates = [json.loads(line) for line in open("watched/row-updates.jsonl")]
assert {(u["step"], u["worker"]) for u in updates} == wanted and len(updates) == len(wanted)
assert all(u["gradient_norm"] > 0 and len(u["row"]) == 5 for u in updates)
data = open("watched/checkpoints/40/model.safetensors", "rb").read()
size = struct.unpack("<Q", data[:8])[0]
header = json.loads(data[8:8 + size])
def part(name, form):
    begin, end = header[name]["data_offsets"]
    return struct.unpack(f"<{(end - begin) // struct.calcsize(form)}{form}", data[8 + size + begin:8 + size + end])
row = part("item.keys", "q").index(7)
assert list(part("item.weight", "f")[5 * row:][:5]) == updates[-1]["row"], updates[-1]
P
# Stopped and continued, twice; the second time it goes back to an earlier checkpoint.
ok "$train" c.yaml --servers 2 parallel.data=3 --simulate 3 --until 33 --output parts
ok "$train" --resume parts --servers 2 --simulate 3 --until 57
rm -r parts/checkpoints/57 parts/checkpoints/50
ln -sfn 40 parts/checkpoints/latest
ok "$train" --resume parts --servers 2 --simulate 3
ok "$train" --replay parts --check --simulate 3 --output parts-again
same parts parts-again
# Processes, of which servers and workers are killed.
kill_some 1 "$launch" --servers 2 -n 2 --restarts 100 paddle-train c.yaml parallel.data=2 train.epochs=3 \
  data.batch_size=7 --output killed > output 2>&1 || fail "the run with kills ends with an error"
grep -q "killed [1-5]" output || fail "nothing was killed"
ok "$train" --replay killed --check --simulate 2 --output killed-again
same killed killed-again
ok "$launch" --servers 3 -n 2 paddle-train --replay killed --check --output killed-process
same killed killed-process
# Errors name their cause and place.
cp -r run0 damaged
python3 - <<'P'
path = "damaged/order/0/lane-2"
data = bytearray(open(path, "rb").read())
data[1000] ^= 4
open(path, "wb").write(data)
P
expect 5 "order/0/lane-2: one of the entries" "$train" --replay damaged --simulate 3 --output x
truncate -s -24 damaged/order/0/lane-0
cp run0/order/0/lane-2 damaged/order/0/lane-2
expect 5 "one of them is cut off" "$train" --replay damaged --simulate 3 --output x
expect 2 "is a run of 3 workers" "$train" --replay run0 --simulate 2 --output x
expect 2 "has no order of its messages" "$train" --replay sync --output x
expect 2 "no checkpoint 5 in run0/checkpoints" "$train" --replay run0 --simulate 3 --from 5 --output x
expect 2 "are for --replay" "$train" c.yaml --check --output x
for watch in item item: :7 item:x item:1.5; do
  expect 2 "expected TABLE:KEY" "$train" c.yaml --servers 1 "--watch=$watch" --output x
done
expect 2 "no table 'items' in the model" "$train" c.yaml --servers 1 --watch items:1 --output x
expect 2 "expected placement: servers" "$train" c.yaml parameter_server.mode=sync --watch item:1 --output x
expect 2 "are for --replay" "$train" c.yaml --skip 0:1 --output x
for skip in 3:1 0:0 0:9999 1 1: :1 a:1 1:2x -1:2; do
  expect 2 "expected WORKER:STEP with workers 0 to 2" "$train" --replay run0 --simulate 3 "--skip=$skip" --output x
done
expect 2 "with --skip they differ" "$train" --replay run0 --simulate 3 --skip 1:2 --check --output x
for wrong in ahead=65 cache.memory=many cache.refresh=1 order_log.keep=soon order_log.keep=-1; do
  expect 3 "parameter_server.${wrong%%=*}" "$train" c.yaml --servers 1 "parameter_server.$wrong" --output x
done
expect 3 "placement: servers" "$train" c.yaml --output x
expect 3 "clip.global_norm" "$train" c.yaml --servers 1 clip.global_norm=1 --output x
expect 3 "staleness" "$train" c.yaml --servers 1 parameter_server.merge=4 parameter_server.staleness=1 --output x
sed -i '5s/0$/1/; 6s/1$/0/' rows.csv
sed -i '5s/1$/0/' rows.csv
expect 4 "data.train has changed" "$train" --replay run0 --simulate 3 --output x
finish
