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

/// What a strip may take: half of the cache of a core.
constexpr int64_t kStripBytes = 1 << 19;
/// Sums over the images of a vector for which a second worker is worth waking.
constexpr int64_t kWorkerTotals = 1000;

bool computes(const ConvShape& s) {
  return !s.channels_last && s.groups == 1 && s.dilation_height == 1 && s.dilation_width == 1 &&
         batch_conv_loops().lanes >= 8;
}

/// Images [batch, channel, row, column].
struct Images {
  const float* data;
  int64_t batch, channels, height, width;
};

/// Rows of as many images from the first on as a strip takes, to [row, column, channel, image].
void gather(const Images& from, int64_t first, RowRange rows, int64_t images, float* to) {
  const BatchConvLoops& loops = batch_conv_loops();
  const int64_t image = from.channels * from.height * from.width;
  for (int64_t lane = 0; lane < images; lane += loops.lanes) {
    const int64_t count = std::clamp<int64_t>(from.batch - first - lane, 0, loops.lanes);
    const float* const data = count > 0 ? from.data + (first + lane) * image : from.data;
    for (int64_t c = 0; c < from.channels; ++c)
      loops.gather(data + (c * from.height + rows.first) * from.width, image, count,
                   rows.count() * from.width, to + c * images + lane, from.channels * images);
  }
}

/// The sum over windows that the gradient of the input is.
ConvShape turned(ConvShape s) {
  std::swap(s.in_channels, s.out_channels);
  std::swap(s.height, s.out_height);
  std::swap(s.width, s.out_width);
  s.top = s.kernel_height - 1 - s.top;
  s.left = s.kernel_width - 1 - s.left;
  return s;
}

}  // namespace

BatchStrips::BatchStrips(const ConvShape& s, int64_t images_of_strip)
    : images(images_of_strip), blocks(parts(s.batch, images)) {
  const int64_t threads = threads_for(s.multiplications());
  // As many as fill the cache, or as give every thread the same number, but not many more.
  const int64_t row = s.stride_height * s.width * s.in_channels + s.out_width * s.out_channels;
  const int64_t bytes = row * s.out_height * images * static_cast<int64_t>(sizeof(float));
  const int64_t even = std::min(threads / std::gcd(threads, blocks), parts(4 * threads, blocks));
  const int64_t wanted = std::max(parts(bytes, kStripBytes), even);
  rows = parts(s.out_height, std::min(wanted, s.out_height));
  strips = parts(s.out_height, rows);
  in_rows = std::min(s.height, (rows - 1) * s.stride_height + s.kernel_height);
  workers = std::min(threads, blocks * strips);
}

BatchStrip BatchStrips::strip(const ConvShape& s, int64_t i) const {
  const int64_t first = i % strips * rows, last = std::min(s.out_height, first + rows);
  const int64_t below = (last - 1) * s.stride_height - s.top + s.kernel_height;
  return {i / strips * images,
          {first, last},
          {std::clamp<int64_t>(first * s.stride_height - s.top, 0, s.height),
           std::min(s.height, below)}};
}

double BatchConvolution::saving(const ConvShape& s) {
  const int64_t lanes = batch_conv_loops().lanes;
  // With strides more of the time goes into bringing images into vectors.
  const bool strided = s.stride_height > 1 || s.stride_width > 1;
  return computes(s) ? forward_surplus(s, lanes) * filled_part(s.batch, lanes) / (strided ? 1.2 : 1)
                     : 0;
}

double BatchConvolution::input_grad_saving(const ConvShape& s) {
  const int64_t lanes = batch_conv_loops().lanes;
  if (!computes(s) || s.stride_height > 1 || s.stride_width > 1) return 0;
  return surplus(s, filled(s.in_channels, lanes), filled(s.out_channels, lanes)) *
         filled_part(s.batch, lanes);
}

BatchConvolution BatchConvolution::forward(const ConvShape& shape) { return {shape, false}; }

BatchConvolution BatchConvolution::input_grad(const ConvShape& shape) {
  return {turned(shape), true};
}

BatchConvolution::BatchConvolution(const ConvShape& shape, bool transposed)
    : shape_(shape),
      transposed_(transposed),
      vectors_(parts(shape.batch, batch_conv_loops().lanes) % 2 == 0 ? 2 : 1),
      strips_(shape, vectors_ * batch_conv_loops().lanes),
      packed_floats_(whole_lines(shape.out_channels * shape.depth())),
      x_floats_(whole_lines(strips_.in_rows * shape.width * shape.in_channels * strips_.images)),
      y_floats_(whole_lines(strips_.rows * shape.out_width * shape.out_channels * strips_.images)) {
}

size_t BatchConvolution::scratch_bytes() const {
  const size_t worker = x_floats_ + y_floats_;
  return (packed_floats_ + static_cast<size_t>(strips_.workers) * worker) * sizeof(float);
}

/// To [part of the outputs, row, column, in, output].
void BatchConvolution::pack(const float* weight, float* packed) const {
  const ConvShape& s = shape_;
  const int64_t window = s.kernel_height * s.kernel_width;
  const int64_t out_stride = (transposed_ ? 1 : s.in_channels) * window;
  const int64_t in_stride = (transposed_ ? s.out_channels : 1) * window;
  in_parts(s.out_channels, batch_conv_loops().row_outputs, [&](int64_t first, int64_t count) {
    for (int64_t k = 0; k < window; ++k) {
      const float* const from = weight + first * out_stride + (transposed_ ? window - 1 - k : k);
      for (int64_t c = 0; c < s.in_channels; ++c)
        for (int64_t o = 0; o < count; ++o) *packed++ = from[c * in_stride + o * out_stride];
    }
  });
}

/// The rows of a strip, [output, row, column, image], from the gathered x.
void BatchConvolution::sum_rows(const BatchStrip& strip, const float* x, const float* packed,
                                const ConvFinish& finish, float* sums) const {
  const BatchConvLoops& loops = batch_conv_loops();
  const ConvShape& s = shape_;
  const int64_t out_row = s.out_width * strips_.images, channel = strip.rows.count() * out_row;
  const int64_t in_row = s.width * s.in_channels * strips_.images;
  in_parts(s.out_channels, loops.row_outputs, [&](int64_t first, int64_t count) {
    const int64_t weight_row = s.kernel_width * s.in_channels * count;
    for (int64_t r = strip.rows.first; r < strip.rows.last; ++r) {
      const int64_t top = r * s.stride_height - s.top;
      const RowRange seen{std::max<int64_t>(0, -top), std::min(s.kernel_height, s.height - top)};
      const BatchRow row{.vectors = vectors_,
                         .x = x + (top + seen.first - strip.in.first) * in_row,
                         .row_stride = in_row,
                         .rows = seen.count(),
                         .weight = packed + first * s.depth() + seen.first * weight_row,
                         .width = s.width,
                         .channels = s.in_channels,
                         .kernel_width = s.kernel_width,
                         .stride = s.stride_width,
                         .left = s.left,
                         .out_width = s.out_width,
                         .outputs = count};
      loops.row(row, finish.bias ? finish.bias + first : nullptr, finish.least,
                sums + first * channel + (r - strip.rows.first) * out_row, channel);
    }
  });
}

void BatchConvolution::write(const BatchStrip& strip, const float* sums, const ConvFinish& finish,
                             float* y) const {
  const BatchConvLoops& loops = batch_conv_loops();
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
      for (int64_t n = 0; finish.loop && n < images; ++n) {
        const void* const operand = to + n * stride;
        finish.loop(&operand, to + n * stride, pixels, finish.params);
      }
    }
  }
}

void BatchConvolution::run(const float* x, const float* weight, const ConvFinish& finish, float* y,
                           std::byte* scratch) const {
  const ConvShape& s = shape_;
  const Images images{x, s.batch, s.in_channels, s.height, s.width};
  float* const packed = reinterpret_cast<float*>(scratch);
  pack(weight, packed);
  deal(strips_.count(), strips_.workers, [&](int64_t first, int64_t last, int64_t worker) {
    float* const gathered =
        packed + packed_floats_ + static_cast<size_t>(worker) * (x_floats_ + y_floats_);
    float* const sums = gathered + x_floats_;
    for (int64_t i = first; i < last; ++i) {
      const BatchStrip strip = strips_.strip(s, i);
      gather(images, strip.first_image, strip.in, strips_.images, gathered);
      sum_rows(strip, gathered, packed, finish, sums);
      write(strip, sums, finish, y);
    }
  });
}

double BatchWeightGrad::saving(const ConvShape& s) {
  const int64_t lanes = batch_conv_loops().lanes, in = s.in_channels;
  if (!computes(s)) return 0;
  // Sums over the lanes, and short runs of them, take time too.
  const double part = filled_part(s.batch, lanes) / 1.3;
  const auto with = [&](int64_t channels, int64_t block) {
    return part * surplus(s, channels, filled(s.out_channels, block));
  };
  if (in == 3 || (in < 3 && lanes == kAvx512Lanes)) return with(in, lanes);
  if (in < kAvx512Lanes && lanes == kAvx512Lanes)  // its code for AVX2 is taken
    return 1.4 * with(filled(in, lanes / 2), lanes / 2);
  return with(filled(in, lanes), lanes);
}

BatchWeightGrad::BatchWeightGrad(const ConvShape& shape)
    : shape_(shape),
      strips_(shape, batch_conv_loops().lanes),
      x_floats_(whole_lines(strips_.in_rows * shape.width * shape.in_channels * strips_.images)),
      dy_floats_(whole_lines(strips_.rows * shape.out_width * shape.out_channels * strips_.images)),
      sums_floats_(whole_lines(shape.out_channels * shape.depth() * strips_.images)) {}

size_t BatchWeightGrad::scratch_bytes() const {
  const size_t worker = x_floats_ + dy_floats_ + sums_floats_;
  return static_cast<size_t>(strips_.workers) * worker * sizeof(float);
}

/// Adds the products of dy's pixels with what one row of their windows sees, both gathered.
void BatchWeightGrad::add_row(const BatchStrip& strip, int64_t kernel_row, const float* x,
                              const float* dy, float* sums) const {
  const BatchConvLoops& loops = batch_conv_loops();
  const ConvShape& s = shape_;
  const int64_t n = strips_.images, in_pixel = s.in_channels * n, out_pixel = s.out_channels * n;
  const int64_t taps_stride = s.kernel_width * in_pixel;
  // Rows of dy whose windows have this row inside the image.
  const int64_t above = s.top - kernel_row;
  const auto rows_until = [&](int64_t row) {
    return parts(std::max<int64_t>(0, row + above), s.stride_height);
  };
  const RowRange rows{std::max(strip.rows.first, rows_until(0)),
                      std::min(strip.rows.last, rows_until(s.height))};
  if (rows.count() == 0) return;
  const float* const x_row =
      x + (rows.first * s.stride_height - above - strip.in.first) * s.width * in_pixel;
  const float* const dy_row = dy + (rows.first - strip.rows.first) * s.out_width * out_pixel;
  // Columns of the window of a column of dy that are inside the image.
  const auto seen_from = [&](int64_t c) {
    const int64_t left = c * s.stride_width - s.left;
    return std::pair{std::max<int64_t>(0, -left), std::min(s.kernel_width, s.width - left)};
  };
  // Columns of dy that see the same.
  for (int64_t c = 0, next = 0; c < s.out_width; c = next) {
    const auto [first, last] = seen_from(c);
    for (next = c + 1; next < s.out_width && seen_from(next) == std::pair{first, last};) ++next;
    const int64_t tap = first * s.in_channels;
    const float* const from = x_row + ((c * s.stride_width - s.left) * s.in_channels + tap) * n;
    const int64_t seen = std::max<int64_t>(0, last - first) * s.in_channels;
    in_parts(s.out_channels, loops.products_outputs, [&](int64_t o, int64_t outputs) {
      in_parts(seen, loops.products_taps, [&](int64_t t, int64_t taps) {
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

/// dw from the sums of all workers, [worker, kernel row, out, kernel column, in, image].
void BatchWeightGrad::total(const float* sums, float* dw) const {
  const ConvShape& s = shape_;
  const int64_t window = s.kernel_height * s.kernel_width;
  const auto element = [&](int64_t o, int64_t k) {
    const int64_t row = k / s.kernel_width * s.out_channels + o, column = k % s.kernel_width;
    batch_conv_loops().total(
        sums + (row * s.kernel_width + column) * s.in_channels * strips_.images, strips_.workers,
        static_cast<int64_t>(sums_floats_), s.in_channels, dw + o * s.depth() + k, window);
  };
  parallel_for(s.out_channels * window, parts(kWorkerTotals, s.in_channels),
               [&](int64_t first, int64_t last) {
                 for (int64_t i = first; i < last; ++i) element(i / window, i % window);
               });
}

void BatchWeightGrad::run(const float* x, const float* dy, float* dw, std::byte* scratch) const {
  const ConvShape& s = shape_;
  const Images images{x, s.batch, s.in_channels, s.height, s.width};
  const Images grads{dy, s.batch, s.out_channels, s.out_height, s.out_width};
  float* const sums = reinterpret_cast<float*>(scratch);
  float* const gathered = sums + static_cast<size_t>(strips_.workers) * sums_floats_;
  deal(strips_.count(), strips_.workers, [&](int64_t first, int64_t last, int64_t worker) {
    const auto w = static_cast<size_t>(worker);
    float* const own = sums + w * sums_floats_;
    float* const x_strip = gathered + w * (x_floats_ + dy_floats_);
    float* const dy_strip = x_strip + x_floats_;
    std::fill_n(own, sums_floats_, 0.0f);
    for (int64_t i = first; i < last; ++i) {
      const BatchStrip strip = strips_.strip(s, i);
      gather(images, strip.first_image, strip.in, strips_.images, x_strip);
      gather(grads, strip.first_image, strip.rows, strips_.images, dy_strip);
      for (int64_t k = 0; k < s.kernel_height; ++k) add_row(strip, k, x_strip, dy_strip, own);
    }
  });
  total(sums, dw);
}

}  // namespace paddle::cpu
