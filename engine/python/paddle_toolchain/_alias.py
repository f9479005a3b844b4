"""A second name of this package for `import`."""
import importlib
import importlib.abc
import importlib.machinery
import importlib.util


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds modules `alias.x.y` as the modules `package.x.y`, which are the same objects."""

    def __init__(self, alias, package):
        self._alias, self._package = alias, package

    def find_spec(self, name, path=None, target=None):
        if name != self._alias and not name.startswith(self._alias + "."):
            return None
        actual = self._package + name[len(self._alias):]
        if importlib.util.find_spec(actual) is None:
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec):
        module = importlib.import_module(self._package + spec.name[len(self._alias):])
        spec.loader_state = module.__spec__
        return module

    def exec_module(self, module):
        module.__spec__ = module.__spec__.loader_state  # the import machinery has set that of the alias
