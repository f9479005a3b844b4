#!/usr/bin/env bash
# Tables that ranks share: processes give the bits of simulated ranks, with clipping and short last
# batches; where sums are exact any number of ranks gives the same; a run that was killed continues
# from its checkpoint with another number of ranks; tables that checkpoints hold in files of their
# own; keys of 64 bits.
# needs: python3
set -uo pipefail
command -v python3 > /dev/null || { echo "python3 is missing"; exit 77; }
source "$(dirname "${BASH_SOURCE[0]}")/../expect.bash"
launch="$bin/paddle-launch"
cd "$folder" || exit 1
python3 - <<'P'
import random
random.seed(3)
keys = [0, 1, 2**63 - 1, 2**63, 2**64 - 1] + [random.randrange(2**64) for _ in range(60)]
with open("rows.csv", "w") as f:
    f.write("a,b,c,y\n")
    for i in range(67):
        a, b, c = (random.choice(keys) for _ in range(3))
        f.write(f"{a},{b},{c},{random.randrange(-3, 4)}\n")
P
cat > c.yaml <<'Y'
model:
  name: net
  inputs: {keys: "uint64[batch, 3]"}
  model: |
    rows = sparse_embedding(keys, 4, name="emb")
    wide = sparse_embedding(keys, 1, name="wide", weight_init=zeros)
    prediction = squeeze(linear(tanh(sum(rows, 1)), 1), [1]) + sum(wide, [1, 2])
  outputs: [prediction]
loss: mse_loss(prediction, y)
optimizer: {name: adam, lr: 0.05}
clip: {global_norm: 0.5}
data:
  batch_size: 8
  train:
    kind: csv
    path: rows.csv
    fields:
      - {name: keys, columns: [a, b, c], dtype: uint64}
      - {name: y, scalar: true, dtype: float32}
train: {epochs: 4, log_every: 1, checkpoint_every: 1 epochs}
Y
run() {  # run NAME ARGUMENT…: ends with 0
  local name="$1"
  shift
  ok "$@" --output "$name"
}
same() {  # same A B: the models and last checkpoints have equal bytes
  local file
  for file in model/model.safetensors checkpoints/latest/model.safetensors checkpoints/latest/optimizer.safetensors; do
    cmp -s "$1/$file" "$2/$file" || fail "$file of $1 and $2 differ"
  done
}

# Processes as simulated ranks; with 3 ranks the last batch leaves one rank a single sample.
for n in 2 3 4; do
  run "process$n" "$launch" -n "$n" paddle-train c.yaml parallel.data="$n"
  run "simulated$n" "$train" c.yaml parallel.data="$n" --simulate "$n"
  same "process$n" "simulated$n"
done
run plain "$train" c.yaml
run one "$launch" -n 1 paddle-train c.yaml
same plain one

# The files, by a reader that shares no code with the programs.
python3 - <<'P' || fail "the checkpoint of 4 ranks is not a sorted table of all keys"
import csv, json, struct
def tensors(path):
    data = open(path, "rb").read()
    size = 8 + struct.unpack("<Q", data[:8])[0]
    return {k: (v["dtype"], v["shape"], data[size + v["data_offsets"][0] : size + v["data_offsets"][1]])
            for k, v in json.loads(data[8:size]).items() if k != "__metadata__"}
seen = {int(row[c]) for row in csv.DictReader(open("rows.csv")) for c in "abc"}
for run in ("plain", "process4", "simulated3"):
    for file in ("model/model.safetensors", "checkpoints/latest/model.safetensors"):
        t = tensors(f"{run}/{file}")
        dtype, shape, data = t["emb.keys"]
        keys = struct.unpack(f"<{shape[0]}Q", data)
        assert dtype == "U64" and list(keys) == sorted(seen), (run, file)
        assert t["emb.weight"][1] == [len(seen), 4] and t["wide.weight"][1] == [len(seen), 1]
    t = tensors(f"{run}/checkpoints/latest/optimizer.safetensors")
    assert t["optimizer/emb.weight/moment2"][1] == [len(seen), 4]
P
for model in plain process4 process4/checkpoints/latest; do
  ok "$infer" "$model" --input rows.csv --output "$(tr / - <<< "$model").csv"
done
cmp -s process4.csv process4-checkpoints-latest.csv || fail "a checkpoint predicts something else"

# Sums of integers are exact: any number of ranks, and micro-batches, give the bits of one.
sed -e 's/^  model: |/  model: |\n    one = sum(sparse_embedding(keys, 4, name="emb", weight_init=zeros), [1, 2])/' \
  -e '/rows = /d; /wide = /d; s/^    prediction = .*/    prediction = one/' \
  -e 's/^loss: .*/loss: sum(prediction * y)/; s/^optimizer: .*/optimizer: {name: sgd, lr: 1}/; /^clip:/d' c.yaml > sums.yaml
run sums "$train" sums.yaml
for n in 2 3 4; do
  run "sums$n" "$train" sums.yaml parallel.data="$n" --simulate "$n"
  same sums "sums$n"
done
run parts "$train" sums.yaml train.accumulate=3
same sums parts
run parts2 "$train" sums.yaml train.accumulate=3 parallel.data=2 --simulate 2
same sums parts2

# Gradients of which no value of the batch is a part, the same value for two lookups.
cat > constant.yaml <<'Y'
model:
  name: net
  inputs: {a: "uint64[batch]", b: "uint64[batch]"}
  model: |
    rows = sparse_embedding(a, 8, name="user", weight_init=zeros)
    same = sparse_embedding(b, 8, name="item", weight_init=zeros)
  outputs: [rows, same]
loss: sum(rows) + sum(same)
optimizer: {name: sgd, lr: 1}
data:
  batch_size: 64
  train:
    kind: csv
    path: rows.csv
    fields:
      - {name: a, columns: a, scalar: true, dtype: uint64}
      - {name: b, columns: b, scalar: true, dtype: uint64}
train: {epochs: 2, log_every: 1, checkpoint_every: 1 epochs}
Y
run constant "$train" constant.yaml
for n in 2 3; do
  run "constant$n" "$train" constant.yaml parallel.data="$n" --simulate "$n"
  same constant "constant$n"
done
run constant-process "$launch" -n 2 paddle-train constant.yaml parallel.data=2
same constant constant-process
python3 - <<'P' || fail "rows of constant gradients are not minus the counts of their keys"
import collections, csv, json, struct
data = open("constant2/model/model.safetensors", "rb").read()
size = 8 + struct.unpack("<Q", data[:8])[0]
header = json.loads(data[8:size])
def values(name, letter):
    begin, end = header[name]["data_offsets"]
    return struct.unpack(f"<{(end - begin) // struct.calcsize(letter)}{letter}", data[size + begin : size + end])
for table, column in (("user", "a"), ("item", "b")):
    counts = collections.Counter(int(row[column]) for row in csv.DictReader(open("rows.csv")))
    keys, weights = values(f"{table}.keys", "Q"), values(f"{table}.weight", "f")
    assert {k: weights[8 * i : 8 * i + 8] for i, k in enumerate(keys)} == {k: (-2.0 * n,) * 8 for k, n in counts.items()}
P
run mean "$train" constant.yaml loss="mean(rows)" parallel.data=2 --simulate 2

# Killed, and continued by another number of ranks.
cp -r sums killed
rm -r killed/model killed/checkpoints/latest
for step in killed/checkpoints/*; do [[ "$(basename "$step")" == 9 ]] || rm -r "$step"; done
ln -s 9 killed/checkpoints/latest
for n in 1 2 4; do
  cp -r killed "killed$n"
  if ((n == 1)); then
    ok "$train" --resume "killed$n"
  else
    ok "$launch" -n "$n" paddle-train --resume "killed$n" parallel.data="$n"
  fi
  same sums "killed$n"
done

# A table above 64 MiB has files of its own in checkpoints, which other numbers of ranks read.
python3 - <<'P'
import random
random.seed(4)
with open("large.csv", "w") as f:
    f.write("key,y\n")
    for i in range(9000):
        f.write(f"{random.randrange(2**64)},{random.randrange(-3, 4)}\n")
P
sed -e 's/keys: "uint64\[batch, 3\]"/keys: "uint64[batch]"/; s/(keys, 4, name="emb", weight_init=zeros), \[1, 2\]/(keys, 2048, name="emb", weight_init=zeros), [1]/' \
  -e 's/path: rows.csv/path: large.csv/; s/columns: \[a, b, c\], dtype/columns: key, scalar: true, dtype/' \
  -e 's/batch_size: 8/batch_size: 1000/; s/^train: .*/train: {steps: 12, log_every: 1, checkpoint_every: 9, keep_checkpoints: 5}/' sums.yaml > large.yaml
run large "$train" large.yaml
run large2 "$launch" -n 2 paddle-train large.yaml parallel.data=2
[[ -f large/checkpoints/12/tables/emb/manifest.json ]] || fail "the table has no files of its own"
cmp -s large/model/model.safetensors large2/model/model.safetensors || fail "the models of large and large2 differ"
python3 - <<'P' || fail "the files of the table are not those of its shards"
import csv, glob, json, os, struct
seen = {int(row["key"]) for row in csv.DictReader(open("large.csv"))}
def mix(x):
    m = 2**64 - 1
    x = (x + 0x9E3779B97F4A7C15) & m
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & m
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & m
    return x ^ (x >> 31)
for run in ("large", "large2"):
    base = f"{run}/checkpoints/12/tables/emb"
    manifest = json.load(open(f"{base}/manifest.json"))
    found = []
    for each in manifest["files"]:
        data = open(f"{base}/{each['file']}", "rb").read()
        size = 8 + struct.unpack("<Q", data[:8])[0]
        header = json.loads(data[8:size])
        begin, end = header["keys"]["data_offsets"]
        keys = struct.unpack(f"<{(end - begin) // 8}Q", data[size + begin : size + end])
        places = [(mix(key) >> 54, key) for key in keys]
        assert places == sorted(places) and all(each["shards"][0] <= s <= each["shards"][1] for s, _ in places)
        assert header["weight"]["shape"] == [len(keys), 2048]
        found += keys
    assert len(found) == manifest["count"] == len(seen) and set(found) == seen
P
head -5 large.csv > few.csv
ok "$infer" large2/checkpoints/12 --input few.csv --output few-checkpoint.csv
ok "$infer" large --input few.csv --output few-model.csv
cmp -s few-checkpoint.csv few-model.csv || fail "a checkpoint with files of tables predicts something else"
for from in large large2; do
  for n in 1 3; do
    cp -r "$from" cut
    rm -r cut/model cut/checkpoints/12
    ln -sfn 9 cut/checkpoints/latest
    ok "$train" --resume cut parallel.data="$n" --simulate "$n"
    cmp -s large/model/model.safetensors cut/model/model.safetensors || fail "$from, resumed with $n ranks, ends with other rows"
    rm -r cut
  done
done
# A damaged file: the checkpoint before it is used.
cp -r large cut
rm -r cut/model
python3 - <<'P'
import glob
path = sorted(glob.glob("cut/checkpoints/12/tables/emb/delta-12/*.safetensors"))[3]
data = bytearray(open(path, "rb").read())
data[len(data) // 2] ^= 1
open(path, "wb").write(data)
P
ok "$train" --resume cut
grep -q "is damaged" error || fail "the damaged file is not named"
cmp -s large/model/model.safetensors cut/model/model.safetensors || fail "the run after a damaged checkpoint ends with other rows"

# Other axes of ranks are rejected.
expect 3 "tables are shared by the ranks of 'parallel.data' only" "$train" c.yaml --output bad parallel.data=2 parallel.tensor=2 --simulate 4
finish
