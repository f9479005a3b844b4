#!/usr/bin/env bash
# `paddle doctor`: where libraries of CUDA are found, and the one thing to fix in broken installations.
set -uo pipefail
command -v python3 > /dev/null || { echo "python3 is missing"; exit 77; }
source "$(dirname "${BASH_SOURCE[0]}")/../expect.bash"
fake="$(realpath "$bin/../fake_cuda")"
[[ -e "$fake/libcuda.so.1" && -e "$fake/libnvrtc.so.13" ]] || { echo "the stand-ins are not built"; exit 77; }
unset PADDLE_CUDA_LIBRARIES CUDA_HOME CUDA_PATH LD_LIBRARY_PATH

# doctor STATUS TEXT [VARIABLE=VALUE…]
doctor() {
  local wanted="$1" text="$2" status=0
  shift 2
  env "$@" "$bin/paddle" doctor > "$folder/out" 2> "$folder/error" || status=$?
  [[ "$status" == "$wanted" ]] || { cat "$folder/out"; fail "doctor with $* gave $status, expected $wanted with '$text':"; return; }
  grep -qF -- "$text" "$folder/out" || { cat "$folder/out"; fail "doctor with $* does not say '$text':"; }
  [[ ! -s "$folder/error" ]] || fail "doctor with $* writes errors:"
  (($(grep -c '^to fix' "$folder/out") <= 1)) || fail "doctor names several things to fix"
}

# Whether the dynamic linker finds a library: it comes before toolkits and wheels.
linker_has() { python3 -c "import ctypes; ctypes.CDLL('$1')" 2> /dev/null; }

# Folders of libraries: each arrangement is found.
mkdir -p "$folder/driver" "$folder/home/.local/lib/python3.11/site-packages/nvidia/cu13/lib" \
  "$folder/venv/bin" "$folder/venv/lib/python3.12/site-packages/nvidia/cuda_nvrtc/lib" "$folder/toolkit/lib64" "$folder/empty"
cp "$fake/libcuda.so.1" "$folder/driver"
for place in "$folder/home/.local/lib/python3.11/site-packages/nvidia/cu13/lib" \
  "$folder/venv/lib/python3.12/site-packages/nvidia/cuda_nvrtc/lib" "$folder/toolkit/lib64"; do
  cp "$fake/libnvrtc.so.13" "$place"
done
ln -s "$(command -v python3)" "$folder/venv/bin/python3"
if ! linker_has libcuda.so.1; then
  doctor 0 "cuda          not usable: there is no NVIDIA driver: libcuda.so.1 was not found" HOME="$folder/empty"
  grep -q "nothing to fix" "$folder/out" || fail "a machine without a GPU has something to fix"
fi
doctor 0 "nvrtc: $fake/libnvrtc.so.13, 13.99" PADDLE_CUDA_LIBRARIES="$folder/empty:$fake"
if ! linker_has libnvrtc.so.13 && ! linker_has libnvrtc.so.12; then
  doctor 0 "nvrtc: $folder/toolkit/lib64/libnvrtc.so.13" PADDLE_CUDA_LIBRARIES="$folder/driver" CUDA_HOME="$folder/toolkit"
  doctor 0 "nvrtc: $folder/toolkit/lib64/libnvrtc.so.13" PADDLE_CUDA_LIBRARIES="$folder/driver" CUDA_PATH="$folder/toolkit" HOME="$folder/home"
  doctor 0 "$folder/home/.local/lib/python3.11/site-packages/nvidia/cu13/lib/libnvrtc.so.13" \
    PADDLE_CUDA_LIBRARIES="$folder/driver" HOME="$folder/home" PATH="/bin:$folder/empty"
  doctor 0 "python3.12/site-packages/nvidia/cuda_nvrtc/lib/libnvrtc.so.13" \
    PADDLE_CUDA_LIBRARIES="$folder/driver" HOME="$folder/home" PATH="$folder/venv/bin:$PATH"
  doctor 1 "to fix        cuda: kernels cannot be compiled: libnvrtc.so.13 or libnvrtc.so.12 was not found; install the CUDA toolkit, or \`pip install nvidia-cuda-nvrtc\`" \
    PADDLE_CUDA_LIBRARIES="$folder/driver" HOME="$folder/empty" PATH="$folder/empty:/bin"
  doctor 1 "\`pip install nvidia-cuda-nvrtc-cu12\`" PADDLE_CUDA_LIBRARIES="$fake" PADDLE_FAKE_CUDA_VERSION=12040
  mkdir "$folder/text"
  echo "not a library" > "$folder/text/libnvrtc.so.13"
  doctor 1 "libnvrtc.so.13: " PADDLE_CUDA_LIBRARIES="$folder/driver:$folder/text" HOME="$folder/empty" PATH="$folder/empty:/bin"
fi
doctor 0 "nvrtc: $folder/toolkit/lib64/libnvrtc.so.13" PADDLE_CUDA_LIBRARIES="$folder/driver" LD_LIBRARY_PATH="$folder/toolkit/lib64"
doctor 0 "cuda:1: Emulated GPU, sm_80, 1 GiB, driver of CUDA 12.4" PADDLE_CUDA_LIBRARIES="$folder/driver:$folder/nvrtc12" \
  PADDLE_FAKE_CUDA_VERSION=12040 PADDLE_FAKE_CUDA_CAPABILITY=80 CUDA_HOME="$folder/twelve" \
  $(mkdir -p "$folder/twelve/lib64" && cp "$fake/libnvrtc.so.13" "$folder/twelve/lib64/libnvrtc.so.12")

# Planted faults.
doctor 1 "is the driver of CUDA 11.4; CUDA 12.0 (driver 525) or newer is needed" PADDLE_CUDA_LIBRARIES="$fake" PADDLE_FAKE_CUDA_VERSION=11040
doctor 1 "to fix        cuda: no NVIDIA GPU was found by" PADDLE_CUDA_LIBRARIES="$fake" PADDLE_FAKE_CUDA_DEVICES=0
doctor 1 "has capability 7.0; 8.0 or newer is needed" PADDLE_CUDA_LIBRARIES="$fake" PADDLE_FAKE_CUDA_CAPABILITY=70
doctor 1 "cuda: cuDevicePrimaryCtxRetain: unknown error" PADDLE_CUDA_LIBRARIES="$fake" PADDLE_FAKE_CUDA_FAIL=cuDevicePrimaryCtxRetain:1
mkdir -p "$folder/text" "$folder/stub"
if command -v "${CC:-cc}" > /dev/null; then
  echo 'int cuInit(unsigned flags) { return (int)flags; }' | "${CC:-cc}" -shared -fPIC -x c - -o "$folder/stub/libcuda.so.1"
  doctor 1 "lacks the function cuDriverGetVersion; a newer one is needed" PADDLE_CUDA_LIBRARIES="$folder/stub:$fake"
  printf '#include <stdlib.h>\n__attribute__((constructor)) static void end(void) { abort(); }\n' |
    "${CC:-cc}" -shared -fPIC -x c - -o "$folder/stub/libcuda.so.1"
  doctor 1 "to fix        cuda: loading it ends a process by signal 6" PADDLE_CUDA_LIBRARIES="$folder/stub:$fake"
fi
echo "not a module" > "$folder/text/module.so"
doctor 1 "to fix        module hdf5: " PADDLE_HDF5_MODULE="$folder/text/module.so"
doctor 1 "to fix        the cache folder $folder/text/module.so cannot be written" PADDLE_CACHE_DIR="$folder/text/module.so"
doctor 0 "cache         none" PADDLE_CACHE_DIR=

"$bin/paddle" doctor --json > "$folder/out" 2> "$folder/error" || fail "doctor --json:"
python3 - "$folder/out" <<'P' || fail "the JSON of doctor:"
import json, sys
report = json.load(open(sys.argv[1]))
assert {"threads", "memory", "cache", "modules", "cuda", "fix"} <= set(report), report
assert {m["name"] for m in report["modules"]} >= {"codegen", "lapack"}
P
finish
