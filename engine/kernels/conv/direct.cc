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
  const bool computes = !s.channels_last && s.groups == 1 && s.dilation_height == 1 &&
                        s.dilation_width == 1 && s.stride_width == 1 && s.left >= 0 &&
                        s.right >= 0 && lanes >= 8;
  return computes ? onednn_flop_ratio(s, lanes) * lane_utilization(s.out_width, lanes) : 0;
}

DirectConvolution::DirectConvolution(const ConvShape& s) : shape_(s) {
  const int64_t threads = threads_for(s.multiplications());
  pitch_ = s.out_width + s.kernel_width - 1;
  const int64_t row =
      s.stride_height * s.in_channels * pitch_ * static_cast<int64_t>(sizeof(float));
  const int64_t target_strips =
      std::max(ceil_div(row * s.out_height, kStripBytes), ceil_div(threads, s.batch));
  rows_ = ceil_div(s.out_height, std::min(target_strips, s.out_height));
  strips_ = ceil_div(s.out_height, rows_);
  in_rows_ = (rows_ - 1) * s.stride_height + s.kernel_height;
  workers_ = std::min(threads, s.batch * strips_);
  packed_floats_ = round_up_floats(s.out_channels * s.window_size());
  padded_floats_ = round_up_floats(s.in_channels * in_rows_ * pitch_ + direct_loops().lanes);
}

size_t DirectConvolution::scratch_bytes() const {
  return (packed_floats_ + static_cast<size_t>(workers_) * padded_floats_) * sizeof(float);
}

/// Packs to [block of outputs, in, row, column, output].
void DirectConvolution::pack(const float* weight, float* packed) const {
  const int64_t depth = shape_.window_size();
  split_evenly(shape_.out_channels, direct_loops().outputs, [&](int64_t first, int64_t count) {
    for (int64_t k = 0; k < depth; ++k)
      for (int64_t o = first; o < first + count; ++o) *packed++ = weight[o * depth + k];
  });
}

/// Copies rows of one image with their padding to [channel, row, column].
void DirectConvolution::copy_padded_rows(const float* image, int64_t first_row, int64_t rows,
                                         float* padded) const {
  const ConvShape& s = shape_;
  for (int64_t c = 0; c < s.in_channels; ++c)
    for (int64_t r = first_row; r < first_row + rows; ++r, padded += pitch_) {
      if (r < 0 || r >= s.height) {
        std::fill_n(padded, pitch_, 0.0f);
        continue;
      }
      std::fill_n(padded, s.left, 0.0f);
      std::copy_n(image + (c * s.height + r) * s.width, s.width, padded + s.left);
      std::fill(padded + s.left + s.width, padded + pitch_, 0.0f);
    }
}

void DirectConvolution::compute_strip(int64_t strip, const float* x, const float* packed,
                                      const BoundEpilogue& epilogue, float* y,
                                      float* padded) const {
  const DirectLoops& loops = direct_loops();
  const ConvShape& s = shape_;
  const int64_t image = strip / strips_, first_row = strip % strips_ * rows_;
  const int64_t rows = std::min(rows_, s.out_height - first_row);
  const int64_t in_rows = (rows - 1) * s.stride_height + s.kernel_height;
  copy_padded_rows(x + image * s.in_channels * s.height * s.width,
                   first_row * s.stride_height - s.top, in_rows, padded);
  split_evenly(s.out_channels, loops.outputs, [&](int64_t first, int64_t outputs) {
    float* const to =
        y + ((image * s.out_channels + first) * s.out_height + first_row) * s.out_width;
    loops.rows({.x = padded,
                .channel_stride = in_rows * pitch_,
                .row_stride = pitch_,
                .weight = packed + first * s.window_size(),
                .channels = s.in_channels,
                .kernel_height = s.kernel_height,
                .kernel_width = s.kernel_width,
                .stride = s.stride_height,
                .rows = rows,
                .out_width = s.out_width,
                .outputs = outputs},
               epilogue.bias ? epilogue.bias + first : nullptr, epilogue.clamp_min, to,
               s.positions());
    for (int64_t o = 0; epilogue.activation && o < outputs; ++o) {
      const void* const operand = to + o * s.positions();
      epilogue.activation(&operand, to + o * s.positions(), rows * s.out_width,
                          epilogue.activation_params);
    }
  });
}

void DirectConvolution::run(const float* x, const float* weight, const BoundEpilogue& epilogue,
                            float* y, std::byte* scratch) const {
  float* const packed = reinterpret_cast<float*>(scratch);
  pack(weight, packed);
  for_each_task(shape_.batch * strips_, workers_, scratch + packed_floats_ * sizeof(float),
                padded_floats_ * sizeof(float), [&](int64_t strip, std::byte* padded) {
                  compute_strip(strip, x, packed, epilogue, y, reinterpret_cast<float*>(padded));
                });
}

}  // namespace paddle::cpu
