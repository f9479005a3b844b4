"""`Model`: a saved model that predicts, or a network that is trained, evaluated and used in few lines."""
import os

from . import _paddle, io, jit, load, save
from ._callbacks import tell
from .autograd import no_grad
from .nn.layer import Layer, evaluating


class Model(_paddle.Model):
    """A saved model, ready to predict, if `path` names one; a `Network` if it is a layer.

    `weights` are the file of a model given as a config, `overrides` changes of it, `precision` is "float32", "bfloat16"
    or "int8", and with `raw` the outputs are those of the function without the config's `predict` section.
    """

    def __new__(cls, path, *arguments, **named):
        if isinstance(path, Layer):
            return Network(path, *arguments, **named)
        return super().__new__(cls, path, *arguments, **named)


def _batches(data, batch_size, shuffle, drop_last=False, num_workers=0):
    """The batches of a dataset; a loader, or other batches, as they are."""
    if hasattr(data, "__getitem__") and hasattr(data, "__len__") and not isinstance(data, (list, tuple)):
        return io.DataLoader(data, batch_size, shuffle, drop_last, num_workers=num_workers)
    return data


def _parts(batch):
    """Inputs and labels of a batch: of a sequence the last item is the label, of a dict the last value."""
    values = list(batch.values()) if isinstance(batch, dict) else list(batch) if isinstance(batch, (list, tuple)) else [batch]
    return (values[:-1], values[-1:]) if len(values) > 1 else (values, [])


def _list(value):
    return [] if value is None else list(value) if isinstance(value, (list, tuple)) else [value]


class Network:
    """A layer with an optimizer, a loss and metrics: `prepare`, then `fit`, `evaluate` and `predict`.

    A batch is a sequence or a dict whose last item is the label. The training step is compiled where that is possible
    (jit.to_static).
    """

    def __init__(self, network):
        self.network = network
        self.optimizer = self.loss = self.metrics = self._step = None

    def prepare(self, optimizer=None, loss=None, metrics=None):
        """Sets what `fit` and `evaluate` need. `loss(outputs, label)` is a layer or a function."""
        self.optimizer, self.loss, self.metrics = optimizer, loss, _list(metrics)
        if optimizer is not None and loss is None:
            raise _paddle.UsageError("prepare: an optimizer needs a loss")

        def step(inputs, labels):
            outputs = self.network(*inputs)
            value = self.loss(outputs, *labels)
            value.backward()
            self.optimizer.step()
            self.optimizer.clear_grad()
            return value, outputs

        self._step = jit.to_static(step)
        return self

    def parameters(self):
        """The parameters of the network."""
        return self.network.parameters()

    def _require(self, what, value):
        if value is None:
            raise _paddle.UsageError(f"{what}: call prepare first, with an optimizer and a loss")

    def train_batch(self, inputs, labels=None):
        """A training step on a batch; the loss."""
        self._require("train_batch", self.optimizer)
        self.network.train()
        loss, outputs = self._step(_list(inputs), _list(labels))
        for metric in self.metrics:
            metric.update(outputs, *_list(labels))
        return loss.item()

    def eval_batch(self, inputs, labels=None):
        """The loss of a batch in evaluation mode; metrics are updated."""
        self._require("eval_batch", self.loss)
        outputs = self.predict_batch(inputs)
        for metric in self.metrics:
            metric.update(outputs, *_list(labels))
        return self.loss(outputs, *_list(labels)).item()

    def predict_batch(self, inputs):
        """The outputs for a batch, in evaluation mode."""
        with no_grad(), evaluating(self.network):
            return self.network(*_list(inputs))

    def _results(self, losses, count):
        out = {"loss": losses / max(count, 1)}
        out.update((metric.name, metric.accumulate()) for metric in self.metrics)
        return out

    def _reset(self):
        for metric in self.metrics:
            metric.reset()

    def fit(self, train_data, eval_data=None, batch_size=1, epochs=1, shuffle=True, drop_last=False, num_workers=0,
            log_every=0, callbacks=()):
        """Trains; gives the results of each epoch as a list of dicts, those of `eval_data` as "eval_loss" and so on.

        `log_every`: the number of steps between printed lines; 0: none. Callbacks are as those of `Trainer`: `on_start(model)`,
        `on_step(step, logs)`, `on_evaluate(logs)`, `on_end(model)`; "stop" ends the training after the step.
        """
        self._require("fit", self.optimizer)
        train_batches = _batches(train_data, batch_size, shuffle, drop_last, num_workers)
        history, step, stopped = [], 0, None
        tell(callbacks, "on_start", self)
        for epoch in range(epochs):
            self._reset()
            losses, count = 0.0, 0
            for batch in train_batches:
                loss = self.train_batch(*_parts(batch))
                step, count, losses = step + 1, count + 1, losses + loss
                logs = {"epoch": epoch, "loss": loss, "learning_rate": self.optimizer.get_lr()}
                if log_every and step % log_every == 0:
                    print(f"epoch {epoch + 1}  step {step}  loss {loss:.4g}", flush=True)
                stopped = tell(callbacks, "on_step", step, logs)
                if stopped:
                    break
            results = self._results(losses, count)
            if eval_data is not None and not stopped:
                found = self.evaluate(eval_data, batch_size)
                results.update((f"eval_{name}", value) for name, value in found.items())
                stopped = tell(callbacks, "on_evaluate", found)
            history.append(results)
            if stopped:
                break
        tell(callbacks, "on_end", self)
        return history

    def evaluate(self, eval_data, batch_size=1, num_workers=0):
        """The mean loss over the batches, and the metrics, as a dict."""
        self._require("evaluate", self.loss)
        self._reset()
        losses, count = 0.0, 0
        for batch in _batches(eval_data, batch_size, False, num_workers=num_workers):
            losses, count = losses + self.eval_batch(*_parts(batch)), count + 1
        return self._results(losses, count)

    def predict(self, test_data, batch_size=1, num_workers=0, has_labels=True):
        """The outputs for all samples, as one tensor (or a list of tensors). Labels in the data are not used."""
        found = []
        for batch in _batches(test_data, batch_size, False, num_workers=num_workers):
            inputs, labels = _parts(batch)
            found.append(_list(self.predict_batch(inputs if has_labels else inputs + labels)))
        joined = [_paddle.function("concat")([each[i] for each in found]) for i in range(len(found[0]))] if found else []
        return joined[0] if len(joined) == 1 else joined

    def save(self, path, input_spec=None):
        """Writes the weights and the state of the optimizer as PATH.safetensors and PATH.optimizer.safetensors, or with
        types of the inputs (as jit.save takes them) a model folder for the tools."""
        path = os.fspath(path)
        if input_spec is not None:
            jit.save(self.network, path, input_spec)
            return
        save(self.network.state_dict(), path + ".safetensors")
        if self.optimizer is not None:
            save(self.optimizer.state_dict(), path + ".optimizer.safetensors")

    def load(self, path):
        """Reads what `save` wrote."""
        path = os.fspath(path)
        self.network.set_state_dict(load(path + ".safetensors"))
        state = path + ".optimizer.safetensors"
        if self.optimizer is not None and os.path.exists(state):
            self.optimizer.set_state_dict(load(state))

    def summary(self, input_size=None, dtype="float32"):
        """Prints the layers with their shapes and parameters."""
        from .nn.summary import summarize

        return summarize(self.network, input_size, dtype)

