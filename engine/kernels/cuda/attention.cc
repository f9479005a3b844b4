// Scaled dot-product attention and its gradient for all float types and sizes: products of
// matrices, with the scores of some heads at a time in scratch. fused_attention.cc needs no
// scratch.

#include <algorithm>

#include "kernels/cuda/attention.h"
#include "kernels/cuda/device_types.h"
#include "kernels/cuda/matmul.h"
#include "kernels/cuda/prepare.h"
#include "kernels/cuda/tables.h"
#include "ops/generated/sequence.h"

namespace paddle::cuda {
namespace {

/// As in device/attention.cuh.
struct AttentionArguments {
  void *scores, *out;
  const void *mask, *log_sum;
  void* new_log_sum;
  const void *grad, *result;
  int64_t first, count;
  int64_t heads, queries, keys, causal;
  int64_t mask_strides[4];
  int64_t mask_is_bool;
  int64_t sum_strides[3];
  int64_t grad_strides[4], result_strides[4];
  int64_t width;
};

/// Sizes of a call, and the heads whose scores are computed at a time: some heads of one batch, or
/// all heads of some batches.
struct Parts {
  int64_t batch, heads, queries, keys, width, value_width;
  int64_t batches_at_once = 1, heads_at_once = 1;
  int64_t item;

  Parts(const Layout& q, const Layout& k, const Layout& v)
      : batch(q.shape[0]),
        heads(q.shape[2]),
        queries(q.shape[1]),
        keys(k.shape[1]),
        width(q.shape[3]),
        value_width(v.shape[3]),
        item(q.dtype == DType::kF64 ? 8 : 4) {
    constexpr int64_t kMaxBytes = int64_t{64} << 20;
    const int64_t fits = std::max<int64_t>(1, kMaxBytes / std::max<int64_t>(1, head_bytes()));
    heads_at_once = std::min(heads, fits);
    if (heads_at_once == heads)
      batches_at_once = std::clamp<int64_t>(fits / std::max<int64_t>(1, heads), 1, batch);
  }
  int64_t head_bytes() const { return queries * keys * item; }
  size_t scores_bytes() const {
    return scratch_piece(static_cast<size_t>(batches_at_once * heads_at_once * head_bytes()));
  }
  /// Calls body(first batch, batches, first head, heads).
  template <class Body>
  void for_each(Body body) const {
    for (int64_t b = 0; b < batch; b += batches_at_once)
      for (int64_t h = 0; h < heads; h += heads_at_once)
        body(b, std::min(batches_at_once, batch - b), h, std::min(heads_at_once, heads - h));
  }
};

/// One operand or result: [batch, sequence, heads, width].
struct Matrix {
  DType dtype;
  int64_t batch, row, head, column;
  static Matrix of(const Layout& l) {
    return {l.dtype, l.strides[0], l.strides[1], l.strides[2], l.strides[3]};
  }
  const std::byte* at(const void* base, int64_t b, int64_t h) const {
    return static_cast<const std::byte*>(base) + (b * batch + h * head) * item_size(dtype);
  }
  std::byte* at(void* base, int64_t b, int64_t h) const {
    return static_cast<std::byte*>(base) + (b * batch + h * head) * item_size(dtype);
  }
};

/// The product of some heads; `scores` are [heads, queries, keys].
std::optional<ProductLaunch> product(const KernelRequest& request, const Parts& parts, int64_t m,
                                     int64_t n, int64_t k, const Matrix& x, bool transpose_x,
                                     const Matrix& y, bool transpose_y, const Matrix& out,
                                     double factor) {
  Product p;
  p.x = x.dtype;
  p.y = y.dtype;
  p.out = out.dtype;
  p.m = m;
  p.n = n;
  p.k = k;
  p.x_row = transpose_x ? x.column : x.row;
  p.x_column = transpose_x ? x.row : x.column;
  p.y_row = transpose_y ? y.column : y.row;
  p.y_column = transpose_y ? y.row : y.column;
  p.out_row = out.row;
  p.out_column = out.column;
  p.batch = {parts.batches_at_once, parts.heads_at_once};
  p.x_batch = {x.batch, x.head};
  p.y_batch = {y.batch, y.head};
  p.out_batch = {out.batch, out.head};
  p.factor = factor;
  return ProductLaunch::of(request, p, false);
}

/// The scores as a matrix, of the heads of one part.
Matrix scores_matrix(const Parts& parts, DType compute) {
  const int64_t head = parts.queries * parts.keys;
  return {compute, parts.heads_at_once * head, parts.keys, head, 1};
}

void set_sizes(AttentionArguments& arguments, const Parts& parts, const MaskLayout& mask,
               bool causal) {
  arguments.heads = parts.heads;
  arguments.queries = parts.queries;
  arguments.keys = parts.keys;
  arguments.causal = causal;
  std::copy(mask.strides.begin(), mask.strides.end(), arguments.mask_strides);
}

int64_t row_blocks(const AttentionArguments& arguments) {
  return std::min(arguments.count * arguments.queries, int64_t{1} << 20);
}

}  // namespace

MaskLayout::MaskLayout(const Layout& mask, const Layout& q, const Layout& k) {
  if (!mask.present) return;
  type = device_type(mask.dtype);
  const int64_t full[4] = {q.shape[0], q.shape[2], q.shape[1], k.shape[1]};
  fits = type && mask.shape.size() <= 4 && (mask.dtype == DType::kBool || is_float(mask.dtype));
  if (!fits) return;
  const size_t missing = 4 - mask.shape.size();
  for (size_t d = missing; d < 4; ++d)
    strides[d] = mask.shape[d - missing] == 1 && full[d] != 1 ? 0 : mask.strides[d - missing];
}

bool are_attention_operands(std::span<const Layout> operands, size_t first) {
  for (size_t i = first; i < first + 3; ++i)
    if (!compute_name(operands[i].dtype) || operands[i].dtype != operands[first].dtype ||
        operands[i].shape.size() != 4)
      return false;
  return operands[first].shape[2] == operands[first + 1].shape[2] &&
         operands[first].shape[2] == operands[first + 2].shape[2];
}

std::unique_ptr<Kernel> prepare_attention(const KernelRequest& request) {
  const AttentionAttrs attrs(request.attrs);
  if (!are_attention_operands(request.operands, 0)) return nullptr;
  if (auto fused = prepare_fused_attention(request)) return fused;
  const Layout &q = request.operands[0], &k = request.operands[1], &v = request.operands[2];
  const Parts parts(q, k, v);
  const DType compute = computed_as(q.dtype);
  const MaskLayout mask(request.operands[3], q, k);
  if (!mask.fits || request.results[1].dtype != compute) return nullptr;
  if (request.results[0].size() == 0 || parts.keys == 0) return nullptr;
  const Matrix queries = Matrix::of(q), keys = Matrix::of(k), values = Matrix::of(v),
               out = Matrix::of(request.results[0]), scores = scores_matrix(parts, compute);
  const auto first = product(request, parts, parts.queries, parts.keys, parts.width, queries, false,
                             keys, true, scores, attrs.scale);
  const auto last = product(request, parts, parts.queries, parts.value_width, parts.keys, scores,
                            false, values, false, out, 1);
  if (!first || !last) return nullptr;
  const auto program = start_program(
      request, program_text({"math", "scalar", "rows", "attention"},
                            str("PADDLE_KERNEL(weights, AttentionArguments) { "
                                "attention_weights<",
                                compute_name(q.dtype), ", ", mask.type, ">(arguments); }\n")));
  const Entry weights(program, "weights");
  return make_kernel(
      [=, first = *first, last = *last, causal = attrs.is_causal](
          const RunContext& context, void* const* operands, void* const* results) {
        parts.for_each([&](int64_t b, int64_t batches, int64_t h, int64_t heads) {
          const Dims batch = {batches, heads};
          first.launch_batches(context.stream, batch, queries.at(operands[0], b, h),
                               keys.at(operands[1], b, h), nullptr, context.scratch, nullptr);
          AttentionArguments arguments{};
          set_sizes(arguments, parts, mask, causal);
          arguments.scores = context.scratch;
          arguments.mask = operands[3];
          arguments.new_log_sum = results[1];
          arguments.first = b * parts.heads + h;
          arguments.count = batches * heads;
          weights.launch(context.stream, row_blocks(arguments), &arguments);
          last.launch_batches(context.stream, batch, context.scratch, values.at(operands[2], b, h),
                              nullptr, out.at(results[0], b, h), nullptr);
        });
      },
      parts.scores_bytes(), "cuda:attention");
}

std::unique_ptr<Kernel> prepare_attention_grad(const KernelRequest& request) {
  const AttentionGradAttrs attrs(request.attrs);
  if (!are_attention_operands(request.operands, 1)) return nullptr;
  if (auto fused = prepare_fused_attention_grad(request)) return fused;
  const Layout &g = request.operands[0], &q = request.operands[1], &k = request.operands[2],
               &v = request.operands[3], &o = request.operands[5], &sums = request.operands[6];
  const Parts parts(q, k, v);
  const DType compute = computed_as(q.dtype);
  const MaskLayout mask(request.operands[4], q, k);
  if (!mask.fits || sums.dtype != compute || !compute_name(g.dtype) ||
      computed_as(g.dtype) != compute || !compute_name(o.dtype) || sums.shape.size() != 3)
    return nullptr;
  for (const Layout& result : request.results)
    if (!result.present || result.size() == 0) return nullptr;
  const Matrix grads = Matrix::of(g), queries = Matrix::of(q), keys = Matrix::of(k),
               values = Matrix::of(v), scores = scores_matrix(parts, compute);
  const Matrix dq = Matrix::of(request.results[0]), dk = Matrix::of(request.results[1]),
               dv = Matrix::of(request.results[2]);
  const auto score = product(request, parts, parts.queries, parts.keys, parts.width, queries, false,
                             keys, true, scores, attrs.scale);
  const auto weight_grad = product(request, parts, parts.queries, parts.keys, parts.value_width,
                                   grads, false, values, true, scores, 1);
  const auto value_grad = product(request, parts, parts.keys, parts.value_width, parts.queries,
                                  scores, true, grads, false, dv, 1);
  const auto query_grad = product(request, parts, parts.queries, parts.width, parts.keys, scores,
                                  false, keys, false, dq, attrs.scale);
  const auto key_grad = product(request, parts, parts.keys, parts.width, parts.queries, scores,
                                true, queries, false, dk, attrs.scale);
  if (!score || !weight_grad || !value_grad || !query_grad || !key_grad) return nullptr;
  const char* const c = compute_name(q.dtype);
  const auto program = start_program(
      request,
      program_text(
          {"math", "scalar", "rows", "attention"},
          str("PADDLE_KERNEL(weights, AttentionArguments) { attention_weights_again<", c, ", ",
              mask.type,
              ">(arguments); }\nPADDLE_KERNEL(grads, AttentionArguments) { "
              "attention_score_grads<",
              c, ", ", device_type(g.dtype), ", ", device_type(o.dtype), ">(arguments); }\n")));
  const Entry weights(program, "weights"), score_grads(program, "grads");
  AttentionArguments base{};
  set_sizes(base, parts, mask, attrs.is_causal);
  std::copy(sums.strides.begin(), sums.strides.end(), base.sum_strides);
  std::copy(g.strides.begin(), g.strides.end(), base.grad_strides);
  std::copy(o.strides.begin(), o.strides.end(), base.result_strides);
  base.width = parts.value_width;
  return make_kernel(
      [=, score = *score, weight_grad = *weight_grad, value_grad = *value_grad,
       query_grad = *query_grad, key_grad = *key_grad](
          const RunContext& context, void* const* operands, void* const* results) {
        std::byte* const p = context.scratch;
        std::byte* const ds = context.scratch + parts.scores_bytes();
        parts.for_each([&](int64_t b, int64_t batches, int64_t h, int64_t heads) {
          const Dims batch = {batches, heads};
          const auto launch = [&](const ProductLaunch& each, const void* x, const void* y,
                                  void* to) {
            each.launch_batches(context.stream, batch, x, y, nullptr, to, nullptr);
          };
          const std::byte* const grad = grads.at(operands[0], b, h);
          launch(score, queries.at(operands[1], b, h), keys.at(operands[2], b, h), p);
          AttentionArguments arguments = base;
          arguments.scores = p;
          arguments.out = ds;
          arguments.mask = operands[4];
          arguments.log_sum = operands[6];
          arguments.grad = operands[0];
          arguments.result = operands[5];
          arguments.first = b * parts.heads + h;
          arguments.count = batches * heads;
          weights.launch(context.stream, row_blocks(arguments), &arguments);
          launch(value_grad, p, grad, dv.at(results[2], b, h));
          launch(weight_grad, grad, values.at(operands[3], b, h), ds);
          score_grads.launch(context.stream, row_blocks(arguments), &arguments);
          launch(query_grad, ds, keys.at(operands[2], b, h), dq.at(results[0], b, h));
          launch(key_grad, ds, queries.at(operands[1], b, h), dk.at(results[1], b, h));
        });
      },
      2 * parts.scores_bytes(), "cuda:attention");
}

}  // namespace paddle::cuda
