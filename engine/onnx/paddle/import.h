#pragma once
// Inference programs of PaddlePaddle as ONNX models: each operation becomes the nodes that compute
// it, and the parameters are the initializers. Such a model runs, is exported and is trained as any
// ONNX model is.

#include <string>

#include "formats/onnx/model.h"

namespace paddle::onnx {

/// The opset of imported models; of converted ones the least.
inline constexpr int64_t kPaddleOpset = 17;

/// Whether a file is opened as a graph: an ONNX file, or a program of PaddlePaddle (also a folder
/// with `__model__`).
bool is_graph_file(const std::string& path);

/// Reads an ONNX file or a program; kModel for damaged files.
formats::onnx::Model read_graph_file(const std::string& path);

/// Reads a .pdmodel or .json program and the .pdiparams file next to it, or a folder with
/// `__model__` and its parameters. kConfig with all operations
/// that cannot be imported as notes, kModel for damaged files.
formats::onnx::Model import_paddle_program(const std::string& path);
/// The same for a file: at the lowest opset that has its operators for its types, with the shapes
/// of outputs, and valid (validity.h).
formats::onnx::Model converted_paddle_program(const std::string& path);

}  // namespace paddle::onnx
