#!/usr/bin/env bash
# Wrong commands, configs and surroundings: places, suggestions, exit statuses; full disks, folders
# that cannot be written, closed pipes.
set -uo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../expect.bash"
good=configs/quickstart/digits.yaml
small=("data.train={kind: digits, size: 64}" data.valid= data.batch_size=16 train.epochs=1)

# ---- configs -------------------------------------------------------------------------------------

config() { printf '%b' "$3" > "$folder/c.yaml"; expect "$1" "$2" "$train" "$folder/c.yaml" --dry-run; }
config 3 "c.yaml:2:1" 'a: 1\n\tb: 2\n'
config 3 "c.yaml:1:1: expected a map" '[1, 2]\n'
config 3 "c.yaml" ''
config 3 "c.yaml:1:" 'a: &x {b: *x}\n'
config 3 "c.yaml:2:1" 'model: x.yaml\nmodel: y.yaml\n'
config 3 "c.yaml:1:" 'extends: c.yaml\n'
config 3 "c.yaml" 'extends: nowhere.yaml\n'
config 3 "c.yaml:1:" "$(head -c 4000 /dev/zero | tr '\0' '[')"
config 3 "c.yaml" 'a: !!python/object x\n'
config 3 "c.yaml" '\xff\xfe\x00'
{ printf 'a: &a0 [x,x,x,x,x,x,x,x,x]\n'
  for i in 1 2 3 4 5 6 7 8 9; do printf 'b%d: &a%d [%s]\n' "$i" "$i" "$(printf "*a$((i - 1)),%.0s" 1 2 3 4 5 6 7 8 9)"; done
} > "$folder/bomb.yaml"
expect 3 "bomb.yaml" "$train" "$folder/bomb.yaml" --dry-run

with() { expect "$1" "$2" "$train" "$good" --output "$folder/run" "${@:3}"; }
with 3 "optimizer.lr': expected a number" optimizer.lr=fast
with 3 "train.epochs': expected an integer" train.epochs=1.5
with 3 "data.shuffle': expected true or false" data.shuffle=no
with 3 "at least 0" optimizer.lr=-1
with 3 "optimizer.lr" optimizer.lr=.nan
with 3 "optimizer.lr" optimizer.lr=.inf
with 3 "did you mean 'batch_size'" data.batchsize=3
with 3 "did you mean 'adam" optimizer.name=adamv
with 3 "did you mean 'random_crop'" 'data.augment=[{random_corp: {fields: image}}]'
with 3 "'flaot' is not a dtype" 'data.transforms=[{cast: {fields: image, dtype: flaot}}]'
with 3 "has no window" 'data.augment=[{random_crop: {fields: image, height: 40, width: 40}}]'
with 3 "no field 'imag'" 'data.augment=[{horizontal_flip: {fields: imag}}]'
with 3 "logit" 'loss=cross_entropy(logit, label)'
with 3 "one number" 'loss=logits'
with 3 "'accurate' is not a metric (did you mean 'accuracy'?)" 'metrics={a: "accurate(logits, label)"}'
with 3 "range [30000, 40000] does not fit" 'data.train.range=[30000, 40000]'
with 3 "add up to" 'data.train.split={a: 0.7, b: 0.7}' data.train.part=a
with 3 "no part" 'data.train.split={a: 0.7}' data.train.part=b
with 3 "give epochs or steps" train.epochs=0
with 3 "train.best" train.best=accurracy
with 3 "train.best needs data.valid" train.best=accuracy data.valid=
with 3 "train.best needs data.valid" train.best=accuracy train.evaluate_every=never
with 3 "cannot have 100 micro-batches" train.accumulate=100
with 3 "'deterministic': expected true or false" deterministic=maybe
with 3 "'optimizer.lr': the value is empty" optimizer.lr=
with 3 "'seed': the value is empty" seed=
config 3 "c.yaml:2:3: 'optimizer.lr': the value is empty" 'optimizer:\n  lr:\n  name: sgd\n'
with 3 "did you mean 'adamw'" optimizer.name=adamW
with 3 "data 2 x tensor 1 is 2 ranks, the run has 1" 'parallel={data: 2}'
with 3 "'name': expected the name of a folder" name=a/b
with 4 "No such file or folder" 'data.train={kind: images, path: nowhere}'
sed "s|\.\./\.\./models|$PWD/models|; 1a params: {clases: 3}" "$good" > "$folder/params.yaml"
expect 3 "params.yaml:2:18: 'params.clases': unknown param" "$train" "$folder/params.yaml" --dry-run
# An old name on the command line replaces the new one of the file.
"$train" "$good" --dry-run optimizer.learning_rate=0.125 > "$folder/out" 2> "$folder/error" || fail "the old name of a key"
grep -q "learning rate 0.125" "$folder/out" || fail "the old name of a key has no effect"
expect 3 "another name of 'lr'" "$train" "$good" --dry-run 'optimizer={name: sgd, lr: 1, learning_rate: 2}'
printf 'PK\003\004aaaaaaaaaaaaaa' > "$folder/weights.pt"
with 5 "is a ZIP archive" --init "$folder/weights.pt"
printf '\x80\x02}q\x00X\x06\x00' > "$folder/weights.pt"
with 5 "is a pickle" --init "$folder/weights.pt"
for program in paddle paddle-train paddle-infer paddle-convert paddle-op; do
  "$bin/$program" --version > "$folder/out" || fail "$program --version"
  grep -q "instruction sets: sse4, avx2, avx512" "$folder/out" || fail "$program --version says no instruction sets"
done
with 2 "one config is expected" "$good"
with 2 "--threads" --threads=-3
with 2 "--benchmark" --benchmark 0
with 2 "cannot be given with --eager" --profile --eager
with 3 "data.valid has no field 'label'" 'data.valid={kind: random, size: 8, fields: [{name: image, shape: [1, 28, 28]}]}'
most_lines=12
with 3 "'optimizer.lr'" optimizer.lr=x train.epochs=y data.batch_size=z seed=-1
(($(grep -c "^\(error: \)\?command line: '" "$folder/error") == 4)) || fail "not all errors are shown at once"
most_lines=4
with 3 "'model': expected a model file" model=
with 3 "'model': an empty path" "model=''"
with 3 "'model': no such file" model=configs/quickstart
with 3 "an empty path" "data.train={kind: idx, images: ''}"
with 3 "overflows" 'data.train={kind: random, size: 8, fields: [{name: image, shape: [99999999999, 99999999999]}]}'
with 5 "nowhere.safetensors" --init "$folder/nowhere.safetensors"
# A model that is impossible, and one that no machine holds.
with 3 "larger than the padded" 'model={inputs: {image: "float32[batch, 1, 28, 28]"}, model: [{linear: 10}, {conv2d: {out_channels: 1, kernel_size: 40}}], outputs: [logits]}'
expect 6 "" "$train" "$good" --dry-run 'model={inputs: {image: "float32[batch, 1, 28, 28]"}, model: [flatten, {linear: 4000000000}, {linear: 10}], outputs: [logits]}'
expect 6 "does not fit in memory" "$train" "$good" --dry-run data.batch_size=16777216
# Weights and optimizer states take no memory in a dry run, whatever their first values.
python3 - "$train" "$good" "$folder" <<'P' || fail "a dry run of 30 billion parameters"
import resource, subprocess, sys
train, config, folder = sys.argv[1:]
model = 'model={inputs: {image: "float32[batch, 1, 28, 28]"}, model: [flatten, {linear: 40000000}, {linear: 10}], outputs: [logits]}'
for options in (["optimizer={name: adagrad, initial_accumulator: 0.1}"], ["precision=bf16", "amp.level=O2"]):
    run = subprocess.run([train, config, "--dry-run", model, *options], capture_output=True, timeout=30)
    assert run.returncode == 6, (options, run.returncode, run.stderr)
    assert b"does not fit in memory" in run.stderr, run.stderr
peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
assert peak < 500_000, f"{peak} KiB"
P
expect 6 "does not fit in memory" "$train" "$good" --dry-run data.batch_size=16777216
grep -q "it does not fit: raise train.accumulate" "$folder/out" || fail "no advice in the plan"

# ---- surroundings --------------------------------------------------------------------------------

"$train" "$good" "${small[@]}" --output "$folder/whole" > /dev/null || fail "a small run"
expect 2 "--resume" "$train" "$good" --output "$folder/whole"
expect 2 "no such run folder" "$train" --resume "$folder/nowhere"
expect 2 "holds no run" "$train" --resume "$folder"
expect 3 "'data.batch_size' cannot change on resume" "$train" --resume "$folder/whole" data.batch_size=8
expect 3 "'seed' cannot change" "$train" --resume "$folder/whole" seed=3
expect 3 "'optimizer.name' cannot change" "$train" --resume "$folder/whole" optimizer.name=adam
quiet 0 "$train" --resume "$folder/whole" train.epochs=2 optimizer.lr=1e-3
grep -q "changed on resume: optimizer.lr was" "$folder/out" || fail "the change of a rate is not told"

# A checkpoint of another model under the same name.
cp -r "$folder/whole" "$folder/other"
"$train" "$good" "${small[@]}" 'model={inputs: {image: "float32[batch, 1, 28, 28]"}, model: [flatten, {linear: 10}], outputs: [logits]}' --output "$folder/linear" > /dev/null
for step in "$folder"/other/checkpoints/[0-9]*; do
  newest="$(ls -d "$folder"/linear/checkpoints/[0-9]* | tail -n 1)"
  config="$(cat "$step/config.yaml")"
  rm -r "$step" && cp -r "$newest" "$step" && rm "$step/state.json"
  printf '%s\n' "$config" > "$step/config.yaml"
  cp "$newest/state.json" "$step/state.json"
  sed -i '/"files"/,/^  }/d' "$step/state.json"
  python3 - "$newest/state.json" "$step/state.json" 2> /dev/null <<'P' || true
import json, sys
state = json.load(open(sys.argv[1])); state.pop("files"); json.dump(state, open(sys.argv[2], "w"))
P
done
expect 5 "checkpoint of another model" "$train" --resume "$folder/other" train.epochs=5

touch "$folder/file"
expect 6 "file" "$train" "$good" "${small[@]}" --output "$folder/file/run"
expect 6 "" "$train" "$good" "${small[@]}" --output /proc/nowhere/run
expect 6 "" "$infer" "$folder/whole/model" --data train --output /proc/nowhere/out.npz

# A disk that fills up while a checkpoint is written: the checkpoint before it stays whole, and the
# run can continue from it. The model has 215,370 parameters, so a limit of 600 blocks of 1,024 bytes
# to a file stops the weights of the second run's first checkpoint.
"$train" "$good" "${small[@]}" train.epochs=3 train.checkpoint_every=4 train.log_every=1 --output "$folder/full_whole" > /dev/null
"$train" "$good" "${small[@]}" train.epochs=1 train.checkpoint_every=4 train.log_every=1 --output "$folder/full" > /dev/null
status=0
(ulimit -f 600; exec "$train" --resume "$folder/full" train.epochs=3) > "$folder/out" 2> "$folder/error" || status=$?
[[ $status == 6 ]] && grep -q "cannot write" "$folder/error" || fail "a full disk gave $status"
quiet 0 "$train" --resume "$folder/full" train.epochs=3
ls -A "$folder/full/checkpoints" | grep -q writing && fail "a half-written checkpoint was left"
if [[ $EUID == 0 ]] && mkdir "$folder/disk" && mount -t tmpfs -o size=6m tmpfs "$folder/disk" 2> /dev/null; then
  expect 6 "needs" "$train" "$good" "${small[@]}" train.epochs=50 train.checkpoint_every=4 train.keep_checkpoints=50 --output "$folder/disk/run"
  quiet 0 "$train" --resume "$folder/disk/run" train.keep_checkpoints=1 train.epochs=1
  umount "$folder/disk"
fi

# The reader has closed the pipe: a quiet end.
closed() {
  local status=0
  "$@" 2> "$folder/error" | true
  status="${PIPESTATUS[0]}"
  [[ "$status" == 141 || "$status" == 0 ]] && [[ ! -s "$folder/error" ]] || fail "$* | true gave $status"
}
"$train" "$good" "${small[@]}" train.log_every=1 train.epochs=20 --output "$folder/pipe" 2> "$folder/error" | head -n 1 > /dev/null
[[ "${PIPESTATUS[0]}" == 141 && ! -s "$folder/error" ]] || fail "paddle-train | head -1"
closed "$infer" "$folder/whole/model" --data train
closed "$bin/paddle-op" list
closed "$bin/paddle-show" models/lenet.yaml
closed "$bin/paddle" --help
closed "$train" "$good" --dump-config --origin
finish
