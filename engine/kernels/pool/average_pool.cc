// Average pooling over 2-D planes and its gradient. Planes are read through strides, so that both
// data formats share the code. kAveragePool lists the algorithms.

#include <algorithm>

#include "kernels/common/algorithm_table.h"
#include "kernels/common/convert.h"
#include "kernels/pool/pool_shape.h"
#include "kernels/reduce/reduce_simd.h"
#include "ops/generated/nn.h"

namespace paddle::cpu {
namespace {

struct AveragePoolProblem {
  const KernelRequest& request;
  PoolShape shape;
  Average average;

  DType dtype() const { return request.operands[0].dtype; }
};

/// One window that covers a plane is the sum of a run.
double whole_planes_speedup(const AveragePoolProblem& p) {
  const bool sums_runs = p.dtype() == DType::kF32 || p.dtype() == DType::kF64;
  return sums_runs && p.shape.covers_planes() && p.shape.height * p.shape.width > 0 ? kPreferred
                                                                                    : 0;
}

template <class T>
std::unique_ptr<Kernel> average_whole_planes(const PoolShape& s, const Average& average) {
  return make_kernel(
      [s, average](const RunContext&, void* const* operands, void* const* results) {
        const int64_t size = s.height * s.width;
        const double divisor = average.at(s, 0, 0).divisor;
        const RowLoops<T>& loops = row_loops<T>();
        const auto* const x = static_cast<const T*>(operands[0]);
        auto* const out = static_cast<T*>(results[0]);
        parallel_for(s.batch * s.channels, std::max<int64_t>(1, 16384 / size),
                     [&](int64_t begin, int64_t end) {
                       for (int64_t p = begin; p < end; ++p)
                         out[p] = static_cast<T>(loops.sum(x + p * size, size) / divisor);
                     });
      },
      0, "cpu:whole_planes");
}

std::unique_ptr<Kernel> prepare_average_whole_planes(const AveragePoolProblem& p) {
  return p.dtype() == DType::kF64 ? average_whole_planes<double>(p.shape, p.average)
                                  : average_whole_planes<float>(p.shape, p.average);
}

template <class T>
std::unique_ptr<Kernel> average_windows(const PoolShape& s, const Average& average) {
  using C = std::conditional_t<std::is_same_v<T, double>, double, float>;
  return make_kernel(
      [s, average](const RunContext&, void* const* operands, void* const* results) {
        const ImageStrides i = s.in(), o = s.out();
        s.for_each_plane(s.out_height * s.out_width * s.kernel_height * s.kernel_width,
                         [&](int64_t from, int64_t to) {
                           const T* const x = static_cast<const T*>(operands[0]) + from;
                           T* const out = static_cast<T*>(results[0]) + to;
                           for (int64_t r = 0; r < s.out_height; ++r)
                             for (int64_t c = 0; c < s.out_width; ++c) {
                               const PoolWindow window = average.at(s, r, c);
                               C sum = 0;
                               for (int64_t h = window.first_h; h < window.last_h; ++h)
                                 for (int64_t w = window.first_w; w < window.last_w; ++w)
                                   sum += static_cast<C>(x[h * i.row + w * i.column]);
                               out[r * o.row + c * o.column] =
                                   static_cast<T>(sum / static_cast<C>(window.divisor));
                             }
                         });
      },
      0, "cpu:windows");
}

std::unique_ptr<Kernel> prepare_average_windows(const AveragePoolProblem& p) {
  return visit_float(p.dtype(), [&](auto tag) {
    return average_windows<typename decltype(tag)::type>(p.shape, p.average);
  });
}

constexpr Algorithm<AveragePoolProblem> kAveragePool[] = {
    {"whole_planes", whole_planes_speedup, prepare_average_whole_planes},
    {"windows", baseline, prepare_average_windows},
};

template <class T>
std::unique_ptr<Kernel> avg_pool_grad(const PoolShape& s, const Average& average) {
  using C = std::conditional_t<std::is_same_v<T, double>, double, float>;
  constexpr bool kDirect = std::is_same_v<C, T>;
  const int64_t pixels = s.batch * s.channels * s.height * s.width;
  return make_kernel(
      [s, average, pixels](const RunContext& context, void* const* operands, void* const* results) {
        const ImageStrides i = s.in(), o = s.out();
        C* sums = reinterpret_cast<C*>(context.scratch);
        if constexpr (kDirect) sums = static_cast<C*>(results[0]);
        std::fill_n(sums, pixels, C(0));
        s.for_each_plane(s.out_height * s.out_width * s.kernel_height * s.kernel_width,
                         [&](int64_t to, int64_t from) {
                           const T* const grad = static_cast<const T*>(operands[0]) + from;
                           for (int64_t r = 0; r < s.out_height; ++r)
                             for (int64_t c = 0; c < s.out_width; ++c) {
                               const PoolWindow window = average.at(s, r, c);
                               const C part = static_cast<C>(grad[r * o.row + c * o.column]) /
                                              static_cast<C>(window.divisor);
                               for (int64_t h = window.first_h; h < window.last_h; ++h)
                                 for (int64_t w = window.first_w; w < window.last_w; ++w)
                                   sums[to + h * i.row + w * i.column] += part;
                             }
                         });
        if constexpr (!kDirect)
          convert_fn(dtype_of<C>(), dtype_of<T>())(sums, 1, results[0], pixels);
      },
      kDirect ? 0 : static_cast<size_t>(pixels) * sizeof(C));
}

}  // namespace

std::unique_ptr<Kernel> prepare_avg_pool2d(const KernelRequest& request) {
  const AvgPool2dAttrs attrs(request.attrs);
  PoolShape shape(request.operands[0].shape, request.results[0].shape, attrs.data_format == "NHWC");
  shape.windows(attrs.kernel_size, attrs.stride, attrs.padding, request.op.name());
  const Average average{attrs.exclusive, attrs.divisor_override.value_or(0)};
  return prepare_best<AveragePoolProblem>(kAveragePool, {request, shape, average});
}

std::unique_ptr<Kernel> prepare_avg_pool2d_grad(const KernelRequest& request) {
  const AvgPool2dGradAttrs attrs(request.attrs);
  PoolShape shape(request.results[0].shape, request.operands[0].shape, attrs.data_format == "NHWC");
  shape.windows(attrs.kernel_size, attrs.stride, attrs.padding, request.op.name());
  const Average average{attrs.exclusive, attrs.divisor_override.value_or(0)};
  return visit_float(request.operands[0].dtype, [&](auto tag) {
    return avg_pool_grad<typename decltype(tag)::type>(shape, average);
  });
}

}  // namespace paddle::cpu
