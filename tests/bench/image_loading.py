#!/usr/bin/env python3
"""CPU time to decode, augment and batch JPEG images, here and in a PyTorch DataLoader with Pillow.

    tests/bench/image_loading.py [BIN] [--rounds N] [--images N]

BIN is the folder of the programs (build/bin). Both sides read the same JPEG files of 500x375 pixels,
crop them at random to 224x224, flip half of them, normalize them and make batches of 32. The time is
that of all threads, so it is a rate per core, without the start: ours is the difference of a long and a
short run, which also train a linear layer on the mean colors. Sides alternate; the medians of the
rounds are compared. Needs torch, torchvision and Pillow in the Python that runs this.
"""

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BATCH = 32

CONFIG = """
name: image_loading
model:
  inputs: {image: "float32[batch, 3, 224, 224]"}
  model: |
    logits = linear(mean(image, [2, 3]), 2)
  outputs: [logits]
loss: cross_entropy(logits, label)
optimizer: {name: sgd, lr: 1e-3}
data:
  batch_size: 32
  workers: 1
  train: {kind: images, path: photos}
  augment:
    - random_resized_crop: {fields: image, height: 224, width: 224}
    - horizontal_flip: {fields: image}
  transforms:
    - scale: {fields: image, factor: 0.00392156862745098}
    - normalize: {fields: image, mean: [0.485, 0.456, 0.406], std: [0.229, 0.224, 0.225]}
train: {steps: 1, threads: 1}
"""

PEER = f"""
import sys, time, torch
from torchvision import datasets, transforms as t
torch.set_num_threads(1)
data = datasets.ImageFolder(sys.argv[1], t.Compose([
    t.RandomResizedCrop(224), t.RandomHorizontalFlip(), t.ToTensor(),
    t.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])]))
loader = torch.utils.data.DataLoader(data, batch_size={BATCH}, shuffle=True, drop_last=True)
next(iter(loader))
steps = 0
begin = time.process_time()
while steps < int(sys.argv[2]):
    for batch in loader:
        steps += 1
        if steps == int(sys.argv[2]):
            break
print((time.process_time() - begin) / steps / {BATCH})
"""


def make_photos(folder, count):
    """Photos without a license: sums of waves and some noise, about 60 KB each."""
    import numpy
    from PIL import Image
    random = numpy.random.default_rng(1)
    y, x = numpy.mgrid[0:375, 0:500]
    for i in range(count):
        image = numpy.zeros((375, 500, 3))
        for _ in range(12):
            fx, fy, phase = random.normal(0, 0.05, 2).tolist() + [random.uniform(0, 6.28)]
            image += numpy.sin(x * fx + y * fy + phase)[:, :, None] * random.uniform(-30, 30, 3)
        image += random.normal(0, 8, image.shape) + 128
        path = f"{folder}/{'ab'[i % 2]}"
        os.makedirs(path, exist_ok=True)
        Image.fromarray(image.clip(0, 255).astype("uint8")).save(f"{path}/{i}.jpg", quality=90)


def output_of(command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: exit {done.returncode}: {done.stderr.strip()[-500:]}")
    return done.stdout


def cpu_seconds(command):
    def used():
        r = resource.getrusage(resource.RUSAGE_CHILDREN)
        return r.ru_utime + r.ru_stime
    before = used()
    output_of(command)
    return used() - before


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("bin", nargs="?", default=os.path.join(ROOT, "build/bin"))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--images", type=int, default=256)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        make_photos(f"{folder}/photos", options.images)
        with open(f"{folder}/config.yaml", "w") as file:
            file.write(CONFIG)
        steps = options.images // BATCH

        def run(count):
            return cpu_seconds([f"{options.bin}/paddle-train", f"{folder}/config.yaml", f"train.steps={count}",
                                "--threads", "1", "--output", f"{folder}/run", "--overwrite"])

        here, there = [], []
        for _ in range(options.rounds):
            short = run(steps)
            here.append(BATCH * 4 * steps / (run(5 * steps) - short))
            there.append(1 / float(output_of([sys.executable, "-c", PEER, f"{folder}/photos", str(4 * steps)])))
        here, there = statistics.median(here), statistics.median(there)
        print(f"images per second and core: {here:.0f} here, {there:.0f} in the DataLoader, ratio {here / there:.2f}")


if __name__ == "__main__":
    main()
