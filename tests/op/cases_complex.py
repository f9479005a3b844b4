"""Cases of complex numbers, against PyTorch: values and conjugate gradients."""

import numpy as np
import torch

from torch_table import Table


def elementwise(t):
    names = ("exp", "expm1", "log", "log2", "log10", "sqrt", "rsqrt", "square", "reciprocal", "neg", "sin", "cos", "tan", "asin", "acos",
             "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "abs", "sigmoid")
    for name in names:
        t.add(name, {"x": t.complex(2, 3)}, getattr(torch, name))
        t.add(name, {"x": t.complex(3, dtype="complex64")}, getattr(torch, name), rtol=1e-3)
    t.add("log1p", {"x": t.complex(4) * 0.1}, torch.log1p)
    t.add("sgn", {"x": np.append(t.complex(4), 0)}, torch.sgn, grad=False)
    t.add("sign", {"x": t.complex(2, 3)}, torch.sgn)
    t.add("silu", {"x": t.complex(2, 3)}, lambda x: x * torch.sigmoid(x))
    t.add("angle", {"x": t.complex(2, 3)}, torch.angle)
    t.add("angle", {"x": np.array([-1.5, 0.0, 2.0])}, torch.angle, grad=False)
    t.add("conj", {"x": t.complex(2, 3)}, torch.conj)
    t.add("conj", {"x": t.normal(2)}, torch.conj)
    t.add("real", {"x": t.complex(2, 3)}, torch.real)
    t.add("imag", {"x": t.complex(2, 3)}, torch.imag)
    t.add("as_real", {"x": t.complex(2, 3)}, torch.view_as_real)
    t.add("as_complex", {"x": t.normal(2, 3, 2)}, torch.view_as_complex)
    t.reject("as_complex", {"x": t.normal(2, 3)})
    t.reject("as_real", {"x": t.normal(2, 2)})
    t.add("complex", {"real": t.normal(2, 3), "imag": t.normal(3)}, lambda a, b: torch.complex(*torch.broadcast_tensors(a, b)))
    t.add("complex", {"real": t.normal(2, dtype="float32"), "imag": t.normal(2, dtype="float32")}, torch.complex)
    t.add("complex", {"real": t.normal(0, 2), "imag": t.normal(0, 2)}, torch.complex)
    t.add("complex", {"real": t.normal(), "imag": t.normal()}, torch.complex)
    t.add("polar", {"abs": t.uniform(0.5, 2, 2, 3), "angle": t.normal(2, 3)}, torch.polar)
    for name, function in (("is_complex", torch.is_complex), ("is_floating_point", torch.is_floating_point)):
        t.add(name, {"x": t.complex(2)}, function)
        t.add(name, {"x": t.normal(2)}, function)
    t.values("is_integer", {"x": t.integers(0, 3, 2)}, [np.array(True)])
    t.values("is_integer", {"x": t.complex(2)}, [np.array(False)])
    t.add("isreal", {"x": np.array([1 + 0j, 2j, 0])}, torch.isreal)
    for name in ("isnan", "isinf", "isfinite"):
        t.add(name, {"x": np.array([1, complex(np.nan, 0), complex(0, np.inf), complex(-np.inf, np.nan)])}, getattr(torch, name))


def binary(t):
    for name, function in (("add", torch.add), ("subtract", torch.sub), ("multiply", torch.mul), ("divide", torch.div), ("pow", torch.pow)):
        t.add(name, {"x": t.complex(2, 3), "y": t.complex(3)}, function)
        t.add(name, {"x": t.complex(2, 1), "y": t.normal(2, 3)}, function)
        t.add(name, {"x": t.normal(3), "y": t.complex(2, 3)}, function)
        t.add(name, {"x": t.complex(2, 3, dtype="complex64"), "y": t.complex(2, 3, dtype="complex64")}, function)
        t.add(name, {"x": t.complex(2, 3), "y": 2}, function)
        t.add(name, {"x": t.complex(2, 3), "y": 1.5 - 2j}, function)
        t.add(name, {"x": t.complex(0, 3), "y": t.complex(3)}, function)
    t.add("pow", {"x": np.array([0, 2j, -1]), "y": np.array([2, 3, 0.5], "complex128")}, torch.pow, grad=False)
    for name, function in (("equal", torch.eq), ("not_equal", torch.ne)):
        x = t.complex(4)
        y = x.copy()
        y[1:3] = t.complex(2)
        t.add(name, {"x": x, "y": y}, function)
    for name in ("logical_and", "logical_or", "logical_xor"):
        t.add(name, {"x": np.array([0, 1j, 0, 2]), "y": np.array([0, 0, 1, 1j])}, getattr(torch, name))
    t.add("logical_not", {"x": np.array([0, 1j])}, torch.logical_not)
    z = t.complex(3)
    for name in ("isclose", "allclose"):
        t.add(name, {"x": z, "y": z + np.array([0, 1e-9j, 1e-3])}, getattr(torch, name))
        t.add(name, {"x": z, "y": z.copy()}, getattr(torch, name))
    t.add("equal_all", {"x": z, "y": z.copy()}, torch.equal)
    t.add("where", {"condition": np.array([True, False, True]), "x": t.complex(2, 3), "y": t.complex(3)}, torch.where)
    t.add("where", {"condition": np.array([True, False, True]), "x": t.complex(3, dtype="complex64"), "y": t.complex(3, dtype="complex64")}, torch.where)
    for wanted, dtype in (("complex64", torch.complex64), ("float64", torch.float64), ("float32", torch.float32)):
        t.add("cast", {"x": t.complex(2, 3), "dtype": wanted}, lambda x, _, d=dtype: x.to(d), rtol=1e-6)
    t.add("cast", {"x": t.normal(2), "dtype": "complex128"}, lambda x, _: x.to(torch.complex128))
    t.add("cast", {"x": t.integers(0, 5, 3), "dtype": "complex64"}, lambda x, _: x.to(torch.complex64))
    t.add("cast", {"x": np.array([0, 1j, 2]), "dtype": "bool"}, lambda x, _: x != 0)
    t.add("scale", {"x": t.complex(2, 3), "scale": 2.0, "bias": 0.5}, lambda x, s, b: x * s + b)
    t.add("scale", {"x": t.complex(3), "scale": 1 + 2j}, lambda x, s: x * s)
    t.add("lerp", {"x": t.complex(2, 3), "y": t.complex(2, 3), "weight": t.complex(3)}, torch.lerp)
    for name in ("floor", "floor_divide", "maximum", "less_than", "erf", "relu", "clip", "sort", "argmax", "softmax", "atan2"):
        second = {"y": t.complex(2)} if name in ("floor_divide", "maximum", "less_than", "atan2") else {}
        t.reject(name, {"x": t.complex(2), **second})


def reductions(t):
    x = {"x": t.complex(2, 3, 4)}
    for name in ("sum", "mean"):
        function = getattr(torch, name)
        t.add(name, x, function)
        t.add(name, {**x, "axis": [0, 2]}, lambda x, a, f=function: f(x, a))
        t.add(name, {**x, "axis": [1], "keepdim": True}, lambda x, a, k, f=function: f(x, a, keepdim=k))
        t.add(name, {"x": t.complex()}, function)
        t.add(name, {"x": t.complex(3, 5, dtype="complex64"), "axis": [1]}, lambda x, a, f=function: f(x, a))
    t.add("sum", {"x": t.complex(0, 3), "axis": [0]}, lambda x, a: x.sum(0))
    t.add("prod", {"x": t.complex(2, 3)}, torch.prod)
    t.add("prod", {"x": t.complex(2, 3, dtype="complex64"), "axis": 1}, lambda x, a: x.prod(a))
    t.add("cumsum", {"x": t.complex(2, 3), "axis": 0}, torch.cumsum)
    t.add("cumsum", {"x": t.complex(2, 3, dtype="complex64"), "axis": 1}, torch.cumsum)
    t.add("cumprod", {"x": t.complex(2, 3), "dim": 1}, torch.cumprod)
    t.add("any", {"x": np.array([[0, 1j], [0, 0]]), "axis": 1}, lambda x, a: x.any(a))
    t.add("all", {"x": np.array([[2, 1j], [0, 0]]), "axis": 1}, lambda x, a: x.all(a))
    t.add("count_nonzero", {"x": np.array([[2, 1j], [0, 0]])}, torch.count_nonzero)
    for p in (1.0, 2.0, 3.0, float("inf")):
        t.add("norm", {"x": t.complex(2, 3), "p": p if p != float("inf") else "inf", "axis": 1},
              lambda x, _, a, q=p: torch.linalg.vector_norm(x, q, a))
    t.add("norm", {"x": t.complex(2, 3)}, torch.linalg.norm)
    t.add("dist", {"x": t.complex(2, 3), "y": t.complex(3)}, torch.dist)
    t.add("diff", {"x": t.complex(2, 4)}, torch.diff)


def layouts(t):
    x = {"x": t.complex(2, 3, 4)}
    small = {"x": t.complex(2, 3, dtype="complex64")}
    t.add("reshape", {**x, "shape": [4, 6]}, torch.reshape)
    t.add("transpose", {**x, "perm": [2, 0, 1]}, torch.permute)
    t.add("transpose", {**small, "perm": [1, 0]}, torch.permute)
    t.add("flatten", x, torch.flatten)
    t.add("squeeze", {"x": t.complex(2, 1, 3), "axis": 1}, torch.squeeze)
    t.add("unsqueeze", {**x, "axis": 1}, torch.unsqueeze)
    t.add("expand", {"x": t.complex(1, 3), "shape": [2, 3]}, lambda x, s: x.expand(s))
    t.add("tile", {**small, "repeat_times": [2, 2]}, torch.tile)
    t.add("flip", {**x, "axis": [0, 2]}, torch.flip)
    t.add("roll", {**x, "shifts": 1, "axis": 2}, torch.roll)
    t.add("concat", {"x": [t.complex(2, 3), t.complex(2, 1)], "axis": 1}, torch.cat)
    t.add("stack", {"x": [t.complex(2, 3), t.complex(2, 3)], "axis": 1}, torch.stack)
    t.add("split", {**x, "num_or_sections": 2, "axis": 2}, lambda x, n, a: torch.split(x, 2, a))
    t.add("unbind", {**small, "axis": 0}, torch.unbind)
    t.add("pad", {"x": t.complex(1, 2, 3, 3), "pad": [1, 0, 0, 2]}, lambda x, p: torch.nn.functional.pad(x, p))
    t.add("tril", {"x": t.complex(3, 3)}, torch.tril)
    t.add("triu", {"x": t.complex(3, 3), "diagonal": 1}, torch.triu)
    t.add("diagonal", {"x": t.complex(3, 4)}, torch.diagonal)
    t.add("diag", {"x": t.complex(3)}, torch.diag)
    t.add("diag_embed", {"x": t.complex(2, 3)}, torch.diag_embed)
    t.add("trace", {"x": t.complex(3, 3)}, torch.trace)
    t.add("rot90", {**x, "k": 1, "axes": [0, 1]}, torch.rot90)
    t.add("repeat_interleave", {**small, "repeats": 2, "axis": 1}, torch.repeat_interleave)
    t.add("full_like", {**small, "fill_value": 1 + 2j}, torch.full_like, grad=False)
    t.add("zeros_like", x, torch.zeros_like, grad=False)
    t.add("ones_like", x, torch.ones_like, grad=False)
    t.values("full", {"shape": [2, 2], "fill_value": 1 - 1j, "dtype": "complex128"}, [np.full((2, 2), 1 - 1j)])
    t.values("ones", {"shape": [2], "dtype": "complex64"}, [np.ones(2, "complex64")])
    t.values("eye", {"num_rows": 2, "dtype": "complex64"}, [np.eye(2, dtype="complex64")])
    t.add("assign", x, torch.clone)
    t.add("vander", {"x": t.complex(3)}, torch.vander, grad=False)
    index = np.array([2, 0, 2])
    t.add("gather", {"x": t.complex(3, 2), "index": index}, lambda x, i: x[i])
    t.add("gather", {"x": t.complex(3, 2, dtype="complex64"), "index": index}, lambda x, i: x[i])
    t.add("index_select", {"x": t.complex(2, 3), "index": index, "axis": 1}, lambda x, i, a: torch.index_select(x, a, i))
    t.add("gather_nd", {"x": t.complex(3, 2), "index": np.array([[0, 1], [2, 0]])}, lambda x, i: x[i[:, 0], i[:, 1]])
    t.add("take_along_axis", {"arr": t.complex(3, 2), "indices": np.array([[0, 2], [1, 1]]), "axis": 0},
          lambda x, i, a: torch.gather(x, a, i))
    t.add("put_along_axis", {"arr": t.complex(3, 2), "indices": np.array([[0, 2]]), "values": t.complex(1, 2), "axis": 0, "reduce": "add"},
          lambda x, i, v, a, r: x.scatter_add(a, i, v))
    t.add("index_add", {"x": t.complex(3, 2), "index": np.array([0, 0]), "axis": 0, "value": t.complex(2, 2)},
          lambda x, i, a, v: x.index_add(a, i, v))
    t.add("scatter_nd_add", {"x": t.complex(4, dtype="complex64"), "index": np.array([[1], [1], [3]]), "updates": t.complex(3, dtype="complex64")},
          lambda x, i, u: x.index_add(0, i[:, 0], u))
    mask = np.array([[True, False, True], [False, True, False]])
    t.add("masked_select", {"x": t.complex(2, 3), "mask": mask}, torch.masked_select)
    t.add("masked_fill", {"x": t.complex(2, 3), "mask": mask, "value": np.array(1 + 2j)}, lambda x, m, v: torch.where(m, v, x), frozen=("value",))
    t.add("index_put", {"x": t.complex(3, 2), "indices": [np.array([0, 2]), np.array([1, 0])], "value": t.complex(2)},
          lambda x, i, v: torch.index_put(x, tuple(i), v))
    t.add("nonzero", {"x": np.array([0, 1j, 2, 0])}, torch.nonzero)
    t.add("multiplex", {"inputs": [t.complex(2, 3), t.complex(2, 3)], "index": np.array([[1], [0]], "int32")},
          lambda x, i: torch.stack([x[1][0], x[0][1]]))
    t.add("add_n", {"inputs": [t.complex(2), t.complex(2)]}, lambda x: x[0] + x[1])


def products(t):
    for shapes in (((2, 3), (3, 4)), ((3,), (3,)), ((2, 2, 3), (3, 4)), ((0, 3), (3, 2)), ((2, 0), (0, 3)), ((5, 2, 3), (5, 3, 1))):
        t.add("matmul", {"x": t.complex(*shapes[0]), "y": t.complex(*shapes[1])}, torch.matmul)
    t.add("matmul", {"x": t.complex(4, 5, dtype="complex64"), "y": t.complex(5, 3, dtype="complex64")}, torch.matmul)
    t.add("matmul", {"x": t.complex(3, 2), "y": t.complex(4, 3), "transpose_x": True, "transpose_y": True}, lambda x, y, a, b: x.T @ y.T)
    t.add("matmul", {"x": t.complex(2, 3), "y": t.normal(3, 2)}, lambda x, y: x @ y.to(x.dtype))
    t.add("bmm", {"x": t.complex(2, 2, 3), "y": t.complex(2, 3, 2)}, torch.bmm)
    t.add("mv", {"x": t.complex(2, 3), "vec": t.complex(3)}, torch.mv)
    t.add("dot", {"x": t.complex(3), "y": t.complex(3)}, torch.dot)
    t.add("outer", {"x": t.complex(3), "y": t.complex(2)}, torch.outer)
    t.add("inner", {"x": t.complex(2, 3), "y": t.complex(4, 3)}, torch.inner)
    t.add("kron", {"x": t.complex(2, 2), "y": t.complex(2, 3)}, torch.kron)
    t.add("cross", {"x": t.complex(2, 3), "y": t.complex(2, 3)}, torch.cross)
    t.add("addmm", {"input": t.complex(2, 2), "x": t.complex(2, 3), "y": t.complex(3, 2), "beta": 0.5, "alpha": 2.0},
          lambda i, x, y, b, a: b * i + a * (x @ y))
    t.add("einsum", {"equation": "bij,bjk->bik", "operands": [t.complex(2, 2, 3), t.complex(2, 3, 2)]}, torch.einsum)
    t.add("linear", {"x": t.complex(2, 3), "weight": t.complex(3, 2), "bias": t.complex(2)}, lambda x, w, b: x @ w + b)
    t.add("matrix_power", {"x": t.complex(3, 3), "n": 3}, torch.linalg.matrix_power)
    t.add("tensordot", {"x": t.complex(2, 3), "y": t.complex(3, 2), "axes": 1}, torch.tensordot)


def corners(t):
    """Next to poles and branch cuts, on both sides of the cuts, and where squares overflow or vanish; NumPy's values where
    they are finite."""
    parts = np.array([0.0, -0.0, 1e-200, -1e-8, 0.3, -0.5, 1.0, -1.0, 1.0000001, 2.5, -3.0, 20.0, -25.0, 1e6, -1e150, 1e300])
    z = np.empty(parts.size**2, complex)
    z.real, z.imag = np.repeat(parts, parts.size), np.tile(parts, parts.size)
    inverse = {"asin": "arcsin", "acos": "arccos", "atan": "arctan", "asinh": "arcsinh", "acosh": "arccosh", "atanh": "arctanh"}
    for name in ("sqrt", "exp", "expm1", "log", "log10", "log1p", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh",
                 "tanh", "asinh", "acosh", "atanh", "abs", "square", "reciprocal"):
        with np.errstate(all="ignore"):
            y = getattr(np, inverse.get(name, name))(z)
        t.values(name, {"x": z[np.isfinite(y)]}, [y[np.isfinite(y)]], rtol=1e-9, atol=1e-12)


def main():
    t = Table("complex")
    for cases in (elementwise, binary, reductions, layouts, products, corners):
        cases(t)
    t.write()


if __name__ == "__main__":
    torch.set_default_dtype(torch.float64)
    main()
