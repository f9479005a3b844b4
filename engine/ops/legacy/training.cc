// Rules of training.yaml.

#include <cmath>
#include <limits>
#include <numeric>

#include "ops/core/compose.h"
#include "ops/generated/creation.h"
#include "ops/generated/indexing.h"
#include "ops/generated/legacy.h"
#include "ops/generated/legacy_rules.h"
#include "ops/generated/linalg.h"
#include "ops/generated/loss.h"
#include "ops/generated/math.h"
#include "ops/generated/nn.h"
#include "ops/generated/optimizer.h"
#include "ops/generated/random.h"
#include "ops/generated/reduce.h"
#include "ops/generated/shape.h"
#include "ops/generated/vision.h"

namespace paddle::rules {
namespace {

Dim size_of(const Tensor& x) { return element_count(std::span<const Dim>(x.shape())); }

Tensor joined_flat(const Tensors& tensors) {
  Tensors parts;
  for (const Tensor& each : tensors) parts.push_back(flat(each));
  return ops::concat(parts, 0);
}

/// x over its length.
Tensor unit(const Tensor& x, double epsilon) {
  return x / (ops::sqrt(ops::sum(ops::square(x))) + epsilon);
}

/// The padding of a convolution: sizes, or the name of a rule.
AttrValue padding_of(const std::string& algorithm, const std::vector<int64_t>& sizes) {
  return algorithm == "EXPLICIT" ? AttrValue(sizes) : AttrValue(algorithm);
}

}  // namespace

Tensors decompose_brelu(CallContext& c) {
  const auto a = c.attrs_as<BreluAttrs>();
  if (!(a.t_min <= a.t_max))
    reject("brelu", "t_min must not be above t_max, found ", a.t_min, " and ", a.t_max);
  return {ops::clip(c.operand(0), AttrValue(a.t_min), AttrValue(a.t_max))};
}

Tensors decompose_huber_loss(CallContext& c) {
  const auto a = c.attrs_as<HuberLossAttrs>();
  return {ops::smooth_l1_loss(c.operand(0), c.operand(1), "none", a.delta)};
}

Tensors decompose_sparse_momentum(CallContext& c) {
  const auto a = c.attrs_as<SparseMomentumAttrs>();
  constexpr const char* kName = "sparse_momentum";
  const Tensor &param = c.operand(0), &grad = c.operand(1), &velocity = c.operand(2),
               &index = c.operand(3);
  if (param.ndim() != 2) reject(kName, "param must be a matrix, not ", param.type());
  if (a.axis != 0 && a.axis != 1) reject(kName, "axis must be 0 or 1, not ", a.axis);
  if (index.ndim() != 1) reject(kName, "index must be a vector, not ", index.type());
  Shape shape = param.shape();
  shape[static_cast<size_t>(a.axis)] = index.dim(0);
  bool fits = grad.ndim() == 2;
  for (int64_t i = 0; fits && i < 2; ++i)
    fits = grad.dim(i).equals(shape[static_cast<size_t>(i)]) != false;
  if (!fits)
    reject(kName, "grad ", grad.type(), " does not fit param ", param.type(), " and index ",
           index.type());
  if (size_of(c.operand(4)).equals(Dim(1)) == false)
    reject(kName, "learning_rate must be one number, not ", c.operand(4).type());
  double decay = 0;
  if (a.regularization_method == "l2_decay")
    decay = a.regularization_coeff;
  else if (!a.regularization_method.empty())
    reject(kName, "regularization_method is '' or 'l2_decay', not '", a.regularization_method, "'");
  const Tensor whole = ops::index_add(full_of(param.shape(), 0, grad.dtype()),
                                      ops::cast(index, DType::kI64), a.axis, grad);
  const bool masters = c.has(5);
  const Tensor rate = ops::cast(ops::reshape(c.operand(4), Shape{}), DType::kF32);
  Tensors out = ops::momentum_update(
      param, whole, velocity, masters ? c.operand(5) : Tensor(), rate, {},
      a.rescale_grad == 1 ? Tensor() : number(a.rescale_grad), a.mu, a.use_nesterov, decay);
  out.resize(masters ? 3 : 2);
  return out;
}

Tensors decompose_clip_grad_norm(CallContext& c) {
  const auto a = c.attrs_as<ClipGradNormAttrs>();
  constexpr const char* kName = "clip_grad_norm";
  Tensors out = c.list(0);
  if (out.empty()) reject(kName, "x has no tensors");
  if (!(a.max_norm >= 0)) reject(kName, "max_norm must be 0 or more, not ", a.max_norm);
  if (!(a.norm_type > 0)) reject(kName, "norm_type must be above 0, not ", a.norm_type);
  const bool is_largest = std::isinf(a.norm_type);
  Tensor total;
  for (const Tensor& x : out) {
    const Tensor size = ops::abs(x);
    const Tensor part =
        is_largest
            ? ops::max(size)
            : ops::sum(a.norm_type == 2 ? ops::square(x) : ops::pow(size, number(a.norm_type)));
    if (!total.defined())
      total = part;
    else
      total = is_largest ? ops::maximum(total, part) : total + part;
  }
  if (!is_largest)
    total = a.norm_type == 2 ? ops::sqrt(total) : ops::pow(total, number(1 / a.norm_type));
  const Tensor factor = ops::minimum(a.max_norm / (total + 1e-6), number(1.0));
  for (Tensor& x : out) x = x * ops::cast(factor, x.dtype());
  out.push_back(total);
  return out;
}

Tensors decompose_parameters_to_vector(CallContext& c) {
  if (c.list(0).empty()) reject("parameters_to_vector", "the list of parameters is empty");
  return {joined_flat(c.list(0))};
}

Tensors decompose_vector_to_parameters(CallContext& c) {
  constexpr const char* kName = "vector_to_parameters";
  const Tensor& vec = c.operand(0);
  check_vector(kName, vec);
  Dim total(0);
  Tensors out;
  for (const Tensor& like : c.list(1)) {
    const Dim end = total + size_of(like);
    if (vec.dim(0).less(end) == true)
      reject(kName, "vec ", vec.type(), " is too short for the parameters");
    out.push_back(ops::reshape(slice_axis(vec, 0, total, end), like.shape()));
    total = end;
  }
  if (vec.dim(0).equals(total) == false)
    reject(kName, "vec ", vec.type(), " has more elements than the parameters, ", total);
  return out;
}

Tensors decompose_spectral_norm(CallContext& c) {
  const auto a = c.attrs_as<SpectralNormAttrs>();
  constexpr const char* kName = "spectral_norm";
  const Tensor& weight = c.operand(0);
  if (weight.ndim() < 2) reject(kName, "weight must have two axes or more, not ", weight.type());
  constexpr int64_t kMax = 1000;
  if (a.power_iters < 0 || a.power_iters > kMax)
    reject(kName, "power_iters must be from 0 to ", kMax, ", not ", a.power_iters);
  const int64_t axis = axis_of(kName, a.dim, weight.ndim());
  const Tensor matrix = ops::reshape(axis == 0 ? weight : ops::moveaxis(weight, {axis}, {0}),
                                     {weight.dim(axis), Dim(-1)});
  const Dim rows = weight.dim(axis);
  const Dim columns = floor_divide(size_of(weight), rows);
  const auto vector = [&](size_t i, const char* name, const Dim& size) {
    const Tensor& x = c.operand(i);
    if (x.ndim() != 1 || x.dim(0).equals(size) == false)
      reject(kName, name, " must be [", size, "], not ", x.type());
    return ops::detach(x);
  };
  const Tensor fixed = ops::detach(matrix);
  Tensor u = vector(1, "u", rows), v = vector(2, "v", columns);
  for (int64_t i = 0; i < a.power_iters; ++i) {
    v = unit(ops::mv(ops::transpose(fixed, {1, 0}), u), a.eps);
    u = unit(ops::mv(fixed, v), a.eps);
  }
  u = ops::detach(u);
  v = ops::detach(v);
  const Tensor largest = ops::sum(u * ops::mv(matrix, v));
  return {weight / largest, u, v};
}

Tensors decompose_seed(CallContext& c) {
  const int64_t seed = c.attrs_as<SeedAttrs>().seed;
  constexpr int64_t kMax = std::numeric_limits<int32_t>::max();
  if (seed < 0 || seed > kMax) reject("seed", "seed must be from 0 to ", kMax, ", not ", seed);
  if (seed == 0) return {ops::randint(1, kMax, {1}, DType::kI32)};
  return {full_of({Dim(1)}, static_cast<double>(seed), DType::kI32)};
}

Tensors decompose_fill_constant(CallContext& c) {
  const auto a = c.attrs_as<FillConstantAttrs>();
  return {ops::full(a.shape, a.value, a.dtype)};
}

Tensors decompose_p_norm(CallContext& c) {
  const auto a = c.attrs_as<PNormAttrs>();
  const std::optional<Axes> axes = a.asvector ? std::nullopt : std::optional(Axes{a.axis});
  return {ops::norm(a.asvector ? flat(c.operand(0)) : c.operand(0), AttrValue(a.porder), axes,
                    a.keepdim && !a.asvector)};
}

Tensors decompose_frobenius_norm(CallContext& c) {
  const auto a = c.attrs_as<FrobeniusNormAttrs>();
  const Tensor squares = ops::square(ops::abs(c.operand(0)));
  return {ops::sqrt(ops::sum(squares, a.reduce_all ? std::nullopt : a.axis, {}, a.keepdim))};
}

Tensors decompose_bce_loss(CallContext& c) {
  return {ops::binary_cross_entropy(c.operand(0), c.operand(1), {}, "none")};
}

Tensors decompose_sigmoid_cross_entropy_with_logits(CallContext& c) {
  const auto a = c.attrs_as<SigmoidCrossEntropyWithLogitsAttrs>();
  const Tensor &x = c.operand(0), &label = c.operand(1);
  require_same_shape("sigmoid_cross_entropy_with_logits", "x", x, "label", label);
  const Tensor counts = ops::not_equal(label, integer(a.ignore_index));
  const Tensor loss = ops::where(
      counts, ops::binary_cross_entropy_with_logits(x, label, {}, "none", {}), number(0.0));
  if (!a.normalize) return {loss};
  return {loss / ops::maximum(ops::sum(mask_of(counts, loss)), number(1e-5))};
}

Tensors decompose_tril_triu(CallContext& c) {
  const auto a = c.attrs_as<TrilTriuAttrs>();
  return {a.lower ? ops::tril(c.operand(0), a.diagonal) : ops::triu(c.operand(0), a.diagonal)};
}

Tensors decompose_lookup_table_v2(CallContext& c) {
  const auto a = c.attrs_as<LookupTableV2Attrs>();
  return {ops::embedding(c.operand(1), c.operand(0),
                         a.padding_idx < 0 ? std::nullopt : std::optional(a.padding_idx))};
}

Tensors decompose_py_func(CallContext&) {
  reject("py_func",
         "the engine runs no Python; write the function in the model language, of operations");
}

Tensors decompose_hard_sigmoid(CallContext& c) {
  const auto a = c.attrs_as<HardSigmoidAttrs>();
  return {ops::hardsigmoid(c.operand(0), a.slope, a.offset)};
}

Tensors decompose_depthwise_conv2d(CallContext& c) {
  const auto a = c.attrs_as<DepthwiseConv2dAttrs>();
  return {ops::conv2d(c.operand(0), c.operand(1), {}, AttrValue(a.strides),
                      padding_of(a.padding_algorithm, a.paddings), AttrValue(a.dilations), a.groups,
                      a.data_format)};
}

Tensors decompose_depthwise_conv2d_transpose(CallContext& c) {
  const auto a = c.attrs_as<DepthwiseConv2dTransposeAttrs>();
  return {ops::conv2d_transpose(
      c.operand(0), c.operand(1), {}, AttrValue(a.strides),
      padding_of(a.padding_algorithm, a.paddings),
      a.output_padding.empty() ? AttrValue(0) : AttrValue(a.output_padding), AttrValue(a.dilations),
      a.groups, a.output_size.empty() ? AttrValue() : AttrValue(a.output_size), a.data_format)};
}

Tensors decompose_deformable_conv(CallContext& c) {
  const auto a = c.attrs_as<DeformableConvAttrs>();
  return {ops::deform_conv2d(c.operand(0), c.operand(1), c.operand(2), {}, AttrValue(a.strides),
                             AttrValue(a.paddings), AttrValue(a.dilations), a.deformable_groups,
                             a.groups, c.operand(3))};
}

Tensors decompose_warpctc(CallContext& c) {
  const auto a = c.attrs_as<WarpctcAttrs>();
  return {ops::unsqueeze(ops::ctc_loss(c.operand(0), c.operand(1), c.operand(2), c.operand(3),
                                       a.blank, "none", a.norm_by_times),
                         {1})};
}

}  // namespace paddle::rules
