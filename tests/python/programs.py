"""Programs with decisions and loops by tensors, each with inputs that take different paths: (function, inputs, type)."""
import collections
import functools

import paddle_toolchain as paddle
from paddle_toolchain import nn

PROGRAMS = []
A, B, C = [1.0, 2.0, 3.0], [-1.0, -2.0, 0.5], [0.25, -8.0, 4.0]


def program(*inputs, spec="float32[n]"):
    def add(function):
        PROGRAMS.append((function, inputs or ([A], [B], [C]), spec))
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
    else:
        return x + 4


@program()
def dead_after(x):
    if x.sum() > 0:
        helper = x * 3
        y = helper + 1
    else:
        y = x
    return y


@program()
def numbers_on_both_sides(x):
    k = 2
    if x.sum() > 0:
        k = 3
        scale = 0.5
    else:
        scale = 2
    return x * k * scale


@program()
def python_decides(x, flag=True):
    if flag and x.ndim == 1:
        return x + 1
    return x - 1


@program()
def early_returns(x):
    if x.min() > 0:
        return x
    if x.max() < 0:
        return -x
    return x * 0


class Gate(nn.Layer):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 3)
        self.limit = 1.0

    def small(self, x):
        if x.abs().max() > self.limit:
            x = x / x.abs().max()
        return x

    def forward(self, x):
        y = self.linear(self.small(x))
        return y if y.sum() > 0 else super().__call__.__self__.linear(-x)


paddle.seed(5)
PROGRAMS.append((Gate(), ([A], [B], [C]), "float32[3]"))
PROGRAMS.append((nn.Sequential(Gate(), nn.ReLU(), Gate()), ([A], [B], [C]), "float32[3]"))


# --- while ---


@program(([9.0],), ([2.0],), spec="float32[1]")
def newton(x):
    y = x
    while (y * y - x).abs().sum() > 1e-4:
        y = (y + x / y) / 2
    return y


@program((6,), (27,), (1,), spec="int64[]")
def collatz(n):
    steps = 0
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
    return steps + paddle.zeros([], "int64")


@program((10,), (50,), spec="int64[]")
def fibonacci(limit):
    a, b = paddle.zeros([], "int64"), paddle.ones([], "int64")
    while b < limit:
        a, b = b, a + b
    return a, b


@program()
def bound_and_counter(x):
    i, s = 0, 0.0
    while i < 5 and x.max() * i < 6:
        s = s + x.sum()
        i += 1
    return s * paddle.ones([1]), paddle.ones([1]) * i


@program((3,), (0,), spec="int64[]")
def nested_while(n):
    total, i = paddle.zeros([], "int64"), 0
    while i < n:
        j = 0
        while j <= i:
            total = total + j
            j += 1
        i += 1
    return total


@program()
def while_inside_if(x):
    if x.sum() > 0:
        while x.max() > 1:
            x = x / 2
    return x


# --- for ---


@program((4,), (0,), (7,), spec="int64[]")
def over_range(n):
    s = paddle.zeros([], "int64")
    for i in range(n):
        s = s + i * i
    return s


@program((9,), (2,), spec="int64[]")
def range_with_step(n):
    s = paddle.zeros([], "int64")
    for i in range(1, n, 3):
        s = s * 10 + i
    return s


@program(([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]],), ([[7.0, 8.0]],), spec="float32[rows, 2]")
def over_rows(x):
    s = paddle.zeros([2])
    for row in x:
        s = s * 0.5 + row
    return s


@program(([[1.0, 2.0], [3.0, 4.0]],), spec="float32[2, 2]")
def known_rows(x):
    out = []
    for i, row in enumerate(x):
        out.append(row * (i + 1))
    return paddle.stack(out)


@program()
def list_of_layers(x):
    for function in (paddle.exp, paddle.tanh, lambda v: v * 2):
        x = function(x)
    return x


@program((35,), (13,), (12,), spec="int64[]")
def for_else(n):
    found = n * 0
    for i in range(2, 10):
        if n % i == 0:
            found = found + i
            break
    else:
        found = found - 1
    return found


# --- jumps ---


@program()
def break_in_while(x):
    i = 0
    while i < 10:
        x = x * 2
        if x.abs().max() > 20:
            break
        i += 1
    return x, paddle.ones([1]) * i


@program((10,), (3,), spec="int64[]")
def continue_in_for(n):
    s = paddle.zeros([], "int64")
    for i in range(n):
        if i % 3 == 0:
            continue
        s = s + i
    return s


@program((10,), (100,), spec="int64[]")
def return_from_loop(n):
    i = paddle.zeros([], "int64")
    while i < 50:
        if i * i >= n:
            return i
        i = i + 1
    return -i


@program((6,), (7,), spec="int64[]")
def return_from_nested_loops(n):
    for i in range(1, 5):
        for j in range(1, 5):
            if i * j == n:
                return n * 0 + 10 * i + j
    return n * 0


@program((3,), (5,), spec="int64[]")
def break_inside_for(n):
    s = paddle.zeros([], "int64")
    for i in range(6):
        while True:
            s = s + 1
            if s % n == 0:
                break
        if s > 12:
            break
    return s


# --- conditions ---


@program()
def short_circuit(x):
    if x.sum() > 0 and x.max() < 2.5 or x.min() < -5:
        return x + 1
    return x + 2


@program()
def chained_comparison(x):
    return x * 2 if 0 < x.sum() <= 6 else x


@program()
def negation(x):
    if not x.sum() > 0 and not (x == 4).any():
        return x - 1
    return x


# --- containers ---


@program()
def dict_of_tensors(x):
    state = {"a": x, "b": x * 2}
    if x.sum() > 0:
        state["a"] = state["a"] + state["b"]
    return {"first": state["a"], "second": state["b"]}


@program()
def nested_results(x):
    pair = (x, [x + 1, x + 2])
    if x.max() > 1:
        pair = (pair[0] * 2, [pair[1][1], pair[1][0]])
    return pair[0], pair[1][0], pair[1][1]


Carry = collections.namedtuple("Carry", "value count")


@program()
def named_tuple(x):
    carry = Carry(x, 0)
    while carry.value.abs().max() > 1:
        carry = Carry(carry.value / 2, carry.count + 1)
    return carry.value, carry.count + paddle.zeros([1])


@program()
def list_in_a_loop(x):
    parts = [x * k for k in range(3)]
    while parts[2].abs().sum() < 50:
        parts[2] = parts[2] + parts[2]
    return parts[0] + parts[1] + parts[2]


# --- calls ---


def scaled(x, factor=2, *more, offset=0):
    if x.mean() > 0:
        x = x * factor
    return x + offset + len(more)


@program()
def keyword_arguments(x):
    return scaled(x, 3, 1, 1, offset=0.5) + scaled(*[x], **{"factor": 0})


@program()
def closure_and_nonlocal(x):
    calls = 0
    limit = x.abs().sum()

    def step(v):
        nonlocal calls
        calls += 1
        if v.abs().sum() < limit * 3:
            v = v * 2
        return v

    return step(step(step(x))) + calls


def doubling(function):
    @functools.wraps(function)
    def wrapper(*arguments):
        return function(*arguments) * 2

    return wrapper


@doubling
def decorated_part(x):
    if x.sum() > 0:
        return x
    return x + 100


@program()
def decorator(x):
    return decorated_part(x)


@program()
def partial_function(x):
    return functools.partial(scaled, factor=5)(x)


def power(x, n):
    return x if n == 1 else x * power(x, n - 1)


@program()
def recursion_on_numbers(x):
    if x.sum() > 0:
        return power(x, 3)
    return power(x, 2)


# --- shapes and steps ---


@program(([1.0, 2.0, 3.0, 4.0],), ([1.0, 2.0, 3.0, 4.0, 5.0, 6.0],))
def loop_over_a_size(x):
    n = x.shape[0]
    y = x.reshape([n // 2, 2])
    if y.sum() > 15:
        y = y + 1
    return y


@program(([5.0, 1.0, 4.0],), ([0.1, 0.2, 0.3],), spec="float32[3]")
def greedy_steps(x):
    chosen = paddle.zeros([], "int64")
    steps = 0
    while steps < 4 and chosen != 2:
        chosen = (x * (steps + 1)).argmax() + steps
        x = x.flip(0)
        steps += 1
    return chosen, steps + paddle.zeros([], "int64")


def values(result):
    if isinstance(result, dict):
        return list(result.values())
    return list(result) if isinstance(result, (tuple, list)) else [result]


def is_close(a, b, tolerance=1e-5):
    """Whether two tensors have one shape and nearly equal elements."""
    return a.shape == b.shape and all(
        abs(p - q) <= tolerance * max(1, abs(p)) for p, q in zip(a.reshape([-1]).tolist(), b.reshape([-1]).tolist()))
