#!/usr/bin/env bash
# Recurrent layers over padded batches: predictions and evaluations do not depend on the other rows
# of a batch, with the mask that a model in a config gets by itself.
# needs: python3
set -uo pipefail
command -v python3 > /dev/null || { echo "python3 is missing"; exit 77; }
source "$(dirname "${BASH_SOURCE[0]}")/../expect.bash"
cd "$folder" || exit 1
python3 - <<'P'
import random
random.seed(1)
with open("rows.csv", "w") as file:
    file.write("text,label\n")
    for i in range(160):
        words = [random.choice("abcdefgh") for _ in range(random.randint(1, 30))]
        file.write(" ".join(words) + "," + ("yes" if words[-1] in "abcd" else "no") + "\n")
P
model='
inputs: {text: "int64[batch, length]"}
model: |
  x = embedding(text, 20, 8)
  y, h = gru(x, 8, direction="bidirect")
  z, (h2, c2) = lstm(y, 8)
  w, h3 = simple_rnn(z, 8, direction="backward")
  logits = linear(concat([h[0], h[1], h2[0], c2[0], h3[0]], 1), 2)
outputs: [logits]'
fields='[{name: text, columns: [text], kind: text, tokens: spaces, vocabulary_size: 20}, {name: label, kind: categorical, scalar: true}]'
rest="
loss: cross_entropy(logits, label)
optimizer: {name: adamw, lr: 1e-2}
data:
  batch_size: 32
  train: {kind: csv, path: rows.csv, fields: $fields, split: {train: 0.8, valid: 0.2}, part: train}
  valid: {kind: csv, path: rows.csv, fields: $fields, split: {train: 0.8, valid: 0.2}, part: valid}
train: {epochs: 2}"
printf 'model:%s\n%s\n' "${model//$'\n'/$'\n'  }" "$rest" > in_place.yaml
printf '%s\n' "$model" > model.yaml
printf 'model: model.yaml\n%s\n' "$rest" > in_a_file.yaml
masked="${model/length]\"/length]\", text_mask: \"bool[batch, length]\"}"
printf '%s\n' "${masked/\}\}/\}}" > masked.yaml
printf 'model: masked.yaml\n%s\n' "$rest" > with_mask.yaml

alone_and_together() {
  for batch in 1 32; do
    ok "$infer" "$1" --data valid --batch "$batch" --output "$batch.jsonl"
    ok "$bin/paddle-eval" "$1" "data.valid_batch_size=$batch"
    cp out "$batch.eval"
  done
  python3 - "$1" <<'P' || fail "$1: predictions depend on the other rows"
import json, sys
one, many = ([json.loads(line) for line in open(name + ".jsonl")] for name in ("1", "32"))
assert len(one) == len(many) == 32
for a, b in zip(one, many):
    for key, value in a.items():
        pairs = zip(value, b[key]) if isinstance(value, list) else [(value, b[key])]
        for x, y in pairs:
            assert x == y or abs(x - y) < 1e-5, (key, x, y)
losses = [json.loads(open(name + ".eval").read().splitlines()[-1])["loss"] for name in ("1", "32")]
assert abs(losses[0] - losses[1]) < 1e-6, losses
P
}
ok "$train" in_place.yaml --output placed
grep -q 'text_mask: "\?bool\[batch, length\]' placed/config.yaml || fail "the model has no mask"
alone_and_together placed
ok "$train" with_mask.yaml --output masked
alone_and_together masked
cmp -s placed/model/model.safetensors masked/model/model.safetensors || fail "the mask of the config is another"
ok "$train" in_a_file.yaml --output filed
grep -q "in_a_file.yaml:1:8: recurrent layers read the padding of 'text'" error || fail "no warning for a model in a file"
ok "$bin/paddle-export" placed -o placed.onnx
finish
