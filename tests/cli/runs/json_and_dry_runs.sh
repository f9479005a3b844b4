#!/usr/bin/env bash
# --json prints one JSON object on the last line; --dry-run checks everything and writes nothing; a MODEL
# argument means the same in infer, eval and show: a run, a model folder, a checkpoint, a model file, weights.
set -uo pipefail
command -v python3 > /dev/null || { echo "python3 is missing"; exit 77; }
source "$(dirname "${BASH_SOURCE[0]}")/../expect.bash"
make_llama
cd "$folder" || exit 1

# json EXPRESSION COMMAND…: the command ends with 0 and EXPRESSION holds of `o`, the object on its last line
json() {
  local expression="$1"
  shift
  [[ "$(run_bounded "$@")" == 0 ]] || { fail "$*"; return; }
  python3 -c 'import json, sys
o = json.loads(open(sys.argv[1]).read().rstrip("\n").split("\n")[-1])
sys.exit(not eval(sys.argv[2]))' "$folder/out" "$expression" ||
    fail "$*: '$expression' does not hold of $(tail -n 1 "$folder/out")"
}
absent() { [[ ! -e "$1" ]] || fail "$1 was written by a dry run"; }

python3 - <<'P'
import random
random.seed(1)
with open("people.csv", "w") as f:
    f.write("age,height,kind\n")
    for i in range(200):
        age = random.uniform(0, 90)
        f.write(f"{age:.1f},{random.gauss(170, 9):.1f},{'old' if age > 45 else 'young'}\n")
with open("text.txt", "w") as f:
    f.write("the quick brown fox jumps over the lazy dog.\n" * 50)
P

# paddle new
json 'o["written"] is False and o["config"] == "people.yaml"' \
  "$bin/paddle-new" tabular-classification --data people.csv -o people.yaml --small --dry-run --json
absent people.yaml
json 'o["written"] is True and o["config"] == "people.yaml" and len(o["found"]) > 0' \
  "$bin/paddle-new" tabular-classification --data people.csv -o people.yaml --small --json
json 'any(each["name"] == "tabular-classification" for each in o["recipes"])' "$bin/paddle-new" --list --json

# paddle train
json 'o["fits"] and o["parameters"] > 0 and o["memory_bytes"] > 0' "$train" people.yaml train.epochs=1 --dry-run --json
absent runs
json 'o["run"] == "runs/people" and o["model"] == "runs/people/model" and o["steps"] > 0 and 0 <= o["valid"]["accuracy"] <= 1' \
  "$train" people.yaml train.epochs=1 --json
expect 2 "--json describes a run" "$train" people.yaml --check-data --json

# paddle eval, infer and show on every form of the model
for model in runs/people runs/people/model runs/people/checkpoints/latest; do
  json 'o["samples"] > 0 and o["loss"] > 0' "$bin/paddle-eval" "$model"
  json 'o["fits"] and o["memory_bytes"] > 0' "$bin/paddle-eval" "$model" --dry-run
  json 'o["samples"] == 200 and o["skipped"] == 0 and o["accuracy"] > 0.3' "$infer" "$model" people.csv --quiet --json
  json 'o["parameters"] > 0 and len(o["layers"]) > 0' "$bin/paddle-show" "$model" --json
done
json 'o["samples"] > 0 and o["loss"] > 0' \
  "$bin/paddle-eval" runs/people/model/model.safetensors --config runs/people/model/config.yaml
json 'o["output"] == "out.csv"' "$infer" runs/people people.csv -o out.csv --json
rm out.csv
json 'o["parameters"] > 0 and o["inputs"]' "$infer" runs/people people.csv -o out.csv --dry-run --json
absent out.csv
printf 'age,height\nyoung,170\n' > bad.csv
expect 4 "bad.csv:2" "$infer" runs/people bad.csv --dry-run
expect 2 "--dry-run" "$infer" "$model" --benchmark 3 --dry-run

# a model file in the place of the config's model
cat > net.yaml <<'Y'
params:
  wide: 4
inputs:
  x: float32[batch, 2]
model: |
  return linear(x, wide)
Y
json 'o["parameters"] == 12 and o["inputs"]["x"]' "$bin/paddle-show" net.yaml --json

# language models
llama="$folder/llama"
json 'o["prompt"] == "012" and o["text"] and o["tokens"] == 4' "$infer" "$llama" --prompt 012 --length 4 --temperature 0 --json
json 'o["prompt_tokens"] == 3 and o["context"] == 64' "$infer" "$llama" --prompt 012 --dry-run --json
json 'o["type"] == "llama" and o["context"] == 64 and o["parameters"] > 0' "$bin/paddle-show" "$llama" --json
expect 2 "a conversation has no result" "$infer" "$llama" --chat --json
json 'o["models"][0]["context"] == 64 and o["models"][0]["cache"] == "paged"' "$bin/paddle-serve" "$llama" --dry-run --json
"$bin/paddle-serve" "$llama" --port 0 --json > served.txt 2> /dev/null &
server=$!
for _ in $(seq 100); do grep -q '"url"' served.txt && break; sleep 0.1; done
python3 -c 'import json, urllib.request
o = json.loads(open("served.txt").read().rstrip("\n").split("\n")[-1])
names = json.load(urllib.request.urlopen(o["url"] + "/v1/models"))
assert [m["id"] for m in names["data"]] == [m["name"] for m in o["models"]], names' || fail "paddle-serve --json"
kill "$server" && wait "$server" 2> /dev/null

# conversion, averages, tokens, templates, launches
json 'o["written"] is False and o["tensors"] > 0' "$bin/paddle-convert" runs/people/model/model.safetensors w.npz --dry-run --json
absent w.npz
json 'o["written"] and o["output"] == "w.npz" and o["bytes"] > 0' "$bin/paddle-convert" runs/people/model/model.safetensors w.npz --json
json 'o["written"] is False and len(o["steps"]) == 1' "$bin/paddle-average" runs/people --last 1 --dry-run
absent runs/people/average
json 'o["written"] is False and o["tokens"] > 256' "$bin/paddle-tokenize" --train text.txt --vocabulary-size 270 -o tok.json --dry-run --json
absent tok.json
ok "$bin/paddle-tokenize" --train text.txt --vocabulary-size 270 -o tok.json
json 'o["written"] is False and o["documents"] == 1 and o["vocabulary_size"] == 270' \
  "$bin/paddle-tokenize" tok.json --input text.txt -o tokens.bin --dry-run --json
absent tokens.bin
expect 2 "--dry-run is for --train and --input" "$bin/paddle-tokenize" tok.json --dry-run
echo "{% for m in messages %}{{ m.content }}{% endfor %}" > t.jinja
echo '{"messages": [{"role": "user", "content": "é\n2"}]}' > m.json
json 'o["prompt"].startswith("é\n2")' "$bin/paddle-chat-template" t.jinja m.json --json
json 'o["hosts"] == [{"host": "a", "ranks": 2}, {"host": "b", "ranks": 1}] and o["command"][1] == "x y"' \
  "$bin/paddle-launch" --hosts a:2,b:1 --dry-run --json paddle-train "x y"
json 'o["status"] == 0' "$bin/paddle-launch" -n 2 --json true
finish
