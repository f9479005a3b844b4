"""Tables and the page that tests/bench/run prints: everything from the results of one run."""
import os
import platform
import subprocess

from lines import PEERS
from processor import fact, flags

HEADER = ["line", "dtype", "peer", "ours ms", "peer ms", "ratio", "limit ms", "share", "ours MiB", "peer MiB", "difference"]

CAPTION = """\
A training line is a step: forward, backward, update, on four batches of host arrays in turn, each loss
returned; an `infer_` line is one prediction; a `start_` line is a process, from its start to the answer
in a file. `ms`: median of the turns' medians (in parentheses the shortest of all). `ratio`: the peer's
median over ours, above 1 where ours is faster. `limit`: the line's floating-point operations at the
best rate of a 1536 x 1536 matrix product in its dtype (in float32 for int8), measured here in each turn
of this run; of a `start_` line what is promised, 20 ms for LeNet, and 60 ms plus three times a warm
`cat` of the file for the other. `share`: that limit over our median; above 100% where the same numbers
take fewer operations (3 x 3 convolutions) or smaller ones (int8). `MiB`: peak resident memory of the
process. `difference`: of the first losses (training) or the outputs (inference), relative, from the same
weights on the same data; a line where it is too large fails and has no times."""


def milliseconds(side):
    return f"{side['median_ms']:.4g} ({side['min_ms']:.4g})"


def table(rows):
    """Markdown, aligned; a row without times says why, but for peers that a line which has others cannot have."""
    cells = [HEADER]
    has_peers = {r["line"] for r in rows if "reason" not in r or "failure" in r}
    for r in rows:
        if "reason" in r and "failure" not in r and r["line"] in has_peers:
            continue
        first = [r["line"], r["dtype"], r["peer"]]
        if "reason" in r:
            cells.append(first + [r["reason"]] + [""] * (len(HEADER) - 4))
        else:
            cells.append(first + [milliseconds(r["ours"]), milliseconds(r["theirs"]), f"{r['ratio']:.2f}",
                                  f"{r['limit_ms']:.4g}", f"{100 * r['share_of_limit']:.0f}%",
                                  f"{r['ours']['peak_mib']:.0f}", f"{r['theirs']['peak_mib']:.0f}",
                                  f"{r['difference']:.1e}"])
    widths = [max(3, max(len(row[i]) for row in cells if i != 3 or row[4] or row is cells[0]))
              for i in range(len(HEADER))]
    cells.insert(1, ["-" * w for w in widths])
    return "\n".join("| " + " | ".join(c.ljust(w) for c, w in zip(row, widths)) + " |" for row in cells)


def machine(root, threads, load, versions):
    """What ran where, as (name, value)."""
    known = flags()
    units = [f for f in ("avx2", "avx_vnni", "avx512f", "avx512_vnni", "avx512_bf16", "amx_bf16") if f in known]
    memory = fact("/proc/meminfo", "MemTotal").split()[0]
    git = subprocess.run(["git", "-C", root, "describe", "--always", "--dirty"], capture_output=True, text=True)
    return [
        ("processor", f"{fact('/proc/cpuinfo', 'model name')}, family {fact('/proc/cpuinfo', 'cpu family')}, "
                      f"model {fact('/proc/cpuinfo', 'model')} ({', '.join(units)})"),
        ("cores", f"{len(os.sched_getaffinity(0))}, {threads} threads on each side"),
        ("load before", f"{load:.1f}"),
        ("memory", f"{int(memory) / 2 ** 20:.0f} GiB" if memory.isdigit() else memory),
        ("system", f"{platform.system()}, {platform.machine()}"),
        ("commit", git.stdout.strip() or "unknown"),
        ("peers", ", ".join(sorted(versions)) or "none"),
    ]


def page(command, facts, rows):
    peers = sorted({r["peer"] for r in rows}, key=list(PEERS).index)
    return "\n".join([
        "# Benchmarks", "",
        "Written by `tests/bench/run --write`; not edited by hand.", "",
        "```", command, "```", "",
        "| | |", "| --- | --- |", *[f"| {name} | {value} |" for name, value in facts],
        *[f"| peer `{p}` | {PEERS[p]} |" for p in peers], "",
        table(rows), "", CAPTION, ""])
