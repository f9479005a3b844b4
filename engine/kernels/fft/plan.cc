#include "kernels/fft/plan.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "kernels/fft/passes_simd.h"

namespace paddle::cpu {
namespace {

/// Larger prime factors are cheaper by Bluestein's method.
constexpr int64_t kMaxRadix = 31;

/// exp(-2πi k / n), exact at multiples of an eighth turn.
std::pair<double, double> root_of_one(int64_t k, int64_t n) {
  k %= n;
  if (8 * k > 4 * n) {  // the lower half is the conjugate of the upper
    const auto [re, im] = root_of_one(n - k, n);
    return {re, -im};
  }
  if (8 * k > 2 * n) {  // beyond a quarter turn: turn back by a quarter
    if (8 * k > 3 * n) {
      const double angle =
          std::numbers::pi * static_cast<double>(n - 2 * k) / static_cast<double>(n);
      return {-std::cos(angle), -std::sin(angle)};
    }
    const double angle =
        std::numbers::pi * static_cast<double>(4 * k - n) / (2 * static_cast<double>(n));
    return {-std::sin(angle), -std::cos(angle)};
  }
  if (8 * k > n) {
    const double angle =
        std::numbers::pi * static_cast<double>(n - 4 * k) / (2 * static_cast<double>(n));
    return {std::sin(angle), -std::cos(angle)};
  }
  const double angle = 2 * std::numbers::pi * static_cast<double>(k) / static_cast<double>(n);
  return {std::cos(angle), -std::sin(angle)};
}

/// Radices of the passes, whose product is n; empty if a factor is too large.
std::vector<int64_t> radices_of(int64_t n) {
  std::vector<int64_t> out;
  for (const int64_t radix : {4, 2, 3, 5})
    for (; n % radix == 0; n /= radix) out.push_back(radix);
  for (int64_t radix = 7; n > 1; radix += 2) {
    if (radix > kMaxRadix) return {};
    for (; n % radix == 0; n /= radix) out.push_back(radix);
  }
  return out;
}

template <class T>
void put(std::vector<T>& pairs, std::pair<double, double> value) {
  pairs.push_back(static_cast<T>(value.first));
  pairs.push_back(static_cast<T>(value.second));
}

}  // namespace

template <class T>
FftPlan<T>::FftPlan(int64_t n) : n_(n) {
  const std::vector<int64_t> radices = radices_of(n);
  if (radices.empty() && n > 1) {
    int64_t length = 1;
    while (length < 2 * n - 1) length *= 2;
    inner_ = std::make_unique<FftPlan>(length);
    std::vector<T> re(static_cast<size_t>(2 * length)), im(re.size());
    for (int64_t k = 0; k < n; ++k) {
      // k² modulo 2n, whose products fit for every n that memory holds.
      const auto value =
          root_of_one(static_cast<int64_t>(static_cast<uint64_t>(k) * static_cast<uint64_t>(k) %
                                           static_cast<uint64_t>(2 * n)),
                      2 * n);
      put(chirp_, value);
      for (const int64_t at : {k, (length - k) % length}) {
        re[static_cast<size_t>(at)] = static_cast<T>(value.first);
        im[static_cast<size_t>(at)] = static_cast<T>(-value.second);
      }
    }
    const Parts<T> found =
        inner_->forward({re.data(), im.data()}, {re.data() + length, im.data() + length}, 1);
    const T scale = T(1) / static_cast<T>(length);
    for (int64_t k = 0; k < length; ++k) {
      spectrum_.push_back(found.re[k] * scale);
      spectrum_.push_back(found.im[k] * scale);
    }
    return;
  }
  int64_t rest = n;
  for (const int64_t radix : radices) {
    Pass pass{radix, rest / radix, {}};
    for (int64_t p = 0; p < pass.count; ++p)
      for (int64_t k = 1; k < radix; ++k) put(pass.twiddles, root_of_one(p * k, rest));
    passes_.push_back(std::move(pass));
    std::vector<T>& roots = roots_.emplace_back();
    if (radix > 5)
      for (int64_t k = 0; k < radix; ++k) put(roots, root_of_one(k, radix));
    rest /= radix;
  }
  by_row_ = n >= 64 && n % 8 == 0;
  if (!by_row_) return;
  const Pass& first = passes_.front();
  columns_.resize(first.twiddles.size());
  for (int64_t p = 0; p < first.count; ++p)
    for (int64_t i = 0; i < 2 * (first.radix - 1); ++i)
      columns_[static_cast<size_t>(i * first.count + p)] =
          first.twiddles[static_cast<size_t>(2 * (first.radix - 1) * p + i)];
}

template <class T>
Parts<T> FftPlan<T>::run_passes(Parts<T> x, Parts<T> y, int64_t lanes) const {
  int64_t stride = lanes;
  for (size_t i = 0; i < passes_.size(); ++i) {
    const Pass& pass = passes_[i];
    fft_pass(FftPass<T>{pass.radix, pass.count, stride, x, y, pass.twiddles.data(),
                        roots_[i].data(), i == 0 && by_row_ ? columns_.data() : nullptr});
    std::swap(x, y);
    stride *= pass.radix;
  }
  return x;
}

template <class T>
Parts<T> FftPlan<T>::bluestein(Parts<T> x, Parts<T> other, int64_t lanes) const {
  const int64_t length = inner_->n_;
  multiply_by(x, chirp_.data(), n_, lanes);
  std::fill(x.re + n_ * lanes, x.re + length * lanes, T(0));
  std::fill(x.im + n_ * lanes, x.im + length * lanes, T(0));
  Parts<T> y = inner_->forward(x, other, lanes);
  multiply_by(y, spectrum_.data(), length, lanes);
  const Parts<T> free = y.re == x.re ? other : x;
  y = inner_->forward(y.swapped(), free.swapped(), lanes).swapped();
  multiply_by(y, chirp_.data(), n_, lanes);
  return y;
}

template <class T>
Parts<T> FftPlan<T>::forward(Parts<T> x, Parts<T> other, int64_t lanes) const {
  return inner_ ? bluestein(x, other, lanes) : run_passes(x, other, lanes);
}

template class FftPlan<float>;
template class FftPlan<double>;

}  // namespace paddle::cpu
