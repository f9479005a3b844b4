#!/usr/bin/env bash
# Damaged, hostile and unsuitable data of every kind: one line with the file and the place in it,
# exit status 4, no crash, and no memory taken for sizes that only a header claims.
set -uo pipefail
command -v python3 > /dev/null || { echo "python3 is missing"; exit 77; }
source "$(dirname "${BASH_SOURCE[0]}")/../expect.bash"
python3 "$(dirname "${BASH_SOURCE[0]}")/make_bad_data.py" "$folder" tests/data/formats || exit 1

# A config of two numbers to three classes, on the data that the arguments name.
numbers=(--output "$folder/run" --overwrite)
cat > "$folder/numbers.yaml" <<'Y'
model:
  inputs: {x: "float32[batch, 2]"}
  model: [{linear: 3}]
  outputs: [logits]
loss: cross_entropy(logits, label)
optimizer: {name: sgd, lr: 0.1}
data:
  batch_size: 8
  shuffle: false
  train:
    kind: csv
    path: good.csv
    fields:
      - {name: x, columns: [a, b]}
      - {name: label, scalar: true, dtype: int64}
train: {epochs: 1}
Y
quiet 0 "$train" "$folder/numbers.yaml" "${numbers[@]}"

with() { expect "$1" "$2" "$train" "$folder/numbers.yaml" "${numbers[@]}" "data.train.path=$folder/$3" "${@:4}"; }
with 4 "nowhere.csv" nowhere.csv
with 4 "the file is empty" empty.csv
with 4 "empty" header_only.csv
with 4 "uneven.csv:5" uneven.csv
with 4 "quote.csv:4" quote.csv
with 4 "word.csv:6: column 'b'" word.csv
with 4 "missing.csv:3: column 'a'" missing.csv
with 4 "label.csv:7, column 'label': label 3 is outside 0..2" label.csv
with 4 "negative.csv:7, column 'label': label -1 is outside 0..2" negative.csv
with 4 "nan.csv:4, column 'a': NaN" nan.csv
with 4 "infinite.csv:4, column 'b': infinity" infinite.csv
with 4 "commas.csv:1: a row of more than 1048576 fields" commas.csv
with 4 "binary.csv" binary.csv
with 4 "no column 'label'" other_columns.csv
with 4 "folder" .
# The policies: keep, skip, and skipping too much.
with 4 "max_bad_rate" label.csv data.on_bad_sample=skip
with 0 "label.csv:7" label.csv data.on_bad_sample=skip data.max_bad_rate=0.5
grep -q "label.csv:7" "$folder/run/skipped.jsonl" || fail "no list of skipped samples"
with 0 "uneven.csv:5" uneven.csv data.on_bad_sample=skip data.max_bad_rate=0.5
with 0 "nan.csv:4" nan.csv data.nan=skip data.max_bad_rate=0.5
with 4 "the loss is" nan.csv data.nan=keep
with 4 "max_bad_rate" all_bad.csv data.on_bad_sample=skip
with 4 "no good sample" all_bad.csv data.on_bad_sample=skip data.max_bad_rate=1
expect 4 "only_words.csv:2: column 'a'" "$train" "$folder/numbers.yaml" "data.train.path=$folder/only_words.csv" --check-data

# Arrays.
arrays() {
  expect 4 "$1" "$train" "$folder/numbers.yaml" "${numbers[@]}" "data.train={kind: npz, path: $folder/$2}"
}
arrays "not a zip" text.npz
arrays "cut short" cut.npz
arrays "cut short" huge_shape.npz
arrays "impossible size" huge_entry.npz
arrays "has 9 samples" different_lengths.npz
arrays "x" nan.npz
arrays "label 5 is outside 0..2" label.npz
expect 4 "cut short" "$train" "$folder/numbers.yaml" "${numbers[@]}" "data.train={kind: npy, files: {x: $folder/cut.npy, label: $folder/cut.npy}}"
expect 4 "too large" "$train" "$folder/numbers.yaml" "${numbers[@]}" "data.train={kind: npy, files: {x: $folder/huge.npy, label: $folder/huge.npy}}"
expect 4 "NPY header" "$train" "$folder/numbers.yaml" "${numbers[@]}" "data.train={kind: npy, files: {x: $folder/huge_header.npy, label: $folder/huge.npy}}"

# Images in IDX files and folders.
idx() {
  expect 4 "$1" "$train" configs/quickstart/digits.yaml "${numbers[@]}" data.valid= train.epochs=1 "data.train={kind: idx, images: $folder/$2, labels: $folder/labels.idx}"
}
idx "cut short" cut.idx
idx "cut short" huge.idx
idx "cut short" cut.idx.gz
idx "not an IDX file" text.idx
idx "four.idx has 4" four.idx
expect 4 "label_12.idx: sample 2, field 'label': label 12 is outside 0..9" "$train" configs/quickstart/digits.yaml "${numbers[@]}" data.valid= "data.train={kind: idx, images: $folder/images.idx, labels: $folder/label_12.idx}"
images() {
  expect 4 "$1" "$train" configs/quickstart/digits.yaml "${numbers[@]}" data.valid= "data.train={kind: images, path: $folder/$2, channels: 1}" "data.augment=[{resize: {fields: image, height: 28, width: 28}}]"
}
images "damaged PNG" cut_png
images "damaged JPEG" cut_jpeg
images "pixels" huge_png
images "neither JPEG, PNG, TIFF, WebP nor BMP" text_png
images "no .jpg" empty_folder
images "No such file or folder" no_folder

# Indices that only the kernel sees: the same in both modes, and in inference.
printf 'a,at\n0.5,0\n0.25,99\n' > "$folder/far.csv"
cat > "$folder/far.yaml" <<'Y'
model: {inputs: {x: "float32[batch, 1]"}, model: [{linear: 3}], outputs: [y]}
loss: mean(index_select(y, at, 0))
optimizer: sgd
data:
  batch_size: 2
  train: {kind: csv, path: far.csv, fields: [{name: x, columns: [a]}, {name: at, scalar: true, dtype: int64}]}
train: {epochs: 1}
Y
expect 4 "index_select: index 99 is out of range for 2 elements" "$train" "$folder/far.yaml" --output "$folder/far"
expect 4 "index_select: index 99 is out of range for 2 elements" "$train" "$folder/far.yaml" --eager --output "$folder/far"
printf 'inputs: {out: "int64[batch]"}\nmodel: |\n  y = index_select(arange(3), out)\noutputs: [y]\n' > "$folder/far_model.yaml"
quiet 0 "$bin/paddle-op" run assign "x=i64(0,99)" -o "$folder/far.npz"
expect 4 "index_select: index 99 is out of range for 3 elements" "$infer" "$folder/far_model.yaml" --input "$folder/far.npz"

# Weights.
weights() { expect 5 "$1" "$infer" models/lenet.yaml --weights "$folder/$2" --benchmark 1 --batch 1; }
weights "cut short" cut.safetensors
weights "not a safetensors file" huge_header.safetensors
weights "not a valid JSON" text.safetensors
weights "impossible shape" huge_shape.safetensors
weights "do not fit" other.safetensors
finish
