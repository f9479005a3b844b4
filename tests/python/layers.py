"""Layers, optimizers, data and saved states of the Python package."""
import json
import os
import tempfile
import unittest

import paddle_toolchain as paddle
from paddle_toolchain import nn


class Layers(unittest.TestCase):
    def test_parameters_and_states(self):
        net = nn.Sequential(nn.Linear(4, 3), nn.ReLU(), ("head", nn.Linear(3, 2, bias_attr=False)))
        self.assertEqual([p.name for p in net.parameters()], ["0.weight", "0.bias", "head.weight"])
        self.assertEqual(list(net.state_dict()), ["0.weight", "0.bias", "head.weight"])
        self.assertEqual(net(paddle.zeros([5, 4])).shape, [5, 2])
        self.assertIn("Linear(in_features=4", repr(net))
        self.assertEqual(len(net), 3)
        with self.assertRaisesRegex(paddle.UsageError, "missing: 0.bias"):
            net.set_state_dict({"0.weight": paddle.zeros([4, 3]), "head.weight": paddle.zeros([3, 2])})

    def test_save_and_load(self):
        net, other = nn.Linear(4, 3), nn.Linear(4, 3)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "net.safetensors")
            paddle.save(net.state_dict(), path)
            other.set_state_dict(paddle.load(path))
        x = paddle.uniform([2, 4])
        self.assertEqual(net(x).tolist(), other(x).tolist())

    def test_shapes(self):
        image = paddle.uniform([2, 4, 8, 8])
        for layer, shape in [(nn.Conv2D(4, 6, 3, padding=1, stride=2), [2, 6, 4, 4]),
                             (nn.Conv2D(4, 8, 3, groups=2), [2, 8, 6, 6]), (nn.MaxPool2D(2), [2, 4, 4, 4]),
                             (nn.AvgPool2D(2), [2, 4, 4, 4]), (nn.BatchNorm2D(4), [2, 4, 8, 8]),
                             (nn.GroupNorm(2, 4), [2, 4, 8, 8]), (nn.Flatten(), [2, 256]),
                             (nn.LayerNorm(8), [2, 4, 8, 8]), (nn.RMSNorm(8), [2, 4, 8, 8]),
                             (nn.Dropout(0.5), [2, 4, 8, 8]), (nn.Softmax(), [2, 4, 8, 8]),
                             (nn.GELU(), [2, 4, 8, 8]), (nn.LeakyReLU(), [2, 4, 8, 8]), (nn.Identity(), [2, 4, 8, 8])]:
            self.assertEqual(layer(image).shape, shape, repr(layer))
        self.assertEqual(nn.Conv1D(4, 2, 3)(paddle.uniform([2, 4, 8])).shape, [2, 2, 6])
        self.assertEqual(nn.Embedding(10, 4)(paddle.to_tensor([[1, 2, 3]])).shape, [1, 3, 4])
        with self.assertRaises(paddle.UsageError):
            nn.Conv2D(4, 6, 3, groups=4)

    def test_training_and_evaluation(self):
        net = nn.Sequential(nn.BatchNorm1D(3), nn.Dropout(0.5))
        x = paddle.uniform([64, 3])
        self.assertTrue((net(x) == 0).astype("float32").mean().item() > 0.2)
        self.assertNotEqual(net[0].running_mean.tolist(), [0, 0, 0])
        before = net[0].running_mean.tolist()
        net.eval()
        self.assertFalse((net(x) == 0).any().item())
        self.assertEqual(net[0].running_mean.tolist(), before)
        self.assertTrue(net.train()[1].training)

    def test_attributes(self):
        class Net(nn.Layer):
            def __init__(self):
                super().__init__()
                self.first = nn.Linear(2, 2)
                self.shared = self.first
                self.scale = nn.Parameter([1.0])
                self.items = nn.LayerList([nn.ReLU(), nn.Tanh()])

            def forward(self, x):
                for layer in self.items:
                    x = layer(self.first(x))
                return x * self.scale

        net = Net()
        self.assertEqual([name for name, _ in net.named_parameters()], ["scale", "first.weight", "first.bias"])
        self.assertEqual(net(paddle.zeros([1, 2])).shape, [1, 2])
        del net.scale
        with self.assertRaises(AttributeError):
            net.scale
        with self.assertRaisesRegex(NotImplementedError, "Layer.forward"):
            nn.Layer()(1)


class Optimizers(unittest.TestCase):
    def steps(self, make, count=3):
        w = nn.Parameter([1.0, -2.0])
        optimizer = make([w])
        for _ in range(count):
            (w * w).sum().backward()
            optimizer.step()
            optimizer.clear_grad()
        return [round(v, 5) for v in w.tolist()], optimizer, w

    def test_updates(self):
        sgd = self.steps(lambda p: paddle.optimizer.SGD(0.1, parameters=p))[0]
        self.assertEqual(sgd, [0.512, -1.024])
        momentum = self.steps(lambda p: paddle.optimizer.Momentum(0.1, 0.5, parameters=p), 2)[0]
        self.assertEqual(momentum, [0.54, -1.08])  # 1 - 0.2, then 0.8 - 0.1 * (0.5 * 2 + 1.6)
        adam = self.steps(lambda p: paddle.optimizer.Adam(0.1, parameters=p), 1)[0]
        self.assertEqual(adam, [0.9, -1.9])
        adamw = self.steps(lambda p: paddle.optimizer.AdamW(0.1, parameters=p, weight_decay=0.0), 1)[0]
        self.assertEqual(adamw, [0.9, -1.9])

    def test_clipping(self):
        clipped = self.steps(lambda p: paddle.optimizer.SGD(1.0, parameters=p, grad_clip=nn.ClipGradByValue(0.5)), 1)[0]
        self.assertEqual(clipped, [0.5, -1.5])
        clipped = self.steps(lambda p: paddle.optimizer.SGD(1.0, parameters=p, grad_clip=nn.ClipGradByGlobalNorm(5**0.5)),
                             1)[0]
        self.assertEqual(clipped, [0, 0])  # the gradient [2, -4] has twice that norm

    def test_states_continue(self):
        def make(p):
            return paddle.optimizer.Adam(0.1, parameters=p)

        whole = self.steps(make, 4)[0]
        _, first, w = self.steps(make, 2)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "adam.safetensors")
            paddle.save(first.state_dict(), path)
            second = make([w])
            second.set_state_dict(paddle.load(path))
        for _ in range(2):
            (w * w).sum().backward()
            second.step()
            second.clear_grad()
        self.assertEqual([round(v, 5) for v in w.tolist()], whole)

    def test_schedules(self):
        lr = paddle.optimizer.lr
        rates = []
        schedule = lr.LinearWarmup(lr.StepDecay(1.0, 2, 0.1), 2, 0.0, 1.0)
        optimizer = paddle.optimizer.SGD(schedule, parameters=[nn.Parameter([1.0])])
        for _ in range(6):
            rates.append(round(optimizer.get_lr(), 6))
            schedule.step()
        self.assertEqual(rates, [0, 0.5, 1, 1, 0.1, 0.1])
        self.assertAlmostEqual(lr.CosineAnnealingDecay(1.0, 10).rate(5), 0.5)
        with self.assertRaises(paddle.UsageError):
            optimizer.set_lr(1.0)

    def test_errors(self):
        with self.assertRaises(paddle.UsageError):
            paddle.optimizer.SGD(0.1)
        with self.assertRaises(paddle.UsageError):
            paddle.optimizer.SGD(0.1, parameters=[])


class Data(unittest.TestCase):
    def test_data_of_a_config(self):
        data = paddle.io.open("configs/quickstart/digits.yaml", overrides=["data.train.range=[0, 200]"])
        self.assertEqual(len(data), 4)
        self.assertIn("image", data.fields)
        epochs = [[batch["label"].tolist() for batch in data] for _ in range(2)]
        self.assertEqual([len(e) for e in epochs], [4, 4])
        self.assertNotEqual(epochs[0], epochs[1])  # reshuffled
        self.assertEqual(sum(len(labels) for labels in epochs[0]), 200)
        valid = paddle.io.open("configs/quickstart/digits.yaml", "valid")
        self.assertEqual([sum(1 for _ in valid) for _ in range(2)], [10, 10])
        with self.assertRaisesRegex(paddle.UsageError, "test"):
            paddle.io.open("configs/quickstart/digits.yaml", "test")
        with self.assertRaises(paddle.ConfigError):
            paddle.io.open("configs/quickstart/digits.yaml", overrides=["data.batch_sise=3"])

    def test_loader(self):
        x, y = paddle.arange(0, 10, 1).reshape([5, 2]), paddle.to_tensor([0, 1, 2, 3, 4])
        loader = paddle.io.DataLoader(paddle.io.TensorDataset([x, y]), batch_size=2, shuffle=True, seed=1)
        self.assertEqual(len(loader), 3)
        first = [labels.tolist() for _, labels in loader]
        self.assertEqual(sorted(sum(first, [])), [0, 1, 2, 3, 4])
        again = paddle.io.DataLoader(paddle.io.TensorDataset([x, y]), batch_size=2, shuffle=True, seed=1)
        self.assertEqual([labels.tolist() for _, labels in again], first)
        for rows, labels in loader:
            self.assertEqual(rows.tolist(), [[2 * v, 2 * v + 1] for v in labels.tolist()])


class ValuesOfPyTorch(unittest.TestCase):
    """Layers with the weights and the outputs that golden/layers.py computed with PyTorch."""

    def test_all(self):
        with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "golden", "layers.json"), encoding="utf-8") as file:
            cases = json.load(file)
        self.assertGreater(len(cases), 60)
        for case in cases:
            with self.subTest(case["layer"]):
                layer = getattr(nn, case["layer"])(*case["arguments"], **case["named"])
                parameters = dict(layer.named_parameters())
                self.assertEqual(set(parameters), set(case["weights"]))
                for name, value in case["weights"].items():
                    parameters[name].set_value(tensor_of(value))
                inputs = [tensor_of(each) for each in case["inputs"]]
                for call in (layer, paddle.jit.to_static(layer)):
                    found = call(*inputs)
                    while isinstance(found, (tuple, list)):
                        found = found[0]
                    self.assertEqual(found.shape, case["output"]["shape"])
                    for a, b in zip(found.reshape([-1]).tolist(), case["output"]["data"]):
                        self.assertAlmostEqual(a, b, delta=1e-5 * max(1, abs(b)))
                self.assertIsNone(layer.forward.reason)

    def test_attributes(self):
        self.assertEqual(nn.ELU(0.5).extra_repr(), "alpha=0.5")
        for call in (lambda: nn.ELU(1, 2), lambda: nn.ELU(beta=1), lambda: nn.PixelShuffle()):
            self.assertRaises(TypeError, call)
        for call in (lambda: nn.MultiHeadAttention(6, 4), lambda: nn.LSTM(2, 2, direction="up"),
                     lambda: nn.TransformerEncoderLayer(4, 2, 4, activation="none_such")):
            self.assertRaises(paddle.UsageError, call)
        rnn = nn.LSTM(3, 2)
        out, (h, c) = rnn(paddle.ones([1, 4, 3]))
        again, _ = rnn(paddle.ones([1, 2, 3]), initial_states=rnn(paddle.ones([1, 2, 3]))[1])
        self.assertEqual((h.shape, c.shape), ([1, 1, 2], [1, 1, 2]))
        for a, b in zip(again.reshape([-1]).tolist(), out[:, 2:].reshape([-1]).tolist()):
            self.assertAlmostEqual(a, b, places=6)


def tensor_of(stored):
    return paddle.to_tensor(stored["data"], stored["dtype"]).reshape(stored["shape"])


if __name__ == "__main__":
    unittest.main()
