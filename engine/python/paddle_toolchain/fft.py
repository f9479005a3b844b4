"""Fourier transforms: `fft.fft`, `fft.rfft`, `fft.ifft2`, ..."""
from ._names import operations_of

_attribute, _listed = operations_of({"fft"})


def __getattr__(name):
    return globals().setdefault(name, _attribute(__name__, name))


def __dir__():
    return sorted({*globals(), *_listed()})
