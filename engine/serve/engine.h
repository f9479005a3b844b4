#pragma once
// Continuous batching: each step computes a token of every running sequence and a chunk of the
// prompts that are waiting. One thread runs the steps of all models.

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "llm/generation.h"
#include "llm/runner.h"
#include "llm/speculation.h"
#include "serve/job.h"
#include "serve/metrics.h"
#include "text/token_bytes.h"

namespace paddle::serve {

struct EngineLimits {
  int64_t streams = 8;                    ///< sequences generated at a time (slots)
  int64_t queue = 64;                     ///< waiting sequences
  double step_seconds = 0.06;             ///< limit of steps that prefill while others decode
  int64_t chunk = llm::Runner::kMaxRows;  ///< tokens of a prefill step
  bool speculate = true;                  ///< verifies several draft tokens per step
};

/// The sequences of one model.
class Engine {
 public:
  /// `runner.sequences` and `runner.kept` follow from `limits`.
  Engine(std::string name, std::shared_ptr<llm::LoadedModel> model, tokenizers::Tokenizer tokenizer,
         llm::RunnerOptions runner, const EngineLimits& limits, Metrics& metrics);

  const std::string& name() const { return name_; }
  const tokenizers::Tokenizer& tokenizer() const { return tokenizer_; }
  const tokenizers::TokenBytes& token_bytes() const { return token_bytes_; }
  const llm::Runner& runner() const { return runner_; }
  const std::shared_ptr<llm::LoadedModel>& model() const { return model_; }
  bool speculates() const { return limits_.speculate; }
  /// Sequences that can be requested at a time: running and waiting ones.
  int64_t max_sequences() const { return limits_.streams + limits_.queue; }
  /// The tokenizer's tokens as constraints need them; made when first asked for.
  std::shared_ptr<const grammar::TokenTexts> token_texts();
  /// False if the queue is full, for any of the jobs.
  bool submit(const std::vector<std::shared_ptr<Job>>& jobs);
  /// Runs a step; false if there was nothing to do. Only the steps' thread calls this.
  bool step();
  /// Makes a plan that further steps may need; false if there is none. Also for that thread.
  bool prepare() { return runner_.prepare_next(); }
  /// Updates the gauges.
  void report() const;

 private:
  /// A place for a sequence in the caches. Its tokens stay for later sequences with the same
  /// prefix.
  struct Slot {
    std::shared_ptr<Job> job;
    std::optional<llm::Generation> generation;
    std::vector<tokenizers::TokenId> cached;
    int64_t sequence = 0;
    uint64_t used = 0;  ///< when the last job began
    llm::Speculation speculation = {};
    /// A slot that is prefilling a prompt with the same prefix of `shared` tokens, which are copied
    /// when it has them; null if there is none.
    Slot* prefix_source = nullptr;
    uint64_t prefix_source_used = 0;
    int64_t shared = 0;
    std::chrono::steady_clock::time_point asked, first_token;
    /// Other sequences have taken its blocks of the paged cache; it is recomputed when blocks are
    /// free.
    bool preempted = false;
    int64_t scored = 0;  ///< tokens of the prompt whose log-probabilities are known
    /// Tokens that are not in the cache yet.
    int64_t missing() const {
      return static_cast<int64_t>(generation->tokens().size() - cached.size());
    }
  };
  /// A part of a step.
  struct Work {
    Slot* slot;
    std::vector<tokenizers::TokenId> tokens;
    int64_t wanted = 0, drafts = 0;
    const float* logits = nullptr;  ///< of the first wanted token
    int64_t accepted = 0;           ///< of the drafts
  };
  /// Drops the cached tokens from `length` on, or more where the caches cannot go back so far:
  /// those are computed again.
  void truncate(Slot& slot, size_t length);
  void drop_cancelled();
  void admit();
  bool admit_first();
  void start(Slot& slot, std::shared_ptr<Job> job);
  void copy_prefix(Slot& slot, const Slot& from);
  void find_prefix_source(Slot& slot);
  void share_prefixes();
  int64_t reserved_blocks() const;
  bool evict_ended_sequence(const Slot* kept);
  bool can_allocate(int64_t blocks, const Slot* kept);
  void preempt(Slot& slot);
  bool has_preempted() const;
  void resume();
  void allocate_blocks(std::vector<Work>& work);
  void trim_idle();
  std::vector<Work> choose();
  void add_draft_tokens(std::vector<Work>& work);
  void score_prompt(Work& work, size_t first);
  void advance(Work& work);
  void settle(Work& work);
  void fail_all(const Error& error);
  /// The name of a metric with this model's label.
  std::string metric(const char* name) const;
  void release(Slot& slot);

  std::string name_;
  tokenizers::Tokenizer tokenizer_;
  tokenizers::TokenBytes token_bytes_;
  std::shared_ptr<llm::LoadedModel> model_;
  llm::Runner runner_;
  EngineLimits limits_;
  Metrics& metrics_;
  std::mutex texts_mutex_;
  std::shared_ptr<const grammar::TokenTexts> texts_;
  mutable std::mutex mutex_;  ///< of the queue; slots belong to the steps' thread
  std::deque<std::pair<std::shared_ptr<Job>, std::chrono::steady_clock::time_point>> queue_;
  std::vector<Slot> slots_;
  std::atomic<int64_t> running_{0}, blocks_used_{0};
  uint64_t clock_ = 0;
  double rows_per_second_ = 0;  ///< of steps that read prompts; 0: not known yet
  llm::StepTimes step_times_;   ///< of steps that only generate
};

/// The thread of the steps.
class EngineThread {
 public:
  explicit EngineThread(std::vector<Engine*> engines);
  /// Ends after the current step.
  ~EngineThread();
  EngineThread(const EngineThread&) = delete;
  EngineThread& operator=(const EngineThread&) = delete;
  /// There is new work.
  void wake();

 private:
  void run();
  std::vector<Engine*> engines_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool woken_ = false, stopping_ = false;
  std::thread thread_;
};

}  // namespace paddle::serve
