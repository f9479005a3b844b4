#!/usr/bin/env bash
# Runs on data of every kind that records come in: JSON lines, parallel texts, shards, boxes, masks
# and sounds, each trained and evaluated; paddle eval repeats the run's numbers.
set -uo pipefail
command -v python3 > /dev/null || { echo "python3 is missing"; exit 77; }
source "$(dirname "${BASH_SOURCE[0]}")/../expect.bash"
evaluate="$bin/paddle-eval"
cd "$folder" || exit 1
python3 - <<'P'
import io, json, os, random, struct, tarfile, zlib
random.seed(5)


def png(rows, color):
    def chunk(kind, data):
        body = kind + data
        return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))
    raw = b"".join(b"\0" + bytes(v for pixel in row for v in (pixel if color else [pixel])) for row in rows)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", len(rows[0]), len(rows), 8, 2 if color else 0, 0, 0, 0)) +
            chunk(b"IDAT", zlib.compress(raw)) + chunk(b"IEND", b""))


os.makedirs("images")
images, annotations = [], []
with open("masks.jsonl", "w") as listing, tarfile.open("shard.tar", "w") as tar:
    for i in range(24):
        w, h = 40 + i % 3, 36
        x, y, s = random.randrange(0, 20), random.randrange(0, 16), random.randrange(8, 16)
        inside = [[x <= c < x + s and y <= r < y + s for c in range(w)] for r in range(h)]
        image = png([[(220, 60, 60) if v else (30, 30, 90) for v in row] for row in inside], True)
        open(f"images/{i}.png", "wb").write(image)
        open(f"images/{i}-mask.png", "wb").write(png([[255 if v else 0 for v in row] for row in inside], False))
        listing.write(json.dumps({"image": f"images/{i}.png", "mask": f"images/{i}-mask.png", "tags": ["big"] if s > 11 else ["small", "red"]}) + "\n")
        images.append({"id": i, "file_name": f"{i}.png", "width": w, "height": h})
        annotations.append({"id": i, "image_id": i, "category_id": 4, "bbox": [x, y, s, s]})
        for name, content in ((f"{i:03}.png", image), (f"{i:03}.cls", str(int(s > 11)).encode())):
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
json.dump({"images": images, "annotations": annotations, "categories": [{"id": 4, "name": "square"}]}, open("boxes.json", "w"))
words = "ein zwei drei vier".split()
with open("a.de", "w") as de, open("a.en", "w") as en:
    for _ in range(40):
        line = random.choices(words, k=random.randrange(1, 9))
        de.write(" ".join(line) + "\n")
        en.write(" ".join(w.upper() for w in line) + "\n")
with open("sounds.csv", "w") as f:
    f.write("file,label\n")
    for i in range(16):
        samples = [int(20000 * ((t * (1 + i % 2) // 8) % 2) - 10000) for t in range(200 + i)]
        data = struct.pack(f"<{len(samples)}h", *samples)
        open(f"{i}.wav", "wb").write(b"RIFF" + struct.pack("<I", 36 + len(data)) + b"WAVEfmt " + struct.pack("<IHHIIHH", 16, 1, 1, 8000, 16000, 2, 16) +
                                     b"data" + struct.pack("<I", len(data)) + data)
        f.write(f"{i}.wav,{i % 2}\n")
P
cat > segment.yaml <<'Y'
model:
  inputs: {image: "uint8[batch, 3, 32, 32]"}
  model: |
    x = relu(conv2d(cast(image, "float32") / 255.0, out_channels=8, kernel_size=3, padding=1))
    logits = conv2d(x, out_channels=2, kernel_size=1)
  outputs: [logits]
loss: cross_entropy(logits, mask, axis=1)
metrics: {iou: "iou(logits, mask, axis=1)"}
optimizer: {name: adam, lr: 0.02}
data:
  batch_size: 8
  train: &masks
    kind: jsonl
    path: masks.jsonl
    fields:
      - {name: image, kind: image}
      - {name: mask, kind: mask, values: {0: background, 255: square}}
  valid: *masks
  augment:
    - random_affine: {fields: [image, mask], degrees: 20, translate: [0.1, 0.1]}
    - rand_augment: {fields: [image, mask]}
    - color_jitter: {fields: image, brightness: 0.2, hue: 0.1}
  transforms:
    - resize: {fields: [image, mask], height: 32, width: 32}
train: {epochs: 8, log_every: 4}
Y
cat > tags.yaml <<'Y'
model:
  inputs: {image: "uint8[batch, 3, 32, 32]"}
  model: |
    logits = linear(mean(relu(conv2d(cast(image, "float32") / 255.0, out_channels=8, kernel_size=3)), axis=[2, 3]), 3)
  outputs: [logits]
loss: binary_cross_entropy_with_logits(logits, tags)
metrics: {f1: 'f1(logits, tags, multilabel=true, average="macro")'}
optimizer: {name: adam, lr: 0.02}
data:
  batch_size: 8
  train: &tags {kind: jsonl, path: masks.jsonl, fields: [{name: image, kind: image}, {name: tags, kind: multi_label}]}
  valid: *tags
  transforms: [{resize: {fields: image, height: 32, width: 32}}]
train: {epochs: 2}
Y
cat > shards.yaml <<'Y'
model:
  inputs: {image: "uint8[batch, 3, 32, 32]"}
  model: |
    logits = linear(flatten(cast(image, "float32") / 255.0), 2)
  outputs: [logits]
loss: cross_entropy(logits, label)
metrics: {accuracy: "accuracy(logits, label)"}
optimizer: {name: sgd, lr: 0.001}
data:
  batch_size: 8
  train: &shard
    kind: tar
    path: shard*.tar
    fields:
      - {name: image, columns: png, kind: image}
      - {name: label, columns: cls, scalar: true, dtype: int64}
  valid: *shard
  transforms: [{resize: {fields: image, height: 32, width: 32}}]
train: {epochs: 2}
Y
cat > boxes.yaml <<'Y'
model:
  inputs: {image: "uint8[batch, 3, 32, 32]"}
  model: |
    box = linear(flatten(relu(conv2d(cast(image, "float32") / 255.0, out_channels=8, kernel_size=3, stride=2))), 4)
  outputs: [box]
loss: |-
  mean(square(box - sum(boxes / 32.0 * unsqueeze(cast(boxes_mask, "float32"), -1), axis=1)))
optimizer: {name: adam, lr: 0.002}
data:
  batch_size: 8
  train: &boxes {kind: coco, annotations: boxes.json, images: images}
  valid: *boxes
  augment: [{horizontal_flip: {fields: image}}, {random_affine: {fields: image, degrees: 5}}]
  transforms: [{resize: {fields: image, height: 32, width: 32}}]
train: {epochs: 3}
Y
cat > parallel.yaml <<'Y'
model:
  inputs: {source: "int64[batch, length]", source_mask: "bool[batch, length]"}
  model: |
    logits = linear(embedding(source, 10, 8), 10)
  outputs: [logits]
loss: sum(cross_entropy(mean(logits, axis=1), max(target, axis=1), reduction="none")) / 8.0
optimizer: {name: adam, lr: 0.01}
data:
  batch_size: 8
  drop_last: true
  train:
    kind: lines
    files: {de: a.de, en: a.en}
    fields:
      - {name: source, columns: de, kind: text}
      - {name: target, columns: en, kind: text}
train: {epochs: 2}
Y
cat > sounds.yaml <<'Y'
model:
  inputs: {sound: "float32[batch, length]"}
  model: |
    energy = mean(abs(sound), axis=1, keepdim=true)
    slope = mean(abs(sound[:, 1:] - sound[:, :-1]), axis=1, keepdim=true)
    logits = linear(concat([energy, slope], axis=1), 2)
  outputs: [logits]
loss: cross_entropy(logits, label)
metrics: {accuracy: "accuracy(logits, label)"}
optimizer: {name: adam, lr: 0.1}
data:
  batch_size: 4
  train: &sounds
    kind: csv
    path: sounds.csv
    fields: [{name: sound, columns: file, kind: audio, sample_rate: 8000}, {name: label, scalar: true, dtype: int64}]
  valid: *sounds
train: {epochs: 20, log_every: 20}
Y
for name in segment tags shards boxes parallel sounds; do
  ok "$train" $name.yaml
  [[ $name == parallel ]] && continue
  ok "$evaluate" runs/$name
  python3 - $name <<'P' || fail "$name: paddle eval differs from the run"
import json, sys
line = json.load(open("out"))
valid = [l for l in map(json.loads, open(f"runs/{sys.argv[1]}/metrics.jsonl")) if l.get("kind") == "valid"][-1]
for key in set(line) - {"model", "data", "samples"}:
    assert line[key] == valid[key], (key, line, valid)
if sys.argv[1] == "segment":
    assert line["iou"] > 0.7, line
if sys.argv[1] == "sounds":
    assert line["accuracy"] == 1, line
P
done
ok "$train" segment.yaml --check-data --pictures pictures
[[ -s pictures/index.html && -s pictures/train-7-0.png && -s pictures/valid-0-0.png ]] || fail "--pictures"
ok "$train" boxes.yaml --check-data --pictures pictures
grep -q "boxes per class: square 24" out || fail "--check-data of boxes"
expect 2 "has no field with images" "$train" sounds.yaml --check-data --pictures pictures
expect 2 "--pictures needs --check-data" "$train" sounds.yaml --pictures pictures
expect 3 "moves pixels in a way that boxes cannot follow" "$train" boxes.yaml --output x 'data.augment=[{trivial_augment: {fields: image}}]'
expect 3 'has no effect with `kind: image`' "$train" tags.yaml --output x data.train.fields.0.sample_rate=8000
expect 4 "no file matches" "$train" shards.yaml --output x 'data.train.path=none*.tar'
expect 4 "no record has the key 'tag'" "$train" tags.yaml --output x data.train.fields.1.columns=tag data.valid.fields.1.columns=tag
# Files of another rate are resampled, compressed tables and archives read as they are.
ok "$train" sounds.yaml --output resampled data.train.fields.0.sample_rate=16000 data.valid.fields.0.sample_rate=16000
gzip -k sounds.csv shard*.tar
ok "$train" sounds.yaml --output sounds_gz data.train.path=sounds.csv.gz data.valid.path=sounds.csv.gz
ok "$train" shards.yaml --output shards_gz "data.train.path=shard*.tar.gz" "data.valid.path=shard*.tar.gz"
for name in sounds shards; do
  cmp runs/$name/model/model.safetensors ${name}_gz/model/model.safetensors || fail "$name: compressed data trains another model"
done
head -c 60 sounds.csv.gz >cut.csv.gz
expect 4 "cut.csv.gz: " "$train" sounds.yaml --output x data.train.path=cut.csv.gz
PADDLE_ARCHIVE_MODULE=/none expect 6 "this installation cannot read compressed files" "$train" sounds.yaml --output x data.train.path=sounds.csv.gz
finish
