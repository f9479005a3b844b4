// Folds batch normalization with constant statistics into the convolution before it, once weights
// are constants: w' = w · s and b' = (b - mean) · s + shift, with s = scale / sqrt(variance + eps).
// A transposed convolution is the input gradient of a convolution, to which the bias is added.
// A constant for each channel that is added to a convolution becomes its bias first, since some
// files write the bias so.

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>
#include <unordered_map>
#include <vector>

#include "compiler/passes/passes.h"
#include "ops/core/call.h"
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

bool is_constant_of(const Value* v, DType dtype) {
  return constant_float(v) && v->type.dtype == dtype;
}

/// The scale and bias of each channel.
class Affine {
 public:
  explicit Affine(const Operation& norm) {
    const int64_t channels = norm.operands[1]->constant->size();
    const double epsilon = BatchNormAttrs(norm.attrs).epsilon;
    const auto number = [&](size_t operand, int64_t c, double otherwise) {
      const Value* const v = norm.operands[operand];
      return v ? v->constant->number(c) : otherwise;
    };
    for (int64_t c = 0; c < channels; ++c) {
      scale_.push_back(number(3, c, 1) / std::sqrt(number(2, c, 0) + epsilon));
      mean_.push_back(number(1, c, 0));
      shift_.push_back(number(4, c, 0));
    }
  }

  /// `weight` with each block of this many elements scaled as its channel.
  template <class ChannelOf>
  Array scaled(const Array& weight, int64_t block, const ChannelOf& channel_of,
               ArrayPool& pool) const {
    const Array packed = weight.contiguous();
    Array out = pool.empty(packed.dtype, packed.shape);
    const auto put = [&](auto* to, const auto* from) {
      using T = std::remove_pointer_t<decltype(to)>;
      for (int64_t i = 0; i < packed.size(); ++i)
        to[i] = static_cast<T>(static_cast<double>(from[i]) *
                               scale_[static_cast<size_t>(channel_of(i / block))]);
    };
    if (packed.dtype == DType::kF32)
      put(out.data<float>(), packed.data<float>());
    else
      put(out.data<double>(), packed.data<double>());
    return out;
  }
  /// The bias after `before`: one number for each channel, one for all, or none.
  Array biased(const Value* before, DType dtype, const Dims& shape) const {
    Array out = Array::empty(dtype, shape);
    for (int64_t c = 0; c < out.size(); ++c) {
      const double b = before ? before->constant->number(before->constant->size() == 1 ? 0 : c) : 0;
      const auto i = static_cast<size_t>(c);
      const double bias = (b - mean_[i]) * scale_[i] + shift_[i];
      if (dtype == DType::kF32)
        out.data<float>()[c] = static_cast<float>(bias);
      else
        out.data<double>()[c] = bias;
    }
    return out;
  }
  int64_t channels() const { return static_cast<int64_t>(scale_.size()); }

 private:
  std::vector<double> scale_, mean_, shift_;
};

/// The value whose elements `v` has in another shape, or `v`.
const Value* unshaped(const Value* v) {
  static const Op& reshape = get_op("reshape");
  return v && !v->constant && v->producer && v->producer->op == &reshape ? v->producer->operands[0]
                                                                         : v;
}

/// The operand of `add` that is constant, perhaps reshaped, and has one number for each channel of
/// images, or one; null if there is none.
Value** bias_operand(Operation& add, size_t channel_axis, int64_t channels, DType dtype) {
  for (const size_t i : {size_t{1}, size_t{0}}) {
    if (!is_constant_of(unshaped(add.operands[i]), dtype)) continue;
    const Shape& shape = add.operands[i]->type.shape;
    const size_t rank = add.results[0]->type.shape.size();
    if (shape.size() > rank) continue;
    bool fits = true;
    for (size_t k = 0; k < shape.size(); ++k)
      fits = fits && (shape[k].equals(1) == true || (k + rank - shape.size() == channel_axis &&
                                                     shape[k].equals(channels) == true));
    if (fits) return &add.operands[i];
  }
  return nullptr;
}

class Folding {
 public:
  explicit Folding(ir::Function& function) : function_(function), uses_(ir::count_uses(function)) {}

  void run() {
    auto& operations = function_.body.operations;
    for (auto it = operations.begin(); it != operations.end();) {
      Operation& o = **it;
      const bool removed = (o.op == &batch_norm_ && fold(o)) || (o.op == &add_ && fold_bias(o));
      it = removed ? operations.erase(it) : std::next(it);
    }
  }

 private:
  ir::Function& function_;
  std::unordered_map<const Value*, int> uses_;
  ArrayPool pool_;
  const Op &conv2d_ = get_op("conv2d"), &conv3d_ = get_op("conv3d"),
           &transposed_ = get_op("conv2d_input_grad"), &add_ = get_op("add"),
           &batch_norm_ = get_op("batch_norm");

  /// The producer of a value that is read once.
  Operation* only_read(const Value* v) const {
    const auto uses = uses_.find(v);
    return v && !v->constant && uses != uses_.end() && uses->second == 1 ? v->producer : nullptr;
  }

  /// True if `norm` is to be removed: an operation before it produces its result now.
  bool fold(Operation& norm) {
    Operation* const before = only_read(norm.operands[0]);
    if (!before || !is_fixed_affine(norm)) return false;
    // Only the result can be replaced; the other results of the normalization must be unused.
    for (size_t i = 1; i < norm.results.size(); ++i)
      if (uses_.count(norm.results[i])) return false;
    if (before->op == &conv2d_ || before->op == &conv3d_) return fold_into(*before, norm);
    if (before->op == &transposed_) return fold_into_transposed(*before, nullptr, norm);
    if (before->op != &add_) return false;
    for (const Value* v : before->operands)
      if (Operation* const o = only_read(v); o && o->op == &transposed_)
        return fold_into_transposed(*o, before, norm);
    return false;
  }

  /// True if `sum` is to be removed: the convolution before it adds the bias now.
  bool fold_bias(Operation& sum) {
    for (const size_t i : {size_t{0}, size_t{1}}) {
      Operation* const conv = only_read(sum.operands[i]);
      if (!conv || (conv->op != &conv2d_ && conv->op != &conv3d_) || conv->operands[2] ||
          !same_type(conv->results[0]->type, sum.results[0]->type))
        continue;
      const DType dtype = sum.results[0]->type.dtype;
      const std::optional<int64_t> channels = conv->operands[1]->type.shape[0].constant();
      if (!channels) continue;
      const size_t axis = has_channels_last(*conv) ? sum.results[0]->type.shape.size() - 1 : 1;
      Value** const added = bias_operand(sum, axis, *channels, dtype);
      if (added != &sum.operands[1 - i]) continue;
      const Array& numbers = *unshaped(*added)->constant;
      std::vector<double> bias;
      for (int64_t c = 0; c < *channels; ++c)
        bias.push_back(numbers.number(numbers.size() == 1 ? 0 : c));
      conv->operands[2] =
          function_.add_constant(Array::from<double>(bias, {*channels}).cast(dtype));
      produce(*conv, sum);
      return true;
    }
    return false;
  }

  bool fold_into(Operation& conv, Operation& norm) {
    const DType dtype = norm.results[0]->type.dtype;
    if (!is_constant_of(conv.operands[1], dtype) ||
        (conv.operands[2] && !constant_float(conv.operands[2])) ||
        has_channels_last(conv) != has_channels_last(norm))
      return false;
    const Affine affine(norm);
    const Array& weight = *conv.operands[1]->constant;
    const int64_t block = weight.size() / std::max<int64_t>(affine.channels(), 1);
    Array bias = affine.biased(conv.operands[2], dtype, {affine.channels()});
    conv.operands[1] = function_.add_constant(affine.scaled(
        weight, block, [](int64_t i) { return i; }, pool_));
    conv.operands[2] = function_.add_constant(std::move(bias));
    produce(conv, norm);
    return true;
  }

  /// `sum` adds the bias, if there is one; else `norm` becomes the operation that does.
  bool fold_into_transposed(Operation& conv, Operation* sum, Operation& norm) {
    const DType dtype = norm.results[0]->type.dtype;
    if (!is_constant_of(conv.operands[0], dtype) ||
        !same_type(conv.results[0]->type, norm.results[0]->type) ||
        has_channels_last(conv) != has_channels_last(norm))
      return false;
    const Affine affine(norm);
    const size_t axis = has_channels_last(conv) ? 3 : 1;
    Value** const bias = sum ? bias_operand(*sum, axis, affine.channels(), dtype) : nullptr;
    if (sum && !bias) return false;
    const Array& weight = *conv.operands[0]->constant;  // [in, out / groups, rows, columns]
    const int64_t out = weight.shape[1], each = affine.channels() == 0 ? 1 : group_inputs(conv);
    const auto channel_of = [&](int64_t i) { return i / out / each * out + i % out; };
    Dims shape(axis == 1 ? 3 : 1, 1);
    shape[0] = affine.channels();
    Value* const shift =
        function_.add_constant(affine.biased(sum ? unshaped(*bias) : nullptr, dtype, shape));
    conv.operands[0] = function_.add_constant(
        affine.scaled(weight, weight.shape[2] * weight.shape[3], channel_of, pool_));
    if (sum) {
      *bias = shift;
      produce(*sum, norm);
      return true;
    }
    norm.op = &add_;
    norm.operands = {norm.operands[0], shift};
    norm.attrs = default_attrs(add_);
    norm.results.resize(1);
    return false;
  }

  /// Input channels of each group of a transposed convolution.
  static int64_t group_inputs(const Operation& conv) {
    return conv.operands[0]->constant->shape[0] / Conv2dInputGradAttrs(conv.attrs).groups;
  }

  /// `operation` produces the result of the normalization from now on.
  static void produce(Operation& operation, const Operation& norm) {
    Value* const result = norm.results[0];
    result->producer = &operation;
    result->index = 0;
    operation.results[0] = result;
  }
};

}  // namespace

void fold_batch_norm(ir::Function& function) { Folding(function).run(); }

}  // namespace paddle::passes
