#!/usr/bin/env bash
# Datasets by name, mixtures, Parquet, series, conversations, splits and mixing of samples, as configs
# name them; what paddle data prints; and what is rejected.
set -uo pipefail
command -v python3 > /dev/null || { echo "python3 is missing"; exit 77; }
source "$(dirname "${BASH_SOURCE[0]}")/../expect.bash"
data="$bin/paddle-data"
evaluate="$bin/paddle-eval"
cp tests/data/parquet/snappy.parquet "$folder/table.parquet"
cd "$folder" || exit 1
python3 - <<'P'
import json, math, random
random.seed(3)
with open("a.csv", "w") as a, open("b.csv", "w") as b:
    for f, shift, n in ((a, 0, 60), (b, 5, 240)):
        f.write("x,y,label,who\n")
        for i in range(n):
            x, y = random.gauss(shift, 1), random.gauss(0, 1)
            f.write(f"{x:.3f},{y:.3f},{int(y > 0)},p{i // 4}\n")
with open("sales.csv", "w") as f:
    f.write("day,warm,sales\n")
    for i in range(160):
        warm = math.sin(i / 7)
        f.write(f"{i},{warm:.4f},{500 + 80 * math.sin((i - 1) / 7):.3f}\n")
tokens = ["<pad>", "<u>", "<a>", "<e>"] + list("abcdefgh")
added = [{"id": i, "content": tokens[i], "special": True, "single_word": False, "lstrip": False, "rstrip": False,
          "normalized": False} for i in range(4)]
json.dump({"version": "1.0", "added_tokens": added, "normalizer": None, "pre_tokenizer": {"type": "Whitespace"},
           "post_processor": None, "decoder": None,
           "model": {"type": "WordLevel", "unk_token": "<pad>", "vocab": {t: i for i, t in enumerate(tokens)}}},
          open("tokenizer.json", "w"))
open("chat.jinja", "w").write("{% for m in messages %}<{{ m.role[0] }}>{{ m.content }}<e>{% endfor %}"
                              "{% if add_generation_prompt %}<a>{% endif %}")
with open("chat.jsonl", "w") as f:
    for i in range(64):
        word = random.choice("abcdefgh")
        turns = [{"role": "user", "content": word}, {"role": "assistant", "content": chr(ord("a") + (ord(word) - 96) % 8)}]
        f.write(json.dumps({"messages": turns * (1 + i % 3)}) + "\n")
P
cat > c.yaml <<'Y'
model:
  inputs: {v: "float32[batch, 2]"}
  model: |
    logits = linear(tanh(linear(v, 8)), 2)
  outputs: [logits]
loss: cross_entropy(logits, label)
metrics: {accuracy: "accuracy(logits, label)"}
optimizer: {name: adam, lr: 0.03}
data:
  batch_size: 32
  train:
    kind: csv
    path: b.csv
    fields: &fields [{name: v, columns: [x, y], scaling: standard}, {name: label, scalar: true, dtype: int64}]
    split_group: who
    split: {train: 0.8, valid: 0.2}
    part: train
  valid: {kind: csv, path: b.csv, fields: *fields, split_group: who, split: {train: 0.8, valid: 0.2}, part: valid}
train: {epochs: 8, log_every: 10}
Y
samples() { grep -A2 "^$1" out | grep -o 'samples: [0-9]*'; }

# Splits.
ok "$train" c.yaml --check-data
grep -q "groups of 'who' as a whole" out || fail "--check-data does not say how the data is split"
[[ ! -s error ]] || fail "a split by groups warns"
ok "$train" c.yaml --output folds data.train.split=null data.valid.split=null data.train.split_group=null \
  data.valid.split_group=null data.train.folds=5 data.valid.folds=5 data.train.fold=2 data.valid.fold=2
ok "$evaluate" folds
grep -q '"samples":48' out || fail "a fold of 240 is not 48: $(cat out)"
expect 3 "no column or class 'whom'" "$train" c.yaml --dry-run data.train.split_group=whom
expect 3 "has no effect without folds" "$train" c.yaml --dry-run data.train.fold=1
# The same contents in both parts.
cp b.csv copy.csv
ok "$train" c.yaml --check-data data.valid.path=copy.csv data.valid.part=train
grep -q "samples have the same contents as one of data.train" error || fail "no report of duplicates: $(cat error)"

# Mixtures: three of four samples from the small source.
python3 - <<'P'
text = open("c.yaml").read()
start = text.index("  train:\n"); end = text.index("train: {epochs")
fields = "fields: [{name: v, columns: [x, y]}, {name: label, scalar: true, dtype: int64}]"
open("mix.yaml", "w").write(text[:start] + f"""  train:
    kind: mixture
    sources:
      own: {{kind: csv, path: a.csv, {fields}}}
      web: {{kind: csv, path: b.csv, {fields}, range: [0, 200]}}
    weights: {{own: 3, web: 1}}
    samples: 640
  valid: {{kind: csv, path: b.csv, {fields}, range: [200, 240]}}
""" + text[end:])
P
ok "$train" mix.yaml --check-data
grep -q "source own: 60 samples" out || fail "the sources are not shown: $(cat out)"
ok "$train" mix.yaml --output mix train.epochs=2
grep -q '"step":40' mix/metrics.jsonl || fail "an epoch is not 640 draws"
expect 3 "no source 'wbe' (did you mean 'web'?)" "$train" mix.yaml --dry-run 'data.train.weights={own: 1, wbe: 2}'

# Parquet.
cat > p.yaml <<'Y'
model:
  inputs: {v: "float32[batch, 2]"}
  model: |
    logits = linear(v, 2)
  outputs: [logits]
loss: cross_entropy(logits, flag)
optimizer: {name: adam, lr: 0.03}
data:
  train:
    kind: parquet
    path: table.parquet
    fields: [{name: v, columns: [single, double], missing: fill, scaling: standard}, {name: flag, scalar: true, dtype: int64}]
train: {steps: 5}
Y
ok "$train" p.yaml --output p
expect 4 "did you mean 'single'" "$train" p.yaml --dry-run 'data.train.fields.v.columns=[singel]'

# Series: errors are in the units of the file.
cat > s.yaml <<'Y'
model:
  inputs: {past: "float32[batch, 8, 2]"}
  model: |
    forecast = reshape(linear(flatten(past), 2), [batch, 2, 1]) + past[:, -1:, 0:1]
  outputs: [forecast]
loss: mse_loss(forecast, future)
metrics: {mae: "mae(forecast, future)"}
optimizer: {name: adam, lr: 0.01}
data:
  batch_size: 16
  train: &all {kind: series, path: sales.csv, targets: sales, covariates: warm, history: 8, horizon: 2, scaling: standard, split: {train: 0.8, valid: 0.2}, part: train}
  valid: {kind: series, path: sales.csv, targets: sales, covariates: warm, history: 8, horizon: 2, scaling: standard, split: {train: 0.8, valid: 0.2}, part: valid}
train: {epochs: 30, log_every: 50, evaluate_every: 10 epochs}
Y
ok "$train" s.yaml --output s
ok "$evaluate" s
python3 -c 'import json,sys; v=json.loads(open("out").read()); assert 0 < v["mae"] < 20 and v["mae"] > 20 * v["loss"] ** 0.5, v' || fail "series: $(cat out)"

# Conversations: records of one sample do not see each other, so packing changes nothing.
cat > chat.yaml <<'Y'
model:
  params: {width: 16, vocab_size: 12, context: 32}
  inputs: {tokens: "int64[batch, context]", segments: "int64[batch, context]", positions: "int64[batch, context]"}
  model: |
    x = embedding(tokens, vocab_size, width) + embedding(positions, context, width)
    sees = unsqueeze(unsqueeze(segments, 2) == unsqueeze(segments, 1), 1)
    past = reshape(arange(context), [context, 1]) >= reshape(arange(context), [1, context])
    q = reshape(linear(x, width), [batch, context, 2, width // 2])
    k = reshape(linear(x, width), [batch, context, 2, width // 2])
    v = reshape(linear(x, width), [batch, context, 2, width // 2])
    y = scaled_dot_product_attention(q, k, v, attn_mask=logical_and(sees, past))
    logits = linear(x + linear(reshape(y, [batch, context, width]), width), vocab_size)
  outputs: [logits]
loss: cross_entropy(logits, targets, ignore_index=-100)
metrics: {accuracy: "accuracy(logits, targets)"}
optimizer: {name: adam, lr: 0.02}
data:
  batch_size: 8
  train: &chat {kind: chat, path: chat.jsonl, tokenizer: tokenizer.json, chat_template: chat.jinja, context: 32}
  valid: *chat
train: {epochs: 30, log_every: 20, evaluate_every: 30 epochs}
Y
ok "$train" chat.yaml --output chat
grep -q '"accuracy":1[.,]' <(grep valid chat/metrics.jsonl | tail -1) || fail "the answers are not learned: $(tail -2 chat/metrics.jsonl)"
ok "$evaluate" chat --data chat.yaml:train
packed="$(python3 -c 'import json; print(json.loads(open("out").read())["loss"])')"
sed 's/context: 32}/context: 32, pack: false}/' chat.yaml > apart.yaml
ok "$evaluate" chat --data apart.yaml:train
python3 - "$packed" <<'P' || fail "packed and single records differ: $packed, $(cat out)"
import json, sys
alone = json.loads(open("out").read())
assert alone["samples"] == 64, alone
assert abs(alone["loss"] - float(sys.argv[1])) < 1e-5, alone
P
ok "$train" chat.yaml --check-data
grep -q "trained tokens: 36%" out || fail "no share of trained tokens: $(cat out)"

# Mixing of samples.
ok "$train" c.yaml --output mixed 'data.transforms=[{one_hot: {fields: label, classes: 2}}]' \
  'loss=cross_entropy(logits, label, soft_label=true)' 'metrics.accuracy=accuracy(logits, argmax(label, axis=-1))' \
  'data.batch_augment=[{mixup: {fields: [v, label], alpha: 0.4}}]'
ok "$evaluate" mixed
expect 3 "one_hot" "$train" c.yaml --dry-run 'data.batch_augment=[{mixup: {fields: [v, label]}}]'
expect 3 "did you mean 'mixup'" "$train" c.yaml --dry-run 'data.batch_augment=[{mixpu: {fields: v}}]'
expect 3 "no field is an image" "$train" c.yaml --dry-run 'data.batch_augment=[{cutmix: {fields: v}}]'

# Datasets by name.
mkdir datasets
cat > datasets/points.yaml <<'Y'
description: two clouds of points
license: CC0
packages: {debian: points-data}
fields: {v: a place, label: above or below}
parts:
  train: {kind: csv, path: ../b.csv, fields: [{name: v, columns: [x, y]}, {name: label, scalar: true, dtype: int64}], range: [0, 200]}
  valid: {kind: csv, path: ../b.csv, fields: [{name: v, columns: [x, y]}, {name: label, scalar: true, dtype: int64}], range: [200, 240]}
Y
python3 - <<'P'
text = open("c.yaml").read()
start = text.index("  train:\n"); end = text.index("train: {epochs")
open("named.yaml", "w").write(text[:start] + """  train: {kind: dataset, name: points, range: [0, 100]}
  valid: {kind: dataset, name: points}
""" + text[end:])
P
ok "$train" named.yaml --output named
mv datasets elsewhere   # the config of the run names the files
ok "$evaluate" named
grep -q '"samples":40' out || fail "a run with a named dataset: $(cat out)"
mv elsewhere datasets
ok "$data"
grep -q "^points  *two clouds of points" out || fail "the list: $(cat out)"
ok "$data" points
grep -q "license: CC0" out && grep -q "samples: 40" out || fail "the description: $(cat out)"
ok "$data" points --json
python3 -c 'import json; d=json.loads(open("out").read()); assert d["parts"]["valid"]["samples"] == 40 and d["parts"]["train"]["usable"]' || fail "JSON: $(cat out)"
expect 3 "did you mean 'points'" "$data" pionts
expect 3 "no part 'test'" "$train" named.yaml --dry-run 'data.test={kind: dataset, name: points}'
expect 3 "did you mean 'points'" "$train" named.yaml --dry-run data.train.name=point
rm b.csv
expect 4 "points-data (debian)" "$data" points
finish
