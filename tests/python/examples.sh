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
ln -s "$root/configs" "$root/models" "$root/datasets" "$folder"
(cd "$folder" && python guide.py > guide.out) || fail "the blocks of docs/guide/python.md"
