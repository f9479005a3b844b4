"""Writes small NPZ files into a folder: x as float32[7, 2], and the same with what does not fit."""

import struct
import sys
import zipfile


def write(name, key, descr, shape, data):
    header = str({"descr": descr, "fortran_order": False, "shape": shape}).encode()
    header += b" " * (-(10 + len(header) + 1) % 64) + b"\n"
    with zipfile.ZipFile(f"{sys.argv[1]}/{name}.npz", "w") as z:
        z.writestr(key + ".npy", b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + data)


write("x", "x", "<f4", (7, 2), struct.pack("<14f", *range(14)))
write("other_name", "y", "<f4", (7, 2), struct.pack("<14f", *range(14)))
write("other_shape", "x", "<f4", (7, 3), struct.pack("<21f", *range(21)))
write("other_type", "x", "<i8", (7, 2), struct.pack("<14q", *range(14)))
