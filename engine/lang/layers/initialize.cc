// First values of parameters. Random ones are a function of (seed, path, element), so that the
// order in which parameters are made changes nothing.
#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include "base/parallel.h"
#include "base/text.h"
#include "lang/eval/host.h"
#include "lang/layers/patterns.h"
#include "runtime/execute.h"
#include "tensor/random.h"

namespace paddle::lang {
namespace {

using Kind = Initializer::Kind;

const char* word(Kind kind) {
  switch (kind) {
    case Kind::kConstant:
      return "constant";
    case Kind::kNormal:
      return "normal";
    case Kind::kTruncatedNormal:
      return "truncated_normal";
    case Kind::kUniform:
      return "uniform";
    case Kind::kXavierUniform:
      return "xavier_uniform";
    case Kind::kXavierNormal:
      return "xavier_normal";
    case Kind::kKaimingUniform:
      return "kaiming_uniform";
    case Kind::kKaimingNormal:
      return "kaiming_normal";
    case Kind::kOrthogonal:
      return "orthogonal";
    case Kind::kDirac:
      return "dirac";
    case Kind::kBilinear:
      return "bilinear";
    case Kind::kAssign:
      return "assign";
    case Kind::kArray:
      return "file";
  }
  return "";
}

constexpr int64_t kGrain = 1 << 14;  // elements that are worth a thread

/// Element `i` of normal numbers cut at two standard deviations: the first of its draws inside.
double cut_normal(const Random& random, uint64_t i) {
  constexpr uint64_t kDraws = 64;
  for (uint64_t k = 0; k < kDraws; ++k) {
    const double z = random.normal(i * kDraws + k);
    if (std::abs(z) <= 2) return z;
  }
  return 0;  // less likely than 1e-85
}

/// Rows of `out` ([rows, columns], rows <= columns) made orthonormal by modified Gram-Schmidt,
/// twice, which is enough for full precision (Giraud et al., 2005).
void orthonormalize(std::vector<double>& out, int64_t rows, int64_t columns) {
  const auto row = [&](int64_t r) { return out.data() + r * columns; };
  for (int64_t r = 0; r < rows; ++r) {
    for (int pass = 0; pass < 2; ++pass) {
      for (int64_t k = 0; k < r; ++k) {
        double dot = 0;
        for (int64_t c = 0; c < columns; ++c) dot += row(r)[c] * row(k)[c];
        for (int64_t c = 0; c < columns; ++c) row(r)[c] -= dot * row(k)[c];
      }
    }
    double norm = 0;
    for (int64_t c = 0; c < columns; ++c) norm += row(r)[c] * row(r)[c];
    norm = std::sqrt(norm);
    for (int64_t c = 0; c < columns; ++c) row(r)[c] /= norm > 0 ? norm : 1;
  }
}

std::vector<double> orthogonal_values(const Dims& shape, const Random& random, double factor) {
  const int64_t size = element_count(std::span<const int64_t>(shape));
  const int64_t rows = shape[0];
  if (size == 0) return {};
  const int64_t columns = size / rows;
  std::vector<double> out(static_cast<size_t>(size));
  const bool wide = rows <= columns;
  const int64_t r = wide ? rows : columns, c = wide ? columns : rows;
  for (size_t i = 0; i < out.size(); ++i) out[i] = random.normal(i);
  orthonormalize(out, r, c);
  for (double& x : out) x *= factor;
  if (wide) return out;
  std::vector<double> turned(out.size());
  for (int64_t i = 0; i < r; ++i) {
    for (int64_t j = 0; j < c; ++j) {
      turned[static_cast<size_t>(j * r + i)] = out[static_cast<size_t>(i * c + j)];
    }
  }
  return turned;
}

/// The numbers of elements `first`, `first + 1`, …; `listed` are those of kinds that list them.
void fill_values(const Initializer& init, const std::vector<double>& listed, const Random& random,
                 const std::pair<double, double>& fan, int64_t first, std::span<double> out) {
  const auto from = static_cast<uint64_t>(first);
  const auto [fan_in, fan_out] = fan;
  const auto normal = [&](double mean, double deviation) {
    random.fill_normal(out, from);
    for (double& x : out) x = mean + deviation * x;
  };
  const auto uniform = [&](double limit) {
    random.fill_uniform(out, from);
    for (double& x : out) x = (2 * x - 1) * limit;
  };
  switch (init.kind) {
    case Kind::kConstant:
      std::ranges::fill(out, init.a);
      return;
    case Kind::kNormal:
      return normal(init.a, init.b);
    case Kind::kTruncatedNormal:
      for (size_t i = 0; i < out.size(); ++i)
        out[i] = init.a + init.b * cut_normal(random, from + i);
      return;
    case Kind::kUniform:
      random.fill_uniform(out, from);
      for (double& x : out) x = init.a + (init.b - init.a) * x;
      return;
    case Kind::kXavierUniform:
      return uniform(init.factor * std::sqrt(6 / (fan_in + fan_out)));
    case Kind::kXavierNormal:
      return normal(0, init.factor * std::sqrt(2 / (fan_in + fan_out)));
    case Kind::kKaimingUniform:
      return uniform(init.factor * std::sqrt(6 / fan_in));
    case Kind::kKaimingNormal:
      return normal(0, init.factor * std::sqrt(2 / fan_in));
    case Kind::kOrthogonal:
    case Kind::kDirac:
    case Kind::kBilinear:
    case Kind::kAssign:
    case Kind::kArray:
      break;
  }
  std::copy_n(listed.begin() + first, out.size(), out.begin());
}

/// A writable copy of a file's array, in the type that is wanted.
Array copy_of(const Array& given, const std::string& path, const Dims& shape, DType dtype) {
  if (given.shape != shape)
    fail(ErrorCode::kModel, "'", path, "': a value of shape ", str(given.shape), " for ",
         str(shape));
  if (given.dtype != dtype) return runtime::cast_array(given, dtype);
  return runtime::copied(given);
}

}  // namespace

std::string Initializer::text() const {
  switch (kind) {
    case Kind::kConstant:
      return format_double(a);
    case Kind::kNormal:
    case Kind::kTruncatedNormal:
    case Kind::kUniform:
      return str(word(kind), "(", a, ", ", b, ")");
    case Kind::kAssign:
      return str("assign(", values.size(), " values)");
    case Kind::kDirac:
      return a == 1 ? std::string(word(kind)) : str(word(kind), "(", a, ")");
    default:
      return factor == 1 ? std::string(word(kind)) : str(word(kind), " * ", factor);
  }
}

bool Initializer::is_random() const {
  switch (kind) {
    case Kind::kConstant:
    case Kind::kDirac:
    case Kind::kBilinear:
    case Kind::kAssign:
    case Kind::kArray:
      return false;
    default:
      return true;
  }
}

bool makes_rows(const Initializer& init) {
  return init.kind == Kind::kConstant || init.kind == Kind::kNormal ||
         init.kind == Kind::kTruncatedNormal || init.kind == Kind::kUniform;
}

void fill_row(const Initializer& init, const Random& random, std::span<double> row) {
  ensure(makes_rows(init), "an initializer of whole tables");
  fill_values(init, {}, random, {1, 1}, 0, row);
}

Tensor ParameterProvider::table_rows(const std::string& path, const Tensor&, int64_t, DType,
                                     const Initializer&, const Tensor&) {
  fail(ErrorCode::kConfig, "a table ('", path, "') cannot be made here");
}

std::pair<double, double> fans(const Dims& shape) {
  double in = 1, out = 1;
  if (shape.size() == 1) {
    in = out = static_cast<double>(shape[0]);
  } else if (shape.size() == 2) {
    in = static_cast<double>(shape[0]);
    out = static_cast<double>(shape[1]);
  } else if (shape.size() > 2) {
    double window = 1;
    for (size_t i = 2; i < shape.size(); ++i) window *= static_cast<double>(shape[i]);
    in = static_cast<double>(shape[1]) * window;
    out = static_cast<double>(shape[0]) * window;
  }
  return {std::max(in, 1.0), std::max(out, 1.0)};
}

Array initial_value(const Initializer& init, const std::string& path, const Dims& shape,
                    DType dtype, uint64_t seed) {
  const int64_t size = element_count(std::span<const int64_t>(shape));
  if (init.kind == Kind::kArray) return copy_of(init.array, path, shape, dtype);
  if (init.kind == Kind::kConstant && init.a == 0 && !std::signbit(init.a))
    return Array::zeros(dtype, shape);
  const Random random(seed, stream_of(path));
  check_pattern(init, path, shape);
  const bool pattern = init.kind == Kind::kDirac || init.kind == Kind::kBilinear;
  const std::vector<double> numbers = init.kind == Kind::kOrthogonal
                                          ? orthogonal_values(shape, random, init.factor)
                                      : pattern ? pattern_values(init, shape)
                                                : init.values;
  const bool listed = pattern || init.kind == Kind::kOrthogonal || init.kind == Kind::kAssign;
  if (listed && numbers.size() != static_cast<size_t>(size)) {
    fail(ErrorCode::kConfig, "'", path, "': ", numbers.size(), " values for ", size, " elements");
  }
  Array out =
      Array::empty(is_complex(dtype) || !info(dtype).has_kernels ? DType::kF64 : dtype, shape);
  const auto fan = fans(shape);
  visit_dtype(out.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* data = out.data<T>();
    parallel_for(size, kGrain, [&](int64_t begin, int64_t end) {
      std::array<double, 256> block;
      for (int64_t at = begin; at < end; at += static_cast<int64_t>(block.size())) {
        const auto count = std::min<int64_t>(end - at, block.size());
        const std::span<double> values(block.data(), static_cast<size_t>(count));
        fill_values(init, numbers, random, fan, at, values);
        for (int64_t i = 0; i < count; ++i) {
          const double value = block[static_cast<size_t>(i)];
          if constexpr (std::is_same_v<T, float16> || std::is_same_v<T, bfloat16>) {
            data[at + i] = T(static_cast<float>(value));
          } else {
            data[at + i] = static_cast<T>(value);
          }
        }
      }
    });
  });
  return out.dtype == dtype ? out : out.cast(dtype);
}

}  // namespace paddle::lang
