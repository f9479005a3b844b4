// A step of QDQ lowering: linear layers of floats of which only the weights are integers multiply
// packed rows, as language models do. A product reads a byte or half a byte for each weight, and
// the scale of an output channel is taken out of it.

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>

#include "base/parallel.h"
#include "compiler/passes/pattern_rewriter.h"
#include "compiler/passes/quantization/qdq.h"
#include "ops/core/call.h"
#include "ops/generation/packed_format.h"

namespace paddle::passes::qdq {
namespace {

using ir::Operation;
using ir::Value;

constexpr int64_t kUnit = 32;
/// Smaller matrices stay in the caches as floats.
constexpr int64_t kMinPacked = int64_t{1} << 18;
constexpr int64_t kFewRows = 4;

/// Integers [features, channels], or [channels, features], with scales and zero points; features
/// may be two axes, groups and their features.
struct Dequantized {
  Array values, scales, zeros;  ///< int16, float32, int16; scales and zeros of any broadcast shape
  bool channels_first = false;
  int64_t features = 0, channels = 0;
};

/// Steps in an operand that broadcasts to `shape`, by the flat index of features and of channels.
class Offsets {
 public:
  Offsets(const Array& operand, const Dims& shape, bool channels_first)
      : strides_(shape.size()), shape_(shape), channels_first_(channels_first) {
    const Dims own = contiguous_strides(operand.shape);
    const size_t missing = shape.size() - operand.shape.size();
    for (size_t i = missing; i < shape.size(); ++i)
      if (operand.shape[i - missing] != 1) strides_[i] = own[i - missing];
  }
  int64_t of_channel(int64_t c) const {
    return c * (channels_first_ ? strides_.front() : strides_.back());
  }
  int64_t of_feature(int64_t f) const {
    const size_t first = channels_first_ ? 1 : 0;
    if (shape_.size() == 2) return f * strides_[first];
    const int64_t group = shape_[first + 1];
    return f / group * strides_[first] + f % group * strides_[first + 1];
  }

 private:
  Dims strides_;
  const Dims& shape_;
  bool channels_first_;
};

/// Constants after the weight of a layer, if they are such integers.
std::optional<Dequantized> dequantized(const Value* weight, bool channels_first) {
  const Value* from = weight;
  if (const Operation* shaped = produced_by(from, known_ops().reshape)) from = shaped->operands[0];
  const Operation* const o = produced_by(from, known_ops().dequantize);
  if (!o || o->operands.size() < 3) return std::nullopt;
  const Value *x = o->operands[0], *scale = o->operands[1], *zero = o->operands[2];
  if (!x->constant || !scale->constant || !zero->constant) return std::nullopt;
  const DType dtype = x->type.dtype;
  if (!is_8_bit(dtype)) return std::nullopt;
  const Dims& shape = x->constant->shape;
  const Dims wanted = {weight->type.shape[0].value(), weight->type.shape[1].value()};
  const bool grouped = shape.size() == 3 && from != weight;
  const bool fits =
      grouped ? (channels_first ? shape[0] == wanted[0] : shape[2] == wanted[1]) : shape == wanted;
  if (!fits || scale->constant->shape.size() > shape.size() ||
      zero->constant->shape.size() > shape.size())
    return std::nullopt;
  Dequantized out;
  out.channels_first = channels_first;
  out.features = wanted[channels_first ? 1 : 0];
  out.channels = wanted[channels_first ? 0 : 1];
  out.values = x->constant->cast(DType::kI16).contiguous();
  out.scales = scale->constant->cast(DType::kF32).contiguous();
  out.zeros = zero->constant->cast(DType::kI16).contiguous();
  return out;
}

/// Rows of a packed format, and a scale for each.
struct PackedRows {
  std::string format;
  Array rows, scales;
};

/// Writes blocks of 32 weights, each with one scale and one zero point.
class RowPacker {
 public:
  explicit RowPacker(const Dequantized& from)
      : from_(from),
        values_(from.values, from.values.shape, from.channels_first),
        scales_(from.scales, from.values.shape, from.channels_first),
        zeros_(from.zeros, from.values.shape, from.channels_first) {}

  std::optional<PackedRows> pack() {
    if (!has_units()) return std::nullopt;
    const auto range = [](const Array& a) {
      const auto* const values = a.data<int16_t>();
      const auto [least, most] = std::minmax_element(values, values + a.size());
      return std::pair<int, int>(*least, *most);
    };
    const auto [low, high] = range(from_.values);
    const auto [least, largest] = range(from_.zeros);
    // Integers of 4 bits come in bytes. Symmetric ones have one center, others a minimum for each
    // block.
    const bool four_bits = high - low <= 15, centered = least == largest;
    const int most = four_bits ? 7 : 127;
    const bool is_signed = centered && low - least >= -most - 1 && high - least <= most;
    if (!is_signed && !four_bits) return std::nullopt;
    shift_ = -low;
    PackedRows out;
    out.format = !four_bits ? "q8_0" : is_signed ? "q4_0" : "q4_1";
    const PackedFormat& format = *find_packed_format(out.format);
    const int64_t units = from_.features / kUnit;
    out.rows = Array::empty(DType::kU8, {from_.channels, units * format.bytes});
    out.scales = Array::empty(DType::kF32, {from_.channels});
    auto* const rows = out.rows.data<uint8_t>();
    auto* const scales = out.scales.data<float>();
    parallel_for(from_.channels, 16, [&](int64_t begin, int64_t end) {
      for (int64_t c = begin; c < end; ++c) {
        const float scale = channel_scale(c);
        scales[c] = scale;
        for (int64_t u = 0; u < units; ++u)
          put(rows + (c * units + u) * format.bytes, out.format, c, u * kUnit, scale);
      }
    });
    return out;
  }

 private:
  float scale(int64_t c, int64_t f) const {
    return from_.scales.data<float>()[scales_.of_channel(c) + scales_.of_feature(f)];
  }
  int zero(int64_t c, int64_t f) const {
    return from_.zeros.data<int16_t>()[zeros_.of_channel(c) + zeros_.of_feature(f)];
  }
  int value(int64_t c, int64_t f) const {
    return from_.values.data<int16_t>()[values_.of_channel(c) + values_.of_feature(f)];
  }
  /// Whether scales and zero points change only between units, and are numbers.
  bool has_units() const {
    if (from_.features % kUnit != 0) return false;
    for (int64_t f = 0; f < from_.features; ++f)
      if (scales_.of_feature(f) != scales_.of_feature(f / kUnit * kUnit) ||
          zeros_.of_feature(f) != zeros_.of_feature(f / kUnit * kUnit))
        return false;
    const float* const scales = from_.scales.data<float>();
    return std::all_of(scales, scales + from_.scales.size(),
                       [](float s) { return std::isfinite(s) && s >= 0; });
  }
  /// The largest of a channel, so that those of blocks, relative to it, fit float16.
  float channel_scale(int64_t c) const {
    float out = 0;
    for (int64_t f = 0; f < from_.features; f += kUnit) out = std::max(out, scale(c, f));
    return out;
  }
  void put(uint8_t* block, const std::string& format, int64_t c, int64_t first,
           float of_channel) const {
    const float relative = of_channel > 0 ? scale(c, first) / of_channel : 0;
    const int center = zero(c, first);
    put_half(block, relative);
    if (format == "q8_0") {
      for (int64_t i = 0; i < kUnit; ++i)
        block[2 + i] = static_cast<uint8_t>(static_cast<int8_t>(value(c, first + i) - center));
      return;
    }
    const bool has_minimum = format == "q4_1";
    if (has_minimum) put_half(block + 2, -relative * static_cast<float>(center + shift_));
    const int added = has_minimum ? shift_ : 8 - center;
    uint8_t* const low = block + (has_minimum ? 4 : 2);
    for (int64_t i = 0; i < kUnit / 2; ++i) {
      const int one = value(c, first + i) + added, other = value(c, first + i + kUnit / 2) + added;
      low[i] = static_cast<uint8_t>(one | other << 4);
    }
  }
  static void put_half(uint8_t* to, float value) {
    const float16 half(value);
    std::memcpy(to, &half, sizeof half);
  }

  const Dequantized& from_;
  Offsets values_, scales_, zeros_;
  int shift_ = 0;  ///< makes values of 4 bits with a minimum start at 0
};

class WeightPacker final : public PatternRewriter {
 public:
  WeightPacker(ir::Function& function, bool any_rows)
      : PatternRewriter(function), any_rows_(any_rows) {}

 private:
  /// Whether products of x are fast with packed weights.
  bool is_fast(const Shape& x) const {
    if (any_rows_) return true;
    const Dim rows = element_count(std::span<const Dim>(x).first(x.size() - 1));
    return rows.is_constant() && rows.value() <= kFewRows;
  }

  void visit(Iterator at) override {
    Operation& o = **at;
    const bool layer = o.op == &known_ops().linear, matmul = o.op == &known_ops().matmul;
    if (!(layer || matmul) || o.results[0]->type.dtype != DType::kF32) return;
    const Value *const x = o.operands[0], *const weight = o.operands[1];
    const bool transposed = matmul && attribute(o, "transpose_y").as_bool();
    if (matmul && attribute(o, "transpose_x").as_bool()) return;
    if (x->type.dtype != DType::kF32 || x->type.shape.empty() || weight->type.shape.size() != 2 ||
        !is_constant(weight->type.shape))
      return;
    const auto size = element_count(std::span<const Dim>(weight->type.shape)).value();
    if (size < kMinPacked || !is_fast(x->type.shape)) return;
    Value* const bias = layer ? o.operands[2] : nullptr;
    if (bias && bias->type.shape.size() != 1) return;
    const auto from = dequantized(weight, transposed);
    if (!from || !x->type.shape.back().equals(from->features).value_or(false)) return;
    const auto packed = RowPacker(*from).pack();
    if (packed) rewrite(at, *packed, from->features, bias);
  }

  /// The product of the rows, times the scales of channels, plus the bias.
  void rewrite(Iterator at, const PackedRows& packed, int64_t features, Value* bias) {
    Operation& o = **at;
    static const Op& packed_linear = get_op("packed_linear");
    Value* const result = o.results[0];
    Attrs attrs = default_attrs(packed_linear);
    const auto set = [&](const char* name, AttrValue value) {
      attrs[static_cast<size_t>(packed_linear.attr_index(name))] = std::move(value);
    };
    set("format", packed.format);
    set("features", features);
    set("activation_bits", int64_t{16});
    Value* const product = function_.new_value(result->type);
    insert(at, o, packed_linear, {o.operands[0], function_.add_constant(packed.rows), nullptr},
           std::move(attrs), product);
    forget_uses(o);
    Value* const scales = function_.add_constant(packed.scales);
    if (bias) {
      Value* const scaled = function_.new_value(result->type);
      insert(at, o, known_ops().multiply, {product, scales}, {}, scaled);
      o.op = &known_ops().add;
      o.operands = {scaled, bias};
    } else {
      o.op = &known_ops().multiply;
      o.operands = {product, scales};
    }
    o.attrs = default_attrs(*o.op);
    note_uses(o);
  }

  bool any_rows_;
};

}  // namespace

void pack_weights(ir::Function& function, bool any_rows) { WeightPacker(function, any_rows).run(); }

}  // namespace paddle::passes::qdq
