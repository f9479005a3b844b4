"""LeNet and ResNet-50 in PaddlePaddle, loaded from arrays under the names of our model files.

Layouts of weights agree with ours, so that loading is only naming.
"""
import paddle
import paddle.nn as nn
import paddle.nn.functional as F


class LeNet(nn.Layer):
    def __init__(self, kernel=3, padding=1, activations=False):
        super().__init__()
        self.activations = activations
        self.conv1, self.conv2 = nn.Conv2D(1, 6, kernel, padding=padding), nn.Conv2D(6, 16, 5)
        self.fc = nn.LayerList([nn.Linear(400, 120), nn.Linear(120, 84), nn.Linear(84, 10)])

    def forward(self, image):
        x = F.max_pool2d(F.relu(self.conv1(image)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2).flatten(1)
        for i, layer in enumerate(self.fc):
            x = layer(F.relu(x) if self.activations and i else x)
        return x

    def named(self):
        out = {"conv2d": self.conv1, "conv2d_2": self.conv2}
        return out | {"linear" if i == 0 else f"linear_{i + 1}": layer for i, layer in enumerate(self.fc)}


class Unit(nn.Layer):
    """A convolution and its batch norm."""

    def __init__(self, inputs, outputs, kernel, stride=1):
        super().__init__()
        self.conv = nn.Conv2D(inputs, outputs, kernel, stride, kernel // 2, bias_attr=False)
        self.norm = nn.BatchNorm2D(outputs)

    def forward(self, x):
        return self.norm(self.conv(x))


class Bottleneck(nn.Layer):
    def __init__(self, inputs, mid, stride):
        super().__init__()
        self.units = nn.LayerList([Unit(inputs, mid, 1), Unit(mid, mid, 3, stride), Unit(mid, 4 * mid, 1)])
        self.short = Unit(inputs, 4 * mid, 1, stride) if stride != 1 or inputs != 4 * mid else None

    def forward(self, x):
        y = self.units[2](F.relu(self.units[1](F.relu(self.units[0](x)))))
        return F.relu((self.short(x) if self.short else x) + y)


class ResNet50(nn.Layer):
    def __init__(self, classes=1000):
        super().__init__()
        self.stem = Unit(3, 64, 7, 2)
        self.stages, channels = nn.LayerList(), 64
        for stage, count in enumerate([3, 4, 6, 3]):
            blocks = nn.LayerList()
            for i in range(count):
                blocks.append(Bottleneck(channels, 64 * 2 ** stage, 2 if i == 0 and stage > 0 else 1))
                channels = 256 * 2 ** stage
            self.stages.append(blocks)
        self.fc = nn.Linear(channels, classes)

    def forward(self, image):
        x = F.max_pool2d(F.relu(self.stem(image)), 3, 2, 1)
        for blocks in self.stages:
            for block in blocks:
                x = block(x)
        return self.fc(x.mean((2, 3)))

    def named(self):
        out = {"linear": self.fc}

        def put(path, unit):
            out[path + ".conv2d"], out[path + ".batch_norm"] = unit.conv, unit.norm

        put("conv_bn", self.stem)
        for s, blocks in enumerate(self.stages):
            for b, block in enumerate(blocks):
                for i, unit in enumerate(block.units):
                    put(f"bottleneck.{s}.{b}.conv_bn" + (f"_{i + 1}" if i else ""), unit)
                if block.short:
                    put(f"bottleneck.{s}.{b}.conv_bn_4", block.short)
        return out


NETS = {
    "lenet": (LeNet, lambda p: paddle.optimizer.Adam(1e-3, parameters=p)),
    "lenet_relu": (lambda: LeNet(5, 2, True), None),
    "resnet50": (ResNet50, lambda p: paddle.optimizer.Momentum(0.1, 0.9, parameters=p, weight_decay=1e-4)),
}

STATISTICS = {"running_mean": "_mean", "running_var": "_variance"}


def load(model, weights):
    """Sets every parameter and statistic from arrays; each array must have its place."""
    layers = model.named()
    for name, array in weights.items():
        path, _, leaf = name.rpartition(".")
        getattr(layers[path], STATISTICS.get(leaf, leaf)).set_value(array)
    held = len(model.parameters()) + len(model.buffers())
    if held != len(weights):
        raise SystemExit(f"PaddlePaddle's net holds {held} arrays, the weights are {len(weights)}")
