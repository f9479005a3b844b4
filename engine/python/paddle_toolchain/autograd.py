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


def jacobian(outputs, inputs, create_graph=False):
    """The derivatives of each element of a tensor by each element of another one, or of several as a list.

    The shape is that of `outputs` and then that of `inputs`. In place of a tensor, `outputs` may be a function of the
    inputs.
    """
    outputs, leaves, single = _recorded(outputs, inputs)
    rows = [grad(each, leaves, create_graph=create_graph, allow_unused=True) for each in outputs.reshape([-1])]
    stack, zeros = _paddle.function("stack"), _paddle.function("zeros_like")
    found = [stack([row[i] if row[i] is not None else zeros(leaf) for row in rows]).reshape([*outputs.shape, *leaf.shape])
             for i, leaf in enumerate(leaves)]
    return found[0] if single else found


def hessian(output, inputs, create_graph=False):
    """The second derivatives of a tensor of one element, or of a function, by a tensor.

    The shape is twice that of `inputs`.
    """
    output, leaves, single = _recorded(output, inputs)
    if not single:
        raise _paddle.UsageError("hessian: expected one tensor as the input")
    if output.size != 1:
        raise _paddle.UsageError(f"hessian: expected an output of one element, found the shape {output.shape}")
    first = grad(output, leaves, create_graph=True, allow_unused=True)[0]
    if first is None or first.stop_gradient:
        zeros = _paddle.function("zeros")
        return zeros([*leaves[0].shape, *leaves[0].shape], leaves[0].dtype)
    return jacobian(first, leaves[0], create_graph)


def _recorded(outputs, inputs):
    """Outputs with their record, and the inputs as a list."""
    if callable(outputs) and not isinstance(outputs, _paddle.Tensor):
        leaves, single = _leaves(inputs)
        return outputs(*leaves), leaves, single
    single = not isinstance(inputs, (list, tuple))
    return outputs, [inputs] if single else list(inputs), single


class _Hook:
    """A hook of a tensor; `remove` ends it."""

    def __init__(self, tensor, number):
        self._tensor, self._number = tensor, number

    def remove(self):
        """The function is not called any more."""
        _paddle.remove_hook(self._tensor, self._number)


def _hooked(tensor, function):
    return _Hook(tensor, _paddle.add_hook(tensor, function))


class PyLayerContext:
    """What `forward` leaves for `backward`: saved tensors, and any attributes."""

    def __init__(self):
        self._saved, self._materialize, self._no_gradient = (), True, ()

    def save_for_backward(self, *tensors):
        """Keeps tensors for `saved_tensor`."""
        self._saved = tensors

    def saved_tensor(self):
        """The tensors that were kept."""
        return self._saved

    @property
    def saved_tensors(self):
        return self._saved

    def set_materialize_grads(self, value):
        """Whether gradients of outputs that nothing needs are zeros, as by default, or None."""
        self._materialize = value

    def mark_non_differentiable(self, *outputs):
        """Outputs through which no gradient flows."""
        self._no_gradient = tuple(id(each) for each in outputs)


class PyLayer:
    """A function with a gradient of its own.

    A subclass has the static methods `forward(ctx, …)` and `backward(ctx, …)`, which takes the gradients of the
    outputs and gives one for each tensor among the inputs, or None. `apply` calls it.
    """

    @staticmethod
    def forward(ctx, *inputs, **named):
        raise NotImplementedError("PyLayer.forward")

    @staticmethod
    def backward(ctx, *gradients):
        raise NotImplementedError("PyLayer.backward")

    @classmethod
    def apply(cls, *inputs, **named):
        """The outputs of `forward`."""
        context = PyLayerContext()
        with no_grad():
            outputs = cls.forward(context, *inputs, **named)
        operands = [each for each in (*inputs, *named.values()) if isinstance(each, _paddle.Tensor)]
        if not is_grad_enabled() or all(each.stop_gradient for each in operands):
            return outputs
        items = [outputs] if isinstance(outputs, _paddle.Tensor) else list(outputs)
        tensors = [each for each in items
                   if isinstance(each, _paddle.Tensor) and id(each) not in context._no_gradient]
        kinds = [(each.shape, each.dtype) for each in tensors]

        def pull(gradients):
            if context._materialize:
                zeros = _paddle.function("zeros")
                gradients = [g if g is not None else zeros(*kind) for g, kind in zip(gradients, kinds)]
            found = cls.backward(context, *gradients)
            found = list(found) if isinstance(found, (tuple, list)) else [found]
            if len(found) != len(operands):
                raise _paddle.UsageError(
                    f"{cls.__name__}.backward gives {len(found)} gradients for {len(operands)} tensors")
            return found

        recorded = iter(_paddle.with_vjp(tensors, operands, pull))
        chosen = {id(each) for each in tensors}
        items = [next(recorded) if id(each) in chosen else each for each in items]
        return items[0] if isinstance(outputs, _paddle.Tensor) else type(outputs)(items)
