#include "tables/row_update.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "base/parallel.h"
#include "kernels/optimizer/update_simd.h"

namespace paddle::tables {
namespace {

using optim::RowRule;

constexpr int64_t kUpdateGrain = 512;
constexpr size_t kRowsAhead = 8;

template <class T>
typename cpu::UpdateLoops<T>::Fn loop_of(RowRule::Kind kind) {
  const cpu::UpdateLoops<T>& loops = cpu::update_loops<T>();
  switch (kind) {
    case RowRule::Kind::kSgd:
      return loops.sgd;
    case RowRule::Kind::kMomentum:
      return loops.momentum;
    case RowRule::Kind::kAdagrad:
      return loops.adagrad;
    case RowRule::Kind::kAdam:
      break;
  }
  return loops.adam;
}

template <class T>
cpu::UpdateScalars<T> combined(const RowRule& rule, const RowScalars& at) {
  cpu::UpdateScalars<double> s{};
  s.shrink = 1;
  s.lr = at.rate;
  s.decay = at.weight_decay;
  s.a = rule.a;
  s.b = rule.b;
  s.epsilon = rule.epsilon;
  s.flag = rule.flag;
  s.scale = at.scale;
  s.bound = at.bound;
  if (rule.kind == RowRule::Kind::kAdam) {
    s.lr *= std::sqrt(1 - std::pow(s.b, at.step)) / (1 - std::pow(s.a, at.step));
    if (s.flag) s.shrink = 1 - at.rate * std::exchange(s.decay, 0);
  }
  return cpu::convert_scalars<T>(s);
}

float number_at(const std::byte* row, size_t at) {
  float number = 0;
  std::memcpy(&number, row + at, sizeof number);
  return number;
}

/// Adagrad with one sum of squares for all weights of the row.
template <class T>
void update_by_row_moment(T* row, const T* gradient, int64_t n, const cpu::UpdateScalars<T>& s,
                          double initial, std::byte* moment) {
  const auto sum = static_cast<double>(number_at(moment, 0));
  const double factor = static_cast<double>(s.lr) * std::sqrt(initial / (initial + sum));
  double squares = 0;
  for (int64_t i = 0; i < n; ++i) {
    const T scaled = std::max(-s.bound, std::min(s.bound, gradient[i] * s.scale));
    const auto g = static_cast<double>(scaled + s.decay * row[i]);
    row[i] = static_cast<T>(static_cast<double>(row[i]) - factor * g);
    squares += g * g;
  }
  const auto next = static_cast<float>(sum + squares / static_cast<double>(n));
  std::memcpy(moment, &next, sizeof next);
}

template <class T>
void update(const RowRule& rule, const RowScalars& scalars, int64_t width,
            std::span<std::byte* const> rows, const T* gradients, const RowExtras& extras) {
  const auto loop = loop_of<T>(rule.kind);
  const int64_t states = states_of(rule.kind);
  const cpu::UpdateScalars<T> numbers = combined<T>(rule, scalars);
  parallel_for(static_cast<int64_t>(rows.size()), kUpdateGrain, [&](int64_t begin, int64_t end) {
    for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i) {
      if (i + kRowsAhead < static_cast<size_t>(end)) __builtin_prefetch(rows[i + kRowsAhead], 1);
      T* const row = reinterpret_cast<T*>(rows[i]);
      cpu::UpdateSpan<T> span{};
      span.param = span.out = row;
      span.grad = gradients + static_cast<int64_t>(i) * width;
      span.n = extras.wide_at && number_at(rows[i], *extras.wide_at) == 0 ? extras.narrow : width;
      if (extras.moment_at) {
        update_by_row_moment(row, span.grad, span.n, numbers, extras.moment_initial,
                             rows[i] + *extras.moment_at);
      } else {
        for (int64_t s = 0; s < states; ++s)
          span.state[s] = span.new_state[s] = row + (s + 1) * width;
        loop(span, numbers);
      }
      if (!extras.bounds) continue;
      const T low = static_cast<T>(extras.bounds->first),
              high = static_cast<T>(extras.bounds->second);
      for (int64_t k = 0; k < span.n; ++k) row[k] = std::max(low, std::min(high, row[k]));
    }
  });
}

template <class T>
double squares(const T* values, int64_t count) {
  double sum = 0;
  for (int64_t i = 0; i < count; ++i) {
    const auto value = static_cast<double>(values[i]);
    sum += value * value;
  }
  return sum;
}

}  // namespace

int64_t states_of(RowRule::Kind kind) {
  return kind == RowRule::Kind::kSgd ? 0 : kind == RowRule::Kind::kAdam ? 2 : 1;
}

void update_rows(const RowRule& rule, const RowScalars& scalars, DType dtype, int64_t width,
                 std::span<std::byte* const> rows, const void* gradients, const RowExtras& extras) {
  if (dtype == DType::kF64)
    update(rule, scalars, width, rows, static_cast<const double*>(gradients), extras);
  else
    update(rule, scalars, width, rows, static_cast<const float*>(gradients), extras);
}

double sum_of_squares(DType dtype, int64_t count, const void* values) {
  return dtype == DType::kF64 ? squares(static_cast<const double*>(values), count)
                              : squares(static_cast<const float*>(values), count);
}

}  // namespace paddle::tables
