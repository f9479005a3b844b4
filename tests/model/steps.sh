#!/usr/bin/env bash
# `step:` bodies train as the `loss:` that they stand for, compiled and eagerly; models that ask for
# the values of dims train; what a step cannot be is rejected with a place.
set -uo pipefail
bin="${PADDLE_BIN:?}"
folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT
failures=0

# config NAME MODEL BODY…: writes a config that trains a model for three steps.
config() {
  {
    echo "model: $2"
    printf '%s\n' "${@:3}"
    cat <<'END'
optimizer: {name: adam, lr: 0.01}
data:
  batch_size: 32
  train: {kind: digits, size: 80, seed: 1}
  transforms:
    - scale: {fields: image, factor: 0.00392156862745098}
train: {epochs: 1, log_every: 1}
END
  } > "$folder/$1.yaml"
}

# losses NAME ARGUMENT…: the losses of a run.
losses() {
  "$bin/paddle-train" "$folder/$1.yaml" --output "$folder/run" --overwrite "${@:2}" > "$folder/out" 2>&1 ||
    { echo "FAIL: $*:"; tail -3 "$folder/out"; failures=$((failures + 1)); }
  sed -n 's/.*"kind":"train".*"loss":\([-0-9.e]*\).*/\1/p' "$folder/run/metrics.jsonl"
}

same() {
  if [[ -z "$2" || "$2" != "$3" ]]; then
    echo "FAIL: $1: '$2' against '$3'"; failures=$((failures + 1))
  fi
}

rejected() {
  local status=0
  "$bin/paddle-train" "$folder/$1.yaml" --output "$folder/rejected" > "$folder/out" 2>&1 || status=$?
  if [[ "$status" != 3 ]] || ! grep -qF -- "$2" "$folder/out"; then
    echo "FAIL: $1 gave $status, expected 3 with '$2':"; head -3 "$folder/out"; failures=$((failures + 1))
  fi
}

cat > "$folder/net.yaml" <<'END'
inputs: {image: "float32[batch, 1, rows, 28]"}
model: |
  x = image.mean(1)
  h = zeros([batch, 8])
  for t in range(static(rows) // 7):
    h = tanh(linear(x[:, 7 * t, ::4], 8, share="in") + linear(h, 8, share="carry"))
  if static(batch) < 20:             # the last batch is a shorter one
    h = h * 0.5
  logits = linear(h, 10)
outputs: [logits]
END
config loss net.yaml 'loss: cross_entropy(logits, label)'
config step net.yaml 'step: |' '  loss = cross_entropy(logits, label)' '  update(loss)'
config calls net.yaml 'step: |' '  update(cross_entropy(model(image), label))'
config penalty net.yaml 'step: |' '  y = model(image)' '  g = grad(y.sum(), image)' \
  '  update(cross_entropy(y, label) + 0.5 * square(g).sum() + 0.1 * square(model(image * 2)).mean())'
expected="$(losses loss)"
same "a step is its loss" "$(losses step)" "$expected"
same "a model that is called" "$(losses calls)" "$expected"
round() { awk '{printf "%.4f ", $1}'; }
same "eagerly" "$(losses step --eager | round)" "$(echo "$expected" | round)"
same "a gradient penalty" "$(losses penalty | round)" "$(losses penalty --eager | round)"
[[ "$(echo "$expected" | wc -l)" == 3 ]] || { echo "FAIL: three steps expected"; failures=$((failures + 1)); }

cat > "$folder/latent.yaml" <<'END'
inputs: {image: "float32[batch, 1, 28, 28]"}
model: |
  h = linear(image.reshape([0, -1]), 8)
  q = normal(h[:, :4], softplus(h[:, 4:]))
  logits = linear(q.rsample(), 784)
  kl = q.kl_divergence(normal(0, 1)).sum(-1)
outputs: [logits, kl]
END
config variational latent.yaml 'step: |' '  x = image.reshape([0, -1])' '  p = bernoulli(logits=logits)' \
  '  update((kl - p.log_prob(x).sum(-1)).mean())'
compiled="$(losses variational)"
same "a variational autoencoder" "$(echo "$compiled" | round)" "$(losses variational --eager | round)"
awk 'NR == 1 { first = $1 } END { exit !(NR == 3 && $1 < first) }' <<< "$compiled" ||
  { echo "FAIL: a variational autoencoder does not learn: $compiled"; failures=$((failures + 1)); }

config part net.yaml 'step: |' '  update(cross_entropy(logits, label), only="carry.*")'
[[ -n "$(losses part)" ]] || { echo "FAIL: an update of some parameters"; failures=$((failures + 1)); }
config several net.yaml 'step: |' '  update(cross_entropy(logits, label), optimizer="d")'
rejected several "several.yaml:3:3: update: optimizer=\"d\" needs 'optimizers:' in the config"
config never net.yaml 'step: |' '  y = cross_entropy(logits, label)'
rejected never "never.yaml:2:7: step: the body never calls update(loss)"
config grammar net.yaml 'step: |' '  update(cross_entropy(logits, label)'
rejected grammar "grammar.yaml:3:9: '(' is never closed"
config twice net.yaml 'step: |' '  update(logits.mean())' '  update(logits.sum())'
rejected twice "twice.yaml:4:3: update(loss) happens once in a step"
config name net.yaml 'step: |' '  update(cross_entropy(logitz, label))'
rejected name "name.yaml:3:24: unknown name 'logitz' (did you mean 'logits'?"
config both net.yaml 'step: update(logits.mean())' 'loss: logits.mean()'
rejected both "a config has either 'loss' or 'step'"
[[ "$failures" == 0 ]] && echo "all steps as expected"
exit "$((failures > 0))"
