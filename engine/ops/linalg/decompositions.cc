// Rules of decompositions.yaml.

#include <algorithm>
#include <cmath>

#include "ops/core/call.h"
#include "ops/core/compose.h"
#include "ops/generated/complex.h"
#include "ops/generated/creation.h"
#include "ops/generated/indexing.h"
#include "ops/generated/linalg.h"
#include "ops/generated/linalg_rules.h"
#include "ops/generated/math.h"
#include "ops/generated/random.h"
#include "ops/generated/reduce.h"
#include "ops/generated/shape.h"
#include "ops/generated/spectrum.h"
#include "ops/linalg/adjoint.h"
#include "tensor/complex.h"

namespace paddle::rules {
namespace {

void check_matrices(InferContext& c, size_t operand) {
  c.check(c.rank(operand) >= 2, "expected matrices, found ", c.type(operand));
}

void check_square_matrices(InferContext& c) {
  check_matrices(c, 0);
  const Shape& x = c.shape(0);
  c.require_equal(x[x.size() - 2], x.back(), str("expected square matrices: ", c.type(0)));
}

void require_matrices(std::string_view op, const Tensor& x, bool square) {
  if (x.ndim() < 2) reject(op, "expected matrices, found ", x.type());
  if (square && x.dim(-1).equals(x.dim(-2)) == false)
    reject(op, "expected square matrices, found ", x.type());
}

Shape with(Shape batch, const std::vector<Dim>& more) {
  batch.insert(batch.end(), more.begin(), more.end());
  return batch;
}

Tensor identity_like(const Tensor& x) { return ops::eye(x.dim(-1), x.dim(-1), x.dtype()); }
Tensor rows(const Tensor& x, const Dim& first, const Dim& last) {
  return slice_axis(x, x.ndim() - 2, first, last);
}
Tensor columns(const Tensor& x, const Dim& first, const Dim& last) {
  return slice_axis(x, x.ndim() - 1, first, last);
}
Tensor product(const Tensor& x, const Tensor& y) { return ops::matmul(x, y); }

/// The diagonal of matrices as matrices that are 0 elsewhere.
Tensor only_diagonal(const Tensor& x) { return x * identity_like(x); }

Tensors svd_of(const Tensor& x) { return call(get_op("singular_values"), {x}, {}); }

/// The singular values of x; the sizes of its eigenvalues if it is Hermitian.
Tensor singular_values_of(const Tensor& x, bool hermitian) {
  return hermitian ? ops::abs(ops::eigvalsh(x)) : ops::svdvals(x);
}

/// The spacing of numbers above 1.
double epsilon_of(DType d) { return real_type(d) == DType::kF32 ? 0x1p-23 : 0x1p-52; }

const std::vector<int64_t> kLast = {-1};

}  // namespace

// --- QR ---

void infer_qr_factors(InferContext& c) {
  check_matrices(c, 0);
  const Shape& x = c.shape(0);
  const Dim m = x[x.size() - 2], n = x.back();
  const Dim width = c.attrs_as<QrFactorsAttrs>().complete ? m : minimum(m, n);
  c.result(c.dtype(0), with(batch_of(x), {m, width}));
  c.result(c.dtype(0), with(batch_of(x), {width, n}));
}

// Of at least as many rows as columns: Walter and Lehmann, "Algorithmic differentiation of linear
// algebra functions" (2010).
Tensors vjp_qr_factors(VjpContext& c) {
  const Tensor &q = c.plain_result(0), &r = c.plain_result(1);
  if (r.dim(-1).equals(r.dim(-2)) != true)
    fail(ErrorCode::kUsage, "qr: there is no gradient of more columns of Q than x has");
  Tensor inner;
  if (c.cotangent(1).defined()) inner = product(c.cotangent(1), adjoint(r));
  if (c.cotangent(0).defined()) {
    const Tensor part = product(adjoint(q), c.cotangent(0));
    inner = inner.defined() ? inner - part : -part;
  }
  // The strict upper triangle is mirrored, the diagonal is made real.
  const Tensor upper = ops::triu(inner, 1), diagonal = only_diagonal(inner);
  const Tensor middle = upper + adjoint(upper) + (diagonal + conjugate(diagonal)) * 0.5;
  Tensor g = product(q, middle);
  if (c.cotangent(0).defined()) g = g + c.cotangent(0);
  // g R^-H
  return {adjoint(ops::triangular_solve(r, adjoint(g), true))};
}

Tensors decompose_qr(CallContext& c) {
  const auto a = c.attrs_as<QrAttrs>();
  const Tensor& x = c.operand(0);
  require_matrices("qr", x, false);
  const Dim m = x.dim(-2), n = x.dim(-1);
  Tensors out;
  if (n.less(m + 1) == true) {
    out = ops::qr_factors(x, a.mode == "complete");
  } else {  // the first columns define Q
    out = ops::qr_factors(columns(x, 0, m), false);
    out[1] = ops::concat({out[1], product(adjoint(out[0]), columns(x, m, n))}, x.ndim() - 1);
  }
  return a.mode == "r" ? Tensors{out[1]} : out;
}

// --- LU ---

void infer_lu_factors(InferContext& c) {
  check_matrices(c, 0);
  const Shape& x = c.shape(0);
  c.result(c.dtype(0), x);
  c.result(DType::kI32, with(batch_of(x), {minimum(x[x.size() - 2], x.back())}));
  c.result(DType::kI32, batch_of(x));
}

void infer_lu_permutation(InferContext& c) {
  c.check(c.rank(0) >= 1, "pivots must have at least one dimension, not be ", c.type(0));
  Shape out = c.shape(0);
  out.back() = c.attrs_as<LuPermutationAttrs>().rows;
  c.result(DType::kI64, out);
}

namespace {

/// The permutation P of x = P @ L @ U.
Tensor permutation(const Tensor& pivots, const Dim& rows, DType dtype) {
  const Tensor order = ops::lu_permutation(ops::cast(pivots, DType::kI32), rows);
  const Tensor row = ops::arange(AttrValue(0), AttrValue(rows), AttrValue(1), DType::kI64);
  return ops::cast(ops::equal(ops::unsqueeze(row, {1}), ops::unsqueeze(order, {-2})), dtype);
}

Tensor lower_of(const Tensor& packed) {
  const Dim m = packed.dim(-2), k = minimum(m, packed.dim(-1));
  return columns(ops::tril(packed, -1), 0, k) + ops::eye(m, k, packed.dtype());
}
Tensor upper_of(const Tensor& packed) {
  return rows(ops::triu(packed), 0, minimum(packed.dim(-2), packed.dim(-1)));
}

/// g U^-H
Tensor divided_by_upper(const Tensor& g, const Tensor& upper) {
  return adjoint(ops::triangular_solve(upper, adjoint(g), true));
}
/// L^-H g
Tensor divided_by_lower(const Tensor& lower, const Tensor& g) {
  return ops::triangular_solve(adjoint(lower), g, true, false, true);
}

}  // namespace

Tensors vjp_lu_factors(VjpContext& c) {
  const Tensor &packed = c.plain_result(0), &pivots = c.plain_result(1);
  if (!c.cotangent(0).defined()) return {Tensor()};
  const Dim m = packed.dim(-2), n = packed.dim(-1), k = minimum(m, n);
  const Tensor& g = c.cotangent(0);
  const Tensor top = rows(columns(packed, 0, k), 0, k), g_top = rows(columns(g, 0, k), 0, k);
  const Tensor l = ops::tril(top, -1) + identity_like(top), u = ops::triu(top);
  Tensor low = product(adjoint(l), ops::tril(g_top, -1));
  Tensor high = product(ops::triu(g_top), adjoint(u));
  const bool wide = m.less(n) == true, tall = n.less(m) == true;
  if (!wide && !tall && m.equals(n) != true)
    fail(ErrorCode::kUsage, "lu: whether matrices are wide or tall depends on the input");
  Tensor rest;
  if (wide) {
    const Tensor g_rest = columns(g, k, n);
    low = low - product(g_rest, adjoint(columns(packed, k, n)));
    rest = divided_by_lower(l, g_rest);
  }
  if (tall) {
    const Tensor g_rest = rows(g, k, m);
    high = high - product(adjoint(rows(packed, k, m)), g_rest);
    rest = divided_by_upper(g_rest, u);
  }
  const Tensor middle = ops::tril(low, -1) + ops::triu(high);
  Tensor out = divided_by_upper(divided_by_lower(l, middle), u);
  if (rest.defined()) out = ops::concat({out, rest}, wide ? g.ndim() - 1 : g.ndim() - 2);
  return {product(permutation(pivots, m, packed.dtype()), out)};
}

Tensors decompose_lu(CallContext& c) {
  const auto a = c.attrs_as<LuAttrs>();
  if (!a.pivot) reject("lu", "pivot=false is not supported");
  Tensors out = ops::lu_factors(c.operand(0));
  if (!a.get_infos) out.pop_back();
  return out;
}

Tensors decompose_lu_unpack(CallContext& c) {
  const Tensor& x = c.operand(0);
  require_matrices("lu_unpack", x, false);
  return {permutation(c.operand(1), x.dim(-2), x.dtype()), lower_of(x), upper_of(x)};
}

Tensors decompose_lu_solve(CallContext& c) {
  const std::string trans = c.attrs_as<LuSolveAttrs>().trans;
  const Tensor &b = c.operand(0), &lu = c.operand(1);
  require_matrices("lu_solve", lu, true);
  require_matrices("lu_solve", b, false);
  const Tensor p = permutation(c.operand(2), lu.dim(-1), lu.dtype());
  if (trans == "N") {
    const Tensor y = ops::triangular_solve(lu, product(transposed(p), b), false, false, true);
    return {ops::triangular_solve(lu, y, true)};
  }
  const Tensor factors = trans == "C" ? conjugate(lu) : lu;
  const Tensor y = ops::triangular_solve(factors, b, true, true);
  return {product(p, ops::triangular_solve(factors, y, false, true, true))};
}

// --- eigenvalues ---

void infer_eigh_factors(InferContext& c) {
  check_square_matrices(c);
  const Shape& x = c.shape(0);
  c.result(real_type(c.dtype(0)), with(batch_of(x), {x.back()}));
  c.result(c.dtype(0), x);
}

namespace {

/// to[j] - from[i], with 1 on the diagonal.
Tensor gaps(const Tensor& values) {
  const Tensor gap = ops::unsqueeze(values, {-2}) - ops::unsqueeze(values, {-1});
  return gap + identity_like(gap);
}

Tensor as_diagonal(const Tensor& values, const Tensor& like) {
  return ops::unsqueeze(values, {-2}) * identity_like(like);
}

}  // namespace

// The gradient is that of a Hermitian matrix: each of two mirrored elements has half of it.
Tensors vjp_eigh_factors(VjpContext& c) {
  const Tensor &w = c.plain_result(0), &v = c.plain_result(1);
  Tensor middle;
  if (c.cotangent(1).defined()) {
    const Tensor inner = product(adjoint(v), c.cotangent(1));
    middle = (inner - only_diagonal(inner)) / gaps(w);
  }
  if (c.cotangent(0).defined()) {
    const Tensor diagonal = as_diagonal(c.cotangent(0), v);
    middle = middle.defined() ? middle + diagonal : diagonal;
  }
  const Tensor g = product(product(v, middle), adjoint(v));
  return {(g + adjoint(g)) * 0.5};
}

Tensors decompose_eigh(CallContext& c) {
  return ops::eigh_factors(c.operand(0), c.attrs_as<EighAttrs>().UPLO == "U");
}

Tensors decompose_eigvalsh(CallContext& c) {
  return {ops::eigh_factors(c.operand(0), c.attrs_as<EigvalshAttrs>().UPLO == "U")[0]};
}

void infer_eig_factors(InferContext& c) {
  check_square_matrices(c);
  const Shape& x = c.shape(0);
  c.result(complex_type(c.dtype(0)), with(batch_of(x), {x.back()}));
  c.result(complex_type(c.dtype(0)), x);
}

// Giles, "An extended collection of matrix derivative results" (2008), with vectors of length 1.
Tensors vjp_eig_factors(VjpContext& c) {
  const Tensor &w = c.plain_result(0), &v = c.plain_result(1);
  const Tensor back = adjoint(v);
  Tensor middle;
  if (c.cotangent(1).defined()) {
    const Tensor inner = product(back, c.cotangent(1));
    const Tensor lengths = ops::unsqueeze(ops::real(ops::diagonal(inner, 0, -2, -1)), {-2});
    const Tensor turned = inner - product(back, v) * lengths;
    middle = (turned - only_diagonal(turned)) / conjugate(gaps(w));
  }
  if (c.cotangent(0).defined()) {
    const Tensor diagonal = as_diagonal(c.cotangent(0), v);
    middle = middle.defined() ? middle + diagonal : diagonal;
  }
  const Tensor g = ops::solve(back, product(middle, back));
  return {is_complex(c.plain_operand(0).dtype()) ? g : ops::real(g)};
}

Tensors decompose_eig(CallContext& c) { return ops::eig_factors(c.operand(0)); }

Tensors decompose_eigvals(CallContext& c) { return {ops::eig_factors(c.operand(0))[0]}; }

// --- singular values ---

Tensors decompose_svd(CallContext& c) {
  const Tensor& x = c.operand(0);
  require_matrices("svd", x, false);
  Tensors found = svd_of(x);
  Tensor u = found[1], vh = found[2];
  if (c.attrs_as<SvdAttrs>().full_matrices) {
    // Columns that complete the basis.
    const auto completed = [&](const Tensor& basis) {
      const Dim m = basis.dim(-2), k = basis.dim(-1);
      if (m.equals(k) == true) return basis;
      const Tensor all = ops::qr_factors(ops::detach(basis), true)[0];
      return ops::concat({basis, columns(all, k, m)}, basis.ndim() - 1);
    };
    u = completed(u);
    vh = adjoint(completed(adjoint(vh)));
  }
  return {u, found[0], vh};
}

void infer_pseudo_inverse(InferContext& c) {
  check_matrices(c, 0);
  const Shape& x = c.shape(0);
  c.result(c.dtype(0), with(batch_of(x), {x.back(), x[x.size() - 2]}));
}

Tensors decompose_pinv(CallContext& c) {
  const auto a = c.attrs_as<PinvAttrs>();
  const Tensor& x = c.operand(0);
  require_matrices("pinv", x, a.hermitian);
  return {ops::pseudo_inverse(a.hermitian ? (x + adjoint(x)) * 0.5 : x, a.rcond.as_double())};
}

// Golub and Pereyra, "The differentiation of pseudo-inverses" (1973).
Tensors vjp_pseudo_inverse(VjpContext& c) {
  const Tensor &x = c.plain_operand(0), &y = c.plain_result(0);
  const Tensor g = adjoint(c.cotangent()), yh = adjoint(y);
  const Tensor within = product(product(yh, c.cotangent()), yh);
  const Tensor left = product(product(g - product(x, product(y, g)), y), yh);
  const Tensor right = product(product(yh, y), g - product(product(g, y), x));
  return {left + right - within};
}

Tensors decompose_lstsq(CallContext& c) {
  const auto a = c.attrs_as<LstsqAttrs>();
  const Tensor &x = c.operand(0), &y = c.operand(1);
  require_matrices("lstsq", x, false);
  require_matrices("lstsq", y, false);
  if (x.dim(-2).equals(y.dim(-2)) == false)
    reject("lstsq", "x ", x.type(), " and y ", y.type(), " differ in rows");
  const Dim m = x.dim(-2), n = x.dim(-1);
  if (!m.is_constant() || !n.is_constant()) reject("lstsq", "the sizes of x must be known");
  const double cutoff =
      a.rcond.value_or(epsilon_of(x.dtype()) * static_cast<double>(std::max(m.value(), n.value())));
  const std::string driver = a.driver.value_or("gelsy");
  const Tensor solution = product(ops::pseudo_inverse(x, cutoff), y);
  const DType real = real_type(x.dtype());
  Tensor residuals = full_of({Dim(0)}, 0, real);
  if (m.value() > n.value()) {
    const Tensor rest = ops::abs(y - product(x, solution));
    residuals = ops::sum(ops::square(rest), Axes{-2});
  }
  const Tensor values = ops::detach(ops::svdvals(x));
  Tensor rank = full_of({Dim(0)}, 0, DType::kI32);
  if (driver != "gels") {
    const Tensor kept = ops::greater_than(values, ops::max(values, kLast, true) * cutoff);
    rank = ops::cast(ops::sum(ops::cast(kept, DType::kI32), kLast), DType::kI32);
  }
  const bool shown = driver == "gelsd" || driver == "gelss";
  return {solution, residuals, rank, shown ? values : full_of({Dim(0)}, 0, real)};
}

Tensors vjp_matrix_exp(VjpContext& c) {
  // The exponential of [[A, G], [0, A]] has the derivative at A along G in its corner.
  const Tensor a = transposed(c.operand(0));
  const Tensor& g = c.cotangent();
  const Tensor top = ops::concat({a, g}, a.ndim() - 1);
  const Tensor bottom = ops::concat({zeros_like(a), a}, a.ndim() - 1);
  const Tensor both = ops::matrix_exp(ops::concat({top, bottom}, a.ndim() - 2));
  const Dim n = a.dim(-1);
  return {columns(rows(both, 0, n), n, n * 2)};
}

namespace {

/// Number of singular values above the larger of an absolute and a relative tolerance; `tol` is an
/// absolute one that stands by itself.
Tensor rank_of(const Tensor& x, bool hermitian, const Tensor& tol, const Tensor& atol,
               const Tensor& rtol) {
  require_matrices("matrix_rank", x, hermitian);
  const Tensor values = singular_values_of(x, hermitian);
  if (values.dim(-1).equals(0) == true) {
    Shape shape = values.shape();
    shape.pop_back();
    return full_of(shape, 0, DType::kI64);
  }
  const auto widened = [&](const Tensor& t) {
    return ops::unsqueeze(ops::cast(t, values.dtype()), {-1});
  };
  const Tensor largest = ops::max(values, kLast, true);
  Tensor limit;
  if (tol.defined()) {
    limit = widened(tol);
  } else if (atol.defined() || rtol.defined()) {
    Tensor relative;
    if (rtol.defined()) relative = largest * widened(rtol);
    if (atol.defined())
      limit = relative.defined() ? ops::maximum(widened(atol), relative) : widened(atol);
    else
      limit = relative;
  } else {
    const Tensor size =
        ops::maximum(dim_value(x.dim(-1), values.dtype()), dim_value(x.dim(-2), values.dtype()));
    limit = largest * size * epsilon_of(x.dtype());
  }
  return ops::sum(ops::cast(ops::greater_than(values, limit), DType::kI64), kLast);
}

Tensor optional_number(const AttrValue& v, DType dtype) {
  return v.is_none() ? Tensor() : full_of(Shape(), v.as_double(), dtype);
}

}  // namespace

Tensors decompose_matrix_rank(CallContext& c) {
  const auto a = c.attrs_as<MatrixRankAttrs>();
  const DType real = real_type(c.operand(0).dtype());
  return {rank_of(c.operand(0), a.hermitian, optional_number(a.tol, real),
                  optional_number(a.atol, real), optional_number(a.rtol, real))};
}

Tensors decompose_matrix_rank_above(CallContext& c) {
  return {rank_of(c.operand(0), c.attrs_as<MatrixRankAboveAttrs>().hermitian, c.operand(1),
                  c.operand(2), c.operand(3))};
}

Tensors decompose_cond(CallContext& c) {
  const AttrValue p = c.attrs_as<CondAttrs>().p;
  const Tensor& x = c.operand(0);
  const bool spectral = p.is_none() || (!p.is_string() && std::abs(p.as_double()) == 2);
  require_matrices("cond", x, !spectral);
  if (spectral) {
    const Tensor values = ops::svdvals(x);
    if (values.dim(-1).equals(0) == true) reject("cond", "a matrix without elements");
    const Tensor largest = ops::max(values, kLast), smallest = ops::min(values, kLast);
    const bool inverse = !p.is_none() && p.as_double() < 0;
    return {inverse ? smallest / largest : largest / smallest};
  }
  const Axes axes = {x.ndim() - 2, x.ndim() - 1};
  return {ops::norm(x, p, axes) * ops::norm(ops::inv(x), p, axes)};
}

// --- reflections ---

namespace {

constexpr int64_t kMaxReflections = 4096;

/// (I - tau v v^H) y for reflection i of x; with `turned` its adjoint.
Tensor reflected(const Tensor& x, const Tensor& tau, int64_t i, const Tensor& y, bool turned) {
  const Dim m = x.dim(-2);
  Shape head = x.shape();
  head.back() = Dim(1);
  head[head.size() - 2] = Dim(i);
  Shape one = head;
  one[one.size() - 2] = Dim(1);
  const int64_t axis = x.ndim() - 2;
  const Tensor below = rows(columns(x, i, i + 1), i + 1, m);
  const Tensor v =
      ops::concat({full_of(head, 0, x.dtype()), full_of(one, 1, x.dtype()), below}, axis);
  Tensor factor = ops::unsqueeze(slice_axis(tau, tau.ndim() - 1, i, i + 1), {-1});
  if (turned) factor = conjugate(factor);
  return y - product(v, product(adjoint(v), y)) * factor;
}

int64_t reflections_of(std::string_view op, const Tensor& x, const Tensor& tau) {
  require_matrices(op, x, false);
  if (tau.ndim() != x.ndim() - 1 || !tau.dim(-1).is_constant())
    reject(op, "tau ", tau.type(), " does not fit x ", x.type());
  const int64_t k = tau.dim(-1).value();
  if (x.dim(-1).less(k) == true || x.dim(-2).less(k) == true)
    reject(op, "tau ", tau.type(), " has more reflections than x ", x.type());
  if (k > kMaxReflections) reject(op, "more than ", kMaxReflections, " reflections");
  return k;
}

}  // namespace

Tensors decompose_householder_product(CallContext& c) {
  const Tensor &x = c.operand(0), &tau = c.operand(1);
  const int64_t k = reflections_of("householder_product", x, tau);
  if (x.dim(-2).less(x.dim(-1)) == true)
    reject("householder_product", "x ", x.type(), " has more columns than rows");
  Tensor q = ops::expand(ops::eye(x.dim(-2), x.dim(-1), x.dtype()), x.shape());
  for (int64_t i = k; i-- > 0;) q = reflected(x, tau, i, q, false);
  return {k == 0 ? ops::assign(q) : q};
}

Tensors decompose_ormqr(CallContext& c) {
  const auto a = c.attrs_as<OrmqrAttrs>();
  const Tensor &x = c.operand(0), &tau = c.operand(1);
  const int64_t k = reflections_of("ormqr", x, tau);
  require_matrices("ormqr", c.operand(2), false);
  // y Q is the adjoint of Q^H y^H.
  Tensor y = a.left ? c.operand(2) : adjoint(c.operand(2));
  if (y.dim(-2).equals(x.dim(-2)) == false)
    reject("ormqr", "y ", c.operand(2).type(), " does not fit x ", x.type());
  const bool turned = a.transpose == a.left;
  for (int64_t step = 0; step < k; ++step)
    y = reflected(x, tau, turned ? step : k - 1 - step, y, turned);
  if (k == 0) y = ops::assign(y);
  return {a.left ? y : adjoint(y)};
}

// --- low rank ---

namespace {

/// Halko, Martinsson and Tropp, "Finding structure with randomness" (2011), algorithms 4.4 and 5.1.
Tensors low_rank(std::string_view op, const Tensor& x, const std::optional<int64_t>& wanted,
                 int64_t otherwise, int64_t iterations) {
  require_matrices(op, x, false);
  if (!x.dim(-1).is_constant() || !x.dim(-2).is_constant())
    reject(op, "the sizes of x must be known");
  const int64_t least = std::min(x.dim(-2).value(), x.dim(-1).value());
  const int64_t q = wanted.value_or(std::min(otherwise, least));
  if (q < 0 || q > least) reject(op, "q must lie between 0 and ", least, ", not be ", q);
  if (iterations < 0 || iterations > 1000) reject(op, "niter is ", iterations);
  const Tensor noise = ops::cast(ops::randn(Shape{x.dim(-1), Dim(q)}, DType::kF32), x.dtype());
  const auto basis = [](const Tensor& t) { return ops::qr_factors(t, false)[0]; };
  Tensor range = basis(product(x, noise));
  for (int64_t i = 0; i < iterations; ++i) {
    range = basis(product(transposed(x), range));
    range = basis(product(x, range));
  }
  const Tensors found = svd_of(product(transposed(range), x));
  return {product(range, found[1]), found[0], transposed(found[2])};
}

}  // namespace

Tensors decompose_svd_lowrank(CallContext& c) {
  const auto a = c.attrs_as<SvdLowrankAttrs>();
  const Tensor x = c.has(1) ? c.operand(0) - c.operand(1) : c.operand(0);
  return low_rank("svd_lowrank", x, a.q, 6, a.niter);
}

Tensors decompose_pca_lowrank(CallContext& c) {
  const auto a = c.attrs_as<PcaLowrankAttrs>();
  Tensor x = c.operand(0);
  require_matrices("pca_lowrank", x, false);
  if (a.center) x = x - ops::mean(x, Axes{-2}, true);
  return low_rank("pca_lowrank", x, a.q, 6, a.niter);
}

}  // namespace paddle::rules
