#!/usr/bin/env bash
# The stubs of the package: mypy --strict accepts the example and finds mistakes. PADDLE_TEST_MYPY names mypy.
source tests/python/setup.bash
mypy="${PADDLE_TEST_MYPY:-mypy}"
command -v "$mypy" > /dev/null || { echo "mypy is missing (PADDLE_TEST_MYPY)"; exit 77; }
folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT
check() { MYPYPATH="$build/python" "$mypy" --strict --no-incremental --cache-dir="$folder/cache" "$1" > "$folder/out"; }
check examples/python/digits.py || { cat "$folder/out"; fail "examples/python/digits.py"; }
cat > "$folder/mistakes.py" <<'P'
import paddle_toolchain as paddle
from paddle_toolchain import nn

x = paddle.to_tensor([1.0])
y: paddle.Tensor = x.exp() + 1 @ x
paddle.matmull(x, x)
paddle.matmul(x, x, transpose_x="yes")
paddle.dropout(x, mode="upscale")
name: int = x.dtype
values, indices = paddle.topk(x, 1)
nn.Linear(3)
x.exp(3)
P
if check "$folder/mistakes.py"; then fail "mistakes are not found"; fi
for line in 6 7 8 9 11 12; do
  grep -q "mistakes.py:$line: error" "$folder/out" || { cat "$folder/out"; fail "the mistake of line $line"; }
done
for line in 4 5 10; do
  if grep -q "mistakes.py:$line: error" "$folder/out"; then cat "$folder/out"; fail "line $line is right"; fi
done
