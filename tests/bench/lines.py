"""The lines that tests/bench/run measures: what each runs here, on which net, how exactly results must agree."""
from dataclasses import dataclass


@dataclass
class Line:
    """`model` is a config for training lines and a model file for inference lines.

    `tolerance` bounds the relative difference of the first losses (training) or of the outputs,
    by their largest magnitude (inference). `layouts` are tried by the peer, the faster one runs.
    Of an `exported` line the model is an ONNX file, which onnx_models.py makes, for both sides.
    A line with a `promise` measures whole processes, from their start to the answer in a file; the
    limit is then what is promised: milliseconds, and how many times a warm `cat` of the model.
    A round has several `turns` where a step is so short that all of a process's steps fall into one
    state of a shared machine, whose speed changes from second to second.
    """

    model: str
    net: str
    batch: int
    steps: int
    tolerance: float = 1e-4
    precision: str = "float32"
    training: bool = True
    dims: tuple = ()
    layouts: tuple = ("contiguous",)
    exported: bool = False
    promise: tuple = ()
    turns: int = 1


def onnx(net, batch, steps, tolerance=1e-3, precision="float32", dims=(), turns=1):
    return Line(f"{net}.onnx", net, batch, steps, tolerance, precision, training=False, dims=dims, exported=True,
                turns=turns)


IMAGES = ("contiguous", "channels_last")

LINES = {
    "lenet": Line("configs/bench/lenet.yaml", "lenet", 64, 200, turns=5),
    # Batch norm over 16 samples amplifies rounding.
    "resnet50": Line("configs/bench/resnet50.yaml", "resnet50", 16, 6, 1e-3, layouts=IMAGES),
    "gpt2_124m": Line("configs/bench/gpt2_124m.yaml", "gpt2_124m", 4, 5),
    "bert_base": Line("configs/bench/bert_base.yaml", "bert_base", 8, 6),
    "char_gpt_384": Line("configs/bench/char_gpt_384.yaml", "char_gpt_384", 12, 12),
    "deepfm": Line("configs/bench/deepfm.yaml", "deepfm", 2048, 40),
    "lstm_lm": Line("configs/bench/lstm_lm.yaml", "lstm_lm", 20, 30),
    "resnet50_bf16": Line("configs/bench/resnet50.yaml", "resnet50", 16, 8, 2e-2, "bfloat16", layouts=IMAGES),
    "gpt2_124m_bf16": Line("configs/bench/gpt2_124m.yaml", "gpt2_124m", 4, 6, 2e-2, "bfloat16"),
    "infer_lenet": Line("models/lenet.yaml", "lenet_relu", 64, 300, training=False, turns=5),
    "infer_resnet50": Line("models/resnet.yaml:resnet50", "resnet50", 16, 10, 1e-3, training=False,
                           dims=("rows=224", "columns=224"), layouts=IMAGES),
    "infer_bert": Line("models/bert.yaml", "bert_base", 8, 12, 1e-3, training=False, dims=("length=128",)),
    "infer_lenet_1": Line("models/lenet.yaml", "lenet_relu", 1, 2000, training=False, turns=5),
    "infer_resnet50_1": Line("models/resnet.yaml:resnet50", "resnet50", 1, 30, 1e-3, training=False,
                             dims=("rows=224", "columns=224"), layouts=IMAGES),
    "infer_bert_1": Line("models/bert.yaml", "bert_base", 1, 30, 1e-3, training=False, dims=("length=128",)),
    "onnx_resnet50_1": onnx("resnet50", 1, 30),
    "onnx_resnet50_16": onnx("resnet50", 16, 8),
    # One step of the last quantized layer is 0.7% of the largest output, and roundings add up.
    "onnx_resnet50_int8_1": onnx("resnet50_int8", 1, 60, 4e-2, "int8", turns=5),
    "onnx_resnet50_int8_16": onnx("resnet50_int8", 16, 15, 4e-2, "int8"),
    "onnx_bert_1": onnx("bert", 1, 25),
    "onnx_bert_8": onnx("bert", 8, 6),
    "onnx_bert_dynamic_1": onnx("bert_dynamic", 1, 30, 4e-2, "int8"),
    "onnx_bert_dynamic_8": onnx("bert_dynamic", 8, 8, 4e-2, "int8"),
    "onnx_mobilenet_v3_1": onnx("mobilenet_v3", 1, 200, turns=5),
    "onnx_gpt_cache": onnx("gpt_cache", 1, 300, dims=("past=127",), turns=5),
    "start_lenet": Line("models/lenet.yaml", "lenet_relu", 1, 20, training=False, promise=(20, 0)),
    "start_onnx_resnet50": Line("resnet50.onnx", "resnet50", 1, 15, 1e-3, training=False, exported=True,
                                promise=(60, 3)),
}

PEERS = {
    "torch": "PyTorch, eager",
    "compile": "PyTorch, torch.compile of forward and loss, fused optimizer",
    "paddle": "PaddlePaddle, dynamic",
    "ort": "ONNX Runtime, on PyTorch's export; without VNNI with session.x64quantprecision: exact sums of bytes",
}

PADDLE_NETS = ("lenet", "resnet50", "lenet_relu")


def lacks(name, peer):
    """Why a peer cannot run a line, or None."""
    line = LINES[name]
    if peer == "ort" and line.training:
        return "ONNX Runtime only infers"
    if peer != "ort" and line.promise:
        return "starts are compared with ONNX Runtime's"
    if peer != "ort" and line.exported:
        return "the line is an ONNX file"
    if peer == "paddle" and line.net not in PADDLE_NETS:
        return f"no definition of {line.net} in PaddlePaddle"
    if peer == "paddle" and line.precision != "float32":
        return "the PaddlePaddle peer runs in float32 only"
    return None
