#!/usr/bin/env bash
# Low-rank adapters: the base stays, the saved model is the sum and repeats the last evaluation;
# gradient norms in the log; details of an evaluation in evaluation.json and the report.
set -uo pipefail
command -v python3 > /dev/null || { echo "python3 is missing"; exit 77; }
source "$(dirname "${BASH_SOURCE[0]}")/../expect.bash"
evaluate="$bin/paddle-eval"
cd "$folder" || exit 1
python3 - <<'P'
import random
random.seed(3)
for name, slope, shift in (("d", 0.3, 0.0), ("e", -0.5, 0.5)):
    with open(name + ".csv", "w") as f:
        f.write("a,b,label\n")
        for i in range(240):
            a, b = random.gauss(0, 1), random.gauss(0, 1)
            f.write(f"{a:.4f},{b:.4f},{int(a + slope * b > shift)}\n")
P
cat > c.yaml <<'Y'
model:
  inputs: {x: "float32[batch, 2]"}
  model: |
    logits = linear(tanh(linear(x, 16, name="hidden")), 2, name="head")
  outputs: [logits]
loss: cross_entropy(logits, label)
metrics: {accuracy: "accuracy(logits, label)"}
optimizer: {name: adam, lr: 0.02}
data:
  batch_size: 32
  train: {kind: csv, path: d.csv, fields: &fields [{name: x, columns: [a, b]}, {name: label, scalar: true, dtype: int64}], range: [0, 200]}
  valid: {kind: csv, path: d.csv, fields: *fields, range: [200, 240]}
train: {epochs: 6, log_every: 10, log_gradient_norm: true}
Y
last() { python3 -c 'import json,sys; v=[l for l in map(json.loads, open(sys.argv[1])) if l["kind"]=="valid"][-1]; print(v["loss"], v["accuracy"])' "$1/metrics.jsonl"; }
number() { python3 -c 'import json; v=json.loads(open("out").read().strip().split("\n")[-1]); print(v["loss"], v["accuracy"])'; }

ok "$train" c.yaml --output base
grep -q '"kind":"train".*"gradient_norm":0' base/metrics.jsonl || fail "no gradient norm: $(head -1 base/metrics.jsonl)"
grep -q "gradient_norm" base/report.html || fail "no chart of gradient norms"

# Adapters on the weights of another run.
adapt=(data.train.path=e.csv data.valid.path=e.csv 'init={weights: base/model/model.safetensors}' 'lora={rank: 2}')
ok "$train" c.yaml --output tuned "${adapt[@]}"
ok "$evaluate" tuned
[[ "$(number)" == "$(last tuned)" ]] || fail "the merged model differs: $(number) against $(last tuned)"
[[ ! -s error ]] || fail "the evaluation warns"
ok "$evaluate" tuned/checkpoints/latest
[[ "$(number)" == "$(last tuned)" ]] || fail "the checkpoint differs: $(number) against $(last tuned)"
python3 - <<'P' || fail "the saved matrices are not base + alpha / rank * a b"
import json, struct
def read(path):
    data = open(path, "rb").read()
    size, = struct.unpack("<Q", data[:8])
    head = json.loads(data[8:8 + size])
    out = {}
    for name, t in head.items():
        if name != "__metadata__":
            a, b = t["data_offsets"]
            out[name] = (t["shape"], struct.unpack(f"<{(b - a) // 4}f", data[8 + size + a:8 + size + b]))
    return out
base, tuned, adapter = read("base/model/model.safetensors"), read("tuned/model/model.safetensors"), read("tuned/adapter.safetensors")
assert set(base) == set(tuned), (set(base) ^ set(tuned))
assert len(adapter) == 4, set(adapter)
for name in ("hidden.weight", "head.weight"):
    (rows, rank), a = adapter[name + ".lora_a"]
    (_, columns), b = adapter[name + ".lora_b"]
    assert rank == 2
    moved = 0
    for i in range(rows):
        for j in range(columns):
            product = 2 * sum(a[i * rank + k] * b[k * columns + j] for k in range(rank))
            moved = max(moved, abs(product))
            assert abs(tuned[name][1][i * columns + j] - base[name][1][i * columns + j] - product) < 1e-5
    assert moved > 1e-3
for name in ("hidden.bias", "head.bias"):
    assert base[name] == tuned[name], name
P
ok "$train" --resume tuned train.epochs=7
ok "$train" c.yaml --output head "${adapt[@]}" 'lora.only=[hidden.weight]' 'lora.also=[head.*]'
cmp -s <(tail -c 100 base/model/model.safetensors) <(tail -c 100 head/model/model.safetensors) && fail "lora.also trains nothing"
expect 3 "matches no matrix" "$train" c.yaml --dry-run 'lora={only: ["*.wieght"]}'
expect 3 "rank" "$train" c.yaml --dry-run 'lora={rank: 0}'

# Details.
ok "$evaluate" base --details details.json
python3 - <<'P' || fail "details: $(head -c 300 details.json)"
import json
d = json.load(open("details.json"))
assert sum(map(sum, d["confusion"])) == 40 == d["rows"], d["confusion"]
assert [c["support"] for c in d["classes"]] == [sum(row) for row in d["confusion"]]
assert len(d["worst"]) == 20 and d["worst"][0]["place"].rsplit(":", 1)[0].endswith("d.csv"), d["worst"][0]
assert len(d["curves"]) == 1 and 0.9 < d["curves"][0]["roc_auc"] <= 1
assert json.load(open("base/evaluation.json"))["confusion"] == d["confusion"]
P
for part in "Confusion matrix" "Samples with the least probable labels" "ROC"; do
  grep -q "$part" base/report.html || fail "the report has no '$part'"
done
ok "$train" c.yaml --output bare metrics=null
expect 2 "no metric of the config" "$evaluate" bare --details other.json
finish
