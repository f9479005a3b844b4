#pragma once
// Integers for the weights of layers: their format, scales and zero points, and rounding.

#include <cstdint>
#include <string>
#include <vector>

#include "tensor/tensor.h"

namespace paddle::quant {

/// The weights that share a scale.
enum class Granularity : uint8_t { kTensor, kChannel, kGroup };

struct WeightFormat {
  int bits = 8;  ///< 8, 7 or 4
  bool symmetric = true;
  Granularity per = Granularity::kChannel;
  int64_t group = 128;  ///< features in a row that share a scale, for kGroup
  bool search = false;  ///< scales of least squared error, instead of the full range

  int lowest() const { return symmetric ? -highest() : -(1 << (bits - 1)); }
  int highest() const { return (1 << (bits - 1)) - 1; }
  int storage_bits() const { return bits > 4 ? 8 : 4; }
  std::string text() const;  ///< "int4 in groups of 128"
};

/// A weight as one row for each output channel, of the features that it multiplies.
struct WeightRows {
  int64_t channels = 0, features = 0;
  std::vector<float> values;  ///< [channels][features]

  const float* row(int64_t channel) const { return values.data() + channel * features; }
  float* row(int64_t channel) { return values.data() + channel * features; }
};
/// Output channels are the first axis of a weight (convolutions, embeddings) or its last one.
WeightRows weight_rows(const Array& weight, bool channels_first);
Array weight_array(const WeightRows& rows, const Dims& shape, bool channels_first);

/// Scales and zero points of the rows of a weight.
struct WeightScales {
  WeightFormat format;
  int64_t channels = 0, features = 0;
  int64_t group = 0;           ///< features that share a scale
  std::vector<float> scales;   ///< [channels][groups]
  std::vector<int32_t> zeros;  ///< [channels][groups]

  int64_t groups() const { return group == 0 ? 0 : features / group; }
  size_t at(int64_t channel, int64_t feature) const {
    return static_cast<size_t>(channel * groups() + feature / group);
  }
  int32_t nearest(int64_t channel, int64_t feature, double weight) const;
  float value(int64_t channel, int64_t feature, int32_t integer) const {
    const size_t i = at(channel, feature);
    return static_cast<float>(integer - zeros[i]) * scales[i];
  }
};
/// `format.group` must divide the features of kGroup.
WeightScales choose_scales(const WeightRows& rows, const WeightFormat& format);

struct QuantizedWeight {
  WeightScales scales;
  std::vector<int8_t> integers;  ///< [channels][features]

  WeightRows dequantized() const;
};
QuantizedWeight round_to_nearest(const WeightRows& rows, const WeightFormat& format);

}  // namespace paddle::quant
