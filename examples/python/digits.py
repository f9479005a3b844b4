"""A small net learns digits, one operation at a time: `python digits.py [EPOCHS]` in this repository."""
import sys

import paddle_toolchain as paddle
from paddle_toolchain import nn

paddle.seed(1)
data = paddle.io.open("configs/quickstart/digits.yaml")
net = nn.Sequential(nn.Flatten(), nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 10))
optimizer = paddle.optimizer.AdamW(1e-3, parameters=net.parameters())
for epoch in range(int(sys.argv[1]) if len(sys.argv) > 1 else 2):
    for batch in data:
        loss = nn.functional.cross_entropy(net(batch["image"]), batch["label"])
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
    print(f"epoch {epoch}  loss {loss.item():.4f}")

net.eval()
right = total = 0
with paddle.no_grad():
    for batch in paddle.io.open("configs/quickstart/digits.yaml", "valid"):
        right += (net(batch["image"]).argmax(-1) == batch["label"]).sum().item()
        total += len(batch["label"])
print(f"accuracy {right / total:.4f}")
