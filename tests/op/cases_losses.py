"""Cases of losses over alignments and over many classes."""

import numpy as np
import paddle
import paddle.nn.functional as F
import torch


def torch_case(t, op, args, function, leaves, rtol=None, atol=None):
    """A case whose results and gradients come from PyTorch: function(**args) on torch tensors."""
    tensors = {k: torch.tensor(v) if isinstance(v, np.ndarray) else v for k, v in args.items()}
    for key in leaves:
        tensors[key].requires_grad_(True)
    results = function(**tensors)
    results = list(results) if isinstance(results, tuple) else [results]
    t.add(op, args, outputs=[r.detach().numpy() for r in results], rtol=rtol, atol=atol)
    line = t.lines[-1]
    name = line["name"]
    seeds = [torch.tensor(np.random.default_rng(2).standard_normal(tuple(r.shape))).to(r.dtype) for r in results]
    line["cotangents"] = [t.store(f"{name}.seed{i}", s.numpy()) for i, s in enumerate(seeds)]
    grads = torch.autograd.grad(results, [tensors[k] for k in leaves], seeds)
    line["grads"] = {k: t.store(f"{name}.grad_{k}", g.numpy()) for k, g in zip(leaves, grads)}


def cases_alignment(t):
    def ctc(log_probs, labels, input_lengths, label_lengths, blank=0, reduction="mean", zero_infinity=False):
        loss = torch.nn.functional.ctc_loss(torch.log_softmax(log_probs, -1), labels, input_lengths, label_lengths, blank, "none", zero_infinity)
        return {"none": loss, "sum": loss.sum(), "mean": (loss / label_lengths).mean()}[reduction]

    def lengths(*values):
        return np.array(values, np.int64)

    labels = np.array([[1, 2, 2], [3, 1, 0], [2, 0, 0]], np.int32)
    for reduction in ("mean", "sum", "none"):
        torch_case(t, "ctc_loss", {"log_probs": t.normal(6, 3, 4, dtype="float64"), "labels": labels, "input_lengths": lengths(6, 5, 3),
                                   "label_lengths": lengths(3, 2, 1), "reduction": reduction}, ctc, ["log_probs"])
    torch_case(t, "ctc_loss", {"log_probs": t.normal(6, 3, 4), "labels": labels, "input_lengths": lengths(6, 5, 3), "label_lengths": lengths(3, 2, 1)},
               ctc, ["log_probs"], rtol=1e-4, atol=1e-5)
    torch_case(t, "ctc_loss", {"log_probs": t.normal(5, 2, 4, dtype="float64"), "labels": np.array([[0, 1], [2, 2]], np.int64),
                               "input_lengths": lengths(5, 4), "label_lengths": lengths(2, 2), "blank": 3, "reduction": "none"}, ctc, ["log_probs"])
    torch_case(t, "ctc_loss", {"log_probs": t.normal(3, 2, 4, dtype="float64"), "labels": np.array([[1, 1, 1], [2, 3, 0]], np.int64),
                               "input_lengths": lengths(3, 3), "label_lengths": lengths(3, 2), "reduction": "none", "zero_infinity": True}, ctc, ["log_probs"])
    t.add("ctc_loss", {"log_probs": t.normal(6, 3, 4), "labels": labels, "input_lengths": lengths(6, 5, 3), "label_lengths": lengths(3, 2, 1),
                       "reduction": "sum", "norm_by_times": True}, rtol=1e-4, atol=1e-5)
    good = {"log_probs": t.normal(6, 3, 4), "labels": labels, "input_lengths": lengths(6, 5, 3), "label_lengths": lengths(3, 2, 1)}
    for change in ({"input_lengths": lengths(7, 5, 3)}, {"label_lengths": lengths(4, 2, 1)}, {"label_lengths": lengths(3, -1, 1)}, {"blank": 4},
                   {"labels": np.array([[1, 2, 4], [3, 1, 0], [2, 0, 0]], np.int32)}, {"labels": labels[:2]}, {"input_lengths": lengths(6, 5)}):
        t.reject("ctc_loss", {**good, **change})

    target = np.array([[1, 2], [3, 1]], np.int32)
    for fast, reduction in ((0.0, "none"), (0.0, "mean"), (0.001, "sum")):
        t.add("rnnt_loss", {"input": t.normal(2, 4, 3, 4), "label": target, "input_lengths": np.array([4, 3], np.int32),
                            "label_lengths": np.array([2, 1], np.int32), "fastemit_lambda": fast, "reduction": reduction}, rtol=1e-4, atol=1e-5)
    t.add("rnnt_loss", {"input": t.normal(2, 4, 3, 4, dtype="float64"), "label": np.array([[0, 2], [1, 1]], np.int32),
                        "input_lengths": np.array([4, 4], np.int32), "label_lengths": np.array([2, 2], np.int32), "blank": 3, "fastemit_lambda": 0.0})
    good = {"input": t.normal(2, 4, 3, 4), "label": target, "input_lengths": np.array([4, 3], np.int32), "label_lengths": np.array([2, 1], np.int32)}
    for change in ({"input_lengths": np.array([5, 3], np.int32)}, {"label_lengths": np.array([3, 1], np.int32)}, {"label": target[:, :1]}, {"blank": 4}):
        t.reject("rnnt_loss", {**good, **change})


def cases_classes(t):
    def x(*shape):
        return t.normal(*shape, dtype="float64")

    for classes in (2, 5, 8, 11):
        t.add("hsigmoid_loss", {"input": x(4, 3), "label": t.integers(0, classes, 4), "num_classes": classes, "weight": x(classes - 1, 3),
                                "bias": x(classes - 1, 1)})
    t.add("hsigmoid_loss", {"input": x(4, 3), "label": t.integers(0, 6, 4), "num_classes": 6, "weight": x(5, 3)})
    table = np.array([[0, 2, -1], [0, 1, 4], [0, 1, -1], [0, 2, 3]], np.int64)
    code = np.array([[1, 0, -1], [0, 1, 1], [0, 0, -1], [1, 1, 0]], np.int64)
    t.add("hsigmoid_loss", {"input": x(4, 3), "label": np.array([0, 1, 2, 3]), "num_classes": 5, "weight": x(5, 3), "bias": x(5, 1), "path_table": table,
                            "path_code": code})
    t.reject("hsigmoid_loss", {"input": x(4, 3), "label": np.array([0, 1, 2, 5]), "num_classes": 5, "weight": x(4, 3)})
    t.reject("hsigmoid_loss", {"input": x(4, 3), "label": np.array([0, 1, 2, 3]), "num_classes": 1, "weight": x(4, 3)})
    t.reject("hsigmoid_loss", {"input": x(4, 3), "label": np.array([0, 1, 2, 3]), "num_classes": 5, "weight": x(4, 2)})

    def margin(logits, label, margin1=1.0, margin2=0.5, margin3=0.0, scale=64.0, return_softmax=False, reduction="mean"):
        hot = torch.nn.functional.one_hot(label.flatten(), logits.shape[1]).bool()
        moved = torch.where(hot, torch.cos(margin1 * torch.acos(logits) + margin2) - margin3, logits) * scale
        loss = -torch.log_softmax(moved, 1)[hot].unsqueeze(1)
        loss = {"mean": loss.mean(), "sum": loss.sum(), None: loss}[reduction]
        return (loss, torch.softmax(moved, 1)) if return_softmax else loss

    for values in ((1.0, 0.5, 0.0), (1.2, 0.1, 0.2), (1.0, 0.0, 0.0)):
        for reduction in ("mean", "sum", None):
            torch_case(t, "margin_cross_entropy", {"logits": t.uniform(-0.9, 0.9, 4, 5, dtype="float64"), "label": t.integers(0, 5, 4), "scale": 4.0,
                                                   "margin1": values[0], "margin2": values[1], "margin3": values[2], "reduction": reduction,
                                                   "return_softmax": reduction is None}, margin, ["logits"])
    t.reject("margin_cross_entropy", {"logits": t.uniform(-0.9, 0.9, 4, 5), "label": np.array([0, 1, 2, 5])})
    for swap, margin_, reduction in ((False, 1.0, "mean"), (True, 0.5, "sum"), (True, 2.0, "none")):
        t.add("triplet_margin_with_distance_loss", {"input": x(4, 3), "positive": x(4, 3), "negative": x(4, 3), "margin": margin_, "swap": swap,
                                                    "reduction": reduction})
    t.reject("triplet_margin_with_distance_loss", {"input": x(4, 3), "positive": x(4, 1), "negative": x(4, 3)})
    t.reject("triplet_margin_with_distance_loss", {"input": x(4, 3), "positive": x(4, 3), "negative": x(4, 3), "margin": -1.0})
    for bias in (True, False):
        def adaptive(input, label, head_weight, tail_weights, cutoffs, head_bias=None):
            return F.adaptive_log_softmax_with_loss(input, label, head_weight, [tail_weights[:2], tail_weights[2:]], cutoffs, head_bias)

        args = {"input": t.normal(5, 4), "label": np.array([0, 2, 4, 6, 7]), "head_weight": t.normal(4, 5),
                "tail_weights": [t.normal(4, 2), t.normal(2, 3), t.normal(4, 1), t.normal(1, 2)], "cutoffs": [3, 6, 8]}
        if bias:
            args["head_bias"] = t.normal(5)
        t.add("adaptive_log_softmax_with_loss", args, function=adaptive)
    args["label"] = np.array([0, 2, 4, 6, 8])
    t.reject("adaptive_log_softmax_with_loss", args)
    t.reject("adaptive_log_softmax_with_loss", {**args, "cutoffs": [3, 2, 8]})
    torch_case(t, "soft_relu", {"x": x(2, 3) * 4, "threshold": 3.0}, lambda x, threshold: torch.log1p(torch.exp(x.clamp(-threshold, threshold))), ["x"])
    for reduction in ("none", "mean", "sum", 0, 1, 2):
        t.add("identity_loss", {"x": x(2, 3), "reduction": reduction}, function=paddle.incubate.identity_loss)
    t.reject("identity_loss", {"x": x(2, 3), "reduction": 3})
    # More classes occur than are asked for: nothing is random.
    label = np.array([7, 1, 3, 1, 9, 3])
    t.add("class_center_sample", {"label": label, "num_classes": 10, "num_samples": 4},
          outputs=[np.array([2, 0, 1, 0, 3, 1]), np.array([1, 3, 7, 9])])
    t.add("class_center_sample", {"label": label, "num_classes": 10, "num_samples": 10}, outputs=[label, np.arange(10)])
    t.reject("class_center_sample", {"label": label, "num_classes": 9, "num_samples": 4})
    t.reject("class_center_sample", {"label": label, "num_classes": 10, "num_samples": 11})
