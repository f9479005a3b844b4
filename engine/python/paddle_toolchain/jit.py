"""Python functions as models that the tools take without Python.

    paddle.jit.save(net, "model", {"image": "float32[batch, 1, 28, 28]"})
"""
import contextlib
import os

from . import _paddle, _rewrite
from ._explain import Explanation, check, explain
from ._static import JitError, StaticFunction
from ._static import to_static as _to_static
from .nn.layer import Layer, evaluating

__all__ = ["Explanation", "JitError", "StaticFunction", "check", "cond", "explain", "load", "not_to_static", "save", "to_static", "while_loop"]


def to_static(function=None, *, full_graph=False, exact=False):
    """Compiles a function or the `forward` of a layer at its first call; also a decorator.

    The compiled function is called while what it read besides its arguments is unchanged: globals, attributes, modes of
    layers. Otherwise it is compiled again. Where the function does what cannot be compiled, such as printing the value
    of a tensor, it runs as Python; with `full_graph` that is a JitError. With `exact` its results have the same bits as
    those of Python; otherwise operations may be fused with other roundings.
    """
    if function is None:
        return lambda given: _to_static(given, full_graph, exact)
    return _to_static(function, full_graph, exact)


def not_to_static(function):
    """Calls of this function are not compiled, so a function that calls it runs as Python."""
    function._jit_break = True
    return function


def _tensors(value, what):
    """A tensor, a sequence of tensors or a dict of them, as (name, tensor) for each."""
    if isinstance(value, _paddle.Tensor):
        return [("out", value)]
    if isinstance(value, dict):
        named = list(value.items())
    elif isinstance(value, (tuple, list)):
        named = [(f"out{i}", each) for i, each in enumerate(value)]
    else:
        named = [("", value)]
    for name, each in named:
        if not isinstance(name, str) or not isinstance(each, _paddle.Tensor):
            raise TypeError(f"{what}: expected tensors, found {type(each).__name__}")
    return named


def save(function, path, input_spec, outputs=None):
    """Records a layer or a function and writes it as a model folder.

    `input_spec`: the types of its arguments by name, in order, such as {"image": "float32[batch, 1, 28, 28]"}; words
    are sizes that the model takes as they come. `outputs`: names of the results, where they are not those of a dict.
    A layer is recorded in evaluation mode, and its parameters are the weights of the model. What the function decides
    by values of Python is fixed; decisions and loops by the values of tensors are part of the model. UsageError where
    that is not possible, as for a name that only one branch assigns.
    """
    if not callable(function):
        raise TypeError(f"jit.save: expected a layer or a function, found {type(function).__name__}")
    is_layer = isinstance(function, Layer)
    named = function.state_dict() if is_layer else {}
    names = None if outputs is None else [outputs] if isinstance(outputs, str) else list(outputs)

    def run(arguments):
        found = _tensors(_rewrite.call(function)(*arguments), "jit.save: the result")
        if names is None:
            return found
        if len(names) != len(found):
            raise _paddle.UsageError(f"jit.save: {len(names)} names for {len(found)} outputs")
        return [(name, tensor) for name, (_, tensor) in zip(names, found)]

    path = os.fspath(path)
    with evaluating(function) if is_layer else contextlib.nullcontext():
        _paddle.save_function(run, path, os.path.basename(os.path.normpath(path)), dict(input_spec), named)


def load(path):
    """A saved model, ready to predict."""
    from .model import Model

    return Model(path)


def _joined(value, what, single):
    """The tensors of a result; notes in `single` whether it is one tensor."""
    single.append(isinstance(value, _paddle.Tensor))
    return [tensor for _, tensor in _tensors(value, what)]


def cond(predicate, true_fn, false_fn):
    """The result of `true_fn()` if the tensor of one element is true, else that of `false_fn()`.

    In a recorded function both are recorded, and the value decides when the model runs. Both give one tensor, or
    equally many, of the same types.
    """
    single = []
    results = _paddle.branch(
        predicate,
        lambda _: _joined(true_fn(), "cond: the result of true_fn", single),
        lambda _: _joined(false_fn(), "cond: the result of false_fn", single),
    )
    return results[0] if all(single) else tuple(results)


def while_loop(condition, body, variables):
    """Repeats `body` on the variables while `condition` of them is true; gives the last ones as a list.

    `body` gives as many tensors of the same types.
    """
    def step(now):
        out = _joined(body(*now), "while_loop: the result of body", [])
        if len(out) != len(now):
            raise _paddle.UsageError(f"while_loop: body gives {len(out)} tensors for {len(now)}")
        return out

    return _paddle.loop(lambda now: [condition(*now)], step, list(variables))
