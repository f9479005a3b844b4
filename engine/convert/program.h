#pragma once
// Programs of PaddlePaddle to ONNX files.

#include "convert/convert.h"

namespace paddle::convert {

/// Imports the program that the options name and writes it as an ONNX file. kConfig with all
/// operations that cannot be imported as notes.
Summary convert_program(const Options& options, const Printer& printer);

}  // namespace paddle::convert
