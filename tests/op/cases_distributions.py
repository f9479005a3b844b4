"""Cases of distributions and transforms, against torch.distributions and SciPy: values and gradients."""

import numpy as np
import scipy.stats
import torch
import torch.distributions as td

from torch_table import Table

CLASSES = {
    "bernoulli": td.Bernoulli, "beta": td.Beta, "binomial": td.Binomial, "categorical": td.Categorical, "cauchy": td.Cauchy,
    "chi2": td.Chi2, "continuous_bernoulli": td.ContinuousBernoulli, "dirichlet": td.Dirichlet, "exponential": td.Exponential,
    "gamma": td.Gamma, "geometric": td.Geometric, "gumbel": td.Gumbel, "laplace": td.Laplace, "lognormal": td.LogNormal,
    "multinomial": td.Multinomial, "multivariate_normal": td.MultivariateNormal, "normal": td.Normal, "poisson": td.Poisson,
    "student_t": td.StudentT, "uniform": td.Uniform}


def make(name, parameters, count=None):
    if name == "binomial":
        return td.Binomial(count, *parameters, validate_args=False)
    if name == "multinomial":
        return td.Multinomial(count, *parameters, validate_args=False)
    return CLASSES[name](*parameters, validate_args=False)


KEPT = {}
RANDOM = np.random.default_rng(5)
SHARED = {
    **{key: (RANDOM.standard_normal(3), RANDOM.uniform(0.5, 2, (2, 1)), RANDOM.uniform(0.5, 4, 3), RANDOM.uniform(0.1, 0.9, (2, 3))) for key in ("first", "other")},
    "value": RANDOM.standard_normal((2, 2, 3)), "fraction": RANDOM.uniform(0.1, 0.9, (2, 3))}


def kept(function):
    """The same arrays for the same arguments, which the table then holds once."""
    return lambda t, *args: KEPT.setdefault((function.__name__, *args), function(t, *args))


@kept
def parameters_of(t, name, dtype="float64", other=False):
    shared = "other" if other else "first"
    location, scale, positive, fraction = SHARED[shared]
    location, scale, positive, fraction = (np.asarray(a, dtype) for a in (location, scale, positive, fraction))
    if name in ("normal", "cauchy", "gumbel", "laplace", "lognormal"):
        return [location, scale]
    if name in ("beta", "gamma"):
        return [positive, scale]
    if name == "student_t":
        return [positive + 2, location, scale]
    if name == "uniform":
        return [-positive, scale + 0.5]
    if name in ("chi2", "exponential", "poisson"):
        return [positive]
    if name == "dirichlet":
        return [t.uniform(0.5, 3, 2, 4, dtype=dtype)]
    if name == "multivariate_normal":
        root = t.normal(2, 3, 3, dtype=dtype)
        return [t.normal(3, dtype=dtype), root @ np.swapaxes(root, -1, -2) + np.eye(3, dtype=dtype)]
    return [fraction]


@kept
def value_of(t, name, dtype="float64"):
    if name in ("normal", "cauchy", "gumbel", "laplace", "student_t", "multivariate_normal"):
        return np.asarray(SHARED["value"], dtype)
    if name in ("beta", "continuous_bernoulli"):
        return np.asarray(SHARED["fraction"], dtype)
    if name == "uniform":
        return np.asarray(SHARED["fraction"], dtype)
    if name in ("gamma", "chi2", "exponential", "lognormal"):
        return np.asarray(SHARED["fraction"] * 5, dtype)
    if name == "dirichlet":
        x = t.uniform(0.2, 1, 2, 4, dtype=dtype)
        return x / x.sum(-1, keepdims=True)
    if name == "bernoulli":
        return t.integers(0, 2, 2, 3).astype(dtype)
    if name == "categorical":
        return t.integers(0, 3, 5, 2)
    if name == "multinomial":
        return np.array([[1, 0, 2], [0, 0, 3], [1, 1, 1]], dtype)[:, None]
    return t.integers(0, 6, 2, 3).astype(dtype)


def count_of(name):
    return {"binomial": 5, "multinomial": 3}.get(name)


def with_count(name, args):
    return {**args, "total_count": count_of(name)} if count_of(name) else args


def densities(t):
    for name in CLASSES:
        discrete = name in ("bernoulli", "binomial", "categorical", "geometric", "multinomial", "poisson")
        for dtype in ("float64", "float32") if name in ("normal", "beta", "student_t", "categorical") else ("float64",):
            args = with_count(name, {"value": value_of(t, name, dtype), "distribution": name, "parameters": parameters_of(t, name, dtype)})
            t.add("distribution_log_prob", args, lambda value, kind, p, count=None: make(kind, p, count).log_prob(value),
                  frozen=("value",) if discrete else (), grad=dtype == "float64" and name != "multivariate_normal")
    t.add("distribution_log_prob", {"value": np.array(0.5), "distribution": "normal", "parameters": [np.array(0.25), np.array(2.0)]},
          lambda value, kind, p: make(kind, p).log_prob(value))
    for outside in ("uniform",):
        t.values("distribution_log_prob", {"value": np.array([-2.0, 0.5, 3.0]), "distribution": outside, "parameters": [np.zeros(3), np.ones(3)]},
                 [np.array([-np.inf, 0.0, -np.inf])])
    t.reject("distribution_log_prob", {"value": t.normal(2), "distribution": "norml", "parameters": [t.normal(2), t.normal(2)]})
    t.reject("distribution_log_prob", {"value": t.normal(2), "distribution": "normal", "parameters": [t.normal(2)]})
    t.reject("distribution_log_prob", {"value": t.normal(2), "distribution": "normal", "parameters": [t.normal(2), t.normal(3)]})
    t.reject("distribution_log_prob", {"value": t.normal(2), "distribution": "normal", "parameters": [t.normal(2), t.normal(2)], "total_count": 3})


def moments(t):
    without = {"entropy": (), "mean": ("cauchy", "categorical"), "variance": ("cauchy", "categorical")}
    for quantity in ("entropy", "mean", "variance"):
        for name in CLASSES:
            if name in without[quantity]:
                continue
            p = parameters_of(t, name)
            if quantity == "entropy" and name == "poisson":
                p = [np.array([0.01, 0.7, 3.0, 40.0, 99.0, 101.0, 400.0])]
                t.values("distribution_entropy", {"parameters": p, "distribution": name}, [scipy.stats.poisson.entropy(p[0])], rtol=1e-9)
                continue

            def compute(p, kind, count=None):
                found = getattr(make(kind, p, count), quantity)
                return found() if callable(found) else found

            if quantity == "entropy" and name == "binomial":
                p = [t.uniform(0.1, 0.9, 3)]
            if quantity == "entropy" and name == "multinomial":
                p = [t.uniform(0.1, 0.9, 3)]
                exact = 0.0
                q = p[0] / p[0].sum()
                outcomes = [(a, b, 3 - a - b) for a in range(4) for b in range(4 - a)]
                for o in outcomes:
                    m = scipy.stats.multinomial.pmf(o, 3, q)
                    exact -= m * np.log(m)
                t.values("distribution_entropy", with_count(name, {"parameters": p, "distribution": name}), [np.array(exact)])
                continue
            t.add(f"distribution_{quantity}", with_count(name, {"parameters": p, "distribution": name}), compute,
                  grad=name not in ("multivariate_normal", "binomial"))
    t.reject("distribution_mean", {"parameters": [t.normal(2), t.uniform(1, 2, 2)], "distribution": "cauchy"})


def cumulative(t):
    for name in ("cauchy", "exponential", "gumbel", "laplace", "lognormal", "normal", "uniform", "continuous_bernoulli"):
        args = {"value": value_of(t, name), "distribution": name, "parameters": parameters_of(t, name)}
        t.add("distribution_cdf", args, lambda value, kind, p: make(kind, p).cdf(value))
        args = {"value": SHARED["fraction"], "distribution": name, "parameters": parameters_of(t, name)}
        t.add("distribution_icdf", args, lambda value, kind, p: make(kind, p).icdf(value))
    a, rate, x = t.uniform(0.5, 4, 3), t.uniform(0.5, 3, 2, 1), t.uniform(0.2, 5, 2, 3)
    t.values("distribution_cdf", {"value": x, "distribution": "gamma", "parameters": [a, rate]}, [scipy.stats.gamma.cdf(x, a, scale=1 / rate)])
    t.values("distribution_cdf", {"value": x, "distribution": "chi2", "parameters": [a]}, [scipy.stats.chi2.cdf(x, a)])
    k = np.array([-1.0, 0.0, 1.0, 2.5, 7.0])
    t.values("distribution_cdf", {"value": k, "distribution": "poisson", "parameters": [np.full(5, 2.0)]}, [scipy.stats.poisson.cdf(k, 2.0)])
    t.values("distribution_cdf", {"value": k, "distribution": "geometric", "parameters": [np.full(5, 0.3)]}, [scipy.stats.geom.cdf(k + 1, 0.3)])
    t.values("distribution_cdf", {"value": k, "distribution": "bernoulli", "parameters": [np.full(5, 0.3)]}, [scipy.stats.bernoulli.cdf(k, 0.3)])
    t.reject("distribution_icdf", {"value": t.uniform(0, 1, 3), "distribution": "beta", "parameters": [a, a]})


def divergences(t):
    for name in CLASSES:
        if name in ("student_t", "multinomial", "uniform"):
            continue
        p, q = parameters_of(t, name), parameters_of(t, name, "float64", True)
        args = {"p": p, "q": q, "distribution": name}
        if name == "binomial":
            args = {"p": p, "q": q, "distribution": name, "other": name, "total_count": 5}
        t.add("distribution_kl_divergence", args, lambda p, q, kind, other=None, count=None: td.kl_divergence(make(kind, p, count), make(kind, q, count)),
              grad=name != "multivariate_normal")
    t.add("distribution_kl_divergence", {"p": [np.zeros(2), np.ones(2)], "q": [np.array([-1.0, 0.5]), np.array([2.0, 2.0])], "distribution": "uniform"},
          lambda p, q, kind: td.kl_divergence(make(kind, p), make(kind, q)), grad=False)
    for first, second in (("gamma", "exponential"), ("exponential", "gamma"), ("normal", "laplace"), ("uniform", "normal")):
        t.add("distribution_kl_divergence", {"p": parameters_of(t, first), "q": parameters_of(t, second), "distribution": first, "other": second},
              lambda p, q, kind, other: td.kl_divergence(make(kind, p), make(other, q)))
    t.reject("distribution_kl_divergence", {"p": [t.uniform(1, 2, 2)], "q": [t.normal(2), t.uniform(1, 2, 2)], "distribution": "chi2", "other": "normal"})


def transforms(t):
    kinds = {
        "exp_transform": (lambda p: td.ExpTransform(), [], t.normal(2, 3)),
        "affine_transform": (lambda p: td.AffineTransform(*p), [t.normal(3), t.uniform(0.5, 2, 2, 1)], t.normal(2, 3)),
        "power_transform": (lambda p: td.PowerTransform(p[0]), [t.uniform(1, 3, 3)], t.uniform(0.5, 2, 2, 3)),
        "sigmoid_transform": (lambda p: td.SigmoidTransform(), [], t.normal(2, 3)),
        "tanh_transform": (lambda p: td.TanhTransform(), [], t.normal(2, 3)),
        "stick_breaking_transform": (lambda p: td.StickBreakingTransform(), [], t.normal(2, 3)),
        "softmax_transform": (lambda p: td.SoftmaxTransform(), [], t.normal(2, 3)),
        "abs_transform": (lambda p: td.AbsTransform(), [], t.normal(2, 3)),
    }
    for name, (build, p, x) in kinds.items():
        extra = {"parameters": p} if p else {}
        t.add("distribution_transform_forward", {"x": x, "transform": name, **extra}, lambda x, kind, p=None: build(p)(x))
        y = build([torch.tensor(v) for v in p])(torch.tensor(x)).numpy()
        t.add("distribution_transform_inverse", {"y": y, "transform": name, **extra}, lambda y, kind, p=None: build(p).inv(y))
        if name in ("softmax_transform", "abs_transform"):
            t.reject("distribution_transform_forward_log_det_jacobian", {"x": x, "transform": name, **extra})
            continue

        def log_det(x, kind, p=None):
            transform = build(p)
            return transform.log_abs_det_jacobian(x, transform(x)) + 0 * (x if transform.domain.event_dim == 0 else x.sum(-1))

        def inverse_log_det(y, kind, p=None):
            return build(p).inv.log_abs_det_jacobian(y, build(p).inv(y)) + 0 * (y if build(p).domain.event_dim == 0 else y.sum(-1))

        t.add("distribution_transform_forward_log_det_jacobian", {"x": x, "transform": name, **extra}, log_det)
        t.add("distribution_transform_inverse_log_det_jacobian", {"y": y, "transform": name, **extra}, inverse_log_det)
    t.reject("distribution_transform_forward", {"x": t.normal(2), "transform": "exp"})
    t.reject("distribution_transform_forward", {"x": t.normal(2), "transform": "affine_transform", "parameters": [t.normal(2)]})


def gamma_slopes(t):
    a = np.array([0.05, 0.5, 1.0, 3.0, 10.0, 80.0, 900.0])
    x = np.stack([scipy.stats.gamma.ppf(q, a) for q in (0.01, 0.3, 0.5, 0.9, 0.999)])
    # The slope of P(a, x) in a by central differences in 50 digits.
    import mpmath

    mpmath.mp.dps = 50
    slope = np.vectorize(lambda a, x: float(mpmath.diff(lambda b: mpmath.gammainc(b, 0, x, regularized=True), a)))
    t.values("gammainc_slope", {"x": np.broadcast_to(a, x.shape).copy(), "y": x}, [slope(np.broadcast_to(a, x.shape), x)], rtol=1e-7, atol=1e-9)


def main():
    for family, parts in (("densities", (densities, cumulative)), ("moments", (moments, divergences)), ("transforms", (transforms, gamma_slopes))):
        t = Table(family)
        for cases in parts:
            cases(t)
        t.write()


if __name__ == "__main__":
    torch.set_default_dtype(torch.float64)
    main()
