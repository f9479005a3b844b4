"""Operations of a program: by a body in the language of models, or by a Python function."""
import ast
import functools
import re

from . import _paddle, autograd, plugins


def _parsed(signature):
    """Name, names of tensors, and attributes with their defaults of "my.op(x:T, k:float=1.0) -> out"."""
    match = re.fullmatch(r"\s*([a-z]\w*)\.(\w+)\s*\((.*)\)\s*->\s*(.+?)\s*", signature, re.DOTALL)
    if not match:
        raise _paddle.UsageError(f"op: expected 'name.operation(x:T, k:float=1.0) -> out', found {signature!r}")
    tensors, attributes = [], {}
    for part in filter(None, (each.strip() for each in match[3].split(","))):
        name, _, rest = part.partition(":")
        kind, has_default, default = rest.partition("=")
        kind = kind.strip()
        if kind in ("int", "float", "bool", "str"):
            try:
                value = ast.literal_eval({"true": "True", "false": "False"}.get(default.strip(), default.strip()))
            except (ValueError, SyntaxError):
                value = default.strip()
            attributes[name.strip()] = value if has_default else None
        else:
            tensors.append(name.strip())
    return match[1], match[2], tensors, attributes


def op(signature, body=None, vjp=None):
    """Makes a function an operation, or defines one by its body.

        square = paddle.op("mine.square(x:T) -> out", body="x * x")

        @paddle.op("mine.clip(x:T, limit:float=1.0) -> out", vjp=lambda gradients, inputs, outputs, limit: ...)
        def clip(x, limit): ...

    With a body it is an operation as the engine's own. A function gets tensors without a record and gives tensors, or
    what a tensor can be made of; its gradient is `vjp(gradients, inputs, outputs, **attributes)`, which gives one for
    each input, or None. It runs in Python: to_static leaves it out of compiled functions, jit.save rejects it.
    """
    family, name, tensors, attributes = _parsed(signature)
    if body is not None:
        if vjp is not None:
            raise _paddle.UsageError("op: an operation with a body has its gradient")
        text = signature[signature.index("("):]
        return getattr(plugins.define(family, {name: {"signature": text, "body": body}}), name)
    return functools.partial(_of_function, f"{family}.{name}", tensors, attributes, vjp)


class _Function(autograd.PyLayer):
    @staticmethod
    def forward(ctx, operation, attributes, *inputs):
        ctx.operation, ctx.attributes = operation, attributes
        outputs = operation.compute(inputs, attributes)
        ctx.save_for_backward(*inputs, *outputs)
        ctx.count = len(inputs)
        return outputs if len(outputs) > 1 else outputs[0]

    @staticmethod
    def backward(ctx, *gradients):
        saved = ctx.saved_tensor()
        inputs, outputs = saved[:ctx.count], saved[ctx.count:]
        if ctx.operation.vjp is None:
            raise _paddle.UsageError(f"{ctx.operation.__name__}: the operation has no gradient; give it a vjp")
        found = ctx.operation.vjp(gradients, inputs, outputs, **ctx.attributes)
        found = tuple(found) if isinstance(found, (tuple, list)) else (found,)
        if len(found) != ctx.count:
            raise _paddle.UsageError(f"{ctx.operation.__name__}: vjp gives {len(found)} gradients for {ctx.count} inputs")
        return found


class _Operation:
    """The operation of a Python function."""

    def __init__(self, name, tensors, attributes, vjp, function):
        functools.update_wrapper(self, function)
        self.__name__ = self.__qualname__ = name
        self.tensors, self.attributes, self.vjp, self.function = tensors, attributes, vjp, function

    def compute(self, inputs, attributes):
        with autograd.no_grad():
            found = self.function(*(each.detach() for each in inputs), **attributes)
        found = list(found) if isinstance(found, tuple) else [found]
        return tuple(each if isinstance(each, _paddle.Tensor) else _paddle.to_tensor(each) for each in found)

    def __call__(self, *arguments, **named):
        if _paddle.is_tracing():
            raise _paddle.UsageError(f"{self.__name__} is a function of Python, which a model cannot have")
        names = [*self.tensors, *self.attributes]
        if len(arguments) > len(names):
            raise TypeError(f"{self.__name__}: {len(arguments)} arguments given, at most {len(names)} expected")
        given = dict(zip(names, arguments))
        for name, value in named.items():
            if name not in names or name in given:
                raise TypeError(f"{self.__name__}: {'two values for' if name in given else 'unknown argument'} '{name}'")
            given[name] = value
        missing = [name for name in self.tensors if name not in given]
        missing += [name for name, default in self.attributes.items() if default is None and name not in given]
        if missing:
            raise TypeError(f"{self.__name__}: '{missing[0]}' is missing")
        inputs = [given[name] if isinstance(given[name], _paddle.Tensor) else _paddle.to_tensor(given[name])
                  for name in self.tensors]
        return _Function.apply(self, {name: given.get(name, default) for name, default in self.attributes.items()}, *inputs)


def _of_function(name, tensors, attributes, vjp, function):
    return _Operation(name, tensors, attributes, vjp, function)
