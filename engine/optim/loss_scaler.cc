#include "optim/loss_scaler.h"

#include "ops/core/operators.h"
#include "ops/core/row_sparse.h"
#include "ops/generated/math.h"
#include "ops/generated/optimizer.h"

namespace paddle::optim {

ScalerState next_state(const ScalerState& s, const Tensor& finite, const LossScaling& options) {
  const Tensor one = Tensor::number(int64_t{1}), zero = Tensor::number(int64_t{0});
  ScalerState next = s;
  next.updates = s.updates + ops::cast(finite, DType::kI64);
  next.skipped = s.skipped + (one - ops::cast(finite, DType::kI64));
  if (!options.dynamic) return next;
  const Tensor good = ops::where(finite, s.good + one, zero);
  const Tensor bad = ops::where(finite, zero, s.bad + one);
  const Tensor grows = ops::equal(good, Tensor::number(options.growth_interval));
  const Tensor falls = ops::equal(bad, Tensor::number(options.backoff_interval));
  const Tensor grown = s.scale * options.growth_factor;
  const Tensor larger = ops::where(ops::isfinite(grown), grown, s.scale);
  const Tensor smaller =
      ops::maximum(s.scale * options.backoff_factor, Tensor::number(LossScaling::kMinimum));
  next.scale = ops::where(grows, larger, ops::where(falls, smaller, s.scale));
  next.good = ops::where(grows, zero, good);
  next.bad = ops::where(falls, zero, bad);
  return next;
}

Tensor all_finite(const Tensors& values) {
  Tensors dense;
  for (const Tensor& g : values) {
    if (!g.defined()) continue;
    const RowSparse* sparse = row_sparse(g);
    dense.push_back(sparse ? sparse->rows : g);
  }
  return dense.empty() ? Tensor::boolean(true) : ops::all_finite(dense);
}

}  // namespace paddle::optim
