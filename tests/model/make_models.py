#!/usr/bin/env python3
"""Models of the model language with PyTorch's results.

Each case is a model file and a function that computes the same with PyTorch from the same weights.
Writes good/NAME.yaml (and further files) and good/NAME.npz with the arrays `input.*`, `weight.*`
and `output.*`. `make_models.py --check PADDLE_INFER [NAME…]` runs the program on the cases
instead.

A case's name may end in `@what`: the same model file as the case before the `@`, run another way.
"""
import inspect
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F

torch.set_num_threads(1)
FOLDER = Path(__file__).resolve().parent / "good"
CASES = []


class Weights:
    """Random weights by path, in the order in which the reference asks for them."""

    def __init__(self, seed):
        self.generator = np.random.default_rng(seed)
        self.arrays = {}

    def __call__(self, path, *shape, positive=False, dtype=np.float32):
        if path not in self.arrays:
            value = self.generator.standard_normal(shape) * 0.5
            self.arrays[path] = np.asarray(np.abs(value) + 0.5 if positive else value, dtype)
        return torch.from_numpy(self.arrays[path].copy())

    def linear(self, x, path, out, bias=True):
        y = x @ self(path + ".weight", x.shape[-1], out)
        return y + self(path + ".bias", out) if bias else y

    def conv2d(self, x, path, out, kernel, bias=True, groups=1, **options):
        weight = self(path + ".weight", out, x.shape[1] // groups, kernel, kernel)
        return F.conv2d(x, weight, self(path + ".bias", out) if bias else None, groups=groups, **options)

    def batch_norm(self, x, path):
        size = x.shape[1]
        return F.batch_norm(x, self(path + ".running_mean", size), self(path + ".running_var", size, positive=True),
                            self(path + ".weight", size), self(path + ".bias", size), False, 0.1, 1e-5)

    def layer_norm(self, x, path):
        size = x.shape[-1]
        return F.layer_norm(x, [size], self(path + ".weight", size), self(path + ".bias", size), 1e-5)


def case(name, text, inputs, arguments="", files=None):
    """Registers a case; `inputs` are shapes (float32), or arrays."""

    def register(reference):
        CASES.append((name, inspect.cleandoc(text) + "\n" if text else "", inputs, arguments, files or {}, reference))
        return reference

    return register


def ints(*values):
    return np.asarray(values, np.int64)


# ---- chains ----------------------------------------------------------------------------------


@case("chain_lenet", """
    name: lenet
    inputs:
      image: float32[batch, 1, 28, 28]
    model:
      - conv2d: {out_channels: 6, kernel_size: 3, padding: 1}
      - relu
      - max_pool2d: 2                      # a bare value is the layer's first parameter
      - conv2d: {out_channels: 16, kernel_size: 5}
      - relu
      - max_pool2d: 2
      - flatten: {start_axis: 1}
      - linear: 12
      - linear: 10
    outputs: [logits]
    """, {"image": (2, 1, 28, 28)})
def _(w, image):
    x = F.max_pool2d(F.relu(w.conv2d(image, "conv2d", 6, 3, padding=1)), 2)
    x = F.max_pool2d(F.relu(w.conv2d(x, "conv2d_2", 16, 5)), 2)
    x = w.linear(w.linear(x.flatten(1), "linear", 12), "linear_2", 10)
    return {"logits": x}


@case("chain_residual", """
    inputs: {x: "float32[batch, 4, 8, 8]"}
    blocks:
      residual(x, channels):
        - conv2d: {out_channels: channels, kernel_size: 3, padding: 1}
        - relu
        - add:
          from: [_, x]
    model:
      - conv2d: {out_channels: 6, kernel_size: 3, padding: 1}
        as: skip
      - relu
      - residual: 6                    # a block
      - concat: {axis: 1}
        from: [skip, _]                # _ is the current value
      - max_pool2d: {kernel_size: 2, return_mask: true}
        as: [pooled, places]
      - from: skip                     # alone: continue from there
      - mean: {axis: [2, 3]}
    outputs: [pooled, places, last]
    """, {"x": (2, 4, 8, 8)})
def _(w, x):
    skip = w.conv2d(x, "conv2d", 6, 3, padding=1)
    y = F.relu(skip)
    y = F.relu(w.conv2d(y, "residual.conv2d", 6, 3, padding=1)) + y
    pooled, places = F.max_pool2d(torch.cat([skip, y], 1), 2, return_indices=True)
    return {"pooled": pooled, "places": places.int(), "last": skip.mean([2, 3])}


@case("chain_references", """
    params: {act: relu, classes: 3, width: 2 * 4}
    inputs: {x: "float32[batch, 8]"}
    blocks:
      twice(x, size, act=tanh):
        - linear: size
        - act
        - linear: {out_features: size, name: out}
    model:
      - twice: width
        as: first
      - twice: {size: width, act: act}
      - add:
        from: [first, _]
      - act
      - concat: {axis: 1}
        from: [first, _, x]
      - linear: {out_features: classes, bias: false}
    """, {"x": (3, 8)})
def _(w, x):
    first = w.linear(torch.tanh(w.linear(x, "twice.linear", 8)), "twice.out", 8)
    y = w.linear(F.relu(w.linear(first, "twice_2.linear", 8)), "twice_2.out", 8)
    y = F.relu(first + y)
    return {"output": w.linear(torch.cat([first, y, x], 1), "linear", 3, bias=False)}


@case("chain_two_inputs", """
    inputs: {a: "float32[n, 4]", b: "float32[n, 4]"}
    model:
      - from: a
      - linear: 4
        as: left
      - subtract:
        from: [b, left]
        as: difference
      - matmul: {transpose_y: true}
        from: [difference, a]
    outputs: [difference, product]
    """, {"a": (3, 4), "b": (3, 4)})
def _(w, a, b):
    difference = b - w.linear(a, "linear", 4)
    return {"difference": difference, "product": difference @ a.T}


@case("chain_words_and_text", """
    inputs: {x: "float32[n, 2, 6, 6]"}
    params: {mode: "SAME"}
    model:
      - conv2d: {out_channels: 3, kernel_size: 3, padding: SAME}
      - conv2d: {out_channels: 3, kernel_size: 3, padding: "VALID", name: second}
      - cast: float64
      - cast: {dtype: "float32"}
      - softmax
    """, {"x": (2, 2, 6, 6)})
def _(w, x):
    y = w.conv2d(x, "conv2d", 3, 3, padding=1)
    return {"output": F.softmax(w.conv2d(y, "second", 3, 3), -1)}


@case("chain_lstm_names", """
    inputs: {x: "float32[n, t, 3]"}
    model:
      - lstm: 4
        as: [y, state]
      - linear: 2
    outputs: [z]
    """, {"x": (2, 5, 3)})
def _(w, x):
    cell = torch.nn.LSTM(3, 4, batch_first=True)
    recurrent(w, "lstm", cell)
    return {"z": w.linear(cell(x)[0], "linear", 2)}


def recurrent(w, path, cell):
    with torch.no_grad():
        for name, parameter in cell.named_parameters():
            parameter.copy_(w(f"{path}.{name}", *parameter.shape))


# ---- bodies ----------------------------------------------------------------------------------


@case("body_resnet", """
    name: resnet
    params: {depth: [1, 2], width: 4, classes: 5}
    inputs:
      image: float32[batch, 3, rows, columns]
    blocks:
      conv_bn(x, channels, kernel, stride=1): |
        return batch_norm(conv2d(x, channels, kernel, stride=stride, padding=kernel // 2, bias=false))
      bottleneck(x, mid, stride=1): |
        y = relu(conv_bn(x, mid, 1))
        y = relu(conv_bn(y, mid, 3, stride))
        y = conv_bn(y, 4 * mid, 1)
        if stride != 1 or x.shape[1] != 4 * mid:
          x = conv_bn(x, 4 * mid, 1, stride)
        return relu(x + y)
    model: |
      x = max_pool2d(relu(conv_bn(image, width, 7, 2)), 3, 2, padding=1)
      for stage, count in enumerate(depth):
        for i in range(count):
          x = bottleneck(x, width * 2 ** stage, stride=2 if i == 0 and stage > 0 else 1)
      logits = linear(mean(x, [2, 3]), classes)
    outputs: [logits]
    """, {"image": (2, 3, 33, 30)})
def _(w, image):
    def conv_bn(x, path, channels, kernel, stride=1):
        y = w.conv2d(x, path + ".conv2d", channels, kernel, bias=False, stride=stride, padding=kernel // 2)
        return w.batch_norm(y, path + ".batch_norm")

    def bottleneck(x, path, mid, stride):
        y = F.relu(conv_bn(x, path + ".conv_bn", mid, 1))
        y = F.relu(conv_bn(y, path + ".conv_bn_2", mid, 3, stride))
        y = conv_bn(y, path + ".conv_bn_3", 4 * mid, 1)
        if stride != 1 or x.shape[1] != 4 * mid:
            x = conv_bn(x, path + ".conv_bn_4", 4 * mid, 1, stride)
        return F.relu(x + y)

    x = F.max_pool2d(F.relu(conv_bn(image, "conv_bn", 4, 7, 2)), 3, 2, padding=1)
    for stage, count in enumerate([1, 2]):
        for i in range(count):
            x = bottleneck(x, f"bottleneck.{stage}.{i}", 4 * 2 ** stage, 2 if i == 0 and stage > 0 else 1)
    return {"logits": w.linear(x.mean([2, 3]), "linear", 5)}


@case("body_gpt_tied", """
    params: {layers: 2, heads: 2, width: 8, vocab_size: 11, context: 16}
    inputs: {tokens: "int64[batch, seq]"}
    blocks:
      attention(x): |
        b, s, w = x.shape
        qkv = linear(x, 3 * width).reshape([b, s, 3, heads, width // heads])
        y = scaled_dot_product_attention(qkv[:, :, 0], qkv[:, :, 1], qkv[:, :, 2], is_causal=true)
        return linear(y.reshape([b, s, w]), width)
      mlp(x): return linear(gelu(linear(x, 4 * width), approximate=true), width)
      layer(x): |
        x = x + attention(layer_norm(x))
        return x + mlp(layer_norm(x))
    model: |
      pos = param("pos", [context, width], init=normal(0, 0.02))
      x = embedding(tokens, vocab_size, width, name="tok") + pos[:tokens.shape[1]]
      for i in range(layers):
        x = layer(x)
      logits = layer_norm(x) @ get("tok.weight").transpose([1, 0])
    outputs: [logits]
    """, {"tokens": ints([1, 5, 3, 0], [2, 10, 7, 7])})
def _(w, tokens):
    tok = w("tok.weight", 11, 8)
    x = tok[tokens] + w("pos", 16, 8)[:4]
    for i in range(2):
        path = f"layer.{i}"
        h = w.layer_norm(x, path + ".layer_norm")
        qkv = w.linear(h, path + ".attention.linear", 24).reshape(2, 4, 3, 2, 4).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(qkv[0], qkv[1], qkv[2], is_causal=True)
        x = x + w.linear(y.permute(0, 2, 1, 3).reshape(2, 4, 8), path + ".attention.linear_2", 8)
        h = w.layer_norm(x, path + ".layer_norm_2")
        h = F.gelu(w.linear(h, path + ".mlp.linear_2", 32), approximate="tanh")
        x = x + w.linear(h, path + ".mlp.linear", 8)
    return {"logits": w.layer_norm(x, "layer_norm") @ tok.T}


@case("body_bert", """
    params: {layers: 2, heads: 2, width: 8, vocab_size: 13, positions: 9, classes: 2}
    inputs: {tokens: "int64[batch, length]", mask: "bool[batch, 1, 1, length]"}
    blocks:
      attention(x, mask): |
        split = x.shape[-1] // heads
        q = linear(x, width, name="query").reshape([0, 0, heads, split])
        k = linear(x, width, name="key").reshape([0, 0, heads, split])
        v = linear(x, width, name="value").reshape([0, 0, heads, split])
        scores = matmul(q.transpose([0, 2, 1, 3]), k.transpose([0, 2, 3, 1])) / sqrt(split)
        scores = where(mask, scores, -1e9)
        y = softmax(scores) @ v.transpose([0, 2, 1, 3])
        return linear(y.transpose([0, 2, 1, 3]).flatten(2), width, name="out")
      layer(x, mask): |
        x = layer_norm(x + attention(x, mask))
        return layer_norm(x + linear(gelu(linear(x, 4 * width)), width))
    model: |
      x = embedding(tokens, vocab_size, width, name="words") + param("positions", [positions, width])[:length]
      for i in range(layers):
        x = layer(x, mask)
      logits = linear(layer_norm(x)[:, 0], classes)
    outputs: [logits]
    """, {"tokens": ints([1, 2, 3, 0, 0], [4, 5, 6, 7, 12]),
          "mask": np.asarray([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]], bool).reshape(2, 1, 1, 5)})
def _(w, tokens, mask):
    x = w("words.weight", 13, 8)[tokens] + w("positions", 9, 8)[:5]
    for i in range(2):
        path = f"layer.{i}"
        q, k, v = (w.linear(x, f"{path}.attention.{n}", 8).reshape(2, 5, 2, 4).transpose(1, 2)
                   for n in ("query", "key", "value"))
        scores = torch.where(mask, q @ k.transpose(2, 3) / 2.0, torch.tensor(-1e9))
        y = (F.softmax(scores, -1) @ v).transpose(1, 2).reshape(2, 5, 8)
        x = w.layer_norm(x + w.linear(y, path + ".attention.out", 8), path + ".layer_norm")
        y = w.linear(F.gelu(w.linear(x, path + ".linear_2", 32)), path + ".linear", 8)
        x = w.layer_norm(x + y, path + ".layer_norm_2")
    return {"logits": w.linear(w.layer_norm(x, "layer_norm")[:, 0], "linear", 2)}


@case("body_deepfm", """
    params: {rows: 30, width: 3, fields: 4, numbers: 5, hidden: [7, 6]}
    inputs:
      sparse: int64[batch, fields]
      dense: float32[batch, numbers]
    model: |
      first = sum(embedding(sparse, rows, 1, name="first"), [1, 2]) + squeeze(linear(dense, 1, name="numbers"), [1])
      vectors = embedding(sparse, rows, width, name="vectors")
      pairs = 0.5 * sum(square(sum(vectors, 1)) - sum(square(vectors), 1), 1)
      x = concat([reshape(vectors, [batch, fields * width]), dense], 1)
      for size in hidden:
        x = relu(linear(x, size))
      logit = first + pairs + squeeze(linear(x, 1, name="deep"), [1])
    outputs: [logit]
    """, {"sparse": ints([1, 2, 3, 4], [29, 0, 7, 7]), "dense": (2, 5)})
def _(w, sparse, dense):
    first = w("first.weight", 30, 1)[sparse].sum([1, 2]) + w.linear(dense, "numbers", 1)[:, 0]
    v = w("vectors.weight", 30, 3)[sparse]
    pairs = 0.5 * (v.sum(1) ** 2 - (v ** 2).sum(1)).sum(1)
    x = torch.cat([v.reshape(2, 12), dense], 1)
    for i, size in enumerate([7, 6]):
        x = F.relu(w.linear(x, f"linear_2.{i}", size))
    return {"logit": first + pairs + w.linear(x, "deep", 1)[:, 0]}


@case("body_statements", """
    inputs: {x: "float32[n, 4]"}
    model: |
      # Every statement of the language.
      a = b = x * 2                       # two targets
      (c, d), e = (a, b + 1), x           # unpacking
      c += 1
      c -= 0.5
      c *= 3
      c /= 2
      d **= 2
      k = 7
      k //= 2
      k %= 2
      values = [1, 2,
                3]                        # a line continues inside brackets
      total = 0
      for v in values:
        if v == 2:
          continue
        elif v > 100: break
        else:
          total += v
      i = 0
      while true:
        i += 1
        if i > 3: break
        pass
      y = c + d * total + e / k - i
      y @= transpose(x, [1, 0])
      return y
    """, {"x": (3, 4)})
def _(w, x):
    c = (2 * x + 0.5) * 1.5
    d = (2 * x + 1) ** 2
    return {"output": (c + d * 4 + x / 1 - 4) @ x.T}


@case("body_functions_of_lists", """
    inputs: {x: "float32[n, 3]"}
    model: |
      parts = []
      for i, (a, b) in enumerate(zip([1, 2, 3], (0.5, 1.5, 2.5)), 1):
        parts.append(x * a + b * i)
      last = parts.pop()
      first = parts.pop(0)
      rest = parts + [last]
      numbers = range(10)[2:8:3] + [len(rest), abs(-4), round(2.5), int(3.9), max(2, 7, 3), min([9, 8])]
      scale = sum(numbers) + float(1) + floor(2.9) + ceil(0.1) + sqrt(16) + exp(0) + log(1)
      flag = bool(0) or not (3 in numbers) and "b" not in ["a"] and (1, 2) == (1, 2)
      return sum(rest) * scale + first if flag else sum(rest) * scale - first, concat(rest + [first], axis=1)
    outputs: [y, z]
    """, {"x": (2, 3)})
def _(w, x):
    p = [x * a + b * i for i, (a, b) in enumerate(zip([1, 2, 3], (0.5, 1.5, 2.5)), 1)]
    numbers = [2, 5, 2, 4, 2, 3, 7, 8]
    scale = sum(numbers) + 1.0 + 2 + 1 + 4 + 1 + 0
    flag = False or not (3 in numbers)
    y = (p[1] + p[2]) * scale + (p[0] if flag else -p[0])
    return {"y": y, "z": torch.cat([p[1], p[2], p[0]], 1)}


@case("body_literals", r"""
    inputs: {x: "float32[n]"}
    model: |
      a = 1_000 + 0x10 + 1e-4
      s = "it's\t\"q\"\\\n"
      ok = s == 'it\'s\t"q"\\\n' and True and not False and None is none and s is not none
      return x * a + (1 if ok else 0) + (5 if 1 < 2 <= 2 != 3 else 7) + 2 ** 3 ** 2 - -2 ** 2 + 7 // -2 + -7 % 3
    """, {"x": (3,)})
def _(w, x):
    return {"output": x * (1016 + 1e-4) + 1 + 5 + 512 + 4 - 4 + 2}


@case("body_return_several", """
    inputs: {x: "float32[n, 4]"}
    model: |
      y, (h, c) = relu(x), (x.sum(1), x.max(1))
      return [y, h - c]
    outputs: [y, z]
    """, {"x": (3, 4)})
def _(w, x):
    return {"y": F.relu(x), "z": x.sum(1) - x.max(1).values}


@case("body_one_line", "inputs: {x: 'float32[n, 4]'}\nmodel: return linear(x, 3)", {"x": (3, 4)})
def _(w, x):
    return {"output": w.linear(x, "linear", 3)}


@case("body_scalars_out", """
    inputs: {x: "float32[n, m]"}
    model: |
      return x.shape[0] * m, 2.5, true, x.ndim, len(x), x.sum()
    outputs: [count, half, yes, axes, rows, total]
    """, {"x": (3, 4)})
def _(w, x):
    return {"count": torch.tensor(12), "half": torch.tensor(2.5), "yes": torch.tensor(True),
            "axes": torch.tensor(2), "rows": torch.tensor(3), "total": x.sum()}


@case("body_weak_numbers", """
    inputs: {x: "float32[n]", h: "bfloat16[]", i: "int64[n]"}
    model: |
      a = maximum(x, 1) + where(x > 0, x, 0) + minimum(2, x)
      b = i * 2 + 1
      c = i * 0.5
      d = i / 2
      e = true + x
      return a, b, c, d, e, 1 - x, 2 ** x, 7 // i, i % 3
    outputs: [a, b, c, d, e, f, g, p, q]
    """.replace(', h: "bfloat16[]"', ""), {"x": (4,), "i": ints(1, -2, 3, 5)})
def _(w, x, i):
    one = torch.tensor(1.0)
    return {"a": torch.maximum(x, one) + torch.where(x > 0, x, 0 * one) + torch.minimum(2 * one, x),
            "b": i * 2 + 1, "c": i * 0.5, "d": i / 2, "e": x + 1, "f": 1 - x, "g": 2 ** x,
            "p": 7 // i, "q": i % 3}


@case("body_logic_on_tensors", """
    inputs: {x: "float32[n]"}
    model: |
      inside = x > -0.5 and x < 0.5
      chained = -0.5 < x < 0.5
      outside = not inside or x == 0
      return where(inside, x, 0), chained, outside, x != x, true and inside
    outputs: [a, b, c, d, e]
    """, {"x": (6,)})
def _(w, x):
    inside = (x > -0.5) & (x < 0.5)
    return {"a": torch.where(inside, x, 0 * x), "b": inside, "c": ~inside | (x == 0), "d": x != x, "e": inside}


@case("body_methods", """
    inputs: {x: "float32[n, 4]"}
    model: |
      y = x.reshape([0, 2, 2]).transpose([0, 2, 1]).flatten(1).softmax()
      z = x.mean(0).unsqueeze(0).expand([x.shape[0], x.shape[-1]])
      return y * z, x.max(axis=1), x.argmax(-1), x.abs().sum().sqrt()
    outputs: [y, m, i, s]
    """, {"x": (3, 4)})
def _(w, x):
    y = F.softmax(x.reshape(3, 2, 2).transpose(1, 2).flatten(1), -1)
    return {"y": y * x.mean(0), "m": x.max(1).values, "i": x.argmax(-1), "s": x.abs().sum().sqrt()}


@case("blocks_scopes", """
    params: {width: 4, gain: 3}
    inputs: {x: "float32[n, 4]"}
    blocks:
      scaled(x, gain=gain * 2, shift=width): return x * gain + shift
      chain(x, gain):
        - scaled: {gain: gain}
        - linear: {out_features: width}
      use_both(x): |
        scale = 2                          # hides nothing from the call
        return scale(x, scale, 1.0)
    model: |
      gain_all = scaled(x) + scaled(x, shift=0) + scaled(x, 1, 1)
      relu_of = relu
      return chain(gain_all, 0.5) + use_both(x) + relu_of(x)
    """, {"x": (3, 4)})
def _(w, x):
    total = (6 * x + 4) + 6 * x + (x + 1)
    return {"output": w.linear(total * 0.5 + 4, "chain.linear", 4) + (x * 2 + 1.0) + F.relu(x)}


@case("blocks_named_like_operations", """
    inputs: {x: "float32[n, 4]"}
    blocks:
      relu(x): return x * 2 + abs(x)
      linear(x, k): return x * k
    model: |
      return relu(x) + linear(x, 3)
    """, {"x": (3, 4)})
def _(w, x):
    return {"output": 2 * x + x.abs() + 3 * x}


@case("blocks_return_several", """
    inputs: {x: "float32[n, 4]"}
    blocks:
      split_in_two(x, sizes=[2, 2]): |
        a, b = split(x, sizes, axis=1)
        return a, b
      pick(x): return [x, none, "text", 3, {}]
    model: |
      a, b = split_in_two(x)
      return a * b
    """.replace('      pick(x): return [x, none, "text", 3, {}]\n', ""), {"x": (3, 4)})
def _(w, x):
    return {"output": x[:, :2] * x[:, 2:]}


# ---- references and params --------------------------------------------------------------------


@case("params_maps", """
    params:
      heads: 2
      width: heads * 4
      act: gelu
      cfg: {depth: 2, sizes: [3, width // 2], nested: {gain: 0.5, mode: "text"}}
    variants:
      big: {width: 12, cfg: {depth: 3}}
    inputs: {x: "float32[batch, width]"}
    model: |
      for i in range(cfg.depth):
        x = act(linear(x, width)) * cfg.nested.gain
      if cfg.nested.mode == "text":
        x = linear(x, cfg.sizes[1])
      return x
    """, {"x": (2, 8)})
def _(w, x):
    for i in range(2):
        x = F.gelu(w.linear(x, f"linear.{i}", 8)) * 0.5
    return {"output": w.linear(x, "linear_2", 4)}


@case("params_maps@variant", None, {"x": (2, 12)}, ":big params.act=relu params.cfg.nested.gain=1/4")
def _(w, x):
    for i in range(3):
        x = F.relu(w.linear(x, f"linear.{i}", 12)) * 0.25
    return {"output": w.linear(x, "linear_2", 6)}


@case("params_maps@overrides", None, {"x": (2, 6)},
      "params.width=6 params.cfg.sizes=[1,5] \"params.cfg.nested.mode='text'\"")
def _(w, x):
    for i in range(2):
        x = F.gelu(w.linear(x, f"linear.{i}", 6)) * 0.5
    return {"output": w.linear(x, "linear_2", 5)}


@case("references_as_values", """
    params: {acts: [relu, tanh, wide], table: {first: sigmoid}}
    inputs: {x: "float32[n, 4]"}
    blocks:
      wide(x, size=4): return linear(x, size)
      apply(f, x, times=1): |
        for i in range(times):
          x = f(x)
        return x
    model: |
      for f in acts:
        x = f(x)
      g = linear
      y = g(x, 4) + linear(x, 4) + g(x, 4, name="third")
      return apply(wide, y, times=2) + table.first(y) + (relu if true else tanh)(y) + apply(f=relu, x=y)
    """, {"x": (3, 4)})
def _(w, x):
    x = w.linear(torch.tanh(F.relu(x)), "wide.2.linear", 4)
    y = w.linear(x, "linear", 4) + w.linear(x, "linear_2", 4) + w.linear(x, "third", 4)
    z = w.linear(w.linear(y, "apply.wide.0.linear", 4), "apply.wide.1.linear", 4)
    return {"output": z + torch.sigmoid(y) + F.relu(y) + F.relu(y)}


# ---- files ------------------------------------------------------------------------------------


@case("include_blocks", """
    include: [parts/layers.yaml, parts/more.yaml]
    params: {width: 6}
    inputs: {x: "float32[n, 4]"}
    blocks:
      local(x): return dense(x, width) * gain
    model: |
      return tail(local(x))
    """, {"x": (2, 4)}, files={
    "parts/layers.yaml": "params: {width: 3, gain: 0.5}\nblocks:\n  dense(x, size): return relu(linear(x, size))\n",
    "parts/more.yaml": "include: layers.yaml\nblocks:\n  tail(x): return dense(x, width // 2)\n"})
def _(w, x):
    y = F.relu(w.linear(x, "local.dense.linear", 6)) * 0.5
    return {"output": F.relu(w.linear(y, "tail.dense.linear", 3))}


@case("json_model", None, {"x": (2, 1, 8, 8)}, files={"json_model.json": """{
  "params": {"width": "2 * 3", "mode": "'SAME'", "act": "relu"},
  "inputs": {"x": "float32[n, 1, 8, 8]"},
  "blocks": {"head(x, size=3)": [{"flatten": {}}, {"linear": "size"}]},
  "model": "y = act(conv2d(x, width, 3, padding=mode))\\nreturn head(y)",
  "outputs": ["y"]
}
"""})
def _(w, x):
    y = F.relu(w.conv2d(x, "conv2d", 6, 3, padding=1))
    return {"y": w.linear(y.flatten(1), "head.linear", 3)}


@case("json_model@override", None, {"x": (2, 1, 8, 8)}, "params.width=2 \"params.mode='VALID'\" params.act=tanh")
def _(w, x):
    y = torch.tanh(w.conv2d(x, "conv2d", 2, 3))
    return {"y": w.linear(y.flatten(1), "head.linear", 3)}


@case("functions", """
    params: {width: 5}
    inputs: {x: "float32[n, 4]"}
    blocks:
      encoder(x): return tanh(linear(x, width))
      decoder(z): return linear(z, 4)
    model: return decoder(encoder(x))
    functions:
      encode: {inputs: {x: "float32[m, 4]"}, model: "return encoder(x)", outputs: [code]}
      decode:
        inputs: {code: "float32[n, width]", scale: "float32[]"}
        model: |
          y = decoder(code) * scale
        outputs: [y]
      both:
        inputs: {x: "float32[n, 4]"}
        model:
          - encoder
            
          - decoder
    """.replace("            \n", ""), {"x": (2, 4)})
def _(w, x):
    return {"output": w.linear(torch.tanh(w.linear(x, "encoder.linear", 5)), "decoder.linear", 4)}


@case("functions@encode", None, {"x": (3, 4)}, "--function encode --allow-unused 'decoder.*'")
def _(w, x):
    return {"code": torch.tanh(w.linear(x, "encoder.linear", 5))}


@case("functions@decode", None, {"code": (3, 5), "scale": ()}, "--function decode")
def _(w, code, scale):
    w("encoder.linear.weight", 4, 5)     # belongs to another entry: no surplus
    return {"y": w.linear(code, "decoder.linear", 4) * scale}


@case("functions@both", None, {"x": (3, 4)}, "--function both")
def _(w, x):
    return {"output": w.linear(torch.tanh(w.linear(x, "encoder.linear", 5)), "decoder.linear", 4)}


# ---- names of parameters ------------------------------------------------------------------------


@case("names_occurrences", """
    inputs: {x: "float32[n, 4]"}
    blocks:
      pair(x): return linear(linear(x, 4), 4) + linear(x, 4)
    model: |
      y = linear(x, 4) if false else linear(x, 4)      # by place in the text: linear, linear_2
      for i in range(2):
        for j in range(2):
          y = pair(y) + linear(y, 4, bias=false)
        if i == 1:
          continue
        y = layer_norm(y)
      y = pair(y)
      z = linear(y, weight=param("w", [4, 4]))          # given weights count as well
      return z + linear(y, 4)
    """, {"x": (3, 4)})
def _(w, x):
    def pair(x, path):
        inner = w.linear(x, path + ".linear_2", 4)
        return w.linear(inner, path + ".linear", 4) + w.linear(x, path + ".linear_3", 4)

    y = w.linear(x, "linear_2", 4)
    for i in range(2):
        for j in range(2):
            y = pair(y, f"pair.{i}.{j}") + w.linear(y, f"linear_3.{i}.{j}", 4, bias=False)
        if i == 0:
            y = w.layer_norm(y, "layer_norm.0")
    y = pair(y, "pair_2")
    return {"output": y @ w("w", 4, 4) + w.linear(y, "linear_5", 4)}


@case("names_given", """
    inputs: {x: "float32[n, 4]"}
    blocks:
      mlp(x):
        - linear: {out_features: 4, name: up}
        - relu
        - linear: 4
    model: |
      for i in range(2):
        x = mlp(x, name="block")
      x = mlp(x)
      return linear(x, 3, name="head")
    """, {"x": (3, 4)})
def _(w, x):
    for path in ("block.0", "block.1", "mlp_2"):
        x = w.linear(F.relu(w.linear(x, path + ".up", 4)), path + ".linear_2", 4)
    return {"output": w.linear(x, "head", 3)}


@case("names_shared", """
    inputs: {x: "float32[n, 4]"}
    blocks:
      mlp(x): return relu(linear(x, 4))
    model: |
      for i in range(3):
        x = mlp(x, share="core")
        x = linear(x, 4, share="tied", bias=false)
      x = linear(x, 4, share="tied", bias=false) + mlp(x, share="core")
      return linear(x, 4)
    """, {"x": (3, 4)})
def _(w, x):
    core = lambda x: F.relu(w.linear(x, "core.linear", 4))
    tied = lambda x: w.linear(x, "tied", 4, bias=False)
    for _ in range(3):
        x = tied(core(x))
    return {"output": w.linear(tied(x) + core(x), "linear_3", 4)}


@case("names_params_and_get", """
    inputs: {x: "float32[n, 4]"}
    blocks:
      scaled(x): |
        g = param("gain", [x.shape[-1]], init=ones)
        return x * g
    model: |
      for i in range(2):
        b = param("shift", [4], init=0.1)
        x = scaled(x) + b
        x = x * param("shift", [4])                       # the same parameter
      t = param("table", [4, 2], init=xavier_normal, dtype="float64")
      return x * get("scaled.1.gain") + get("shift.0"), x @ cast(t, "float32")
    outputs: [y, z]
    """, {"x": (3, 4)})
def _(w, x):
    for i in range(2):
        x = x * w(f"scaled.{i}.gain", 4) + w(f"shift.{i}", 4)
        x = x * w(f"shift.{i}", 4)
    table = w("table", 4, 2, dtype=np.float64)
    return {"y": x * w("scaled.1.gain", 4) + w("shift.0", 4), "z": x @ table.float()}


@case("names_while_turns", """
    inputs: {x: "float32[n, 4]"}
    model: |
      i = 0
      while i < 2:
        i += 1
        if i == 2 and false: continue
        x = linear(x, 4)
        for f in [relu, linear]:
          if f != linear: continue
          x = f(x, 4)
      return x
    """, {"x": (3, 4)})
def _(w, x):
    for i in range(2):
        x = w.linear(x, f"linear.{i}", 4)
        x = w.linear(x, f"linear_2.{i}.1", 4)
    return {"output": x}


@case("names_branches", """
    params: {wide: true}
    inputs: {x: "float32[n, 4]"}
    model: |
      if wide:
        y = linear(x, 6)
      else:
        y = linear(x, 5)                                  # not taken, but counted
      return linear(y, 2)
    """, {"x": (3, 4)})
def _(w, x):
    return {"output": w.linear(w.linear(x, "linear", 6), "linear_3", 2)}


@case("names_branches@narrow", None, {"x": (3, 4)}, "params.wide=false")
def _(w, x):
    return {"output": w.linear(w.linear(x, "linear_2", 5), "linear_3", 2)}


# ---- layers -------------------------------------------------------------------------------------


@case("layers_convolutions", """
    inputs: {x: "float32[n, 4, 9]", z: "float32[n, 6, 7, 4]"}
    model: |
      a = conv1d(x, 6, 3, 2, padding=1, groups=2)
      a = conv1d_transpose(a, 3, 4, stride=2, padding=1)
      c = conv2d(z, 4, 3, padding=1, data_format="NHWC", groups=4)
      c = conv2d_transpose(transpose(c, [0, 3, 1, 2]), 2, 3, 2, padding=1, output_padding=1)
      d = conv2d(transpose(z, [0, 3, 1, 2]), 3, 3, padding=1, padding_mode="reflect")
      return a, c, d
    outputs: [a, c, d]
    """, {"x": (2, 4, 9), "z": (2, 6, 7, 4)})
def _(w, x, z):
    a = F.conv1d(x, w("conv1d.weight", 6, 2, 3), w("conv1d.bias", 6), 2, 1, groups=2)
    a = F.conv_transpose1d(a, w("conv1d_transpose.weight", 6, 3, 4), w("conv1d_transpose.bias", 3), 2, 1)
    z = z.permute(0, 3, 1, 2)
    c = w.conv2d(z, "conv2d", 4, 3, groups=4, padding=1)
    c = F.conv_transpose2d(c, w("conv2d_transpose.weight", 4, 2, 3, 3), w("conv2d_transpose.bias", 2), 2, 1, 1)
    d = w.conv2d(F.pad(z, (1, 1, 1, 1), mode="reflect"), "conv2d_2", 3, 3)
    return {"a": a, "c": c, "d": d}


@case("layers_norms", """
    inputs: {x: "float32[n, 6, 5, 4]"}
    model: |
      a = batch_norm(x)
      b = group_norm(x, 3)
      c = instance_norm(x)
      d = layer_norm(x) + layer_norm(x, [5, 4], epsilon=0.1, bias=false)
      e = rms_norm(x)
      f = batch_norm(x, epsilon=1e-3, weight=false, bias=false)
      g = group_norm(x, 2, weight=false, bias=false)
      return a, b, c, d, e, f, g
    outputs: [a, b, c, d, e, f, g]
    """, {"x": (2, 6, 5, 4)})
def _(w, x):
    a = w.batch_norm(x, "batch_norm")
    b = F.group_norm(x, 3, w("group_norm.weight", 6), w("group_norm.bias", 6))
    c = F.instance_norm(x, weight=w("instance_norm.weight", 6), bias=w("instance_norm.bias", 6))
    d = w.layer_norm(x, "layer_norm") + F.layer_norm(x, [5, 4], w("layer_norm_2.weight", 5, 4), None, 0.1)
    e = F.rms_norm(x, [4], w("rms_norm.weight", 4), 1e-5)
    f = F.batch_norm(x, w("batch_norm_2.running_mean", 6), w("batch_norm_2.running_var", 6, positive=True), eps=1e-3)
    return {"a": a, "b": b, "c": c, "d": d, "e": e, "f": f, "g": F.group_norm(x, 2)}


@case("layers_recurrent", """
    inputs: {x: "float32[n, t, 3]"}
    model: |
      y, (h, c) = lstm(x, 4, num_layers=2, direction="bidirect")
      z, g = gru(x, 5)
      u, v = simple_rnn(x, 4, bias=false)
      p, (q, r) = lstm(z, 5, name="next")
      p2, (q2, r2) = lstm(z, 5, share="core")
      return y, h, c, z, g, u, p, r2
    outputs: [y, h, c, z, g, u, p, r2]
    """, {"x": (2, 5, 3)})
def _(w, x):
    nets = {"lstm": torch.nn.LSTM(3, 4, 2, batch_first=True, bidirectional=True),
            "gru": torch.nn.GRU(3, 5, batch_first=True), "simple_rnn": torch.nn.RNN(3, 4, batch_first=True, bias=False),
            "next": torch.nn.LSTM(5, 5, batch_first=True), "core": torch.nn.LSTM(5, 5, batch_first=True)}
    for name, net in nets.items():
        recurrent(w, name, net)
    y, (h, c) = nets["lstm"](x)
    z, g = nets["gru"](x)
    u, v = nets["simple_rnn"](x)
    return {"y": y, "h": h, "c": c, "z": z, "g": g, "u": u, "p": nets["next"](z)[0], "r2": nets["core"](z)[1][1]}


@case("layers_others", """
    inputs: {x: "float32[n, 4, 5]", y: "float32[n, 6]", i: "int64[n, 2]"}
    model: |
      a = prelu(x) + prelu(x, 4)
      b = bilinear(x[:, :, 0], y, 3)
      c = embedding(i, 9, 3)
      d = embedding(i, 9, 3, padding_idx=1)
      e = dropout(x, 0.5) + dropout(x, 0.3, training=false) + flatten(x).unsqueeze(-1).mean()
      f = softmax(x) + log_softmax(x, axis=1)
      g = max_pool1d(x, 2) + avg_pool1d(x, 2)
      h = adaptive_avg_pool1d(x, 2)
      k = leaky_relu(y, 0.2) + elu(y) + hardswish(y) + silu(y) + softplus(y) + gelu(y, approximate=true)
      return a, b, c, d, e, f, g, h, k
    outputs: [a, b, c, d, e, f, g, h, k]
    """, {"x": (2, 4, 5), "y": (2, 6), "i": ints([0, 1], [8, 1])})
def _(w, x, y, i):
    a = F.prelu(x, w("prelu.weight", 1)) + F.prelu(x, w("prelu_2.weight", 4))
    b = F.bilinear(x[:, :, 0], y, w("bilinear.weight", 3, 4, 6)) + w("bilinear.bias", 3)
    d = w("embedding_2.weight", 9, 3)[i] * (i != 1)[..., None]
    return {"a": a, "b": b, "c": w("embedding.weight", 9, 3)[i], "d": d, "e": 2 * x + x.mean(),
            "f": F.softmax(x, -1) + F.log_softmax(x, 1), "g": F.max_pool1d(x, 2) + F.avg_pool1d(x, 2),
            "h": F.adaptive_avg_pool1d(x, 2),
            "k": F.leaky_relu(y, 0.2) + F.elu(y) + F.hardswish(y) + F.silu(y) + F.softplus(y) + F.gelu(y, approximate="tanh")}


@case("layers_given_weights", """
    inputs: {x: "float32[n, 4]", image: "float32[n, 3, 5, 5]", i: "int64[n]"}
    model: |
      w = param("w", [4, 4])
      b = param("b", [4])
      y = linear(x, weight=w) + linear(x, weight=w, bias=b) + linear(x, bias=b, out_features=4)
      k = param("k", [2, 3, 3, 3])
      c = conv2d(image, weight=k, padding=1) + conv2d(image, weight=k, bias=param("kb", [2]), padding=1)
      e = embedding(i, weight=w)
      l = layer_norm(x, weight=b) + layer_norm(x, weight=b, bias=b)
      m = batch_norm(image, running_mean=param("rm", [3]), running_var=param("rv", [3], init=ones), weight=param("bw", [3]))
      return y, c, e, l, m
    outputs: [y, c, e, l, m]
    """, {"x": (2, 4), "image": (2, 3, 5, 5), "i": ints(3, 0)})
def _(w, x, image, i):
    weight, b, k = w("w", 4, 4), w("b", 4), w("k", 2, 3, 3, 3)
    y = x @ weight + (x @ weight + b) + (x @ w("linear_3.weight", 4, 4) + b)
    c = F.conv2d(image, k, padding=1) + F.conv2d(image, k, w("kb", 2), padding=1)
    n = F.layer_norm(x, [4], b) + F.layer_norm(x, [4], b, b)
    m = F.batch_norm(image, w("rm", 3), w("rv", 3, positive=True), w("bw", 3))
    return {"y": y, "c": c, "e": weight[i], "l": n, "m": m}


@case("layers_positions", """
    inputs: {x: "float32[t, n, 3]", image: "float32[n, 5, 6, 4]", cube: "float32[n, 2, 5, 6, 7]"}
    model: |
      y, (h, c) = lstm(x, 4, 2, "forward", true)                 # time comes first
      z = simple_rnn(x, 4, 1, "bidirect", true, 0.0, "relu")[0]
      a = conv2d(image, 3, 3, 1, 1, 1, 1, "zeros", "NHWC")
      b = batch_norm(image, 0.9, 1e-3, "NHWC")
      d = conv3d(cube, 4, [1, 2, 3], 1, [0, 1, 1], [1, 2, 1], 2)
      d = conv3d_transpose(d, 3, 2, bias=false)
      return y, h, z, a, b, d
    outputs: [y, h, z, a, b, d]
    """, {"x": (5, 2, 3), "image": (2, 5, 6, 4), "cube": (2, 2, 5, 6, 7)})
def _(w, x, image, cube):
    long, simple = torch.nn.LSTM(3, 4, 2), torch.nn.RNN(3, 4, 1, nonlinearity="relu", bidirectional=True)
    recurrent(w, "lstm", long)
    recurrent(w, "simple_rnn", simple)
    y, (h, c) = long(x)
    turned = image.permute(0, 3, 1, 2)
    a = w.conv2d(turned, "conv2d", 3, 3, padding=1).permute(0, 2, 3, 1)
    b = F.batch_norm(turned, w("batch_norm.running_mean", 4), w("batch_norm.running_var", 4, positive=True),
                     w("batch_norm.weight", 4), w("batch_norm.bias", 4), eps=1e-3).permute(0, 2, 3, 1)
    d = F.conv3d(cube, w("conv3d.weight", 4, 1, 1, 2, 3), w("conv3d.bias", 4), 1, (0, 1, 1), (1, 2, 1), 2)
    d = F.conv_transpose3d(d, w("conv3d_transpose.weight", 4, 3, 2, 2, 2))
    return {"y": y, "h": h, "z": simple(x)[0], "a": a, "b": b, "d": d}


@case("layers_initializers", """
    inputs: {x: "float32[n, 2]"}
    model: |
      a = linear(x, 3, weight_init=ones, bias_init=0.5)
      b = linear(x, 2, weight_init=assign([[1, 2], [3, 4]]), bias_init=assign([5, -6]))
      c = param("c", [2], init=uniform(0.25, 0.25)) + param("d", [2], init=normal(3, 0)) + param("e", [2], init=zeros)
      s = state("s", [2], init=7)
      q = param("q", [3, 3], init=orthogonal)
      return a, b, c + s, q @ q.transpose([1, 0])
    outputs: [a, b, c, q]
    """, {"x": (2, 2)}, "--allow-missing '*'")
def _(w, x):
    a = x @ torch.ones(2, 3) + 0.5
    b = x @ torch.tensor([[1.0, 2], [3, 4]]) + torch.tensor([5.0, -6])
    return {"a": a, "b": b, "c": torch.full((2,), 10.25), "q": torch.eye(3)}


# ---- dims ---------------------------------------------------------------------------------------


@case("dims_arithmetic", """
    inputs: {x: "float32[batch, rows, columns]", y: "float32[batch, 2 * rows + 1]", z: "float32[max(rows, columns)]"}
    model: |
      half = columns // 2
      rest = columns % 2
      a = x.reshape([batch * rows, columns])[:, :half + rest]
      b = concat([x, zeros([batch, rows, 3])], axis=2)
      c = reshape(b, [batch, rows * (columns + 3)])
      d = y[:, rows:].sum(1) * rows + batch - columns
      e = arange(rows) + z.shape[0] * (rows - 1) ** 2
      f = x.mean() * max(rows, 2) / sqrt(float(2)) if x.shape[0] == batch else x
      return a, c, d, e, f, z[:min(rows, columns)]
    outputs: [a, c, d, e, f, g]
    """, {"x": (2, 3, 5), "y": (2, 7), "z": (5,)})
def _(w, x, y, z):
    c = torch.cat([x, torch.zeros(2, 3, 3)], 2).reshape(2, 24)
    return {"a": x.reshape(6, 5)[:, :3], "c": c, "d": y[:, 3:].sum(1) * 3 + 2 - 5, "e": torch.arange(3) + 5 * 4,
            "f": x.mean() * 3 / 2 ** 0.5, "g": z[:3]}


@case("dims_as_tensors", """
    inputs: {x: "float32[batch, width]"}
    model: |
      y = x.sum(1) / float(4) * width
      return y + batch, where(x > 0, width, batch), full([batch, 2], 3.5), x * (width - 1) + maximum(batch, 3)
    outputs: [a, b, c, d]
    """.replace(" / float(4)", ""), {"x": (2, 4)})
def _(w, x):
    return {"a": x.sum(1) * 4 + 2, "b": torch.where(x > 0, 4, 2), "c": torch.full((2, 2), 3.5), "d": x * 3 + 3}


@case("dims_static", """
    inputs: {x: "float32[batch, seq, 4]"}
    model: |
      h = zeros([batch, 4])
      for t in range(static(seq)):
        h = tanh(linear(x[:, t], 4, share="in") + linear(h, 4, share="carry", bias=false))
      if static(batch) > 2:
        h = h * 2
      return h
    """, {"x": (2, 5, 4)})
def _(w, x):
    h = torch.zeros(x.shape[0], 4)
    for t in range(x.shape[1]):
        h = torch.tanh(w.linear(x[:, t], "in", 4) + w.linear(h, "carry", 4, bias=False))
    return {"output": h * 2 if x.shape[0] > 2 else h}


@case("dims_static@longer", None, {"x": (3, 7, 4)})
def _(w, x):
    h = torch.zeros(3, 4)
    for t in range(7):
        h = torch.tanh(w.linear(x[:, t], "in", 4) + w.linear(h, "carry", 4, bias=False))
    return {"output": h * 2}


@case("dims_zero_and_scalars", """
    inputs: {x: "float32[n, 3]", k: "float32[]"}
    model: |
      return relu(x) * k, x.sum(0), concat([x, x], 0)
    outputs: [a, b, c]
    """, {"x": (0, 3), "k": ()})
def _(w, x, k):
    return {"a": F.relu(x) * k, "b": x.sum(0), "c": torch.cat([x, x])}


# ---- control flow on tensors --------------------------------------------------------------------


@case("flow_if", """
    inputs: {x: "float32[n, 4]", k: "int64[]"}
    model: |
      scale = 1
      if k > 2:
        y = linear(x, 4)
        scale = 2.5
      elif k > 0:
        y = relu(x)
        x[:, 0] = 7                          # stays inside, unless k is 1 or 2
      else:
        y = linear(x, 4)
        y[0] = 0
      z = x if k else -x
      return y * scale, z, k + scale
    outputs: [y, z, s]
    """, {"x": (3, 4), "k": np.int64(1)})
def _(w, x, k):
    w.linear(x, "linear", 4)
    w.linear(x, "linear_2", 4)
    y = F.relu(x)
    x = x.clone()
    x[:, 0] = 7
    return {"y": y, "z": x, "s": torch.tensor(2.0)}


@case("flow_if@first", None, {"x": (3, 4), "k": np.int64(3)})
def _(w, x, k):
    y = w.linear(x, "linear", 4) * 2.5
    w.linear(x, "linear_2", 4)
    return {"y": y, "z": x, "s": torch.tensor(5.5)}


@case("flow_if@last", None, {"x": (3, 4), "k": np.int64(0)})
def _(w, x, k):
    w.linear(x, "linear", 4)
    y = w.linear(x, "linear_2", 4)
    y[0] = 0
    return {"y": y, "z": -x, "s": torch.tensor(1.0)}


@case("flow_while", """
    inputs: {x: "float32[n, 4]", steps: "int64[]"}
    model: |
      i = 0
      total = 0.0
      seen = [x, x * 0]
      while i < steps and total < 100:
        x = tanh(linear(x, 4))               # one layer: a loop on a tensor adds no index
        total += x.abs().sum()
        seen[1] = seen[1] + x
        i += 1
      return x, total, i, seen[1]
    outputs: [x, total, turns, seen]
    """, {"x": (3, 4), "steps": np.int64(3)})
def _(w, x, steps):
    total, seen = torch.tensor(0.0), x * 0
    for _ in range(int(steps)):
        x = torch.tanh(w.linear(x, "linear", 4))
        total, seen = total + x.abs().sum(), seen + x
    return {"x": x, "total": total, "turns": torch.tensor(int(steps)), "seen": seen}


@case("flow_while@none", None, {"x": (3, 4), "steps": np.int64(0)})
def _(w, x, steps):
    w.linear(x, "linear", 4)
    return {"x": x, "total": torch.tensor(0.0), "turns": torch.tensor(0), "seen": x * 0}


FLOW_JUMPS = """
    inputs: {x: "float32[n]", limit: "float32[]"}
    blocks:
      first_above(x, limit): |
        i = 0
        while i < x.shape[0]:
          if x[i] > limit:
            return i
          i += 1
        return -1
      unrolled(x, limit): |
        s = 0.0
        for k in range(4):
          if s > limit:
            return s * 10
          s = s + k
        return s
    model: |
      total = 0.0
      i = 0
      while i < x.shape[0]:
        v = x[i]
        i += 1
        if v < 0:
          continue
        if total + v > limit:
          break
        total += v
      steps = 0
      for k in range(5):
        if limit < k:
          break
        if limit == k:
          continue
        steps += 1
      return total, i, steps, first_above(x, limit), unrolled(x, limit)
    outputs: [total, turns, steps, first, unrolled]
    """


def flow_jumps(w, x, limit):
    def first_above():
        for i in range(len(x)):
            if x[i] > limit:
                return i
        return -1

    def unrolled():
        s = 0.0
        for k in range(4):
            if s > limit:
                return s * 10
            s += k
        return s

    total, i = torch.tensor(0.0), 0
    while i < len(x):
        v = x[i]
        i += 1
        if v < 0:
            continue
        if total + v > limit:
            break
        total += v
    steps = 0
    for k in range(5):
        if limit < k:
            break
        if limit == k:
            continue
        steps += 1
    return {"total": total, "turns": torch.tensor(i), "steps": torch.tensor(steps),
            "first": torch.tensor(first_above()), "unrolled": torch.tensor(float(unrolled()))}


FLOW_X = np.asarray([0.5, -1, 0.75, 2, 0.25, -3, 4, 1], np.float32)
case("flow_jumps", FLOW_JUMPS, {"x": FLOW_X, "limit": np.float32(2)})(flow_jumps)
case("flow_jumps@high", None, {"x": FLOW_X, "limit": np.float32(100)})(flow_jumps)
case("flow_jumps@low", None, {"x": FLOW_X, "limit": np.float32(-1)})(flow_jumps)


@case("flow_nested_loops", """
    inputs: {x: "float32[n]", k: "int64[]"}
    model: |
      i = 0
      count = 0
      s = x * 0
      while i < k:
        j = 0
        while true:
          j += 1
          if j > i: break
          if j == 2: continue
          s = s + x * j
          count += 1
          for m in range(3):
            if count > 4: break
            s = s + m
        i += 1
      return s, count
    outputs: [s, count]
    """, {"x": (3,), "k": np.int64(4)})
def _(w, x, k):
    i = count = 0
    s = x * 0
    while i < int(k):
        j = 0
        while True:
            j += 1
            if j > i:
                break
            if j == 2:
                continue
            s = s + x * j
            count += 1
            for m in range(3):
                if count > 4:
                    break
                s = s + m
        i += 1
    return {"s": s, "count": torch.tensor(count)}


@case("flow_early_return", """
    inputs: {x: "float32[n]", k: "int64[]"}
    model: |
      if k > 0:
        if k > 5: return x * 5, 1
        x = x + 1
      elif k < -3:
        return -x, 2.5
      y = x * 2
      if x.sum() > 1000: return y, 3
      return y - 1, 4
    outputs: [y, code]
    """, {"x": (3,), "k": np.int64(2)})
def _(w, x, k):
    return {"y": (x + 1) * 2 - 1, "code": torch.tensor(4.0)}


@case("flow_early_return@negative", None, {"x": (3,), "k": np.int64(-4)})
def _(w, x, k):
    return {"y": -x, "code": torch.tensor(2.5)}


@case("flow_sizes_known_at_run_time", """
    inputs: {x: "float32[n]", k: "int64[]"}
    model: |
      if k > 0:
        y = x[x > 0]
      else:
        y = x * 1
      return y.sum() + y.shape[0], y
    outputs: [s, y]
    """.replace(" + y.shape[0]", ""), {"x": FLOW_X, "k": np.int64(1)})
def _(w, x, k):
    return {"s": x[x > 0].sum(), "y": x[x > 0]}


@case("flow_states", """
    inputs: {x: "float32[n, 4]", k: "int64[]"}
    model: |
      s = state("count", [], init=2, scope="sequence")
      if x.sum() > 0:
        update(s, s + 10)
        t = state("count", [], init=2, scope="sequence")
      else:
        t = s * 3
      i = 0
      while i < k:
        update(state("count", [], init=2, scope="sequence"), get("count") + i)
        late = state("late", [4], scope="sequence")
        update(late, late + x[i])
        i += 1
      return x * 0 + get("count"), t, get("late")
    outputs: [y, t, late]
    """, {"x": np.ones((3, 4), np.float32), "k": np.int64(3)})
def _(w, x, k):
    s = w("count") + 10
    return {"y": x * 0 + s + 3, "t": s, "late": w("late", 4) + x.sum(0)}


# ---- states -------------------------------------------------------------------------------------


@case("states", """
    inputs: {x: "float32[n, 4]"}
    model: |
      mean = state("mean", [4])
      if training:
        mean = update(mean, 0.9 * mean + 0.1 * detach(x.mean(0)))
      for i in range(2):
        carry = state("carry", [4], init=0, scope="sequence")
        new = update(carry, carry * 2 + i + 1)
        x = x + new
      return x - mean, get("carry.0") + get("carry.1")
    outputs: [y, c]
    """, {"x": (3, 4)})
def _(w, x):
    carry = [2 * w(f"carry.{i}", 4) + i + 1 for i in range(2)]
    return {"y": x + carry[0] + carry[1] - w("mean", 4), "c": carry[0] + carry[1]}


# ---- indexing -----------------------------------------------------------------------------------


def indexing(name, text_of, evaluate, extra=None):
    lines = inspect.cleandoc(text_of).splitlines()
    body = "\n".join(f"  r{i} = {line}" for i, line in enumerate(lines))
    names = ", ".join(f"r{i}" for i in range(len(lines)))
    text = ("inputs: {x: 'float32[a, b, c, d]', i: 'int64[p]', j: 'int64[q, p]', k: 'int64[]', m: 'bool[a, b]'}\n"
            f"model: |\n{body}\noutputs: [{names}]")

    @case(name, text, {"x": (3, 4, 5, 6), "i": ints(2, 0, -1), "j": ints([0, 1, 2], [2, 2, -3]), "k": np.int64(2),
                       "m": np.asarray([[1, 0, 0, 1], [0, 0, 0, 0], [1, 1, 1, 0]], bool)})
    def reference(w, x, i, j, k, m):
        scope = {"x": x, "i": i, "j": j, "k": int(k), "m": m, "none": None, "torch": torch,
                 "true": True, "false": False}
        return {f"r{n}": torch.as_tensor(eval(line if evaluate is None else evaluate(line), scope))
                for n, line in enumerate(lines)}


indexing("index_basic", """
    x[0]
    x[-1, :, 2]
    x[..., 1:3]
    x[0, ..., -1]
    x[:, none, 1:, none, ::2]
    x[1:-1, 3:1, :, 5]
    x[:, 1:100]
    x[none]
    x[...]
    x[0][1][2][3]
    x[:2][:, 1:][..., 0]
    x[-2:, -3:-1]
    """, None)
indexing("index_reversed", """
    x[:, ::-1]
    x[..., ::-2]
    x[:, 3:0:-1, 4:1:-2]
    x[:, :, 1::-1]
    x[:, -1:-3:-1]
    """, lambda line: "torch.from_numpy(" + line.replace("x[", "x.numpy()[") + ".copy())")
indexing("index_tensors", """
    x[i]
    x[:, i]
    x[:, :, i]
    x[i, i]
    x[:, i, i]
    x[j]
    x[i, j]
    x[[0, 2]]
    x[[0, 2], [1, 3]]
    x[:, [[0, 1], [2, 3]]]
    x[..., i]
    x[i, ..., i]
    x[i, :, i]
    x[:, i, :, j]
    x[i, none, i]
    x[0, :, i]
    x[i, 1]
    x[i, 1, :, 2]
    x[i, 1, i]
    x[:, i, 1:3]
    x[none, i]
    x[i[:, none], i]
    x[i, :, 2]
    x[:, 0, :, i]
    """, None)
indexing("index_masks", """
    x[m]
    x[x > 0]
    x[m, 1:3]
    x[:, m[0]]
    x[:, m[0], 1]
    x[i > 0]
    x[:, :, [true, false, true, true, false]]
    x[m[:, 0], :, 2]
    x[m, 1]
    x[i > -5, i]
    x[..., x[0, 0, 0] > 0]
    """, None)
indexing("index_scalars", """
    x[k]
    x[:, k]
    x[:, :k]
    x[k:, 1:k + 1]
    x[:, :, -k:]
    x[1, k, k]
    x[:, k - 4]
    x[i[0]]
    x[..., k:k + 2]
    """, None)


@case("index_assignment", """
    inputs: {x: "float32[a, b, c]", i: "int64[d]", k: "int64[]", m: "bool[a, b]"}
    model: |
      y = x * 1
      y[0] = 1
      y[:, 1] = 2.5
      y[..., -1] += 3
      y[1:, 2:4, ::2] = x[:2, :2, ::2]
      v = y[2]                       # a view
      v[0, 0] = 100
      v[:, 1] *= 2
      z = x * 1
      z[i] = x[0]
      z[:, i] += 1
      z[i, i] = 7
      z[:, k] = k
      z[k, 1:k] = -5
      u = x * 1
      u[u > 0] = 0
      u[m] = -1
      u[m, 0] = 9
      u[:, m[0]] += 5
      t = x * 1
      t[i, :, i] = 8
      t[[0, 1], :, [2, 3]] += x[:2, :, 0]
      t[none, 0] = 4
      p = x * 1
      p[x > 0] = x[x > 0] * 2
      p[..., 0], q = 3, p[..., 0]
      x[:] = 0                       # the caller's array stays
      return y, z, u, t, p, q, x
    outputs: [y, z, u, t, p, q, x2]
    """, {"x": (3, 4, 5), "i": ints(2, 0), "k": np.int64(2),
          "m": np.asarray([[1, 0, 0, 1], [0, 0, 0, 0], [1, 1, 1, 0]], bool)})
def _(w, x, i, k, m):
    y = x.clone()
    y[0] = 1
    y[:, 1] = 2.5
    y[..., -1] += 3
    y[1:, 2:4, ::2] = x[:2, :2, ::2]
    y[2][0, 0] = 100
    y[2][:, 1] *= 2
    z = x.clone()
    z[i] = x[0]
    z[:, i] += 1
    z[i, i] = 7
    z[:, 2] = 2
    z[2, 1:2] = -5
    u = x.clone()
    u[u > 0] = 0
    u[m] = -1
    u[m, 0] = 9
    u[:, m[0]] += 5
    t = x.clone()
    t[i, :, i] = 8
    t[[0, 1], :, [2, 3]] += x[:2, :, 0]
    t[None, 0] = 4
    p = x.clone()
    p[x > 0] = x[x > 0] * 2
    q = p[..., 0].clone()
    p[..., 0] = 3
    return {"y": y, "z": z, "u": u, "t": t, "p": p, "q": p[..., 0], "x2": x * 0}


@case("index_lists", """
    inputs: {x: "float32[n, 4]"}
    model: |
      l = [1, [2, 3], "text"]
      l[0] = 5
      l[1][-1] += 10
      k = l
      k.append(x.sum())
      t = (4, 5, 6)[::-1]
      s = "abcdef"[1:4:2]
      ok = s == "bd" and l[2][0] == "t" and len(l) == 4
      a = l[3] * l[0] + l[1][1] + t[0] + (1 if ok else 0)
      x[0, 1:3] = [7, 8]
      return a, x
    outputs: [a, x2]
    """.replace("      x[0, 1:3] = [7, 8]\n", "      x[0, 1:3] = 7\n"), {"x": (3, 4)})
def _(w, x):
    y = x.clone()
    y[0, 1:3] = 7
    return {"a": x.sum() * 5 + 13 + 6 + 1, "x2": y}


# ---- differentiation in the model ----------------------------------------------------------------


@case("operations_by_method_and_name", """
    inputs: {x: "float32[n, 4]", y: "int64[n]"}
    model: |
      a = cross_entropy(x, y)
      b = one_hot(y, 4).astype("float32") if false else cast(one_hot(y, 4), "float32")
      c = einsum("ij,kj->ik", x, x)
      d, e = topk(x, 2)
      f = stack([x[:, 0], x[:, 1]], axis=1)
      g, h = split(x, 2, axis=1)
      o = x.clip(-0.5, 0.5).cumsum(axis=1)
      return a, b, c, d, e, f, g + h, o
    outputs: [a, b, c, d, e, f, g, o]
    """.replace('one_hot(y, 4).astype("float32") if false else ', ""), {"x": (3, 4), "y": ints(1, 0, 3)})
def _(w, x, y):
    d, e = torch.topk(x, 2)
    return {"a": F.cross_entropy(x, y), "b": F.one_hot(y, 4).float(), "c": x @ x.T, "d": d, "e": e,
            "f": x[:, :2], "g": x[:, :2] + x[:, 2:], "o": x.clamp(-0.5, 0.5).cumsum(1)}


@case("distributions_by_name", """
    inputs: {x: "float32[n, 3]", mu: "float32[n, 3]", sigma: "float32[3]"}
    model: |
      p = normal(0, 1)
      q = normal(mu, exp(sigma))           # a random tensor that knows what it was drawn from
      density = p.log_prob(x)
      posterior = q.log_prob(x)
      divergence = q.kl_divergence(p)
      both = kl_divergence(q, p)
      information = laplace(mu, exp(sigma)).entropy()
      spread = gamma(concentration=2.0, rate=exp(sigma)).variance
      middle = lognormal(mean=mu, std=0.5).mean
      below = gumbel(mu, 2).cdf(x)
      where_from = q.loc + q.scale
      chosen = categorical([1, 2, 5]).log_prob([0, 2])
      thrown = multinomial(3, [1, 1, 2]).log_prob([1, 0, 2])
      coin = bernoulli(logits=x).log_prob(x > 0)
      joint = multivariate_normal([0, 1, 2], scale_tril=[[1, 0, 0], [0.5, 2, 0], [0, 0, 1]]).log_prob(x)
    outputs: [density, posterior, divergence, both, information, spread, middle, below, where_from, chosen, thrown, coin, joint]
    """, {"x": (4, 3), "mu": (4, 3), "sigma": (3,)})
def distributions_by_name(w, x, mu, sigma):
    D = torch.distributions
    scale = sigma.exp()
    p, q = D.Normal(0.0, 1.0), D.Normal(mu, scale)
    kl = D.kl_divergence(q, D.Normal(torch.zeros(3), torch.ones(3)))
    loc, factor = torch.tensor([0.0, 1, 2]), torch.tensor([[1.0, 0, 0], [0.5, 2, 0], [0, 0, 1]])
    names = ("density", "posterior", "divergence", "both", "information", "spread", "middle", "below", "where_from", "chosen", "thrown", "coin", "joint")
    values = (p.log_prob(x), q.log_prob(x), kl, kl, D.Laplace(mu, scale).entropy(), D.Gamma(torch.full((3,), 2.0), scale).variance,
            D.LogNormal(mu, 0.5).mean, D.Gumbel(mu, 2.0).cdf(x), mu + scale, D.Categorical(torch.tensor([1.0, 2, 5])).log_prob(torch.tensor([0, 2])),
            D.Multinomial(3, torch.tensor([1.0, 1, 2])).log_prob(torch.tensor([1.0, 0, 2])),
            D.Bernoulli(logits=x).log_prob((x > 0).float()), D.MultivariateNormal(loc, scale_tril=factor).log_prob(x))
    return dict(zip(names, values))


@case("distributions_composed", """
    inputs: {x: "float32[n, 3]", y: "float32[n, 4]"}
    blocks:
      kl_gumbel_normal(p, q): |
        return p.mean - q.loc                # a rule for a pair that has none
    model: |
      base = normal(zeros([3]), 2)
      rows = independent(base, 1)
      together = rows.log_prob(x)
      exponential_of = transformed_distribution(base, [exp_transform()]).log_prob(exp(x))
      steps = chain_transform([affine_transform(1, 2), tanh_transform()])
      squashed = steps.forward(x * 0.1)
      change = steps.forward_log_det_jacobian(x * 0.1)
      simplex = transformed_distribution(base, [stick_breaking_transform()])
      stick = simplex.log_prob(softmax(y))
      per_column = stack_transform([exp_transform(), sigmoid_transform(), affine_transform(0, -1)], axis=1).forward(x)
      flat = independent_transform(exp_transform(), 1).forward_log_det_jacobian(x)
      square = reshape_transform([4], [2, 2]).forward(y)
      back = reshape_transform([4], [2, 2]).inverse(square)
      of_rows = independent(normal(x, 1), 1).kl_divergence(independent(normal(0 * x, 2), 1))
      ruled = gumbel(x, 1).kl_divergence(normal(loc=1.0, scale=1.0))
      sizes = x * (len(rows.batch_shape) + 10 * rows.event_shape[0]) + simplex.event_shape[0]
    outputs: [together, exponential_of, squashed, change, stick, per_column, flat, square, back, of_rows, ruled, sizes]
    """, {"x": (5, 3), "y": (5, 4)})
def distributions_composed(w, x, y):
    D = torch.distributions
    base = D.Normal(torch.zeros(3), 2.0)
    chain = D.ComposeTransform([D.AffineTransform(1.0, 2.0), D.TanhTransform()])
    at = x * 0.1
    simplex = D.TransformedDistribution(base, [D.StickBreakingTransform()])
    stacked = torch.stack([x[:, 0].exp(), x[:, 1].sigmoid(), -x[:, 2]], 1)
    rows = [D.Independent(D.Normal(x, 1.0), 1), D.Independent(D.Normal(0 * x, 2.0), 1)]
    names = ("together", "exponential_of", "squashed", "change", "stick", "per_column", "flat", "square", "back", "of_rows", "ruled", "sizes")
    values = (D.Independent(base, 1).log_prob(x), D.TransformedDistribution(base, [D.ExpTransform()]).log_prob(x.exp()), chain(at),
            chain.log_abs_det_jacobian(at, chain(at)), simplex.log_prob(y.softmax(-1)), stacked, x.sum(1), y.reshape(5, 2, 2), y,
            D.kl_divergence(*rows), D.Gumbel(x, 1.0).mean - 1, x * 30 + 4)
    return dict(zip(names, values))


@case("layers_patterns", """
    inputs: {x: "float32[n, 4, 5, 5]"}
    model: |
      a = conv2d(x, 6, 3, padding=1, bias=false, weight_init=dirac)
      b = conv2d(x, 6, 3, padding=1, bias=false, weight_init=dirac(groups=2))
      c = conv2d_transpose(x, 2, 4, stride=2, padding=1, bias=false, weight_init=bilinear)
      d = conv2d(x, 2, 3, bias=false, weight_init=bilinear)
      e = param("e", [3, 3], init=orthogonal(gain=2))
      u = param("u", [64, 64], init=xavier_uniform(gain=2)).abs().max() / (2 * sqrt(6 / 128))
      v = param("v", [64, 64], init=kaiming_uniform(0.5)).abs().max() / sqrt(6 / 1.25 / 64)
      w = param("w", [64, 64], init=kaiming_uniform(nonlinearity="tanh")).abs().max() / (5 / sqrt(192))
      z = param("z", [64, 64], init=kaiming_normal(nonlinearity="selu")).square().mean() * 64 / 0.5625
      f = stack([u, v, w, z])
      return a, b, c, d, e @ e.transpose([1, 0]), abs(f - 1) < 0.1
    outputs: [a, b, c, d, e, f]
    """, {"x": (2, 4, 5, 5)}, "--allow-missing '*'")
def _(w, x):
    plain = torch.nn.init.dirac_(torch.empty(6, 4, 3, 3))
    grouped = torch.nn.init.dirac_(torch.empty(6, 4, 3, 3), 2)

    def hat(*line):  # as the filler of Caffe, which is not symmetric for odd sizes
        line = torch.tensor(line)
        return line[:, None] * line

    return {"a": F.conv2d(x, plain, padding=1), "b": F.conv2d(x, grouped, padding=1), "c": F.conv_transpose2d(x, hat(0.25, 0.75, 0.75, 0.25).expand(4, 2, 4, 4), stride=2, padding=1),
            "d": F.conv2d(x, hat(0.25, 0.75, 0.75).expand(2, 4, 3, 3)), "e": 4 * torch.eye(3), "f": torch.ones(4).bool()}


# ---- derivatives -----------------------------------------------------------------------------


@case("derivatives", """
    inputs: {x: "float32[n, 3]", v: "float32[n, 3]"}
    blocks:
      potential(x): |
        h = tanh(linear(x, 8, name="first"))
        return linear(h, 1, name="second")[:, 0]
    model: |
      energy = potential(x)
      force = -grad(energy.sum(), x)
      slope = grad(square(force).sum(), x)
      y = stack([sin(x[:, 0] * x[:, 1]), x[:, 2] ** 3], 1)
      pull = vjp([y, energy], x, [y, energy])
      return energy, force, slope, jacobian(y, x, batch_axis=0), hessian(energy, x, batch_axis=0), jvp(y, x, v), pull
    outputs: [energy, force, slope, jacobian, hessian, along, pull]
    """, {"x": (4, 3), "v": (4, 3)})
def _(w, x, v):
    parts = [w("potential.first.weight", 3, 8), w("potential.first.bias", 8),
             w("potential.second.weight", 8, 1), w("potential.second.bias", 1)]

    def potential(row):
        return (torch.tanh(row @ parts[0] + parts[1]) @ parts[2] + parts[3])[..., 0]

    def both(row):
        return torch.stack([torch.sin(row[0] * row[1]), row[2] ** 3])

    x.requires_grad_()
    energy = potential(x)
    force = -torch.autograd.grad(energy.sum(), x, create_graph=True)[0]
    slope, = torch.autograd.grad(force.square().sum(), x, create_graph=True)
    y = torch.func.vmap(both)(x)
    pull, = torch.autograd.grad([y, energy], x, [y.detach(), energy.detach()], create_graph=True)
    return {"energy": energy, "force": force, "slope": slope,
            "jacobian": torch.func.vmap(torch.func.jacrev(both))(x),
            "hessian": torch.func.vmap(torch.func.hessian(potential))(x),
            "along": torch.func.jvp(torch.func.vmap(both), (x.detach(),), (v,))[1], "pull": pull}


@case("flow_over_tensors", """
    inputs: {x: "float32[4, n]", w: "float32[4]", empty: "float32[0, n]"}
    model: |
      total = zeros([n])
      for row in x:
        total = total * 0.5 + row
      weighted = x[0] * 0
      for i, row in enumerate(x):
        weighted += row * (i + 1)
      mixed = x[0] * 0
      for row, factor in zip(x, w):
        mixed += row * factor
      for row in empty:
        mixed = mixed + row
      return total, weighted, mixed
    outputs: [total, weighted, mixed]
    """, {"x": (4, 3), "w": (4,), "empty": np.zeros((0, 3), np.float32)})
def _(w, x, factors, empty):
    total = torch.zeros(3)
    for row in x:
        total = total * 0.5 + row
    return {"total": total, "weighted": (x * torch.arange(1, 5)[:, None]).sum(0), "mixed": factors @ x}


@case("index_flags", """
    inputs: {x: "float32[a, b]", t: "bool[]", f: "bool[]"}
    model: return x[t], x[f], x[:, t], x[x.sum() > 1e9]
    outputs: [whole, nothing, inner, compared]
    """, {"x": (3, 4), "t": np.bool_(True), "f": np.bool_(False)})
def _(w, x, t, f):
    return {"whole": x[t], "nothing": x[f], "inner": x[:, t], "compared": x[x.sum() > 1e9]}


@case("attributes_of_run_time", """
    inputs: {x: "float32[a, b, c]", axis: "int64[]", index: "int64[m]"}
    model: |
      total, average = sum(x, axis), mean(x, axis=axis, keepdim=true)
      places = argmax(x, axis=axis)
      running, share = cumsum(x, axis), softmax(x, axis=axis)
      sorted, order = topk(x, 1, axis=axis)
      joined = concat([x, x * 2], axis)
      picked = index_select(x, index, axis)
      grown = unsqueeze(x, axis)
      back = squeeze(grown, axis)
      last = sum(x[0, 0], axis - 1)
      return total, average, places, running, share, sorted, order, joined, picked, grown, back, last
    outputs: [total, average, places, running, share, sorted, order, joined, picked, grown, back, last]
    """, {"x": (3, 4, 5), "axis": np.int64(1), "index": ints(1, 0)})
def _(w, x, axis, index):
    values, order = torch.topk(x, 1, dim=1)
    return {"total": x.sum(1), "average": x.mean(1, keepdim=True), "places": x.argmax(1), "running": x.cumsum(1),
            "share": x.softmax(1), "sorted": values, "order": order, "joined": torch.cat([x, x * 2], 1),
            "picked": x[:, index], "grown": x[:, None], "back": x, "last": x[0, 0].sum()}


@case("sizes_of_run_time", """
    inputs: {x: "float32[a, b, c]", k: "int64[]", sizes: "int64[3]", n: "int32[2]", borders: "int64[4]",
             counts: "int64[m]"}
    model: |
      as_sizes, rows = reshape(x, sizes), reshape(x, [k, -1])
      expanded, tiled = expand(x[:1], [k, b, c]), tile(x, [1, k, 1])
      blank, filled = zeros([k, a]), full(sizes, 3.0)
      rolled, rolled_both, rolled_flat = roll(x, k, 1), roll(x, n, [0, 2]), roll(x, k)
      image = reshape(x, [1, a, b, c])
      constant, reflected = pad(image, borders), pad(image, borders, mode="reflect")
      replicated, circular = pad(image, borders, mode="replicate"), pad(image, borders, mode="circular")
      first, second = split(x, [k, 2], axis=1)
      counted, found = bincount(counts, minlength=k + 4), bincount(counts, minlength=k)
      nearest = interpolate(image, size=sizes[:2], mode="nearest")
      bilinear = interpolate(image, size=sizes[:2], mode="bilinear")
      kept = dropout(x, k * 0.25)
      return as_sizes, rows, expanded, tiled, blank, filled, rolled, rolled_both, rolled_flat, constant, reflected, replicated, circular, first, second, counted, found, nearest, bilinear, kept
    outputs: [as_sizes, rows, expanded, tiled, blank, filled, rolled, rolled_both, rolled_flat,
              constant, reflected, replicated, circular, first, second, counted, found, nearest,
              bilinear, kept]
    """, {"x": (3, 4, 5), "k": np.int64(2), "sizes": ints(5, 3, 4), "n": np.asarray([-1, 7], np.int32),
          "borders": ints(1, 2, 0, 3), "counts": ints(1, 0, 3, 1)})
def _(w, x, k, sizes, n, borders, counts):
    first, second = x.split([2, 2], 1)
    image, border = x[None], (1, 2, 0, 3)
    return {"as_sizes": x.reshape(5, 3, 4), "rows": x.reshape(2, -1), "expanded": x[:1].expand(2, 4, 5),
            "tiled": x.tile(1, 2, 1), "blank": torch.zeros(2, 3), "filled": torch.full((5, 3, 4), 3.0),
            "rolled": x.roll(2, 1), "rolled_both": x.roll((-1, 7), (0, 2)), "rolled_flat": x.roll(2),
            "constant": F.pad(image, border), "reflected": F.pad(image, border, "reflect"),
            "replicated": F.pad(image, border, "replicate"), "circular": F.pad(image, border, "circular"),
            "first": first, "second": second, "counted": torch.bincount(counts, minlength=6),
            "found": torch.bincount(counts, minlength=2),
            "nearest": F.interpolate(image, (5, 3), mode="nearest"),
            "bilinear": F.interpolate(image, (5, 3), mode="bilinear"), "kept": x}


# ---- making and checking --------------------------------------------------------------------------


def arrays_of(index):
    name, _, inputs, _, _, reference = CASES[index]
    generator = np.random.default_rng(index + 100)
    arrays = {key: generator.standard_normal(value).astype(np.float32) if isinstance(value, tuple) else np.asarray(value)
              for key, value in inputs.items()}
    weights = Weights(index)
    outputs = reference(weights, *(torch.from_numpy(np.array(a)) for a in arrays.values()))
    return arrays, weights.arrays, {key: value.detach().numpy() for key, value in outputs.items()}


def file_of(index):
    base = CASES[index][0].partition("@")[0]
    owner = next(c for c in CASES if c[0] == base)
    return base + (".yaml" if owner[1] else ".json")


def write_files(index, folder):
    name, text, _, _, files, _ = CASES[index]
    if text:
        files = {name + ".yaml": text, **files}
    for path, content in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(content)


def make():
    FOLDER.mkdir(exist_ok=True)
    table = []
    for index, (name, _, _, arguments, _, _) in enumerate(CASES):
        write_files(index, FOLDER)
        inputs, weights, outputs = arrays_of(index)
        arrays = {}
        for kind, group in (("input", inputs), ("weight", weights), ("output", outputs)):
            arrays.update({f"{kind}.{key}": value for key, value in group.items()})
        np.savez_compressed(FOLDER / (name + ".npz"), **arrays)
        table.append(f"{name} {file_of(index)}{'' if arguments.startswith(':') else ' '}{arguments}".rstrip())
    (FOLDER / "cases.txt").write_text("\n".join(table) + "\n")


def check(program, names):
    import shlex
    from safetensors.numpy import save_file
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        for index, (name, _, _, arguments, _, _) in enumerate(CASES):
            write_files(index, folder)
            if names and name not in names and name.partition("@")[0] not in names:
                continue
            inputs, weights, outputs = arrays_of(index)
            np.savez(folder / "x.npz", **inputs)
            save_file({k: np.array(v, order="C") for k, v in weights.items()}, folder / "w.safetensors")
            words = shlex.split(arguments)
            model = str(folder / file_of(index))
            if words and words[0].startswith(":"):
                model += words.pop(0)
            command = [program, model, *words, "--weights", str(folder / "w.safetensors"),
                       "--input", str(folder / "x.npz"), "--output", str(folder / "y.npz"), "--quiet"]
            (folder / "y.npz").unlink(missing_ok=True)
            done = subprocess.run(command, capture_output=True, text=True, timeout=120)
            problems = []
            if done.returncode:
                problems.append(f"exit {done.returncode}: {done.stderr.strip()}")
            else:
                got = np.load(folder / "y.npz")
                if set(got.files) != set(outputs):
                    problems.append(f"outputs {got.files}, expected {list(outputs)}")
                for key in set(got.files) & set(outputs):
                    a, b = got[key], outputs[key]
                    if a.shape != b.shape or a.dtype != b.dtype:
                        problems.append(f"{key}: {a.dtype}{a.shape}, expected {b.dtype}{b.shape}")
                    elif not np.allclose(a, b, rtol=1e-4, atol=1e-5, equal_nan=True):
                        problems.append(f"{key}: differs by {np.abs(a.astype(float) - b).max()}")
            if problems:
                failed += 1
                print(f"FAIL {name}: " + "; ".join(problems).replace(str(folder) + "/", ""))
    print(f"{len(CASES)} cases, {failed} failed")
    return failed


if __name__ == "__main__":
    if sys.argv[1:2] == ["--check"]:
        sys.exit(check(sys.argv[2], sys.argv[3:]) > 0)
    make()
