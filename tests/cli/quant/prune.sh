#!/usr/bin/env bash
# paddle-quant prune and merge: zeros in the 2:4 pattern that training keeps, and adapters added to
# weights as NumPy adds them.
set -uo pipefail
command -v python3 > /dev/null || { echo "python3 is missing"; exit 77; }
source "$(dirname "${BASH_SOURCE[0]}")/../expect.bash"
quant="$bin/paddle-quant"

# Reading and writing of safetensors files by hand.
cat > "$folder/tensors.py" <<'P'
import json, struct
def load(path):
    data = open(path, "rb").read()
    n = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + n])
    out = {}
    for name, e in header.items():
        if name == "__metadata__" or e["dtype"] != "F32": continue
        b, end = e["data_offsets"]
        raw = data[8 + n + b:8 + n + end]
        out[name] = (e["shape"], list(struct.unpack(f"<{len(raw) // 4}f", raw)))
    return out
def save(path, tensors):
    header, body = {}, b""
    for name, (shape, values) in sorted(tensors.items()):
        raw = struct.pack(f"<{len(values)}f", *values)
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(body), len(body) + len(raw)]}
        body += raw
    text = json.dumps(header).encode()
    open(path, "wb").write(struct.pack("<Q", len(text)) + text + body)
P

data=("data.train={kind: digits, size: 4000, seed: 1, range: [0, 3000]}"
      "data.valid={kind: digits, size: 4000, seed: 1, range: [3000, 4000]}")
ok "$train" configs/quickstart/digits.yaml --output "$folder/run" train.epochs=1 "${data[@]}"
for rule in magnitude wanda; do
  ok "$quant" prune "$folder/run" -o "$folder/$rule" --by $rule --json
  cp "$folder/out" "$folder/$rule.json"
done
ok "$quant" prune "$folder/run" -o "$folder/pruned.onnx" --match "linear*" --no-check
# Training continues with the zeros.
ok "$train" configs/quickstart/digits.yaml "${data[@]}" --output "$folder/tuned" train.epochs=1 \
  "init={weights: $folder/wanda/model/model.safetensors}" "train.keep_zeros='*.weight'" \
  optimizer.lr=5e-4 precision=bfloat16 amp.level=O2
python3 - "$folder" <<'P' || fail "pruned weights"
import json, sys
sys.path.insert(0, sys.argv[1])
from tensors import load
folder = sys.argv[1]
before = load(folder + "/run/model/model.safetensors")
report = {r: json.loads(open(f"{folder}/{r}.json").read()) for r in ("magnitude", "wanda")}
pruned = [l["name"] for l in report["wanda"]["layers"] if l["pruned"]]
assert "linear" in pruned and len(pruned) >= 3, report["wanda"]["layers"]
first = [l for l in report["wanda"]["layers"] if not l["pruned"]]
assert first and "multiple of 4" in first[0]["why"], first
def groups(shape, values):
    """Four weights in a row along the inputs."""
    if len(shape) == 2:  # [in, out]
        n, m = shape
        for o in range(m):
            for i in range(0, n, 4):
                yield [values[(i + k) * m + o] for k in range(4)]
    else:  # [out, in, height, width]
        o, n, area = shape[0], shape[1], shape[2] * shape[3]
        for c in range(o):
            for i in range(0, n, 4):
                for at in range(area):
                    yield [values[(c * n + i + k) * area + at] for k in range(4)]
for rule in ("magnitude", "wanda"):
    after = load(f"{folder}/{rule}/model/model.safetensors")
    for name in pruned:
        key = name + ".weight"
        kept = list(zip(groups(*before[key]), groups(*after[key])))
        assert all(sum(x == 0 for x in g) == 2 for _, g in kept), (rule, name)
        assert all(b == a for g0, g1 in kept for a, b in zip(g0, g1) if b != 0), (rule, name)
        if rule == "magnitude":
            assert all(sorted(map(abs, g1))[2:] == sorted(map(abs, g0))[2:] for g0, g1 in kept), name
    assert after["linear.bias"] == before["linear.bias"]
tuned = load(folder + "/tuned/model/model.safetensors")
start = load(folder + "/wanda/model/model.safetensors")
for name in pruned:
    key = name + ".weight"
    assert all((a == 0) == (b == 0) for a, b in zip(start[key][1], tuned[key][1])), name
    assert start[key] != tuned[key], name
accuracy = report["wanda"]["metrics"]["accuracy"]
lines = [json.loads(l) for l in open(folder + "/tuned/metrics.jsonl")]
final = [l for l in lines if l["kind"] == "valid"][-1]["accuracy"]
assert final > accuracy["pruned"], (final, accuracy)
P
expect 3 "no layer matches 'lin'" "$quant" prune "$folder/run" -o "$folder/x" --match lin
expect 3 "no parameter matches 'fc*'" "$train" configs/quickstart/digits.yaml "${data[@]}" \
  --output "$folder/x" "train.keep_zeros=fc*"
expect 2 "already exists" "$quant" prune "$folder/run" -o "$folder/wanda"
expect 2 "must end in .onnx" "$quant" prune models/lenet.yaml -o "$folder/z"

# Adapters in the form of PEFT.
mkdir "$folder/base" "$folder/adapter"
python3 - "$folder" <<'P'
import json, random, sys
sys.path.insert(0, sys.argv[1])
from tensors import save
folder = sys.argv[1]
random.seed(1)
values = lambda *shape: (list(shape), [random.uniform(-1, 1) for _ in range(eval("*".join(map(str, shape))))])
save(folder + "/base/model-00001-of-00002.safetensors", {"model.q.weight": values(6, 4), "model.norm.weight": values(4)})
save(folder + "/base/model-00002-of-00002.safetensors", {"model.embed.weight": values(10, 4), "head.weight": values(3, 4)})
open(folder + "/base/config.json", "w").write("{}")
prefix = "base_model.model."
save(folder + "/adapter/adapter_model.safetensors", {
    prefix + "model.q.lora_A.weight": values(2, 4), prefix + "model.q.lora_B.weight": values(6, 2),
    prefix + "model.embed.lora_embedding_A": values(2, 10), prefix + "model.embed.lora_embedding_B": values(4, 2),
    prefix + "head.weight": values(3, 4)})
open(folder + "/adapter/adapter_config.json", "w").write(json.dumps({"peft_type": "LORA", "r": 2, "lora_alpha": 6}))
P
ok "$quant" merge "$folder/base" --lora "$folder/adapter" -o "$folder/merged" --json
ok "$quant" merge "$folder/base" --lora "$folder/adapter" -o "$folder/same" --scale 0
python3 - "$folder" <<'P' || fail "merged weights"
import sys
sys.path.insert(0, sys.argv[1])
from tensors import load
folder = sys.argv[1]
files = ["model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"]
read = lambda name: {k: v for f in files for k, v in load(f"{folder}/{name}/{f}").items()}
base, merged, same = read("base"), read("merged"), read("same")
adapter = load(folder + "/adapter/adapter_model.safetensors")
get = lambda name: adapter["base_model.model." + name][1]
a, b = get("model.q.lora_A.weight"), get("model.q.lora_B.weight")
for o in range(6):
    for i in range(4):
        wanted = base["model.q.weight"][1][o * 4 + i] + 3 * sum(b[o * 2 + r] * a[r * 4 + i] for r in range(2))
        assert abs(merged["model.q.weight"][1][o * 4 + i] - wanted) < 1e-5
a, b = get("model.embed.lora_embedding_A"), get("model.embed.lora_embedding_B")
for t in range(10):
    for i in range(4):
        wanted = base["model.embed.weight"][1][t * 4 + i] + 3 * sum(b[i * 2 + r] * a[r * 10 + t] for r in range(2))
        assert abs(merged["model.embed.weight"][1][t * 4 + i] - wanted) < 1e-5
assert merged["head.weight"][1] == get("head.weight")
assert merged["model.norm.weight"] == base["model.norm.weight"]
assert same["model.q.weight"] == base["model.q.weight"]
open(folder + "/merged/config.json").read()
P
sed -i 's/"r": 2/"r": 0/' "$folder/adapter/adapter_config.json"
expect 5 "r must be positive" "$quant" merge "$folder/base" --lora "$folder/adapter" -o "$folder/y"
sed -i 's/"r": 0/"r": 2/' "$folder/adapter/adapter_config.json"
rm "$folder/base/model-00001-of-00002.safetensors"
expect 5 "the model has no weight 'model.q.weight'" "$quant" merge "$folder/base" \
  --lora "$folder/adapter" -o "$folder/y"
[[ ! -e "$folder/y" && ! -e "$folder/y.partial" ]] || fail "a rejected merge leaves files"
expect 2 "is not a folder" "$quant" merge "$folder/base" --lora "$folder/none" -o "$folder/y"
finish
