#pragma once
// Terms of expressions over symbols: internal to dim.cc and dim_bounds.cc.

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tensor/dim.h"

namespace paddle {

enum class AtomKind { kSymbol, kFloorDivide, kModulo, kMaximum, kMinimum, kUnknown };

/// A factor that the polynomial form does not look into.
struct Atom {
  AtomKind kind = AtomKind::kSymbol;
  std::string key;  ///< printed form; equal keys are equal atoms
  int64_t at_least = 0;
  Dim a, b;
};
using AtomRef = std::shared_ptr<const Atom>;

struct Term {
  int64_t coefficient = 0;
  std::vector<AtomRef> factors;  ///< sorted by key; empty for the constant term
};

using Polynomial = std::map<std::string, Term>;  ///< by the key of the factors

/// A sum of terms, sorted by monomial, without zero coefficients.
struct Dim::Expr {
  std::vector<Term> terms;
  std::string text;
};

/// Access to the private members of Dim.
struct DimAccess {
  static Dim make(Polynomial polynomial);
  static Polynomial terms(const Dim& d);
  static const std::vector<Term>* raw_terms(const Dim& d) {
    return d.expr_ ? &d.expr_->terms : nullptr;
  }
  static Dim atom(AtomKind kind, std::string key, int64_t at_least, Dim a = {}, Dim b = {});
};

/// Bounds that hold for every binding of the symbols.
struct Interval {
  std::optional<int64_t> low, high;
};
Interval bounds_of(const Dim& d);

/// a / b, rounded to minus infinity; kUsage if b is 0.
int64_t floor_div(int64_t a, int64_t b);

}  // namespace paddle
