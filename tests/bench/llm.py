#!/usr/bin/env python3
"""Times language models here and in llama.cpp, in turns in one run, and prints a table.

  llm.py MODEL.gguf [MODEL.gguf ...] --peer LLAMA_BENCH [--rounds N] [--prefill N] [--decode N] [--threads N] [--page FILE]
  llm.py --make FOLDER [--shape 1.1b|tiny]     writes shape.q8_0.gguf and shape.q4_0.gguf with random weights

LLAMA_BENCH is the program llama-bench of llama.cpp. The ratio is our best rate over the peer's: above 1 ours is
faster. Every round runs both once, and the one that begins alternates. With one thread other programs disturb both
alike; with several they mostly disturb threads that wait for each other. --page writes the table as Markdown. PADDLE_BIN names the folder of our tools
(build/bin). --make needs the Python packages numpy and gguf.
"""
import argparse
import json
import os
import subprocess
import sys

import processor

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BIN = os.environ.get("PADDLE_BIN", os.path.join(ROOT, "build", "bin"))
SHAPES = {  # layers, width, heads, heads of keys, inner, words
    "1.1b": (22, 2048, 32, 4, 5632, 32000),
    "tiny": (2, 256, 8, 2, 512, 1000),
}


def make(folder, shape):
    import gguf
    import numpy as np

    layers, width, heads, kv_heads, inner, words = SHAPES[shape]
    rng = np.random.default_rng(0)
    matrices = {"token_embd": (words, width), "output": (words, width)}
    for i in range(layers):
        kv = width // heads * kv_heads
        for name, size in (("attn_q", (width, width)), ("attn_k", (kv, width)), ("attn_v", (kv, width)), ("attn_output", (width, width)), ("ffn_gate", (inner, width)), ("ffn_up", (inner, width)), ("ffn_down", (width, inner))):
            matrices[f"blk.{i}.{name}"] = size
    for kind in (gguf.GGMLQuantizationType.Q8_0, gguf.GGMLQuantizationType.Q4_0):
        path = os.path.join(folder, f"{shape}.{kind.name.lower()}.gguf")
        writer = gguf.GGUFWriter(path, "llama", use_temp_file=True)
        writer.add_embedding_length(width)
        writer.add_block_count(layers)
        writer.add_head_count(heads)
        writer.add_head_count_kv(kv_heads)
        writer.add_feed_forward_length(inner)
        writer.add_vocab_size(words)
        writer.add_layer_norm_rms_eps(1e-5)
        writer.add_context_length(2048)
        # Bytes and made-up words: no text is read, but a server must be able to write what it generates.
        tokens = ["<unk>", "<s>", "</s>", *("<0x%02X>" % byte for byte in range(256))]
        types = [gguf.TokenType.UNKNOWN, gguf.TokenType.CONTROL, gguf.TokenType.CONTROL, *[gguf.TokenType.BYTE] * 256]
        types += [gguf.TokenType.NORMAL] * (words - len(tokens))
        tokens += ["\u2581w%d" % index for index in range(words - len(tokens))]
        writer.add_tokenizer_model("llama")
        writer.add_token_list(tokens)
        writer.add_token_scores([0.0] * words)
        writer.add_token_types(types)
        writer.add_bos_token_id(1)
        writer.add_eos_token_id(2)
        for name, (rows, columns) in matrices.items():
            # Blocks of random integers with one scale: the time of a product does not depend on them.
            blocks = rng.integers(0, 256, (rows, columns // 32, 18 if kind.name == "Q4_0" else 34), dtype=np.uint8)
            blocks[..., :2] = np.frombuffer(np.float16(0.002 if kind.name == "Q4_0" else 0.0002).tobytes(), np.uint8)
            writer.add_tensor(name + ".weight", blocks.reshape(rows, -1), raw_dtype=kind)
        for i in range(layers):
            for name in ("attn_norm", "ffn_norm"):
                writer.add_tensor(f"blk.{i}.{name}.weight", np.ones(width, np.float32))
        writer.add_tensor("output_norm.weight", np.ones(width, np.float32))
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
        print(path)


def ours(model, args):
    """Tokens per second of reading a prompt and of generating, and the largest memory in MiB."""
    environment = dict(os.environ, PADDLE_NUM_THREADS=str(args.threads)) if args.threads else None
    command = [os.path.join(BIN, "paddle-infer"), model, "--benchmark", "1", "--prefill", str(args.prefill), "--decode", str(args.decode), "--activations", args.activations]
    line = json.loads(subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout)
    return line["prefill_tokens_per_second"], line["decode_tokens_per_second"], line["peak_mib"]


def theirs(model, args):
    command = [args.peer, "-m", model, "-p", str(args.prefill), "-n", str(args.decode), "-r", "1", "-o", "json"]
    if args.threads:
        command += ["-t", str(args.threads)]
    tests = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    rate = {(test["n_prompt"] > 0): test["avg_ts"] for test in tests}
    return rate[True], rate[False]


def compare(model, args):
    """Rows of the table: model, what, ours, llama.cpp's and the ratio."""
    runs = {ours: [], theirs: []}
    for round_ in range(args.rounds):
        for program in (ours, theirs) if round_ % 2 == 0 else (theirs, ours):
            runs[program].append(program(model, args))
    name = os.path.basename(model)
    rows = []
    for index, what in enumerate(("prefill %d, tokens/s" % args.prefill, "decode %d, tokens/s" % args.decode)):
        best = [max(rates[index] for rates in runs[program]) for program in (ours, theirs)]
        rows.append((name, what, "%.1f" % best[0], "%.1f" % best[1], "%.2f" % (best[0] / best[1])))
    peak, size = max(run[2] for run in runs[ours]), os.path.getsize(model) / 2**20
    rows.append((name, "our largest memory over the file, MiB", "%.0f" % peak, "%.0f" % size, "%.2f" % (peak / size)))
    return rows


def page(rows, args):
    """Markdown with the rows."""
    name = "%s, family %s, model %s" % tuple(processor.fact("/proc/cpuinfo", key) for key in ("model name", "cpu family", "model\t"))
    wider = [flag for flag in ("avx512_vnni", "avx_vnni", "avx2") if flag in processor.flags()]
    lines = ["<!-- Made by tests/bench/llm.py --page; do not edit. -->", "", "# Language models compared with llama.cpp", ""]
    lines.append(f"Files with random weights in the shape of a model of 1.1 billion, run here (`--activations {args.activations}`) and by llama.cpp's `llama-bench`, in turns: the best of {args.rounds} rounds with {args.threads or 'all'} thread{'' if args.threads == 1 else 's'} on {name} ({wider[0] if wider else 'no avx2'}). Above 1, ours is faster; for memory the second number is the file.")
    lines += ["", "| model | | ours | llama.cpp | ratio |", "| --- | --- | --- | --- | --- |"]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*")
    parser.add_argument("--peer", help="the program llama-bench")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--prefill", type=int, default=256)
    parser.add_argument("--decode", type=int, default=64)
    parser.add_argument("--threads", type=int, default=0, help="0: what each program chooses")
    parser.add_argument("--activations", default="int8", help="of ours; llama.cpp's are 8 bits (default: int8)")
    parser.add_argument("--page", metavar="FILE", help="writes the table as Markdown")
    parser.add_argument("--make", metavar="FOLDER")
    parser.add_argument("--shape", choices=SHAPES, default="1.1b")
    args = parser.parse_args()
    if args.make:
        return make(args.make, args.shape)
    if not args.models or not args.peer:
        parser.error("MODEL and --peer are needed")
    rows = []
    for model in args.models:
        for row in compare(model, args):
            rows.append(row)
            print("%-24s %-38s %8s %8s %6s" % row, flush=True)
    if args.page:
        with open(args.page, "w") as file:
            file.write(page(rows, args))


if __name__ == "__main__":
    sys.exit(main())
