// Layouts and forms of operations: images to channels last where an operation prefers that, and
// operations into parts that fusion can join with their neighbours. Both replay the function under
// an interpreter that changes some calls and passes on the others.

#include <algorithm>
#include <numeric>
#include <optional>
#include <unordered_map>

#include "base/text.h"
#include "compiler/passes/passes.h"
#include "ir/replay.h"
#include "ir/tracer.h"
#include "ops/call.h"
#include "ops/generated/attrs.h"
#include "ops/generated/ops.h"
#include "ops/images.h"
#include "ops/rules.h"

namespace paddle::passes {
namespace {

// ---- channels last
// -------------------------------------------------------------------------------

/// Images; lines, which are images of one row without its axis; and volumes, which have planes of
/// rows and columns.
bool is_image(size_t rank) { return rank >= 3 && rank <= 5; }

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

/// Where an axis of an image with channels first stands with channels last.
int64_t in_last(int64_t axis, size_t rank) {
  const auto count = static_cast<int64_t>(rank);
  if (axis < 0) axis += count;
  return axis == 0 ? 0 : axis == 1 ? count - 1 : axis - 1;
}

/// Channels of an image with channels first that may be moved. The loops for float64 gain nothing
/// by it.
std::optional<int64_t> channels_of(const TensorType& type) {
  if (!is_image(type.shape.size()) || !type.shape[1].is_constant() || type.dtype == DType::kF64)
    return std::nullopt;
  return type.shape[1].value();
}

class ChannelsLast final : public PassingInterpreter {
 public:
  /// Convolutions move from so many channels on.
  explicit ChannelsLast(int64_t channels) : channels_(channels) {}

  Tensors apply(const OpCall& c) override {
    const BelowScope below(next());
    static const Op& transpose = get_op("transpose");
    if (&c.op == &transpose && is_image(c.results[0].shape.size())) return transposed(c);
    if (auto moved = reshaped(c)) return {*moved};
    if (const auto images = images_of(c.op)) {
      if (moves(c, *images)) return image_call(c, *images);
    } else if (c.op.has(kElementwise) && c.results.size() == 1) {
      if (elementwise_moves(c)) return elementwise_call(c);
    } else if (c.op.has(kPermutable)) {
      if (permutable_moves(c))
        if (auto attrs = attrs_in_last(c)) return permutable_call(c, std::move(*attrs));
    } else if (c.op.has(kReduction) && c.operands.size() == 1 && c.results.size() == 1) {
      if (auto moved = reduction_call(c)) return {*moved};
    }
    return next().apply(c);
  }

 private:
  /// The tensor with its channels last if it was made so; undefined if not.
  Tensor known(const Tensor& t) const {
    const ir::Value* const value = t.defined() ? ir::traced_value(t) : nullptr;
    const auto it = value ? last_.find(value) : last_.end();
    return it == last_.end() ? Tensor() : it->second;
  }

  Tensor to_last(const Tensor& t) const {
    const Tensor made = known(t);
    return made.defined() ? made : ops::transpose(t, to_last_axes(t.shape().size()));
  }

  /// The image in its own order, a view of `moved`, which is remembered.
  Tensor to_first(const Tensor& moved) {
    const Tensor first = ops::transpose(moved, to_first_axes(moved.shape().size()));
    last_[ir::traced_value(first)] = moved;
    return first;
  }

  /// A transpose of the function's own may bring channels to the end or back.
  Tensors transposed(const OpCall& c) {
    const size_t rank = c.results[0].shape.size();
    const std::vector<int64_t> axes = TransposeAttrs(c.attrs).perm;
    const Tensor made = known(c.operands[0]);
    if (axes == to_last_axes(rank) && made.defined()) return {made};
    if (axes == to_first_axes(rank)) return {to_first(c.operands[0])};
    return next().apply(c);
  }

  /// An image without the axis of its one row or column, or a line with it, keeps its channels
  /// last.
  std::optional<Tensor> reshaped(const OpCall& c) {
    static const Op &squeeze = get_op("squeeze"), &unsqueeze = get_op("unsqueeze");
    if (&c.op != &squeeze && &c.op != &unsqueeze) return std::nullopt;
    const Tensor made = known(c.operands[0]);
    const size_t ranks[] = {c.operands[0].shape().size(), c.results[0].shape.size()};
    if (!made.defined() || std::ranges::max(ranks) != 4 || std::ranges::min(ranks) != 3)
      return std::nullopt;
    const auto at = static_cast<size_t>(c.op.attr_index("axis"));
    if (!c.attrs[at].is_int() && !c.attrs[at].is_list()) return std::nullopt;
    const std::vector<int64_t> axes = c.attrs[at].as_ints();
    const int64_t axis = axes.size() != 1 ? 0 : axes[0] < 0 ? axes[0] + 4 : axes[0];
    if (axis < 2) return std::nullopt;
    Attrs attrs = c.attrs;
    attrs[at] = AttrValue(std::vector<int64_t>{in_last(axis, 4)});
    return to_first(call(c.op, {made}, std::move(attrs))[0]);
  }

  bool moves(const OpCall& c, const Images& images) const {
    const AttrValue& format = c.attrs[static_cast<size_t>(images.format)];
    if (!format.is_string() || (format.as_string() != "NCHW" && format.as_string() != "NCDHW"))
      return false;
    bool made = false, many = false;
    const auto look = [&](const TensorType& type) {
      const auto channels = channels_of(type);
      // On integers there are kernels for channels last alone.
      const bool bytes = type.dtype == DType::kU8 || type.dtype == DType::kI8;
      const int64_t wanted = type.shape.size() == 5 ? kSomeChannels : channels_;
      many = many || (channels && (bytes || *channels >= wanted));
      return channels.has_value();
    };
    for (const size_t i : images.operands) {
      if (!c.operands[i].defined()) continue;
      if (!look(c.operands[i].type())) return false;
      made = made || known(c.operands[i]).defined();
    }
    for (const size_t r : images.results)
      if (!look(c.results[r])) return false;
    // Padding that is given per axis names the axes.
    const int padding = c.op.attr_index("padding");
    if (padding >= 0 && c.attrs[static_cast<size_t>(padding)].is_list())
      for (const AttrValue& pair : c.attrs[static_cast<size_t>(padding)].as_list())
        if (pair.is_list()) return false;
    return c.op.has(kPrefersChannelsLast) ? many : made;
  }

  Tensors image_call(const OpCall& c, const Images& images) {
    Tensors operands = c.operands;
    for (const size_t i : images.operands)
      if (operands[i].defined()) operands[i] = to_last(operands[i]);
    Attrs attrs = c.attrs;
    AttrValue& format = attrs[static_cast<size_t>(images.format)];
    format = AttrValue(format.as_string() == "NCHW" ? "NHWC" : "NDHWC");
    for (const size_t a : images.attrs) {
      AttrValue::List dims = c.attrs[a].as_list();
      std::rotate(dims.begin() + 1, dims.begin() + 2, dims.end());
      attrs[a] = AttrValue(std::move(dims));
    }
    Tensors results = call(c.op, std::move(operands), std::move(attrs));
    for (const size_t r : images.results) results[r] = to_first(results[r]);
    return results;
  }

  /// At least half of the operands that are images, and one, are there with channels last.
  template <class F>
  bool mostly_last(const Tensors& operands, F&& is_image) const {
    int made = 0, images = 0;
    for (const Tensor& t : operands) {
      if (!t.defined() || !is_image(t)) continue;
      ++images;
      made += known(t).defined();
    }
    return made > 0 && 2 * made >= images;
  }

  bool elementwise_moves(const OpCall& c) const {
    const Shape& shape = c.results[0].shape;
    const bool whole = std::all_of(c.operands.begin(), c.operands.end(),
                                   [](const Tensor& t) { return t.defined(); });
    return is_image(shape.size()) && whole &&
           mostly_last(c.operands, [&](const Tensor& t) { return same_shape(t.shape(), shape); });
  }

  Tensors elementwise_call(const OpCall& c) {
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

  bool permutable_moves(const OpCall& c) const {
    const size_t rank = c.results[0].shape.size();
    return is_image(rank) &&
           mostly_last(c.operands, [&](const Tensor& t) { return t.shape().size() == rank; });
  }

  /// The attributes with the axes that they name where these stand with channels last.
  static std::optional<Attrs> attrs_in_last(const OpCall& c) {
    const size_t rank = c.results[0].shape.size();
    Attrs attrs = c.attrs;
    if (const int axis = c.op.attr_index("axis"); axis >= 0) {
      AttrValue& named = attrs[static_cast<size_t>(axis)];
      if (!named.is_int()) return std::nullopt;
      named = AttrValue(in_last(named.as_int(), rank));
    }
    if (const int axes = c.op.attr_index("axes"); axes >= 0) {
      AttrValue& named = attrs[static_cast<size_t>(axes)];
      if (!named.is_list()) return std::nullopt;
      std::vector<int64_t> moved = named.as_ints();
      for (int64_t& axis : moved) axis = in_last(axis, rank);
      named = AttrValue(moved);
    }
    if (const int pad = c.op.attr_index("pad"); pad >= 0) {
      // Borders of all axes from the first on, before and behind each.
      AttrValue& sizes = attrs[static_cast<size_t>(pad)];
      const PadAttrs given(c.attrs);
      if (given.pad.size() != 2 * rank || given.mode != "constant" || !given.pad_from_left_axis)
        return std::nullopt;
      std::vector<int64_t> moved(2 * rank);
      for (size_t axis = 0; axis < rank; ++axis)
        for (size_t side = 0; side < 2; ++side)
          moved[2 * static_cast<size_t>(in_last(static_cast<int64_t>(axis), rank)) + side] =
              given.pad[2 * axis + side];
      sizes = AttrValue(moved);
    }
    return attrs;
  }

  Tensors permutable_call(const OpCall& c, Attrs attrs) {
    Tensors operands = c.operands;
    const size_t rank = c.results[0].shape.size();
    for (Tensor& t : operands)
      if (t.defined() && t.shape().size() == rank) t = to_last(t);
    Tensors results = call(c.op, std::move(operands), std::move(attrs));
    results[0] = to_first(results[0]);
    return results;
  }

  std::optional<Tensor> reduction_call(const OpCall& c) {
    const Tensor x = known(c.operands[0]);
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
      axes.push_back(in_last(at, rank));
    }
    const bool keepdim = c.attrs[static_cast<size_t>(keep)].as_bool();
    // Without the reduced axes, channels must not come to stand behind planes, rows or columns.
    const bool one_pixel =
        std::all_of(reduced.begin() + 2, reduced.end(), [](bool axis) { return axis; });
    if (axes.empty() || (!keepdim && !reduced[1] && !one_pixel)) return std::nullopt;
    Attrs attrs = c.attrs;
    // An attribute that takes one axis (argmax) keeps its form.
    attrs[static_cast<size_t>(axis)] = given.is_int() ? AttrValue(axes[0]) : AttrValue(axes);
    const Tensor out = call(c.op, {x}, std::move(attrs))[0];
    return keepdim ? to_first(out) : out;
  }

  int64_t channels_;
  std::unordered_map<const ir::Value*, Tensor> last_;
};

class Lowering final : public PassingInterpreter {
 public:
  Tensors apply(const OpCall& c) override {
    const BelowScope below(next());
    if (c.op.def->lower) {
      CallContext context(c.op, c.attrs, c.operands, c.results);
      if (Tensors results = c.op.def->lower(context); !results.empty()) return results;
    }
    return next().apply(c);
  }
};

template <class Wanted>
bool any_operation(const ir::Function& function, Wanted wanted) {
  bool found = false;
  ir::for_each_operation(function.body,
                         [&](const ir::Operation& o) { found = found || wanted(*o.op); });
  return found;
}

bool has_many_channels(const ir::Function& function) {
  bool found = false;
  ir::for_each_operation(function.body, [&](const ir::Operation& o) {
    if (!o.op->has(kPrefersChannelsLast)) return;
    const auto look = [&](const ir::Value* v) {
      found = found || channels_of(v->type).value_or(0) >= kManyChannels;
    };
    const Images images = *images_of(*o.op);
    for (const size_t i : images.operands)
      if (o.operands[i]) look(o.operands[i]);
    for (const size_t r : images.results) look(o.results[r]);
  });
  return found;
}

}  // namespace

void prefer_channels_last(ir::Function& function) {
  if (!any_operation(function, [](const Op& op) { return op.has(kPrefersChannelsLast); })) return;
  ChannelsLast rewriter(has_many_channels(function) ? kSomeChannels : kManyChannels);
  ir::rewrite(function, rewriter);
}

void lower(ir::Function& function) {
  if (!any_operation(function, [](const Op& op) { return op.def->lower != nullptr; })) return;
  Lowering rewriter;
  ir::rewrite(function, rewriter);
}

}  // namespace paddle::passes
