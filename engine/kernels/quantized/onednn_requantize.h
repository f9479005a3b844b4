#pragma once
// Requantization of int32 accumulators as oneDNN post-ops, shared by convolution, linear and
// matmul. Only for .cc files of kernels/: it exposes oneDNN types.

#include <cmath>
#include <limits>

#include "base/parallel.h"
#include "kernels/common/constant.h"
#include "kernels/onednn/program.h"
#include "kernels/onednn/strided_operand.h"
#include "kernels/quantized/int16_gemm.h"
#include "ops/quantization/quantized.h"

namespace paddle::onednn {

namespace q = quantized;
using Desc = dnnl::memory::desc;
using Tag = dnnl::memory::format_tag;
using Type = dnnl::memory::data_type;

/// Turns uint8 into int8, which oneDNN requires on the right side.
inline constexpr int32_t kUint8ToInt8Shift = -128;

inline std::vector<float> float_values(const Layout& layout) {
  const Array view = cpu::constant_of(layout);
  std::vector<float> values(static_cast<size_t>(layout.size()));
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>(view.number(static_cast<int64_t>(i)));
  return values;
}

/// Reads one byte of each cache line.
inline void touch_cache_lines(const std::byte* data, int64_t bytes) {
  constexpr int64_t kLine = 64;
  unsigned seen = 0;
  for (int64_t i = 0; i < bytes; i += kLine) seen += static_cast<unsigned>(data[i]);
  asm volatile("" ::"r"(seen));  // keeps the reads from being optimized away
}

/// A constant scale and zero point; 1 and 0 if there are none.
struct QuantParams {
  bool present = false;
  float scale = 1;
  int32_t zero = 0;
};

/// Builds the post-ops that requantize accumulators, and their arguments.
class RequantizePostOps {
 public:
  RequantizePostOps(const KernelRequest& request, DType step_dtype, std::optional<double> low,
                    std::optional<double> high)
      : request_(request), step_dtype_(step_dtype), low_(low), high_(high) {}

  /// False if scales or zero points that must be constant are not.
  bool read() {
    return read_params(q::kStepScale, q::kStepZero, step_) &&
           read_params(q::kResidualScale, q::kResidualZero, residual_) &&
           read_params(q::kOutScale, q::kOutZero, out_) && residual_fits();
  }

  /// Appends preparatory steps and returns the primitive's attributes. `channel_mask` has the bit
  /// of the channel axis, `channel_dims` the result's dims with 1 for all other axes.
  dnnl::primitive_attr attributes(Program& program, int channel_mask, const Dims& channel_dims) {
    attributes_ = user_scratchpad();
    set_zero(program, q::kXZero, DNNL_ARG_SRC, 0);
    if (request_.operands.size() > q::kYZero)
      set_zero(program, q::kYZero, DNNL_ARG_WEIGHTS,
               operand(q::kWeight).dtype == DType::kU8 ? kUint8ToInt8Shift : 0);
    const bool constant_scale = present(q::kScale) && operand(q::kScale).constant;
    const bool float_bias = present(q::kBias) && operand(q::kBias).dtype == DType::kF32;
    const bool constant_bias = float_bias && operand(q::kBias).constant;
    const float initial_unit = step_.present ? step_.scale : out_.scale;
    // Starts in units of the first grid where that can be folded into constant scales and biases.
    float unit = constant_scale && (!float_bias || constant_bias) ? initial_unit : 1.0f;
    if (constant_scale) {
      std::vector<float> scales = float_values(operand(q::kScale));
      for (float& s : scales) s /= unit;
      attributes_.set_output_scales(scales.size() > 1 ? channel_mask : 0, scales);
    } else if (present(q::kScale)) {
      append_binary(program, dnnl::algorithm::binary_mul, q::kScale, channel_dims);
    }
    if (constant_bias && unit != 1.0f) {
      std::vector<float> bias = float_values(operand(q::kBias));
      for (float& b : bias) b /= unit;
      const Desc desc = channel_desc(q::kBias, channel_dims);
      append_binary(dnnl::algorithm::binary_add, desc, program.add_constant(desc, bias.data()));
    } else if (float_bias) {
      append_binary(program, dnnl::algorithm::binary_add, q::kBias, channel_dims);
    }
    if (step_.present) {
      rescale(unit, step_.scale);
      const auto [lower, upper] = cpu::integer_range(step_dtype_);
      post_ops_.append_eltwise(1, dnnl::algorithm::eltwise_round, 0, 0);
      post_ops_.append_eltwise(1, dnnl::algorithm::eltwise_clip,
                               lower - static_cast<float>(step_.zero),
                               upper - static_cast<float>(step_.zero));
      count_ += 2;
    }
    rescale(unit, out_.scale);
    if (present(q::kResidual)) {
      post_ops_.append_sum(residual_.scale / unit, residual_.zero,
                           data_type(operand(q::kResidual).dtype));
      ++count_;
    }
    append_clamp(unit);
    if (out_.zero != 0) attributes_.set_zero_points(DNNL_ARG_DST, 0, {out_.zero});
    attributes_.set_post_ops(post_ops_);
    return attributes_;
  }

  /// Appends a copy of `bytes` bytes of the residual from `offset` on to the result, where the sum
  /// accumulates. If they are there already, reads them once, because sequential reads from memory
  /// are much faster than the primitive's access pattern.
  void begin(Program& program, size_t offset, size_t bytes) const {
    if (!present(q::kResidual)) return;
    program.add({q::kResidual}, [offset, bytes](const RunContext&, void* const* operands,
                                                void* const* results) {
      const std::byte* const from = static_cast<const std::byte*>(operands[q::kResidual]) + offset;
      std::byte* const to = static_cast<std::byte*>(results[0]) + offset;
      parallel_for(static_cast<int64_t>(bytes), 65536, [&](int64_t first, int64_t last) {
        if (from != to)
          std::memcpy(to + first, from + first, static_cast<size_t>(last - first));
        else
          touch_cache_lines(from + first, last - first);
      });
    });
  }

  const std::vector<Program::Argument>& arguments() const { return arguments_; }
  bool has_int32_bias() const {
    return present(q::kBias) && operand(q::kBias).dtype == DType::kI32;
  }

 private:
  const Layout& operand(size_t i) const { return request_.operands[i]; }
  bool present(size_t i) const { return operand(i).present; }

  bool read_params(size_t scale, size_t zero, QuantParams& steps) const {
    steps.present = present(scale);
    if (!steps.present) return true;
    if (!operand(scale).constant || (present(zero) && !operand(zero).constant)) return false;
    steps.scale = float_values(operand(scale))[0];
    if (present(zero)) steps.zero = static_cast<int32_t>(float_values(operand(zero))[0]);
    return steps.scale > 0 && std::isfinite(steps.scale);
  }

  /// The sum accumulates in the result's memory, so element sizes must agree.
  bool residual_fits() const {
    const DType result = request_.results[0].dtype;
    if (result != DType::kU8 && result != DType::kI8 && present(q::kOutScale)) return false;
    return !present(q::kResidual) || item_size(operand(q::kResidual).dtype) == item_size(result);
  }

  /// Sets the zero point of an argument whose values were shifted by `shift`.
  void set_zero(Program& program, size_t zero_operand, int argument, int32_t shift) {
    const bool is_present = present(zero_operand);
    if (!is_present || operand(zero_operand).constant) {
      const int32_t zero =
          is_present ? static_cast<int32_t>(float_values(operand(zero_operand))[0]) : int32_t{0};
      if (zero + shift != 0) attributes_.set_zero_points(argument, 0, {zero + shift});
      return;
    }
    attributes_.set_zero_points(argument, 0, {DNNL_RUNTIME_S32_VAL});
    const Desc desc({1}, Type::s32, Tag::a);
    const MemoryRef slot = program.scratch(desc);
    program.add({zero_operand}, [slot, zero_operand, shift, dtype = operand(zero_operand).dtype](
                                    const RunContext& context, void* const* operands,
                                    void* const* results) {
      int32_t& to = *static_cast<int32_t*>(Program::address(slot, context, operands, results));
      to = static_cast<int32_t>(cpu::read_scalar(operands[zero_operand], dtype)) + shift;
    });
    arguments_.push_back({DNNL_ARG_ATTR_ZERO_POINTS | argument, desc, slot});
  }

  Desc channel_desc(size_t i, const Dims& channel_dims) const {
    const Dims dims = operand(i).size() > 1 ? channel_dims : Dims(channel_dims.size(), 1);
    return Desc(dims, Type::f32, contiguous_strides(dims));
  }
  void append_binary(dnnl::algorithm how, const Desc& desc, MemoryRef slot) {
    post_ops_.append_binary(how, desc);
    arguments_.push_back({DNNL_ARG_ATTR_MULTIPLE_POST_OP(count_++) | DNNL_ARG_SRC_1, desc, slot});
  }
  void append_binary(Program& program, dnnl::algorithm how, size_t i, const Dims& channel_dims) {
    append_binary(how, channel_desc(i, channel_dims), make_dense(program, i, operand(i)).slot);
  }

  void rescale(float& unit, float target) {
    if (unit == target) return;
    post_ops_.append_eltwise(1, dnnl::algorithm::eltwise_linear, unit / target, 0);
    ++count_;
    unit = target;
  }

  void append_clamp(float unit) {
    if (!low_ && !high_) return;
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    const double low = low_.value_or(-kInfinity), high = high_.value_or(kInfinity);
    ++count_;
    if (low == 0 && high == kInfinity)
      post_ops_.append_eltwise(1, dnnl::algorithm::eltwise_relu, 0, 0);
    else
      post_ops_.append_eltwise(1, dnnl::algorithm::eltwise_clip, static_cast<float>(low / unit),
                               static_cast<float>(high / unit));
  }

  const KernelRequest& request_;
  DType step_dtype_;
  std::optional<double> low_, high_;
  QuantParams step_, residual_, out_;
  dnnl::primitive_attr attributes_;
  dnnl::post_ops post_ops_;
  int count_ = 0;  ///< number of post-ops
  std::vector<Program::Argument> arguments_;
};

}  // namespace paddle::onednn
