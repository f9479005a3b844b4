#include "kernels/common/convert.h"

#include <cstddef>
#include <cstring>
#include <type_traits>

#include "kernels/common/convert_integers.h"
#include "tensor/complex.h"
#include "tensor/to_integer.h"

namespace paddle::cpu {
namespace {

template <class From, class To>
To convert_value(From value) {
  if constexpr (std::is_same_v<From, To>) {
    return value;
  } else if constexpr (std::is_same_v<From, float16> || std::is_same_v<From, bfloat16>) {
    return convert_value<float, To>(static_cast<float>(value));
  } else if constexpr (std::is_same_v<To, bool>) {
    return value != From(0);
  } else if constexpr (kIsComplex<From> && kIsComplex<To>) {
    return To(value);
  } else if constexpr (kIsComplex<From>) {
    return convert_value<typename From::value_type, To>(value.real());
  } else if constexpr (kIsComplex<To>) {
    return To(static_cast<typename To::value_type>(value));
  } else if constexpr (std::is_same_v<To, float16> || std::is_same_v<To, bfloat16>) {
    return To(static_cast<float>(value));
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    return to_integer<To>(value);
  } else {
    return static_cast<To>(value);
  }
}

template <class From, class To>
void convert(const void* source, int64_t stride, void* target, int64_t n) {
  const From* const in = static_cast<const From*>(source);
  To* const out = static_cast<To*>(target);
  if (stride == 1) {
    if constexpr (std::is_same_v<From, To>) {
      // n == 0 may come with null pointers.
      if (n > 0) std::memcpy(out, in, static_cast<size_t>(n) * sizeof(To));
    } else if constexpr (std::is_same_v<From, float16> && std::is_same_v<To, float>) {
      half_to_float(in, out, n);
    } else if constexpr (std::is_same_v<From, float> && std::is_same_v<To, float16>) {
      float_to_half(in, out, n);
    } else if constexpr (std::is_same_v<From, bfloat16> && std::is_same_v<To, float>) {
      bfloat_to_float(in, out, n);
    } else if constexpr (std::is_same_v<From, float> && std::is_same_v<To, bfloat16>) {
      float_to_bfloat(in, out, n);
    } else if constexpr (std::is_same_v<From, float> && std::is_same_v<To, bool>) {
      float_to_bool(in, out, n);
    } else if constexpr (std::is_same_v<From, float> && std::is_integral_v<To>) {
      float_to_integer(in, out, n);
    } else {
      for (int64_t i = 0; i < n; ++i) out[i] = convert_value<From, To>(in[i]);
    }
    return;
  }
  if (stride == 0) {
    const To value = convert_value<From, To>(*in);
    for (int64_t i = 0; i < n; ++i) out[i] = value;
    return;
  }
  for (int64_t i = 0; i < n; ++i) out[i] = convert_value<From, To>(in[i * stride]);
}

/// 16-byte types, copied as they are.
struct Bytes16 {
  std::byte bytes[16];
};

}  // namespace

ConvertFn convert_fn(DType from, DType to) {
  if (from == to) {
    switch (item_size(from)) {
      case 1:
        return &convert<uint8_t, uint8_t>;
      case 2:
        return &convert<uint16_t, uint16_t>;
      case 4:
        return &convert<uint32_t, uint32_t>;
      case 8:
        return &convert<uint64_t, uint64_t>;
      default:
        return &convert<Bytes16, Bytes16>;
    }
  }
  return visit_number(from, [&](auto from_tag) {
    return visit_number(to, [](auto to_tag) -> ConvertFn {
      return &convert<typename decltype(from_tag)::type, typename decltype(to_tag)::type>;
    });
  });
}

}  // namespace paddle::cpu
