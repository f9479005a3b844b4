#!/usr/bin/env bash
# Which keys of a table get rows and which are removed: shows, clicks, decay and eviction day by day
# against a recount in Python, on one rank and several, through a resumed run, in a checkpoint and in
# predictions; entry by count; sections that are wrong are rejected with their place.
set -uo pipefail
command -v python3 > /dev/null || { echo "python3 is missing"; exit 77; }
source "$(dirname "${BASH_SOURCE[0]}")/../expect.bash"
launch="$bin/paddle-launch"
cd "$folder" || exit 1
cat > events.py <<'P'
import random, struct
DAYS, SAMPLES = 12, 40
random.seed(4)
days = []
for day in range(DAYS):
    rows = []
    for i in range(SAMPLES):
        # Some keys come every day, some on a few days, some once.
        key = random.choice([random.randrange(8), 100 + day // 4, 1000 + random.randrange(40), 2**63 + day * 100 + i])
        rows.append((key, random.randrange(20), int(random.random() < 0.3), random.choice([1, 1, 2, 3])))
    days.append(rows)
def f32(x):
    return struct.unpack("f", struct.pack("f", x))[0]
def tensors(path):
    import json
    data = open(path, "rb").read()
    size = 8 + struct.unpack("<Q", data[:8])[0]
    kinds = {"U64": "Q", "I64": "q", "F32": "f"}
    out = {}
    for k, v in json.loads(data[8:size]).items():
        if k == "__metadata__" or v["dtype"] not in kinds: continue
        raw = data[size + v["data_offsets"][0] : size + v["data_offsets"][1]]
        out[k] = struct.unpack("<" + kinds[v["dtype"]] * (len(raw) // struct.calcsize(kinds[v["dtype"]])), raw)
    return out
P
python3 - <<'P'
from events import days
with open("events.csv", "w") as f:
    f.write("user,item,label,shows\n")
    for rows in days:
        for row in rows: f.write(",".join(map(str, row)) + "\n")
P
cat > c.yaml <<'Y'
model:
  name: clicks
  inputs: {user: "uint64[batch]", item: "int64[batch]"}
  model: |
    u = sparse_embedding(user, 3, name="user", weight_init=normal(0, 0.1))
    i = sparse_embedding(item, 3, name="item")
    logit = sum(u * 8 + i, 1) + sum(linear(i, 1), 1)
  outputs: [logit]
loss: binary_cross_entropy_with_logits(logit, label)
metrics: {auc: "auc(logit, label)", ctr: "ctr(logit, label)", wuauc: "wuauc(logit, label, user, mask=shows > 1)"}
optimizer: {name: adagrad, lr: 0.1}
tables:
  user:
    statistics: {show: shows, click: label}
    score: {show: 0.1, click: 1}
    evict: {score_below: 0.35, unseen_days: 5, decay: 0.75}
data:
  batch_size: 20
  shuffle: false
  train: &rows
    kind: csv
    path: events.csv
    fields:
      - {name: user, scalar: true, dtype: uint64}
      - {name: item, scalar: true, dtype: int64}
      - {name: label, scalar: true, dtype: float32}
      - {name: shows, scalar: true, dtype: int64}
  valid: *rows
train: {epochs: 1, table_day: 2, evaluate_every: 1 epoch, checkpoint_every: 10}
Y
run() {  # FOLDER, COMMAND…
  local out="$1"
  shift
  ok "$@" --output "$out"
}
run plain "$train" c.yaml
grep -q "table user: removed [0-9]* rows after day 3, [0-9]* rows are left" plain/log.txt out error 2> /dev/null ||
  fail "the end of a day is not reported"
grep -q '"ctr_copc"' plain/metrics.jsonl || fail "ctr is not split into its values"
grep -q '"wuauc":0' plain/metrics.jsonl || fail "wuauc is missing"
cat > recount.py <<'P'
import sys
from events import days, f32, tensors
decay, rows, used = f32(0.75), {}, set()
for day, events in enumerate(days):
    for first in range(0, len(events), 20):
        sums = {}
        for key, item, label, shows in events[first : first + 20]:
            s = sums.setdefault(key, [0, 0]); s[0] += shows; s[1] += label
        for key, (show, click) in sums.items():
            r = rows.setdefault(key, [0.0, 0.0, 0])
            for _ in range(r[2], day): r[0], r[1] = f32(r[0] * decay), f32(r[1] * decay)
            rows[key] = [f32(r[0] + show), f32(r[1] + click), day]
            used.add(key)
    for key, (show, click, last) in list(rows.items()):
        unseen = day - last >= 5
        for _ in range(last, day + 1): show, click = f32(show * decay), f32(click * decay)
        if unseen or 0.1 * (show - click) + click < 0.35: del rows[key]
assert 0 < len(rows) < len(used), (len(rows), len(used))
for run in sys.argv[1:]:
    t = tensors(f"{run}/checkpoints/latest/model.safetensors")
    o = tensors(f"{run}/checkpoints/latest/optimizer.safetensors")
    assert list(t["user.keys"]) == sorted(rows), (run, len(t["user.keys"]), len(rows))
    for i, key in enumerate(t["user.keys"]):
        got = [o[f"optimizer/user.weight/{name}"][i] for name in ("show", "click", "day")]
        assert got == [float(x) for x in rows[key]], (run, key, got, rows[key])
    assert len(t["item.keys"]) == 20, run
P
for n in 2 3; do
  run "simulated$n" "$train" c.yaml parallel.data="$n" --simulate "$n"
  run "process$n" "$launch" -n "$n" paddle-train c.yaml parallel.data="$n"
  cmp -s "simulated$n/checkpoints/latest/model.safetensors" "process$n/checkpoints/latest/model.safetensors" ||
    fail "$n processes are not $n simulated ranks"
done
run eager "$train" c.yaml --eager
# A run that is stopped on the way and resumed is the run without a stop.
run halves "$train" c.yaml train.steps=10
ok "$train" --resume halves train.steps=0
cmp -s halves/checkpoints/latest/optimizer.safetensors plain/checkpoints/latest/optimizer.safetensors ||
  fail "a resumed run has other statistics"
python3 recount.py plain simulated2 simulated3 process3 halves eager || fail "the statistics are not those of the recount"

# Entry by count: keys with three occurrences or more have rows, others wait, and read zeros.
for ranks in 1 2; do
  run "count$ranks" "$train" c.yaml "tables={user: {entry: {count: 3}}}" parallel.data=$ranks --simulate $ranks
done
python3 - <<'P' || fail "entry by count differs from the recount"
from collections import Counter
from events import days, tensors
seen = Counter(row[0] for rows in days for row in rows)
for run in ("count1", "count2"):
    t = tensors(f"{run}/checkpoints/latest/model.safetensors")
    o = tensors(f"{run}/checkpoints/latest/optimizer.safetensors")
    assert list(t["user.keys"]) == sorted(k for k, n in seen.items() if n >= 3), run
    waiting = o["optimizer/user.weight/waiting.keys"]
    assert list(waiting) == sorted(k for k, n in seen.items() if n < 3), run
    counts = o["optimizer/user.weight/waiting"]
    assert all(counts[4 * i] == seen[k] for i, k in enumerate(waiting)), run
P
printf 'user,item,label,shows\n77777,3,0,1\n' > unknown.csv
python3 - <<'P'
from events import days
from collections import Counter
seen = Counter(row[0] for rows in days for row in rows)
key = next(k for k, n in seen.items() if n == 1)
open("waiting.csv", "w").write(f"user,item,label,shows\n{key},3,0,1\n")
P
for f in unknown waiting; do ok "$infer" count1 --input $f.csv --output $f.out.csv; done
cmp -s <(cut -d, -f1 unknown.out.csv) <(cut -d, -f1 waiting.out.csv) || fail "a key that waits does not read zeros"

expect 3 "matches 'users'" "$train" c.yaml "tables={users: {entry: {count: 3}}}" --output x
expect 3 "evict.score_below needs statistics" "$train" c.yaml "tables={user: {evict: {score_below: 1}}}" --output x
expect 3 "statistics count the field 'clicked'" "$train" c.yaml "tables={user: {statistics: {click: clicked}}}" --output x
expect 3 "entry" "$train" c.yaml "tables={user: {entry: {counts: 3}}}" --output x
# How rows begin and are trained: a rate of 0 leaves them as they began, and bounds hold them.
for ranks in 1 2; do
  run "own$ranks" "$train" c.yaml parallel.data="$ranks" --simulate "$ranks" "tables={defaults: {key: int64}, user: {key: uint64,
    init: \"uniform(-1e-4, 1e-4)\", statistics: {show: 1, click: label}, wide: {dim: 1, after: {score: 2}},
    optimizer: {name: adagrad, lr: 0.5, per: row, initial: 2, bounds: [-0.05, 0.06], scale: show}}, item: {init: \"0.25\", optimizer: {name: sgd, lr: 0}}}"
done
python3 - <<'P' || fail "rows do not begin, or are not trained, as the config says"
from events import tensors
for run in ("own1", "own2"):
    t = tensors(f"{run}/checkpoints/latest/model.safetensors")
    o = tensors(f"{run}/checkpoints/latest/optimizer.safetensors")
    assert set(t["item.weight"]) == {0.25} and not any(k.startswith("optimizer/item") for k in o), run
    rows = [t["user.weight"][3 * i : 3 * i + 3] for i in range(len(t["user.keys"]))]
    assert all(-0.0501 < x < 0.0601 for row in rows for x in row), run
    assert max(abs(x) for row in rows for x in row) > 0.04, run
    wide = o["optimizer/user.weight/wide"]
    scores = [0.1 * (s - c) + c for s, c in zip(o["optimizer/user.weight/show"], o["optimizer/user.weight/click"])]
    assert [w == 1 for w in wide] == [s >= 2 for s in scores] and 0 < sum(wide) < len(wide), run
    assert all(row[2] == 0 for row, w in zip(rows, wide) if w == 0), run
    assert len(o["optimizer/user.weight/moment"]) == len(rows) and min(o["optimizer/user.weight/moment"]) >= 0, run
P

stated() { expect 3 "$1" "$train" c.yaml "tables={user: {$2}}" --output x; }
stated "init: 'normals' is not an initializer" "init: normals"
stated "init: xavier_uniform" "init: xavier_uniform"
stated "expected a number" "init: \"uniform(a, 1)\""
stated "states int64 keys, and the keys of the table 'user' are uint64" "key: int64"
stated "adagard" "optimizer: {name: adagard}"
stated "optimizer.bounds: 1 is not below -1" "optimizer: {name: sgd, bounds: [1, -1]}"
stated "optimizer.scale: show needs statistics" "optimizer: {name: sgd, scale: show}"
stated "wide needs statistics" "wide: {dim: 1}"
stated "of which at least one is not wide" "wide: {dim: 3}, statistics: {show: 1}"
stated "per" "optimizer: {name: sgd, per: row}"
stated "has a wide part, which the optimizer rmsprop does not support" "wide: {dim: 1}, statistics: {show: 1}, optimizer: rmsprop"
expect 3 "chance" "$train" c.yaml "tables={user: {entry: {chance: 2}}}" --output x
finish
