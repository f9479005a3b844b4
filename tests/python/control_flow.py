"""Called by control_flow.sh with an empty folder. Each program is saved once and compared with Python on each input."""
import sys

import paddle_toolchain as paddle
from paddle_toolchain import nn
from programs import PROGRAMS, is_close, values

folder = sys.argv[1]
for number, (function, inputs, spec) in enumerate(PROGRAMS):
    name = getattr(function, "__name__", type(function).__name__)
    path = f"{folder}/{number}"
    try:
        paddle.jit.save(function, path, {"x": spec})
    except Exception as error:
        raise SystemExit(f"{name}: {type(error).__name__}: {error}") from error
    model = paddle.jit.load(path)
    dtype = spec.partition("[")[0]
    if hasattr(function, "eval"):
        function.eval()
    for (data,) in inputs:
        x = paddle.to_tensor(data, dtype)
        wanted, found = values(function(x)), list(model.predict(x).values())
        assert len(wanted) == len(found), name
        for a, b in zip(wanted, found):
            assert is_close(a, b), (name, data, a, b)
print(f"{len(PROGRAMS)} programs")


# --- what cannot be decided in the model is an error at the user's line, never a silent difference ---


def rejects(function, part, spec="float32[n]", kind=paddle.UsageError):
    try:
        paddle.jit.save(function, f"{folder}/bad", {"x": spec})
    except kind as error:
        assert part in str(error), (function.__name__, error)
        return
    raise SystemExit(f"{function.__name__}: '{part}' is missing")


def one_way_only(x):
    if x.sum() > 0:
        y = x
    return y


class Counts(nn.Layer):
    def forward(self, x):
        if x.sum() > 0:
            self.last = x
        return x


class CountsInAMethod(nn.Layer):
    def count(self):
        self.number = 1

    def forward(self, x):
        self.number = 0
        while x.sum() > 10:
            x = x / 2
            self.count()
        return x * self.number


def other_types(x):
    y = x
    if x.sum() > 0:
        y = x.astype("int64")
    return y


def other_objects(x):
    mode = "plain"
    if x.sum() > 0:
        mode = "positive"
    return x if mode == "plain" else x * 2


def grows(x):
    parts = []
    while x.sum() < 10:
        parts.append(x)
        x = x + 1
    return paddle.stack(parts)


def in_place(x):
    y = x * 1
    if x.sum() > 0:
        y.add_(x)
    return y


def returns_sometimes(x):
    if x.sum() > 0:
        return x


def number_of_tensor(x):
    return x * int(x.sum())


def raises_for_some(x):
    if x.sum() > 100:
        raise ValueError("too large")
    return x


GLOBAL = []


def global_list(x):
    if x.sum() > 0:
        GLOBAL.append(1)
    return x


rejects(one_way_only, "'y' is assigned on one way only")
rejects(other_types, "'y' is")
rejects(other_objects, "'mode' differs")
rejects(grows, "'parts'")
rejects(in_place, "written in place")
rejects(returns_sometimes, "returns on some ways only")
rejects(number_of_tensor, "not known while the program is traced")
rejects(raises_for_some, "an exception is raised where")
rejects(global_list, "GLOBAL")
for layer, attribute in ((Counts(), "self.last"), (CountsInAMethod(), "self.number")):
    try:
        paddle.jit.save(layer, f"{folder}/bad", {"x": "float32[n]"})
        raise SystemExit(f"{attribute} was accepted where a tensor decides")
    except paddle.UsageError as error:
        assert f"{attribute} is assigned" in str(error), error


def unbound(x):
    if x.ndim == 2:
        y = x
    return y


rejects(unbound, "cannot access local variable 'y'", kind=UnboundLocalError)
