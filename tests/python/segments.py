"""Called by segments.sh: functions that to_static runs as Python compute in compiled segments, with the results,
gradients and effects of Python."""
import threading

import paddle_toolchain as paddle
from paddle_toolchain import nn
from paddle_toolchain.nn import functional as F

A, B = [1.0, -2.0, 3.0], [0.5, 4.0, -1.0]


def close(a, b):
    a, b = (each.detach().reshape([-1]).tolist() for each in (a, b))
    return len(a) == len(b) and all(abs(p - q) <= 1e-5 * max(1, abs(p)) for p, q in zip(a, b))


def check(function, *data, segments=1, calls=4):
    """Calls it compiled and as Python on the same data, with and without gradients."""
    static = paddle.jit.to_static(function)
    for i in range(calls):
        for recorded in (False, True):
            for values in data:
                x, y = (paddle.to_tensor(values, stop_gradient=not recorded) for _ in range(2))
                state = paddle.get_rng_state()
                wanted = function(x)
                paddle.set_rng_state(state)
                found = static(y)
                assert close(wanted, found) and wanted.dtype == found.dtype, (function.__name__, i, wanted, found)
                assert wanted.stop_gradient == found.stop_gradient, function.__name__
                if recorded and not wanted.stop_gradient:
                    wanted.sum().backward()
                    found.sum().backward()
                    assert (x.grad is None) == (y.grad is None), function.__name__
                    assert x.grad is None or close(x.grad, y.grad), (function.__name__, x.grad, y.grad)
    assert static.reason is not None, function.__name__
    assert len(static.segments.describe()) >= segments, (function.__name__, static.segments.describe())
    return static


def value_in_the_middle(x):
    y = (x * 2 + 1).tanh() * x
    scale = 2 if float(y.sum()) > 0 else 3
    return (y * scale).exp() - x


def prints(x):
    z = x.abs() + 1
    print(end="")
    return z.log() * z


def without_gradient(x):
    with paddle.no_grad():
        limit = (x * 2).max()
    float(limit)
    return x * limit + x.detach()


def random_numbers(x):
    y = F.dropout(x * 3, 0.5, training=True)
    float(y.sum())
    return y + paddle.randn([3])


def in_place(x):
    y = x * 1
    y[0] = 5.0
    y.add_(paddle.ones([3]))
    z = y[1:]
    float(z.sum())
    y[1] = 7.0
    return z * y[:2]


def mixed(x):
    with paddle.amp.auto_cast():
        y = x.reshape([1, 3]) @ x.reshape([3, 1])
    float(y.astype("float32"))
    return (y * 2).astype("float32")


def run_time_sizes(x):
    y = x[x > 0]
    float(y.sum())
    return y.sum() + (x * x).mean()


def second_order(x):
    w = paddle.to_tensor(x.tolist(), stop_gradient=False)
    first = paddle.grad(((w ** 3) * 2).sum(), w, create_graph=True)[0]
    return paddle.grad(first.sum(), w)[0] + x


def integers(x):
    n = x.astype("int64") + 1
    int(n.sum())
    return (n // 2 * 3).astype("float32") / 2


def both_branches_of_python(x):
    total = x * 0
    for row in (x * 2).tolist():
        total = total + row if row > 0 else total - x
    return total


for each in (value_in_the_middle, prints, without_gradient, random_numbers, in_place, mixed, run_time_sizes, second_order,
             integers):
    check(each, A, B)
check(both_branches_of_python, A, B, segments=2)

# A training step with a value in the middle has the bits of Python's.


def trained(wrap):
    paddle.seed(3)
    net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Dropout(0.2), nn.Linear(8, 2))
    optimizer = paddle.optimizer.AdamW(0.05, parameters=net.parameters())
    seen = []

    def step(x):
        loss = (net(x) ** 2).mean()
        seen.append(loss.item())
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        return loss

    step = wrap(step)
    for _ in range(6):
        step(paddle.randn([8, 4]))
    return step, seen, [p.tolist() for p in net.parameters()]


step, seen, compiled = trained(lambda f: paddle.jit.to_static(f, exact=True))
_, wanted, plain = trained(lambda f: f)
assert seen == wanted and compiled == plain and step.segments.describe(), step.segments.describe()

# Errors come at the call that makes them, or with its place where a value decides.


@paddle.jit.to_static
def wrong_sizes(x):
    float(x.sum())
    return x @ paddle.zeros([7, 2])


@paddle.jit.to_static
def wrong_index(x):
    float(x.sum())
    y = paddle.gather(x, paddle.to_tensor([1, 9])) * 2
    return y.tolist()


for function, part in ((wrong_sizes, "matmul"), (wrong_index, "9")):
    for _ in range(4):
        try:
            function(paddle.to_tensor(A))
            raise SystemExit("an error is missing")
        except (paddle.Error, IndexError) as error:
            assert part in str(error), error
assert paddle.ones([2]).sum().item() == 2  # calls compute at once again

# Memory of others is read when Python reads it.

import array  # noqa: E402

memory = array.array("f", [1.0, 2.0])
shared = paddle.from_numpy(memory)


@paddle.jit.to_static
def writes_memory(x):
    float(x.sum())
    memory[0] = 1.0
    y = shared * 2
    memory[0] = 50.0
    return y


for _ in range(4):
    assert writes_memory(paddle.to_tensor(A)).tolist() == [2, 4]

# Values may be used by other threads, and functions call each other.

found = []


@paddle.jit.to_static
def hands_over(x):
    y = x * 3
    thread = threading.Thread(target=lambda: found.append((y + 1).tolist()))
    thread.start()
    thread.join()
    return y - 1


@paddle.jit.to_static
def outer(x):
    return hands_over(x) + float((x * 2).sum())


for i in range(4):
    assert outer(paddle.to_tensor([float(i)])).tolist() == [3.0 * i - 1 + 2 * i] and found[-1] == [3.0 * i + 1]


@paddle.jit.to_static
def many_threads(x):
    y = (x * 2 + 1).sum()
    return (x * float(y)).sum()


results = []


def work(k):
    for _ in range(30):
        x = paddle.full([500], float(k))
        results.append(abs(many_threads(x).item() - 500 * k * (500 * (2 * k + 1))) <= 1e-5 * 500 * 500 * 3 * k * k)


threads = [threading.Thread(target=work, args=(k,)) for k in (1, 2, 3, 4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert len(results) == 120 and all(results)

# A function whose calls never repeat computes at once after a while.


@paddle.jit.to_static
def never_the_same(x, k):
    y = x
    for i in range(60):
        y = y * (k + i)
        y = y / (k + i)
    return y + float(x.sum()) * 0


for k in range(1, 60):
    assert close(never_the_same(paddle.to_tensor(A), k), paddle.to_tensor(A))
