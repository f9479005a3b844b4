#!/usr/bin/env python3
"""Outputs of PyTorch's models for the weights and inputs of zoo_test.cc.

make_zoo.py FOLDER                  writes FOLDER/NAME.npz for small variants of each model
make_zoo.py --check BIN [NAME…]     converts, runs and exports models of full size with the programs in
                                    BIN, and runs the ONNX files in ONNX Runtime where it is installed

An NPZ file holds `case` (JSON: the model file, its overrides, the rules, the names and shapes of the
weights, the shapes of the inputs) and `output.NAME`. Weights and inputs are functions of their names
(see `values`), so that no file needs to hold them. Needs torch, torchvision and transformers.
"""

import json
import os
import subprocess
import sys
import tempfile

import numpy as np
import torch
import torchvision
import transformers
from torch import nn
from torchvision import models as tv

torch.set_num_threads(1)
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def values(name, shape):
    """Numbers of [-1, 1) by name and position, scaled as zoo_test.cc scales them."""
    seed = np.uint64(14695981039346656037)
    with np.errstate(over="ignore"):
        for byte in name.encode():
            seed = (seed ^ np.uint64(byte)) * np.uint64(1099511628211)
        z = seed + np.uint64(0x9E3779B97F4A7C15) * (np.arange(int(np.prod(shape)), dtype=np.uint64) + np.uint64(1))
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z = z ^ (z >> np.uint64(31))
    u = (z >> np.uint64(11)).astype(np.float64) * 2.0**-52 - 1
    if name.endswith("running_var"):
        u = 1 + 0.5 * u
    elif len(shape) > 1:
        u = u * np.sqrt(6 / np.prod(shape[1:]).astype(np.float64))
    elif name.endswith("weight"):
        u = 1 + 0.2 * u
    else:
        u = 0.1 * u
    return u.astype(np.float32).reshape(shape)


def fill(model):
    """Sets all floating-point parameters and buffers; returns their names and shapes."""
    described = []
    with torch.no_grad():
        for name, tensor in model.state_dict().items():
            if not tensor.is_floating_point():
                continue
            described.append([name, list(tensor.shape)])
            tensor.copy_(torch.from_numpy(values(name, tuple(tensor.shape))))
    return described


def small_classifier(model, hidden):
    """alexnet and vgg with fewer hidden units."""
    layers = [each for each in model.classifier if isinstance(each, nn.Linear)]
    sizes = [layers[0].in_features, hidden, hidden, 10]
    places = [i for i, each in enumerate(model.classifier) if isinstance(each, nn.Linear)]
    for k, place in enumerate(places):
        model.classifier[place] = nn.Linear(sizes[k], sizes[k + 1])
    return model


class DoubleConv(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        layers = []
        for size in (inputs, outputs):
            layers += [nn.Conv2d(size, outputs, 3, padding=1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU()]
        self.double_conv = nn.Sequential(*layers)

    def forward(self, x):
        return self.double_conv(x)


class Down(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.maxpool_conv = nn.Sequential(nn.MaxPool2d(2), DoubleConv(inputs, outputs))

    def forward(self, x):
        return self.maxpool_conv(x)


class Up(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.up = nn.ConvTranspose2d(inputs, inputs // 2, 2, stride=2)
        self.conv = DoubleConv(inputs, outputs)

    def forward(self, x, skip):
        return self.conv(torch.cat([skip, self.up(x)], 1))


class Out(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.conv = nn.Conv2d(inputs, outputs, 1)

    def forward(self, x):
        return self.conv(x)


class UNet(nn.Module):
    """The parameters of the U-Net that unet_milesial.rules.yaml is for."""

    def __init__(self, channels, classes, width):
        super().__init__()
        self.inc = DoubleConv(channels, width)
        for i in range(4):
            setattr(self, f"down{i + 1}", Down(width << i, width << (i + 1)))
            setattr(self, f"up{i + 1}", Up(width << (4 - i), width << (3 - i)))
        self.outc = Out(width, classes)

    def forward(self, x):
        skips = [self.inc(x)]
        for i in range(4):
            skips.append(getattr(self, f"down{i + 1}")(skips[-1]))
        x = skips.pop()
        for i in range(4):
            x = getattr(self, f"up{i + 1}")(x, skips.pop())
        return self.outc(x)


def bert(**sizes):
    config = transformers.BertConfig(hidden_dropout_prob=0, attention_probs_dropout_prob=0, attn_implementation="eager", **sizes)
    return transformers.BertModel(config)


def mobilenet_v1(**options):
    return transformers.MobileNetV1ForImageClassification(transformers.MobileNetV1Config(**options))


def bert_inputs(length):
    tokens = np.arange(2 * length).reshape(2, length) * 7 % 50
    mask = np.ones((2, length), np.int64)
    mask[1, length // 2 :] = 0
    return {"tokens": tokens.astype(np.int64), "types_of_tokens": (tokens % 3 == 0).astype(np.int64), "mask": mask}


CNBlock = tv.convnext.CNBlockConfig
INVERTED = tv.efficientnet.MBConvConfig

# name: (module, model file, overrides, rules, inputs: the shape of `image`, or arrays)
SMALL = {
    "alexnet": (lambda: small_classifier(tv.alexnet(num_classes=10), 24), "vision/alexnet.yaml",
                ["params.classes=10", "params.hidden=24"], "vision/alexnet_torchvision", (2, 3, 64, 72)),
    "vgg11": (lambda: small_classifier(tv.vgg11(num_classes=10), 8), "vision/vgg.yaml:vgg11",
              ["params.classes=10", "params.hidden=8"], "vision/vgg_torchvision", (1, 3, 32, 40)),
    "vgg_bn": (lambda: small_classifier(tv.VGG(tv.vgg.make_layers([8, "M", 8, 16, "M", 512], batch_norm=True)), 8), "vision/vgg.yaml",
               ["params.classes=10", "params.hidden=8", "params.normalized=true", "params.channels=[8,0,8,16,0,512]"],
               "vision/vgg_torchvision", (2, 3, 28, 28)),
    "squeezenet1_0": (lambda: tv.squeezenet1_0(num_classes=10), "vision/squeezenet.yaml", ["params.classes=10"],
                      "vision/squeezenet_torchvision", (2, 3, 64, 57)),
    "squeezenet1_1": (lambda: tv.squeezenet1_1(num_classes=10), "vision/squeezenet.yaml:squeezenet1_1", ["params.classes=10"],
                      "vision/squeezenet_torchvision", (2, 3, 57, 64)),
    "mobilenet_v1": (lambda: mobilenet_v1(depth_multiplier=0.25, num_labels=10), "vision/mobilenet_v1.yaml",
                     ["params.classes=10", "params.width=0.25", "params.rows=64", "params.columns=47"], "vision/mobilenet_v1_huggingface", (2, 3, 64, 47)),
    "mobilenet_v2": (lambda: tv.mobilenet_v2(width_mult=0.25, num_classes=10), "vision/mobilenet_v2.yaml",
                     ["params.classes=10", "params.width=0.25"], "vision/mobilenet_v2_torchvision", (2, 3, 64, 48)),
    "mobilenet_v3_large": (lambda: tv.mobilenet_v3_large(num_classes=10), "vision/mobilenet_v3.yaml", ["params.classes=10"],
                           "vision/mobilenet_v3_torchvision", (2, 3, 64, 48)),
    "mobilenet_v3_small": (lambda: tv.mobilenet_v3_small(num_classes=10), "vision/mobilenet_v3.yaml:small", ["params.classes=10"],
                           "vision/mobilenet_v3_torchvision", (2, 3, 48, 64)),
    "resnet18": (lambda: tv.ResNet(tv.resnet.BasicBlock, [1, 2, 1, 1], num_classes=10), "resnet.yaml:resnet18",
                 ["params.classes=10", "params.depth=[1,2,1,1]"], "resnet_basic_torchvision", (2, 3, 40, 32)),
    "resnet50": (lambda: tv.ResNet(tv.resnet.Bottleneck, [2, 1, 1, 1], num_classes=10), "resnet.yaml",
                 ["params.classes=10", "params.depth=[2,1,1,1]"], "resnet_torchvision", (2, 3, 40, 32)),
    "resnext50": (lambda: tv.ResNet(tv.resnet.Bottleneck, [1, 1, 1, 1], num_classes=10, groups=32, width_per_group=4),
                  "resnet.yaml:resnext50_32x4d", ["params.classes=10", "params.depth=[1,1,1,1]"], "resnet_torchvision", (2, 3, 32, 40)),
    "wide_resnet": (lambda: tv.ResNet(tv.resnet.Bottleneck, [1, 1, 1, 1], num_classes=10, width_per_group=128),
                    "resnet.yaml:wide_resnet50_2", ["params.classes=10", "params.depth=[1,1,1,1]"], "resnet_torchvision", (1, 3, 32, 40)),
    "densenet": (lambda: tv.DenseNet(8, (2, 3, 2, 2), 16, num_classes=10), "vision/densenet.yaml",
                 ["params.classes=10", "params.growth=8", "params.layers=[2,3,2,2]", "params.stem=16"],
                 "vision/densenet_torchvision", (2, 3, 64, 48)),
    "googlenet": (lambda: tv.googlenet(num_classes=10, aux_logits=True, init_weights=False), "vision/googlenet.yaml",
                  ["params.classes=10"], "vision/googlenet_torchvision", (1, 3, 64, 48)),
    "inception_v3": (lambda: tv.inception_v3(num_classes=10, transform_input=True, init_weights=False), "vision/inception_v3.yaml",
                     ["params.classes=10", "params.rescale=true"], "vision/inception_v3_torchvision", (1, 3, 79, 83)),
    "shufflenet_v2": (lambda: tv.shufflenet_v2_x0_5(num_classes=10), "vision/shufflenet_v2.yaml:x0_5", ["params.classes=10"],
                      "vision/shufflenet_v2_torchvision", (2, 3, 64, 48)),
    "efficientnet": (lambda: tv.EfficientNet([INVERTED(1, 3, 1, 32, 16, 1, 0.25, 0.5), INVERTED(6, 3, 2, 16, 24, 2, 0.25, 0.5),
                                              INVERTED(6, 5, 2, 24, 40, 2, 0.25, 0.5), INVERTED(6, 3, 2, 40, 80, 3, 0.25, 0.5),
                                              INVERTED(6, 5, 1, 80, 112, 3, 0.25, 0.5), INVERTED(6, 5, 2, 112, 192, 4, 0.25, 0.5),
                                              INVERTED(6, 3, 1, 192, 320, 1, 0.25, 0.5)], 0.2, num_classes=10),
                     "vision/efficientnet.yaml", ["params.classes=10", "params.width=0.25", "params.depth=0.5"],
                     "vision/efficientnet_torchvision", (2, 3, 64, 48)),
    "convnext": (lambda: tv.ConvNeXt([CNBlock(16, 24, 1), CNBlock(24, 32, 2), CNBlock(32, 40, 2), CNBlock(40, None, 1)], 0.1, num_classes=10),
                 "vision/convnext.yaml", ["params.classes=10", "params.channels=[16,24,32,40]", "params.layers=[1,2,2,1]"],
                 "vision/convnext_torchvision", (2, 3, 64, 48)),
    "vit": (lambda: tv.VisionTransformer(32, 8, 2, 4, 32, 48, num_classes=10), "vision/vit.yaml",
            ["params.classes=10", "params.size=32", "params.patch=8", "params.layers=2", "params.heads=4", "params.width=32", "params.intermediate_size=48"],
            "vision/vit_torchvision", (2, 3, 32, 32)),
    "unet": (lambda: UNet(3, 2, 4), "vision/unet.yaml", ["params.rows=32", "params.columns=48", "params.width=4"],
             "vision/unet_milesial", (1, 3, 32, 48)),
    "bert": (lambda: bert(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48, vocab_size=50, max_position_embeddings=16),
             "bert_encoder.yaml", ["params.width=32", "params.layers=2", "params.heads=4", "params.intermediate_size=48", "params.vocab_size=50", "params.positions=16"],
             "bert_encoder_huggingface", bert_inputs(9)),
}

# name: (module, model file, overrides, rules, shape of the image)
FULL = {name: (getattr(tv, name), f"vision/{file}", [], f"vision/{file.split('.')[0]}_torchvision", (1, 3, 224, 224)) for name, file in {
    "alexnet": "alexnet.yaml", "vgg16": "vgg.yaml", "vgg19_bn": "vgg.yaml:vgg19_bn", "squeezenet1_0": "squeezenet.yaml",
    "squeezenet1_1": "squeezenet.yaml:squeezenet1_1", "mobilenet_v2": "mobilenet_v2.yaml", "mobilenet_v3_large": "mobilenet_v3.yaml",
    "mobilenet_v3_small": "mobilenet_v3.yaml:small", "densenet121": "densenet.yaml", "densenet161": "densenet.yaml:densenet161",
    "googlenet": "googlenet.yaml", "shufflenet_v2_x1_0": "shufflenet_v2.yaml", "shufflenet_v2_x2_0": "shufflenet_v2.yaml:x2_0",
    "efficientnet_b0": "efficientnet.yaml", "efficientnet_b3": "efficientnet.yaml:b3", "efficientnet_b5": "efficientnet.yaml:b5",
    "convnext_tiny": "convnext.yaml", "vit_b_16": "vit.yaml", "inception_v3": "inception_v3.yaml"}.items()}
FULL["inception_v3"] = (*FULL["inception_v3"][:4], (1, 3, 299, 299))
for kind in ("resnet50", "resnext50_32x4d", "wide_resnet50_2"):
    FULL[kind] = (getattr(tv, kind), f"resnet.yaml:{kind}", [], "resnet_torchvision", (1, 3, 224, 224))
FULL["resnet34"] = (tv.resnet34, "resnet.yaml:resnet34", [], "resnet_basic_torchvision", (1, 3, 224, 224))
FULL["unet"] = (lambda: UNet(3, 2, 64), "vision/unet.yaml", [], "vision/unet_milesial", (1, 3, 256, 256))
FULL["mobilenet_v1"] = (lambda: mobilenet_v1(num_labels=1000), "vision/mobilenet_v1.yaml", [], "vision/mobilenet_v1_huggingface", (1, 3, 224, 224))


def inputs_of(given):
    return {"image": 10 * values("image", given).astype(np.float64)} if isinstance(given, tuple) else given


def run(model, inputs):
    arrays = [torch.from_numpy(np.ascontiguousarray(each.astype(np.float32) if each.dtype == np.float64 else each)) for each in inputs.values()]
    with torch.no_grad():
        if isinstance(model, transformers.BertModel):
            out = model(arrays[0], token_type_ids=arrays[1], attention_mask=arrays[2])
            return {"hidden": out.last_hidden_state.numpy(), "pooled": out.pooler_output.numpy()}
        out = model(arrays[0])
    return {"logits": getattr(out, "logits", out).numpy()}


def write(folder):
    for name, (make, file, overrides, rules, given) in SMALL.items():
        model = make().eval()
        described = fill(model)
        inputs = inputs_of(given)
        case = {"model": file, "overrides": overrides, "rules": rules + ".rules.yaml", "weights": described,
                "inputs": {key: list(each.shape) for key, each in inputs.items()}}
        arrays = {"case": np.frombuffer(json.dumps(case, separators=(",", ":")).encode(), np.uint8)}
        arrays |= {"input." + key: each for key, each in inputs.items() if each.dtype == np.int64}
        arrays |= {"output." + key: each for key, each in run(model, inputs).items()}
        np.savez_compressed(os.path.join(folder, name + ".npz"), **arrays)


def check(programs, names):
    try:
        import onnxruntime
    except ImportError:
        onnxruntime = None
    bad = 0
    for name, (make, file, overrides, rules, given) in FULL.items():
        if names and name not in names:
            continue
        with tempfile.TemporaryDirectory() as folder:
            model = make().eval()
            fill(model)
            inputs = inputs_of(given)
            expected = run(model, inputs)["logits"]
            torch.save(model.state_dict(), f"{folder}/w.pth")
            del model
            np.savez(f"{folder}/x.npz", image=inputs["image"].astype(np.float32))

            def call(program, *arguments):
                done = subprocess.run([f"{programs}/{program}", *arguments], cwd=ROOT, capture_output=True, text=True)
                if done.returncode:
                    raise SystemExit(f"{name}: {program}: {done.stdout}{done.stderr}")

            call("paddle-convert", f"{folder}/w.pth", f"{folder}/w.safetensors", "--map", f"models/{rules}.rules.yaml")
            source = [f"models/{file}", *overrides, "--weights", f"{folder}/w.safetensors"]
            call("paddle-infer", *source, "--input", f"{folder}/x.npz", "--output", f"{folder}/y.npz", "--quiet")
            call("paddle-export", *source, "-o", f"{folder}/m.onnx", "--no-check")
            scale = np.abs(expected).max()
            found = {"ours": np.load(f"{folder}/y.npz")["logits"]}
            if onnxruntime:
                session = onnxruntime.InferenceSession(f"{folder}/m.onnx", providers=["CPUExecutionProvider"])
                found["ONNX Runtime"] = session.run(["logits"], {"image": inputs["image"].astype(np.float32)})[0]
            errors = {key: float(np.abs(each - expected).max() / scale) for key, each in found.items()}
            wrong = any(not error < 1e-3 for error in errors.values())
            bad += wrong
            print(name, "WRONG" if wrong else "ok", {key: f"{error:.1e}" for key, error in errors.items()}, flush=True)
    return 1 if bad else 0


if len(sys.argv) < 2:
    raise SystemExit(__doc__)
if sys.argv[1] == "--check":
    raise SystemExit(check(sys.argv[2], sys.argv[3:]))
write(sys.argv[1])
