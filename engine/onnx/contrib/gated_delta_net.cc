// GatedDeltaNet of com.microsoft: attention without softmax over packed sequences of any lengths.
// Each head keeps a state [head_size_v, head_size_qk] that every token fades, corrects and reads.

#include <algorithm>
#include <cmath>

#include "onnx/ops/helpers.h"

namespace paddle::onnx {
namespace {

constexpr int64_t kMostTracedSteps = 4096;

/// How the tokens belong to sequences.
struct Sequences {
  int64_t tokens = 0, count = 0, longest = 0;
  std::vector<int64_t> ends;  ///< count + 1 offsets; empty if all sequences have the same length

  bool even() const { return ends.empty(); }
  int64_t length(int64_t s) const {
    const auto i = static_cast<size_t>(s);
    return even() ? longest : ends[i + 1] - ends[i];
  }
  /// [tokens, ...] as [count, longest, ...]; behind the end of a sequence stands any token.
  Tensor side_by_side(const Tensor& x) const {
    Shape shape = x.shape();
    shape.front() = Dim(longest);
    shape.insert(shape.begin(), Dim(count));
    if (even()) return ops::reshape(x, shape);
    std::vector<int64_t> from;
    for (int64_t s = 0; s < count; ++s)
      for (int64_t t = 0; t < longest; ++t)
        from.push_back(t < length(s) ? ends[static_cast<size_t>(s)] + t : 0);
    return ops::reshape(ops::index_select(x, int_vector(from), 0), shape);
  }
  /// The way back.
  Tensor packed(const Tensor& x) const {
    Shape shape(x.shape().begin() + 1, x.shape().end());
    shape.front() = Dim(-1);
    const Tensor flat = ops::reshape(x, shape);
    if (even()) return flat;
    std::vector<int64_t> from;
    for (int64_t s = 0; s < count; ++s)
      for (int64_t t = 0; t < length(s); ++t) from.push_back(s * longest + t);
    return ops::index_select(flat, int_vector(from), 0);
  }
  /// 1 for the sequences that have a token t, [count].
  Tensor reach(int64_t t) const {
    std::vector<int64_t> out;
    for (int64_t s = 0; s < count; ++s) out.push_back(t < length(s) ? 1 : 0);
    return int_vector(out, DType::kBool);
  }
};

class DeltaNet {
 public:
  explicit DeltaNet(const NodeCall& c) : c_(c) {
    const std::string rule = c.string_attr("update_rule", "gated_delta");
    gated_ = rule == "gated" || rule == "gated_delta";
    delta_ = rule == "delta" || rule == "gated_delta";
    c.check(gated_ || delta_ || rule == "linear", "unknown update_rule '", rule, "'");
    c.check(c.has_input(4) == gated_, "update_rule '", rule, "' ", gated_ ? "needs" : "takes no",
            " decay");
    c.check(c.has_input(5) == delta_, "update_rule '", rule, "' ", delta_ ? "needs" : "takes no",
            " beta");
    room_ = c.int_attr("state_update_capacity", 0);
    c.check(room_ >= 0 && room_ <= 8, "state_update_capacity is ", room_);
    c.check(c.has_input(9) == (room_ > 0), "capture_count must be there exactly if ",
            "state_update_capacity is positive");
    c.check(c.has_input(1) == c.has_input(2),
            "key and value must both be there or both be joined to query");
    split_heads();
    find_sequences();
    find_gates();
    find_state();
  }

  Values run() {
    Tensors out, decays, keys, deltas;
    const Tensor q = by_head(q_), k = by_head(k_);
    for (int64_t t = 0; t < sequences_.longest; ++t) {
      // [count, heads, size, 1] or [count, heads, 1, size].
      const auto at = [&](const Tensor& x, bool column) {
        return ops::unsqueeze(ops::squeeze(slice_axis(x, 1, t, t + 1), std::vector<int64_t>{1}),
                              {column ? -1 : -2});
      };
      const Tensor key = at(k, false);
      Tensor faded = state_, change = at(v_, true);
      if (gated_) faded = faded * at(decay_, false);
      if (delta_) change = at(beta_, true) * (change - ops::matmul(faded, key, false, true));
      const Tensor next = faded + change * key;
      if (sequences_.even())
        state_ = next;
      else
        state_ = ops::where(ops::reshape(sequences_.reach(t), {-1, 1, 1, 1}), next, state_);
      out.push_back(ops::unsqueeze(
          ops::squeeze(ops::matmul(state_, at(q, false), false, true), std::vector<int64_t>{-1}),
          {1}));
      if (c_.has_output(2) && t < room_) {
        if (gated_) decays.push_back(kept(at(decay_, false), t));
        keys.push_back(kept(at(k_, false), t));
        deltas.push_back(kept(change, t));
      }
    }
    Shape shape(c_.tensor(0).shape().begin(),
                c_.tensor(0).shape().begin() + static_cast<int64_t>(leading_));
    shape.push_back(Dim(heads_));
    shape.push_back(Dim(size_v_));
    const Tensor y = sequences_.packed(ops::concat(out, 1)) * scale_;
    Values all = {ops::cast(ops::reshape(y, shape), c_.tensor(0).dtype()), state_};
    if (c_.has_output(2)) all.emplace_back(transitions(decays, keys, deltas));
    return all;
  }

 private:
  void split_heads() {
    const Tensor& query = c_.tensor(0);
    const bool joined = !c_.has_input(1);
    const int64_t rank = query.ndim() + (joined ? 1 : 0);
    c_.check(rank == 3 || rank == 4, "the query is ", query.type(),
             ", not [tokens, heads, size] or [batch, steps, heads, size], or joined with key and ",
             "value [tokens, sizes] or [batch, steps, sizes]");
    leading_ = static_cast<size_t>(rank - 2);
    sequences_.tokens = constant_dim(query, 0);
    if (leading_ == 2) {
      const int64_t steps = constant_dim(query, 1);
      c_.check(steps > 0 && sequences_.tokens <= kMostTokens / steps, "the query is ",
               query.type());
      sequences_.tokens *= steps;
    }
    c_.check(sequences_.tokens > 0 && sequences_.tokens <= kMostTokens, "the query has ",
             sequences_.tokens, " tokens");
    if (c_.has_input(6))
      c_.check(c_.tensor(6).ndim() == 4, "initial_state is ", c_.tensor(6).type(),
               ", not [batch, heads, head_size_v, head_size_qk]");
    if (joined) {
      c_.check(c_.has_input(6), "query, key and value in one need initial_state");
      heads_ = constant_dim(c_.tensor(6), 1);
      size_v_ = constant_dim(c_.tensor(6), 2);
      size_ = constant_dim(c_.tensor(6), 3);
      const int64_t width = constant_dim(query, -1);
      c_.check(heads_ > 0 && size_v_ > 0 && size_ > 0 && heads_ <= width / size_v_ &&
                   size_ <= width && (width - heads_ * size_v_) % (2 * size_) == 0,
               "rows of ", width, " do not hold query, key and ", heads_, " values of ", size_v_);
      shared_ = (width - heads_ * size_v_) / (2 * size_);
      const Tensor rows =
          ops::reshape(ops::cast(query, DType::kF32), {Dim(sequences_.tokens), Dim(width)});
      const int64_t keys = shared_ * size_;
      const auto cut = [&](int64_t from, int64_t to, int64_t heads, int64_t size) {
        return ops::reshape(slice_axis(rows, 1, from, to),
                            {Dim(sequences_.tokens), Dim(heads), Dim(size)});
      };
      check_heads();
      q_ = cut(0, keys, shared_, size_);
      k_ = cut(keys, 2 * keys, shared_, size_);
      v_ = cut(2 * keys, width, heads_, size_v_);
    } else {
      const Tensor &key = c_.tensor(1), &value = c_.tensor(2);
      c_.check_same_dtype({0, 1, 2});
      c_.check(value.ndim() == rank, "the value is ", value.type(), " beside a query ",
               query.type());
      shared_ = constant_dim(query, -2);
      size_ = constant_dim(query, -1);
      heads_ = constant_dim(value, -2);
      size_v_ = constant_dim(value, -1);
      check_heads();
      c_.check(constant_shape(key) == constant_shape(query), "the key ", key.type(),
               " has not the shape of the query ", query.type());
      q_ = by_token(0, {Dim(shared_), Dim(size_)}, 2);
      k_ = by_token(1, {Dim(shared_), Dim(size_)}, 2);
      v_ = by_token(2, {Dim(heads_), Dim(size_v_)}, 2);
    }
    if (c_.bool_attr("qk_l2_norm", false)) {
      q_ = normalized(q_);
      k_ = normalized(k_);
    }
    scale_ = c_.float_attr("scale", 0);
    if (scale_ == 0) scale_ = 1 / std::sqrt(static_cast<double>(size_));
  }

  void check_heads() const {
    for (const int64_t size : {shared_, size_, heads_, size_v_})
      c_.check(size <= kMostFeatures, "heads or sizes of ", size, " are not supported");
    c_.check(shared_ > 0 && size_ > 0 && heads_ > 0 && size_v_ > 0 && heads_ % shared_ == 0, heads_,
             " heads of values are no multiple of ", shared_, " heads of keys");
  }

  /// By its norm. What keeps that from zero is greater under the gates of Kimi Delta Attention.
  Tensor normalized(const Tensor& x) const {
    const std::string gate = c_.string_attr("gate_activation", "none");
    const double epsilon = gate == "sigmoid" || gate == "kda" ? 1e-6 : 1e-12;
    return x * ops::rsqrt(ops::sum(x * x, std::vector<int64_t>{-1}, DType::kF32, true) + epsilon);
  }

  /// Input i as float32 [tokens, rest...], where `rest` are its last axes.
  Tensor by_token(size_t i, Shape rest, int64_t axes) const {
    const Tensor& x = c_.tensor(i);
    c_.check(x.ndim() == static_cast<int64_t>(leading_) + axes, "input ", i, " is ", x.type(),
             " beside a query ", c_.tensor(0).type());
    for (size_t a = 0; a < leading_; ++a)
      c_.check(constant_dim(x, static_cast<int64_t>(a)) ==
                   constant_dim(c_.tensor(0), static_cast<int64_t>(a)),
               "input ", i, " is ", x.type(), " beside a query ", c_.tensor(0).type());
    for (size_t a = 0; a < rest.size(); ++a)
      c_.check(
          Dim(constant_dim(x, static_cast<int64_t>(leading_ + a))).equals(rest[a]).value_or(false),
          "input ", i, " is ", x.type(), ", where heads and sizes need ", rest[a]);
    rest.insert(rest.begin(), Dim(sequences_.tokens));
    return ops::reshape(ops::cast(x, DType::kF32), rest);
  }

  void find_sequences() {
    if (!c_.has_input(3)) {
      c_.check(c_.has_input(6), "without cu_seqlens initial_state must tell the batch");
      sequences_.count = constant_dim(c_.tensor(6), 0);
      c_.check(sequences_.count > 0 && sequences_.tokens % sequences_.count == 0, sequences_.tokens,
               " tokens are not ", sequences_.count, " equal sequences");
      sequences_.longest = sequences_.tokens / sequences_.count;
    } else {
      c_.check(leading_ == 1, "sequences by cu_seqlens need a query [tokens, ...]");
      sequences_.ends = c_.constant_ints(3);
      const auto& ends = sequences_.ends;
      c_.check(c_.tensor(3).ndim() == 1 && ends.size() >= 2 && ends.front() == 0 &&
                   ends.back() == sequences_.tokens && std::is_sorted(ends.begin(), ends.end()),
               "cu_seqlens does not lead from 0 to ", sequences_.tokens);
      sequences_.count = static_cast<int64_t>(ends.size()) - 1;
      for (int64_t s = 0; s < sequences_.count; ++s)
        sequences_.longest = std::max(sequences_.longest, sequences_.length(s));
      c_.check(sequences_.longest <= max_listed_indices() / sequences_.count, sequences_.count,
               " sequences of up to ", sequences_.longest, " tokens are too many");
    }
    // What is traced is a graph of all steps.
    if (sequences_.longest > kMostTracedSteps) c_.constant_array(0);
    q_ = sequences_.side_by_side(q_);
    k_ = sequences_.side_by_side(k_);
    v_ = sequences_.side_by_side(v_);
  }

  /// Of each head or of each of its keys, as [heads, 1] or [heads, head_size_qk].
  Tensor of_head(size_t i, bool each) const {
    const Tensor& x = c_.tensor(i);
    const Dims shape = constant_shape(x);
    const bool wide = each && (shape == Dims{heads_, size_} || shape == Dims{heads_ * size_});
    c_.check(wide || shape == Dims{heads_}, "input ", i, " is ", x.type(), " for ", heads_,
             " heads");
    return ops::reshape(ops::cast(x, DType::kF32), {Dim(heads_), Dim(wide ? size_ : 1)});
  }

  void find_gates() {
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
    if (gated_) {
      const bool each = c_.tensor(4).ndim() == static_cast<int64_t>(leading_) + 2;
      fading_ = each ? size_ : 1;
      Tensor g = ops::reshape(
          by_token(4, each ? Shape{Dim(heads_), Dim(size_)} : Shape{Dim(heads_)}, each ? 2 : 1),
          {Dim(sequences_.tokens), Dim(heads_), Dim(fading_)});
      if (activated) {
        const Tensor speed = ops::exp(of_head(7, false));
        g = g + of_head(8, each);
        g = soft ? ops::neg(speed) * ops::softplus(g)
                 : ops::sigmoid(speed * g) * c_.float_attr("gate_lower_bound", -5.0);
      }
      decay_ = sequences_.side_by_side(ops::exp(g));
    }
    if (delta_) {
      beta_ = ops::unsqueeze(by_token(5, {Dim(heads_)}, 1), {-1});
      if (rate == "sigmoid") beta_ = ops::sigmoid(beta_);
      beta_ = sequences_.side_by_side(beta_);
    }
  }

  void find_state() {
    const Dims shape = {sequences_.count, heads_, size_v_, size_};
    if (!c_.has_input(6)) {
      state_ = ops::full(to_shape(shape), 0.0, DType::kF32);
    } else {
      c_.check(constant_shape(c_.tensor(6)) == shape, "initial_state is ", c_.tensor(6).type(),
               ", not ", str(shape));
      state_ = ops::cast(c_.tensor(6), DType::kF32);
    }
    if (room_ == 0) return;
    c_.check(c_.tensor(9).ndim() == 1 && constant_dim(c_.tensor(9), 0) == sequences_.count,
             "capture_count is ", c_.tensor(9).type(), " for ", sequences_.count, " sequences");
    counts_ = c_.tensor(9);
    if (!c_.has_input(10)) return;
    c_.check(constant_shape(c_.tensor(10)) == Dims{1}, "state_update_active is ",
             c_.tensor(10).type(), ", not one number");
    counts_ = ops::where(ops::not_equal(c_.tensor(10), int_scalar(0, DType::kI32)), counts_,
                         int_scalar(0, DType::kI32));
  }

  /// [count, longest, keys' heads, size] with a key for each head of values.
  Tensor by_head(const Tensor& x) const {
    if (shared_ == heads_) return x;
    const Shape wide = {x.dim(0), x.dim(1), Dim(shared_), Dim(heads_ / shared_), Dim(size_)};
    return ops::reshape(ops::expand(ops::unsqueeze(x, {3}), wide),
                        {x.dim(0), x.dim(1), Dim(heads_), Dim(size_)});
  }

  /// What is told of token t, [count, ...] as rows; zeros where it is not asked for.
  Tensor kept(const Tensor& x, int64_t t) const {
    const Tensor asked =
        ops::logical_and(ops::less_than(int_scalar(t, DType::kI32), counts_), sequences_.reach(t));
    return ops::where(ops::unsqueeze(asked, {-1}),
                      ops::reshape(x, {Dim(sequences_.count), Dim(-1)}), scalar(0, DType::kF32));
  }

  /// The decays of all captured tokens, then their keys, then what they added to the state.
  Tensor transitions(Tensors decays, Tensors keys, Tensors deltas) const {
    const auto zeros = [&](int64_t columns) {
      return ops::full({Dim(sequences_.count), Dim(columns)}, 0.0, DType::kF32);
    };
    if (room_ == 0) return zeros(0);
    if (!gated_)
      for (int64_t t = 0; t < static_cast<int64_t>(keys.size()); ++t)
        decays.push_back(
            kept(ops::full({Dim(sequences_.count), Dim(heads_)}, 1.0, DType::kF32), t));
    const int64_t missing = room_ - static_cast<int64_t>(keys.size());
    decays.push_back(zeros(missing * heads_ * fading_));
    keys.push_back(zeros(missing * shared_ * size_));
    deltas.push_back(zeros(missing * heads_ * size_v_));
    Tensors all = std::move(decays);
    all.insert(all.end(), keys.begin(), keys.end());
    all.insert(all.end(), deltas.begin(), deltas.end());
    return ops::concat(all, 1);
  }

  static constexpr int64_t kMostTokens = int64_t{1} << 31, kMostFeatures = int64_t{1} << 28;
  const NodeCall& c_;
  bool gated_ = false, delta_ = false;
  size_t leading_ = 1;  ///< axes of tokens
  int64_t room_ = 0, shared_ = 0, heads_ = 0, size_ = 0, size_v_ = 0, fading_ = 1;
  double scale_ = 1;
  Sequences sequences_;
  Tensor q_, k_, v_, decay_, beta_, state_, counts_;
};

Values gated_delta_net(NodeCall& c) { return DeltaNet(c).run(); }

constexpr Operator kOperators[] = {{"GatedDeltaNet", 1, gated_delta_net}};

}  // namespace

OperatorTable contrib_gated_delta_net_operators() { return kOperators; }

}  // namespace paddle::onnx
