"""Called by language_model.sh with an empty folder."""
import json
import os
import shutil
import signal
import sys
import threading
import time

import paddle_toolchain as paddle

folder = sys.argv[1]
words = {"w%d" % i: i for i in range(50)}
tokenizer = {
    "model": {"type": "WordLevel", "vocab": words, "unk_token": "w0"},
    "pre_tokenizer": {"type": "WhitespaceSplit"},
}
for name in ("llama", "bert"):
    os.makedirs(f"{folder}/{name}")
    for file in ("config.json", "model.safetensors"):
        shutil.copy(f"tests/llm/data/{name}/{file}", f"{folder}/{name}/{file}")
    with open(f"{folder}/{name}/tokenizer.json", "w") as file:
        json.dump(tokenizer, file)
with open(f"{folder}/llama/tokenizer_config.json", "w") as file:
    json.dump({"chat_template": "{% for m in messages %}{{ m.content }} {% endfor %}"}, file)


def raises(kind, call, part=""):
    try:
        call()
    except kind as error:
        assert part in str(error), error
        return
    raise SystemExit(f"{kind.__name__} with '{part}' is missing")


model = paddle.LanguageModel(f"{folder}/llama")
assert model.vocabulary_size == 50 and model.parameter_count > 0 and model.context > 0
assert "parameters" in repr(model), repr(model)

# The largest of the last logits that transformers computes.
prompt = "w38 w16 w18 w38 w38 w37 w24 w10 w42"
first = model.generate(prompt, max_tokens=1, temperature=0)
assert first == " w16" and (first.prompt_tokens, first.generated_tokens) == (9, 1), repr(first)
assert model.generate([13, 18, 32, 32, 3, 14, 38, 35, 21], max_tokens=1, temperature=0) == " w42"

assert model.encode("w38 w16 w18") == [38, 16, 18] and model.decode([38, 16, 18]) == "w38 w16 w18"

# One text: at once, in pieces, and through a callback that ends it.
whole = model.generate(prompt, max_tokens=12, temperature=0)
assert whole.generated_tokens == 12
assert "".join(model.stream(prompt, max_tokens=12, temperature=0)) == whole
seen = []
part = model.generate(prompt, max_tokens=12, temperature=0, on_text=lambda piece: seen.append(piece) or len(seen) < 3)
assert whole.startswith(part) and part.generated_tokens < 12, (part, part.generated_tokens)
for piece in model.stream(prompt, max_tokens=12, temperature=0):
    break
assert model.generate(prompt, max_tokens=12, temperature=0) == whole, "a stream that was left changes nothing"
assert model.generate(prompt, max_tokens=9, seed=1) == model.generate(prompt, max_tokens=9, seed=1)
assert model.generate(prompt, max_tokens=12, temperature=0, stop=whole[4:8]) == whole[: whole.index(whole[4:8])]
assert set(model.generate(prompt, max_tokens=20, regex="(w1|w2)+").split()) <= {"w1", "w2"}

# Conversations.
messages = [{"role": "user", "content": prompt}]
assert model.has_chat_template and model.chat_prompt(messages) == prompt + " "
assert model.generate(messages, max_tokens=12, temperature=0) == whole

# Threads share a model: calls run one after the other.
results = []
threads = [
    threading.Thread(target=lambda: results.append(model.generate(prompt, max_tokens=12, temperature=0))) for _ in range(4)
]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert results == [whole] * 4, results

# Exceptions of the callback, and Ctrl-C.
def fails(piece):
    raise KeyError(piece)


raises(KeyError, lambda: model.generate(prompt, on_text=fails))
threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
raises(KeyboardInterrupt, lambda: [model.generate(prompt, max_tokens=100, on_text=lambda _: time.sleep(0.01)) for _ in range(50)])
assert model.generate(prompt, max_tokens=12, temperature=0) == whole

raises(paddle.UsageError, lambda: paddle.LanguageModel("no-such-folder"), "no-such-folder")
raises(paddle.UsageError, lambda: model.generate(prompt, temperature=-1), "temperature")
raises(paddle.UsageError, lambda: model.generate(prompt, schema={"type": "object"}, regex="a"), "mutually exclusive")
raises(paddle.UsageError, lambda: model.generate(prompt, tools=[]), "messages")
raises(paddle.UsageError, lambda: model.stream(prompt, on_text=print), "on_text")
raises(paddle.DataError, lambda: model.decode([50]), "50")
raises(TypeError, lambda: model.generate(prompt, temprature=1), "temprature")
raises(TypeError, lambda: model.generate([1.5]))

encoder = paddle.TextEncoder(f"{folder}/bert")
vector = encoder.embed("w3 w4 w5")
assert vector.shape == [encoder.width] and encoder.context > 0
assert abs((vector * vector).sum().item() - 1) < 1e-5 and vector.tolist() == encoder.embed("w3 w4 w5").tolist()
raises(paddle.UsageError, lambda: paddle.TextEncoder("no-such-folder"), "no-such-folder")
