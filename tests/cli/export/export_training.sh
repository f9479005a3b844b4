#!/usr/bin/env bash
# paddle-export --training: the file of a step, stepped from its own outputs, has the losses of the
# run; what is rejected.
set -uo pipefail
command -v python3 > /dev/null || { echo "python3 is missing"; exit 77; }
source "$(dirname "${BASH_SOURCE[0]}")/../expect.bash"
export_model="$bin/paddle-export"
steps=20
# 20 steps: each check is one of them.
trains() {
  local name="$1"
  shift
  [[ "$(run_bounded "$export_model" --training "$@" -o "$folder/$name.onnx" --check "$steps")" == 0 ]] || {
    cat "$folder/out"
    fail "$name: $*"
    return
  }
  [[ "$(grep -c "agrees" "$folder/out")" == "$steps" ]] || fail "$name: fewer than $steps steps"
}
source "$(dirname "${BASH_SOURCE[0]}")/export_training_runs.bash"

python3 - "$folder/adamw.onnx.report.json" <<'P' || fail "the report"
import json, sys
report = json.load(open(sys.argv[1]))
assert len(report["checks"]) == 20 and all(c["passed"] for c in report["checks"]), report
P
"$export_model" --training "$folder/digits.yaml" --list-ops > "$folder/forms" || fail "--list-ops"
grep -q "^decomposed *sgd_update" "$folder/forms" || fail "--list-ops does not list the update"
expect 2 "accumulates gradients" "$export_model" --training configs/quickstart/digits.yaml train.accumulate=2 \
  -o "$folder/x.onnx"
cat > "$folder/every.yaml" <<'Y'
models: {d: net.yaml}
step: |
  logits = d(image)
  update(cross_entropy(logits, label), optimizer="d", every=2)
optimizers: {d: {name: sgd, lr: 0.05}}
data: {batch_size: 16, train: {kind: digits, size: 96}}
train: {epochs: 1}
Y
expect 2 "every= skips steps" "$export_model" --training "$folder/every.yaml" -o "$folder/x.onnx"
grep -q "every.yaml:4:" "$folder/error" || fail "every= is rejected without its line"
expect 2 "--training cannot be combined with" "$export_model" --training configs/quickstart/digits.yaml --dtype float16 -o "$folder/x.onnx"
expect 2 "already exists" "$export_model" --training configs/quickstart/digits.yaml -o "$folder/adamw.onnx"
[[ "$(run_bounded "$export_model" --training models/lenet.yaml -o "$folder/x.onnx")" == 3 ]] || fail "a model is not a config"
[[ ! -e "$folder/x.onnx" ]] || fail "a rejected export left a file"
finish
