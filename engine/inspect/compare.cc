#include "inspect/compare.h"

#include <cmath>
#include <complex>
#include <mutex>

namespace paddle::inspect {
namespace {

struct LastMismatch {
  std::mutex mutex;
  std::optional<Mismatch> value;
};
LastMismatch& last_mismatch() {
  static auto* const last = new LastMismatch;  // threads may outlive main
  return *last;
}

std::string index_text(const Array& a, int64_t flat) {
  Dims index(a.shape.size());
  for (size_t i = a.shape.size(); i-- > 0;) {
    index[i] = flat % a.shape[i];
    flat /= a.shape[i];
  }
  return str(index);
}

struct Worst {
  int64_t count = 0, at = -1;
  double excess = -1;
  void add(int64_t i, double by) {
    ++count;
    if (at >= 0 && by <= excess) return;
    excess = by;
    at = i;
  }
  std::string text(const Array& found, const std::string& f, const std::string& e,
                   double tolerance = 0) const {
    std::string out = str(count, " of ", found.size(), " elements differ, most at ",
                          index_text(found, at), ": ", f, ", expected ", e);
    note_mismatch({out, f, e, tolerance});
    return out;
  }
};

/// Distance of `found` from the tolerated range; 0 if it is inside.
double excess(double found, double expected, const Tolerance& t) {
  if (std::isnan(found) && std::isnan(expected)) return 0;
  if (found == expected) return 0;
  const double infinity = std::numeric_limits<double>::infinity();
  if (!std::isfinite(found) || !std::isfinite(expected)) return infinity;
  const double by = std::abs(found - expected) - (t.absolute + t.relative * std::abs(expected));
  return by > 0 ? by : 0;
}

template <class T>
std::string complex_difference(const Array& found, const Array& expected, const Tolerance& t) {
  Worst worst;
  const auto* f = found.data<std::complex<T>>();
  const auto* e = expected.data<std::complex<T>>();
  const auto near = [&](std::complex<T> a, std::complex<T> b) {
    if (!std::isfinite(std::abs(a)) || !std::isfinite(std::abs(b)))
      return excess(a.real(), b.real(), t) + excess(a.imag(), b.imag(), t);
    const double by = std::abs(std::complex<double>(a) - std::complex<double>(b)) -
                      (t.absolute + t.relative * std::abs(std::complex<double>(b)));
    return by > 0 ? by : 0.0;
  };
  for (int64_t i = 0; i < found.size(); ++i)
    if (const double by = near(f[i], e[i]); by > 0) worst.add(i, by);
  if (worst.count == 0) return "";
  const auto show = [](std::complex<T> z) {
    return str("(", static_cast<double>(z.real()), ", ", static_cast<double>(z.imag()), ")");
  };
  return worst.text(found, show(f[worst.at]), show(e[worst.at]),
                    t.absolute + t.relative * std::abs(std::complex<double>(e[worst.at])));
}

}  // namespace

void note_mismatch(Mismatch mismatch) {
  LastMismatch& last = last_mismatch();
  const std::lock_guard lock(last.mutex);
  last.value = std::move(mismatch);
}

std::optional<Mismatch> mismatch_of(const std::string& message) {
  LastMismatch& last = last_mismatch();
  const std::lock_guard lock(last.mutex);
  if (last.value && message.find(last.value->text) != std::string::npos) return last.value;
  return std::nullopt;
}

std::string difference(const Array& found_array, const Array& expected_array, const Tolerance& t) {
  const bool widened = found_array.dtype == DType::kBF16 && expected_array.dtype == DType::kF32;
  const Array found = (widened ? found_array.cast(DType::kF32) : found_array).contiguous();
  const Array expected = expected_array.contiguous();
  if (found.shape != expected.shape)
    return str("shape ", found.shape, ", expected ", expected.shape);
  if (found.dtype != expected.dtype)
    return str(text(found.dtype), ", expected ", text(expected.dtype));
  if (found.dtype == DType::kC64) return complex_difference<float>(found, expected, t);
  if (found.dtype == DType::kC128) return complex_difference<double>(found, expected, t);
  Worst worst;
  if (!is_float(found.dtype)) {
    for (int64_t i = 0; i < found.size(); ++i)
      if (found.integer(i) != expected.integer(i))
        worst.add(i, std::abs(static_cast<double>(found.integer(i)) -
                              static_cast<double>(expected.integer(i))));
    if (worst.count == 0) return "";
    return worst.text(found, str(found.integer(worst.at)), str(expected.integer(worst.at)));
  }
  for (int64_t i = 0; i < found.size(); ++i)
    if (const double by = excess(found.number(i), expected.number(i), t); by > 0) worst.add(i, by);
  if (worst.count == 0) return "";
  return worst.text(found, str(found.number(worst.at)), str(expected.number(worst.at)),
                    t.absolute + t.relative * std::abs(expected.number(worst.at)));
}

}  // namespace paddle::inspect
