#!/usr/bin/env bash
# The import takes no further packages, exports one symbol and needs no newer Python.
source tests/python/setup.bash
python -X importtime -c 'import paddle_toolchain' 2> /dev/null
imported="$(python -c 'import sys; before = set(sys.modules)
import paddle_toolchain
print(*sorted(m for m in set(sys.modules) - before if not m.startswith("paddle_toolchain")))')"
for module in numpy torch typing ctypes; do
  [[ " $imported " != *" $module "* ]] || fail "the import takes $module"
done
symbols="$(nm -D --defined-only "$build/python/paddle_toolchain/_paddle.abi3.so" | awk '$2 == "T" { print $3 }')"
[[ "$symbols" == PyInit__paddle ]] || fail "exported: $symbols"
