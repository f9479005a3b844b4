#!/usr/bin/env bash
# Networks of graphs learn what the numbers of the nodes alone do not say, on the whole graph and on
# neighbors that are drawn; loading workers and ranks change nothing in what they see.
set -uo pipefail
command -v python3 > /dev/null || { echo "python3 is missing"; exit 77; }
source "$(dirname "${BASH_SOURCE[0]}")/../expect.bash"
configs="$PWD/configs/graph"
cd "$folder" || exit 1

# A metric of the last evaluation of a part.
accuracy() {
  python3 - "$1" "$2" "${3:-accuracy}" <<'P'
import json, sys
lines = [json.loads(line) for line in open(sys.argv[1] + "/metrics.jsonl")]
print(next(l for l in reversed(lines) if l.get("kind") == sys.argv[2])[sys.argv[3]])
P
}
above() { python3 -c "import sys; sys.exit(not $1 > $2 + $3)" || fail "$4: $1, expected $3 above $2"; }

ok "$train" "$configs/gcn_citation.yaml" --output gcn train.epochs=60 train.evaluate_every='60 epochs'
ok "$train" "$configs/gcn_citation.yaml" --output flat params.layers=0 train.epochs=60 train.evaluate_every='60 epochs'
above "$(accuracy gcn test)" "$(accuracy flat test)" 0.1 "gcn_citation"

sage=("$train" "$configs/sage_neighbors.yaml" data.train.drawn.nodes=4000 data.valid.drawn.nodes=4000 train.log_every=1)
ok "${sage[@]}" --output sage
ok "${sage[@]}" --output plain params.layers=0
above "$(accuracy sage valid)" "$(accuracy plain valid)" 0.1 "sage_neighbors"

ok "$train" "$configs/light_gcn_links.yaml" --output links
ok "$train" "$configs/light_gcn_links.yaml" --output vectors params.steps=0
above "$(accuracy links valid first)" "$(accuracy vectors valid first)" 0.05 "light_gcn_links"

# Losses of every step, for any number of loading workers.
losses() { python3 -c '
import json, sys
for line in open(sys.argv[1] + "/metrics.jsonl"):
    l = json.loads(line)
    print(l.get("kind"), l.get("step"), l.get("loss"), l.get("accuracy"))' "$1"; }
for workers in 0 1 4; do
  ok "${sage[@]}" --output "workers-$workers" data.workers=$workers train.epochs=2
  losses "workers-$workers" > "losses-$workers"
done
cmp -s losses-0 losses-1 && cmp -s losses-0 losses-4 || fail "the losses depend on workers"
[[ "$(wc -l < losses-0)" -gt 6 ]] || fail "few losses: $(cat losses-0)"

# Ranks share the blocks of a batch, and mean what one rank means.
for ranks in 1 2; do
  ok "${sage[@]}" --output "ranks-$ranks" data.batch_size=2 data.drop_last=true train.epochs=2 \
    parallel.data=$ranks --simulate $ranks
  losses "ranks-$ranks" > "ranks-losses-$ranks"
done
python3 - <<'P' || fail "ranks train another model"
a, b = (open(f"ranks-losses-{n}").read().split("\n") for n in (1, 2))
assert len(a) == len(b) > 4
for x, y in zip(a, b):
    for u, v in zip(x.split(), y.split()):
        try:
            assert abs(float(u) - float(v)) < 2e-4 * max(1, abs(float(u))), (x, y)
        except ValueError:
            assert u == v, (x, y)
P

# A stored graph instead of a drawn one.
ok "$bin/paddle-graph" draw -o papers --nodes 600 --classes 7
ok "$bin/paddle-graph" build papers/graph.yaml -o papers.graph
sed 's/drawn: {[^}]*}/graph: papers.graph/' "$configs/gcn_citation.yaml" > stored.yaml
ok "$train" stored.yaml --output stored train.epochs=2 train.evaluate_every='2 epochs'
sed 's/label: class/label: klass/' stored.yaml > wrong.yaml
expect 3 "nodes 'paper' have no feature 'klass' (did you mean 'class'?)" "$train" wrong.yaml --output wrong
sed 's/graph: papers.graph/graph: nowhere/' stored.yaml > wrong.yaml
expect 4 "no such graph" "$train" wrong.yaml --output wrong
finish
