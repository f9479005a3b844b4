"""Called by static.sh. Programs that to_static compiles give what Python gives, gradients and writes included; what it
cannot compile runs as Python, and it says why."""
import collections
import contextlib
import copy
import dataclasses
import functools

import paddle_toolchain as paddle
from paddle_toolchain import nn
from paddle_toolchain.nn import functional as F
from programs import A, B, C, PROGRAMS, is_close, values

MORE = []


def program(*inputs, spec="float32[n]"):
    def add(function):
        MORE.append((function, inputs or ([A], [B], [C]), spec))
        return function

    return add


# --- attributes, state, closures ---


class Running(nn.Layer):
    """A running mean, as an attribute that each call replaces."""

    def __init__(self):
        super().__init__()
        self.register_buffer("mean", paddle.zeros([]))
        self.seen = paddle.zeros([])
        self.decay = 0.9

    def forward(self, x):
        self.mean = self.decay * self.mean + (1 - self.decay) * x.mean()
        self.seen = self.seen + 1
        return x - self.mean


class Norm(nn.Layer):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 3)
        self.norm = nn.BatchNorm1D(3)

    def forward(self, x):
        return self.norm(self.linear(x.reshape([1, -1]).expand([4, 3]))).sum(0)


class Base(nn.Layer):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter([2.0, 3.0, 4.0])

    def forward(self, x):
        return x * self.scale


class Derived(Base):
    @property
    def twice(self):
        return self.scale * 2

    def forward(self, x):
        y = super().forward(x)
        return y + self.twice if y.sum() > 0 else y


class Stack(nn.Layer):
    def __init__(self):
        super().__init__()
        self.layers = nn.LayerList([nn.Linear(3, 3) for _ in range(3)])

    def forward(self, x):
        for i, layer in enumerate(self.layers):
            x = layer(x) if i % 2 == 0 else F.relu(layer(x))
        return x


paddle.seed(3)
for layer in (Running(), Norm(), Derived(), Stack()):
    MORE.append((layer, ([A], [B], [C]), "float32[3]"))

WEIGHT = paddle.to_tensor([1.0, 2.0, 3.0])
TABLE = {"a": 2.0, "b": [1, 2, WEIGHT]}


@program(spec="float32[3]")
def closure_over_a_tensor(x):
    return x * WEIGHT + TABLE["a"] * TABLE["b"][2] + TABLE["b"][0]


@program()
def lambda_in_map(x):
    return sum(map(lambda k: x * k, [1, 2, 3]))


double = lambda v: v * 2 if v.sum() > 0 else v  # noqa: E731


@program()
def outer_lambda(x):
    return double(x)


@dataclasses.dataclass
class State:
    value: object
    steps: int = 0


@program()
def dataclass_state(x):
    state = State(x)
    for _ in range(3):
        state = State(state.value * 2, state.steps + 1)
    return state.value + state.steps


class Counter:
    def __init__(self, start):
        self.count = start

    def up(self, by):
        self.count = self.count + by
        return self.count


@program()
def object_of_the_function(x):
    counter = Counter(x)
    counter.up(1)
    return counter.up(x.sum())


# --- shapes ---


@program(([1.0, 2.0, 3.0],), ([1.0, 2.0, 3.0, 4.0, 5.0],), ([1.0] * 8,))
def pad_to_a_multiple(x):
    return F.pad(x, [0, -x.shape[0] % 4]) if x.shape[0] % 4 else x


@program(([[1.0, -2.0], [3.0, 4.0]],), ([[1.0, -2.0, 0.5]] * 5,), ([[0.5]],), spec="float32[m, n]")
def reshape_from_shape(x):
    rows, columns = x.shape
    return x.reshape([columns, rows]) + x.T


@program()
def mask(x):
    return x[x > 0].sum() + paddle.zeros([1])


@program()
def half_of_the_rows(x):
    total = x[0] * 0
    for i in range(x.shape[0] // 2 + 1):
        total = total + x[i]
    return total


# --- in place ---


@program()
def writes_in_a_loop(x):
    y = paddle.zeros([3])
    for i in range(3):
        y[i] = x[i] * (i + 1)
    return y


@program()
def masked_assignment(x):
    y = x + 0
    y[y < 0] = 0.0
    return y


@program()
def augmented_alias(x):
    y = x + 1
    z = y
    z += 1
    y -= 3
    return y, z


@program()
def slices_with_steps(x):
    y = x.flip(0)
    y[::2] = x[0]
    return y[::2] + y[1]


# --- training ---


@program()
def reads_a_gradient(x):
    w = paddle.to_tensor([1.0, 1.0, 1.0], stop_gradient=False)
    return paddle.grad((w * x).sum() ** 2, [w])[0] if False else w * x


@program()
def dropped(x):
    return F.dropout(x, 0.5, training=True)


@program()
def amp_region(x):
    with paddle.amp.auto_cast(dtype="bfloat16"):
        y = x.reshape([1, 3]) @ x.reshape([3, 1])
    return y.astype("float32")


@program()
def without_gradient(x):
    with paddle.no_grad():
        limit = x.abs().max() * 2
    return x * limit


# --- exceptions and contexts ---


@contextlib.contextmanager
def shifted(values):
    values.append(1)
    yield values
    values.append(2)


@program()
def own_context(x):
    with shifted([]) as found:
        x = x * 2
    return x + len(found)


@program()
def try_finally(x):
    try:
        y = x * 2
    finally:
        x = x + 1
    return y + x


@program()
def caught(x):
    try:
        y = {}["missing"]
    except KeyError:
        y = x
    return y


@program(([5.0, 1.0, 4.0],), ([0.1, 0.2, 0.3],))
def beam_step(x):
    scores, indices = paddle.topk(x, 2)
    return paddle.gather(x, indices) + scores


Pair = collections.namedtuple("Pair", "a b")


@program()
def results_of_many_kinds(x):
    return {"pair": Pair(x, [x + 1, 2]), "name": "n", "none": None}["pair"].b[0]


@program()
def partial_and_star(x):
    add = functools.partial(lambda a, b, *more, scale=1: (a + b + sum(more)) * scale, x, scale=2)
    return add(x, 1, 2)


# Each program, compiled and as Python, on copies of the same state.


def gradients_of(function, x):
    """The outputs, and the gradients of the sum of those that have one, by the input and by parameters."""
    outputs = values(function(x))
    total = [out.sum() for out in outputs if not out.stop_gradient]
    if not total:
        return outputs, []
    leaves = [x, *(function.parameters() if isinstance(function, nn.Layer) else ())]
    return outputs, paddle.grad(sum(total), [leaf for leaf in leaves if not leaf.stop_gradient], allow_unused=True)


def compare(function, inputs, spec):
    name = getattr(function, "__name__", type(function).__name__)
    plain = copy.deepcopy(function) if isinstance(function, nn.Layer) else function
    compiled = paddle.jit.to_static(function)
    static = compiled.forward if isinstance(compiled, nn.Layer) else compiled
    dtype = spec.partition("[")[0]
    for recorded in (False, True):
        for (data,) in (*inputs, *inputs):
            x = paddle.to_tensor(data, dtype, stop_gradient=not (recorded and dtype == "float32"))
            before = paddle.get_rng_state()
            try:
                wanted, wanted_gradients = gradients_of(plain, x)
            except paddle.Error as error:
                raise SystemExit(f"{name}: the program itself fails: {error}") from error
            paddle.set_rng_state(before)
            found, gradients = gradients_of(compiled, x)
            assert len(wanted) == len(found), name
            for a, b in zip([*wanted, *wanted_gradients], [*found, *gradients]):
                assert (a is None) == (b is None), (name, recorded, data, a, b)
                if isinstance(a, paddle.Tensor):
                    assert a.dtype == b.dtype and is_close(a, b), (name, recorded, data, a, b)
                else:
                    assert a == b, (name, a, b)
    return static


full, broken = 0, []
programs = [*PROGRAMS, *MORE]
for function, inputs, spec in programs:
    static = compare(function, inputs, spec)
    if static.reason is None:
        full += 1
    else:
        broken.append((static.__name__, str(static.reason)))
print(f"{len(programs)} programs, {full} compiled")
for name, reason in broken:
    print(f"  {name}: {reason}")
assert len(programs) >= 60 and full >= len(programs) - 4, broken


# Reads besides the arguments are checked at each call.


def static(function):
    return paddle.jit.to_static(function)


def same(function, *arguments, compiled=True):
    """Calls a function compiled and as Python; both must give the same."""
    plain, found = function._jit_inner(*arguments), function(*arguments)
    assert is_close(plain, found) if isinstance(plain, paddle.Tensor) else plain == found, (plain, found)
    assert (function.reason is None) == compiled, function.reason
    return found


class Settings:
    factor = 2

    def __init__(self):
        self.shift, self.list, self.table = 1, [1, 2], {"a": paddle.to_tensor(3.0)}


settings = Settings()
LIST, NUMBER = [1.0, 2.0], 5
x = paddle.to_tensor(A)


@static
def reads(x, scale=1, *more, flag=None):
    y = x * NUMBER + settings.shift + sum(LIST) + settings.list[1] + settings.table["a"] * settings.factor
    return y * scale + len(more) + (0 if flag is None else flag)


def change(what):
    exec(what, globals())
    before = reads.traces
    same(reads, x)
    assert reads.traces <= before + 1, what
    return reads.traces - before


assert change("pass") == 1 and change("pass") == 0
for each in ("NUMBER = 6", "NUMBER = 6.0", "settings.shift = 2", "LIST[0] = 7.0", "LIST.append(1.0)", "settings.list = [4, 5]",
             "settings.table['b'] = 0", "Settings.factor = 3", "settings.factor = 4", "LIST = (1.0,)"):
    assert change(each) == 1, each
assert change("settings.table['a'] = paddle.to_tensor(9.0)") == 0  # a tensor is read at each call
assert change("settings = Settings()") == 1
for arguments in ((x, 2), (x, 2.0), (x, 2, 1), (x.astype("float64"),), (paddle.to_tensor(A, stop_gradient=False),)):
    same(reads, *arguments)
assert is_close(reads(x, flag=True), reads._jit_inner(x, flag=True))
assert len(reads.entries) == 8 and reads.reason is None

net = paddle.jit.to_static(nn.Sequential(nn.Linear(3, 3), nn.Dropout(0.5), nn.BatchNorm1D(3)))
batch = paddle.randn([4, 3])
first = net(batch)
net.eval()
assert is_close(net(batch), net.forward._jit_inner(batch)) and not is_close(net(batch), first)
traces = net.forward.traces
net[0].weight.set_value(net[0].weight * 2)
assert is_close(net(batch), net.forward._jit_inner(batch)) and net.forward.traces == traces  # values are not constants
net[0].weight = nn.Parameter(paddle.ones([3, 3]))
assert is_close(net(batch), net.forward._jit_inner(batch)) and net.forward.traces == traces + 1
hook = net[0].register_forward_post_hook(lambda layer, inputs, outputs: outputs + 1)
assert is_close(net(batch), net.forward._jit_inner(batch)) and net.forward.traces == traces + 2
hook.remove()
assert is_close(net(batch), net.forward._jit_inner(batch)) and net.forward.reason is None

# Sizes that differ are symbols from the second trace on; code that needs them is compiled for each.


@static
def any_rows(x):
    return x.reshape([-1]).sum() * x.shape[0]


@static
def needs_rows(x):
    return x * 2 if x.shape[0] > 3 else x


for rows in (2, 3, 4, 5, 6, 1, 7):
    same(any_rows, paddle.ones([rows, 2]))
    same(needs_rows, paddle.ones([rows, 2]))
assert any_rows.traces == 3 and needs_rows.traces == 7, (any_rows.traces, needs_rows.traces)

# Writes: arguments and globals that are written in place, gradients, second derivatives.

store = paddle.zeros([3])


@static
def writes(x):
    store.add_(x)
    x[0] = 10.0
    return x, store * 2


for _ in range(3):
    given = paddle.to_tensor(A)
    out, twice = writes(given)
    assert out is given and given.tolist() == [10, 2, 3]
assert store.tolist() == [3, 6, 9] and twice.tolist() == [6, 12, 18] and writes.reason is None

# Views are inputs; a function that writes a tensor of which it uses a view runs as Python.

table = paddle.to_tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
doubled, added = static(lambda x: x * 2), static(lambda x, y: x.add_(y).sum())
assert doubled(table[1:]).tolist() == [[6, 8], [10, 12]] and doubled(table.T[0]).tolist() == [2, 6, 10]
assert added(table[0], paddle.ones([2])).item() == 5 and table[0].tolist() == [2, 3] and added.reason is None
assert added(table[1], table[1]).item() == 14 and table[1].tolist() == [6, 8]
assert "of which a view is used" in str(added.reason) or added.reason is None

w = paddle.to_tensor([1.0, 2.0], stop_gradient=False)
cubed = static(lambda w: (w**3).sum())
cubed(w).backward()
cubed(w).backward()
assert w.grad.tolist() == [6, 24]
first = paddle.grad(cubed(w), w, create_graph=True)[0]
assert is_close(paddle.grad(first.sum(), w)[0], paddle.to_tensor([6.0, 12.0]))

# A whole step has the bits of Python's, with a schedule of the rate, dropout and the statistics of batch norm.


def step_of(net, optimizer):
    def step(x, y):
        loss = F.mse_loss(net(x), y)
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        return loss

    return step


def trained(wrap, accumulate=1):
    paddle.seed(11)
    net = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1D(8), nn.ReLU(), nn.Dropout(0.3), nn.Linear(8, 2))
    rate = paddle.optimizer.lr.StepDecay(0.1, 2)
    optimizer = paddle.optimizer.AdamW(rate, parameters=net.parameters(), grad_clip=nn.ClipGradByGlobalNorm(1.0))
    if accumulate > 1:
        step = wrap(lambda x, y: F.mse_loss(net(x), y).backward())
    else:
        step = wrap(step_of(net, optimizer))
    for i in range(6):
        step(paddle.randn([16, 4]), paddle.ones([16, 2]))
        if accumulate > 1 and i % accumulate == accumulate - 1:
            optimizer.step()
            optimizer.clear_grad()
        rate.step()
    return step, {name: value.tolist() for name, value in net.state_dict().items()}, optimizer


for accumulate in (3, 1):
    step, compiled, optimizer = trained(functools.partial(paddle.jit.to_static, exact=True), accumulate)
    assert step.reason is None and step.traces == (1 if accumulate == 1 else 2), (step.reason, step.traces)
    assert compiled == trained(lambda f: f, accumulate)[1]
    assert int(optimizer.state_dict()["updates"]) == 6 // accumulate

# Other functions run as Python, once for each call, and the reason has its line.

log, count = [], 0


class Changing(nn.Layer):
    def __init__(self):
        super().__init__()
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        return x * self.calls


def appends(x):
    log.append(float(x.sum()))
    return x


def appends_first(x):
    log.append(1)
    return x + 1


def counts(x):
    global count
    count += 1
    return x * count


def prints(x):
    print("", end="")
    return x + 1


def draws(x):
    import random
    return x * random.random() * 0


def as_number(x):
    return x * int(x.sum())


def reads_clock(x):
    import time
    return x + min(time.time(), 0)


def sets_subscript(x):
    log[0] = 5
    return x + 1


def augments(x):
    global_log = log
    global_log += [1]
    return x + 1


def uses_iterator(x):
    return x + next(ITERATOR)


def fails_for_tensor(x):
    return x.no_such_method()


def outer_closure():
    calls = 0

    def inner(x):
        nonlocal calls
        calls += 1
        return x + calls

    return inner


ITERATOR = iter([1, 2, 3, 4])
for function, line in ((appends_first, "log.append(1)"), (counts, "count"), (prints, "print"), (draws, "random.random()"),
                       (as_number, "int(x.sum())"), (reads_clock, "time.time()"), (sets_subscript, "log[0] = 5"),
                       (augments, "global_log += [1]"), (uses_iterator, "ITERATOR"), (outer_closure(), "calls"),
                       (appends, "log.append")):
    log.clear()
    log.append(0)
    count, ITERATOR = 0, iter([1, 2, 3, 4])
    compiled = static(function)
    for _ in range(2):
        compiled(x)
    assert compiled.reason is not None and line in str(compiled.reason), (function.__name__, compiled.reason)
    assert len(log) == (3 if function in (appends, appends_first, augments) else 1), (function.__name__, log)
    assert count == (2 if function is counts else 0) and (function is not uses_iterator or next(ITERATOR) == 3)
changing = static(Changing())
assert [changing(x).tolist() for _ in range(3)] == [[1, 2, 3], [2, 4, 6], [3, 6, 9]] and changing.calls == 3
assert "changes with each call" in str(changing.forward.reason)
for function, kind in ((static(as_number), None), (paddle.jit.to_static(as_number, full_graph=True), paddle.jit.JitError),
                       (static(fails_for_tensor), AttributeError)):
    try:
        function(x)
        assert kind is None
    except Exception as error:
        assert type(error) is kind, (kind, error)
        assert kind is AttributeError or "int(x.sum())" in str(error)

# Descriptions of compiled functions, and comparisons with Python.


class Skipped(nn.Layer):
    def forward(self, x):
        return helper(x) + 1


@paddle.jit.not_to_static
def helper(x):
    return x * 2


skipped = static(Skipped())
assert skipped(x).tolist() == [3, 5, 7] and "helper is called" in str(skipped.forward.reason)
explanation = paddle.jit.explain(reads, x)
assert explanation.is_compiled and explanation.operations > 0 and "the global 'NUMBER' is not" in str(explanation)
assert "axis 0" in str(paddle.jit.explain(any_rows, paddle.ones([9, 2])))
explanation = paddle.jit.explain(as_number, x)
assert not explanation.is_compiled and "int(x.sum())" in str(explanation) and "instead: keep the value a tensor" in str(explanation)
for function, arguments in ((reads, (x,)), (any_rows, (paddle.ones([4, 2]),)), (writes, (paddle.to_tensor(A),)),
                            (Running(), (x,)), (Norm(), (x,)), (cubed, (w,))):
    paddle.jit.check(function, *arguments)
for function, part in ((as_number, "int(x.sum())"), (step, None)):
    try:
        paddle.jit.check(function, *((x,) if part else (paddle.randn([16, 4]), paddle.ones([16, 2]))))
        raise SystemExit(f"jit.check of {part} passed")
    except paddle.jit.JitError as error:
        assert part and part in str(error)
    except paddle.UsageError as error:
        assert part is None and "cannot be undone" in str(error), error

# Functions of functions, methods, threads, and models of compiled functions.


class Methods:
    def __init__(self, k):
        self.k = k

    @paddle.jit.to_static
    def times(self, x):
        return x * self.k


two, three = Methods(2), Methods(3)
assert two.times(x).tolist() == [2, 4, 6] and three.times(x).tolist() == [3, 6, 9] and two.times.traces == 1
outer = static(lambda x: reads(x) + two.times(x))
same(outer, x)

import threading  # noqa: E402

results = []
threads = [threading.Thread(target=lambda: results.extend(is_close(any_rows(paddle.ones([k, 300])), paddle.to_tensor(300.0 * k * k))
                                                          for k in range(2, 40))) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert len(results) == 4 * 38 and all(results)
