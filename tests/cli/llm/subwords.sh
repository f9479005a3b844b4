#!/usr/bin/env bash
# Training on subwords: a tokenizer that `paddle new` trains, text generated with the tokenizer that the
# run keeps, files of tokens, conversations, text columns, documents that stay apart, and what is rejected.
set -uo pipefail
command -v python3 > /dev/null || { echo "python3 is missing"; exit 77; }
source "$(dirname "${BASH_SOURCE[0]}")/../expect.bash"
new="$bin/paddle-new"
tokenize="$bin/paddle-tokenize"
evaluate="$bin/paddle-eval"
models="$PWD/models/llm"
cd "$folder" || exit 1
python3 - <<'P'
import json, random
random.seed(3)
line = "the quick brown fox jumps over the lazy dog.\n"
open("text.txt", "w").write(line * 300)
with open("reviews.csv", "w") as f:
    f.write("review,stars\n")
    for i in range(120):
        f.write(f"the fox was {'quick' if i % 2 else 'lazy'} {random.choice(['brown', 'over'])},{'good' if i % 2 else 'bad'}\n")
with open("documents.jsonl", "w") as f:
    for i in range(60):
        f.write(json.dumps({"text": line * (1 + i % 3)}) + "\n")
with open("chat.jsonl", "w") as f:
    for i in range(40):
        f.write(json.dumps({"q": "the quick", "a": " brown fox"}) + "\n")
P

# The recipe trains a tokenizer; the run keeps it and generates text without the files.
ok "$new" language-model --data text.txt --tokens bpe --vocabulary-size 320 -o lm.yaml
grep -q "subwords, 289 different ones" out || fail "no summary: $(cat out)"
[[ -e lm-tokenizer.json ]] || fail "no tokenizer next to the config"
: > lm2-tokenizer.json
expect 2 "lm2-tokenizer.json: already exists" "$new" language-model --data text.txt --tokens bpe -o lm2.yaml
[[ ! -e lm2.yaml ]] || fail "a config without its tokenizer"
expect 2 "are for the recipe language-model" "$new" text-classification --tokens bpe --data reviews.csv -o x.yaml
expect 2 "--vocabulary-size is for --tokens bpe" "$new" language-model --vocabulary-size 300 --data text.txt -o x.yaml
ok "$new" language-model --data text.txt --tokens bytes -o bytes.yaml
grep -q "level: bytes" bytes.yaml || fail "--tokens bytes does not read bytes"
small=(data.batch_size=8 model.params.width=32 model.params.layers=1)
ok "$train" lm.yaml --output lm "${small[@]}" train.steps=100 train.evaluate_every=50
mv lm-tokenizer.json kept.json
ok "$infer" lm/model --prompt "the quick brown" --length 12 --temperature 0
grep -q "^the quick brown fox jumps over the lazy dog" out || fail "other text: $(cat out)"
ok "$evaluate" lm
ok "$infer" lm/model text.txt --output logits.npz
ok "$train" --resume lm train.steps=105
expect 3 "has no tokenizer" "$train" lm.yaml --dry-run data.train.tokenizer=lm data.valid.tokenizer=lm
mv kept.json lm-tokenizer.json

# The same tokens from files, in two parts, with the same result; ids out of range are bad samples.
ok "$tokenize" lm-tokenizer.json --input text.txt -o all.bin
python3 - <<'P'
data = open("all.bin", "rb").read()
open("t1.bin", "wb").write(data[:1000]); open("t2.bin", "wb").write(data[1000:])
open("odd.bin", "wb").write(data[:1001])
P
sed 's|kind: text|kind: tokens|; s|path: text.txt|path: t?.bin|' lm.yaml > bin.yaml
ok "$train" bin.yaml --output bin "${small[@]}" train.steps=100 train.evaluate_every=50
python3 - <<'P' || fail "files of tokens train otherwise than their text"
import json
last = [[json.loads(l) for l in open(f"{run}/metrics.jsonl")][-1] for run in ("lm", "bin")]
rows = [[json.loads(l) for l in open(f"{run}/metrics.jsonl") if '"kind":"valid"' in l.replace(" ", "")] for run in ("lm", "bin")]
assert rows[0][1]["loss"] == rows[1][1]["loss"], rows
P
ok "$infer" bin/model --prompt "the quick brown" --length 12 --temperature 0
grep -q "^the quick brown fox jumps over the lazy dog" out || fail "other text: $(cat out)"
plain=(data.train.tokenizer=null data.valid.tokenizer=null)
expect 3 "give \`vocabulary_size\`, or the \`tokenizer\`" "$train" bin.yaml --dry-run "${plain[@]}"
expect 4 "expected ids below 200" "$train" bin.yaml --dry-run "${small[@]}" "${plain[@]}" data.train.vocabulary_size=200 data.valid.vocabulary_size=200
expect 4 "odd.bin: has 1001 bytes, expected a multiple of 2" "$train" bin.yaml --dry-run data.train.path=odd.bin
expect 4 "none*.bin: no file matches" "$train" bin.yaml --dry-run 'data.train.path=none*.bin'
expect 4 "No such file or folder" "$train" bin.yaml --dry-run data.train.path=none.bin

# Documents and records share samples only for a model that keeps them apart.
sed 's|path: text.txt|path: documents.jsonl\n    documents: jsonl|' lm.yaml > documents.yaml
expect 3 "documents share samples, and the model has no input \`segments\`" "$train" documents.yaml --dry-run
cat > chat.yaml <<'Y'
model:
  params: {width: 32, vocab_size: 297, context: 24}
  inputs: {tokens: "int64[batch, context]"}
  model: |
    x = embedding(tokens, vocab_size, width) + param("p", [context, width], init=normal(0, 0.1))
    q = reshape(linear(x, width), [batch, context, 2, width // 2])
    y = scaled_dot_product_attention(q, q, q, is_causal=true)
    logits = linear(x + linear(reshape(y, [batch, context, width]), width), vocab_size)
  outputs: [logits]
loss: cross_entropy(logits, targets, ignore_index=-100)
metrics: {accuracy: "accuracy(logits, targets)"}
optimizer: {name: adam, lr: 0.02}
data:
  batch_size: 8
  train: &chat {kind: chat, path: chat.jsonl, tokenizer: lm-tokenizer.json, prompt: q, completion: a, context: 24}
  valid: *chat
train: {epochs: 20, log_every: 20}
Y
words="$(python3 -c 'import json; print(len(json.load(open("lm-tokenizer.json"))["model"]["vocab"]))')"
sed -i "s/vocab_size: 297/vocab_size: $words/" chat.yaml
expect 3 "records share samples, and the model has no input \`segments\`" "$train" chat.yaml --dry-run data.train.pack=true
ok "$train" chat.yaml --check-data
grep -q "samples: 40" out || fail "records share samples without segments: $(head -3 out)"
ok "$train" chat.yaml --output chat
ok "$infer" chat/model --prompt "the quick" --length 2 --temperature 0
grep -q "^the quick brown fox" out || fail "other answer: $(cat out)"
sed 's|inputs: {tokens: "int64\[batch, context\]"}|inputs: {tokens: "int64[batch, context]", segments: "int64[batch, context]", positions: "int64[batch, context]"}|
     s|x = embedding.*|x = embedding(tokens, vocab_size, width) + embedding(positions, context, width)\n    sees = logical_and(unsqueeze(unsqueeze(segments, 2) == unsqueeze(segments, 1), 1), reshape(arange(context), [context, 1]) >= reshape(arange(context), [1, context]))|
     s|is_causal=true|attn_mask=sees|' chat.yaml > packed.yaml
ok "$train" packed.yaml --check-data
grep -q "samples: 40" out && fail "records do not share samples with segments: $(head -3 out)"
ok "$train" packed.yaml --output packed
ok "$infer" packed/model --prompt "the quick" --length 2 --temperature 0
grep -q "^the quick brown fox" out || fail "other answer: $(cat out)"
sed "s|kind: chat, path: chat.jsonl|kind: text, documents: jsonl, path: documents.jsonl|; s|, prompt: q, completion: a||" packed.yaml > apart.yaml
ok "$train" apart.yaml --output apart train.epochs=2
grep -q '"kind":"valid"' <(tr -d ' ' < apart/metrics.jsonl) || fail "documents are not trained on"

# The decoders that keep records apart: packing changes nothing, with weights of the others.
params="{width: 32, layers: 2, heads: 2, vocab_size: $words, kv_heads: 1, intermediate_size: 64}"
for family in llama gpt2; do
  [[ "$family" == llama ]] || params="{width: 32, layers: 2, heads: 2, vocab_size: $words}"
  { printf 'model: %s\nparams: %s\n' "$models/${family}_packed.yaml" "$params"; sed '/^model:/,/^  outputs:/d' chat.yaml; } > "$family.yaml"
  ok "$train" "$family.yaml" --output "$family" train.epochs=4
  ok "$evaluate" "$family"
  packed="$(python3 -c 'import json; line = json.load(open("out")); assert line["samples"] < 40; print(line["loss"])')"
  sed 's/context: 24}/context: 24, pack: false}/' "$family.yaml" > single.yaml
  ok "$evaluate" "$family" --data single.yaml:train
  python3 - "$packed" <<'P' || fail "$family: packed and single records differ: $packed, $(cat out)"
import json, sys
line = json.load(open("out"))
assert line["samples"] == 40 and abs(line["loss"] - float(sys.argv[1])) < 1e-5
P
  ok "$infer" "$family/model" --prompt "the quick" --length 2 --temperature 0
  sed "s/_packed//" "$family.yaml" > plain.yaml
  ok "$train" plain.yaml --dry-run --init "$family/model/model.safetensors"
done

# Text columns: training, evaluation and CSV inference use one tokenizer.
cat > columns.yaml <<'Y'
model:
  inputs: {text: "int64[batch, length]", text_mask: "bool[batch, length]"}
  params: {vocab_size: 300}
  model: |
    mask = unsqueeze(cast(text_mask, "float32"), 2)
    x = embedding(text, vocab_size, 16, weight_init=normal(0, 0.1)) * mask
    logits = linear(x.sum(1) / maximum(mask.sum(1), 1), 2)
  outputs: [logits]
loss: cross_entropy(logits, label)
metrics: {accuracy: "accuracy(logits, label)"}
optimizer: {name: adam, lr: 0.05}
data:
  batch_size: 16
  train: &all
    kind: csv
    path: reviews.csv
    fields:
      - {name: text, columns: review, kind: text, tokenizer: lm-tokenizer.json, max_length: 40}
      - {name: label, columns: stars, kind: categorical, scalar: true}
  valid: *all
train: {epochs: 20, log_every: 20}
Y
ok "$train" columns.yaml --output columns
mv lm-tokenizer.json kept.json
ok "$infer" columns/model reviews.csv --output predicted.csv
grep -q "accuracy: 1.0000" out || fail "CSV inference: $(cat out)"
ok "$evaluate" columns
mv kept.json lm-tokenizer.json
expect 3 "\`lowercase\` has no effect with \`tokenizer\`" "$train" columns.yaml --dry-run data.train.fields.0.lowercase=true
expect 3 "\`special_tokens\` has no effect without \`tokenizer\`" "$train" columns.yaml --dry-run data.train.fields.0.special_tokens=true data.train.fields.0.tokenizer=null
expect 3 "none.json' does not exist" "$train" columns.yaml --dry-run data.train.fields.0.tokenizer=none.json
finish
