"""Called by habits.sh."""
import contextlib
import copy
import gc
import io
import pickle
import weakref

import paddle_toolchain as paddle
from paddle_toolchain import nn


def raises(kind, call, part):
    try:
        call()
    except kind as error:
        assert part in str(error), error
        return
    raise SystemExit(f"{kind.__name__} with '{part}' is missing")


# Tensors
for dtype in ("float32", "float64", "bfloat16", "float16", "int8", "uint64", "bool", "complex64"):
    x = paddle.to_tensor([[1, 0], [3, 2]], dtype=dtype)
    y = pickle.loads(pickle.dumps(x))
    assert (y.dtype, y.shape, y.stop_gradient) == (dtype, [2, 2], True) and y.tolist() == x.tolist(), dtype
x = paddle.to_tensor([1.5, 2.5], stop_gradient=False)
assert not pickle.loads(pickle.dumps(x)).stop_gradient and pickle.loads(pickle.dumps(x[1:])).tolist() == [2.5]
assert pickle.loads(pickle.dumps(paddle.zeros([0, 3]))).shape == [0, 3]
y = copy.deepcopy(x)
with paddle.no_grad():
    y.add_(paddle.ones([2]))
assert x.tolist() == [1.5, 2.5] and y.tolist() == [2.5, 3.5]
assert pickle.loads(pickle.dumps(paddle.relu))(paddle.to_tensor([-1.0])).item() == 0
assert pickle.loads(pickle.dumps(x.exp))().tolist() == x.exp().tolist()
for bad in ((b"12", "float32", [1]), (b"1234", "float32", [-1]), (b"1234", "string", [1]), (b"", "int8", [1 << 40, 1 << 40])):
    raises(paddle.DataError, lambda: paddle._paddle.from_bytes(*bad), "")
seen = []
x = paddle.zeros([2])
reference = weakref.ref(x, lambda _: seen.append("gone"))
assert reference() is x
del x
gc.collect()
assert reference() is None and seen == ["gone"]
x = paddle.to_tensor([1.0, 2.0])
assert x.fill_(3.0) is x and x.tolist() == [3, 3] and x.zero_().tolist() == [0, 0]
assert x.apply(lambda t: t + 1).tolist() == [1, 1]
assert paddle.is_tensor(x) and not paddle.is_tensor([1])
assert paddle.set_device("cpu") == paddle.get_device() == "cpu"
raises(paddle.UsageError, lambda: paddle.set_device("gpu"), "gpu")
paddle.seed(4)
first = paddle.randn([3])
state = paddle.get_rng_state()
second = paddle.randn([3])
paddle.set_rng_state(state)
assert paddle.randn([3]).tolist() == second.tolist() != first.tolist()


# Layers
class Net(nn.Layer):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1D(3), nn.ReLU())
        self.head = nn.Linear(3, 2)

    def forward(self, x):
        return self.head(self.body(x))


net = Net().eval()
x = paddle.randn([5, 4])
for other in (copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
    assert other(x).tolist() == net(x).tolist()
    other.head.weight.set_value(paddle.zeros([3, 2]))
    assert other(x).tolist() != net(x).tolist() and not other.training
    assert [name for name, _ in other.named_parameters()] == [name for name, _ in net.named_parameters()]
assert {"body", "head", "forward"} <= set(dir(net)) and "weight" in dir(net.head) and net.full_name() == "net"
names = []
assert net.apply(lambda layer: names.append(type(layer).__name__)) is net
assert names == ["Sequential", "Linear", "BatchNorm1D", "ReLU", "Linear", "Net"], names

calls = []
before = net.head.register_forward_pre_hook(lambda layer, inputs: calls.append(inputs[0].shape))
after = net.head.register_forward_post_hook(lambda layer, inputs, outputs: outputs * 2)
plain = copy.deepcopy(net)
before_all = net.register_forward_pre_hook(lambda layer, inputs: inputs[0] * 1)
doubled = net(x)
assert calls == [[5, 3]]
before.remove()
after.remove()
before_all.remove()
assert (doubled - net(x) * 2).abs().max().item() == 0 and len(calls) == 1
assert (plain(x) - net(x) * 2).abs().max().item() == 0, "a copy has its own hooks"

optimizer = paddle.optimizer.SGD(0.1, parameters=net.parameters())
weight = net.head.weight
assert net.to(dtype="float64") is net and net.head.weight is weight and weight.dtype == "float64" and weight.trainable
x64 = x.astype("float64")
net(x64).sum().backward()
value = weight.tolist()
optimizer.step()
assert weight.tolist() != value and weight.dtype == "float64"
raises(paddle.UsageError, lambda: net.to("gpu"), "gpu")
net.to(dtype="float32")

net.head.bias.stop_gradient = True
output = io.StringIO()
with contextlib.redirect_stdout(output):
    numbers = paddle.summary(net, [5, 4])
text = output.getvalue()
assert numbers == {"total_params": 15 + 6 + 8, "trainable_params": 27}, numbers
assert "body.0     Linear       [5, 3]" in text and "parameters: 29, trainable: 27" in text, text
assert not net.training
with contextlib.redirect_stdout(io.StringIO()):
    assert paddle.summary(net)["total_params"] == 29
