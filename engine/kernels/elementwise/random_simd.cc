// Philox blocks, normal numbers and permutations in vectors of 64-bit lanes. Everything is integer
// arithmetic or single operations of IEEE 754, so all instruction sets give the same bits.

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/elementwise/random_simd.cc"
#include "hwy/foreach_target.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "hwy/highway.h"

#include "kernels/elementwise/random_loops.h"

HWY_BEFORE_NAMESPACE();
namespace paddle::cpu::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using D64 = hn::ScalableTag<uint64_t>;
using DF64 = hn::RebindToFloat<D64>;
using U64 = hn::Vec<D64>;
using F64 = hn::Vec<DF64>;

HWY_INLINE U64 set(uint64_t value) { return hn::Set(D64(), value); }
HWY_INLINE size_t lanes() { return hn::Lanes(D64()); }

/// The product of the low halves of the lanes.
HWY_INLINE U64 multiply_halves(U64 a, U64 b) {
#if HWY_TARGET == HWY_SCALAR
  const U64 low = set(0xffffffff);
  return hn::Mul(hn::And(a, low), hn::And(b, low));
#else
  const hn::Repartition<uint32_t, D64> halves;
  return hn::MulEven(hn::BitCast(halves, a), hn::BitCast(halves, b));
#endif
}

/// Words 0 and 1, and words 2 and 3, of blocks, one block in a lane.
struct Blocks {
  U64 low, high;
};

/// Two vectors of blocks at a time: the rounds of one wait for each other.
constexpr size_t kVectors = 2;

/// The blocks from `first` on.
HWY_INLINE void philox_blocks(const Random& random, uint64_t first, Blocks* out) {
  const D64 d;
  // The low half of a lane is the word; the high half is anything until the end.
  U64 c0[kVectors], c1[kVectors], c2[kVectors], c3[kVectors];
  for (size_t v = 0; v < kVectors; ++v) {
    c0[v] = hn::Iota(d, first + v * lanes());
    c1[v] = hn::ShiftRight<32>(c0[v]);
    c2[v] = set(random.step());
    c3[v] = set(random.step() >> 32);
  }
  auto [k0, k1] = random.key();
  for (int round = 0; round < 10; ++round) {
    const U64 key0 = set(k0), key1 = set(k1);
    for (size_t v = 0; v < kVectors; ++v) {
      const U64 a = multiply_halves(c0[v], set(0xD2511F53));
      const U64 b = multiply_halves(c2[v], set(0xCD9E8D57));
      c0[v] = hn::Xor(hn::Xor(hn::ShiftRight<32>(b), c1[v]), key0);
      c2[v] = hn::Xor(hn::Xor(hn::ShiftRight<32>(a), c3[v]), key1);
      c1[v] = b;
      c3[v] = a;
    }
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  const U64 word = set(0xffffffff);
  for (size_t v = 0; v < kVectors; ++v)
    out[v] = {hn::Or(hn::And(c0[v], word), hn::ShiftLeft<32>(c1[v])),
              hn::Or(hn::And(c2[v], word), hn::ShiftLeft<32>(c3[v]))};
}

/// out[2 i] = a[i] and out[2 i + 1] = b[i].
template <class D>
HWY_INLINE void store_pairs(hn::Vec<D> a, hn::Vec<D> b, D d, hn::TFromD<D>* out) {
#if HWY_TARGET == HWY_SCALAR
  hn::StoreU(a, d, out);
  hn::StoreU(b, d, out + 1);
#else
  hn::StoreInterleaved2(a, b, d, out);
#endif
}

/// A multiple of the blocks at a time, for any instruction set.
constexpr int64_t kBatch = 64;

/// Calls `fill(block, number of blocks, buffer)` for blocks of kPerBlock numbers, and copies those
/// that are asked for.
template <int64_t kPerBlock, class T, class Fill>
HWY_INLINE void copy_batches(uint64_t first, int64_t count, T* out, const Fill& fill) {
  constexpr int64_t kSize = kBatch * kPerBlock;
  HWY_ALIGN T buffer[kSize];
  int64_t skipped = static_cast<int64_t>(first % kPerBlock);
  uint64_t block = first / kPerBlock;
  while (count > 0) {
    const int64_t n = std::min(count, kSize - skipped);
    fill(block, static_cast<size_t>((skipped + n + kPerBlock - 1) / kPerBlock), buffer);
    std::copy_n(buffer + skipped, n, out);
    out += n;
    count -= n;
    block += kBatch;
    skipped = 0;
  }
}

void words(const Random& random, uint64_t first, int64_t count, uint32_t* out) {
  copy_batches<4>(first, count, out, [&](uint64_t block, size_t number, uint32_t* buffer) HWY_ATTR {
    HWY_ALIGN uint64_t pairs[2 * kBatch];
    for (size_t i = 0; i < number; i += kVectors * lanes()) {
      Blocks blocks[kVectors];
      philox_blocks(random, block + i, blocks);
      for (size_t v = 0; v < kVectors; ++v)
        store_pairs(blocks[v].low, blocks[v].high, D64(), pairs + 2 * (i + v * lanes()));
    }
    std::memcpy(buffer, pairs, number * 16);
  });
}

#include "tensor/box_muller-inl.h"

/// Vectors of doubles.
struct VectorLanes {
  using Number = F64;
  using Bits = U64;

  static HWY_INLINE Number number(double value) { return hn::Set(DF64(), value); }
  static HWY_INLINE Bits bits(uint64_t value) { return set(value); }
  static HWY_INLINE Number add(Number a, Number b) { return hn::Add(a, b); }
  static HWY_INLINE Number sub(Number a, Number b) { return hn::Sub(a, b); }
  static HWY_INLINE Number mul(Number a, Number b) { return hn::Mul(a, b); }
  static HWY_INLINE Number div(Number a, Number b) { return hn::Div(a, b); }
  static HWY_INLINE Number root(Number a) { return hn::Sqrt(a); }
  static HWY_INLINE Bits as_bits(Number a) { return hn::BitCast(D64(), a); }
  static HWY_INLINE Number as_number(Bits a) { return hn::BitCast(DF64(), a); }
  static HWY_INLINE Bits add(Bits a, Bits b) { return hn::Add(a, b); }
  static HWY_INLINE Bits both(Bits a, Bits b) { return hn::And(a, b); }
  static HWY_INLINE Bits either(Bits a, Bits b) { return hn::Or(a, b); }
  static HWY_INLINE Bits flip(Bits a, Bits b) { return hn::Xor(a, b); }
  template <int kCount>
  static HWY_INLINE Bits left(Bits a) {
    return hn::ShiftLeft<kCount>(a);
  }
  template <int kCount>
  static HWY_INLINE Bits right(Bits a) {
    return hn::ShiftRight<kCount>(a);
  }
  static HWY_INLINE Number choose(Bits which, Number a, Number b) {
    const auto mask = hn::TestBit(which, set(1));
    return hn::IfThenElse(hn::RebindMask(DF64(), mask), a, b);
  }
};

/// Random::to_double: the 53 high bits, as 32 and 21 bits that double represents.
HWY_INLINE F64 to_double(U64 bits) {
  constexpr uint64_t kPower52 = 0x4330000000000000;
  const DF64 d;
  const auto number = [&](U64 integer) HWY_ATTR {
    return hn::Sub(hn::BitCast(d, hn::Or(integer, set(kPower52))), hn::Set(d, 0x1p52));
  };
  const U64 low = hn::And(hn::ShiftRight<11>(bits), set(0x1fffff));
  return hn::Add(hn::Mul(number(hn::ShiftRight<32>(bits)), hn::Set(d, 0x1p-32)),
                 hn::Mul(number(low), hn::Set(d, 0x1p-53)));
}

void normals(const Random& random, uint64_t first, int64_t count, double mean, double deviation,
             double* out) {
  copy_batches<2>(first, count, out, [&](uint64_t block, size_t number, double* buffer) HWY_ATTR {
    const DF64 df;
    const F64 m = hn::Set(df, mean), s = hn::Set(df, deviation);
    for (size_t i = 0; i < number; i += kVectors * lanes()) {
      Blocks blocks[kVectors];
      philox_blocks(random, block + i, blocks);
      for (size_t v = 0; v < kVectors; ++v) {
        const auto pair =
            BoxMuller<VectorLanes>::normals(to_double(blocks[v].low), to_double(blocks[v].high));
        store_pairs(hn::Add(m, hn::Mul(s, pair.first)), hn::Add(m, hn::Mul(s, pair.second)), df,
                    buffer + 2 * (i + v * lanes()));
      }
    }
  });
}

using D32 = hn::ScalableTag<uint32_t>;

/// out[i] = f(words[i]) for vectors of words.
template <class F>
HWY_INLINE void map_words(const uint32_t* words, int64_t count, float* out, const F& f) {
  const D32 d;
  const hn::RebindToFloat<D32> df;
  const auto n = static_cast<size_t>(count), step = hn::Lanes(d);
  size_t i = 0;
  for (; i + step <= n; i += step) hn::StoreU(f(hn::LoadU(d, words + i)), df, out + i);
  if (i == n) return;
  HWY_ALIGN uint32_t rest[hn::MaxLanes(D32())] = {};
  HWY_ALIGN float values[hn::MaxLanes(D32())];
  std::copy_n(words + i, n - i, rest);
  hn::Store(f(hn::Load(d, rest)), df, values);
  std::copy_n(values, n - i, out + i);
}

void uniforms(const uint32_t* words, int64_t count, float low, float span, float end, float* out) {
  const hn::RebindToFloat<D32> df;
  const hn::RebindToSigned<D32> di;
  map_words(words, count, out, [&](hn::Vec<D32> bits) HWY_ATTR {
    const auto unit =
        hn::Mul(hn::ConvertTo(df, hn::BitCast(di, hn::ShiftRight<8>(bits))), hn::Set(df, 0x1p-24f));
    const auto value = hn::Add(hn::Set(df, low), hn::Mul(hn::Set(df, span), unit));
    return hn::IfThenElse(hn::Lt(value, hn::Set(df, end)), value, hn::Set(df, low));
  });
}

void dropouts(const uint32_t* words, int64_t count, double probability, float* out) {
  const hn::RebindToFloat<D32> df;
  const hn::RebindToSigned<D32> di;
  // A word's float is a multiple of 2^-24.
  const auto limit = hn::Set(di, static_cast<int32_t>(std::ceil(probability * 0x1p24)));
  map_words(words, count, out, [&](hn::Vec<D32> bits) HWY_ATTR {
    const auto dropped = hn::Lt(hn::BitCast(di, hn::ShiftRight<8>(bits)), limit);
    return hn::IfThenZeroElse(hn::RebindMask(df, dropped), hn::Set(df, 1.0f));
  });
}

HWY_INLINE U64 mix(U64 x) {
  x = hn::Add(x, set(0x9E3779B97F4A7C15u));
  x = hn::Mul(hn::Xor(x, hn::ShiftRight<30>(x)), set(0xBF58476D1CE4E5B9u));
  x = hn::Mul(hn::Xor(x, hn::ShiftRight<27>(x)), set(0x94D049BB133111EBu));
  return hn::Xor(x, hn::ShiftRight<31>(x));
}

/// Random::scale for n below 2^32.
HWY_INLINE U64 scale(U64 bits, U64 n) {
  const U64 low = hn::ShiftRight<32>(multiply_halves(bits, n));
  return hn::ShiftRight<32>(hn::Add(multiply_halves(hn::ShiftRight<32>(bits), n), low));
}

/// (at + by) mod n of numbers below n.
HWY_INLINE U64 turn(U64 at, U64 by, U64 n) {
  const U64 sum = hn::Add(at, by), less = hn::Sub(sum, n);
  // A difference below 0 has the highest bit.
  return hn::IfThenElse(hn::TestBit(less, set(uint64_t{1} << 63)), sum, less);
}

void permutation(const Permutation& order, uint64_t first, int64_t count, int64_t* out) {
  constexpr size_t kMax = kVectors * hn::MaxLanes(D64());
  const D64 d;
  const size_t step = kVectors * lanes();
  const uint64_t width = order.columns();
  const U64 rows = set(order.rows()), columns = set(width);
  uint64_t row = first / width, column = first % width;
  HWY_ALIGN uint64_t row_of[kMax], column_of[kMax], places[kMax];
  for (int64_t i = 0; i < count; i += static_cast<int64_t>(step)) {
    for (size_t k = 0; k < step; ++k) {
      row_of[k] = row;
      column_of[k] = column;
      if (++column == width) {
        column = 0;
        ++row;
      }
    }
    U64 r[kVectors], c[kVectors];
    for (size_t v = 0; v < kVectors; ++v) {
      r[v] = hn::Load(d, row_of + v * lanes());
      c[v] = hn::Load(d, column_of + v * lanes());
    }
    for (size_t round = 0; round < Permutation::kRounds; round += 2) {
      const U64 even = set(order.keys()[round]), odd = set(order.keys()[round + 1]);
      for (size_t v = 0; v < kVectors; ++v)
        r[v] = turn(r[v], scale(mix(hn::Xor(even, c[v])), rows), rows);
      for (size_t v = 0; v < kVectors; ++v)
        c[v] = turn(c[v], scale(mix(hn::Xor(odd, r[v])), columns), columns);
    }
    for (size_t v = 0; v < kVectors; ++v)
      hn::Store(hn::Add(multiply_halves(r[v], columns), c[v]), d, places + v * lanes());
    const auto n = std::min(step, static_cast<size_t>(count - i));
    for (size_t k = 0; k < n; ++k)
      out[i + static_cast<int64_t>(k)] =
          static_cast<int64_t>(places[k] < order.size() ? places[k] : order(places[k]));
  }
}

}  // namespace

void random_words_loop(const Random& random, uint64_t first, int64_t count, uint32_t* out) {
  words(random, first, count, out);
}
void random_normals_loop(const Random& random, uint64_t first, int64_t count, double mean,
                         double deviation, double* out) {
  normals(random, first, count, mean, deviation, out);
}
void uniform_floats_loop(const uint32_t* in, int64_t count, float low, float span, float end,
                         float* out) {
  uniforms(in, count, low, span, end, out);
}
void dropout_floats_loop(const uint32_t* in, int64_t count, double probability, float* out) {
  dropouts(in, count, probability, out);
}
void permutation_loop(const Permutation& order, uint64_t first, int64_t count, int64_t* out) {
  permutation(order, first, count, out);
}

}  // namespace paddle::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace paddle::cpu {

HWY_EXPORT(random_words_loop);
HWY_EXPORT(random_normals_loop);
HWY_EXPORT(uniform_floats_loop);
HWY_EXPORT(dropout_floats_loop);
HWY_EXPORT(permutation_loop);

void random_words(const Random& random, uint64_t first, int64_t count, uint32_t* out) {
  HWY_DYNAMIC_DISPATCH(random_words_loop)(random, first, count, out);
}

void random_normals(const Random& random, uint64_t first, int64_t count, double mean,
                    double deviation, double* out) {
  HWY_DYNAMIC_DISPATCH(random_normals_loop)(random, first, count, mean, deviation, out);
}

void uniform_floats(const uint32_t* words, int64_t count, float low, float span, float end,
                    float* out) {
  HWY_DYNAMIC_DISPATCH(uniform_floats_loop)(words, count, low, span, end, out);
}

void dropout_floats(const uint32_t* words, int64_t count, double probability, float* out) {
  HWY_DYNAMIC_DISPATCH(dropout_floats_loop)(words, count, probability, out);
}

void permutation_elements(const Permutation& order, uint64_t first, int64_t count, int64_t* out) {
  HWY_DYNAMIC_DISPATCH(permutation_loop)(order, first, count, out);
}

}  // namespace paddle::cpu
#endif
