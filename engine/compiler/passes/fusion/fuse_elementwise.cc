// Elementwise fusion: groups elementwise operations of one shape that feed each other, with the
// reductions of their results and, on devices that can, the product that they read, into `fused`
// operations, which read and write memory once. Groups are merged greedily as long as no path
// leaves and re-enters them.

#include <algorithm>
#include <functional>
#include <unordered_map>
#include <unordered_set>

#include "compiler/passes/fusion/fused_operation.h"
#include "compiler/passes/passes.h"

namespace paddle::passes {
namespace {

using ir::Function;
using ir::Operation;
using ir::Region;
using ir::Value;

/// Bound on the uses visited by all cycle checks, which are quadratic in the size of the graph. The
/// training step of ResNet-50 needs 720 thousand.
constexpr int64_t kMaxVisits = int64_t{1} << 23;

class Fuser {
 public:
  Fuser(Function& function, Region& region, const CanFuse& can_fuse,
        const FusesAround& fuses_around)
      : function_(function),
        region_(region),
        can_fuse_(can_fuse),
        fuses_around_(fuses_around),
        limits_(function.target.fusion) {}

  void run() {
    collect();
    // From the end, so that operations that the backward pass recomputes from a saved value join
    // its groups instead of being computed early and kept.
    for (size_t i = nodes_.size(); i-- > 0;)
      if (nodes_[i].fusable)
        for (const Value* v : nodes_[i].operation->operands)
          if (const int p = producer(v); p >= 0) try_merge(static_cast<size_t>(p), i);
    for (size_t i = 0; i < nodes_.size(); ++i)
      if (nodes_[i].is_product) try_product(i);
    // Reductions last, since they end a group and must not keep elementwise groups from merging.
    for (size_t i = 0; i < nodes_.size(); ++i)
      if (nodes_[i].reduces) try_reduce(i);
    rebuild();
  }

 private:
  struct Node {
    std::unique_ptr<Operation> operation;
    bool fusable = false;         ///< elementwise
    bool reduces = false;         ///< a reduction that can end a group
    bool is_product = false;      ///< a product that can begin a group
    bool has_product = false;     ///< of the group that this node leads
    std::vector<size_t> uses;     ///< nodes that depend on this one
    std::vector<size_t> needs;    ///< nodes that this one depends on
    std::vector<size_t> members;  ///< of the group that this node leads
    size_t leader = 0;
  };

  static size_t limit(int64_t most) { return static_cast<size_t>(most); }

  void collect() {
    std::vector<size_t> barriers;
    for (auto& operation : region_.operations) {
      const size_t i = nodes_.size();
      Node& n = nodes_.emplace_back();
      n.leader = i;
      n.members = {i};
      n.operation = std::move(operation);
      Operation& o = *n.operation;
      for (Value* r : o.results) producer_of_[r] = i;
      std::unordered_set<size_t> needs;
      ir::for_each_read(o, [&](const Value* v) {
        if (const int p = producer(v); p >= 0 && static_cast<size_t>(p) != i)
          needs.insert(static_cast<size_t>(p));
      });
      // Side effects keep their order, and later operations may read run-time dims.
      const bool ordered = has_effect(o) || o.op->has(kRunTimeShape);
      for (const size_t b : barriers)
        if (ordered || nodes_[b].operation->op->has(kRunTimeShape)) needs.insert(b);
      if (ordered) barriers.push_back(i);
      n.needs.assign(needs.begin(), needs.end());
      std::sort(n.needs.begin(), n.needs.end());
      for (const size_t p : n.needs) nodes_[p].uses.push_back(i);
      n.fusable = o.op->has(kElementwise) && fusable(o);
      n.reduces = o.op->has(kReduction) && o.operands.size() == 1 && fusable(o);
      n.is_product = has_known_form(o) && fuses_around_ && fuses_around_(o, Around::kElementwise);
    }
    region_.operations.clear();
  }

  bool fusable(const Operation& o) const {
    if (o.op->has(kRandom) || o.op->has(kEffect) || o.operands.empty() || !has_known_form(o) ||
        std::ranges::find(o.operands, nullptr) != o.operands.end())
      return false;
    return can_fuse_(o);
  }
  /// One result, and sizes that are known before the function runs.
  static bool has_known_form(const Operation& o) {
    const auto known = [](const Value* v) { return !v || !has_run_time_size(v->type); };
    return o.results.size() == 1 && o.regions.empty() && known(o.results[0]) &&
           std::ranges::all_of(o.operands, known);
  }

  int producer(const Value* v) const {
    if (!v) return -1;
    const auto it = producer_of_.find(v);
    return it == producer_of_.end() ? -1 : static_cast<int>(it->second);
  }

  const TensorType& type_of(size_t node) const { return nodes_[node].operation->results[0]->type; }

  size_t leader(size_t node) const {
    while (nodes_[node].leader != node) node = nodes_[node].leader;
    return node;
  }

  /// True if there is a path from the first group to the second through a node outside both.
  bool has_outside_path(size_t first, size_t second) {
    std::vector<size_t> stack;
    seen_.resize(nodes_.size(), 0);
    ++search_;
    const auto push_uses = [&](size_t node, bool own) {
      visits_ += static_cast<int64_t>(nodes_[node].uses.size());
      for (const size_t u : nodes_[node].uses) {
        const size_t g = leader(u);
        if (g == first || (own && g == second)) continue;
        if (g == second) return true;
        if (seen_[g] != search_) stack.push_back(g);
        seen_[g] = search_;
      }
      return false;
    };
    for (const size_t m : nodes_[first].members) push_uses(m, true);
    while (!stack.empty()) {
      const size_t g = stack.back();
      stack.pop_back();
      for (const size_t m : nodes_[g].members)
        if (push_uses(m, false)) return true;
    }
    return false;
  }

  void try_merge(size_t producer_node, size_t consumer) {
    if (!nodes_[producer_node].fusable) return;
    const size_t a = leader(producer_node), b = leader(consumer);
    if (a == b || !same_shape(type_of(a).shape, type_of(b).shape)) return;
    if (nodes_[a].members.size() + nodes_[b].members.size() > limit(limits_.operations)) return;
    if (operand_count(a, b) > limit(limits_.operands)) return;
    merge(a, b);
  }

  /// Merges a product into the first group of elementwise operations that reads it, which then runs
  /// after what the product needs.
  void try_product(size_t node) {
    for (const size_t use : nodes_[node].uses) {
      if (!nodes_[use].fusable || !same_shape(type_of(node).shape, type_of(use).shape)) continue;
      const size_t group = leader(use);
      const bool needs_group = std::ranges::any_of(
          nodes_[node].needs, [&](size_t need) { return leader(need) == group; });
      if (nodes_[group].has_product || needs_group ||
          operand_count(group, node) > limit(limits_.operands))
        continue;
      merge(group, node);
      if (leader(node) != group) continue;
      nodes_[group].has_product = true;
      return;
    }
  }

  /// Merges a reduction into the group that produces its operand.
  void try_reduce(size_t node) {
    const Operation& o = *nodes_[node].operation;
    const int from = producer(o.operands[0]);
    if (from < 0 || !nodes_[static_cast<size_t>(from)].fusable) return;
    const size_t group = leader(static_cast<size_t>(from));
    if (nodes_[group].has_product && !sums_columns(o)) return;
    size_t others = 0;
    for (const size_t m : nodes_[group].members) {
      if (!nodes_[m].reduces) continue;
      if (reduced_axes(*nodes_[m].operation) != reduced_axes(o)) return;
      ++others;
    }
    if (others < limit(limits_.reductions)) merge(group, node);
  }

  /// Whether all axes but the last are reduced, which tiles of a product can.
  static bool sums_columns(const Operation& o) {
    const std::vector<bool> reduced = reduced_axes(o);
    return reduced.size() > 1 && !reduced.back() &&
           std::find(reduced.begin(), reduced.end() - 1, false) == reduced.end() - 1;
  }

  /// By axis of the operand: whether it is reduced.
  static std::vector<bool> reduced_axes(const Operation& o) {
    const size_t rank = o.operands[0]->type.shape.size();
    const int at = o.op->attr_index("axis");
    const AttrValue none;
    const AttrValue& given = at < 0 ? none : o.attrs[static_cast<size_t>(at)];
    const auto axes = given.is_none() ? std::vector<int64_t>() : given.as_ints();
    std::vector<bool> reduced(rank, axes.empty());
    for (const int64_t axis : axes)
      if (rank > 0)
        reduced[static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(rank) : axis)] = true;
    return reduced;
  }

  /// Merges two groups unless that would create a cycle.
  void merge(size_t a, size_t b) {
    if (visits_ > kMaxVisits || has_outside_path(a, b) || has_outside_path(b, a)) return;
    Node& into = nodes_[a];
    into.members.insert(into.members.end(), nodes_[b].members.begin(), nodes_[b].members.end());
    std::sort(into.members.begin(), into.members.end());
    nodes_[b].members.clear();
    nodes_[b].leader = a;
  }

  size_t operand_count(size_t a, size_t b) const {
    std::unordered_set<const Value*> outside;
    for (const size_t g : {a, b})
      for (const size_t m : nodes_[g].members)
        for (const Value* v : nodes_[m].operation->operands) {
          const int p = producer(v);
          const size_t from = p < 0 ? nodes_.size() : leader(static_cast<size_t>(p));
          if (from != a && from != b) outside.insert(v);
        }
    return outside.size();
  }

  // --- emit groups in topological order ---

  void rebuild() {
    for (Value* v : region_.results) needed_outside_.insert(v);
    emitted_.assign(nodes_.size(), false);
    for (size_t i = 0; i < nodes_.size(); ++i) {
      const size_t g = leader(i);
      if (nodes_[g].members.back() == i) emit(g);
    }
  }

  void emit(size_t group) {
    if (emitted_[group]) return;
    emitted_[group] = true;
    for (const size_t m : nodes_[group].members)
      for (const size_t p : nodes_[m].needs)
        if (leader(p) != group) emit(leader(p));
    if (nodes_[group].members.size() == 1)
      region_.operations.push_back(std::move(nodes_[group].operation));
    else
      append_group(nodes_[group].members, group);
  }

  bool used_outside(size_t node, size_t group) const {
    if (needed_outside_.count(nodes_[node].operation->results[0]) > 0) return true;
    return std::any_of(nodes_[node].uses.begin(), nodes_[node].uses.end(),
                       [&](size_t u) { return leader(u) != group; });
  }

  void append_group(const std::vector<size_t>& nodes, size_t group) {
    Members members;
    std::unordered_set<const Value*> results;
    const auto add = [&](size_t m) {
      if (used_outside(m, group)) results.insert(nodes_[m].operation->results[0]);
      members.push_back(std::move(nodes_[m].operation));
    };
    for (const size_t m : nodes)  // which needs none of the others
      if (nodes_[m].is_product) add(m);
    for (const size_t m : nodes)
      if (!nodes_[m].is_product) add(m);
    region_.operations.push_back(make_fused(function_, std::move(members), [&](const Value* value) {
      return results.count(value) > 0;
    }));
  }

  Function& function_;
  Region& region_;
  const CanFuse& can_fuse_;
  const FusesAround& fuses_around_;
  FusionLimits limits_;
  std::vector<Node> nodes_;
  std::unordered_map<const Value*, size_t> producer_of_;
  std::unordered_set<const Value*> needed_outside_;
  std::vector<bool> emitted_;
  std::vector<int64_t> seen_;  ///< by node: the last search that visited it
  int64_t search_ = 0;
  int64_t visits_ = 0;  ///< uses visited by all searches
};

void fuse_region(Function& function, Region& region, const CanFuse& can_fuse,
                 const FusesAround& fuses_around) {
  for (auto& operation : region.operations)
    if (operation->regions.size() != 1)
      for (auto& nested : operation->regions)
        fuse_region(function, *nested, can_fuse, fuses_around);
  Fuser(function, region, can_fuse, fuses_around).run();
}

}  // namespace

void fuse_elementwise(Function& function, const CanFuse& can_fuse,
                      const FusesAround& fuses_around) {
  fuse_region(function, function.body, can_fuse, fuses_around);
}

}  // namespace paddle::passes
