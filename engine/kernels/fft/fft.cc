// Fourier transforms along axes. Rows are transformed several at a time; two real rows go through
// one complex transform, as its real and its imaginary part.

#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <cstring>
#include <memory>

#include "kernels/common/rows.h"
#include "kernels/fft/passes_simd.h"
#include "kernels/fft/plan.h"
#include "ops/generated/fft.h"
#include "tensor/complex.h"

namespace paddle::cpu {
namespace {

constexpr int64_t kWorkers = 16;
constexpr int64_t kBufferBytes = int64_t{1} << 20;  // of a worker, to stay in the L2 cache

/// The transforms along one axis of a tensor.
template <class T>
class AxisTransform {
 public:
  AxisTransform(Rows rows, int64_t rows_per_lane, bool forward, double scale)
      : plan_(std::make_shared<FftPlan<T>>(rows.length)),
        rows_(rows),
        per_lane_(rows_per_lane),
        forward_(forward),
        scale_(static_cast<T>(scale)) {
    const int64_t each = plan_->buffer_length() * static_cast<int64_t>(4 * sizeof(T));
    // Whole cache lines of neighboring rows.
    const int64_t most = 64 / static_cast<int64_t>(sizeof(T)), least = rows.inner > 1 ? 4 : 1;
    lanes_ = std::clamp<int64_t>(kBufferBytes / std::max<int64_t>(1, each), least, most);
    const int64_t line = rows.inner > 1 ? rows.inner : rows.count();
    lanes_ = std::min(lanes_, std::max<int64_t>(1, (line + per_lane_ - 1) / per_lane_));
    if (rows.inner == 1 && plan_->by_row()) lanes_ = 1;
    line_ = line;
    groups_per_line_ = (line + lanes_ * per_lane_ - 1) / (lanes_ * per_lane_);
    groups_ = line == 0 ? 0 : rows.count() / line * groups_per_line_;
    worker_bytes_ = round_up_to_cache_line(static_cast<size_t>(each * lanes_));
  }

  size_t scratch_bytes() const {
    return worker_bytes_ * static_cast<size_t>(std::min(kWorkers, groups_));
  }

  /// Calls `load(parts, lanes, rows)`, transforms, and calls `store(parts, lanes, rows)`, where
  /// `rows` are the first row and the number of rows of a group.
  template <class Load, class Store>
  void run(std::byte* scratch, const Load& load, const Store& store) const {
    const int64_t workers = std::min(kWorkers, groups_);
    const int64_t cost =
        rows_.length * lanes_ * 16 * std::max<int64_t>(1, groups_ / std::max<int64_t>(1, workers));
    for_each_task(
        groups_, workers, scratch, worker_bytes_,
        [&](int64_t group, std::byte* buffer) {
          const int64_t start = group % groups_per_line_ * lanes_ * per_lane_;
          const int64_t first = group / groups_per_line_ * line_ + start;
          const int64_t count = std::min(lanes_ * per_lane_, line_ - start);
          const int64_t lanes = (count + per_lane_ - 1) / per_lane_;
          T* const at = reinterpret_cast<T*>(buffer);
          const int64_t size = plan_->buffer_length() * lanes_;
          const Parts<T> x{at, at + size}, y{at + 2 * size, at + 3 * size};
          load(x, lanes, first, count);
          store(forward_ ? plan_->forward(x, y, lanes)
                         : plan_->forward(x.swapped(), y.swapped(), lanes).swapped(),
                lanes, first, count);
        },
        std::max<int64_t>(1, 65536 / std::max<int64_t>(1, cost)));
  }

  const Rows& rows() const { return rows_; }
  int64_t length() const { return rows_.length; }
  T scale() const { return scale_; }

 private:
  std::shared_ptr<FftPlan<T>> plan_;
  Rows rows_;
  int64_t per_lane_;
  bool forward_;
  T scale_;
  int64_t lanes_, line_, groups_per_line_, groups_;
  size_t worker_bytes_;
};

/// Rows along the axis of a tensor that has `length` elements there instead.
Rows with_length(Rows rows, int64_t length) {
  rows.length = length;
  return rows;
}

/// Calls `each(lane, k)` for all lanes and k in an order in which both the rows (whose elements are
/// `inner` apart, neighbors where it is above 1) and the buffers are read and written by cache
/// lines.
template <class Each>
void for_each_element(int64_t lanes, int64_t count, int64_t inner, const Each& each) {
  if (inner > 1) {
    for (int64_t k = 0; k < count; ++k)
      for (int64_t l = 0; l < lanes; ++l) each(l, k);
    return;
  }
  constexpr int64_t kTile = 32;
  for (int64_t first = 0; first < count; first += kTile) {
    const int64_t last = std::min(count, first + kTile);
    for (int64_t l = 0; l < lanes; ++l)
      for (int64_t k = first; k < last; ++k) each(l, k);
  }
}

/// Where the rows of a group start.
struct RowStarts {
  std::array<int64_t, 64> at;
  RowStarts(const Rows& rows, int64_t first, int64_t count) {
    for (int64_t i = 0; i < count; ++i) at[static_cast<size_t>(i)] = rows.start(first + i);
  }
  int64_t operator[](int64_t i) const { return at[static_cast<size_t>(i)]; }
};

/// `in` may be `out`.
template <class T>
void transform_complex(const AxisTransform<T>& axis, const std::complex<T>* in,
                       std::complex<T>* out, std::byte* scratch) {
  const Rows rows = axis.rows();
  const FftRowLoops<T> loops = fft_row_loops<T>();
  axis.run(
      scratch,
      [&](Parts<T> x, int64_t lanes, int64_t first, int64_t count) {
        const RowStarts start(rows, first, count);
        if (lanes == 1 && rows.inner == 1) return loops.split(in + start[0], rows.length, x);
        for_each_element(count, rows.length, rows.inner, [&](int64_t l, int64_t k) {
          const std::complex<T> z = in[start[l] + k * rows.inner];
          x.re[k * lanes + l] = z.real();
          x.im[k * lanes + l] = z.imag();
        });
      },
      [&](Parts<T> y, int64_t lanes, int64_t first, int64_t count) {
        const T scale = axis.scale();
        const RowStarts start(rows, first, count);
        if (lanes == 1 && rows.inner == 1) return loops.join(y, rows.length, scale, out + start[0]);
        for_each_element(count, rows.length, rows.inner, [&](int64_t l, int64_t k) {
          out[start[l] + k * rows.inner] = {y.re[k * lanes + l] * scale,
                                            y.im[k * lanes + l] * scale};
        });
      });
}

/// The first `bins` of each spectrum.
template <class T>
void transform_real(const AxisTransform<T>& axis, const T* in, std::complex<T>* out, int64_t bins,
                    bool forward, std::byte* scratch) {
  const Rows rows = axis.rows(), to = with_length(rows, bins);
  const FftRowLoops<T> loops = fft_row_loops<T>();
  const int64_t n = rows.length;
  axis.run(
      scratch,
      [&](Parts<T> x, int64_t lanes, int64_t first, int64_t count) {
        if (count % 2 != 0)
          for (int64_t k = 0; k < n; ++k) x.im[k * lanes + lanes - 1] = 0;
        const RowStarts start(rows, first, count);
        if (lanes == 1 && rows.inner == 1) {
          std::copy_n(in + start[0], n, x.re);
          if (count == 2) std::copy_n(in + start[1], n, x.im);
          return;
        }
        for_each_element(count, n, rows.inner, [&](int64_t i, int64_t k) {
          T* part = i % 2 == 0 ? x.re : x.im;
          part[k * lanes + i / 2] = in[start[i] + k * rows.inner];
        });
      },
      [&](Parts<T> y, int64_t lanes, int64_t first, int64_t count) {
        const T half = axis.scale() / 2, sign = forward ? T(1) : T(-1);
        const RowStarts start(to, first, count);
        if (lanes == 1 && to.inner == 1)
          return loops.split_pair(y, n, bins, half, sign, out + start[0],
                                  count == 2 ? out + start[1] : nullptr);
        for_each_element(count, bins, to.inner, [&](int64_t i, int64_t k) {
          const int64_t a = k * lanes + i / 2, b = (k == 0 ? 0 : n - k) * lanes + i / 2;
          const T real = i % 2 == 0 ? y.re[a] + y.re[b] : y.im[a] + y.im[b];
          const T imag = i % 2 == 0 ? y.im[a] - y.im[b] : y.re[b] - y.re[a];
          out[start[i] + k * to.inner] = {real * half, imag * half * sign};
        });
      });
}

/// Real values of Hermitian spectra, whose first half is given.
template <class T>
void transform_hermitian(const AxisTransform<T>& axis, const std::complex<T>* in, T* out,
                         std::byte* scratch) {
  const Rows rows = axis.rows();
  const int64_t n = rows.length, bins = n / 2 + 1;
  const Rows from = with_length(rows, bins);
  axis.run(
      scratch,
      [&](Parts<T> x, int64_t lanes, int64_t first, int64_t count) {
        std::fill_n(x.re, n * lanes, T(0));
        std::fill_n(x.im, n * lanes, T(0));
        const RowStarts start(from, first, count);
        for_each_element(count, bins, from.inner, [&](int64_t i, int64_t k) {
          const std::complex<T> z = in[start[i] + k * from.inner];
          const int64_t mirror = k == 0 ? 0 : n - k;
          const int64_t a = k * lanes + i / 2, b = mirror * lanes + i / 2;
          const bool alone = mirror == k;
          const T re = z.real(), im = alone ? T(0) : z.imag();
          if (i % 2 == 0) {
            x.re[a] += re;
            x.im[a] += im;
            if (alone) return;
            x.re[b] += re;
            x.im[b] -= im;
          } else {  // times i
            x.re[a] -= im;
            x.im[a] += re;
            if (alone) return;
            x.re[b] += im;
            x.im[b] += re;
          }
        });
      },
      [&](Parts<T> y, int64_t lanes, int64_t first, int64_t count) {
        const RowStarts start(rows, first, count);
        for_each_element(count, n, rows.inner, [&](int64_t i, int64_t k) {
          const T* part = i % 2 == 0 ? y.re : y.im;
          out[start[i] + k * rows.inner] = part[k * lanes + i / 2] * axis.scale();
        });
      });
}

/// Axes counted from 0, in the given order.
std::vector<int64_t> counted(const std::vector<int64_t>& axes, size_t rank) {
  std::vector<int64_t> out = axes;
  for (int64_t& axis : out)
    if (axis < 0) axis += static_cast<int64_t>(rank);
  return out;
}

double scale_of(const std::string& normalization, bool forward, const std::vector<int64_t>& axes,
                const Dims& shape) {
  double count = 1;
  for (const int64_t axis : axes) count *= static_cast<double>(shape[static_cast<size_t>(axis)]);
  if (normalization == "ortho") return 1 / std::sqrt(count);
  return (normalization == "forward") == forward ? 1 / count : 1;
}

/// Complex transforms along axes one after the other; the last one scales.
template <class T>
struct ComplexAxes {
  std::vector<AxisTransform<T>> axes;
  size_t scratch = 0;

  ComplexAxes(const Dims& shape, const std::vector<int64_t>& along, bool forward, double scale) {
    for (size_t i = 0; i < along.size(); ++i) {
      axes.emplace_back(Rows::of(shape, along[i]), 1, forward, i + 1 == along.size() ? scale : 1);
      scratch = std::max(scratch, axes.back().scratch_bytes());
    }
  }
  void run(const std::complex<T>* in, std::complex<T>* out, std::byte* buffer) const {
    for (const AxisTransform<T>& axis : axes) {
      transform_complex(axis, in, out, buffer);
      in = out;
    }
  }
};

std::vector<int64_t> without_last(std::vector<int64_t> axes) {
  axes.pop_back();
  return axes;
}

}  // namespace

std::unique_ptr<Kernel> prepare_fft_c2c(const KernelRequest& request) {
  const FftC2cAttrs attrs(request.attrs);
  const Layout& x = request.operands[0];
  if (x.size() == 0) return nothing_to_do();
  const std::vector<int64_t> along = counted(attrs.axes, x.shape.size());
  const double scale = scale_of(attrs.normalization, attrs.forward, along, x.shape);
  return visit_complex(x.dtype, [&](auto tag) {
    using C = typename decltype(tag)::type;
    const ComplexAxes<typename C::value_type> axes(x.shape, along, attrs.forward, scale);
    const size_t bytes = static_cast<size_t>(x.size()) * sizeof(C);
    return make_kernel(
        [axes, bytes](const RunContext& context, void* const* operands, void* const* results) {
          if (axes.axes.empty())
            std::memcpy(results[0], operands[0], bytes);
          else
            axes.run(static_cast<const C*>(operands[0]), static_cast<C*>(results[0]),
                     context.scratch);
        },
        axes.scratch);
  });
}

std::unique_ptr<Kernel> prepare_fft_r2c(const KernelRequest& request) {
  const FftR2cAttrs attrs(request.attrs);
  const Layout &x = request.operands[0], &result = request.results[0];
  if (x.size() == 0) return nothing_to_do();
  const std::vector<int64_t> along = counted(attrs.axes, x.shape.size());
  const double scale = scale_of(attrs.normalization, attrs.forward, along, x.shape);
  const int64_t bins = result.shape[static_cast<size_t>(along.back())];
  return visit_complex(result.dtype, [&](auto tag) {
    using C = typename decltype(tag)::type;
    using T = typename C::value_type;
    const AxisTransform<T> last(Rows::of(x.shape, along.back()), 2, true, scale);
    const ComplexAxes<T> others(result.shape, without_last(along), attrs.forward, 1);
    const size_t scratch = std::max(last.scratch_bytes(), others.scratch);
    return make_kernel(
        [=, forward = attrs.forward](const RunContext& context, void* const* operands,
                                     void* const* results) {
          C* const out = static_cast<C*>(results[0]);
          transform_real(last, static_cast<const T*>(operands[0]), out, bins, forward,
                         context.scratch);
          others.run(out, out, context.scratch);
        },
        scratch);
  });
}

std::unique_ptr<Kernel> prepare_fft_c2r(const KernelRequest& request) {
  const FftC2rAttrs attrs(request.attrs);
  const Layout &x = request.operands[0], &result = request.results[0];
  if (result.size() == 0) return nothing_to_do();
  const std::vector<int64_t> along = counted(attrs.axes, x.shape.size());
  const double scale = scale_of(attrs.normalization, attrs.forward, along, result.shape);
  return visit_complex(x.dtype, [&](auto tag) {
    using C = typename decltype(tag)::type;
    using T = typename C::value_type;
    const ComplexAxes<T> others(x.shape, without_last(along), attrs.forward, 1);
    const AxisTransform<T> last(Rows::of(result.shape, along.back()), 2, attrs.forward, scale);
    const size_t copy =
        others.axes.empty() ? 0 : round_up_to_cache_line(static_cast<size_t>(x.size()) * sizeof(C));
    return make_kernel(
        [=](const RunContext& context, void* const* operands, void* const* results) {
          const C* in = static_cast<const C*>(operands[0]);
          std::byte* const scratch = context.scratch + copy;
          if (copy > 0) {
            C* const partial = reinterpret_cast<C*>(context.scratch);
            others.run(in, partial, scratch);
            in = partial;
          }
          transform_hermitian(last, in, static_cast<T*>(results[0]), scratch);
        },
        copy + std::max(last.scratch_bytes(), others.scratch));
  });
}

}  // namespace paddle::cpu
