#!/usr/bin/env bash
# A wheel installs in an empty virtual environment, without NumPy and without the build folder.
source tests/python/setup.bash
root="$PWD"
folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT
scripts/make-wheel --build "$build" --output "$folder/dist" || fail "scripts/make-wheel"
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
