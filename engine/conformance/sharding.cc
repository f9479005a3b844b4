// Rules by which operations of plug-ins, or those that they add to operations of the engine, are
// split over ranks: the results of shares of the operands, combined as the rule says.

#include <optional>

#include "conformance/operators.h"
#include "conformance/passes.h"
#include "conformance/train_parts.h"
#include "inspect/compare.h"
#include "inspect/numeric.h"
#include "ir/tracer.h"
#include "ops/core/call.h"
#include "ops/core/operators.h"
#include "ops/generated/math.h"
#include "ops/generated/shape.h"
#include "partition/rules.h"
#include "runtime/execute.h"

namespace paddle::conformance {
namespace {

/// A call as the partition pass sees it: with concrete operands.
struct PlacedCall {
  Tensors operands;
  Attrs attrs;
  std::optional<partition::Rule> rule;
};

/// Keeps the first call of an operation.
class OperandsOf final : public ForwardingInterpreter {
 public:
  OperandsOf(const Op& op, PlacedCall& out) : op_(op), out_(out) {}
  Tensors apply(const OpCall& call) override {
    if (&call.op == &op_ && out_.operands.empty()) {
      out_.operands = call.operands;
      out_.attrs = call.attrs;
    }
    return next().apply(call);
  }

 private:
  const Op& op_;
  PlacedCall& out_;
};

/// The operands of a sample, and the rule for them.
PlacedCall placed(const Op& op, const std::string& sample) {
  PlacedCall out;
  const inspect::NamedCall named = parse(op, {sample, false});
  Tensors inputs;
  for (const Array& each : named.inputs()) inputs.emplace_back(each);
  {
    OperandsOf keeper(op, out);
    const InterpreterScope scope(keeper);
    (void)named(inputs);
  }
  if (out.operands.empty()) return out;
  ir::Function function("sharding");
  ir::Tracer tracer(function);
  const InterpreterScope scope(tracer);
  Tensors traced;
  for (const Tensor& each : out.operands)
    traced.push_back(each.defined() ? tracer.input({ir::PortKind::kValue, "x"}, each.type())
                                    : Tensor());
  (void)call(op, traced, out.attrs);
  for (const auto& operation : function.body.operations)
    if (operation->op == &op) out.rule = partition::find_rule(*operation);
  return out;
}

/// The axis of a value that has the factor; -1 for none.
int64_t axis_with(const std::vector<int>& dims, int factor) {
  for (size_t d = 0; d < dims.size(); ++d)
    if (dims[d] == factor) return static_cast<int64_t>(d);
  return -1;
}

/// Results of the elements from `begin` to `end` of a factor.
Tensors share_of(const Op& op, const PlacedCall& c, int factor, int64_t begin, int64_t end) {
  Tensors operands = c.operands;
  for (size_t i = 0; i < operands.size(); ++i)
    if (const int64_t axis = axis_with(c.rule->operands[i], factor); axis >= 0)
      operands[i] = ops::slice(operands[i], {axis}, {begin}, {end});
  return call(op, operands, c.attrs);
}

Tensor combined(const Tensor& a, const Tensor& b, int64_t axis, partition::Combine how) {
  if (axis >= 0) return ops::concat({a, b}, axis);
  if (how == partition::Combine::kSum) return a + b;
  return how == partition::Combine::kMax ? ops::maximum(a, b) : ops::minimum(a, b);
}

/// Every factor, cut in two.
std::string check_factors(const Op& op, const PlacedCall& c, bool& was_cut) {
  const Tensors whole = call(op, c.operands, c.attrs);
  for (int factor = 0; factor < c.rule->factors; ++factor) {
    int64_t size = 0;
    for (size_t i = 0; i < c.operands.size(); ++i)
      if (const int64_t axis = axis_with(c.rule->operands[i], factor); axis >= 0)
        size = c.operands[i].array().shape[static_cast<size_t>(axis)];
    if (size < 2) continue;
    was_cut = true;
    const int64_t middle = (size + 1) / 2;
    const Tensors first = share_of(op, c, factor, 0, middle),
                  second = share_of(op, c, factor, middle, size);
    for (size_t r = 0; r < whole.size(); ++r) {
      if (!whole[r].defined() || op.results()[r].hidden) continue;
      const int64_t axis = axis_with(c.rule->results[r], factor);
      const Array found = combined(first[r], second[r], axis, c.rule->combine).array();
      const std::string bad =
          inspect::difference(found, whole[r].array(), tolerance_of(whole[r].dtype()));
      if (!bad.empty())
        return str("with a dim of ", size, " split into ", middle, " and ", size - middle,
                   ", result ", r, " ", axis >= 0 ? "joined" : "combined", " differs: ", bad);
    }
  }
  return "";
}

}  // namespace

std::string check_sharding(const Op& op) {
  runtime::register_backends();
  runtime::EagerExecutor executor;
  const InterpreterScope scope(executor);
  bool was_cut = false;
  for (const std::string& sample : inspect::samples_of(op)) {
    const PlacedCall c = placed(op, sample);
    if (!c.rule || c.rule->reshapes || c.rule->any_parts) continue;
    if (const std::string bad = check_factors(op, c, was_cut); !bad.empty())
      return str(bad, "  [", sample, "]");
  }
  return was_cut ? "" : str(kSkip, "no sample has a dim that its rule splits");
}

}  // namespace paddle::conformance
