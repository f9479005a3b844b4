// GatedDeltaNet of com.microsoft: linear attention over packed sequences of different lengths with
// the gated delta rule (Yang et al., "Gated Delta Networks: Improving Mamba2 with Delta Rule",
// 2024). Each head keeps a state S [head_size_v, head_size_qk]:
//   S_t = decay_t S_{t-1} + beta_t (v_t - decay_t S_{t-1} k_t) k_t^T,  y_t = scale S_t q_t
// Without the delta rule the change is v_t k_t^T; without gates the decay is 1.

#include <algorithm>
#include <cmath>

#include "onnx/ops/helpers.h"
#include "ops/generated/creation.h"
#include "ops/generated/indexing.h"
#include "ops/generated/linalg.h"
#include "ops/generated/math.h"
#include "ops/generated/nn.h"
#include "ops/generated/reduce.h"
#include "ops/generated/shape.h"

namespace paddle::onnx {
namespace {

constexpr int64_t kMaxTracedSteps = 4096;

/// Division of the tokens into sequences.
struct Sequences {
  int64_t tokens = 0, count = 0, max_length = 0;
  std::vector<int64_t> offsets;  ///< count + 1 offsets; empty if all sequences have the same length

  bool equal_lengths() const { return offsets.empty(); }
  int64_t length(int64_t s) const {
    const auto i = static_cast<size_t>(s);
    return equal_lengths() ? max_length : offsets[i + 1] - offsets[i];
  }
  /// [tokens, ...] to padded [count, max_length, ...]; padding holds arbitrary tokens.
  Tensor padded(const Tensor& x) const {
    Shape shape = x.shape();
    shape.front() = Dim(max_length);
    shape.insert(shape.begin(), Dim(count));
    if (equal_lengths()) return ops::reshape(x, shape);
    std::vector<int64_t> from;
    for (int64_t s = 0; s < count; ++s)
      for (int64_t t = 0; t < max_length; ++t)
        from.push_back(t < length(s) ? offsets[static_cast<size_t>(s)] + t : 0);
    return ops::reshape(ops::index_select(x, int_vector(from), 0), shape);
  }
  /// The inverse of `padded`.
  Tensor packed(const Tensor& x) const {
    Shape shape(x.shape().begin() + 1, x.shape().end());
    shape.front() = Dim(-1);
    const Tensor flat = ops::reshape(x, shape);
    if (equal_lengths()) return flat;
    std::vector<int64_t> from;
    for (int64_t s = 0; s < count; ++s)
      for (int64_t t = 0; t < length(s); ++t) from.push_back(s * max_length + t);
    return ops::index_select(flat, int_vector(from), 0);
  }
  /// Whether each sequence has a token t, [count].
  Tensor has_token(int64_t t) const {
    std::vector<int64_t> out;
    for (int64_t s = 0; s < count; ++s) out.push_back(t < length(s) ? 1 : 0);
    return int_vector(out, DType::kBool);
  }
};

class GatedDeltaNet {
 public:
  explicit GatedDeltaNet(const NodeCall& c) : c_(c) {
    const std::string rule = c.string_attr("update_rule", "gated_delta");
    has_decay_ = rule == "gated" || rule == "gated_delta";
    has_delta_rule_ = rule == "delta" || rule == "gated_delta";
    c.check(has_decay_ || has_delta_rule_ || rule == "linear", "unknown update_rule '", rule, "'");
    c.check(c.has_input(4) == has_decay_, "update_rule '", rule, "' ",
            has_decay_ ? "needs" : "takes no", " decay");
    c.check(c.has_input(5) == has_delta_rule_, "update_rule '", rule, "' ",
            has_delta_rule_ ? "needs" : "takes no", " beta");
    capacity_ = c.int_attr("state_update_capacity", 0);
    c.check(capacity_ >= 0 && capacity_ <= 8, "state_update_capacity is ", capacity_);
    c.check(c.has_input(9) == (capacity_ > 0), "capture_count must be present exactly if ",
            "state_update_capacity is positive");
    c.check(c.has_input(1) == c.has_input(2),
            "key and value must both be present or both be packed with query");
    init_heads();
    init_sequences();
    init_gates();
    init_state();
  }

  Values run() {
    Tensors out, decays, keys, deltas;
    const Tensor q = repeat_key_heads(q_), k = repeat_key_heads(k_);
    for (int64_t t = 0; t < sequences_.max_length; ++t) {
      // [count, heads, size, 1] or [count, heads, 1, size].
      const auto at = [&](const Tensor& x, bool column) {
        return ops::unsqueeze(ops::squeeze(slice_axis(x, 1, t, t + 1), std::vector<int64_t>{1}),
                              {column ? -1 : -2});
      };
      const Tensor key = at(k, false);
      Tensor decayed = state_, update = at(v_, true);
      if (has_decay_) decayed = decayed * at(decay_, false);
      if (has_delta_rule_)
        update = at(beta_, true) * (update - ops::matmul(decayed, key, false, true));
      const Tensor next = decayed + update * key;
      if (sequences_.equal_lengths())
        state_ = next;
      else
        state_ = ops::where(ops::reshape(sequences_.has_token(t), {-1, 1, 1, 1}), next, state_);
      out.push_back(ops::unsqueeze(
          ops::squeeze(ops::matmul(state_, at(q, false), false, true), std::vector<int64_t>{-1}),
          {1}));
      if (c_.has_output(2) && t < capacity_) {
        if (has_decay_) decays.push_back(captured(at(decay_, false), t));
        keys.push_back(captured(at(k_, false), t));
        deltas.push_back(captured(update, t));
      }
    }
    Shape shape(c_.tensor(0).shape().begin(),
                c_.tensor(0).shape().begin() + static_cast<int64_t>(leading_));
    shape.push_back(Dim(value_heads_));
    shape.push_back(Dim(size_v_));
    const Tensor y = sequences_.packed(ops::concat(out, 1)) * scale_;
    Values all = {ops::cast(ops::reshape(y, shape), c_.tensor(0).dtype()), state_};
    if (c_.has_output(2)) all.emplace_back(captured_updates(decays, keys, deltas));
    return all;
  }

 private:
  void init_heads() {
    const Tensor& query = c_.tensor(0);
    const bool joined = !c_.has_input(1);
    const int64_t rank = query.ndim() + (joined ? 1 : 0);
    c_.check(rank == 3 || rank == 4, "the query is ", query.type(),
             ", not [tokens, heads, size] or [batch, steps, heads, size], or packed with key and ",
             "value [tokens, sizes] or [batch, steps, sizes]");
    leading_ = static_cast<size_t>(rank - 2);
    sequences_.tokens = constant_dim(query, 0);
    if (leading_ == 2) {
      const int64_t steps = constant_dim(query, 1);
      c_.check(steps > 0 && sequences_.tokens <= kMaxTokens / steps, "the query is ", query.type());
      sequences_.tokens *= steps;
    }
    c_.check(sequences_.tokens > 0 && sequences_.tokens <= kMaxTokens, "the query has ",
             sequences_.tokens, " tokens");
    if (c_.has_input(6))
      c_.check(c_.tensor(6).ndim() == 4, "initial_state is ", c_.tensor(6).type(),
               ", not [batch, heads, head_size_v, head_size_qk]");
    if (joined) {
      c_.check(c_.has_input(6), "a packed query, key and value needs initial_state");
      value_heads_ = constant_dim(c_.tensor(6), 1);
      size_v_ = constant_dim(c_.tensor(6), 2);
      size_ = constant_dim(c_.tensor(6), 3);
      const int64_t width = constant_dim(query, -1);
      c_.check(value_heads_ > 0 && size_v_ > 0 && size_ > 0 && value_heads_ <= width / size_v_ &&
                   size_ <= width && (width - value_heads_ * size_v_) % (2 * size_) == 0,
               "rows of ", width, " do not match query, key and ", value_heads_, " values of ",
               size_v_);
      key_heads_ = (width - value_heads_ * size_v_) / (2 * size_);
      const Tensor rows =
          ops::reshape(ops::cast(query, DType::kF32), {Dim(sequences_.tokens), Dim(width)});
      const int64_t keys = key_heads_ * size_;
      const auto cut = [&](int64_t from, int64_t to, int64_t heads, int64_t size) {
        return ops::reshape(slice_axis(rows, 1, from, to),
                            {Dim(sequences_.tokens), Dim(heads), Dim(size)});
      };
      check_heads();
      q_ = cut(0, keys, key_heads_, size_);
      k_ = cut(keys, 2 * keys, key_heads_, size_);
      v_ = cut(2 * keys, width, value_heads_, size_v_);
    } else {
      const Tensor &key = c_.tensor(1), &value = c_.tensor(2);
      c_.check_same_dtype({0, 1, 2});
      c_.check(value.ndim() == rank, "value and query have different ranks: ", value.type(),
               " and ", query.type());
      key_heads_ = constant_dim(query, -2);
      size_ = constant_dim(query, -1);
      value_heads_ = constant_dim(value, -2);
      size_v_ = constant_dim(value, -1);
      check_heads();
      c_.check(constant_shape(key) == constant_shape(query), "the key ", key.type(),
               " does not have the shape of the query ", query.type());
      q_ = token_input(0, {Dim(key_heads_), Dim(size_)}, 2);
      k_ = token_input(1, {Dim(key_heads_), Dim(size_)}, 2);
      v_ = token_input(2, {Dim(value_heads_), Dim(size_v_)}, 2);
    }
    if (c_.bool_attr("qk_l2_norm", false)) {
      q_ = l2_normalize(q_);
      k_ = l2_normalize(k_);
    }
    scale_ = c_.float_attr("scale", 0);
    if (scale_ == 0) scale_ = 1 / std::sqrt(static_cast<double>(size_));
  }

  void check_heads() const {
    for (const int64_t size : {key_heads_, size_, value_heads_, size_v_})
      c_.check(size <= kMaxFeatures, "heads or sizes of ", size, " are not supported");
    c_.check(key_heads_ > 0 && size_ > 0 && value_heads_ > 0 && size_v_ > 0 &&
                 value_heads_ % key_heads_ == 0,
             value_heads_, " value heads are not a multiple of ", key_heads_, " key heads");
  }

  /// L2 normalization. Kimi Delta Attention uses a larger epsilon.
  Tensor l2_normalize(const Tensor& x) const {
    const std::string gate = c_.string_attr("gate_activation", "none");
    const double epsilon = gate == "sigmoid" || gate == "kda" ? 1e-6 : 1e-12;
    return x * ops::rsqrt(ops::sum(x * x, std::vector<int64_t>{-1}, DType::kF32, true) + epsilon);
  }

  /// Input i as float32 [tokens, rest...], where `rest` are its last axes.
  Tensor token_input(size_t i, Shape rest, int64_t axes) const {
    const Tensor& x = c_.tensor(i);
    c_.check(x.ndim() == static_cast<int64_t>(leading_) + axes, "shape mismatch: input ", i, " is ",
             x.type(), ", the query ", c_.tensor(0).type());
    for (size_t a = 0; a < leading_; ++a)
      c_.check(constant_dim(x, static_cast<int64_t>(a)) ==
                   constant_dim(c_.tensor(0), static_cast<int64_t>(a)),
               "shape mismatch: input ", i, " is ", x.type(), ", the query ", c_.tensor(0).type());
    for (size_t a = 0; a < rest.size(); ++a)
      c_.check(
          Dim(constant_dim(x, static_cast<int64_t>(leading_ + a))).equals(rest[a]).value_or(false),
          "input ", i, " is ", x.type(), ", expected ", rest[a]);
    rest.insert(rest.begin(), Dim(sequences_.tokens));
    return ops::reshape(ops::cast(x, DType::kF32), rest);
  }

  void init_sequences() {
    if (!c_.has_input(3)) {
      c_.check(c_.has_input(6), "without cu_seqlens initial_state must tell the batch");
      sequences_.count = constant_dim(c_.tensor(6), 0);
      c_.check(sequences_.count > 0 && sequences_.tokens % sequences_.count == 0, sequences_.tokens,
               " tokens are not ", sequences_.count, " equal sequences");
      sequences_.max_length = sequences_.tokens / sequences_.count;
    } else {
      c_.check(leading_ == 1, "cu_seqlens needs a query [tokens, ...]");
      sequences_.offsets = c_.constant_ints(3);
      const auto& offsets = sequences_.offsets;
      c_.check(c_.tensor(3).ndim() == 1 && offsets.size() >= 2 && offsets.front() == 0 &&
                   offsets.back() == sequences_.tokens &&
                   std::is_sorted(offsets.begin(), offsets.end()),
               "cu_seqlens does not increase from 0 to ", sequences_.tokens);
      sequences_.count = static_cast<int64_t>(offsets.size()) - 1;
      for (int64_t s = 0; s < sequences_.count; ++s)
        sequences_.max_length = std::max(sequences_.max_length, sequences_.length(s));
      c_.check(sequences_.max_length <= max_listed_indices() / sequences_.count, sequences_.count,
               " sequences of up to ", sequences_.max_length, " tokens are too many");
    }
    // A trace unrolls all steps.
    if (sequences_.max_length > kMaxTracedSteps) c_.constant_array(0);
    q_ = sequences_.padded(q_);
    k_ = sequences_.padded(k_);
    v_ = sequences_.padded(v_);
  }

  /// A parameter per head or per key feature, as [heads, 1] or [heads, head_size_qk].
  Tensor per_head_parameter(size_t i, bool each) const {
    const Tensor& x = c_.tensor(i);
    const Dims shape = constant_shape(x);
    const bool wide =
        each && (shape == Dims{value_heads_, size_} || shape == Dims{value_heads_ * size_});
    c_.check(wide || shape == Dims{value_heads_}, "input ", i, " is ", x.type(), " for ",
             value_heads_, " heads");
    return ops::reshape(ops::cast(x, DType::kF32), {Dim(value_heads_), Dim(wide ? size_ : 1)});
  }

  void init_gates() {
    const std::string gate = c_.string_attr("gate_activation", "none"),
                      rate = c_.string_attr("beta_activation", "none");
    const bool soft = gate == "softplus" || gate == "qwen",
               bounded = gate == "sigmoid" || gate == "kda";
    c_.check(soft || bounded || gate == "none", "unknown gate_activation '", gate, "'");
    c_.check(rate == "sigmoid" || rate == "none", "unknown beta_activation '", rate, "'");
    const bool activated = gate != "none";
    c_.check(c_.has_input(7) == activated && c_.has_input(8) == activated, "gate_activation '",
             gate, "' ", activated ? "needs" : "takes no", " a_log and dt_bias");
    c_.check_same_dtype({4, 5});
    if (has_decay_) {
      const bool each = c_.tensor(4).ndim() == static_cast<int64_t>(leading_) + 2;
      decay_size_ = each ? size_ : 1;
      Tensor g = ops::reshape(
          token_input(4, each ? Shape{Dim(value_heads_), Dim(size_)} : Shape{Dim(value_heads_)},
                      each ? 2 : 1),
          {Dim(sequences_.tokens), Dim(value_heads_), Dim(decay_size_)});
      if (activated) {
        const Tensor speed = ops::exp(per_head_parameter(7, false));
        g = g + per_head_parameter(8, each);
        g = soft ? ops::neg(speed) * ops::softplus(g)
                 : ops::sigmoid(speed * g) * c_.float_attr("gate_lower_bound", -5.0);
      }
      decay_ = sequences_.padded(ops::exp(g));
    }
    if (has_delta_rule_) {
      beta_ = ops::unsqueeze(token_input(5, {Dim(value_heads_)}, 1), {-1});
      if (rate == "sigmoid") beta_ = ops::sigmoid(beta_);
      beta_ = sequences_.padded(beta_);
    }
  }

  void init_state() {
    const Dims shape = {sequences_.count, value_heads_, size_v_, size_};
    if (!c_.has_input(6)) {
      state_ = ops::full(to_shape(shape), 0.0, DType::kF32);
    } else {
      c_.check(constant_shape(c_.tensor(6)) == shape, "initial_state is ", c_.tensor(6).type(),
               ", not ", str(shape));
      state_ = ops::cast(c_.tensor(6), DType::kF32);
    }
    if (capacity_ == 0) return;
    c_.check(c_.tensor(9).ndim() == 1 && constant_dim(c_.tensor(9), 0) == sequences_.count,
             "capture_count is ", c_.tensor(9).type(), " for ", sequences_.count, " sequences");
    counts_ = c_.tensor(9);
    if (!c_.has_input(10)) return;
    c_.check(constant_shape(c_.tensor(10)) == Dims{1}, "state_update_active is ",
             c_.tensor(10).type(), ", not a single element");
    counts_ = ops::where(ops::not_equal(c_.tensor(10), int_scalar(0, DType::kI32)), counts_,
                         int_scalar(0, DType::kI32));
  }

  /// Repeats key heads for the value heads that share them.
  Tensor repeat_key_heads(const Tensor& x) const {
    if (key_heads_ == value_heads_) return x;
    const Shape wide = {x.dim(0), x.dim(1), Dim(key_heads_), Dim(value_heads_ / key_heads_),
                        Dim(size_)};
    return ops::reshape(ops::expand(ops::unsqueeze(x, {3}), wide),
                        {x.dim(0), x.dim(1), Dim(value_heads_), Dim(size_)});
  }

  /// Captured values of token t as rows [count, ...]; zeros beyond capture_count.
  Tensor captured(const Tensor& x, int64_t t) const {
    const Tensor asked = ops::logical_and(ops::less_than(int_scalar(t, DType::kI32), counts_),
                                          sequences_.has_token(t));
    return ops::where(ops::unsqueeze(asked, {-1}),
                      ops::reshape(x, {Dim(sequences_.count), Dim(-1)}), scalar(0, DType::kF32));
  }

  /// Captured state updates: decays of all tokens, then keys, then changes of the state.
  Tensor captured_updates(Tensors decays, Tensors keys, Tensors deltas) const {
    const auto zeros = [&](int64_t columns) {
      return ops::full({Dim(sequences_.count), Dim(columns)}, 0.0, DType::kF32);
    };
    if (capacity_ == 0) return zeros(0);
    if (!has_decay_)
      for (int64_t t = 0; t < static_cast<int64_t>(keys.size()); ++t)
        decays.push_back(
            captured(ops::full({Dim(sequences_.count), Dim(value_heads_)}, 1.0, DType::kF32), t));
    const int64_t missing = capacity_ - static_cast<int64_t>(keys.size());
    decays.push_back(zeros(missing * value_heads_ * decay_size_));
    keys.push_back(zeros(missing * key_heads_ * size_));
    deltas.push_back(zeros(missing * value_heads_ * size_v_));
    Tensors all = std::move(decays);
    all.insert(all.end(), keys.begin(), keys.end());
    all.insert(all.end(), deltas.begin(), deltas.end());
    return ops::concat(all, 1);
  }

  static constexpr int64_t kMaxTokens = int64_t{1} << 31, kMaxFeatures = int64_t{1} << 28;
  const NodeCall& c_;
  bool has_decay_ = false, has_delta_rule_ = false;
  size_t leading_ = 1;  ///< leading axes: tokens, or batch and steps
  int64_t capacity_ = 0, key_heads_ = 0, value_heads_ = 0, size_ = 0, size_v_ = 0, decay_size_ = 1;
  double scale_ = 1;
  Sequences sequences_;
  Tensor q_, k_, v_, decay_, beta_, state_, counts_;
};

Values gated_delta_net(NodeCall& c) { return GatedDeltaNet(c).run(); }

}  // namespace

OperatorTable contrib_gated_delta_net_operators() {
  static constexpr Operator operators[] = {{"GatedDeltaNet", 1, gated_delta_net}};
  return operators;
}

}  // namespace paddle::onnx
