"""Whose code a function or a file is: the user's, that of this package, of Python's library or of installed packages."""
import functools
import os
import sysconfig

_OWN = os.path.dirname(os.path.abspath(__file__)) + os.sep
# Functions of the package that call layers of the user.
_CONTAINERS = os.path.join(_OWN, "nn", "containers.py")


def _folders(*names):
    return tuple(os.path.realpath(sysconfig.get_path(name)) + os.sep for name in names)


_STANDARD, _INSTALLED = _folders("stdlib", "platstdlib"), _folders("purelib", "platlib")


def is_of_package(file):
    """Whether a file is one of this package."""
    return file.startswith(_OWN)


def is_of_package_module(name):
    """Whether a module of this name is one of this package."""
    return name.split(".")[0] == __package__


def is_of_user(file):
    """Whether a place in a file is shown to the user: code of others than this package and of Python's core."""
    return not file.startswith((_OWN, "<"))


@functools.lru_cache(None)
def standard_module(file):
    """The module of a file of Python's library; "" for other files."""
    if file.startswith("<frozen "):
        return file[8:-1].split(".")[0]
    file = os.path.realpath(file)
    for folder in _STANDARD:
        if file.startswith(folder) and not file.startswith(_INSTALLED):
            return file[len(folder):].split(os.sep)[0].removesuffix(".py")
    return ""


@functools.lru_cache(None)
def is_installed(file):
    """Whether a file is one of an installed package."""
    return os.path.realpath(file).startswith(_INSTALLED)


@functools.lru_cache(None)
def is_rewritten(file):
    """Whether functions of a file are rewritten when they are traced: those of libraries are called as they are."""
    if file.startswith("<frozen"):
        return False
    file = os.path.realpath(file)
    return file == _CONTAINERS or not file.startswith((_OWN, *_STANDARD, *_INSTALLED))
