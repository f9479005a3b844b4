#!/usr/bin/env python3
"""Checks the YAML and the commands of the documentation: check_pages.py BIN [PAGE…]

BIN is the folder of the programs. Each page has a scratch folder of its own with the files that
example_files.py makes, and with links to configs/, datasets/, models/ and scripts/.

YAML blocks
  A block with `inputs:` and `model:`, but without a loss, a step or data, is a model file:
  `paddle show` must accept it. Any other block is a part of a training config: it is laid over
  tests/docs/base.yaml with `extends:`, and `paddle train --dry-run` must accept the result. A block
  that begins with `# NAME.yaml` is also kept under that name for what follows on the page. Lines
  with … are left out. A comment before a block changes this:

    <!-- check: on NAME -->          lay it over tests/docs/NAME.yaml instead
    <!-- check: on NAME: ARGUMENTS -->   and call `paddle train` with these instead of --dry-run
    <!-- check: paddle … FILE … -->  this command must accept it; FILE is the block
    <!-- check: none, REASON -->     it is not checked

Commands
  Every command of the programs in a block without a language, or of sh, and in `code` of the text,
  must exist, with its options, the choices of an option, its number of arguments and its config
  keys; scripts and files of the repository must exist. The blocks after <!-- run --> are executed,
  in order, in the scratch folder of the page; each must end with 0, or with N after
  <!-- run, status N -->; <!-- run, fresh --> removes the runs that are there before. After <!-- output --> a block holds lines that the commands of the block before have
  printed; … stands for anything."""

import concurrent.futures
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
HERE = os.path.join(ROOT, "tests", "docs")
TIMEOUT = 60  # seconds for one command

sys.path.insert(0, HERE)
import example_files  # noqa: E402


class Block:
    def __init__(self, page, line, language, marker):
        self.page, self.line, self.language, self.marker = page, line, language, marker
        self.lines = []

    @property
    def place(self):
        return f"{self.page}:{self.line}"


def read_page(page):
    """The fenced blocks of a page, and its other lines with their numbers."""
    blocks, text = [], []
    block, marker = None, ""
    for number, line in enumerate(open(os.path.join(ROOT, page), encoding="utf-8"), 1):
        line = line.rstrip("\n")
        fence = re.match(r"( *)```(\w*)", line)
        if block is not None:
            if fence and not fence.group(2):
                blocks.append(block)
                block = None
            else:
                block.lines.append(line)
        elif fence:
            block = Block(page, number, fence.group(2), marker)
            marker = ""
        else:
            comment = re.fullmatch(r"<!-- ((?:check|run|output)\b.*) -->", line.strip())
            if comment:
                marker = comment.group(1)
            elif line.strip():
                marker = ""
                text.append((number, line))
    return blocks, text


# --- YAML ---


def top_keys(lines):
    return {m.group(1) for line in lines if (m := re.match(r"([A-Za-z_]\w*)[+~]?:", line))}


def check_yaml(block, folder, run):
    """An error text, or None."""
    marker = block.marker
    lines = [line for line in block.lines if "…" not in line.split(" #")[0]]
    name = re.match(r"# ([\w.-]+\.yaml)$", lines[0]) if lines else None
    path = name.group(1) if name else f"block_{block.line}.yaml"

    def write():
        with open(os.path.join(folder, path), "w", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")

    if marker.startswith("check: none"):
        write()
        return None if re.fullmatch(r"check: none, .{10,}", marker) else "a block that is not checked needs a reason"
    keys = top_keys(lines)
    base, arguments = "base", "--dry-run"
    if marker.startswith("check: on "):
        base, colon, more = marker[len("check: on "):].strip().partition(": ")
        arguments = more if colon else arguments
    elif marker.startswith("check: "):
        write()
        return run(marker[len("check: "):].replace("FILE", path), folder)
    elif {"inputs", "model"} <= keys and not keys & {"loss", "step", "data", "optimizer"}:
        write()
        return run(f"paddle show {path}", folder)
    replaced = {"step": "loss", "models": "model", "optimizers": "optimizer"}
    with open(os.path.join(folder, f"{base}.yaml"), encoding="utf-8") as file:
        stated = top_keys(file.read().split("\n"))
    removed = "".join(f" {old}=" for new, old in replaced.items() if new in keys and old in stated - keys)
    if "extends" not in keys and not ("data" in keys and keys & {"model", "models"} and keys & {"loss", "step"}):
        lines = [f"extends: {base}.yaml"] + lines
    write()
    return run(f"paddle train {path} {arguments} data.check_seconds=0{removed}", folder)


# --- commands ---

# Other programs that pages call; their arguments are not checked.
OTHER = {"apt-get", "build-fuzz/bin/fuzz_onnx", "cat", "cd", "clang-tidy", "cmake", "cp", "cpack", "ctest", "curl",
         "dpkg", "echo", "export", "git", "head", "jq", "ls", "make", "man", "mkdir", "ninja", "pip", "podman",
         "printf", "python", "python3", "rm", "tail", "tar", "tensorboard", "vim", "wget", "xargs", "g++", "gcc",
         "nvim", "code", "eval", "ln", "wc", "awk", "sed", "sleep", "kill", "docker", "seq", "test", "tr", "bash", "sort", "nproc", "free", "ulimit", "grep", "cut"}
# Programs that start another one, with their options that take a value.
WRAPPERS = {"mpirun": {"-n", "-np", "-x"}, "srun": {"-n"}, "sudo": set(), "time": set(), "nice": {"-n"},
            "taskset": {"-c"}, "timeout": set(), "torchrun": set()}


class Commands:
    def __init__(self, bin_folder):
        self.bin = bin_folder
        self.described = {}
        usage = subprocess.run([os.path.join(bin_folder, "paddle"), "--help"], capture_output=True, text=True).stdout
        self.names = set(re.findall(r"^  ([a-z][a-z-]*) ", usage, re.M))
        schema = subprocess.run([os.path.join(bin_folder, "paddle"), "schema", "train"], capture_output=True, text=True)
        self.schema = json.loads(schema.stdout)

    def describe(self, name):
        if name not in self.described:
            done = subprocess.run([os.path.join(self.bin, "paddle"), name, "--describe"], capture_output=True, text=True)
            self.described[name] = json.loads(done.stdout) if done.returncode == 0 else None
        return self.described[name]

    # Overrides, as of `paddle train c.yaml optimizer.lr=1`.

    def key_is_known(self, path):
        """Whether a config may have a value at a path; a word of one part may be a key of a section."""
        parts = path.split(".")
        if self.walk(self.schema, parts):
            return True
        return len(parts) == 1 and any(self.walk(value, parts) for value in self.schema["properties"].values())

    def walk(self, schema, parts):
        if not parts or schema is True:
            return True
        for form in schema.get("anyOf", [schema]) if isinstance(schema, dict) else []:
            if form is True:
                return True
            items = form.get("items")
            if items is not None and (self.walk(items, parts[1:]) or self.walk(items, parts)):
                return True  # an item of a list, by its index or its name
            properties = form.get("properties", {})
            if parts[0] in properties:
                if self.walk(properties[parts[0]], parts[1:]):
                    return True
                continue
            more = form.get("additionalProperties", not properties and form.get("type") == "object")
            if more and self.walk(more, parts[1:]):
                return True
        return False

    def check(self, words, config_keys=True):
        """Errors of one simple command."""
        while words and (re.match(r"[A-Z_]+=", words[0]) or words[0] in ("$", "do", "{", "}")):
            words = words[1:]
        if not words or words[0] in ("for", "done"):
            return []
        program = words[0]
        if program in ("docker", "podman"):
            if words[1] != "run" or "paddle" not in words:
                return []
            return self.check(words[words.index("paddle"):])
        if program in WRAPPERS:
            rest = words[1:]
            while rest and (rest[0].startswith("-") or re.match(r"[0-9.]+[smh]?$|[A-Z_]+=", rest[0])):
                rest = rest[2:] if rest[0] in WRAPPERS[program] else rest[1:]
            return self.check(rest)
        if re.match(r"build[\w-]*/bin/(test|fuzz)_|[A-Z]+$", program):
            return []
        program = re.sub(r"^(\$PADDLE_BIN/|build/bin/|~/paddle/bin/)", "", program)
        if program == "paddle":
            if len(words) < 2 or words[1] in ("--help", "--version", "help"):
                return []
            name, rest = words[1], words[2:]
            if name in ("man", "completion"):
                return []
        elif program.startswith("paddle-"):
            name, rest = program[len("paddle-"):], words[1:]
        elif re.match(r"(\./)?(scripts|tests|\.ci|datasets|examples)/", program):
            return [] if os.path.exists(os.path.join(ROOT, program)) or re.search("[A-Z]{4}", program) else [f"there is no {program}"]
        elif program in OTHER or re.match(r"(build[\w-]*/bin/|\./|\.\./)", program):
            found = [w for w in words[1:] if re.match(r"(scripts|tests|datasets)/.+\.(py|sh)$", w) and not re.search("[A-Z]{4}", w)]
            return [f"there is no {w}" for w in found if not os.path.exists(os.path.join(ROOT, w))]
        else:
            return [f"'{program}' is not a known program"]
        if name not in self.names:
            return [f"there is no command '{name}'"]
        return self.check_arguments(f"paddle {name}", self.describe(name), rest, config_keys)

    def takes_several(self, title, words):
        """Whether one of the options takes several values, as its help says: `--train TEXT ...`."""
        done = subprocess.run([os.path.join(self.bin, "paddle"), *title.split()[1:], "--help"], capture_output=True, text=True)
        return any(re.search(rf"{re.escape(word)} [A-Z]+\S* \.\.\.", done.stdout) for word in words if word.startswith("--"))

    def check_arguments(self, title, command, words, config_keys):
        options = {name: option for option in command["options"] for name in option["names"]}
        options |= {name: {"value": "VALUE", "choices": []} for name in ("--threads", "--plugin") if title.count(" ") > 1}
        errors, arguments = [], []
        i, seen_end = 0, False
        while i < len(words):
            word = words[i]
            i += 1
            if word in ("…", "...", "[OPTIONS]"):
                seen_end = True
                continue
            if word.startswith("-") and word != "-" and not re.match(r"-[0-9.]", word):
                key, equals, value = word.partition("=")
                if key == "--help":
                    return []
                option = options.get(key)
                if option is None:
                    close = [n for n in options if n.startswith(key[:6])]
                    errors.append(f"{title} has no option {key}" + (f" (perhaps {', '.join(close)})" if close else ""))
                    continue
                if option["value"]:
                    if not equals:
                        if i == len(words):
                            errors.append(f"{title}: {key} needs a value")
                            continue
                        value = words[i]
                        i += 1
                    choices = option["choices"]
                    if choices and re.fullmatch(r"[\w.,-]+", value) and not value.isupper():
                        unknown = [v for v in value.split(",") if v not in choices]
                        if unknown:
                            errors.append(f"{title}: {key} does not take {unknown[0]}")
                elif equals:
                    errors.append(f"{title}: {key} takes no value")
                continue
            if not arguments and not seen_end:
                for inner in command["commands"]:
                    if inner["name"].split(" ")[-1] == word:
                        return errors + self.check_arguments(f"{title} {word}", inner, words[i:], config_keys)
            arguments.append(word)
            if title == "paddle launch":
                return errors + self.check(words[i - 1:], config_keys)
        takes = command["arguments"]
        repeated = any(a["repeated"] for a in takes)
        required = sum(a["required"] for a in takes)
        if not seen_end and len(arguments) < required and not command["commands"]:
            errors.append(f"{title} needs {required} arguments, not {len(arguments)}")
        if len(arguments) > len(takes) and not repeated and not self.takes_several(title, words):
            errors.append(f"{title} takes {len(takes)} arguments, not {len(arguments)}: {' '.join(arguments)}")
        if config_keys and title.split()[1] in ("train", "sweep", "lr-range", "quant"):
            for word in arguments:
                key = re.match(r"([a-z][\w.]*)[+~]?=", word)
                if key and not self.key_is_known(key.group(1)):
                    errors.append(f"{title}: a config has no key {key.group(1)}")
        for word in arguments:
            file = re.match(r"(models|configs|datasets)/[\w/.-]+\.(yaml|csv)", word)
            if file and not os.path.exists(os.path.join(ROOT, file.group(0))):
                errors.append(f"there is no {file.group(0)}")
        return errors


def split_line(line):
    """The simple commands of a line of the shell."""
    reader = shlex.shlex(line, posix=True, punctuation_chars="|&;<>")
    reader.whitespace_split = True
    reader.commenters = "#"
    out, words = [], []
    skip = False
    for word in reader:
        if re.fullmatch(r"[|&;]+", word):
            out.append(words)
            words = []
        elif re.fullmatch(r"[<>&]+", word):
            skip = True
        elif skip:
            skip = False
        else:
            words.append(word)
    out.append(words)
    return [words for words in out if words]


def command_lines(block):
    """(line number, text) of a block's commands; output between them is left out."""
    lines, number = [], block.line
    held = ""
    prompts = any(line.startswith("$ ") for line in block.lines)
    for line in block.lines:
        number += 1
        if prompts and not line.startswith("$ ") and not held:
            continue
        if not held and re.match(r"\s", line):  # output
            continue
        text = held + (line[2:] if prompts and not held else line)
        if text.endswith("\\"):
            held = text[:-1]
            continue
        held = ""
        if text.strip() and not text.lstrip().startswith("#"):
            lines.append((number, text.strip()))
    return lines


def is_shell(block, names):
    """Whether a block without a language has commands: its first line is one."""
    if block.language == "sh":
        return True
    if block.language or not block.lines:
        return False
    lines = [line for line in block.lines if line.strip() and not line.startswith("#")]
    if not lines:
        return False
    first = lines[0].split()
    while first and (first[0] == "$" or re.match(r"[A-Z_]+=", first[0])):
        first = first[1:]
    if not first:
        return False
    word = first[0]
    return (word in ("paddle", *OTHER, *WRAPPERS) or word.startswith(("paddle-", "scripts/", "tests/", "build/", "build-"))
            or word == "eval")


def check_commands(blocks, text, commands):
    failures = []
    for block in blocks:
        if not is_shell(block, commands.names) or block.marker.startswith("check: none"):
            continue
        for number, line in command_lines(block):
            sample = block.language == "sh" and not re.match(r"(\$ )?[A-Za-z./~$]", line)
            if sample:  # output between the commands
                continue
            try:
                for words in split_line(line):
                    failures += [f"{block.page}:{number}: {e}" for e in commands.check(words, "status" not in block.marker)]
            except ValueError as e:
                failures.append(f"{block.page}:{number}: {e}")
    for number, line in text:
        for code in re.findall(r"`([^`]+)`", line):
            code = code.replace("\\|", "|")
            if not re.match(r"(\S+=\S* )?(paddle-[a-z]|paddle [a-z]|build/bin/paddle)", code):
                continue
            plain = re.sub(r"[\[\]]", " ", code) if "=" not in code else code
            try:
                for words in split_line(plain):
                    if words[0].startswith("paddle-") and words[0][7:] not in commands.names and len(words) == 1:
                        continue  # a file name
                    if len(words) < 3 and words[0] == "paddle" or len(words) < 2:
                        words = words + ["…"]
                    if words[0].startswith(("paddle", "build/bin/paddle")) or "=" in words[0]:
                        failures += [f"{blocks_page(text, blocks)}{number}: {e}" for e in commands.check(words + ["…"], False)]
            except ValueError:
                pass
    return failures


def blocks_page(text, blocks):
    return ""


# --- all ---


def main():
    bin_folder = os.path.abspath(sys.argv[1])
    pages = sys.argv[2:]
    if not pages:
        listed = subprocess.run(["git", "-C", ROOT, "ls-files", "-co", "--exclude-standard", "README.md", "CONTRIBUTING.md",
                                 "docs/*.md"], capture_output=True, text=True).stdout.split()
        pages = [p for p in listed if not p.startswith(("docs/changes/", "docs/reference/")) and
                 os.path.exists(os.path.join(ROOT, p))]
    environment = dict(os.environ, PATH=bin_folder + os.pathsep + os.environ["PATH"], OMP_NUM_THREADS="2")
    environment.pop("PADDLE_TEST_DATA", None)
    counts = {"yaml": 0, "executed": 0, "pages": len(pages)}

    printed = {}  # by folder: the output of the last block of commands

    def run(command, folder, status=0):
        try:
            done = subprocess.run(["bash", "-c", command], cwd=folder, env=environment, capture_output=True, text=True,
                                  timeout=TIMEOUT, stdin=subprocess.DEVNULL)
        except subprocess.TimeoutExpired:
            return f"{command}: more than {TIMEOUT} s"
        printed[folder] = printed.get(folder, "") + done.stdout + done.stderr
        if done.returncode != status:
            lines = (done.stderr.strip() or done.stdout.strip()).split("\n")
            return f"`{command}` ended with {done.returncode}:\n    " + "\n    ".join(lines[-4:])
        return None

    commands = Commands(bin_folder)

    def check_output(block, folder):
        found = printed.get(folder, "").split("\n")
        for number, line in enumerate(block.lines, block.line + 1):
            pattern = ".*".join(re.escape(part) for part in line.strip().split("…"))
            if not any(re.fullmatch(r"\s*" + pattern + r"\s*", each) for each in found):
                yield f"{block.page}:{number}: the commands do not print this line"

    def check_page(page, scratch):
        blocks, text = read_page(page)
        failures = [f if f.startswith(page) else f"{page}:{f}" for f in check_commands(blocks, text, commands)]
        folder = None
        for block in blocks:
            checks_yaml = block.language == "yaml" and re.match(r"README|docs/guide/", page)
            executes = block.marker.startswith("run") and block.language in ("", "sh")
            if block.marker == "output":
                failures += check_output(block, folder)
            if not checks_yaml and not executes:
                continue
            if folder is None:
                folder = os.path.join(scratch, re.sub(r"\W", "_", page))
                example_files.copy(os.path.join(scratch, "files"), folder)
            if checks_yaml:
                counts["yaml"] += 1
                error = check_yaml(block, folder, run)
                if error:
                    failures.append(f"{block.place}: {error}")
            else:
                status = re.fullmatch(r"run(?:, fresh)?(?:, status (\d+))?", block.marker)
                if "fresh" in block.marker:
                    shutil.rmtree(os.path.join(folder, "runs"))
                printed[folder] = ""
                for number, line in command_lines(block):
                    counts["executed"] += 1
                    error = run(line, folder, int(status.group(1) or 0))
                    if error:
                        failures.append(f"{page}:{number}: {error}")
        return failures

    with tempfile.TemporaryDirectory() as scratch:
        error = example_files.make(os.path.join(scratch, "files"), run)
        if error:
            sys.exit(f"tests/docs/example_files.py: {error}")
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            failures = sum(pool.map(lambda page: check_page(page, scratch), pages), [])
    for failure in failures:
        print(failure)
    if failures:
        sys.exit(f"{len(failures)} failures")
    print(f"{counts['pages']} pages: {counts['yaml']} YAML blocks accepted, {counts['executed']} commands executed, all others as the "
          "programs describe them")


if __name__ == "__main__":
    main()
