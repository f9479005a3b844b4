"""Kinds of datasets that are written in Python, for configs that this process runs.

    @paddle.data.register("squares")
    class Squares:
        fields = ["x: float32[1]", "y: float32[1]"]

        def __init__(self, count: int = 100):
            self.count = count

        def __len__(self):
            return self.count

        def __getitem__(self, index):
            return {"x": [index / self.count], "y": [(index / self.count) ** 2]}

A config then has `data.train: {kind: squares, count: 1000}`.
"""
import inspect
import os
import pathlib

from . import _paddle

_TYPES = {str: "str", int: "int", float: "float", bool: "bool", os.PathLike: "path", pathlib.Path: "path"}
_VALUES = {"str": str, "path": pathlib.Path, "int": int, "float": float, "bool": lambda text: text == "true"}


def _text(value):
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def _keys(reader):
    """Name, type, "required", "default" or "optional", and default, for each parameter of the constructor."""
    out = []
    if reader.__init__ is object.__init__:
        return out
    for parameter in list(inspect.signature(reader.__init__, eval_str=True).parameters.values())[1:]:
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise _paddle.UsageError(f"data.register: {reader.__name__}: a key for each parameter is expected, not *{parameter.name}")
        default = parameter.default
        kind = parameter.annotation
        if kind is parameter.empty:
            kind = str if default in (parameter.empty, None) else type(default)
        if kind not in _TYPES:
            names = ", ".join(each.__name__ for each in _TYPES)
            raise _paddle.UsageError(f"data.register: {reader.__name__}: {parameter.name}: expected one of the types {names}")
        if default is parameter.empty:
            out.append((parameter.name, _TYPES[kind], "required", ""))
        elif default is None:
            out.append((parameter.name, _TYPES[kind], "optional", ""))
        else:
            out.append((parameter.name, _TYPES[kind], "default", _text(default)))
    return out


class _Reader:
    """What the engine calls: samples as lists in the order of the fields."""

    def __init__(self, name, dataset):
        self.name, self.dataset = name, dataset
        self.fields = list(dataset.fields)
        self.fingerprint = str(getattr(dataset, "fingerprint", ""))
        self.order = [line.partition(":")[0].strip() for line in self.fields]
        self.own_read = getattr(dataset, "read", None)

    def __len__(self):
        return len(self.dataset)

    def read(self, index, seed, epoch):
        sample = self.own_read(index, seed, epoch) if self.own_read else self.dataset[index]
        if isinstance(sample, dict):
            unknown = [name for name in sample if name not in self.order]
            if unknown:
                raise ValueError(f"{unknown[0]!r} is not a field, fields are {', '.join(self.order)}")
            return [sample[name] for name in self.order]
        sample = sample if isinstance(sample, (tuple, list)) else [sample]
        if len(sample) != len(self.order):
            raise ValueError(f"{len(sample)} values for {len(self.order)} fields")
        return sample


def register(name):
    """A decorator: makes a class a kind of dataset with this name.

    The class has `fields`, a list such as ["image: uint8[1, 28, 28]", "label: int64[] classes 10"], whose sizes may be
    -1; `__len__`; and `__getitem__(index)`, which gives a dict by field or a tuple: tensors, arrays, numbers or lists.
    With `read(index, seed, epoch)` in its place, samples may be random. Annotated parameters of the constructor (str,
    int, float, bool, pathlib.Path) are the keys in a config. Reading threads call one at a time, with the interpreter's
    lock. `fingerprint`, if there is one, differs for other data, so that a run is not resumed on it.
    """

    def add(reader):
        # Fields may be set by the constructor.
        if not hasattr(reader, "fields") and reader.__init__ is object.__init__:
            raise _paddle.UsageError(f"data.register: {reader.__name__} has no fields")
        keys = _keys(reader)
        kinds = {key[0]: key[1] for key in keys}

        def open_reader(options):
            return _Reader(name, reader(**{key: _VALUES[kinds[key]](text) for key, text in options.items()}))

        _paddle.register_reader(name, keys, open_reader)
        return reader

    return add
