"""Called by lang.sh: layers of the model language compute and train as in Python."""
import math

import paddle_toolchain as paddle
from paddle_toolchain import nn

TEXT = """
name: two_layers
params: {width: 16}
inputs: {x: "float32[batch, 8]"}
model: |
  x = relu(linear(x, width, name="first"))
  x = dropout(x, 0.25)
  return linear(x, 3, name="second")
"""
paddle.seed(7)
net = paddle.lang(TEXT)
assert {name: value.shape for name, value in net.state_dict().items()} == {
    "first.weight": [8, 16], "first.bias": [16], "second.weight": [16, 3], "second.bias": [3]}, net.state_dict()
assert net.inputs == {"x": "float32[batch, 8]"}
again, other = paddle.lang(TEXT), paddle.lang(TEXT, seed=8)
assert again.state_dict()["first.weight"].tolist() == net.state_dict()["first.weight"].tolist()
assert other.state_dict()["first.weight"].tolist() != net.state_dict()["first.weight"].tolist()

x = paddle.randn([5, 8])
weights = net.state_dict()
net.eval()
plain = nn.functional.relu(x @ weights["first.weight"] + weights["first.bias"]) @ weights["second.weight"] + weights["second.bias"]
assert (net(x) - plain).abs().max().item() < 1e-6 and net(x=x).tolist() == net(x).tolist()
net.train()
assert net(x).tolist() != net(x).tolist()  # dropout

# It trains, as Python and compiled, with equal bits; parameters are those of optimizers.


def trained(wrap):
    paddle.seed(3)
    net = paddle.lang(TEXT, seed=1)
    optimizer = paddle.optimizer.AdamW(0.01, parameters=net.parameters())

    def step(x, y):
        loss = nn.functional.cross_entropy(net(x), y)
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        return loss

    step = wrap(step)
    losses = []
    for _ in range(30):
        x = paddle.randn([32, 8])
        losses.append(step(x, (x[:, 0] > 0).astype("int64")).item())
    return step, losses, {name: value.tolist() for name, value in net.state_dict().items()}


step, losses, compiled = trained(lambda f: paddle.jit.to_static(f, exact=True))
assert step.reason is None, step.reason
_, plain_losses, plain = trained(lambda f: f)
assert compiled == plain and losses == plain_losses and losses[-1] < 0.6 * losses[0], (losses[0], losses[-1])

# States: batch norm in training mode updates them, in evaluation it reads them. A part of another layer, and copies.
norm = paddle.lang("""
inputs: {image: "float32[batch, 3, 4, 4]"}
model:
  - batch_norm: {name: norm}
outputs: [y]
""")
image = paddle.randn([6, 3, 4, 4]) * 2 + 1
mean = next(value for name, value in norm.named_buffers() if "mean" in name)
assert mean.tolist() == [0, 0, 0]
norm(image)
assert mean.tolist() != [0, 0, 0]
before = mean.tolist()
norm.eval()
first = norm(image)
assert mean.tolist() == before and norm(image).tolist() == first.tolist()
both = nn.Sequential(nn.Conv2D(1, 3, 3, padding=1), norm)
assert "1.norm.weight" in both.state_dict(), list(both.state_dict())

# A model of the tools, saved as one.
import sys  # noqa: E402

net.eval()
paddle.jit.save(net, f"{sys.argv[1]}/saved", {"x": "float32[n, 8]"}, outputs="scores")
assert (paddle.jit.load(f"{sys.argv[1]}/saved").predict(x)["scores"] - net(x)).abs().max().item() < 1e-6
two = paddle.lang("inputs: {a: 'float32[n]', b: 'float32[n]'}\nmodel: |\n  total = a + b\n  return total, a - b\noutputs: [total, difference]\n")
assert {name: value.tolist() for name, value in two([1.0, 2.0], [3.0, 4.0]).items()} == {"total": [4, 6], "difference": [-2, -2]}

for call, kind, part in (
        (lambda: paddle.lang("inputs: {x: 'float32[n]'}\nmodel: |\n  return no_such(x)\n"), paddle.ConfigError, "no_such"),
        (lambda: paddle.lang("models/none.yaml"), paddle.UsageError, "none.yaml"),
        (lambda: paddle.lang(TEXT, function="other"), paddle.UsageError, "other"),
        (lambda: net(x, x), TypeError, "1 inputs"), (lambda: net(y=x), TypeError, "given are y"),
        (lambda: net(paddle.ones([2, 7])), paddle.Error, "7")):
    try:
        call()
        raise SystemExit(f"{part} is missing")
    except kind as error:
        assert part in str(error), error
assert math.isfinite(losses[-1])
