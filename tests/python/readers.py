"""Called by readers.sh with an empty folder."""
import pathlib
import sys

import paddle_toolchain as paddle

folder = pathlib.Path(sys.argv[1])
CONFIG = """
model:
  name: net
  inputs: {x: "float32[batch, 4]"}
  model: |
    out = linear(x, 3)
  outputs: [out]
loss: cross_entropy(out, y)
optimizer: {name: adam, lr: 0.01}
data:
  batch_size: 16
  shuffle: false
  train: {kind: squares, path: numbers.txt, count: 64}
train: {epochs: 2, log_every: 1}
"""
config = folder / "run.yaml"
config.write_text(CONFIG)
(folder / "numbers.txt").write_text("3 1 4 1 5 9 2 6")


def raises(kind, call, part):
    try:
        call()
    except kind as error:
        assert part in str(error), error
        return
    raise SystemExit(f"{kind.__name__} with '{part}' is missing")


@paddle.data.register("squares")
class Squares:
    fields = ["x: float32[4]", "y: int64[] classes 3"]

    def __init__(self, path: pathlib.Path, count: int, scale: float = 0.5, negative: bool = False):
        assert isinstance(path, pathlib.Path) and isinstance(count, int) and isinstance(negative, bool)
        self.numbers = [int(word) for word in path.read_text().split()]
        self.count, self.scale = count, -scale if negative else scale

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        row = [self.scale * self.numbers[(index + k) % len(self.numbers)] for k in range(4)]
        return {"y": index % 3, "x": row}


def wanted(index, scale=0.5):
    numbers = [3, 1, 4, 1, 5, 9, 2, 6]
    return [scale * numbers[(index + k) % 8] for k in range(4)]


batches = list(paddle.io.open(config))
assert len(batches) == 4 and batches[1]["x"].dtype == "float32" and batches[1]["y"].dtype == "int64"
assert batches[1]["x"].tolist() == [wanted(i) for i in range(16, 32)]
assert batches[1]["y"].tolist() == [i % 3 for i in range(16, 32)]
batch = next(iter(paddle.io.open(config, overrides=["data.train.negative=true", "data.train.scale=2"])))
assert batch["x"].tolist() == [wanted(i, -2) for i in range(16)]
batch = next(iter(paddle.io.open(config, overrides=["data.train.range=[8, 40]"])))
assert batch["x"].tolist() == [wanted(i) for i in range(8, 24)]

# The order of threads changes nothing.
losses = []
for workers in (0, 3):
    run = paddle.Trainer(config, overrides=[f"data.workers={workers}", "data.shuffle=true"], output=folder / f"run{workers}").fit()
    assert run.steps == 8
    losses.append([line["loss"] for line in run.log if line["kind"] == "train"])
assert losses[0] == losses[1] and len(losses[0]) == 8, losses


@paddle.data.register("tests.noise")
class Noise:
    def __init__(self):
        self.fields = ["x: float32[4]", "y: int64[]"]

    def __len__(self):
        return 32

    def read(self, index, seed, epoch):
        return [float(epoch)] * 4, (index + seed) % 3


data = paddle.io.open(config, overrides=["data.train={kind: tests.noise}"])
assert [next(iter(data))["x"][0, 0].item() for _ in range(2)] == [0, 1], "a second epoch draws again"


@paddle.data.register("broken")
class Broken(Squares):
    def __getitem__(self, index):
        if index == 7:
            raise KeyError("seven")
        return super().__getitem__(index)


@paddle.data.register("wrong_shape")
class WrongShape(Squares):
    def __getitem__(self, index):
        return [1.0, 2.0], 0


@paddle.data.register("wrong_name")
class WrongName(Squares):
    def __getitem__(self, index):
        return {"z": 0}


def fit(*changes):
    return lambda: paddle.Trainer(config, overrides=list(changes), output=folder / "bad", overwrite=True).fit()


raises(paddle.DataError, fit("data.train.kind=broken"), "broken sample 7: KeyError: 'seven'")
raises(paddle.DataError, fit("data.train.kind=wrong_shape"), "field 'x': the shape is [2], the reader declares [4]")
raises(paddle.DataError, fit("data.train.kind=wrong_name"), "ValueError: 'z' is not a field, fields are x, y")
raises(paddle.ConfigError, fit("data.train.count=many"), "expected an integer")
raises(paddle.ConfigError, fit("data.train.scales=1"), "scale")
raises(paddle.DataError, fit("data.train.path=none.txt"), "No such file or folder")
raises(paddle.ConfigError, lambda: paddle.data.register("squares")(Squares), "already registered")


class Untyped:
    fields = ["x: float32[4]"]

    def __init__(self, values: list):
        pass


raises(paddle.UsageError, lambda: paddle.data.register("untyped")(Untyped), "values: expected one of the types")


@paddle.data.register("badly_described")
class BadlyDescribed:
    fields = ["x float32"]

    def __len__(self):
        return 1


raises(paddle.DataError, fit("data.train={kind: badly_described}"), "is not a field")
