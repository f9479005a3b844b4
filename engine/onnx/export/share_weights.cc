#include "onnx/export/share_weights.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "onnx/export/simplify.h"

namespace paddle::onnx {
namespace {

using formats::onnx::Attribute;
using formats::onnx::AttributeKind;
using formats::onnx::Graph;
using formats::onnx::Node;
using formats::onnx::TensorData;

/// Smaller ones are not worth a node.
constexpr int64_t kMinBytes = 1024;

bool is_candidate(const TensorData& data) {
  return (data.dtype == DType::kI8 || data.dtype == DType::kU8) && data.shape.size() == 2 &&
         data.array.storage && data.array.size() >= kMinBytes && data.array.is_contiguous();
}

bool are_equal(const TensorData& a, const TensorData& b) {
  return std::memcmp(a.array.raw(), b.array.raw(), static_cast<size_t>(a.array.size())) == 0;
}

bool are_transposed(const TensorData& a, const TensorData& b) {
  const auto *x = static_cast<const std::byte*>(a.array.raw()),
             *y = static_cast<const std::byte*>(b.array.raw());
  const int64_t rows = a.shape[0], columns = a.shape[1];
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j)
      if (x[i * columns + j] != y[j * rows + i]) return false;
  return true;
}

Node transpose_of(const std::string& from, const std::string& to) {
  Node node;
  node.op_type = "Transpose";
  node.name = to + ".transpose";
  node.inputs = {from};
  node.outputs = {to};
  Attribute perm;
  perm.name = "perm";
  perm.kind = AttributeKind::kInts;
  perm.ints = {1, 0};
  node.attributes.push_back(std::move(perm));
  return node;
}

}  // namespace

void share_integer_weights(Graph& graph) {
  std::set<std::string> tables, ports;
  for (const Node& node : graph.nodes)
    if (node.op_type == "Gather") tables.insert(node.inputs.at(0));
  for (const auto& each : graph.outputs) ports.insert(each.name);
  for (const auto& each : graph.inputs) ports.insert(each.name);
  std::map<std::pair<DType, std::vector<int64_t>>, std::vector<const TensorData*>> stored;
  std::unordered_map<std::string, std::string> same;
  std::vector<Node> transposes;
  std::set<std::string> dropped;
  const auto share = [&](const TensorData& data) {
    const std::vector<int64_t> shape(data.shape.begin(), data.shape.end());
    auto& alike = stored[{data.dtype, shape}];
    for (const TensorData* const other : alike)
      if (are_equal(*other, data)) {
        same[data.name] = other->name;
        return true;
      }
    for (const TensorData* const other : stored[{data.dtype, {shape[1], shape[0]}}])
      if (are_transposed(*other, data)) {
        transposes.push_back(transpose_of(other->name, data.name));
        return true;
      }
    alike.push_back(&data);
    return false;
  };
  for (const bool is_table : {true, false})
    for (const TensorData& each : graph.initializers)
      if (is_candidate(each) && tables.contains(each.name) == is_table &&
          !ports.contains(each.name) && share(each))
        dropped.insert(each.name);
  if (dropped.empty()) return;
  rename_reads(graph, same);
  std::erase_if(graph.initializers,
                [&](const TensorData& each) { return dropped.contains(each.name); });
  graph.nodes.insert(graph.nodes.begin(), std::make_move_iterator(transposes.begin()),
                     std::make_move_iterator(transposes.end()));
}

}  // namespace paddle::onnx
