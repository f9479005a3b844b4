"""Writes a GGUF file with a tensor of random blocks for each type, and their values: make_gguf.py FOLDER

Needs the Python package gguf, whose dequantization is the reference. blocks.gguf and blocks.npz in
tests/formats/data come from it; so does quantized.npz, values with their blocks by its quantizer.
"""

import os
import sys

import gguf
import numpy as np

folder = sys.argv[1]
os.makedirs(folder, exist_ok=True)
random = np.random.default_rng(3)
# Offsets of the float16 scales in a block: random bits there could be infinite.
SCALES = {"Q4_0": [0], "Q4_1": [0, 2], "Q5_0": [0], "Q5_1": [0, 2], "Q8_0": [0], "Q2_K": [80, 82], "Q3_K": [108], "Q4_K": [0, 2], "Q5_K": [0, 2], "Q6_K": [208], "IQ4_NL": [0], "MXFP4": []}
writer = gguf.GGUFWriter(os.path.join(folder, "blocks.gguf"), "test")
writer.add_string("test.text", "é")
writer.add_array("test.numbers", [1.5, 2.5])
values = {}
for name, scales in SCALES.items():
    kind = gguf.GGMLQuantizationType[name]
    count, size = gguf.GGML_QUANT_SIZES[kind]
    blocks = random.integers(0, 256, (2, size), dtype=np.uint8)
    if name == "MXFP4":
        blocks[:, 0] = [1, 124]
    for at in scales:
        blocks[:, at : at + 2] = random.normal(0, 0.1, (2, 1)).astype(np.float16).view(np.uint8)
    values[name] = gguf.quants.dequantize(blocks, kind)
    writer.add_tensor(name, blocks, raw_dtype=kind)
plain = random.normal(0, 1, (3, 96)).astype(np.float32)
plain[0, :32] = 0
plain[1, 32:64] = np.linspace(-4, 4, 32)
plain[2, 64:] = np.round(plain[2, 64:] * 4) / 4
quantized = {"values": plain}
for name in ("Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0"):
    quantized[name] = gguf.quants.quantize(plain, gguf.GGMLQuantizationType[name])
np.savez(os.path.join(folder, "quantized.npz"), **quantized)
half = random.normal(0, 1, (3, 5)).astype(np.float16)
values["F16"] = half.astype(np.float32)
writer.add_tensor("F16", half)
values["F32"] = random.normal(0, 1, (2, 3)).astype(np.float32)
writer.add_tensor("F32", values["F32"])
writer.write_header_to_file()
writer.write_kv_data_to_file()
writer.write_tensors_to_file()
writer.close()
np.savez(os.path.join(folder, "blocks.npz"), **values)
