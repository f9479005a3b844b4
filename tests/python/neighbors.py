"""Next to PyTorch and PaddlePaddle, as far as they are installed: both packages compute and exchange tensors, in both
orders of imports, each in a process of its own. Called by tests/slow/python_versions.sh."""
import importlib.util
import subprocess
import sys

WITH_TORCH = """
import torch
a = torch.arange(12.0).reshape(3, 4)
x = paddle.from_dlpack(a)
assert (x @ x.T).tolist() == (a @ a.T).tolist()
back = torch.from_dlpack(x)
assert back.data_ptr() == a.data_ptr()
b = torch.ones(3, dtype=torch.bfloat16)
assert paddle.from_dlpack(b).dtype == "bfloat16" and torch.from_dlpack(paddle.from_dlpack(b)).data_ptr() == b.data_ptr()
w = torch.randn(64, 64, requires_grad=True)
v = paddle.to_tensor(w.detach().tolist(), stop_gradient=False)
for _ in range(3):
    (w @ w).relu().sum().backward()
    (v @ v).relu().sum().backward()
assert max(abs(p - q) for r, s in zip(w.grad.tolist(), v.grad.tolist()) for p, q in zip(r, s)) < 1e-2
f = paddle.jit.to_static(lambda y: (y * 2).exp() if y.sum() > 0 else y)
assert torch.allclose(torch.from_dlpack(f(x)), (a * 2).exp())
"""
WITH_PADDLE = """
assert other is not paddle and hasattr(other, "to_tensor") and "site-packages/paddle/" in other.__file__
y = other.to_tensor([[1.0, 2.0], [3.0, 4.0]])
assert paddle.to_tensor(y.numpy().tolist()).matmul(paddle.ones([2, 2])).tolist() == other.matmul(y, other.ones([2, 2])).tolist()
try:
    paddle.as_paddle()
    raise SystemExit("as_paddle replaced PaddlePaddle")
except ImportError:
    pass
"""
ALONE = """
import sys
paddle.as_paddle()
import paddle as other
import paddle.nn.functional as functional
from paddle import nn
assert other is paddle and functional is paddle.nn.functional and nn is paddle.nn
assert paddle.__spec__.name == "paddle_toolchain" and isinstance(nn.Linear(2, 2)(other.ones([1, 2])), other.Tensor)
"""


def main():
    cases = [(name, script) for name, script in (("torch", WITH_TORCH), ("paddle", WITH_PADDLE)) if importlib.util.find_spec(name)]
    for name, script in cases:
        ours, other = "import paddle_toolchain as paddle", f"import {name} as other"
        for order in ((ours, other), (other, ours)):
            subprocess.run([sys.executable, "-c", "\n".join(order) + script], check=True)
    if "paddle" not in dict(cases):
        subprocess.run([sys.executable, "-c", "import paddle_toolchain as paddle" + ALONE], check=True)
    print(", ".join([name for name, _ in cases] or ["alone"]))


if __name__ == "__main__":
    main()
