#!/usr/bin/env bash
# A network for images of any size: one model trains on images of one size, compiled and eager with
# the same weights in the end, and then predicts images of another.
set -uo pipefail
command -v python3 > /dev/null || { echo "python3 is missing"; exit 77; }
source "$(dirname "${BASH_SOURCE[0]}")/../expect.bash"
cat > "$folder/run.yaml" <<'Y'
model:
  inputs: {x: "float32[batch, 3, rows, columns]"}
  model:
    - conv2d: {out_channels: 4, kernel_size: 3, padding: 1}
    - batch_norm
    - relu
    - interpolate: {scale_factor: 2, mode: bilinear}
    - conv2d: {out_channels: 8, kernel_size: 3}
    - adaptive_max_pool2d: [3, 2]
    - relu
    - adaptive_avg_pool2d: 1
    - flatten
    - linear: 4
  outputs: [logits]
loss: cross_entropy(logits, label)
optimizer: {name: sgd, lr: 0.5}
data:
  batch_size: 8
  train: {kind: random, size: 32, fields: [{name: x, shape: [3, 7, 5]}, {name: label, dtype: int64, low: 0, high: 4}]}
train: {epochs: 4, log_every: 1000}
precision: float64
Y
for mode in compiled eager; do
  flags=()
  [[ "$mode" == compiled ]] || flags=(--eager)
  "$train" "$folder/run.yaml" "${flags[@]}" --output "$folder/$mode" > "$folder/out" 2> "$folder/error" || fail "$mode"
done
python3 "$(dirname "${BASH_SOURCE[0]}")/same_weights.py" "$folder"/{compiled,eager} || fail "the modes end with different weights"

python3 - "$folder" <<'P'
import struct, sys, zipfile
def npy(shape):
    count = 1
    for size in shape: count *= size
    header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}"
    header += " " * (-(len(header) + 11) % 64) + "\n"
    data = struct.pack(f"<{count}d", *[(i * 37 % 101) / 50 - 1 for i in range(count)])
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + data
for name, shape in {"small": (2, 3, 5, 4), "large": (3, 3, 12, 9)}.items():
    with zipfile.ZipFile(f"{sys.argv[1]}/{name}.npz", "w") as f:
        f.writestr("x.npy", npy(shape))
P
for name in small large; do
  quiet 0 "$infer" "$folder/compiled/model" --input "$folder/$name.npz" --output "$folder/$name.csv" --quiet
done
[[ "$(wc -l < "$folder/small.csv")" == 3 && "$(wc -l < "$folder/large.csv")" == 4 ]] || fail "one line for each image was expected"
finish
