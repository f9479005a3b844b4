#pragma once
// The memory of a sequence between the steps of a language model, by its kinds of caches, and how
// far back a sequence can go with them.

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace paddle::llm {

enum class MemoryKind : uint8_t {
  kTokens,   ///< a row for each token, such as keys and values: goes back to any length
  kWindow,   ///< as tokens, but rows that have left the window are given back
  kState,    ///< of a fixed size, such as that of a recurrent layer: goes back to snapshots only
  kEncoded,  ///< of a fixed size after one computation, such as an encoder's: stays until length 0
};
/// "tokens", "window", "state" or "encoded".
std::string text(MemoryKind kind);
/// The kind of this name; nothing for another name.
std::optional<MemoryKind> memory_kind(std::string_view name);

/// A cache of a model: a state of its function `step`.
struct SequenceMemory {
  std::string state = {};  ///< its name in the function
  MemoryKind kind = MemoryKind::kTokens;
  int64_t window = 0;  ///< tokens that kWindow keeps
};

/// How far back one sequence can go: its length, and what its caches still have.
class SequenceExtent {
 public:
  /// `memories` outlives the object.
  explicit SequenceExtent(std::span<const SequenceMemory> memories);

  int64_t length() const { return length_; }
  /// The first token whose row the caches of kWindow still have.
  int64_t window_begin() const { return window_begin_; }
  void grow(int64_t tokens) { length_ += tokens; }
  /// The caches of kWindow no longer have the rows before token `first`, which no later step reads.
  void give_back(int64_t first);
  /// The states are kept as they are now, so that the sequence can go back to its length.
  void keep_snapshot();
  /// The longest length up to `length` that all caches reach: 0 where only the beginning is left.
  int64_t reachable(int64_t length) const;
  /// Goes back to `reachable(length)`, which it returns. Snapshots after it are dropped.
  int64_t truncate(int64_t length);
  /// Has the tokens, windows and snapshots that another sequence has up to `length`, which that one
  /// reaches.
  void copy(const SequenceExtent& other, int64_t length);

 private:
  bool has(MemoryKind kind) const;

  std::span<const SequenceMemory> memories_;
  int64_t length_ = 0, window_begin_ = 0;
  std::set<int64_t> snapshots_;  ///< lengths
};

}  // namespace paddle::llm
