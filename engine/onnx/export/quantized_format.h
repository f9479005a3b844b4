#pragma once
// The forms in which a file can hold quantized layers. They are exported as QuantizeLinear and
// DequantizeLinear around float operators (QDQ), which every runtime reads; the other forms name
// the integer operators themselves, for runtimes that do not find them.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "formats/onnx/model.h"

namespace paddle::onnx {

enum class QuantizedFormat : uint8_t {
  kQdq,
  /// QLinearConv, QLinearMatMul and ONNX Runtime's QGemm, QLinearAdd, QLinearMul and
  /// QLinearGlobalAveragePool; MatMulInteger where the input is quantized as it comes.
  kQOperator,
  /// Weights of 4 bits in ONNX Runtime's MatMulNBits.
  kNBits,
};

/// "qdq", "qoperator" or "nbits"; nullopt for another word.
std::optional<QuantizedFormat> parse_format(std::string_view word);

/// Rewrites the layers of a QDQ graph that have such a form and returns their number. The others
/// stay as they are. `value` gives the elements of an initializer.
/// QLinearConv and the like: https://onnx.ai/onnx/operators; com.microsoft:
/// https://github.com/microsoft/onnxruntime/blob/main/docs/ContribOperators.md
int64_t use_format(formats::onnx::Model& model, QuantizedFormat format,
                   const std::function<Array(const formats::onnx::TensorData&)>& value);

}  // namespace paddle::onnx
