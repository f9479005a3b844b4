#!/usr/bin/env bash
# Losses, optimizers, schedules, metrics and transforms of a YAML file: checked, trained with and
# resumed. Copies of the engine's own give the same numbers, and wrong ones are found.
set -uo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../expect.bash"
plugin="$bin/paddle-plugin"
unset PADDLE_PLUGINS
cp -r plugins/train_parts "$folder/parts"
cd "$folder" || exit 1
parts=parts/train_parts.plugin.yaml
says() { grep -qF -- "$1" out || { fail "no '$1' in:"; head -c 800 out; }; }
# numbers RUN: the losses and metrics of all epochs, without times.
numbers() { grep -o '"loss":[^,}]*\|"accuracy":[^,}]*\|"lr":[^,}]*\|"own":[^,}]*' "$1/metrics.jsonl"; }
same() {
  [[ -n "$(numbers "$1")" ]] || fail "$1 has no numbers"
  [[ "$(numbers "$1")" == "$(numbers "$2")" ]] || fail "$1 and $2 differ: $(diff <(numbers "$1") <(numbers "$2") | head -4)"
}

# --- the example ---
ok "$plugin" check "$parts" --quick
says "optimizers  5       0       0"
says "lr_schedule 1       0       0"
says "metrics     1       0       0"
says "transforms  1       0       0"
says "traits      1       0       0"
ok "$plugin" info "$parts"
says "optimizers: train_parts.signum"
says "precision: train_parts.focal"
ok "$plugin" list --plugin "$parts"
says "schedules train_parts.triangle, metrics train_parts.f_half"
short=(data.train.range=[0,640] data.valid.range=[4000,4200] train.epochs=2)
ok "$train" parts/digits.yaml --output whole "${short[@]}"
[[ ! -s error ]] || ! grep -q "is not a sum over samples" error || fail "the body of the loss is not looked at"
ok "$train" parts/digits.yaml --output half "${short[@]}" train.epochs=1
ok "$train" --resume half train.epochs=2 --plugin "$parts"
same half whole
ok "$train" parts/digits.yaml --output accumulated "${short[@]}" train.accumulate=2
ok "$train" parts/digits.yaml --output ranks "${short[@]}" --simulate 2 parallel.data=2 parallel.sharding=1
ok "$train" parts/digits.yaml --output mixed "${short[@]}" precision=bfloat16
ok "$bin/paddle-eval" whole --plugin "$parts"
expect 3 "needs the plug-in train_parts ≥ 1.0.0" "$bin/paddle-eval" whole/model
expect 3 "unknown transform 'train_parts.gamma' (is the plug-in train_parts loaded?)" \
  "$infer" whole --data parts/digits.yaml:valid -o out.npz

# --- copies of the engine's own ---
cat > copies.plugin.yaml <<'Y'
plugin: {name: copies, version: 1.0.0, abi: 1}
losses:
  cross:
    signature: (logits:T, label:tensor) -> out
    doc: The mean cross-entropy.
    dtypes: {logits: float, label: int32|int64}
    body: cross_entropy(logits, label)
    samples: ["logits=f64[6,3] label=i64[6]{0,3}"]
optimizers:
  lion:
    doc: Lion.
    lr: 0.0001
    keys: {beta1: {type: real, default: 0.9}, beta2: {type: real, default: 0.99}}
    states: {moment: 0}
    update: |
      direction = sign(moment * beta1 + gradient * (1 - beta1))
      parameter = parameter * (1 - lr * weight_decay) - lr * direction
      moment = moment * beta2 + gradient * (1 - beta2)
    decoupled_weight_decay: true
schedules:
  inverse: {doc: 1 / (1 + gamma n)., keys: {gamma: {type: real, required: true}}, factor: 1 / (1 + gamma * step)}
metrics:
  own:
    doc: The share of rows whose largest score is that of the label.
    operands: [logits, label]
    state: {hits: "sum(argmax(logits, axis=1) == label)", all: sum(ones_like(label))}
    value: hits / all
transforms:
  scale: {doc: x by a factor., keys: {factor: {type: real, default: 1}}, body: "cast(x, \"float32\") * factor"}
Y
cat > engine.yaml <<'Y'
plugins: [copies.plugin.yaml]
model:
  inputs: {image: "float32[batch, 1, 28, 28]"}
  model: logits = linear(flatten(image), 10)
  outputs: [logits]
loss: cross_entropy(logits, label)
metrics: {own: "accuracy(logits, label)"}
optimizer: {name: lion, lr: 2e-4, beta1: 0.8, weight_decay: 0.1}
schedule: {name: inverse_time, gamma: 0.1}
data:
  batch_size: 64
  train: {kind: digits, size: 900, seed: 1, range: [0, 640]}
  valid: {kind: digits, size: 900, seed: 1, range: [640, 900]}
  transforms: [{scale: {fields: image, factor: 0.00390625}}]
train: {epochs: 2}
Y
sed -e 's/loss: cross_entropy/loss: copies.cross/; s/"accuracy(/"copies.own(/; s/name: lion/name: copies.lion/' \
  -e 's/name: inverse_time/name: copies.inverse/; s/{scale:/{copies.scale:/' engine.yaml > copies.yaml
ok "$train" engine.yaml --output by_engine
ok "$train" copies.yaml --output by_copies
same by_copies by_engine
ok "$plugin" check copies.plugin.yaml --quick --key gamma=0.5 --group lr_schedule
says "lr_schedule 1       0       0"
ok "$plugin" check copies.plugin.yaml --quick --group lr_schedule
says "skipped: lr_schedule copies.inverse: it needs the key 'gamma': --key gamma=VALUE"
expect 3 "'gamma' is missing in 'schedule'" "$train" copies.yaml --dry-run 'schedule={name: copies.inverse}'
expect 3 "did you mean 'copies.lion'" "$train" copies.yaml --dry-run optimizer.name=copies.lio
expect 3 "unknown operation 'copies.cros' (did you mean 'copies.cross'?)" "$train" copies.yaml --dry-run \
  'loss="copies.cros(logits, label)"'
expect 3 "'copies.owns' is not a metric (did you mean 'copies.own'?)" "$train" copies.yaml --dry-run \
  'metrics={a: "copies.owns(logits, label)"}'
expect 3 "unknown key" "$train" copies.yaml --dry-run optimizer.beta3=1

# --- wrong ones ---
cat > wrong.plugin.yaml <<'Y'
plugin: {name: wrong, version: 1.0.0, abi: 1}
optimizers:
  norms: {doc: d, lr: 0.1, update: parameter = parameter - lr * gradient / (1 + mean(abs(gradient)))}
  ascends: {doc: d, lr: 0.1, update: parameter = parameter + lr * gradient}
  forgets: {doc: d, lr: 0.1, states: {m: 0}, update: "m = log(m)\nparameter = parameter - lr * gradient"}
  shapes: {doc: d, lr: 0.1, update: parameter = sum(parameter)}
schedules:
  negative: {doc: d, factor: 1 - step / 5}
  many: {doc: d, factor: "ones([2])"}
metrics:
  by_batch: {doc: d, operands: [x], state: {a: sum(mean(x))}, value: a, samples: ["x=f32[9]"]}
  fails: {doc: d, operands: [x], state: {a: sum(x)}, value: "a + ones([2])", samples: ["x=f32[9]"]}
operations:
  mean_rows: {signature: (x:T) -> out, doc: d, dtypes: {x: float}, body: "mean(x, 0)", samples: ["x=f64[6,3]"], sharding: "[rows, n] -> [n]"}
sharding: {softmax: "[..., n] -> [..., n]", hardshrink: "[...] -> [...]"}
transforms:
  sizes: {doc: d, body: "masked_select(x, x > 0)", samples: ["f32[9]"]}
Y
status="$(run_bounded "$plugin" check wrong.plugin.yaml --quick)"
[[ "$status" == 1 ]] || fail "wrong parts: status $status"
for failure in "optimizers wrong.norms/shards: rows 0 to 1 depend on the others" \
  "optimizers wrong.ascends/descends: after 30 updates" "optimizers wrong.forgets/modes: not finite" \
  "optimizers wrong.shapes/modes: wrong.shapes: parameter becomes" "lr_schedule wrong.negative: the factor of step" \
  "lr_schedule wrong.many: wrong.many: the factor of step 0 is not one finite number" \
  "metrics wrong.by_batch: in batches of 1 it is" "metrics wrong.fails: wrong.fails: its value has 2 elements" "transforms wrong.sizes:" \
  "traits wrong.mean_rows/sharding: with a dim of 6 split into 3 and 3, result 0 combined differs" \
  "traits softmax/sharding: with a dim of"; do
  says "failed: $failure"
done
! grep -q "failed: optimizers wrong.norms/modes\|failed: traits hardshrink" out || fail "a right case failed"
finish
