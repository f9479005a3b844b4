// Rules of legacy.yaml.

#include "ops/generated/legacy.h"

#include "ops/core/compose.h"
#include "ops/generated/creation.h"
#include "ops/generated/indexing.h"
#include "ops/generated/legacy_rules.h"
#include "ops/generated/loss.h"
#include "ops/generated/math.h"
#include "ops/generated/nn.h"
#include "ops/generated/optimizer.h"
#include "ops/generated/reduce.h"
#include "ops/generated/shape.h"

namespace paddle::rules {
namespace {

Tensor first_of(const Tensor& x) { return slice_axis(flat(x), 0, 0, 1); }
Tensor scalar_of(const Tensor& x) { return ops::reshape(first_of(x), Shape{}); }

/// [n] of a column [n, 1] or a vector.
Tensor column_of(std::string_view op, std::string_view name, const Tensor& x) {
  if (x.ndim() == 1) return x;
  if (x.ndim() != 2 || !is_one(x.dim(1)))
    reject(op, name, " must be [n, 1] or [n], not ", x.type());
  return ops::reshape(x, Shape{x.dim(0)});
}

/// The i-th tensor of a list that has one for all or one for each of `count` parameters.
const Tensor& shared(const Tensors& list, size_t i) { return list.size() == 1 ? list[0] : list[i]; }

void check_count(std::string_view op, std::string_view name, size_t found, size_t count,
                 bool one_for_all = false) {
  if (found == count || (one_for_all && found == 1)) return;
  reject(op, "expected ", count, " tensors as ", name, " for as many parameters, found ", found);
}

/// Lists of results one after another.
Tensors joined(const std::vector<Tensors>& lists) {
  Tensors out;
  for (const Tensors& list : lists) out.insert(out.end(), list.begin(), list.end());
  return out;
}

void check_single_rank(std::string_view op, int64_t nranks, int64_t rank) {
  if (nranks != 1 || rank != 0)
    reject(op, "expected nranks=1 and rank=0, found ", nranks, " and ", rank,
           "; several ranks are the section 'parallel' of a config");
}

}  // namespace

Tensors decompose_auc(CallContext& c) {
  const auto a = c.attrs_as<AucAttrs>();
  constexpr const char* kName = "auc";
  constexpr int64_t kMax = int64_t{1} << 30;
  const Tensor& input = c.operand(0);
  if (input.ndim() != 2 || input.dim(1).less(1) == true)
    reject(kName, "input must be [n, 1] or [n, 2], not ", input.type());
  if (a.num_thresholds < 1 || a.num_thresholds > kMax)
    reject(kName, "num_thresholds must be from 1 to ", kMax, ", not ", a.num_thresholds);
  const Tensor label = column_of(kName, "label", c.operand(1));
  if (label.dim(0).equals(input.dim(0)) == false)
    reject(kName, "label ", label.type(), " does not fit input ", input.type());
  const Dim bins = a.num_thresholds + 1;
  const Tensor rates = ops::squeeze(
      slice_axis(ops::cast(input, DType::kF64), 1, input.dim(1) - 1, input.dim(1)), Axes{1});
  const Tensor bin = ops::cast(rates * static_cast<double>(a.num_thresholds), DType::kI64);
  Tensor positive = ops::cast(ops::not_equal(label, integer(0)), DType::kI64);
  Tensor negative = integer(1) - positive;
  if (c.has(4)) {
    const Tensor real = ops::cast(ops::not_equal(scalar_of(c.operand(4)), integer(0)), DType::kI64);
    positive = positive * real;
    negative = negative * real;
  }
  const auto counted = [&](size_t earlier, const Tensor& weights) {
    Tensor start = ops::full(Shape{bins}, int64_t{0}, DType::kI64);
    if (c.has(earlier)) start = start + ops::cast(flat(c.operand(earlier)), DType::kI64);
    return ops::index_add(start, bin, 0, weights);
  };
  const Tensor pos = counted(2, positive), neg = counted(3, negative);
  // Trapezoids between the numbers of labels above each threshold, from the highest on.
  const auto above = [](const Tensor& counts) {
    return ops::cumsum(ops::cast(ops::flip(counts, Axes{0}), DType::kF64), 0);
  };
  const Tensor p = above(pos), n = above(neg);
  const Tensor own_p = ops::cast(ops::flip(pos, Axes{0}), DType::kF64),
               own_n = ops::cast(ops::flip(neg, Axes{0}), DType::kF64);
  const Tensor all_p = ops::cast(ops::sum(pos), DType::kF64),
               all_n = ops::cast(ops::sum(neg), DType::kF64);
  Tensor area;
  if (a.curve == "ROC") {
    area = ops::sum(own_n * (p - own_p * 0.5)) / (all_p * all_n);
  } else {  // precision over recall
    const auto precision = [](const Tensor& hits, const Tensor& misses) {
      const Tensor found = hits + misses;
      return ops::where(ops::greater_than(found, number(0.0)),
                        hits / ops::maximum(found, number(1.0)), number(1.0));
    };
    area = ops::sum(own_p * 0.5 * (precision(p, n) + precision(p - own_p, n - own_n))) / all_p;
  }
  const Tensor defined = ops::logical_and(ops::greater_than(all_p, number(0.0)),
                                          ops::greater_than(all_n, number(0.0)));
  const auto shaped = [&](const Tensor& counts, size_t earlier) {
    return ops::reshape(counts, c.has(earlier) ? c.operand(earlier).shape() : Shape{Dim(1), bins});
  };
  return {ops::where(defined, area, ops::full(Shape{}, 0.0, DType::kF64)), shaped(pos, 2),
          shaped(neg, 3)};
}

Tensors decompose_ctr_metric_bundle(CallContext& c) {
  constexpr const char* kName = "ctr_metric_bundle";
  const Tensor &input = c.operand(0), &given = c.operand(1);
  require_same_shape(kName, "input", input, "label", given);
  const Tensor rates = ops::cast(input, DType::kF32), label = ops::cast(given, DType::kF32);
  const auto total = [](const Tensor& x) { return ops::reshape(ops::sum(x), Shape{Dim(1)}); };
  const Tensor error = rates - label;
  Tensor weight = ops::full(Shape{Dim(1)}, 1.0, DType::kF32);
  if (c.has(2)) weight = ops::cast(first_of(c.operand(2)), DType::kF32);
  return {total(ops::square(error)),
          total(ops::abs(error)),
          total(rates),
          total(ops::sigmoid(rates)) * weight,
          total(label),
          total(ops::ones_like(label)) * weight};
}

Tensors decompose_data_norm(CallContext& c) {
  const auto a = c.attrs_as<DataNormAttrs>();
  constexpr const char* kName = "data_norm";
  constexpr double kZero = 1e-7;  // a slot whose first feature is smaller has no data
  const Tensor& x = c.operand(0);
  if (x.ndim() != 2) reject(kName, "x must be [n, features], not ", x.type());
  const char* const names[] = {"batch_size", "batch_sum", "batch_square_sum", "scale_w", "bias"};
  for (size_t i = 0; i < std::size(names); ++i)
    if (const Tensor& t = c.operand(i + 1);
        t.defined() && (t.ndim() != 1 || t.dim(0).equals(x.dim(1)) == false))
      reject(kName, names[i], " must have one number for each feature of ", x.type(), ", not ",
             t.type());
  if (c.has(4) != c.has(5)) reject(kName, "scale_w and bias must be given together");
  const Tensor means = c.operand(2) / c.operand(1), scales = ops::sqrt(c.operand(1) / c.operand(3));
  Tensor out = (x - means) * scales;
  if (c.has(4)) out = out * c.operand(4) + c.operand(5);
  if (a.slot_dim > 0) {
    if (!x.dim(1).is_constant() || x.dim(1).value() % a.slot_dim != 0)
      reject(kName, "slot_dim ", a.slot_dim, " does not divide the features of ", x.type());
    const Dim slots = x.dim(1).value() / a.slot_dim;
    const Shape apart = {x.dim(0), slots, Dim(a.slot_dim)};
    const Tensor first = slice_axis(ops::detach(ops::reshape(x, apart)), 2, 0, 1);
    const Tensor empty = ops::less_than(ops::abs(first), number(kZero));
    out = ops::reshape(ops::where(empty, number(0.0), ops::reshape(out, apart)), x.shape());
  }
  return {out, means, scales};
}

Tensors decompose_merged_momentum(CallContext& c) {
  const auto a = c.attrs_as<MergedMomentumAttrs>();
  constexpr const char* kName = "merged_momentum";
  const Tensors params = c.list(0), grads = c.list(1), velocities = c.list(2), rates = c.list(3),
                masters = c.list(4);
  const size_t count = params.size();
  check_count(kName, "grad", grads.size(), count);
  check_count(kName, "velocity", velocities.size(), count);
  check_count(kName, "learning_rate", rates.size(), count, true);
  if (!masters.empty()) check_count(kName, "master_param", masters.size(), count);
  const std::vector<std::string>& methods = a.regularization_method;
  if (methods.size() != a.regularization_coeff.size() ||
      (!methods.empty() && methods.size() != count))
    reject(kName, "regularization_method and regularization_coeff must have no or ", count,
           " entries, not ", methods.size(), " and ", a.regularization_coeff.size());
  Tensors values, states, weights;
  for (size_t i = 0; i < count; ++i) {
    double decay = 0;
    if (!methods.empty() && !methods[i].empty()) {
      if (methods[i] != "l2_decay")
        reject(kName, "regularization_method is '' or 'l2_decay', not '", methods[i], "'");
      decay = a.regularization_coeff[i];
    }
    const Tensor rate = ops::cast(scalar_of(shared(rates, i)), DType::kF32);
    const Tensor scale = a.rescale_grad == 1 ? Tensor() : number(a.rescale_grad);
    const Tensors next = ops::momentum_update(params[i], grads[i], velocities[i],
                                              masters.empty() ? Tensor() : masters[i], rate, {},
                                              scale, a.mu, a.use_nesterov, decay);
    values.push_back(next[0]);
    states.push_back(next[1]);
    if (!masters.empty()) weights.push_back(next[2]);
  }
  return joined({values, states, weights});
}

Tensors decompose_merged_adam(CallContext& c) {
  const auto a = c.attrs_as<MergedAdamAttrs>();
  constexpr const char* kName = "merged_adam";
  const Tensors params = c.list(0), grads = c.list(1), rates = c.list(2), moments1 = c.list(3),
                moments2 = c.list(4), powers1 = c.list(5), powers2 = c.list(6), masters = c.list(7);
  const size_t count = params.size();
  check_count(kName, "grad", grads.size(), count);
  check_count(kName, "learning_rate", rates.size(), count, true);
  check_count(kName, "moment1", moments1.size(), count);
  check_count(kName, "moment2", moments2.size(), count);
  check_count(kName, "beta1_pow", powers1.size(), count, true);
  check_count(kName, "beta2_pow", powers2.size(), count, true);
  if (!masters.empty()) check_count(kName, "master_param", masters.size(), count);
  std::vector<Tensors> out(6);
  for (size_t i = 0; i < count; ++i) {
    const Tensor& before = masters.empty() ? params[i] : masters[i];
    const bool narrow = before.dtype() == DType::kF16 || before.dtype() == DType::kBF16;
    const DType dtype = narrow ? DType::kF32 : before.dtype();
    const auto typed = [&](const Tensor& t) { return ops::cast(t, dtype); };
    const Tensor grad = ops::reshape(typed(grads[i]), before.shape()),
                 p1 = typed(scalar_of(shared(powers1, i))),
                 p2 = typed(scalar_of(shared(powers2, i)));
    const Tensor m1 = typed(moments1[i]) * a.beta1 + grad * (1 - a.beta1),
                 m2 = typed(moments2[i]) * a.beta2 + ops::square(grad) * (1 - a.beta2);
    const Tensor root = ops::sqrt(1.0 - p2);
    const Tensor rate = typed(scalar_of(shared(rates, i))) * root / (1.0 - p1);
    const Tensor value = typed(before) - rate * m1 / (ops::sqrt(m2) + root * a.epsilon);
    out[0].push_back(ops::cast(value, params[i].dtype()));
    out[1].push_back(ops::cast(m1, moments1[i].dtype()));
    out[2].push_back(ops::cast(m2, moments2[i].dtype()));
    if (!masters.empty()) out[5].push_back(ops::cast(value, masters[i].dtype()));
  }
  const bool kept = a.use_global_beta_pow;
  for (const Tensor& power : powers1) out[3].push_back(kept ? ops::assign(power) : power * a.beta1);
  for (const Tensor& power : powers2) out[4].push_back(kept ? ops::assign(power) : power * a.beta2);
  return joined(out);
}

Tensors decompose_check_finite_and_unscale(CallContext& c) {
  const Tensors all = c.list(0);
  if (all.empty()) reject("check_finite_and_unscale", "the list x is empty");
  Tensors out;
  for (const Tensor& x : all) out.push_back(x / ops::cast(scalar_of(c.operand(1)), x.dtype()));
  out.push_back(ops::reshape(ops::logical_not(ops::all_finite(all)), Shape{Dim(1)}));
  return out;
}

Tensors decompose_update_loss_scaling(CallContext& c) {
  const auto a = c.attrs_as<UpdateLossScalingAttrs>();
  constexpr const char* kName = "update_loss_scaling";
  if (a.incr_every_n_steps < 1 || a.decr_every_n_nan_or_inf < 1)
    reject(kName, "expected numbers of steps from 1 on, found ", a.incr_every_n_steps, " and ",
           a.decr_every_n_nan_or_inf);
  if (!(a.incr_ratio > 1) || !(a.decr_ratio > 0 && a.decr_ratio < 1))
    reject(kName, "incr_ratio must be above 1 and decr_ratio in (0, 1), not ", a.incr_ratio,
           " and ", a.decr_ratio);
  const Tensor bad = ops::not_equal(scalar_of(c.operand(1)), integer(0));
  Tensors out;
  for (const Tensor& x : c.list(0)) out.push_back(ops::where(bad, ops::zeros_like(x), x));
  const Tensor &scale = c.operand(2), &good_steps = c.operand(3), &bad_steps = c.operand(4);
  if (a.stop_update) {
    for (const Tensor* t : {&scale, &good_steps, &bad_steps}) out.push_back(ops::assign(*t));
    return out;
  }
  const auto counted = [](const Tensor& steps, const Tensor& counts) {
    return ops::where(counts, steps + integer(1), ops::zeros_like(steps));
  };
  const Tensor good = counted(good_steps, ops::logical_not(bad)), failed = counted(bad_steps, bad);
  const Tensor grows = ops::greater_equal(good, integer(a.incr_every_n_steps)),
               shrinks = ops::greater_equal(failed, integer(a.decr_every_n_nan_or_inf));
  const Tensor larger = scale * a.incr_ratio,
               smaller = ops::maximum(scale * a.decr_ratio, ops::ones_like(scale));
  const Tensor next = ops::where(ops::reshape(grows, scale.shape()),
                                 ops::where(ops::isfinite(larger), larger, scale), scale);
  out.push_back(ops::where(ops::reshape(shrinks, scale.shape()), smaller, next));
  out.push_back(ops::where(grows, ops::zeros_like(good), good));
  out.push_back(ops::where(shrinks, ops::zeros_like(failed), failed));
  return out;
}

Tensors decompose_c_embedding(CallContext& c) {
  const auto a = c.attrs_as<CEmbeddingAttrs>();
  constexpr const char* kName = "c_embedding";
  const Tensor &table = c.operand(0), &x = c.operand(1);
  if (table.ndim() != 2) reject(kName, "weight must be [rows, width], not ", table.type());
  if (table.dim(0).equals(0) == true) reject(kName, "weight has no rows");
  const Tensor place = ops::cast(x, DType::kI64) - integer(a.start_index);
  const Tensor rows = dim_value(table.dim(0), DType::kI64);
  const Tensor inside =
      ops::logical_and(ops::greater_equal(place, integer(0)), ops::less_than(place, rows));
  const Tensor found = ops::embedding(ops::where(inside, place, integer(0)), table);
  return {ops::where(ops::unsqueeze(inside, Axes{-1}), found, number(0.0))};
}

Tensors decompose_c_identity(CallContext& c) {
  const auto a = c.attrs_as<CIdentityAttrs>();
  check_single_rank(c.op().name(), a.nranks, a.rank);
  return {ops::assign(c.operand(0))};
}

Tensors decompose_c_softmax_with_cross_entropy(CallContext& c) {
  const auto a = c.attrs_as<CSoftmaxWithCrossEntropyAttrs>();
  check_single_rank(c.op().name(), a.nranks, a.rank);
  const Tensors out = ops::softmax_with_cross_entropy(c.operand(0), c.operand(1), false,
                                                      a.ignore_index, true, true);
  return {out[1], out[0]};
}

}  // namespace paddle::rules
