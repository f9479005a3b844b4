"""Cases of the operators of PaddlePaddle's programs, by its kernels; those that write their operands get copies."""

import numpy as np
import paddle

C = paddle._C_ops


def auc(t):
    def run(thresholds, earlier, input, label, weight=None):
        counts = [paddle.to_tensor(e) for e in earlier] if earlier else [paddle.zeros([1, thresholds + 1], "int64")] * 2
        return C.auc(input, label, *counts, weight, "ROC", thresholds, 0)

    for n, thresholds in ((9, 7), (200, 4095)):
        args = {"input": t.uniform(0, 1, n, 2), "label": t.integers(0, 2, n, 1), "num_thresholds": thresholds}
        t.add("auc", args, False, lambda input, label, num_thresholds: run(num_thresholds, None, input, label))
    counts = t.integers(0, 5, 1, 8), t.integers(0, 5, 1, 8)
    args = {"input": t.uniform(0, 1, 9, 1), "label": t.integers(0, 2, 9, 1), "stat_pos": counts[0], "stat_neg": counts[1], "num_thresholds": 7}
    t.add("auc", args, False, lambda input, label, stat_pos, stat_neg, num_thresholds: run(7, counts, input, label))
    t.add("auc", {**args, "label": np.zeros((9, 1), np.int64), "stat_pos": np.zeros((1, 8), np.int64)}, False,
          lambda input, label, stat_pos, stat_neg, num_thresholds: run(7, (np.zeros((1, 8), np.int64), counts[1]), input, label))
    # Precision over recall, in bins that hold one sample each: a trapezoid for each positive sample.
    rates, label = np.array([0.9, 0.7, 0.5, 0.3, 0.1]), np.array([1, 0, 1, 1, 0])
    hits, points = 0, [(0.0, 1.0)]
    for i, hit in enumerate(label):
        hits += hit
        points.append((hits / 3, hits / (i + 1)))
    area = sum((b[0] - a[0]) * (a[1] + b[1]) / 2 for a, b in zip(points, points[1:]))
    pos = np.array([[0, 0, 0, 1, 0, 1, 0, 0, 0, 1, 0]])
    t.add("auc", {"input": rates[:, None], "label": label[:, None], "curve": "PR", "num_thresholds": 10},
          outputs=[np.array(area), pos, np.array([[0, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0]])])
    t.reject("auc", {"input": rates, "label": label})
    t.reject("auc", {"input": rates[:, None], "label": label[:3], "num_thresholds": 7})
    t.reject("auc", {"input": rates[:, None], "label": label, "num_thresholds": 0})


def click_rates(t):
    rates, label = t.uniform(0, 1, 6, 1), t.integers(0, 2, 6, 1).astype(np.float32)
    error = (rates - label).astype(np.float64)

    def sums(weight):
        parts = [(error ** 2).sum(), abs(error).sum(), rates.sum(), weight * (1 / (1 + np.exp(-rates))).sum(), label.sum(), weight * 6]
        return [np.array([p], np.float32) for p in parts]

    t.add("ctr_metric_bundle", {"input": rates, "label": label}, outputs=sums(1.0))
    t.add("ctr_metric_bundle", {"input": rates, "label": label, "ins_tag_weight": np.array([[0.5], [1.0]], np.float32)}, outputs=sums(0.5))
    t.reject("ctr_metric_bundle", {"input": rates, "label": label[:, 0]})


def data_norm(t):
    def norm(x, batch_size, batch_sum, batch_square_sum, scale_w=None, bias=None, slot_dim=-1):
        means, scales = batch_sum / batch_size, paddle.sqrt(batch_size / batch_square_sum)
        y = (x - means) * scales
        if scale_w is not None:
            y = y * scale_w + bias
        if slot_dim > 0:
            keep = paddle.repeat_interleave((abs(x[:, ::slot_dim]) >= 1e-7).astype(x.dtype), slot_dim, axis=1)
            y = y * keep.detach()
        return y, means, scales

    sums = {"batch_size": t.uniform(5, 9, 6), "batch_sum": t.normal(6), "batch_square_sum": t.uniform(2, 6, 6)}
    x = t.normal(4, 6)
    x[1, 3] = x[2, 0] = 0
    t.add("data_norm", {"x": x, **sums}, function=norm)
    t.add("data_norm", {"x": x, **sums, "scale_w": t.normal(6), "bias": t.normal(6)}, function=norm)
    t.add("data_norm", {"x": x, **sums, "slot_dim": 3}, function=norm)
    t.reject("data_norm", {"x": x, **sums, "slot_dim": 4})
    t.reject("data_norm", {"x": x, **sums, "scale_w": t.normal(6)})
    t.reject("data_norm", {"x": x, **{**sums, "batch_sum": t.normal(5)}})


def merged_updates(t):
    shapes = ((2, 3), (4,), (1,))
    many = lambda low=-1.0, high=1.0: [t.uniform(low, high, *s, dtype="float64") for s in shapes]
    copies = lambda arrays: [paddle.to_tensor(a.copy()) for a in arrays]
    rate = np.array([0.1])
    # PaddlePaddle ignores rescale_grad for several parameters; it gets scaled gradients instead.
    for nesterov, methods, scale in ((False, [], 1.0), (True, ["l2_decay", "", "l2_decay"], 0.5)):
        args = {"param": many(), "grad": many(), "velocity": many(), "learning_rate": [rate]}
        attrs = {"mu": 0.875, "use_nesterov": nesterov, "regularization_method": methods,
                 "regularization_coeff": [0.25] * len(methods), "rescale_grad": scale}
        p, v = copies(args["param"]), copies(args["velocity"])
        g = copies([scale * a for a in args["grad"]])
        C.merged_momentum_(p, g, v, copies([rate]) * len(shapes), None, 0.875, nesterov, methods, attrs["regularization_coeff"], False, 1.0)
        t.add("merged_momentum", {**args, **attrs}, outputs=[x.numpy() for x in p + v])
    t.reject("merged_momentum", {**args, "grad": args["grad"][:2]})
    t.reject("merged_momentum", {**args, "regularization_method": ["l1_decay"] * 3, "regularization_coeff": [0.1] * 3})

    powers = [[np.array([b ** 3])] * len(shapes) for b in (0.875, 0.9375)]
    for kept in (False, True):
        args = {"param": many(), "grad": many(), "learning_rate": [rate], "moment1": many(), "moment2": many(0.1, 1), "beta1_pow": powers[0],
                "beta2_pow": powers[1]}
        lists = {k: copies(a) for k, a in args.items()}
        C.merged_adam_(lists["param"], lists["grad"], copies([rate]) * len(shapes), lists["moment1"], lists["moment2"], None, lists["beta1_pow"],
                       lists["beta2_pow"], None, 0.875, 0.9375, 0.0009765625, False, kept, False)
        wanted = [x.numpy() for k in ("param", "moment1", "moment2") for x in lists[k]]
        wanted += [p * (1 if kept else b) for ps, b in zip(powers, (0.875, 0.9375)) for p in ps]
        t.add("merged_adam", {**args, "beta1": 0.875, "beta2": 0.9375, "epsilon": 0.0009765625, "use_global_beta_pow": kept}, outputs=wanted)
    t.reject("merged_adam", {**args, "moment2": args["moment2"][:1]})


def loss_scaling(t):
    for worst in (1.0, np.inf, np.nan):
        x = [t.normal(2, 3), t.normal(4)]
        x[1][2] = worst
        scale = np.array([4.0], np.float32)
        out, found = C.check_finite_and_unscale_([paddle.to_tensor(a.copy()) for a in x], paddle.to_tensor(scale))
        t.add("check_finite_and_unscale", {"x": x, "scale": scale}, outputs=[a / 4 for a in x] + [found.numpy()])
    for bad, good_steps, bad_steps in ((False, 1, 1), (False, 2, 0), (True, 1, 0), (True, 1, 1)):
        x = [t.normal(3), t.normal(2, 2)]
        numbers = [np.array([bad]), np.array([1.5], np.float32), np.array([good_steps], np.int32), np.array([bad_steps], np.int32)]
        given = [paddle.to_tensor(a.copy()) for a in x], *[paddle.to_tensor(n.copy()) for n in numbers]
        out, *state = C.update_loss_scaling_(*given, 3, 2, 2.0, 0.5, False)
        names = ("found_infinite", "prev_loss_scaling", "in_good_steps", "in_bad_steps")
        args = {"x": x, **dict(zip(names, numbers)), "incr_every_n_steps": 3, "decr_every_n_nan_or_inf": 2, "incr_ratio": 2.0, "decr_ratio": 0.5}
        t.add("update_loss_scaling", args, outputs=[a * (not bad) for a in x] + [s.numpy() for s in state])
    t.add("update_loss_scaling", {**args, "stop_update": True}, outputs=[a * 0 for a in x] + numbers[1:])
    t.reject("update_loss_scaling", {**args, "incr_ratio": 0.5})
    t.reject("update_loss_scaling", {**args, "incr_every_n_steps": 0})


def one_rank(t):
    table, x = t.normal(4, 3), np.array([[3, 7], [2, 6]])
    t.add("c_embedding", {"weight": table, "x": x, "start_index": 3}, function=lambda weight, x, start_index: C.c_embedding(weight, x, 3, -1))
    t.reject("c_embedding", {"weight": table[0], "x": x})
    for op in ("c_identity", "c_allreduce_sum", "c_concat"):
        t.add(op, {"x": table}, function=lambda x: x * 1)
        t.reject(op, {"x": table, "nranks": 2})
    logits, label = t.normal(3, 4), np.array([[0], [3], [2]])
    t.add("c_softmax_with_cross_entropy", {"logits": logits, "label": label},
          function=lambda logits, label: (paddle.nn.functional.softmax(logits), paddle.nn.functional.cross_entropy(logits, label, reduction="none")))
    t.reject("c_softmax_with_cross_entropy", {"logits": logits, "label": label, "nranks": 4})


def cases_legacy(t):
    for part in (auc, click_rates, data_norm, merged_updates, loss_scaling, one_rank):
        part(t)
