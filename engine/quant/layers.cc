#include "quant/layers.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/source_location.h"
#include "compiler/passes/constant_value.h"
#include "ir/clone.h"
#include "ir/module.h"
#include "onnx/export/tables.h"
#include "quant/function_runner.h"

namespace paddle::quant {
namespace {

constexpr const char* kTransposedConvolution = "conv2d_transpose";

const AttrValue* attribute(const ir::Operation& operation, const char* name) {
  const int i = operation.op->attr_index(name);
  return i < 0 ? nullptr : &operation.attrs[static_cast<size_t>(i)];
}

bool is_true(const ir::Operation& operation, const char* name) {
  const AttrValue* value = attribute(operation, name);
  return value && value->as_bool();
}

/// Why a layer cannot be quantized; "" if it can.
std::string obstacle(const Layer& layer, const ir::Operation& operation) {
  for (const size_t i : layer.inputs())
    if (operation.operands[i]->type.dtype != DType::kF32) return "it does not compute in float32";
  if (!layer.has_weight) {
    for (const size_t i : layer.inputs())
      if (operation.operands[i]->type.shape.size() < 2) return "its operands are not matrices";
    return "";
  }
  const Array& weight = *Quantizable::weight_of(operation);
  if (weight.dtype != DType::kF32) return "it does not compute in float32";
  if (layer.op == "matmul") {
    if (weight.ndim() != 2) return "its weight is not a matrix";
    if (is_true(operation, "transpose_x")) return "its input is transposed";
  }
  if (const AttrValue* format = attribute(operation, "data_format");
      format && format->as_string().ends_with('C'))
    return "its channels are last";
  if (weight.size() == 0) return "its weight is empty";
  return "";
}

bool is_layer_operation(const ir::Operation& operation, bool products) {
  const auto is_constant = [&](size_t i) {
    return operation.operands.size() > i && operation.operands[i] &&
           operation.operands[i]->constant;
  };
  return is_layer(*operation.op, is_constant(0), is_constant(1), products);
}

/// Ranges of two activations are collected at the top level only. Operations on one weight are one
/// layer, since the weight identifies it while it runs.
void add_nested(const ir::Region& region, std::set<const void*>& weights,
                std::vector<ir::Operation*>& out) {
  for (const auto& operation : region.operations) {
    if (is_layer_operation(*operation, false) &&
        weights.insert(Quantizable::weight_of(*operation)->raw()).second)
      out.push_back(operation.get());
    for (const auto& nested : operation->regions) add_nested(*nested, weights, out);
  }
}

/// Layers at the top level, then nested ones; `top` is the number of the former.
std::vector<ir::Operation*> layer_operations(const ir::Function& function, bool products,
                                             size_t& top) {
  std::vector<ir::Operation*> out;
  for (const auto& operation : function.body.operations)
    if (is_layer_operation(*operation, products)) out.push_back(operation.get());
  top = out.size();
  std::set<const void*> weights;
  for (const auto& operation : function.body.operations)
    for (const auto& nested : operation->regions) add_nested(*nested, weights, out);
  return out;
}

/// Weights that follow from constants, such as the gates of a recurrent layer in another order,
/// become constants.
void fold_weights(ir::Function& function) {
  const passes::Evaluate evaluate = evaluator();
  const auto fold = [&](const auto& self, ir::Region& region) -> void {
    for (const auto& operation : region.operations) {
      for (const auto& nested : operation->regions) self(self, *nested);
      const size_t at = weight_operand(*operation->op);
      if (!(is_layer_op(*operation->op) || at == 0) || operation->operands.size() < 2 ||
          !operation->operands[at] || operation->operands[at]->constant)
        continue;
      if (const auto value = passes::constant_value(operation->operands[at], evaluate))
        operation->operands[at] = function.add_constant(value->contiguous());
    }
  };
  fold(fold, function.body);
}

}  // namespace

Sensitivity parse_sensitivity(const std::string& name) {
  ensure(name == "sqnr" || name == "gradient", "a sensitivity that the schema does not have");
  return name == "gradient" ? Sensitivity::kGradient : Sensitivity::kSqnr;
}

bool Layer::is_more_sensitive(const Layer& other, Sensitivity by) const {
  const auto score = [&](const Layer& layer) {
    constexpr double kMin = -1e300;
    return by == Sensitivity::kGradient ? layer.loss_change.value_or(kMin)
           : layer.output_sqnr_db       ? -*layer.output_sqnr_db
                                        : kMin;
  };
  return score(*this) > score(other);
}

std::vector<size_t> Layer::inputs() const {
  if (op == "attention") return {0, 1, 2};
  if (op == kTransposedConvolution) return {1};
  if (!has_weight) return {0, 1};
  return has_quantized_input(op) ? std::vector<size_t>{0} : std::vector<size_t>();
}

ChannelAxis Layer::channel_axis() const {
  if (op == kTransposedConvolution) return depthwise ? ChannelAxis::kFirst : ChannelAxis::kSecond;
  return transposed || has_channels_first(op) ? ChannelAxis::kFirst : ChannelAxis::kLast;
}

size_t weight_operand(const Op& op) {
  static const Op& transposed = get_op("conv2d_input_grad");
  return &op == &transposed ? 0 : 1;
}

bool is_layer(const Op& op, bool first_is_constant, bool second_is_constant, bool products) {
  if (products && op.name() == "attention") return true;
  if (weight_operand(op) == 0) return first_is_constant && !second_is_constant;
  if (!is_layer_op(op)) return false;
  return second_is_constant || (products && op.name() == "matmul" && !first_is_constant);
}

void move_added_outputs(ir::Function& function, size_t own) {
  const auto n = static_cast<ptrdiff_t>(own);
  std::rotate(function.outputs.begin(), function.outputs.end() - n, function.outputs.end());
  std::rotate(function.body.results.begin(), function.body.results.end() - n,
              function.body.results.end());
}

Quantizable::Quantizable(const ir::Function& function,
                         const std::function<Array(const std::string&)>& weight, bool products)
    : function_(onnx::tables_as_embeddings(function)), products_(products) {
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
  fold_weights(f);
  // Names of weights that folding replaces are those of the convolutions before it.
  size_t top = 0;
  std::vector<std::string> before;
  const auto name_of = [&](const ir::Operation& operation) {
    const Array* const constant = weight_of(operation);
    if (!constant) return std::string();
    const auto found = names.find(constant->raw());
    return found == names.end() ? std::string() : found->second;
  };
  for (const ir::Operation* each : layer_operations(f, products, top))
    before.push_back(name_of(*each));
  passes::canonicalize(f);
  passes::fold_batch_norm(f);
  passes::remove_dead_code(f);
  operations_ = layer_operations(f, products, top);
  const auto& operations = operations_;
  std::set<std::string> used;
  for (size_t i = 0; i < operations.size(); ++i) {
    Layer layer;
    const Array* const constant = weight_of(*operations[i]);
    layer.op = weight_operand(*operations[i]->op) == 0 ? kTransposedConvolution
                                                       : operations[i]->op->name();
    layer.has_weight = layer.op != "attention" && constant;
    layer.depthwise = layer.op == kTransposedConvolution && constant->ndim() > 1 &&
                      constant->shape[1] == 1 &&
                      attribute(*operations[i], "groups")->as_int() == constant->shape[0];
    layer.transposed =
        layer.has_weight && layer.op == "matmul" && is_true(*operations[i], "transpose_y");
    layer.nested = i >= top;
    const Origin origin = parse_origin(operations[i]->location);
    layer.location = origin.place;
    layer.parameter = operations.size() == before.size() ? before[i] : name_of(*operations[i]);
    layer.name = layer_name(layer.parameter);
    if (layer.name.empty() && !origin.layer.empty())
      layer.name = layer.has_weight ? origin.layer : origin.layer + "." + layer.op;
    if (layer.name.empty()) layer.name = str(layer.op, "_", i);
    // Shared weights are quantized once a use.
    const std::string name = layer.name;
    for (int n = 1; !used.insert(layer.name).second; ++n) layer.name = str(name, "_", n);
    layer.ranges.resize(layer.inputs().size());
    layer.why = obstacle(layer, *operations[i]);
    layer.quantized = layer.why.empty();
    layers_.push_back(layer);
  }
}

size_t Quantizable::top_level_layers() const {
  return static_cast<size_t>(std::count_if(layers_.begin(), layers_.end(),
                                           [](const Layer& layer) { return !layer.nested; }));
}

std::vector<LayerInput> Quantizable::layer_inputs() const {
  std::vector<LayerInput> out;
  for (size_t i = 0; i < top_level_layers(); ++i)
    if (layers_[i].quantized)
      for (const size_t operand : layers_[i].inputs()) out.push_back({i, operand});
  return out;
}

std::vector<size_t> Quantizable::rounded_results() const {
  std::vector<size_t> out;
  for (size_t i = 0; i < top_level_layers(); ++i)
    if (layers_[i].quantized && layers_[i].rounds_result) out.push_back(i);
  return out;
}

void Quantizable::round_sums() {
  std::map<const ir::Value*, std::vector<const ir::Operation*>> readers;
  for (const auto& operation : function_->body.operations)
    ir::for_each_read(*operation,
                      [&](const ir::Value* value) { readers[value].push_back(operation.get()); });
  for (const ir::Value* result : function_->body.results) readers[result].push_back(nullptr);
  const auto is_sum = [](const ir::Operation* operation) {
    return operation && operation->op->name() == "add" && !operation->operands[0]->constant &&
           !operation->operands[1]->constant;
  };
  for (size_t i = 0; i < top_level_layers(); ++i) {
    const auto& found = readers[operations_[i]->results[0]];
    layers_[i].rounds_result = layers_[i].op == "conv2d" && !found.empty() &&
                               std::all_of(found.begin(), found.end(), is_sum);
  }
}

std::shared_ptr<ir::Function> Quantizable::with_layer_inputs(bool results) const {
  std::shared_ptr<ir::Function> out = ir::clone(*function_);
  size_t top = 0;
  const auto operations = layer_operations(*out, products_, top);
  ensure(operations.size() == layers_.size(), "quantize: a clone has other layers");
  for (const LayerInput& each : layer_inputs())
    out->add_output({ir::PortKind::kValue, str("layer.", each.layer, ".", each.operand)},
                    operations[each.layer]->operands[each.operand]);
  if (results)
    for (const size_t i : rounded_results())
      out->add_output({ir::PortKind::kValue, str("result.", i)}, operations[i]->results[0]);
  return out;
}

std::shared_ptr<ir::Function> Quantizable::with_layer_results() const {
  std::shared_ptr<ir::Function> out = ir::clone(*function_);
  size_t top = 0;
  const auto operations = layer_operations(*out, products_, top);
  ensure(operations.size() == layers_.size(), "quantize: a clone has other layers");
  for (size_t i = 0; i < top; ++i)
    out->add_output({ir::PortKind::kValue, str("layer.", i)}, operations[i]->results[0]);
  return out;
}

const Array* Quantizable::weight_of(const ir::Operation& operation) {
  const ir::Value* const value = operation.operands[weight_operand(*operation.op)];
  return value && value->constant ? &*value->constant : nullptr;
}

void Quantizable::set_constant(ir::Operation& operation, size_t operand, const Array& value) {
  operation.operands.at(operand) = function_->add_constant(value);
}

}  // namespace paddle::quant
