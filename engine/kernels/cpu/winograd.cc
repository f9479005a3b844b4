#include "kernels/cpu/winograd.h"

#include <algorithm>

#include "base/parallel.h"
#include "kernels/cpu/deal.h"
#include "kernels/cpu/packed_constants.h"
#include "kernels/cpu/sizes.h"
#include "kernels/cpu/winograd_loops.h"

namespace paddle::cpu {
namespace {

constexpr int64_t kChannels = 16;  // a vector of the widest instruction set
constexpr int64_t kItem = sizeof(float);
/// What the points of a block, before and after the product, may take: the cache of a core.
constexpr int64_t kBlockBytes = 1 << 20;
constexpr int64_t kLeastBlock = 24;  // tiles for which the weights are read once

int64_t points_of(int64_t tile) { return (tile + 2) * (tile + 2); }

int64_t tiles_of(const ConvShape& s, int64_t tile) {
  return s.batch * parts(s.out_height, tile) * parts(s.out_width, tile);
}

/// Floats from the matrix of one point to that of the next. No power of two, so that the points of
/// a tile do not compete for the same lines of a cache.
int64_t pitch(int64_t tiles, int64_t channels) { return tiles * channels + kChannels; }

bool fits(const ConvShape& s) {
  return s.channels_last && s.groups == 1 && s.kernel_height == 3 && s.kernel_width == 3 &&
         s.stride_height == 1 && s.stride_width == 1 && s.dilation_height == 1 &&
         s.dilation_width == 1 && s.in_channels > 0 && s.in_channels % kChannels == 0 &&
         s.out_channels > 0 && s.out_channels % kChannels == 0 && vector_bytes() >= 32;
}

/// The time of a convolution for each pair of channels, in units of a floating-point operation. A
/// float of the weights, which all have to be brought from memory, takes as long as kPerWeight
/// operations, and three times that where they are brought into another form first; the transforms
/// take kIn and kOut of them for a point of each channel.
constexpr double kPerWeight = 30, kIn = 15, kOut = 12;

double time_of_weight(bool once) { return once ? 3 * kPerWeight : kPerWeight; }

double time_of_sum(const ConvShape& s, bool once) {
  return 9 * (2.0 * static_cast<double>(s.batch * s.positions()) + time_of_weight(once));
}

double time_of_tiles(const ConvShape& s, int64_t tile, bool once) {
  // The product runs at four fifths of the rate of the sum.
  const double tiles = static_cast<double>(tiles_of(s, tile));
  const double each =
      2.5 + kIn / static_cast<double>(s.out_channels) + kOut / static_cast<double>(s.in_channels);
  return static_cast<double>(points_of(tile)) * (each * tiles + time_of_weight(once));
}

size_t packed_bytes(const ConvShape& s, int64_t tile) {
  return static_cast<size_t>(points_of(tile) * s.out_channels * s.in_channels * kItem);
}

/// The weights' points, [point, panel, in, column].
void pack(const ConvShape& s, int64_t tile, const void* weight, std::byte* packed) {
  const WinogradLoops& loops = winograd_loops(tile);
  const int64_t in = s.in_channels, out = s.out_channels, window = 9 * kItem;
  float* const u = reinterpret_cast<float*>(packed);
  parallel_for(parts(out, loops.panel) * in, 64, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t k = i / in * loops.panel, c = i % in;
      const int64_t panel = std::min(loops.panel, out - k);
      loops.weight(static_cast<const std::byte*>(weight) + (k * in + c) * window, in * window,
                   panel, u + k * in + c * panel, out * in);
    }
  });
}

std::shared_ptr<Storage> packed_weight(const ConvShape& s, int64_t tile, const void* weight) {
  static PackedConstants<int64_t> constants;
  return constants.get(weight, static_cast<size_t>(s.out_channels * s.in_channels * 9 * kItem),
                       tile, packed_bytes(s, tile),
                       [&](std::byte* packed) { pack(s, tile, weight, packed); });
}

}  // namespace

int64_t Winograd::best_tile(const ConvShape& s, bool once) {
  if (!fits(s)) return 0;
  int64_t best = 0;
  double least =
      0.9 * time_of_sum(s, once);  // less would not pay for the memory of the weights' points
  for (const int64_t tile : {2, 4})
    if (const double time = time_of_tiles(s, tile, once); time < least) {
      least = time;
      best = tile;
    }
  return best;
}

Winograd::Winograd(const ConvShape& shape, int64_t tile, const void* weight, bool once)
    : shape_(shape),
      tile_(tile),
      points_(points_of(tile)),
      panels_(parts(shape.out_channels, winograd_loops(tile).panel)),
      tile_rows_(parts(shape.out_height, tile)),
      tile_columns_(parts(shape.out_width, tile)),
      tiles_(tiles_of(shape, tile)),
      block_(tiles_),
      given_(weight),
      packed_(once ? nullptr : packed_weight(shape, tile, weight)) {
  const int64_t tile_bytes = points_ * (shape.in_channels + shape.out_channels) * kItem;
  const int64_t most = std::max(kLeastBlock, kBlockBytes / tile_bytes);
  const int64_t threads = thread_count();
  if (tiles_ < most * threads) return;
  workers_ = threads;
  block_ = parts(tiles_, parts(parts(tiles_, most), threads) * threads);
}

size_t Winograd::worker_bytes() const {
  const int64_t floats =
      points_ * (pitch(block_, shape_.in_channels) + pitch(block_, shape_.out_channels));
  return static_cast<size_t>(floats * kItem);
}

size_t Winograd::work_bytes() const { return static_cast<size_t>(workers_) * worker_bytes(); }

size_t Winograd::scratch_bytes() const {
  return work_bytes() + (packed_ ? 0 : packed_bytes(shape_, tile_));
}

void Winograd::run_block(int64_t begin, int64_t end, const float* x, const float* weight,
                         const ConvFinish& finish, float* y, float* scratch) const {
  const WinogradLoops& loops = winograd_loops(tile_);
  const ConvShape& s = shape_;
  const int64_t in = s.in_channels, out = s.out_channels;
  const WinogradPoints from{scratch, pitch(block_, in), in};
  const WinogradPoints to{scratch + points_ * from.pitch, pitch(block_, out), out};
  const int64_t tiles = end - begin, x_stride = s.width * in, y_stride = s.out_width * out;
  struct Place {
    int64_t image, row, column;  ///< of the first pixel
  };
  const auto place = [&](int64_t t) {
    const int64_t line = (begin + t) / tile_columns_;
    return Place{line / tile_rows_, line % tile_rows_ * tile_, (begin + t) % tile_columns_ * tile_};
  };
  parallel_for(tiles, 1, [&](int64_t first, int64_t last) {
    for (int64_t t = first; t < last; ++t) {
      const Place at = place(t);
      const int64_t row = at.row - s.top, column = at.column - s.left;
      WinogradWindow w{std::max<int64_t>(0, -row), std::max<int64_t>(0, -column), 0, 0};
      w.rows = std::min(tile_ + 2, s.height - row) - w.first_row;
      w.columns = std::min(tile_ + 2, s.width - column) - w.first_column;
      loops.input(x, (at.image * s.height + row) * x_stride + column * in, x_stride, w, t, from);
    }
  });
  parallel_for(points_ * panels_, 1, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) {
      const int64_t point = i / panels_, k = i % panels_ * loops.panel;
      loops.product(tiles, in, from.data + point * from.pitch, weight + (point * out + k) * in,
                    std::min(loops.panel, out - k), to.data + point * to.pitch + k, out);
    }
  });
  parallel_for(tiles, 1, [&](int64_t first, int64_t last) {
    for (int64_t t = first; t < last; ++t) {
      const Place at = place(t);
      const WinogradWindow w{0, 0, std::min(tile_, s.out_height - at.row),
                             std::min(tile_, s.out_width - at.column)};
      const int64_t offset = (at.image * s.out_height + at.row) * y_stride + at.column * out;
      loops.output(to, t, out, finish.bias, finish.residual ? finish.residual + offset : nullptr,
                   finish.least, y + offset, y_stride, w);
      if (!finish.loop) continue;
      for (int64_t r = 0; r < w.rows; ++r) {
        float* const pixels = y + offset + r * y_stride;
        const void* const operand = pixels;
        finish.loop(&operand, pixels, w.columns * out, finish.params);
      }
    }
  });
}

void Winograd::run(const float* x, const ConvFinish& finish, float* y, std::byte* scratch) const {
  std::byte* const weight = packed_ ? packed_->data() : scratch + work_bytes();
  if (!packed_) pack(shape_, tile_, given_, weight);
  // A worker's own block runs serially; where there is one worker, the steps are parallel.
  for_each_task(
      parts(tiles_, block_), workers_, scratch, worker_bytes(), [&](int64_t b, std::byte* own) {
        run_block(b * block_, std::min(tiles_, (b + 1) * block_), x,
                  reinterpret_cast<const float*>(weight), finish, y, reinterpret_cast<float*>(own));
      });
}

}  // namespace paddle::cpu
