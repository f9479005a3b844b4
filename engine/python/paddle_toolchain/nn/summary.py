"""A table of the layers of a network."""
from .. import _paddle
from ..autograd import no_grad
from .layer import evaluating


def _shape(value):
    if isinstance(value, _paddle.Tensor):
        return str(value.shape)
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (tuple, list)):
        return ", ".join(_shape(each) for each in value)
    return ""


def _count(tensors):
    return sum(tensor.size for tensor in tensors)


def summarize(net, input_size, dtype):
    """The table of `paddle.summary`, printed, and its numbers."""
    shapes = {}
    hooks = []
    try:
        if input_size is not None:
            for _, layer in net.named_sublayers(include_self=True):
                def note(each, inputs, outputs):
                    shapes.setdefault(id(each), _shape(outputs))

                hooks.append(layer.register_forward_post_hook(note))
            sizes = [input_size] if input_size and isinstance(input_size[0], int) else list(input_size)
            zeros = _paddle.function("zeros")
            with evaluating(net), no_grad():
                net(*(zeros(list(size), dtype) for size in sizes))
    finally:
        for hook in hooks:
            hook.remove()
    rows = [("layer", "type", "output", "parameters")]
    for path, layer in net.named_sublayers(include_self=True):
        own = layer.__dict__["_parameters"].values()
        rows.append((path or "(network)", type(layer).__name__, shapes.get(id(layer), ""), f"{_count(own):,}"))
    widths = [max(len(row[i]) for row in rows) for i in range(4)]
    for row in rows:
        print("  ".join(cell.rjust(width) if i == 3 else cell.ljust(width)
                        for i, (cell, width) in enumerate(zip(row, widths))).rstrip())
    parameters = [parameter for _, parameter in net.named_parameters()]
    total, trainable = _count(parameters), _count(p for p in parameters if not p.stop_gradient)
    print(f"parameters: {total:,}, trainable: {trainable:,}")
    return {"total_params": total, "trainable_params": trainable}
