#!/usr/bin/env bash
# Tensors for axes and sizes whose values are wrong when the model runs: one line with the place in
# the model, and exit code 4.
set -uo pipefail
command -v python3 > /dev/null || { echo "python3 is missing"; exit 77; }
source "$(dirname "${BASH_SOURCE[0]}")/../expect.bash"
cd "$folder"

cat > npz.py << 'PY'
import struct, sys, zipfile
def npy(dtype, shape, data):
    head = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape}, }}"
    head += " " * (63 - (len(head) + 10) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + data
with zipfile.ZipFile(sys.argv[1], "w") as z:
    z.writestr("x.npy", npy("<f4", (2, 3), struct.pack("<6f", *range(6))))
    z.writestr("n.npy", npy("<i8", (), struct.pack("<q", int(sys.argv[2]))))
PY

model() { # EXPRESSION over x and n
  printf 'inputs: {x: "float32[a, b]", n: "int64[]"}\nmodel: |\n  return %s\noutputs: [y]\n' "$1" > m.yaml
}
wrong() { # N MESSAGE
  python3 npz.py in.npz "$1"
  expect 4 "$2" "$bin/paddle-infer" m.yaml --input in.npz --output out.jsonl --overwrite
}

model 'sum(x, n)'
wrong 2 "m.yaml:3:10"
wrong -3 "m.yaml:3:10"
model 'unsqueeze(x, n)'
wrong 3 "m.yaml:3:10"
model 'squeeze(x, n)'
wrong 0 "m.yaml:3:10"
model 'zeros([n, 2])'
wrong -1 "negative"
wrong 4611686018427387904 "m.yaml:3:10"
model 'reshape(x, [n, 3])'
wrong 5 "m.yaml:3:10"
model 'pad(x, [n, 0, 0, 0])'
wrong -1 "negative"
model 'split(x, [n, 1], axis=1)[0]'
wrong 5 "m.yaml:3:10"

# Attributes that must be known are rejected while the model is traced.
model 'max_pool2d(reshape(x, [1, 1, a, b]), n)'
expect 3 "m.yaml:3:10: max_pool2d: kernel_size: a tensor is given whose value is not known while tracing" \
  "$bin/paddle-infer" m.yaml --input in.npz --output out.jsonl --overwrite
model 'one_hot(cast(x, "int64"), n)'
expect 3 "not known while tracing" "$bin/paddle-infer" m.yaml --input in.npz --output out.jsonl --overwrite
model 'sum(x, n * 0.5)'
expect 3 "axis: expected one integer, found float32[]" "$bin/paddle-infer" m.yaml --input in.npz --output out.jsonl --overwrite
finish
