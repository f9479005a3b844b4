#pragma once
// Strips large payloads from a protobuf message before parsing: `raw_data` of a tensor is replaced
// by its offset in the file. Models of any size are thus parsed from few bytes, and weights are
// mapped instead of copied. Nesting is bounded here, before the parser sees the message.

#include <string>
#include <string_view>

namespace paddle::formats::onnx {

/// Message kinds, as far as they can contain tensors.
enum class MessageKind : int {
  kPlain,  ///< contains none
  kModel,
  kGraph,
  kNode,
  kAttribute,
  kTensor,
  kSparseTensor,
  kFunction,
  kSequence,
  kOptional,
  kType
};

/// The message without its payloads. `path` is used in errors (kModel).
std::string without_payloads(std::string_view bytes, MessageKind kind, const std::string& path);

}  // namespace paddle::formats::onnx
