"""Layers and functions as files of other programs."""
import os
import tempfile

from . import _paddle, jit


def onnx(function, path, input_spec, opset=17, outputs=None):
    """Writes a layer or a function as an ONNX file, which is compared with it on random inputs.

    `input_spec` and `outputs` are those of jit.save; words in types are sizes that the file takes as they come.
    UsageError if an operation has no ONNX form.
    """
    path = os.fspath(path)
    with tempfile.TemporaryDirectory() as folder:
        model = os.path.join(folder, "model")
        jit.save(function, model, input_spec, outputs)
        try:
            _paddle.export_onnx(model, path, opset)
        except _paddle.Error as error:
            error.args = (str(error).replace(model, path),)
            raise
