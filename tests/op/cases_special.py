"""Cases of incomplete gamma functions, strided views, diagonals, histograms of points and beam searches, against SciPy, NumPy and PyTorch."""

import numpy as np
import scipy.special
import torch

from torch_table import Table


def tree(ids, parents):
    out = np.empty_like(ids)
    time, batch, beams = ids.shape
    for b in range(batch):
        for k in range(beams):
            beam = k
            for step in reversed(range(time)):
                out[step, b, k] = ids[step, b, beam]
                beam = parents[step, b, beam]
    return out


def main():
    t = Table("special")
    for a, x in ((t.uniform(0.1, 5, 3, 4), t.uniform(0.01, 8, 3, 4)), (t.uniform(20, 200, 6), t.uniform(10, 250, 6)), (t.uniform(0.1, 5, 2, 1), t.uniform(0.1, 5, 3))):
        for name in ("gammainc", "gammaincc"):
            t.add(name, {"x": a, "y": x}, getattr(torch.special, name), frozen=("x",))
            t.values(name, {"x": a, "y": x}, [getattr(scipy.special, name)(a, x)], rtol=1e-10)
    edge = np.array([0.5, 2, 3, np.inf]), np.array([0, 0, np.inf, 1.0])
    t.values("gammainc", {"x": edge[0], "y": edge[1]}, [scipy.special.gammainc(*edge)])
    t.add("gammaincc", {"x": t.uniform(0.5, 3, 4, dtype="float32"), "y": t.uniform(0.5, 3, 4, dtype="float32")}, torch.special.gammaincc, frozen=("x",))

    for x, shape, stride, offset in ((t.normal(3, 4), [2, 3], [4, 1], 1), (t.normal(10), [4, 3], [2, 1], 0), (t.complex(6), [2, 2], [1, 1], 3), (t.normal(4), [0, 2], [1, 1], 0), (t.normal(4), [3], [0], 2)):
        t.add("as_strided", {"x": x, "shape": shape, "stride": stride, "offset": offset}, torch.as_strided)
    t.reject("as_strided", {"x": t.normal(4), "shape": [3], "stride": [2]})
    t.reject("as_strided", {"x": t.normal(4), "shape": [3, 1], "stride": [1]})
    t.reject("as_strided", {"x": t.normal(4), "shape": [-1], "stride": [1]})

    for shape, offset, wrap in (((3, 4), 0, False), ((7, 3), 0, False), ((7, 3), 0, True), ((4, 4), 1, False), ((4, 4), -2, False), ((3, 3, 3), 0, False)):
        x = t.normal(*shape)
        out = x.copy()
        if offset == 0:
            np.fill_diagonal(out, 2.5, wrap)
        else:
            out[np.eye(*shape, k=offset, dtype=bool)] = 2.5
        t.values("fill_diagonal", {"x": x, "value": 2.5, "offset": offset, "wrap": wrap}, [out])
    t.reject("fill_diagonal", {"x": t.normal(3), "value": 1.0})
    t.reject("fill_diagonal", {"x": t.normal(3, 3, 2), "value": 1.0})
    t.add("fill_diagonal_tensor", {"x": t.normal(3, 4), "y": t.normal(3), "offset": 1}, torch.diagonal_scatter)
    t.add("fill_diagonal_tensor", {"x": t.complex(2, 3, 4), "y": t.complex(2, 3), "offset": 0, "dim1": 1, "dim2": 2}, torch.diagonal_scatter)
    t.values("fill_constant_batch_size_like", {"input": t.normal(5, 2), "shape": [-1, 3], "dtype": "float32", "value": 2.0}, [np.full((5, 3), 2, "float32")])

    for a, b in (([2, 1, 3], [4, 1]), ([3], []), ([0, 1], [5])):
        t.values("broadcast_shape", {"x_shape": a, "y_shape": b}, [np.array(np.broadcast_shapes(a, b), "int64")])
    t.reject("broadcast_shape", {"x_shape": [2], "y_shape": [3]})

    x = t.normal(20, dtype="float32")
    t.values("histogram_bin_edges", {"input": x, "bins": 4}, [np.histogram_bin_edges(x, 4).astype("float32")], rtol=1e-6)
    t.values("histogram_bin_edges", {"input": x, "bins": 4, "min": -1.0, "max": 2.0}, [np.linspace(-1, 2, 5, dtype="float32")], rtol=1e-6)
    t.values("histogram_bin_edges", {"input": np.ones(3, "float32"), "bins": 2}, [np.array([0.5, 1, 1.5], "float32")])
    t.reject("histogram_bin_edges", {"input": x, "bins": 0})
    points, weights = t.normal(30, 2), t.uniform(0, 1, 30)
    for bins, ranges, density, weighted in ((3, None, False, False), ([2, 4], None, True, False), ([2, 4], [-1.0, 1.0, -2.0, 2.0], False, True)):
        pairs = None if ranges is None else [tuple(ranges[:2]), tuple(ranges[2:])]
        hist, edges = np.histogramdd(points, bins, pairs, density=density, weights=weights if weighted else None)
        args = {"x": points, "bins": bins, "ranges": ranges, "density": density, **({"weights": weights} if weighted else {})}
        t.values("histogramdd", args, [hist, *edges], rtol=1e-9)
    given = [np.array([-2.0, 0, 0.5, 3]), np.array([-3.0, 0, 3])]
    hist, edges = np.histogramdd(points, given)
    t.values("histogramdd", {"x": points, "bins": given}, [hist, *edges])
    t.reject("histogramdd", {"x": points, "bins": [2]})
    t.reject("histogramdd", {"x": t.normal(4), "bins": 2})

    for dtype in ("int32", "int64"):
        ids, parents = t.integers(0, 9, 4, 2, 3, dtype=dtype), t.integers(0, 3, 4, 2, 3, dtype=dtype)
        t.values("gather_tree", {"ids": ids, "parents": parents}, [tree(ids, parents)])
    t.reject("gather_tree", {"ids": ids, "parents": parents + 5})
    t.reject("gather_tree", {"ids": ids[0], "parents": parents[0]})

    # Draws that have one outcome.
    t.values("standard_gamma", {"x": np.full((0, 2), 1.5, "float32")}, [np.zeros((0, 2), "float32")])
    t.reject("standard_gamma", {"x": np.array([-1.0])})
    t.values("binomial", {"count": np.array([0, 5, 100]), "prob": np.array([0.5, 0, 1.0])}, [np.array([0, 0, 100])])
    t.reject("binomial", {"count": np.array([4]), "prob": np.array([1.5])})
    t.values("top_p_sampling", {"x": np.array([[0.1, 0.7, 0.2], [0.2, 0.2, 0.6]]), "ps": np.array([0.5, 0.3])}, [np.array([[0.7], [0.6]]), np.array([[1], [2]])])
    t.reject("exponential_", {"x": t.normal(2), "lam": 0.0})
    t.reject("geometric_", {"x": t.normal(2), "probs": 1.5})
    t.write()


if __name__ == "__main__":
    main()
