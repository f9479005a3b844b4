"""The page docs/reference/plugin_abi.md, from the comments of include/paddle/plugin/*.h."""

import os
import re

HEADERS = ("abi", "host", "plugin", "operation", "kernel", "device", "pass", "data", "comm", "ranks", "table", "graph")
COMMENT = re.compile(r"/\*(.*?)\*/", re.S)
#: A type with its name at the end, a macro, or an enum.
DECLARATION = re.compile(
    r"^(typedef struct \w+ \{.*?^\} (?P<struct>\w+);|enum \{ [^\n]*\};|enum (\w+ )?\{\n.*?^\};|typedef [^;{]*;|"
    r"#define (?P<macro>PADDLE_\w+)(\([^)]*\))?[^\n\\]*(\\\n[^\n\\]*)*)", re.S | re.M)


def plain(comment):
    """The text of a comment, a paragraph a line; lists stay lists."""
    lines = [re.sub(r"^\s*\* ?", "", line).rstrip() for line in comment.strip().split("\n")]
    paragraphs = [[]]
    for line in lines:
        if not line:
            paragraphs.append([])
        elif re.match(r"\s*(\d+\.|-) ", line) or line.startswith("  ") and not re.match(r"\s*(\d+\.|-) ", (paragraphs[-1] or [""])[0]):
            paragraphs.append([line.strip() if re.match(r"\s*(\d+\.|-) ", line) else "`" + line.strip() + "`"])
        else:
            paragraphs[-1].append(line.strip())
    return [" ".join(each) for each in paragraphs if each]


def name_of(match):
    text = match.group(0)
    if match.group("struct"):
        return match.group("struct")
    if match.group("macro"):
        return match.group("macro")
    if text.startswith("enum"):
        names = re.findall(r"\b(PADDLE_\w+)", text)
        return ", ".join(names) if len(names) < 3 else f"{names[0]}, … {names[-1]}"
    pointer = re.search(r"\(\*(\w+)\)", text)
    return pointer.group(1) if pointer else re.search(r"(\w+);$", text).group(1)


def since(name, body):
    """Names of the fields after each comment "Since 1.N." of a struct."""
    out = {}
    parts = re.split(r"Since (\d+\.\d+)\.", body)
    for version, text in zip(parts[1::2], parts[2::2]):
        text = COMMENT.sub("", text[text.find("*/") + 2:])
        fields = re.findall(r"(?:\(\*(\w+)\)\(|(\w+);)", re.sub(r"\([^()]*\)(?=;)", "(", text))
        out[version] = [a or b for a, b in fields if (a or b) not in ("reserved", name)]
    return out


def section(root, header):
    with open(os.path.join(root, "include", "paddle", "plugin", header + ".h"), encoding="utf-8") as file:
        text = file.read()
    first = COMMENT.search(text)
    out = [f"## {header}.h", *plain(first.group(1))]
    added, seen = {}, set()
    for match in DECLARATION.finditer(text, first.end()):
        name = name_of(match)
        if name.endswith(("_H", "_DEFINED")) or name in seen:
            continue
        seen.add(name)
        before = text[:match.start()].rstrip()
        comment = ""
        if before.endswith("*/"):
            comment = before[before.rindex("/*") + 2:-2]
            # A comment after a field belongs to that.
            if before[:before.rindex("/*")].rstrip(" ")[-1:] not in ("\n", ""):
                comment = ""
        out += [f"### {name}", *plain(comment), "```c\n" + match.group(0) + "\n```"]
        for version, fields in since(name, match.group(0)).items():
            added.setdefault(version, []).append((name, fields))
    return out, added


def page(root, note):
    out = ["# The C interface of plug-ins", note.strip(),
           "What `include/paddle/plugin/*.h` declares. [Plug-ins](../guide/plugins.md) explains how to use it, and "
           "[the design](../design/plugins.md) why it is so."]
    body, added = [], {}
    for header in HEADERS:
        lines, new = section(root, header)
        body += lines
        for version, each in new.items():
            added.setdefault(version, []).extend(each)
    out += ["## Versions", "Each version has the declarations of those before it, unchanged.",
            "| version | adds |\n| --- | --- |\n" + "\n".join(
                f"| {version} | " + "; ".join(f"`{name}`: " + ", ".join(f"`{field}`" for field in fields) for name, fields in all_of)
                + " |" for version, all_of in sorted(added.items()))]
    return "\n\n".join(out + body)
