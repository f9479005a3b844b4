#include "kernels/conv/winograd.h"

#include <algorithm>

#include "base/parallel.h"
#include "kernels/common/prepack_cache.h"
#include "kernels/common/rounding.h"
#include "kernels/common/workers.h"
#include "kernels/conv/winograd_simd.h"

namespace paddle::cpu {
namespace {

constexpr int64_t kChannels = 16;  // one vector of the widest instruction set
constexpr int64_t kItem = sizeof(float);
/// Size of a block's transformed inputs and outputs: the L2 cache of a core.
constexpr int64_t kBlockBytes = 1 << 20;
/// Tiles (over all planes) for which the weights are read once.
constexpr int64_t kMinBlockTiles = 24;

int64_t points_of(int64_t tile) { return (tile + 2) * (tile + 2); }

/// Tiles of one plane of all images.
int64_t tiles_of(const ConvShape& s, int64_t tile) {
  return s.batch * ceil_div(s.out_height, tile) * ceil_div(s.out_width, tile);
}

/// Floats between the matrices of two points. Not a power of two, so that the points of a tile do
/// not compete for the same cache sets.
int64_t pitch(int64_t tiles, int64_t channels) { return tiles * channels + kChannels; }

/// The kernel planes that read the input for any output plane.
KernelRange used_kernel_range(const ConvShape& s) {
  return {valid_kernel_range(s, s.out_depth - 1).begin, valid_kernel_range(s, 0).end};
}

/// The number of pairs of an output plane and a kernel plane that reads the input for it.
int64_t plane_pairs(const ConvShape& s) {
  int64_t sum = 0;
  for (int64_t p = 0; p < s.out_depth; ++p) sum += valid_kernel_range(s, p).count();
  return sum;
}

bool fits(const ConvShape& s) {
  if (s.stride_depth != 1 || s.dilation_depth != 1 || s.front >= s.kernel_depth ||
      s.back >= s.kernel_depth || s.out_depth < 1)
    return false;
  return s.channels_last && s.groups == 1 && s.kernel_height == 3 && s.kernel_width == 3 &&
         s.stride_height == 1 && s.stride_width == 1 && s.dilation_height == 1 &&
         s.dilation_width == 1 && s.in_channels > 0 && s.in_channels % kChannels == 0 &&
         s.out_channels > 0 && s.out_channels % kChannels == 0 && vector_bytes() >= 32;
}

/// Cost of a convolution per pair of channels, in units of a floating-point operation. Loading a
/// float of the weights from memory costs as much as kPerWeight operations, and three times that if
/// it is transformed first; the transforms cost kIn and kOut per point and channel.
constexpr double kPerWeight = 30, kIn = 15, kOut = 12;

double weight_cost(bool skip_prepack) { return skip_prepack ? 3 * kPerWeight : kPerWeight; }

double direct_cost(const ConvShape& s, bool skip_prepack) {
  const double pixels = static_cast<double>(s.batch * s.out_height * s.out_width * plane_pairs(s));
  return 9 * (2.0 * pixels + static_cast<double>(s.kernel_depth) * weight_cost(skip_prepack));
}

double winograd_cost(const ConvShape& s, int64_t tile, bool skip_prepack) {
  // The GEMMs run at four fifths of the rate of the direct sum.
  const double tiles = static_cast<double>(tiles_of(s, tile));
  const double each = 2.5 * static_cast<double>(plane_pairs(s)) +
                      kIn * static_cast<double>(s.depth) / static_cast<double>(s.out_channels) +
                      kOut * static_cast<double>(s.out_depth) / static_cast<double>(s.in_channels);
  const double weights =
      static_cast<double>(used_kernel_range(s).count()) * weight_cost(skip_prepack);
  return static_cast<double>(points_of(tile)) * (each * tiles + weights);
}

size_t packed_bytes(const ConvShape& s, int64_t tile) {
  return static_cast<size_t>(points_of(tile) * s.out_channels * used_kernel_range(s).count() *
                             s.in_channels * kItem);
}

/// Transforms the weights to [point, panel, plane, in, column].
void pack(const ConvShape& s, int64_t tile, const void* weight, std::byte* packed) {
  const WinogradLoops& loops = winograd_loops(tile);
  const KernelRange planes = used_kernel_range(s);
  const int64_t in = s.in_channels, out = s.out_channels, window = 9 * kItem;
  const int64_t rows = planes.count() * in, volume = s.kernel_depth * window;
  float* const u = reinterpret_cast<float*>(packed);
  parallel_for(ceil_div(out, loops.panel) * rows, 64, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t k = i / rows * loops.panel, row = i % rows, c = row % in;
      const int64_t panel = std::min(loops.panel, out - k);
      const int64_t from = (k * in + c) * volume + (planes.begin + row / in) * window;
      loops.weight(static_cast<const std::byte*>(weight) + from, in * volume, panel,
                   u + k * rows + row * panel, out * rows);
    }
  });
}

/// Identifies prepacked weights: one constant may be the weight of several shapes, by a reshape.
struct PrepackKey {
  int64_t tile;
  KernelRange planes;
  int64_t kernel_depth, in_channels, out_channels;
  bool operator==(const PrepackKey&) const = default;
};

std::shared_ptr<Storage> prepacked_weight(const ConvShape& s, int64_t tile, const void* weight) {
  static PrepackCache<PrepackKey> constants;
  const int64_t original_floats = s.out_channels * s.in_channels * s.kernel_depth * 9;
  return constants.get(
      weight, static_cast<size_t>(original_floats * kItem),
      PrepackKey{tile, used_kernel_range(s), s.kernel_depth, s.in_channels, s.out_channels},
      packed_bytes(s, tile), [&](std::byte* packed) { pack(s, tile, weight, packed); });
}

}  // namespace

int64_t Winograd::best_tile(const ConvShape& s, bool skip_prepack) {
  if (!fits(s)) return 0;
  int64_t best = 0;
  // A smaller gain would not justify the memory of the transformed weights.
  double best_cost = 0.9 * direct_cost(s, skip_prepack);
  for (const int64_t tile : {2, 4})
    if (const double cost = winograd_cost(s, tile, skip_prepack); cost < best_cost) {
      best_cost = cost;
      best = tile;
    }
  return best;
}

Winograd::Winograd(const ConvShape& shape, int64_t tile, const void* weight, bool skip_prepack)
    : shape_(shape),
      tile_(tile),
      points_(points_of(tile)),
      panels_(ceil_div(shape.out_channels, winograd_loops(tile).panel)),
      tile_rows_(ceil_div(shape.out_height, tile)),
      tile_columns_(ceil_div(shape.out_width, tile)),
      tiles_(tiles_of(shape, tile)),
      block_(tiles_),
      weight_(weight),
      packed_(skip_prepack ? nullptr : prepacked_weight(shape, tile, weight)) {
  const int64_t tile_bytes =
      points_ * (shape.depth * shape.in_channels + shape.out_depth * shape.out_channels) * kItem;
  const int64_t max_tiles =
      std::max(ceil_div(kMinBlockTiles, shape.out_depth), kBlockBytes / tile_bytes);
  const int64_t threads = thread_count();
  if (tiles_ < max_tiles * threads) return;
  workers_ = threads;
  block_ = ceil_div(tiles_, ceil_div(ceil_div(tiles_, max_tiles), threads) * threads);
}

size_t Winograd::worker_bytes() const {
  const int64_t floats = points_ * (pitch(block_ * shape_.depth, shape_.in_channels) +
                                    pitch(block_ * shape_.out_depth, shape_.out_channels));
  return static_cast<size_t>(floats * kItem);
}

size_t Winograd::work_bytes() const { return static_cast<size_t>(workers_) * worker_bytes(); }

size_t Winograd::scratch_bytes() const {
  return work_bytes() + (packed_ ? 0 : packed_bytes(shape_, tile_));
}

/// The first pixel of a tile.
struct Winograd::TileOrigin {
  int64_t volume, row, column;
};

Winograd::TileOrigin Winograd::tile_origin(int64_t t) const {
  const int64_t line = t / tile_columns_;
  return {line / tile_rows_, line % tile_rows_ * tile_, t % tile_columns_ * tile_};
}

void Winograd::transform_input(int64_t begin, int64_t end, const float* x,
                               const WinogradPoints& points) const {
  const ConvShape& s = shape_;
  const int64_t tiles = end - begin, in = s.in_channels, stride = s.width * in;
  parallel_for(s.depth * tiles, 1, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) {
      const TileOrigin at = tile_origin(begin + i % tiles);
      const int64_t plane = at.volume * s.depth + i / tiles;
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
  const KernelRange packed = used_kernel_range(s);
  parallel_for(points_ * panels_, 1, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) {
      const int64_t point = i / panels_, k = i % panels_ * loops.panel;
      const int64_t panel = std::min(loops.panel, out - k);
      const float* const u = weight + (point * out + k) * packed.count() * in;
      // Output planes with the same kernel planes are computed together.
      for (int64_t p = 0, next = 0; p < s.out_depth; p = next) {
        const KernelRange range = valid_kernel_range(s, p);
        while (++next < s.out_depth && valid_kernel_range(s, next) == range) {
        }
        loops.product((next - p) * tiles, range.count(), in,
                      from.data + point * from.pitch + (p - s.front + range.begin) * tiles * in,
                      tiles * in, u + (range.begin - packed.begin) * in * panel, panel,
                      to.data + point * to.pitch + p * tiles * out + k, out);
      }
    }
  });
}

void Winograd::transform_output(int64_t begin, int64_t end, const WinogradPoints& points,
                                const BoundEpilogue& epilogue, float* y) const {
  const ConvShape& s = shape_;
  const int64_t tiles = end - begin, out = s.out_channels, stride = s.out_width * out;
  parallel_for(s.out_depth * tiles, 1, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) {
      const TileOrigin at = tile_origin(begin + i % tiles);
      const int64_t plane = at.volume * s.out_depth + i / tiles;
      const WinogradWindow w{0, 0, std::min(tile_, s.out_height - at.row),
                             std::min(tile_, s.out_width - at.column)};
      const int64_t offset = (plane * s.out_height + at.row) * stride + at.column * out;
      winograd_loops(tile_).output(points, i, out, epilogue.bias,
                                   epilogue.residual ? epilogue.residual + offset : nullptr,
                                   epilogue.clamp_min, y + offset, stride, w);
      if (!epilogue.activation) continue;
      for (int64_t r = 0; r < w.rows; ++r) {
        float* const pixels = y + offset + r * stride;
        const void* const operand = pixels;
        epilogue.activation(&operand, pixels, w.columns * out, epilogue.activation_params);
      }
    }
  });
}

void Winograd::run(const float* x, const BoundEpilogue& epilogue, float* y,
                   std::byte* scratch) const {
  std::byte* const weight = packed_ ? packed_->data() : scratch + work_bytes();
  if (!packed_) pack(shape_, tile_, weight_, weight);
  // Each worker's block runs serially; with a single worker the steps run in parallel.
  const auto block = [&](int64_t b, std::byte* worker_scratch) {
    const WinogradPoints from{reinterpret_cast<float*>(worker_scratch),
                              pitch(block_ * shape_.depth, shape_.in_channels), shape_.in_channels};
    const WinogradPoints to{from.data + points_ * from.pitch,
                            pitch(block_ * shape_.out_depth, shape_.out_channels),
                            shape_.out_channels};
    const int64_t begin = b * block_, end = std::min(tiles_, begin + block_);
    transform_input(begin, end, x, from);
    multiply(end - begin, from, reinterpret_cast<const float*>(weight), to);
    transform_output(begin, end, to, epilogue, y);
  };
  for_each_task(ceil_div(tiles_, block_), workers_, scratch, worker_bytes(), block);
}

}  // namespace paddle::cpu
