// Gather and scatter. Elements are copied by size; scatters that combine do so in the element type
// (16-bit floats through f32), in the order of the indices.

#include <algorithm>
#include <cstring>

#include "base/parallel.h"
#include "kernels/common/convert.h"
#include "kernels/elementwise/elementwise.h"
#include "ops/generated/indexing.h"
#include "tensor/complex.h"

namespace paddle::cpu {
namespace {

/// Calls `f` with an unsigned integer of the element's size.
template <class F>
auto visit_element_size(DType dtype, F f) {
  return visit_unsigned_of_size(item_size(dtype), f, [&]() -> decltype(f(uint8_t())) {
    fail(ErrorCode::kUsage, "cannot index tensors of ", text(dtype));
  });
}

/// Indices of any integer type; negative ones count from the end.
class Indices {
 public:
  Indices(DType dtype, std::string_view op)
      : read_(convert_fn(dtype, DType::kI64)), item_(item_size(dtype)), dtype_(dtype), op_(op) {}
  int64_t at(const void* indices, int64_t i, int64_t size) const {
    int64_t value;
    read_(static_cast<const std::byte*>(indices) + i * item_, 1, &value, 1);
    return normalize(value, size);
  }

  /// Reads [begin, end) into `out`.
  void read(const void* indices, int64_t begin, int64_t end, int64_t size, int64_t* out) const {
    read_block(indices, begin, end - begin, size, out + begin);
  }
  /// Reads `count` indices from `begin` on into `out`.
  void read_block(const void* indices, int64_t begin, int64_t count, int64_t size,
                  int64_t* out) const {
    read_raw(indices, begin, count, out);
    check(out, count, size);
    for (int64_t i = 0; i < count; ++i) out[i] += out[i] < 0 ? size : 0;
  }
  void read_raw(const void* indices, int64_t begin, int64_t count, int64_t* out) const {
    read_(static_cast<const std::byte*>(indices) + begin * item_, 1, out, count);
  }
  /// Rejects the first index that is out of range.
  void check(const int64_t* values, int64_t count, int64_t size) const {
    int64_t bad = 0;
    for (int64_t i = 0; i < count; ++i) bad |= (values[i] < -size) | (values[i] >= size);
    if (bad)
      for (int64_t i = 0; i < count; ++i) normalize(values[i], size);
  }
  int64_t normalized(int64_t value, int64_t size) const { return normalize(value, size); }

  /// out[i] = origin + index * step + i * along, for `count` indices from `begin` on.
  void addresses(const void* indices, int64_t begin, int64_t count, int64_t size, int64_t origin,
                 int64_t step, int64_t along, int64_t* out) const {
    bool inside = false;
    if (dtype_ == DType::kI64) {
      inside = addresses_of(static_cast<const int64_t*>(indices) + begin, count, size, origin, step,
                            along, out);
    } else if (dtype_ == DType::kI32) {
      inside = addresses_of(static_cast<const int32_t*>(indices) + begin, count, size, origin, step,
                            along, out);
    } else {
      read_raw(indices, begin, count, out);
      inside = addresses_of(out, count, size, origin, step, along, out);
    }
    if (inside) return;
    read_raw(indices, begin, count, out);
    check(out, count, size);
  }

 private:
  int64_t normalize(int64_t value, int64_t size) const {
    if (value < -size || value >= size)
      fail(ErrorCode::kData, op_, ": index ", value, " is out of range for ", size, " elements");
    return value < 0 ? value + size : value;
  }

  /// False if an index is out of range. `out` may be `indices`.
  template <class I>
  static bool addresses_of(const I* indices, int64_t count, int64_t size, int64_t origin,
                           int64_t step, int64_t along, int64_t* out) {
    // The sign bit is set if an index was out of range. Unsigned, as those may overflow.
    uint64_t signs = 0;
    const auto normalized = [&](int64_t i) {
      const auto index = static_cast<int64_t>(indices[i]);
      const uint64_t place = static_cast<uint64_t>(index) +
                             (static_cast<uint64_t>(index >> 63) & static_cast<uint64_t>(size));
      signs |= place | (static_cast<uint64_t>(size) - 1 - place);
      return place;
    };
    if (step == 1 && along == 0) {
      for (int64_t i = 0; i < count; ++i)
        out[i] = static_cast<int64_t>(static_cast<uint64_t>(origin) + normalized(i));
    } else {
      for (int64_t i = 0; i < count; ++i)
        out[i] = static_cast<int64_t>(static_cast<uint64_t>(origin + i * along) +
                                      normalized(i) * static_cast<uint64_t>(step));
    }
    return signs >> 63 == 0;
  }

  ConvertFn read_;
  int64_t item_;
  DType dtype_;
  std::string op_;
};

int64_t normalize_axis(int64_t axis, size_t rank) {
  return axis < 0 ? axis + static_cast<int64_t>(rank) : axis;
}

void copy_bytes(const void* from, void* to, size_t bytes) {
  if (from != to) std::memcpy(to, from, bytes);
}

size_t bytes_of(const Layout& layout) {
  return static_cast<size_t>(layout.size() * item_size(layout.dtype));
}

/// sums[i] += x[i].
template <class T>
void add_row(const T* __restrict x, T* __restrict sums, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    if constexpr (std::is_same_v<T, float16> || std::is_same_v<T, bfloat16>)
      sums[i] = T(static_cast<float>(sums[i]) + static_cast<float>(x[i]));
    else
      sums[i] = static_cast<T>(sums[i] + x[i]);
  }
}

/// Applies f in T, through f32 for 16-bit floats.
template <class T, class F>
T apply_in_f32(T a, T b, F f) {
  if constexpr (std::is_same_v<T, float16> || std::is_same_v<T, bfloat16>)
    return T(f(static_cast<float>(a), static_cast<float>(b)));
  else
    return static_cast<T>(f(a, b));
}

/// Selects the rows at the indices from each of `outer` blocks of `size` rows.
void select_rows(const std::byte* in, const int64_t* at, int64_t outer, int64_t size, int64_t count,
                 int64_t bytes, std::byte* out) {
  if (count == 0) return;
  const auto select = [&](auto copy) {
    parallel_for(outer * count, std::max<int64_t>(1, 65536 / (bytes + 1)),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t i = begin; i < end;) {
                     const int64_t block = i / count, first = i % count;
                     const int64_t last = std::min(count, first + end - i);
                     copy(in + block * size * bytes, out + block * count * bytes, first, last);
                     i += last - first;
                   }
                 });
  };
  const auto copy_words = [&]<class T>(T) {
    select([&](const std::byte* rows, std::byte* copies, int64_t first, int64_t last) {
      const T* const from = reinterpret_cast<const T*>(rows);
      T* const to = reinterpret_cast<T*>(copies);
      for (int64_t i = first; i < last; ++i) to[i] = from[at[i]];
    });
  };
  visit_unsigned_of_size(bytes, copy_words, [&] {
    select([&](const std::byte* rows, std::byte* copies, int64_t first, int64_t last) {
      for (int64_t i = first; i < last; ++i)
        std::memcpy(copies + i * bytes, rows + at[i] * bytes, static_cast<size_t>(bytes));
    });
  });
}

}  // namespace

namespace {

/// Addresses of indices along one axis of x, a run along the last axis of the index at a time.
struct AxisRuns {
  static constexpr int64_t kBlock = 512;

  Indices indices;
  Dims outer,
      strides;         ///< of the index without its last axis; strides in x, 0 for the indexed axis
  int64_t length = 1;  ///< of a run
  int64_t size, step;  ///< of the indexed axis of x
  int64_t along;       ///< step in x from place to place of a run, besides the index
  int64_t rows = 1;

  AxisRuns(const Layout& x, const Layout& index, int64_t given, std::string_view op)
      : indices(index.dtype, op) {
    const size_t rank = x.shape.size();
    const size_t axis = static_cast<size_t>(normalize_axis(given, rank));
    const Dims all = contiguous_strides(x.shape);
    size = rank == 0 ? 1 : x.shape[axis];
    step = rank == 0 ? 1 : all[axis];
    along = rank == 0 || axis + 1 == rank ? 0 : 1;
    if (rank == 0) return;
    length = index.shape.back();
    outer.assign(index.shape.begin(), index.shape.end() - 1);
    strides.assign(all.begin(), all.end() - 1);
    if (axis + 1 < rank) strides[axis] = 0;
    rows = element_count(std::span<const int64_t>(outer));
  }
  /// Where run `row` begins in x.
  int64_t start(int64_t row) const {
    int64_t out = 0;
    for (size_t i = outer.size(); i-- > 0;) {
      out += row % outer[i] * strides[i];
      row /= outer[i];
    }
    return out;
  }
  /// Calls f(first element of the index, count, addresses in x) for blocks of rows [begin, end).
  template <class F>
  void each(const void* index, int64_t begin, int64_t end, F f) const {
    int64_t at[kBlock];
    for (int64_t row = begin; row < end; ++row) {
      const int64_t origin = start(row);
      for (int64_t i = 0; i < length; i += kBlock) {
        const int64_t n = std::min(kBlock, length - i), first = row * length + i;
        indices.addresses(index, first, n, size, origin + i * along, step, along, at);
        f(first, n, static_cast<const int64_t*>(at));
      }
    }
  }
};

}  // namespace

std::unique_ptr<Kernel> prepare_gather_along(const KernelRequest& request) {
  const AxisRuns runs(request.operands[0], request.operands[1],
                      GatherAlongAttrs(request.attrs).axis, request.op.name());
  return visit_element_size(request.operands[0].dtype, [&](auto tag) {
    using T = decltype(tag);
    return make_kernel([=](const RunContext&, void* const* operands, void* const* results) {
      const T* const in = static_cast<const T*>(operands[0]);
      T* const out = static_cast<T*>(results[0]);
      parallel_for(runs.rows, std::max<int64_t>(1, 16384 / std::max<int64_t>(runs.length, 1)),
                   [&](int64_t begin, int64_t end) {
                     runs.each(operands[1], begin, end,
                               [&](int64_t first, int64_t n, const int64_t* at) {
                                 for (int64_t k = 0; k < n; ++k) out[first + k] = in[at[k]];
                               });
                   });
    });
  });
}

namespace {

/// Calls f with the function that combines an old and a new value.
template <class T, class F>
void with_combination(const std::string& reduce, F f) {
  if (reduce == "add" || reduce == "mean")
    return f([](T a, T b) { return apply_in_f32(a, b, [](auto x, auto y) { return x + y; }); });
  if (reduce == "mul")
    return f([](T a, T b) { return apply_in_f32(a, b, [](auto x, auto y) { return x * y; }); });
  if constexpr (!kIsComplex<T>) {
    if (reduce == "amin")
      return f([](T a, T b) {
        return apply_in_f32(a, b, [](auto x, auto y) { return y < x ? y : x; });
      });
    if (reduce == "amax")
      return f([](T a, T b) {
        return apply_in_f32(a, b, [](auto x, auto y) { return y > x ? y : x; });
      });
  }
  f([](T, T b) { return b; });
}

}  // namespace

std::unique_ptr<Kernel> prepare_scatter_along(const KernelRequest& request) {
  const ScatterAlongAttrs attrs(request.attrs);
  const Layout& x = request.operands[0];
  const AxisRuns runs(x, request.operands[1], attrs.axis, request.op.name());
  const int64_t elements = x.size();
  const bool counts = attrs.reduce == "mean" || !attrs.include_self;
  if (is_complex(x.dtype) && (attrs.reduce == "amin" || attrs.reduce == "amax"))
    fail(ErrorCode::kUsage, request.op.name(), ": complex numbers have no order");
  return visit_number(x.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return make_kernel(
        [=, bytes = bytes_of(x)](const RunContext& context, void* const* operands,
                                 void* const* results) {
          const T* const values = static_cast<const T*>(operands[2]);
          T* const out = static_cast<T*>(results[0]);
          copy_bytes(operands[0], out, bytes);
          // Number of values combined into each element, including the old one if it counts.
          int32_t* const combined_count = reinterpret_cast<int32_t*>(context.scratch);
          if (counts) std::fill_n(combined_count, elements, attrs.include_self ? 1 : 0);
          with_combination<T>(attrs.reduce, [&](auto combine) {
            runs.each(operands[1], 0, runs.rows, [&](int64_t first, int64_t n, const int64_t* at) {
              if (!counts) {
                for (int64_t k = 0; k < n; ++k) out[at[k]] = combine(out[at[k]], values[first + k]);
                return;
              }
              for (int64_t k = 0; k < n; ++k) {
                T& target = out[at[k]];
                target = combined_count[at[k]]++ == 0 ? values[first + k]
                                                      : combine(target, values[first + k]);
              }
            });
          });
          if (attrs.reduce == "mean")
            for (int64_t i = 0; i < elements; ++i)
              if (combined_count[i] > 1) {
                if constexpr (std::is_integral_v<T>)
                  out[i] = static_cast<T>(static_cast<int64_t>(out[i]) / combined_count[i]);
                else if constexpr (kIsComplex<T>)
                  out[i] /= static_cast<typename T::value_type>(combined_count[i]);
                else
                  out[i] = static_cast<T>(
                      out[i] / static_cast<typename Accumulator<T>::type>(combined_count[i]));
              }
        },
        counts ? static_cast<size_t>(elements) * 4 : 0);
  });
}

std::unique_ptr<Kernel> prepare_index_select(const KernelRequest& request) {
  const Layout &x = request.operands[0], &index = request.operands[1];
  const size_t axis =
      static_cast<size_t>(normalize_axis(IndexSelectAttrs(request.attrs).axis, x.shape.size()));
  const Indices indices(index.dtype, request.op.name());
  int64_t outer = 1, inner = 1;
  for (size_t i = 0; i < x.shape.size(); ++i)
    if (i != axis) (i < axis ? outer : inner) *= x.shape[i];
  const int64_t size = x.shape[axis], count = index.size(), item = item_size(x.dtype);
  return make_kernel(
      [=](const RunContext& context, void* const* operands, void* const* results) {
        int64_t* const at = reinterpret_cast<int64_t*>(context.scratch);
        parallel_for(count, 8192, [&](int64_t begin, int64_t end) {
          indices.read(operands[1], begin, end, size, at);
        });
        select_rows(static_cast<const std::byte*>(operands[0]), at, outer, size, count,
                    inner * item, static_cast<std::byte*>(results[0]));
      },
      static_cast<size_t>(count) * sizeof(int64_t));
}

std::unique_ptr<Kernel> prepare_index_add(const KernelRequest& request) {
  const IndexAddAttrs attrs(request.attrs);
  const Layout &x = request.operands[0], &index = request.operands[1];
  const size_t axis = static_cast<size_t>(normalize_axis(attrs.axis, x.shape.size()));
  const Indices indices(index.dtype, request.op.name());
  int64_t outer = 1, inner = 1;
  for (size_t i = 0; i < x.shape.size(); ++i)
    if (i != axis) (i < axis ? outer : inner) *= x.shape[i];
  const int64_t size = x.shape[axis], count = index.size();
  const double alpha = attrs.alpha;
  return visit_number(x.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return make_kernel([=, bytes = bytes_of(x)](const RunContext&, void* const* operands,
                                                void* const* results) {
      const T* const values = static_cast<const T*>(operands[2]);
      T* const out = static_cast<T*>(results[0]);
      copy_bytes(operands[0], out, bytes);
      for (int64_t o = 0; o < outer; ++o)
        for (int64_t i = 0; i < count; ++i) {
          T* const target = out + (o * size + indices.at(operands[1], i, size)) * inner;
          const T* const source = values + (o * count + i) * inner;
          if constexpr (std::is_integral_v<T>) {
            for (int64_t j = 0; j < inner; ++j)
              target[j] = static_cast<T>(static_cast<uint64_t>(target[j]) +
                                         static_cast<uint64_t>(static_cast<int64_t>(alpha)) *
                                             static_cast<uint64_t>(source[j]));
          } else {
            using C = typename Accumulator<T>::type;
            const C factor(static_cast<typename RealPart<C>::type>(alpha));
            for (int64_t j = 0; j < inner; ++j)
              target[j] =
                  static_cast<T>(static_cast<C>(target[j]) + factor * static_cast<C>(source[j]));
          }
        }
    });
  });
}

namespace {

/// Coordinates along the last axis of an index tensor.
struct Coordinates {
  Indices indices;
  Dims sizes, strides;  ///< of the indexed axes; strides in slices
  int64_t count;

  Coordinates(const Layout& x, const Layout& index, std::string_view op)
      : indices(index.dtype, op) {
    const size_t depth = static_cast<size_t>(index.shape.back());
    sizes.assign(x.shape.begin(), x.shape.begin() + static_cast<ptrdiff_t>(depth));
    strides = contiguous_strides(sizes);
    count = depth == 0
                ? element_count(std::span<const int64_t>(index.shape).first(index.shape.size() - 1))
                : index.size() / static_cast<int64_t>(depth);
  }
  /// Calls f(i, slice) for the slices that coordinates [begin, end) address.
  template <class F>
  void each(const void* index, int64_t begin, int64_t end, F f) const {
    constexpr int64_t kBlock = 512;
    const auto depth = static_cast<int64_t>(sizes.size());
    int64_t buffer[kBlock];
    const int64_t block = depth == 0 ? kBlock : std::max<int64_t>(1, kBlock / depth);
    if (depth > kBlock) fail(ErrorCode::kUsage, "there are more than ", kBlock, " coordinates");
    for (int64_t first = begin; first < end; first += block) {
      const int64_t n = std::min(block, end - first);
      indices.read_raw(index, first * depth, n * depth, buffer);
      for (int64_t i = 0; i < n; ++i) {
        int64_t at = 0;
        for (int64_t k = 0; k < depth; ++k) {
          const auto axis = static_cast<size_t>(k);
          at += indices.normalized(buffer[i * depth + k], sizes[axis]) * strides[axis];
        }
        f(first + i, at);
      }
    }
  }
};

int64_t slice_size(const Layout& x, const Layout& index) {
  int64_t size = 1;
  for (size_t i = static_cast<size_t>(index.shape.back()); i < x.shape.size(); ++i)
    size *= x.shape[i];
  return size;
}

}  // namespace

std::unique_ptr<Kernel> prepare_gather_nd(const KernelRequest& request) {
  const Layout &x = request.operands[0], &index = request.operands[1];
  const Coordinates coordinates(x, index, request.op.name());
  const size_t bytes = static_cast<size_t>(slice_size(x, index) * item_size(x.dtype));
  return make_kernel([=](const RunContext&, void* const* operands, void* const* results) {
    parallel_for(coordinates.count, 2048, [&](int64_t begin, int64_t end) {
      const auto* const in = static_cast<const std::byte*>(operands[0]);
      auto* const out = static_cast<std::byte*>(results[0]);
      const auto copy_words = [&]<class T>(T) {
        coordinates.each(operands[1], begin, end, [&](int64_t i, int64_t at) {
          reinterpret_cast<T*>(out)[i] = reinterpret_cast<const T*>(in)[at];
        });
      };
      visit_unsigned_of_size(static_cast<int64_t>(bytes), copy_words, [&] {
        coordinates.each(operands[1], begin, end, [&](int64_t i, int64_t at) {
          std::memcpy(out + static_cast<size_t>(i) * bytes, in + static_cast<size_t>(at) * bytes,
                      bytes);
        });
      });
    });
  });
}

std::unique_ptr<Kernel> prepare_scatter_nd_add(const KernelRequest& request) {
  const Layout &x = request.operands[0], &index = request.operands[1];
  const Coordinates coordinates(x, index, request.op.name());
  const int64_t inner = slice_size(x, index);
  const bool add = request.op.name() == "scatter_nd_add";
  return visit_number(x.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return make_kernel(
        [=, bytes = bytes_of(x)](const RunContext&, void* const* operands, void* const* results) {
          const T* const updates = static_cast<const T*>(operands[2]);
          T* const out = static_cast<T*>(results[0]);
          copy_bytes(operands[0], out, bytes);
          coordinates.each(operands[1], 0, coordinates.count, [&](int64_t i, int64_t at) {
            T* const target = out + at * inner;
            const T* const source = updates + i * inner;
            if (add) {
              add_row(source, target, inner);
            } else {
              std::copy(source, source + inner, target);
            }
          });
        });
  });
}

std::unique_ptr<Kernel> prepare_nonzero_rows(const KernelRequest& request) {
  const Layout& x = request.operands[0];
  const ConvertFn load = convert_fn(x.dtype, DType::kBool);
  const int64_t size = x.size(), item = item_size(x.dtype);
  return make_kernel(
      [=, shape = x.shape](const RunContext& context, void* const* operands, void* const* results) {
        constexpr int64_t kBlock = 1024;
        bool buffer[kBlock];
        const auto blocks = [&](auto f) {
          for (int64_t first = 0; first < size; first += kBlock) {
            const int64_t n = std::min(kBlock, size - first);
            load(static_cast<const std::byte*>(operands[0]) + first * item, 1, buffer, n);
            f(first, n);
          }
        };
        int64_t count = 0;
        blocks([&](int64_t, int64_t n) { count += std::count(buffer, buffer + n, true); });
        const int64_t rank = static_cast<int64_t>(shape.size());
        int64_t* out = static_cast<int64_t*>(
            context.allocator ? context.allocator->allocate(0, {count, rank}) : results[0]);
        if (rank == 0) return;
        // Coordinates of the run along the last axis, and the place in it.
        Dims at(shape.size(), 0);
        const int64_t length = shape.back();
        int64_t place = 0;
        blocks([&](int64_t, int64_t n) {
          for (int64_t i = 0; i < n; ++i) {
            if (buffer[i]) {
              for (int64_t k = 0; k + 1 < rank; ++k) out[k] = at[static_cast<size_t>(k)];
              out[rank - 1] = place;
              out += rank;
            }
            if (++place < length) continue;
            place = 0;
            for (size_t k = shape.size() - 1; k-- > 0;) {
              if (++at[k] < shape[k]) break;
              at[k] = 0;
            }
          }
        });
      });
}

std::unique_ptr<Kernel> prepare_masked_select(const KernelRequest& request) {
  const Layout &x = request.operands[0], &mask = request.operands[1];
  Dims shape = x.shape.size() >= mask.shape.size() ? x.shape : mask.shape;
  for (const Dims* each : {&x.shape, &mask.shape})
    for (size_t i = 0; i < each->size(); ++i) {
      int64_t& dim = shape[shape.size() - each->size() + i];
      if ((*each)[i] != 1) dim = (*each)[i];
    }
  const StridedReader values(x, shape, x.dtype), mask_reader(mask, shape, DType::kBool);
  const int64_t size = element_count(std::span<const int64_t>(shape));
  return visit_element_size(x.dtype, [&](auto tag) {
    using T = decltype(tag);
    return make_kernel([=](const RunContext& context, void* const* operands, void* const*) {
      constexpr int64_t kBlock = 1024;
      bool mark_buffer[kBlock];
      T value_buffer[kBlock];
      const auto blocks = [&](auto f) {
        for (int64_t at = 0; at < size; at += kBlock) {
          const int64_t n = std::min(kBlock, size - at);
          f(at, n, static_cast<const bool*>(mask_reader.read(operands[1], at, n, mark_buffer)));
        }
      };
      int64_t count = 0;
      blocks([&](int64_t, int64_t n, const bool* is_selected) {
        count += std::count(is_selected, is_selected + n, true);
      });
      T* out = static_cast<T*>(context.allocator->allocate(0, {count}));
      blocks([&](int64_t at, int64_t n, const bool* is_selected) {
        const T* const v = static_cast<const T*>(values.read(operands[0], at, n, value_buffer));
        for (int64_t i = 0; i < n; ++i)
          if (is_selected[i]) *out++ = v[i];
      });
    });
  });
}

}  // namespace paddle::cpu
