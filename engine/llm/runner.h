#pragma once
// Runs a loaded model on several sequences, whose keys and values it caches. A step takes tokens of
// any of them; a token's logits do not depend on what else is in the step.

#include <memory>
#include <span>
#include <vector>

#include "llm/cache_blocks.h"
#include "llm/loaded_model.h"
#include "llm/sequence_memory.h"
#include "runtime/executable.h"
#include "text/tokenizer.h"

namespace paddle::llm {

struct RunnerOptions {
  int64_t sequences = 1;
  int64_t context = 0;  ///< tokens of a sequence; 0: the model's, as far as memory allows
  CacheType cache = CacheType::kF32;
  std::string adapter = {};  ///< a folder of PEFT; empty: none
  int64_t chunk = 0;  ///< tokens of a prompt that a step reads; 0: kMaxRows. No bit depends on it
  /// The cache has blocks of tokens, which sequences take as they grow and share, instead of a
  /// place of `context` tokens for each sequence. No bit depends on it.
  bool paged = false;
  /// Of a paged cache, in all; 0: `context` for each of the sequences, as far as memory allows.
  int64_t tokens = 0;
  int64_t kept =
      0;  ///< further sequences of a paged cache, for texts that stay while there is room
};

/// Tokens that continue a sequence in one step.
struct StepPart {
  int64_t sequence = 0;
  std::span<const tokenizers::TokenId> tokens;
  int64_t wanted = 1;  ///< of how many of the last tokens the logits are wanted
};

class Runner {
 public:
  /// kUsage for a context that is above the model's or the tokens of a paged cache, kDevice for
  /// caches that do not fit into memory.
  Runner(std::shared_ptr<LoadedModel> model, const RunnerOptions& options);

  /// Tokens of a step; longer inputs are computed in chunks of at most this size.
  static constexpr int64_t kMaxRows = 256;
  /// The rows of the plan that computes a step of `rows`: more tokens up to these take no time.
  static int64_t planned_rows(int64_t rows);

  const LoadedModel& model() const { return *model_; }
  int64_t context() const { return context_; }
  int64_t sequences() const { return std::ssize(extents_); }
  size_t cache_bytes_of_token() const { return token_bytes_; }
  int64_t cache_tokens() const { return slots_; }  ///< that all caches can hold
  /// Tokens of the sequence that are in the cache.
  int64_t length(int64_t sequence) const {
    return extents_.at(static_cast<size_t>(sequence)).length();
  }
  /// The longest length up to `length` that the sequence can go back to: `length` itself unless the
  /// model has caches that cannot (llm/sequence_memory.h).
  int64_t reachable(int64_t sequence, int64_t length) const {
    return extents_.at(static_cast<size_t>(sequence)).reachable(length);
  }
  /// Drops the tokens from `length` on, or further ones as far as they must be computed again;
  /// returns the length that it reached.
  int64_t truncate(int64_t sequence, int64_t length);
  /// Makes the first `length` tokens of `from`, which it reaches, those of `to`. Keys and values
  /// are copied; those of a paged cache are shared until one of the two writes to them.
  void copy(int64_t from, int64_t to, int64_t length);

  /// The blocks of a paged cache; null for a plain one, which has always room.
  const CacheBlocks* blocks() const { return blocks_.get(); }
  /// Blocks that the sequence takes from the free ones to have `length` tokens.
  int64_t blocks_needed(int64_t sequence, int64_t length) const {
    return blocks_ ? blocks_->needed(sequence, this->length(sequence), length) : 0;
  }
  /// Gives the memory after the last block that is in use back to the system.
  void trim();

  /// Computes at most kMaxRows tokens; each sequence is in one part at most. Returns the wanted
  /// logits, float32 [wanted, vocab_size], in the order of the parts; valid until the next step.
  /// kDevice if a paged cache has too few free blocks.
  const float* step(std::span<const StepPart> parts);
  /// Appends tokens to a sequence in chunks; returns the logits of the last one.
  const float* append(int64_t sequence, std::span<const tokenizers::TokenId> tokens);
  /// The same, and writes the logits of all of them to `out` [tokens, vocab_size].
  void append_all(int64_t sequence, std::span<const tokenizers::TokenId> tokens, float* out);
  /// Floating-point operations for the logits of a text of this length.
  double flops(int64_t length);
  int64_t vocab_size() const { return vocab_size_; }
  /// Makes the plan for one size of steps, so that no step has to; false if all are made. Plans are
  /// made where they are needed in any case. After the last one, the memory for values is that of
  /// the largest step which generates a token of each sequence, and a larger one, such as one that
  /// checks many drafts, takes its own for a while.
  bool prepare_next();
  int64_t plans_made() const { return executable_->plans_made(); }
  /// Names of the kernels of a step with this many rows.
  std::vector<std::string> kernels(int64_t rows);

 private:
  /// That the caches are on and the steps run on.
  Device device() const { return model_->options().compile.target.device; }
  void choose_sizes(const RunnerOptions& options, Adapter* adapter);
  void copy_slots(int64_t from, int64_t to, int64_t count);
  std::vector<const Array*> caches() const;
  void grow(std::span<const StepPart> parts);
  void set_rows(int64_t rows, int64_t results);
  runtime::Plan& plan();  ///< for the rows that are set

  std::shared_ptr<LoadedModel> model_;
  std::unique_ptr<runtime::Executable> executable_;
  std::vector<Array> arrays_;                                    ///< one per input of the function
  size_t tokens_ = 0, positions_ = 0, starts_ = 0, wanted_ = 0;  ///< inputs
  size_t logits_ = 0;                                            ///< output
  std::vector<SequenceExtent> extents_;
  int64_t context_ = 0, vocab_size_ = 0;
  int64_t capacity_ = 0, slots_ = 0;  ///< of a sequence, and of the caches
  std::unique_ptr<CacheBlocks> blocks_;
  size_t token_bytes_ = 0;
  int64_t chunk_ = kMaxRows;
  int64_t prepared_rows_ = 1, prepared_results_ = 1;  ///< the next size of `prepare_next`
  int64_t generated_ = 1;                             ///< sequences that grow at a time
  size_t largest_values_ = 0;                         ///< of a step that generates a token of each
};

}  // namespace paddle::llm
