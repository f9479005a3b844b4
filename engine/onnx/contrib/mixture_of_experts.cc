// Mixture-of-experts operators of com.microsoft: a router sends each row to a few expert networks,
// whose results are summed with weights.

#include <algorithm>
#include <cmath>
#include <limits>

#include "onnx/ops/helpers.h"
#include "onnx/ops/quantization.h"
#include "ops/generated/creation.h"
#include "ops/generated/indexing.h"
#include "ops/generated/linalg.h"
#include "ops/generated/math.h"
#include "ops/generated/nn.h"
#include "ops/generated/shape.h"

namespace paddle::onnx {
namespace {

/// The rows routed to an expert, and their weights.
struct ExpertRows {
  std::vector<int64_t> rows;
  std::vector<float> weights;
};

/// The `k` most probable experts per row; of equal ones, the last. Weights are the probabilities,
/// or `given` if it is set.
std::vector<ExpertRows> route(const NodeCall& c, const Array& router, const Array* given,
                              bool normalize) {
  const int64_t rows = router.shape[0], experts = router.shape[1], k = c.int_attr("k", 1);
  c.check(k > 0 && k <= experts, "k is ", k, " of ", experts, " experts");
  std::vector<ExpertRows> out(static_cast<size_t>(experts));
  std::vector<std::pair<float, int64_t>> order(static_cast<size_t>(experts));
  for (int64_t r = 0; r < rows; ++r) {
    const float* scores = router.data<float>() + r * experts;
    const float most = *std::max_element(scores, scores + experts);
    float sum = 0;
    for (int64_t e = 0; e < experts; ++e) {
      order[static_cast<size_t>(e)] = {std::exp(scores[e] - most), e};
      sum += order[static_cast<size_t>(e)].first;
    }
    std::partial_sort(order.begin(), order.begin() + k, order.end(), std::greater<>());
    float total = 0;
    for (int64_t i = 0; i < k; ++i) {
      auto& [weight, e] = order[static_cast<size_t>(i)];
      weight = given ? given->data<float>()[r * experts + e] : weight / sum;
      total += weight;
    }
    for (int64_t i = 0; i < k; ++i) {
      const auto& [weight, e] = order[static_cast<size_t>(i)];
      ExpertRows& share = out[static_cast<size_t>(e)];
      share.rows.push_back(r);
      share.weights.push_back(normalize ? weight / total : weight);
    }
  }
  return out;
}

/// The activation between the two products of an expert; x is [rows, hidden].
Tensor activate(const NodeCall& c, const Tensor& x) {
  const std::string name = c.string_attr("activation_type", "relu");
  if (name == "relu") return ops::relu(x);
  if (name == "gelu") return ops::gelu(x, true);
  if (name == "silu") return ops::silu(x);
  if (name == "identity") return x;
  c.check(name == "swiglu", "unknown activation_type '", name, "'");
  const int64_t fusion = c.int_attr("swiglu_fusion", 0);
  c.check(fusion == 1 || fusion == 2, "swiglu needs a fused first matmul");
  const Dim half = floor_divide(x.dim(1), 2);
  Tensor gate, linear;
  if (fusion == 1) {
    const Tensor pairs = ops::reshape(x, {x.dim(0), half, Dim(2)});
    gate = ops::reshape(slice_axis(pairs, 2, 0, 1), {x.dim(0), half});
    linear = ops::reshape(slice_axis(pairs, 2, 1, 2), {x.dim(0), half});
  } else {
    gate = slice_axis(x, 1, 0, half);
    linear = slice_axis(x, 1, half, x.dim(1));
  }
  c.check(!c.bool_attr("swiglu_limit_after_activation", false),
          "limits after the activation are not supported");
  const double limit = c.float_attr("swiglu_limit", std::numeric_limits<double>::infinity());
  if (std::isfinite(limit)) {
    gate = ops::minimum(gate, scalar(limit, x.dtype()));
    linear = ops::clip(linear, -limit, limit);
  }
  return gate * ops::sigmoid(gate * c.float_attr("activation_alpha", 1)) *
         (linear + c.float_attr("activation_beta", 0));
}

/// Zero points of `rows` rows, packed several to a byte, as float32 [rows, 1].
Array unpack_row_zeros(const NodeCall& c, const Array& bytes, int64_t bits, int64_t rows) {
  const int64_t each = 8 / bits;
  c.check(bytes.dtype == DType::kU8 && bytes.size() * each >= rows, "the zero points do not match ",
          rows, " rows");
  Array out = Array::empty(DType::kF32, {rows, 1});
  for (int64_t i = 0; i < rows; ++i)
    out.data<float>()[i] = static_cast<float>(bytes.data<uint8_t>()[i / each] >> (i % each * bits) &
                                              ((1 << bits) - 1));
  return out;
}

/// `weight(input, expert)` returns a matrix [out, in]; biases are inputs.
template <class Weight>
Values mixture(NodeCall& c, size_t first, size_t second, bool normalize, Weight&& weight,
               const Array* given = nullptr) {
  const Tensor& in = c.tensor(0);
  const Array router = c.constant_array(1).cast(DType::kF32).contiguous();
  c.check(in.ndim() == 2 || in.ndim() == 3,
          "the input must be [rows, features] or [batch, rows, features]");
  const Tensor x = ops::reshape(ops::cast(in, DType::kF32), {Dim(-1), in.dim(-1)});
  c.check(router.ndim() == 2 && router.shape[1] > 0 && router.shape[0] == constant_dim(x, 0),
          "router_probs ", str(router.shape), " do not match ", x.type());
  c.check(!given || given->shape == router.shape, "router_weights do not match router_probs");
  c.check(c.tensor(first).ndim() == 3 && c.tensor(second).ndim() == 3 &&
              constant_dim(c.tensor(first), 0) == router.shape[1] &&
              constant_dim(c.tensor(second), 0) == router.shape[1],
          "the weights are not those of ", router.shape[1], " experts");
  Tensor out = ops::full(x.shape(), 0.0, DType::kF32);
  const auto shares = route(c, router, given, normalize);
  for (size_t e = 0; e < shares.size(); ++e) {
    if (shares[e].rows.empty()) continue;
    const auto expert = static_cast<int64_t>(e);
    const auto product = [&](const Tensor& v, size_t i, size_t bias) {
      const Tensor y = ops::matmul(v, weight(i, expert), false, true);
      return c.has_input(bias)
                 ? y + ops::cast(slice_axis(c.tensor(bias), 0, expert, expert + 1), DType::kF32)
                 : y;
    };
    const bool quantized = second != 4;
    const size_t bias_at = quantized ? 2 : 1;
    const Tensor rows = int_vector(shares[e].rows);
    const Tensor hidden =
        activate(c, product(ops::index_select(x, rows, 0), first, first + bias_at));
    const Tensor y = product(hidden, second, second + bias_at);
    const auto count = static_cast<int64_t>(shares[e].rows.size());
    out = ops::index_add(out, rows, 0, y * Tensor(Array::from(shares[e].weights, {count, 1})));
  }
  return {ops::cast(ops::reshape(out, in.shape()), in.dtype())};
}

Values mixture_of_experts(NodeCall& c) {
  c.check(!c.has_input(6), "a third matmul is not supported");
  const bool normalize = c.bool_attr("normalize_routing_weights", false);
  return mixture(c, 2, 4, normalize, [&](size_t i, int64_t expert) {
    const Tensor w = slice_axis(c.tensor(i), 0, expert, expert + 1);
    return ops::cast(ops::squeeze(w, std::vector<int64_t>{0}), DType::kF32);
  });
}

/// Unpacks 3-bit integers (eight in three bytes, lowest first) into bytes with zero point 128
/// instead of 4.
Array unpack_3bit(const Array& packed) {
  const int64_t rows = packed.shape[0], size = packed.shape[1];
  Array out = Array::empty(DType::kU8, {rows, size / 3 * 8});
  for (int64_t i = 0; i < out.size(); ++i) {
    const uint8_t* from = packed.data<uint8_t>() + i / 8 * 3;
    const int all = from[0] | from[1] << 8 | from[2] << 16;
    out.data<uint8_t>()[i] = static_cast<uint8_t>((all >> (i % 8 * 3) & 7) + 124);
  }
  return out;
}

/// Weights are packed integers of 2, 3, 4 or 8 bits, with scales per block of input features or per
/// row.
Values quantized_mixture(NodeCall& c) {
  const std::string kind = c.string_attr("quant_type", "int");
  c.check(kind == "int", "weights of the type '", kind, "' are not supported");
  c.check(!c.has_input(8), "a third matmul is not supported");
  c.check(c.int_attr("weights_prepacked", -1) != 1,
          "weights in the layout of GPUs are not supported");
  const int64_t bits = c.int_attr("expert_weight_bits", 4);
  Array given;
  if (c.has_input(14)) given = c.constant_array(14).cast(DType::kF32).contiguous();
  const auto weight = [&](size_t i, int64_t expert) {
    int64_t own = c.int_attr(i == 2 ? "fc1_expert_weight_bits" : "fc2_expert_weight_bits", bits);
    const auto of_expert = [&](size_t at) {
      return ops::squeeze(slice_axis(c.tensor(at), 0, expert, expert + 1), std::vector<int64_t>{0});
    };
    Array bytes = of_expert(i).array().contiguous();
    c.check(bytes.ndim() == 2 && bytes.dtype == DType::kU8,
            "the weights must be bytes [experts, out, in]");
    if (own == 3) {
      c.check(bytes.shape[1] % 3 == 0 && !c.has_input(11) && !c.has_input(12),
              "weights of 3 bits must be whole groups of eight, without zero points");
      bytes = unpack_3bit(bytes);
      own = 8;
    }
    c.check(own == 2 || own == 4 || own == 8, "weights of ", own, " bits are not supported");
    const int64_t rows = bytes.shape[0], columns = bytes.shape[1] * (8 / own);
    int64_t block = c.int_attr("block_size", 0);
    if (block <= 0) block = columns;
    c.check(block <= columns, "block_size is ", block, " of ", columns, " features");
    const size_t zeros_at = i == 2 ? 11 : 12;
    Value zeros;
    if (c.has_input(zeros_at)) {
      Array z = of_expert(zeros_at).array().contiguous();
      // Without blocks, zero points of adjacent rows share a byte.
      if (z.ndim() == 1) z = unpack_row_zeros(c, z, own, rows);
      zeros = Value(Tensor(z));
    }
    return dequantize_blocks(c, bytes, of_expert(i + 1), zeros, own, rows, columns, block);
  };
  // ONNX Runtime always normalizes its own weights, except with 3 bits.
  const bool three = c.int_attr("fc1_expert_weight_bits", bits) == 3;
  const bool normalize =
      (!c.has_input(14) && !three) || c.bool_attr("normalize_routing_weights", false);
  return mixture(c, 2, 5, normalize, weight, c.has_input(14) ? &given : nullptr);
}

/// Group-limited routing: the `top_k` experts with the largest sigmoid plus bias within the
/// `topk_group` best groups. A group scores the sum of its best `group_topk` experts. Ties go to
/// the lower index; NaN ranks last.
class GroupRouter {
 public:
  GroupRouter(const NodeCall& c, int64_t experts)
      : experts_(experts),
        groups_(c.int_attr("n_group", 1)),
        most_groups_(c.int_attr("topk_group", 1)),
        most_(c.int_attr("top_k", 0)),
        of_group_(c.int_attr("group_topk", 2)) {
    c.check(groups_ >= 1 && groups_ <= experts && experts % groups_ == 0, "n_group is ", groups_,
            " for ", experts, " experts");
    c.check(most_groups_ >= 1 && most_groups_ <= groups_, "topk_group is ", most_groups_, " of ",
            groups_);
    c.check(most_ >= 1 && most_ <= experts, "top_k is ", most_, " of ", experts, " experts");
    c.check(of_group_ >= 1, "group_topk is ", of_group_);
  }

  bool is_plain() const { return groups_ == 1 && most_groups_ == 1; }

  /// Indices of the chosen experts.
  std::vector<int64_t> chosen(const std::vector<float>& scores) const {
    const int64_t size = experts_ / groups_;
    std::vector<float> sums;
    for (int64_t g = 0; g < groups_; ++g) {
      float sum = 0;
      for (const int64_t e : best(scores, g * size, size, of_group_)) sum += scores[at(e)];
      sums.push_back(sum);
    }
    std::vector<int64_t> open;
    for (const int64_t g : best(sums, 0, groups_, most_groups_))
      for (int64_t e = 0; e < size; ++e) open.push_back(g * size + e);
    std::sort(open.begin(), open.end());
    return best(scores, std::move(open), most_);
  }

 private:
  static size_t at(int64_t i) { return static_cast<size_t>(i); }
  static std::vector<int64_t> best(const std::vector<float>& scores, int64_t first, int64_t count,
                                   int64_t most) {
    std::vector<int64_t> candidates;
    for (int64_t i = 0; i < count; ++i) candidates.push_back(first + i);
    return best(scores, std::move(candidates), most);
  }
  static std::vector<int64_t> best(const std::vector<float>& scores,
                                   std::vector<int64_t> candidates, int64_t most) {
    const auto score = [&](int64_t i) {
      const float s = scores[at(i)];
      return std::isnan(s) ? -std::numeric_limits<float>::infinity() : s;
    };
    std::stable_sort(candidates.begin(), candidates.end(),
                     [&](int64_t a, int64_t b) { return score(a) > score(b); });
    if (static_cast<int64_t>(candidates.size()) > most) candidates.resize(at(most));
    return candidates;
  }

  int64_t experts_, groups_, most_groups_, most_, of_group_;
};

/// Router scores without selection: with and without bias.
Values all_scores(const NodeCall& c, const GroupRouter& router, int64_t experts) {
  c.check(!c.has_output(0) && c.has_output(1) && c.has_output(2),
          "selection_scores and router_weights must be given together, without router_probs");
  c.check(router.is_plain() && experts <= 512,
          "all scores need one group and at most 512 experts, not ", experts);
  Tensor logits = ops::cast(c.tensor(0), DType::kF32);
  if (c.has_input(2)) {
    c.check_same_dtype({0, 2});
    const int64_t width = constant_dim(logits, -1);
    c.check(logits.ndim() == 2 && width > 0 && width % 256 == 0,
            "features to project must be [rows, a multiple of 256], not ", logits.type());
    c.check(constant_dim(c.tensor(2), 1) == width, "projection_weight is ", c.tensor(2).type(),
            " for ", width, " features");
    logits = ops::matmul(logits, ops::cast(c.tensor(2), DType::kF32), false, true);
  }
  const Tensor weights = ops::reshape(ops::sigmoid(logits), {Dim(-1), Dim(experts)});
  return {Value(), weights + ops::cast(c.tensor(1), DType::kF32), weights};
}

/// Log-sigmoids of the chosen experts, and a constant for all others.
Values group_router(NodeCall& c) {
  const Tensor& logits = c.tensor(0);
  c.check(logits.ndim() >= 2, "the logits are ", logits.type(), ", their rank must be 2 or more");
  if (c.has_input(2))
    c.check(c.tensor(2).ndim() == 2, "projection_weight is ", c.tensor(2).type(),
            ", not [experts, features]");
  const int64_t experts = c.has_input(2) ? constant_dim(c.tensor(2), 0) : constant_dim(logits, -1);
  c.check(c.tensor(1).ndim() == 1 && constant_dim(c.tensor(1), 0) == experts, "expert_bias is ",
          c.tensor(1).type(), " for ", experts, " experts");
  const GroupRouter router(c, experts);
  if (c.has_output(1) || c.has_output(2)) return all_scores(c, router, experts);
  c.check(!c.has_input(2),
          "projection_weight needs the outputs selection_scores and router_weights");
  const Array in = c.constant_array(0).cast(DType::kF32).contiguous(),
              bias = c.constant_array(1).cast(DType::kF32).contiguous();
  const int64_t rows = in.size() / experts;
  const auto sentinel = static_cast<float>(c.float_attr("router_sentinel", -10000));
  Array out = Array::empty(DType::kF32, {rows, experts});
  std::vector<float> sigmoids(static_cast<size_t>(experts)), scores(sigmoids.size());
  for (int64_t r = 0; r < rows; ++r) {
    float* y = out.data<float>() + r * experts;
    for (int64_t e = 0; e < experts; ++e) {
      const float x = in.data<float>()[r * experts + e], power = std::exp(-std::abs(x));
      const auto i = static_cast<size_t>(e);
      sigmoids[i] = (x >= 0 ? 1 : power) / (1 + power);
      scores[i] = sigmoids[i] + bias.data<float>()[e];
    }
    std::fill(y, y + experts, sentinel);
    for (const int64_t e : router.chosen(scores)) {
      const float s = sigmoids[static_cast<size_t>(e)];
      y[e] = std::log(s < 1e-20f ? 1e-20f : s);
    }
  }
  return {ops::cast(Tensor(out), logits.dtype())};
}

}  // namespace

OperatorTable contrib_mixture_of_experts_operators() {
  static constexpr Operator operators[] = {
      {"MoE", 1, mixture_of_experts},
      {"QMoE", 1, quantized_mixture},
      {"MoEGroupRouter", 1, group_router},
  };
  return operators;
}

}  // namespace paddle::onnx
