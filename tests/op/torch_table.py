"""A table of cases for `paddle op check` whose expected values and gradients come from PyTorch.

    t = Table("complex")
    t.add("exp", {"x": t.complex(2, 3)}, torch.exp)
    t.reject("floor", {"x": t.complex(2)})
    t.write()

Needs NumPy, SciPy and PyTorch on the CPU; the tables are committed, so they are only needed to change the tables.
"""

import json
import pathlib

import numpy as np
import torch

CASES = pathlib.Path(__file__).parent / "cases"


def is_tensor(value):
    return isinstance(value, np.ndarray)


def is_tensor_list(value):
    return isinstance(value, list) and bool(value) and all(is_tensor(v) for v in value)


def flat(result):
    return [r for r in result] if isinstance(result, (tuple, list)) else [result]


def plain(tensor):
    return tensor.detach().resolve_conj().resolve_neg().numpy()


def differentiable(array):
    return array.dtype.kind in "fc"


class Table:
    def __init__(self, family, seed=7):
        self.family, self.lines, self.arrays, self.counts = family, [], {}, {}
        self.keys, self.seeds = {}, {}
        self.random = np.random.default_rng(seed)

    def normal(self, *shape, dtype="float64"):
        return np.asarray(self.random.standard_normal(shape), dtype)

    def uniform(self, low, high, *shape, dtype="float64"):
        return np.asarray(self.random.uniform(low, high, shape), dtype)

    def complex(self, *shape, dtype="complex128"):
        return np.asarray(self.random.standard_normal(shape) + 1j * self.random.standard_normal(shape), dtype)

    def integers(self, low, high, *shape, dtype="int64"):
        return np.asarray(self.random.integers(low, high, shape), dtype)

    def add(self, op, args, function, grad=True, rtol=None, atol=None, frozen=()):
        """`function` gets the arguments by position, tensors as torch tensors."""
        name = self.name(op)
        inputs, wanted = {}, {}
        for key, value in args.items():
            if is_tensor(value):
                inputs[key] = torch.tensor(value)
                if grad and differentiable(value) and key not in frozen:
                    wanted[key] = [inputs[key].requires_grad_()]
            elif is_tensor_list(value):
                inputs[key] = [torch.tensor(v) for v in value]
                if grad and differentiable(value[0]) and key not in frozen:
                    wanted[key] = [v.requires_grad_() for v in inputs[key]]
            else:
                inputs[key] = value
        results = [torch.as_tensor(r) for r in flat(function(*inputs.values()))]
        line = {"name": name, "op": op, "args": self.encode(name, args), "outputs": []}
        for i, result in enumerate(results):
            line["outputs"].append(self.store(f"{name}.y{i}", plain(result)))
        moving = [r for r in results if r.requires_grad]
        if wanted and moving:
            seeds, total = [], 0
            for i, result in enumerate(results):
                if not result.requires_grad:
                    seeds.append(None)
                    continue
                values = plain(result)
                seed = self.seed(values)
                seeds.append(self.store(f"{name}.c{i}", seed))
                total = total + (torch.tensor(seed).conj() * result).sum().real
            total.backward()
            line["cotangents"] = seeds
            line["grads"] = {}
            for key, tensors in wanted.items():
                keys = []
                for i, x in enumerate(tensors):
                    values = torch.zeros_like(x) if x.grad is None else x.grad
                    keys.append(self.store(f"{name}.g.{key}{i}", plain(values)))
                line["grads"][key] = keys if isinstance(args[key], list) else keys[0]
        single = any(a.dtype in (np.float32, np.complex64) for a in self.tensors(args))
        line["rtol"] = rtol if rtol is not None else 2e-4 if single else 1e-8
        line["atol"] = atol if atol is not None else 2e-5 if single else 1e-9
        self.lines.append(line)

    def values(self, op, args, outputs, rtol=1e-9, atol=1e-10):
        """A case without gradients whose results are given."""
        name = self.name(op)
        keys = [self.store(f"{name}.y{i}", np.asarray(y)) for i, y in enumerate(outputs)]
        self.lines.append({"name": name, "op": op, "args": self.encode(name, args), "outputs": keys, "rtol": rtol, "atol": atol})

    def reject(self, op, args):
        name = self.name(op)
        self.lines.append({"name": name, "op": op, "args": self.encode(name, args), "error": True})

    def write(self):
        np.savez_compressed(CASES / f"{self.family}.npz", **self.arrays)
        (CASES / f"{self.family}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in self.lines))

    def name(self, op):
        self.counts[op] = self.counts.get(op, 0) + 1
        return f"{op}/{self.counts[op]}"

    @staticmethod
    def tensors(args):
        for value in args.values():
            yield from [value] if is_tensor(value) else value if is_tensor_list(value) else []

    def store(self, key, values):
        """The key of an array of these values: an earlier one if there is one."""
        content = (values.dtype.str, values.shape, np.ascontiguousarray(values).tobytes())
        found = self.keys.setdefault(content, key)
        if found == key:
            self.arrays[key] = values
        return found

    def seed(self, like):
        """Fixed numbers as the cotangent of a result."""
        key = (like.shape, like.dtype.str)
        if key not in self.seeds:
            values = self.complex(*like.shape) if like.dtype.kind == "c" else self.normal(*like.shape)
            self.seeds[key] = np.asarray(values, like.dtype)
        return self.seeds[key]

    def encode(self, name, args):
        out = {}
        for key, value in args.items():
            if is_tensor(value):
                out[key] = {"array": self.store(f"{name}.{key}", value)}
            elif is_tensor_list(value):
                out[key] = {"arrays": [self.store(f"{name}.{key}{i}", v) for i, v in enumerate(value)]}
            elif isinstance(value, complex):
                out[key] = {"complex": [value.real, value.imag]}
            else:
                out[key] = value
        return out
