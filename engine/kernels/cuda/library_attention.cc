// Attention of 16-bit floats and its gradient by cuDNN.

#include <algorithm>
#include <array>
#include <limits>

#include "kernels/cuda/attention.h"
#include "kernels/cuda/dnn_graph.h"
#include "kernels/cuda/library_dnn.h"
#include "kernels/cuda/prepare.h"
#include "kernels/cuda/tables.h"
#include "ops/generated/sequence.h"

namespace paddle::cuda {
namespace {

/// A call. Arrays are [batch, place, head, element]; the library takes [batch, head, place,
/// element].
struct Attention {
  int type = 0;
  int64_t batch = 0, heads = 0, queries = 0, keys = 0, width = 0, value_width = 0;
  bool causal = false;
  float scale = 1;

  static std::optional<Attention> of(const Layout& q, const Layout& k, const Layout& v,
                                     const Layout& mask, bool causal, double scale) {
    Attention out;
    out.type = dnn_type(q.dtype);
    out.batch = q.shape[0];
    out.heads = q.shape[2];
    out.queries = q.shape[1];
    out.keys = k.shape[1];
    out.width = q.shape[3];
    out.value_width = v.shape[3];
    out.causal = causal;
    out.scale = static_cast<float>(scale);
    constexpr int64_t kMaxWidth = 128, kWidthUnit = 8;
    if (out.type < 0 || out.type == CUDNN_DATA_FLOAT || mask.present ||
        out.batch * out.heads * out.queries * out.keys == 0 || out.width % kWidthUnit != 0 ||
        out.value_width % kWidthUnit != 0 || out.width == 0 || out.value_width == 0 ||
        out.width > kMaxWidth || out.value_width > kMaxWidth || (causal && out.queries != out.keys))
      return std::nullopt;
    return out;
  }
  Dims scores() const { return {batch, heads, queries, keys}; }
  Dims rows() const { return {batch, heads, queries, 1}; }
};

/// Whether the library can read or write it: neighboring elements, rows of whole 16 bytes.
bool fits_dnn(const Layout& l, DType type) {
  if (!l.present || l.dtype != type || l.shape.size() != 4 || l.strides[3] != 1) return false;
  for (size_t i = 0; i < 3; ++i)
    if (l.strides[i] % 8 != 0) return false;
  return true;
}

/// Adds a tensor of places by elements, or with `transposed` of elements by places.
int add_matrix(DnnGraph& graph, int type, const Layout& l, bool transposed = false) {
  Dims shape = {l.shape[0], l.shape[2], l.shape[1], l.shape[3]};
  Dims strides = {l.strides[0], l.strides[2], l.strides[1], l.strides[3]};
  if (transposed) {
    std::swap(shape[2], shape[3]);
    std::swap(strides[2], strides[3]);
  }
  return graph.tensor(type, shape, strides);
}

/// Scores of keys that are not after the query; the others are the lowest number.
int add_causal_mask(DnnGraph& graph, const Attention& call, int scores) {
  const int row = graph.between(CUDNN_DATA_INT32, call.scores());
  const int column = graph.between(CUDNN_DATA_INT32, call.scores());
  graph.index(scores, 2, row);
  graph.index(scores, 3, column);
  const int keeps = graph.between(CUDNN_DATA_BOOLEAN, call.scores());
  graph.is_not_less(row, column, keeps);
  const int lowest = graph.scalar(std::numeric_limits<float>::lowest(), 4);
  const int out = graph.between(CUDNN_DATA_FLOAT, call.scores());
  graph.select(scores, lowest, keeps, out);
  return out;
}

/// A matrix with its last two axes swapped, in the type that products read.
int add_transposed(DnnGraph& graph, const Attention& call, int scores) {
  const int64_t size = call.queries * call.keys;
  const int out = graph.between(call.type, {call.batch, call.heads, call.keys, call.queries},
                                {call.heads * size, size, 1, call.keys});
  graph.view(scores, out);
  return out;
}

/// The library keeps 16-bit gradients of all scores in its workspace, so some batches are computed
/// at a time: a divisor of their number.
int64_t batches_at_once(const Attention& call) {
  constexpr int64_t kMaxBytes = int64_t{192} << 20, kQueries = 64, kKeys = 128;
  const auto padded = [](int64_t size, int64_t unit) { return (size + unit - 1) / unit * unit; };
  const int64_t each = call.heads * padded(call.queries, kQueries) * padded(call.keys, kKeys) * 2;
  // Sums of rows have addresses of whole 16 bytes.
  const int64_t rows = call.heads * call.queries;
  for (int64_t out = std::min(call.batch, std::max<int64_t>(1, kMaxBytes / each)); out > 0; --out)
    if (call.batch % out == 0 && (out == call.batch || out * rows % 4 == 0)) return out;
  return call.batch;
}

/// The tensors of a gradient in memory.
struct GradientTensors {
  int grad, queries, keys, values, result, log_sums, query_grads, key_grads, value_grads;
  int row_sums;      ///< which the library keeps there
  Dims key_strides;  ///< of places by elements
};

/// Adds the operations between them.
void add_gradient(DnnGraph& graph, const Attention& call, const GradientTensors& t) {
  const auto scores = [&] { return graph.between(CUDNN_DATA_FLOAT, call.scores()); };
  const int64_t queries_size = call.queries * call.value_width;
  const int weighted =
      graph.between(CUDNN_DATA_FLOAT, {call.batch, call.heads, call.queries, call.value_width},
                    {call.heads * queries_size, queries_size, call.value_width, 1});
  graph.apply(CUDNN_POINTWISE_MUL, t.grad, t.result, weighted);
  const int folded = graph.between(CUDNN_DATA_FLOAT, call.rows());
  graph.fold(CUDNN_REDUCE_TENSOR_ADD, weighted, folded);
  graph.apply(CUDNN_POINTWISE_MUL, folded, graph.scalar(1, 4), t.row_sums);
  const int scale = graph.scalar(call.scale, 4);
  const int products = scores(), scaled = scores(), distance = scores(), weights = scores();
  graph.multiply(t.queries, t.keys, products);
  graph.apply(CUDNN_POINTWISE_MUL, products, scale, scaled);
  graph.apply(CUDNN_POINTWISE_SUB, scaled, t.log_sums, distance);
  const int kept = call.causal ? add_causal_mask(graph, call, distance) : distance;
  graph.apply(CUDNN_POINTWISE_EXP, kept, -1, weights);
  graph.multiply(add_transposed(graph, call, weights), t.grad, t.value_grads);
  const int weight_grads = scores(), centered = scores(), unscaled = scores();
  graph.multiply(t.grad, t.values, weight_grads);
  graph.apply(CUDNN_POINTWISE_SUB, weight_grads, t.row_sums, centered);
  graph.apply(CUDNN_POINTWISE_MUL, centered, weights, unscaled);
  const int score_grads = graph.between(call.type, call.scores());
  graph.apply(CUDNN_POINTWISE_MUL, unscaled, scale, score_grads);
  graph.multiply(add_transposed(graph, call, score_grads), t.queries, t.key_grads);
  const int key_rows =
      graph.between(call.type, {call.batch, call.heads, call.keys, call.width}, t.key_strides);
  graph.view(t.keys, key_rows);
  graph.multiply(score_grads, key_rows, t.query_grads);
}

}  // namespace

std::unique_ptr<Kernel> prepare_dnn_attention(const KernelRequest& request) {
  const AttentionAttrs attrs(request.attrs);
  if (!are_attention_operands(request.operands, 0)) return nullptr;
  const Layout &q = request.operands[0], &k = request.operands[1], &v = request.operands[2],
               &out = request.results[0], &log_sum = request.results[1];
  const auto call = Attention::of(q, k, v, request.operands[3], attrs.is_causal, attrs.scale);
  if (!call || !fits_dnn(q, q.dtype) || !fits_dnn(k, q.dtype) || !fits_dnn(v, q.dtype) ||
      !fits_dnn(out, q.dtype) || !log_sum.present || log_sum.dtype != DType::kF32 ||
      !log_sum.is_contiguous())
    return nullptr;
  DnnGraph graph;
  const int type = call->type;
  const int queries = add_matrix(graph, type, q), keys = add_matrix(graph, type, k, true),
            values = add_matrix(graph, type, v), result = add_matrix(graph, type, out);
  const int sums = graph.tensor(CUDNN_DATA_FLOAT, call->rows(),
                                {call->heads * call->queries, call->queries, 1, 1});
  const auto scores = [&] { return graph.between(CUDNN_DATA_FLOAT, call->scores()); };
  const auto rows = [&] { return graph.between(CUDNN_DATA_FLOAT, call->rows()); };
  const int products = scores();
  graph.multiply(queries, keys, products);
  int current = scores();
  graph.apply(CUDNN_POINTWISE_MUL, products, graph.scalar(call->scale, 4), current);
  if (call->causal) current = add_causal_mask(graph, *call, current);
  const int top = rows(), distance = scores(), weight = scores(), sum = rows(), log = rows();
  graph.fold(CUDNN_REDUCE_TENSOR_MAX, current, top);
  graph.apply(CUDNN_POINTWISE_SUB, current, top, distance);
  graph.apply(CUDNN_POINTWISE_EXP, distance, -1, weight);
  graph.fold(CUDNN_REDUCE_TENSOR_ADD, weight, sum);
  graph.apply(CUDNN_POINTWISE_LOG, sum, -1, log);
  graph.apply(CUDNN_POINTWISE_ADD, top, log, sums);
  const int shares = graph.between(type, call->scores());
  graph.apply(CUDNN_POINTWISE_DIV, weight, sum, shares);
  graph.multiply(shares, values, result);
  const auto plan = graph.plan(request.target.device.index);
  if (!plan) return nullptr;
  std::shared_ptr<Kernel> spare = prepare_attention(compiled_late(request));
  if (!spare) return nullptr;
  const size_t scratch = std::max(plan->workspace_bytes(), spare->scratch_bytes());
  return make_kernel(
      [=](const RunContext& context, void* const* operands, void* const* results) {
        const std::array<const void*, 5> addresses = {operands[0], operands[1], operands[2],
                                                      results[0], results[1]};
        if (!are_aligned(addresses, kDnnAlignment)) return spare->run(context, operands, results);
        plan->execute(context.stream, addresses, context.scratch);
      },
      scratch, "cudnn:attention");
}

std::unique_ptr<Kernel> prepare_dnn_attention_grad(const KernelRequest& request) {
  const AttentionGradAttrs attrs(request.attrs);
  if (!are_attention_operands(request.operands, 1)) return nullptr;
  const Layout &g = request.operands[0], &q = request.operands[1], &k = request.operands[2],
               &v = request.operands[3], &o = request.operands[5], &sums = request.operands[6];
  auto call = Attention::of(q, k, v, request.operands[4], attrs.is_causal, attrs.scale);
  if (!call || sums.dtype != DType::kF32 || !sums.is_contiguous() || sums.shape.size() != 3)
    return nullptr;
  for (const Layout* const each : {&g, &q, &k, &v, &o})
    if (!fits_dnn(*each, q.dtype)) return nullptr;
  for (const Layout& each : request.results)
    if (!fits_dnn(each, q.dtype)) return nullptr;
  const int64_t parts = call->batch / batches_at_once(*call);
  call->batch /= parts;
  // The distances of parts in each tensor in memory, in bytes.
  std::array<int64_t, 10> steps{};
  size_t tensors = 0;
  DnnGraph graph;
  const int type = call->type;
  const auto matrix = [&](Layout l, bool transposed = false) {
    l.shape[0] = call->batch;
    steps[tensors++] = call->batch * l.strides[0] * static_cast<int64_t>(item_size(l.dtype));
    return add_matrix(graph, type, l, transposed);
  };
  const int grad = matrix(g), queries = matrix(q), keys = matrix(k, true), values = matrix(v, true),
            result = matrix(o);
  const Dims row_strides = {call->heads * call->queries, call->queries, 1, 1};
  const int log_sums = graph.tensor(CUDNN_DATA_FLOAT, call->rows(), row_strides);
  steps[tensors++] = call->batch * row_strides[0] * static_cast<int64_t>(sizeof(float));
  const int query_grads = matrix(request.results[0]), key_grads = matrix(request.results[1]),
            value_grads = matrix(request.results[2]);
  const int row_sums = graph.tensor(CUDNN_DATA_FLOAT, call->rows(), row_strides);
  const Dims key_strides = {k.strides[0], k.strides[2], k.strides[1], k.strides[3]};
  add_gradient(graph, *call,
               {grad, queries, keys, values, result, log_sums, query_grads, key_grads, value_grads,
                row_sums, key_strides});
  const auto plan = graph.plan(request.target.device.index);
  if (!plan) return nullptr;
  std::shared_ptr<Kernel> spare = prepare_attention_grad(compiled_late(request));
  if (!spare) return nullptr;
  const size_t rows_bytes =
      scratch_piece(static_cast<size_t>(call->batch * call->heads * call->queries) * sizeof(float));
  const size_t scratch = std::max(rows_bytes + plan->workspace_bytes(), spare->scratch_bytes());
  return make_kernel(
      [=](const RunContext& context, void* const* operands, void* const* results) {
        std::array<const void*, 10> addresses = {
            operands[0], operands[1], operands[2], operands[3], operands[5],
            operands[6], results[0],  results[1],  results[2],  context.scratch};
        if (!are_aligned(addresses, kDnnAlignment)) return spare->run(context, operands, results);
        for (int64_t part = 0; part < parts; ++part) {
          plan->execute(context.stream, addresses, context.scratch + rows_bytes);
          for (size_t i = 0; i < addresses.size(); ++i)
            addresses[i] = static_cast<const std::byte*>(addresses[i]) + steps[i];
        }
      },
      scratch, "cudnn:attention");
}

}  // namespace paddle::cuda
