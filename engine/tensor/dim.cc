#include <algorithm>
#include <atomic>
#include <limits>

#include "base/error.h"
#include "tensor/dim_expression.h"

namespace paddle {
namespace {

int64_t floor_mod(int64_t a, int64_t b) {
  if (b == 0) fail(ErrorCode::kUsage, "a dim modulo zero");
  if (b == -1) return 0;
  const int64_t r = a % b;
  return (r != 0 && ((r < 0) != (b < 0))) ? r + b : r;
}

}  // namespace

int64_t floor_div(int64_t a, int64_t b) {
  if (b == 0) fail(ErrorCode::kUsage, "division of a dim by zero");
  if (b == -1) return checked_multiply(a, -1);
  const int64_t q = a / b;
  return (a % b != 0 && ((a < 0) != (b < 0))) ? q - 1 : q;
}

int64_t checked_add(int64_t a, int64_t b) {
  int64_t out;
  if (__builtin_add_overflow(a, b, &out))
    fail(ErrorCode::kUsage, "size overflows 64 bits: ", a, " + ", b);
  return out;
}

int64_t checked_multiply(int64_t a, int64_t b) {
  int64_t out;
  if (__builtin_mul_overflow(a, b, &out))
    fail(ErrorCode::kUsage, "size overflows 64 bits: ", a, " * ", b);
  return out;
}

// ---- expressions --------------------------------------------------------------------------------

namespace {

std::string monomial_key(const std::vector<AtomRef>& factors) {
  std::string key;
  for (const AtomRef& f : factors) key += f->key + '*';
  return key;
}

void add_term(Polynomial& sum, Term term) {
  if (term.coefficient == 0) return;
  const std::string key = monomial_key(term.factors);
  auto [it, inserted] = sum.try_emplace(key, term);
  if (inserted) return;
  it->second.coefficient = checked_add(it->second.coefficient, term.coefficient);
  if (it->second.coefficient == 0) sum.erase(it);
}

std::string polynomial_text(const std::vector<Term>& terms) {
  std::string out;
  // The constant has the empty key and sorts first; print it last.
  const auto print = [&](const Term& term) {
    int64_t c = term.coefficient;
    if (!out.empty()) {
      out += c < 0 ? " - " : " + ";
    } else if (c < 0) {
      out += "-";
    }
    const uint64_t magnitude = c < 0 ? 0 - static_cast<uint64_t>(c) : static_cast<uint64_t>(c);
    if (magnitude != 1 || term.factors.empty()) {
      out += std::to_string(magnitude);
      if (!term.factors.empty()) out += '*';
    }
    for (size_t i = 0; i < term.factors.size(); ++i) {
      if (i) out += '*';
      out += term.factors[i]->key;
    }
  };
  for (const Term& term : terms)
    if (!term.factors.empty()) print(term);
  for (const Term& term : terms)
    if (term.factors.empty()) print(term);
  return out;
}

}  // namespace

Dim DimAccess::make(Polynomial polynomial) {
  if (polynomial.empty()) return Dim(0);
  if (polynomial.size() == 1 && polynomial.begin()->second.factors.empty())
    return Dim(polynomial.begin()->second.coefficient);
  auto expr = std::make_shared<Dim::Expr>();
  if (polynomial.size() > 1000) fail(ErrorCode::kUsage, "a dim's expression grows too large");
  for (auto& [key, term] : polynomial) expr->terms.push_back(std::move(term));
  expr->text = polynomial_text(expr->terms);
  if (expr->text.size() > (1 << 16)) fail(ErrorCode::kUsage, "a dim's expression grows too large");
  return Dim(std::shared_ptr<const Dim::Expr>(std::move(expr)));
}

Polynomial DimAccess::terms(const Dim& d) {
  Polynomial out;
  if (d.expr_ == nullptr) {
    add_term(out, Term{d.value_, {}});
  } else {
    for (const Term& t : d.expr_->terms) add_term(out, t);
  }
  return out;
}

Dim DimAccess::atom(AtomKind kind, std::string key, int64_t at_least, Dim a, Dim b) {
  auto node = std::make_shared<Atom>();
  node->kind = kind;
  node->key = std::move(key);
  node->at_least = at_least;
  node->a = std::move(a);
  node->b = std::move(b);
  Polynomial p;
  add_term(p, Term{1, {std::move(node)}});
  return make(std::move(p));
}

namespace {

std::string grouped(const Dim& d) {
  const std::string t = d.text();
  return t.find(' ') == std::string::npos ? t : "(" + t + ")";
}

const Atom* single_atom(const Dim& d) {
  const auto* terms = DimAccess::raw_terms(d);
  if (!terms || terms->size() != 1) return nullptr;
  const Term& t = terms->front();
  return t.coefficient == 1 && t.factors.size() == 1 ? t.factors[0].get() : nullptr;
}

}  // namespace

// ---- Dim ----------------------------------------------------------------------------------------

Dim Dim::symbol(std::string name, int64_t at_least) {
  return DimAccess::atom(AtomKind::kSymbol, std::move(name), at_least);
}

Dim Dim::unknown() {
  static std::atomic<int64_t> counter{0};
  return DimAccess::atom(AtomKind::kUnknown, "?" + std::to_string(counter++), 0);
}

bool Dim::is_unknown() const {
  if (!expr_) return false;
  for (const Term& t : expr_->terms)
    for (const AtomRef& f : t.factors)
      if (f->kind == AtomKind::kUnknown || f->a.is_unknown() || f->b.is_unknown()) return true;
  return false;
}

int64_t Dim::value() const {
  if (expr_) fail(ErrorCode::kUsage, "the dim '", expr_->text, "' has no known value here");
  return value_;
}

std::optional<int64_t> Dim::constant() const {
  return expr_ ? std::nullopt : std::optional<int64_t>(value_);
}

bool Dim::is_symbol() const {
  const Atom* atom = single_atom(*this);
  return atom && atom->kind == AtomKind::kSymbol;
}

bool Dim::same(const Dim& other) const {
  if (!expr_ || !other.expr_) return !expr_ && !other.expr_ && value_ == other.value_;
  return expr_ == other.expr_ || expr_->text == other.expr_->text;
}

std::optional<bool> Dim::equals(const Dim& other) const {
  if (same(other)) return true;
  const Interval b = bounds_of(*this - other);
  if ((b.low && *b.low > 0) || (b.high && *b.high < 0)) return false;
  return std::nullopt;
}

std::optional<bool> Dim::less(const Dim& other) const {
  const Interval b = bounds_of(other - *this);
  if (b.low && *b.low > 0) return true;
  if (b.high && *b.high <= 0) return false;
  return std::nullopt;
}

std::optional<int64_t> Dim::lower_bound() const { return bounds_of(*this).low; }
std::optional<int64_t> Dim::upper_bound() const { return bounds_of(*this).high; }

std::optional<int64_t> Dim::evaluate(const SymbolLookup& lookup) const {
  if (!expr_) return value_;
  int64_t sum = 0;
  for (const Term& term : expr_->terms) {
    int64_t product = term.coefficient;
    for (const AtomRef& f : term.factors) {
      std::optional<int64_t> v;
      if (f->kind == AtomKind::kSymbol || f->kind == AtomKind::kUnknown) {
        v = lookup(f->key);
      } else {
        const auto a = f->a.evaluate(lookup), b = f->b.evaluate(lookup);
        if (!a || !b) return std::nullopt;
        switch (f->kind) {
          case AtomKind::kFloorDivide:
            v = floor_div(*a, *b);
            break;
          case AtomKind::kModulo:
            v = floor_mod(*a, *b);
            break;
          case AtomKind::kMaximum:
            v = std::max(*a, *b);
            break;
          default:
            v = std::min(*a, *b);
            break;
        }
      }
      if (!v) return std::nullopt;
      product = checked_multiply(product, *v);
    }
    sum = checked_add(sum, product);
  }
  return sum;
}

Dim Dim::substitute(const std::function<std::optional<Dim>(const std::string&)>& replace) const {
  if (!expr_) return *this;
  Dim sum = 0;
  for (const Term& term : expr_->terms) {
    Dim product = term.coefficient;
    for (const AtomRef& f : term.factors) {
      Dim factor;
      if (f->kind == AtomKind::kSymbol || f->kind == AtomKind::kUnknown) {
        const auto replaced = replace(f->key);
        factor = replaced ? *replaced : DimAccess::atom(f->kind, f->key, f->at_least);
      } else {
        const Dim a = f->a.substitute(replace), b = f->b.substitute(replace);
        switch (f->kind) {
          case AtomKind::kFloorDivide:
            factor = floor_divide(a, b);
            break;
          case AtomKind::kModulo:
            factor = modulo(a, b);
            break;
          case AtomKind::kMaximum:
            factor = maximum(a, b);
            break;
          default:
            factor = minimum(a, b);
            break;
        }
      }
      product = product * factor;
    }
    sum = sum + product;
  }
  return sum;
}

void Dim::collect_symbols(std::vector<std::string>& names) const {
  if (!expr_) return;
  for (const Term& term : expr_->terms)
    for (const AtomRef& f : term.factors) {
      if (f->kind == AtomKind::kSymbol || f->kind == AtomKind::kUnknown) {
        if (std::find(names.begin(), names.end(), f->key) == names.end()) names.push_back(f->key);
      } else {
        f->a.collect_symbols(names);
        f->b.collect_symbols(names);
      }
    }
}

std::string Dim::text() const { return expr_ ? expr_->text : std::to_string(value_); }

Dim operator+(const Dim& a, const Dim& b) {
  if (!a.expr_ && !b.expr_) return checked_add(a.value_, b.value_);
  Polynomial sum = DimAccess::terms(a);
  for (auto& [key, term] : DimAccess::terms(b)) add_term(sum, term);
  return DimAccess::make(std::move(sum));
}

Dim operator-(const Dim& a, const Dim& b) { return a + Dim(-1) * b; }

Dim operator*(const Dim& a, const Dim& b) {
  if (!a.expr_ && !b.expr_) return checked_multiply(a.value_, b.value_);
  Polynomial product;
  for (auto& [ka, ta] : DimAccess::terms(a))
    for (auto& [kb, tb] : DimAccess::terms(b)) {
      Term term{checked_multiply(ta.coefficient, tb.coefficient), ta.factors};
      term.factors.insert(term.factors.end(), tb.factors.begin(), tb.factors.end());
      std::sort(term.factors.begin(), term.factors.end(),
                [](const AtomRef& x, const AtomRef& y) { return x->key < y->key; });
      add_term(product, std::move(term));
    }
  return DimAccess::make(std::move(product));
}

Dim floor_divide(const Dim& a, const Dim& b) {
  if (a.is_constant() && b.is_constant()) return floor_div(a.value(), b.value());
  if (b.is_constant() && b.value() == 1) return a;
  if (b.is_constant() && b.value() == 0) fail(ErrorCode::kUsage, "division of a dim by zero");
  if (a.same(b)) return 1;
  // Terms that the divisor divides leave the quotient: (4*n + k) // 2 is 2*n + k // 2.
  const Polynomial terms = DimAccess::terms(a);
  const Polynomial divisor = DimAccess::terms(b);
  if (divisor.size() == 1 && divisor.begin()->second.coefficient != 0) {
    const Term& d = divisor.begin()->second;
    Polynomial quotient, rest;
    for (const auto& [key, term] : terms) {
      std::vector<AtomRef> left = term.factors;
      bool divides = term.coefficient % d.coefficient == 0;
      for (const AtomRef& f : d.factors) {
        const auto it = std::find_if(left.begin(), left.end(),
                                     [&](const AtomRef& x) { return x->key == f->key; });
        if (it == left.end()) {
          divides = false;
          break;
        }
        left.erase(it);
      }
      if (divides)
        add_term(quotient, Term{term.coefficient / d.coefficient, left});
      else
        add_term(rest, term);
    }
    if (!quotient.empty())
      return DimAccess::make(std::move(quotient)) +
             floor_divide(DimAccess::make(std::move(rest)), b);
    // 0 if 0 <= a < b.
    const Interval bounds = bounds_of(a);
    if (b.is_constant() && bounds.low && bounds.high && *bounds.low >= 0 &&
        *bounds.high < b.value())
      return 0;
    // (x // p) // q is x // (p * q) for positive constants.
    const Atom* atom = single_atom(a);
    if (atom && atom->kind == AtomKind::kFloorDivide && b.is_constant() && b.value() > 0 &&
        atom->b.is_constant() && atom->b.value() > 0)
      return floor_divide(atom->a, atom->b * b);
  }
  if (a.is_constant() && a.value() == 0) return 0;
  return DimAccess::atom(AtomKind::kFloorDivide, "(" + grouped(a) + " // " + grouped(b) + ")", 0, a,
                         b);
}

Dim modulo(const Dim& a, const Dim& b) {
  if (a.is_constant() && b.is_constant()) return floor_mod(a.value(), b.value());
  const Dim quotient = floor_divide(a, b);
  const Dim rest = a - quotient * b;
  if (rest.is_constant()) return rest;
  return DimAccess::atom(AtomKind::kModulo, "(" + grouped(a) + " % " + grouped(b) + ")", 0, a, b);
}

Dim maximum(const Dim& a, const Dim& b) {
  const auto less = a.less(b);
  if (less) return *less ? b : a;
  const auto greater = b.less(a);
  if (greater) return *greater ? a : b;
  const bool ordered = a.text() < b.text();
  const Dim &x = ordered ? a : b, &y = ordered ? b : a;
  return DimAccess::atom(AtomKind::kMaximum, "max(" + x.text() + ", " + y.text() + ")", 0, x, y);
}

Dim minimum(const Dim& a, const Dim& b) {
  const auto less = a.less(b);
  if (less) return *less ? a : b;
  const auto greater = b.less(a);
  if (greater) return *greater ? b : a;
  const bool ordered = a.text() < b.text();
  const Dim &x = ordered ? a : b, &y = ordered ? b : a;
  return DimAccess::atom(AtomKind::kMinimum, "min(" + x.text() + ", " + y.text() + ")", 0, x, y);
}

Dim ceil_divide(const Dim& a, const Dim& b) { return floor_divide(a + b - 1, b); }

// ---- shapes -------------------------------------------------------------------------------------

Dim element_count(std::span<const Dim> shape) {
  Dim count = 1;
  for (const Dim& d : shape) count = count * d;
  return count;
}

bool is_constant(const Shape& shape) {
  return std::all_of(shape.begin(), shape.end(), [](const Dim& d) { return d.is_constant(); });
}

bool same_shape(const Shape& a, const Shape& b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(),
                                            [](const Dim& x, const Dim& y) { return x.same(y); });
}

Dims concrete(const Shape& shape) {
  Dims dims;
  dims.reserve(shape.size());
  for (const Dim& d : shape) dims.push_back(d.value());
  return dims;
}

Shape to_shape(std::span<const int64_t> dims) { return Shape(dims.begin(), dims.end()); }

std::string text(const Shape& shape) {
  std::string out = "[";
  for (size_t i = 0; i < shape.size(); ++i) {
    if (i) out += ", ";
    out += shape[i].text();
  }
  return out + "]";
}

int64_t element_count(std::span<const int64_t> dims) {
  for (const int64_t d : dims)
    if (d == 0) return 0;
  int64_t count = 1;
  for (const int64_t d : dims) count = checked_multiply(count, d);
  if (count > (int64_t{1} << 56))
    fail(ErrorCode::kUsage, "a tensor of ", count, " elements is too large");
  return count;
}

}  // namespace paddle
