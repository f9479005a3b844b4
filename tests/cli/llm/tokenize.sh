#!/usr/bin/env bash
# paddle tokenize and paddle chat-template: both directions, special tokens, training, files of tokens,
# and input that is wrong.
set -uo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../expect.bash"
tokenize="$bin/paddle-tokenize"
chat="$bin/paddle-chat-template"
data=tests/text/data

gives() {
  local wanted="$1" input="$2" got
  shift 2
  got="$(printf '%s' "$input" | "$@" 2> "$folder/error")"
  [[ "$got" == "$wanted" ]] || fail "$*: '$got', expected '$wanted'"
}
rejects() {
  local status="$1" text="$2" input="$3"
  shift 3
  printf '%s' "$input" > "$folder/input"
  expect "$status" "$text" bash -c '"$@" < "$0"' "$folder/input" "$@"
}

# Ids from bert.golden.jsonl: [CLS] is 2, [SEP] is 3.
ids="$(printf '"a"\n' | "$tokenize" "$data/bert.json")"
gives "[2,${ids:1:-1},3]" '"a"' "$tokenize" "$data/bert.json" --special
gives '"[CLS] a [SEP]"' "[2,${ids:1:-1},3]" "$tokenize" "$data/bert.json" --decode --special
gives '"a"' "[2,${ids:1:-1},3]" "$tokenize" "$data/bert.json" --decode
gives '[]' '""' "$tokenize" "$data/gpt2.json"
gives '"\u2028"' "$(printf '"\\u2028"' | "$tokenize" "$data/gpt2.json" | sed 's/\[[0-9]*,/[/')" "$tokenize" "$data/gpt2.json" --decode

rejects 4 "line 1: not a JSON value" 'text' "$tokenize" "$data/bert.json"
rejects 4 "line 2: expected a JSON string" $'"a"\n[1]\n' "$tokenize" "$data/bert.json"
rejects 4 "expected a JSON list of token ids" '[-1]' "$tokenize" "$data/bert.json" --decode
rejects 4 "id 99999 is not in the vocabulary" '[99999]' "$tokenize" "$data/bert.json" --decode
rejects 2 "does not exist" '' "$tokenize" "$folder/none.json"
rejects 2 "has no tokenizer" '' "$tokenize" "$folder"
printf '{"model": {"type": "BPE", "vocab": {"a": 0}, "merges": ["a b"]}}' > "$folder/t.json"
rejects 5 "t.json: model: merge 0 ('a' and 'b'): 'b' is not in the vocabulary" '' "$tokenize" "$folder/t.json"
printf '{"model": ' > "$folder/t.json"
rejects 5 "t.json: parse error at line 1" '' "$tokenize" "$folder/t.json"
head -c 1000 "$data/spm_bpe.model" > "$folder/t.model"
rejects 5 "not a SentencePiece model" '' "$tokenize" "$folder/t.model"

# Training: the merges are those of the unit test's reference; the file is a tokenizer like others.
ok() { quiet 0 "$@"; }
ok "$tokenize" --train "$data/trained_bpe.txt" --vocabulary-size 700 --special-token '<|endoftext|>' --special-token '<pad>' -o "$folder/bpe.json"
grep -qF "bpe.json: 700 tokens, 442 merges, from 35139 bytes" "$folder/out" || fail "no summary: $(cat "$folder/out")"
python3 - "$data/trained_bpe.json" "$folder/bpe.json" <<'P' || fail "other merges than the reference"
import json, sys
wanted, got = (json.load(open(path)) for path in sys.argv[1:])
assert got["model"]["merges"] == wanted["merges"] and got["model"]["vocab"] == wanted["vocab"]
assert [t["content"] for t in got["added_tokens"]] == ["<|endoftext|>", "<pad>"]
P
gives '"Kamister don'"'"'t 2024"' "$(printf '"Kamister don'"'"'t 2024"' | "$tokenize" "$folder/bpe.json")" "$tokenize" "$folder/bpe.json" --decode
expect 2 "bpe.json: already exists (--overwrite replaces it)" "$tokenize" --train "$data/trained_bpe.txt" -o "$folder/bpe.json"
expect 0 "tokens, not 20000: no further pair occurs often enough" "$tokenize" --train "$data/trained_bpe.txt" --vocabulary-size 20000 -o "$folder/all.json"
expect 2 "the vocabulary size is 100, expected 257" "$tokenize" --train "$data/trained_bpe.txt" --vocabulary-size 100 -o "$folder/x.json"
expect 2 "takes no MODEL" "$tokenize" "$folder/bpe.json" --train "$data/trained_bpe.txt" -o "$folder/x.json"
expect 2 "no file to write is given" "$tokenize" --train "$data/trained_bpe.txt"
expect 4 "none.txt" "$tokenize" --train "$folder/none.txt" -o "$folder/x.json"

# Files of tokens: uint16, documents with their end, special tokens in the text.
ok "$tokenize" "$folder/bpe.json" --input "$data/trained_bpe.txt" -o "$folder/t.bin"
printf '{"text": "ka lo"}\n\n{"text": "mi<|endoftext|>"}\n' > "$folder/d.jsonl"
ok "$tokenize" "$folder/bpe.json" --input "$folder/d.jsonl" --jsonl text -o "$folder/d.bin"
grep -q "of 2 documents as uint16, vocabulary_size 700" "$folder/out" || fail "no summary: $(cat "$folder/out")"
ok "$tokenize" "$folder/bpe.json" --input "$folder/d.jsonl" --jsonl text --special --end '<pad>' -o "$folder/s.bin"
python3 - "$folder" "$tokenize" <<'P' || fail "wrong files of tokens"
import json, struct, subprocess, sys
folder, tool = sys.argv[1:]
def read(name):
    data = open(f"{folder}/{name}", "rb").read()
    return list(struct.unpack(f"<{len(data) // 2}H", data))
def ids(text):
    out = subprocess.run([tool, f"{folder}/bpe.json"], input=json.dumps(text), capture_output=True, text=True, check=True)
    return json.loads(out.stdout)
assert read("t.bin") == ids(open("tests/text/data/trained_bpe.txt", newline="").read())
assert read("d.bin") == ids("ka lo") + [0] + ids("mi<|endoftext|>") + [0]
assert read("s.bin") == ids("ka lo") + [1] + ids("mi") + [0, 1]
P
printf '{"text": 1}' > "$folder/bad.jsonl"
expect 4 "bad.jsonl:1: expected a text at 'text'" "$tokenize" "$folder/bpe.json" --input "$folder/bad.jsonl" --jsonl text -o "$folder/x.bin"
[[ ! -e "$folder/x.bin" ]] || fail "a failed run left its file"
expect 2 "the end token '<none>' is not in the vocabulary" "$tokenize" "$folder/bpe.json" --input "$folder/d.jsonl" --end '<none>' -o "$folder/x.bin"
expect 2 "name it with --end" "$tokenize" "$data/bert.json" --input "$folder/d.jsonl" --jsonl text -o "$folder/x.bin"
expect 2 "--output is for --train and --input" "$tokenize" "$folder/bpe.json" -o "$folder/x.bin"
# Folders of vocabulary files.
cp -r "$data/folders/gpt2" "$folder/gpt2"
printf '#version: 0.2\nt h e\n' > "$folder/gpt2/merges.txt"
rejects 5 "merges.txt:2: expected two tokens with a space in between" '' "$tokenize" "$folder/gpt2"
printf '{"tokenizer_class": "CLIPTokenizer"}' > "$folder/gpt2/tokenizer_config.json"
rejects 5 "the tokenizer is a CLIPTokenizer; with vocab.json and merges.txt, GPT2Tokenizer" '' "$tokenize" "$folder/gpt2"
printf '{"added_tokens_decoder": {"x": {"content": "y"}}}' > "$folder/gpt2/tokenizer_config.json"
rejects 5 "added_tokens_decoder: 'x' is not an id" '' "$tokenize" "$folder/gpt2"
mkdir "$folder/bert"
printf 'a\nb\n' > "$folder/bert/vocab.txt"
rejects 5 "vocab.txt: model: the unknown token is not in the vocabulary" '' "$tokenize" "$folder/bert"

# A folder has the template next to the tokenizer.
mkdir "$folder/model"
cp "$data/llama3.json" "$folder/model/tokenizer.json"
printf '{"bos_token": "<s>", "chat_template": "{{ bos_token }}{%% for m in messages %%}{{ m.role }}: {{ m.content }}\\n{%% endfor %%}"}' > "$folder/model/tokenizer_config.json"
printf '{"messages": [{"role": "user", "content": "Hi"}]}' > "$folder/messages.json"
gives '<s>user: Hi' '' "$chat" "$folder/model" "$folder/messages.json"
printf '{{ raise_exception("no " ~ role) }}' > "$folder/t.jinja"
expect 4 "t.jinja:1: no " "$chat" "$folder/t.jinja" "$folder/messages.json"
printf 'x\n{%% if %%}' > "$folder/t.jinja"
expect 5 "t.jinja:2: expected an expression, found '%}'" "$chat" "$folder/t.jinja" "$folder/messages.json"
# Every special token that the files name is a variable.
cp -r "$folder/model" "$folder/named"
printf '{{ bos_token }}{{ unk_token }}{{ pad_token }}{{ cls_token is defined }}' > "$folder/named/chat_template.jinja"
printf '{"bos_token": "<s>", "unk_token": {"content": "<unk>"}, "pad_token": "<pad>"}' > "$folder/named/tokenizer_config.json"
gives '<s><unk><pad>False' '' "$chat" "$folder/named" "$folder/messages.json"
printf '[]' > "$folder/messages.json"
expect 4 'a conversation is a JSON object with "messages"' "$chat" "$folder/model" "$folder/messages.json"
expect 5 "has no chat template" "$chat" "$data/bert.json" "$folder/messages.json"
finish
