#!/usr/bin/env bash
# Prediction from every kind of input (NPZ, CSV, picture files and folders, text, a config's data) to
# every kind of output (NPZ, CSV, JSONL, lines): the same numbers whichever way they come, with class
# names, probabilities and sources.
set -uo pipefail
command -v python3 > /dev/null || { echo "python3 is missing"; exit 77; }
source "$(dirname "${BASH_SOURCE[0]}")/../expect.bash"
here="$(dirname "${BASH_SOURCE[0]}")"

# ---- digits: arrays and data sections ------------------------------------------------------------

"$train" configs/quickstart/digits.yaml "data.train={kind: digits, size: 640}" "data.valid={kind: digits, size: 50, seed: 4}" train.epochs=2 --output "$folder/digits" > "$folder/out" || cat "$folder/out"
model="$folder/digits/model"
quiet 0 "$infer" "$model" --data valid --quiet --output "$folder/valid.npz"
grep -q "^accuracy: 0\.[0-9]" "$folder/out" && grep -q "predicted 50 samples" "$folder/out" || fail "no accuracy of the data section"
quiet 0 "$infer" "$model" --data valid --quiet --output "$folder/valid.csv"
quiet 0 "$infer" "$model" --data valid --quiet --output "$folder/valid.jsonl" --batch 7
quiet 0 "$infer" "$model" --data "$folder/digits/config.yaml:train" --quiet --output "$folder/train.npz"
quiet 0 "$infer" "$folder/digits" --data valid --quiet --output "$folder/run.npz"
quiet 0 "$infer" "$folder/digits/checkpoints/latest" --data valid --quiet --output "$folder/checkpoint.npz"
cmp "$folder/valid.npz" "$folder/run.npz" || fail "a run folder is not the same as its model"
cmp "$folder/valid.npz" "$folder/checkpoint.npz" || fail "the last checkpoint is the model"
python3 "$here/compare_predictions.py" "$folder/valid" || fail "NPZ, CSV and JSONL differ"

# ---- numbers: CSV with statistics of the training rows, class names by vocabulary -----------------

python3 - "$folder" <<'P'
import random, sys
random.seed(3)
rows = [(random.gauss(50, 20), random.gauss(-3, 0.1)) for _ in range(240)]
with open(sys.argv[1] + "/train.csv", "w") as f:
    f.write("length,width,kind\n")
    for x, y in rows:
        f.write(f"{x:.3f},{y:.4f},{'long' if x > 50 else 'short'}\n")
with open(sys.argv[1] + "/new.csv", "w") as f:  # other rows, other columns, no labels
    f.write("name,width,length\n")
    for i, (x, y) in enumerate(rows[:5] + [(500.0, 3.0)]):
        f.write(f"n{i},{y:.4f},{x:.3f}\n")
P
cat > "$folder/csv.yaml" <<'Y'
model:
  inputs: {x: "float32[batch, 2]"}
  model: [{linear: 8}, relu, {linear: 2}]
  outputs: [logits]
loss: cross_entropy(logits, kind)
metrics: {accuracy: "accuracy(logits, kind)"}
optimizer: {name: adam, lr: 3e-2}
data:
  batch_size: 20
  train: &rows
    kind: csv
    path: train.csv
    range: [0, 200]
    fields:
      - {name: x, columns: [length, width], scaling: standard}
      - {name: kind, scalar: true, kind: categorical}
  valid: {kind: csv, path: train.csv, range: [200, 240], fields: [{name: x, columns: [length, width], scaling: standard}, {name: kind, scalar: true, kind: categorical}]}
train: {epochs: 8, log_every: 1000, evaluate_every: 4 epochs}
Y
"$train" "$folder/csv.yaml" --output "$folder/csv" > "$folder/out" || cat "$folder/out"
quiet 0 "$infer" "$folder/csv/model" "$folder/new.csv" --output "$folder/new.jsonl"
quiet 0 "$infer" "$folder/csv/model" "$folder/train.csv" --quiet --output "$folder/all.jsonl"
quiet 0 "$infer" "$folder/csv/model" "$folder/new.csv" --output "$folder/new.csv.out.csv"
python3 - "$folder" <<'P' || fail "predictions from CSV"
import csv, json, sys
folder = sys.argv[1]
new = [json.loads(line) for line in open(folder + "/new.jsonl")]
everything = [json.loads(line) for line in open(folder + "/all.jsonl")]
assert len(new) == 6 and len(everything) == 240
# The prediction of a row does not depend on the other rows of the file.
for a, b in zip(new[:5], everything[:5]):
    assert a["class"] == b["class"] and abs(a["probability"] - b["probability"]) < 1e-6, (a, b)
truth = [row["kind"] for row in csv.DictReader(open(folder + "/train.csv"))]
right = sum(p["class"] == t for p, t in zip(everything, truth))
assert right > 220, right
assert new[0]["source"].endswith("new.csv:2")
assert abs(sum(new[0]["probabilities"]) - 1) < 1e-6
table = list(csv.DictReader(open(folder + "/new.csv.out.csv")))
assert [r["class"] for r in table] == [p["class"] for p in new]
assert set(table[0]) == {"row", "source", "class", "probability", "p_long", "p_short"}, table[0]
assert abs(float(table[0]["p_long"]) - new[0]["probabilities"][0]) < 1e-6
P
printf 'width,name\n1,2\n' > "$folder/lacking.csv"
expect 4 "no column 'length'" "$infer" "$folder/csv/model" "$folder/lacking.csv"

# ---- pictures ------------------------------------------------------------------------------------

mkdir -p "$folder/pictures"/{cats,dogs} "$folder/flat"
for name in rgb.png grey.png palette.png; do cp "tests/data/formats/$name" "$folder/pictures/cats/"; cp "tests/data/formats/$name" "$folder/flat/"; done
for name in rgb.jpg grey.jpg; do cp "tests/data/formats/$name" "$folder/pictures/dogs/"; cp "tests/data/formats/$name" "$folder/flat/"; done
for name in rgb_lzw.tif lossy.webp palette.bmp; do cp "tests/formats/data/images/$name" "$folder/pictures/dogs/"; cp "tests/formats/data/images/$name" "$folder/flat/"; done
cat > "$folder/pictures.yaml" <<'Y'
model:
  inputs: {image: "float32[batch, 3, 16, 16]"}
  model: [flatten, {linear: 2}]
  outputs: [logits]
loss: cross_entropy(logits, label)
optimizer: {name: sgd, lr: 0.1}
data:
  batch_size: 2
  train: {kind: images, path: pictures}
  augment:
    - random_rotation: {fields: image, degrees: 10}
    - random_resized_crop: {fields: image, height: 20, width: 20, area: [0.5, 1]}
  transforms:
    - resize: {fields: image, height: 16, width: 16}
    - scale: {fields: image, factor: 0.004}
train: {epochs: 2}
Y
"$train" "$folder/pictures.yaml" --output "$folder/look" > "$folder/out" || cat "$folder/out"
quiet 0 "$infer" "$folder/look/model" "$folder/flat" --output "$folder/flat.jsonl"
quiet 0 "$infer" "$folder/look/model" "$folder/pictures" --output "$folder/sorted.jsonl"
quiet 0 "$infer" "$folder/look/model" "$folder/flat/rgb_lzw.tif" "$folder/flat/grey.png" --output "$folder/two.jsonl"
python3 - "$folder" <<'P' || fail "predictions from pictures"
import json, os, sys
read = lambda n: {os.path.basename(r["source"]): r for r in map(json.loads, open(f"{sys.argv[1]}/{n}.jsonl"))}
flat, sorted_, two = read("flat"), read("sorted"), read("two")
assert len(flat) == 8 and set(flat) == set(sorted_) and set(two) == {"rgb_lzw.tif", "grey.png"}
for name, row in flat.items():
    assert row["class"] in ("cats", "dogs")
    for other in (sorted_, two):
        same = [abs(a - b) < 1e-6 for a, b in zip(other.get(name, row)["probabilities"], row["probabilities"])]
        assert len(same) == 2 and all(same), name
P
expect 2 "no such file" "$infer" "$folder/look/model" "$folder/flat/none.png"
printf 'not an image' > "$folder/flat/bad.png"
# Of several pictures, one that cannot be read is skipped and named; by itself it is an error.
expect 4 "bad.png" "$infer" "$folder/look/model" "$folder/flat/bad.png"
ok "$infer" "$folder/look/model" "$folder/flat"
grep -q "bad.png: skipped (" "$folder/out" || fail "the bad picture is not named: $(cat "$folder/out")"
grep -q "1 of 9 samples were skipped" "$folder/error" || fail "no warning: $(cat "$folder/error")"
# Pictures in folders that are not classes are predicted as well.
mkdir -p "$folder/albums/2023/may" && cp "$folder"/flat/rgb.* "$folder/albums/2023/may/"
cp "$folder/flat/grey.png" "$folder/albums/2023/"
ok "$infer" "$folder/look/model" "$folder/albums" --output "$folder/albums.jsonl"
[[ "$(wc -l < "$folder/albums.jsonl")" == 3 ]] || fail "pictures in folders: $(cat "$folder/albums.jsonl")"
grep -q '"label"' "$folder/albums.jsonl" && fail "labels of folders that are not classes"

# ---- arrays --------------------------------------------------------------------------------------

python3 "$here/make_arrays.py" "$folder"
quiet 0 "$infer" "$folder/csv/model" --input "$folder/x.npz" --output "$folder/y.npz" --batch 3
python3 - "$folder" <<'P' || fail "arrays by name"
import sys, zipfile
names = zipfile.ZipFile(sys.argv[1] + "/y.npz").namelist()
assert names == ["logits.npy"], names
P
expect 4 "has no array 'x'" "$infer" "$folder/csv/model" --input "$folder/other_name.npz"
expect 4 "float32[7, 3]" "$infer" "$folder/csv/model" --input "$folder/other_shape.npz"
expect 4 "int64" "$infer" "$folder/csv/model" --input "$folder/other_type.npz"

# ---- text and the command line -------------------------------------------------------------------

for _ in $(seq 30); do printf 'to be or not to be\n'; done > "$folder/text.txt"
"$train" configs/text/char_gpt.yaml "params={layers: 1, width: 16, heads: 2, vocab_size: 8}" "data.train={kind: text, path: $folder/text.txt, context: 16}" data.valid= train.steps=2 --output "$folder/text" > "$folder/out" || cat "$folder/out"
quiet 0 "$infer" "$folder/text/model" "$folder/text.txt" --quiet --output "$folder/text.npz"
printf 'to be, or not\n' > "$folder/comma.txt"
expect 4 "comma.txt:1:6: character ','" "$infer" "$folder/text/model" "$folder/comma.txt"
expect 2 "expected .npz, .csv" "$infer" "$model" "$folder/csv.yaml"
expect 2 "no input is given" "$infer" "$model"
expect 2 ".npz, .csv or .jsonl" "$infer" "$model" --data valid --output "$folder/out.xlsx"
expect 2 "--weights is for model files" "$infer" "$model" --weights "$model/model.safetensors" --data valid
expect 2 "--data: the config has no data.test" "$infer" "$model" --data configs/quickstart/digits.yaml:test
# Tables of where the time goes go to standard error, apart from what scripts read.
"$infer" models/lenet.yaml --benchmark 3 --batch 2 --profile --trace "$folder/t.json" > "$folder/out" 2> "$folder/error" ||
  fail "--profile"
grep -q '"flops"' "$folder/out" && grep -q 'conv2d+relu' "$folder/error" || fail "--profile prints a line and a table"
grep -q '"traceEvents"' "$folder/t.json" && grep -q 'conv2d+relu' "$folder/t.json" || fail "--trace writes a timeline"
"$infer" models/lenet.yaml --benchmark 3 --batch 2 --trace "$folder/none/t.json" > /dev/null 2> "$folder/error"
[ $? = 6 ] && grep -q "cannot write" "$folder/error" || fail "--trace into a folder that is not there"

finish
