#!/usr/bin/env bash
# report.html and what it shows: intervals of metrics, gradient norms, waiting for data, classes and
# curves of many classes, samples with several labels, pictures, and runs that end before their end.
set -uo pipefail
command -v python3 > /dev/null || { echo "python3 is missing"; exit 77; }
source "$(dirname "${BASH_SOURCE[0]}")/../expect.bash"
evaluate="$bin/paddle-eval"
shows() { grep -qF -- "$2" "$1/report.html" || fail "the report of $1 lacks '$2'"; }
lacks() { if grep -qF -- "$2" "$1/report.html"; then fail "the report of $1 has '$2'"; fi; }
cd "$folder" || exit 1
python3 - <<'P'
import random
random.seed(3)
with open("d.csv", "w") as f:
    f.write("a,b,two,kind,t0,t1,t2\n")
    for i in range(400):
        a, b = random.gauss(0, 1), random.gauss(0, 1)
        tags = [int(a > 0), int(b > 0), int(random.random() < 0.3)]
        f.write(f"{a:.4f},{b:.4f},{int(a + b > 0)},{i % 50}," + ",".join(map(str, tags)) + "\n")
P
cat > c.yaml <<'Y'
model:
  params: {n: 2}
  inputs: {x: "float32[batch, 2]"}
  model: "logits = linear(x, n)"
  outputs: [logits]
loss: cross_entropy(logits, two)
metrics: {accuracy: "accuracy(logits, two)", error: "1 - accuracy(logits, two)", top: "average(max(logits))"}
optimizer: {name: sgd, lr: 0.1}
data:
  batch_size: 32
  train: &rows
    kind: csv
    path: d.csv
    fields:
      - {name: x, columns: [a, b]}
      - {name: two, scalar: true, dtype: int64}
      - {name: kind, scalar: true, dtype: int64}
      - {name: tags, columns: [t0, t1, t2], dtype: int64}
  valid: *rows
train: {epochs: 2, log_every: 5}
Y

ok "$train" c.yaml --output run
ok "$evaluate" run
python3 - <<'P' || fail "intervals and times of the run: $(tail -2 run/metrics.jsonl)"
import json
lines = [json.loads(l) for l in open("run/metrics.jsonl")]
valid = [l for l in lines if l["kind"] == "valid"][-1]
low, high = valid["intervals"]["accuracy"]
assert low < valid["accuracy"] < high, valid
half = 1.96 * (valid["accuracy"] * (1 - valid["accuracy"]) / 400) ** 0.5  # of a rate
assert 0.5 * half < (high - low) / 2 < 2 * half, (half, low, high)
error = valid["intervals"]["error"]
assert abs(error[0] - (1 - high)) < 1e-12 and abs(error[1] - (1 - low)) < 1e-12, valid
assert "top" not in valid["intervals"], "a value of the whole batch has no interval"
assert json.load(open("out"))["intervals"] == valid["intervals"]
assert all(0 <= l["data_wait"] <= 1 for l in lines if l["kind"] == "train")
assert not any("gradient_norm" in l for l in lines)
P
for part in "Finished after 26 steps." "delete-a-group jackknife" 'class="interval"' "waiting for data" \
  "train.log_gradient_norm" "d.csv" "<h2>Config</h2>"; do
  shows run "$part"
done
# Small validation sets have no intervals.
ok "$train" c.yaml --output few 'data.valid.range=[0, 8]'
grep -q '"intervals"' few/metrics.jsonl && fail "8 samples have intervals"

# Clipping computes the norm; a run may begin or cease to clip.
ok "$train" c.yaml --output clipped clip.global_norm=1 train.epochs=1
shows clipped '<figcaption>gradient_norm'
ok "$train" --resume clipped train.epochs=2 clip=null
ok "$train" --resume clipped train.epochs=3 clip.global_norm=1
[[ "$(tail -2 clipped/metrics.jsonl)" == *'"gradient_norm"'* ]] || grep '"train"' clipped/metrics.jsonl | tail -1 | grep -q gradient_norm || fail "no norm after clipping began again"
ok "$train" c.yaml --output silent clip.global_norm=1 train.log_gradient_norm=false
grep -q gradient_norm silent/metrics.jsonl && fail "a norm that is not wanted"

# Names that metrics.jsonl and paddle-eval use.
for name in samples model data gradient_norm data_wait intervals step loss.g; do
  expect 3 "metric '$name': the name is a key" "$train" c.yaml --dry-run "metrics={$name: 'accuracy(logits, two)'}"
done

# Many classes: the worst ones, averages, and a note.
ok "$train" c.yaml --output many model.params.n=50 'loss=cross_entropy(logits, kind)' 'metrics={f1: "f1(logits, kind, average=\"macro\")"}'
shows many "The 40 of 50 classes with the most errors"
shows many "Shown are the micro average and the 5 of 50 classes"
shows many "micro average, area"
shows many "Macro averages"
# Samples with several labels have a table, curves and worst samples.
ok "$train" c.yaml --output tags model.params.n=3 'loss=binary_cross_entropy_with_logits(logits, cast(tags, "float32"))' 'metrics={f1: "f1(logits, tags, multilabel=true, average=\"macro\")"}'
python3 - <<'P' || fail "details of several labels: $(head -c 300 tags/evaluation.json)"
import json
d = json.load(open("tags/evaluation.json"))
assert d["multilabel"] and d["rows"] == 400 and "confusion" not in d
assert len(d["classes"]) == 3 == len(d["curves"]) and len(d["worst"]) == 20, d["classes"]
valid = [l for l in map(json.loads, open("tags/metrics.jsonl")) if l["kind"] == "valid"][-1]
assert abs(sum(c["f1"] for c in d["classes"]) / 3 - valid["f1"]) < 1e-12
P
shows tags "probability of the truth"
lacks tags "Confusion matrix"
# Pictures of the worst samples are PNG files that others read.
ok "$train" "$OLDPWD/configs/quickstart/digits.yaml" 'data.train={kind: digits, size: 256}' 'data.valid={kind: digits, size: 64, seed: 3}' train.epochs=1 --output digits
python3 - <<'P' || fail "pictures in the report"
import base64, json, re, struct, zlib
pictures = re.findall(r'src="data:image/png;base64,([^"]*)"', open("digits/report.html").read())
assert len(pictures) == 20, len(pictures)
for picture in pictures:
    data = base64.b64decode(picture)
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    at, chunks = 8, {}
    while at < len(data):
        size, kind = struct.unpack(">I4s", data[at:at + 8])
        body = data[at + 8:at + 8 + size]
        assert struct.unpack(">I", data[at + 8 + size:at + 12 + size])[0] == zlib.crc32(kind + body)
        chunks[kind] = body
        at += 12 + size
    assert struct.unpack(">IIBB", chunks[b"IHDR"][:10]) == (28, 28, 8, 0)
    rows = zlib.decompress(chunks[b"IDAT"])
    assert len(rows) == 28 * 29 and max(rows) > 200
P

# Runs that end before their end have a report.
expect 4 "the loss is" "$train" c.yaml --output diverged optimizer.lr=1e38
shows diverged "Stopped after step"
shows diverged "the loss is"
shows diverged "<figcaption>loss"
"$train" c.yaml --output stopped train.epochs=100000 train.evaluate_every=never > out 2> error &
process=$!
for _ in {1..200}; do [[ -s stopped/metrics.jsonl ]] && break; sleep 0.1; done
kill -INT "$process"
wait "$process"
[[ "$?" == 130 ]] || fail "an interrupted run ends otherwise"
shows stopped "Interrupted at step"
shows stopped "<figcaption>loss"
finish
