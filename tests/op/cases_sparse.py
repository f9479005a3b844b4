"""Cases of sparse tensors: the expected values are those of the dense computation, by PyTorch, on the elements that are there."""

import numpy as np
import torch
import torch.nn.functional as F

from torch_table import Table

INDICES = np.array([[0, 0, 1, 2], [1, 3, 0, 2]])
OTHER = np.array([[0, 1, 2], [3, 1, 2]])
BATCHED = np.array([[0, 0, 1, 1, 1], [0, 1, 0, 1, 1], [2, 0, 1, 0, 3]])
SHAPE = [3, 4]


def dense(indices, values, shape):
    out = torch.zeros(tuple(shape) + tuple(values.shape[1:]), dtype=values.dtype)
    return out.index_put(tuple(torch.as_tensor(i) for i in indices), values, accumulate=True)


def csr(indices, shape):
    """crows and cols of sorted indices without duplicates."""
    *batch, rows, _ = shape
    count = int(np.prod(batch, dtype=int))
    flat = indices[-2] + (indices[0] * rows if batch else 0)
    lengths = np.bincount(flat, minlength=count * rows).reshape(count, rows)
    crows = np.concatenate([np.zeros((count, 1), int), lengths.cumsum(1)], 1).reshape(-1)
    return crows, indices[-1].copy()


def at(x, indices):
    return x[tuple(torch.as_tensor(i) for i in indices)]


def forms(t):
    v = t.normal(4)
    t.add("sparse_coo_tensor", {"indices": INDICES, "values": v, "shape": SHAPE}, lambda i, v, s: (i, v))
    t.add("sparse_coo_tensor", {"indices": INDICES.astype(np.int32), "values": v}, lambda i, v: (i.long(), v))
    crows, cols = csr(INDICES, SHAPE)
    t.add("sparse_csr_tensor", {"crows": crows, "cols": cols, "values": v, "shape": SHAPE}, lambda r, c, v, s: (r, c, v))
    t.add("sparse_to_dense", {"indices": INDICES, "values": v, "shape": SHAPE}, dense)
    t.add("sparse_to_dense", {"indices": np.array([[0, 2, 0]]), "values": t.normal(3, 2), "shape": [3, 2]}, lambda i, v, s: dense(i, v, s[:1]))
    t.add("sparse_to_dense", {"indices": INDICES[:, :0], "values": v[:0], "shape": SHAPE}, dense)
    t.add("sparse_to_dense", {"crows": crows, "cols": cols, "values": v, "shape": SHAPE}, lambda r, c, v, s: dense(INDICES, v, s))
    bv = t.normal(5)
    bcrows, bcols = csr(BATCHED, [2, 2, 4])
    t.add("sparse_csr_to_dense", {"crows": bcrows, "cols": bcols, "values": bv, "shape": [2, 2, 4]}, lambda r, c, v, s: dense(BATCHED, v, s))
    x = t.normal(3, 4) * (t.normal(3, 4) > 0)
    places = np.argwhere(x != 0).T.copy()
    t.add("to_sparse_coo", {"x": x}, lambda x: (torch.as_tensor(places), at(x, places)))
    rows = np.argwhere((x != 0).any(1)).T.copy()
    t.add("to_sparse_coo", {"x": x, "sparse_dim": 1}, lambda x, n: (torch.as_tensor(rows), at(x, rows)))
    tcrows, tcols = csr(places, SHAPE)
    t.add("to_sparse_csr", {"x": x}, lambda x: (torch.as_tensor(tcrows), torch.as_tensor(tcols), at(x, places)))
    shuffled = np.array([[2, 0, 1, 0, 2], [2, 3, 0, 1, 2]])
    sv = t.normal(5)
    t.add("sparse_coalesce", {"indices": shuffled, "values": sv, "shape": SHAPE},
          lambda i, v, s: (torch.as_tensor(INDICES), at(dense(i, v, s), INDICES)))
    t.add("sparse_coo_to_csr", {"indices": shuffled, "values": sv, "shape": SHAPE},
          lambda i, v, s: (torch.as_tensor(crows), torch.as_tensor(cols), at(dense(i, v, s), INDICES)))
    t.add("sparse_coo_to_csr", {"indices": BATCHED, "values": bv, "shape": [2, 2, 4]},
          lambda i, v, s: (torch.as_tensor(bcrows), torch.as_tensor(bcols), v))
    t.add("sparse_csr_to_coo", {"crows": bcrows, "cols": bcols, "values": bv, "shape": [2, 2, 4]}, lambda r, c, v, s: (torch.as_tensor(BATCHED), v))
    t.values("sparse_is_same_shape", {"x_shape": [2, 3], "y_shape": [2, 3]}, [np.array(True)])
    t.values("sparse_is_same_shape", {"x_shape": [2, 3], "y_shape": [2]}, [np.array(False)])
    for name in ("sparse_sin", "sparse_relu", "sparse_expm1", "sparse_square"):
        t.add(name, {"x": v}, getattr(torch, name.removeprefix("sparse_")))
    t.reject("sparse_to_dense", {"indices": INDICES + 1, "values": v, "shape": SHAPE})
    t.reject("sparse_to_dense", {"indices": INDICES - 1, "values": v, "shape": SHAPE})
    t.reject("sparse_to_dense", {"indices": INDICES, "values": v[:3], "shape": SHAPE})
    t.reject("sparse_to_dense", {"indices": INDICES, "values": v, "shape": [3]})
    t.reject("sparse_to_dense", {"indices": INDICES.astype(float), "values": v, "shape": SHAPE})
    t.reject("sparse_csr_tensor", {"crows": crows[:3], "cols": cols, "values": v, "shape": SHAPE})
    t.reject("sparse_csr_tensor", {"crows": crows[::-1].copy(), "cols": cols, "values": v, "shape": SHAPE})
    t.reject("sparse_csr_tensor", {"crows": crows, "cols": cols + 4, "values": v, "shape": SHAPE})


def elementwise(t):
    x, y = t.normal(4), t.normal(3)
    union = np.unique(np.concatenate([INDICES, OTHER], 1), axis=1)
    every = np.argwhere(np.ones(SHAPE)).T.copy()
    functions = {"add": torch.add, "subtract": torch.sub, "multiply": torch.mul}
    args = {"x_indices": INDICES, "x_values": x, "y_indices": OTHER, "y_values": y, "shape": SHAPE}
    (xr, xc), (yr, yc) = csr(INDICES, SHAPE), csr(OTHER, SHAPE)
    csr_args = {"x_crows": xr, "x_cols": xc, "x_values": x, "y_crows": yr, "y_cols": yc, "y_values": y, "shape": SHAPE}
    ur, uc = csr(union, SHAPE)
    for name, function in functions.items():
        t.add(f"sparse_{name}", args, lambda i, v, j, w, s: (torch.as_tensor(union), at(function(dense(i, v, s), dense(j, w, s)), union)))
        t.add(f"sparse_{name}", csr_args,
              lambda xr, xc, v, yr, yc, w, s: (torch.as_tensor(ur), torch.as_tensor(uc), at(function(dense(INDICES, v, s), dense(OTHER, w, s)), union)))
    full = {"x_indices": every, "x_values": t.normal(12), "y_indices": every, "y_values": t.uniform(1, 2, 12), "shape": SHAPE}
    t.add("sparse_divide", full, lambda i, v, j, w, s: (torch.as_tensor(every), v / w))
    t.add("sparse_divide", args, lambda i, v, j, w, s: (torch.as_tensor(every), at(dense(i, v, s) / dense(j, w, s), every)), grad=False)
    t.reject("sparse_add", {**args, "shape": [3, 4, 1]})
    t.reject("sparse_add", {**args, "y_indices": OTHER[:1]})


def layouts(t):
    v = t.normal(4)
    base = {"indices": INDICES, "values": v, "shape": SHAPE}
    t.add("sparse_transpose", {**base, "perm": [1, 0]}, lambda i, v, s, p: (i.flip(0), v))
    t.reject("sparse_transpose", {**base, "perm": [0, 0]})
    linear = INDICES[0] * 4 + INDICES[1]
    for shape in ([2, 6], [12], [2, 3, 2], [-1, 2]):
        sizes = shape if -1 not in shape else [6, 2]
        there = np.stack(np.unravel_index(linear, sizes))
        t.add("sparse_reshape", {**base, "new_shape": shape}, lambda i, v, s, n: (torch.as_tensor(there), v))
    t.reject("sparse_reshape", {**base, "new_shape": [5, 2]})
    kept = (INDICES[1] >= 1) & (INDICES[1] < 3)
    t.add("sparse_slice", {**base, "axes": [1], "starts": [1], "ends": [3]},
          lambda i, v, s, a, b, e: (torch.as_tensor(INDICES[:, kept] - [[0], [1]]), v[torch.as_tensor(kept)]))
    t.add("sparse_slice", {**base, "axes": [0, 1], "starts": [-2, 0], "ends": [100, 100]},
          lambda i, v, s, a, b, e: (torch.as_tensor(INDICES[:, 2:] - [[1], [0]]), v[2:]))
    t.add("sparse_sum", {**base, "axis": [0]}, lambda i, v, s, a: (torch.arange(4)[None], dense(i, v, s).sum(0)))
    t.add("sparse_sum", {**base, "axis": [1], "keepdim": True},
          lambda i, v, s, a, k: (torch.stack([torch.arange(3), torch.zeros(3, dtype=torch.long)]), dense(i, v, s).sum(1)))
    t.add("sparse_sum", base, lambda i, v, s: (torch.zeros(1, 1, dtype=torch.long), v.sum()[None]))
    t.reject("sparse_sum", {**base, "axis": [2]})

    def softmax(axis):
        def run(i, v, s, *a):
            x = dense(i, v, s) + torch.where(dense(i, torch.ones_like(v), s) > 0, 0.0, -torch.inf)
            return at(x.softmax(axis), INDICES)

        return run

    t.add("sparse_softmax", base, softmax(-1))
    t.add("sparse_softmax", {**base, "axis": 0}, softmax(0))
    crows, cols = csr(INDICES, SHAPE)
    t.add("sparse_softmax", {"crows": crows, "cols": cols, "values": v, "shape": SHAPE}, lambda r, c, v, s: softmax(-1)(INDICES, v, s))
    t.reject("sparse_softmax", {"crows": crows, "cols": cols, "values": v, "shape": SHAPE, "axis": 0})
    t.add("sparse_mask_as", {"x": t.normal(3, 4), "indices": INDICES}, at)
    t.add("sparse_mask_as", {"x": t.normal(3, 4), "crows": crows, "cols": cols}, lambda x, r, c: at(x, INDICES))
    t.reject("sparse_mask_as", {"x": t.normal(2, 4), "indices": INDICES})


def products(t):
    v, bv = t.normal(4), t.normal(5)
    crows, cols = csr(INDICES, SHAPE)
    base = {"indices": INDICES, "values": v, "shape": SHAPE}
    rows = {"crows": crows, "cols": cols, "values": v, "shape": SHAPE}
    t.add("sparse_matmul", {**base, "y": t.normal(4, 2)}, lambda i, v, s, y: dense(i, v, s) @ y)
    t.add("sparse_matmul", {**base, "y": t.normal(4)}, lambda i, v, s, y: dense(i, v, s) @ y)
    t.add("sparse_mv", {**base, "y": t.normal(4)}, lambda i, v, s, y: dense(i, v, s) @ y)
    t.add("sparse_matmul", {"indices": BATCHED, "values": bv, "shape": [2, 2, 4], "y": t.normal(2, 4, 3)}, lambda i, v, s, y: dense(i, v, s) @ y)
    t.add("sparse_matmul", {**rows, "y": t.normal(4, 2)}, lambda r, c, v, s, y: dense(INDICES, v, s) @ y)
    t.add("sparse_matmul", {"indices": INDICES, "values": v.astype("float32"), "shape": SHAPE, "y": t.normal(4, 2, dtype="float32")},
          lambda i, v, s, y: dense(i, v, s) @ y)
    other = np.array([[0, 1, 3, 3], [1, 0, 0, 1]])
    product = np.argwhere((dense(INDICES, torch.ones(4), SHAPE) @ dense(other, torch.ones(4), [4, 2])).numpy() > 0).T.copy()
    t.add("sparse_matmul", {"x_indices": INDICES, "x_values": v, "x_shape": SHAPE, "y_indices": other, "y_values": t.normal(4), "y_shape": [4, 2]},
          lambda i, v, s, j, w, z: (torch.as_tensor(product), at(dense(i, v, s) @ dense(j, w, z), product)))
    t.add("sparse_masked_matmul", {"x": t.normal(3, 5), "y": t.normal(5, 4), "indices": INDICES}, lambda x, y, i: at(x @ y, INDICES))
    t.add("sparse_masked_matmul", {"x": t.normal(3, 5), "y": t.normal(5, 4), "crows": crows, "cols": cols}, lambda x, y, r, c: at(x @ y, INDICES))
    t.add("sparse_masked_matmul", {"x": t.normal(2, 2, 3), "y": t.normal(2, 3, 4), "indices": BATCHED}, lambda x, y, i: at(x @ y, BATCHED))
    t.add("sparse_addmm", {"input": t.normal(3, 2), **base, "y": t.normal(4, 2), "beta": 0.5, "alpha": 2.0},
          lambda n, i, v, s, y, b, a: b * n + a * (dense(i, v, s) @ y))
    t.add("sparse_addmm", {"input": t.normal(3, 2), **rows, "y": t.normal(4, 2)}, lambda n, r, c, v, s, y: n + dense(INDICES, v, s) @ y)
    t.reject("sparse_matmul", {**base, "y": t.normal(3, 2)})
    t.reject("sparse_masked_matmul", {"x": t.normal(3, 5), "y": t.normal(4, 4), "indices": INDICES})

    mask = np.stack([np.tril(np.ones((3, 3)))] * 4)
    places = np.argwhere(mask).T.copy()
    mrows, mcols = csr(places, [4, 3, 3])
    q, k, w = (t.normal(2, 2, 3, 4) for _ in range(3))
    heads = {"query": q, "key": k, "value": w, "crows": mrows, "cols": mcols}
    t.add("sparse_attention", heads, lambda q, k, v, r, c: F.scaled_dot_product_attention(q, k, v, is_causal=True))
    padding = np.array([[1.0, 1, 1], [1, 0, 1]])
    keep = np.array([[1.0, 0, 0], [1, 1, 0], [1, 0, 1]])

    def masked(q, k, v, r, c, p, m):
        seen = (torch.as_tensor(mask.reshape(2, 2, 3, 3)) * p[:, None, None] * m[None, None]) > 0
        return F.scaled_dot_product_attention(q, k, v, attn_mask=seen)

    t.add("sparse_attention", {**heads, "key_padding_mask": padding, "attn_mask": keep}, masked, frozen=("key_padding_mask", "attn_mask"))


def neighborhoods(t):
    shape = [2, 3, 4, 4, 2]
    there = np.zeros(shape[:4], bool)
    there[0, 0, 0, 1] = there[0, 1, 1, 1] = there[0, 1, 2, 3] = there[1, 2, 3, 0] = there[1, 2, 3, 1] = there[1, 0, 2, 2] = True
    indices = np.argwhere(there).T.copy()
    values = t.normal(indices.shape[1], 2)

    def sites(kernel, stride, padding):
        ones = F.conv3d(torch.as_tensor(there, dtype=torch.float64)[:, None], torch.ones(1, 1, *[kernel] * 3), stride=stride, padding=padding)
        return np.argwhere(ones[:, 0].numpy() > 0).T.copy(), [2, *ones.shape[2:]]

    def volume(i, v):
        return dense(i, v, shape[:4]).permute(0, 4, 1, 2, 3)

    for kernel, stride, padding, bias in ((3, 1, 1, True), (2, 2, 0, False), (3, 2, 1, True)):
        found, sizes = sites(kernel, stride, padding)
        args = {"indices": indices, "values": values, "weight": t.normal(kernel, kernel, kernel, 2, 3), "shape": shape, "stride": stride, "padding": padding}
        if bias:
            args["bias"] = t.normal(3)

        def conv(i, v, w, s, stride, padding, b=None):
            out = F.conv3d(volume(i, v), w.permute(4, 3, 0, 1, 2).contiguous(), b, stride=stride, padding=padding).permute(0, 2, 3, 4, 1)
            return torch.as_tensor(found), at(out, found), torch.tensor([*sizes, 3])

        t.add("sparse_conv3d", args, conv)
    weight = t.normal(3, 3, 3, 2, 3)

    def subm(i, v, w, s, padding, d=1):
        out = F.conv3d(volume(i, v), w.permute(4, 3, 0, 1, 2).contiguous(), padding=padding, dilation=d).permute(0, 2, 3, 4, 1)
        return torch.as_tensor(indices), at(out, indices), torch.tensor([*shape[:4], 3])

    t.add("sparse_subm_conv3d", {"indices": indices, "values": values, "weight": weight, "shape": shape, "padding": 1}, subm)
    t.add("subm_conv3d", {"indices": indices, "values": values, "weight": weight, "shape": shape, "padding": 2, "dilation": 2}, subm)
    t.reject("sparse_subm_conv3d", {"indices": indices, "values": values, "weight": weight, "shape": shape})
    t.reject("sparse_conv3d", {"indices": indices, "values": values, "weight": weight[:, :, :, :1], "shape": shape, "padding": 1})
    found, sizes = sites(2, 2, 0)

    def pool(i, v, k, s):
        lowest = torch.where(dense(i, torch.ones_like(v), shape[:4]) > 0, 0.0, -torch.inf).permute(0, 4, 1, 2, 3)
        out = F.max_pool3d(volume(i, v) + lowest, 2).permute(0, 2, 3, 4, 1)
        return torch.as_tensor(found), at(out, found), torch.tensor([*sizes, 2])

    t.add("sparse_max_pool3d", {"indices": indices, "values": values, "kernel_size": 2, "shape": shape}, pool)
    flat = np.argwhere(there[:, 1]).T.copy()
    pixels, image = t.normal(flat.shape[1], 2), [2, 4, 4, 2]

    def subm2(i, v, w, s, padding):
        out = F.conv2d(dense(i, v, image[:3]).permute(0, 3, 1, 2), w.permute(3, 2, 0, 1).contiguous(), padding=padding).permute(0, 2, 3, 1)
        return torch.as_tensor(flat), at(out, flat), torch.tensor([*image[:3], 1])

    t.add("sparse_subm_conv2d", {"indices": flat, "values": pixels, "weight": t.normal(3, 3, 2, 1), "shape": image, "padding": 1}, subm2)
    t.add("sparse_batch_norm", {"x": values, "running_mean": np.zeros(2), "running_var": np.ones(2), "weight": np.ones(2), "bias": np.zeros(2), "training": True},
          lambda x, m, v, w, b, training: F.batch_norm(x, None, None, w, b, True), frozen=("running_mean", "running_var"))


def main():
    for family, parts in (("sparse", (forms, elementwise, layouts)), ("sparse_products", (products, neighborhoods))):
        t = Table(family)
        for cases in parts:
            cases(t)
        t.write()


if __name__ == "__main__":
    torch.set_default_dtype(torch.float64)
    main()
