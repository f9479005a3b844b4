"""Writes tiny random models of further families with the logits of transformers: make_families.py FOLDER

Needs the Python packages torch and transformers. The folders in tests/llm/data come from it.
"""

import os
import sys

import numpy as np
import torch
import transformers as t

MODELS = {
    "gemma2": (t.Gemma2ForCausalLM, t.Gemma2Config(hidden_size=32, intermediate_size=40, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, head_dim=8, vocab_size=50, max_position_embeddings=64, sliding_window=5, query_pre_attn_scalar=10, attn_implementation="eager")),
    "gemma3": (t.Gemma3ForCausalLM, t.Gemma3TextConfig(hidden_size=32, intermediate_size=40, num_hidden_layers=3, num_attention_heads=4, num_key_value_heads=1, head_dim=8, vocab_size=50, max_position_embeddings=64, sliding_window=5, query_pre_attn_scalar=10, layer_types=["sliding_attention", "full_attention", "sliding_attention"], attn_implementation="eager")),
    "phi3": (t.Phi3ForCausalLM, t.Phi3Config(hidden_size=32, intermediate_size=40, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, vocab_size=50, max_position_embeddings=64, original_max_position_embeddings=64, sliding_window=None, pad_token_id=0)),
    "gpt2": (t.GPT2LMHeadModel, t.GPT2Config(n_embd=32, n_layer=2, n_head=4, n_inner=48, n_positions=64, vocab_size=50, bos_token_id=0, eos_token_id=0)),
    "gpt_neox": (t.GPTNeoXForCausalLM, t.GPTNeoXConfig(hidden_size=32, intermediate_size=40, num_hidden_layers=2, num_attention_heads=2, vocab_size=50, max_position_embeddings=64, rotary_pct=0.25)),
    "smollm3": (t.SmolLM3ForCausalLM, t.SmolLM3Config(hidden_size=32, intermediate_size=40, num_hidden_layers=4, num_attention_heads=4, num_key_value_heads=2, vocab_size=50, max_position_embeddings=64, pad_token_id=0)),
    "llama3": (t.LlamaForCausalLM, t.LlamaConfig(hidden_size=32, intermediate_size=40, num_hidden_layers=2, num_attention_heads=2, num_key_value_heads=1, vocab_size=50, max_position_embeddings=64, tie_word_embeddings=True, rope_parameters={"rope_type": "llama3", "rope_theta": 500.0, "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 32})),
    "mistral": (t.MistralForCausalLM, t.MistralConfig(hidden_size=32, intermediate_size=40, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, vocab_size=50, max_position_embeddings=64, sliding_window=5, tie_word_embeddings=False)),
}
folder = sys.argv[1]
for index, (name, (kind, config)) in enumerate(MODELS.items()):
    torch.manual_seed(index)
    model = kind(config).eval().float()
    for key, parameter in model.named_parameters():
        scale = 0.2 if "embed" not in key and "wte" not in key else 1.0
        parameter.data = torch.randn_like(parameter) * scale + (1 if parameter.ndim == 1 and "norm" in key and "gemma" not in name else 0)
    tokens = torch.randint(0, 50, (2, 12))
    with torch.no_grad():
        logits = model(tokens).logits
    place = os.path.join(folder, name)
    model.save_pretrained(place)
    if os.path.exists(os.path.join(place, "generation_config.json")):
        os.remove(os.path.join(place, "generation_config.json"))
    np.savez(os.path.join(place, "golden.npz"), tokens=tokens.numpy().astype(np.int64), logits=logits.numpy())
