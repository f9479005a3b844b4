#include "exporter/onnx_diff.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>

#include "base/error.h"
#include "base/text.h"
#include "exporter/sample_run.h"
#include "formats/onnx/model.h"
#include "inspect/compare.h"
#include "runtime/execute.h"

namespace paddle::exporter {
namespace {

using formats::onnx::Attribute;
using formats::onnx::Graph;
using formats::onnx::Model;
using formats::onnx::Node;
using formats::onnx::TensorData;

constexpr size_t kMaxLines = 20;

/// Lines of differences; the last one counts those that are too many.
class Lines {
 public:
  explicit Lines(std::vector<std::string>& out) : out_(out) {}
  ~Lines() {
    if (count_ > kMaxLines) out_.push_back(str("… and ", count_ - kMaxLines, " more"));
  }
  Lines(const Lines&) = delete;
  Lines& operator=(const Lines&) = delete;
  template <class... Parts>
  void add(const Parts&... parts) {
    if (++count_ <= kMaxLines) out_.push_back(str(parts...));
  }

 private:
  std::vector<std::string>& out_;
  size_t count_ = 0;
};

bool same_tensor(const TensorData& a, const TensorData& b) {
  if (a.dtype != b.dtype || a.shape != b.shape) return false;
  if (a.dtype == DType::kString) return a.strings == b.strings;
  const Array x = a.array.contiguous(), y = b.array.contiguous();
  const auto bytes = static_cast<size_t>(storage_bytes(x.dtype, x.size()));
  return bytes == 0 || std::memcmp(x.raw(), y.raw(), bytes) == 0;
}

bool same_graph(const Graph& a, const Graph& b);

bool same_attribute(const Attribute& a, const Attribute& b) {
  const auto graphs = [](const auto& x, const auto& y) { return same_graph(*x, *y); };
  return a.kind == b.kind && a.reference == b.reference && a.f == b.f && a.i == b.i && a.s == b.s &&
         a.floats == b.floats && a.ints == b.ints && a.strings == b.strings &&
         std::equal(a.tensors.begin(), a.tensors.end(), b.tensors.begin(), b.tensors.end(),
                    same_tensor) &&
         std::equal(a.graphs.begin(), a.graphs.end(), b.graphs.begin(), b.graphs.end(), graphs);
}

/// The first difference between two nodes with the same outputs; "" if there is none.
std::string node_difference(const Node& a, const Node& b) {
  if (a.op_type != b.op_type || a.domain != b.domain) return str(a.op_type, " against ", b.op_type);
  if (a.inputs != b.inputs)
    return str(a.op_type, ": inputs (", join(a.inputs, ", "), ") against (", join(b.inputs, ", "),
               ")");
  std::vector<std::string> names;
  for (const Node* node : {&a, &b})
    for (const Attribute& each : node->attributes) names.push_back(each.name);
  for (const std::string& name : names) {
    const Attribute *x = a.find(name), *y = b.find(name);
    if (!x || !y) return str(a.op_type, ": ", name, " only in the ", x ? "first" : "second");
    if (!same_attribute(*x, *y)) return str(a.op_type, ": ", name, " differs");
  }
  return "";
}

bool same_graph(const Graph& a, const Graph& b) {
  const auto named = [](const auto& x, const auto& y) {
    return x.name == y.name && x.type.text() == y.type.text();
  };
  const auto nodes = [](const Node& x, const Node& y) {
    return x.outputs == y.outputs && node_difference(x, y).empty();
  };
  const auto weights = [](const TensorData& x, const TensorData& y) {
    return x.name == y.name && same_tensor(x, y);
  };
  return std::equal(a.inputs.begin(), a.inputs.end(), b.inputs.begin(), b.inputs.end(), named) &&
         std::equal(a.outputs.begin(), a.outputs.end(), b.outputs.begin(), b.outputs.end(),
                    named) &&
         std::equal(a.nodes.begin(), a.nodes.end(), b.nodes.begin(), b.nodes.end(), nodes) &&
         std::equal(a.initializers.begin(), a.initializers.end(), b.initializers.begin(),
                    b.initializers.end(), weights);
}

void count_operators(const Graph& graph, std::map<std::string, std::pair<int64_t, int64_t>>& counts,
                     bool first) {
  for (const Node& node : graph.nodes) {
    auto& [a, b] = counts[node.domain.empty() ? node.op_type : node.domain + "." + node.op_type];
    ++(first ? a : b);
    for (const Attribute& attribute : node.attributes)
      for (const auto& inner : attribute.graphs) count_operators(*inner, counts, first);
  }
}

/// Inputs without those that have a default.
std::map<std::string, std::string> declared(const Model& model, bool inputs) {
  std::set<std::string> defaults;
  for (const TensorData& each : model.graph.initializers) defaults.insert(each.name);
  std::map<std::string, std::string> out;
  for (const auto& value : inputs ? model.graph.inputs : model.graph.outputs)
    if (!inputs || !defaults.contains(value.name)) out[value.name] = value.type.text();
  return out;
}

void compare_interface(const Model& a, const Model& b, OnnxDiff& out) {
  Lines lines(out.interface);
  for (const bool inputs : {true, false}) {
    const char* what = inputs ? "input" : "output";
    const auto first = declared(a, inputs), second = declared(b, inputs);
    for (const auto& [name, type] : first) {
      const auto other = second.find(name);
      if (other == second.end())
        lines.add(what, " '", name, "' only in the first");
      else if (other->second != type)
        lines.add(what, " '", name, "': ", type, " against ", other->second);
    }
    for (const auto& [name, type] : second)
      if (!first.contains(name)) lines.add(what, " '", name, "' only in the second");
  }
}

void compare_structure(const Model& a, const Model& b, OnnxDiff& out) {
  Lines lines(out.structure);
  std::map<std::string, std::pair<int64_t, int64_t>> versions, operators;
  for (const auto& [domain, version] : a.opsets) versions[domain].first = version;
  for (const auto& [domain, version] : b.opsets) versions[domain].second = version;
  for (const auto& [domain, both] : versions)
    if (both.first != both.second)
      lines.add("opset", domain.empty() ? "" : " of " + domain, ": ", both.first, " against ",
                both.second);
  count_operators(a.graph, operators, true);
  count_operators(b.graph, operators, false);
  for (const auto& [name, both] : operators)
    if (both.first != both.second)
      lines.add(name, ": ", both.first, " against ", both.second, " nodes");
  std::map<std::string, const Node*> by_output;
  for (const Node& node : b.graph.nodes)
    for (const std::string& name : node.outputs)
      if (!name.empty()) by_output[name] = &node;
  for (const Node& node : a.graph.nodes) {
    if (node.outputs.empty() || node.outputs[0].empty()) continue;
    const auto other = by_output.find(node.outputs[0]);
    if (other == by_output.end()) continue;
    if (const std::string difference = node_difference(node, *other->second); !difference.empty())
      lines.add("node of '", node.outputs[0], "': ", difference);
  }
}

void compare_weights(const Model& a, const Model& b, OnnxDiff& out) {
  Lines lines(out.weights);
  std::map<std::string, const TensorData*> second;
  for (const TensorData& each : b.graph.initializers) second[each.name] = &each;
  for (const TensorData& each : a.graph.initializers) {
    const auto other = second.find(each.name);
    if (other == second.end()) {
      lines.add("'", each.name, "' only in the first");
      continue;
    }
    const TensorData& found = *other->second;
    second.erase(other);
    if (each.dtype != found.dtype || each.shape != found.shape) {
      lines.add("'", each.name, "': ", text(each.dtype), str(each.shape), " against ",
                text(found.dtype), str(found.shape));
    } else if (!same_tensor(each, found)) {
      if (each.dtype == DType::kString) {
        lines.add("'", each.name, "': other strings");
        continue;
      }
      const std::string difference =
          inspect::difference(found.array, each.array, inspect::Tolerance{0, 0});
      lines.add("'", each.name, "': ", difference.empty() ? "other bits" : difference);
    }
  }
  for (const auto& [name, tensor] : second) lines.add("'", name, "' only in the second");
}

void measure(const Array& a, const Array& b, const DiffOptions& options, OutputDifference& out) {
  double largest = 0, error = 0;
  if (a.shape == b.shape && is_float(a.dtype))
    for (int64_t i = 0; i < a.size(); ++i) {
      const double x = a.number(i), y = b.number(i);
      if (!std::isfinite(x) || !std::isfinite(y)) continue;
      largest = std::max(largest, std::abs(x));
      error = std::max(error, std::abs(x - y));
    }
  out.absolute = std::max(out.absolute, error);
  if (largest > 0) out.relative = std::max(out.relative, error / largest);
  if (out.difference.empty())
    out.difference =
        inspect::difference(b, a, inspect::Tolerance{options.relative, options.absolute});
}

/// The inputs of the second file: those of the same name, else all in order.
std::vector<Array> inputs_for(const program::Model& a, const program::Model& b,
                              const std::vector<Array>& inputs) {
  std::vector<Array> out;
  for (const auto& [name, type] : b.inputs())
    for (size_t i = 0; i < inputs.size(); ++i)
      if (a.inputs()[i].first == name) out.push_back(inputs[i]);
  return out.size() == b.inputs().size() ? out : inputs;
}

void compare_results(const std::string& a, const std::string& b, const DiffOptions& options,
                     OnnxDiff& out) {
  const auto first = program::load_model(a, {}), second = program::load_model(b, {});
  if (first->inputs().size() != second->inputs().size()) {
    out.not_run = "the files have different numbers of inputs";
    return;
  }
  for (const std::string& name : first->outputs()) out.outputs.push_back({name, 0, 0, ""});
  for (int i = 0; i < options.runs; ++i) {
    const auto sample = run_on_samples(*first, options.dims, i);
    if (!sample) {
      out.not_run = "the first file takes none of the inputs that were tried (--dim NAME=SIZE)";
      return;
    }
    const auto& found = second->run(inputs_for(*first, *second, sample->inputs));
    const auto& names = second->outputs();
    for (size_t k = 0; k < out.outputs.size(); ++k) {
      const auto at = std::find(names.begin(), names.end(), out.outputs[k].name);
      const size_t place = at == names.end() ? k : static_cast<size_t>(at - names.begin());
      if (place < found.size())
        measure(sample->outputs[k], found[place], options, out.outputs[k]);
      else
        out.outputs[k].difference = "the second file has no such output";
    }
    if (free_symbols(*first).empty() && first->inputs().empty()) break;
  }
}

}  // namespace

bool OnnxDiff::same_results() const {
  return not_run.empty() && std::all_of(outputs.begin(), outputs.end(),
                                        [](const auto& each) { return each.difference.empty(); });
}

OnnxDiff diff_onnx(const std::string& a, const std::string& b, const DiffOptions& options) {
  OnnxDiff out;
  {
    const Model first = formats::onnx::read_model(a), second = formats::onnx::read_model(b);
    compare_interface(first, second, out);
    compare_structure(first, second, out);
    compare_weights(first, second, out);
  }
  if (options.runs == 0) return out;
  try {
    compare_results(a, b, options, out);
  } catch (const Error& error) {
    if (out.interface.empty()) throw;
    out.not_run = error.message();
  }
  return out;
}

}  // namespace paddle::exporter
