#!/usr/bin/env bash
# truncated_gaussian_random: all numbers within the bounds, and their mean that of the truncated normal
# distribution, in both modes.
set -uo pipefail
status=0
for mode in "" --compiled; do
  # shellcheck disable=SC2086
  "$PADDLE_BIN/paddle-op" run truncated_gaussian_random 'shape=[1000]' mean=1 std=2 a=0 b=5 $mode |
    sed 1d | tr -d "[]," | tr ' ' '\n' | grep -E '^-?[0-9.]+(e-?[0-9]+)?$' |
    awk '{ n++; total += $1; if ($1 < 0 || $1 > 5) outside++ }
         # 1 + 2 * (phi(-0.5) - phi(2)) / (Phi(2) - Phi(-0.5)), from the distribution.
         END { off = total / n - 1.8915; if (off < 0) off = -off
               if (n < 1000 || outside || off > 0.1) { print "FAIL: " n " numbers, " outside + 0 " outside, mean off by " off; exit 1 } }' ||
    status=1
done
exit $status
