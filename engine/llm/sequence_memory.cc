#include "llm/sequence_memory.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/error.h"

namespace paddle::llm {
namespace {

constexpr std::array<std::pair<const char*, MemoryKind>, 4> kKinds = {
    {{"tokens", MemoryKind::kTokens},
     {"window", MemoryKind::kWindow},
     {"state", MemoryKind::kState},
     {"encoded", MemoryKind::kEncoded}}};

}  // namespace

std::string text(MemoryKind kind) { return kKinds[static_cast<size_t>(kind)].first; }

std::optional<MemoryKind> memory_kind(std::string_view name) {
  for (const auto& [known, kind] : kKinds)
    if (known == name) return kind;
  return std::nullopt;
}

SequenceExtent::SequenceExtent(std::span<const SequenceMemory> memories) : memories_(memories) {
  for (const SequenceMemory& memory : memories)
    ensure((memory.kind == MemoryKind::kWindow) == (memory.window > 0), "the memory '",
           memory.state, "' of the kind ", text(memory.kind), " has a window of ", memory.window);
}

bool SequenceExtent::has(MemoryKind kind) const {
  return std::any_of(memories_.begin(), memories_.end(),
                     [&](const SequenceMemory& memory) { return memory.kind == kind; });
}

void SequenceExtent::give_back(int64_t first) {
  for (const SequenceMemory& memory : memories_)
    ensure(memory.kind != MemoryKind::kWindow || first <= length_ - memory.window + 1,
           "rows of the window of '", memory.state, "' are given back");
  if (has(MemoryKind::kWindow)) window_begin_ = std::max(window_begin_, first);
}

void SequenceExtent::keep_snapshot() {
  if (has(MemoryKind::kState)) snapshots_.insert(length_);
}

int64_t SequenceExtent::reachable(int64_t length) const {
  int64_t out = std::clamp<int64_t>(length, 0, length_);
  if (out == length_) return out;
  // The next token reads a window that ends with its own row.
  for (const SequenceMemory& memory : memories_)
    if (memory.kind == MemoryKind::kWindow &&
        window_begin_ > std::max<int64_t>(0, out - memory.window + 1))
      return 0;
  if (!has(MemoryKind::kState)) return out;
  const auto after = snapshots_.upper_bound(out);
  if (after == snapshots_.begin()) return 0;
  const int64_t snapshot = *std::prev(after);
  return snapshot == out ? out : reachable(snapshot);
}

int64_t SequenceExtent::truncate(int64_t length) {
  length_ = reachable(length);
  snapshots_.erase(snapshots_.upper_bound(length_), snapshots_.end());
  if (length_ == 0) {
    window_begin_ = 0;
    snapshots_.clear();
  }
  return length_;
}

void SequenceExtent::copy(const SequenceExtent& other, int64_t length) {
  ensure(other.reachable(length) == length, "a sequence cannot be copied up to ", length);
  length_ = length;
  window_begin_ = length == 0 ? 0 : other.window_begin_;
  snapshots_ = other.snapshots_;
  snapshots_.erase(snapshots_.upper_bound(length), snapshots_.end());
}

}  // namespace paddle::llm
