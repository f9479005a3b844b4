#!/usr/bin/env bash
# A trained forecaster continues the series of a CSV file: the values after its last row, in the
# units of the file, with rows in any order of time and several series in one file.
set -uo pipefail
command -v python3 > /dev/null || { echo "python3 is missing"; exit 77; }
source "$(dirname "${BASH_SOURCE[0]}")/../expect.bash"
cd "$folder" || exit 1
python3 - <<'P'
import datetime
rows = [(datetime.date(2023, 1, 1) + datetime.timedelta(i), i) for i in range(60)]
open("s.csv", "w").write("day,y\n" + "".join(f"{d},{i}\n" for d, i in rows))
later = [(datetime.date(2023, 3, 2) + datetime.timedelta(i), 60 + i) for i in range(4)]
open("history.csv", "w").write("day,y\n" + "".join(f"{d},{v}\n" for d, v in later))
open("newest.csv", "w").write("day,y\n" + "".join(f"{d},{v}\n" for d, v in reversed(later)))
open("padded.csv", "w").write("day,y\n" + "".join(f"{d},{v}\n" for d, v in later) + "2023-03-06,\n2023-03-07,NA\n")
open("short.csv", "w").write("day,y\n2023-03-02,60\n")
open("mixed.csv", "w").write("day,y\n2023-03-02,60\n03.03.2023,61\n")
open("shops.csv", "w").write("day,shop,y\n" + "".join(f"{d},north,{v}\n{d},south,{v + 100}\n" for d, v in later))
P
cat > c.yaml <<'Y'
model:
  inputs: {past: "float32[batch, 4, 1]"}
  model: |
    forecast = past[:, -2:, :] + param("w", [1], init=zeros)
    return forecast
  outputs: [forecast]
loss: mse_loss(forecast, future)
optimizer: {name: sgd, lr: 0}
data: {batch_size: 4, train: {kind: series, path: s.csv, targets: [y], time: day, history: 4, horizon: 2, scaling: standard}}
train: {epochs: 1}
Y
ok "$train" c.yaml
# The model repeats the last two values: 62 and 63.
for file in history newest padded; do
  ok "$infer" runs/c $file.csv --output $file.jsonl
  python3 - $file <<'P' || fail "the forecast of $file: $(cat $file.jsonl)"
import json, sys
rows = [json.loads(line) for line in open(sys.argv[1] + ".jsonl")]
assert len(rows) == 1 and all(abs(a[0] - b) < 1e-3 for a, b in zip(rows[0]["forecast"], [62, 63])), rows
P
done
expect 4 "has 1 rows with values, a forecast is made from the last 4" "$infer" runs/c short.csv
expect 4 "'03.03.2023' is not a time in the form of those before it" "$infer" runs/c mixed.csv
ok "$train" c.yaml 'data.train={kind: series, path: shops.csv, targets: [y], time: day, group: shop, history: 2, horizon: 2}' 'model={inputs: {past: "float32[batch, 2, 1]"}, model: "forecast = past * param(\"w\", [1], init=ones)", outputs: [forecast]}' --output runs/g
ok "$infer" runs/g shops.csv --output g.jsonl
python3 - <<'P' || fail "forecasts of two series: $(cat g.jsonl)"
import json
rows = [json.loads(line) for line in open("g.jsonl")]
assert [[v[0] for v in r["forecast"]] for r in rows] == [[62, 63], [162, 163]], rows
assert "shop 'south'" in rows[1]["source"], rows[1]
P
expect 4 "'; \`group\` names the column" "$train" c.yaml data.train.path=shops.csv --output runs/x
# Columns that are known of the future have rows after the last value.
printf 'day,y,open\n' > k.csv
for i in 1 2 3 4 5 6 7 8 9; do printf '%d,%d,%d\n' $i $i $((i % 2)) >> k.csv; done
cp k.csv future.csv
printf '10,,0\n11,,1\n' >> future.csv
ok "$train" c.yaml 'data.train={kind: series, path: k.csv, targets: [y], known: [open], history: 2, horizon: 2}' 'model={inputs: {past: "float32[batch, 2, 2]", known: "float32[batch, 2, 1]"}, model: "forecast = known * param(\"w\", [1], init=ones) + 0 * past[:, :, :1]", outputs: [forecast]}' --output runs/k
ok "$infer" runs/k future.csv --output k.jsonl
grep -q '"forecast":\[\[0.0\],\[1.0\]\]' k.jsonl || fail "what is known: $(cat k.jsonl)"
expect 4 "has 0 rows after the last value, 2 are needed for what is known of the future (open)" "$infer" runs/k k.csv

# The recipe: the forecast is the middle one of the bands, in the units of the file.
python3 - <<'P'
import math, random
random.seed(0)
open("m.csv", "w").write("month,passengers\n" + "".join(f"{m},{100 + 3 * m + 40 * math.sin(m / 2) + random.gauss(0, 5):.1f}\n" for m in range(144)))
P
ok "$bin/paddle-new" time-series --data m.csv -o m.yaml --small
ok "$train" m.yaml
ok "$infer" runs/m m.csv --output m.jsonl
ok "$infer" runs/m --data valid --output v.jsonl
python3 - <<'P' || fail "the recipe's forecast: $(head -c 300 m.jsonl)"
import json
for name in ("m.jsonl", "v.jsonl"):
    for r in map(json.loads, open(name)):
        assert all(abs(f[0] - b[1]) < 1e-2 for f, b in zip(r["forecast"], r["bands"])), r
        assert all(300 < f[0] < 700 for f in r["forecast"]), r
assert all(len(json.loads(l)["label"]) == 2 for l in open("v.jsonl"))
P
finish
