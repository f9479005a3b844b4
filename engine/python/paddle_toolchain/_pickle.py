"""Tensors and operations for pickle and copy."""
from . import _paddle


def make_tensor(kind, data, dtype, shape, stop_gradient, attributes):
    """The tensor that `reduce_tensor` has taken apart."""
    value = _paddle.from_bytes(data, dtype, shape)
    if kind is _paddle.Tensor:
        out = _paddle.Tensor(value, None, stop_gradient)
    else:
        out = kind.__new__(kind, value, dtype)
        out.__dict__.update(attributes)
        out.stop_gradient = stop_gradient
    return out


def reduce_tensor(tensor):
    """`make_tensor` and its arguments."""
    attributes = dict(getattr(tensor, "__dict__", {}))
    return make_tensor, (type(tensor), tensor._bytes(), tensor.dtype, tensor.shape, tensor.stop_gradient, attributes)


def make_operation(name, tensor):
    """What the function of an operation is bound to."""
    return (_paddle.function(name) if tensor is None else getattr(tensor, name)).__self__


def reduce_operation(name, tensor):
    """`make_operation` and its arguments."""
    return make_operation, (name, tensor)
