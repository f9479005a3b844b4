// Functions of the table: sequences, boxes and losses of operations that no single operation of the
// engine covers, and gradients that a program computes itself.

#include <algorithm>
#include <cmath>

#include "ops/generated/creation.h"
#include "ops/generated/detection.h"
#include "ops/generated/graph.h"
#include "ops/generated/indexing.h"
#include "ops/generated/linalg.h"
#include "ops/generated/loss.h"
#include "ops/generated/math.h"
#include "ops/generated/nn.h"
#include "ops/generated/reduce.h"
#include "ops/generated/sequence.h"
#include "ops/generated/shape.h"
#include "ops/generated/sorting.h"
#include "ops/generated/vision.h"
#include "paddle_program/program_call.h"

namespace paddle::paddle_program {
namespace {

using onnx::int_scalar;
using onnx::iota;
using onnx::scalar;
using onnx::slice_axis;

Tensor zeros(const Shape& shape, DType dtype) {
  return ops::cast(ops::full(shape, AttrValue(0.0), DType::kF32), dtype);
}

/// The share of rows whose label is one of the indices, and the numbers that it is of.
Values accuracy(ProgramCall& c) {
  const Tensor &indices = c.tensor("indices"), &label = c.tensor("label");
  c.check(indices.ndim() == 2 && label.ndim() == 2, "expected indices and labels of each row");
  const Tensor is_right = ops::any(ops::equal(indices, ops::cast(label, indices.dtype())), Axes{1});
  const Tensor right = ops::sum(ops::cast(is_right, DType::kI32), {}, DType::kI32);
  const Tensor total =
      ops::cast(ops::full({}, AttrValue(indices.dim(0)), DType::kI64), DType::kI32);
  return {ops::cast(right, DType::kF32) / ops::cast(total, DType::kF32), right, total};
}

/// x [n, t, width]: sines of positions are added to the first half of a vector, cosines to the
/// second one.
Values add_position_encoding(ProgramCall& c) {
  const Tensor& x = c.tensor("x");
  c.check(x.ndim() == 3 && x.dim(2).is_constant() && x.dim(2).value() % 2 == 0,
          "expected [batch, time, an even width], not ", x.type());
  const int64_t half = x.dim(2).value() / 2;
  std::vector<double> rates;
  for (int64_t k = 0; k < half; ++k)
    rates.push_back(half > 1
                        ? std::pow(10000.0, -static_cast<double>(k) / static_cast<double>(half - 1))
                        : 1 / 10000.0);
  const Tensor rate = ops::cast(Tensor(Array::from<double>(rates, {half})), x.dtype());
  const Tensor position = ops::unsqueeze(ops::cast(iota(x.dim(1)), x.dtype()), {1});
  const Tensor angle = position * rate;
  const Tensor added = ops::concat({ops::sin(angle), ops::cos(angle)}, 1);
  return {x * c.real("alpha") + added * c.real("beta")};
}

/// The best paths through tags. The first two rows of the transitions are weights of the first and
/// the last tag. With a label, whether each tag is equal to it.
Values crf_decoding(ProgramCall& c) {
  c.check(c.has("length"),
          "without lengths, sequences have levels of detail, which are not supported");
  const Tensor &emission = c.tensor("emission"), &transition = c.tensor("transition");
  c.check(emission.ndim() == 3 && transition.ndim() == 2, "expected [batch, time, tags], not ",
          emission.type());
  const DType dtype = emission.dtype();
  const Tensor length = ops::reshape(c.tensor("length"), {Dim(-1)});
  const Dim time = emission.dim(1);
  const Tensor at = ops::unsqueeze(iota(time), {0, 2});  // [1, time, 1]
  const Tensor last = ops::unsqueeze(ops::cast(length, DType::kI64), {1, 2}) - int_scalar(1);
  const auto weight = [&](const Tensor& where, int64_t row) {
    return ops::cast(where, dtype) * slice_axis(transition, 0, row, row + 1);
  };
  const Tensor potentials =
      emission + weight(ops::equal(at, int_scalar(0)), 0) + weight(ops::equal(at, last), 1);
  const Tensor steps = slice_axis(transition, 0, 2, onnx::constant_dim(transition, 0));
  Tensor path = ops::text_viterbi_decode(potentials, steps, length, false).at(1);
  // As long as the emissions, with zeros after the end.
  if (!path.dim(1).equals(time).value_or(false)) {
    const Tensor rest = zeros({path.dim(0), time - path.dim(1)}, path.dtype());
    path = ops::concat({path, rest}, 1);
  }
  if (!c.has("label")) return {path};
  const Tensor label = ops::reshape(c.tensor("label"), path.shape());
  const Tensor is_inside = ops::less_equal(ops::squeeze(at, Axes{2}), ops::squeeze(last, Axes{2}));
  const Tensor same = ops::logical_and(ops::equal(path, ops::cast(label, path.dtype())), is_inside);
  return {ops::cast(same, DType::kI64)};
}

/// Labels [n, t] without blanks and, if so wished, without repetitions, at the beginning of a row.
Values ctc_align(ProgramCall& c) {
  c.check(c.has("input_length"),
          "without lengths, sequences have levels of detail, which are not supported");
  const Tensor& x = c.tensor("input");
  c.check(x.ndim() == 2, "expected [batch, time], not ", x.type());
  const Dim rows = x.dim(0), time = x.dim(1);
  const Tensor length =
      ops::reshape(ops::cast(c.tensor("input_length"), DType::kI64), {rows, Dim(1)});
  const Tensor at = ops::unsqueeze(iota(time), {0});
  Tensor keeps =
      ops::logical_and(ops::not_equal(x, ops::cast(int_scalar(c.integer("blank")), x.dtype())),
                       ops::less_than(at, length));
  if (c.flag("merge_repeated")) {
    const Tensor before = ops::concat(
        {zeros({rows, Dim(1)}, x.dtype()), slice_axis(x, 1, 0, onnx::constant_dim(x, 1) - 1)}, 1);
    keeps = ops::logical_and(
        keeps, ops::logical_or(ops::not_equal(x, before), ops::equal(at, int_scalar(0))));
  }
  const Tensor counted = ops::cast(keeps, DType::kI64);
  const Tensor place = ops::where(keeps, ops::cumsum(counted, 1) - int_scalar(1),
                                  ops::full({rows, time}, AttrValue(time), DType::kI64));
  const Tensor padding = zeros({rows, time + 1}, x.dtype()) +
                         ops::cast(int_scalar(c.integer("padding_value")), x.dtype());
  const Tensor all = ops::put_along_axis(padding, place, x, 1);
  const Tensor found = ops::sum(counted, Axes{1}, std::nullopt, true);
  return {slice_axis(all, 1, 0, onnx::constant_dim(x, 1)),
          ops::cast(found, c.tensor("input_length").dtype())};
}

Values edit_distance(ProgramCall& c) {
  const auto flat = [&](const char* name) {
    return c.has(name) ? ops::reshape(c.tensor(name), {Dim(-1)}) : Tensor();
  };
  c.check(c.has("hyps_length") && c.has("refs_length"),
          "without lengths, sequences have levels of detail, which are not supported");
  const Tensors made = ops::edit_distance(c.tensor("hyps"), c.tensor("refs"), c.flag("normalized"),
                                          std::nullopt, flat("hyps_length"), flat("refs_length"));
  return {made.at(1), made.at(0)};
}

/// The functions of gru_unit by their numbers in a program.
Tensor gru_activation(const ProgramCall& c, const Tensor& x, const char* name) {
  switch (c.integer(name)) {
    case 0:
      return x;
    case 1:
      return ops::sigmoid(x);
    case 2:
      return ops::tanh(x);
    case 3:
      return ops::relu(x);
    default:
      c.reject("there is no activation ", c.integer(name));
  }
}

/// A step of a GRU: gates update, reset and candidate, side by side. The weight has the columns of
/// the first two gates, [width, 2 * width], and then those of the candidate, [width, width].
Values gru_unit(ProgramCall& c) {
  const Tensor &input = c.tensor("input"), &before = c.tensor("hidden_prev"),
               &weight = c.tensor("weight");
  const int64_t width = onnx::constant_dim(before, 1);
  c.check(width > 0 && onnx::constant_dim(input, 1) == 3 * width &&
              onnx::constant_dim(weight, 0) == width && onnx::constant_dim(weight, 1) == 3 * width,
          "input ", input.type(), " and weight ", weight.type(), " do not fit ", before.type());
  const Tensor flat = ops::reshape(weight, {Dim(3 * width * width)});
  const Tensor of_gates =
      ops::reshape(slice_axis(flat, 0, 0, 2 * width * width), {Dim(width), Dim(2 * width)});
  const Tensor of_candidate = ops::reshape(
      slice_axis(flat, 0, 2 * width * width, 3 * width * width), {Dim(width), Dim(width)});
  const Tensor x =
      c.has("bias") ? input + ops::reshape(c.tensor("bias"), {Dim(1), Dim(3 * width)}) : input;
  const Tensor gates = gru_activation(
      c, slice_axis(x, 1, 0, 2 * width) + ops::matmul(before, of_gates), "gate_activation");
  const Tensor update = slice_axis(gates, 1, 0, width),
               reset = slice_axis(gates, 1, width, 2 * width);
  const Tensor kept = reset * before;
  const Tensor candidate = gru_activation(
      c, slice_axis(x, 1, 2 * width, 3 * width) + ops::matmul(kept, of_candidate), "activation");
  const Tensor hidden = c.flag("origin_mode") ? update * before + (1.0 - update) * candidate
                                              : (1.0 - update) * before + update * candidate;
  return {ops::concat({gates, candidate}, 1), kept, hidden};
}

/// Each step [n, t, width] with those after it, weighted for each channel.
Values row_conv(ProgramCall& c) {
  const Tensor &x = c.tensor("x"), &filter = c.tensor("filter");
  c.check(x.ndim() == 3 && filter.ndim() == 2, "expected [batch, time, width], not ", x.type());
  const int64_t time = onnx::constant_dim(x, 1), context = onnx::constant_dim(filter, 0);
  Tensor sum = x * slice_axis(filter, 0, 0, 1);
  for (int64_t k = 1; k < std::min(context, time); ++k) {
    const Tensor later = slice_axis(x, 1, k, time) * slice_axis(filter, 0, k, k + 1);
    sum = sum + ops::concat({later, zeros({x.dim(0), Dim(k), x.dim(2)}, x.dtype())}, 1);
  }
  return {sum};
}

/// The windows of images as rows, [images * windows, channels * window].
Values im2sequence(ProgramCall& c) {
  const Tensor& x = c.tensor("x");
  c.check(x.ndim() == 4, "expected images, not ", x.type());
  const Axes pads = c.ints("paddings");
  c.check(pads.size() == 4 && c.ints("kernels").size() == 2 && c.ints("strides").size() == 2,
          "expected 2 kernel sizes, 2 strides and 4 paddings");
  // Paddings are top, left, bottom, right.
  const Tensor columns = ops::unfold(x, AttrValue(c.ints("kernels")), AttrValue(c.ints("strides")),
                                     AttrValue(Axes{pads[0], pads[1], pads[2], pads[3]}));
  const Tensor rows = ops::transpose(columns, {0, 2, 1});
  return {ops::reshape(rows, {Dim(-1), rows.dim(2)})};
}

/// Columns matched to rows of distances, the nearest pair first.
Values bipartite_match(ProgramCall& c) {
  const Tensor& distances = c.tensor("dist_mat");
  c.check(distances.ndim() == 2, "expected distances of rows and columns, not ", distances.type());
  const int64_t rows = onnx::constant_dim(distances, 0), columns = onnx::constant_dim(distances, 1);
  const DType dtype = distances.dtype();
  const Shape row_of = {Dim(1), Dim(columns)};
  Tensor matched = ops::full(row_of, AttrValue(int64_t{-1}), DType::kI64);
  Tensor distance = zeros(row_of, dtype), left = distances;
  const Tensor row_numbers = ops::unsqueeze(iota(Dim(rows)), {1}),
               column_numbers = ops::unsqueeze(iota(Dim(columns)), {0});
  for (int64_t turn = 0; turn < std::min(rows, columns); ++turn) {
    const Tensor flat = ops::reshape(left, {Dim(rows * columns)});
    const Tensor best = ops::argmax(flat, 0), value = ops::max(flat);
    const Tensor row = ops::floor_divide(best, int_scalar(columns)),
                 column = best - row * int_scalar(columns);
    // Pairs without any overlap are none.
    const Tensor here = ops::logical_and(ops::equal(column_numbers, column),
                                         ops::greater_than(value, scalar(1e-6, dtype)));
    matched = ops::where(here, row, matched);
    distance = ops::where(here, value, distance);
    const Tensor is_taken =
        ops::logical_or(ops::equal(row_numbers, row), ops::equal(column_numbers, column));
    left = ops::where(is_taken, scalar(-1, dtype), left);
  }
  if (c.text("match_type") == "per_prediction") {
    const Tensor best = ops::max(distances, Axes{0}, true), row = ops::argmax(distances, 0, true);
    const Tensor also =
        ops::logical_and(ops::equal(matched, int_scalar(-1)),
                         ops::greater_equal(best, scalar(c.real("dist_threshold"), dtype)));
    matched = ops::where(also, row, matched);
    distance = ops::where(also, best, distance);
  }
  return {ops::cast(matched, DType::kI32), distance};
}

/// The boxes of all levels with the best scores, in the order of their images.
Values collect_fpn_proposals(ProgramCall& c) {
  const Tensors rois = c.list("rois"), scores = c.list("scores"), numbers = c.list("rois_num");
  c.check(!rois.empty() && rois.size() == scores.size() && numbers.size() == rois.size(),
          "expected boxes, scores and numbers of boxes for each level");
  Tensors images;
  for (size_t i = 0; i < rois.size(); ++i) {
    const Tensor ends = ops::cumsum(ops::cast(numbers[i], DType::kI64), 0);
    const Tensor is_after =
        ops::greater_equal(ops::unsqueeze(iota(rois[i].dim(0)), {1}), ops::unsqueeze(ends, {0}));
    images.push_back(ops::sum(ops::cast(is_after, DType::kI64), Axes{1}));
  }
  const Tensor score = ops::reshape(ops::concat(scores, 0), {Dim(-1)});
  const int64_t all = onnx::constant_dim(score, 0), most = c.integer("post_nms_top_n");
  const Tensor order = slice_axis(ops::argsort(score, 0, true, true), 0, 0, std::min(all, most));
  const Tensor image = ops::gather(ops::concat(images, 0), order);
  const Tensor by_image = ops::gather(order, ops::argsort(image, 0, false, true));
  const Tensor counts = ops::sum(ops::cast(ops::equal(ops::unsqueeze(iota(numbers[0].dim(0)), {1}),
                                                      ops::unsqueeze(image, {0})),
                                           DType::kI32),
                                 Axes{1}, DType::kI32);
  return {ops::gather(ops::concat(rois, 0), by_image), counts};
}

/// The overlap of boxes x [n, 4] and y [m, 4] over their union, [n, m].
Values iou_similarity(ProgramCall& c) {
  const Tensor x = ops::unsqueeze(c.tensor("x"), {1}), y = ops::unsqueeze(c.tensor("y"), {0});
  const DType dtype = x.dtype();
  const double one = c.flag("box_normalized") ? 0 : 1;
  const auto corner = [](const Tensor& boxes, int64_t at) {
    return ops::squeeze(slice_axis(boxes, 2, at, at + 1), Axes{2});
  };
  const auto area = [&](const Tensor& boxes) {
    return (corner(boxes, 2) - corner(boxes, 0) + one) *
           (corner(boxes, 3) - corner(boxes, 1) + one);
  };
  const auto side = [&](int64_t low) {
    const Tensor size = ops::minimum(corner(x, low + 2), corner(y, low + 2)) -
                        ops::maximum(corner(x, low), corner(y, low)) + one;
    return ops::maximum(size, scalar(0, dtype));
  };
  const Tensor common = side(0) * side(1);
  return {common / (area(x) + area(y) - common)};
}

/// Offsets of corners to places of pixels, in cells of 4.
Values polygon_box_transform(ProgramCall& c) {
  const Tensor& x = c.tensor("input");
  c.check(x.ndim() == 4, "expected maps, not ", x.type());
  const DType dtype = x.dtype();
  constexpr double kCell = 4;
  const Tensor row = ops::cast(ops::unsqueeze(iota(x.dim(2)), {1}), dtype) * kCell,
               column = ops::cast(ops::unsqueeze(iota(x.dim(3)), {0}), dtype) * kCell;
  const Tensor odd = ops::equal(
      ops::remainder(ops::unsqueeze(iota(x.dim(1)), {1, 2}), int_scalar(2)), int_scalar(1));
  return {ops::where(odd, row, column) - x};
}

/// Distinct values in the order in which they appear, where each element is among them, and how
/// often it appears.
Values unique_with_counts(ProgramCall& c) {
  const DType dtype = c.dtype("dtype").value_or(DType::kI64);
  const Tensors found = ops::unique(c.tensor("x"), true, true, true);
  const Tensor order = ops::argsort(found.at(1)), place = ops::argsort(order);
  return {ops::gather(found.at(0), order), ops::cast(ops::gather(place, found.at(2)), dtype),
          ops::cast(ops::gather(found.at(3), order), dtype)};
}

/// -log of the probability of the label.
Values cross_entropy_of(ProgramCall& c) {
  const Tensor& x = c.tensor("x");
  const Tensor label = ops::cast(c.tensor("label"), DType::kI64);
  const Tensor column = label.ndim() == x.ndim() ? label : ops::unsqueeze(label, {-1});
  const Tensor ignored = ops::equal(column, int_scalar(c.integer("ignore_index")));
  const Tensor match =
      ops::take_along_axis(x, ops::where(ignored, int_scalar(0), column), x.ndim() - 1);
  const Tensor loss = ops::where(ignored, scalar(0, x.dtype()), ops::neg(ops::log(match)));
  return {loss, Value(), match};
}

/// Takes the operand as logarithms of probabilities, whatever it is.
Values rnnt(ProgramCall& c) {
  return {ops::rnnt_loss(c.tensor("input"), c.tensor("label"), c.tensor("input_lengths"),
                         c.tensor("label_lengths"), c.integer("blank"), c.real("fastemit_lambda"),
                         "none")};
}

Values hierarchical_sigmoid(ProgramCall& c) {
  return {ops::hsigmoid_loss(c.tensor("x"), c.tensor("label"), c.integer("num_classes"),
                             c.tensor("weight"), c.optional_tensor("bias"),
                             c.optional_tensor("path_table"), c.optional_tensor("path_code"))};
}

/// Rows of a table of bytes. A row is its least and its largest value and then the bytes, four in
/// the place of a number.
Values dequantized_rows(ProgramCall& c) {
  const Tensor &table = c.tensor("table"), &ids = c.tensor("ids");
  const int64_t width = onnx::constant_dim(table, 1);
  c.check(table.dtype() == DType::kF32 && width > 2, "expected rows of float32, not ",
          table.type());
  const Tensor row = ops::gather(table, ops::reshape(ids, {Dim(-1)}), 0);
  const Tensor least = slice_axis(row, 1, 0, 1), range = slice_axis(row, 1, 1, 2) - least;
  const Tensor bytes =
      ops::cast(ops::view_dtype(slice_axis(row, 1, 2, width), DType::kU8), DType::kF32);
  constexpr double kLevels = 256;
  Shape shape = ids.shape();
  if (!shape.empty() && shape.back().equals(1).value_or(false)) shape.pop_back();
  shape.emplace_back(4 * (width - 2));
  return {ops::reshape(bytes * (range / kLevels) + least, shape)};
}

/// Reductions are numbers: the sum, the mean, or none.
Values identity_loss(ProgramCall& c) {
  const Tensor& x = c.tensor("x");
  const int64_t reduction = c.integer("reduction");
  return {reduction == 0 ? ops::sum(x) : reduction == 1 ? ops::mean(x) : x};
}

Values singular_values(ProgramCall& c) { return {ops::svd(c.tensor("x")).at(1)}; }

/// The tolerance of a program is relative to nothing, and there is one only without its default.
Values matrix_rank(ProgramCall& c) {
  AttrValue tolerance;
  if (c.has("tol_tensor"))
    tolerance = AttrValue(c.real("tol_tensor"));
  else if (!c.flag("use_default_tol"))
    tolerance = AttrValue(c.real("tol"));
  const Tensor rank = ops::matrix_rank(c.tensor("x"), tolerance, c.flag("hermitian"));
  return {ops::cast(rank, DType::kI32)};
}

// --- gradients ---

/// The gradient of an operand of this shape that was broadcast: the sum over its copies.
Tensor unbroadcast(Tensor gradient, const Shape& shape) {
  Axes axes;
  const auto extra = static_cast<int64_t>(gradient.ndim()) - static_cast<int64_t>(shape.size());
  for (int64_t i = 0; i < extra; ++i) axes.push_back(i);
  for (size_t i = 0; i < shape.size(); ++i)
    if (shape[i].equals(1).value_or(false) &&
        !gradient.dim(extra + static_cast<int64_t>(i)).equals(1).value_or(false))
      axes.push_back(extra + static_cast<int64_t>(i));
  if (axes.empty()) return gradient;
  return ops::reshape(ops::sum(gradient, axes), shape);
}

Values binary_gradient(ProgramCall& c) {
  const Tensor &x = c.tensor("x"), y = placed_operand(c, "y"), &g = c.tensor("gradient");
  const std::string function = c.text("function");
  Tensor to_x = g, to_y = g;
  if (function == "multiply") {
    to_x = g * y;
    to_y = g * x;
  } else if (function == "subtract") {
    to_y = ops::neg(g);
  } else if (function == "divide") {
    to_x = g / y;
    to_y = ops::neg(g * x / (y * y));
  }
  return {unbroadcast(to_x, x.shape()),
          ops::reshape(unbroadcast(to_y, y.shape()), c.tensor("y").shape())};
}

/// Of functions whose derivative follows from the operand `x` or the result `out`.
Values unary_gradient(ProgramCall& c) {
  const Tensor& g = c.tensor("gradient");
  const std::string function = c.text("function");
  const Tensor& v = c.tensor(c.has("out") ? "out" : "x");
  if (function == "tanh") return {g * (1.0 - v * v)};
  if (function == "sigmoid") return {g * v * (1.0 - v)};
  if (function == "relu")
    return {g * ops::cast(ops::greater_than(v, scalar(0, v.dtype())), g.dtype())};
  if (function == "exp") return {g * v};
  if (function == "sqrt") return {g * 0.5 / v};
  if (function == "square") return {g * v * 2.0};
  if (function == "log") return {g / v};
  c.check(function == "abs", "there is no gradient of ", function);
  return {g * ops::sign(v)};
}

/// Of a sum or a mean over axes.
Values reduction_gradient(ProgramCall& c) {
  const Tensor& x = c.tensor("x");
  Tensor g = c.tensor("gradient");
  Axes axes = c.ints("axis");
  if (axes.empty() || c.flag("reduce_all")) {
    axes.clear();
    for (int64_t i = 0; i < x.ndim(); ++i) axes.push_back(i);
  }
  Dim count(1);
  Shape kept = x.shape();
  for (int64_t& axis : axes) {
    if (axis < 0) axis += x.ndim();
    c.check(axis >= 0 && axis < x.ndim(), "its axis ", axis, " is out of range for ", x.type());
    count = count * x.dim(axis);
    kept[static_cast<size_t>(axis)] = Dim(1);
  }
  g = ops::expand(ops::reshape(g, kept), x.shape());
  if (c.text("function") == "mean")
    g = g / ops::cast(ops::full({}, AttrValue(count), DType::kI64), g.dtype());
  return {g};
}

Values matmul_gradient(ProgramCall& c) {
  const Tensor &x = c.tensor("x"), &y = c.tensor("y"), &g = c.tensor("gradient");
  const bool tx = c.flag("transpose_x"), ty = c.flag("transpose_y");
  c.check(x.ndim() >= 2 && y.ndim() >= 2, "expected matrices, not ", x.type(), " and ", y.type());
  const Tensor to_x = tx ? ops::matmul(y, g, ty, true) : ops::matmul(g, y, false, !ty);
  const Tensor to_y = ty ? ops::matmul(g, x, true, tx) : ops::matmul(x, g, !tx, false);
  return {unbroadcast(to_x, x.shape()), unbroadcast(to_y, y.shape())};
}

}  // namespace

ProgramFunctions program_sequence_functions() {
  return {
      {"accuracy", accuracy},
      {"add_position_encoding", add_position_encoding},
      {"crf_decoding", crf_decoding},
      {"ctc_align", ctc_align},
      {"edit_distance", edit_distance},
      {"gru_unit", gru_unit},
      {"row_conv", row_conv},
      {"im2sequence", im2sequence},
      {"bipartite_match", bipartite_match},
      {"collect_fpn_proposals", collect_fpn_proposals},
      {"iou_similarity", iou_similarity},
      {"polygon_box_transform", polygon_box_transform},
      {"unique_with_counts", unique_with_counts},
      {"cross_entropy_of", cross_entropy_of},
      {"rnnt", rnnt},
      {"hierarchical_sigmoid", hierarchical_sigmoid},
      {"identity_loss", identity_loss},
      {"dequantized_rows", dequantized_rows},
      {"singular_values", singular_values},
      {"matrix_rank", matrix_rank},
      {"binary_gradient", binary_gradient},
      {"unary_gradient", unary_gradient},
      {"reduction_gradient", reduction_gradient},
      {"matmul_gradient", matmul_gradient},
  };
}

}  // namespace paddle::paddle_program
