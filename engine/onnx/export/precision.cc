#include "onnx/export/precision.h"

#include <algorithm>
#include <set>

#include "autograd/autocast.h"
#include "base/text.h"
#include "ir/replay.h"
#include "ir/tracer.h"
#include "ops/core/op.h"
#include "ops/generated/math.h"

namespace paddle::onnx {
namespace {

/// Puts the operations that patterns name into the class of full precision, call by call.
class KeepFloat final : public PassingInterpreter {
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
    const BelowScope below(next());
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

}  // namespace

std::unique_ptr<ir::Function> in_low_precision(const ir::Function& function, DType low,
                                               const std::vector<std::string>& keep_float) {
  autograd::AutocastOptions options;
  options.low = low;
  options.all_low = true;
  autograd::Autocast autocast(options);
  KeepFloat keep(options, keep_float);
  auto out = std::make_unique<ir::Function>(function.name, function.target);
  ir::Tracer tracer(*out);
  const InterpreterScope bottom(tracer);
  Tensors inputs;
  std::vector<std::string> names;
  for (size_t i = 0; i < function.inputs.size(); ++i) {
    const ir::Port& port = function.inputs[i];
    inputs.push_back(tracer.input(port, function.body.arguments[i]->type));
    if (port.kind != ir::PortKind::kParameter) continue;
    keep.add_parameter(port.name, inputs.back());
    names.push_back(port.name);
  }
  Tensors results;
  {
    const InterpreterScope middle(autocast), top(keep);
    results = ir::replay(function, inputs);
  }
  keep.check(names);
  for (size_t i = 0; i < results.size(); ++i) {
    const DType dtype = function.body.results[i]->type.dtype;
    tracer.output(function.outputs[i],
                  results[i].dtype() == dtype ? results[i] : ops::cast(results[i], dtype));
  }
  return out;
}

}  // namespace paddle::onnx
