#!/usr/bin/env python3
"""All-reduce of 64 MiB of float32 on 2 and 4 processes: paddle-launch --check against Open MPI.

    tests/bench/all_reduce.py [BIN]      BIN: the folder of the programs (build/bin)

Needs mpicc and mpirun (packages openmpi-bin, libopenmpi-dev). Prints a table: the median times in
the same run, and the ratio of the speeds; more than 1 is faster than MPI.
"""

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


def ours(folder, ranks, **environment):
    out = subprocess.run([os.path.join(folder, "paddle-launch"), "-n", str(ranks), "--check"],
                         capture_output=True, text=True, check=True, env={**os.environ, **environment})
    return float(re.search(r"all-reduce 64(?:\.0)? MiB\s+([\d.]+) ms", out.stdout).group(1))


def main():
    folder = sys.argv[1] if len(sys.argv) > 1 else "build/bin"
    if not shutil.which("mpicc") or not shutil.which("mpirun"):
        sys.exit("mpicc and mpirun are missing: install openmpi-bin and libopenmpi-dev")
    with tempfile.TemporaryDirectory() as scratch:
        source, program = scratch + "/reduce.c", scratch + "/reduce"
        with open(source, "w") as f:
            f.write(MPI_PROGRAM)
        subprocess.run(["mpicc", "-O2", source, "-o", program], check=True)
        print("ranks  ours ms  over TCP ms  Open MPI ms  ours / MPI")
        for ranks in (2, 4):
            mpi = float(subprocess.run(
                ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", str(ranks), program, str(BYTES)],
                capture_output=True, text=True, check=True).stdout)
            direct, tcp = ours(folder, ranks), ours(folder, ranks, PADDLE_TRANSPORT="tcp")
            print(f"{ranks:5}  {direct:7.1f}  {tcp:11.1f}  {mpi:11.1f}  {mpi / direct:10.2f}")


if __name__ == "__main__":
    main()
