#!/usr/bin/env bash
# A wheel installs in an empty virtual environment, without NumPy and without the build folder; that of the code
# generator next to it.
source tests/python/setup.bash
root="$PWD"
folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT
options=()
if [[ -e "$build/lib/libpaddle_codegen.so" ]]; then options+=(--codegen); fi
scripts/make-wheel --build "$build" --output "$folder/dist" "${options[@]}" || fail "scripts/make-wheel"
wheel="$(echo "$folder"/dist/paddle_toolchain-*-cp311-abi3-manylinux_*.whl)"
[[ $(stat -c %s "$wheel") -le $((60 << 20)) ]] || fail "the wheel is larger than 60 MiB"
"$base_python" -m venv "$folder/empty" || fail "venv"
"$folder/empty/bin/pip" install --quiet --disable-pip-version-check --no-index "$wheel" || fail "pip install"
mkdir "$folder/elsewhere"
cd "$folder/elsewhere"
ln -s "$root/configs" "$root/models" "$root/datasets" .
"$folder/empty/bin/python" -c 'import importlib.util
assert importlib.util.find_spec("numpy") is None
import paddle_toolchain as paddle
assert "site-packages" in paddle.__file__, paddle.__file__
x = paddle.to_tensor([[2.0, 0.0], [0.0, 3.0]])
assert (x @ x).tolist() == [[4, 0], [0, 9]]
assert abs(paddle.linalg.det(x).item() - 6) < 1e-5'
"$folder/empty/bin/python" "$root/examples/python/digits.py" 1 > digits.out || fail "the example"
grep -q '^accuracy 0\.[89]' digits.out || fail "$(cat digits.out)"
ln -s "$root/tests" .
"$folder/empty/bin/python" -W error tests/python/language_model.py "$folder" || fail "language models with the wheel"
cp "$root/tests/python/tensors.py" .
"$folder/empty/bin/python" -W error tensors.py || fail "tests with the wheel"
((${#options[@]})) || exit 0
cat > fused.py <<'P'
import sys
import paddle_toolchain as paddle

f = paddle.jit.to_static(lambda x: (x * 2 + 1).tanh() * x)
x = paddle.ones([100000])
assert abs(f(x)[7].item() - 0.9950547) < 1e-5
with open("/proc/self/maps") as maps:
    found = [line.split()[-1] for line in maps if "libpaddle_codegen.so" in line or "libLLVM" in line]
assert bool(found) == (sys.argv[1] == "with") and all("site-packages/paddle_toolchain/" in path for path in found), found
P
"$folder/empty/bin/python" fused.py without || fail "a compiled function without the code generator"
"$folder/empty/bin/pip" install --quiet --disable-pip-version-check --no-index --find-links "$folder/dist" paddle_toolchain_codegen ||
  fail "pip install of the code generator"
"$folder/empty/bin/python" fused.py with || fail "a compiled function with the code generator"
"$folder/empty/bin/pip" uninstall --quiet --yes paddle_toolchain_codegen || fail "pip uninstall"
"$folder/empty/bin/python" fused.py without || fail "a compiled function after the code generator was removed"
