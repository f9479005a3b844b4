"""Cases of operators of PaddlePaddle's programs under their names: its own kernels, and PyTorch where it has none on the CPU."""

import numpy as np
import paddle
import torch
import torch.nn.functional as F

from cases_losses import torch_case

C = paddle._C_ops


def cases_old_images(t):
    def x(*shape):
        return t.normal(*shape, dtype="float64")

    pool = {"kernel_size": [2, 3], "strides": [2, 2], "paddings": [1, 1], "ceil_mode": False, "exclusive": True, "data_format": "NCHW",
            "pooling_type": "max", "global_pooling": False, "adaptive": False, "padding_algorithm": "EXPLICIT"}
    changes = ({}, {"pooling_type": "avg"}, {"pooling_type": "avg", "exclusive": False}, {"ceil_mode": True, "paddings": [0, 0]}, {"padding_algorithm": "SAME"},
               {"padding_algorithm": "VALID", "pooling_type": "avg"}, {"global_pooling": True}, {"global_pooling": True, "pooling_type": "avg"},
               {"adaptive": True, "pooling_type": "avg", "paddings": [0, 0]})
    for change in changes:
        for layout in ("NCHW", "NHWC"):
            shape = (2, 3, 5, 6) if layout == "NCHW" else (2, 5, 6, 3)
            t.add("pool2d", {"x": x(*shape), **pool, **change, "data_format": layout}, function=lambda x, **a: C.pool2d(x, *a.values()))
    volume = {**pool, "kernel_size": [2, 3, 2], "strides": [2, 2, 1], "paddings": [1, 1, 1], "data_format": "NCDHW"}
    for change in changes:
        change = {k: [0, 0, 0] if k == "paddings" else v for k, v in change.items()}
        t.add("pool3d", {"x": x(1, 2, 4, 5, 4), **volume, **change}, function=lambda x, **a: C.pool3d(x, *a.values()))
    # PaddlePaddle's kernel ignores adaptive for maxima.
    args = {"kernel_size": [2, 3], "adaptive": True}
    torch_case(t, "pool2d", {"x": x(2, 3, 5, 6), **args}, lambda x, **_: F.adaptive_max_pool2d(x, (2, 3)), ["x"])
    torch_case(t, "pool2d", {"x": x(2, 5, 6, 3), **args, "data_format": "NHWC"}, lambda x, **_: F.adaptive_max_pool2d(x.permute(0, 3, 1, 2), (2, 3)).permute(0, 2, 3, 1), ["x"])
    torch_case(t, "pool3d", {"x": x(1, 2, 4, 5, 4), "kernel_size": [2, 3, 2], "adaptive": True}, lambda x, **_: F.adaptive_max_pool3d(x, (2, 3, 2)), ["x"])
    t.add("pool3d", {"x": x(1, 4, 5, 4, 2), **volume, "data_format": "NDHWC"}, function=lambda x, **a: C.pool3d(x, *a.values()))
    for op, shape, n in (("max_pool2d_with_index", (2, 3, 5, 6), 2), ("max_pool3d_with_index", (1, 2, 4, 5, 4), 3)):
        for padding, every, adaptive in ((0, False, False), (1, False, False), (0, True, False), (0, False, True)):
            args = {"x": x(*shape), "kernel_size": [2, 3, 2][:n], "strides": [2, 2, 1][:n], "paddings": [padding] * n, "global_pooling": every, "adaptive": adaptive}
            t.add(op, args, function=lambda x, **a: getattr(C, op)(x, *a.values(), False))
    t.reject("pool2d", {"x": x(3, 5, 6), "kernel_size": [2, 2]})
    t.reject("pool2d", {"x": x(1, 3, 5, 6), "kernel_size": [2, 2], "pooling_type": "min"})
    t.reject("max_pool3d_with_index", {"x": x(1, 3, 5, 6), "kernel_size": [2, 2, 2]})

    # Its ratios are float32, and "NCHW" means channels first for any number of axes.
    near = {"rtol": 1e-5, "atol": 2e-6}

    def interp(op):
        return lambda x, out_size=None, **a: getattr(C, op.removesuffix("_v2"))(
            x, out_size, None, None, "NHWC" if a.get("data_format") == "NHWC" else "NCHW", a.get("out_d", -1), a.get("out_h", -1), a.get("out_w", -1), a.get("scale", []),
            op.split("_")[0], a.get("align_corners", True), a.get("align_mode", 1))

    images, sizes = (1, 2, 3, 4), {"out_h": 5, "out_w": 7}
    for corners in (True, False):
        how = {"align_corners": corners}
        for op in ("nearest_interp_v2", "bilinear_interp_v2", "bicubic_interp_v2"):
            t.add(op, {"x": x(*images), **sizes, **how}, function=interp(op), **near)
            t.add(op, {"x": x(*images), "scale": [1.5, 2.0], **how, "align_mode": 0}, function=interp(op), **near)
            t.add(op, {"x": x(1, 3, 4, 2), **sizes, **how, "data_format": "NHWC"}, function=interp(op), **near)
        t.add("linear_interp_v2", {"x": x(1, 2, 5), "out_w": 7, **how}, function=interp("linear_interp_v2"), **near)
        t.add("trilinear_interp_v2", {"x": x(1, 2, 3, 4, 2), "out_d": 2, **sizes, **how, "data_format": "NCDHW"}, function=interp("trilinear_interp_v2"), **near)
    t.add("bilinear_interp_v2", {"x": x(*images), "out_size": np.array([5, 6], np.int32), "scale": [3.0, 3.0]}, function=interp("bilinear_interp_v2"), **near)
    t.reject("bilinear_interp_v2", {"x": x(*images), "out_h": 5})
    t.reject("trilinear_interp_v2", {"x": x(*images), **sizes})
    modes = {"constant": "constant", "reflect": "reflect", "edge": "replicate"}
    for mode, name in modes.items():
        torch_case(t, "pad2d", {"x": x(1, 2, 4, 3), "paddings": [1, 2, 0, 1], "mode": mode, "pad_value": 0.5},
                   lambda x, paddings, mode, pad_value: F.pad(x, (0, 1, 1, 2), name, **({"value": pad_value} if mode == "constant" else {})), ["x"])
    torch_case(t, "pad2d", {"x": x(1, 4, 3, 2), "paddings": [1, 2, 0, 1], "mode": "reflect", "data_format": "NHWC"},
               lambda x, **_: F.pad(x.permute(0, 3, 1, 2), (0, 1, 1, 2), "reflect").permute(0, 2, 3, 1), ["x"])
    t.reject("pad2d", {"x": x(1, 2, 4, 3), "paddings": [1, 2, 0]})
    t.reject("pad2d", {"x": x(1, 2, 4, 3), "paddings": [4, 0, 0, 0], "mode": "reflect"})
    torch_case(t, "depthwise_conv", {"input": x(1, 4, 5, 5), "filter": x(4, 1, 3, 3), "paddings": [1, 1], "groups": 4},
               lambda input, filter, **_: F.conv2d(input, filter, padding=1, groups=4), ["input", "filter"])


def cases_old_values(t):
    def x(*shape):
        return t.normal(*shape, dtype="float64")

    for dtype, values in (("float32", [1.5, -2.0, 3.0, 0.0, 5.0, 6.0]), ("int64", [2 ** 53 + 1, -2, 3, 4, 5, 6]), ("bool", [True, False, True, True, False, False])):
        t.add("assign_value", {"shape": [2, 3], "dtype": dtype, "values": values}, outputs=[np.array(values, dtype).reshape(2, 3)])
    t.reject("assign_value", {"shape": [2, 2], "values": [1.0, 2.0, 3.0]})
    t.reject("assign_value", {"shape": [-1, -3], "values": [1.0, 2.0, 3.0]})

    def assigned(index):
        def function(x, value, **_):
            y = x.clone()
            y[index] = value
            return y
        return function

    n = None
    for shape, axes, starts, ends, steps, drop, new, index in (
            ((2, 4), [0], [1], [5], [2], [], [], (slice(1, 5, 2),)), ((4,), [0], [2], [3], [1], [0], [], (2,)), ((), [0, 1], [1, 0], [3, 2], [1, 1], [], [], (slice(1, 3), slice(0, 2))),
            ((3,), [0, 1], [-1, 0], [5, 3], [1, 1], [0], [], (-1, slice(0, 3))), ((1, 2, 4), [0], [1], [3], [1], [], [0], (n, slice(1, 3))),
            ((2, 1, 4), [0], [1], [3], [1], [], [1], (slice(1, 3), n))):
        torch_case(t, "set_value", {"x": x(5, 4), "value": x(*shape), "axes": axes, "starts": starts, "ends": ends, "steps": steps, "decrease_axes": drop,
                                    "none_axes": new}, assigned(index), ["x", "value"])
    for start, stop, places in ((4, 0, [4, 2]), (-1, -6, [4, 2, 0])):
        torch_case(t, "set_value", {"x": x(5, 4), "value": x(len(places), 4), "axes": [0], "starts": [start], "ends": [stop], "steps": [-2]},
                   lambda x, value, **_: x.index_copy(0, torch.tensor(places), value), ["x", "value"])
    y = x(3, 2)
    t.add("set_value", {"x": y, "axes": [1], "starts": [0], "ends": [1], "decrease_axes": [1], "shape": [3], "values": [1.0, 2.0, 3.0]},
          outputs=[np.concatenate([np.array([[1.0], [2.0], [3.0]]), y[:, 1:]], 1)])
    z = t.integers(0, 9, 3, 2)
    t.add("setitem", {"x": z, "axes": [0], "starts": [1], "ends": [2], "shape": [1], "values": [-7]}, outputs=[np.concatenate([z[:1], [[-7, -7]], z[2:]])])
    t.reject("set_value", {"x": y, "value": x(3), "axes": [0], "starts": [0], "ends": [1]})
    t.reject("set_value", {"x": y, "axes": [0], "starts": [0], "ends": [1]})
    t.reject("set_value", {"x": y, "value": x(2), "axes": [0], "starts": [0], "ends": [2], "decrease_axes": [0]})
    t.reject("set_value", {"x": y, "value": x(2), "axes": [0], "starts": [0, 1], "ends": [2]})
    for args in ({"std": 0.0}, {"a": 2.0, "b": -2.0}, {"a": 50.0, "b": 60.0}, {"dtype": "int32"}):
        t.reject("truncated_gaussian_random", {"shape": [2], **args})


def cases_packed_attention(t):
    def x(*shape):
        return t.normal(*shape, dtype="float64")

    def attend(q, k, v, scale, causal):
        """[length, heads, dim], the last query sees all keys; zeros where nothing is seen."""
        k, v = (y.repeat_interleave(q.shape[1] // y.shape[1], 1) for y in (k, v))
        scores = torch.einsum("qhd,khd->hqk", q, k) * scale
        seen = torch.ones(len(q), len(k)).tril(len(k) - len(q)).bool() if causal else torch.ones(len(q), len(k)).bool()
        weights = torch.nan_to_num(torch.softmax(scores.masked_fill(~seen, float("-inf")), -1))
        return torch.einsum("hqk,khd->qhd", weights, v), weights

    def parts(qkv):
        return qkv[..., :-2, :, :].flatten(-3, -2), qkv[..., -2, :, :], qkv[..., -1, :, :]

    for heads, causal in ((1, False), (1, True), (3, True)):
        torch_case(t, "flash_attn_qkvpacked", {"qkv": x(2, 4, heads + 2, 2, 3), "causal": causal},
                   lambda qkv, causal: torch.stack([attend(*parts(one), 3 ** -0.5, causal)[0] for one in qkv]), ["qkv"])
    t.reject("flash_attn_qkvpacked", {"qkv": x(2, 4, 2, 2, 3)})
    ends_q, ends_k = np.array([0, 2, 2, 6], np.int32), np.array([0, 4, 5, 7], np.int32)

    def by_sequence(q, k, v, cu_q, cu_k, scale, causal, most=None):
        outs, shares = [], []
        for i in range(len(cu_q) - 1):
            out, weights = attend(q[cu_q[i]:cu_q[i + 1]], k[cu_k[i]:cu_k[i + 1]], v[cu_k[i]:cu_k[i + 1]], scale, causal)
            outs.append(out)
            if most:
                shares.append(F.pad(weights, (0, most[1] - weights.shape[2], 0, most[0] - weights.shape[1])))
        return (torch.cat(outs), torch.stack(shares)) if most else torch.cat(outs)

    lengths = {"cu_seqlens_q": ends_q, "cu_seqlens_k": ends_k, "max_seqlen_q": 4, "max_seqlen_k": 5, "scale": 0.4}
    for causal, shares in ((False, False), (True, False), (True, True)):
        torch_case(t, "flash_attn_unpadded", {"query": x(6, 4, 3), "key": x(7, 2, 3), "value": x(7, 2, 3), **lengths, "causal": causal, "return_softmax": shares},
                   lambda query, key, value, causal, **_: by_sequence(query, key, value, ends_q, ends_k, 0.4, causal, (4, 5) if shares else None),
                   ["query", "key", "value"])
    good = {"query": x(6, 2, 3), "key": x(7, 2, 3), "value": x(7, 2, 3), **lengths}
    for change in ({"max_seqlen_q": 3}, {"cu_seqlens_q": np.array([0, 2, 2, 5], np.int32)}, {"cu_seqlens_k": np.array([0, 7], np.int32)},
                   {"cu_seqlens_q": np.array([0.0, 2.0, 6.0])}, {"max_seqlen_k": 0}, {"cu_seqlens_q": np.array([0, 4, 2, 6], np.int32)}):
        t.reject("flash_attn_unpadded", {**good, **change})

    def padded(qkv, **_):
        out = torch.zeros(8, 2, 3, dtype=qkv.dtype)
        for i, n in enumerate((2, 4)):
            out[4 * i:4 * i + n] = attend(*parts(qkv[4 * i:4 * i + n]), 0.4, True)[0]
        return out

    ends = np.array([0, 2, 6], np.int32)
    same = {"cu_seqlens_q": ends, "cu_seqlens_k": ends, "max_seqlen_q": 4, "max_seqlen_k": 4, "scale": 0.4, "causal": True}
    torch_case(t, "flash_attn_varlen_qkvpacked", {"qkv": x(8, 4, 1, 3), **same}, padded, ["qkv"])
    torch_case(t, "flash_attn_varlen_qkvpacked", {"qkv": x(6, 4, 1, 3), **same, "varlen_padded": False},
               lambda qkv, **_: by_sequence(*parts(qkv), ends, ends, 0.4, True), ["qkv"])
    t.reject("flash_attn_varlen_qkvpacked", {"qkv": x(7, 4, 1, 3), **same})
    torch_case(t, "self_dp_attention", {"x": x(2, 4, 3, 2, 5), "alpha": 0.3, "head_number": 2},
               lambda x, **_: torch.stack([attend(*one.unbind(1), 0.3, False)[0] for one in x]), ["x"])
    t.reject("self_dp_attention", {"x": x(2, 4, 3, 2, 5), "head_number": 4})
    # Squares of 128 rows and keys, and rows per key.
    blocks = np.array([[[[1, 0], [1, 1]]]], np.int32)
    torch_case(t, "flashmask_attention", {"query": x(1, 130, 2, 2), "key": x(1, 130, 1, 2), "value": x(1, 130, 1, 2), "causal": True, "block_mask": blocks},
               lambda query, key, value, **_: torch.stack([attend(query[0], key[0], value[0], 2 ** -0.5, True)[0]]), ["query"])
    hidden = torch.ones(130, 130).bool()
    hidden[:128, 128:] = False
    torch_case(t, "flashmask_attention", {"query": x(1, 130, 1, 2), "key": x(1, 130, 1, 2), "value": x(1, 130, 1, 2), "block_mask": blocks},
               lambda query, key, value, **_: torch.nn.functional.scaled_dot_product_attention(*(y.transpose(1, 2) for y in (query, key, value)), hidden).transpose(1, 2),
               ["query"])
    t.reject("flashmask_attention", {"query": x(1, 130, 1, 2), "key": x(1, 130, 1, 2), "value": x(1, 130, 1, 2), "block_mask": blocks[..., :1]})


def to_int8(y, scale, most=127.0, least=-127.0, even=False):
    y = np.asarray(y, np.float64) * scale * most
    y = np.rint(y) if even else np.sign(y) * np.floor(np.abs(y) + 0.5)
    return np.clip(y, least, most).astype(np.int8)


def cases_int8(t):
    a, b = t.integers(-128, 128, 3, 4, dtype="int8"), t.integers(-128, 128, 4, 5, dtype="int8")
    whole = a.astype(np.int32) @ b.astype(np.int32)
    t.add("matmul_int8", {"x": a, "y": b}, outputs=[whole])
    t.add("matmul_int8", {"x": a.T.copy(), "y": b.T.copy(), "transpose_x": True, "transpose_y": True}, outputs=[whole])
    t.reject("matmul_int8", {"x": a, "y": b.astype(np.int32)})
    x, bias = t.normal(2, 3, 4), t.normal(5)
    for even, scales, act in ((0, [0.7], ""), (1, [0.5, 0.7, 1.0, 1.5, 2.0], "relu")):
        steps = to_int8(x.reshape(2, 12)[:, :], 0.4, even=even == 0).astype(np.int32)
        w = t.integers(-127, 128, 12, 5, dtype="int8")
        y = steps @ w.astype(np.int32) / (127.0 * 127.0 * 0.4 * np.array(scales)) + bias
        t.add("quant_linear", {"x": x, "w": w, "bias": bias, "scale_in": 0.4, "scale_weights": scales, "quant_round_type": even, "activation_type": act},
              outputs=[(np.maximum(y, 0) if act else y).astype(np.float32)], rtol=1e-5, atol=1e-6)
    w = t.integers(-127, 128, 4, 5, dtype="int8")
    y = to_int8(x.reshape(6, 4), 0.4).astype(np.int32) @ w.astype(np.int32) / (127.0 * 127.0 * 0.4)
    t.add("quant_linear", {"x": x, "w": w, "scale_in": 0.4, "in_num_col_dims": 2}, outputs=[y.reshape(2, 3, 5).astype(np.float32)], rtol=1e-5, atol=1e-6)
    good = {"x": x, "w": w, "in_num_col_dims": 2}
    for change in ({"in_num_col_dims": 3}, {"w": w.astype(np.int32)}, {"scale_in": 0.0}, {"scale_weights": [1.0, 2.0]}, {"padding_weights": True},
                   {"activation_type": "cube"}, {"quant_round_type": 2}, {"quant_max_bound": 200.0}):
        t.reject("quant_linear", {**good, **change})
    weight, scale = t.integers(-127, 128, 5, 4, dtype="int8"), t.uniform(0.01, 0.1, 5)
    y = x @ (weight * scale[:, None]).T + bias
    t.add("linear_compress", {"x": x, "weight": weight, "weight_scale": scale, "bias": bias, "algo": "weight_only"}, outputs=[y.astype(np.float32)],
          rtol=1e-4, atol=1e-5)
    size = abs(x).max(-1, keepdims=True) / 127
    y = np.rint(x / size) @ weight.T.astype(np.float32) * size * scale + bias
    t.add("linear_compress", {"x": x, "weight": weight, "weight_scale": scale, "bias": bias}, outputs=[y.astype(np.float32)], rtol=1e-4, atol=1e-4)
    t.reject("linear_compress", {"x": x, "weight": weight, "bits": 4})
    # Quantized results and operands of fused operations.
    bounds = {"quant_max_bound": 127.0, "quant_min_bound": -127.0}
    sums, scales, term = t.integers(-90, 90, 3, 4, dtype="int32"), t.uniform(0.01, 0.1, 4), t.normal(4)
    gelu = torch.nn.functional.gelu(torch.tensor(sums * scales + term)).numpy()
    t.add("fused_bias_act", {"x": sums, "bias": term, "dequant_scales": scales}, outputs=[gelu.astype(np.float32)], rtol=1e-5, atol=1e-6)
    shift, smooth = t.normal(4), t.uniform(0.5, 2, 4)
    t.add("fused_bias_act", {"x": sums, "bias": term, "dequant_scales": scales, "shift": shift, "smooth": smooth, "quant_scale": 0.1, **bounds},
          outputs=[to_int8((gelu + shift) * smooth, 0.1, even=True)])
    t.reject("fused_bias_act", {"x": sums, "bias": term})
    y = t.normal(3, 4)
    norm = torch.nn.functional.layer_norm(torch.tensor(y + 2 * y), (4,), eps=1e-5).numpy()
    t.add("fused_bias_residual_layernorm", {"x": y, "epsilon": 1e-5, "residual": 2 * y, "quant_scale": 0.2, "quant_round_type": 1.0, **bounds},
          outputs=[to_int8(norm, 0.2), y + 2 * y, (3 * y).mean(1), 1 / np.sqrt((3 * y).var(1) + 1e-5)], rtol=1e-5, atol=1e-5)
    rms = y / np.sqrt((y * y).mean(1, keepdims=True) + 1e-5)
    t.add("fused_rms_norm", {"x": y, "norm_weight": np.ones(4, np.float32), "epsilon": 1e-5, "quant_scale": 0.2, "quant_round_type": 1.0, **bounds},
          outputs=[to_int8(rms, 0.2)])
    heads, each, length = 2, 3, 5
    qkv, cache, out_scale = t.integers(-90, 90, 2, 18, dtype="int32"), t.normal(2, 2, heads, length, each), t.uniform(0.01, 0.03, 3, heads, each)
    value, places = qkv.reshape(2, 3, heads, each) * out_scale, [3, 1]
    written, outs = cache.copy(), np.zeros((2, heads, each))
    for i, n in enumerate(places):
        written[:, i, :, n] = value[i, 1:]
        score = np.einsum("hd,hkd->hk", value[i, 0], written[0, i, :, :n + 1]) / np.sqrt(each)
        share = np.exp(score - score.max(1, keepdims=True))
        outs[i] = np.einsum("hk,hkd->hd", share / share.sum(1, keepdims=True), written[1, i, :, :n + 1])
    args = {"x": qkv, "cache_kv": cache, "qkv_out_scale": out_scale, "sequence_lengths": np.array([[3], [1]], np.int32)}
    t.add("masked_multihead_attention", args, outputs=[outs.reshape(2, 6).astype(np.float32), written], rtol=1e-4, atol=1e-5)
    t.add("masked_multihead_attention", {**args, "out_scale": 0.3, "seq_len": 4}, outputs=[to_int8(outs.reshape(2, 6), 0.3), written], rtol=1e-4, atol=1e-5)
    t.reject("masked_multihead_attention", {k: v for k, v in args.items() if k != "qkv_out_scale"})
    int8_transformer(t)


def int8_transformer(t):
    batch, length, heads, each, hidden, layers = 2, 3, 2, 2, 5, 2
    width = heads * each

    def many(make):
        return [make() for _ in range(layers)]

    def whole(*shape):
        return many(lambda: t.integers(-127, 128, *shape, dtype="int8"))

    weights = {"qkv_weights": whole(3, heads, each, width), "linear_weights": whole(width, width), "ffn1_weights": whole(hidden, width), "ffn2_weights": whole(width, hidden)}
    terms = {"qkv_biases": many(lambda: t.normal(3, heads, each)), "linear_biases": many(lambda: t.normal(width)), "ffn1_biases": many(lambda: t.normal(hidden)),
             "ffn2_biases": many(lambda: t.normal(width))}
    norms = {n: many(lambda: t.normal(width)) for n in ("ln_scales", "ln_biases", "ffn_ln_scales", "ffn_ln_biases")}
    ins = {n: [0.3, 0.2] for n in ("qkv_in_scale", "out_linear_in_scale", "ffn1_in_scale", "ffn2_in_scale")}
    outs = {"qkv_out_scales": many(lambda: t.uniform(1e-4, 3e-4, 3 * width)), "out_linear_out_scales": many(lambda: t.uniform(1e-4, 3e-4, width)),
            "ffn1_out_scales": many(lambda: t.uniform(1e-4, 3e-4, hidden)), "ffn2_out_scales": many(lambda: t.uniform(1e-4, 3e-4, 1))}
    x = t.normal(batch, length, width)

    def product(y, kind, i):
        name = "out_linear" if kind == "linear" else kind
        w = weights[f"{kind}_weights"][i].reshape(-1, y.shape[-1]).astype(np.int32)
        return to_int8(y, ins[f"{name}_in_scale"][i]).astype(np.int32) @ w.T * outs[f"{name}_out_scales"][i].astype(np.float64) + terms[f"{kind}_biases"][i].reshape(-1)

    def norm(y, scale, bias):
        return (y - y.mean(-1, keepdims=True)) / np.sqrt(y.var(-1, keepdims=True) + 1e-5) * scale + bias

    y = x.astype(np.float64)
    for i in range(layers):
        qkv = product(norm(y, norms["ln_scales"][i], norms["ln_biases"][i]), "qkv", i).reshape(batch, length, 3, heads, each).transpose(2, 0, 3, 1, 4)
        score = qkv[0] @ qkv[1].swapaxes(-1, -2) / np.sqrt(each)
        share = np.exp(score - score.max(-1, keepdims=True))
        seen = (share / share.sum(-1, keepdims=True) @ qkv[2]).transpose(0, 2, 1, 3).reshape(batch, length, width)
        y = y + product(seen, "linear", i)
        inner = torch.nn.functional.gelu(torch.tensor(product(norm(y, norms["ffn_ln_scales"][i], norms["ffn_ln_biases"][i]), "ffn1", i))).numpy()
        y = y + product(inner, "ffn2", i)
    args = {"x": x, **norms, **weights, **terms, **outs, **ins}
    t.add("fused_multi_transformer_int8", args, outputs=[y.astype(np.float32)], rtol=1e-3, atol=1e-3)
    t.reject("fused_multi_transformer_int8", {**args, "qkv_in_scale": [0.3]})
    t.reject("fused_multi_transformer_int8", {**args, "ffn1_weights": [w.astype(np.float32) for w in weights["ffn1_weights"]]})
    t.reject("fused_multi_transformer_int8", {**args, "trans_qkvw": False})


def cases_residual_units(t):
    def x(*shape):
        return t.normal(*shape, dtype="float64")

    def first(images):
        return images.permute(0, 3, 1, 2)

    def unit(x, w, bn_scale, bn_bias, input_running_mean, input_running_var, scale=None, bias=None, stride=1, **_):
        inside = torch.relu(x * scale + bias) if scale is not None else x
        y = F.conv2d(first(inside), w, padding=1, stride=stride).permute(0, 2, 3, 1)
        mean, var = y.mean((0, 1, 2)), y.var((0, 1, 2), unbiased=False)
        inv = torch.rsqrt(var + 1e-5)
        return y, input_running_mean * 0.8 + mean * 0.2, input_running_var * 0.8 + var * 0.2, mean, inv, bn_scale * inv, bn_bias - mean * bn_scale * inv

    common = {"bn_scale": x(3), "bn_bias": x(3), "input_running_mean": x(3), "input_running_var": t.uniform(0.5, 2, 3, dtype="float64"), "paddings": [1, 1], "momentum": 0.8}
    leaves = ["x", "w", "bn_scale", "bn_bias", "input_running_mean"]
    torch_case(t, "fused_scale_bias_relu_conv_bn", {"x": x(2, 4, 5, 2), "w": x(3, 2, 3, 3), "scale": x(2), "bias": x(2), **common}, unit, [*leaves, "scale", "bias"])
    torch_case(t, "fused_scale_bias_relu_conv_bn", {"x": x(2, 4, 5, 2), "w": x(3, 2, 3, 3), **common, "strides": [2, 2], "fuse_prologue": False},
               lambda **a: unit(**a, stride=2), leaves)
    t.reject("fused_scale_bias_relu_conv_bn", {"x": x(2, 4, 5, 2), "w": x(3, 2, 3, 3), **common})

    def gradients(kind, add, grad, w, ins, branch):
        """By PyTorch's autograd of the forward unit."""
        names = ["weight", *ins]
        leaf = {k: torch.tensor(v, requires_grad=True) for k, v in {"weight": w, **ins}.items()}

        def norm(name):
            return F.batch_norm(first(leaf[f"{name}_input"]), None, None, leaf[f"{name}_gamma"], leaf[f"{name}_beta"], True, eps=1e-5)

        y = norm("bn1")
        y = y + first(leaf["residual_input"]) if kind == "shortcut" else y + norm("bn2") if kind == "dual" else y
        inside = torch.relu(y)
        total = (F.conv2d(inside, leaf["weight"], padding=1, stride=2).permute(0, 2, 3, 1) * torch.tensor(grad)).sum()
        if add:
            total = total + (inside.permute(0, 2, 3, 1) * torch.tensor(branch)).sum()
        return dict(zip(names, (g.numpy() for g in torch.autograd.grad(total, [leaf[n] for n in names])))), inside.permute(0, 2, 3, 1).detach().numpy()

    for kind, add in (("plain", False), ("shortcut", True), ("dual", True), ("dual", False)):
        grad, w, branch = x(2, 2, 3, 3), x(3, 2, 3, 3), x(2, 4, 5, 2)
        ins = {"bn1_input": x(2, 4, 5, 2), "bn1_gamma": x(2), "bn1_beta": x(2)}
        if kind == "shortcut":
            ins["residual_input"] = x(2, 4, 5, 2)
        if kind == "dual":
            ins.update({"bn2_input": x(2, 4, 5, 2), "bn2_gamma": x(2), "bn2_beta": x(2)})
        wanted, inside = gradients(kind, add, grad, w, ins, branch)
        args = {"grad_output": grad, "weight": w, **ins, "paddings": [1, 1], "strides": [2, 2], "fuse_shortcut": kind == "shortcut", "fuse_dual": kind == "dual", "fuse_add": add}
        for name in ("bn1", "bn2") if kind == "dual" else ("bn1",):
            y = ins[f"{name}_input"]
            args[f"{name}_mean"], args[f"{name}_inv_std"] = y.mean((0, 1, 2)), 1 / np.sqrt(y.var((0, 1, 2)) + 1e-5)
        if kind == "plain":
            args["bn1_eqscale"] = ins["bn1_gamma"] * args["bn1_inv_std"]
            args["bn1_eqbias"] = ins["bn1_beta"] - args["bn1_mean"] * args["bn1_eqscale"]
        else:
            args["conv_input"] = inside
        if add:
            args["grad_output_add"] = branch
        order = ["weight", "bn1_input", "bn1_gamma", "bn1_beta"] + {"plain": [], "shortcut": ["residual_input"], "dual": ["bn2_input", "bn2_gamma", "bn2_beta"]}[kind]
        t.add("fused_dconv_drelu_dbn", args, outputs=[wanted[n] for n in order], rtol=1e-6, atol=1e-8)
    t.reject("fused_dconv_drelu_dbn", {**args, "fuse_shortcut": True})
    t.reject("fused_dconv_drelu_dbn", {k: v for k, v in args.items() if k != "conv_input"})
