#!/usr/bin/env bash
# paddle-tune: the config that it writes trains, its claims agree with the report, a search resumes,
# and bad input is rejected. What is faster depends on the machine, so no gain is expected.
set -uo pipefail
command -v python3 > /dev/null || { echo "python3 is missing"; exit 77; }
source "$(dirname "${BASH_SOURCE[0]}")/../expect.bash"
tune="$bin/paddle-tune"
small=("data.train={kind: digits, size: 640, seed: 1}" "data.valid={kind: digits, size: 64, seed: 2}")

ok "$tune" configs/quickstart/digits.yaml -o "$folder/run" --time-limit 40 --what threads,loader "${small[@]}"
python3 - "$folder/run" <<'P' || fail "the report of a run"
import json, re, sys
folder = sys.argv[1]
o = json.load(open(folder + "/report.json"))
assert o["kind"] == "training" and o["trials"], o
patch = open(folder + "/tuned.yaml").read()
for t in o["trials"]:
    assert t["dimension"] in ("threads", "loader") and t["low"] <= t["gain"] <= t["high"], t
    assert t["accepted"] or t["why"], t
    if t["accepted"]:
        assert t["low"] > 0, t
for c in o["changes"]:
    key = c["key"].split(".")[-1]
    line = re.search(rf"^  {key}: {re.escape(c['value'])}  # (.*)$", patch, re.M)
    assert line and f"{100 * c['gain']:+.1f}%" in line.group(1), (c, patch)
    assert ("same bits" in line.group(1)) == c["same_bits"]
changed = {k for k in o["best"] if o["best"][k] != o["start"][k]}
assert changed == {c["key"] for c in o["changes"]}
assert o["total"]["low"] > 0 or not changed
P
ok "$train" "$folder/run/tuned.yaml" --output "$folder/trained" train.epochs=0 train.steps=3 "${small[@]}"
grep -q "^name: \"digits\"" "$folder/trained/config.yaml" || grep -q "^name: digits" "$folder/trained/config.yaml" \
  || fail "the tuned config has another name"

# train.threads holds unless --threads is given.
for threads in "" 2; do
  ok "$train" configs/quickstart/digits.yaml --output "$folder/threads" --overwrite train.epochs=0 train.steps=1 \
    train.threads=1 ${threads:+--threads $threads} "${small[@]}"
  grep -q "; ${threads:-1} threads of" "$folder/out" || fail "train.threads with --threads '$threads'"
done

# A search that was stopped is continued without repeating its trials.
cp "$folder/run/trials.json" "$folder/before.json"
ok "$tune" configs/quickstart/digits.yaml -o "$folder/run" --time-limit 12 --what threads,loader --resume "${small[@]}"
python3 - "$folder" <<'P' || fail "--resume"
import json, sys
before = json.load(open(sys.argv[1] + "/before.json"))["trials"]
before = [t for t in before if t["verdict"] != "stopped"]
after = json.load(open(sys.argv[1] + "/run/trials.json"))["trials"]
assert before and after[: len(before)] == before, "trials were repeated"
P

# A short search tries every kind, and one that continues keeps the kernels that were timed.
ok "$tune" configs/quickstart/digits.yaml -o "$folder/short" --time-limit 30 \
  --what threads,precision,batch,kernels,codegen,loader "${small[@]}"
cp "$folder/short/trials.json" "$folder/before.json"
ok "$tune" configs/quickstart/digits.yaml -o "$folder/short" --time-limit 10 --resume \
  --what threads,precision,batch,kernels,codegen,loader "${small[@]}"
python3 - "$folder" <<'P' || fail "a short search"
import json, sys
before = json.load(open(sys.argv[1] + "/before.json"))
tried = {t["dimension"] for t in before["trials"]}
assert tried >= {"threads", "precision", "batch", "kernels", "loader"}, tried  # codegen may find nothing
after = json.load(open(sys.argv[1] + "/short/trials.json"))["state"]
for kind in ("kernels", "searched"):
    old, new = before["state"][kind]["results"], after[kind]["results"]
    assert old.items() <= new.items(), (kind, old, new)
assert before["state"]["kernels"]["results"]
P
ok "$tune" models/digits_cnn.yaml -o "$folder/model" --time-limit 8 --what threads,kernels --json
python3 -c "import json, sys; o = json.load(open(sys.argv[1])); assert o['kind'] == 'inference' and o['trials']" \
  "$folder/out" || fail "the report of a model"

# Another precision of a model: taken only within the tolerance, and paddle-infer computes in it.
ok "$tune" models/digits_cnn.yaml -o "$folder/half" --time-limit 15 --what precision --batch 16
python3 - "$folder" <<'P' || fail "the precision of a model"
import json, sys
o = json.load(open(sys.argv[1] + "/half/report.json"))
assert {t["value"] for t in o["trials"]} <= {"bfloat16", "float16"} and o["trials"], o
P
ok "$tune" models/digits_cnn.yaml -o "$folder/exact" --time-limit 15 --what precision --batch 16 --loss-tolerance 0
python3 -c "import json, sys; assert not json.load(open(sys.argv[1]))['changes']" "$folder/exact/report.json" \
  || fail "a precision that moves the outputs is taken without tolerance"
python3 -c "import numpy, sys; numpy.savez(sys.argv[1], image=numpy.random.default_rng(1).random((8, 1, 28, 28), numpy.float32))" \
  "$folder/images.npz" 2> /dev/null && for precision in float32 bfloat16 float16; do
  ok "$infer" models/digits_cnn.yaml --input "$folder/images.npz" --output "$folder/$precision.npz" --precision $precision
done
[[ ! -e "$folder/images.npz" ]] || python3 - "$folder" <<'P' || fail "--precision"
import sys, numpy
exact = numpy.load(sys.argv[1] + "/float32.npz")
for precision in ("bfloat16", "float16"):
    other = numpy.load(f"{sys.argv[1]}/{precision}.npz")
    for name in exact.files:
        x, y = exact[name], other[name]
        assert y.dtype == x.dtype == numpy.float32 and (x != y).any(), (precision, name)
        assert numpy.linalg.norm(x - y) < 0.02 * numpy.linalg.norm(x), (precision, name)
P
ok "$infer" models/digits_cnn.yaml --benchmark 2 --precision bfloat16
grep -q '"dtype":"bfloat16"' "$folder/out" || fail "--benchmark --precision: $(cat "$folder/out")"
expect 2 "--precision" "$infer" models/digits_cnn.yaml --benchmark 2 --precision int8

# The settings of a model, each with its gain; paddle-infer takes them where options do not say otherwise.
python3 - "$folder/model" "$folder/half" <<'P' || fail "tuned.yaml of a model"
import json, re, sys
for folder in sys.argv[1:]:
    o = json.load(open(folder + "/report.json"))
    text = open(folder + "/tuned.yaml").read()
    stated = dict(re.findall(r"^([a-z_]+): (\S+)  # ", text, re.M))
    assert stated.pop("subject") == "model", text
    changes = {c["key"].removeprefix("no-").replace("-", "_"): c for c in o["changes"]}
    assert stated.keys() == changes.keys(), (stated, changes)
    for key, c in changes.items():
        line = re.search(rf"^{key}: .*$", text, re.M).group(0)
        assert f"{100 * c['gain']:+.1f}% ({100 * c['low']:.1f} to {100 * c['high']:.1f})" in line, (line, c)
P
ok "$infer" models/digits_cnn.yaml --benchmark 2 --tuned "$folder/half/tuned.yaml"
printf 'subject: model\nthreads: 1\nbatch: 3\nprecision: bfloat16\ncodegen: false\n' > "$folder/settings.yaml"
benchmark() { ok "$infer" models/digits_cnn.yaml --benchmark 2 --tuned "$folder/settings.yaml" "${@:2}"; grep -q "$1" "$folder/out" || fail "--tuned ${*:2}: $(cat "$folder/out")"; }
benchmark '"threads":1\b'
benchmark '"threads":2\b' --threads 2
benchmark '"dtype":"bfloat16"' --threads 2
benchmark '"dtype":"float32"' --precision float32
flops() { ok "$infer" models/digits_cnn.yaml --benchmark 1 "$@"; grep -o '"flops":[^,}]*' "$folder/out"; }
printf 'subject: model\nbatch: 3\n' > "$folder/settings.yaml"
[[ "$(flops --tuned "$folder/settings.yaml")" == "$(flops --batch 3)" ]] || fail "the batch of --tuned"
[[ "$(flops --tuned "$folder/settings.yaml" --batch 5)" == "$(flops --batch 5)" ]] || fail "--batch with --tuned"
[[ "$(flops --batch 5)" != "$(flops --batch 3)" ]] || fail "batches have the same operations"
printf 'subject: model\nthread: 1\n' > "$folder/bad.yaml"
expect 3 "bad.yaml:2:1: unknown key 'thread' (did you mean 'threads'?)" "$infer" models/digits_cnn.yaml --benchmark 2 --tuned "$folder/bad.yaml"
printf 'subject: model\nbatch: large\n' > "$folder/bad.yaml"
expect 3 "bad.yaml:2:8: 'batch': expected an integer" "$infer" models/digits_cnn.yaml --benchmark 2 --tuned "$folder/bad.yaml"
expect 3 "this is the config of a training run" "$infer" models/digits_cnn.yaml --benchmark 2 --tuned "$folder/run/tuned.yaml"
expect 2 "nowhere.yaml" "$infer" models/digits_cnn.yaml --benchmark 2 --tuned nowhere.yaml

# Schedules are kept in the cache, results keep their bits, and a config only mentions them.
export PADDLE_CACHE_DIR="$folder/cache"
ok "$tune" configs/quickstart/digits.yaml -o "$folder/schedules" --time-limit 40 --what codegen "${small[@]}"
python3 - "$folder" <<'P' || fail "schedules"
import glob, json, re, sys
folder = sys.argv[1]
o = json.load(open(folder + "/schedules/report.json"))
assert {t["key"] for t in o["trials"]} <= {"codegen.schedules"}, o["trials"]
tables = glob.glob(folder + "/cache/codegen/*.schedules")
patch = open(folder + "/schedules/tuned.yaml").read()
assert "codegen" not in re.sub("^#.*", "", patch, flags=re.M), patch
if o["changes"]:
    assert o["same_bits"] and "same bits; kept in the cache" in patch, patch
    lines = open(tables[0]).read().split("\n")
    assert lines[0] == "paddle-schedules 1" and all(re.fullmatch(r"[0-9a-f]{16} unroll=\d grain=\d+ tile=\d+", l) for l in lines[2:-1]), lines
else:
    assert not tables, tables
P
unset PADDLE_CACHE_DIR

# Recomputation is given up where memory allows it.
ok "$tune" configs/quickstart/digits.yaml -o "$folder/recompute" --time-limit 30 --what recompute \
  parallel.recompute=full "${small[@]}"
python3 - "$folder/recompute" <<'P' || fail "recomputation"
import json, sys
o = json.load(open(sys.argv[1] + "/report.json"))
t = o["trials"][0]
assert (t["key"], t["before"], t["value"]) == ("parallel.recompute", "full", "none"), t
for c in o["changes"]:
    assert c["same_bits"], c
P
ok "$train" "$folder/recompute/tuned.yaml" --output "$folder/recomputed" train.epochs=0 train.steps=1 "${small[@]}"

# A language model: the command that is printed runs.
make_llama
ok "$tune" "$model" -o "$folder/words" --time-limit 20 --what threads,chunk,streams,kv
python3 - "$folder" <<'P' || fail "a language model"
import json, sys
o = json.load(open(sys.argv[1] + "/words/report.json"))
assert o["kind"] == "language model" and o["start"]["kv"] == "f32", o
assert o["trials"] and {t["dimension"] for t in o["trials"]} <= {"threads", "chunk", "streams", "kv"}
for t in o["trials"]:
    if t["accepted"] and t["dimension"] != "kv":
        assert t["same_bits"], t
P
command="$(grep "^paddle-infer" "$folder/out" | head -1)"
[[ "$command" == "paddle-infer $model --tuned $folder/words/tuned.yaml" ]] || fail "$command"
python3 - "$folder/words" <<'P' || fail "tuned.yaml of a language model"
import json, re, sys
o = json.load(open(sys.argv[1] + "/report.json"))
text = open(sys.argv[1] + "/tuned.yaml").read()
stated = dict(re.findall(r"^([a-z_]+): (\S+)  # ", text, re.M))
assert stated.pop("subject") == "language_model", text
assert stated == {c["key"]: c["value"] for c in o["changes"]}, (text, o["changes"])
P
[[ "$(run_bounded bash -c "$bin/$command --prompt 123 --length 3")" == 0 ]] || fail "$command"
ok "$infer" "$model" --prompt 1234567 --length 3 --temperature 0
cp "$folder/out" "$folder/whole"
ok "$infer" "$model" --prompt 1234567 --length 3 --temperature 0 --chunk 2
cmp -s "$folder/out" "$folder/whole" || fail "--chunk changes a text"
printf 'subject: language_model\nthreads: 1\nchunk: 2\nstreams: 3\nkv: int8\n' > "$folder/settings.yaml"
ok "$infer" "$model" --prompt 1234567 --length 3 --temperature 0 --kv int8
cp "$folder/out" "$folder/int8"
ok "$infer" "$model" --prompt 1234567 --length 3 --temperature 0 --tuned "$folder/settings.yaml"
cmp -s "$folder/out" "$folder/int8" || fail "--tuned and --kv int8 differ"
speed=("$infer" "$model" --benchmark 1 --prefill 8 --decode 4 --tuned "$folder/settings.yaml")
ok "${speed[@]}"
grep -q '"streams":\[{"streams":3,.*"threads":1\b' "$folder/out" || fail "--tuned --benchmark: $(cat "$folder/out")"
ok "${speed[@]}" --streams 2 --threads 2
grep -q '"streams":\[{"streams":2,.*"threads":2\b' "$folder/out" || fail "options with --tuned: $(cat "$folder/out")"
expect 3 "settings.yaml:1:10: these are settings of a language model, but models/digits_cnn.yaml is not" \
  "$infer" models/digits_cnn.yaml --benchmark 2 --tuned "$folder/settings.yaml"
expect 3 "these are settings of a model, but $model is a language model" "$infer" "$model" --prompt 1 --length 1 --tuned "$folder/half/tuned.yaml"
expect 2 "--tuned is for texts and logits, not for --embed" "$infer" "$model" --embed - --tuned "$folder/settings.yaml"
expect 2 "nowhere.yaml" "$tune" "$model" -o "$folder/x" --family nowhere.yaml
expect 2 "--family is for Hugging Face folders and GGUF files" "$tune" models/vision/lenet.yaml -o "$folder/x" --family x.yaml
ok "$tune" "$model" -o "$folder/family" --time-limit 12 --what chunk --family models/llm/llama.yaml
grep -q "^paddle-infer $model --family models/llm/llama.yaml" "$folder/out" || fail "--family: $(cat "$folder/out")"
expect 2 "--precision is for other models" "$infer" "$model" --prompt 1 --length 1 --precision bfloat16
expect 2 "cannot be tuned for language model" "$tune" "$model" -o "$folder/x" --what loader
expect 2 "are for other models" "$tune" "$model" -o "$folder/x" --batch 4

# A table of kernels from another machine is ignored, and that is said.
printf 'paddle-kernels 1\nAnother processor, avx2, 4 threads\n' > "$folder/kernels.txt"
[[ "$(run_bounded "$train" configs/quickstart/digits.yaml --output "$folder/foreign" train.epochs=0 \
  train.steps=1 "compile.kernels=$folder/kernels.txt" "${small[@]}")" == 0 ]] || fail "a foreign table"
grep -q "warning: compile.kernels: .*the table is ignored" "$folder/error" || fail "a foreign table is not said"
[[ "$(run_bounded "$infer" models/digits_cnn.yaml --benchmark 2 --kernels "$folder/none.txt")" == 0 ]] || fail "no table"
grep -q "warning: --kernels: .*the table is ignored" "$folder/error" || fail "a missing table is not said"

ok "$tune" configs/quickstart/digits.yaml -o "$folder/dry" --dry-run --what loader,batch "${small[@]}"
[[ ! -e "$folder/dry" ]] || fail "--dry-run writes"
grep -q "  batch: data.batch_size=" "$folder/out" || fail "--dry-run: $(cat "$folder/out")"

expect 2 "one config or model is expected" "$tune"
expect 2 "no such file" "$tune" nowhere -o "$folder/none"
[[ ! -e "$folder/none" ]] || fail "a rejected call left a folder"
expect 2 "cannot be tuned for training (did you mean 'threads'?)" "$tune" configs/quickstart/digits.yaml \
  -o "$folder/x" --what thread
expect 2 "no time is left after warm-up" "$tune" configs/quickstart/digits.yaml -o "$folder/x" \
  --time-limit 0 "${small[@]}"
expect 2 "is of another arguments" "$tune" configs/quickstart/digits.yaml -o "$folder/run" --resume
expect 3 "unknown key" "$tune" configs/quickstart/digits.yaml -o "$folder/x" optimizer.speed=1
touch "$folder/file"
expect 6 "$folder/file" "$tune" configs/quickstart/digits.yaml -o "$folder/file/results"

# An interrupted search keeps what it has.
"$tune" configs/quickstart/digits.yaml -o "$folder/cut" --time-limit 600 --what loader,batch "${small[@]}" \
  > /dev/null 2> "$folder/error" &
pid=$!
sleep 4
kill -INT "$pid"
wait "$pid"
[[ $? == 130 ]] || fail "the exit code of an interrupted search"
grep -q "resume continues the search" "$folder/error" || fail "an interrupted search does not say how to continue"
[[ -s "$folder/cut/report.json" && -s "$folder/cut/tuned.yaml" ]] || fail "an interrupted search writes nothing"
finish
