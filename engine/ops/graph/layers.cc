// Rules of layers.yaml.

#include "ops/core/compose.h"
#include "ops/core/cost.h"
#include "ops/generated/graph.h"
#include "ops/generated/graph_rules.h"
#include "ops/generated/linalg.h"
#include "ops/generated/math.h"
#include "ops/generated/nn.h"
#include "ops/generated/reduce.h"
#include "ops/generated/shape.h"

namespace paddle::rules {
namespace {

constexpr int64_t kMaxCount = int64_t{1} << 40;

/// Checks that edges [batch..., edges] go with nodes [batch..., nodes, width].
void check_edges(InferContext& c, size_t nodes, size_t edges) {
  const Shape &x = c.shape(nodes), &index = c.shape(edges);
  const std::string_view name = c.op().operands()[edges].name;
  c.check(x.size() >= 2, c.op().operands()[nodes].name, " must be [..., nodes, width], not ",
          c.type(nodes));
  c.check(index.size() + 1 == x.size(), name, " must have an axis less than ",
          c.op().operands()[nodes].name, " ", c.type(nodes), ", not ", c.type(edges));
  for (size_t d = 0; d + 1 < index.size(); ++d)
    c.require_equal(x[d], index[d], std::string(name) + " is of another batch");
}

void require_edges(InferContext& c, size_t a, size_t b) {
  c.require_equal(
      c.shape(a).back(), c.shape(b).back(),
      str(c.op().operands()[a].name, " and ", c.op().operands()[b].name, " differ in length"));
}

/// Divides the width by `heads`, which must be a part of it.
void check_heads(InferContext& c, const Dim& width, const Dim& heads) {
  if (!width.is_constant() || !heads.is_constant()) return;
  c.check(heads.value() >= 1 && width.value() % heads.value() == 0, "a width of ", width,
          " is not a multiple of ", heads, " heads");
}

Tensor column(const Tensor& x) { return ops::unsqueeze(x, {-1}); }

/// Numbers of a graph's edges that end at each target, [..., count, 1].
Tensor degrees(const Tensor& like, const Tensor& targets, const Dim& count,
               const Tensor& weights = {}) {
  const Tensor each = weights.defined() ? column(weights) : [&] {
    Shape shape = targets.shape();
    shape.push_back(Dim(1));
    return full_of(shape, 1, like.dtype());
  }();
  return ops::graph_reduce(each, targets, {}, {}, count);
}

Tensor nodes_of(const Tensor& x, std::string_view op) {
  if (x.ndim() < 2) reject(op, "x must be [..., nodes, width], not ", x.type());
  return x;
}

Tensor edge_column(const Tensor& weights) { return weights.defined() ? column(weights) : Tensor(); }

/// 1 / sqrt(degree), and 0 for nodes without edges.
Tensor inverse_root(const Tensor& degree) {
  const Tensor some = ops::greater_than(degree, number(0));
  return ops::where(some, ops::rsqrt(ops::where(some, degree, number(1))), number(0));
}

Tensor with_bias(const Tensor& x, const Tensor& bias) { return bias.defined() ? x + bias : x; }

/// The operand, or nothing where it was left out.
Tensor optional_operand(CallContext& c, size_t i) { return c.has(i) ? c.operand(i) : Tensor(); }

}  // namespace

void infer_graph_gather(InferContext& c) {
  check_edges(c, 0, 1);
  Shape shape = c.shape(1);
  shape.push_back(c.shape(0).back());
  c.result(c.dtype(0), shape);
}

Tensors vjp_graph_gather(VjpContext& c) {
  Tensors out = c.gradients();
  if (c.needs(0))
    out[0] = ops::graph_reduce(c.cotangent(), c.operand(1), {}, {}, c.operand(0).dim(-2));
  return out;
}

void infer_graph_reduce(InferContext& c) {
  const auto a = c.attrs_as<GraphReduceAttrs>();
  check_edges(c, 0, 1);
  c.check(a.count.less(0) != true && Dim(kMaxCount).less(a.count) != true,
          "count must be from 0 to ", kMaxCount, ", not ", a.count);
  if (c.has(2)) {
    check_edges(c, 0, 2);
    require_edges(c, 1, 2);
  } else {
    c.require_equal(c.shape(0)[c.shape(0).size() - 2], c.shape(1).back(),
                    "x must have a row for each of targets, or there must be sources");
  }
  if (c.has(3)) {
    c.check(c.has(2), "weights need sources");
    c.check(a.reduce == "sum", "weights are for reduce=sum, not ", a.reduce);
    c.check(c.rank(3) == c.rank(0), "weights must be [..., edges, heads], not ", c.type(3));
    for (size_t d = 0; d + 1 < c.shape(3).size(); ++d)
      c.require_equal(c.shape(3)[d], c.shape(1)[d], "weights and targets differ in length");
    check_heads(c, c.shape(0).back(), c.shape(3).back());
  }
  Shape shape = c.shape(0);
  shape[shape.size() - 2] = a.count;
  c.result(c.dtype(0), shape);
}

double cost_graph_reduce(const Attrs&, const std::vector<Dims>& operands,
                         const std::vector<Dims>&) {
  return 2 * element_product(operands[1]) * static_cast<double>(operands[0].back());
}

Tensors vjp_graph_reduce(VjpContext& c) {
  Tensors out = c.gradients();
  const auto a = c.attrs_as<GraphReduceAttrs>();
  const Tensor &x = c.operand(0), &targets = c.operand(1);
  const bool sends = c.operand(2).defined(), weighted = c.operand(3).defined();
  Tensor g = c.cotangent();
  if (a.reduce == "max") {
    if (!c.needs(0)) return out;
    const Tensor message = sends ? ops::graph_gather(x, c.operand(2)) : x;
    const Dim& count = c.result(0).dim(-2);
    const Tensor is_largest =
        mask_of(ops::equal(message, ops::graph_gather(c.result(0), targets)), g);
    // Equal rows, such as those of double edges, share the gradient.
    const Tensor shares =
        ops::maximum(ops::graph_reduce(is_largest, targets, {}, {}, count), number(1));
    const Tensor each = ops::graph_gather(g / shares, targets) * is_largest;
    out[0] = sends ? ops::graph_reduce(each, c.operand(2), {}, {}, x.dim(-2)) : each;
    return out;
  }
  if (a.reduce == "mean") g = g / ops::maximum(degrees(g, targets, c.result(0).dim(-2)), number(1));
  if (c.needs(0))
    out[0] = sends ? ops::graph_reduce(g, c.operand(2), targets, weighted ? c.operand(3) : Tensor(),
                                       x.dim(-2))
                   : ops::graph_gather(g, targets);
  if (weighted && c.needs(3)) {
    const Dim& heads = c.operand(3).dim(-1);
    if (!heads.is_constant())
      reject(c.op().name(), "the gradient needs a known number of heads, not weights ",
             c.operand(3).type());
    out[3] = ops::graph_dot(x, g, c.operand(2), targets, heads.value());
  }
  return out;
}

void infer_graph_dot(InferContext& c) {
  const int64_t heads = c.attrs_as<GraphDotAttrs>().heads;
  check_edges(c, 0, 2);
  check_edges(c, 1, 3);
  require_edges(c, 2, 3);
  c.require_equal(c.shape(0).back(), c.shape(1).back(), "x and y differ in width");
  c.check(heads >= 1, "heads must be at least 1, not ", heads);
  check_heads(c, c.shape(0).back(), Dim(heads));
  Shape shape = c.shape(2);
  shape.push_back(Dim(heads));
  c.result(c.dtype(0), shape);
}

double cost_graph_dot(const Attrs&, const std::vector<Dims>& operands, const std::vector<Dims>&) {
  return 2 * element_product(operands[2]) * static_cast<double>(operands[0].back());
}

Tensors vjp_graph_dot(VjpContext& c) {
  Tensors out = c.gradients();
  const Tensor &x = c.operand(0), &y = c.operand(1), &sources = c.operand(2),
               &targets = c.operand(3), &g = c.cotangent();
  if (c.needs(0)) out[0] = ops::graph_reduce(y, sources, targets, g, x.dim(-2));
  if (c.needs(1)) out[1] = ops::graph_reduce(x, targets, sources, g, y.dim(-2));
  return out;
}

Tensors decompose_gcn(CallContext& c) {
  const auto a = c.attrs_as<GcnAttrs>();
  const Tensor x = nodes_of(c.operand(0), c.op().name()), &sources = c.operand(1),
               &targets = c.operand(2);
  const Tensor bias = optional_operand(c, 4), weights = optional_operand(c, 5);
  const Dim count = x.dim(-2);
  Tensor h = ops::matmul(x, c.operand(3));
  Tensor scale;
  if (a.normalize) {
    Tensor degree = degrees(x, targets, count, weights);
    if (a.self_loops) degree = degree + number(1);
    scale = inverse_root(degree);
    h = h * scale;
  }
  Tensor out = ops::graph_reduce(h, targets, sources, edge_column(weights), count);
  if (a.self_loops) out = out + h;
  if (a.normalize) out = out * scale;
  return {with_bias(out, bias)};
}

Tensors decompose_sage(CallContext& c) {
  const auto a = c.attrs_as<SageAttrs>();
  const Tensor x = nodes_of(c.operand(0), c.op().name());
  const Tensor root = optional_operand(c, 4), bias = optional_operand(c, 5);
  const Dim count = x.dim(-2);
  const Tensor& weight = c.operand(3);
  // Sums and means may come after the product, where it makes rows narrower.
  const bool narrows = a.reduce != "max" && weight.dim(1).less(weight.dim(0)) == true;
  Tensor out;
  if (narrows)
    out =
        ops::graph_reduce(ops::matmul(x, weight), c.operand(2), c.operand(1), {}, count, a.reduce);
  else
    out =
        ops::matmul(ops::graph_reduce(x, c.operand(2), c.operand(1), {}, count, a.reduce), weight);
  if (root.defined()) out = out + ops::matmul(x, root);
  return {with_bias(out, bias)};
}

Tensors decompose_gat(CallContext& c) {
  const auto a = c.attrs_as<GatAttrs>();
  const Tensor x = nodes_of(c.operand(0), c.op().name()), &sources = c.operand(1),
               &targets = c.operand(2);
  const Tensor &by_source = c.operand(4), &by_target = c.operand(5);
  if (by_source.ndim() != 2 || by_target.ndim() != 2)
    reject(c.op().name(), "attention must be [heads, width of a head], not ", by_source.type(),
           " and ", by_target.type());
  const Dim heads = by_source.dim(0), width = by_source.dim(1), count = x.dim(-2);
  const Tensor h = ops::matmul(x, c.operand(3));
  Shape split = x.shape();
  split.back() = heads;
  split.push_back(width);
  const Tensor by_head = ops::reshape(h, split);
  const auto score = [&](const Tensor& attention) {
    return ops::sum(by_head * attention, Axes{-1});  // [..., nodes, heads]
  };
  const Tensor from = score(by_source), to = score(by_target);
  const auto activated = [&](const Tensor& t) { return ops::leaky_relu(t, a.negative_slope); };
  const Tensor scores =
      activated(ops::graph_gather(from, sources) + ops::graph_gather(to, targets));
  Tensor largest = ops::graph_reduce(scores, targets, {}, {}, count, "max");
  const Tensor own = activated(from + to);
  if (a.self_loops) largest = ops::maximum(largest, own);
  largest = ops::detach(largest);  // softmax does not depend on it
  const Tensor shares = ops::exp(scores - ops::graph_gather(largest, targets));
  Tensor sum = ops::graph_reduce(shares, targets, {}, {}, count);
  Tensor out = ops::reshape(ops::graph_reduce(h, targets, sources, shares, count), split);
  if (a.self_loops) {
    const Tensor share = ops::exp(own - largest);
    sum = sum + share;
    out = out + by_head * column(share);
  } else {
    sum = ops::where(ops::greater_than(sum, number(0)), sum, number(1));
  }
  out = out / column(sum);
  if (a.concat)
    out = ops::reshape(out, h.shape());
  else
    out = ops::mean(out, Axes{-2});
  return {with_bias(out, optional_operand(c, 6))};
}

Tensors decompose_gin(CallContext& c) {
  const Tensor x = nodes_of(c.operand(0), c.op().name());
  const Tensor eps = optional_operand(c, 7);
  const Tensor sum = ops::graph_reduce(x, c.operand(2), c.operand(1), {}, x.dim(-2));
  const Tensor own = eps.defined() ? x * (eps + number(1)) : x;
  const Tensor hidden =
      ops::relu(with_bias(ops::matmul(own + sum, c.operand(3)), optional_operand(c, 5)));
  return {with_bias(ops::matmul(hidden, c.operand(4)), optional_operand(c, 6))};
}

Tensors decompose_light_gcn(CallContext& c) {
  const Tensor x = nodes_of(c.operand(0), c.op().name());
  const Tensor weights = optional_operand(c, 3);
  const Dim count = x.dim(-2);
  const Tensor scale = inverse_root(degrees(x, c.operand(2), count, weights));
  return {ops::graph_reduce(x * scale, c.operand(2), c.operand(1), edge_column(weights), count) *
          scale};
}

Tensors decompose_rgcn(CallContext& c) {
  const Tensor x = nodes_of(c.operand(0), c.op().name());
  const Tensor &weight = c.operand(4), root = optional_operand(c, 5), bias = optional_operand(c, 6);
  if (weight.ndim() != 3)
    reject(c.op().name(), "weight must be [relations, in, out], not ", weight.type());
  const Dim relations = weight.dim(0), width = weight.dim(1), count = x.dim(-2);
  if (!relations.is_constant())
    reject(c.op().name(), "the number of relations must be known, not weight ", weight.type());
  // A row for each pair of node and relation; those of a node lie together.
  const Tensor places = ops::cast(c.operand(2), DType::kI64) * integer(relations.value()) +
                        ops::cast(c.operand(3), DType::kI64);
  const Tensor means = ops::graph_reduce(x, places, c.operand(1), {}, count * relations, "mean");
  Shape together = x.shape();
  together.back() = relations * width;
  Tensor out = ops::matmul(ops::reshape(means, together),
                           ops::reshape(weight, {relations * width, weight.dim(2)}));
  if (root.defined()) out = out + ops::matmul(x, root);
  return {with_bias(out, bias)};
}

}  // namespace paddle::rules
