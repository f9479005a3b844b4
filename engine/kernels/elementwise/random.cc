// Random tensors. A random element is a function of (seed, stream, step, element index) only.

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "kernels/common/convert.h"
#include "kernels/elementwise/fill.h"
#include "kernels/elementwise/permutation_tables.h"
#include "kernels/elementwise/random_loops.h"
#include "ops/core/kernel.h"
#include "ops/generated/random.h"
#include "tensor/random.h"

namespace paddle::cpu {
namespace {

/// Where the elements of a part of a tensor are in the whole one.
struct Window {
  struct Axis {
    int64_t size, stride, first;
  };
  std::vector<Axis> axes;  ///< innermost first; none: the whole tensor

  explicit Window(const std::vector<int64_t>& sizes_wholes_firsts) {
    int64_t stride = 1;
    for (size_t i = sizes_wholes_firsts.size(); i >= 3; i -= 3) {
      const int64_t* const axis = &sizes_wholes_firsts[i - 3];
      axes.push_back({axis[0], stride, axis[2]});
      stride *= axis[1];
    }
  }
  uint64_t at(uint64_t element) const {
    if (axes.empty()) return element;
    auto rest = static_cast<int64_t>(element);
    int64_t place = 0;
    for (const Axis& axis : axes) {
      place += (axis.first + rest % axis.size) * axis.stride;
      rest /= axis.size;
    }
    return static_cast<uint64_t>(place);
  }
  /// How many elements from `element` on are neighbors in the whole tensor, up to `most`.
  int64_t run(uint64_t element, int64_t most) const {
    if (axes.empty()) return most;
    return std::min(most, axes[0].size - static_cast<int64_t>(element) % axes[0].size);
  }
};

/// Random numbers of the elements of a part.
class RandomPart {
 public:
  RandomPart(const Random& random, const Window& window) : random_(random), window_(&window) {}
  /// Random::bits32 of elements `first`, `first` + 1, …
  void bits32(int64_t first, int64_t n, uint32_t* out) const {
    for_each_run(first, n, [&](uint64_t place, int64_t at, int64_t count) {
      random_words(random_, place, count, out + at);
    });
  }
  /// Random::bits64 in the same way.
  void bits64(int64_t first, int64_t n, uint64_t* out) const {
    for_each_run(first, n, [&](uint64_t place, int64_t at, int64_t count) {
      uint32_t words[2 * kFillBlock];
      random_words(random_, 2 * place, 2 * count, words);
      std::memcpy(out + at, words, static_cast<size_t>(count) * sizeof *out);
    });
  }
  /// mean + deviation * Random::normal in the same way.
  void normals(int64_t first, int64_t n, double mean, double deviation, double* out) const {
    for_each_run(first, n, [&](uint64_t place, int64_t at, int64_t count) {
      random_normals(random_, place, count, mean, deviation, out + at);
    });
  }
  /// Up to 2^20 numbers of element i.
  RandomSequence sequence(int64_t i) const {
    return RandomSequence(random_, window_->at(static_cast<uint64_t>(i)) << 20);
  }

 private:
  template <class Body>
  void for_each_run(int64_t first, int64_t n, const Body& body) const {
    for (int64_t at = 0; at < n;) {
      const auto element = static_cast<uint64_t>(first + at);
      const int64_t count = window_->run(element, n - at);
      body(window_->at(element), at, count);
      at += count;
    }
  }

  Random random_;
  const Window* window_;
};

/// The random generator of a call: seeded by `seed` if it is not 0, otherwise by the run's random
/// state, which is the last operand, uint64[2] of seed and step.
struct RandomSource {
  int64_t seed, stream;
  size_t state;  ///< index of the state operand
  Window window;
  /// The source must outlive what is returned.
  RandomPart read(void* const* operands) const {
    if (seed != 0) return {Random(static_cast<uint64_t>(seed), 0, 0), window};
    const uint64_t* const values = static_cast<const uint64_t*>(operands[state]);
    return {Random(values[0], static_cast<uint64_t>(stream), values[1]), window};
  }
};

/// The smallest Poisson count whose cumulative probability exceeds u. Sums outwards from the mode,
/// so that the number of terms grows with the square root of the mean.
double poisson(double mean, double u) {
  if (!(mean >= 0) || mean > 1e12)
    fail(ErrorCode::kData, "poisson: the mean ", mean, " is outside of [0, 1e12]");
  if (mean == 0) return 0;
  const double mode = std::floor(mean);
  const double top = std::exp(mode * std::log(mean) - mean - std::lgamma(mode + 1));
  double below = mode, above = mode, low = top, high = top;
  // Counts in the order mode, mode + 1, mode - 1, …, with their probabilities.
  double passed = top;
  while (u >= passed && (low > 0 || high > 0)) {
    high *= mean / ++above;
    passed += high;
    if (u < passed || below == 0) {
      if (u < passed) return above;
      low = 0;
      continue;
    }
    low *= below-- / mean;
    passed += low;
    if (u < passed) return below;
  }
  return mode;
}

/// A standard normal number by Box and Muller from two uniform ones. RandomSequence::normal shares
/// random bits with the uniform number next to it, which rejection must not.
double normal_of_two(RandomSequence& random) {
  const double radius = std::sqrt(-2 * std::log(1 - random.uniform()));
  return radius * std::cos(2 * M_PI * random.uniform());
}

/// Marsaglia and Tsang, "A simple method for generating gamma variables" (2000).
double gamma(double shape, RandomSequence& random) {
  if (!(shape > 0)) fail(ErrorCode::kData, "standard_gamma: the shape ", shape, " is not positive");
  if (std::isinf(shape)) return shape;
  if (shape < 1) {
    const double power = std::pow(1 - random.uniform(), 1 / shape);
    return gamma(shape + 1, random) * power;
  }
  const double d = shape - 1.0 / 3, c = 1 / std::sqrt(9 * d);
  while (true) {
    const double z = normal_of_two(random), v = 1 + c * z;
    if (v <= 0) continue;
    const double cube = v * v * v;
    if (std::log(1 - random.uniform()) < 0.5 * z * z + d - d * cube + d * std::log(cube))
      return d * cube;
  }
}

/// Devroye, "Non-uniform random variate generation" (1986), X.4: an order statistic of the uniform
/// numbers of the trials splits them, until few are left.
double binomial(double trials, double probability, RandomSequence& random) {
  if (!(trials >= 0) || trials != std::floor(trials) || trials > 0x1p53)
    fail(ErrorCode::kData, "binomial: the count ", trials, " is not a natural number");
  if (!(probability >= 0 && probability <= 1))
    fail(ErrorCode::kData, "binomial: the probability ", probability, " is outside of [0, 1]");
  double found = 0;
  while (trials > 16) {
    const double at = std::floor(trials / 2) + 1;
    const double a = gamma(at, random), b = gamma(trials + 1 - at, random), split = a / (a + b);
    if (split <= probability) {
      found += at;
      trials -= at;
      probability = std::min(1.0, (probability - split) / (1 - split));
    } else {
      trials = at - 1;
      probability = std::min(1.0, probability / split);
    }
  }
  for (; trials > 0; --trials) found += random.uniform() < probability ? 1 : 0;
  return found;
}

RandomSource random_source(const KernelRequest& request) {
  const auto integer = [&](const char* name) {
    const int at = request.op.attr_index(name);
    return at < 0 ? int64_t{0} : request.attrs[static_cast<size_t>(at)].as_int();
  };
  const auto window = static_cast<size_t>(request.op.attr_index("window"));
  return {integer("seed"), integer("stream"), request.operands.size() - 1,
          Window(request.attrs[window].is_none() ? std::vector<int64_t>()
                                                 : request.attrs[window].as_ints())};
}

/// Fills a tensor with `f(operands, i, bits)`, computed in C from 64 random bits of each element.
template <class C, class F>
std::unique_ptr<Kernel> fill_by_bits(const Layout& result, const RandomSource& source, F f) {
  return fill_by_block<C>(result, [=](void* const* operands) {
    return [=, random = source.read(operands)](int64_t first, int64_t n, C* out) {
      uint64_t bits[kFillBlock];
      random.bits64(first, n, bits);
      for (int64_t i = 0; i < n; ++i) out[i] = f(operands, first + i, bits[i]);
    };
  });
}

}  // namespace

std::unique_ptr<Kernel> prepare_randperm(const KernelRequest& request) {
  const RandpermAttrs attrs(request.attrs);
  const auto order = [attrs, state = request.operands.size() - 1](void* const* operands) {
    const uint64_t* const values = static_cast<const uint64_t*>(operands[state]);
    return Permutation(static_cast<uint64_t>(attrs.n), values[0],
                       static_cast<uint64_t>(attrs.stream), values[1]);
  };
  if (const size_t bytes = PermutationTables::bytes(static_cast<uint64_t>(attrs.n)))
    return fill_by_block<int64_t>(
        request.results[0],
        [=](void* const* operands, std::byte* scratch) {
          return [tables = PermutationTables(order(operands), scratch)](int64_t first, int64_t n,
                                                                        int64_t* out) {
            tables.elements(static_cast<uint64_t>(first), n, out);
          };
        },
        bytes);
  return fill_by_block<int64_t>(request.results[0], [=](void* const* operands) {
    return [order = order(operands)](int64_t first, int64_t n, int64_t* out) {
      permutation_elements(order, static_cast<uint64_t>(first), n, out);
    };
  });
}

std::unique_ptr<Kernel> prepare_random(const KernelRequest& request) {
  const std::string_view name = request.op.name();
  const Layout& result = request.results[0];
  const RandomSource source = random_source(request);
  if (name == "uniform") {
    const UniformAttrs attrs(request.attrs);
    const double low = attrs.min, span = attrs.max - attrs.min;
    if (result.dtype == DType::kF64)
      return fill_by_bits<double>(result, source, [=](void* const*, int64_t, uint64_t bits) {
        const double value = low + span * Random::to_double(bits);
        return value < low + span ? value : low;
      });
    return fill_by_block<float>(result, [=](void* const* operands) {
      return [=, random = source.read(operands)](int64_t first, int64_t n, float* out) {
        uint32_t words[kFillBlock];
        random.bits32(first, n, words);
        uniform_floats(words, n, static_cast<float>(low), static_cast<float>(span),
                       static_cast<float>(low + span), out);
      };
    });
  }
  if (name == "gaussian") {
    const GaussianAttrs attrs(request.attrs);
    const double mean = attrs.mean, deviation = attrs.std;
    return fill_by_block<double>(result, [=](void* const* operands) {
      return [=, random = source.read(operands)](int64_t first, int64_t n, double* out) {
        random.normals(first, n, mean, deviation, out);
      };
    });
  }
  if (name == "randint") {
    const RandintAttrs attrs(request.attrs);
    const int64_t low = attrs.high ? attrs.low : 0, high = attrs.high ? *attrs.high : attrs.low;
    const uint64_t span = static_cast<uint64_t>(high) - static_cast<uint64_t>(low);
    return fill_by_bits<int64_t>(result, source, [=](void* const*, int64_t, uint64_t bits) {
      return static_cast<int64_t>(static_cast<uint64_t>(low) + Random::scale(bits, span));
    });
  }
  if (name == "bernoulli" || name == "poisson") {
    const ConvertFn load = convert_fn(request.operands[0].dtype, DType::kF64);
    const int64_t item = item_size(request.operands[0].dtype);
    const bool counts = name == "poisson";
    return fill_by_bits<double>(
        result, source, [=](void* const* operands, int64_t i, uint64_t bits) {
          double x;
          load(static_cast<const std::byte*>(operands[0]) + i * item, 1, &x, 1);
          if (counts) return poisson(x, Random::to_double(bits));
          if (!(x >= 0 && x <= 1))
            fail(ErrorCode::kData, "bernoulli: the probability ", x, " is outside of [0, 1]");
          return Random::to_double(bits) < x ? 1.0 : 0.0;
        });
  }
  if (name == "standard_gamma" || name == "binomial_counts") {
    const ConvertFn load = convert_fn(request.operands[0].dtype, DType::kF64);
    const int64_t item = item_size(request.operands[0].dtype);
    const bool counts = name == "binomial_counts";
    return fill_by_block<double>(result, [=](void* const* operands) {
      return [=, random = source.read(operands)](int64_t first, int64_t n, double* out) {
        for (int64_t i = 0; i < n; ++i) {
          double values[2] = {};
          for (int k = 0; k < (counts ? 2 : 1); ++k)
            load(static_cast<const std::byte*>(operands[k]) + (first + i) * item, 1, &values[k], 1);
          RandomSequence sequence = random.sequence(first + i);
          out[i] = counts ? binomial(values[0], values[1], sequence) : gamma(values[0], sequence);
        }
      };
    });
  }
  if (name == "dropout_mask") {
    const double p = DropoutMaskAttrs(request.attrs).p;
    return fill_by_block<float>(result, [=](void* const* operands) {
      return [=, random = source.read(operands)](int64_t first, int64_t n, float* out) {
        uint32_t words[kFillBlock];
        random.bits32(first, n, words);
        dropout_floats(words, n, p, out);
      };
    });
  }
  return nullptr;
}

}  // namespace paddle::cpu
