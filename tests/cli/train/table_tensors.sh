#!/usr/bin/env bash
# Tables from a matrix and a list of keys, such as torch's EmbeddingBag has them, and as tensors: the
# rows are those of the files, a run begins with them, and what does not fit is named.
set -uo pipefail
command -v python3 > /dev/null || { echo "python3 is missing"; exit 77; }
source "$(dirname "${BASH_SOURCE[0]}")/../expect.bash"
ps="$bin/paddle-ps"
cd "$folder" || exit 1
cat > files.py <<'P'
import json, struct
def write(path, tensors):
    header, data = {}, b""
    for name, (dtype, shape, raw) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    open(path, "wb").write(struct.pack("<Q", len(text)) + text + data)
def read(path):
    data = open(path, "rb").read()
    size = 8 + struct.unpack("<Q", data[:8])[0]
    out = {}
    for name, entry in json.loads(data[8:size]).items():
        begin, end = entry["data_offsets"]
        raw, kind = data[size + begin : size + end], {"I64": "q", "U64": "Q", "F32": "f"}[entry["dtype"]]
        out[name] = struct.unpack(f"<{len(raw) // struct.calcsize(kind)}{kind}", raw)
    return out
P
python3 - <<'P'
import struct
from files import write
weight = [0.25 * i - 3 for i in range(5 * 3)]
keys = [17, 2**64 - 1, 3, 2**63, 0]
write("bag.safetensors", {"bag.weight": ("F32", [5, 3], struct.pack("<15f", *weight)), "bias": ("F32", [3], bytes(12))})
write("two.safetensors", {"a": ("F32", [5, 3], bytes(60)), "b": ("F32", [5, 3], struct.pack("<15f", *weight))})
write("keyed.safetensors", {"keys": ("U64", [5], struct.pack("<5Q", *keys)), "weight": ("F32", [5, 3], struct.pack("<15f", *weight))})
open("keys.txt", "w").write("".join(f"{key}\n" for key in keys))
open("twice.txt", "w").write("1\n2\n3\n2\n5\n")
P
imports() { ok "$ps" import "$@" --format tensors --key-type uint64 --table user; }
imports bag.safetensors --keys keys.txt -o bag
imports two.safetensors --tensor b --keys keys.txt -o two
imports keyed.safetensors -o keyed
for name in bag two keyed; do
  ok "$ps" dump $name -o $name.rows.safetensors
  ok "$ps" verify $name
  python3 - $name <<'P' || fail "$name has other rows"
import sys
from files import read
found = read(f"{sys.argv[1]}.rows.safetensors")
keys = [17, 2**64 - 1, 3, 2**63, 0]
order = sorted(range(5), key=lambda i: keys[i])
assert list(found["keys"]) == sorted(keys)
assert list(found["weight"]) == [0.25 * (3 * i + k) - 3 for i in order for k in range(3)]
P
done
imports bag.rows.safetensors -o again
cmp -s again/model.safetensors bag/model.safetensors || fail "an exported table is read otherwise"
# A run begins with the rows, and its own table comes back with states.
cat > c.yaml <<'Y'
model:
  inputs: {user: "uint64[batch]"}
  model: return sum(sparse_embedding(user, 3, name="user"), 1)
  outputs: [logit]
loss: mse_loss(logit, y)
optimizer: {name: adagrad, lr: 0.1}
data:
  batch_size: 2
  train: {kind: csv, path: data.csv, fields: [{name: user, kind: keys, dtype: uint64, scalar: true}, {name: y, scalar: true, dtype: float32}]}
train: {epochs: 1}
Y
printf 'user,y\n17,1\n3,2\n' > data.csv
ok "$train" c.yaml "init={weights: bag/model.safetensors}" --output run
ok "$ps" dump run --states -o run.safetensors
python3 - <<'P' || fail "the run began with other rows"
from files import read
before, after = read("bag.rows.safetensors"), read("run.safetensors")
assert len(after["moment"]) == 15 and before["keys"] == after["keys"]
for i, key in enumerate(before["keys"]):
    same = before["weight"][3 * i : 3 * i + 3] == after["weight"][3 * i : 3 * i + 3]
    assert same == (key not in (3, 17)), key
P
wrong() { expect "$1" "$2" "$ps" import "${@:3}" --format tensors --key-type uint64 --table t -o y; }
wrong 2 "has no tensor 'keys'; expected --keys FILE" bag.safetensors
wrong 2 "--tensor chooses one of a, b" two.safetensors --keys keys.txt
wrong 2 "has no matrix 'c'" two.safetensors --keys keys.txt --tensor c
wrong 4 "the key comes twice" bag.safetensors --keys twice.txt
head -3 keys.txt > few.txt
wrong 4 "3 keys for a matrix of 5 rows" bag.safetensors --keys few.txt
echo x >> few.txt
wrong 4 "'x' is not a key of type uint64" bag.safetensors --keys few.txt
expect 4 "the table has int64 keys" "$ps" import keyed.safetensors --format tensors --table t -o y
expect 2 "--tensor and --keys are for --format tensors" "$ps" import keys.txt --keys keys.txt --table t -o y
[[ ! -e y ]] || fail "a failed command left a folder"
finish
