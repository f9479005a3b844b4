#!/usr/bin/env bash
# The small form of each recipe with a template: it fits its data, trains in seconds and learns
# something, and paddle eval repeats the last numbers.
set -uo pipefail
command -v python3 > /dev/null || { echo "python3 is missing"; exit 77; }
source "$(dirname "${BASH_SOURCE[0]}")/../expect.bash"
new="$bin/paddle-new"
evaluate="$bin/paddle-eval"

python3 - "$folder" <<'P'
import json, math, os, random, struct, sys, wave, zlib
folder = sys.argv[1]
random.seed(7)

def png(path, rows, color):
    def chunk(kind, data):
        body = kind + data
        return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))
    raw = b"".join(b"\0" + bytes(v for pixel in row for v in (pixel if color else [pixel])) for row in rows)
    with open(path, "wb") as f:
        f.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", len(rows[0]), len(rows), 8, 2 if color else 0, 0, 0, 0)) +
                chunk(b"IDAT", zlib.compress(raw)) + chunk(b"IEND", b""))

os.makedirs(folder + "/boxes/images"), os.makedirs(folder + "/masks"), os.makedirs(folder + "/lines"), os.makedirs(folder + "/sounds")
images, annotations, rows = [], [], ["picture,regions"]
for i in range(80):  # red squares and blue bars
    pixels = [[[30, 30, 30] for _ in range(64)] for _ in range(64)]
    mask = [[0] * 64 for _ in range(64)]
    images.append({"id": i, "file_name": f"{i}.png", "width": 64, "height": 64})
    for k in range(1 + i % 2):
        kind = random.randrange(2)
        w, h = (16, 16) if kind == 0 else (28, 12)
        x, y = random.randrange(0, 64 - w), random.randrange(0, 64 - h)
        for yy in range(y, y + h):
            for xx in range(x, x + w):
                pixels[yy][xx] = [220, 40, 40] if kind == 0 else [40, 60, 220]
                mask[yy][xx] = kind + 1
        annotations.append({"id": len(annotations), "image_id": i, "category_id": kind + 1, "bbox": [x, y, w, h],
                            "area": w * h, "iscrowd": 0})
    png(f"{folder}/boxes/images/{i}.png", pixels, True)
    png(f"{folder}/masks/{i}.png", mask, False)
    rows.append(f"boxes/images/{i}.png,masks/{i}.png")
json.dump({"images": images, "annotations": annotations,
           "categories": [{"id": 1, "name": "square"}, {"id": 2, "name": "bar"}]}, open(folder + "/boxes/all.json", "w"))
open(folder + "/regions.csv", "w").write("\n".join(rows) + "\n")

glyphs = {"I": ["#"] * 5, "L": ["#..", "#..", "#..", "#..", "###"], "T": ["###", ".#.", ".#.", ".#.", ".#."], "O": ["###", "#.#", "#.#", "#.#", "###"]}
rows = ["file,words"]
for i in range(240):
    text = "".join(random.choice("ILTO") for _ in range(random.randrange(1, 5)))
    cells = [""] * 5
    for c in text:
        for r in range(5):
            cells[r] += glyphs[c][r] + "."
    width = 20
    line = [[255] * (width * 3) for _ in range(16)]
    for r in range(5):
        for x, cell in enumerate(cells[r][:width]):
            if cell == "#":
                for dy in range(2):
                    for dx in range(3):
                        line[3 + 2 * r + dy][3 * x + dx] = 0
    png(f"{folder}/lines/{i}.png", line, False)
    rows.append(f"lines/{i}.png,{text}")
open(folder + "/lines.csv", "w").write("\n".join(rows) + "\n")

names, places, other = "Ann Bob Eve Max".split(), "Rome Oslo Lima Bern".split(), "goes to and from with by".split()
rows = ["sentence,tags"]
for _ in range(300):
    words = [random.choice(random.choice([names, places, other])) for _ in range(random.randrange(3, 9))]
    rows.append(" ".join(words) + "," + " ".join("PER" if w in names else "LOC" if w in places else "O" for w in words))
open(folder + "/tags.csv", "w").write("\n".join(rows) + "\n")
rows = ["word,plural"]
for _ in range(600):
    word = "".join(random.choice("abcdefgh") for _ in range(random.randrange(2, 6)))
    rows.append(f"{word},{word[::-1]}")
open(folder + "/pairs.csv", "w").write("\n".join(rows) + "\n")

rows = ["clip,word"]
for i in range(60):
    kind = i % 3
    samples = [int(9000 * math.sin(2 * math.pi * (300, 900, 1800)[kind] * t / 8000 + i)) + random.randrange(-800, 800)
               for t in range(1600 + 40 * (i % 7))]
    with wave.open(f"{folder}/sounds/{i}.wav", "wb") as w:
        w.setnchannels(1), w.setsampwidth(2), w.setframerate(8000)
        w.writeframes(struct.pack(f"<{len(samples)}h", *samples))
    rows.append(f"sounds/{i}.wav,{('low', 'middle', 'high')[kind]}")
open(folder + "/sounds.csv", "w").write("\n".join(rows) + "\n")
with open(folder + "/clicks.csv", "w") as f:
    f.write("user,item,price,click\n")
    for _ in range(800):
        user, item = random.randrange(20), random.randrange(15)
        f.write(f"u{user},i{item},{random.uniform(1, 9):.2f},{int((user + item) % 3 == 0)}\n")
with open(folder + "/sales.csv", "w") as f:
    f.write("day,warm,sales\n")
    for i in range(240):
        f.write(f"{i},{math.sin(i / 9):.4f},{500 + 80 * math.sin((i - 2) / 9) + random.gauss(0, 2):.3f}\n")
P

cd "$folder" || exit 1
# recipe NAME DATA METRIC COMPARISON: trains the small form and compares the last validation value.
recipe() {
  local data=()
  [[ -z "$2" ]] || data=(--data "$2")
  ok "$new" "$1" --small "${data[@]}" -o "$1.yaml"
  ok "$train" "$1.yaml" --output "run-$1"
  ok "$evaluate" "run-$1"
  python3 - "$folder/out" "run-$1" "$3" "$4" <<'P' || fail "$1: $(tail -2 "run-$1/metrics.jsonl" | cut -c1-400) $(cat out)"
import json, sys
line = json.loads(open(sys.argv[1]).read().strip().split("\n")[-1])
last = [l for l in map(json.loads, open(sys.argv[2] + "/metrics.jsonl")) if l.get("kind") == "valid"][-1]
if sys.argv[2] not in ("run-vae", "run-diffusion", "run-gan"):  # these draw new noise
    for key in set(line) - {"model", "data", "samples"}:
        assert line[key] == last[key], (key, line[key], last[key])
assert eval(f"{last[sys.argv[3]]} {sys.argv[4]}"), last
P
}
recipe detection boxes/all.json map "> 0.3"
# Two ranks find the same boxes.
for ranks in 1 2; do
  ok "$train" detection.yaml optimizer.lr=0 train.epochs=1 'train.evaluate_every=1 epoch' parallel.data=$ranks --simulate $ranks --output "ranks-$ranks"
  grep '"valid"' "ranks-$ranks/metrics.jsonl" | grep -o '"map":[^,]*' > "map-$ranks"
done
[[ -s map-1 ]] && cmp -s map-1 map-2 || fail "the average precision of two ranks differs: $(cat map-1 map-2)"
recipe segmentation regions.csv iou "> 0.5"
recipe text-lines lines.csv character_error_rate "< 0.5"
recipe tagging tags.csv accuracy "> 0.98"
recipe sequence-to-sequence pairs.csv accuracy "> 0.5"
recipe speech-commands sounds.csv accuracy "> 0.9"
# Sounds by their names are predicted as those of the table are; a broken one is named.
ok "$infer" run-speech-commands sounds.csv --output by-table.csv
ok "$infer" run-speech-commands sounds/0.wav sounds/1.wav sounds/2.wav --output by-name.csv
python3 - <<'P' || fail "sounds by name: $(head -3 by-name.csv by-table.csv)"
import csv
table, names = (list(csv.DictReader(open(f))) for f in ("by-table.csv", "by-name.csv"))
assert len(names) == 3
for a, b in zip(table, names):
    assert a["class"] == b["class"] and b["source"].endswith(".wav"), (a, b)
P
ok "$infer" run-speech-commands sounds --quiet --json
grep -q "\"samples\":$(ls sounds/*.wav | wc -l)," out || fail "a folder of sounds: $(cat out)"
echo broken > broken.wav
expect 4 "broken.wav" "$infer" run-speech-commands broken.wav
ok "$infer" run-speech-commands broken.wav sounds/0.wav --quiet
grep -q "1 of 2 samples were skipped" error || fail "a broken sound is skipped and named: $(cat error)"
recipe recommender clicks.csv auc "> 0.8"
recipe time-series sales.csv mae "< 20"
recipe vae "" loss "< 265"
recipe diffusion "" loss "< 0.7"
# Pictures are drawn from noise, whose arrays are written without NumPy.
python3 - <<'P'
import array, random, zipfile
random.seed(4)
header = "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 1, 28, 28), }".ljust(117) + "\n"
values = array.array("f", [random.gauss(0, 1) for _ in range(3 * 28 * 28)])
with zipfile.ZipFile("start.npz", "w") as file:
    file.writestr("start.npy", b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode() + values.tobytes())
P
ok "$infer" run-diffusion/model --function draw --input start.npz --output pictures.npz
python3 - <<'P' || fail "the pictures of diffusion"
import array, zipfile
data = zipfile.ZipFile("pictures.npz").read("pictures.npy")
assert b"(3, 1, 28, 28)" in data[:128], data[:128]
values = array.array("f", data[-3 * 28 * 28 * 4:])
assert 0 <= min(values) and max(values) <= 1 and max(values) - min(values) > 0.1, (min(values), max(values))
assert values[:784] != values[784:1568]
P
recipe metric-learning "" accuracy "> 0.7"
# Adapters on the model of another run, with its vocabulary: other names, more places.
python3 - <<'P'
import random
random.seed(8)
names, places, other = "Bob Max".split(), "Bern Oslo Rome Lima".split(), "goes to from by".split()
rows = ["sentence,tags"]
for _ in range(200):
    words = [random.choice(random.choice([names, places, other])) for _ in range(random.randrange(3, 9))]
    rows.append(" ".join(words) + "," + " ".join("PER" if w in places else "LOC" if w in names else "O" for w in words))
open("swapped.csv", "w").write("\n".join(rows) + "\n")
P
ok "$new" lora --small --base run-tagging --data swapped.csv -o lora.yaml
ok "$train" lora.yaml --output run-lora train.epochs=60
ok "$evaluate" run-lora
python3 - <<'P' || fail "lora: $(tail -2 run-lora/metrics.jsonl | cut -c1-300)"
import json
valid = [l for l in map(json.loads, open("run-lora/metrics.jsonl")) if l.get("kind") == "valid"]
assert valid[-1]["accuracy"] > 0.9, valid[-1]
fitted = [json.load(open(f"run-{r}/model/fitted.json")) for r in ("tagging", "lora")]
assert fitted[0] == fitted[1], "the vocabulary is another one"
P
[[ -f run-lora/adapter.safetensors ]] || fail "lora: no adapter"
expect 2 "no run is given" "$new" lora --data swapped.csv -o x.yaml
expect 2 "not the folder of a finished run" "$new" lora --base nowhere --data swapped.csv -o x.yaml
expect 2 "begins with new weights" "$new" tagging --base run-tagging --data swapped.csv -o x.yaml
expect 4 'data.train has no `path`' "$new" lora --base run-vae --data swapped.csv -o x.yaml
# The solution of an equation is trained in float64 and read from a table.
recipe pinn "" loss "< 0.1"
printf 'x,t\n0.5,0\n1,0.7\n-0.3,0.4\n' > points.csv
ok "$infer" run-pinn/model --input points.csv --output values.csv
python3 - <<'P' || fail "values of the solution: $(cat values.csv)"
rows = [line.split(",") for line in open("values.csv").read().split()[1:]]
value = [float(row[-1]) for row in rows]
assert abs(value[0] + 1) < 1e-9 and abs(value[1]) < 1e-9 and 0.4 < value[2] < 1.1, value
P
ok "$new" gan --small -o gan.yaml
ok "$train" gan.yaml --output run-gan
# The full forms fit the same data.
for each in detection:boxes/all.json segmentation:regions.csv text-lines:lines.csv tagging:tags.csv \
  sequence-to-sequence:pairs.csv speech-commands:sounds.csv recommender:clicks.csv time-series:sales.csv \
  vae: gan: diffusion: metric-learning:; do
  name="${each%%:*}" path="${each#*:}"
  data=()
  [[ -z "$path" ]] || data=(--data "$path")
  ok "$new" "$name" "${data[@]}" -o "full-$name.yaml"
  ok "$train" "full-$name.yaml" --dry-run
done

expect 4 "found no column with names of .jpg" "$new" segmentation --data sales.csv -o x.yaml
printf 'words,tags\nx y,T\nz,O\n' > uneven.csv
expect 4 "words have" "$new" tagging --data uneven.csv -o x.yaml
expect 4 "found no column with names of audio files" "$new" speech-commands --data sales.csv -o x.yaml
expect 2 "no data is given" "$new" detection -o x.yaml
finish
