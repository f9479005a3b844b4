#!/usr/bin/env bash
# Checkpoints of a large table with only the changed rows: base and deltas are the table that whole
# saves have, on one rank and two, with removed rows; what was saved is continued, merged, shrunk and
# followed by `paddle ps`, and damage is named. Long chains are merged meanwhile.
set -uo pipefail
command -v python3 > /dev/null || { echo "python3 is missing"; exit 77; }
source "$(dirname "${BASH_SOURCE[0]}")/../expect.bash"
ps="$bin/paddle-ps"
cd "$folder" || exit 1
python3 - <<'P'
import random
random.seed(7)
with open("data.csv", "w") as f:
    f.write("user,label\n")
    for i in range(6000): f.write(f"{i % 4000 if i < 4000 else random.choice([random.randrange(300), 5000 + i])},{i % 2}\n")
P
cat > c.yaml <<'Y'
model:
  name: wide
  inputs: {user: "int64[batch]"}
  model: |
    logit = mean(sparse_embedding(user, 3000, name="user"), 1)
  outputs: [logit]
loss: binary_cross_entropy_with_logits(logit, label)
optimizer: {name: adagrad, lr: 0.1}
tables: {user: {statistics: {show: 1, click: label}, evict: {unseen_days: 4}}}
data:
  batch_size: 200
  shuffle: false
  train: {kind: csv, path: data.csv, fields: [{name: user, kind: keys, scalar: true}, {name: label, scalar: true}]}
train: {epochs: 1, table_day: 5, checkpoint_every: 5, keep_checkpoints: 100}
Y
cat > read.py <<'P'
import glob, json, struct
def tensors(path):
    data = open(path, "rb").read()
    size = 8 + struct.unpack("<Q", data[:8])[0]
    out = {}
    for name, v in json.loads(data[8:size]).items():
        if name in ("keys", "day", "show"):
            raw = data[size + v["data_offsets"][0] : size + v["data_offsets"][1]]
            out[name] = struct.unpack(f"<{len(raw) // {'I64': 8, 'F32': 4}[v['dtype']]}{'q' if v['dtype'] == 'I64' else 'f'}", raw)
    return out
def days(folder):
    """The day of the last use of each key of a merged table."""
    out = {}
    for path in sorted(glob.glob(f"{folder}/tables/user/base-*/*.safetensors")):
        t = tensors(path)
        out.update(zip(t["keys"], t["day"]))
    return out
P
same() {  # CHECKPOINT, CHECKPOINT: merged, all files of the table are equal
  rm -rf a b
  ok "$ps" merge "$1" -o a
  ok "$ps" merge "$2" -o b
  diff -r a/tables b/tables > /dev/null || fail "the table of $1 differs from that of $2"
}
for ranks in 1 2; do
  ok "$train" c.yaml parallel.data=$ranks --simulate $ranks --output chain$ranks
  ok "$train" c.yaml parallel.data=$ranks --simulate $ranks train.table_deltas=0 --output whole$ranks
  saved=chain$ranks/checkpoints/25/tables/user
  [[ -d $saved/base-15 && -d $saved/delta-20 && -d $saved/delta-25 ]] || fail "no deltas were written by $ranks ranks"
  [[ -d chain$ranks/checkpoints/30/tables/user/delta-30 ]] || fail "a long chain is not continued while it is merged"
  (($(du -s --apparent-size $saved/delta-25 | cut -f1) * 3 <
    $(du -s --apparent-size whole$ranks/checkpoints/25/tables/user | cut -f1))) || fail "a delta is as large as the table"
  for step in 20 25 30; do same chain$ranks/checkpoints/$step whole$ranks/checkpoints/$step; done
  # With room for one delta, the saves up to the checkpoint before the last are merged while two more are written.
  ok "$train" c.yaml parallel.data=$ranks --simulate $ranks train.table_deltas=1 train.epochs=2 --output merging$ranks
  ok "$train" c.yaml parallel.data=$ranks --simulate $ranks train.table_deltas=0 train.epochs=2 --output twice$ranks
  saved=merging$ranks/checkpoints/30/tables/user
  [[ -d $saved/base-20 && -d $saved/delta-25 && -d $saved/delta-30 && ! -e $saved/base-15 ]] ||
    fail "a chain was not merged: $(ls $saved)"
  for step in 20 30 40 50 60; do same merging$ranks/checkpoints/$step twice$ranks/checkpoints/$step; done
  ok "$ps" verify merging$ranks/checkpoints/60
  [[ -z "$(ls -d merging$ranks/merging-* 2> /dev/null)" ]] || fail "merged files are left in the folder of the run"
  rm -r merging$ranks twice$ranks
done
# It is continued.
ok "$train" c.yaml train.steps=25 --output halves
[[ -d halves/checkpoints/25/tables/user/delta-25 ]] || fail "there are no deltas to continue from"
ok "$train" --resume halves train.steps=0
same halves whole1
# Merged, shrunk and followed.
ok "$ps" merge chain1/checkpoints/25 -o merged
[[ -z "$(ls -d merged/tables/user/delta-* 2> /dev/null)" ]] || fail "deltas are left after merge"
ok "$ps" verify merged --json
ok "$ps" shrink merged --unseen-days 2 -o shrunk
python3 - <<'P' || fail "shrink removed other rows"
import json
from read import days
ended = json.load(open("merged/state.json"))["table_day"] - 1
want = {key for key, day in days("merged").items() if ended - day < 2}
assert 0 < len(want) < len(days("merged"))
assert set(days("shrunk")) == want
P
ok "$ps" verify shrunk
ok "$ps" history chain1 --key 17 --json
python3 - "$folder/out" <<'P' || fail "the history of a row is wrong"
import json, sys
saves = json.load(open(sys.argv[1]))["saves"]
assert saves[0]["step"] == 5 and saves[-1]["step"] <= 30 and len(saves) > 2, [s["step"] for s in saves]
shows = [s["show"] for s in saves if s["found"] == "row"]
assert shows == sorted(shows) and shows[0] >= 1, shows
P
rm -r chain1/checkpoints/20
ok "$ps" history chain1 --key 3999
grep -q "^step 20: row" "$folder/out" || fail "a save that a chain contains is not in the history"
ok "$ps" history chain1 --key 500
grep -q "none" "$folder/out" || fail "the removal of a row is not in its history"
ok "$ps" plan c.yaml --rows 1000000 --json
grep -q '"name":"user"' "$folder/out" || fail "plan has no table"
ok "$ps" plan chain1 --rows 1000000
expect 2 "nothing says which rows" "$ps" shrink merged -o y
expect 2 "shrunk: exists already" "$ps" merge chain1 -o shrunk
expect 5 "is not a checkpoint" "$ps" merge chain1/model -o y
printf x | dd of=chain1/checkpoints/25/tables/user/delta-25/0000-0127.safetensors bs=1 seek=90000 conv=notrunc 2> /dev/null
expect 5 "delta-25/0000-0127.safetensors: is damaged" "$ps" verify chain1/checkpoints/25
rm -rf chain* whole* halves merged shrunk a b
# Text tables.
sed 's/3000/4/' c.yaml > small.yaml
ok "$train" small.yaml --output small
ok "$ps" dump small --states -o whole1.csv
ok "$ps" import whole1.csv --table user -o imported
ok "$ps" dump imported --states -o imported.csv
python3 - <<'P' || fail "an imported table has other rows"
import csv
rows = lambda name: sorted(sorted(row.items()) for row in csv.DictReader(open(name)))
assert rows("whole1.csv") == rows("imported.csv")
P
ok "$train" small.yaml train.steps=2 "init={weights: imported/model.safetensors}" --output again
printf '7 101 3 0.5 4 1 0.25 2.5 0.125 -0.5 0.75\n18446744073709551615 101 0 0.1 2 0 -1 1\n' > part-000
ok "$ps" import part-000 --format paddle --key-type uint64 --table emb -o paddle
ok "$ps" show paddle --key 7,18446744073709551615 --json
python3 - "$folder/out" <<'P' || fail "a text table of PaddlePaddle is read otherwise"
import json, sys
a, b = json.load(open(sys.argv[1]))["keys"]
assert (a["weight"], a["show"], a["click"], a["day"], a["wide"]) == ([0.25, 0.125, -0.5], 4, 1, 0, 1), a
assert (b["weight"], b["show"], b["click"], b["day"], b["wide"]) == ([-1, 0, 0], 2, 0, 3, 0), b
P
wrong() {  # LINE, MESSAGE, OPTIONS
  printf '%s\n' "$1" > bad
  expect 4 "$2" "$ps" import bad --table t -o y "${@:3}"
  grep -q "bad:" "$folder/error" || fail "the place of '$1' is not named"
}
wrong 'key,weight_0,weight_1
1,2' "has fewer cells than the header"
wrong 'key,weight_0
1,two' "'two' is not a finite float32 number"
wrong 'key,weight_0
1,nan' "is not a finite"
wrong 'key,weight_0
1,2
1,3' "the key comes twice"
wrong 'key,weight_1
1,2' "is out of order"
wrong 'id,weight_0' "the first column is not 'key'"
wrong '-1 1 1 1 1 1 1 1' "is not a key of type uint64" --format paddle --key-type uint64
wrong '1 1 1' "has 2 numbers after the key" --format paddle
[[ ! -e y ]] || fail "a failed command left a folder"
finish
