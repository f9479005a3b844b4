"""Makes golden.json: areas and rates of made-up predictions of click rates, by their definitions.

Needs numpy. Areas are shares of pairs whose positive has the higher score; ties count half.
"""
import json
import os

import numpy as np

r = np.random.default_rng(5)
n = 400
# Few values, so that there are ties.
logit = (np.round(r.normal(-1, 1.2, n) * 8) / 8).astype(np.float32)
label = (r.random(n) < 1 / (1 + np.exp(-logit.astype(np.float64)))).astype(np.int64)
# Among the users are ones of one sample, of one class, and numbers that float64 cannot hold.
user = (np.uint64(2**63 + 2**55) + np.minimum(r.geometric(0.05, n), 60).astype(np.uint64)).astype(np.uint64)
mask = (r.random(n) < 0.6).astype(np.int64)


def area(score, label):
    yes, no = score[label == 1].astype(np.float64), score[label == 0].astype(np.float64)
    if len(yes) == 0 or len(no) == 0:
        return None
    pairs = (yes[:, None] > no[None, :]) + 0.5 * (yes[:, None] == no[None, :])
    return pairs.sum() / pairs.size


def by_user(chosen):
    areas = [(area(logit[chosen & (user == u)], label[chosen & (user == u)]), (chosen & (user == u)).sum()) for u in set(user.tolist())]
    areas = [(a, k) for a, k in areas if a is not None]
    return {"weighted": sum(a * k for a, k in areas) / sum(k for _, k in areas), "macro": sum(a for a, _ in areas) / len(areas)}


def bucket_error(p, label, buckets=1000000):
    """PaddlePaddle's, paddle/fluid/framework/fleet/metrics.cc."""
    table = np.zeros((2, buckets))
    np.add.at(table, (label, np.minimum((p * buckets).astype(np.int64), buckets - 1)), 1)
    last, shows, predicted, clicks, errors, count = -1.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for i in range(buckets):
        rate = i / buckets
        if abs(rate - last) > 0.01:
            last, shows, predicted, clicks = rate, 0.0, 0.0, 0.0
        shows += table[0, i] + table[1, i]
        predicted += rate * (table[0, i] + table[1, i])
        clicks += table[1, i]
        if predicted > 0 and ((1 - predicted / shows) / (predicted / shows * shows)) ** 0.5 < 0.05:
            errors += abs(clicks / shows / (predicted / shows) - 1) * shows
            count += shows
            last = -1.0
    return errors / count if count else 0.0


p = 1 / (1 + np.exp(-logit.astype(np.float64)))
everything = np.ones(n, bool)
# Rates that are certain to 5% need many samples of close predictions.
sure_p = np.round(0.3 + 0.6 * r.random(6000), 2) + 1e-7
sure_label = (r.random(6000) < sure_p * 0.9).astype(np.int64)
golden = {
    "logit": logit.tolist(), "label": label.tolist(), "user": user.tolist(), "mask": mask.tolist(),
    "auc": area(logit, label), "auc_masked": area(logit[mask == 1], label[mask == 1]),
    "wuauc": by_user(everything), "wuauc_masked": by_user(mask == 1),
    "mae": np.abs(p - label).mean(), "rmse": ((p - label) ** 2).mean() ** 0.5, "actual": label.mean(), "predicted": p.mean(),
    "copc": label.sum() / p.sum(), "mae_masked": np.abs(p - label)[mask == 1].mean(),
    "sure": {"percent": np.round(sure_p * 100).astype(int).tolist(), "label": sure_label.tolist(), "bucket_error": bucket_error(sure_p, sure_label)},
}
with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "golden.json"), "w") as f:
    json.dump(golden, f, separators=(",", ":"))
    f.write("\n")
