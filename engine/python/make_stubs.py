#!/usr/bin/env python3
"""Writes the type stubs of the Python package: make_stubs.py FOLDER, which has paddle_toolchain.

Operations have the types of their schema. Classes and functions in Python have their parameters, as Any where they
have no annotation.
"""
import ast
import importlib
import inspect
import keyword
import os
import re
import sys

HEADER = '"""Generated; do not edit."""\nfrom collections.abc import Callable, Iterator, Sequence\nfrom typing import Any, Literal\n'
MODULES = ("amp", "autograd", "config", "custom_operation", "data", "distributed", "export", "fft", "io", "jit", "language_model", "linalg",
           "metric", "model", "model_layer", "nn", "nn.clip", "nn.containers", "nn.functional", "nn.layer", "nn.layers", "nn.recurrent",
           "nn.simple", "optimizer",
           "plugins", "training")
# Modules of which the package has classes or functions, and that are not attributes of it.
INNER = ("custom_operation", "language_model", "model", "model_layer", "training")
TYPES = {
    "T": "TensorLike", "tensor": "TensorLike", "Ts": "Sequence[TensorLike]", "tensors": "Sequence[TensorLike]",
    "bool": "_bool", "int": "int", "float": "float", "str": "str", "number": "_complex", "ints": "int | Sequence[int]",
    "floats": "float | Sequence[float]", "strs": "Sequence[str]", "dim": "int", "dims": "int | Sequence[int]",
    "dtype": "str", "any": "Any",
}
UNARY = ("__neg__", "__pos__", "__abs__", "__invert__")
BINARY = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and", "or", "xor")
COMPARISONS = ("__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__")


def split_parameters(text):
    """The parts of "x:T, mode:word(a|b)='a'" at commas outside of brackets and quotes."""
    out, depth, quoted, begin = [], 0, False, 0
    for at, c in enumerate(text):
        if c == "'":
            quoted = not quoted
        elif quoted:
            continue
        elif c in "([":
            depth += 1
        elif c in ")]":
            depth -= 1
        elif c == "," and depth == 0:
            out.append(text[begin:at].strip())
            begin = at + 1
    return [part for part in [*out, text[begin:].strip()] if part]


def hint(kind):
    """The Python type of a type of the schema."""
    words = re.fullmatch(r"word\((.*)\)(\??)", kind)
    if words:
        names = ", ".join(repr(word) for word in words.group(1).split("|"))
        return f"Literal[{names}]" + (" | None" if words.group(2) else "")
    out = []
    for part in kind.split("|"):
        part = part.partition("@")[0] + ("?" if part.endswith("?") and "@" in part else "")
        optional = part.endswith("?")
        out.append(TYPES.get(part.rstrip("?"), "Any"))
        if optional:
            out.append("None")
    return " | ".join(dict.fromkeys(out))


def signature_of(text, method):
    """Parameters and the result of "name(x:T, axis:int=0) -> out"."""
    head, _, results = text.rpartition(" -> ")
    parameters = split_parameters(head[head.index("(") + 1:head.rindex(")")])
    out, has_default = ["self"] if method else [], False
    for parameter in parameters[1:] if method else parameters:
        name, _, kind = parameter.partition(":")
        name = name.partition("=")[0]
        kind = re.match(r"word\([^)]*\)\??|[^=]*", kind or "T").group()
        has_default = has_default or kind.endswith("?") or "=" in parameter
        if keyword.iskeyword(name):
            out.append("**named: Any")
            break
        out.append(f"{name}: {hint(kind)}" + (" = ..." if has_default else ""))
    count = len(results.split(","))
    result = "Tensor" if count == 1 and not results.endswith("...") else "tuple[Tensor, ...]"
    return ", ".join(out), result


def operation_lines(paddle, names, method=False, indent=""):
    """A line for each operation of these names."""
    out = []
    for name in sorted(names):
        function = paddle.function(name)
        if function is None or not name.isidentifier() or keyword.iskeyword(name):
            continue
        text = function.__doc__.split("\n")[0]
        parameters, result = signature_of(text, method)
        out.append(f"{indent}def {name}({parameters}) -> {result}: ...")
        if method:
            out.append(f"{indent}def {name}_({parameters}) -> Tensor: ...")
    return out


def first_is_operand(paddle, name):
    text = paddle.function(name).__doc__.split("\n")[0]
    parameters = split_parameters(text[text.index("(") + 1:text.rpartition(" -> ")[0].rindex(")")])
    kind = parameters[0].partition(":")[2].partition("=")[0] if parameters else "none"
    return kind in ("", "T", "tensor", "T?", "tensor?") or kind.startswith("tensor@")


def tensor_lines(paddle):
    own = set(dir(paddle.Tensor))
    out = ["class Tensor:",
           "    def __init__(self, data: TensorLike, dtype: str | None = ..., stop_gradient: _bool = ...) -> None: ...",
           "    shape: list[int]", "    dtype: str", "    ndim: int", "    size: int", "    place: str", "    T: Tensor",
           "    grad: Tensor | None", "    stop_gradient: _bool", "    is_leaf: _bool"]
    for name in ("bool", "int", "float"):
        out.append(f"    def __{name}__(self) -> {'_bool' if name == 'bool' else name}: ...")
    out += ["    def __len__(self) -> int: ...", "    def __iter__(self) -> Iterator[Tensor]: ...",
            "    def __index__(self) -> int: ...", "    def __array__(self) -> Any: ...",
            "    def __getitem__(self, index: Any) -> Tensor: ...",
            "    def __setitem__(self, index: Any, value: TensorLike) -> None: ..."]
    out += [f"    def {name}(self) -> Tensor: ..." for name in UNARY]
    for name in BINARY:
        out.append(f"    def __{name}__(self, other: TensorLike) -> Tensor: ...")
        out.append(f"    def __r{name}__(self, other: TensorLike) -> Tensor: ...")
    out += [f"    def {name}(self, other: TensorLike) -> Tensor: ...  # type: ignore[override]" if name in COMPARISONS[:2]
            else f"    def {name}(self, other: TensorLike) -> Tensor: ..." for name in COMPARISONS]
    out += ["    def item(self) -> Any: ...", "    def tolist(self) -> Any: ...", "    def numpy(self, copy: _bool = ..., writable: _bool = ...) -> Any: ...",
            "    def backward(self, grad_tensor: Tensor | None = ..., retain_graph: _bool = ...) -> None: ...",
            "    def clear_grad(self) -> None: ...", "    def clear_gradient(self) -> None: ...",
            "    def detach(self) -> Tensor: ...", "    def astype(self, dtype: str) -> Tensor: ...",
            "    def set_value(self, value: TensorLike) -> None: ...", "    def apply(self, function: Callable[[Tensor], Any]) -> Any: ...",
            "    def register_hook(self, hook: Callable[[Tensor], Tensor | None]) -> Any: ...",
            "    def fill_(self, value: _complex) -> Tensor: ...", "    def zero_(self) -> Tensor: ..."]
    methods = [name for name in paddle.operations() if name not in own and first_is_operand(paddle, name)]
    return out + operation_lines(paddle, methods, method=True, indent="    ")


def annotation(value):
    if value is inspect.Parameter.empty:
        return "Any"
    return value.__name__ if isinstance(value, type) and value.__module__ == "builtins" else "Any"


def function_line(name, function, indent="", method=False):
    """The stub of a function in Python."""
    if isinstance(function, staticmethod):
        return indent + "@staticmethod\n" + function_line(name, function.__func__, indent)
    if isinstance(function, classmethod):
        return indent + "@classmethod\n" + function_line(name, function.__func__, indent, True)
    parts, after_star = [], False
    for number, parameter in enumerate(inspect.signature(function).parameters.values()):
        if method and number == 0:
            parts.append(parameter.name)
            continue
        if parameter.kind is parameter.VAR_POSITIONAL:
            parts.append(f"*{parameter.name}: Any")
            after_star = True
            continue
        if parameter.kind is parameter.VAR_KEYWORD:
            parts.append(f"**{parameter.name}: Any")
            continue
        if parameter.kind is parameter.KEYWORD_ONLY and not after_star:
            parts.append("*")
            after_star = True
        default = "" if parameter.default is parameter.empty else " = ..."
        parts.append(f"{parameter.name}: {annotation(parameter.annotation)}{default}")
    result = "None" if name == "__init__" else "Any"
    return f"{indent}def {name}({', '.join(parts)}) -> {result}: ..."


def class_lines(kind, module, indent=""):
    """The stub of a class in Python."""
    bases = [base.__name__ for base in kind.__bases__ if base.__module__.startswith(module.__package__.split(".")[0])]
    bases = [("_Tensor" if name == "Tensor" else name) for name in bases if name != kind.__name__]
    out = [f"{indent}class {kind.__name__}" + (f"({', '.join(bases)})" if bases else "") + ":"]
    body = []
    for name, value in vars(kind).items():
        if name.startswith("_") and name not in ("__init__", "__call__", "__len__", "__iter__", "__getitem__", "__enter__",
                                                 "__exit__", "__contains__"):
            continue
        if isinstance(value, property):
            body.append(f"{indent}    {name}: Any")
        elif isinstance(value, (staticmethod, classmethod)) or inspect.isfunction(value):
            body.append(function_line(name, value, indent + "    ", True))
        elif inspect.isclass(value):
            body += class_lines(value, module, indent + "    ")
        else:
            body.append(f"{indent}    {name}: Any")
    if "__getattr__" in vars(kind):
        body.append(f"{indent}    def __getattr__(self, name: str) -> Any: ...")
    return out + (body or [f"{indent}    ..."])


def module_lines(name, paddle):
    module = importlib.import_module(f"paddle_toolchain.{name}")
    depth = "." * (name.count(".") + 1) if not hasattr(module, "__path__") else "." * (name.count(".") + 2)
    out = [HEADER, f"from {depth} import Tensor, TensorLike, _bool, _complex", f"from {depth} import Tensor as _Tensor"]
    if name == "nn":
        out.append("from . import functional as functional")
    imported = {}
    lines = []
    operations = set(paddle.operations())
    for each in sorted(dir(module)):
        value = getattr(module, each)
        home = getattr(value, "__module__", None)
        is_base = inspect.isclass(value) and home == module.__name__
        if (each.startswith("_") and not is_base) or inspect.ismodule(value):
            continue
        if inspect.isbuiltin(value) and each in operations:
            lines += operation_lines(paddle, [each])
        elif inspect.isclass(value) and home == module.__name__:
            lines += class_lines(value, module)
        elif inspect.isfunction(value) and home == module.__name__:
            lines.append(function_line(each, value))
        elif (inspect.isclass(value) or inspect.isfunction(value)) and home and home.startswith("paddle_toolchain."):
            imported.setdefault(home, []).append(each)
    bases = {base.__name__: base.__module__ for value in vars(module).values()
             if inspect.isclass(value) and value.__module__ == module.__name__
             for base in value.__bases__ if base.__module__.startswith("paddle_toolchain.") and base.__name__ != "Tensor"}
    for base, home in bases.items():
        if home != module.__name__ and base not in imported.get(home, ()) and not home.endswith("._paddle"):
            imported.setdefault(home, []).append(base)
    for home, names in sorted(imported.items()):
        if not home.rpartition(".")[2].startswith("_"):
            out.append(f"from {home} import " + ", ".join(f"{each} as {each}" for each in sorted(names)))
    # Classes come before those that derive from them.
    return out + ordered(lines)


def ordered(lines):
    """Classes in an order in which bases come first."""
    tree = ast.parse("\n".join(lines))
    blocks, done, out = list(tree.body), set(), []
    names = {block.name for block in blocks if isinstance(block, ast.ClassDef)}
    while blocks:
        for block in blocks:
            needs = {ast.unparse(base) for base in block.bases} & names - done if isinstance(block, ast.ClassDef) else set()
            if not needs:
                break
        blocks.remove(block)
        done.add(getattr(block, "name", ""))
        out.append(ast.unparse(block))
    return out


def package_lines(paddle):
    import paddle_toolchain

    out = [HEADER, "from typing import Protocol, TypeAlias", "import builtins as _builtins",
           "_bool: TypeAlias = _builtins.bool", "_complex: TypeAlias = _builtins.complex",
           "class _Array(Protocol):\n    def __array__(self) -> Any: ...",
           'TensorLike: TypeAlias = "Tensor | _complex | Sequence[Any] | _Array"']
    out += tensor_lines(paddle)
    out += [f"from . import {name} as {name}" for name in MODULES if "." not in name and name not in INNER]
    out.append("from .language_model import LanguageModel as LanguageModel")
    out.append("from .training import Run as Run, Trainer as Trainer")
    out.append("from .custom_operation import op as op")
    out.append("from .model_layer import ModelLayer as ModelLayer, lang as lang")
    out.append("from .model import Network as Network\nfrom typing import overload")
    out.append("from .autograd import enable_grad as enable_grad, grad as grad, is_grad_enabled as is_grad_enabled, no_grad as no_grad")
    out.append("class Error(Exception):\n    code: int\n    file: str\n    line: int\n    column: int\n    notes: list[str]")
    out += [f"class {name}(Error{bases}): ..." for name, bases in (
        ("UsageError", ", ValueError"), ("ConfigError", ", ValueError"), ("DataError", ""), ("ModelError", ""),
        ("InternalError", ""), ("DeviceError", ", RuntimeError"), ("ForkedProcessError", ", RuntimeError"), ("PeerError", ", ConnectionError"))]
    out.append("class Dim:\n    def __getattr__(self, name: str) -> Any: ...")
    out.append("class Model:\n    inputs: dict[str, str]\n    outputs: dict[str, str]\n    name: str\n    classes: list[str]\n"
               "    @overload\n    def __new__(cls, path: nn.Layer) -> Network: ...  # type: ignore[misc]\n"
               "    @overload\n    def __new__(cls, path: Any, weights: str = ..., function: str = ...,"
               " overrides: Sequence[str] = ..., raw: _bool = ..., precision: str = ...) -> Model: ...\n"
               "    def predict(self, *inputs: Any, **named: Any) -> dict[str, Tensor]: ...\n    def clone(self) -> Model: ...")
    out.append("class TextEncoder:\n    width: int\n    context: int\n    def __init__(self, path: Any) -> None: ...\n"
               "    def embed(self, text: str) -> Tensor: ...")
    dtypes = [name for name in vars(paddle_toolchain) if getattr(paddle_toolchain, name) == name]
    out += [f"{name}: str" for name in dtypes]
    out.append("__version__: str")
    out += ["def seed(value: int) -> None: ...", "def set_num_threads(count: int) -> None: ...", "def get_num_threads() -> int: ...",
            "def get_rng_state() -> tuple[int, int]: ...", "def set_rng_state(state: tuple[int, int]) -> None: ..."]
    results = {"to_tensor": "Tensor", "from_numpy": "Tensor", "from_dlpack": "Tensor", "load": "dict[str, Tensor]", "save": "None"}
    taken = {*dtypes, "seed"}
    for name, value in sorted(vars(paddle_toolchain).items()):
        if inspect.isfunction(value) and value.__module__ == "paddle_toolchain" and not name.startswith("_"):
            out.append(function_line(name, value).replace("-> Any:", f"-> {results.get(name, 'Any')}:"))
            taken.add(name)
    modules = {name for name in MODULES if "." not in name} - {*INNER}
    return out + operation_lines(paddle, set(paddle.operations()) - taken - modules)


def main():
    folder = os.path.join(sys.argv[1], "paddle_toolchain")
    sys.dont_write_bytecode = True
    sys.path.insert(0, sys.argv[1])
    paddle = importlib.import_module("paddle_toolchain._paddle")
    files = {"__init__": package_lines(paddle)}
    for name in MODULES:
        module = importlib.import_module(f"paddle_toolchain.{name}")
        path = name.replace(".", "/") + ("/__init__" if hasattr(module, "__path__") else "")
        files[path] = module_lines(name, paddle)
    for path, lines in files.items():
        with open(os.path.join(folder, path + ".pyi"), "w", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")
    open(os.path.join(folder, "py.typed"), "w", encoding="utf-8").close()


if __name__ == "__main__":
    main()
