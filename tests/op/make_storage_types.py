"""Writes tests/op/storage_types.npz: what every code of the 8-bit floats means, and the codes that
PyTorch gives to float32 values around their limits. Needs torch and numpy.

  make_storage_types.py
"""
import os

import numpy as np
import torch

KINDS = {"e4m3fn": torch.float8_e4m3fn, "e5m2": torch.float8_e5m2, "e4m3fnuz": torch.float8_e4m3fnuz,
         "e5m2fnuz": torch.float8_e5m2fnuz, "e8m0fnu": torch.float8_e8m0fnu}

codes = torch.arange(256, dtype=torch.int32).to(torch.uint8)
arrays = {}
rng = np.random.default_rng(3)
for name, dtype in KINDS.items():
    means = codes.view(dtype).float()
    arrays[f"{name}.means"] = means.numpy()
    finite = np.sort(np.unique(np.abs(means.numpy()[np.isfinite(means.numpy())]))).astype(np.float64)
    halves = (finite[1:] + finite[:-1]) / 2
    values = np.concatenate([finite, halves, np.nextafter(halves, 0), halves * (1 + 1e-6), rng.standard_normal(100),
                             2.0 ** rng.uniform(-20, 20, 100), [finite[-1] * f for f in (1.01, 1.04, 1.0625, 1.07, 1.2, 1e3)],
                             [np.inf, np.nan, 0.0]]).astype(np.float32)
    values = np.concatenate([values, -values]) if name != "e8m0fnu" else values[values > 1e-30]
    arrays[f"{name}.values"] = values
    arrays[f"{name}.codes"] = torch.from_numpy(values).to(dtype).view(torch.uint8).numpy()
np.savez_compressed(os.path.join(os.path.dirname(os.path.abspath(__file__)), "storage_types.npz"), **arrays)
