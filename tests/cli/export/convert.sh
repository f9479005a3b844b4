#!/usr/bin/env bash
# paddle-convert between files that other programs wrote, against what Python's own reading of
# both files says; and everything that it must reject.
set -uo pipefail
command -v python3 > /dev/null || { echo "python3 is missing"; exit 77; }
source "$(dirname "${BASH_SOURCE[0]}")/../expect.bash"
convert="$bin/paddle-convert"
make() { python3 tests/cli/export/convert_files.py "$folder" "$@" || failures=$((failures + 1)); }
says() { grep -qF -- "$1" "$folder/out" || fail "the output does not say '$1':"; }

make write
cd "$folder" || exit 1
check() { python3 "$OLDPWD/tests/cli/export/convert_files.py" "$folder" "$@" || failures=$((failures + 1)); }

# There and back, and both ways through shards.
quiet 0 "$bin/paddle" convert --help
quiet 0 "$convert" plain.safetensors a.npz --exclude 'half.*'
check same plain.safetensors a.npz
quiet 0 "$convert" a.npz back.safetensors
check same plain.safetensors back.safetensors
quiet 0 "$convert" plain.safetensors parts.safetensors --shard-size 100B
says "shards"
check shards parts.safetensors.index.json plain.safetensors 100
quiet 0 "$convert" parts.safetensors.index.json whole.safetensors
cmp plain.safetensors whole.safetensors || fail "shards and back is another file:"
quiet 0 "$convert" packed.npz unpacked.safetensors
check same packed.npz unpacked.safetensors
quiet 0 "$convert" model.onnx onnx.npz
check same onnx_expected.npz onnx.npz

# Types, and what they lose.
expect 2 "NPZ has no type for bfloat16" "$convert" half.safetensors half.npz
expect 0 "NPZ has no place for the metadata (1 entry)" "$convert" half.safetensors half.npz --allow-loss
check same half_as_float.npz half.npz
quiet 0 "$convert" plain.safetensors f16.safetensors --dtype float16 --dtype 'block.0.*=float64'
check types f16.safetensors plain.safetensors
says "float32 → float64"
expect 0 "2 values are out of the range of float16 (first in 'big')" \
  "$convert" big.npz big16.safetensors --dtype float16
says "float32 → float16: 1 tensor, 1 of 4 values rounded"
expect 2 "there is no element type 'float17'" "$convert" plain.safetensors x.npz --dtype float17

# GGUF: what is written is read again.
quiet 0 "$convert" large.npz large.gguf --dtype 'large=q8_0'
says "1 tensor quantized to q8_0"
expect 0 "the metadata of the GGUF file is left out" "$convert" large.gguf large_back.npz
expect 2 "only GGUF files have q8_0" "$convert" large.npz x.npz --dtype q8_0
expect 2 "do not fill whole blocks" "$convert" big.npz x.gguf --dtype 'big=q4_0'
expect 2 "GGUF has no type for int64" "$convert" plain.safetensors x.gguf
[[ ! -e x.gguf ]] || fail "a rejected conversion writes:"

# Rules.
quiet 0 "$convert" plain.safetensors mapped.safetensors --map rules.yaml
check mapped mapped.safetensors plain.safetensors
expect 0 "matches no tensor" "$convert" plain.safetensors m2.npz --map idle.yaml
expect 3 "would both be called 'x'" "$convert" plain.safetensors y.npz --map same.yaml
expect 3 "wrong.yaml:2:3: unknown key 'renam' (did you mean 'rename'?)" "$convert" plain.safetensors y.npz --map wrong.yaml
expect 3 "names a group" "$convert" plain.safetensors y.npz --map group.yaml
expect 3 "not a regular expression" "$convert" plain.safetensors y.npz --map expression.yaml
expect 3 "no tensor is called 'block.0.wieght' here (did you mean 'block.0.weight'?)" \
  "$convert" plain.safetensors y.npz --map exact.yaml
[[ ! -e y.npz ]] || fail "a rejected conversion writes:"

# The content of a file counts where its name says nothing, or another format.
data="$OLDPWD/tests/formats/data"
cp "$data/state.pth" pytorch_model.bin && cp "$data/state.pth" model.ckpt
cp plain.safetensors weights.bin && cp a.npz arrays.pt && cp "$data/weights.h5" weights.keras
for file in pytorch_model.bin model.ckpt; do
  quiet 0 "$convert" $file $file.safetensors
  says "13 tensors"
done
quiet 0 "$convert" weights.bin from_bin.safetensors
cmp plain.safetensors from_bin.safetensors || fail "weights.bin is another file:"
quiet 0 "$convert" arrays.pt from_pt.npz
check same a.npz from_pt.npz
expect 0 "'alias' is a link and is left out" "$convert" weights.keras keras.safetensors

# Lists, choices and rejections.
quiet 0 "$convert" plain.safetensors none.npz --dry-run --map rules.yaml --dtype float16
says "blocks.0.w"
says "nothing is written"
[[ ! -e none.npz ]] || fail "--dry-run writes:"
quiet 0 "$convert" plain.safetensors two.npz --only 'block.0.*'
check names two.npz block.0.bias block.0.weight
expect 2 "matches no tensor" "$convert" plain.safetensors y.npz --only 'blok.*'
expect 2 "--overwrite" "$convert" plain.safetensors two.npz
quiet 0 "$convert" plain.safetensors two.npz --only steps --overwrite
check names two.npz steps
expect 0 "holds strings and is left out" "$convert" strings.npz s.safetensors
expect 5 "Python objects are not supported" "$convert" objects.npz y.npz
expect 2 "no such file" "$convert" nowhere.npz y.npz
expect 2 "the name does not tell the format" "$convert" plain.safetensors y.bin
expect 2 "files of the format 'onnx' are read, not written" "$convert" plain.safetensors y.onnx
expect 2 "--shard-size" "$convert" plain.safetensors y.safetensors --shard-size lots

# --- interrupted ---
python3 - <<'P'
import json, struct
header = {f"t{i:03}": {"dtype": "F32", "shape": [1 << 18], "data_offsets": [i << 20, (i + 1) << 20]} for i in range(240)}
text = json.dumps(header).encode()
with open("large.safetensors", "wb") as file:
    file.write(struct.pack("<Q", len(text)) + text)
    for i in range(240):
        file.write(struct.pack("<f", i) * (1 << 18))
P
"$convert" large.safetensors cut.safetensors --shard-size 8MiB > out 2> err &
pid=$!
until [[ -e cut.safetensors.index.json.partial ]] || ! kill -0 $pid 2> /dev/null; do sleep 0.01; done
kill -INT $pid 2> /dev/null
wait $pid
status=$?
quiet 0 "$convert" large.safetensors whole_.safetensors --shard-size 8MiB
if [[ $status == 130 ]]; then
  grep -q -- "--resume continues" err || fail "an interrupted conversion does not name --resume: $(cat err)"
  compgen -G "cut-*.safetensors" > /dev/null && fail "an interrupted conversion leaves files"
  quiet 0 "$convert" large.safetensors cut.safetensors --shard-size 8MiB --resume
  says "shards are there"
else  # it ended before the signal came
  [[ $status == 0 ]] || fail "the conversion ended with $status: $(cat err)"
fi
compgen -G "cut*partial" > /dev/null && fail "a finished conversion leaves its state"
for part in cut-*.safetensors; do
  cmp "$part" "whole_${part#cut}" || fail "$part differs from that of one call"
done
# Other settings start again.
echo '{"settings": "0", "finished": 3}' > new.safetensors.index.json.partial
"$convert" plain.safetensors new.safetensors --shard-size 100B --resume > out 2> err || fail "it cannot start again"
grep -q "all shards are written again" err || fail "it does not say that the settings have changed"
expect 2 "is one file" "$convert" plain.safetensors one.safetensors --resume
expect 5 "is not in the folder of the index" "$convert" escaping.safetensors.index.json y.npz
expect 5 "which swapped.safetensors.index.json does not name" "$convert" swapped.safetensors.index.json y.npz
head -c 200 plain.safetensors > cut.safetensors
expect 5 "cut.safetensors" "$convert" cut.safetensors y.npz
expect 5 "bad.npz" "$convert" bad.npz y.safetensors
expect 6 "No such file or directory" "$convert" plain.safetensors nowhere/y.npz

# A full disk leaves the old file whole, and nothing next to it.
cp plain.safetensors old.safetensors
(ulimit -f 8; exec "$convert" large.npz old.safetensors --overwrite) > out 2> error
[[ $? == 6 ]] || fail "a full disk does not give 6:"
cmp plain.safetensors old.safetensors || fail "a full disk damages the old file:"
[[ -z "$(ls ./*.tmp 2> /dev/null)" ]] || fail "a full disk leaves a temporary file:"

# Programs of PaddlePaddle become ONNX files, or give their parameters.
for form in words_program.pdmodel words_pir.json; do
  program="$OLDPWD/tests/paddle_program/data/$form"
  quiet 0 "$convert" "$program" words.onnx --overwrite
  says "written to words.onnx"
  expect 2 "already exists" "$convert" "$program" words.onnx
  expect 2 "is converted whole" "$convert" "$program" words.onnx --overwrite --dtype float16
  quiet 0 "$convert" "$program" words.npz --overwrite
  says "9 tensors"
  quiet 0 "$bin/paddle-export" "$program" -o exported.onnx --overwrite
  says "agrees with the model"
done
expect 2 "no such file" "$convert" nowhere.pdmodel words.onnx --overwrite

# A model's folder takes weights that fit, and only those.
cd "$OLDPWD" || exit 1
quiet 0 "$train" "$folder/run.yaml" --output "$folder/run"
cd "$folder" || exit 1
quiet 0 "$convert" run weights.npz
expect 2 "--overwrite" "$convert" weights.npz run/model
quiet 0 "$convert" weights.npz run/model --overwrite
quiet 0 "$infer" run/model rows.npz --output p.npz
expect 5 "needs 'linear.weight', which is not given" "$convert" weights.npz run/model --exclude '*weight' --overwrite
expect 5 "(--dtype casts)" "$convert" weights.npz run/model --dtype float16 --overwrite
expect 2 "is a checkpoint" "$convert" weights.npz run/checkpoints/latest --overwrite
finish
