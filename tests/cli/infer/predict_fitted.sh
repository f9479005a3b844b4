#!/usr/bin/env bash
# Values fitted to the training rows (scaling, vocabularies, class lists, characters) are used
# by every way of predicting: `--data` with the run's sections or another config, and `--input` files
# of every kind. The measure is the run's own last validation, or arithmetic.
set -uo pipefail
command -v python3 > /dev/null || { echo "python3 is missing"; exit 77; }
source "$(dirname "${BASH_SOURCE[0]}")/../expect.bash"
here="$(dirname "${BASH_SOURCE[0]}")"
python3 "$here/make_fitted_data.py" "$folder" || exit 1

# The last value of a metric of validation.
validated() {
  python3 -c "
import json, sys
rows = [json.loads(line) for line in open('$folder/$1/metrics.jsonl')]
print(f\"{[r['$2'] for r in rows if r['kind'] == 'valid'][-1]:.4f}\")"
}
trains() { "$train" "$folder/$1.yaml" --threads 1 data.workers=0 train.checkpoint_every=never --output "$folder/$1" > "$folder/out" 2> "$folder/error" || fail "training of $1"; }
# same_accuracy RUN ARGUMENT…: paddle-infer prints the accuracy of the last validation, which is not
# the one that statistics of the predicted rows would give.
same_accuracy() {
  local run="$1" status wanted
  shift
  wanted="$(validated "$run" acc)"
  status="$(run_bounded "$infer" "$folder/$run/model" "$@" --quiet)"
  [[ "$status" == 0 ]] && grep -qx "accuracy: $wanted" "$folder/out" ||
    fail "$run $*: $(grep accuracy "$folder/out"), expected $wanted"
}

# ---- scaling and categories of CSV ---------------------------------------------------------------
# The label is x > 50, inverted for one category. Validation rows lie between 40 and 60 and have
# two of the four categories, so statistics and a vocabulary of their own would be others.
for scaling in standard min_max; do
  sed "s/SCALING/$scaling/" "$folder/csv.template" > "$folder/csv_$scaling.yaml"
  trains "csv_$scaling"
  [[ "$(validated "csv_$scaling" acc)" > 0.9 ]] || fail "the case is too hard"
  same_accuracy "csv_$scaling" --data valid
  same_accuracy "csv_$scaling" --data "$folder/csv_$scaling.yaml:valid"
  same_accuracy "csv_$scaling" --data "$folder/other_section.yaml:train"
  same_accuracy "csv_$scaling" --data "$folder/arrays_of_csv.yaml:train"
  same_accuracy "csv_$scaling" --input "$folder/valid.csv"
  same_accuracy "csv_$scaling" --input "$folder/valid.tsv"
  same_accuracy "csv_$scaling" --input "$folder/valid.npz"
  # As versions without fitted.json wrote it: the statistics stand in the config.
  rm "$folder/csv_$scaling/model/fitted.json"
  same_accuracy "csv_$scaling" --data valid
  same_accuracy "csv_$scaling" --input "$folder/valid.csv"
done

# ---- arrays with transforms ----------------------------------------------------------------------
trains arrays
same_accuracy arrays --data valid
same_accuracy arrays --input "$folder/valid.npz"
quiet 0 "$infer" "$folder/arrays/checkpoints/latest" --data valid --quiet --output "$folder/a.npz"
quiet 0 "$infer" "$folder/arrays/model" --input "$folder/valid.npz" --quiet --output "$folder/b.npz"
cmp -s "$folder/a.npz" "$folder/b.npz" || fail "arrays by --input and --data differ"

# ---- class folders -------------------------------------------------------------------------------
# Validation has the classes b and c only.
trains images
[[ "$(validated images acc)" == 1.0000 ]] || fail "the case is too hard"
same_accuracy images --data valid
same_accuracy images --data "$folder/other_images.yaml:train"
same_accuracy images --input "$folder/valid_images"
# Only the run's transforms decide: resize to 12 x 36, then the middle 8 x 8.
quiet 0 "$infer" "$folder/images/model" --data valid --quiet --output "$folder/a.npz"
quiet 0 "$infer" "$folder/images/model" --input "$folder/valid_images" --quiet --output "$folder/b.npz"
cmp -s "$folder/a.npz" "$folder/b.npz" || fail "pictures by --input and --data differ"

# ---- characters of a text ------------------------------------------------------------------------
# The validation text lacks the first characters of the training text.
trains text
quiet 0 "$infer" "$folder/text/model" --data valid --quiet --output "$folder/section.jsonl"
quiet 0 "$infer" "$folder/text/model" --input "$folder/valid.txt" --quiet --output "$folder/file.jsonl"
for form in section file; do
  loss="$(python3 "$here/text_loss.py" "$folder/$form.jsonl" "$folder/train.txt" "$folder/valid.txt" 8)"
  [[ "$loss" == "$(validated text loss)" ]] || fail "text ($form): loss $loss, expected $(validated text loss)"
done

# ---- a scaled target comes back in its units, with the true value next to it -----------------------
trains target
for output in predicted.jsonl predicted.csv predicted.npz; do
  quiet 0 "$infer" "$folder/target/model" --data valid --quiet --output "$folder/$output"
done
quiet 0 "$infer" "$folder/target/model" --input "$folder/target.csv" --quiet --output "$folder/file.jsonl"
python3 "$here/check_fitted.py" "$folder" || fail "predictions of a scaled target"

# ---- outputs that are probabilities already -------------------------------------------------------
for ending in softmax log_softmax sigmoid; do
  sed "s/ENDING/$ending/" "$folder/ending.template" > "$folder/$ending.yaml"
  trains "$ending"
  quiet 0 "$infer" "$folder/$ending/model" --input "$folder/ending.npz" --output "$folder/$ending.jsonl"
  quiet 0 "$infer" "$folder/$ending/model" --input "$folder/ending.npz" --output "$folder/$ending.npz"
  python3 "$here/check_fitted.py" "$folder" "$ending" || fail "probabilities of $ending"
done

# ---- bad rows keep their number -------------------------------------------------------------------
for output in skipped.jsonl skipped.csv skipped.npz; do
  run_bounded "$infer" "$folder/target/model" --data "$folder/bad_rows.yaml:train" --quiet --output "$folder/$output" > "$folder/status"
  [[ "$(cat "$folder/status")" == 0 ]] && grep -qF "2 of 5 samples were skipped" "$folder/error" || fail "skipping rows"
done
python3 "$here/check_fitted.py" "$folder" skipped || fail "numbers of skipped rows"

# ---- unknown categories have an id of their own ----------------------------------------------------
trains unknown
quiet 0 "$infer" "$folder/unknown/model" --input "$folder/unknown.csv" --output "$folder/unknown.jsonl"
python3 "$here/check_fitted.py" "$folder" unknown || fail "an unknown category"
expect 4 "d.csv:3: column 'city': 'z\\xE9' is not UTF-8" "$train" "$folder/unknown.yaml" "data.train.path=$folder/latin1/d.csv" --output "$folder/latin1/run"

# ---- images: one size without resize, and overlapping sections -------------------------------------
trains one_size
expect 4 "0.png: 'image' has shape [3, 20, 60] after the transforms, the model takes" "$train" "$folder/one_size.yaml" "model.inputs.image=float32[batch, 3, 9, 9]" --output "$folder/other_size"
# 16 bits a sample are kept, reduced or rejected; x * 40 * 257 in this file.
mkdir -p "$folder/deep/a" && cp tests/data/formats/sixteen_bit.png "$folder/deep/a/"
deep=("$folder/one_size.yaml" "data.train.path=$folder/deep" data.train.channels=1 "model.inputs.image=float32[batch, 1, 4, 6]")
expect 4 "sixteen_bit.png: 16 bits a sample, expected 8; set \`dtype: uint16\`" "$train" "${deep[@]}" --output "$folder/deep_run"
quiet 0 "$train" "${deep[@]}" data.train.dtype=uint16 --check-data
grep -qF "image: uint16[1, 4, 6] from 0 to 51400" "$folder/out" || fail "16-bit samples are kept"
quiet 0 "$train" "${deep[@]}" data.train.reduce_16_bit=true --check-data
grep -qF "image: uint8[1, 4, 6] from 0 to 200" "$folder/out" || fail "16-bit samples are reduced"
expect 0 "also in data.train" "$train" "$folder/one_size.yaml" "data.valid={kind: images, path: $folder/valid_images}" --check-data
expect 3 "part: 'a' is given without \`split\`" "$train" "$folder/one_size.yaml" data.train.part=a --check-data
finish
