"""Which operations a namespace has: those of some families, and others by name."""
from . import _paddle


def operations_of(families, names=()):
    """The functions `__getattr__` and `__dir__` of a module with these operations."""
    families, names = frozenset(families), frozenset(names)

    def listed():
        return [name for name, family in _paddle.operations().items() if family in families or name in names]

    def attribute(module, name):
        function = None if name.startswith("_") else _paddle.function(name)
        if function is None or function.__name__ not in listed():
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        return function

    return attribute, listed
