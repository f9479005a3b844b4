// Layer and RMS normalization and the gradient of the former. Means and variances are summed in
// f64; 16-bit floats are computed in f32.

#include <cmath>

#include "kernels/common/rows.h"
#include "kernels/norm/norm_types.h"
#include "kernels/norm/rms_normalize.h"
#include "kernels/reduce/reduce_simd.h"
#include "ops/generated/nn.h"

namespace paddle::cpu {
namespace {

/// n elements of T in C: in place, or a copy in `buffer`.
template <class C, class T>
const C* load_run(const T* source, int64_t n, C* buffer) {
  if constexpr (std::is_same_v<C, T>) {
    return source;
  } else {
    convert_fn(dtype_of<T>(), dtype_of<C>())(source, 1, buffer, n);
    return buffer;
  }
}
template <class C, class T>
void store_run(const C* values, T* target, int64_t n) {
  if constexpr (!std::is_same_v<C, T>)
    convert_fn(dtype_of<C>(), dtype_of<T>())(values, 1, target, n);
}

// --- layer normalization ---

/// Normalizes rows of n elements to mean 0 and variance 1, with means and reciprocal standard
/// deviations as further results; without `kCentered` to a mean square of 1 (RMS norm).
template <class T, bool kCentered>
std::unique_ptr<Kernel> row_norm(const KernelRequest& request, int64_t rows, double epsilon) {
  using C = Compute<T>;
  const int64_t n = rows == 0 ? 0 : request.operands[0].size() / rows;
  const DType weight_type = dtype_or(request, 1, dtype_of<C>()),
              bias_type = dtype_or(request, 2, dtype_of<C>());
  const size_t vector = row_buffer_bytes(n, sizeof(C));
  const size_t each = std::is_same_v<C, T> ? 0 : vector;
  return make_kernel(
      [=](const RunContext& context, void* const* operands, void* const* results) {
        const C* const weight = as_compute_type<C>(operands[1], weight_type, n, context.scratch);
        [[maybe_unused]] const C* const bias =
            kCentered ? as_compute_type<C>(operands[2], bias_type, n, context.scratch + vector)
                      : nullptr;
        const RunContext row_context{context.scratch + 2 * vector, nullptr};
        for_each_row(row_context, rows, n * 2, each, [&](int64_t row, std::byte* buffer) {
          [[maybe_unused]] const RowLoops<C>& loops = row_loops<C>();
          T* const out = static_cast<T*>(results[0]) + row * n;
          C* const values =
              std::is_same_v<C, T> ? reinterpret_cast<C*>(out) : reinterpret_cast<C*>(buffer);
          const C* const x = load_run<C>(static_cast<const T*>(operands[0]) + row * n, n, values);
          if constexpr (kCentered) {
            const C center = static_cast<C>(loops.sum(x, n) / static_cast<double>(n));
            const double variance = loops.squared_distance(x, n, center) / static_cast<double>(n);
            const C rstd = static_cast<C>(1 / std::sqrt(variance + epsilon));
            loops.normalize(x, weight, bias, values, n, center, rstd);
            if (results[1]) static_cast<C*>(results[1])[row] = center;
            if (results[2]) static_cast<C*>(results[2])[row] = rstd;
          } else {
            rms_normalize(x, weight, values, n, epsilon);
          }
          store_run(values, out, n);
        });
      },
      2 * vector + row_scratch(rows, each));
}

template <class T>
std::unique_ptr<Kernel> layer_norm_grad(const KernelRequest& request) {
  using C = Compute<T>;
  const int64_t rows = request.operands[2].size();
  const int64_t n = rows == 0 ? request.results[1].size() : request.operands[1].size() / rows;
  const DType grad_type = request.operands[0].dtype,
              weight_type = dtype_or(request, 4, dtype_of<C>());
  const size_t vector = row_buffer_bytes(n, sizeof(C));
  // Sums over rows are taken in chunks, whose number depends only on the shape.
  const int64_t chunks = std::clamp<int64_t>(rows / 16, 1, kRowWorkers);
  const size_t each = 5 * vector;  // dweight, dbias, scaled gradient, gradient, x
  return make_kernel(
      [=](const RunContext& context, void* const* operands, void* const* results) {
        const C* const weight = as_compute_type<C>(operands[4], weight_type, n, context.scratch);
        const ConvertFn load_grad = convert_fn(grad_type, dtype_of<C>());
        std::byte* const buffers = context.scratch + vector;
        const RowLoops<C>& loops = row_loops<C>();
        parallel_for(
            chunks, std::max<int64_t>(1, 16384 / std::max<int64_t>(1, n * rows / chunks)),
            [&](int64_t first, int64_t last) {
              for (int64_t chunk = first; chunk < last; ++chunk) {
                C* const dweight =
                    reinterpret_cast<C*>(buffers + static_cast<size_t>(chunk) * each);
                C* const dbias =
                    reinterpret_cast<C*>(reinterpret_cast<std::byte*>(dweight) + vector);
                C* const scaled =
                    reinterpret_cast<C*>(reinterpret_cast<std::byte*>(dweight) + 2 * vector);
                C* const wide_grad =
                    reinterpret_cast<C*>(reinterpret_cast<std::byte*>(dweight) + 3 * vector);
                C* const wide_x =
                    reinterpret_cast<C*>(reinterpret_cast<std::byte*>(dweight) + 4 * vector);
                std::fill_n(dweight, n, C(0));
                std::fill_n(dbias, n, C(0));
                for (int64_t row = rows * chunk / chunks; row < rows * (chunk + 1) / chunks;
                     ++row) {
                  const void* const source =
                      static_cast<const std::byte*>(operands[0]) + row * n * item_size(grad_type);
                  const C* g = static_cast<const C*>(source);
                  if (grad_type != dtype_of<C>()) {
                    load_grad(source, 1, wide_grad, n);
                    g = wide_grad;
                  }
                  const C* const x =
                      load_run<C>(static_cast<const T*>(operands[1]) + row * n, n, wide_x);
                  const C mean = static_cast<const C*>(operands[2])[row],
                          rstd = static_cast<const C*>(operands[3])[row];
                  loops.add(dbias, g, n);
                  loops.add_centered(dweight, g, x, n, mean, rstd);
                  const C* t = g;
                  if (weight) {
                    loops.multiply(g, weight, scaled, n);
                    t = scaled;
                  }
                  const double sum = loops.sum(t, n),
                               centered_sum = loops.dot_centered(t, x, n, mean) * rstd;
                  T* const out = static_cast<T*>(results[0]) + row * n;
                  C* const dx = std::is_same_v<C, T> ? reinterpret_cast<C*>(out) : scaled;
                  loops.combine(
                      t, x, dx, n, rstd,
                      static_cast<C>(-centered_sum / static_cast<double>(n) * rstd * rstd), mean,
                      static_cast<C>(-sum / static_cast<double>(n) * rstd));
                  store_run(dx, out, n);
                }
              }
            });
        // Chunks are added in order, in f64.
        parallel_for(n, 4096, [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i) {
            double dweight = 0, dbias = 0;
            for (int64_t chunk = 0; chunk < chunks; ++chunk) {
              const std::byte* const sums = buffers + static_cast<size_t>(chunk) * each;
              dweight += reinterpret_cast<const C*>(sums)[i];
              dbias += reinterpret_cast<const C*>(sums + vector)[i];
            }
            static_cast<T*>(results[1])[i] = static_cast<T>(static_cast<C>(dweight));
            static_cast<T*>(results[2])[i] = static_cast<T>(static_cast<C>(dbias));
          }
        });
      },
      vector + each * static_cast<size_t>(chunks));
}

}  // namespace

std::unique_ptr<Kernel> prepare_layer_norm(const KernelRequest& request) {
  const double epsilon = LayerNormAttrs(request.attrs).epsilon;
  return visit_float(request.operands[0].dtype, [&](auto tag) {
    return row_norm<typename decltype(tag)::type, true>(request, request.results[1].size(),
                                                        epsilon);
  });
}

std::unique_ptr<Kernel> prepare_layer_norm_grad(const KernelRequest& request) {
  return visit_float(request.operands[1].dtype, [&](auto tag) {
    return layer_norm_grad<typename decltype(tag)::type>(request);
  });
}

std::unique_ptr<Kernel> prepare_rms_norm(const KernelRequest& request) {
  const RmsNormAttrs attrs(request.attrs);
  int64_t n = 1;
  for (const int64_t size : attrs.normalized_shape.as_ints()) n *= size;
  const int64_t rows = n == 0 ? 0 : request.operands[0].size() / n;
  return visit_float(request.operands[0].dtype, [&](auto tag) {
    return row_norm<typename decltype(tag)::type, false>(request, rows, attrs.eps);
  });
}

}  // namespace paddle::cpu
