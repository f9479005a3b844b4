#!/usr/bin/env python3
"""Turns what a model of the recipe detection predicts into detections in COCO's format.

  paddle-infer runs/scenes/model --data test.yaml:train --output predicted.npz
  boxes.py predicted.npz scenes-test/scenes.json > detections.json
  paddle score coco detections.json scenes-test/scenes.json

Boxes that overlap a better one of their class are left out. The samples are the images of the COCO
file in their order, resized to SIZE (third argument, default 128). Needs NumPy.
"""

import json
import sys

import numpy as np


def overlaps(box, others):
    """Intersection over union of a box and others, left, top, right, bottom."""
    corner = np.maximum(box[:2], others[:, :2])
    inside = np.clip(np.minimum(box[2:], others[:, 2:]) - corner, 0, None).prod(1)
    area = (others[:, 2:] - others[:, :2]).prod(1)
    return inside / np.maximum((box[2:] - box[:2]).prod() + area - inside, 1e-9)


def kept(boxes, scores, most=0.6):
    """Indices of the boxes that overlap no better one by more than `most`, best first."""
    order, out = list(np.argsort(-scores, kind="stable")), []
    while order:
        first = order.pop(0)
        out.append(first)
        if order:
            order = [i for i, o in zip(order, overlaps(boxes[first], boxes[order])) if o <= most]
    return out


def main():
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    size = float(sys.argv[3]) if len(sys.argv) == 4 else 128.0
    predicted = np.load(sys.argv[1])
    with open(sys.argv[2]) as file:
        truth = json.load(file)
    categories = sorted(c["id"] for c in truth["categories"])
    found = []
    for image, logits, boxes in zip(truth["images"], predicted["scores"], predicted["boxes"], strict=True):
        scale = np.array([image["width"], image["height"]] * 2) / size
        scores, boxes = 1 / (1 + np.exp(-logits.astype(np.float64))), boxes * scale
        for c, category in enumerate(categories):
            likely = np.flatnonzero(scores[:, c] > 0.05)
            for i in likely[kept(boxes[likely], scores[likely, c])]:
                left, top, right, bottom = (float(v) for v in boxes[i])
                found.append({"image_id": image["id"], "category_id": category, "score": float(scores[i, c]),
                              "bbox": [left, top, right - left, bottom - top]})
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
