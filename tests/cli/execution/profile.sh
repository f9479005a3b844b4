#!/usr/bin/env bash
# paddle-profile: the files agree with each other and with the step's wall time, operations are
# attributed to layers and phases, two reports are compared, and bad input is rejected.
set -uo pipefail
command -v python3 > /dev/null || { echo "python3 is missing"; exit 77; }
source "$(dirname "${BASH_SOURCE[0]}")/../expect.bash"
profile="$bin/paddle-profile"

ok "$profile" configs/quickstart/digits.yaml -o "$folder/train" --steps 3:13
grep -q "operations .*% of the wall time of steps" "$folder/out" || fail "the summary"
ok "$profile" configs/quickstart/digits.yaml -o "$folder/again" --steps 3:13 --json \
  data.batch_size=128 data.workers=0
cp "$folder/out" "$folder/line.json"
ok "$profile" configs/quickstart/digits.yaml -o "$folder/ranks" --steps 2:6 parallel.data=2 --simulate 2
grep -qE "^ +1 .* all_reduce$" "$folder/out" || fail "the exchanges of rank 1"
ok "$bin/paddle-launch" -n 2 "$profile" configs/quickstart/digits.yaml -o "$folder/real" --steps 2:6 parallel.data=2
python3 - "$folder" <<'P' || fail "the exchanges"
import json, sys
reports = [json.load(open(f"{sys.argv[1]}/{name}/profile.json")) for name in ("ranks", "real")]
for report in reports:
    assert report["ranks"] == 2
    sums = [c for c in report["communication"] if c["operation"] == "all_reduce"]
    assert [c["rank"] for c in sums] == [0, 1], sums
    assert sums[0]["sent_bytes"] == sums[1]["sent_bytes"] > 4 * 20000 and sums[0]["ms"] > 0, sums
assert reports[0]["communication"][0]["sent_bytes"] == reports[1]["communication"][0]["sent_bytes"]
# The timelines of both ranks are one, and the shares of a step add up.
for name, report in zip(("ranks", "real"), reports):
    trace = json.load(open(f"{sys.argv[1]}/{name}/trace.json"))["traceEvents"]
    steps = {}
    for e in trace:
        if e["name"] == "step":
            steps.setdefault(e["pid"], []).append((e["ts"], e["ts"] + e["dur"]))
    assert sorted(steps) == [1, 2], steps.keys()
    assert len(steps[1]) == len(steps[2]) >= 4
    # One clock: a step of one rank overlaps the same step of the other, since they sum gradients.
    for a, b in zip(sorted(steps[1])[-4:], sorted(steps[2])[-4:]):
        assert max(a[0], b[0]) < min(a[1], b[1]), (name, a, b)
    assert {e["pid"] for e in trace if e["name"] == "make batch"} == {1, 2}
    sums = [e for e in trace if e.get("cat") == "exchange" and e["name"] == "all_reduce"]
    assert {e["pid"] for e in sums} == {1, 2}
    names = {e["args"]["name"] for e in trace if e["name"] == "process_name"}
    assert names == {"rank 0", "rank 1"}, names
    shares = report["rank_shares"]
    assert [s["rank"] for s in shares] == [0, 1]
    for s in shares:
        parts = sum(s[k] for k in ("computing_ms", "waiting_for_data_ms", "waiting_for_ranks_ms", "exchanging_ms", "other_ms"))
        assert abs(parts - s["step_ms"]) < 1e-6 * s["step_ms"] and min(s.values()) >= 0, s
        assert s["exchanging_ms"] > 0 and s["computing_ms"] > 0, s
P
ok "$profile" configs/quickstart/digits.yaml -o "$folder/pipeline" --steps 2:4 parallel.pipeline=2 \
  parallel.micro_batches=4 --simulate 2
python3 -c "import json, sys; a, b = json.load(open(sys.argv[1]))['rank_shares']; assert a['waiting_for_ranks_ms'] + b['waiting_for_ranks_ms'] > 0" \
  "$folder/pipeline/profile.json" || fail "waits within a pipeline"
expect 2 "ranks share training steps" "$profile" models/digits_cnn.yaml --simulate 2
ok "$profile" models/digits_cnn.yaml --batch 8 -o "$folder/model" --steps 2:12
ok "$bin/paddle-export" models/digits_cnn.yaml -o "$folder/digits.onnx"
ok "$profile" "$folder/digits.onnx" --batch 4 -o "$folder/onnx" --steps 2:12
python3 - "$folder" <<'P' || fail "the reports"
import csv, html.parser, json, re, sys
folder = sys.argv[1]

class Page(html.parser.HTMLParser):
    void = {"meta"}
    def __init__(self):
        super().__init__()
        self.open, self.seen = [], set()
    def handle_starttag(self, tag, attributes):
        self.seen.add(tag)
        assert tag not in ("script", "link", "img", "iframe"), tag
        assert not any(key in ("src", "href") for key, _ in attributes), attributes
        if tag not in self.void:
            self.open.append(tag)
    def handle_startendtag(self, tag, attributes):
        self.seen.add(tag)
    def handle_endtag(self, tag):
        assert self.open and self.open[-1] == tag, (tag, self.open)
        self.open.pop()

for name, training in (("train", True), ("again", True), ("model", False), ("onnx", False)):
    path = f"{folder}/{name}/"
    report = json.load(open(path + "profile.json"))
    rows = list(csv.DictReader(open(path + "operations.csv")))
    assert report["kind"] == ("training" if training else "inference"), report["kind"]
    assert report["steps"] == 10 == len(report["timed_steps"]), report["steps"]
    # The rows are the whole of the step.
    wall = sum(s["ms"] for s in report["timed_steps"]) / 10
    total = sum(float(r["ms"]) for r in rows)
    assert 0.9 * wall < total <= wall * 1.0001, (name, total, wall)
    assert abs(total / wall - report["operation_share"]) < 1e-3
    assert abs(sum(float(r["share"]) for r in rows) - 1) < 1e-3
    assert report["overhead_share"] < 0.05, report["overhead_share"]
    for r in rows:
        seconds = float(r["ms"]) / 1e3
        assert abs(float(r["flops"]) / seconds / 1e9 - float(r["gflops_per_second"])) <= 1e-3 * float(r["gflops_per_second"]) + 1e-9
    assert "" not in {r["implementation"] for r in rows}
    # FLOPs of the first convolution: 2 * 28 * 28 * 16 * 25 for each sample.
    batch = {"train": 64, "again": 128, "model": 8, "onnx": 4}[name]
    first = [r for r in rows if r["operation"].startswith("conv2d") and r["phase"] == "forward"]
    assert any(abs(float(r["flops"]) - batch * 2 * 28 * 28 * 16 * 25) < batch * 28 * 28 * 16 * 4 for r in first), first
    phases = {r["phase"] for r in rows}
    assert phases == ({"forward", "backward", "update"} if training else {"forward"}), phases
    assert any(r["layer"].endswith("conv2d") or "conv" in r["layer"] for r in rows), {r["layer"] for r in rows}
    memory = list(csv.DictReader(open(path + "memory.csv")))
    assert max(int(r["live_bytes"]) for r in memory) == report["memory"]["peak_bytes"] > 0
    assert report["memory"]["peak_bytes"] <= report["memory"]["arena_bytes"]
    trace = json.load(open(path + "trace.json"))["traceEvents"]
    spans = [e for e in trace if e["ph"] == "X"]
    assert all(e["dur"] >= 0 and e["ts"] >= 0 for e in spans)
    assert sum(e["name"] == "step" for e in spans) >= 10
    if training:
        assert {"make batch", "wait for data"} <= {e["name"] for e in spans}
        made = {e["tid"] for e in spans if e["name"] == "make batch"}
        steps = {e["tid"] for e in spans if e["name"] == "step"}
        assert (made == steps) == (name == "again"), (made, steps)
        assert report["data"]["batches"] >= 5 and report["data"]["batch_ms"] > 0
    page = Page()
    text = open(path + "report.html").read()
    page.feed(text)
    assert not page.open and "svg" in page.seen and "table" in page.seen, page.open
    assert not re.search(r"https?://|@import|url\(", text)
gains = [s["gain"] for s in json.load(open(folder + "/train/profile.json"))["suggestions"]]
assert gains == sorted(gains, reverse=True)
assert json.load(open(folder + "/line.json")) == json.load(open(folder + "/again/profile.json"))
layers = {(r["layer"], r["phase"]) for r in csv.DictReader(open(folder + "/train/operations.csv"))}
for layer in ("conv2d", "conv2d_2", "linear", "linear_2"):
    assert {(layer, "forward"), (layer, "backward")} <= layers, (layer, layers)
places = {r["place"] for r in csv.DictReader(open(folder + "/train/operations.csv"))}
assert any(re.search(r"digits_cnn\.yaml:\d+:\d+$", p) for p in places), places
P

# Ranges come before the layers, in models that the step calls, too.
cat > "$folder/ranges.yaml" <<Y
extends: $PWD/configs/quickstart/digits.yaml
loss: null
metrics: null
step: |
  with scope("network"):
    logits = model(image)
  with scope("criterion"):
    loss = cross_entropy(logits, label)
  update(loss)
Y
ok "$profile" "$folder/ranges.yaml" -o "$folder/ranges" --steps 1:3
python3 - "$folder" <<'P' || fail "ranges"
import csv, sys
layers = {(r["layer"], r["phase"]) for r in csv.DictReader(open(sys.argv[1] + "/ranges/operations.csv"))}
for wanted in (("network.conv2d_2", "forward"), ("network.conv2d_2", "backward"), ("criterion", "forward")):
    assert wanted in layers, (wanted, layers)
P

# A run folder is profiled as its training; a comparison finds what grew with the batch.
ok "$train" configs/quickstart/digits.yaml --output "$folder/run" train.epochs=0 train.steps=3 \
  "data.train={kind: digits, size: 600, seed: 1}" "data.valid={kind: digits, size: 100, seed: 2}"
ok "$profile" "$folder/run" -o "$folder/of_run" --steps 1:3
ok "$profile" "$folder/run/model" -o "$folder/of_model" --steps 1:3
ok "$profile" diff "$folder/train" "$folder/again"
grep -q "conv2d" "$folder/out" || fail "diff names no operation"
ok "$profile" diff "$folder/train" "$folder/again" --json
python3 - "$folder" <<'P' || fail "the comparison"
import json, sys
folder = sys.argv[1]
o = json.load(open(folder + "/out"))
def total(name):
    return sum(r["ms"] for r in json.load(open(f"{folder}/{name}/profile.json"))["operations"])
assert abs(sum(r["before_ms"] for r in o["operations"]) - total("train")) < 1e-6 * total("train") + 1e-6
assert abs(sum(r["after_ms"] for r in o["layers"]) - total("again")) < 1e-6 * total("again") + 1e-6
sizes = [abs(r["after_ms"] - r["before_ms"]) for r in o["operations"]]
assert sizes == sorted(sizes, reverse=True)
assert json.load(open(folder + "/of_run/profile.json"))["kind"] == "training"
assert json.load(open(folder + "/of_model/profile.json"))["kind"] == "inference"
P

expect 2 "no config or model is given" "$profile"
expect 2 "no such file" "$profile" nowhere -o "$folder/none"
[[ ! -e "$folder/none" ]] || fail "a rejected call left a folder"
expect 2 "expected A:B with A < B" "$profile" configs/quickstart/digits.yaml -o "$folder/x" --steps 5:5
expect 2 "--weights, --prompt and --generate are for models" "$profile" configs/quickstart/digits.yaml \
  -o "$folder/x" --dim batch=3
expect 2 "holds no profile" "$profile" diff "$folder" "$folder/train"
expect 3 "unknown key" "$profile" configs/quickstart/digits.yaml -o "$folder/x" optimizer.speed=1
expect 4 "" "$profile" configs/quickstart/digits.yaml -o "$folder/x" \
  "data.train={kind: npz, path: $folder/none.npz}"
echo "{" > "$folder/train/profile.json"
expect 4 "is not a profile" "$profile" diff "$folder/train" "$folder/again"
touch "$folder/file"
expect 6 "$folder/file" "$profile" configs/quickstart/digits.yaml -o "$folder/file/report"

# Memory by kind, and devices: what a device cannot do runs on the host, and is counted there.
for what in "configs/quickstart/digits.yaml" "models/digits_cnn.yaml --batch 4"; do
  ok "$profile" $what -o "$folder/mirror" --steps 1:4 --device mirror
  grep -qE "  mirror(:0)?$" "$folder/out" || fail "the table of devices of $what"
  python3 - "$folder/mirror" "$what" <<'P' || fail "memory and devices of $what"
import csv, json, sys
o = json.load(open(sys.argv[1] + "/profile.json"))
rows = list(csv.DictReader(open(sys.argv[1] + "/operations.csv")))
kinds = {k["kind"]: k for k in o["memory"]["kinds"]}
training = "configs" in sys.argv[2]
assert ("optimizer states" in kinds) == ("values kept for the backward pass" in kinds) == training, kinds
if training:
    assert kinds["optimizer states"]["peak_bytes"] >= 2 * kinds["parameters"]["peak_bytes"] > 0, kinds
held = sum(k["peak_bytes"] for name, k in kinds.items() if not name.startswith("values"))
values = sum(k["peak_bytes"] for name, k in kinds.items() if name.startswith("values"))
assert held == o["memory"]["input_bytes"] + o["memory"]["constant_bytes"], kinds
assert values == o["memory"]["peak_bytes"], kinds
assert all(k["peak_bytes"] <= k["most_bytes"] for k in kinds.values())
assert o["memory"]["resident_bytes"] > 1 << 20
devices = {d["device"]: d for d in o["devices"]}
main = next(name for name in devices if name.startswith("mirror"))
assert abs(sum(d["ms"] for d in devices.values()) - sum(r["ms"] for r in o["operations"])) < 1e-6
assert devices[main]["copying_ms"] > 0 and devices[main]["memory_bytes"] > 0, devices
for r in rows:
    assert r["device"] == ("cpu" if r["implementation"].startswith("host:") else main), r
P
done
ok "$profile" configs/quickstart/digits.yaml -o "$folder/ranks-mirror" --device mirror --steps 1:3 --simulate 2 parallel.data=2

# A language model: the prompt and the generated tokens are the samples of a step.
ok "$profile" tests/llm/data/llama -o "$folder/language-mirror" --steps 1:2 --prompt 24 --generate 3 --device mirror
ok "$profile" tests/llm/data/llama -o "$folder/language" --steps 1:4 --prompt 24 --generate 3 --json
[[ "$(wc -l < "$folder/out")" == 1 ]] || fail "--json prints more than one line"
python3 - "$folder" <<'P' || fail "the profile of a language model"
import json, sys
o = json.loads(open(sys.argv[1] + "/out").read())
assert o["steps"] == 3 and o["kind"] == "inference", o
assert any("attention" in row["operation"] for row in o["operations"]), o["operations"]
P
expect 2 "are for language models" "$profile" models/digits_cnn.yaml -o "$folder/x" --prompt 3
expect 2 "more than the context" "$profile" tests/llm/data/llama -o "$folder/x" --prompt 100000
expect 2 "has --prompt and --generate in place of" "$profile" tests/llm/data/llama -o "$folder/x" --batch 2
ok "$profile" configs/quickstart/digits.yaml -o "$folder/dry" --dry-run
[[ ! -e "$folder/dry" ]] || fail "--dry-run writes"
grep -q "would measure 20 steps" "$folder/out" || fail "--dry-run: $(cat "$folder/out")"

# An interrupted measurement reports the steps that it has.
"$profile" configs/quickstart/digits.yaml -o "$folder/cut" --steps 1:100000 > /dev/null 2> "$folder/error" &
pid=$!
sleep 3
kill -INT "$pid"
wait "$pid"
[[ $? == 130 ]] || fail "the exit code of an interrupted measurement"
python3 -c "import json, sys; o = json.load(open(sys.argv[1])); assert 0 < o['steps'] < 99999, o['steps']" \
  "$folder/cut/profile.json" || fail "the report of an interrupted measurement"

# Time by module and the memory of the peak.
[[ "$(run_bounded "$bin/paddle-profile" configs/quickstart/digits.yaml --steps 1:3 -o "$folder/views")" == 0 ]] || fail "views"
grep -q "backward ms  module" "$folder/out" || fail "no table by module: $(cat "$folder/out")"
grep -q "100.0% .*all operations" "$folder/out" || fail "the modules do not add up"
grep -q "share  value at the peak" "$folder/out" || fail "no table of memory"
[[ "$(run_bounded "$bin/paddle-profile" configs/quickstart/digits.yaml --steps 1:3 --depth 0 -o "$folder/views")" == 0 ]] || fail "--depth 0"
! grep -q "backward ms  module" "$folder/out" || fail "--depth 0 prints modules"
expect 2 "--depth" "$bin/paddle-profile" configs/quickstart/digits.yaml --depth -1
finish
