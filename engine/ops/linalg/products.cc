// Rules of products.yaml.

#include <algorithm>
#include <cctype>
#include <map>

#include "ops/core/compose.h"
#include "ops/generated/complex.h"
#include "ops/generated/creation.h"
#include "ops/generated/linalg.h"
#include "ops/generated/linalg_rules.h"
#include "ops/generated/math.h"
#include "ops/generated/reduce.h"
#include "ops/generated/shape.h"
#include "ops/linalg/adjoint.h"

namespace paddle::rules {
namespace {

Tensor scaled(const Tensor& x, double by) { return by == 1 ? x : x * by; }

/// x and y over pairs of axes, which are given for each: [x's others, y's others].
Tensor contract(const Tensor& x, const Tensor& y, const Axes& x_axes, const Axes& y_axes) {
  const auto order = [](const Tensor& t, const Axes& axes, bool last, Shape& kept, Dim& inner,
                        Dim& outer) {
    Axes perm;
    for (int64_t i = 0; i < t.ndim(); ++i)
      if (std::find(axes.begin(), axes.end(), i) == axes.end()) {
        perm.push_back(i);
        kept.push_back(t.dim(i));
        outer = outer * t.dim(i);
      }
    for (const int64_t a : axes) inner = inner * t.dim(a);
    perm.insert(last ? perm.end() : perm.begin(), axes.begin(), axes.end());
    const Tensor turned = t.ndim() > 1 ? ops::transpose(t, perm) : t;
    return ops::reshape(turned, last ? Shape{outer, inner} : Shape{inner, outer});
  };
  Shape shape;
  Dim inner_x = 1, inner_y = 1, outer_x = 1, outer_y = 1;
  const Tensor left = order(x, x_axes, true, shape, inner_x, outer_x);
  const Tensor right = order(y, y_axes, false, shape, inner_y, outer_y);
  return ops::reshape(ops::matmul(left, right), shape);
}

}  // namespace

Tensors decompose_dot(CallContext& c) {
  const Tensor &x = c.operand(0), &y = c.operand(1);
  if (x.ndim() < 1 || x.ndim() > 2 || y.ndim() != x.ndim())
    reject("dot", str("operands must be two vectors or two batches of them, not ", x.type(),
                      " and ", y.type()));
  if (x.dim(-1).equals(y.dim(-1)) == false)
    reject("dot", str("lengths differ: x is ", x.type(), ", y is ", y.type()));
  const Tensor product = x * y;
  return {ops::sum(product, Axes{-1}, product.dtype())};
}

Tensors decompose_bmm(CallContext& c) {
  const Tensor &x = c.operand(0), &y = c.operand(1);
  if (x.ndim() != 3 || y.ndim() != 3)
    reject("bmm", str("operands must be 3-D, not ", x.type(), " and ", y.type()));
  if (x.dim(0).equals(y.dim(0)) == false)
    reject("bmm", str("batches differ: x is ", x.type(), ", y is ", y.type()));
  return {ops::matmul(x, y)};
}

Tensors decompose_mm(CallContext& c) { return {ops::matmul(c.operand(0), c.operand(1))}; }

Tensors decompose_mv(CallContext& c) {
  if (c.operand(0).ndim() != 2 || c.operand(1).ndim() != 1)
    reject("mv", str("x must be a matrix and vec a vector, not ", c.operand(0).type(), " and ",
                     c.operand(1).type()));
  return {ops::matmul(c.operand(0), c.operand(1))};
}

Tensors decompose_outer(CallContext& c) {
  return {ops::reshape(c.operand(0), Shape{-1, 1}) * ops::reshape(c.operand(1), Shape{1, -1})};
}

Tensors decompose_inner(CallContext& c) {
  const Tensor &x = c.operand(0), &y = c.operand(1);
  if (x.ndim() == 0 || y.ndim() == 0) return {x * y};
  return {contract(x, y, {x.ndim() - 1}, {y.ndim() - 1})};
}

namespace {

/// beta * input + alpha * product; input may broadcast, the product not.
Tensor combined(const char* op, const Tensor& input, double beta, const Tensor& product,
                double alpha) {
  const Tensor out = scaled(input, beta) + scaled(product, alpha);
  bool same = out.ndim() == product.ndim();
  for (size_t i = 0; same && i < out.shape().size(); ++i)
    same = out.shape()[i].equals(product.shape()[i]) != false;
  if (!same)
    reject(op, str("input ", input.type(), " does not broadcast to the product ", product.type()));
  return out;
}

}  // namespace

Tensors decompose_addmm(CallContext& c) {
  const auto a = c.attrs_as<AddmmAttrs>();
  const Tensor &x = c.operand(1), &y = c.operand(2);
  if (x.ndim() != 2 || y.ndim() != 2)
    reject("addmm", str("x and y must be matrices, not ", x.type(), " and ", y.type()));
  return {combined("addmm", c.operand(0), a.beta, ops::matmul(x, y), a.alpha)};
}

Tensors decompose_baddbmm(CallContext& c) {
  const auto a = c.attrs_as<BaddbmmAttrs>();
  const Tensor product = ops::bmm(c.operand(1), c.operand(2));
  return {combined("baddbmm", c.operand(0), a.beta, product, a.alpha)};
}

Tensors decompose_cross(CallContext& c) {
  const Tensor &x = c.operand(0), &y = c.operand(1);
  int64_t axis = c.attrs_as<CrossAttrs>().axis;
  if (axis == 9) {
    axis = -1;
    for (int64_t i = 0; i < x.ndim() && axis < 0; ++i)
      if (x.dim(i).constant() == 3) axis = i;
    if (axis < 0) reject("cross", str("no axis of ", x.type(), " has size 3"));
  }
  if (axis < -x.ndim() || axis >= x.ndim() || x.dim(axis).constant() != 3)
    reject("cross", str("axis ", axis, " of ", x.type(), " must have size 3"));
  if (axis < 0) axis += x.ndim();
  bool same = x.ndim() == y.ndim();
  for (int64_t i = 0; same && i < x.ndim(); ++i) same = x.dim(i).equals(y.dim(i)) != false;
  if (!same) reject("cross", str("x is ", x.type(), ", y is ", y.type()));
  const auto at = [&](const Tensor& t, int64_t i) {
    return ops::strided_slice(t, {axis}, {Dim(i)}, {Dim(i + 1)}, {1});
  };
  const auto component = [&](int64_t i, int64_t j) {
    return at(x, i) * at(y, j) - at(x, j) * at(y, i);
  };
  return {ops::concat({component(1, 2), component(2, 0), component(0, 1)}, axis)};
}

Tensors decompose_kron(CallContext& c) {
  Tensor x = c.operand(0), y = c.operand(1);
  const int64_t rank = std::max(x.ndim(), y.ndim());
  Shape wide_x, wide_y, out;
  for (int64_t i = 0; i < rank; ++i) {
    const Dim a = i < rank - x.ndim() ? Dim(1) : x.dim(i - (rank - x.ndim()));
    const Dim b = i < rank - y.ndim() ? Dim(1) : y.dim(i - (rank - y.ndim()));
    wide_x.insert(wide_x.end(), {a, Dim(1)});
    wide_y.insert(wide_y.end(), {Dim(1), b});
    out.push_back(a * b);
  }
  return {ops::reshape(ops::reshape(x, wide_x) * ops::reshape(y, wide_y), out)};
}

Tensors decompose_multi_dot(CallContext& c) {
  const Tensors x = c.list(0);
  if (x.size() < 2) reject("multi_dot", "needs at least two tensors");
  // The cheapest order by dynamic programming over the sizes, where they are known.
  const size_t n = x.size();
  std::vector<double> sizes;
  for (size_t i = 0; i < n; ++i) {
    const bool first = i == 0, last = i + 1 == n;
    if (x[i].ndim() != 2 && !(x[i].ndim() == 1 && (first || last)))
      reject("multi_dot", str("tensor ", i, " must be a matrix, not ", x[i].type()));
    const auto size = [](const Dim& d) { return static_cast<double>(d.constant().value_or(64)); };
    if (first) sizes.push_back(x[i].ndim() == 1 ? 1 : size(x[i].dim(0)));
    sizes.push_back(x[i].ndim() == 1 ? (first ? size(x[i].dim(0)) : 1) : size(x[i].dim(1)));
  }
  std::vector<std::vector<double>> cost(n, std::vector<double>(n, 0));
  std::vector<std::vector<size_t>> cut(n, std::vector<size_t>(n, 0));
  for (size_t length = 2; length <= n; ++length)
    for (size_t i = 0; i + length <= n; ++i) {
      const size_t j = i + length - 1;
      cost[i][j] = -1;
      for (size_t k = i; k < j; ++k) {
        const double each = cost[i][k] + cost[k + 1][j] + sizes[i] * sizes[k + 1] * sizes[j + 1];
        if (cost[i][j] >= 0 && each >= cost[i][j]) continue;
        cost[i][j] = each;
        cut[i][j] = k;
      }
    }
  const auto product = [&](auto&& self, size_t i, size_t j) -> Tensor {
    if (i == j) return x[i];
    return ops::matmul(self(self, i, cut[i][j]), self(self, cut[i][j] + 1, j));
  };
  return {product(product, 0, n - 1)};
}

Tensors decompose_matrix_power(CallContext& c) {
  Tensor x = c.operand(0);
  int64_t n = c.attrs_as<MatrixPowerAttrs>().n;
  if (x.ndim() < 2) reject("matrix_power", str("x must be a matrix, not ", x.type()));
  if (x.dim(-1).equals(x.dim(-2)) == false)
    reject("matrix_power", str("x must be a square matrix, not ", x.type()));
  if (n < 0) {
    x = ops::inv(x);
    n = -n;
  }
  if (n == 0)
    return {ops::assign(ops::expand(ops::eye(x.dim(-1), x.dim(-1), x.dtype()), x.shape()))};
  Tensor result, power = x;
  for (; n > 0; n /= 2) {
    if (n % 2 == 1) result = result.defined() ? ops::matmul(result, power) : power;
    if (n > 1) power = ops::matmul(power, power);
  }
  return {result.is_same_cell(x) ? ops::assign(x) : result};
}

Tensors decompose_tensordot(CallContext& c) {
  const Tensor &x = c.operand(0), &y = c.operand(1);
  const AttrValue axes = c.attrs_as<TensordotAttrs>().axes;
  Axes left, right;
  if (axes.is_int()) {
    const int64_t n = axes.as_int();
    if (n < 0 || n > x.ndim() || n > y.ndim())
      reject("tensordot", str("axes ", n, " is out of range"));
    for (int64_t i = 0; i < n; ++i) {
      left.push_back(x.ndim() - n + i);
      right.push_back(i);
    }
  } else {
    const auto& list = axes.as_list();
    const bool nested = !list.empty() && list[0].is_list();
    left = nested ? list[0].as_ints() : axes.as_ints();
    right = nested ? (list.size() > 1 ? list[1].as_ints() : left) : left;
    // The shorter list is continued by the longer one.
    for (size_t i = left.size(); i < right.size(); ++i) left.push_back(right[i]);
    for (size_t i = right.size(); i < left.size(); ++i) right.push_back(left[i]);
  }
  for (int64_t& a : left) a = a < 0 ? a + x.ndim() : a;
  for (int64_t& a : right) a = a < 0 ? a + y.ndim() : a;
  for (const int64_t a : left)
    if (a < 0 || a >= x.ndim())
      reject("tensordot", str("axis ", a, " is out of range for ", x.type()));
  for (const int64_t a : right)
    if (a < 0 || a >= y.ndim())
      reject("tensordot", str("axis ", a, " is out of range for ", y.type()));
  return {contract(x, y, left, right)};
}

Tensors decompose_vecdot(CallContext& c) {
  const Tensor product = conjugate(c.operand(0)) * c.operand(1);
  return {ops::sum(product, Axes{c.attrs_as<VecdotAttrs>().axis}, product.dtype())};
}

// result[n, k] = Σ_ij x1[n, i] weight[k, i, j] x2[n, j] + bias[k]
Tensors decompose_bilinear(CallContext& c) {
  const Tensor &x1 = c.operand(0), &x2 = c.operand(1), &weight = c.operand(2);
  if (x1.ndim() != 2 || x2.ndim() != 2 || weight.ndim() != 3)
    reject("bilinear", str("x1 and x2 must be 2-D and weight 3-D, not ", x1.type(), ", ", x2.type(),
                           ", ", weight.type()));
  const Dim outputs = weight.dim(0);
  const Tensor turned =
      ops::reshape(ops::transpose(weight, {1, 0, 2}), {x1.dim(1), outputs * x2.dim(1)});
  const Tensor left = ops::reshape(ops::matmul(x1, turned), {x1.dim(0), outputs, x2.dim(1)});
  Tensor out = ops::sum(left * ops::unsqueeze(x2, {1}), Axes{2});
  if (c.has(3)) out = out + c.operand(3);
  return {out};
}

Tensors decompose_trace(CallContext& c) {
  const auto a = c.attrs_as<TraceAttrs>();
  const Tensor& x = c.operand(0);
  const bool boolean = is_bool(x.dtype());
  return {ops::sum(ops::diagonal(x, a.offset, a.axis1, a.axis2), Axes{-1},
                   boolean ? DType::kI64 : x.dtype())};
}

Tensors decompose_cov(CallContext& c) {
  const auto a = c.attrs_as<CovAttrs>();
  Tensor x = c.operand(0);
  if (x.ndim() < 1 || x.ndim() > 2) reject("cov", str("x must be 1-D or 2-D, not ", x.type()));
  const bool vector = x.ndim() < 2;
  if (vector)
    x = ops::reshape(x, Shape{1, -1});
  else if (!a.rowvar)
    x = ops::transpose(x, {1, 0});
  for (const size_t i : {size_t{1}, size_t{2}}) {
    if (!c.has(i)) continue;
    const char* const name = c.op().operands()[i].name;
    const Tensor& given = c.operand(i);
    if (given.ndim() != 1 || given.dim(0).equals(x.dim(1)) == false)
      reject("cov", str(name, " must have one weight for each of the ", x.dim(1),
                        " observations, not ", given.type()));
    if (!given.is_concrete()) continue;
    const Array values = given.array().on_host();
    for (int64_t k = 0; k < values.size(); ++k)
      if (values.number(k) < 0)
        reject("cov", str(name, " has the negative weight ", values.number(k)));
  }
  Tensor weights;
  if (c.has(1)) weights = ops::cast(c.operand(1), x.dtype());
  if (c.has(2)) {
    const Tensor more = ops::cast(c.operand(2), x.dtype());
    weights = weights.defined() ? weights * more : more;
  }
  const Tensor n = dim_value(x.dim(1), x.dtype());
  const Tensor total = weights.defined() ? ops::sum(weights) : n;
  const Tensor weighted = weights.defined() ? x * weights : x;
  const Tensor mean = ops::sum(weighted, Axes{1}, std::nullopt, true) / total;
  Tensor divisor = total;
  if (a.ddof) {
    divisor = total - 1.0;
    if (c.has(2)) divisor = total - ops::sum(weights * ops::cast(c.operand(2), x.dtype())) / total;
  }
  const Tensor centered = x - mean;
  const Tensor right = weights.defined() ? centered * weights : centered;
  const Tensor out = ops::matmul(centered, conjugate(right), false, true) / divisor;
  return {vector ? ops::reshape(out, Shape()) : out};
}

Tensors decompose_corrcoef(CallContext& c) {
  const Tensor cov = ops::cov(c.operand(0), c.attrs_as<CorrcoefAttrs>().rowvar);
  if (cov.ndim() == 0) return {cov / cov};
  const Tensor scale = ops::sqrt(ops::diagonal(cov));
  const Tensor out = cov / ops::unsqueeze(scale, {1}) / ops::unsqueeze(scale, {0});
  return {ops::clip(out, AttrValue(-1.0), AttrValue(1.0))};
}

// --- einsum ---

namespace {

/// A tensor with a letter for each axis; an ellipsis has become upper-case placeholders.
struct Lettered {
  Tensor tensor;
  std::string letters;
};

/// Repeated letters are a diagonal.
Lettered without_repeats(Lettered t) {
  for (size_t i = 0; i < t.letters.size(); ++i) {
    const size_t j = t.letters.find(t.letters[i], i + 1);
    if (j == std::string::npos) continue;
    t.tensor = ops::diagonal(t.tensor, 0, static_cast<int64_t>(i), static_cast<int64_t>(j));
    const char letter = t.letters[i];
    t.letters.erase(j, 1);
    t.letters.erase(i, 1);
    t.letters += letter;
    return without_repeats(std::move(t));
  }
  return t;
}

/// Sums the axes away whose letters are not in `kept`.
Lettered sum_others(Lettered t, const std::string& kept) {
  Axes axes;
  std::string left;
  for (size_t i = 0; i < t.letters.size(); ++i) {
    if (kept.find(t.letters[i]) == std::string::npos)
      axes.push_back(static_cast<int64_t>(i));
    else
      left += t.letters[i];
  }
  if (!axes.empty()) t.tensor = ops::sum(t.tensor, axes, t.tensor.dtype());
  t.letters = left;
  return t;
}

Tensor arranged(const Lettered& t, const std::string& letters) {
  Axes perm;
  for (const char letter : letters) perm.push_back(static_cast<int64_t>(t.letters.find(letter)));
  return t.letters == letters ? t.tensor : ops::transpose(t.tensor, perm);
}

bool has(const std::string& text, char letter) { return text.find(letter) != std::string::npos; }

/// The product of two over letters that neither `kept` nor another operand needs.
Lettered multiply(Lettered a, Lettered b, const std::string& kept) {
  a = sum_others(std::move(a), kept + b.letters);
  b = sum_others(std::move(b), kept + a.letters);
  std::string batch, left, right, inner;
  for (const char letter : a.letters)
    (has(b.letters, letter) ? (has(kept, letter) ? batch : inner) : left) += letter;
  for (const char letter : b.letters)
    if (!has(a.letters, letter)) right += letter;
  const auto dim_of = [](const Lettered& t, char letter) {
    return t.tensor.dim(static_cast<int64_t>(t.letters.find(letter)));
  };
  const auto product = [&](const Lettered& t, const std::string& letters) {
    Dim d = 1;
    for (const char letter : letters) d = d * dim_of(t, letter);
    return d;
  };
  // Axes of size 1 broadcast against longer ones, which a matrix product cannot do.
  const auto broadcasts = [&](const std::string& letters) {
    return std::any_of(letters.begin(), letters.end(), [&](char letter) {
      return dim_of(a, letter).equals(dim_of(b, letter)) == false;
    });
  };
  const std::string out = batch + left + right;
  if (inner.empty() || broadcasts(inner) || broadcasts(batch)) {
    const std::string all = batch + inner + left + right;
    const auto spread = [&](const Lettered& t) {
      std::string mine;
      Shape shape;
      for (const char letter : all) {
        if (has(t.letters, letter)) mine += letter;
        shape.push_back(has(t.letters, letter) ? dim_of(t, letter) : Dim(1));
      }
      return ops::reshape(arranged(t, mine), shape);
    };
    return sum_others({spread(a) * spread(b), all}, kept);
  }
  Shape shape;
  for (const char letter : batch) shape.push_back(dim_of(a, letter));
  for (const char letter : left) shape.push_back(dim_of(a, letter));
  for (const char letter : right) shape.push_back(dim_of(b, letter));
  const Tensor x = ops::reshape(arranged(a, batch + left + inner),
                                {product(a, batch), product(a, left), product(a, inner)});
  const Tensor y = ops::reshape(arranged(b, batch + inner + right),
                                {product(b, batch), product(b, inner), product(b, right)});
  return {ops::reshape(ops::matmul(x, y), shape), out};
}

/// The letters of a term, with its ellipsis expanded to the axes that it covers.
std::string expand_ellipsis(const std::string& term, int64_t rank, const std::string& ellipsis) {
  const auto dots = term.find("...");
  if (dots == std::string::npos) return term;
  const int64_t count = rank < 0 ? static_cast<int64_t>(ellipsis.size())
                                 : rank - static_cast<int64_t>(term.size()) + 3;
  if (count < 0 || count > static_cast<int64_t>(ellipsis.size()))
    reject("einsum", str("the term '", term, "' does not fit a tensor of rank ", rank));
  return term.substr(0, dots) + ellipsis.substr(ellipsis.size() - static_cast<size_t>(count)) +
         term.substr(dots + 3);
}

}  // namespace

Tensors decompose_einsum(CallContext& c) {
  const auto a = c.attrs_as<EinsumAttrs>();
  const Tensors operands = c.list(0);
  std::string equation;
  for (const char ch : a.equation)
    if (ch != ' ') equation += ch;
  const auto arrow = equation.find("->");
  const auto terms = split(equation.substr(0, arrow), ',');
  if (terms.size() != operands.size())
    reject("einsum", str("'", a.equation, "' has ", terms.size(), " terms for ", operands.size(),
                         " tensors"));
  // Control characters name the axes of an ellipsis.
  int64_t widest = 0;
  for (size_t i = 0; i < terms.size(); ++i)
    if (terms[i].find("...") != std::string::npos)
      widest = std::max(widest, operands[i].ndim() - static_cast<int64_t>(terms[i].size()) + 3);
  std::string ellipsis;
  for (int64_t i = 0; i < widest; ++i) ellipsis += static_cast<char>(1 + i);

  std::vector<Lettered> inputs;
  std::map<char, int> seen;
  for (size_t i = 0; i < terms.size(); ++i) {
    const std::string letters = expand_ellipsis(terms[i], operands[i].ndim(), ellipsis);
    if (static_cast<int64_t>(letters.size()) != operands[i].ndim())
      reject("einsum", str("the term '", terms[i], "' does not fit ", operands[i].type()));
    for (const char letter : letters) {
      if (!std::isalpha(static_cast<unsigned char>(letter)) && !has(ellipsis, letter))
        reject("einsum",
               str("'", std::string(1, letter), "' in '", a.equation, "' is not a letter"));
      ++seen[letter];
    }
    inputs.push_back(without_repeats({operands[i], letters}));
  }
  std::string out;
  if (arrow == std::string::npos) {
    // Implicit output: the ellipsis, then the letters that occur once, in alphabetical order.
    out = ellipsis;
    for (const auto& [letter, count] : seen)
      if (count == 1 && !has(ellipsis, letter)) out += letter;
  } else {
    out = expand_ellipsis(equation.substr(arrow + 2), -1, ellipsis);
  }
  for (const char letter : out)
    if (!seen.count(letter) || std::count(out.begin(), out.end(), letter) > 1)
      reject("einsum",
             str("the result of '", a.equation, "' names an axis twice, or one that no term has"));

  Lettered result = inputs[0];
  for (size_t i = 1; i < inputs.size(); ++i) {
    std::string kept = out;
    for (size_t j = i + 1; j < inputs.size(); ++j) kept += inputs[j].letters;
    result = multiply(result, inputs[i], kept);
  }
  result = sum_others(std::move(result), out);
  const Tensor answer = arranged(result, out);
  return {answer.is_same_cell(operands[0]) ? ops::assign(answer) : answer};
}

}  // namespace paddle::rules
