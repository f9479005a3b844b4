#pragma once
// Attributes of nodes that are built rather than read.

#include <cstdint>
#include <string>
#include <vector>

#include "formats/onnx/model.h"

namespace paddle::formats::onnx {

Attribute int_attribute(std::string name, int64_t value);
/// Stored as float32.
Attribute float_attribute(std::string name, double value);
Attribute string_attribute(std::string name, std::string value);
Attribute ints_attribute(std::string name, std::vector<int64_t> values);

}  // namespace paddle::formats::onnx
