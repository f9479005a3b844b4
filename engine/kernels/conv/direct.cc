#include "kernels/conv/direct.h"

#include <algorithm>

#include "kernels/common/rounding.h"
#include "kernels/common/workers.h"
#include "kernels/conv/cost_model.h"
#include "kernels/conv/direct_simd.h"

namespace paddle::cpu {
namespace {

/// Size of the input rows of a strip: half of the L1 cache.
constexpr int64_t kStripBytes = 1 << 14;

}  // namespace

double DirectConvolution::estimated_speedup(const ConvShape& s) {
  const int64_t lanes = direct_loops().lanes;
  const bool computes = (!s.channels_last || s.groups > 1) && s.dilation_height == 1 &&
                        s.dilation_width == 1 && s.stride_width == 1 && s.left >= 0 &&
                        s.right >= 0 && lanes >= 8;
  if (!computes) return 0;
  const double filled = lane_utilization(s.out_width, lanes);
  if (s.groups == 1) return onednn_flop_ratio(s, lanes) * filled;
  // oneDNN has kernels for groups of one channel, and of multiples of a vector's.
  const int64_t in = s.group_in_channels(), out = s.group_out_channels();
  if (in == 1 || (in % 8 == 0 && out % 8 == 0)) return 0;
  ConvShape group = s;
  group.in_channels = in;
  group.out_channels = out;
  return onednn_flop_ratio(group, lanes) * filled;
}

DirectConvolution::DirectConvolution(const ConvShape& s) : shape_(s) {
  const int64_t threads = threads_for(s.multiplications());
  const int64_t images = s.batch * s.groups, in = s.group_in_channels();
  pitch_ = s.out_width + s.kernel_width - 1;
  const int64_t row = s.stride_height * in * pitch_ * static_cast<int64_t>(sizeof(float));
  const int64_t target_strips =
      std::max(ceil_div(row * s.out_height, kStripBytes), ceil_div(threads, images));
  rows_ = ceil_div(s.out_height, std::min(target_strips, s.out_height));
  strips_ = ceil_div(s.out_height, rows_);
  in_rows_ = (rows_ - 1) * s.stride_height + s.kernel_height;
  workers_ = std::min(threads, images * strips_);
  packed_floats_ = round_up_floats(s.out_channels * s.window_size());
  padded_floats_ = round_up_floats(in * in_rows_ * pitch_ + direct_loops().lanes);
  tile_floats_ =
      s.channels_last ? round_up_floats(direct_loops().outputs * rows_ * s.out_width) : 0;
}

size_t DirectConvolution::scratch_bytes() const {
  return (packed_floats_ + static_cast<size_t>(workers_) * (padded_floats_ + tile_floats_)) *
         sizeof(float);
}

/// Packs to [group, block of outputs, in, row, column, output].
void DirectConvolution::pack(const float* weight, float* packed) const {
  const int64_t depth = shape_.window_size(), outputs = shape_.group_out_channels();
  for (int64_t g = 0; g < shape_.groups; ++g, weight += outputs * depth)
    split_evenly(outputs, direct_loops().outputs, [&](int64_t first, int64_t count) {
      for (int64_t k = 0; k < depth; ++k)
        for (int64_t o = first; o < first + count; ++o) *packed++ = weight[o * depth + k];
    });
}

/// Copies rows of a group's channels of one image with their padding to [channel, row, column].
void DirectConvolution::copy_padded_rows(const float* image, int64_t first_row, int64_t rows,
                                         float* padded) const {
  const ConvShape& s = shape_;
  const ImageStrides at = ImageStrides::of(s.in_channels, s.height, s.width, s.channels_last);
  for (int64_t c = 0; c < s.group_in_channels(); ++c)
    for (int64_t r = first_row; r < first_row + rows; ++r, padded += pitch_) {
      if (r < 0 || r >= s.height) {
        std::fill_n(padded, pitch_, 0.0f);
        continue;
      }
      std::fill_n(padded, s.left, 0.0f);
      const float* const from = image + c * at.channel + r * at.row;
      if (at.column == 1)
        std::copy_n(from, s.width, padded + s.left);
      else
        for (int64_t i = 0; i < s.width; ++i) padded[s.left + i] = from[i * at.column];
      std::fill(padded + s.left + s.width, padded + pitch_, 0.0f);
    }
}

void DirectConvolution::scatter_outputs(const float* from, int64_t outputs, int64_t pixels,
                                        float* y) const {
  for (int64_t i = 0; i < pixels; ++i)
    for (int64_t o = 0; o < outputs; ++o) y[i * shape_.out_channels + o] = from[o * pixels + i];
}

void DirectConvolution::compute_strip(int64_t task, const float* x, const float* packed,
                                      const BoundEpilogue& epilogue, float* y,
                                      float* scratch) const {
  const DirectLoops& loops = direct_loops();
  const ConvShape& s = shape_;
  const int64_t image = task / (strips_ * s.groups), group = task / strips_ % s.groups;
  const int64_t first_row = task % strips_ * rows_;
  const int64_t rows = std::min(rows_, s.out_height - first_row), pixels = rows * s.out_width;
  const int64_t in_rows = (rows - 1) * s.stride_height + s.kernel_height;
  const ImageStrides in = ImageStrides::of(s.in_channels, s.height, s.width, s.channels_last),
                     out = ImageStrides::of(s.out_channels, s.out_height, s.out_width,
                                            s.channels_last);
  float *const padded = scratch, *const tile = scratch + padded_floats_;
  copy_padded_rows(x + image * in.batch + group * s.group_in_channels() * in.channel,
                   first_row * s.stride_height - s.top, in_rows, padded);
  split_evenly(s.group_out_channels(), loops.outputs, [&](int64_t first, int64_t outputs) {
    const int64_t channel = group * s.group_out_channels() + first;
    float* const target = y + image * out.batch + channel * out.channel + first_row * out.row;
    float* const to = s.channels_last ? tile : target;
    const int64_t pitch = s.channels_last ? pixels : s.positions();
    loops.rows({.x = padded,
                .channel_stride = in_rows * pitch_,
                .row_stride = pitch_,
                .weight = packed + channel * s.window_size(),
                .channels = s.group_in_channels(),
                .kernel_height = s.kernel_height,
                .kernel_width = s.kernel_width,
                .stride = s.stride_height,
                .rows = rows,
                .out_width = s.out_width,
                .outputs = outputs},
               epilogue.bias ? epilogue.bias + channel : nullptr, epilogue.clamp_min, to, pitch);
    for (int64_t o = 0; epilogue.activation && o < outputs; ++o) {
      const void* const operand = to + o * pitch;
      epilogue.activation(&operand, to + o * pitch, pixels, epilogue.activation_params);
    }
    if (s.channels_last) scatter_outputs(tile, outputs, pixels, target);
  });
}

void DirectConvolution::run(const float* x, const float* weight, const BoundEpilogue& epilogue,
                            float* y, std::byte* scratch) const {
  float* const packed = reinterpret_cast<float*>(scratch);
  pack(weight, packed);
  for_each_task(shape_.batch * shape_.groups * strips_, workers_,
                scratch + packed_floats_ * sizeof(float),
                (padded_floats_ + tile_floats_) * sizeof(float), [&](int64_t task, std::byte* own) {
                  compute_strip(task, x, packed, epilogue, y, reinterpret_cast<float*>(own));
                });
}

}  // namespace paddle::cpu
