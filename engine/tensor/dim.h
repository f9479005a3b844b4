#pragma once
// A dimension of a shape: a constant, or an expression over symbols. Input symbols (`batch`) are
// bound at each call; run-time symbols are made by operations such as `nonzero`. Expressions are
// kept in a normal form, so that equal ones compare equal.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace paddle {

/// Values of symbols, looked up by name; nullopt for one that is not bound.
using SymbolLookup = std::function<std::optional<int64_t>(const std::string&)>;

struct DimAccess;

class Dim {
 public:
  Dim() = default;
  Dim(int64_t value) : value_(value) {}  // NOLINT: a number is a dim
  /// A symbol; its value is an integer of at least `at_least` when bound.
  static Dim symbol(std::string name, int64_t at_least = 0);
  /// A dim of which nothing is known. It equals nothing, itself included.
  static Dim unknown();

  bool is_constant() const { return expr_ == nullptr; }
  bool is_unknown() const;
  /// The constant; throws (naming the dim) if it is none.
  int64_t value() const;
  std::optional<int64_t> constant() const;
  /// True for a bare symbol, whose name is `text()`.
  bool is_symbol() const;

  /// Proved equal (the normal forms agree).
  bool same(const Dim& other) const;
  /// Decided comparison, or nullopt when it depends on values of symbols.
  std::optional<bool> equals(const Dim& other) const;
  std::optional<bool> less(const Dim& other) const;
  /// Bounds that hold for every binding; nullopt where there is none.
  std::optional<int64_t> lower_bound() const;
  std::optional<int64_t> upper_bound() const;

  std::optional<int64_t> evaluate(const SymbolLookup& lookup) const;
  /// With symbols replaced for which `replace` returns a dim.
  Dim substitute(const std::function<std::optional<Dim>(const std::string&)>& replace) const;
  void collect_symbols(std::vector<std::string>& names) const;
  std::string text() const;  ///< "4*batch + 1"; `parse` reads it back
  /// Parses a constant, a symbol or an expression of + - * // % max(…) min(…).
  static Dim parse(std::string_view text);

  friend Dim operator+(const Dim& a, const Dim& b);
  friend Dim operator-(const Dim& a, const Dim& b);
  friend Dim operator*(const Dim& a, const Dim& b);
  friend Dim floor_divide(const Dim& a, const Dim& b);  ///< rounds to minus infinity
  friend Dim modulo(const Dim& a, const Dim& b);        ///< sign of the divisor
  friend Dim maximum(const Dim& a, const Dim& b);
  friend Dim minimum(const Dim& a, const Dim& b);

  struct Expr;  ///< in dim_expression.h
 private:
  friend struct DimAccess;
  explicit Dim(std::shared_ptr<const Expr> expr) : expr_(std::move(expr)) {}
  int64_t value_ = 0;
  std::shared_ptr<const Expr> expr_;
};

Dim floor_divide(const Dim& a, const Dim& b);
Dim modulo(const Dim& a, const Dim& b);
Dim maximum(const Dim& a, const Dim& b);
Dim minimum(const Dim& a, const Dim& b);
Dim ceil_divide(const Dim& a, const Dim& b);

using Shape = std::vector<Dim>;     ///< possibly symbolic
using Dims = std::vector<int64_t>;  ///< concrete

Dim element_count(std::span<const Dim> shape);
bool is_constant(const Shape& shape);
/// All dims proved equal.
bool same_shape(const Shape& a, const Shape& b);
/// The concrete dims; throws if one is symbolic.
Dims concrete(const Shape& shape);
Shape to_shape(std::span<const int64_t> dims);
std::string text(const Shape& shape);  ///< "[batch, 3]"

/// Product of dims; kUsage if it exceeds 2^56, so that the bytes of any type can be counted.
int64_t element_count(std::span<const int64_t> dims);
/// a + b and a * b, or kUsage if 64 bits do not hold them.
int64_t checked_add(int64_t a, int64_t b);
int64_t checked_multiply(int64_t a, int64_t b);

}  // namespace paddle
