"""Writes losses of PEFT for tests/cli/train/lora_model_files.sh: make_lora.py FOLDER PADDLE_TRAIN

Needs the Python packages torch, transformers and peft. FOLDER is tests/llm/data. PEFT starts with the
matrices that PADDLE_TRAIN begins with, which a run with a learning rate of 0 writes.
"""

import json
import os
import subprocess
import sys
import tempfile

import numpy as np
import torch
from peft import PeftModel
from transformers import LlamaForCausalLM

folder, program = sys.argv[1:]
place = os.path.join(folder, "llama_lora")
os.makedirs(place, exist_ok=True)
text = np.random.default_rng(5).integers(0, 50, (4, 13))
text[:, 6:] = text[:, :7]  # something to learn
tokens, targets = text[:, :-1].astype(np.int64), text[:, 1:].astype(np.int64)
np.savez(os.path.join(place, "data.npz"), tokens=tokens, targets=targets)
with tempfile.TemporaryDirectory() as runs:
    run = os.path.join(runs, "run")
    config = os.path.join(place, "lora.yaml")
    subprocess.run([program, config, "optimizer.lr=0", "train.steps=1", "--output", run], check=True)
    model = LlamaForCausalLM.from_pretrained(os.path.join(folder, "llama"), dtype=torch.float32)
    model = PeftModel.from_pretrained(model, os.path.join(run, "adapter"), is_trainable=True)
optimizer = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], lr=0.02)
losses = []
for _ in range(20):
    logits = model(torch.from_numpy(tokens)).logits
    loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), torch.from_numpy(targets).flatten())
    losses.append(loss.item())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
with open(os.path.join(place, "losses.json"), "w") as f:
    json.dump(losses, f)
    f.write("\n")
