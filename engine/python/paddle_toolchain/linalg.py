"""Operations of linear algebra: `linalg.cholesky`, `linalg.norm`, `linalg.svd`, ..."""
from ._names import operations_of

_attribute, _listed = operations_of({"linalg"}, {"norm"})


def __getattr__(name):
    return globals().setdefault(name, _attribute(__name__, name))


def __dir__():
    return sorted({*globals(), *_listed()})
