"""Writes tiny random models of the Llama family with the logits of transformers: make_llama.py FOLDER

Needs the Python packages torch, transformers and gguf. tests/llm/data comes from it: for each model its
folder as Hugging Face saves it, and tokens with their logits; one of them also as GGUF.
"""

import os
import sys

import gguf
import numpy as np
import torch
from transformers import LlamaConfig, LlamaForCausalLM, Qwen2Config, Qwen2ForCausalLM, Qwen3Config, Qwen3ForCausalLM

COMMON = {"hidden_size": 32, "intermediate_size": 40, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 50, "max_position_embeddings": 64, "rms_norm_eps": 1e-5}
MODELS = {
    "llama": LlamaForCausalLM(LlamaConfig(**COMMON, tie_word_embeddings=False)),
    "qwen2": Qwen2ForCausalLM(Qwen2Config(**COMMON, tie_word_embeddings=True, rope_parameters={"rope_type": "default", "rope_theta": 1e6})),
    "qwen3": Qwen3ForCausalLM(Qwen3Config(**COMMON, head_dim=16, tie_word_embeddings=False)),
}
folder = sys.argv[1]
torch.manual_seed(0)
for name, model in MODELS.items():
    model = model.eval().float()
    for parameter in model.parameters():
        parameter.data = torch.randn_like(parameter) * 0.2 + (1 if parameter.ndim == 1 else 0)
    tokens = torch.randint(0, 50, (2, 9))
    with torch.no_grad():
        logits = model(tokens).logits
    place = os.path.join(folder, name)
    model.save_pretrained(place)
    os.remove(os.path.join(place, "generation_config.json"))
    np.savez(os.path.join(place, "golden.npz"), tokens=tokens.numpy().astype(np.int64), logits=logits.numpy())
    if name != "llama":
        continue
    # The same as GGUF: rows of q and k in the order of neighboring pairs.
    writer = gguf.GGUFWriter(os.path.join(folder, "llama.gguf"), "llama")
    c = model.config
    writer.add_embedding_length(c.hidden_size)
    writer.add_block_count(c.num_hidden_layers)
    writer.add_head_count(c.num_attention_heads)
    writer.add_head_count_kv(c.num_key_value_heads)
    writer.add_feed_forward_length(c.intermediate_size)
    writer.add_vocab_size(c.vocab_size)
    writer.add_layer_norm_rms_eps(c.rms_norm_eps)
    writer.add_context_length(64)

    def neighbors(weight, heads):
        return weight.reshape(heads, 2, -1, weight.shape[1]).swapaxes(1, 2).reshape(weight.shape)

    weights = {k: v.detach().numpy() for k, v in model.state_dict().items()}
    names = {"model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output"}
    for i in range(c.num_hidden_layers):
        layer, block = f"model.layers.{i}.", f"blk.{i}."
        for theirs, ours in (("self_attn.q_proj", "attn_q"), ("self_attn.k_proj", "attn_k"), ("self_attn.v_proj", "attn_v"), ("self_attn.o_proj", "attn_output"), ("mlp.gate_proj", "ffn_gate"),
                             ("mlp.up_proj", "ffn_up"), ("mlp.down_proj", "ffn_down"), ("input_layernorm", "attn_norm"), ("post_attention_layernorm", "ffn_norm")):
            names[layer + theirs] = block + ours
    for theirs, ours in names.items():
        value = weights[theirs + ".weight"]
        if ours.endswith("attn_q"):
            value = neighbors(value, c.num_attention_heads)
        if ours.endswith("attn_k"):
            value = neighbors(value, c.num_key_value_heads)
        writer.add_tensor(ours + ".weight", np.ascontiguousarray(value))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
