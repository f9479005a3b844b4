#!/usr/bin/env bash
# Bad samples are found before the first step, wherever they are, and policies decide what becomes
# of them: error, skip and keep.
set -uo pipefail
command -v python3 > /dev/null || { echo "python3 is missing"; exit 77; }
source "$(dirname "${BASH_SOURCE[0]}")/../expect.bash"
cd "$folder" || exit 1
ok() { [[ "$(run_bounded "$@")" == 0 ]] || fail "$*: $(tail -2 "$folder/error")"; }
says() { grep -qF -- "$1" "$folder/$2" || fail "no '$1' in: $(head -c 600 "$folder/$2")"; }

# The last of 600 rows is bad; a step sees 8 of them.
python3 - <<'P'
import json, random
random.seed(0)
rows = [(random.random(), i % 3) for i in range(600)]
def table(name, change):
    with open(name, "w") as f:
        f.write("x,label\n")
        for i, (x, y) in enumerate(rows):
            f.write(",".join(change(i, f"{x:.4f}", "abc"[y])) + "\n")
table("good.csv", lambda i, x, y: (x, y))
table("late.csv", lambda i, x, y: ("word" if i == 599 else x, y))
table("empty.csv", lambda i, x, y: (x, "" if i in (500, 501) else y))
def numbers(name, change):
    with open(name, "w") as f:
        f.write("x,label\n")
        for i, (x, y) in enumerate(rows):
            f.write(f"{x:.4f},{change(i, y)}\n")
numbers("gap.csv", lambda i, y: [0, 1, 3][y])
numbers("one.csv", lambda i, y: y + 1)
numbers("far.csv", lambda i, y: 9 if i == 400 else y)
with open("rows.jsonl", "w") as f:
    for i, (x, y) in enumerate(rows):
        f.write(json.dumps({"x": x, "label": "abc"[y]} if i != 300 else {"x": x}) + "\n")
P
cat > c.yaml <<'Y'
model: {params: {classes: 4}, inputs: {x: "float32[batch, 1]"}, model: [{linear: classes}], outputs: [logits]}
loss: cross_entropy(logits, label)
optimizer: sgd
data:
  batch_size: 8
  shuffle: false
  train: {kind: csv, path: good.csv, fields: [{name: x}, {name: label, kind: categorical, scalar: true}]}
train: {steps: 2}
Y
run() { expect "$1" "$2" "$train" c.yaml --output run --overwrite "${@:3}"; }
plain='data.train.fields=[{name: x}, {name: label, scalar: true, dtype: int64}]'
ok "$train" c.yaml --output run --overwrite
says "data.train: all 600 samples were read" out
rm -r run
run 4 "late.csv:601: column 'x': 'word' is not a number" data.train.path=late.csv
[[ ! -e run/metrics.jsonl ]] || fail "a step was done before the check"
ok "$train" c.yaml --output run --overwrite data.train.path=late.csv data.check_seconds=0
run 0 "1 of 600 samples are bad and will be skipped; the first: " data.train.path=late.csv data.on_bad_sample=skip
run 4 "that max_bad_rate allows" data.train.path=late.csv data.on_bad_sample=skip data.max_bad_rate=0.001
expect 4 "late.csv:601" "$train" c.yaml --dry-run data.train.path=late.csv

# Targets that are missing.
run 4 "empty.csv:502: column 'label': the value is missing; \`missing: category\`" data.train.path=empty.csv
run 4 "(and 1 more bad samples in data.train; --check-data lists them)" data.train.path=empty.csv
run 0 "2 of 600 samples are bad" data.train.path=empty.csv data.on_bad_sample=skip
quiet 0 "$train" c.yaml --output run --overwrite data.train.path=empty.csv data.on_bad_sample=keep
quiet 0 "$train" c.yaml --output run --overwrite data.train.path=empty.csv data.train.fields.1.missing=category
run 4 "rows.jsonl:301: column 'label': the value is missing" "data.train={kind: jsonl, path: rows.jsonl, fields: [{name: x}, {name: label, kind: categorical, scalar: true}]}"
expect 4 "empty.csv:502" "$train" c.yaml --check-data data.train.path=empty.csv
says "looked at: all 600 samples were read, 2 are bad" out
says "bad: " out
[[ "$(grep -c '^bad: .*empty.csv:50[23]' out)" == 2 ]] || fail "--check-data lists: $(grep bad: out)"

# Labels.
run 0 "data.train: 'label' skips numbers: no sample has 2 of 0 to 3" data.train.path=gap.csv "$plain"
run 0 "'label' starts at 1, classes are numbered from 0: 0 has no samples" data.train.path=one.csv "$plain"
run 4 "far.csv:402, column 'label': label 9 is outside 0..3, which the model takes" data.train.path=far.csv "$plain"
expect 0 "skips numbers: no sample has 2 of 0 to 3" "$train" c.yaml --check-data data.train.path=gap.csv "$plain"

# keep is for what can be kept.
run 3 "data.on_bad_sample: keep is for boxes" data.on_bad_sample=keep "$plain"
run 4 "cannot keep this sample" data.on_bad_sample=keep data.train.path=late.csv
run 3 "expected one of error, skip, keep" data.on_bad_sample=drop

# Conversations: a bad line is left out, up to the rate.
python3 - <<'P'
import json
words = ["<s>", "<u>", "<a>", "<e>"] + list("abcdefgh")
tokens = {word: i for i, word in enumerate(words)}
json.dump({"added_tokens": [{"id": i, "content": words[i], "special": True} for i in range(4)],
           "model": {"type": "BPE", "vocab": tokens, "merges": []}}, open("tokenizer.json", "w"))
open("chat.jinja", "w").write("{% for m in messages %}<{{ m.role[0] }}>{{ m.content }}<e>{% endfor %}"
                              "{% if add_generation_prompt %}<a>{% endif %}")
with open("chat.jsonl", "w") as f:
    for i in range(40):
        line = {"messages": [{"role": "user", "content": "abcd"[i % 4]}, {"role": "assistant", "content": "efgh"[i % 4]}]}
        f.write("{broken\n" if i == 7 else json.dumps(line) + "\n")
P
cat > chat.yaml <<'Y'
model: {inputs: {tokens: "int64[batch, 32]"}, model: "logits = linear(embedding(tokens, 12, 4), 12)\n", outputs: [logits]}
loss: cross_entropy(logits, targets, ignore_index=-100)
optimizer: sgd
data:
  batch_size: 2
  train: {kind: chat, path: chat.jsonl, tokenizer: tokenizer.json, chat_template: chat.jinja, context: 32}
train: {steps: 2}
Y
expect 4 "chat.jsonl:8" "$train" chat.yaml --output chat
expect 0 "chat.jsonl:8" "$train" chat.yaml --output chat --overwrite data.on_bad_sample=skip data.max_bad_rate=0.5
grep -q "chat.jsonl:8" chat/skipped.jsonl || fail "the line is not listed: $(cat chat/skipped.jsonl)"
expect 4 "more than the rate of 0.01 that max_bad_rate allows" "$train" chat.yaml --output chat --overwrite data.on_bad_sample=skip

# CTC: labels that need more steps than the output has, with a blank between equal ones. The output
# has 6 steps.
python3 - <<'P'
import random
random.seed(1)
def table(name, change):
    with open(name, "w") as f:
        f.write("x,text\n")
        for i in range(200):
            f.write("|".join(f"{random.random():.3f}" for _ in range(12)) + "," + change(i) + "\n")
table("fits.csv", lambda i: ["abcdef", "aabb", "a"][i % 3])
table("long.csv", lambda i: "abcabca" if i == 150 else "ab")
table("equal.csv", lambda i: "aabbc" if i == 150 else "ab" if i != 198 else "aaab")
P
cat > ctc.yaml <<'Y'
model: {inputs: {x: "float32[batch, 6, 2]"}, model: "logits = linear(x, 8)\n", outputs: [logits]}
step: |
  logits = model(x)
  lengths = cast(text_mask, "int64").sum(1)
  update(ctc_loss(transpose(logits, [1, 0, 2]), text, zeros_like(lengths) + logits.shape[1], lengths, zero_infinity=true))
optimizer: sgd
data:
  batch_size: 8
  train:
    kind: csv
    path: fits.csv
    fields: [{name: x, kind: numbers, shape: [6, 2]}, {name: text, kind: text, tokens: characters}]
train: {steps: 30}
Y
ctc() { expect "$1" "$2" "$train" ctc.yaml --output ctc --overwrite "${@:3}"; }
quiet 0 "$train" ctc.yaml --output ctc --overwrite
ctc 4 "long.csv:152: ctc_loss: 7 labels need 7 steps of the output, it has 6" data.train.path=long.csv
ctc 4 "equal.csv:152: ctc_loss: 5 labels, 2 of them equal to the one before, need 7 steps of the output, it has 6" data.train.path=equal.csv
ctc 0 "equal.csv:152: ctc_loss" data.train.path=equal.csv data.on_bad_sample=skip
grep -q "equal.csv:152: ctc_loss" ctc/skipped.jsonl || fail "not listed: $(cat ctc/skipped.jsonl)"
# Without a look before the first step, the batch with the sample is rejected, or left without it.
ctc 4 "long.csv:152: ctc_loss: 7 labels" data.train.path=long.csv data.check_seconds=0
ctc 0 "1 bad samples were skipped" data.train.path=long.csv data.check_seconds=0 data.on_bad_sample=skip
ctc 4 "long.csv:152: ctc_loss: 7 labels" --eager data.train.path=long.csv data.check_seconds=0
ctc 4 "long.csv:152: ctc_loss: 7 labels" --simulate 2 parallel.data=2 data.train.path=long.csv data.check_seconds=0
expect 4 "equal.csv:152: ctc_loss" "$train" ctc.yaml --dry-run data.train.path=equal.csv
# A model that states its batch.
stated='model.inputs={x: "float32[4, 6, 2]"}'
quiet 0 "$train" ctc.yaml --output ctc --overwrite "$stated" data.batch_size=4
for seconds in 0 1; do
  ctc 4 "long.csv:152: ctc_loss: 7 labels" "$stated" data.batch_size=4 train.steps=60 data.train.path=long.csv data.check_seconds=$seconds
done

# Boxes and masks: --check-data reads them all.
python3 - <<'P'
import os, struct, zlib
def png(path, rows):
    def chunk(kind, data):
        body = kind + data
        return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))
    raw = b"".join(b"\0" + bytes(row) for row in rows)
    with open(path, "wb") as f:
        f.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", len(rows[0]), len(rows), 8, 0, 0, 0, 0)) +
                chunk(b"IDAT", zlib.compress(raw)) + chunk(b"IEND", b""))
os.makedirs("p/images"), os.makedirs("p/labels"), os.makedirs("m")
for i in range(40):
    png(f"p/images/{i:02}.png", [[i] * 8] * 8)
    png(f"m/{i:02}.png", [[0, 255, 7 if i == 31 else 0, 0]] * 4)
    with open(f"p/labels/{i:02}.txt", "w") as f:
        f.write("0 0.5 0.5 0.25 0.25\n" + ("0 1.5 0.5 0.25 0.25\n" if i == 33 else "") + ("0 0.5 0.5 wide 1\n" if i == 35 else ""))
with open("masks.csv", "w") as f:
    f.write("image,mask\n" + "".join(f"p/images/{i:02}.png,m/{i:02}.png\n" for i in range(40)))
P
cat > boxes.yaml <<'Y'
model: {inputs: {image: "float32[batch, 1, 8, 8]"}, model: "y = mean(image, [1, 2, 3])\n", outputs: [y]}
loss: mean(y)
optimizer: sgd
data: {batch_size: 4, train: {kind: yolo, images: p/images, classes: [thing], channels: 1}}
train: {steps: 1}
Y
check() { expect "$1" "$2" "$train" boxes.yaml --check-data "${@:3}"; }
check 4 "33.png: box 1 [11, 3, 13, 5] is outside of the image of 8 x 8 (and 1 more bad samples"
says "35.txt:2: expected numbers" out
check 0 "2 of 40 samples are bad and will be skipped" data.on_bad_sample=skip data.max_bad_rate=0.1
check 4 "35.txt:2: expected numbers: class, x, y, width and height (\`on_bad_sample: keep\` cannot keep this sample)" data.on_bad_sample=keep
rm p/labels/35.txt
check 0 "33.png: box 1 [11, 3, 13, 5] is outside of the image of 8 x 8; it is left out" data.on_bad_sample=keep
says "images without boxes: 1" out
masks='data.train={kind: csv, path: masks.csv, fields: [{name: image, kind: image, channels: 1}, {name: mask, kind: mask, values: {0: ground, 255: road}}]}'
check 4 "masks.csv:33: column 'mask': the mask has the value 7 at row 0, column 2, which" "$masks"
quiet 0 "$train" boxes.yaml --check-data "$masks" data.on_bad_sample=keep
finish
