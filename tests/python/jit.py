"""Called by jit.sh with an empty folder; with `compare` after paddle-infer wrote output.npz."""
import math
import struct
import sys
import zipfile

import paddle_toolchain as paddle
from paddle_toolchain import nn

folder = sys.argv[1]


class Net(nn.Layer):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2D(1, 2, 3)
        self.norm = nn.BatchNorm2D(2)
        self.linear = nn.Linear(2 * 6 * 6, 5)
        self.drop = nn.Dropout(0.5)
        self.factor = paddle.to_tensor([0.5])

    def forward(self, x):
        h = nn.functional.relu(self.norm(self.conv(x)))
        h = h.reshape([x.shape[0], h.shape[1] * h.shape[2] * h.shape[3]])
        return {"scores": self.drop(self.linear(h)) * self.factor, "mean": h.mean()}


def write_npz(path, name, tensor):
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {tuple(tensor.shape)}}}"
    header = header.ljust(118) + "\n"
    data = struct.pack(f"<{tensor.size}f", *tensor.reshape([-1]).tolist())
    with zipfile.ZipFile(path, "w") as file:
        file.writestr(f"{name}.npy", b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + data)


def numbers(path):
    with zipfile.ZipFile(path) as file:
        data = file.read("scores.npy")
    return list(struct.unpack(f"<{3 * 5}f", data[-3 * 5 * 4 :]))


if sys.argv[2:] == ["compare"]:
    wanted = paddle.load(f"{folder}/wanted.safetensors")["scores"].reshape([15]).tolist()
    assert all(abs(a - b) < 1e-6 for a, b in zip(numbers(f"{folder}/output.npz"), wanted))
    raise SystemExit


def raises(kind, call, part):
    try:
        call()
    except kind as error:
        assert part in str(error), error
        return
    raise SystemExit(f"{kind.__name__} with '{part}' is missing")


paddle.seed(3)
net = Net()
paddle.jit.save(net, f"{folder}/net", {"x": "float32[batch, 1, 8, 8]"})
assert net.training and net.drop.training, "the layer has its mode back"
model = paddle.jit.load(f"{folder}/net")
assert model.inputs == {"x": "float32[batch, 1, 8, 8]"}, model.inputs
assert model.outputs == {"scores": "float32[batch, 5]", "mean": "float32[]"}, model.outputs
net.eval()
for batch in (1, 3):
    x = paddle.randn([batch, 1, 8, 8])
    found, wanted = model.predict(x), net(x)
    assert found["scores"].shape == [batch, 5]
    assert (found["scores"] - wanted["scores"]).abs().max().item() < 1e-6
    assert abs(found["mean"].item() - wanted["mean"].item()) < 1e-6
write_npz(f"{folder}/input.npz", "x", x)
paddle.save({"scores": wanted["scores"]}, f"{folder}/wanted.safetensors")


# Decisions by values: at once, with gradients, and in a saved model.
def root(x):
    """The square root by Newton's method, or 0."""
    def step(y, n):
        return (y + x / y) / 2, n + 1

    def newton():
        y, n = paddle.jit.while_loop(
            lambda y, n: ((y * y - x).abs().max() > 1e-6).logical_and(n < 50), step, [x, paddle.zeros([], "int64")]
        )
        return y, n

    return paddle.jit.cond(x.min() > 0, newton, lambda: (paddle.zeros_like(x), paddle.full([], -1, "int64")))


x = paddle.to_tensor([2.0], stop_gradient=False)
y, n = root(x)
assert abs(y.item() - math.sqrt(2)) < 1e-5 and 1 < n.item() < 10
y.backward()
assert abs(x.grad.item() - 0.5 / math.sqrt(2)) < 1e-4, x.grad
assert root(paddle.to_tensor([-2.0]))[1].item() == -1
paddle.jit.save(root, f"{folder}/loop", {"x": "float32[n]"}, outputs=["root", "steps"])
model = paddle.jit.load(f"{folder}/loop")
for values in ([2.0], [9.0, 0.25], [4.0, -1.0]):
    found, wanted = model.predict(values), root(paddle.to_tensor(values))
    assert all(abs(a - b) < 1e-5 for a, b in zip(found["root"].tolist(), wanted[0].tolist()))
    assert found["steps"].item() == wanted[1].item()

# Sizes that are free.
seen = {}


def sizes(x):
    rows, columns = x.shape
    seen["sizes"] = (repr(rows), columns, repr(rows * 2 + 1), repr(x.size), rows == rows, rows // 1 == rows, x.ndim)
    return x.reshape([rows * columns])


paddle.jit.save(sizes, f"{folder}/sizes", {"x": "float32[rows, 3]"})
assert seen["sizes"] == ("rows", 3, "2*rows + 1", "3*rows", True, True, 2), seen
assert paddle.jit.load(f"{folder}/sizes").predict([[1.0, 2, 3]])["out"].tolist() == [1, 2, 3]


# Errors for what cannot be recorded; calls compute again after them.
def saves(function, spec="float32[n]"):
    return lambda: paddle.jit.save(function, f"{folder}/bad", {"x": spec})


raises(paddle.UsageError, saves(lambda x: x * float(x.sum())), "not known while the program is traced")
raises(paddle.UsageError, saves(lambda x: x * 2 if x.shape[0] > 2 else x), "the size n is not known")
raises(paddle.UsageError, saves(lambda x: x * len(x)), "the size n is not known")
raises(paddle.UsageError, saves(lambda x: x, "float32"), "expected a type such as")
raises(paddle.UsageError, saves(lambda x: x, "float33[2]"), "expected a type such as")
raises(paddle.UsageError, lambda: paddle.jit.save(lambda x: x, f"{folder}/bad", {"x": "float32[2]"}, outputs=["a", "b"]), "2 names for 1")
raises(TypeError, saves(lambda x: 3), "expected tensors")
raises(TypeError, lambda: paddle.jit.save(3, f"{folder}/bad", {}), "expected a layer")
outside = paddle.zeros([2])


def writes(x):
    outside.add_(x)
    return outside


raises(paddle.UsageError, saves(writes, "float32[2]"), "written in place")
optimizer = paddle.optimizer.SGD(0.1, parameters=net.parameters())


def steps(x):
    optimizer.step()
    return x


raises(paddle.UsageError, saves(steps), "optimizer")
raises(KeyError, saves(lambda x: {}["missing"]), "missing")
raises(paddle.UsageError, lambda: paddle.jit.while_loop(lambda a: a < 3, lambda a: (a, a), [paddle.zeros([])]), "2 tensors for 1")
assert outside.tolist() == [0, 0] and (outside + 1).tolist() == [1, 1], "calls compute again"
