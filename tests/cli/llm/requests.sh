#!/usr/bin/env bash
# paddle-infer --requests: a file of requests in OpenAI's batch format, rejections among them, and what an
# earlier run had answered.
set -uo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../expect.bash"
make_llama
python3 -c 'import json
for i in range(20):
    body = {"model": "llama", "prompt": "1" * (i % 7 + 1), "max_tokens": 5 + i, "temperature": 0}
    if i == 3: body["max_token"] = 1
    print(json.dumps({"custom_id": "r%d" % i, "method": "POST", "url": "/v1/completions", "body": body}))' > "$folder/in.jsonl"

run() { "$infer" "$model" --requests "$folder/in.jsonl" --output "$folder/$1.jsonl" --streams 3 "${@:2}" > "$folder/log" 2> "$folder/error"; }
run a || fail "a run"
grep -q "^answered 19 of 20 requests; written to" "$folder/log" || fail "$(cat "$folder/log")"
grep -q "1 of 20 requests were rejected" "$folder/error" || fail "no warning"
text="$("$infer" "$model" --prompt 111 --length 14 --temperature 0)"
python3 -c 'import json, sys
answers = {a["custom_id"]: a for a in map(json.loads, open(sys.argv[1]))}
ok = len(answers) == 20 and answers["r3"]["response"]["status_code"] == 400 and "max_token" in answers["r3"]["response"]["body"]["error"]["message"]
body = answers["r9"]["response"]["body"]
sys.exit(not ok or answers["r9"]["response"]["status_code"] != 200 or body["choices"][0]["text"] != sys.argv[2][3:] or body["usage"]["completion_tokens"] != 14)' "$folder/a.jsonl" "$text" || fail "the answers"

# With a low-rank adapter.
run adapted --adapter tests/llm/data/llama_adapter || fail "--adapter"
text="$("$infer" "$model" --prompt 111 --length 14 --temperature 0 --adapter tests/llm/data/llama_adapter)"
python3 -c 'import json, sys
answers = {a["custom_id"]: a for a in map(json.loads, open(sys.argv[1]))}
sys.exit(answers["r9"]["response"]["body"]["choices"][0]["text"] != sys.argv[2][3:])' "$folder/adapted.jsonl" "$text" || fail "an answer with an adapter"

# Half of the answers, and a line that was cut off.
head -n 9 "$folder/a.jsonl" > "$folder/b.jsonl"
head -c 40 <(tail -n 1 "$folder/a.jsonl") >> "$folder/b.jsonl"
run b --resume || fail "--resume"
grep -q "of 20 requests; 9 were there" "$folder/log" || fail "$(cat "$folder/log")"
texts() { python3 -c 'import json, sys
for a in sorted(map(json.loads, open(sys.argv[1])), key=lambda a: a["custom_id"]):
    body = a["response"]["body"]
    print(a["custom_id"], a["response"]["status_code"], body.get("choices"), body.get("error"))' "$1"; }
[[ "$(texts "$folder/a.jsonl")" == "$(texts "$folder/b.jsonl")" ]] || fail "a resumed run differs"

# Chunks of prompts and settings of paddle-tune change no text; bad files are rejected before anything is answered.
run chunks --chunk 1 || fail "--chunk"
[[ "$(texts "$folder/a.jsonl")" == "$(texts "$folder/chunks.jsonl")" ]] || fail "chunks change texts"
printf 'subject: language_model\nthreads: 1\nchunk: 2\nstreams: 2\nkv: f32\n' > "$folder/tuned.yaml"
run tuned --tuned "$folder/tuned.yaml" || fail "--tuned"
[[ "$(texts "$folder/a.jsonl")" == "$(texts "$folder/tuned.jsonl")" ]] || fail "--tuned changes texts"
printf 'subject: language_model\nstream: 2\n' > "$folder/bad.yaml"
expect 3 "bad.yaml:2:1: unknown key 'stream' (did you mean 'streams'?)" "$infer" "$model" --requests "$folder/in.jsonl" --output "$folder/bad.jsonl" --tuned "$folder/bad.yaml"
[[ ! -e "$folder/bad.jsonl" ]] || fail "an output of settings that were rejected"

requests=("$infer" "$model" --requests "$folder/in.jsonl")
expect 2 "--requests needs --output" "${requests[@]}"
expect 2 "excludes" "${requests[@]}" --output "$folder/c.jsonl" --prompt 1
expect 2 "--resume" "$infer" "$model" --prompt 1 --resume
expect 2 "--requests needs a Hugging Face folder or a GGUF file" "$infer" models/vision/lenet.yaml --requests "$folder/in.jsonl" --output "$folder/c.jsonl"
echo '{"custom_id": "r1", "url": "/v1/completions", "body": {}}' >> "$folder/in.jsonl"
expect 4 "in.jsonl:21: duplicate custom_id 'r1'" "${requests[@]}" --output "$folder/c.jsonl"
echo '{"custom_id": "x", "url": "/v1/images", "body": {}}' > "$folder/in.jsonl"
expect 4 "in.jsonl:1: expected 'url' to be" "${requests[@]}" --output "$folder/c.jsonl"
echo 'nothing' > "$folder/in.jsonl"
expect 4 "in.jsonl:1: expected a JSON object" "${requests[@]}" --output "$folder/c.jsonl"
echo '{"custom_id": "y", "url": "/v1/completions", "body": {}}' > "$folder/in.jsonl"
expect 4 "has an answer to 'r" "${requests[@]}" --output "$folder/a.jsonl" --resume

# Embeddings: by an encoder, whose vectors are those of --embed; it cannot generate text, and a model of text gives none.
encoder="$folder/encoder"
cp -r tests/llm/data/bert "$encoder"
cp "$model/tokenizer.json" "$encoder/"
python3 -c 'import json
for name, url, body in (("e", "/v1/embeddings", {"input": ["123", "45678"]}), ("t", "/v1/completions", {"prompt": "1"}), ("b", "/v1/embeddings", {"input": "1", "size": 2})):
    print(json.dumps({"custom_id": name, "url": url, "body": body}))' > "$folder/in.jsonl"
"$infer" "$encoder" --requests "$folder/in.jsonl" --output "$folder/vectors.jsonl" > "$folder/log" 2> "$folder/error" || fail "embeddings"
grep -q "^answered 1 of 3 requests" "$folder/log" || fail "$(cat "$folder/log")"
printf '123\n45678\n' | "$infer" "$encoder" --embed - > "$folder/lines.jsonl"
python3 -c 'import json, sys
answers = {a["custom_id"]: a["response"] for a in map(json.loads, open(sys.argv[1]))}
wanted = [json.loads(line)["embedding"] for line in open(sys.argv[2])]
got = [d["embedding"] for d in answers["e"]["body"]["data"]]
ok = got == wanted and answers["t"]["status_code"] == 404 and "cannot generate text" in answers["t"]["body"]["error"]["message"]
sys.exit(not ok or answers["b"]["status_code"] != 400 or "size" not in answers["b"]["body"]["error"]["message"])' "$folder/vectors.jsonl" "$folder/lines.jsonl" || fail "the vectors: $(cat "$folder/vectors.jsonl")"
head -n 1 "$folder/in.jsonl" > "$folder/one.jsonl"
"$infer" "$model" --requests "$folder/one.jsonl" --output "$folder/none.jsonl" > "$folder/log" 2> "$folder/error" || fail "embeddings of a model of text"
grep -q '"status_code":404' "$folder/none.jsonl" || fail "$(cat "$folder/none.jsonl")"
expect 2 "is an encoder, on which 'kv' has no effect" "$infer" "$encoder" --requests "$folder/one.jsonl" --output "$folder/c.jsonl" --kv int8
[[ ! -e "$folder/c.jsonl" ]] || fail "an output of requests that were rejected"
finish
