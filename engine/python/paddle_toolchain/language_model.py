"""Text generation with language models."""
import collections.abc
import json
import os
import queue
import threading

from . import _paddle


class Generated(str):
    """The generated text, with the numbers of tokens of the prompt and of the text."""

    def __new__(cls, text, prompt_tokens, generated_tokens):
        out = super().__new__(cls, text)
        out.prompt_tokens = prompt_tokens
        out.generated_tokens = generated_tokens
        return out


def _conversation(messages, tools=None):
    """The variables of a chat template, as JSON."""
    variables = {"messages": list(messages), "add_generation_prompt": True}
    if tools is not None:
        variables["tools"] = list(tools)
    return json.dumps(variables)


def _is_messages(prompt):
    return not isinstance(prompt, str) and len(prompt) > 0 and isinstance(prompt[0], collections.abc.Mapping)


def _arguments(
    prompt,
    on_text=None,
    *,
    tools=None,
    max_tokens=200,
    temperature=1.0,
    top_k=0,
    top_p=1.0,
    min_p=0.0,
    repetition_penalty=1.0,
    presence_penalty=0.0,
    frequency_penalty=0.0,
    seed=0,
    stop=(),
    schema=None,
    regex=None,
):
    is_chat = _is_messages(prompt)
    if tools is not None and not is_chat:
        raise _paddle.UsageError("generate: tools need a list of messages")
    if schema is not None and not isinstance(schema, str):
        schema = json.dumps(schema)
    return {
        "prompt": _conversation(prompt, tools) if is_chat else prompt,
        "is_chat": is_chat,
        "on_text": on_text,
        "max_tokens": max_tokens,
        "temperature": temperature,
        "top_k": top_k,
        "top_p": top_p,
        "min_p": min_p,
        "repetition_penalty": repetition_penalty,
        "presence_penalty": presence_penalty,
        "frequency_penalty": frequency_penalty,
        "seed": seed,
        "stops": [stop] if isinstance(stop, str) else list(stop),
        "json_schema": schema or "",
        "regex": regex or "",
    }


class LanguageModel(_paddle.LanguageModel):
    """A language model of a GGUF file or a Hugging Face folder.

    `context`: tokens of prompt and answer, 0 for the model's as far as memory allows. `kv_cache`: "f32", "bf16" or
    "int8". `activations`: "int16", "int8" or "float32" in products with block-quantized weights. `weights`: "as-is",
    "int8" or "int4". `adapter`: the folder of a PEFT adapter.
    """

    def __new__(cls, path, *, context=0, kv_cache="f32", activations="int16", weights="as-is", adapter=None,
                family=None):
        adapter = "" if adapter is None else os.fspath(adapter)
        return super().__new__(cls, path, context, kv_cache, activations, weights, adapter, family or "")

    def generate(self, prompt, **options):
        """Continues a text or a list of token ids, or answers a list of messages ({"role": …, "content": …}).

        Options: `max_tokens`, `temperature` (0: always the most likely token), `top_k`, `top_p`, `min_p`,
        `repetition_penalty`, `presence_penalty`, `frequency_penalty`, `seed`, `stop` (a text or several), `schema` (a
        JSON Schema that the text is valid for), `regex`, `tools` (for messages), and `on_text`, which is called with
        each piece of text and ends the generation by returning False. Gives a str with the attributes
        `prompt_tokens` and `generated_tokens`.
        """
        return Generated(*self._generate(**_arguments(prompt, **options)))

    def stream(self, prompt, **options):
        """The pieces of the text, as they are generated. Takes the options of `generate` but `on_text`.

        Leaving the loop ends the generation.
        """
        if "on_text" in options:
            raise _paddle.UsageError("stream: the pieces are the items; on_text belongs to generate")
        return self._pieces(_arguments(prompt, **options))

    def _pieces(self, arguments):
        # The model generates on a thread of its own, at most one piece ahead of the loop's needs.
        pieces = queue.Queue(maxsize=64)
        ended = threading.Event()

        def put(item):
            while not ended.is_set():
                try:
                    pieces.put(item, timeout=0.1)
                    return True
                except queue.Full:
                    continue
            return False

        def run():
            try:
                self._generate(**{**arguments, "on_text": put})
                put(None)
            except BaseException as error:  # raised again by the loop
                put(error)

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        try:
            while (piece := pieces.get()) is not None:
                if isinstance(piece, BaseException):
                    raise piece
                if piece:
                    yield piece
        finally:
            ended.set()
            thread.join()

    def encode(self, text, special=True):
        """The token ids of a text. `special`: special tokens in the text are parsed, and the tokenizer's own beginning
        and end are added."""
        return self._encode(text, special)

    def chat_prompt(self, messages, tools=None):
        """A conversation as the model's chat template writes it, with the beginning of an answer."""
        return self._chat_prompt(_conversation(messages, tools))

    def __repr__(self):
        return f"LanguageModel({self.name!r}, {self.parameter_count:,} parameters, context {self.context})"
