"""Cases of reductions, running sums, statistics, sorting and searching."""

import numpy as np
import torch

AXES = (None, 1, -1, 0, [0, 2], [-1, 0])


def cases_reduction(t):
    for op in ("sum", "mean", "max", "min", "amax", "amin", "prod", "logsumexp", "nansum", "nanmean", "var", "std"):
        for axis in AXES:
            t.add(op, {"x": t.normal(2, 3, 4, dtype="float64"), "axis": axis, "keepdim": axis == 1})
        t.add(op, {"x": t.normal(2, 3, 4)})
        t.add(op, {"x": t.normal(2, 3, 4), "keepdim": True})
        t.add(op, {"x": t.normal(3, 40, dtype="bfloat16"), "axis": 1}, grad=False)
        t.add(op, {"x": t.normal(3, 40, dtype="float16"), "axis": 0}, grad=False)
        if op not in ("var", "std"):
            t.add(op, {"x": np.array(1.5)})
        if op in ("sum", "prod", "mean", "nansum"):
            t.add(op, {"x": t.normal(0, 3), "axis": 0})
            t.add(op, {"x": t.normal(2, 0)})
        else:
            t.reject(op, {"x": t.normal(2, 3), "axis": 2})
        for dtype in ("int32", "int64", "bool", "uint8"):
            if op in ("mean", "nanmean", "var", "std") or (op in ("sum", "nansum") and dtype == "uint8"):
                continue  # PaddlePaddle gives integers
            t.add(op, {"x": t.integers(0, 2 if dtype == "bool" else 5, 2, 3).astype(dtype)}, grad=False)
    t.add("sum", {"x": t.normal(2, 3), "axis": [], "keepdim": False})
    t.add("sum", {"x": t.normal(2, 3), "dtype": "float64"})
    t.add("sum", {"x": t.integers(0, 9, 2, 3), "dtype": "float32"}, grad=False)
    t.add("prod", {"x": t.integers(1, 4, 2, 3), "dtype": "float64"}, grad=False)
    t.add("var", {"x": t.normal(2, 5, dtype="float64"), "axis": 1, "unbiased": False})
    t.add("std", {"x": t.normal(2, 5, dtype="float64"), "axis": [0, 1], "unbiased": False, "keepdim": True})
    x = t.normal(3, 4, dtype="float64")
    x[0, 1] = x[2, 3] = np.nan
    for op in ("nansum", "nanmean"):
        t.add(op, {"x": x, "axis": 1})
    for op in ("sum", "max", "min", "mean", "prod", "logsumexp"):
        t.add(op, {"x": x, "axis": 0}, grad=False)
    tied = np.array([[1.0, 3.0, 3.0], [2.0, 2.0, 2.0]])
    for op in ("max", "min", "amax", "amin"):
        t.add(op, {"x": tied, "axis": 1},
              function=None if op.startswith("a") else lambda x, axis, op=op: __import__("paddle").__dict__["a" + op](x, axis))
    for axis in (None, 1, [0, 1]):
        for op in ("all", "any"):
            t.add(op, {"x": t.bools(2, 3), "axis": axis})
            t.add(op, {"x": t.bools(2, 3), "axis": axis, "keepdim": True})
    for op in ("all", "any"):
        t.add(op, {"x": np.zeros((0, 3), bool), "axis": 0})
        t.add(op, {"x": t.integers(0, 2, 4)})
    t.add("count_nonzero", {"x": t.integers(0, 3, 3, 4), "axis": 1})
    t.add("count_nonzero", {"x": t.integers(0, 3, 3, 4).astype("float32"), "keepdim": True})
    for op in ("argmax", "argmin"):
        for axis in (None, 0, -1):
            t.add(op, {"x": t.normal(3, 4), "axis": axis})
            t.add(op, {"x": t.integers(0, 3, 3, 4), "axis": axis, "keepdim": True})
        t.add(op, {"x": t.normal(3, 4), "axis": 1, "dtype": "int32"})
        t.add(op, {"x": np.array(2.0)})
        t.reject(op, {"x": t.normal(3, 4), "axis": 2})
        t.reject(op, {"x": t.normal(3, 4), "dtype": "float32"})
        t.reject(op, {"x": t.normal(0, 4), "axis": 0})
    t.reject("sum", {"x": t.normal(2, 3), "axis": 2})
    t.reject("sum", {"x": t.normal(2, 3), "axis": [0, 0]})
    t.reject("max", {"x": t.normal(0, 3), "axis": 0})


def cases_scan(t):
    for axis in (None, 0, 1, -1):
        t.add("cumsum", {"x": t.normal(3, 4, dtype="float64"), "axis": axis})
        t.add("logcumsumexp", {"x": t.normal(3, 4, dtype="float64"), "axis": axis})
        t.add("cummax", {"x": t.normal(3, 4, dtype="float64"), "axis": axis})
        t.add("cummin", {"x": t.normal(3, 4, dtype="float64"), "axis": axis})
    for dim in (0, 1, -1):
        t.add("cumprod", {"x": t.normal(3, 4, dtype="float64"), "dim": dim})
    t.add("cumprod", {"x": t.integers(1, 4, 3, 4), "dim": 1}, grad=False)
    t.add("cumprod", {"x": np.array([1.5, 0.0, -2.0, 0.5])[None], "dim": 1})
    for dtype in ("int32", "int64", "float32", "bfloat16"):
        x = t.normal(2, 5, dtype=dtype) if "float" in dtype else t.integers(-5, 5, 2, 5, dtype=dtype)
        t.add("cumsum", {"x": x, "axis": 1}, grad=False)
        if dtype != "bfloat16":
            t.add("cummax", {"x": x, "axis": 1}, grad=False)
            t.add("cummin", {"x": x, "axis": 0, "dtype": "int32"}, grad=False)
    t.add("cumsum", {"x": t.normal(2, 5), "axis": 1, "dtype": "float64"})
    t.add("cumsum", {"x": t.normal(0, 5), "axis": 0})
    t.add("cumsum", {"x": np.array(2.5), "axis": 0})
    t.reject("cumsum", {"x": t.normal(2, 5), "axis": 2})
    t.reject("cumprod", {"x": t.normal(2, 5), "dim": -3})
    for op in ("softmax", "log_softmax"):
        for axis in (-1, 0, 1):
            t.add(op, {"x": t.normal(2, 3, 4, dtype="float64"), "axis": axis})
        t.add(op, {"x": t.normal(2, 3, 4)})
        t.add(op, {"x": t.normal(2, 3, dtype="bfloat16")}, grad=False)
        t.add(op, {"x": np.array(3.0, np.float32), "axis": -1})
        t.add(op, {"x": t.normal(0, 3)})
        t.add(op, {"x": np.array([[1000.0, 999.0, -1000.0]]), "axis": 1}) if op == "softmax" else None
        t.add(op, {"x": t.normal(2, 3), "dtype": "float64"})
        t.reject(op, {"x": t.normal(2, 3), "axis": 2})
    for n, axis in ((1, -1), (2, 0), (1, 0)):
        t.add("diff", {"x": t.normal(4, 5, dtype="float64"), "n": n, "axis": axis})
    t.add("diff", {"x": t.normal(2, 3), "prepend": t.normal(2, 1), "append": t.normal(2, 2)})
    t.add("diff", {"x": t.integers(0, 9, 5)})
    t.add("trapezoid", {"y": t.normal(3, 4, dtype="float64")})
    t.add("trapezoid", {"y": t.normal(3, 4, dtype="float64"), "x": np.array([0.0, 1.0, 1.5, 4.0])})
    t.add("trapezoid", {"y": t.normal(3, 4, dtype="float64"), "dx": 0.5, "axis": 0})
    t.add("cumulative_trapezoid", {"y": t.normal(3, 4, dtype="float64")})
    t.add("cumulative_trapezoid", {"y": t.normal(3, 4, dtype="float64"), "dx": 2.0, "axis": 0})


def cases_sorting(t):
    distinct = t.rng.permutation(24).reshape(4, 6).astype("float64")
    for axis in (-1, 0, 1):
        for descending in (False, True):
            t.add("sort", {"x": distinct, "axis": axis, "descending": descending})
            t.add("argsort", {"x": distinct, "axis": axis, "descending": descending})
    for dtype in ("int32", "int64", "float32"):
        t.add("sort", {"x": t.integers(0, 9, 3, 7).astype(dtype)}, grad=False)
        t.add("argsort", {"x": t.integers(0, 4, 9).astype(dtype), "stable": True})
    t.add("sort", {"x": np.array(2.0)})
    t.add("argsort", {"x": t.normal(0, 3)})
    t.reject("sort", {"x": distinct, "axis": 2})
    for k, axis, largest in ((1, -1, True), (3, 0, True), (2, 1, False)):
        t.add("topk", {"x": distinct, "k": k, "axis": axis, "largest": largest})
        t.add("topk", {"x": distinct.astype("int64"), "k": k, "axis": axis, "largest": largest}, grad=False)
    t.add("topk", {"x": distinct.astype("float32"), "k": np.array([2], np.int32)})
    t.reject("topk", {"x": distinct, "k": 7})
    t.reject("topk", {"x": distinct, "k": 0})
    for k, axis, keepdim in ((1, None, False), (3, 0, True), (6, 1, False)):
        t.add("kthvalue", {"x": distinct, "k": k, "axis": axis, "keepdim": keepdim})
    t.reject("kthvalue", {"x": distinct, "k": 7})
    t.add("mode", {"x": np.array([[1.0, 2, 2, 3], [5, 4, 4, 5]]), "axis": -1})
    t.add("mode", {"x": np.array([[1.0, 2], [2, 2], [1, 3]]), "axis": 0, "keepdim": True})
    for op in ("median", "nanmedian"):
        for axis in (None, 0, 1):
            t.add(op, {"x": distinct, "axis": axis})
            t.add(op, {"x": distinct[:3, :5].copy(), "axis": axis, "keepdim": True})
        t.add(op, {"x": distinct, "axis": 1, "mode": "min"})
        if op == "median":
            t.add(op, {"x": t.integers(0, 9, 5)}, grad=False)
    gaps = distinct.copy()
    gaps[0, 1] = gaps[2, 3] = np.nan
    t.add("nanmedian", {"x": gaps, "axis": 1})
    t.add("median", {"x": gaps, "axis": 1}, grad=False)
    for op in ("quantile", "nanquantile"):
        for q, axis in ((0.3, None), (0.5, 0), ([0.1, 0.8], 1), (1.0, [0, 1])):
            t.add(op, {"x": distinct, "q": q, "axis": axis})
        for interpolation in ("lower", "higher", "midpoint", "nearest"):
            t.add(op, {"x": distinct, "q": 0.37, "axis": 1, "interpolation": interpolation, "keepdim": True})
        t.reject(op, {"x": distinct, "q": 1.5})
    t.add("nanquantile", {"x": gaps, "q": 0.4, "axis": 1})
    edges = np.array([1.0, 3.0, 5.0, 7.0], np.float32)
    for right in (False, True):
        t.add("searchsorted", {"sorted_sequence": edges, "values": np.array([[0.0, 3, 4], [7, 8, 5]], np.float32), "right": right})
        t.add("bucketize", {"x": np.array([[0.0, 3, 4], [7, 8, 5]], np.float32), "sorted_sequence": edges, "right": right, "out_int32": True})
    t.add("searchsorted", {"sorted_sequence": np.sort(t.normal(2, 5)), "values": t.normal(2, 3)})
    t.add("bincount", {"x": np.array([1, 2, 1, 4, 5])})
    t.add("bincount", {"x": np.array([1, 2, 1, 4]), "weights": t.normal(4), "minlength": 8}, grad=False)
    t.reject("bincount", {"x": np.array([1, -2])})
    t.add("histogram", {"input": np.array([1.0, 2.0, 1.0, 2.5], np.float32), "bins": 4, "min": 0, "max": 3})
    t.add("histogram", {"input": t.normal(20), "bins": 5})
    repeated = np.array([2, 3, 3, 1, 5, 3, 1])
    t.add("unique", {"x": repeated})
    t.add("unique", {"x": repeated, "return_index": True, "return_inverse": True, "return_counts": True})
    t.add("unique", {"x": np.array([[2, 1, 3], [3, 0, 1], [2, 1, 3]]), "axis": 0, "return_counts": True})
    t.add("unique", {"x": np.array([[2.5, 1, 3], [3, 0, 1]])})
    t.add("unique_consecutive", {"x": np.array([1, 1, 2, 2, 3, 1, 1, 2])})
    t.add("unique_consecutive", {"x": np.array([1, 1, 2, 2, 3, 1, 1, 2]), "return_inverse": True, "return_counts": True})
    t.add("isin", {"x": np.array([[1, 2], [3, 4]]), "test_x": np.array([2, 4])})
    t.add("isin", {"x": np.array([1.0, 2, 3]), "test_x": np.array([2.0, 9]), "invert": True})


def cases_distance(t):
    for p in (0, 1, 2, 3.5, float("inf"), float("-inf")):
        t.add("vector_norm", {"x": t.normal(3, 4, dtype="float64"), "p": p, "axis": 1}, grad=p not in (0,))
        t.add("dist", {"x": t.normal(3, 4, dtype="float64"), "y": t.normal(4, dtype="float64"), "p": p}, grad=p not in (0,))
        t.add("norm", {"x": t.normal(3, 4, dtype="float64"), "p": p, "axis": 0, "keepdim": True}, grad=p not in (0,))
        if p > 0:
            t.add("pairwise_distance", {"x": t.normal(3, 4, dtype="float64"), "y": t.normal(3, 4, dtype="float64"), "p": p})
            t.add("normalize", {"x": t.normal(3, 4, dtype="float64"), "p": p})
    t.add("vector_norm", {"x": t.normal(3, 4)})
    t.add("vector_norm", {"x": t.normal(3, 4, 2), "axis": [0, 2], "keepdim": True})
    t.add("norm", {"x": t.normal(3, 4)})
    t.add("norm", {"x": t.normal(3, 4, dtype="float64"), "p": "fro"})
    t.add("norm", {"x": t.normal(3, 4, 2, dtype="float64"), "p": "fro", "axis": [0, 1]})
    t.add("normalize", {"x": t.normal(3, 4), "axis": 0})
    t.add("cosine_similarity", {"x1": t.normal(3, 4, dtype="float64"), "x2": t.normal(3, 4, dtype="float64")})
    t.add("cosine_similarity", {"x1": t.normal(3, 4, 2), "x2": t.normal(4, 2), "axis": -1})
    t.reject("norm", {"x": t.normal(3, 4), "p": "euclid"})
