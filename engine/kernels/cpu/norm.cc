// Layer and batch normalisation with their gradients. Means and variances are summed in f64;
// 16-bit floats are worked on in f32.

#include <cmath>

#include "kernels/cpu/reduce_loops.h"
#include "kernels/cpu/row_kernels.h"
#include "ops/generated/attrs.h"

namespace paddle::cpu {
namespace {

template <class T>
using Compute = std::conditional_t<std::is_same_v<T, double>, double, float>;

/// An optional vector of any float type in C: itself, or a copy in `buffer`.
template <class C>
const C* vector_as(const void* source, DType dtype, int64_t n, std::byte* buffer) {
  if (!source) return nullptr;
  if (dtype == dtype_of<C>()) return static_cast<const C*>(source);
  convert_fn(dtype, dtype_of<C>())(source, 1, buffer, n);
  return reinterpret_cast<const C*>(buffer);
}

/// A run of T in C: itself, or a copy in `buffer`.
template <class C, class T>
const C* run_as(const T* source, int64_t n, C* buffer) {
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

DType dtype_or(const KernelRequest& request, size_t operand, DType otherwise) {
  return operand < request.operands.size() && request.operands[operand].present
             ? request.operands[operand].dtype
             : otherwise;
}

// ---- layer normalisation
// -------------------------------------------------------------------------

template <class T>
std::unique_ptr<Kernel> layer_norm(const KernelRequest& request, double epsilon) {
  using C = Compute<T>;
  const int64_t rows = request.results[1].size();
  const int64_t n = rows == 0 ? 0 : request.operands[0].size() / rows;
  const DType weight_type = dtype_or(request, 1, dtype_of<C>()),
              bias_type = dtype_or(request, 2, dtype_of<C>());
  const size_t vector = row_buffer_bytes(n, sizeof(C));
  const size_t each = std::is_same_v<C, T> ? 0 : vector;
  return make_kernel(
      [=](const RunContext& context, void* const* operands, void* const* results) {
        const C* const weight = vector_as<C>(operands[1], weight_type, n, context.scratch);
        const C* const bias = vector_as<C>(operands[2], bias_type, n, context.scratch + vector);
        const RunContext rest{context.scratch + 2 * vector, nullptr};
        for_each_row(rest, rows, n * 2, each, [&](int64_t row, std::byte* buffer) {
          const RowLoops<C>& loops = row_loops<C>();
          T* const out = static_cast<T*>(results[0]) + row * n;
          C* const values =
              std::is_same_v<C, T> ? reinterpret_cast<C*>(out) : reinterpret_cast<C*>(buffer);
          const C* const x = run_as<C>(static_cast<const T*>(operands[0]) + row * n, n, values);
          const double mean = loops.sum(x, n) / static_cast<double>(n);
          const C center = static_cast<C>(mean);
          const double variance = loops.squared_distance(x, n, center) / static_cast<double>(n);
          const C rstd = static_cast<C>(1 / std::sqrt(variance + epsilon));
          loops.normalize(x, weight, bias, values, n, center, rstd);
          store_run(values, out, n);
          if (results[1]) static_cast<C*>(results[1])[row] = center;
          if (results[2]) static_cast<C*>(results[2])[row] = rstd;
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
  // Sums over rows are taken chunk by chunk; how many there are depends on the shape alone.
  const int64_t chunks = std::clamp<int64_t>(rows / 16, 1, kRowWorkers);
  const size_t each = 5 * vector;  // sums of dweight and dbias, weighted gradient, gradient, x
  return make_kernel(
      [=](const RunContext& context, void* const* operands, void* const* results) {
        const C* const weight = vector_as<C>(operands[4], weight_type, n, context.scratch);
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
                      run_as<C>(static_cast<const T*>(operands[1]) + row * n, n, wide_x);
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
                               along = loops.dot_centered(t, x, n, mean) * rstd;
                  T* const out = static_cast<T*>(results[0]) + row * n;
                  C* const dx = std::is_same_v<C, T> ? reinterpret_cast<C*>(out) : scaled;
                  loops.combine(t, x, dx, n, rstd,
                                static_cast<C>(-along / static_cast<double>(n) * rstd * rstd), mean,
                                static_cast<C>(-sum / static_cast<double>(n) * rstd));
                  store_run(dx, out, n);
                }
              }
            });
        // Chunks in their order, in f64.
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

// ---- batch normalisation
// -------------------------------------------------------------------------

/// A tensor as [outer, channels, inner]; inner is 1 where channels come last.
struct Channels {
  int64_t outer, channels, inner;
  int64_t count() const { return outer * inner; }

  Channels(const Dims& shape, const std::string& data_format) {
    const bool last = shape.size() > 2 && !data_format.empty() && data_format.back() == 'C';
    const size_t axis = last ? shape.size() - 1 : 1;
    outer = inner = 1;
    channels = shape[axis];
    for (size_t i = 0; i < shape.size(); ++i)
      if (i != axis) (i < axis ? outer : inner) *= shape[i];
  }
};

constexpr int64_t kRun = 1024;

/// A channel's elements in C, run by run: `f(values, offset, n)`.
template <class C, class T, class F>
void each_run(const T* x, const Channels& s, int64_t channel, F f) {
  alignas(64) C buffer[kRun];
  const ConvertFn load = convert_fn(dtype_of<T>(), dtype_of<C>());
  if (s.inner == 1) {
    for (int64_t o = 0; o < s.outer; o += kRun) {
      const int64_t n = std::min(kRun, s.outer - o), offset = o * s.channels + channel;
      load(x + offset, s.channels, buffer, n);
      f(buffer, offset, n);
    }
    return;
  }
  for (int64_t o = 0; o < s.outer; ++o) {
    const int64_t start = (o * s.channels + channel) * s.inner;
    if constexpr (std::is_same_v<C, T>) {
      f(x + start, start, s.inner);
    } else {
      for (int64_t i = 0; i < s.inner; i += kRun) {
        const int64_t n = std::min(kRun, s.inner - i);
        load(x + start + i, 1, buffer, n);
        f(buffer, start + i, n);
      }
    }
  }
}

/// The same with a second tensor alongside: `f(a, b, offset, n)`.
template <class C, class T, class F>
void each_pair(const T* a, const T* b, const Channels& s, int64_t channel, F f) {
  alignas(64) C buffer[kRun];
  const ConvertFn load = convert_fn(dtype_of<T>(), dtype_of<C>());
  each_run<C>(a, s, channel, [&](const C* values, int64_t offset, int64_t n) {
    if constexpr (std::is_same_v<C, T>) {
      if (s.inner != 1) {
        f(values, b + offset, offset, n);
        return;
      }
    }
    load(b + offset, s.inner == 1 ? s.channels : 1, buffer, n);
    f(values, buffer, offset, n);
  });
}

/// Writes a run back to where each_run took it from.
template <class C, class T>
void put_run(const C* values, T* out, const Channels& s, int64_t offset, int64_t n) {
  if (s.inner == 1) {
    for (int64_t i = 0; i < n; ++i) out[offset + i * s.channels] = static_cast<T>(values[i]);
  } else {
    convert_fn(dtype_of<C>(), dtype_of<T>())(values, 1, out + offset, n);
  }
}

/// One number of a vector of any float type.
double number_at(const void* vector, DType dtype, int64_t i) {
  double value;
  convert_fn(dtype, DType::kF64)(static_cast<const std::byte*>(vector) + i * item_size(dtype), 1,
                                 &value, 1);
  return value;
}
void put_number(double value, void* vector, DType dtype, int64_t i) {
  convert_fn(DType::kF64, dtype)(&value, 1, static_cast<std::byte*>(vector) + i * item_size(dtype),
                                 1);
}

template <class T>
std::unique_ptr<Kernel> batch_norm(const KernelRequest& request, const BatchNormAttrs& attrs) {
  using C = Compute<T>;
  const Channels s(request.operands[0].shape, attrs.data_format);
  const bool batch = attrs.training && !attrs.use_global_stats.value_or(false);
  const double momentum = attrs.momentum, epsilon = attrs.epsilon;
  const DType mean_type = request.operands[1].dtype, var_type = request.operands[2].dtype;
  const DType weight_type = dtype_or(request, 3, DType::kF32),
              bias_type = dtype_or(request, 4, DType::kF32);
  const int64_t grain = std::max<int64_t>(1, 8192 / std::max<int64_t>(1, s.count()));
  return make_kernel([=](const RunContext&, void* const* operands, void* const* results) {
    const T* const x = static_cast<const T*>(operands[0]);
    T* const out = static_cast<T*>(results[0]);
    const RowLoops<C>& loops = row_loops<C>();
    parallel_for(s.channels, grain, [&](int64_t first, int64_t last) {
      alignas(64) C buffer[kRun];
      for (int64_t c = first; c < last; ++c) {
        const double old_mean = number_at(operands[1], mean_type, c),
                     old_var = number_at(operands[2], var_type, c);
        double mean = old_mean, variance = old_var;
        if (batch) {
          double sum = 0, squares = 0;
          each_run<C>(x, s, c, [&](const C* v, int64_t, int64_t n) { sum += loops.sum(v, n); });
          mean = sum / static_cast<double>(s.count());
          each_run<C>(x, s, c, [&](const C* v, int64_t, int64_t n) {
            squares += loops.squared_distance(v, n, static_cast<C>(mean));
          });
          variance = squares / static_cast<double>(s.count());
        }
        const double rstd = 1 / std::sqrt(variance + epsilon);
        const double weight = operands[3] ? number_at(operands[3], weight_type, c) : 1;
        const C bias = static_cast<C>(operands[4] ? number_at(operands[4], bias_type, c) : 0);
        const C center = static_cast<C>(mean), factor = static_cast<C>(rstd * weight);
        each_run<C>(x, s, c, [&](const C* v, int64_t offset, int64_t n) {
          for (int64_t i = 0; i < n; i += kRun) {
            const int64_t count = std::min(kRun, n - i);
            loops.affine(v + i, buffer, count, center, factor, bias);
            put_run(buffer, out, s, offset + i, count);
          }
        });
        const double blend = batch ? momentum : 1;
        if (results[1])
          put_number(old_mean * blend + (batch ? mean * (1 - momentum) : 0), results[1], mean_type,
                     c);
        if (results[2])
          put_number(old_var * blend + (batch ? variance * (1 - momentum) : 0), results[2],
                     var_type, c);
        if (results[3]) static_cast<C*>(results[3])[c] = center;
        if (results[4]) static_cast<C*>(results[4])[c] = static_cast<C>(rstd);
      }
    });
  });
}

template <class T>
std::unique_ptr<Kernel> batch_norm_grad(const KernelRequest& request,
                                        const BatchNormGradAttrs& attrs) {
  using C = Compute<T>;
  const Channels s(request.operands[1].shape, attrs.data_format);
  const bool batch = attrs.batch_statistics;
  const DType weight_type = dtype_or(request, 4, DType::kF32);
  const int64_t grain = std::max<int64_t>(1, 8192 / std::max<int64_t>(1, s.count()));
  return make_kernel([=](const RunContext&, void* const* operands, void* const* results) {
    const T* const g = static_cast<const T*>(operands[0]);
    const T* const x = static_cast<const T*>(operands[1]);
    T* const out = static_cast<T*>(results[0]);
    const RowLoops<C>& loops = row_loops<C>();
    parallel_for(s.channels, grain, [&](int64_t first, int64_t last) {
      alignas(64) C buffer[kRun];
      for (int64_t c = first; c < last; ++c) {
        const C mean = static_cast<const C*>(operands[2])[c],
                rstd = static_cast<const C*>(operands[3])[c];
        double dbias = 0, along = 0;
        each_pair<C>(g, x, s, c, [&](const C* gv, const C* xv, int64_t, int64_t n) {
          dbias += loops.sum(gv, n);
          along += loops.dot_centered(gv, xv, n, mean);
        });
        const double dweight = along * rstd;
        const double weight = operands[4] ? number_at(operands[4], weight_type, c) : 1;
        const double count = static_cast<double>(s.count());
        const C a = static_cast<C>(weight * rstd);
        const C b = static_cast<C>(batch ? -weight * rstd * rstd * dweight / count : 0);
        const C shift = static_cast<C>(batch ? -weight * rstd * dbias / count : 0);
        each_pair<C>(g, x, s, c, [&](const C* gv, const C* xv, int64_t offset, int64_t n) {
          for (int64_t i = 0; i < n; i += kRun) {
            const int64_t part = std::min(kRun, n - i);
            loops.combine(gv + i, xv + i, buffer, part, a, b, mean, shift);
            put_run(buffer, out, s, offset + i, part);
          }
        });
        static_cast<C*>(results[1])[c] = static_cast<C>(dweight);
        static_cast<C*>(results[2])[c] = static_cast<C>(dbias);
      }
    });
  });
}

}  // namespace

std::unique_ptr<Kernel> prepare_layer_norm(const KernelRequest& request) {
  const double epsilon = LayerNormAttrs(request.attrs).epsilon;
  return visit_float(request.operands[0].dtype, [&](auto tag) {
    return layer_norm<typename decltype(tag)::type>(request, epsilon);
  });
}

std::unique_ptr<Kernel> prepare_layer_norm_grad(const KernelRequest& request) {
  return visit_float(request.operands[1].dtype, [&](auto tag) {
    return layer_norm_grad<typename decltype(tag)::type>(request);
  });
}

std::unique_ptr<Kernel> prepare_batch_norm(const KernelRequest& request) {
  const BatchNormAttrs attrs(request.attrs);
  return visit_float(request.operands[0].dtype, [&](auto tag) {
    return batch_norm<typename decltype(tag)::type>(request, attrs);
  });
}

std::unique_ptr<Kernel> prepare_batch_norm_grad(const KernelRequest& request) {
  const BatchNormGradAttrs attrs(request.attrs);
  // Cotangents of a mixed-precision graph may be wider than x; the decomposition handles those.
  if (request.operands[0].dtype != request.operands[1].dtype) return nullptr;
  return visit_float(request.operands[1].dtype, [&](auto tag) {
    return batch_norm_grad<typename decltype(tag)::type>(request, attrs);
  });
}

}  // namespace paddle::cpu
