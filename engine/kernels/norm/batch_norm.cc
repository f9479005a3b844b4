// Batch normalization and its gradient, complete and as statistics only (compiled functions call
// the latter before a fused elementwise chain). Sums are kept in f64; 16-bit floats are computed in
// f32. With channels first, the planes of a channel are contiguous runs and channels are
// independent; with channels last, rows of channels are summed in blocks.

#include <cmath>

#include "kernels/common/rows.h"
#include "kernels/norm/channel_simd.h"
#include "kernels/norm/norm_types.h"
#include "kernels/reduce/reduce_simd.h"
#include "ops/generated/nn.h"

namespace paddle::cpu {
namespace {

/// A tensor as [outer, channels, inner]; inner is 1 for channels last.
struct Channels {
  int64_t outer, channels, inner;
  int64_t count() const { return outer * inner; }
  bool last() const { return inner == 1; }

  Channels(const Dims& shape, const std::string& data_format) {
    const bool channels_last =
        shape.size() > 2 && !data_format.empty() && data_format.back() == 'C';
    const size_t axis = channels_last ? shape.size() - 1 : 1;
    outer = inner = 1;
    channels = shape[axis];
    for (size_t i = 0; i < shape.size(); ++i)
      if (i != axis) (i < axis ? outer : inner) *= shape[i];
  }
};

/// One element of a vector of any float type.
double read_element(const void* vector, DType dtype, int64_t i) {
  double value;
  convert_fn(dtype, DType::kF64)(static_cast<const std::byte*>(vector) + i * item_size(dtype), 1,
                                 &value, 1);
  return value;
}
void write_element(double value, void* vector, DType dtype, int64_t i) {
  if (!vector) return;
  convert_fn(DType::kF64, dtype)(&value, 1, static_cast<std::byte*>(vector) + i * item_size(dtype),
                                 1);
}

// --- channels first ---

constexpr int64_t kRun = 1024;

/// Calls `f(values, offset, n)` with a plane's elements in C, run by run.
template <class C, class T, class F>
void for_plane(const T* x, const Channels& s, int64_t plane, F f) {
  const int64_t start = plane * s.inner;
  if constexpr (std::is_same_v<C, T>) {
    f(x + start, start, s.inner);
  } else {
    alignas(64) C buffer[kRun];
    const ConvertFn load = convert_fn(dtype_of<T>(), dtype_of<C>());
    for (int64_t i = 0; i < s.inner; i += kRun) {
      const int64_t n = std::min(kRun, s.inner - i);
      load(x + start + i, 1, buffer, n);
      f(buffer, start + i, n);
    }
  }
}

/// The same with all elements of a channel.
template <class C, class T, class F>
void for_each_run(const T* x, const Channels& s, int64_t channel, F f) {
  for (int64_t o = 0; o < s.outer; ++o) for_plane<C>(x, s, o * s.channels + channel, f);
}

/// The same with a second tensor: `f(a, b, offset, n)`.
template <class C, class T, class F>
void for_each_run_pair(const T* a, const T* b, const Channels& s, int64_t channel, F f) {
  alignas(64) C buffer[kRun];
  const ConvertFn load = convert_fn(dtype_of<T>(), dtype_of<C>());
  for_each_run<C>(a, s, channel, [&](const C* values, int64_t offset, int64_t n) {
    if constexpr (std::is_same_v<C, T>) {
      f(values, b + offset, offset, n);
    } else {
      load(b + offset, 1, buffer, n);
      f(values, buffer, offset, n);
    }
  });
}

/// Calls `work(i, buffer, n)` to compute up to kRun elements at a time, which are then written to
/// `out`.
template <class C, class T, class F>
void write_run(T* out, int64_t offset, int64_t n, F work) {
  if constexpr (std::is_same_v<C, T>) return work(0, out + offset, n);
  alignas(64) C buffer[kRun];
  const ConvertFn store = convert_fn(dtype_of<C>(), dtype_of<T>());
  for (int64_t i = 0; i < n; i += kRun) {
    const int64_t count = std::min(kRun, n - i);
    work(i, buffer, count);
    store(buffer, 1, out + offset + i, count);
  }
}

int64_t channel_grain(const Channels& s) {
  return std::max<int64_t>(1, 8192 / std::max<int64_t>(1, s.count()));
}
int64_t plane_grain(const Channels& s) {
  return std::max<int64_t>(1, 32768 / std::max<int64_t>(1, s.inner));
}

// --- channels last ---

/// Rows are split into chunks, whose number depends only on the shape, so that sums do not depend
/// on the number of threads. Each chunk has two f64 sums per channel, the same for one block of
/// rows in C, and a block of each tensor in C.
template <class T>
struct RowBlocks {
  using C = Compute<T>;
  static constexpr bool kUpcast = !std::is_same_v<C, T>;

  explicit RowBlocks(const Channels& s) : rows(s.outer), channels(s.channels) {
    block = std::clamp<int64_t>(32768 / std::max<int64_t>(1, channels), 8, 256);
    chunks = std::clamp<int64_t>(rows * channels / 65536, 1, 64);
    sums = row_buffer_bytes(channels, 8);
    partial = row_buffer_bytes(channels, sizeof(C));
    upcast = kUpcast ? row_buffer_bytes(block * channels, sizeof(C)) : 0;
    each = 2 * sums + 2 * partial + 2 * upcast;
  }

  size_t bytes() const { return each * static_cast<size_t>(chunks); }

  /// Calls `add(tensors, rows, first, second)` for each block of the one or two tensors and
  /// accumulates what it adds to `first` and `second`.
  template <size_t kTensors, class Add>
  void sum(const T* const (&tensors)[kTensors], std::byte* scratch, Add add) const {
    parallel_for(chunks, 1, [&](int64_t begin, int64_t end) {
      for (int64_t chunk = begin; chunk < end; ++chunk) {
        std::byte* at = scratch + static_cast<size_t>(chunk) * each;
        double* const first = reinterpret_cast<double*>(at);
        double* const second = reinterpret_cast<double*>(at + sums);
        C* const first_part = reinterpret_cast<C*>(at + 2 * sums);
        C* const second_part = reinterpret_cast<C*>(at + 2 * sums + partial);
        C* const buffers = reinterpret_cast<C*>(at + 2 * sums + 2 * partial);
        std::fill_n(first, channels, 0.0);
        std::fill_n(second, channels, 0.0);
        const int64_t stop = rows * (chunk + 1) / chunks;
        for (int64_t row = rows * chunk / chunks; row < stop; row += block) {
          const int64_t n = std::min(block, stop - row);
          const C* blocks[kTensors];
          for (size_t k = 0; k < kTensors; ++k) {
            if constexpr (kUpcast) {
              C* const buffer = buffers + static_cast<int64_t>(k) * block * channels;
              convert_fn(dtype_of<T>(), dtype_of<C>())(tensors[k] + row * channels, 1, buffer,
                                                       n * channels);
              blocks[k] = buffer;
            } else {
              blocks[k] = tensors[k] + row * channels;
            }
          }
          std::fill_n(first_part, channels, C(0));
          std::fill_n(second_part, channels, C(0));
          add(blocks, n, first_part, second_part);
          for (int64_t c = 0; c < channels; ++c) first[c] += static_cast<double>(first_part[c]);
          for (int64_t c = 0; c < channels; ++c) second[c] += static_cast<double>(second_part[c]);
        }
      }
    });
    // Chunks are added in order.
    parallel_for(channels, 256, [&](int64_t begin, int64_t end) {
      for (int64_t chunk = 1; chunk < chunks; ++chunk) {
        const std::byte* const at = scratch + static_cast<size_t>(chunk) * each;
        double* const first = reinterpret_cast<double*>(scratch);
        double* const second = reinterpret_cast<double*>(scratch + sums);
        for (int64_t c = begin; c < end; ++c) {
          first[c] += reinterpret_cast<const double*>(at)[c];
          second[c] += reinterpret_cast<const double*>(at + sums)[c];
        }
      }
    });
  }

  /// Calls `work(rows, out)` for every row; `out` may be one of the rows.
  template <size_t kTensors, class Work>
  void map(const T* const (&tensors)[kTensors], T* out, std::byte* scratch, Work work) const {
    parallel_for(chunks, 1, [&](int64_t begin, int64_t end) {
      for (int64_t chunk = begin; chunk < end; ++chunk) {
        std::byte* const at = scratch + static_cast<size_t>(chunk) * each;
        C* const buffers = reinterpret_cast<C*>(at + 2 * sums + 2 * partial);
        const int64_t stop = rows * (chunk + 1) / chunks;
        for (int64_t row = rows * chunk / chunks; row < stop; ++row) {
          const C* wide_rows[kTensors];
          for (size_t k = 0; k < kTensors; ++k) {
            if constexpr (kUpcast) {
              C* const buffer = buffers + static_cast<int64_t>(k) * channels;
              convert_fn(dtype_of<T>(), dtype_of<C>())(tensors[k] + row * channels, 1, buffer,
                                                       channels);
              wide_rows[k] = buffer;
            } else {
              wide_rows[k] = tensors[k] + row * channels;
            }
          }
          if constexpr (kUpcast) {
            work(wide_rows, buffers);
            convert_fn(dtype_of<C>(), dtype_of<T>())(buffers, 1, out + row * channels, channels);
          } else {
            work(wide_rows, out + row * channels);
          }
        }
      }
    });
  }

  int64_t rows, channels, block, chunks;
  size_t sums, partial, upcast, each;
};

// --- forward ---

/// The per-channel vectors of batch_norm: operands and results.
template <class C>
struct ChannelVectors {
  const void *running_mean, *running_var, *weight, *bias;
  void *new_mean, *new_var;
  C *mean, *rstd, *scale, *shift;
};

struct BatchNormParams {
  explicit BatchNormParams(const KernelRequest& request, const BatchNormAttrs& attrs)
      : mean(request.operands[1].dtype),
        var(request.operands[2].dtype),
        weight(dtype_or(request, 3, DType::kF32)),
        bias(dtype_or(request, 4, DType::kF32)),
        batch(attrs.training && !attrs.use_global_stats.value_or(false)),
        momentum(attrs.momentum),
        epsilon(attrs.epsilon) {}

  /// Computes everything that depends on a channel's mean and variance in this batch.
  template <class C>
  void finish_channel(const ChannelVectors<C>& v, int64_t c, double batch_mean,
                      double batch_var) const {
    const double old_mean = read_element(v.running_mean, mean, c),
                 old_var = read_element(v.running_var, var, c);
    const double center = batch ? batch_mean : old_mean, variance = batch ? batch_var : old_var;
    const double rstd = 1 / std::sqrt(variance + epsilon);
    const double blend = batch ? momentum : 1;
    write_element(old_mean * blend + (batch ? center * (1 - momentum) : 0), v.new_mean, mean, c);
    write_element(old_var * blend + (batch ? variance * (1 - momentum) : 0), v.new_var, var, c);
    v.mean[c] = static_cast<C>(center);
    if (v.rstd) v.rstd[c] = static_cast<C>(rstd);
    v.scale[c] = static_cast<C>(rstd * (v.weight ? read_element(v.weight, weight, c) : 1));
    v.shift[c] = static_cast<C>(v.bias ? read_element(v.bias, bias, c) : 0);
  }

  DType mean, var, weight, bias;
  bool batch;
  double momentum, epsilon;
};

/// Mean and variance of a channel with channels first.
template <class C, class T>
std::pair<double, double> plane_moments(const T* x, const Channels& s, int64_t channel) {
  const RowLoops<C>& loops = row_loops<C>();
  const double count = static_cast<double>(s.count());
  double sum = 0, squares = 0;
  for_each_run<C>(x, s, channel, [&](const C* v, int64_t, int64_t n) { sum += loops.sum(v, n); });
  const double mean = sum / count;
  for_each_run<C>(x, s, channel, [&](const C* v, int64_t, int64_t n) {
    squares += loops.squared_distance(v, n, static_cast<C>(mean));
  });
  return {mean, squares / count};
}

/// All per-channel vectors with channels last. Distances are taken from the mean of a few rows
/// spread over the batch, which is close enough to the true mean to avoid cancellation.
template <class T>
void row_statistics(const T* x, const RowBlocks<T>& blocks, const BatchNormParams& types,
                    const ChannelVectors<Compute<T>>& v, std::byte* scratch) {
  using C = Compute<T>;
  if (types.batch && blocks.rows > 0) {
    const int64_t samples = std::min<int64_t>(32, blocks.rows);
    C* const center = v.scale;  // unused until finish_channel
    std::fill_n(center, blocks.channels, C(0));
    for (int64_t i = 0; i < samples; ++i) {
      const T* const row = x + i * blocks.rows / samples * blocks.channels;
      for (int64_t c = 0; c < blocks.channels; ++c)
        center[c] += static_cast<C>(row[c]) / static_cast<C>(samples);
    }
    blocks.sum({x}, scratch, [&](const C* const* rows, int64_t n, C* first, C* second) {
      channel_loops<C>().moments(rows[0], n, blocks.channels, center, first, second);
    });
  }
  const double* const first = reinterpret_cast<const double*>(scratch);
  const double* const second = reinterpret_cast<const double*>(scratch + blocks.sums);
  const double count = static_cast<double>(blocks.rows);
  for (int64_t c = 0; c < blocks.channels; ++c) {
    double mean = 0, variance = 0;
    if (types.batch) {
      const double distance = first[c] / count;
      mean = static_cast<double>(v.scale[c]) + distance;
      variance = std::max(0.0, second[c] / count - distance * distance);
    }
    types.finish_channel(v, c, mean, variance);
  }
}

/// The i-th per-channel vector at the start of scratch.
template <class C>
C* scratch_vector(const RunContext& context, const Channels& s, size_t i) {
  return reinterpret_cast<C*>(context.scratch + i * row_buffer_bytes(s.channels, sizeof(C)));
}
template <class C>
size_t scratch_vector_bytes(const Channels& s, size_t count) {
  return count * row_buffer_bytes(s.channels, sizeof(C));
}

/// With `kWithOutput` the complete batch_norm, whose intermediate vectors are in scratch; otherwise
/// the statistics, where all vectors are results.
template <class T, bool kWithOutput>
std::unique_ptr<Kernel> batch_norm(const KernelRequest& request, const BatchNormAttrs& attrs) {
  using C = Compute<T>;
  const Channels s(request.operands[0].shape, attrs.data_format);
  const BatchNormParams types(request, attrs);
  const RowBlocks<T> blocks(s);
  const int64_t grain = channel_grain(s);
  const size_t vector_bytes = kWithOutput ? scratch_vector_bytes<C>(s, 3) : 0;
  return make_kernel(
      [=](const RunContext& context, void* const* operands, void* const* results) {
        const T* const x = static_cast<const T*>(operands[0]);
        T* const out = kWithOutput ? static_cast<T*>(results[0]) : nullptr;
        void* const* const vectors = results + (kWithOutput ? 1 : 0);
        const auto vector = [&](size_t i) { return static_cast<C*>(vectors[i]); };
        const auto small = [&](size_t i) { return scratch_vector<C>(context, s, i); };
        const ChannelVectors<C> v{operands[1],
                                  operands[2],
                                  operands[3],
                                  operands[4],
                                  vectors[0],
                                  vectors[1],
                                  vector(2) ? vector(2) : small(2),
                                  vector(3),
                                  kWithOutput ? small(0) : vector(4),
                                  kWithOutput ? small(1) : vector(5)};
        if (s.last()) {
          std::byte* const blocks_scratch = context.scratch + vector_bytes;
          row_statistics(x, blocks, types, v, blocks_scratch);
          if (kWithOutput)
            blocks.map({x}, out, blocks_scratch, [&](const C* const* rows, C* to) {
              channel_loops<C>().affine(rows[0], to, s.channels, v.mean, v.scale, v.shift);
            });
          return;
        }
        const RowLoops<C>& loops = row_loops<C>();
        if (!types.batch && kWithOutput) {  // in the order of memory: no channel is summed
          for (int64_t c = 0; c < s.channels; ++c) types.finish_channel(v, c, 0, 0);
          parallel_for(s.outer * s.channels, plane_grain(s), [&](int64_t first, int64_t last) {
            for (int64_t plane = first; plane < last; ++plane) {
              const int64_t c = plane % s.channels;
              for_plane<C>(x, s, plane, [&](const C* values, int64_t offset, int64_t n) {
                write_run<C>(out, offset, n, [&](int64_t i, C* to, int64_t count) {
                  loops.affine(values + i, to, count, v.mean[c], v.scale[c], v.shift[c]);
                });
              });
            }
          });
          return;
        }
        parallel_for(s.channels, grain, [&](int64_t first, int64_t last) {
          for (int64_t c = first; c < last; ++c) {
            const auto [center, variance] =
                types.batch ? plane_moments<C>(x, s, c) : std::pair(0.0, 0.0);
            types.finish_channel(v, c, center, variance);
            if (!kWithOutput) continue;
            for_each_run<C>(x, s, c, [&](const C* values, int64_t offset, int64_t n) {
              write_run<C>(out, offset, n, [&](int64_t i, C* to, int64_t count) {
                loops.affine(values + i, to, count, v.mean[c], v.scale[c], v.shift[c]);
              });
            });
          }
        });
      },
      vector_bytes + (s.last() ? blocks.bytes() : 0));
}

// --- gradient ---

template <class C>
struct GradChannelVectors {
  const C *mean, *rstd;
  const void* weight;
  C *dweight, *dbias, *scale, *slope, *shift;
};

struct BatchNormGradParams {
  DType weight;
  bool batch;
  double count;

  /// Computes everything that depends on a channel's Σ g and Σ g (x - mean).
  template <class C>
  void finish_channel(const GradChannelVectors<C>& v, int64_t c, double sum,
                      double centered_sum) const {
    const double rstd = static_cast<double>(v.rstd[c]), dweight = centered_sum * rstd;
    const double factor = (v.weight ? read_element(v.weight, weight, c) : 1) * rstd;
    v.dweight[c] = static_cast<C>(dweight);
    v.dbias[c] = static_cast<C>(sum);
    v.scale[c] = static_cast<C>(factor);
    v.slope[c] = static_cast<C>(batch ? -factor * rstd * dweight / count : 0);
    v.shift[c] = static_cast<C>(batch ? -factor * sum / count : 0);
  }
};

template <class C, class T>
std::pair<double, double> plane_grad_sums(const T* g, const T* x, const Channels& s,
                                          int64_t channel, C mean) {
  const RowLoops<C>& loops = row_loops<C>();
  double sum = 0, centered_sum = 0;
  for_each_run_pair<C>(g, x, s, channel, [&](const C* gv, const C* xv, int64_t, int64_t n) {
    sum += loops.sum(gv, n);
    centered_sum += loops.dot_centered(gv, xv, n, mean);
  });
  return {sum, centered_sum};
}

template <class T>
void row_grad_sums(const T* g, const T* x, const RowBlocks<T>& blocks,
                   const BatchNormGradParams& types, const GradChannelVectors<Compute<T>>& v,
                   std::byte* scratch) {
  using C = Compute<T>;
  blocks.sum({g, x}, scratch, [&](const C* const* rows, int64_t n, C* sum, C* centered_sum) {
    channel_loops<C>().grad_sums(rows[0], rows[1], n, blocks.channels, v.mean, sum, centered_sum);
  });
  const double* const sum = reinterpret_cast<const double*>(scratch);
  const double* const centered_sum = reinterpret_cast<const double*>(scratch + blocks.sums);
  for (int64_t c = 0; c < blocks.channels; ++c) types.finish_channel(v, c, sum[c], centered_sum[c]);
}

/// `kWithOutput` as in batch_norm.
template <class T, bool kWithOutput>
std::unique_ptr<Kernel> batch_norm_grad(const KernelRequest& request,
                                        const BatchNormGradAttrs& attrs) {
  using C = Compute<T>;
  const Channels s(request.operands[1].shape, attrs.data_format);
  const BatchNormGradParams types{dtype_or(request, 4, DType::kF32), attrs.batch_statistics,
                                  static_cast<double>(s.count())};
  const RowBlocks<T> blocks(s);
  const int64_t grain = channel_grain(s);
  const size_t vector_bytes = kWithOutput ? scratch_vector_bytes<C>(s, 3) : 0;
  return make_kernel(
      [=](const RunContext& context, void* const* operands, void* const* results) {
        const T* const g = static_cast<const T*>(operands[0]);
        const T* const x = static_cast<const T*>(operands[1]);
        T* const out = kWithOutput ? static_cast<T*>(results[0]) : nullptr;
        void* const* const vectors = results + (kWithOutput ? 1 : 0);
        const auto vector = [&](size_t i) { return static_cast<C*>(vectors[i]); };
        const auto coefficient = [&](size_t i) {
          return kWithOutput ? scratch_vector<C>(context, s, i) : vector(2 + i);
        };
        const GradChannelVectors<C> v{static_cast<const C*>(operands[2]),
                                      static_cast<const C*>(operands[3]),
                                      operands[4],
                                      vector(0),
                                      vector(1),
                                      coefficient(0),
                                      coefficient(1),
                                      coefficient(2)};
        if (s.last()) {
          std::byte* const blocks_scratch = context.scratch + vector_bytes;
          row_grad_sums(g, x, blocks, types, v, blocks_scratch);
          if (kWithOutput)
            blocks.map({g, x}, out, blocks_scratch, [&](const C* const* rows, C* to) {
              channel_loops<C>().combine(rows[0], rows[1], to, s.channels, v.mean, v.scale, v.slope,
                                         v.shift);
            });
          return;
        }
        const RowLoops<C>& loops = row_loops<C>();
        parallel_for(s.channels, grain, [&](int64_t first, int64_t last) {
          for (int64_t c = first; c < last; ++c) {
            const auto [sum, centered_sum] = plane_grad_sums(g, x, s, c, v.mean[c]);
            types.finish_channel(v, c, sum, centered_sum);
            if (!kWithOutput) continue;
            for_each_run_pair<C>(
                g, x, s, c, [&](const C* gv, const C* xv, int64_t offset, int64_t n) {
                  write_run<C>(out, offset, n, [&](int64_t i, C* to, int64_t count) {
                    loops.combine(gv + i, xv + i, to, count, v.scale[c], v.slope[c], v.mean[c],
                                  v.shift[c]);
                  });
                });
          }
        });
      },
      vector_bytes + (s.last() ? blocks.bytes() : 0));
}

/// Null if the cotangent's dtype differs from x, as in mixed-precision graphs; the decomposition
/// handles those.
template <bool kWithOutput>
std::unique_ptr<Kernel> prepare_grad(const KernelRequest& request) {
  const BatchNormGradAttrs attrs(request.attrs);
  if (request.operands[0].dtype != request.operands[1].dtype) return nullptr;
  return visit_float(request.operands[1].dtype, [&](auto tag) {
    return batch_norm_grad<typename decltype(tag)::type, kWithOutput>(request, attrs);
  });
}

template <bool kWithOutput>
std::unique_ptr<Kernel> prepare_forward(const KernelRequest& request) {
  const BatchNormAttrs attrs(request.attrs);
  return visit_float(request.operands[0].dtype, [&](auto tag) {
    return batch_norm<typename decltype(tag)::type, kWithOutput>(request, attrs);
  });
}

}  // namespace

std::unique_ptr<Kernel> prepare_batch_norm(const KernelRequest& request) {
  return prepare_forward<true>(request);
}

std::unique_ptr<Kernel> prepare_batch_norm_statistics(const KernelRequest& request) {
  return prepare_forward<false>(request);
}

std::unique_ptr<Kernel> prepare_batch_norm_grad(const KernelRequest& request) {
  return prepare_grad<true>(request);
}

std::unique_ptr<Kernel> prepare_batch_norm_grad_statistics(const KernelRequest& request) {
  return prepare_grad<false>(request);
}

}  // namespace paddle::cpu
