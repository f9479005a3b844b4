"""Cases of losses of boxes (by torchvision), of legacy.yaml's training.yaml and of LKJ's distribution (by PyTorch)."""

import numpy as np
import paddle
import torch
import torchvision
from cases_losses import torch_case


def boxes(t, n, dtype="float64"):
    corners = t.uniform(0, 4, n, 2, dtype=dtype)
    return np.concatenate([corners, corners + t.uniform(0.5, 3, n, 2, dtype=dtype)], 1)


def cases_box_losses(t):
    def iou(input, label, reduction="mean", epsilon=1e-7):
        pairs = torchvision.ops.box_iou(input, label).diagonal()
        return {"none": 1 - pairs, "mean": (1 - pairs).mean(), "sum": (1 - pairs).sum()}[reduction]

    def by(function):
        return lambda input, label, reduction="mean", epsilon=1e-7: function(input, label, reduction=reduction, eps=epsilon)

    functions = {"iou_loss": iou, "giou_loss": by(torchvision.ops.generalized_box_iou_loss),
                 "diou_loss": by(torchvision.ops.distance_box_iou_loss), "ciou_loss": by(torchvision.ops.complete_box_iou_loss)}
    for op, function in functions.items():
        for reduction in ("mean", "sum", "none"):
            # torchvision's box_iou has no epsilon.
            torch_case(t, op, {"input": boxes(t, 7), "label": boxes(t, 7), "reduction": reduction}, function, ["input"], rtol=1e-6)
        torch_case(t, op, {"input": boxes(t, 5, "float32"), "label": boxes(t, 5, "float32")}, function, ["input"], rtol=1e-4, atol=1e-5)
        apart = np.array([[0, 0, 1, 1.5]]), np.array([[3, 2, 4, 5.0]])
        torch_case(t, op, {"input": apart[0], "label": apart[1], "reduction": "none"}, function, ["input"])
        t.reject(op, {"input": boxes(t, 3), "label": boxes(t, 2)})
        t.reject(op, {"input": boxes(t, 3)[:, :3], "label": boxes(t, 3)[:, :3]})
    torch_case(t, "giou_loss", {"input": boxes(t, 6), "label": boxes(t, 6), "reduction": "sum", "epsilon": 0.01},
               functions["giou_loss"], ["input", "label"])


def cases_training(t):
    t.add("brelu", {"x": t.normal(3, 4, scale=3.0), "t_min": -1.0, "t_max": 2.5}, outputs=None,
          function=lambda x, t_min, t_max: paddle.clip(x, t_min, t_max))
    t.reject("brelu", {"x": t.normal(3), "t_min": 1.0, "t_max": 0.0})
    torch_case(t, "huber_loss", {"input": t.normal(3, 4, dtype="float64"), "label": t.normal(3, 4, dtype="float64"), "delta": 0.7},
               lambda input, label, delta: torch.nn.functional.huber_loss(input, label, reduction="none", delta=delta), ["input", "label"])

    def momentum(param, grad, velocity, index, learning_rate, axis=0, mu=0.9, use_nesterov=False, regularization_method="", regularization_coeff=0.0):
        """A step of PyTorch's SGD from a given velocity, with a gradient of all rows."""
        p = torch.tensor(param, requires_grad=True)
        sgd = torch.optim.SGD([p], lr=float(learning_rate[0]), momentum=mu, nesterov=use_nesterov, weight_decay=regularization_coeff)
        sgd.state[p]["momentum_buffer"] = torch.tensor(velocity)
        p.grad = torch.zeros_like(p).index_add(axis, torch.tensor(index).long(), torch.tensor(grad))
        sgd.step()
        return [p.detach().numpy(), sgd.state[p]["momentum_buffer"].numpy()]

    def add_momentum(args):
        t.add("sparse_momentum", args, outputs=momentum(**args))

    rate = np.array([0.1], np.float32)
    for axis, nesterov in ((0, False), (0, True), (1, False)):
        shape = (2, 3) if axis == 0 else (4, 2)
        add_momentum({"param": t.normal(4, 3), "grad": t.normal(*shape), "velocity": t.normal(4, 3), "index": np.array([2, 0], np.int64),
                      "learning_rate": rate, "axis": axis, "mu": 0.8, "use_nesterov": nesterov})
    add_momentum({"param": t.normal(4, 3), "grad": t.normal(2, 3), "velocity": t.normal(4, 3), "index": np.array([1, 3], np.int32),
                  "learning_rate": rate, "regularization_method": "l2_decay", "regularization_coeff": 0.1})
    good = {"param": t.normal(4, 3), "grad": t.normal(2, 3), "velocity": t.normal(4, 3), "index": np.array([1, 3]), "learning_rate": rate}
    for change in ({"axis": 2}, {"grad": t.normal(3, 3)}, {"index": np.array([[1, 3]])}, {"regularization_method": "l1_decay"},
                   {"learning_rate": np.zeros(2, np.float32)}, {"index": np.array([1, 4])}):
        t.reject("sparse_momentum", {**good, **change})

    def clipped(x, max_norm, norm_type=2.0):
        copies = [v.detach().clone().requires_grad_() for v in x]
        for copy in copies:
            copy.grad = copy.detach().clone()
        total = torch.nn.utils.clip_grad_norm_(copies, max_norm, norm_type)
        return [c.grad.numpy() for c in copies] + [total.numpy()]

    for max_norm, norm_type in ((0.5, 2.0), (100.0, 2.0), (0.5, 3.0), (0.5, 1.0), (0.5, float("inf"))):
        x = [t.normal(2, 3, dtype="float64"), t.normal(4, dtype="float64")]
        t.add("clip_grad_norm", {"x": x, "max_norm": max_norm, "norm_type": norm_type},
              outputs=clipped([torch.tensor(v) for v in x], max_norm, norm_type))
    t.reject("clip_grad_norm", {"x": [t.normal(3)], "max_norm": -1.0})
    t.reject("clip_grad_norm", {"x": [t.normal(3)], "max_norm": 1.0, "norm_type": 0.0})

    x = [t.normal(2, 3), t.normal(4), t.normal()]
    vector = np.concatenate([np.ravel(v) for v in x])
    t.add("parameters_to_vector", {"parameters": x}, outputs=[vector])
    t.add("vector_to_parameters", {"vec": t.normal(11), "parameters": x},
          outputs=None, function=lambda vec, parameters: [v.reshape(p.shape) for v, p in zip(paddle.split(vec, [6, 4, 1]), parameters)], frozen=("parameters",))
    t.reject("vector_to_parameters", {"vec": t.normal(12), "parameters": x})
    t.reject("vector_to_parameters", {"vec": t.normal(10), "parameters": x})

    def spectral(weight, u, v, dim=0, power_iters=1, eps=1e-12):
        """PyTorch's parametrization, whose vectors are given; no gradient flows into them."""
        matrix = weight.movedim(dim, 0).flatten(1)
        with torch.no_grad():
            for _ in range(power_iters):
                v = torch.nn.functional.normalize(matrix.T @ u, dim=0, eps=eps)
                u = torch.nn.functional.normalize(matrix @ v, dim=0, eps=eps)
        return weight / torch.vdot(u, matrix @ v), u, v

    for shape, dim, iterations in (((3, 4), 0, 1), ((3, 4), 1, 2), ((2, 3, 2, 2), 1, 3), ((3, 4), 0, 0)):
        rows = shape[dim]
        args = {"weight": t.normal(*shape, dtype="float64"), "u": t.normal(rows, dtype="float64"),
                "v": t.normal(int(np.prod(shape)) // rows, dtype="float64"), "dim": dim, "power_iters": iterations}
        weight = torch.tensor(args["weight"], requires_grad=True)
        results = spectral(weight, torch.tensor(args["u"]), torch.tensor(args["v"]), dim, iterations)
        t.add("spectral_norm", args, outputs=[r.detach().numpy() for r in results])
        line = t.lines[-1]
        seed = torch.tensor(np.random.default_rng(2).standard_normal(shape))
        line["cotangents"] = [t.store(f"{line['name']}.seed{i}", s) for i, s in
                              enumerate([seed.numpy(), np.zeros(rows), np.zeros(len(args["v"]))])]
        line["grads"] = {"weight": t.store(f"{line['name']}.grad_weight", torch.autograd.grad(results[0], weight, seed)[0].numpy())}
    t.reject("spectral_norm", {"weight": t.normal(3, 4), "u": t.normal(4), "v": t.normal(4)})
    t.reject("spectral_norm", {"weight": t.normal(3), "u": t.normal(3), "v": t.normal(1)})
    t.reject("spectral_norm", {"weight": t.normal(3, 4), "u": t.normal(3), "v": t.normal(4), "dim": 2})
    C = paddle._C_ops
    t.add("fill_constant", {"shape": [2, 3], "dtype": "int32", "value": 7}, False, outputs=[np.full((2, 3), 7, np.int32)])
    t.add("p_norm", {"x": t.normal(2, 3, 4), "porder": 3.0, "axis": 1, "keepdim": True}, function=lambda x, porder, axis, keepdim: C.p_norm(x, porder, axis, 1e-12, keepdim, False))
    t.add("p_norm", {"x": t.normal(2, 3), "porder": float("inf"), "axis": 0}, function=lambda x, porder, axis: C.p_norm(x, porder, axis, 1e-12, False, False))
    t.add("p_norm", {"x": t.normal(2, 3), "asvector": True}, function=lambda x, asvector: C.p_norm(x, 2.0, -1, 1e-12, False, True))
    t.add("frobenius_norm", {"x": t.normal(2, 3, 4), "axis": [0, 2], "keepdim": True}, function=lambda x, axis, keepdim: C.frobenius_norm(x, axis, keepdim, False))
    t.add("frobenius_norm", {"x": t.normal(2, 3), "reduce_all": True}, function=lambda x, reduce_all: C.frobenius_norm(x, [], False, True))
    t.add("bce_loss", {"input": t.uniform(0.1, 0.9, 3, 4), "label": t.uniform(0, 1, 3, 4)}, function=lambda input, label: C.bce_loss(input, label), frozen=("label",))
    label = np.array([[0, 1, -100], [1, 0.5, 0]], np.float32)
    for normalize in (False, True):
        t.add("sigmoid_cross_entropy_with_logits", {"x": t.normal(2, 3), "label": label, "normalize": normalize}, frozen=("label",),
              function=lambda x, label, normalize: C.sigmoid_cross_entropy_with_logits(x, label, None, normalize, -100))
    for lower in (False, True):
        t.add("tril_triu", {"x": t.normal(3, 4), "diagonal": 1, "lower": lower},
              function=lambda x, diagonal, lower: (paddle.tril if lower else paddle.triu)(x, diagonal))
    t.add("lookup_table_v2", {"w": t.normal(5, 3), "ids": np.array([[1, 0], [4, 2]]), "padding_idx": 2},
          function=lambda w, ids, padding_idx: paddle.nn.functional.embedding(ids, w, padding_idx))
    t.add("seed", {"seed": 7}, False, outputs=[np.array([7], np.int32)])
    t.reject("seed", {"seed": -1})
    x = t.normal(2)
    t.add("print", {"input": x, "first_n": 0}, False, outputs=[x])
    t.add("assert_true", {"condition": np.array([True, True])}, False, outputs=[np.array([True, True])])
    t.reject("assert_true", {"condition": np.array([True, False])})
    t.reject("py_func", {"x": [t.normal(2)]})

    for dim, concentration in ((2, 1.0), (3, 0.7), (5, 2.5)):
        c = torch.tensor(concentration, dtype=torch.float64)
        factors = torch.distributions.LKJCholesky(dim, c).sample((4,)).numpy()
        torch_case(t, "lkj_cholesky_log_prob", {"value": factors, "concentration": c.numpy()},
                   lambda value, concentration, dim=dim: torch.distributions.LKJCholesky(dim, concentration, validate_args=False).log_prob(value),
                   ["value", "concentration"])
    c = np.array([0.5, 2.0])
    torch_case(t, "lkj_cholesky_log_prob", {"value": torch.distributions.LKJCholesky(3, torch.tensor(c)).sample().numpy(), "concentration": c},
               lambda value, concentration: torch.distributions.LKJCholesky(3, concentration, validate_args=False).log_prob(value), ["value", "concentration"])
    t.reject("lkj_cholesky_log_prob", {"value": t.normal(3, 4), "concentration": np.array(1.0, np.float32)})
    t.reject("lkj_cholesky_sample", {"concentration": np.array(1.0, np.float32), "dim": 1})
