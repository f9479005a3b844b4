"""Gradients: `grad`, and whether calls are recorded for them."""
import functools

from . import _paddle


class _Recording:
    """A context manager and decorator that sets whether calls are recorded."""

    def __init__(self, enabled):
        self._enabled = enabled
        self._before = []

    def __enter__(self):
        self._before.append(_paddle.is_recording())
        _paddle.set_recording(self._enabled)
        return self

    def __exit__(self, *error):
        _paddle.set_recording(self._before.pop())

    def __call__(self, function):
        @functools.wraps(function)
        def wrapped(*arguments, **named):
            with _Recording(self._enabled):
                return function(*arguments, **named)

        return wrapped


def no_grad(function=None):
    """Calls under it are not recorded: `with no_grad():` or `@no_grad()`."""
    return _Recording(False) if function is None else _Recording(False)(function)


def enable_grad(function=None):
    """Calls under it are recorded, within `no_grad` too."""
    return _Recording(True) if function is None else _Recording(True)(function)


def is_grad_enabled():
    """Whether calls are recorded."""
    return _paddle.is_recording()


def backward(tensors, grad_tensors=None):
    """Adds to `grad` of each leaf its gradient of the sum of the tensors."""
    _paddle.backward(tensors, grad_tensors)


def grad(outputs, inputs, grad_outputs=None, create_graph=False, allow_unused=False):
    """Gradients of the sum of the outputs by each input, a list; `create_graph` records them."""
    return _paddle.gradients(outputs, inputs, grad_outputs, create_graph, allow_unused)


def vjp(function, inputs, v=None):
    """The outputs of a function of tensors, and its vector-Jacobian products at the inputs."""
    leaves, single = _leaves(inputs)
    outputs = function(*leaves)
    found = grad(outputs, leaves, v, allow_unused=True)
    found = [g if g is not None else _paddle.function("zeros_like")(x) for g, x in zip(found, leaves)]
    return outputs, found[0] if single else found


def jvp(function, inputs, v=None):
    """The outputs of a function of tensors, and its Jacobian-vector product at the inputs."""
    leaves, _ = _leaves(inputs)
    like = _paddle.function("ones_like")
    tangents = [like(x) for x in leaves] if v is None else ([v] if not isinstance(v, (list, tuple)) else list(v))
    outputs = function(*leaves)
    seed = _paddle.Tensor(like(outputs), None, False)
    pulled = grad(outputs, leaves, seed, create_graph=True, allow_unused=True)
    total = sum(((g * t).sum() for g, t in zip(pulled, tangents) if g is not None))
    return outputs, grad(total, seed)[0]


def _leaves(inputs):
    single = not isinstance(inputs, (list, tuple))
    return [_paddle.Tensor(x, None, False) for x in ([inputs] if single else inputs)], single
