#!/usr/bin/env bash
# Fields of `kind: keys` with masks and pooling: rows after training against a recount in Python,
# compiled, eager and on several ranks; keys up to 2^64 - 1; values that are wrong with their place.
set -uo pipefail
command -v python3 > /dev/null || { echo "python3 is missing"; exit 77; }
source "$(dirname "${BASH_SOURCE[0]}")/../expect.bash"
cd "$folder" || exit 1
cat > recount.py <<'P'
import json, random, struct, sys
random.seed(5)
LINES = [(random.randrange(9), [random.choice([0, 2**63, 2**64 - 1, random.randrange(12)])
                                for _ in range(random.choice([0, 1, 3, 9]))]) for _ in range(24)]
MOST, BATCH, LR = 6, 6, 0.5
def tensors(path):
    data = open(path, "rb").read()
    size = 8 + struct.unpack("<Q", data[:8])[0]
    kinds = {"U64": "Q", "I64": "q", "F32": "f", "F64": "d"}
    out = {}
    for k, v in json.loads(data[8:size]).items():
        if k == "__metadata__": continue
        raw = data[size + v["data_offsets"][0] : size + v["data_offsets"][1]]
        out[k] = struct.unpack("<" + kinds[v["dtype"]] * (len(raw) // struct.calcsize(kinds[v["dtype"]])), raw)
    return out
if __name__ != "__main__":
    pass
elif len(sys.argv) == 1:
    with open("part-0", "w") as f:
        for user, tags in LINES:
            f.write(f"1 1 1 {user} {len(tags)} {' '.join(map(str, tags))}\n".replace("  ", " "))
else:
    # The loss is the mean over samples of the sum of all numbers, so gradients are counts.
    for run in sys.argv[2:]:
        want = {}
        for _, tags in LINES:
            tags = tags[:MOST]
            for key in tags:
                share = 1 if sys.argv[1] == "sum" else 1 / len(tags)
                want[key] = want.get(key, 0) - LR * share / BATCH
        t = tensors(f"{run}/checkpoints/latest/model.safetensors")
        assert list(t["tags.keys"]) == sorted(want), (run, t["tags.keys"])
        for i, key in enumerate(t["tags.keys"]):
            for got in t["tags.weight"][2 * i : 2 * i + 2]:
                assert abs(got - want[key]) < 1e-9, (run, key, got, want[key])
P
python3 recount.py
cat > c.yaml <<'Y'
model:
  name: tags
  inputs: {user: "uint64[batch, 1]", tags: "uint64[batch, length]", tags_mask: "bool[batch, length]"}
  params: {way: sum}
  model: |
    t = sparse_embedding(tags, 2, name="tags", weight_init=zeros, mask=tags_mask, pool=way)
    u = sparse_embedding(user, 2, name="user", weight_init=zeros, pool=sum)
  outputs: [t, u]
loss: mean(sum(t, 1) + sum(u, 1))
precision: float64
optimizer: {name: sgd, lr: 0.5}
data:
  batch_size: 6
  shuffle: false
  train: &rows
    kind: slots
    path: part-*
    slots: [click, user, tags]
    fields:
      - {name: user, kind: keys, dtype: uint64}
      - {name: tags, kind: keys, dtype: uint64, most: 6}
  valid: *rows
train: {epochs: 1}
Y
for way in sum mean; do
  ok "$train" c.yaml model.params.way=$way --output $way
  ok "$train" c.yaml model.params.way=$way --eager --output $way-eager
  ok "$train" c.yaml model.params.way=$way parallel.data=2 --simulate 2 --output $way-2
  python3 recount.py $way $way $way-eager $way-2 || fail "the rows of pool: $way are not those of the recount"
done
# The saved model pools in the same way.
printf 'user,tags\n3,0 18446744073709551615\n99,\n' > two.csv
ok "$infer" sum --input two.csv --output out.jsonl
python3 - <<'P' || fail "the saved model pools otherwise"
import json
from recount import tensors
t = tensors("sum/checkpoints/latest/model.safetensors")
row = lambda key: t["tags.weight"][2 * t["tags.keys"].index(key)]
a, b = [json.loads(line) for line in open("out.jsonl")]
assert abs(a["t"][0] - row(0) - row(2**64 - 1)) < 1e-5, (a, row(0))
assert b["t"] == [0, 0] and b["u"] == [0, 0], b
P
sed 's/mask=tags_mask/mask=tags/' c.yaml > changed.yaml
expect 3 "mask must be bool" "$train" changed.yaml --output x
sed 's/mask=tags_mask/mask=tags_mask * tags_mask > 0/' c.yaml > changed.yaml
expect 3 "mask must be an input of the model" "$train" changed.yaml --output x
expect 3 "pool must be sum, mean or none" "$train" c.yaml model.params.way=max --output x
field() { sed "s/$1/$2/" c.yaml > changed.yaml; }
field 'dtype: uint64, most: 6' 'dtype: float32, most: 6'
expect 3 "keys are int64 or uint64, not float32" "$train" changed.yaml --output x
field 'most: 6' 'most: 6, buckets: 4'
expect 3 "\`buckets\` has no effect with \`kind: keys\`" "$train" changed.yaml --output x
field 'most: 6' 'most: 0'
expect 3 "most': expected" "$train" changed.yaml --output x
bad() {  # LINE, MESSAGE
  mkdir -p bad
  { head -n 2 part-0; printf '%s\n' "$1"; } > bad/part-0
  expect 4 "$2" "$train" c.yaml data.train.path=bad/part-0 data.valid.path=part-0 --output x
  grep -q "bad/part-0:3" "$folder/error" || fail "the place of '$1' is not named"
}
bad '1 1 1 7 2 5 six' "'six' is not a key of type uint64"
bad '1 1 1 7 2 5 -1' "'-1' is not a key of type uint64"
bad '1 1 1 7 2 5 18446744073709551616' "outside the range of uint64"
bad '1 1 1 7 3 5 6' "slot 'tags' should have 3 values"
bad '1 1 1 7 -2 5 6' "slot 'tags': expected the number"
finish
