#!/usr/bin/env bash
# The page of paddle-serve in a browser: a chat of two turns, rejections, stopped answers (chat_page.py).
set -uo pipefail
browser=""
for name in chromium chromium-browser google-chrome; do
  [[ -n "$browser" ]] || browser="$(command -v "$name")"
done
[[ -n "$browser" ]] || { echo "chromium is missing"; exit 77; }
command -v python3 > /dev/null || { echo "python3 is missing"; exit 77; }
source "$(dirname "${BASH_SOURCE[0]}")/../expect.bash"
serve="$PADDLE_BIN/paddle-serve"
make_llama
# Of the messages before, the prompt has the number: an answer takes what is left of the context.
echo '{"chat_template": "{{ messages | length }}{{ messages[-1].content }}:"}' > "$model/tokenizer_config.json"
echo "a-secret-key" > "$folder/keys.txt"
printf 'models:\n  llama: {path: llama}\nlisten: {port: 0, keys: keys.txt}\n' > "$folder/serve.yaml"
"$serve" --config "$folder/serve.yaml" > "$folder/log" 2> "$folder/error" &
server=$!
trap 'kill -KILL "$server" 2> /dev/null; rm -rf "$folder"' EXIT
for _ in $(seq 200); do grep -q "^listening on" "$folder/log" && break; sleep 0.05; done
port="$(sed -n 's|^listening on http://127.0.0.1:||p' "$folder/log")"
[[ -n "$port" ]] || fail "it does not listen: $(cat "$folder/log")"
answer="$(timeout 100 python3 "$(dirname "${BASH_SOURCE[0]}")/chat_page.py" "$browser" "$port" a-secret-key 2>&1)" || fail "$answer"
kill -TERM "$server"
wait "$server" || fail "the end: status $?"
finish
