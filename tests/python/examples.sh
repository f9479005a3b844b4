#!/usr/bin/env bash
# The examples, and the Python blocks of the guide in order.
source tests/python/setup.bash
root="$PWD"
python examples/python/digits.py 1 > "$build/digits.out" || fail "examples/python/digits.py"
accuracy="$(sed -n 's/^accuracy //p' "$build/digits.out")"
awk -v a="$accuracy" 'BEGIN { exit !(a > 0.8) }' || fail "the net has an accuracy of '$accuracy'"
folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT
awk '/^```python$/ { on = 1; next } /^```$/ { on = 0 } on' docs/guide/python.md > "$folder/guide.py"
[[ -s "$folder/guide.py" ]] || fail "the guide has no blocks"
ln -s "$root/configs" "$root/models" "$root/datasets" "$root/plugins" "$folder"
# A small model under the name that the guide has.
mkdir "$folder/SmolLM2-135M-Instruct"
cp tests/llm/data/llama/{config.json,model.safetensors} "$folder/SmolLM2-135M-Instruct"
printf '{"model": {"type": "WordLevel", "vocab": {%s}, "unk_token": "w0"}, "pre_tokenizer": {"type": "WhitespaceSplit"}}' \
  "$(seq -s, 0 49 | sed -E 's/[0-9]+/"w&": &/g')" > "$folder/SmolLM2-135M-Instruct/tokenizer.json"
printf '{"chat_template": "{%% for m in messages %%}{{ m.content }} {%% endfor %%}"}' > "$folder/SmolLM2-135M-Instruct/tokenizer_config.json"
(cd "$folder" && python guide.py > guide.out) || fail "the blocks of docs/guide/python.md"
