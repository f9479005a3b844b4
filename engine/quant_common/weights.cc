#include "quant_common/weights.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/parallel.h"
#include "base/text.h"

namespace paddle::quant {
namespace {

struct Affine {
  float scale = 1;
  int32_t zero = 0;
};

/// The scale and zero point with which a range, shrunk to `share`, fits the integers.
Affine affine_of(const WeightFormat& format, double low, double high, double share) {
  Affine out;
  if (format.symmetric) {
    const double largest = std::max(std::abs(low), std::abs(high)) * share;
    if (largest > 0) out.scale = static_cast<float>(largest / format.highest());
  } else {
    low = std::min(low, 0.0) * share;
    high = std::max(high, 0.0) * share;
    const double scale = (high - low) / (format.highest() - format.lowest());
    if (scale > 0) {
      out.scale = static_cast<float>(scale);
      out.zero = static_cast<int32_t>(std::clamp(std::nearbyint(format.lowest() - low / scale),
                                                 static_cast<double>(format.lowest()),
                                                 static_cast<double>(format.highest())));
    }
  }
  // A scale that underflows to 0 would make infinite quotients.
  if (!(out.scale >= std::numeric_limits<float>::min())) out = {1, 0};
  return out;
}

double squared_error(const WeightFormat& format, const Affine& affine, const float* values,
                     int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) {
    const double q =
        std::clamp(std::nearbyint(static_cast<double>(values[i]) / affine.scale) + affine.zero,
                   static_cast<double>(format.lowest()), static_cast<double>(format.highest()));
    const double error = values[i] - (q - affine.zero) * affine.scale;
    sum += error * error;
  }
  return sum;
}

Affine choose(const WeightFormat& format, const float* values, int64_t n) {
  const auto [low, high] = std::minmax_element(values, values + n);
  const Affine full = affine_of(format, *low, *high, 1);
  if (!format.search) return full;
  Affine best = full;
  double least = squared_error(format, full, values, n);
  constexpr int kSteps = 50;
  for (int step = 1; step < kSteps; ++step) {
    const Affine shrunk = affine_of(format, *low, *high, 1 - 0.6 * step / kSteps);
    const double error = squared_error(format, shrunk, values, n);
    if (error < least) {
      least = error;
      best = shrunk;
    }
  }
  return best;
}

}  // namespace

std::string WeightFormat::text() const {
  std::string out = str(symmetric ? "int" : "asymmetric int", bits);
  if (per == Granularity::kGroup) out += str(" in groups of ", group);
  if (per == Granularity::kTensor) out += " with one scale";
  return out;
}

WeightRows weight_rows(const Array& weight, ChannelAxis channels) {
  const Array w = weight.cast(DType::kF32).contiguous();
  WeightRows out;
  out.channels = w.shape.at(axis_of(channels, w.shape.size()));
  out.features = out.channels == 0 ? 0 : w.size() / out.channels;
  out.values.resize(static_cast<size_t>(w.size()));
  const float* const from = w.data<float>();
  for_each_weight(w.shape, channels,
                  [&](int64_t c, int64_t f, int64_t i) { out.row(c)[f] = from[i]; });
  return out;
}

Array weight_array(const WeightRows& rows, const Dims& shape, ChannelAxis channels) {
  Array out = Array::empty(DType::kF32, shape);
  float* const to = out.data<float>();
  for_each_weight(shape, channels,
                  [&](int64_t c, int64_t f, int64_t i) { to[i] = rows.row(c)[f]; });
  return out;
}

int32_t WeightScales::nearest(int64_t channel, int64_t feature, double weight) const {
  const size_t i = at(channel, feature);
  const double q = std::nearbyint(weight / scales[i]) + zeros[i];
  return static_cast<int32_t>(
      std::clamp(q, static_cast<double>(format.lowest()), static_cast<double>(format.highest())));
}

WeightScales choose_scales(const WeightRows& rows, const WeightFormat& format) {
  WeightScales out;
  out.format = format;
  out.channels = rows.channels;
  out.features = rows.features;
  out.group = format.per == Granularity::kGroup ? format.group : rows.features;
  ensure(out.group > 0 && rows.features % out.group == 0,
         "choose_scales: groups do not divide the features");
  const auto count = static_cast<size_t>(out.channels * out.groups());
  out.scales.resize(count);
  out.zeros.resize(count);
  if (format.per == Granularity::kTensor) {
    const Affine all = choose(format, rows.values.data(), static_cast<int64_t>(rows.values.size()));
    std::fill(out.scales.begin(), out.scales.end(), all.scale);
    std::fill(out.zeros.begin(), out.zeros.end(), all.zero);
    return out;
  }
  parallel_for(static_cast<int64_t>(count), 16, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const Affine affine = choose(format, rows.values.data() + i * out.group, out.group);
      out.scales[static_cast<size_t>(i)] = affine.scale;
      out.zeros[static_cast<size_t>(i)] = affine.zero;
    }
  });
  return out;
}

WeightRows QuantizedWeight::dequantized() const {
  WeightRows out{scales.channels, scales.features, std::vector<float>(integers.size())};
  for (int64_t c = 0; c < out.channels; ++c)
    for (int64_t f = 0; f < out.features; ++f)
      out.row(c)[f] = scales.value(c, f, integers[static_cast<size_t>(c * out.features + f)]);
  return out;
}

QuantizedWeight round_to_nearest(const WeightRows& rows, const WeightFormat& format) {
  QuantizedWeight out{choose_scales(rows, format), std::vector<int8_t>(rows.values.size())};
  for (int64_t c = 0; c < rows.channels; ++c)
    for (int64_t f = 0; f < rows.features; ++f)
      out.integers[static_cast<size_t>(c * rows.features + f)] =
          static_cast<int8_t>(out.scales.nearest(c, f, rows.row(c)[f]));
  return out;
}

}  // namespace paddle::quant
