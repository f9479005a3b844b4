#!/usr/bin/env bash
# Data in passes by day and hour: a run over passes has the bits of one over all files with the same
# days of tables, also stopped and resumed and on two ranks; passes that are late, missing or never
# come are named; evaluation of a pass before it is trained; sections that are wrong.
set -uo pipefail
command -v python3 > /dev/null || { echo "python3 is missing"; exit 77; }
source "$(dirname "${BASH_SOURCE[0]}")/../expect.bash"
cd "$folder" || exit 1
python3 - <<'P'
import os, random
random.seed(6)
for day in (30, 31, 32):
    date = f"202601{day}" if day < 32 else "20260201"
    for hour in range(22, 24):
        folder = f"logs/{date}/{hour}"
        os.makedirs(folder)
        for part in range(2):
            with open(f"{folder}/part-{part}", "w") as f:
                for _ in range(10):
                    user = random.choice([random.randrange(6), 100 * day + hour])
                    f.write(f"1 {int(random.random() < 0.4)} 1 {user}\n")
        open(f"{folder}/to.done", "w").close()
P
# Hours from 0 to 21 of each day are passes, too.
cat > c.yaml <<'Y'
model:
  name: clicks
  inputs: {user: "uint64[batch]"}
  model: |
    logit = sum(sparse_embedding(user, 3, name="user"), 1)
  outputs: [logit]
loss: binary_cross_entropy_with_logits(logit, label)
metrics: {auc: "auc(logit, label)"}
optimizer: {name: adagrad, lr: 0.1}
tables: {user: {statistics: {show: 1, click: label}, evict: {unseen_days: 2, decay: 0.5}}}
data:
  batch_size: 10
  shuffle: false
  passes:
    path: "logs/{day:%Y%m%d}/{hour:%H}/part-*"
    done: to.done
    from: 2026-01-30/22
    to: 2026-02-01/23
    wait: 10ms
    predict_first: true
    shrink: 1 day
  train:
    kind: slots
    slots: [click, user]
    fields:
      - {name: label, columns: click, scalar: true}
      - {name: user, kind: keys, dtype: uint64, scalar: true}
train: {checkpoint_every: 1 epoch, keep_checkpoints: 100}
Y
sed -e '/passes:/,/shrink:/d' -e 's,kind: slots,kind: slots\n    path: logs/*/*/part-*,' \
  -e 's/train: {checkpoint.*/train: {epochs: 1, table_day: 4}/' c.yaml > all.yaml
same() {  # RUN, RUN
  cmp -s "$1/checkpoints/latest/model.safetensors" "$2/checkpoints/latest/model.safetensors" &&
    cmp -s "$1/checkpoints/latest/optimizer.safetensors" "$2/checkpoints/latest/optimizer.safetensors" ||
    fail "$1 has other tensors than $2"
}
ok "$train" c.yaml --output passes
cat "$folder/out" "$folder/error" > passes.out
grep -q "pass 2026-01-30/22: 20 samples" passes.out || fail "a pass is not named"
grep -q "the pass 2026-01-31/00 is missing" passes.out || fail "a missing pass is not named"
ok "$train" all.yaml --output all
# The last day of the other run ends with its last update.
python3 - <<'P' || fail "passes are not the whole"
import json
lines = [json.loads(line) for line in open("passes/metrics.jsonl")]
passes = [line for line in lines if line["kind"] == "pass"]
assert [line["step"] for line in passes] == [0, 2, 4, 6, 8, 10], passes
assert all(0 <= line["auc"] <= 1 for line in passes[1:]), passes
P
cmp -s passes/checkpoints/latest/model.safetensors all/checkpoints/latest/model.safetensors ||
  fail "a run over passes is not one over all files"
# Stopped within a pass and at its end, and resumed.
for steps in 3 4; do
  ok "$train" c.yaml train.steps=$steps --output halves$steps
  ok "$train" --resume halves$steps train.steps=0
  same halves$steps passes
  diff <(grep '"pass"' passes/metrics.jsonl | sed 's/"learning_rate.*//') \
    <(grep '"pass"' halves$steps/metrics.jsonl | sed 's/"learning_rate.*//') > /dev/null ||
    fail "the passes of a resumed run have other metrics"
done
ok "$train" c.yaml parallel.data=2 --simulate 2 --output two
grep -c '"pass"' two/metrics.jsonl | grep -qx 6 || fail "two ranks evaluate other passes"
# A pass that comes after it was passed over, and one that the run waits for.
mv logs/20260131/22 later
(for _ in $(seq 400); do
  grep -q "2026-01-31/22 is missing" "$folder/error" && break
  sleep 0.02
done
mv later logs/20260131/22) &
ok "$train" c.yaml data.passes.from=2026-01-31/22 --output late
wait
cat "$folder/out" "$folder/error" | grep -q "the pass 2026-01-31/22 has come after" || fail "a late pass is not named"
ok "$train" c.yaml data.passes.from=2026-02-01/22 --output comes
rm logs/20260201/23/to.done
(sleep 2; touch logs/20260201/23/to.done) &
ok "$train" c.yaml data.passes.from=2026-02-01/22 data.passes.wait=60 --output waits
wait
cat "$folder/out" "$folder/error" | grep -q "waiting for the pass 2026-02-01/23" || fail "waiting is not named"
same waits comes
# Nothing comes.
expect 4 "no pass is there; the first one, 2027-01-01/00" "$train" c.yaml data.passes.from=2027-01-01/00 \
  data.passes.to=2027-01-01/01 --output x
expect 3 "data.passes.from: 'soon'" "$train" c.yaml data.passes.from=soon --output x
expect 3 "data.passes.from: '2026-02-30/00'" "$train" c.yaml data.passes.from=2026-02-30/00 --output x
expect 3 "data.passes.to: is before" "$train" c.yaml data.passes.to=2025-02-01/00 --output x
expect 3 "names no day" "$train" c.yaml "data.passes.path=logs/part-*" data.passes.from=2026-01-01 data.passes.to=2026-01-02 --output x
expect 3 "is the same for several passes" "$train" c.yaml "data.passes.path=logs/{day:%Y}/{hour:%H}/part-*" --output x
expect 3 "whole days" "$train" c.yaml data.passes.shrink=1h --output x
expect 3 "train.epochs: has no effect with data.passes" "$train" c.yaml train.epochs=2 --output x
expect 3 "train.table_day: has no effect" "$train" c.yaml "train.table_day=2 epochs" --output x
expect 3 "the field 'label' would learn" "$train" c.yaml 'data.train.fields=[{name: label, columns: click, scalar: true, scaling: standard}, {name: user, kind: keys, dtype: uint64, scalar: true}]' --output x
expect 3 "doen" "$train" c.yaml data.passes.doen=x --output x
finish
