"""Training by a config, the job of `paddle-train`: same run folder, same bits."""
import os

from . import _paddle, io
from ._callbacks import tell


class Run:
    """A finished run: its folders, the number of steps and the lines of its log."""

    def __init__(self, result):
        self.steps = result["steps"]
        self.folder, self.model_folder = result["folder"], result["model_folder"]
        self.checkpoint = result["checkpoint"]
        self.log, self.valid = result["log"], result["valid"]

    def __repr__(self):
        return f"Run(folder={self.folder!r}, steps={self.steps})"


class Trainer:
    """Trains as a config says.

    `overrides` are changes such as "train.epochs=1"; `output` is the run folder, by default
    runs/NAME. A callback has some of the methods `on_start(trainer)`, `on_step(step, logs)`, `on_log(line)`,
    `on_evaluate(line)`, `on_checkpoint(folder)`, `on_note(text)`, `on_warning(text)` and `on_end(run)`; `logs` and a
    line are dicts. Each ends the run after the current step by returning "stop".
    """

    def __init__(self, config, overrides=(), callbacks=(), output=None, resume=False, overwrite=False, eager=False):
        self.config = os.fspath(config)
        if isinstance(overrides, str):
            raise TypeError("Trainer: overrides is a list of strings, not one string")
        self.overrides = tuple(getattr(config, "overrides", ())) + tuple(overrides)
        self.callbacks, self.output = list(callbacks), os.fspath(output) if output else ""
        self.resume, self.overwrite, self.eager = resume, overwrite, eager
        _paddle.resolved_config(self.config, self.overrides)

    def fit(self):
        """Trains to the end of the config; a Run. An exception in a callback ends the run."""
        tell(self.callbacks, "on_start", self)
        run = Run(_paddle.train(self.config, self.overrides, self.output, self.resume, self.overwrite, self.eager,
                                any(hasattr(callback, "on_step") for callback in self.callbacks), self._on_event))
        tell(self.callbacks, "on_end", run)
        return run

    @property
    def folder(self):
        """The run folder."""
        return self.output or os.path.join("runs", _paddle.config_name(self.config, self.overrides))

    def evaluate(self, part="valid"):
        """The loss and the metrics of the trained model as a dict, as `paddle eval` computes them.

        `part`: "valid", "test" or "train", a CONFIG.yaml[:part], or a file or folder of the same kind of data.
        """
        return _paddle.evaluate(self.folder, self.overrides, os.fspath(part), self.eager)

    def predict(self, part="valid"):
        """The outputs of the trained model for all samples of a part of the data, as a dict of tensors."""
        from .model import Model

        model = Model(os.path.join(self.folder, "model"))
        found = {name: [] for name in model.outputs}
        for batch in io.open(self.config, part, self.overrides):
            missing = sorted(model.inputs.keys() - batch.keys())
            if missing:
                raise _paddle.UsageError(f"Trainer.predict: data.{part} has no field '{missing[0]}', an input of the model")
            for name, value in model.predict(**{name: batch[name] for name in model.inputs}).items():
                found[name].append(value)
        concat = _paddle.function("concat")
        return {name: concat(values) for name, values in found.items()}

    def _on_event(self, kind, value):
        if kind == "step":
            return tell(self.callbacks, "on_step", value["step"], value)
        if kind != "log":
            return tell(self.callbacks, "on_" + kind, value)
        return tell(self.callbacks, "on_log" if value["kind"] == "train" else "on_evaluate", value)
