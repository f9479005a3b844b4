#!/usr/bin/env bash
# paddle graph: a list of edges becomes a graph that other code reads from its files, draws do not
# depend on threads, and damaged files and wrong command lines are errors of one line.
set -uo pipefail
command -v python3 > /dev/null || { echo "python3 is missing"; exit 77; }
source "$(dirname "${BASH_SOURCE[0]}")/../expect.bash"
golden="$PWD/tests/graph/golden"
cd "$folder" || exit 1
graph="$bin/paddle-graph"
most_lines=1

# --- a recount by other code ---

python3 - <<'P'
import random
random.seed(5)
nodes = sorted(random.sample(range(10**9), 400))
with open("edges.csv", "w") as f:
    f.write("source,target,weight\n")
    for _ in range(5000):
        f.write(f"{random.choice(nodes[:300])},{random.choice(nodes)},{random.random():.4f}\n")
P
ok "$graph" build edges.csv --weighted -o plain
ok "$graph" build edges.csv --weighted -o small --memory 64KB
ok "$graph" build edges.csv --undirected -o both
ok "$graph" check plain
ok "$graph" check both
diff -r plain small || fail "the graph depends on the memory"
gzip -k edges.csv
ok "$graph" build edges.csv.gz --weighted -o packed
diff -r plain packed || fail "the graph depends on the compression of its edges"
python3 - <<'P' || fail "the files are not the edges"
import array, csv, json, zlib
rows = [(int(a), int(b), float(c)) for a, b, c in list(csv.reader(open("edges.csv")))[1:]]
ids = sorted({i for r in rows for i in r[:2]})
number = {i: k for k, i in enumerate(ids)}

def column(folder, name, kind):
    out = array.array(kind)
    out.frombytes(open(f"{folder}/{name}", "rb").read())
    return out.tolist()

for folder in ("plain", "both"):
    manifest = json.load(open(folder + "/graph.json"))
    for name, entry in manifest["files"].items():
        content = open(f"{folder}/{name}", "rb").read()
        assert (len(content), zlib.crc32(content)) == (entry["bytes"], entry["crc32"]), name
    assert column(folder, "n0.ids", "Q") == ids
    pairs = [(number[a], number[b], w) for a, b, w in rows]
    if folder == "both":
        pairs += [(b, a, w) for a, b, w in pairs if a != b]
    offsets, neighbors = column(folder, "e0.offsets", "Q"), column(folder, "e0.neighbors", "I")
    found = [(s, neighbors[e]) for s in range(len(ids)) for e in range(offsets[s], offsets[s + 1])]
    assert found == sorted((a, b) for a, b, _ in pairs), folder
    if folder == "plain":
        weights = column(folder, "e0.weights", "f")
        expected = sorted((a, b, array.array("f", [w])[0]) for a, b, w in pairs)
        assert [(a, b, w) for (a, b), w in zip(found, weights)] == expected
P

# --- draws ---

first="$(sed -n 2p edges.csv | cut -d, -f1)"
for threads in 1 4; do
  ok "$graph" sample both --node "$first" --hops edge:4,edge:3 --seed 5 --epoch 2 --batch 1 --json --threads $threads
  cp out "sample-$threads"
  ok "$graph" walk both --node "$first" --path edge --length 20 --times 3 --seed 5 --p 0.5 --q 2 --json --threads $threads
  cp out "walk-$threads"
done
cmp -s sample-1 sample-4 && cmp -s walk-1 walk-4 || fail "draws depend on threads"
ok "$graph" sample both --node "$first" --hops edge:4,edge:3 --seed 6 --epoch 2 --batch 1 --json
cmp -s out sample-1 && fail "draws do not depend on the seed"
python3 - "$first" <<'P' || fail "draws are not edges"
import csv, json, sys
edges = {(int(a), int(b)) for a, b, _ in list(csv.reader(open("edges.csv")))[1:]}
edges |= {(b, a) for a, b in edges}
hops = json.load(open("sample-1"))["hops"]
assert hops[0]["nodes"][0]["node"] == int(sys.argv[1]) and len(hops[0]["nodes"][0]["neighbors"]) == 4
for hop in hops:
    for each in hop["nodes"]:
        assert all((each["node"], n) in edges for n in each["neighbors"])
for walk in json.load(open("walk-1"))["walks"]:
    assert len(walk) == 21 and all(step in edges for step in zip(walk, walk[1:]))
P

# --- a config with two types ---

cat > shop.yaml <<Y
graph:
  nodes:
    user: {files: $golden/users.csv, features: {age: {}, country: {kind: category}}}
    item: {}
  edges:
    click: {from: user, to: item, files: $golden/clicks.tsv, weight: true, reverse: clicked_by}
Y
ok "$graph" build shop.yaml -o shop --json
grep -q '"reverse":"clicked_by"' out || fail "no reverse: $(cat out)"
ok "$graph" info shop
user="$(cut -f1 "$golden/clicks.tsv" | head -1)"
ok "$graph" sample shop --node "$user" --hops click:2,click:3 --weighted --json
grep -q '"edges":"clicked_by"' out || fail "edges are not followed back: $(cat out)"
ok "$graph" walk shop --node "$user" --path click-clicked_by --length 6 --weighted

# --- errors ---

expect 2 "already exists (--overwrite replaces it)" "$graph" build edges.csv -o plain
ok "$graph" build edges.csv -o plain --overwrite
mkdir other && touch other/file
expect 2 "is a folder with other files, which stay" "$graph" build edges.csv -o other --overwrite
expect 2 "is not EDGES:COUNT" "$graph" sample both --node 1 --hops edge
expect 3 "no edges 'edg' (did you mean 'edge'?)" "$graph" sample both --node "$first" --hops edg:3
expect 4 "none with the id '1000000001'" "$graph" sample both --node 1000000001 --hops edge:3
expect 2 "cannot be repeated" "$graph" walk shop --node "$user" --path click --length 2
expect 4 "no such graph" "$graph" info nowhere
expect 4 "is a file, expected the folder" "$graph" info edges.csv
expect 4 "no such file" "$graph" build nowhere.csv -o new
printf '1,2\n3\n' > bad.csv
expect 4 "bad.csv:2: the line has 1 cells" "$graph" build bad.csv -o new
printf '1,2\nx,3\n' > bad.csv
expect 4 "bad.csv:2: the id 'x' is not an integer" "$graph" build bad.csv -o new
[[ -e new ]] && fail "a graph that could not be built is there"
sed 's/from: user/from: users/' shop.yaml > bad.yaml
expect 3 "'users' are not nodes of the graph (did you mean 'user'?)" "$graph" build bad.yaml -o new
sed 's/weight: true/wieght: true/' shop.yaml > bad.yaml
expect 3 "wieght" "$graph" build bad.yaml -o new
cp -r both damaged && printf '\xff' | dd of=damaged/e0.neighbors bs=1 seek=7 conv=notrunc 2> /dev/null
expect 4 "e0.neighbors: its checksum differs" "$graph" check damaged
truncate -s -4 damaged/e0.neighbors
expect 4 "e0.neighbors: has" "$graph" info damaged
sed -i 's/"version": 1/"version": 2/' damaged/graph.json
expect 4 "format version 2, this program reads 1" "$graph" info damaged
echo '{' > damaged/graph.json
expect 4 "not the description of a graph" "$graph" info damaged
finish
