#include "convert/cast.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "runtime/execute.h"

namespace paddle::convert {
namespace {

constexpr int64_t kPart = int64_t{1} << 18;  // elements

/// The largest finite value of a float type, the largest and smallest of an integer type.
std::pair<double, double> range_of(DType dtype) {
  if (!is_float(dtype)) {
    const int bits = info(dtype).bits;
    if (is_bool(dtype)) return {0, 1};
    if (info(dtype).kind == DTypeKind::kUnsigned) return {0, std::ldexp(1.0, bits) - 1};
    return {-std::ldexp(1.0, bits - 1), std::ldexp(1.0, bits - 1) - 1};
  }
  const auto most = [&] {
    switch (dtype) {
      case DType::kF16:
        return 65504.0;
      case DType::kBF16:
        return 0x1.fep127;
      case DType::kF32:
        return 0x1.fffffep127;
      case DType::kF8E4M3FN:
        return 448.0;
      case DType::kF8E5M2:
      case DType::kF8E5M2FNUZ:
        return 57344.0;
      case DType::kF8E4M3FNUZ:
        return 240.0;
      case DType::kF8E8M0:
        return 0x1p127;
      default:
        return 0x1.fffffffffffffp1023;
    }
  }();
  return {-most, most};
}

void count(const Array& from, const Array& cast, CastLoss& loss) {
  const int64_t n = from.size();
  loss.values += n;
  const Array back = runtime::cast_array(cast, from.dtype).contiguous();
  const auto item = static_cast<size_t>(item_size(from.dtype));
  const auto* a = static_cast<const std::byte*>(from.raw());
  const auto* b = static_cast<const std::byte*>(back.raw());
  if (std::memcmp(a, b, static_cast<size_t>(n) * item) == 0) return;
  if (is_complex(from.dtype) || is_complex(cast.dtype)) {
    for (int64_t i = 0; i < n; ++i)
      loss.changed += std::memcmp(a + static_cast<size_t>(i) * item,
                                  b + static_cast<size_t>(i) * item, item) != 0;
    return;
  }
  const Array x = runtime::cast_array(from, DType::kF64),
              y = runtime::cast_array(cast, DType::kF64),
              z = runtime::cast_array(back, DType::kF64);
  const auto [low, high] = range_of(cast.dtype);
  for (int64_t i = 0; i < n; ++i) {
    const double before = x.data<double>()[i], after = y.data<double>()[i];
    if (std::isnan(before) && std::isnan(after)) continue;
    const bool same = is_float(from.dtype)
                          ? before == z.data<double>()[i]
                          : std::memcmp(a + static_cast<size_t>(i) * item,
                                        b + static_cast<size_t>(i) * item, item) == 0;
    if (same) continue;
    ++loss.changed;
    // A value that rounds to the largest one is rounded; one that is clamped to it is not.
    const bool outside = before < low || before > high;
    loss.overflow += std::isfinite(before) && outside &&
                     (!std::isfinite(after) || !is_float(cast.dtype) ||
                      std::abs(before) > std::abs(after) * (1 + 1.0 / 16));
  }
}

}  // namespace

Array cast_counting(const Array& array, DType to, CastLoss& loss) {
  const Array from = array.contiguous();
  if (from.dtype == to) return from;
  if (info(from.dtype).bits < 8) {  // every wider type holds them
    loss.values += from.size();
    return runtime::cast_array(from, to).contiguous();
  }
  Array out = Array::empty(to, from.shape);
  for (int64_t at = 0; at < from.size(); at += kPart) {
    Array part;
    part.dtype = from.dtype;
    part.shape = {std::min(kPart, from.size() - at)};
    part.strides = {1};
    part.offset = from.offset + at;
    part.storage = from.storage;
    const Array cast = runtime::cast_array(part, to).contiguous();
    std::memcpy(out.storage->data() + at * item_size(to), cast.raw(),
                static_cast<size_t>(storage_bytes(to, cast.size())));
    count(part, cast, loss);
  }
  return out;
}

}  // namespace paddle::convert
