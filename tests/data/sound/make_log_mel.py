"""Logarithms of mel spectrograms that numpy computes, for transforms_test.cc: make_log_mel.py.
Slaney's scale and areas, a periodic Hann window, zeros outside of the sound."""
import os

import numpy as np

RATE, MELS, WINDOW, HOP = 8000, 12, 200, 80
N = 256


def mel(f):
    return f / (200 / 3) if f < 1000 else 15 + np.log(f / 1000) / (np.log(6.4) / 27)


def hertz(m):
    return m * 200 / 3 if m < 15 else 1000 * np.exp(np.log(6.4) / 27 * (m - 15))


t = np.arange(1000)
x = (np.sin(t * 0.3) + 0.5 * np.sin(t * t / 2500)).astype(np.float32)
edges = [hertz(m) for m in np.linspace(mel(60), mel(3800), MELS + 2)]
freqs = np.arange(N // 2 + 1) * RATE / N
filters = np.stack([np.maximum(0, np.minimum((freqs - a) / (b - a), (c - freqs) / (c - b))) * 2 / (c - a)
                    for a, b, c in zip(edges, edges[1:], edges[2:])])
window = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(WINDOW) / WINDOW)
padded = np.concatenate([np.zeros(WINDOW // 2), x, np.zeros(WINDOW)])
rows = []
for f in range(1 + len(x) // HOP):
    frame = padded[f * HOP:f * HOP + WINDOW] * window
    rows.append(np.log(np.maximum(filters @ np.abs(np.fft.rfft(frame, N))**2, 1e-10)))
here = os.path.dirname(os.path.abspath(__file__))
np.savez(f"{here}/log_mel.npz", sound=x, expected=np.asarray(rows, np.float32))
