"""What to_static makes of a function: `jit.explain` describes it, `jit.check` compares it with Python."""
from . import _paddle
from ._recorder import attributes_of, set_attributes
from ._static import JitError, StaticFunction, reason_of
from .nn.layer import Layer

# Advice, by words of a reason.
_ADVICE = (
    ("not known while", "keep the value a tensor, or compute it outside of the function"),
    ("print()", "return the value and print it outside of the function"),
    ("changes with each call", "make it a tensor"),
    ("iterator", "take the next item outside of the function and pass it as an argument"),
    ("NumPy", "convert the array to a tensor outside of the function"),
    ("from outside of the function is", "return the value and store it outside of the function"),
    ("assigned on one way only", "assign the name before the decision"),
    ("grows", "write into a tensor of the final size"),
)


class Explanation:
    """A function as it was compiled, or why it was not."""

    def __init__(self, name, entry=None, reason=None, segments=()):
        self.name, self.reason, self.segments = name, reason, list(segments)  # of operations in each
        self.operations = self.backward_operations = 0
        self.checks, self.sizes, self.text = [], {}, ""
        if entry is not None:
            described = entry.compiled.describe()
            self.operations, self.backward_operations = described["operations"], described["backward"]
            self.text, self.sizes = described["text"], entry.symbols
            self.checks = [miss.text for miss in entry.misses]

    @property
    def is_compiled(self):
        """Whether calls run the compiled function."""
        return self.reason is None

    def __str__(self):
        if self.reason is not None:
            advice = next((f"\n    instead: {advice}" for part, advice in _ADVICE if part in str(self.reason)), "")
            counts = ", ".join(str(each) for each in self.segments)
            compiled = f"\n  compiled segments of {counts} operations" if counts else ""
            return f"{self.name} runs as Python:\n  {self.reason}{advice}{compiled}"
        lines = [f"{self.name}: one graph of {self.operations} operations"
                 + (f", its gradient of {self.backward_operations}" if self.backward_operations else "")]
        for source, names in self.sizes.items():
            free = ", ".join(f"axis {axis} ({name})" for axis, name in enumerate(names) if name)
            lines.append(f"  any size of {source}: {free}")
        lines.append("  compiled again if:")
        lines += [f"    {text}" for text in self.checks]
        return "\n".join(lines)


def _static_of(function):
    if isinstance(function, Layer):
        function = function.forward
    return function if isinstance(function, StaticFunction) else StaticFunction(function)


def explain(function, *arguments, **named):
    """What a call with these arguments would run. The function is traced and not called."""
    static = _static_of(function)
    name = getattr(static, "__name__", "the function")
    try:
        return Explanation(name, static.trace(arguments, named))
    except Exception as error:
        return Explanation(name, reason=reason_of(error, static._jit_inner), segments=static.segments.describe() if static.segments else ())


def _tensors(value):
    """The tensors in a result, in order."""
    if isinstance(value, _paddle.Tensor):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        return [each for item in value for each in _tensors(item)]
    return []


class _State:
    """Values that a function writes, to put them back."""

    def __init__(self, entry):
        self.entry = entry
        self.rng = _paddle.get_rng_state()
        self.values = [(each, _copy(each), each.grad) for each in entry.tensors]
        self.attributes = [(owner, attributes_of(owner)) for owner in entry.owners]

    def written(self):
        """The values now."""
        found = [each for tensor in self.entry.tensors for each in (_copy(tensor), tensor.grad)]
        return found + [each for owner in self.entry.owners for each in _tensors(list(owner.__dict__.values()))]

    def restore(self):
        _paddle.set_rng_state(self.rng)
        for tensor, value, gradient in self.values:
            tensor.set_value(value)
            if not tensor.stop_gradient and tensor.is_leaf:
                tensor.grad = gradient
        for owner, attributes in self.attributes:
            set_attributes(owner, attributes)


def _copy(tensor):
    return _paddle.to_tensor(tensor.detach())


def _run(function, arguments, named, state):
    outputs = _tensors(function(*arguments, **named))
    recorded = [each for each in outputs if not each.stop_gradient]
    leaves = [each for each in state.entry.tensors if not each.stop_gradient]
    gradients = []
    if recorded and leaves:
        sums = [_paddle.function("sum")(each) for each in recorded]
        gradients = _paddle.gradients(sums, leaves, None, False, True)
    return outputs, gradients, state.written()


def check(function, *arguments, tolerance=1e-4, **named):
    """Runs a function compiled and as Python with these arguments and compares results, gradients and writes.

    JitError if it is not compiled, or if a value differs by more than `tolerance` of its size. What was written is as
    before the call, so functions with an optimizer's step cannot be checked.
    """
    static = _static_of(function)
    explanation = explain(static, *arguments, **named)
    if not explanation.is_compiled:
        raise JitError(str(explanation))
    entry = static.entries[0]
    if entry.compiled.describe()["updates"]:
        raise _paddle.UsageError("jit.check: the function makes an optimizer's step, which cannot be undone")
    state = _State(entry)
    found = _run(static, arguments, named, state)
    state.restore()
    wanted = _run(static._jit_inner, arguments, named, state)
    state.restore()
    for what, a, b in zip(("result", "gradient", "written value"), wanted, found):
        if len(a) != len(b):
            raise JitError(f"{explanation.name}: {len(b)} tensors as {what}s, Python has {len(a)}")
        for i, (plain, compiled) in enumerate(zip(a, b)):
            _compare(f"{explanation.name}: {what} {i}", plain, compiled, tolerance)


def _compare(what, plain, compiled, tolerance):
    if plain is None or compiled is None:
        if plain is not compiled:
            raise JitError(f"{what} is {compiled}, that of Python {plain}")
        return
    if plain.dtype != compiled.dtype or plain.shape != compiled.shape:
        raise JitError(f"{what} is {compiled.dtype}{compiled.shape}, that of Python {plain.dtype}{plain.shape}")
    for a, b in zip(plain.detach().reshape([-1]).tolist(), compiled.detach().reshape([-1]).tolist()):
        if a != b and not (a != a and b != b) and not abs(a - b) <= tolerance * max(1, abs(a)):
            raise JitError(f"{what} has {b}, that of Python {a}")
