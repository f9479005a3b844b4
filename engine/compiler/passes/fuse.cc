// Fusion: elementwise operations on values of one shape that feed each other become one operation
// `fused`, whose region holds them, with the reductions of what they give. Memory is then read and
// written once for the group.

#include <algorithm>
#include <functional>
#include <unordered_map>
#include <unordered_set>

#include "compiler/passes/group.h"
#include "compiler/passes/passes.h"

namespace paddle::passes {
namespace {

using ir::Function;
using ir::Operation;
using ir::Region;
using ir::Value;

constexpr size_t kMaxSteps = 48;
constexpr size_t kMaxOperands = 24;
constexpr size_t kMaxReductions = 4;
/// Uses looked at by all searches for a way around, which grow with the square of a graph's length.
/// The training step of ResNet-50 needs 720 thousand.
constexpr int64_t kMaxVisits = int64_t{1} << 23;

class Fuser {
 public:
  Fuser(Function& function, Region& region, const CanFuse& can_fuse)
      : function_(function), region_(region), can_fuse_(can_fuse) {}

  void run() {
    collect();
    // From the end: what the backward part recomputes from a saved value joins the backward part,
    // rather than being computed early and kept.
    for (size_t i = nodes_.size(); i-- > 0;)
      if (nodes_[i].fusable)
        for (const Value* v : nodes_[i].operation->operands)
          if (const int p = producer(v); p >= 0) try_merge(static_cast<size_t>(p), i);
    // Only then the reductions, which groups end with: they keep nothing from becoming one group.
    for (size_t i = 0; i < nodes_.size(); ++i)
      if (nodes_[i].reduces) try_reduce(i);
    rebuild();
  }

 private:
  struct Node {
    std::unique_ptr<Operation> operation;
    bool fusable = false;         ///< elementwise
    bool reduces = false;         ///< a reduction that a group may end with
    std::vector<size_t> uses;     ///< nodes that need this one first
    std::vector<size_t> needs;    ///< nodes that must come before
    std::vector<size_t> members;  ///< of the group that this node leads
    size_t leader = 0;
  };

  void collect() {
    std::vector<size_t> barriers;
    for (auto& operation : region_.operations) {
      const size_t i = nodes_.size();
      Node& n = nodes_.emplace_back();
      n.leader = i;
      n.members = {i};
      n.operation = std::move(operation);
      Operation& o = *n.operation;
      for (Value* r : o.results) made_by_[r] = i;
      std::unordered_set<size_t> needs;
      ir::for_each_read(o, [&](const Value* v) {
        if (const int p = producer(v); p >= 0 && static_cast<size_t>(p) != i)
          needs.insert(static_cast<size_t>(p));
      });
      // Effects keep their order, and sizes made at run time are known to whatever comes later.
      const bool ordered = has_effect(o) || o.op->has(kRunTimeShape);
      for (const size_t b : barriers)
        if (ordered || nodes_[b].operation->op->has(kRunTimeShape)) needs.insert(b);
      if (ordered) barriers.push_back(i);
      n.needs.assign(needs.begin(), needs.end());
      std::sort(n.needs.begin(), n.needs.end());
      for (const size_t p : n.needs) nodes_[p].uses.push_back(i);
      n.fusable = o.op->has(kElementwise) && fusable(o);
      n.reduces = o.op->has(kReduction) && o.operands.size() == 1 && fusable(o);
    }
    region_.operations.clear();
  }

  bool fusable(const Operation& o) const {
    if (o.op->has(kRandom) || o.op->has(kEffect) || o.results.size() != 1 || !o.regions.empty() ||
        o.operands.empty())
      return false;
    if (has_run_time_size(o.results[0]->type)) return false;
    for (const Value* v : o.operands)
      if (!v || has_run_time_size(v->type)) return false;
    return can_fuse_(o);
  }

  int producer(const Value* v) const {
    if (!v) return -1;
    const auto it = made_by_.find(v);
    return it == made_by_.end() ? -1 : static_cast<int>(it->second);
  }

  const TensorType& type_of(size_t node) const { return nodes_[node].operation->results[0]->type; }

  size_t leader(size_t node) const {
    while (nodes_[node].leader != node) node = nodes_[node].leader;
    return node;
  }

  /// True if what the first group makes reaches the second one through a node of neither.
  bool reaches_around(size_t first, size_t second) {
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
    if (nodes_[a].members.size() + nodes_[b].members.size() > kMaxSteps) return;
    if (operand_count(a, b) > kMaxOperands) return;
    join(a, b);
  }

  /// Joins a reduction to the group that its operand comes from.
  void try_reduce(size_t node) {
    const Operation& o = *nodes_[node].operation;
    const int from = producer(o.operands[0]);
    if (from < 0 || !nodes_[static_cast<size_t>(from)].fusable) return;
    const size_t group = leader(static_cast<size_t>(from));
    size_t others = 0;
    for (const size_t m : nodes_[group].members) {
      if (!nodes_[m].reduces) continue;
      if (reduced_axes(*nodes_[m].operation) != reduced_axes(o)) return;
      ++others;
    }
    if (others < kMaxReductions) join(group, node);
  }

  /// By axis of the operand.
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

  /// Makes two groups one where nothing else lies between them.
  void join(size_t a, size_t b) {
    if (visits_ > kMaxVisits || reaches_around(a, b) || reaches_around(b, a)) return;
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

  // ---- the new order

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

  void append_group(const std::vector<size_t>& members, size_t group) {
    std::vector<GroupPart> parts;
    for (const size_t m : members) {
      const bool read_outside = used_outside(m, group);
      parts.push_back({std::move(nodes_[m].operation), read_outside});
    }
    region_.operations.push_back(make_group(function_, std::move(parts)));
  }

  Function& function_;
  Region& region_;
  const CanFuse& can_fuse_;
  std::vector<Node> nodes_;
  std::unordered_map<const Value*, size_t> made_by_;
  std::unordered_set<const Value*> needed_outside_;
  std::vector<bool> emitted_;
  std::vector<int64_t> seen_;  ///< the last search that came by, per node
  int64_t search_ = 0;
  int64_t visits_ = 0;  ///< of uses, in all searches
};

void fuse_region(Function& function, Region& region, const CanFuse& can_fuse) {
  for (auto& operation : region.operations)
    if (operation->regions.size() != 1)
      for (auto& nested : operation->regions) fuse_region(function, *nested, can_fuse);
  Fuser(function, region, can_fuse).run();
}

}  // namespace

void fuse_elementwise(Function& function, const CanFuse& can_fuse) {
  fuse_region(function, function.body, can_fuse);
}

}  // namespace paddle::passes
