// Rules of matrix products, convolutions, normalization, attention, embeddings and losses.

#include <map>

#include "partition/rules.h"

namespace paddle::partition {
namespace {

using ir::Operation;
using ir::Value;

bool same_size(const Value* a, size_t i, const Value* b, size_t j) {
  return size_of(*a, i) == size_of(*b, j);
}

/// x[..., m, k] @ y[..., k, n]; 1-D operands lack m or n.
std::optional<Rule> matmul(const Operation& o) {
  const Value *x = o.operands[0], *y = o.operands[1], *out = o.results[0];
  Rule rule(o);
  const bool tx = attribute(o, "transpose_x").as_bool(), ty = attribute(o, "transpose_y").as_bool();
  const size_t rx = rank(x), ry = rank(y), ro = rank(out);
  const int k = rule.add();
  size_t at = ro;  // dims of the result that have a factor, from the end
  if (ry >= 2) {
    const int n = rule.add();
    rule.operands[1][ty ? ry - 1 : ry - 2] = k;
    rule.operands[1][ty ? ry - 2 : ry - 1] = n;
    rule.results[0][--at] = n;
  } else {
    rule.operands[1][0] = k;
  }
  if (rx >= 2) {
    const int m = rule.add();
    rule.operands[0][tx ? rx - 2 : rx - 1] = k;
    rule.operands[0][tx ? rx - 1 : rx - 2] = m;
    rule.results[0][--at] = m;
  } else {
    rule.operands[0][0] = k;
  }
  const size_t outer = at;  // batch dims of the result
  const auto batch = [&](const Value* v, std::vector<int>& dims, size_t of) {
    const size_t own = rank(v) > 2 ? rank(v) - 2 : 0;
    if (of < outer - own) return;
    const size_t d = of - (outer - own);
    if (same_size(v, d, out, of)) dims[d] = rule.results[0][of];
  };
  for (size_t d = 0; d < outer; ++d) {
    rule.results[0][d] = rule.add();
    batch(x, rule.operands[0], d);
    batch(y, rule.operands[1], d);
  }
  return rule;
}

/// x[..., in] @ weight[in, out] + bias[out]
std::optional<Rule> linear(const Operation& o) {
  Rule rule(o);
  const size_t last = rank(o.operands[0]) - 1;
  for (size_t d = 0; d < last; ++d) rule.operands[0][d] = rule.results[0][d] = rule.add();
  rule.operands[0][last] = rule.operands[1][0] = rule.add();
  rule.operands[1][1] = rule.results[0][last] = rule.add();
  if (o.operands.size() > 2 && o.operands[2]) rule.operands[2][0] = rule.results[0][last];
  return rule;
}

/// `x`, `weight` [out, in / groups, ...] and `y` by position among operands (0 and up) or results
/// (-1 and down).
std::optional<Rule> convolution(const Operation& o, int x, int weight, int y, int bias) {
  Rule rule(o);
  const auto dims = [&](int i) -> std::vector<int>& {
    return i >= 0 ? rule.operands[static_cast<size_t>(i)]
                  : rule.results[static_cast<size_t>(-1 - i)];
  };
  const size_t channels = channel_axis(o, dims(x).size());
  dims(x)[0] = dims(y)[0] = rule.add();
  if (attribute(o, "groups").as_int() != 1) return rule;
  dims(x)[channels] = dims(weight)[1] = rule.add();
  dims(weight)[0] = dims(y)[channels] = rule.add();
  if (bias >= 0 && o.operands[static_cast<size_t>(bias)]) dims(bias)[0] = dims(y)[channels];
  return rule;
}

std::optional<Rule> conv(const Operation& o) { return convolution(o, 0, 1, -1, 2); }
std::optional<Rule> conv_input_grad(const Operation& o) { return convolution(o, -1, 0, 1, -1); }
std::optional<Rule> conv_weight_grad(const Operation& o) { return convolution(o, 0, -1, 1, -1); }

/// Samples and channels are independent; planes are whole.
std::optional<Rule> pooling(const Operation& o) {
  Rule rule(o);
  const size_t of_rank = rank(o.results[0]), channels = channel_axis(o, of_rank);
  const int sample = rule.add(), channel = rule.add();
  const auto fill = [&](std::vector<int>& dims) {
    if (dims.size() != of_rank) return;
    dims[0] = sample;
    dims[channels] = channel;
  };
  for (auto& dims : rule.operands) fill(dims);
  for (auto& dims : rule.results) fill(dims);
  return rule;
}

/// Rows are the dims that are not normalized, which the statistics of a row have. The weight, the
/// bias and their gradients have the others.
std::optional<Rule> row_norm(const Operation& o, size_t with_rows, const Value* statistics) {
  Rule rule(o);
  for (size_t d = 0; d < rank(statistics); ++d) {
    const int row = rule.add();
    for (size_t i = 0; i < with_rows; ++i) rule.operands[i][d] = row;
    for (auto& result : rule.results)
      if (&result == &rule.results[0] || with_rows == 1) result[d] = row;
  }
  return rule;
}

std::optional<Rule> layer_norm(const Operation& o) { return row_norm(o, 1, o.results[1]); }
std::optional<Rule> layer_norm_grad(const Operation& o) { return row_norm(o, 4, o.operands[2]); }

/// input over the root mean square of its last dims; the weight has these dims.
std::optional<Rule> rms_norm(const Operation& o) {
  Rule rule(o);
  const AttrValue& shape = attribute(o, "normalized_shape");
  const size_t normalized = shape.is_list() ? shape.as_list().size() : 1;
  for (size_t d = 0; d + normalized < rank(o.operands[0]); ++d)
    rule.operands[0][d] = rule.results[0][d] = rule.add();
  return rule;
}

/// query [b, q, h, d], key and value [b, k, h, d], mask to [b, h, q, k], sums [b, h, q].
std::optional<Rule> attention(const Operation& o) {
  const bool backward = o.results.size() == 3;
  const size_t first = backward ? 1 : 0;
  const Value *query = o.operands[first], *key = o.operands[first + 1];
  if (rank(query) != 4) return std::nullopt;
  Rule rule(o);
  const int b = rule.add();
  const int q = attribute(o, "is_causal").as_bool() ? kWhole : rule.add();
  const int h = same_size(query, 2, key, 2) ? rule.add() : kWhole;
  const std::vector<int> by_query = {b, q, h, kWhole}, by_key = {b, kWhole, h, kWhole},
                         sums = {b, h, q};
  rule.operands[first] = by_query;
  rule.operands[first + 1] = rule.operands[first + 2] = by_key;
  if (const Value* mask = o.operands[first + 3]) {
    const std::vector<int> scores = {b, h, q, kWhole};
    const Dims sizes = {size_of(*query, 0), size_of(*query, 2), size_of(*query, 1),
                        size_of(*key, 1)};
    for (size_t d = 0; d < rank(mask); ++d) {
      const size_t at = 4 - rank(mask) + d;
      if (size_of(*mask, d) == sizes[at]) rule.operands[first + 3][d] = scores[at];
    }
  }
  if (backward) {
    rule.operands[0] = rule.operands[5] = by_query;
    rule.operands[6] = sums;
    rule.results = {by_query, by_key, by_key};
  } else {
    rule.results[0] = by_query;
    if (o.results.size() > 1) rule.results[1] = sums;
  }
  return rule;
}

/// x in pairs of features; positions correspond.
std::optional<Rule> rotary_embedding(const Operation& o) {
  Rule rule(o);
  const Value* const x = o.operands[0];
  for (size_t d = 0; d + 1 < rank(x); ++d) {
    rule.operands[0][d] = rule.results[0][d] = rule.add();
    for (size_t i = 1; i < o.operands.size(); ++i) {
      const Value* const v = o.operands[i];
      if (rank(v) + d < rank(x)) continue;
      const size_t at = rank(v) + d - rank(x);
      if (same_size(v, at, x, d)) rule.operands[i][at] = rule.results[0][d];
    }
  }
  return rule;
}

/// Rows of weight [rows, width] at the indices; the rows are a factor that the result lacks.
std::optional<Rule> embedding(const Operation& o) {
  Rule rule(o);
  const size_t last = rank(o.results[0]) - 1;
  for (size_t d = 0; d < last; ++d) rule.operands[0][d] = rule.results[0][d] = rule.add();
  rule.operands[1] = {rule.add(), rule.add()};
  rule.results[0][last] = rule.operands[1][1];
  return rule;
}

std::optional<Rule> embedding_grad(const Operation& o) {
  Rule rule(o);
  const size_t last = rank(o.operands[1]) - 1;
  for (size_t d = 0; d < last; ++d) rule.operands[0][d] = rule.operands[1][d] = rule.add();
  rule.results[0] = {rule.add(), rule.add()};
  rule.operands[1][last] = rule.results[0][1];
  return rule;
}

/// logits with a class axis; the labels, sums and losses have the other dims. The classes are a
/// factor that loss and sums lack.
std::optional<Rule> cross_entropy(const Operation& o) {
  const bool backward = o.results.size() == 1 && o.operands.size() == 4;
  const Value* const logits = o.operands[backward ? 1 : 0];
  const int64_t axis = attribute(o, "axis").as_int();
  const auto classes =
      static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(rank(logits)) : axis);
  Rule rule(o);
  std::vector<int> all, rows;
  for (size_t d = 0; d < rank(logits); ++d) {
    all.push_back(rule.add());
    if (d != classes) rows.push_back(all.back());
  }
  if (backward) {
    rule.operands = {rows, all, rows, rows};
    rule.results = {all};
  } else {
    rule.operands = {all, rows};
    for (auto& result : rule.results) result = rows;
  }
  return rule;
}

/// Samples are a factor of the statistics, channels of everything.
std::optional<Rule> batch_norm(const Operation& o) {
  Rule rule(o);
  const size_t of_rank = rank(o.operands[0]), channels = channel_axis(o, of_rank);
  const int sample = rule.add(), channel = rule.add();
  const auto fill = [&](const Value* v, std::vector<int>& dims) {
    if (!v) return;
    if (rank(v) == 1) {
      dims[0] = channel;
    } else if (rank(v) == of_rank) {
      dims[0] = sample;
      dims[channels] = channel;
    }
  };
  for (size_t i = 0; i < o.operands.size(); ++i) fill(o.operands[i], rule.operands[i]);
  for (size_t r = 0; r < o.results.size(); ++r) fill(o.results[r], rule.results[r]);
  return rule;
}

/// The graphs of a batch correspond, and so do features that no weights or sums join.
std::optional<Rule> graph_edges(const Operation& o) {
  Rule rule(o);
  for (size_t d = 0; d + 2 < rank(o.results[0]); ++d) {
    const int graph = rule.add();
    rule.results[0][d] = graph;
    for (size_t i = 0; i < o.operands.size(); ++i)
      if (o.operands[i]) rule.operands[i][d] = graph;
  }
  const bool weighted = o.operands.size() > 3 && o.operands[3];
  if (o.op->name() == "graph_gather" || (o.op->name() == "graph_reduce" && !weighted))
    rule.operands[0].back() = rule.results[0].back() = rule.add();
  return rule;
}

/// Tokens and features correspond; rows that are sorted by expert are whole (experts.cc).
std::optional<Rule> expert_order(const Operation& o) {
  Rule rule(o);
  rule.operands[0][0] = rule.add();
  return rule;
}

std::optional<Rule> expert_rows(const Operation& o) {
  Rule rule(o);
  rule.operands[0] = {rule.add(), rule.add()};
  rule.results[0][1] = rule.operands[0][1];
  return rule;
}

std::optional<Rule> expert_sum(const Operation& o) {
  Rule rule(o);
  rule.results[0] = {rule.add(), rule.add()};
  rule.operands[0][1] = rule.results[0][1];
  if (o.operands.size() > 2 && o.operands[2]) rule.operands[2][0] = rule.results[0][0];
  return rule;
}

/// Sequences of a batch are independent; all but the weights begin with the batch.
std::optional<Rule> recurrent_scan(const Operation& o) {
  Rule rule(o);
  const int sample = rule.add();
  for (size_t i = 0; i < o.operands.size(); ++i) {
    const std::string_view name = o.op->operands()[i].name;
    if (o.operands[i] && name != "weight" && name != "bias") rule.operands[i][0] = sample;
  }
  for (auto& result : rule.results) result[0] = sample;
  return rule;
}

}  // namespace

std::optional<Rule> detail::find_network_rule(const ir::Operation& o) {
  using Rules = std::map<std::string_view, std::optional<Rule> (*)(const Operation&)>;
  static const Rules kRules = {
      {"matmul", matmul},
      {"linear", linear},
      {"conv2d", conv},
      {"conv3d", conv},
      {"conv2d_input_grad", conv_input_grad},
      {"conv2d_weight_grad", conv_weight_grad},
      {"max_pool2d", pooling},
      {"max_pool2d_grad", pooling},
      {"max_pool2d_take", pooling},
      {"avg_pool2d", pooling},
      {"avg_pool2d_grad", pooling},
      {"layer_norm", layer_norm},
      {"layer_norm_grad", layer_norm_grad},
      {"rms_norm", rms_norm},
      {"batch_norm", batch_norm},
      {"batch_norm_grad", batch_norm},
      {"attention", attention},
      {"attention_grad", attention},
      {"rotary_embedding", rotary_embedding},
      {"embedding", embedding},
      {"embedding_grad", embedding_grad},
      {"softmax_cross_entropy", cross_entropy},
      {"softmax_cross_entropy_grad", cross_entropy},
      {"graph_gather", graph_edges},
      {"graph_reduce", graph_edges},
      {"graph_dot", graph_edges},
      {"expert_order", expert_order},
      {"expert_rows", expert_rows},
      {"expert_sum", expert_sum},
      {"recurrent_scan", recurrent_scan},
      {"recurrent_scan_grad", recurrent_scan},
  };
  const auto it = kRules.find(o.op->name());
  return it == kRules.end() ? std::nullopt : it->second(o);
}

}  // namespace paddle::partition
