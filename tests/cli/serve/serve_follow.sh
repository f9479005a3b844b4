#!/usr/bin/env bash
# Versions for serving: what a run publishes is what a recount of its checkpoints says; a run that is
# killed and continued publishes the same; paddle-infer opens a store; paddle-serve --follow answers
# each request by one version, also while versions are published, rolled back and damaged.
set -uo pipefail
command -v python3 > /dev/null || { echo "python3 is missing"; exit 77; }
source "$(dirname "${BASH_SOURCE[0]}")/../expect.bash"
here="$PWD/tests/cli/serve"
ps="$bin/paddle-ps"
cd "$folder" || exit 1
python3 - <<'P'
import random
random.seed(5)
with open("data.csv", "w") as f:
    f.write("user,label\n")
    for i in range(4000):
        user = random.randrange(i // 8, i // 8 + 150)
        f.write(f"{user},{1 if user % 3 == 0 else 0}\n")
with open("x.csv", "w") as f:
    f.write("user\n" + "".join(f"{user}\n" for user in range(0, 640, 10)))
P
cat > c.yaml <<'Y'
model:
  name: ctr
  inputs: {user: "uint64[batch]"}
  model: |
    logit = sum(sparse_embedding(user, 8, name="user"), 1)
  outputs: [logit]
loss: binary_cross_entropy_with_logits(logit, label)
optimizer: {name: adagrad, lr: 0.5}
tables: {user: {statistics: {show: 1, click: label}, evict: {unseen_days: 3, decay: 0.9}}}
parameter_server:
  publish: {to: store, base: 20, delta: 5, base_score: 0.5, delta_score: 0.3, delta_days: 1, dtype: float16}
data:
  batch_size: 100
  shuffle: false
  train: {kind: csv, path: data.csv, fields: [{name: user, kind: keys, dtype: uint64, scalar: true}, {name: label, scalar: true}]}
train: {epochs: 1, table_day: 5, keep_checkpoints: 100}
Y
dump_versions() {  # STORE, FOLDER
  mkdir -p "$2"
  for version in "$1"/*/; do ok "$ps" dump "$version" --overwrite -o "$2/$(basename "$version").csv"; done
}
ok "$train" c.yaml --output run
grep -q "published version 20: a base of" out || fail "the base is not named"
grep -q "published version 25: a delta of" out || fail "the delta is not named"
[[ "$(< store/CURRENT)" == 40 ]] || fail "CURRENT is $(< store/CURRENT)"
[[ "$(ls store/25/tables/user)" == $'base-20\ndelta-25\nmanifest.json' ]] || fail "store/25 has $(ls store/25/tables/user)"
dump_versions store dumps
python3 "$here/published_rows.py" run store dumps 2> error || fail "versions have other rows than the checkpoints say"
ok "$ps" verify store/25
ok "$ps" count store --json
# Killed at any moment and continued, also while a version is made: the same versions.
sed 's/to: store/to: other/' c.yaml > other.yaml
"$train" other.yaml --output killed > out 2> error & pid=$!
for delay in 0.35 0.5 0.4 0.6 0.45 0.5; do
  sleep $delay
  kill -9 $pid 2> /dev/null
  wait $pid 2> /dev/null
  if [[ -e other/CURRENT ]]; then
    ok "$infer" other x.csv --output y.csv
    ok "$ps" verify other
  fi
  if [[ -e killed/checkpoints/latest ]]; then "$train" --resume killed > out 2> error & pid=$!
  else rm -rf killed; "$train" other.yaml --output killed > out 2> error & pid=$!; fi
done
wait $pid || fail "the continued run"
dump_versions other others
diff -r dumps others > /dev/null || fail "a killed run has published other versions: $(diff -rq dumps others | head -3)"
[[ -z "$(ls -A other | grep '^\.')" && ! -e killed/publishing.txt ]] || fail "something is left of a version"
# A store that is followed.
mkdir wanted
ok "$ps" publish run/checkpoints/5 --to followed
for step in 10 15 20 25 30; do ok "$ps" publish run/checkpoints/$step --to predicted; done
ok "$ps" publish run/checkpoints/5 --to predicted --base --json
grep -q '"kind":"base"' out || fail "--base wrote a delta"
for step in 5 10 15 20 25 30; do
  ok "$infer" predicted/$step x.csv --output y.jsonl
  python3 - $step <<'P' || fail "predictions of version $step"
import json, sys
values = [json.loads(line) for line in open("y.jsonl")]
json.dump([next(v for k, v in row.items() if "logit" in k) for row in values], open(f"wanted/{sys.argv[1]}.json", "w"))
P
done
"$bin/paddle-serve" followed --follow --port 0 --max-batch 16 > serve.log 2>&1 & server=$!
for i in $(seq 200); do grep -q listening serve.log && break; sleep 0.1; done
url="$(grep -o 'http://[^ ]*' serve.log | head -1)"
python3 "$here/follow_client.py" "$url" followed run "$ps" wanted 2> error || fail "the followed store"
kill $server
wait $server
# Rows in fewer bits.
ok "$ps" publish run/checkpoints/40 --to eighth --dtype int8
ok "$infer" eighth x.csv --output int8.jsonl
ok "$infer" run/checkpoints/40 x.csv --output exact.jsonl
python3 - <<'P' || fail "int8 rows predict something else"
import json
a, b = ([next(v for k, v in json.loads(line).items() if "logit" in k) for line in open(name)] for name in ("int8.jsonl", "exact.jsonl"))
largest = max(abs(x) for x in b)
assert largest > 0.5 and all(abs(x - y) < 8 * largest / 127 for x, y in zip(a, b))
assert any(x != y for x, y in zip(a, b))
P
# Commands and configs with errors.
expect 2 "has no version '17'" "$ps" rollback store 17
expect 2 "has a version of the step of" "$ps" publish run/checkpoints/40 --to store
expect 2 "--follow is for a store" "$bin/paddle-serve" run --follow --dry-run
echo ../run > predicted/CURRENT
expect 5 "is not a version in this folder" "$infer" predicted x.csv --output y.csv
bad() { expect 3 "$1" "$train" c.yaml --output bad --dry-run "parameter_server.publish=$2"; }
bad "'to'" "{base: 20}"
bad "publish.delta: expected 'N', 'N epochs'" "{to: x, delta: often}"
bad "dtype" "{to: x, dtype: int4}"
finish
