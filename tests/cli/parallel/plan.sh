#!/usr/bin/env bash
# paddle-tune --parallel: plans of a described cluster, their JSON form, and contradictions that are
# rejected with their place.
set -uo pipefail
command -v python3 > /dev/null || { echo "python3 is missing"; exit 77; }
source "$(dirname "${BASH_SOURCE[0]}")/../expect.bash"
tune="$bin/paddle-tune"
cat > "$folder/model.yaml" <<'Y'
name: llama-70b
transformer: {layers: 80, hidden: 8192, heads: 64, kv_heads: 8, ffn: 28672, gated: true, vocab: 128256, sequence: 8192}
batch: 1024
Y
cat > "$folder/cluster.yaml" <<'Y'
hosts: 128
devices: 8
device: {name: my accelerator, peak: {bfloat16: 989 TFLOP/s}, memory: 80 GiB, bandwidth: 3350 GB/s}
links:
  - {within: host, bandwidth: 450 GB/s, latency: 3 us}
  - {across: hosts, bandwidth: 50 GB/s, latency: 8 us}
Y
[[ "$(run_bounded "$tune" "$folder/model.yaml" --what parallel --cluster "$folder/cluster.yaml" --json)" == 0 ]] \
  || fail "planning"
python3 - "$folder/out" <<'P' || fail "the plans"
import json, sys
o = json.load(open(sys.argv[1]))
assert 0 < len(o["plans"]) <= 10 and o["devices"] == 1024
assert abs(o["parameters"] / 69.5e9 - 1) < 0.01, o["parameters"]
for p in o["plans"]:
    s = p["parallel"]
    assert s["data"] * s["tensor"] * s["pipeline"] * s.get("context", 1) == 1024
    assert s["data"] * p["micro_batch"] * s["micro_batches"] == 1024
    assert set(s) - {"context", "expert"} == {"data", "tensor", "pipeline", "sharding", "sequence", "micro_batches",
                                              "chunks", "schedule", "recompute"}, s
    assert p["fits"] == (p["memory_gib"] <= 0.92 * 80) and p["reason"]
    assert abs(sum(p["seconds"].values()) - p["step_seconds"]) < 1e-6 * p["step_seconds"]
    assert abs(p["tokens_per_second_per_device"] * p["step_seconds"] - 8192) < 1
times = [p["step_seconds"] for p in o["plans"] if p["fits"]]
assert times and times == sorted(times)
P
[[ "$(run_bounded "$tune" "$folder/model.yaml" --parallel --cluster "$folder/cluster.yaml" --fix tensor=8,pipeline=4)" == 0 ]] \
  || fail "--fix"
grep -q "tensor 8, pipeline 4" "$folder/out" || fail "--fix does not hold"
[[ "$(run_bounded "$tune" --check-runs tests/tune/published_runs.csv)" == 0 ]] || fail "--check-runs"
grep -q "^| all | 228 |" "$folder/out" || fail "the table of published runs"

scripts/make-planner-page --check "$bin" || fail "docs/performance/planner.md"

# The shape comes from a run's config, too: 12 blocks of 768 with 12 heads.
[[ "$(run_bounded "$tune" configs/bench/gpt2_124m.yaml --parallel --cluster "$folder/cluster.yaml" --json \
  data.batch_size=1024)" == 0 ]] || fail "planning for a config"
python3 - "$folder/out" <<'P' || fail "the plans of a config"
import json, sys
o = json.load(open(sys.argv[1]))
assert abs(o["parameters"] / (12 * 12 * 768**2 + 768 * 50304) - 1) < 0.01, o["parameters"]
assert all(12 % p["parallel"]["tensor"] == 0 and p["parallel"]["pipeline"] <= 12 for p in o["plans"])
P

edit() { sed "$1" "$folder/cluster.yaml" > "$folder/bad.yaml"; }
rejected() { expect "$1" "$2" "$tune" "$folder/model.yaml" --parallel --cluster "$folder/bad.yaml"; }
edit 's/across: hosts/within: host/'; rejected 3 "bad.yaml:6:5: two links are within: host"
edit '/across: hosts/d'; rejected 3 "a link across: hosts is not stated"
edit 's/hosts: 128/hosts: 1/'; rejected 3 "a link across hosts, but there is one host"
edit 's/hosts, bandwidth: 50 GB.s/hosts, bandwidth: 50 GB/'; rejected 3 "expected a number of B/s, found '50 GB'"
edit 's/, memory: 80 GiB//'; rejected 3 "device.memory is not stated"
edit 's/hosts: 128/hosts: 0/'; rejected 3 "hosts"
expect 2 "--cluster cluster.yaml" "$tune" "$folder/model.yaml" --parallel
expect 3 "planning needs a transformer of repeated blocks" "$tune" configs/quickstart/digits.yaml --parallel \
  --cluster "$folder/cluster.yaml"
expect 2 "cannot be combined with 'threads'" "$tune" "$folder/model.yaml" --what parallel,threads \
  --cluster "$folder/cluster.yaml"
expect 2 "need --parallel" "$tune" configs/quickstart/digits.yaml --cluster "$folder/cluster.yaml"
sed 's/kv_heads: 8/kv_heads: 7/' "$folder/model.yaml" > "$folder/heads.yaml"
expect 3 "kv_heads is 7, which does not divide the 64 heads" "$tune" "$folder/heads.yaml" --parallel \
  --cluster "$folder/cluster.yaml"
echo "id,set" > "$folder/runs.csv"
expect 4 "has no column" "$tune" --check-runs "$folder/runs.csv"
finish
