# For the tests of this folder: `python` is a Python that finds the package in the build folder.
# Builds without the headers of Python have no package, which the test then says.
set -euo pipefail
build="$(cd "${PADDLE_BIN:?}/.." && pwd)"
if [[ ! -e "$build/python/paddle_toolchain/_paddle.abi3.so" ]]; then
  echo "built without the Python package (PADDLE_PYTHON)"
  exit 77
fi
base_python="${PADDLE_TEST_PYTHON:-$(sed -n 's/^_Python3_EXECUTABLE:INTERNAL=//p' "$build/CMakeCache.txt")}"
base_python="${base_python:-python3}"
python() { PYTHONPATH="$build/python" PYTHONDONTWRITEBYTECODE=1 "$base_python" "$@"; }
fail() {
  echo "FAIL: $1"
  exit 1
}
