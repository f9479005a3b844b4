#!/usr/bin/env bash
# jvp, vjp, jacobian and hessian in a step, eagerly and compiled, against torch.func
# (derivatives_reference.py), and the calls that they reject. A model and a metric that
# differentiate: trained, evaluated, saved and exported.
set -uo pipefail
command -v python3 > /dev/null || { echo "python3 is missing"; exit 77; }
source "$(dirname "${BASH_SOURCE[0]}")/../expect.bash"
cd "$folder" || exit 1

printf '0.5,-1,0.25\n1.5,0.75,-0.5\n-0.25,2,1\n' > x.csv
cat > step.yaml <<'Y'
precision: float64
model:
  inputs: {x: "float32[batch, 3]"}
  model: |
    scale = param("scale", [1], init=1)
    a = x[:, 0]
    b = x[:, 1]
    c = x[:, 2]
    y = scale * stack([sin(a * b) + c ** 3, b ** 2 * exp(-a * c)], 1)
  outputs: [y]
step: |
  y = model(x)
  two = arange(1, 3, dtype="float64")
  three = arange(1, 4, dtype="float64")
  six = arange(1, 7, dtype="float64").reshape([2, 3])
  nine = arange(1, 10, dtype="float64").reshape([3, 3])
  v = zeros_like(x) + three - 2.5
  w = zeros_like(y) + two - 2.5
  slopes = jacobian(y, x, batch_axis=0)
  jacobian_sum = mean(slopes * six)
  hessian_sum = mean(hessian(y.sum(1), x, batch_axis=0) * nine)
  t = x.sum(0)
  z = stack([sin(t[0] * t[1]) + t[2] ** 3, t[1] ** 2 * exp(-t[0] * t[2])], 0)
  single_sum = mean(jacobian(z, t) * six)
  curved_sum = mean(hessian(z.sum(), t) * nine)
  forward_sum = mean(jvp(y, x, v) * two)
  back_sum = mean(vjp(y, x, w) * three)
  second_sum = mean(grad(square(slopes).sum(), x) * three)
  update(square(y).mean())
metrics:
  jacobian: average(jacobian_sum)
  hessian: average(hessian_sum)
  single: average(single_sum)
  curved: average(curved_sum)
  forward: average(forward_sum)
  back: average(back_sum)
  second: average(second_sum)
optimizer: {name: sgd, lr: 0}
data:
  batch_size: 3
  train: &rows {kind: csv, path: x.csv, header: false, fields: [{name: x, columns: ["0", "1", "2"]}]}
  valid: *rows
train: {steps: 1}
Y
for mode in "" --eager; do
  [[ "$(run_bounded "$train" step.yaml --output "run$mode" $mode)" == 0 ]] || fail "a step with derivatives $mode"
  python3 - "run$mode/metrics.jsonl" <<'P' || fail "other values than torch.func's $mode"
import json, sys
expected = {"jacobian": 1.265160881705905, "hessian": -1.2335906548739874, "single": -1.098090955914613, "curved": 3.6384874937609655,
            "forward": 1.0880219326637925, "back": -2.763273782327997, "second": 37.64371354693804}
lines = [json.loads(line) for line in open(sys.argv[1])]
found = [line for line in lines if line["kind"] == "valid"][-1]
bad = {k: (found.get(k), v) for k, v in expected.items() if abs(found.get(k, 1e9) - v) > 1e-6 * (1 + abs(v))}
print(bad)
sys.exit(bool(bad) or len(expected) != 7)
P
done
reject() { sed "s/jvp(y, x, v)/$1/" step.yaml > other.yaml; expect 3 "$2" "$train" other.yaml --output no; }
reject "jvp(y, x)" "jvp is called as jvp(y, x, v), with v of the shape of x"
reject "jvp(y, x, w)" "a vector is"
reject "vjp(y, x, [w, w])" "expected 1 vectors"
reject "jvp(y, 3, v)" "expected a tensor"
reject "jacobian(y, x)" "expected a known number of elements"
reject "hessian(y, x, batch_axis=0)" "y must be one number per sample"
reject "jacobian(y, x, batch_axis=1)" "batch_axis= takes 0 or none"
reject "jacobian(y, x, batch_axs=0)" "did you mean 'batch_axis'"

# y = (w * x)^2 and its slope 2 * w^2 * x, fitted to the slope of x^2.
printf '0.5,1.5,1,3\n-0.25,2,-0.5,4\n' > slope.csv
cat > slope.yaml <<'Y'
precision: float64
model:
  inputs: {x: "float32[batch, 2]"}
  model: |
    w = param("w", [1], init=0.5)
    y = (w * x) ** 2
    return y, grad(y.sum(), x)
  outputs: [y, slope]
loss: mse_loss(slope, wanted)
metrics:
  from_model: average(mean(slope))
  in_metric: average(mean(grad(square(y).sum(), x)))
optimizer: {name: sgd, lr: 0.01}
data:
  batch_size: 2
  train: &rows {kind: csv, path: slope.csv, header: false, fields: [{name: x, columns: ["0", "1"]}, {name: wanted, columns: ["2", "3"]}]}
  valid: *rows
train: {steps: 60}
Y
for mode in "" --eager; do
  [[ "$(run_bounded "$train" slope.yaml --output "slope$mode" $mode)" == 0 ]] || fail "a model with a gradient $mode"
  python3 - "slope$mode/metrics.jsonl" <<'P' || fail "the slope is another one $mode"
import json, sys
found = [line for line in map(json.loads, open(sys.argv[1])) if line["kind"] == "valid"][-1]
x = [0.5, 1.5, -0.25, 2]
wanted = {"loss": 0, "from_model": sum(2 * v for v in x) / 4, "in_metric": sum(4 * v**3 for v in x) / 4}
bad = {k: (found.get(k), v) for k, v in wanted.items() if abs(found.get(k, 1e9) - v) > 1e-6}
print(bad)
sys.exit(bool(bad))
P
done
"$bin/paddle-infer" slope --data valid --output out.csv > /dev/null || fail "prediction of a run whose model differentiates"
"$bin/paddle-export" slope -o slope.onnx > export.txt || fail "export of a gradient"
grep -q "agrees with the model" export.txt || fail "the exported gradient differs"
finish
