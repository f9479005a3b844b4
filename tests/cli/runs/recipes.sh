#!/usr/bin/env bash
# paddle new: each recipe looks at data, writes a config that trains and evaluates; paddle eval repeats
# the run's last numbers exactly; TensorBoard files and the report hold them; what is rejected.
set -uo pipefail
command -v python3 > /dev/null || { echo "python3 is missing"; exit 77; }
source "$(dirname "${BASH_SOURCE[0]}")/../expect.bash"
new="$bin/paddle-new"
evaluate="$bin/paddle-eval"

python3 - "$folder" <<'P'
import os, random, struct, sys, zlib
folder = sys.argv[1]
random.seed(5)

def png(path, rows):
    def chunk(kind, data):
        body = kind + data
        return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))
    raw = b"".join(b"\0" + bytes(v for pixel in row for v in pixel) for row in rows)
    with open(path, "wb") as f:
        f.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", len(rows[0]), len(rows), 8, 2, 0, 0, 0)) +
                chunk(b"IDAT", zlib.compress(raw)) + chunk(b"IEND", b""))

for name, color in (("red", (200, 60, 60)), ("blue bird", (60, 60, 200))):
    os.makedirs(f"{folder}/photos/{name}")
    for i in range(20):
        png(f"{folder}/photos/{name}/{i}.png",
            [[[min(255, max(0, c + random.randrange(-50, 50))) for c in color] for _ in range(40)] for _ in range(36 + i % 5)])
with open(folder + "/people.csv", "w") as f:
    f.write("age,Home town,height,kind\n")
    for i in range(300):
        age, town = random.uniform(0, 90), random.choice(["Rome", "Oslo"])
        f.write(f"{age:.1f},{town},{'' if i % 20 == 0 else random.gauss(170, 9)},{'old' if age > 50 else 'young ' + town}\n")
with open(folder + "/prices.csv", "w") as f:
    f.write("a,b,price\n")
    for _ in range(300):
        a, b = random.gauss(0, 1), random.gauss(0, 1)
        f.write(f"{a:.4f},{b:.4f},{100 + 30 * a - 5 * b:.3f}\n")
with open(folder + "/reviews.csv", "w") as f:
    f.write("id,review,stars\n")
    good, bad, other = "great lovely fine".split(), "awful dull poor".split(), "the film was it, and".split()
    for i in range(400):
        words = [random.choice(other) for _ in range(random.randrange(0, 60))]
        words.insert(random.randrange(len(words) + 1), random.choice(good if i % 2 else bad))
        f.write(f'{i},"{" ".join(words)}",{5 if i % 2 else 1}\n')
with open(folder + "/text.txt", "w") as f:
    f.write("the quick brown fox jumps over the lazy dog.\n" * 100)
P

cd "$folder" || exit 1
check_run() {  # the last evaluation of the run against paddle eval, the event file and the report
  ok "$evaluate" "$1"
  python3 - "$folder/out" "$1" <<'P' || fail "$1: evaluation, events or report differ"
import glob, json, struct, sys
line = json.loads(open(sys.argv[1]).read().strip().split("\n")[-1])
run = sys.argv[2]
last = [json.loads(l) for l in open(run + "/metrics.jsonl")]
last = [l for l in last if l.get("kind") == "valid"][-1]
assert line.get("intervals") == last.get("intervals"), (line, last)
metrics = set(line) - {"model", "data", "samples", "intervals"}
assert "loss" in metrics and len(metrics) >= 2, line
for key in metrics:
    assert line[key] == last[key], (key, line[key], last[key])
# Records of the event file: length, checksum, event, checksum.
data = open(glob.glob(run + "/tensorboard/events.out.tfevents.*")[0], "rb").read()
scalars, at = {}, 0
while at < len(data):
    size, = struct.unpack_from("<Q", data, at)
    event = data[at + 12:at + 12 + size]
    at += 16 + size
    for key in metrics:
        tag = b"valid/" + key.encode()
        where = event.find(tag)
        if where >= 0 and event[where + len(tag)] == 0x15:
            scalars[key] = struct.unpack_from("<f", event, where + len(tag) + 1)[0]
assert at == len(data), "the event file is cut"
for key in metrics:
    assert abs(scalars[key] - line[key]) <= 1e-6 * abs(line[key]), (key, scalars)
page = open(run + "/report.html").read()
assert page.startswith("<!doctype html>") and page.rstrip().endswith("</html>") and "<svg" in page
assert "http" not in page.replace("http://www.w3.org", ""), "the page needs something else"
P
}
train_recipe() {  # NAME DATA OVERRIDES…
  ok "$new" "$1" --data "$2" -o "$1.yaml"
  ok "$train" "$1.yaml" --output "run-$1" "${@:3}"
  check_run "run-$1"
}
train_recipe image-classification photos/ train.epochs=2 model.params.width=8
train_recipe tabular-classification people.csv train.epochs=3
train_recipe tabular-regression prices.csv train.epochs=3
train_recipe text-classification reviews.csv train.epochs=4
grep -q '"accuracy":1[.,]' <(grep '"valid"' run-text-classification/metrics.jsonl | tail -1) || fail "reviews are not learned"
ok "$train" --resume run-text-classification train.epochs=5
head -4 reviews.csv > some.csv
ok "$infer" run-text-classification/model --input some.csv --output some-out.csv
[[ "$(cut -d, -f4 some-out.csv | tr '\n' ' ')" == "class 1 5 1 " ]] || fail "classes of reviews: $(cat some-out.csv)"
ok "$train" text-classification.yaml --check-data
grep -q "text_mask: bool" "$folder/out" || fail "no mask in --check-data"
for each in image-classification:photos/ tabular-classification:people.csv tabular-regression:prices.csv \
  text-classification:reviews.csv language-model:text.txt; do
  name="${each%%:*}"
  ok "$new" "$name" --small --data "${each#*:}" -o "small-$name.yaml"
  ok "$train" "small-$name.yaml" --output "run-small-$name"
  check_run "run-small-$name"
done
python3 - <<'P' || fail "the small language model learns nothing: $(grep valid run-small-language-model/metrics.jsonl)"
import json
valid = [line for line in map(json.loads, open("run-small-language-model/metrics.jsonl")) if line.get("kind") == "valid"]
assert valid[-1]["step"] == 200 and valid[-1]["loss"] < valid[0]["loss"] < 2.5, valid
P
train_recipe language-model text.txt train.steps=6 train.evaluate_every=3 model.params.layers=1 model.params.width=32
# A checkpoint, another part, and the test data at the end of a run.
ok "$evaluate" run-tabular-regression/checkpoints/latest --data train
ok "$train" tabular-regression.yaml --output tested train.epochs=1 \
  "data.test={kind: csv, path: prices.csv, range: [0, 50], fields: [{name: numbers, columns: [a, b], scaling: standard}, {name: label, columns: [price], scalar: true, scaling: standard}]}"
grep -q '"kind":"test"' tested/metrics.jsonl || fail "no evaluation on data.test"
ok "$evaluate" tested --data test

# A run has the name of its config.
ok "$new" image-classification --small --data photos/ -o my.yaml
ok "$train" my.yaml train.epochs=1
ok "$evaluate" runs/my

expect 2 "did you mean 'image-classification'?" "$new" image-clasification --data photos -o x.yaml
expect 2 "no recipe is given" "$new"
expect 2 "no data is given" "$new" language-model -o x.yaml
expect 2 "no such file or folder" "$new" language-model --data nowhere -o x.yaml
expect 2 "already exists" "$new" language-model --data text.txt -o language-model.yaml
expect 4 "expected a folder per class" "$new" image-classification --data run-language-model -o x.yaml
expect 4 "is not a number" "$new" tabular-regression --data people.csv -o x.yaml
{ echo a,b; for i in {1..2000}; do echo "$i,$i.5"; done; } > numbers.csv
expect 4 "over 1000" "$new" tabular-classification --data numbers.csv -o x.yaml
expect 4 "no column with text" "$new" text-classification --data prices.csv -o x.yaml
sed 's/,[15]$/,/' reviews.csv > unrated.csv
cut -d, -f2- unrated.csv > unrated-only.csv
expect 4 "found no label column" "$new" text-classification --data unrated-only.csv -o x.yaml
# A class that comes late in a long file counts.
{ echo words,kind; for i in {1..21000}; do echo "some words $((i % 7)),$((i % 2))"; done; echo "other words,late"; echo "more words,late"; } > long.csv
ok "$new" text-classification --data long.csv -o long.yaml
grep -q "linear(h, 3)" long.yaml || fail "a late class is not counted: $(grep linear long.yaml)"
expect 4 "at least two columns" "$new" tabular-regression --data text.txt -o x.yaml
[[ ! -e x.yaml ]] || fail "a rejected call wrote a config"
expect 2 "no such run" "$evaluate" nowhere
expect 2 "did you mean 'test'" "$evaluate" tested --data tested/config.yaml:tst
expect 2 "has no data.test" "$evaluate" run-language-model --data test
expect 2 "no run is given" "$evaluate"
finish
