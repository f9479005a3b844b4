"""Which rows each published version should have, computed from the checkpoints of a run.

published_rows.py RUN STORE DUMPS: compares the CSV files DUMPS/VERSION.csv, as paddle-ps dump writes them.
The rules are those of the config in serve_follow.sh.
"""

import csv
import json
import os
import struct
import sys

BASE, DELTA_SCORE, DELTA_DAYS, BASE_SCORE, DECAY = 20, 0.3, 1, 0.5, 0.9
KINDS = {"U64": "Q", "I64": "q", "F32": "f"}


def tensors(path):
    data = open(path, "rb").read()
    size = 8 + struct.unpack("<Q", data[:8])[0]
    out = {}
    for name, entry in json.loads(data[8:size]).items():
        begin, end = entry["data_offsets"]
        raw, kind = data[size + begin : size + end], KINDS[entry["dtype"]]
        out[name] = struct.unpack(f"<{len(raw) // struct.calcsize(kind)}{kind}", raw)
    return out


def half(x):
    return struct.unpack("<e", struct.pack("<e", x))[0]


def main():
    run, store, dumps = sys.argv[1:]
    steps = sorted(int(name) for name in os.listdir(store) if name.isdigit())
    assert len(steps) >= 8, steps
    view, unsure, dropped, removed = {}, set(), 0, 0
    for step in steps:
        folder = f"{run}/checkpoints/{step}"
        model, states = tensors(f"{folder}/model.safetensors"), tensors(f"{folder}/optimizer.safetensors")
        today = json.load(open(f"{folder}/state.json"))["table_day"]
        keys, weight = model["user.keys"], model["user.weight"]
        show, click, day = (states[f"optimizer/user.weight/{name}"] for name in ("show", "click", "day"))
        is_base = step == steps[0] or step % BASE == 0
        width = len(weight) // len(keys)
        rows = {}
        for i, key in enumerate(keys):
            decayed = DECAY ** (today - day[i])
            score = (0.1 * (show[i] - click[i]) + click[i]) * decayed
            row = tuple(half(x) for x in weight[i * width : (i + 1) * width])
            rows[key] = (row, score, today - day[i])
            if abs(score - (BASE_SCORE if is_base else DELTA_SCORE)) < 1e-4:
                unsure.add(key)
        if is_base:
            view = {key: row for key, (row, score, _) in rows.items() if score >= BASE_SCORE}
            dropped += len(rows) - len(view)
        else:
            removed += sum(key not in rows for key in view)
            view = {key: row for key, row in view.items() if key in rows}
            for key, (row, score, unseen) in rows.items():
                if row == view.get(key):
                    continue
                if score >= DELTA_SCORE and unseen <= DELTA_DAYS:
                    view[key] = row
                else:
                    dropped += 1
        found = {}
        with open(f"{dumps}/{step}.csv") as f:
            for line in csv.DictReader(f):
                found[int(line["key"])] = tuple(float(v) for k, v in line.items() if k.startswith("weight"))
        wanted = {key: row for key, row in view.items() if key not in unsure}
        found = {key: row for key, row in found.items() if key not in unsure}
        assert set(wanted) == set(found), (step, set(wanted) ^ set(found))
        for key, row in wanted.items():
            assert all(abs(a - b) <= 1e-5 * abs(a) for a, b in zip(row, found[key])), (step, key, row, found[key])
    assert dropped > 50 and removed > 5 and len(view) > 50 and len(unsure) < 20, (dropped, removed, len(view), unsure)


main()
