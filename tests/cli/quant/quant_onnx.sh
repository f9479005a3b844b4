#!/usr/bin/env bash
# paddle-quant of ONNX files: samples come in batches, tables are quantized once, linear layers stay
# one Gemm, masks of attention stay finite in 16 bits, and a time limit ends the search.
set -uo pipefail
command -v python3 > /dev/null || { echo "python3 is missing"; exit 77; }
source "$(dirname "${BASH_SOURCE[0]}")/../expect.bash"
quant="$bin/paddle-quant"
cd "$folder" || exit 1

cat > masked.yaml <<'Y'
inputs: {x: "float32[batch, 8]", mask: "float32[batch, 5]"}
model: |
  scores = matmul(x, param("w", [8, 5], normal(0.0, 1.0)))
  y = softmax(scores + (1.0 - mask) * -3.4028234663852886e38, axis=-1)
outputs: [y]
Y
cat > tied.yaml <<'Y'
inputs: {ids: "int64[batch, length]"}
model: |
  table = param("table", [500, 64], normal(0.0, 1.0))
  h = matmul(embedding_of(table, ids), param("w", [64, 64], normal(0.0, 0.1)))
  y = matmul(h, transpose(table, [1, 0]))
blocks:
  embedding_of(table, ids): |
    return reshape(index_select(table, reshape(ids, [-1]), 0), [batch, length, 64])
outputs: [y]
Y
{ printf 'inputs: {x: "float32[batch, 24]"}\nmodel: |\n'
  for i in $(seq 12); do printf '  x = relu(linear(x, 24))\n'; done
  printf '  y = linear(x, 12)\noutputs: [y]\n'; } > layers.yaml
python3 - <<'P'
import random, struct, zipfile
random.seed(1)
def write(path, arrays):
    with zipfile.ZipFile(path, "w") as z:
        for name, (kind, shape, values) in arrays.items():
            header = str({"descr": "<" + kind, "fortran_order": False, "shape": shape})
            header += " " * (63 - (len(header) + 10) % 64) + "\n"
            body = struct.pack(f"<{len(values)}{ {'f4': 'f', 'i8': 'q'}[kind] }", *values)
            z.writestr(name + ".npy", b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + body)
normal = lambda n: [random.gauss(0, 1) for _ in range(n)]
mask = [1.0 if row % 2 or i < 3 else 0.0 for row in range(16) for i in range(5)]
write("masked.npz", {"x": ("f4", (16, 8), normal(128)), "mask": ("f4", (16, 5), mask)})
write("tied.npz", {"ids": ("i8", (64, 6), [random.randrange(500) for _ in range(384)])})
write("layers.npz", {"x": ("f4", (64, 24), normal(64 * 24))})
P
cd - > /dev/null || exit 1
for model in masked tied layers; do
  ok "$bin/paddle-export" "$folder/$model.yaml" --seed 1 -o "$folder/$model.onnx" --no-check
done

# --- 16 bits ---
for scheme in float16 bf16; do
  ok "$quant" "$folder/masked.onnx" --scheme $scheme --data "$folder/masked.npz" -o "$folder/half.onnx" --overwrite
  ok "$infer" "$folder/half.onnx" --input "$folder/masked.npz" --output "$folder/half.npz"
  python3 - "$folder/half.npz" <<'P' || fail "$scheme: the mask"
import struct, sys, zipfile
raw = zipfile.ZipFile(sys.argv[1]).read("y.npy")
begin = 10 + struct.unpack("<H", raw[8:10])[0]
rows = [row for row in struct.iter_unpack("<5f", raw[begin:])]
assert len(rows) == 16 and all(abs(sum(row) - 1) < 0.02 for row in rows), rows[:2]
assert all(row[3] == row[4] == 0 for row in rows[::2]), rows[0]
P
done

# --- tables ---
size() { stat -c %s "$1"; }
for scheme in int8_weights float16 bf16; do
  ok "$quant" "$folder/tied.onnx" --scheme $scheme quant.measure=false --data "$folder/tied.npz" \
    -o "$folder/small.onnx" --overwrite
  most=56
  [[ $scheme != int8_weights ]] || most=32  # the output layer has the transposed table
  (($(size "$folder/small.onnx") * 100 < $(size "$folder/tied.onnx") * most)) || \
    fail "$scheme: $(size "$folder/small.onnx") of $(size "$folder/tied.onnx") bytes"
done

# --- linear layers ---
ok "$bin/paddle-export" "$folder/layers.onnx" -o "$folder/again.onnx"
ok "$quant" "$folder/again.onnx" quant.measure=false --data "$folder/layers.npz" --samples 16 --batch 4 \
  -o "$folder/int8.onnx" --write-anyway
"$bin/paddle-show" "$folder/int8.onnx" > "$folder/shown"
grep -qE "Gemm +x?13|13 +Gemm|Gemm.*13" "$folder/shown" || fail "13 linear layers are other nodes"
grep -qE "MatMul" "$folder/shown" && fail "a linear layer is a MatMul"
python3 - "$folder/int8.onnx.report.json" <<'P' || fail "the number of samples"
import json, sys
report = json.load(open(sys.argv[1]))
assert report["calibration_samples"] == 16, report
P

# --- the time limit ---
most_lines=40  # with those of its progress
begun=$SECONDS
expect 1 "" "$quant" "$folder/layers.onnx" --data "$folder/layers.npz" --time-limit 0.05 -o "$folder/searched.onnx" \
  quant.accept.sqnr_db=150 quant.measure=false 'quant.search={budget: {time: 30m}}'
((SECONDS - begun < 30)) || fail "the search took $((SECONDS - begun)) seconds of a limit of 0.05"
grep -q "the time limit ended the search" "$folder/error" "$folder/out" || fail "the limit is not said"
finish
