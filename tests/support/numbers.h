#pragma once
// Numbers that tests compute on, the same on every machine. For tests of the rooms from tensor/ on.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <vector>

#include "tensor/tensor.h"

namespace paddle::testing_support {

/// A linear congruential generator ("Numerical Recipes"), whose upper bits are good.
class Generator {
 public:
  explicit Generator(uint32_t seed) : state_(seed) {}
  /// 24 bits.
  uint32_t next() { return (state_ = state_ * 1664525u + 1013904223u) >> 8; }
  /// In [-1, 1).
  float number() { return static_cast<float>(next()) / 8388608.0f - 1; }

 private:
  uint32_t state_;
};

/// In [-1, 1).
inline std::vector<float> numbers(int64_t count, uint32_t seed) {
  Generator generator(seed);
  std::vector<float> out(static_cast<size_t>(count));
  for (float& v : out) v = generator.number();
  return out;
}

/// float32 in [shift - scale, shift + scale).
inline Array drawn(const Dims& shape, uint32_t seed, float scale, float shift = 0) {
  Generator generator(seed);
  Array a = Array::empty(DType::kF32, shape);
  for (int64_t i = 0; i < a.size(); ++i) a.data<float>()[i] = shift + scale * generator.number();
  return a;
}

/// The largest difference of two elements; infinite where shapes differ, or one is NaN.
inline double largest_difference(const Array& a, const Array& b) {
  if (a.shape != b.shape) return std::numeric_limits<double>::infinity();
  const Array p = a.contiguous(), q = b.contiguous();
  double most = 0;
  for (int64_t i = 0; i < p.size(); ++i) {
    const double x = p.number(i), y = q.number(i);
    if (x == y) continue;
    const double difference = std::abs(x - y);
    if (std::isnan(difference)) return std::numeric_limits<double>::infinity();
    most = std::max(most, difference);
  }
  return most;
}

/// The same as a part of the largest finite element that was wanted.
inline double relative_difference(const Array& got, const Array& wanted) {
  const Array q = wanted.contiguous();
  double largest = 0;
  for (int64_t i = 0; i < q.size(); ++i)
    if (const double size = std::abs(q.number(i)); std::isfinite(size))
      largest = std::max(largest, size);
  const double difference = largest_difference(got, wanted);
  return difference == 0 ? 0 : difference / largest;
}

/// The same contiguous array at an odd address, as in files.
inline Array misplaced(const Array& a) {
  const auto bytes = static_cast<size_t>(storage_bytes(a.dtype, a.size()));
  auto memory = std::make_shared<std::vector<std::byte>>(bytes + 1);
  std::memcpy(memory->data() + 1, a.raw(), bytes);
  Array out = a;
  out.offset = 0;
  out.storage = Storage::borrow_unaligned(memory->data() + 1, bytes, memory);
  return out;
}

}  // namespace paddle::testing_support
