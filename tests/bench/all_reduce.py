#!/usr/bin/env python3
"""All-reduce of 64 MiB of float32 on 2 and 4 processes: paddle-launch --check against Open MPI and
Gloo.

    tests/bench/all_reduce.py [BIN] [--python PYTHON]      BIN: the folder of the programs (build/bin)

Needs mpicc and mpirun (packages openmpi-bin, libopenmpi-dev) or, for Gloo, a Python that has
PyTorch; what is missing is left out. Prints a table: the median times in the same run, and the ratio
of the speeds; more than 1 is faster than the better of the two.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile

BYTES = 64 << 20
MPI_PROGRAM = r"""
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
static int compare(const void* a, const void* b) {
  double x = *(const double*)a, y = *(const double*)b;
  return x < y ? -1 : x > y;
}
int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int count = atoi(argv[1]) / 4, rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  float *in = malloc(4L * count), *out = malloc(4L * count);
  for (int i = 0; i < count; ++i) in[i] = 1;
  double times[11];
  MPI_Allreduce(in, out, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  for (int i = 0; i < 11; ++i) {
    MPI_Barrier(MPI_COMM_WORLD);
    double start = MPI_Wtime();
    MPI_Allreduce(in, out, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    times[i] = MPI_Wtime() - start;
  }
  qsort(times, 11, sizeof(double), compare);
  if (rank == 0) printf("%.3f\n", 1e3 * times[5]);
  MPI_Finalize();
  return 0;
}
"""

GLOO_PROGRAM = r"""
import os, sys, time
import torch
import torch.distributed as dist
torch.set_num_threads(1)
dist.init_process_group("gloo", init_method="file://" + sys.argv[1], rank=int(sys.argv[2]), world_size=int(sys.argv[3]))
x = torch.ones(int(sys.argv[4]) // 4)
dist.all_reduce(x.clone())
times = []
for _ in range(11):
    y = x.clone()
    dist.barrier()
    start = time.monotonic()
    dist.all_reduce(y)
    times.append(time.monotonic() - start)
if dist.get_rank() == 0:
    print(f"{1e3 * sorted(times)[5]:.3f}", flush=True)
dist.barrier()
os._exit(0)
"""


def gloo(python, scratch, ranks):
    store = f"{scratch}/store{ranks}"
    started = [subprocess.Popen([python, "-c", GLOO_PROGRAM, store, str(rank), str(ranks), str(BYTES)],
                                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) for rank in range(ranks)]
    outputs = [process.communicate(timeout=300)[0] for process in started]
    return float(outputs[0])


def mpi(program, ranks):
    done = subprocess.run(["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", str(ranks), program, str(BYTES)],
                          capture_output=True, text=True, check=True)
    return float(done.stdout)


def ours(folder, ranks, **environment):
    out = subprocess.run([os.path.join(folder, "paddle-launch"), "-n", str(ranks), "--check"],
                         capture_output=True, text=True, check=True, env={**os.environ, **environment})
    return float(re.search(r"all-reduce 64(?:\.0)? MiB\s+([\d.]+) ms", out.stdout).group(1))


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("bin", nargs="?", default="build/bin")
    parser.add_argument("--python", default=sys.executable)
    options = parser.parse_args()
    has_mpi = shutil.which("mpicc") and shutil.which("mpirun")
    has_gloo = subprocess.run([options.python, "-c", "import torch.distributed as d; assert d.is_gloo_available()"],
                              capture_output=True).returncode == 0
    if not has_mpi and not has_gloo:
        sys.exit("neither Open MPI (openmpi-bin, libopenmpi-dev) nor a Python with PyTorch (--python) is there")
    with tempfile.TemporaryDirectory() as scratch:
        source, program = scratch + "/reduce.c", scratch + "/reduce"
        with open(source, "w") as f:
            f.write(MPI_PROGRAM)
        if has_mpi:
            subprocess.run(["mpicc", "-O2", source, "-o", program], check=True)
        print("ranks  ours ms  over TCP ms  Open MPI ms  Gloo ms  ours / the better")
        for ranks in (2, 4):
            others = [mpi(program, ranks) if has_mpi else float("inf"),
                      gloo(options.python, scratch, ranks) if has_gloo else float("inf")]
            direct, tcp = ours(options.bin, ranks), ours(options.bin, ranks, PADDLE_TRANSPORT="tcp")
            print(f"{ranks:5}  {direct:7.1f}  {tcp:11.1f}  {others[0]:11.1f}  {others[1]:7.1f}  {min(others) / direct:17.2f}",
                  flush=True)


if __name__ == "__main__":
    main()
