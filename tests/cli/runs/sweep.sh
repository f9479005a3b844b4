#!/usr/bin/env bash
# paddle sweep --halving, its page and how it continues; paddle-train --until; paddle lr-range.
set -uo pipefail
command -v python3 > /dev/null || { echo "python3 is missing"; exit 77; }
source "$(dirname "${BASH_SOURCE[0]}")/../expect.bash"
ok() { [[ "$(run_bounded "$@")" == 0 ]] || fail "$*: $(tail -c 400 err)"; }
says() { grep -qF -- "$1" out || fail "it does not say '$1': $(head -c 600 out)"; }
cd "$folder" || exit 1
cat > c.yaml <<'Y'
model:
  inputs: {image: "uint8[batch, 1, 28, 28]"}
  model: [{cast: float32}, flatten, {scale: 0.004}, {linear: 10}]
  outputs: [logits]
loss: cross_entropy(logits, label)
metrics: {accuracy: "accuracy(logits, label)"}
optimizer: {name: sgd, lr: 0.1}
schedule: {name: cosine}
data:
  batch_size: 32
  train: {kind: digits, size: 1024}
  valid: {kind: digits, size: 256, seed: 1}
train: {epochs: 2, best: accuracy}
Y
# --until ends after a step or a share of the steps, and --resume ends as a run in one piece does.
ok "$bin/paddle-train" c.yaml --output whole
ok "$bin/paddle-train" c.yaml --output parts --until 20
says "stopped at step 20 of 64, as asked"
grep -q '"valid"' parts/metrics.jsonl || fail "no evaluation after --until"
ok "$bin/paddle-train" --resume parts --until 50%
says "stopped at step 32 of 64"
ok "$bin/paddle-train" --resume parts
cmp whole/model/model.safetensors parts/model/model.safetensors || fail "--until changes the model"
for bad in 0 -3 1.5 101% x; do
  expect 2 "expected a step such as 400" "$bin/paddle-train" c.yaml --output q --until="$bad"
done

# Nine trials a little, three for three times as long, one to the end.
sweep=("$bin/paddle-sweep" c.yaml optimizer.lr=1e-5,1e-4,1e-3,3e-3,1e-2,3e-2,0.1,0.3,1
       --output h --halving 3)
ok "${sweep[@]}" --dry-run
says "round: 9 trials up to 11.1% of their steps"
says "round: 1 trials up to 100% of their steps"
ok "${sweep[@]}"
python3 - <<'P' || fail "the record of a sweep by halving"
import json
trials = json.load(open("h/sweep.json"))["trials"]
shares = [round(t["trained"], 3) for t in trials]
assert shares == [1] + [0.333] * 2 + [0.111] * 6, shares
assert trials[0]["value"] >= 0.8 and [len(t["rounds"]) for t in trials[:3]] == [3, 2, 2]
steps = [json.loads(l)["step"] for l in open(trials[8]["run"] + "/metrics.jsonl") if '"end"' in l]
assert steps == [7], steps
P
grep -q "<h2>Trials</h2>" h/sweep.html && grep -q "accuracy by optimizer.lr" h/sweep.html ||
  fail "the page of a sweep"
before="$(cat h/*/metrics.jsonl | cksum)"
ok "${sweep[@]}"
[[ "$(cat h/*/metrics.jsonl | cksum)" == "$before" ]] || fail "finished rounds were trained again"
expect 2 "has a sweep with --halving 3" "$bin/paddle-sweep" c.yaml optimizer.lr=0.1,1 --output h
# A record that is lost costs the rounds, not the runs.
echo '{"halving": 3' > h/sweep.json
ok "${sweep[@]}"
expect 2 "--halving" "$bin/paddle-sweep" c.yaml optimizer.lr=0.1,1 --halving 1

ok "$bin/paddle-lr-range" c.yaml --output range --from 1e-4 --to 1e3 --json
says "suggested: optimizer.lr="
tail -1 out | python3 -c 'import json, sys
d = json.load(sys.stdin)
assert 1e-3 < d["suggested"] <= d["lowest"] / 9.99 and d["lowest"] < 1e3, d' || fail "paddle lr-range"
[[ "$(head -1 range/rates.csv)" == step,learning_rate,loss,smoothed ]] || fail "rates.csv"
grep -q "loss by learning rate" range/rates.html || fail "rates.html"
# A run that diverges is part of the test.
ok "$bin/paddle-lr-range" c.yaml --output far --from 1e-2 --to 1e30 --steps 60
says "training diverges from"
# An interrupted test is continued to the same numbers.
"$bin/paddle-lr-range" c.yaml --output cut --from 1e-4 --to 1e3 --steps 3000 > out 2> err &
pid=$!
until [[ -s cut/run/metrics.jsonl ]] || ! kill -0 $pid 2> /dev/null; do sleep 0.1; done
kill -INT $pid
wait $pid
[[ $? == 130 ]] || fail "an interrupted test ends with $?"
grep -q -- "--resume continues" err || fail "it does not name --resume: $(cat err)"
expect 2 "other settings: optimizer.lr" "$bin/paddle-lr-range" c.yaml --output cut --from 1e-3 --to 1e3 --steps 3000 --resume
ok "$bin/paddle-lr-range" c.yaml --output cut --from 1e-4 --to 1e3 --steps 3000 --resume
ok "$bin/paddle-lr-range" c.yaml --output whole --from 1e-4 --to 1e3 --steps 3000
cmp cut/rates.csv whole/rates.csv || fail "a continued test has other rates"
ok "$bin/paddle-lr-range" c.yaml --output range --from 1e-4 --to 1e3 --resume
expect 2 "is not below" "$bin/paddle-lr-range" c.yaml --from 1 --to 0.1
expect 4 "the loss never falls" "$bin/paddle-lr-range" c.yaml --output up --from 300 --to 1e4 --steps 20
finish
