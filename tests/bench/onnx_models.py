"""ONNX files for tests/bench/run, exported from PyTorch with random weights, and inputs for them.

  onnx_models.py NET FILE.onnx         one of the nets below; the batch is free
  onnx_models.py --inputs NET BATCH FILE.npz

An `_int8` net is quantized by ONNX Runtime with QuantizeLinear and DequantizeLinear around each operator,
calibrated on random images; a `_dynamic` net has dynamically quantized products.
"""
import argparse
import os
import sys
import tempfile
import warnings

import numpy as np

sys.dont_write_bytecode = True
sys.path.insert(1, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "interop"))

OPSET = 17
CACHED = 127  # tokens that the cache of gpt_cache holds
GPT_LAYERS, GPT_HEADS, GPT_WIDTH, GPT_WORDS = 6, 6, 384, 5000


def inputs(net, batch, seed=0):
    """Arrays by input name."""
    rng = np.random.default_rng(seed)
    if net.startswith(("resnet50", "mobilenet")):
        return {"image": rng.standard_normal((batch, 3, 224, 224), dtype=np.float32)}
    if net.startswith("bert"):
        return {"tokens": rng.integers(0, 30522, (batch, 128))}
    cache = (GPT_LAYERS, batch, GPT_HEADS, CACHED, GPT_WIDTH // GPT_HEADS)
    return {"token": rng.integers(0, GPT_WORDS, (batch, 1)), "position": np.full((batch, 1), CACHED),
            "keys": rng.standard_normal(cache, dtype=np.float32), "values": rng.standard_normal(cache, dtype=np.float32)}


def settle(model, image):
    """Statistics of batch norms as after some training, so that activations keep their size."""
    import torch
    model.train()
    for module in model.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            module.momentum = 0.5
            torch.nn.init.uniform_(module.weight, 0.5, 1.0)
            torch.nn.init.normal_(module.bias, std=0.1)
    with torch.no_grad():
        for _ in range(3):
            model(torch.randn_like(image))
    return model.eval()


def mobilenet_v3():
    """MobileNetV3-Large, https://arxiv.org/abs/1905.02244, table 1."""
    import torch.nn as nn

    def unit(i, o, k=1, s=1, groups=1, act=None):
        layers = [nn.Conv2d(i, o, k, s, k // 2, groups=groups, bias=False), nn.BatchNorm2d(o)]
        return nn.Sequential(*layers, *([act()] if act else []))

    class Excite(nn.Module):
        def __init__(self, channels):
            super().__init__()
            mid = max(8, (channels // 4 + 4) // 8 * 8)
            self.steps = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(channels, mid, 1), nn.ReLU(),
                                       nn.Conv2d(mid, channels, 1), nn.Hardsigmoid())

        def forward(self, x):
            return x * self.steps(x)

    class Block(nn.Module):
        def __init__(self, i, k, wide, o, excited, act, s):
            super().__init__()
            steps = [unit(i, wide, act=act)] if wide != i else []
            steps.append(unit(wide, wide, k, s, wide, act))
            steps += [Excite(wide)] if excited else []
            self.steps, self.adds = nn.Sequential(*steps, unit(wide, o)), s == 1 and i == o

        def forward(self, x):
            return self.steps(x) + x if self.adds else self.steps(x)

    relu, swish = nn.ReLU, nn.Hardswish
    table = [(3, 16, 16, False, relu, 1), (3, 64, 24, False, relu, 2), (3, 72, 24, False, relu, 1),
             (5, 72, 40, True, relu, 2), (5, 120, 40, True, relu, 1), (5, 120, 40, True, relu, 1),
             (3, 240, 80, False, swish, 2), (3, 200, 80, False, swish, 1), (3, 184, 80, False, swish, 1),
             (3, 184, 80, False, swish, 1), (3, 480, 112, True, swish, 1), (3, 672, 112, True, swish, 1),
             (5, 672, 160, True, swish, 2), (5, 960, 160, True, swish, 1), (5, 960, 160, True, swish, 1)]
    layers, channels = [unit(3, 16, 3, 2, act=swish)], 16
    for k, wide, o, excited, act, s in table:
        layers.append(Block(channels, k, wide, o, excited, act, s))
        channels = o
    layers += [unit(160, 960, act=swish), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(960, 1280), swish(),
               nn.Linear(1280, 1000)]
    return nn.Sequential(*layers)


def gpt_cache():
    """One token's step: keys and values of the tokens before it come in, those with it go out."""
    import torch
    import torch.nn.functional as F
    import torch_nets

    class Step(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.gpt = torch_nets.GPT(GPT_LAYERS, GPT_HEADS, GPT_WIDTH, GPT_WORDS, 256)

        def forward(self, token, position, keys, values):
            gpt, new_keys, new_values = self.gpt, [], []
            x = gpt.words(token) + gpt.positions[position]
            for i, l in enumerate(gpt.layers):
                q, k, v = l["qkv"](l["norm1"](x)).view(-1, 1, 3, GPT_HEADS, GPT_WIDTH // GPT_HEADS).permute(2, 0, 3, 1, 4)
                k, v = torch.cat([keys[i], k], 2), torch.cat([values[i], v], 2)
                new_keys.append(k)
                new_values.append(v)
                y = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(-1, 1, GPT_WIDTH)
                x = x + l["out"](y)
                x = x + l["down"](F.gelu(l["up"](l["norm2"](x)), approximate="tanh"))
            return F.linear(gpt.norm(x), gpt.words.weight), torch.stack(new_keys), torch.stack(new_values)

    return Step()


def export(net, path):
    import torch
    import torch_nets

    torch.manual_seed(0)
    example = {key: torch.from_numpy(a) for key, a in inputs(net, 2).items()}
    if net == "gpt_cache":
        model, outputs = gpt_cache().eval(), ["logits", "new_keys", "new_values"]
        axes = {"token": {0: "batch"}, "position": {0: "batch"}, "keys": {1: "batch", 3: "past"},
                "values": {1: "batch", 3: "past"}}
    else:
        model = mobilenet_v3() if net == "mobilenet_v3" else torch_nets.NETS[{"bert": "bert_base"}.get(net, net)].build()
        model = model.eval() if net == "bert" else settle(model, example["image"])
        outputs, axes = ["logits"], {key: {0: "batch"} for key in example}
    axes |= {key: {1 if key.startswith("new_") else 0: "batch"} for key in outputs}
    with torch.no_grad():
        torch.onnx.export(model, tuple(example.values()), path, input_names=list(example), output_names=outputs,
                          dynamic_axes=axes, opset_version=OPSET, dynamo=False)


def quantize(plain, path, net):
    from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_dynamic, quantize_static
    from onnxruntime.quantization.shape_inference import quant_pre_process

    if net.endswith("_dynamic"):
        return quantize_dynamic(plain, path, weight_type=QuantType.QInt8)

    class Random(CalibrationDataReader):
        def __init__(self):
            self.batches = iter([inputs(net, 2, seed) for seed in range(4)])

        def get_next(self):
            return next(self.batches, None)

    with tempfile.TemporaryDirectory() as folder:
        ready = os.path.join(folder, "ready.onnx")
        quant_pre_process(plain, ready, skip_symbolic_shape=True)
        quantize_static(ready, path, Random(), quant_format=QuantFormat.QDQ, per_channel=True,
                        activation_type=QuantType.QUInt8, weight_type=QuantType.QInt8)


def write(net, path):
    base = net.removesuffix("_int8").removesuffix("_dynamic")
    if base == net:
        return export(net, path)
    with tempfile.TemporaryDirectory() as folder:
        plain = os.path.join(folder, "plain.onnx")
        export(base, plain)
        quantize(plain, path, net)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--inputs", action="store_true")
    parser.add_argument("words", nargs="+")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.inputs:
        net, batch, path = options.words
        np.savez(path, **inputs(net, int(batch)))
    else:
        net, path = options.words
        write(net, path)


if __name__ == "__main__":
    main()
