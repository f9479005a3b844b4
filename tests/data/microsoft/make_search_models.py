"""Writes models that generate tokens with ONNX Runtime's operators for that, whose decoders are one random layer of
attention, and what it computes with them, as make_models.py does. Needs numpy, onnx, onnxruntime.
"""
import numpy as np
import onnx
from make_models import DOMAIN, HERE, answers, kept
from onnx import TensorProto, helper, numpy_helper

RNG = np.random.default_rng(3)
WORDS, WIDTH, HEADS, SIZE = 20, 8, 2, 4
PAD = 1
INPUTS = ["input_ids", "max_length", "min_length", "num_beams", "num_return_sequences", "length_penalty",
          "repetition_penalty", "vocab_mask", "prefix_vocab_mask", "attention_mask", "decoder_input_ids",
          "logits_processor"]
INPUTS_OF_ONE = ["input_ids", "max_length", "min_length", "repetition_penalty", "vocab_mask", "prefix_vocab_mask",
                 "attention_mask", "presence_mask", "seed"]
node = helper.make_node


def floats(*shape, scale=1.0):
    return (scale * RNG.standard_normal(shape)).astype(np.float32)


def info(name, kind, *shape):
    return helper.make_tensor_value_info(name, {"i": TensorProto.INT32, "f": TensorProto.FLOAT}[kind], shape)


def graph(name, nodes, inputs, outputs, constants):
    read = {i for n in nodes for i in n.input}
    return helper.make_graph(nodes, name, inputs, outputs,
                             [numpy_helper.from_array(v, k) for k, v in constants.items() if k in read])


def plain_decoder():
    """In the form of GPT-2: keys and values are kept in one tensor for each layer."""
    constants = {"E": floats(WORDS, WIDTH), "P": floats(64, WIDTH, scale=.7), "W": floats(WIDTH, 3 * WIDTH, scale=.5),
                 "B": floats(3 * WIDTH, scale=.1), "O": floats(WIDTH, WORDS, scale=.8)}
    nodes = [node("Gather", ["E", "input_ids"], ["e"]), node("Gather", ["P", "position_ids"], ["p"]),
             node("Add", ["e", "p"], ["x"]),
             node("Attention", ["x", "W", "B", "attention_mask", "past_0"], ["a", "present_0"], num_heads=HEADS,
                  unidirectional=1, domain=DOMAIN),
             node("Add", ["x", "a"], ["y"]), node("MatMul", ["y", "O"], ["logits"])]
    return graph("decoder", nodes,
                 [info("input_ids", "i", "b", "s"), info("position_ids", "i", "b", "s"),
                  info("attention_mask", "i", "b", "t"), info("past_0", "f", 2, "b", HEADS, "p", SIZE)],
                 [info("logits", "f", "b", "s", WORDS), info("present_0", "f", 2, "b", HEADS, "t", SIZE)], constants)


def in_heads(x, weight, out):
    return [node("MatMul", [x, weight], [out + "_m"]), node("Reshape", [out + "_m", "split"], [out + "_r"]),
            node("Transpose", [out + "_r"], [out], perm=[0, 2, 1, 3])]


def attended(name, q, k, v, bias, out):
    scores = [node("Transpose", [k], [name + "t"], perm=[0, 1, 3, 2]), node("MatMul", [q, name + "t"], [name + "s"])]
    if bias:
        scores.append(node("Add", [name + "s", bias], [name + "b"]))
    return [*scores, node("Softmax", [scores[-1].output[0]], [name + "w"], axis=-1),
            node("MatMul", [name + "w", v], [name + "c"]), node("Transpose", [name + "c"], [name + "r"], perm=[0, 2, 1, 3]),
            node("Reshape", [name + "r", "joined"], [out])]


def decoder_nodes(ids, past_key, past_value, key, value, bias):
    """Attention to what stood before, then to the encoder's keys."""
    nodes = [node("Gather", ["D", ids], ["x"]), *in_heads("x", "SQ", "q"), *in_heads("x", "SK", "k"),
             *in_heads("x", "SV", "v")]
    if past_key:
        nodes += [node("Concat", [past_key, "k"], ["present_key_self_0"], axis=2),
                  node("Concat", [past_value, "v"], ["present_value_self_0"], axis=2)]
    else:
        nodes += [node("Identity", ["k"], ["present_key_self_0"]), node("Identity", ["v"], ["present_value_self_0"])]
    return [*nodes, *attended("self", "q", "present_key_self_0", "present_value_self_0", None, "a"),
            node("Add", ["x", "a"], ["y"]), *in_heads("y", "CQ", "cq"), *attended("cross", "cq", key, value, bias, "c"),
            node("Add", ["y", "c"], ["z"]), node("MatMul", ["z", "O"], ["logits"])]


def encoder_and_decoder(speech, first_step):
    """`first_step`: the encoder takes the decoder's first step too."""
    constants = {"E": floats(WORDS, WIDTH), "F": floats(6, WIDTH), "D": floats(WORDS, WIDTH),
                 "O": floats(WIDTH, WORDS, scale=.9), "split": np.array([0, 0, HEADS, SIZE]),
                 "joined": np.array([0, 0, WIDTH]), "middle": np.array([1, 2]), "one": np.float32(1),
                 "far": np.float32(1e4), **{k: floats(WIDTH, WIDTH, scale=.6) for k in ("SQ", "SK", "SV", "CQ", "CK", "CV")}}
    mask = [] if speech else [info("encoder_attention_mask", "i", "b", "t")]
    biased = [] if speech else [
        node("Cast", ["encoder_attention_mask"], ["m0"], to=1), node("Unsqueeze", ["m0", "middle"], ["m1"]),
        node("Sub", ["m1", "one"], ["m2"]), node("Mul", ["m2", "far"], ["bias"])]
    bias = None if speech else "bias"
    kept_of = {k: [info(f"{k}_{what}_{side}_0", "f", "b", HEADS, "p" if side == "self" else "t", SIZE)
                   for side in ("self", "cross") for what in ("key", "value")] for k in ("past", "present")}
    logits, hidden = info("logits", "f", "b", "s", WORDS), info("encoder_hidden_states", "f", "b", "t", WIDTH)
    source = info("encoder_input_ids", "f", "b", 6, "t") if speech else info("encoder_input_ids", "i", "b", "t")
    looked = [node("Transpose", ["encoder_input_ids"], ["f"], perm=[0, 2, 1]), node("MatMul", ["f", "F"], ["h"])] if speech \
        else [node("Gather", ["E", "encoder_input_ids"], ["h"])]
    encoder = [*looked, node("Tanh", ["h"], ["encoder_hidden_states"]),
               *in_heads("encoder_hidden_states", "CK", "present_key_cross_0"),
               *in_heads("encoder_hidden_states", "CV", "present_value_cross_0")]
    inputs, outputs = [source, *mask], kept_of["present"][2:]
    if first_step:
        encoder += biased + decoder_nodes("decoder_input_ids", None, None, "present_key_cross_0",
                                          "present_value_cross_0", bias)
        inputs.append(info("decoder_input_ids", "i", "b", "s"))
        outputs = [logits, hidden, *kept_of["present"]]
    decoder = biased + decoder_nodes("input_ids", *[i.name for i in kept_of["past"]], bias)
    return {"encoder": graph("encoder", encoder, inputs, outputs, constants),
            "decoder": graph("decoder", decoder, [info("input_ids", "i", "b", 1), *mask, *kept_of["past"]],
                             [logits, *kept_of["present"][:2]], constants)}


def search(name, op_type, graphs, inputs, outputs=("sequences",), **attributes):
    inputs = {k: np.asarray(v, np.float32 if np.asarray(v).dtype.kind == "f" else np.int32) for k, v in inputs.items()}
    order = INPUTS if "Beam" in op_type else INPUTS_OF_ONE
    names = [n if n in inputs else "" for n in order]
    while not names[-1]:
        names.pop()
    made = node(op_type, names, list(outputs), domain=DOMAIN, pad_token_id=PAD, **graphs, **attributes)
    whole = helper.make_graph([made], "g", [info(k, v.dtype.kind, *v.shape) for k, v in inputs.items()],
                              [info(o, "i" if o == "sequences" else "f", *["n"] * n)
                               for o, n in zip(outputs, (2 if order is INPUTS_OF_ONE else 3, 2, 4))])
    model = helper.make_model(whole, ir_version=8, opset_imports=[
        helper.make_opsetid("", 17), helper.make_opsetid(DOMAIN, 1)])
    path = f"{HERE}/{name}.onnx"
    onnx.save(model, path)
    kept(name, inputs, answers(path, inputs))


def main():
    ids = np.array([[PAD, PAD, 3, 4], [3, 7, 5, 2], [PAD, 2, 4, 6]])
    masked = np.array([[1, 0, 1, 1], [1, 1, 1, 1], [0, 1, 0, 1]])
    some, first = RNG.random(WORDS) < .7, RNG.random((3, WORDS)) < .5
    decoder = {"decoder": plain_decoder()}
    search("greedy", "GreedySearch", decoder,
           {"input_ids": ids, "max_length": 12, "min_length": 12, "repetition_penalty": 1.3, "prefix_vocab_mask": first},
           eos_token_id=15, no_repeat_ngram_size=2)
    search("greedy_masked", "GreedySearch", {**decoder, "init_decoder": plain_decoder()},
           {"input_ids": ids, "max_length": 9, "min_length": 9, "vocab_mask": some, "attention_mask": masked},
           eos_token_id=15)
    for custom in (0, 1):
        search(f"sampled_{custom}", "Sampling", decoder,
               {"input_ids": ids, "max_length": 10, "min_length": 10, "seed": 5}, eos_token_id=9, temperature=1.4,
               top_p=.8, custom=custom, min_tokens_to_keep=2)
    beams = {"max_length": 10, "min_length": 5, "num_beams": 3, "num_return_sequences": 2, "length_penalty": 1.0}
    scored = ("sequences", "sequences_scores")
    search("beams", "BeamSearch", decoder, {"input_ids": ids, "vocab_mask": some, **beams}, scored, eos_token_id=9)
    one = {**beams, "min_length": 0, "num_beams": 1, "num_return_sequences": 1}  # no scores of -1e9
    search("beams_scores", "BeamSearch", decoder, {"input_ids": ids, **one}, (*scored, "scores"), eos_token_id=18)
    search("beams_stopped", "BeamSearch", decoder, {"input_ids": ids, **beams, "length_penalty": .5}, scored,
           eos_token_id=19, early_stopping=1)
    for name, first_step in (("translated", True), ("translated_from_keys", False)):
        search(name, "BeamSearch", encoder_and_decoder(False, first_step), {"input_ids": ids, **beams}, scored,
               eos_token_id=9, decoder_start_token_id=2, model_type=1)
    search("transcribed", "WhisperBeamSearch", encoder_and_decoder(True, True),
           {"input_ids": floats(2, 6, 5), **beams, "max_length": 14, "decoder_input_ids": [[2, 5], [2, 6]],
            "logits_processor": 1},
           scored, eos_token_id=4, decoder_start_token_id=2, model_type=2, translate_token_id=5, transcribe_token_id=6,
           start_of_lm_token_id=7, no_timestamps_token_id=8, beginning_timestamp_token_id=13)


if __name__ == "__main__":
    main()
