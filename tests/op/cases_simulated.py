"""Cases of simulated quantization and of products with quantized weights."""

import numpy as np
import paddle


def cases_simulated(t):
    C = paddle._C_ops

    def straight(op, args, gradient, outputs):
        """The gradient of the first result is `gradient` times its cotangent."""
        t.add(op, args, outputs=outputs, rtol=1e-5, atol=1e-6)
        line = t.lines[-1]
        seed = np.random.default_rng(2).standard_normal(outputs[0].shape).astype(np.float32)
        line["cotangents"] = [t.store(f"{line['name']}.seed", seed)] + [None] * (len(outputs) - 1)
        line["grads"] = {"x": t.store(f"{line['name']}.grad", (seed * gradient).astype(np.float32))}

    for bits in (8, 4):
        for rounding in (0, 1):
            x = t.normal(3, 4)
            call = lambda name, *rest: [r.numpy() for r in getattr(C, name)(paddle.to_tensor(x), *rest)]
            most = 2 ** (bits - 1) - 1
            straight("fake_quantize_abs_max", {"x": x, "bit_length": bits, "round_type": rounding}, most / np.abs(x).max(),
                     call("fake_quantize_abs_max", bits, rounding))
            straight("fake_quantize_dequantize_abs_max", {"x": x, "bit_length": bits, "round_type": rounding}, 1.0,
                     call("fake_quantize_dequantize_abs_max", bits, rounding))
            for axis in (0, 1):
                straight("fake_channel_wise_quantize_abs_max", {"x": x, "bit_length": bits, "round_type": rounding, "quant_axis": axis},
                         most / np.abs(x).max(1 - axis, keepdims=True), call("fake_channel_wise_quantize_abs_max", bits, rounding, axis, False))
                straight("fake_channel_wise_quantize_dequantize_abs_max", {"x": x, "bit_length": bits, "round_type": rounding, "quant_axis": axis}, 1.0,
                         call("fake_channel_wise_quantize_dequantize_abs_max", bits, rounding, axis))
    x, scale, accum, state = t.normal(3, 4), np.array([1.5], np.float32), np.array([2.5], np.float32), np.array([1.2], np.float32)

    def whole(s):
        y = np.clip(x, -s, s) / s * 127
        return (np.sign(y) * np.floor(np.abs(y) + 0.5)).astype(np.float32)

    largest = np.maximum(np.abs(x).max(keepdims=True).reshape(1), scale)
    t.add("fake_quantize_range_abs_max", {"x": x, "in_scale": scale}, outputs=[whole(largest), largest])
    t.add("fake_quantize_range_abs_max", {"x": x, "in_scale": scale, "is_test": True}, outputs=[whole(scale), scale])
    next_state, next_accum = 0.9 * state + 1, 0.9 * accum + np.abs(x).max()
    average = next_accum / next_state
    for op, f in (("fake_quantize_moving_average_abs_max", whole), ("fake_quantize_dequantize_moving_average_abs_max", lambda s: whole(s) * s / 127)):
        args = {"x": x, "in_scale": scale, "in_accum": accum, "in_state": state}
        t.add(op, args, outputs=[f(average).astype(np.float32), average, next_state, next_accum])
        t.add(op, {**args, "is_test": True}, outputs=[f(scale).astype(np.float32), scale, state, accum])
    t.add("fake_dequantize_max_abs", {"x": x, "scale": scale, "max_range": 127.0}, outputs=[x * 1.5 / np.float32(127)])
    s = np.array([0.5, 1, 2], np.float32)
    t.add("fake_channel_wise_dequantize_max_abs", {"x": x, "scales": [s], "quant_bits": [8]}, outputs=[x * s[:, None] / np.float32(127)])
    t.reject("fake_quantize_abs_max", {"x": x, "bit_length": 1})
    t.reject("fake_quantize_abs_max", {"x": x, "round_type": 2})

    w = t.normal(64, 6)
    s = np.abs(w).max(0) / np.float32(127)
    q = np.round(w / s).astype(np.int8).T.copy()
    for algo in ("weight_only_int8", "llm.int8"):
        t.add("weight_quantize", {"x": w, "algo": algo}, outputs=[q, s])
    t.add("weight_dequantize", {"x": q, "scale": s, "out_dtype": "float32"}, outputs=[q.T * s])
    s4 = np.abs(w).max(0) / np.float32(7)
    q4 = np.round(w / s4).astype(np.int8).T
    packed = ((q4[1::2].astype(np.int16) << 4) | (q4[::2] & 15)).astype(np.int8)
    t.add("weight_quantize", {"x": w, "algo": "weight_only_int4"}, outputs=[packed, s4])
    t.add("weight_dequantize", {"x": packed, "scale": s4, "algo": "weight_only_int4", "out_dtype": "float32"}, outputs=[q4.T * s4])
    group = np.abs(w.reshape(1, 64, 6)).max(1) / np.float32(127)
    t.add("weight_quantize", {"x": w, "group_size": 64}, outputs=[np.round(w / group[0]).astype(np.int8).T.copy(), group])
    x, bias = t.normal(3, 64), t.normal(6)
    t.add("weight_only_linear", {"x": x, "weight": q, "bias": bias, "weight_scale": s}, outputs=[x @ (q.T * s) + bias], rtol=1e-4, atol=1e-4)
    t.add("weight_only_linear", {"x": x, "weight": packed, "weight_scale": s4, "weight_dtype": "int4"}, outputs=[x @ (q4.T * s4)], rtol=1e-4, atol=1e-4)
    x = x.copy()
    x[0, 5] = 9
    large = np.abs(x).max(0) > 6
    small = np.where(large, 0, x)
    size = np.abs(small).max(1, keepdims=True) / np.float32(127)
    out = (np.round(small / size) @ q.T.astype(np.float32)) * size * s + np.where(large, x, 0) @ (q.T * s) + bias
    t.add("llm_int8_linear", {"x": x, "weight": q, "bias": bias, "weight_scale": s}, outputs=[out.astype(np.float32)], rtol=1e-4, atol=1e-4)
    t.reject("weight_quantize", {"x": w, "group_size": 32})
    t.reject("weight_quantize", {"x": w, "algo": "int2"})
    t.reject("weight_only_linear", {"x": x, "weight": w, "weight_scale": s})
