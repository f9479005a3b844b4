"""Writes gemma3 as the text part of a model of text and images: make_text_part.py DATA

tests/llm/data/gemma3_text_part comes from it, with the weights of the folder gemma3 next to one of a vision
tower, and without the keys that are the defaults of transformers. Needs the Python package safetensors.
"""

import json
import os
import sys

import numpy as np
from safetensors.numpy import load_file, save_file

data = sys.argv[1]
folder = os.path.join(data, "gemma3_text_part")
os.makedirs(folder, exist_ok=True)
config = json.load(open(os.path.join(data, "gemma3", "config.json")))
for key in ("architectures", "rms_norm_eps", "hidden_activation", "transformers_version", "dtype"):
    config.pop(key)
whole = {"model_type": "gemma3", "architectures": ["Gemma3ForConditionalGeneration"], "text_config": config, "vision_config": {"hidden_size": 8, "model_type": "siglip_vision_model"}, "mm_tokens_per_image": 4, "image_token_index": 49}
json.dump(whole, open(os.path.join(folder, "config.json"), "w"), indent=1)
weights = {"language_model." + k: v for k, v in load_file(os.path.join(data, "gemma3", "model.safetensors")).items()}
weights["vision_tower.vision_model.post_layernorm.weight"] = np.ones(8, np.float32)
weights["multi_modal_projector.mm_input_projection_weight"] = np.ones((8, 32), np.float32)
save_file(weights, os.path.join(folder, "model.safetensors"))
