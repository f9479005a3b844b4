#pragma once
// Numbers that tests compute on, the same on every machine. For tests of the rooms from tensor/ on.

#include <cstdint>
#include <cstring>
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

/// float32 in [-scale, scale).
inline Array drawn(const Dims& shape, uint32_t seed, float scale) {
  Generator generator(seed);
  Array a = Array::empty(DType::kF32, shape);
  for (int64_t i = 0; i < a.size(); ++i) a.data<float>()[i] = scale * generator.number();
  return a;
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
