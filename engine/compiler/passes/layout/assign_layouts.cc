// Layout assignment: retraces the function under an interpreter that calls convolutions, and what
// depends on them, with channels last. Every converted result is also available channels first, as
// a convert_transpose view that dead code elimination removes if nothing reads it.

#include <algorithm>
#include <numeric>
#include <optional>
#include <unordered_map>

#include "base/text.h"
#include "compiler/passes/passes.h"
#include "ir/replay.h"
#include "ir/tracer.h"
#include "ops/core/call.h"
#include "ops/core/data_format.h"
#include "ops/core/rules.h"
#include "ops/generated/shape.h"

namespace paddle::passes {
namespace {

/// NCL, NCHW or NCDHW.
bool is_spatial(size_t rank) { return rank >= 3 && rank <= 5; }

std::vector<int64_t> to_last_axes(size_t rank) {
  std::vector<int64_t> axes(rank, 1);
  axes[0] = 0;
  std::iota(axes.begin() + 1, axes.end() - 1, 2);
  return axes;
}
std::vector<int64_t> to_first_axes(size_t rank) {
  std::vector<int64_t> axes(rank, 0);
  axes[1] = static_cast<int64_t>(rank) - 1;
  std::iota(axes.begin() + 2, axes.end(), 1);
  return axes;
}

/// The channels-last axis of a channels-first axis.
int64_t channels_last_axis(int64_t axis, size_t rank) {
  const auto count = static_cast<int64_t>(rank);
  if (axis < 0) axis += count;
  return axis == 0 ? 0 : axis == 1 ? count - 1 : axis - 1;
}

/// Channels of a channels-first tensor that can be converted. Kernels for float64 are no faster
/// with channels last, so those stay.
std::optional<int64_t> channels_of(const TensorType& type) {
  if (!is_spatial(type.shape.size()) || !type.shape[1].is_constant() || type.dtype == DType::kF64)
    return std::nullopt;
  return type.shape[1].value();
}

class LayoutAssignment final : public ForwardingInterpreter {
 public:
  /// Convolutions of at least `min_channels` channels are converted, and volumes of `min_volume`.
  LayoutAssignment(int64_t min_channels, int64_t min_volume)
      : min_channels_(min_channels), min_volume_(min_volume) {}

  Tensors apply(const OpCall& c) override {
    const ScopedInterpreter below(next());
    static const Op& transpose = get_op("transpose");
    if (&c.op == &transpose && is_spatial(c.results[0].shape.size())) return convert_transpose(c);
    if (auto moved = convert_squeeze(c)) return {*moved};
    if (const auto spatial = data_format_operands(c.op)) {
      if (can_convert(c, *spatial)) return convert_data_format(c, *spatial);
    } else if (c.op.has(kElementwise) && c.results.size() == 1) {
      if (can_convert_elementwise(c)) return convert_elementwise(c);
    } else if (c.op.has(kLayoutTransparent)) {
      if (can_convert_transparent(c))
        if (auto attrs = channels_last_attrs(c)) return convert_transparent(c, std::move(*attrs));
    } else if (c.op.has(kReduction) && c.operands.size() == 1 && c.results.size() == 1) {
      if (auto moved = convert_reduction(c)) return {*moved};
    }
    return next().apply(c);
  }

 private:
  /// The channels-last form of a tensor if it was computed that way, else undefined.
  Tensor channels_last_form(const Tensor& t) const {
    const ir::Value* const value = t.defined() ? ir::traced_value(t) : nullptr;
    const auto it = value ? channels_last_.find(value) : channels_last_.end();
    return it == channels_last_.end() ? Tensor() : it->second;
  }

  Tensor to_last(const Tensor& t) const {
    const Tensor available = channels_last_form(t);
    return available.defined() ? available : ops::transpose(t, to_last_axes(t.shape().size()));
  }

  /// The channels-first view of `moved`, which is remembered as its channels-last form.
  Tensor to_first(const Tensor& moved) {
    const Tensor first = ops::transpose(moved, to_first_axes(moved.shape().size()));
    channels_last_[ir::traced_value(first)] = moved;
    return first;
  }

  /// Transposes of the traced function that convert between the layouts.
  Tensors convert_transpose(const OpCall& c) {
    const size_t rank = c.results[0].shape.size();
    const std::vector<int64_t> axes = TransposeAttrs(c.attrs).perm;
    const Tensor available = channels_last_form(c.operands[0]);
    if (axes == to_last_axes(rank) && available.defined()) return {available};
    if (axes == to_first_axes(rank)) return {to_first(c.operands[0])};
    return next().apply(c);
  }

  /// A squeeze of a spatial axis of size 1, or an unsqueeze of one, keeps channels last.
  std::optional<Tensor> convert_squeeze(const OpCall& c) {
    static const Op &squeeze = get_op("squeeze"), &unsqueeze = get_op("unsqueeze");
    if (&c.op != &squeeze && &c.op != &unsqueeze) return std::nullopt;
    const Tensor available = channels_last_form(c.operands[0]);
    const size_t ranks[] = {c.operands[0].shape().size(), c.results[0].shape.size()};
    if (!available.defined() || std::ranges::max(ranks) != 4 || std::ranges::min(ranks) != 3)
      return std::nullopt;
    const auto at = static_cast<size_t>(c.op.attr_index("axis"));
    if (!c.attrs[at].is_int() && !c.attrs[at].is_list()) return std::nullopt;
    const std::vector<int64_t> axes = c.attrs[at].as_ints();
    const int64_t axis = axes.size() != 1 ? 0 : axes[0] < 0 ? axes[0] + 4 : axes[0];
    if (axis < 2) return std::nullopt;
    Attrs attrs = c.attrs;
    attrs[at] = AttrValue(std::vector<int64_t>{channels_last_axis(axis, 4)});
    return to_first(call(c.op, {available}, std::move(attrs))[0]);
  }

  bool can_convert(const OpCall& c, const DataFormatOperands& spatial) const {
    const AttrValue& format = c.attrs[static_cast<size_t>(spatial.format)];
    if (!format.is_string() || (format.as_string() != "NCHW" && format.as_string() != "NCDHW"))
      return false;
    bool available = false, enough = false;
    const auto check = [&](const TensorType& type) {
      const auto channels = channels_of(type);
      // int8 kernels exist for channels last only.
      const bool is_int8 = type.dtype == DType::kU8 || type.dtype == DType::kI8;
      const int64_t wanted = type.shape.size() == 5 ? min_volume_ : min_channels_;
      enough = enough || (channels && (is_int8 || *channels >= wanted));
      return channels.has_value();
    };
    for (const size_t i : spatial.operands) {
      if (!c.operands[i].defined()) continue;
      if (!check(c.operands[i].type())) return false;
      available = available || channels_last_form(c.operands[i]).defined();
    }
    for (const size_t r : spatial.results)
      if (!check(c.results[r])) return false;
    // Padding given per axis of the tensor would have to be permuted.
    const int padding = c.op.attr_index("padding");
    if (padding >= 0 && c.attrs[static_cast<size_t>(padding)].is_list())
      for (const AttrValue& pair : c.attrs[static_cast<size_t>(padding)].as_list())
        if (pair.is_list()) return false;
    return c.op.has(kPrefersChannelsLast) ? enough : available;
  }

  Tensors convert_data_format(const OpCall& c, const DataFormatOperands& spatial) {
    Tensors operands = c.operands;
    for (const size_t i : spatial.operands)
      if (operands[i].defined()) operands[i] = to_last(operands[i]);
    Attrs attrs = c.attrs;
    AttrValue& format = attrs[static_cast<size_t>(spatial.format)];
    format = AttrValue(format.as_string() == "NCHW" ? "NHWC" : "NDHWC");
    for (const size_t a : spatial.attrs) {
      AttrValue::List dims = c.attrs[a].as_list();
      std::rotate(dims.begin() + 1, dims.begin() + 2, dims.end());
      attrs[a] = AttrValue(std::move(dims));
    }
    Tensors results = call(c.op, std::move(operands), std::move(attrs));
    for (const size_t r : spatial.results) results[r] = to_first(results[r]);
    return results;
  }

  /// True if at least one, and at least half, of the matching operands have a channels-last form.
  template <class F>
  bool mostly_channels_last(const Tensors& operands, F&& is_spatial) const {
    int available = 0, spatial = 0;
    for (const Tensor& t : operands) {
      if (!t.defined() || !is_spatial(t)) continue;
      ++spatial;
      available += channels_last_form(t).defined();
    }
    return available > 0 && 2 * available >= spatial;
  }

  bool can_convert_elementwise(const OpCall& c) const {
    const Shape& shape = c.results[0].shape;
    const bool whole = std::all_of(c.operands.begin(), c.operands.end(),
                                   [](const Tensor& t) { return t.defined(); });
    return is_spatial(shape.size()) && whole &&
           mostly_channels_last(c.operands,
                                [&](const Tensor& t) { return same_shape(t.shape(), shape); });
  }

  Tensors convert_elementwise(const OpCall& c) {
    Tensors operands = c.operands;
    const size_t rank = c.results[0].shape.size();
    for (Tensor& t : operands) {
      if (t.shape().empty()) continue;
      if (t.shape().size() < rank) {
        Shape shape(rank - t.shape().size(), Dim(1));
        shape.insert(shape.end(), t.shape().begin(), t.shape().end());
        t = ops::reshape(t, shape);
      }
      t = to_last(t);
    }
    return {to_first(call(c.op, std::move(operands), c.attrs)[0])};
  }

  bool can_convert_transparent(const OpCall& c) const {
    const size_t rank = c.results[0].shape.size();
    return is_spatial(rank) && mostly_channels_last(c.operands, [&](const Tensor& t) {
             return t.shape().size() == rank;
           });
  }

  /// The attributes with axes converted to channels last; none if they do not allow it.
  static std::optional<Attrs> channels_last_attrs(const OpCall& c) {
    const size_t rank = c.results[0].shape.size();
    Attrs attrs = c.attrs;
    if (const int axis = c.op.attr_index("axis"); axis >= 0) {
      AttrValue& named = attrs[static_cast<size_t>(axis)];
      if (!named.is_int()) return std::nullopt;
      named = AttrValue(channels_last_axis(named.as_int(), rank));
    }
    if (const int axes = c.op.attr_index("axes"); axes >= 0) {
      AttrValue& named = attrs[static_cast<size_t>(axes)];
      if (!named.is_list()) return std::nullopt;
      std::vector<int64_t> moved = named.as_ints();
      for (int64_t& axis : moved) axis = channels_last_axis(axis, rank);
      named = AttrValue(moved);
    }
    if (const int pad = c.op.attr_index("pad"); pad >= 0) {
      // Padding before and after each axis, first axis first.
      AttrValue& sizes = attrs[static_cast<size_t>(pad)];
      const PadAttrs given(c.attrs);
      if (given.pad.size() != 2 * rank || given.mode != "constant" || !given.pad_from_left_axis)
        return std::nullopt;
      std::vector<int64_t> moved(2 * rank);
      for (size_t axis = 0; axis < rank; ++axis)
        for (size_t side = 0; side < 2; ++side)
          moved[2 * static_cast<size_t>(channels_last_axis(static_cast<int64_t>(axis), rank)) +
                side] = given.pad[2 * axis + side];
      sizes = AttrValue(moved);
    }
    return attrs;
  }

  Tensors convert_transparent(const OpCall& c, Attrs attrs) {
    Tensors operands = c.operands;
    const size_t rank = c.results[0].shape.size();
    for (Tensor& t : operands)
      if (t.defined() && t.shape().size() == rank) t = to_last(t);
    Tensors results = call(c.op, std::move(operands), std::move(attrs));
    results[0] = to_first(results[0]);
    return results;
  }

  std::optional<Tensor> convert_reduction(const OpCall& c) {
    const Tensor x = channels_last_form(c.operands[0]);
    const int axis = c.op.attr_index("axis"), keep = c.op.attr_index("keepdim");
    if (!x.defined() || axis < 0 || keep < 0) return std::nullopt;
    const AttrValue& given = c.attrs[static_cast<size_t>(axis)];
    if (!given.is_int() && !given.is_list()) return std::nullopt;
    const size_t rank = x.shape().size();
    std::vector<bool> reduced(rank);
    std::vector<int64_t> axes;
    for (const int64_t a : given.as_ints()) {
      const int64_t at = a < 0 ? a + static_cast<int64_t>(rank) : a;
      reduced[static_cast<size_t>(at)] = true;
      axes.push_back(channels_last_axis(at, rank));
    }
    const bool keepdim = c.attrs[static_cast<size_t>(keep)].as_bool();
    // Without keepdim the result has no layout, so its axes must come out in the same order: either
    // channels are reduced or all spatial axes are.
    const bool reduces_spatial =
        std::all_of(reduced.begin() + 2, reduced.end(), [](bool axis) { return axis; });
    if (axes.empty() || (!keepdim && !reduced[1] && !reduces_spatial)) return std::nullopt;
    Attrs attrs = c.attrs;
    // A single axis (argmax) stays a single axis.
    attrs[static_cast<size_t>(axis)] = given.is_int() ? AttrValue(axes[0]) : AttrValue(axes);
    const Tensor out = call(c.op, {x}, std::move(attrs))[0];
    return keepdim ? to_first(out) : out;
  }

  int64_t min_channels_, min_volume_;
  std::unordered_map<const ir::Value*, Tensor> channels_last_;
};

/// True if a convolution has enough channels on its own, without others next to it.
bool has_wide_convolution(const ir::Function& function) {
  bool found = false;
  ir::for_each_operation(function.body, [&](const ir::Operation& o) {
    if (!o.op->has(kPrefersChannelsLast)) return;
    const auto check = [&](const ir::Value* v) {
      found = found || channels_of(v->type).value_or(0) >= function.target.images.channels_last;
    };
    const DataFormatOperands spatial = *data_format_operands(*o.op);
    for (const size_t i : spatial.operands)
      if (o.operands[i]) check(o.operands[i]);
    for (const size_t r : spatial.results) check(o.results[r]);
  });
  return found;
}

}  // namespace

void assign_layouts(ir::Function& function) {
  bool any = false;
  ir::for_each_operation(
      function.body, [&](const ir::Operation& o) { any = any || o.op->has(kPrefersChannelsLast); });
  const ImageLayout images = function.target.images;
  if (!any || images.channels_last == 0) return;
  LayoutAssignment assignment(
      has_wide_convolution(function) ? images.also_channels_last : images.channels_last,
      images.also_channels_last);
  ir::retrace(function, assignment);
}

}  // namespace paddle::passes
