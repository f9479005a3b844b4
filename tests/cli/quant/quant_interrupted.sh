#!/usr/bin/env bash
# A job that is killed or interrupted at any point, or that meets a full disk, continues with --resume
# and gives the same model; what was in its output is whole all the time.
set -uo pipefail
command -v python3 > /dev/null || { echo "python3 is missing"; exit 77; }
source "$(dirname "${BASH_SOURCE[0]}")/../expect.bash"
quant="$bin/paddle-quant"

cat > "$folder/net.yaml" <<'Y'
name: net
inputs: {image: "float32[batch, 3, 24, 24]"}
model:
  - conv2d: {out_channels: 16, kernel_size: 3, padding: 1}
  - relu
  - conv2d: {out_channels: 16, kernel_size: 3, padding: 1}
  - relu
  - conv2d: {out_channels: 16, kernel_size: 3, padding: 1}
  - relu
  - conv2d: {out_channels: 16, kernel_size: 3, padding: 1}
  - relu
  - flatten
  - linear: 10
outputs: [logits]
Y
python3 - "$folder/x.npz" <<'P'
import random, struct, sys, zipfile
random.seed(1)
rows = 200
header = str({"descr": "<f4", "fortran_order": False, "shape": (rows, 3, 24, 24)})
header += " " * (63 - (len(header) + 10) % 64) + "\n"
values = [random.gauss(0, 1) for _ in range(4096)]
image = struct.pack("<4096f", *values)
body = b"".join(image[4 * (i % 2000):4 * (i % 2000) + 4 * 1728] for i in range(rows))
with zipfile.ZipFile(sys.argv[1], "w") as z:
    z.writestr("image.npy", b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + body)
P
# A search of several trials: four bits with one scale a channel, and a ratio that few layers reach.
job=("$quant" "$folder/net.yaml" --threads 1 --seed 3 --data "$folder/x.npz" --samples 200 quant.measure=false
     "quant.weights={dtype: int4, per: channel}" quant.accept.sqnr_db=22
     "quant.search={budget: {trials: 20}}")
ok "${job[@]}" -o "$folder/whole"
grep -q "compared on 200 samples only: the 95% interval of the change of the agreement is ±" "$folder/error" ||
  fail "few samples are not pointed out"
python3 - "$folder/whole" <<'P' || fail "the search needs trials to be interrupted"
import json, sys
assert len(json.load(open(sys.argv[1] + "/progress.json"))["trials"]) >= 3
P

# Whatever has a place in an output is a whole model.
check_models() {
  local model
  for model in "$1/model.onnx" "$1/best/model.onnx"; do
    [[ ! -e "$model" ]] || ok "$infer" "$model" --input "$folder/x.npz" --output "$folder/y.npz"
  done
  [[ ! -e "$1/best" || -e "$1/best/report.json" ]] || fail "best/ has no report"
}
# Sends a signal to a job when it says TEXT (at once if TEXT is empty) and prints its status.
end_at() {
  local text="$1" signal="$2" status=0
  shift 2
  "$@" > "$folder/out" 2> "$folder/error" &
  local process=$!
  while kill -0 "$process" 2> /dev/null && ! grep -qF -- "$text" "$folder/error"; do sleep 0.005; done
  [[ -n "$text" ]] || sleep 0.05
  kill -s "$signal" "$process" 2> /dev/null
  wait "$process" 2> /dev/null || status=$?
  echo "$status"
}

interrupted=0
for text in "" calibrating measuring writing comparing "layer 3 of" "search: 1 of" "search: 4 of"; do
  for signal in KILL INT; do
    out="$folder/$signal$text"
    status="$(end_at "$text" "$signal" "${job[@]}" -o "$out" 2> /dev/null)"
    case "$signal$status" in
      KILL137) interrupted=$((interrupted + 1)) ;;
      INT130)
        interrupted=$((interrupted + 1))
        [[ ! -e "$out" ]] || grep -q -- "--resume continues" "$folder/error" ||
          fail "Ctrl-C does not name --resume" ;;
      *0) continue ;;  # it was faster
      *) fail "$signal at '$text' gave $status" ;;
    esac
    check_models "$out"
    ok "${job[@]}" -o "$out" --resume
    cmp -s "$folder/whole/model.onnx" "$out/model.onnx" || fail "$signal at '$text': the model differs"
    [[ ! -e "$out/best" && -z "$(find "$out" -name '.*')" ]] || fail "leftovers in $out"
  done
done
((interrupted >= 10)) || fail "only $interrupted jobs were interrupted"

# A complete output stays whole while another job replaces it.
cp -r "$folder/whole" "$folder/old"
for text in calibrating "search: 2 of"; do
  end_at "$text" KILL "${job[@]}" -o "$folder/old" --overwrite > /dev/null 2>&1
  cmp -s "$folder/whole/model.onnx" "$folder/old/model.onnx" || fail "an old model was lost"
done
ok "${job[@]}" -o "$folder/old" --resume
cmp -s "$folder/whole/model.onnx" "$folder/old/model.onnx" || fail "resuming a replacement"
mkdir -p "$folder/begun/.model.onnx.partial"
expect 2 "--resume continues it" "${job[@]}" -o "$folder/begun"

# Only statistics.
calibrate=("$quant" calibrate "$folder/net.yaml" --threads 1 --seed 3 --data "$folder/x.npz" --samples 200)
ok "${calibrate[@]}" -o "$folder/whole.safetensors"
for signal in INT KILL; do
  rm -f "$folder/part.safetensors"
  status="$(end_at calibrating "$signal" "${calibrate[@]}" -o "$folder/part.safetensors" 2> /dev/null)"
  [[ "$status" == 0 || "$status" == 130 || "$status" == 137 ]] || fail "$signal in a calibration gave $status"
  ok "${calibrate[@]}" -o "$folder/part.safetensors" --resume
  cmp -s "$folder/whole.safetensors" "$folder/part.safetensors" || fail "resumed statistics differ"
  [[ ! -e "$folder/part.safetensors.begun" ]] || fail "leftover statistics"
done

# A full disk: the job ends with 6, what was there stays, and there is something to resume.
full() {
  local status=0 blocks="$1"
  shift
  (ulimit -f "$blocks"; exec "$@") > "$folder/out" 2> "$folder/error" || status=$?
  echo "$status"
}
for blocks in 16 100; do
  cp -r "$folder/whole" "$folder/full$blocks"
  status="$(full "$blocks" "${job[@]}" -o "$folder/full$blocks" --overwrite)"
  [[ "$status" == 6 ]] && grep -q "cannot write" "$folder/error" || fail "a full disk gave $status:"
  cmp -s "$folder/whole/model.onnx" "$folder/full$blocks/model.onnx" || fail "a full disk lost a model"
  cmp -s "$folder/whole/report.json" "$folder/full$blocks/report.json" || fail "it lost a report"
  ok "${job[@]}" -o "$folder/full$blocks" --resume
  cmp -s "$folder/whole/model.onnx" "$folder/full$blocks/model.onnx" || fail "resuming after a full disk"
done
if [[ $EUID == 0 ]] && mkdir "$folder/disk" && mount -t tmpfs -o size=400k tmpfs "$folder/disk" 2> /dev/null; then
  most_lines=40 expect 6 "No space left" "${job[@]}" -o "$folder/disk/int8"
  mount -o remount,size=8m "$folder/disk"
  check_models "$folder/disk/int8"
  ok "${job[@]}" -o "$folder/disk/int8" --resume
  cmp -s "$folder/whole/model.onnx" "$folder/disk/int8/model.onnx" || fail "resuming on a larger disk"
  umount "$folder/disk"
fi
finish
