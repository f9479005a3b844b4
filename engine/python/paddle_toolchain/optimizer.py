"""Optimizers with the engine's update rules, and schedules of their rates."""
import math

from . import _paddle


class Optimizer:
    """Updates parameters by their gradients. `learning_rate` is a number or a schedule of `lr`."""

    rule = ""

    def __init__(self, learning_rate, parameters, weight_decay=None, grad_clip=None, **keys):
        if parameters is None:
            raise _paddle.UsageError(f"{type(self).__name__}: parameters are missing; pass layer.parameters()")
        self._parameters = list(parameters)
        if not self._parameters:
            raise _paddle.UsageError(f"{type(self).__name__}: no parameters to update")
        self._names = [getattr(p, "name", "") or f"parameter_{i}" for i, p in enumerate(self._parameters)]
        self._rate = learning_rate
        text = "{" + ", ".join(f"{name}: {_yaml(value)}" for name, value in keys.items()) + "}"
        self._update = _paddle.Optimizer(self.rule, text, self.get_lr(), float(weight_decay or 0),
                                         getattr(grad_clip, "kind", ""), getattr(grad_clip, "bound", 0.0))

    def get_lr(self):
        """The rate of the next update."""
        return self._rate.get_lr() if isinstance(self._rate, lr.LRScheduler) else float(self._rate)

    def set_lr(self, value):
        """Sets the rate; UsageError where a schedule does."""
        if isinstance(self._rate, lr.LRScheduler):
            raise _paddle.UsageError("set_lr: the rate comes from a schedule")
        self._rate = float(value)

    def step(self):
        """Updates each parameter that has a gradient."""
        self._update.step(self._names, self._parameters, self.get_lr)

    def _step_if(self, condition):
        """The same if a tensor of one element is true."""
        self._update.step(self._names, self._parameters, self.get_lr, condition)

    def clear_grad(self):
        """Removes the gradients of the parameters."""
        for parameter in self._parameters:
            parameter.clear_grad()

    def minimize(self, loss):
        """`loss.backward()`, then `step()`."""
        loss.backward()
        self.step()

    def state_dict(self):
        """The states by the names of their parameters, and the number of updates."""
        out = {"updates": _paddle.to_tensor(self._update.updates)}
        for i, (name, parameter) in enumerate(zip(self._names, self._parameters)):
            for state, value in self._update.states(i, name, parameter):
                out[f"{name}.{state}"] = value
        return out

    def set_state_dict(self, state):
        """Continues with the states of another optimizer of the same kind."""
        self._update.updates = int(state["updates"])
        for i, (name, parameter) in enumerate(zip(self._names, self._parameters)):
            values = [value for key, value in state.items() if key.rpartition(".")[0] == name]
            if values:
                self._update.set_states(i, name, parameter, values)


def _yaml(value):
    if isinstance(value, bool):
        return "true" if value else "false"
    return repr(value)


class SGD(Optimizer):
    rule = "sgd"

    def __init__(self, learning_rate=0.001, parameters=None, weight_decay=None, grad_clip=None):
        super().__init__(learning_rate, parameters, weight_decay, grad_clip)


class Momentum(Optimizer):
    rule = "momentum"

    def __init__(self, learning_rate=0.001, momentum=0.9, parameters=None, use_nesterov=False, weight_decay=None,
                 grad_clip=None):
        super().__init__(learning_rate, parameters, weight_decay, grad_clip, momentum=momentum, nesterov=use_nesterov)


class Adam(Optimizer):
    rule = "adam"

    def __init__(self, learning_rate=0.001, beta1=0.9, beta2=0.999, epsilon=1e-8, parameters=None, weight_decay=None,
                 grad_clip=None):
        super().__init__(learning_rate, parameters, weight_decay, grad_clip, beta1=beta1, beta2=beta2, epsilon=epsilon)


class AdamW(Adam):
    rule = "adamw"

    def __init__(self, learning_rate=0.001, beta1=0.9, beta2=0.999, epsilon=1e-8, parameters=None, weight_decay=0.01,
                 grad_clip=None):
        super().__init__(learning_rate, beta1, beta2, epsilon, parameters, weight_decay, grad_clip)


class lr:
    """Schedules: `scheduler.step()` after each update, or each epoch."""

    class LRScheduler:
        """The rate as a function of the number of calls of `step`."""

        def __init__(self, learning_rate):
            self.base_lr, self.last_epoch = float(learning_rate), 0

        def rate(self, step):
            return self.base_lr

        def get_lr(self):
            return self.rate(self.last_epoch)

        def step(self):
            self.last_epoch += 1

        def state_dict(self):
            return {"last_epoch": self.last_epoch}

        def set_state_dict(self, state):
            self.last_epoch = int(state["last_epoch"])

    class StepDecay(LRScheduler):
        """The rate times gamma after every step_size steps."""

        def __init__(self, learning_rate, step_size, gamma=0.1):
            super().__init__(learning_rate)
            self.step_size, self.gamma = step_size, gamma

        def rate(self, step):
            return self.base_lr * self.gamma ** (step // self.step_size)

    class CosineAnnealingDecay(LRScheduler):
        """From the rate to eta_min in T_max steps along a cosine."""

        def __init__(self, learning_rate, T_max, eta_min=0.0):
            super().__init__(learning_rate)
            self.total, self.least = T_max, eta_min

        def rate(self, step):
            return self.least + (self.base_lr - self.least) * (1 + math.cos(math.pi * step / self.total)) / 2

    class LinearWarmup(LRScheduler):
        """From start_lr to end_lr in warmup_steps steps, then the other schedule or rate."""

        def __init__(self, learning_rate, warmup_steps, start_lr, end_lr):
            super().__init__(end_lr)
            self.after, self.warmup_steps, self.start_lr = learning_rate, warmup_steps, start_lr

        def rate(self, step):
            if step < self.warmup_steps:
                return self.start_lr + (self.base_lr - self.start_lr) * step / self.warmup_steps
            later = self.after
            return later.rate(step - self.warmup_steps) if isinstance(later, lr.LRScheduler) else float(later)
