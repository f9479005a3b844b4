#!/usr/bin/env bash
# The label next to a prediction is what the loss compares: a price and not the number of a category,
# the names of several labels, the text that is right; and files of the user are not replaced.
set -uo pipefail
command -v python3 > /dev/null || { echo "python3 is missing"; exit 77; }
source "$(dirname "${BASH_SOURCE[0]}")/../expect.bash"
cd "$folder" || exit 1
printf 'a,c,price\n1,x,100\n2,y,200\n3,x,300\n4,z,400\n' > d.csv
printf 'a,c\n1,x\n' > new.csv
cat > c.yaml <<'Y'
model:
  inputs: {numbers: "float32[batch, 1]", cat: "int64[batch, 1]"}
  model: |
    value = squeeze(linear(numbers, 1), [1]) + 0 * cast(cat[:, 0], "float32")
  outputs: [value]
loss: mse_loss(value, label)
optimizer: {name: sgd, lr: 0}
data:
  batch_size: 2
  train: &t {kind: csv, path: d.csv, fields: [{name: numbers, columns: [a]}, {name: cat, columns: [c], kind: categorical}, {name: label, columns: [price], scalar: true}]}
  valid: *t
train: {epochs: 1}
Y
ok "$train" c.yaml
ok "$infer" runs/c --data valid --output p.csv
[[ "$(cut -d, -f3 p.csv | tr '\n' ' ')" == "label 100 200 300 400 " ]] || fail "labels of a regression: $(cat p.csv)"
ok "$infer" runs/c new.csv --output p.jsonl
grep -q '"label"' p.jsonl && fail "a label of a file without one: $(cat p.jsonl)"

# An output that is an input, or a file that no prediction wrote, stays.
printf 'a,c,note\n1,x,kept\n' > rows.csv
cp rows.csv before.csv
expect 2 "rows.csv is an input" "$infer" runs/c rows.csv --output rows.csv
expect 2 "rows.csv is an input" "$infer" runs/c rows.csv --output ./rows.csv --overwrite
cmp -s rows.csv before.csv || fail "the input was replaced"
expect 2 "already exists and was not written by a prediction" "$infer" runs/c new.csv --output rows.csv
cmp -s rows.csv before.csv || fail "a table of the user was replaced"
ok "$infer" runs/c new.csv --output p.csv
ok "$infer" runs/c new.csv --output p.npz
ok "$infer" runs/c new.csv --output p.npz
ok "$infer" runs/c new.csv --output rows.csv --overwrite

# Several labels of a row: their names, and a probability for each.
printf 'x,y,tags\n1,0,red|big\n0,1,\n1,1,big\n0,0,rare\n2,0,red|big\n0,2,rare\n' > t.csv
cat > t.yaml <<'Y'
model: {inputs: {x: "float32[batch, 2]"}, model: "logits = linear(x, 3)", outputs: [logits]}
loss: binary_cross_entropy_with_logits(logits, tags)
optimizer: {name: adam, lr: 0.1}
data:
  batch_size: 6
  train: &t {kind: csv, path: t.csv, fields: [{name: x, columns: [x, y]}, {name: tags, kind: multi_label}]}
  valid: *t
train: {epochs: 200}
Y
ok "$train" t.yaml
ok "$infer" runs/t --data valid --output t.csvout.csv
[[ "$(head -1 t.csvout.csv)" == "row,source,label,classes,p_big,p_rare,p_red" ]] || fail "columns: $(head -1 t.csvout.csv)"
ok "$infer" runs/t --data valid --output t.jsonl
python3 - <<'P' || fail "several labels: $(head -2 t.jsonl)"
import json, math
import csv
rows = [json.loads(line) for line in open("t.jsonl")]
assert rows[0]["label"] == ["big", "red"] and rows[1]["label"] == [], rows[:2]
for row in rows:
    assert row["classes"] == [k for k, p in row["probabilities"].items() if p >= 0.5]
    assert list(row["probabilities"]) == ["big", "rare", "red"]
    assert all(0 <= p <= 1 for p in row["probabilities"].values())
assert rows[4]["classes"] == ["big", "red"]
table = list(csv.DictReader(open("t.csvout.csv")))
assert table[0]["label"] == "big|red" and abs(float(table[0]["p_red"]) - rows[0]["probabilities"]["red"]) < 1e-6
P

# Texts that are written token by token, and tags.
python3 - <<'P'
import random
random.seed(0)
words = ["".join(random.choice("abc") for _ in range(random.randint(2, 6))) for _ in range(200)]
open("s.csv", "w").write("word,back\n" + "".join(f"{' '.join(w)},{' '.join(w[::-1])}\n" for w in words))
P
ok "$bin/paddle-new" sequence-to-sequence --data s.csv -o s.yaml --small
ok "$train" s.yaml train.epochs=1
ok "$infer" runs/s --data valid --output s.jsonl
ok "$infer" runs/s --data valid --output s.out.csv
python3 - <<'P' || fail "labels of texts: $(head -2 s.jsonl)"
import csv, json
pairs = {tuple(r) for r in csv.reader(open("s.csv"))}
rows = [json.loads(line) for line in open("s.jsonl")]
backs = {b for _, b in pairs}
assert rows and all(r["label"] in backs for r in rows)
assert [r["label"] for r in csv.DictReader(open("s.out.csv"))] == [r["label"] for r in rows]
P

# Rows of arrays that are not finite are treated as `data.nan` says.
python3 - <<'P'
import struct, zipfile
def npy(shape, values, code="f4", kind="f"):
    header = "{'descr': '<%s', 'fortran_order': False, 'shape': %s, }" % (code, shape)
    header += " " * (-(10 + len(header) + 1) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + struct.pack(f"<{len(values)}{kind}", *values)
def save(name, **arrays):
    with zipfile.ZipFile(name, "w") as z:
        for k, v in arrays.items(): z.writestr(k + ".npy", v)
nan = float("nan")
save("d.npz", x=npy((4, 2), [1, 2, -1, 0, 3, 1, -2, 1]), y=npy((4,), [1, 0, 1, 0], "i8", "q"))
save("q.npz", x=npy((3, 2), [1, 2, 1, nan, 3, 4]))
P
cat > n.yaml <<'Y'
model: {inputs: {x: "float32[batch, 2]"}, model: "logits = linear(x, 2)", outputs: [logits]}
loss: cross_entropy(logits, y)
optimizer: {name: sgd, lr: 0.1}
data: {batch_size: 4, train: {kind: npz, path: d.npz}}
train: {epochs: 1}
Y
ok "$train" n.yaml
ok "$train" n.yaml data.nan=skip --output runs/skip
expect 4 "sample 1, field 'x', element 1: NaN in the data" "$infer" runs/n q.npz --output q.jsonl
ok "$infer" runs/skip q.npz --output q.jsonl
python3 - <<'P' || fail "a NaN row: $(cat q.jsonl)"
import json
rows = [json.loads(line) for line in open("q.jsonl")]
assert ["skipped" in r for r in rows] == [False, True, False] and rows[1]["row"] == 1
P
finish
