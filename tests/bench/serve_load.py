#!/usr/bin/env python3
"""Puts load on paddle-serve and prints JSON lines: serve_load.py MODEL [--requests N] [--streams N] [--clients N]

  prefix   time to first token of a prompt that another running or ended text shares, over a cold one
  idle     share of a processor that the server takes while nothing is asked
  load     N requests, of which 30% are cut by the client and 5% are malformed: wrong answers (a greedy text that
           differs from the same request's before), slots that are still taken afterwards, growth of memory after
           the first fifth

The exit status is 1 if an answer is wrong or a slot is lost. PADDLE_BIN names the folder of our tools (build/bin).
"""
import argparse
import http.client
import json
import os
import random
import socket
import subprocess
import sys
import threading
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BIN = os.environ.get("PADDLE_BIN", os.path.join(ROOT, "build", "bin"))


class Server:
    def __init__(self, model, options):
        self.process = subprocess.Popen([os.path.join(BIN, "paddle-serve"), model, "--port", "0", *options], stdout=subprocess.PIPE, text=True)
        for line in self.process.stdout:
            if line.startswith("listening on"):
                self.port = int(line.rsplit(":", 1)[1])
                return
        sys.exit("the server did not start")

    def post(self, body, path="/v1/completions"):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=600)
        connection.request("POST", path, body if isinstance(body, bytes) else json.dumps(body))
        response = connection.getresponse()
        text = response.read()
        connection.close()
        return response.status, json.loads(text)

    def first_token(self, tokens):
        begin = time.perf_counter()
        status, answer = self.post({"prompt": tokens, "max_tokens": 1, "temperature": 0})
        assert status == 200, answer
        return time.perf_counter() - begin, answer["usage"]["prompt_tokens_details"]["cached_tokens"]

    def metric(self, name):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=600)
        connection.request("GET", "/metrics")
        text = connection.getresponse().read().decode()
        return sum(float(line.split()[-1]) for line in text.split("\n") if line.split("{")[0].split(" ")[0] == name)

    def status(self, key):
        with open(f"/proc/{self.process.pid}/status") as file:
            return next(int(line.split()[1]) for line in file if line.startswith(key + ":"))

    def cpu_seconds(self):
        with open(f"/proc/{self.process.pid}/stat") as file:
            fields = file.read().rsplit(") ", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def memory(self):
        """KiB that belong only to the process."""
        return self.status("RssAnon") + self.status("VmSwap")

    def stop(self):
        self.process.terminate()
        return self.process.wait(60)


def words(server):
    status, answer = server.post({"prompt": [1 << 60], "max_tokens": 1})
    return int(answer["error"]["message"].rsplit(" ", 1)[1])


def prefix(server, count, context):
    rng = random.Random(1)
    shared_length, own = min(1500, context * 3 // 4), 50
    text = lambda n: [rng.randrange(count) for _ in range(n)]
    server.first_token(text(shared_length + own))  # plans and pages
    shared = text(shared_length)
    cold, cached = server.first_token(shared + text(own))
    assert cached == 0, cached
    ended, cached = server.first_token(shared + text(own))
    assert cached >= shared_length, cached
    # While the text that has it is running.
    other = text(shared_length)
    running = threading.Thread(target=server.post, args=({"prompt": other + text(own), "max_tokens": 150, "temperature": 0},))
    before = server.metric("paddle_generated_tokens_total")
    running.start()
    while server.metric("paddle_generated_tokens_total") < before + 2:  # until the prompt is read
        time.sleep(0.02)
    while_running, cached = server.first_token(other + text(own))
    running.join()
    print(json.dumps({"what": "prefix", "shared_tokens": shared_length, "cold_s": round(cold, 4), "ended_over_cold": round(ended / cold, 4), "running_over_cold": round(while_running / cold, 4), "cached_beside": cached}), flush=True)


def idle(server, seconds=10):
    # At first the server makes the plans of all sizes of steps.
    for _ in range(120):
        begin = server.cpu_seconds()
        time.sleep(1)
        if server.cpu_seconds() - begin < 0.02:
            break
    begin = server.cpu_seconds()
    time.sleep(seconds)
    print(json.dumps({"what": "idle", "cpu_percent": round(100 * (server.cpu_seconds() - begin) / seconds, 3)}), flush=True)


def load(server, count, requests, clients):
    rng = random.Random(2)
    bodies = [{"prompt": [rng.randrange(count) for _ in range(rng.randrange(2, 60))], "max_tokens": rng.randrange(1, 24), "temperature": 0} for _ in range(40)]
    expected = [server.post(body)[1]["choices"][0]["text"] for body in bodies]
    malformed = [b"{", b"[]", b'{"prompt": 7}', b'{"prompt": "a", "max_token": 1}', b'{"prompt": [-1]}', b"\xff\xfe", b'{"prompt": "a", "temperature": "hot"}']
    lock, left, wrong, memory = threading.Lock(), [requests], [], {}

    def client(seed):
        own = random.Random(seed)
        while True:
            with lock:
                if left[0] == 0:
                    return
                left[0] -= 1
                number = requests - left[0]
            if number % (requests // 5) == 0:
                memory[number] = server.memory()
            kind, index = own.random(), own.randrange(len(bodies))
            try:
                if kind < 0.05:
                    status, answer = server.post(own.choice(malformed))
                    if status != 400:
                        wrong.append((status, answer))
                elif kind < 0.35:
                    body = json.dumps({**bodies[index], "max_tokens": 400, "stream": own.random() < 0.5}).encode()
                    with socket.create_connection(("127.0.0.1", server.port), timeout=600) as raw:
                        raw.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(body) + body[: own.choice([len(body), len(body), 10])])
                        time.sleep(own.random() * 0.03)
                else:
                    status, answer = server.post(bodies[index])
                    while status == 429:
                        time.sleep(0.05)
                        status, answer = server.post(bodies[index])
                    if status != 200 or answer["choices"][0]["text"] != expected[index]:
                        wrong.append((status, answer, expected[index]))
            except OSError as error:
                wrong.append(repr(error))

    begin = time.time()
    threads = [threading.Thread(target=client, args=(seed,)) for seed in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    seconds = time.time() - begin
    deadline = time.time() + 60
    while time.time() < deadline and server.metric("paddle_requests_running") + server.metric("paddle_requests_waiting") > 0:
        time.sleep(0.1)
    lost = server.metric("paddle_requests_running") + server.metric("paddle_requests_waiting")
    after = server.memory()
    base = memory[requests // 5]
    print(json.dumps({"what": "load", "requests": requests, "seconds": round(seconds, 1), "wrong": len(wrong), "first_wrong": str(wrong[:1])[:300], "lost_slots": lost, "memory_kib": [*memory.values(), after], "growth_percent": round(100 * (after - base) / base, 2)}), flush=True)
    return not wrong and lost == 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--requests", type=int, default=10000)
    parser.add_argument("--streams", type=int, default=8)
    parser.add_argument("--clients", type=int, default=12)
    parser.add_argument("--skip-prefix", action="store_true")
    args, options = parser.parse_known_args()
    server = Server(args.model, ["--streams", str(args.streams), *options])
    count = words(server)
    connection = http.client.HTTPConnection("127.0.0.1", server.port)
    connection.request("GET", "/v1/models")
    context = json.loads(connection.getresponse().read())["data"][0]["max_model_len"]
    if not args.skip_prefix:
        prefix(server, count, context)
    idle(server)
    good = args.requests == 0 or load(server, count, args.requests, args.clients)
    status = server.stop()
    return 0 if good and status == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
