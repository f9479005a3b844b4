"""Called by hooks.sh."""
import gc
import math
import sys

import paddle_toolchain as paddle
from paddle_toolchain.autograd import PyLayer


def raises(kind, call, part):
    try:
        call()
    except kind as error:
        assert part in str(error), error
        return
    raise SystemExit(f"{kind.__name__} with '{part}' is missing")


def leaf(values, dtype="float64"):
    return paddle.to_tensor(values, dtype=dtype, stop_gradient=False)


class Tanh(PyLayer):
    @staticmethod
    def forward(ctx, x, scale=1.0):
        y = paddle.tanh(x) * scale
        ctx.save_for_backward(x)
        ctx.scale = scale
        return y

    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensor()
        t = paddle.tanh(x)
        return gradient * (1 - t * t) * ctx.scale


x = leaf([0.5, -1.0])
y = Tanh.apply(x, scale=2.0)
assert not y.stop_gradient and abs(y.tolist()[0] - 2 * math.tanh(0.5)) < 1e-12
(y * y).sum().backward()
for value, found in zip((0.5, -1.0), x.grad.tolist()):
    t = math.tanh(value)
    assert abs(found - 8 * t * (1 - t * t)) < 1e-12, found
# Gradients of gradients flow through what backward computes.
first = paddle.grad(Tanh.apply(x).sum(), x, create_graph=True)[0]
second = paddle.grad(first.sum(), x)[0]
for value, found in zip((0.5, -1.0), second.tolist()):
    t = math.tanh(value)
    assert abs(found + 2 * t * (1 - t * t)) < 1e-12, found
assert Tanh.apply(paddle.to_tensor([1.0])).stop_gradient
with paddle.no_grad():
    assert Tanh.apply(x).stop_gradient


class Split(PyLayer):
    @staticmethod
    def forward(ctx, a, b):
        ctx.seen = []
        return a * b, a + b, paddle.ones([2], "int64")

    @staticmethod
    def backward(ctx, product, total, _):
        ctx.seen.append((product is None, total.tolist()))
        Split.seen = ctx.seen
        return None, total * 10


a, b = leaf([1.0, 2.0]), leaf([3.0, 4.0])
product, total, count = Split.apply(a, b)
assert count.dtype == "int64"
product.sum().backward()
assert a.grad is None and b.grad.tolist() == [0, 0] and Split.seen == [(False, [0, 0])]
total.sum().backward()
assert b.grad.tolist() == [10, 10]


class Wrong(PyLayer):
    @staticmethod
    def forward(ctx, a, b):
        return a + b

    @staticmethod
    def backward(ctx, gradient):
        return gradient


class WrongShape(Wrong):
    @staticmethod
    def backward(ctx, gradient):
        return gradient.sum(), gradient


class Fails(Wrong):
    @staticmethod
    def backward(ctx, gradient):
        raise KeyError("in backward")


raises(paddle.UsageError, lambda: Wrong.apply(a, b).sum().backward(), "1 gradients for 2 tensors")
raises(paddle.UsageError, lambda: WrongShape.apply(a, b).sum().backward(), "input 0")
raises(KeyError, lambda: Fails.apply(a, b).sum().backward(), "in backward")

# Hooks: of results and of leaves, once for each backward, after all gradients are added up.
x = leaf([1.0, 2.0])
h = x * 3
seen = []
first = h.register_hook(lambda g: seen.append(g.tolist()))
second = h.register_hook(lambda g: g * 2)
third = x.register_hook(lambda g: seen.append(("leaf", g.tolist())))
(h.sum() + (h * h).sum()).backward()
assert seen == [[7, 13], ("leaf", [42, 78])], seen
assert x.grad.tolist() == [42, 78]
first.remove()
second.remove()
x.clear_grad()
(h.sum() + (h * h).sum()).backward()
assert x.grad.tolist() == [21, 39] and seen[2:] == [("leaf", [21, 39])], seen
third.remove()
z = x * x
z.register_hook(lambda g: g * 10)
assert paddle.grad(z.sum(), [x, z])[1].tolist() == [10, 10]
assert paddle.grad(z.sum(), x)[0].tolist() == [20, 40]
raises(paddle.UsageError, lambda: paddle.zeros([2]).register_hook(print), "requires a gradient")
raises(TypeError, lambda: x.register_hook(3), "expected a function")


def shrinks(gradient):
    return gradient[:1]


z = x * x
z.register_hook(shrinks)
raises(paddle.UsageError, lambda: z.sum().backward(), "the hook gives")

# Nothing is kept when the tensors are gone.
class Held:
    pass


held = Held()
z = x * x
z.register_hook(lambda g, held=held: None)
before = sys.getrefcount(held)
del z
gc.collect()
assert sys.getrefcount(held) == before - 1, "the hook lives on"

# In a saved function the forward is recorded.
import tempfile

with tempfile.TemporaryDirectory() as folder:
    paddle.jit.save(lambda v: Tanh.apply(v), folder + "/m", {"x": "float64[n]"})
    assert paddle.jit.load(folder + "/m").predict(x)["out"].tolist() == paddle.tanh(x).tolist()

# A compiled step calls the hooks of its parameters, whether they are there before it is compiled or come later.
net = paddle.nn.Linear(1, 1)
optimizer = paddle.optimizer.SGD(1.0, parameters=net.parameters())


def step(x):
    loss = net(x).sum()
    loss.backward()
    optimizer.step()
    optimizer.clear_grad()
    return loss


def weight_after(run):
    net.weight.set_value([[1.0]])
    run(paddle.to_tensor([[3.0]]))
    return net.weight.item()


early, late = paddle.jit.to_static(step), paddle.jit.to_static(step)
assert weight_after(late) == weight_after(step) == -2
hook = net.weight.register_hook(lambda g: g * 2)
assert weight_after(step) == weight_after(early) == weight_after(late) == -5
hook.remove()
assert weight_after(step) == weight_after(early) == weight_after(late) == -2
