"""Called by amp.sh."""
import math
import threading

import paddle_toolchain as paddle
from paddle_toolchain import nn


def raises(kind, call, part):
    try:
        call()
    except kind as error:
        assert part in str(error), error
        return
    raise SystemExit(f"{kind.__name__} with '{part}' is missing")


def close(a, b, bound):
    return max(abs(p - q) for p, q in zip(a.reshape([-1]).tolist(), b.reshape([-1]).tolist())) <= bound


paddle.seed(1)
x, w = paddle.randn([8, 16]), paddle.randn([16, 4])
full = x @ w
with paddle.amp.auto_cast():
    low = x @ w
    assert low.dtype == "bfloat16" and (low + 1.0).dtype == "bfloat16"
    assert low.sum().dtype == "float32" and low.softmax(axis=-1).dtype == "float32"
    with paddle.amp.auto_cast(enable=False):
        assert (x @ w).dtype == "float32"
    with paddle.amp.auto_cast(dtype="float16"):
        assert (x @ w).dtype == "float16"
    assert (x @ w).dtype == "bfloat16" and (x * x).dtype == "float32"
    seen = []
    thread = threading.Thread(target=lambda: seen.append((x @ w).dtype))
    thread.start()
    thread.join()
    assert seen == ["float32"], "another thread has its own"
assert (x @ w).dtype == "float32"
# The operands were rounded to 8 bits.
assert close(low.astype("float32"), full, 0.1) and not close(low.astype("float32"), full, 1e-6)
with paddle.amp.auto_cast(level="O2"):
    assert (x * x).dtype == "bfloat16" and x.sum().dtype == "float32"
with paddle.amp.auto_cast(custom_white_list=["multiply"], custom_black_list=["matmul"]):
    assert (x * x).dtype == "bfloat16" and (x @ w).dtype == "float32"


@paddle.amp.auto_cast()
def decorated():
    return x @ w


assert decorated().dtype == "bfloat16" and (x @ w).dtype == "float32"
raises(paddle.UsageError, lambda: paddle.amp.auto_cast(level="O3"), "O3")
raises(paddle.UsageError, lambda: paddle.amp.auto_cast(custom_white_list=["exp"], custom_black_list=["exp"]), "exp")
raises(paddle.UsageError, lambda: paddle.amp.auto_cast(dtype="float32").__enter__(), "float32")
raises(paddle.UsageError, lambda: paddle.amp.auto_cast(custom_white_list=["matmull"]).__enter__(), "matmul")
assert (x @ w).dtype == "float32", "a setting that failed changes nothing"


# Training in 16 bits: parameters and gradients stay float32, the loss falls as in full precision.
def losses(**settings):
    paddle.seed(2)
    net = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))
    optimizer = paddle.optimizer.Adam(0.01, parameters=net.parameters())
    scaler = paddle.amp.GradScaler(enable=settings.get("dtype") == "float16", init_loss_scaling=1024)
    target = paddle.zeros([8], "int64")
    out = []
    for _ in range(20):
        with paddle.amp.auto_cast(enable=bool(settings), **settings):
            loss = nn.functional.cross_entropy(net(x), target)
        scaler.scale(loss).backward()
        assert all(p.dtype == p.grad.dtype == "float32" for p in net.parameters())
        scaler.step(optimizer)
        scaler.update()
        optimizer.clear_grad()
        out.append(loss.item())
    return out


plain = losses()
for settings in ({"dtype": "bfloat16"}, {"dtype": "float16"}, {"dtype": "bfloat16", "level": "O2"}):
    found = losses(**settings)
    assert all(abs(a - b) < 0.05 * a + 0.01 for a, b in zip(plain, found)), (settings, plain, found)
    assert found != plain

# Scales: halved by an overflow, which skips the step, and doubled after steps without one.
p = nn.Parameter([1.0])
optimizer = paddle.optimizer.SGD(1.0, parameters=[p])
scaler = paddle.amp.GradScaler(init_loss_scaling=8.0, incr_every_n_steps=2)
for gradient, value, scale in ((1.0, 0.0, 8.0), (math.inf, 0.0, 4.0), (1.0, -1.0, 4.0), (0.5, -1.5, 8.0)):
    p.grad = paddle.to_tensor([gradient * scaler.get_scale()])
    scaler.step(optimizer)
    scaler.update()
    assert (p.item(), scaler.get_scale()) == (value, scale), (p.item(), scaler.get_scale())
again = paddle.amp.GradScaler()
again.load_state_dict(scaler.state_dict())
assert again.get_scale() == 8.0
p.grad = paddle.to_tensor([8.0])
scaler.unscale_(optimizer)
assert p.grad.item() == 1.0
scaler.unscale_(optimizer)
assert p.grad.item() == 1.0, "gradients are divided once"
raises(paddle.UsageError, lambda: paddle.amp.GradScaler(incr_ratio=1), "incr_ratio")



# A compiled training step has the bits of Python's, with steps that an overflow skips.
def scaled(wrap):
    paddle.seed(4)
    net = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))
    optimizer = paddle.optimizer.AdamW(0.01, parameters=net.parameters(), grad_clip=nn.ClipGradByGlobalNorm(1.0))
    scaler = paddle.amp.GradScaler(init_loss_scaling=1024, incr_every_n_steps=2)
    target = paddle.zeros([8], "int64")

    def step(x):
        with paddle.amp.auto_cast(dtype="float16"):
            loss = nn.functional.cross_entropy(net(x), target)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        optimizer.clear_grad()
        return loss

    step, scales = wrap(step), []
    for i in range(8):
        step(paddle.randn([8, 16]) * (1e30 if i in (3, 5) else 1.0))
        scales.append(scaler.get_scale())
    state = {name: value.tolist() for name, value in optimizer.state_dict().items()}
    return step, scales, [each.tolist() for each in net.parameters()], state


step, *found = scaled(lambda function: paddle.jit.to_static(function, exact=True))
_, *wanted = scaled(lambda function: function)
assert step.reason is None and step.traces == 1, (step.reason, step.traces)
assert found == wanted and found[0] == [1024, 2048, 2048, 1024, 1024, 512, 512, 1024], found[0]
assert found[2]["updates"] == 6, found[2]["updates"]
half = paddle.jit.to_static(lambda loss: scaler.scale(loss))  # the factor is read at each call
for value in (8.0, 4.0):
    scaler.load_state_dict({"scale": value, "good": 0, "bad": 0})
    assert half(paddle.to_tensor(2.0)).item() == 2 * value and half.reason is None
open_step = paddle.jit.to_static(lambda: scaler.unscale_(optimizer))
scaler.update()
open_step()
assert "middle of a step" in str(open_step.reason), open_step.reason

# Jacobians and Hessians.
jacobian, hessian = paddle.autograd.jacobian, paddle.autograd.hessian
v = paddle.to_tensor([1.0, 2.0, 3.0], dtype="float64", stop_gradient=False)
m = jacobian((v * v)[:2], v)
assert m.tolist() == [[2, 0, 0], [0, 4, 0]], m
a, b = jacobian(lambda a, b: a * b, [v, v])
assert a.tolist() == b.tolist() == [[1, 0, 0], [0, 2, 0], [0, 0, 3]]
assert jacobian(v.sum(), v).tolist() == [1, 1, 1]
h = hessian(lambda t: (t**3).sum() + t[0] * t[1], v)
assert h.tolist() == [[6, 1, 0], [1, 12, 0], [0, 0, 18]], h
assert hessian((v * 2).sum(), v).tolist() == [[0] * 3] * 3
third = jacobian(hessian((v**3).sum(), v, create_graph=True), v)
assert third.shape == [3, 3, 3] and third[1, 1, 1].item() == 6
raises(paddle.UsageError, lambda: hessian(v * 2, v), "one element")
