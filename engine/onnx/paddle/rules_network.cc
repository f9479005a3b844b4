// Convolutions, pooling, normalization, resizing and recurrent layers.

#include <algorithm>
#include <array>

#include "onnx/paddle/program_importer.h"

namespace paddle::onnx {
namespace {

using Importer = ProgramImporter;

void require_channels_first(Importer& p) {
  const std::string format = p.text({"data_format", "data_layout"}, "NCHW");
  if (format != "NCHW" && format != "NCDHW" && format != "NCL" && format != "AnyLayout")
    p.reject("the layout " + format + " is not supported");
}

/// Paddle's padding of spatial axes, [h, w] or [top, bottom, left, right], as ONNX has it.
void add_padding(Importer& p, ImportAttributes& attributes, size_t spatial) {
  const std::string algorithm = p.text({"padding_algorithm"}, "EXPLICIT");
  if (algorithm == "SAME") return attributes.push_back(string_attribute("auto_pad", "SAME_UPPER"));
  if (algorithm == "VALID") return;
  const auto given = p.ints({"paddings"});
  std::vector<int64_t> begin, end;
  if (given.size() == spatial) {
    begin = end = given;
  } else if (given.size() == 2 * spatial) {
    for (size_t i = 0; i < spatial; ++i) {
      begin.push_back(given[2 * i]);
      end.push_back(given[2 * i + 1]);
    }
  } else {
    p.reject("expected a padding for each spatial axis");
  }
  begin.insert(begin.end(), end.begin(), end.end());
  attributes.push_back(ints_attribute("pads", begin));
}

ImportAttributes convolution_attributes(Importer& p, size_t spatial) {
  require_channels_first(p);
  std::vector<int64_t> dilations = p.ints({"dilations"});
  // PaddlePaddle sets them to 1 with this padding, whatever the attribute says.
  if (p.text({"padding_algorithm"}, "EXPLICIT") == "SAME") dilations.assign(spatial, 1);
  return {ints_attribute("strides", p.ints({"strides"})), ints_attribute("dilations", dilations),
          int_attribute("group", p.integer({"groups"}, 1))};
}

size_t spatial_axes(Importer& p, const char* slot) {
  const int64_t rank = p.rank(slot, 0);
  if (rank < 3 || rank > 5) p.reject("expected an operand with 1 to 3 spatial axes");
  return static_cast<size_t>(rank - 2);
}

void convolution(Importer& p) {
  const size_t spatial = spatial_axes(p, "Input");
  auto attributes = convolution_attributes(p, spatial);
  add_padding(p, attributes, spatial);
  p.result("Output", 0,
           p.add("Conv", {p.in("Input", 0), p.in("Filter", 1)}, std::move(attributes)));
}

/// PaddlePaddle computes the padding SAME of a transposed convolution as that of a convolution of
/// the same input; ONNX's SAME_UPPER is another one.
void add_transposed_padding(Importer& p, ImportAttributes& attributes, size_t spatial) {
  if (p.text({"padding_algorithm"}, "EXPLICIT") != "SAME")
    return add_padding(p, attributes, spatial);
  const Dims &input = p.type("Input", 0).shape, &filter = p.type("Filter", 1).shape;
  const std::vector<int64_t> strides = p.ints({"strides"});
  if (filter.size() != spatial + 2 || strides.size() != spatial)
    p.reject("expected a stride for each spatial axis");
  std::vector<int64_t> begin, end;
  for (size_t i = 0; i < spatial; ++i) {
    const int64_t size = input[i + 2], stride = strides[i], kernel = filter[i + 2];
    if (stride < 1 || kernel < 0) p.reject("a stride or the size of its filter is impossible");
    if (size < 0 && stride > 1) p.reject("the padding SAME needs sizes that are known");
    const int64_t covered =
        stride == 1 ? 0 : (size + stride - 1) / stride * stride - stride - size + 1;
    const int64_t both = std::max<int64_t>(covered + kernel - 1, 0);
    begin.push_back(both / 2);
    end.push_back(both - both / 2);
  }
  begin.insert(begin.end(), end.begin(), end.end());
  attributes.push_back(ints_attribute("pads", begin));
}

/// The cells that an output size adds after each axis. ONNX's output_shape would move the padding
/// instead.
std::vector<int64_t> extra_cells(Importer& p, const ImportAttributes& attributes,
                                 const std::vector<int64_t>& wanted) {
  const Dims &input = p.type("Input", 0).shape, &filter = p.type("Filter", 1).shape;
  const auto values = [&](std::string_view name) {
    for (const auto& each : attributes)
      if (each.name == name) return each.ints;
    return std::vector<int64_t>();
  };
  const auto strides = values("strides"), dilations = values("dilations"), pads = values("pads");
  const size_t spatial = wanted.size();
  if (input.size() != spatial + 2 || filter.size() != spatial + 2 || strides.size() != spatial ||
      dilations.size() != spatial)
    p.reject("expected an output size for each spatial axis");
  std::vector<int64_t> out;
  for (size_t i = 0; i < spatial; ++i) {
    if (input[i + 2] < 0) p.reject("an output size needs an input of known size");
    const int64_t padded = pads.empty() ? 0 : pads[i] + pads[spatial + i];
    const int64_t least =
        (input[i + 2] - 1) * strides[i] - padded + dilations[i] * (filter[i + 2] - 1) + 1;
    if (wanted[i] < least || wanted[i] >= least + strides[i])
      p.reject(str("an output size is ", wanted[i], ", expected ", least, " to ",
                   least + strides[i] - 1));
    out.push_back(wanted[i] - least);
  }
  return out;
}

void transposed_convolution(Importer& p) {
  const size_t spatial = spatial_axes(p, "Input");
  auto attributes = convolution_attributes(p, spatial);
  add_transposed_padding(p, attributes, spatial);
  const auto size = p.known_ints("OutputSizeTensor", 2, {"output_size"});
  if (!size) p.reject("its output size is only known when the program runs");
  if (const auto padding = p.ints({"output_padding"}); !padding.empty())
    attributes.push_back(ints_attribute("output_padding", padding));
  else if (!size->empty())
    attributes.push_back(ints_attribute("output_padding", extra_cells(p, attributes, *size)));
  p.result("Output", 0,
           p.add("ConvTranspose", {p.in("Input", 0), p.in("Filter", 1)}, std::move(attributes)));
}

/// Adaptive pooling whose bins differ in size: bin i of n goes from floor(i * size / n) to
/// ceil((i + 1) * size / n). Axis by axis, as the extremum and the mean of a box are.
std::string unequal_pool(Importer& p, const std::vector<int64_t>& bins, bool is_max) {
  constexpr int64_t kMaxBins = 256;
  std::string x = p.in("X", 0);
  for (size_t i = 0; i < bins.size(); ++i) {
    const auto axis = static_cast<int64_t>(i) + 2;
    const int64_t size = p.type("X", 0).shape[i + 2], count = bins[i];
    if (count > kMaxBins) p.reject("adaptive pooling to more than 256 bins of different sizes");
    ImportNames parts;
    for (int64_t bin = 0; bin < count; ++bin) {
      const std::string part =
          p.add("Slice", {x, p.constant_ints({bin * size / count}),
                          p.constant_ints({((bin + 1) * size + count - 1) / count}),
                          p.constant_ints({axis})});
      ImportNames inputs = {part};
      ImportAttributes attributes;
      if (p.opset() >= 18)
        inputs.push_back(p.constant_ints({axis}));
      else
        attributes.push_back(ints_attribute("axes", {axis}));
      parts.push_back(p.add(is_max ? "ReduceMax" : "ReduceMean", inputs, attributes));
    }
    x = parts.size() == 1 ? parts[0] : p.add("Concat", parts, {int_attribute("axis", axis)});
  }
  return x;
}

void pool(Importer& p) {
  require_channels_first(p);
  const bool is_max = p.text({"pooling_type"}, "max") == "max";
  const size_t spatial = spatial_axes(p, "X");
  const auto known = p.known_ints("ksize", 1, {"ksize", "kernel_size"});
  if (!known) p.reject("its window is only known when the program runs");
  std::vector<int64_t> window = *known;
  if (window.size() != spatial) p.reject("expected a window size for each spatial axis");
  const bool adaptive = p.flag({"adaptive"}, false);
  const bool to_one = std::all_of(window.begin(), window.end(), [](int64_t n) { return n == 1; });
  if (p.flag({"global_pooling"}, false) || (adaptive && to_one))
    return p.result("Out", 0,
                    p.add(is_max ? "GlobalMaxPool" : "GlobalAveragePool", {p.in("X", 0)}));
  ImportAttributes attributes;
  if (adaptive) {
    const Dims& shape = p.type("X", 0).shape;
    bool divides = true;
    for (size_t i = 0; i < spatial; ++i) {
      const int64_t size = shape[i + 2];
      if (size < 0 || window[i] < 1) p.reject("adaptive pooling needs sizes that are known");
      divides = divides && size % window[i] == 0;
    }
    if (!divides) return p.result("Out", 0, unequal_pool(p, window, is_max));
    for (size_t i = 0; i < spatial; ++i) window[i] = shape[i + 2] / window[i];
    attributes.push_back(ints_attribute("strides", window));
  } else {
    attributes.push_back(ints_attribute("strides", p.ints({"strides"})));
    attributes.push_back(int_attribute("ceil_mode", p.flag({"ceil_mode"}, false)));
    add_padding(p, attributes, spatial);
    if (!is_max)
      attributes.push_back(int_attribute("count_include_pad", !p.flag({"exclusive"}, true)));
  }
  attributes.push_back(ints_attribute("kernel_shape", window));
  p.result("Out", 0, p.add(is_max ? "MaxPool" : "AveragePool", {p.in("X", 0)}, attributes));
}

/// An optional scale or bias: the operand, or a constant in the shape of another value.
std::string or_filled(Importer& p, const std::string& given, double value,
                      const formats::PaddleVariable& type, const std::string& like) {
  if (!given.empty()) return given;
  const std::string number = p.scalar(value, type.dtype.value_or(DType::kF32));
  const bool known = std::ranges::all_of(type.shape, [](int64_t n) { return n >= 0; });
  return p.add("Expand", {number, known && !type.shape.empty() ? p.constant_ints(type.shape)
                                                               : p.add("Shape", {like})});
}

void batch_norm(Importer& p) {
  require_channels_first(p);
  if (!p.flag({"is_test"}, false) && !p.flag({"use_global_stats"}, false))
    p.reject("normalizes by the statistics of its batch; save the program for inference");
  const std::string mean = p.in("Mean", 1);
  p.result(
      "Y", 0,
      p.add("BatchNormalization",
            {p.in("X", 0), or_filled(p, p.in("Scale", 3), 1, p.type("Mean", 1), mean),
             or_filled(p, p.in("Bias", 4), 0, p.type("Mean", 1), mean), mean, p.in("Variance", 2)},
            {float_attribute("epsilon", p.real({"epsilon"}, 1e-5))}));
}

/// Values of the normalized axes, [prod], in their shape.
std::string over_axes(Importer& p, const std::string& value, const Dims& sizes) {
  return sizes.size() == 1 ? value : p.add("Reshape", {value, p.constant_ints(sizes)});
}

void layer_norm(Importer& p) {
  const Dims& shape = p.type("X", 0).shape;
  const int64_t axis = p.integer({"begin_norm_axis"}, 1);
  if (axis < 0 || axis >= static_cast<int64_t>(shape.size())) p.reject("its axis is out of range");
  const Dims sizes(shape.begin() + axis, shape.end());
  if (std::any_of(sizes.begin(), sizes.end(), [](int64_t n) { return n < 0; }))
    p.reject("the size of a normalized axis is not known");
  std::string scale = p.in("Scale", 1);
  const std::string bias = p.in("Bias", 2);
  scale = scale.empty() ? p.add("Expand", {p.scalar(1, p.dtype("X", 0)), p.constant_ints(sizes)})
                        : over_axes(p, scale, sizes);
  p.result(
      "Y", 0,
      p.add("LayerNormalization",
            {p.in("X", 0), scale, bias.empty() ? "" : over_axes(p, bias, sizes)},
            {int_attribute("axis", axis), float_attribute("epsilon", p.real({"epsilon"}, 1e-5))}));
}

/// One value for each channel, for an operand of this rank.
std::string by_channel(Importer& p, const std::string& value, int64_t rank) {
  std::vector<int64_t> axes;
  for (int64_t i = 1; i < rank - 1; ++i) axes.push_back(i);
  return axes.empty() ? value : p.add("Unsqueeze", {value, p.constant_ints(axes)});
}

void group_norm(Importer& p) {
  require_channels_first(p);
  const int64_t groups = p.integer({"groups"}, 1), rank = p.rank("X", 0);
  const DType dtype = p.dtype("X", 0);
  const std::string x = p.in("X", 0), count = p.constant_ints({groups});
  const std::string grouped = p.add("Reshape", {x, p.constant_ints({0, groups, -1})});
  std::string out = p.add("InstanceNormalization",
                          {grouped, p.add("Expand", {p.scalar(1, dtype), count}),
                           p.add("Expand", {p.scalar(0, dtype), count})},
                          {float_attribute("epsilon", p.real({"epsilon"}, 1e-5))});
  out = p.add("Reshape", {out, p.add("Shape", {x})});
  if (p.has("Scale", 1)) out = p.add("Mul", {out, by_channel(p, p.in("Scale", 1), rank)});
  if (p.has("Bias", 2)) out = p.add("Add", {out, by_channel(p, p.in("Bias", 2), rank)});
  p.result("Y", 0, out);
}

void instance_norm(Importer& p) {
  const formats::PaddleVariable& x = p.type("X", 0);
  if (x.shape.size() < 2 || (x.shape[1] < 0 && !(p.has("Scale", 1) && p.has("Bias", 2))))
    p.reject("the number of channels is not known");
  const formats::PaddleVariable channels{.dtype = x.dtype, .shape = {x.shape[1]}};
  p.result("Y", 0,
           p.add("InstanceNormalization",
                 {p.in("X", 0), or_filled(p, p.in("Scale", 1), 1, channels, ""),
                  or_filled(p, p.in("Bias", 2), 0, channels, "")},
                 {float_attribute("epsilon", p.real({"epsilon"}, 1e-5))}));
}

void dropout(Importer& p) {
  if (!p.flag({"is_test"}, false)) p.reject("draws random numbers; save the program for inference");
  const std::string mode = p.text({"dropout_implementation", "mode"}, "downgrade_in_infer");
  const double rate = p.known_number("", 2, {"dropout_prob", "p"}, 0.5);
  const std::string x = p.in("X", 0);
  p.result("Out", 0,
           mode == "upscale_in_train" ? p.add("Identity", {x})
                                      : p.add("Mul", {x, p.scalar(1 - rate, p.dtype("X", 0))}));
}

void prelu(Importer& p) {
  require_channels_first(p);
  const std::string alpha = p.in("Alpha", 1);
  p.result("Out", 0,
           p.add("PRelu", {p.in("X", 0), p.text({"mode"}, "all") == "channel"
                                             ? by_channel(p, alpha, p.rank("X", 0))
                                             : alpha}));
}

/// The element that cubic resizing to one makes of an axis: PaddlePaddle reads at -0.5, between
/// index 0 and its repetitions on the left.
std::string cubic_first(Importer& p, const std::string& x, size_t axis) {
  constexpr double kFirst = 1.09375, kSecond = -0.09375;
  const Dims& shape = p.type("X", 0).shape;
  if (shape[axis] < 0) p.reject("the size of an axis that is resized to one is not known");
  if (shape[axis] == 1) return x;
  const std::string at = p.constant_ints({static_cast<int64_t>(axis)});
  const auto element = [&](int64_t i, double weight) {
    const std::string one = p.add("Slice", {x, p.constant_ints({i}), p.constant_ints({i + 1}), at});
    return p.add("Mul", {one, p.scalar(weight, p.dtype("X", 0))});
  };
  return p.add("Add", {element(0, kFirst), element(1, kSecond)});
}

void resize(Importer& p, const std::string& mode) {
  require_channels_first(p);
  const size_t spatial = spatial_axes(p, "X");
  const bool corners = p.flag({"align_corners"}, false);
  const bool shifted = mode == "nearest" || (mode == "linear" && p.integer({"align_mode"}, 1) == 1);
  ImportAttributes attributes = {
      string_attribute("mode", mode),
      string_attribute("coordinate_transformation_mode", corners   ? "align_corners"
                                                         : shifted ? "asymmetric"
                                                                   // 0 where one element is made
                                                                   : "pytorch_half_pixel")};
  if (mode == "nearest")
    attributes.push_back(string_attribute("nearest_mode", corners ? "round_prefer_ceil" : "floor"));
  if (mode == "cubic") attributes.push_back(float_attribute("cubic_coeff_a", -0.75));
  std::string x = p.in("X", 0);
  const auto with_sizes = [&](const std::string& sizes) {
    const std::string first =
        p.add("Shape", {x}, {int_attribute("start", 0), int_attribute("end", 2)});
    const std::string all = p.add("Concat", {first, sizes}, {int_attribute("axis", 0)});
    return p.add("Resize", {x, "", "", all}, attributes);
  };
  const bool computed = !p.in_list("SizeTensor", 2).empty() || p.has("OutSize", 1);
  std::vector<int64_t> sizes;
  for (const char* key : {"out_d", "out_h", "out_w"})
    if (const int64_t size = p.integer({key}, -1); size > 0) sizes.push_back(size);
  if (computed) {
    const bool list = !p.in_list("SizeTensor", 2).empty();
    return p.result("Out", 0,
                    with_sizes(list ? p.int_values("", "SizeTensor", 2, {})
                                    : p.int_values("OutSize", "", 1, {})));
  }
  if (sizes.size() == spatial) {
    if (mode == "cubic" && !corners)
      for (size_t i = 0; i < spatial; ++i)
        if (sizes[i] == 1) x = cubic_first(p, x, i + 2);
    return p.result("Out", 0, with_sizes(p.constant_ints(sizes)));
  }
  const auto found = p.operation().attributes.find("scale");
  if (p.has("Scale", 3) || found == p.operation().attributes.end() || found->second.reals.empty())
    p.reject("its scale is only known when the program runs");
  std::vector<float> scales(2, 1);
  for (size_t i = 0; i < spatial; ++i)
    scales.push_back(
        static_cast<float>(found->second.reals[std::min(i, found->second.reals.size() - 1)]));
  const std::string values =
      p.constant(Array::from<float>(scales, {static_cast<int64_t>(scales.size())}));
  p.result("Out", 0, p.add("Resize", {x, "", values}, attributes));
}

ImportRule resize_by(const char* mode) {
  return [mode](Importer& p) { resize(p, mode); };
}

/// Paddings are pairs, from the last axis to the first spatial one.
void pad_spatial(Importer& p) {
  require_channels_first(p);
  const size_t spatial = spatial_axes(p, "X");
  const auto given = p.known_ints("Paddings", 1, {"paddings"});
  if (!given) p.reject("its paddings are only known when the program runs");
  if (given->size() != 2 * spatial) p.reject("expected two paddings for each spatial axis");
  const std::string mode = p.text({"mode"}, "constant");
  if (mode == "circular") p.reject("circular padding is not supported");
  std::vector<int64_t> pads(2 * (spatial + 2), 0);
  for (size_t i = 0; i < spatial; ++i) {
    const size_t axis = spatial + 1 - i;
    pads[axis] = (*given)[2 * i];
    pads[spatial + 2 + axis] = (*given)[2 * i + 1];
  }
  p.result("Out", 0,
           p.add("Pad",
                 {p.in("X", 0), p.constant_ints(pads),
                  p.scalar(p.real({"value", "pad_value"}, 0), p.dtype("X", 0))},
                 {string_attribute("mode", mode == "replicate" ? "edge" : mode)}));
}

/// Paddings are pairs for all axes.
void pad(Importer& p) {
  const auto given = p.ints({"paddings"});
  const auto rank = static_cast<size_t>(p.rank("X", 0));
  if (given.size() != 2 * rank) p.reject("expected two paddings for each axis");
  std::vector<int64_t> pads(2 * rank);
  for (size_t i = 0; i < rank; ++i) {
    pads[i] = given[2 * i];
    pads[rank + i] = given[2 * i + 1];
  }
  const double value = p.known_number("", 1, {"pad_value"}, 0);
  p.result("Out", 0,
           p.add("Pad", {p.in("X", 0), p.constant_ints(pads), p.scalar(value, p.dtype("X", 0))}));
}

void pixel_shuffle(Importer& p) {
  require_channels_first(p);
  p.result("Out", 0,
           p.add("DepthToSpace", {p.in("X", 0)},
                 {int_attribute("blocksize", p.integer({"upscale_factor"}, 1)),
                  string_attribute("mode", "CRD")}));
}

/// Blocks of rows in the order of ONNX.
std::string reordered(Importer& p, const std::string& value, const std::vector<int64_t>& order,
                      int64_t hidden) {
  ImportNames blocks;
  for (const int64_t i : order)
    blocks.push_back(p.add("Slice", {value, p.constant_ints({i * hidden}),
                                     p.constant_ints({(i + 1) * hidden}), p.constant_ints({0})}));
  return blocks.size() == 1 ? value : p.add("Concat", blocks, {int_attribute("axis", 0)});
}

/// Layers of LSTM, GRU or RNN, time first. Weights are w_ih and w_hh of each layer and direction,
/// then b_ih and b_hh in the same way.
void rnn(Importer& p) {
  const std::string mode = p.text({"mode"}, "LSTM");
  const bool lstm = mode == "LSTM", gru = mode == "GRU";
  const int64_t hidden = p.integer({"hidden_size"}, 0), layers = p.integer({"num_layers"}, 1);
  const int64_t sides = p.flag({"is_bidirec"}, false) ? 2 : 1;
  if (p.has("SequenceLength", 3)) p.reject("lengths of sequences are not supported");
  if (!p.flag({"is_test"}, false)) p.reject("draws random numbers; save the program for inference");
  const ImportNames weights = p.in_list("WeightList", 2), states = p.in_list("PreState", 1);
  if (hidden < 1 || layers < 1 || layers > 1024 || states.size() != (lstm ? 2U : 1U) ||
      weights.size() != static_cast<size_t>(4 * layers * sides))
    p.reject("its weights or states have another form");
  const std::vector<int64_t> order = lstm  ? std::vector<int64_t>{0, 3, 1, 2}
                                     : gru ? std::vector<int64_t>{1, 0, 2}
                                           : std::vector<int64_t>{0};
  const auto first_bias = static_cast<size_t>(2 * layers * sides);
  const auto join = [&](const ImportNames& parts) {
    return parts.size() == 1 ? parts[0] : p.add("Concat", parts, {int_attribute("axis", 0)});
  };
  const auto part = [&](const std::string& state, int64_t layer) {
    return p.add("Slice", {state, p.constant_ints({layer * sides}),
                           p.constant_ints({(layer + 1) * sides}), p.constant_ints({0})});
  };
  std::string x = p.in("Input", 0);
  ImportNames last_h, last_c;
  for (int64_t layer = 0; layer < layers; ++layer) {
    ImportNames inner, recurrent, biases;
    for (int64_t side = 0; side < sides; ++side) {
      const auto at = static_cast<size_t>(2 * (layer * sides + side));
      const auto in_order = [&](size_t i) { return reordered(p, weights.at(i), order, hidden); };
      const auto one = [&](const std::string& value) {
        return p.add("Unsqueeze", {value, p.constant_ints({0})});
      };
      inner.push_back(one(in_order(at)));
      recurrent.push_back(one(in_order(at + 1)));
      biases.push_back(
          one(p.add("Concat", {in_order(first_bias + at), in_order(first_bias + at + 1)},
                    {int_attribute("axis", 0)})));
    }
    ImportNames inputs = {x,  join(inner),           join(recurrent), join(biases),
                          "", part(states[0], layer)};
    if (lstm) inputs.push_back(part(states[1], layer));
    ImportAttributes attributes = {
        int_attribute("hidden_size", hidden),
        string_attribute("direction", sides == 2 ? "bidirectional" : "forward")};
    if (gru) attributes.push_back(int_attribute("linear_before_reset", 1));
    if (!lstm && !gru) {
      formats::onnx::Attribute activations;
      activations.name = "activations";
      activations.kind = formats::onnx::AttributeKind::kStrings;
      activations.strings.assign(static_cast<size_t>(sides), mode == "RNN_RELU" ? "Relu" : "Tanh");
      attributes.push_back(activations);
    }
    const ImportNames out = p.add_several(lstm  ? "LSTM"
                                          : gru ? "GRU"
                                                : "RNN",
                                          inputs, lstm ? 3 : 2, std::move(attributes));
    // [time, sides, batch, hidden] → [time, batch, sides * hidden]
    x = p.add("Transpose", {out[0]}, {ints_attribute("perm", {0, 2, 1, 3})});
    x = p.add("Reshape", {x, p.constant_ints({0, 0, sides * hidden})});
    last_h.push_back(out[1]);
    if (lstm) last_c.push_back(out[2]);
  }
  p.result("Out", 0, x);
  ImportNames last = {join(last_h)};
  if (lstm) last.push_back(join(last_c));
  p.result_list("State", 2, last);
}

}  // namespace

std::vector<ImportRuleEntry> paddle_network_rules() {
  return {
      {{"conv2d", "depthwise_conv2d", "conv3d"}, convolution},
      {{"conv2d_transpose", "depthwise_conv2d_transpose", "conv3d_transpose"},
       transposed_convolution},
      {{"pool2d", "pool3d"}, pool},
      {{"batch_norm", "batch_norm_"}, batch_norm},
      {{"layer_norm"}, layer_norm},
      {{"group_norm"}, group_norm},
      {{"instance_norm"}, instance_norm},
      {{"dropout"}, dropout},
      {{"prelu"}, prelu},
      {{"nearest_interp_v2", "nearest_interp"}, resize_by("nearest")},
      {{"bilinear_interp_v2", "bilinear_interp", "linear_interp_v2", "linear_interp",
        "trilinear_interp_v2", "trilinear_interp"},
       resize_by("linear")},
      {{"bicubic_interp_v2", "bicubic_interp"}, resize_by("cubic")},
      {{"pad3d"}, pad_spatial},
      {{"pad"}, pad},
      {{"pixel_shuffle"}, pixel_shuffle},
      {{"rnn"}, rnn},
  };
}

}  // namespace paddle::onnx
