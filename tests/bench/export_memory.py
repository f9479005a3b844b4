#!/usr/bin/env python3
"""Measures the peak resident memory of paddle-export on a model of several gigabytes.

The model is a stack of linear layers with an embedding, in each of the forms that models come in: a model file
with random weights, a model file with a safetensors file, and a Hugging Face folder in bfloat16.

  export_memory.py BIN [FORM...] [--gigabytes N] [--no-check] [--scratch FOLDER]

Needs twice the model's size on the disk. Exit code 1 if a peak is above 1.5 GiB.
"""
import argparse
import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import time

LIMIT_MIB = 1536
WIDTH, WORDS = 4096, 32000


def layers_of(gigabytes):
    return max(1, round((gigabytes * 1e9 / 4 - WORDS * WIDTH) / (8 * WIDTH * WIDTH)))


def write_model(path, layers):
    with open(path, "w") as f:
        f.write(f"""name: large
params: {{layers: {layers}, width: {WIDTH}, vocab_size: {WORDS}}}
inputs: {{tokens: "int64[batch, length]"}}
blocks:
  layer(x): |
    return x + linear(gelu(linear(layer_norm(x), 4 * width, name="up")), width, name="down")
model: |
  x = embedding(tokens, vocab_size, width, weight_init=normal(0, 0.02), name="words")
  for i in range(layers):
    x = layer(x)
  logits = matmul(layer_norm(x), get("words.weight"), transpose_y=true)
outputs: [logits]
""")


def write_safetensors(path, tensors, dtype):
    """Tensors of seeded noise, written piece by piece."""
    import numpy as np

    size = {"F32": 4, "BF16": 2}[dtype]
    header, at = {}, 0
    for name, shape in tensors:
        count = size
        for d in shape:
            count *= d
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + count]}
        at += count
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    random = np.random.default_rng(0)
    noise = random.normal(scale=0.02, size=1 << 22).astype(np.float32)
    piece = noise.tobytes() if dtype == "F32" else (noise.view(np.uint32) >> 16).astype(np.uint16).tobytes()
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text)
        while at > 0:
            f.write(piece[: min(at, len(piece))])
            at -= min(at, len(piece))


def parameters(layers):
    out = [("words.weight", [WORDS, WIDTH])]
    for i in range(layers):
        scope = f"layer.{i}"
        out += [(f"{scope}.layer_norm.weight", [WIDTH]), (f"{scope}.layer_norm.bias", [WIDTH]),
                (f"{scope}.up.weight", [WIDTH, 4 * WIDTH]), (f"{scope}.up.bias", [4 * WIDTH]),
                (f"{scope}.down.weight", [4 * WIDTH, WIDTH]), (f"{scope}.down.bias", [WIDTH])]
    return out + [("layer_norm.weight", [WIDTH]), ("layer_norm.bias", [WIDTH])]


def llama_folder(folder, gigabytes):
    width, inner, words, heads = 2048, 5632, 32000, 16
    each = 4 * width * width + 3 * width * inner
    layers = max(1, round((gigabytes * 1e9 / 2 - 2 * words * width) / each))
    config = {"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": width, "intermediate_size": inner,
              "num_hidden_layers": layers, "num_attention_heads": heads, "num_key_value_heads": heads, "vocab_size": words,
              "max_position_embeddings": 2048, "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "hidden_act": "silu",
              "tie_word_embeddings": False, "torch_dtype": "bfloat16", "attention_bias": False, "mlp_bias": False}
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "config.json"), "w") as f:
        json.dump(config, f)
    tensors = [("model.embed_tokens.weight", [words, width])]
    for i in range(layers):
        p = f"model.layers.{i}."
        tensors += [(p + "input_layernorm.weight", [width]), (p + "post_attention_layernorm.weight", [width])]
        tensors += [(p + f"self_attn.{k}_proj.weight", [width, width]) for k in "qkvo"]
        tensors += [(p + "mlp.gate_proj.weight", [inner, width]), (p + "mlp.up_proj.weight", [inner, width]),
                    (p + "mlp.down_proj.weight", [width, inner])]
    tensors += [("model.norm.weight", [width]), ("lm_head.weight", [words, width])]
    write_safetensors(os.path.join(folder, "model.safetensors"), tensors, "BF16")


def measure(command):
    begun = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    lines = process.stdout.read().strip().splitlines()
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        sys.exit("\n".join(lines[-5:]))
    return usage.ru_maxrss / 1024, time.perf_counter() - begun, lines


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin")
    parser.add_argument("forms", nargs="*", choices=["random", "weights", "folder", []])
    parser.add_argument("--gigabytes", type=float, default=6)
    parser.add_argument("--no-check", action="store_true")
    parser.add_argument("--scratch")
    options = parser.parse_args()
    scratch = tempfile.mkdtemp(dir=options.scratch)
    worst = 0
    try:
        model = os.path.join(scratch, "large.yaml")
        layers = layers_of(options.gigabytes)
        write_model(model, layers)
        for form in options.forms or ["random", "weights", "folder"]:
            source = [model]
            if form == "weights":
                weights = os.path.join(scratch, "weights.safetensors")
                write_safetensors(weights, parameters(layers), "F32")
                source += ["--weights", weights]
            elif form == "folder":
                source = [os.path.join(scratch, "llama")]
                llama_folder(source[0], options.gigabytes / 2)
            out = os.path.join(scratch, "out.onnx")
            command = [os.path.join(options.bin, "paddle-export"), *source, "-o", out, "--overwrite"]
            peak, seconds, lines = measure(command + (["--no-check"] if options.no_check else []))
            worst = max(worst, peak)
            size = os.path.getsize(out + ".data") / 1e9
            print(f"{form}: {size:.2f} GB, peak {peak:.0f} MiB, {seconds:.0f} s, {sum('agrees' in l for l in lines)} checks", flush=True)
            for made in os.listdir(scratch):
                if made.startswith("out.onnx") or made == "weights.safetensors":
                    os.remove(os.path.join(scratch, made))
    finally:
        shutil.rmtree(scratch)
    return 1 if worst > LIMIT_MIB else 0


if __name__ == "__main__":
    sys.exit(main())
