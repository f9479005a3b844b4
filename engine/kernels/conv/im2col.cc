// Convolution by im2col and GEMM, block by block, for the types that oneDNN does not compute: f64,
// and 16-bit floats in f32.
//
// With depth = (input channel, kernel plane, row, column) and position = (output plane, row,
// column), for each image and group:
//   output:        y[oc, position] = Σ_depth weight[oc, depth] columns[depth, position]
//   input grad:    dcolumns[depth, position] = Σ_oc weight[oc, depth] dy[oc, position], then col2im
//   weight grad:   dw[oc, depth] = Σ_image,position dy[oc, position] columns[depth, position]

#include <algorithm>
#include <memory>

#include "kernels/common/convert.h"
#include "kernels/common/rounding.h"
#include "kernels/common/workers.h"
#include "kernels/conv/conv_shape.h"
#include "kernels/linalg/gemm.h"

namespace paddle::cpu {
namespace {

constexpr int64_t kWorkers = 16;

template <class C, class T>
class Im2col {
 public:
  explicit Im2col(const ConvShape& shape)
      : s(shape),
        in(ImageStrides::of(s.in_channels, s.height, s.width, s.channels_last, s.depth)),
        out(ImageStrides::of(s.out_channels, s.out_height, s.out_width, s.channels_last,
                             s.out_depth)) {}

  /// columns[d - d0, p - p0] for d in [d0, d0 + nd), p in [p0, p0 + np); rows are `stride` elements
  /// apart.
  void unfold(const T* image, int64_t d0, int64_t nd, int64_t p0, int64_t np, C* columns,
              int64_t stride) const {
    for (int64_t d = 0; d < nd; ++d) {
      const KernelOffset offset = kernel_offset(d0 + d);
      C* const row = columns + d * stride;
      for (int64_t p = 0; p < np; ++p) {
        const int64_t at = offset_of(offset, p0 + p);
        row[p] = at < 0 ? C(0) : static_cast<C>(image[at]);
      }
    }
  }

  /// col2im: adds columns back to where `unfold` read them, in an image of C laid out like the
  /// input.
  void fold(const C* columns, int64_t d0, int64_t nd, int64_t p0, int64_t np, int64_t stride,
            C* image) const {
    for (int64_t d = 0; d < nd; ++d) {
      const KernelOffset offset = kernel_offset(d0 + d);
      const C* const row = columns + d * stride;
      for (int64_t p = 0; p < np; ++p)
        if (const int64_t at = offset_of(offset, p0 + p); at >= 0) image[at] += row[p];
    }
  }

  /// grad[c - c0, p - p0] of one image and group, converted to C.
  void gather_output(const T* image, int64_t c0, int64_t nc, int64_t p0, int64_t np, C* target,
                     int64_t stride) const {
    for (int64_t c = 0; c < nc; ++c)
      for (int64_t p = 0; p < np; ++p)
        target[c * stride + p] = static_cast<C>(image[(c0 + c) * out.channel + position(p0 + p)]);
  }
  int64_t position(int64_t p) const {
    const int64_t line = p / s.out_width;
    return line / s.out_height * out.plane + line % s.out_height * out.row +
           p % s.out_width * out.column;
  }

  ConvShape s;
  ImageStrides in, out;

 private:
  struct KernelOffset {
    int64_t channel, plane, row, column;
  };
  KernelOffset kernel_offset(int64_t d) const {
    const int64_t line = d / s.kernel_width, plane = line / s.kernel_height;
    return {plane / s.kernel_depth, plane % s.kernel_depth * s.dilation_depth,
            line % s.kernel_height * s.dilation_height, d % s.kernel_width * s.dilation_width};
  }
  /// Offset in the input that output position p reads with this kernel offset; -1 for padding.
  int64_t offset_of(const KernelOffset& offset, int64_t p) const {
    const int64_t line = p / s.out_width;
    const int64_t plane = line / s.out_height * s.stride_depth - s.front + offset.plane;
    const int64_t row = line % s.out_height * s.stride_height - s.top + offset.row;
    const int64_t column = p % s.out_width * s.stride_width - s.left + offset.column;
    const auto in_range = [](int64_t size, int64_t i) { return i >= 0 && i < size; };
    if (!in_range(s.depth, plane) || !in_range(s.height, row) || !in_range(s.width, column))
      return -1;
    return offset.channel * in.channel + plane * in.plane + row * in.row + column * in.column;
  }
};

template <class C>
constexpr size_t block_bytes(int64_t elements) {
  return round_up_to_cache_line(static_cast<size_t>(elements) * sizeof(C));
}

int64_t workers_for(int64_t tasks) { return std::min(kWorkers, tasks); }
size_t workers_bytes(int64_t tasks, size_t each) {
  return static_cast<size_t>(workers_for(tasks)) * each;
}

/// Converts the weights to C.
template <class C, class T>
void to_compute_type(const T* source, C* target, int64_t n) {
  convert_fn(dtype_of<T>(), dtype_of<C>())(source, 1, target, n);
}

template <class C, class T>
std::unique_ptr<Kernel> forward(const ConvShape& shape, bool biased) {
  const Im2col<C, T> im2col(shape);
  const ConvShape s = shape;
  const int64_t blocks = (s.positions() + kGemmColumns - 1) / kGemmColumns;
  const int64_t row_blocks = (s.group_out_channels() + kGemmRows - 1) / kGemmRows;
  const int64_t tasks = s.batch * s.groups * blocks;
  const size_t columns = block_bytes<C>(s.window_size() * kGemmColumns);
  const size_t tile = block_bytes<C>(kGemmRows * kGemmColumns);
  const size_t each = columns + tile + gemm_workspace_bytes(sizeof(C));
  const int64_t weights = s.out_channels * s.window_size();
  const size_t weight_bytes = block_bytes<C>(weights);
  return make_kernel(
      [=](const RunContext& context, void* const* operands, void* const* results) {
        C* const weight = reinterpret_cast<C*>(context.scratch);
        to_compute_type(static_cast<const T*>(operands[1]), weight, weights);
        const T* const bias = biased ? static_cast<const T*>(operands[2]) : nullptr;
        std::byte* const workers_scratch = context.scratch + weight_bytes;
        for_each_task(
            tasks, workers_for(tasks), workers_scratch, each,
            [&](int64_t task, std::byte* scratch) {
              C* const unfolded = reinterpret_cast<C*>(scratch);
              C* const c = reinterpret_cast<C*>(scratch + columns);
              const int64_t image = task / (s.groups * blocks), group = task / blocks % s.groups;
              const int64_t p0 = task % blocks * kGemmColumns;
              const int64_t np = std::min(kGemmColumns, s.positions() - p0);
              im2col.unfold(static_cast<const T*>(operands[0]) + image * im2col.in.batch +
                                group * s.group_in_channels() * im2col.in.channel,
                            0, s.window_size(), p0, np, unfolded, kGemmColumns);
              for (int64_t r = 0; r < row_blocks; ++r) {
                const int64_t c0 = group * s.group_out_channels() + r * kGemmRows;
                const int64_t nc = std::min(kGemmRows, s.group_out_channels() - r * kGemmRows);
                for (int64_t i = 0; i < nc; ++i)
                  std::fill_n(c + i * kGemmColumns, np, bias ? static_cast<C>(bias[c0 + i]) : C(0));
                gemm_block(nc, np, s.window_size(),
                           {weight + c0 * s.window_size(), s.window_size(), 1},
                           {unfolded, kGemmColumns, 1}, c, kGemmColumns, scratch + columns + tile);
                T* const target = static_cast<T*>(results[0]) + image * im2col.out.batch;
                for (int64_t i = 0; i < nc; ++i)
                  for (int64_t p = 0; p < np; ++p)
                    target[(c0 + i) * im2col.out.channel + im2col.position(p0 + p)] =
                        static_cast<T>(c[i * kGemmColumns + p]);
              }
            });
      },
      weight_bytes + workers_bytes(tasks, each), "cpu:im2col");
}

template <class C, class T>
std::unique_ptr<Kernel> input_grad(const ConvShape& shape) {
  const Im2col<C, T> im2col(shape);
  const ConvShape s = shape;
  const int64_t tasks = s.batch * s.groups;
  const int64_t weights = s.out_channels * s.window_size();
  const size_t weight_bytes = block_bytes<C>(weights);
  const size_t grads = block_bytes<C>(s.group_out_channels() * kGemmColumns);
  const size_t tile = block_bytes<C>(kGemmRows * kGemmColumns);
  const int64_t pixels = s.batch * s.in_channels * s.depth * s.height * s.width;
  // Accumulates in C, in the result itself if that is its type.
  const size_t image_bytes = std::is_same_v<C, T> ? 0 : block_bytes<C>(pixels);
  const size_t each = grads + tile + gemm_workspace_bytes(sizeof(C));
  return make_kernel(
      [=](const RunContext& context, void* const* operands, void* const* results) {
        C* const weight = reinterpret_cast<C*>(context.scratch);
        to_compute_type(static_cast<const T*>(operands[0]), weight, weights);
        C* sums = reinterpret_cast<C*>(context.scratch + weight_bytes);
        if constexpr (std::is_same_v<C, T>) sums = static_cast<C*>(results[0]);
        std::fill_n(sums, pixels, C(0));
        std::byte* const workers_scratch = context.scratch + weight_bytes + image_bytes;
        for_each_task(
            tasks, workers_for(tasks), workers_scratch, each,
            [&](int64_t task, std::byte* scratch) {
              C* const grad = reinterpret_cast<C*>(scratch);
              C* const c = reinterpret_cast<C*>(scratch + grads);
              const int64_t image = task / s.groups, group = task % s.groups;
              const int64_t c0 = group * s.group_out_channels();
              for (int64_t p0 = 0; p0 < s.positions(); p0 += kGemmColumns) {
                const int64_t np = std::min(kGemmColumns, s.positions() - p0);
                im2col.gather_output(static_cast<const T*>(operands[1]) + image * im2col.out.batch,
                                     c0, s.group_out_channels(), p0, np, grad, kGemmColumns);
                for (int64_t d0 = 0; d0 < s.window_size(); d0 += kGemmRows) {
                  const int64_t nd = std::min(kGemmRows, s.window_size() - d0);
                  for (int64_t i = 0; i < nd; ++i) std::fill_n(c + i * kGemmColumns, np, C(0));
                  gemm_block(nd, np, s.group_out_channels(),
                             {weight + c0 * s.window_size() + d0, 1, s.window_size()},
                             {grad, kGemmColumns, 1}, c, kGemmColumns, scratch + grads + tile);
                  im2col.fold(c, d0, nd, p0, np, kGemmColumns,
                              sums + image * im2col.in.batch +
                                  group * s.group_in_channels() * im2col.in.channel);
                }
              }
            });
        if constexpr (!std::is_same_v<C, T>)
          convert_fn(dtype_of<C>(), dtype_of<T>())(sums, 1, results[0], pixels);
      },
      weight_bytes + image_bytes + workers_bytes(tasks, each), "cpu:im2col");
}

template <class C, class T>
std::unique_ptr<Kernel> weight_grad(const ConvShape& shape) {
  const Im2col<C, T> im2col(shape);
  const ConvShape s = shape;
  const int64_t row_blocks = (s.group_out_channels() + kGemmRows - 1) / kGemmRows;
  const int64_t depth_blocks = (s.window_size() + kGemmColumns - 1) / kGemmColumns;
  const int64_t tasks = s.groups * row_blocks * depth_blocks;
  constexpr int64_t kPositions = kGemmDepth;
  const size_t columns = block_bytes<C>(kGemmColumns * kPositions);
  const size_t grads = block_bytes<C>(kGemmRows * kPositions);
  const size_t tile = block_bytes<C>(kGemmRows * kGemmColumns);
  const size_t each = columns + grads + tile + gemm_workspace_bytes(sizeof(C));
  return make_kernel(
      [=](const RunContext& context, void* const* operands, void* const* results) {
        const auto block = [&](int64_t task, std::byte* scratch) {
          C* const unfolded = reinterpret_cast<C*>(scratch);
          C* const grad = reinterpret_cast<C*>(scratch + columns);
          C* const c = reinterpret_cast<C*>(scratch + columns + grads);
          const int64_t group = task / (row_blocks * depth_blocks);
          const int64_t c0 =
              group * s.group_out_channels() + task / depth_blocks % row_blocks * kGemmRows;
          const int64_t nc = std::min(kGemmRows, (group + 1) * s.group_out_channels() - c0);
          const int64_t d0 = task % depth_blocks * kGemmColumns;
          const int64_t nd = std::min(kGemmColumns, s.window_size() - d0);
          std::fill_n(c, kGemmRows * kGemmColumns, C(0));
          for (int64_t image = 0; image < s.batch; ++image) {
            for (int64_t p0 = 0; p0 < s.positions(); p0 += kPositions) {
              const int64_t np = std::min(kPositions, s.positions() - p0);
              im2col.unfold(static_cast<const T*>(operands[0]) + image * im2col.in.batch +
                                group * s.group_in_channels() * im2col.in.channel,
                            d0, nd, p0, np, unfolded, kPositions);
              im2col.gather_output(static_cast<const T*>(operands[1]) + image * im2col.out.batch,
                                   c0, nc, p0, np, grad, kPositions);
              gemm_block(nc, nd, np, {grad, kPositions, 1}, {unfolded, 1, kPositions}, c,
                         kGemmColumns, scratch + columns + grads + tile);
            }
          }
          for (int64_t i = 0; i < nc; ++i)
            convert_fn(dtype_of<C>(), dtype_of<T>())(
                c + i * kGemmColumns, 1,
                static_cast<T*>(results[0]) + (c0 + i) * s.window_size() + d0, nd);
        };
        for_each_task(tasks, workers_for(tasks), context.scratch, each, block);
      },
      workers_bytes(tasks, each), "cpu:im2col");
}

template <class F>
std::unique_ptr<Kernel> visit_compute_type(DType dtype, F f) {
  return visit_float(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = std::conditional_t<std::is_same_v<T, double>, double, float>;
    return f(TypeTag<C>{}, tag);
  });
}

}  // namespace

std::unique_ptr<Kernel> prepare_conv2d(const KernelRequest& request) {
  const ConvShape shape = ConvShape::of(request.op, request.attrs, request.operands[0].shape,
                                        request.operands[1].shape, request.results[0].shape);
  const bool biased = request.operands.size() > 2 && request.operands[2].present;
  return visit_compute_type(request.operands[0].dtype, [&](auto compute, auto tag) {
    return forward<typename decltype(compute)::type, typename decltype(tag)::type>(shape, biased);
  });
}

std::unique_ptr<Kernel> prepare_conv3d(const KernelRequest& request) {
  return prepare_conv2d(request);
}

std::unique_ptr<Kernel> prepare_conv2d_input_grad(const KernelRequest& request) {
  const ConvShape shape = ConvShape::of(request.op, request.attrs, request.results[0].shape,
                                        request.operands[0].shape, request.operands[1].shape);
  return visit_compute_type(request.operands[0].dtype, [&](auto compute, auto tag) {
    return input_grad<typename decltype(compute)::type, typename decltype(tag)::type>(shape);
  });
}

std::unique_ptr<Kernel> prepare_conv2d_weight_grad(const KernelRequest& request) {
  const ConvShape shape = ConvShape::of(request.op, request.attrs, request.operands[0].shape,
                                        request.results[0].shape, request.operands[1].shape);
  return visit_compute_type(request.operands[0].dtype, [&](auto compute, auto tag) {
    return weight_grad<typename decltype(compute)::type, typename decltype(tag)::type>(shape);
  });
}

}  // namespace paddle::cpu
