#!/usr/bin/env bash
# paddle tokenize and paddle chat-template: both directions, special tokens, and input that is wrong.
set -uo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/expect.bash"
tokenize="$bin/paddle-tokenize"
chat="$bin/paddle-chat-template"
data=tests/text/data

gives() {
  local wanted="$1" input="$2" got
  shift 2
  got="$(printf '%s' "$input" | "$@" 2> "$folder/error")"
  [[ "$got" == "$wanted" ]] || fail "$*: '$got', expected '$wanted'"
}
refuses() {
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

refuses 4 "line 1: not a JSON value" 'text' "$tokenize" "$data/bert.json"
refuses 4 "line 2: expected a JSON string" $'"a"\n[1]\n' "$tokenize" "$data/bert.json"
refuses 4 "expected a JSON list of token ids" '[-1]' "$tokenize" "$data/bert.json" --decode
refuses 4 "id 99999 is not in the vocabulary" '[99999]' "$tokenize" "$data/bert.json" --decode
refuses 2 "does not exist" '' "$tokenize" "$folder/none.json"
refuses 2 "has no tokenizer" '' "$tokenize" "$folder"
printf '{"model": {"type": "BPE", "vocab": {"a": 0}, "merges": ["a b"]}}' > "$folder/t.json"
refuses 5 "t.json: model: merge 0 ('a' and 'b'): 'b' is not in the vocabulary" '' "$tokenize" "$folder/t.json"
printf '{"model": ' > "$folder/t.json"
refuses 5 "t.json: parse error at line 1" '' "$tokenize" "$folder/t.json"
head -c 1000 "$data/spm_bpe.model" > "$folder/t.model"
refuses 5 "not a SentencePiece model" '' "$tokenize" "$folder/t.model"

# A folder has the template beside the tokenizer.
mkdir "$folder/model"
cp "$data/llama3.json" "$folder/model/tokenizer.json"
printf '{"bos_token": "<s>", "chat_template": "{{ bos_token }}{%% for m in messages %%}{{ m.role }}: {{ m.content }}\\n{%% endfor %%}"}' > "$folder/model/tokenizer_config.json"
printf '{"messages": [{"role": "user", "content": "Hi"}]}' > "$folder/messages.json"
gives '<s>user: Hi' '' "$chat" "$folder/model" "$folder/messages.json"
printf '{{ raise_exception("no " ~ role) }}' > "$folder/t.jinja"
expect 4 "t.jinja:1: no " "$chat" "$folder/t.jinja" "$folder/messages.json"
printf 'x\n{%% if %%}' > "$folder/t.jinja"
expect 5 "t.jinja:2: expected an expression, found '%}'" "$chat" "$folder/t.jinja" "$folder/messages.json"
printf '[]' > "$folder/messages.json"
expect 4 'a conversation is a JSON object with "messages"' "$chat" "$folder/model" "$folder/messages.json"
expect 5 "has no chat template" "$chat" "$data/bert.json" "$folder/messages.json"
finish
