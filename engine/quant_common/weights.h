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

/// The axis of a weight that has its output channels: the first one (convolutions, embeddings), the
/// second one (transposed convolutions) or the last one (matrices [in, out]).
enum class ChannelAxis : uint8_t { kFirst, kSecond, kLast };
/// The number of that axis in a weight of this rank.
inline size_t axis_of(ChannelAxis channels, size_t rank) {
  return channels == ChannelAxis::kFirst ? 0 : channels == ChannelAxis::kSecond ? 1 : rank - 1;
}

/// A weight as one row for each output channel, of the features that it multiplies.
struct WeightRows {
  int64_t channels = 0, features = 0;
  std::vector<float> values;  ///< [channels][features]

  const float* row(int64_t channel) const { return values.data() + channel * features; }
  float* row(int64_t channel) { return values.data() + channel * features; }
};
/// Features are the other axes of the weight, in their order.
WeightRows weight_rows(const Array& weight, ChannelAxis channels);
Array weight_array(const WeightRows& rows, const Dims& shape, ChannelAxis channels);
/// Calls `use(channel, feature, index)` for the elements of a contiguous weight.
template <class Use>
void for_each_weight(const Dims& shape, ChannelAxis channels, const Use& use) {
  const size_t axis = axis_of(channels, shape.size());
  int64_t outer = 1, inner = 1;
  for (size_t i = 0; i < axis; ++i) outer *= shape[i];
  for (size_t i = axis + 1; i < shape.size(); ++i) inner *= shape[i];
  int64_t index = 0;
  for (int64_t o = 0; o < outer; ++o)
    for (int64_t c = 0; c < shape[axis]; ++c)
      for (int64_t i = 0; i < inner; ++i) use(c, o * inner + i, index++);
}

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
