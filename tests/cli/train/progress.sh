#!/usr/bin/env bash
# The bar of paddle-train and paddle-quant: on a terminal one line that fits, with a time left that
# holds; in a file plain lines; with --json nothing.
set -uo pipefail
command -v python3 > /dev/null || { echo "python3 is missing"; exit 77; }
python3 -c 'import pty; pty.openpty()' 2> /dev/null || { echo "no pseudo-terminals"; exit 77; }
source "$(dirname "${BASH_SOURCE[0]}")/../expect.bash"
quant="$bin/paddle-quant"
in_terminal() {  # FILE COLUMNS COMMAND...
  local file="$1"
  shift
  ok python3 tests/cli/train/in_terminal.py "$@"
  cp "$folder/out" "$folder/$file"
}

cat > "$folder/net.yaml" <<'Y'
name: net
inputs: {image: "float32[batch, 3, 24, 24]"}
model:
  - conv2d: {out_channels: 24, kernel_size: 3, padding: 1}
  - relu
  - conv2d: {out_channels: 24, kernel_size: 3, padding: 1}
  - relu
  - conv2d: {out_channels: 24, kernel_size: 3, padding: 1}
  - relu
  - flatten
  - linear: 10
outputs: [logits]
Y
python3 - "$folder/x.npz" <<'P'
import random, struct, sys, zipfile
random.seed(1)
rows = 2000
header = str({"descr": "<f4", "fortran_order": False, "shape": (rows, 3, 24, 24)})
header += " " * (63 - (len(header) + 10) % 64) + "\n"
image = struct.pack("<4096f", *(random.gauss(0, 1) for _ in range(4096)))
body = b"".join(image[4 * (i % 2000):4 * (i % 2000) + 4 * 1728] for i in range(rows))
with zipfile.ZipFile(sys.argv[1], "w") as z:
    z.writestr("image.npy", b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + body)
P
job=("$quant" "$folder/net.yaml" --threads 1 --seed 3 --data "$folder/x.npz" --overwrite
     -o "$folder/searched" "quant.weights={dtype: int4, per: channel}" quant.accept.sqnr_db=22
     "quant.search={budget: {trials: 20}}" --write-anyway)

# Calibration, measurement, sensitivity and search.
in_terminal wide.json 100 "${job[@]}" --samples 200
in_terminal narrow.json 44 "${job[@]}" --samples 200
in_terminal calibrate.json 100 "$quant" calibrate "$folder/net.yaml" --threads 1 --seed 3 \
  --data "$folder/x.npz" --samples 2000 -o "$folder/s.safetensors"
in_terminal train.json 60 "$train" configs/quickstart/digits.yaml --output "$folder/run" \
  train.epochs=1 "data.train={kind: digits, size: 2000, seed: 1, range: [0, 1500]}" \
  "data.valid={kind: digits, size: 2000, seed: 1, range: [1500, 2000]}"
python3 - "$folder" <<'P' || fail "the bar on a terminal"
import json, re, sys
folder = sys.argv[1]
def drawn(name):
    """What was drawn in place of the last line: [(seconds, text)]."""
    run = json.load(open(f"{folder}/{name}.json"))
    assert run["status"] == 0, run
    whole = "".join(text for _, text in run["written"])
    assert "\x1b[K" in whole and whole.rindex("\r\x1b[K") > whole.rindex("%"), "a bar remains"
    out = []
    for seconds, text in run["written"]:
        out += [(seconds, t) for t in re.findall(r"\r([^\r\n\x1b]+)\x1b\[K", text)]
    return out, whole
def check(name, columns, texts):
    bars, whole = drawn(name)
    assert bars and max(len(t) for _, t in bars) < columns, (name, bars)
    for text in texts:
        assert any(text in t for _, t in bars), (name, text, bars)
    assert all(re.match(r"(\[#*\.*\] )?\d+%  ", t) for _, t in bars), (name, bars)
    return bars, whole
stages = ["calibrating", "measuring layers", "layer 3 of 4: conv2d", "search: 1 of 4 layers in floats"]
bars, whole = check("wide", 100, stages)
assert re.search(r"\n?writing\r?\n", whole) and "calibrating\r\n" not in whole, whole
percents = [int(t.split("%")[0].split("]")[-1]) for _, t in bars if "calibrating" in t]
assert percents == sorted(percents) and percents[0] == 0 and percents[-1] == 100, percents
check("narrow", 44, ["calibrating", "layer 3 of 4"])
check("train", 60, ["step ", " left"])

# The time left holds: at each quarter it is near what the rest took.
bars, _ = check("calibrate", 100, ["calibrating"])
end = bars[-1][0]
near = 0
for seconds, text in bars:
    percent, left = re.search(r"(\d+)%  (?:(\d+:\d\d) left)?", text).groups()
    if not left or not 25 <= int(percent) <= 75:
        continue
    minutes, rest = left.split(":")
    claimed = 60 * int(minutes) + int(rest)
    assert claimed <= 3 * (end - seconds) + 1 and claimed + 1 >= (end - seconds) / 3, (text, end - seconds)
    near += 1
assert near >= 10, bars
P

# Not a terminal: plain lines, one a stage.
ok "${job[@]}" --samples 200
! grep -q $'[\r\x1b]' "$folder/error" || fail "a bar in a file"
for line in calibrating "measuring layers" writing comparing "layer 3 of 4: conv2d_3" "search: 1 of 4 layers in floats"; do
  [[ "$(grep -cxF -- "$line" "$folder/error")" == 1 ]] || fail "not one line '$line'"
done
ok "$train" configs/quickstart/digits.yaml --output "$folder/run" --overwrite train.epochs=1 \
  "data.train={kind: digits, size: 2000, seed: 1, range: [0, 1500]}" \
  "data.valid={kind: digits, size: 2000, seed: 1, range: [1500, 2000]}"
! grep -q $'[\r\x1b]' "$folder/error" "$folder/out" || fail "a bar in a file of paddle-train"
# With JSON: nothing, on a terminal too.
in_terminal json.json 100 "$quant" calibrate "$folder/net.yaml" --seed 3 --data "$folder/x.npz" \
  --samples 200 -o "$folder/s.safetensors" --overwrite --json
grep -qF '"written": []' "$folder/json.json" || fail "--json writes to the terminal"
# An error has a line of its own.
ok python3 tests/cli/train/in_terminal.py 100 "$quant" sensitivity "$folder/net.yaml" --data "$folder/none.npz"
grep -q '"status": [1-9].*error: ' "$folder/out" || fail "the error of a missing file"
finish
