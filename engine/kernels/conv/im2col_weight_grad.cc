#include "kernels/conv/im2col_weight_grad.h"

#include <algorithm>

#include "kernels/common/rounding.h"
#include "kernels/common/workers.h"
#include "kernels/elementwise/loops.h"
#include "kernels/linalg/gemm.h"

namespace paddle::cpu {
namespace {

constexpr int64_t kLeastChannels = 16;
constexpr int64_t kRowUnit = 12, kColumnUnit = 16;  // whole tiles of the product
constexpr int64_t kLeastColumns = 96;               // for which it pays to pack the rows
constexpr int64_t kTasksOfThread = 4;

bool windows_are_pixels(const ConvShape& s) {
  return s.kernel_height * s.kernel_width == 1 && s.stride_height * s.stride_width == 1 &&
         (s.top | s.bottom | s.left | s.right) == 0;
}

}  // namespace

bool PixelWeightGrad::suits(const ConvShape& shape) {
  constexpr int64_t kLeastMultiplications = int64_t{1} << 22;
  if (vector_bytes() != 32 || !shape.channels_last || shape.has_planes() || shape.groups != 1 ||
      std::min(shape.in_channels, shape.out_channels) < kLeastChannels ||
      shape.multiplications() < kLeastMultiplications)
    return false;
  // Where windows are pixels, oneDNN's products take as long, but for large ones of this form.
  constexpr int64_t kManyInputs = 256, kManyPixels = 2048;
  return !windows_are_pixels(shape) ||
         (shape.in_channels >= kManyInputs && shape.out_channels > shape.in_channels &&
          shape.batch * shape.positions() >= kManyPixels);
}

PixelWeightGrad::PixelWeightGrad(const ConvShape& shape)
    : s_(shape), whole_(windows_are_pixels(shape)) {
  const auto part = [](int64_t n, int64_t count, int64_t unit) {
    return filled(parts(n, count), unit);
  };
  row_blocks_ = parts(s_.out_channels, kGemmRows);
  rows_ = part(s_.out_channels, row_blocks_, kRowUnit);
  row_blocks_ = parts(s_.out_channels, rows_);
  const int64_t wanted = parts(kTasksOfThread * thread_count(), row_blocks_);
  const int64_t most = std::max<int64_t>(1, s_.depth() / kLeastColumns);
  column_blocks_ = std::max(parts(s_.depth(), kGemmColumns), std::min(wanted, most));
  columns_ = part(s_.depth(), column_blocks_, kColumnUnit);
  column_blocks_ = parts(s_.depth(), columns_);
  workers_ = std::min<int64_t>(thread_count(), row_blocks_ * column_blocks_);
}

size_t PixelWeightGrad::sums_bytes() const {
  return places() == 1 ? 0 : whole_lines(s_.out_channels * s_.depth()) * sizeof(float);
}

size_t PixelWeightGrad::task_bytes() const {
  const size_t windows = whole_ ? 0 : whole_lines(kGemmDepth * columns_) * sizeof(float);
  return windows + aligned(gemm_workspace_bytes(sizeof(float)));
}

size_t PixelWeightGrad::scratch_bytes() const {
  return sums_bytes() + static_cast<size_t>(workers_) * task_bytes();
}

void PixelWeightGrad::run(const float* x, const float* dy, float* dw, std::byte* scratch) const {
  float* const sums = places() == 1 ? dw : reinterpret_cast<float*>(scratch);
  for_each_task(row_blocks_ * column_blocks_, workers_, scratch + sums_bytes(), task_bytes(),
                [&](int64_t task, std::byte* own) { add_up(task, x, dy, sums, own); });
  if (places() == 1) return;
  parallel_for(s_.out_channels, 1, [&](int64_t begin, int64_t end) {
    for (int64_t out = begin; out < end; ++out)
      for (int64_t in = 0; in < s_.in_channels; ++in)
        for (int64_t place = 0; place < places(); ++place)
          dw[(out * s_.in_channels + in) * places() + place] =
              sums[(out * places() + place) * s_.in_channels + in];
  });
}

/// A block of [out, row, column, in].
void PixelWeightGrad::add_up(int64_t task, const float* x, const float* dy, float* sums,
                             std::byte* own) const {
  const int64_t row = task / column_blocks_ * rows_, column = task % column_blocks_ * columns_;
  const int64_t rows = std::min(rows_, s_.out_channels - row);
  const int64_t columns = std::min(columns_, s_.depth() - column);
  float* const windows = reinterpret_cast<float*>(own);
  std::byte* const workspace = own + task_bytes() - aligned(gemm_workspace_bytes(sizeof(float)));
  float* const to = sums + row * s_.depth() + column;
  for (int64_t r = 0; r < rows; ++r) std::fill_n(to + r * s_.depth(), columns, 0.0f);
  const int64_t pixels = s_.batch * s_.positions();
  for (int64_t pixel = 0; pixel < pixels; pixel += kGemmDepth) {
    const int64_t count = std::min(kGemmDepth, pixels - pixel);
    MatrixView<float> right = {windows, columns, 1};
    if (whole_)
      right = {x + pixel * s_.in_channels + column, s_.in_channels, 1};
    else
      gather(x, pixel, count, column, columns, windows);
    gemm_block(rows, columns, count, {dy + pixel * s_.out_channels + row, 1, s_.out_channels},
               right, to, s_.depth(), workspace);
  }
}

/// Of the windows [row, column, in] of `count` pixels of the output, `columns` from `first` on.
void PixelWeightGrad::gather(const float* x, int64_t pixel, int64_t count, int64_t first,
                             int64_t columns, float* to) const {
  const int64_t in = s_.in_channels, end = first + columns;
  for (int64_t p = pixel; p < pixel + count; ++p) {
    const int64_t image = p / s_.positions(), at = p % s_.positions();
    const int64_t top = at / s_.out_width * s_.stride_height - s_.top;
    const int64_t left = at % s_.out_width * s_.stride_width - s_.left;
    const float* const base = x + image * s_.height * s_.width * in;
    for (int64_t from = first; from < end;) {
      const int64_t place = from / in, channel = from % in;
      const int64_t n = std::min(in - channel, end - from);
      const int64_t y = top + place / s_.kernel_width * s_.dilation_height;
      const int64_t column = left + place % s_.kernel_width * s_.dilation_width;
      if (y < 0 || y >= s_.height || column < 0 || column >= s_.width)
        std::fill_n(to, n, 0.0f);
      else
        std::copy_n(base + (y * s_.width + column) * in + channel, n, to);
      to += n;
      from += n;
    }
  }
}

}  // namespace paddle::cpu
