// Attention and its gradient in one and two kernels, for float32 and 16-bit types.

#include <algorithm>

#include "kernels/cuda/attention.h"
#include "kernels/cuda/prepare.h"
#include "ops/generated/sequence.h"

namespace paddle::cuda {
namespace {

/// As in device/attend.cuh.
struct HeadMatrix {
  const void* at;
  int64_t batch, row, head, column;
};
struct FusedAttentionArguments {
  HeadMatrix q, k, v, grad, result;
  HeadMatrix out, dq, dk, dv;
  void* log_sum;
  const void* sums;
  void* delta;
  const void* mask;
  int64_t heads, queries, keys, width, value_width, causal;
  int64_t mask_strides[4];
  int64_t sum_strides[3];
  float scale;
};

HeadMatrix matrix_of(const Layout& l) {
  return {nullptr, l.strides[0], l.strides[1], l.strides[2], l.strides[3]};
}

/// A call, and how it is divided.
struct FusedAttention {
  FusedAttentionArguments base{};
  int64_t heads = 0;  ///< of all batches
  int tile = 32;      ///< queries and keys
  std::string types;  ///< "float, ", of q, k and v
  std::string sizes;  ///< what a template has last: the mask's type, tile and width

  static std::optional<FusedAttention> of(const Layout& q, const Layout& k, const Layout& v,
                                          const Layout& mask, bool causal, double scale) {
    constexpr int64_t kMaxWidth = 128, kMaxGridRows = 65535;
    FusedAttention out;
    FusedAttentionArguments& base = out.base;
    const MaskLayout masks(mask, q, k);
    base.heads = q.shape[2];
    base.queries = q.shape[1];
    base.keys = k.shape[1];
    base.width = q.shape[3];
    base.value_width = v.shape[3];
    out.heads = q.shape[0] * base.heads;
    const int64_t width = std::max(base.width, base.value_width);
    if (computed_as(q.dtype) != DType::kF32 || !masks.fits || width > kMaxWidth || width == 0 ||
        base.queries == 0 || base.keys == 0 || out.heads == 0 || out.heads > kMaxGridRows)
      return std::nullopt;
    base.q = matrix_of(q);
    base.k = matrix_of(k);
    base.v = matrix_of(v);
    base.causal = causal ? 1 : 0;
    base.scale = static_cast<float>(scale);
    std::copy(masks.strides.begin(), masks.strides.end(), base.mask_strides);
    const int padded = width <= 32 ? 32 : width <= 64 ? 64 : 128;
    if (padded == 128) out.tile = 16;  // four tiles are in shared memory
    out.types = str(device_type(q.dtype), ", ");
    out.sizes = str(", ", masks.type, ", ", out.tile, ", ", padded, ">");
    return out;
  }

  int64_t tiles(int64_t rows) const { return (rows + tile - 1) / tile; }
};

std::string attention_entry(std::string_view name, const std::string& call) {
  return entry_text(name, "FusedAttentionArguments", call);
}

std::shared_ptr<Program> attention_program(const KernelRequest& request,
                                           const std::string& kernels) {
  return start_program(request, program_text({"math", "scalar", "attend"}, kernels));
}

}  // namespace

std::unique_ptr<Kernel> prepare_fused_attention(const KernelRequest& request) {
  const AttentionAttrs attrs(request.attrs);
  const Layout &out = request.results[0], &log_sum = request.results[1];
  auto call = FusedAttention::of(request.operands[0], request.operands[1], request.operands[2],
                                 request.operands[3], attrs.is_causal, attrs.scale);
  if (!call || !compute_name(out.dtype) || log_sum.dtype != DType::kF32) return nullptr;
  call->base.out = matrix_of(out);
  const Entry entry(
      attention_program(
          request, attention_entry("attention", str("attend<", call->types, device_type(out.dtype),
                                                    call->sizes))),
      "attention");
  return make_kernel(
      [=, call = *call](const RunContext& context, void* const* operands, void* const* results) {
        FusedAttentionArguments arguments = call.base;
        arguments.q.at = operands[0];
        arguments.k.at = operands[1];
        arguments.v.at = operands[2];
        arguments.mask = operands[3];
        arguments.out.at = results[0];
        arguments.log_sum = results[1];
        entry.launch(context.stream, call.tiles(call.base.queries), call.heads, &arguments);
      },
      0, "cuda:fused_attention");
}

std::unique_ptr<Kernel> prepare_fused_attention_grad(const KernelRequest& request) {
  const AttentionGradAttrs attrs(request.attrs);
  const Layout &grad = request.operands[0], &result = request.operands[5],
               &sums = request.operands[6];
  auto call = FusedAttention::of(request.operands[1], request.operands[2], request.operands[3],
                                 request.operands[4], attrs.is_causal, attrs.scale);
  if (!call || !compute_name(grad.dtype) || !compute_name(result.dtype) ||
      sums.dtype != DType::kF32 || sums.shape.size() != 3)
    return nullptr;
  for (const Layout& each : request.results)
    if (!each.present || each.dtype != request.operands[1].dtype) return nullptr;
  call->base.grad = matrix_of(grad);
  call->base.result = matrix_of(result);
  call->base.dq = matrix_of(request.results[0]);
  call->base.dk = matrix_of(request.results[1]);
  call->base.dv = matrix_of(request.results[2]);
  std::copy(sums.strides.begin(), sums.strides.end(), call->base.sum_strides);
  const std::string grad_types = call->types + device_type(grad.dtype);
  const auto program = attention_program(
      request, attention_entry("query_grads", str("attend_query_grads<", grad_types, ", ",
                                                  device_type(result.dtype), call->sizes)) +
                   attention_entry("key_grads", str("attend_key_grads<", grad_types, call->sizes)));
  const Entry query_grads(program, "query_grads"), key_grads(program, "key_grads");
  return make_kernel(
      [=, call = *call](const RunContext& context, void* const* operands, void* const* results) {
        FusedAttentionArguments arguments = call.base;
        arguments.grad.at = operands[0];
        arguments.q.at = operands[1];
        arguments.k.at = operands[2];
        arguments.v.at = operands[3];
        arguments.mask = operands[4];
        arguments.result.at = operands[5];
        arguments.sums = operands[6];
        arguments.dq.at = results[0];
        arguments.dk.at = results[1];
        arguments.dv.at = results[2];
        arguments.delta = context.scratch;
        query_grads.launch(context.stream, call.tiles(call.base.queries), call.heads, &arguments);
        key_grads.launch(context.stream, call.tiles(call.base.keys), call.heads, &arguments);
      },
      static_cast<size_t>(call->heads * call->base.queries) * sizeof(float),
      "cuda:fused_attention");
}

}  // namespace paddle::cuda
