// Functions of the table: shapes, creation and indices.

#include <algorithm>
#include <charconv>
#include <limits>

#include "base/limits.h"
#include "ops/generated/creation.h"
#include "ops/generated/indexing.h"
#include "ops/generated/legacy.h"
#include "ops/generated/math.h"
#include "ops/generated/nn.h"
#include "ops/generated/random.h"
#include "ops/generated/sequence.h"
#include "ops/generated/shape.h"
#include "ops/generated/sorting.h"
#include "ops/generated/special.h"
#include "ops/generated/vision.h"
#include "paddle_program/program_call.h"

namespace paddle::paddle_program {
namespace {

using onnx::int_vector;
using onnx::scalar;

int64_t normal_axis(const ProgramCall& c, int64_t axis, int64_t rank) {
  c.check(axis >= -rank && axis < std::max<int64_t>(rank, 1), "the axis ", axis,
          " is out of range for rank ", rank);
  return axis < 0 ? axis + rank : axis;
}

/// An axis that may be an operand.
int64_t axis_of(const ProgramCall& c, int64_t rank) {
  return normal_axis(c, c.integer("axis"), rank);
}

/// 0 copies a size, except where the operand has no elements: then it is the size 0.
Values reshape(ProgramCall& c) {
  const Tensor& x = c.tensor("x");
  Shape shape = c.dims("shape");
  const bool is_empty = element_count(std::span<const Dim>(x.shape())).equals(0).value_or(false);
  bool inferred = false;
  for (size_t i = 0; i < shape.size(); ++i) {
    inferred = inferred || shape[i].equals(-1).value_or(false);
    if (!is_empty && shape[i].equals(0).value_or(false) && static_cast<int64_t>(i) < x.ndim())
      shape[i] = x.dim(static_cast<int64_t>(i));
  }
  if (is_empty && !inferred) {
    Dim count = 1;
    for (const Dim& d : shape) count = count * d;
    c.check(count.equals(0).value_or(true), "an empty tensor cannot be reshaped to ", str(shape));
    return {ops::full(shape, 0.0, x.dtype())};
  }
  return {ops::reshape(x, shape)};
}

Values transpose(ProgramCall& c) {
  const Tensor& x = c.tensor("x");
  Axes order = c.ints("perm");
  for (int64_t& axis : order) axis += axis < 0 ? x.ndim() : 0;
  return {ops::transpose(x, order)};
}

Values flatten(ProgramCall& c) {
  const Tensor& x = c.tensor("x");
  if (x.ndim() == 0) return {ops::reshape(x, {Dim(1)})};
  const int64_t start = normal_axis(c, c.integer("start_axis"), x.ndim()),
                stop = normal_axis(c, c.integer("stop_axis"), x.ndim());
  c.check(start <= stop, "its axes are out of order");
  return {ops::flatten(x, start, stop)};
}

/// That of PaddlePaddle 1, which makes a matrix.
Values flatten_matrix(ProgramCall& c) {
  const Tensor& x = c.tensor("x");
  const int64_t axis = c.integer("axis");
  c.check(axis >= 0 && axis <= x.ndim(), "its axis ", axis, " is out of range");
  Dim rows = 1, columns = 1;
  for (int64_t i = 0; i < x.ndim(); ++i) {
    Dim& side = i < axis ? rows : columns;
    side = side * x.dim(i);
  }
  return {ops::reshape(x, {rows, columns})};
}

/// Axes of other sizes than 1 are passed over.
Values squeeze(ProgramCall& c) {
  const Tensor& x = c.tensor("x");
  Axes axes = c.ints("axis"), ones;
  if (axes.empty())
    for (int64_t i = 0; i < x.ndim(); ++i) axes.push_back(i);
  if (x.ndim() == 0) return {x};
  for (const int64_t axis : axes) {
    const int64_t at = normal_axis(c, axis, x.ndim());
    const auto is_one = x.dim(at).equals(1);
    if (!is_one)
      throw DataDependentError(ErrorCode::kModel,
                               str("whether the axis ", at, " of ", x.type(), " has the size 1"));
    if (*is_one) ones.push_back(at);
  }
  return {ones.empty() ? x : ops::squeeze(x, ones)};
}

/// Axes are inserted one after the other, each as a place in the result so far.
Values unsqueeze(ProgramCall& c) {
  Tensor x = c.tensor("x");
  for (const int64_t axis : c.ints("axis")) {
    const int64_t at = axis < 0 ? axis + x.ndim() + 1 : axis;
    c.check(at >= 0 && at <= x.ndim(), "the axis ", axis, " is out of range");
    x = ops::unsqueeze(x, Axes{at});
  }
  return {x};
}

Values concat(ProgramCall& c) {
  const Tensors parts = c.list("x");
  c.check(!parts.empty(), "expected at least one operand");
  return {ops::concat(parts, axis_of(c, parts[0].ndim()))};
}

Values as_values(const Tensors& tensors) { return {tensors.begin(), tensors.end()}; }

Values unstack(ProgramCall& c) {
  const Tensor& x = c.tensor("x");
  return as_values(ops::unstack(x, axis_of(c, x.ndim())));
}

/// Equal parts, or parts of the sizes `sections`, of which one may be -1.
Values split(ProgramCall& c) {
  const Tensor& x = c.tensor("x");
  const int64_t axis = axis_of(c, x.ndim());
  const bool has_sections = c.rule().argument_index("sections") >= 0 &&
                            (c.has("sections") || !c.ints("sections").empty());
  if (!has_sections) {
    const int64_t count = c.integer("num");
    c.check(count >= 1 && count <= 4096, "expected 1 to 4096 parts, not ", count);
    return as_values(ops::split(x, count, axis));
  }
  AttrValue::List sizes;
  for (const Dim& d : c.dims("sections")) sizes.emplace_back(d);
  return as_values(ops::split(x, sizes, axis));
}

/// Without the axes of which one element was taken, also where that cannot be proved.
Tensor without_axes(const ProgramCall& c, const Tensor& x) {
  const Axes dropped = c.ints("@decrease");
  if (dropped.empty()) return x;
  Shape rest;
  for (int64_t i = 0; i < x.ndim(); ++i) {
    const bool drops = std::ranges::any_of(
        dropped, [&](int64_t axis) { return axis == i || axis + x.ndim() == i; });
    c.check(!drops || x.dim(i).equals(1).value_or(true), "the axis ", i, " of ", x.type(),
            " does not have the size 1");
    if (!drops) rest.push_back(x.dim(i));
  }
  return ops::reshape(x, rest);
}

Values slice(ProgramCall& c) {
  return {
      without_axes(c, ops::slice(c.tensor("x"), c.ints("axes"), c.dims("starts"), c.dims("ends")))};
}

/// The end of a slice backwards as it was until PaddlePaddle 3: -1 is the place before the first
/// element, and ends before that are the first element, which is not taken.
Dim backward_end(const Dim& end, const Dim& size) {
  if (!end.is_constant() || end.value() >= 0) return end;
  if (end.value() == -1) return Dim(std::numeric_limits<int32_t>::min());
  if (!size.is_constant())
    throw DataDependentError(ErrorCode::kModel, str("the size ", size, " decides where it ends"));
  return end.value() + size.value() < 0 ? Dim(0) : end;
}

Values strided_slice(ProgramCall& c) {
  const Tensor& x = c.tensor("x");
  const Axes axes = c.ints("axes"), strides = c.ints("strides");
  Shape ends = c.dims("ends");
  c.check(axes.size() == ends.size() && axes.size() == strides.size(),
          "expected an end and a stride for each axis");
  for (size_t i = 0; i < axes.size(); ++i)
    if (c.attribute(kBeforeVersion3) && strides[i] < 0)
      ends[i] = backward_end(ends[i], x.dim(axes[i] < 0 ? axes[i] + x.ndim() : axes[i]));
  return {without_axes(c, ops::strided_slice(x, axes, c.dims("starts"), ends, strides))};
}

Values expand(ProgramCall& c) { return {ops::expand(c.tensor("x"), c.dims("shape"))}; }

Values expand_as(ProgramCall& c) {
  const Tensor& x = c.tensor("x");
  return {ops::expand(x, c.has("y") ? c.tensor("y").shape() : c.dims("shape"))};
}

/// The list may be shorter or longer than the axes of x: the shorter one has ones in front.
Values tile(ProgramCall& c) {
  const Tensor& x = c.tensor("x");
  return {ops::tile(x, c.dims("repeat_times"))};
}

/// Repeats x until its shape is that of another value.
Values tile_to(ProgramCall& c) {
  const Tensor &x = c.tensor("x"), &y = c.tensor("y");
  c.check(x.ndim() == y.ndim(), "the operands are ", x.type(), " and ", y.type());
  Shape repeats;
  for (int64_t i = 0; i < x.ndim(); ++i) repeats.push_back(floor_divide(y.dim(i), x.dim(i)));
  return {ops::tile(x, repeats)};
}

Values crop(ProgramCall& c) {
  const Tensor& x = c.tensor("x");
  Shape shape = c.is_named("crop") && c.has("shape") && c.value("shape").shape().size() > 1
                    ? c.tensor("shape").shape()
                    : c.dims("shape");
  Shape starts = c.dims("offsets"), ends;
  if (starts.empty()) starts.assign(shape.size(), Dim(0));
  c.check(static_cast<int64_t>(shape.size()) == x.ndim() && starts.size() == shape.size(),
          "expected a size and an offset for each axis");
  Axes axes;
  for (size_t i = 0; i < shape.size(); ++i) {
    axes.push_back(static_cast<int64_t>(i));
    const bool rest = shape[i].equals(-1).value_or(false);
    ends.push_back(rest ? x.dim(static_cast<int64_t>(i)) : starts[i] + shape[i]);
  }
  return {ops::slice(x, axes, starts, ends)};
}

Values shape(ProgramCall& c) {
  const Shape sizes = c.tensor("x").shape();
  for (const Dim& d : sizes)
    if (d.is_unknown()) throw DataDependentError(ErrorCode::kModel, "a size is not known");
  // In protobuf PaddlePaddle 3 computes another type than the program declares.
  const DType fallback = c.attribute(kBeforeVersion3) ? DType::kI32 : DType::kI64;
  return {Value::of_dims(sizes, false, c.dtype("dtype").value_or(fallback))};
}

// --- creation ---

/// The number of an attribute with all its bits: in protobuf a text may have more than the number.
Tensor exact_number(const ProgramCall& c, DType dtype) {
  const std::string exact = c.has("value") ? "" : c.text("text");
  if (exact.empty()) return c.number("value", dtype);
  int64_t whole = 0;
  const auto [end, error] = std::from_chars(exact.data(), exact.data() + exact.size(), whole);
  if (is_integer(dtype) && error == std::errc() && end == exact.data() + exact.size())
    return Tensor(Array::scalar(whole).cast(dtype));
  return Tensor(Array::scalar(std::strtod(exact.c_str(), nullptr)).cast(dtype));
}

Values full(ProgramCall& c) {
  DType dtype = c.dtype("dtype").value_or(DType::kF32);
  const Tensor value = exact_number(c, dtype);
  const Shape shape = c.dims("shape");
  for (const Dim& d : shape)
    c.check(!d.is_constant() || d.value() >= 0, "its shape ", str(shape), " is impossible");
  return {ops::expand(value, shape)};
}

Values full_int_array(ProgramCall& c) {
  return {Tensor(c.numbers("value", c.dtype("dtype").value_or(DType::kI64)))};
}

Values full_like(ProgramCall& c) {
  const Tensor& x = c.tensor("x");
  const DType dtype = c.dtype("dtype").value_or(x.dtype());
  return {ops::expand(c.number("value", dtype), x.shape())};
}

/// A constant of which one size is that of an input.
Values full_batch_size_like(ProgramCall& c) {
  const Tensor& x = c.tensor("x");
  Shape shape = c.dims("shape");
  const int64_t from = c.integer("input_dim_idx"), to = c.integer("output_dim_idx");
  c.check(from >= 0 && from < x.ndim() && to >= 0 && to < static_cast<int64_t>(shape.size()),
          "an axis is out of range");
  shape[static_cast<size_t>(to)] = x.dim(from);
  return {ops::expand(exact_number(c, c.dtype("dtype").value_or(DType::kF32)), shape)};
}

Values range(ProgramCall& c) {
  // In protobuf the type is that of the operands.
  const DType dtype = c.dtype("dtype").value_or(c.value("start").dtype());
  for (const char* name : {"start", "end", "step"})
    if (!c.value(name).is_concrete()) {
      // 0, 1, ... to a symbolic size.
      const auto end = c.value("end").dims();
      const bool plain = end && end->size() == 1 && c.value("start").is_concrete() &&
                         c.value("step").is_concrete() && c.real("start") == 0 &&
                         c.real("step") == 1;
      if (plain) return {ops::cast(onnx::iota((*end)[0]), dtype)};
      throw DataDependentError(ErrorCode::kModel, str("'", name, "' depends on the data"));
    }
  const auto number = [&](const char* name) {
    return is_integer(dtype) && is_integer(c.value(name).dtype()) ? AttrValue(c.integer(name))
                                                                  : AttrValue(c.real(name));
  };
  return {ops::arange(number("start"), number("end"), number("step"), dtype)};
}

Values assign_value(ProgramCall& c) {
  const auto dtype = c.dtype("dtype");
  c.check(dtype.has_value(), "its type is not known");
  const Dims sizes = c.ints("shape");
  Array values = c.numbers("values", *dtype);
  int64_t count = 1;
  for (const int64_t size : sizes)
    c.check(size >= 0 && !__builtin_mul_overflow(count, size, &count), "its shape is impossible");
  c.check(count == values.size(), "has ", values.size(), " values for the shape ", str(sizes));
  values.shape = sizes;
  values.strides = contiguous_strides(sizes);
  return {Tensor(values)};
}

Tensor one_hot_of(const ProgramCall& c, const Tensor& x) {
  const int64_t depth = c.integer("depth");
  return ops::cast(ops::one_hot(x, depth), DType::kF32);
}

Values one_hot(ProgramCall& c) { return {one_hot_of(c, c.tensor("x"))}; }

/// The last axis of ids of older versions has the size 1.
Tensor without_column(const ProgramCall& c, const Tensor& x) {
  c.check(x.ndim() > 0 && x.dim(x.ndim() - 1).equals(1).value_or(false), "the last axis of ",
          x.type(), " does not have the size 1");
  return ops::squeeze(x, Axes{x.ndim() - 1});
}

Values one_hot_of_column(ProgramCall& c) {
  return {one_hot_of(c, without_column(c, c.tensor("x")))};
}

Values random(ProgramCall& c) {
  const Shape shape = c.dims("shape");
  const std::string which = c.text("function");
  const auto dtype = c.dtype("dtype");
  if (which == "randint") return {ops::randint(c.integer("low"), c.integer("high"), shape, dtype)};
  if (which == "uniform") return {ops::uniform(shape, dtype, c.real("low"), c.real("high"))};
  return {
      ops::cast(ops::randn(shape) * c.real("high") + c.real("low"), dtype.value_or(DType::kF32))};
}

// --- indices ---

/// Indices of shape [n] or [n, 1], which mean the same, as [n].
Values gather(ProgramCall& c) {
  const Tensor &x = c.tensor("x"), &index = c.tensor("index");
  return {ops::index_select(x, index.ndim() == 2 ? ops::reshape(index, {Dim(-1)}) : index,
                            axis_of(c, x.ndim()))};
}

Values gather_any(ProgramCall& c) {
  const Tensor& index = c.tensor("index");
  if (index.ndim() != 0) return gather(c);
  const Tensor& x = c.tensor("x");
  const int64_t axis = axis_of(c, x.ndim());
  return {ops::squeeze(ops::index_select(x, ops::reshape(index, {Dim(1)}), axis), Axes{axis})};
}

Values scatter(ProgramCall& c) {
  const Tensor& index = c.tensor("index");
  return {ops::scatter(c.tensor("x"), index.ndim() == 2 ? ops::reshape(index, {Dim(-1)}) : index,
                       c.tensor("updates"), c.flag("overwrite"))};
}

Values nonzero(ProgramCall& c) { return {ops::nonzero_rows(c.tensor("x"))}; }

Tensor embedded(const ProgramCall& c, const Tensor& ids) {
  const int64_t padding = c.integer("padding_idx");
  return ops::embedding(ids, c.tensor("weight"),
                        padding >= 0 ? std::optional(padding) : std::nullopt);
}

/// Rows of a table; those of `padding_idx` are 0.
Values embedding(ProgramCall& c) { return {embedded(c, c.tensor("x"))}; }

Values embedding_of_column(ProgramCall& c) {
  return {embedded(c, without_column(c, c.tensor("x")))};
}

Values set_value(ProgramCall& c) {
  const Tensor& x = c.tensor("x");
  const auto ints = [&](const char* name) { return c.ints(name); };
  Tensor value = c.optional_tensor("value");
  if (!value) {
    const Dims shape = c.ints("shape");
    Array values = c.numbers("values", x.dtype());
    c.check(element_count(std::span<const int64_t>(shape)) == values.size(), "has ", values.size(),
            " values for the shape ", str(shape));
    values.shape = shape;
    values.strides = contiguous_strides(shape);
    value = Tensor(values);
  }
  // One number has any shape.
  if (const auto count = element_count(std::span<const Dim>(value.shape()));
      count.equals(1).value_or(false))
    value = ops::reshape(value, Shape());
  return {ops::set_value(x, ops::cast(value, x.dtype()), ints("axes"), ints("starts"), ints("ends"),
                         ints("steps"), ints("decrease_axes"), ints("none_axes"))};
}

/// The least length may be a number of any kind.
Values bincount(ProgramCall& c) {
  return {ops::bincount(c.tensor("x"), c.optional_tensor("weights"),
                        static_cast<int64_t>(c.real("minlength")))};
}

/// The diagonal of a matrix may be given as one row.
Values fill_diagonal_tensor(ProgramCall& c) {
  const Tensor &x = c.tensor("x"), &y = c.tensor("y");
  const bool is_row = x.ndim() == 2 && y.ndim() == 2;
  return {ops::fill_diagonal_tensor(x, is_row ? ops::reshape(y, {Dim(-1)}) : y, c.integer("offset"),
                                    c.integer("dim1"), c.integer("dim2"))};
}

/// Without a length that is positive, the largest one.
Values sequence_mask(ProgramCall& c) {
  const int64_t length = c.integer("maxlen");
  return {ops::sequence_mask(c.tensor("x"), length > 0 ? std::optional(length) : std::nullopt,
                             c.dtype("dtype").value_or(DType::kI64))};
}

/// A window of size 0 is none.
Values fractional_max_pool(ProgramCall& c) {
  const Axes window = c.ints("kernel_size");
  const bool has_window = std::ranges::any_of(window, [](int64_t size) { return size != 0; });
  const auto compute =
      c.tensor("x").ndim() == 5 ? ops::fractional_max_pool3d : ops::fractional_max_pool2d;
  return as_values(compute(c.tensor("x"), AttrValue(c.ints("output_size")),
                           has_window ? AttrValue(window) : AttrValue(), c.real("random_u"), true));
}

Values top_k(ProgramCall& c) {
  const Tensor& x = c.tensor("x");
  const bool has_axis = c.rule().argument_index("axis") >= 0;
  const int64_t axis = has_axis ? c.integer("axis") : -1;
  if (x.ndim() == 0) return {x, Tensor(Array::scalar(int64_t{0}))};
  return as_values(ops::topk(x, c.integer("k"), axis, has_axis ? c.flag("largest") : true,
                             has_axis ? c.flag("sorted") : true));
}

Values median(ProgramCall& c) {
  const Axes axes = c.ints("axis");
  const AttrValue axis = axes.empty()       ? AttrValue()
                         : axes.size() == 1 ? AttrValue(axes[0])
                                            : AttrValue(axes);
  const auto compute = c.is_named("nanmedian") ? ops::nanmedian : ops::median;
  return as_values(compute(c.tensor("x"), axis, c.flag("keepdim"), c.text("mode")));
}

Values transpose_flatten_concat(ProgramCall& c) {
  const Axes order = c.ints("perm");
  const int64_t axis = c.integer("flatten_axis");
  Tensors parts;
  for (const Tensor& each : c.list("x")) {
    const Tensor x = ops::transpose(each, order);
    c.check(axis > 0 && axis < x.ndim(), "its axis ", axis, " is out of range");
    Dim rows = 1, columns = 1;
    for (int64_t i = 0; i < x.ndim(); ++i) {
      Dim& side = i < axis ? rows : columns;
      side = side * x.dim(i);
    }
    parts.push_back(ops::reshape(x, {rows, columns}));
  }
  c.check(!parts.empty(), "expected at least one operand");
  return {ops::concat(parts, normal_axis(c, c.integer("axis"), 2))};
}

Values argsort(ProgramCall& c) {
  const Tensor& x = c.tensor("x");
  if (x.ndim() == 0) return {x, Tensor(Array::scalar(int64_t{0}))};
  return as_values(ops::sort_pairs(x, c.integer("axis"), c.flag("descending")));
}

std::optional<int64_t> optional_axis(const ProgramCall& c) {
  const Axes axis = c.ints("axis");
  return axis.empty() ? std::nullopt : std::optional(axis[0]);
}

/// Results that are not asked for are absent, so those that are move to the front.
Values placed_results(const Tensors& made, std::initializer_list<bool> wanted) {
  Values out = {made.at(0)};
  size_t next = 1;
  for (const bool is_wanted : wanted) out.push_back(is_wanted ? Value(made.at(next++)) : Value());
  return out;
}

Values unique(ProgramCall& c) {
  const bool index = c.flag("return_index"), inverse = c.flag("return_inverse"),
             counts = c.flag("return_counts");
  const DType dtype = c.dtype("dtype").value_or(DType::kI64);
  const bool sorted = c.flag("sorted");
  // Without sorting, PaddlePaddle 1's form has the place of each element only.
  c.check(sorted, "elements in the order of their first places are not supported");
  return placed_results(
      ops::unique(c.tensor("x"), index, inverse, counts, optional_axis(c), dtype, sorted),
      {index, inverse, counts});
}

Values unique_consecutive(ProgramCall& c) {
  const bool inverse = c.flag("return_inverse"), counts = c.flag("return_counts");
  const DType dtype = c.dtype("dtype").value_or(DType::kI64);
  return placed_results(
      ops::unique_consecutive(c.tensor("x"), inverse, counts, optional_axis(c), dtype),
      {inverse, counts});
}

}  // namespace

ProgramFunctions program_shape_functions() {
  return {
      {"reshape", reshape},
      {"transpose", transpose},
      {"flatten", flatten},
      {"flatten_matrix", flatten_matrix},
      {"squeeze", squeeze},
      {"unsqueeze", unsqueeze},
      {"concat", concat},
      {"unstack", unstack},
      {"split", split},
      {"slice", slice},
      {"strided_slice", strided_slice},
      {"expand", expand},
      {"expand_as", expand_as},
      {"tile", tile},
      {"tile_to", tile_to},
      {"crop", crop},
      {"shape", shape},
      {"full", full},
      {"full_int_array", full_int_array},
      {"full_like", full_like},
      {"full_batch_size_like", full_batch_size_like},
      {"range", range},
      {"assign_value", assign_value},
      {"one_hot", one_hot},
      {"one_hot_of_column", one_hot_of_column},
      {"random", random},
      {"gather", gather_any},
      {"scatter", scatter},
      {"nonzero", nonzero},
      {"embedding", embedding},
      {"embedding_of_column", embedding_of_column},
      {"set_value", set_value},
      {"bincount", bincount},
      {"fill_diagonal_tensor", fill_diagonal_tensor},
      {"sequence_mask", sequence_mask},
      {"fractional_max_pool", fractional_max_pool},
      {"top_k", top_k},
      {"median", median},
      {"transpose_flatten_concat", transpose_flatten_concat},
      {"argsort", argsort},
      {"unique", unique},
      {"unique_consecutive", unique_consecutive},
  };
}

}  // namespace paddle::paddle_program
