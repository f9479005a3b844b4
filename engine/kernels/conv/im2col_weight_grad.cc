#include "kernels/conv/im2col_weight_grad.h"

#include <algorithm>

#include "kernels/common/rounding.h"
#include "kernels/common/workers.h"
#include "kernels/conv/algorithms.h"
#include "kernels/elementwise/loops.h"
#include "kernels/linalg/gemm.h"

namespace paddle::cpu {
namespace {

constexpr int64_t kMinChannels = 16;
constexpr int64_t kRowUnit = 12, kColumnUnit = 16;  // multiples of the GEMM tile
constexpr int64_t kMinColumns = 96;                 // for which packing the rows pays off
constexpr int64_t kTasksPerThread = 4;

bool is_pointwise(const ConvShape& s) {
  return s.kernel_height * s.kernel_width == 1 && s.stride_height * s.stride_width == 1 &&
         (s.top | s.bottom | s.left | s.right) == 0;
}

}  // namespace

double im2col_weight_grad_speedup(const ConvProblem& problem) {
  return problem.dtype() == DType::kF32 && Im2colWeightGrad::is_faster(problem.shape) ? kPreferred
                                                                                      : 0;
}

std::unique_ptr<Kernel> prepare_im2col_weight_grad(const ConvProblem& problem) {
  const Im2colWeightGrad gradient(problem.shape);
  return make_kernel(
      [gradient](const RunContext& context, void* const* operands, void* const* results) {
        gradient.run(static_cast<const float*>(operands[0]), static_cast<const float*>(operands[1]),
                     static_cast<float*>(results[0]), context.scratch);
      },
      gradient.scratch_bytes(), "cpu:im2col_weight_grad");
}

bool Im2colWeightGrad::is_faster(const ConvShape& shape) {
  constexpr int64_t kMinMultiplications = int64_t{1} << 22;
  if (vector_bytes() != 32 || !shape.channels_last || shape.is_3d() || shape.groups != 1 ||
      std::min(shape.in_channels, shape.out_channels) < kMinChannels ||
      shape.multiplications() < kMinMultiplications)
    return false;
  // For pointwise convolutions oneDNN's matmul is as fast, except for large ones of this form.
  constexpr int64_t kManyInputs = 256, kManyPixels = 2048;
  return !is_pointwise(shape) ||
         (shape.in_channels >= kManyInputs && shape.out_channels > shape.in_channels &&
          shape.batch * shape.positions() >= kManyPixels);
}

Im2colWeightGrad::Im2colWeightGrad(const ConvShape& shape)
    : s_(shape), is_pointwise_(is_pointwise(shape)) {
  const auto part = [](int64_t n, int64_t count, int64_t unit) {
    return round_up(ceil_div(n, count), unit);
  };
  row_blocks_ = ceil_div(s_.out_channels, kGemmRows);
  rows_ = part(s_.out_channels, row_blocks_, kRowUnit);
  row_blocks_ = ceil_div(s_.out_channels, rows_);
  const int64_t target_column_blocks = ceil_div(kTasksPerThread * thread_count(), row_blocks_);
  const int64_t max_column_blocks = std::max<int64_t>(1, s_.window_size() / kMinColumns);
  column_blocks_ = std::max(ceil_div(s_.window_size(), kGemmColumns),
                            std::min(target_column_blocks, max_column_blocks));
  columns_ = part(s_.window_size(), column_blocks_, kColumnUnit);
  column_blocks_ = ceil_div(s_.window_size(), columns_);
  workers_ = std::min<int64_t>(thread_count(), row_blocks_ * column_blocks_);
}

size_t Im2colWeightGrad::sums_bytes() const {
  return kernel_positions() == 1
             ? 0
             : round_up_floats(s_.out_channels * s_.window_size()) * sizeof(float);
}

size_t Im2colWeightGrad::task_bytes() const {
  const size_t windows = is_pointwise_ ? 0 : round_up_floats(kGemmDepth * columns_) * sizeof(float);
  return windows + round_up_to_cache_line(gemm_workspace_bytes(sizeof(float)));
}

size_t Im2colWeightGrad::scratch_bytes() const {
  return sums_bytes() + static_cast<size_t>(workers_) * task_bytes();
}

void Im2colWeightGrad::run(const float* x, const float* dy, float* dw, std::byte* scratch) const {
  float* const sums = kernel_positions() == 1 ? dw : reinterpret_cast<float*>(scratch);
  for_each_task(row_blocks_ * column_blocks_, workers_, scratch + sums_bytes(), task_bytes(),
                [&](int64_t task, std::byte* worker_scratch) {
                  accumulate_block(task, x, dy, sums, worker_scratch);
                });
  if (kernel_positions() == 1) return;
  parallel_for(s_.out_channels, 1, [&](int64_t begin, int64_t end) {
    for (int64_t out = begin; out < end; ++out)
      for (int64_t in = 0; in < s_.in_channels; ++in)
        for (int64_t position = 0; position < kernel_positions(); ++position)
          dw[(out * s_.in_channels + in) * kernel_positions() + position] =
              sums[(out * kernel_positions() + position) * s_.in_channels + in];
  });
}

/// One block of dw as [out, row, column, in].
void Im2colWeightGrad::accumulate_block(int64_t task, const float* x, const float* dy, float* sums,
                                        std::byte* worker_scratch) const {
  const int64_t row = task / column_blocks_ * rows_, column = task % column_blocks_ * columns_;
  const int64_t rows = std::min(rows_, s_.out_channels - row);
  const int64_t columns = std::min(columns_, s_.window_size() - column);
  float* const windows = reinterpret_cast<float*>(worker_scratch);
  std::byte* const workspace =
      worker_scratch + task_bytes() - round_up_to_cache_line(gemm_workspace_bytes(sizeof(float)));
  float* const to = sums + row * s_.window_size() + column;
  for (int64_t r = 0; r < rows; ++r) std::fill_n(to + r * s_.window_size(), columns, 0.0f);
  const int64_t pixels = s_.batch * s_.positions();
  for (int64_t pixel = 0; pixel < pixels; pixel += kGemmDepth) {
    const int64_t count = std::min(kGemmDepth, pixels - pixel);
    MatrixView<float> right = {windows, columns, 1};
    if (is_pointwise_)
      right = {x + pixel * s_.in_channels + column, s_.in_channels, 1};
    else
      im2col(x, pixel, count, column, columns, windows);
    gemm_block(rows, columns, count, {dy + pixel * s_.out_channels + row, 1, s_.out_channels},
               right, to, s_.window_size(), workspace);
  }
}

/// Gathers `columns` elements from `first` on of the windows [row, column, in] of `count` output
/// pixels.
void Im2colWeightGrad::im2col(const float* x, int64_t pixel, int64_t count, int64_t first,
                              int64_t columns, float* to) const {
  const int64_t in = s_.in_channels, end = first + columns;
  for (int64_t p = pixel; p < pixel + count; ++p) {
    const int64_t image = p / s_.positions(), at = p % s_.positions();
    const int64_t top = at / s_.out_width * s_.stride_height - s_.top;
    const int64_t left = at % s_.out_width * s_.stride_width - s_.left;
    const float* const base = x + image * s_.height * s_.width * in;
    for (int64_t from = first; from < end;) {
      const int64_t position = from / in, channel = from % in;
      const int64_t n = std::min(in - channel, end - from);
      const int64_t y = top + position / s_.kernel_width * s_.dilation_height;
      const int64_t column = left + position % s_.kernel_width * s_.dilation_width;
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
