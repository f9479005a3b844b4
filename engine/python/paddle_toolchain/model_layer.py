"""Models of the model language as layers."""
import os

from . import _paddle
from .nn.layer import Layer, Parameter


class ModelLayer(Layer):
    """A model of the model language. Its parameters have the paths that they have in training by a config.

    A call takes the inputs in their order or by name, and gives the output, or a dict of several.
    """

    def __init__(self, program, seed):
        super().__init__()
        self._program = program
        parameters, states = program.initialize(seed)
        for path, value in parameters:
            self._parameters[path] = Parameter(value)
        for path, value in states:
            self.register_buffer(path, value)

    @property
    def inputs(self):
        """Types of the inputs by name."""
        return self._program.inputs

    def forward(self, *inputs, **named):
        names = list(self._program.inputs)
        if len(inputs) > len(names):
            raise TypeError(f"the model takes {len(names)} inputs, {len(inputs)} are given")
        given = {**dict(zip(names, inputs)), **named}
        if given.keys() != set(names) or len(inputs) + len(named) != len(names):
            raise TypeError(f"the model takes the inputs {', '.join(names)}; given are {', '.join(given) or 'none'}")
        values = [value if isinstance(value, _paddle.Tensor) else _paddle.to_tensor(value)
                  for value in (given[name] for name in names)]
        found = self._program.run(values, self._parameters, self._buffers, self.training)
        return next(iter(found.values())) if len(found) == 1 else found


def lang(source, variant="", function="model", seed=None):
    """A layer from a model: the path of a file, such as "models/digits_cnn.yaml", or the text of one, of several lines.

    `variant` is one of the file's variants, `function` the model or one of its functions. Parameters begin with the
    numbers of `seed`, by default that of `paddle.seed`.
    """
    path = "" if isinstance(source, str) and "\n" in source else os.fspath(source)
    program = _paddle.Program(path, "" if path else source, variant, function)
    return ModelLayer(program, _paddle.get_rng_state()[0] if seed is None else seed)
