"""Checks a server of the model tests/llm/data/llama: serve_client.py PORT KEY"""

import http.client
import json
import socket
import sys
import threading
import time

port, key = int(sys.argv[1]), sys.argv[2]
HEADERS = {"Content-Type": "application/json", "Authorization": "Bearer " + key}


def call(method, path, body=None, headers=None):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    data = None if body is None else body if isinstance(body, (bytes, str)) else json.dumps(body)
    connection.request(method, path, data, HEADERS if headers is None else headers)
    response = connection.getresponse()
    text = response.read().decode()
    connection.close()
    return response, text


def post(path, body):
    response, text = call("POST", path, body)
    return response.status, json.loads(text)


def expect(condition, what):
    if not condition:
        sys.exit("FAIL: %s" % (what,))


def rejected(status, words, path, body, headers=None):
    response, text = call("POST", path, body, headers)
    error = json.loads(text)["error"]
    expect(response.status == status and words in error["message"], (status, words, response.status, text))
    return response, error


def stream(path, body):
    """The events of a streamed response."""
    response, text = call("POST", path, {**body, "stream": True})
    expect(response.getheader("Content-Type").startswith("text/event-stream"), response.getheaders())
    lines = [line[6:] for line in text.split("\n") if line.startswith("data: ")]
    expect(lines[-1] == "[DONE]", lines[-1:])
    return [json.loads(line) for line in lines[:-1]]


def metric(name):
    response, text = call("GET", "/metrics")
    values = [float(line.split()[-1]) for line in text.split("\n") if line.split(" ")[0] == name]
    return values[0] if values else 0.0


# The paths.
response, text = call("GET", "/health", headers={})
expect(response.status == 200 and json.loads(text) == {"status": "ok"}, text)
response, text = call("GET", "/")
expect(response.status == 200 and response.getheader("Content-Type") == "text/html; charset=utf-8", response.getheaders())
expect(text.startswith("<!doctype html>") and "<title>Chat</title>" in text and "v1/chat/completions" in text and text.rstrip().endswith("</html>"), text[:200])
response, text = call("GET", "/v1/models")
models = json.loads(text)["data"]
expect([m["id"] for m in models] == ["llama"] and models[0]["max_model_len"] == 64, text)
response, text = call("GET", "/v1/models", headers={})
expect(response.status == 401, response.status)
response, text = call("GET", "/v1/models", headers={"Authorization": "Bearer wrong-key"})
expect(response.status == 401, response.status)
response, text = call("GET", "/v1/models", headers={"Authorization": "bearer  " + key, "Host": "any.example", "Origin": "http://any.example"})
expect(response.status == 200, "a scheme in small letters; keys in place of names")
expect(call("GET", "/v1/none")[0].status == 404, "a path that is not there")
expect(call("GET", "/v1/completions")[0].status == 405, "another method")

# A text: greedy, whole and streamed, with log-probabilities.
GREEDY = {"model": "llama", "prompt": "123", "max_tokens": 12, "temperature": 0}
status, whole = post("/v1/completions", GREEDY)
expect(status == 200 and whole["object"] == "text_completion", whole)
choice = whole["choices"][0]
alone = choice["text"]
expect(len(alone) == 12 and choice["finish_reason"] == "length", whole)
expect(whole["usage"]["prompt_tokens"] == 3 and whole["usage"]["completion_tokens"] == 12, whole["usage"])
events = stream("/v1/completions", {**GREEDY, "stream_options": {"include_usage": True}})
expect("".join(e["choices"][0]["text"] for e in events[:-1]) == alone, events)
expect(events[-2]["choices"][0]["finish_reason"] == "length" and events[-1]["choices"] == [], events[-2:])
expect(events[-1]["usage"]["completion_tokens"] == 12, events[-1])
# The prompt is in the cache now, but for the token whose logits are wanted.
expect(events[-1]["usage"]["prompt_tokens_details"]["cached_tokens"] == 2, events[-1])
status, scored = post("/v1/completions", {**GREEDY, "logprobs": 2})
logprobs = scored["choices"][0]["logprobs"]
expect("".join(logprobs["tokens"]) == alone and len(logprobs["top_logprobs"][0]) == 2, logprobs)
expect(all(max(t.values()) == v < 0 for t, v in zip(logprobs["top_logprobs"], logprobs["token_logprobs"])), logprobs)
status, ids = post("/v1/completions", {**GREEDY, "prompt": [1, 2, 3]})
expect(ids["choices"][0]["text"] == alone, ids)
status, stopped = post("/v1/completions", {**GREEDY, "stop": [alone[4:6]]})
expect(stopped["choices"][0]["text"] == alone[: alone.index(alone[4:6])] and stopped["choices"][0]["finish_reason"] == "stop", stopped)
status, biased = post("/v1/completions", {**GREEDY, "logit_bias": {"7": 100}, "max_tokens": 3})
expect(biased["choices"][0]["text"] == "777", biased)
status, full = post("/v1/completions", {**GREEDY, "max_tokens": 500})
expect(full["usage"]["total_tokens"] == 64 and full["choices"][0]["finish_reason"] == "length", full["usage"])

# The prompt's log-probabilities are those of its tokens when they are generated.
prompt = [1, 2, 3] + [ord(c) - 48 for c in alone]
for length in (0, 1):
    status, echoed = post("/v1/completions", {**GREEDY, "prompt": prompt, "max_tokens": length, "echo": True, "logprobs": 2})
    found = echoed["choices"][0]["logprobs"]
    expect(echoed["choices"][0]["text"][:15] == "123" + alone and len(found["tokens"]) == 15 + length, echoed)
    expect(found["token_logprobs"][0] is None and found["top_logprobs"][0] is None, found)
    expect(found["token_logprobs"][3:15] == logprobs["token_logprobs"] and found["top_logprobs"][3:15] == logprobs["top_logprobs"], (found, logprobs))
    expect(echoed["usage"]["completion_tokens"] == length, echoed["usage"])
status, echoed = post("/v1/completions", {**GREEDY, "echo": True})
expect(echoed["choices"][0]["text"] == "123" + alone, echoed)

# Guesses of tokens are counted, and change nothing.
repeated = {**GREEDY, "prompt": "12345678" * 4, "max_tokens": 30}
details = post("/v1/completions", repeated)[1]["usage"]["completion_tokens_details"]
expect(details["accepted_prediction_tokens"] >= 0 and details["rejected_prediction_tokens"] >= 0, details)
expect(metric("paddle_draft_tokens_total") >= metric("paddle_draft_accepted_tokens_total"), text)

# Requests that must be given together read what they share once.
shared = [("987654321" * 5)[:42] + str(i) * 3 for i in range(3)]
together = post("/v1/completions", {**GREEDY, "prompt": shared, "max_tokens": 5})[1]
expect(together["usage"]["prompt_tokens_details"]["cached_tokens"] == 2 * 42, together["usage"])
for i, prompt in enumerate(shared):
    expect(together["choices"][i]["text"] == post("/v1/completions", {**GREEDY, "prompt": prompt, "max_tokens": 5})[1]["choices"][0]["text"], together)

# A conversation.
CHAT = {"messages": [{"role": "user", "content": "12"}], "max_tokens": 9, "temperature": 0}
status, chat = post("/v1/chat/completions", CHAT)
message = chat["choices"][0]["message"]
expect(status == 200 and message["role"] == "assistant" and len(message["content"]) == 9, chat)
parts = {**CHAT, "messages": [{"role": "user", "content": [{"type": "text", "text": "1"}, {"type": "text", "text": "2"}]}]}
expect(post("/v1/chat/completions", parts)[1]["choices"][0]["message"] == message, "a content in parts")
events = stream("/v1/chat/completions", {**CHAT, "n": 2, "logprobs": True, "top_logprobs": 1})
for index in (0, 1):
    text = "".join(c["delta"].get("content", "") for e in events for c in e["choices"] if c["index"] == index)
    expect(text == message["content"], events)
seeded = {**CHAT, "temperature": 2, "seed": 5}
expect(post("/v1/chat/completions", seeded)[1]["choices"] == post("/v1/chat/completions", seeded)[1]["choices"], "one seed")

# Rejections name the key.
response, error = rejected(400, "unknown key 'max_token' (did you mean 'max_tokens'?)", "/v1/completions", {**GREEDY, "max_token": 1})
expect(error["param"] == "max_token" and error["type"] == "invalid_request_error", error)
rejected(400, "the prompt has 70 tokens; the model's context is 64", "/v1/completions", {**GREEDY, "prompt": "1" * 70})
rejected(400, "'temperature' is -1", "/v1/completions", {**GREEDY, "temperature": -1})
rejected(400, "'max_tokens' is \"9\"", "/v1/completions", {**GREEDY, "max_tokens": "9"})
rejected(400, "'tools' is not supported", "/v1/chat/completions", {**CHAT, "tools": [{}]})
rejected(400, "no text that the model's tokens can write", "/v1/chat/completions", {**CHAT, "response_format": {"type": "json_object"}})
rejected(400, "$.not: this keyword is not supported", "/v1/chat/completions", {**CHAT, "response_format": {"type": "json_schema", "json_schema": {"schema": {"not": {}}}}})
rejected(400, "'response_format' needs a 'type'", "/v1/chat/completions", {**CHAT, "response_format": {"type": "xml"}})
rejected(404, "no model for embeddings is served", "/v1/embeddings", {"input": "1"})

# Constrained sequences, on their own and in a batch with others.
for schema, check in (({"type": "integer", "minimum": 250, "maximum": 4000}, lambda t: 250 <= int(t) <= 4000), ({"enum": [11, 222]}, lambda t: t in ("11", "222"))):
    form = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}
    choices = post("/v1/chat/completions", {**CHAT, "temperature": 2, "n": 3, "response_format": form})[1]["choices"]
    for choice in choices:
        expect(check(choice["message"]["content"]) and choice["finish_reason"] == "stop", choice)
form = {"type": "regex", "pattern": "[5-7]{3}9"}
text = post("/v1/completions", {**GREEDY, "response_format": form})[1]["choices"][0]["text"]
expect(len(text) == 4 and set(text[:3]) <= set("567") and text[3] == "9", text)
rejected(400, "there are no 'messages'", "/v1/chat/completions", {"max_tokens": 1})
rejected(400, "a message has no 'content'", "/v1/chat/completions", {"messages": [{"role": "user"}]})
rejected(400, "not a token; there are 50", "/v1/completions", {**GREEDY, "prompt": [1, 50]})
rejected(400, "'echo' is not for streams", "/v1/completions", {**GREEDY, "echo": True, "stream": True})
rejected(404, "there is no model 'other'", "/v1/completions", {**GREEDY, "model": "other"})
rejected(400, "the request", "/v1/completions", "{\"prompt\": ")
rejected(400, "not a JSON object", "/v1/completions", "[1]")
rejected(401, "API key", "/v1/completions", GREEDY, {})

# Requests that are not HTTP, or do not end, are rejected without harm to others.
for data, answer in ((b"nonsense\r\n\r\n", b"400"), (b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: x\r\n\r\n", b"400"),
                     (b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999\r\n\r\n", b"413"),
                     (b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", b"501"),
                     (b"GET /health HTTP/1.1\r\n" + b"a: b\r\n" * 20000, b"431")):
    with socket.create_connection(("127.0.0.1", port), timeout=60) as raw:
        raw.sendall(data)
        expect(answer in raw.recv(4096).split(b"\r\n")[0], (data[:40], answer))
# Two requests over one connection.
connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
for _ in range(2):
    connection.request("POST", "/v1/completions", json.dumps(GREEDY), HEADERS)
    expect(json.loads(connection.getresponse().read())["choices"][0]["text"] == alone, "a connection that is used twice")
connection.close()

# Batch composition changes nothing: more requests at a time than there are slots.
results = [None] * 12
def ask(i):
    results[i] = post("/v1/completions", {**GREEDY, "prompt": "123" if i % 2 else "9" * (i + 1)})
threads = [threading.Thread(target=ask, args=(i,)) for i in range(len(results))]
for thread in threads: thread.start()
for thread in threads: thread.join()
for i, (status, result) in enumerate(results):
    expect(status == 200, result)
    if i % 2: expect(result["choices"][0]["text"] == alone, result)
    else: expect(result["choices"] == post("/v1/completions", {**GREEDY, "prompt": "9" * (i + 1)})[1]["choices"], result)

# More texts than ever have room.
rejected(400, "36 completions are requested at a time; this server takes at most 35", "/v1/completions", {**GREEDY, "n": 36})
rejected(400, "36 completions are requested at a time", "/v1/completions", {**GREEDY, "prompt": ["1"] * 36})

# A full queue is rejected at once; clients that leave make room.
def leave():
    raw = socket.create_connection(("127.0.0.1", port), timeout=60)
    body = json.dumps({**GREEDY, "max_tokens": 60, "n": 16}).encode()
    raw.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + key.encode() + b"\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
    return raw
rejected = False
for _ in range(40):
    clients = [leave() for _ in range(6)]
    response, text = call("POST", "/v1/completions", {**GREEDY, "n": 14})
    rejected = response.status == 429 and response.getheader("Retry-After") == "1"
    for client in clients: client.close()
    if rejected: break
expect(rejected, "a full queue")
deadline = time.time() + 30
while time.time() < deadline:
    response, text = call("GET", "/metrics")
    if 'paddle_requests_running{model="llama"} 0' in text and 'paddle_requests_waiting{model="llama"} 0' in text: break
    time.sleep(0.05)
expect('paddle_requests_running{model="llama"} 0' in text, text)
expect(metric("paddle_requests_cancelled_total") > 0 and metric("paddle_requests_rejected_total") > 0, text)
expect(post("/v1/completions", GREEDY)[1]["choices"][0]["text"] == alone, "after clients that left")

# Histograms: buckets count everything below their bound, and the last one all.
response, text = call("GET", "/metrics")
for name in ("time_to_first_token_seconds", "time_per_output_token_seconds", "request_duration_seconds"):
    expect(text.count(f"# TYPE paddle_{name} histogram") == 1, name)
    lines = [line.rsplit(" ", 1) for line in text.split("\n") if line.startswith(f'paddle_{name}_bucket{{model="llama",le="')]
    bounds = [float(line[0].split('le="')[1][:-2].replace("+Inf", "inf")) for line in lines]
    counts = [int(line[1]) for line in lines]
    expect(bounds == sorted(bounds) and bounds[-1] == float("inf") and counts == sorted(counts), (name, lines))
    total, count = metric(f'paddle_{name}_sum{{model="llama"}}'), metric(f'paddle_{name}_count{{model="llama"}}')
    expect(count == counts[-1] > 20 and 0 < total < 1e3, (name, total, count))
    expect(sum(b - a for a, b in zip([0, *counts], counts)) == count and total <= sum((b - a) * min(bound, 1e3) for a, b, bound in zip([0, *counts], counts, bounds)), (name, lines))
ended = metric('paddle_request_duration_seconds_count{model="llama"}')
expect(post("/v1/completions", {**GREEDY, "n": 2})[0] == 200, "two texts")
expect(metric('paddle_request_duration_seconds_count{model="llama"}') == ended + 2, "texts that ended")
print("ok", alone)
