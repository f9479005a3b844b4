#include "onnx/export/quantized_format.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <unordered_map>
#include <vector>

#include "base/text.h"
#include "formats/onnx/attributes.h"
#include "onnx/export/simplify.h"

namespace paddle::onnx {
namespace {

using formats::onnx::Attribute;
using formats::onnx::Graph;
using formats::onnx::Node;
using formats::onnx::TensorData;

const char* const kContrib = "com.microsoft";

/// A quantized operand: the inputs of a DequantizeLinear, or the last of a QuantizeLinear.
struct Quantized {
  std::string value, scale, zero_point;
  int64_t axis = 1, block = 0;
};

int64_t integer_of(const Node& node, const char* name, int64_t other) {
  const Attribute* const found = node.find(name);
  return found ? found->i : other;
}

/// Element `at` of a packed array of 4-bit integers.
int64_t integer_of_4_bits(const Array& array, int64_t at) {
  const auto byte = static_cast<const uint8_t*>(array.raw())[at / 2];
  const int code = at % 2 == 0 ? byte & 15 : byte >> 4;
  return array.dtype == DType::kI4 && code >= 8 ? code - 16 : code;
}

class Rewriter {
 public:
  Rewriter(formats::onnx::Model& model, const std::function<Array(const TensorData&)>& value)
      : model_(model), graph_(model.graph), value_(value) {
    index();
  }

  int64_t run(QuantizedFormat format) {
    int64_t changed = 0;
    // An added node goes before the one that reads it.
    std::vector<Node> nodes = std::move(graph_.nodes);
    graph_.nodes.clear();
    nodes_ = &nodes;
    index_nodes();
    for (size_t i = 0; i < nodes.size(); ++i) {
      at_ = i;
      const bool done = format == QuantizedFormat::kQOperator ? rewrite_integer(nodes[i])
                                                              : rewrite_4_bits(nodes[i]);
      changed += done ? 1 : 0;
      for (Node& each : added_) graph_.nodes.push_back(std::move(each));
      added_.clear();
      graph_.nodes.push_back(nodes[i]);
    }
    remove_unused(graph_);
    return changed;
  }

 private:
  // --- the graph ---

  void index() {
    for (size_t i = 0; i < graph_.initializers.size(); ++i) {
      constants_[graph_.initializers[i].name] = i;
      names_.insert(graph_.initializers[i].name);
    }
    for (const auto& input : graph_.inputs) names_.insert(input.name);
    reads_ = count_reads(graph_);
    add_names(graph_);
  }
  void add_names(const Graph& graph) {
    for (const Node& node : graph.nodes) {
      names_.insert(node.outputs.begin(), node.outputs.end());
      for (const Attribute& attribute : node.attributes)
        for (const auto& inner : attribute.graphs) add_names(*inner);
    }
  }
  void index_nodes() {
    for (size_t i = 0; i < nodes_->size(); ++i)
      for (const std::string& name : (*nodes_)[i].outputs)
        if (!name.empty()) producers_[name] = i;
  }
  /// The node that makes a value, if it is of that type; null otherwise.
  const Node* producer(const std::string& name, std::string_view type) const {
    const auto found = producers_.find(name);
    if (found == producers_.end()) return nullptr;
    const Node& node = (*nodes_)[found->second];
    return node.op_type == type && node.domain.empty() ? &node : nullptr;
  }
  bool is_read_once(const std::string& name) const {
    const auto found = reads_.find(name);
    return found != reads_.end() && found->second == 1;
  }
  const TensorData* constant(const std::string& name) const {
    const auto found = constants_.find(name);
    return found == constants_.end() ? nullptr : &graph_.initializers[found->second];
  }
  std::optional<Array> elements(const std::string& name) const {
    const TensorData* const found = constant(name);
    return found ? std::optional(value_(*found)) : std::nullopt;
  }
  std::string fresh(const std::string& hint) {
    std::string name = hint;
    for (int i = 1; !names_.insert(name).second; ++i) name = str(hint, "_", i);
    return name;
  }
  std::string add_constant(Array array, const std::string& hint) {
    TensorData data;
    data.name = fresh(hint);
    data.dtype = array.dtype;
    data.shape = array.shape;
    data.array = std::move(array);
    constants_[data.name] = graph_.initializers.size();
    graph_.initializers.push_back(std::move(data));
    return graph_.initializers.back().name;
  }
  /// A node before the one at hand; returns the name of its output.
  std::string add(const std::string& hint, std::string type, const char* domain,
                  std::vector<std::string> inputs, std::vector<Attribute> attributes = {}) {
    Node node;
    replace(node, std::move(type), domain, std::move(inputs), std::move(attributes));
    node.outputs = {fresh(hint)};
    node.source = (*nodes_)[at_].source;
    added_.push_back(std::move(node));
    return added_.back().outputs[0];
  }
  /// Puts a node in the place of the one at hand.
  static void replace(Node& node, std::string type, const char* domain,
                      std::vector<std::string> inputs, std::vector<Attribute> attributes) {
    node.op_type = std::move(type);
    node.domain = domain;
    node.inputs = std::move(inputs);
    node.attributes = std::move(attributes);
  }
  void needs_contrib() { model_.opsets[kContrib] = 1; }

  // --- quantized operands ---

  std::optional<Quantized> dequantized(const std::string& name) const {
    const Node* const node = producer(name, "DequantizeLinear");
    if (!node) return std::nullopt;
    return Quantized{node->inputs[0], node->inputs[1],
                     node->inputs.size() > 2 ? node->inputs[2] : "", integer_of(*node, "axis", 1),
                     integer_of(*node, "block_size", 0)};
  }
  bool is_scalar(const std::string& name) const {
    const TensorData* const found = constant(name);
    return found ? found->shape.empty() : producers_.contains(name);
  }
  /// Integer operators need a zero point; of a scale only it is 0, and the type is the value's.
  std::string zero_point_of(const Quantized& q) {
    if (!q.zero_point.empty()) return q.zero_point;
    const TensorData* const values = constant(q.value);
    const TensorData* const scale = constant(q.scale);
    return values && scale ? add_constant(Array::zeros(values->dtype, scale->shape), "zero_point")
                           : "";
  }
  /// Whether every scale of a bias is that of the products it is added to, so that it is a sum of
  /// theirs.
  bool has_units_of(const Quantized& bias, const Quantized& x, const Quantized& weight) const {
    const auto units = elements(bias.scale), left = elements(x.scale),
               right = elements(weight.scale);
    const TensorData* const sums = constant(bias.value);
    if (!units || !left || !right || !sums || sums->dtype != DType::kI32) return false;
    if (units->size() != right->size() && units->size() != 1) return false;
    constexpr double kRounding = 1e-6;
    for (int64_t i = 0; i < units->size(); ++i) {
      const double wanted = left->number(0) * right->number(i);
      if (std::abs(units->number(i) - wanted) > kRounding * wanted) return false;
    }
    return true;
  }

  // --- integer operators ---

  bool rewrite_integer(Node& node) {
    if (!node.domain.empty()) return false;
    if (node.op_type == "QuantizeLinear") return rewrite_quantized(node);
    if (node.op_type == "MatMul" || node.op_type == "Gemm")
      return rewrite_dynamic(node) || rewrite_float_gemm(node);
    return false;
  }

  /// [DequantizeLinear] → operator → [Relu] → QuantizeLinear.
  bool rewrite_quantized(Node& node) {
    Quantized out{"", node.inputs[1], node.inputs.size() > 2 ? node.inputs[2] : ""};
    if (out.zero_point.empty() || !is_scalar(out.scale)) return false;
    std::string name = node.inputs[0];
    if (const Node* const relu = producer(name, "Relu");
        relu && is_read_once(name) && begins_at_zero(out))
      name = relu->inputs[0];
    const auto found = producers_.find(name);
    if (found == producers_.end() || !is_read_once(name)) return false;
    const Node& op = (*nodes_)[found->second];
    if (!op.domain.empty()) return false;
    if (op.op_type == "Conv") return rewrite_conv(op, out, node);
    if (op.op_type == "MatMul") return rewrite_matmul(op, out, node);
    if (op.op_type == "Gemm") return rewrite_gemm(op, &out, node);
    if (op.op_type == "Add" || op.op_type == "Mul") return rewrite_binary(op, out, node);
    if (op.op_type == "GlobalAveragePool") return rewrite_pool(op, out, node);
    return false;
  }

  /// Whether no integer of the result means a number below 0, so that it needs no Relu.
  bool begins_at_zero(const Quantized& out) const {
    const auto zero = elements(out.zero_point);
    if (!zero || zero->size() != 1) return false;
    const int64_t least = zero->dtype == DType::kI8 ? -128 : 0;
    return (zero->dtype == DType::kI8 || zero->dtype == DType::kU8) && zero->integer(0) == least;
  }

  bool rewrite_conv(const Node& conv, const Quantized& out, Node& node) {
    const auto x = dequantized(conv.inputs[0]), weight = dequantized(conv.inputs[1]);
    if (!x || !weight || !is_scalar(x->scale)) return false;
    if (!is_scalar(weight->scale) && weight->axis != 0) return false;
    std::vector<std::string> inputs = {x->value,      x->scale,      zero_point_of(*x),
                                       weight->value, weight->scale, zero_point_of(*weight),
                                       out.scale,     out.zero_point};
    if (conv.inputs.size() > 2 && !conv.inputs[2].empty()) {
      const auto bias = dequantized(conv.inputs[2]);
      if (!bias || !has_units_of(*bias, *x, *weight)) return false;
      inputs.push_back(bias->value);
    }
    replace(node, "QLinearConv", "", std::move(inputs), conv.attributes);
    return true;
  }

  bool rewrite_matmul(const Node& product, const Quantized& out, Node& node) {
    const auto x = dequantized(product.inputs[0]), y = dequantized(product.inputs[1]);
    if (!x || !y || !is_scalar(x->scale)) return false;
    const TensorData* const weight = constant(y->value);
    if (!is_scalar(y->scale) && (!weight || weight->shape.size() != 2 || y->axis != 1))
      return false;
    replace(node, "QLinearMatMul", "",
            {x->value, x->scale, zero_point_of(*x), y->value, y->scale, zero_point_of(*y),
             out.scale, out.zero_point},
            {});
    return true;
  }

  /// `out` null: the result is float.
  bool rewrite_gemm(const Node& gemm, const Quantized* out, Node& node) {
    const auto x = dequantized(gemm.inputs[0]), y = dequantized(gemm.inputs[1]);
    if (!x || !y || !is_scalar(x->scale) || producer(x->value, "DynamicQuantizeLinear"))
      return false;
    const int64_t columns = integer_of(gemm, "transB", 0) != 0 ? 0 : 1;
    if (!is_scalar(y->scale) && y->axis != columns) return false;
    const Attribute* const beta = gemm.find("beta");
    if (beta && beta->f != 1) return false;
    std::vector<std::string> inputs = {x->value, x->scale, zero_point_of(*x),
                                       y->value, y->scale, zero_point_of(*y)};
    if (gemm.inputs.size() > 2 && !gemm.inputs[2].empty()) {
      const auto bias = dequantized(gemm.inputs[2]);
      if (!bias || !has_units_of(*bias, *x, *y)) return false;
      inputs.push_back(bias->value);
    } else if (out) {
      inputs.emplace_back();
    }
    if (out) {
      inputs.push_back(out->scale);
      inputs.push_back(out->zero_point);
    }
    std::vector<Attribute> attributes;
    for (const Attribute& each : gemm.attributes)
      if (each.name != "beta") attributes.push_back(each);
    needs_contrib();
    replace(node, "QGemm", kContrib, std::move(inputs), std::move(attributes));
    return true;
  }
  bool rewrite_float_gemm(Node& node) {
    if (node.op_type != "Gemm" || is_quantized_next(node.outputs[0])) return false;
    return rewrite_gemm(Node(node), nullptr, node);
  }
  /// Whether the only reader of a value, past a Relu, quantizes it: it is rewritten from there.
  bool is_quantized_next(const std::string& name) const {
    if (!is_read_once(name)) return false;
    for (const Node& node : *nodes_)
      if (std::find(node.inputs.begin(), node.inputs.end(), name) != node.inputs.end()) {
        if (node.op_type == "Relu") return is_quantized_next(node.outputs[0]);
        return node.op_type == "QuantizeLinear";
      }
    return false;
  }

  bool rewrite_binary(const Node& op, const Quantized& out, Node& node) {
    const auto x = dequantized(op.inputs[0]), y = dequantized(op.inputs[1]);
    if (!x || !y || !is_scalar(x->scale) || !is_scalar(y->scale)) return false;
    needs_contrib();
    replace(node, "QLinear" + op.op_type, kContrib,
            {x->value, x->scale, zero_point_of(*x), y->value, y->scale, zero_point_of(*y),
             out.scale, out.zero_point},
            {});
    return true;
  }

  bool rewrite_pool(const Node& op, const Quantized& out, Node& node) {
    const auto x = dequantized(op.inputs[0]);
    if (!x || !is_scalar(x->scale)) return false;
    needs_contrib();
    replace(node, "QLinearGlobalAveragePool", kContrib,
            {x->value, x->scale, zero_point_of(*x), out.scale, out.zero_point},
            {formats::onnx::int_attribute("channels_last", 0)});
    return true;
  }

  /// A product of what DynamicQuantizeLinear has quantized: MatMulInteger, and its sums as numbers.
  bool rewrite_dynamic(Node& node) {
    const auto x = dequantized(node.inputs[0]), y = dequantized(node.inputs[1]);
    if (!x || !y || !producer(x->value, "DynamicQuantizeLinear")) return false;
    if (integer_of(node, "transA", 0) != 0) return false;
    const bool transposed = integer_of(node, "transB", 0) != 0;
    for (const char* factor : {"alpha", "beta"})
      if (const Attribute* const a = node.find(factor); a && a->f != 1) return false;
    const TensorData* const weight = constant(y->value);
    if (!weight || ((transposed || !is_scalar(y->scale)) && weight->shape.size() != 2) ||
        (!is_scalar(y->scale) && y->axis != (transposed ? 0 : 1)))
      return false;
    const std::string base = node.outputs[0];
    const std::string factor = transposed ? add(base + "_weight", "Transpose", "", {y->value},
                                                {formats::onnx::ints_attribute("perm", {1, 0})})
                                          : y->value;
    const std::string sums = add(base + "_sums", "MatMulInteger", "",
                                 {x->value, factor, x->zero_point, zero_point_of(*y)});
    const std::string numbers =
        add(base + "_numbers", "Cast", "", {sums},
            {formats::onnx::int_attribute("to", formats::onnx::number_of_dtype(DType::kF32))});
    const std::string units = add(base + "_scale", "Mul", "", {x->scale, y->scale});
    if (node.inputs.size() > 2 && !node.inputs[2].empty()) {
      const std::string bias = node.inputs[2];
      const std::string product = add(base + "_product", "Mul", "", {numbers, units});
      replace(node, "Add", "", {product, bias}, {});
    } else {
      replace(node, "Mul", "", {numbers, units}, {});
    }
    return true;
  }

  // --- weights of 4 bits ---

  /// A matrix of 4-bit integers by columns in blocks, as MatMulNBits reads it.
  struct Blocks {
    int64_t rows = 0, columns = 0, block = 0;
    std::string packed, scales, zero_points;
  };

  std::optional<Blocks> blocks_of(const std::string& name) {
    // Scales by groups of rows: [groups, group, columns], then a Reshape to the matrix.
    std::string weight = name;
    const Node* const reshape = producer(name, "Reshape");
    if (reshape) weight = reshape->inputs[0];
    const auto q = dequantized(weight);
    const TensorData* const data = q ? constant(q->value) : nullptr;
    if (!data || info(data->dtype).bits != 4 || !constant(q->scale)) return std::nullopt;
    const Array scales = value_(*constant(q->scale));
    Blocks out;
    int64_t group = 0;
    if (reshape) {
      if (data->shape.size() != 3 || q->axis != 1 || q->block != data->shape[1])
        return std::nullopt;
      const auto shape = elements(reshape->inputs[1]);
      out.rows = data->shape[0] * data->shape[1];
      out.columns = data->shape[2];
      group = data->shape[1];
      if (!shape || shape->size() != 2 || shape->integer(0) != out.rows) return std::nullopt;
    } else {
      if (data->shape.size() != 2) return std::nullopt;
      out.rows = data->shape[0];
      out.columns = data->shape[1];
      if (q->block > 0) {
        if (q->axis != 0) return std::nullopt;
        group = q->block;
      } else if (!is_scalar(q->scale) && q->axis != 1) {
        return std::nullopt;
      }
    }
    // The least block of the operator is 16, and its blocks are powers of two. A scale for the
    // whole column is that of each block.
    constexpr int64_t kMin = 16, kUsual = 32;
    out.block = group == 0 ? kUsual : group;
    if (out.block < kMin || (out.block & (out.block - 1)) != 0) return std::nullopt;
    const auto scale_index = [&](int64_t block, int64_t column) {
      if (group == 0) return scales.size() == 1 ? int64_t{0} : column;
      return block * out.columns + column;
    };
    std::optional<Array> zeros;
    if (!q->zero_point.empty()) zeros = elements(q->zero_point);
    if (!q->zero_point.empty() && (!zeros || zeros->dtype != data->dtype)) return std::nullopt;
    pack(out, value_(*data), scales, zeros, scale_index, q->value);
    return out;
  }

  template <class Index>
  void pack(Blocks& out, const Array& values, const Array& scales,
            const std::optional<Array>& zeros, const Index& scale_index, const std::string& name) {
    // Signed integers are stored 8 higher.
    const int64_t raised = values.dtype == DType::kI4 ? 8 : 0;
    const int64_t blocks = (out.rows + out.block - 1) / out.block, half = out.block / 2;
    Array packed = Array::zeros(DType::kU8, {out.columns, blocks, half});
    Array unit = Array::zeros(DType::kF32, {out.columns * blocks});
    Array zero = Array::zeros(DType::kU8, {out.columns * ((blocks + 1) / 2)});
    auto* const bytes = packed.data<uint8_t>();
    auto* const zero_bytes = zero.data<uint8_t>();
    const Array numbers = values.contiguous();
    const auto set = [](uint8_t* to, int64_t at, int64_t value) {
      to[at / 2] = static_cast<uint8_t>(to[at / 2] | (value << (at % 2 == 0 ? 0 : 4)));
    };
    for (int64_t column = 0; column < out.columns; ++column)
      for (int64_t b = 0; b < blocks; ++b) {
        const int64_t at = scale_index(b, column);
        const int64_t zero_point =
            raised + (zeros ? integer_of_4_bits(*zeros, zeros->size() == 1 ? 0 : at) : 0);
        unit.data<float>()[column * blocks + b] = static_cast<float>(scales.number(at));
        set(zero_bytes + column * ((blocks + 1) / 2), b, zero_point);
        for (int64_t i = 0; i < out.block; ++i) {
          const int64_t row = b * out.block + i;
          set(bytes + (column * blocks + b) * half, i,
              row < out.rows ? raised + integer_of_4_bits(numbers, row * out.columns + column)
                             : zero_point);
        }
      }
    out.packed = add_constant(std::move(packed), name + ".packed");
    out.scales = add_constant(std::move(unit), name + ".scales");
    // Without zero points they are 8.
    if (zeros || raised == 0)
      out.zero_points = add_constant(std::move(zero), name + ".zero_points");
  }

  bool rewrite_4_bits(Node& node) {
    if (!node.domain.empty() || (node.op_type != "MatMul" && node.op_type != "Gemm")) return false;
    if (integer_of(node, "transA", 0) != 0 || integer_of(node, "transB", 0) != 0) return false;
    for (const char* factor : {"alpha", "beta"})
      if (const Attribute* const a = node.find(factor); a && a->f != 1) return false;
    auto known = packed_.find(node.inputs[1]);
    if (known == packed_.end()) {
      const auto blocks = blocks_of(node.inputs[1]);
      if (!blocks) return false;
      known = packed_.emplace(node.inputs[1], *blocks).first;
    }
    const Blocks& weight = known->second;
    std::vector<std::string> inputs = {node.inputs[0], weight.packed, weight.scales};
    if (!weight.zero_points.empty()) inputs.push_back(weight.zero_points);
    std::vector<Attribute> attributes = {formats::onnx::int_attribute("K", weight.rows),
                                         formats::onnx::int_attribute("N", weight.columns),
                                         formats::onnx::int_attribute("bits", 4),
                                         formats::onnx::int_attribute("block_size", weight.block)};
    needs_contrib();
    if (node.inputs.size() > 2 && !node.inputs[2].empty()) {
      const std::string bias = node.inputs[2];
      const std::string product = add(node.outputs[0] + "_product", "MatMulNBits", kContrib,
                                      std::move(inputs), std::move(attributes));
      replace(node, "Add", "", {product, bias}, {});
    } else {
      replace(node, "MatMulNBits", kContrib, std::move(inputs), std::move(attributes));
    }
    return true;
  }

  formats::onnx::Model& model_;
  Graph& graph_;
  const std::function<Array(const TensorData&)>& value_;
  std::vector<Node>* nodes_ = nullptr;
  std::vector<Node> added_;
  size_t at_ = 0;
  std::unordered_map<std::string, size_t> constants_, producers_;
  std::unordered_map<std::string, int> reads_;
  std::unordered_map<std::string, Blocks> packed_;
  std::set<std::string> names_;
};

}  // namespace

std::optional<QuantizedFormat> parse_format(std::string_view word) {
  if (word == "qdq") return QuantizedFormat::kQdq;
  if (word == "qoperator") return QuantizedFormat::kQOperator;
  if (word == "nbits") return QuantizedFormat::kNBits;
  return std::nullopt;
}

int64_t use_format(formats::onnx::Model& model, QuantizedFormat format,
                   const std::function<Array(const TensorData&)>& value) {
  if (format == QuantizedFormat::kQdq) return 0;
  return Rewriter(model, value).run(format);
}

}  // namespace paddle::onnx
