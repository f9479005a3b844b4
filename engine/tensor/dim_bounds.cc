// Bounds of expressions over symbols, by interval arithmetic.

#include <algorithm>

#include "tensor/dim_expression.h"

namespace paddle {
namespace {

std::optional<int64_t> safe_multiply(int64_t a, int64_t b) {
  int64_t out;
  if (__builtin_mul_overflow(a, b, &out)) return std::nullopt;
  return out;
}

Interval bounds_of(const Atom& atom) {
  switch (atom.kind) {
    case AtomKind::kSymbol:
      return {atom.at_least, std::nullopt};
    case AtomKind::kUnknown:
      return {0, std::nullopt};
    case AtomKind::kModulo: {
      const Interval divisor = bounds_of(atom.b);
      if (divisor.low && *divisor.low > 0)
        return {0, divisor.high ? std::optional<int64_t>(*divisor.high - 1) : std::nullopt};
      return {};
    }
    case AtomKind::kFloorDivide: {
      const Interval n = bounds_of(atom.a), m = bounds_of(atom.b);
      Interval out;
      if (!m.low || *m.low <= 0) return out;
      if (n.low) {
        if (*n.low >= 0)
          out.low = m.high ? floor_div(*n.low, *m.high) : 0;
        else
          out.low = floor_div(*n.low, *m.low);
      }
      if (n.high) {
        if (*n.high >= 0)
          out.high = floor_div(*n.high, *m.low);
        else
          out.high = m.high ? floor_div(*n.high, *m.high) : -1;
      }
      return out;
    }
    case AtomKind::kMaximum: {
      const Interval x = bounds_of(atom.a), y = bounds_of(atom.b);
      Interval out;
      out.low = x.low && y.low ? std::max(*x.low, *y.low) : (x.low ? x.low : y.low);
      if (x.high && y.high) out.high = std::max(*x.high, *y.high);
      return out;
    }
    case AtomKind::kMinimum: {
      const Interval x = bounds_of(atom.a), y = bounds_of(atom.b);
      Interval out;
      if (x.low && y.low) out.low = std::min(*x.low, *y.low);
      out.high = x.high && y.high ? std::min(*x.high, *y.high) : (x.high ? x.high : y.high);
      return out;
    }
  }
  return {};
}

}  // namespace

Interval bounds_of(const Dim& d) {
  const auto* terms = DimAccess::raw_terms(d);
  if (!terms) return {d.value(), d.value()};
  std::optional<int64_t> low = 0, high = 0;
  const auto add = [](std::optional<int64_t>& sum, std::optional<int64_t> part) {
    int64_t out;
    if (!sum || !part || __builtin_add_overflow(*sum, *part, &out))
      sum = std::nullopt;
    else
      sum = out;
  };
  for (const Term& term : *terms) {
    // Bounds of a product are taken only over non-negative factors.
    std::optional<int64_t> product_low = 1, product_high = 1;
    for (const AtomRef& f : term.factors) {
      const Interval b = bounds_of(*f);
      if (!b.low || *b.low < 0) {
        if (term.factors.size() == 1) {
          product_low = b.low;
          product_high = b.high;
        } else {
          product_low = product_high = std::nullopt;
        }
        break;
      }
      if (product_low) product_low = safe_multiply(*product_low, *b.low);
      product_high = product_high && b.high ? safe_multiply(*product_high, *b.high) : std::nullopt;
    }
    const auto scale = [&](std::optional<int64_t> v) {
      return v ? safe_multiply(*v, term.coefficient) : std::nullopt;
    };
    add(low, scale(term.coefficient >= 0 ? product_low : product_high));
    add(high, scale(term.coefficient >= 0 ? product_high : product_low));
  }
  return {low, high};
}

}  // namespace paddle
