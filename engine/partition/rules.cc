// The table of rules, and those of elementwise operations, reductions, shapes and indexing.

#include "partition/rules.h"

#include <algorithm>
#include <map>
#include <mutex>

namespace paddle::partition {
namespace {

using ir::Operation;
using ir::Value;

std::map<std::string, RuleFn, std::less<>>& registered() {
  static std::map<std::string, RuleFn, std::less<>> rules;
  return rules;
}

std::mutex& registration() {
  static std::mutex mutex;
  return mutex;
}

/// Dims correspond from the last one back, as in broadcasting.
std::optional<Rule> elementwise(const Operation& o) {
  Rule rule(o);
  const Value* const out = o.results[0];
  for (size_t d = 0; d < rank(out); ++d) rule.add();
  for (size_t r = 0; r < o.results.size(); ++r) {
    if (rank(o.results[r]) != rank(out)) return std::nullopt;
    for (size_t d = 0; d < rank(out); ++d) rule.results[r][d] = static_cast<int>(d);
  }
  for (size_t i = 0; i < o.operands.size(); ++i) {
    const Value* const x = o.operands[i];
    if (!x) continue;
    if (rank(x) > rank(out)) return std::nullopt;
    for (size_t d = 0; d < rank(x); ++d) {
      const size_t at = rank(out) - rank(x) + d;
      if (size_of(*x, d) == size_of(*out, at)) rule.operands[i][d] = static_cast<int>(at);
    }
  }
  return rule;
}

/// Operands of the shape of the first one are updated element by element; the others are scalars.
/// Of row-wise updates, the width only can be split.
std::optional<Rule> optimizer_update(const Operation& o) {
  Rule rule(o);
  const Value* const parameter = o.operands[0];
  const bool by_rows = o.op->operand_index("indices") >= 0;
  for (size_t d = 0; d < rank(parameter); ++d) rule.add();
  const auto fill = [&](const Value* value, std::vector<int>& dims) {
    if (!value || rank(value) != rank(parameter)) return;
    for (size_t d = by_rows ? 1 : 0; d < rank(value); ++d)
      if (size_of(*value, d) == size_of(*parameter, d)) dims[d] = static_cast<int>(d);
  };
  for (size_t i = 0; i < o.operands.size(); ++i) fill(o.operands[i], rule.operands[i]);
  for (size_t r = 0; r < o.results.size(); ++r) fill(o.results[r], rule.results[r]);
  // A gradient of another shape with the same elements stays whole.
  const Value* const gradient = o.operands[1];
  if (!by_rows && !same_type(gradient->type, parameter->type) &&
      gradient->type.shape.size() != rank(parameter))
    return std::nullopt;
  return rule;
}

/// The reduced axes become reduced factors where the reduction can be combined.
std::optional<Rule> reduction(const Operation& o, std::optional<Combine> combine) {
  Rule rule(o);
  const Value* const x = o.operands[0];
  std::vector<bool> reduced(rank(x), false);
  const AttrValue& axes = attribute(o, "axis");
  if (axes.is_none() || (axes.is_list() && axes.as_list().empty())) {
    std::fill(reduced.begin(), reduced.end(), true);
  } else {
    for (const int64_t a : axes.as_ints())
      reduced[static_cast<size_t>(a < 0 ? a + static_cast<int64_t>(rank(x)) : a)] = true;
  }
  const bool keeps = attribute(o, "keepdim").as_bool();
  size_t at = 0;
  for (size_t d = 0; d < rank(x); ++d) {
    if (!reduced[d] || combine) rule.operands[0][d] = rule.add();
    if (!reduced[d]) {
      for (auto& result : rule.results) result[at] = rule.operands[0][d];
      ++at;
    } else if (keeps) {
      ++at;
    }
  }
  if (combine) rule.combine = *combine;
  return rule;
}

std::optional<Rule> sum_of_squares(const Operation& o) {
  Rule rule(o);
  // With indices, rows of equal index are summed before they are squared.
  const bool by_rows = o.operands.size() > 1 && o.operands[1];
  for (size_t d = by_rows ? 1 : 0; d < rank(o.operands[0]); ++d) rule.operands[0][d] = rule.add();
  return rule;
}

std::optional<Rule> reshape(const Operation& o) {
  Rule rule(o);
  rule.operands.clear();
  rule.results.clear();
  rule.reshapes = true;
  return rule;
}

std::optional<Rule> transpose(const Operation& o) {
  Rule rule(o);
  const std::vector<int64_t> order = attribute(o, "perm").as_ints();
  for (size_t d = 0; d < order.size(); ++d) {
    const auto from = static_cast<size_t>(
        order[d] < 0 ? order[d] + static_cast<int64_t>(order.size()) : order[d]);
    rule.operands[0][from] = rule.results[0][d] = rule.add();
  }
  return rule;
}

/// All dims correspond except those along the axis, which are whole.
std::optional<Rule> along(const Operation& o) {
  const size_t axis = axis_of(o, "axis", rank(o.operands[0]));
  Rule rule(o);
  for (size_t d = 0; d < rank(o.operands[0]); ++d) {
    const int factor = rule.add();
    if (d == axis) continue;
    for (size_t i = 0; i < o.operands.size(); ++i)
      if (o.operands[i] && d < rule.operands[i].size() &&
          size_of(*o.operands[i], d) == size_of(*o.results[0], d))
        rule.operands[i][d] = factor;
    for (auto& result : rule.results)
      if (d < result.size()) result[d] = factor;
  }
  return rule;
}

/// Dims whose sizes stay the same correspond: slices, padding, and writes into slices.
std::optional<Rule> partly(const Operation& o) {
  const auto* const x = o.operands[0];
  const auto* const out = o.results[0];
  if (rank(x) != rank(out)) return std::nullopt;
  std::vector<bool> touched(rank(x), false);
  if (o.op->attr_index("axes") >= 0)
    for (const int64_t a : attribute(o, "axes").as_ints())
      touched[static_cast<size_t>(a < 0 ? a + static_cast<int64_t>(rank(x)) : a)] = true;
  Rule rule(o);
  for (size_t d = 0; d < rank(x); ++d) {
    const int factor = rule.add();
    if (touched[d] || size_of(*x, d) != size_of(*out, d)) continue;
    rule.results[0][d] = factor;
    for (size_t i = 0; i < o.operands.size(); ++i) {
      const Value* const v = o.operands[i];
      if (!v || rank(v) + d < rank(x)) continue;
      const size_t at = rank(v) + d - rank(x);
      if (size_of(*v, at) == size_of(*x, d)) rule.operands[i][at] = factor;
    }
  }
  return rule;
}

std::optional<Rule> creation(const Operation& o) {
  Rule rule(o);
  for (int& dim : rule.results[0]) dim = rule.add();
  return rule;
}

std::optional<Rule> all_finite(const Operation& o) {
  Rule rule(o);
  rule.any_parts = true;
  rule.combine = Combine::kMin;
  return rule;
}

/// Random numbers are a function of the place of an element in the whole result. Operands of its
/// shape, such as probabilities, correspond to it.
std::optional<Rule> random(const Operation& o) {
  if (o.op->name() == "randperm") return std::nullopt;
  Rule rule = *creation(o);
  for (size_t i = 0; i < o.operands.size(); ++i)
    if (o.operands[i] && reads_elements(o, i) && !o.op->operands()[i].hidden &&
        o.operands[i]->type.shape.size() == rule.results[0].size())
      rule.operands[i] = rule.results[0];
  return rule;
}

/// result[..., i, ...] = x[..., index[i], ...]
std::optional<Rule> index_select(const Operation& o) {
  const size_t axis = axis_of(o, "axis", rank(o.operands[0]));
  Rule rule(o);
  for (size_t d = 0; d < rank(o.operands[0]); ++d) {
    rule.results[0][d] = rule.add();
    if (d != axis) rule.operands[0][d] = rule.results[0][d];
  }
  if (rank(o.operands[1]) == 1) rule.operands[1][0] = rule.results[0][axis];
  return rule;
}

}  // namespace

Rule::Rule(const ir::Operation& operation) {
  for (const Value* v : operation.operands)
    operands.emplace_back(v ? v->type.shape.size() : 0, kWhole);
  for (const Value* v : operation.results) results.emplace_back(v->type.shape.size(), kWhole);
}

int64_t size_of(const ir::Value& value, size_t d) {
  return value.type.shape[d].constant().value_or(-1);
}

bool reads_elements(const ir::Operation& operation, size_t operand) {
  const auto declared = operation.op->operands();
  return !operation.op->has(kRandom) || operand >= declared.size() || !declared[operand].shape_only;
}

const AttrValue& attribute(const ir::Operation& operation, std::string_view name) {
  const int index = operation.op->attr_index(name);
  ensure(index >= 0, operation.op->name(), " has no attribute ", name);
  return operation.attrs[static_cast<size_t>(index)];
}

void register_rule(std::string_view operation, RuleFn rule) {
  const std::lock_guard lock(registration());
  registered()[std::string(operation)] = std::move(rule);
}

std::optional<Rule> find_rule(const ir::Operation& operation) {
  if (!operation.regions.empty() || operation.op->has(kRunTimeShape)) return std::nullopt;
  {
    const std::lock_guard lock(registration());
    const auto it = registered().find(operation.op->name());
    if (it != registered().end()) return it->second(operation);
  }
  if (auto rule = detail::find_network_rule(operation)) return rule;
  return detail::find_basic_rule(operation);
}

std::optional<Rule> detail::find_basic_rule(const ir::Operation& o) {
  using Rules = std::map<std::string_view, std::optional<Rule> (*)(const Operation&)>;
  static const Rules kRules = {
      {"expand", elementwise},
      {"transpose", transpose},
      {"concat", along},
      {"gather_along", along},
      {"scatter_along", along},
      {"softmax", along},
      {"sort_pairs", along},
      {"log_softmax", along},
      {"cumsum", along},
      {"cumprod", along},
      {"index_select", index_select},
      {"strided_slice", partly},
      {"strided_slice_scatter", partly},
      {"pad", partly},
      {"full", creation},
      {"sum_of_squares", sum_of_squares},
      {"all_finite", all_finite},
  };
  const Op& op = *o.op;
  if (const auto it = kRules.find(op.name()); it != kRules.end()) return it->second(o);
  if (op.has(kRandom)) return random(o);
  if (op.has(kOptimizerUpdate)) return optimizer_update(o);
  if (op.has(kElementwise)) return elementwise(o);
  if (op.has(kSameElements)) return reshape(o);
  if (op.has(kReduction)) {
    const std::string_view name = op.name();
    if (name == "sum" || name == "mean") return reduction(o, Combine::kSum);
    if (name == "max") return reduction(o, Combine::kMax);
    if (name == "min") return reduction(o, Combine::kMin);
    return reduction(o, std::nullopt);
  }
  return std::nullopt;
}

size_t rank(const Value* value) { return value->type.shape.size(); }

size_t axis_of(const Operation& o, std::string_view name, size_t of_rank) {
  const int64_t axis = attribute(o, name).as_int();
  return static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(of_rank) : axis);
}

size_t channel_axis(const Operation& o, size_t of_rank) {
  return attribute(o, "data_format").as_string().back() == 'C' ? of_rank - 1 : 1;
}

}  // namespace paddle::partition
