#pragma once
// Facts about a value that are known without running its graph: its type, its rank, and its numbers
// where it is a constant.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "formats/onnx/model.h"
#include "onnx/validity/schema.h"

namespace paddle::onnx {

struct KnownValue {
  TypeSet type = 0;  ///< one bit; 0: unknown
  std::optional<int64_t> rank;
  const formats::onnx::TensorData* constant = nullptr;
};

KnownValue known_value(const formats::onnx::ValueType& type);
KnownValue known_value(const formats::onnx::TensorData& tensor);

/// Types of the results that a node's schema leaves open, such as Cast's; 0 where unknown.
TypeSet result_type(const formats::onnx::Node& node, const std::vector<KnownValue>& inputs);
/// Ranks of the results; nullopt where unknown.
std::optional<int64_t> result_rank(const formats::onnx::Node& node,
                                   const std::vector<KnownValue>& inputs, size_t output);
/// The fault of the ranks of a node's operands or of its axes; "" if there is none.
std::string rank_problem(const formats::onnx::Node& node, const std::vector<KnownValue>& inputs);

}  // namespace paddle::onnx
