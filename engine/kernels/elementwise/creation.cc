// Constants, ranges and random tensors. A random element is a function of (seed, stream, step,
// element index) alone.

#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <cstring>

#include "base/parallel.h"
#include "kernels/common/convert.h"
#include "ops/core/kernel.h"
#include "ops/generated/creation.h"
#include "ops/generated/random.h"
#include "tensor/random.h"

namespace paddle::cpu {
namespace {

/// Stores a scalar as `dtype`, keeping all 64 bits of an integer.
void put_number(const AttrValue& number, DType dtype, void* out) {
  if (is_complex(dtype)) {
    const std::complex<double> as_f64 = number.as_complex();
    const std::complex<float> as_f32(as_f64);
    if (dtype == DType::kC128)
      std::memcpy(out, &as_f64, sizeof as_f64);
    else
      std::memcpy(out, &as_f32, sizeof as_f32);
  } else if (number.is_bool()) {
    const bool value = number.as_bool();
    convert_fn(DType::kBool, dtype)(&value, 1, out, 1);
  } else if (number.is_int()) {
    const int64_t value = number.as_int();
    convert_fn(DType::kI64, dtype)(&value, 1, out, 1);
  } else {
    const double value = number.as_double();
    convert_fn(DType::kF64, dtype)(&value, 1, out, 1);
  }
}

constexpr int64_t kBlock = 512;

/// Fills a tensor with `f(index)`, computed in C.
template <class C, class F>
std::unique_ptr<Kernel> fill_by_index(const Layout& result, F f) {
  const ConvertFn store = convert_fn(dtype_of<C>(), result.dtype);
  const int64_t size = result.size(), item = item_size(result.dtype);
  return make_kernel([=](const RunContext&, void* const* operands, void* const* results) {
    const auto at = f(operands);
    parallel_for(size, 4096, [&](int64_t begin, int64_t end) {
      C values[kBlock];
      for (int64_t first = begin; first < end; first += kBlock) {
        const int64_t n = std::min(kBlock, end - first);
        for (int64_t i = 0; i < n; ++i) values[i] = at(first + i);
        store(values, 1, static_cast<std::byte*>(results[0]) + first * item, n);
      }
    });
  });
}

/// A tensor filled with one scalar.
std::unique_ptr<Kernel> constant(const Layout& result, const AttrValue& number) {
  std::array<std::byte, 16> value{};
  put_number(number, result.dtype, value.data());
  const ConvertFn repeat = convert_fn(result.dtype, result.dtype);
  return make_kernel([=, size = result.size(), item = item_size(result.dtype)](
                         const RunContext&, void* const*, void* const* results) {
    parallel_for(size, 65536, [&](int64_t begin, int64_t end) {
      repeat(value.data(), 0, static_cast<std::byte*>(results[0]) + begin * item, end - begin);
    });
  });
}

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
};

/// Random numbers of the elements of a part.
class RandomPart {
 public:
  RandomPart(const Random& random, const Window& window) : random_(random), window_(&window) {}
  float uniform_float(uint64_t i) const { return random_.uniform_float(window_->at(i)); }
  double uniform(uint64_t i) const { return random_.uniform(window_->at(i)); }
  double normal(uint64_t i) const { return random_.normal(window_->at(i)); }
  uint64_t below(uint64_t i, uint64_t n) const { return random_.below(window_->at(i), n); }
  /// Up to 2^20 numbers of element i.
  RandomSequence sequence(uint64_t i) const {
    return RandomSequence(random_, window_->at(i) << 20);
  }

 private:
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

}  // namespace

std::unique_ptr<Kernel> prepare_full(const KernelRequest& request) {
  return constant(request.results[0], FullAttrs(request.attrs).fill_value);
}

std::unique_ptr<Kernel> prepare_dim_value(const KernelRequest& request) {
  return constant(request.results[0], DimValueAttrs(request.attrs).dim.value());
}

std::unique_ptr<Kernel> prepare_arange(const KernelRequest& request) {
  const ArangeAttrs attrs(request.attrs);
  const Layout& result = request.results[0];
  const AttrValue start = attrs.end.is_none() ? AttrValue(0) : attrs.start;
  if (start.is_int() && attrs.step.is_int()) {
    const int64_t first = start.as_int(), step = attrs.step.as_int();
    return fill_by_index<int64_t>(
        result, [=](void* const*) { return [=](int64_t i) { return first + i * step; }; });
  }
  const double first = start.as_double(), step = attrs.step.as_double();
  return fill_by_index<double>(result, [=](void* const*) {
    return [=](int64_t i) { return first + static_cast<double>(i) * step; };
  });
}

// Counts from both ends, so that the last element is exactly `stop`.
std::unique_ptr<Kernel> prepare_linspace(const KernelRequest& request) {
  const LinspaceAttrs attrs(request.attrs);
  const double start = attrs.start.as_double(), stop = attrs.stop.as_double();
  const int64_t last = attrs.num - 1;
  const double step = last > 0 ? (stop - start) / static_cast<double>(last) : 0;
  return fill_by_index<double>(request.results[0], [=](void* const*) {
    return [=](int64_t i) {
      return 2 * i <= last ? start + step * static_cast<double>(i)
                           : stop - step * static_cast<double>(last - i);
    };
  });
}

std::unique_ptr<Kernel> prepare_randperm(const KernelRequest& request) {
  const RandpermAttrs attrs(request.attrs);
  const size_t state = request.operands.size() - 1;
  return fill_by_index<int64_t>(request.results[0], [=](void* const* operands) {
    const uint64_t* const values = static_cast<const uint64_t*>(operands[state]);
    return [order = Permutation(static_cast<uint64_t>(attrs.n), values[0],
                                static_cast<uint64_t>(attrs.stream), values[1])](int64_t i) {
      return static_cast<int64_t>(order(static_cast<uint64_t>(i)));
    };
  });
}

std::unique_ptr<Kernel> prepare_random(const KernelRequest& request) {
  const std::string_view name = request.op.name();
  const Layout& result = request.results[0];
  const RandomSource source = random_source(request);
  const bool is_f64 = result.dtype == DType::kF64;
  if (name == "uniform") {
    const UniformAttrs attrs(request.attrs);
    const double low = attrs.min, span = attrs.max - attrs.min;
    if (!is_f64)
      return fill_by_index<float>(result, [=](void* const* operands) {
        return [=, random = source.read(operands)](int64_t i) {
          const float value =
              static_cast<float>(low) +
              static_cast<float>(span) * random.uniform_float(static_cast<uint64_t>(i));
          // Rounding may reach the excluded end of the range.
          return value < static_cast<float>(low + span) ? value : static_cast<float>(low);
        };
      });
    return fill_by_index<double>(result, [=](void* const* operands) {
      return [=, random = source.read(operands)](int64_t i) {
        const double value = low + span * random.uniform(static_cast<uint64_t>(i));
        return value < low + span ? value : low;
      };
    });
  }
  if (name == "gaussian") {
    const GaussianAttrs attrs(request.attrs);
    const double mean = attrs.mean, deviation = attrs.std;
    return fill_by_index<double>(result, [=](void* const* operands) {
      return [=, random = source.read(operands)](int64_t i) {
        return mean + deviation * random.normal(static_cast<uint64_t>(i));
      };
    });
  }
  if (name == "randint") {
    const RandintAttrs attrs(request.attrs);
    const int64_t low = attrs.high ? attrs.low : 0, high = attrs.high ? *attrs.high : attrs.low;
    const uint64_t span = static_cast<uint64_t>(high) - static_cast<uint64_t>(low);
    return fill_by_index<int64_t>(result, [=](void* const* operands) {
      return [=, random = source.read(operands)](int64_t i) {
        return static_cast<int64_t>(static_cast<uint64_t>(low) +
                                    random.below(static_cast<uint64_t>(i), span));
      };
    });
  }
  if (name == "bernoulli") {
    const ConvertFn load = convert_fn(request.operands[0].dtype, DType::kF64);
    const int64_t item = item_size(request.operands[0].dtype);
    return fill_by_index<double>(result, [=](void* const* operands) {
      const std::byte* const x = static_cast<const std::byte*>(operands[0]);
      return [=, random = source.read(operands)](int64_t i) {
        double probability;
        load(x + i * item, 1, &probability, 1);
        if (!(probability >= 0 && probability <= 1))
          fail(ErrorCode::kData, "bernoulli: the probability ", probability,
               " is outside of [0, 1]");
        return random.uniform(static_cast<uint64_t>(i)) < probability ? 1.0 : 0.0;
      };
    });
  }
  if (name == "poisson") {
    const ConvertFn load = convert_fn(request.operands[0].dtype, DType::kF64);
    const int64_t item = item_size(request.operands[0].dtype);
    return fill_by_index<double>(result, [=](void* const* operands) {
      const std::byte* const x = static_cast<const std::byte*>(operands[0]);
      return [=, random = source.read(operands)](int64_t i) {
        double mean;
        load(x + i * item, 1, &mean, 1);
        return poisson(mean, random.uniform(static_cast<uint64_t>(i)));
      };
    });
  }
  if (name == "standard_gamma" || name == "binomial_counts") {
    const ConvertFn load = convert_fn(request.operands[0].dtype, DType::kF64);
    const int64_t item = item_size(request.operands[0].dtype);
    const bool counts = name == "binomial_counts";
    return fill_by_index<double>(result, [=](void* const* operands) {
      return [=, random = source.read(operands)](int64_t i) {
        double values[2] = {};
        for (int k = 0; k < (counts ? 2 : 1); ++k)
          load(static_cast<const std::byte*>(operands[k]) + i * item, 1, &values[k], 1);
        RandomSequence sequence = random.sequence(static_cast<uint64_t>(i));
        return counts ? binomial(values[0], values[1], sequence) : gamma(values[0], sequence);
      };
    });
  }
  if (name == "dropout_mask") {
    const double p = DropoutMaskAttrs(request.attrs).p;
    return fill_by_index<float>(result, [=](void* const* operands) {
      return [=, random = source.read(operands)](int64_t i) {
        return static_cast<double>(random.uniform_float(static_cast<uint64_t>(i))) < p ? 0.0f
                                                                                       : 1.0f;
      };
    });
  }
  return nullptr;
}

}  // namespace paddle::cpu
