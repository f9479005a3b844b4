"""Training by a config, the job of `paddle-train`: same run folder, same bits."""
import os

from . import _paddle


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
        self._tell("on_start", self)
        run = Run(_paddle.train(self.config, self.overrides, self.output, self.resume, self.overwrite, self.eager,
                                any(hasattr(callback, "on_step") for callback in self.callbacks), self._on_event))
        self._tell("on_end", run)
        return run

    def _tell(self, method, *values):
        answers = [getattr(callback, method)(*values) for callback in self.callbacks if hasattr(callback, method)]
        return "stop" if "stop" in answers else None

    def _on_event(self, kind, value):
        if kind == "step":
            return self._tell("on_step", value["step"], value)
        if kind != "log":
            return self._tell("on_" + kind, value)
        return self._tell("on_log" if value["kind"] == "train" else "on_evaluate", value)
