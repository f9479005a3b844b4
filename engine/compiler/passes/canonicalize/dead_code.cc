// Dead code elimination. Keeps operations that bind a run-time dim which later attributes name.

#include <unordered_set>

#include "compiler/passes/passes.h"

namespace paddle::passes {
namespace {

using ir::Operation;
using ir::Region;
using ir::Value;

void collect_symbols(const AttrValue& value, std::unordered_set<std::string>& symbols) {
  if (value.is_list())
    for (const AttrValue& v : value.as_list()) collect_symbols(v, symbols);
  if (!value.is_int() || value.as_dim().is_constant()) return;
  std::vector<std::string> names;
  value.as_dim().collect_symbols(names);
  symbols.insert(names.begin(), names.end());
}

/// Values and run-time dims that later operations read.
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

}  // namespace

void remove_dead_code(ir::Function& function) {
  Needs needs;
  remove_dead(function.body, needs);
}

}  // namespace paddle::passes
