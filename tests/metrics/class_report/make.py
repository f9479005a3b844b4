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
}
json.dump(out, open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "golden.json"), "w"))
