"""The files that examples of the documentation name: small, drawn here, in every format that the
Python library can write. `make` fills a folder, `copy` makes another one like it."""

import gzip
import json
import math
import os
import random
import shutil
import struct
import tarfile
import zipfile
import zlib

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
LINKS = ("configs", "datasets", "models", "plugins", "scripts")
DATA = os.path.join(ROOT, "tests")
BASES = os.path.join(ROOT, "tests", "docs")


def write(path, data):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(data if isinstance(data, bytes) else data.encode())


def png(width, height, shade):
    """A grey picture with a gradient."""
    rows = b"".join(b"\0" + bytes((shade + x + y) % 256 for x in range(width)) for y in range(height))

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def npy(dtype, shape, data):
    header = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape}, }}".encode()
    header += b" " * (63 - (len(header) + 10) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + data


def floats(count):
    return struct.pack(f"<{count}f", *(random.uniform(-1, 1) for _ in range(count)))


def npz(path, arrays):
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in arrays.items():
            archive.writestr(name + ".npy", data)


def make(folder, run):
    """An error text, or None."""
    random.seed(0)
    os.makedirs(folder)
    for name in LINKS:
        os.symlink(os.path.join(ROOT, name), os.path.join(folder, name))
    for name in os.listdir(BASES):
        if name.endswith(".yaml"):
            shutil.copy(os.path.join(BASES, name), folder)
    at = lambda *parts: os.path.join(folder, *parts)  # noqa: E731

    # Tables.
    rows = ["x,y,price,label,date"] + [f"{i},{i * i % 7},{100 + i},{'ab'[i % 2]},2024-01-{i + 1:02d}" for i in range(20)]
    for name in ("rows.csv", "new.csv"):
        write(at(name), "\n".join(rows) + "\n")
    for name in ("own.csv", "web-1.csv", "web-2.csv"):
        write(at(name), "x,y\n" + "".join(f"{i},{i * i % 7}\n" for i in range(20)))
    write(at("reviews-1.jsonl"), "".join(f'{{"text": "a {w} film", "stars": "{n}"}}\n' for n, w in ((1, "bad"), (5, "good"))))
    write(at("iris.arff"), "@relation iris\n@attribute petal numeric\n@attribute class {setosa, virginica}\n@data\n" +
          "".join(f"{i / 10},{'setosa' if i % 2 else 'virginica'}\n" for i in range(20)))
    write(at("part-0"), "".join(f"1 {i % 2} 13 {' '.join(['0.5'] * 13)} 1 {i} 1 {i * 3} 2 a{i} b\n" for i in range(8)))
    write(at("pairs.csv"), "text,reversed\n" + "".join(f"{a}{b}{c},{c}{b}{a}\n" for a in "abcd" for b in "abcd" for c in "abc"))
    words = "the quick brown fox jumps over the lazy dog while five wizards play jazz ".split()
    write(at("text.txt"), " ".join(random.choice(words) for _ in range(3000)))

    # Images: MNIST's files, folders by class, shards.
    write(at("train-images.gz"), gzip.compress(struct.pack(">IIII", 0x803, 10000, 28, 28) + bytes(10000 * 784), 1))
    write(at("train-labels.gz"), gzip.compress(struct.pack(">II", 0x801, 10000) + bytes(i % 10 for i in range(10000)), 1))
    for top in ("leaves/train", "leaves/valid", "photos"):
        for kind in ("birch", "oak"):
            for i in range(6):
                write(at(top, kind, f"{i}.png"), png(8, 8, 40 * i + len(kind)))
    os.makedirs(at("shards"))
    with tarfile.open(at("shards", "train-0.tar"), "w") as archive:
        for i in range(4):
            write(at("part.bin"), png(8, 8, i))
            archive.add(at("part.bin"), f"{i:06d}.jpg")
            write(at("part.bin"), str(i % 2))
            archive.add(at("part.bin"), f"{i:06d}.cls")
    os.remove(at("part.bin"))

    # A config of one's own, models of a GAN, rules, keys.
    write(at("train.yaml"), "extends: configs/quickstart/digits.yaml\n")
    write(at("config.yaml"), "extends: configs/quickstart/digits.yaml\n")
    for name in ("generator", "critic"):
        shutil.copy(os.path.join(ROOT, "models", f"digits_{name}.yaml"), at(f"{name}.yaml"))
    write(at("my.rules"), "silu: multiply(x, sigmoid(x)) -> silu(x)\n")
    write(at("rules.yaml"), "- match: '^'\n  rename: 'net.'\n")
    write(at("keys.txt"), "0123456789abcdef0123456789abcdef\n")
    write(at("small.yaml"), 'inputs: {image: "float32[batch, 1, 28, 28]"}\nmodel: |\n  h = relu(linear(flatten(image), 8, name="conv1"))\n'
          '  h = relu(linear(h, 8, name="layer1"))\n  logits = linear(h, 10, name="head")\noutputs: [logits]\n')

    # Files of other programs: a tiny language model with a token for each of 50 characters, and a
    # program of PaddlePaddle.
    shutil.copytree(os.path.join(DATA, "llm/data/llama"), at("llama"))
    vocabulary = {chr(48 + i): i for i in range(50)}
    write(at("llama", "tokenizer.json"), json.dumps({"model": {"type": "BPE", "merges": [], "vocab": vocabulary}, "decoder": {"type": "Fuse"}}))
    shutil.copy(at("llama", "tokenizer.json"), at("tokenizer.json"))
    write(at("train.bin"), struct.pack("<4000H", *(random.randrange(50) for _ in range(4000))))
    write(at("talks.jsonl"), "".join('{"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]}\n' for _ in range(8)))
    for end in ("pdmodel", "pdiparams"):
        shutil.copy(os.path.join(DATA, f"paddle_program/data/pictures_program.{end}"), at(f"net.{end}"))
    shutil.copy(os.path.join(DATA, "formats/data/net.pdparams"), at("net.pdparams"))

    # Arrays.
    npz(at("x.npz"), {"image": npy("<f4", (2, 1, 28, 28), floats(2 * 784))})
    npz(at("other.npz"), {name: npy("<f4", shape, floats(math.prod(shape))) for name, shape in {
        "lm_head.weight": (4, 3), "model.layers.0.q_proj.weight": (4, 3), "layer1.weight": (3,), "stem.weight": (2, 3, 2, 2),
        "bn.num_batches_tracked": (1,)}.items()})
    npz(at("w.npz"), {"fc.weight": npy("<f4", (4, 3), floats(12))})

    # Runs and weights.
    tiny = "train.epochs=0 train.steps=4 train.evaluate_every=never data.check_seconds=0 --threads 1"
    commands = [f"paddle train configs/quickstart/digits.yaml {tiny} --output runs/digits",
                "cp runs/digits/model/model.safetensors model.safetensors",
                "paddle new sequence-to-sequence --small --data pairs.csv -o sequence.yaml",
                "paddle convert w.npz fc.safetensors",
                "paddle convert other.npz other.safetensors",
                "paddle export small.yaml -o resnet.onnx --no-check"]
    for command in commands:
        error = run(command, folder)
        if error:
            return error
    return None


def copy(files, folder):
    shutil.copytree(files, folder, symlinks=True)
