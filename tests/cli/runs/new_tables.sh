#!/usr/bin/env bash
# paddle new on tables as programs and people write them: separators, decimal marks, missing values,
# indexes, times, groups, rare classes, boxes and masks. Each config that comes out can be run.
set -uo pipefail
command -v python3 > /dev/null || { echo "python3 is missing"; exit 77; }
source "$(dirname "${BASH_SOURCE[0]}")/../expect.bash"
new="$bin/paddle-new"
says() { grep -qF -- "$1" out || fail "it does not say '$1': $(head -c 600 out)"; }
has() { grep -qF -- "$2" "$1" || fail "$1 does not have '$2': $(grep -n "path\|kind" "$1" | head -3)"; }
lacks() { ! grep -qF -- "$2" "$1" || fail "$1 has '$2'"; }
cd "$folder" || exit 1
python3 - <<'P'
import datetime, math, os, random, struct, zlib, json
random.seed(0)
def table(name, header, rows, mark=","):
    with open(name, "w") as f:
        if header: f.write(mark.join(header) + "\n")
        for row in rows: f.write(mark.join(map(str, row)) + "\n")
x = [random.gauss(0, 1) for _ in range(500)]
sign = ["pos" if v > 0 else "neg" for v in x]
table("excel.csv", ["x", "n", "y"], [(f"{v:.4f}".replace(".", ","), i % 7, s) for i, (v, s) in enumerate(zip(x, sign))], ";")
table("pandas.csv", ["", "x", "y"], [(i, f"{v:.4f}", s) for i, (v, s) in enumerate(zip(x, sign))])
table("first.csv", ["y", "x"], [(s, f"{v:.4f}") for v, s in zip(x, sign)])
table("blanks.csv", [" x ", "y", "x"], [(f"{v:.4f}", s, 1) for v, s in zip(x, sign)])
for name, gap in (("na", "NA"), ("empty", ""), ("null", "null"), ("nan", "NaN"), ("slash", "N/A")):
    table(name + ".csv", ["x", "y"], [(gap if i % 50 == 7 else f"{v:.4f}", s) for i, (v, s) in enumerate(zip(x, sign))])
table("money.csv", ["x", "y"], [(f'"{1000 + i:,}"', s) for i, s in enumerate(sign)])
table("percent.csv", ["x", "y"], [(f"{i}%", s) for i, s in enumerate(sign)])
table("codes.csv", ["x", "y"], [(f"{i % 9}" if i % 3 else f"{i % 9}A", s) for i, s in enumerate(sign)])
table("one.csv", ["x", "y"], [(1, 2)])
table("rare.csv", ["x", "y"], [(f"{v:.4f}", int(v > 2)) for v in x])
table("times.csv", ["when", "x", "y"], [(f"2023-01-{1 + i % 28:02d} 09:{i % 60:02d}", f"{v:.4f}", s) for i, (v, s) in enumerate(zip(x, sign))])
open("quotes.tsv", "w").write("text\tlabel\n" + "".join(f'the 5" disk {i}\tgood\n"no end {i} at all\tbad\n' for i in range(60)))
days = [datetime.date(2023, 1, 1) + datetime.timedelta(i) for i in range(300)]
y = [100 + 0.5 * i + 10 * math.sin(i / 7) for i in range(300)]
table("newest.csv", ["date", "price"], [(d, f"{v:.2f}") for d, v in reversed(list(zip(days, y)))])
table("panel.csv", ["date", "shop", "sales"], [(d, s, f"{v if s == 'north' else 5000 - 3 * v:.2f}") for d, v in zip(days, y) for s in ("north", "south")])
u, m = [random.gauss(0, .7) for _ in range(60)], [random.gauss(0, .7) for _ in range(40)]
ratings = []
for k in range(900):
    a, b = random.randrange(60), random.randrange(40)
    ratings.append((a + 1, b + 1, min(5, max(1, round(3.5 + u[a] + m[b] + random.gauss(0, .4)))), 964982700 + 37 * k))
table("ratings.csv", ["userId", "movieId", "rating", "timestamp"], ratings)
table("u.data", None, ratings, "\t")
table("ml.inter", ["user_id:token", "item_id:token", "rating:float"], [r[:3] for r in ratings], "\t")
def png(path, width, height, pixel, depth=3):
    rows = b"".join(b"\0" + bytes(c for x in range(width) for c in pixel(x, y)) for y in range(height))
    chunk = lambda t, d: struct.pack(">I", len(d)) + t + d + struct.pack(">I", zlib.crc32(t + d))
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    open(path, "wb").write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2 if depth == 3 else 0, 0, 0, 0)) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))
def photo(path): png(path, 32, 32, lambda x, y: (200, 100, 50) if 8 <= x < 24 and 8 <= y < 24 else (x, y, 0))
def coco(path, files):
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    json.dump({"images": [{"id": f"i{i}", "file_name": f, "width": 32, "height": 32} for i, f in enumerate(files)],
               "categories": [{"id": 1, "name": "box"}],
               "annotations": [{"id": i, "image_id": f"i{i}", "category_id": 1, "bbox": [8, 8, 16, 16], "area": 256, "iscrowd": 0} for i in range(len(files))]}, open(path, "w"))
for i in range(8):
    for d in ("yolo/images/train", "yolo/images/val", "robo/train/images", "sibling/train", "usual/train2017"): photo(f"{d}/{i}.png")
    for d in ("yolo/labels/train", "yolo/labels/val", "robo/train/labels"):
        os.makedirs(d, exist_ok=True)
        open(f"{d}/{i}.txt", "w").write("0 0.5 0.5 0.5 0.5\n")
open("yolo/data.yaml", "w").write("path: .\ntrain: images/train\nval: images/val\nnames: {0: box}\n")
open("robo/data.yaml", "w").write("train: ../train/images\nval: ../valid/images\nnc: 1\nnames: ['box']\n")
os.makedirs("robo/valid"); 
import shutil; shutil.copytree("robo/train/images", "robo/valid/images"); shutil.copytree("robo/train/labels", "robo/valid/labels")
files = [f"{i}.png" for i in range(8)]
coco("sibling/train.json", files)
for name in ("instances_train2017", "instances_val2017", "captions_train2017"): coco(f"usual/annotations/{name}.json", files)
shutil.copytree("usual/train2017", "usual/val2017")
coco("lost/train.json", files)
coco("many/a.json", files); coco("many/b.json", files)
for kind, values in (("pair", (0, 255)), ("ignored", (0, 1, 255)), ("plain", (0, 1, 2))):
    for i in range(8):
        photo(f"masks/{kind}/{i}.png")
        png(f"masks/{kind}/m{i}.png", 32, 32, lambda x, y: (values[(x // 8) % len(values)],), 1)
    table(f"masks/{kind}.csv", ["image", "mask"], [(f"{kind}/{i}.png", f"{kind}/m{i}.png") for i in range(8)])
for i in range(20): photo(f"lines/{i}.png")
open("lines/rec_gt.txt", "w").write("".join(f"{i}.png\thello {i}\n" for i in range(20)))
for c in ("cat", "dog"):
    for i in range(6): photo(f"photos/{c}/{i}.png")
open("photos/cat/2.png", "wb").write(b"not a picture")
P
# run RECIPE FILE [OPTION…]: writes FILE.yaml, which passes the checks of a training.
run() {
  local recipe="$1" data="$2" config
  config="$(basename "${2%.*}").yaml"
  shift 2
  ok "$new" "$recipe" --data "$data" -o "$config" --overwrite "$@"
  cp out said
  [[ "$(run_bounded "$train" "$config" --dry-run)" == 0 ]] || fail "$recipe of $data cannot be trained"
  cp said out
}
# The accuracy or the error that a run ends with.
last() { sed -n "s/^valid.*$1 \([0-9.]*\).*/\1/p" log | tail -1; }
at_least() { python3 -c "import sys; sys.exit(not float(sys.argv[1] or 0) >= float(sys.argv[2]))" "$1" "$2" || fail "$3: $1, expected at least $2"; }
at_most() { python3 -c "import sys; sys.exit(not float(sys.argv[1] or 9) <= float(sys.argv[2]))" "$1" "$2" || fail "$3: $1, expected at most $2"; }

run tabular-classification excel.csv
says "columns are separated by ';'"; says "numbers have decimal commas"; says "2 columns of numbers, 0 of categories"
has excel.yaml 'decimal: ","'
run tabular-classification pandas.csv
says "column 1 has no name (an index written by pandas?); left out"; says "1 columns of numbers"
run tabular-classification first.csv --target y
says "'y' has 2 classes"
expect 2 "there is no column 'z'" "$new" tabular-classification --data first.csv --target z -o q.yaml --overwrite
run tabular-classification blanks.csv --target y
says "duplicate column 'x': column 3 is called 'x.1'"
for name in na empty null nan slash; do
  run tabular-classification $name.csv
  says "1 columns of numbers, 0 of categories"
  "$train" $name.yaml --threads 1 > log 2>&1 || fail "$name.csv: $(tail -1 log)"
  at_least "$(last accuracy)" 0.93 "accuracy with gaps written as in $name.csv"
done
expect 4 "money.csv:2: column 'x': '1,000' is a number with a currency" "$new" tabular-classification --data money.csv -o q.yaml --overwrite
expect 4 "percent.csv:2: column 'x': '0%' is a number with" "$new" tabular-classification --data percent.csv -o q.yaml --overwrite
run tabular-classification codes.csv
says "'x' is taken as categories: line 2 has '0A'"
expect 4 "expected a header and some rows, found 1 row" "$new" tabular-classification --data one.csv -o q.yaml --overwrite
expect 4 "expected at least two columns" "$new" tabular-classification --data na.csv --delimiter "|" -o q.yaml --overwrite
run tabular-classification rare.csv
says "of the rows are '1': the best model is that of the highest auc"
has rare.yaml "best: auc"; has rare.yaml "split_stratify: label"
run tabular-classification times.csv
says "'when' holds times; left out"; lacks times.yaml "when"
run text-classification quotes.tsv
says "quotes are ordinary characters"; has quotes.yaml "quote: none"
expect 2 "--group is for the recipes time-series" "$new" tabular-regression --data na.csv --group x -o q.yaml --overwrite

run time-series newest.csv
says "'date' runs backwards in the file; the rows are sorted by it"; has newest.yaml "time: date"
run time-series panel.csv
says "'shop' identifies the series"; says "600 rows of 2 series"; has panel.yaml "group: shop"

run recommender ratings.csv
says "'timestamp' holds times; left out"; lacks ratings.yaml timestamp
"$train" ratings.yaml --threads 1 > log 2>&1 || fail "ratings: $(tail -1 log)"
at_most "$(last rmse)" 0.95 "the error of ratings, where their mean has 1.0"
run recommender u.data
says "there is no header: columns are called 0, 1, 2, 3"; says "ratings in '2'"
run recommender ml.inter
says "columns are separated by tabs"; says "ratings in 'rating:float'"

for data in yolo yolo/data.yaml robo robo/data.yaml; do
  ok "$new" detection --data $data -o box.yaml --small --overwrite
  says "8 images with boxes of 1 classes"; says "8 images to validate on"
  ok "$train" box.yaml --dry-run
done
run detection sibling/train.json --small
run detection usual --small
says "instances_train2017.json trains, instances_val2017.json validates"
expect 4 "is in none of" "$new" detection --data lost/train.json -o q.yaml --overwrite
run detection lost/train.json --small --images sibling/train
expect 4 "has several COCO files (a.json, b.json)" "$new" detection --data many -o q.yaml --overwrite

run segmentation masks/pair.csv --small
says "values 0, 255: 2 classes"; has pair.yaml "values: {0: background, 255: foreground}"
run segmentation masks/ignored.csv --small
says "2 classes, and 255 for pixels without one"; has ignored.yaml "ignore: [255]"
run segmentation masks/plain.csv --small
says "values 0, 1, 2"
run text-lines lines/rec_gt.txt --small
says "there is no header"
run image-classification photos --small
says "such files are skipped"; has photos.yaml "on_bad_sample: skip"
finish
