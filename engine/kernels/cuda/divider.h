#pragma once
// Division of 31-bit numbers by a constant, as arguments of kernels.

#include "kernels/cuda/group_source.h"

namespace paddle::cuda {

/// As `Divider` in device/prelude.cuh: for dividends below 2^31.
struct Divider {
  uint32_t divisor = 1, multiplier = 0, shift = 0, unused = 0;

  Divider() = default;
  explicit Divider(int64_t value) {
    std::vector<uint64_t> words;
    append_divider(words, value, false);
    divisor = static_cast<uint32_t>(words[0]);
    multiplier = static_cast<uint32_t>(words[0] >> 32);
    shift = static_cast<uint32_t>(words[1]);
  }
};

inline constexpr int64_t kMaxDividend = int64_t{1} << 31;

}  // namespace paddle::cuda
