// Regions for compilers of plug-ins: groups of connected operations that a compiler supports.

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "base/log.h"
#include "compiler/passes/fusion/fused_operation.h"
#include "compiler/passes/passes.h"
#include "compiler/region_compilers.h"
#include "ops/core/access.h"
#include "ops/core/rules.h"

namespace paddle::compiler {
namespace {

using ir::Operation;
using ir::Region;
using ir::Value;

bool has_plain_type(const Value& value) {
  return value.type.ranked && info(value.type.dtype).has_kernels &&
         !passes::has_run_time_size(value.type);
}

/// Whether regions may contain it at all.
bool may_join(const Operation& o) {
  constexpr uint32_t kNever =
      kRandom | kEffect | kRunTimeShape | kControlFlow | kOptimizerUpdate | kAllAccesses;
  if ((o.op->def->traits & kNever) || o.results.empty() || !o.regions.empty()) return false;
  const OperandMap map(*o.op, o.attrs);
  for (size_t d = 0; d < o.op->operands().size(); ++d)
    for (size_t i = map.begin(d); i < map.end(d); ++i) {
      const Value* const v = o.operands[i];
      if (v && (!has_plain_type(*v) || (o.op->operands()[d].host && !v->constant))) return false;
    }
  return std::ranges::all_of(o.results, [](const Value* v) { return has_plain_type(*v); });
}

std::optional<Layout> static_layout(const Value& value) {
  Dims dims;
  for (const Dim& d : value.type.shape) {
    if (!d.is_constant()) return std::nullopt;
    dims.push_back(d.value());
  }
  Layout out = Layout::contiguous(value.type.dtype, std::move(dims));
  if (value.constant) out.constant = value.constant->raw();
  return out;
}

/// The layouts of values; none if a size is not known.
std::optional<std::vector<Layout>> static_layouts(const std::vector<Value*>& values) {
  std::vector<Layout> out;
  for (const Value* v : values) {
    auto layout = static_layout(*v);
    if (!layout) return std::nullopt;
    out.push_back(std::move(*layout));
  }
  return out;
}

/// Forms the groups of one region of a function. Each operation has a level, which grows along
/// every path that leaves the operations of the compiler and comes back to them. Connected
/// operations of one level are a group: no path leaves it and comes back.
class Claims {
 public:
  Claims(ir::Function& function, Region& region, const RegionCompiler& compiler,
         const RegionCompilers& others)
      : function_(function), region_(region), compiler_(compiler), others_(others) {}

  void run() {
    collect();
    find_results();
    std::vector<bool> appended(nodes_.size(), false);
    for (size_t i = 0; i < nodes_.size(); ++i)
      if (const size_t group = leader(i); nodes_[group].members.back() == i)
        append_with_needs(group, appended);
  }
  size_t regions = 0, operations = 0, declined = 0;

 private:
  struct Node {
    std::unique_ptr<Operation> operation;
    bool supported = false;
    int level = -1;
    size_t leader = 0;
    std::vector<size_t> needs;    ///< nodes that this one depends on
    std::vector<size_t> members;  ///< of the group that this node leads, ascending
  };

  void collect() {
    std::vector<size_t> barriers;
    for (auto& operation : region_.operations) {
      const size_t i = nodes_.size();
      Node& n = nodes_.emplace_back();
      n.operation = std::move(operation);
      n.leader = i;
      n.members = {i};
      Operation& o = *n.operation;
      std::unordered_set<size_t> needs;
      ir::for_each_read(o, [&](const Value* v) {
        if (const auto at = producers_.find(v); at != producers_.end()) needs.insert(at->second);
      });
      for (const Value* r : o.results) producers_[r] = i;
      // Side effects keep their order, and later operations may read run-time dims.
      const bool ordered = passes::has_effect(o) || o.op->has(kRunTimeShape);
      for (const size_t b : barriers)
        if (ordered || nodes_[b].operation->op->has(kRunTimeShape)) needs.insert(b);
      if (ordered) barriers.push_back(i);
      n.needs.assign(needs.begin(), needs.end());
      std::ranges::sort(n.needs);
      n.supported = may_join(o) && compiler_.supports(o) && !is_cheaper_elsewhere(o);
      n.level = n.supported ? 0 : -1;
      for (const size_t p : n.needs)
        n.level =
            std::max(n.level, nodes_[p].level + (n.supported && !nodes_[p].supported ? 1 : 0));
      if (n.supported)
        for (const size_t p : n.needs)
          if (nodes_[p].supported && nodes_[p].level == n.level) merge(leader(p), i);
    }
    region_.operations.clear();
  }

  /// Whether another compiler computes the operation at a lower cost.
  bool is_cheaper_elsewhere(const Operation& o) const {
    if (!compiler_.cost || others_.size() < 2) return false;
    const double own = compiler_.cost(o);
    return std::ranges::any_of(others_, [&](const auto& other) {
      return other.get() != &compiler_ && other->cost && other->supports(o) && other->cost(o) < own;
    });
  }

  size_t leader(size_t node) const {
    while (nodes_[node].leader != node) node = nodes_[node].leader;
    return node;
  }

  void merge(size_t a, size_t b) {
    b = leader(b);
    if (a == b) return;
    if (nodes_[a].members.size() < nodes_[b].members.size()) std::swap(a, b);
    std::vector<size_t> both;
    std::ranges::merge(nodes_[a].members, nodes_[b].members, std::back_inserter(both));
    nodes_[a].members = std::move(both);
    nodes_[b].members.clear();
    nodes_[b].leader = a;
  }

  /// The values that are read outside of the group that computes them.
  void find_results() {
    results_.insert(region_.results.begin(), region_.results.end());
    for (size_t i = 0; i < nodes_.size(); ++i)
      ir::for_each_read(*nodes_[i].operation, [&](const Value* v) {
        const auto at = producers_.find(v);
        if (at != producers_.end() && leader(at->second) != leader(i)) results_.insert(v);
      });
  }

  /// Appends a group after those that it needs.
  void append_with_needs(size_t last, std::vector<bool>& appended) {
    std::vector<size_t> stack = {last};
    while (!stack.empty()) {
      const size_t group = stack.back(), size = stack.size();
      if (!appended[group])
        for (const size_t m : nodes_[group].members)
          for (const size_t p : nodes_[m].needs)
            if (const size_t needed = leader(p); needed != group && !appended[needed])
              stack.push_back(needed);
      if (stack.size() > size) continue;
      stack.pop_back();
      if (!appended[group]) append(nodes_[group].members);
      appended[group] = true;
    }
  }

  void append(const std::vector<size_t>& members) {
    passes::Members taken;
    bool has_result = false;
    for (const size_t m : members) {
      for (const Value* v : nodes_[m].operation->results)
        has_result = has_result || results_.count(v) > 0;
      taken.push_back(std::move(nodes_[m].operation));
    }
    const bool is_group = nodes_[members[0]].supported && has_result &&
                          taken.size() >= std::max<size_t>(1, compiler_.least_operations);
    if (is_group) taken = claimed(std::move(taken));
    std::ranges::move(taken, std::back_inserter(region_.operations));
  }

  /// The members as one operation, or as they are if the compiler declines them.
  passes::Members claimed(passes::Members members) {
    const size_t count = members.size();
    passes::Members out;
    out.push_back(passes::make_group(function_, get_op("plugin.region"), std::move(members),
                                     [&](const Value* v) { return results_.count(v) > 0; }));
    Operation& group = *out[0];
    group.attrs[static_cast<size_t>(group.op->attr_index("compiler"))] = compiler_.name;
    const auto operands = static_layouts(group.operands), results = static_layouts(group.results);
    if (operands && results) {
      const SymbolLookup symbols = [](const std::string&) { return std::nullopt; };
      group.kernel = compile_region({group, *operands, *results, symbols, function_.target.device});
      if (!group.kernel) {
        ++declined;
        return passes::dissolve(group);
      }
    }
    ++regions;
    operations += count;
    return out;
  }

  ir::Function& function_;
  Region& region_;
  const RegionCompiler& compiler_;
  const RegionCompilers& others_;
  std::vector<Node> nodes_;
  std::unordered_map<const Value*, size_t> producers_;
  std::unordered_set<const Value*> results_;
};

/// The regions of control flow, from the innermost, and then the function's body.
void claim_in(ir::Function& function, Region& region, const RegionCompiler& compiler,
              const RegionCompilers& others, size_t (&counts)[3]) {
  for (const auto& operation : region.operations)
    if (operation->regions.size() > 1)
      for (const auto& nested : operation->regions)
        claim_in(function, *nested, compiler, others, counts);
  Claims claims(function, region, compiler, others);
  claims.run();
  counts[0] += claims.regions;
  counts[1] += claims.operations;
  counts[2] += claims.declined;
}

}  // namespace

void claim_regions(ir::Function& function, const RegionCompiler& compiler,
                   const RegionCompilers& others) {
  if (compiler.device_kind != function.target.device.kind) return;
  size_t counts[3] = {};
  claim_in(function, function.body, compiler, others, counts);
  log(LogLevel::kDebug, str("'", function.name, "': ", compiler.name, " takes ", counts[0],
                            " regions of ", counts[1], " operations and declines ", counts[2]));
}

}  // namespace paddle::compiler
