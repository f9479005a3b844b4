"""Ctrl-C in a conversation: chat_interrupts.py paddle-infer MODEL

One during an answer ends the answer, and the conversation continues; one while a message is awaited
ends the program with 130, and so do two during an answer.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

infer, model = sys.argv[1:]
folder = tempfile.mkdtemp()
long_model = os.path.join(folder, "model")
shutil.copytree(model, long_model)
config = os.path.join(long_model, "config.json")
content = json.load(open(config))
content["max_position_embeddings"] = 100_000  # answers that take long
json.dump(content, open(config, "w"))


def start(*options):
    command = [infer, long_model, "--chat", "--temperature", "1", "--length", "90000", "--draft", "none", *options]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def send(process, text):
    process.stdin.write(text)
    process.stdin.flush()


def read_some(process):
    read = os.read(process.stdout.fileno(), 1)
    assert read, "the program ended"
    return read


def read_line(process):
    out = b""
    while not out.endswith(b"\n"):
        out += read_some(process)
    return out


try:
    process = start()
    for message in (b"12\n", b"34\n"):
        send(process, message)
        read_some(process)  # it answers
        process.send_signal(signal.SIGINT)
        line = read_line(process)
        assert len(line) < 80_000, "the answer was not ended"
    process.send_signal(signal.SIGINT)
    time.sleep(0.3)  # if the signal came before it waited for a message, the next one ends it
    if process.poll() is None:
        process.send_signal(signal.SIGINT)
    status = process.wait(timeout=30)
    assert status in (130, -signal.SIGINT), f"status {status}"

    process = start()
    send(process, b"12\n")
    read_some(process)
    process.send_signal(signal.SIGINT)
    process.stdin.close()
    process.stdout.read()
    assert process.wait(timeout=30) == 0, "the end of the conversation after an answer that was ended"
finally:
    process.kill()
    shutil.rmtree(folder)
