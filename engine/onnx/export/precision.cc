#include "onnx/export/precision.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

#include "autograd/autocast.h"
#include "base/text.h"
#include "ir/replay.h"
#include "ir/tracer.h"
#include "onnx/export/tables.h"
#include "ops/core/call.h"
#include "ops/core/op.h"
#include "ops/generated/math.h"

namespace paddle::onnx {
namespace {

/// Puts the operations that patterns name into the class of full precision, call by call.
class KeepFloat final : public ForwardingInterpreter {
 public:
  KeepFloat(autograd::AutocastOptions& options, const std::vector<std::string>& patterns)
      : options_(options), patterns_(patterns) {}

  void add_parameter(const std::string& name, const Tensor& value) {
    for (const std::string& pattern : patterns_)
      if (matches_pattern(pattern, name)) {
        kept_.push_back(value);
        used_.insert(pattern);
        return;
      }
  }

  Tensors apply(const OpCall& call) override {
    bool keeps = std::any_of(call.operands.begin(), call.operands.end(), [&](const Tensor& t) {
      return t.defined() && std::any_of(kept_.begin(), kept_.end(), [&](const Tensor& parameter) {
               return parameter.is_same_cell(t);
             });
    });
    for (const std::string& pattern : patterns_)
      if (matches_pattern(pattern, std::string(call.op.name()))) {
        keeps = true;
        used_.insert(pattern);
      }
    const ScopedInterpreter below(next());
    if (!keeps || options_.custom_full.contains(&call.op)) return next().apply(call);
    options_.custom_full.insert(&call.op);
    Tensors results = next().apply(call);
    options_.custom_full.erase(&call.op);
    return results;
  }

  void check(const std::vector<std::string>& names) const {
    for (const std::string& pattern : patterns_)
      if (!used_.contains(pattern))
        fail(ErrorCode::kUsage, "--keep-float: '", pattern,
             "' matches no operation of the model and none of its parameters",
             did_you_mean(pattern, names));
  }

 private:
  autograd::AutocastOptions& options_;
  const std::vector<std::string>& patterns_;
  std::vector<Tensor> kept_;
  std::set<std::string> used_;
};

/// Weights that are only moved become 16-bit numbers before, so that a table which is also read
/// transposed is stored once, in 16 bits.
class LowWeights final : public ForwardingInterpreter {
 public:
  explicit LowWeights(const autograd::AutocastOptions& options) : options_(options) {}

  void add_parameter(const Tensor& value) { parameters_.push_back(value); }

  Tensors apply(const OpCall& call) override {
    static const Op &transpose = get_op("transpose"), &reshape = get_op("reshape");
    const bool moves = &call.op == &transpose || &call.op == &reshape;
    if (!moves || options_.custom_full.contains(&call.op) ||
        call.operands[0].dtype() != DType::kF32 ||
        std::none_of(parameters_.begin(), parameters_.end(), [&](const Tensor& parameter) {
          return parameter.is_same_cell(call.operands[0]);
        }))
      return next().apply(call);
    const ScopedInterpreter below(next());
    Tensors operands = call.operands;
    operands[0] = ops::cast(operands[0], options_.low);
    return paddle::call(call.op, std::move(operands), call.attrs);
  }

 private:
  const autograd::AutocastOptions& options_;
  std::vector<Tensor> parameters_;
};

/// Constants that are finite stay so: the smallest and largest numbers of float32, which masks of
/// attention are made of, become those of the 16-bit type instead of infinities.
class FiniteConstants final : public ForwardingInterpreter {
 public:
  explicit FiniteConstants(DType low) : low_(low) {}

  Tensors apply(const OpCall& call) override {
    static const Op& cast = get_op("cast");
    const ScopedInterpreter below(next());
    Tensors operands = call.operands;
    bool changed = false;
    for (Tensor& each : operands) {
      if (!each.defined() || !each.is_concrete() || !is_float(each.dtype())) continue;
      const bool lowers = &call.op == &cast || each.type().weak;
      if (!lowers || call.results.empty() || call.results[0].dtype != low_) continue;
      if (auto limited = limited_to_low(each.array())) {
        values_.emplace_back(limited->number(0), each.array().number(0));
        each = each.type().weak ? Tensor::number(limited->number(0)) : Tensor(std::move(*limited));
        changed = true;
      }
    }
    return changed ? paddle::call(call.op, std::move(operands), call.attrs) : next().apply(call);
  }

  /// The constants that were changed, with the lines of the operations that read them.
  std::vector<LimitedConstant> found_in(const ir::Function& function) const {
    std::vector<LimitedConstant> out;
    if (values_.empty()) return out;
    ir::for_each_operation(function.body, [&](const ir::Operation& operation) {
      for (const ir::Value* operand : operation.operands) {
        if (!operand || !operand->constant || operand->constant->size() == 0) continue;
        for (const auto& [now, before] : values_)
          if (operand->constant->number(0) == now) {
            out.push_back({operation.location, before, now});
            break;
          }
      }
    });
    return out;
  }

 private:
  /// The array with finite numbers that the 16-bit type cannot hold replaced; nullopt if it holds
  /// all of them.
  std::optional<Array> limited_to_low(const Array& given) const {
    const double most = low_ == DType::kF16 ? 65504 : 3.3895313892515355e38;
    const Array low = given.contiguous().cast(low_);
    std::optional<Array> out;
    for (int64_t i = 0; i < low.size(); ++i) {
      const double value = given.number(i);
      if (!std::isfinite(value) || std::isfinite(low.number(i))) continue;
      if (!out) out = low.cast(DType::kF32);
      out->data<float>()[i] = static_cast<float>(value < 0 ? -most : most);
    }
    return out ? std::optional(out->cast(given.dtype)) : std::nullopt;
  }

  DType low_;
  std::vector<std::pair<double, double>> values_;  ///< first elements: now, before
};

}  // namespace

std::unique_ptr<ir::Function> in_low_precision(const ir::Function& function, DType low,
                                               const std::vector<std::string>& keep_float,
                                               std::vector<LimitedConstant>& limited) {
  autograd::AutocastOptions options;
  options.low = low;
  options.all_low = true;
  autograd::Autocast autocast(options);
  KeepFloat keep(options, keep_float);
  LowWeights weights(options);
  auto out = std::make_unique<ir::Function>(function.name, function.target);
  ir::Tracer tracer(*out);
  const InterpreterScope bottom(tracer);
  const std::unique_ptr<ir::Function> source = tables_as_embeddings(function);
  Tensors inputs;
  std::vector<std::string> names;
  for (size_t i = 0; i < function.inputs.size(); ++i) {
    const ir::Port& port = function.inputs[i];
    inputs.push_back(tracer.input(port, function.body.arguments[i]->type));
    if (port.kind != ir::PortKind::kParameter) continue;
    keep.add_parameter(port.name, inputs.back());
    weights.add_parameter(inputs.back());
    names.push_back(port.name);
  }
  Tensors results;
  FiniteConstants finite(low);
  {
    const InterpreterScope lower(finite), middle(autocast), upper(weights), top(keep);
    results = ir::replay(*source, inputs);
  }
  keep.check(names);
  limited = finite.found_in(*out);
  for (size_t i = 0; i < results.size(); ++i) {
    const DType dtype = function.body.results[i]->type.dtype;
    tracer.output(function.outputs[i],
                  results[i].dtype() == dtype ? results[i] : ops::cast(results[i], dtype));
  }
  return out;
}

}  // namespace paddle::onnx
