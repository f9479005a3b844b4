// Distances between the rows of matrices, and their gradients.

#include <algorithm>
#include <span>
#include <vector>

#include "base/parallel.h"
#include "kernels/reduce/distances_simd.h"
#include "ops/core/kernel.h"
#include "ops/generated/distance.h"

namespace paddle::cpu {
namespace {

/// The matrix of an operand that belongs to each matrix of a broadcast batch.
class BatchIndex {
 public:
  /// `batch` ends with the two axes of a matrix, as `operand` does.
  BatchIndex(const Dims& batch, const Dims& operand) {
    int64_t stride = 1;
    for (size_t i = 2; i < batch.size(); ++i) {
      const int64_t size = i < operand.size() ? operand[operand.size() - 1 - i] : 1;
      axes_.push_back({batch[batch.size() - 1 - i], size == 1 ? 0 : stride});
      stride *= size;
    }
  }
  int64_t operator()(int64_t index) const {
    int64_t at = 0;
    for (const Axis& axis : axes_) {
      at += index % axis.size * axis.stride;
      index /= axis.size;
    }
    return at;
  }

 private:
  struct Axis {
    int64_t size, stride;
  };
  std::vector<Axis> axes_;  // innermost first
};

int64_t matrices_of(const Dims& shape) {
  int64_t count = 1;
  for (size_t i = 0; i + 2 < shape.size(); ++i) count *= shape[i];
  return count;
}

/// `make(tag)` for float32 and float64, null for other types.
template <class Make>
std::unique_ptr<Kernel> for_full_floats(DType dtype, const Make& make) {
  if (dtype == DType::kF32) return make(TypeTag<float>{});
  if (dtype == DType::kF64) return make(TypeTag<double>{});
  return nullptr;
}

/// Rows of one task: tiles of rows, with enough work for a thread.
int64_t rows_of_task(int64_t work_of_row) {
  return std::clamp<int64_t>((int64_t{1} << 17) / std::max<int64_t>(1, work_of_row), 1, 16) * 4;
}

}  // namespace

// The rows of y are packed into panels first, which all rows of x pass over.
std::unique_ptr<Kernel> prepare_euclidean_distances(const KernelRequest& request) {
  const Dims &x = request.operands[0].shape, &y = request.operands[1].shape,
             &out = request.results[0].shape;
  const int64_t rows = out[out.size() - 2], columns = out.back(), size = x.back();
  const int64_t batch = matrices_of(out), packed = matrices_of(y);
  if (request.results[0].size() == 0) return nothing_to_do();
  return for_full_floats(request.results[0].dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const DistanceLoops<T> loops = distance_loops<T>();
    const int64_t panels = (columns + loops.panel - 1) / loops.panel;
    const int64_t panel_size = loops.panel * size;
    const int64_t step = rows_of_task(columns * size), tasks = (rows + step - 1) / step;
    return make_kernel(
        [=, of_x = BatchIndex(out, x), of_y = BatchIndex(out, y)](
            const RunContext& context, void* const* operands, void* const* results) {
          const T* const from = static_cast<const T*>(operands[0]);
          const T* const to = static_cast<const T*>(operands[1]);
          T* const panel = reinterpret_cast<T*>(context.scratch);
          parallel_for(
              packed * panels, std::max<int64_t>(1, 16384 / std::max<int64_t>(1, panel_size)),
              [&](int64_t begin, int64_t end) {
                for (int64_t i = begin; i < end; ++i) {
                  const int64_t first = i % panels * loops.panel;
                  loops.pack(to + (i / panels * columns + first) * size,
                             std::min(loops.panel, columns - first), size, panel + i * panel_size);
                }
              });
          parallel_for(batch * tasks, 1, [&](int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; ++i) {
              const int64_t matrix = i / tasks, first = i % tasks * step;
              const int64_t count = std::min(step, rows - first);
              const T* const panels_of = panel + of_y(matrix) * panels * panel_size;
              T* const result = static_cast<T*>(results[0]) + (matrix * rows + first) * columns;
              for (int64_t p = 0; p < panels; ++p)
                loops.distances(from + (of_x(matrix) * rows + first) * size, count,
                                panels_of + p * panel_size,
                                std::min(loops.panel, columns - p * loops.panel), size,
                                result + p * loops.panel, columns);
            }
          });
        },
        static_cast<size_t>(packed * panels * panel_size) * sizeof(T));
  });
}

std::unique_ptr<Kernel> prepare_weighted_differences(const KernelRequest& request) {
  const Dims &x = request.operands[0].shape, &y = request.operands[1].shape,
             &weight = request.operands[2].shape, &out = request.results[0].shape;
  const int64_t rows = out[out.size() - 2], size = out.back(), count = weight.back();
  const int64_t batch = matrices_of(out);
  if (request.results[0].size() == 0) return nothing_to_do();
  return for_full_floats(request.results[0].dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const DistanceLoops<T> loops = distance_loops<T>();
    const int64_t step = rows_of_task(count * size), tasks = (rows + step - 1) / step;
    return make_kernel([=, of_x = BatchIndex(out, x), of_y = BatchIndex(out, y),
                        of_weight = BatchIndex(out, weight)](
                           const RunContext&, void* const* operands, void* const* results) {
      const auto matrix_of = [&](size_t operand, int64_t index, int64_t height, int64_t width) {
        return static_cast<const T*>(operands[operand]) + index * height * width;
      };
      parallel_for(batch * tasks, 1, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          const int64_t matrix = i / tasks, first = i % tasks * step;
          loops.weighted(matrix_of(0, of_x(matrix), rows, size) + first * size,
                         std::min(step, rows - first), matrix_of(1, of_y(matrix), count, size),
                         matrix_of(2, of_weight(matrix), rows, count) + first * count, count, size,
                         static_cast<T*>(results[0]) + (matrix * rows + first) * size);
        }
      });
    });
  });
}

}  // namespace paddle::cpu
