// Folds batch normalization with constant statistics into the convolution before it, once weights
// are constants: w' = w · s and b' = (b - mean) · s + shift, with s = scale / sqrt(variance + eps).

#include <cmath>
#include <unordered_map>

#include "compiler/passes/passes.h"
#include "ops/generated/nn.h"
#include "tensor/array_pool.h"

namespace paddle::passes {
namespace {

using ir::Operation;
using ir::Value;

bool constant_float(const Value* v) {
  return v && v->constant && (v->type.dtype == DType::kF32 || v->type.dtype == DType::kF64);
}

/// True if batch_norm uses running statistics and all its operands but the input are constants.
bool is_fixed_affine(const Operation& norm) {
  const BatchNormAttrs attrs(norm.attrs);
  const bool batch = attrs.training && !attrs.use_global_stats.value_or(false);
  if (batch || !constant_float(norm.operands[1]) || !constant_float(norm.operands[2])) return false;
  for (const size_t i : {size_t{3}, size_t{4}})
    if (norm.operands[i] && !constant_float(norm.operands[i])) return false;
  return true;
}

bool has_channels_last(const Operation& o) {
  return o.attrs[static_cast<size_t>(o.op->attr_index("data_format"))].as_string().ends_with('C');
}

bool has_fixed_weight(const Operation& conv, DType dtype) {
  return constant_float(conv.operands[1]) && conv.operands[1]->type.dtype == dtype &&
         (!conv.operands[2] || constant_float(conv.operands[2]));
}

/// Weight and bias of a convolution that equals `norm` after `conv`.
std::pair<Array, Array> folded(const Operation& conv, const Operation& norm, ArrayPool& pool) {
  const Array weight = conv.operands[1]->constant->contiguous();
  const int64_t channels = weight.shape[0],
                channel_size = channels == 0 ? 0 : weight.size() / channels;
  Array new_weight = pool.empty(weight.dtype, weight.shape);
  Array new_bias = Array::empty(weight.dtype, {channels});
  const auto number = [](const Value* v, int64_t i, double otherwise) {
    return v ? v->constant->number(i) : otherwise;
  };
  const double epsilon = BatchNormAttrs(norm.attrs).epsilon;
  for (int64_t c = 0; c < channels; ++c) {
    const double scale =
        number(norm.operands[3], c, 1) / std::sqrt(number(norm.operands[2], c, 0) + epsilon);
    const double shift = (number(conv.operands[2], c, 0) - number(norm.operands[1], c, 0)) * scale +
                         number(norm.operands[4], c, 0);
    const auto put = [&](auto* to, const auto* from, auto* bias) {
      using T = std::remove_pointer_t<decltype(to)>;
      for (int64_t i = c * channel_size; i < (c + 1) * channel_size; ++i)
        to[i] = static_cast<T>(static_cast<double>(from[i]) * scale);
      bias[c] = static_cast<T>(shift);
    };
    if (weight.dtype == DType::kF32)
      put(new_weight.data<float>(), weight.data<float>(), new_bias.data<float>());
    else
      put(new_weight.data<double>(), weight.data<double>(), new_bias.data<double>());
  }
  return {new_weight, new_bias};
}

}  // namespace

void fold_batch_norm(ir::Function& function) {
  static const Op &conv2d = get_op("conv2d"), &conv3d = get_op("conv3d"),
                  &batch_norm = get_op("batch_norm");
  ArrayPool pool;
  std::unordered_map<const Value*, int> uses = ir::count_uses(function);
  for (auto it = function.body.operations.begin(); it != function.body.operations.end(); ++it) {
    Operation& norm = **it;
    if (norm.op != &batch_norm || !is_fixed_affine(norm)) continue;
    Operation* const conv = norm.operands[0]->producer;
    if (!conv || (conv->op != &conv2d && conv->op != &conv3d) || uses[norm.operands[0]] != 1 ||
        norm.operands[0]->constant || !has_fixed_weight(*conv, norm.results[0]->type.dtype))
      continue;
    // Only the result can be replaced; the other results of the normalization must be unused.
    bool only_result = true;
    for (size_t i = 1; i < norm.results.size(); ++i)
      only_result = only_result && uses[norm.results[i]] == 0;
    if (!only_result || has_channels_last(*conv) != has_channels_last(norm)) continue;
    auto [weight, bias] = folded(*conv, norm, pool);
    conv->operands[1] = function.add_constant(std::move(weight));
    conv->operands[2] = function.add_constant(std::move(bias));
    // The convolution now produces the result of the normalization.
    Value* const result = norm.results[0];
    result->producer = conv;
    result->index = 0;
    conv->results[0] = result;
    it = function.body.operations.erase(it);
    --it;
  }
}

}  // namespace paddle::passes
