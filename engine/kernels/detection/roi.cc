// Region pooling. A bin of roi_align is the mean over a grid of bilinear samples; the grid is
// regular, so the bin is a weighted sum with one weight per row times one per column. A region's
// weights are computed once and used for all channels.

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/parallel.h"
#include "ops/core/kernel.h"
#include "ops/generated/detection.h"

namespace paddle::cpu {
namespace {

/// The pixels of one axis that each bin reads, and their weights.
struct Bins {
  std::vector<int32_t> begin;  ///< of each bin in the two lists below, and the end
  std::vector<int32_t> index;
  std::vector<double> weight;
  std::vector<int32_t> first, last;  ///< the pixels [first, last) that a bin reads

  void clear() {
    begin.assign(1, 0);
    index.clear();
    weight.clear();
    first.clear();
    last.clear();
  }
  /// Adds a weight to the current bin; equal neighboring pixels are merged.
  void add(int64_t pixel, double w) {
    const auto at = static_cast<int32_t>(pixel);
    for (size_t i = index.size(); i > static_cast<size_t>(begin.back()) && i + 4 > index.size();
         --i)
      if (index[i - 1] == at) {
        weight[i - 1] += w;
        return;
      }
    index.push_back(at);
    weight.push_back(w);
  }
  void close() {
    const auto from = index.begin() + begin.back();
    const bool any = from != index.end();
    first.push_back(any ? *std::min_element(from, index.end()) : 0);
    last.push_back(any ? *std::max_element(from, index.end()) + 1 : 0);
    begin.push_back(static_cast<int32_t>(index.size()));
  }
};

struct RoiOptions {
  double scale = 1;
  int64_t ratio = -1;
  bool aligned = true;
  int64_t rows = 1, columns = 1;  ///< bins
};

constexpr int64_t kMaxSamples = int64_t{1} << 16;  // per axis and bin

/// Samples of `bins` bins of the range [from, to) of an axis.
class SampleGrid {
 public:
  SampleGrid(std::string_view op, double from, double to, int64_t bins, const RoiOptions& o)
      : bins_(bins) {
    const double shift = o.aligned ? 0.5 : 0;
    from_ = from * o.scale - shift;
    double length = to * o.scale - shift - from_;
    if (!o.aligned) length = std::max(length, 1.0);
    if (!std::isfinite(from_) || !std::isfinite(length) || std::abs(length) > 0x1p30)
      fail(ErrorCode::kData, op, ": a region from ", from, " to ", to, " is out of range");
    size_ = length / static_cast<double>(bins);
    count_ = o.ratio > 0 ? o.ratio : std::max<int64_t>(0, static_cast<int64_t>(std::ceil(size_)));
    if (count_ > kMaxSamples / bins)
      fail(ErrorCode::kData, op, ": a region from ", from, " to ", to, " has too many samples");
  }
  int64_t count() const { return count_; }
  double at(int64_t bin, int64_t sample) const {
    return from_ + static_cast<double>(bin) * size_ +
           (static_cast<double>(sample) + 0.5) * size_ / static_cast<double>(count_);
  }
  /// The lower neighbor of a coordinate and the weight of the upper one; false outside.
  static bool neighbors(double x, int64_t size, int64_t& low, double& part) {
    if (size == 0 || !(x >= -1 && x <= static_cast<double>(size))) return false;
    x = std::clamp(x, 0.0, static_cast<double>(size - 1));
    low = static_cast<int64_t>(x);
    part = x - static_cast<double>(low);
    return true;
  }
  void fill(Bins& bins, int64_t size) const {
    bins.clear();
    const double share = 1 / static_cast<double>(std::max<int64_t>(count_, 1));
    for (int64_t b = 0; b < bins_; ++b) {
      for (int64_t s = 0; s < count_; ++s) {
        int64_t low;
        double part;
        if (!neighbors(at(b, s), size, low, part)) continue;
        bins.add(low, (1 - part) * share);
        if (part > 0) bins.add(std::min(low + 1, size - 1), part * share);
      }
      bins.close();
    }
  }

 private:
  int64_t bins_, count_ = 0;
  double from_ = 0, size_ = 0;
};

int64_t image_of(std::string_view op, const int64_t* images, int64_t r, int64_t batch) {
  if (images[r] < 0 || images[r] >= batch)
    fail(ErrorCode::kData, op, ": region ", r, " is of image ", images[r], ", there are ", batch);
  return images[r];
}

/// The weighted sums over bins of one plane.
template <class T>
void pool_plane(const T* plane, int64_t width, const Bins& rows, const Bins& columns, T* line,
                T* out) {
  const size_t bins = columns.first.size();
  int32_t from = INT32_MAX, to = 0;
  for (size_t b = 0; b < bins; ++b)
    if (columns.last[b] > columns.first[b]) {
      from = std::min(from, columns.first[b]);
      to = std::max(to, columns.last[b]);
    }
  for (size_t r = 0; r < rows.first.size(); ++r) {
    std::fill(line + std::min(from, to), line + to, T(0));
    for (int32_t k = rows.begin[r]; k < rows.begin[r + 1]; ++k) {
      const T w = static_cast<T>(rows.weight[static_cast<size_t>(k)]);
      const T* const source = plane + int64_t{rows.index[static_cast<size_t>(k)]} * width;
      for (int32_t i = from; i < to; ++i) line[i] += w * source[i];
    }
    for (size_t b = 0; b < bins; ++b) {
      T sum = 0;
      for (int32_t k = columns.begin[b]; k < columns.begin[b + 1]; ++k)
        sum += static_cast<T>(columns.weight[static_cast<size_t>(k)]) *
               line[columns.index[static_cast<size_t>(k)]];
      *out++ = sum;
    }
  }
}

/// Its adjoint: adds the gradient of bins to a plane.
template <class T>
void spread_plane(const T* grad, int64_t width, const Bins& rows, const Bins& columns, T* plane) {
  const size_t bins = columns.first.size();
  for (size_t r = 0; r < rows.first.size(); ++r)
    for (int32_t k = rows.begin[r]; k < rows.begin[r + 1]; ++k) {
      const T w = static_cast<T>(rows.weight[static_cast<size_t>(k)]);
      T* const target = plane + int64_t{rows.index[static_cast<size_t>(k)]} * width;
      for (size_t b = 0; b < bins; ++b) {
        const T g = w * grad[r * bins + b];
        for (int32_t j = columns.begin[b]; j < columns.begin[b + 1]; ++j)
          target[columns.index[static_cast<size_t>(j)]] +=
              g * static_cast<T>(columns.weight[static_cast<size_t>(j)]);
      }
    }
}

/// The largest weighted neighbor of all samples of each bin.
template <class T>
void max_plane(const T* plane, int64_t height, int64_t width, const SampleGrid& y,
               const SampleGrid& x, int64_t rows, int64_t columns, T* out) {
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < columns; ++c) {
      T best = 0;
      bool first = true;
      const auto take = [&](T value) {
        best = first ? value : std::max(best, value);
        first = false;
      };
      for (int64_t i = 0; i < y.count(); ++i)
        for (int64_t j = 0; j < x.count(); ++j) {
          int64_t top, left;
          double dy, dx;
          if (!SampleGrid::neighbors(y.at(r, i), height, top, dy) ||
              !SampleGrid::neighbors(x.at(c, j), width, left, dx)) {
            take(0);
            continue;
          }
          const int64_t bottom = std::min(top + 1, height - 1),
                        right = std::min(left + 1, width - 1);
          take(static_cast<T>((1 - dy) * (1 - dx)) * plane[top * width + left]);
          take(static_cast<T>((1 - dy) * dx) * plane[top * width + right]);
          take(static_cast<T>(dy * (1 - dx)) * plane[bottom * width + left]);
          take(static_cast<T>(dy * dx) * plane[bottom * width + right]);
        }
      *out++ = best;
    }
}

template <class Attributes>
RoiOptions options_of(const Attributes& a) {
  RoiOptions o;
  o.scale = a.spatial_scale;
  if constexpr (requires { a.sampling_ratio; }) {
    o.ratio = a.sampling_ratio;
    o.aligned = a.aligned;
  }
  if constexpr (requires { a.output_size; }) {
    o.rows = a.output_size[0];
    o.columns = a.output_size[1];
  }
  return o;
}

template <class F>
std::unique_ptr<Kernel> for_float(const KernelRequest& request, F f) {
  if (request.results[0].size() == 0) return nothing_to_do();
  if (request.results[0].dtype == DType::kF32) return f(float());
  if (request.results[0].dtype == DType::kF64) return f(double());
  fail(ErrorCode::kUsage, request.op.name(), ": x must be float32 or float64");
}

/// The pixels of each bin of psroi_pool.
struct PositionBins {
  std::vector<std::pair<int64_t, int64_t>> rows, columns;

  template <class T>
  PositionBins(std::string_view op, const T* box, double scale, int64_t row_count,
               int64_t column_count, int64_t height, int64_t width) {
    const auto ranges = [&](T low, T high, int64_t count, int64_t size) {
      if (!(std::abs(low) < T(0x1p30) && std::abs(high) < T(0x1p30)))
        fail(ErrorCode::kData, op, ": a region from ", low, " to ", high, " is out of range");
      const T start = std::round(low) * static_cast<T>(scale),
              end = (std::round(high) + 1) * static_cast<T>(scale);
      const T bin = std::max(end - start, T(0.1)) / static_cast<T>(count);
      std::vector<std::pair<int64_t, int64_t>> out;
      for (int64_t i = 0; i < count; ++i) {
        const auto clip = [&](T at) {
          return static_cast<int64_t>(std::clamp(at, T(0), static_cast<T>(size)));
        };
        out.emplace_back(clip(std::floor(static_cast<T>(i) * bin + start)),
                         clip(std::ceil(static_cast<T>(i + 1) * bin + start)));
      }
      return out;
    };
    rows = ranges(box[1], box[3], row_count, height);
    columns = ranges(box[0], box[2], column_count, width);
  }
};

}  // namespace

std::unique_ptr<Kernel> prepare_roi_align_of(const KernelRequest& request) {
  const RoiAlignOfAttrs attrs(request.attrs);
  const RoiOptions o = options_of(attrs);
  const bool average = attrs.mode == "avg";
  const Dims shape = request.operands[0].shape;
  const int64_t regions = request.operands[1].shape[0], channels = shape[1], height = shape[2],
                width = shape[3], bins = o.rows * o.columns;
  return for_float(request, [&]<class T>(T) {
    return make_kernel([=, op = std::string(request.op.name())](
                           const RunContext&, void* const* operands, void* const* results) {
      const T* const x = static_cast<const T*>(operands[0]);
      const T* const boxes = static_cast<const T*>(operands[1]);
      const int64_t* const images = static_cast<const int64_t*>(operands[2]);
      parallel_for(regions, 1, [&](int64_t begin, int64_t end) {
        Bins rows, columns;
        std::vector<T> line(static_cast<size_t>(width));
        for (int64_t r = begin; r < end; ++r) {
          const T* const box = boxes + 4 * r;
          const int64_t image = image_of(op, images, r, shape[0]);
          const SampleGrid y(op, static_cast<double>(box[1]), static_cast<double>(box[3]), o.rows,
                             o);
          const SampleGrid z(op, static_cast<double>(box[0]), static_cast<double>(box[2]),
                             o.columns, o);
          const T* const planes = x + image * channels * height * width;
          T* const out = static_cast<T*>(results[0]) + r * channels * bins;
          if (average) {
            y.fill(rows, height);
            z.fill(columns, width);
          }
          for (int64_t c = 0; c < channels; ++c) {
            const T* const plane = planes + c * height * width;
            if (average)
              pool_plane(plane, width, rows, columns, line.data(), out + c * bins);
            else
              max_plane(plane, height, width, y, z, o.rows, o.columns, out + c * bins);
          }
        }
      });
    });
  });
}

std::unique_ptr<Kernel> prepare_roi_align_grad(const KernelRequest& request) {
  RoiOptions o = options_of(RoiAlignGradAttrs(request.attrs));
  const Dims shape = request.results[0].shape;
  const int64_t regions = request.operands[1].shape[0], channels = shape[1], height = shape[2],
                width = shape[3];
  o.rows = request.operands[0].shape[2];
  o.columns = request.operands[0].shape[3];
  const int64_t bins = o.rows * o.columns;
  return for_float(request, [&]<class T>(T) {
    return make_kernel([=, op = std::string(request.op.name())](
                           const RunContext&, void* const* operands, void* const* results) {
      const T* const grad = static_cast<const T*>(operands[0]);
      const T* const boxes = static_cast<const T*>(operands[1]);
      const int64_t* const images = static_cast<const int64_t*>(operands[2]);
      std::vector<Bins> rows(static_cast<size_t>(regions)), columns(rows.size());
      for (int64_t r = 0; r < regions; ++r) {
        const T* const box = boxes + 4 * r;
        image_of(op, images, r, shape[0]);
        SampleGrid(op, static_cast<double>(box[1]), static_cast<double>(box[3]), o.rows, o)
            .fill(rows[static_cast<size_t>(r)], height);
        SampleGrid(op, static_cast<double>(box[0]), static_cast<double>(box[2]), o.columns, o)
            .fill(columns[static_cast<size_t>(r)], width);
      }
      parallel_for(channels, 1, [&](int64_t begin, int64_t end) {
        for (int64_t c = begin; c < end; ++c) {
          for (int64_t n = 0; n < shape[0]; ++n)
            std::fill_n(static_cast<T*>(results[0]) + (n * channels + c) * height * width,
                        height * width, T(0));
          for (int64_t r = 0; r < regions; ++r)
            spread_plane(grad + (r * channels + c) * bins, width, rows[static_cast<size_t>(r)],
                         columns[static_cast<size_t>(r)],
                         static_cast<T*>(results[0]) + (images[r] * channels + c) * height * width);
        }
      });
    });
  });
}

std::unique_ptr<Kernel> prepare_roi_pool_of(const KernelRequest& request) {
  const RoiOptions o = options_of(RoiPoolOfAttrs(request.attrs));
  const Dims shape = request.operands[0].shape;
  const int64_t regions = request.operands[1].shape[0], channels = shape[1], height = shape[2],
                width = shape[3], bins = o.rows * o.columns;
  return for_float(request, [&]<class T>(T) {
    return make_kernel([=, op = std::string(request.op.name())](
                           const RunContext&, void* const* operands, void* const* results) {
      const T* const x = static_cast<const T*>(operands[0]);
      const T* const boxes = static_cast<const T*>(operands[1]);
      const int64_t* const images = static_cast<const int64_t*>(operands[2]);
      // The pixels of each bin: the region is rounded to whole pixels, at least one; halves are
      // rounded away from zero and the arithmetic is in float32, as in other implementations.
      const auto ranges = [&](T low, T high, int64_t count, int64_t size) {
        const auto scale = static_cast<float>(o.scale);
        const float from = static_cast<float>(low) * scale, to = static_cast<float>(high) * scale;
        if (!(std::abs(from) < 0x1p30F && std::abs(to) < 0x1p30F))
          fail(ErrorCode::kData, op, ": a region from ", low, " to ", high, " is out of range");
        const float first = std::round(from),
                    bin = std::max(std::round(to) - first + 1, 1.0F) / static_cast<float>(count);
        std::vector<std::pair<int64_t, int64_t>> out;
        for (int64_t i = 0; i < count; ++i) {
          const auto clip = [&](float at) {
            return static_cast<int64_t>(std::clamp(first + at, 0.0F, static_cast<float>(size)));
          };
          out.emplace_back(clip(std::floor(static_cast<float>(i) * bin)),
                           clip(std::ceil(static_cast<float>(i + 1) * bin)));
        }
        return out;
      };
      parallel_for(regions, 1, [&](int64_t begin, int64_t end) {
        for (int64_t r = begin; r < end; ++r) {
          const T* const box = boxes + 4 * r;
          const int64_t image = image_of(op, images, r, shape[0]);
          const auto columns = ranges(box[0], box[2], o.columns, width);
          const auto rows = ranges(box[1], box[3], o.rows, height);
          T* out = static_cast<T*>(results[0]) + r * channels * bins;
          int64_t* place = static_cast<int64_t*>(results[1]) + r * channels * bins;
          for (int64_t c = 0; c < channels; ++c) {
            const int64_t base = (image * channels + c) * height * width;
            for (const auto& [top, bottom] : rows)
              for (const auto& [left, right] : columns) {
                int64_t best = -1;
                for (int64_t i = top; i < bottom; ++i)
                  for (int64_t j = left; j < right; ++j) {
                    const int64_t at = base + i * width + j;
                    if (best < 0 || x[at] > x[best] || std::isnan(x[at])) best = at;
                  }
                *out++ = best < 0 ? T(0) : x[best];
                *place++ = best;
              }
          }
        }
      });
    });
  });
}

std::unique_ptr<Kernel> prepare_psroi_pool_of(const KernelRequest& request) {
  const RoiOptions o = options_of(PsroiPoolOfAttrs(request.attrs));
  const Dims shape = request.operands[0].shape;
  const int64_t regions = request.operands[1].shape[0], channels = shape[1], height = shape[2],
                width = shape[3], results_each = request.results[0].shape[1];
  return for_float(request, [&]<class T>(T) {
    return make_kernel([=, op = std::string(request.op.name())](
                           const RunContext&, void* const* operands, void* const* results) {
      const T* const x = static_cast<const T*>(operands[0]);
      const int64_t* const images = static_cast<const int64_t*>(operands[2]);
      parallel_for(regions, 1, [&](int64_t begin, int64_t end) {
        for (int64_t r = begin; r < end; ++r) {
          const int64_t image = image_of(op, images, r, shape[0]);
          const PositionBins bins(op, static_cast<const T*>(operands[1]) + 4 * r, o.scale, o.rows,
                                  o.columns, height, width);
          T* out = static_cast<T*>(results[0]) + r * results_each * o.rows * o.columns;
          const T* plane = x + image * channels * height * width;
          for (int64_t c = 0; c < results_each; ++c)
            for (const auto& [top, bottom] : bins.rows)
              for (const auto& [left, right] : bins.columns) {
                T sum = 0;
                for (int64_t i = top; i < bottom; ++i)
                  for (int64_t j = left; j < right; ++j) sum += plane[i * width + j];
                const bool empty = top >= bottom || left >= right;
                *out++ = empty ? T(0) : sum / static_cast<T>((bottom - top) * (right - left));
                plane += height * width;
              }
        }
      });
    });
  });
}

std::unique_ptr<Kernel> prepare_psroi_pool_grad(const KernelRequest& request) {
  const double scale = PsroiPoolGradAttrs(request.attrs).spatial_scale;
  const Dims shape = request.results[0].shape, pooled = request.operands[0].shape;
  const int64_t regions = pooled[0], channels = shape[1], height = shape[2], width = shape[3];
  return for_float(request, [&]<class T>(T) {
    return make_kernel([=, op = std::string(request.op.name())](
                           const RunContext&, void* const* operands, void* const* results) {
      const T* grad = static_cast<const T*>(operands[0]);
      const int64_t* const images = static_cast<const int64_t*>(operands[2]);
      T* const out = static_cast<T*>(results[0]);
      std::fill_n(out, shape[0] * channels * height * width, T(0));
      for (int64_t r = 0; r < regions; ++r) {
        const int64_t image = image_of(op, images, r, shape[0]);
        const PositionBins bins(op, static_cast<const T*>(operands[1]) + 4 * r, scale, pooled[2],
                                pooled[3], height, width);
        T* plane = out + image * channels * height * width;
        for (int64_t c = 0; c < pooled[1]; ++c)
          for (const auto& [top, bottom] : bins.rows)
            for (const auto& [left, right] : bins.columns) {
              const T g = *grad++ / static_cast<T>((bottom - top) * (right - left));
              for (int64_t i = top; i < bottom; ++i)
                for (int64_t j = left; j < right; ++j) plane[i * width + j] += g;
              plane += height * width;
            }
      }
    });
  });
}

}  // namespace paddle::cpu
