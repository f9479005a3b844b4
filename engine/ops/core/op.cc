#include "ops/core/op.h"

#include <algorithm>
#include <atomic>
#include <deque>
#include <map>
#include <mutex>
#include <unordered_map>

namespace paddle {
namespace {

/// The tables that readers see. Never changed once published, so that readers need no lock.
struct Snapshot {
  std::vector<const Op*> order;
  std::unordered_map<std::string_view, const Op*> by_name;  ///< names and aliases
  std::vector<Alias> aliases;
  std::map<std::string, const Provider*, std::less<>> providers;
};

std::atomic<uint64_t>& epoch() {
  static std::atomic<uint64_t> value = 0;
  return value;
}

class Registry {
 public:
  Registry() {
    auto first = std::make_unique<Snapshot>();
    size_t names = generated::alias_table().size();
    for (const auto& table : generated::op_tables()) names += table.size();
    first->by_name.reserve(names);
    std::deque<Op> ops;
    for (const auto& table : generated::op_tables())
      for (const OpDef& def : table) add(def, ops, *first);
    for (const Alias& alias : generated::alias_table()) add(alias, *first);
    publish(std::move(ops), std::move(first));
  }

  void add(std::span<const OpDef> definitions, std::span<const Alias> aliases) {
    const std::lock_guard lock(mutex_);
    auto next = std::make_unique<Snapshot>(now());
    std::deque<Op> ops;
    for (const OpDef& def : definitions) add(def, ops, *next);
    for (const Alias& alias : aliases) add(alias, *next);
    publish(std::move(ops), std::move(next));
    advance_registry_epoch();
  }

  const Snapshot& now() const { return *current_.load(std::memory_order_acquire); }

 private:
  static void add(const OpDef& def, std::deque<Op>& ops, Snapshot& to) {
    if (def.struct_size != sizeof(OpDef))
      fail(ErrorCode::kModel, "operation '", def.name,
           "' was built for another version of the engine");
    if (to.by_name.contains(def.name))
      fail(ErrorCode::kUsage, "operation '", def.name, "' is registered twice");
    if (!def.infer) fail(ErrorCode::kUsage, "operation '", def.name, "' has no inference rule");
    Op& op = ops.emplace_back();
    op.def = &def;
    op.id = static_cast<int>(to.order.size());
    op.defaults.reserve(op.attrs().size());
    for (const AttrDef& attr : op.attrs())
      op.defaults.push_back(attr.required ? AttrValue() : AttrValue::parse(attr.default_text));
    to.order.push_back(&op);
    to.by_name[def.name] = &op;
    if (!def.provider) return;
    const auto [it, added] = to.providers.emplace(def.provider->name, def.provider);
    if (!added && it->second != def.provider)
      fail(ErrorCode::kUsage, "two plug-ins have the name '", def.provider->name, "'");
  }
  static void add(const Alias& alias, Snapshot& to) {
    const auto named = to.by_name.find(alias.name);
    if (named == to.by_name.end())
      fail(ErrorCode::kUsage, "alias '", alias.alias, "' of the unknown operation '", alias.name,
           "'");
    if (!to.by_name.emplace(alias.alias, named->second).second)
      fail(ErrorCode::kUsage, "alias '", alias.alias, "' is the name of another operation");
    to.aliases.push_back(alias);
  }
  /// Keeps the operations, whose addresses stay, and all snapshots, since a reader may have one.
  void publish(std::deque<Op> ops, std::unique_ptr<Snapshot> next) {
    ops_.push_back(std::move(ops));
    snapshots_.push_back(std::move(next));
    current_.store(snapshots_.back().get(), std::memory_order_release);
  }

  std::mutex mutex_;
  std::deque<std::deque<Op>> ops_;
  std::deque<std::unique_ptr<const Snapshot>> snapshots_;
  std::atomic<const Snapshot*> current_ = nullptr;
};

Registry& registry() {
  static auto* const kInstance = new Registry;  // kept until the process ends
  return *kInstance;
}

}  // namespace

int Op::operand_index(std::string_view wanted) const {
  for (size_t i = 0; i < operands().size(); ++i)
    if (operands()[i].name == wanted) return static_cast<int>(i);
  return -1;
}

int Op::attr_index(std::string_view wanted) const {
  for (size_t i = 0; i < attrs().size(); ++i)
    if (attrs()[i].name == wanted) return static_cast<int>(i);
  return -1;
}

bool Layout::is_contiguous() const {
  // Sizes next to one of 0 may be such that their product overflows.
  if (std::find(shape.begin(), shape.end(), 0) != shape.end()) return true;
  int64_t expected = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    if (shape[i] != 1 && strides[i] != expected) return false;
    expected *= shape[i];
  }
  return true;
}

Layout Layout::contiguous(DType dtype, Dims shape) {
  Layout out;
  out.dtype = dtype;
  out.strides = contiguous_strides(shape);
  out.shape = std::move(shape);
  return out;
}

Layout Layout::of(const Array& array) {
  return {array.dtype, array.shape, array.strides, array.offset, true};
}

const Op* find_op(std::string_view name) {
  const Snapshot& ops = registry().now();
  const auto it = ops.by_name.find(name);
  return it == ops.by_name.end() ? nullptr : it->second;
}

const Op& get_op(std::string_view name) {
  if (const Op* op = find_op(name)) return *op;
  const auto names = op_names();
  fail(ErrorCode::kUsage, "unknown operation '", name, "'", did_you_mean(name, names));
}

std::span<const Op* const> all_ops() { return registry().now().order; }

std::vector<std::string> op_names() {
  std::vector<std::string> names;
  for (const Op* op : all_ops()) names.emplace_back(op->name());
  return names;
}

const Op& op_at(int id) { return *all_ops()[static_cast<size_t>(id)]; }

void register_operations(std::span<const OpDef> definitions, std::span<const Alias> aliases) {
  registry().add(definitions, aliases);
}

std::vector<Alias> all_aliases() { return registry().now().aliases; }

const Provider* find_provider(std::string_view name) {
  const Snapshot& ops = registry().now();
  const auto it = ops.providers.find(name);
  return it == ops.providers.end() ? nullptr : it->second;
}

uint64_t registry_epoch() { return epoch().load(std::memory_order_acquire); }
void advance_registry_epoch() { epoch().fetch_add(1, std::memory_order_acq_rel); }

}  // namespace paddle
