"""Plug-ins: operations, kernels, readers and more from files that a program names.

    acme = paddle.plugins.load("plugins/gated_norm/gated_norm.plugin.yaml")
    y = acme.gated_norm(x, gate)
"""
import json
import os
import tempfile

from . import _paddle


class Plugin:
    """A plug-in that is loaded. Its operations are attributes; `parts` lists all that it has, by kind."""

    def __init__(self, description):
        description = dict(description)
        self.name = description.pop("name")
        self.version = description.pop("version")
        self.path = description.pop("path")
        self.sha256 = description.pop("sha256")
        self.summary = description.pop("summary")
        self.parts = description

    def __getattr__(self, name):
        if not name.startswith("_"):
            function = _paddle.function(f"{self.name}.{name}")
            if function is not None:
                return function
        raise AttributeError(f"the plug-in {self.name} has no operation {name!r}")

    def __dir__(self):
        return [*super().__dir__(), *(name.partition(".")[2] for name in self.parts["operations"])]

    def __repr__(self):
        return f"Plugin({self.name!r}, version {self.version!r})"


def load(path, sha256=None, **options):
    """Loads the file of a plug-in, or returns it if it is loaded already.

    `sha256`: the first digits that the hash of the file must have. `options`: keys that the plug-in declares. A
    plug-in in native code runs with the rights of this process.
    """
    text = json.dumps(options) if options else ""
    return Plugin(_paddle.load_plugin(os.fspath(path), sha256 or "", text))


def define(name, operations, version="1.0.0"):
    """Defines operations by their bodies in the language of models, as a plug-in of this process.

    `operations` has the keys of the file of a plug-in, such as {"swish": {"signature": "(x:T, k:float=1.0) -> out",
    "body": "x * sigmoid(k * x)"}}. They have gradients and are compiled as the engine's own.
    """
    entries = {key: {"doc": entry.get("body", key), **entry} for key, entry in operations.items()}
    content = {"plugin": {"name": name, "version": version, "abi": 1, "summary": "operations of a program"},
               "operations": entries}
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, f"{name}.plugin.yaml")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(content, file, indent=1)
        return load(path)


def loaded():
    """The plug-ins that are loaded, in the order of loading."""
    return [Plugin(each) for each in _paddle.loaded_plugins()]
