#!/usr/bin/env bash
# Texts that continue their prompt with a vocabulary of SentencePiece, whose decoder leaves out the first
# space of a text: spaces, tokens of log-probabilities, bytes of parts of characters, echo, constraints.
set -uo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../expect.bash"
make_llama
python3 - > "$model/tokenizer.json" <<'PYTHON'
import json
words = ["<unk>", "<s>", "</s>", "\u2581a", "a", "\u2581b", "b", "<0xF0>", "<0x9F>", "<0xA6>", "<0x99>", "\u2581"]
words += ["c%d" % i for i in range(len(words), 50)]
added = [{"id": i, "content": words[i], "special": True, "normalized": False} for i in range(3)]
surround = {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
            "pair": [], "special_tokens": {"<s>": {"id": "<s>", "ids": [1], "tokens": ["<s>"]}}}
mark, space = {"String": "\u2581"}, {"String": " "}
print(json.dumps({
    "added_tokens": added, "post_processor": surround,
    "normalizer": {"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "\u2581"}, {"type": "Replace", "pattern": space, "content": "\u2581"}]},
    "model": {"type": "BPE", "vocab": {w: i for i, w in enumerate(words)}, "unk_token": "<unk>", "merges": ["\u2581 a", "\u2581 b"]},
    "decoder": {"type": "Sequence", "decoders": [{"type": "Replace", "pattern": mark, "content": " "}, {"type": "ByteFallback"}, {"type": "Fuse"}, {"type": "Strip", "content": " ", "start": 1, "stop": 0}]}}))
PYTHON
echo '{"bos_token": "<s>", "eos_token": "</s>", "chat_template": "{{ bos_token }}{% for m in messages %}{{ m.content }}{% endfor %}"}' > "$model/tokenizer_config.json"

same() { [[ "$1" == "$2" ]] || { : > "$folder/error"; fail "$3: '$1', expected '$2'"; }; }
text() { "$infer" "$model" --temperature 0 "$@" 2> "$folder/error" || fail "$*"; }

same "$(text --prompt a --length 3 --logit-bias 5=100)" "a b b b" "a continuation"
same "$(text --prompt a --length 3 --logit-bias 6=100)" "abbb" "a continuation of the word"
same "$(text --prompt "<s>" --length 2 --logit-bias 5=100)" "<s>b b" "the beginning of a text"
same "$(printf 'a\n' | text --chat --length 3 --logit-bias 5=100)" " b b b" "an answer"
same "$(text --prompt a --length 3 --regex " b")" "a b" "a constraint with a space"
same "$(text --prompt a --length 3 --regex "b")" "ab" "a constraint without a space"
same "$(text --prompt a --length 1 --logit-bias 5=100 --logprobs 0 | tail -n 1 | sed 's/,"logprob".*//')" '{"id":5,"token":" b","bytes":[32,98]' "a token"
same "$(text --prompt a --length 1 --logit-bias 7=100 --logprobs 0 | tail -n 1 | sed 's/,"logprob".*//')" '{"id":7,"token":"\\xf0","bytes":[240]' "a part of a character"

python3 - > "$folder/in.jsonl" <<'PYTHON'
import json
def ask(name, url, **body):
    print(json.dumps({"custom_id": name, "url": "/v1/" + url, "body": {"temperature": 0, "max_tokens": 3, **body}}))
ask("plain", "completions", prompt="a", logit_bias={"5": 100}, logprobs=2)
ask("echo", "completions", prompt="a a", logit_bias={"5": 100}, logprobs=0, echo=True)
ask("ids", "completions", prompt=[1, 3, 4], logit_bias={"5": 100}, logprobs=0, echo=True)
ask("bare", "completions", prompt=[1], logit_bias={"5": 100}, logprobs=0, echo=True)
ask("parts", "completions", prompt="a", max_tokens=4, logit_bias={"7": 60, "8": 100}, logprobs=20)
ask("chat", "chat/completions", messages=[{"role": "user", "content": "a"}], max_tokens=1, logit_bias={"8": 100}, logprobs=True, top_logprobs=20)
PYTHON
"$infer" "$model" --requests "$folder/in.jsonl" --output "$folder/out.jsonl" > "$folder/log" 2> "$folder/error" || fail "--requests"
python3 - "$folder/out.jsonl" 2> "$folder/error" <<'PYTHON' || fail "answers"
import json, sys
answers = {}
for line in open(sys.argv[1]):
    line = json.loads(line)
    assert line["response"]["status_code"] == 200, line
    answers[line["custom_id"]] = line["response"]["body"]["choices"][0]
def check(name, text, tokens):
    got = answers[name]
    assert (got["text"], got["logprobs"]["tokens"]) == (text, tokens), (name, got)
    assert "".join(tokens) == text
check("plain", " b b b", [" b"] * 3)
check("echo", "a a b b b", ["", "a", " a", " b", " b", " b"])
check("ids", "aa b b b", ["", "a", "a", " b", " b", " b"])
check("bare", "b b b", ["", "b", " b", " b"])
parts = answers["parts"]["logprobs"]
assert parts["tokens"] == ["bytes:\\x9f"] * 4, parts
assert all(len(top) == 20 for top in parts["top_logprobs"]), "tokens without a text of their own overwrite each other"
token = answers["chat"]["logprobs"]["content"][0]
assert token["bytes"] == [0x9F] and token["token"] == "\\x9f", token
assert {"token": " b", "bytes": [32, 98]} in [{k: t[k] for k in ("token", "bytes")} for t in token["top_logprobs"]] or len(token["top_logprobs"]) == 20
PYTHON
finish
