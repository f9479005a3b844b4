#!/usr/bin/env python3
"""Data parallel on two processes against one process with two threads, with the same work.

    tests/bench/data_parallel.py [BIN] [--config CONFIG] [--pairs N] [--steps N] [--other BIN]

BIN is the folder of the programs (build/bin). A pair is one run of `paddle-train --benchmark` on two
threads and one of `paddle-launch -n 2` with `parallel.data=2`, one after the other, in turns which
comes first; the ratio of a pair is the speed of the two processes over that of the one, so that 1 is
the same. Prints the ratios of the pairs' median and fastest steps, and their medians over the pairs.
Other work on the machine slows the processes, which wait for each other, more than the threads: its
load is printed, too. `--other` measures the processes of another build in the same turns.
"""

import argparse
import json
import os
import statistics
import subprocess

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def measure(command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)}: exit {done.returncode}: {done.stderr.strip()}")
    result = json.loads(done.stdout.strip().split("\n")[-1])
    return result["median_ms"], result["min_ms"]


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("bin", nargs="?", default=os.path.join(ROOT, "build/bin"))
    parser.add_argument("--config", default=os.path.join(ROOT, "configs/text/char_gpt.yaml"))
    parser.add_argument("--pairs", type=int, default=9)
    parser.add_argument("--steps", type=int, default=150)
    parser.add_argument("--other", default="")
    options = parser.parse_args()

    def one(folder):
        return [f"{folder}/paddle-train", options.config, "--threads", "2", "--benchmark", str(options.steps)]

    def two(folder):
        return [f"{folder}/paddle-launch", "-n", "2", f"{folder}/paddle-train", options.config, "parallel.data=2",
                "--benchmark", str(options.steps)]

    kinds = {"one": one(options.bin), "two": two(options.bin)}
    if options.other:
        kinds["other"] = two(options.other)
    ratios = {kind: [] for kind in kinds if kind != "one"}
    print("load  one process: median, min ms  two processes: median, min ms  ratios of medians, minima", flush=True)
    for pair in range(options.pairs):
        order = list(kinds) if pair % 2 == 0 else list(reversed(kinds))
        times = {kind: measure(kinds[kind]) for kind in order}
        for kind, found in ratios.items():
            found.append([a / b for a, b in zip(times["one"], times[kind])])
            print(f"{os.getloadavg()[0]:4.1f}  {times['one'][0]:12.2f} {times['one'][1]:8.2f}  {kind:>12} {times[kind][0]:8.2f} "
                  f"{times[kind][1]:8.2f}  {found[-1][0]:10.3f} {found[-1][1]:7.3f}", flush=True)
    for kind, found in ratios.items():
        medians = [statistics.median(column) for column in zip(*found)]
        print(f"{kind}: {medians[0]:.3f} of one process by median steps, {medians[1]:.3f} by fastest steps "
              f"(medians of {len(found)} pairs)")


if __name__ == "__main__":
    main()
