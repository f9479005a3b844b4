"""Cases of whole transformers, attention over block tables, arrays and the head of SSD, by PyTorch and NumPy."""

import math

import numpy as np
import torch
import torch.nn.functional as F

from torch_table import Table

BATCH, LENGTH, HEADS, DIM, HIDDEN = 2, 3, 2, 2, 5
WIDTH = HEADS * DIM


def layer_weights(t, scale=0.5):
    sizes = {"ln_scales": (WIDTH,), "ln_biases": (WIDTH,), "qkv_weights": (3, HEADS, DIM, WIDTH), "qkv_biases": (3, HEADS, DIM),
             "linear_weights": (WIDTH, WIDTH), "linear_biases": (WIDTH,), "ffn_ln_scales": (WIDTH,), "ffn_ln_biases": (WIDTH,),
             "ffn1_weights": (WIDTH, HIDDEN), "ffn1_biases": (HIDDEN,), "ffn2_weights": (HIDDEN, WIDTH), "ffn2_biases": (WIDTH,)}
    return {name: [t.normal(*size) * scale for _ in range(2)] for name, size in sizes.items()}


def transformer(x, w, pre=True, mask=None, caches=None, step=None, alpha=1.0, activation=F.gelu, rms=False):
    def norm(y, scale, bias):
        if rms:
            return y * torch.rsqrt(y.square().mean(-1, keepdim=True) + 1e-5) * scale + bias
        return F.layer_norm(y, (WIDTH,), scale, bias)

    written = []
    for i in range(2):
        p = {name: list_[i] for name, list_ in w.items()}
        y = norm(x, p["ln_scales"], p["ln_biases"]) if pre else x
        qkv = torch.einsum("bsw,chdw->cbhsd", y, p["qkv_weights"]) + p["qkv_biases"][:, None, :, None]
        q, k, v = qkv
        if caches is not None:
            start = 0 if step is None else step
            cache = caches[i].clone()
            cache[:, :, :, start : start + k.shape[2]] = torch.stack([k, v])
            written.append(cache)
            if step is not None:
                k, v = cache[0, :, :, : step + 1], cache[1, :, :, : step + 1]
        scores = q @ k.transpose(-1, -2) / math.sqrt(DIM)
        if mask is not None:
            scores = scores + mask
        a = (scores.softmax(-1) @ v).transpose(1, 2).reshape(*x.shape)
        y = x * alpha + a @ p["linear_weights"] + p["linear_biases"]
        if not pre:
            y = norm(y, p["ln_scales"], p["ln_biases"])
        f = norm(y, p["ffn_ln_scales"], p["ffn_ln_biases"]) if pre else y
        x = y * alpha + activation(f @ p["ffn1_weights"] + p["ffn1_biases"]) @ p["ffn2_weights"] + p["ffn2_biases"]
        if not pre:
            x = norm(x, p["ffn_ln_scales"], p["ffn_ln_biases"])
    return [x, *written]


def transformers(t):
    w = layer_weights(t)
    names = list(w)
    x = t.normal(BATCH, LENGTH, WIDTH)
    mask = np.triu(np.full((LENGTH, LENGTH), -1e4), 1)[None, None].repeat(BATCH, 0)
    t.add("fused_multi_transformer", {"x": x, **w, "attn_mask": mask}, lambda x, *a: transformer(x, dict(zip(names, a)), mask=a[-1]), frozen=("attn_mask",))
    for extra, options in (({"pre_layer_norm": False}, {"pre": False}), ({"activation": "relu", "residual_alpha": 0.5}, {"activation": F.relu, "alpha": 0.5}),
                           ({"norm_type": "rmsnorm"}, {"rms": True})):
        t.add("fused_multi_transformer", {"x": x, **w, **extra}, lambda x, *a: transformer(x, dict(zip(names, a)), **options), grad=False)
    caches = [t.normal(2, BATCH, HEADS, 5, DIM) for _ in range(2)]
    t.add("fused_multi_transformer", {"x": x, **w, "cache_kvs": caches, "attn_mask": mask},
          lambda x, *a: transformer(x, dict(zip(names, a)), caches=a[-2], mask=a[-1]), grad=False)
    t.add("fused_multi_transformer", {"x": x[:, :1].copy(), **w, "cache_kvs": caches, "time_step": 3},
          lambda x, *a: transformer(x, dict(zip(names, a)), caches=a[-2], step=a[-1]), grad=False)
    t.reject("fused_multi_transformer", {"x": x, **{**w, "ffn1_weights": w["ffn1_weights"][:1]}})
    t.reject("fused_multi_transformer", {"x": x, **w, "time_step": 1})
    t.reject("fused_multi_transformer", {"x": x, **w, "cache_kvs": caches, "time_step": 5})


def blocks(t):
    t.values("blha_get_max_len", {"seq_lens_encoder": np.array([[3], [0]], np.int32), "seq_lens_decoder": np.array([[0], [5]], np.int32),
                                  "batch_size": np.zeros(2)}, [np.array([3], np.int32), np.array([5], np.int32)])
    size, heads, groups, dim = 2, 4, 2, 3
    keys, values = t.normal(6, groups, size, dim), t.normal(6, groups, size, dim)
    tables = np.array([[4, 1, -1], [0, 5, 2]], np.int32)
    encoder, decoder, this_time = np.array([[3], [0]], np.int32), np.array([[0], [4]], np.int32), np.array([[3], [1]], np.int32)
    qkv = t.normal(4, (heads + 2 * groups) * dim)

    def reference(qkv, bias=None):
        new_keys, new_values = keys.copy(), values.copy()
        rows = (qkv if bias is None else qkv + bias).reshape(4, heads + 2 * groups, dim)
        out, token = [], 0
        for b in range(2):
            for j in range(this_time[b, 0]):
                place = decoder[b, 0] + j
                new_keys[tables[b, place // size], :, place % size] = rows[token, heads : heads + groups]
                new_values[tables[b, place // size], :, place % size] = rows[token, heads + groups :]
                k = np.stack([new_keys[tables[b, p // size], :, p % size] for p in range(place + 1)])
                v = np.stack([new_values[tables[b, p // size], :, p % size] for p in range(place + 1)])
                for h in range(heads):
                    s = k[:, h // 2] @ rows[token, h] / math.sqrt(dim)
                    s = np.exp(s - s.max())
                    out.append(s / s.sum() @ v[:, h // 2])
                token += 1
        return [np.stack(out).reshape(4, heads * dim), rows.reshape(4, -1), new_keys, new_values]

    args = {"qkv": qkv, "key_cache": keys, "value_cache": values, "seq_lens_encoder": encoder, "seq_lens_decoder": decoder,
            "seq_lens_this_time": this_time, "block_tables": tables, "block_size": size}
    t.values("block_multihead_attention", args, reference(qkv), rtol=1e-5, atol=1e-6)
    bias = t.normal((heads + 2 * groups) * dim)
    t.values("block_multihead_attention", {**args, "qkv_bias": bias}, reference(qkv, bias), rtol=1e-5, atol=1e-6)
    t.reject("block_multihead_attention", {**args, "block_size": 3})
    t.reject("block_multihead_attention", {**args, "block_tables": tables + 6})
    t.reject("block_multihead_attention", {**args, "seq_lens_decoder": decoder + 4})


def halves_away(x):
    return np.sign(x) * np.floor(np.abs(x) + 0.5)


def quantized_blocks(t):
    """uint8 caches: stored tokens are integers, new ones are seen as they are."""
    size, heads, groups, dim = 2, 4, 2, 3
    tables = np.array([[4, 1, -1], [0, 5, 2]], np.int32)
    encoder, decoder, this_time = np.array([[3], [0]], np.int32), np.array([[0], [4]], np.int32), np.array([[3], [1]], np.int32)
    qkv = t.normal(4, (heads + 2 * groups) * dim)
    caches = [t.integers(1, 256, 6, groups, size, dim).astype(np.uint8) for _ in range(2)]

    def reference(scales, dynamic, shift=0.0, smooth=1.0, out_scale=-1.0):
        rows = qkv.reshape(4, heads + 2 * groups, dim)
        fresh = [rows[:, heads : heads + groups], rows[:, heads + groups :]]
        quant, dequant = [s.copy() for s in scales[:2]], [s.copy() for s in scales[2:]]
        if dynamic:  # the first tokens of sequence 0 come now
            for i in range(2):
                most = np.abs(fresh[i][:3]).max((0, 2))
                quant[i][0], dequant[i][0] = 127 / most, most / 127
        new = [c.copy() for c in caches]
        out, token = [], 0
        for b in range(2):
            first = token
            for j in range(this_time[b, 0]):
                place = decoder[b, 0] + j
                seen = []
                for i in range(2):
                    q, d = (quant[i][b], dequant[i][b]) if dynamic else (quant[i], dequant[i])
                    whole = np.clip(halves_away(fresh[i][token] * q[:, None]), -127, 127)
                    new[i][tables[b, place // size], :, place % size] = (whole + 128).astype(np.uint8)
                    old = [(caches[i][tables[b, p // size], :, p % size] - 128.0) * d[:, None] for p in range(decoder[b, 0])]
                    seen.append(np.stack([*old, *fresh[i][first : token + 1]]))
                for h in range(heads):
                    s = seen[0][:, h // 2] @ rows[token, h] / math.sqrt(dim)
                    s = np.exp(s - s.max())
                    out.append(s / s.sum() @ seen[1][:, h // 2])
                token += 1
        y = (np.stack(out).reshape(4, heads * dim) + shift) * smooth
        if out_scale > 0:
            y = np.clip(halves_away(y * out_scale * 127), -127, 127).astype(np.int8)
        return [y, rows.reshape(4, -1), *new, *([*quant, *dequant] if dynamic else [])]

    args = {"qkv": qkv, "key_cache": caches[0], "value_cache": caches[1], "seq_lens_encoder": encoder, "seq_lens_decoder": decoder,
            "seq_lens_this_time": this_time, "block_tables": tables, "block_size": size}
    names = ["cache_k_quant_scales", "cache_v_quant_scales", "cache_k_dequant_scales", "cache_v_dequant_scales"]
    static = [np.array([40.0, 50.0]), np.array([60.0, 30.0]), np.array([0.02, 0.03]), np.array([0.025, 0.015])]
    given = dict(zip(names, static))
    t.values("block_multihead_attention", {**args, **given}, reference(static, False), rtol=1e-5, atol=1e-6)
    shift, smooth = t.normal(heads * dim), t.normal(heads * dim)
    t.values("block_multihead_attention", {**args, **given, "out_shift": shift, "out_smooth": smooth},
             reference(static, False, shift, smooth), rtol=1e-5, atol=1e-6)
    t.values("block_multihead_attention", {**args, **given, "out_scale": 0.4}, reference(static, False, out_scale=0.4), rtol=1e-5, atol=1e-6)
    dynamic = [np.array([[1.0, 1.0], list(s)]) for s in static]
    t.values("block_multihead_attention", {**args, **dict(zip(names, dynamic)), "use_dynamic_cachekv_quant": True}, reference(dynamic, True), rtol=1e-5, atol=1e-6)
    t.reject("block_multihead_attention", args)
    t.reject("block_multihead_attention", {**args, **given, "use_dynamic_cachekv_quant": True})
    t.reject("block_multihead_attention", {**args, **given, "cache_k_quant_scales": np.ones(3)})
    t.reject("block_multihead_attention", {**args, **given, "key_cache": caches[0].astype(np.float64), "value_cache": caches[1].astype(np.float64)})


def turned_steps(t):
    """One step of decoding whose queries and keys are turned."""
    heads, dim, length = 2, 4, 5
    x, cache, lengths = t.normal(2, 3 * heads * dim), t.normal(2, 2, heads, length, dim), np.array([[3], [1]], np.int32)

    def reference(angles, adjacent):
        y, new, out = x.reshape(2, 3, heads, dim).copy(), cache.copy(), []
        for b in range(2):
            cos, sin = angles[:, min(b, angles.shape[1] - 1), 0, 0]
            for i in range(2):
                v = y[b, i].copy()
                pairs = [(k, k + 1) for k in range(0, dim, 2)] if adjacent else [(k, k + dim // 2) for k in range(dim // 2)]
                for a, c in pairs:
                    y[b, i][:, a], y[b, i][:, c] = v[:, a] * cos[a] - v[:, c] * sin[a], v[:, c] * cos[c] + v[:, a] * sin[c]
            n = lengths[b, 0]
            new[:, b, :, n] = y[b, 1:]
            for h in range(heads):
                s = new[0, b, h, : n + 1] @ y[b, 0, h] / math.sqrt(dim)
                s = np.exp(s - s.max())
                out.append(s / s.sum() @ new[1, b, h, : n + 1])
        return [np.stack(out).reshape(2, -1), new]

    args = {"x": x, "cache_kv": cache, "sequence_lengths": lengths}
    for rows in (1, 2):
        for neox in (False, True):
            angles = t.normal(rows, 1, 1, dim // 2)
            angles = np.concatenate([angles, angles], -1) if neox else np.repeat(angles, 2, -1)
            angles = np.stack([np.cos(angles), np.sin(angles)])
            t.values("masked_multihead_attention", {**args, "rotary_tensor": angles, "use_neox_rotary_style": neox}, reference(angles, not neox),
                     rtol=1e-5, atol=1e-6)
    t.reject("masked_multihead_attention", {**args, "rotary_tensor": np.ones((2, 3, 1, 1, dim))})
    t.reject("masked_multihead_attention", {**args, "rotary_tensor": np.ones((2, 1, 1, 1, 3))})


def int8_experts(t):
    """Experts of int8 weights compute as those of the weights times their scales."""
    x, gate = t.normal(1, 3, 4), t.normal(4, 3)
    first, second = t.integers(-127, 128, 3, 4, 6).astype(np.int8), t.integers(-127, 128, 3, 3, 4).astype(np.int8)
    scales = [t.normal(3, 6) / 100, t.normal(3, 4) / 100]
    w1, w2 = first * scales[0][:, None], second * scales[1][:, None]
    rows, out = x.reshape(3, 4), np.zeros((3, 4))
    for i, row in enumerate(rows):
        s = np.exp(row @ gate)
        s /= s.sum()
        best = np.argsort(-s)[:2]
        for e in best:
            h = row @ w1[e]
            out[i] += s[e] / s[best].sum() * (h[:3] / (1 + np.exp(-h[:3])) * h[3:] @ w2[e])
    args = {"x": x, "gate_weight": gate, "ffn1_weight": first, "ffn2_weight": second, "ffn1_scale": scales[0], "ffn2_scale": scales[1]}
    t.values("fused_moe", {**args, "quant_method": "weight_only_int8"}, [out.reshape(1, 3, 4)], rtol=1e-5, atol=1e-6)
    t.reject("fused_moe", args)
    t.reject("fused_moe", {**args, "quant_method": "weight_only_int4"})
    t.reject("fused_moe", {**args, "quant_method": "weight_only_int8", "ffn1_scale": np.ones((3, 4))})
    t.reject("fused_moe", {k: v for k, v in {**args, "quant_method": "weight_only_int8"}.items() if k != "ffn2_scale"})


def rest(t):
    x, dout, dw, db = t.normal(2, 3, 4), t.normal(2, 3, 5), t.normal(4, 5), t.normal(5)
    t.add("fused_linear_param_grad_add", {"x": x, "dout": dout, "dweight": dw, "dbias": db},
          lambda x, g, w, b: (w + torch.einsum("bsi,bso->io", x, g), b + g.sum((0, 1))))
    t.add("fused_linear_param_grad_add", {"x": x[0], "dout": dout[0], "has_bias": False}, lambda x, g, h: x.T @ g)
    y, s, b = t.normal(2, 4), t.normal(4), t.normal(4)
    t.add("fused_scale_bias_add_relu", {"x1": t.normal(2, 4), "scale1": s, "bias1": b, "x2": y}, lambda x, s, b, y: torch.relu(x * s + b + y))
    t.add("fused_scale_bias_add_relu", {"x1": t.normal(2, 4), "scale1": s, "bias1": b, "x2": y, "scale2": b, "bias2": s, "fuse_dual": True},
          lambda x, s, b, y, r, c, f: torch.relu(x * s + b + y * r + c))
    t.reject("fused_scale_bias_add_relu", {"x1": y, "scale1": s, "bias1": b, "x2": y, "fuse_dual": True})
    scores, label = t.normal(6, 4), t.integers(0, 4, 6, 1)
    for k in (1, 2):
        hits = np.mean([label[i, 0] in np.argsort(-scores[i])[:k] for i in range(6)])
        t.values("accuracy", {"input": scores, "label": label, "k": k}, [np.array(hits, np.float32)])
    t.reject("accuracy", {"input": scores, "label": label, "k": 5})
    t.reject("accuracy", {"input": scores, "label": label[:5]})
    t.add("feature_alpha_dropout", {"x": x, "p": 0.3, "training": False}, lambda x, p, m: x)
    t.reject("feature_alpha_dropout", {"x": x, "p": 1.5})


def arrays(t):
    a, b, c = t.normal(2), t.normal(3), t.normal(2, 2)
    t.add("create_array", {"dtype": "float64", "initialized_list": [a, b]}, lambda d, x: x)
    t.add("array_write", {"x": c, "i": 1, "array": [a, b]}, lambda x, i, l: [l[0], x])
    t.add("array_write", {"x": c, "i": 2, "array": [a, b]}, lambda x, i, l: [*l, x])
    t.add("array_write", {"x": c, "i": 0}, lambda x, i: x)
    t.add("array_read", {"array": [a, b], "i": 1}, lambda l, i: l[i])
    t.values("array_length", {"array": [a, b]}, [np.array(2)])
    rows, more = t.normal(2, 2), t.normal(2, 3)
    t.add("tensor_array_to_tensor", {"input": [rows, more]}, lambda l: (torch.cat(l, 1), torch.tensor([2, 3], dtype=torch.int32)))
    t.add("tensor_array_to_tensor", {"input": [rows, c], "axis": 0, "use_stack": True},
          lambda l, a, s: (torch.stack(l, a), torch.tensor([1, 1], dtype=torch.int32)))
    t.reject("array_write", {"x": c, "i": 3, "array": [a, b]})
    t.reject("array_read", {"array": [a, b], "i": 2})
    t.reject("array_read", {"array": [a, b], "i": -1})
    t.reject("tensor_array_to_tensor", {"input": [rows, more], "axis": 0})


def head(t):
    maps = [t.normal(2, 3, 4, 4), t.normal(2, 3, 2, 2)]
    boxes = 4  # ratios 1, 2 and 1/2, and the square between two sizes
    weights = {"loc_weights": [t.normal(boxes * 4, 3, 1, 1) for _ in maps], "conf_weights": [t.normal(boxes * 5, 3, 1, 1) for _ in maps],
               "loc_biases": [t.normal(boxes * 4) for _ in maps], "conf_biases": [t.normal(boxes * 5) for _ in maps]}
    low, high = [10.0, 20.0], [20.0, 30.0]

    def priors():
        out = []
        for m, small, large in zip(maps, low, high):
            rows = m.shape[2]
            sizes = [(small, small), (small * math.sqrt(2), small / math.sqrt(2)), (small / math.sqrt(2), small * math.sqrt(2)),
                     (math.sqrt(small * large),) * 2]
            for y in range(rows):
                for x in range(rows):
                    cx, cy = (x + 0.5) * 40 / rows, (y + 0.5) * 40 / rows
                    out += [[(cx - w / 2) / 40, (cy - h / 2) / 40, (cx + w / 2) / 40, (cy + h / 2) / 40] for w, h in sizes]
        return np.array(out)

    def run(inputs, image, lw, cw, lb, cb, *rest):
        parts = [[F.conv2d(m, w, b).permute(0, 2, 3, 1).reshape(2, -1, n) for m, w, b in zip(inputs, ws, bs)] for ws, bs, n in ((lw, lb, 4), (cw, cb, 5))]
        table = priors()
        return torch.cat(parts[0], 1), torch.cat(parts[1], 1), torch.tensor(table), torch.tensor([[0.1, 0.1, 0.2, 0.2]]).repeat(len(table), 1)

    args = {"inputs": maps, "image": np.zeros((2, 3, 40, 40)), **weights, "base_size": 40.0, "num_classes": 5, "aspect_ratios": [[2.0], [2.0]],
            "min_sizes": low, "max_sizes": high}
    t.add("multi_box_head", args, run, frozen=("image",))
    t.reject("multi_box_head", {**args, "num_classes": 4})
    t.reject("multi_box_head", {**args, "aspect_ratios": [[2.0]]})
    t.reject("multi_box_head", {k: v for k, v in args.items() if k not in ("min_sizes", "max_sizes")})


def main():
    for family, parts in (("serving", (transformers, blocks, quantized_blocks, turned_steps, int8_experts)), ("arrays", (arrays, head, rest))):
        t = Table(family)
        for cases in parts:
            cases(t)
        t.write()


if __name__ == "__main__":
    torch.set_default_dtype(torch.float64)
    main()
