#!/usr/bin/env bash
# Several models and optimizers in a step: the losses of a GAN, of a WGAN with gradient penalty and
# of a distillation are those of PyTorch; eagerly and resumed the same; each model is saved; what a
# config cannot mean is rejected with its place.
set -uo pipefail
command -v python3 > /dev/null || { echo "python3 is missing"; exit 77; }
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
source "$here/../expect.bash"
golden="$here/../../model/step_losses"

cat > "$folder/mlp.yaml" <<'Y'
params: {sizes: [16, 6], act: tanh, inputs: 3}
inputs: {v: "float32[batch, inputs]"}
model: |
  for i in range(len(sizes) - 1):
    v = act(linear(v, sizes[i]))
  return linear(v, sizes[-1])
Y
cat > "$folder/common.yaml" <<Y
data:
  batch_size: 8
  shuffle: false
  train: {kind: npz, path: $golden/data.npz}
train: {steps: 20, log_every: 1, checkpoint_every: 7, keep_checkpoints: 9}
Y
cat > "$folder/gan.yaml" <<'Y'
extends: common.yaml
models:
  g: {file: mlp.yaml}
  d: {file: mlp.yaml, params: {sizes: [16, 1], act: leaky_relu, inputs: 6}}
optimizers:
  d: {name: adam, lr: 0.02, beta1: 0.5}
  g: {name: adam, lr: 0.01, beta1: 0.5}
step: |
  fake = g(z)
  d_loss = softplus(-d(x)).mean() + softplus(d(detach(fake))).mean()
  update(d_loss, optimizer="d", only="d.*")
  g_loss = softplus(-d(fake)).mean()
  update(g_loss, optimizer="g")
Y
sed -i 's/act: leaky_relu/act: leaky/; s/^model: |/blocks:\n  leaky(x): |\n    return leaky_relu(x, 0.2)\nmodel: |/' "$folder/gan.yaml" "$folder/mlp.yaml"
cat > "$folder/wgan_gp.yaml" <<'Y'
extends: gan.yaml
optimizers:
  d: {name: adam, lr: 0.01, beta1: 0.0, beta2: 0.9}
  g: {name: adam, lr: 0.01, beta1: 0.0, beta2: 0.9}
step: |
  fake = g(z)
  mixed = eps * x + (1 - eps) * detach(fake)
  slope = grad(d(mixed).sum(), mixed)
  penalty = square(sqrt(square(slope).sum(1)) - 1).mean()
  update(d(detach(fake)).mean() - d(x).mean() + 10 * penalty, optimizer="d")
  update(-d(fake).mean(), optimizer="g", every=2)
Y
cat > "$folder/distillation.yaml" <<Y
extends: common.yaml
models:
  student: {file: mlp.yaml, params: {sizes: [8, 4], act: relu, inputs: 6}}
  teacher:
    {file: mlp.yaml, params: {sizes: [24, 4], act: relu, inputs: 6}, weights: $golden/teacher.safetensors, frozen: true}
optimizer: {name: momentum, lr: 0.1, momentum: 0.9}
step: |
  logits = student(x)
  wanted = softmax(no_grad(teacher(x)) / 2, 1)
  soft = -(wanted * log_softmax(logits / 2, 1)).sum(1).mean()
  update(0.3 * cross_entropy(logits, label) + 0.7 * 4 * soft)
metrics: {accuracy: "accuracy(logits, label)"}
Y
sed "s|file: mlp.yaml, params: {sizes: \[8|file: mlp.yaml, weights: $golden/student.safetensors, params: {sizes: [8|" \
  -i "$folder/distillation.yaml"

# run NAME TOLERANCE ARGUMENT…: trains, and compares the losses with PyTorch's.
run() {
  local name="$1" tolerance="$2"
  shift 2
  [[ "$(run_bounded "$train" "$@")" == 0 ]] || { fail "training $name"; return; }
  python3 - "$folder/run/metrics.jsonl" "$golden/losses.json" "$name" "$tolerance" <<'P' || fail "losses of $name $*"
import json, sys
log, golden, name, tolerance = sys.argv[1:]
lines = [json.loads(line) for line in open(log)]
lines = [line for line in lines if line.get("kind") == "train"]
expected = json.load(open(golden))[name]
if len(lines) != len(expected):
    sys.exit(f"{len(lines)} lines")
for step, (line, losses) in enumerate(zip(lines, expected)):
    found = [line["loss.d"], line["loss.g"]] if len(losses) == 2 else [line["loss"]]
    for a, b in zip(found, losses):
        if abs(a - b) > float(tolerance) * max(1, abs(b)):
            sys.exit(f"step {step}: {found}, PyTorch {losses}")
    if abs(line["loss"] - sum(found)) > 1e-5:
        sys.exit(f"step {step}: the loss {line['loss']} is not the sum of {found}")
P
}

# A model that is called in the step takes values in 16 bits.
for name in gan wgan_gp; do
  run $name 5e-2 "$folder/$name.yaml" --init "$golden/gan.safetensors" precision=bf16 \
    --output "$folder/run" --overwrite
done

for mode in "" --eager; do
  for name in gan wgan_gp; do
    run $name 1e-5 "$folder/$name.yaml" --init "$golden/gan.safetensors" --output "$folder/run" --overwrite $mode
    # From the checkpoint in the middle on, the same losses.
    cp "$folder/run/metrics.jsonl" "$folder/whole"
    rm -rf "$folder"/run/checkpoints/{14,20,latest} "$folder/run/model"
    ln -s 7 "$folder/run/checkpoints/latest"
    run $name 1e-5 --resume "$folder/run" $mode
    diff <(grep -o '"loss[^,]*' "$folder/whole") <(grep -o '"loss[^,]*' "$folder/run/metrics.jsonl") > /dev/null ||
      fail "$name resumed has other losses"
  done
  run distillation 1e-5 "$folder/distillation.yaml" --output "$folder/run" --overwrite $mode
done

# Each model is saved, and can be run.
python3 - "$folder/v.npz" <<'P'
import struct, sys, zipfile
header = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 6), }"
header += " " * (117 - len(header)) + "\n"
with zipfile.ZipFile(sys.argv[1], "w") as z:
    z.writestr("v.npy", b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + bytes(48))
P
for model in model models/teacher; do
  [[ "$(run_bounded "$infer" "$folder/run/$model" --input "$folder/v.npz" --output "$folder/y.npz")" == 0 ]] ||
    fail "inference of $model"
done
[[ "$(run_bounded "$bin/paddle-eval" "$folder/run" --data train)" == 0 ]] || fail "evaluation of several models"
grep -q '"accuracy"' "$folder/out" || fail "no accuracy"
# A frozen model keeps its weights.
[[ "$(run_bounded "$bin/paddle-convert" "$folder/run/models/teacher/model.safetensors" "$folder/t.npz")" == 0 ]] || fail "conversion"
cmp -s <(tail -c 672 "$folder/run/models/teacher/model.safetensors" | md5sum) \
  <(tail -c 672 "$golden/teacher.safetensors" | md5sum) || fail "the teacher changed"
expect 2 "several models" "$infer" "$folder/run/checkpoints/latest" --input "$folder/v.npz" --output "$folder/y.npz"

# rejected NAME STATUS TEXT SED: the GAN's config changed by a sed script.
rejected() {
  sed "$3" "$folder/gan.yaml" > "$folder/bad.yaml"
  expect 3 "$2" "$train" "$folder/bad.yaml" --output "$folder/bad"
}
rejected optimizer "there is no optimizer 'e'" 's/optimizer="d"/optimizer="e"/'
rejected unnamed 'update: the config has the optimizers d, g; choose one: update(loss, optimizer="d")' 's/update(g_loss, .*/update(g_loss)/'
rejected pattern 'only="dd.*" matches none of the parameters' 's/only="d\.\*"/only="dd.*"/'
rejected unused "no update uses the optimizer 'g'" 's/update(g_loss, optimizer="g")/update(g_loss, optimizer="d")/'
rejected every "every= takes a number of steps from 1, found the number 0" 's/optimizer="g")/optimizer="g", every=0)/'
rejected argument "unknown argument 'onli' (did you mean 'only'?)" 's/only=/onli=/'
rejected input "g: the input 'v' is not given" 's/g(z)/g()/'
rejected both "a config has either 'model' or 'models'" '$a model: mlp.yaml'
rejected name "'update' is a function of the language" 's/^  g: {file/  update: {file/'
rejected export "there is no model 'e'" '$a export: e'
rejected params "with 'models', each has its own" '$a params: {sizes: [3]}'
rejected loss "'optimizers' needs a 'step'" 's/^step: |/loss: |/; s/^  update.*//'
rejected branch "update(loss) is not possible inside of a condition or loop on tensors" \
  's/^  update(g_loss.*/  if g_loss > 0:\n    update(g_loss, optimizer="g")/'
expect 3 "no such file" "$train" "$folder/distillation.yaml" models.teacher.weights=/nowhere/x.safetensors --output "$folder/bad"
finish
