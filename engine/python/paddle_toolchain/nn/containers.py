"""Layers that hold layers."""
from .layer import Layer, Parameter


class Sequential(Layer):
    """Layers one after the other; each is a layer or a pair of name and layer."""

    def __init__(self, *layers):
        super().__init__()
        for i, layer in enumerate(layers):
            name, layer = layer if isinstance(layer, tuple) else (str(i), layer)
            self.add_sublayer(name, layer)

    def forward(self, x):
        for layer in self._sub_layers.values():
            x = layer(x)
        return x

    def __getitem__(self, index):
        layers = list(self._sub_layers.values())[index]
        return Sequential(*layers) if isinstance(index, slice) else layers

    def __len__(self):
        return len(self._sub_layers)

    def __iter__(self):
        return iter(self._sub_layers.values())


class LayerList(Layer):
    """A list of layers."""

    def __init__(self, layers=()):
        super().__init__()
        for layer in layers:
            self.append(layer)

    def append(self, layer):
        self.add_sublayer(str(len(self)), layer)
        return self

    def __getitem__(self, index):
        layers = list(self._sub_layers.values())[index]
        return LayerList(layers) if isinstance(index, slice) else layers

    def __len__(self):
        return len(self._sub_layers)

    def __iter__(self):
        return iter(self._sub_layers.values())


class LayerDict(Layer):
    """A dict of layers."""

    def __init__(self, layers=None):
        super().__init__()
        for name, layer in (layers or {}).items():
            self[name] = layer

    def __setitem__(self, name, layer):
        self.add_sublayer(name, layer)

    def __getitem__(self, name):
        return self._sub_layers[name]

    def __len__(self):
        return len(self._sub_layers)

    def __iter__(self):
        return iter(self._sub_layers)

    def keys(self):
        return self._sub_layers.keys()

    def values(self):
        return self._sub_layers.values()

    def items(self):
        return self._sub_layers.items()


class ParameterList(Layer):
    """A list of parameters."""

    def __init__(self, parameters=()):
        super().__init__()
        for parameter in parameters:
            self.append(parameter)

    def append(self, parameter):
        self.add_parameter(str(len(self)), parameter if isinstance(parameter, Parameter) else Parameter(parameter))
        return self

    def __getitem__(self, index):
        return list(self._parameters.values())[index]

    def __len__(self):
        return len(self._parameters)

    def __iter__(self):
        return iter(self._parameters.values())
