"""The benchmark nets in PyTorch, with the weights under the names that our model files give them.

NETS holds a Net per line of configs/bench: how to build it, its batch, loss and optimizer.
"""
from dataclasses import dataclass
from typing import Callable

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


def array(tensor):
    """A copy, so that training leaves the weights that were taken before it."""
    return np.array(tensor.detach().float().numpy(), order="C")


def linear(path, layer):
    return {path + ".weight": array(layer.weight.T), path + ".bias": array(layer.bias)}


def affine(path, layer):
    return {path + ".weight": array(layer.weight), path + ".bias": array(layer.bias)}


class LeNet(nn.Module):
    """The benchmark's net; with kernel 5, padding 2 and activations that of models/lenet.yaml."""

    def __init__(self, kernel=3, padding=1, activations=False):
        super().__init__()
        self.activations = activations
        self.conv = nn.ModuleList([nn.Conv2d(1, 6, kernel, padding=padding), nn.Conv2d(6, 16, 5)])
        self.fc = nn.ModuleList([nn.Linear(400, 120), nn.Linear(120, 84), nn.Linear(84, 10)])

    def forward(self, image):
        x = F.max_pool2d(F.relu(self.conv[0](image)), 2)
        x = F.max_pool2d(F.relu(self.conv[1](x)), 2).flatten(1)
        for i, layer in enumerate(self.fc):
            x = layer(F.relu(x) if self.activations and i else x)
        return x

    def weights(self):
        out = affine("conv2d", self.conv[0]) | affine("conv2d_2", self.conv[1])
        for i, layer in enumerate(self.fc):
            out |= linear("linear" if i == 0 else f"linear_{i + 1}", layer)
        return out


class Bottleneck(nn.Module):
    def __init__(self, inputs, mid, stride):
        super().__init__()

        def unit(i, o, k, s=1):
            return nn.Sequential(nn.Conv2d(i, o, k, s, k // 2, bias=False), nn.BatchNorm2d(o))

        self.units = nn.ModuleList([unit(inputs, mid, 1), unit(mid, mid, 3, stride), unit(mid, 4 * mid, 1)])
        self.short = unit(inputs, 4 * mid, 1, stride) if stride != 1 or inputs != 4 * mid else None

    def forward(self, x):
        y = F.relu(self.units[0](x))
        y = F.relu(self.units[1](y))
        y = self.units[2](y)
        return F.relu((self.short(x) if self.short else x) + y)


class ResNet50(nn.Module):
    def __init__(self, classes=1000):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64))
        self.stages = nn.ModuleList()
        channels = 64
        for stage, count in enumerate([3, 4, 6, 3]):
            blocks = nn.ModuleList()
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

    def weights(self):
        out = {}

        def put(path, unit):
            out[path + ".conv2d.weight"] = array(unit[0].weight)
            for name in ("weight", "bias", "running_mean", "running_var"):
                out[f"{path}.batch_norm.{name}"] = array(getattr(unit[1], name))

        put("conv_bn", self.stem)
        for s, blocks in enumerate(self.stages):
            for b, block in enumerate(blocks):
                for i, unit in enumerate(block.units):
                    put(f"bottleneck.{s}.{b}.conv_bn" + (f"_{i + 1}" if i else ""), unit)
                if block.short:
                    put(f"bottleneck.{s}.{b}.conv_bn_4", block.short)
        return out | linear("linear", self.fc)


class GPT(nn.Module):
    def __init__(self, layers=4, heads=4, width=128, words=65, positions=64):
        super().__init__()
        self.heads, self.width = heads, width
        self.words, self.positions = nn.Embedding(words, width), nn.Parameter(torch.randn(positions, width) * 0.02)
        self.layers = nn.ModuleList([nn.ModuleDict({
            "norm1": nn.LayerNorm(width), "qkv": nn.Linear(width, 3 * width), "out": nn.Linear(width, width),
            "norm2": nn.LayerNorm(width), "up": nn.Linear(width, 4 * width), "down": nn.Linear(4 * width, width),
        }) for _ in range(layers)])
        self.norm = nn.LayerNorm(width)
        nn.init.normal_(self.words.weight, std=0.02)

    def forward(self, tokens):
        b, t = tokens.shape
        x = self.words(tokens) + self.positions[:t]
        for l in self.layers:
            q, k, v = l["qkv"](l["norm1"](x)).view(b, t, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(b, t, self.width)
            x = x + l["out"](y)
            x = x + l["down"](F.gelu(l["up"](l["norm2"](x)), approximate="tanh"))
        return F.linear(self.norm(x), self.words.weight)

    def weights(self):
        out = {"words.weight": array(self.words.weight), "positions": array(self.positions)} | affine("layer_norm", self.norm)
        for i, l in enumerate(self.layers):
            at = f"layer.{i}."
            out |= affine(at + "layer_norm", l["norm1"]) | affine(at + "layer_norm_2", l["norm2"])
            out |= linear(at + "attention.linear", l["qkv"]) | linear(at + "attention.linear_2", l["out"])
            out |= linear(at + "feed_forward.linear", l["up"]) | linear(at + "feed_forward.linear_2", l["down"])
        return out


class BERT(nn.Module):
    def __init__(self, layers=12, heads=12, width=768, words=30522, positions=512, classes=2):
        super().__init__()
        self.heads, self.width = heads, width
        self.words, self.positions = nn.Embedding(words, width), nn.Parameter(torch.randn(positions, width) * 0.02)
        self.layers = nn.ModuleList([nn.ModuleDict({
            "qkv": nn.Linear(width, 3 * width), "out": nn.Linear(width, width), "norm1": nn.LayerNorm(width),
            "up": nn.Linear(width, 4 * width), "down": nn.Linear(4 * width, width), "norm2": nn.LayerNorm(width),
        }) for _ in range(layers)])
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, classes)
        nn.init.normal_(self.words.weight, std=0.02)

    def forward(self, tokens):
        b, t = tokens.shape
        x = self.words(tokens) + self.positions[:t]
        for l in self.layers:
            q, k, v = l["qkv"](x).view(b, t, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
            y = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, t, self.width)
            x = l["norm1"](x + l["out"](y))
            x = l["norm2"](x + l["down"](F.gelu(l["up"](x))))
        return self.head(self.norm(x)[:, 0])

    def weights(self):
        out = {"words.weight": array(self.words.weight), "positions": array(self.positions)}
        out |= affine("layer_norm", self.norm) | linear("linear", self.head)
        for i, l in enumerate(self.layers):
            at = f"layer.{i}."
            out |= affine(at + "layer_norm", l["norm1"]) | affine(at + "layer_norm_2", l["norm2"])
            out |= linear(at + "attention.linear", l["qkv"]) | linear(at + "attention.linear_2", l["out"])
            # The text names the outer product first.
            out |= linear(at + "linear", l["down"]) | linear(at + "linear_2", l["up"])
        return out


class DeepFM(nn.Module):
    def __init__(self, rows=5000, width=16, sparse=True):
        super().__init__()
        self.first, self.vectors = nn.Embedding(rows, 1, sparse=sparse), nn.Embedding(rows, width, sparse=sparse)
        nn.init.normal_(self.first.weight, std=0.05)
        nn.init.normal_(self.vectors.weight, std=0.05)
        self.numbers, self.deep = nn.Linear(13, 1), nn.Linear(400, 1)
        self.hidden = nn.ModuleList([nn.Linear(26 * width + 13, 400), nn.Linear(400, 400), nn.Linear(400, 400)])

    def forward(self, sparse, dense):
        v = self.vectors(sparse)
        first = self.first(sparse).sum((1, 2)) + self.numbers(dense).squeeze(1)
        pairs = 0.5 * (v.sum(1).square() - v.square().sum(1)).sum(1)
        x = torch.cat([v.flatten(1), dense], 1)
        for layer in self.hidden:
            x = F.relu(layer(x))
        return first + pairs + self.deep(x).squeeze(1)

    def weights(self):
        out = {"first.weight": array(self.first.weight), "vectors.weight": array(self.vectors.weight)}
        out |= linear("numbers", self.numbers) | linear("deep", self.deep)
        for i, layer in enumerate(self.hidden):
            out |= linear(f"linear_2.{i}", layer)
        return out


class LSTM(nn.Module):
    def __init__(self, words=65, width=64, hidden=96):
        super().__init__()
        self.embedding = nn.Embedding(words, width)
        self.lstm = nn.LSTM(width, hidden, 2, batch_first=True)
        self.linear = nn.Linear(hidden, words)

    def forward(self, tokens):
        return self.linear(self.lstm(self.embedding(tokens))[0])

    def weights(self):
        out = {"embedding.weight": array(self.embedding.weight)} | linear("linear", self.linear)
        return out | {"lstm." + name: array(p) for name, p in self.lstm.named_parameters()}


class SparseAdam:
    """Lazy Adam on a DeepFM's tables, Adam on the rest, as one optimizer."""

    def __init__(self, model, rate):
        tables = [model.first.weight, model.vectors.weight]
        rest = [p for p in model.parameters() if not any(p is t for t in tables)]
        self.each = [torch.optim.SparseAdam(tables, rate), torch.optim.Adam(rest, rate)]

    def zero_grad(self):
        for optimizer in self.each:
            optimizer.zero_grad()

    def step(self):
        for optimizer in self.each:
            optimizer.step()


def token_loss(logits, targets):
    return F.cross_entropy(logits.flatten(0, 1), targets.flatten())


@dataclass
class Net:
    """A benchmark line: net, batch (arrays by our input names, the label last), loss, optimizer."""

    build: Callable
    batch: Callable
    loss: Callable
    optimizer: Callable


def images(rng, batch, shape, classes):
    return {"image": rng.standard_normal((batch, *shape), dtype=np.float32), "label": rng.integers(0, classes, batch)}


def tokens(rng, batch, length, words):
    drawn = rng.integers(0, words, (batch, length + 1))
    return {"tokens": drawn[:, :-1].copy(), "targets": drawn[:, 1:].copy()}


def clicks(rng, batch):
    return {"sparse": rng.integers(0, 1_000_000, (batch, 26)), "dense": rng.standard_normal((batch, 13), dtype=np.float32),
            "label": rng.integers(0, 2, batch).astype(np.float32)}


NETS = {
    "lenet": Net(LeNet, lambda r: images(r, 64, (1, 28, 28), 10), F.cross_entropy,
                 lambda m: torch.optim.Adam(m.parameters(), 1e-3)),
    "resnet50": Net(ResNet50, lambda r: images(r, 16, (3, 224, 224), 1000), F.cross_entropy,
                    lambda m: torch.optim.SGD(m.parameters(), 0.1, momentum=0.9, weight_decay=1e-4)),
    "gpt2_124m": Net(lambda: GPT(12, 12, 768, 50304, 1024), lambda r: tokens(r, 4, 256, 50304), token_loss,
                     lambda m: torch.optim.AdamW(m.parameters(), 3e-4, weight_decay=0.1)),
    "bert_base": Net(BERT, lambda r: {"tokens": r.integers(0, 30522, (8, 128)), "label": r.integers(0, 2, 8)},
                     F.cross_entropy, lambda m: torch.optim.AdamW(m.parameters(), 2e-5, weight_decay=0.01)),
    "char_gpt_384": Net(lambda: GPT(6, 6, 384, 65, 256), lambda r: tokens(r, 12, 256, 65), token_loss,
                        lambda m: torch.optim.AdamW(m.parameters(), 1e-3, weight_decay=0.1)),
    "deepfm": Net(lambda: DeepFM(1_000_000), lambda r: clicks(r, 2048), F.binary_cross_entropy_with_logits,
                  lambda m: SparseAdam(m, 1e-3)),
    "lstm_lm": Net(lambda: LSTM(10000, 650, 650), lambda r: tokens(r, 20, 35, 10000), token_loss,
                   lambda m: torch.optim.SGD(m.parameters(), 1.0)),
}
