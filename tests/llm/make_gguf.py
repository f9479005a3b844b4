"""Writes models of this folder as GGUF files in the layout of llama.cpp: make_gguf.py DATA [NAME...]

DATA is tests/llm/data: NAME.gguf comes from the folder NAME, with the same weights, so that its logits
are those of the folder's golden.npz. Needs the Python packages gguf and safetensors. Names of tensors
are those of gguf's own tables. split-0000N-of-00003.gguf are the parts of starcoder2.gguf.
"""

import json
import os
import sys

import gguf
import numpy as np
from safetensors.numpy import load_file

ARCHITECTURES = {"phi3": "PHI3", "phi3_longrope": "PHI3", "gpt2": "GPT2", "gpt_neox": "GPTNEOX", "bloom": "BLOOM", "falcon": "FALCON", "falcon_new": "FALCON", "starcoder2": "STARCODER2",
                 "glm4": "GLM4", "smollm3": "SMOLLM3", "ernie4_5": "ERNIE4_5", "bert": "BERT", "yarn": "QWEN3", "llama3": "LLAMA"}


def thirds(value, heads):
    """Rows of queries, keys and values that are neighbors in each head: all queries first, then keys, values."""
    parts = value.reshape(heads, 3, -1, *value.shape[1:])
    return np.concatenate([parts[:, i].reshape(-1, *value.shape[1:]) for i in range(3)])


def groups(value, heads, kv_heads):
    """The same for groups of heads, each with its keys and values."""
    parts = value.reshape(kv_heads, heads // kv_heads + 2, -1, *value.shape[1:])
    return np.concatenate([part.reshape(-1, *value.shape[1:]) for part in (parts[:, :-2], parts[:, -2], parts[:, -1])])


def neighbors(value, heads):
    """Rotary pairs of rows as neighbors."""
    return value.reshape(heads, 2, -1, *value.shape[1:]).swapaxes(1, 2).reshape(value.shape)


def llama3_factors(rope, head):
    """Divisors of the frequencies: 1 for high ones, the factor for low ones, and a transition."""
    turns = rope["original_max_position_embeddings"] * rope["rope_theta"] ** (-np.arange(0, head, 2) / head) / (2 * np.pi)
    kept = np.clip((turns - rope["low_freq_factor"]) / (rope["high_freq_factor"] - rope["low_freq_factor"]), 0, 1)
    return (1 / (kept + (1 - kept) / rope["factor"])).astype(np.float32)


def converted(name, key, value, c, heads, kv_heads):
    if name == "gpt2" and key.endswith((".c_attn.weight", ".c_proj.weight", ".c_fc.weight")):
        return value.T
    if name in ("gpt_neox", "bloom") and "query_key_value" in key:
        return thirds(value, heads)
    if name.startswith("falcon") and "query_key_value" in key:
        return groups(value, heads, kv_heads)
    if name in ("smollm3", "llama3") and "q_proj" in key:
        return neighbors(value, heads)
    if name in ("smollm3", "llama3") and "k_proj" in key:
        return neighbors(value, kv_heads)
    return value


def write(folder, name, target=None, **options):
    c = json.load(open(os.path.join(folder, name, "config.json")))
    architecture = gguf.MODEL_ARCH[ARCHITECTURES[name]]
    width, heads = c.get("hidden_size") or c["n_embd"], c.get("num_attention_heads") or c["n_head"]
    layers = c.get("num_hidden_layers") or c["n_layer"]
    kv_heads = c.get("num_key_value_heads") or heads
    if name.startswith("falcon"):
        kv_heads = c["num_kv_heads"] if c["new_decoder_architecture"] else 1
    writer = gguf.GGUFWriter(os.path.join(folder, (target or name) + ".gguf"), gguf.MODEL_ARCH_NAMES[architecture], **options)
    writer.add_embedding_length(width)
    writer.add_block_count(layers)
    writer.add_head_count(heads)
    if name not in ("gpt2", "gpt_neox"):
        writer.add_head_count_kv(kv_heads)
    writer.add_feed_forward_length(c.get("intermediate_size") or c.get("n_inner") or 4 * width)
    writer.add_context_length(c.get("max_position_embeddings") or c.get("n_positions") or 64)
    if name == "bert":
        # The words of vocab.txt in tests/cli/llm/language_model.sh: letters that begin words, and some that continue them.
        special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
        letters = "abcdefghijklmnopqrstuvwxyz"
        writer.add_tokenizer_model("bert")
        writer.add_token_list(special + ["\u2581" + c for c in letters] + list(letters[:19]))
        writer.add_token_types([gguf.TokenType.CONTROL] * 5 + [gguf.TokenType.NORMAL] * 45)
        for key, token in (("unknown", 1), ("cls", 2), ("seperator", 3)):
            writer.add_uint32(f"tokenizer.ggml.{key}_token_id", token)
    else:
        writer.add_token_list([f"t{i}" for i in range(50)])
    if "rms_norm_eps" in c:
        writer.add_layer_norm_rms_eps(c["rms_norm_eps"])
    else:
        writer.add_layer_norm_eps(next(c[k] for k in ("layer_norm_epsilon", "layer_norm_eps", "norm_epsilon") if k in c))
    rope = c.get("rope_parameters") or {}
    if "rope_theta" in rope and name not in ("falcon", "falcon_new", "gpt_neox"):
        writer.add_rope_freq_base(rope["rope_theta"])
    head = c.get("head_dim") or width // heads
    if name in ("glm4", "gpt_neox", "phi3", "phi3_longrope", "smollm3", "llama3"):
        writer.add_rope_dimension_count(int(head * rope.get("partial_rotary_factor", 0.25 if name == "gpt_neox" else 1.0)))
    if c.get("head_dim"):
        writer.add_key_length(head)
        writer.add_value_length(head)
    if name == "gpt_neox":
        writer.add_parallel_residual(c["use_parallel_residual"])
    if name.startswith("phi3"):
        writer.add_rope_scaling_orig_ctx_len(c["original_max_position_embeddings"])
        writer.add_sliding_window(c["sliding_window"] or 0)
    if name == "phi3_longrope":
        growth = c["max_position_embeddings"] / c["original_max_position_embeddings"]
        writer.add_rope_scaling_attn_factors(float(np.sqrt(1 + np.log(growth) / np.log(c["original_max_position_embeddings"]))))
    if name == "yarn":
        writer.add_rope_scaling_type(gguf.RopeScalingType.YARN)
        writer.add_rope_scaling_factor(rope["factor"])
        writer.add_rope_scaling_orig_ctx_len(rope["original_max_position_embeddings"])
    if name.startswith("falcon"):
        writer.add_tensor_data_layout("jploski")
    if name == "bert":
        writer.add_causal_attention(False)
        writer.add_pooling_type(gguf.PoolingType.MEAN)
        writer.add_token_type_count(c["type_vocab_size"])
    names = gguf.get_tensor_name_map(architecture, layers)
    for key, value in load_file(os.path.join(folder, name, "model.safetensors")).items():
        if name == "bert":
            if key.startswith("cls.") or "pooler" in key:
                continue
            key = key.removeprefix("bert.")
        if name == "bloom":
            key = key.removeprefix("transformer.")
        known = names.get_name(key, try_suffixes=(".weight", ".bias"))
        assert known, key
        writer.add_tensor(known, np.ascontiguousarray(converted(name, key, value, c, heads, kv_heads)).astype(np.float32))
    if name == "llama3":
        writer.add_tensor("rope_freqs.weight", llama3_factors(rope, head))
    if name == "phi3_longrope":
        for kind in ("short", "long"):
            writer.add_tensor(f"rope_factors_{kind}.weight", np.array(rope[kind + "_factor"], np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


for each in sys.argv[2:] or ARCHITECTURES:
    write(sys.argv[1], each)
write(sys.argv[1], "starcoder2", "split", split_max_tensors=12)
