"""Writes small tokenizers with the ids that Hugging Face's library gives: make_tokenizers.py FOLDER

Needs the Python packages tokenizers and sentencepiece. The files in tests/text/data come from it:
NAME.json is a tokenizer.json of a few hundred tokens, NAME.model a SentencePiece model, and
NAME.golden.jsonl has a line for each text with the ids without and with special tokens, and what
these decode to.
"""

import base64
import io
import json
import os
import random
import sys

import sentencepiece
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

folder = sys.argv[1]
os.makedirs(folder, exist_ok=True)
random.seed(5)

CORPUS = [
    "the quick brown fox jumps over the lazy dog, and then the dog's owner said: it's 1234 o'clock!",
    "Die Straße führt über die Brücke; naïve café façade, Ελλάδα, Москва, 東京都に住んでいます。",
    "def main(argc, argv):\n\treturn 0 if argc == 1 else argv[1]\n\n\n",
    "They're we'll I'VE don't 3.14159 2024-11-25 10,000,000 $5 #tag @user a_b_c",
    "नमस्ते दुनिया ภาษาไทย 한국어 עברית العربية",
] * 20

# Characters of many kinds for random texts.
POOL = (
    [chr(c) for c in range(32, 127)] * 3
    + list("\n\t\r  \u00a0\u2003\u3000\u200b\u0085\u180e")
    + list("éßñçøåÆŁİıſΣςσДжה؟क्षิ日本語한글ひらカタ、。！？")
    + list("\u0301\u0308\u0327\u20dd\u093f")
    + list("😀👍🏽👨‍👩‍👧🇫🇷½²Ⅷ٣१€£←∑ﬁＡ㍿\u1e9b\u0323")
)
WORDS = ["the", "dog", "Straße", "café", "don't", "WE'LL", "12345", "  ", "\n\n", "東京", "<s>", "[SEP]", "<|end|>", "tool_call"]


def texts():
    out = ["", " ", "a", " a", "a ", "  two  spaces  ", "\n", "\n\n x", "x\r\ny", "\tx", "Hello, world!", "I'm you're HE'S",
           "<|end|>", "x<|end|>y", " <|end|> y", "<s>hi</s>", "[CLS] a [SEP]", "tool_call", "mytool_calls tool_call", "e\u0301 \u00e9 \ufb01 \u212b",
           "supercalifragilisticexpialidocious" * 4, "\u0000a", "日本語テキスト", "123 4567 89 1,234.5", "a\u200bb", "▁under▁", "Ġ byte Ċ", "<0x41>"]
    for _ in range(60):
        if random.random() < 0.5:
            out.append("".join(random.choice(POOL) for _ in range(random.randint(1, 40))))
        else:
            out.append(random.choice(["", " "]).join(random.choice(WORDS + [random.choice(POOL)]) for _ in range(random.randint(1, 12))))
    return out


def golden(name, tokenizer):
    path = os.path.join(folder, name)
    tokenizer.save(path + ".json", pretty=False)
    tokenizer = Tokenizer.from_file(path + ".json")
    with open(path + ".golden.jsonl", "w", encoding="ascii") as out:
        for text in texts():
            tokenizer.encode_special_tokens = True
            plain = tokenizer.encode(text, add_special_tokens=False).ids
            tokenizer.encode_special_tokens = False
            special = tokenizer.encode(text, add_special_tokens=True).ids
            line = {"text": text, "ids": plain, "special": special,
                    "decoded": tokenizer.decode(special, skip_special_tokens=True),
                    "decoded_special": tokenizer.decode(special, skip_special_tokens=False)}
            print(json.dumps(line), file=out)


def special(*names):
    return [AddedToken(n, special=True, normalized=False) for n in names]


def byte_level(pattern, **options):
    t = Tokenizer(models.BPE(**options))
    t.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(pattern), "isolated"), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    t.decoder = decoders.ByteLevel()
    t.train_from_iterator(CORPUS, trainers.BpeTrainer(vocab_size=420, special_tokens=["<s>", "<|end|>"], initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False))
    t.add_tokens([AddedToken("tool_call", single_word=True, normalized=False), AddedToken("<pad>", lstrip=True, rstrip=True)])
    return t


LLAMA3 = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
GPT4O = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
         r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
         r"\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")

t = byte_level(LLAMA3, ignore_merges=True)
t.post_processor = processors.Sequence([processors.ByteLevel(trim_offsets=False), processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", t.token_to_id("<s>"))])])
golden("llama3", t)

t = byte_level(GPT4O)
t.normalizer = normalizers.NFC()
golden("gpt4o", t)

t = Tokenizer(models.BPE())
t.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=True)])
t.decoder = decoders.ByteLevel()
t.train_from_iterator(CORPUS, trainers.BpeTrainer(vocab_size=400, special_tokens=["<s>", "</s>", "<|end|>"], initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False))
t.post_processor = processors.RobertaProcessing(("</s>", 1), ("<s>", 0), trim_offsets=True, add_prefix_space=True)
golden("gpt2", t)

# Llama 2 and Gemma: characters with byte fallback, spaces as U+2581.
t = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
t.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
t.train_from_iterator(CORPUS, trainers.BpeTrainer(vocab_size=600, special_tokens=["<unk>", "<s>", "</s>"] + [f"<0x{b:02X}>" for b in range(256)], show_progress=False, max_token_length=12, limit_alphabet=60))
content = json.loads(t.to_str())
content["added_tokens"] = [a for a in content["added_tokens"] if not a["content"].startswith("<0x")]
t = Tokenizer.from_str(json.dumps(content))
t.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
t.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
golden("llama2", t)

for name, lowercase in (("bert", True), ("bert_cased", False)):
    t = Tokenizer(models.WordPiece(unk_token="[UNK]", max_input_chars_per_word=30))
    t.normalizer = normalizers.BertNormalizer(lowercase=lowercase)
    t.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    t.decoder = decoders.WordPiece()
    t.train_from_iterator(CORPUS, trainers.WordPieceTrainer(vocab_size=300, special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"], show_progress=False))
    if lowercase:
        t.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
    else:
        t.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    golden(name, t)

# SentencePiece: a unigram model with replacements and a BPE model with byte fallback.
# A table of replacements of our own keeps the files small.
RULES = [("\ufb01", "fi"), ("\uff21", "A"), ("\u00bd", "1/2"), ("e\u0301", "\u00e9"), ("\u00a0", " "), ("\u3000", " "), ("\t", " "), ("\n", " "), ("\u1e9b\u0323", "\u1e69"), ("\u1e9b", "\u1e61"), ("\u200b", " ")]
with open(os.path.join(folder, "rules.tsv"), "w") as out:
    for a, b in RULES:
        print(" ".join(f"{ord(c):X}" for c in a), " ".join(f"{ord(c):X}" for c in b), sep="\t", file=out)
corpus = [line for text in CORPUS for line in text.split("\n") if line.strip()]
for name, kind, options in (("unigram", "unigram", {"normalization_rule_tsv": os.path.join(folder, "rules.tsv")}), ("spm_bpe", "bpe", {"byte_fallback": True, "normalization_rule_name": "identity", "remove_extra_whitespaces": False})):
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(corpus), model_writer=model, model_type=kind, vocab_size=620 if kind == "bpe" else 200,
                                             character_coverage=0.98, hard_vocab_limit=False, user_defined_symbols=["tool_call"], minloglevel=2, **options)
    with open(os.path.join(folder, name + ".model"), "wb") as out:
        out.write(model.getvalue())
    processor = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
    with open(os.path.join(folder, name + ".model.golden.jsonl"), "w", encoding="ascii") as out:
        for text in texts():
            if "\u0000" in text:
                continue
            ids = processor.encode(text)
            print(json.dumps({"text": text, "ids": ids, "decoded": processor.decode(ids)}), file=out)
    if kind != "unigram":
        continue
    # The same as tokenizer.json, as T5 and XLM-R have it.
    from sentencepiece import sentencepiece_model_pb2 as proto

    parsed = proto.ModelProto()
    parsed.ParseFromString(model.getvalue())
    t = Tokenizer(models.Unigram([(p.piece, p.score) for p in parsed.pieces], unk_id=0))
    content = json.loads(t.to_str())
    table = base64.b64encode(parsed.normalizer_spec.precompiled_charsmap).decode()
    content["normalizer"] = {"type": "Sequence", "normalizers": [{"type": "Precompiled", "precompiled_charsmap": table}, {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "}]}
    t = Tokenizer.from_str(json.dumps(content))
    t.pre_tokenizer = pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="always")
    t.decoder = decoders.Metaspace(replacement="▁", prepend_scheme="always")
    t.add_special_tokens(special("<s>", "</s>"))
    t.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", t.token_to_id("</s>"))])
    golden("unigram_json", t)

# Every other step, on words.
t = Tokenizer(models.WordLevel(unk_token="[UNK]"))
t.normalizer = normalizers.Sequence([normalizers.Nmt(), normalizers.NFKD(), normalizers.StripAccents(), normalizers.Lowercase(), normalizers.Strip(), normalizers.Replace(Regex("[0-9]+"), "<num>")])
t.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Punctuation("merged_with_previous"), pre_tokenizers.CharDelimiterSplit("_")])
t.train_from_iterator(CORPUS, trainers.WordLevelTrainer(vocab_size=200, special_tokens=["[UNK]"], show_progress=False))
golden("words", t)

t = Tokenizer(models.BPE(unk_token="<unk>", end_of_word_suffix="</w>", continuing_subword_prefix=""))
t.normalizer = normalizers.Sequence([normalizers.NFC(), normalizers.Lowercase()])
t.pre_tokenizer = pre_tokenizers.Whitespace()
t.decoder = decoders.BPEDecoder()
t.train_from_iterator(CORPUS, trainers.BpeTrainer(vocab_size=250, special_tokens=["<unk>"], end_of_word_suffix="</w>", show_progress=False))
golden("openai_gpt", t)

t = Tokenizer(models.BPE(unk_token="<unk>"))
t.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="first", split=True), pre_tokenizers.Digits(individual_digits=False), pre_tokenizers.Split("'", "merged_with_next"), pre_tokenizers.Split(Regex("[a-z]+"), "contiguous", invert=True)])
t.decoder = decoders.Metaspace(replacement="▁", prepend_scheme="first")
t.train_from_iterator(CORPUS, trainers.BpeTrainer(vocab_size=250, special_tokens=["<unk>", "<s>"], show_progress=False))
golden("splits", t)
os.remove(os.path.join(folder, "rules.tsv"))
