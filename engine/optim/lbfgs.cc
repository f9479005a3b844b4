#include "optim/lbfgs.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "optim/line_search.h"

namespace paddle::optim {
namespace {

/// Calls `f` with the elements of each piece of the vectors, as float* or double*.
template <class F, class... P>
void for_pieces(F f, const Pieces& first, const P&... rest) {
  for (size_t i = 0; i < first.size(); ++i) {
    const int64_t size = first[i].size();
    if (first[i].dtype == DType::kF64)
      f(size, first[i].template data<double>(), rest[i].template data<double>()...);
    else
      f(size, first[i].template data<float>(), rest[i].template data<float>()...);
  }
}

/// Eight sums side by side, in a fixed order.
template <class T, class Term>
double sum_of(int64_t size, Term term) {
  double sums[8] = {};
  int64_t i = 0;
  for (; i + 8 <= size; i += 8)
    for (int64_t k = 0; k < 8; ++k) sums[k] += term(i + k);
  for (; i < size; ++i) sums[i % 8] += term(i);
  return ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
}

double dot(const Pieces& a, const Pieces& b) {
  double out = 0;
  for_pieces(
      [&]<class T>(int64_t size, const T* x, const T* y) {
        out += sum_of<T>(
            size, [&](int64_t i) { return static_cast<double>(x[i]) * static_cast<double>(y[i]); });
      },
      a, b);
  return out;
}

double sum_of_magnitudes(const Pieces& a) {
  double out = 0;
  for_pieces(
      [&]<class T>(int64_t size, const T* x) {
        out += sum_of<T>(size, [&](int64_t i) { return std::abs(static_cast<double>(x[i])); });
      },
      a);
  return out;
}

/// NaN where there is one.
double largest_magnitude(const Pieces& a) {
  double out = 0;
  for_pieces(
      [&]<class T>(int64_t size, const T* x) {
        for (int64_t i = 0; i < size; ++i) {
          const double v = std::abs(static_cast<double>(x[i]));
          if (!(v <= out)) out = v;
        }
      },
      a);
  return out;
}

/// to = a * x + b * y.
void combine(const Pieces& to, double a, const Pieces& x, double b, const Pieces& y) {
  for_pieces(
      [&]<class T>(int64_t size, T* out, const T* p, const T* q) {
        for (int64_t i = 0; i < size; ++i)
          out[i] = static_cast<T>(a * static_cast<double>(p[i]) + b * static_cast<double>(q[i]));
      },
      to, x, y);
}

void scale(const Pieces& to, double a, const Pieces& x) {
  for_pieces(
      [&]<class T>(int64_t size, T* out, const T* p) {
        for (int64_t i = 0; i < size; ++i) out[i] = static_cast<T>(a * static_cast<double>(p[i]));
      },
      to, x);
}

void copy(const Pieces& to, const Pieces& from) {
  for (size_t i = 0; i < to.size(); ++i)
    std::memcpy(to[i].raw(), from[i].raw(),
                static_cast<size_t>(to[i].size() * item_size(to[i].dtype)));
}

Pieces like(const Pieces& a) {
  Pieces out;
  for (const Array& each : a) out.push_back(Array::empty(each.dtype, each.shape));
  return out;
}

Pieces copied(const Pieces& a) {
  Pieces out = like(a);
  copy(out, a);
  return out;
}

/// Row `row` of arrays with an axis before those of the vector.
Pieces row_of(const Pieces& stacked, int64_t row) {
  Pieces out = stacked;
  for (Array& each : out) {
    each.shape.erase(each.shape.begin());
    each.strides.erase(each.strides.begin());
    each.offset += row * each.size();
  }
  return out;
}

/// The numbers of the memory by name.
struct Numbers {
  explicit Numbers(const Array& array)
      : iterations(array.data<double>()[0]),
        rate(array.data<double>()[1]),
        scale(array.data<double>()[2]),
        first(array.data<double>()[3]),
        count(array.data<double>()[4]) {}
  double& iterations;  ///< since the beginning
  double& rate;        ///< length of the last step
  double& scale;       ///< of the first approximation of the inverse Hessian
  double& first;       ///< the oldest row of the ring
  double& count;       ///< rows in use
};

/// Adds the last step and the change of the gradient along it, if the curvature is positive there.
void remember(int64_t history, const Pieces& gradients, LbfgsMemory& memory, Numbers& numbers) {
  const Pieces change = like(gradients);
  combine(change, 1, gradients, -1, memory.previous_gradient);
  const double curvature = dot(change, memory.direction) * numbers.rate;
  if (!(curvature > 1e-10)) return;
  const auto count = static_cast<int64_t>(numbers.count),
             first = static_cast<int64_t>(numbers.first);
  const int64_t row = (first + count) % history;
  copy(row_of(memory.changes, row), change);
  scale(row_of(memory.steps, row), numbers.rate, memory.direction);
  if (count == history)
    numbers.first = static_cast<double>((first + 1) % history);
  else
    numbers.count = static_cast<double>(count + 1);
  numbers.scale = curvature / dot(change, change);
}

/// The direction of the next step: minus the approximate inverse Hessian times the gradient, by the
/// two loops over the memory.
void find_direction(int64_t history, const Pieces& gradients, LbfgsMemory& memory,
                    const Numbers& numbers) {
  const auto count = static_cast<int64_t>(numbers.count),
             first = static_cast<int64_t>(numbers.first);
  const Pieces& d = memory.direction;
  scale(d, -1, gradients);
  std::vector<double> factors(static_cast<size_t>(count)), inverse(static_cast<size_t>(count));
  for (int64_t i = count - 1; i >= 0; --i) {
    const Pieces change = row_of(memory.changes, (first + i) % history),
                 step = row_of(memory.steps, (first + i) % history);
    const auto at = static_cast<size_t>(i);
    inverse[at] = 1 / dot(change, step);
    factors[at] = dot(step, d) * inverse[at];
    combine(d, 1, d, -factors[at], change);
  }
  scale(d, numbers.scale, d);
  for (int64_t i = 0; i < count; ++i) {
    const Pieces change = row_of(memory.changes, (first + i) % history),
                 step = row_of(memory.steps, (first + i) % history);
    const auto at = static_cast<size_t>(i);
    combine(d, 1, d, factors[at] - dot(change, d) * inverse[at], step);
  }
}

/// Moves the parameters to the point that the line search finds; the gradients become those there.
/// Gives the loss there, and the number of evaluations.
std::pair<double, int64_t> move_by_search(const LbfgsOptions& o, const Pieces& parameters,
                                          const Pieces& gradients, double loss, double slope,
                                          int64_t evaluations, const Pieces& direction,
                                          double& rate, const Objective& objective) {
  const Pieces start = copied(parameters);
  int64_t count = 0;
  LineSearch search;
  search.tolerance = o.tolerance_change;
  search.extent = largest_magnitude(direction);
  search.evaluations = static_cast<int>(evaluations);
  const auto note = [&] { return std::make_shared<const Pieces>(copied(gradients)); };
  const LinePoint found = search_line(search, {0, loss, slope, note()}, rate, [&](double at) {
    combine(parameters, 1, start, at, direction);
    ++count;
    const double value = objective();
    return LinePoint{at, value, dot(gradients, direction), note()};
  });
  rate = found.at;
  combine(parameters, 1, start, rate, direction);
  copy(gradients, *found.gradient);
  return {found.value, count};
}

}  // namespace

double lbfgs_step(const LbfgsOptions& o, double rate, const Pieces& parameters,
                  const Pieces& gradients, LbfgsMemory& memory, const Objective& objective) {
  Numbers numbers(memory.numbers);
  const double first_loss = objective();
  double loss = first_loss;
  int64_t evaluations = 1;
  const auto is_optimal = [&] { return largest_magnitude(gradients) <= o.tolerance_grad; };
  if (is_optimal() || !std::isfinite(loss)) return first_loss;
  for (int64_t i = 1; i <= o.iterations; ++i) {
    numbers.iterations += 1;
    const bool is_first = numbers.iterations == 1;
    if (is_first)
      numbers.scale = 1;
    else
      remember(o.history, gradients, memory, numbers);
    find_direction(o.history, gradients, memory, numbers);
    copy(memory.previous_gradient, gradients);
    const double previous_loss = loss, slope = dot(gradients, memory.direction);
    numbers.rate = is_first ? std::min(1.0, 1 / sum_of_magnitudes(gradients)) * rate : rate;
    if (!(slope <= -o.tolerance_change)) break;
    if (o.line_search) {
      const auto [value, count] =
          move_by_search(o, parameters, gradients, loss, slope, o.evaluations - evaluations,
                         memory.direction, numbers.rate, objective);
      loss = value;
      evaluations += count;
    } else {
      combine(parameters, 1, parameters, numbers.rate, memory.direction);
      if (i == o.iterations) break;
      loss = objective();
      ++evaluations;
    }
    if (evaluations >= o.evaluations || is_optimal() ||
        numbers.rate * largest_magnitude(memory.direction) <= o.tolerance_change ||
        !(std::abs(loss - previous_loss) >= o.tolerance_change))
      break;
  }
  return first_loss;
}

}  // namespace paddle::optim
