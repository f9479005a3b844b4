"""What a traced function reads and writes outside of itself (_static.py): checks that a later call passes before the
compiled function runs in its place, attributes that it sets, and calls that cannot be part of a compiled function.

A value is *outer* if it existed before the call. Only what is outer is checked, and must not be changed but through
attributes: lists and dicts that the function makes are its own.
"""
import builtins
import collections
import contextlib
import dataclasses
import dis
import sys
import types

from . import _paddle
from ._sources import is_installed, is_of_package, is_of_package_module, standard_module
from ._syntax import MUTATORS
from .nn.layer import EPOCH, Layer

# Modules of Python's library that do nothing but compute.
_PURE = frozenset(
    "_abc _collections _collections_abc _functools _operator _struct abc bisect cmath collections contextlib copy "
    "dataclasses enum fractions functools heapq importlib itertools math numbers operator re string types typing".split())
_BUILTINS_WITH_EFFECTS = frozenset(
    "breakpoint compile delattr dir eval exec exit globals input locals open print quit vars __import__".split())
_ENGINE_WITH_EFFECTS = frozenset(
    "seed set_rng_state save load set_num_threads save_function train load_plugin compile_function".split())
_MUTATORS = MUTATORS | set(
    "appendleft extendleft popleft rotate __setitem__ __delitem__ difference_update intersection_update "
    "symmetric_difference_update".split())
_NUMBERS = (bool, int, float, complex, str, bytes, type(None), type(Ellipsis), range, slice)
_CONTAINERS = (list, dict, set, collections.deque, bytearray)
_VALUES = (*_NUMBERS, tuple, frozenset, *_CONTAINERS, _paddle.Tensor)
_STORES = ("_parameters", "_buffers", "_sub_layers")  # of layers
MAX_ITEMS = 1000


class Break(Exception):
    """What the function does cannot be part of a compiled function."""


class Miss:
    """A check that a call did not pass."""

    def __init__(self, text):
        self.text = text

    def __repr__(self):
        return self.text


def _is_of_library(module):
    return is_of_package_module(module.__name__) or standard_module(getattr(module, "__file__", None) or "<frozen x>")


def _is_finder(frame):
    """Whether an import asks a finder of an installed package where a module is: the frame is one of the finder."""
    while is_installed(frame.f_code.co_filename):
        if frame.f_code.co_name == "find_spec":
            return standard_module(frame.f_back.f_code.co_filename) == "importlib"
        frame = frame.f_back
    return False


class Recorder:
    """What one trace reads and writes. `lines` are the checks as Python code, `bound` the objects that they name."""

    def __init__(self):
        self.lines, self.bound, self.texts = [], {}, []
        self.outer = {}  # by id; keeps the objects, so that the ids stay theirs
        self.sources = {}  # expressions of tensors, by id
        self.variables = 0
        self.layers = {}
        self.written, self.saved, self.held = {}, [], []
        self.compared = {}  # (object, name) -> the value that a check expects
        self.codes, self.functions = set(), set()
        self.pauses = 0

    # --- checks ---

    def bind(self, value):
        """The name of an object in the code of the checks."""
        name = f"k{len(self.bound)}"
        self.bound[name] = value
        return name

    def check(self, condition, text):
        """A condition that later calls must meet."""
        self.texts.append(text)
        self.lines.append(f"if not ({condition}): return misses[{len(self.texts) - 1}]")

    def variable(self, expression):
        self.variables += 1
        name = f"v{self.variables}"
        self.lines.append(f"{name} = {expression}")
        return name

    def keep(self, value):
        self.outer[id(value)] = value

    def is_outer(self, value):
        return id(value) in self.outer

    def admit(self, value, source, text):
        """Checks that `source` is again what `value` is now; `text` names it in messages."""
        if isinstance(value, _paddle.Tensor):
            other = self.sources.setdefault(id(value), source)
            self.keep(value)
            if other != source:
                self.check(f"{source} is {other}", f"{text} is another tensor")
            return
        source = source if source.isidentifier() else self.variable(source)
        kind = type(value)
        if value is None or kind is bool or value is Ellipsis:
            self.check(f"{source} is {value!r}", f"{text} is not {value!r}")
        elif kind in _NUMBERS:
            self._admit_number(value, source, text)
        elif kind in (list, tuple) or (isinstance(value, tuple) and hasattr(kind, "_fields")):
            self._admit_items(value, source, text)
        elif kind is dict or kind is collections.OrderedDict:
            self._admit_dict(value, source, text)
        elif kind in (set, frozenset):
            self._limit(value, text)
            self.keep(value)
            self.check(f"{source} == {self.bind(frozenset(value))}", f"{text} has changed")
        elif dataclasses.is_dataclass(value) and not isinstance(value, (type, Layer)):
            self.check(f"type({source}) is {self.bind(kind)}", f"{text} is no {kind.__name__}")
            self.keep(value)
            for field in dataclasses.fields(value):
                self.admit(getattr(value, field.name), f"{source}.{field.name}", f"{text}.{field.name}")
        else:
            if hasattr(kind, "__next__"):
                raise Break(f"{text} is an iterator, which the function would use up")
            if kind.__module__ == "numpy":
                raise Break(f"{text} is an array of NumPy")
            self.check(f"{source} is {self.bind(value)}", f"{text} is another object")
            self.fix(value)

    def fix(self, value):
        """An outer object that stays the same one."""
        self.keep(value)
        if isinstance(value, Layer):
            for layer in value.sublayers(include_self=True):
                self.layers[layer] = layer.__dict__.get("_version", 0)
                self.keep(layer)
        elif isinstance(value, types.MethodType):
            self.keep(value.__func__)
            if not isinstance(value.__self__, _VALUES):
                self.fix(value.__self__)

    def _admit_number(self, value, source, text):
        shown = repr(value) if len(repr(value)) < 60 else "what it was"
        same = f"{source} != {source}" if value != value else f"{source} == {self.bind(value)}"
        self.check(f"type({source}) is {self.bind(type(value))} and {same}", f"{text} is not {shown}")

    def _limit(self, value, text):
        if len(value) > MAX_ITEMS:
            raise Break(f"{text} has {len(value)} items, more than {MAX_ITEMS} to check at each call")

    def _admit_items(self, value, source, text):
        self._limit(value, text)
        self.check(f"type({source}) is {self.bind(type(value))} and len({source}) == {len(value)}",
                   f"{text} is no {type(value).__name__} of {len(value)}")
        self.keep(value)
        for i, item in enumerate(value):
            self.admit(item, f"{source}[{i}]", f"{text}[{i}]")

    def _admit_dict(self, value, source, text):
        self._limit(value, text)
        if not all(isinstance(key, _NUMBERS) for key in value):
            raise Break(f"{text} has keys of other types than numbers and strings")
        self.check(f"type({source}) is {self.bind(type(value))} and list({source}) == {self.bind(list(value))}",
                   f"{text} has other keys")
        self.keep(value)
        for key, item in value.items():
            self.admit(item, f"{source}[{self.bind(key)}]", f"{text}[{key!r}]")

    def finish(self):
        """The check of layers, which costs little while no layer of the program changes."""
        if not self.layers:
            return
        layers = self.bind([(layer.__dict__, version) for layer, version in self.layers.items()])
        state = self.bind([EPOCH[0]])
        same = self.bind(_same_layers)
        self.check(f"{self.bind(EPOCH)}[0] == {state}[0] or {same}({layers}, {state})", "a layer has changed")

    # --- what the rewritten code reads ---

    def function(self, function):
        """A function that is going to be called."""
        if id(function) in self.functions or not isinstance(function, types.FunctionType):
            return
        self.functions.add(id(function))
        self.keep_alive(function)
        code = function.__code__
        with self.paused():
            self._check_writes(function)
        if not self.is_outer(function):
            return
        for name, cell in zip(code.co_freevars, function.__closure__ or ()):
            try:
                value = cell.cell_contents
            except ValueError:
                continue
            self.admit(value, f"{self.bind(cell)}.cell_contents", f"the variable '{name}'")

    def _check_writes(self, function):
        code = function.__code__
        writes = {instruction.argval for instruction in dis.get_instructions(code)
                  if instruction.opname in ("STORE_GLOBAL", "DELETE_GLOBAL")
                  or instruction.opname in ("STORE_DEREF", "DELETE_DEREF") and self.is_outer(function)
                  and instruction.argval in code.co_freevars}
        if writes:
            raise Break(f"the variable '{min(writes)}' from outside of the function is assigned")

    def allow(self, code):
        """Rewritten code may run, with the functions in it."""
        if code not in self.codes:
            self.codes.add(code)
            for inner in code.co_consts:
                if isinstance(inner, types.CodeType):
                    self.allow(inner)

    def keep_alive(self, value):
        self.bound[f"alive{len(self.bound)}"] = value

    def global_name(self, value, name, globals_):
        """A name that is not of the function."""
        key = (id(globals_), name)
        if key in self.compared or globals_.get(name, self) is not value:
            return value  # checked already, or one of Python's own
        self.compared[key] = value
        if isinstance(value, types.ModuleType):
            self.keep(value)
        elif isinstance(value, (types.BuiltinFunctionType, type)) and value.__module__ in ("builtins", *sys.stdlib_module_names):
            pass
        else:
            self.admit(value, f"{self.bind(globals_)}[{name!r}]", f"the global '{name}'")
        return value

    def attribute(self, value, name):
        """`value.name`"""
        if isinstance(value, _VALUES):
            return getattr(value, name)
        if isinstance(value, types.ModuleType):
            found = getattr(value, name)
            if not _is_of_library(value):
                self.global_name(found, name, value.__dict__)
            return found
        static = getattr(type(value), name, None) if not isinstance(value, type) else None
        if isinstance(static, property) and isinstance(static.fget, types.FunctionType):
            return _rewrite().call(static.fget)(value)
        found = getattr(value, name)
        if self.is_outer(value):
            self._read(value, name, found)
        return found

    def _read(self, value, name, found):
        key = (id(value), name)
        if key in self.written or key in self.compared:
            return
        own = getattr(value, "__dict__", {})
        text = f"{type(value).__name__}.{name}"
        if isinstance(value, Layer):
            if name in own["_buffers"]:
                source = f"{self.bind(value)}.__dict__['_buffers'][{name!r}]"
                self.compared[key] = found
                self.admit(found, source, text)
                return
            if name not in own or name == "training" or name.startswith("_") or is_of_package_module(type(value).__module__):
                self.fix(found) if not isinstance(found, _VALUES) else self.keep(found)
                return
        elif name not in own and callable(found) and not isinstance(found, _paddle.Tensor):
            self.fix(found)  # a method, or a function of the class
            return
        self.compared[key] = found
        self.admit(found, f"{self.bind(value)}.{name}", text)

    # --- what it writes ---

    def container(self, value):
        """What is written in place."""
        if self.is_outer(value) and not isinstance(value, _paddle.Tensor):
            raise Break(f"a {type(value).__name__} from outside of the function is changed")
        return value

    def write(self, owner, name, value):
        """`owner.name = value`; undone at the end of the trace, and done after each call."""
        if not self.is_outer(owner):
            setattr(owner, name, value)
            return
        if _paddle.is_in_branch():
            raise Break(f"{type(owner).__name__}.{name} is assigned where the value of a tensor decides")
        if not hasattr(owner, "__dict__") or isinstance(owner, (type, types.ModuleType)):
            raise Break(f"{name} of {owner!r} is assigned")
        key = (id(owner), name)
        before = self.compared.get(key, self)
        if before is not self and isinstance(before, _NUMBERS) and not _is_equal(before, value):
            raise Break(f"{type(owner).__name__}.{name} changes with each call")
        if not any(each is owner for each, _ in self.saved):
            self.saved.append((owner, attributes_of(owner)))
        self.written[key] = (owner, name)
        setattr(owner, name, value)

    def hold(self, owner, name):
        """An attribute that code of the package changes: None before and after each call."""
        if any(each is owner for each, _ in self.held):
            return
        if getattr(owner, name) is not None:
            raise Break(f"a {type(owner).__name__} is used in the middle of a step")
        self.check(f"{self.bind(owner)}.{name} is None", f"a {type(owner).__name__} is in the middle of a step")
        self.held.append((owner, name))

    def check_held(self):
        """Break if an attribute that is held is left with a value."""
        for owner, name in self.held:
            if getattr(owner, name) is not None:
                raise Break(f"a {type(owner).__name__} is left in the middle of a step")

    def undo(self):
        """Gives objects the attributes that they had."""
        for owner, name in self.held:
            setattr(owner, name, None)
        for owner, attributes in self.saved:
            set_attributes(owner, attributes)

    # --- calls ---

    def replacement(self, function):
        """What is called in place of a function of Python that reads or writes attributes; None for others."""
        if function is print:
            raise Break("print() is called")
        if function is getattr:
            return self._getattr
        if function is hasattr:
            return lambda value, name: self._getattr(value, name, self) is not self
        if function is setattr:
            return self.write
        return None

    def _getattr(self, value, name, *default):
        try:
            return self.attribute(value, name)
        except AttributeError:
            if not default:
                raise
            if self.is_outer(value):
                raise Break(f"{type(value).__name__}.{name} is read, which is missing") from None
            return default[0]

    @contextlib.contextmanager
    def watching(self):
        """Raises Break before code runs that is not rewritten, or a function of another language that may have effects."""
        before = sys.getprofile()
        sys.setprofile(self._event)
        try:
            yield
        finally:
            sys.setprofile(before)

    @contextlib.contextmanager
    def paused(self):
        """Without these checks, for what the trace itself does."""
        self.pauses += 1
        try:
            yield
        finally:
            self.pauses -= 1

    def _event(self, frame, event, argument):
        if self.pauses:
            return
        if event == "call":
            self._check_code(frame)
        elif event == "c_call" and not is_of_package(frame.f_code.co_filename):
            if not standard_module(frame.f_code.co_filename) and not _is_finder(frame):
                self._check_builtin(argument)

    def _check_code(self, frame):
        code, caller = frame.f_code, frame.f_back.f_code.co_filename
        if code in self.codes or is_of_package(code.co_filename):
            return
        module = standard_module(code.co_filename)
        if module and (module in _PURE or is_of_package(caller) or standard_module(caller)):
            return
        if _is_finder(frame):
            return
        if code.co_filename == "<string>":
            if dataclasses.is_dataclass(frame.f_locals.get("self")) or frame.f_globals["__name__"].startswith("namedtuple_"):
                return
        if module:
            raise Break(f"{module}.{code.co_name} of Python's library is called")
        raise Break(f"{code.co_qualname if hasattr(code, 'co_qualname') else code.co_name} is called, whose code cannot be followed")

    def _check_builtin(self, function):
        owner = getattr(function, "__self__", None)
        name = function.__name__
        if isinstance(owner, types.ModuleType) or owner is None:
            module = owner.__name__ if owner is not None else (function.__module__ or "")
            if module == "builtins":
                if name in _BUILTINS_WITH_EFFECTS:
                    raise Break(f"{name}() is called")
                return
            if is_of_package_module(module):
                if name in _ENGINE_WITH_EFFECTS:
                    raise Break(f"{name}() is called")
                return
            if module.split(".")[0] not in _PURE:
                raise Break(f"{module}.{name} is called")
            return
        if isinstance(owner, _CONTAINERS):
            if name in _MUTATORS:
                self.container(owner)
            return
        if isinstance(owner, (_paddle.Tensor, *_NUMBERS, tuple, frozenset, type)) or type(owner).__module__ == "builtins":
            return
        if is_of_package_module(type(owner).__module__) or type(owner).__module__.split(".")[0] in _PURE:
            return
        raise Break(f"{type(owner).__name__}.{name} is called")


def _rewrite():
    from . import _rewrite as module

    return module


def attributes_of(owner):
    """The attributes of an object, to set them again; those that a layer holds in its own dicts, too."""
    return {name: dict(value) if name in _STORES else value for name, value in owner.__dict__.items()}


def set_attributes(owner, attributes):
    """Gives an object the attributes that it had."""
    owner.__dict__.clear()
    for name, value in attributes.items():
        owner.__dict__[name] = dict(value) if name in _STORES else value


def _is_equal(a, b):
    return type(a) is type(b) and (a == b or a != a)


def _same_layers(layers, state):
    now = EPOCH[0]
    if any(own.get("_version", 0) != version for own, version in layers):
        return False
    state[0] = now
    return True
