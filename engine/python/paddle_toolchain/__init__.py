"""Deep learning from Python over the engine of the paddle tools.

    import paddle_toolchain as paddle

Operations have the names of `paddle op list`: `paddle.matmul(x, y)`, `x.softmax(axis=-1)`,
`paddle.nn.functional.relu(x)`. Modules of the package are imported when they are first used.
"""
import importlib as _importlib
import os as _os

# OpenMP reads it when it is loaded: threads that wait spin for a tenth of a millisecond before they sleep, as in the
# tools, since on a busy machine the default of milliseconds costs more than it saves.
if "OMP_WAIT_POLICY" not in _os.environ:
    _os.environ.setdefault("GOMP_SPINCOUNT", "5000")

from . import _paddle
from ._paddle import (
    ConfigError,
    DataError,
    DeviceError,
    Error,
    ForkedProcessError,
    InternalError,
    ModelError,
    PeerError,
    Tensor,
    TextEncoder,
    UsageError,
    get_num_threads,
    get_rng_state,
    seed,
    set_num_threads,
    set_rng_state,
)
from ._version import __version__
from .autograd import enable_grad, grad, is_grad_enabled, no_grad

bool = "bool"
int8 = "int8"
int16 = "int16"
int32 = "int32"
int64 = "int64"
uint8 = "uint8"
uint16 = "uint16"
uint32 = "uint32"
uint64 = "uint64"
float16 = "float16"
bfloat16 = "bfloat16"
float32 = "float32"
float64 = "float64"
complex64 = "complex64"
complex128 = "complex128"

_MODULES = ("amp", "autograd", "config", "data", "distributed", "export", "fft", "io", "jit", "linalg", "metric", "nn", "optimizer", "plugins")
# Classes of modules that are imported when they are first used.
_CLASSES = {"LanguageModel": "language_model", "Model": "model", "Network": "model", "Run": "training", "Trainer": "training",
            "DataParallel": "distributed", "ModelLayer": "model_layer", "lang": "model_layer", "op": "custom_operation"}


def as_paddle():
    """Makes this package what `import paddle` gives, for programs that were written for PaddlePaddle.

    ImportError if PaddlePaddle itself is installed or imported.
    """
    import importlib.util
    import sys

    this = sys.modules[__name__]
    if sys.modules.get("paddle") is this:
        return this
    if "paddle" in sys.modules or importlib.util.find_spec("paddle") is not None:
        raise ImportError("as_paddle: another package of the name 'paddle' is installed; two cannot share it")
    from . import _alias

    sys.meta_path.insert(0, _alias.Finder("paddle", __name__))
    return _importlib.import_module("paddle")


def to_tensor(data, dtype=None, place=None, stop_gradient=True):
    """A tensor with a copy of numbers, nested lists, an array or another tensor."""
    if place not in (None, "cpu"):
        raise UsageError(f"to_tensor: the place is 'cpu', not {place!r}")
    return Tensor(data, dtype, stop_gradient)


def is_tensor(value):
    """Whether a value is a tensor."""
    return isinstance(value, Tensor)


def set_device(device):
    """Sets where tensors are made; the package computes on \"cpu\"."""
    if device != "cpu":
        raise UsageError(f"set_device: the device is 'cpu', not {device!r}")
    return device


def get_device():
    """Where tensors are made."""
    return "cpu"


def summary(net, input_size=None, dtype="float32"):
    """Prints the layers of a network with their outputs' shapes and parameters; gives the numbers as a dict.

    `input_size` is the shape of the input, or a list of shapes. Without it shapes are left out.
    """
    from .nn.summary import summarize

    return summarize(net, input_size, dtype)


def from_numpy(array, writable=False):
    """A tensor that shares the memory of an array; writes to the array are seen by the tensor.

    With `writable` in-place operations on the tensor write to the array as well.
    """
    return _paddle.from_buffer(array, writable)


def from_dlpack(data):
    """A tensor that shares the memory of another package's tensor, or of a DLPack capsule."""
    if hasattr(data, "__dlpack__"):
        try:
            data = data.__dlpack__(max_version=(1, 0))
        except TypeError:  # of a package before DLPack 1.0
            data = data.__dlpack__()
    return _paddle.from_dlpack(data)


def save(values, path):
    """Writes a dict of tensors, such as a `state_dict`, as a safetensors file."""
    _paddle.save(_os.fspath(path), list(values), list(values.values()))


def load(path):
    """The tensors of a safetensors file by name."""
    return _paddle.load(_os.fspath(path))


def __getattr__(name):
    if name in _MODULES:
        return _importlib.import_module("." + name, __name__)
    if name in _CLASSES:
        value = getattr(_importlib.import_module("." + _CLASSES[name], __name__), name)
    else:
        value = None if name.startswith("_") else _paddle.function(name)
        if value is None:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__():
    return sorted({*globals(), *_MODULES, *_CLASSES, *_paddle.operations()})
