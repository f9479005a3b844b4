"""Mixed precision: matrix products and convolutions in 16 bits, what needs it in float32.

    with paddle.amp.auto_cast():
        loss = net(x).mean()
    loss.backward()
"""
import contextlib
import threading

from . import _control, _paddle

_LEVELS = ("O0", "O1", "O2")
_active = threading.local()


class auto_cast(contextlib.ContextDecorator):
    """Calls under it compute in mixed precision, on this thread.

    `level` "O1": products, convolutions and attention in `dtype`, normalization, losses and sums in float32, others in
    the type of their operands. "O2": these others in `dtype`, too. `custom_white_list` and `custom_black_list` name
    further operations that compute in `dtype`, and that compute in float32.
    """

    def __init__(self, enable=True, custom_white_list=None, custom_black_list=None, level="O1", dtype="bfloat16"):
        if level not in _LEVELS:
            raise _paddle.UsageError(f"auto_cast: level must be one of {', '.join(_LEVELS)}, not {level!r}")
        white, black = list(custom_white_list or ()), list(custom_black_list or ())
        both = sorted(set(white) & set(black))
        if both:
            raise _paddle.UsageError(f"auto_cast: {both[0]} is in both lists")
        self._state = (dtype if enable and level != "O0" else "", level == "O2", white, black)
        self._before = []

    def __enter__(self):
        before = getattr(_active, "state", ("", False, [], []))
        _paddle.set_autocast(*self._state)
        _active.state = self._state
        self._before.append(before)
        return self

    def __exit__(self, *error):
        _active.state = self._before.pop()
        _paddle.set_autocast(*_active.state)


class GradScaler:
    """Scales the loss, so that small gradients do not vanish in float16, and skips steps whose gradients overflow."""

    def __init__(self, enable=True, init_loss_scaling=65536.0, incr_ratio=2.0, decr_ratio=0.5, incr_every_n_steps=2000,
                 decr_every_n_nan_or_inf=1, use_dynamic_loss_scaling=True):
        if not incr_ratio > 1 or not 0 < decr_ratio < 1 or not init_loss_scaling > 0:
            raise _paddle.UsageError("GradScaler: incr_ratio must be above 1, decr_ratio between 0 and 1, "
                                     "init_loss_scaling above 0")
        self._enabled = enable
        # The factor, and updates in a row without and with an overflow; tensors, so that compiled functions read them.
        self._state = [_paddle.to_tensor(float(init_loss_scaling)), _paddle.to_tensor(0), _paddle.to_tensor(0)]
        self._rule = (incr_ratio, decr_ratio, incr_every_n_steps, decr_every_n_nan_or_inf)
        self._dynamic = use_dynamic_loss_scaling
        self._finite = None  # whether the gradients of this step are, once they are unscaled

    def is_enable(self):
        """Whether it scales at all."""
        return self._enabled

    def get_scale(self):
        """The factor of the loss."""
        return self._state[0].item() if self._enabled else 1.0

    def scale(self, loss):
        """The loss times the factor."""
        return loss * self._state[0] if self._enabled else loss

    def unscale_(self, optimizer):
        """Divides the gradients of the optimizer's parameters by the factor, for example to clip them."""
        self._hold()
        if not self._enabled or self._finite is not None:
            return
        gradients = []
        for parameter in optimizer._parameters:
            if parameter.grad is not None:
                parameter.grad = parameter.grad / self._state[0]
                gradients.append(parameter.grad)
        self._finite = _paddle.function("all_finite")(gradients) if gradients else _paddle.to_tensor(True)

    def step(self, optimizer):
        """The optimizer's step, unless a gradient overflowed."""
        self.unscale_(optimizer)
        optimizer.step() if not self._enabled else optimizer._step_if(self._finite)

    def update(self):
        """Adapts the factor, after each step."""
        if not self._enabled:
            return
        self._hold()
        finite, self._finite = self._finite, None
        if self._dynamic:
            finite = _paddle.to_tensor(True) if finite is None else finite
            for value, following in zip(self._state, _paddle.next_loss_scale(self._state, finite, self._rule)):
                value.set_value(following)

    def _hold(self):
        """In a function that is compiled: between its calls the scaler is in no step."""
        recorder = _control.recorder()
        if recorder is not None:
            recorder.hold(self, "_finite")

    def minimize(self, optimizer, loss):
        """`loss.backward()` was called; makes the step and adapts the factor."""
        self.step(optimizer)
        self.update()

    def state_dict(self):
        """The factor and its counters."""
        scale, good, bad = (each.item() for each in self._state)
        return {"scale": scale, "good": good, "bad": bad}

    def load_state_dict(self, state):
        """Takes what `state_dict` gave."""
        for value, name in zip(self._state, ("scale", "good", "bad")):
            value.set_value(state[name])
