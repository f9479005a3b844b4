#!/usr/bin/env python3
"""Makes the tables of cases in tests/op/cases: FILE.jsonl with FILE.npz for `paddle op check`.

Every expected value comes from PaddlePaddle, or from PyTorch, NumPy or SciPy where PaddlePaddle is
wrong or lacks a type; nothing is computed with the code under test. Needs paddlepaddle (CPU), torch,
numpy and scipy. Run it in any folder:

    python make_cases.py [FAMILY...]

A family is a function `cases_FAMILY` of the modules cases_*.py next to this file; it adds cases to a
Table. Calls that PaddlePaddle rejects are skipped and listed, unless they are marked as errors.
"""

import importlib
import json
import pathlib
import sys
import warnings

import numpy as np

warnings.filterwarnings("ignore")
import paddle  # noqa: E402

HERE = pathlib.Path(__file__).parent
FLOATS = ("float16", "bfloat16", "float32", "float64")
# Relative and absolute tolerance by the narrowest floating type of a case. PaddlePaddle holds float
# attributes in float32, which limits what float64 cases can tell.
TOLERANCE = {"float16": (2e-3, 2e-3), "bfloat16": (1.6e-2, 1.6e-2), "float32": (2e-5, 2e-6), "float64": (2e-7, 1e-7)}

MODULES = [paddle.nn.functional, paddle, paddle.linalg, paddle.fft, paddle.signal, paddle.vision.ops,
           paddle.geometric, paddle.incubate.nn.functional, paddle.Tensor]


def reference(name):
    """PaddlePaddle's function of a name."""
    for module in MODULES:
        function = getattr(module, name, None)
        if callable(function):
            return function
    raise KeyError(f"PaddlePaddle has no function {name}")


class Half:
    """An array of a 16-bit float, held in float32."""

    def __init__(self, values, dtype):
        self.dtype = dtype
        self.values = round_to(np.asarray(values, np.float32), dtype)


def round_to(values, dtype):
    if dtype == "float16":
        return values.astype(np.float16).astype(np.float32)
    bits = np.ascontiguousarray(values, np.float32).view(np.uint32).astype(np.uint64)
    bits = (bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000
    rounded = bits.astype(np.uint32).view(np.float32).reshape(values.shape)
    return np.where(np.isfinite(values), rounded, values).astype(np.float32)


def is_tensor(value):
    return isinstance(value, (np.ndarray, Half))


def is_tensor_list(value):
    return isinstance(value, (list, tuple)) and len(value) > 0 and all(is_tensor(v) for v in value)


def flatten(result):
    if result is None:
        return []
    if isinstance(result, (list, tuple)):
        return [t for r in result for t in flatten(r)]
    return [result]


def plain(value):
    """A parameter that is not a tensor, as JSON."""
    if isinstance(value, float) and not np.isfinite(value):
        return "nan" if value != value else ("inf" if value > 0 else "-inf")
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if isinstance(value, np.generic):
        return value.item()
    return value


class Table:
    def __init__(self, family, seed=1):
        self.family = family
        self.rng = np.random.default_rng(seed)
        self.lines, self.arrays, self.keys, self.counts, self.skipped = [], {}, {}, {}, []

    # ---- inputs

    def normal(self, *shape, dtype="float32", scale=1.0, shift=0.0):
        values = self.rng.standard_normal(shape) * scale + shift
        return Half(values, dtype) if dtype in ("float16", "bfloat16") else np.asarray(values).astype(dtype)

    def uniform(self, low, high, *shape, dtype="float32"):
        values = self.rng.uniform(low, high, shape)
        if dtype in ("float16", "bfloat16"):
            return Half(values, dtype)
        return np.asarray(values).astype(dtype)

    def integers(self, low, high, *shape, dtype="int64"):
        return np.asarray(self.rng.integers(low, high, shape)).astype(dtype)

    def bools(self, *shape):
        return np.asarray(self.rng.integers(0, 2, shape)).astype(bool)

    # ---- cases

    def add(self, op, args, grad=True, function=None, rtol=None, atol=None, outputs=None, skip_outputs=(), frozen=()):
        """One case. `function(**args)` on paddle tensors gives the expected results; by default
        PaddlePaddle's function of that name. `outputs` gives them as arrays instead (no gradients).
        No gradient is asked for the parameters in `frozen`."""
        name = self.name(op)
        try:
            line = self.expect(op, name, args, grad, function, outputs, skip_outputs, frozen)
        except Exception as error:  # PaddlePaddle rejects what we may accept
            self.skipped.append(f"{name}: {type(error).__name__}: {str(error).strip().splitlines()[-1][:150]}")
            return
        narrow = [d for d in FLOATS if d in self.dtypes_of(args)]
        default = TOLERANCE[narrow[0] if narrow else "float32"]
        line["rtol"] = default[0] if rtol is None else rtol
        line["atol"] = default[1] if atol is None else atol
        self.lines.append(line)

    def reject(self, op, args):
        """A call that must be rejected."""
        name = self.name(op)
        self.lines.append({"name": name, "op": op, "args": self.encode(name, args), "error": True})

    def write(self):
        folder = HERE / "cases"
        folder.mkdir(exist_ok=True)
        with open(folder / f"{self.family}.jsonl", "w") as file:
            for line in self.lines:
                file.write(json.dumps(line, allow_nan=False) + "\n")
        np.savez_compressed(folder / f"{self.family}.npz", **self.arrays)
        size = (folder / f"{self.family}.npz").stat().st_size
        print(f"{self.family}: {len(self.lines)} cases of {len(self.counts)} operations, {size // 1024} KiB")
        for line in self.skipped:
            print("  skipped", line)

    # ---- details

    def name(self, op):
        self.counts[op] = self.counts.get(op, -1) + 1
        return f"{op}/{self.counts[op]}"

    def dtypes_of(self, args):
        out = set()
        for value in args.values():
            for v in value if isinstance(value, (list, tuple)) else [value]:
                if is_tensor(v):
                    out.add(str(v.dtype))
        return out

    def store(self, key, values):
        """Keeps an array; one that is there already is shared."""
        values = np.ascontiguousarray(values).reshape(np.shape(values))
        content = (str(values.dtype), values.shape, values.tobytes())
        if content not in self.keys:
            self.keys[content] = key
            self.arrays[key] = values
        return self.keys[content]

    def encode_tensor(self, key, value):
        if isinstance(value, Half):
            if value.dtype == "float16":
                return {"array": self.store(key, value.values.astype(np.float16))}
            return {"array": self.store(key, value.values), "dtype": "bfloat16"}
        return {"array": self.store(key, value)}

    def encode(self, name, args):
        out = {}
        for key, value in args.items():
            if is_tensor(value):
                out[key] = self.encode_tensor(f"{name}.{key}", value)
            elif is_tensor_list(value):
                items = [self.encode_tensor(f"{name}.{key}{i}", v) for i, v in enumerate(value)]
                out[key] = {"arrays": [i["array"] for i in items]}
                if "dtype" in items[0]:
                    out[key]["dtype"] = items[0]["dtype"]
            else:
                out[key] = plain(value)
        return out

    def expect(self, op, name, args, grad, function, outputs, skip_outputs, frozen):
        half = next((d for d in ("float16", "bfloat16") if d in self.dtypes_of(args)), None)
        leaves, call = {}, {}

        def tensor(key, value):
            # 16-bit floats are computed in float32 and rounded at the end.
            t = paddle.to_tensor(value.values if isinstance(value, Half) else value)
            t.stop_gradient = key in frozen or not (grad and t.dtype in (paddle.float32, paddle.float64))
            return t

        for key, value in args.items():
            if is_tensor(value):
                call[key] = leaves[key] = tensor(key, value)
            elif is_tensor_list(value):
                call[key] = leaves[key] = [tensor(key, v) for v in value]
            else:
                call[key] = value
        line = {"name": name, "op": op}
        if outputs is not None:
            results = []
            arrays = outputs
        else:
            results = flatten((function or reference(op))(**call))
            results = [r if isinstance(r, paddle.Tensor) else paddle.to_tensor(r) for r in results]
            arrays = [r.numpy() for r in results]
        line["args"] = self.encode(name, args)
        line["outputs"] = []
        for i, values in enumerate(arrays):
            if i in skip_outputs:
                line["outputs"].append(None)
                continue
            line["outputs"].append(self.store(f"{name}.out{i}", self.narrow(values, half)))
        wanted = []
        for key, value in leaves.items():
            for i, t in enumerate(value if isinstance(value, list) else [value]):
                if not t.stop_gradient:
                    wanted.append((key, i if isinstance(value, list) else None, t))
        flowing = [i for i, r in enumerate(results) if not r.stop_gradient and i not in skip_outputs]
        if not wanted or not flowing or not grad:
            return line
        seeds, line["cotangents"] = [], [None] * len(results)
        for i in flowing:
            seed = np.asarray(np.random.default_rng(2).standard_normal(arrays[i].shape)).astype(arrays[i].dtype)
            if half:
                seed = round_to(seed, half)
            seeds.append(paddle.to_tensor(seed))
            line["cotangents"][i] = self.store(f"{name}.seed{i}", self.narrow(seed, half))
        grads = paddle.grad([results[i] for i in flowing], [t for _, _, t in wanted], seeds, allow_unused=True)
        line["grads"] = {}
        for (key, i, t), g in zip(wanted, grads):
            if g is None:  # PaddlePaddle has no gradient for it, or none flows
                continue
            values = g.numpy()
            if i is None:
                line["grads"][key] = self.store(f"{name}.grad_{key}", self.narrow(values, half))
            else:
                keys = line["grads"].setdefault(key, [None] * len(leaves[key]))
                keys[i] = self.store(f"{name}.grad_{key}{i}", self.narrow(values, half))
        return line

    @staticmethod
    def narrow(values, half):
        values = np.asarray(values)
        if half is None or values.dtype != np.float32:
            return values
        return values.astype(np.float16) if half == "float16" else round_to(values, half)


def main(wanted):
    sys.path.insert(0, str(HERE))
    paddle.set_device("cpu")
    for path in sorted(HERE.glob("cases_*.py")):
        module = importlib.import_module(path.stem)
        for attribute in sorted(dir(module)):
            family = attribute.removeprefix("cases_")
            if not attribute.startswith("cases_") or (wanted and family not in wanted):
                continue
            table = Table(family)
            getattr(module, attribute)(table)
            table.write()


if __name__ == "__main__":
    main(sys.argv[1:])
