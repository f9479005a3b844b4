"""Prints the sums that derivatives.sh expects, by torch.func in float64."""

import torch
from torch.func import grad, hessian, jacrev, jvp, vjp, vmap

x = torch.tensor([[0.5, -1.0, 0.25], [1.5, 0.75, -0.5], [-0.25, 2.0, 1.0]], dtype=torch.float64)
v = torch.tensor([[-1.5, -0.5, 0.5]] * 3, dtype=torch.float64)
w = torch.tensor([[-1.5, -0.5]] * 3, dtype=torch.float64)


def f(x):
    return torch.stack([torch.sin(x[0] * x[1]) + x[2] ** 3, x[1] ** 2 * torch.exp(-x[0] * x[2])])


def weighted(t, shape):
    """The mean of the elements of a batch of `shape`, counted with 1, 2, ... in each sample."""
    return (t * (torch.arange(torch.Size(shape).numel()) + 1).reshape(shape)).mean().item()


many, total = vmap(f), x.sum(0)
print("jacobian", weighted(vmap(jacrev(f))(x), [2, 3]))
print("hessian", weighted(vmap(hessian(lambda x: f(x).sum()))(x), [3, 3]))
print("single", weighted(jacrev(f)(total), [2, 3]))
print("curved", weighted(hessian(lambda x: f(x).sum())(total), [3, 3]))
print("forward", weighted(jvp(many, (x,), (v,))[1], [2]))
print("back", weighted(vjp(many, x)[1](w)[0], [3]))
print("second", weighted(grad(lambda x: (vmap(jacrev(f))(x) ** 2).sum())(x), [3]))
