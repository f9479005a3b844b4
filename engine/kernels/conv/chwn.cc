#include "kernels/conv/chwn.h"

#include <algorithm>
#include <numeric>

#include "base/parallel.h"
#include "kernels/common/rounding.h"
#include "kernels/common/workers.h"
#include "kernels/conv/chwn_simd.h"
#include "kernels/conv/cost_model.h"

namespace paddle::cpu {
namespace {

/// Size limit of a strip: half of the L2 cache of a core.
constexpr int64_t kMaxStripBytes = 1 << 19;
/// Sums over a vector of images that make a second worker worth waking.
constexpr int64_t kSumsPerWorker = 1000;

bool is_supported(const ConvShape& s) {
  return !s.channels_last && s.groups == 1 && s.dilation_height == 1 && s.dilation_width == 1 &&
         chwn_loops().lanes >= 8;
}

/// NCHW images.
struct Images {
  const float* data;
  int64_t batch, channels, height, width;
};

/// Gathers rows of a strip's images, from `first` on, to [row, column, channel, image].
void gather(const Images& from, int64_t first, RowRange rows, int64_t images, float* to) {
  const ChwnLoops& loops = chwn_loops();
  const int64_t image = from.channels * from.height * from.width;
  for (int64_t lane = 0; lane < images; lane += loops.lanes) {
    const int64_t count = std::clamp<int64_t>(from.batch - first - lane, 0, loops.lanes);
    const float* const data = count > 0 ? from.data + (first + lane) * image : from.data;
    for (int64_t c = 0; c < from.channels; ++c)
      loops.gather(data + (c * from.height + rows.first) * from.width, image, count,
                   rows.count() * from.width, to + c * images + lane, from.channels * images);
  }
}

/// The forward convolution that computes the gradient for the input.
ConvShape transposed_shape(ConvShape s) {
  std::swap(s.in_channels, s.out_channels);
  std::swap(s.height, s.out_height);
  std::swap(s.width, s.out_width);
  s.top = s.kernel_height - 1 - s.top;
  s.left = s.kernel_width - 1 - s.left;
  return s;
}

}  // namespace

ChwnPartition::ChwnPartition(const ConvShape& s, int64_t images_of_strip)
    : images(images_of_strip), blocks(ceil_div(s.batch, images)) {
  const int64_t threads = threads_for(s.multiplications());
  // As many strips as the cache requires, or as balance the threads, but not many more.
  const int64_t row = s.stride_height * s.width * s.in_channels + s.out_width * s.out_channels;
  const int64_t bytes = row * s.out_height * images * static_cast<int64_t>(sizeof(float));
  const int64_t balanced =
      std::min(threads / std::gcd(threads, blocks), ceil_div(4 * threads, blocks));
  const int64_t target_strips = std::max(ceil_div(bytes, kMaxStripBytes), balanced);
  rows = ceil_div(s.out_height, std::min(target_strips, s.out_height));
  strips = ceil_div(s.out_height, rows);
  in_rows = std::min(s.height, (rows - 1) * s.stride_height + s.kernel_height);
  workers = std::min(threads, blocks * strips);
}

ChwnStrip ChwnPartition::strip(const ConvShape& s, int64_t i) const {
  const int64_t first = i % strips * rows, last = std::min(s.out_height, first + rows);
  const int64_t below = (last - 1) * s.stride_height - s.top + s.kernel_height;
  return {i / strips * images,
          {first, last},
          {std::clamp<int64_t>(first * s.stride_height - s.top, 0, s.height),
           std::min(s.height, below)}};
}

double ChwnConvolution::estimated_speedup(const ConvShape& s) {
  const int64_t lanes = chwn_loops().lanes;
  // With strides, more of the time goes into gathering images.
  const bool strided = s.stride_height > 1 || s.stride_width > 1;
  return is_supported(s)
             ? onednn_flop_ratio(s, lanes) * lane_utilization(s.batch, lanes) / (strided ? 1.2 : 1)
             : 0;
}

double ChwnConvolution::input_grad_speedup(const ConvShape& s) {
  const int64_t lanes = chwn_loops().lanes;
  if (!is_supported(s) || s.stride_height > 1 || s.stride_width > 1) return 0;
  return padded_flop_ratio(s, round_up(s.in_channels, lanes), round_up(s.out_channels, lanes)) *
         lane_utilization(s.batch, lanes);
}

ChwnConvolution ChwnConvolution::forward(const ConvShape& shape) { return {shape, false}; }

ChwnConvolution ChwnConvolution::input_grad(const ConvShape& shape) {
  return {transposed_shape(shape), true};
}

ChwnConvolution::ChwnConvolution(const ConvShape& shape, bool transposed)
    : shape_(shape),
      transposed_(transposed),
      vectors_(ceil_div(shape.batch, chwn_loops().lanes) % 2 == 0 ? 2 : 1),
      strips_(shape, vectors_ * chwn_loops().lanes),
      packed_floats_(round_up_floats(shape.out_channels * shape.window_size())),
      x_floats_(
          round_up_floats(strips_.in_rows * shape.width * shape.in_channels * strips_.images)),
      y_floats_(
          round_up_floats(strips_.rows * shape.out_width * shape.out_channels * strips_.images)) {}

size_t ChwnConvolution::scratch_bytes() const {
  const size_t worker = x_floats_ + y_floats_;
  return (packed_floats_ + static_cast<size_t>(strips_.workers) * worker) * sizeof(float);
}

/// Packs to [block of outputs, row, column, in, output].
void ChwnConvolution::pack(const float* weight, float* packed) const {
  const ConvShape& s = shape_;
  const int64_t window = s.kernel_height * s.kernel_width;
  const int64_t out_stride = (transposed_ ? 1 : s.in_channels) * window;
  const int64_t in_stride = (transposed_ ? s.out_channels : 1) * window;
  split_evenly(s.out_channels, chwn_loops().row_outputs, [&](int64_t first, int64_t count) {
    for (int64_t k = 0; k < window; ++k) {
      const float* const from = weight + first * out_stride + (transposed_ ? window - 1 - k : k);
      for (int64_t c = 0; c < s.in_channels; ++c)
        for (int64_t o = 0; o < count; ++o) *packed++ = from[c * in_stride + o * out_stride];
    }
  });
}

/// Computes the rows of a strip, [output, row, column, image], from the gathered x.
void ChwnConvolution::compute_rows(const ChwnStrip& strip, const float* x, const float* packed,
                                   const BoundEpilogue& epilogue, float* sums) const {
  const ChwnLoops& loops = chwn_loops();
  const ConvShape& s = shape_;
  const int64_t out_row = s.out_width * strips_.images, channel = strip.rows.count() * out_row;
  const int64_t in_row = s.width * s.in_channels * strips_.images;
  split_evenly(s.out_channels, loops.row_outputs, [&](int64_t first, int64_t count) {
    const int64_t weight_row = s.kernel_width * s.in_channels * count;
    for (int64_t r = strip.rows.first; r < strip.rows.last; ++r) {
      const int64_t top = r * s.stride_height - s.top;
      const RowRange seen{std::max<int64_t>(0, -top), std::min(s.kernel_height, s.height - top)};
      const ChwnRow row{.vectors = vectors_,
                        .x = x + (top + seen.first - strip.in.first) * in_row,
                        .row_stride = in_row,
                        .rows = seen.count(),
                        .weight = packed + first * s.window_size() + seen.first * weight_row,
                        .width = s.width,
                        .channels = s.in_channels,
                        .kernel_width = s.kernel_width,
                        .stride = s.stride_width,
                        .left = s.left,
                        .out_width = s.out_width,
                        .outputs = count};
      loops.row(row, epilogue.bias ? epilogue.bias + first : nullptr, epilogue.clamp_min,
                sums + first * channel + (r - strip.rows.first) * out_row, channel);
    }
  });
}

void ChwnConvolution::write(const ChwnStrip& strip, const float* sums,
                            const BoundEpilogue& epilogue, float* y) const {
  const ChwnLoops& loops = chwn_loops();
  const ConvShape& s = shape_;
  const int64_t pixels = strip.rows.count() * s.out_width;
  const int64_t plane = s.positions(), stride = s.out_channels * plane;
  for (int64_t lane = 0; lane < strips_.images; lane += loops.lanes) {
    const int64_t image = strip.first_image + lane;
    const int64_t images = std::min(s.batch - image, loops.lanes);
    for (int64_t c = 0; images > 0 && c < s.out_channels; ++c) {
      float* const to = y + image * stride + c * plane + strip.rows.first * s.out_width;
      loops.scatter(sums + c * pixels * strips_.images + lane, strips_.images, images, pixels, to,
                    stride);
      for (int64_t n = 0; epilogue.activation && n < images; ++n) {
        const void* const operand = to + n * stride;
        epilogue.activation(&operand, to + n * stride, pixels, epilogue.activation_params);
      }
    }
  }
}

void ChwnConvolution::run(const float* x, const float* weight, const BoundEpilogue& epilogue,
                          float* y, std::byte* scratch) const {
  const ConvShape& s = shape_;
  const Images images{x, s.batch, s.in_channels, s.height, s.width};
  float* const packed = reinterpret_cast<float*>(scratch);
  pack(weight, packed);
  for_each_worker(
      strips_.count(), strips_.workers, [&](int64_t first, int64_t last, int64_t worker) {
        float* const gathered =
            packed + packed_floats_ + static_cast<size_t>(worker) * (x_floats_ + y_floats_);
        float* const sums = gathered + x_floats_;
        for (int64_t i = first; i < last; ++i) {
          const ChwnStrip strip = strips_.strip(s, i);
          gather(images, strip.first_image, strip.in, strips_.images, gathered);
          compute_rows(strip, gathered, packed, epilogue, sums);
          write(strip, sums, epilogue, y);
        }
      });
}

double ChwnWeightGrad::estimated_speedup(const ConvShape& s) {
  const int64_t lanes = chwn_loops().lanes, in = s.in_channels;
  if (!is_supported(s)) return 0;
  // Accounts for the final sums over lanes and for short runs.
  const double part = lane_utilization(s.batch, lanes) / 1.3;
  const auto with = [&](int64_t channels, int64_t block) {
    return part * padded_flop_ratio(s, channels, round_up(s.out_channels, block));
  };
  if (in == 3 || (in < 3 && lanes == kAvx512Lanes)) return with(in, lanes);
  if (in < kAvx512Lanes && lanes == kAvx512Lanes)  // oneDNN uses its AVX2 code here
    return 1.4 * with(round_up(in, lanes / 2), lanes / 2);
  return with(round_up(in, lanes), lanes);
}

ChwnWeightGrad::ChwnWeightGrad(const ConvShape& shape)
    : shape_(shape),
      strips_(shape, chwn_loops().lanes),
      x_floats_(
          round_up_floats(strips_.in_rows * shape.width * shape.in_channels * strips_.images)),
      dy_floats_(
          round_up_floats(strips_.rows * shape.out_width * shape.out_channels * strips_.images)),
      sums_floats_(round_up_floats(shape.out_channels * shape.window_size() * strips_.images)) {}

size_t ChwnWeightGrad::scratch_bytes() const {
  const size_t worker = x_floats_ + dy_floats_ + sums_floats_;
  return static_cast<size_t>(strips_.workers) * worker * sizeof(float);
}

/// Accumulates the products of dy with one row of the windows of x, both gathered.
void ChwnWeightGrad::accumulate_row(const ChwnStrip& strip, int64_t kernel_row, const float* x,
                                    const float* dy, float* sums) const {
  const ChwnLoops& loops = chwn_loops();
  const ConvShape& s = shape_;
  const int64_t n = strips_.images, in_pixel = s.in_channels * n, out_pixel = s.out_channels * n;
  const int64_t taps_stride = s.kernel_width * in_pixel;
  // Rows of dy whose windows have this kernel row inside the image.
  const int64_t above = s.top - kernel_row;
  const auto rows_until = [&](int64_t row) {
    return ceil_div(std::max<int64_t>(0, row + above), s.stride_height);
  };
  const RowRange rows{std::max(strip.rows.first, rows_until(0)),
                      std::min(strip.rows.last, rows_until(s.height))};
  if (rows.count() == 0) return;
  const float* const x_row =
      x + (rows.first * s.stride_height - above - strip.in.first) * s.width * in_pixel;
  const float* const dy_row = dy + (rows.first - strip.rows.first) * s.out_width * out_pixel;
  // Kernel columns that are inside the image for a column of dy.
  const auto valid_columns = [&](int64_t c) {
    const int64_t left = c * s.stride_width - s.left;
    return std::pair{std::max<int64_t>(0, -left), std::min(s.kernel_width, s.width - left)};
  };
  // Columns of dy with the same valid kernel columns.
  for (int64_t c = 0, next = 0; c < s.out_width; c = next) {
    const auto [first, last] = valid_columns(c);
    for (next = c + 1; next < s.out_width && valid_columns(next) == std::pair{first, last};) ++next;
    const int64_t tap = first * s.in_channels;
    const float* const from = x_row + ((c * s.stride_width - s.left) * s.in_channels + tap) * n;
    const int64_t seen = std::max<int64_t>(0, last - first) * s.in_channels;
    split_evenly(s.out_channels, loops.products_outputs, [&](int64_t o, int64_t outputs) {
      split_evenly(seen, loops.products_taps, [&](int64_t t, int64_t taps) {
        loops.products(
            {.dy = dy_row + c * out_pixel + o * n,
             .x = from + t * n,
             .rows = rows.count(),
             .columns = next - c,
             .dy_row = s.out_width * out_pixel,
             .dy_column = out_pixel,
             .x_row = s.stride_height * s.width * in_pixel,
             .x_column = s.stride_width * in_pixel,
             .sums = sums + (kernel_row * s.out_channels + o) * taps_stride + (tap + t) * n,
             .sums_stride = taps_stride},
            outputs, taps);
      });
    });
  }
}

/// Computes dw from the sums of all workers, [worker, kernel row, out, kernel column, in, image].
void ChwnWeightGrad::sum_over_batch(const float* sums, float* dw) const {
  const ConvShape& s = shape_;
  const int64_t window = s.kernel_height * s.kernel_width;
  const auto element = [&](int64_t o, int64_t k) {
    const int64_t row = k / s.kernel_width * s.out_channels + o, column = k % s.kernel_width;
    chwn_loops().sum_over_batch(
        sums + (row * s.kernel_width + column) * s.in_channels * strips_.images, strips_.workers,
        static_cast<int64_t>(sums_floats_), s.in_channels, dw + o * s.window_size() + k, window);
  };
  parallel_for(s.out_channels * window, ceil_div(kSumsPerWorker, s.in_channels),
               [&](int64_t first, int64_t last) {
                 for (int64_t i = first; i < last; ++i) element(i / window, i % window);
               });
}

void ChwnWeightGrad::run(const float* x, const float* dy, float* dw, std::byte* scratch) const {
  const ConvShape& s = shape_;
  const Images images{x, s.batch, s.in_channels, s.height, s.width};
  const Images grads{dy, s.batch, s.out_channels, s.out_height, s.out_width};
  float* const sums = reinterpret_cast<float*>(scratch);
  float* const gathered = sums + static_cast<size_t>(strips_.workers) * sums_floats_;
  for_each_worker(strips_.count(), strips_.workers,
                  [&](int64_t first, int64_t last, int64_t worker) {
                    const auto w = static_cast<size_t>(worker);
                    float* const worker_sums = sums + w * sums_floats_;
                    float* const x_strip = gathered + w * (x_floats_ + dy_floats_);
                    float* const dy_strip = x_strip + x_floats_;
                    std::fill_n(worker_sums, sums_floats_, 0.0f);
                    for (int64_t i = first; i < last; ++i) {
                      const ChwnStrip strip = strips_.strip(s, i);
                      gather(images, strip.first_image, strip.in, strips_.images, x_strip);
                      gather(grads, strip.first_image, strip.rows, strips_.images, dy_strip);
                      for (int64_t k = 0; k < s.kernel_height; ++k)
                        accumulate_row(strip, k, x_strip, dy_strip, worker_sums);
                    }
                  });
  sum_over_batch(sums, dw);
}

}  // namespace paddle::cpu
