#!/usr/bin/env python3
"""Measures what plug-ins cost: building, loading, calls of kernels, and `paddle plugin check`.

  plugins.py [--rounds N] [--bars]

Each number is the shortest of the rounds; building and loading are processor time, which other programs do not
change. A call is compared with a kernel of the engine: both compute
`abs` of one float32. --bars: exit code 1 if one is above its limit. PADDLE_BIN names the folder of our
tools (build/bin)."""
import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BIN = os.path.abspath(os.environ.get("PADDLE_BIN", os.path.join(ROOT, "build", "bin")))
KINDS = {"operator": ".plugin.yaml", "kernel": ".cc", "device": ".c", "pass": ".cc", "rules": ".plugin.yaml",
         "transport": ".cc", "table": ".cc", "reader": ".cc", "compiler": ".cc", "loss": ".plugin.yaml",
         "optimizer": ".plugin.yaml", "schedule": ".plugin.yaml", "metric": ".plugin.yaml",
         "transform": ".plugin.yaml"}
ABS = """
#include <paddle/plugin/plugin.hpp>
#include <cmath>
static void absolute(const paddle::plugin::Run& run) { run.out<float>(0)[0] = std::fabs(run.in<float>(0)[0]); }
static bool is_one(const paddle::plugin::Request& request) { return request.operand(0).rank == 1; }
PADDLE_PLUGIN(absolutes, "1.0.0", plugin) { plugin.kernel("abs", "cpu", "float32", absolute, is_one); }
"""


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(command)}: {done.stdout[-400:]}{done.stderr[-400:]}")
    return done.stdout


def processor_seconds():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def shortest(rounds, *command, clock=processor_seconds):
    out = []
    for _ in range(rounds):
        begin = clock()
        run(*command)
        out.append(clock() - begin)
    return min(out)


def call_seconds(rounds, *options):
    """Of a run of the kernel of abs, as `paddle op bench` finds it."""
    command = [f"{BIN}/paddle-op", "bench", "abs", "x=f32[1]", "--seconds", "0.2", "--json", *options]
    found = [json.loads(run(*command).strip().split("\n")[-1]) for _ in range(rounds)]
    if ("absolutes" in found[0]["implementation"]) != bool(options):
        sys.exit("abs was computed by " + found[0]["implementation"])
    return min(each["min_ms"] for each in found) / 1e3


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--bars", action="store_true")
    options = parser.parse_args()
    os.environ["PADDLE_INCLUDE"] = os.path.join(ROOT, "include")
    folder = tempfile.mkdtemp(prefix="paddle-bench-plugins-")
    os.chdir(folder)
    plugin = f"{BIN}/paddle-plugin"
    results = []

    def note(name, seconds, limit):
        results.append({"name": name, "seconds": seconds, "limit": limit})
        print(f"{name:44} {seconds * 1e3:12.6f} ms   limit {limit * 1e3:g} ms", flush=True)

    shutil.copy(os.path.join(ROOT, "plugins/softsign_power/softsign_power.cc"), "c.cc")
    run(plugin, "new", "kernel", "k")
    note("build, C structs", shortest(options.rounds, plugin, "build", "c.cc", "-o", "c.so"), 3)
    note("build, plugin.hpp", shortest(options.rounds, plugin, "build", "k.cc", "-o", "k.so"), 3)

    with open("many.plugin.yaml", "w", encoding="utf-8") as file:
        file.write("plugin: {name: many, version: 1.0.0, abi: 1}\noperations:\n")
        for i in range(20):
            file.write(f"  op{i}: {{signature: '(x:T, s:float=1.0) -> out', doc: One., body: tanh(x * s) + {i}}}\n")
    command = [plugin, "list"]
    bare = shortest(10 * options.rounds, *command)
    note("load 20 operations", shortest(10 * options.rounds, *command, "--plugin", "many.plugin.yaml") - bare, 0.005)

    with open("abs.cc", "w", encoding="utf-8") as file:
        file.write(ABS)
    run(plugin, "build", "abs.cc", "-o", "abs.so")
    own = call_seconds(options.rounds)
    theirs = call_seconds(options.rounds, "--plugin", "abs.so")
    note("a call through the C table, more than ours", theirs - own, 40e-9)

    with open("rows.fvecs", "wb") as file:
        for i in range(300):
            file.write(b"\x04\0\0\0" + bytes([0, 0, 128 + i % 90, 63]) * 4)
    for kind, suffix in KINDS.items():
        begin = time.perf_counter()
        run(plugin, "new", kind, f"new_{kind}")
        file = f"new_{kind}{suffix}"
        if suffix != ".plugin.yaml":
            run(plugin, "build", file, "-o", f"new_{kind}.so")
            file = f"new_{kind}.so"
        run(plugin, "check", file, "--quick", *(["--key", "path=rows.fvecs"] if kind == "reader" else []))
        note(f"new, build, check --quick: {kind}", time.perf_counter() - begin, 30)

    run(plugin, "build", os.path.join(ROOT, "plugins/relay/relay.c"), "-o", "relay.so")
    note("check --quick of relay", shortest(1, plugin, "check", "relay.so", "--quick", clock=time.perf_counter), 60)
    print(json.dumps(results))
    shutil.rmtree(folder)
    if options.bars and any(each["seconds"] > each["limit"] for each in results):
        sys.exit(1)


if __name__ == "__main__":
    main()
