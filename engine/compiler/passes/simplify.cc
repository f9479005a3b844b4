// Folding, common subexpressions and dead code.

#include <algorithm>
#include <map>
#include <unordered_map>
#include <unordered_set>

#include "compiler/passes/passes.h"
#include "ops/rules.h"

namespace paddle::passes {

using ir::Function;
using ir::Operation;
using ir::Region;
using ir::Value;

bool has_effect(const Operation& operation) {
  if (operation.op->has(kEffect)) return true;
  for (const auto& region : operation.regions)
    for (const auto& inner : region->operations)
      if (has_effect(*inner)) return true;
  return false;
}

bool has_run_time_size(const TensorType& type) {
  std::vector<std::string> names;
  for (const Dim& d : type.shape) d.collect_symbols(names);
  return std::any_of(names.begin(), names.end(),
                     [](const std::string& n) { return n.starts_with('$'); });
}

namespace {

void collect_symbols(const AttrValue& value, std::unordered_set<std::string>& symbols) {
  if (value.is_list())
    for (const AttrValue& v : value.as_list()) collect_symbols(v, symbols);
  if (!value.is_int() || value.as_dim().is_constant()) return;
  std::vector<std::string> names;
  value.as_dim().collect_symbols(names);
  symbols.insert(names.begin(), names.end());
}

/// What later operations need: values, and sizes that are known only at run time.
struct Needs {
  std::unordered_set<const Value*> values;
  std::unordered_set<std::string> symbols;

  bool any(const Operation& operation) const {
    for (const Value* v : operation.results) {
      if (values.count(v) > 0) return true;
      if (!operation.op->has(kRunTimeShape)) continue;
      for (const Dim& d : v->type.shape)
        if (d.is_symbol() && symbols.count(d.text()) > 0) return true;
    }
    return false;
  }
};

void remove_dead(Region& region, Needs& needs) {
  for (const Value* v : region.results) needs.values.insert(v);
  for (auto it = region.operations.rbegin(); it != region.operations.rend();) {
    Operation& operation = **it;
    if (!has_effect(operation) && !needs.any(operation)) {
      it = std::make_reverse_iterator(region.operations.erase(std::next(it).base()));
      continue;
    }
    for (const Value* v : operation.operands)
      if (v) needs.values.insert(v);
    for (const AttrValue& v : operation.attrs.values) collect_symbols(v, needs.symbols);
    for (const auto& nested : operation.regions) remove_dead(*nested, needs);
    ++it;
  }
}

using Replacement = std::unordered_map<const Value*, Value*>;

Value* replaced(const Replacement& map, Value* value) {
  const auto it = map.find(value);
  return it == map.end() ? value : it->second;
}

void rewrite_operands(Operation& operation, const Replacement& map) {
  for (Value*& v : operation.operands)
    if (v) v = replaced(map, v);
}

std::string key_of(const Operation& operation) {
  std::string key(operation.op->name());
  for (const Value* v : operation.operands) key += v ? "%" + std::to_string(v->id) : "_";
  for (const AttrValue& v : operation.attrs.values) key += "|" + v.text();
  for (const int32_t n : operation.attrs.list_sizes) key += "#" + std::to_string(n);
  return key;
}

void merge(Region& region, Replacement& map, std::map<std::string, Operation*> known) {
  for (auto it = region.operations.begin(); it != region.operations.end();) {
    Operation& operation = **it;
    rewrite_operands(operation, map);
    for (const auto& nested : operation.regions) merge(*nested, map, known);
    // The sizes of a second run-time shape would be left without a value.
    if (!operation.regions.empty() || has_effect(operation) || operation.op->has(kRunTimeShape)) {
      ++it;
      continue;
    }
    auto [found, inserted] = known.try_emplace(key_of(operation), &operation);
    if (inserted) {
      ++it;
      continue;
    }
    for (size_t i = 0; i < operation.results.size(); ++i)
      map[operation.results[i]] = found->second->results[i];
    it = region.operations.erase(it);
  }
  for (Value*& v : region.results) v = replaced(map, v);
}

/// Equal constants become one, so that what is computed from them can be merged too.
void merge_constants(Function& function, Replacement& map) {
  std::map<std::string, Value*> known;
  for (const Value& v : function.values()) {
    if (!v.constant || v.constant->size() > 16) continue;
    const Array a = v.constant->contiguous();
    std::string key = v.type.text();
    key.append(static_cast<const char*>(a.raw()),
               static_cast<size_t>(storage_bytes(a.dtype, a.size())));
    auto [found, inserted] = known.try_emplace(key, const_cast<Value*>(&v));
    if (!inserted) map[&v] = found->second;
  }
}

}  // namespace

namespace {

/// What `v` is a cast of, where nothing was rounded; else `v`.
Value* before_widening(Value* v) {
  static const Op& cast = get_op("cast");
  if (!v || !v->producer || v->producer->op != &cast) return v;
  Value* const from = v->producer->operands[0];
  const DType narrow = from->type.dtype, wide = v->type.dtype;
  const bool widens = is_float(narrow) && is_float(wide) && item_size(narrow) >= 2 &&
                      item_size(narrow) < item_size(wide);
  return widens ? from : v;
}

void drop_widenings(Operation& operation) {
  const auto declared = operation.op->operands();
  if (std::none_of(declared.begin(), declared.end(), [](const OperandDef& o) { return o.widened; }))
    return;
  const OperandMap places(*operation.op, operation.attrs);
  for (size_t d = 0; d < declared.size(); ++d)
    for (size_t i = places.begin(d); declared[d].widened && i < places.end(d); ++i)
      operation.operands[i] = before_widening(operation.operands[i]);
}

void drop_identities(Region& region, Replacement& map) {
  for (auto it = region.operations.begin(); it != region.operations.end();) {
    Operation& operation = **it;
    rewrite_operands(operation, map);
    drop_widenings(operation);
    for (const auto& nested : operation.regions) drop_identities(*nested, map);
    if (operation.op->has(kSameElements) && operation.operands[0] &&
        same_type(operation.operands[0]->type, operation.results[0]->type)) {
      map[operation.results[0]] = operation.operands[0];
      it = region.operations.erase(it);
    } else {
      ++it;
    }
  }
  for (Value*& v : region.results) v = replaced(map, v);
}

}  // namespace

void remove_identities(Function& function) {
  Replacement map;
  drop_identities(function.body, map);
}

void remove_dead_code(Function& function) {
  Needs needs;
  remove_dead(function.body, needs);
}

void merge_common_subexpressions(Function& function) {
  Replacement map;
  merge_constants(function, map);
  merge(function.body, map, {});
}

namespace {

bool symbolic(const AttrValue& v) {
  if (v.is_int()) return !v.as_dim().is_constant();
  return v.is_list() && std::any_of(v.as_list().begin(), v.as_list().end(), symbolic);
}

bool foldable(const Operation& operation, int64_t max_elements) {
  const Op& op = *operation.op;
  if (op.has(kEffect) || op.has(kRandom) || op.has(kRunTimeShape) || !operation.regions.empty())
    return false;
  if (!op.has(kConstantFold) && !op.has(kCreation)) return false;
  for (const Value* v : operation.operands)
    if (v && !v->constant) return false;
  if (std::any_of(operation.attrs.values.begin(), operation.attrs.values.end(), symbolic))
    return false;
  for (const Value* v : operation.results) {
    if (!is_constant(v->type.shape) || !info(v->type.dtype).has_kernels) return false;
    if (element_count(std::span<const Dim>(v->type.shape)).value() > max_elements) return false;
  }
  return true;
}

void fold(Function& function, Region& region, Replacement& map, const Evaluate& evaluate,
          int64_t max_elements) {
  for (auto it = region.operations.begin(); it != region.operations.end();) {
    Operation& operation = **it;
    rewrite_operands(operation, map);
    for (const auto& nested : operation.regions)
      fold(function, *nested, map, evaluate, max_elements);
    if (!foldable(operation, max_elements)) {
      ++it;
      continue;
    }
    std::vector<const Array*> operands;
    std::vector<TensorType> types;
    for (const Value* v : operation.operands) operands.push_back(v ? &*v->constant : nullptr);
    for (const Value* v : operation.results) types.push_back(v->type);
    std::vector<Array> results;
    try {
      results = evaluate(*operation.op, operation.attrs, operands, types);
    } catch (const Error& e) {
      if (e.code() == ErrorCode::kInternal || e.code() == ErrorCode::kDevice) throw;
      ++it;  // refused for its values: an error of the run, if it comes to this operation
      continue;
    }
    for (size_t i = 0; i < results.size(); ++i)
      map[operation.results[i]] = function.add_constant(results[i]);
    it = region.operations.erase(it);
  }
  for (Value*& v : region.results) v = replaced(map, v);
}

}  // namespace

void fold_constants(Function& function, const Evaluate& evaluate, int64_t max_elements) {
  Replacement map;
  fold(function, function.body, map, evaluate, max_elements);
}

std::vector<Pass> standard_passes(PassOptions options) {
  std::vector<Pass> passes = {
      {"fold", [evaluate = options.evaluate](Function& f) { fold_constants(f, evaluate); }},
      {"identity", remove_identities},
      {"join_slices", join_slices},
      {"integers",
       [takes = options.layout ? options.takes_integers : nullptr,
        evaluate = options.evaluate](Function& f) { compute_on_integers(f, takes, evaluate); }},
  };
  if (options.rewrites) {
    passes.push_back(
        {"rewrite", [rules = options.rules](Function& f) { rewrite(f, rules, standard_rules()); }});
  }
  passes.push_back({"fold_norm", fold_batch_norm});
  if (options.layout) passes.push_back({"channels_last", prefer_channels_last});
  passes.push_back({"cse", merge_common_subexpressions});
  // After the merging, or what forward and backward parts both work out would be kept in between.
  if (options.layout) passes.push_back({"lower", lower});
  passes.push_back({"dce", remove_dead_code});
  if (options.fusion && options.layout)
    passes.push_back({"epilogue", [takes_along = options.takes_along](Function& f) {
                        if (takes_along) fuse_epilogues(f, takes_along);
                      }});
  if (options.fusion)
    passes.push_back({"fuse", [can_fuse = options.can_fuse](Function& f) {
                        if (can_fuse) fuse_elementwise(f, can_fuse);
                      }});
  passes.push_back({"schedule", consume_early});
  return passes;
}

namespace {

/// Passes get functions that inference accepted, so that what they throw is a defect of theirs; but
/// for errors of the user's rules, and of memory.
void run_pass(const Pass& pass, Function& function) {
  try {
    pass.run(function);
  } catch (const Error& e) {
    if (e.code() == ErrorCode::kConfig || e.code() == ErrorCode::kDevice) throw;
    fail(ErrorCode::kInternal, "the pass '", pass.name, "' failed on the function '", function.name,
         "': ", e.what());
  }
}

}  // namespace

void run_standard(ir::Function& function, PassOptions options, const Observer& observe) {
  if (observe) observe(function, "trace");
  for (const Pass& pass : standard_passes(std::move(options))) {
    run_pass(pass, function);
    if (observe) observe(function, pass.name);
  }
}

std::vector<std::string> pass_names() {
  std::vector<std::string> names;
  for (const Pass& p : standard_passes({})) names.push_back(p.name);
  return names;
}

}  // namespace paddle::passes
