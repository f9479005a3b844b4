#!/usr/bin/env bash
# Slot files: DeepFM trains from several of them, shuffled as a whole; broken lines stop or are skipped.
set -uo pipefail
command -v python3 > /dev/null || { echo "python3 is missing"; exit 77; }
source "$(dirname "${BASH_SOURCE[0]}")/../expect.bash"
model="$PWD/models/deepfm.yaml"
cd "$folder" || exit 1
python3 - <<'P'
import random
random.seed(3)
for part in range(4):
    with open(f"part-{part}", "w") as f:
        for _ in range(250):
            user, item = random.randrange(20), random.randrange(30)
            dense = [random.gauss(0, 1), random.random()]
            click = int(random.random() < (0.95 if user % 3 == 0 or dense[0] > 1 else 0.05))
            f.write(f"1 {click} 2 {dense[0]:.3f} {dense[1]:.3f} 1 u{user} 1 i{item}\n")
P
cat > c.yaml <<Y
model: $model
params: {rows: 400, fields: 2, numbers: 2, width: 4, hidden: [32]}
loss: binary_cross_entropy_with_logits(logit, label)
metrics: {auc: "auc(logit, label)"}
optimizer: {name: adam, lr: 0.01}
data:
  batch_size: 50
  train: &rows
    kind: slots
    path: part-*
    slots: [click, dense, user, item]
    fields:
      - {name: label, columns: click, scalar: true}
      - {name: dense, kind: numbers, shape: [2]}
      - {name: sparse, columns: [user, item], kind: categorical, buckets: 200, per_column: true}
    split: {train: 0.8, valid: 0.2}
    part: train
  valid: {kind: slots, path: part-*, slots: [click, dense, user, item], fields: *fields, split: {train: 0.8, valid: 0.2}, part: valid}
train: {epochs: 20}
Y
sed -i 's/^    fields:$/    fields: \&fields/' c.yaml
ok "$train" c.yaml --output run
python3 - <<'P' || fail "DeepFM learns nothing: $(tail -2 run/metrics.jsonl)"
import json, sys
lines = [json.loads(line) for line in open("run/metrics.jsonl")]
sys.exit(not [line for line in lines if line["kind"] == "valid"][-1]["auc"] > 0.8)
P
ok "$train" c.yaml --check-data
grep -q "sparse" out || fail "--check-data does not name the fields"

sed -i '7s/.*/1 1 2 0.5/' part-2
expect 4 "part-2:7: slot 'dense' should have 2 values, the line ends after 1" "$train" c.yaml --output bad
ok "$train" c.yaml --output skipped data.on_bad_sample=skip train.epochs=1
grep -q "part-2" skipped/skipped.jsonl || fail "the skipped line is not listed"
expect 4 "did you mean 'click'" "$train" c.yaml --output bad 'data.train.fields=[{name: label, columns: clik, scalar: true}]'
expect 3 "slots" "$train" c.yaml --output bad 'data.train.slots=[]'
expect 4 "no file matches" "$train" c.yaml --output bad 'data.train.path=nothing-*'
finish
