#!/usr/bin/env bash
# A Hugging Face folder as GGUF files: the same greedy texts in 16 bits, smaller files of blocks, and
# what is rejected.
set -uo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../expect.bash"
quant="$bin/paddle-quant"
model="$folder/small"
cp -r tests/llm/data/llama "$model"
ok() { [[ "$(run_bounded "$@")" == 0 ]] || fail "$*:"; }
ok "$bin/paddle-convert" tests/llm/data/llama/model.safetensors "$model/model.safetensors" --dtype bf16 --overwrite
# A tokenizer of bytes with a few merges, and an end of answers next to the end of texts.
python3 - "$model" <<'P'
import json, sys
alphabet = [chr(c) for c in range(ord("a"), ord("z") + 1)] + list("0123456789.,;:") + ["\u0120"]
merges = ["t h", "th e", "i n", "\u0120 a", "a n", "an d"]
vocabulary = {t: i + 3 for i, t in enumerate(alphabet + [m.replace(" ", "") for m in merges])}
added = [{"id": i, "content": c, "special": True, "normalized": False} for i, c in enumerate(["<unk>", "<s>", "</s>"])]
json.dump({"added_tokens": added, "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "use_regex": True},
           "decoder": {"type": "ByteLevel"}, "model": {"type": "BPE", "vocab": vocabulary, "merges": merges}},
          open(sys.argv[1] + "/tokenizer.json", "w"))
json.dump({"bos_token": "<s>", "eos_token": "</s>"}, open(sys.argv[1] + "/tokenizer_config.json", "w"))
json.dump({"eos_token_id": [2, 49]}, open(sys.argv[1] + "/generation_config.json", "w"))
P
text() { "$infer" "$@" --prompt "the end and 1" --length 30 --temperature 0 2> "$folder/error" || fail "infer $*"; }
wanted="$(text "$model")"
for scheme in float16 bf16; do
  quiet 0 "$quant" "$model" --scheme $scheme -o "$folder/$scheme.gguf" --json
  [[ "$(text "$folder/$scheme.gguf")" == "$wanted" ]] || fail "$scheme: '$(text "$folder/$scheme.gguf")' and '$wanted'"
done
[[ ${#wanted} -gt 20 ]] || fail "a text of ${#wanted} characters"
# The ends of answers: the same text stops at the same token.
sed -i 's/49/4/' "$model/generation_config.json"
quiet 0 "$quant" "$model" --scheme bf16 -o "$folder/ends.gguf" --json
[[ "$(text "$folder/ends.gguf")" == "$(text "$model")" ]] || fail "the ends of answers"

# Its place without --output, sizes, and matrices that stay.
quiet 0 "$quant" "$model/" --scheme q4_0 --json --keep-float 'output.*'
python3 - "$folder" <<'P' || fail "the report: $(cat "$folder/out")"
import json, os, sys
report = json.loads(open(sys.argv[1] + "/out").read())
kinds = {t["name"]: (t["before"], t["after"]) for t in report["tensors"]}
assert report["output"] == sys.argv[1] + "/small-q4_0.gguf" and os.path.exists(report["output"]), report["output"]
assert kinds["blk.0.attn_q.weight"] == ("BF16", "Q4_0") and kinds["output.weight"] == ("BF16", "BF16"), kinds
assert kinds["blk.0.ffn_down.weight"] == ("BF16", "BF16"), kinds  # rows of 40
assert report["bytes"]["quantized"] < report["bytes"]["float"], report["bytes"]
P
quiet 0 "$quant" "$model" --scheme q4_0 --dry-run --json
text "$folder/small-q4_0.gguf" > /dev/null
quiet 0 "$bin/paddle-show" "$folder/small-q4_0.gguf"
grep -q "^context     64 tokens" "$folder/out" || fail "show: $(cat "$folder/out")"
# Experts: routers stay as they are.
status="$(run_bounded "$quant" tests/llm/data/qwen3_moe --scheme q8_0 -o "$folder/moe2.gguf" --json)"
[[ "$status" == 0 ]] && grep -q "has no tokenizer" "$folder/error" || fail "a folder without a tokenizer:"
grep -q '"blk.0.ffn_gate_inp.weight","before":"F32","after":"F32","why":"it chooses experts"' "$folder/out" || fail "a router: $(cat "$folder/out")"

expect 2 "already exists" "$quant" "$model" --scheme q4_0
expect 2 "ends in .gguf" "$quant" "$model" --scheme q4_0 -o "$folder/x.bin"
expect 3 "no tensor matches" "$quant" "$model" --scheme q4_0 -o "$folder/x.gguf" --keep-float "head*"
expect 2 "does not take" "$quant" "$model" --scheme int8_weights
expect 5 "models of type 'opt' are not written" "$quant" tests/llm/data/opt --scheme q4_0 -o "$folder/x.gguf"
expect 5 "query_scale=10" "$quant" tests/llm/data/gemma2 --scheme q4_0 -o "$folder/x.gguf"
echo '{"model": {"type": "BPE", "merges": [], "vocab": {"a": 0}}}' > "$model/tokenizer.json"
expect 5 "GGUF files cannot describe" "$quant" "$model" --scheme q4_0 -o "$folder/x.gguf"
echo '{' > "$model/tokenizer.json"
expect 5 "tokenizer.json" "$quant" "$model" --scheme q4_0 -o "$folder/x.gguf"
[[ ! -e "$folder/x.gguf" ]] || fail "a file remains"
finish
