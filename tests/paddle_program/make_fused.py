#!/usr/bin/env python3
"""Writes data/fused_pir.json: fused operations that PaddlePaddle computes on GPUs only, so that no CPU can run or save them.

The program is written as PaddlePaddle 3 writes one; data/fused_pir.npz has inputs and the results of the
formulas that PaddlePaddle documents, computed here in float64.
"""
import json
import math
from pathlib import Path

import numpy as np

FOLDER = Path(__file__).parent / "data"
WIDTH, HEADS, HIDDEN = 8, 2, 12
random = np.random.default_rng(4)


class Program:
    def __init__(self):
        self.operations, self.given, self.results, self.next = [], {}, [], 1

    def identifier(self):
        self.next += 1
        return self.next - 1

    @staticmethod
    def typed(identifier, array):
        name = {"float32": "f32", "int64": "i64"}[str(array.dtype)]
        return {"%": identifier, "TT": {"#": "0.t_dtensor", "D": [{"#": f"0.t_{name}"}, list(array.shape), "NCHW", [], 0]}}

    @staticmethod
    def attribute(name, value):
        kind = {bool: "0.a_bool", int: "0.a_i32", float: "0.a_f32", str: "0.a_str", list: "0.a_array"}[type(value)]
        if isinstance(value, list):
            value = [{"#": "0.a_i64", "D": each} for each in value]
        return {"N": name, "AT": {"#": kind, "D": value}}

    def data(self, array):
        made, name = self.identifier(), f"in{len(self.given)}"
        self.given[name] = array
        attributes = [self.attribute("name", name), {"N": "shape", "AT": {"#": "1.a_intarray", "D": list(array.shape)}},
                      {"N": "dtype", "AT": {"#": "1.a_dtype", "D": str(array.dtype)}}]
        self.operations.append({"#": "1.data", "A": attributes, "I": [], "O": [self.typed(made, array)]})
        return made

    def number(self, value):
        made = self.identifier()
        attributes = [{"N": "value", "AT": {"#": "0.a_f64", "D": float(value)}}, {"N": "shape", "AT": {"#": "1.a_intarray", "D": [1]}},
                      {"N": "dtype", "AT": {"#": "1.a_dtype", "D": "int64"}}]
        self.operations.append({"#": "1.full", "A": attributes, "I": [], "O": [self.typed(made, np.zeros(1, np.int64))]})
        return made

    def operand(self, value):
        """Arrays are inputs, numbers constants, lists of arrays are combined, and None is absent."""
        if value is None:
            return 0
        if isinstance(value, int):
            return self.number(value)
        if not isinstance(value, list):
            return self.data(value)
        parts = [self.data(each) for each in value]
        made = self.identifier()
        types = [self.typed(0, each)["TT"] for each in value]
        self.operations.append({"#": "0.combine", "A": [], "I": [{"%": each} for each in parts],
                                "O": [{"%": made, "TT": {"#": "0.t_vec", "D": types}}]})
        return made

    def op(self, name, operands, attributes, wanted, results=1, place=0):
        """`wanted` is the value of the result at `place` among the results."""
        inputs = [{"%": self.operand(each)} for each in operands]
        wanted = np.asarray(wanted)
        wanted = wanted.astype(np.float32 if wanted.dtype.kind == "f" else np.int64)
        made = [self.identifier() for _ in range(results)]
        self.operations.append({"#": f"1.{name}", "A": [self.attribute(*each) for each in attributes.items()], "I": inputs,
                                "O": [self.typed(each, wanted) for each in made]})
        column = len(self.results)
        self.operations.append({"#": "1.fetch", "A": [self.attribute("name", f"out{column}"), self.attribute("col", column)],
                                "I": [{"%": made[place]}], "O": [self.typed(self.identifier(), wanted)]})
        self.results.append(wanted)

    def write(self, stem):
        # Inputs come first, as PaddlePaddle writes them.
        ordered = sorted(self.operations, key=lambda each: each["#"] != "1.data")
        block = {"#": "block", "args": [], "ops": ordered}
        program = {"base_code": {"magic": "pir", "version": 1}, "program": {"regions": [{"#": "region", "blocks": [block]}]}}
        (FOLDER / f"{stem}.json").write_text(json.dumps(program, separators=(",", ":")) + "\n")
        np.savez_compressed(FOLDER / f"{stem}.npz", **self.given, **{f"out{i}": each for i, each in enumerate(self.results)})


def floats(*shape):
    return (random.normal(size=shape) * 0.7).astype(np.float32)


def normalized(x, scale=None, bias=None, epsilon=1e-5):
    x = np.asarray(x, np.float64)
    out = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + epsilon)
    out = out if scale is None else out * scale
    return out if bias is None else out + bias


def gelu(x):
    return x * 0.5 * (1 + np.vectorize(math.erf)(x / np.sqrt(2)))


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def heads_of(x):
    """[batch, time, width] as [batch, heads, time, dim]."""
    return x.reshape(*x.shape[:2], HEADS, -1).transpose(0, 2, 1, 3)


def attended(q, k, v, mask, scale):
    out = softmax(q @ k.transpose(0, 1, 3, 2) * scale + mask) @ v
    return out.transpose(0, 2, 1, 3).reshape(out.shape[0], out.shape[2], -1)


def feed_forward(p, is_pre, activation, mode, with_bias=True):
    x, dropped = floats(2, 3, WIDTH), 0.25
    w1, b1, w2, b2 = floats(WIDTH, HIDDEN), floats(HIDDEN), floats(HIDDEN, WIDTH), floats(WIDTH)
    norms = [floats(WIDTH) for _ in range(4)]
    if not with_bias:
        b1 = b2 = None
    kept = 1 - dropped if mode == "downgrade_in_infer" else 1.0
    act = gelu if activation == "gelu" else lambda v: np.maximum(v, 0)
    y = normalized(x, *norms[:2]) if is_pre else x.astype(np.float64)
    y = act(y @ w1 + (0 if b1 is None else b1)) * kept
    y = x + (y @ w2 + (0 if b2 is None else b2)) * kept
    y = y if is_pre else normalized(y, *norms[2:])
    attributes = {"pre_layer_norm": is_pre, "ln1_epsilon": 1e-5, "ln2_epsilon": 1e-5, "act_method": activation,
                  "dropout1_prob": dropped, "dropout2_prob": dropped, "dropout1_implementation": mode,
                  "dropout2_implementation": mode, "is_test": True, "dropout1_fix_seed": False, "dropout2_fix_seed": False,
                  "dropout1_seed_val": 0, "dropout2_seed_val": 0, "add_residual": True, "ring_id": -1}
    given = norms[:2] + [None, None] if is_pre else [None, None] + norms[2:]
    p.op("fused_feedforward", [x, None, None, w1, b1, w2, b2, *given], attributes, y, results=11)


def attention(p, is_pre, mode, flat=False, cached=False):
    x, mask, dropped = floats(2, 3, WIDTH), floats(2, 1, 3, 5 if cached else 3), 0.2
    w, b, out, out_bias = floats(3, HEADS, WIDTH // HEADS, WIDTH), floats(3, HEADS, WIDTH // HEADS), floats(WIDTH, WIDTH), floats(WIDTH)
    scale, bias = floats(WIDTH), floats(WIDTH)
    cache = floats(2, 2, HEADS, 2, WIDTH // HEADS) if cached else None
    kept = 1 - dropped if mode == "downgrade_in_infer" else 1.0
    y = normalized(x, scale, bias) if is_pre else x.astype(np.float64)
    matrix, row = w.reshape(3 * WIDTH, WIDTH).T, b.reshape(-1)
    q, k, v = (heads_of(each) for each in np.split(y @ matrix + row, 3, -1))
    if cached:
        k, v = np.concatenate([cache[0], k], 2), np.concatenate([cache[1], v], 2)
    y = attended(q, k, v, mask, (WIDTH // HEADS) ** -0.5) * kept
    y = x + (y @ out + out_bias) * kept
    y = y if is_pre else normalized(y, scale, bias)
    attributes = {"num_heads": HEADS if flat else -1, "transpose_qkv_wb": flat, "pre_layer_norm": is_pre, "epsilon": 1e-5,
                  "attn_dropout_rate": dropped, "is_test": True, "attn_dropout_fix_seed": False, "attn_dropout_seed": 0,
                  "attn_dropout_implementation": mode, "dropout_rate": dropped, "dropout_fix_seed": False, "dropout_seed": 0,
                  "dropout_implementation": mode, "ln_epsilon": 1e-5, "add_residual": True, "ring_id": -1}
    given_w, given_b = (np.ascontiguousarray(matrix), row) if flat else (w, b)
    before, after = ([scale, bias], [None, None]) if is_pre else ([None, None], [scale, bias])
    p.op("fused_attention", [x, *before, given_w, given_b, cache, mask, out, out_bias, *after], attributes, y,
         results=20, place=19)


def transformer(p, is_pre):
    x, mask, layers = floats(2, 3, WIDTH), floats(2, 1, 3, 3), 2
    make = lambda *shape: [floats(*shape) for _ in range(layers)]
    scales, biases, qkv, qkv_bias = make(WIDTH), make(WIDTH), make(3, HEADS, WIDTH // HEADS, WIDTH), make(3, HEADS, WIDTH // HEADS)
    out, out_bias, ffn_scales, ffn_biases = make(WIDTH, WIDTH), make(WIDTH), make(WIDTH), make(WIDTH)
    w1, b1, w2, b2 = make(WIDTH, HIDDEN), make(HIDDEN), make(HIDDEN, WIDTH), make(WIDTH)
    y = x.astype(np.float64)
    for i in range(layers):
        z = normalized(y, scales[i], biases[i]) if is_pre else y
        q, k, v = (heads_of(each) for each in np.split(z @ qkv[i].reshape(3 * WIDTH, WIDTH).T + qkv_bias[i].reshape(-1), 3, -1))
        y = y + attended(q, k, v, mask, (WIDTH // HEADS) ** -0.5) @ out[i] + out_bias[i]
        y = y if is_pre else normalized(y, scales[i], biases[i])
        z = normalized(y, ffn_scales[i], ffn_biases[i]) if is_pre else y
        y = y + gelu(z @ w1[i] + b1[i]) @ w2[i] + b2[i]
        y = y if is_pre else normalized(y, ffn_scales[i], ffn_biases[i])
    attributes = {"pre_layer_norm": is_pre, "epsilon": 1e-5, "residual_alpha": 1.0, "dropout_rate": 0.0, "rotary_emb_dims": 0,
                  "is_test": True, "dropout_implementation": "upscale_in_train", "act_method": "gelu", "trans_qkvw": True,
                  "ring_id": -1, "norm_type": "layernorm", "use_neox_rotary_style": False, "gqa_group_size": -1}
    operands = [x, scales, biases, qkv, qkv_bias, None, None, None, None, None, None, mask, out, out_bias, ffn_scales,
                ffn_biases, w1, b1, w2, b2]
    p.op("fused_multi_transformer_", operands, attributes, y, results=2, place=1)


def main():
    p = Program()
    feed_forward(p, True, "gelu", "upscale_in_train")
    feed_forward(p, False, "relu", "downgrade_in_infer")
    feed_forward(p, False, "gelu", "upscale_in_train", with_bias=False)
    attention(p, True, "upscale_in_train")
    attention(p, False, "downgrade_in_infer")
    attention(p, True, "upscale_in_train", flat=True)
    attention(p, True, "upscale_in_train", cached=True)
    transformer(p, True)
    transformer(p, False)

    x, w, b, mask = floats(2, 3, WIDTH), floats(WIDTH, 3, WIDTH), floats(3, WIDTH), floats(2, HEADS, 3, 3)
    q, k, v = (heads_of(each) for each in np.split(x.astype(np.float64) @ w.reshape(WIDTH, -1) + b.reshape(-1), 3, -1))
    attributes = {"transpose_q": False, "transpose_k": True, "transpose_v": False, "alpha": 0.5, "head_number": HEADS}
    p.op("multihead_matmul", [x, w, b, mask], attributes, attended(q, k, v, mask, 0.5))
    p.op("multihead_matmul", [x, w, b, None], attributes, attended(q, k, v, 0, 0.5))

    ids, tables = [random.integers(0, 5, size=(2, 3)) for _ in range(3)], [floats(5, WIDTH) for _ in range(3)]
    scale, bias = floats(WIDTH), floats(WIDTH)
    total = sum(table[each] for each, table in zip(ids, tables))
    p.op("fused_embedding_eltwise_layernorm", [ids, tables, bias, scale], {"epsilon": 1e-5}, normalized(total, scale, bias))

    x, y = floats(2, 3, WIDTH), floats(2, 3, WIDTH)
    p.op("skip_layernorm", [x, y, scale, bias], {"epsilon": 1e-5, "begin_norm_axis": 2}, normalized(x + y, scale, bias))

    x, w, y, b0, b1 = floats(3, 4), floats(4, WIDTH), floats(3, WIDTH), floats(WIDTH), floats(WIDTH)
    linear = x.astype(np.float64) @ w + b0
    for activation in ("", "relu"):
        made = np.maximum(linear, 0) if activation else linear
        attributes = {"x_num_col_dims": 1, "activation_type": activation, "epsilon": 1e-5, "begin_norm_axis": 1}
        p.op("fused_fc_elementwise_layernorm", [x, w, y, b0, scale, b1], attributes, normalized(made + y, scale, b1), results=3)

    x, residual, b = floats(2, 3, WIDTH), floats(2, 3, WIDTH), floats(WIDTH)
    for mode, kept in (("upscale_in_train", 1.0), ("downgrade_in_infer", 0.7)):
        attributes = {"dropout_rate": 0.3, "is_test": True, "dropout_fix_seed": False, "dropout_seed": 0,
                      "dropout_implementation": mode, "ln_epsilon": 1e-5}
        p.op("fused_bias_dropout_residual_layer_norm", [x, residual, b, scale, bias], attributes,
             normalized((x.astype(np.float64) + b) * kept + residual, scale, bias), results=5)

    attributes = {"epsilon": 1e-5, "residual_alpha": 0.5, "begin_norm_axis": 2, "quant_scale": -1.0, "quant_round_type": 0,
                  "quant_max_bound": 0.0, "quant_min_bound": 0.0}
    total = x.astype(np.float64) + b + 0.5 * residual
    p.op("fused_bias_residual_layernorm", [x, b, residual, scale, bias], attributes, normalized(total, scale, bias), results=4)
    p.op("fused_bias_residual_layernorm", [x, b, residual, scale, bias], attributes, total, results=4, place=1)
    p.op("fused_bias_residual_layernorm", [x, None, None, scale, bias], attributes, normalized(x, scale, bias), results=4)

    x, scale = floats(3, WIDTH), floats(WIDTH)
    rms = x / np.sqrt((x.astype(np.float64) ** 2).mean(-1, keepdims=True) + 1e-6)
    p.op("rms_norm", [x, scale], {"normalized_shape": [WIDTH], "epsilon": 1e-6}, rms * scale, results=2)
    p.op("rms_norm", [x, None], {"normalized_shape": [WIDTH], "epsilon": 1e-6}, rms, results=2)
    p.op("fused_rms_norm_ext", [x, scale], {"epsilon": 1e-6}, rms * scale, results=2)
    for name, value, index in (("max_with_index", x.max(1, keepdims=True), x.argmax(1)), ("min_with_index", x.min(1, keepdims=True), x.argmin(1))):
        p.op(name, [x, 1], {"keepdim": True, "flatten": False}, value, results=2)
        p.op(name, [x, 1], {"keepdim": False, "flatten": False}, index, results=2, place=1)
        p.op(name, [x, 1], {"keepdim": False, "flatten": True}, index.max() * 0 + (x.argmax() if name[1] == "a" else x.argmin()), results=2, place=1)
    p.write("fused_pir")


main()
