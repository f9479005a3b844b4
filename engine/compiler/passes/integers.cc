// Integers that stand for numbers: what only moves values moves integers, and convolutions and
// products of dequantized integers become ones on the integers, which take along what is done to
// their results. Each step keeps the numbers, but for the order of a few roundings.

#include <algorithm>

#include "compiler/passes/integers.h"
#include "ir/replay.h"
#include "ops/call.h"

namespace paddle::passes {
namespace {

using ir::Operation;
using ir::Value;
namespace q = quantized;

constexpr int64_t kMaxAllUnpacked = int64_t{1} << 30;  // and of all of them

/// Quantised convolutions and products that no kernel takes become what they are made of.
class Decomposer final : public PassingInterpreter {
 public:
  explicit Decomposer(const TakesIntegers& takes) : takes_(takes) {}
  Tensors apply(const OpCall& c) override {
    const BelowScope below(next());
    return integers::is_quantized_product(c.op) && !taken(c) ? decompose(c) : next().apply(c);
  }

 private:
  bool taken(const OpCall& c) const {
    const Tensor& weight = c.operands[q::kWeight];
    if (!takes_) return false;
    if (&c.op == &integers::known().product) {
      if (!integers::takes_values(takes_) || has_run_time_size(weight.type())) return false;
    } else if (!weight.is_concrete() || weight.array().size() == 0 ||
               !takes_(c.operands[q::kX].dtype(), weight.array())) {
      return false;
    }
    for (const TensorType& t : c.results)
      if (has_run_time_size(t)) return false;
    if (has_run_time_size(c.operands[q::kX].type())) return false;
    const DType result = c.results[0].dtype;
    if (c.operands[q::kOutScale] && !integers::is_byte(result)) return false;
    for (const auto& [scale, zero] :
         {std::pair{q::kStepScale, q::kStepZero}, std::pair{q::kResidualScale, q::kResidualZero},
          std::pair{q::kOutScale, q::kOutZero}}) {
      const Tensor &s = c.operands[scale], &z = c.operands[zero];
      if (s && (!s.is_concrete() || !(s.array().number() > 0) || (z && !z.is_concrete())))
        return false;
    }
    const Tensor &residual = c.operands[q::kResidual], &bias = c.operands[q::kBias];
    if (residual && item_size(residual.dtype()) != item_size(result)) return false;
    return !bias || bias.ndim() == 1;
  }

  const TakesIntegers& takes_;
};

/// Constants that are still needed as numbers, brought there once, as long as `budget` elements
/// last.
void unpack_constants(ir::Region& region, const Evaluate& evaluate, int64_t& budget) {
  for (auto it = region.operations.begin(); it != region.operations.end();) {
    Operation& o = **it;
    for (const auto& nested : o.regions) unpack_constants(*nested, evaluate, budget);
    const bool fixed = o.op->has(kUnpacks) && is_constant(o.results[0]->type.shape) &&
                       std::all_of(o.operands.begin(), o.operands.end(),
                                   [](const Value* v) { return v && v->constant; });
    const int64_t size =
        fixed ? element_count(std::span<const Dim>(o.results[0]->type.shape)).value() : 0;
    if (!fixed || size > std::min(integers::kMaxUnpacked, budget)) {
      ++it;
      continue;
    }
    budget -= size;
    std::vector<const Array*> operands;
    for (const Value* v : o.operands) operands.push_back(&*v->constant);
    o.results[0]->constant = evaluate(*o.op, o.attrs, operands, {o.results[0]->type})[0];
    o.results[0]->producer = nullptr;
    it = region.operations.erase(it);
  }
}

}  // namespace

void compute_on_integers(ir::Function& function, const TakesIntegers& takes_integers,
                         const Evaluate& evaluate) {
  bool any = false;
  ir::for_each_operation(function.body, [&](const Operation& o) {
    any = any || o.op->has(kUnpacks) || o.op == &integers::known().quantize ||
          integers::is_quantized_product(*o.op);
  });
  if (!any) return;
  if (takes_integers) {
    integers::move_integers(function, evaluate);
    integers::form_products(function, takes_integers);
    integers::bring_images_together(function);
    integers::absorb_followers(function);
  }
  Decomposer decomposer(takes_integers);
  ir::rewrite(function, decomposer);
  int64_t budget = kMaxAllUnpacked;
  unpack_constants(function.body, evaluate, budget);
}

}  // namespace paddle::passes
