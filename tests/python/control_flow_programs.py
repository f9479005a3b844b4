"""With control_flow_state_programs.py 60 programs with decisions and loops by tensors, for this package or PyTorch (PROGRAMS_OF=torch): PROGRAMS has
(function, inputs that take different paths). A function takes one tensor; those in BREAKS do what cannot be compiled."""
import collections
import dataclasses
import functools
import os

TORCH = os.environ.get("PROGRAMS_OF") == "torch"
if TORCH:
    import torch as lib
    from torch.nn.functional import dropout, relu  # noqa: F401

    Module, optimizers = lib.nn.Module, lib.optim
    def zeros(*shape): return lib.zeros(shape)  # noqa: E704
    def cast(x, dtype): return x.to(getattr(lib, dtype))  # noqa: E704
    def leaf(data): return lib.nn.Parameter(lib.tensor(data))  # noqa: E704
    def adamw(parameters): return lib.optim.AdamW(parameters, lr=0.1, weight_decay=0.01)  # noqa: E704
    def clear(optimizer): optimizer.zero_grad()  # noqa: E704
    def bfloat16(): return lib.autocast("cpu", dtype=lib.bfloat16)  # noqa: E704
    def pad_end(x, count): return lib.nn.functional.pad(x, (0, count))  # noqa: E704
else:
    import paddle_toolchain as lib
    from paddle_toolchain.nn.functional import dropout, relu  # noqa: F401

    Module = lib.nn.Layer
    def zeros(*shape): return lib.zeros(list(shape))  # noqa: E704
    def cast(x, dtype): return x.astype(dtype)  # noqa: E704
    def leaf(data): return lib.nn.Parameter(data)  # noqa: E704
    def adamw(parameters): return lib.optimizer.AdamW(0.1, parameters=list(parameters))  # noqa: E704
    def clear(optimizer): optimizer.clear_grad()  # noqa: E704
    def bfloat16(): return lib.amp.auto_cast(dtype="bfloat16")  # noqa: E704
    def pad_end(x, count): return lib.nn.functional.pad(x, [0, count])  # noqa: E704

A, B, C = [1.0, 2.0, 3.0], [-1.0, -2.0, 0.5], [0.25, -8.0, 4.0]
ROWS = ([[1.0, 2.0], [3.0, 4.0], [-5.0, 0.5]], [[-1.0, -2.0], [3.0, -4.0], [0.5, 0.5]])
PROGRAMS, BREAKS = [], {}


def program(*inputs, breaks=None):
    """`breaks`: a part of the reason why the function cannot be compiled."""
    def add(function):
        PROGRAMS.append((function, inputs or (A, B, C)))
        if breaks:
            BREAKS[function.__name__] = breaks
        return function

    return add


# --- if ---


@program()
def sign_switch(x):
    if x.sum() > 0:
        y = x * 2
    else:
        y = -x
    return y


@program()
def nested_if(x):
    y = x
    if x.sum() > 0:
        if x.max() > 2.5:
            y = x + 10
        else:
            y = x + 20
    return y


@program()
def elif_chain(x):
    s = x.sum()
    if s > 5:
        return x + 1
    elif s > 1:
        return x + 2
    elif s > -1:
        return x + 3
    return x * 4


@program()
def dead_after(x):
    if x.sum() > 0:
        helper = x * 3
        y = helper + 1
    else:
        y = x
    return y


class Scaled(Module):
    def __init__(self):
        super().__init__()
        self.weight = leaf([1.0, 2.0, 3.0])

    def clipped(self, x):
        if x.abs().max() > 2.5:
            x = x / x.abs().max()
        return x

    def forward(self, x):
        return self.clipped(x) * self.weight


PROGRAMS.append((Scaled(), (A, B, C)))


class Mode(Module):
    def __init__(self):
        super().__init__()
        self.scale = zeros(1)

    def forward(self, x):
        positive = x.sum() > 0
        self.scale = x.max() * 2 if positive else x.min()
        return x * self.scale


PROGRAMS.append((Mode(), (A, B, C)))


# --- while ---


@program([9.0], [2.0])
def newton(x):
    y = x
    while (y * y - x).abs().sum() > 1e-3:
        y = (y + x / y) / 2
    return y


@program([6.0], [27.0], [1.0])
def collatz(n):
    steps = zeros(1)
    while n.sum() != 1:
        n = n / 2 if (n.sum() % 2) == 0 else 3 * n + 1
        steps = steps + 1
    return steps


@program([10.0], [50.0])
def fibonacci(limit):
    a, b = zeros(1), zeros(1) + 1
    while (b < limit).all():
        a, b = b, a + b
    return a, b


@program()
def bound_and_counter(x):
    i, s = 0, zeros(1)
    while i < 5 and x.max() * i < 6:
        s = s + x.sum()
        i += 1
    return s


@program([3.0], [5.0])
def nested_while(x):
    total, a = zeros(1), zeros(1)
    while (a < x).all():
        b = zeros(1)
        while (b < a).all():
            total, b = total + 1, b + 1
        a = a + 1
    return total


@program()
def while_in_if(x):
    y = x * 1
    if x.sum() > 0:
        while y.sum() < 20:
            y = y * 1.5
    return y


# --- for ---


@program([3.0], [6.0])
def over_range(x):
    n = cast(x.sum(), "int64")
    s = zeros(1)
    for i in range(n):
        s = s + x * i
    return s


@program(*ROWS)
def over_rows(x):
    s = x[0] * 0
    for row in x:
        s = s + row if row.sum() > 0 else s - row
    return s


@program(*ROWS)
def enumerate_rows(x):
    s = x[0] * 0
    for i, row in enumerate(x):
        s = s + row * i
    return s


@program(*ROWS)
def zip_rows(x):
    s = x[0].sum() * 0
    for a, b in zip(x, x * 2):
        if (a * b).sum() > 8:
            s = s + (a * b).sum()
    return s


class Layers(Module):
    def __init__(self):
        super().__init__()
        self.weights = [leaf([1.0, 0.5, 2.0]), leaf([-1.0, 1.0, 1.0])]
        self.first, self.second = self.weights

    def forward(self, x):
        for weight in (self.first, self.second, self.first):
            x = relu(x * weight) if x.sum() < 100 else x
        return x


PROGRAMS.append((Layers(), (A, B, C)))


@program(*ROWS, breaks="'found' is assigned on one way only")
def for_else(x):
    for row in x:
        if row.sum() < -4:
            found = row
            break
    else:
        found = x[0] * 0
    return found


# --- jumps ---


@program(*ROWS)
def break_out(x):
    s = x[0] * 0
    for row in x:
        if row.min() < 0:
            break
        s = s + row
    return s


@program(*ROWS)
def continue_over(x):
    s = x[0] * 0
    for row in x:
        if row.sum() < 0:
            continue
        s = s + row
    return s


@program(*ROWS)
def return_from_loop(x):
    for row in x:
        if row.sum() > 6:
            return row * 2
    return x[0]


@program(*ROWS)
def return_from_nested_loops(x):
    for i in range(3):
        for j in range(2):
            if x[i, j] > 2.5:
                return x[i] * (j + 1)
    return x[2]


@program(*ROWS)
def break_in_while_in_for(x):
    s = x[0].sum() * 0
    for row in x:
        v = row.abs().sum()
        while v > 1:
            v = v / 2
            if v < 1.6:
                break
        s = s + v
    return s


# --- expressions ---


@program()
def short_circuit(x):
    if x.sum() > 0 and x.max() < 10 or x.min() < -5:
        return x + 1
    return x - 1


@program()
def chained_comparison(x):
    return x * 2 if -1 < x.sum() < 10 else x


@program()
def conditional_expression(x):
    return x + (1 if x.sum() > 0 else -1)


@program()
def assertion(x):
    assert x.abs().max() < 100, "values are too large"
    return x * 2 if x.sum() > 0 else x


# --- containers ---


@program()
def dict_of_tensors(x):
    state = {"a": x, "b": x * 2}
    if x.sum() > 0:
        state["a"] = state["a"] + state["b"]
    return state["a"]


@program()
def list_in_a_fixed_loop(x):
    parts = []
    for i in range(3):
        parts.append(x * i if x.sum() > i else x)
    return parts[0] + parts[1] + parts[2]


@program()
def comprehension(x):
    return sum([v * v if v > 0 else v for v in x])


@program()
def nested_tuple(x):
    a = (x, (x + 1, x.sum())) if x.sum() > 0 else (-x, (x - 1, x.max()))
    return a[0] + a[1][0] * a[1][1]


@dataclasses.dataclass
class State:
    value: object
    steps: int = 0


@program()
def dataclass_state(x):
    state = State(x)
    for _ in range(3):
        state = State(state.value * 2 if state.value.sum() < 9 else state.value, state.steps + 1)
    return state.value + state.steps


Pair = collections.namedtuple("Pair", "a b")


@program()
def named_tuple_in_a_loop(x):
    pair = Pair(x, zeros(1))
    while pair.a.abs().sum() > 1:
        pair = Pair(pair.a / 2, pair.b + 1)
    return pair.a + pair.b


# --- calls ---

WEIGHT = leaf([1.0, 2.0, 3.0])


@program()
def closure_over_a_tensor(x):
    def scaled(y):
        return y * WEIGHT if x.sum() > 0 else y

    return scaled(x)


@program()
def nonlocal_counter(x):
    count = 0

    def step(y):
        nonlocal count
        count = count + 1
        return y * count if y.sum() > 0 else y

    return step(step(step(x)))


def doubled(function):
    @functools.wraps(function)
    def wrapper(*arguments, **named):
        return function(*arguments, **named) * 2

    return wrapper


@doubled
def if_positive(x):
    return x if x.sum() > 0 else -x


@program()
def decorated(x):
    return if_positive(x)


@program()
def lambda_in_map(x):
    return sum(map(lambda k: x * k if x.sum() > k else x, [0, 1, 2]))


def weighted(*values, scale=1, **more):
    total = values[0] * more["factor"]
    for value in values:
        total = total + value * scale
    return total


@program()
def star_and_keywords(x):
    return weighted(*[x, x + 1], **{"scale": 3, "factor": 2}) if x.sum() > 0 else weighted(x, factor=1)


class Base(Module):
    def __init__(self):
        super().__init__()
        self.scale = leaf([2.0, 3.0, 4.0])

    def forward(self, x):
        return x * self.scale


class Derived(Base):
    def forward(self, x):
        y = super().forward(x)
        return y + self.scale if y.sum() > 0 else y


PROGRAMS.append((Derived(), (A, B, C)))


def power(x, n):
    return x if n == 0 else power(x * 2 if x.sum() > 0 else x - 1, n - 1)


@program()
def recursion(x):
    return power(x, 4)


# --- shapes ---


@program(*ROWS)
def reshape_from_shape(x):
    rows, columns = x.shape
    y = x.reshape([columns, rows])
    return y if y[0].sum() > 3 else -y


@program([1.0, 2.0, 3.0], [1.0, -2.0, 3.0, 4.0, 5.0])
def pad_to_a_multiple(x):
    y = pad_end(x, -x.shape[0] % 4)
    return y if y.min() >= 0 else y.abs()


@program([1.0, 2.0], [1.0, 2.0, -3.0], [4.0] * 5)
def other_sizes(x):
    return x * x.shape[0] if x.sum() > 0 else x * x.sum()


@program()
def boolean_mask(x):
    y = x[x > 0]
    return y.sum() if x.sum() > 0 else y.sum() * 2


@program([1.0, 2.0, 3.0, 4.0], [1.0, -9.0, 3.0])
def loop_over_blocks(x):
    total = x[0] * 0
    for i in range(x.shape[0] // 2):
        block = x[2 * i:2 * i + 2].sum()
        total = total + block if block > 0 else total - 1
    return total


# --- in place ---


@program()
def writes_in_a_loop(x):
    y = zeros(3)
    for i in range(3):
        y[i] = x[i] * (i + 1) if x[i] > 0 else x[i] * 0
    return y


@program()
def masked_assignment(x):
    y = x + 0
    y[y < 0] = 0.0
    return y * 2 if y.sum() > 3 else y


@program()
def augmented_alias(x):
    y = x + 1
    z = y
    z += 1
    return y if z.sum() > 3 else y + z


@program(breaks="the size of a result that has a gradient depends on values")
def slices_with_steps(x):
    y = x * 1
    y[::2] = x[1]
    return y if y.sum() > 0 else y[::2]
