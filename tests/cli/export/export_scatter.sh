#!/usr/bin/env bash
# paddle-export of operations that ONNX has under other names: their files compute the values that
# follow from what the operations mean.
set -uo pipefail
command -v python3 > /dev/null || { echo "python3 is missing"; exit 77; }
source "$(dirname "${BASH_SOURCE[0]}")/../expect.bash"
export_model="$bin/paddle-export"

# case NAME 'INPUTS' 'LINE' 'PYTHON of the inputs' 'PYTHON of the expected y'
case_of() {
  printf 'name: %s\ninputs: %s\nmodel: |\n  %s\noutputs: [y]\n' "$1" "$2" "$3" > "$folder/$1.yaml"
  python3 - "$folder/$1.npz" "$4" <<'P'
import struct, sys, zipfile
formats = {"f4": "f", "i8": "q"}
with zipfile.ZipFile(sys.argv[1], "w") as z:
    for name, (kind, shape, values) in eval(sys.argv[2]).items():
        header = str({"descr": "<" + kind, "fortran_order": False, "shape": tuple(shape)})
        header += " " * (63 - (len(header) + 10) % 64) + "\n"
        body = struct.pack(f"<{len(values)}{formats[kind]}", *values)
        z.writestr(name + ".npy", b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + body)
P
  ok "$export_model" "$folder/$1.yaml" -o "$folder/$1.onnx"
  ok "$infer" "$folder/$1.onnx" --input "$folder/$1.npz" --output "$folder/$1.out.npz"
  python3 - "$folder/$1.out.npz" "$5" <<'P' || fail "$1"
import struct, sys, zipfile
with zipfile.ZipFile(sys.argv[1]) as z:
    raw = z.read("y.npy")
size = struct.unpack("<H", raw[8:10])[0]
header = eval(raw[10:10 + size])
kind = {"<f4": "f", "<f8": "d", "<i8": "q", "<i4": "i"}[header["descr"]]
body = raw[10 + size:]
found = struct.unpack(f"<{len(body) // struct.calcsize(kind)}{kind}", body)
shape, wanted = eval(sys.argv[2])
assert list(header["shape"]) == list(shape), (header["shape"], shape)
assert all(abs(a - b) < 1e-5 for a, b in zip(found, wanted)) and len(found) == len(wanted), (found, wanted)
P
}

data='{"x": ("f4", [4, 2], [1, 2, 3, 4, 5, 6, -7, -8]), "i": ("i8", [4], [0, 2, 0, 2])}'
inputs='{x: "float32[rows, 2]", i: "int64[rows]"}'
case_of segment_sum "$inputs" 'y = segment_sum(x, i)' "$data" '([3, 2], [6, 8, 0, 0, -4, -4])'
case_of segment_mean "$inputs" 'y = segment_mean(x, i)' "$data" '([3, 2], [3, 4, 0, 0, -2, -2])'
case_of segment_max "$inputs" 'y = segment_max(x, i)' "$data" '([3, 2], [5, 6, 0, 0, 3, 4])'
case_of segment_min "$inputs" 'y = segment_min(x, i)' "$data" '([3, 2], [1, 2, 0, 0, -7, -8])'
edges='{"x": ("f4", [3, 1], [1, 2, 4]), "s": ("i8", [4], [0, 1, 2, 0]), "t": ("i8", [4], [1, 2, 1, 0])}'
case_of send_u_recv '{x: "float32[nodes, 1]", s: "int64[edges]", t: "int64[edges]"}' \
  'y = send_u_recv(x, s, t, reduce_op="sum")' "$edges" '([3, 1], [1, 5, 2])'
case_of bincount '{x: "int64[n]"}' 'y = bincount(x, minlength=5)' \
  '{"x": ("i8", [4], [1, 3, 1, 0])}' '([5], [1, 2, 0, 1, 0])'
case_of histogram '{x: "float32[n]"}' 'y = histogram(x, bins=4, min=0.0, max=4.0)' \
  '{"x": ("f4", [6], [0, 0.5, 1, 4, -1, 9])}' '([4], [2, 1, 0, 1])'
case_of extremes '{x: "float32[n]"}' 'y = histogram(x, bins=2)' \
  '{"x": ("f4", [4], [1, 2, 3, 5])}' '([2], [2, 2])'
case_of overlap '{x: "float32[3, frames]"}' 'y = overlap_add(x, 2)' \
  '{"x": ("f4", [3, 2], [1, 4, 2, 5, 3, 6])}' '([5], [1, 2, 7, 5, 6])'
boxes='{"b": ("f4", [3, 4], [0, 0, 4, 4, 0, 0, 4, 3, 5, 5, 9, 9]), "s": ("f4", [3], [0.5, 0.9, 0.2])}'
case_of nms '{b: "float32[n, 4]", s: "float32[n]"}' 'y = nms(b, 0.5, s)' "$boxes" '([2], [1, 2])'
case_of in_order '{b: "float32[n, 4]"}' 'y = nms(b, 0.5)' \
  '{"b": ("f4", [3, 4], [0, 0, 4, 4, 0, 0, 4, 3, 5, 5, 9, 9])}' '([2], [0, 2])'
case_of conj '{x: "float32[n]"}' 'y = conj(x)' '{"x": ("f4", [2], [1, -2])}' '([2], [1, -2])'
case_of lp_pool '{x: "float32[1, 1, 5]"}' 'y = lp_pool1d(x, 1, 2, stride=2, ceil_mode=true)' \
  '{"x": ("f4", [1, 1, 5], [1, 2, 3, 4, 5])}' '([1, 1, 3], [3, 7, 5])'
case_of roi_align '{x: "float32[1, 1, 2, 2]", b: "float32[1, 4]", n: "int64[1]"}' \
  'y = roi_align(x, b, n, 1, sampling_ratio=1, aligned=true)' \
  '{"x": ("f4", [1, 1, 2, 2], [1, 2, 3, 4]), "b": ("f4", [1, 4], [0, 0, 2, 2]), "n": ("i8", [1], [1])}' \
  '([1, 1, 1, 1], [2.5])'
finish
