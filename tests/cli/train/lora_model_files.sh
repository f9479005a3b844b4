#!/usr/bin/env bash
# Low-rank adapters on a language model in files of other tools: the losses are PEFT's, the adapter is
# written in PEFT's files, and `paddle infer --adapter` and `paddle quant merge` read it back.
set -uo pipefail
command -v python3 > /dev/null || { echo "python3 is missing"; exit 77; }
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
source "$here/../expect.bash"
data="$here/../../llm/data"
config="$data/llama_lora/lora.yaml"
ok() { [[ "$(run_bounded "$@")" == 0 ]] || fail "$*: $(tail -1 error)"; }
cd "$folder" || exit 1

ok "$train" "$config" --output run
python3 - "$data/llama_lora/losses.json" run/metrics.jsonl <<'P' || fail "the losses are not PEFT's"
import json, sys
wanted = json.load(open(sys.argv[1]))
found = [line["loss"] for line in map(json.loads, open(sys.argv[2])) if line["kind"] == "train"]
assert len(found) == len(wanted) == 20, found
assert wanted[-1] < 0.9 * wanted[0], wanted
for a, b in zip(found, wanted):
    assert abs(a - b) < 1e-4 * b, (found, wanted)
P
grep -q "warning" error && fail "the run warns: $(grep -m1 warning error)"

# The saved model, the adapter in addition to its base, and the merged folder are one model.
logits() { ok "$bin/paddle-infer" "$@" --input "$data/llama/golden.npz" --output logits.npz; }
python3 - run/adapter <<'P' || fail "adapter_config.json"
import json, sys
config = json.load(open(sys.argv[1] + "/adapter_config.json"))
assert config["peft_type"] == "LORA" and config["r"] == 3 and config["lora_alpha"] == 7, config
assert config["target_modules"] == ["down_proj", "q_proj", "v_proj"], config
P
logits run/model && mv logits.npz whole.npz
logits "$data/llama" --adapter run/adapter && mv logits.npz adapted.npz
ok "$bin/paddle-quant" merge "$data/llama" --lora run/adapter -o merged
logits merged && mv logits.npz merged.npz
logits "$data/llama" && mv logits.npz base.npz
python3 - <<'P' || fail "the logits differ"
import struct, zipfile
def read(path):
    with zipfile.ZipFile(path) as z:
        data = z.read("logits.npy")
    size, = struct.unpack("<H", data[8:10])
    body = data[10 + size:]
    return struct.unpack(f"<{len(body) // 4}f", body)
whole, adapted, merged, base = (read(name + ".npz") for name in ("whole", "adapted", "merged", "base"))
distance = lambda a, b: max(abs(x - y) for x, y in zip(a, b, strict=True))
assert distance(whole, adapted) < 1e-5 and distance(whole, merged) < 1e-5, (distance(whole, adapted), distance(whole, merged))
assert distance(whole, base) > 1e-2, "nothing was learned"
P

# The run's own config has the family's file and continues without the folder's keys.
ok "$train" --resume run train.steps=22
# Weights from GGUF, which has no names for PEFT.
ok "$train" "$config" --output gguf model="$data/llama.gguf" train.steps=3
[[ -f gguf/adapter.safetensors && ! -d gguf/adapter ]] || fail "the adapter of a GGUF file"

# Matrices in the blocks of the file: the losses of their floats, also after resuming, in checkpoints
# that hold blocks and a model that holds floats. The rest of the run does not differ.
losses() { grep '"kind":"train"' "$1/metrics.jsonl" | grep -o '"loss":[0-9.eE+-]*' | cut -d: -f2; }
blocks=(model="$data/llama_q8_0.gguf" train.log_every=1)
ok "$train" "$config" --output floats "${blocks[@]}"
ok "$train" "$config" --output packed "${blocks[@]}" lora.weights_as=as-is
grep -q "become float32" error && fail "a warning says that blocks become floats"
paste <(losses floats) <(losses packed) |
  awk '{ d = $1 - $2; if (d < 0) d = -d; if (d > 1e-5 * $1) bad = 1 } END { exit bad || NR != 20 }' ||
  fail "losses with blocks: $(losses packed | tail -1), with floats $(losses floats | tail -1)"
ok "$train" "$config" --output whole "${blocks[@]}" lora.weights_as=as-is train.steps=10
ok "$train" --resume whole train.steps=20
cmp <(losses packed) <(losses whole) || fail "a resumed run with blocks differs"
size() { stat -c %s "$1/model.safetensors"; }
(($(size packed/checkpoints/latest) * 2 < $(size floats/checkpoints/latest))) || fail "checkpoints hold floats"
cmp -s <(head -c 8 packed/model/model.safetensors) <(head -c 8 floats/model/model.safetensors) ||
  fail "the model is not of floats"
# The saved model and the checkpoint are one model, up to the rounding of sums.
evaluated() { ok "$bin/paddle" eval "$1" --data "$config:train"; grep -o '"loss":[0-9.eE+-]*' out | cut -d: -f2; }
paste <(evaluated packed) <(evaluated packed/checkpoints/latest) |
  awk '{ d = $1 - $2; if (d < 0) d = -d; if (d > 1e-5 * $1) bad = 1 } END { exit bad || NR != 1 }' ||
  fail "paddle eval: $(evaluated packed) of the model, $(evaluated packed/checkpoints/latest) of the checkpoint"
for kind in int8 int4; do
  ok "$train" "$config" --output $kind lora.weights_as=$kind train.steps=5
done
grep -q '"dtype": *"U8"\|"dtype":"U8"' <(head -c 4000 int8/checkpoints/latest/model.safetensors) || fail "int8: no blocks"
ok "$train" "$config" --output eager "${blocks[@]}" lora.weights_as=as-is train.steps=3 --eager
paste <(losses packed | head -3) <(losses eager) |
  awk '{ d = $1 - $2; if (d < 0) d = -d; if (d > 1e-5 * $1) bad = 1 } END { exit bad || NR != 3 }' ||
  fail "an eager run with blocks differs"
expect 3 "found 'int2' (did you mean 'int8'?)" "$train" "$config" lora.weights_as=int2 --output bad
expect 3 "lora.weights_as: there are no initial weights to keep" "$train" "$here/../../../configs/quickstart/digits.yaml" lora.weights_as=int8 --output bad

# Other tools take the same config.
for words in "show $config" "profile $config --steps 1:2 --output profile" "tune $config --dry-run" \
  "sweep $config optimizer.lr=1e-3,1e-2 data.valid=\${data.train} --dry-run" "lr-range $config --steps 20 --output range" \
  "eval run/model/model.safetensors --config $config --data train lora=null"; do
  # shellcheck disable=SC2086
  ok "$bin/paddle" $words
done

# A saved model keeps caches for generation; training from its weights leaves them out.
ok "$train" run/model/config.yaml lora=null init.weights=run/model/model.safetensors init.map=null train.steps=1 --output further

# Parts that do not fit together.
expect 3 "'params': it follows from the model" "$train" "$config" params.width=8 --output bad
expect 3 "'init.weights': it follows from the model" "$train" "$config" init.weights=x.safetensors --output bad
mkdir other && cp "$data/llama/model.safetensors" other/ && echo '{"model_type": "mamba"}' > other/config.json
expect 5 "there is no model family for the type 'mamba'" "$train" "$config" model=other --output bad
ok "$train" "$config" --output also 'lora.also=["norm.*"]' train.steps=1
grep -q "adapter/ is not written: PEFT's files cannot hold the parameters of .also." error || fail "also: $(tail -1 error)"
ok "$train" "$config" --output words 'lora.only=["*.weight"]' train.steps=1
grep -q "adapter/ is not written: 'model.embed_tokens.weight' is an embedding" error || fail "embedding: $(tail -1 error)"
finish
