#!/usr/bin/env bash
# One wheel in each version of Python that is installed (PADDLE_TEST_PYTHONS: programs, separated by spaces), and next
# to other packages: PADDLE_TEST_SITES are folders of site-packages, of the same version of Python as the program that
# a '=' separates from each, as in "/usr/bin/python3.11=/opt/torch/lib/python3.11/site-packages".
source tests/python/setup.bash
root="$PWD"
folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT
scripts/make-wheel --build "$build" --output "$folder/dist" > /dev/null || fail "scripts/make-wheel"
wheel="$(echo "$folder"/dist/paddle_toolchain-*.whl)"
found=()
if [[ -n "${PADDLE_TEST_PYTHONS:-}" ]]; then
  read -r -a found <<< "$PADDLE_TEST_PYTHONS"
else
  for version in 3.11 3.12 3.13 3.14; do
    # Version managers install a command for each version they know, which fails for all but the chosen one.
    if "python$version" -c 'import venv' 2> /dev/null; then found+=("$(command -v "python$version")"); fi
  done
fi
((${#found[@]} > 0)) || fail "no Python of version 3.11 or later is installed"
mkdir "$folder/elsewhere"
cd "$folder/elsewhere"
ln -s "$root/configs" "$root/models" "$root/datasets" .

# A virtual environment with the wheel.
install_in() {
  "$1" -m venv "$2" || fail "$1: venv"
  "$2/bin/pip" install --quiet --disable-pip-version-check --no-index "$wheel" || fail "$1: pip install"
}

number=0
for program in "${found[@]}"; do
  number=$((number + 1))
  install_in "$program" "$folder/v$number"
  for test in tensors layers hooks static segments control_flow_report; do
    "$folder/v$number/bin/python" -W error "$root/tests/python/$test.py" > out 2>&1 || fail "$program: $test.py: $(tail -5 out)"
  done
  echo "$("$program" --version): passed"
done
for pair in ${PADDLE_TEST_SITES:-}; do
  number=$((number + 1))
  install_in "${pair%%=*}" "$folder/v$number"
  echo "${pair#*=}" > "$("$folder/v$number/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/other.pth"
  tests=(neighbors)
  if "$folder/v$number/bin/python" -c 'import numpy' 2> out; then tests+=(arrays); fi
  for test in "${tests[@]}"; do
    "$folder/v$number/bin/python" "$root/tests/python/$test.py" > out 2>&1 || fail "$pair: $test.py: $(tail -5 out)"
  done
  echo "${pair#*=}: passed ${tests[*]}"
done
