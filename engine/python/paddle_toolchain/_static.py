"""Functions that are traced and compiled at their first call (jit.to_static), and called compiled while their checks hold.

A trace runs the rewritten function (_rewrite.py) once with tensors that have no values. Tensors from before the call
become inputs of the compiled function; what the function reads besides is checked at each call (_recorder.py), and a
call that does not pass traces again. A function that does what cannot be compiled runs as Python, with the reason noted.
"""
import dataclasses
import functools
import linecache
import os
import sys
import threading
import traceback
import types
import weakref

from . import _control, _paddle, _rewrite
from ._recorder import Break, Miss, Recorder
from ._sources import is_of_user, is_rewritten
from .nn.layer import Layer

_lock = threading.RLock()
MAX_TRACES = 8


class JitError(_paddle.UsageError):
    """What a function does cannot be compiled."""


@dataclasses.dataclass
class Reason:
    """Why a function is not compiled: the place, the line of source and what it does."""

    text: str
    file: str = ""
    line: int = 0
    column: int = 0

    def __str__(self):
        if not self.file:
            return self.text
        source = linecache.getline(self.file, self.line).rstrip()
        bare = source.lstrip()
        caret = " " * max(self.column - (len(source) - len(bare)), 0) + "^"
        return f"{os.path.basename(self.file)}:{self.line}:{self.column + 1}: {self.text}\n    {bare}\n    {caret}"


def reason_of(error, function):
    """The innermost line of the user that an error comes from; that of the function if it comes from its compilation."""
    place, is_sure = None, False
    trace = error.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        file = code.co_filename
        if is_of_user(file) and (is_rewritten(file) or not is_sure):
            is_sure = is_sure or is_rewritten(file)
            positions = list(code.co_positions())
            at = trace.tb_lasti // 2
            column = positions[at][2] if at < len(positions) else 0
            place = (file, trace.tb_lineno, column or 0)
        trace = trace.tb_next
    code = getattr(function, "__code__", None)
    if place is None and code is not None:
        place = (code.co_filename, code.co_firstlineno, 0)
    text = str(error) if isinstance(error, (Break, _paddle.Error)) else f"{type(error).__name__}: {error}"
    return Reason(text.splitlines()[0] if text else type(error).__name__, *(place or ()))


class _Outputs:
    """The result of a function as an expression over the tensors that the compiled one returns."""

    def __init__(self, recorder):
        self.recorder = recorder
        self.tensors, self.indices = [], {}

    def tensor(self, value):
        """A tensor from before the call is returned as it is."""
        if id(value) in self.recorder.sources:
            return self.recorder.sources[id(value)]
        if id(value) not in self.indices:
            self.indices[id(value)] = len(self.tensors)
            self.tensors.append(value)
        return f"o[{self.indices[id(value)]}]"

    def expression(self, value, what="the result"):
        kind = type(value)
        if isinstance(value, _paddle.Tensor):
            return self.tensor(value)
        if isinstance(value, _paddle.Dim):
            raise Break(f"{what} has a size that differs between calls")
        if self.recorder.is_outer(value) or isinstance(value, (type(None), bool, int, float, complex, str, bytes, type)):
            return self.recorder.bind(value)
        if kind is list:
            return "[" + ", ".join(self.expression(each, what) for each in value) + "]"
        if kind is tuple:
            return "(" + "".join(self.expression(each, what) + ", " for each in value) + ")"
        if kind is dict and all(isinstance(key, (str, int, float, bool, tuple)) for key in value):
            return "{" + ", ".join(f"{self.recorder.bind(k)}: {self.expression(v, what)}" for k, v in value.items()) + "}"
        if isinstance(value, tuple) and hasattr(kind, "_fields"):
            return f"{self.recorder.bind(kind)}(" + ", ".join(self.expression(each, what) for each in value) + ")"
        if dataclasses.is_dataclass(value) and all(field.init for field in dataclasses.fields(value)):
            fields = (f"{field.name}={self.expression(getattr(value, field.name), what)}" for field in dataclasses.fields(value))
            return f"{self.recorder.bind(kind)}(" + ", ".join(fields) + ")"
        raise Break(f"{what} is a {kind.__name__} that the function makes")


class Entry:
    """A compiled function with its checks. `call(args, kwargs)` gives a Miss where one does not hold."""

    def __init__(self, call, compiled, misses, symbols, tensors, owners):
        self.call, self.compiled, self.misses, self.symbols = call, compiled, misses, symbols
        self.tensors, self.owners = tensors, owners  # what was read or written, when it was traced


def _trace(function, args, kwargs, symbols, exact):
    """Traces and compiles the function for these arguments. `symbols`: names of sizes, by expression of an argument."""
    recorder = Recorder()
    sizes = []
    recorder.check(f"len(args) == {len(args)} and len(kwargs) == {len(kwargs)}", "another number of arguments")
    for i, value in enumerate(args):
        recorder.admit(value, f"args[{i}]", f"argument {i}")
    for name, value in kwargs.items():
        recorder.check(f"{name!r} in kwargs", f"the argument '{name}' is missing")
        recorder.admit(value, f"kwargs[{name!r}]", f"the argument '{name}'")
    for identity, source in recorder.sources.items():
        if source in symbols:
            sizes.append((recorder.outer[identity], symbols[source]))
    if isinstance(function, types.MethodType):
        recorder.fix(function.__self__)
        recorder.keep(function.__func__)
    recorder.keep(function)
    mode = recorder.bind(_paddle.mode)
    recorder.check(f"{mode}() == {_paddle.mode()!r}", "gradients or mixed precision are switched")
    state = {}

    def run():
        _control.set_recorder(recorder)
        try:
            rewritten = _rewrite.call(function)
            with recorder.watching():
                result = rewritten(*args, **kwargs)
            recorder.check_held()
            outputs = state["outputs"] = _Outputs(recorder)
            state["result"] = outputs.expression(result)
            state["writes"] = []
            for owner, name in recorder.written.values():
                value = outputs.expression(getattr(owner, name), f"{type(owner).__name__}.{name}")
                state["writes"].append(f"{recorder.bind(owner)}.{name} = {value}")
            return outputs.tensors
        finally:
            _control.set_recorder(None)
            recorder.undo()

    compiled = _paddle.compile_function(run, sizes, exact)
    recorder.finish()
    return _assembled(recorder, compiled, state, symbols)


def _assembled(recorder, compiled, state, symbols):
    """The checks, the call and the writes as one function of Python."""
    tensors = compiled.tensors()
    given = [(i, recorder.sources[id(tensor)]) for i, tensor in enumerate(tensors) if id(tensor) in recorder.sources]
    compiled.give([i for i, _ in given])
    arguments = ", ".join(source for _, source in given)
    misses = [Miss(text) for text in recorder.texts] + [Miss("a tensor has another dtype, shape or stop_gradient")]
    lines = ["def call(args, kwargs):", "    try:"]
    lines += [f"        {line}" for line in recorder.lines]
    lines += [f"        given = ({arguments}{',' if given else ''})",
              "    except (AttributeError, IndexError, KeyError, ValueError): return missing",
              "    o = compiled(*given)",
              f"    if o is None: return misses[{len(misses) - 1}]"]
    lines += [f"    {line}" for line in state["writes"]]
    lines.append(f"    return {state['result']}")
    names = {**recorder.bound, "misses": misses, "compiled": compiled, "missing": Miss("a value is missing")}
    exec(compile("\n".join(lines), "<checks of to_static>", "exec"), names)
    return Entry(names["call"], compiled, misses, symbols, tensors, [owner for owner, _ in recorder.saved])


class StaticFunction:
    """A function that is compiled at its first call. Made by `jit.to_static`."""

    _jit_inner = None

    def __init__(self, function, full_graph=False, exact=False):
        functools.update_wrapper(self, function, updated=())
        self._jit_inner, self.full_graph, self.exact = function, full_graph, exact
        self.entries, self.traces, self.reason, self.segments = [], 0, None, None
        self._shapes, self._varying, self._fixed_sizes = {}, {}, False
        self._bound = weakref.WeakKeyDictionary()

    def __get__(self, instance, owner=None):
        if instance is None:
            return self
        if instance not in self._bound:
            self._bound[instance] = StaticFunction(types.MethodType(self._jit_inner, instance), self.full_graph, self.exact)
        return self._bound[instance]

    def __call__(self, *args, **kwargs):
        for entry in self.entries:
            result = entry.call(args, kwargs)
            if type(result) is not Miss:
                if entry is not self.entries[0]:
                    self.entries = [entry, *(each for each in self.entries if each is not entry)]
                return result
        if self.reason is not None:
            return self._call_in_segments(args, kwargs)
        if _paddle.is_tracing():
            return self._jit_inner(*args, **kwargs)
        return self._compiled_call(args, kwargs)

    def _call_in_segments(self, args, kwargs):
        """Runs the function as Python. What it computes from one value that Python needs to the next is compiled."""
        if self.segments is None:
            self.segments = _paddle.Segments(self.exact)
        if not self.segments.enter():  # within another function that runs in this way, or in a trace
            return self._jit_inner(*args, **kwargs)
        try:
            return self._jit_inner(*args, **kwargs)
        finally:
            self.segments.leave()

    def _compiled_call(self, args, kwargs):
        try:
            entry = self.trace(args, kwargs)
        except Exception as error:
            reason = reason_of(error, self._jit_inner)
            if self.full_graph and isinstance(error, (Break, _paddle.UsageError)):
                raise JitError(f"{self.__name__}: {reason}") from error
            result = self._jit_inner(*args, **kwargs)  # an error of the function itself comes from here
            self.reason = reason
            _log(f"{self.__name__} runs as Python: {reason}")
            return result
        result = entry.call(args, kwargs)
        if type(result) is Miss:  # what it reads changes while it is traced
            self.entries.remove(entry)
            self.reason = Reason(f"its own checks do not hold: {result}")
            return self._jit_inner(*args, **kwargs)
        return result

    def trace(self, args, kwargs):
        """Compiles for these arguments, with symbols for sizes that have differed."""
        with _lock:
            if self.entries:
                misses = [entry.call(args, kwargs) for entry in self.entries[:1]]
                _log(f"{self.__name__} is compiled again: {misses[0]}")
            symbols = {} if self._fixed_sizes else self._symbols(args, kwargs)
            try:
                entry = _trace(self._jit_inner, args, kwargs, symbols, self.exact)
            except Exception:
                if not symbols:
                    raise
                self._fixed_sizes = True  # its code needs the sizes
                entry = _trace(self._jit_inner, args, kwargs, {}, self.exact)
            self.traces += 1
            self.entries = [entry, *self.entries[:MAX_TRACES - 1]]
            return entry

    def _symbols(self, args, kwargs):
        """Names of the sizes that differ from those of earlier traces; sizes that were equal each time have one name."""
        found, groups = {}, {}
        places = [(f"args[{i}]", value) for i, value in enumerate(args)]
        places += [(f"kwargs[{name!r}]", value) for name, value in kwargs.items()]
        for source, value in places:
            if not isinstance(value, _paddle.Tensor):
                continue
            shape = value.shape
            history = self._shapes.setdefault(source, [])
            if history and len(history[0]) != len(shape):
                history.clear()
            history.append(shape)
            sizes = [tuple(each[axis] for each in history) for axis in range(len(shape))]
            names = [groups.setdefault(each, f"s{len(groups)}") if len(set(each)) > 1 and each[-1] > 1 else None
                     for each in sizes]
            if any(names):
                found[source] = names
        return found

    def __repr__(self):
        state = f"runs as Python: {self.reason}" if self.reason else f"{len(self.entries)} compiled"
        return f"<to_static {getattr(self, '__qualname__', '')}, {state}>"


def _log(text):
    if os.environ.get("PADDLE_JIT_LOG") == "1":
        print(f"jit: {text}", file=sys.stderr)


def to_static(function, full_graph, exact):
    """The function, or the layer whose `forward`, is compiled at its first call."""
    if isinstance(function, Layer):
        forward = function.forward
        if not isinstance(forward, StaticFunction):
            object.__setattr__(function, "forward", StaticFunction(forward, full_graph, exact))
        return function
    if isinstance(function, StaticFunction):
        return function
    if not callable(function):
        raise TypeError(f"to_static: expected a function or a layer, found {type(function).__name__}")
    return StaticFunction(function, full_graph, exact)
