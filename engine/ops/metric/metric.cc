// Rules of metric.yaml.

#include "ops/generated/metric.h"
#include "ops/core/compose.h"
#include "ops/generated/math.h"
#include "ops/generated/metric_rules.h"
#include "ops/generated/reduce.h"
#include "ops/generated/shape.h"
#include "ops/generated/sorting.h"

namespace paddle::rules {

Tensors decompose_accuracy(CallContext& c) {
  constexpr const char* kName = "accuracy";
  const Tensor &scores = c.operand(0), &label = c.operand(1);
  const int64_t k = c.attrs_as<AccuracyAttrs>().k;
  if (scores.ndim() != 2) reject(kName, "input must be [n, classes], not ", scores.type());
  const bool column = label.ndim() == 2 && is_one(label.dim(1));
  if ((label.ndim() != 1 && !column) || label.dim(0).equals(scores.dim(0)) == false)
    reject(kName, "label must be [n] or [n, 1] for input ", scores.type(), ", not ", label.type());
  if (k < 1 || scores.dim(1).less(Dim(k)) == true)
    reject(kName, "k must be from 1 to the number of classes ", scores.dim(1), ", not ", k);
  const Tensor best = ops::sort_pairs(scores, -1, true, k)[1];
  const Tensor wanted = ops::reshape(ops::cast(label, DType::kI64), Shape{label.dim(0), Dim(1)});
  const Tensor hit = ops::any(ops::equal(best, wanted), Axes{1});
  return {ops::mean(ops::cast(hit, DType::kF32))};
}

}  // namespace paddle::rules
