// Products with packed panels on any processor.

#include "kernels/packed/tiles.h"

namespace paddle::cpu {
namespace {

struct V {
  static constexpr int kIntegerRows = 4, kWideRows = 4, kFloatRows = 4, kFloatGroups = 1;
  static constexpr bool kSignsFullRange = false;
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
  static Ints set_int(int32_t x) {
    Ints out;
    for (int32_t& v : out.at) v = x;
    return out;
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
  template <bool kFullRange>
  static Ints dot(Ints sum, const Bytes& w, const int8_t* x) {
    for (int i = 0; i < 16; ++i)
      for (int k = 0; k < 4; ++k) sum.at[i] += w.at[4 * i + k] * x[k];
    return sum;
  }
};

}  // namespace
}  // namespace paddle::cpu

#include "kernels/packed/tiles-inl.h"

namespace paddle::cpu {

const PackedLoops& packed_loops_plain() {
  static constexpr PackedLoops kLoops = {"cpu:packed", multiply, quantize};
  return kLoops;
}

}  // namespace paddle::cpu
