"""Writes GGUF files of the tiny mixtures of experts of make_families.py: make_experts.py FOLDER

Needs the Python packages torch, transformers and gguf. Of the folders mixtral, qwen2_moe and qwen3_moe it
makes mixtral.gguf and qwen2_moe.gguf, with the same weights, and qwen3_moe.gguf, with shares that sum to 1,
some experts in q8_0 and the logits of these weights in qwen3_moe_gguf/golden.npz.
"""

import os
import sys

import gguf
import numpy as np
import torch
import transformers

folder = sys.argv[1]


def neighbors(weight, heads):
    return weight.reshape(heads, 2, -1, weight.shape[1]).swapaxes(1, 2).reshape(weight.shape)


def write(name, architecture, model, quantized):
    c = model.config
    weights = {k: v.detach().numpy() for k, v in model.state_dict().items()}
    writer = gguf.GGUFWriter(os.path.join(folder, name + ".gguf"), architecture)
    writer.add_embedding_length(c.hidden_size)
    writer.add_block_count(c.num_hidden_layers)
    writer.add_head_count(c.num_attention_heads)
    writer.add_head_count_kv(c.num_key_value_heads)
    writer.add_feed_forward_length(c.intermediate_size)
    writer.add_vocab_size(c.vocab_size)
    writer.add_layer_norm_rms_eps(c.rms_norm_eps)
    writer.add_rope_freq_base(c.rope_parameters["rope_theta"])
    writer.add_context_length(c.max_position_embeddings)
    writer.add_expert_count(getattr(c, "num_local_experts", None) or c.num_experts)
    writer.add_expert_used_count(c.num_experts_per_tok)
    if architecture == "qwen3moe":
        writer.add_key_length(c.head_dim)
        writer.add_value_length(c.head_dim)
    if architecture != "llama":
        writer.add_expert_feed_forward_length(c.moe_intermediate_size)
    if architecture == "qwen2moe":
        writer.add_expert_shared_feed_forward_length(c.shared_expert_intermediate_size)

    def add(key, value):
        if key in quantized:
            writer.add_tensor(key, gguf.quants.quantize(value, gguf.GGMLQuantizationType.Q8_0), raw_dtype=gguf.GGMLQuantizationType.Q8_0)
        else:
            writer.add_tensor(key, np.ascontiguousarray(value))

    add("token_embd.weight", weights["model.embed_tokens.weight"])
    add("output_norm.weight", weights["model.norm.weight"])
    if not c.tie_word_embeddings:
        add("output.weight", weights["lm_head.weight"])
    for i in range(c.num_hidden_layers):
        layer, block = f"model.layers.{i}.", f"blk.{i}."
        add(block + "attn_norm.weight", weights[layer + "input_layernorm.weight"])
        add(block + "ffn_norm.weight", weights[layer + "post_attention_layernorm.weight"])
        for theirs, heads in (("q", c.num_attention_heads), ("k", c.num_key_value_heads), ("v", 0)):
            value = weights[layer + f"self_attn.{theirs}_proj.weight"]
            add(block + f"attn_{theirs}.weight", neighbors(value, heads) if heads and architecture == "llama" else value)
            if architecture == "qwen2moe":
                add(block + f"attn_{theirs}.bias", weights[layer + f"self_attn.{theirs}_proj.bias"])
        add(block + "attn_output.weight", weights[layer + "self_attn.o_proj.weight"])
        for key in ("q_norm", "k_norm"):
            if layer + f"self_attn.{key}.weight" in weights:
                add(block + f"attn_{key}.weight", weights[layer + f"self_attn.{key}.weight"])
        add(block + "ffn_gate_inp.weight", weights[layer + "mlp.gate.weight"])
        gate, up = np.split(weights[layer + "mlp.experts.gate_up_proj"], 2, axis=1)
        for key, value in (("gate", gate), ("up", up), ("down", weights[layer + "mlp.experts.down_proj"])):
            add(block + f"ffn_{key}_exps.weight", value)
        if architecture == "qwen2moe":
            # The gate of the shared expert is a vector in some files, a matrix of one row in others.
            gate = weights[layer + "mlp.shared_expert_gate.weight"]
            add(block + "ffn_gate_inp_shexp.weight", gate[0] if i == 0 else gate)
            for key in ("gate", "up", "down"):
                add(block + f"ffn_{key}_shexp.weight", weights[layer + f"mlp.shared_expert.{key}_proj.weight"])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


model = transformers.MixtralForCausalLM.from_pretrained(os.path.join(folder, "mixtral"), dtype=torch.float32).eval()
write("mixtral", "llama", model, ())
model = transformers.Qwen2MoeForCausalLM.from_pretrained(os.path.join(folder, "qwen2_moe"), dtype=torch.float32).eval()
write("qwen2_moe", "qwen2moe", model, ())
model = transformers.Qwen3MoeForCausalLM.from_pretrained(os.path.join(folder, "qwen3_moe"), dtype=torch.float32, norm_topk_prob=True).eval()
quantized = [f"blk.{i}.ffn_{key}_exps.weight" for i in range(model.config.num_hidden_layers) for key in ("gate", "up")]
for i in range(model.config.num_hidden_layers):
    parameter = model.model.layers[i].mlp.experts.gate_up_proj
    kind = gguf.GGMLQuantizationType.Q8_0
    parameter.data = torch.tensor(gguf.quants.dequantize(gguf.quants.quantize(parameter.data.numpy(), kind), kind))
write("qwen3_moe", "qwen3moe", model, quantized)
tokens = torch.from_numpy(np.load(os.path.join(folder, "qwen3_moe", "golden.npz"))["tokens"])
with torch.no_grad():
    logits = model(tokens).logits
os.makedirs(os.path.join(folder, "qwen3_moe_gguf"), exist_ok=True)
np.savez(os.path.join(folder, "qwen3_moe_gguf", "golden.npz"), tokens=tokens.numpy().astype(np.int64), logits=logits.numpy())
