// Convolutions and products on integers: sums in 32 bits, and all that follows them as
// post-operations. Values before the result's zero point is added are counted in a unit: the steps
// that they are rounded to first, where scales are known when the kernel is prepared.

#include "kernels/onednn/quantized.h"

#include <cmath>
#include <limits>

#include "base/parallel.h"
#include "base/serial_scope.h"
#include "kernels/cpu/conv_shape.h"
#include "kernels/cpu/matmul_shape.h"
#include "kernels/onednn/program.h"
#include "ops/generated/attrs.h"
#include "ops/quantized.h"

namespace paddle::onednn {
namespace {

namespace q = quantized;
using Desc = dnnl::memory::desc;
using Tag = dnnl::memory::format_tag;
using Type = dnnl::memory::data_type;

constexpr int64_t kNearBytes = int64_t{1} << 20;  // of a residual that a second-level cache holds

constexpr int32_t kShift = -128;  // takes unsigned bytes to signed ones, which a right side must be

/// A constant operand as an array.
Array constant_of(const Layout& layout) {
  Array view;
  view.dtype = layout.dtype;
  view.shape = layout.shape;
  view.strides = contiguous_strides(layout.shape);
  view.storage =
      Storage::borrow(const_cast<void*>(layout.constant),
                      static_cast<size_t>(storage_bytes(layout.dtype, layout.size())), nullptr);
  return view;
}

std::vector<float> numbers(const Layout& layout) {
  const Array view = constant_of(layout);
  std::vector<float> values(static_cast<size_t>(layout.size()));
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>(view.number(static_cast<int64_t>(i)));
  return values;
}

/// Reads each cache line once.
void read_through(const std::byte* data, int64_t bytes) {
  constexpr int64_t kLine = 64;
  unsigned seen = 0;
  for (int64_t i = 0; i < bytes; i += kLine) seen += static_cast<unsigned>(data[i]);
  asm volatile("" ::"r"(seen));  // the reads stay
}

/// A scale and zero point that stay the same; 0 and 1 where there is none.
struct Steps {
  bool present = false;
  float scale = 1;
  int32_t zero = 0;
};

/// What is done to the sums, as post-operations and the arguments that they take.
class Finish {
 public:
  Finish(const KernelRequest& request, DType step_dtype, std::optional<double> low,
         std::optional<double> high)
      : request_(request), step_dtype_(step_dtype), low_(low), high_(high) {}

  /// False if the scales and zero points that must be known are not.
  bool read() {
    return read_steps(q::kStepScale, q::kStepZero, step_) &&
           read_steps(q::kResidualScale, q::kResidualZero, residual_) &&
           read_steps(q::kOutScale, q::kOutZero, out_) && residual_fits();
  }

  /// Appends what must be done first, and gives the primitive's attributes. `channel_mask` has the
  /// bit of the axis of channels, `channel_dims` the result's dims with 1 for the other axes.
  dnnl::primitive_attr attributes(Program& program, int channel_mask, const Dims& channel_dims) {
    attributes_ = user_scratch();
    set_zero(program, q::kXZero, DNNL_ARG_SRC, 0);
    if (request_.operands.size() > q::kYZero)
      set_zero(program, q::kYZero, DNNL_ARG_WEIGHTS,
               operand(q::kWeight).dtype == DType::kU8 ? kShift : 0);
    const bool known_scale = present(q::kScale) && operand(q::kScale).constant;
    const bool float_bias = present(q::kBias) && operand(q::kBias).dtype == DType::kF32;
    const bool known_bias = float_bias && operand(q::kBias).constant;
    const float first_unit = step_.present ? step_.scale : out_.scale;
    // In `unit` from the start where that can be multiplied into what is known.
    float unit = known_scale && (!float_bias || known_bias) ? first_unit : 1.0f;
    if (known_scale) {
      std::vector<float> scales = numbers(operand(q::kScale));
      for (float& s : scales) s /= unit;
      attributes_.set_output_scales(scales.size() > 1 ? channel_mask : 0, scales);
    } else if (present(q::kScale)) {
      append_binary(dnnl::algorithm::binary_mul, q::kScale, channel_dims);
    }
    if (known_bias && unit != 1.0f) {
      std::vector<float> bias = numbers(operand(q::kBias));
      for (float& b : bias) b /= unit;
      const Desc desc = channel_desc(q::kBias, channel_dims);
      append_binary(dnnl::algorithm::binary_add, desc, program.keep(desc, bias.data()));
    } else if (float_bias) {
      append_binary(dnnl::algorithm::binary_add, q::kBias, channel_dims);
    }
    if (step_.present) {
      to_unit(unit, step_.scale);
      const auto [least, greatest] = range_of(step_dtype_);
      posts_.append_eltwise(1, dnnl::algorithm::eltwise_round, 0, 0);
      posts_.append_eltwise(1, dnnl::algorithm::eltwise_clip,
                            least - static_cast<float>(step_.zero),
                            greatest - static_cast<float>(step_.zero));
      count_ += 2;
    }
    to_unit(unit, out_.scale);
    if (present(q::kResidual)) {
      posts_.append_sum(residual_.scale / unit, residual_.zero,
                        data_type(operand(q::kResidual).dtype));
      ++count_;
    }
    bound(unit);
    if (out_.zero != 0) attributes_.set_zero_points(DNNL_ARG_DST, 0, {out_.zero});
    attributes_.set_post_ops(posts_);
    return attributes_;
  }

  /// Appends what brings `bytes` bytes of the residual, from `offset` on, to where the sum is taken
  /// and, where they are there already, near: in order they come much faster from memory than as
  /// the primitive reads them.
  void begin(Program& program, size_t offset, size_t bytes) const {
    if (!present(q::kResidual)) return;
    program.add([offset, bytes](const RunContext&, void* const* operands, void* const* results) {
      const std::byte* const from = static_cast<const std::byte*>(operands[q::kResidual]) + offset;
      std::byte* const to = static_cast<std::byte*>(results[0]) + offset;
      parallel_for(static_cast<int64_t>(bytes), 65536, [&](int64_t first, int64_t last) {
        if (from != to)
          std::memcpy(to + first, from + first, static_cast<size_t>(last - first));
        else
          read_through(from + first, last - first);
      });
    });
  }

  const std::vector<Program::Argument>& arguments() const { return arguments_; }
  bool has_whole_bias() const {
    return present(q::kBias) && operand(q::kBias).dtype == DType::kI32;
  }

 private:
  const Layout& operand(size_t i) const { return request_.operands[i]; }
  bool present(size_t i) const { return operand(i).present; }

  bool read_steps(size_t scale, size_t zero, Steps& steps) const {
    steps.present = present(scale);
    if (!steps.present) return true;
    if (!operand(scale).constant || (present(zero) && !operand(zero).constant)) return false;
    steps.scale = numbers(operand(scale))[0];
    if (present(zero)) steps.zero = static_cast<int32_t>(numbers(operand(zero))[0]);
    return steps.scale > 0 && std::isfinite(steps.scale);
  }

  /// The sum is taken in the result's memory, element by element of one size.
  bool residual_fits() const {
    const DType result = request_.results[0].dtype;
    if (result != DType::kU8 && result != DType::kI8 && present(q::kOutScale)) return false;
    return !present(q::kResidual) || item_size(operand(q::kResidual).dtype) == item_size(result);
  }

  static std::pair<float, float> range_of(DType dtype) {
    switch (dtype) {
      case DType::kU8:
        return {0.0f, 255.0f};
      case DType::kI8:
        return {-128.0f, 127.0f};
      case DType::kU16:
        return {0.0f, 65535.0f};
      default:
        return {-32768.0f, 32767.0f};
    }
  }

  /// The zero point of an argument whose values were shifted by `shift`.
  void set_zero(Program& program, size_t zero_operand, int argument, int32_t shift) {
    const bool given = present(zero_operand);
    if (!given || operand(zero_operand).constant) {
      const int32_t zero =
          given ? static_cast<int32_t>(numbers(operand(zero_operand))[0]) : int32_t{0};
      if (zero + shift != 0) attributes_.set_zero_points(argument, 0, {zero + shift});
      return;
    }
    attributes_.set_zero_points(argument, 0, {DNNL_RUNTIME_S32_VAL});
    const Desc desc({1}, Type::s32, Tag::a);
    const Slot slot = program.scratch(desc);
    program.add([slot, zero_operand, shift, dtype = operand(zero_operand).dtype](
                    const RunContext& context, void* const* operands, void* const* results) {
      const void* const from = operands[zero_operand];
      int32_t& to = *static_cast<int32_t*>(Program::address(slot, context, operands, results));
      visit_dtype(dtype, [&](auto tag) {
        using T = typename decltype(tag)::type;
        to = static_cast<int32_t>(static_cast<float>(*static_cast<const T*>(from))) + shift;
      });
    });
    arguments_.push_back({DNNL_ARG_ATTR_ZERO_POINTS | argument, desc, slot});
  }

  Desc channel_desc(size_t i, const Dims& channel_dims) const {
    const Dims dims = operand(i).size() > 1 ? channel_dims : Dims(channel_dims.size(), 1);
    return Desc(dims, Type::f32, contiguous_strides(dims));
  }
  void append_binary(dnnl::algorithm how, const Desc& desc, Slot slot) {
    posts_.append_binary(how, desc);
    arguments_.push_back({DNNL_ARG_ATTR_MULTIPLE_POST_OP(count_++) | DNNL_ARG_SRC_1, desc, slot});
  }
  void append_binary(dnnl::algorithm how, size_t i, const Dims& channel_dims) {
    append_binary(how, channel_desc(i, channel_dims), {Slot::kOperand, i});
  }

  void to_unit(float& unit, float wanted) {
    if (unit == wanted) return;
    posts_.append_eltwise(1, dnnl::algorithm::eltwise_linear, unit / wanted, 0);
    ++count_;
    unit = wanted;
  }

  void bound(float unit) {
    if (!low_ && !high_) return;
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    const double low = low_.value_or(-kInfinity), high = high_.value_or(kInfinity);
    ++count_;
    if (low == 0 && high == kInfinity)
      posts_.append_eltwise(1, dnnl::algorithm::eltwise_relu, 0, 0);
    else
      posts_.append_eltwise(1, dnnl::algorithm::eltwise_clip, static_cast<float>(low / unit),
                            static_cast<float>(high / unit));
  }

  const KernelRequest& request_;
  DType step_dtype_;
  std::optional<double> low_, high_;
  Steps step_, residual_, out_;
  dnnl::primitive_attr attributes_;
  dnnl::post_ops posts_;
  int count_ = 0;  ///< of post-operations
  std::vector<Program::Argument> arguments_;
};

/// What the processor multiplies exactly.
bool computes(const KernelRequest& request) {
  const Layout &x = request.operands[q::kX], &weight = request.operands[q::kWeight];
  if (x.size() == 0) return false;
  return sums_bytes_exactly() || (weight.constant && takes_integers(x.dtype, constant_of(weight)));
}

std::unique_ptr<Kernel> nothing_to_do() {
  return make_kernel([](const RunContext&, void* const*, void* const*) {});
}

/// Appends what makes signed bytes of an operand's unsigned ones, less 128 each.
Slot shifted(Program& program, size_t operand, const Desc& desc) {
  const Slot slot = program.scratch(desc);
  program.add([slot, operand, bytes = static_cast<int64_t>(desc.get_size())](
                  const RunContext& context, void* const* operands, void* const* results) {
    const auto* const from = static_cast<const uint8_t*>(operands[operand]);
    auto* const to = static_cast<uint8_t*>(Program::address(slot, context, operands, results));
    parallel_for(bytes, 65536, [&](int64_t first, int64_t last) {
      for (int64_t i = first; i < last; ++i) to[i] = from[i] ^ 0x80;
    });
  });
  return slot;
}

}  // namespace

bool takes_integers(DType x, const Array& weight) {
  if (sums_bytes_exactly()) return true;
  // Pairs of products of bytes in 16 bits: 2 * 255 * 64 is the largest that fits.
  if (!multiplies_bytes() || x != DType::kU8) return false;
  const Array packed = weight.contiguous();
  const int8_t* const values = packed.data<int8_t>();
  return std::all_of(values, values + packed.size(), [](int8_t v) { return v >= -64 && v <= 64; });
}

std::unique_ptr<Kernel> prepare_quantized_conv2d(const KernelRequest& request) {
  if (request.results[0].size() == 0) return nothing_to_do();
  if (!computes(request)) return nullptr;
  const QuantizedConv2dAttrs attrs(request.attrs);
  const Layout &image = request.operands[q::kX], &result = request.results[0];
  const cpu::ConvShape s = cpu::ConvShape::of(request.op, request.attrs, image.shape,
                                              request.operands[q::kWeight].shape, result.shape);
  Finish finish(request, attrs.step_dtype, attrs.low, attrs.high);
  if (!finish.read()) return nullptr;
  const bool serial = is_small(s.batch * s.out_channels * s.positions() * s.depth() / 4);
  const SerialScope scope(serial);

  auto program = std::make_unique<Program>();
  const dnnl::primitive_attr attributes =
      finish.attributes(*program, 1 << 1, {1, s.out_channels, 1, 1});
  const Tag tag = s.channels_last ? Tag::nhwc : Tag::nchw;
  // A residual is brought near image by image where all of it is too large to stay there.
  const Layout& residual = request.operands[q::kResidual];
  const bool apart = s.channels_last && residual.present && result.size() > kNearBytes;
  const int64_t parts = apart ? s.batch : 1, batch = s.batch / parts;
  const Desc in({batch, s.in_channels, s.height, s.width}, data_type(image.dtype), tag);
  const Desc out({batch, s.out_channels, s.out_height, s.out_width}, data_type(result.dtype), tag);
  const Desc weight =
      s.groups == 1
          ? Desc({s.out_channels, s.in_channels, s.kernel_height, s.kernel_width}, Type::s8,
                 Tag::oihw)
          : Desc({s.groups, s.group_outputs(), s.group_inputs(), s.kernel_height, s.kernel_width},
                 Type::s8, Tag::goihw);
  const Desc any_weight(weight.dims(), Type::s8, Tag::any);
  const Desc bias = finish.has_whole_bias() ? Desc({s.out_channels}, Type::s32, Tag::a) : Desc();
  // Integers are computed with channels last; other images are brought there and back.
  const Desc in_last(in.dims(), in.data_type(), Tag::nhwc);
  const Desc out_last(out.dims(), out.data_type(), Tag::nhwc);
  const Layout& whole_bias = request.operands[q::kBias];
  if (finish.has_whole_bias() && whole_bias.size() != s.out_channels) return nullptr;
  using Forward = dnnl::convolution_forward;
  const dnnl::memory::dims strides = {s.stride_height, s.stride_width},
                           dilations = {s.dilation_height - 1, s.dilation_width - 1},
                           before = {s.top, s.left}, after = {s.bottom, s.right};
  const Forward::primitive_desc description(
      Forward::desc(dnnl::prop_kind::forward_inference, dnnl::algorithm::convolution_direct,
                    in_last, any_weight, bias, out_last, strides, dilations, before, after),
      attributes, cpu_engine(), true);
  if (!description) return nullptr;

  const Slot w = program->convert_operand(q::kWeight, request.operands[q::kWeight], weight,
                                          description.weights_desc());
  const bool direct = out == out_last;
  const Slot scratchpad = program->scratch(description.scratchpad_desc());
  for (int64_t part = 0; part < parts; ++part) {
    const size_t in_bytes = in.get_size(), out_bytes = out.get_size();
    const auto at = static_cast<size_t>(part);
    const Slot x = program->convert({Slot::kOperand, q::kX, at * in_bytes}, in, in_last);
    const Slot y = direct ? Slot{Slot::kResult, 0, at * out_bytes} : program->scratch(out_last);
    std::vector<Program::Argument> arguments = finish.arguments();
    arguments.insert(arguments.end(), {{DNNL_ARG_SRC, in_last, x},
                                       {DNNL_ARG_WEIGHTS, description.weights_desc(), w},
                                       {DNNL_ARG_DST, out_last, y}});
    if (finish.has_whole_bias())
      arguments.push_back({DNNL_ARG_BIAS, bias, {Slot::kOperand, q::kBias}});
    if (direct)
      finish.begin(*program, at * out_bytes, out_bytes);
    else if (residual.present)
      program->reorder({Slot::kOperand, q::kResidual},
                       Desc(out.dims(), data_type(residual.dtype), tag), y,
                       Desc(out.dims(), data_type(residual.dtype), Tag::nhwc));
    program->add(Forward(description), description.scratchpad_desc(), scratchpad, arguments);
    if (!direct) program->reorder(y, out_last, {Slot::kResult, 0}, out);
  }
  program->set_name(description.impl_info_str());
  program->set_serial(serial);
  return program;
}

std::unique_ptr<Kernel> prepare_quantized_linear(const KernelRequest& request) {
  if (request.results[0].size() == 0) return nothing_to_do();
  if (!computes(request)) return nullptr;
  const QuantizedLinearAttrs attrs(request.attrs);
  const Layout &left = request.operands[q::kX], &right = request.operands[q::kWeight];
  const Layout& result = request.results[0];
  const int64_t depth = right.shape[0], columns = right.shape[1], rows = left.size() / depth;
  Finish finish(request, attrs.step_dtype, attrs.low, attrs.high);
  if (!finish.read()) return nullptr;
  const bool serial = is_small(rows * columns * depth / 4);
  const SerialScope scope(serial);

  auto program = std::make_unique<Program>();
  const dnnl::primitive_attr attributes = finish.attributes(*program, 1 << 1, {1, columns});
  const Desc x({rows, depth}, data_type(left.dtype), Tag::ab);
  const Desc weight({depth, columns}, Type::s8, Tag::ab);
  const Desc any_weight(weight.dims(), Type::s8, Tag::any);
  const Desc y({rows, columns}, data_type(result.dtype), Tag::ab);
  // One number for all is the same for each column.
  const Layout& bias_layout = request.operands[q::kBias];
  if (finish.has_whole_bias() && bias_layout.size() != columns) return nullptr;
  const Desc bias = finish.has_whole_bias() ? Desc({1, columns}, Type::s32, Tag::ab) : Desc();
  const dnnl::matmul::primitive_desc description(finish.has_whole_bias()
                                                     ? dnnl::matmul::desc(x, any_weight, bias, y)
                                                     : dnnl::matmul::desc(x, any_weight, y),
                                                 attributes, cpu_engine(), true);
  if (!description) return nullptr;

  const Slot w = program->convert_operand(q::kWeight, right, weight, description.weights_desc());
  std::vector<Program::Argument> arguments = finish.arguments();
  arguments.insert(arguments.end(), {{DNNL_ARG_SRC, x, {Slot::kOperand, q::kX}},
                                     {DNNL_ARG_WEIGHTS, description.weights_desc(), w},
                                     {DNNL_ARG_DST, y, {Slot::kResult, 0}}});
  if (finish.has_whole_bias())
    arguments.push_back({DNNL_ARG_BIAS, bias, {Slot::kOperand, q::kBias}});
  finish.begin(*program, 0, y.get_size());
  program->add(dnnl::matmul(description), description.scratchpad_desc(), arguments);
  program->set_name(description.impl_info_str());
  program->set_serial(serial);
  return program;
}

std::unique_ptr<Kernel> prepare_quantized_matmul(const KernelRequest& request) {
  if (request.results[0].size() == 0) return nothing_to_do();
  const Layout &left = request.operands[q::kX], &right = request.operands[q::kWeight];
  const Layout& result = request.results[0];
  if (left.size() == 0 || !sums_bytes_exactly()) return nullptr;
  const QuantizedMatmulAttrs attrs(request.attrs);
  const auto s = cpu::MatmulShape::of(left, right, attrs.transpose_x, attrs.transpose_y);
  Finish finish(request, attrs.step_dtype, attrs.low, attrs.high);
  const Layout& bias_layout = request.operands[q::kBias];
  if (!finish.read() || s.batch.size() > 8) return nullptr;
  const bool serial = is_small(s.batches() * s.m * s.n * s.k / 4);
  const SerialScope scope(serial);

  auto program = std::make_unique<Program>();
  Dims channels(s.batch.size() + 2, 1);
  channels.back() = s.n;
  const dnnl::primitive_attr attributes =
      finish.attributes(*program, 1 << (channels.size() - 1), channels);
  const auto matrix = [&](Type type, const Dims& batch, bool transposed, int64_t rows,
                          int64_t columns) {
    Dims dims = s.batch;
    for (size_t i = 0; i < dims.size(); ++i)
      if (batch[i] == 0) dims[i] = 1;
    dims.insert(dims.end(), {rows, columns});
    Dims stored = dims;
    if (transposed) std::swap(stored[stored.size() - 1], stored[stored.size() - 2]);
    Dims strides = contiguous_strides(stored);
    if (transposed) std::swap(strides[strides.size() - 1], strides[strides.size() - 2]);
    return Desc(dims, type, strides);
  };
  const Desc x = matrix(data_type(left.dtype), s.x_batch, attrs.transpose_x, s.m, s.k);
  const Desc y = matrix(Type::s8, s.y_batch, attrs.transpose_y, s.k, s.n);
  Dims out_dims = s.batch;
  out_dims.insert(out_dims.end(), {s.m, s.n});
  const Desc out(out_dims, data_type(result.dtype), contiguous_strides(out_dims));
  if (finish.has_whole_bias() && bias_layout.size() != s.n) return nullptr;
  const Desc bias =
      finish.has_whole_bias() ? Desc(channels, Type::s32, contiguous_strides(channels)) : Desc();
  const dnnl::matmul::primitive_desc description(
      finish.has_whole_bias() ? dnnl::matmul::desc(x, y, bias, out) : dnnl::matmul::desc(x, y, out),
      attributes, cpu_engine(), true);
  if (!description || is_reference(description.impl_info_str())) return nullptr;

  const Slot w = right.dtype == DType::kU8 ? shifted(*program, q::kWeight, y)
                                           : Slot{Slot::kOperand, q::kWeight};
  std::vector<Program::Argument> arguments = finish.arguments();
  arguments.insert(arguments.end(), {{DNNL_ARG_SRC, x, {Slot::kOperand, q::kX}},
                                     {DNNL_ARG_WEIGHTS, y, w},
                                     {DNNL_ARG_DST, out, {Slot::kResult, 0}}});
  if (finish.has_whole_bias())
    arguments.push_back({DNNL_ARG_BIAS, bias, {Slot::kOperand, q::kBias}});
  finish.begin(*program, 0, out.get_size());
  program->add(dnnl::matmul(description), description.scratchpad_desc(), arguments);
  program->set_name(description.impl_info_str());
  program->set_serial(serial);
  return program;
}

}  // namespace paddle::onednn
