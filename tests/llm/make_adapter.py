"""Writes a low-rank adapter of tests/llm/data/llama with the logits of PEFT: make_adapter.py FOLDER

Needs the Python packages torch, transformers and peft. FOLDER is tests/llm/data.
"""

import os
import sys

import numpy as np
import torch
from peft import LoraConfig, get_peft_model
from transformers import LlamaForCausalLM

folder = sys.argv[1]
torch.manual_seed(1)
model = LlamaForCausalLM.from_pretrained(os.path.join(folder, "llama"), dtype=torch.float32)
config = LoraConfig(r=4, lora_alpha=6, use_rslora=True, target_modules=["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "down_proj", "lm_head"], rank_pattern={"down_proj": 2}, alpha_pattern={"gate_proj": 3}, base_model_name_or_path="llama")
model = get_peft_model(model, config).eval()
for key, parameter in model.named_parameters():
    if "lora_" in key:
        parameter.data = torch.randn_like(parameter) * 0.2
place = os.path.join(folder, "llama_adapter")
model.save_pretrained(place)
readme = os.path.join(place, "README.md")
if os.path.exists(readme):
    os.remove(readme)
tokens = torch.from_numpy(np.load(os.path.join(folder, "llama", "golden.npz"))["tokens"])
with torch.no_grad():
    logits = model(tokens).logits
np.savez(os.path.join(place, "golden.npz"), tokens=tokens.numpy().astype(np.int64), logits=logits.numpy())
