#include "kernels/conv/winograd.h"

#include <algorithm>

#include "base/parallel.h"
#include "kernels/common/prepack_cache.h"
#include "kernels/common/rounding.h"
#include "kernels/common/workers.h"
#include "kernels/conv/winograd_simd.h"

namespace paddle::cpu {
namespace {

constexpr int64_t kChannels = 16;  // a vector of the widest instruction set
constexpr int64_t kItem = sizeof(float);
/// What the points of a block, before and after the product, may take: the cache of a core.
constexpr int64_t kBlockBytes = 1 << 20;
constexpr int64_t kLeastBlock = 24;  // tiles of all planes for which the weights are read once

int64_t points_of(int64_t tile) { return (tile + 2) * (tile + 2); }

/// Tiles of one plane of all volumes; of all images, where these have one plane.
int64_t tiles_of(const ConvShape& s, int64_t tile) {
  return s.batch * parts(s.out_height, tile) * parts(s.out_width, tile);
}

/// Floats from the matrix of one point to that of the next. No power of two, so that the points of
/// a tile do not compete for the same lines of a cache.
int64_t pitch(int64_t tiles, int64_t channels) { return tiles * channels + kChannels; }

/// The kernel's planes that meet one of the input for any plane of the output.
KernelPlanes met_by_any(const ConvShape& s) {
  return {met_by(s, s.out_planes - 1).begin, met_by(s, 0).end};
}

/// The sum of their counts over the planes of the output.
int64_t meetings(const ConvShape& s) {
  int64_t sum = 0;
  for (int64_t p = 0; p < s.out_planes; ++p) sum += met_by(s, p).count();
  return sum;
}

bool fits(const ConvShape& s) {
  if (s.stride_planes != 1 || s.dilation_planes != 1 || s.front >= s.kernel_planes ||
      s.back >= s.kernel_planes || s.out_planes < 1)
    return false;
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
  const double pixels = static_cast<double>(s.batch * s.out_height * s.out_width * meetings(s));
  return 9 * (2.0 * pixels + static_cast<double>(s.kernel_planes) * time_of_weight(once));
}

double time_of_tiles(const ConvShape& s, int64_t tile, bool once) {
  // The product runs at four fifths of the rate of the sum.
  const double tiles = static_cast<double>(tiles_of(s, tile));
  const double each = 2.5 * static_cast<double>(meetings(s)) +
                      kIn * static_cast<double>(s.planes) / static_cast<double>(s.out_channels) +
                      kOut * static_cast<double>(s.out_planes) / static_cast<double>(s.in_channels);
  const double weights = static_cast<double>(met_by_any(s).count()) * time_of_weight(once);
  return static_cast<double>(points_of(tile)) * (each * tiles + weights);
}

size_t packed_bytes(const ConvShape& s, int64_t tile) {
  return static_cast<size_t>(points_of(tile) * s.out_channels * met_by_any(s).count() *
                             s.in_channels * kItem);
}

/// The weights' points, [point, panel, plane, in, column].
void pack(const ConvShape& s, int64_t tile, const void* weight, std::byte* packed) {
  const WinogradLoops& loops = winograd_loops(tile);
  const KernelPlanes planes = met_by_any(s);
  const int64_t in = s.in_channels, out = s.out_channels, window = 9 * kItem;
  const int64_t rows = planes.count() * in, volume = s.kernel_planes * window;
  float* const u = reinterpret_cast<float*>(packed);
  parallel_for(parts(out, loops.panel) * rows, 64, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t k = i / rows * loops.panel, row = i % rows, c = row % in;
      const int64_t panel = std::min(loops.panel, out - k);
      const int64_t from = (k * in + c) * volume + (planes.begin + row / in) * window;
      loops.weight(static_cast<const std::byte*>(weight) + from, in * volume, panel,
                   u + k * rows + row * panel, out * rows);
    }
  });
}

/// What the packed weights depend on.
struct PackedForm {
  int64_t tile;
  KernelPlanes planes;
  bool operator==(const PackedForm&) const = default;
};

std::shared_ptr<Storage> packed_weight(const ConvShape& s, int64_t tile, const void* weight) {
  static PackedConstants<PackedForm> constants;
  const int64_t given = s.out_channels * s.in_channels * s.kernel_planes * 9;
  return constants.get(weight, static_cast<size_t>(given * kItem), PackedForm{tile, met_by_any(s)},
                       packed_bytes(s, tile),
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
  const int64_t tile_bytes =
      points_ * (shape.planes * shape.in_channels + shape.out_planes * shape.out_channels) * kItem;
  const int64_t most = std::max(parts(kLeastBlock, shape.out_planes), kBlockBytes / tile_bytes);
  const int64_t threads = thread_count();
  if (tiles_ < most * threads) return;
  workers_ = threads;
  block_ = parts(tiles_, parts(parts(tiles_, most), threads) * threads);
}

size_t Winograd::worker_bytes() const {
  const int64_t floats = points_ * (pitch(block_ * shape_.planes, shape_.in_channels) +
                                    pitch(block_ * shape_.out_planes, shape_.out_channels));
  return static_cast<size_t>(floats * kItem);
}

size_t Winograd::work_bytes() const { return static_cast<size_t>(workers_) * worker_bytes(); }

size_t Winograd::scratch_bytes() const {
  return work_bytes() + (packed_ ? 0 : packed_bytes(shape_, tile_));
}

/// The first pixel of a tile.
struct Winograd::Place {
  int64_t volume, row, column;
};

Winograd::Place Winograd::place_of(int64_t t) const {
  const int64_t line = t / tile_columns_;
  return {line / tile_rows_, line % tile_rows_ * tile_, t % tile_columns_ * tile_};
}

void Winograd::to_points(int64_t begin, int64_t end, const float* x,
                         const WinogradPoints& points) const {
  const ConvShape& s = shape_;
  const int64_t tiles = end - begin, in = s.in_channels, stride = s.width * in;
  parallel_for(s.planes * tiles, 1, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) {
      const Place at = place_of(begin + i % tiles);
      const int64_t plane = at.volume * s.planes + i / tiles;
      const int64_t row = at.row - s.top, column = at.column - s.left;
      WinogradWindow w{std::max<int64_t>(0, -row), std::max<int64_t>(0, -column), 0, 0};
      w.rows = std::min(tile_ + 2, s.height - row) - w.first_row;
      w.columns = std::min(tile_ + 2, s.width - column) - w.first_column;
      winograd_loops(tile_).input(x, (plane * s.height + row) * stride + column * in, stride, w, i,
                                  points);
    }
  });
}

void Winograd::multiply(int64_t tiles, const WinogradPoints& from, const float* weight,
                        const WinogradPoints& to) const {
  const WinogradLoops& loops = winograd_loops(tile_);
  const ConvShape& s = shape_;
  const int64_t in = s.in_channels, out = s.out_channels;
  const KernelPlanes packed = met_by_any(s);
  parallel_for(points_ * panels_, 1, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) {
      const int64_t point = i / panels_, k = i % panels_ * loops.panel;
      const int64_t panel = std::min(loops.panel, out - k);
      const float* const u = weight + (point * out + k) * packed.count() * in;
      // Planes that meet the same planes of the kernel together.
      for (int64_t p = 0, next = 0; p < s.out_planes; p = next) {
        const KernelPlanes met = met_by(s, p);
        while (++next < s.out_planes && met_by(s, next) == met) {
        }
        loops.product((next - p) * tiles, met.count(), in,
                      from.data + point * from.pitch + (p - s.front + met.begin) * tiles * in,
                      tiles * in, u + (met.begin - packed.begin) * in * panel, panel,
                      to.data + point * to.pitch + p * tiles * out + k, out);
      }
    }
  });
}

void Winograd::to_pixels(int64_t begin, int64_t end, const WinogradPoints& points,
                         const ConvFinish& finish, float* y) const {
  const ConvShape& s = shape_;
  const int64_t tiles = end - begin, out = s.out_channels, stride = s.out_width * out;
  parallel_for(s.out_planes * tiles, 1, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) {
      const Place at = place_of(begin + i % tiles);
      const int64_t plane = at.volume * s.out_planes + i / tiles;
      const WinogradWindow w{0, 0, std::min(tile_, s.out_height - at.row),
                             std::min(tile_, s.out_width - at.column)};
      const int64_t offset = (plane * s.out_height + at.row) * stride + at.column * out;
      winograd_loops(tile_).output(points, i, out, finish.bias,
                                   finish.residual ? finish.residual + offset : nullptr,
                                   finish.least, y + offset, stride, w);
      if (!finish.loop) continue;
      for (int64_t r = 0; r < w.rows; ++r) {
        float* const pixels = y + offset + r * stride;
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
  const auto block = [&](int64_t b, std::byte* own) {
    const WinogradPoints from{reinterpret_cast<float*>(own),
                              pitch(block_ * shape_.planes, shape_.in_channels),
                              shape_.in_channels};
    const WinogradPoints to{from.data + points_ * from.pitch,
                            pitch(block_ * shape_.out_planes, shape_.out_channels),
                            shape_.out_channels};
    const int64_t begin = b * block_, end = std::min(tiles_, begin + block_);
    to_points(begin, end, x, from);
    multiply(end - begin, from, reinterpret_cast<const float*>(weight), to);
    to_pixels(begin, end, to, finish, y);
  };
  for_each_task(parts(tiles_, block_), workers_, scratch, worker_bytes(), block);
}

}  // namespace paddle::cpu
