"""Writes data/k_quants.npz: make_k_quants.py LIBRARY [BLOCKS FILE]

Values and what ggml's quantizer makes of them without an importance matrix: q4_k, q5_k and q6_k.
LIBRARY is libggml-base (.a or .so) of a build of llama.cpp for plain x86-64, without fused
multiply-add. Needs numpy and a C compiler. With BLOCKS, that many random blocks go to FILE instead, for
a longer comparison (PADDLE_K_QUANTS=FILE of test_formats).
"""

import os
import subprocess
import sys
import tempfile

import numpy as np

DRIVER = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
size_t quantize_q4_K(const float *, void *, long, long, const float *);
size_t quantize_q5_K(const float *, void *, long, long, const float *);
size_t quantize_q6_K(const float *, void *, long, long, const float *);
int main(int argc, char ** argv) {
  FILE * in = fopen(argv[1], "rb");
  fseek(in, 0, SEEK_END);
  long n = ftell(in) / 4;
  rewind(in);
  float * x = malloc(n * 4);
  char * out = malloc(n * 4);
  if (fread(x, 4, n, in) != (size_t) n) return 1;
  int which = atoi(argv[2]);
  size_t bytes = which == 4 ? quantize_q4_K(x, out, n / 256, 256, 0) : which == 5 ? quantize_q5_K(x, out, n / 256, 256, 0) : quantize_q6_K(x, out, n / 256, 256, 0);
  FILE * to = fopen(argv[3], "wb");
  fwrite(out, 1, bytes, to);
  return fclose(to);
}
"""


def blocks(rng):
    normal = rng.normal(0, 0.05, 256)
    yield normal
    yield rng.standard_t(3, 256) * 0.02
    yield np.abs(normal)
    yield -np.abs(normal) - 0.1
    yield rng.uniform(-1, 1, 256)
    yield np.zeros(256)
    yield np.full(256, 0.25)
    yield normal * 1e-9
    yield normal * 1e5
    yield np.where(np.arange(256) % 96 < 40, 0, normal)
    yield np.where(rng.random(256) < 0.02, 3.0, normal)
    yield normal * np.repeat(10.0 ** np.arange(-4, 4), 32)
    yield np.round(normal * 40) / 40
    yield np.linspace(-2, 1, 256)


def quantized(values, library, folder):
    source, program, given = (os.path.join(folder, name) for name in ("driver.c", "driver", "values"))
    with open(source, "w") as file:
        file.write(DRIVER)
    subprocess.run(["cc", "-O1", source, library, "-o", program, "-fopenmp", "-lm", "-lpthread", "-lstdc++", "-ldl",
                    "-Wl,-rpath," + os.path.dirname(os.path.abspath(library))], check=True)
    values.astype("<f4").tofile(given)
    out = {}
    for bits, size in ((4, 144), (5, 176), (6, 210)):
        subprocess.run([program, given, str(bits), given + ".out"], check=True)
        out[f"q{bits}_k"] = np.fromfile(given + ".out", np.uint8).reshape(-1, size)
    return out


rng = np.random.default_rng(7)
count = int(sys.argv[2]) if len(sys.argv) > 2 else 0
if count:
    values = rng.standard_t(4, (count, 256)) * np.exp(rng.normal(-4, 2, (count, 1)))
else:
    values = np.stack(list(blocks(rng)))
values = values.astype(np.float32)
with tempfile.TemporaryDirectory() as folder:
    made = quantized(values, sys.argv[1], folder)
target = sys.argv[3] if count else os.path.join(os.path.dirname(os.path.abspath(__file__)), "data", "k_quants.npz")
np.savez_compressed(target, values=values, **made)
