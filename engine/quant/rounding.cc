#include "quant/rounding.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <Eigen/Cholesky>

#include "base/parallel.h"

namespace paddle::quant {
namespace {

using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

/// The upper factor U of the inverse of H + damp, Uᵀ U = H⁻¹, with its features in `order`.
Matrix inverse_factor(const Moments& moments, const std::vector<int64_t>& order, double damp) {
  const int64_t n = moments.features;
  Matrix h(n, n);
  double mean = 0;
  for (int64_t i = 0; i < n; ++i) {
    mean += moments.square(i) / static_cast<double>(n);
    for (int64_t j = 0; j < n; ++j)
      h(i, j) = moments.products[static_cast<size_t>(order[static_cast<size_t>(i)] * n +
                                                     order[static_cast<size_t>(j)])];
  }
  // Features that are always 0 need a diagonal too.
  const double added = std::max(damp * mean, 1e-12);
  for (int64_t i = 0; i < n; ++i) h(i, i) += added;
  const Matrix inverse = Eigen::LLT<Matrix>(h).solve(Matrix::Identity(n, n));
  return Eigen::LLT<Matrix, Eigen::Upper>(inverse).matrixU();
}

/// H times the change of a row.
std::vector<double> gradient(const Moments& moments, const std::vector<double>& change) {
  const auto n = static_cast<size_t>(moments.features);
  std::vector<double> out(n, 0);
  for (size_t i = 0; i < n; ++i) {
    const double d = change[i];
    if (d == 0) continue;
    const double* const row = moments.products.data() + i * n;
    for (size_t j = 0; j < n; ++j) out[j] += d * row[j];
  }
  return out;
}

std::vector<double> change_of(const WeightRows& rows, const QuantizedWeight& weight,
                              int64_t channel) {
  std::vector<double> out(static_cast<size_t>(rows.features));
  for (int64_t f = 0; f < rows.features; ++f) {
    const int8_t q = weight.integers[static_cast<size_t>(channel * rows.features + f)];
    out[static_cast<size_t>(f)] =
        static_cast<double>(weight.scales.value(channel, f, q)) - rows.row(channel)[f];
  }
  return out;
}

}  // namespace

QuantizedWeight gptq(const WeightRows& rows, const WeightFormat& format, const Moments& moments,
                     double damp) {
  const int64_t n = rows.features;
  std::vector<int64_t> order(static_cast<size_t>(n));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t a, int64_t b) { return moments.square(a) > moments.square(b); });
  const Matrix factor = inverse_factor(moments, order, damp);
  QuantizedWeight out{choose_scales(rows, format), std::vector<int8_t>(rows.values.size())};
  parallel_for(rows.channels, 1, [&](int64_t begin, int64_t end) {
    std::vector<double> left(static_cast<size_t>(n));
    for (int64_t c = begin; c < end; ++c) {
      for (int64_t i = 0; i < n; ++i)
        left[static_cast<size_t>(i)] = rows.row(c)[order[static_cast<size_t>(i)]];
      for (int64_t i = 0; i < n; ++i) {
        const int64_t feature = order[static_cast<size_t>(i)];
        const double weight = left[static_cast<size_t>(i)];
        const int32_t q = out.scales.nearest(c, feature, weight);
        out.integers[static_cast<size_t>(c * n + feature)] = static_cast<int8_t>(q);
        const double error =
            (weight - static_cast<double>(out.scales.value(c, feature, q))) / factor(i, i);
        for (int64_t j = i + 1; j < n; ++j) left[static_cast<size_t>(j)] -= error * factor(i, j);
      }
    }
  });
  return out;
}

QuantizedWeight descend(const WeightRows& rows, QuantizedWeight start, const Moments& moments,
                        int most_passes) {
  const int64_t n = rows.features;
  const WeightScales& scales = start.scales;
  parallel_for(rows.channels, 1, [&](int64_t begin, int64_t end) {
    for (int64_t c = begin; c < end; ++c) {
      std::vector<double> change = change_of(rows, start, c);
      std::vector<double> slope = gradient(moments, change);
      for (int pass = 0; pass < most_passes; ++pass) {
        bool changed = false;
        for (int64_t f = 0; f < n; ++f) {
          const double curvature = moments.square(f);
          if (!(curvature > 0)) continue;
          const auto at = static_cast<size_t>(f);
          // The change of this feature with the least error, given those of the others.
          const double best = change[at] - slope[at] / curvature;
          int8_t& q = start.integers[static_cast<size_t>(c * n + f)];
          const auto chosen = static_cast<int8_t>(scales.nearest(c, f, rows.row(c)[f] + best));
          if (chosen == q) continue;
          const double step = static_cast<double>(scales.value(c, f, chosen)) -
                              static_cast<double>(scales.value(c, f, q));
          // The nearest integer is best, but for ties and rounding of floats.
          if (!(2 * step * slope[at] + step * step * curvature < 0)) continue;
          q = chosen;
          change[at] += step;
          const double* const row = moments.products.data() + f * n;
          for (int64_t j = 0; j < n; ++j) slope[static_cast<size_t>(j)] += step * row[j];
          changed = true;
        }
        if (!changed) break;
      }
    }
  });
  return start;
}

WeightRows compensated(const WeightRows& rows, const PairedMoments& moments, double damp) {
  const int64_t n = rows.features;
  const auto matrix = [&](const std::vector<double>& values) {
    return Eigen::Map<const Matrix>(values.data(), n, n);
  };
  Matrix h = matrix(moments.quantized.products);
  const Matrix difference = matrix(moments.mixed) - h;
  h.diagonal().array() += std::max(damp * h.trace() / static_cast<double>(n), 1e-12);
  // W + W (C - H) H⁻¹: damping keeps directions without inputs as they are.
  const Matrix change = Eigen::LLT<Matrix>(h).solve(difference.transpose()).transpose();
  const Matrix w =
      Eigen::Map<const Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>>(
          rows.values.data(), rows.channels, n)
          .cast<double>();
  const Matrix target = w + w * change;
  WeightRows out = rows;
  for (int64_t c = 0; c < rows.channels; ++c)
    for (int64_t f = 0; f < n; ++f) out.row(c)[f] = static_cast<float>(target(c, f));
  return out;
}

double rounding_error(const WeightRows& rows, const QuantizedWeight& weight,
                      const Moments& moments) {
  double sum = 0;
  for (int64_t c = 0; c < rows.channels; ++c) {
    const std::vector<double> change = change_of(rows, weight, c);
    const std::vector<double> slope = gradient(moments, change);
    sum += std::inner_product(change.begin(), change.end(), slope.begin(), 0.0);
  }
  return sum;
}

}  // namespace paddle::quant
