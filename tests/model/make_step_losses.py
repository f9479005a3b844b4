#!/usr/bin/env python3
"""Writes step_losses/: small data, initial weights and 20 losses of steps with several models and
optimizers, as PyTorch trains them. Usage: make_step_losses.py (needs torch and numpy)."""

import json
import pathlib
import struct

import numpy
import torch
from torch.nn import functional

FOLDER = pathlib.Path(__file__).parent / "step_losses"
ROWS, BATCH, STEPS = 40, 8, 20


def write_safetensors(path, tensors):
    header, blob = {}, b""
    for name, value in sorted(tensors.items()):
        data = numpy.ascontiguousarray(value, dtype="<f4").tobytes()
        header[name] = {"dtype": "F32", "shape": list(value.shape),
                        "data_offsets": [len(blob), len(blob) + len(data)]}
        blob += data
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + blob)


def net(random, sizes):
    """Linear layers of these sizes as [weight [in, out], bias] pairs that require gradients."""
    layers = []
    for i, o in zip(sizes, sizes[1:]):
        weight = random.standard_normal((i, o)).astype("float32") / numpy.float32(i**0.5)
        bias = random.standard_normal(o).astype("float32") * numpy.float32(0.1)
        layers += [torch.tensor(weight, requires_grad=True), torch.tensor(bias, requires_grad=True)]
    return layers


def names(layers, scope=""):
    out = {}
    for i, tensor in enumerate(layers):
        layer = "linear.0" if i < 2 else "linear_2"  # the loop's, and the one after it
        out[f"{scope}{layer}.{'bias' if i % 2 else 'weight'}"] = tensor.detach().numpy().copy()
    return out


def mlp(layers, x, act):
    for i in range(0, len(layers), 2):
        x = x @ layers[i] + layers[i + 1]
        if i + 2 < len(layers):
            x = act(x)
    return x


def main():
    random = numpy.random.default_rng(7)
    torch.set_num_threads(1)
    data = {"x": random.standard_normal((ROWS, 6)).astype("float32"),
            "z": random.standard_normal((ROWS, 3)).astype("float32"),
            "eps": random.random((ROWS, 1)).astype("float32"),
            "label": random.integers(0, 4, ROWS)}
    FOLDER.mkdir(exist_ok=True)
    numpy.savez(FOLDER / "data.npz", **data)

    def batch(step):
        rows = slice(step * BATCH % ROWS, step * BATCH % ROWS + BATCH)
        return [torch.tensor(data[k][rows]) for k in ("x", "z", "eps", "label")]

    leaky = lambda x: functional.leaky_relu(x, 0.2)
    losses = {}

    # A GAN: the discriminator, then the generator against the updated discriminator.
    g, d = net(random, [3, 16, 6]), net(random, [6, 16, 1])
    write_safetensors(FOLDER / "gan.safetensors", names(g, "g.") | names(d, "d."))
    start = [t.detach().clone() for t in g + d]
    opt_g = torch.optim.Adam(g, lr=0.01, betas=(0.5, 0.999))
    opt_d = torch.optim.Adam(d, lr=0.02, betas=(0.5, 0.999))
    losses["gan"] = []
    for step in range(STEPS):
        x, z, _, _ = batch(step)
        fake = mlp(g, z, torch.tanh)
        d_loss = (functional.softplus(-mlp(d, x, leaky)).mean()
                  + functional.softplus(mlp(d, fake.detach(), leaky)).mean())
        opt_d.zero_grad()
        d_loss.backward()
        opt_d.step()
        g_loss = functional.softplus(-mlp(d, fake, leaky)).mean()
        opt_g.zero_grad()
        g_loss.backward()
        opt_g.step()
        losses["gan"].append([d_loss.item(), g_loss.item()])

    # WGAN with gradient penalty; the generator is updated in every second step.
    with torch.no_grad():
        for tensor, value in zip(g + d, start):
            tensor.copy_(value)
    opt_g = torch.optim.Adam(g, lr=0.01, betas=(0.0, 0.9))
    opt_d = torch.optim.Adam(d, lr=0.01, betas=(0.0, 0.9))
    losses["wgan_gp"] = []
    for step in range(STEPS):
        x, z, eps, _ = batch(step)
        fake = mlp(g, z, torch.tanh)
        mixed = (eps * x + (1 - eps) * fake.detach()).requires_grad_()
        slope, = torch.autograd.grad(mlp(d, mixed, leaky).sum(), mixed, create_graph=True)
        penalty = ((slope.square().sum(1).sqrt() - 1) ** 2).mean()
        d_loss = mlp(d, fake.detach(), leaky).mean() - mlp(d, x, leaky).mean() + 10 * penalty
        opt_d.zero_grad()
        d_loss.backward()
        opt_d.step()
        g_loss = -mlp(d, fake, leaky).mean()
        if (step + 1) % 2 == 0:
            opt_g.zero_grad()
            g_loss.backward()
            opt_g.step()
        losses["wgan_gp"].append([d_loss.item(), g_loss.item()])

    # Distillation: a frozen teacher, a smaller student.
    teacher, student = net(random, [6, 24, 4]), net(random, [6, 8, 4])
    write_safetensors(FOLDER / "teacher.safetensors", names(teacher))
    write_safetensors(FOLDER / "student.safetensors", names(student))
    opt = torch.optim.SGD(student, lr=0.1, momentum=0.9)
    losses["distillation"] = []
    for step in range(STEPS):
        x, _, _, label = batch(step)
        with torch.no_grad():
            wanted = torch.softmax(mlp(teacher, x, torch.relu) / 2, 1)
        logits = mlp(student, x, torch.relu)
        soft = -(wanted * torch.log_softmax(logits / 2, 1)).sum(1).mean()
        loss = 0.3 * functional.cross_entropy(logits, label) + 0.7 * 4 * soft
        opt.zero_grad()
        loss.backward()
        opt.step()
        losses["distillation"].append([loss.item()])

    (FOLDER / "losses.json").write_text(json.dumps(losses, indent=1) + "\n")


if __name__ == "__main__":
    main()
