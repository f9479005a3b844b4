#!/usr/bin/env bash
# A trained model keeps the functions of its model file over the same weights: each can be run and
# exported, states of sequences are kept with their scope, functions with weights of their own are
# left out, and a folder of version 1 is read as before.
set -uo pipefail
command -v python3 > /dev/null || { echo "python3 is missing"; exit 77; }
source "$(dirname "${BASH_SOURCE[0]}")/../expect.bash"
python3 - "$folder" <<'P'
import random, sys
random.seed(3)
with open(sys.argv[1] + "/rows.csv", "w") as f:
    f.write("a,b,c,label\n")
    for i in range(24):
        f.write(",".join(f"{random.gauss(0, 1):.4f}" for _ in range(3)) + f",{i % 2}\n")
P
cat > "$folder/run.yaml" <<'Y'
model:
  inputs: {x: "float32[batch, 3]"}
  blocks:
    body(x): |
      return tanh(linear(x, 5, name="first"))
  model: "logits = linear(body(x), 2, name='head')"
  outputs: [logits]
  functions:
    encode:
      inputs: {x: "float32[batch, 3]"}
      model: "hidden = body(x)"
      outputs: [hidden]
    total:
      inputs: {x: "float32[1, 3]"}
      model: |
        seen = state("seen", [1, 5], init=0.5, scope="sequence")
        h = body(x)
        update(seen, seen + h)
        sum_so_far = seen + h
      outputs: [sum_so_far]
    untrained:
      inputs: {x: "float32[batch, 3]"}
      model: "y = linear(body(x), 7, name='own')"
      outputs: [y]
loss: cross_entropy(logits, label)
optimizer: {name: sgd, lr: 0.1}
data:
  batch_size: 8
  train:
    kind: csv
    path: rows.csv
    fields: [{name: x, columns: [a, b, c]}, {name: label, scalar: true, dtype: int64}]
train: {epochs: 2, log_every: 100}
Y
quiet 0 "$train" "$folder/run.yaml" --output "$folder/run"
module="$folder/run/model/module.txt"
for name in predict encode total; do
  grep -q "func '$name'" "$module" || fail "module.txt has no function '$name'"
done
! grep -q "untrained\|'own" "$module" || fail "a function with weights of its own is in the model"
grep -q "state 'seen' : float32\[1, 5\] = '.*' sequence" "$module" || fail "the state has no scope: $(grep seen "$module" | head -2)"
grep -q "'hidden'" "$module" || fail "values have no names"
grep -q '"version": 2' "$folder/run/model/model.json" || fail "the folder is not of version 2"
printf 'a,b,c,label\n1,-1,0.5,0\n' > "$folder/one.csv"
# infer_function MODEL FUNCTION: the elements of its output for one.csv.
infer_function() {
  "$infer" "$1" --function "$2" "$folder/one.csv" --output "$folder/out.csv" > "$folder/out" 2> "$folder/error" || fail "--function $2:"
  python3 -c "
import csv
row = next(csv.DictReader(open('$folder/out.csv')))
print(*[round(float(v), 6) for name, v in row.items() if name.rsplit('_')[-1].isdigit()])"
}
hidden="$(infer_function "$folder/run" encode)"
[[ "$(wc -w <<< "$hidden")" == 5 ]] || fail "encode gives '$hidden'"
sums="$(infer_function "$folder/run" total)"
python3 -c "
a, b = ([float(v) for v in t.split()] for t in ('$hidden', '$sums'))
assert all(abs(x + 0.5 - y) < 1e-5 for x, y in zip(a, b, strict=True)), (a, b)" || fail "total does not begin with its state"
[[ "$(infer_function "$folder/run" model | wc -w)" == 2 ]] || fail "the prediction"
[[ "$(infer_function "$folder/run/checkpoints/latest" encode)" == "$hidden" ]] || fail "encode of the checkpoint"
expect 2 "has no function 'encod' (did you mean 'encode'?); it has model, encode, total" "$infer" "$folder/run" --function encod "$folder/one.csv"
"$bin/paddle-export" "$folder/run" -o "$folder/m.onnx" --function encode > "$folder/out" 2> "$folder/error" || fail "paddle-export --function:"
# Version 1: one function, and states without scopes.
cp -r "$folder/run/model" "$folder/old"
sed -i 's/"version": 2/"version": 1/' "$folder/old/model.json"
python3 - "$folder/old/module.txt" <<'P'
import re, sys
text = open(sys.argv[1]).read()
head, *functions = text.split("  func ")
keep = [f for f in functions if f.startswith("'predict'")][0]
keep = keep if keep.rstrip().endswith("}\n}") else keep.rstrip() + "\n}\n"
head = "".join(l + "\n" for l in head.split("\n")[:-1] if "state" not in l)
text = re.sub(r"(%\d+) '[^']*'(?= =|,)", r"\1", head + "  func " + keep)
open(sys.argv[1], "w").write(text)
P
[[ "$(infer_function "$folder/old" model)" == "$(infer_function "$folder/run" model)" ]] || fail "a folder of version 1"
sed -i 's/"version": 1/"version": 3/' "$folder/old/model.json"
expect 5 "needs a newer version of this program" "$infer" "$folder/old" "$folder/one.csv"
finish
