#!/usr/bin/env bash
# paddle runs, diff and sweep: their tables, continuing a sweep, and what is rejected; paddle score
# on files.
set -uo pipefail
command -v python3 > /dev/null || { echo "python3 is missing"; exit 77; }
source "$(dirname "${BASH_SOURCE[0]}")/../expect.bash"
says() { grep -qF -- "$1" out || fail "it does not say '$1': $(head -c 600 out)"; }
root="$PWD"
cd "$folder" || exit 1
cat > c.yaml <<'Y'
model:
  inputs: {x: "float32[batch, 4]"}
  model: [{linear: 2}]
  outputs: [logits]
loss: cross_entropy(logits, label)
metrics: {accuracy: "accuracy(logits, label)"}
optimizer: {name: sgd, lr: 0.1}
data:
  batch_size: 16
  train: &d {kind: random, size: 64, fields: [{name: x, shape: [4]}, {name: label, dtype: int64}]}
  valid: *d
train: {epochs: 2, log_every: 2}
Y
ok "$bin/paddle-sweep" c.yaml optimizer.lr=0.01,0.1 seed=1,2 --output s --dry-run
says "4 trials of c.yaml in s, compared by loss"
[[ ! -e s ]] || fail "a dry run writes"
ok "$bin/paddle-sweep" c.yaml optimizer.lr=0.01,0.1 seed=1,2 --output s --metric accuracy
says "best: s/"
[[ -f s/best.yaml && -f s/sweep.json && -f s/003-lr=0.1-seed=2/model/model.safetensors ]] || fail "the runs of a sweep"
# A trial that was stopped continues, the finished ones are kept.
before="$(stat -c %Y%Z s/000-lr=0.01-seed=1/metrics.jsonl)"
rm -r s/003-lr=0.1-seed=2
ok "$bin/paddle-sweep" c.yaml optimizer.lr=0.01,0.1 seed=1,2 --output s --metric accuracy --json
[[ "$(stat -c %Y%Z s/000-lr=0.01-seed=1/metrics.jsonl)" == "$before" ]] || fail "a finished trial ran again"
tail -1 out | python3 -c 'import json, sys; d = json.load(sys.stdin); v = [t["value"] for t in d["trials"]]; assert len(v) == 4 and v == sorted(v, reverse=True), v' || fail "the order of a sweep"
ok "$bin/paddle-sweep" c.yaml optimizer.lr=1e-3..1 data.batch_size=8..32 --random 3 --output r --dry-run
[[ "$(grep -c 'data.batch_size=' out)" == 3 ]] || fail "random trials"

ok "$bin/paddle-runs" s --sort accuracy
says "optimizer.lr"
says "finished"
ok "$bin/paddle-runs" s --json
python3 -c 'import json; d = json.load(open("out")); assert len(d["runs"]) == 4 and set(d["runs"][0]["settings"]) == {"optimizer.lr", "seed"}, d' || fail "paddle runs --json"
status="$(run_bounded "$bin/paddle-diff" s/000-lr=0.01-seed=1 s/002-lr=0.1-seed=1)"
[[ "$status" == 1 ]] || fail "diff of different runs gave $status"
says "optimizer.lr"
says "training loss differs from step 2 on"
ok "$bin/paddle-diff" s/000-lr=0.01-seed=1 s/000-lr=0.01-seed=1 --json

printf 'a cat sat\nthe end\n' > hyp
printf 'a cat sat down\nthe end\n' > ref
ok "$bin/paddle-score" wer hyp ref
says '"wer":0.16666666666666666'
ok "$bin/paddle-score" bleu hyp ref
says 'tok:13a'
python3 - "$root" <<'P'
import json, sys
d = json.load(open(sys.argv[1] + "/tests/metrics/scores/golden.json"))
json.dump(d["ground_truth"], open("truth.json", "w"))
json.dump(d["detections"], open("found.json", "w"))
json.dump(d["coco"], open("wanted.json", "w"))
P
ok "$bin/paddle-score" coco found.json truth.json
python3 -c 'import json
got, wanted = json.load(open("out")), json.load(open("wanted.json"))
assert abs(got["map"] - wanted[0]) < 1e-9 and abs(got["recall_large"] - wanted[11]) < 1e-9, got
assert got["categories"]["none"] is None, got' || fail "paddle score coco"

expect 2 "no key has several values" "$bin/paddle-sweep" c.yaml optimizer.lr=0.1
expect 2 "a range needs --random" "$bin/paddle-sweep" c.yaml optimizer.lr=0.1..1
expect 3 "unknown key 'lrr'" "$bin/paddle-sweep" c.yaml optimizer.lrr=0.1,1
expect 2 "neither 'loss' nor a metric" "$bin/paddle-sweep" c.yaml optimizer.lr=0.1,1 --metric acc
expect 2 "no such folder" "$bin/paddle-runs" nowhere
expect 2 "no run has the metric" "$bin/paddle-runs" s --sort acuracy
expect 2 "no such folder" "$bin/paddle-diff" s/nothing s
expect 2 "there is no metric 'blue'" "$bin/paddle-score" blue hyp ref
echo x > one
expect 4 "has 1 lines" "$bin/paddle-score" wer hyp one
expect 4 "is not JSON" "$bin/paddle-score" coco hyp truth.json
finish
