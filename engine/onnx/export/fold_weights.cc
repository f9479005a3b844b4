#include "onnx/export/fold_weights.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <set>
#include <unordered_map>

#include "onnx/export/simplify.h"

namespace paddle::onnx {
namespace {

using formats::onnx::Graph;
using formats::onnx::Node;
using formats::onnx::TensorData;

/// A value that follows from initializers: its type, and how it is computed.
struct Folded {
  DType dtype = DType::kF32;
  Dims shape;
  std::function<Array()> value;
  std::set<std::string> leaves;  ///< the weights in it: initializers of floats with axes
};

Array packed_as(const Array& array, const Dims& shape) {
  Array out = array.contiguous();
  out.shape = shape;
  out.strides = contiguous_strides(shape);
  return out;
}

Array joined(const std::vector<Array>& parts, size_t axis, const Dims& shape) {
  Array out = Array::empty(parts[0].dtype, shape);
  int64_t outer = 1;
  for (size_t i = 0; i < axis; ++i) outer *= shape[i];
  auto* to = static_cast<std::byte*>(out.raw());
  std::vector<Array> packed;
  for (const Array& part : parts) packed.push_back(part.contiguous());
  for (int64_t o = 0; o < outer; ++o)
    for (const Array& part : packed) {
      const auto bytes = static_cast<size_t>(part.size() / outer * item_size(part.dtype));
      std::memcpy(to, static_cast<const std::byte*>(part.raw()) + static_cast<size_t>(o) * bytes,
                  bytes);
      to += bytes;
    }
  return out;
}

class Folder {
 public:
  Folder(ExportedModel& exported, const WeightLookup& weights)
      : exported_(exported), graph_(exported.model.graph), weights_(weights) {
    for (const TensorData& each : graph_.initializers) initializers_[each.name] = &each;
    for (const Node& node : graph_.nodes)
      for (const std::string& output : node.outputs) producers_[output] = &node;
  }

  /// Nullopt if it depends on more than initializers, or on an operator that is not known here.
  std::optional<Folded> fold(const std::string& name) {
    if (const auto known = initializers_.find(name); known != initializers_.end())
      return initializer(*known->second);
    const auto producer = producers_.find(name);
    if (producer == producers_.end() || producer->second->outputs.size() != 1) return std::nullopt;
    const Node& node = *producer->second;
    std::vector<Folded> inputs;
    for (const std::string& each : node.inputs) {
      auto input = each.empty() ? std::nullopt : fold(each);
      if (!input) return std::nullopt;
      inputs.push_back(std::move(*input));
    }
    auto out = of_node(node, inputs);
    if (!out) return std::nullopt;
    for (const Folded& each : inputs) out->leaves.insert(each.leaves.begin(), each.leaves.end());
    nodes_.insert(&node);
    return out;
  }

  /// The nodes that folding went through so far.
  const std::set<const Node*>& nodes() const { return nodes_; }

 private:
  std::optional<Folded> initializer(const TensorData& data) {
    Folded out{data.dtype, data.shape, {}, {}};
    if (data.dtype == DType::kString || data.dtype != data.array.dtype) return std::nullopt;
    if (is_float(data.dtype) && !data.shape.empty()) out.leaves = {data.name};
    const auto deferred = exported_.weights.find(data.name);
    if (deferred == exported_.weights.end()) {
      out.value = [array = data.array] { return array; };
    } else {
      out.leaves = {data.name};
      out.value = [weights = weights_, name = deferred->second] { return weights(name); };
    }
    return out;
  }

  static std::vector<int64_t> integers(const Folded& list) {
    const Array array = list.value();
    std::vector<int64_t> out;
    for (int64_t i = 0; i < array.size(); ++i) out.push_back(array.integer(i));
    return out;
  }

  std::optional<Folded> of_node(const Node& node, std::vector<Folded>& in) {
    if (in.empty()) return std::nullopt;
    if (node.op_type == "Identity") return in[0];
    if (node.op_type == "Concat") return concat(node, in);
    if (node.op_type == "Add") return sum(in);
    if (node.op_type == "Transpose") return transpose(node, in[0]);
    // The rest have integers as their other operands.
    for (size_t i = 1; i < in.size(); ++i)
      if (in[i].dtype != DType::kI64 || !in[i].leaves.empty()) return std::nullopt;
    if (node.op_type == "Slice") return slice(in);
    if (node.op_type == "Expand") return expand(in);
    if (node.op_type == "Gather") return element(node, in);
    if (node.op_type == "Unsqueeze" || node.op_type == "Squeeze") return move_axes(node, in);
    return std::nullopt;
  }

  static std::optional<Folded> concat(const Node& node, const std::vector<Folded>& in) {
    const auto* const attribute = node.find("axis");
    const auto rank = static_cast<int64_t>(in[0].shape.size());
    int64_t axis = attribute ? attribute->i : 0;
    axis += axis < 0 ? rank : 0;
    if (axis < 0 || axis >= rank) return std::nullopt;
    Folded out{in[0].dtype, in[0].shape, {}, {}};
    const auto at = static_cast<size_t>(axis);
    out.shape[at] = 0;
    for (const Folded& each : in) {
      if (each.dtype != out.dtype || each.shape.size() != out.shape.size()) return std::nullopt;
      out.shape[at] += each.shape[at];
    }
    out.value = [in, at, shape = out.shape] {
      std::vector<Array> parts;
      for (const Folded& each : in) parts.push_back(each.value());
      return joined(parts, at, shape);
    };
    return out;
  }

  static std::optional<Folded> sum(const std::vector<Folded>& in) {
    if (in.size() != 2 || in[0].shape != in[1].shape || !is_float(in[0].dtype) ||
        in[0].dtype == DType::kF64)
      return std::nullopt;
    Folded out{in[0].dtype, in[0].shape, {}, {}};
    out.value = [a = in[0], b = in[1]] {
      Array total = a.value().contiguous().cast(DType::kF64);
      const Array more = b.value().contiguous();
      Array result = Array::empty(DType::kF64, total.shape);
      for (int64_t i = 0; i < total.size(); ++i)
        result.data<double>()[i] = total.number(i) + more.number(i);
      return result.cast(a.dtype);
    };
    return out;
  }

  static std::optional<Folded> transpose(const Node& node, const Folded& x) {
    const auto* const order = node.find("perm");
    if (!order || order->ints.size() != x.shape.size()) return std::nullopt;
    Folded out{x.dtype, {}, {}, {}};
    for (const int64_t axis : order->ints)
      out.shape.push_back(x.shape.at(static_cast<size_t>(axis)));
    out.value = [value = x.value, permutation = order->ints] {
      Array array = value();
      Array moved = array;
      for (size_t i = 0; i < permutation.size(); ++i) {
        moved.shape[i] = array.shape[static_cast<size_t>(permutation[i])];
        moved.strides[i] = array.strides[static_cast<size_t>(permutation[i])];
      }
      return moved.contiguous();
    };
    return out;
  }

  static std::optional<Folded> slice(const std::vector<Folded>& in) {
    if (in.size() < 4) return std::nullopt;
    const auto starts = integers(in[1]), ends = integers(in[2]), axes = integers(in[3]);
    const auto steps = in.size() > 4 ? integers(in[4]) : std::vector<int64_t>(axes.size(), 1);
    Folded out{in[0].dtype, in[0].shape, {}, {}};
    std::vector<std::pair<size_t, int64_t>> begins;
    for (size_t i = 0; i < axes.size(); ++i) {
      const auto rank = static_cast<int64_t>(out.shape.size());
      const int64_t axis = axes[i] < 0 ? axes[i] + rank : axes[i];
      if (axis < 0 || axis >= rank || steps.at(i) != 1) return std::nullopt;
      const int64_t size = in[0].shape[static_cast<size_t>(axis)];
      const auto bound = [&](int64_t at) {
        return std::clamp<int64_t>(at < 0 ? at + size : at, 0, size);
      };
      const int64_t begin = bound(starts.at(i));
      out.shape[static_cast<size_t>(axis)] = std::max<int64_t>(0, bound(ends.at(i)) - begin);
      begins.emplace_back(static_cast<size_t>(axis), begin);
    }
    out.value = [value = in[0].value, begins, shape = out.shape] {
      Array array = value();
      for (const auto& [axis, begin] : begins) array.offset += begin * array.strides[axis];
      array.shape = shape;
      return array.contiguous();
    };
    return out;
  }

  /// One element of an axis, which goes.
  static std::optional<Folded> element(const Node& node, const std::vector<Folded>& in) {
    if (in.size() != 2 || !in[1].shape.empty()) return std::nullopt;
    const auto* const attribute = node.find("axis");
    const auto rank = static_cast<int64_t>(in[0].shape.size());
    int64_t axis = attribute ? attribute->i : 0, index = integers(in[1])[0];
    axis += axis < 0 ? rank : 0;
    if (axis < 0 || axis >= rank) return std::nullopt;
    const auto at = static_cast<size_t>(axis);
    index += index < 0 ? in[0].shape[at] : 0;
    if (index < 0 || index >= in[0].shape[at]) return std::nullopt;
    Folded out{in[0].dtype, in[0].shape, {}, {}};
    out.shape.erase(out.shape.begin() + axis);
    out.value = [value = in[0].value, at, index] {
      Array array = value();
      array.offset += index * array.strides[at];
      array.shape.erase(array.shape.begin() + static_cast<ptrdiff_t>(at));
      array.strides.erase(array.strides.begin() + static_cast<ptrdiff_t>(at));
      return array.contiguous();
    };
    return out;
  }

  static std::optional<Folded> expand(const std::vector<Folded>& in) {
    if (in.size() != 2 || !in[0].shape.empty()) return std::nullopt;
    Folded out{in[0].dtype, integers(in[1]), {}, {}};
    if (std::ranges::any_of(out.shape, [](int64_t n) { return n < 0; })) return std::nullopt;
    out.value = [value = in[0].value, shape = out.shape] {
      Array array = value();
      array.shape = shape;
      array.strides.assign(shape.size(), 0);
      return array.contiguous();
    };
    return out;
  }

  static std::optional<Folded> move_axes(const Node& node, const std::vector<Folded>& in) {
    if (in.size() != 2) return std::nullopt;
    const bool removes = node.op_type == "Squeeze";
    auto axes = integers(in[1]);
    Folded out{in[0].dtype, in[0].shape, {}, {}};
    const auto rank =
        static_cast<int64_t>(out.shape.size()) + (removes ? 0 : static_cast<int64_t>(axes.size()));
    for (int64_t& axis : axes) {
      axis += axis < 0 ? rank : 0;
      if (axis < 0 || axis >= rank) return std::nullopt;
    }
    std::ranges::sort(axes);
    if (removes) std::ranges::reverse(axes);
    for (const int64_t axis : axes) {
      if (removes && out.shape[static_cast<size_t>(axis)] != 1) return std::nullopt;
      if (removes)
        out.shape.erase(out.shape.begin() + axis);
      else
        out.shape.insert(out.shape.begin() + axis, 1);
    }
    out.value = [value = in[0].value, shape = out.shape] { return packed_as(value(), shape); };
    return out;
  }

  ExportedModel& exported_;
  Graph& graph_;
  const WeightLookup& weights_;
  std::unordered_map<std::string, const TensorData*> initializers_;
  std::unordered_map<std::string, const Node*> producers_;
  std::set<const Node*> nodes_;
};

/// Whether weights are read by nothing but the nodes of a set.
bool read_only_by(const Graph& graph, const std::set<std::string>& weights,
                  const std::set<const Node*>& nodes) {
  std::unordered_map<std::string, int> reads = count_reads(graph);
  for (const Node* node : nodes)
    for (const std::string& input : node->inputs)
      if (weights.contains(input)) --reads[input];
  return std::ranges::all_of(weights, [&](const std::string& name) { return reads[name] == 0; });
}

}  // namespace

void fold_recurrent_weights(ExportedModel& exported, const WeightLookup& weights) {
  Graph& graph = exported.model.graph;
  exported.weight = weights;
  struct Replacement {
    size_t node, input;
    Folded value;
    std::string name;
  };
  std::vector<Replacement> all;
  Folder folder(exported, weights);
  std::set<std::string> leaves;
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    if (node.op_type != "LSTM" && node.op_type != "GRU" && node.op_type != "RNN") continue;
    for (size_t i = 1; i < std::min<size_t>(node.inputs.size(), 4); ++i) {
      const std::string& input = node.inputs[i];
      if (input.empty() || std::ranges::any_of(graph.initializers, [&](const TensorData& each) {
            return each.name == input;
          }))
        continue;
      if (auto value = folder.fold(input); value && !value->leaves.empty()) {
        leaves.insert(value->leaves.begin(), value->leaves.end());
        std::string name = *value->leaves.begin() + "." + (i == 1 ? "W" : i == 2 ? "R" : "B");
        all.push_back({n, i, std::move(*value), std::move(name)});
      }
    }
  }
  if (all.empty() || !read_only_by(graph, leaves, folder.nodes())) return;
  auto computed = std::make_shared<std::map<std::string, std::function<Array()>>>();
  std::set<std::string> used;
  for (const auto& [name, count] : count_reads(graph)) used.insert(name);
  for (const Node& node : graph.nodes) used.insert(node.outputs.begin(), node.outputs.end());
  for (Replacement& each : all) {
    while (!used.insert(each.name).second) each.name += "_";
    TensorData tensor;
    tensor.name = each.name;
    tensor.dtype = each.value.dtype;
    tensor.shape = each.value.shape;
    const bool deferred = std::ranges::any_of(each.value.leaves, [&](const std::string& leaf) {
      return exported.weights.contains(leaf);
    });
    if (deferred) {
      const std::string key = "folded:" + each.name;
      tensor.array = Array::reserve(tensor.dtype, tensor.shape);
      exported.weights[each.name] = key;
      (*computed)[key] = each.value.value;
    } else {
      tensor.array = each.value.value();
    }
    graph.nodes[each.node].inputs[each.input] = each.name;
    graph.initializers.push_back(std::move(tensor));
  }
  exported.weight = [weights, computed](const std::string& name) {
    const auto found = computed->find(name);
    return found == computed->end() ? weights(name) : found->second();
  };
  remove_unused(graph);
  std::set<std::string> kept;
  for (const TensorData& each : graph.initializers) kept.insert(each.name);
  std::erase_if(exported.weights, [&](const auto& each) { return !kept.contains(each.first); });
}

}  // namespace paddle::onnx
