#!/usr/bin/env bash
# Tables of exported models: small ones are part of the graph; the rows of larger ones are inputs that
# a user looks up in the folder next to the file. Both predict what the run does, also where the run's
# own function takes rows of a table above 64 MiB, from its saved model and from its checkpoint.
set -uo pipefail
command -v python3 > /dev/null || { echo "python3 is missing"; exit 77; }
source "$(dirname "${BASH_SOURCE[0]}")/../expect.bash"
files="$PWD/tests/cli/export/table_files.py"
cd "$folder" || exit 1
python3 - <<'P'
import random
random.seed(5)
with open("data.csv", "w") as f:
    f.write("user,item,label\n")
    for i in range(2400):
        f.write(f"{(i % 600) * 2**40 - 2**45},{random.randrange(-40, 40)},{i % 2}\n")
P
cat > c.yaml <<'Y'
model:
  name: wide
  inputs: {user: "int64[batch]", item: "int64[batch, 1]"}
  model: |
    u = mean(sparse_embedding(user, 4, name="user", weight_init=normal(0, 1)), 1)
    i = sparse_embedding(item, 3, name="item", pool=sum, weight_init=normal(0, 1))
    logit = u + squeeze(linear(i, 1), [1])
  outputs: [logit]
loss: binary_cross_entropy_with_logits(logit, label)
optimizer: {name: adagrad, lr: 0.1}
data:
  batch_size: 200
  shuffle: false
  train: {kind: csv, path: data.csv, fields: [{name: user, dtype: int64, scalar: true}, {name: item, dtype: int64}, {name: label, scalar: true}]}
train: {epochs: 1, checkpoint_every: 1 epoch}
Y
python3 "$files" keys x.npz user=$((-2**45)),$((2**40 - 2**45)),17,$((599 * 2**40 - 2**45)) item=3,-7,0,1000/
# predicts MODEL NAME [INPUT]: its outputs as NAME.npy
predicts() {
  ok "$infer" "$1" --input "${3:-x.npz}" --output "$2.npz"
  python3 -c 'import sys, zipfile
z = zipfile.ZipFile(sys.argv[1] + ".npz")
open(sys.argv[1] + ".npy", "wb").write(z.read("logit.npy"))' "$2"
}
# agree A B: equal to 1e-6, and not all equal
agree() {
  python3 - "$1.npy" "$2.npy" <<'P' || fail "$1 and $2 differ"
import struct, sys
a, b = (struct.unpack("<4f", open(name, "rb").read()[-16:]) for name in sys.argv[1:])
assert all(abs(x - y) <= 1e-6 * max(1, abs(y)) for x, y in zip(a, b)), (a, b)
assert len(set(a)) == 4, a
P
}
exports() { ok "$bin/paddle-export" "$@"; }

ok "$train" c.yaml --output run
predicts run run
exports run -o inside.onnx --json
grep -q '"tables"' out && fail "a small table is not inside"
[[ ! -e inside.tables ]] || fail "a small table is not inside"
predicts inside.onnx inside
agree inside run
for model in run run/checkpoints/latest; do
  exports "$model" -o apart.onnx --inline-tables 4KB --overwrite
  grep -q "apart.tables: tables whose rows are inputs" out || fail "the folder is not named"
  [[ "$(ls apart.tables)" == $'tables.json\nuser.safetensors' ]] || fail "apart.tables has $(ls apart.tables)"
  python3 "$files" rows apart.tables x.npz with_rows.npz
  predicts apart.onnx apart with_rows.npz
  agree apart run
done
exports run -o all.onnx --inline-tables 0
[[ "$(ls all.tables)" == $'item.safetensors\ntables.json\nuser.safetensors' ]] || fail "all.tables has $(ls all.tables)"
python3 "$files" rows all.tables x.npz with_rows.npz
predicts all.onnx all with_rows.npz
agree all run
rm all.onnx
expect 2 "all.tables: already exists" "$bin/paddle-export" run -o all.onnx --inline-tables 0
expect 2 "expected a size such as 64 MiB" "$bin/paddle-export" run -o y.onnx --inline-tables many
expect 2 "needs tables inside the file" "$bin/paddle-export" run -o y.onnx --inline-tables 0 --with-preprocess

# A table above 64 MiB.
sed 's/user, 4,/user, 30000,/' c.yaml > wide.yaml
ok "$train" wide.yaml --output large
grep -q "rows:user:user" large/model/module.txt || fail "a large table is searched by the saved function"
for model in large large/checkpoints/latest; do
  predicts "$model" "$(tr / - <<< "$model")"
done
agree large large-checkpoints-latest
cmp -s large.npy large-checkpoints-latest.npy || fail "a checkpoint with a large table predicts something else"
ok "$bin/paddle-eval" large --data train
cp out eval.json
exports large -o large.onnx
python3 "$files" rows large.tables x.npz with_rows.npz
predicts large.onnx exported with_rows.npz
agree exported large
exports large/checkpoints/latest -o again.onnx --inline-tables 1GB
[[ ! -e again.tables ]] || fail "a table is not inside that should be"
predicts again.onnx again
agree again large
ok "$bin/paddle-eval" again.onnx --config large/config.yaml --data train
python3 - <<'P' || fail "evaluations differ: $(cat eval.json out)"
import json
a, b = (json.loads(open(name).read().splitlines()[-1])["loss"] for name in ("eval.json", "out"))
assert abs(a - b) < 1e-6, (a, b)
P
# Damaged ones.
latest="$(readlink -f large/checkpoints/latest)"
sed -i 's/"width":30000/"width":29999/' "$latest/tables/user/manifest.json"
expect 5 "lacks 'weight' as float32[" "$infer" "$latest" --input x.npz --output y.npz
rm "$latest"/tables/user/base-*/0256-0383.safetensors
sed -i 's/"width":29999/"width":30000/' "$latest/tables/user/manifest.json"
expect 5 "0256-0383.safetensors" "$infer" "$latest" --input x.npz --output y.npz
finish
