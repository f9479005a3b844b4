"""Writes data/forms.*: forms of weight files that make_pickles.py does not come across, from the descriptions of
the formats. Needs numpy only.

    python3 make_pickle_forms.py

forms.pdparams   bfloat16 as PaddlePaddle writes it (its bits as uint16)
slices.pdparams  an array in slices, as PaddlePaddle 2.0 and earlier versions write those over 1 GiB
flags.pt         tensors of PyTorch that are conjugated or negated views, and float8
"""
import io
import pathlib
import pickle
import sys
import types
import zipfile

import numpy as np

folder = pathlib.Path(__file__).parent / "data"

bits = (np.array([1, 2, -0.5], "float32").view("uint32") >> 16).astype("uint16")
(folder / "forms.pdparams").write_bytes(pickle.dumps({"w": bits, "b": np.array([3, 4], "float32")}, 4))

w = np.arange(12, dtype="float32")
sliced = {"w@@.0": w[:5], "w@@.1": w[5:10], "w@@.2": w[10:], "b": np.ones(2, "float32"),
          "UnpackBigParamInfor@@": {"w": {"OriginShape": (3, 4), "slices": ["w@@.0", "w@@.1", "w@@.2"]}}}
(folder / "slices.pdparams").write_bytes(pickle.dumps(sliced, 2))

# Stand-ins for what PyTorch's pickles name.
torch, utils = types.ModuleType("torch"), types.ModuleType("torch._utils")


def stand_in(module, name, make):
    value = make(name, module)
    setattr(module, name, value)
    return value


def function(name, module):
    def call(*arguments):
        raise NotImplementedError

    call.__module__, call.__qualname__, call.__name__ = module.__name__, name, name
    return call


def named_class(name, module):
    return type(name, (), {"__module__": module.__name__})


class Dtype:
    """A dtype of PyTorch, which is pickled by its name."""

    def __init__(self, name, module):
        self.name = name

    def __reduce__(self):
        return self.name


sys.modules["torch"], sys.modules["torch._utils"] = torch, utils
v2, v3 = stand_in(utils, "_rebuild_tensor_v2", function), stand_in(utils, "_rebuild_tensor_v3", function)
complex_storage, float_storage = stand_in(torch, "ComplexFloatStorage", named_class), stand_in(torch, "FloatStorage", named_class)
torch.storage = types.ModuleType("torch.storage")
sys.modules["torch.storage"] = torch.storage
untyped = stand_in(torch.storage, "UntypedStorage", named_class)
e4m3, e5m2 = (stand_in(torch, n, Dtype) for n in ("float8_e4m3fn", "float8_e5m2"))
for each in (e4m3, e5m2):
    each.__class__.__module__ = "torch"


class Storage:
    def __init__(self, kind, key, count):
        self.kind, self.key, self.count = kind, key, count


class Call:
    def __init__(self, function, *arguments):
        self.function, self.arguments = function, arguments

    def __reduce__(self):
        return self.function, self.arguments


class Pickler(pickle.Pickler):
    def persistent_id(self, value):
        if isinstance(value, Storage):
            return ("storage", value.kind, value.key, "cpu", value.count)
        return None


z = np.array([1 + 2j, 3 - 4j], "complex64")
content = {
    "conj": Call(v2, Storage(complex_storage, "0", 2), 0, (2,), (1,), False, {}, {"conj": True}),
    "imag": Call(v2, Storage(float_storage, "1", 4), 1, (2,), (2,), False, {}, {"neg": True}),
    "plain": Call(v2, Storage(complex_storage, "0", 2), 0, (2,), (1,), False, {}),
    "e4m3": Call(v3, Storage(untyped, "2", 2), 0, (2,), (1,), False, {}, e4m3),
    "e5m2": Call(v3, Storage(untyped, "2", 2), 0, (2,), (1,), False, {}, e5m2),
}
out = io.BytesIO()
Pickler(out, 2).dump(content)
with zipfile.ZipFile(folder / "flags.pt", "w") as f:
    f.writestr("flags/data.pkl", out.getvalue())
    f.writestr("flags/byteorder", "little")
    f.writestr("flags/data/0", z.tobytes())
    f.writestr("flags/data/1", z.tobytes())  # the parts as floats
    f.writestr("flags/data/2", bytes([0x38, 0xC0]))
