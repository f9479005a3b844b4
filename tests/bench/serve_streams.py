#!/usr/bin/env python3
"""Compares the throughput of paddle-serve with llama.cpp's llama-server on several streams, in turns in one run.

  serve_streams.py MODEL.gguf [MODEL.gguf ...] --peer LLAMA_SERVER [--streams 8,16] [--prompt N] [--generate N]
                   [--requests N] [--rounds N] [--threads N] [--activations int8]

As many clients as streams each send N requests one after another (a closed loop), with prompts of random tokens that
share nothing; neither server drafts tokens. The rate is the number of generated tokens over the time of all requests,
reading the prompts included. The ratio is our best rate over the peer's best: above 1 ours is faster. Both servers warm
up with one request. Token 2 counts as the end of a text and is suppressed, as in the files of llm.py --make.
PADDLE_BIN names the folder of our tools (build/bin).
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


class Ours:
    name = "paddle-serve"

    def __init__(self, model, streams, args):
        environment = dict(os.environ, PADDLE_NUM_THREADS=str(args.threads)) if args.threads else None
        command = [os.path.join(BIN, "paddle-serve"), model, "--port", "0", "--streams", str(streams), "--draft", "none", "--activations", args.activations, "--context", str(args.prompt + args.generate + 8)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
        for line in self.process.stdout:
            if line.startswith("listening on"):
                self.port = int(line.rsplit(":", 1)[1])
                return
        sys.exit("paddle-serve did not start")

    def complete(self, prompt, count):
        """The number of tokens that were generated."""
        answer = post(self.port, "/v1/completions", {"prompt": prompt, "max_tokens": count, "temperature": 0, "logit_bias": {"2": -100}})
        return answer["usage"]["completion_tokens"]


class Peer:
    name = "llama-server"

    def __init__(self, model, streams, args):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        context = streams * (args.prompt + args.generate + 8)
        command = [args.peer, "-m", model, "--port", str(self.port), "-np", str(streams), "-c", str(context), "--no-webui"]
        if args.threads:
            command += ["-t", str(args.threads)]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while self.process.poll() is None:
            try:
                connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
                connection.request("GET", "/health")
                if connection.getresponse().status == 200:
                    return
            except OSError:
                pass
            time.sleep(0.2)
        sys.exit("llama-server did not start")

    def complete(self, prompt, count):
        body = {"prompt": prompt, "n_predict": count, "temperature": 0, "ignore_eos": True, "cache_prompt": False}
        return post(self.port, "/completion", body)["tokens_predicted"]


def post(port, path, body):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=3600)
    connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
    response = connection.getresponse()
    text = response.read()
    connection.close()
    if response.status != 200:
        sys.exit(f"{path}: {response.status} {text[:300]}")
    return json.loads(text)


def measure(program, model, streams, args):
    """Generated tokens per second of the closed loop."""
    server = program(model, streams, args)
    rng = random.Random(streams)
    prompts = [[[rng.randrange(3, args.words) for _ in range(args.prompt)] for _ in range(args.requests)] for _ in range(streams)]
    generated = [0] * streams

    def client(number):
        for prompt in prompts[number]:
            generated[number] += server.complete(prompt, args.generate)

    try:
        server.complete([rng.randrange(3, args.words) for _ in range(args.prompt)], 2)
        clients = [threading.Thread(target=client, args=(number,)) for number in range(streams)]
        begin = time.perf_counter()
        for thread in clients:
            thread.start()
        for thread in clients:
            thread.join()
        seconds = time.perf_counter() - begin
    finally:
        server.process.terminate()
        server.process.wait()
    if sum(generated) != streams * args.requests * args.generate:
        sys.exit(f"{program.name} generated {sum(generated)} tokens, not {streams * args.requests * args.generate}")
    return sum(generated) / seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+")
    parser.add_argument("--peer", required=True, help="the program llama-server")
    parser.add_argument("--streams", default="8,16")
    parser.add_argument("--prompt", type=int, default=256, help="tokens of a prompt")
    parser.add_argument("--generate", type=int, default=128, help="tokens that each request generates")
    parser.add_argument("--requests", type=int, default=1, help="of each client")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--threads", type=int, default=0, help="0: what each program chooses")
    parser.add_argument("--activations", default="int8", help="of ours; llama.cpp's are 8 bits (default: int8)")
    parser.add_argument("--words", type=int, default=32000, help="token ids are drawn below this")
    args = parser.parse_args()
    for model in args.models:
        for streams in (int(text) for text in args.streams.split(",")):
            rates = {Ours: [], Peer: []}
            for round_ in range(args.rounds):
                for program in (Ours, Peer) if round_ % 2 == 0 else (Peer, Ours):
                    rates[program].append(measure(program, model, streams, args))
            best = max(rates[Ours]), max(rates[Peer])
            print(json.dumps({"model": os.path.basename(model), "streams": streams, "ours_tokens_per_second": round(best[0], 2), "peer_tokens_per_second": round(best[1], 2), "ratio": round(best[0] / best[1], 2)}), flush=True)


if __name__ == "__main__":
    main()
