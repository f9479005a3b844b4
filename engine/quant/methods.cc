#include "quant/methods.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <unordered_map>

#include "quant/quantize.h"
#include "quant/rounding.h"

namespace paddle::quant {
namespace {

/// The operations that read each value at the top level; values that are results of the function,
/// or that regions read, have no entry.
std::unordered_map<const ir::Value*, std::vector<ir::Operation*>> readers_of(
    const ir::Function& f) {
  std::unordered_map<const ir::Value*, std::vector<ir::Operation*>> out;
  std::vector<const ir::Value*> excluded(f.body.results.begin(), f.body.results.end());
  for (const auto& operation : f.body.operations) {
    for (const ir::Value* value : operation->operands)
      if (value) out[value].push_back(operation.get());
    if (!operation->regions.empty())
      ir::for_each_read(*operation, [&](const ir::Value* value) { excluded.push_back(value); });
  }
  for (const ir::Value* value : excluded) out.erase(value);
  return out;
}

std::map<const ir::Operation*, size_t> layer_numbers(const Quantizable& model) {
  std::map<const ir::Operation*, size_t> out;
  const auto operations = model.operations();
  for (size_t i = 0; i < operations.size(); ++i) out[operations[i]] = i;
  return out;
}

/// Whether a layer multiplies a matrix [in, out].
bool is_product(const Layer& layer) {
  return layer.has_weight && !layer.transposed && (layer.op == "linear" || layer.op == "matmul");
}

/// A norm with constant weights whose result only layers read.
struct ScalableNorm {
  ir::Operation* norm;
  std::vector<size_t> layers;
  int64_t features;
};

std::vector<ScalableNorm> scalable_norms(const Quantizable& model) {
  const auto readers = readers_of(model.function());
  const auto numbers = layer_numbers(model);
  std::vector<ScalableNorm> out;
  for (const auto& operation : model.function().body.operations) {
    const std::string_view name = operation->op->name();
    if (name != "layer_norm" && name != "rms_norm") continue;
    const ir::Value* weight = operation->operands.at(1);
    if (!weight || !weight->constant || weight->constant->ndim() != 1) continue;
    const auto found = readers.find(operation->results[0]);
    if (found == readers.end()) continue;
    ScalableNorm norm{operation.get(), {}, weight->constant->size()};
    for (ir::Operation* reader : found->second) {
      const auto number = numbers.find(reader);
      if (number == numbers.end() || reader->operands[0] != operation->results[0] ||
          !is_product(model.layers()[number->second]) ||
          !model.layers()[number->second].quantized ||
          model.weight(number->second).shape[0] != norm.features) {
        norm.layers.clear();
        break;
      }
      norm.layers.push_back(number->second);
    }
    if (!norm.layers.empty()) out.push_back(norm);
  }
  return out;
}

Array divided(const Array& values, const std::vector<double>& scales) {
  const Array from = values.contiguous();
  Array out = Array::empty(DType::kF32, from.shape);
  for (int64_t i = 0; i < from.size(); ++i)
    out.data<float>()[i] =
        static_cast<float>(from.data<float>()[i] / scales[static_cast<size_t>(i)]);
  return out;
}

/// Divides the result of a norm by scales, and multiplies the weights after it.
void apply_scales(Quantizable& model, const ScalableNorm& norm, const std::vector<double>& scales) {
  const size_t last = norm.norm->op->name() == "layer_norm" ? 2 : 1;
  for (size_t operand = 1; operand <= last; ++operand)
    if (const ir::Value* value = norm.norm->operands.at(operand))
      model.set_constant(*norm.norm, operand, divided(*value->constant, scales));
  for (const size_t layer : norm.layers) {
    WeightRows rows = weight_rows(model.weight(layer), ChannelAxis::kLast);
    for (int64_t c = 0; c < rows.channels; ++c)
      for (int64_t f = 0; f < rows.features; ++f)
        rows.row(c)[f] = static_cast<float>(rows.row(c)[f] * scales[static_cast<size_t>(f)]);
    model.set_constant(*model.operations()[layer], 1,
                       weight_array(rows, model.weight(layer).shape, ChannelAxis::kLast));
  }
}

bool can_divide_bias(const ScalableNorm& norm) {
  if (norm.norm->op->name() != "layer_norm") return true;
  const ir::Value* bias = norm.norm->operands.at(2);
  return !bias || (bias->constant && bias->constant->size() == norm.features);
}

/// A layer as channels that equalization scales: the range of each, and multiplying one.
class ChannelSide {
 public:
  /// `outputs`: the output channels of the layer; else its input channels.
  ChannelSide(const Quantizable& model, size_t layer, bool outputs)
      : shape_(model.weight(layer).shape),
        first_(model.layers()[layer].channels_first()),
        outputs_(outputs),
        rows_(weight_rows(model.weight(layer), axis())) {
    // A convolution's features are input channels times its window.
    window_ = first_ ? rows_.features / shape_[1] : 1;
    depthwise_ = first_ && shape_[1] == 1;
  }
  int64_t channels() const {
    if (outputs_ || depthwise_) return rows_.channels;
    return rows_.features / window_;
  }
  double range(int64_t channel) {
    double out = 0;
    each(channel, [&](float& value) { out = std::max(out, std::abs(static_cast<double>(value))); });
    return out;
  }
  void scale(int64_t channel, double factor) {
    each(channel, [&](float& value) { value = static_cast<float>(value * factor); });
  }
  Array weight() const { return weight_array(rows_, shape_, axis()); }

 private:
  template <class Use>
  void each(int64_t channel, const Use& use) {
    if (outputs_ || depthwise_) {
      for (int64_t f = 0; f < rows_.features; ++f) use(rows_.row(channel)[f]);
      return;
    }
    for (int64_t c = 0; c < rows_.channels; ++c)
      for (int64_t w = 0; w < window_; ++w) use(rows_.row(c)[channel * window_ + w]);
  }

  ChannelAxis axis() const { return first_ ? ChannelAxis::kFirst : ChannelAxis::kLast; }

  Dims shape_;
  bool first_, outputs_;
  WeightRows rows_;
  int64_t window_ = 1;
  bool depthwise_ = false;
};

int64_t groups_of(const ir::Operation& operation) {
  const int i = operation.op->attr_index("groups");
  return i < 0 ? 1 : operation.attrs[static_cast<size_t>(i)].as_int();
}

}  // namespace

int64_t equalize(Quantizable& model) {
  const auto readers = readers_of(model.function());
  const auto numbers = layer_numbers(model);
  const auto only_reader = [&](const ir::Operation& operation) -> ir::Operation* {
    const auto found = readers.find(operation.results[0]);
    return found == readers.end() || found->second.size() != 1 ? nullptr : found->second[0];
  };
  const auto usable = [&](size_t layer) {
    const Layer& l = model.layers()[layer];
    return l.quantized && l.has_weight && has_quantized_input(l.op) && l.op != "conv2d_transpose";
  };
  std::vector<std::pair<size_t, size_t>> pairs;
  for (const auto& [operation, layer] : numbers) {
    ir::Operation* next = only_reader(*operation);
    if (next && next->op->name() == "relu") next = only_reader(*next);
    if (!next || !usable(layer)) continue;
    const auto second = numbers.find(next);
    if (second == numbers.end() || !usable(second->second)) continue;
    // The bias is scaled too, and channels of both must be the same ones.
    if (operation->operands.size() > 2 && operation->operands[2] &&
        !operation->operands[2]->constant)
      continue;
    const int64_t groups = groups_of(*next);
    const Array& w = model.weight(second->second);
    if (groups != 1 && !(w.shape[0] == groups && w.shape[1] == 1)) continue;
    if (groups == 1 && model.layers()[second->second].channels_first() && w.shape[1] == 1 &&
        w.shape[0] != 1)
      continue;
    if (ChannelSide(model, layer, true).channels() !=
        ChannelSide(model, second->second, false).channels())
      continue;
    pairs.emplace_back(layer, second->second);
  }
  std::sort(pairs.begin(), pairs.end());
  constexpr int kMaxPasses = 20;
  for (int pass = 0; pass < kMaxPasses; ++pass) {
    double largest = 0;
    for (const auto& [first, second] : pairs) {
      ChannelSide from(model, first, true), to(model, second, false);
      ir::Operation& operation = *model.operations()[first];
      std::vector<double> scales(static_cast<size_t>(from.channels()), 1);
      for (int64_t c = 0; c < from.channels(); ++c) {
        const double a = from.range(c), b = to.range(c);
        if (!(a > 0) || !(b > 0)) continue;
        const double s = std::sqrt(a / b);
        if (!std::isfinite(s) || s < 1e-6 || s > 1e6) continue;
        scales[static_cast<size_t>(c)] = s;
        largest = std::max(largest, std::abs(std::log(s)));
        from.scale(c, 1 / s);
        to.scale(c, s);
      }
      model.set_constant(operation, 1, from.weight());
      model.set_constant(*model.operations()[second], 1, to.weight());
      if (operation.operands.size() > 2 && operation.operands[2])
        model.set_constant(operation, 2, divided(*operation.operands[2]->constant, scales));
    }
    if (largest < 1e-3) break;
  }
  return static_cast<int64_t>(pairs.size());
}

std::vector<size_t> layers_after_norms(const Quantizable& model) {
  std::vector<size_t> out;
  for (const ScalableNorm& norm : scalable_norms(model))
    if (can_divide_bias(norm)) out.insert(out.end(), norm.layers.begin(), norm.layers.end());
  std::sort(out.begin(), out.end());
  return out;
}

int64_t smooth(Quantizable& model, const std::vector<std::vector<float>>& largest, double alpha) {
  int64_t count = 0;
  for (const ScalableNorm& norm : scalable_norms(model)) {
    if (!can_divide_bias(norm)) continue;
    const auto n = static_cast<size_t>(norm.features);
    std::vector<double> weights(n, 0), scales(n, 1);
    for (const size_t layer : norm.layers) {
      const WeightRows rows = weight_rows(model.weight(layer), ChannelAxis::kLast);
      for (int64_t c = 0; c < rows.channels; ++c)
        for (size_t f = 0; f < n; ++f)
          weights[f] = std::max(weights[f], std::abs(static_cast<double>(rows.row(c)[f])));
    }
    const std::vector<float>& x = largest.at(norm.layers[0]);
    if (x.size() != n) continue;
    for (size_t f = 0; f < n; ++f)
      if (x[f] > 0 && weights[f] > 0)
        scales[f] =
            std::clamp(std::pow(static_cast<double>(x[f]), alpha) / std::pow(weights[f], 1 - alpha),
                       1e-4, 1e4);
    apply_scales(model, norm, scales);
    ++count;
  }
  return count;
}

int64_t scale_by_activations(Quantizable& model, const std::vector<Moments>& moments) {
  int64_t count = 0;
  for (const ScalableNorm& norm : scalable_norms(model)) {
    const Moments& m = moments.at(norm.layers[0]);
    if (!can_divide_bias(norm) || m.features != norm.features) continue;
    const auto n = static_cast<size_t>(norm.features);
    std::vector<double> best(n, 1);
    double least = 0;
    constexpr int kSteps = 20;
    for (int step = 0; step <= kSteps; ++step) {
      std::vector<double> scales(n, 1);
      double low = 1e300, high = 0;
      for (size_t f = 0; f < n; ++f) {
        const double size = std::sqrt(std::max(m.square(static_cast<int64_t>(f)), 1e-12));
        scales[f] = std::pow(size, static_cast<double>(step) / kSteps);
        low = std::min(low, scales[f]);
        high = std::max(high, scales[f]);
      }
      for (double& s : scales) s = std::clamp(s / std::sqrt(low * high), 1e-4, 1e4);
      double error = 0;
      for (const size_t layer : norm.layers) {
        const WeightRows rows = weight_rows(model.weight(layer), ChannelAxis::kLast);
        WeightRows scaled = rows;
        for (int64_t c = 0; c < rows.channels; ++c)
          for (size_t f = 0; f < n; ++f)
            scaled.row(c)[f] = static_cast<float>(rows.row(c)[f] * scales[f]);
        const WeightRows q =
            round_to_nearest(scaled, model.layers()[layer].format.weights).dequantized();
        for (int64_t c = 0; c < rows.channels; ++c)
          for (size_t f = 0; f < n; ++f) {
            const double d = q.row(c)[f] / scales[f] - rows.row(c)[f];
            error += d * d * m.square(static_cast<int64_t>(f));
          }
      }
      if (step == 0 || error < least) {
        least = error;
        best = scales;
      }
    }
    apply_scales(model, norm, best);
    ++count;
  }
  return count;
}

bool correct_bias(Quantizable& model, size_t layer, const Moments& moments) {
  ir::Operation& operation = *model.operations().at(layer);
  const Layer& l = model.layers()[layer];
  if (operation.op->operand_index("bias") != 2) return false;
  const ir::Value* given = operation.operands.at(2);
  if (given && !given->constant) return false;
  const WeightRows rows = weight_rows(model.weight(layer), l.channel_axis());
  const WeightRows q = quantized_weight(l, model.weight(layer)).dequantized();
  Array bias = Array::zeros(DType::kF32, {rows.channels});
  if (given) {
    if (given->constant->size() != rows.channels) return false;
    std::copy_n(given->constant->contiguous().data<float>(), rows.channels, bias.data<float>());
  }
  for (int64_t c = 0; c < rows.channels; ++c) {
    double shift = 0;
    for (int64_t f = 0; f < rows.features; ++f)
      shift += (static_cast<double>(q.row(c)[f]) - rows.row(c)[f]) *
               moments.mean[static_cast<size_t>(f)];
    bias.data<float>()[c] -= static_cast<float>(shift);
  }
  model.set_constant(operation, 2, bias);
  return true;
}

}  // namespace paddle::quant
