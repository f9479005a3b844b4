#pragma once
// Formats of files that are opened as graphs: ONNX, and those that other rooms add with operators
// of a domain of their own.

#include <string>

#include "formats/onnx/model.h"
#include "onnx/operator_tables.h"

namespace paddle::onnx {

/// How a node uses an input.
enum class InputUse : uint8_t {
  kWeight,
  kStatistic,     ///< a running statistic
  kConfiguration  ///< sizes, bounds, scales of quantization
};

struct NodeProperties {
  bool is_random = false;
  bool reads_types_only = false;  ///< its results follow from the types of its inputs
};

struct GraphFormat {
  bool (*is_file)(const std::string& path) = nullptr;
  formats::onnx::Model (*read)(const std::string& path) = nullptr;
  std::string domain;  ///< of its operators
  /// Called when the first operator is looked up; the table stays valid.
  OperatorTable (*operators)() = nullptr;
  NodeProperties (*properties)(const formats::onnx::Node& node) = nullptr;
  InputUse (*use_of)(const formats::onnx::Node& node, size_t input) = nullptr;
  /// Makes the node compute in float64 where it names float32.
  void (*widen)(formats::onnx::Node& node) = nullptr;
};

/// Adds a format. Call before graphs are opened by several threads.
void add_graph_format(GraphFormat format);
/// The added format with operators of this domain; nullptr if there is none.
const GraphFormat* added_format(const std::string& domain);
/// An operator of an added format; nullptr if there is none.
const Operator* added_operator(const formats::onnx::Node& node);

/// Whether a file is opened as a graph.
bool is_graph_file(const std::string& path);
/// Reads a file of any of the formats.
formats::onnx::Model read_graph_file(const std::string& path);

}  // namespace paddle::onnx
