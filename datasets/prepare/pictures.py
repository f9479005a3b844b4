"""Images for the recipes: clothes in a folder per class, scenes of clothes with boxes and masks, lines
of text."""

import gzip
import json
import os
import random
import re
import struct
import zlib

from files import Missing, debian_file, write_table

CLOTHES = ["t-shirt", "trouser", "pullover", "dress", "coat", "sandal", "shirt", "sneaker", "bag", "boot"]
SIDE = 28


def write_png(path, width, height, channels, pixels):
    """Writes 8-bit samples, row by row, as a gray or RGB image."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    step = width * channels
    rows = b"".join(b"\0" + pixels[at:at + step] for at in range(0, height * step, step))
    header = struct.pack(">IIBBBBB", width, height, 8, 2 if channels == 3 else 0, 0, 0, 0)
    with open(path, "wb") as file:
        file.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows, 1)) +
                   chunk(b"IEND", b""))


def read_clothes(root, part):
    """The images, 784 bytes each, and the labels of a part: train or t10k."""
    out = []
    for kind, skip in (("images-idx3", 16), ("labels-idx1", 8)):
        path = debian_file(root, "dataset-fashion-mnist",
                           f"usr/share/datasets/fashion-mnist/{part}-{kind}-ubyte.gz")
        with gzip.open(path) as file:
            out.append(file.read()[skip:])
    pixels, labels = out
    area = SIDE * SIDE
    return [pixels[i * area:(i + 1) * area] for i in range(len(labels))], labels


def clothes(root, folder):
    """Debian dataset-fashion-mnist: 60,000 images in clothes/, 10,000 in clothes-test/."""
    for part, name in (("train", "clothes"), ("t10k", "clothes-test")):
        images, labels = read_clothes(root, part)
        for each in CLOTHES:
            os.makedirs(f"{folder}/{name}/{each}", exist_ok=True)
        for i, (image, label) in enumerate(zip(images, labels)):
            write_png(f"{folder}/{name}/{CLOTHES[label]}/{i:05}.png", SIDE, SIDE, 1, image)
        print(f"{folder}/{name}: {len(images)} images")


def draw_scene(pick, images, labels, size=128):
    """An RGB image of some articles on a plain ground, its mask and the boxes of the articles."""
    ground = [pick.randrange(90, 256) for _ in range(3)]
    pixels = bytearray(bytes(ground) * (size * size))
    mask = bytearray(size * size)
    boxes = []
    for _ in range(pick.randint(3, 8)):
        which = pick.randrange(len(images))
        image, side = images[which], pick.randint(24, 48)
        left, top = pick.randrange(size - side), pick.randrange(size - side)
        if any(left < b[2] and b[0] < left + side and top < b[3] and b[1] < top + side for b in boxes):
            continue  # articles do not cover each other
        tint = [pick.uniform(0.0, 0.35) for _ in range(3)]
        inside = []
        for y in range(side):
            row = y * SIDE // side * SIDE
            for x in range(side):
                value = image[row + x * SIDE // side]
                if value < 24:
                    continue
                at = (top + y) * size + left + x
                mask[at] = labels[which] + 1
                for c in range(3):
                    pixels[3 * at + c] = int(value * tint[c])
                inside.append((left + x, top + y))
        xs, ys = [p[0] for p in inside], [p[1] for p in inside]
        boxes.append((min(xs), min(ys), max(xs) + 1, max(ys) + 1, labels[which]))
    return bytes(pixels), bytes(mask), boxes


def write_scenes(folder, images, labels, count, seed, size=128):
    """Scenes of these articles: images/, masks/, masks.csv and scenes.json in `folder`."""
    pick = random.Random(seed)
    os.makedirs(f"{folder}/images", exist_ok=True)
    os.makedirs(f"{folder}/masks", exist_ok=True)
    pictures, annotations, rows = [], [], []
    for i in range(count):
        pixels, mask, boxes = draw_scene(pick, images, labels, size)
        write_png(f"{folder}/images/{i:04}.png", size, size, 3, pixels)
        write_png(f"{folder}/masks/{i:04}.png", size, size, 1, mask)
        rows.append([f"images/{i:04}.png", f"masks/{i:04}.png"])
        pictures.append({"id": i, "file_name": f"{i:04}.png", "width": size, "height": size})
        for left, top, right, bottom, label in boxes:
            annotations.append({"id": len(annotations) + 1, "image_id": i, "category_id": label + 1,
                                "bbox": [left, top, right - left, bottom - top],
                                "area": (right - left) * (bottom - top), "iscrowd": 0})
    with open(f"{folder}/scenes.json", "w") as file:
        json.dump({"images": pictures, "annotations": annotations,
                   "categories": [{"id": i + 1, "name": n} for i, n in enumerate(CLOTHES)]}, file)
    write_table(f"{folder}/masks.csv", ["image", "mask"], rows)


def scenes(root, folder):
    """The same clothes on larger images: 4,000 in scenes/, 500 of the test clothes in scenes-test/; boxes in
    scenes.json (COCO), masks in masks.csv."""
    for part, name, count in (("train", "scenes", 4000), ("t10k", "scenes-test", 500)):
        images, labels = read_clothes(root, part)
        write_scenes(f"{folder}/{name}", images, labels, count, seed=1)


# Fonts that only the test lines are drawn in.
HELD_OUT = ("FreeSans.ttf", "LiberationSerif-Italic.ttf", "DejaVuSerif.ttf")


def lines(root, folder):
    """Debian wamerican, fonts-dejavu-core, fonts-liberation, fonts-freefont-ttf: words drawn in 31 fonts
    in lines.csv, and in three others in lines-test.csv; needs Pillow."""
    try:
        from PIL import Image, ImageDraw, ImageFont
    except ImportError:
        raise Missing("Pillow is missing: pip install pillow") from None
    with open(debian_file(root, "wamerican", "usr/share/dict/american-english"), encoding="utf-8") as file:
        words = [w for w in file.read().split() if re.fullmatch(r"[A-Za-z]{3,12}", w)]
    pick = random.Random(1)
    pick.shuffle(words)
    fonts = []
    for package, name in (("fonts-dejavu-core", "dejavu"), ("fonts-liberation", "liberation"),
                          ("fonts-freefont-ttf", "freefont")):
        at = debian_file(root, package, f"usr/share/fonts/truetype/{name}")
        fonts += [os.path.join(at, each) for each in sorted(os.listdir(at)) if each.endswith(".ttf")]

    def draw(path, word, font):
        face = ImageFont.truetype(font, pick.randint(18, 26))
        left, top, right, bottom = face.getbbox(word)
        ground = pick.randint(190, 255)
        image = Image.new("L", (right - left + pick.randint(4, 12), 32), ground)
        y = (32 - (bottom - top)) // 2 - top + pick.randint(-1, 1)
        ImageDraw.Draw(image).text((pick.randint(1, 4) - left, y), word, fill=pick.randint(0, 90), font=face)
        image.save(path)

    held_out = [f for f in fonts if os.path.basename(f) in HELD_OUT]
    used = [f for f in fonts if f not in held_out]
    for name, chosen, faces in (("lines", words[:12000], used), ("lines-test", words[12000:13500], held_out)):
        os.makedirs(f"{folder}/{name}", exist_ok=True)
        rows = []
        for i, word in enumerate(chosen):
            draw(f"{folder}/{name}/{i:05}.png", word, pick.choice(faces))
            rows.append([f"{name}/{i:05}.png", word])
        write_table(f"{folder}/{name}.csv", ["image", "text"], rows)
