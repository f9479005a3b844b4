// Rules of ragged.yaml: what works on sequences of different lengths, in terms of the sequence and
// the place of each row.

#include <cctype>

#include "ops/core/compose.h"
#include "ops/generated/creation.h"
#include "ops/generated/graph.h"
#include "ops/generated/indexing.h"
#include "ops/generated/linalg.h"
#include "ops/generated/math.h"
#include "ops/generated/reduce.h"
#include "ops/generated/sequence.h"
#include "ops/generated/sequence_rules.h"
#include "ops/generated/shape.h"

namespace paddle::rules {
namespace {

Tensor length_vector(std::string_view op, const char* name, const Tensor& x) {
  const bool column = x.ndim() == 2 && is_one(x.dim(1));
  if (x.ndim() != 1 && !column) reject(op, name, " must be 1-D, not ", x.type());
  return ops::cast(flat(x), DType::kI64);
}

/// Rows and where they belong.
struct Ragged {
  Tensor values;   ///< [total, ...]
  Tensor lengths;  ///< [n]
  Tensor starts;   ///< [n]
  Tensor rows;     ///< the sequence of each row, [total]

  Ragged(std::string_view op, const Tensor& x, const Tensor& given, const char* name = "lengths")
      : values(x), lengths(length_vector(op, name, given)) {
    if (x.ndim() == 0) reject(op, "the rows must have at least one dimension");
    rows = ops::sequence_rows(lengths, x.dim(0));
    starts = ops::cumsum(lengths, int64_t{0}) - lengths;
  }
  Dim total() const { return values.dim(0); }
  Dim count() const { return lengths.dim(0); }
  Tensor index() const { return range_of(total(), DType::kI64); }
  /// Of each row in its sequence.
  Tensor place() const { return index() - of_row(starts); }
  /// A value of each sequence for each of its rows.
  Tensor of_row(const Tensor& each) const { return ops::index_select(each, rows, 0); }
  /// The rows at some indices.
  Tensor at(const Tensor& index) const { return ops::index_select(values, index, 0); }
};

/// A vector along the first axis of a tensor of `rank` dimensions.
Tensor leading(const Tensor& v, int64_t rank) {
  Shape shape(static_cast<size_t>(rank), Dim(1));
  shape[0] = v.dim(0);
  return ops::reshape(v, shape);
}

/// Values by sequence, `fill` for empty sequences.
Tensor unless_empty(const Ragged& r, const Tensor& each, double fill) {
  const Tensor any = leading(ops::greater_than(r.lengths, integer(0)), each.ndim());
  return ops::where(any, each, number(fill));
}

/// The first or last row of each sequence; with a row of zeros after all for empty ones.
Tensor edge_rows(const Ragged& r, bool last, double fill) {
  Shape one = r.values.shape();
  one[0] = 1;
  const Tensor padded = ops::concat({r.values, full_of(one, 0, r.values.dtype())}, 0);
  Tensor index = last ? r.starts + r.lengths - integer(1) : r.starts;
  index = ops::where(ops::greater_than(r.lengths, integer(0)), index,
                     dim_value(r.total(), DType::kI64));
  return unless_empty(r, ops::index_select(padded, index, 0), fill);
}

Tensor pooled(const Ragged& r, std::string_view op, std::string how, double fill) {
  for (char& ch : how) ch = static_cast<char>(std::tolower(ch));
  if (how == "first" || how == "last") return edge_rows(r, how == "last", fill);
  if (how == "max" || how == "min")
    return unless_empty(r, ops::segment_reduce(r.values, r.rows, r.count(), how), fill);
  const Tensor sum = ops::segment_reduce(r.values, r.rows, r.count(), "sum");
  Tensor out = sum;
  if (how == "average" || how == "sqrt") {
    const Tensor size = ops::maximum(ops::cast(r.lengths, r.values.dtype()), number(1.0));
    out = sum / leading(how == "sqrt" ? ops::sqrt(size) : size, sum.ndim());
  } else if (how != "sum") {
    reject(op, "pool_type must be sum, average, sqrt, max, min, first or last, not '", how, "'");
  }
  return unless_empty(r, out, fill);
}

}  // namespace

void infer_sequence_rows(InferContext& c) {
  c.check(c.rank(0) == 1, "lengths must be 1-D, not ", c.type(0));
  const auto total = c.attrs_as<SequenceRowsAttrs>().total;
  c.result(DType::kI64, {total ? *total : c.run_time_dim()});
}

void infer_concat_ranges(InferContext& c) {
  for (size_t i = 0; i < 2; ++i)
    c.check(c.rank(i) == 1, c.op().operands()[i].name, " must be 1-D, not ", c.type(i));
  c.require_equal(c.shape(0)[0], c.shape(1)[0], "starts and lengths differ in length");
  c.result(DType::kI64, {c.run_time_dim()});
}

Tensors decompose_sequence_pool(CallContext& c) {
  const auto a = c.attrs_as<SequencePoolAttrs>();
  const Ragged r("sequence_pool", c.operand(0), c.operand(1));
  return {pooled(r, "sequence_pool", a.pool_type, a.pad_value)};
}

Tensors decompose_sequence_first_step(CallContext& c) {
  return {edge_rows(Ragged("sequence_first_step", c.operand(0), c.operand(1)), false, 0)};
}

Tensors decompose_sequence_last_step(CallContext& c) {
  return {edge_rows(Ragged("sequence_last_step", c.operand(0), c.operand(1)), true, 0)};
}

Tensors decompose_sequence_softmax(CallContext& c) {
  const Tensor& x = c.operand(0);
  if (!(x.ndim() == 1 || (x.ndim() == 2 && is_one(x.dim(1)))))
    reject("sequence_softmax", "input must be [total] or [total, 1], not ", x.type());
  const Ragged r("sequence_softmax", flat(x), c.operand(1));
  const Tensor high = ops::detach(ops::segment_reduce(r.values, r.rows, r.count(), "max"));
  const Tensor e = ops::exp(r.values - r.of_row(high));
  return {ops::reshape(e / r.of_row(ops::segment_reduce(e, r.rows, r.count(), "sum")), x.shape())};
}

Tensors decompose_sequence_conv(CallContext& c) {
  const auto a = c.attrs_as<SequenceConvAttrs>();
  constexpr const char* kName = "sequence_conv";
  const Tensor &x = c.operand(0), &weight = c.operand(2);
  if (x.ndim() != 2 || weight.ndim() != 2)
    reject(kName, "input and weight must be matrices, not ", x.type(), " and ", weight.type());
  if (a.filter_size < 1 || a.filter_size > 4096)
    reject(kName, "filter_size must be from 1 to 4096, not ", a.filter_size);
  if (a.filter_stride != 1) reject(kName, "filter_stride must be 1, not ", a.filter_stride);
  if (weight.dim(0).equals(x.dim(1) * a.filter_size) == false)
    reject(kName, "weight must have filter_size * width rows, not ", weight.type());
  const Ragged r(kName, x, c.operand(1));
  const int64_t first = a.padding_start.value_or(-(a.filter_size / 2));
  check_32_bits(kName, "padding_start", first);
  const Tensor place = r.place(), length = r.of_row(r.lengths), index = r.index();
  Tensors taps;
  for (int64_t k = first; k < first + a.filter_size; ++k) {
    const Tensor at = place + integer(k);
    const Tensor inside =
        ops::logical_and(ops::greater_equal(at, integer(0)), ops::less_than(at, length));
    const Tensor from = ops::where(inside, index + integer(k), integer(0));
    taps.push_back(r.at(from) * leading(mask_of(inside, x), 2));
  }
  Tensor out = ops::matmul(ops::concat(taps, 1), weight);
  if (c.has(3)) out = out + c.operand(3);
  const std::string act = a.act.value_or("");
  if (act == "relu") return {ops::maximum(out, number(0.0))};
  if (act == "tanh") return {ops::tanh(out)};
  if (!act.empty()) reject(kName, "act must be relu or tanh, not '", act, "'");
  return {out};
}

Tensors decompose_sequence_expand(CallContext& c) {
  constexpr const char* kName = "sequence_expand";
  const Tensor& x = c.operand(0);
  const Tensor times = length_vector(kName, "y_lengths", c.operand(1));
  const Tensor lengths = c.has(2) ? length_vector(kName, "x_lengths", c.operand(2))
                                  : full_of({x.dim(0)}, 1, DType::kI64);
  if (lengths.dim(0).equals(times.dim(0)) == false)
    reject(kName, "y_lengths ", times.type(), " do not match the ", lengths.dim(0),
           " sequences of x");
  const Ragged r(kName, x, lengths, "x_lengths");
  const Tensor repeated = ops::sequence_rows(times);
  const Tensor out_lengths = ops::index_select(r.lengths, repeated, 0);
  return {r.at(ops::concat_ranges(ops::index_select(r.starts, repeated, 0), out_lengths)),
          out_lengths};
}

Tensors decompose_sequence_expand_as(CallContext& c) {
  constexpr const char* kName = "sequence_expand_as";
  const Tensor times = length_vector(kName, "y_lengths", c.operand(1));
  if (c.operand(0).ndim() == 0 || c.operand(0).dim(0).equals(times.dim(0)) == false)
    reject(kName, "x ", c.operand(0).type(), " must have a row for each of ", times.type());
  return {ops::index_select(c.operand(0), ops::sequence_rows(times), 0)};
}

Tensors decompose_sequence_pad(CallContext& c) {
  const auto a = c.attrs_as<SequencePadAttrs>();
  constexpr const char* kName = "sequence_pad";
  if (!a.maxlen || *a.maxlen < 0) reject(kName, "maxlen must be given and not be negative");
  const int64_t most = *a.maxlen;
  const Ragged r(kName, c.operand(0), c.operand(1));
  // Each row to its place; a longer sequence is rejected as an index out of range.
  const Tensor place = r.place();
  const Tensor at = ops::where(ops::less_than(place, integer(most)), r.rows * integer(most) + place,
                               integer(INT64_MAX / 4));
  Shape shape = r.values.shape();
  shape[0] = r.count() * most;
  const Tensor empty = ops::full(shape, a.pad_value, r.values.dtype());
  const Tensor out = ops::scatter_nd_put(empty, ops::unsqueeze(at, {1}), r.values);
  Shape whole = r.values.shape();
  whole.insert(whole.begin(), r.count());
  whole[1] = most;
  return {ops::reshape(out, whole), r.lengths};
}

Tensors decompose_sequence_unpad(CallContext& c) {
  constexpr const char* kName = "sequence_unpad";
  const Tensor& x = c.operand(0);
  const Tensor lengths = length_vector(kName, "length", c.operand(1));
  if (x.ndim() < 2 || x.dim(0).equals(lengths.dim(0)) == false)
    reject(kName, "x must be [n, maxlen, ...] with a length for each row, not ", x.type(), " and ",
           lengths.type());
  const Tensor most = dim_value(x.dim(1), DType::kI64);
  const Tensor starts = range_of(x.dim(0), DType::kI64) * most;
  // A length beyond maxlen becomes an index out of range.
  const Tensor fits = ops::less_equal(lengths, most);
  const Tensor from = ops::where(fits, starts, integer(INT64_MAX / 4));
  Shape rows(x.shape().begin() + 1, x.shape().end());
  rows[0] = x.dim(0) * x.dim(1);
  return {ops::index_select(ops::reshape(x, rows), ops::concat_ranges(from, lengths), 0)};
}

Tensors decompose_sequence_concat(CallContext& c) {
  constexpr const char* kName = "sequence_concat";
  const Tensors inputs = c.list(0), lengths = c.list(1);
  if (inputs.empty() || inputs.size() != lengths.size())
    reject(kName, "input and lengths must be lists of one length");
  Tensors starts, sizes;
  Dim before = 0;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Ragged r(kName, inputs[i], lengths[i]);
    // sequence_rows checks the lengths; its result is not needed otherwise.
    starts.push_back(r.starts + dim_value(before, DType::kI64) +
                     ops::sum(r.rows, std::nullopt) * integer(0));
    sizes.push_back(r.lengths);
    before = before + inputs[i].dim(0);
  }
  const Tensor order = ops::concat_ranges(flat(ops::stack(starts, 1)), flat(ops::stack(sizes, 1)));
  return {ops::index_select(ops::concat(inputs, 0), order, 0),
          ops::sum(ops::stack(sizes, 1), Axes{1})};
}

Tensors decompose_sequence_slice(CallContext& c) {
  constexpr const char* kName = "sequence_slice";
  const Ragged r(kName, c.operand(0), c.operand(1));
  const Tensor offset = length_vector(kName, "offset", c.operand(2)),
               length = length_vector(kName, "length", c.operand(3));
  for (const Tensor* t : {&offset, &length})
    if (t->dim(0).equals(r.count()) == false)
      reject(kName, "offset and length must have a number for each sequence, not ", t->type());
  // A part beyond its sequence becomes an index out of range.
  const Tensor fits = ops::logical_and(ops::greater_equal(offset, integer(0)),
                                       ops::less_equal(offset + length, r.lengths));
  const Tensor from = ops::where(fits, r.starts + offset, integer(INT64_MAX / 4));
  return {r.at(ops::concat_ranges(from, length))};
}

Tensors decompose_sequence_reverse(CallContext& c) {
  const Ragged r("sequence_reverse", c.operand(0), c.operand(1));
  return {r.at(r.of_row(r.starts + r.starts + r.lengths - integer(1)) - r.index())};
}

Tensors decompose_sequence_reshape(CallContext& c) {
  const int64_t width = c.attrs_as<SequenceReshapeAttrs>().new_dim;
  constexpr const char* kName = "sequence_reshape";
  const Tensor& x = c.operand(0);
  if (x.ndim() != 2) reject(kName, "input must be a matrix, not ", x.type());
  if (width < 1) reject(kName, "new_dim must be positive, not ", width);
  const Ragged r(kName, x, c.operand(1));
  const Tensor elements = r.lengths * dim_value(x.dim(1), DType::kI64);
  const Dim all = x.dim(0) * x.dim(1);
  if (modulo(all, width).constant().value_or(0) != 0)
    reject(kName, "the ", all, " elements do not divide into rows of ", width);
  const Tensor out = ops::reshape(x, {floor_divide(all, width), Dim(width)});
  return {out, ops::floor_divide(elements, integer(width))};
}

Tensors decompose_sequence_enumerate(CallContext& c) {
  const auto a = c.attrs_as<SequenceEnumerateAttrs>();
  constexpr const char* kName = "sequence_enumerate";
  const Tensor& x = c.operand(0);
  if (a.win_size < 1 || a.win_size > 4096)
    reject(kName, "win_size must be from 1 to 4096, not ", a.win_size);
  if (!(x.ndim() == 1 || (x.ndim() == 2 && is_one(x.dim(1)))))
    reject(kName, "input must be [total] or [total, 1], not ", x.type());
  const Ragged r(kName, flat(x), c.operand(1));
  const Tensor left = r.of_row(r.starts + r.lengths) - r.index();
  Tensors columns;
  for (int64_t k = 0; k < a.win_size; ++k) {
    const Tensor inside = ops::greater_than(left, integer(k));
    columns.push_back(ops::where(inside,
                                 r.at(ops::where(inside, r.index() + integer(k), integer(0))),
                                 ops::cast(integer(a.pad_value), x.dtype())));
  }
  return {ops::stack(columns, 1)};
}

Tensors decompose_sequence_scatter(CallContext& c) {
  constexpr const char* kName = "sequence_scatter";
  const Tensor& x = c.operand(0);
  const Tensor index = length_vector(kName, "index", c.operand(1));
  if (x.ndim() != 2 || c.operand(2).ndim() == 0)
    reject(kName, "input must be a matrix, not ", x.type());
  const Ragged r(kName, flat(c.operand(2)), c.operand(3));
  if (index.dim(0).equals(r.total()) == false || r.count().equals(x.dim(0)) == false)
    reject(kName, "index ", index.type(), " does not match updates ", c.operand(2).type(),
           " or the lengths do not match input ", x.type());
  return {ops::scatter_nd_add(x, ops::stack({r.rows, index}, 1), r.values)};
}

}  // namespace paddle::rules
