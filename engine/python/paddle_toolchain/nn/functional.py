"""Operations of networks as functions: `relu(x)`, `cross_entropy(logits, labels)`, `conv2d(x, weight)`, ..."""
from .._names import operations_of

_attribute, _listed = operations_of(
    {"nn", "loss", "vision", "sequence", "transformer"},
    {"elu", "gelu", "hardsigmoid", "hardswish", "hardtanh", "interpolate", "leaky_relu", "log_sigmoid", "log_softmax",
     "mish", "normalize", "one_hot", "pad", "prelu", "relu", "relu6", "selu", "sigmoid", "silu", "softmax", "softplus",
     "softsign", "swish", "tanh", "tanhshrink", "unfold", "fold"},
)


def __getattr__(name):
    return globals().setdefault(name, _attribute(__name__, name))


def __dir__():
    return sorted({*globals(), *_listed()})
