"""Quantizes the matrices of a GGUF file whose rows have whole blocks: quantize_gguf.py IN OUT TYPE

Needs the Python package gguf. tests/llm/data/llama_q8_0.gguf comes from it, of llama.gguf.
"""

import sys

import gguf

source = gguf.GGUFReader(sys.argv[1])
kind = gguf.GGMLQuantizationType[sys.argv[3]]
block, _ = gguf.GGML_QUANT_SIZES[kind]
writer = gguf.GGUFWriter(sys.argv[2], source.fields["general.architecture"].contents())
for name, field in source.fields.items():
    if name.startswith("GGUF.") or name == "general.architecture":
        continue
    writer.add_key_value(name, field.contents(), field.types[0])
for tensor in source.tensors:
    if len(tensor.data.shape) == 2 and tensor.data.shape[1] % block == 0:
        writer.add_tensor(tensor.name, gguf.quants.quantize(tensor.data, kind), raw_dtype=kind)
    else:
        writer.add_tensor(tensor.name, tensor.data)
writer.write_header_to_file()
writer.write_kv_data_to_file()
writer.write_tensors_to_file()
writer.close()
