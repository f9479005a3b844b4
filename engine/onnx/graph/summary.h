#pragma once
// What an ONNX file holds, told in lines: inputs and outputs, operators by count, parameters, FLOPs
// and what cannot be run.

#include <map>
#include <string>

namespace paddle::onnx {

/// `dims` gives sizes for symbolic dims (1 where it gives none), from which FLOPs are counted.
/// kModel if the file cannot be read.
std::string summarize(const std::string& path, const std::map<std::string, int64_t>& dims);

}  // namespace paddle::onnx
