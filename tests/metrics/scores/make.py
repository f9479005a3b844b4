"""Makes golden.json: scores of sacreBLEU, jiwer and pycocotools on made-up predictions.

Needs sacrebleu, jiwer and pycocotools.
"""
import contextlib
import io
import json
import os
import random

import jiwer
import sacrebleu
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

random.seed(11)
texts = ["The cat sat on the mat, didn't it?", "It costs $3.50 - or 4,000 yen &amp; more.", "Ein  Haus; (grün) — 10-12 Uhr!",
         "totally different words here", "", "A short one.", "naïve café: 100% “quoted” text", "x.y,z 3.14-2.71 <skipped> end-"]
first = ["The cat sat on a mat, did it not?", "It costs $3.50 or 4,000 yen & more.", "Ein Haus (grün) — 10-12 Uhr",
         "nothing in common with that", "something was said", "A short one.", "naive café: 100% “quoted” texts", "x.y, z 3.14 - 2.71 end-"]
second = ["A cat was sitting on the mat, wasn't it?", "The price is $3.50, or 4000 yen.", "Ein grünes Haus, von 10 bis 12 Uhr!",
          "words that are different", "nothing", "One that is short.", "A naïve café with “quoted” text", "x.y,z 3.14-2.71 end"]
out = {"texts": texts, "first": first, "second": second}
for name, references in (("bleu", [first]), ("bleu2", [first, second]), ("bleu_low", [["zzz yyy"] * len(texts)])):
    score = sacrebleu.corpus_bleu(texts, references)
    out[name] = {"score": score.score, "precisions": score.precisions, "bp": score.bp, "length": score.sys_len,
                 "reference_length": score.ref_len}
# Sequences of numbers, 0 is padding.
ids = [[random.choice([1, 2, 3, 4]) for _ in range(random.randrange(0, 9))] for _ in range(30)]
guesses = [[t if random.random() < 0.8 else random.randrange(1, 5) for t in s][: random.randrange(1, 10)] for s in ids]
score = sacrebleu.corpus_bleu([" ".join(map(str, s)) for s in guesses], [[" ".join(map(str, s)) for s in ids]], tokenize="none")
out["sequences"] = {"input": [s + [0] * (9 - len(s)) for s in guesses], "label": [s + [0] * (9 - len(s)) for s in ids],
                    "bleu": score.score}
random.seed(11)
out["wer"], out["cer"] = jiwer.wer(first, texts), jiwer.cer(first, texts)

images = [{"id": i, "file_name": f"{i}.jpg", "width": 300, "height": 200} for i in range(1, 13)]
categories = [{"id": c, "name": n} for c, n in ((2, "cat"), (5, "dog"), (9, "none"))]
annotations, detections = [], []


def box():
    side = random.choice([12, 50, 130])
    w, h = random.uniform(0.6, 1.4) * side, random.uniform(0.6, 1.2) * side
    return [round(random.uniform(0, 300 - w), 2), round(random.uniform(0, 200 - h), 2), round(w, 2), round(h, 2)]


for image in images:
    for _ in range(random.randrange(0, 6)):
        b, category = box(), random.choice([2, 2, 5])
        annotations.append({"id": len(annotations) + 1, "image_id": image["id"], "category_id": category, "bbox": b,
                            "area": round(b[2] * b[3] * random.uniform(0.7, 1), 2), "iscrowd": int(random.random() < 0.1)})
        for _ in range(random.randrange(0, 3)):
            moved = [round(v + random.gauss(0, 0.07 * max(b[2:])), 2) for v in b]
            moved[2], moved[3] = max(moved[2], 1), max(moved[3], 1)
            detections.append({"image_id": image["id"], "category_id": category if random.random() < 0.9 else 5, "bbox": moved,
                               "score": round(random.random(), 3)})
    for _ in range(random.randrange(0, 3)):
        detections.append({"image_id": image["id"], "category_id": 2, "bbox": box(), "score": round(random.random() * 0.6, 3)})
out["ground_truth"] = {"images": images, "categories": categories, "annotations": annotations}
out["detections"] = detections


def coco(annotations):
    """COCO's twelve numbers."""
    with contextlib.redirect_stdout(io.StringIO()):
        truth = COCO()
        truth.dataset = {"images": images, "categories": categories, "annotations": annotations}
        truth.createIndex()
        evaluation = COCOeval(truth, truth.loadRes([dict(d) for d in detections]), "bbox")
        evaluation.evaluate()
        evaluation.accumulate()
        evaluation.summarize()
    return list(evaluation.stats)


out["coco"] = coco(annotations)
# Objects as large as their boxes, none of them crowds.
out["coco_boxes"] = coco([dict(a, area=a["bbox"][2] * a["bbox"][3], iscrowd=0) for a in annotations])
with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "golden.json"), "w") as f:
    json.dump(out, f, ensure_ascii=False, separators=(",", ":"))
