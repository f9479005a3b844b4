#pragma once
// A requested sequence, shared by the thread of the request and that of the engine.

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "llm/generation.h"

namespace paddle::serve {

/// A change of a sequence in a step.
struct Event {
  enum class Kind : uint8_t {
    kText,           ///< of the answer
    kThought,        ///< text that the model writes for itself before its answer
    kCallName,       ///< a call of a tool begins: its name
    kCallArguments,  ///< text of the arguments of that call, JSON when it is complete
    kPrompt,         ///< a token of the prompt, after its first, with its score
    kEnd,            ///< the last event
  };
  Kind kind = Kind::kText;
  std::string text = {};
  std::optional<llm::GeneratedToken> token = {};
  llm::Generation::End end = llm::Generation::End::kNone;  ///< of kEnd
};

/// One sequence to generate. The thread of the request waits for events; the engine adds them.
class Job {
 public:
  Job(std::vector<tokenizers::TokenId> prompt_tokens, llm::GenerateOptions generate_options,
      bool scores_the_prompt = false)
      : prompt(std::move(prompt_tokens)),
        options(std::move(generate_options)),
        scores_prompt(scores_the_prompt) {}

  const std::vector<tokenizers::TokenId> prompt;
  const llm::GenerateOptions options;
  const bool scores_prompt;  ///< log-probabilities of the prompt's tokens are wanted too

  /// The engine drops the job before its next step.
  void cancel() { cancelled_ = true; }
  bool is_cancelled() const { return cancelled_; }

  struct State {
    std::vector<Event> events;  ///< those since the last call
    bool done = false;          ///< the last event was added
    llm::Generation::End end = llm::Generation::End::kNone;
    std::optional<Error> error;
    int64_t generated = 0, cached = 0;  ///< tokens
    int64_t drafts = 0, accepted = 0;   ///< proposed tokens, and accepted ones
  };
  /// Waits until there is something new, or for `milliseconds`.
  State take(int milliseconds);
  /// The same wait, without taking anything.
  void wait_for_tokens(int milliseconds);

  // For the engine.
  void add(Event event);
  void set_cached(int64_t tokens);
  void add_drafts(int64_t drafts, int64_t accepted);
  bool is_done();
  void finish(llm::Generation::End end, std::optional<Error> error = std::nullopt);

 private:
  std::atomic<bool> cancelled_{false};
  std::mutex mutex_;
  std::condition_variable changed_;
  State state_;
};

}  // namespace paddle::serve
