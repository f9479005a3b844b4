"""Configs of training runs."""
import os

from . import _paddle


class Config:
    """A config file with changes to its values; `load` opens one."""

    def __init__(self, path, overrides=()):
        self.path, self.overrides = os.fspath(path), tuple(overrides)

    def override(self, *changes):
        """The config with further changes, "optimizer.lr=1e-3"."""
        return Config(self.path, self.overrides + changes)

    def check(self):
        """The config itself; ConfigError lists everything that is wrong with it."""
        _paddle.resolved_config(self.path, self.overrides)
        return self

    def yaml(self):
        """The config with defaults and changes filled in."""
        return _paddle.resolved_config(self.path, self.overrides)

    def __fspath__(self):
        return self.path


def load(path):
    """The config of a file."""
    return Config(path).check()
