"""Mutates configs and runs them: mutate_configs.py PADDLE_TRAIN COUNT [SEED]

A mutation deletes, renames, doubles, moves or retypes something in the text of a config, as slips
of the hand and of the mind do. Whatever comes of it must end with a documented exit status, within
bounds of time and memory, and an error must be short and say its place."""

import concurrent.futures
import os
import random
import re
import resource
import shutil
import subprocess
import sys
import tempfile

train, count = sys.argv[1], int(sys.argv[2])
seed = int(sys.argv[3]) if len(sys.argv) > 3 else 20240517
SECONDS, MEMORY, MOST_LINES = 60, 6 << 30, 20
BAD_NUMBERS = ["0", "-1", "1e308", "1e400", "-9223372036854775808", "9223372036854775807",
               "18446744073709551616", "0x10", "1_000", ".nan", "-.inf", "1e-320", "3.7", "00", "1e5"]
BAD_VALUES = ["", "~", "no", "[]", "{}", "[1, [2, {a: 3}]]", "{a: {b: {c: d}}}", "'5'", "\"\\ud800\"",
              "täxt…", "日本語", "a b c", "*nowhere", "&x 1", "!!int 3", "${seed}", "${no.such.key}",
              "'", "\"", "[", "{", "|", ">", "%", "@", "`", "- -", ": :", "null", "true", "x" * 300]


def configs():
    out = []
    for folder, _, files in os.walk("configs"):
        out += [os.path.join(folder, f) for f in files if f.endswith(".yaml")]
    small = [c for c in sorted(out) if not re.search("resnet50|gpt2|bert|deepfm.yaml|lstm_lm|gpt_384", c)]
    return [(c, open(c, encoding="utf-8").read()) for c in small]


def mutate(text, rng):
    lines = text.split("\n")
    keyed = [i for i, line in enumerate(lines) if re.match(r"\s*(- )?\w+:", line)]
    if not keyed:
        return text
    at = rng.choice(keyed)
    line = lines[at]
    key = re.search(r"(\w+):", line)
    valued = [m for m in re.finditer(r"(\w+): *([^,{}\[\]]+)", line)]
    numbers = [m for m in re.finditer(r"(?<![\w.])-?\d+(\.\d+)?(e-?\d+)?(?!\w)", line)]
    kind = rng.randrange(16)
    if kind == 0:
        del lines[at]
    elif kind == 1:
        i = rng.randrange(key.start(1), key.end(1))
        lines[at] = line[:i] + rng.choice("abcxyz_-é ") + line[i + rng.randrange(2):]
    elif kind == 2:
        lines.insert(at + rng.randrange(2), line)
    elif kind in (3, 4) and valued:
        m = rng.choice(valued)
        lines[at] = line[: m.start(2)] + rng.choice(BAD_VALUES) + line[m.end(2):]
    elif kind in (5, 6, 7) and numbers:
        m = rng.choice(numbers)
        lines[at] = line[: m.start()] + rng.choice(BAD_NUMBERS) + line[m.end():]
    elif kind == 8:
        lines[at] = rng.choice([" ", "  ", "\t", "   ", "\u00a0"]) + line
    elif kind == 9:
        lines[at] = line.lstrip()
    elif kind == 10:
        cut = rng.randrange(len(text))
        return text[:cut]
    elif kind == 11:
        other = rng.randrange(len(lines))
        lines[at], lines[other] = lines[other], lines[at]
    elif kind == 12:
        i = rng.randrange(len(line) + 1)
        lines[at] = line[:i] + rng.choice("{}[]:,'\"#&*!|>%@`\t\0\x7f\u2028\ufeff") + line[i:]
    elif kind == 13:
        i = rng.randrange(len(line))
        lines[at] = line[:i] + line[i + 1:]
    elif kind == 14:
        a, b = sorted(rng.randrange(len(lines)) for _ in range(2))
        lines[a:b] = []
    else:
        words = re.findall(r"\w+", text)
        lines[at] = line.replace(rng.choice(re.findall(r"\w+", line)), rng.choice(words), 1)
    return "\n".join(lines)


def limits():
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def judge(number, source, text, mode):
    """Runs one; returns what is wrong with its exit, or nothing."""
    # Next to the original, so that relative paths mean the same.
    path = os.path.join(os.path.dirname(source), f".mutated-{os.getpid()}-{number}.yaml")
    output = tempfile.mkdtemp(prefix="paddle_mutated_")
    with open(path, "w", encoding="utf-8", errors="surrogatepass") as f:
        f.write(text)
    try:
        command = [train, path, "--output", os.path.join(output, "run"), "--threads", "1"] + mode
        done = subprocess.run(command, capture_output=True, timeout=SECONDS, preexec_fn=limits)
    except subprocess.TimeoutExpired:
        return f"takes more than {SECONDS} seconds"
    finally:
        os.unlink(path)
        shutil.rmtree(output, ignore_errors=True)
    errors = done.stderr.decode("utf-8", "replace").strip("\n")
    lines = errors.split("\n")
    # An override may find nothing to change in what is left of a config: that is its usage.
    allowed = (0, 2, 3, 4, 5, 6) if re.search(r"'[\w.]+=[^']*': ", errors) else (0, 3, 4, 5, 6)
    if done.returncode not in allowed:
        return f"status {done.returncode}: {errors[:500]}"
    if done.returncode == 0:
        return None
    told = [line for line in lines if not line.startswith("warning: ")]
    if not told or not told[0].startswith("error: ") or len(told[0]) < 15:
        return f"no error is reported: {errors[:500]}"
    if done.returncode == 3 and not re.search(r"error: [^ ]*\.yaml(:\d+)?|error: command line|error: default", told[0]):
        return f"no place: {errors[:500]}"
    if len(lines) > MOST_LINES or max(map(len, lines)) > 1000:
        return f"too much is reported: {errors[:500]}"
    return None


def main():
    rng = random.Random(seed)
    sources = configs()
    tasks = []
    while len(tasks) < count:
        source, text = rng.choice(sources)
        changed = text
        for _ in range(rng.choice([1, 1, 1, 2, 3])):
            changed = mutate(changed, rng)
        if changed == text:
            continue
        # A short run in few of them, and never of the whole data.
        mode = rng.choice([["--dry-run"], ["--dry-run"], ["--check-data"],
                           ["train.steps=2", "train.evaluate_every=never", "data.valid=", "data.batch_size=4"]])
        tasks.append((len(tasks), source, changed, mode))
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for task, wrong in zip(tasks, pool.map(lambda t: judge(*t), tasks)):
            if wrong:
                failed += 1
                number, source, text, mode = task
                print(f"FAIL: mutation {number} of {source} with {' '.join(mode)} (seed {seed}): {wrong}")
                if os.environ.get("KEEP_MUTATIONS"):
                    with open(os.path.join(os.environ["KEEP_MUTATIONS"], f"{number}.yaml"), "w") as f:
                        f.write(text)
    print(f"{count - failed} of {count} mutated configs end as documented")
    return failed > 0


sys.exit(main())
