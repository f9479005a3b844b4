#include "formats/onnx/attributes.h"

#include <utility>

namespace paddle::formats::onnx {

Attribute int_attribute(std::string name, int64_t value) {
  Attribute out;
  out.name = std::move(name);
  out.kind = AttributeKind::kInt;
  out.i = value;
  return out;
}

Attribute float_attribute(std::string name, double value) {
  Attribute out;
  out.name = std::move(name);
  out.kind = AttributeKind::kFloat;
  out.f = static_cast<float>(value);
  return out;
}

Attribute string_attribute(std::string name, std::string value) {
  Attribute out;
  out.name = std::move(name);
  out.kind = AttributeKind::kString;
  out.s = std::move(value);
  return out;
}

Attribute ints_attribute(std::string name, std::vector<int64_t> values) {
  Attribute out;
  out.name = std::move(name);
  out.kind = AttributeKind::kInts;
  out.ints = std::move(values);
  return out;
}

}  // namespace paddle::formats::onnx
