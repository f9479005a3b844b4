"""Cases of mixtures of experts: NumPy and PyTorch with a loop over experts."""

import numpy as np
import torch

from cases_losses import torch_case


def order_of(index):
    return np.argsort(index.reshape(-1), kind="stable").astype(np.int64)


def cases_experts(t):
    def x(*shape, dtype="float64"):
        return t.normal(*shape, dtype=dtype)

    for dtype in ("int64", "int32"):
        for tokens, k, count in ((7, 2, 4), (5, 1, 3), (40, 3, 16)):
            index = t.integers(0, count, tokens, k, dtype=dtype)
            t.add("expert_order", {"index": index, "count": count},
                  outputs=[order_of(index), np.bincount(index.reshape(-1), minlength=count).astype(np.int64)])
    index = np.array([[2, 2], [0, 2]], np.int64)
    for change in ({"index": index - 1}, {"count": 2}, {"count": 0}, {"count": -3}, {"count": 2**40}, {"index": index[0]}, {"index": index[None]}):
        t.reject("expert_order", {"index": index, "count": 3, **change})

    def rows(x, order, k):
        return x[torch.div(order, k, rounding_mode="floor")]

    def mixed(y, order, weights=None, k=None):
        k = weights.shape[1] if weights is not None else k
        back = torch.zeros_like(y).index_put((order,), y).reshape(-1, k, y.shape[1])
        return (back * weights[..., None]).sum(1) if weights is not None else back.sum(1)

    for dtype in ("float64", "float32"):
        for tokens, k, width in ((3, 2, 4), (6, 1, 3), (2, 2, 520 if dtype == "float32" else 5)):
            order = t.rng.permutation(tokens * k).astype(np.int64)
            torch_case(t, "expert_rows", {"x": x(tokens, width, dtype=dtype), "order": order, "k": k}, rows, ["x"])
            torch_case(t, "expert_sum", {"y": x(tokens * k, width, dtype=dtype), "order": order, "weights": x(tokens, k, dtype=dtype)}, mixed,
                       ["y", "weights"], **({"rtol": 1e-4, "atol": 1e-4} if dtype == "float32" else {}))
            torch_case(t, "expert_sum", {"y": x(tokens * k, width, dtype=dtype), "order": order, "k": k}, mixed, ["y"])
    order = np.array([1, 3, 0, 2], np.int64)
    good = {"x": x(2, 3), "order": order, "k": 2}
    for change in ({"order": order + 1}, {"order": order - 1}, {"k": 0}, {"k": 1}, {"k": -2}, {"k": 2**40}, {"order": order[:3]}, {"x": x(2)}):
        t.reject("expert_rows", {**good, **change})
    good = {"y": x(4, 3), "order": order, "weights": x(2, 2)}
    for change in ({"order": order + 1}, {"order": np.array([1, 1, 0, 2], np.int64)}, {"weights": x(3, 2)}, {"weights": x(4)}, {"k": 1}, {"order": order[:3]},
                   {"y": x(4)}):
        t.reject("expert_sum", {**good, **change})
    for k in (3, 0, -1):
        t.reject("expert_sum", {"y": x(4, 3), "order": order, "k": k})
    t.reject("expert_sum", {"y": x(4, 3), "order": order})

    def products(x, weight, counts, transpose=False):
        out, at = [], 0
        for w, n in zip(weight, counts.tolist()):
            out.append(x[at:at + n] @ (w.T if transpose else w))
            at += n
        return torch.cat(out + [torch.zeros(x.shape[0] - at, out[0].shape[1], dtype=x.dtype)])

    def weight_gradient(x, grad, counts):
        out, at = [], 0
        for n in counts.tolist():
            out.append(x[at:at + n].T @ grad[at:at + n])
            at += n
        return torch.stack(out)

    shapes = (([2, 0, 3], 5, 3, 2), ([1, 1, 2], 6, 4, 5), ([0, 0], 3, 2, 3), ([3, 200, 1, 0, 17], 221, 4, 3))
    for dtype in ("float64", "float32"):
        loose = {"rtol": 1e-4, "atol": 1e-4} if dtype == "float32" else {}
        for counts, n, inner, outer in shapes:
            counts = np.array(counts, np.int64)
            for transpose in (False, True):
                weight = x(len(counts), *((outer, inner) if transpose else (inner, outer)), dtype=dtype)
                torch_case(t, "grouped_matmul", {"x": x(n, inner, dtype=dtype), "weight": weight, "counts": counts, "transpose": transpose}, products,
                           ["x", "weight"], **loose)
            torch_case(t, "grouped_weight_gradient", {"x": x(n, inner, dtype=dtype), "grad": x(n, outer, dtype=dtype), "counts": counts}, weight_gradient,
                       ["x", "grad"], **loose)
    # More than one block of columns, of depth, of rows.
    for counts, inner, outer in (([3, 2], 5, 400), ([3, 2], 400, 5), ([210, 1], 6, 5)):
        a, w, n = x(sum(counts), inner, dtype="float32"), x(2, inner, outer, dtype="float32"), np.array(counts, np.int64)
        t.add("grouped_matmul", {"x": a, "weight": w, "counts": n},
              outputs=[products(torch.tensor(a), torch.tensor(w), torch.tensor(n)).numpy()], rtol=1e-4, atol=1e-4)
    for dtype in ("float16", "bfloat16"):
        a, w, counts = t.normal(5, 3, dtype=dtype), t.normal(2, 3, 4, dtype=dtype), np.array([2, 3], np.int64)
        t.add("grouped_matmul", {"x": a, "weight": w, "counts": counts},
              outputs=[products(torch.tensor(a.values), torch.tensor(w.values), torch.tensor(counts)).numpy()])
    counts = np.array([2, 0, 3], np.int64)
    good = {"x": x(5, 3), "weight": x(3, 3, 2), "counts": counts}
    for change in ({"counts": counts + 1}, {"counts": -counts}, {"counts": np.array([2**62, 2**62, 2**62], np.int64)}, {"counts": counts[:2]}, {"x": x(5, 2)},
                   {"transpose": True}, {"weight": x(3, 2)}, {"x": x(5)}):
        t.reject("grouped_matmul", {**good, **change})
    good = {"x": x(5, 3), "grad": x(5, 2), "counts": counts}
    for change in ({"counts": counts + 1}, {"counts": -counts}, {"grad": x(4, 2)}, {"x": x(5)}, {"grad": x(5)}):
        t.reject("grouped_weight_gradient", {**good, **change})
