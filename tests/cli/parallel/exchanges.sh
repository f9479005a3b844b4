#!/usr/bin/env bash
# The record of exchanges of each rank survives what ends it, and names the exchange that a rank did
# not enter, with the line of the model: after SIGKILL and SIGSTOP of any rank, while the run goes
# on, simulated, and for ranks with different programs. Wrong files are errors of one line.
set -uo pipefail
command -v python3 > /dev/null || { echo "python3 is missing"; exit 77; }
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
source "$here/../expect.bash"
launch="$bin/paddle-launch"
exchanges="$bin/paddle-exchanges"
python3 - "$folder" <<'P'
import random, sys
random.seed(3)
with open(sys.argv[1] + "/rows.csv", "w") as f:
    f.write(",".join(f"p{i}" for i in range(32)) + ",label\n")
    for i in range(64):
        f.write(",".join(f"{random.gauss(0, 1):.4f}" for _ in range(32)) + f",{i % 4}\n")
P
cat > "$folder/net.yaml" <<'Y'
model:
  inputs: {x: "float32[batch, 32]"}
  model: |
    h = relu(linear(x, 256))
    h = relu(linear(h, 256))
    logits = linear(h, 4)
  outputs: [logits]
loss: cross_entropy(logits, label)
optimizer: {name: adamw, lr: 1e-3}
data:
  batch_size: 24
  train:
    kind: csv
    path: rows.csv
    fields: [{name: x, columns: ["p*"]}, {name: label, scalar: true, dtype: int64}]
train: {steps: 1000000, log_every: 1, checkpoint_every: never}
parallel: {data: 3, bucket: 64 KiB}
Y
cd "$folder" || exit 1

# --- a run that ends in order, simulated and as processes ---
for how in "$train net.yaml --simulate 3" "$launch -n 3 $train net.yaml"; do
  # shellcheck disable=SC2086
  ok $how train.steps=30 --output done --overwrite
  [[ "$(ls done/ranks)" == $'0.flight\n1.flight\n2.flight' ]] || fail "the records of $how are $(ls done/ranks)"
  "$exchanges" done --json > out 2> error || fail "exchanges of a run that has ended gives $?: $(cat out)"
  python3 - <<'P' || fail "the JSON of a run that has ended: $(cat out)"
import json
o = json.load(open("out"))
assert o["divergence"] is None and len(o["ranks"]) == 3
for rank in o["ranks"]:
    assert rank["end"] == "ended" and rank["step"] == 30 and rank["last"]["complete"], rank
    assert rank["records"] > 60, rank
P
done

# --- any rank is killed or stopped: the launcher and the command name it ---
for signal in KILL STOP; do
  for rank in 0 1 2; do
    "$launch" -n 3 --dead-after 2 "$train" net.yaml --output hang --overwrite > out 2> error &
    launcher=$!
    for _ in $(seq 900); do grep -q "step 20 " out && break; sleep 0.05; done
    victim="$(tr ' ' '\n' < "/proc/$launcher/task/$launcher/children" | sed -n $((rank + 1))p)"
    kill -"$signal" "$victim"
    wait "$launcher"
    [[ $? == 7 ]] || fail "SIG$signal of rank $rank should end the run with 7"
    grep -qE "^error: rank $rank .*; rank $rank (did not enter|ended in) (all_reduce|all_gather|barrier) [0-9]+ of step [0-9]+" error ||
      fail "SIG$signal of rank $rank is not explained by the launcher"
    (($(grep -c ^error: error) == 1)) || fail "SIG$signal of rank $rank: several errors"
    expect_status=0
    "$exchanges" hang > out 2> error || expect_status=$?
    [[ $expect_status == 1 ]] || fail "exchanges after SIG$signal of rank $rank gives $expect_status: $(cat out)"
    grep -qE "^first difference: rank $rank (did not enter|ended in) " out || fail "SIG$signal of rank $rank: $(cat out)"
  done
done
grep -q "net.yaml:[0-9]" out || grep -q "all_gather" out || fail "no line of the model: $(cat out)"

# --- bad input ---
most_lines=1
ok "$train" net.yaml train.steps=2 parallel.data=1 "parallel.bucket=4 MiB" --output one
[[ ! -e one/ranks ]] || fail "a run of one rank keeps records"
expect 2 "has no records of exchanges" "$exchanges" one
expect 2 "has no records of exchanges" "$exchanges" nowhere
cp -r done bad
head -c 1000 done/ranks/1.flight > bad/ranks/1.flight
expect 4 "bad/ranks/1.flight: is not a record of exchanges of this version" "$exchanges" bad
rm bad/ranks/1.flight
"$exchanges" bad > out 2> error || fail "a record that is missing"
grep -q "rank 1 has no record" out || fail "a missing record is not told: $(cat out)"
finish
