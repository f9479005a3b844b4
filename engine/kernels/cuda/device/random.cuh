// Random numbers: functions of (seed, stream, step, element), the same bits as tensor/random.h.

struct RandomArguments {
  const void* state;    ///< uint64[2]: seed and step; null: `seed` and step 0
  const void* operand;  ///< probabilities of bernoulli
  void* out;
  int64_t size;
  uint64_t seed, stream_key;  ///< the key of `stream`, mixed on the host
  double a, b;
  uint64_t low, span;  ///< of integers
  DataError* error;
  int64_t site;
};

struct Philox {
  uint32_t words[4];
};
PADDLE_DEVICE Philox philox(uint64_t index, uint64_t step, uint32_t key0, uint32_t key1) {
  uint32_t c0 = (uint32_t)index, c1 = (uint32_t)(index >> 32), c2 = (uint32_t)step,
           c3 = (uint32_t)(step >> 32);
#pragma unroll
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = (uint64_t)0xD2511F53u * c0, b = (uint64_t)0xCD9E8D57u * c2;
    c0 = (uint32_t)(b >> 32) ^ c1 ^ key0;
    c1 = (uint32_t)b;
    c2 = (uint32_t)(a >> 32) ^ c3 ^ key1;
    c3 = (uint32_t)a;
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
  Philox out;
  out.words[0] = c0;
  out.words[1] = c1;
  out.words[2] = c2;
  out.words[3] = c3;
  return out;
}

PADDLE_DEVICE uint64_t mix64(uint64_t x) {
  x += 0x9E3779B97F4A7C15ull;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
  return x ^ (x >> 31);
}

/// The generator of a call.
struct RandomKey {
  uint64_t step;
  uint32_t key0, key1;

  PADDLE_DEVICE Philox block(uint64_t index) const { return philox(index, step, key0, key1); }
  PADDLE_DEVICE uint32_t bits32(uint64_t index) const {
    const Philox words = block(index >> 2);
    const uint32_t which = (uint32_t)index & 3;
    const uint32_t low = which & 1 ? words.words[1] : words.words[0];
    const uint32_t high = which & 1 ? words.words[3] : words.words[2];
    return which & 2 ? high : low;
  }
  PADDLE_DEVICE uint64_t bits64(uint64_t index) const {
    const Philox words = block(index >> 1);
    return index & 1 ? words.words[2] | (uint64_t)words.words[3] << 32
                     : words.words[0] | (uint64_t)words.words[1] << 32;
  }
};
PADDLE_DEVICE RandomKey random_key(const RandomArguments& arguments) {
  uint64_t seed = arguments.seed, step = 0;
  if (arguments.state) {
    seed = ((const uint64_t*)arguments.state)[0];
    step = ((const uint64_t*)arguments.state)[1];
  }
  const uint64_t key = mix64(mix64(seed) + arguments.stream_key);
  RandomKey out;
  out.step = step;
  out.key0 = (uint32_t)key;
  out.key1 = (uint32_t)(key >> 32);
  return out;
}
PADDLE_DEVICE double unit_double(uint64_t bits) { return (double)(bits >> 11) * 0x1p-53; }

struct BoxMullerLanes {
  typedef double Number;
  typedef uint64_t Bits;
  PADDLE_DEVICE static Number number(double value) { return value; }
  PADDLE_DEVICE static Bits bits(uint64_t value) { return value; }
  PADDLE_DEVICE static Number add(Number a, Number b) { return a + b; }
  PADDLE_DEVICE static Number sub(Number a, Number b) { return a - b; }
  PADDLE_DEVICE static Number mul(Number a, Number b) { return a * b; }
  PADDLE_DEVICE static Number div(Number a, Number b) { return a / b; }
  PADDLE_DEVICE static Number root(Number a) { return ::sqrt(a); }
  PADDLE_DEVICE static Bits as_bits(Number a) { return ::as_bits(a); }
  PADDLE_DEVICE static Number as_number(Bits a) { return as_double(a); }
  PADDLE_DEVICE static Bits add(Bits a, Bits b) { return a + b; }
  PADDLE_DEVICE static Bits both(Bits a, Bits b) { return a & b; }
  PADDLE_DEVICE static Bits either(Bits a, Bits b) { return a | b; }
  PADDLE_DEVICE static Bits flip(Bits a, Bits b) { return a ^ b; }
  template <int kCount>
  PADDLE_DEVICE static Bits left(Bits a) {
    return a << kCount;
  }
  template <int kCount>
  PADDLE_DEVICE static Bits right(Bits a) {
    return a >> kCount;
  }
  PADDLE_DEVICE static Number choose(Bits which, Number a, Number b) {
    return (which & 1) != 0 ? a : b;
  }
};

/// Calls value(element) for each element and stores it.
template <class Out, class Value>
PADDLE_DEVICE void fill_random(const RandomArguments& arguments, Value value) {
  const int64_t step = (int64_t)gridDim.x * kBlockThreads;
  for (int64_t i = (int64_t)blockIdx.x * kBlockThreads + threadIdx.x; i < arguments.size; i += step)
    ((Out*)arguments.out)[i] = convert<Out>(value(i));
}

/// In [a, a + b).
template <class Out>
PADDLE_DEVICE void uniform(const RandomArguments& arguments) {
  const RandomKey key = random_key(arguments);
  if constexpr (IsSame<Out, double>::value) {
    fill_random<Out>(arguments, [&](int64_t i) {
      const double value = arguments.a + arguments.b * unit_double(key.bits64((uint64_t)i));
      return value < arguments.a + arguments.b ? value : arguments.a;
    });
  } else {
    const float low = (float)arguments.a, span = (float)arguments.b;
    const float end = (float)(arguments.a + arguments.b);
    fill_random<Out>(arguments, [&](int64_t i) {
      const float value = low + span * ((float)(key.bits32((uint64_t)i) >> 8) * 0x1p-24f);
      return value < end ? value : low;
    });
  }
}

/// 0 with probability a, else 1.
template <class Out>
PADDLE_DEVICE void dropout_mask(const RandomArguments& arguments) {
  const RandomKey key = random_key(arguments);
  const uint32_t limit = (uint32_t)::ceil(arguments.a * 0x1p24);
  fill_random<Out>(arguments,
                   [&](int64_t i) { return key.bits32((uint64_t)i) >> 8 < limit ? 0.0f : 1.0f; });
}

/// low + a number below span.
template <class Out>
PADDLE_DEVICE void random_integers(const RandomArguments& arguments) {
  const RandomKey key = random_key(arguments);
  fill_random<Out>(arguments, [&](int64_t i) {
    return (int64_t)(arguments.low + __umul64hi(key.bits64((uint64_t)i), arguments.span));
  });
}

template <class Out, class In>
PADDLE_DEVICE void bernoulli(const RandomArguments& arguments) {
  const RandomKey key = random_key(arguments);
  fill_random<Out>(arguments, [&](int64_t i) {
    const double probability = (double)loaded(((const In*)arguments.operand)[i]);
    return unit_double(key.bits64((uint64_t)i)) < probability ? 1.0f : 0.0f;
  });
}

/// a + b times a standard normal number.
template <class Out>
PADDLE_DEVICE void gaussian(const RandomArguments& arguments) {
  const RandomKey key = random_key(arguments);
  fill_random<Out>(arguments, [&](int64_t i) {
    const Philox words = key.block((uint64_t)i >> 1);
    const auto pair = BoxMuller<BoxMullerLanes>::normals(
        unit_double(words.words[0] | (uint64_t)words.words[1] << 32),
        unit_double(words.words[2] | (uint64_t)words.words[3] << 32));
    return arguments.a + arguments.b * (i & 1 ? pair.second : pair.first);
  });
}
