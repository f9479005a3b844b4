#include "ops/audio/windows.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numbers>
#include <optional>
#include <string>

#include "base/error.h"
#include "base/text.h"
#include "ops/core/compose.h"

namespace paddle::rules {
namespace {

using std::numbers::pi;

constexpr int64_t kMaxLength = int64_t{1} << 28;

/// The name of a window and its parameters.
struct Request {
  std::string_view op;
  std::string name;
  std::vector<double> parameters;

  double parameter(size_t i, std::optional<double> otherwise = {}) const {
    if (i < parameters.size()) return parameters[i];
    if (!otherwise) reject(op, "the window '", name, "' needs a parameter: ['", name, "', value]");
    return *otherwise;
  }
};

Request request_of(std::string_view op, const AttrValue& window) {
  if (window.is_string()) return {op, window.as_string(), {}};
  if (!window.is_list() || window.as_list().empty() || !window.as_list()[0].is_string())
    reject(op, "window must be a name or a list of a name and parameters, not ", window);
  Request out{op, window.as_list()[0].as_string(), {}};
  for (size_t i = 1; i < window.as_list().size(); ++i)
    out.parameters.push_back(window.as_list()[i].is_none() ? std::nan("")
                                                           : window.as_list()[i].as_double());
  return out;
}

/// A window of m > 1 elements from a function of the element.
std::vector<double> each(int64_t m, const std::function<double(double)>& f) {
  std::vector<double> out;
  for (int64_t i = 0; i < m; ++i) out.push_back(f(static_cast<double>(i)));
  return out;
}

/// Σ (-1)^k a[k] cos(2πki / (m - 1))
std::vector<double> cosines(int64_t m, const std::vector<double>& a) {
  return each(m, [&](double i) {
    double sum = 0;
    for (size_t k = 0; k < a.size(); ++k)
      sum += (k % 2 == 0 ? 1 : -1) * a[k] *
             std::cos(2 * pi * static_cast<double>(k) * i / static_cast<double>(m - 1));
    return sum;
  });
}

std::vector<double> tukey(int64_t m, double alpha) {
  if (alpha <= 0) return std::vector<double>(static_cast<size_t>(m), 1);
  if (alpha >= 1) return cosines(m, {0.5, 0.5});
  const auto last = static_cast<double>(m - 1), width = std::floor(alpha * last / 2);
  return each(m, [&](double i) {
    if (i <= width) return 0.5 * (1 + std::cos(pi * (-1 + 2 * i / alpha / last)));
    if (i < last - width) return 1.0;
    return 0.5 * (1 + std::cos(pi * (-2 / alpha + 1 + 2 * i / alpha / last)));
  });
}

/// Carrara, Goodman and Majewski, "Spotlight synthetic aperture radar" (1995), appendix D.
std::vector<double> taylor(int64_t m, int64_t lobes, double level, bool normalized) {
  const double ratio = std::acosh(std::pow(10, level / 20)) / pi, a = ratio * ratio;
  const auto n = static_cast<double>(lobes);
  const double spread = n * n / (a + (n - 0.5) * (n - 0.5));
  std::vector<double> factors;
  for (int64_t i = 1; i < lobes; ++i) {
    const auto square = static_cast<double>(i * i);
    double above = i % 2 == 1 ? 1 : -1, below = 2;
    for (int64_t k = 1; k < lobes; ++k) {
      const auto x = static_cast<double>(k) - 0.5;
      above *= 1 - square / spread / (a + x * x);
      if (k != i) below *= 1 - square / static_cast<double>(k * k);
    }
    factors.push_back(above / below);
  }
  const auto size = static_cast<double>(m);
  const auto value = [&](double i) {
    double sum = 1;
    for (size_t k = 0; k < factors.size(); ++k)
      sum += 2 * factors[k] *
             std::cos(2 * pi * static_cast<double>(k + 1) * (i - size / 2 + 0.5) / size);
    return sum;
  };
  const double scale = normalized ? 1 / value((size - 1) / 2) : 1;
  return each(m, [&](double i) { return value(i) * scale; });
}

std::vector<double> symmetric(const Request& r, int64_t m) {
  const auto size = static_cast<double>(m), last = size - 1, middle = last / 2;
  const std::string& name = r.name;
  if (name == "hann") return cosines(m, {0.5, 0.5});
  if (name == "hamming") return cosines(m, {0.54, 0.46});
  if (name == "blackman") return cosines(m, {0.42, 0.5, 0.08});
  if (name == "nuttall") return cosines(m, {0.3635819, 0.4891775, 0.1365995, 0.0106411});
  if (name == "general_hamming") return cosines(m, {r.parameter(0), 1 - r.parameter(0)});
  if (name == "bartlett")
    return each(m, [&](double i) { return 1 - std::abs(i - middle) / middle; });
  if (name == "cosine") return each(m, [&](double i) { return std::sin(pi / size * (i + 0.5)); });
  if (name == "triang")
    return each(m, [&](double i) {
      const double n = std::min(i, last - i) + 1;
      return m % 2 == 0 ? (2 * n - 1) / size : 2 * n / (size + 1);
    });
  if (name == "bohman")
    return each(m, [&](double i) {
      if (i == 0 || i == last) return 0.0;
      const double x = std::abs(2 * i / last - 1);
      return (1 - x) * std::cos(pi * x) + std::sin(pi * x) / pi;
    });
  if (name == "gaussian") {
    const double deviation = r.parameter(0);
    return each(m,
                [&](double i) { return std::exp(-0.5 * std::pow((i - middle) / deviation, 2)); });
  }
  if (name == "general_gaussian") {
    const double power = r.parameter(0), sigma = r.parameter(1);
    return each(m, [&](double i) {
      return std::exp(-0.5 * std::pow(std::abs((i - middle) / sigma), 2 * power));
    });
  }
  if (name == "exponential") {
    const double given = r.parameter(0, std::nan("")), tau = r.parameter(1, 1.0);
    const double center = std::isnan(given) ? middle : given;
    return each(m, [&](double i) { return std::exp(-std::abs(i - center) / tau); });
  }
  if (name == "kaiser") {
    const double beta = r.parameter(0), scale = std::cyl_bessel_i(0, beta);
    return each(m, [&](double i) {
      const double x = (i - middle) / middle;
      return std::cyl_bessel_i(0, beta * std::sqrt(std::max(0.0, 1 - x * x))) / scale;
    });
  }
  if (name == "tukey") return tukey(m, r.parameter(0, 0.5));
  if (name == "taylor") {
    const double lobes = r.parameter(0, 4);
    if (!(lobes >= 1 && lobes <= 1000)) reject(r.op, "taylor: nbar is ", lobes);
    return taylor(m, static_cast<int64_t>(lobes), r.parameter(1, 30), r.parameter(2, 1) != 0);
  }
  const std::vector<std::string> names = {
      "hann",   "hamming", "blackman", "nuttall",  "general_hamming",  "bartlett",
      "cosine", "triang",  "bohman",   "gaussian", "general_gaussian", "exponential",
      "kaiser", "tukey",   "taylor"};
  reject(r.op, "unknown window '", name, "'", did_you_mean(name, names));
}

}  // namespace

std::vector<double> window_of(std::string_view op, const AttrValue& window, int64_t length,
                              bool periodic) {
  if (length < 0 || length > kMaxLength) reject(op, "win_length is ", length);
  const Request request = request_of(op, window);
  const bool longer = periodic && length > 1;
  std::vector<double> out = symmetric(request, std::max<int64_t>(2, length + (longer ? 1 : 0)));
  if (length <= 1) out.assign(static_cast<size_t>(length), 1);
  out.resize(static_cast<size_t>(length));
  return out;
}

}  // namespace paddle::rules
