#!/usr/bin/env bash
# Each optimization has a switch in the config, also several at once as a mapping: a run without it
# has the losses of the run with all of them, within 1e-4, and if the switch disables a pass,
# --dump-ir does not show that pass. A switch that was renamed is still accepted, with a warning.
set -uo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../expect.bash"

# train NAME [OVERRIDE…]: five steps with a validation, and the passes that ran.
train() {
  local name="$1"
  shift
  "$bin/paddle-train" configs/quickstart/digits.yaml "data.train={kind: digits, size: 320}" "data.valid={kind: digits, size: 64}" \
    train.steps=5 train.log_every=1 "$@" --output "$folder/$name" --dump-ir "$folder/$name.ir" > "$folder/out" 2> "$folder/error" ||
    fail "training without $name"
  (cd "$folder/$name.ir" && ls train.*.txt | sed 's/^train\.[0-9]*\.//; s/\.txt$//') > "$folder/$name.passes"
  python3 - "$folder/all/metrics.jsonl" "$folder/$name/metrics.jsonl" << 'PYTHON' || fail "other losses without $name"
import json, sys
wanted, got = ([json.loads(line)["loss"] for line in open(f) if "loss" in line] for f in sys.argv[1:])
assert len(wanted) == len(got) >= 6, (len(wanted), len(got))
for a, b in zip(wanted, got):
    assert abs(a - b) <= 1e-4 * abs(a), (a, b)
PYTHON
}

# gone NAME PASS…: these ran in the first run and not in this one.
gone() {
  local name="$1" pass
  shift
  for pass in "$@"; do
    grep -qx "$pass" "$folder/all.passes" || fail "$pass never runs"
    ! grep -qx "$pass" "$folder/$name.passes" || fail "$pass runs without $name"
  done
}

train all
train fusion compile.fusion=false
gone fusion fuse_elementwise fuse_epilogues
train layout compile.layout=false
gone layout assign_layouts decompose_for_fusion
train rewrites compile.rewrites=false
gone rewrites rewrite
for switch in batch_tiling codegen; do train "$switch" "compile.$switch=false"; done
train mapping "compile={fusion: false, layout: false, rewrites: false, batch_tiling: false, codegen: false}"
gone mapping fuse_elementwise assign_layouts rewrite
train renamed compile.slices=false
grep -q "'slices' is now called 'batch_tiling'" "$folder/error" || fail "no warning for compile.slices"
expect 3 "unknown key 'layouts' in 'compile' (did you mean 'layout'?)" "$bin/paddle-train" configs/quickstart/digits.yaml \
  compile.layouts=false --output "$folder/typo"
finish
