"""Cases of recurrent layers, volumes, linear systems, rare forms of calls, 0-D tensors and rejections."""

import numpy as np
import paddle
import paddle.nn.functional as F
import torch

F64 = "float64"


def recurrent_case(t, op, gates, layer, layers, directions, time_major, states):
    """One layer of PyTorch with its gradients; PaddlePaddle's needs weights that are its own."""
    def n(*shape):
        return t.normal(*shape, dtype=F64) * 0.5

    hidden, weights = 2, []
    for index in range(layers):
        for _ in range(directions):
            width = 3 if index == 0 else hidden * directions
            weights += [n(gates * hidden, width), n(gates * hidden, hidden), n(gates * hidden), n(gates * hidden)]
    args = {"x": n(3, 2, 3) if time_major else n(2, 3, 3), "hidden_size": hidden, "num_layers": layers,
            "direction": "forward" if directions == 1 else "bidirect", "time_major": time_major, "weights": weights}
    leaves = {"x": torch.tensor(args["x"], requires_grad=True)}
    for name in ("initial_h", "initial_c")[:2 if op == "lstm" else 1] if states else ():
        args[name] = n(layers * directions, 2, hidden)
        leaves[name] = torch.tensor(args[name], requires_grad=True)
    net = layer(3, hidden, num_layers=layers, bidirectional=directions == 2, batch_first=not time_major).double()
    with torch.no_grad():
        for parameter, value in zip(net.parameters(), weights):
            parameter.copy_(torch.tensor(value))
    initial = tuple(leaves[k] for k in leaves if k != "x")
    out, last = net(leaves["x"], (initial if op == "lstm" else initial[0]) if initial else None)
    results = [out, *last] if op == "lstm" else [out, last]
    seeds = [np.random.default_rng(5).standard_normal(tuple(r.shape)) for r in results]
    torch.autograd.backward(results, [torch.tensor(s) for s in seeds])
    name = t.name(op)
    grads = {k: t.store(f"{name}.grad_{k}", v.grad.numpy()) for k, v in leaves.items()}
    grads["weights"] = [t.store(f"{name}.grad_w{i}", p.grad.numpy()) for i, p in enumerate(net.parameters())]
    t.lines.append({"name": name, "op": op, "args": t.encode(name, args),
                    "outputs": [t.store(f"{name}.out{i}", r.detach().numpy()) for i, r in enumerate(results)],
                    "cotangents": [t.store(f"{name}.seed{i}", s) for i, s in enumerate(seeds)],
                    "grads": grads, "rtol": 1e-7, "atol": 1e-8})


def cases_recurrent(t):
    for op, gates, layer in (("lstm", 4, torch.nn.LSTM), ("gru", 3, torch.nn.GRU), ("simple_rnn", 1, torch.nn.RNN)):
        for layers, directions, time_major, states in ((1, 1, False, True), (2, 1, True, False), (2, 2, False, True)):
            recurrent_case(t, op, gates, layer, layers, directions, time_major, states)
        weights = [t.normal(gates * 2, 3), t.normal(gates * 2, 2), t.normal(gates * 2), t.normal(gates * 2)]
        t.reject(op, {"x": t.normal(2, 3, 4), "hidden_size": 2, "weights": weights})
        t.reject(op, {"x": t.normal(3, 3), "hidden_size": 2, "weights": weights})
        t.reject(op, {"x": t.normal(2, 3, 3), "hidden_size": 2, "weights": weights[:3]})
        t.reject(op, {"x": t.normal(2, 3, 3), "hidden_size": 2, "weights": weights, "direction": "both"})


def cases_volume(t):
    def n(*shape):
        return t.normal(*shape, dtype=F64)

    for padding in (0, 1, [1, 0, 1], "SAME", "VALID", [1, 0, 0, 1, 1, 1]):
        t.add("conv3d", {"x": n(1, 2, 4, 3, 4), "weight": n(2, 1, 3, 2, 2), "bias": n(2), "stride": [1, 2, 1],
                         "padding": padding, "groups": 2})
    t.add("conv3d", {"x": n(1, 4, 3, 4, 2), "weight": n(3, 2, 2, 2, 2), "dilation": [2, 1, 1], "data_format": "NDHWC"})
    for padding, extra in ((0, 0), (1, 1), ("SAME", 0), ("VALID", 0)):
        t.add("conv3d_transpose", {"x": n(1, 2, 3, 2, 2), "weight": n(2, 1, 2, 3, 2), "bias": n(2), "stride": 2,
                                   "padding": padding, "output_padding": extra, "groups": 2})
    t.add("conv3d_transpose", {"x": n(1, 2, 2, 2, 2), "weight": n(2, 1, 2, 3, 2), "stride": 2, "output_size": [4, 5, 5]})
    x = n(1, 2, 4, 5, 4)
    for kernel, stride, padding, ceil in ((2, None, 0, False), (3, 2, 1, False), ([2, 3, 2], 2, 0, True)):
        t.add("max_pool3d", {"x": x, "kernel_size": kernel, "stride": stride, "padding": padding, "ceil_mode": ceil})
        for exclusive in (True, False):
            t.add("avg_pool3d", {"x": x, "kernel_size": kernel, "stride": stride, "padding": padding,
                                 "ceil_mode": ceil, "exclusive": exclusive})
    t.add("max_pool3d", {"x": x, "kernel_size": 2, "return_mask": True})
    t.add("avg_pool3d", {"x": x, "kernel_size": 2, "divisor_override": 3})
    t.add("avg_pool3d", {"x": n(1, 4, 5, 4, 2), "kernel_size": 2, "data_format": "NDHWC"})
    for size in (1, [2, 3, 1]):
        t.add("adaptive_avg_pool3d", {"x": x, "output_size": size})
        t.add("adaptive_max_pool3d", {"x": x, "output_size": size, "return_mask": True})
    for rank in (1, 2, 3):
        x = n(*[1, 2] + [4] * rank)
        values, places = getattr(F, f"max_pool{rank}d")(paddle.to_tensor(x), 2, return_mask=True)
        args = {"x": values.numpy(), "indices": places.numpy().astype("int32"), "kernel_size": 2}
        t.add(f"max_unpool{rank}d", args)
        t.add(f"max_unpool{rank}d", {**args, "output_size": [1, 2] + [4] * rank})
        t.reject(f"max_unpool{rank}d", {**args, "indices": args["indices"] + 100})
    for p in (1.0, 2.0, 3.0, float("inf")):
        t.add("lp_pool1d", {"x": t.uniform(0.5, 2, 1, 2, 7), "norm_type": p, "kernel_size": 3, "stride": 2})
        t.add("lp_pool2d", {"x": t.uniform(0.5, 2, 1, 2, 5, 6), "norm_type": p, "kernel_size": 2})
    t.reject("conv3d", {"x": t.normal(1, 3, 4, 4, 4), "weight": t.normal(2, 2, 2, 2, 2)})
    t.reject("conv3d", {"x": t.normal(1, 2, 4, 4), "weight": t.normal(2, 2, 2, 2, 2)})
    t.reject("max_pool3d", {"x": t.normal(1, 2, 4, 4), "kernel_size": 2})


def cases_solvers(t):
    def square(*shape):
        return t.normal(*shape, dtype=F64) + 3 * np.eye(shape[-1])

    for shape in ((3, 3), (2, 2, 2)):
        for op in ("inv", "det", "slogdet"):
            t.add(op, {"x": square(*shape)})
        for power in (-2, -1, 0, 3):
            t.add("matrix_power", {"x": square(*shape), "n": power}, rtol=1e-6)
        right = t.normal(*shape[:-1], 2, dtype=F64)
        t.add("solve", {"x": square(*shape), "y": right})
        for upper in (False, True):
            for transpose in (False, True):
                t.add("triangular_solve", {"x": square(*shape), "y": right, "upper": upper, "transpose": transpose},
                      grad=upper)
            positive = square(*shape)
            positive = positive @ positive.swapaxes(-1, -2)
            factor = np.linalg.cholesky(positive)
            t.add("cholesky", {"x": positive, "upper": upper})
            t.add("cholesky_solve", {"x": right, "y": factor.swapaxes(-1, -2).copy() if upper else factor,
                                     "upper": upper})
    t.add("solve", {"x": square(3, 3), "y": t.normal(3, dtype=F64)})
    t.add("solve", {"x": square(2, 3, 3), "y": t.normal(3, 2, dtype=F64)})
    t.add("svdvals", {"x": t.normal(3, 4, dtype=F64)})
    for p in ("fro", "nuc", 1, -1, 2, -2, float("inf")):
        t.add("matrix_norm", {"x": t.normal(3, 2, 4, dtype=F64), "p": p, "axis": [0, 2], "keepdim": True})
    for op in ("inv", "det", "cholesky"):
        t.reject(op, {"x": t.normal(2, 3)})
        t.reject(op, {"x": t.normal(3)})
    t.reject("solve", {"x": t.normal(3, 3), "y": t.normal(4, 2)})
    t.reject("cholesky", {"x": -np.eye(3)})
    t.reject("inv", {"x": np.zeros((2, 2))})


def cases_forms(t):
    def n(*shape):
        return t.normal(*shape, dtype=F64)

    for op in ("add", "subtract"):
        t.add(op, {"x": n(2, 3), "y": n(3), "alpha": 0.5})
        t.add(op, {"x": t.integers(0, 9, 3), "y": t.integers(0, 9, 3), "alpha": 2}, grad=False)
    for mode in (None, "trunc", "floor"):
        t.add("divide", {"x": n(2, 3) * 5, "y": t.uniform(0.5, 2, 3, dtype=F64), "rounding_mode": mode})
        t.add("divide", {"x": t.integers(-9, 9, 2, 3), "y": t.integers(1, 4, 3), "rounding_mode": mode}, grad=False)
    t.add("where", {"condition": t.bools(3, 2)})
    t.add("scale", {"x": n(3), "scale": 2.0, "act": "tanh"})
    t.add("mean", {"x": t.integers(0, 9, 2, 3), "axis": 1, "dtype": "float32"}, grad=False)
    for correction in (0, 1, 2):
        t.add("var", {"x": n(3, 5), "axis": 1, "correction": correction})
    t.add("norm", {"x": t.normal(3, 4), "dtype": "float64"}, grad=False)
    values = t.normal(6)
    t.add("searchsorted", {"sorted_sequence": values, "values": t.normal(3), "sorter": np.argsort(values)})
    for side in ("left", "right"):
        t.add("searchsorted", {"sorted_sequence": np.arange(5.0), "values": np.array([1.0, 2.5, 9.0]), "side": side})
    t.add("embedding", {"x": t.integers(0, 4, 2, 3), "weight": n(4, 2), "scale_grad_by_freq": True})
    t.add("embedding", {"x": t.integers(0, 4, 2, 3), "weight": n(4, 2), "max_norm": 0.9}, grad=False)
    t.add("view", {"x": n(2, 6), "shape_or_dtype": [3, 4]})
    t.add("view", {"x": t.normal(2, 6), "shape_or_dtype": "int32"}, grad=False)
    t.add("swapaxes", {"x": n(2, 3, 4), "perm": [2, 0, 1]})
    t.add("transpose", {"input": n(2, 3), "dim0": 0, "dim1": 1})
    t.add("sum", {"input": n(2, 3), "dim": 1})
    t.add("layer_norm", {"input": n(2, 3), "normalized_shape": 3, "eps": 1e-4})
    t.add("silu", {"x": n(3), "inplace": False})
    t.add("interpolate", {"x": t.normal(1, 2, 8, 9), "size": [3, 4], "mode": "bilinear", "antialias": True}, grad=False)
    t.add("interpolate", {"x": n(1, 2, 4, 5), "scale_factor": [1.7, 1.7], "mode": "bilinear",
                          "recompute_scale_factor": True}, rtol=1e-5)
    t.add("rrelu", {"x": n(2, 3), "training": False})
    t.add("cdist", {"x": n(3, 4), "y": n(2, 4), "p": 3.0})
    t.add("pdist", {"x": n(4, 3)})
    t.add("renorm", {"x": n(3, 4, 2), "p": 2.0, "axis": -1, "max_norm": 0.7})
    t.add("combinations", {"x": n(4), "r": 2})
    t.add("vander", {"x": n(3), "n": 4, "increasing": True})
    t.add("sequence_mask", {"x": t.integers(0, 5, 4), "maxlen": 5})
    t.add("softmax_with_cross_entropy", {"logits": n(4, 5), "label": t.integers(0, 5, 4, 1)})
    t.add("multi_margin_loss", {"input": n(3, 4), "label": t.integers(0, 4, 3), "p": 2})
    t.add("temporal_shift", {"x": n(4, 8, 2, 2), "seg_num": 2, "shift_ratio": 0.2})
    for corners in (True, False):
        t.add("affine_grid", {"theta": n(2, 2, 3), "out_shape": [2, 3, 4, 5], "align_corners": corners})

    def rms(input, normalized_shape, weight=None, eps=1e-5):
        y = input * paddle.rsqrt((input * input).mean(-1, keepdim=True) + eps)
        return y if weight is None else y * weight

    t.add("rms_norm", {"input": n(2, 5), "normalized_shape": 5, "weight": n(5)}, function=rms)
    t.add("rms_norm", {"input": n(2, 5), "normalized_shape": 5, "eps": 1e-3}, function=rms)


def cases_numbers(t):
    """0-D tensors, with the axes that they have."""
    for op in ("sum", "mean", "max", "min", "amax", "amin", "prod", "logsumexp", "nansum", "var", "std", "cumsum",
               "argmax", "argmin", "softmax", "sort", "argsort"):
        for axis in (0, -1):
            t.add(op, {"x": np.array(1.5), "axis": axis}, grad=op not in ("var", "std"))
    for op in ("all", "any"):
        t.add(op, {"x": np.array(True), "axis": 0})


def cases_refusals(t):
    for op, args in (
            ("celu", {"alpha": 0.0}), ("selu", {"scale": 0.5}), ("softshrink", {"threshold": -1.0}),
            ("polygamma", {"n": -1}), ("dropout", {"p": 1.5}), ("dropout", {"p": 0.5, "axis": 3}),
            ("rrelu", {"lower": 0.5, "upper": 0.2}), ("divide", {"y": t.normal(3), "rounding_mode": "up"}),
            ("quantile", {"q": 1.5}), ("norm", {"p": "fra"}), ("renorm", {"p": 2.0, "axis": 2, "max_norm": 1.0})):
        t.reject(op, {"x": t.normal(3), **args})
    t.reject("prelu", {"x": t.normal(2, 3), "weight": t.normal(3, 1)})
    t.reject("multiplex", {"inputs": [t.normal(2, 2), t.normal(2, 2)], "index": np.array([[0], [2]], "int32")})
    t.reject("rms_norm", {"input": t.normal(2, 5), "normalized_shape": 4})
    t.reject("embedding", {"x": np.array([1]), "weight": t.normal(5, 4), "padding_idx": 7})
    t.reject("eye", {"num_rows": -1})
    t.reject("index_sample", {"x": t.normal(3, 4), "index": t.integers(0, 4, 2, 2)})
    t.reject("put_along_axis", {"arr": t.normal(3, 4), "indices": np.array([[1, 0, 0, 0]]), "values": t.normal(1, 4),
                                "axis": 0, "reduce": "sub"})
    t.reject("interpolate", {"x": t.normal(1, 2, 4, 5), "size": [7, 3], "mode": "linear"})
    t.reject("narrow", {"input": t.normal(4, 3), "dim": 0, "start": 3, "length": 2})
    t.reject("searchsorted", {"sorted_sequence": np.arange(4.0), "values": t.normal(2), "side": "middle"})
