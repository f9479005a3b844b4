// Any bytes as an ONNX model: read, checked, traced, and run as a plan and node by node on small
// inputs of the types that it declares, with little memory and few turns of loops.

#include "base/limits.h"
#include "base/parallel.h"
#include "fuzz/fuzz_target.h"
#include "onnx/graph/session.h"

namespace {

using namespace paddle;
using formats::onnx::ValueType;

/// A value of this type; sizes that the model leaves open are 2.
onnx::Value small_value(const ValueType& type) {
  switch (type.kind) {
    case ValueType::Kind::kSequence:
      return onnx::Value::sequence({small_value(*type.element)});
    case ValueType::Kind::kOptional:
      return onnx::Value::optional(small_value(*type.element));
    case ValueType::Kind::kTensor:
    case ValueType::Kind::kUnknown:
      break;
    default:
      fail(ErrorCode::kData, "no value of the type ", type);
  }
  Dims shape;
  int64_t count = 1;
  if (type.shape)
    for (const Dim& d : *type.shape) {
      shape.push_back(d.is_constant() ? d.value() : 2);
      if (shape.size() > 64 || shape.back() > (1 << 16) || (count *= shape.back()) > 1 << 16)
        fail(ErrorCode::kData, "an input is too large");
    }
  const DType dtype = type.dtype.value_or(DType::kF32);
  if (dtype == DType::kString)
    return onnx::Value::of_strings(shape,
                                   std::vector<std::string>(static_cast<size_t>(count), "a"));
  Array array = Array::zeros(dtype, shape);
  if (info(dtype).has_kernels && count > 0) {
    array = Array::zeros(DType::kF32, shape);
    for (int64_t i = 0; i < count; ++i) array.data<float>()[i] = static_cast<float>(i % 5);
    array = array.cast(dtype);
  }
  return onnx::Value(Tensor(array));
}

void run(const std::string& path, onnx::Mode mode) {
  onnx::SessionOptions options;
  options.mode = mode;
  onnx::Session session(path, options);
  onnx::Values inputs;
  for (const auto& input : session.inputs()) inputs.push_back(small_value(input.type));
  session.run(inputs);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const bool small = [] {
    limits() = {.memory = int64_t{1} << 22, .max_loop_iterations = 256, .expanded_nodes = 1 << 12};
    set_thread_count(1);
    return true;
  }();
  (void)small;
  const std::string path = fuzz::input_file({data, size}, "model.onnx");
  fuzz::expect_documented_end([&] { run(path, onnx::Mode::kAutomatic); });
  fuzz::expect_documented_end([&] { run(path, onnx::Mode::kPartitions); });
  return 0;
}
