#pragma once
// Takes the large payloads out of the bytes of a protobuf message before it is parsed: `raw_data`
// of a tensor is replaced by its place in the file. So models of any size are parsed from few
// bytes, and their weights are mapped instead of copied. Nesting is bounded here, before the
// parser sees the message.

#include <string>
#include <string_view>

namespace paddle::formats::onnx {

/// What a message is, as far as it may hold tensors.
enum class MessageKind : int {
  kPlain,  ///< holds none
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

/// The message without its payloads. `path` stands in errors (kModel).
std::string without_payloads(std::string_view bytes, MessageKind kind, const std::string& path);

}  // namespace paddle::formats::onnx
