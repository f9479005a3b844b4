#pragma once
// The blocks of a paged cache: which of them each sequence has, and how many sequences share each.
// Keys and values themselves are in the arrays of a runner (runner.h).

#include <cstdint>
#include <functional>
#include <queue>
#include <span>
#include <vector>

namespace paddle::llm {

class CacheBlocks {
 public:
  static constexpr int64_t kTokens = 16;  ///< of a block
  /// Blocks for this many tokens.
  static constexpr int64_t count_for(int64_t tokens) { return (tokens + kTokens - 1) / kTokens; }

  /// For sequences of up to `longest` blocks.
  CacheBlocks(int64_t blocks, int64_t sequences, int64_t longest);

  int64_t total() const { return static_cast<int64_t>(uses_.size()); }
  int64_t free() const { return static_cast<int64_t>(free_.size()); }
  /// Blocks up to the last one that is in use, and up to the last one that was in use since the
  /// last call of `reset_touched`.
  int64_t extent() const;
  int64_t touched() const { return touched_; }
  void reset_touched() { touched_ = extent(); }
  /// The blocks of all sequences, [sequences * longest]; 0 where there is none.
  std::span<const int64_t> table() const { return table_; }

  /// Blocks that `grow` takes for a sequence of `length` tokens to become one of `target`.
  int64_t needed(int64_t sequence, int64_t length, int64_t target) const;
  /// Gives the sequence, which has `length` tokens, blocks of its own for the tokens up to
  /// `target`. `copy(from, to)` copies a block that it shared and writes to. kInternal if there are
  /// not enough.
  void grow(int64_t sequence, int64_t length, int64_t target,
            const std::function<void(int64_t from, int64_t to)>& copy);
  /// Keeps the blocks of the first `length` tokens.
  void shrink(int64_t sequence, int64_t length);
  /// Makes the blocks of the first `length` tokens of `from` those of `to`.
  void share(int64_t from, int64_t to, int64_t length);
  /// Blocks that would be free without these sequences.
  int64_t freed_without(std::span<const int64_t> sequences) const;

 private:
  int64_t take();
  void drop(int64_t block);
  int64_t* blocks_of(int64_t sequence) { return table_.data() + sequence * longest_; }
  const int64_t* blocks_of(int64_t sequence) const { return table_.data() + sequence * longest_; }

  int64_t longest_, touched_ = 0;
  std::vector<int64_t> table_;
  std::vector<int64_t> counts_;  ///< blocks of each sequence
  std::vector<int32_t> uses_;    ///< of each block
  /// The lowest first, so that memory is taken only for as many as are in use at a time.
  std::priority_queue<int64_t, std::vector<int64_t>, std::greater<>> free_;
};

}  // namespace paddle::llm
