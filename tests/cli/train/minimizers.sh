#!/usr/bin/env bash
# L-BFGS as the optimizer of a run: it resumes bit for bit and rejects what it lacks; searches inside of
# a step; the physics-informed networks of configs/science reach their reference solutions.
set -uo pipefail
command -v python3 > /dev/null || { echo "python3 is missing"; exit 77; }
source "$(dirname "${BASH_SOURCE[0]}")/../expect.bash"
science="$PWD/configs/science"
cd "$folder" || exit 1

# The last value of a key in the validation lines of a run is below a bound.
below() {
  python3 - "$1" "$2" "$3" <<'P' || fail "$1: $2 is not below $3: $(tail -1 "$1/metrics.jsonl")"
import json, sys
lines = [json.loads(line) for line in open(sys.argv[1] + "/metrics.jsonl")]
value = [line for line in lines if line["kind"] == "valid"][-1][sys.argv[2]]
sys.exit(not value < float(sys.argv[3]))
P
}

ok "$train" "$science/poisson.yaml" --output straight train.steps=6 train.evaluate_every=3
below straight error 1e-7
ok "$train" "$science/poisson.yaml" --output parts train.steps=3 train.evaluate_every=3
ok "$train" --resume parts train.steps=6
cmp -s straight/model/model.safetensors parts/model/model.safetensors || fail "a resumed run has other weights"
ok "$train" "$science/poisson.yaml" --eager --output eager train.steps=2 train.evaluate_every=2
below eager error 1e-4
below eager loss 1      # which takes derivatives
ok "$train" "$science/burgers.yaml" --output burgers train.steps=15 train.evaluate_every=15
below burgers error 2e-3
ok "$train" "$science/navier_stokes.yaml" --output flow train.steps=12 train.evaluate_every=12 data.train.size=200 data.batch_size=200 model.params.width=16
below flow error 0.1
expect 3 "lbfgs" "$train" "$science/poisson.yaml" --output no clip.global_norm=1
expect 3 "precision is float32 or float64" "$train" "$science/poisson.yaml" --output no precision=bfloat16
expect 3 "runs on one rank" "$train" "$science/poisson.yaml" --output no parallel.data=2
expect 3 "does not support ema, swa and keep_zeros" "$train" "$science/poisson.yaml" --output no 'train.ema={decay: 0.9}'
expect 3 "optimizer.history" "$train" "$science/poisson.yaml" --output no optimizer.history=0
expect 3 "weight_decay" "$train" "$science/poisson.yaml" --output no optimizer.weight_decay=0.1

ok "$bin/paddle-new" pinn --small -o heat.yaml
ok "$train" heat.yaml --output heat
below heat loss 2
expect 2 "takes no data" "$bin/paddle-new" pinn --data "$science" -o other.yaml

# A step that searches the input of one model and fits another one to what it finds.
cat > search.yaml <<'Y'
models:
  field:
    inputs: {z: "float32[2]"}
    model: |
      goal = param("goal", [2], init=assign([3, -1]))
      energy = square(z - goal).sum() + 0.5 * square(z[0] * z[1] + 3)
    outputs: [energy]
  guess:
    inputs: {noise: "float32[batch, 1]"}
    model: |
      place = linear(0 * noise, 2)
    outputs: [place]
step: |
  start = zeros([2])
  converged, evaluations, place, energy, slope = minimize_lbfgs(field, start, max_iters=30)
  again, count, other, value, gradient, inverse = minimize_bfgs(field, start, max_iters=30)
  found = guess(noise)
  update(square(found - place).sum(1).mean(), optimizer="guess")
metrics:
  energy: average(energy)
  apart: average(abs(place - other))
  far: average(abs(found - place))
optimizers: {guess: {name: sgd, lr: 0.4}}
data:
  batch_size: 4
  train: {kind: random, size: 16, fields: &fields [{name: noise, shape: [1]}]}
  valid: {kind: random, size: 4, fields: *fields}
train: {epochs: 10}
Y
for mode in "" --eager; do
  ok "$train" search.yaml --output "search$mode" $mode
  below "search$mode" energy 1e-8
  below "search$mode" apart 1e-4
  below "search$mode" far 1e-3
done
sed 's/max_iters=30/max_iter=30/' search.yaml > typo.yaml
expect 3 "did you mean 'max_iters'" "$train" typo.yaml --output no
sed 's/minimize_lbfgs(field/minimize_lbfgs(square/' search.yaml > typo.yaml
expect 3 "takes a model that gives one number" "$train" typo.yaml --output no
finish
