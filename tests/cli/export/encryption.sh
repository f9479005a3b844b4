#!/usr/bin/env bash
# Models of each form are encrypted, opened by the tools with their key only, and signed; every
# change of a file is noticed.
set -uo pipefail
command -v openssl > /dev/null || { echo "openssl is missing"; exit 77; }
source "$(dirname "${BASH_SOURCE[0]}")/../expect.bash"
[[ -e "$bin/../lib/libpaddle_crypto.so" ]] || { echo "built without OpenSSL"; exit 77; }
unset PADDLE_MODEL_KEY
convert="$bin/paddle-convert"
openssl rand -hex 32 > "$folder/key"
openssl rand -hex 32 > "$folder/other"
key="file:$folder/key"

ok "$train" configs/quickstart/digits.yaml "data.train={kind: digits, size: 256}" data.valid= train.steps=4 \
  --output "$folder/run"
data=(--data "configs/quickstart/digits.yaml:train")

encrypt() { ok "$convert" "$1" "$2" --encrypt --model-key "$key"; }

encrypt "$folder/run/model" "$folder/e"
for file in "$folder"/e/*; do
  [[ "$(head -c 8 "$file")" == PADDLENC ]] || fail "$file is not encrypted"
done
"$infer" "$folder/run/model" "${data[@]}" --output "$folder/wanted.npz" > /dev/null 2> "$folder/error" || fail "infer"
ok "$infer" "$folder/e" "${data[@]}" --output "$folder/found.npz" --model-key "$key"
cmp -s "$folder/wanted.npz" "$folder/found.npz" || fail "the encrypted model predicts otherwise"
expect 5 "is encrypted: state its key by --model-key or PADDLE_MODEL_KEY" "$infer" "$folder/e" "${data[@]}"
expect 5 "cannot be decrypted: the key is another one" "$infer" "$folder/e" "${data[@]}" --model-key "file:$folder/other"
PADDLE_MODEL_KEY="$key" ok "$bin/paddle-show" "$folder/e"
PADDLE_MODEL_KEY="command:cat $folder/key" ok "$bin/paddle-export" "$folder/e" --output "$folder/e.onnx"
K="$(cat "$folder/key")" ok "$bin/paddle-quant" "$folder/e" "${data[@]}" --output "$folder/q" --model-key env:K
expect 2 "key 'secret': expected file:PATH, env:NAME or command:COMMAND" "$infer" "$folder/e" --model-key secret
expect 2 "the variable is not set" "$infer" "$folder/e" "${data[@]}" --model-key env:PADDLE_NO_SUCH_KEY
expect 2 "is not a key of 32 bytes" "$infer" "$folder/e" "${data[@]}" --model-key command:date
grep -rqs "PADDLENC" "$folder/q" && fail "files that were written are encrypted"

# Nothing decrypted is written: the cache has no weights.
export XDG_CACHE_HOME="$folder/cache"
mkdir -p "$XDG_CACHE_HOME"
ok "$infer" "$folder/e" "${data[@]}" --model-key "$key"
python3 - "$folder/run/model/model.safetensors" "$XDG_CACHE_HOME" <<'P' 2> "$folder/error" || fail "weights are in the cache"
import pathlib, sys
weights = pathlib.Path(sys.argv[1]).read_bytes()[-4096:-64]
for path in pathlib.Path(sys.argv[2]).rglob("*"):
    assert not path.is_file() or weights[:64] not in path.read_bytes(), path
P

# Single files: ONNX, GGUF, programs of PaddlePaddle; language models.
encrypt "$folder/e.onnx" "$folder/net.onnx"
ok "$bin/paddle-show" "$folder/net.onnx" --model-key "$key"
make_llama
encrypt "$model" "$folder/secret"
"$infer" "$model" --prompt 123 --length 5 --temperature 0 > "$folder/wanted" 2> /dev/null
ok "$infer" "$folder/secret" --prompt 123 --length 5 --temperature 0 --model-key "$key"
cmp -s "$folder/wanted" "$folder/out" || fail "the encrypted language model generates another text"
encrypt tests/llm/data/llama_q8_0.gguf "$folder/secret.gguf"
ok "$bin/paddle-show" "$folder/secret.gguf" --model-key "$key"
encrypt tests/paddle_program/data/gpt_pir.json "$folder/net.json"
encrypt tests/paddle_program/data/gpt_pir.pdiparams "$folder/net.pdiparams"
ok "$bin/paddle-show" "$folder/net.json" --model-key "$key"

# Runs, encrypted models and files that are there are rejected.
expect 2 "is a run; state its model" "$convert" "$folder/run" "$folder/x" --encrypt --model-key "$key"
expect 2 "is encrypted" "$convert" "$folder/e" "$folder/x" --encrypt --model-key "$key"
expect 2 "already exists" "$convert" "$folder/run/model" "$folder/e" --encrypt --model-key "$key"
expect 2 "there is no key to encrypt with" "$convert" "$folder/run/model" "$folder/y" --encrypt
expect 2 "--dtype cannot be combined with --encrypt" "$convert" "$folder/run/model" "$folder/y" --encrypt --dtype f16

# Signatures.
openssl genpkey -algorithm ed25519 -out "$folder/private.pem" 2> /dev/null
openssl pkey -in "$folder/private.pem" -pubout -out "$folder/public.pem"
openssl genpkey -algorithm ed25519 2> /dev/null | openssl pkey -pubout -out "$folder/other.pem"
openssl genpkey -algorithm rsa -out "$folder/rsa.pem" 2> /dev/null
verify=("$bin/paddle" verify "$folder/e" --public-key)
expect 5 "has no signature" "${verify[@]}" "$folder/public.pem"
expect 2 "is not a private key of Ed25519" "$bin/paddle" sign "$folder/e" --private-key "$folder/rsa.pem"
ok "$bin/paddle" sign "$folder/e" --private-key "$folder/private.pem"
ok "${verify[@]}" "$folder/public.pem"
ok "$infer" "$folder/e" "${data[@]}" --model-key "$key"
expect 5 "is not signed with this key" "${verify[@]}" "$folder/other.pem"
expect 2 "is not a public key of Ed25519" "${verify[@]}" "$folder/private.pem"
cp -r "$folder/e" "$folder/changed"
printf x >> "$folder/changed/model.safetensors"
touch "$folder/changed/new"
expect 5 "model.safetensors was changed, new was added" "$bin/paddle" verify "$folder/changed" --public-key "$folder/public.pem"
sed -i 's/"files": {/"files": {"new": "0",/' "$folder/changed/signature.json"
expect 5 "is not signed with this key" "$bin/paddle" verify "$folder/changed" --public-key "$folder/public.pem"
echo '{"version": 1}' > "$folder/changed/signature.json"
expect 5 "is not a signature of version 1" "$bin/paddle" verify "$folder/changed" --public-key "$folder/public.pem"
ok "$bin/paddle" sign "$folder/net.onnx" --private-key "$folder/private.pem"
ok "$bin/paddle" verify "$folder/net.onnx" --public-key "$folder/public.pem" --json
finish
