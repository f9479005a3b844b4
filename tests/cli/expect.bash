# For the tests in the folders here: a scratch folder, and a check of one command's end.
#   expect STATUS TEXT COMMAND…   the command ends with STATUS and its errors say TEXT
#   ok COMMAND…                   it ends with 0
#   quiet STATUS COMMAND…         it ends with STATUS and says nothing on standard error
#   make_llama                    makes a tiny language model, $model
#   finish                        exits 1 if any of them failed
bin="${PADDLE_BIN:?}"
train="$bin/paddle-train"
infer="$bin/paddle-infer"
folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT
failures=0
most_lines=4

fail() {
  echo "FAIL: $1"
  [[ ! -e "$folder/error" ]] || head -c 800 "$folder/error"
  failures=$((failures + 1))
}

# No command may take long or much memory.
run_bounded() {
  local status=0
  (ulimit -v 8000000; timeout 60 "$@") > "$folder/out" 2> "$folder/error" || status=$?
  echo "$status"
}

ok() { [[ "$(run_bounded "$@")" == 0 ]] || fail "$*"; }

expect() {
  local wanted="$1" text="$2" status
  shift 2
  status="$(run_bounded "$@")"
  [[ "$status" == "$wanted" ]] || { fail "$* gave $status, expected $wanted with '$text':"; return; }
  grep -qF -- "$text" "$folder/error" || { fail "$* does not say '$text':"; return; }
  (($(wc -l < "$folder/error") <= most_lines)) || fail "$* says too much:"
}

quiet() {
  local wanted="$1" status
  shift
  status="$(run_bounded "$@")"
  [[ "$status" == "$wanted" ]] || { fail "$* gave $status, expected $wanted:"; return; }
  [[ ! -s "$folder/error" ]] || fail "$* should say nothing:"
}

# A tiny language model as a Hugging Face folder, $model. One character a token: '0' is 0.
make_llama() {
  model="$folder/llama"
  cp -r tests/llm/data/llama "$model"
  python3 -c 'import json
vocabulary = {chr(48 + i): i for i in range(50)}
print(json.dumps({"model": {"type": "BPE", "merges": [], "vocab": vocabulary}, "decoder": {"type": "Fuse"}}))' > "$model/tokenizer.json"
}

finish() {
  ((failures == 0)) && echo "all as documented"
  exit "$((failures > 0))"
}
