// Rules of schema/compound.yaml.

#include <cmath>
#include <numbers>

#include "ops/compose.h"
#include "ops/generated/attrs.h"
#include "ops/generated/rules.h"

namespace paddle::rules {
namespace {

Tensor number(double value) { return Tensor::number(value); }

/// 0, 1, … along a new 1-D tensor.
Tensor counted(const Dim& count, DType dtype) {
  return ops::cumsum(full_of({count}, 1, dtype), int64_t{0}) - integer(1);
}

Tensor truth(const Shape& shape, bool value) {
  return ops::full(shape, AttrValue(value), DType::kBool);
}

void check_vector(const char* op, const Tensor& x) {
  if (x.ndim() != 1) refuse(op, "expected a vector, found ", x.type());
}

}  // namespace

Tensors decompose_rrelu(CallContext& c) {
  const auto a = c.attrs_as<RreluAttrs>();
  const Tensor& x = c.operand(0);
  if (!(a.lower >= 0 && a.lower <= a.upper && a.upper <= 1))
    refuse("rrelu", "0 <= lower <= upper <= 1 is needed, not ", a.lower, " and ", a.upper);
  const Tensor scaled =
      a.training ? x * ops::cast(ops::uniform(x.shape(), {}, a.lower, a.upper), x.dtype())
                 : x * ((a.lower + a.upper) / 2);
  return {ops::where(ops::greater_equal(x, number(0)), x, scaled)};
}

Tensors decompose_isreal(CallContext& c) { return {truth(c.operand(0).shape(), true)}; }

Tensors decompose_is_empty(CallContext& c) {
  const Dim count = element_count(std::span<const Dim>(c.operand(0).shape()));
  return {ops::equal(dim_value(count, DType::kI64), integer(0))};
}

Tensors decompose_angle(CallContext& c) {
  const Tensor& x = c.operand(0);
  const Tensor turned = ops::where(ops::less_than(x, number(0)), number(std::numbers::pi), x * 0.0);
  return {ops::where(ops::isnan(x), x, turned)};
}

Tensors decompose_frexp(CallContext& c) {
  const Tensor& x = c.operand(0);
  const Tensor size = ops::abs(ops::detach(x));
  const Tensor plain = ops::logical_and(ops::greater_than(size, number(0)), ops::isfinite(size));
  const Tensor safe = ops::where(plain, size, number(1.0));
  // A logarithm may be off by one at powers of two; the mantissa tells.
  Tensor exponent = ops::floor(ops::log2(safe)) + 1.0;
  const auto mantissa_of = [&] { return safe / ops::pow(number(2.0), exponent); };
  const auto step = [&](const Tensor& where) { return mask_of(where, safe); };
  exponent = exponent + step(ops::greater_equal(mantissa_of(), number(1.0)));
  exponent = exponent - step(ops::less_than(mantissa_of(), number(0.5)));
  exponent = ops::where(plain, exponent, number(0));
  return {x / ops::pow(number(2.0), exponent), exponent};
}

Tensors decompose_multigammaln(CallContext& c) {
  const int64_t p = c.attrs_as<MultigammalnAttrs>().p;
  const Tensor& x = c.operand(0);
  if (p < 1 || p > 1024) refuse("multigammaln", "p must lie in [1, 1024], not ", p);
  const auto dimension = static_cast<double>(p);
  Tensor sum = ops::lgamma(x) + dimension * (dimension - 1) / 4 * std::log(std::numbers::pi);
  for (int64_t i = 1; i < p; ++i) sum = sum + ops::lgamma(x - static_cast<double>(i) / 2);
  return {sum};
}

Tensors decompose_narrow(CallContext& c) {
  const auto a = c.attrs_as<NarrowAttrs>();
  const Tensor& x = c.operand(0);
  if (a.dim < -x.ndim() || a.dim >= x.ndim())
    refuse("narrow", "dim ", a.dim, " is out of range for ", x.type());
  const Dim size = x.dim(a.dim);
  const Dim start = a.start < 0 ? size + a.start : Dim(a.start);
  if (a.length < 0 || start.less(0).value_or(false) || size.less(start + a.length).value_or(false))
    refuse("narrow", a.length, " elements from ", a.start, " do not lie in an axis of ", size);
  return {slice_axis(x, a.dim < 0 ? a.dim + x.ndim() : a.dim, start, start + a.length)};
}

Tensors decompose_ravel(CallContext& c) { return {ops::reshape(c.operand(0), Shape{-1})}; }
Tensors decompose_msort(CallContext& c) { return {ops::sort(c.operand(0), 0)}; }
Tensors decompose_argwhere(CallContext& c) { return ops::nonzero(c.operand(0)); }

Tensors decompose_scatter_add(CallContext& c) {
  const int64_t dim = c.attrs_as<ScatterAddAttrs>().dim;
  return {ops::put_along_axis(c.operand(0), c.operand(1), c.operand(2), dim, "add", true, false)};
}

Tensors decompose_scatter_reduce(CallContext& c) {
  const auto a = c.attrs_as<ScatterReduceAttrs>();
  const std::string how = a.reduce == "sum" ? "add" : a.reduce == "prod" ? "mul" : a.reduce;
  return {ops::put_along_axis(c.operand(0), c.operand(1), c.operand(2), a.dim, how, a.include_self,
                              false)};
}

Tensors decompose_cartesian_prod(CallContext& c) {
  const Tensors vectors = c.list(0);
  if (vectors.empty()) refuse("cartesian_prod", "x is empty");
  for (const Tensor& x : vectors) check_vector("cartesian_prod", x);
  if (vectors.size() == 1) return {ops::assign(vectors[0])};
  Tensors columns;
  for (const Tensor& x : ops::meshgrid(vectors)) columns.push_back(ops::reshape(x, Shape{-1}));
  return {ops::stack(columns, 1)};
}

Tensors decompose_combinations(CallContext& c) {
  const auto a = c.attrs_as<CombinationsAttrs>();
  const Tensor& x = c.operand(0);
  check_vector("combinations", x);
  if (a.r < 0) refuse("combinations", "r must not be negative, not ", a.r);
  const int64_t n = x.dim(0).value(), step = a.with_replacement ? 0 : 1;
  if (a.r == 0) return {full_of({Dim(0)}, 0, x.dtype())};
  std::vector<int64_t> rows;
  std::vector<int64_t> chosen;
  const auto choose = [&](auto&& self, int64_t first) -> void {
    if (static_cast<int64_t>(chosen.size()) == a.r) {
      rows.insert(rows.end(), chosen.begin(), chosen.end());
      if (rows.size() > size_t{1} << 26) refuse("combinations", "more than 2^26 elements");
      return;
    }
    for (int64_t i = first; i < n; ++i) {
      chosen.push_back(i);
      self(self, i + step);
      chosen.pop_back();
    }
  };
  choose(choose, 0);
  const auto count = static_cast<int64_t>(rows.size()) / a.r;
  if (count == 0) return {full_of({Dim(0), Dim(a.r)}, 0, x.dtype())};
  const Tensor picked = ops::index_select(x, Tensor(Array::from(rows, {count * a.r})));
  return {ops::reshape(picked, {Dim(count), Dim(a.r)})};
}

Tensors decompose_vander(CallContext& c) {
  const auto a = c.attrs_as<VanderAttrs>();
  const Tensor& x = c.operand(0);
  check_vector("vander", x);
  if (a.n && *a.n < 0) refuse("vander", "n must not be negative, not ", *a.n);
  const int64_t n = a.n ? *a.n : x.dim(0).value();
  if (n > 65536) refuse("vander", "more than 65536 columns: ", n);
  if (n == 0) return {full_of({x.dim(0), Dim(0)}, 0, x.dtype())};
  Tensors columns = {ones_like(x)};
  for (int64_t i = 1; i < n; ++i) columns.push_back(columns.back() * x);
  if (!a.increasing) columns = Tensors(columns.rbegin(), columns.rend());
  return {ops::stack(columns, 1)};
}

Tensors decompose_reduce_as(CallContext& c) {
  const Tensor& x = c.operand(0);
  const Shape& target = c.operand(1).shape();
  const size_t lead = x.shape().size() - target.size();
  bool fits = target.size() <= x.shape().size();
  for (size_t i = 0; fits && i < target.size(); ++i)
    fits = target[i].equals(1) != false || target[i].equals(x.shape()[lead + i]) != false;
  if (!fits) refuse("reduce_as", x.type(), " does not reduce to ", text(target));
  const Tensor y = sum_to(x, target);
  return {y.is_same_cell(x) ? ops::assign(x) : y};
}

Tensors decompose_shard_index(CallContext& c) {
  const auto a = c.attrs_as<ShardIndexAttrs>();
  const Tensor& x = c.operand(0);
  if (a.index_num < 1 || a.nshards < 1)
    refuse("shard_index", "index_num and nshards must be positive");
  if (a.shard_id < 0 || a.shard_id >= a.nshards)
    refuse("shard_index", "shard_id ", a.shard_id, " must lie in [0, ", a.nshards, ")");
  const int64_t size = (a.index_num + a.nshards - 1) / a.nshards;
  const Tensor mine = ops::equal(ops::floor_divide(x, integer(size)), integer(a.shard_id));
  return {ops::where(
      mine, ops::remainder(x, integer(size)),
      ops::cast(full_of({}, static_cast<double>(a.ignore_value), DType::kI64), x.dtype()))};
}

Tensors decompose_sequence_mask(CallContext& c) {
  const auto a = c.attrs_as<SequenceMaskAttrs>();
  const Tensor& x = c.operand(0);
  if (a.maxlen < 1) refuse("sequence_mask", "maxlen must be positive, not ", a.maxlen);
  return {
      ops::cast(ops::less_than(counted(a.maxlen, x.dtype()), ops::unsqueeze(x, {-1})), a.dtype)};
}

// --- random numbers ---

Tensors decompose_rand_like(CallContext& c) {
  const Tensor& x = c.operand(0);
  return {ops::rand(x.shape(), c.attrs_as<RandLikeAttrs>().dtype.value_or(x.dtype()))};
}

Tensors decompose_randn_like(CallContext& c) {
  const Tensor& x = c.operand(0);
  return {ops::randn(x.shape(), c.attrs_as<RandnLikeAttrs>().dtype.value_or(x.dtype()))};
}

Tensors decompose_log_normal(CallContext& c) {
  const auto a = c.attrs_as<LogNormalAttrs>();
  return {ops::exp(ops::normal(a.mean, a.std, a.shape))};
}

// --- losses ---

Tensors decompose_softmax_with_cross_entropy(CallContext& c) {
  const auto a = c.attrs_as<SoftmaxWithCrossEntropyAttrs>();
  const Tensor& logits = c.operand(0);
  Tensor label = c.operand(1);
  const int64_t axis = a.axis < 0 ? a.axis + logits.ndim() : a.axis;
  if (axis < 0 || axis >= logits.ndim())
    refuse("softmax_with_cross_entropy", "axis ", a.axis, " is out of range for ", logits.type());
  if (!a.soft_label && label.ndim() == logits.ndim() - 1) label = ops::unsqueeze(label, {axis});
  Tensor loss = ops::cross_entropy(logits, label, {}, a.ignore_index, "none", a.soft_label, axis);
  if (loss.ndim() < logits.ndim()) loss = ops::unsqueeze(loss, {axis});
  Tensors out = {loss};
  if (a.return_softmax) out.push_back(ops::softmax(logits, axis));
  return out;
}

Tensors decompose_multi_margin_loss(CallContext& c) {
  const auto a = c.attrs_as<MultiMarginLossAttrs>();
  const Tensor &x = c.operand(0), &label = c.operand(1);
  if (x.ndim() != 2 || label.ndim() != 1)
    refuse("multi_margin_loss", "expected input [n, classes] and label [n], found ", x.type(),
           " and ", label.type());
  if (x.dim(0).equals(label.dim(0)) == false)
    refuse("multi_margin_loss", "input ", x.type(), " and label ", label.type(), " differ in n");
  if (c.has(2) && c.operand(2).dim(-1).equals(x.dim(1)) == false)
    refuse("multi_margin_loss", "weight ", c.operand(2).type(), " does not fit the classes of ",
           x.type());
  if (a.p != 1 && a.p != 2) refuse("multi_margin_loss", "p must be 1 or 2, not ", a.p);
  const Tensor place = ops::unsqueeze(ops::cast(label, DType::kI64), {1});
  const Tensor right = ops::gather_along(x, place, 1);
  Tensor each = x - right + a.margin;
  Tensor weight;
  if (c.has(2)) weight = ops::unsqueeze(ops::index_select(c.operand(2), label), {1});
  each = ops::relu(each);
  if (a.p == 2) each = ops::square(each);
  if (weight.defined()) each = each * weight;
  const Tensor others = ops::not_equal(ops::unsqueeze(counted(x.dim(1), DType::kI64), {0}), place);
  const Tensor sum = ops::sum(each * mask_of(others, each), Axes{1});
  return {reduce_loss(sum / dim_value(x.dim(1), x.dtype()), a.reduction)};
}

Tensors decompose_npair_loss(CallContext& c) {
  const auto a = c.attrs_as<NpairLossAttrs>();
  const Tensor &anchor = c.operand(0), &positive = c.operand(1);
  require_same_shape("npair_loss", "anchor", anchor, "positive", positive);
  const Tensor label = ops::reshape(c.operand(2), Shape{-1});
  const Tensor same =
      mask_of(ops::equal(ops::unsqueeze(label, {1}), ops::unsqueeze(label, {0})), anchor);
  const Tensor share = same / ops::sum(same, Axes{1}, std::nullopt, true);
  const auto size = [](const Tensor& t) { return ops::mean(ops::sum(ops::square(t), Axes{1})); };
  const Tensor penalty = (size(anchor) + size(positive)) * (0.25 * a.l2_reg);
  const Tensor similar = ops::matmul(anchor, positive, false, true);
  const Tensor entropy = ops::cross_entropy(similar, share, {}, -100, "none", true);
  const Tensor rows = ops::reshape(entropy, {label.dim(0), Dim(1)});
  return {penalty + ops::mean(ops::sum(share * rows, Axes{0}))};
}

// --- spatial transforms ---

Tensors decompose_temporal_shift(CallContext& c) {
  const auto a = c.attrs_as<TemporalShiftAttrs>();
  const bool last = a.data_format == "NHWC";
  if (c.operand(0).ndim() != 4)
    refuse("temporal_shift", "x must have 4 dimensions, not ", c.operand(0).type());
  const Tensor x = last ? ops::transpose(c.operand(0), {0, 3, 1, 2}) : c.operand(0);
  if (!(a.shift_ratio > 0 && a.shift_ratio < 0.5))
    refuse("temporal_shift", "shift_ratio must lie in (0, 0.5), not ", a.shift_ratio);
  if (a.seg_num < 1 || modulo(x.dim(0), a.seg_num).constant().value_or(0) != 0)
    refuse("temporal_shift", x.dim(0), " frames do not divide into segments of ", a.seg_num);
  const auto channels = static_cast<double>(x.dim(1).value());
  const auto first = static_cast<int64_t>(channels * a.shift_ratio),
             second = static_cast<int64_t>(channels * 2 * a.shift_ratio);
  const Tensor frames = ops::reshape(
      x, {floor_divide(x.dim(0), a.seg_num), Dim(a.seg_num), x.dim(1), x.dim(2), x.dim(3)});
  const Tensor bordered = ops::pad(frames, {0, 0, 1, 1, 0, 0, 0, 0, 0, 0});
  const Tensor before = slice_axis(slice_axis(bordered, 1, 0, a.seg_num), 2, 0, first);
  const Tensor after = slice_axis(slice_axis(bordered, 1, 2, a.seg_num + 2), 2, first, second);
  const Tensor kept = slice_axis(frames, 2, second, x.dim(1));
  const Tensor y = ops::reshape(ops::concat({before, after, kept}, 2), x.shape());
  return {last ? ops::transpose(y, {0, 2, 3, 1}) : y};
}

Tensors decompose_affine_grid(CallContext& c) {
  const auto a = c.attrs_as<AffineGridAttrs>();
  const Tensor& theta = c.operand(0);
  const size_t n = a.out_shape.size() - 2;
  if ((a.out_shape.size() != 4 && a.out_shape.size() != 5) || theta.ndim() != 3 ||
      theta.dim(1).equals(static_cast<int64_t>(n)) == false ||
      theta.dim(2).equals(static_cast<int64_t>(n) + 1) == false)
    refuse("affine_grid", "theta ", theta.type(), " does not fit the shape ", text(a.out_shape));
  Tensors axes;
  for (size_t i = 0; i < n; ++i) {
    const int64_t size = a.out_shape[i + 2].value();
    if (size < 1) refuse("affine_grid", "out_shape ", text(a.out_shape), " is empty");
    std::vector<double> places;
    for (int64_t k = 0; k < size; ++k) {
      const auto at = static_cast<double>(k), whole = static_cast<double>(size);
      places.push_back(!a.align_corners ? (2 * at + 1) / whole - 1
                       : size == 1      ? 0.0
                                        : 2 * at / (whole - 1) - 1);
    }
    axes.push_back(ops::cast(Tensor(Array::from(places, {size})), theta.dtype()));
  }
  // Rows of (x, y[, z], 1): the first coordinate is the last axis.
  const Tensors grid = ops::meshgrid(axes);
  Tensors columns;
  for (size_t i = n; i-- > 0;) columns.push_back(ops::reshape(grid[i], Shape{-1}));
  columns.push_back(ones_like(columns[0]));
  const Tensor places = ops::matmul(ops::stack(columns, 1), ops::matrix_transpose(theta));
  Shape shape = {theta.dim(0)};
  shape.insert(shape.end(), a.out_shape.begin() + 2, a.out_shape.end());
  shape.push_back(static_cast<int64_t>(n));
  return {ops::reshape(places, shape)};
}

// --- distances ---

Tensors decompose_cdist(CallContext& c) {
  const auto a = c.attrs_as<CdistAttrs>();
  const Tensor &x = c.operand(0), &y = c.operand(1);
  if (x.ndim() < 2 || y.ndim() < 2)
    refuse("cdist", "expected matrices, found ", x.type(), " and ", y.type());
  if (x.dim(-1).equals(y.dim(-1)) == false)
    refuse("cdist", "rows differ in length: ", x.type(), " and ", y.type());
  if (!(a.p.as_double() >= 0)) refuse("cdist", "p must not be negative, not ", a.p);
  return {ops::vector_norm(ops::unsqueeze(x, {-2}) - ops::unsqueeze(y, {-3}), a.p, {{-1}})};
}

Tensors decompose_pdist(CallContext& c) {
  const auto a = c.attrs_as<PdistAttrs>();
  const Tensor& x = c.operand(0);
  if (x.ndim() != 2) refuse("pdist", "expected a matrix, found ", x.type());
  const int64_t n = x.dim(0).value();
  if (n > 20000) refuse("pdist", "more than 20000 rows: ", n);
  std::vector<int64_t> first, second;
  for (int64_t i = 0; i < n; ++i)
    for (int64_t k = i + 1; k < n; ++k) {
      first.push_back(i);
      second.push_back(k);
    }
  const auto count = static_cast<int64_t>(first.size());
  if (count == 0) return {full_of({Dim(0)}, 0, x.dtype())};
  const Tensor difference = ops::index_select(x, Tensor(Array::from(first, {count}))) -
                            ops::index_select(x, Tensor(Array::from(second, {count})));
  return {ops::vector_norm(difference, a.p, {{-1}})};
}

Tensors decompose_renorm(CallContext& c) {
  const auto a = c.attrs_as<RenormAttrs>();
  const Tensor& x = c.operand(0);
  const int64_t axis = a.axis < 0 ? a.axis + x.ndim() : a.axis;
  if (axis < 0 || axis >= x.ndim())
    refuse("renorm", "axis ", a.axis, " is out of range for ", x.type());
  if (!(a.p.as_double() > 0)) refuse("renorm", "p must be positive, not ", a.p);
  Axes others;
  for (int64_t i = 0; i < x.ndim(); ++i)
    if (i != axis) others.push_back(i);
  if (others.empty()) others.push_back(x.ndim());
  const Tensor wide = x.ndim() == 1 ? ops::unsqueeze(x, {1}) : x;
  const Tensor size = ops::vector_norm(wide, a.p, others, true);
  const Tensor factor = ops::where(ops::greater_than(size, number(a.max_norm)),
                                   a.max_norm / (size + 1e-7), number(1.0));
  return {ops::reshape(wide * factor, x.shape())};
}

// --- fused forms ---

namespace {

Tensor product(const Tensor& x, const Tensor& y, const Tensor& bias, bool transpose_x,
               bool transpose_y) {
  const Tensor z = ops::matmul(x, y, transpose_x, transpose_y);
  return bias.defined() ? z + bias : z;
}

}  // namespace

Tensors decompose_fused_linear(CallContext& c) {
  return {product(c.operand(0), c.operand(1), c.operand(2), false,
                  c.attrs_as<FusedLinearAttrs>().transpose_weight)};
}

Tensors decompose_fused_matmul_bias(CallContext& c) {
  const auto a = c.attrs_as<FusedMatmulBiasAttrs>();
  return {product(c.operand(0), c.operand(1), c.operand(2), a.transpose_x, a.transpose_y)};
}

Tensors decompose_fused_linear_activation(CallContext& c) {
  const auto a = c.attrs_as<FusedLinearActivationAttrs>();
  const Tensor y = product(c.operand(0), c.operand(1), c.operand(2), a.trans_x, a.trans_y);
  const std::string act = a.activation.value_or("none");
  return {act == "gelu" ? ops::gelu(y) : act == "relu" ? ops::relu(y) : y};
}

Tensors decompose_fused_dropout_add(CallContext& c) {
  const auto a = c.attrs_as<FusedDropoutAddAttrs>();
  return {ops::dropout(c.operand(0), a.p, std::nullopt, a.training, a.mode) + c.operand(1)};
}

}  // namespace paddle::rules
