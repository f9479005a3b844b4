"""Called by stress.sh: threads that compute and compile, a loader with processes, and an end at a random time."""
import os
import random
import signal
import sys
import threading
import time

import paddle_toolchain as paddle
# Imported here: Ctrl-C during an import may leave Python's lock of imports taken.
from paddle_toolchain import _workers, io, jit, nn, optimizer  # noqa: F401


class Numbers(paddle.io.Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, index):
        return paddle.full([3000], float(index)), index


def work(number, until):
    paddle_layer = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2))
    optimizer = paddle.optimizer.AdamW(0.01, parameters=paddle_layer.parameters())

    def step(x):
        loss = (paddle_layer(x) ** 2).mean()
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        return loss

    def with_a_value(x):
        y = x * 2 if float(x.sum()) > 0 else x * 3
        return step(y)

    kinds = (step, paddle.jit.to_static(step), paddle.jit.to_static(with_a_value))
    while time.time() < until:
        kinds[number % 3](paddle.randn([number + 2, 8]))


def main():
    source = random.Random(int(sys.argv[1]))
    kind = source.choice(["end", "exit", "interrupt", "kill"])
    delay = source.uniform(0.0, 0.6)
    threads = [threading.Thread(target=work, args=(i, time.time() + delay), daemon=kind == "exit") for i in range(8)]
    loader = paddle.io.DataLoader(Numbers(), 8, num_workers=source.choice([0, 1, 2]))
    if kind in ("interrupt", "kill"):
        number = signal.SIGINT if kind == "interrupt" else signal.SIGTERM
        threading.Timer(delay, lambda: os.kill(os.getpid(), number)).start()
    for thread in threads:
        thread.start()
    until = time.time() + delay
    while time.time() < until:
        for batch in loader:
            if source.random() < 0.1:
                break
    if kind == "exit":
        sys.exit(0)
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    main()
