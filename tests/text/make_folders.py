"""Writes tokenizer folders without tokenizer.json, with the ids that transformers gives: make_folders.py FOLDER

Needs the Python packages transformers, tokenizers and sentencepiece. The folders in
tests/text/data/folders come from it; the vocabularies are those of make_tokenizers.py. golden.jsonl
of each has a line for each text with its ids, special tokens included, and what these decode to.
"""

import json
import os
import shutil
import sys

from transformers import BertTokenizer, GPT2Tokenizer, LlamaTokenizer, Qwen2Tokenizer, RobertaTokenizer

folder = sys.argv[1]
data = os.path.join(os.path.dirname(os.path.abspath(__file__)), "data")

TEXTS = ["", " ", "a", " a", "a ", "  two  spaces  ", "\n", "\n\n x", "x\r\ny", "Hello, world!", "I'm you're HE'S don't",
         "<s>hi</s>", "[CLS] a [SEP] b", "x<|user|>y <|user|> z", "<|end|>the dog<|end|>", "e\u0301 caf\u00e9 \ufb01", "Stra\u00dfe 12345 6,7",
         "\u65e5\u672c\u8a9e \u6771\u4eac", "\U0001f600 tool_call a_b_c", "the quick brown fox jumps over the lazy dog", "<unk> <pad> <mask>", "WE'LL 3.14159"]


def write(path, content):
    with open(path, "w", encoding="utf-8") as out:
        out.write(content if isinstance(content, str) else json.dumps(content, ensure_ascii=True))


def golden(name, kind, config, files, keep=lambda text: True):
    path = os.path.join(folder, name)
    shutil.rmtree(path, ignore_errors=True)
    os.makedirs(path)
    for file, content in files.items():
        if isinstance(content, bytes):
            with open(os.path.join(path, file), "wb") as out:
                out.write(content)
        else:
            write(os.path.join(path, file), content)
    if config is not None:
        write(os.path.join(path, "tokenizer_config.json"), config)
    tokenizer = kind.from_pretrained(path)
    with open(os.path.join(path, "golden.jsonl"), "w", encoding="ascii") as out:
        for text in filter(keep, TEXTS):
            ids = tokenizer.encode(text)
            print(json.dumps({"text": text, "special": ids, "decoded": tokenizer.decode(ids, skip_special_tokens=True, clean_up_tokenization_spaces=False)}), file=out)


def token(content, special, **flags):
    return {"content": content, "special": special, "lstrip": False, "rstrip": False, "single_word": False, "normalized": False, **flags}


def bpe(name):
    with open(os.path.join(data, name), encoding="utf-8") as file:
        model = json.load(file)["model"]
    merges = [m if isinstance(m, str) else " ".join(m) for m in model["merges"]]
    return model["vocab"], "#version: 0.2\n" + "\n".join(merges) + "\n"


with open(os.path.join(data, "spm_bpe.model"), "rb") as file:
    spm = file.read()
added = {"0": token("<unk>", True), "1": token("<s>", True), "2": token("</s>", True), "620": token("<|user|>", False), "621": token("<|end|>", True, rstrip=True)}
base = {"tokenizer_class": "LlamaTokenizer", "bos_token": "<s>", "eos_token": {"__type": "AddedToken", "content": "</s>", "special": True}, "unk_token": "<unk>"}
golden("spm", LlamaTokenizer, {**base, "add_bos_token": True, "add_eos_token": True, "legacy": True, "added_tokens_decoder": added}, {"tokenizer.model": spm},
       # SentencePiece and transformers 4 put a space in front of a text that begins with one, too; transformers 5 does not.
       lambda text: not text.startswith(" ") and "> " not in text)
golden("spm_once", LlamaTokenizer, {**base, "add_bos_token": True, "add_eos_token": False, "legacy": False}, {"tokenizer.model": spm, "added_tokens.json": {"<|user|>": 620, "<|end|>": 621}})

vocabulary, merges = bpe("gpt2.json")
golden("gpt2", GPT2Tokenizer, {"tokenizer_class": "GPT2Tokenizer", "bos_token": "<s>", "eos_token": "</s>", "unk_token": "<|end|>", "add_bos_token": True},
       {"vocab.json": vocabulary, "merges.txt": merges})
roberta = dict(vocabulary)
for name in ("<unk>", "<pad>", "<mask>"):
    roberta[name] = len(roberta)
golden("roberta", RobertaTokenizer, None, {"vocab.json": roberta, "merges.txt": merges, "config.json": {"model_type": "roberta"}})
vocabulary, merges = bpe("llama3.json")
vocabulary["<|endoftext|>"] = len(vocabulary)
golden("qwen2", Qwen2Tokenizer, {"tokenizer_class": "Qwen2Tokenizer", "eos_token": "<|end|>", "pad_token": "<|endoftext|>", "bos_token": None},
       {"vocab.json": vocabulary, "merges.txt": merges, "added_tokens.json": {"<|user|>": len(vocabulary)}})
with open(os.path.join(data, "bert.json"), encoding="utf-8") as file:
    vocabulary = json.load(file)["model"]["vocab"]
text = "\n".join(sorted(vocabulary, key=vocabulary.get)) + "\n"
golden("bert", BertTokenizer, {"tokenizer_class": "BertTokenizer", "do_lower_case": True}, {"vocab.txt": text})
golden("bert_cased", BertTokenizer, {"tokenizer_class": "BertTokenizer", "do_lower_case": False, "tokenize_chinese_chars": False}, {"vocab.txt": text})
