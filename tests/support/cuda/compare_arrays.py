"""compare_arrays.py CPU.npz CUDA.npz TOLERANCE: arrays of float32 or bfloat16 are equal within a
tolerance, a fraction of the largest value."""

import math, struct, sys, zipfile
def arrays(path):
    out = {}
    with zipfile.ZipFile(path) as z:
        for name in z.namelist():
            raw = z.read(name)
            data = raw[10 + struct.unpack("<H", raw[8:10])[0]:]
            if b"<f4" in raw[:128]:
                out[name] = struct.unpack(f"<{len(data) // 4}f", data)
            else:  # bfloat16 as its bits
                bits = struct.unpack(f"<{len(data) // 2}H", data)
                out[name] = struct.unpack(f"<{len(bits)}f", struct.pack(f"<{len(bits)}I", *(b << 16 for b in bits)))
    return out
cpu, cuda = arrays(sys.argv[1]), arrays(sys.argv[2])
assert cpu.keys() == cuda.keys() and cpu, cpu.keys()
for name in cpu:
    largest = max((abs(x) for x in cpu[name] if not math.isnan(x)), default=1)
    assert largest > 0.01, (name, largest)
    for a, b in zip(cpu[name], cuda[name], strict=True):
        assert math.isnan(a) == math.isnan(b), (name, a, b)
        assert math.isnan(a) or abs(a - b) <= float(sys.argv[3]) * largest, (name, a, b)
