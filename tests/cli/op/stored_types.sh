#!/usr/bin/env bash
# Types that are only stored have no arithmetic: operations and models that ask for it are rejected
# with one line, also where the type arises inside.
set -uo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../expect.bash"
for call in asin exp relu isnan floor sign; do
  expect 2 "no kernel" "$bin/paddle" op bench "$call" 'x=float8_e4m3fn[8,3]'
  printf 'inputs: {x: "float32[n, 3]"}\nmodel: |\n  return cast(%s(cast(x, "float8_e4m3fn")), "float32")\n' "$call" > "$folder/m.yaml"
  expect 2 "no kernel" "$infer" "$folder/m.yaml" --benchmark 1 --batch 4
done
finish
