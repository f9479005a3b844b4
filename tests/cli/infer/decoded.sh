#!/usr/bin/env bash
# `predict:` of a config: paddle-infer gives boxes, masks, tags and texts in place of arrays, in the
# pixels of the image files and the words of the data.
set -uo pipefail
command -v python3 > /dev/null || { echo "python3 is missing"; exit 77; }
source "$(dirname "${BASH_SOURCE[0]}")/../expect.bash"
new="$bin/paddle-new"

python3 - "$folder" <<'P'
import json, os, random, struct, sys, zlib
folder = sys.argv[1]
random.seed(7)

def png(path, rows, color):
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    raw = b"".join(b"\0" + bytes(v for pixel in row for v in (pixel if color else [pixel])) for row in rows)
    with open(path, "wb") as f:
        f.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", len(rows[0]), len(rows), 8, 2 if color else 0, 0, 0, 0)) +
                chunk(b"IDAT", zlib.compress(raw)) + chunk(b"IEND", b""))

os.makedirs(folder + "/images"), os.makedirs(folder + "/truth"), os.makedirs(folder + "/lines")
images, annotations, rows = [], [], ["picture,regions"]
width, height = 96, 64  # not the square that the model sees
for i in range(80):  # red squares and blue bars
    pixels = [[[30, 30, 30] for _ in range(width)] for _ in range(height)]
    mask = [[0] * width for _ in range(height)]
    images.append({"id": i, "file_name": f"{i}.png", "width": width, "height": height})
    kind = i % 2
    w, h = (24, 16) if kind == 0 else (42, 12)
    x, y = random.randrange(0, width - w), random.randrange(0, height - h)
    for yy in range(y, y + h):
        for xx in range(x, x + w):
            pixels[yy][xx] = [220, 40, 40] if kind == 0 else [40, 60, 220]
            mask[yy][xx] = 100 if kind == 0 else 255
    annotations.append({"id": i, "image_id": i, "category_id": kind + 1, "bbox": [x, y, w, h], "area": w * h, "iscrowd": 0})
    png(f"{folder}/images/{i}.png", pixels, True)
    png(f"{folder}/truth/{i}.png", mask, False)
    rows.append(f"images/{i}.png,truth/{i}.png")
json.dump({"images": images, "annotations": annotations,
           "categories": [{"id": 1, "name": "square"}, {"id": 2, "name": "bar"}]}, open(folder + "/boxes.json", "w"))
open(folder + "/regions.csv", "w").write("\n".join(rows) + "\n")

glyphs = {"I": ["#"] * 5, "L": ["#..", "#..", "#..", "#..", "###"], "T": ["###", ".#.", ".#.", ".#.", ".#."], "O": ["###", "#.#", "#.#", "#.#", "###"]}
rows = ["file,words"]
for i in range(240):
    text = "".join(random.choice("ILTO") for _ in range(random.randrange(1, 5)))
    cells = ["".join(glyphs[c][r] + "." for c in text) for r in range(5)]
    line = [[255] * 60 for _ in range(16)]
    for r in range(5):
        for x, cell in enumerate(cells[r][:20]):
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
open(folder + "/new.csv", "w").write('sentence\nAnn  goes to Rome\n"Bob, goes"\n')
rows = ["word,shifted"]
for _ in range(600):
    word = "".join(random.choice("abcdefgh") for _ in range(random.randrange(2, 6)))
    rows.append(f"{word},{word.upper()}")
open(folder + "/pairs.csv", "w").write("\n".join(rows) + "\n")
open(folder + "/words.csv", "w").write("word\nbad\nfeed\nha\n")
P
cd "$folder" || exit 1

# ---- boxes ---------------------------------------------------------------------------------------

ok "$new" detection --small --data boxes.json -o detection.yaml
sed -i "s|images: \.|images: images|g" detection.yaml
ok "$train" detection.yaml --output run-detection train.epochs=16
quiet 0 "$infer" run-detection/model --data valid --output boxes.jsonl
python3 - <<'P' || fail "boxes: $(head -c 600 boxes.jsonl)"
import json
truth = json.load(open("boxes.json"))
right = count = 0
for line in map(json.loads, open("boxes.jsonl")):
    number = int(line["source"].split("/")[-1][:-4])
    want = truth["annotations"][number]
    x, y, w, h = want["bbox"]
    count += 1
    for box in line["boxes"]:
        assert set(box) == {"class", "score", "box"} and box["score"] >= 0.3, box
        l, t, r, b = box["box"]
        assert 0 <= l < r <= 96 and 0 <= t < b <= 64, box
    assert line["boxes"] == sorted(line["boxes"], key=lambda box: -box["score"])
    if not line["boxes"]:
        continue
    l, t, r, b = line["boxes"][0]["box"]
    inner = max(0, min(r, x + w) - max(l, x)) * max(0, min(b, y + h) - max(t, y))
    overlap = inner / ((r - l) * (b - t) + w * h - inner)
    right += overlap > 0.5 and line["boxes"][0]["class"] == ("square", "bar")[want["category_id"] - 1]
assert count == 16 and right >= 12, (count, right)
P
quiet 0 "$infer" run-detection/model images --output boxes.csv predict.threshold=0.5
python3 - <<'P' || fail "boxes of a folder: $(head -3 boxes.csv)"
import csv
rows = list(csv.DictReader(open("boxes.csv")))
assert {row["class"] for row in rows} == {"square", "bar"} and min(float(row["score"]) for row in rows) >= 0.5
assert len({row["source"] for row in rows}) > 60 and float(rows[0]["right"]) > float(rows[0]["left"])
P
quiet 0 "$infer" run-detection/model images/3.png
grep -Eq '^images/3.png: bar 0?\.[0-9]+ \[[0-9]+, [0-9]+, [0-9]+, [0-9]+\]|^images/3.png: bar 1 ' out || fail "a line of boxes: $(cat out)"
quiet 0 "$infer" run-detection/model images/3.png --raw --output raw.jsonl
grep -q '"scores":\[\[' raw.jsonl || fail "--raw: $(head -c 200 raw.jsonl)"
expect 2 "predicts no pictures" "$infer" run-detection/model images/3.png --output pictures/
expect 3 "at most 1" "$infer" run-detection/model images/3.png predict.threshold=2
expect 3 "did you mean 'threshold'" "$infer" run-detection/model images/3.png predict.treshold=0.2
expect 2 "has no effect on --raw" "$infer" run-detection/model images/3.png --raw predict.threshold=0.2
expect 3 "'score' is not an output of the model (did you mean 'scores'?)" "$train" detection.yaml --dry-run predict.scores=score
expect 3 "'label' is not a field of the data (did you mean 'labels'?)" "$train" detection.yaml --dry-run predict.field=label

# ---- masks ---------------------------------------------------------------------------------------

ok "$new" segmentation --small --data regions.csv -o segmentation.yaml
grep -q "values: {0: value_0, 100: value_100, 255: value_255}" segmentation.yaml || fail "the values of the masks: $(grep mask segmentation.yaml)"
sed -i "s|value_0|none|; s|value_100|square|; s|value_255|bar|" segmentation.yaml
ok "$train" segmentation.yaml --output run-segmentation train.epochs=10
quiet 0 "$infer" run-segmentation/model images --output masks/
grep -q "^images/0.png: masks/0.png  none [0-9.]*%, square [0-9.]*%" out || fail "a line of masks: $(head -3 out)"
python3 - <<'P' || fail "masks"
import struct, zlib
def gray(path):
    data = open(path, "rb").read()
    width, height, depth, kind = struct.unpack(">IIBB", data[16:26])
    assert (depth, kind) == (8, 0), path
    at, body = 8, b""
    while at < len(data):
        size, = struct.unpack(">I", data[at:at + 4])
        if data[at + 4:at + 8] == b"IDAT":
            body += data[at + 8:at + 8 + size]
        at += size + 12
    raw, rows, before = zlib.decompress(body), [], [0] * width
    for y in range(height):
        line = list(raw[y * (width + 1) + 1:(y + 1) * (width + 1)])
        method = raw[y * (width + 1)]
        for x in range(width):
            a, b, c = line[x - 1] if x else 0, before[x], before[x - 1] if x else 0
            p = a + b - c
            paeth = a if abs(p - a) <= abs(p - b) and abs(p - a) <= abs(p - c) else b if abs(p - b) <= abs(p - c) else c
            line[x] = (line[x] + (0, a, b, (a + b) // 2, paeth)[method]) % 256
        rows.append(line)
        before = line
    return rows
inner = outer = 0
for i in range(80):
    found, truth = gray(f"masks/{i}.png"), gray(f"truth/{i}.png")
    assert len(found) == 64 and len(found[0]) == 96
    for a, b in zip(found, truth):
        assert set(a) <= {0, 100, 255}, set(a)
        for x, y in zip(a, b):
            inner += x == y != 0
            outer += x != 0 or y != 0
assert inner / outer > 0.6, inner / outer
P
quiet 0 "$infer" run-segmentation/model --data valid --output shares.jsonl
grep -q '"shares":{"none":0\.[0-9]*,"square":' shares.jsonl || fail "shares: $(head -1 shares.jsonl)"
cp images/0.png same.png
expect 2 "is an image of the input" "$infer" run-segmentation/model images --output images
cmp -s images/0.png same.png || fail "an image of the input was written"

# ---- tags and texts ------------------------------------------------------------------------------

ok "$new" tagging --small --data tags.csv -o tagging.yaml
ok "$train" tagging.yaml --output run-tagging
quiet 0 "$infer" run-tagging/model new.csv
grep -q "new.csv:2: Ann/PER goes/O to/O Rome/LOC$" out || fail "tags: $(cat out)"
quiet 0 "$infer" run-tagging/model new.csv --output tags.jsonl
python3 - <<'P' || fail "tags: $(cat tags.jsonl)"
import json
rows = [json.loads(line) for line in open("tags.jsonl")]
assert rows[0]["words"] == ["Ann", "goes", "to", "Rome"] and rows[0]["tags"] == ["PER", "O", "O", "LOC"]
assert rows[1]["words"] == ["Bob,", "goes"] and len(rows[1]["tags"]) == 2 and rows[1]["tags"][1] == "O"
P
ok "$new" text-lines --small --data lines.csv -o lines.yaml
ok "$train" lines.yaml --output run-lines train.epochs=20
quiet 0 "$infer" run-lines/model lines --output lines-out.csv
python3 - <<'P' || fail "texts of lines: $(head -4 lines-out.csv)"
import csv
truth = {row["file"]: row["words"] for row in csv.DictReader(open("lines.csv"))}
rows = list(csv.DictReader(open("lines-out.csv")))
right = sum(truth[row["source"]] == row["text"] for row in rows)
assert len(rows) == 240 and right > 80, right
P
ok "$new" sequence-to-sequence --small --data pairs.csv -o pairs.yaml
sed -i "s/lowercase: true//; s/tokens: characters,/tokens: characters, lowercase: false,/" pairs.yaml
ok "$train" pairs.yaml --output run-pairs train.epochs=30
for beams in 1 4; do
  quiet 0 "$infer" run-pairs/model words.csv predict.beams=$beams
  [[ "$(sed 's/.*: //' out | tr '\n' ' ')" == "BAD FEED HA " ]] || fail "texts with $beams beams: $(cat out)"
done
quiet 0 "$infer" run-pairs/model --data valid --output pairs.jsonl --batch 7
quiet 0 "$infer" run-pairs/model --data valid --output all.jsonl
python3 - <<'P' || fail "texts: $(head -3 pairs.jsonl)"
import json
rows, others = ([json.loads(line) for line in open(name)] for name in ("pairs.jsonl", "all.jsonl"))
words = [line.split(",") for line in open("pairs.csv").read().split()[1:]]
assert len(rows) == 60 and [row["text"] for row in rows] == [row["text"] for row in others]
right = sum(words[int(row["source"].split(":")[-1]) - 2][1] == row["text"] for row in rows)
assert right > 50 and all(-1 < row["score"] <= 0 for row in rows), right
P
finish
