"""Cases of the matrix decompositions, against PyTorch and SciPy. Eigenvectors are normalized as ours are."""

import numpy as np
import torch

from torch_table import Table


def normalized(vectors):
    """Columns of length 1 whose largest component is real and positive."""
    largest = vectors.abs().argmax(-2, keepdim=True)
    top = torch.gather(vectors, -2, largest)
    turned = vectors * (top.conj() / top.abs()).detach() if vectors.is_complex() else vectors * torch.sign(top).detach()
    return turned


def hermitian(x):
    return x + np.conj(np.swapaxes(x, -1, -2))


def main():
    t = Table("decompositions")
    for x in (t.normal(2, 4, 3), t.normal(3, 3), t.normal(2, 3, 5), t.complex(4, 3), t.complex(2, 4), t.normal(1, 1), t.normal(4, 3, dtype="float32")):
        wide = x.shape[-2] < x.shape[-1]
        t.add("qr", {"x": x}, torch.linalg.qr, grad=not wide)
        t.add("qr", {"x": x, "mode": "r"}, lambda x, m: torch.linalg.qr(x, "reduced")[1], grad=not wide)
    t.add("qr", {"x": t.normal(4, 2), "mode": "complete"}, lambda x, m: torch.linalg.qr(x, m), grad=False)
    t.add("qr", {"x": t.normal(0, 2, 2)}, torch.linalg.qr, grad=False)
    t.reject("qr", {"x": t.normal(3)})
    t.reject("qr", {"x": t.normal(3, 3), "mode": "full"})
    for x in (t.normal(2, 3, 3), t.normal(4, 3), t.normal(3, 5), t.complex(3, 3), t.complex(2, 4, 2)):
        t.add("lu", {"x": x}, torch.linalg.lu_factor)
        lu, pivots = torch.linalg.lu_factor(torch.tensor(x))
        t.add("lu_unpack", {"x": lu.numpy(), "y": pivots.numpy()}, lambda a, b: torch.lu_unpack(a, b), frozen=("y",))
    t.add("lu", {"x": t.normal(2, 3, 3), "get_infos": True}, lambda x, g: torch.linalg.lu_factor_ex(x))
    t.reject("lu", {"x": t.normal(3)})
    for trans, function in (("N", lambda a: a), ("T", lambda a: a.mT), ("C", lambda a: a.mH)):
        for a, b in ((t.normal(3, 3), t.normal(3, 2)), (t.complex(2, 3, 3), t.complex(2, 3, 1))):
            lu, pivots = torch.linalg.lu_factor(torch.tensor(a))
            solution = torch.linalg.solve(function(torch.tensor(a)), torch.tensor(b))
            t.values("lu_solve", {"b": b, "lu": lu.numpy(), "pivots": pivots.numpy(), "trans": trans}, [solution.numpy()])
    for x in (hermitian(t.normal(2, 3, 3)), hermitian(t.complex(3, 3)), hermitian(t.normal(1, 1)), hermitian(t.normal(4, 4, dtype="float32"))):
        for side in "LU":
            t.add("eigvalsh", {"x": x, "UPLO": side}, torch.linalg.eigvalsh)
            t.add("eigh", {"x": x, "UPLO": side}, lambda x, s: (lambda w, v: (w, normalized(v)))(*torch.linalg.eigh(hermitian_part(x), s)), grad=x.dtype.kind == "f")
    t.reject("eigh", {"x": t.normal(2, 3)})
    t.reject("eigh", {"x": t.normal(2, 2), "UPLO": "M"})
    for x in (t.normal(1, 1), t.complex(1, 1)):
        t.add("eig", {"x": x}, lambda x: (lambda w, v: (w, normalized(v)))(*torch.linalg.eig(x)), grad=False)
        t.add("eigvals", {"x": x}, torch.linalg.eigvals)
    diagonal = np.diag([3.0, -1.0, 2.0]) + np.triu(t.normal(3, 3), 1)
    t.values("eigvals", {"x": diagonal}, [np.array([3, -1, 2], "complex128")])
    for x in (t.normal(2, 4, 3), t.normal(3, 5), t.complex(3, 3), t.complex(4, 2)):
        t.add("svdvals", {"x": x}, torch.linalg.svdvals)
        t.add("pinv", {"x": x}, torch.linalg.pinv)
        t.add("cond", {"x": x}, torch.linalg.cond)
    low = t.normal(4, 2) @ t.normal(2, 3)
    t.values("pinv", {"x": low, "rcond": 1e-10}, [np.linalg.pinv(low)])
    t.add("pinv", {"x": hermitian(t.normal(3, 3)), "hermitian": True}, lambda x, h: torch.linalg.pinv(hermitian_part(x)))
    for p in ("fro", "nuc", 1, -1, "inf", "-inf"):
        t.add("cond", {"x": t.normal(2, 3, 3), "p": p}, lambda x, p: condition(x, p if p in ("fro", "nuc") else float(p)))
    t.reject("cond", {"x": t.normal(2, 3), "p": "fro"})
    for x, y in ((t.normal(4, 3), t.normal(4, 2)), (t.normal(3, 3), t.normal(3, 1)), (t.complex(2, 4, 2), t.complex(2, 4, 2))):
        t.add("lstsq", {"x": x, "y": y, "driver": "gels"}, lambda x, y, d: torch.linalg.lstsq(x, y).solution, rtol=1e-7)
    t.reject("lstsq", {"x": t.normal(4, 3), "y": t.normal(3, 2)})
    for x in (t.normal(2, 3, 3), t.normal(2, 2) * 20, t.complex(3, 3), t.normal(1, 1), np.zeros((2, 2)), t.normal(3, 3, dtype="float32")):
        t.add("matrix_exp", {"x": x}, torch.linalg.matrix_exp, rtol=1e-6 if x.dtype == "float32" or np.abs(x).max() > 10 else None)
    t.reject("matrix_exp", {"x": t.normal(2, 3)})
    t.values("matrix_rank", {"x": low}, [np.array(2)])
    t.values("matrix_rank", {"x": np.stack([np.eye(3), np.ones((3, 3))])}, [np.array([3, 1])])
    t.values("matrix_rank", {"x": np.diag([4.0, 1, 0.1]), "tol": 0.5}, [np.array(2)])
    t.values("matrix_rank", {"x": np.diag([4.0, 1, 0.1]), "tol": np.array(2.0)}, [np.array(1)])
    t.values("matrix_rank", {"x": np.diag([4.0, 1, 0.1]), "rtol": 0.1}, [np.array(2)])
    t.values("matrix_rank", {"x": np.diag([4.0, -1, 0]), "hermitian": True}, [np.array(2)])
    for x, k in ((t.normal(4, 3), 2), (t.normal(2, 3, 3), 3), (t.complex(4, 2), 2)):
        tau = t.complex(*x.shape[:-2], k) if x.dtype.kind == "c" else t.normal(*x.shape[:-2], k)
        t.add("householder_product", {"x": x, "tau": tau}, torch.linalg.householder_product)
    for left in (True, False):
        for transpose in (True, False):
            x, tau = t.normal(4, 4), t.normal(4)
            t.add("ormqr", {"x": x, "tau": tau, "y": t.normal(4, 4), "left": left, "transpose": transpose}, torch.ormqr, grad=False)
    t.reject("householder_product", {"x": t.normal(2, 3), "tau": t.normal(2)})
    x = t.normal(6, 2) @ t.normal(2, 5)
    for name in ("svd_lowrank",):
        t.lines.append({"name": f"{name}/values", "op": name, "args": t.encode(f"{name}/values", {"x": x, "q": 2}),
                        "outputs": [None, t.store(f"{name}/values.s", np.linalg.svd(x)[1][:2]), None], "rtol": 1e-8, "atol": 1e-9})
    for op, x in (("svd", t.normal(2, 4, 3)), ("svd", t.complex(3, 3))):
        t.lines.append({"name": f"svd/s{x.ndim}", "op": op, "args": t.encode(f"svd/s{x.ndim}", {"x": x}),
                        "outputs": [None, t.store(f"svd/s{x.ndim}.s", np.linalg.svd(x)[1]), None], "rtol": 1e-8, "atol": 1e-9})
    for x in (t.complex(3, 3), t.complex(2, 3, 3)):
        t.add("inv", {"x": x}, torch.linalg.inv)
        t.add("det", {"x": x}, torch.linalg.det)
        t.add("solve", {"x": x, "y": t.complex(3, 2)}, torch.linalg.solve)
        t.add("slogdet", {"x": x}, lambda x: (lambda s, a: torch.stack([s, a.to(s.dtype)]))(*torch.linalg.slogdet(x)))
    spd = t.complex(3, 3)
    spd = spd @ np.conj(spd.T) + 3 * np.eye(3)
    for upper in (False, True):
        t.add("cholesky", {"x": spd, "upper": upper}, lambda x, u: torch.linalg.cholesky(hermitian_part(x), upper=u))
        factor = np.linalg.cholesky(spd)
        factor = np.conj(factor.T) if upper else factor
        t.add("cholesky_solve", {"x": t.complex(3, 2), "y": factor, "upper": upper}, lambda b, f, u: torch.cholesky_solve(b, f, upper=u), grad=False)
        t.add("triangular_solve", {"x": t.complex(3, 3), "y": t.complex(3, 2), "upper": upper},
              lambda a, b, u: torch.linalg.solve_triangular(a, b, upper=u))
    t.add("vecdot", {"x": t.complex(2, 3), "y": t.complex(2, 3)}, torch.linalg.vecdot)
    t.write()


def condition(x, p):
    return torch.linalg.matrix_norm(x, p) * torch.linalg.matrix_norm(torch.linalg.inv(x), p)


def hermitian_part(x):
    return (x + x.mH) / 2


if __name__ == "__main__":

    main()
