#include "quant/moment_function.h"

#include <algorithm>

#include "ir/replay.h"
#include "ir/tracer.h"
#include "ops/core/operators.h"
#include "ops/generated/linalg.h"
#include "ops/generated/reduce.h"
#include "ops/generated/shape.h"
#include "ops/generated/vision.h"
#include "quant/layer_watcher.h"
#include "quant/quantize.h"

namespace paddle::quant {
namespace {

const AttrValue* attribute(const Op& op, const Attrs& attrs, const char* name) {
  const int i = op.attr_index(name);
  return i < 0 ? nullptr : &attrs[static_cast<size_t>(i)];
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

/// The input of a layer as columns of features [features, rows].
Tensor columns_of(const OpCall& call, bool transposed) {
  const Array& weight = call.operands[1].array();
  if (call.op.name() == "conv2d") {
    const AttrValue window(AttrValue::List{weight.shape[2], weight.shape[3]});
    const Tensor patches = ops::unfold(
        call.operands[0], window, *attribute(call.op, call.attrs, "stride"),
        *attribute(call.op, call.attrs, "padding"), *attribute(call.op, call.attrs, "dilation"));
    const Dim features(weight.size() / weight.shape[0]);
    return ops::reshape(ops::transpose(patches, std::vector<int64_t>{1, 0, 2}),
                        Shape{features, Dim(-1)});
  }
  const Dim features(weight.shape[transposed ? 1 : 0]);
  return ops::transpose(ops::reshape(call.operands[0], Shape{Dim(-1), features}),
                        std::vector<int64_t>{1, 0});
}

void add_output(ir::Tracer& tracer, size_t layer, const char* what, const Tensor& value) {
  tracer.output({ir::PortKind::kValue, str("layer.", layer, ".", what)}, value);
}

void add_count(ir::Tracer& tracer, size_t layer, const Tensor& columns) {
  add_output(tracer, layer, "samples", dim_value(columns.shape()[1], DType::kF32));
}

}  // namespace

bool has_moments(const Quantizable& model, size_t layer) {
  const Layer& l = model.layers().at(layer);
  if (!l.has_weight || l.nested) return false;
  return l.op == "linear" || l.op == "matmul" || unfolds(*model.operations().at(layer));
}

std::shared_ptr<ir::Function> with_moments(const Quantizable& model,
                                           const std::vector<size_t>& layers) {
  auto out = std::make_shared<ir::Function>(model.function().name, model.function().target);
  ir::Tracer tracer(*out);
  LayerWatcher watcher(model, layers, [&](size_t layer, const OpCall& call, const Tensors&) {
    const ScopedInterpreter scope(tracer);
    const Tensor x = columns_of(call, model.layers()[layer].transposed);
    add_output(tracer, layer, "products", ops::matmul(x, x, false, true));
    add_output(tracer, layer, "sums", ops::sum(x, std::vector<int64_t>{1}));
    add_count(tracer, layer, x);
  });
  const InterpreterScope below(tracer), above(watcher);
  Tensors inputs;
  const ir::Function& f = model.function();
  for (size_t i = 0; i < f.inputs.size(); ++i)
    inputs.push_back(tracer.input(f.inputs[i], f.body.arguments[i]->type));
  const Tensors results = ir::replay(f, inputs);
  for (size_t i = 0; i < results.size(); ++i) tracer.output(f.outputs[i], results[i]);
  move_added_outputs(*out, results.size());
  return out;
}

std::shared_ptr<ir::Function> with_paired_moments(const Quantizable& model,
                                                  const std::vector<size_t>& layers,
                                                  std::map<std::string, Array>& weights) {
  auto out = std::make_shared<ir::Function>(model.function().name, model.function().target);
  ir::Tracer tracer(*out);
  const InterpreterScope below(tracer);
  Tensors inputs;
  const ir::Function& f = model.function();
  for (size_t i = 0; i < f.inputs.size(); ++i)
    inputs.push_back(tracer.input(f.inputs[i], f.body.arguments[i]->type));
  std::map<size_t, Tensor> floats;
  {
    LayerWatcher watcher(model, layers, [&](size_t layer, const OpCall& call, const Tensors&) {
      const ScopedInterpreter scope(tracer);
      floats[layer] = columns_of(call, model.layers()[layer].transposed);
    });
    const InterpreterScope above(watcher);
    ir::replay(f, inputs);
  }
  LayerWatcher watcher(model, layers, [&](size_t layer, const OpCall& call, const Tensors&) {
    const ScopedInterpreter scope(tracer);
    const Tensor x = columns_of(call, model.layers()[layer].transposed);
    add_output(tracer, layer, "products", ops::matmul(x, x, false, true));
    add_output(tracer, layer, "mixed", ops::matmul(floats.at(layer), x, false, true));
    add_count(tracer, layer, x);
  });
  const QuantizerScope quantizer(model, weights);
  const InterpreterScope above(watcher);
  ir::replay(f, inputs);
  return out;
}

}  // namespace paddle::quant
