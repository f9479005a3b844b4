"""Lookups in tables that are only read against MGET of Redis, and the time to open large tables.

table_lookups.py [--rows N] [--large-rows N] [--rounds N]: builds nothing; needs bench_table_lookups in build/bin
and redis-server. Prints one JSON object.
"""

import argparse
import json
import os
import random
import socket
import statistics
import subprocess
import tempfile
import time

BENCH = os.path.join(os.environ.get("PADDLE_BIN", "build/bin"), "bench_table_lookups")
KEYS_OF_COMMAND, VALUE_BYTES = 128, 64


def bench(*words):
    return subprocess.run([BENCH, *map(str, words)], check=True, capture_output=True, text=True).stdout.split()


def command(*words):
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(w), w) for w in words)


class Redis:
    """A server in memory with rows of VALUE_BYTES under 8-byte keys."""

    def __init__(self, folder, rows):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.process = subprocess.Popen(
            ["redis-server", "--port", str(port), "--save", "", "--appendonly", "no", "--dir", folder],
            stdout=subprocess.DEVNULL,
        )
        while True:
            try:
                self.socket = socket.create_connection(("127.0.0.1", port))
                break
            except ConnectionRefusedError:
                time.sleep(0.05)
        for first in range(0, rows, 1000):
            keys = range(first, min(rows, first + 1000))
            pairs = [w for key in keys for w in (key.to_bytes(8, "little"), bytes(VALUE_BYTES))]
            self.exchange(command(b"MSET", *pairs), len(b"+OK\r\n"))

    def exchange(self, request, answer_bytes):
        self.socket.sendall(request)
        while answer_bytes > 0:
            part = self.socket.recv(min(answer_bytes, 1 << 20))
            if not part:
                raise SystemExit("Redis closed the connection")
            answer_bytes -= len(part)

    def processor_seconds(self):
        with open(f"/proc/{self.process.pid}/stat") as f:
            fields = f.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def lookups(self, rows, commands, pipelined=100):
        """Keys a second of the server's processor time."""
        chooser = random.Random(1)
        requests = []
        for _ in range(commands // pipelined):
            some = [
                command(b"MGET", *(chooser.randrange(rows).to_bytes(8, "little") for _ in range(KEYS_OF_COMMAND)))
                for _ in range(pipelined)
            ]
            requests.append(b"".join(some))
        value = len(b"$%d\r\n" % VALUE_BYTES) + VALUE_BYTES + 2
        answer = pipelined * (len(b"*%d\r\n" % KEYS_OF_COMMAND) + KEYS_OF_COMMAND * value)
        before = self.processor_seconds()
        for request in requests:
            self.exchange(request, answer)
        return len(requests) * pipelined * KEYS_OF_COMMAND / (self.processor_seconds() - before)

    def close(self):
        self.process.terminate()
        self.process.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=2_000_000, help="of the table that is searched")
    parser.add_argument("--large-rows", type=int, default=97_000_000, help="of the one that is opened: 7 GB")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    out = {}
    with tempfile.TemporaryDirectory() as folder:
        bench("write", f"{folder}/table", options.rows)
        redis = Redis(folder, options.rows)
        ours, peers = [], []
        for _ in range(options.rounds):
            ours.append(float(bench("read", f"{folder}/table", options.rows, 4_000_000)[0]))
            peers.append(redis.lookups(options.rows, 10_000))
        redis.close()
        out["lookups"] = {"rows": options.rows, "ours": statistics.median(ours), "redis": statistics.median(peers)}
        out["lookups"]["ratio"] = out["lookups"]["ours"] / out["lookups"]["redis"]
        sizes = {}
        for name, rows in (("small", options.large_rows // 100), ("large", options.large_rows)):
            bench("write", f"{folder}/{name}", rows)
            times = [bench("open", f"{folder}/{name}") for _ in range(2 * options.rounds)]
            sizes[name] = {
                "bytes": rows * (8 + VALUE_BYTES),
                "seconds": statistics.median(float(t[0]) for t in times),
                "resident": max(float(t[1]) for t in times),
            }
        out["open"] = sizes | {"ratio": sizes["large"]["seconds"] / sizes["small"]["seconds"]}
    print(json.dumps(out))


main()
