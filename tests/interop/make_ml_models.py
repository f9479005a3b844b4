"""Writes tests/data/onnx_ml: models that scikit-learn and skl2onnx export, with what ONNX Runtime
gives for them, in the layout of the ONNX project's test suite.

Needs onnx, onnxruntime, scikit-learn and skl2onnx: python tests/interop/make_ml_models.py [FOLDER]
--every writes every combination of options, too many to keep.
"""

import os
import sys

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from skl2onnx import to_onnx
from skl2onnx.common.data_types import FloatTensorType, Int64TensorType, StringTensorType
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_iris, make_regression
from sklearn.ensemble import (AdaBoostClassifier, ExtraTreesRegressor, GradientBoostingClassifier, GradientBoostingRegressor,
                              IsolationForest, RandomForestClassifier, RandomForestRegressor)
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Binarizer, MinMaxScaler, Normalizer, OneHotEncoder, OrdinalEncoder, PolynomialFeatures, StandardScaler
from sklearn.svm import SVC, SVR, LinearSVC, NuSVC
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

every = "--every" in sys.argv
folder = next((a for a in sys.argv[1:] if not a.startswith("--")), "tests/data/onnx_ml")
random = np.random.RandomState(7)
ROWS = 12


def save(name, model, inputs):
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    outputs = session.run(None, inputs)
    place = os.path.join(folder, name, "test_data_set_0")
    os.makedirs(place, exist_ok=True)
    onnx.save(model, os.path.join(folder, name, "model.onnx"))

    def write(kind, i, label, value):
        tensor = numpy_helper.from_array(np.asarray(value, dtype=object) if np.asarray(value).dtype.kind in "OU" else np.asarray(value), label)
        with open(os.path.join(place, f"{kind}_{i}.pb"), "wb") as f:
            f.write(tensor.SerializeToString())

    for i, info in enumerate(session.get_inputs()):
        write("input", i, info.name, inputs[info.name])
    for i, info in enumerate(session.get_outputs()):
        write("output", i, info.name, outputs[i])


def export(name, estimator, x, y=None, rows=None):
    estimator.fit(x, y)
    rows = (x[:: max(1, len(x) // ROWS)][:ROWS] if rows is None else rows).astype(np.float32)
    plain = {"target_opset": {"": 17, "ai.onnx.ml": 3}}
    try:
        model = to_onnx(estimator, rows[:1], options={id(estimator): {"zipmap": False}}, **plain)
    except NameError:  # it has no such option
        model = to_onnx(estimator, rows[:1], **plain)
    save(name, model, {model.graph.input[0].name: rows})


def estimators():
    iris = load_iris()
    x, y = iris.data.astype(np.float32), iris.target
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    two = y < 2
    wide = x + random.randn(*x.shape).astype(np.float32)  # classes that overlap
    fx, fy = make_regression(60, 5, noise=3, random_state=3)
    fx = fx.astype(np.float32)
    f2 = np.stack([fy, fy ** 2 / 100], 1)
    export("logistic_regression", LogisticRegression(max_iter=500), wide, y)
    export("logistic_regression_strings", LogisticRegression(max_iter=500), wide, names)
    export("logistic_regression_binary", LogisticRegression(), wide[two], y[two])
    export("linear_regression", LinearRegression(), fx, fy)
    export("ridge_two_targets", Ridge(), fx, f2)
    for kernel in ("linear", "poly", "rbf", "sigmoid"):
        export(f"svc_{kernel}", SVC(kernel=kernel, C=0.5), wide[::3], y[::3])
        export(f"svr_{kernel}", SVR(kernel=kernel), fx[::2], fy[::2])
    export("svc_probability", SVC(probability=True, random_state=1), wide[::3], names[::3])
    export("svc_binary", SVC(), wide[two][::2], y[two][::2])
    export("svc_binary_probability", SVC(probability=True, random_state=1), wide[two][::2], names[two][::2])
    export("nu_svc", NuSVC(nu=0.3), wide[::3], y[::3])
    export("linear_svc", LinearSVC(), wide, y)
    small = {"max_depth": 4, "random_state": 1}
    export("decision_tree_classifier", DecisionTreeClassifier(**small), wide, names)
    export("decision_tree_regressor", DecisionTreeRegressor(**small), fx, f2)
    export("random_forest_classifier", RandomForestClassifier(n_estimators=8, **small), wide, y)
    export("random_forest_binary", RandomForestClassifier(n_estimators=8, **small), wide[two], names[two])
    export("random_forest_regressor", RandomForestRegressor(n_estimators=6, **small), fx, fy)
    export("extra_trees_regressor", ExtraTreesRegressor(n_estimators=6, **small), fx, f2)
    export("gradient_boosting_classifier", GradientBoostingClassifier(n_estimators=5, max_depth=2, random_state=1), wide, y)
    export("gradient_boosting_binary", GradientBoostingClassifier(n_estimators=5, max_depth=2, random_state=1), wide[two], names[two])
    export("gradient_boosting_regressor", GradientBoostingRegressor(n_estimators=6, max_depth=3, random_state=1), fx, fy)
    holes = wide.copy()
    holes[random.rand(*holes.shape) < 0.2] = np.nan
    export("ada_boost", AdaBoostClassifier(n_estimators=4, random_state=1), wide, y)
    export("isolation_forest", IsolationForest(n_estimators=4, max_samples=20, random_state=1), wide)
    export("k_neighbours_classifier", KNeighborsClassifier(4), wide[::3], y[::3])
    export("k_neighbours_regressor", KNeighborsRegressor(3), fx[::2], fy[::2])
    export("naive_bayes", GaussianNB(), wide, y)
    export("perceptron", MLPClassifier((6,), max_iter=50, random_state=1), wide, names)
    export("pipeline_scaler", make_pipeline(StandardScaler(), MinMaxScaler(), Normalizer(), LogisticRegression()), wide, y)
    export("pipeline_imputer", make_pipeline(SimpleImputer(), PolynomialFeatures(2), LogisticRegression(max_iter=2000)), holes, y, holes[:ROWS])
    export("binarizer", Binarizer(threshold=2.5), wide)
    columns()


def columns():
    """String, integer and float columns of a table."""
    colour = random.choice(["red", "green", "blue", "grün"], 80).astype(object)
    size = random.choice([1, 2, 5, 9], 80).astype(np.int64)
    weight = random.randn(80).astype(np.float32)
    weight[::7] = np.nan
    label = np.where((colour == "red") | (size > 4), "yes", "no")
    import pandas

    table = pandas.DataFrame({"colour": colour, "size": size, "weight": weight})
    model = make_pipeline(
        ColumnTransformer([("words", OneHotEncoder(handle_unknown="ignore"), ["colour"]), ("numbers", OneHotEncoder(handle_unknown="ignore"), ["size"]),
                           ("floats", make_pipeline(SimpleImputer(strategy="median"), StandardScaler()), ["weight"])]), LogisticRegression())
    model.fit(table, label)
    kinds = [("colour", StringTensorType([None, 1])), ("size", Int64TensorType([None, 1])), ("weight", FloatTensorType([None, 1]))]
    inputs = {"colour": np.array([["red"], ["blue"], ["grün"], ["pink"]], dtype=object), "size": np.array([[1], [9], [3], [5]], dtype=np.int64),
              "weight": np.array([[0.5], [np.nan], [-1], [2]], dtype=np.float32)}
    onx = to_onnx(model, initial_types=kinds, target_opset={"": 17, "ai.onnx.ml": 3}, options={id(model): {"zipmap": False}})
    save("table", onx, inputs)
    ordinal = OrdinalEncoder().fit(table[["colour"]])
    save("ordinal_encoder", to_onnx(ordinal, initial_types=kinds[:1], target_opset={"": 17, "ai.onnx.ml": 3}), {"colour": inputs["colour"][:3]})


def node(name, kind, inputs, outputs, domain="ai.onnx.ml", **attributes):
    """One operator with a combination of attributes that no exporter writes."""
    types = {np.dtype(np.float32): TensorProto.FLOAT, np.dtype(np.float64): TensorProto.DOUBLE, np.dtype(np.int64): TensorProto.INT64, np.dtype(np.int32): TensorProto.INT32, np.dtype(object): TensorProto.STRING, np.dtype(bool): TensorProto.BOOL}
    graph = helper.make_graph(
        [helper.make_node(kind, [f"x{i}" for i in range(len(inputs))], [f"y{i}" for i in range(len(outputs))], domain=domain, **attributes)], "g",
        [helper.make_tensor_value_info(f"x{i}", types[x.dtype], [None] * x.ndim) for i, x in enumerate(inputs)],
        [helper.make_tensor_value_info(f"y{i}", t, None) for i, t in enumerate(outputs)])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19 if kind == "Equal" else 17), helper.make_opsetid("ai.onnx.ml", 3), helper.make_opsetid("com.microsoft", 1)], ir_version=9 if kind == "Equal" else 8)
    save(name, model, {f"x{i}": x for i, x in enumerate(inputs)})


TREE = dict(nodes_treeids=[0, 0, 0, 1, 1, 1], nodes_nodeids=[0, 1, 2, 0, 1, 2], nodes_featureids=[0, 0, 0, 1, 0, 0], nodes_values=[0.1, 0, 0, -0.2, 0, 0],
            nodes_modes=["BRANCH_LEQ", "LEAF", "LEAF", "BRANCH_GT", "LEAF", "LEAF"], nodes_truenodeids=[1, 0, 0, 1, 0, 0], nodes_falsenodeids=[2, 0, 0, 2, 0, 0])


def nodes():
    FLOAT, INT64, STRING = TensorProto.FLOAT, TensorProto.INT64, TensorProto.STRING
    x = random.randn(6, 3).astype(np.float32)
    transforms = ("NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO", "PROBIT") if every else ("LOGISTIC", "SOFTMAX_ZERO")
    for t in transforms:
        small = x / 9 + 0.5 if t == "PROBIT" else x
        low = t.lower()
        three = dict(coefficients=[0.1, 0.2, 0.1, -0.3, 0.3, 0.2, 0.1, 0.1, 0.2], intercepts=[0.1, 0.2, 0.1], post_transform=t)
        node(f"linear_classifier_{low}", "LinearClassifier", [small], [INT64, FLOAT], classlabels_ints=[5, 6, 7], **three)
        node(f"linear_regressor_{low}", "LinearRegressor", [small], [FLOAT], targets=3, **three)
        one = dict(coefficients=[0.3, -0.2, 0.5], intercepts=[0.2], post_transform=t)
        node(f"linear_classifier_one_{low}", "LinearClassifier", [small], [STRING, FLOAT], classlabels_strings=["n", "p"], **(one | ({"post_transform": "NONE"} if t == "PROBIT" else {})))
        node(f"linear_regressor_one_{low}", "LinearRegressor", [small], [FLOAT], **one)
        weights = [0.3, 0.4, 0.2, 0.6]
        leaves = lambda what, ids: {f"{what}_treeids": [0, 0, 1, 1], f"{what}_nodeids": [1, 2, 1, 2], f"{what}_ids": ids}
        node(f"trees_three_{low}", "TreeEnsembleClassifier", [x], [INT64, FLOAT], classlabels_int64s=[3, 4, 9], class_weights=weights, post_transform=t, **leaves("class", [0, 1, 2, 1]), **TREE)
        if t != "PROBIT":
            for base in ([], [0.25]):
                for sign, positive in ((1, "positive"), (-1, "mixed")):
                    w = [0.3, 0.4 * sign, 0.2, 0.6 * sign]
                    more = {"base_values": base} if base else {}
                    node(f"trees_two_{positive}_{len(base)}_{low}", "TreeEnsembleClassifier", [x], [STRING, FLOAT], classlabels_strings=["n", "p"], class_weights=w, post_transform=t, **leaves("class", [0] * 4), **TREE, **more)
                    # With a base value and scores of both classes ONNX Runtime leaves some scores unwritten.
                    if not base: node(f"trees_both_{positive}_{low}", "TreeEnsembleClassifier", [x], [INT64, FLOAT], classlabels_int64s=[0, 1], class_weights=w, post_transform=t, **leaves("class", [0, 1, 0, 1]), **TREE)
        # Each leaf has both targets: ONNX Runtime adds base values only to those that a leaf names.
        both = dict(target_treeids=[0] * 4 + [1] * 4, target_nodeids=[1, 1, 2, 2] * 2, target_ids=[0, 1] * 4, target_weights=[0.02 * i for i in range(1, 9)])
        node(f"trees_targets_{low}", "TreeEnsembleRegressor", [x], [FLOAT], n_targets=2, base_values=[0.05, 0.1], post_transform=t, **both, **TREE)
        svc = dict(coefficients=[0.5, -0.7, 0.9, -0.7], support_vectors=list(map(float, x[:4].ravel())), vectors_per_class=[2, 2], rho=[0.1], kernel_params=[0.4, 0.1, 3], classlabels_ints=[0, 1])
        if t != "PROBIT":
            node(f"svm_two_{low}", "SVMClassifier", [x], [INT64, FLOAT], kernel_type="RBF", post_transform=t, **svc)
    for how in ("SUM", "AVERAGE", "MIN", "MAX"):
        for base in ([], [0.5]):
            node(f"trees_{how.lower()}_{len(base)}", "TreeEnsembleRegressor", [x], [FLOAT], n_targets=1, aggregate_function=how, target_weights=[0.3, -0.4, 0.2, 0.6], target_treeids=[0, 0, 1, 1], target_nodeids=[1, 2, 1, 2], target_ids=[0] * 4, **TREE, **({"base_values": base} if base else {}))
    node("trees_double", "TreeEnsembleRegressor", [x.astype(np.float64)], [FLOAT], n_targets=1, target_weights=[0.3, -0.4, 0.2, 0.6], target_treeids=[0, 0, 1, 1], target_nodeids=[1, 2, 1, 2], target_ids=[0] * 4, **TREE)
    for kernel in ("LINEAR", "POLY", "RBF", "SIGMOID"):
        svr = dict(coefficients=[0.5, -0.7], support_vectors=list(map(float, x[:2].ravel())), n_supports=2, rho=[0.3], kernel_type=kernel, kernel_params=[0.4, 0.1, 2])
        node(f"svm_regressor_{kernel.lower()}", "SVMRegressor", [x], [FLOAT], **svr)
    node("svm_linear_two", "SVMClassifier", [x], [STRING, FLOAT], coefficients=[0.5, 0.1, -0.2, 0.3, 0.3, 0.1], rho=[0.1], classlabels_strings=["a", "b"], kernel_params=[0.0, 0.0, 0.0])
    node("svm_linear_three", "SVMClassifier", [x], [INT64, FLOAT], coefficients=[0.5, 0.1, -0.2, 0.3, 0.3, 0.1, 0.2, -0.9, 0.1], rho=[0.1], classlabels_ints=[1, 2, 3], kernel_params=[0.0, 0.0, 0.0], post_transform="SOFTMAX")
    node("svm_one_class", "SVMRegressor", [x], [FLOAT], coefficients=[0.5, -0.7], support_vectors=list(map(float, x[:2].ravel())), n_supports=2, rho=[0.1], one_class=1, kernel_type="LINEAR", kernel_params=[0.0, 0.0, 0.0])
    node("category_mapper_strings", "CategoryMapper", [np.array([["a", "x"], ["b", ""]], dtype=object)], [INT64], cats_int64s=[3, 1], cats_strings=["a", "b"], default_int64=-9)
    node("category_mapper_integers", "CategoryMapper", [np.array([1, 3, 4])], [STRING], cats_int64s=[3, 1], cats_strings=["a", "b"], default_string="?")
    node("feature_vectorizer", "FeatureVectorizer", [x, x[:, :1], x[:, 1:]], [FLOAT], inputdimensions=[3, 2, 1])
    node("imputer_columns", "Imputer", [np.array([[1, np.nan, 0], [np.nan, 2, 3]], np.float32)], [FLOAT], imputed_value_floats=[7.0, 8.0, 9.0], replaced_value_float=float("nan"))
    node("imputer_integers", "Imputer", [np.array([[1, 0], [0, 2]])], [INT64], imputed_value_int64s=[5], replaced_value_int64=0)
    node("one_hot_strings", "OneHotEncoder", [np.array(["a", "c", "b"], dtype=object)], [FLOAT], cats_strings=["a", "b"])
    node("one_hot_floats", "OneHotEncoder", [np.array([[1, 2.5], [3, 2]], np.float32)], [FLOAT], cats_int64s=[1, 2, 3])


def texts():
    """Operators outside of ai.onnx.ml that exporters of text features write."""
    STRING = TensorProto.STRING
    words = np.array([["Hello World", "ab,c;ünï  ok"], ["", " a\tb1_x 22 "]], dtype=object)
    ways = {"separators": {"separators": [" ", "[,;]"]}, "pattern": {"tokenexp": "[[:alpha:]]+|\\d\\d"}, "words": {"tokenexp": "\\w\\w+"},
            "any_case": {"tokenexp": "(?i)[A-F]+"}, "negated": {"tokenexp": "[^ \\t]+"}, "characters": {"separators": [""]}, "pairs": {"tokenexp": ".."}}
    for how, attributes in ways.items():
        node(f"tokenizer_{how}", "Tokenizer", [words], [STRING], "com.microsoft", pad_value="#", mark=int(how == "pattern"), mincharnum=2 if how == "separators" else 1, **attributes)
    node("tokenizer_nothing", "Tokenizer", [np.array(["", ""], dtype=object)], [STRING], "com.microsoft", pad_value="#", mark=1, mincharnum=1, tokenexp="a+")
    node("murmur_hash", "MurmurHash3", [words], [TensorProto.UINT32], "com.microsoft", seed=3)


def string_passthrough():
    """Operators that only move or compare elements, on strings."""
    STRING, INT64, BOOL = TensorProto.STRING, TensorProto.INT64, TensorProto.BOOL
    words = np.array([["b", "a", "ünï"], ["", "b", "zz"]], dtype=object)
    node("strings_concat", "Concat", [words, words[:, :1]], [STRING], "", axis=1)
    node("strings_flatten", "Flatten", [words[None]], [STRING], "", axis=2)
    node("strings_where", "Where", [np.array([[True], [False]]), words, words[:1, :1]], [STRING], "")
    node("strings_gather", "GatherND", [words, np.array([[0, 1], [1, -1]])], [STRING], "")
    node("strings_scatter", "ScatterElements", [words, np.array([[1], [0]]), words[:, 2:]], [STRING], "", axis=1)
    node("strings_split", "Split", [words.T], [STRING, STRING], "", axis=1)
    node("strings_unique", "Unique", [words.ravel()], [STRING, INT64, INT64, INT64], "")
    node("strings_equal", "Equal", [words, words[:, 1:2]], [BOOL], "")


def leaves():
    """Several weights of a leaf for one target, as class ids allow."""
    iris = load_iris()
    x = iris.data.astype(np.float32)
    tree = DecisionTreeClassifier(max_depth=3, random_state=1).fit(x, iris.target)
    model = to_onnx(tree, x[:1], options={id(tree): {"zipmap": False, "decision_leaf": True}}, target_opset={"": 17, "ai.onnx.ml": 3})
    save("decision_leaf", model, {model.graph.input[0].name: x[::12]})


estimators()
nodes()
texts()
string_passthrough()
leaves()
