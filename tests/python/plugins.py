"""Called by plugins.sh."""
import math

import paddle_toolchain as paddle


def raises(kind, call, part):
    try:
        call()
    except kind as error:
        assert part in str(error), error
        return
    raise SystemExit(f"{kind.__name__} with '{part}' is missing")


acme = paddle.plugins.load("plugins/gated_norm/gated_norm.plugin.yaml")
assert acme.name == "gated_norm" and acme.parts["operations"] == ["gated_norm.gated_norm"], acme.parts
assert "gated_norm" in dir(acme) and "1.0.0" in repr(acme)
assert paddle.plugins.load("plugins/gated_norm/gated_norm.plugin.yaml").sha256 == acme.sha256

x = paddle.to_tensor([3.0, 4.0], dtype="float64", stop_gradient=False)
gate = paddle.to_tensor([0.0, 0.0], dtype="float64")
y = acme.gated_norm(x, gate, epsilon=0.0)
root = math.sqrt(12.5)
assert all(abs(a - b) < 1e-12 for a, b in zip(y.tolist(), [1.5 / root, 2 / root])), y.tolist()
y.sum().backward()
# The norm does not change along x.
assert abs(3 * x.grad.tolist()[0] + 4 * x.grad.tolist()[1]) < 1e-12, x.grad.tolist()

mine = paddle.plugins.define(
    "mine", {"swish": {"signature": "(x:T, k:float=1.0) -> out", "body": "x * sigmoid(k * x)"}}
)
t = paddle.to_tensor([1.0, -2.0], dtype="float64", stop_gradient=False)
out = mine.swish(t, k=2.0)
wanted = [v / (1 + math.exp(-2 * v)) for v in (1.0, -2.0)]
assert all(abs(a - b) < 1e-12 for a, b in zip(out.tolist(), wanted)), out.tolist()
out.sum().backward()
for v, found in zip((1.0, -2.0), t.grad.tolist()):
    s = 1 / (1 + math.exp(-2 * v))
    assert abs(found - (s + 2 * v * s * (1 - s))) < 1e-12, found
assert [each.name for each in paddle.plugins.loaded()] == ["gated_norm", "mine"]

raises(paddle.UsageError, lambda: paddle.plugins.load("no.plugin.yaml"), "no.plugin.yaml")
raises(paddle.DeviceError, lambda: paddle.plugins.define("mine", {"a": {"signature": "(x:T) -> out", "body": "x"}}), "loaded already")
raises(paddle.ConfigError, lambda: paddle.plugins.define("broken", {"a": {"signature": "(x:T) -> out", "body": "x +"}}), "expected an expression")
raises(paddle.Error, lambda: paddle.plugins.load("plugins/gated_norm/gated_norm.plugin.yaml", sha256="00000000"), "sha256")
raises(AttributeError, lambda: mine.nothing, "nothing")
