#!/usr/bin/env bash
# --streams of paddle-infer: batches at a time give the files of one at a time, for trained models,
# model files and ONNX; commands for one stream reject more; paddle-tune tries streams, and
# --tuned applies them.
set -uo pipefail
command -v python3 > /dev/null || { echo "python3 is missing"; exit 77; }
source "$(dirname "${BASH_SOURCE[0]}")/../expect.bash"

"$train" configs/quickstart/digits.yaml "data.train={kind: digits, size: 640}" "data.valid={kind: digits, size: 300, seed: 4}" \
  train.epochs=1 --output "$folder/digits" > "$folder/out" 2>&1 || fail "training"
model="$folder/digits/model"
for ending in npz csv jsonl; do
  quiet 0 "$infer" "$model" --data valid --batch 16 --quiet --output "$folder/one.$ending"
  grep "accuracy" "$folder/out" > "$folder/accuracy"
  for streams in 2 5; do
    quiet 0 "$infer" "$model" --data valid --batch 16 --quiet --output "$folder/streams.$ending" --streams $streams --threads 4
    cmp "$folder/one.$ending" "$folder/streams.$ending" || fail "$ending of $streams streams"
    grep -qxF "$(cat "$folder/accuracy")" "$folder/out" || fail "the accuracy of $streams streams"
  done
done
quiet 0 "$infer" "$model" --data valid --batch 16
mv "$folder/out" "$folder/lines"
quiet 0 "$infer" "$model" --data valid --batch 16 --streams 3
cmp "$folder/lines" "$folder/out" || fail "lines of three streams"

# ONNX, where what is drawn depends on the number of the run.
python3 - "$folder" <<'P'
import sys
def field(number, value):
    if isinstance(value, int):
        return bytes([number << 3]) + varint(value)
    if isinstance(value, str):
        value = value.encode()
    return bytes([number << 3 | 2]) + varint(len(value)) + value
def varint(n):
    out = b""
    while n > 127:
        out += bytes([n & 127 | 128])
        n >>= 7
    return out + bytes([n])
def info(name, shape):
    dims = b"".join(field(1, field(2, d) if isinstance(d, str) else field(1, d)) for d in shape)
    return field(1, name) + field(2, field(1, field(1, 1) + field(2, dims)))
def node(op, inputs, outputs):
    return b"".join(field(1, i) for i in inputs) + b"".join(field(2, o) for o in outputs) + field(4, op)
graph = (field(1, node("RandomUniformLike", ["image"], ["noise"])) + field(1, node("Add", ["image", "noise"], ["y"]))
         + field(2, "noisy") + field(11, info("image", ["n", 1, 28, 28])) + field(12, info("y", ["n", 1, 28, 28])))
model = field(1, 8) + field(8, field(1, "") + field(2, 17)) + field(7, graph)
open(sys.argv[1] + "/noisy.onnx", "wb").write(model)
P
data="$folder/digits/config.yaml:valid"
quiet 0 "$bin/paddle-export" "$model" -o "$folder/digits.onnx"
for name in digits noisy; do
  quiet 0 "$infer" "$folder/$name.onnx" --data "$data" --batch 16 --quiet --overwrite --output "$folder/one.npz"
  quiet 0 "$infer" "$folder/$name.onnx" --data "$data" --batch 16 --quiet --overwrite --output "$folder/streams.npz" --streams 3
  cmp "$folder/one.npz" "$folder/streams.npz" || fail "streams of $name.onnx"
done

# The benchmark says how many streams share the threads.
quiet 0 "$infer" models/digits_cnn.yaml --benchmark 4 --batch 2 --streams 2 --threads 2
python3 - "$folder/out" <<'P' || fail "the line of --benchmark"
import json, sys
o = json.load(open(sys.argv[1]))
assert o["streams"] == 2 and o["threads"] == 2 and o["steps"] == 8 and o["samples_per_second"] > 0, o
P

# Work that takes one stream is rejected.
printf 'inputs: {x: "float32[n]"}\nmodel: |\n  total = state("total", [], scope="sequence")\n  total = update(total, total + x.sum())\n  return x + total\n' > "$folder/sums.yaml"
expect 2 "one number up to 128" "$infer" "$model" --data valid --streams 129
expect 2 "one number up to 128" "$infer" "$model" --data valid --streams 1,2
expect 2 "--profile" "$infer" "$model" --data valid --streams 2 --profile
expect 2 "generated texts" "$infer" "$model" --prompt a --streams 2
expect 2 "other devices than the cpu" "$infer" "$model" --data valid --streams 2 --device mirror
expect 2 "its state 'total'" "$infer" "$folder/sums.yaml" --benchmark 2 --dim n=4 --streams 2
expect 2 "not in range" "$infer" "$model" --data valid --streams 0

# paddle-tune tries them; a file that states them is taken.
quiet 0 "$bin/paddle-tune" models/digits_cnn.yaml -o "$folder/tuned" --time-limit 15 --what streams --threads 2
python3 - "$folder/tuned" <<'P' || fail "trials of streams"
import json, sys
o = json.load(open(sys.argv[1] + "/report.json"))
assert o["start"]["streams"] == "1", o
assert [t["value"] for t in o["trials"]] == ["2"], o["trials"]
for c in o["changes"]:
    assert c["key"] == "streams" and c["same_bits"], c
P
printf 'subject: model\nthreads: 2\nstreams: 2\n' > "$folder/tuned.yaml"
quiet 0 "$infer" models/digits_cnn.yaml --benchmark 2 --tuned "$folder/tuned.yaml"
grep -q '"streams":2' "$folder/out" || fail "--tuned with streams"
quiet 0 "$infer" models/digits_cnn.yaml --benchmark 2 --tuned "$folder/tuned.yaml" --streams 1
! grep -q '"streams"' "$folder/out" || fail "--streams overrules --tuned"
finish
