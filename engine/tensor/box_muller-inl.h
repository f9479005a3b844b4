// Two standard normal numbers from two uniform ones (Box and Muller, "A Note on the Generation of
// Random Normal Deviates", 1958), in double and without the mathematics library. Each step is one
// addition, subtraction, multiplication, division or square root of IEEE 754, in the same order for
// one number and for vectors of them, so that instruction sets and platforms give the same bits.
// The logarithm, sine and cosine are within 2 ulp.
//
// Included inside of a namespace, once for each instruction set; cmath and cstdint before it.
// Kernels of GPUs contain this text, with a PADDLE_BOX_MULLER_INLINE of theirs. `Lanes` is a kind
// of vector, or single numbers: its members are named after what they compute.

#ifndef PADDLE_BOX_MULLER_INLINE
#define PADDLE_BOX_MULLER_INLINE [[gnu::always_inline]]
#endif

/// The normal numbers of Box and Muller for vectors, or single numbers, of `Lanes`.
template <class Lanes>
struct BoxMuller {
  using L = Lanes;
  using Number = typename Lanes::Number;
  using Bits = typename Lanes::Bits;

  struct Pair {
    Number first, second;
  };

  /// From uniform numbers in [0, 1) that are multiples of 2^-53.
  PADDLE_BOX_MULLER_INLINE static Pair normals(Number uniform, Number turn) {
    const Number radius = L::root(L::mul(number(-2.0), log(L::sub(number(1.0), uniform))));
    const Pair point = circle(L::mul(number(0x1.921fb54442d18p+2), turn));
    return {L::mul(radius, point.first), L::mul(radius, point.second)};
  }

  /// log x of normal x: with x = 2^k (1 + f), sqrt(1/2) <= 1 + f < sqrt(2), and s = f / (2 + f) it
  /// is k log 2 + f - f^2 / 2 + s (f^2 / 2 + r), r = log((1 + s) / (1 - s)) / s - 2. The polynomial
  /// r / s^2 has the least relative error.
  PADDLE_BOX_MULLER_INLINE static Number log(Number x) {
    constexpr uint64_t kRootHalf = 0x3fe6a09e00000000, kOne = 0x3ff0000000000000,
                       kMantissa = 0x000fffffffffffff, kPower52 = 0x4330000000000000;
    const Bits shifted = L::add(L::as_bits(x), L::bits(kOne - kRootHalf));
    const Number k =
        L::sub(L::as_number(L::either(L::template right<52>(shifted), L::bits(kPower52))),
               number(0x1p52 + 1023));
    const Number f =
        L::sub(L::as_number(L::add(L::both(shifted, L::bits(kMantissa)), L::bits(kRootHalf))),
               number(1.0));
    const Number half = L::mul(number(0.5), L::mul(f, f));
    const Number s = L::div(f, L::add(number(2.0), f)), z = L::mul(s, s);
    Number r = number(0x1.2f0d8ea940b59p-3);
    constexpr double kTerms[] = {0x1.39a0f5012195fp-3, 0x1.7466462c9394cp-3, 0x1.c71c51e7f7590p-3,
                                 0x1.2492494217a15p-2, 0x1.999999997fb31p-2, 0x1.5555555555593p-1};
    for (const double c : kTerms) r = L::add(L::mul(r, z), number(c));
    r = L::mul(s, L::add(half, L::mul(r, z)));
    const Number low = L::add(r, L::mul(k, number(0x1.a39ef35793c76p-33)));
    const Number high = L::mul(k, number(0x1.62e42fee00000p-1));  // exact
    return L::sub(high, L::sub(L::sub(half, low), f));
  }

  /// cos x and sin x for 0 <= x <= 2 pi: x = q pi / 2 + r, and polynomials of least relative error.
  PADDLE_BOX_MULLER_INLINE static Pair circle(Number x) {
    // The low bits of the sum are the nearest integer.
    const Number kInteger = number(0x1.8p52);
    const Number sum = L::add(L::mul(x, number(0x1.45f306dc9c883p-1)), kInteger);
    const Number q = L::sub(sum, kInteger);
    const Bits quarter = L::as_bits(sum);
    Number r = L::sub(x, L::mul(q, number(0x1.921fb54400000p+0)));  // exact
    r = L::sub(r, L::mul(q, number(0x1.0b4611a626331p-34)));
    const Number z = L::mul(r, r);
    Number s = number(0x1.5d9246eabc767p-33);
    constexpr double kSine[] = {-0x1.ae5e63cdf2cb9p-26, 0x1.71de3574baee4p-19,
                                -0x1.a01a019c0e4ccp-13, 0x1.111111110f861p-7,
                                -0x1.5555555555549p-3};
    for (const double a : kSine) s = L::add(L::mul(s, z), number(a));
    const Number sine = L::add(r, L::mul(r, L::mul(z, s)));
    Number c = number(-0x1.8fadd06635c83p-37);
    constexpr double kCosine[] = {0x1.1ee9ea6cae629p-29, -0x1.27e4f807d6047p-22,
                                  0x1.a01a019caef34p-16, -0x1.6c16c16c15162p-10,
                                  0x1.555555555554cp-5};
    for (const double a : kCosine) c = L::add(L::mul(c, z), number(a));
    const Number half = L::mul(number(0.5), z), rest = L::sub(number(1.0), half);
    const Number lost = L::sub(L::sub(number(1.0), rest), half);
    const Number cosine = L::add(rest, L::add(lost, L::mul(L::mul(z, z), c)));
    const Bits two = L::bits(2);
    const Bits cosine_sign = L::template left<62>(L::both(L::add(quarter, L::bits(1)), two));
    const Bits sine_sign = L::template left<62>(L::both(quarter, two));
    return {with_sign(L::choose(quarter, sine, cosine), cosine_sign),
            with_sign(L::choose(quarter, cosine, sine), sine_sign)};
  }

 private:
  PADDLE_BOX_MULLER_INLINE static Number number(double value) { return L::number(value); }
  PADDLE_BOX_MULLER_INLINE static Number with_sign(Number x, Bits sign) {
    return L::as_number(L::flip(L::as_bits(x), sign));
  }
};
