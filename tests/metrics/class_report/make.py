"""Makes golden.json: scikit-learn's confusion matrix, tables and curves. Needs scikit-learn."""
import json
import os

import numpy as np
from sklearn import metrics

rng = np.random.default_rng(5)
logits = np.round(rng.normal(size=(60, 4)), 1).astype(np.float32)
labels = rng.integers(0, 4, 60)
logits[np.arange(60), labels] += 1
e = np.exp(logits.astype(np.float64) - logits.max(1, keepdims=True))
p = e / e.sum(1, keepdims=True)
precision, recall, f1, support = metrics.precision_recall_fscore_support(labels, logits.argmax(1), zero_division=0)
scores = np.round(rng.normal(size=80), 1).astype(np.float32)
truth = (scores + rng.normal(size=80) > 0.3).astype(int)
fpr, tpr, thresholds = metrics.roc_curve(truth, scores, drop_intermediate=False)
pr, rc, _ = metrics.precision_recall_curve(truth, scores)
out = {
    "logits": logits.ravel().tolist(), "labels": labels.tolist(),
    "confusion": metrics.confusion_matrix(labels, logits.argmax(1)).ravel().tolist(),
    "precision": precision.tolist(), "recall": recall.tolist(), "f1": f1.tolist(), "support": support.tolist(),
    "auc": [metrics.roc_auc_score(labels == c, p[:, c]) for c in range(4)],
    "average_precision": [metrics.average_precision_score(labels == c, p[:, c]) for c in range(4)],
    "scores": scores.tolist(), "truth": truth.tolist(),
    "fpr": fpr[1:].tolist(), "tpr": tpr[1:].tolist(), "precisions": pr[:-1][::-1].tolist(), "recalls": rc[:-1][::-1].tolist(),
    "binary_auc": metrics.roc_auc_score(truth, scores), "binary_ap": metrics.average_precision_score(truth, scores),
    "iou": metrics.jaccard_score(labels, logits.argmax(1), average=None).tolist(),
    "micro_auc": metrics.roc_auc_score(np.eye(4)[labels], p, average="micro"),
    "micro_average_precision": metrics.average_precision_score(np.eye(4)[labels], p, average="micro"),
}
# A sample with several labels, each decided at a logit of 0.
many = np.round(rng.normal(size=(50, 3)), 1).astype(np.float32)
tags = (many + rng.normal(size=(50, 3)) > 0.5).astype(int)
precision, recall, f1, support = metrics.precision_recall_fscore_support(tags, many > 0, average=None, zero_division=0)
out["many"] = {
    "logits": many.ravel().tolist(), "labels": tags.ravel().tolist(),
    "precision": precision.tolist(), "recall": recall.tolist(), "f1": f1.tolist(), "support": support.tolist(),
    "iou": metrics.jaccard_score(tags, many > 0, average=None).tolist(),
    "auc": metrics.roc_auc_score(tags, many, average=None).tolist(),
    "average_precision": metrics.average_precision_score(tags, many, average=None).tolist(),
    "micro_auc": metrics.roc_auc_score(tags, many, average="micro"),
    "worst": np.where(tags == 1, many, -many).min(1).tolist(),
}
# Segmentation: class scores and labels of pixels; 255 does not count.
pixels = np.round(rng.normal(size=(3, 5, 6, 7)), 1).astype(np.float32)
masks = rng.integers(0, 4, (3, 6, 7))  # the last class occurs in predictions only
for c in range(4):
    pixels[:, c] += 1.5 * (masks == c)
masks[:, 0, :3] = 255
counted = masks != 255
true, found = masks[counted], pixels.argmax(1)[counted]
out["segmentation"] = {
    "scores": pixels.ravel().tolist(), "labels": masks.ravel().tolist(),
    "iou": metrics.jaccard_score(true, found, average=None, labels=range(5)).tolist(),
    **{name: metrics.jaccard_score(true, found, average=name) for name in ("macro", "micro", "weighted")},
}
json.dump(out, open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "golden.json"), "w"))
