#!/usr/bin/env python3
"""Writes layers.json: inputs, weights and outputs of PyTorch's layers. layers.py FILE; needs torch."""
import json
import sys

import torch

CASES = []


def numbers(tensor):
    return [round(x, 6) for x in tensor.detach().reshape(-1).tolist()]


def stored(tensor):
    return {"shape": list(tensor.shape), "dtype": str(tensor.dtype).removeprefix("torch."), "data": numbers(tensor)}


def rounded(tensor):
    """The value that the file holds."""
    return torch.tensor(numbers(tensor), dtype=tensor.dtype).reshape(tensor.shape)


def add(name, layer, inputs, weights, arguments=(), **named):
    """A case: `weights` are those of PyTorch by the names that ours has, as functions of its state."""
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.copy_(rounded(torch.randn_like(parameter) * 0.5))
    inputs = [rounded(each) if each.is_floating_point() else each for each in inputs]
    out = layer(*inputs)
    while isinstance(out, tuple):
        out = out[0]
    CASES.append({"layer": name, "arguments": list(arguments), "named": named, "inputs": [stored(each) for each in inputs],
                  "weights": {own: stored(value()) for own, value in weights.items()}, "output": stored(out)})


def same(layer):
    return {name: (lambda value=value: value) for name, value in layer.named_parameters()}


def projections(attention, prefix=""):
    out, size = {}, attention.embed_dim
    for i, name in enumerate("qkv"):
        rows = slice(i * size, (i + 1) * size)
        out[f"{prefix}{name}_weight"] = lambda rows=rows: attention.in_proj_weight[rows].T
        out[f"{prefix}{name}_bias"] = lambda rows=rows: attention.in_proj_bias[rows]
    out[f"{prefix}out_weight"] = lambda: attention.out_proj.weight.T
    out[f"{prefix}out_bias"] = lambda: attention.out_proj.bias
    return out


torch.manual_seed(0)
sequence = torch.randn(2, 4, 3)
for name, kind, both, count in (("LSTM", torch.nn.LSTM, True, 2), ("GRU", torch.nn.GRU, True, 1), ("SimpleRNN", torch.nn.RNN, False, 2)):
    layer = kind(3, 2, count, batch_first=True, bidirectional=both)
    add(name, layer, [sequence], same(layer), (3, 2), num_layers=count, direction="bidirect" if both else "forward")
attention = torch.nn.MultiheadAttention(4, 2, batch_first=True)


class Self(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = attention

    def forward(self, x):
        return self.attention(x, x, x)


add("MultiHeadAttention", Self(), [torch.randn(2, 3, 4)], projections(attention), (4, 2))
encoder = torch.nn.TransformerEncoderLayer(4, 2, 6, 0.0, batch_first=True)
weights = projections(encoder.self_attn, "self_attn.")
for each in ("linear1", "linear2"):
    weights[f"{each}.weight"] = lambda each=each: getattr(encoder, each).weight.T
    weights[f"{each}.bias"] = lambda each=each: getattr(encoder, each).bias
for each in ("norm1", "norm2"):
    weights[f"{each}.weight"] = lambda each=each: getattr(encoder, each).weight
    weights[f"{each}.bias"] = lambda each=each: getattr(encoder, each).bias
add("TransformerEncoderLayer", encoder, [torch.randn(2, 3, 4)], weights, (4, 2, 6), dropout=0.0)
for n in (1, 2, 3):
    image = torch.randn(1, 2, *[3] * n)
    convolution = getattr(torch.nn, f"Conv{n}d")(2, 2, 2, padding=1)
    add(f"Conv{n}D", convolution, [image], same(convolution), (2, 2, 2), padding=1)
    transposed = getattr(torch.nn, f"ConvTranspose{n}d")(2, 2, 2, stride=2, output_padding=1)
    add(f"Conv{n}DTranspose", transposed, [image], same(transposed), (2, 2, 2), stride=2, output_padding=1)
    norm = getattr(torch.nn, f"InstanceNorm{n}d")(2, affine=True)
    add(f"InstanceNorm{n}D", norm, [image], same(norm), (2,))
    add(f"AvgPool{n}D", getattr(torch.nn, f"AvgPool{n}d")(2), [image], {}, (2,))
    add(f"MaxPool{n}D", getattr(torch.nn, f"MaxPool{n}d")(2), [image], {}, (2,))
    add(f"AdaptiveAvgPool{n}D", getattr(torch.nn, f"AdaptiveAvgPool{n}d")(2), [image], {}, (2,))
    add(f"AdaptiveMaxPool{n}D", getattr(torch.nn, f"AdaptiveMaxPool{n}d")(2), [image], {}, (2,))
bilinear = torch.nn.Bilinear(2, 3, 2)
add("Bilinear", bilinear, [torch.randn(2, 2), torch.randn(2, 3)], {"weight": lambda: bilinear.weight, "bias": lambda: bilinear.bias[None]},
    (2, 3, 2))
x = torch.randn(3, 4)
for name in ("CELU", "ELU", "GLU", "Hardshrink", "Hardsigmoid", "Hardswish", "Hardtanh", "LogSigmoid", "Mish", "ReLU6", "SELU", "Softplus",
             "Softshrink", "Softsign", "Tanhshrink"):
    add(name, getattr(torch.nn, name)(), [x], {})
add("Swish", torch.nn.SiLU(), [x], {})
add("LogSoftmax", torch.nn.LogSoftmax(-1), [x], {})
add("ThresholdedReLU", torch.nn.Threshold(1.0, 0.0), [x * 2], {})
planes = torch.randn(1, 4, 2, 2)
add("PixelShuffle", torch.nn.PixelShuffle(2), [planes], {}, (2,))
add("PixelUnshuffle", torch.nn.PixelUnshuffle(2), [planes], {}, (2,))
add("ChannelShuffle", torch.nn.ChannelShuffle(2), [planes], {}, (2,))
add("Upsample", torch.nn.Upsample(scale_factor=2), [planes], {}, scale_factor=2)
add("Unfold", torch.nn.Unfold(2), [planes], {}, (2,))
y = torch.randn(3, 4)
probability, labels, classes = torch.sigmoid(y), torch.randint(0, 2, (3, 4)).float(), torch.randint(0, 4, (3,))
signs = labels * 2 - 1
add("CosineSimilarity", torch.nn.CosineSimilarity(), [x, y], {})
add("PairwiseDistance", torch.nn.PairwiseDistance(), [x, y], {})
for name, inputs in (("BCELoss", (probability, labels)), ("BCEWithLogitsLoss", (x, labels)), ("KLDivLoss", (x.log_softmax(1), probability)),
                     ("NLLLoss", (x.log_softmax(1), classes)), ("SmoothL1Loss", (x * 3, labels)), ("SoftMarginLoss", (x, signs)),
                     ("HingeEmbeddingLoss", (x, signs)), ("PoissonNLLLoss", (x, labels)), ("MultiLabelSoftMarginLoss", (x, labels)),
                     ("MultiMarginLoss", (x, classes)), ("MarginRankingLoss", (x, y, signs)), ("TripletMarginLoss", (x, y, probability)),
                     ("GaussianNLLLoss", (x, labels, probability)), ("CosineEmbeddingLoss", (x, y, signs[:, 0]))):
    add(name, getattr(torch.nn, name)(), list(inputs), {})
with open(sys.argv[1], "w") as file:
    json.dump(CASES, file, separators=(",", ":"))
    file.write("\n")
