"""Writes small files for the fuzz targets to begin with: make_seeds.py FOLDER

Good ones of every form, and the hostile ones that people think of first. Python's standard library
is enough.
"""

import json
import os
import struct
import sys
import zipfile
import zlib

sys.dont_write_bytecode = True  # keep the source tree free of caches
sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "support"))
from protobuf import field, varint

FLOAT, UINT8, INT8, INT32, INT64, STRING, BOOL, DOUBLE = 1, 2, 3, 6, 7, 8, 9, 11
HUGE = (1 << 63) - 1


# ---- protobuf ------------------------------------------------------------------------------------


def tensor(name, kind, dims, values=None, raw=None, more=b""):
    out = b"".join(field(1, d) for d in dims) + field(2, kind) + field(8, name)
    if values is not None:
        code = {FLOAT: "f", INT64: "q", INT32: "i", UINT8: "B", INT8: "b", BOOL: "?", DOUBLE: "d"}[kind]
        raw = struct.pack(f"<{len(values)}{code}", *values)
    return out + (field(9, raw) if raw is not None else b"") + more


def integers(name, values):
    return tensor(name, INT64, [len(values)], values)


def attribute(name, value):
    out = field(1, name)
    if isinstance(value, float):
        return out + varint(2 << 3 | 5) + struct.pack("<f", value) + field(20, 1)
    if isinstance(value, int):
        return out + field(3, value) + field(20, 2)
    if isinstance(value, str):
        return out + field(4, value) + field(20, 3)
    if isinstance(value, Graph):
        return out + field(6, value.content) + field(20, 5)
    if isinstance(value, bytes):
        return out + field(5, value) + field(20, 4)
    if value and isinstance(value[0], float):
        return out + b"".join(varint(7 << 3 | 5) + struct.pack("<f", v) for v in value) + field(20, 6)
    if value and isinstance(value[0], str):
        return out + b"".join(field(9, v) for v in value) + field(20, 8)
    return out + b"".join(field(8, v) for v in value) + field(20, 7)


def node(kind, inputs, outputs, domain="", **attributes):
    out = b"".join(field(1, i) for i in inputs) + b"".join(field(2, o) for o in outputs)
    out += field(4, kind) + b"".join(field(5, attribute(k, v)) for k, v in attributes.items())
    return out + (field(7, domain) if domain else b"")


def value(name, kind=None, dims=None):
    if kind is None:
        return field(1, name)
    shape = b""
    if dims is not None:
        shape = field(2, b"".join(field(1, field(2, d) if isinstance(d, str) else field(1, d)) for d in dims))
    return field(1, name) + field(2, field(1, field(1, kind) + shape))


class Graph:
    def __init__(self, nodes, inputs, outputs, tensors=()):
        parts = [(1, n) for n in nodes] + [(2, "g")] + [(5, t) for t in tensors]
        parts += [(11, i) for i in inputs] + [(12, o) for o in outputs]
        self.content = b"".join(field(n, c) for n, c in parts)


def model(graph, opset=17, more=b""):
    opsets = field(8, field(1, "") + field(2, opset)) + field(8, field(1, "ai.onnx.ml") + field(2, 3))
    return field(1, 8) + field(7, graph.content) + opsets + more


# ---- models --------------------------------------------------------------------------------------


def single(kind, inputs, outputs=1, tensors=(), opset=17, domain="", **attributes):
    """A model of one node; inputs are (type, dims), or the name of one of `tensors`."""
    names = [i if isinstance(i, str) else f"x{k}" for k, i in enumerate(inputs)]
    values = [value(f"x{k}", *i) for k, i in enumerate(inputs) if not isinstance(i, str)]
    out = [f"y{k}" for k in range(outputs)]
    graph = Graph([node(kind, names, out, domain, **attributes)], values, [value(o) for o in out], tensors)
    return model(graph, opset)


def good_models():
    x, v, image = (FLOAT, ["n", 3]), (FLOAT, [4]), (FLOAT, ["n", 2, 5, 5])
    weights = tensor("w", FLOAT, [3, 2, 3, 3], [0.1] * 54)
    for kind in ("Relu", "Sigmoid", "Softmax", "Exp", "Erf", "Identity", "Shape", "Size", "Not", "NonZero", "Floor",
                 "Det", "Flatten", "Squeeze", "Transpose", "LogSoftmax", "Softplus", "Gelu", "Mish", "IsNaN"):
        yield kind, single(kind, [(BOOL, [2]) if kind == "Not" else (FLOAT, [3, 3]) if kind == "Det" else x], opset=20)
    for kind in ("Add", "Mul", "Pow", "Div", "Mod", "Max", "MatMul", "Greater", "Equal", "PRelu"):
        yield kind, single(kind, [(FLOAT, [3, 3]), (FLOAT, [3, 3])], **({"fmod": 1} if kind == "Mod" else {}))
    for kind in ("ReduceSum", "ReduceMax", "ReduceL2", "ReduceLogSumExp"):
        yield kind, single(kind, [x, "a"], tensors=[integers("a", [1])], opset=18, keepdims=0)
    yield "Conv", single("Conv", [image, "w"], tensors=[weights], pads=[1, 1, 1, 1], strides=[2, 2], group=1)
    yield "ConvTranspose", single("ConvTranspose", [(FLOAT, [1, 3, 4, 4]), "w"], tensors=[weights], output_padding=[1, 1], strides=[2, 2])
    yield "MaxPool", single("MaxPool", [image], 2, kernel_shape=[2, 2], ceil_mode=1)
    yield "AveragePool", single("AveragePool", [image], kernel_shape=[3, 3], pads=[1, 1, 1, 1], count_include_pad=1)
    yield "LpPool", single("LpPool", [image], kernel_shape=[2, 2], p=2, opset=18)
    yield "GlobalAveragePool", single("GlobalAveragePool", [image])
    yield "Pad", single("Pad", [x, "p"], tensors=[integers("p", [1, 0, 0, 2])], mode="reflect")
    yield "Tile", single("Tile", [x, "r"], tensors=[integers("r", [2, 3])])
    yield "Expand", single("Expand", [x, "s"], tensors=[integers("s", [2, 1, 3])])
    yield "Reshape", single("Reshape", [x, "s"], tensors=[integers("s", [-1, 1])], allowzero=0)
    yield "Slice", single("Slice", [x, "a", "b", "c", "d"], tensors=[integers(n, [i]) for n, i in (("a", 0), ("b", 2), ("c", 1), ("d", -1))])
    yield "Gather", single("Gather", [x, "i"], tensors=[integers("i", [0, -1])], axis=1)
    yield "GatherND", single("GatherND", [x, "i"], tensors=[tensor("i", INT64, [1, 2], [0, 1])])
    yield "GatherElements", single("GatherElements", [(FLOAT, [2, 3]), "i"], tensors=[tensor("i", INT64, [1, 2], [0, 1])])
    yield "ScatterND", single("ScatterND", [(FLOAT, [4]), "i", "u"], tensors=[tensor("i", INT64, [1, 1], [2]), tensor("u", FLOAT, [1], [5.0])], opset=18, reduction="add")
    yield "ScatterElements", single("ScatterElements", [(FLOAT, [4]), "i", "u"], tensors=[integers("i", [2]), tensor("u", FLOAT, [1], [5.0])])
    yield "Concat", single("Concat", [x, x], axis=-1)
    yield "Split", single("Split", [(FLOAT, [4])], 2, num_outputs=2, opset=18)
    yield "Range", single("Range", ["a", "b", "c"], tensors=[tensor(n, INT64, [], [i]) for n, i in (("a", 0), ("b", 9), ("c", 2))])
    yield "ConstantOfShape", single("ConstantOfShape", ["s"], tensors=[integers("s", [2, 3])], value=tensor("", FLOAT, [1], [2.0]))
    yield "OneHot", single("OneHot", [(INT64, ["n"]), "d", "v"], tensors=[tensor("d", INT64, [], [5]), tensor("v", FLOAT, [2], [0.0, 1.0])])
    yield "EyeLike", single("EyeLike", [(FLOAT, [3, 4])], k=1)
    yield "Trilu", single("Trilu", [(FLOAT, [3, 4]), "k"], tensors=[tensor("k", INT64, [], [1])])
    yield "CumSum", single("CumSum", [x, "a"], tensors=[tensor("a", INT64, [], [1])], reverse=1)
    yield "TopK", single("TopK", [x, "k"], 2, tensors=[integers("k", [2])])
    yield "ArgMax", single("ArgMax", [x], axis=1, keepdims=0)
    yield "Unique", single("Unique", [v], 4, sorted=1)
    yield "Where", single("Where", [(BOOL, [3]), x, x])
    yield "Cast", single("Cast", [x], to=STRING)
    yield "Einsum", single("Einsum", [(FLOAT, [2, 3]), (FLOAT, [3, 4])], equation="ij,jk->ik")
    yield "Gemm", single("Gemm", [(FLOAT, [2, 3]), (FLOAT, [4, 3])], transB=1, alpha=0.5)
    yield "Resize", single("Resize", [(FLOAT, [1, 1, 4, 4]), "", "s"], tensors=[tensor("s", FLOAT, [4], [1.0, 1.0, 1.5, 2.0])], mode="cubic")
    yield "Resize_sizes", single("Resize", [(FLOAT, [1, 1, 4, 4]), "", "", "s"], tensors=[integers("s", [1, 1, 7, 3])], mode="linear")
    yield "Upsample", single("Upsample", [(FLOAT, [1, 1, 2, 2])], opset=7, scales=[1.0, 1.0, 2.0, 2.0])
    yield "GridSample", single("GridSample", [(FLOAT, [1, 1, 3, 3]), (FLOAT, [1, 2, 2, 2])])
    yield "RoiAlign", single("RoiAlign", [(FLOAT, [1, 1, 4, 4]), (FLOAT, [1, 4]), "b"], tensors=[integers("b", [0])], output_height=2, output_width=2, opset=16)
    yield "NonMaxSuppression", single("NonMaxSuppression", [(FLOAT, [1, 3, 4]), (FLOAT, [1, 1, 3]), "m"], tensors=[integers("m", [2])])
    yield "DepthToSpace", single("DepthToSpace", [(FLOAT, [1, 4, 2, 2])], blocksize=2)
    yield "BatchNormalization", single("BatchNormalization", [(FLOAT, ["n", 2, 2, 2])] + [(FLOAT, [2])] * 4)
    yield "LayerNormalization", single("LayerNormalization", [x, (FLOAT, [3])])
    yield "GroupNormalization", single("GroupNormalization", [(FLOAT, [1, 4, 2, 2]), (FLOAT, [4]), (FLOAT, [4])], num_groups=2, opset=21)
    yield "LRN", single("LRN", [image], size=3)
    for kind, gates in (("LSTM", 4), ("GRU", 3), ("RNN", 1)):
        yield kind, single(kind, [(FLOAT, [2, 1, 3]), (FLOAT, [1, gates * 2, 3]), (FLOAT, [1, gates * 2, 2])], 2, hidden_size=2)
    yield "DFT", single("DFT", [(FLOAT, [1, 4, 1])], axis=1)
    yield "STFT", single("STFT", [(FLOAT, [1, 16, 1]), "s", "", "l"], tensors=[tensor("s", INT64, [], [4]), tensor("l", INT64, [], [8])])
    yield "MelWeightMatrix", single("MelWeightMatrix", list("abcde"), tensors=[tensor(n, INT64, [], [i]) for n, i in (("a", 4), ("b", 8), ("c", 8000))] + [tensor("d", FLOAT, [], [0.0]), tensor("e", FLOAT, [], [4000.0])])
    yield "HannWindow", single("HannWindow", ["s"], tensors=[tensor("s", INT64, [], [8])])
    yield "QuantizeLinear", single("QuantizeLinear", [x, "s", "z"], tensors=[tensor("s", FLOAT, [], [0.5]), tensor("z", UINT8, [], [3])])
    yield "DynamicQuantizeLinear", single("DynamicQuantizeLinear", [x], 3)
    yield "MatMulInteger", single("MatMulInteger", [(UINT8, [2, 3]), (UINT8, [3, 2])])
    yield "QLinearConv", single("QLinearConv", [(UINT8, [1, 1, 4, 4]), "s", "z", (UINT8, [1, 1, 3, 3]), "s", "z", "s", "z"], tensors=[tensor("s", FLOAT, [], [0.5]), tensor("z", UINT8, [], [3])])
    yield "Attention", single("Attention", [(FLOAT, [1, 2, 3, 4])] * 3, opset=23)
    yield "RandomNormal", single("RandomNormal", [], shape=[2, 3])
    yield "Bernoulli", single("Bernoulli", [x])
    yield "Multinomial", single("Multinomial", [x], sample_size=3)
    yield "Dropout", single("Dropout", [x, "r", "t"], 2, tensors=[tensor("r", FLOAT, [], [0.5]), tensor("t", BOOL, [], [True])])
    yield "StringConcat", single("StringConcat", [(STRING, [2]), (STRING, [2])], opset=20)
    yield "StringSplit", single("StringSplit", [(STRING, [2])], 2, opset=20, delimiter=",")
    yield "RegexFullMatch", single("RegexFullMatch", [(STRING, [2])], opset=20, pattern="a.*")
    yield "StringNormalizer", single("StringNormalizer", [(STRING, [2])], case_change_action="UPPER")
    yield "TfIdfVectorizer", single("TfIdfVectorizer", [(INT64, [4])], mode="TF", min_gram_length=1, max_gram_length=2, max_skip_count=1, ngram_counts=[0, 2], ngram_indexes=[0, 1, 2], pool_int64s=[1, 2, 1, 2])
    yield "Compress", single("Compress", [v, (BOOL, [4])])
    yield "Col2Im", single("Col2Im", [(FLOAT, [1, 4, 9]), "i", "b"], tensors=[integers("i", [4, 4]), integers("b", [2, 2])], opset=18)
    yield "MaxUnpool", single("MaxUnpool", [(FLOAT, [1, 1, 2, 2]), (INT64, [1, 1, 2, 2])], kernel_shape=[2, 2], strides=[2, 2])
    yield "SequenceConstruct", model(Graph([node("SequenceConstruct", ["x", "x"], ["s"]), node("ConcatFromSequence", ["s"], ["y"], axis=0)], [value("x", *x)], [value("y")]))
    for kind, attributes in (
        ("Scaler", {"offset": [1.0], "scale": [2.0]}),
        ("Normalizer", {"norm": "L2"}),
        ("Imputer", {"imputed_value_floats": [1.0], "replaced_value_float": 0.0}),
        ("LinearRegressor", {"coefficients": [1.0, 2.0, 3.0], "intercepts": [0.5]}),
        ("LinearClassifier", {"coefficients": [1.0] * 6, "intercepts": [0.5, 0.1], "classlabels_ints": [3, 4], "post_transform": "SOFTMAX"}),
        ("SVMRegressor", {"coefficients": [1.0], "support_vectors": [1.0, 2.0, 3.0], "n_supports": 1, "rho": [0.1], "kernel_type": "RBF", "kernel_params": [0.5, 0.0, 3.0]}),
        ("SVMClassifier", {"coefficients": [1.0, -1.0], "support_vectors": [1.0, 2.0, 3.0, 0.0, 1.0, 2.0], "vectors_per_class": [1, 1], "rho": [0.1], "kernel_type": "LINEAR", "kernel_params": [0.5, 0.0, 3.0], "classlabels_ints": [0, 1]}),
        ("TreeEnsembleRegressor", dict(TREE, n_targets=1, target_ids=[0, 0], target_nodeids=[1, 2], target_treeids=[0, 0], target_weights=[1.0, 2.0])),
        ("TreeEnsembleClassifier", dict(TREE, classlabels_strings=["a", "b"], class_ids=[0, 1], class_nodeids=[1, 2], class_treeids=[0, 0], class_weights=[1.0, 2.0])),
        ("OneHotEncoder", {"cats_int64s": [1, 2], "zeros": 1}),
        ("LabelEncoder", {"keys_floats": [1.0, 2.0], "values_strings": ["a", "b"]}),
    ):
        outputs = 2 if kind.endswith("Classifier") else 1
        yield kind, single(kind, [x], outputs, domain="ai.onnx.ml", **attributes)
    yield "CategoryMapper", single("CategoryMapper", [(STRING, [2])], domain="ai.onnx.ml", cats_int64s=[1, 2], cats_strings=["a", "b"])
    yield "ZipMap", single("ZipMap", [(FLOAT, ["n", 2])], domain="ai.onnx.ml", classlabels_strings=["a", "b"])
    body = Graph([node("Identity", ["c"], ["d"]), node("Add", ["v", "v"], ["w"]), node("Identity", ["v"], ["z"])],
                 [value("i", INT64, []), value("c", BOOL, []), value("v", FLOAT, [3])], [value("d"), value("w"), value("z")])
    yield "Loop", single("Loop", ["m", "", (FLOAT, [3])], 2, tensors=[tensor("m", INT64, [], [3])], body=body)
    scan = Graph([node("Add", ["s", "x"], ["t"]), node("Identity", ["t"], ["o"])], [value("s", FLOAT, [3]), value("x", FLOAT, [3])], [value("t"), value("o")])
    yield "Scan", single("Scan", [(FLOAT, [3]), (FLOAT, [4, 3])], 2, num_scan_inputs=1, body=scan)
    branch = lambda k: Graph([node(k, ["x1"], ["z"])], [], [value("z")])
    yield "If", single("If", [(BOOL, [])], then_branch=Graph([node("Constant", [], ["z"], value=tensor("", FLOAT, [1], [1.0]))], [], [value("z")]),
                       else_branch=Graph([node("Constant", [], ["z"], value_floats=[1.0, 2.0])], [], [value("z")]))
    yield "If_outer", model(Graph([node("If", ["x0"], ["y"], then_branch=branch("Relu"), else_branch=branch("Neg"))], [value("x0", BOOL, []), value("x1", FLOAT, ["n"])], [value("y")]))
    function = field(1, "f") + field(4, "a") + field(5, "b") + field(7, node("Relu", ["a"], ["b"])) + field(9, field(1, "") + field(2, 17)) + field(10, "my")
    yield from generating_models(False)
    yield "Function", model(Graph([node("f", ["x"], ["y"], "my")], [value("x", *x)], [value("y")]), more=field(25, function))


def generating_models(hostile):
    """Decoders inside nodes: a table of scores, and a past that grows by what has come."""
    domain = "com.microsoft"
    one = lambda name, v: tensor(name, INT32, [], [v])
    nodes = [node("Gather", ["E", "input_ids"], ["logits"]), node("Concat", ["past_0", "past_0"], ["present_0"], axis=3)]
    ids = lambda name: value(name, INT32, ["b", "s"])
    past = value("past_0", FLOAT, [2, "b", 1, "p", 1])
    decoder = Graph(nodes, [ids("input_ids"), ids("position_ids"), ids("attention_mask"), past],
                    [value("logits", FLOAT, ["b", "s", 4]), value("present_0", FLOAT, [2, "b", 1, "p", 1])],
                    [tensor("E", FLOAT, [5, 4], [0.1 * k for k in range(20)])])
    keys = [value(f"past_{what}_{side}_0", FLOAT, ["b", 1, "t", 1]) for side in ("self", "cross") for what in ("key", "value")]
    copied = lambda to: node("Identity", [to.replace("present", "past")], [to])
    kept = ["present_key_self_0", "present_value_self_0"]
    step = Graph([nodes[0], *map(copied, kept)], [ids("input_ids"), value("encoder_attention_mask", INT32, ["b", "t"]), *keys],
                 [value("logits"), *map(value, kept)], [tensor("E", FLOAT, [5, 4], [0.1 * k for k in range(20)])])
    looked = [node("Cast", ["encoder_input_ids"], ["f"], to=1), node("Unsqueeze", ["f", "a"], ["present_key_cross_0"]),
              node("Identity", ["present_key_cross_0"], ["present_value_cross_0"])]
    encoder = Graph(looked, [ids("encoder_input_ids"), ids("encoder_attention_mask")],
                    [value("present_key_cross_0"), value("present_value_cross_0")], [integers("a", [1, 3])])
    x = (INT32, [2, 3])
    for n in (-1, 0, 1 << 20, 2147483647) if hostile else (6,):
        for beams in (1 << 20, 2147483647) if hostile else (2,):
            given = [one("m", n), one("b", beams), one("r", 1), tensor("l", FLOAT, [], [1.0])]
            names = [x, "m", "", "b", "r", "l"]
            yield f"BeamSearch_{n}_{beams}", single("BeamSearch", names, 2, given, domain=domain, decoder=decoder, eos_token_id=3, pad_token_id=0)
            yield f"Translation_{n}_{beams}", single("BeamSearch", names, 2, given, domain=domain, decoder=step, encoder=encoder, model_type=1,
                                                     decoder_start_token_id=1, eos_token_id=3, pad_token_id=0)
        yield f"GreedySearch_{n}", single("GreedySearch", [x, "m"], 1, [one("m", n)], domain=domain, decoder=decoder, eos_token_id=3, pad_token_id=0,
                                          no_repeat_ngram_size=n if hostile else 2)
        yield f"Sampling_{n}", single("Sampling", [x, "m"], 1, [one("m", n)], domain=domain, decoder=decoder, eos_token_id=3, pad_token_id=0,
                                      top_p=0.9, min_tokens_to_keep=n)
        yield f"NGrams_{n}", single("NGramHashMapping", [(INT64, [2, 3]), "f", "v"], 2, [integers("f", [3, 5, 7]), integers("v", [11, 13 if n == 6 else n])],
                                    domain=domain, pad_id=0, n_head_per_ngram=1 if n == 6 else n, max_ngram_size=3)
        yield f"PackedNGrams_{n}", single("VarlenNGramHashMapping", [(INT64, [6]), "f", "v", "c"], 2,
                                          [integers("f", [3, 5]), integers("v", [11]), tensor("c", INT32, [3], [0, 2, min(n, 1 << 30)])],
                                          domain=domain, pad_id=0, n_head_per_ngram=1, max_ngram_size=2)
        yield f"MatMulFpQ4_{n}", single("MatMulFpQ4", [(FLOAT, [2, 32]), "w", "s"], 1, [tensor("w", UINT8, [40], [7] * 40), integers("s", [32, 2 if n == 6 else n])],
                                        domain=domain, blk_quant_type=0)
        indices = [tensor("i", INT32, [1, 3], [0, 1, 2 if n == 6 else n]), tensor("j", INT32, [1, 2], [0, 1 if n == 6 else n])]
        yield f"SparseAttention_{n}", single(
            "SparseAttention", [(FLOAT, [1, 2, 2])] * 3 + [(FLOAT, [1, 1, 4, 2])] * 2 + ["i", "j", "t", "k"], 3,
            [*indices, tensor("t", INT32, [1], [2]), tensor("k", INT32, [1], [min(n, 1 << 30)])], domain=domain, num_heads=1, kv_num_heads=1, sparse_block_size=2)


TREE = {"nodes_treeids": [0, 0, 0], "nodes_nodeids": [0, 1, 2], "nodes_featureids": [0, 0, 0], "nodes_values": [0.5, 0.0, 0.0],
        "nodes_modes": ["BRANCH_LEQ", "LEAF", "LEAF"], "nodes_truenodeids": [1, 0, 0], "nodes_falsenodeids": [2, 0, 0]}


def hostile_models():
    yield from generating_models(True)
    x = (FLOAT, ["n", 3])
    whole = single("Relu", [x])
    for at in (1, 7, len(whole) // 2, len(whole) - 1):
        yield f"cut_{at}", whole[:at]
    deep = Graph([node("Relu", ["x0"], ["z"])], [], [value("z")])
    for depth in range(400):
        deep = Graph([node("If", ["c"], ["z"], then_branch=deep, else_branch=deep if depth < 3 else Graph([], [], []))], [], [value("z")])
        if depth in (10, 100, 399):
            yield f"nested_{depth}", model(Graph([node("If", ["c"], ["y"], then_branch=deep, else_branch=deep)], [value("c", BOOL, []), value("x0", *x)], [value("y")]))
    yield "cycle", model(Graph([node("Add", ["x", "b"], ["a"]), node("Relu", ["a"], ["b"])], [value("x", *x)], [value("b")]))
    yield "itself", model(Graph([node("Relu", ["a"], ["a"])], [value("x", *x)], [value("a")]))
    yield "twice", model(Graph([node("Relu", ["x"], ["y"]), node("Neg", ["x"], ["y"])], [value("x", *x)], [value("y")]))
    yield "two_initializers", single("Add", ["w", "w"], tensors=[tensor("w", FLOAT, [1], [1.0])] * 2)
    yield "no_initializer", single("Add", ["w", x])
    yield "unknown_operator", single("Relux", [x])
    yield "unknown_domain", single("Relu", [x], domain="com.example")
    yield "no_outputs", model(Graph([node("Relu", ["x"], ["y"])], [value("x", *x)], []))
    yield "wrong_types", single("Conv", [(STRING, [1]), (INT64, [])])
    yield "few_inputs", single("Conv", [])
    for name, dims, raw in (("negative", [-1], b""), ("overflow", [1 << 62, 4], b"ab"), ("overflow0", [0, HUGE, HUGE], b""), ("gigantic", [1 << 40], b"abcd"),
                            ("short", [4], b"abc"), ("long", [1], b"abcdefgh"), ("rank", [1] * 80, b"abcd")):
        yield f"tensor_{name}", single("Relu", ["w"], tensors=[tensor("w", FLOAT, dims, raw=raw)])
    yield "tensor_type", single("Relu", ["w"], tensors=[tensor("w", 99, [1], raw=b"abcd")])
    yield "strings_short", single("Identity", ["w"], tensors=[tensor("w", STRING, [9], more=field(6, "a"))])
    for name, place, offset, length in (("outside", "../../../../etc/passwd", 0, 4), ("absolute", "/etc/passwd", 0, 4), ("itself", "model.onnx", 0, 4), ("good", "weights.bin", 0, 4),
                                        ("far", "weights.bin", HUGE, 4), ("folder", ".", 0, 4), ("empty", "", 0, 4), ("long", "weights.bin", 60, 400), ("device", "/dev/zero", 0, 4)):
        entries = b"".join(field(13, field(1, k) + field(2, str(v))) for k, v in (("location", place), ("offset", offset), ("length", length)))
        yield f"external_{name}", single("Relu", ["w"], tensors=[tensor("w", FLOAT, [1], more=entries + field(14, 1))])
    sparse = lambda values, index, dims: field(1, values) + field(2, index) + b"".join(field(3, d) for d in dims)
    for name, s in (("good", sparse(tensor("w", FLOAT, [1], [2.0]), tensor("", INT64, [1], [3]), [5])),
                    ("far", sparse(tensor("w", FLOAT, [1], [2.0]), tensor("", INT64, [1], [HUGE]), [5])),
                    ("gigantic", sparse(tensor("w", FLOAT, [1], [2.0]), tensor("", INT64, [1], [3]), [1 << 39])),
                    ("strings", sparse(tensor("w", STRING, [1], more=field(6, "a")), tensor("", INT64, [1], [3]), [5]))):
        graph = Graph([node("Relu", ["w"], ["y"])], [], [value("y")])
        graph.content += field(15, s)
        yield f"sparse_{name}", model(graph)
    for number in (1 << 20, 1 << 40, HUGE, -1, -HUGE - 1):
        n = f"{number & (1 << 64) - 1:x}"
        one = lambda name: [integers(name, [number])]
        scalar = lambda name: [tensor(name, INT64, [], [number])]
        yield f"pads_{n}", single("Pad", [(FLOAT, [2]), "p"], tensors=[integers("p", [number, number])])
        yield f"tile_{n}", single("Tile", [(FLOAT, [2]), "r"], tensors=one("r"))
        yield f"expand_{n}", single("Expand", [(FLOAT, [1]), "s"], tensors=one("s"))
        yield f"shape_{n}", single("ConstantOfShape", ["s"], tensors=one("s"))
        yield f"reshape_{n}", single("Reshape", [(FLOAT, [2]), "s"], tensors=one("s"))
        yield f"range_{n}", single("Range", ["a", "b", "c"], tensors=[tensor("a", INT64, [], [0]), tensor("c", INT64, [], [1])] + scalar("b"))
        yield f"one_hot_{n}", single("OneHot", [(INT64, [2]), "d", "v"], tensors=scalar("d") + [tensor("v", FLOAT, [2], [0.0, 1.0])])
        yield f"resize_{n}", single("Resize", [(FLOAT, [1, 1, 2, 2]), "", "", "s"], tensors=[integers("s", [1, 1, number, 2])])
        yield f"scales_{n}", single("Resize", [(FLOAT, [1, 1, 2, 2]), "", "s"], tensors=[tensor("s", FLOAT, [4], [1.0, 1.0, float(number), 1.0])])
        yield f"top_{n}", single("TopK", [(FLOAT, [4]), "k"], 2, tensors=one("k"))
        yield f"axis_{n}", single("Softmax", [x], axis=number)
        yield f"axes_{n}", single("Unsqueeze", [x, "a"], tensors=one("a"))
        yield f"squeeze_{n}", single("Squeeze", [x, "a"], tensors=one("a"))
        yield f"slice_{n}", single("Slice", [(FLOAT, [4]), "s", "e", "a", "t"], tensors=one("s") + one("e") + [integers("a", [0])] + one("t"))
        yield f"gather_{n}", single("Gather", [(FLOAT, [4]), "i"], tensors=one("i"))
        yield f"scatter_{n}", single("ScatterND", [(FLOAT, [4]), "i", "u"], tensors=[tensor("i", INT64, [1, 1], [number]), tensor("u", FLOAT, [1], [1.0])])
        yield f"eye_{n}", single("EyeLike", [(FLOAT, [3, 3])], k=number)
        yield f"trilu_{n}", single("Trilu", [(FLOAT, [3, 3]), "k"], tensors=scalar("k"))
        yield f"split_{n}", single("Split", [(FLOAT, [4])], 2, num_outputs=number, opset=18)
        yield f"concat_{n}", single("Concat", [x, x], axis=number)
        yield f"window_{n}", single("HannWindow", ["s"], tensors=scalar("s"))
        yield f"mel_{n}", single("MelWeightMatrix", ["a", "a", "a", "l", "h"], tensors=scalar("a") + [tensor("l", FLOAT, [], [0.0]), tensor("h", FLOAT, [], [9.0])])
        yield f"stft_{n}", single("STFT", [(FLOAT, [1, 16, 1]), "s", "", "s"], tensors=scalar("s"))
        yield f"dft_{n}", single("DFT", [(FLOAT, [1, 4, 1]), "l"], tensors=scalar("l"), axis=1)
        yield f"random_{n}", single("RandomNormal", [], shape=[number])
        yield f"samples_{n}", single("Multinomial", [x], sample_size=number)
        yield f"blocks_{n}", single("DepthToSpace", [(FLOAT, [1, 4, 2, 2])], blocksize=number)
        yield f"col2im_{n}", single("Col2Im", [(FLOAT, [1, 4, 9]), "i", "b"], tensors=[integers("i", [number, 4]), integers("b", [2, 2])], opset=18)
        yield f"unpool_{n}", single("MaxUnpool", [(FLOAT, [1, 1, 2, 2]), "i"], tensors=[tensor("i", INT64, [1, 1, 2, 2], [number] * 4)], kernel_shape=[2, 2])
        yield f"targets_{n}", single("TreeEnsembleRegressor", [x], domain="ai.onnx.ml", **dict(TREE, n_targets=number, target_ids=[number, 0], target_nodeids=[1, 2], target_treeids=[0, 0], target_weights=[1.0, 2.0]))
        yield f"hidden_{n}", single("LSTM", [(FLOAT, [2, 1, 3]), (FLOAT, [1, 8, 3]), (FLOAT, [1, 8, 2])], 2, hidden_size=number)
        yield f"groups_{n}", single("Conv", [(FLOAT, [1, 2, 5, 5]), "w"], tensors=[tensor("w", FLOAT, [2, 2, 3, 3], [0.1] * 36)], group=number)
        for name in ("kernel_shape", "strides", "dilations", "pads"):
            many = [number] * (4 if name == "pads" else 2)
            yield f"conv_{name}_{n}", single("Conv", [(FLOAT, [1, 2, 5, 5]), "w"], tensors=[tensor("w", FLOAT, [2, 2, 3, 3], [0.1] * 36)], **{name: many})
            yield f"transpose_{name}_{n}", single("ConvTranspose", [(FLOAT, [1, 2, 5, 5]), "w"], tensors=[tensor("w", FLOAT, [2, 2, 3, 3], [0.1] * 36)], **{name: many})
            for kind in ("MaxPool", "AveragePool", "LpPool"):
                yield f"{kind}_{name}_{n}", single(kind, [(FLOAT, [1, 2, 5, 5])], opset=19, **({"kernel_shape": [2, 2]} | {name: many}))
        body = Graph([node("Identity", ["c"], ["d"]), node("Identity", ["i"], ["z"])], [value("i", INT64, []), value("c", BOOL, [])], [value("d"), value("z")])
        yield f"loop_{n}", single("Loop", ["m", ""], 1, tensors=scalar("m"), body=body)
        grow = Graph([node("Identity", ["c"], ["d"]), node("Concat", ["v", "v"], ["w"], axis=0)], [value("i", INT64, []), value("c", BOOL, []), value("v", FLOAT)], [value("d"), value("w")])
        yield f"grow_{n}", single("Loop", ["m", "", (FLOAT, [4])], 1, tensors=scalar("m"), body=grow)
    call = lambda name, inner: field(1, name) + field(4, "a") + field(5, "b") + inner + field(9, field(1, "my") + field(2, 1)) + field(9, field(1, "") + field(2, 17)) + field(10, "my")
    both = lambda f: field(7, node(f, ["a"], ["t"], "my")) + field(7, node(f, ["t"], ["b"], "my"))
    functions = [call("f0", field(7, node("Relu", ["a"], ["b"])))] + [call(f"f{i}", both(f"f{i - 1}")) for i in range(1, 60)]
    yield "doubling", model(Graph([node("f59", ["x"], ["y"], "my")], [value("x", *x)], [value("y")]), more=b"".join(field(25, f) for f in functions))
    yield "recursion", model(Graph([node("r", ["x"], ["y"], "my")], [value("x", *x)], [value("y")]), more=field(25, call("r", both("r"))))
    nodes, name = [], "x"
    for i in range(40):
        nodes.append(node("Concat", [name, name], [f"t{i}"], axis=0))
        name = f"t{i}"
    yield "growing", model(Graph(nodes, [value("x", FLOAT, [4])], [value(name)]))
    for i, pattern in enumerate(("(a{255}){255}{255}", "((a|a)*)*b", "a{1,30000}", "(((a{1,200}){1,200}){1,200})", "[", "a{", "\\", "((")):
        yield f"pattern_{i}", single("RegexFullMatch", [(STRING, [2])], opset=20, pattern=pattern)
    vector = (FLOAT, [3])
    yield "norm_of_vector", single("BatchNormalization", [vector] + [(FLOAT, [3])] * 4)
    yield "instance_norm_of_vector", single("InstanceNormalization", [vector, vector, vector])
    yield "names", model(Graph([node("Relu\n\x1b[31m", ["x"], ["y"])], [value("x", *x)], [value("y")]))


# ---- safetensors and NPZ -------------------------------------------------------------------------


def safetensors(header, data=b""):
    text = header if isinstance(header, bytes) else json.dumps(header, separators=(",", ":")).encode()
    return struct.pack("<Q", len(text)) + text + data


def safetensors_files():
    entry = lambda kind, shape, begin, end: {"dtype": kind, "shape": shape, "data_offsets": [begin, end]}
    good = safetensors({"__metadata__": {"a": "b"}, "x": entry("F32", [2], 0, 8), "f": entry("BOOL", [3], 8, 11), "e": entry("F16", [0, 9], 11, 11)}, b"\0\1\2\3" * 3)
    yield "good", good[:-1]
    yield "cut", good[:-5]
    yield "empty", b""
    yield "header_size", struct.pack("<Q", (1 << 64) - 1) + b"{}"
    yield "none", safetensors({})
    yield "hole", safetensors({"x": entry("F32", [1], 4, 8)}, b"12345678")
    yield "overlap", safetensors({"x": entry("F32", [2], 0, 8), "y": entry("F32", [1], 4, 8)}, b"12345678")
    yield "negative", safetensors({"x": entry("F32", [-1], 0, 4)}, b"1234")
    yield "overflow", safetensors({"x": entry("F64", [1 << 62, 1 << 62], 0, 0)})
    yield "overflow_zero", safetensors({"x": entry("F64", [0, 1 << 62, 1 << 62], 0, 0)})
    yield "type", safetensors({"x": entry("F99", [1], 0, 4)}, b"1234")
    yield "twice", safetensors(b'{"x":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"x":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}', b"1")
    yield "deep", safetensors(b'{"x":' + b"[" * 5000 + b"]" * 5000 + b"}")
    yield "metadata", safetensors({"__metadata__": {"a": 1}})


def npy(descr, shape, data=b"", fortran=False, version=1):
    header = repr({"descr": descr, "fortran_order": fortran, "shape": shape}).encode()
    header += b" " * (-(10 + len(header) + 1) % 16) + b"\n"
    return b"\x93NUMPY" + bytes([version, 0]) + struct.pack("<H" if version == 1 else "<I", len(header)) + header + data


def npz_files(folder):
    arrays = {"x": npy("<f4", (2, 2), b"\0" * 16), "b": npy("|b1", (3,), b"\0\1\2"), "e": npy(">i8", (0,)), "f": npy("<f8", (2, 3), b"\0" * 48, True),
              "s": npy("<U3", (2,), "abcdef".encode("utf-32-le")), "c": npy("|S2", (2,), b"ab\0\0"), "v": npy("<i2", (1,), b"\0\0", version=2)}
    path = os.path.join(folder, "temporary")

    def packed(entries, method=zipfile.ZIP_STORED):
        with zipfile.ZipFile(path, "w", method) as z:
            for name, content in entries.items():
                z.writestr(name + ".npy", content)
        with open(path, "rb") as f:
            content = f.read()
        os.remove(path)
        return content

    yield "stored", packed(arrays)
    yield "deflated", packed(arrays, zipfile.ZIP_DEFLATED)
    for name, content in arrays.items():
        yield f"npy_{name}", content
    for name, descr, shape, data in (("gigantic", "<f4", (1 << 40,), b""), ("overflow", "<f8", (1 << 62, 1 << 62), b""), ("zero", "<f8", (0, 1 << 62, 1 << 62), b""), ("object", "|O", (1,), b"12345678"),
                                     ("width", "<U1073741824", (1,), b"1234"), ("no_width", "<U0", (1 << 40,), b""), ("surrogate", "<U1", (1,), struct.pack("<I", 0xD800)), ("big_strings", ">U1", (1,), b"\0\0\0a")):
        yield f"npy_{name}", npy(descr, shape, data)
        yield name, packed({"x": npy(descr, shape, data)})
    yield "empty", b"PK\x05\x06" + b"\0" * 18
    whole = packed(arrays)
    yield "cut", whole[: len(whole) // 2]
    yield "zeros", packed({"x": npy("<f4", (1 << 20,), b"\0" * (4 << 20))}, zipfile.ZIP_DEFLATED)


# ---- tokenizers and GGUF -----------------------------------------------------------------------------


def tokenizer_files():
    data = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "text", "data")
    for name in sorted(os.listdir(data)):
        if name.endswith((".json", ".model")):
            with open(os.path.join(data, name), "rb") as f:
                content = f.read()
            yield name, content
            yield "cut_" + name, content[: len(content) * 2 // 3]
    bpe = {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": ["a b"]}

    def with_steps(**steps):
        return json.dumps({"model": bpe, **steps}).encode()

    yield "id_huge", json.dumps({"model": {"type": "WordLevel", "vocab": {"a": 1 << 62}, "unk_token": "a"}}).encode()
    yield "id_negative", json.dumps({"model": {"type": "WordLevel", "vocab": {"a": -1}, "unk_token": "a"}}).encode()
    yield "unigram_scores", json.dumps({"model": {"type": "Unigram", "vocab": [["a", 1e308], ["b", -1e308]], "unk_id": 0}}).encode()
    yield "unknown_id", json.dumps({"model": {"type": "Unigram", "vocab": [["a", 0]], "unk_id": 7}}).encode()
    for name, pattern in (("explosive", "(a+)+$"), ("classes", "[[a]&&[b]]"), ("recursion", "(?R)?x"), ("backward", "(?<=a*)b"), ("empty", ""), ("deep", "(" * 500 + ")" * 500)):
        yield "pattern_" + name, with_steps(pre_tokenizer={"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False})
    step = {"type": "NFC"}
    for _ in range(400):
        step = {"type": "Sequence", "normalizers": [step]}
    yield "nested_steps", with_steps(normalizer=step)
    for name, table in (("short", "AAA="), ("size", "/////w=="), ("loop", "BAAAAAAAAAA=")):
        yield "charsmap_" + name, with_steps(normalizer={"type": "Precompiled", "precompiled_charsmap": table})
    yield "tekken", json.dumps({"config": {"pattern": ".", "default_vocab_size": 300, "default_num_special_tokens": 1 << 40}, "vocab": []}).encode()
    yield "piece_cut", field(1, field(1, "a") + varint(2 << 3 | 5) + b"\0\0")


def jinja_files():
    data = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "text", "data")
    with open(os.path.join(data, "templates.jsonl")) as f:
        for i, line in enumerate(f):
            yield f"template_{i}", json.loads(line)["template"].encode()
    yield "loop", b"{% for i in range(99999) %}{% for j in range(99999) %}x{% endfor %}{% endfor %}"
    yield "recursion", b"{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}"
    yield "growth", b"{% set x = 'a' * 9999999999999 %}"
    yield "deep", b"{{ " + b"[" * 5000
    yield "slices", b"{{ 'abc'[9223372036854775807:-9223372036854775807:-1] }}{{ l[::9223372036854775807] }}{{ (0 - 9223372036854775807 - 1) // -1 }}"
    yield "bytes", b"{{ '\xff\xfe' }}\xc3{%"
    yield "namespace", b"{% set ns = namespace() %}{% set ns.a = [ns] %}{{ ns }}{{ ns.a }}{{ [ns] == [ns] }}"


def gguf_files():
    def text(value):
        value = value.encode() if isinstance(value, str) else value
        return struct.pack("<Q", len(value)) + value

    def pair(key, kind, content):
        return text(key) + struct.pack("<I", kind) + content

    def strings(values):
        return struct.pack("<IQ", 8, len(values)) + b"".join(text(v) for v in values)

    def numbers(kind, code, values):
        return struct.pack("<IQ", kind, len(values)) + struct.pack(f"<{len(values)}{code}", *values)

    def file(pairs, tensors=(), data=b"", version=3, count=None):
        header = b"GGUF" + struct.pack("<IQQ", version, len(tensors) if count is None else count, len(pairs)) + b"".join(pairs)
        for name, dims, kind, offset in tensors:
            header += text(name) + struct.pack("<I", len(dims)) + b"".join(struct.pack("<Q", d) for d in dims) + struct.pack("<IQ", kind, offset)
        return header + b"\0" * (-len(header) % 32) + data

    def tokenizer(kind, tokens, types, **more):
        pairs = [pair("tokenizer.ggml.model", 8, text(kind)), pair("tokenizer.ggml.tokens", 9, strings(tokens)), pair("tokenizer.ggml.token_type", 9, numbers(5, "i", types))]
        pairs += [pair("tokenizer.ggml.scores", 9, numbers(6, "f", range(len(tokens))))]
        return pairs + [pair("tokenizer.ggml." + k, *v) for k, v in more.items()]

    pieces = ["<unk>", "<s>", "</s>"] + [f"<0x{b:02X}>" for b in range(256)] + ["\u2581", "a", "b", "ab", "\u2581a"]
    kinds = [2, 3, 3] + [6] * 256 + [1] * 4 + [5]
    blocks = [(0, 4, 1), (1, 2, 1), (2, 18, 32), (3, 20, 32), (6, 22, 32), (7, 24, 32), (8, 34, 32), (10, 84, 256), (11, 110, 256), (12, 144, 256), (13, 176, 256), (14, 210, 256), (30, 2, 1)]
    yield "llama", file(tokenizer("llama", pieces, kinds, bos_token_id=(4, struct.pack("<I", 1))))
    yield "gpt2", file(tokenizer("gpt2", ["a", "b", "ab", "<s>"], [1, 1, 1, 3], pre=(8, text("smollm")), merges=(9, strings(["a b", "x y"]))))
    yield "bert", file(tokenizer("bert", ["[UNK]", "[CLS]", "\u2581a", "b"], [2, 3, 1, 1], cls_token_id=(4, struct.pack("<I", 1))))
    yield "t5", file(tokenizer("t5", ["<unk>", "</s>", "\u2581", "a"], [2, 3, 1, 1], eos_token_id=(4, struct.pack("<I", 1))))
    yield "bad_id", file(tokenizer("llama", pieces, kinds, bos_token_id=(4, struct.pack("<I", 1 << 31))))
    yield "tensors", file([], [(f"t{k}", (n,), k, 0) for k, _, n in blocks], bytes(range(256)))
    for name, dims, kind, offset in (("huge", (1 << 40, 1 << 40), 0, 0), ("product", (1 << 33, 1 << 33), 0, 0), ("offset", (4,), 0, (1 << 64) - 16), ("rows", (33,), 2, 0), ("type", (4,), 999, 0), ("rank", (1,) * 9, 0, 0), ("none", (), 0, 0)):
        yield "tensor_" + name, file([], [("t", dims, kind, offset)], b"\0" * 64)
    yield "count", file([], count=1 << 60)
    yield "list", file([pair("x", 9, struct.pack("<IQ", 8, 1 << 60))])
    yield "list_of_lists", file([pair("x", 9, struct.pack("<IQ", 9, 1))])
    yield "alignment", file([pair("general.alignment", 4, struct.pack("<I", 0))], [("t", (4,), 0, 0)], b"\0" * 16)
    yield "version", file([], version=9)
    yield "big_endian", file([], version=3 << 24)
    yield "twice", file([], [("t", (1,), 0, 0)] * 2, b"\0" * 64)


def pickle_files():
    data = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "formats", "data")
    for name in ("state.pth", "legacy.pth", "checkpoint.pt", "script.pt", "net.pdparams", "net2.pdparams", "net.pdopt"):
        with open(os.path.join(data, name), "rb") as f:
            yield name, f.read()
    yield "system", b"cposix\nsystem\n(S'echo'\ntR."
    yield "itself", b"]q\0h\0a."
    yield "mark", b"(((((t."
    yield "long", b"\x80\x04X\xff\xff\xff\xffa."
    yield "bytes8", b"\x80\x04\x8e" + b"\xff" * 8 + b"."


def hdf5_files():
    data = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "formats", "data")
    for name in ("weights.h5", "elsewhere.h5"):
        with open(os.path.join(data, name), "rb") as f:
            content = f.read()
        yield name, content
        for part in (1, 2, 5, 9):
            yield f"cut_{part}_{name}", content[: len(content) * part // 10]
        # Damage where the file has something: sizes, addresses, counts and types of its headers.
        places = [i for i, byte in enumerate(content) if byte]
        for at in places[:: max(1, len(places) // 150)]:
            for value in (0xFF, content[at] ^ 0x40):
                yield f"changed_{at}_{value}_{name}", content[:at] + bytes([value]) + content[at + 1:]
    yield "signature", b"\x89HDF\r\n\x1a\n"
    yield "signature_far", b"\0" * 512 + b"\x89HDF\r\n\x1a\n" + b"\xff" * 64


def paddle_files():
    data = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
    for name in ("formats/data/pir.json", "formats/data/program.pdmodel", "formats/data/program.pdiparams",
                 "paddle_program/data/words_pir.json", "paddle_program/data/pictures_program.pdmodel",
                 "paddle_program/data/turns_pir.json", "paddle_program/data/choices_program.pdmodel",
                 "paddle_program/data/growth_program.pdmodel"):
        with open(os.path.join(data, name), "rb") as f:
            content = f.read()
        name = os.path.basename(name)
        yield name, content
        for part in (1, 5, 9):
            yield f"cut_{part}_{name}", content[: len(content) * part // 10]
        for at in range(0, len(content), max(1, len(content) // 60)):
            yield f"changed_{at}_{name}", content[:at] + bytes([content[at] ^ 0x11]) + content[at + 1:]
    # A program without parameters, so that its operations are reached.
    pir = {"base_code": {"magic": "pir", "version": 1}, "program": {"regions": [{"blocks": [{"ops": []}]}]}}

    def value(i, shape=(-1, 3)):
        return {"%": i, "TT": {"#": "0.t_dtensor", "D": [{"#": "0.t_f32"}, list(shape), "NCHW", [], 0]}}

    def op(kind, inputs, outputs, **attributes):
        return {"#": kind, "A": [{"N": k, "AT": {"#": "0.a_array", "D": v}} for k, v in attributes.items()],
                "I": [{"%": i} for i in inputs], "O": [value(i) for i in outputs]}

    huge = 1 << 62
    hostile = [op("1.full", [], [2], shape=[huge, huge], value=1.0, dtype="float32"), op("1.full", [], [2], shape=[-5], value=1.0, dtype="float32"),
               op("1.split_with_num", [1], [2], num=huge), op("1.unstack", [1], [2], num=-1), op("1.flatten", [1], [2], start_axis=-huge, stop_axis=huge),
               op("1.flatten", [1], [2], start_axis=huge), op("1.squeeze", [1], [2], axes=[huge, -huge]), op("1.stack", [1], [2], axis=-huge),
               op("1.layer_norm", [1, 0, 0], [2], begin_norm_axis=huge), op("1.rnn", [1, 1, 1, 0], [2], hidden_size=huge, num_layers=huge, is_test=1),
               op("1.pool2d", [1, 1], [2], ksize=[0, 0], adaptive=1), op("1.slice", [1, 1, 1], [2], axes=[huge]), op("0.slice", [1], [2], index=huge),
               op("1.assign_value_", [], [2], shape=[huge, huge, 4], values=[1.0], dtype="float32"), op("1.add", [7, 9], [2]), op("1.conv2d", [1], [2])]
    for i, each in enumerate(hostile):
        pir["program"]["regions"][0]["blocks"][0]["ops"] = [op("1.data", [], [1], name="x"), each, op("1.fetch", [2], [3], name="y")]
        yield f"hostile_{i}", json.dumps(pir).encode()


def grammar_files():
    for i, pattern in enumerate((b"a[^b-d]{2,5}(x|yz)*", b"\\d+\\.\\w?", b"((((a{99}){99}){99}){99})", b"(a|a|a)*b", b"[\xf0\x90\x80\x80-\xf4\x8f\xbf\xbf]+")):
        yield f"regex_{i}", b"r" + pattern
    for i, schema in enumerate(({"type": "object", "properties": {"a": {"type": "integer", "minimum": -3, "maximum": 1e9}, "b": {"type": ["string", "null"], "maxLength": 4}}, "required": ["b"]},
                                {"$defs": {"n": {"anyOf": [{"type": "null"}, {"type": "array", "items": {"$ref": "#/$defs/n"}}]}}, "$ref": "#/$defs/n"},
                                {"oneOf": [{"const": 1}, {"enum": ["x", "y"]}]}, {"$ref": "#"}, {"type": "number", "exclusiveMinimum": 0.25, "maximum": 0.5}, {"type": "string", "format": "email"},
                                {"type": "array", "prefixItems": [{}, True], "minItems": 1, "maxItems": 9000})):
        yield f"schema_{i}", b"s" + json.dumps(schema).encode()


def rendezvous_files():
    lines = {
        "alive": b"alive 12 40 2 1 3", "late": b"alive 1 1 2 9 99999999999", "short": b"alive 1 2", "kind": b"alive 1 1 4294967295 -1 0",
        "answer": b"0123456789abcdef0123456789abcdef " + b"0" * 64 + b" rank 1 127.0.0.1:1 0", "plain": b"secret rank 1 127.0.0.1:1 0",
        "node": b"failed 7 rank 4 was killed\nended", "address": b"127.0.0.1:4000", "port": b"host:65536", "noise": b"\n\n\0\xff GET / HTTP/1.1\r\n",
        "long": b"x" * 5000,
    }
    for name, line in lines.items():
        yield name, b"\0" + line
        yield name + "_admitted", b"\1" + line


def http_files():
    host = b"Host: localhost:8080\r\n"
    requests = {
        "get": b"GET /v1/models?a=b HTTP/1.1\r\n" + host + b"Accept: */*\r\nConnection: close\r\n\r\n",
        "head": b"\r\nHEAD http://localhost/health HTTP/1.1\r\n" + host + b"\r\n",
        "length": b"POST /v1/completions HTTP/1.1\r\n" + host + b"Content-Length: 5\r\nExpect: 100-continue\r\n\r\nhello",
        "chunked": b"POST / HTTP/1.1\r\n" + host + b"Transfer-Encoding: chunked\r\n\r\n4;a=\"b\"\r\nwiki\r\n00a\r\n0123456789\r\n0\r\nX: y\r\n\r\n",
        "old": b"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
        "version": b"GET / HTTP/2.0\r\n\r\n",
        "hosts": b"GET / HTTP/1.1\r\n" + host + host + b"\r\n",
        "smuggled": b"POST / HTTP/1.1\r\n" + host + b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "control": b"GET / HTTP/1.1\r\n" + host + b"X: a\0b\r\n\r\n",
        "folded": b"GET / HTTP/1.1\r\n" + host + b" more\r\n\r\n",
        "large": b"POST / HTTP/1.1\r\n" + host + b"Content-Length: 18446744073709551615\r\n\r\n",
        "chunk_size": b"POST / HTTP/1.1\r\n" + host + b"Transfer-Encoding: chunked\r\n\r\nfffffffffffffffe\r\n",
        "long": b"GET / HTTP/1.1\r\nX: " + b"y" * 4000,
    }
    for size in range(2046, 2052):  # around the limit of the target
        requests[f"edge_{size}"] = b"GET / HTTP/1.1\r\n" + host + b"X: " + b"y" * (size - 42) + b"\r\n\r\n"
    predictions = {
        "lists": (b"application/json", b'{"model": "m", "decode": true, "inputs": {"x": [[1, 2.5, -3e-2], [4, 5, 6]], "n": 7, "b": [true], "e": [[], []]}}'),
        "typed": (b"application/json; charset=utf-8", b'{"inputs": {"x": {"dtype": "uint8", "data": [[0, 255], [18446744073709551615, 1]]}, "s": ["a", "\\u00e9"]}}'),
        "rows": (b"", b'{"rows": [{"a": 1, "b": "c\\n", "d": null, "e": {"f": [1, {"g": []}]}}, {}, {"a": 1e5, "t": true}]}'),
        "images": (b"application/json", b'{"images": ["aGVsbG8=", "data:image/png;base64,aGVsbG8"], "sounds": null}'),
        "image": (b"image/png", b"\x89PNG\r\n\x1a\n"),
        "npz": (b"application/x-npz", b"PK\3\4"),
        "form": (b'multipart/form-data; boundary="--x"', b'----x\r\nContent-Disposition: form-data; name="model"\r\n\r\nm\r\n----x\r\nContent-Disposition: form-data; name="image"; filename="a.png"\r\nContent-Type: image/png\r\n\r\n\x89PNG\r\n----x--\r\n'),
        "uneven": (b"", b'{"inputs": {"x": [[1], [2, 3], 4]}}'),
        "deep": (b"", b'{"inputs": {"x": ' + b"[" * 40 + b"]" * 40 + b"}}"),
        "bad": (b"", b'{"inputs": {"x": [NaN, 1e999]}, "rows": [1], "none": 0}'),
    }
    for name, (kind, body) in predictions.items():
        head = b"POST /v1/predict?model=a%20b&decode=1 HTTP/1.1\r\n" + host
        if kind:
            head += b"Content-Type: " + kind + b"\r\n"
        requests["predict_" + name] = head + b"Content-Length: %d\r\n\r\n" % len(body) + body
    requests["pipelined"] = requests["chunked"] + requests["length"] + requests["get"]
    for name, content in requests.items():
        for piece in (0, 2, 200):
            yield f"{name}_{piece}", bytes([piece]) + content


def sound_files():
    data = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../formats/data")
    for name in ("tone.flac", "stereo.flac", "silence.flac", "tone.wav", "stereo.wav"):
        with open(os.path.join(data, name), "rb") as f:
            content = f.read()
        yield name, content
        yield "cut-" + name, content[: len(content) // 2]
        for at in (20, 30, 45, 60):
            yield f"changed-{at}-{name}", content[:at] + bytes([content[at] ^ 0xFF]) + content[at + 1:]


def image_files():
    here = os.path.dirname(os.path.abspath(__file__))
    names = [f"../formats/data/images/{name}" for name in sorted(os.listdir(os.path.join(here, "../formats/data/images")))]
    names += [f"../data/formats/{name}" for name in ("rgb.jpg", "grey.jpg", "cmyk.jpg", "rgb.png", "palette.png", "one_bit.png", "sixteen_bit.png")]
    for name in names:
        with open(os.path.join(here, name), "rb") as f:
            content = f.read()
        name = os.path.basename(name)
        yield name, content
        yield "cut-" + name, content[: len(content) // 2]
        # Headers, and the directory of a TIFF at either end.
        for at in [*range(4, min(len(content), 60), 3), *range(max(60, len(content) - 60), len(content), 3)]:
            yield f"changed-{at}-{name}", content[:at] + bytes([content[at] ^ 0xFF]) + content[at + 1:]


def record_files():
    import io
    import tarfile

    for form in (tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT):
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w", format=form) as tar:
            for name, content in (("x/1.a", b"[1, 2]"), ("x/1.b", b"red|big"), ("y" * 90 + "/" + "z" * 60 + ".a", b"3|4")):
                member = tarfile.TarInfo(name)
                member.size = len(content)
                tar.addfile(member, io.BytesIO(content))
        content = buffer.getvalue()
        yield f"tar-{form}", content
        yield f"tar-{form}-cut", content[:700]
        yield f"tar-{form}-size", content[:124] + b"77777777777" + content[135:]
    yield "jsonl", b'{"a": [1, 2], "b": ["red"]}\n{"a": {"b": 1}, "b": null}\n'
    yield "jsonl-deep", b'{"a": ' + b"[" * 3000
    yield "csv", b'a,b\n1|2,red|big\n"3|4",""\n5\n'
    yield "slots", b"1 2 2 0.5 7 3 x y z\n1 2 0 0\n2 1\n"
    yield "slots-count", b"9223372036854775807 1 1 1 1 1\n-3 1\n"
    yield "coco", (b'{"images": [{"id": 1, "file_name": "x.png", "width": 4}], "categories": [{"id": 1, "name": "c"}], '
                   b'"annotations": [{"image_id": 1, "category_id": 1, "bbox": [1, 2, 3, 1e300]}]}')
    folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../data/parquet")
    for name in ("snappy", "version2", "nested", "delta"):
        with open(f"{folder}/{name}.parquet", "rb") as file:
            content = file.read()
        yield "parquet-" + name, content
        yield "parquet-footer-" + name, b"PAR1" + content[-1500:]
    yield "coco-types", b'{"images": [{"id": "1", "file_name": 3}], "categories": [[]], "annotations": {}}'


ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")


def read(path):
    with open(os.path.join(ROOT, path), "rb") as file:
        return file.read()


def damaged(name, content, step):
    """The file, without its end, and with one byte changed at several places."""
    yield name, content
    yield f"cut-{name}", content[: len(content) // 2]
    for at in range(7, len(content), max(step, len(content) // 12)):
        yield f"changed-{at}-{name}", content[:at] + bytes([content[at] ^ 0x15]) + content[at + 1:]


def module_files():
    for name in sorted(os.listdir(os.path.join(ROOT, "tests/passes"))):
        if not name.endswith(".ir"):
            continue
        text = read(f"tests/passes/{name}").decode()
        for i, part in enumerate(text.split("module '")[1:]):
            yield from damaged(f"{i}-{name}", b"module '" + part.encode(), 40)
    yield "deep", b"module 'm' { func 'f'() { %0 = cond(" + b"(" * 5000
    yield "sizes", b"module 'm' { parameter 'p' : float32[9223372036854775807, 9223372036854775807] = '' }"
    yield "access", b"module 'm' { func 'f'() { %0 = read_file() {filename = '/etc/passwd'} : uint8[n] return %0 'y' } }"


def yaml_files(folder):
    for path, _, names in sorted(os.walk(os.path.join(ROOT, folder))):
        for name in sorted(names):
            if name.endswith(".yaml") and "rules" not in name:
                yield name, read(os.path.join(path, name))


def config_files():
    for name, content in yaml_files("configs"):
        yield from damaged(name, b"y" + content, 200)
    yield "json", b'j{"a": [1, {"b": "${a.0}"}], "c": "${c}"}'
    yield "references", b'yx+=[1]\na: &a [1]\nb: *a\nc+: ["${b}", "${c}"]\nd~: {1: 2}\n'
    yield "deep", b"y" + b"[" * 3000


def program_files():
    for name, content in yaml_files("models"):
        if len(content) < 1 << 13:
            yield from damaged(name, content, 300)
    yield "access", b'inputs: {x: "float32[n]"}\nmodel: |\n  y = read_file("/etc/passwd")\noutputs: [y]\n'
    yield "sizes", b'inputs: {x: "float32[n, 8]"}\nmodel: |\n  y = linear(x, 9223372036854775807)\n  for i in range(1000000000): y = y + 1\noutputs: [y]\n'


def rule_files():
    rules = read("engine/compiler/passes/rules/standard.rules")
    yield from damaged("standard", rules, 100)
    yield "access", b"a: relu(x) -> read_file(filename='/etc/passwd')\n"
    yield "deep", b"a: " + b"relu(" * 5000


def shared_object(note):
    """An ELF file for x86-64 with a note, and the symbols and libraries of its dynamic section."""
    strings = b"\0paddle_plugin_main\0libc.so.6\0"
    symbols = bytes(24) + struct.pack("<IBBHQQ", 1, 0x12, 0, 7, 0x1000, 4)
    dynamic = struct.pack("<qQqQ", 1, 20, 0, 0)
    parts, at = [], 64 + 56
    for part in (note, strings, symbols, dynamic):
        parts.append((at, len(part)))
        at += len(part)
    section = lambda kind, i, link=0: struct.pack("<IIQQQQIIQQ", 0, kind, 0, 0, *parts[i], link, 0, 8, 24)  # noqa: E731
    sections = bytes(64) + section(3, 1) + section(11, 2, 1) + section(6, 3, 1)
    header = b"\x7fELF\2\1\1" + bytes(9) + struct.pack("<HHIQQQIHHHHHH", 3, 62, 1, 0, 64, at, 0, 64, 56, 1, 64, 4, 0)
    segment = struct.pack("<IIQQQQQQ", 4, 4, parts[0][0], 0, 0, parts[0][1], parts[0][1], 4)
    return header + segment + note + strings + symbols + dynamic + sections


def plugin_files():
    yaml = read("plugins/gated_norm/gated_norm.plugin.yaml")
    yield from damaged("yaml", b"y" + yaml, 20)
    yield from damaged("train", b"y" + read("plugins/train_parts/train_parts.plugin.yaml"), 40)
    yield "deep", b"y" + yaml.replace(b"body: ", b"body: " + b"(" * 3000)
    yield "random", b"y" + yaml.replace(b"body: ", b"body: dropout(x, 0.5) + ")
    text = b"infer: x.dtype [dim(x, 0) * 2, dim(x, -1) // 3 + 1]\n    sharding: '[n, ...], [n, ...] -> [n, ...]'\n    body: "
    yield from damaged("types", b"y" + yaml.replace(b"body: ", text) + b"rules: |\n  a: abs(x) -> relu(x)\n", 20)
    note = struct.pack("<III", 7, 104, 1) + b"paddle\0\0" + struct.pack("<II64s32s", 1, 0, b"fuzz", b"1.0.0")
    yield from damaged("elf", b"e" + shared_object(note), 1)
    yield "sizes", b"e" + shared_object(struct.pack("<III", 0xFFFFFFFF, 0xFFFFFFFF, 1) + bytes(120))


def float_sound(samples, rate=8000):
    """A WAV file of 32-bit floating-point samples."""
    data = struct.pack(f"<{len(samples)}f", *samples)
    form = struct.pack("<HHIIHH", 3, 1, rate, 4 * rate, 4, 32)
    return b"RIFF" + struct.pack("<I", 28 + len(data)) + b"WAVEfmt " + struct.pack("<I", 16) + form + b"data" + struct.pack("<I", len(data)) + data


def dataset_files():
    """Cells of every kind of field after a byte that chooses the form of the file."""
    import io
    import tarfile

    bad = ["nan", "inf", "-inf", "1e999", "x", "", "1e308"]
    yield "csv-numbers", b"\0" + "a,b\n{}\n".format("\n".join(f"{x},{y}" for x in bad + ["1", "2"] for y in bad[:3] + ["3"])).encode()
    for value in bad:
        numbers = ["0.5"] * 100
        numbers[70] = value
        yield f"csv-list-{value}", b"\0" + "a,b\n{0},1\n{0},2\n".format("|".join(numbers)).encode()
        yield f"csv-short-{value}", b"\0" + f"a,b\n1|2|{value},1\n1|2|3,{value}\n".encode()
        yield f"jsonl-list-{value}", b"\1" + f'{{"a": [1, 2, "{value}"], "b": 1}}\n{{"a": [1, 2, 3], "b": 2}}\n'.encode()
    yield "csv-texts", b"\0a,b\nThe cat sat,x\n\xff\xfe,y\n,z\n"
    yield "jsonl-types", b'\1{"a": 1, "b": null}\n{"a": {"b": []}}\n{"a": [[1], [2, 3]]}\n{"a": true}\n{"a": 18446744073709551615}\n'
    yield "slots", b"\3" + b"3 1 nan 3 1 1\n3 1 2 inf 1 2\n100 " + b"1 " * 69 + b"nan " * 31 + b"1 7\n"
    sounds = {"sound": [0.5] * 2000, "nan": [0.5] * 900 + [float("nan")] + [0.5] * 99, "infinity": [float("-inf")] * 50, "none": []}
    for name, samples in sounds.items():
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w", format=tarfile.USTAR_FORMAT) as tar:
            for key, content in (("1.a", float_sound(samples)), ("1.b", b"1"), ("2.a", float_sound(samples[:10])), ("2.b", b"nan")):
                member = tarfile.TarInfo(key)
                member.size = len(content)
                tar.addfile(member, io.BytesIO(content))
        yield "tar-" + name, b"\2" + buffer.getvalue()


# ---- segments of tables --------------------------------------------------------------------------


def mix64(x):
    mask = (1 << 64) - 1
    x = (x + 0x9E3779B97F4A7C15) & mask
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & mask
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & mask
    return x ^ (x >> 31)


def segment_files():
    """The length of the manifest, the manifest, and the only file that it lists."""

    def seed(manifest, data):
        text = manifest if isinstance(manifest, bytes) else json.dumps(manifest).encode()
        return struct.pack("<I", len(text)) + text + data

    keys = sorted([0, 7, 2**63, 2**64 - 1], key=lambda key: (mix64(key) >> 54, key))
    rows = [0] * 1024
    for key in keys:
        rows[mix64(key) >> 54] += 1

    def file_of(keys):
        n = len(keys)
        entries = {"keys": {"dtype": "U64", "shape": [n], "data_offsets": [0, 8 * n]},
                   "moment": {"dtype": "F32", "shape": [n, 2], "data_offsets": [8 * n, 16 * n]},
                   "weight": {"dtype": "F32", "shape": [n, 2], "data_offsets": [16 * n, 24 * n]}}
        return safetensors(entries, struct.pack(f"<{n}Q", *keys) + struct.pack(f"<{4 * n}f", *range(4 * n)))

    def manifest_of(data, **changes):
        listed = {"file": "x.safetensors", "shards": [0, 1023], "rows": rows, "bytes": len(data), "blocks": [zlib.crc32(data)]}
        listed.update({key: value for key, value in changes.items() if key in listed})
        out = {"version": 1, "table": "t", "key": "uint64", "dtype": "float32", "width": 2, "states": ["moment"], "step": 3, "count": len(keys), "files": [listed]}
        out.update({key: value for key, value in changes.items() if key not in listed})
        return out

    good = file_of(keys)
    yield "good", seed(manifest_of(good), good)
    yield "empty", b""
    yield "not-json", seed(b"{", good)
    yield "checksum", seed(manifest_of(good), good[:-1] + b"x")
    swapped = file_of(keys[::-1])
    yield "order", seed(manifest_of(swapped), swapped)
    yield "bytes", seed(manifest_of(good, bytes=7), good)
    yield "negative", seed(manifest_of(good, rows=[-1] * 1024), good)
    yield "huge", seed(manifest_of(good, rows=[2**62] * 1024), good)
    yield "shards", seed(manifest_of(good, shards=[0, 2**40]), good)
    yield "lacks", seed(manifest_of(good, files=[]), good)
    yield "outside", seed(manifest_of(good, file="../../etc/passwd"), good)
    yield "types", seed(manifest_of(good, files=[{"file": 1}]), good)
    yield "key", seed(manifest_of(good, key="int64"), good)


def stored_graph(version=1, count=3, offsets=(0, 2, 3, 3), neighbors=(1, 2, 0), ids="text", weights=(1.0, 2.0, 0.5)):
    """A stored graph of three nodes: its files after lines with their names and sizes."""
    import json
    import zlib

    files = {
        "n0.ids": struct.pack("<4Q", 0, 1, 2, 5) if ids == "text" else struct.pack("<3Q", 4, 7, 2**64 - 1),
        "n0.f0": struct.pack("<6f", *range(6)),
        "n0.f1": struct.pack("<3q", 0, 1, -1),
        "e0.offsets": struct.pack(f"<{len(offsets)}Q", *offsets),
        "e0.neighbors": struct.pack(f"<{len(neighbors)}I", *neighbors),
        "e0.weights": struct.pack("<3f", *weights),
        "e0.alias": struct.pack("<fIfIfI", 2 / 3, 1, 1.0, 1, 1.0, 0),
    }
    if ids == "text":
        files["n0.text"] = b"abcde"
    nodes = {"name": "node", "count": count, "ids": ids, "features": [{"name": "x", "dtype": "float32", "shape": [2]}, {"name": "class", "dtype": "int64", "shape": [], "classes": ["a", "b"]}]}
    edges = {"name": "edge", "from": "node", "to": "node", "count": 3, "weighted": True, "neighbor_bytes": 4}
    listed = {name: {"bytes": len(content), "crc32": zlib.crc32(content)} for name, content in files.items()}
    files["graph.json"] = json.dumps({"format": "paddle-graph", "version": version, "nodes": [nodes], "edges": [edges], "files": listed}).encode()
    return b"".join(f"{name} {len(content)}\n".encode() + content for name, content in files.items())


def graph_files():
    yield from damaged("text", stored_graph(), 7)
    yield from damaged("integer", stored_graph(ids="integer"), 7)
    yield "offsets-back", stored_graph(offsets=(0, 3, 1, 3))
    yield "offsets-far", stored_graph(offsets=(0, 2, 2**63, 3))
    yield "neighbor", stored_graph(neighbors=(1, 2, 4000000000))
    yield "weight-nan", stored_graph(weights=(float("nan"), float("inf"), -1.0))
    yield "count", stored_graph(count=2**47)
    yield "version", stored_graph(version=2)
    yield "deep", b"graph.json 20000\n" + b"[" * 20000
    for name, text in (("list", "0,1\n1,2\n2,0\n"), ("words", 't "\n"a,b",c\n'), ("weights", "1,2,3\n2,1,1e39\n"), ("ids", "18446744073709551615,0\n-1,2\n"), ("bytes", "\xff\x00,b\nb,\xff\x00\n")):
        yield "t-" + name, b"t" + text.encode("latin-1")


# ---- frames of tables ----------------------------------------------------------------------------


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def frame_files():
    """An odd first byte and messages, or an even one and frames; see frames_fuzz.cc."""
    OPEN, ASK, PUSH, SQUARES, UPDATE, FENCE, DAY, FINISH, MARK, LOAD, ADD, LOADED, COUNT, CONTENT, SAVE, BYE = (
        2, 3, 5, 6, 8, 10, 11, 12, 14, 15, 16, 18, 19, 21, 23, 25)

    def frame(kind, body=b"", flags=0, length=None, sequence=1, magic=b"PPS1"):
        head = magic + struct.pack("<HHIIIQII", kind, flags, 0, 0, 0, sequence, 0, len(body) if length is None else length)
        return head + struct.pack("<I", crc32c(head + body)) + body

    def message(kind, body=b"", lane=0, worker=0, sequence=1):
        return bytes([kind - 1, 0, lane, worker, sequence, len(body)]) + body

    keys = [[], []]
    for key in range(20):
        keys[mix64(key) >> 63].append(key)
    push = struct.pack("<IBQQ4Q", 0, 1, 2, 4, *keys[0][:4]) + struct.pack("<4f", 1, 2, 3, 4) + struct.pack("<6d", 1, 1, 0, 2, 2, 1)
    ask = struct.pack("<QqIBQ3Q", 0, 1, 0, 1, 3, *keys[0][:3])
    update = struct.pack("<dqqBdId", 0.1, 1, 0, 1, 2.0, 0, 0.5)
    step = b"".join(message(kind, body, worker=worker) for kind, body in ((ASK, ask), (PUSH, push), (SQUARES, b""), (UPDATE, update))
                    for worker in (0, 1))
    content = (b"\x08" + struct.pack("<QqQ", 1, 1, keys[0][0]) + b"\x0f" + struct.pack("<Qqqff", 2, 1, 2, 1, 2)
               + struct.pack("<QQ", 0, 0))
    files = struct.pack("<QB", 0, 0) + struct.pack("<q", 1) + struct.pack("<Q", 4) + b"save"
    yield "step", b"\x01" + step + message(COUNT, struct.pack("<Q", 1)) + message(CONTENT, struct.pack("<QBB", 1, 0, 1))
    fences = b"".join(message(FENCE, struct.pack("<q", 0), worker=worker) for worker in (0, 1))
    own = b"".join(message(kind, body, worker=worker, sequence=number) for kind, body, number in ((ASK, ask, 1), (PUSH, push, 2), (UPDATE, update, 2))
                   for worker in (1, 0))
    yield "async", b"\x03" + fences + own + b"".join(message(FENCE, struct.pack("<q", 1), worker=worker, sequence=3) for worker in (0, 1))
    yield "async-step", b"\x03" + fences + message(ASK, struct.pack("<Qq", 0, -5)) + message(FENCE, struct.pack("<q", HUGE >> 1), sequence=2)
    yield "day", b"\x01" + step + b"".join(message(kind, body, worker=worker, sequence=number)
        for number, kind, body in ((2, DAY, struct.pack("<q", 9)), (3, FINISH, b""), (3, MARK, struct.pack("<I", 0))) for worker in (0, 1))
    yield "load", b"\x01" + b"".join(message(LOAD, struct.pack("<Q", 5), worker=worker) for worker in (0, 1)) + message(
        ADD, struct.pack("<IB", 0, 0) + content) + b"".join(message(LOADED, worker=worker, sequence=2) for worker in (0, 1))
    yield "save", b"\x01" + message(SAVE, files) + message(SAVE, files[:-4] + b"../x") + message(BYE) + message(BYE, worker=1)
    yield "lists", b"\x01" + message(ASK, struct.pack("<QqIBQ", 0, 0, 0, 1, HUGE)) + message(PUSH, struct.pack("<IBQQ", 0, 1, HUGE, 1)) + message(
        OPEN, b"\xff" * 80)
    yield "frames", b"\x00" + frame(ASK, ask) + frame(PUSH, push, flags=1) + frame(PUSH, b"") + frame(BYE)
    yield "long", b"\x00" + frame(ASK, ask, length=0x7FFFFFFF)
    yield "kind", b"\x00" + frame(999) + frame(ASK, flags=6)
    yield "magic", b"\x00" + frame(ASK, magic=b"PPS9")
    yield "checksum", b"\x00" + frame(ASK, ask)[:-1] + b"\x00"


# ---- orders of messages --------------------------------------------------------------------------


def order_files():
    """An even first byte and a file, or an odd one and entries that a log writes; see order_fuzz.cc."""
    PULL, PUSH, EXCHANGE, FENCE, RESTART, DIGEST, CHECK, END = range(1, 9)

    def entry(kind, worker=0, step=0):
        return struct.pack("<Q", kind | worker << 4 | step << 24)

    header = struct.pack("<QqQiii", 0x31726F7372646470, 0, 7, 0, 1, 2)
    whole = header + struct.pack("<I", crc32c(header)) + entry(FENCE) + entry(CHECK, 0, crc32c(entry(FENCE)))
    steps = entry(PULL, 0, 1) + entry(PUSH, 1, 1) + entry(RESTART) + entry(PULL, 0, 1) + entry(PUSH, 0, 1) + entry(FENCE, 0, 1)
    yield "file", b"\x00" + whole + steps + entry(CHECK, 0, crc32c(steps)) + entry(END)
    yield "cut", b"\x00" + whole + entry(PULL)[:3]
    yield "check", b"\x00" + whole + entry(CHECK, 5, 1)
    yield "header", b"\x00" + whole[:12] + b"\xff" + whole[13:]
    yield "entries", b"\x05" + steps + entry(PULL, 1, 2) + entry(FENCE, 0, 2) + entry(END)
    yield "late", b"\x09" + entry(PUSH, 1, 2**40 - 1) * 3 + entry(FENCE, 0, 2**39) + entry(DIGEST)


# ---- records of exchanges ------------------------------------------------------------------------


def flight_files():
    """The header of a record file and its first records; see comm/flight.h."""

    def header(rank=0, size=2, offset=0, records=3, since=5):
        fields = struct.pack("<8siiqqQqq64s64sI", b"PADFLY01", rank, size, 77, offset, records, 4, since, b"reading a batch", b"alpha", 0)
        return fields.ljust(4096, b"\0")

    def record(number, turn=1, step=1, begin=10, end=20, size=64, kind=2, flags=0, first=0, stride=1, count=2, tag=0, place=b"model.yaml:3:4 @layer.0"):
        return struct.pack("<QQqqqqIIiiiI120s", number, turn, step, begin, end, size, kind, flags, first, stride, count, tag, place)

    good = record(1) + record(2, flags=4, end=30, place=b"reading a batch") + record(3, turn=2, end=0)
    yield "good", header() + good
    yield "clock", header(offset=-(10**12)) + good
    yield "messages", header() + b"".join(record(i, turn=i, begin=i, end=i + 1, size=4096, kind=8, flags=2, stride=-1, first=1) for i in (1, 2, 3))
    yield "group", header() + record(1, first=-5, stride=0, count=2**31 - 1) + record(2, stride=-(2**31), kind=9) + record(3, end=0, stride=-(2**31))
    yield "times", header() + record(1, begin=-1) + record(2, begin=2**62) + record(3, begin=30, end=20)
    yield "since", header(since=-1) + good
    yield "rank", header(rank=2) + good
    yield "text", header() + record(1, place=b"\xff" * 120) + record(2, end=0, place=b"a:\n")
    yield "magic", b"PADFLY00" + header()[8:] + good


# ---- tables as text ------------------------------------------------------------------------------


def table_text_files():
    """The kind of text and keys in a byte, and the file; see table_import_fuzz.cc."""
    csv = b"key,weight_0,weight_1,moment_0,moment_1,show,click,day\n17,0.5,-1e-3,0,1,3,1,4\n-2,1,2,3,4,0,0,0\n"
    yield "csv", b"\x00" + csv
    yield "unsigned", b"\x02" + csv.replace(b"-2,", b"18446744073709551615,")
    yield "twice", b"\x00" + csv + b"17,0,0,0,0,0,0,0\n"
    yield "short", b"\x00" + csv + b"18,1\n"
    yield "numbers", b"\x00" + csv + b"18,nan,1e999,0x1,1,2,3\n" + b"9" * 400
    yield "header", b"\x00key,weight_1,weight_0,,key\n1,2,3,4,5\n"
    yield "paddle", b"\x01" + b"17 3 0 0.5 3 1 0.1 0.2\n18 3 1 0.5 3 1 0.1 0.2 0.5 0.25 1\n"
    yield "paddle-short", b"\x01" + b"17 3\n\n18 3 1 0.5 3 1 0.1 0.2 0.5 0.25 1 1 1 1 1\n"


def main():
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        sys.exit("usage: make_seeds.py FOLDER")
    folder = sys.argv[1]
    for subject, files in (("onnx", list(good_models()) + list(hostile_models())), ("safetensors", safetensors_files()), ("npz", npz_files(folder)),
                           ("tokenizer", tokenizer_files()), ("jinja", jinja_files()), ("gguf", gguf_files()), ("grammar", grammar_files()), ("pickle", list(pickle_files())), ("hdf5", list(hdf5_files())), ("paddle", list(paddle_files())),
                           ("sound", list(sound_files())), ("records", list(record_files())), ("dataset", list(dataset_files())),
                           ("image", list(image_files())), ("module", module_files()), ("config", config_files()),
                           ("program", program_files()), ("rules", rule_files()), ("http", list(http_files())),
                           ("rendezvous", list(rendezvous_files())), ("plugin", list(plugin_files())),
                           ("segments", list(segment_files())), ("graph", list(graph_files())),
                           ("frames", list(frame_files())), ("order", list(order_files())), ("table_import", list(table_text_files())),
                           ("flight", list(flight_files()))):
        os.makedirs(os.path.join(folder, subject), exist_ok=True)
        for name, content in files:
            with open(os.path.join(folder, subject, name), "wb") as f:
                f.write(content)


if __name__ == "__main__":
    main()
