// Operations that need more on parts than a call on local operands and sums of partial results:
// biases that are added once, means over the logical count, tables and classes that are split by
// rows, statistics of a batch.

#include "ops/core/operators.h"
#include "ops/generated/indexing.h"
#include "ops/generated/linalg.h"
#include "ops/generated/math.h"
#include "ops/generated/nn.h"
#include "ops/generated/reduce.h"
#include "ops/generated/shape.h"
#include "partition/localize.h"
#include "partition/rules.h"

namespace paddle::partition {
namespace {

DType full_type(DType dtype) {
  return dtype == DType::kF16 || dtype == DType::kBF16 ? DType::kF32 : dtype;
}

Tensor cast_to(const Tensor& x, DType dtype) {
  return x.dtype() == dtype ? x : ops::cast(x, dtype);
}

Tensor in_full(const Tensor& x) { return cast_to(x, full_type(x.dtype())); }

Tensor zero_of(DType dtype) { return Tensor(Array::zeros(dtype, {})); }

/// Indices into rows of which this rank has a range, and whether each is in it.
struct LocalIndices {
  Tensor index;   ///< from the start of the range; 0 for indices outside
  Tensor inside;  ///< bool
};

LocalIndices local_indices(const Tensor& index, std::pair<int64_t, int64_t> range) {
  const Tensor number = cast_to(index, DType::kI64);
  const Tensor inside = ops::logical_and(ops::greater_equal(number, Tensor::number(range.first)),
                                         ops::less_than(number, Tensor::number(range.second)));
  return {ops::where(inside, number - Tensor::number(range.first), Tensor::number(int64_t{0})),
          inside};
}

/// The bias is added to the sum of the parts.
bool product_with_bias(Localizer& l, size_t reduced_dim, size_t channel_dim, Tensors& results) {
  const Tensors& x = l.operands();
  if (x.size() < 3 || !x[2].defined() || !l.active(0, reduced_dim)) return false;
  const Tensor sum = l.combine(l.call_local({x[0], x[1], Tensor()})[0], 0);
  Shape shape(rank(l.operation().results[0]), Dim(1));
  shape[channel_dim] = x[2].dim(0);
  results = {sum + ops::reshape(x[2], shape)};
  return true;
}

bool mean(Localizer& l, Tensors& results) {
  const ir::Operation& o = l.operation();
  const ir::Value* const x = o.operands[0];
  bool reduced = false;
  int64_t count = 1;
  const AttrValue& attr = attribute(o, "axis");
  const std::vector<int64_t> axes = normal_axes(
      attr.is_none() ? std::nullopt : std::optional(attr.as_ints()), static_cast<int64_t>(rank(x)));
  for (const int64_t axis : axes) {
    count *= size_of(*x, static_cast<size_t>(axis));
    reduced = reduced || l.active(0, static_cast<size_t>(axis));
  }
  if (!reduced) return false;
  const Tensor sum =
      ops::sum(in_full(l.operands()[0]), axes, std::nullopt, attribute(o, "keepdim").as_bool());
  const auto finish = [count, dtype = o.results[0]->type.dtype](const Tensor& total) {
    return cast_to(total / static_cast<double>(count), dtype);
  };
  results = {l.postpone(0, sum, finish) ? Tensor() : finish(l.combine(sum, 0))};
  return true;
}

bool embedding(Localizer& l, Tensors& results) {
  const ActiveFactor* const rows = l.active(1, 0);
  if (!rows) return false;
  const LocalIndices at = local_indices(l.operands()[0], l.range(*rows));
  const Tensor found = ops::embedding(at.index, l.operands()[1]);
  const Tensor zero = zero_of(found.dtype());
  results = {l.combine(ops::where(ops::unsqueeze(at.inside, {-1}), found, zero), 0)};
  return true;
}

bool embedding_grad(Localizer& l, Tensors& results) {
  const ActiveFactor* const rows = l.active_in_result(0, 0);
  if (!rows) return false;
  const auto range = l.range(*rows);
  const Tensor index = cast_to(l.operands()[0], DType::kI64);
  LocalIndices at = local_indices(index, range);
  if (const AttrValue& padding = attribute(l.operation(), "padding_idx"); !padding.is_none())
    at.inside =
        ops::logical_and(at.inside, ops::not_equal(index, Tensor::number(padding.as_int())));
  const Tensor& grad = l.operands()[1];
  const Tensor zero = zero_of(grad.dtype());
  const Tensor kept = ops::where(ops::unsqueeze(at.inside, {-1}), grad, zero);
  results = {l.combine(ops::embedding_grad(at.index, kept, Dim(range.second - range.first)), 0)};
  return true;
}

bool cross_entropy(Localizer& l, Tensors& results) {
  const ir::Operation& o = l.operation();
  const size_t at = axis_of(o, "axis", rank(o.operands[0]));
  const ActiveFactor* const classes = l.active(0, at);
  if (!classes) return false;
  const auto axis = static_cast<int64_t>(at);
  const Tensor x = in_full(l.operands()[0]), &label = l.operands()[1];
  const Tensor largest =
      l.all_reduce(ops::max(x, std::vector{axis}, true), classes->axis, Combine::kMax);
  const Tensor sum = l.all_reduce(
      ops::sum(ops::exp(x - largest), std::vector{axis}, std::nullopt, true), classes->axis);
  const Tensor log_sum = ops::squeeze(ops::log(sum) + largest, std::vector{axis});
  const LocalIndices local = local_indices(label, l.range(*classes));
  const Tensor found = ops::squeeze(ops::gather_along(x, ops::unsqueeze(local.index, {axis}), axis),
                                    std::vector{axis});
  const Tensor zero = zero_of(x.dtype());
  const Tensor picked = l.all_reduce(ops::where(local.inside, found, zero), classes->axis);
  const Tensor ignored = ops::equal(cast_to(label, DType::kI64),
                                    Tensor::number(attribute(o, "ignore_index").as_int()));
  results = {ops::where(ignored, zero, log_sum - picked), log_sum};
  return true;
}

bool cross_entropy_grad(Localizer& l, Tensors& results) {
  const ir::Operation& o = l.operation();
  const size_t at = axis_of(o, "axis", rank(o.operands[1]));
  const ActiveFactor* const classes = l.active(1, at);
  if (!classes) return false;
  const auto axis = static_cast<int64_t>(at);
  const Tensor x = in_full(l.operands()[1]);
  const Tensor label = cast_to(l.operands()[2], DType::kI64);
  const auto [begin, end] = l.range(*classes);
  std::vector<int64_t> numbers;
  for (int64_t i = begin; i < end; ++i) numbers.push_back(i);
  Dims shape(rank(o.operands[1]), 1);
  shape[at] = end - begin;
  const Tensor labels = ops::unsqueeze(label, {axis});
  const Tensor here = ops::equal(labels, Tensor(Array::from<int64_t>(numbers, shape)));
  const Tensor softmax = ops::exp(x - ops::unsqueeze(l.operands()[3], {axis}));
  const Tensor difference = ops::where(here, softmax - 1.0, softmax);
  const Tensor gradient = difference * ops::unsqueeze(l.operands()[0], {axis});
  const Tensor ignored = ops::equal(labels, Tensor::number(attribute(o, "ignore_index").as_int()));
  const Tensor zero = zero_of(gradient.dtype());
  results = {cast_to(ops::where(ignored, zero, gradient), o.results[0]->type.dtype)};
  return true;
}

/// The axes and counts that batch normalization derives from the shape of its operand.
struct Channels {
  std::vector<int64_t> reduced;  ///< all axes but that of the channels
  Shape broadcast;               ///< of a value per channel
  double count = 1;              ///< of logical elements per channel

  Channels(const ir::Operation& o, const ir::Value& x, const Tensor& local) {
    const size_t channel = channel_axis(o, rank(&x));
    for (size_t d = 0; d < rank(&x); ++d) {
      broadcast.push_back(d == channel ? local.dim(static_cast<int64_t>(d)) : Dim(1));
      if (d == channel) continue;
      reduced.push_back(static_cast<int64_t>(d));
      count *= static_cast<double>(size_of(x, d));
    }
  }
  Tensor spread(const Tensor& per_channel) const { return ops::reshape(per_channel, broadcast); }
};

/// Statistics of the logical batch. The variance is that of the centered values, in two passes.
bool batch_norm(Localizer& l, Tensors& results) {
  const ir::Operation& o = l.operation();
  const ActiveFactor* const samples = l.active(0, 0);
  if (!samples) return false;
  const AttrValue& global = attribute(o, "use_global_stats");
  const Tensors& in = l.operands();
  if (!attribute(o, "training").as_bool() || (!global.is_none() && global.as_bool())) {
    results = l.call_local(in);  // nothing is computed from the samples
    return true;
  }
  const Tensor x = in_full(in[0]);
  const Channels channels(o, *o.operands[0], in[0]);
  const auto total = [&](const Tensor& v) {
    return l.all_reduce(ops::sum(v, channels.reduced, std::nullopt, false), samples->axis);
  };
  const double momentum = attribute(o, "momentum").as_double();
  const Tensor mean = total(x) / channels.count;
  const Tensor centered = x - channels.spread(mean);
  const Tensor variance = total(centered * centered) / channels.count;
  const Tensor rstd = 1.0 / ops::sqrt(variance + attribute(o, "epsilon").as_double());
  const Tensor scale = in[3].defined() ? rstd * in[3] : rstd;
  Tensor out = centered * channels.spread(scale);
  if (in[4].defined()) out = out + channels.spread(in[4]);
  results = {cast_to(out, o.results[0]->type.dtype), in[1] * momentum + mean * (1 - momentum),
             in[2] * momentum + variance * (1 - momentum), mean, rstd};
  return true;
}

bool batch_norm_grad(Localizer& l, Tensors& results) {
  const ir::Operation& o = l.operation();
  const ActiveFactor* const samples = l.active(0, 0);
  if (!samples) return false;
  const Tensors& in = l.operands();
  const Tensor grad = in_full(in[0]), x = in_full(in[1]);
  const Channels channels(o, *o.operands[1], in[1]);
  const auto total = [&](const Tensor& v) {
    return l.all_reduce(ops::sum(v, channels.reduced, std::nullopt, false), samples->axis);
  };
  const Tensor rstd = in[3];
  const Tensor normal = (x - channels.spread(in[2])) * channels.spread(rstd);
  const Tensor dbias = total(grad), dweight = total(grad * normal);
  Tensor slope = grad;
  if (attribute(o, "batch_statistics").as_bool())
    slope = grad - channels.spread(dbias / channels.count) -
            normal * channels.spread(dweight / channels.count);
  const Tensor scale = in[4].defined() ? rstd * in[4] : rstd;
  results = {cast_to(slope * channels.spread(scale), o.results[0]->type.dtype), dweight, dbias};
  return true;
}

}  // namespace

bool localize_specially(Localizer& l, Tensors& results) {
  const std::string_view name = l.operation().op->name();
  const ir::Operation& o = l.operation();
  if (name == "linear") {
    const size_t last = rank(o.operands[0]) - 1;
    return product_with_bias(l, last, rank(o.results[0]) - 1, results);
  }
  if (name == "conv2d" || name == "conv3d") {
    const size_t channels = channel_axis(o, rank(o.operands[0]));
    return product_with_bias(l, channels, channels, results);
  }
  if (name == "mean") return mean(l, results);
  if (name == "embedding") return embedding(l, results);
  if (name == "embedding_grad") return embedding_grad(l, results);
  if (name == "softmax_cross_entropy") return cross_entropy(l, results);
  if (name == "softmax_cross_entropy_grad") return cross_entropy_grad(l, results);
  if (name == "batch_norm") return batch_norm(l, results);
  if (name == "batch_norm_grad") return batch_norm_grad(l, results);
  return false;
}

}  // namespace paddle::partition
