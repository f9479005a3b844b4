"""Writes table.h5 and the same arrays as table.npz: samples of two fields. Needs h5py.

    python3 make.py
"""
import pathlib

import h5py
import numpy as np

folder = pathlib.Path(__file__).parent
rng = np.random.default_rng(4)
x = rng.standard_normal((240, 4)).astype("f4")
label = (x @ [1, -2, 0.5, 0] > 0).astype("i8")
with h5py.File(folder / "table.h5", "w") as file:
    file.create_dataset("train/x", data=x, chunks=(50, 4), compression="gzip", shuffle=True)
    file.create_dataset("train/label", data=label, chunks=(100,), compression="gzip")
    file.create_dataset("short", data=label[:10])
np.savez_compressed(folder / "table.npz", x=x, label=label)
