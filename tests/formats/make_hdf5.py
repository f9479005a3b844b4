"""Writes data/weights.h5 and data/hdf5.npz: datasets as h5py and Keras write them. Needs h5py.

    python3 make_hdf5.py
"""
import pathlib

import h5py
import numpy as np

folder = pathlib.Path(__file__).parent / "data"
rng = np.random.default_rng(1)
arrays = {
    "model_weights/dense/dense/kernel:0": rng.standard_normal((3, 4)).astype("f4"),
    "model_weights/dense/dense/bias:0": rng.standard_normal(4).astype("f4"),
    "double": rng.standard_normal((2, 2)),
    "half": rng.standard_normal(5).astype("f2"),
    "integers": np.array([[1, -2], [3, 1 << 40]]),
    "bytes": np.array([1, 255], dtype="u1"),
    "flags": np.array([True, False]),
    "scalar": np.float32(7.5),
    "empty": np.zeros((0, 3), "f4"),
}
with h5py.File(folder / "weights.h5", "w", libver="earliest") as f:
    for name, array in arrays.items():
        f[name] = array
    f.create_dataset("packed", data=np.arange(1000, dtype="i4").reshape(10, 100), chunks=(5, 50), compression="gzip", shuffle=True)
    f.create_dataset("big_endian", data=np.arange(4, dtype=">f4"))
    f["text"] = "left out"
    f["pairs"] = np.array([(1, 2.0)], dtype=[("a", "i4"), ("b", "f4")])
    f["alias"] = h5py.SoftLink("/double")
    f.attrs["backend"] = "numpy"
arrays["packed"] = np.arange(1000, dtype="i4").reshape(10, 100)
arrays["big_endian"] = np.arange(4, dtype="f4")
np.savez_compressed(folder / "hdf5.npz", **{k.replace("/", "|"): v for k, v in arrays.items()})
with h5py.File(folder / "elsewhere.h5", "w") as f:
    f.create_dataset("outside", (16,), "u1", external=[("other.bin", 0, 16)])
print(*(f"{p.name} {p.stat().st_size}" for p in sorted(folder.iterdir())), sep="\n")
