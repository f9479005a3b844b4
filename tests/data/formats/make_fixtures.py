"""Writes the files that the tests of engine/formats read, with NumPy and safetensors.

Every array holds 0, 1, 2, ... in row-major order (bool: odd or not), so that the tests need no
second copy of the values. Needs numpy, safetensors, pillow. Run it in this folder.
"""

import gzip
import io
import struct
import zipfile

import numpy as np
from PIL import Image
from safetensors.numpy import save_file


def counting(dtype, shape):
    values = np.arange(int(np.prod(shape))).reshape(shape)
    return values % 2 == 1 if dtype == "bool" else values.astype(dtype)


TYPES = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
         "float16", "float32", "float64", "complex64", "complex128"]
arrays = {t: counting(t, (2, 3)) for t in TYPES}
arrays["scalar"] = np.float32(7)
arrays["empty"] = np.zeros((0, 4), "int64")
np.savez("types.npz", **arrays)
np.savez_compressed("types_deflated.npz", **arrays)

np.save("fortran.npy", np.asfortranarray(counting("float32", (2, 3, 4))))
np.save("big_endian.npy", counting(">f8", (3, 2)))
np.save("big_endian_fortran.npy", np.asfortranarray(counting(">c8", (3, 2))))
with open("version2.npy", "wb") as f:
    np.lib.format.write_array(f, counting("int32", (4,)), version=(2, 0))
np.save("structured.npy", np.zeros(2, dtype=[("a", "i4"), ("b", "f4")]))
np.save("strings.npy", np.array(["a", "bc"]))

# A directory with 64-bit sizes.
zipfile.ZIP64_LIMIT = 10
buffer = io.BytesIO()
np.save(buffer, counting("float32", (5,)))
with zipfile.ZipFile("zip64.npz", "w", allowZip64=True) as z:
    z.writestr("x.npy", buffer.getvalue())

save_file({"b.weight": counting("float32", (2, 3)), "a.bias": counting("int64", (3,)),
           "flag": counting("bool", (4,)), "none": np.zeros((0, 2), "float16"),
           "half": counting("float16", (5,))},
          "plain.safetensors", metadata={"format": "np", "note": "x"})

gradient = np.zeros((4, 6, 3), "uint8")
gradient[..., 0] = np.arange(6) * 40
gradient[..., 1] = np.arange(4)[:, None] * 60
gradient[..., 2] = 128
Image.fromarray(gradient).save("rgb.png")
Image.fromarray(gradient[..., 0]).save("grey.png")
Image.fromarray(np.dstack([gradient, np.full((4, 6), 255, "uint8")])).save("rgba.png")
Image.fromarray(gradient).quantize(16).save("palette.png")
Image.fromarray(gradient[..., 0] > 100).save("one_bit.png")
Image.fromarray(gradient[..., 0].astype("uint16") * 257).save("sixteen_bit.png")
Image.fromarray(gradient).resize((48, 32)).save("rgb.jpg", quality=95)
Image.fromarray(gradient[..., 0]).resize((48, 32)).save("grey.jpg", quality=95)
Image.fromarray(gradient).convert("CMYK").resize((48, 32)).save("cmyk.jpg", quality=95)

images = counting("uint8", (3, 4, 5))
idx = struct.pack(">BBBB3I", 0, 0, 8, 3, *images.shape) + images.tobytes()
open("images.idx", "wb").write(idx)
gzip.GzipFile("images.idx.gz", "wb", mtime=0).write(idx)
floats = counting("float32", (2, 2))
open("floats.idx", "wb").write(
    struct.pack(">BBBB2I", 0, 0, 13, 2, *floats.shape) + floats.astype(">f4").tobytes())
