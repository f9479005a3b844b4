"""Writes tiny random models of further families with the logits of transformers: make_families.py FOLDER [NAME...]

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
    "opt": (t.OPTForCausalLM, t.OPTConfig(hidden_size=32, ffn_dim=40, num_hidden_layers=2, num_attention_heads=4, vocab_size=50, max_position_embeddings=64, word_embed_proj_dim=32, pad_token_id=1)),
    "starcoder2": (t.Starcoder2ForCausalLM, t.Starcoder2Config(hidden_size=32, intermediate_size=40, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, vocab_size=50, max_position_embeddings=64, sliding_window=None)),
    "falcon": (t.FalconForCausalLM, t.FalconConfig(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, vocab_size=50, max_position_embeddings=64, multi_query=True, parallel_attn=True, bias=False, alibi=False)),
    "falcon_new": (t.FalconForCausalLM, t.FalconConfig(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, num_kv_heads=2, vocab_size=50, max_position_embeddings=64, new_decoder_architecture=True, bias=False, alibi=False)),
    "falcon_rw": (t.FalconForCausalLM, t.FalconConfig(hidden_size=36, num_hidden_layers=2, num_attention_heads=6, vocab_size=50, max_position_embeddings=64, multi_query=False, parallel_attn=False, bias=True, alibi=True)),
    "bloom": (t.BloomForCausalLM, t.BloomConfig(hidden_size=32, n_layer=2, n_head=4, vocab_size=50)),
    "glm4": (t.Glm4ForCausalLM, t.Glm4Config(hidden_size=32, intermediate_size=40, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, head_dim=8, vocab_size=50, max_position_embeddings=64, pad_token_id=0)),
    "ernie4_5": (t.Ernie4_5ForCausalLM, t.Ernie4_5Config(hidden_size=32, intermediate_size=40, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, head_dim=8, vocab_size=50, max_position_embeddings=64, pad_token_id=0)),
    "mixtral": (t.MixtralForCausalLM, t.MixtralConfig(hidden_size=32, intermediate_size=24, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, vocab_size=50, max_position_embeddings=64, num_local_experts=4, num_experts_per_tok=2, sliding_window=None)),
    "qwen3_moe": (t.Qwen3MoeForCausalLM, t.Qwen3MoeConfig(hidden_size=32, intermediate_size=40, moe_intermediate_size=24, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, head_dim=8, vocab_size=50, max_position_embeddings=64, num_experts=4, num_experts_per_tok=2)),
    "qwen2_moe": (t.Qwen2MoeForCausalLM, t.Qwen2MoeConfig(hidden_size=32, intermediate_size=40, moe_intermediate_size=24, shared_expert_intermediate_size=16, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, vocab_size=50, max_position_embeddings=64, num_experts=4, num_experts_per_tok=2)),
    "bert": (t.BertForMaskedLM, t.BertConfig(hidden_size=32, intermediate_size=40, num_hidden_layers=2, num_attention_heads=4, vocab_size=50, max_position_embeddings=64)),
    "roberta": (t.RobertaForMaskedLM, t.RobertaConfig(hidden_size=32, intermediate_size=40, num_hidden_layers=2, num_attention_heads=4, vocab_size=50, max_position_embeddings=66, type_vocab_size=1, pad_token_id=1)),
    "dynamic": (t.LlamaForCausalLM, t.LlamaConfig(hidden_size=32, intermediate_size=40, num_hidden_layers=2, num_attention_heads=2, num_key_value_heads=1, vocab_size=50, max_position_embeddings=16, rope_parameters={"rope_type": "dynamic", "rope_theta": 1000.0, "factor": 2.0})),
    "yarn": (t.Qwen3ForCausalLM, t.Qwen3Config(hidden_size=32, intermediate_size=40, num_hidden_layers=2, num_attention_heads=2, num_key_value_heads=1, head_dim=16, vocab_size=50, max_position_embeddings=128, rope_parameters={"rope_type": "yarn", "rope_theta": 1000.0, "factor": 4.0, "original_max_position_embeddings": 32})),
}
# Small ones: projected embeddings, and scaled rotary positions (yarn without the length of the training takes that of the config).
SMALL = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "vocab_size": 50, "max_position_embeddings": 64}
ROPE = {"rope_theta": 1000.0}
MODELS |= {
    "opt_projected": (t.OPTForCausalLM, t.OPTConfig(**SMALL, ffn_dim=24, word_embed_proj_dim=12, do_layer_norm_before=False, pad_token_id=1)),
    "glm4_yarn": (t.Glm4ForCausalLM, t.Glm4Config(**SMALL, intermediate_size=24, num_key_value_heads=1, head_dim=16, pad_token_id=0, rope_parameters={**ROPE, "rope_type": "yarn", "factor": 4.0, "partial_rotary_factor": 0.5})),
    "falcon_linear": (t.FalconForCausalLM, t.FalconConfig(**SMALL, multi_query=True, parallel_attn=True, bias=False, alibi=False, rope_parameters={**ROPE, "rope_type": "linear", "factor": 2.0})),
    "gpt_neox_llama3": (t.GPTNeoXForCausalLM, t.GPTNeoXConfig(**SMALL, intermediate_size=24, rope_parameters={**ROPE, "rope_type": "llama3", "partial_rotary_factor": 0.5, "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 32})),
    "phi3_longrope": (t.Phi3ForCausalLM, t.Phi3Config(**SMALL, intermediate_size=24, num_key_value_heads=1, original_max_position_embeddings=8, sliding_window=None, pad_token_id=0, rope_parameters={**ROPE, "rope_type": "longrope", "original_max_position_embeddings": 8, "short_factor": [1.0, 1.1, 1.3, 1.6], "long_factor": [1.0, 1.5, 3.0, 6.0]})),
    "starcoder2_yarn": (t.Starcoder2ForCausalLM, t.Starcoder2Config(**SMALL, intermediate_size=24, num_key_value_heads=1, sliding_window=None, rope_parameters={**ROPE, "rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32, "beta_fast": 8.0})),
}
folder, only = sys.argv[1], sys.argv[2:]
for index, (name, (kind, config)) in enumerate(MODELS.items()):
    if only and name not in only:
        continue
    torch.manual_seed(index)
    model = kind(config).eval().float()
    for key, parameter in model.named_parameters():
        scale = 0.2 if "embed" not in key and "wte" not in key else 1.0
        parameter.data = torch.randn_like(parameter) * scale + (1 if parameter.ndim == 1 and "norm" in key and "gemma" not in name else 0)
    tokens = torch.randint(0, 50, (2, 30 if name == "dynamic" else 12))
    with torch.no_grad():
        if name == "dynamic":  # its frequencies depend on the length so far: token by token, as texts are generated
            cache, rows = t.DynamicCache(), []
            for i in range(tokens.shape[1]):
                rows.append(model(tokens[:, i : i + 1], past_key_values=cache, use_cache=True).logits)
            logits = torch.cat(rows, 1)
        else:
            logits = model(tokens).logits
    place = os.path.join(folder, name)
    model.save_pretrained(place)
    if os.path.exists(os.path.join(place, "generation_config.json")):
        os.remove(os.path.join(place, "generation_config.json"))
    np.savez(os.path.join(place, "golden.npz"), tokens=tokens.numpy().astype(np.int64), logits=logits.numpy())
    if name == "phi3_longrope":  # as long as the texts of the training: other frequencies
        with torch.no_grad():
            np.savez(os.path.join(place, "golden_short.npz"), tokens=tokens[:, :8].numpy().astype(np.int64), logits=model(tokens[:, :8]).logits.numpy())
