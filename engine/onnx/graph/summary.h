#pragma once
// Summary of an ONNX file: inputs, outputs, operator counts, parameters, FLOPs and unsupported
// operators.

#include <map>
#include <string>

namespace paddle::onnx {

/// `dims` assigns sizes to symbolic dims (default 1) for counting FLOPs. kModel if the file cannot
/// be read.
std::string summarize(const std::string& path, const std::map<std::string, int64_t>& dims);

/// The same as a JSON object.
std::string summarize_json(const std::string& path, const std::map<std::string, int64_t>& dims);

}  // namespace paddle::onnx
