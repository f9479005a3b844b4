"""Data and configs for predict_fitted.sh, into the folder that is named."""
import os
import random
import struct
import sys
import zipfile
import zlib

folder = sys.argv[1]
random.seed(5)


def write(name, text, encoding="utf-8"):
    path = os.path.join(folder, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding=encoding) as f:
        f.write(text)


def npy(dtype, shape, values):
    code = {"<f4": "f", "<i8": "q"}[dtype]
    header = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {tuple(shape)!r}, }}"
    header += " " * (63 - (len(header) + 10) % 64) + "\n"
    data = struct.pack("<%d%s" % (len(values), code), *values)
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + data


def npz(name, **arrays):
    with zipfile.ZipFile(os.path.join(folder, name), "w") as z:
        for key, (dtype, shape, values) in arrays.items():
            z.writestr(key + ".npy", npy(dtype, shape, values))


def png(name, height, width, colour):
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    path = os.path.join(folder, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    rows = b"".join(b"\0" + bytes(colour(y, x)[c] for x in range(width) for c in range(3))
                    for y in range(height))
    with open(path, "wb") as f:
        f.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)) +
                chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


# Numbers and categories in CSV.
train_rows = [(x, "abcd"[i % 4]) for i, x in enumerate(random.uniform(0, 100) for _ in range(300))]
valid_rows = [(x, "cd"[i % 2]) for i, x in enumerate([40 + 0.4 * k for k in range(51) if k != 25])]
answer = lambda x, c: int((x > 50) != (c == "d"))
lines = lambda rows, mark=",": "".join(f"{x:.4f}{mark}{c}{mark}{answer(x, c)}\n" for x, c in rows)
write("train.csv", "x,c,label\n" + lines(train_rows))
write("valid.csv", "x,c,label\n" + lines(valid_rows))
write("valid.tsv", "x\tc\tlabel\n" + lines(valid_rows, "\t"))
npz("valid.npz", x=("<f4", [len(valid_rows), 1], [x for x, _ in valid_rows]),
    c=("<i8", [len(valid_rows)], ["abcd".index(c) for _, c in valid_rows]),
    label=("<i8", [len(valid_rows)], [answer(x, c) for x, c in valid_rows]))
npz("train.npz", x=("<f4", [len(train_rows), 1], [x for x, _ in train_rows]),
    c=("<i8", [len(train_rows)], ["abcd".index(c) for _, c in train_rows]),
    label=("<i8", [len(train_rows)], [answer(x, c) for x, c in train_rows]))
model = """
model:
  inputs: {x: "float32[batch, 1]", c: "int64[batch]"}
  model: |
    e = embedding(c, 4, 8)
    h = relu(linear(concat([x * 4, e], 1), 64))
    return linear(h, 2)
  outputs: [logits]
loss: cross_entropy(logits, label)
metrics: {acc: "accuracy(logits, label)"}
optimizer: {name: adam, lr: 0.02}
train: {epochs: 60, log_every: 100000, evaluate_every: 60 epochs}
"""
fields = "[{name: x%s}, {name: c, scalar: true, kind: categorical}, {name: label, scalar: true, dtype: int64}]"
write("csv.template", model + f"""
data:
  batch_size: 100
  train: {{kind: csv, path: train.csv, fields: {fields % ', scaling: SCALING'}}}
  valid: {{kind: csv, path: valid.csv, fields: {fields % ', scaling: SCALING'}}}
""")
write("other_section.yaml", model + f"""
data: {{train: {{kind: csv, path: valid.csv, fields: {fields % ''}}}}}
""")
write("arrays_of_csv.yaml", model + "\ndata: {train: {kind: npz, path: valid.npz}}\n")

write("arrays.yaml", model + """
data:
  batch_size: 100
  transforms: [{normalize: {fields: x, mean: 50, std: 29}}]
  train: {kind: npz, path: train.npz}
  valid: {kind: npz, path: valid.npz}
""")

# Class folders: a is red, b green, c blue.
colours = {"a": (200, 10, 10), "b": (10, 200, 10), "c": (10, 10, 200)}
for name, colour in colours.items():
    for i in range(4):
        noise = lambda y, x: tuple(min(255, v + random.randrange(40)) for v in colour)
        png(f"train_images/{name}/{i}.png", 20, 60, noise)
        if name != "a":
            png(f"valid_images/{name}/{i}.png", 20, 60, noise)
images = """
model: {inputs: {image: "float32[batch, 3, 8, 8]"}, model: [flatten, {linear: 3}], outputs: [logits]}
loss: cross_entropy(logits, label)
metrics: {acc: "accuracy(logits, label)"}
optimizer: {name: adam, lr: 0.01}
train: {epochs: 30, evaluate_every: 30 epochs}
data:
  batch_size: 4
  transforms: [{resize: {fields: image, height: 12, width: 36}}, {center_crop: {fields: image, height: 8, width: 8}}, {scale: {fields: image, factor: 0.004}}]
"""
write("images.yaml", images + "  train: {kind: images, path: train_images}\n"
      "  valid: {kind: images, path: valid_images}\n")
write("other_images.yaml", images + "  train: {kind: images, path: valid_images}\n")
write("one_size.yaml", """
model: {inputs: {image: "float32[batch, 3, 20, 60]"}, model: [flatten, {linear: 2}], outputs: [logits]}
loss: cross_entropy(logits, label)
optimizer: {name: adam, lr: 0.01}
train: {epochs: 1}
data: {batch_size: 4, train: {kind: images, path: valid_images}, transforms: [{scale: {fields: image, factor: 0.004}}]}
""")

# Text: validation lacks "a" and "b".
write("train.txt", "".join(random.choice(["abc", "cde", "efg", "gh "]) for _ in range(200)))
write("valid.txt", "".join(random.choice(["cde", "efg", "gh "]) for _ in range(60)))
write("text.yaml", """
model: {inputs: {tokens: "int64[batch, time]"}, model: "return linear(embedding(tokens, 9, 8), 9)", outputs: [logits]}
loss: cross_entropy(logits, targets)
optimizer: {name: adam, lr: 0.05}
train: {epochs: 3, evaluate_every: 3 epochs}
data:
  batch_size: 10
  train: {kind: text, path: train.txt, context: 8}
  valid: {kind: text, path: valid.txt, context: 8, windows: consecutive}
""")

# A target of large numbers: y = 1000 + 30 x.
target = lambda rows: "x,y\n" + "".join(f"{x},{1000 + 30 * x}\n" for x in rows)
write("target.csv", target(range(40)))
write("bad.csv", "x,y\n1,1030\noops,1060\n3,1090\n4\n5,1150\n")
regression = """
model: {inputs: {x: "float32[batch, 1]"}, model: "return linear(x, 1)", outputs: [guess]}
loss: mse_loss(guess, y)
optimizer: {name: sgd, lr: 0.3}
train: {epochs: 30, log_every: 100000, evaluate_every: 30 epochs}
data:
  batch_size: 30
"""
columns = "fields: [{name: x, scaling: standard}, {name: y, scaling: standard}]"
write("target.yaml", regression + f"""
  train: {{kind: csv, path: target.csv, range: [0, 30], {columns}}}
  valid: {{kind: csv, path: target.csv, range: [30, 40], {columns}}}
""")
write("bad_rows.yaml", regression + f"""
  on_bad_sample: skip
  train: {{kind: csv, path: bad.csv, {columns}}}
""")

# Models that end in probabilities.
xs = [random.gauss(0, 1) for _ in range(120)]
npz("ending.npz", x=("<f4", [60, 2], xs), y=("<i8", [60], [min(2, max(0, int(x + 1.5))) for x in xs[::2]]))
write("ending.template", """
model: {inputs: {x: "float32[batch, 2]"}, model: "return ENDING(linear(x, 3))", outputs: [p]}
loss: cross_entropy(p, y)
optimizer: {name: adam, lr: 0.1}
train: {epochs: 5}
data: {batch_size: 20, train: {kind: npz, path: ending.npz}}
""")

# Categories: three known ones and an unknown one.
cities = {"bern": 0, "oslo": 1, "rome": 1}
rows = [random.choice(list(cities)) for _ in range(200)]
write("cities.csv", "city,label\n" + "".join(f"{c},{cities[c]}\n" for c in rows))
write("unknown.csv", "city\nmadrid\nbern\n")
write("latin1/d.csv", "city,label\naa,0\nz\xe9,1\n", "latin-1")
write("unknown.yaml", """
model: {inputs: {city: "int64[batch]"}, model: "return linear(embedding(city, 4, 4), 2)", outputs: [logits]}
loss: cross_entropy(logits, label)
optimizer: {name: adam, lr: 0.05}
train: {epochs: 10}
data:
  batch_size: 20
  train: {kind: csv, path: cities.csv, fields: [{name: city, scalar: true, kind: categorical, unknown_is_zero: true}, {name: label, scalar: true, dtype: int64}]}
""")
