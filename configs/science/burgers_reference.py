"""Writes burgers.csv: Burgers' equation with u(x, 0) = -sin(pi x) and viscosity 0.02 on a grid.

Cole's and Hopf's transform makes it the heat equation, whose solution is an integral over the heat
kernel; Gauss-Hermite quadrature with 200 points computes it. Needs NumPy.
"""
import os

import numpy as np

VISCOSITY = 0.02
nodes, weights = np.polynomial.hermite.hermgauss(200)


def solution(x, t):
    if t == 0:
        return -np.sin(np.pi * x)
    y = x - np.sqrt(4 * VISCOSITY * t) * nodes
    kernel = weights * np.exp(-np.cos(np.pi * y) / (2 * np.pi * VISCOSITY))
    return -np.sum(kernel * np.sin(np.pi * y)) / np.sum(kernel)


here = os.path.dirname(os.path.abspath(__file__))
with open(os.path.join(here, "burgers.csv"), "w") as file:
    file.write("x,t,u\n")
    for t in np.linspace(0, 1, 11):
        for x in np.linspace(-1, 1, 41):
            file.write(f"{x:.2f},{t:.1f},{solution(x, t):.8f}\n")
