#include "partition/localize.h"

#include <algorithm>

#include "ir/replay.h"
#include "ops/core/call.h"
#include "ops/generated/comm.h"
#include "ops/generated/shape.h"

namespace paddle::partition {

using ir::Operation;
using ir::Value;

namespace {

const char* word(Combine combine) {
  return combine == Combine::kMax ? "max" : combine == Combine::kMin ? "min" : "sum";
}

}  // namespace

Localizer::Localizer(const ir::Function& function, const PartitionOptions& options)
    : logical_(function),
      options_(options),
      analysis_(function, options),
      function_(std::make_unique<ir::Function>(function.name, function.target)),
      tracer_(*function_) {}

std::pair<int64_t, int64_t> Localizer::range(const ActiveFactor& factor) const {
  return shard_bounds(analysis_.size(factor.atom),
                      options_.mesh.coordinate(options_.rank, factor.axis),
                      options_.mesh.axis_size(factor.axis));
}

const ActiveFactor* Localizer::active(size_t operand, size_t d) const {
  const int factor = current_->rule->operands[operand][d];
  for (const ActiveFactor& a : active_)
    if (factor != kWhole && a.factor == factor) return &a;
  return nullptr;
}

const ActiveFactor* Localizer::active_in_result(size_t result, size_t d) const {
  const int factor = current_->rule->results[result][d];
  for (const ActiveFactor& a : active_)
    if (factor != kWhole && a.factor == factor) return &a;
  return nullptr;
}

Tensor Localizer::all_reduce(const Tensor& x, int axis, Combine combine) const {
  return ops::comm_all_reduce({x}, options_.mesh.group(options_.rank, axis), word(combine))[0];
}

Tensor Localizer::combine(const Tensor& x, size_t r) const {
  Tensor out = x;
  const std::vector<int>& dims = current_->rule->results[r];
  for (const ActiveFactor& a : active_)
    if (std::find(dims.begin(), dims.end(), a.factor) == dims.end())
      out = all_reduce(out, a.axis, current_->rule->combine);
  return out;
}

Tensor Localizer::combine(const Tensor& x, size_t r, SplitAtoms& split) const {
  const Value& value = *operation().results[r];
  Tensor out = x;
  const std::vector<int>& dims = current_->rule->results[r];
  for (const ActiveFactor& a : active_) {
    if (std::find(dims.begin(), dims.end(), a.factor) != dims.end()) continue;
    const auto stored =
        current_->rule->combine == Combine::kSum ? stored_atom(value, split, a.axis) : std::nullopt;
    if (stored) {
      out = reduce_scatter(value, out, split, *stored);
      split[*stored] = true;
    } else {
      out = all_reduce(out, a.axis, current_->rule->combine);
    }
  }
  return out;
}

/// For each axis the factor over which the operation is split: of several, one that the first
/// result has.
void Localizer::choose_factors() {
  active_.clear();
  const Operation& o = operation();
  const Rule& rule = *current_->rule;
  // The atoms of each factor; one whose dims could not be aligned is unusable.
  std::vector<std::optional<AtomList>> atoms(static_cast<size_t>(rule.factors));
  std::vector<bool> usable(static_cast<size_t>(rule.factors), true);
  std::vector<int> order;  // factors as they occur, results first
  const auto visit = [&](const Value* v, const std::vector<int>& factors) {
    for (size_t d = 0; v && d < factors.size(); ++d) {
      if (factors[d] == kWhole) continue;
      const auto f = static_cast<size_t>(factors[d]);
      const AtomList list = analysis_.dim(*v, d);
      if (atoms[f] && *atoms[f] != list) usable[f] = false;
      atoms[f] = list;
      order.push_back(factors[d]);
    }
  };
  for (size_t r = 0; r < o.results.size(); ++r) visit(o.results[r], rule.results[r]);
  for (size_t i = 0; i < o.operands.size(); ++i) visit(o.operands[i], rule.operands[i]);
  std::set<int> used;
  for (const int factor : order) {
    const auto f = static_cast<size_t>(factor);
    if (!usable[f] || !atoms[f]) continue;
    for (size_t k = 0; k < atoms[f]->size(); ++k) {
      const int atom = (*atoms[f])[k], axis = analysis_.axis(atom);
      if (axis >= 0 && used.insert(axis).second) active_.push_back({axis, factor, k, atom});
    }
  }
  // Parameters and states that are stored in parts are updated in parts.
  for (const int factor : order) {
    const auto f = static_cast<size_t>(factor);
    if (!usable[f] || !atoms[f]) continue;
    for (size_t k = 0; k < atoms[f]->size(); ++k) {
      const int atom = (*atoms[f])[k], axis = analysis_.storage_axis(atom);
      if (axis >= 0 && !used.contains(axis) && works_on_stored_parts(o, atom)) {
        used.insert(axis);
        active_.push_back({axis, factor, k, atom});
      }
    }
  }
  choose_sequence(order, atoms, usable, used);
}

/// The sequence, in operations that its axis does not split otherwise.
void Localizer::choose_sequence(const std::vector<int>& order,
                                const std::vector<std::optional<AtomList>>& atoms,
                                const std::vector<bool>& usable, std::set<int>& used) {
  for (const int factor : order) {
    const auto f = static_cast<size_t>(factor);
    if (!usable[f] || !atoms[f]) continue;
    for (size_t k = 0; k < atoms[f]->size(); ++k) {
      const int atom = (*atoms[f])[k], axis = analysis_.sequence_axis(atom);
      if (axis >= 0 && used.insert(axis).second) active_.push_back({axis, factor, k, atom});
    }
  }
}

/// Optimizer updates, and operations on single elements and sums of squares of which an operand is
/// such a part.
bool Localizer::works_on_stored_parts(const Operation& o, int atom) {
  if (o.op->has(kOptimizerUpdate)) return true;
  const std::string_view name = o.op->name();
  if (!o.op->has(kElementwise) && name != "transpose" && name != "sum_of_squares") return false;
  for (const Value* v : o.operands) {
    if (!v) continue;
    const AtomList list = analysis_.dims(*v);
    const SplitAtoms& split = local(*v).split;
    for (size_t k = 0; k < list.size(); ++k)
      if (list[k] == atom && split[k]) return true;
  }
  return false;
}

SplitAtoms Localizer::wanted(const Value& value, const std::vector<int>& factors) const {
  SplitAtoms split;
  for (size_t d = 0; d < value.type.shape.size(); ++d) {
    const size_t count = analysis_.dim(value, d).size();
    for (size_t k = 0; k < count; ++k)
      split.push_back(std::any_of(active_.begin(), active_.end(), [&](const ActiveFactor& a) {
        return a.factor == factors[d] && a.position == k;
      }));
  }
  return split;
}

/// The part of the random result that this rank computes, with the atoms as dims.
std::vector<int64_t> Localizer::window() const {
  const Value& out = *operation().results[0];
  const SplitAtoms split = wanted(out, current_->rule->results[0]);
  if (std::none_of(split.begin(), split.end(), [](bool s) { return s; })) return {};
  std::vector<int64_t> window;
  const AtomList atoms = analysis_.dims(out);
  for (size_t k = 0; k < atoms.size(); ++k) {
    const int64_t size = analysis_.size(atoms[k]);
    std::pair<int64_t, int64_t> range = {0, size};
    if (const int axis = analysis_.any_axis(atoms[k]); split[k])
      range = shard_bounds(size, options_.mesh.coordinate(options_.rank, axis),
                           options_.mesh.axis_size(axis));
    window.insert(window.end(), {range.second - range.first, size, range.first});
  }
  return window;
}

/// Attributes that repeat the shape of the result become local.
Attrs Localizer::local_attrs(const std::vector<Dims>& results) const {
  const Operation& o = operation();
  Attrs attrs = o.attrs;
  for (const char* name : {"shape", "input_shape", "weight_shape"})
    if (const int at = o.op->attr_index(name); at >= 0)
      attrs[static_cast<size_t>(at)] = AttrValue(to_shape(results[0]));
  if (const int at = o.op->attr_index("rows"); at >= 0)
    attrs[static_cast<size_t>(at)] = AttrValue(results[0][0]);
  if (const int at = o.op->attr_index("window"); at >= 0)
    if (const std::vector<int64_t> part = window(); !part.empty())
      attrs[static_cast<size_t>(at)] = AttrValue(part);
  return attrs;
}

Tensors Localizer::call_local(const Tensors& operands) const {
  const Operation& o = operation();
  std::vector<Dims> shapes;
  for (size_t r = 0; r < o.results.size(); ++r) {
    const Value& v = *o.results[r];
    shapes.push_back(local_shape(v, wanted(v, current_->rule->results[r])));
  }
  const Attrs attrs = local_attrs(shapes);
  const Inferred inferred = infer_results(*o.op, attrs, operands);
  return current_interpreter().apply(
      {*o.op, operands, attrs, inferred.results, inferred.constraints});
}

void Localizer::localize(const AnalyzedOperation& analyzed) {
  current_ = &analyzed;
  const Operation& o = *analyzed.operation;
  const ir::LocationScope location(o.location);
  if (localize_experts(o) || localize_on_routed_rows(analyzed)) return;
  if (!analyzed.rule) return localize_whole(o, false);
  const Rule& rule = *analyzed.rule;
  if (rule.reshapes) return localize_reshape();
  if (rule.any_parts) return localize_any_parts();
  choose_factors();
  note_gathers(o, true);
  operands_.clear();
  for (size_t i = 0; i < o.operands.size(); ++i) {
    const Value* const v = o.operands[i];
    if (v && !reads_elements(o, i))
      operands_.push_back(local(*v).tensor);
    else
      operands_.push_back(v ? placed(*v, wanted(*v, rule.operands[i])) : Tensor());
  }
  Tensors results;
  std::vector<SplitAtoms> splits;
  for (size_t r = 0; r < o.results.size(); ++r)
    splits.push_back(wanted(*o.results[r], rule.results[r]));
  if (!localize_specially(*this, results)) {
    results = call_local(operands_);
    for (size_t r = 0; r < results.size(); ++r) {
      if (postpone(r, results[r]))
        values_[o.results[r]] = {{}, splits[r], true};
      else
        values_[o.results[r]] = {combine(results[r], r, splits[r]), splits[r]};
    }
    return;
  }
  for (size_t r = 0; r < o.results.size(); ++r)
    values_[o.results[r]] = {results[r], splits[r], !results[r].defined()};
}

/// The same elements in another shape: the parts stay parts as far as the atoms correspond.
void Localizer::localize_reshape() {
  const Operation& o = operation();
  const Value &x = *o.operands[0], &out = *o.results[0];
  const AtomList from = analysis_.dims(x), to = analysis_.dims(out);
  SplitAtoms split = local(x).split, result(to.size(), false);
  bool aligned = true;
  for (size_t k = 0; k < from.size(); ++k) {
    aligned = aligned && k < to.size() && from[k] == to[k];
    split[k] = split[k] && aligned;
    if (k < to.size()) result[k] = split[k];
  }
  const Tensor operand = placed(x, split);
  const Dims shape = local_shape(out, result);
  Tensor value;
  if (same_type(x.type, out.type)) {
    value = operand;
  } else {
    value = ops::reshape(operand, to_shape(shape));
  }
  values_[&out] = {value, result};
}

/// On whatever parts the operands are in.
void Localizer::localize_any_parts() {
  const Operation& o = operation();
  active_.clear();
  Tensors operands;
  std::set<int> axes;
  for (const Value* v : o.operands) {
    const LocalValue& part = local(*v);
    operands.push_back(part.tensor);
    const AtomList atoms = analysis_.dims(*v);
    for (size_t k = 0; k < atoms.size(); ++k)
      if (part.split[k]) axes.insert(analysis_.any_axis(atoms[k]));
  }
  const Tensors results = call_local(operands);
  for (size_t r = 0; r < results.size(); ++r) {
    Tensor whole_result = results[r];
    for (const int axis : axes)
      whole_result = all_reduce(whole_result, axis, current_->rule->combine);
    values_[o.results[r]] = {whole_result, whole(*o.results[r])};
  }
}

/// On whole operands, with whole results.
void Localizer::localize_whole(const Operation& o, bool has_rule) {
  active_.clear();
  note_gathers(o, has_rule);
  Tensors operands;
  for (const Value* v : o.operands) operands.push_back(v ? placed(*v, whole(*v)) : Tensor());
  ir::ValueMap values;
  for (const auto& region : o.regions)
    for (const Value* v : ir::captures(*region)) values[v] = placed(*v, whole(*v));
  const auto nested = [&](size_t i) {
    return [&values, &region = *o.regions[i]](const Tensors& arguments) {
      ir::ValueMap inner = values;
      for (size_t a = 0; a < arguments.size(); ++a) inner[region.arguments[a]] = arguments[a];
      return ir::replay(region, inner);
    };
  };
  Tensors results;
  if (o.regions.empty()) {
    Inferred inferred = infer_results(*o.op, o.attrs, operands);
    if (o.op->has(kRunTimeShape))
      for (size_t r = 0; r < inferred.results.size(); ++r)
        inferred.results[r].shape = o.results[r]->type.shape;
    results = tracer_.apply({*o.op, operands, o.attrs, inferred.results, inferred.constraints});
  } else if (ir::is_loop(o)) {
    results = tracer_.loop(nested(0), nested(1), operands, o.attrs[0].as_int());
  } else {
    results = tracer_.branch(operands[0], nested(0), nested(1));
  }
  for (size_t r = 0; r < o.results.size(); ++r)
    values_[o.results[r]] = {results[r], whole(*o.results[r])};
}

void Localizer::note_gathers(const Operation& o, bool has_rule) {
  for (size_t i = 0; i < o.operands.size(); ++i) {
    const Value* const v = o.operands[i];
    if (!v || !reads_elements(o, i)) continue;
    const SplitAtoms want = has_rule ? wanted(*v, current_->rule->operands[i]) : whole(*v);
    const SplitAtoms& have = local(*v).split;
    bool gathers = false;
    for (size_t k = 0; k < have.size(); ++k) gathers = gathers || (have[k] && !want[k]);
    if (!gathers || cache_.contains({v, want})) continue;
    const Dims shape = local_shape(*v, want);
    gathered_.push_back({std::string(o.op->name()), o.location, has_rule, v->type.text(),
                         storage_bytes(v->type.dtype, element_count(std::span(shape)))});
  }
}

SplitAtoms Localizer::like_input(const Value& value, const Value& input) {
  const SplitAtoms& split = values_.at(&input).split;
  if (std::none_of(split.begin(), split.end(), [](bool s) { return s; })) return whole(value);
  ensure(analysis_.dims(value) == analysis_.dims(input), "partition: the new version of %",
         input.id, " is placed otherwise");
  return split;
}

bool Localizer::begins_with_batch(const Value& value) const {
  if (value.type.shape.empty()) return false;
  const AtomList atoms = analysis_.dim(value, 0);
  const int data = options_.mesh.axis("data");
  if (data < 0 || atoms.empty() || analysis_.axis(atoms[0]) != data) return false;
  for (size_t i = 0; i < logical_.inputs.size(); ++i)
    if (options_.batch_inputs.contains(logical_.inputs[i].name))
      return logical_.body.arguments[i]->type.shape[0].constant() == analysis_.size(atoms[0]);
  return false;
}

std::vector<bool> Localizer::outputs_by_rows() const {
  std::vector<bool> out(logical_.outputs.size());
  for (const std::vector<size_t>& group : options_.row_outputs) {
    const bool all = std::all_of(group.begin(), group.end(), [&](size_t i) {
      return begins_with_batch(*logical_.body.results.at(i));
    });
    for (const size_t i : group) out.at(i) = all;
  }
  return out;
}

Partitioned Localizer::run() {
  Partitioned out;
  const InterpreterScope scope(tracer_);
  for (size_t i = 0; i < logical_.inputs.size(); ++i) {
    const Value& value = *logical_.body.arguments[i];
    const ir::Port& port = logical_.inputs[i];
    const auto settled = options_.placements.find(port.name);
    const bool is_settled =
        port.kind != ir::PortKind::kValue && settled != options_.placements.end();
    SplitAtoms split;
    if (is_settled) {
      split = settled_atoms(value, settled->second);
    } else {
      split = full_placement(value);
      const AtomList atoms = analysis_.dims(value);
      for (size_t k = 0; k < split.size(); ++k)
        split[k] = split[k] && (port.kind == ir::PortKind::kValue || !options_.may_split ||
                                options_.may_split(port, analysis_.any_axis(atoms[k])));
    }
    values_[&value] = {tracer_.input(port, {value.type.dtype, to_shape(local_shape(value, split))}),
                       split};
    out.inputs.push_back(placement(value, split));
    Value& here = *ir::traced_value(values_.at(&value).tensor);
    here.name = value.name;
    here.placement = out.inputs.back();
    if (port.kind == ir::PortKind::kParameter || port.kind == ir::PortKind::kState)
      out.placements[port.name] = out.inputs.back();
  }
  find_deferrable();
  for (const AnalyzedOperation& o : analysis_.operations()) {
    if (is_deferrable(*o.operation)) {
      deferred_.push_back(&o);
      deferred_results_.insert(o.operation->results.begin(), o.operation->results.end());
      continue;
    }
    ir::for_each_read(*o.operation, [&](const Value* v) {
      if (deferred_results_.contains(v)) localize_deferred();
    });
    localize(o);
  }
  localize_deferred();
  const std::vector<bool> by_rows = outputs_by_rows();
  for (size_t i = 0; i < logical_.outputs.size(); ++i) {
    const Value& value = *logical_.body.results[i];
    const ir::Port& port = logical_.outputs[i];
    SplitAtoms split = whole(value);
    if (by_rows[i]) split[0] = true;
    // A new version is placed as the old one.
    for (size_t j = 0; j < logical_.inputs.size(); ++j)
      if (port.kind != ir::PortKind::kValue && logical_.inputs[j].kind == port.kind &&
          logical_.inputs[j].name == port.name)
        split = like_input(value, *logical_.body.arguments[j]);
    tracer_.output(port, placed(value, split));
    out.outputs.push_back(placement(value, split));
  }
  // A sum that has begun must end, whether it is read or not.
  while (!buckets_.empty()) {
    Bucket bucket = std::move(buckets_.back());
    buckets_.pop_back();
    if (!bucket.begun.empty()) flush(std::move(bucket));
  }
  for (const AnalyzedOperation& o : analysis_.operations())
    for (const Value* v : o.operation->results) {
      const LocalValue& part = values_.at(v);
      if (part.is_postponed || part.route) continue;  // it is not read, or no part of a whole
      Value* const here = ir::traced_value(part.tensor);
      out.parts.push_back({v, here, placement(*v, part.split)});
      if (here->name.empty()) here->name = v->name;
      if (here->placement.empty()) here->placement = out.parts.back().placement;
    }
  function_->constraints = logical_.constraints;
  out.function = std::move(function_);
  out.gathered = std::move(gathered_);
  return out;
}

Partitioned partition(const ir::Function& function, const PartitionOptions& options) {
  return Localizer(function, options).run();
}

}  // namespace paddle::partition
