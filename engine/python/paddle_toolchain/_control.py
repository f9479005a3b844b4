"""What rewritten functions (_rewrite.py) call: decisions and loops by values that may be tensors of a trace.

State is what a block assigns: `get` gives the values of its names in order, `put` sets them. In a trace both branches of
a decision are recorded, first without operations to learn the types of what they leave. A value becomes a result of
the branch if it is a tensor, or a number that differs; containers are compared item by item.
"""
import builtins
import operator
import sys
import threading

from . import _paddle

_NUMBERS = (builtins.bool, builtins.int, builtins.float)
VALUE = "_jit_value"  # the returned value, which counts only where its flag is set


_active = threading.local()


def recorder():
    """What records the reads and writes of a function that is traced for calls; None otherwise."""
    return getattr(_active, "recorder", None)


def set_recorder(value):
    """Sets it for this thread."""
    _active.recorder = value


# --- what is outside of the function ---


def attribute(value, name):
    """`value.name`"""
    active = recorder()
    return getattr(value, name) if active is None else active.attribute(value, name)


def global_name(value, name):
    """A name that the function does not define."""
    active = recorder()
    return value if active is None else active.global_name(value, name, sys._getframe(1).f_globals)


def container(value):
    """What is going to be written in place."""
    active = recorder()
    return value if active is None else active.container(value)


class slot:
    """An attribute that is assigned: `slot(a, "b").value = c` in place of `a.b = c`."""

    def __init__(self, owner, name):
        object.__setattr__(self, "_place", (owner, name))

    @property
    def value(self):
        return container(attribute(*self._place))  # of `a.b += c`

    @value.setter
    def value(self, value):
        active = recorder()
        if active is None:
            setattr(*self._place, value)
        else:
            active.write(*self._place, value)

    @value.deleter
    def value(self):
        owner, name = self._place
        delattr(container(owner), name)


class Undefined:
    """In place of a name that has no value."""

    def __init__(self, name, reason=None):
        self.name, self.reason = name, reason

    def raise_error(self):
        if self.reason is None:
            raise UnboundLocalError(f"cannot access local variable '{self.name}' where it is not associated with a value")
        what = "the returned value" if self.name.startswith(VALUE) else f"'{self.name}'"
        raise _paddle.UsageError(f"{what} {self.reason}")


def read(value):
    """The value of a name that may have none."""
    if isinstance(value, Undefined):
        value.raise_error()
    return value


def is_traced(value):
    """Whether the value is a tensor without a known value."""
    return isinstance(value, _paddle.Tensor) and not _paddle.is_known(value)


def _tensor(value, dtype=None):
    if not isinstance(value, _paddle.Tensor):
        value = _paddle.to_tensor(value)
    return value if dtype is None or value.dtype == dtype else value.astype(dtype)


def _truth(value):
    """A condition as a tensor of type bool."""
    return _tensor(value, "bool")


def _copied(value):
    """The value, with containers and tensors of its own, so that writes to them stay in the branch."""
    if type(value) is list:
        return [_copied(each) for each in value]
    if type(value) is dict:
        return {key: _copied(each) for key, each in value.items()}
    return value


# --- the form of a value: what of it is carried through a branch or a loop ---


class _Kept:
    """The same on all ways."""

    def __init__(self, value):
        self.value = value

    def flatten(self, value, out):
        pass

    def restore(self, leaves):
        return self.value


class _Lost(_Kept):
    """Differs in a way that cannot be decided when the model runs: an error where it is read."""

    def __init__(self, name, reason):
        super().__init__(Undefined(name, reason))


class _Leaf:
    """A tensor of this type."""

    def __init__(self, dtype, shape):
        self.dtype, self.shape = dtype, shape

    def flatten(self, value, out):
        if isinstance(value, Undefined) or value is None:  # not read: a flag says so
            value = _paddle.function("zeros")(self.shape, self.dtype)
        out.append(_tensor(value, self.dtype))

    def restore(self, leaves):
        return next(leaves)


class _Items:
    """A list, tuple or dict of forms."""

    def __init__(self, like, keys, forms):
        self.like, self.keys, self.forms = like, keys, forms

    def flatten(self, value, out):
        for key, form in zip(self.keys, self.forms):
            form.flatten(None if value is None or isinstance(value, Undefined) else value[key], out)

    def restore(self, leaves):
        values = [form.restore(leaves) for form in self.forms]
        if isinstance(self.like, dict):
            return dict(zip(self.keys, values))
        if hasattr(self.like, "_fields"):
            return type(self.like)(*values)
        return type(self.like)(values)


def _is_leaf(value):
    return isinstance(value, (_paddle.Tensor, *_NUMBERS))


def _kind(value):
    """dtype and shape of a tensor or a number."""
    if isinstance(value, _paddle.Tensor):
        return value.dtype, value.shape
    return ("bool" if isinstance(value, builtins.bool) else "int64" if isinstance(value, builtins.int) else "float32"), []


def _joined_dtype(name, a, b):
    left, right = _kind(a)[0], _kind(b)[0]
    if left == right:
        return left
    numbers = [isinstance(each, _NUMBERS) for each in (a, b)]
    if all(numbers):
        return "float32" if "float32" in (left, right) else "int64"
    if any(numbers):
        tensor, number = (right, left) if numbers[0] else (left, right)
        if number == "float32" and ("float" in tensor or "complex" in tensor):
            return tensor
        if number == "int64" and tensor != "bool":
            return tensor
        if number == "float32":
            return "float32"
    raise _paddle.UsageError(f"'{name}' is {left} on one way and {right} on the other, and a tensor decides")


def _is_same(a, b):
    if a is b:
        return True
    return type(a) is type(b) and isinstance(a, (*_NUMBERS, str, bytes)) and a == b


def _items(value):
    if isinstance(value, dict):
        return list(value)
    return list(range(len(value)))


def _form(name, a, b, what):
    """The form of a name whose value is `a` on one way and `b` on the other."""
    if name.startswith(VALUE):
        # Only one of both counts where the other has no value.
        a, b = (b, b) if a is None or isinstance(a, Undefined) else (a, a) if b is None or isinstance(b, Undefined) else (a, b)
        if isinstance(a, _paddle.Tensor) and a is b:
            return _Leaf(*_kind(a))
        if isinstance(a, (list, tuple, dict)) and a is b:
            return _Items(a, _items(a), [_form(name, a[key], a[key], what) for key in _items(a)])
    if isinstance(a, _paddle.Tensor) and a is b and _paddle.is_known(a):
        return _Kept(a)
    if _is_leaf(a) and _is_leaf(b):
        if _is_same(a, b) and not isinstance(a, _paddle.Tensor):
            return _Kept(a)
        return _Leaf(_joined_dtype(name, a, b), _kind(a if isinstance(a, _paddle.Tensor) else b)[1])
    if isinstance(a, Undefined) and isinstance(b, Undefined):
        return _Kept(a)
    if isinstance(a, Undefined) or isinstance(b, Undefined):
        return _Lost(name, what)
    if type(a) is type(b) and isinstance(a, (list, tuple, dict)):
        if _items(a) == _items(b):
            return _Items(a, _items(a), [_form(name, a[key], b[key], what) for key in _items(a)])
        return _Lost(name, "has another number of items on each way, and a tensor decides")
    if _is_same(a, b):
        return _Kept(a)
    return _Lost(name, "differs between the ways, and a tensor decides")


def _flat(forms, values):
    out = []
    for form, value in zip(forms, values):
        form.flatten(value, out)
    return out


def _restored(forms, leaves):
    leaves = iter(leaves)
    return [form.restore(leaves) for form in forms]


def _reject_attributes(attributes):
    if attributes:
        raise _paddle.UsageError(f"{attributes[0]} where the value of a tensor decides")


# --- decisions ---


def _decided(test, ways, names, before, put, get):
    """Records both ways and gives the values that the names have after them."""
    one_way = "is assigned on one way only, and a tensor decides"

    def outcome(way):
        put([_copied(value) for value in before])
        way()
        return get()

    first, second = (_paddle.dry_run(lambda way=way: outcome(way)) for way in ways)
    forms = [_form(name, a, b, one_way) for name, a, b in zip(names, first, second)]
    sides = [lambda _, way=way: _flat(forms, outcome(way)) for way in ways]
    return _restored(forms, _paddle.branch(_truth(test), *sides))


def if_(test, then, other, get, put, names, attributes):
    if not is_traced(test):
        (then if test else other)()
        return
    _reject_attributes(attributes)
    put(_decided(test, (then, other), names, get(), put, get))


def if_expression(test, then, other):
    if not is_traced(test):
        return then() if test else other()
    result = [None]

    def put(values):
        result[:] = values

    ways = (lambda: put([then()]), lambda: put([other()]))
    return read(_decided(test, ways, ["the conditional expression"], [None], put, lambda: list(result))[0])


def and_(first, *others):
    value = first()
    for other in others:
        if is_traced(value):
            value = _truth(value).logical_and(_truth(other()))
        elif value:
            value = other()
        else:
            return value
    return value


def or_(first, *others):
    value = first()
    for other in others:
        if is_traced(value):
            value = _truth(value).logical_or(_truth(other()))
        elif value:
            return value
        else:
            value = other()
    return value


def not_(value):
    return _truth(value).logical_not() if is_traced(value) else not value


_COMPARISONS = {
    "Eq": operator.eq,
    "NotEq": operator.ne,
    "Lt": operator.lt,
    "LtE": operator.le,
    "Gt": operator.gt,
    "GtE": operator.ge,
    "Is": operator.is_,
    "IsNot": operator.is_not,
    "In": lambda a, b: a in b,
    "NotIn": lambda a, b: a not in b,
}


def compare(left, *rest):
    """A chain of comparisons; each operand but the first is a function."""
    value = True
    for kind, right in rest:
        if not is_traced(value) and not value:
            return value
        operand = right()
        found = _COMPARISONS[kind](left, operand)
        value = found if value is True else _truth(value).logical_and(_truth(found)) if is_traced(value) else found
        left = operand
    return value


def assert_(test, message):
    if is_traced(test):
        _paddle.function("assert_true")(test, " ".join(str(each) for each in message()) or "an assertion failed")
    elif not test:
        raise AssertionError(*message())


def print_(*values, **options):
    """`print`, with a line of the running model for each tensor without a known value."""
    if not any(is_traced(each) for each in values):
        print(*values, **options)
        return
    words = " ".join(str(each) for each in values if not is_traced(each))
    for each in values:
        if is_traced(each):
            _paddle.function("print")(each, message=words)


# --- loops ---


def _carried(body, names, before, put, get):
    """Forms of the names in a loop, from what the body makes of them, and the values at its start."""
    once = "is assigned in a loop that may not run, and a tensor decides"
    start = list(before)
    for _ in range(8):
        def turn():
            put([_copied(value) for value in start])
            body()
            return get()

        after = _paddle.dry_run(turn)
        forms = [_form(name, a, b, once) for name, a, b in zip(names, start, after)]
        # Numbers that change are tensors from the beginning, and so may change others.
        leaves = [form.restore(iter(_flat([form], [value]))) if _changes(form, value) else value
                  for form, value in zip(forms, start)]
        if all(a is b for a, b in zip(leaves, start)):
            return forms, start
        start = leaves
    raise _paddle.UsageError("the types of what a loop carries do not settle")


def _changes(form, value):
    """Whether the value becomes another one by being carried."""
    if isinstance(form, _Leaf):
        return not isinstance(value, _paddle.Tensor) or value.dtype != form.dtype
    if isinstance(form, _Items):
        return value is None or isinstance(value, Undefined) or any(
            _changes(each, value[key]) for key, each in zip(form.keys, form.forms))
    return False


def while_(test, body, get, put, names, attributes):
    while True:
        value = test()
        if is_traced(value):
            break
        if not value:
            return
        body()
    _reject_attributes(attributes)
    forms, start = _carried(body, names, get(), put, get)

    def condition(now):
        put(_restored(forms, now))
        return [_truth(test())]

    def step(now):
        put(_restored(forms, now))
        body()
        return _flat(forms, get())

    put(_restored(forms, _paddle.loop(condition, step, _flat(forms, start))))


class _Range:
    def __init__(self, *bounds):
        start, stop, step = (0, *bounds, 1) if len(bounds) == 1 else (*bounds, 1) if len(bounds) == 2 else bounds
        if is_traced(step):
            raise _paddle.UsageError("range: the step is a tensor without a known value")
        self.start, self.stop, self.step = start, stop, step

    def has(self, index):
        return index < self.stop if self.step > 0 else index > self.stop

    def item(self, index):
        return index

    def next(self, index):
        return index + self.step


class _Rows:
    """The rows of a tensor whose number is not known."""

    start, step = 0, 1

    def __init__(self, tensor):
        self.tensor, self.stop = tensor, _paddle.function("shape")(tensor)[0]

    def has(self, index):
        return index < self.stop

    def item(self, index):
        return self.tensor[index]

    def next(self, index):
        return index + 1


def range_(function, *bounds):
    if function is range and any(is_traced(each) for each in bounds):
        return _Range(*bounds)
    return function(*bounds)


def _is_known_size(tensor):
    return tensor.ndim == 0 or isinstance(tensor.shape[0], int)


def for_(iterable, body, stops, get, put, names, attributes):
    """`body(item)` for each item until `stops()`."""
    if is_traced(iterable) and not _is_known_size(iterable):
        iterable = _Rows(iterable)
    if not isinstance(iterable, (_Range, _Rows)):
        for item in iterable:
            stopped = stops()
            if is_traced(stopped):
                if_(stopped, lambda: None, lambda item=item: body(item), get, put, names, attributes)
            elif stopped:
                break
            else:
                body(item)
        return
    index = [_tensor(iterable.start, "int64")]

    def test():
        return and_(lambda: not_(stops()), lambda: iterable.has(index[0]))

    def turn():
        at = index[0]
        body(iterable.item(at))
        index[0] = iterable.next(at)

    def put_all(values):
        index[0] = values[0]
        put(values[1:])

    while_(test, turn, lambda: [index[0], *get()], put_all, ["the index", *names], attributes)


def returned(is_set, value, always):
    """The result of a function whose returns became assignments."""
    if is_traced(is_set) and not always:
        raise _paddle.UsageError("the function returns on some ways only, and a tensor decides")
    return read(value) if is_traced(is_set) or is_set else None
