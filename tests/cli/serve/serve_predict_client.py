"""Checks predictions of the server of serve_predict.sh: serve_predict_client.py PORT KEY FOLDER PROGRAM ONNX"""

import ast
import base64
import concurrent.futures
import csv
import http.client
import json
import struct
import socket
import sys
import time
import zipfile

port, key, folder, program, onnx = int(sys.argv[1]), *sys.argv[2:6]


def call(body, headers=None, path="/v1/predict", method="POST"):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    data = body if isinstance(body, (bytes, type(None))) else body.encode() if isinstance(body, str) else json.dumps(body).encode()
    connection.request(method, path, data, {"Authorization": "Bearer " + key, **(headers or {})})
    response = connection.getresponse()
    content = response.read()
    connection.close()
    return response, content


def expect(condition, what):
    if not condition:
        sys.exit("FAIL: %s" % (what,))


def predict(body, headers=None, path="/v1/predict"):
    response, content = call(body, headers, path)
    expect(response.status == 200, (response.status, content[:500], str(body)[:200]))
    return json.loads(content)


def rejected(status, words, body, headers=None, path="/v1/predict"):
    response, content = call(body, headers, path)
    message = json.loads(content)["error"]["message"]
    expect(response.status == status and words in message, (status, words, response.status, message))
    expect("/dev/shm" not in message and "/tmp" not in message, message)


def are_close(found, wanted):
    """Equal but for roundings: in batches of other sizes some kernels add in another order."""
    if isinstance(found, float) and isinstance(wanted, float):
        return abs(found - wanted) <= 1e-5 * (1 + abs(wanted))
    if isinstance(found, dict) and isinstance(wanted, dict):
        return found.keys() == wanted.keys() and all(are_close(found[key], wanted[key]) for key in found)
    if isinstance(found, list) and isinstance(wanted, list):
        return len(found) == len(wanted) and all(are_close(a, b) for a, b in zip(found, wanted))
    return found == wanted


def lines(name):
    """The lines of paddle-infer without what only a file has."""
    out = [json.loads(line) for line in open(f"{folder}/wanted/{name}.jsonl")]
    for each in out:
        each.pop("source", None)
    return out


def without_sources(rows):
    return [{k: v for k, v in row.items() if k != "source"} for row in rows]


def npz(path):
    """Arrays of an NPZ file as flat lists, by name."""
    out = {}
    codes = {"<f4": "f", "<f8": "d", "<i8": "q", "<i4": "i", "|u1": "B", "|i1": "b", "|b1": "?"}
    with zipfile.ZipFile(path) as z:
        for name in z.namelist():
            data = z.read(name)
            size = struct.unpack("<H", data[8:10])[0]
            head = ast.literal_eval(data[10:10 + size].decode())
            count = 1
            for n in head["shape"]:
                count *= n
            out[name[:-4]] = (head["shape"], struct.unpack("<%d%s" % (count, codes[head["descr"]]), data[10 + size:]))
    return out


def shaped(values, shape):
    """A flat list as nested ones."""
    values = list(values)
    for n in reversed(shape[1:]):
        values = [values[i:i + n] for i in range(0, len(values), n)]
    return values if shape else values[0]


def flat(lists):
    return [lists] if not isinstance(lists, list) else [v for each in lists for v in flat(each)]


def same(outputs, arrays):
    """Whether lists of numbers are the arrays bit for bit, read in float32."""
    expect(set(outputs) == set(arrays), (set(outputs), set(arrays)))
    for name, (shape, values) in arrays.items():
        got = flat(outputs[name])
        expect(len(got) == len(values), name)
        for a, b in zip(got, values):
            expect(a == b or struct.pack("<f", a) == struct.pack("<f", b), (name, a, b))


# ---- the list of models ----
response, content = call(None, path="/v1/models", method="GET")
models = {each["id"]: each for each in json.loads(content)["data"]}
expect(set(models) == {"table", "pictures", "target", "unknown", "photos", "onnx", "program", "plain"}, models.keys())
expect(models["table"]["inputs"] == [{"name": "x", "dtype": "float32", "shape": ["batch", 1]},
                                     {"name": "c", "dtype": "int64", "shape": ["batch"]}], models["table"])
expect(models["table"]["columns"] == ["x", "c"] and models["table"]["max_batch"] == 16, models["table"])
expect(models["pictures"]["classes"] == ["a", "b", "c"] and models["pictures"]["max_batch"] == 32, models["pictures"])
expect(models["plain"]["inputs"][0]["shape"] == ["batch", 3], models["plain"])

# ---- rows of a table: classes with probabilities, the units of the files, unknown categories ----
rows = [{"x": float(row["x"]), "c": row["c"], "label": int(row["label"])} for row in csv.DictReader(open(folder + "/valid.csv"))]
answer = predict({"model": "table", "rows": rows})
expect(answer["model"] == "table" and without_sources(answer["predictions"]) == lines("csv"), answer["predictions"][:2])
unlabelled = [{"c": row["c"], "x": str(row["x"]), "more": [1]} for row in rows]
expected = [{k: v for k, v in each.items() if k != "label"} for each in lines("csv")]
expect(predict({"model": "table", "rows": unlabelled})["predictions"] == expected, "rows without labels")
same(predict({"model": "table", "rows": rows, "decode": False})["outputs"], npz(folder + "/wanted/csv.npz"))
for name in ("target", "unknown"):
    table = [dict(row) for row in csv.DictReader(open(f"{folder}/{name}.csv"))]
    expect(predict({"model": name, "rows": table})["predictions"] == lines(name), name)
rejected(400, "rows[1]: column 'x': 'abc' is not a number", {"model": "table", "rows": [{"x": 1, "c": "a"}, {"x": "abc", "c": "a"}]})
rejected(400, "rows: no record has the key 'x'", {"model": "table", "rows": [{"y": 1, "c": "a"}]})
rejected(400, "rows[0]: column 'c'", {"model": "table", "rows": [{"x": 1, "c": "zebra"}]})
rejected(400, "rows[0]: column 'x'", {"model": "table", "rows": [{"x": None, "c": "a"}]})
rejected(400, "'rows' is empty", {"model": "table", "rows": []})
rejected(400, "'rows' has 1, expected objects", {"model": "table", "rows": [1]})

# ---- arrays: what paddle-infer makes of an NPZ file ----
arrays = npz(folder + "/valid.npz")
inputs = {name: shaped(values, shape) for name, (shape, values) in arrays.items() if name != "label"}
wanted = npz(folder + "/wanted/arrays.npz")
same(predict({"model": "table", "inputs": inputs})["outputs"], wanted)
decoded = [{k: v for k, v in each.items() if k != "label"} for each in lines("arrays")]
expect(predict({"model": "table", "inputs": inputs, "decode": True})["predictions"] == decoded, "decoded arrays")
file = open(folder + "/valid.npz", "rb").read()
same(predict(file, {"Content-Type": "application/x-npz"}, "/v1/predict?model=table")["outputs"], wanted)
response, content = call({"model": "table", "inputs": inputs}, {"Accept": "application/x-npz"})
expect(response.status == 200 and response.getheader("Content-Type") == "application/x-npz", response.status)
expect(content == open(folder + "/wanted/arrays.npz", "rb").read(), "the NPZ file of the answer")
x = {"x": [[1], [2]], "c": [0, 1]}
rejected(400, "unknown input 'y'", {"model": "table", "inputs": {**x, "y": 1}})
rejected(400, "has no array 'c'; the model takes 'x' float32[batch, 1], 'c' int64[batch]", {"model": "table", "inputs": {"x": [[1]]}})
rejected(400, "input 'c' has 0.5, expected values of int64", {"model": "table", "inputs": {**x, "c": [0.5, 1]}})
rejected(400, "input 'x' is float32[2], expected float32[batch, 1]", {"model": "table", "inputs": {**x, "x": [1, 2]}})
rejected(400, "'x' is float32[2, 2], the model takes float32[batch, 1]", {"model": "table", "inputs": {**x, "x": [[1, 2], [3, 4]]}})
rejected(400, "input 'c' is int64[3]", {"model": "table", "inputs": {**x, "c": [0, 1, 2]}})
rejected(400, "embedding: index 100 is outside of the table's 4 rows", {"model": "table", "inputs": {**x, "c": [0, 100]}})
rejected(400, "the request is not JSON", '{"model": "table", "inputs": {"x": [[NaN]]}}')
rejected(400, "no 'inputs'", {"model": "table"})
rejected(404, "there is no model 'tabel' for predictions (did you mean 'table'?)", {"model": "tabel", "inputs": x})
rejected(400, "there is no 'model', and more than one is served", {"inputs": x})
rejected(400, "the NPZ file", b"PK nonsense", {"Content-Type": "application/x-npz"}, "/v1/predict?model=table")
rejected(400, "'decode' must be false", {"model": "table", "inputs": x, "decode": True}, {"Accept": "application/x-npz"})
rejected(401, "API key", {"model": "table", "inputs": x}, {"Authorization": "Bearer no"})
plain = {"x": [[1, 2, 3.5]], "n": [2**53 + 1], "ok": [True]}
expect(predict({"model": "plain", "inputs": plain}) == {"model": "plain", "outputs": {"double": [[2.0, 4.0, 7.0]], "next": [2**53 + 2], "ok": [True]}}, "types")
rejected(400, "input 'ok' has 2, expected values of bool", {"model": "plain", "inputs": {**plain, "ok": [2]}})
rejected(400, "'x' is uint8[1, 3], the model takes float32[batch, 3]", {"model": "plain", "inputs": {**plain, "x": {"dtype": "uint8", "data": [[1, 2, 3]]}}})

# ---- images: in base64, as they are, in a form ----
paths = [folder + "/valid_images/b/0.png", folder + "/valid_images/c/1.png"]
images = [open(path, "rb").read() for path in paths]
wanted = lines("images")
coded = [base64.b64encode(image).decode() for image in images]
expect(predict({"model": "pictures", "images": coded})["predictions"] == wanted, "images in base64")
expect(are_close(predict({"model": "pictures", "images": "data:image/png;base64," + coded[0]})["predictions"], wanted[:1]), "a data URL")
expect(are_close(predict(images[0], {"Content-Type": "image/png"}, "/v1/predict?model=pictures")["predictions"], wanted[:1]), "an image")
form = b"".join(b'--b\r\nContent-Disposition: form-data; name="image"; filename="a.png"\r\nContent-Type: image/png\r\n\r\n' + image + b"\r\n" for image in images)
form += b'--b\r\nContent-Disposition: form-data; name="model"\r\n\r\npictures\r\n--b--\r\n'
expect(predict(form, {"Content-Type": "multipart/form-data; boundary=b"})["predictions"] == wanted, "a form")
rejected(400, "images[0]", b"no image", {"Content-Type": "image/png"}, "/v1/predict?model=pictures")
mixed = predict({"model": "pictures", "images": [coded[0], base64.b64encode(b"no image").decode()]})["predictions"]
expect(are_close(mixed[0], wanted[0]) and "images[1]" in mixed[1]["skipped"], mixed)

# A column of files has their content, never a path.
table = [{"photo": base64.b64encode(open(f"{folder}/{row['photo']}", "rb").read()).decode(), "label": row["label"]}
         for row in csv.DictReader(open(folder + "/photos.csv"))]
expect(predict({"model": "photos", "rows": table})["predictions"] == lines("photos"), "a column of images")
rejected(400, "rows[1], column 'photo'", {"model": "photos", "rows": [table[0], {"photo": "/etc/passwd"}]})
rejected(400, "rows[0], column 'photo': expected the content of the file in base64", {"model": "photos", "rows": [{"photo": folder + "/valid_images/b/0.png"}]})

# ---- an ONNX file and a program of PaddlePaddle ----
for name in ("program", "onnx"):
    types = models[name]["inputs"]
    expect(types and models[name]["outputs"], name)
arrays = npz(program + ".npz")
inputs = {name: shaped(values, shape) for name, (shape, values) in arrays.items() if name in {each["name"] for each in models["program"]["inputs"]}}
outputs = predict({"model": "program", "inputs": inputs})["outputs"]
expect(set(outputs) == {each["name"] for each in models["program"]["outputs"]}, outputs.keys())
shape = [3 if not isinstance(n, int) else n for n in models["onnx"]["inputs"][0]["shape"]]
count = 1
for n in shape:
    count *= n
name = models["onnx"]["inputs"][0]["name"]
values = shaped([((i * 37) % 64) / 16 - 2 for i in range(count)], shape)
whole = predict({"model": "onnx", "inputs": {name: values}})["outputs"]
rejected(400, f"unknown input 'z'", {"model": "onnx", "inputs": {"z": values}})

# ---- many at once: joined batches give the answers of separate ones ----
def one(i):
    row = rows[i % len(rows)]
    answer = predict({"model": "table", "rows": [row], "decode": False})["outputs"]
    return answer, i


single = {i: predict({"model": "table", "rows": [row], "decode": False})["outputs"] for i, row in enumerate(rows)}
with concurrent.futures.ThreadPoolExecutor(16) as pool:
    for answer, i in pool.map(one, range(200)):
        expect(are_close(answer, single[i % len(rows)]), ("a joined batch", i, answer, single[i % len(rows)]))
response, content = call(None, path="/metrics", method="GET")
metrics = {line.rsplit(" ", 1)[0]: float(line.rsplit(" ", 1)[1]) for line in content.decode().splitlines() if not line.startswith("#")}
batches, predicted = metrics['paddle_predict_batches_total{model="table"}'], metrics['paddle_predict_rows_total{model="table"}']
expect(batches < predicted / 2, (batches, predicted))
expect(metrics['paddle_request_duration_seconds_count{model="table"}'] > 200, "durations")
expect(metrics['paddle_requests_waiting{model="table"}'] == 0, "the queue")

# ---- clients that go away, and the other paths ----
for _ in range(20):
    with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
        body = json.dumps({"model": "table", "rows": rows}).encode()
        connection.sendall(b"POST /v1/predict HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer " + key.encode() + b"\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
time.sleep(0.2)
expect(predict({"model": "table", "rows": rows})["predictions"] == lines("csv"), "after clients that went away")
rejected(404, "no language model is served", {"prompt": "a"}, path="/v1/completions")
response, content = call(None, method="GET")
expect(response.status == 405 and response.getheader("Allow") == "POST", response.status)
print("ok")
