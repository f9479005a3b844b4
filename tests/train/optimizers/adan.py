"""Makes adan.npz: 30 updates in float64 by Adan, written here after its paper.

Needs NumPy. Network, data and initial weights are those of golden.npz (make.py): the mean squared
error of tanh(x @ w1 + b1) @ w2 + b2. Decay rates are those that moments keep, as 0.98.
"""
import os

import numpy as np

FOLDER = os.path.dirname(os.path.abspath(__file__))
NAMES = ["fc1.weight", "fc1.bias", "fc2.weight", "fc2.bias"]
STEPS, LR, B1, B2, B3, EPS, DECAY = 30, 0.05, 0.98, 0.92, 0.99, 1e-8, 0.1


def gradients(p, x, y):
    w1, b1, w2, b2 = p
    hidden = np.tanh(x @ w1 + b1)
    error = 2 * (hidden @ w2 + b2 - y) / y.size
    inner = error @ w2.T * (1 - hidden**2)
    return [x.T @ inner, inner.sum(0), hidden.T @ error, error.sum(0)]


given = np.load(os.path.join(FOLDER, "golden.npz"))
p = [given[name].copy() for name in NAMES]
m, d, n = ([np.zeros_like(v) for v in p] for _ in range(3))
previous = None
for step in range(1, STEPS + 1):
    grads = gradients(p, given["x"], given["y"])
    for i, g in enumerate(grads):
        diff = g - previous[i] if previous else np.zeros_like(g)
        m[i] = B1 * m[i] + (1 - B1) * g
        d[i] = B2 * d[i] + (1 - B2) * diff
        n[i] = B3 * n[i] + (1 - B3) * (g + B2 * diff) ** 2
        direction = m[i] / (1 - B1**step) + B2 * d[i] / (1 - B2**step)
        p[i] = (p[i] - LR * direction / (np.sqrt(n[i] / (1 - B3**step)) + EPS)) / (1 + LR * DECAY)
    previous = grads
np.savez_compressed(os.path.join(FOLDER, "adan.npz"), **{f"adan/{name}": v for name, v in zip(NAMES, p)})
