#!/usr/bin/env bash
# The layer `experts` trains as a model that computes each expert on all tokens, with the same first
# weights: every gate, shared experts and the bias that balances loads.
set -uo pipefail
command -v python3 > /dev/null || { echo "python3 is missing"; exit 77; }
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
source "$here/../expect.bash"
python3 - "$folder/rows.csv" <<'P'
import random, sys
random.seed(3)
with open(sys.argv[1], "w") as f:
    f.write(",".join(f"p{i}" for i in range(6)) + ",label\n")
    for i in range(40):
        f.write(",".join(f"{random.gauss(0, 1):.4f}" for _ in range(6)) + f",{i % 3}\n")
P
# The parameters of both forms have the same paths and initializers.
cat > "$folder/net.yaml" <<'Y'
model:
  params: {form: 0, sorted: 1, count: 6, chosen: 2, inner: 5, scale: 2.5, groups: 3, kept: 2}
  inputs: {x: "float32[batch, 6]"}
  blocks:
    softmaxes(x):
      - {experts: {count: count, chosen: chosen, inner: inner, name: experts, weight_init: "normal(0, 0.4)"}}
    sigmoids(x):
      - experts:
          count: count
          chosen: chosen
          inner: inner
          gate: {scores: sigmoid, scale: scale, groups: groups, chosen_groups: kept}
          balance: {bias: {rate: 0.05}}
          shared: 2
          name: experts
          weight_init: "normal(0, 0.4)"
    logit_weights(x):
      - experts:
          count: count
          chosen: chosen
          inner: inner
          gate: {normalize: all}
          activation: gelu
          name: experts
          weight_init: "normal(0, 0.4)"
    single(x):
      - experts:
          count: count
          chosen: 1
          inner: inner
          gate: {normalize: none}
          activation: relu
          shared: {inner: 3, gate: sigmoid}
          name: experts
          weight_init: "normal(0, 0.4)"
    repeated(x): |
      return loop(x, 1 if form == 3 else chosen, name="experts")
    activated(x): |
      if form == 2:
        return gelu(x)
      if form == 3:
        return relu(x)
      return silu(x[:, :x.shape[1] // 2]) * x[:, x.shape[1] // 2:]
    loop(x, top): |
      width = 6
      up = inner * 2 if form < 2 else inner
      logits = matmul(x, param("router_weight", [width, count], init=normal(0, 0.4)))
      scores = sigmoid(logits) if form == 1 else softmax(logits, -1)
      preferred = scores
      if form == 1:
        bias = state("bias", [count])
        preferred = scores + bias
        best = topk(reshape(preferred, [-1, groups, count // groups]), 2, -1)
        group = topk(sum(best[0], axis=-1), kept, -1)
        inside = sum(one_hot(group[1], groups), axis=1) > 0
        preferred = reshape(where(unsqueeze(inside, -1), reshape(preferred, [-1, groups, count // groups]), -100.0), [-1, count])
      index = topk(preferred, top, -1)[1]
      shares = gather_along(scores, index, 1)
      if form < 2:
        shares = shares / sum(shares, axis=-1, keepdim=true)
      if form == 1:
        shares = shares * scale
      if form == 2:
        shares = softmax(gather_along(logits, index, 1), -1)
      ups = param("up_weight", [count, width, up], init=normal(0, 0.4))
      downs = param("down_weight", [count, inner, width], init=normal(0, 0.4))
      y = zeros_like(x)
      for e in range(count):
        share = sum(where(index == e, shares, 0.0), axis=-1, keepdim=true)
        y = y + share * matmul(activated(matmul(x, ups[e])), downs[e])
      if form == 1 or form == 3:
        hidden = 2 * inner if form == 1 else 3
        z = matmul(x, param("shared_up_weight", [width, 2 * hidden if form == 1 else hidden], init=normal(0, 0.4)))
        z = matmul(activated(z), param("shared_down_weight", [hidden, width], init=normal(0, 0.4)))
        y = y + (sigmoid(matmul(x, param("shared_gate_weight", [width, 1], init=normal(0, 0.4)))) * z if form == 3 else z)
      if form == 1 and training:
        load = sum(cast(one_hot(reshape(index, [-1]), count), "float64"), axis=0)
        moved = bias + 0.05 * sign(mean(load) - load)
        bias = update(bias, moved - mean(moved))
      return y
  model: |
    y = tanh(linear(x, 6))
    if sorted == 0:
      z = repeated(y, name="mix")
    elif form == 0:
      z = softmaxes(y, name="mix")
    elif form == 1:
      z = sigmoids(y, name="mix")
    elif form == 2:
      z = logit_weights(y, name="mix")
    else:
      z = single(y, name="mix")
    y = y + z
    logits = linear(y, 3)
  outputs: [logits]
loss: cross_entropy(logits, label)
optimizer: {name: adamw, lr: 0.02}
data:
  batch_size: 16
  train:
    kind: csv
    path: rows.csv
    fields: [{name: x, columns: ["p*"]}, {name: label, scalar: true, dtype: int64}]
train: {epochs: 3, log_every: 1}
precision: float64
Y
cat > "$folder/compare.py" <<'P'
import json, struct, sys
def losses(run):
    return [json.loads(line)["loss"] for line in open(run + "/metrics.jsonl") if "loss" in line]
def weights(run):
    raw = open(run + "/model/model.safetensors", "rb").read()
    end = 8 + struct.unpack("<Q", raw[:8])[0]
    out = {}
    for name, e in json.loads(raw[8:end]).items():
        if name == "__metadata__": continue
        begin, last = e["data_offsets"]
        kind = {"F64": "d", "F32": "f"}[e["dtype"]]
        out[name] = struct.unpack(f"<{(last - begin) // struct.calcsize(kind)}{kind}", raw[end + begin : end + last])
    return out
a, b = sys.argv[1:3]
first, other = losses(a), losses(b)
if len(first) < 9 or len(first) != len(other): sys.exit(f"{len(first)} and {len(other)} losses")
for i, (x, y) in enumerate(zip(first, other)):
    if not abs(x - y) <= 1e-6 * abs(x): sys.exit(f"loss {i + 1}: {x} and {y}")
if first[0] == first[-1]: sys.exit("nothing was trained")
wanted, found = weights(a), weights(b)
if wanted.keys() != found.keys(): sys.exit(f"{sorted(wanted)} and {sorted(found)}")
for name, values in wanted.items():
    worst = max(abs(x - y) for x, y in zip(values, found[name], strict=True))
    if not worst <= 1e-5: sys.exit(f"{name} differs by {worst}")
bias = wanted.get("mix.experts.bias")
if sys.argv[3] == "bias" and (bias is None or max(map(abs, bias)) < 0.01 or abs(sum(bias)) > 1e-5):
    sys.exit(f"the bias is {bias}")
P
for form in 0 1 2 3; do
  for sorted in 0 1; do
    ok "$train" "$folder/net.yaml" model.params.form="$form" model.params.sorted="$sorted" --output "$folder/$form.$sorted"
  done
  python3 "$folder/compare.py" "$folder/$form.0" "$folder/$form.1" "$([[ "$form" == 1 ]] && echo bias)" || fail "form $form differs"
done
# A loss after experts is a mean over samples: it needs no warning about batches of the validation.
python3 -c "print('some words and more of them\n' * 60)" > "$folder/text.txt"
quiet 0 "$train" configs/text/moe_small.yaml params.layers=1 params.width=8 params.inner=4 params.vocab_size=32 train.steps=2 \
  train.evaluate_every=2 data.train.path="$folder/text.txt" --output "$folder/small"
# The bias is a state of the model.
quiet 0 "$bin/paddle" show "$folder/small/model"
grep -q "states: 8" "$folder/out" || fail "the bias is not among the states"
finish
