"""Asks a server that follows a store while versions are published, rolled back and damaged.

follow_client.py URL STORE RUN PS WANTED: WANTED/VERSION.json has the outputs of each version.
"""

import json
import subprocess
import sys
import threading
import time
import urllib.request

url, store, run, ps, wanted_folder = sys.argv[1:]
keys = list(range(0, 640, 10))
body = json.dumps({"inputs": {"user": keys}}).encode()
answers, errors, stop = [], [], threading.Event()


def ask():
    with urllib.request.urlopen(urllib.request.Request(f"{url}/v1/predict", body), timeout=20) as answer:
        return json.load(answer)


def metric(name):
    with urllib.request.urlopen(f"{url}/metrics", timeout=20) as answer:
        for line in answer.read().decode().splitlines():
            if line.startswith(f"paddle_{name}{{"):
                return float(line.split()[-1])


def client():
    while not stop.is_set():
        try:
            answers.append(ask())
        except Exception as error:
            errors.append(repr(error))


def serves(version):
    end = time.monotonic() + 20
    while time.monotonic() < end:
        if ask()["version"] == version:
            return
        time.sleep(0.02)
    raise SystemExit(f"version {version} is not served")


threads = [threading.Thread(target=client) for _ in range(3)]
for thread in threads:
    thread.start()
try:
    for step in ("10", "15", "20", "25", "30"):
        subprocess.run([ps, "publish", f"{run}/checkpoints/{step}", "--to", store], check=True, stdout=subprocess.DEVNULL)
        serves(step)
    assert metric("model_version") == 30
    subprocess.run([ps, "rollback", store, "15"], check=True, stdout=subprocess.DEVNULL)
    serves("15")
    assert metric("follow_errors_total") == 0
    with open(f"{store}/CURRENT", "w") as f:
        f.write("12\n")  # there is none
    time.sleep(1)
    assert ask()["version"] == "15" and metric("follow_errors_total") >= 1
    subprocess.run([ps, "rollback", store, "25"], check=True, stdout=subprocess.DEVNULL)
    serves("25")
finally:
    stop.set()
    for thread in threads:
        thread.join()
assert not errors, errors[:3]
seen = {}
for answer in answers:
    version, logits = answer["version"], answer["outputs"]["logit"]
    if version not in seen:
        seen[version] = json.load(open(f"{wanted_folder}/{version}.json"))
    assert len(logits) == len(keys)
    assert all(abs(a - b) < 1e-5 for a, b in zip(logits, seen[version])), (version, logits, seen[version])
assert len(seen) >= 5 and len(answers) > 50, (sorted(seen), len(answers))
assert len({tuple(values) for values in seen.values()}) == len(seen), "versions do not differ"
