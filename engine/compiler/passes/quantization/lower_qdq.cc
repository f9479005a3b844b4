// QDQ lowering: computes quantized models on integers. Results are those of the float operations
// between quantize and dequantize, except that a few roundings happen in another order.

#include <algorithm>

#include "compiler/passes/quantization/conv_transpose.h"
#include "compiler/passes/quantization/qdq.h"
#include "ir/replay.h"
#include "ops/core/call.h"

namespace paddle::passes {
namespace {

using ir::Operation;
using ir::Value;
namespace q = quantized;

constexpr int64_t kMaxTotalDequantized = int64_t{1} << 30;  // of all constants together

/// Decomposes int8 operations that no kernel supports, and transposed convolutions into others.
class DecomposeUnsupported final : public ForwardingInterpreter {
 public:
  explicit DecomposeUnsupported(const Int8Kernels& kernels) : kernels_(kernels) {}
  Tensors apply(const OpCall& c) override {
    const ScopedInterpreter below(next());
    if (!qdq::is_int8_op(c.op)) return next().apply(c);
    if (!has_kernel(c)) return decompose(c);
    if (&c.op != &qdq::known_ops().quantized_conv_transpose) return next().apply(c);
    return {qdq::as_convolution(c, *qdq::phase_axes(c))};
  }

 private:
  bool has_kernel(const OpCall& c) const {
    const Tensor& weight = c.operands[q::kWeight];
    if (!kernels_) return false;
    if (&c.op == &qdq::known_ops().quantized_matmul) {
      if (!kernels_.matmul || has_run_time_size(weight.type())) return false;
    } else if (&c.op == &qdq::known_ops().quantized_conv_transpose) {
      const auto axes = qdq::phase_axes(c);
      if (!axes || weight.array().size() == 0 ||
          !kernels_.multiplies(c.operands[q::kX].dtype(), qdq::phase_weight(c, *axes)))
        return false;
    } else if (!weight.is_concrete() || weight.array().size() == 0 ||
               !kernels_.multiplies(c.operands[q::kX].dtype(), weight.array())) {
      return false;
    }
    for (const TensorType& t : c.results)
      if (has_run_time_size(t)) return false;
    if (has_run_time_size(c.operands[q::kX].type())) return false;
    const DType result = c.results[0].dtype;
    if (c.operands[q::kOutScale] && !qdq::is_8_bit(result)) return false;
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

  const Int8Kernels& kernels_;
};

/// Dequantizes constants that are still read as floats, up to `budget` elements in total.
void dequantize_constants(ir::Region& region, const Evaluate& evaluate, int64_t& budget) {
  for (auto it = region.operations.begin(); it != region.operations.end();) {
    Operation& o = **it;
    for (const auto& nested : o.regions) dequantize_constants(*nested, evaluate, budget);
    const bool fixed = o.op->has(kKeepPacked) && is_constant(o.results[0]->type.shape) &&
                       std::all_of(o.operands.begin(), o.operands.end(),
                                   [](const Value* v) { return v && v->constant; });
    const int64_t size =
        fixed ? element_count(std::span<const Dim>(o.results[0]->type.shape)).value() : 0;
    if (!fixed || size > std::min(qdq::kMaxDequantized, budget)) {
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

void lower_qdq(ir::Function& function, const Int8Kernels& kernels, const Evaluate& evaluate) {
  bool any = false;
  ir::for_each_operation(function.body, [&](const Operation& o) {
    any = any || o.op->has(kKeepPacked) || o.op == &qdq::known_ops().quantize ||
          qdq::is_int8_op(*o.op);
  });
  if (!any) return;
  fold_quantize(function, evaluate);
  if (kernels) {
    qdq::propagate_dequantize(function, evaluate);
    qdq::form_int8_ops(function, kernels);
    qdq::sink_squeeze(function);
    qdq::fuse_requantize(function);
  }
  DecomposeUnsupported decomposer(kernels);
  ir::retrace(function, decomposer);
  // Without VNNI, products of many rows are slower in integers of 16 bits than in floats.
  if (kernels.packed) qdq::pack_weights(function, kernels.matmul);
  int64_t budget = kMaxTotalDequantized;
  dequantize_constants(function.body, evaluate, budget);
}

}  // namespace paddle::passes
