"""Cases of the operations that work element by element."""

import numpy as np
import paddle
import scipy.special

UNARY = {  # name: range of inputs, away from kinks and inside the domain
    "exp": (-2, 2), "expm1": (-2, 2), "log": (0.2, 4), "log2": (0.2, 4), "log10": (0.2, 4), "log1p": (-0.7, 3),
    "sqrt": (0.1, 4), "rsqrt": (0.2, 4), "square": (-3, 3), "reciprocal": (0.3, 3), "abs": (-3, 3), "neg": (-3, 3),
    "sign": (-3, 3), "floor": (-4, 4), "ceil": (-4, 4), "round": (-4, 4), "trunc": (-4, 4), "sin": (-4, 4),
    "cos": (-4, 4), "tan": (-1.2, 1.2), "asin": (-0.9, 0.9), "acos": (-0.9, 0.9), "atan": (-3, 3), "sinh": (-2, 2),
    "cosh": (-2, 2), "tanh": (-2, 2), "asinh": (-3, 3), "acosh": (1.2, 4), "atanh": (-0.8, 0.8), "erf": (-2, 2),
    "erfinv": (-0.9, 0.9), "lgamma": (0.3, 5), "digamma": (0.3, 5), "sigmoid": (-4, 4), "relu": (-3, 3),
    "gelu": (-3, 3), "silu": (-4, 4), "softplus": (-4, 4), "leaky_relu": (-3, 3), "elu": (-3, 3), "celu": (-3, 3),
    "selu": (-3, 3), "hardtanh": (-3, 3), "relu6": (-3, 9), "hardsigmoid": (-5, 5), "hardswish": (-5, 5),
    "hardshrink": (-2, 2), "softshrink": (-2, 2), "tanhshrink": (-2, 2), "softsign": (-3, 3), "log_sigmoid": (-4, 4),
    "mish": (-4, 4), "thresholded_relu": (-3, 3), "stanh": (-3, 3), "swish": (-4, 4), "frac": (-4, 4), "i0": (-3, 3),
    "i0e": (-3, 3), "i1": (-3, 3), "i1e": (-3, 3), "rad2deg": (-4, 4), "deg2rad": (-90, 90), "logit": (0.1, 0.9),
    "sinc": (-2, 2), "nan_to_num": (-3, 3), "sgn": (-3, 3), "gammaln": (0.3, 5), "positive": (-3, 3),
    "negative": (-3, 3), "assign": (-3, 3), "clone": (-3, 3), "isnan": (-3, 3), "isinf": (-3, 3), "isfinite": (-3, 3),
    "isposinf": (-3, 3), "isneginf": (-3, 3), "signbit": (-3, 3), "logical_not": (-3, 3), "increment": (-3, 3),
}
INTEGERS_TOO = ("abs", "neg", "sign", "square", "exp", "log", "sqrt", "sin", "cos", "tanh", "floor", "ceil", "round",
                "isnan", "isinf", "isfinite", "logical_not", "assign", "clone", "relu", "sigmoid", "signbit",
                "expm1", "log2", "log10", "log1p", "rsqrt", "reciprocal", "asin", "acos", "atan", "sinh", "cosh",
                "asinh", "acosh", "atanh", "tan", "erf", "rad2deg", "deg2rad", "isposinf", "isneginf", "frac",
                "negative", "positive", "digamma", "lgamma", "i0")
SPECIAL = ("exp", "log", "sqrt", "abs", "sign", "floor", "round", "tanh", "sigmoid", "isnan", "isinf",
           "isfinite", "isposinf", "isneginf", "nan_to_num", "square", "neg", "sin", "atan", "signbit", "ceil", "erf")


def cases_unary(t):
    for op, (low, high) in UNARY.items():
        name = "input" if op == "trunc" else "x"
        for shape in ((7, 1, 5), (0, 3)):
            t.add(op, {name: t.uniform(low, high, *shape)})
        for shape in ((3, 5), ()):
            t.add(op, {name: t.uniform(low, high, *shape, dtype="float64")})
        for dtype in ("float16", "bfloat16"):
            t.add(op, {name: t.uniform(low, high, 2, 9, dtype=dtype)}, grad=dtype == "bfloat16" and op != "sinc")
    for op in INTEGERS_TOO:
        for dtype in ("int32", "int64", "uint8"):
            x = np.array([[1, 2, 3], [0, 5, 1]], dtype)
            if dtype == "uint8" and op in ("rad2deg", "deg2rad"):
                continue
            if dtype != "uint8" and op not in ("log", "sqrt", "lgamma", "digamma", "acosh"):
                x[0, 0] = -1
            t.add(op, {"x": x}, grad=False)
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-30, -1e30, 0.5, 1.5, 2.5, -0.5], np.float32)
    for op in SPECIAL:
        if op != "sqrt":  # of inf in float32 PaddlePaddle makes NaN
            t.add(op, {"x": special}, grad=False)
        t.add(op, {"x": special.astype(np.float64)}, grad=False)
    for op in ("logical_not", "isnan", "bitwise_not", "assign"):
        t.add(op, {"x": t.bools(2, 3)}, grad=False)
    for dtype in ("int8", "uint8", "int16", "int32", "int64"):
        t.add("bitwise_not", {"x": t.integers(0, 100, 5, dtype=dtype)})
    # The value and gradient at a kink.
    kink = np.array([-3.0, -1.0, -0.5, 0.0, 0.5, 1.0, 3.0, 6.0], np.float64)
    for op in ("relu", "leaky_relu", "relu6", "hardtanh", "hardswish", "hardsigmoid", "softshrink",
               "thresholded_relu", "elu", "celu", "selu", "abs", "softsign"):
        t.add(op, {"x": kink})
    big = np.array([-800.0, -90.0, -20.0, 20.0, 90.0, 800.0], np.float64)
    for op in ("sigmoid", "softplus", "log_sigmoid", "mish", "tanh", "gelu", "elu", "expm1", "erf"):
        t.add(op, {"x": big})


def cases_parameters(t):
    """Functions of one tensor with attributes."""
    x = t.uniform(-3, 3, 3, 4, dtype="float64")
    t.add("gelu", {"x": x, "approximate": True})
    t.add("softplus", {"x": x, "beta": 2.0, "threshold": 3.0})
    t.add("leaky_relu", {"x": x, "negative_slope": 0.3})
    t.add("elu", {"x": x, "alpha": 0.4})
    t.add("celu", {"x": x, "alpha": 2.5})
    t.add("selu", {"x": x, "scale": 1.5, "alpha": 2.0})
    t.add("hardtanh", {"x": x, "min": -2.0, "max": 0.5})
    t.add("hardsigmoid", {"x": x, "slope": 0.25, "offset": 0.4})
    t.add("hardshrink", {"x": x, "threshold": 1.2})
    t.add("softshrink", {"x": x, "threshold": 1.2})
    t.add("thresholded_relu", {"x": x, "threshold": 0.3})
    t.add("thresholded_relu", {"x": x, "threshold": 0.3, "value": -2.0})
    t.add("stanh", {"x": x, "scale_a": 0.5, "scale_b": 2.0})
    t.add("scale", {"x": x, "scale": 2.5, "bias": 1.5})
    t.add("scale", {"x": x, "scale": 2.5, "bias": 1.5, "bias_after_scale": False})
    t.add("scale", {"x": t.integers(-5, 5, 4), "scale": 2.0, "bias": 1.0})
    t.add("clip", {"x": x, "min": -1.0, "max": 0.75})
    t.add("clip", {"x": x, "min": 0.5})
    t.add("clip", {"x": x, "max": 0.5})
    t.add("clip", {"x": t.integers(-5, 5, 6), "min": -2, "max": 2}, grad=False)
    t.add("clip", {"x": t.normal(2, 5, dtype="bfloat16"), "min": -0.5, "max": 0.5})
    t.add("logit", {"x": t.uniform(0, 1, 8, dtype="float64"), "eps": 0.1})
    for decimals in (1, -1, 3):
        t.add("round", {"x": t.uniform(-40, 40, 6, dtype="float64"), "decimals": decimals}, grad=False)
    t.add("logit", {"x": np.array([-0.1, 0.0, 0.3, 1.0, 1.2])}, grad=False)
    special = np.array([np.nan, np.inf, -np.inf, 1.0], np.float32)
    t.add("nan_to_num", {"x": special, "nan": 3.0, "posinf": 7.0, "neginf": -9.0})
    t.add("polygamma", {"x": t.uniform(0.5, 4, 5, dtype="float64"), "n": 0})
    t.add("polygamma", {"x": t.uniform(0.5, 4, 5, dtype="float64"), "n": 1}, rtol=1e-7)
    t.add("polygamma", {"x": t.uniform(0.5, 4, 5, dtype="float64"), "n": 3}, rtol=1e-7)
    t.add("increment", {"x": np.array([1.5], np.float32), "value": 2.0}, grad=False)
    for dtype in ("float16", "float32", "float64", "int32", "int64", "bool", "uint8", "int8"):
        t.add("cast", {"x": np.array([0.0, 1.0, -2.7, 3.5], np.float32), "dtype": dtype} if dtype != "uint8" else
              {"x": np.array([0.0, 1.0, 2.7, 3.5], np.float32), "dtype": dtype}, grad=dtype.startswith("float"))
        t.add("cast", {"x": np.array([0, 1, 7, 3], np.int64), "dtype": dtype})
        t.add("cast", {"x": np.array([True, False, True]), "dtype": dtype})
    t.add("cast", {"x": t.normal(4, dtype="bfloat16"), "dtype": "float32"}, grad=False)
    t.add("prelu", {"x": t.normal(2, 3, 2, 2, dtype="float64"), "weight": t.normal(3, dtype="float64")})
    t.add("prelu", {"x": t.normal(2, 3, dtype="float64"), "weight": t.normal(1, dtype="float64")})
    t.add("prelu", {"x": t.normal(2, 2, 2, 3, dtype="float64"), "weight": t.normal(3, dtype="float64"),
                    "data_format": "NHWC"})
    t.add("glu", {"x": t.normal(2, 6, dtype="float64")})
    t.add("glu", {"x": t.normal(4, 3), "axis": 0})
    t.add("swiglu", {"x": t.normal(2, 6, dtype="float64")})
    t.add("swiglu", {"x": t.normal(2, 6), "y": t.normal(2, 6)})
    t.add("maxout", {"x": t.normal(2, 6, 3, 2, dtype="float64"), "groups": 2})
    t.add("maxout", {"x": t.normal(2, 3, 2, 6), "groups": 3, "axis": -1})
    t.reject("glu", {"x": t.normal(2, 5)})
    t.reject("maxout", {"x": t.normal(2, 5, 3, 2), "groups": 2})
    t.reject("prelu", {"x": t.normal(2, 3, 2), "weight": t.normal(4)})
    t.reject("cast", {"x": t.normal(2), "dtype": "float33"})
    t.reject("clip", {"x": t.normal(2), "min": "low"})
    t.reject("exp", {"y": t.normal(2)})
    t.reject("exp", {})
    t.reject("relu", {"x": t.normal(2), "axis": 1})


BINARY = {"add": (-3, 3), "subtract": (-3, 3), "multiply": (-3, 3), "divide": (0.5, 3), "floor_divide": (0.5, 5),
          "remainder": (0.5, 5), "mod": (0.5, 5), "floor_mod": (0.5, 5), "maximum": (-3, 3), "minimum": (-3, 3),
          "fmax": (-3, 3), "fmin": (-3, 3), "pow": (0.3, 2.5), "atan2": (-3, 3), "copysign": (-3, 3), "hypot": (-3, 3),
          "logaddexp": (-3, 3), "heaviside": (-3, 3), "nextafter": (-3, 3), "equal": (-3, 3), "not_equal": (-3, 3),
          "less_than": (-3, 3), "less_equal": (-3, 3), "greater_than": (-3, 3), "greater_equal": (-3, 3),
          "less": (-3, 3), "logical_and": (-3, 3), "logical_or": (-3, 3), "logical_xor": (-3, 3), "isclose": (-3, 3),
          "allclose": (-3, 3), "equal_all": (-3, 3), "ldexp": (-3, 3)}
BROADCASTS = (((2, 3), (2, 3)), ((2, 3), (3,)), ((2, 1, 3), (4, 1)), ((), (2, 3)), ((2, 3), ()), ((), ()),
              ((0, 3), (3,)), ((2, 0), (1, 1)))


def cases_binary(t):
    for op, (low, high) in BINARY.items():
        for a, b in BROADCASTS:
            if op in ("equal_all", "allclose") and a != b:
                continue
            t.add(op, {"x": t.uniform(low, high, *a), "y": t.uniform(low, high, *b)})
        t.add(op, {"x": t.uniform(low, high, 3, 4, dtype="float64"), "y": t.uniform(low, high, 4, dtype="float64")})
        for dtype in ("float16", "bfloat16"):
            if op not in ("nextafter",):
                t.add(op, {"x": t.uniform(low, high, 3, 4, dtype=dtype), "y": t.uniform(low, high, 3, 4, dtype=dtype)},
                      grad=op not in ("remainder", "mod", "floor_mod"))
        for dtype in ("int32", "int64", "uint8", "bool"):
            if op == "copysign" or (op == "divide" and dtype == "bool"):
                continue  # PaddlePaddle gives integers
            x, y = t.integers(0, 7, 2, 5), t.integers(1, 7, 5)
            if dtype.startswith("int") and op != "pow":
                x, y = x - 4, np.where(y > 3, y - 7, y)
            t.add(op, {"x": x.astype(dtype), "y": y.astype(dtype)}, grad=False)
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -2.0], np.float32)
    for op in ("add", "multiply", "divide", "maximum", "minimum", "fmax", "fmin", "pow", "equal", "less_than", "atan2",
               "isclose", "copysign", "remainder", "floor_divide", "greater_equal"):
        t.add(op, {"x": special[:, None] * np.ones((1, 7), np.float32), "y": special}, grad=False)
    t.add("isclose", {"x": special, "y": special, "equal_nan": True})
    t.add("isclose", {"x": np.array([1.0, 2.0]), "y": np.array([1.001, 2.1]), "rtol": 0.01, "atol": 0.0})
    t.add("allclose", {"x": np.array([1.0, 2.0]), "y": np.array([1.001, 2.1]), "rtol": 0.1})
    # Ties.
    tied = np.array([1.0, 2.0, 2.0, -1.0])
    for op in ("maximum", "minimum", "fmax", "fmin"):
        t.add(op, {"x": tied, "y": tied[::-1].copy()})
    # A number in place of a tensor.
    for y in (2, -1.5, 3.0):
        t.add("pow", {"x": t.uniform(0.5, 2, 2, 3, dtype="float64"), "y": y})
    t.add("pow", {"x": t.integers(1, 5, 4), "y": 2})
    for dtype in ("int32", "int64", "uint8", "bool", "int16", "int8"):
        for op in ("bitwise_and", "bitwise_or", "bitwise_xor"):
            t.add(op, {"x": t.integers(0, 100, 2, 4).astype(dtype), "y": t.integers(0, 100, 4).astype(dtype)})
    for dtype in ("int32", "int64"):
        for op in ("gcd", "lcm"):
            t.add(op, {"x": t.integers(-30, 30, 2, 5, dtype=dtype), "y": t.integers(-30, 30, 5, dtype=dtype)})
        for op in ("bitwise_left_shift", "bitwise_right_shift"):
            t.add(op, {"x": t.integers(-30, 30, 2, 5, dtype=dtype), "y": t.integers(0, 5, 5, dtype=dtype)})
    t.add("bitwise_right_shift", {"x": np.array([-8, 9], np.int32), "y": np.array([1, 2], np.int32),
                                  "is_arithmetic": False})
    for op in ("add", "multiply", "less_than", "maximum"):
        t.reject(op, {"x": t.normal(2, 3), "y": t.normal(4)})
        t.reject(op, {"x": t.normal(2, 3)})
    t.reject("bitwise_and", {"x": t.normal(2, 3), "y": t.normal(2, 3)})
    # An integer tensor with a float tensor gives the float type.
    for op in ("add", "multiply", "divide", "maximum", "subtract"):
        x, y = t.integers(1, 5, 3, dtype="int64"), t.uniform(1, 3, 3)
        t.add(op, {"x": x, "y": y}, function=lambda x, y, op=op: getattr(paddle, op)(x.astype("float32"), y))
    for weight in (0.3, None):
        args = {"x": t.normal(2, 3, dtype="float64"), "y": t.normal(3, dtype="float64")}
        args["weight"] = t.normal(2, 3, dtype="float64") if weight is None else weight
        t.add("lerp", args)
    for shape in ((2, 3), (3,), (1, 1)):
        t.add("where", {"condition": t.bools(2, 3), "x": t.normal(2, 3, dtype="float64"),
                        "y": t.normal(*shape, dtype="float64")})
    t.add("where", {"condition": np.array(True), "x": t.normal(2, 3), "y": t.normal(2, 3)})
    t.add("where", {"condition": t.bools(2, 3), "x": t.integers(0, 9, 2, 3), "y": t.integers(0, 9, 2, 3)})
    t.add("multiplex", {"inputs": [t.normal(3, 2), t.normal(3, 2)], "index": np.array([[1], [0], [1]], np.int32)})
    t.add("add_n", {"inputs": [t.normal(2, 3), t.normal(2, 3), t.normal(2, 3)]})
    t.reject("where", {"condition": t.bools(2, 3), "x": t.normal(2, 3), "y": t.normal(4)})
