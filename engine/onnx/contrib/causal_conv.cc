// VarlenCausalConvWithState of com.microsoft: depthwise causal convolution over packed sequences of
// different lengths, each continued from a state.

#include <algorithm>

#include "onnx/ops/helpers.h"
#include "ops/generated/creation.h"
#include "ops/generated/indexing.h"
#include "ops/generated/math.h"
#include "ops/generated/nn.h"
#include "ops/generated/shape.h"

namespace paddle::onnx {
namespace {

constexpr int64_t kMaxTaps = 4096;

/// Concatenation of all states, all tokens and one zero row, with index arithmetic.
class Rows {
 public:
  Rows(const NodeCall& c, int64_t tokens, int64_t before)
      : ends_(c.constant_ints(2)), tokens_(tokens), before_(before) {
    c.check(c.tensor(2).ndim() == 1 && ends_.size() >= 2 && ends_.front() == 0 &&
                ends_.back() == tokens && std::is_sorted(ends_.begin(), ends_.end()),
            "cumulative_sequence_length does not increase from 0 to ", tokens);
    c.check(before <= max_listed_indices() / batch(), "the states hold ", before, " rows of ",
            batch(), " sequences, too many");
  }

  int64_t batch() const { return static_cast<int64_t>(ends_.size()) - 1; }
  int64_t length(int64_t s) const { return ends_[at(s + 1)] - ends_[at(s)]; }
  int64_t zero() const { return batch() * before_ + tokens_; }
  /// Row of a position in sequence s; negative positions are in its state.
  int64_t row(int64_t s, int64_t position) const {
    return position < 0 ? (s + 1) * before_ + position
                        : batch() * before_ + ends_[at(s)] + position;
  }
  /// Rows `back` positions before each token.
  Tensor shifted(int64_t back) const {
    std::vector<int64_t> from;
    for (int64_t s = 0; s < batch(); ++s)
      for (int64_t t = 0; t < length(s); ++t) from.push_back(row(s, t - back));
    return int_vector(from);
  }
  /// The last `before` rows of each sequence.
  Tensor last() const {
    std::vector<int64_t> from;
    for (int64_t s = 0; s < batch(); ++s)
      for (int64_t k = before_; k > 0; --k) from.push_back(row(s, length(s) - k));
    return int_vector(from);
  }
  /// The first `counts` tokens of each sequence, zero-padded to `room` rows.
  Tensor first(const std::vector<int64_t>& counts, int64_t room) const {
    std::vector<int64_t> from;
    for (int64_t s = 0; s < batch(); ++s)
      for (int64_t t = 0; t < room; ++t)
        from.push_back(t < std::min(counts[at(s)], length(s)) ? row(s, t) : zero());
    return int_vector(from);
  }

 private:
  static size_t at(int64_t i) { return static_cast<size_t>(i); }

  std::vector<int64_t> ends_;
  int64_t tokens_, before_;
};

Values packed_causal_convolution(NodeCall& c) {
  c.check(!c.has_input(6) && !c.has_input(7) && c.int_attr("group_size", 1) == 1 &&
              c.int_attr("delta_offset", 0) == 0,
          "weights that depend on the token (kernel_delta) are not supported");
  c.check_same_dtype({0, 1, 3, 4});
  const Tensor &x = c.tensor(0), &weight = c.tensor(1), &state = c.tensor(4);
  c.check(x.ndim() == 2, "the input is ", x.type(), ", not [tokens, channels]");
  const int64_t tokens = constant_dim(x, 0), channels = constant_dim(x, 1);
  c.check(weight.ndim() == 3 && constant_dim(weight, 0) == channels &&
              constant_dim(weight, 1) == 1 && constant_dim(weight, 2) > 0,
          "the weight is ", weight.type(), ", not [", channels, ", 1, kernel_size]");
  c.check(channels > 0, "the input has no channels");
  const int64_t taps = constant_dim(weight, 2), step = c.int_attr("dilation", 1);
  c.check(taps <= kMaxTaps, "kernels of more than ", kMaxTaps, " taps are not supported");
  c.check(tokens <= max_listed_indices() / taps, tokens, " tokens are too many for a kernel of ",
          taps);
  c.check(step >= 1 && step <= int64_t{1} << 31, "dilation is ", step);
  const std::string activation = c.string_attr("activation", "none");
  const bool swish = activation == "silu" || activation == "swish";
  c.check(swish || activation == "none", "unknown activation '", activation, "'");
  const int64_t before = (taps - 1) * step, room = c.int_attr("state_update_capacity", 0);
  c.check(room >= 0 && room <= 8, "state_update_capacity is ", room);
  c.check(c.has_input(5) == (room > 0), "capture_count must be present exactly if ",
          "state_update_capacity is positive");
  const Rows rows(c, tokens, before);
  c.check(constant_shape(state) == Dims{rows.batch(), channels, before}, "initial_state is ",
          state.type(), ", not ", str(Dims{rows.batch(), channels, before}));
  if (c.has_input(3))
    c.check(constant_shape(c.tensor(3)) == Dims{channels}, "the bias is ", c.tensor(3).type(),
            " for ", channels, " channels");

  const Tensor all = ops::concat(
      {ops::reshape(ops::transpose(state, {0, 2, 1}), {Dim(rows.batch() * before), Dim(channels)}),
       x, ops::full({Dim(1), Dim(channels)}, 0.0, x.dtype())},
      0);
  const Tensor wide = ops::cast(all, DType::kF32);
  Tensor y;
  for (int64_t j = 0; j < taps; ++j) {
    const Tensor tap =
        ops::reshape(ops::cast(slice_axis(weight, 2, j, j + 1), DType::kF32), {channels});
    const Tensor product = ops::index_select(wide, rows.shifted((taps - 1 - j) * step), 0) * tap;
    y = y ? y + product : product;
  }
  if (c.has_input(3)) y = y + ops::cast(c.tensor(3), DType::kF32);
  if (swish) y = ops::silu(y);
  const auto per_sequence = [&](const Tensor& indices, int64_t each) {
    return ops::reshape(ops::index_select(all, indices, 0),
                        {Dim(rows.batch()), Dim(each), Dim(channels)});
  };
  Values out = {ops::cast(y, x.dtype()),
                ops::transpose(per_sequence(rows.last(), before), {0, 2, 1})};
  if (!c.has_output(2)) return out;
  std::vector<int64_t> counts(static_cast<size_t>(rows.batch()), 0);
  if (room > 0) {
    c.check(constant_shape(c.tensor(5)) == Dims{rows.batch()}, "capture_count is ",
            c.tensor(5).type(), " for ", rows.batch(), " sequences");
    counts = c.constant_ints(5);
  }
  out.emplace_back(per_sequence(rows.first(counts, room), room));
  return out;
}

}  // namespace

OperatorTable contrib_causal_conv_operators() {
  static constexpr Operator operators[] = {
      {"VarlenCausalConvWithState", 1, packed_causal_convolution}};
  return operators;
}

}  // namespace paddle::onnx
