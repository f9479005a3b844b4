#include "autograd/minimize.h"

#include <algorithm>

#include "base/error.h"
#include "ops/core/operators.h"
#include "ops/generated/creation.h"
#include "ops/generated/indexing.h"
#include "ops/generated/linalg.h"
#include "ops/generated/math.h"
#include "ops/generated/reduce.h"
#include "ops/generated/shape.h"

namespace paddle::autograd {
namespace {

Tensor truth(bool value) { return Tensor(Array::scalar(value)); }
Tensor whole(int64_t value) { return Tensor(Array::scalar(value)); }
Tensor both(const Tensor& a, const Tensor& b) { return ops::logical_and(a, b); }
Tensor either(const Tensor& a, const Tensor& b) { return ops::logical_or(a, b); }
Tensor none_of(const Tensor& a) { return ops::logical_not(a); }
Tensor product(const Tensor& a, const Tensor& b) { return ops::sum(a * b); }
Tensor column(const Tensor& a) { return ops::reshape(a, {a.dim(0), Dim(1)}); }
Tensor largest(const Tensor& a) { return ops::max(ops::abs(a)); }

/// A point of a line: step length, value and slope (0-D), gradient [n].
struct Point {
  Tensor at, value, slope, gradient;
};

Point chosen(const Tensor& condition, const Point& a, const Point& b) {
  return {ops::where(condition, a.at, b.at), ops::where(condition, a.value, b.value),
          ops::where(condition, a.slope, b.slope), ops::where(condition, a.gradient, b.gradient)};
}

void put(Tensors& to, const Point& p) { to.insert(to.end(), {p.at, p.value, p.slope, p.gradient}); }

/// The next values of a list of carried tensors.
class Reader {
 public:
  explicit Reader(const Tensors& from) : from_(from) {}
  Tensor next() { return from_.at(i_++); }
  Point point() {
    const Tensor at = next(), value = next(), slope = next(), gradient = next();
    return {at, value, slope, gradient};
  }

 private:
  const Tensors& from_;
  size_t i_ = 0;
};

/// The minimum between two points of the cubic through them with their slopes; the middle where it
/// has none.
Tensor cubic_minimum(const Point& p, const Point& q) {
  const Tensor ordered = ops::less_equal(p.at, q.at);
  const Point a = chosen(ordered, p, q), b = chosen(ordered, q, p);
  const Tensor secant = p.slope + q.slope - 3.0 * (p.value - q.value) / (p.at - q.at);
  const Tensor square = secant * secant - p.slope * q.slope;
  const Tensor root = ops::sqrt(square);
  const Tensor at =
      b.at - (b.at - a.at) * ((b.slope + root - secant) / (b.slope - a.slope + 2.0 * root));
  const Tensor inside = ops::minimum(ops::maximum(at, a.at), b.at);
  return ops::where(ops::greater_equal(square, Tensor::number(0.0)), inside, (a.at + b.at) / 2.0);
}

class Minimizer {
 public:
  Minimizer(const TensorFn& fn, const Tensor& start, const MinimizeOptions& options)
      : fn_(fn), start_(start), o_(options) {}

  Minimum run();

 private:
  Tensor number(double value) const { return full_of({}, value, start_.dtype()); }

  /// Value and gradient [n] at a position [n].
  std::pair<Tensor, Tensor> evaluate(const Tensor& position) const {
    const Tensor x = variable(ops::detach(ops::reshape(position, start_.shape())));
    const Tensors y = fn_({x});
    if (y.size() != 1 || y[0].ndim() != 0 || y[0].dtype() != start_.dtype())
      fail(ErrorCode::kConfig,
           "minimize: the function must give one number of the dtype of its "
           "argument, ",
           text(start_.dtype()), "; found ", y.empty() ? "nothing" : y[0].type().text());
    const Tensor g = grad(y, {x})[0];
    return {ops::detach(y[0]),
            ops::detach(ops::reshape(g.defined() ? g : zeros_like(x), {Dim(-1)}))};
  }

  Point on_line(const Tensor& position, const Tensor& direction, const Tensor& at) const {
    const auto [value, gradient] = evaluate(position + at * direction);
    return {at, value, product(gradient, direction), gradient};
  }

  struct Found {
    Point point;
    Tensor evaluations;
  };
  Found search(const Tensor& position, const Tensor& direction, const Point& origin,
               Tensor evaluations) const;
  Tensor direction_from_memory(const Tensor& gradient, const Tensor& steps, const Tensor& changes,
                               const Tensor& inverses) const;

  const TensorFn& fn_;
  const Tensor start_;
  const MinimizeOptions& o_;
};

/// First longer and longer steps until a minimum is passed, then a smaller and smaller bracket
/// around one. The point at 0 where neither finds a good one.
Minimizer::Found Minimizer::search(const Tensor& position, const Tensor& direction,
                                   const Point& origin, Tensor evaluations) const {
  constexpr double kDecrease = 1e-4, kCurvature = 0.9, kMaxStep = 10, kMinStep = 1e-8;
  const auto is_too_far = [&](const Point& p) {
    return none_of(ops::less_equal(p.value, origin.value + kDecrease * p.at * origin.slope));
  };
  const auto is_flat = [&](const Point& p) {
    return ops::less_equal(ops::abs(p.slope), -kCurvature * origin.slope);
  };
  const auto below = [](const Tensor& i, int64_t limit) {
    return ops::less_than(i, Tensor::number(limit));
  };
  Interpreter& interpreter = current_interpreter();

  // Turn, done, whether there is a bracket, evaluations, next length, last point, bracket.
  Tensors state = {whole(0), truth(false), truth(false), evaluations, number(o_.step_length)};
  put(state, origin);
  put(state, origin);
  put(state, origin);
  state = interpreter.loop(
      [&](const Tensors& s) {
        return Tensors{both(below(s[0], o_.search_iterations), none_of(s[1]))};
      },
      [&](const Tensors& s) {
        Reader read(s);
        const Tensor turn = read.next();
        read.next();
        read.next();
        const Tensor count = read.next(), length = read.next();
        const Point before = read.point(), low = read.point(), high = read.point();
        const Point now = on_line(position, direction, length);
        const Tensor passed =
            either(is_too_far(now), both(ops::greater_equal(now.value, before.value),
                                         ops::greater_than(turn, Tensor::number(int64_t{1}))));
        const Tensor good = both(none_of(passed), is_flat(now));
        const Tensor rises =
            both(none_of(either(passed, good)), ops::greater_equal(now.slope, Tensor::number(0.0)));
        const Tensor done = either(either(passed, good), rises);
        Tensors out = {turn + Tensor::number(int64_t{1}), done, either(passed, rises),
                       count + Tensor::number(int64_t{1}),
                       ops::minimum(2.0 * length, number(kMaxStep))};
        put(out, now);
        put(out, chosen(passed, before, chosen(done, now, low)));
        put(out, chosen(passed, now, chosen(rises, before, high)));
        return out;
      },
      state, -1);
  Reader expanded(state);
  expanded.next();
  expanded.next();
  const Tensor bracketed = expanded.next();
  evaluations = expanded.next();
  expanded.next();
  expanded.point();
  const Point low = expanded.point(), high = expanded.point();

  state = {whole(0), none_of(bracketed), evaluations};
  put(state, low);
  put(state, high);
  state = interpreter.loop(
      [&](const Tensors& s) {
        const Tensor wide = ops::greater_equal(ops::abs(s[7] - s[3]), Tensor::number(kMinStep));
        return Tensors{both(both(below(s[0], o_.search_iterations), none_of(s[1])), wide)};
      },
      [&](const Tensors& s) {
        Reader read(s);
        const Tensor turn = read.next();
        read.next();
        const Tensor count = read.next();
        const Point best = read.point(), other = read.point();
        const Tensor at = cubic_minimum(best, other);
        const Tensor margin = 0.1 * ops::abs(other.at - best.at);
        const Tensor near =
            ops::less_than(ops::minimum(ops::abs(at - best.at), ops::abs(at - other.at)), margin);
        const Point now =
            on_line(position, direction, ops::where(near, 0.5 * (best.at + other.at), at));
        const Tensor shrinks = either(is_too_far(now), ops::greater_equal(now.value, best.value));
        const Tensor done = both(none_of(shrinks), is_flat(now));
        const Tensor turns =
            both(none_of(either(shrinks, done)),
                 ops::greater_equal(now.slope * (other.at - best.at), Tensor::number(0.0)));
        Tensors out = {turn + Tensor::number(int64_t{1}), done, count + Tensor::number(int64_t{1})};
        put(out, chosen(shrinks, best, now));
        put(out, chosen(shrinks, now, chosen(turns, best, other)));
        return out;
      },
      state, -1);
  Reader shrunk(state);
  shrunk.next();
  shrunk.next();
  evaluations = shrunk.next();
  return {shrunk.point(), evaluations};
}

/// Minus the approximate inverse Hessian times the gradient, by two loops over the remembered steps
/// and changes of the gradient [h, n] and the inverses [h, 1] of their products; rows of zeros
/// change nothing.
Tensor Minimizer::direction_from_memory(const Tensor& gradient, const Tensor& steps,
                                        const Tensor& changes, const Tensor& inverses) const {
  Interpreter& interpreter = current_interpreter();
  const int64_t rows = steps.dim(0).value();
  const auto row = [](const Tensor& of, const Tensor& i) {
    return ops::reshape(ops::gather(of, ops::reshape(i, {Dim(1)}), 0), {Dim(-1)});
  };
  const auto one = [&](const Tensor& of, const Tensor& i) { return ops::reshape(row(of, i), {}); };
  const Tensor numbers = range_of(Dim(rows), DType::kI64);
  Tensors state = interpreter.loop(
      [&](const Tensors& s) {
        return Tensors{ops::greater_equal(s[0], Tensor::number(int64_t{0}))};
      },
      [&](const Tensors& s) {
        const Tensor factor = one(inverses, s[0]) * product(row(steps, s[0]), s[1]);
        return Tensors{s[0] - Tensor::number(int64_t{1}), s[1] - factor * row(changes, s[0]),
                       ops::where(ops::equal(numbers, s[0]), factor, s[2])};
      },
      {whole(rows - 1), gradient, full_of({Dim(rows)}, 0, start_.dtype())}, -1);
  Tensor r = state[1];
  if (o_.inverse_hessian.defined()) r = ops::mv(o_.inverse_hessian, r);
  const Tensor factors = state[2];
  state = interpreter.loop(
      [&](const Tensors& s) { return Tensors{ops::less_than(s[0], Tensor::number(rows))}; },
      [&](const Tensors& s) {
        const Tensor beta = one(inverses, s[0]) * product(row(changes, s[0]), s[1]);
        return Tensors{s[0] + Tensor::number(int64_t{1}),
                       s[1] + (one(column(factors), s[0]) - beta) * row(steps, s[0])};
      },
      {whole(0), r}, -1);
  return -state[1];
}

Minimum Minimizer::run() {
  const Dim n(element_count(std::span<const Dim>(start_.shape())).value());
  const DType dtype = start_.dtype();
  const Tensor origin = ops::detach(ops::reshape(start_, {n}));
  const auto [first_value, first_gradient] = evaluate(origin);
  const Dim rows(std::max<int64_t>(1, std::min(o_.history, o_.iterations)));
  const Tensor eye = ops::eye(n, {}, dtype);
  Tensors state = {whole(0), truth(false), truth(false),  whole(1),
                   origin,   first_value,  first_gradient};
  constexpr size_t kMemory = 7;
  if (o_.limited_memory) {
    state.push_back(full_of({rows, n}, 0, dtype));
    state.push_back(full_of({rows, n}, 0, dtype));
    state.push_back(full_of({rows, Dim(1)}, 0, dtype));
  } else {
    state.push_back(o_.inverse_hessian.defined() ? o_.inverse_hessian : eye);
  }
  const auto shifted = [&](const Tensor& memory, const Tensor& newest) {
    const Tensor last = ops::reshape(newest, {Dim(1), memory.dim(1)});
    if (rows.value() == 1) return last;
    return ops::concat({ops::slice(memory, {0}, {Dim(1)}, {rows}), last}, 0);
  };
  state = current_interpreter().loop(
      [&](const Tensors& s) {
        return Tensors{both(ops::less_than(s[0], Tensor::number(o_.iterations)), none_of(s[1]))};
      },
      [&](const Tensors& s) {
        const Tensor &position = s[4], &gradient = s[6];
        const Tensor direction =
            o_.limited_memory
                ? direction_from_memory(gradient, s[kMemory], s[kMemory + 1], s[kMemory + 2])
                : -ops::mv(s[kMemory], gradient);
        const Point here = {number(0), s[5], product(gradient, direction), gradient};
        const auto [found, evaluations] = search(position, direction, here, s[3]);
        const Tensor step = found.at * direction, change = found.gradient - gradient;
        const Tensor curvature = product(change, step);
        const Tensor inverse =
            ops::where(ops::equal(curvature, Tensor::number(0.0)), number(1000), 1.0 / curvature);
        const Tensor converged =
            either(ops::less_than(largest(found.gradient), Tensor::number(o_.tolerance_grad)),
                   ops::less_than(largest(direction), Tensor::number(o_.tolerance_change)));
        Tensors out = {s[0] + Tensor::number(int64_t{1}),
                       either(converged, ops::equal(found.at, Tensor::number(0.0))),
                       converged,
                       evaluations,
                       position + step,
                       found.value,
                       found.gradient};
        if (o_.limited_memory) {
          out.push_back(shifted(s[kMemory], step));
          out.push_back(shifted(s[kMemory + 1], change));
          out.push_back(shifted(s[kMemory + 2], inverse));
        } else {
          const Tensor left = eye - inverse * ops::outer(step, change);
          const Tensor right = eye - inverse * ops::outer(change, step);
          out.push_back(ops::matmul(ops::matmul(left, s[kMemory]), right) +
                        inverse * ops::outer(step, step));
        }
        return out;
      },
      state, -1);
  return {state[2],
          state[3],
          ops::reshape(state[4], start_.shape()),
          state[5],
          ops::reshape(state[6], start_.shape()),
          o_.limited_memory ? Tensor() : state[kMemory]};
}

}  // namespace

Minimum minimize(const TensorFn& fn, const Tensor& start, const MinimizeOptions& options) {
  const auto reject = [](const auto&... what) { fail(ErrorCode::kConfig, "minimize: ", what...); };
  if (start.dtype() != DType::kF32 && start.dtype() != DType::kF64)
    reject("the start must be float32 or float64, found ", start.type());
  for (const Dim& dim : start.shape())
    if (!dim.is_constant()) reject("the shape of the start must be known, found ", start.type());
  const Dim n = element_count(std::span<const Dim>(start.shape()));
  if (n.value() == 0) reject("the start has no elements: ", start.type());
  if (const Tensor& h = options.inverse_hessian;
      h.defined() &&
      (h.ndim() != 2 || !h.dim(0).same(n) || !h.dim(1).same(n) || h.dtype() != start.dtype()))
    reject("the inverse Hessian must be ", text(start.dtype()), "[", n, ", ", n, "], found ",
           h.type());
  return Minimizer(fn, start, options).run();
}

}  // namespace paddle::autograd
