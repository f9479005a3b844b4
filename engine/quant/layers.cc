#include "quant/layers.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/source_location.h"
#include "compiler/passes/passes.h"
#include "ir/clone.h"
#include "ir/replay.h"
#include "ir/tracer.h"
#include "ops/core/call.h"
#include "ops/core/operators.h"
#include "ops/generated/linalg.h"
#include "ops/generated/reduce.h"
#include "ops/generated/shape.h"
#include "ops/generated/vision.h"

namespace paddle::quant {
namespace {

const AttrValue* attribute(const Op& op, const Attrs& attrs, const char* name) {
  const int i = op.attr_index(name);
  return i < 0 ? nullptr : &attrs[static_cast<size_t>(i)];
}

bool is_true(const ir::Operation& operation, const char* name) {
  const AttrValue* value = attribute(*operation.op, operation.attrs, name);
  return value && value->as_bool();
}

/// Why a layer cannot be quantized; "" if it can.
std::string obstacle(const ir::Operation& operation) {
  const TensorType& x = operation.operands[0]->type;
  const Array& weight = *operation.operands[1]->constant;
  const std::string_view op = operation.op->name();
  if ((op != "embedding" && x.dtype != DType::kF32) || weight.dtype != DType::kF32)
    return "it does not compute in float32";
  if (op == "matmul") {
    if (weight.ndim() != 2) return "its weight is not a matrix";
    if (is_true(operation, "transpose_x") || is_true(operation, "transpose_y"))
      return "its operands are transposed";
  }
  if (const AttrValue* format = attribute(*operation.op, operation.attrs, "data_format");
      format && format->as_string().ends_with('C'))
    return "its channels are last";
  if (weight.size() == 0) return "its weight is empty";
  return "";
}

/// Top-level layers, in order.
std::vector<ir::Operation*> layer_operations(const ir::Function& function) {
  std::vector<ir::Operation*> out;
  for (const auto& operation : function.body.operations)
    if (is_layer_op(*operation->op) && operation->operands[1] && operation->operands[1]->constant)
      out.push_back(operation.get());
  return out;
}

/// Outputs are named by position: "layer.0", …
void add_outputs(ir::Function& function, const std::vector<Layer>& layers, bool inputs) {
  const auto operations = layer_operations(function);
  ensure(operations.size() == layers.size(), "quantize: a clone has other layers");
  for (size_t i = 0; i < operations.size(); ++i)
    if (!inputs || layers[i].quantized)
      function.add_output({ir::PortKind::kValue, str("layer.", i)},
                          inputs ? operations[i]->operands[0] : operations[i]->results[0]);
}

/// Whether an attribute is a number, or one for each of the two axes of an image.
bool is_per_axis(const AttrValue* value) {
  if (!value) return false;
  if (value->is_int()) return true;
  if (!value->is_list() || value->as_list().size() > 2) return false;
  return std::all_of(value->as_list().begin(), value->as_list().end(),
                     [](const AttrValue& each) { return each.is_int(); });
}

/// Whether the input of an operation can be taken apart by `unfold`.
bool unfolds(const ir::Operation& operation) {
  if (operation.op->name() != "conv2d") return false;
  const auto get = [&](const char* name) {
    return attribute(*operation.op, operation.attrs, name);
  };
  const AttrValue* groups = get("groups");
  return groups && groups->is_int() && groups->as_int() == 1 && is_per_axis(get("padding")) &&
         is_per_axis(get("stride")) && is_per_axis(get("dilation"));
}

/// Adds the moments of the inputs of layers to a trace.
class MomentTracer final : public PassingInterpreter {
 public:
  explicit MomentTracer(std::set<size_t> layers) : layers_(std::move(layers)) {}

  Tensors apply(const OpCall& call) override {
    const bool is_layer = depth_ == 0 && is_layer_op(call.op) && call.operands[1].is_concrete();
    if (is_layer && layers_.contains(next_layer_++)) add(call);
    return next().apply(call);
  }
  Tensors branch(const Tensor& condition, const TensorFn& then_fn,
                 const TensorFn& else_fn) override {
    ++depth_;
    Tensors out = PassingInterpreter::branch(condition, then_fn, else_fn);
    --depth_;
    return out;
  }
  Tensors loop(const TensorFn& condition, const TensorFn& body, const Tensors& carried,
               int64_t max_steps) override {
    ++depth_;
    Tensors out = PassingInterpreter::loop(condition, body, carried, max_steps);
    --depth_;
    return out;
  }

 private:
  void add(const OpCall& call) {
    const BelowScope below(next());
    Tensor rows;  // [features, samples]
    if (call.op.name() == "conv2d") {
      const Array& weight = call.operands[1].array();
      const AttrValue window(AttrValue::List{weight.shape[2], weight.shape[3]});
      const Tensor patches = ops::unfold(
          call.operands[0], window, *attribute(call.op, call.attrs, "stride"),
          *attribute(call.op, call.attrs, "padding"), *attribute(call.op, call.attrs, "dilation"));
      const Dim features(weight.size() / weight.shape[0]);
      rows = ops::reshape(ops::transpose(patches, std::vector<int64_t>{1, 0, 2}),
                          Shape{features, Dim(-1)});
    } else {
      const Dim features(call.operands[1].array().shape[0]);
      rows = ops::transpose(ops::reshape(call.operands[0], Shape{Dim(-1), features}),
                            std::vector<int64_t>{1, 0});
    }
    auto& tracer = dynamic_cast<ir::Tracer&>(next());
    const std::string name = str("layer.", next_layer_ - 1);
    tracer.output({ir::PortKind::kValue, name + ".products"}, ops::matmul(rows, rows, false, true));
    tracer.output({ir::PortKind::kValue, name + ".sums"}, ops::sum(rows, std::vector<int64_t>{1}));
    tracer.output({ir::PortKind::kValue, name + ".samples"},
                  dim_value(rows.shape()[1], DType::kF32));
  }

  std::set<size_t> layers_;
  size_t next_layer_ = 0;
  int depth_ = 0;
};

}  // namespace

void move_added_outputs(ir::Function& function, size_t own) {
  const auto n = static_cast<ptrdiff_t>(own);
  std::rotate(function.outputs.begin(), function.outputs.end() - n, function.outputs.end());
  std::rotate(function.body.results.begin(), function.body.results.end() - n,
              function.body.results.end());
}

Quantizable::Quantizable(const ir::Function& function,
                         const std::function<Array(const std::string&)>& weight)
    : function_(ir::clone(function)) {
  ir::Function& f = *function_;
  std::map<const void*, std::string> names;
  for (size_t i = f.inputs.size(); i-- > 0;) {
    const ir::Port port = f.inputs[i];
    if (port.kind != ir::PortKind::kParameter && port.kind != ir::PortKind::kState) continue;
    const bool changes = std::any_of(f.outputs.begin(), f.outputs.end(), [&](const ir::Port& out) {
      return out.kind == port.kind && out.name == port.name;
    });
    if (changes) continue;
    const Array value = weight(port.name).contiguous();
    names[value.raw()] = port.name;
    f.bind_input(i, value);
  }
  // Names of weights that folding replaces are those of the convolutions before it.
  std::vector<std::string> before;
  const auto name_of = [&](const ir::Operation& operation) {
    const auto found = names.find(operation.operands[1]->constant->raw());
    return found == names.end() ? std::string() : found->second;
  };
  for (const ir::Operation* each : layer_operations(f)) before.push_back(name_of(*each));
  passes::canonicalize(f);
  passes::fold_batch_norm(f);
  passes::remove_dead_code(f);
  operations_ = layer_operations(f);
  const auto& operations = operations_;
  std::set<std::string> used;
  for (size_t i = 0; i < operations.size(); ++i) {
    Layer layer;
    layer.op = std::string(operations[i]->op->name());
    layer.location = parse_origin(operations[i]->location).place;
    layer.parameter = operations.size() == before.size() ? before[i] : name_of(*operations[i]);
    layer.name = layer_name(layer.parameter);
    if (layer.name.empty()) layer.name = str(layer.op, "_", i);
    // Shared weights are quantized once a use.
    for (int n = 1; !used.insert(layer.name).second; ++n) layer.name += str("_", n);
    layer.why = obstacle(*operations[i]);
    layer.quantized = layer.why.empty();
    layers_.push_back(layer);
  }
}

std::shared_ptr<ir::Function> Quantizable::with_layer_inputs() const {
  std::shared_ptr<ir::Function> out = ir::clone(*function_);
  add_outputs(*out, layers_, true);
  return out;
}

std::shared_ptr<ir::Function> Quantizable::with_layer_results() const {
  std::shared_ptr<ir::Function> out = ir::clone(*function_);
  add_outputs(*out, layers_, false);
  return out;
}

std::shared_ptr<ir::Function> Quantizable::with_moments(const std::vector<size_t>& layers) const {
  MomentTracer tracer(std::set<size_t>(layers.begin(), layers.end()));
  std::shared_ptr<ir::Function> out = ir::retraced(*function_, tracer);
  move_added_outputs(*out, outputs());
  return out;
}

bool Quantizable::has_moments(size_t layer) const {
  const ir::Operation& operation = *operations().at(layer);
  return operation.op->name() == "linear" || operation.op->name() == "matmul" || unfolds(operation);
}

void Quantizable::set_constant(ir::Operation& operation, size_t operand, const Array& value) {
  operation.operands.at(operand) = function_->add_constant(value);
}

}  // namespace paddle::quant
