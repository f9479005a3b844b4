// Rules of sorting.yaml.

#include <algorithm>
#include <limits>

#include "ops/core/compose.h"
#include "ops/core/run_time_attrs.h"
#include "ops/generated/creation.h"
#include "ops/generated/indexing.h"
#include "ops/generated/math.h"
#include "ops/generated/reduce.h"
#include "ops/generated/shape.h"
#include "ops/generated/sorting.h"
#include "ops/generated/sorting_rules.h"

namespace paddle::rules {
namespace {

int64_t normal_axis(const char* op, int64_t axis, const Tensor& x) {
  const int64_t rank = std::max<int64_t>(1, x.ndim());
  if (axis < -rank || axis >= rank)
    fail(ErrorCode::kUsage, op, ": axis ", axis, " is out of range for ", x.type());
  return axis < 0 ? axis + rank : axis;
}

/// Elements `at` (from the front) along an axis, which stays with size 1.
Tensor slice_at(const Tensor& x, int64_t axis, int64_t at) {
  return x.ndim() == 0 ? x : ops::strided_slice(x, {axis}, {Dim(at)}, {Dim(at + 1)}, {1});
}

Tensor drop(const Tensor& x, int64_t axis, bool keepdim) {
  return keepdim || x.ndim() == 0 ? x : ops::squeeze(x, std::vector<int64_t>{axis});
}

/// x with the axes of an order statistic flattened into the last one.
struct Flattened {
  Tensor x;
  std::vector<int64_t> axes;
  int64_t rank;

  /// A result without the last axis, with the axes back as 1s if they are kept.
  Tensor restore(const Tensor& t, bool keepdim, int64_t lead = 0) const {
    if (!keepdim) return t;
    std::vector<int64_t> at;
    for (const int64_t axis : axes) at.push_back(axis + lead);
    return ops::unsqueeze(t, at);
  }
};

Flattened flatten_axes(const char* op, const Tensor& x, const AttrValue& axis) {
  Flattened f{x, {}, x.ndim()};
  std::optional<std::vector<int64_t>> wanted;
  if (!axis.is_none()) {
    wanted = axis.as_ints();
    for (int64_t& a : *wanted) a = normal_axis(op, a, x);
  }
  f.axes = normal_axes(wanted, f.rank);
  std::vector<int64_t> perm;
  Shape shape;
  for (int64_t i = 0; i < f.rank; ++i)
    if (std::find(f.axes.begin(), f.axes.end(), i) == f.axes.end()) {
      perm.push_back(i);
      shape.push_back(x.dim(i));
    }
  Dim count = 1;
  for (const int64_t a : f.axes) {
    perm.push_back(a);
    count = count * x.dim(a);
  }
  shape.push_back(count);
  f.x = ops::reshape(f.rank > 1 ? ops::transpose(x, perm) : x, shape);
  return f;
}

DType statistic_dtype(DType d) { return is_float(d) ? d : DType::kF32; }

/// The quantile q of rows sorted along their last axis, of which the first `count` elements (a
/// tensor with a last axis of 1) are not NaN.
Tensor sorted_quantile(const Tensor& sorted, const Tensor& count, double q,
                       const std::string& how) {
  const Tensor position = (ops::cast(count, DType::kF64) - 1.0) * q;
  const Tensor start = ops::maximum(position, Tensor::number(0.0));
  const auto at = [&](const Tensor& place) {
    return ops::gather_along(sorted, ops::cast(place, DType::kI64), -1);
  };
  const Tensor low = ops::floor(start), high = ops::ceil(start);
  if (how == "lower") return at(low);
  if (how == "higher") return at(high);
  if (how == "nearest") return at(ops::round(start));
  if (how == "midpoint") return (at(low) + at(high)) * 0.5;
  return at(low) + (at(high) - at(low)) * ops::cast(start - low, sorted.dtype());
}

Tensors quantiles(CallContext& c, const char* op, const AttrValue& q, const AttrValue& axis,
                  bool keepdim, const std::string& how, bool ignore_nan) {
  const Tensor& given = c.operand(0);
  const Flattened f = flatten_axes(op, ops::cast(given, statistic_dtype(given.dtype())), axis);
  const Tensor sorted = ops::sort_pairs(f.x, -1)[0];
  const Tensor nan = ops::isnan(f.x);
  const Tensor valid = ops::sum(ops::cast(ops::logical_not(nan), DType::kI64),
                                std::vector<int64_t>{-1}, std::nullopt, true);
  const Tensor all = ops::sum(ops::cast(ops::logical_or(nan, ops::logical_not(nan)), DType::kI64),
                              std::vector<int64_t>{-1}, std::nullopt, true);
  const Tensor spoilt = ignore_nan ? ops::equal(valid, integer(0)) : ops::less_than(valid, all);
  Tensors out;
  for (const double each : q.as_doubles()) {
    if (!(each >= 0 && each <= 1))
      fail(ErrorCode::kUsage, op, ": q must lie in [0, 1], not ", each);
    const Tensor value = sorted_quantile(sorted, valid, each, how);
    const Tensor marked =
        ops::where(spoilt, Tensor::number(std::numeric_limits<double>::quiet_NaN()), value);
    out.push_back(f.restore(ops::squeeze(marked, std::vector<int64_t>{-1}), keepdim));
  }
  return {q.is_list() ? ops::stack(out, 0) : out[0]};
}

Tensors medians(CallContext& c, const char* op, const AttrValue& axis, bool keepdim,
                const std::string& mode, bool ignore_nan) {
  const Tensor& given = c.operand(0);
  if (mode == "avg") return quantiles(c, op, AttrValue(0.5), axis, keepdim, "midpoint", ignore_nan);
  const Flattened f = flatten_axes(op, given, axis);
  const Tensors sorted = ops::sort_pairs(f.x, -1);
  const Tensor nan = ops::cast(ops::isnan(f.x), DType::kI64);
  const Tensor bad = ops::sum(nan, std::vector<int64_t>{-1}, std::nullopt, true);
  const Tensor valid = dim_value(f.x.dim(-1), DType::kI64) - bad;
  const Tensor middle = ops::maximum(ops::floor_divide(valid - integer(1), integer(2)), integer(0));
  // NaN propagates unless ignored; it is sorted after all numbers.
  const Tensor place =
      ignore_nan ? middle : ops::where(ops::greater_than(bad, integer(0)), valid, middle);
  const auto take = [&](const Tensor& t) {
    return f.restore(ops::squeeze(ops::gather_along(t, place, -1), std::vector<int64_t>{-1}),
                     keepdim);
  };
  if (axis.is_none() || axis.is_list()) return {take(sorted[0])};
  return {take(sorted[0]), take(sorted[1])};
}

}  // namespace

void infer_sort_pairs(InferContext& c) {
  const auto a = c.attrs_as<SortPairsAttrs>();
  const int64_t axis = c.axis(a.axis, c.rank(0));
  Shape out = c.shape(0);
  if (a.limit >= 0 && !out.empty()) {
    Dim& d = out[static_cast<size_t>(axis)];
    c.check(!d.less(a.limit).value_or(false), "k is ", a.limit, ", axis ", axis, " of ", c.type(0),
            " is shorter");
    d = a.limit;
  }
  c.result(c.dtype(0), out);
  c.result(DType::kI64, out);
}

Tensors vjp_sort_pairs(VjpContext& c) {
  const auto a = c.attrs_as<SortPairsAttrs>();
  if (c.operand(0).ndim() == 0) return {c.cotangent_or_zeros(0)};
  return {ops::scatter_along(zeros_like(c.operand(0)), c.result(1), c.cotangent_or_zeros(0), a.axis,
                             "add")};
}

Tensors decompose_sort(CallContext& c) {
  const auto a = c.attrs_as<SortAttrs>();
  return {ops::sort_pairs(c.operand(0), a.axis, a.descending)[0]};
}

Tensors decompose_argsort(CallContext& c) {
  const auto a = c.attrs_as<ArgsortAttrs>();
  return {ops::sort_pairs(c.operand(0), a.axis, a.descending)[1]};
}

Tensors decompose_topk(CallContext& c) {
  const auto a = c.attrs_as<TopkAttrs>();
  if (a.k < 1) fail(ErrorCode::kUsage, "topk: k must be at least 1, not ", a.k);
  return ops::sort_pairs(c.operand(0), a.axis.value_or(-1), a.largest, a.k);
}

Tensors decompose_kthvalue(CallContext& c) {
  const auto a = c.attrs_as<KthvalueAttrs>();
  if (a.k < 1) fail(ErrorCode::kUsage, "kthvalue: k must be at least 1, not ", a.k);
  const Tensor& x = c.operand(0);
  const int64_t axis = normal_axis("kthvalue", a.axis.value_or(-1), x);
  const Tensors sorted = ops::sort_pairs(x, axis, false, a.k);
  return {drop(slice_at(sorted[0], axis, a.k - 1), axis, a.keepdim),
          drop(slice_at(sorted[1], axis, a.k - 1), axis, a.keepdim)};
}

void infer_mode(InferContext& c) {
  const auto a = c.attrs_as<ModeAttrs>();
  const int64_t axis = c.axis(a.axis, c.rank(0));
  Shape out = c.shape(0);
  if (!out.empty()) {
    out[static_cast<size_t>(axis)] = 1;
    if (!a.keepdim) out.erase(out.begin() + axis);
  }
  c.result(c.dtype(0), out);
  c.result(DType::kI64, out);
}

Tensors vjp_mode(VjpContext& c) {
  const auto a = c.attrs_as<ModeAttrs>();
  const Tensor& x = c.operand(0);
  if (x.ndim() == 0) return {c.cotangent_or_zeros(0)};
  const auto kept = [&](const Tensor& t) {
    return a.keepdim ? t : ops::unsqueeze(t, {normal_axis("mode", a.axis, x)});
  };
  return {ops::scatter_along(zeros_like(x), kept(c.result(1)), kept(c.cotangent_or_zeros(0)),
                             a.axis, "add")};
}

Tensors decompose_median(CallContext& c) {
  const auto a = c.attrs_as<MedianAttrs>();
  return medians(c, "median", a.axis, a.keepdim, a.mode, false);
}

Tensors decompose_nanmedian(CallContext& c) {
  const auto a = c.attrs_as<NanmedianAttrs>();
  return medians(c, "nanmedian", a.axis, a.keepdim, a.mode, true);
}

Tensors decompose_quantile(CallContext& c) {
  const auto a = c.attrs_as<QuantileAttrs>();
  return quantiles(c, "quantile", a.q, a.axis, a.keepdim, a.interpolation, false);
}

Tensors decompose_nanquantile(CallContext& c) {
  const auto a = c.attrs_as<NanquantileAttrs>();
  return quantiles(c, "nanquantile", a.q, a.axis, a.keepdim, a.interpolation, true);
}

void infer_searchsorted(InferContext& c) {
  const auto a = c.attrs_as<SearchsortedAttrs>();
  c.check(c.rank(0) > 0, "sorted_sequence must have at least one dimension");
  if (c.rank(0) > 1) {
    c.check(c.rank(0) == c.rank(1), "values are ", c.type(1), ", sorted_sequence is ", c.type(0));
    for (size_t i = 0; i + 1 < c.shape(0).size(); ++i)
      c.require_equal(c.shape(0)[i], c.shape(1)[i],
                      "values and sorted_sequence differ before the last axis");
  }
  c.result(a.out_int32 ? DType::kI32 : DType::kI64, c.shape(1));
}

Tensors decompose_bucketize(CallContext& c) {
  const auto a = c.attrs_as<BucketizeAttrs>();
  if (c.operand(1).ndim() != 1)
    fail(ErrorCode::kUsage, "bucketize: sorted_sequence must be 1-D, not ", c.operand(1).type());
  return {ops::searchsorted(c.operand(1), c.operand(0), a.out_int32, a.right)};
}

void infer_bincount(InferContext& c) {
  c.check(c.rank(0) == 1, "x must be 1-D, not ", c.type(0));
  c.check(c.attrs_as<BincountAttrs>().minlength >= 0, "minlength must not be negative");
  if (c.has(1))
    c.require_equal(c.shape(0)[0], element_count(std::span<const Dim>(c.shape(1))),
                    "weights and x differ in length");
  c.result(c.has(1) ? (c.dtype(1) == DType::kF32 ? DType::kF32 : DType::kF64) : DType::kI64,
           {c.run_time_dim()});
}

Tensors decompose_bincount_to(CallContext& c) {
  const Tensor counts = ops::bincount(c.operand(0), c.operand(1));
  const Tensor missing = ops::maximum(
      ops::cast(c.operand(2), DType::kI64) - dim_value(counts.dim(0), DType::kI64), integer(0));
  return {ops::concat(
      {counts, ops::zeros(dims_of(missing, "bincount: minlength: "), counts.dtype())}, 0)};
}

void infer_histogram(InferContext& c) {
  const auto a = c.attrs_as<HistogramAttrs>();
  c.check(a.bins > 0, "bins must be positive, not ", a.bins);
  c.check(a.min <= a.max, "min ", a.min, " is above max ", a.max);
  if (c.has(1))
    c.require_equal(element_count(std::span<const Dim>(c.shape(0))),
                    element_count(std::span<const Dim>(c.shape(1))),
                    "weight and input differ in their number of elements");
  c.result(a.density || c.has(1) ? DType::kF32 : DType::kI64, {Dim(a.bins)});
}

void infer_unique(InferContext& c) {
  const auto flag = [&](const char* name) {
    const int at = c.op().attr_index(name);
    return at >= 0 && c.attrs()[static_cast<size_t>(at)].as_bool();
  };
  const AttrValue& axis = c.attrs()[static_cast<size_t>(c.op().attr_index("axis"))];
  const DType dtype = c.attrs()[static_cast<size_t>(c.op().attr_index("dtype"))].as_dtype();
  c.check(dtype == DType::kI32 || dtype == DType::kI64, "dtype must be int32 or int64, not ",
          text(dtype));
  const Dim count = c.run_time_dim();
  Shape out = {count};
  Dim elements = element_count(std::span<const Dim>(c.shape(0)));
  if (!axis.is_none()) {
    c.check(c.rank(0) > 0, "axis must be none for a tensor without axes");
    const auto at = static_cast<size_t>(c.axis(axis.as_int(), c.rank(0)));
    elements = c.shape(0)[at];
    out = c.shape(0);
    out[at] = count;
  }
  c.result(c.dtype(0), out);
  if (flag("return_index")) c.result(dtype, {count});
  if (flag("return_inverse")) c.result(dtype, {elements});
  if (flag("return_counts")) c.result(dtype, {count});
}

Tensors decompose_isin(CallContext& c) {
  const Tensor &x = c.operand(0), tests = ops::reshape(c.operand(1), Shape{-1});
  const auto count = tests.dim(0).constant();
  Tensor found;
  if (count && *count == 0) {
    found = ops::not_equal(x, x);
  } else {
    const Tensor sorted = ops::sort_pairs(tests, 0)[0];
    const Tensor flat = ops::reshape(x, Shape{-1});
    const Tensor place = ops::minimum(ops::searchsorted(sorted, flat),
                                      dim_value(tests.dim(0), DType::kI64) - integer(1));
    found = ops::reshape(ops::equal(ops::index_select(sorted, place, 0), flat), x.shape());
  }
  return {c.attrs_as<IsinAttrs>().invert ? ops::logical_not(found) : found};
}

Tensors decompose_searchsorted_by(CallContext& c) {
  const auto a = c.attrs_as<SearchsortedByAttrs>();
  if (a.right && a.side && *a.side == "left")
    fail(ErrorCode::kUsage, "searchsorted: side 'left' contradicts right");
  const bool right = a.right || (a.side && *a.side == "right");
  Tensor sorted = c.operand(0);
  if (c.has(2)) {
    if (!same_shape(c.operand(2).shape(), sorted.shape()))
      fail(ErrorCode::kUsage, "searchsorted: sorter ", c.operand(2).type(),
           " must have the shape of the sequence ", sorted.type());
    sorted = ops::gather_along(sorted, c.operand(2), sorted.ndim() - 1);
  }
  return {ops::searchsorted(sorted, c.operand(1), a.out_int32, right)};
}

Tensors decompose_msort(CallContext& c) { return {ops::sort(c.operand(0), 0)}; }

}  // namespace paddle::rules
