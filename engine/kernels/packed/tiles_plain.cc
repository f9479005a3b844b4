// Products with packed panels on any processor.

#include <algorithm>
#include <cmath>

#include "kernels/packed/tiles.h"

namespace paddle::cpu {
namespace {

struct V {
  static constexpr int kIntegerRows = 4, kWideRows = 4, kFloatRows = 4, kFloatGroups = 1;
  struct Floats {
    float at[16];
  };
  struct Ints {
    int32_t at[16];
  };
  struct Bytes {
    uint8_t at[64];
  };

  template <class F>
  static Floats each(F f) {
    Floats out;
    for (int i = 0; i < 16; ++i) out.at[i] = f(i);
    return out;
  }
  static Floats set(float x) {
    return each([&](int) { return x; });
  }
  static Floats load(const float* x) {
    return each([&](int i) { return x[i]; });
  }
  static Floats load(const bfloat16* x) {
    return each([&](int i) { return static_cast<float>(x[i]); });
  }
  static Floats load_half(const uint8_t* x) {
    return each([&](int i) {
      float16 half;
      std::memcpy(&half, x + 2 * i, sizeof half);
      return static_cast<float>(half);
    });
  }
  static Floats load_u8(const uint8_t* x) {
    return each([&](int i) { return static_cast<float>(x[i]); });
  }
  static Floats load_i8(const uint8_t* x) {
    return each([&](int i) { return static_cast<float>(static_cast<int8_t>(x[i])); });
  }
  static void store(float* to, const Floats& x) { std::memcpy(to, x.at, sizeof x.at); }
  static Floats add(const Floats& a, const Floats& b) {
    return each([&](int i) { return a.at[i] + b.at[i]; });
  }
  static Floats mul(const Floats& a, const Floats& b) {
    return each([&](int i) { return a.at[i] * b.at[i]; });
  }
  static Floats fma(const Floats& a, const Floats& b, const Floats& c) {
    return each([&](int i) { return a.at[i] * b.at[i] + c.at[i]; });
  }
  static Ints add_times_128(Ints a, const Ints& b) {
    for (int i = 0; i < 16; ++i) a.at[i] += b.at[i] * 128;
    return a;
  }
  static Floats to_float(const Ints& x) {
    return each([&](int i) { return static_cast<float>(x.at[i]); });
  }
  static Bytes load_bytes(const uint8_t* x) {
    Bytes out;
    std::memcpy(out.at, x, sizeof out.at);
    return out;
  }
  static Bytes low_nibbles(const Bytes& x) {
    Bytes out;
    for (int i = 0; i < 64; ++i) out.at[i] = x.at[i] & 15;
    return out;
  }
  static Bytes high_nibbles(const Bytes& x) {
    Bytes out;
    for (int i = 0; i < 64; ++i) out.at[i] = static_cast<uint8_t>(x.at[i] >> 4);
    return out;
  }

  static Ints set_int(int32_t x) {
    Ints out;
    std::fill_n(out.at, 16, x);
    return out;
  }
  template <int kMax>
  static constexpr int kRun = 8;
  /// Sums of kRun products of four features.
  template <int kMax>
  struct Products {
    Ints sums;
    void begin(const Ints& sum) { sums = sum; }
    void add(const Bytes& w, const int8_t* x) {
      for (int i = 0; i < 16; ++i)
        for (int k = 0; k < 4; ++k) sums.at[i] += w.at[4 * i + k] * x[k];
    }
    const Ints& end(const Ints& /*sum*/) const { return sums; }
  };
  static constexpr bool drops_offset(int /*most*/) { return false; }

  static float largest_magnitude(const Floats& a, const Floats& b) {
    float most = 0, probe = 0;
    for (int i = 0; i < 16; ++i) {
      most = std::max({most, std::abs(a.at[i]), std::abs(b.at[i])});
      probe += a.at[i] * 0.0F + b.at[i] * 0.0F;
    }
    return most + probe;  // which is not finite if a value is not
  }
  /// Of values below 2^22, rounded to the nearest.
  static Ints to_integers(const Floats& x) {
    Ints out;
    for (int i = 0; i < 16; ++i) {
      const float shifted = x.at[i] + 12582912.0F;  // 1.5 * 2^23: the integer is in the low bits
      int32_t bits;
      std::memcpy(&bits, &shifted, sizeof bits);
      out.at[i] = bits - 0x4B400000;
    }
    return out;
  }
  /// Rounded to the nearest.
  static Ints divide_by_128(Ints x) {
    for (int32_t& v : x.at) v = (v + 64) >> 7;
    return x;
  }
  static Ints sub_times_128(Ints a, const Ints& b) {
    for (int i = 0; i < 16; ++i) a.at[i] -= b.at[i] * 128;
    return a;
  }
  static void store_bytes(int8_t* to, const Ints& x) {
    for (int i = 0; i < 16; ++i) to[i] = static_cast<int8_t>(x.at[i]);
  }
  static int32_t sum(const Ints& x) {
    int32_t out = 0;
    for (const int32_t v : x.at) out += v;
    return out;
  }
};

}  // namespace
}  // namespace paddle::cpu

#include "kernels/packed/tiles-inl.h"

namespace paddle::cpu {

const PackedLoops& packed_loops_plain() {
  static constexpr PackedLoops kLoops = {"cpu:packed", multiply, nullptr,
                                         nullptr,      nullptr,  quantize};
  return kLoops;
}

}  // namespace paddle::cpu
