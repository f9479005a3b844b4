"""Cases of parts of transformers: compositions of PyTorch's functions where PaddlePaddle has no CPU kernel."""

import math

import numpy as np
import paddle
import paddle.incubate.nn.functional as I
import torch
import torch.nn.functional as T

from cases_losses import torch_case


def sdpa(q, k, v, mask=None, scale=None):
    """Attention of [batch, sequence, heads, dim] with grouped heads."""
    k, v = (t.repeat_interleave(q.shape[2] // t.shape[2], 2) for t in (k, v))
    scores = torch.einsum("bqhd,bkhd->bhqk", q, k) * (1 / math.sqrt(q.shape[3]) if scale is None else scale)
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf")) if mask.dtype == torch.bool else scores + mask
    return torch.einsum("bhqk,bkhd->bqhd", torch.softmax(scores, -1), v), scores


def cases_transformer(t):
    def x(*shape):
        return t.normal(*shape, dtype="float64")

    def rope(q, k=None, sin=None, cos=None, position_ids=None, use_neox_rotary_style=True, time_major=False, rotary_emb_base=10000.0):
        out = []
        for y in [q] + ([k] if k is not None else []):
            y = y.transpose(0, 1) if time_major else y
            n, s, _, d = y.shape
            place = position_ids.double() if position_ids is not None else torch.arange(s).double().expand(n, s)
            angle = place[:, :, None, None] * rotary_emb_base ** (-torch.arange(0, d, 2).double() / d)
            sine, cosine = torch.sin(angle), torch.cos(angle)
            if sin is not None:
                rows = position_ids if position_ids is not None else torch.arange(s).expand(n, s)
                sine, cosine = (u.reshape(-1, d)[rows][:, :, None, ::2] if use_neox_rotary_style else u.reshape(-1, d)[rows][:, :, None, : d // 2]
                                for u in (sin, cos))
            z = torch.empty_like(y)
            if use_neox_rotary_style:
                a, b = y[..., ::2], y[..., 1::2]
                z[..., ::2], z[..., 1::2] = a * cosine - b * sine, b * cosine + a * sine
            else:
                a, b = y[..., : d // 2], y[..., d // 2 :]
                z = torch.cat([a * cosine - b * sine, b * cosine + a * sine], -1)
            out.append(z.transpose(0, 1) if time_major else z)
        return tuple(out)

    angle = t.uniform(0, 3, 5, 2, dtype="float64")
    for neox in (True, False):
        whole = np.repeat(angle, 2, 1) if neox else np.concatenate([angle, angle], 1)
        table = {"sin": np.sin(whole)[None, :, None], "cos": np.cos(whole)[None, :, None]}
        for args in ({}, {"time_major": True}, {"rotary_emb_base": 100.0}, table, {**table, "position_ids": np.array([[0, 2, 4], [1, 1, 3]])}):
            torch_case(t, "fused_rotary_position_embedding", {"q": x(2, 3, 2, 4), "k": x(2, 3, 2, 4), "use_neox_rotary_style": neox, **args}, rope, ["q", "k"])
    t.reject("fused_rotary_position_embedding", {"q": x(2, 3, 2, 3)})
    t.reject("fused_rotary_position_embedding", {"q": x(2, 3, 4)})
    acts = {"gelu": T.gelu, "relu": T.relu, "swiglu": lambda y: T.silu(y[..., :2]) * y[..., 2:], "geglu": lambda y: T.gelu(y[..., :2]) * y[..., 2:]}
    for name, act in acts.items():
        torch_case(t, "fused_bias_act", {"x": x(2, 4), "bias": x(4), "act_method": name}, lambda x, bias, act_method: act(x + bias), ["x", "bias"])
    t.reject("fused_bias_act", {"x": x(2, 4), "act_method": "cube"})
    t.reject("fused_bias_act", {"x": x(2, 4), "quant_scale": 2.0})

    def norm(y, w, b):
        return T.layer_norm(y, y.shape[-1:], w, b)

    torch_case(t, "fused_bias_dropout_residual_layer_norm",
               {"x": x(2, 3, 4), "residual": x(2, 3, 4), "bias": x(4), "ln_scale": x(4), "ln_bias": x(4), "dropout_rate": 0.0},
               lambda x, residual, bias, ln_scale, ln_bias, dropout_rate: norm(residual + x + bias, ln_scale, ln_bias),
               ["x", "residual", "bias", "ln_scale", "ln_bias"])
    for pre, act, residual in ((False, "relu", True), (True, "gelu", True), (False, "gelu", False)):
        def ffn(x, linear1_weight, linear2_weight, linear1_bias, linear2_bias, ln1_scale, ln1_bias, ln2_scale, ln2_bias, **_):
            y = norm(x, ln1_scale, ln1_bias) if pre else x
            y = acts[act](y @ linear1_weight + linear1_bias) @ linear2_weight + linear2_bias
            y = x + y if residual else y
            y = y if pre else norm(y, ln2_scale, ln2_bias)
            return y + 0 * (ln1_scale.sum() + ln1_bias.sum() + ln2_scale.sum() + ln2_bias.sum())

        weights = {"linear1_weight": x(4, 3), "linear2_weight": x(3, 4), "linear1_bias": x(3), "linear2_bias": x(4), "ln1_scale": x(4), "ln1_bias": x(4),
                   "ln2_scale": x(4), "ln2_bias": x(4)}
        torch_case(t, "fused_feedforward", {"x": x(2, 3, 4), **weights, "dropout1_rate": 0.0, "dropout2_rate": 0.0, "activation": act,
                                            "pre_layer_norm": pre, "add_residual": residual}, ffn, ["x", "linear1_weight", "linear2_weight", "linear1_bias"])
    for pre, wb in ((False, False), (True, False), (False, True)):
        def mha(x, qkv_weight, linear_weight, pre_ln_scale, pre_ln_bias, ln_scale, ln_bias, qkv_bias, linear_bias, attn_mask, **_):
            y = norm(x, pre_ln_scale, pre_ln_bias) if pre else x
            qkv = (y @ (qkv_weight if wb else qkv_weight.reshape(12, 4).T) + qkv_bias.flatten()).reshape(2, 3, 3, 2, 2)
            out = sdpa(qkv[:, :, 0], qkv[:, :, 1], qkv[:, :, 2], attn_mask)[0].reshape(2, 3, 4) @ linear_weight + linear_bias + x
            return out if pre else norm(out, ln_scale, ln_bias)

        torch_case(t, "fused_multi_head_attention",
                   {"x": x(2, 3, 4), "qkv_weight": x(4, 12) if wb else x(3, 2, 2, 4), "linear_weight": x(4, 4), "pre_layer_norm": pre, "pre_ln_scale": x(4),
                    "pre_ln_bias": x(4), "ln_scale": x(4), "ln_bias": x(4), "qkv_bias": x(12) if wb else x(3, 2, 2), "linear_bias": x(4),
                    "attn_mask": x(2, 1, 3, 3), "dropout_rate": 0.0, "attn_dropout_rate": 0.0, "num_heads": 2 if wb else -1, "transpose_qkv_wb": wb},
                   mha, ["x", "qkv_weight", "linear_weight", "qkv_bias", "linear_bias"])
    for axis, shape in ((1, (2, 4)), (2, (2, 3, 4))):
        args = {"x": t.normal(*shape), "norm_weight": t.normal(4), "norm_bias": t.normal(4), "epsilon": 1e-5, "begin_norm_axis": axis, "bias": t.normal(4),
                "residual": t.normal(*shape)}
        t.add("fused_layer_norm", args, grad=False, function=I.fused_layer_norm, rtol=1e-4, atol=1e-5)
        t.add("fused_rms_norm", args, grad=False, function=I.fused_rms_norm, rtol=1e-4, atol=1e-5)
        del args["residual"], args["bias"]
        t.add("fused_layer_norm", args, grad=False, function=lambda **a: I.fused_layer_norm(**a)[0], rtol=1e-4, atol=1e-5)
        t.add("fused_rms_norm", args, grad=False, function=lambda **a: I.fused_rms_norm(**a)[0], rtol=1e-4, atol=1e-5)
    torch_case(t, "softmax_mask_fuse", {"x": x(1, 2, 3, 4), "mask": x(1, 1, 3, 4)}, lambda x, mask: torch.softmax(x + mask, -1), ["x", "mask"])
    torch_case(t, "softmax_mask_fuse_upper_triangle", {"x": x(1, 2, 4, 4)},
               lambda x: torch.softmax(x.masked_fill(torch.ones(4, 4).triu(1).bool(), float("-inf")), -1), ["x"])
    torch_case(t, "fused_conv2d_add_act", {"input": x(1, 2, 4, 4), "filter": x(3, 2, 3, 3), "bias": x(3), "residual_data": x(1, 3, 4, 4), "paddings": [1, 1],
                                           "activation": "tanh"},
               lambda input, filter, bias, residual_data, **_: torch.tanh(T.conv2d(input, filter, bias, padding=1) + residual_data),
               ["input", "filter", "bias", "residual_data"])

    def moe(x, gate_weight, ffn1_weight, ffn2_weight, moe_topk=2, norm_topk_prob=True, ffn1_bias=None, ffn2_bias=None):
        rows = x.reshape(-1, 4)
        share = torch.softmax(rows @ gate_weight, -1)
        weight, index = share.topk(moe_topk, -1)
        weight = weight / weight.sum(-1, keepdim=True) if norm_topk_prob else weight
        out = []
        for row, w, which in zip(rows, weight, index):
            total = 0
            for p, e in zip(w, which):
                h = row @ ffn1_weight[e] + (ffn1_bias[e] if ffn1_bias is not None else 0)
                total = total + p * ((T.silu(h[:3]) * h[3:]) @ ffn2_weight[e] + (ffn2_bias[e] if ffn2_bias is not None else 0))
            out.append(total)
        return torch.stack(out).reshape(x.shape)

    for top, normal in ((2, True), (1, False)):
        torch_case(t, "fused_moe", {"x": x(1, 3, 4), "gate_weight": x(4, 3), "ffn1_weight": x(3, 4, 6), "ffn2_weight": x(3, 3, 4), "moe_topk": top,
                                    "norm_topk_prob": normal, "ffn1_bias": x(3, 6), "ffn2_bias": x(3, 4)}, moe, ["x", "gate_weight", "ffn1_weight", "ffn2_weight"])
    t.reject("fused_moe", {"x": x(1, 3, 4), "gate_weight": x(4, 3), "ffn1_weight": x(3, 4, 6), "ffn2_weight": x(3, 3, 4), "moe_topk": 4})


def cases_attention(t):
    def x(*shape):
        return t.normal(*shape, dtype="float64")

    def qkv(queries, keys, heads=2, groups=2):
        return {"query": x(2, queries, heads, 3), "key": x(2, keys, groups, 3), "value": x(2, keys, groups, 3)}

    names = ["query", "key", "value"]
    torch_case(t, "scaled_dot_product_attention", {**qkv(3, 5, 4, 2), "scale": 0.3}, lambda query, key, value, scale: sdpa(query, key, value, None, scale)[0], names)
    torch_case(t, "scaled_dot_product_attention", {**qkv(4, 4, 4, 1), "is_causal": True},
               lambda query, key, value, is_causal: sdpa(query, key, value, torch.ones(4, 4).tril().bool())[0], names)
    t.reject("scaled_dot_product_attention", qkv(3, 3, 4, 3))
    t.reject("scaled_dot_product_attention", {**qkv(3, 3, 4, 2), "enable_gqa": False})
    for queries, keys in ((3, 3), (2, 4)):
        torch_case(t, "flash_attention", {**qkv(queries, keys), "causal": True},
                   lambda query, key, value, causal: sdpa(query, key, value, torch.ones(queries, keys).tril(keys - queries).bool())[0], names)
    torch_case(t, "flash_attention", qkv(3, 5), lambda query, key, value: sdpa(query, key, value)[0], names)
    torch_case(t, "fused_dot_product_attention", {**qkv(3, 5), "attn_mask": x(1, 1, 3, 5), "scaling_factor": 0.4},
               lambda query, key, value, attn_mask, scaling_factor: sdpa(query, key, value, attn_mask, scaling_factor)[0], names)
    torch_case(t, "memory_efficient_attention", {**qkv(3, 5), "attn_bias": x(2, 2, 3, 5)},
               lambda query, key, value, attn_bias: sdpa(query, key, value, attn_bias)[0], names)

    def hidden(rows, causal, n):
        mask = torch.ones(2, rows.shape[1], n, n).bool()
        for b in range(2):
            for h in range(rows.shape[1]):
                for j in range(n):
                    r = rows[b, h, j].tolist()
                    low = (r[0], r[1]) if len(r) == 4 or (causal and len(r) == 2) else (r[0], n)
                    high = (0, -1) if causal else ((r[2], r[3]) if len(r) == 4 else (0, r[1]))
                    for i in range(n):
                        if (i >= j and low[0] <= i < low[1]) or (i < j and high[0] <= i < high[1]) or (causal and i < j):
                            mask[b, h, i, j] = False
        return mask

    for causal, bounds in ((True, [[4], [3], [4], [4]]), (True, [[2, 3], [4, 4], [3, 4], [4, 4]]), (False, [[4, 0], [3, 0], [4, 1], [4, 2]]),
                           (False, [[2, 3, 0, 0], [4, 4, 0, 0], [4, 4, 0, 1], [4, 4, 1, 2]])):
        rows = np.broadcast_to(np.array(bounds, np.int32), (2, 1, 4, len(bounds[0]))).copy()
        torch_case(t, "flashmask_attention", {**qkv(4, 4), "startend_row_indices": rows, "causal": causal},
                   lambda query, key, value, startend_row_indices, causal: sdpa(query, key, value, hidden(startend_row_indices, causal, 4))[0], names)
    torch_case(t, "flashmask_attention", {**qkv(4, 4), "causal": True, "window_size": 1},
               lambda query, key, value, causal, window_size: sdpa(query, key, value, torch.ones(4, 4).tril().triu(-1).bool())[0], names)
    t.reject("flashmask_attention", {**qkv(4, 4), "startend_row_indices": np.zeros((2, 1, 4, 3), np.int32)})

    def variable(query, key, value, seq_lens, kv_seq_lens, causal):
        out = torch.zeros_like(query)
        for b in range(2):
            n, m = int(seq_lens[b]), int(kv_seq_lens[b])
            mask = torch.ones(n, m).tril().bool() if causal else None
            part = sdpa(query[b : b + 1, :, :n].transpose(1, 2), key[b : b + 1, :, :m].transpose(1, 2), value[b : b + 1, :, :m].transpose(1, 2), mask)[0]
            out[b, :, :n] = part[0].transpose(0, 1)
        return out

    for causal in (False, True):
        torch_case(t, "variable_length_memory_efficient_attention",
                   {"query": x(2, 2, 4, 3), "key": x(2, 2, 4, 3), "value": x(2, 2, 4, 3), "seq_lens": np.array([[4], [2]], np.int32),
                    "kv_seq_lens": np.array([[4], [2]], np.int32), "causal": causal}, variable, names)

    def step(x, cache_kv, bias, sequence_lengths):
        y = x.reshape(2, 3, 2, 3) + bias
        cache = cache_kv.clone()
        out = []
        for b in range(2):
            n = int(sequence_lengths[b])
            cache[0, b, :, n], cache[1, b, :, n] = y[b, 1], y[b, 2]
            out.append(sdpa(y[b : b + 1, :1], cache[0, b, :, : n + 1].transpose(0, 1)[None], cache[1, b, :, : n + 1].transpose(0, 1)[None])[0].reshape(-1))
        return torch.stack(out), cache

    torch_case(t, "masked_multihead_attention", {"x": x(2, 18), "cache_kv": x(2, 2, 2, 5, 3), "bias": x(3, 2, 3), "sequence_lengths": np.array([[3], [1]], np.int32)},
               step, ["x", "cache_kv", "bias"])
    t.reject("masked_multihead_attention", {"x": x(2, 18), "cache_kv": x(2, 2, 2, 5, 3)})
    t.reject("masked_multihead_attention", {"x": x(2, 18), "cache_kv": x(2, 2, 2, 5, 3), "sequence_lengths": np.array([[5], [1]], np.int32)})

    def heads(query, q_weight, k_weight, v_weight, out_weight, num_heads, key=None, value=None, q_bias=None, k_bias=None, v_bias=None, out_bias=None,
              attn_mask=None, is_causal=False):
        key = query if key is None else key
        value = key if value is None else value
        width = query.shape[2]
        zeros = torch.zeros(width, dtype=query.dtype)
        biases = torch.cat([zeros if b is None else b for b in (q_bias, k_bias, v_bias)])
        mask = None if attn_mask is None else ~attn_mask
        if is_causal:
            mask = torch.triu(torch.ones(query.shape[1], key.shape[1], dtype=torch.bool), 1)
        y, _ = T.multi_head_attention_forward(
            query.transpose(0, 1), key.transpose(0, 1), value.transpose(0, 1), width, num_heads, None, biases, None, None, False, 0.0,
            out_weight.T, out_bias, attn_mask=mask, need_weights=False, use_separate_proj_weight=True, q_proj_weight=q_weight.T,
            k_proj_weight=k_weight.T, v_proj_weight=v_weight.T)
        return y.transpose(0, 1)

    projections = {"num_heads": 2, "q_weight": x(4, 4), "out_weight": x(4, 4)}
    square = {**projections, "k_weight": x(4, 4), "v_weight": x(4, 4)}
    biases = {name: x(4) for name in ("q_bias", "k_bias", "v_bias", "out_bias")}
    grads = ["query", "q_weight", "k_weight", "v_weight", "out_weight"]
    torch_case(t, "multi_head_attention", {"query": x(2, 3, 4), **square}, heads, grads)
    torch_case(t, "multi_head_attention", {"query": x(2, 3, 4), **square, **biases, "is_causal": True}, heads, grads + list(biases))
    torch_case(t, "multi_head_attention", {"query": x(2, 3, 4), **square, "attn_mask": np.array([[1, 1, 0], [0, 1, 1], [1, 0, 1]], bool)}, heads, grads)
    torch_case(t, "multi_head_attention", {"query": x(2, 3, 4), "key": x(2, 5, 6), "value": x(2, 5, 3), **projections, "k_weight": x(6, 4), "v_weight": x(3, 4), **biases},
               heads, ["query", "key", "value"])
    t.reject("multi_head_attention", {"query": x(2, 3, 4), **square, "num_heads": 3})
    t.reject("multi_head_attention", {"query": x(3, 4), **square})
    t.reject("multi_head_attention", {"query": x(2, 3, 5), **square})
