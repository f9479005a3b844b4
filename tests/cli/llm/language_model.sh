#!/usr/bin/env bash
# A Hugging Face folder in paddle-infer: perplexity (the value of tests/llm/make_perplexity.py), sampling
# options, stop texts, and a prompt that is rejected before it is printed.
set -uo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../expect.bash"
make_llama

same() { [[ "$1" == "$2" ]] || { : > "$folder/error"; fail "$3: '$1' and '$2'"; }; }
text() { "$infer" "$model" --prompt "123" --length 12 "$@" 2> "$folder/error" || fail "$*"; }

printf 'V@BVVUH:Z' > "$folder/text.txt"
measured="$("$infer" "$model" --perplexity "$folder/text.txt" --json)"
python3 -c 'import json, sys
line = json.loads(sys.argv[1])
sys.exit(line["tokens"] != 8 or abs(line["perplexity"] - 70.5845075) > 1e-3)' "$measured" || fail "perplexity: $measured"
printf 'V@BVVUH:Z=BPP3>VSE' > "$folder/text.txt"
measured="$("$infer" "$model" --perplexity "$folder/text.txt" --window 5)"
[[ "$measured" == "perplexity: 112.57"??" over 17 tokens" ]] || fail "a window: $measured"

greedy="$(text --temperature 0)"
same "$(text --min-p 1 --seed 6)" "$greedy" "min-p 1"
same "$(text --temperature 0 --repetition-penalty 1)" "$greedy" "penalty 1"
penalized="$(text --temperature 0 --repetition-penalty 1e6)"
same "$(fold -w 1 <<< "$penalized" | sort | uniq -d)" "" "a strong penalty"
same "$(text --temperature 0 --stop "${greedy:5:2}" --stop never)" "${greedy:0:3}$(rest="${greedy:3}"; echo "${rest%%"${greedy:5:2}"*}")" "a stop text"

# Penalties of what was generated, biases and log-probabilities, as of requests.
same "$(text --temperature 0 --presence-penalty 0 --frequency-penalty 0)" "$greedy" "no penalty"
request() {
  printf '{"custom_id": "r", "url": "/v1/completions", "body": {"prompt": "123", "max_tokens": 12, "temperature": 0, %s}}\n' "$1" > "$folder/request.jsonl"
  "$infer" "$model" --requests "$folder/request.jsonl" --output "$folder/answer.jsonl" > "$folder/log" || fail "--requests"
  python3 -c 'import json, sys
print(json.loads(open(sys.argv[1]).readline())["response"]["body"]["choices"][0]["text"])' "$folder/answer.jsonl"
}
for penalty in presence frequency; do
  penalized="$(text --temperature 0 --"$penalty"-penalty 1.5)"
  [[ "$penalized" != "$greedy" ]] || fail "--$penalty-penalty changes nothing"
  same "${penalized:3}" "$(request "\"${penalty}_penalty\": 1.5")" "--$penalty-penalty and a request"
done
same "$(text --temperature 0 --logit-bias 7=100)" "123777777777777" "--logit-bias"
same "$(text --temperature 0 --logit-bias 7=100 --logit-bias 8=-1 --stop 77)" "123" "--logit-bias and --stop"
text --temperature 0 --logprobs 2 > "$folder/scored"
same "$(head -n 1 "$folder/scored")" "$greedy" "the text of --logprobs"
request '"logprobs": 2' > /dev/null
python3 -c 'import json, sys
lines = [json.loads(line) for line in open(sys.argv[1]).readlines()[1:]]
wanted = json.loads(open(sys.argv[2]).readline())["response"]["body"]["choices"][0]["logprobs"]
ok = [l["token"] for l in lines] == wanted["tokens"] and [l["logprob"] for l in lines] == wanted["token_logprobs"]
ok = ok and [{t["token"]: t["logprob"] for t in l["top_logprobs"]} for l in lines] == wanted["top_logprobs"]
sys.exit(not ok or len(lines) != 12 or any(ord(l["token"]) - 48 != l["id"] for l in lines))' "$folder/scored" "$folder/answer.jsonl" || fail "log-probabilities: $(cat "$folder/scored")"

# A conversation through a pipe: each answer continues all of it, and an empty line is none.
echo '{"chat_template": "{% for m in messages %}{{ m.content }}{% endfor %}{% if add_generation_prompt %}={% endif %}"}' > "$model/tokenizer_config.json"
chat="$(printf '12\n\n34\n' | "$infer" "$model" --chat --system 9 --temperature 0 --length 5)" || fail "--chat"
first="$("$infer" "$model" --prompt "912=" --temperature 0 --length 5)"
second="$("$infer" "$model" --prompt "912${first:4}34=" --temperature 0 --length 5)"
same "$chat" "${first:4}"$'\n'"${second:11}" "--chat"
python3 tests/cli/llm/chat_interrupts.py "$infer" "$model" > "$folder/error" 2>&1 || fail "Ctrl-C in --chat"
rm "$model/tokenizer_config.json"
expect 5 "has no chat template; use --prompt" "$infer" "$model" --chat

# Caches: a short context, other number formats, and a benchmark.
same "$(text --temperature 0 --context 20)" "$greedy" "a short context"
same "$(text --temperature 0 --context 10)" "${greedy:0:10}" "the context ends the text"
for kv in bf16 int8; do [[ "$(text --temperature 0 --kv "$kv")" == 123* ]] || fail "--kv $kv"; done
quantized="$folder/q8_0.gguf"
cp tests/llm/data/llama_q8_0.gguf "$quantized"
line="$("$infer" "$quantized" --benchmark 2 --prefill 20 --decode 8 --streams 1,3)"
python3 -c 'import json, sys
line = json.loads(sys.argv[1])
ok = line["prefill_tokens_per_second"] > 0 and line["decode_tokens_per_second"] > 0 and [s["streams"] for s in line["streams"]] == [1, 3]
sys.exit(not ok or line["peak_mib"] <= 0 or not any(k.startswith("packed_linear") for k in line["kernels"]))' "$line" || fail "benchmark: $line"
# Activations in 8 and 16 bits give other logits than the dequantized weights.
for how in float32 int16 int8; do "$infer" "$quantized" --input tests/llm/data/llama/golden.npz --output "$folder/$how.npz" --activations "$how" > /dev/null || fail "--activations $how"; done
for how in int16 int8; do cmp -s "$folder/float32.npz" "$folder/$how.npz" && fail "--activations $how changes nothing"; done

# A low-rank adapter, and a description.
adapter=tests/llm/data/llama_adapter
adapted="$(text --temperature 0 --adapter "$adapter")"
[[ "$adapted" != "$greedy" ]] || fail "--adapter changes nothing"
same "$(text --temperature 0 --adapter "legal=$adapter")" "$adapted" "an adapter with a name"
expect 2 "nowhere: is not a folder with adapter_config.json" "$infer" "$model" --prompt 1 --adapter nowhere
for each in "$model" "$quantized"; do
  quiet 0 "$bin/paddle-show" "$each"
  grep -q "^context     64 tokens" "$folder/out" && grep -q "^cache       256 bytes a token" "$folder/out" || fail "show: $(cat "$folder/out")"
done
quiet 0 "$bin/paddle-show" tests/llm/data/bert
grep -q "^cache       none" "$folder/out" || fail "show: $(cat "$folder/out")"
expect 2 "--function is for model files" "$bin/paddle-show" "$model" --function step

expect 2 "not for --embed" "$infer" tests/llm/data/bert --adapter "$adapter" --embed -

# As an ONNX file, which checks itself.
golden=tests/llm/data/llama/golden.npz
for each in "$model" "$quantized"; do
  quiet 0 "$bin/paddle-export" "$each" -o "$folder/model.onnx" --overwrite
  "$infer" "$folder/model.onnx" --input "$golden" --output "$folder/onnx.npz" > /dev/null && "$infer" "$each" --input "$golden" --output "$folder/files.npz" > /dev/null || fail "logits of $each"
  python3 -c 'import sys, zipfile, struct
def values(path):
    with zipfile.ZipFile(path) as file:
        data = file.read("logits.npy")
    return struct.unpack("<%df" % (2 * 9 * 50), data[-2 * 9 * 50 * 4 :])
a, b = values(sys.argv[1]), values(sys.argv[2])
sys.exit(max(abs(x - y) for x, y in zip(a, b)) > 1e-4)' "$folder/onnx.npz" "$folder/files.npz" || fail "logits of the ONNX file of $each"
done
expect 2 "--family is for Hugging Face folders and GGUF files" "$bin/paddle-export" models/vision/lenet.yaml --family x.yaml -o "$folder/x.onnx"

# Constrained texts.
[[ "$(text --temperature 3 --seed 4 --regex '[5-7]{3}|9{5}')" =~ ^123([5-7]{3}|9{5})$ ]] || fail "--regex"
echo '{"type": "integer", "minimum": 250, "maximum": 4000}' > "$folder/schema.json"
for seed in 1 2 3; do
  number="$(text --temperature 3 --seed "$seed" --schema "$folder/schema.json")"
  ((${number:3} >= 250 && ${number:3} <= 4000)) || fail "--schema: $number"
done

# Embeddings of an encoder, which do not depend on the other lines.
encoder="$folder/encoder"
cp -r tests/llm/data/bert "$encoder"
cp "$model/tokenizer.json" "$encoder/"
printf '123\n45678\n' > "$folder/lines.txt"
"$infer" "$encoder" --embed "$folder/lines.txt" --output "$folder/both.jsonl" || fail "--embed"
[[ "$("$infer" "$encoder" --embed - <<< 45678 | cut -d '[' -f 2)" == "$(tail -n 1 "$folder/both.jsonl" | cut -d '[' -f 2)" ]] || fail "--embed of one text"
python3 -c 'import json, sys
vectors = [json.loads(line)["embedding"] for line in open(sys.argv[1])]
sys.exit(any(len(v) != 32 or abs(sum(x * x for x in v) - 1) > 1e-5 for v in vectors))' "$folder/both.jsonl" || fail "vectors"

# The same encoder as a GGUF file, and as a folder with vocab.txt (make_gguf.py).
rm "$encoder/tokenizer.json"
python3 -c 'letters = "abcdefghijklmnopqrstuvwxyz"
print("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *letters, *("##" + c for c in letters[:19])]))' > "$encoder/vocab.txt"
printf 'Abc de\nz\n' > "$folder/lines.txt"
for each in "$encoder" tests/llm/data/bert.gguf; do
  "$infer" "$each" --embed "$folder/lines.txt" > "$folder/$(basename "$each").vectors" 2> "$folder/error" || fail "--embed with $each"
done
[[ "$(wc -l < "$folder/encoder.vectors")" == 2 ]] || fail "vectors of two lines"
cmp -s "$folder/encoder.vectors" "$folder/bert.gguf.vectors" || fail "vectors of a GGUF file"

# Nothing is printed before an error.
rejected() {
  expect "$@"
  [[ ! -s "$folder/out" ]] || fail "printed before the error: $(cat "$folder/out")"
}
# shellcheck disable=SC2046
rejected 2 "the prompt has 65 tokens; the model's context is 64" "$infer" "$model" --prompt "$(printf '1%.0s' $(seq 65))"
rejected 2 "take no --input" "$infer" "$model" --prompt 1 --output "$folder/y.npz"
rejected 2 "--chat" "$infer" "$model" --prompt 1 --system "Be brief."
rejected 2 "min-p is 1.5, expected 0 to 1" "$infer" "$model" --prompt 1 --min-p 1.5
rejected 2 "repetition-penalty is 0, expected" "$infer" "$model" --prompt 1 --repetition-penalty 0
rejected 2 "repetition-penalty is nan, expected" "$infer" "$model" --prompt 1 --repetition-penalty nan
rejected 2 "--presence-penalty" "$infer" "$model" --prompt 1 --presence-penalty 2.5
rejected 2 "frequency_penalty is nan, expected -2 to 2" "$infer" "$model" --prompt 1 --frequency-penalty nan
rejected 2 "--logit-bias is '7', expected TOKEN=BIAS" "$infer" "$model" --prompt 1 --logit-bias 7
rejected 2 "--logit-bias: 50 is not a token; there are 50" "$infer" "$model" --prompt 1 --logit-bias 50=1
rejected 2 "--logit-bias: 101 is not a number from -100 to 100" "$infer" "$model" --prompt 1 --logit-bias 5=101
rejected 2 "--logit-bias: duplicate token 5" "$infer" "$model" --prompt 1 --logit-bias 5=1 --logit-bias 5=2
rejected 2 "--logprobs" "$infer" "$model" --prompt 1 --logprobs 21
rejected 2 "--prompt" "$infer" "$model" --chat --logprobs 1
rejected 2 "--logit-bias needs a Hugging Face folder or a GGUF file" "$infer" models/vision/lenet.yaml --prompt 1 --logit-bias 5=1
rejected 2 "--kv is for texts and logits, not for --embed" "$infer" "$encoder" --embed "$folder/lines.txt" --kv int8
rejected 2 "a stop text is empty" "$infer" "$model" --prompt 1 --stop ""
rejected 2 "the window is 65 tokens, expected 2 to the model's context (64)" "$infer" "$model" --perplexity "$folder/text.txt" --window 65
rejected 2 "--window" "$infer" "$model" --perplexity "$folder/text.txt" --window 1
rejected 2 "no input is given" "$infer" "$model" --json
rejected 2 "--context is 65; the model's context is 64" "$infer" "$model" --prompt 1 --context 65
rejected 2 "the prompt has 4 tokens; the model's context is 3" "$infer" "$model" --prompt 1234 --context 3
rejected 2 "')' is missing" "$infer" "$model" --prompt 1 --regex "("
rejected 2 "no text that the model's tokens can write" "$infer" "$model" --prompt 1 --schema object
rejected 2 "--regex needs --prompt or --chat" "$infer" "$model" --regex 1 --input tests/llm/data/llama/golden.npz
rejected 2 "is not an encoder" "$infer" "$model" --embed "$folder/lines.txt"
rejected 2 "expected a name that ends in" "$infer" "$encoder" --embed "$folder/lines.txt" --output "$folder/x.txt"
rejected 2 "--kv" "$infer" "$model" --prompt 1 --kv f16
rejected 2 "--prefill and --decode are 65 tokens; the model's context is 64" "$infer" "$model" --benchmark 1 --prefill 60 --decode 5
rejected 2 "need --benchmark" "$infer" "$model" --prompt 1 --prefill 5
rejected 2 "--kv needs a Hugging Face folder or a GGUF file" "$infer" models/vision/lenet.yaml --kv int8
rejected 2 "excludes" "$infer" "$model" --perplexity "$folder/text.txt" --prompt 1
rejected 2 "--perplexity needs a Hugging Face folder or a GGUF file" "$infer" models/vision/lenet.yaml --perplexity "$folder/text.txt"
rejected 4 "$folder/none.txt" "$infer" "$model" --perplexity "$folder/none.txt"
printf '1' > "$folder/text.txt"
rejected 4 "the text has fewer than 2 tokens" "$infer" "$model" --perplexity "$folder/text.txt"
# Broken settings of the user's files are errors of these, in one line, and not of the families.
broken="$folder/broken"
cp -r "$model" "$broken"
most_lines=1
while IFS='|' read -r from to words; do
  sed "s/$from/$to/" "$model/config.json" > "$broken/config.json"
  expect 5 "$words" "$infer" "$broken" --prompt 1 --length 1
  if grep -q "models/llm" "$folder/error"; then fail "$from: names a file of the product:"; fi
done <<'CASES'
"num_attention_heads": 4|"num_attention_heads": 0|broken/config.json: num_attention_heads is 0: expected at least 1
"num_attention_heads": 4,||broken/config.json: num_attention_heads is missing
"num_key_value_heads": 2|"num_key_value_heads": 3|num_attention_heads is 4, num_key_value_heads is 3: the heads of queries, 4, are not
"num_hidden_layers": 2|"num_hidden_layers": 2147483648|num_hidden_layers is 2147483648: more layers than the file has tensors
"num_hidden_layers": 2|"num_hidden_layers": 3|broken: has no weight 'layer.2.input_norm.weight'
"hidden_size": 32|"hidden_size": 3|broken: 'model.layers.0.input_layernorm.weight' is [32], the model needs [3]
"head_dim": 8|"head_dim": 7|broken/config.json: its keys make no model
"max_position_embeddings": 64|"max_position_embeddings": 0|broken/config.json: max_position_embeddings: a context of no tokens
"rms_norm_eps": 1e-05|"rms_norm_eps": 1180591620717411303424|rms_norm_eps is 1180591620717411303424: expected a number of 64 bits
CASES
most_lines=4
finish
