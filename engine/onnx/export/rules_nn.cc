// Products, convolutions, pooling, normalization and attention.

#include <algorithm>
#include <numeric>

#include "onnx/export/graph_writer.h"
#include "ops/nn/window.h"

namespace paddle::onnx {
namespace {

using Writer = GraphWriter;

size_t rank_of(Writer& w, const char* operand) { return w.type(operand).shape.size(); }

std::string swapped(Writer& w, const std::string& x, size_t rank) {
  std::vector<int64_t> permutation(rank);
  std::iota(permutation.begin(), permutation.end(), int64_t{0});
  std::swap(permutation[rank - 1], permutation[rank - 2]);
  return w.transpose(x, permutation);
}

/// Runtimes multiply floats and 32- and 64-bit integers.
DType product_type(DType dtype) {
  if (is_float(dtype) || dtype == DType::kI32 || dtype == DType::kI64) return dtype;
  return DType::kI64;
}

void matmul(Writer& w) {
  const auto factor = [&](const char* operand, const char* flag) {
    const TensorType& type = w.type(operand);
    const std::string x = w.cast(w.in(operand), type.dtype, product_type(type.dtype));
    return w.attr(flag).as_bool() && type.shape.size() > 1 ? swapped(w, x, type.shape.size()) : x;
  };
  const std::string x = factor("x", "transpose_x"), y = factor("y", "transpose_y");
  const DType to = w.result_type().dtype;
  w.result(0, w.cast(w.add("MatMul", {x, y}), product_type(to), to));
}

void linear(Writer& w) {
  const std::string x = w.in("x"), weight = w.in("weight"), bias = w.in("bias");
  if (rank_of(w, "x") == 2 && !bias.empty() && rank_of(w, "bias") <= 2)
    return w.emit("Gemm", {x, weight, bias});
  if (bias.empty()) return w.emit("MatMul", {x, weight});
  w.emit("Add", {w.add("MatMul", {x, weight}), bias});
}

// --- convolutions ---

/// Stride, padding and dilation in the form of ONNX.
struct Window {
  std::vector<int64_t> kernel, stride, dilation, pads;  ///< pads: all before, then all after
};

bool channels_last(Writer& w) { return w.attr("data_format").as_string().ends_with('C'); }

Shape spatial_of(Writer& w, const Shape& shape) {
  const size_t first = channels_last(w) ? 1 : 2;
  return {shape.begin() + static_cast<ptrdiff_t>(first),
          shape.begin() + static_cast<ptrdiff_t>(first + shape.size() - 2)};
}

Window window_of(Writer& w, const Shape& image, std::vector<int64_t> kernel, bool dilates) {
  const std::string what(w.op().name());
  const size_t n = kernel.size();
  Window out;
  out.kernel = std::move(kernel);
  out.stride = w.has_attr("stride") ? window_sizes(w.attr("stride"), n, what) : out.kernel;
  out.dilation = dilates ? window_sizes(w.attr("dilation"), n, what) : std::vector<int64_t>(n, 1);
  const bool has_mask = w.op().attr_index("return_mask") >= 0 && w.attr("return_mask").as_bool();
  out.pads =
      onnx_pads(window_padding(max_pool_padding(w.attr("padding"), has_mask), spatial_of(w, image),
                               out.kernel, out.stride, out.dilation, channels_last(w), what));
  return out;
}

ExportAttributes attributes_of(const Window& window, bool dilates) {
  ExportAttributes out = {ints_attribute("kernel_shape", window.kernel),
                          ints_attribute("strides", window.stride),
                          ints_attribute("pads", window.pads)};
  if (dilates) out.push_back(ints_attribute("dilations", window.dilation));
  return out;
}

/// Permutations between channels first, which ONNX has, and last.
std::vector<int64_t> to_channels_first(size_t rank) {
  std::vector<int64_t> out = {0, static_cast<int64_t>(rank) - 1};
  for (size_t i = 1; i + 1 < rank; ++i) out.push_back(static_cast<int64_t>(i));
  return out;
}
std::vector<int64_t> to_channels_last(size_t rank) {
  std::vector<int64_t> out = {0};
  for (size_t i = 2; i < rank; ++i) out.push_back(static_cast<int64_t>(i));
  out.push_back(1);
  return out;
}
std::string image(Writer& w, const char* operand) {
  const std::string x = w.in(operand);
  return channels_last(w) ? w.transpose(x, to_channels_first(rank_of(w, operand))) : x;
}
void image_result(Writer& w, const std::string& name) {
  w.result(0, channels_last(w) ? w.transpose(name, to_channels_last(w.result_type().shape.size()))
                               : name);
}

std::vector<int64_t> kernel_of(Writer& w) {
  const Shape& weight = w.type("weight").shape;
  return concrete(Shape(weight.begin() + 2, weight.end()));
}

void conv(Writer& w) {
  const Window window = window_of(w, w.type("x").shape, kernel_of(w), true);
  ExportAttributes attributes = attributes_of(window, true);
  attributes.push_back(int_attribute("group", w.attr("groups").as_int()));
  image_result(w,
               w.add("Conv", {image(w, "x"), w.in("weight"), w.in("bias")}, std::move(attributes)));
}

/// The gradient of a convolution for its input is a transposed convolution.
void conv_transpose(Writer& w) {
  const std::vector<int64_t> kernel = kernel_of(w);
  const size_t n = kernel.size();
  Window window;
  window.kernel = kernel;
  window.stride = w.attr("stride").as_ints();
  window.dilation = w.attr("dilation").as_ints();
  window.pads = onnx_pads(w.attr("padding").as_ints());
  const Shape wanted = spatial_of(w, w.attr("input_shape").as_dims());
  const Shape given = spatial_of(w, w.type("grad").shape);
  std::vector<int64_t> extra;
  for (size_t i = 0; i < n; ++i) {
    const Dim least = (given[i] - 1) * window.stride[i] - window.pads[i] - window.pads[n + i] +
                      window.dilation[i] * (kernel[i] - 1) + 1;
    const Dim missing = wanted[i] - least;
    if (!missing.is_constant()) w.reject("the output size is not static");
    extra.push_back(missing.value());
  }
  ExportAttributes attributes = attributes_of(window, true);
  attributes.push_back(int_attribute("group", w.attr("groups").as_int()));
  attributes.push_back(ints_attribute("output_padding", extra));
  image_result(w,
               w.add("ConvTranspose", {image(w, "grad"), w.in("weight")}, std::move(attributes)));
}

// --- pooling ---

void max_pool2d(Writer& w) {
  if (w.is_used(1) && channels_last(w)) w.reject("positions of maxima with channels last");
  const Window window =
      window_of(w, w.type("x").shape, window_sizes(w.attr("kernel_size"), 2, "max_pool2d"), false);
  ExportAttributes attributes = attributes_of(window, false);
  attributes.push_back(int_attribute("ceil_mode", w.attr("ceil_mode").as_bool() ? 1 : 0));
  if (!w.is_used(1))
    return image_result(w, w.add("MaxPool", {image(w, "x")}, std::move(attributes)));
  const Names out = w.add_several("MaxPool", {image(w, "x")}, 2, std::move(attributes));
  w.result(0, out[0]);
  // ONNX counts positions over the whole tensor, we over a plane.
  const Shape& shape = w.type("x").shape;
  const std::string plane = w.dim(shape[2] * shape[3]);
  w.result(1, w.cast(w.add("Mod", {out[1], plane}), DType::kI64, w.result_type(1).dtype));
}

/// With ceil_mode, where cells of the padding count but those after it do not, which ONNX cannot
/// say: the padding becomes cells of the image.
void padded_avg_pool(Writer& w, const Window& window, bool divides) {
  const size_t n = window.kernel.size();
  const Shape given = spatial_of(w, w.type("x").shape), made = spatial_of(w, w.result_type().shape);
  std::vector<int64_t> pads(2 * (n + 2), 0);
  for (size_t i = 0; i < n; ++i) {
    pads[2 + i] = window.pads[i];
    pads[n + 4 + i] = window.pads[n + i];
    // With a divisor of its own, whole windows are needed; their further cells are 0.
    const Dim missing = (made[i] - 1) * window.stride[i] + window.kernel[i] - given[i] -
                        window.pads[i] - window.pads[n + i];
    if (divides && !missing.is_constant()) w.reject("a divisor with ceil_mode and symbolic sizes");
    if (divides) pads[n + 4 + i] += std::max<int64_t>(missing.value(), 0);
  }
  const std::string padded = w.add("Pad", {image(w, "x"), w.ints(pads)});
  std::string out = w.add(
      "AveragePool", {padded},
      {ints_attribute("kernel_shape", window.kernel), ints_attribute("strides", window.stride),
       int_attribute("ceil_mode", divides ? 0 : 1)});
  if (divides) {
    const double cells = static_cast<double>(window.kernel[0] * window.kernel[1]);
    out = w.add("Mul", {out, w.scalar(cells / w.attr("divisor_override").as_double(),
                                      w.result_type().dtype)});
  }
  image_result(w, out);
}

void avg_pool2d(Writer& w) {
  const Window window =
      window_of(w, w.type("x").shape, window_sizes(w.attr("kernel_size"), 2, "avg_pool2d"), false);
  const bool divides = w.has_attr("divisor_override");
  const bool counts_pads = divides || !w.attr("exclusive").as_bool();
  const bool ceil = w.attr("ceil_mode").as_bool();
  const bool pads =
      std::any_of(window.pads.begin(), window.pads.end(), [](int64_t p) { return p != 0; });
  if (ceil && counts_pads) return padded_avg_pool(w, window, divides);
  ExportAttributes attributes = attributes_of(window, false);
  attributes.push_back(int_attribute("ceil_mode", ceil ? 1 : 0));
  if (pads) attributes.push_back(int_attribute("count_include_pad", counts_pads ? 1 : 0));
  std::string out = w.add("AveragePool", {image(w, "x")}, std::move(attributes));
  if (divides) {
    const double cells = static_cast<double>(window.kernel[0] * window.kernel[1]);
    out = w.add("Mul", {out, w.scalar(cells / w.attr("divisor_override").as_double(),
                                      w.result_type().dtype)});
  }
  image_result(w, out);
}

// --- normalization ---

int64_t normalized_rank(Writer& w, const char* operand) {
  const AttrValue& shape = w.attr("normalized_shape");
  if (shape.is_none()) return static_cast<int64_t>(rank_of(w, operand)) - 1;
  return shape.is_list() ? static_cast<int64_t>(shape.as_list().size()) : 1;
}

/// The normalized axes of x and, where they are read, the mean and the inverse of the deviation,
/// from primitive operators. As the operator it computes 16-bit numbers in float32.
void primitive_layer_norm(Writer& w, int64_t axis, const std::string& weight,
                          const std::string& bias) {
  const DType dtype = w.type("x").dtype;
  const DType computed = dtype == DType::kF64 ? DType::kF64 : DType::kF32;
  std::vector<int64_t> axes;
  for (auto i = axis; i < static_cast<int64_t>(rank_of(w, "x")); ++i) axes.push_back(i);
  const std::string x = w.cast(w.in("x"), dtype, computed);
  const std::string mean = w.reduce("ReduceMean", x, axes, true);
  const std::string centered = w.add("Sub", {x, mean});
  const std::string variance =
      w.reduce("ReduceMean", w.add("Mul", {centered, centered}), axes, true);
  const std::string deviation =
      w.add("Sqrt", {w.add("Add", {variance, w.scalar(w.attr("epsilon").as_double(), computed)})});
  std::string out = w.cast(w.add("Div", {centered, deviation}), computed, dtype);
  out = w.add("Mul", {out, weight});
  w.result(0, bias.empty() ? out : w.add("Add", {out, bias}));
  if (w.is_used(1)) w.result(1, w.reshape(mean, w.result_type(1).shape));
  if (w.is_used(2))
    w.result(2, w.reshape(w.add("Reciprocal", {deviation}), w.result_type(2).shape));
}

void layer_norm(Writer& w) {
  const int64_t axis = static_cast<int64_t>(rank_of(w, "x")) - normalized_rank(w, "x");
  const Shape& shape = w.type("x").shape;
  const Shape inner(shape.begin() + static_cast<ptrdiff_t>(axis), shape.end());
  const DType dtype = w.type("x").dtype;
  std::string weight = w.in("weight"), bias = w.in("bias");
  if (weight.empty()) weight = w.add("Expand", {w.scalar(1, dtype), w.shape(inner)});
  if (w.operand("weight") && rank_of(w, "weight") != inner.size())
    weight = w.reshape(weight, inner);
  if (!bias.empty() && rank_of(w, "bias") != inner.size()) bias = w.reshape(bias, inner);
  if (w.opset() < 17) return primitive_layer_norm(w, axis, weight, bias);
  const ExportAttributes attributes = {int_attribute("axis", axis),
                                       float_attribute("epsilon", w.attr("epsilon").as_double())};
  if (!w.is_used(1) && !w.is_used(2))
    return w.emit("LayerNormalization", {w.in("x"), weight, bias}, attributes);
  if (dtype == DType::kF64) w.reject("its statistics are read, which ONNX has only in float32");
  const Names out = w.add_several("LayerNormalization", {w.in("x"), weight, bias}, 3, attributes);
  w.result(0, out[0]);
  for (const size_t i : {1u, 2u}) w.result(i, w.reshape(out[i], w.result_type(i).shape));
}

void rms_norm(Writer& w) {
  const auto rank = static_cast<int64_t>(rank_of(w, "input"));
  const int64_t axis = rank - normalized_rank(w, "input");
  const DType dtype = w.result_type().dtype;
  const std::string x = w.in("input");
  std::vector<int64_t> axes;
  for (int64_t i = axis; i < rank; ++i) axes.push_back(i);
  const std::string squares = w.add("Mul", {x, x});
  std::string mean;
  if (w.opset() >= 18)
    mean = w.add("ReduceMean", {squares, w.ints(axes)});
  else
    mean = w.add("ReduceMean", {squares}, {ints_attribute("axes", axes)});
  const std::string deviation =
      w.add("Sqrt", {w.add("Add", {mean, w.scalar(w.attr("eps").as_double(), dtype)})});
  const std::string out = w.add("Div", {x, deviation});
  if (!w.operand("weight")) return w.result(0, out);
  w.emit("Mul", {out, w.in("weight")});
}

void batch_norm(Writer& w) {
  const bool global = w.has_attr("use_global_stats") && w.attr("use_global_stats").as_bool();
  if (w.attr("training").as_bool() && !global) return write_batch_statistics(w);
  const std::string mean = w.in("running_mean"), variance = w.in("running_var");
  const Shape& channels = w.type("running_mean").shape;
  const DType dtype = w.type("running_mean").dtype;
  const auto vector = [&](const char* operand, double value) {
    return w.operand(operand) ? w.in(operand)
                              : w.add("Expand", {w.scalar(value, dtype), w.shape(channels)});
  };
  const std::string weight = vector("weight", 1), bias = vector("bias", 0);
  const DType from = w.type("x").dtype;
  const bool moves = w.attr("data_format").as_string().ends_with('C') && rank_of(w, "x") > 2;
  std::string x = w.cast(w.in("x"), from, dtype);
  if (moves) x = w.transpose(x, to_channels_first(rank_of(w, "x")));
  std::string out = w.add("BatchNormalization", {x, weight, bias, mean, variance},
                          {float_attribute("epsilon", w.attr("epsilon").as_double())});
  if (moves) out = w.transpose(out, to_channels_last(rank_of(w, "x")));
  w.result(0, w.cast(out, dtype, w.result_type().dtype));
  w.result(1, mean);
  w.result(2, variance);
  if (!w.is_used(3) && !w.is_used(4)) return;
  // Gradients of a frozen layer read its running statistics.
  const DType wide = w.result_type(3).dtype;
  const std::string sum =
      w.add("Add", {w.cast(variance, dtype, wide), w.scalar(w.attr("epsilon").as_double(), wide)});
  w.result(3, w.cast(mean, dtype, wide));
  w.result(4, w.add("Reciprocal", {w.add("Sqrt", {sum})}));
}

// --- attention ---

/// bool[queries, keys], true where the key is at or before the query.
std::string causal_mask(Writer& w, const Dim& queries, const Dim& keys) {
  if (w.opset() < 14) {
    const auto positions = [&](const Dim& count, const Shape& shape) {
      const std::string end = w.reshape(w.dim(count), Shape{});
      const std::string range =
          w.add("Range", {w.scalar(0, DType::kI64), end, w.scalar(1, DType::kI64)});
      return w.reshape(range, shape);
    };
    return w.add("GreaterOrEqual",
                 {positions(queries, {queries, Dim(1)}), positions(keys, {Dim(1), keys})});
  }
  const std::string all =
      w.add("Expand", {w.constant(Array::scalar(true)), w.shape({queries, keys})});
  return w.add(
      "Cast",
      {w.add("Trilu", {w.cast(all, DType::kBool, DType::kF32)}, {int_attribute("upper", 0)})},
      {int_attribute("to", formats::onnx::number_of_dtype(DType::kBool))});
}

/// [batch, sequence, heads, dim] as softmax(q kᵀ scale + mask) v over heads.
void attention(Writer& w) {
  if (w.is_used(1)) w.reject("its statistics are read");
  const DType dtype = w.result_type().dtype;
  const std::string q = w.transpose(w.in("query"), {0, 2, 1, 3});
  const std::string k = w.transpose(w.in("key"), {0, 2, 3, 1});
  const std::string v = w.transpose(w.in("value"), {0, 2, 1, 3});
  const std::string factor = w.scalar(w.attr("scale").as_double(), dtype);
  std::string scores = w.add("MatMul", {w.add("Mul", {q, factor}), k});
  const std::string excluded = w.scalar(-std::numeric_limits<double>::infinity(), dtype);
  if (const ir::Value* mask = w.operand("mask")) {
    if (is_bool(mask->type.dtype))
      scores = w.add("Where", {w.in("mask"), scores, excluded});
    else
      scores = w.add("Add", {scores, w.cast(w.in("mask"), mask->type.dtype, dtype)});
  }
  if (w.attr("is_causal").as_bool()) {
    const Dim &queries = w.type("query").shape[1], &keys = w.type("key").shape[1];
    scores = w.add("Where", {causal_mask(w, queries, keys), scores, excluded});
  }
  const std::string weights = w.add("Softmax", {scores}, {int_attribute("axis", -1)});
  w.result(0, w.transpose(w.add("MatMul", {weights, v}), {0, 2, 1, 3}));
}

// --- the loss of classifiers ---

void softmax_cross_entropy(Writer& w) {
  const size_t rank = rank_of(w, "logits");
  int64_t axis = w.attr("axis").as_int();
  if (axis < 0) axis += static_cast<int64_t>(rank);
  const DType dtype = w.result_type().dtype;
  const std::string logits = w.cast(w.in("logits"), w.type("logits").dtype, dtype);
  std::string label = w.cast(w.in("label"), w.type("label").dtype, DType::kI64);
  const std::string axes = w.ints({axis});
  if (rank_of(w, "label") != rank) label = w.add("Unsqueeze", {label, axes});
  const std::string ignored =
      w.add("Equal", {label, w.constant(Array::scalar(w.attr("ignore_index").as_int()))});
  const std::string valid = w.add("Where", {ignored, w.scalar(0, DType::kI64), label});
  const std::string scores = w.add("LogSoftmax", {logits}, {int_attribute("axis", axis)});
  const std::string picked =
      w.add("GatherElements", {scores, valid}, {int_attribute("axis", axis)});
  const std::string loss = w.add("Where", {ignored, w.scalar(0, dtype), w.add("Neg", {picked})});
  const bool keeps = w.result_type().shape.size() == rank;
  w.result(0, keeps ? loss : w.add("Squeeze", {loss, axes}));
  if (w.is_used(1)) w.result(1, w.reduce("ReduceLogSumExp", logits, {axis}, keeps));
}

void det(Writer& w) { w.emit("Det", {w.in("x")}); }
void log_abs_det(Writer& w) {
  const std::string value = w.add("Det", {w.in("x")});
  w.result(0, w.add("Sign", {value}));
  w.result(1, w.add("Log", {w.add("Abs", {value})}));
}

}  // namespace

std::vector<ExportRuleEntry> nn_export_rules() {
  return {{"matmul", matmul},
          {"linear", linear},
          {"conv2d", conv},
          {"conv3d", conv},
          {"conv2d_input_grad", conv_transpose},
          {"max_pool2d", max_pool2d},
          {"avg_pool2d", avg_pool2d},
          {"layer_norm", layer_norm},
          {"rms_norm", rms_norm},
          {"batch_norm", batch_norm},
          {"attention", attention},
          {"softmax_cross_entropy", softmax_cross_entropy},
          {"det", det},
          {"log_abs_det", log_abs_det}};
}

}  // namespace paddle::onnx
