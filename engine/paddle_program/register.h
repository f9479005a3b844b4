#pragma once
// Programs of PaddlePaddle as a format of graphs: each operation of a program is a node of the
// domain `paddle`, which computes with the operations of the engine. Such a graph runs, is
// exported, quantized and trained as that of an ONNX file is.

#include <string>

#include "formats/onnx/model.h"

namespace paddle::paddle_program {

/// Makes the graphs of onnx/ open programs. Further calls do nothing.
void register_programs();

/// Whether a file is opened as a graph: an ONNX file, or a program of PaddlePaddle (also a folder
/// with `__model__`).
bool is_graph_file(const std::string& path);

/// Reads a .pdmodel or .json program and the .pdiparams file next to it, or a folder with
/// `__model__` and its parameters. kConfig with all operations that cannot be imported as notes,
/// kModel for damaged files.
formats::onnx::Model import_program(const std::string& path);

}  // namespace paddle::paddle_program
