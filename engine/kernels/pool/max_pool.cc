// Max pooling over 2-D planes, its gradient, and the gather for the gradient of the gradient.
// Planes are read through strides, so that both data formats share the code. kMaxPool and
// kMaxPoolGrad list the algorithms.

#include <algorithm>
#include <limits>

#include "kernels/common/algorithm_table.h"
#include "kernels/common/convert.h"
#include "kernels/common/rows.h"
#include "kernels/common/upcast.h"
#include "kernels/pool/max_planes.h"
#include "kernels/pool/pool_shape.h"
#include "kernels/pool/pool_simd.h"
#include "ops/generated/nn.h"
#include "ops/nn/window.h"

namespace paddle::cpu {
namespace {

template <class T>
T lowest() {
  if constexpr (std::is_integral_v<T>) {
    return std::numeric_limits<T>::lowest();
  } else {
    return T(-std::numeric_limits<float>::infinity());
  }
}

constexpr int64_t kColumns = 256;   // windows of a row processed at a time
constexpr int64_t kMaxWindow = 64;  // window elements that are processed at once

/// 16-bit floats are compared in f32.
template <class T>
using CompareType =
    std::conditional_t<std::is_same_v<T, float16> || std::is_same_v<T, bfloat16>, float, T>;

/// One kernel element over a run of windows: where x[c * stride] exceeds value[c] or is NaN, it
/// replaces value[c] and (with kWithIndices) index[c]. Written so that the compiler vectorizes it.
template <class T, int64_t kStride, bool kWithIndices>
void update_max(const T* x, int64_t stride, int64_t n, int32_t first, int32_t step,
                CompareType<T>* value, int32_t* index) {
  if (kStride != 0) stride = kStride;
  for (int64_t c = 0; c < n; ++c) {
    const CompareType<T> candidate = static_cast<CompareType<T>>(x[c * stride]);
    const bool better = (candidate > value[c]) | (candidate != candidate);
    value[c] = better ? candidate : value[c];
    if constexpr (kWithIndices)
      index[c] = better ? first + static_cast<int32_t>(c) * step : index[c];
  }
}

/// The place of an axis that is nearest to one next to it; 0 of an empty axis.
int64_t nearest_place(int64_t place, int64_t size) {
  return std::max<int64_t>(0, std::min(place, size - 1));
}

/// One row of windows of one channel at a time, for channels first.
template <class T, bool kWithIndices>
void max_pool_rows(const PoolShape& s, const T* input, T* output, int32_t* indices) {
  const ImageStrides i = s.in(), o = s.out();
  const int64_t work = s.out_height * s.out_width * s.kernel_height * s.kernel_width;
  const auto row = [&](const T* x, int64_t r, int64_t c0, int64_t n, CompareType<T>* value,
                       int32_t* index) {
    const int64_t h0 = r * s.stride_height - s.top, w0 = c0 * s.stride_width - s.left;
    // The first element of each window; for windows in padding only the nearest element.
    for (int64_t c = 0; c < n; ++c) {
      value[c] = lowest<CompareType<T>>();
      if constexpr (kWithIndices)
        index[c] = static_cast<int32_t>(nearest_place(h0, s.height) * s.width +
                                        nearest_place(w0 + c * s.stride_width, s.width));
    }
    const int64_t stride = s.stride_width * i.column;
    const auto take = stride == 1   ? &update_max<T, 1, kWithIndices>
                      : stride == 2 ? &update_max<T, 2, kWithIndices>
                                    : &update_max<T, 0, kWithIndices>;
    for (int64_t h = std::max<int64_t>(0, h0); h < std::min(s.height, h0 + s.kernel_height); ++h)
      for (int64_t k = 0; k < s.kernel_width; ++k) {
        // Windows whose k-th column is inside: 0 <= w0 + k + c * stride_width < width.
        const int64_t w = w0 + k;
        const int64_t first = w >= 0 ? 0 : (-w + s.stride_width - 1) / s.stride_width;
        const int64_t last = w >= s.width ? 0 : std::min(n, (s.width - 1 - w) / s.stride_width + 1);
        if (first >= last) continue;
        const int64_t at = w + first * s.stride_width;
        take(x + h * i.row + at * i.column, stride, last - first,
             static_cast<int32_t>(h * s.width + at), static_cast<int32_t>(s.stride_width),
             value + first, index + first);
      }
  };
  s.for_each_plane(work, [&](int64_t from, int64_t to) {
    CompareType<T> value[kColumns];
    int32_t index[kColumns];
    for (int64_t r = 0; r < s.out_height; ++r)
      for (int64_t c0 = 0; c0 < s.out_width; c0 += kColumns) {
        const int64_t n = std::min(kColumns, s.out_width - c0);
        row(input + from, r, c0, n, value, index);
        for (int64_t c = 0; c < n; ++c) {
          const int64_t at = to + r * o.row + (c0 + c) * o.column;
          output[at] = static_cast<T>(value[c]);
          if constexpr (kWithIndices) indices[at] = index[c];
        }
      }
  });
}

/// All channels of one window at a time, for channels last.
template <class T, bool kWithIndices>
void max_pool_channels(const PoolShape& s, const T* input, T* output, int32_t* indices) {
  const ImageStrides i = s.in(), o = s.out();
  const int64_t work = s.out_width * s.kernel_height * s.kernel_width * s.channels;
  const auto window = [&](int64_t image, int64_t r, int64_t c) {
    const int64_t h0 = r * s.stride_height - s.top, w0 = c * s.stride_width - s.left;
    const int64_t h1 = std::min(s.height, h0 + s.kernel_height);
    const int64_t w1 = std::min(s.width, w0 + s.kernel_width);
    const int64_t nearest = nearest_place(h0, s.height) * s.width + nearest_place(w0, s.width);
    constexpr bool kFloats = std::is_same_v<T, float>;
    if constexpr (kFloats || (sizeof(T) == 1 && !kWithIndices && !std::is_same_v<T, bool>))
      if (s.kernel_height * s.kernel_width <= kMaxWindow && h1 > std::max<int64_t>(0, h0) &&
          w1 > std::max<int64_t>(0, w0)) {
        const T* rows[kMaxWindow];
        int32_t row_indices[kMaxWindow];
        int64_t count = 0;
        for (int64_t h = std::max<int64_t>(0, h0); h < h1; ++h)
          for (int64_t w = std::max<int64_t>(0, w0); w < w1; ++w, ++count) {
            rows[count] = input + image * i.batch + h * i.row + w * i.column;
            row_indices[count] = static_cast<int32_t>(h * s.width + w);
          }
        const int64_t at = image * o.batch + r * o.row + c * o.column;
        if constexpr (kFloats)
          max_of_rows(rows, row_indices, count, s.channels, output + at,
                      kWithIndices ? indices + at : nullptr);
        else
          max_of_rows(rows, count, s.channels, output + at);
        return;
      }
    CompareType<T> value[kColumns];
    int32_t index[kColumns];
    for (int64_t first = 0; first < s.channels; first += kColumns) {
      const int64_t n = std::min(kColumns, s.channels - first);
      std::fill_n(value, n, lowest<CompareType<T>>());
      if constexpr (kWithIndices) std::fill_n(index, n, static_cast<int32_t>(nearest));
      for (int64_t h = std::max<int64_t>(0, h0); h < h1; ++h)
        for (int64_t w = std::max<int64_t>(0, w0); w < w1; ++w)
          update_max<T, 1, kWithIndices>(input + image * i.batch + h * i.row + w * i.column + first,
                                         1, n, static_cast<int32_t>(h * s.width + w), 0, value,
                                         index);
      const int64_t at = image * o.batch + r * o.row + c * o.column + first;
      for (int64_t k = 0; k < n; ++k) output[at + k] = static_cast<T>(value[k]);
      if constexpr (kWithIndices) std::copy_n(index, n, indices + at);
    }
  };
  parallel_for(s.batch * s.out_height, std::max<int64_t>(1, 16384 / std::max<int64_t>(1, work)),
               [&](int64_t begin, int64_t end) {
                 for (int64_t row = begin; row < end; ++row)
                   for (int64_t c = 0; c < s.out_width; ++c)
                     window(row / s.out_height, row % s.out_height, c);
               });
}

struct MaxPoolProblem {
  const KernelRequest& request;
  PoolShape shape;

  DType dtype() const { return request.operands[0].dtype; }
  bool with_indices() const { return request.results[1].present; }
};

/// Planes as a whole take f32 channels first, without indices.
double max_planes_speedup(const MaxPoolProblem& p) {
  const PoolShape& s = p.shape;
  const bool fits = p.dtype() == DType::kF32 && !p.with_indices() && !s.channels_last &&
                    !s.is_2x2_stride_2() && s.height * s.width > 0;
  return fits ? kPreferred : 0;
}

/// Planes with NaN go through `max_pool_rows`.
std::unique_ptr<Kernel> prepare_max_planes(const MaxPoolProblem& p) {
  const PoolShape& s = p.shape;
  const MaxPlanes planes(s);
  const int64_t count = s.batch * s.channels, workers = std::min(count, kRowWorkers);
  const size_t each = planes.scratch_bytes();
  return make_kernel(
      [=](const RunContext& context, void* const* operands, void* const* results) {
        const auto* const x = static_cast<const float*>(operands[0]);
        auto* const out = static_cast<float*>(results[0]);
        const int64_t size = s.height * s.width, places = s.out_height * s.out_width;
        PoolShape one = s;
        one.batch = one.channels = 1;
        const auto plane = [&](int64_t i, std::byte* scratch) {
          if (!planes.run(x + i * size, out + i * places, reinterpret_cast<float*>(scratch)))
            max_pool_rows<float, false>(one, x + i * size, out + i * places, nullptr);
        };
        const int64_t grain = std::max<int64_t>(1, 16384 * workers / (size * count + 1));
        for_each_task(count, workers, context.scratch, each, plane, grain);
      },
      static_cast<size_t>(workers) * each, "cpu:planes");
}

/// Windows of 2 × 2 with stride 2 over f32 channels first.
double max_2x2_speedup(const MaxPoolProblem& p) {
  return p.dtype() == DType::kF32 && !p.shape.channels_last && p.shape.is_2x2_stride_2()
             ? kPreferred
             : 0;
}

std::unique_ptr<Kernel> prepare_max_2x2(const MaxPoolProblem& p) {
  return make_kernel(
      [s = p.shape, with_indices = p.with_indices()](const RunContext&, void* const* operands,
                                                     void* const* results) {
        const auto* const x = static_cast<const float*>(operands[0]);
        auto* const out = static_cast<float*>(results[0]);
        auto* const indices = static_cast<int32_t*>(results[1]);
        s.for_each_plane(4 * s.out_height * s.out_width, [&](int64_t from, int64_t to) {
          max_pool_2x2(x + from, static_cast<int32_t>(s.width), s.out_height, s.out_width, out + to,
                       with_indices ? indices + to : nullptr);
        });
      },
      0, "cpu:2x2");
}

double max_channels_speedup(const MaxPoolProblem& p) { return p.shape.channels_last ? 1 : 0; }

std::unique_ptr<Kernel> prepare_max_channels(const MaxPoolProblem& p) {
  return visit_dtype(p.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const auto pool = p.with_indices() ? &max_pool_channels<T, true> : &max_pool_channels<T, false>;
    return make_kernel(
        [s = p.shape, pool](const RunContext&, void* const* operands, void* const* results) {
          pool(s, static_cast<const T*>(operands[0]), static_cast<T*>(results[0]),
               static_cast<int32_t*>(results[1]));
        },
        0, "cpu:channels");
  });
}

double max_rows_speedup(const MaxPoolProblem& p) { return p.shape.channels_last ? 0 : 1; }

std::unique_ptr<Kernel> prepare_max_rows(const MaxPoolProblem& p) {
  return visit_dtype(p.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const auto pool = p.with_indices() ? &max_pool_rows<T, true> : &max_pool_rows<T, false>;
    return make_kernel(
        [s = p.shape, pool](const RunContext&, void* const* operands, void* const* results) {
          pool(s, static_cast<const T*>(operands[0]), static_cast<T*>(results[0]),
               static_cast<int32_t*>(results[1]));
        },
        0, "cpu:rows");
  });
}

constexpr Algorithm<MaxPoolProblem> kMaxPool[] = {
    {"planes", max_planes_speedup, prepare_max_planes},
    {"2x2", max_2x2_speedup, prepare_max_2x2},
    {"channels", max_channels_speedup, prepare_max_channels},
    {"rows", max_rows_speedup, prepare_max_rows},
};

/// One plane with 2 × 2 windows and stride 2; false if an index is outside its window.
bool max_pool_2x2_grad_plane(const PoolShape& s, const float* grad, const int32_t* indices,
                             float* out) {
  if (!max_pool_2x2_grad(grad, indices, s.out_height, s.out_width, static_cast<int32_t>(s.width),
                         out))
    return false;
  // The remainder on the right and at the bottom.
  const int64_t covered = 2 * s.out_height * s.width;
  if (s.width % 2 != 0)
    for (int64_t at = s.width - 1; at < covered; at += s.width) out[at] = 0;
  std::fill(out + covered, out + s.height * s.width, 0.0f);
  return true;
}

/// Channels last, window by window; what a thread accumulates stays in its cache.
template <class T, class C>
void scatter_channels(const PoolShape& s, const T* grad, const int32_t* indices, C* sums) {
  constexpr int64_t kChannelsPerTask = 64;  // channels of one task
  const ImageStrides i = s.in(), o = s.out();
  const int64_t blocks = (s.channels + kChannelsPerTask - 1) / kChannelsPerTask,
                pixels = s.height * s.width;
  parallel_for(s.batch * blocks, 1, [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      const int64_t first = task % blocks * kChannelsPerTask,
                    n = std::min(kChannelsPerTask, s.channels - first);
      C* const to = sums + task / blocks * i.batch + first;
      for (int64_t p = 0; p < pixels; ++p) std::fill_n(to + p * s.channels, n, C(0));
      for (int64_t window = 0; window < s.out_height * s.out_width; ++window) {
        const int64_t at = task / blocks * o.batch + window * s.channels + first;
        for (int64_t k = 0; k < n; ++k) {
          const int64_t index = indices[at + k];
          if (index < 0 || index >= pixels) continue;
          C& sum = to[index * s.channels + k];
          sum = static_cast<C>(sum + static_cast<C>(grad[at + k]));
        }
      }
    }
  });
}

/// The type that gradients of T are summed in.
template <class T>
using SumType =
    std::conditional_t<std::is_same_v<T, float16> || std::is_same_v<T, bfloat16>, float, T>;

/// A kernel that sums with `add(grad, indices, sums)`, in scratch where the results are narrower.
template <class T, class F>
std::unique_ptr<Kernel> max_grad_kernel(const PoolShape& s, F add, std::string name) {
  using C = SumType<T>;
  constexpr bool kDirect = std::is_same_v<C, T>;
  const int64_t pixels = s.batch * s.channels * s.height * s.width;
  return make_kernel(
      [=](const RunContext& context, void* const* operands, void* const* results) {
        C* sums = reinterpret_cast<C*>(context.scratch);
        if constexpr (kDirect) sums = static_cast<C*>(results[0]);
        add(static_cast<const T*>(operands[0]), static_cast<const int32_t*>(operands[1]), sums);
        if constexpr (!kDirect)
          convert_fn(dtype_of<C>(), dtype_of<T>())(sums, 1, results[0], pixels);
      },
      kDirect ? 0 : static_cast<size_t>(pixels) * sizeof(C), std::move(name));
}

struct MaxPoolGradProblem {
  const KernelRequest& request;
  PoolShape shape;

  DType dtype() const { return request.operands[0].dtype; }
};

double max_grad_channels_speedup(const MaxPoolGradProblem& p) {
  return p.shape.channels_last ? 1 : 0;
}

std::unique_ptr<Kernel> prepare_max_grad_channels(const MaxPoolGradProblem& p) {
  return visit_dtype(p.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const auto add = [s = p.shape](const T* grad, const int32_t* indices, SumType<T>* sums) {
      scatter_channels(s, grad, indices, sums);
    };
    return max_grad_kernel<T>(p.shape, add, "cpu:channels");
  });
}

double max_grad_planes_speedup(const MaxPoolGradProblem& p) {
  return p.shape.channels_last ? 0 : 1;
}

/// Windows may overlap, so each plane is summed by one thread, in f32 or f64.
template <class T>
void add_to_planes(const PoolShape& s, const T* grads, const int32_t* indices, SumType<T>* sums) {
  using C = SumType<T>;
  const ImageStrides i = s.in(), o = s.out();
  // Probably windows of 2 × 2; the indices tell.
  [[maybe_unused]] const bool maybe_2x2 =
      s.height / 2 == s.out_height && s.width / 2 == s.out_width;
  s.for_each_plane(s.height * s.width, [&](int64_t to, int64_t from) {
    const T* const grad = grads + from;
    const int32_t* const mask = indices + from;
    if constexpr (std::is_same_v<T, float>)
      if (maybe_2x2 && max_pool_2x2_grad_plane(s, grad, mask, sums + to)) return;
    std::fill_n(sums + to, s.height * s.width, C(0));
    for (int64_t r = 0; r < s.out_height; ++r)
      for (int64_t c = 0; c < s.out_width; ++c) {
        const int64_t at = r * o.row + c * o.column, index = mask[at];
        if (index < 0 || index >= s.height * s.width) continue;
        C& sum = sums[to + index / s.width * i.row + index % s.width * i.column];
        sum = static_cast<C>(sum + static_cast<C>(grad[at]));
      }
  });
}

std::unique_ptr<Kernel> prepare_max_grad_planes(const MaxPoolGradProblem& p) {
  return visit_dtype(p.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const auto add = [s = p.shape](const T* grad, const int32_t* indices, SumType<T>* sums) {
      add_to_planes(s, grad, indices, sums);
    };
    return max_grad_kernel<T>(p.shape, add, "cpu:planes");
  });
}

constexpr Algorithm<MaxPoolGradProblem> kMaxPoolGrad[] = {
    {"channels", max_grad_channels_speedup, prepare_max_grad_channels},
    {"planes", max_grad_planes_speedup, prepare_max_grad_planes},
};

template <class T>
std::unique_ptr<Kernel> max_pool_take(const PoolShape& s) {
  return make_kernel([s](const RunContext&, void* const* operands, void* const* results) {
    const ImageStrides i = s.in(), o = s.out();
    s.for_each_plane(s.out_height * s.out_width, [&](int64_t from, int64_t to) {
      const T* const x = static_cast<const T*>(operands[0]) + from;
      const int32_t* const mask = static_cast<const int32_t*>(operands[1]) + to;
      T* const out = static_cast<T*>(results[0]) + to;
      for (int64_t r = 0; r < s.out_height; ++r)
        for (int64_t c = 0; c < s.out_width; ++c) {
          const int64_t at = r * o.row + c * o.column, index = mask[at];
          const bool inside = index >= 0 && index < s.height * s.width;
          out[at] = inside ? x[index / s.width * i.row + index % s.width * i.column] : T(0);
        }
    });
  });
}

}  // namespace

std::unique_ptr<Kernel> prepare_max_pool2d(const KernelRequest& request) {
  if (request.operands[0].dtype == DType::kF16)
    return upcast_to_float32(request, prepare_max_pool2d);
  const MaxPool2dAttrs attrs(request.attrs);
  PoolShape shape(request.operands[0].shape, request.results[0].shape, attrs.data_format == "NHWC");
  if (request.results[1].present && shape.height * shape.width > INT32_MAX)
    fail(ErrorCode::kUsage,
         "max_pool2d: int32 indices do not fit planes of more than 2^31 elements");
  shape.windows(attrs.kernel_size, attrs.stride, max_pool_padding(attrs.padding, attrs.return_mask),
                request.op.name());
  return prepare_best<MaxPoolProblem>(kMaxPool, {request, shape});
}

std::unique_ptr<Kernel> prepare_max_pool2d_grad(const KernelRequest& request) {
  const bool last = MaxPool2dGradAttrs(request.attrs).data_format == "NHWC";
  const PoolShape shape(request.results[0].shape, request.operands[0].shape, last);
  return prepare_best<MaxPoolGradProblem>(kMaxPoolGrad, {request, shape});
}

std::unique_ptr<Kernel> prepare_max_pool2d_take(const KernelRequest& request) {
  const bool last = MaxPool2dTakeAttrs(request.attrs).data_format == "NHWC";
  const PoolShape shape(request.operands[0].shape, request.operands[1].shape, last);
  return visit_dtype(request.operands[0].dtype,
                     [&](auto tag) { return max_pool_take<typename decltype(tag)::type>(shape); });
}

}  // namespace paddle::cpu
