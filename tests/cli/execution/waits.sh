#!/usr/bin/env bash
# Programs that work for long restarts with short waits for each other's threads, unless told how
# to wait, and only where there are threads to wait for.
set -uo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../expect.bash"

export OMP_DISPLAY_ENV=VERBOSE
unset OMP_WAIT_POLICY GOMP_SPINCOUNT
spins() { "$@" 2>&1 > /dev/null | grep -o "GOMP_SPINCOUNT = .*" | tr '\n' ' '; }
train=("$bin/paddle-train" "$folder/missing.yaml" --threads 2)

if [[ -z $(spins "${train[@]}") ]]; then
  echo "the programs were built without OpenMP"
  exit 77
fi
[[ $(spins "${train[@]}") == *"'5000' " ]] || fail "paddle-train: $(spins "${train[@]}")"
[[ $(GOMP_SPINCOUNT=77 spins "${train[@]}") == "GOMP_SPINCOUNT = '77' " ]] || fail "GOMP_SPINCOUNT is left"
[[ $(OMP_WAIT_POLICY=active spins "${train[@]}") != *5000* ]] || fail "OMP_WAIT_POLICY is left"
[[ $(spins "${train[@]}" --threads 1) != *5000* ]] || fail "a single thread spins"
infer=("$bin/paddle-infer" "$folder/missing.yaml" --threads 2)
[[ $(spins "${infer[@]}" --benchmark 3) == *"'5000' " ]] || fail "paddle-infer --benchmark"
[[ $(spins "${infer[@]}") != *5000* ]] || fail "one answer comes without a second start"
GOMP_SPINCOUNT=77 OMP_DISPLAY_ENV=FALSE "${train[@]}" > "$folder/once" 2>&1
once=$?
OMP_DISPLAY_ENV=FALSE "${train[@]}" > "$folder/twice" 2>&1
[[ $? == "$once" ]] && cmp -s "$folder/once" "$folder/twice" || fail "status and output stay"
finish
