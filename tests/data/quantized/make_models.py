"""Writes the quantized models of this folder and what ONNX Runtime computes with them (NAME.npz: the input x
and the output y). Needs numpy, onnx, onnxruntime.
"""
import os
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnxruntime import InferenceSession
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_dynamic, quantize_static

HERE = os.path.dirname(os.path.abspath(__file__))
RNG = np.random.default_rng(1)


def constant(name, *shape, scale=1.0):
    return numpy_helper.from_array((scale * RNG.standard_normal(shape)).astype(np.float32), name)


def saved(nodes, constants, shape, outputs, path):
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", *shape])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", *outputs])], constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    onnx.save(model, path)


def image_net(path):
    node = helper.make_node
    nodes = [
        node("Conv", ["x", "w0", "b0"], ["a0"], pads=[1, 1, 1, 1]), node("Relu", ["a0"], ["r0"]),
        node("MaxPool", ["r0"], ["p0"], kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1]),
        node("Conv", ["p0", "w1", "b1"], ["a1"], pads=[1, 1, 1, 1], group=12), node("Clip", ["a1", "zero", "six"], ["r1"]),
        node("Conv", ["r1", "w2"], ["a2"]), node("Add", ["a2", "p0"], ["s"]), node("Relu", ["s"], ["r2"]),
        node("GlobalAveragePool", ["r2"], ["g"]), node("Flatten", ["g"], ["f"]),
        node("Gemm", ["f", "w3", "b3"], ["y"], transB=1)]
    constants = [constant("w0", 12, 3, 3, 3, scale=0.3), constant("b0", 12), constant("w1", 12, 1, 3, 3, scale=0.4),
                 constant("b1", 12), constant("w2", 12, 12, 1, 1, scale=0.4), constant("w3", 5, 12), constant("b3", 5),
                 numpy_helper.from_array(np.float32(0), "zero"), numpy_helper.from_array(np.float32(6), "six")]
    saved(nodes, constants, (3, 9, 10), (5,), path)


def products_net(path):
    node = helper.make_node
    nodes = [node("MatMul", ["x", "w0"], ["a"]), node("Add", ["a", "b0"], ["h"]), node("Relu", ["h"], ["r"]),
             node("MatMul", ["r", "w1"], ["y"])]
    saved(nodes, [constant("w0", 20, 33, scale=0.2), constant("b0", 33), constant("w1", 33, 7, scale=0.2)], (4, 20),
          (4, 7), path)


def lines_net(path):
    node = helper.make_node
    nodes = [
        node("Conv", ["x", "w0", "b0"], ["a0"], pads=[2, 2]), node("Relu", ["a0"], ["r0"]),
        node("MaxPool", ["r0"], ["p0"], kernel_shape=[2], strides=[2]),
        node("Conv", ["p0", "w1", "b1"], ["a1"], pads=[2, 2], dilations=[2], group=4), node("Relu", ["a1"], ["r1"]),
        node("Add", ["r1", "p0"], ["s"]), node("Conv", ["s", "w2"], ["a2"], strides=[2]),
        node("GlobalAveragePool", ["a2"], ["g"]), node("Flatten", ["g"], ["f"]),
        node("Gemm", ["f", "w3", "b3"], ["y"], transB=1)]
    constants = [constant("w0", 32, 3, 5, scale=0.3), constant("b0", 32), constant("w1", 32, 8, 3, scale=0.3),
                 constant("b1", 32), constant("w2", 12, 32, 1, scale=0.3), constant("w3", 5, 12), constant("b3", 5)]
    saved(nodes, constants, (3, 31), (5,), path)


def volumes_net(path):
    node = helper.make_node
    nodes = [
        node("Conv", ["x", "w0", "b0"], ["a0"], pads=[1, 1, 1, 1, 1, 1], strides=[1, 2, 2]), node("Relu", ["a0"], ["r0"]),
        node("MaxPool", ["r0"], ["p0"], kernel_shape=[1, 2, 2], strides=[1, 2, 2]),
        node("Conv", ["p0", "w1", "b1"], ["a1"], pads=[0, 1, 1, 0, 1, 1]), node("Relu", ["a1"], ["r1"]),
        node("Conv", ["r1", "w2"], ["a2"], pads=[1, 0, 0, 1, 0, 0], group=2), node("Add", ["a2", "p0"], ["s"]),
        node("Relu", ["s"], ["r2"]), node("GlobalAveragePool", ["r2"], ["g"]), node("Flatten", ["g"], ["f"]),
        node("Gemm", ["f", "w3", "b3"], ["y"], transB=1)]
    constants = [constant("w0", 16, 3, 3, 3, 3, scale=0.2), constant("b0", 16), constant("w1", 16, 16, 1, 3, 3, scale=0.2),
                 constant("b1", 16), constant("w2", 16, 8, 3, 1, 1, scale=0.3), constant("w3", 5, 16), constant("b3", 5)]
    saved(nodes, constants, (3, 4, 9, 10), (5,), path)


def attention_net(path):
    node = helper.make_node
    nodes, constants = [], [
        numpy_helper.from_array(np.array([0, 11, 2, 16], np.int64), "split"),
        numpy_helper.from_array(np.array([0, 11, 32], np.int64), "join"),
        numpy_helper.from_array(np.float32(0.25), "quarter"), constant("wo", 32, 20, scale=0.2)]
    for name, order in ("q", [0, 2, 1, 3]), ("k", [0, 2, 3, 1]), ("v", [0, 2, 1, 3]):
        constants.append(constant("w" + name, 20, 32, scale=0.25))
        nodes += [node("MatMul", ["x", "w" + name], [name + "m"]), node("Reshape", [name + "m", "split"], [name + "s"]),
                  node("Transpose", [name + "s"], [name], perm=order)]
    nodes += [node("MatMul", ["q", "k"], ["s"]), node("Mul", ["s", "quarter"], ["t"]),
              node("Softmax", ["t"], ["p"], axis=-1), node("MatMul", ["p", "v"], ["c"]),
              node("Transpose", ["c"], ["ct"], perm=[0, 2, 1, 3]), node("Reshape", ["ct", "join"], ["cj"]),
              node("MatMul", ["cj", "wo"], ["y"])]
    saved(nodes, constants, (11, 20), (11, 20), path)


def transposed_net(path):
    """Kernels smaller and larger than their strides, with padding for the size of the input times the stride."""
    node = helper.make_node
    nodes = [
        node("ConvTranspose", ["x", "w0", "b0"], ["a0"], strides=[3, 2], auto_pad="SAME_UPPER"), node("Relu", ["a0"], ["r0"]),
        node("ConvTranspose", ["r0", "w1"], ["a1"], strides=[2, 3], auto_pad="SAME_LOWER", group=2,
             output_padding=[1, 0]),
        node("Relu", ["a1"], ["r1"]), node("Conv", ["r1", "w2"], ["y"])]
    constants = [constant("w0", 4, 6, 1, 2, scale=0.4), constant("b0", 6), constant("w1", 6, 4, 3, 2, scale=0.4),
                 constant("w2", 5, 8, 1, 1, scale=0.4)]
    saved(nodes, constants, (4, 3, 3), (5, 14, 17), path)


class Samples(CalibrationDataReader):
    def __init__(self, shape):
        self.batches = iter([RNG.standard_normal((8, *shape)).astype(np.float32) for _ in range(4)])

    def get_next(self):
        x = next(self.batches, None)
        return None if x is None else {"x": x}


def write(name, net, shape, quantize):
    path = os.path.join(HERE, name + ".onnx")
    with tempfile.TemporaryDirectory() as folder:
        plain = os.path.join(folder, "plain.onnx")
        net(plain)
        quantize(plain, path, shape)
    x = RNG.standard_normal((3, *shape)).astype(np.float32)
    y = InferenceSession(path, providers=["CPUExecutionProvider"]).run(None, {"x": x})[0]
    np.savez_compressed(os.path.join(HERE, name + ".npz"), x=x, y=y)


def static(form, activations, weights, per_channel):
    return lambda plain, path, shape: quantize_static(
        plain, path, Samples(shape), quant_format=form, activation_type=activations, weight_type=weights,
        per_channel=per_channel)


if __name__ == "__main__":
    u8, s8 = QuantType.QUInt8, QuantType.QInt8
    write("images_qdq_u8", image_net, (3, 9, 10), static(QuantFormat.QDQ, u8, s8, True))
    write("images_qdq_s8", image_net, (3, 9, 10), static(QuantFormat.QDQ, s8, s8, False))
    write("images_operators", image_net, (3, 9, 10), static(QuantFormat.QOperator, u8, s8, False))
    write("images_operators_u8", image_net, (3, 9, 10), static(QuantFormat.QOperator, u8, u8, False))
    write("products_qdq", products_net, (4, 20), static(QuantFormat.QDQ, u8, s8, True))
    write("products_dynamic", products_net, (4, 20), lambda plain, path, shape: quantize_dynamic(
        plain, path, weight_type=s8, per_channel=True))
    write("products_dynamic_u8", products_net, (4, 20), lambda plain, path, shape: quantize_dynamic(
        plain, path, weight_type=u8))
    write("lines_qdq", lines_net, (3, 31), static(QuantFormat.QDQ, u8, s8, True))
    write("lines_operators", lines_net, (3, 31), static(QuantFormat.QOperator, u8, s8, False))
    write("lines_dynamic", lines_net, (3, 31), lambda plain, path, shape: quantize_dynamic(
        plain, path, weight_type=u8))
    write("attention_qdq_u8", attention_net, (11, 20), static(QuantFormat.QDQ, u8, s8, False))
    write("attention_qdq_s8", attention_net, (11, 20), static(QuantFormat.QDQ, s8, s8, True))
    write("attention_operators", attention_net, (11, 20), static(QuantFormat.QOperator, u8, s8, False))
    write("volumes_qdq_u8", volumes_net, (3, 4, 9, 10), static(QuantFormat.QDQ, u8, s8, True))
    write("volumes_qdq_s8", volumes_net, (3, 4, 9, 10), static(QuantFormat.QDQ, s8, s8, False))
    write("volumes_operators", volumes_net, (3, 4, 9, 10), static(QuantFormat.QOperator, u8, s8, False))
    write("volumes_dynamic", volumes_net, (3, 4, 9, 10), lambda plain, path, shape: quantize_dynamic(
        plain, path, weight_type=u8))
    write("transposed_qdq_u8", transposed_net, (4, 3, 3), static(QuantFormat.QDQ, u8, s8, True))
    write("transposed_qdq_s8", transposed_net, (4, 3, 3), static(QuantFormat.QDQ, s8, s8, False))
