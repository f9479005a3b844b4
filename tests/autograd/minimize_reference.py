"""Prints the values of minimize_test.cc: PaddlePaddle's minimize_lbfgs on Rosenbrock's function."""
import numpy as np
import paddle
from paddle.incubate.optimizer.functional import minimize_lbfgs


def rosenbrock(x):
    return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()


start = paddle.to_tensor(np.array([-1.2, 1.0, 0.5, -0.3]))
for iterations in (3, 8, 40):
    found = minimize_lbfgs(rosenbrock, start, max_iters=iterations, dtype="float64")
    print(iterations, [np.array(value).tolist() for value in found])
