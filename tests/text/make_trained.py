"""Trains a byte-level BPE tokenizer with Hugging Face's library on a random text: make_trained.py FOLDER

Needs the Python package tokenizers. Writes trained_bpe.txt, and trained_bpe.json with the merges, the
vocabulary, and the ids of some texts, that BpeTrainer is compared with.
"""

import json
import os
import random
import sys

from tokenizers import Tokenizer, models, pre_tokenizers, trainers

folder = sys.argv[1]
random.seed(7)
SYLLABLES = ["ka", "lo", "mi", "ster", "ing", "th", "e", "an", "ü", "ß", "é", "да", "нет", "東", "京", "क्ष", "한", "👍🏽", "n", "s"]
SIGNS = [" ", " ", " ", " ", " ", "  ", "    ", "\n", "\n\n", "\n    ", "\t", ", ", ". ", "...", "-" * 3, "-" * 7, "=" * 12, "'s ", "'ll ", "don't ", "\u00a0", "\u3000", "\r\n"]


def word():
    if random.random() < 0.1:
        return str(random.randint(0, 2000))
    return "".join(random.choices(SYLLABLES, weights=range(len(SYLLABLES), 0, -1), k=random.randint(1, 5)))


words = [word() for _ in range(700)]
text = "".join(random.choices(words, weights=[1 / (i + 1) for i in range(700)])[0] + random.choice(SIGNS) for _ in range(4000))
with open(os.path.join(folder, "trained_bpe.txt"), "w", encoding="utf-8", newline="") as file:
    file.write(text)

tokenizer = Tokenizer(models.BPE())
tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
trainer = trainers.BpeTrainer(vocab_size=700, min_frequency=2, special_tokens=["<|endoftext|>", "<pad>"],
                              initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False)
tokenizer.train_from_iterator([text], trainer)
model = json.loads(tokenizer.to_str())["model"]
texts = ["", "Kamister lo, the thing's 2024 -----\n\n  x", "".join(random.choices(words, k=9)), text[1000:1300]]
golden = {"vocab": model["vocab"], "merges": [m if isinstance(m, str) else " ".join(m) for m in model["merges"]],
          "texts": [{"text": t, "ids": tokenizer.encode(t).ids} for t in texts]}
with open(os.path.join(folder, "trained_bpe.json"), "w", encoding="ascii") as file:
    json.dump(golden, file, separators=(",", ":"))
