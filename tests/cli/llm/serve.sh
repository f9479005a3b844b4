#!/usr/bin/env bash
# paddle-serve: OpenAI's interface, rejected requests, batches, clients that disconnect, and shutdown (serve_client.py).
set -uo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../expect.bash"
serve="$PADDLE_BIN/paddle-serve"
make_llama
echo '{"chat_template": "{% for m in messages %}{{ m.content }}{% endfor %}{% if add_generation_prompt %}:{% endif %}"}' > "$model/tokenizer_config.json"
echo "a-secret-key" > "$folder/keys.txt"
cat > "$folder/serve.yaml" <<YAML
models:
  llama: {path: llama}
listen: {port: 0, keys: keys.txt}
limits: {streams: 3, queue: 32}
YAML

"$serve" --config "$folder/serve.yaml" > "$folder/log" 2> "$folder/error" &
server=$!
trap 'kill -KILL "$server" 2> /dev/null; rm -rf "$folder"' EXIT
for _ in $(seq 200); do grep -q "^listening on" "$folder/log" && break; sleep 0.05; done
port="$(sed -n 's|^listening on http://127.0.0.1:||p' "$folder/log")"
[[ -n "$port" ]] || fail "it does not listen: $(cat "$folder/log")"
answer="$(python3 tests/cli/llm/serve_client.py "$port" a-secret-key 2>&1)" || fail "$answer"
# The text is that of paddle-infer.
text="$("$infer" "$model" --prompt 123 --length 12 --temperature 0)"
[[ "$answer" == "ok ${text:3}" ]] || fail "'$answer' and '$text'"
expect 2 "cannot listen on 127.0.0.1:$port: Address already in use" "$serve" "$model" --port "$port"
kill -TERM "$server"
wait "$server" || fail "the end: status $?"
grep -q "^stopped" "$folder/log" || fail "$(cat "$folder/log")"

# Without keys: whom it answers, and HTTP (serve_origins.py).
cp -r "$model" "$folder/a\"b<i>"
"$serve" "$folder/a\"b<i>" --port 0 > "$folder/log" 2> "$folder/error" &
server=$!
for _ in $(seq 200); do grep -q "^listening on" "$folder/log" && break; sleep 0.05; done
port="$(sed -n 's|^listening on http://127.0.0.1:||p' "$folder/log")"
answer="$(python3 tests/cli/llm/serve_origins.py "$port" 2>&1)" || fail "$answer"
kill -TERM "$server"
wait "$server" || fail "the end without keys: status $?"

quiet 0 "$serve" "$model" --dry-run
expect 2 "no model is given" "$serve"
expect 2 "nowhere.yaml: no such file or folder" "$serve" nowhere.yaml
quiet 0 "$serve" "$model" --adapter legal=tests/llm/data/llama_adapter --dry-run
grep -q "^legal: 8 slots" "$folder/out" || fail "an adapter: $(cat "$folder/out")"
quiet 0 "$serve" "$model" --family models/llm/llama.yaml --dry-run
expect 2 "nowhere.yaml" "$serve" "$model" --family nowhere.yaml --dry-run
expect 2 "--adapter is 'tests', expected NAME=DIR" "$serve" "$model" --adapter tests
expect 2 "tests/none: is not a folder with adapter_config.json" "$serve" "$model" --adapter legal=tests/none
cp -r tests/llm/data/bert "$folder/encoder"
cp "$model/tokenizer.json" "$folder/encoder/"
quiet 0 "$serve" "$folder/encoder" --dry-run
grep -q "^encoder: embeddings, context" "$folder/out" || fail "an encoder: $(cat "$folder/out")"
for option in "--kv int8" "--context 8" "--chunk 8" "--cache plain" "--cache-tokens 40" "--weights-as int8" "--activations int8" "--draft none"; do
  # shellcheck disable=SC2086
  expect 2 "'encoder' is an encoder, on which '$(sed 's/^--//; s/ .*//; s/-/_/' <<< "$option")' has no effect" "$serve" "$folder/encoder" $option --dry-run
done
expect 2 "on which 'adapter' has no effect" "$serve" "$folder/encoder" --adapter legal=tests/llm/data/llama_adapter --dry-run
printf 'models: {a: {path: llama, draft: no}}\n' > "$folder/bad.yaml"
expect 3 "bad.yaml:1:34: 'models.a.draft': expected one of ngram, none, found 'no'" "$serve" --config "$folder/bad.yaml"
quiet 0 "$serve" "$model" --cache plain --dry-run
grep -q "KV cache [^(]*, chat template" "$folder/out" || fail "a plain cache: $(cat "$folder/out")"
quiet 0 "$serve" "$model" --cache-tokens 40 --streams 2 --dry-run
grep -q "llama: 2 slots, context 40, KV cache .* (paged)" "$folder/out" || fail "a paged cache: $(cat "$folder/out")"
expect 2 "--context is 60, more than the 40 tokens of the cache" "$serve" "$model" --cache-tokens 40 --context 60
expect 2 "cache_tokens of 'llama' is for a paged cache" "$serve" "$model" --cache plain --cache-tokens 40
expect 2 "streams is 0, expected 1 to 128" "$serve" "$model" --streams 0
expect 2 "two models are named 'llama'" "$serve" "$model" "$model"
printf 'models: {a: llama}\nlimits: {stream: 3}\n' > "$folder/bad.yaml"
expect 3 "bad.yaml:2:10: unknown key 'stream' in 'limits' (did you mean 'streams'?)" "$serve" --config "$folder/bad.yaml"
# Settings of paddle-tune: options overrule them, and they overrule the config.
printf 'subject: language_model\nthreads: 1\nchunk: 4\nstreams: 5\nkv: int8\n' > "$folder/tuned.yaml"
quiet 0 "$serve" "$model" --dry-run
plain="$(cat "$folder/out")"
quiet 0 "$serve" "$model" --streams 5 --kv int8 --dry-run
wanted="$(cat "$folder/out")"
[[ "$wanted" != "$plain" ]] || fail "streams and kv change no description"
quiet 0 "$serve" "$model" --tuned "$folder/tuned.yaml" --dry-run
[[ "$(cat "$folder/out")" == "$wanted" ]] || fail "--tuned: $(cat "$folder/out")"
quiet 0 "$serve" "$model" --tuned "$folder/tuned.yaml" --streams 8 --kv f32 --dry-run
[[ "$(cat "$folder/out")" == "$plain" ]] || fail "options with --tuned: $(cat "$folder/out")"
quiet 0 "$serve" --config "$folder/serve.yaml" --tuned "$folder/tuned.yaml" --dry-run
grep -q "^llama: 5 slots" "$folder/out" || fail "--tuned with --config: $(cat "$folder/out")"
printf 'subject: model\nbatch: 4\n' > "$folder/other.yaml"
expect 3 "other.yaml:1:10: these are settings of a model" "$serve" "$model" --tuned "$folder/other.yaml"
expect 2 "nowhere.yaml" "$serve" "$model" --tuned nowhere.yaml
expect 2 "'encoder' is an encoder" "$serve" "$folder/encoder" --tuned "$folder/tuned.yaml" --dry-run
printf 'models: {a: {path: llama, chunk: 300}}\n' > "$folder/bad.yaml"
expect 3 "bad.yaml:1:34: 'models.a.chunk'" "$serve" --config "$folder/bad.yaml"
echo "short" > "$folder/keys.txt"
expect 3 "a key has 5 characters" "$serve" --config "$folder/serve.yaml"
finish
