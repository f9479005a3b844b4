// Rules of graph.yaml.

#include "ops/generated/graph.h"
#include "ops/core/compose.h"
#include "ops/generated/graph_rules.h"
#include "ops/generated/indexing.h"
#include "ops/generated/math.h"
#include "ops/generated/shape.h"

namespace paddle::rules {
namespace {

Tensor edge_index(std::string_view op, const char* name, const Tensor& x) {
  const bool column = x.ndim() == 2 && is_one(x.dim(1));
  if (x.ndim() != 1 && !column) reject(op, name, " must be 1-D, not ", x.type());
  return ops::cast(flat(x), DType::kI64);
}

Tensor segments(CallContext& c, const char* reduce) {
  if (c.operand(0).ndim() == 0) reject(c.op().name(), "data must have at least one dimension");
  const Tensor ids = edge_index(c.op().name(), "segment_ids", c.operand(1));
  return ops::segment_pool(c.operand(0), ids, reduce);
}

/// The values of rows joined with those of edges, which broadcast over the axes after the first.
Tensor message(std::string_view op, const std::string& how, Tensor x, Tensor y) {
  while (x.ndim() < y.ndim()) x = ops::unsqueeze(x, {1});
  while (y.ndim() < x.ndim()) y = ops::unsqueeze(y, {1});
  if (x.dim(0).equals(y.dim(0)) == false)
    reject(op, "y ", y.type(), " must have a row for each of the ", x.dim(0), " edges");
  if (how == "add") return x + y;
  if (how == "sub") return x - y;
  if (how == "mul") return x * y;
  return x / y;
}

Tensor received(CallContext& c, const Tensor& messages, const Tensor& target,
                const std::string& reduce, const std::optional<int64_t>& size) {
  if (messages.dim(0).equals(target.dim(0)) == false)
    reject(c.op().name(), "src_index and dst_index differ in length");
  const Dim count = size.value_or(0) > 0 ? Dim(*size) : c.operand(0).dim(0);
  return ops::segment_reduce(messages, target, count, reduce);
}

Tensor rows_of(CallContext& c, const Tensor& x, const Tensor& index) {
  if (x.ndim() == 0) reject(c.op().name(), "x must have at least one dimension");
  return ops::index_select(x, index, 0);
}

Tensors sent(CallContext& c, const std::string& reduce, const std::optional<int64_t>& size) {
  const Tensor from = edge_index(c.op().name(), "src_index", c.operand(1)),
               to = edge_index(c.op().name(), "dst_index", c.operand(2));
  return {received(c, rows_of(c, c.operand(0), from), to, reduce, size)};
}

/// Checks the data and the ids of its rows.
void check_segments(InferContext& c) {
  c.check(c.rank(0) > 0, "data must have at least one dimension");
  c.check(c.rank(1) == 1, "segment_ids must be 1-D, not ", c.type(1));
  c.check(info(c.dtype(0)).has_kernels && !is_bool(c.dtype(0)), "data must be numbers, not ",
          c.type(0));
  c.require_equal(c.shape(0)[0], c.shape(1)[0], "data and segment_ids differ in length");
}

}  // namespace

void infer_segment_reduce(InferContext& c) {
  check_segments(c);
  const Dim count = c.attrs_as<SegmentReduceAttrs>().count;
  constexpr int64_t kMax = int64_t{1} << 40;
  c.check(count.less(0) != true && Dim(kMax).less(count) != true, "count must be from 0 to ", kMax,
          ", not ", count);
  Shape shape = c.shape(0);
  shape[0] = count;
  c.result(c.dtype(0), shape);
}

void infer_segment_pool(InferContext& c) {
  check_segments(c);
  Shape shape = c.shape(0);
  shape[0] = c.run_time_dim();
  c.result(c.dtype(0), shape);
}

Tensors vjp_segment_reduce(VjpContext& c) {
  Tensors out = c.gradients();
  if (!c.needs(0)) return out;
  const std::string reduce =
      c.attrs()[static_cast<size_t>(c.op().attr_index("reduce"))].as_string();
  const Tensor &data = c.operand(0), &ids = c.operand(1), &g = c.cotangent();
  const auto of_row = [&](const Tensor& t) { return ops::index_select(t, ids, 0); };
  if (reduce == "sum") {
    out[0] = of_row(g);
  } else if (reduce == "mean") {
    const Tensor ones = full_of({data.dim(0)}, 1, g.dtype());
    const Tensor count = ops::segment_reduce(ones, ids, c.result(0).dim(0), "sum");
    Shape column(data.shape().size(), Dim(1));
    column[0] = data.dim(0);
    out[0] = of_row(g) / ops::reshape(of_row(count), column);
  } else {
    out[0] = of_row(g) * mask_of(ops::equal(data, of_row(c.result(0))), g);
  }
  return out;
}

Tensors decompose_segment_sum(CallContext& c) { return {segments(c, "sum")}; }
Tensors decompose_segment_mean(CallContext& c) { return {segments(c, "mean")}; }
Tensors decompose_segment_max(CallContext& c) { return {segments(c, "max")}; }
Tensors decompose_segment_min(CallContext& c) { return {segments(c, "min")}; }

Tensors decompose_send_u_recv(CallContext& c) {
  const auto a = c.attrs_as<SendURecvAttrs>();
  return sent(c, a.reduce_op, a.out_size);
}

Tensors decompose_graph_send_recv(CallContext& c) {
  const auto a = c.attrs_as<GraphSendRecvAttrs>();
  return sent(c, a.pool_type, a.out_size);
}

Tensors decompose_send_ue_recv(CallContext& c) {
  const auto a = c.attrs_as<SendUeRecvAttrs>();
  const std::string_view op = c.op().name();
  const Tensor from = edge_index(op, "src_index", c.operand(2)),
               to = edge_index(op, "dst_index", c.operand(3));
  if (c.operand(1).ndim() == 0) reject(op, "y must have a row for each edge");
  const Tensor each = message(op, a.message_op, rows_of(c, c.operand(0), from), c.operand(1));
  return {received(c, each, to, a.reduce_op, a.out_size)};
}

Tensors decompose_send_uv(CallContext& c) {
  const auto a = c.attrs_as<SendUvAttrs>();
  const std::string_view op = c.op().name();
  const Tensor from = edge_index(op, "src_index", c.operand(2)),
               to = edge_index(op, "dst_index", c.operand(3));
  return {message(op, a.message_op, rows_of(c, c.operand(0), from), rows_of(c, c.operand(1), to))};
}

namespace {

void check_indices(InferContext& c, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    const auto i = static_cast<size_t>(c.op().operand_index(name));
    if (!c.has(i)) continue;
    c.check(c.rank(i) == 1 || (c.rank(i) == 2 && is_one(c.shape(i)[1])), name, " must be 1-D, not ",
            c.type(i));
  }
}

bool flag(InferContext& c, const char* name) {
  return c.attrs()[static_cast<size_t>(c.op().attr_index(name))].as_bool();
}

}  // namespace

void infer_sample_neighbors(InferContext& c) {
  check_indices(c, {"row", "colptr", "input_nodes", "eids"});
  const auto operand = [&](const char* name) {
    return static_cast<size_t>(c.op().operand_index(name));
  };
  const bool edges = flag(c, "return_eids");
  c.check(!edges || c.has(operand("eids")), "return_eids needs eids");
  if (c.has(operand("eids")))
    c.require_equal(element_count(std::span<const Dim>(c.shape(operand("eids")))),
                    element_count(std::span<const Dim>(c.shape(0))),
                    "eids and row differ in length");
  if (c.op().operand_index("edge_weight") >= 0)
    c.require_equal(element_count(std::span<const Dim>(c.shape(2))),
                    element_count(std::span<const Dim>(c.shape(0))),
                    "edge_weight and row differ in length");
  const Dim count = c.run_time_dim();
  c.result(c.dtype(0), {count});
  c.result(DType::kI32, {element_count(std::span<const Dim>(c.shape(operand("input_nodes"))))});
  if (edges) c.result(c.dtype(operand("eids")), {count});
}

void infer_reindex_graph(InferContext& c) {
  check_indices(c, {"x", "neighbors", "count"});
  c.check(c.dtype(0) == c.dtype(1), "x and neighbors must have one dtype, not ", c.type(0), " and ",
          c.type(1));
  c.require_equal(element_count(std::span<const Dim>(c.shape(2))),
                  element_count(std::span<const Dim>(c.shape(0))), "x and count differ in length");
  const Dim edges = element_count(std::span<const Dim>(c.shape(1)));
  c.result(c.dtype(0), {edges});
  c.result(c.dtype(0), {edges});
  c.result(c.dtype(0), {c.run_time_dim()});
}

void infer_reindex_heter_graph(InferContext& c) {
  c.check(c.list_size(1) > 0 && c.list_size(1) == c.list_size(2),
          "neighbors and count must be lists of one length");
  check_indices(c, {"x"});
  Dim edges = 0;
  for (size_t i = 0; i < c.list_size(1); ++i) {
    const TensorType &neighbors = c.list_type(1, i), &count = c.list_type(2, i);
    c.check(neighbors.dtype == c.dtype(0), "x and neighbors must have one dtype, not ", c.type(0),
            " and ", neighbors);
    c.require_equal(element_count(std::span<const Dim>(count.shape)),
                    element_count(std::span<const Dim>(c.shape(0))),
                    "x and count differ in length");
    edges = edges + element_count(std::span<const Dim>(neighbors.shape));
  }
  c.result(c.dtype(0), {edges});
  c.result(c.dtype(0), {edges});
  c.result(c.dtype(0), {c.run_time_dim()});
}

void infer_graph_khop_sampler(InferContext& c) {
  check_indices(c, {"row", "colptr", "input_nodes", "sorted_eids"});
  const auto a = c.attrs_as<GraphKhopSamplerAttrs>();
  c.check(!a.sample_sizes.empty(), "sample_sizes must not be empty");
  c.check(!a.return_eids || c.has(3), "return_eids needs sorted_eids");
  const Dim edges = c.run_time_dim(), nodes = c.run_time_dim();
  c.result(c.dtype(0), {edges, Dim(1)});
  c.result(c.dtype(0), {edges, Dim(1)});
  c.result(c.dtype(0), {nodes});
  c.result(c.dtype(0), {element_count(std::span<const Dim>(c.shape(2)))});
  if (a.return_eids) c.result(c.dtype(3), {edges});
}

}  // namespace paddle::rules
