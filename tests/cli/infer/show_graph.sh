#!/usr/bin/env bash
# paddle show --graph: the picture has every operation, block and weight, and nothing overlaps.
set -uo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../expect.bash"
command -v python3 > /dev/null || { echo "python3 is missing"; exit 77; }
show="$bin/paddle-show"
models="$PWD/models"
cp tests/data/quantized/attention_qdq_s8.onnx "$folder/attention.onnx"
make_llama
cd "$folder" || exit 1
cat > two.yaml <<'Y'
name: two_branches
inputs: {x: "float32[batch, 8]"}
blocks:
  branch(x, width): |
    h = relu(linear(x, width))
    return linear(h, 8)
model: |
  y = branch(x, 16) + branch(x, 32)
  if mean(y) > 0:
    y = y * 2
  z = softmax(y)
outputs: [z]
Y
cat > c.yaml <<'Y'
model:
  inputs: {image: "float32[batch, 1, 28, 28]"}
  outputs: [logits]
  model: logits = linear(flatten(image), 10, name="head")
loss: cross_entropy(logits, label)
optimizer: {name: sgd, lr: 0.1}
data:
  batch_size: 50
  train: {kind: digits, size: 100, range: [0, 100]}
  transforms: [{scale: {fields: image, factor: 0.00392157}}]
train: {epochs: 1}
Y
cat > svg.py <<'P'
"""Checks a picture: usage svg.py FILE TEXT… fails unless boxes show the texts and do not overlap."""
import sys
import xml.etree.ElementTree as tree

name = "{http://www.w3.org/2000/svg}"
root = tree.parse(sys.argv[1]).getroot()
assert root.tag == name + "svg", root.tag
boxes, blocks, shown = [], [], []
for group in root.iter(name + "g"):
    rect = group.find(name + "rect")
    if rect is None:
        continue
    x, y, w, h = (float(rect.get(k)) for k in ("x", "y", "width", "height"))
    (blocks if rect.get("class") == "block" else boxes).append((x, y, x + w, y + h))
    shown += ["".join(text.itertext()) for text in group.findall(name + "text")]
width, height = float(root.get("width")), float(root.get("height"))
for i, a in enumerate(boxes):
    assert 0 <= a[0] and a[2] <= width and 0 <= a[1] and a[3] <= height, a
    for b in boxes[i + 1:]:
        assert a[0] >= b[2] or b[0] >= a[2] or a[1] >= b[3] or b[1] >= a[3], (a, b)
for a in boxes:
    for b in blocks:
        inside = b[0] <= a[0] and a[2] <= b[2] and b[1] <= a[1] and a[3] <= b[3]
        apart = a[0] >= b[2] or b[0] >= a[2] or a[1] >= b[3] or b[1] >= a[3]
        assert inside or apart, (a, b)
for wanted in sys.argv[2:]:
    assert wanted in shown, (wanted, shown)
print(len(boxes), len(blocks), len(list(root.iter(name + "path"))))
P
# Two blocks of three operations, add, mean, comparison, if and softmax; an input and an output.
ok "$show" two.yaml --graph two.svg
grep -q "two.svg: 11 operations in 13 boxes" out || fail "it says $(cat out)"
found="$(python3 svg.py two.svg linear "bias [16]" "weight [8, 32]" branch branch_2 if \
  "z: float32[batch, 8]" "float32[batch, 8]")" || fail "two.svg"
[[ "$found" == "13 2 "* ]] || fail "two.svg has $found boxes, blocks and lines"
ok "$show" two.yaml --graph closed.svg --depth 0
found="$(python3 svg.py closed.svg branch "3 operations")" || fail "closed.svg"
[[ "$found" == "9 0 "* ]] || fail "closed.svg has $found boxes, blocks and lines"
ok "$show" "$models/lenet.yaml" --graph lenet.svg --json
python3 svg.py lenet.svg "conv2dconv2d_2" "weight [16, 6, 5, 5]" "float32[batch, 16, 10, 10]" \
  > /dev/null || fail "lenet.svg"
python3 -c 'import json, sys
found = json.loads(open("out").read().splitlines()[-1])
assert found == {"graph": "lenet.svg", "name": "lenet", "operations": 12, "boxes": 14}, found' ||
  fail "--json: $(cat out)"
ok "$show" "$models/char_gpt.yaml" params.layers=3 --graph gpt.svg
python3 svg.py gpt.svg layer.2 attention feed_forward "words.weight [65, 128]" > /dev/null ||
  fail "gpt.svg"
ok "$show" attention.onnx --graph onnx.svg
python3 svg.py onnx.svg > /dev/null || fail "onnx.svg"
ok "$show" llama --graph llama.svg
python3 svg.py llama.svg > /dev/null || fail "llama.svg"
ok "$show" c.yaml --graph config.svg
ok "$train" c.yaml --output run
ok "$show" run --graph run.svg
for each in config run; do
  python3 svg.py "$each.svg" "linearhead" "weight [784, 10]" > /dev/null || fail "$each.svg"
done
expect 2 "already exists (--overwrite replaces it)" "$show" run --graph run.svg
ok "$show" run --graph run.svg --overwrite
expect 2 "pictures are SVG files; name it FILE.svg" "$show" run --graph run.png
expect 2 "no such file" "$show" nothing.yaml --graph n.svg
expect 2 "--training cannot be combined with --graph" "$show" two.yaml --graph n.svg --training
expect 2 "params are for model files" "$show" run params.x=1 --graph n.svg
[[ ! -e n.svg ]] || fail "a failed command has written a picture"
finish
