#!/usr/bin/env bash
# Training in float16 and bfloat16 at both levels: against float32, overflows that are provoked,
# resuming bit for bit, what the files hold, and errors of bad configs.
set -uo pipefail
command -v python3 > /dev/null || { echo "python3 is missing"; exit 77; }
source "$(dirname "${BASH_SOURCE[0]}")/../expect.bash"

cat > "$folder/net.yaml" << 'YAML'
model:
  inputs:
    x: float32[batch, 24]
    word: int64[batch, 3]
  model: |
    h = layer_norm(linear(x, 32))
    h = gelu(linear(h, 48)) + mean(embedding(word, 50, 48, sparse=true), axis=1)
    logits = linear(h, 7)
  outputs: [logits]
loss: cross_entropy(logits, label)
optimizer: {name: adam, lr: 3e-3}
data:
  batch_size: 16
  train: {kind: random, size: 512, fields: [{name: x, shape: [24]}, {name: word, dtype: int64, shape: [3], low: 0, high: 50}, {name: label, dtype: int64, low: 0, high: 7}]}
train: {steps: 40, log_every: 1, evaluate_every: never, checkpoint_every: never}
YAML

# train NAME [arguments]
train() {
  local name="$1"
  shift
  "$bin/paddle-train" "$folder/net.yaml" --output "$folder/$name" "$@" > "$folder/$name.log" 2>&1
}
query() { # NAME EXPRESSION over the lines of metrics.jsonl
  python3 - "$folder/$1/metrics.jsonl" "$2" << 'PY'
import json, sys
rows = [json.loads(line) for line in open(sys.argv[1])]
train = [r for r in rows if r["kind"] == "train"]
losses, end = [r["loss"] for r in train], rows[-1]
sys.exit(0 if eval(sys.argv[2]) else 1)
PY
}
close() { # A B TOLERANCE: losses of two runs
  python3 - "$folder/$1/metrics.jsonl" "$folder/$2/metrics.jsonl" "$3" << 'PY' || fail "$1 and $2 differ"
import json, sys
a, b = ([json.loads(x)["loss"] for x in open(f) if '"train"' in x] for f in sys.argv[1:3])
worst = max(abs(x - y) / abs(x) for x, y in zip(a, b))
if len(a) != len(b) or worst > float(sys.argv[3]): sys.exit(f"{len(a)} and {len(b)} losses, worst {worst}")
PY
}

# ---- levels, types and modes agree with float32 ----
train f32 || fail "float32"
for dtype in bf16 f16; do
  for level in O1 O2; do
    run="$dtype.$level"
    train "$run" "precision=$dtype" "amp.level=$level" || { fail "$run"; cat "$folder/$run.log"; continue; }
    train "$run.eager" "precision=$dtype" "amp.level=$level" --eager || { fail "$run eager"; cat "$folder/$run.eager.log"; continue; }
    close f32 "$run" 2e-2
    close "$run" "$run.eager" 2e-2
  done
done
query f16.O1 'train[0]["loss_scale"] == 65536 and train[-1]["skipped_updates"] == 0 and end["skipped_updates"] == 0' ||
  fail "the scale is not in metrics.jsonl"
query bf16.O1 '"loss_scale" not in train[0] and "skipped_updates" not in end' || fail "bfloat16 has a loss scale"

# ---- overflows ----
provoked=(precision=f16 amp.init_loss_scale=1e9 amp.growth_interval=12)
for level in O1 O2; do
  for more in "" clip.global_norm=1 train.accumulate=4 "optimizer.name=momentum"; do
    run="over.$level.${more%%=*}"
    train "$run" "${provoked[@]}" "amp.level=$level" ${more:+"$more"} || { fail "$run"; cat "$folder/$run.log"; continue; }
    query "$run" 'end["skipped_updates"] > 0 and train[0]["loss_scale"] == 5e8 and train[-1]["loss_scale"] < 1e8' ||
      fail "$run: the scale did not fall"
    grep -q 'step 1: gradients overflow in float16, the update is skipped; loss scale 1' "$folder/$run.log" || fail "$run: no line reports the overflow"
    query "$run" 'losses[-1] < losses[0]' || fail "$run: nothing was learned"
  done
done
# Skipped updates are as if they had not been: the same updates come later.
python3 - "$folder" << 'PY' || fail "a skipped update changed something"
import json, sys
rows = [json.loads(x) for x in open(sys.argv[1] + "/over.O1./metrics.jsonl")]
skipped = rows[-1]["skipped_updates"]
sys.exit(0 if 0 < skipped < 20 else 1)
PY
train fixed precision=f16 amp.loss_scale=128 && query fixed 'all(r["loss_scale"] == 128 for r in train)' || fail "a fixed scale"
train brain precision=bf16 amp.loss_scale=dynamic && query brain 'train[-1]["loss_scale"] == 65536' || fail "bfloat16 with a scale"
train overflowing precision=f16 amp.loss_scale=1e12
[[ $? == 4 ]] && grep -q 'gradients overflow in float16 in 20 updates in a row, even at the loss scale' "$folder/overflowing.log" ||
  { fail "a run that always overflows"; tail -3 "$folder/overflowing.log"; }

# ---- resuming ----
for level in O1 O2; do
  for mode in "" --eager; do
    for more in train.accumulate=1 train.accumulate=2; do
      run="$level$mode.${more##*=}"
      common=("${provoked[@]}" "amp.level=$level" "$more" train.checkpoint_every=10)
      train "whole.$run" "${common[@]}" train.steps=25 $mode || fail "whole.$run"
      train "cut.$run" "${common[@]}" train.steps=10 $mode || fail "cut.$run"
      "$bin/paddle-train" --resume "$folder/cut.$run" train.steps=25 $mode > "$folder/cut.log" 2>&1 || { fail "resume $run"; cat "$folder/cut.log"; }
      for file in model optimizer; do
        cmp "$folder/whole.$run/checkpoints/25/$file.safetensors" "$folder/cut.$run/checkpoints/25/$file.safetensors" ||
          fail "resume $run: $file differs"
      done
    done
  done
done

# ---- what is saved ----
header() { # the dtypes of a safetensors file
  python3 -c 'import json, struct, sys
f = open(sys.argv[1], "rb")
print(" ".join(sorted({v["dtype"] for k, v in json.loads(f.read(struct.unpack("<Q", f.read(8))[0])).items() if k != "__metadata__"})))' "$1"
}
[[ "$(header "$folder/f16.O2/model/model.safetensors")" == F32 ]] || fail "model/ does not hold float32"
[[ "$(header "$folder/whole.O2.1/checkpoints/25/model.safetensors")" == F32 ]] || fail "a checkpoint does not hold the masters"
grep -q 'bfloat16\[48, 7\]' <("$bin/paddle-ir" show "$folder/bf16.O2/checkpoints/40/module.txt") || fail "parameters are not kept in bfloat16"
grep -q 'layer_norm.*float32\[32\]' "$folder/bf16.O2/checkpoints/40/module.txt" || fail "the norm's parameters are not kept in float32"
train again precision=bf16 amp.level=O2 --init "$folder/bf16.O2/model/model.safetensors" train.steps=1 || { fail "--init"; cat "$folder/again.log"; }
query again 'losses[0] < 2' || fail "--init did not bring the weights"
python3 - "$folder/in.npz" << 'PY'
import sys, zipfile, struct
def npy(dtype, shape, data):
    head = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape}, }}"
    head += " " * (63 - (len(head) + 10) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + data
with zipfile.ZipFile(sys.argv[1], "w") as z:
    z.writestr("x.npy", npy("<f4", (2, 24), struct.pack("<48f", *[0.1 * i for i in range(48)])))
    z.writestr("word.npy", npy("<i8", (2, 3), struct.pack("<6q", 1, 2, 3, 4, 5, 6)))
PY
"$bin/paddle-infer" "$folder/f16.O2/model" --input "$folder/in.npz" --output "$folder/out.jsonl" > "$folder/log" 2>&1 || { fail "paddle-infer"; cat "$folder/log"; }

# ---- custom lists ----
train custom precision=f16 amp.level=O2 'amp.custom_full=[linear, matmul]' 'amp.custom_low=[layer_norm]' || { fail "custom lists"; cat "$folder/custom.log"; }
grep -q 'layer_norm.*float16\[32\]' "$folder/custom/checkpoints/40/module.txt" || fail "custom_low did not reach layer_norm"
grep -q 'float32\[48, 7\]' "$folder/custom/checkpoints/40/module.txt" || fail "custom_full did not reach linear"

# ---- layers and ranges in float32 ----
layers() { # NAME full_layers: the dtypes of the weights of the three layers, at level O2
  train "$1" precision=bf16 amp.level=O2 "amp.full_layers=$2" train.steps=4 train.checkpoint_every=4 ||
    { fail "full_layers=$2"; cat "$folder/$1.log"; }
  "$bin/paddle-ir" show "$folder/$1/checkpoints/4/module.txt" > "$folder/module"
  sed -nE "s/^ *parameter 'linear.*weight' : (.*) =.*/\\1/p" "$folder/module" | paste -sd' '
}
[[ "$(layers none '[]')" == "bfloat16[24, 32] bfloat16[32, 48] bfloat16[48, 7]" ]] || fail "without full_layers"
[[ "$(layers last '[linear_3]')" == "bfloat16[24, 32] bfloat16[32, 48] float32[48, 7]" ]] || fail "linear_3 in float32"
[[ "$(layers all '[linear*]')" == "float32[24, 32] float32[32, 48] float32[48, 7]" ]] || fail "all in float32"
sed 's/^    logits = linear(h, 7)/    with range("head"):\n      h = linear(h, 48)\n      logits = linear(h, 7)/' "$folder/net.yaml" > "$folder/range.yaml"
"$bin/paddle-train" "$folder/range.yaml" --output "$folder/range" precision=bf16 amp.level=O2 'amp.full_layers=[head]' \
  train.steps=2 train.checkpoint_every=2 > "$folder/log" 2>&1 || { fail "a range"; cat "$folder/log"; }
"$bin/paddle-ir" show "$folder/range/checkpoints/2/module.txt" > "$folder/module"
weights="$(sed -nE "s/^ *parameter 'linear.*weight' : (.*) =.*/\1/p" "$folder/module" | paste -sd' ')"
[[ "$weights" == "bfloat16[24, 32] bfloat16[32, 48] float32[48, 48] float32[48, 7]" ]] || fail "a range in float32: $weights"

# ---- bad configs ----
rejected() { # MESSAGE arguments: status 3 with that message
  local message="$1"
  shift
  "$bin/paddle-train" "$folder/net.yaml" --output "$folder/bad" "$@" > "$folder/log" 2>&1
  [[ $? == 3 ]] && grep -qF -- "$message" "$folder/log" || { fail "expected: $message"; cat "$folder/log"; }
}
rejected "amp.custom_full: unknown operation 'sofmax' (did you mean 'softmax'?)" precision=f16 'amp.custom_full=[sofmax]'
rejected "is in custom_low and in custom_full" precision=f16 'amp.custom_full=[exp]' 'amp.custom_low=[exp]'
rejected "amp.full_layers: no layer, block or range matches 'liner_2' (did you mean 'linear_2'?)" precision=f16 'amp.full_layers=[liner_2]'
rejected "'amp.level'" precision=f16 amp.level=O3
rejected "'amp.loss_scale': expected a number above 0 or one of dynamic" precision=f16 amp.loss_scale=-3
rejected "'amp.loss_scale'" precision=f16 amp.loss_scale=dynamc
rejected "'amp.backoff_factor'" precision=f16 amp.backoff_factor=2
rejected "unknown key 'scale' in 'amp'" precision=f16 amp.scale=2
train warned amp.level=O2 train.steps=1 && grep -q 'amp has no effect with precision: float32' "$folder/warned.log" || fail "amp without effect"

finish
