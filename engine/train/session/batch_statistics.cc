#include "train/session/batch_statistics.h"

#include "ops/core/attrs.h"
#include "ops/core/op.h"
#include "runtime/compile.h"
#include "train/session/batch_sizes.h"

namespace paddle::train {

Tensors BatchStatistics::apply(const OpCall& call) {
  const ScopedInterpreter below(next());
  if (!uses_batch_statistics(call)) return next().apply(call);
  if (depth_ > 0) {
    others_.push_back(ir::LocationScope::current());
    return next().apply(call);
  }
  Attrs attrs = call.attrs;  // new statistics = momentum * old ones + (1 - momentum) * the batch's
  attrs.values.at(static_cast<size_t>(call.op.attr_index("momentum"))) = AttrValue(0.0);
  Tensors results = next().apply({call.op, call.operands, attrs, call.results, call.constraints});
  for (const size_t i : {size_t{1}, size_t{2}}) {
    values_.push_back({call.operands[i], results[i]});
    results[i] = call.operands[i];
  }
  return results;
}

Tensors BatchStatistics::branch(const Tensor& condition, const TensorFn& then_fn,
                                const TensorFn& else_fn) {
  ++depth_;
  Tensors out = ForwardingInterpreter::branch(condition, then_fn, else_fn);
  --depth_;
  return out;
}

Tensors BatchStatistics::loop(const TensorFn& condition, const TensorFn& body,
                              const Tensors& carried, int64_t max_steps) {
  ++depth_;
  Tensors out = ForwardingInterpreter::loop(condition, body, carried, max_steps);
  --depth_;
  return out;
}

std::vector<std::string> add_statistics_outputs(ir::Function& f, ir::Tracer& tracer,
                                                const BatchStatistics& statistics) {
  std::map<const ir::Value*, std::string> states;
  for (size_t i = 0; i < f.inputs.size(); ++i)
    if (f.inputs[i].kind == ir::PortKind::kState) states[f.body.arguments[i]] = f.inputs[i].name;
  std::vector<std::string> out;
  for (const BatchStatistics::Value& value : statistics.values()) {
    const auto state = states.find(tracer.value_of(value.state));
    if (state == states.end()) continue;
    tracer.output({ir::PortKind::kValue, str("statistic.", out.size())}, value.of_batch);
    out.push_back(state->second);
  }
  return out;
}

}  // namespace paddle::train
