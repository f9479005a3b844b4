// Constants and ranges.

#include <array>
#include <complex>
#include <cstring>

#include "base/parallel.h"
#include "kernels/common/convert.h"
#include "kernels/elementwise/fill.h"
#include "ops/core/kernel.h"
#include "ops/generated/creation.h"

namespace paddle::cpu {
namespace {

/// Stores a scalar as `dtype`, keeping all 64 bits of an integer.
void put_number(const AttrValue& number, DType dtype, void* out) {
  if (is_complex(dtype)) {
    const std::complex<double> as_f64 = number.as_complex();
    const std::complex<float> as_f32(as_f64);
    if (dtype == DType::kC128)
      std::memcpy(out, &as_f64, sizeof as_f64);
    else
      std::memcpy(out, &as_f32, sizeof as_f32);
  } else if (number.is_bool()) {
    const bool value = number.as_bool();
    convert_fn(DType::kBool, dtype)(&value, 1, out, 1);
  } else if (number.is_int()) {
    const int64_t value = number.as_int();
    convert_fn(DType::kI64, dtype)(&value, 1, out, 1);
  } else {
    const double value = number.as_double();
    convert_fn(DType::kF64, dtype)(&value, 1, out, 1);
  }
}

/// Fills a tensor with `f(index)`, computed in C.
template <class C, class F>
std::unique_ptr<Kernel> fill_by_index(const Layout& result, F f) {
  return fill_by_block<C>(result, [=](void* const*) {
    return [=](int64_t first, int64_t n, C* out) {
      for (int64_t i = 0; i < n; ++i) out[i] = f(first + i);
    };
  });
}

/// Stores a word `count` times. The instruction does not read the cache lines that it overwrites.
void fill_words(std::byte* to, uint64_t word, size_t count) {
#if defined(__x86_64__)
  asm volatile("rep stosq" : "+D"(to), "+c"(count) : "a"(word) : "memory");
#else
  for (size_t i = 0; i < count; ++i) std::memcpy(to + i * sizeof word, &word, sizeof word);
#endif
}

/// A tensor filled with one scalar.
std::unique_ptr<Kernel> constant(const Layout& result, const AttrValue& number) {
  constexpr int64_t kWord = 8, kMinBytes = 1024;  // starting the instruction takes some time
  std::array<std::byte, 16> value{};
  put_number(number, result.dtype, value.data());
  const ConvertFn repeat = convert_fn(result.dtype, result.dtype);
  const int64_t item = item_size(result.dtype);
  const int64_t items_of_word = item <= kWord ? kWord / item : 0;
  uint64_t word = 0;
  repeat(value.data(), 0, &word, items_of_word);
  return make_kernel(
      [=, size = result.size()](const RunContext&, void* const*, void* const* results) {
        parallel_for(size, 65536, [&](int64_t begin, int64_t end) {
          auto* to = static_cast<std::byte*>(results[0]) + begin * item;
          int64_t rest = end - begin;
          if (items_of_word > 0 && rest * item >= kMinBytes) {
            const int64_t words = rest / items_of_word;
            fill_words(to, word, static_cast<size_t>(words));
            to += words * kWord;
            rest -= words * items_of_word;
          }
          repeat(value.data(), 0, to, rest);
        });
      });
}

}  // namespace

std::unique_ptr<Kernel> prepare_full(const KernelRequest& request) {
  return constant(request.results[0], FullAttrs(request.attrs).fill_value);
}

std::unique_ptr<Kernel> prepare_dim_value(const KernelRequest& request) {
  return constant(request.results[0], DimValueAttrs(request.attrs).dim.value());
}

std::unique_ptr<Kernel> prepare_arange(const KernelRequest& request) {
  const ArangeAttrs attrs(request.attrs);
  const Layout& result = request.results[0];
  const AttrValue start = attrs.end.is_none() ? AttrValue(0) : attrs.start;
  if (start.is_int() && attrs.step.is_int()) {
    const auto begin = static_cast<uint64_t>(start.as_int()),
               step = static_cast<uint64_t>(attrs.step.as_int());
    return fill_by_block<int64_t>(result, [=](void* const*) {
      return [=](int64_t first, int64_t n, int64_t* out) {
        // Additions, as instruction sets without a product of 64-bit integers are slow here.
        uint64_t value = begin + static_cast<uint64_t>(first) * step;
        int64_t i = 0;
        for (; i + 4 <= n; i += 4, value += 4 * step) {
          out[i] = static_cast<int64_t>(value);
          out[i + 1] = static_cast<int64_t>(value + step);
          out[i + 2] = static_cast<int64_t>(value + 2 * step);
          out[i + 3] = static_cast<int64_t>(value + 3 * step);
        }
        for (; i < n; ++i, value += step) out[i] = static_cast<int64_t>(value);
      };
    });
  }
  const double first = start.as_double(), step = attrs.step.as_double();
  return fill_by_index<double>(result,
                               [=](int64_t i) { return first + static_cast<double>(i) * step; });
}

// Counts from both ends, so that the last element is exactly `stop`.
std::unique_ptr<Kernel> prepare_linspace(const KernelRequest& request) {
  const LinspaceAttrs attrs(request.attrs);
  const double start = attrs.start.as_double(), stop = attrs.stop.as_double();
  const int64_t last = attrs.num - 1;
  const double step = last > 0 ? (stop - start) / static_cast<double>(last) : 0;
  return fill_by_index<double>(request.results[0], [=](int64_t i) {
    return 2 * i <= last ? start + step * static_cast<double>(i)
                         : stop - step * static_cast<double>(last - i);
  });
}

}  // namespace paddle::cpu
