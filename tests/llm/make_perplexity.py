"""Prints the perplexities of LanguageModel.PerplexityIsThatOfNumPy: make_perplexity.py tests/llm/data/llama

A forward pass of the Llama family in NumPy (float64), checked against transformers' logits in golden.npz.
Needs the Python package numpy.
"""

import json
import os
import struct
import sys

import numpy as np

folder = sys.argv[1]
config = json.load(open(os.path.join(folder, "config.json")))
data = open(os.path.join(folder, "model.safetensors"), "rb").read()
start = 8 + struct.unpack("<Q", data[:8])[0]
weights = {}
for key, entry in json.loads(data[8:start]).items():
    if key == "__metadata__":
        continue
    begin, end = entry["data_offsets"]
    weights[key] = np.frombuffer(data[start + begin:start + end], np.float32).reshape(entry["shape"]).astype(np.float64)


def norm(x, name):
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + config["rms_norm_eps"]) * weights[name]


def rotate(x):
    """x: [length, heads, head]"""
    half = x.shape[-1] // 2
    angles = np.arange(len(x))[:, None, None] * config["rope_parameters"]["rope_theta"] ** (-np.arange(half) / half)
    a, b = x[..., :half], x[..., half:]
    return np.concatenate([a * np.cos(angles) - b * np.sin(angles), b * np.cos(angles) + a * np.sin(angles)], -1)


def log_softmax(x):
    x = x - x.max(-1, keepdims=True)
    return x - np.log(np.exp(x).sum(-1, keepdims=True))


def compute_logits(tokens):
    x, heads = weights["model.embed_tokens.weight"][tokens], config["num_attention_heads"]
    mask = np.triu(np.full((len(tokens), len(tokens)), -np.inf), 1)
    for i in range(config["num_hidden_layers"]):
        layer = f"model.layers.{i}."
        project = lambda y, name: y @ weights[layer + name + ".weight"].T
        y = norm(x, layer + "input_layernorm.weight")
        q, k, v = (project(y, f"self_attn.{p}_proj").reshape(len(tokens), -1, config["head_dim"]) for p in "qkv")
        k, v = (np.repeat(z, heads // z.shape[1], 1) for z in (rotate(k), v))
        scores = np.exp(log_softmax(np.einsum("qhd,khd->hqk", rotate(q), k) / np.sqrt(config["head_dim"]) + mask))
        x = x + project(np.einsum("hqk,khd->qhd", scores, v).reshape(len(tokens), -1), "self_attn.o_proj")
        y = norm(x, layer + "post_attention_layernorm.weight")
        gate = project(y, "mlp.gate_proj")
        x = x + project(gate / (1 + np.exp(-gate)) * project(y, "mlp.up_proj"), "mlp.down_proj")
    return norm(x, "model.norm.weight") @ weights["lm_head.weight"].T


def perplexity(logits, tokens):
    """Of windows: logits [length, vocabulary] and the tokens [length] of each."""
    losses = [-log_softmax(x)[np.arange(len(t) - 1), t[1:]] for x, t in zip(logits, tokens)]
    return np.exp(np.concatenate(losses).mean())


golden = np.load(os.path.join(folder, "golden.npz"))
for tokens, logits in zip(golden["tokens"], golden["logits"]):
    assert np.abs(compute_logits(tokens) - logits).max() < 2e-5 * np.abs(logits).max()
print("first row, golden logits: %.9g" % perplexity([golden["logits"][0].astype(np.float64)], [golden["tokens"][0]]))
text = golden["tokens"].reshape(-1)
for window in (2, 5, 7, 18):
    parts = [text[i:i + window] for i in range(0, len(text) - 1, window - 1)]
    print("both rows, window %d: %.9g" % (window, perplexity([compute_logits(p) for p in parts], parts)))
