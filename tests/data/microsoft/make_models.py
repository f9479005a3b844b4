"""Writes models of ONNX Runtime's own operators, and what it computes with them (NAME.npz: the inputs `x.NAME` and
the outputs `y.NAME`): graphs that its optimizer wrote, with channels in blocks (for processors with AVX-512) and
quantized with channels last, and single operators, some of them in the forms of old opsets. Needs numpy, onnx,
onnxruntime.
"""
import os
import tempfile

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static

HERE = os.path.dirname(os.path.abspath(__file__))
RNG = np.random.default_rng(1)
DOMAIN = "com.microsoft"
TYPES = {np.dtype(k): v for k, v in (("float32", 1), ("uint8", 2), ("int8", 3), ("int32", 6), ("int64", 7))}


def floats(*shape, scale=1.0):
    return (scale * RNG.standard_normal(shape)).astype(np.float32)


def saved(name, nodes, inputs, outputs, constants, domains=(DOMAIN,), opset=17):
    infos = [helper.make_tensor_value_info(k, TYPES[v.dtype], v.shape) for k, v in inputs.items()]
    graph = helper.make_graph(nodes, "g", infos, [onnx.ValueInfoProto(name=k) for k in outputs],
                              [numpy_helper.from_array(v, k) for k, v in constants.items()])
    for o, t in zip(graph.output, outputs.values()):
        o.type.tensor_type.elem_type = t
    model = helper.make_model(graph, ir_version=8, opset_imports=[
        helper.make_opsetid("", opset), *(helper.make_opsetid(d, 1) for d in domains)])
    path = os.path.join(HERE, name + ".onnx")
    onnx.save(model, path)
    return path


def answers(path, inputs, threads=0):
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    session = ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    return dict(zip([o.name for o in session.get_outputs()], session.run(None, inputs)))


def answers_of_one_thread(path, inputs):
    return answers(path, inputs, 1)


def answers_of_reference(path, inputs):
    """Those of ONNX's own implementation, where ONNX Runtime has none."""
    model = ReferenceEvaluator(path)
    return dict(zip(model.output_names, model.run(None, inputs)))


def kept(name, inputs, outputs):
    np.savez_compressed(os.path.join(HERE, name + ".npz"), **{"x." + k: v for k, v in inputs.items()},
                        **{"y." + k: v for k, v in outputs.items()})


def optimized(path, name):
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_ALL
    options.optimized_model_filepath = os.path.join(HERE, name + ".onnx")
    ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def image_net(folder, activation):
    """Twelve channels first: fewer than a block has, and no multiple of eight."""
    node = helper.make_node
    nodes = [
        node("Conv", ["x", "w0", "b0"], ["a"], pads=[1] * 4), node(activation, ["a"], ["r"]),
        node("MaxPool", ["r"], ["p"], kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4),
        node("Conv", ["p", "w1", "b1"], ["c"]), node("Clip", ["c", "zero", "six"], ["d"]),
        node("Conv", ["d", "w2", "b2"], ["e"], pads=[1] * 4, group=20), node("Add", ["d", "e"], ["s"]),
        node("Relu", ["s"], ["t"]), node("AveragePool", ["t"], ["u"], kernel_shape=[2, 2], pads=[1, 1, 0, 0]),
        node("Conv", ["u", "w3", "b3"], ["v"]),
        node("Resize", ["v", "", "two"], ["y"], coordinate_transformation_mode="asymmetric", nearest_mode="floor"),
        node("GlobalAveragePool", ["v"], ["z"])]
    constants = {"w0": floats(16, 12, 3, 3, scale=.2), "b0": floats(16), "w1": floats(20, 16, 1, 1, scale=.3),
                 "b1": floats(20), "w2": floats(20, 1, 3, 3, scale=.3), "b2": floats(20),
                 "w3": floats(32, 20, 1, 1, scale=.3), "b3": floats(32), "zero": np.float32(0), "six": np.float32(6),
                 "two": np.array([1, 1, 2, 2], np.float32)}
    inputs = {"x": floats(1, 12, 7, 8)}
    path = os.path.join(folder, "net")
    return inputs, saved(path, nodes, inputs, {"y": 1, "z": 1}, constants, ())


def in_blocks(weight, inner, block=8):
    o, i, *kernel = weight.shape
    parts = weight.reshape(o // block, block, i // inner, inner, *kernel)
    return np.ascontiguousarray(parts.transpose(0, 2, 4, 5, 3, 1)).reshape(weight.shape)


def blocks_of_eight(folder):
    """What the optimizer writes for processors without AVX-512."""
    node, inputs = helper.make_node, {"x": floats(2, 3, 6, 5)}
    first, second, bias = floats(24, 3, 3, 3, scale=.3), floats(24, 24, 2, 2, scale=.2), floats(24)
    plain = [node("Conv", ["x", "w0"], ["a"], pads=[1] * 4), node("Relu", ["a"], ["r"]),
             node("Conv", ["r", "w1", "b1"], ["c"]), node("Slice", ["c", "from", "to", "axis"], ["d"]),
             node("Transpose", ["d"], ["y"], perm=[0, 2, 3, 1])]
    constants = {"w0": first, "w1": second, "b1": bias, "from": np.array([0]), "to": np.array([20]), "axis": np.array([1])}
    outputs = answers(saved(os.path.join(folder, "plain"), plain, inputs, {"y": 1}, constants, ()), inputs)
    blocked = [node("Conv", ["x", "w0"], ["a"], pads=[1] * 4, activation="Relu", domain=DOMAIN + ".nchwc"),
               node("Conv", ["a", "w1", "b1"], ["c"], domain=DOMAIN + ".nchwc"),
               node("ReorderOutput", ["c"], ["y"], channels=20, channels_last=1, domain=DOMAIN + ".nchwc")]
    saved("blocks_of_eight", blocked, inputs, {"y": 1},
          {"w0": in_blocks(first, 1), "w1": in_blocks(second, 8), "b1": bias}, (DOMAIN + ".nchwc",))
    kept("blocks_of_eight", inputs, outputs)


class Samples(CalibrationDataReader):
    def __init__(self, samples):
        self.samples = iter(samples)

    def get_next(self):
        return next(self.samples, None)


def operator(name, op_type, inputs, outputs=1, constant=(), types=None, domain=DOMAIN, opset=17, judge=answers,
             **attributes):
    """Inputs by position (None: absent); those of `constant` are initializers."""
    inputs = [None if v is None else np.asarray(v) for v in inputs]
    names = ["" if v is None else f"i{k}" for k, v in enumerate(inputs)]
    given = {n: v for k, (n, v) in enumerate(zip(names, inputs)) if v is not None and k not in constant}
    fixed = {n: v for k, (n, v) in enumerate(zip(names, inputs)) if v is not None and k in constant}
    results = [f"o{k}" for k in range(outputs)]
    node = helper.make_node(op_type, names, results, domain=domain, **attributes)
    path = saved(name, [node], given, dict(zip(results, types or [1] * outputs)), fixed, opset=opset)
    kept(name, given, judge(path, given))


def attention():
    x, w, b = floats(2, 5, 16), floats(16, 48, scale=.3), floats(48)
    mask = np.array([[1, 1, 1, 0, 0], [0] * 5], np.int32)
    operator("attention_forbidden", "Attention", [x, w, b, mask], num_heads=2)
    operator("attention_filter", "Attention", [x, w, b, mask, None, floats(2, 2, 5, 5)], num_heads=2,
             mask_filter_value=-3.0, unidirectional=1)
    operator("attention_ends", "Attention", [x, w, b, np.array([5, 4, 1, 0], np.int32)], num_heads=2)
    operator("attention_lengths", "MultiHeadAttention",
             [x, floats(2, 7, 16), floats(2, 7, 16), b, np.array([7, 4, 0, 5, 10, 0, 7, 14], np.int32)], num_heads=2)
    operator("attention_bytes", "QAttention",
             [RNG.integers(0, 255, (2, 5, 16)).astype(np.uint8), RNG.integers(-90, 90, (16, 48)).astype(np.int8), b,
              np.float32(.02), np.float32(.01), mask[:, :5], np.uint8(128), np.int8(3)], constant=(1, 2, 3, 4, 6, 7),
             num_heads=2)


def shared_attention(name, steps, total, lengths, past, **attributes):
    """Four heads that share two keys each."""
    batch, sink = len(lengths), attributes.pop("sink", None)
    cache = [floats(batch, 2, past, 16), floats(batch, 2, past, 16)] if past else [None, None]
    operator("shared_attention_" + name, "GroupQueryAttention",
             [floats(batch, steps, 64), floats(batch, steps, 32), floats(batch, steps, 32), *cache,
              np.array(lengths, np.int32), np.array(total, np.int32), np.cos(floats(16, 8)), np.sin(floats(16, 8)),
              None, None, sink], 3, num_heads=4, kv_num_heads=2, do_rotary=1, **attributes)


def byte_array(*shape):
    return RNG.integers(0, 255, shape).astype(np.uint8)


def others():
    scale, numbers = np.float32(.01), RNG.integers(0, 6, (2, 4)).astype(np.int32)
    operator("embedding_bytes", "QEmbedLayerNormalization",
             [numbers, numbers % 2, byte_array(6, 8), byte_array(5, 8), byte_array(2, 8), byte_array(8), byte_array(8),
              np.array([[1, 1, 1, 0]] * 2, np.int32), *[scale] * 5, *[np.uint8(z) for z in (120, 110, 128, 3, 5)]], 2,
             types=[1, 6])
    operator("matmul_4_bits_mixed", "MatMulNBits",
             [floats(3, 64), byte_array(6, 2, 16), floats(6, 2), None, RNG.integers(0, 2, 64).astype(np.int32)],
             constant=(1, 2, 4), K=64, N=6, block_size=32, bits=4)
    operator("matmul_normal_4", "MatMulBnb4", [floats(3, 60), byte_array(150), np.abs(floats(19))], constant=(1, 2),
             K=60, N=5, block_size=16, quant_type=1)
    operator("gather_4_bits", "GatherBlockQuantized",
             [byte_array(5, 3, 12), numbers % 5, floats(5, 3, 2), byte_array(5, 3, 1)], constant=(0, 2, 3),
             gather_axis=0, quantize_axis=2, block_size=16, bits=4)
    for activation, parameters in (("Softplus", {}), ("Elu", {"activation_alpha": .7}), ("Softsign", {}),
                                   ("ThresholdedRelu", {"activation_alpha": .3})):
        operator("gemm_" + activation.lower(), "FusedGemm", [floats(3, 4), floats(4, 5), floats(5)],
                 activation=activation, **parameters)
    operator("distances", "CDist", [floats(4, 3), floats(5, 3)], metric="euclidean")
    operator("distinct", "Unique", [np.array([2, 1, 1, 3, 4, 3], np.float32)], 3, types=[1, 7, 7])
    operator("pad", "Pad", [floats(2, 3), np.array([0, 1, 1, 0]), np.float32(2)], mode="constant")


def old_forms():
    """Rounding in float32 decides what the nearest place is, and sizes."""
    x, shrunk = floats(1, 2, 8, 10), np.array([1, 1, .6, 1.7], np.float32)
    operator("resize_10", "Resize", [x, shrunk], constant=(1,), domain="", opset=10)
    for coordinates in ("asymmetric", "half_pixel", "half_pixel_symmetric", "tf_half_pixel_for_nn"):
        for scales in (shrunk, np.array([1, 1, .7, .3], np.float32)):
            operator(f"resize_{coordinates}_{int(10 * scales[3])}", "Resize", [x, None, scales], constant=(2,), domain="",
                     opset=19, coordinate_transformation_mode=coordinates, nearest_mode="floor")
    operator("resize_one", "Resize", [x, None, np.array([1, 1, 1 / 8, 1 / 10], np.float32)], constant=(2,), domain="",
             opset=13, mode="linear", coordinate_transformation_mode="pytorch_half_pixel")
    operator("resize_corners", "Resize", [x, None, np.array([1, 1, 1.7, 1.3], np.float32)], constant=(2,), domain="",
             opset=13, mode="linear", coordinate_transformation_mode="align_corners")
    operator("resize_crop", "Resize", [x, np.array([0, 0, .1, .2, 1, 1, .8, .9], np.float32), shrunk], constant=(1, 2),
             domain="", opset=13, mode="linear", coordinate_transformation_mode="tf_crop_and_resize")
    operator("dropout_7", "Dropout", [x], 2, domain="", opset=7)
    each = [floats(2, 8, 10) for _ in range(3)]
    operator("normalization_7", "BatchNormalization", [x, *each, np.abs(floats(2, 8, 10))], domain="", opset=7, spatial=0)
    operator("regions", "MaxRoiPool", [x, np.array([[0, 0, 0, 5, 5], [0, 2, 2, 9, 9]], np.float32)], domain="",
             pooled_shape=[2, 3], spatial_scale=.7)
    operator("grid_border", "GridSample", [x, floats(1, 4, 3, 2)], domain="", mode="bicubic", padding_mode="border")


def packed(bits, *shape):
    """Bytes that hold integers in their last axis."""
    return byte_array(*shape[:-1], shape[-1] * bits // 8)


def experts():
    x, router = floats(2, 3, 32), floats(6, 4)
    operator("experts", "MoE", [x, router, floats(4, 12, 32, scale=.2), floats(4, 12), floats(4, 32, 12), floats(4, 32)],
             constant=(2, 3, 4, 5), k=2, normalize_routing_weights=1, activation_type="gelu")
    operator("experts_gated", "MoE", [x[0], router[:3], floats(4, 48, 32, scale=.4), None, floats(4, 32, 24)],
             constant=(2, 4), k=3, activation_type="swiglu", swiglu_fusion=1, activation_alpha=1.7, activation_beta=1.0,
             swiglu_limit=1.5)
    for bits, blocks in ((2, 1), (4, 2), (8, 1)):  # with a zero point for each block, or each row
        scales = [np.abs(floats(4, rows, blocks, scale=.1)) for rows in (64, 32)]
        if blocks == 1:
            scales = [s[:, :, 0] for s in scales]
        zeros = [byte_array(4, 64, 1), byte_array(4, 32, 1)] if blocks > 1 else [packed(bits, 4, 64), packed(bits, 4, 32)]
        operator(f"experts_{bits}_bits", "QMoE",
                 [x, router, packed(bits, 4, 64, 32), scales[0], floats(4, 64), packed(bits, 4, 32, 32), scales[1],
                  None, None, None, None, *zeros], constant=(2, 3, 4, 5, 6, 11, 12), k=2, activation_type="swiglu",
                 swiglu_fusion=1, expert_weight_bits=bits, **({"block_size": 32 // blocks} if blocks > 1 else {}))


def decoders():
    q, k, v, caches = floats(2, 1, 12), floats(2, 1, 12), floats(2, 1, 12), [floats(2, 3, 8, 4), floats(2, 3, 8, 4)]
    past, mask = np.array([3], np.int32), np.array([[1, 0, 1, 1], [1] * 4], np.int32)
    shared = {"num_heads": 3, "past_present_share_buffer": 1}
    operator("decoder", "DecoderMaskedMultiHeadAttention",
             [q, k, v, None, floats(1, 3, 1, 4), *caches, past, None, None, floats(36)], 4, output_qk=1, **shared)
    operator("decoder_beams", "DecoderMaskedMultiHeadAttention",
             [q, k, v, mask, floats(1, 1, 1, 4), *caches, past, np.array([2], np.int32),
              np.array([[[0, 1, 1, 0, 0, 0, 0, 0], [1, 0, 1, 0, 0, 0, 0, 0]]], np.int32)], 3, **shared)
    operator("decoder_across", "DecoderMaskedMultiHeadAttention", [q, *caches], num_heads=3)
    operator("attention_buffer", "MultiHeadAttention", [q, k, v, None, None, None, *caches, past], 3, num_heads=3)
    operator("attention_scores", "MultiHeadAttention",
             [floats(2, 5, 12), floats(2, 5, 12), floats(2, 5, 12), None, None, floats(1, 3, 5, 7), caches[0][:, :, :2],
              caches[1][:, :, :2]], 4, num_heads=3)
    operator("attention_more_keys", "MultiHeadAttention", [floats(2, 3, 12), floats(2, 6, 12), floats(2, 6, 12)],
             num_heads=3, unidirectional=1)
    places = RNG.integers(0, 10, (3, 2, 5))
    for layout in (0, 1):
        operator(f"rotary_three_{layout}", "MRotaryEmbedding", [floats(2, 5, 42), places, floats(10, 6), floats(10, 6)],
                 mrope_section=[3, 2, 1], mrope_layout=layout, num_heads=3, rotary_embedding_dim=12, scale=.5)


def gates():
    x = floats(2, 3, 20)
    operator("branch_norm", "BranchwiseRMSNorm", [x, floats(20)], num_branches=4)
    operator("gated_norm", "GatedRMSNorm", [x, floats(5), floats(2, 3, 20)], activation="sigmoid")
    operator("mix_before", "HyperConnectionPreMix", [x, floats(2, 3, 20)], num_branches=4, reduction_scale=.3)
    operator("mix_after", "HyperConnectionPostMix", [x, floats(2, 3, 5), floats(2, 3, 4), floats(2, 3, 4, 4)],
             num_branches=4)
    operator("engram", "EngramGate", [floats(2, 3, 4, 5), floats(2, 3, 4, 5), floats(2, 3, 5), *[floats(4, 5)] * 3], 2)
    operator("attention_gate", "LinearAttentionGate", [30 * x, floats(20), floats(20), x], 2)
    operator("scaled_silu", "ScaledSiLU", [x, np.float32(.4)], alpha=2.0)
    operator("gated_add", "GatedAdd", [x, floats(2, 3, 20), floats(2, 3, 1)])


def regions_and_windows():
    boxes = np.array([[.1, .2, .7, .8], [-.2, 0, .5, 1.3], [.9, .9, .1, .1]], np.float32)
    for mode, size in (("bilinear", [3, 4]), ("nearest", [1, 5])):
        operator("crop_" + mode, "CropAndResize",
                 [floats(2, 3, 6, 7), boxes, np.array([0, 1, 1], np.int32), np.array(size, np.int32)], mode=mode,
                 extrapolation_value=.5)
    mask = (RNG.random((1, 1, 6, 7)) > .2).astype(np.int32)
    operator("masked_windows", "MaxpoolWithMask", [floats(2, 3, 6, 7), mask], kernel_shape=[2, 3], strides=[2, 1])
    operator("dynamic_pads", "ConvTransposeWithDynamicPads",
             [floats(2, 4, 5, 6), floats(4, 3, 3, 3), np.array([1, 0, 0, 2]), floats(3)], strides=[2, 2])
    operator("windows", "UnfoldTensor", [floats(3, 6, 8)], dim=1, size=3, step=2)


def tokens():
    operator("hashes", "MurmurHash3", [RNG.integers(-9, 9, (3, 2)).astype(np.int32)], types=[6], positive=0, seed=7)
    operator("hashes_wide", "MurmurHash3", [RNG.integers(-9, 9, 5)], types=[6], positive=0)
    operator("repeated", "NGramRepeatBlock", [RNG.integers(0, 3, (4, 12)), floats(4, 3)], ngram_size=3)
    operator("bifurcation", "BifurcationDetector",
             [np.array([1, 5, 3, 4, 2, 7, 4]), np.array([2]), np.array([1]), np.array([5, 3, 9, 2, 7, 4, 6])], 2,
             types=[7, 7], min_ngram_size=1, max_ngram_size=3)
    operator("warped", "DynamicTimeWarping", [floats(1, 6, 7)], types=[6])


def table_in_four_bits():
    """Looked up along the axis that is quantized, with indices that are out of range."""
    shape, scales = (5, 32, 3), np.abs(floats(5, 2, 3))
    table = helper.make_tensor("t", TensorProto.INT4, shape, RNG.integers(-8, 8, 5 * 32 * 3))
    inputs = {"i": np.array([[0, -1], [31, 77]])}
    path = saved("gather_blocks", [helper.make_node("GatherBlockQuantized", ["t", "i", "s"], ["y"], domain=DOMAIN,
                                                    gather_axis=1, quantize_axis=1, block_size=16)],
                 inputs, {"y": 1}, {"s": scales}, opset=21)
    model = onnx.load(path)
    model.ir_version = 10
    model.graph.initializer.append(table)
    onnx.save(model, path)
    kept("gather_blocks", inputs, answers(path, inputs))


def further():
    experts()
    decoders()
    gates()
    regions_and_windows()
    tokens()
    table_in_four_bits()


def volumes():
    x = floats(2, 3, 5, 6, 7)
    window = {"kernel_shape": [3, 2, 3], "strides": [2, 1, 2], "pads": [1, 0, 1, 1, 1, 0], "ceil_mode": 1}
    operator("volume_largest", "MaxPool", [x], domain="", **window)
    operator("volume_mean", "AveragePool", [x], domain="", **window)
    operator("volume_mean_borders", "AveragePool", [x], domain="", count_include_pad=1, **{**window, "ceil_mode": 0})
    operator("four_axes", "Conv", [floats(2, 4, 3, 5, 6, 4), floats(6, 2, 2, 1, 3, 2), floats(6)], constant=(1, 2), domain="",
             group=2, strides=[1, 2, 1, 2], dilations=[2, 1, 1, 1], pads=[1, 0, 1, 0, 0, 0, 1, 2])
    operator("line_mean", "AveragePool", [x[0, 0]], domain="", kernel_shape=[3], strides=[2], pads=[1, 1])


def early():
    x = floats(2, 3, 4, 5)
    operator("early_affine", "Affine", [x], domain="", opset=7, alpha=2.0, beta=1.0)
    operator("early_scale", "Scale", [x], domain="", opset=7, scale=.3)
    operator("early_tanh", "ScaledTanh", [x], domain="", opset=7, alpha=.5, beta=2.0)
    operator("early_softplus", "ParametricSoftplus", [x], domain="", opset=7, alpha=.5, beta=2.0)
    operator("early_scaler", "ImageScaler", [x], domain="", opset=7, bias=[.1, .2, .3], scale=2.0)
    operator("early_crop", "Crop", [x], domain="", opset=7, border=[1, 0, 2, 1])
    operator("early_crop_sizes", "Crop", [x], domain="", opset=7, border=[1, 1, 0, 0], scale=[2, 3])
    operator("early_slice", "DynamicSlice", [x, [0, 1], [1, -1], [1, 3]], constant=(1, 2, 3), domain="", opset=7)
    operator("early_norm", "MeanVarianceNormalization", [x], domain="", opset=7, across_channels=1)
    operator("early_centred", "MeanVarianceNormalization", [x], domain="", opset=7, normalize_variance=0)
    row = [helper.make_tensor_value_info(k, 1, [3]) for k in ("s", "e", "t", "k")]
    body = helper.make_graph([helper.make_node("Add", ["s", "e"], ["t"]), helper.make_node("Mul", ["t", "e"], ["k"])],
                             "body", row[:2], row[2:])
    operator("early_scan", "Scan", [[4, 2], floats(2, 3), floats(2, 4, 3)], 2, constant=(0,), domain="", opset=8,
             body=body, num_scan_inputs=1, directions=[1])


def recurrent_parameters():
    """Only the activations that have parameters take some; directions after one another."""
    for direction, names in (("forward", ["Softsign", "LeakyRelu", "HardSigmoid"]),
                             ("bidirectional", ["Sigmoid", "Tanh", "HardSigmoid", "Elu", "Relu", "HardSigmoid"])):
        directions = len(names) // 3
        alphas = [{"LeakyRelu": .2, "HardSigmoid": .3, "Elu": .7}[n] for n in names if n[0] in "LHE"]
        operator(f"recurrent_{direction}", "LSTM",
                 [floats(4, 2, 3), floats(directions, 20, 3), floats(directions, 20, 5)], constant=(1, 2), domain="",
                 opset=14, direction=direction, hidden_size=5, activations=names, activation_alpha=alphas,
                 activation_beta=[.4] * sum(n == "HardSigmoid" for n in names))


def edges():
    x = floats(3, 4, 5)
    operator("slice_before", "Slice", [x, [-9, 2], [-99, -99], [1, 2], [-1, -2]], constant=(1, 2, 3, 4), domain="")
    operator("selu_below_one", "Selu", [x], domain="", alpha=1.2, gamma=.7)
    operator("top_none", "TopK", [x, [0]], 2, constant=(1,), types=[1, 7], domain="", axis=1)
    operator("hardmax_none", "Hardmax", [floats(3, 0)], domain="")
    image = RNG.integers(0, 256, (1, 2, 6, 7), np.uint8)
    operator("resize_bytes", "Resize", [image, None, np.array([1, 1, 1.4, 2.3], np.float32)], constant=(2,), types=[2],
             domain="", opset=13, judge=answers_of_reference, mode="cubic")
    recurrent_parameters()


def filled_places():
    """Values of an image go where a mask is set, as PyTorch exports masked_scatter."""
    node = helper.make_node
    nodes = [
        node("Conv", ["x", "w"], ["c"], kernel_shape=[3, 3]), node("Reshape", ["c", "all"], ["v"]),
        node("Equal", ["i", "mark"], ["e"]), node("Unsqueeze", ["e", "last"], ["u"]),
        node("Expand", ["u", "shape"], ["m"]), node("NonZero", ["m"], ["n"]),
        node("Transpose", ["n"], ["places"], perm=[1, 0]), node("Shape", ["places"], ["s"]),
        node("Gather", ["s", "first"], ["count"]), node("Slice", ["v", "first", "count", "first"], ["part"]),
        node("ScatterND", ["t", "places", "part"], ["y"]),
    ]
    constants = {"w": floats(4, 3, 3, 3), "all": np.array([-1]), "mark": np.array([7]), "last": np.array([-1]),
                 "shape": np.array([1, 6, 4]), "first": np.array([0])}
    inputs = {"x": floats(1, 3, 4, 5), "i": np.array([[7, 3, 7, 7, 1, 7]]), "t": floats(1, 6, 4)}
    kept("filled_places", inputs, answers(saved("filled_places", nodes, inputs, {"y": 1}, constants), inputs))


def hashes_of_ngrams():
    ids, past = RNG.integers(0, 50, (2, 6)), RNG.integers(0, 50, (2, 2))
    factors, sizes = RNG.integers(2**61, 2**62, 3) | 1, np.array([11, 13, 17, 19])
    common = dict(pad_id=3, n_head_per_ngram=2, max_ngram_size=3)
    operator("ngrams", "NGramHashMapping", [ids, factors, sizes], 2, types=[7, 7], **common)
    ids[:, 2] = 9
    segments = np.array([[0, 0, 0, 0, 1, 1], [0, 1, 1, 1, 1, 2]], np.int32)
    operator("ngrams_in_segments", "NGramHashMapping",
             [ids, factors, sizes, past, np.array([0, 11, 24, 41]), np.array(9), segments], 2, types=[7, 7],
             reset_on_eos=1, **common)
    packed = dict(state_update_capacity=2, reset_on_eos=1, **common)
    operator("ngrams_packed", "VarlenNGramHashMapping",
             [ids.reshape(-1), factors, sizes, np.array([0, 1, 7, 12], np.int32), RNG.integers(0, 50, (3, 2)),
              np.array([0, 11, 24, 41]), np.array(9), segments.reshape(-1), np.array([[0, 0], [0, 0], [0, 1]], np.int32),
              np.array([2, 1, 0], np.int32)], 4, types=[7, 7, 6, 7], **packed)
    narrow = [v.astype(np.int32) for v in (ids, factors, sizes)]
    operator("ngrams_narrow", "NGramHashMapping", narrow, 2, types=[6, 6], **common)


def words_and_blobs():
    words = np.array([[1, 2, 3, 4], [2, 0, 3, 4], [2, 0, 0, 3], [5, 1, 2, 0]], np.int32)
    operator("words", "WordConvEmbedding", [words, floats(4, 1, 2, 3), floats(4), floats(7, 3)], embedding_size=4,
             conv_window_size=2, char_embedding_size=3)
    for kind, head in ((0, 4), (1, 5)):
        blocks = byte_array(3, 2, head + 16)
        blocks[:, :, :4] = np.abs(floats(3, 2, 1)).view(np.uint8)
        blocks[:, :, 4] &= 15 if kind else 255
        operator(f"matmul_blob_{kind}", "MatMulFpQ4", [floats(2, 40), blocks.reshape(-1), np.array([40, 3])],
                 constant=(1, 2), blk_quant_type=kind)


def attention_lstm():
    """Four steps of two samples forwards and backwards, of which one ends sooner; four places of memory, then two."""
    weights = [floats(2, 24, 5 + 7, scale=.5), floats(2, 24, 6, scale=.5), floats(2, 48, scale=.5)]
    lengths, ends = np.array([4, 2], np.int32), np.array([4, 2], np.int32)
    operator("attention_lstm", "AttnLSTM",
             [floats(4, 2, 5), *weights, lengths, None, floats(2, 2, 6), floats(2, 18), floats(2, 6, 4), floats(2, 3, 4),
              floats(2, 4), floats(2, 4, 3), ends, floats(2, 9, 7, scale=.5)], 3, hidden_size=6, direction="bidirectional")


def bytes_lstm():
    """Four steps of two samples forwards and backwards; a scale for each row of gates, then one for each direction.
    Each of several threads would round the states of its own samples by themselves."""
    for name, scales in (("rows", (2, 24)), ("sides", (2,))):
        weights = [RNG.integers(-127, 128, (2, size, 24)).astype(np.int8) for size in (5, 6)]
        of = [np.abs(floats(*scales, scale=.005)) + np.float32(.002) for _ in weights]
        zeros = np.zeros(scales, np.int8)
        operator(f"lstm_bytes_{name}", "DynamicQuantizeLSTM",
                 [floats(4, 2, 5), *weights, floats(2, 48, scale=.5), None, floats(2, 2, 6), floats(2, 2, 6), None,
                  of[0], zeros, of[1], zeros], 3, constant=(1, 2, 8, 9, 10, 11),
                 judge=answers_of_one_thread, hidden_size=6, direction="bidirectional")


def sparse_attention():
    """Two layouts of blocks for four heads; the cache is written in place, which ONNX Runtime insists on."""
    rows = np.array([[0, 1, 3, 4], [0, 1, 2, 4]], np.int32)
    columns = np.array([[0, 0, 1, 2], [0, 1, 0, 2]], np.int32)
    for name, steps, total in (("prompt", 37, 37), ("step", 1, 35)):
        inputs = {"q": floats(1, steps, 64), "k": floats(1, steps, 32), "v": floats(1, steps, 32),
                  "pk": floats(1, 2, 48, 16), "pv": floats(1, 2, 48, 16), "rows": rows, "columns": columns,
                  "total": np.array([total], np.int32), "lengths": np.array([total], np.int32),
                  "cos": np.cos(floats(48, 8)), "sin": np.sin(floats(48, 8))}
        if steps == total:
            inputs["pk"][:], inputs["pv"][:] = 0, 0
        node = helper.make_node("SparseAttention", list(inputs), ["y", "nk", "nv"], domain=DOMAIN, num_heads=4,
                                kv_num_heads=2, sparse_block_size=16, do_rotary=1)
        path = saved("sparse_attention_" + name, [node], inputs, {"y": 1, "nk": 1, "nv": 1}, {})
        binding = (session := ort.InferenceSession(path, providers=["CPUExecutionProvider"])).io_binding()
        values = {k: ort.OrtValue.ortvalue_from_numpy(v.copy()) for k, v in inputs.items()}
        for k, v in values.items():
            binding.bind_ortvalue_input(k, v)
        binding.bind_output("y", "cpu")
        binding.bind_ortvalue_output("nk", values["pk"])
        binding.bind_ortvalue_output("nv", values["pv"])
        session.run_with_iobinding(binding)
        kept("sparse_attention_" + name, inputs,
             dict(zip(("y", "nk", "nv"), (o.numpy() for o in binding.get_outputs()))))


def single(name, op, inputs, outputs, constants=None, **attributes):
    """One node of the inputs in their order, an empty name where one is left out."""
    arrays = {k: v for k, v in inputs.items() if v is not None}
    names = [k if v is not None else "" for k, v in inputs.items()]
    node = helper.make_node(op, names, list(outputs), domain=DOMAIN, **attributes)
    given = {k: v for k, v in arrays.items() if k not in (constants or ())}
    path = saved(name, [node], given, {k: t for k, t in outputs.items() if k},
                 {k: v for k, v in arrays.items() if k not in given})
    kept(name, given, answers(path, given))


def packed_sequences():
    """Sequences of any lengths one after another, with states that they continue from."""
    ends = np.array([0, 1, 1, 6], np.int32)
    heads = {"q": floats(6, 2, 4), "k": floats(6, 2, 4), "v": floats(6, 4, 3)}
    more = {"decay": -np.abs(floats(6, 4, 4)), "beta": floats(6, 4), "state": floats(3, 4, 3, 4)}
    single("delta_ragged", "GatedDeltaNet",
           heads | {"ends": ends} | more | {"a": None, "bias": None, "count": np.array([1, 2, 2], np.int32)},
           {"y": 1, "next": 1, "update": 1}, beta_activation="sigmoid", qk_l2_norm=1, state_update_capacity=3)
    single("delta_joined", "GatedDeltaNet",
           {"q": floats(2, 3, 28), "k": None, "v": None, "ends": None, "decay": floats(2, 3, 4), "beta": None,
            "state": floats(2, 4, 3, 4), "a": floats(4), "bias": floats(4)},
           {"y": 1, "next": 1}, update_rule="gated", gate_activation="softplus", scale=.3)
    single("delta_bounded", "GatedDeltaNet",
           {"q": floats(6, 2, 4), "k": floats(6, 2, 4, scale=.01), "v": floats(6, 4, 3), "ends": ends,
            "decay": floats(6, 4, 4), "beta": np.abs(floats(6, 4)), "state": None, "a": floats(4), "bias": floats(16)},
           {"y": 1, "next": 1}, gate_activation="kda", gate_lower_bound=-2.0, qk_l2_norm=1)
    single("causal_packed", "VarlenCausalConvWithState",
           {"x": floats(6, 3), "w": floats(3, 1, 3), "ends": ends, "b": floats(3), "state": floats(3, 3, 4),
            "count": np.array([1, 2, 9], np.int32)},
           {"y": 1, "next": 1, "update": 1}, dilation=2, activation="silu", state_update_capacity=3)
    single("causal_dilated", "CausalConvWithState",
           {"x": floats(2, 3, 5), "w": floats(3, 1, 3), "b": None, "state": floats(2, 3, 4)}, {"y": 1, "next": 1}, dilation=2)
    single("causal_last", "CausalConvWithState",
           {"x": floats(2, 5, 3, 2), "w": floats(6, 1, 3), "b": floats(6), "state": floats(2, 2, 3, 2)}, {"y": 1, "next": 1},
           channels_last=1, activation="silu")


def padded_steps():
    """Two of three steps are valid; what padding gives, and the rest of the caches, is left open and so cut off."""
    inputs = {"q": floats(2, 3, 64), "k": floats(2, 3, 32), "v": floats(2, 3, 32), "pk": floats(2, 2, 8, 16),
              "pv": floats(2, 2, 8, 16), "ends": np.array([5, 5], np.int32), "total": np.array([8], np.int32),
              "cos": np.cos(floats(8, 8)), "sin": np.sin(floats(8, 8)), "valid": np.array([2, 2], np.int32)}
    names = list(inputs)
    node = helper.make_node
    nodes = [node("GroupQueryAttention", names[:-1] + [""] * 7 + ["valid"], ["a", "b", "c"], domain=DOMAIN, num_heads=4,
                  kv_num_heads=2, do_rotary=1)] + [
        node("Slice", [x, "zero", end, axis], [y]) for x, y, end, axis in
        (("a", "y", "two", "one"), ("b", "nk", "six", "two"), ("c", "nv", "six", "two"))]
    constants = {k: np.array([v], np.int64) for k, v in (("zero", 0), ("one", 1), ("two", 2), ("six", 6))}
    kept("shared_attention_padded", inputs,
         answers(saved("shared_attention_padded", nodes, inputs, {"y": 1, "nk": 1, "nv": 1}, constants), inputs))


def group_routers():
    logits, bias = floats(5, 12), floats(12, scale=.2)
    single("router_groups", "MoEGroupRouter", {"x": logits, "b": bias}, {"y": 1}, top_k=4, n_group=4, topk_group=2,
           router_sentinel=-50.0)
    single("router_scores", "MoEGroupRouter", {"x": floats(3, 256, scale=.1), "b": bias, "w": floats(12, 256, scale=.3)},
           {"": 1, "scores": 1, "weights": 1}, top_k=2)


def experts_of_three_bits():
    """Such weights go only with float16."""
    inputs = {"x": floats(5, 64).astype(np.float16), "router": floats(5, 3).astype(np.float16)}
    constants = {"w1": RNG.integers(0, 256, (3, 64, 24)).astype(np.uint8), "s1": np.abs(floats(3, 64, 2, scale=.05)),
                 "w2": RNG.integers(0, 256, (3, 64, 12)).astype(np.uint8), "s2": np.abs(floats(3, 64, 1, scale=.05))}
    constants = {k: v.astype(np.float16) if v.dtype == np.float32 else v for k, v in constants.items()}
    node = helper.make_node("QMoE", ["x", "router", "w1", "s1", "", "w2", "s2"], ["half"], domain=DOMAIN, k=2,
                            activation_type="swiglu", swiglu_fusion=1, expert_weight_bits=3, block_size=32,
                            weights_prepacked=0)
    casts = [helper.make_node("Cast", ["x32"], ["x"], to=10), helper.make_node("Cast", ["router32"], ["router"], to=10)]
    given = {k + "32": v.astype(np.float32) for k, v in inputs.items()}
    path = saved("half_experts_3_bits", [*casts, node, helper.make_node("Cast", ["half"], ["y"], to=1)], given, {"y": 1},
                 constants)
    kept("half_experts_3_bits", given, answers(path, given))


def packed_tables():
    """Random bytes in each format of GGUF's that has a kernel, with scales of sensible size."""
    sizes = {0: (1, 4), 1: (1, 2), 2: (32, 18), 6: (32, 22), 8: (32, 34), 13: (256, 176), 14: (256, 210),
             16: (256, 66), 17: (256, 74), 18: (256, 98), 20: (32, 18), 22: (256, 82), 23: (256, 136), 30: (1, 2),
             42: (64, 18)}
    for kind, (values, size) in sizes.items():
        blocks = 2 if values > 1 else 8
        if values > 1:
            table = RNG.integers(0, 256, (3, blocks, size)).astype(np.uint8)
            for at in {14: [208], 13: [0, 2]}.get(kind, [0]):
                table[:, :, at:at + 2] = floats(3, blocks, 1).astype(np.float16).view(np.uint8)
        else:
            table = floats(3, blocks)
            table = table.view(np.uint8) if kind == 0 else table.astype(np.float16).view(np.uint8) if kind == 1 else \
                (table.view(np.uint32) >> 16).astype(np.uint16).view(np.uint8)
        single(f"gather_packed_{kind}", "GatherPacked",
               {"table": table.reshape(3, -1), "ids": np.array([[2, -1], [7, 1]], np.int64)}, {"y": 1}, ["table"],
               packed_type=kind, K=blocks * values, output_dtype=1)


def transposed_same():
    """ConvTranspose with auto_pad SAME_UPPER and SAME_LOWER where kernels are smaller and larger than their strides;
    the last axis is symbolic."""
    rng = np.random.default_rng(9)

    def draw(*shape):
        return rng.standard_normal(shape).astype(np.float32)

    def grid(name, shape, kernels, settings):
        constants = {f"w{i}": draw(shape[1], 2, *kernel) for i, kernel in enumerate(kernels)} | {"bias": draw(4)}
        nodes = []
        for i in range(len(kernels)):
            for mode in ("SAME_UPPER", "SAME_LOWER"):
                for strides, dilations, padding in settings:
                    nodes.append(helper.make_node(
                        "ConvTranspose", ["x", f"w{i}", "bias"], [f"y{len(nodes)}"], auto_pad=mode, group=2,
                        strides=strides, dilations=dilations, output_padding=padding))
        inputs = {"x": draw(*shape)}
        path = saved(name, nodes, inputs, {n.output[0]: 1 for n in nodes}, constants, domains=())
        model = onnx.load(path)
        model.graph.input[0].type.tensor_type.shape.dim[-1].dim_param = "width"
        onnx.save(model, path)
        kept(name, inputs, answers(path, inputs))

    grid("transposed_lines", (2, 2, 5), [(k,) for k in range(1, 5)],
         [([s], [d], [p]) for s in range(1, 5) for d in (1, 2) for p in (0, 1) if p < s])
    grid("transposed_images", (1, 2, 4, 3), [(1, 3), (2, 2), (4, 1)],
         [([3, 2], [1, 1], [0, 0]), ([2, 4], [2, 1], [1, 0]), ([1, 3], [1, 2], [0, 2])])
    grid("transposed_volumes", (1, 2, 2, 3, 2), [(1, 3, 2)],
         [([3, 2, 1], [1, 1, 1], [0, 0, 0]), ([2, 4, 2], [1, 2, 1], [1, 0, 1])])


def main():
    with tempfile.TemporaryDirectory() as folder:
        inputs, path = image_net(folder, "HardSwish")
        optimized(path, "blocks_of_sixteen")
        kept("blocks_of_sixteen", inputs, answers(path, inputs))
        inputs, path = image_net(folder, "Relu")
        bytes_path = os.path.join(folder, "bytes.onnx")
        quantize_static(path, bytes_path, Samples([inputs, {"x": floats(1, 12, 7, 8)}]),
                        quant_format=QuantFormat.QOperator, weight_type=QuantType.QInt8)
        optimized(bytes_path, "bytes_channels_last")
        kept("bytes_channels_last", inputs, answers(bytes_path, inputs))
        blocks_of_eight(folder)
    attention()
    shared_attention("prompt", 4, 4, [3, 3], 0, smooth_softmax=1)
    shared_attention("sink", 4, 4, [3, 3], 0, sink=floats(4))
    shared_attention("buffer_prompt", 4, 4, [3, 3], 9)
    shared_attention("buffer", 1, 7, [6, 4], 9)
    shared_attention("joined", 1, 7, [6, 4], 6)
    others()
    old_forms()
    further()
    edges()
    volumes()
    early()
    filled_places()
    hashes_of_ngrams()
    words_and_blobs()
    attention_lstm()
    sparse_attention()
    packed_sequences()
    padded_steps()
    group_routers()
    experts_of_three_bits()
    packed_tables()
    bytes_lstm()
    transposed_same()


if __name__ == "__main__":
    main()
