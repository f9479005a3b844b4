"""Cases of operations that arrange, join, take apart and index tensors, and of creation."""

import numpy as np
import paddle


def both(t, op, args):
    """The call on float64 with gradient, and on int32 without."""
    t.add(op, args)
    turned = {}
    for key, value in args.items():
        if isinstance(value, np.ndarray) and value.dtype == np.float64:
            value = (value * 10).astype("int32")
        elif isinstance(value, list) and value and isinstance(value[0], np.ndarray):
            value = [(v * 10).astype("int32") for v in value]
        turned[key] = value
    t.add(op, turned, grad=False)


def cases_shape(t):
    def x(*shape):
        return t.normal(*shape, dtype="float64")

    for shape in ([3, 4], [-1, 2], [0, -1], [12], [2, 0, 2], [1, -1, 1]):
        both(t, "reshape", {"x": x(2, 3, 2), "shape": shape})
    t.add("reshape", {"x": x(1), "shape": []})
    t.add("reshape", {"x": np.array(2.0), "shape": [1, 1]})
    t.add("reshape", {"x": t.normal(0, 3), "shape": [3, 0]})
    t.add("reshape", {"x": x(2, 6), "shape": np.array([3, 4], np.int32)})
    t.reject("reshape", {"x": x(2, 3), "shape": [4, 2]})
    t.reject("reshape", {"x": x(2, 3), "shape": [-1, -1]})
    t.reject("reshape", {"x": x(2, 3), "shape": [-1, 4]})
    both(t, "transpose", {"x": x(2, 3, 4), "perm": [2, 0, 1]})
    both(t, "transpose", {"x": x(2, 3, 4), "perm": [0, 2, 1]})
    t.add("transpose", {"x": x(2, 3), "perm": [-1, 0]})
    t.reject("transpose", {"x": x(2, 3, 4), "perm": [0, 1]})
    t.reject("transpose", {"x": x(2, 3), "perm": [0, 0]})
    for axis in (None, 1, -1, [1, 3], 0):
        both(t, "squeeze", {"x": x(2, 1, 3, 1), "axis": axis})
    for axis in (0, -1, [0, 2], [1, -1], 2):
        both(t, "unsqueeze", {"x": x(2, 3), "axis": axis})
    t.reject("unsqueeze", {"x": x(2, 3), "axis": 4})
    t.reject("squeeze", {"x": x(2, 3), "axis": 2})
    for start, stop in ((0, -1), (1, 2), (-2, -1), (0, 1)):
        both(t, "flatten", {"x": x(2, 3, 2, 2), "start_axis": start, "stop_axis": stop})
    t.add("flatten", {"x": np.array(1.0)})
    t.reject("flatten", {"x": x(2, 3, 2), "start_axis": 2, "stop_axis": 1})
    for shape in ([2, 3], [4, 2, 3], [4, -1, 3], [-1, -1]):
        both(t, "expand", {"x": x(2, 1) if shape != [2, 3] else x(3), "shape": shape})
        t.add("broadcast_to", {"x": x(2, 1) if shape != [2, 3] else x(3), "shape": shape})
    t.reject("expand", {"x": x(2, 3), "shape": [2, 4]})
    t.add("expand_as", {"x": x(3), "y": x(2, 3)}, grad=False)
    t.add("view_as", {"x": x(6), "other": x(2, 3)}, grad=False)
    t.add("broadcast_tensors", {"input": [x(2, 1), x(3), x(1, 1)]})
    for axis in (0, 1, -1):
        both(t, "concat", {"x": [x(2, 3), x(2, 3), x(2, 3)], "axis": axis})
        both(t, "stack", {"x": [x(2, 3), x(2, 3)], "axis": axis})
    t.add("concat", {"x": [x(2, 3), x(0, 3), x(1, 3)], "axis": 0})
    t.add("concat", {"x": [t.normal(2, 3, dtype="bfloat16"), t.normal(1, 3, dtype="bfloat16")]}, grad=False)
    t.reject("concat", {"x": [x(2, 3), x(2, 4)], "axis": 0})
    t.reject("concat", {"x": [x(2, 3), x(2, 3)], "axis": 2})
    t.reject("stack", {"x": [x(2, 3), x(2, 4)]})
    for sections, axis in ((3, 1), ([1, 2, 3], 1), ([1, -1], 0), (2, 0), ([2, -1, 1], -1)):
        both(t, "split", {"x": x(4, 6), "num_or_sections": sections, "axis": axis})
    t.reject("split", {"x": x(4, 6), "num_or_sections": 5, "axis": 1})
    t.reject("split", {"x": x(4, 6), "num_or_sections": [1, 2], "axis": 1})
    t.add("chunk", {"x": x(4, 6), "chunks": 3, "axis": 1})
    t.add("tensor_split", {"x": x(7, 2), "num_or_indices": 3})
    t.add("tensor_split", {"x": x(2, 7), "num_or_indices": [2, 5], "axis": 1})
    t.add("hsplit", {"x": x(2, 6), "num_or_indices": 3})
    t.add("hsplit", {"x": x(6), "num_or_indices": [1, 3]})
    t.add("vsplit", {"x": x(4, 3), "num_or_indices": 2})
    t.add("dsplit", {"x": x(2, 2, 4), "num_or_indices": [1]})
    for op in ("hstack", "vstack", "dstack", "column_stack", "row_stack"):
        t.add(op, {"x": [x(2, 3), x(2, 3)]})
        t.add(op, {"x": [x(3), x(3)]})
    for op in ("atleast_1d", "atleast_2d", "atleast_3d"):
        t.add(op, {"inputs": [np.array(1.5), x(2), x(2, 3)]}, grad=False, function=lambda inputs, op=op: getattr(paddle, op)(*inputs))
        t.add(op, {"inputs": [x(2)]}, function=lambda inputs, op=op: getattr(paddle, op)(*inputs))
    t.add("meshgrid", {"args": [x(3), x(2)]}, function=lambda args: paddle.meshgrid(*args))
    t.add("meshgrid", {"args": [x(3), x(2), x(1)]}, function=lambda args: paddle.meshgrid(*args))
    for axis in (0, -1):
        t.add("unbind", {"input": x(2, 3), "axis": axis})
        t.add("unstack", {"x": x(2, 3), "axis": axis})
    for axis in (0, [0, 1], -1):
        both(t, "flip", {"x": x(2, 3), "axis": axis})
    for shifts, axis in ((1, None), (-2, 0), ([1, 2], [0, 1]), (5, 1)):
        both(t, "roll", {"x": x(3, 4), "shifts": shifts, "axis": axis})
    for k, axes in ((1, [0, 1]), (2, [1, 2]), (-1, [0, 2]), (4, [0, 1])):
        t.add("rot90", {"x": x(2, 3, 4), "k": k, "axes": axes})
    for times in ([2], [2, 3], [1, 2, 2], 2):
        both(t, "tile", {"x": x(2, 3), "repeat_times": times})
    for repeats, axis in ((2, None), (3, 0), (2, -1)):
        both(t, "repeat_interleave", {"x": x(2, 3), "repeats": repeats, "axis": axis})
    t.add("repeat_interleave", {"x": x(3, 2), "repeats": np.array([1, 0, 2], np.int64), "axis": 0})
    t.add("moveaxis", {"x": x(2, 3, 4), "source": 0, "destination": 2})
    t.add("moveaxis", {"x": x(2, 3, 4), "source": [0, 1], "destination": [-1, 0]})
    t.add("t", {"input": x(2, 3)})
    t.add("t", {"input": x(3)})
    t.reject("t", {"input": x(2, 3, 4)})
    t.add("matrix_transpose", {"x": x(2, 3, 4)})
    t.add("unflatten", {"x": x(2, 6), "axis": 1, "shape": [2, -1]})
    for axes, starts, ends in (([0, 1], [1, 0], [3, 2]), ([1], [-3], [-1]), ([0], [0], [100]), ([0], [3], [1])):
        both(t, "slice", {"input": x(4, 5), "axes": axes, "starts": starts, "ends": ends})
    for axes, starts, ends, strides in (([0, 1], [0, 4], [4, 0], [2, -1]), ([1], [-1], [-6], [-2]), ([0], [1], [4], [3])):
        both(t, "strided_slice", {"x": x(4, 5), "axes": axes, "starts": starts, "ends": ends, "strides": strides})
    t.add("crop", {"x": x(4, 5), "shape": [2, 3], "offsets": [1, 1]})
    t.add("crop", {"x": x(4, 5), "shape": [-1, 3], "offsets": [1, 2]})
    for offset, axis1, axis2 in ((0, 0, 1), (1, 0, 2), (-1, 1, 2)):
        both(t, "diagonal", {"x": x(3, 4, 3), "offset": offset, "axis1": axis1, "axis2": axis2})
    t.add("diag_embed", {"input": x(2, 3)})
    t.add("diag_embed", {"input": x(2, 3), "offset": 1, "dim1": 0, "dim2": 2})
    for offset in (0, 1, -2):
        both(t, "diag", {"x": x(3), "offset": offset})
        both(t, "diag", {"x": x(3, 4), "offset": offset})
        both(t, "diagflat", {"x": x(2, 2), "offset": offset})
        both(t, "tril", {"x": x(2, 3, 4), "diagonal": offset})
        both(t, "triu", {"x": x(3, 4), "diagonal": offset})
        t.add("trace", {"x": x(3, 4), "offset": offset})
    t.add("diag", {"x": x(3), "padding_value": 7.0}, grad=False)
    t.reject("tril", {"x": x(3)})
    t.add("block_diag", {"inputs": [x(2, 3), x(1, 1), x(2)]})
    # Padding: a list of 2 * ndim sizes starts at the first axis; shorter ones pad the spatial axes.
    t.add("pad", {"x": x(2, 3), "pad": [1, 2, 0, 1], "value": 0.5})
    t.add("pad", {"x": x(2, 3), "pad": [1, 2, 0, 1], "pad_from_left_axis": False})
    for mode in ("constant", "reflect", "replicate", "circular"):
        t.add("pad", {"x": x(1, 2, 4, 3), "pad": [1, 2, 2, 1], "mode": mode})
        t.add("pad", {"x": x(1, 4, 3, 2), "pad": [1, 2, 2, 1], "mode": mode, "data_format": "NHWC"})
        t.add("pad", {"x": x(1, 2, 4), "pad": [1, 2], "mode": mode, "data_format": "NCL"})
        t.add("pad", {"x": x(1, 2, 3, 3, 4), "pad": [1, 2, 1, 0, 2, 1], "mode": mode, "data_format": "NCDHW"})
    t.add("pad", {"x": t.integers(0, 9, 2, 3), "pad": [1, 0, 0, 1], "value": 3})
    t.reject("pad", {"x": x(1, 2, 4, 3), "pad": [4, 4, 4, 4], "mode": "reflect"})
    t.reject("pad", {"x": x(2, 3), "pad": [1, 2, 0, 1], "mode": "mirror"})


def cases_indexing(t):
    def x(*shape):
        return t.normal(*shape, dtype="float64")

    index = np.array([2, 0, 2])
    for axis in (0, 1):
        both(t, "gather", {"x": x(4, 3), "index": index, "axis": axis})
        both(t, "index_select", {"x": x(4, 3), "index": index, "axis": axis})
        t.add("index_add", {"x": x(4, 3), "index": index, "axis": axis, "value": x(3, 3) if axis == 0 else x(4, 3)})
        t.add("index_fill", {"x": x(4, 3), "index": index, "axis": axis, "value": 0.5})
    t.add("gather", {"x": x(4, 3), "index": np.array([[1], [3]], np.int32)})
    t.add("gather", {"x": x(4), "index": np.array(2)})
    t.reject("gather", {"x": x(4, 3), "index": np.array([4])})
    t.reject("index_select", {"x": x(4, 3), "index": np.array([5])})
    t.reject("gather", {"x": x(4, 3), "index": np.array([0.5])})
    for coordinates in (np.array([[0, 1], [2, 2]]), np.array([[1], [3]]), np.array([[[0, 0]], [[3, 1]]]), np.array([1, 2])):
        both(t, "gather_nd", {"x": x(4, 3), "index": coordinates})
    t.add("scatter_nd_add", {"x": x(4, 3), "index": np.array([[1], [2], [1]]), "updates": x(3, 3)})
    t.add("scatter_nd_add", {"x": x(4, 3), "index": np.array([[1, 2], [2, 0]]), "updates": x(2)})
    t.add("scatter_nd", {"index": np.array([[1], [2], [1]]), "updates": x(3, 3), "shape": [4, 3]})
    t.add("scatter", {"x": x(4, 3), "index": np.array([1, 3]), "updates": x(2, 3)})
    t.add("scatter", {"x": x(4, 3), "index": np.array([1, 3, 1]), "updates": x(3, 3), "overwrite": False})
    t.reject("scatter", {"x": x(4, 3), "index": np.array([1, 4]), "updates": x(2, 3)})
    taken = t.integers(0, 3, 2, 4)
    t.add("take_along_axis", {"arr": x(3, 4), "indices": taken, "axis": 0})
    t.add("take_along_axis", {"arr": x(3, 4), "indices": np.array([[1]]), "axis": 0})
    t.add("take_along_axis", {"arr": x(3, 4), "indices": t.integers(0, 4, 3, 2), "axis": 1, "broadcast": False})
    for reduce in ("assign", "add", "mul", "multiply", "mean", "amax", "amin"):
        for include in (True, False):
            t.add("put_along_axis", {"arr": x(3, 4), "indices": np.array([[0, 2, 1, 0], [2, 0, 0, 1]]), "values": x(2, 4), "axis": 0,
                                     "reduce": reduce, "include_self": include}, grad=reduce in ("assign", "add"))
    t.add("put_along_axis", {"arr": x(3, 4), "indices": np.array([[1]]), "values": 2.5, "axis": 1}, grad=False)
    t.reject("take_along_axis", {"arr": x(3, 4), "indices": np.array([[7]]), "axis": 0})
    t.add("index_put", {"x": x(3, 4), "indices": [np.array([0, 2]), np.array([1, 3])], "value": x(2)})
    t.add("index_put", {"x": x(3, 4), "indices": [np.array([0, 2, 0])], "value": x(3, 4), "accumulate": True})
    t.add("index_put", {"x": x(3, 4), "indices": [t.bools(3, 4)], "value": np.array([0.25])}, grad=False)
    t.add("index_sample", {"x": x(3, 4), "index": t.integers(0, 4, 3, 2)})
    for mode in ("raise", "wrap", "clip"):
        t.add("take", {"x": x(3, 4), "index": np.array([[0, -1], [5, 11]]), "mode": mode})
    t.add("take", {"x": x(3, 4), "index": np.array([17, -20, 3]), "mode": "wrap"})
    t.add("take", {"x": x(3, 4), "index": np.array([17, -20, 3]), "mode": "clip"})
    t.reject("take", {"x": x(3, 4), "index": np.array([12])})
    mask = np.array([[True, False, True], [False, True, True]])
    both(t, "masked_select", {"x": x(2, 3), "mask": mask})
    t.add("masked_select", {"x": x(2, 3), "mask": np.zeros((2, 3), bool)}, grad=False)
    t.add("masked_fill", {"x": x(2, 3), "mask": mask, "value": 0.5})
    t.add("masked_fill", {"x": x(2, 3), "mask": mask[0], "value": np.array([2.5])}, grad=False)
    t.add("masked_scatter", {"x": x(2, 3), "mask": mask, "value": x(5)})
    t.add("nonzero", {"x": mask})
    t.add("nonzero", {"x": np.array([0.0, 2.0, 0.0, -1.0], np.float32)})
    t.add("nonzero", {"x": mask, "as_tuple": True}, function=lambda x, as_tuple: [c for c in paddle.nonzero(x, as_tuple=True)])
    t.add("select_scatter", {"x": x(2, 3, 4), "values": x(2, 4), "axis": 1, "index": 2})
    t.add("slice_scatter", {"x": x(4, 6), "value": x(4, 2), "axes": [1], "starts": [1], "ends": [5], "strides": [2]})
    t.add("diagonal_scatter", {"x": x(3, 4), "y": x(3)}, grad=False)
    t.add("diagonal_scatter", {"x": x(3, 4), "y": x(2), "offset": -1}, grad=False)
    t.add("one_hot", {"x": np.array([0, 2, 1]), "num_classes": 4})
    t.add("one_hot", {"x": np.array([[0, 2], [1, 3]], np.int32), "num_classes": 4})
    t.reject("one_hot", {"x": np.array([0, 5]), "num_classes": 4})
    ids = np.array([[0, 2, 1], [4, 4, 3]])
    t.add("embedding", {"x": ids, "weight": x(5, 3)})
    t.add("embedding", {"x": ids, "weight": x(5, 3), "padding_idx": 4})
    t.add("embedding", {"x": ids, "weight": x(5, 3), "padding_idx": -1})
    t.reject("embedding", {"x": np.array([5]), "weight": x(5, 3)})
    t.reject("embedding", {"x": np.array([0.5]), "weight": x(5, 3)})


def cases_creation(t):
    for shape in ([2, 3], [], [0, 2], 4):
        for dtype in (None, "int64", "float64", "bool"):
            t.add("full", {"shape": shape, "fill_value": 1.5 if dtype in (None, "float64") else 1, "dtype": dtype})
            t.add("zeros", {"shape": shape, "dtype": dtype})
            t.add("ones", {"shape": shape, "dtype": dtype})
    t.add("full", {"shape": [2], "fill_value": float("inf")})
    t.add("full", {"shape": [2], "fill_value": 3})
    t.add("full", {"shape": [2], "fill_value": True})
    t.add("full", {"shape": np.array([2, 3], np.int64), "fill_value": 0.5})
    t.reject("full", {"shape": [2, -3], "fill_value": 0.5})
    for dtype in (None, "int32", "float64"):
        x = t.normal(2, 3)
        t.add("zeros_like", {"x": x, "dtype": dtype}, grad=False)
        t.add("ones_like", {"x": x, "dtype": dtype}, grad=False)
        t.add("full_like", {"x": x, "fill_value": 2.5, "dtype": dtype}, grad=False)
    for args in ({"start": 5}, {"start": 1, "end": 7, "step": 2}, {"start": 0.5, "end": 3.0}, {"start": 5, "end": 0, "step": -2},
                 {"start": 0, "end": 1, "step": 0.25}, {"start": 3, "dtype": "float32"}, {"start": 3, "end": 1}, {"end": 4}):
        t.add("arange", args)
    t.reject("arange", {"start": 0, "end": 4, "step": 0})
    for rows, columns, dtype in ((3, None, None), (2, 4, "int64"), (3, 2, "float64")):
        t.add("eye", {"num_rows": rows, "num_columns": columns, "dtype": dtype})
    t.add("linspace", {"start": 0, "stop": 10, "num": 5})
    t.add("linspace", {"start": 0.5, "stop": -2.0, "num": 4, "dtype": "float64"})
    t.add("linspace", {"start": 1, "stop": 9, "num": 1})
    t.add("linspace", {"start": 0, "stop": 10, "num": 6, "dtype": "int32"})
    t.add("logspace", {"start": 0, "stop": 3, "num": 4})
    t.add("logspace", {"start": 0.0, "stop": 3.0, "num": 4, "base": 2.0, "dtype": "float64"})
    t.add("tril_indices", {"row": 4, "col": 3, "offset": 0})
    t.add("tril_indices", {"row": 3, "col": 4, "offset": -1, "dtype": "int32"})
    t.add("triu_indices", {"row": 4, "col": 3, "offset": 1})
    t.add("triu_indices", {"row": 4})
    t.add("shape", {"input": t.normal(2, 0, 3)}, grad=False, outputs=[np.array([2, 0, 3], np.int64)])
    t.add("numel", {"x": t.normal(2, 3)}, grad=False)
    t.add("rank", {"input": t.normal(2, 3)}, grad=False)
    for op, args in (("uniform", {"shape": [2, 3]}), ("randint", {"low": 1, "high": 5, "shape": [4]})):
        t.add(op, args, skip_outputs=(0,))
    t.reject("randint", {"low": 5, "high": 5, "shape": [4]})
