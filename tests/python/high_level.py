"""Called by high_level.sh with an empty folder: Model.fit and its metrics, loaders with workers, operations of a program
and ONNX files."""
import glob
import math
import os
import random
import signal
import sys

import paddle_toolchain as paddle
from paddle_toolchain import nn


class Blobs(paddle.io.Dataset):
    """Two classes around two points; samples draw random numbers."""

    def __init__(self, count, noise=0.3):
        self.count, self.noise = count, noise

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        label = index % 2
        point = [(1.0 if label else -1.0) + self.noise * random.gauss(0, 1) for _ in range(4)]
        return paddle.to_tensor(point) + 0.1 * paddle.randn([4]), label


class Large(paddle.io.Dataset):
    def __len__(self):
        return 6

    def __getitem__(self, index):
        return {"image": paddle.full([64, 64], float(index)), "name": index}


class Fails(Blobs):
    def __getitem__(self, index):
        if index == 5:
            raise KeyError("sample five")
        return super().__getitem__(index)


class Dies(Blobs):
    def __getitem__(self, index):
        os.kill(os.getpid(), signal.SIGKILL)


def network():
    paddle.seed(2)
    return nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))


class Seen:
    def __init__(self, stop_at=None):
        self.events, self.stop_at = [], stop_at

    def on_start(self, model):
        self.events.append("start")

    def on_step(self, step, logs):
        self.events.append(step)
        return "stop" if step == self.stop_at else None

    def on_evaluate(self, logs):
        self.events.append(sorted(logs))

    def on_end(self, model):
        self.events.append("end")


def check_fit(folder):
    net = network()
    model = paddle.Model(net)
    model.prepare(paddle.optimizer.AdamW(0.01, parameters=model.parameters()), nn.CrossEntropyLoss(), paddle.metric.Accuracy())
    seen = Seen()
    history = model.fit(Blobs(256), Blobs(64), batch_size=32, epochs=3, callbacks=[seen])
    assert len(history) == 3 and history[-1]["loss"] < history[0]["loss"] and history[-1]["eval_accuracy"] > 0.9, history
    assert seen.events[:2] == ["start", 1] and seen.events[-1] == "end" and ["accuracy", "loss"] in seen.events, seen.events
    assert model._step.reason is None and model._step.traces == 1  # the step is compiled
    result = model.evaluate(Blobs(64), batch_size=16)
    assert result["accuracy"] > 0.9 and net.training
    outputs = model.predict(Blobs(10), batch_size=4)
    assert outputs.shape == [10, 2] and outputs.stop_gradient
    model.save(f"{folder}/net")
    other = paddle.Model(network()).prepare(paddle.optimizer.AdamW(0.01, parameters=network().parameters()), nn.CrossEntropyLoss())
    other.load(f"{folder}/net")
    assert other.network[0].weight.tolist() == net[0].weight.tolist()
    model.save(f"{folder}/folder", {"x": "float32[n, 4]"})
    assert paddle.Model(f"{folder}/folder").predict([[1.0] * 4])["out"].shape == [1, 2]
    assert isinstance(model, paddle.Network) and isinstance(paddle.jit.load(f"{folder}/folder"), paddle.Model)
    stopped = paddle.Model(network())
    stopped.prepare(paddle.optimizer.SGD(0.01, parameters=stopped.parameters()), nn.CrossEntropyLoss())
    seen = Seen(stop_at=3)
    assert len(stopped.fit(Blobs(256), batch_size=32, epochs=3, callbacks=[seen])) == 1 and seen.events == ["start", 1, 2, 3, "end"]
    for call in (lambda: paddle.Model(net).fit(Blobs(4)), lambda: paddle.Model(net).prepare(paddle.optimizer.SGD(parameters=net.parameters()))):
        try:
            call()
            raise SystemExit("a missing loss was accepted")
        except paddle.UsageError:
            pass


def check_metrics():
    accuracy, best = paddle.metric.Accuracy(), paddle.metric.Accuracy(topk=2)
    scores, labels = paddle.to_tensor([[0.1, 0.7, 0.2], [0.5, 0.2, 0.3], [0.1, 0.2, 0.7]]), paddle.to_tensor([1, 2, 2])
    for metric, wanted in ((accuracy, 2 / 3), (best, 1.0)):
        metric.update(scores, labels)
        assert math.isclose(metric.accumulate(), wanted), (metric, metric.accumulate())
    precision, recall = paddle.metric.Precision(), paddle.metric.Recall()
    for metric, wanted in ((precision, 2 / 3), (recall, 0.5)):  # scikit-learn's values
        metric.update(paddle.to_tensor([0.9, 0.8, 0.7, 0.1, 0.2, 0.3]), paddle.to_tensor([1, 0, 1, 1, 1, 0]))
        assert math.isclose(metric.accumulate(), wanted), (metric, metric.accumulate())


def check_loaders():
    batches = lambda workers, dataset: [  # noqa: E731
        [each.tolist() for each in batch] for _ in range(2) for batch in loaders[workers, dataset]]
    loaders = {(workers, count): paddle.io.DataLoader(Blobs(count), 5, shuffle=True, seed=3, num_workers=workers)
               for workers in (0, 1, 3) for count in (23,)}
    state = random.getstate()
    first = batches(0, 23)
    assert random.getstate() == state  # that of the process stays
    assert len(first) == 10 and first[:5] != first[5:]
    for workers in (1, 3):
        assert batches(workers, 23) == first, workers
    loader = paddle.io.DataLoader(Large(), 2, num_workers=2)
    for i, batch in enumerate(loader):
        assert batch["image"].shape == [2, 64, 64] and batch["image"][1].max().item() == 2 * i + 1 and batch["name"].tolist() == [2 * i, 2 * i + 1]
        if i == 1:
            break  # the others are taken out of shared memory
    assert len(list(loader)) == 3
    for dataset, kind, part in ((Fails(20), KeyError, "sample five"), (Dies(20), RuntimeError, "has ended with status")):
        try:
            list(paddle.io.DataLoader(dataset, 4, num_workers=2))
            raise SystemExit(f"{part} is missing")
        except kind as error:
            assert part in str(error), error
    left = glob.glob(f"/dev/shm/paddle_{os.getpid()}_*")
    assert not left, left


class Counts(paddle.io.IterableDataset):
    """Numbers, of which each worker gives its part, with a random one."""

    def __init__(self, count):
        self.count = count

    def __iter__(self):
        info = paddle.io.get_worker_info()
        first, step = (info.id, info.num_workers) if info else (0, 1)
        for number in range(first, self.count, step):
            if self.count == 7 and number == 4:
                raise ValueError("number four")
            yield number, random.random()


def check_streams():
    def epochs(workers, size=4, drop_last=False, count=23):
        loader = paddle.io.DataLoader(Counts(count), size, num_workers=workers, drop_last=drop_last, seed=5)
        return [[(numbers.tolist(), draws.tolist()) for numbers, draws in loader] for _ in range(2)]

    state = random.getstate()
    first, second = epochs(0)
    assert random.getstate() == state and first != second and epochs(0) == [first, second]
    assert [numbers for numbers, _ in first] == [[*range(k, min(k + 4, 23))] for k in range(0, 23, 4)]
    assert [len(numbers) for numbers, _ in epochs(0, drop_last=True)[0]] == [4] * 5
    for workers in (1, 3):
        found = epochs(workers)
        assert found == epochs(workers) and found[0] != found[1]
        assert sorted(n for numbers, _ in found[0] for n in numbers) == list(range(23)), found
    assert epochs(1)[0] == first
    assert [numbers for numbers, _ in epochs(3)[0]][:3] == [[0, 3, 6, 9], [1, 4, 7, 10], [2, 5, 8, 11]]
    loader = paddle.io.DataLoader(Counts(1000), 10, num_workers=2)
    for _ in loader:
        break
    assert len(list(loader)) == 100
    for call, kind, part in ((lambda: list(paddle.io.DataLoader(Counts(7), 2, num_workers=2)), ValueError, "number four"),
                             (lambda: paddle.io.DataLoader(Counts(7), 2, shuffle=True), ValueError, "shuffled"),
                             (lambda: len(paddle.io.DataLoader(Counts(7), 2)), TypeError, "no length")):
        try:
            call()
            raise SystemExit(f"{part} is missing")
        except kind as error:
            assert part in str(error), error


def check_fork():
    """A forked process says that it cannot use threads, and computes with one."""
    threads = paddle.get_num_threads()
    paddle.set_num_threads(2)
    x = paddle.ones([1000, 1000])
    x.sum().item()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            x.sum()
        except paddle.ForkedProcessError as error:
            assert isinstance(error, RuntimeError) and "spawn" in str(error)
            paddle.set_num_threads(1)
            status = 0 if x.sum().item() == 1e6 and (x @ x).max().item() == 1000 else 2
        finally:
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0
    assert x.sum().item() == 1e6
    paddle.set_num_threads(threads)


def check_operations(folder):
    square = paddle.op("mine.square(x:T) -> out", body="x * x")
    x = paddle.to_tensor([1.0, -2.0, 3.0], stop_gradient=False)
    assert paddle.grad(square(x).sum(), x)[0].tolist() == [2, -4, 6]

    @paddle.op("mine.clip(x:T, limit:float=2.0) -> out",
               vjp=lambda gradients, inputs, outputs, limit: gradients[0] * (inputs[0].abs() <= limit).astype("float32"))
    def clip(x, limit):
        """Values between -limit and limit."""
        return [min(max(each, -limit), limit) for each in x.tolist()]

    assert clip(x).tolist() == [1, -2, 2] and clip(x, limit=1).tolist() == [1, -1, 1] and clip.__doc__.startswith("Values")
    assert paddle.grad(clip(x).sum(), x)[0].tolist() == [1, 1, 0]

    @paddle.op("mine.both(x:T, y:T) -> (sum, difference)")
    def both(x, y):
        return x + y, x - y

    total, difference = both(x, [1.0, 1.0, 1.0])
    assert total.tolist() == [2, -1, 4] and difference.tolist() == [0, -3, 2]
    static = paddle.jit.to_static(lambda x: clip(x) * 2)
    assert static(x).tolist() == [2, -4, 4] and "function of Python" in str(static.reason)
    for call, kind in ((lambda: paddle.grad(both(x, x)[0].sum(), x), paddle.UsageError), (lambda: clip(), TypeError),
                       (lambda: clip(x, size=3), TypeError), (lambda: paddle.op("clip(x)"), paddle.UsageError),
                       (lambda: paddle.jit.save(clip, f"{folder}/bad", {"x": "float32[3]"}), paddle.UsageError)):
        try:
            call()
            raise SystemExit("an error is missing")
        except kind:
            pass


def check_export(folder):
    net = network()
    paddle.export.onnx(net, f"{folder}/net.onnx", {"x": "float32[n, 4]"}, outputs="scores")
    x = paddle.randn([3, 4])
    found, wanted = paddle.Model(f"{folder}/net.onnx").predict(x)["scores"].tolist(), net(x).tolist()
    assert all(abs(a - b) < 1e-5 for p, q in zip(found, wanted) for a, b in zip(p, q))
    try:
        paddle.export.onnx(lambda x: paddle.linalg.eigvals(x), f"{folder}/bad.onnx", {"x": "float32[3, 3]"})
        raise SystemExit("an operation without an ONNX form was exported")
    except paddle.ModelError as error:
        assert f"{folder}/bad.onnx: 1 operation has no ONNX form" in str(error) and "high_level.py:" in str(error), error


if __name__ == "__main__":
    check_fit(sys.argv[1])
    check_metrics()
    check_loaders()
    check_fork()
    check_streams()
    check_operations(sys.argv[1])
    check_export(sys.argv[1])
