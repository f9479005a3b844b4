#include "partition/analysis.h"

#include <algorithm>

#include "base/text.h"

namespace paddle::partition {

using ir::Operation;
using ir::Value;

namespace {

/// Values of a function in the order in which they are defined.
template <class Visit>
void for_each_value(const ir::Function& function, Visit&& visit) {
  for (const Value& v : function.values())
    if (v.constant) visit(v);
  for (const Value* v : function.body.arguments) visit(*v);
  for (const auto& o : function.body.operations)
    for (const Value* v : o->results) visit(*v);
}

bool has_constant_dims(const Operation& operation) {
  const auto constant = [](const Value* v) {
    return !v || std::all_of(v->type.shape.begin(), v->type.shape.end(),
                             [](const Dim& d) { return d.is_constant(); });
  };
  return std::all_of(operation.operands.begin(), operation.operands.end(), constant) &&
         std::all_of(operation.results.begin(), operation.results.end(), constant);
}

/// "float32[4, 8], float32[8] -> float32[4, 8]".
std::string text_of_call(const Operation& operation) {
  const auto types = [](const std::vector<Value*>& values) {
    std::string out;
    for (const Value* v : values) out += (out.empty() ? "" : ", ") + (v ? v->type.text() : "none");
    return out;
  };
  return types(operation.operands) + " -> " + types(operation.results);
}

}  // namespace

Analysis::Analysis(const ir::Function& function, const PartitionOptions& options)
    : function_(function), options_(options) {
  std::unordered_map<const Value*, const Placement*> settled;
  for (size_t i = 0; i < function.inputs.size(); ++i) {
    const auto it = options.placements.find(function.inputs[i].name);
    if (function.inputs[i].kind != ir::PortKind::kValue && it != options.placements.end())
      settled[function.body.arguments[i]] = &it->second;
  }
  for_each_value(function, [&](const Value& v) {
    const auto it = settled.find(&v);
    add_value(v, it == settled.end() ? nullptr : it->second);
  });
  for (const auto& o : function.body.operations)
    operations_.push_back({o.get(), has_constant_dims(*o) ? rule_of(*o) : std::nullopt});
  check_rules_used();
  for (const AnalyzedOperation& o : operations_) connect(o);
  connect_outputs();
  assign_batch();
  assign_settled();
  assign_experts();
  assign_place_rules();
  assign_default();
  assign_storage();
  assign_sequence();
}

std::optional<Rule> Analysis::rule_of(const Operation& operation) const {
  for (const OperationRule& given : options_.rules)
    if (given.operation == operation.op->name()) {
      std::optional<Rule> rule = given.rule(operation);
      if (rule || !options_.placements.empty()) return rule;
      throw Error(
          ErrorCode::kConfig,
          str("parallel.rules: the rule of '", given.operation, "' does not fit its call at ",
              operation.location, ": ", text_of_call(operation)),
          given.where);
    }
  return find_rule(operation);
}

/// The first function of a run must have the operations of all rules.
void Analysis::check_rules_used() const {
  if (!options_.placements.empty()) return;
  for (const OperationRule& given : options_.rules)
    if (std::none_of(operations_.begin(), operations_.end(), [&](const AnalyzedOperation& o) {
          return o.operation->op->name() == given.operation;
        }))
      throw Error(ErrorCode::kConfig,
                  "parallel.rules: the step has no operation '" + given.operation + "'",
                  given.where);
}

void Analysis::add_value(const Value& value, const Placement* seed) {
  std::vector<AtomList>& dims = dims_[&value];
  for (size_t d = 0; d < value.type.shape.size(); ++d) {
    const int64_t size = size_of(value, d);
    AtomList list = size < 0 ? AtomList{} : atoms_.make(size);
    if (seed)
      for (const Split& split : *seed) {
        if (split.dim != static_cast<int>(d)) continue;
        AtomList parts;
        for (const int64_t n : {split.outer, split.units, size / split.outer / split.units})
          for (const int atom : atoms_.make(n)) parts.push_back(atom);
        atoms_.unify(list, parts);
      }
    dims.push_back(std::move(list));
  }
}

AtomList Analysis::dim(const Value& value, size_t d) const {
  return atoms_.resolve(dims_.at(&value)[d]);
}

AtomList Analysis::dims(const Value& value) const {
  AtomList all;
  for (const AtomList& list : dims_.at(&value)) all.insert(all.end(), list.begin(), list.end());
  return atoms_.resolve(all);
}

int Analysis::axis(int atom) const {
  const auto it = axes_.find(atom);
  return it == axes_.end() ? -1 : it->second;
}

int Analysis::storage_axis(int atom) const {
  const auto it = storage_axes_.find(atom);
  return it == storage_axes_.end() ? -1 : it->second;
}

void Analysis::connect(const AnalyzedOperation& analyzed) {
  const Operation& o = *analyzed.operation;
  if (!analyzed.rule) return;
  const Rule& rule = *analyzed.rule;
  if (rule.reshapes) {
    // Atoms that cannot be aligned are made whole when the operation is localized.
    atoms_.unify(dims(*o.operands[0]), dims(*o.results[0]));
    return;
  }
  std::vector<const AtomList*> of_factor(static_cast<size_t>(rule.factors), nullptr);
  const auto visit = [&](const std::vector<Value*>& values,
                         const std::vector<std::vector<int>>& factors) {
    for (size_t i = 0; i < values.size(); ++i) {
      if (!values[i]) continue;
      for (size_t d = 0; d < factors[i].size(); ++d) {
        if (factors[i][d] == kWhole) continue;
        const AtomList& list = dims_.at(values[i])[d];
        const AtomList*& known = of_factor[static_cast<size_t>(factors[i][d])];
        if (known)
          atoms_.unify(*known, list);
        else
          known = &list;
      }
    }
  };
  visit(o.operands, rule.operands);
  visit(o.results, rule.results);
}

void Analysis::connect_output(size_t output, size_t input) {
  const std::vector<AtomList>&from = dims_.at(function_.body.arguments.at(input)),
        &to = dims_.at(function_.body.results.at(output));
  for (size_t d = 0; d < std::min(from.size(), to.size()); ++d) atoms_.unify(from[d], to[d]);
}

/// The new version of a parameter or state is placed as the old one, and other outputs as the
/// options say.
void Analysis::connect_outputs() {
  for (size_t i = 0; i < function_.outputs.size(); ++i)
    for (size_t j = 0; j < function_.inputs.size(); ++j) {
      const ir::Port &out = function_.outputs[i], &in = function_.inputs[j];
      if (out.kind != ir::PortKind::kValue && out.kind == in.kind && out.name == in.name)
        connect_output(i, j);
    }
  for (const auto& [output, input] : options_.outputs_like_inputs) connect_output(output, input);
}

void Analysis::assign_batch() {
  const int data = options_.mesh.axis("data");
  if (data < 0 || options_.mesh.axis_size(data) == 1) return;
  for (size_t i = 0; i < function_.inputs.size(); ++i) {
    if (function_.inputs[i].kind != ir::PortKind::kValue ||
        !options_.batch_inputs.contains(function_.inputs[i].name))
      continue;
    const AtomList batch = dim(*function_.body.arguments[i], 0);
    if (!batch.empty()) assign(batch[0], data);
  }
}

void Analysis::assign_settled() {
  for (size_t i = 0; i < function_.inputs.size(); ++i) {
    const auto it = options_.placements.find(function_.inputs[i].name);
    if (function_.inputs[i].kind == ir::PortKind::kValue || it == options_.placements.end())
      continue;
    for (const Split& split : it->second) {
      ensure(split.order == ir::SplitOrder::kStraight,
             "partition: an input cannot be split in zigzag order");
      int64_t before = 1;
      for (const int atom : dim(*function_.body.arguments[i], static_cast<size_t>(split.dim))) {
        if (before == split.outer && size(atom) == split.units) {
          const bool stores = split.axis == options_.mesh.axis("data");
          (stores ? storage_axes_ : axes_)[atom] = split.axis;
          break;
        }
        before *= size(atom);
      }
    }
  }
}

void Analysis::assign_experts() {
  const int expert = options_.mesh.axis("expert");
  if (expert < 0) return;
  const auto split = [&](const Value& weight) {
    const AtomList experts = dim(weight, 0);
    if (experts.size() == 1 && size(experts[0]) >= options_.mesh.axis_size(expert))
      assign(experts[0], expert);
  };
  for (const AnalyzedOperation& o : operations_) {
    const std::string_view name = o.operation->op->name();
    if (name == "grouped_matmul") split(*o.operation->operands[1]);
    if (name == "grouped_weight_gradient") split(*o.operation->results[0]);
  }
}

const Value* Analysis::parameter(const std::string& name) const {
  for (size_t i = 0; i < function_.inputs.size(); ++i)
    if (function_.inputs[i].kind == ir::PortKind::kParameter && function_.inputs[i].name == name)
      return function_.body.arguments[i];
  return nullptr;
}

void Analysis::assign_place_rules() {
  if (!options_.placements.empty()) return;  // an earlier function has followed them
  const std::set<int> whole = whole_atoms();
  std::vector<bool> used(options_.place.size(), false);
  for (const ir::Port& port : function_.inputs) {
    if (port.kind != ir::PortKind::kParameter) continue;
    const auto matches = [&](const PlaceRule& rule) {
      return std::any_of(rule.match.begin(), rule.match.end(), [&](const std::string& pattern) {
        return matches_pattern(pattern, port.name);
      });
    };
    const auto rule = std::find_if(options_.place.begin(), options_.place.end(), matches);
    for (size_t r = 0; r < used.size(); ++r)
      if (matches(options_.place[r])) used[r] = true;
    if (rule == options_.place.end()) continue;
    const Value& value = *parameter(port.name);
    if (rule->shard.empty()) kept_whole_.insert(port.name);
    for (const auto& [d, name] : rule->shard) {
      const auto reject = [&](const std::string& why) {
        throw Error(ErrorCode::kConfig,
                    str("parallel.place: '", port.name, "' is ", value.type, ": ", why),
                    rule->where);
      };
      const auto rank = static_cast<int64_t>(value.type.shape.size());
      if (d < -rank || d >= rank) reject(str("it has no dim ", d));
      const int axis = options_.mesh.axis(name);
      const int64_t parts = options_.mesh.axis_size(axis);
      const AtomList atoms = dim(value, static_cast<size_t>(d < 0 ? d + rank : d));
      const auto best = std::find_if(atoms.begin(), atoms.end(), [&](int atom) {
        return size(atom) >= parts && !whole.contains(atom);
      });
      const auto any =
          std::find_if(atoms.begin(), atoms.end(), [&](int atom) { return size(atom) >= parts; });
      const auto chosen = best != atoms.end() ? best : any;
      if (chosen == atoms.end()) reject(str("dim ", d, " cannot be split into ", parts, " parts"));
      if (const int other = this->axis(*chosen); other >= 0 && other != axis)
        reject(str("dim ", d, " is split over '", options_.mesh.axis_name(other), "' already"));
      assign(*chosen, axis);
    }
  }
  for (size_t r = 0; r < used.size(); ++r)
    if (!used[r])
      throw Error(ErrorCode::kConfig,
                  "parallel.place: no parameter matches " + join(options_.place[r].match, ", "),
                  options_.place[r].where);
}

std::set<int> Analysis::whole_atoms() const {
  std::set<int> whole;
  const auto add = [&](const AtomList& list) { whole.insert(list.begin(), list.end()); };
  for (const auto& [o, rule] : operations_) {
    if (!rule) {
      ir::for_each_read(*o, [&](const Value* v) {
        if (dims_.contains(v)) add(dims(*v));
      });
      continue;
    }
    if (rule->any_parts) continue;
    if (rule->reshapes) {
      const AtomList a = dims(*o->operands[0]), b = dims(*o->results[0]);
      for (size_t i = 0; i < std::max(a.size(), b.size()); ++i) {
        if (i < a.size() && i < b.size() && a[i] == b[i]) continue;
        if (i < a.size()) whole.insert(a[i]);
        if (i < b.size()) whole.insert(b[i]);
      }
      continue;
    }
    std::unordered_map<int, std::pair<int, AtomList>> factor_of;  // by atom
    const auto visit = [&](const Value* v, const std::vector<int>& factors) {
      for (size_t d = 0; v && d < factors.size(); ++d) {
        const AtomList list = dim(*v, d);
        if (factors[d] == kWhole) {
          add(list);
          continue;
        }
        for (const int atom : list) {
          const auto [it, inserted] = factor_of.try_emplace(atom, factors[d], list);
          // In two factors, or in dims that could not be aligned.
          if (!inserted && (it->second.first != factors[d] || it->second.second != list))
            whole.insert(atom);
        }
      }
    };
    for (size_t i = 0; i < o->operands.size(); ++i)
      if (reads_elements(*o, i)) visit(o->operands[i], rule->operands[i]);
    for (size_t r = 0; r < o->results.size(); ++r) visit(o->results[r], rule->results[r]);
  }
  return whole;
}

bool Analysis::conflicts(int atom, int axis) const {
  for (const auto& [o, rule] : operations_) {
    if (!rule || rule->any_parts) continue;
    bool has = false, other = false;
    const auto visit = [&](const Value* v) {
      if (!v) return;
      for (const int a : dims(*v)) {
        has = has || a == atom;
        other = other || (a != atom && this->axis(a) == axis);
      }
    };
    for (const Value* v : o->operands) visit(v);
    for (const Value* v : o->results) visit(v);
    if (has && other) return true;
  }
  return false;
}

/// Splits over the axis `tensor` what all operations on the way can compute in parts: the units of
/// hidden layers, the heads of attention, the rows of vocabularies. The more bytes of parameters an
/// atom is part of, the earlier it comes; one that meets a split atom in the same operation does
/// not come at all.
void Analysis::assign_default() {
  const int tensor = options_.mesh.axis("tensor");
  if (tensor < 0 || options_.mesh.axis_size(tensor) == 1 || !options_.placements.empty()) return;
  std::set<int> rejected = whole_atoms();
  for (const std::string& name : kept_whole_)
    for (const int atom : dims(*parameter(name))) rejected.insert(atom);
  std::map<int, int64_t> bytes;
  for (size_t i = 0; i < function_.inputs.size(); ++i) {
    if (function_.inputs[i].kind != ir::PortKind::kParameter) continue;
    const Value& value = *function_.body.arguments[i];
    const AtomList all = dims(value);
    int64_t count = 1;
    for (const int atom : all) count *= size(atom);
    for (const int atom : all) bytes[atom] += storage_bytes(value.type.dtype, count);
  }
  std::vector<std::pair<int64_t, int>> order;
  for (const auto& [atom, n] : bytes) order.emplace_back(-n, atom);
  std::sort(order.begin(), order.end());
  for (const auto& [n, atom] : order)
    if (axis(atom) < 0 && size(atom) >= options_.mesh.axis_size(tensor) &&
        !rejected.contains(atom) && !conflicts(atom, tensor))
      assign(atom, tensor);
}

/// Splits the storage of each parameter over the axis `data`, along its largest atom that is not
/// split otherwise.
void Analysis::assign_storage() {
  const int data = options_.mesh.axis("data");
  if (!options_.shards_storage || data < 0 || options_.mesh.axis_size(data) == 1 ||
      !options_.placements.empty())
    return;
  for (size_t i = 0; i < function_.inputs.size(); ++i) {
    if (function_.inputs[i].kind != ir::PortKind::kParameter) continue;
    int best = -1;
    bool done = false;
    for (const int atom : dims(*function_.body.arguments[i])) {
      done = done || (any_axis(atom) >= 0 && options_.mesh.whole_axis(any_axis(atom)) == data);
      if (any_axis(atom) < 0 && size(atom) >= options_.mesh.axis_size(data) &&
          (best < 0 || size(atom) > size(best)))
        best = atom;
    }
    if (!done && best >= 0) storage_axes_[best] = data;
  }
}

/// The second dim of tokens, over the axis `tensor`.
void Analysis::assign_sequence() {
  const int tensor = options_.mesh.axis("tensor");
  if (!options_.splits_sequence || tensor < 0 || options_.mesh.axis_size(tensor) == 1) return;
  for (size_t i = 0; i < function_.inputs.size() && sequence_ < 0; ++i) {
    const Value& value = *function_.body.arguments[i];
    if (!options_.batch_inputs.contains(function_.inputs[i].name) ||
        function_.inputs[i].kind != ir::PortKind::kValue || !is_integer(value.type.dtype) ||
        value.type.shape.size() != 2)
      continue;
    const AtomList list = dim(value, 1);
    if (list.size() == 1 && placed_axis(list[0]) < 0 &&
        size(list[0]) >= options_.mesh.axis_size(tensor)) {
      sequence_ = list[0];
      sequence_axis_ = tensor;
    }
  }
}

}  // namespace paddle::partition
