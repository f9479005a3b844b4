#include "optim/line_search.h"

#include <algorithm>
#include <cmath>

namespace paddle::optim {
namespace {

/// The minimum, between `low` and `high`, of the cubic through two points with their slopes; the
/// middle where it has none.
double cubic_minimum(const LinePoint& p, const LinePoint& q, double low, double high) {
  const LinePoint &a = p.at <= q.at ? p : q, &b = p.at <= q.at ? q : p;
  const double secant = p.slope + q.slope - 3 * (p.value - q.value) / (p.at - q.at);
  const double square = secant * secant - p.slope * q.slope;
  if (!(square >= 0)) return (low + high) / 2;
  const double root = std::sqrt(square);
  const double at =
      b.at - (b.at - a.at) * ((b.slope + root - secant) / (b.slope - a.slope + 2 * root));
  return std::min(std::max(at, low), high);
}

/// A bracket around a good length, or a point that is one.
struct Bracket {
  LinePoint ends[2];
  bool done = false;
};

class Search {
 public:
  Search(const LineSearch& options, const LinePoint& start,
         const std::function<LinePoint(double)>& evaluate)
      : o_(options), start_(start), evaluate_(evaluate) {}

  LinePoint run(double first) {
    Bracket bracket = expand(first);
    return bracket.done ? bracket.ends[0] : shrink(bracket);
  }

 private:
  /// Not where the value is not a number, either.
  bool falls_enough(const LinePoint& p) const {
    return p.value <= start_.value + o_.decrease * p.at * start_.slope;
  }
  bool is_flat(const LinePoint& p) const {
    return std::abs(p.slope) <= -o_.curvature * start_.slope;
  }

  /// Longer and longer steps until a minimum is passed.
  Bracket expand(double first) {
    LinePoint before = start_, now = evaluate_(first);
    for (turns_ = 0; turns_ < o_.evaluations; ++turns_) {
      if (!falls_enough(now) || (turns_ > 1 && now.value >= before.value)) return {{before, now}};
      if (is_flat(now)) return {{now, now}, true};
      if (now.slope >= 0) return {{before, now}};
      const double next =
          cubic_minimum(before, now, now.at + 0.01 * (now.at - before.at), now.at * 10);
      before = now;
      now = evaluate_(next);
    }
    return {{start_, now}};
  }

  /// A smaller and smaller bracket. Points too near to its ends are moved away from them when that
  /// has happened twice.
  LinePoint shrink(Bracket bracket) {
    LinePoint* const ends = bracket.ends;
    int low = ends[0].value <= ends[1].value ? 0 : 1;
    bool near_before = false;
    while (turns_ < o_.evaluations) {
      const double left = std::min(ends[0].at, ends[1].at),
                   right = std::max(ends[0].at, ends[1].at);
      if ((right - left) * o_.extent < o_.tolerance) break;
      double at = cubic_minimum(ends[0], ends[1], left, right);
      const double margin = 0.1 * (right - left);
      const bool near = std::min(right - at, at - left) < margin;
      if (near && (near_before || at >= right || at <= left)) {
        at = right - at < at - left ? right - margin : left + margin;
        near_before = false;
      } else {
        near_before = near;
      }
      const LinePoint now = evaluate_(at);
      ++turns_;
      LinePoint &best = ends[low], &other = ends[1 - low];
      if (!falls_enough(now) || now.value >= best.value) {
        other = now;
        low = ends[0].value <= ends[1].value ? 0 : 1;
        continue;
      }
      const bool done = is_flat(now);
      if (!done && now.slope * (other.at - best.at) >= 0) other = best;
      best = now;
      if (done) break;
    }
    return ends[low];
  }

  const LineSearch& o_;
  const LinePoint& start_;
  const std::function<LinePoint(double)>& evaluate_;
  int turns_ = 0;
};

}  // namespace

LinePoint search_line(const LineSearch& options, const LinePoint& start, double first,
                      const std::function<LinePoint(double at)>& evaluate) {
  return Search(options, start, evaluate).run(first);
}

}  // namespace paddle::optim
