"""Whether runs ended with the same float64 weights: same_weights.py RUN OTHER..., folders of runs."""
import json
import struct
import sys


def weights(run):
    with open(f"{run}/model/model.safetensors", "rb") as f:
        raw = f.read()
    length = struct.unpack("<Q", raw[:8])[0]
    data = raw[8 + length :]
    out = {}
    for name, entry in json.loads(raw[8 : 8 + length]).items():
        if name != "__metadata__":
            begin, end = entry["data_offsets"]
            out[name] = struct.unpack(f"<{(end - begin) // 8}d", data[begin:end])
    return out


first, *others = sys.argv[1:]
expected = weights(first)
assert others and max(abs(x) for x in expected["linear.weight"]) > 0.1
for run in others:
    found = weights(run)
    assert found.keys() == expected.keys(), (run, found.keys())
    for name, values in found.items():
        worst = max(abs(a - b) for a, b in zip(values, expected[name], strict=True))
        assert worst < 1e-12, (run, name, worst)
