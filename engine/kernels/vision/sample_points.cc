// Interpolation at real coordinates: the neighbors of a block of points and their weights are
// computed once and used for all channels.

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/parallel.h"
#include "kernels/common/rounding.h"
#include "kernels/common/workers.h"
#include "ops/core/kernel.h"
#include "ops/generated/vision.h"

namespace paddle::cpu {
namespace {

constexpr int64_t kBlock = 128;  // points
constexpr int64_t kMaxTaps = 64;

enum class Filter { kNearest, kLinear, kCubic };
enum class Border { kZeros, kClamp, kReflect };

template <class T>
T reflect(T x, T low, T span) {
  span = std::max(span, T(0.5));
  T phase = std::fmod(x - low, 2 * span);
  if (phase < 0) phase += 2 * span;
  return (phase > span ? 2 * span - phase : phase) + low;
}

template <class T>
T cubic_weight(T x) {
  constexpr T a = T(-0.75);
  x = std::abs(x);
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : T(0);
}

/// Sampling along one axis.
template <class T>
struct Axis {
  Filter filter;
  Border border;
  bool corners;
  int64_t size;

  int taps() const { return filter == Filter::kNearest ? 1 : filter == Filter::kLinear ? 2 : 4; }

  void find(T x, int64_t* index, T* weight) const {
    const T last = static_cast<T>(size - 1), low = corners ? T(0) : T(-0.5),
            span = corners ? last : last + 1;
    if (filter == Filter::kLinear && x >= 0 && x < last) {  // between elements, as most points are
      index[0] = static_cast<int64_t>(x);
      index[1] = index[0] + 1;
      weight[1] = x - static_cast<T>(index[0]);
      weight[0] = 1 - weight[1];
      return;
    }
    if (filter == Filter::kNearest) x = std::nearbyint(x);
    if (border == Border::kClamp && filter != Filter::kCubic && !std::isnan(x))
      x = std::clamp(x, T(0), last);
    if (border == Border::kReflect && (x < low || x > low + span)) {
      x = reflect(x, low, span);
      if (filter == Filter::kNearest) x = std::trunc(x);
    }
    if (std::isnan(x)) x = T(-8);
    x = std::clamp(x, T(-16), last + 16);
    const T base = std::floor(x);
    const int first = filter == Filter::kCubic ? -1 : 0;
    for (int k = 0; k < taps(); ++k) {
      T at = base + static_cast<T>(k + first);
      weight[k] = filter == Filter::kNearest ? T(1)
                  : filter == Filter::kCubic ? cubic_weight(x - at)
                  : k == 0                   ? 1 - (x - base)
                                             : x - base;
      if (border == Border::kZeros && (at < 0 || at > last)) weight[k] = 0;
      if (border == Border::kReflect) at = std::trunc(reflect(at, low, span));
      index[k] = static_cast<int64_t>(std::clamp(at, T(0), last));
    }
  }
};

/// The neighbors of points and their weights, [taps][kBlock].
template <class T>
void find_taps(const std::vector<Axis<T>>& axes, const T* coordinates, int64_t count, T* weights,
               int32_t* indices) {
  for (int64_t p = 0; p < count; ++p) {
    int64_t used = 1;
    weights[p] = 1;
    indices[p] = 0;
    for (const Axis<T>& axis : axes) {
      int64_t index[4];
      T weight[4];
      const int each = axis.taps();
      axis.find(*coordinates++, index, weight);
      for (int64_t k = used - 1; k >= 0; --k) {
        const T w = weights[k * kBlock + p];
        const int64_t at = indices[k * kBlock + p] * axis.size;
        for (int j = each - 1; j >= 0; --j) {
          weights[(k * each + j) * kBlock + p] = w * weight[j];
          indices[(k * each + j) * kBlock + p] = static_cast<int32_t>(at + index[j]);
        }
      }
      used *= each;
    }
  }
}

/// The four neighbors of points of a plane, and their weights, for bilinear interpolation.
template <class T>
void find_four_taps(const Axis<T>& y, const Axis<T>& x, const T* coordinates, int64_t count,
                    T* weights, int32_t* indices) {
  for (int64_t p = 0; p < count; ++p) {
    int64_t row[4], column[4];
    T row_weight[4], column_weight[4];
    y.find(coordinates[2 * p], row, row_weight);
    x.find(coordinates[2 * p + 1], column, column_weight);
    for (int k = 0; k < 4; ++k) {
      weights[k * kBlock + p] = row_weight[k / 2] * column_weight[k % 2];
      indices[k * kBlock + p] = static_cast<int32_t>(row[k / 2] * x.size + column[k % 2]);
    }
  }
}

/// The four neighbors of bilinear interpolation in one go.
template <class T>
void add_four_taps(const T* plane, const T* weights, const int32_t* indices, int64_t count, T* to) {
  const T *const w0 = weights, *const w1 = w0 + kBlock, *const w2 = w1 + kBlock,
                 *const w3 = w2 + kBlock;
  const int32_t *const i0 = indices, *const i1 = i0 + kBlock, *const i2 = i1 + kBlock,
                       *const i3 = i2 + kBlock;
  for (int64_t p = 0; p < count; ++p)
    to[p] =
        w0[p] * plane[i0[p]] + w1[p] * plane[i1[p]] + w2[p] * plane[i2[p]] + w3[p] * plane[i3[p]];
}

template <class T>
std::unique_ptr<Kernel> sample(const KernelRequest& request) {
  const SamplePointsAttrs attrs(request.attrs);
  const Dims shape = request.operands[0].shape;
  const size_t rank = shape.size() - 2;
  const int64_t batch = shape[0], channels = shape[1], points = request.operands[1].shape[1];
  int64_t volume = 1, taps = 1;
  std::vector<Axis<T>> axes;
  for (size_t i = 0; i < rank; ++i) {
    volume *= shape[i + 2];
    axes.push_back({attrs.mode == "nearest"    ? Filter::kNearest
                    : attrs.mode == "bilinear" ? Filter::kLinear
                                               : Filter::kCubic,
                    attrs.padding_mode == "zeros"    ? Border::kZeros
                    : attrs.padding_mode == "border" ? Border::kClamp
                                                     : Border::kReflect,
                    attrs.align_corners, shape[i + 2]});
    taps *= axes.back().taps();
  }
  if (taps > kMaxTaps || volume > INT32_MAX) return nullptr;
  const int64_t blocks = (points + kBlock - 1) / kBlock, tasks = batch * blocks;
  const int64_t workers = std::max<int64_t>(1, std::min<int64_t>(tasks, 64));
  const size_t table = static_cast<size_t>(taps * kBlock);
  const size_t bytes = round_up_to_cache_line(table * (sizeof(int32_t) + sizeof(T)));
  return make_kernel(
      [=](const RunContext& context, void* const* operands, void* const* results) {
        const T* const x = static_cast<const T*>(operands[0]);
        const T* const coordinates = static_cast<const T*>(operands[1]);
        T* const out = static_cast<T*>(results[0]);
        for_each_task(tasks, workers, context.scratch, bytes, [&](int64_t task, std::byte* memory) {
          T* const weights = reinterpret_cast<T*>(memory);
          int32_t* const indices = reinterpret_cast<int32_t*>(weights + table);
          const int64_t n = task / blocks, begin = task % blocks * kBlock,
                        count = std::min(kBlock, points - begin);
          const T* const places = coordinates + (n * points + begin) * static_cast<int64_t>(rank);
          if (rank == 2 && taps == 4)
            find_four_taps(axes[0], axes[1], places, count, weights, indices);
          else
            find_taps(axes, places, count, weights, indices);
          for (int64_t c = 0; c < channels; ++c) {
            const T* const plane = x + (n * channels + c) * volume;
            T* const to = out + (n * channels + c) * points + begin;
            if (taps == 4) {
              add_four_taps(plane, weights, indices, count, to);
              continue;
            }
            for (int64_t p = 0; p < count; ++p) to[p] = weights[p] * plane[indices[p]];
            for (int64_t k = 1; k < taps; ++k) {
              const T* const w = weights + k * kBlock;
              const int32_t* const at = indices + k * kBlock;
              for (int64_t p = 0; p < count; ++p) to[p] += w[p] * plane[at[p]];
            }
          }
        });
      },
      static_cast<size_t>(workers) * bytes);
}

}  // namespace

std::unique_ptr<Kernel> prepare_sample_points(const KernelRequest& request) {
  const DType dtype = request.operands[0].dtype;
  if (request.results[0].size() == 0) return nothing_to_do();
  if (dtype == DType::kF32) return sample<float>(request);
  if (dtype == DType::kF64) return sample<double>(request);
  return nullptr;
}

}  // namespace paddle::cpu
