#!/usr/bin/env bash
# Twenty training steps of six lines on stand-ins for the driver and NVRTC, in float32 and bfloat16:
# losses are those of the CPU, and the weights of runs in different orders of streams are the same
# bits. Fifty layers with batch normalization of few values amplify rounding, so that runs of
# ResNet-50 on the CPU and the GPU diverge in the same way from one in float64: float64 is compared
# with the CPU there, and float32 and bfloat16 may be no further from float64 than the CPU is.
set -uo pipefail
command -v python3 > /dev/null || { echo "python3 is missing"; exit 77; }
source "$(dirname "${BASH_SOURCE[0]}")/../cli/expect.bash"
fake="$bin/../fake_cuda"
[[ -e "$fake/libcuda.so.1" && -e "$fake/libnvrtc.so.13" ]] || { echo "the stand-ins are not built"; exit 77; }
export PADDLE_CUDA_LIBRARIES="$fake"

precisions=(float32 bfloat16)
# steps NAME ARGUMENTS…
steps() {
  local name="$1" precision
  shift
  for precision in "${precisions[@]}"; do
    local run=("$train" "$@" "precision=$precision" train.steps=20 train.log_every=1 train.evaluate_every=never)
    "${run[@]}" --output "$folder/$name-cpu" > "$folder/out" 2> "$folder/error" || fail "$name in $precision on the CPU:"
    for seed in 3 17; do
      PADDLE_FAKE_CUDA_SEED="$seed" "${run[@]}" --device cuda --no-host-fallback --output "$folder/$name-$seed" \
        > "$folder/out" 2> "$folder/error" || fail "$name in $precision on cuda:"
    done
    cmp -s "$folder/$name-3/model/model.safetensors" "$folder/$name-17/model/model.safetensors" ||
      fail "$name in $precision: another order of streams gives other weights:"
    python3 - "$folder" "$name" "$precision" <<'P' || fail "$name in $precision: other losses:"
import json, sys
folder, name, precision = sys.argv[1:]
def losses(run):
    records = map(json.loads, open(f"{folder}/{name}-{run}/metrics.jsonl"))
    return [r["loss"] for r in records if r["kind"] == "train"]
def difference(a, b):
    return max(abs(x - y) / max(abs(x), 1e-3) for x, y in zip(a, b, strict=True))
cpu, cuda = losses("cpu"), losses("3")
assert len(cpu) == 20 and cpu[0] != cpu[-1], cpu
most = 1e-4 if precision == "float32" else 2e-2
worst = difference(cpu, cuda)
print(f"{name} in {precision}: worst relative difference {worst:.1e} of at most {most:.1e}")
assert worst < most, worst
P
    rm -rf "$folder/$name-"*
  done
}
# diverge NAME ARGUMENTS…: mean differences from float64 over three seeds.
diverge() {
  local name="$1" precision device seed
  shift
  for seed in 1 2 3; do
    for precision in float64 float32 bfloat16; do
      for device in cpu cuda; do
        [[ "$precision$device$seed" != float64cuda[23] ]] || continue
        "$train" "$@" "seed=$seed" "precision=$precision" train.steps=20 train.log_every=1 train.evaluate_every=never \
          --device "$device" --output "$folder/$name-$precision-$device-$seed" > "$folder/out" 2> "$folder/error" ||
          fail "$name in $precision on $device:"
      done
    done
  done
  PADDLE_FAKE_CUDA_SEED=17 "$train" "$@" seed=1 precision=float32 train.steps=20 train.log_every=1 train.evaluate_every=never \
    --device cuda --output "$folder/$name-again" > "$folder/out" 2> "$folder/error" || fail "$name again:"
  cmp -s "$folder/$name-float32-cuda-1/model/model.safetensors" "$folder/$name-again/model/model.safetensors" ||
    fail "$name: another order of streams gives other weights:"
  python3 - "$folder" "$name" <<'P' || fail "$name: the GPU is less exact than the CPU:"
import json, sys
folder, name = sys.argv[1:]
def losses(*run):
    records = map(json.loads, open("-".join((f"{folder}/{name}", *map(str, run))) + "/metrics.jsonl"))
    return [r["loss"] for r in records if r["kind"] == "train"]
def differences(a, b):
    return [abs(x - y) / abs(x) for x, y in zip(a, b, strict=True)]
exact = [losses("float64", "cpu", seed) for seed in (1, 2, 3)]
assert len(exact[0]) == 20 and exact[0][0] != exact[0][-1], exact
worst = max(differences(exact[0], losses("float64", "cuda", 1)))
print(f"{name} in float64: worst relative difference {worst:.1e}")
assert worst < 1e-10, worst
for precision, most in (("float32", 1e-2), ("bfloat16", 0.5)):
    def mean(device):
        all = [d for seed in (1, 2, 3) for d in differences(exact[seed - 1], losses(precision, device, seed))]
        return sum(all) / len(all)
    cpu, cuda = mean("cpu"), mean("cuda")
    print(f"{name} in {precision}: mean difference from float64 {cuda:.1e}, on the CPU {cpu:.1e}")
    assert cuda < 2 * cpu < most, (cuda, cpu)
    first = max(differences([e[0] for e in exact], [losses(precision, "cuda", seed)[0] for seed in (1, 2, 3)]))
    assert precision != "float32" or first < 1e-4, first
P
  rm -rf "$folder/$name-"*
}
random() { printf '{kind: random, size: %s, fields: [%s]}' "$1" "$2"; }
tokens() { printf '{name: %s, dtype: int64, shape: [%s], low: 0, high: %s}' "$1" "$2" "$3"; }
label='{name: label, dtype: int64, low: 0, high: 2}'
text=('data.train={kind: random, size: 32, fields: [{name: tokens, dtype: int64, shape: [16], low: 0, high: 65}, {name: targets, dtype: int64, shape: [16], low: 0, high: 65}]}'
  'data.valid={kind: random, size: 8, fields: [{name: tokens, dtype: int64, shape: [16], low: 0, high: 65}, {name: targets, dtype: int64, shape: [16], low: 0, high: 65}]}')
steps char_gpt configs/text/char_gpt.yaml "params={layers: 2, heads: 2, width: 32, positions: 16}" "${text[@]}" data.batch_size=4
steps lenet configs/bench/lenet.yaml data.batch_size=4
pictures="data.train=$(random 16 '{name: image, shape: [3, 32, 32]}, {name: label, dtype: int64, low: 0, high: 10}')"
resnet=(configs/bench/resnet50.yaml params.width=8 params.classes=10 optimizer.lr=1e-3 data.batch_size=8 "$pictures")
precisions=(float32)
steps resnet "${resnet[@]}" "params.depth=[1,1,1,1]"
diverge resnet50 "${resnet[@]}" clip.global_norm=0.01
precisions=(bfloat16)
steps resnet "${resnet[@]}" "params.depth=[1,1,1,1]" optimizer.lr=1e-4 clip.global_norm=0.05
precisions=(float32 bfloat16)
steps bert configs/bench/bert_base.yaml "params={layers: 2, heads: 2, width: 16, vocab_size: 50, positions: 16, classes: 2}" \
  data.batch_size=4 "data.train=$(random 16 "$(tokens tokens 12 50), $label")"
steps deepfm configs/bench/deepfm.yaml params.rows=300 data.batch_size=8 \
  "data.train=$(random 64 "$(tokens sparse 26 300), {name: dense, shape: [13]}, {name: label, low: 0, high: 1}")"
steps lstm configs/bench/lstm_lm.yaml params.vocab_size=60 params.width=12 data.batch_size=3 \
  "data.train=$(random 12 "$(tokens tokens 9 60), $(tokens targets 9 60)")"
finish
