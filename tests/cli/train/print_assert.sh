#!/usr/bin/env bash
# print and assert in models and steps: the same lines in both modes, in order, with the place;
# losses and gradients are those without them.
set -uo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../expect.bash"
command -v python3 > /dev/null || { echo "python3 is missing"; exit 77; }
cd "$folder" || exit 1
# config NAME FIRST SECOND: a training config with these lines in its block and its model.
config() {
  cat > "$1.yaml" <<Y
model:
  inputs: {image: "float32[batch, 1, 28, 28]"}
  outputs: [logits]
  blocks:
    hidden(x): |
      h = linear(x, 16)
      $2
      return relu(h * 0.5 + 1.0)
  model: |
    a = hidden(flatten(image))
    $3
    logits = linear(a, 10, name="head")
loss: cross_entropy(logits, label)
optimizer: {name: sgd, lr: 0.1}
data:
  batch_size: 50
  shuffle: false
  train: {kind: digits, size: 300, range: [0, 200]}
  transforms: [{scale: {fields: image, factor: 0.00392157}}]
train: {epochs: 1, log_every: 1}
seed: 3
Y
}
losses() {
  python3 -c 'import json, sys
print([json.loads(line)["loss"] for line in open(sys.argv[1] + "/metrics.jsonl") if "\"loss\"" in line])' "$1"
}
config plain pass pass
config shown 'print("h", h, summarize=2)' 'print(mean(a), message="mean of a")'
config checked 'assert all(h < 1000), "h is too large"' 'assert mean(a) >= 0'
config passed 'h = print(h, print_phase="both", summarize=1, first_n=1)' pass
for mode in "" --eager; do
  name="compiled$mode"
  ok "$train" plain.yaml --output "plain$name" $mode
  for each in shown checked passed; do
    ok "$train" "$each.yaml" --output "$each$name" $mode
    cp error "$each$name.log"
    [[ "$(losses "$each$name")" == "$(losses "plain$name")" ]] || fail "$each changes losses in $name"
  done
done
[[ "$(losses plaincompiled)" != "[]" ]] || fail "no losses"
for name in compiled compiled--eager; do
  python3 - "shown$name.log" <<'P' || fail "lines of $name"
import re
import sys
lines = [line for line in open(sys.argv[1]) if line.startswith("shown.yaml:")]
assert len(lines) == 8, lines  # two a step, four steps
for i, line in enumerate(lines):
    number = r"-?[\d.e-]+"
    form = (rf"shown\.yaml:7:7 \(hidden\): h: float32\[50, 16\] \[{number}, {number}, …\]\n" if i % 2 == 0
            else rf"shown\.yaml:11:5: mean of a: float32\[\] \[({number})\]\n")
    assert re.fullmatch(form, line), (form, line)
P
  [[ "$(grep -c "^passed.yaml:7:" "passed$name.log")" == 2 ]] || fail "phases of $name: $(cat "passed$name.log")"
  grep -q "gradient: float32\[50, 16\]" "passed$name.log" || fail "no gradient in $name"
done
cmp <(grep "^shown" showncompiled.log | head -1) <(grep "^shown" showncompiled--eager.log | head -1) ||
  fail "the modes print different numbers"
config failing 'assert all(h > 1000), "h is too small"' pass
config both 'print("first", sum(h))' 'assert sum(a) < 0, "never"'
config static 'assert x.shape[1] == 7, "seven columns"' pass
for mode in "" --eager; do
  expect 4 "failing.yaml:7:7: assert: h is too small" "$train" failing.yaml --output f $mode --overwrite
  expect 4 "both.yaml:11:5: assert: never" "$train" both.yaml --output f $mode --overwrite
  grep -q "both.yaml:7:7 (hidden): first: float32\[\] \[" error || fail "what was printed before is lost"
done
expect 3 "static.yaml:7:7: assert: seven columns" "$train" static.yaml --output f --overwrite
config nothing 'print("here")' pass
expect 3 "nothing.yaml:7:7: print needs at least one tensor" "$train" nothing.yaml --output f --overwrite
# A trained model keeps them; a step has them as well.
ok "$infer" showncompiled --data train --output y.npz
[[ "$(grep -c "mean of a" error)" -gt 0 ]] || fail "the saved model does not print"
sed 's/^loss: .*/step: |\n  logits = model(image)\n  loss = cross_entropy(logits, label)\n  print("loss", loss)\n  assert loss >= 0\n  update(loss)/' plain.yaml > step.yaml
for mode in "" --eager; do
  ok "$train" step.yaml --output s $mode --overwrite
  [[ "$(grep -c "step.yaml:.*: loss: float32\[\] \[" error)" == 4 ]] || fail "a step prints $(cat error)"
done
finish
