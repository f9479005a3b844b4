// Mixtures of experts on the ranks of `data`: each rank sorts the rows of its own tokens. With an
// axis `expert`, which is a part of `data`, a rank has a range of the experts, and rows go to the
// rank of their expert and back. Rows that are sorted have no place in the logical tensor, so that
// they are not gathered: between expert_rows and expert_sum each rank computes on its own.

#include "base/source_location.h"
#include "ops/core/call.h"
#include "ops/core/operators.h"
#include "ops/generated/comm.h"
#include "ops/generated/creation.h"
#include "ops/generated/linalg.h"
#include "ops/generated/math.h"
#include "ops/generated/reduce.h"
#include "ops/generated/shape.h"
#include "ops/generated/sorting.h"
#include "ops/generated/transformer.h"
#include "partition/localize.h"

namespace paddle::partition {
namespace {

Tensor whole_number(int64_t value) { return Tensor::number(value); }

/// The numbers of rows of the experts, of all results of expert_order.
bool is_count(const ir::Value& value) {
  return value.producer && value.producer->op->name() == "expert_order" && value.index == 1;
}

[[noreturn]] void reject_call(const ir::Operation& o, const std::string& why) {
  throw Error(ErrorCode::kConfig, str(o.op->name(), ": ", why), parse_source_location(o.location));
}

constexpr const char* kNotRowByRow =
    "needs several rows at once; those that are sorted by expert are computed one by one where "
    "tokens are split over 'data'";

/// Elements [begin, end) along axis 0.
Tensor first_axis(const Tensor& x, int64_t begin, int64_t end) {
  return ops::strided_slice(x, {0}, {Dim(begin)}, {Dim(end)}, {1});
}

}  // namespace

/// The atoms of a tensor's first dim that are split over `data`: its tokens.
SplitAtoms Localizer::by_tokens(const ir::Value& value) const {
  const int data = options_.mesh.axis("data");
  SplitAtoms split = whole(value);
  const AtomList first = analysis_.dim(value, 0);
  for (size_t k = 0; k < first.size(); ++k)
    split[k] = data >= 0 && analysis_.axis(first[k]) == data;
  return split;
}

/// The rows of this tensor's first dim that a rank has.
int64_t Localizer::token_rows(const ir::Value& value, int rank) const {
  const int data = options_.mesh.axis("data");
  const SplitAtoms split = by_tokens(value);
  const AtomList first = analysis_.dim(value, 0);
  int64_t rows = 1;
  for (size_t k = 0; k < first.size(); ++k) {
    const int64_t size = analysis_.size(first[k]);
    const auto [begin, end] = split[k] ? shard_bounds(size, options_.mesh.coordinate(rank, data),
                                                      options_.mesh.axis_size(data))
                                       : std::pair<int64_t, int64_t>{0, size};
    rows *= end - begin;
  }
  return rows;
}

/// The route of the rows of a call of expert_order.
void Localizer::route_tokens(const ir::Operation& o) {
  const ir::Value& index = *o.operands[0];
  const int64_t count = attribute(o, "count").as_int();
  const auto route = std::make_shared<Route>();
  const Tensors sorted = ops::expert_order(placed(index, by_tokens(index)), count);
  route->order = sorted[0];
  route->counts = route->own_counts = sorted[1];
  const int64_t k = size_of(index, 1);
  route->own_rows = route->rows = token_rows(index, options_.rank) * k;
  const int axis = options_.mesh.axis("expert");
  if (axis >= 0 && count >= options_.mesh.axis_size(axis)) {
    route->ranks = options_.mesh.group(options_.rank, axis);
    const auto ranks = static_cast<int64_t>(route->ranks.size());
    const auto bounds = [&](int64_t i) {
      return shard_bounds(count, static_cast<int>(i), static_cast<int>(ranks));
    };
    const auto [begin, end] = bounds(options_.mesh.coordinate(options_.rank, axis));
    const int64_t here = end - begin;
    // counts of all ranks for the experts of this one, [ranks, experts]
    const Tensor all =
        ops::comm_all_gather(ops::reshape(sorted[1], {Dim(1), Dim(count)}), route->ranks, 0,
                             std::vector<int64_t>(route->ranks.size(), 1));
    const Tensor arriving = ops::strided_slice(all, {1}, {Dim(begin)}, {Dim(end)}, {1});
    route->received = ops::sum(arriving, std::vector<int64_t>{1}, std::nullopt, false);
    Tensors sent;
    for (int64_t i = 0; i < ranks; ++i)
      sent.push_back(ops::sum(first_axis(sorted[1], bounds(i).first, bounds(i).second),
                              std::vector<int64_t>{0}, std::nullopt, true));
    route->sent = ops::concat(sent, 0);
    route->rows = 0;
    for (const int64_t rank : route->ranks)
      route->rows += token_rows(index, static_cast<int>(rank)) * k;
    // Rows arrive by rank and then by expert. The block of a row is the number of blocks that end
    // before it; those after the last block are padding, with a number of their own.
    const Tensor ends =
        ops::cumsum(ops::reshape(arriving, {Dim(1), Dim(ranks * here)}), int64_t{1});
    const Tensor row = ops::reshape(ops::arange(Dim(0), Dim(route->rows), Dim(1), DType::kI64),
                                    {Dim(route->rows), Dim(1)});
    const Tensor block = ops::sum(ops::cast(ops::greater_equal(row, ends), DType::kI64),
                                  std::vector<int64_t>{1}, std::nullopt, true);
    const Tensor expert = ops::where(ops::less_than(block, whole_number(ranks * here)),
                                     ops::remainder(block, whole_number(here)), whole_number(here));
    const Tensors by_expert = ops::expert_order(expert, here + 1);
    route->arrived = by_expert[0];
    route->counts = first_axis(by_expert[1], 0, here);
  }
  values_[o.results[0]] = {route->order, whole(*o.results[0]), false, route};
  values_[o.results[1]] = {route->own_counts, whole(*o.results[1]), false, route};
}

namespace {

Tensor exchange_rows(const Tensor& x, const Tensor& sent, const Tensor& received,
                     const std::vector<int64_t>& ranks, int64_t rows) {
  return ops::comm_all_to_all(x, sent, received, ranks, rows);
}

}  // namespace

bool Localizer::localize_experts(const ir::Operation& o) {
  const std::string_view name = o.op->name();
  if (name == "expert_order") {
    const SplitAtoms split = by_tokens(*o.operands[0]);
    if (std::none_of(split.begin(), split.end(), [](bool s) { return s; })) {
      localize_whole(o, false);
    } else {
      route_tokens(o);
    }
    return true;
  }
  const auto route_of = [&](size_t i) -> std::shared_ptr<const Route> {
    return i < o.operands.size() && o.operands[i] ? local(*o.operands[i]).route : nullptr;
  };
  const auto result = [&](const Tensor& x, const SplitAtoms& split,
                          std::shared_ptr<const Route> route) {
    values_[o.results[0]] = {x, split, false, std::move(route)};
  };
  const bool rows = name == "expert_rows", sum = name == "expert_sum";
  if (rows || sum) {
    const auto route = route_of(1);
    if (!route) return localize_whole(o, false), true;
    const ir::Value& x = *o.operands[0];
    if (rows) {
      Tensor y =
          ops::expert_rows(placed(x, by_tokens(x)), route->order, attribute(o, "k").as_int());
      if (!route->ranks.empty())
        y = ops::expert_rows(
            exchange_rows(y, route->sent, route->received, route->ranks, route->rows),
            route->arrived, 1);
      result(y, whole(*o.results[0]), route);
      return true;
    }
    if (route_of(0) != route) reject_call(o, "the rows are not sorted by this order");
    Tensor y = local(x).tensor;
    if (!route->ranks.empty())
      y = exchange_rows(ops::expert_sum(y, route->arrived, {}, 1), route->received, route->sent,
                        route->ranks, route->own_rows);
    const ir::Value* const weights = o.operands.size() > 2 ? o.operands[2] : nullptr;
    const AttrValue& k = attribute(o, "k");
    y = ops::expert_sum(y, route->order, weights ? placed(*weights, by_tokens(*weights)) : Tensor(),
                        k.is_none() ? std::nullopt : std::optional(k.as_int()));
    result(y, by_tokens(*o.results[0]), nullptr);
    return true;
  }
  const bool product = name == "grouped_matmul", gradient = name == "grouped_weight_gradient";
  if (!product && !gradient) return false;
  const auto route = route_of(2);
  if (!route) return localize_whole(o, false), true;
  if (route_of(0) != route || (gradient && route_of(1) != route))
    reject_call(o, "the rows are not sorted by the order of these counts");
  const Tensor x = local(*o.operands[0]).tensor;
  // The experts of this rank: the first dim of weights.
  const int axis = options_.mesh.axis("expert");
  const auto by_expert = [&](const ir::Value& value) {
    SplitAtoms split = whole(value);
    if (route->ranks.empty()) return split;
    if (const AtomList experts = analysis_.dim(value, 0);
        experts.size() != 1 || analysis_.axis(experts[0]) != axis)
      reject_call(o, str("the experts of ", value.type,
                         " are part of a reshape, so that they cannot be split over 'expert'"));
    split[0] = true;
    return split;
  };
  if (product) {
    const ir::Value& weight = *o.operands[1];
    result(ops::grouped_matmul(x, placed(weight, by_expert(weight)), route->counts,
                               attribute(o, "transpose").as_bool()),
           whole(*o.results[0]), route);
    return true;
  }
  Tensor sums = ops::grouped_weight_gradient(x, local(*o.operands[1]).tensor, route->counts);
  const int data = options_.mesh.axis("data");
  if (route->ranks.empty()) {
    sums = all_reduce(sums, data);
  } else if (const auto ranks = options_.mesh.replicas(options_.rank, axis); ranks.size() > 1) {
    sums = ops::comm_all_reduce({sums}, ranks, "sum")[0];
  }
  result(sums, by_expert(*o.results[0]), nullptr);
  return true;
}

/// Counts of all tokens, which this rank has of its own. Other values with a route have no whole.
Tensor Localizer::whole_routed(const ir::Value& value) {
  if (!is_count(value)) reject_call(current_ ? operation() : *value.producer, kNotRowByRow);
  const auto key = std::make_pair(&value, whole(value));
  if (const auto it = cache_.find(key); it != cache_.end()) return it->second;
  return cache_[key] = all_reduce(local(value).tensor, options_.mesh.axis("data"));
}

/// Operations on single rows that a rank has sorted are computed on the rows of this rank.
bool Localizer::localize_on_routed_rows(const AnalyzedOperation& analyzed) {
  const ir::Operation& o = *analyzed.operation;
  std::shared_ptr<const Route> route;
  for (const ir::Value* v : o.operands) {
    // Counts are made whole where they are read.
    if (v && local(*v).route && !is_count(*v)) route = local(*v).route;
  }
  if (!route) return false;
  const auto reject = [&] [[noreturn]] () { reject_call(o, kNotRowByRow); };
  if (!analyzed.rule || analyzed.rule->reshapes || analyzed.rule->any_parts) reject();
  const Rule& rule = *analyzed.rule;
  int factor = kWhole;
  for (size_t i = 0; i < o.operands.size(); ++i)
    if (o.operands[i] && !is_count(*o.operands[i]) && local(*o.operands[i]).route == route) {
      if (rule.operands[i].empty() || rule.operands[i][0] == kWhole ||
          (factor != kWhole && factor != rule.operands[i][0]))
        reject();
      factor = rule.operands[i][0];
    }
  Tensors operands;
  for (size_t i = 0; i < o.operands.size(); ++i) {
    const ir::Value* const v = o.operands[i];
    if (!v) {
      operands.push_back({});
      continue;
    }
    const LocalValue& part = local(*v);
    const bool routed = part.route && !is_count(*v);
    if (routed && part.route != route) reject();
    if (routed) {
      operands.push_back(part.tensor);
      continue;
    }
    Tensor x = placed(*v, whole(*v));
    for (size_t d = 0; d < rule.operands[i].size(); ++d)
      if (rule.operands[i][d] == factor) {
        // Only a constant has the same value in all rows.
        if (d != 0 || !v->producer || v->producer->op->name() != "full") reject();
        x = first_axis(x, 0, route->rows);
      }
    operands.push_back(x);
  }
  Attrs attrs = o.attrs;
  for (const char* name : {"shape", "input_shape"})
    if (const int at = o.op->attr_index(name); at >= 0) {
      Shape shape = o.results[0]->type.shape;
      shape[0] = Dim(route->rows);
      attrs[static_cast<size_t>(at)] = AttrValue(shape);
    }
  for (const auto& dims : rule.results)
    if (dims.empty() || dims[0] != factor) reject();
  const Inferred inferred = infer_results(*o.op, attrs, operands);
  const Tensors results =
      current_interpreter().apply({*o.op, operands, attrs, inferred.results, inferred.constraints});
  for (size_t r = 0; r < o.results.size(); ++r)
    values_[o.results[r]] = {results[r], whole(*o.results[r]), false, route};
  return true;
}

}  // namespace paddle::partition
