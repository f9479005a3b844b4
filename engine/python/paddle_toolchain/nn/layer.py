"""The base class of layers."""
import contextlib

from .. import _paddle
from .._sources import is_of_package_module

# Counts changes of the structure of layers. Compiled functions look at it before they look at each of their layers.
EPOCH = [0]


def _changed(layer):
    layer.__dict__["_version"] = layer.__dict__.get("_version", 0) + 1
    EPOCH[0] += 1


def _set_training(layer, training):
    if layer.__dict__.get("training") is not training:
        object.__setattr__(layer, "training", training)
        _changed(layer)


@contextlib.contextmanager
def evaluating(layer):
    """The layer in evaluation mode; it has its modes back at the end."""
    before = [(each, each.training) for each in layer.sublayers(include_self=True)]
    layer.eval()
    try:
        yield
    finally:
        for each, training in before:
            _set_training(each, training)


class Parameter(_paddle.Tensor):
    """A tensor that a layer trains. Its name is its path in the layer that an optimizer was given."""

    def __new__(cls, data, dtype=None):
        return super().__new__(cls, data, dtype, stop_gradient=False)

    def __init__(self, data, dtype=None):
        self.name = ""

    @property
    def trainable(self):
        return not self.stop_gradient

    @trainable.setter
    def trainable(self, value):
        self.stop_gradient = not value


class _Hook:
    """A hook of a layer; `remove` ends it."""

    def __init__(self, layer, store, function):
        self._layer, self._hooks = layer, layer.__dict__.setdefault(store, {})
        self._number = max(self._hooks, default=0) + 1
        self._hooks[self._number] = function
        _changed(layer)

    def remove(self):
        """The function is not called any more."""
        self._hooks.pop(self._number, None)
        _changed(self._layer)


class Layer:
    """Parameters, states and further layers that are set as attributes belong to the layer."""

    def __init__(self):
        self._parameters, self._buffers, self._sub_layers = {}, {}, {}
        self.training = True

    def forward(self, *inputs, **named):
        raise NotImplementedError(f"{type(self).__name__}.forward")

    def __call__(self, *inputs, **named):
        before, after = self.__dict__.get("_pre_hooks"), self.__dict__.get("_post_hooks")
        for hook in list(before.values()) if before else ():
            changed = hook(self, inputs)
            if changed is not None:
                inputs = changed if isinstance(changed, tuple) else (changed,)
        outputs = self.forward(*inputs, **named)
        for hook in list(after.values()) if after else ():
            changed = hook(self, inputs, outputs)
            if changed is not None:
                outputs = changed
        return outputs

    def register_forward_pre_hook(self, hook):
        """Calls `hook(layer, inputs)` before `forward`; what it returns replaces the inputs."""
        return _Hook(self, "_pre_hooks", hook)

    def register_forward_post_hook(self, hook):
        """Calls `hook(layer, inputs, outputs)` after `forward`; what it returns replaces the outputs."""
        return _Hook(self, "_post_hooks", hook)

    def __setattr__(self, name, value):
        if _paddle.is_in_branch():
            raise _paddle.UsageError(f"self.{name} is assigned where the value of a tensor decides")
        store = None
        if isinstance(value, Parameter):
            store = "_parameters"
        elif isinstance(value, Layer):
            store = "_sub_layers"
        elif isinstance(value, _paddle.Tensor) and name in self.__dict__.get("_buffers", ()):
            store = "_buffers"
        own = is_of_package_module(type(self).__module__)
        if own or name == "training" or store in ("_parameters", "_sub_layers"):
            _changed(self)
        for other in ("_parameters", "_buffers", "_sub_layers"):
            if other != store and name in self.__dict__.get(other, ()):
                del self.__dict__[other][name]
                _changed(self)
        if store is None:
            object.__setattr__(self, name, value)
            return
        if store not in self.__dict__:
            raise AttributeError(f"{type(self).__name__}: call super().__init__() before setting {name!r}")
        self.__dict__.pop(name, None)
        self.__dict__[store][name] = value

    def __getattr__(self, name):
        for store in ("_parameters", "_buffers", "_sub_layers"):
            held = self.__dict__.get(store, {})
            if name in held:
                return held[name]
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __delattr__(self, name):
        _changed(self)
        for store in ("_parameters", "_buffers", "_sub_layers"):
            if name in self.__dict__.get(store, ()):
                del self.__dict__[store][name]
                return
        object.__delattr__(self, name)

    def add_sublayer(self, name, layer):
        """Sets a layer by name and returns it."""
        setattr(self, name, layer)
        return layer

    def add_parameter(self, name, parameter):
        """Sets a parameter by name and returns it."""
        setattr(self, name, parameter)
        return parameter

    def register_buffer(self, name, tensor):
        """Sets a tensor that is saved but not trained."""
        self._buffers[name] = tensor
        _changed(self)

    def named_children(self):
        """Direct sub-layers with their names."""
        yield from self._sub_layers.items()

    def children(self):
        """Direct sub-layers."""
        yield from self._sub_layers.values()

    def named_sublayers(self, prefix="", include_self=False):
        """All layers below this one with their paths."""
        if include_self:
            yield prefix, self
        for name, layer in self._sub_layers.items():
            yield from layer.named_sublayers(f"{prefix}.{name}" if prefix else name, include_self=True)

    def sublayers(self, include_self=False):
        """All layers below this one."""
        return [layer for _, layer in self.named_sublayers(include_self=include_self)]

    def _named(self, store):
        seen = set()
        for path, layer in self.named_sublayers(include_self=True):
            for name, tensor in layer.__dict__[store].items():
                if id(tensor) not in seen:
                    seen.add(id(tensor))
                    yield (f"{path}.{name}" if path else name), tensor

    def named_parameters(self):
        """Parameters with their paths; one that is used twice comes once."""
        yield from self._named("_parameters")

    def named_buffers(self):
        """States that are not trained, with their paths."""
        yield from self._named("_buffers")

    def parameters(self):
        """All parameters; each gets its path as its name."""
        found = []
        for path, parameter in self.named_parameters():
            parameter.name = path
            found.append(parameter)
        return found

    def state_dict(self):
        """Parameters and states by path. They are those of the layer, not copies."""
        return {**dict(self.named_parameters()), **dict(self.named_buffers())}

    def set_state_dict(self, state):
        """Takes values by path; names that are missing or unknown are an error."""
        own = self.state_dict()
        missing, unknown = sorted(own.keys() - state.keys()), sorted(state.keys() - own.keys())
        if missing or unknown:
            what = [f"missing: {', '.join(missing)}"] if missing else []
            what += [f"unknown: {', '.join(unknown)}"] if unknown else []
            raise _paddle.UsageError(f"set_state_dict: {'; '.join(what)}")
        for name, tensor in own.items():
            value = state[name] if isinstance(state[name], _paddle.Tensor) else _paddle.to_tensor(state[name])
            if value.shape != tensor.shape:
                raise _paddle.UsageError(f"set_state_dict: {name} is {tensor.shape}, the value {value.shape}")
            tensor.set_value(value)

    load_dict = set_state_dict

    def train(self):
        """Training: dropout drops, batch norm takes the statistics of the batch."""
        for layer in self.sublayers(include_self=True):
            _set_training(layer, True)
        return self

    def eval(self):
        """Evaluation: dropout does nothing, batch norm takes the running statistics."""
        for layer in self.sublayers(include_self=True):
            _set_training(layer, False)
        return self

    def apply(self, function):
        """Calls a function with each layer below this one, and with it; gives the layer."""
        for layer in [*self.sublayers(), self]:
            function(layer)
        return self

    def to(self, device=None, dtype=None, blocking=None):
        """Parameters and states in another dtype, if they are floats; gives the layer."""
        if device not in (None, "cpu"):
            raise _paddle.UsageError(f"to: the device is 'cpu', not {device!r}")
        if dtype is not None:
            for tensor in self.state_dict().values():
                if "float" in tensor.dtype and tensor.dtype != dtype:
                    tensor._replace(tensor.detach().astype(dtype))
        return self

    def full_name(self):
        """The name of the class, in lower case."""
        return type(self).__name__.lower()

    def __dir__(self):
        names = (name for store in ("_parameters", "_buffers", "_sub_layers") for name in self.__dict__.get(store, ()))
        return sorted({*super().__dir__(), *names})

    def clear_gradients(self):
        """Removes the gradients of all parameters."""
        for _, parameter in self.named_parameters():
            parameter.clear_grad()

    def extra_repr(self):
        """What `repr` says of the layer itself."""
        return ""

    def __repr__(self):
        lines = [f"  ({name}): " + repr(layer).replace("\n", "\n  ") for name, layer in self._sub_layers.items()]
        inside = "\n" + "\n".join(lines) + "\n" if lines else ""
        return f"{type(self).__name__}({self.extra_repr()}{inside})"
