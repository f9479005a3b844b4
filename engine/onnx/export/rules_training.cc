// Operations of training: gradients of convolutions, pooling and tables, statistics of
// batches, norms of gradients. Updates of optimizers are decomposed.

#include <algorithm>
#include <numeric>

#include "onnx/export/graph_writer.h"
#include "ops/nn/window.h"

namespace paddle::onnx {
namespace {

using Writer = GraphWriter;

void require_channels_first(Writer& w) {
  if (w.attr("data_format").as_string().ends_with('C')) w.reject("channels last");
}

/// A convolution of x by the gradient, with samples in the place of channels: stride and dilation
/// change places, and each group of channels is a group of samples.
void conv2d_weight_grad(Writer& w) {
  require_channels_first(w);
  const int64_t groups = w.attr("groups").as_int();
  const Shape &image = w.type("x").shape, &wanted = w.result_type().shape;
  if (!is_constant(wanted)) w.reject("a weight of symbolic size");
  std::string x = w.in("x");
  if (groups == 1) {
    x = w.transpose(x, {1, 0, 2, 3});
  } else {
    const Dim per_group = floor_divide(image[1], Dim(groups));
    x = w.reshape(x, {image[0], Dim(groups), per_group, image[2], image[3]});
    x = w.transpose(x, {2, 1, 0, 3, 4});
    x = w.reshape(x, {per_group, image[0] * groups, image[2], image[3]});
  }
  const std::string grad = w.transpose(w.in("grad"), {1, 0, 2, 3});
  const std::string sums = w.add("Conv", {x, grad},
                                 {ints_attribute("strides", w.attr("dilation").as_ints()),
                                  ints_attribute("dilations", w.attr("stride").as_ints()),
                                  ints_attribute("pads", onnx_pads(w.attr("padding").as_ints())),
                                  int_attribute("group", groups)});
  // The sums cover rows and columns beyond the weight where windows do not reach the border.
  const std::vector<int64_t> size = concrete(wanted);
  const std::string kept =
      w.add("Slice", {sums, w.ints({0, 0}), w.ints({size[2], size[3]}), w.ints({2, 3})});
  w.result(0, w.transpose(kept, {1, 0, 2, 3}));
}

/// Zeros of a type and shape.
std::string zeros(Writer& w, DType dtype, const Shape& shape) {
  return w.add("Expand", {w.scalar(0, dtype), w.shape(shape)});
}

void max_pool2d_grad(Writer& w) {
  require_channels_first(w);
  const Shape &result = w.result_type().shape, &grad = w.type("grad").shape;
  const Shape planes = {result[0], result[1], result[2] * result[3]};
  const Shape windows = {grad[0], grad[1], grad[2] * grad[3]};
  const std::string places =
      w.cast(w.reshape(w.in("mask"), windows), w.type("mask").dtype, DType::kI64);
  const std::string sums =
      w.add("ScatterElements",
            {zeros(w, w.result_type().dtype, planes), places, w.reshape(w.in("grad"), windows)},
            {int_attribute("axis", 2), string_attribute("reduction", "add")});
  w.result(0, w.reshape(sums, result));
}

/// Each window's gradient, over the cells that it counts, to all of its cells.
void avg_pool2d_grad(Writer& w) {
  require_channels_first(w);
  const Shape &result = w.result_type().shape, &given = w.type("grad").shape;
  const DType dtype = w.result_type().dtype;
  if (!result[1].is_constant()) w.reject("a symbolic number of channels");
  const std::vector<int64_t> kernel = window_sizes(w.attr("kernel_size"), 2, "avg_pool2d_grad");
  const std::vector<int64_t> stride =
      w.has_attr("stride") ? window_sizes(w.attr("stride"), 2, "avg_pool2d_grad") : kernel;
  const std::vector<int64_t> pads = onnx_pads(window_padding(
      w.attr("padding"), {result[2], result[3]}, kernel, stride, {1, 1}, false, "avg_pool2d_grad"));
  std::vector<int64_t> extra;
  for (size_t i = 0; i < 2; ++i) {
    const Dim missing =
        result[2 + i] - ((given[2 + i] - 1) * stride[i] - pads[i] - pads[2 + i] + kernel[i]);
    if (!missing.is_constant() || missing.value() < 0) w.reject("the output size is not static");
    extra.push_back(missing.value());
  }
  const double cells = static_cast<double>(kernel[0] * kernel[1]);
  const bool padded = std::any_of(pads.begin(), pads.end(), [](int64_t p) { return p != 0; });
  std::string divisor = w.scalar(
      w.has_attr("divisor_override") ? w.attr("divisor_override").as_double() : cells, dtype);
  if (padded && !w.has_attr("divisor_override") && w.attr("exclusive").as_bool()) {
    const std::string ones =
        w.add("Expand", {w.scalar(1, dtype), w.shape({Dim(1), Dim(1), result[2], result[3]})});
    const std::string share =
        w.add("AveragePool", {ones},
              {ints_attribute("kernel_shape", kernel), ints_attribute("strides", stride),
               ints_attribute("pads", pads), int_attribute("count_include_pad", 1)});
    divisor = w.add("Mul", {share, divisor});
  }
  const std::string weight =
      w.add("Expand", {w.scalar(1, dtype), w.ints({result[1].value(), 1, kernel[0], kernel[1]})});
  w.emit("ConvTranspose", {w.add("Div", {w.in("grad"), divisor}), weight},
         {ints_attribute("kernel_shape", kernel), ints_attribute("strides", stride),
          ints_attribute("pads", pads), ints_attribute("output_padding", extra),
          int_attribute("group", result[1].value())});
}

void embedding_grad(Writer& w) {
  const Shape& result = w.result_type().shape;
  const DType dtype = w.result_type().dtype;
  std::string rows = w.cast(w.in("x"), w.type("x").dtype, DType::kI64);
  std::string grad = w.in("grad");
  if (w.has_attr("padding_idx")) {
    const int64_t padding = w.attr("padding_idx").as_int();
    const std::string number = padding >= 0
                                   ? w.constant(Array::scalar(padding))
                                   : w.add("Squeeze", {w.dim(result[0] + padding), w.ints({0})});
    const std::string dropped = w.add("Unsqueeze", {w.add("Equal", {rows, number}), w.ints({-1})});
    grad = w.add("Where", {dropped, w.scalar(0, dtype), grad});
  }
  w.emit("ScatterND", {zeros(w, dtype, result), w.add("Unsqueeze", {rows, w.ints({-1})}), grad},
         {string_attribute("reduction", "add")});
}

void sum_of_squares(Writer& w) {
  const DType wide = w.result_type().dtype;
  const std::string x = w.cast(w.in("x"), w.type("x").dtype, wide);
  if (!w.operand("indices")) return w.result(0, w.reduce("ReduceSumSquare", x, {}, false));
  // The squares of sums of rows are the products of all pairs of rows with equal indices.
  const std::string indices = w.in("indices");
  const std::string down = w.add("Unsqueeze", {indices, w.ints({1})});
  const std::string pairs = w.add("Equal", {down, w.add("Unsqueeze", {indices, w.ints({0})})});
  const std::string unused = w.add("Less", {down, w.constant(Array::scalar(int64_t{0}))});
  const std::string products = w.add("MatMul", {x, w.transpose(x, {1, 0})});
  const std::string counted =
      w.add("Where", {w.add("And", {pairs, w.add("Not", {unused})}), products, w.scalar(0, wide)});
  w.result(0, w.reduce("ReduceSum", counted, {}, false));
}

void all_finite(Writer& w) {
  std::string out;
  for (const ir::Value* value : w.operand_list("x")) {
    // The difference of a number and itself is 0 unless it is infinite or NaN.
    const std::string x = w.name_of(*value), none = w.add("Sub", {x, x});
    const std::string bad = w.add("IsNaN", {w.reduce("ReduceSum", none, {}, false)});
    out = out.empty() ? bad : w.add("Or", {out, bad});
  }
  if (out.empty()) return w.result(0, w.constant(Array::scalar(true)));
  w.emit("Not", {out});
}

}  // namespace

/// Runtimes for inference lack the training mode of BatchNormalization.
void write_batch_statistics(Writer& w) {
  const size_t rank = w.type("x").shape.size();
  const bool last = w.attr("data_format").as_string().ends_with('C') && rank > 2;
  const size_t channel_axis = last ? rank - 1 : 1;
  Shape per_channel(rank, Dim(1));
  per_channel[channel_axis] = w.type("x").shape[channel_axis];
  std::vector<int64_t> axes;
  for (size_t i = 0; i < rank; ++i)
    if (i != channel_axis) axes.push_back(static_cast<int64_t>(i));
  const DType wide = w.result_type(3).dtype;
  const std::string x = w.cast(w.in("x"), w.type("x").dtype, wide);
  const std::string mean = w.reduce("ReduceMean", x, axes, true);
  const std::string centered = w.add("Sub", {x, mean});
  const std::string variance =
      w.reduce("ReduceMean", w.add("Mul", {centered, centered}), axes, true);
  const std::string rstd = w.add(
      "Reciprocal",
      {w.add("Sqrt", {w.add("Add", {variance, w.scalar(w.attr("epsilon").as_double(), wide)})})});
  std::string out = w.add("Mul", {centered, rstd});
  const auto vector = [&](const char* operand) {
    return w.cast(w.reshape(w.in(operand), per_channel), w.type(operand).dtype, wide);
  };
  if (w.operand("weight")) out = w.add("Mul", {out, vector("weight")});
  if (w.operand("bias")) out = w.add("Add", {out, vector("bias")});
  w.result(0, w.cast(out, wide, w.result_type().dtype));
  const double keep = w.attr("momentum").as_double();
  const auto running = [&](size_t i, const char* operand, const std::string& now) {
    const TensorType& type = w.type(operand);
    const std::string next =
        w.add("Add", {w.add("Mul", {w.cast(w.in(operand), type.dtype, wide), w.scalar(keep, wide)}),
                      w.add("Mul", {w.reshape(now, type.shape), w.scalar(1 - keep, wide)})});
    w.result(i, w.cast(next, wide, type.dtype));
  };
  running(1, "running_mean", mean);
  running(2, "running_var", variance);
  w.result(3, w.reshape(mean, w.result_type(3).shape));
  w.result(4, w.reshape(rstd, w.result_type(4).shape));
}

std::vector<ExportRuleEntry> training_export_rules() {
  return {{"conv2d_weight_grad", conv2d_weight_grad}, {"max_pool2d_grad", max_pool2d_grad},
          {"avg_pool2d_grad", avg_pool2d_grad},       {"embedding_grad", embedding_grad},
          {"sum_of_squares", sum_of_squares},         {"all_finite", all_finite}};
}

}  // namespace paddle::onnx
