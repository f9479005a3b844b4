#!/usr/bin/env bash
# paddle-ps: counts, rows and dumps of the tables of runs, and damaged files.
set -uo pipefail
command -v python3 > /dev/null || { echo "python3 is missing"; exit 77; }
source "$(dirname "${BASH_SOURCE[0]}")/../expect.bash"
cd "$folder" || exit 1
ps="$bin/paddle-ps"
python3 - <<'P'
with open("rows.csv", "w") as f:
    f.write("user,y\n")
    for i in range(60): f.write(f"{[-5, 7, 2**62, i][i % 4]},{i % 3}\n")
P
cat > c.yaml <<'Y'
model:
  name: one
  inputs: {user: "int64[batch]"}
  model: |
    prediction = sum(sparse_embedding(user, 2, name="user"), 1)
  outputs: [prediction]
loss: mse_loss(prediction, y)
optimizer: {name: adagrad, lr: 0.1}
tables: {user: {entry: {count: 3}, statistics: {show: 1, click: y}}}
data:
  batch_size: 10
  train:
    kind: csv
    path: rows.csv
    fields:
      - {name: user, scalar: true, dtype: int64}
      - {name: y, scalar: true, dtype: float32}
train: {epochs: 1, evaluate_every: never}
Y
ok "$train" c.yaml --output run
ok "$ps" count run
grep -qE "^user +3 +14 " out || fail "count does not show 3 rows and 14 waiting keys"
ok "$ps" count run --json
python3 - <<'P' || fail "count --json"
import json
t = json.load(open("out"))["tables"]
assert len(t) == 1 and t[0]["rows"] == 3 and t[0]["waiting"] == 14 and sorted(t[0]["statistics"]) == ["click", "day", "show"], t
P
ok "$ps" show run --key -5,4,3 --json
python3 - <<'P' || fail "show --json"
import json
row, none, waiting = json.load(open("out"))["keys"]
assert row["found"] == "row" and len(row["weight"]) == 2 and row["show"] == 15 and row["click"] == 15, row
assert none["found"] == "none" and waiting["found"] == "waiting" and waiting["count"] == 1, (none, waiting)
P
ok "$ps" dump run -o rows.out
python3 - <<'P' || fail "dump"
lines = open("rows.out").read().split("\n")
assert lines[0] == "key,weight_0,weight_1,click,day,show" and [l.split(",")[0] for l in lines[1:4]] == ["-5", "7", str(2**62)], lines
P
expect 2 "already exists" "$ps" dump run -o rows.out
ok "$ps" dump run/model --json
[[ "$(wc -l < out)" == 3 ]] || fail "dump --json of a saved model has not three lines"
ok "$ps" verify run
grep -q "1 table with 3 rows" out || fail "verify does not count"
cp -r run/model broken
python3 - <<'P'
path = "broken/model.safetensors"
data = bytearray(open(path, "rb").read())
size = 8 + int.from_bytes(data[:8], "little")
at = data.find((7).to_bytes(8, "little"), size)
data[at + 7] = 0xFF
open(path, "wb").write(data)
P
expect 5 "expected distinct keys in rising order" "$ps" verify broken
expect 2 "has no table 'users'" "$ps" count run/model --table users
expect 2 "is not an integer" "$ps" show run/model --key x
expect 5 "has no checkpoint and no saved model" "$ps" count nowhere
finish
