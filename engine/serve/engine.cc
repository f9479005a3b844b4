#include "serve/engine.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <utility>

#include "base/elapsed.h"
#include "base/parallel.h"
#include "base/thread_scope.h"

namespace paddle::serve {

namespace {

using Clock = std::chrono::steady_clock;

/// Ended sequences that a paged cache keeps for each slot, in addition to those that a plain one
/// keeps too. They use blocks that running sequences do not need.
constexpr int64_t kKeptSequences = 3;

llm::RunnerOptions with_places(llm::RunnerOptions options, int64_t streams) {
  options.sequences = streams;
  options.kept = options.paged ? kKeptSequences * streams : 0;
  return options;
}

}  // namespace

Engine::Engine(std::string name, std::shared_ptr<llm::LoadedModel> model,
               tokenizers::Tokenizer tokenizer, llm::RunnerOptions runner,
               const EngineLimits& limits, Metrics& metrics)
    : name_(std::move(name)),
      tokenizer_(std::move(tokenizer)),
      token_bytes_(tokenizer_),
      model_(std::move(model)),
      runner_(model_, with_places(std::move(runner), limits.streams)),
      limits_(limits),
      metrics_(metrics),
      slots_(static_cast<size_t>(runner_.sequences())) {
  for (size_t i = 0; i < slots_.size(); ++i) slots_[i].sequence = static_cast<int64_t>(i);
}

bool Engine::submit(const std::vector<std::shared_ptr<Job>>& jobs) {
  const std::lock_guard lock(mutex_);
  const int64_t free = limits_.streams - running_.load();
  if (static_cast<int64_t>(queue_.size() + jobs.size()) > limits_.queue + free) return false;
  for (const auto& job : jobs) queue_.emplace_back(job, Clock::now());
  return true;
}

void Engine::release(Slot& slot) {
  if (slot.job) --running_;
  slot.job = nullptr;
  slot.prefix_source = nullptr;
  slot.preempted = false;
  slot.scored = 0;
  slot.speculation = {};
  slot.generation.reset();
}

void Engine::truncate(Slot& slot, size_t length) {
  slot.cached.resize(
      static_cast<size_t>(runner_.truncate(slot.sequence, static_cast<int64_t>(length))));
}

void Engine::drop_cancelled() {
  const auto drop = [&](const std::shared_ptr<Job>& job) {
    job->finish(llm::Generation::End::kNone, Error(ErrorCode::kUsage, "the request was cancelled"));
    metrics_.add("requests_cancelled_total");
  };
  {
    const std::lock_guard lock(mutex_);
    std::erase_if(queue_, [&](const auto& waiting) {
      if (!waiting.first->is_cancelled()) return false;
      drop(waiting.first);
      return true;
    });
  }
  for (Slot& slot : slots_)
    if (slot.job && slot.job->is_cancelled()) {
      // Its prompt may be requested again; unread output is unlikely to be continued.
      truncate(slot, std::min(slot.cached.size(), slot.job->prompt.size()));
      drop(slot.job);
      release(slot);
    }
}

/// The parts of the next step: all sequences that decode, then prompts in the order in
/// which they came, as far as the step's time allows.
std::vector<Engine::Work> Engine::choose() {
  std::vector<Work> out;
  std::vector<Slot*> reading;
  int64_t rows = 0;
  const auto add = [&](Slot& slot, int64_t count) {
    const auto part = std::span(slot.generation->tokens())
                          .subspan(slot.cached.size(), static_cast<size_t>(count));
    const bool scores = slot.job->scores_prompt && slot.generation->generated() == 0;
    const int64_t wanted = scores ? count : count == slot.missing() ? 1 : 0;
    out.push_back({&slot, {part.begin(), part.end()}, wanted});
    rows += count;
  };
  for (Slot& slot : slots_) {
    if (!slot.job || slot.prefix_source || slot.preempted) continue;
    if (slot.missing() > 1)
      reading.push_back(&slot);
    else
      add(slot, 1);
  }
  if (reading.empty() && !out.empty()) add_draft_tokens(out);
  std::sort(reading.begin(), reading.end(),
            [](const Slot* a, const Slot* b) { return a->used < b->used; });
  constexpr int64_t kMin = 16;  // so that prompts are read however slow steps are
  const int64_t fewest =
      std::min(llm::Runner::planned_rows(rows + kMin), int64_t{llm::Runner::kMaxRows});
  int64_t budget = rows > 0 ? std::max(limits_.chunk, fewest) : limits_.chunk;
  if (rows > 0 && rows_per_second_ > 0) {
    // Steps take the time of their plan, so its rows are filled.
    const auto fitting = static_cast<uint64_t>(rows_per_second_ * limits_.step_seconds);
    budget = std::clamp(static_cast<int64_t>(std::bit_floor(fitting)), fewest, budget);
  }
  for (Slot* slot : reading) {
    const int64_t count = std::min(slot->missing(), budget - rows);
    if (count <= 0) break;
    add(*slot, count);
  }
  return out;
}

/// Adds draft tokens, which the step verifies.
void Engine::add_draft_tokens(std::vector<Work>& work) {
  std::vector<llm::DraftOffer> offers(work.size());
  for (size_t i = 0; i < work.size(); ++i) {
    Slot& slot = *work[i].slot;
    const auto& options = slot.job->options;
    if (!options.speculate || work[i].wanted == 0) continue;
    const auto& text = slot.generation->tokens();
    const int64_t room = std::min(runner_.context() - std::ssize(text),
                                  options.length - slot.generation->generated() - 1);
    offers[i] = {&slot.speculation, slot.speculation.candidates(text, std::max<int64_t>(0, room))};
  }
  const auto counts = llm::choose_drafts(step_times_, offers, llm::Runner::kMaxRows);
  for (size_t i = 0; i < work.size(); ++i) {
    const auto drafts = offers[i].candidates.first(static_cast<size_t>(counts[i]));
    work[i].tokens.insert(work[i].tokens.end(), drafts.begin(), drafts.end());
    work[i].drafts = counts[i];
    work[i].wanted += counts[i];
  }
}

/// Reports the prompt's tokens that follow those from `first` on, by their logits.
void Engine::score_prompt(Work& work, size_t first) {
  Slot& slot = *work.slot;
  const auto& prompt = slot.job->prompt;
  const auto vocab_size = static_cast<size_t>(runner_.vocab_size());
  for (size_t i = 0; i < work.tokens.size() && first + i + 1 < prompt.size(); ++i) {
    // Those of a preempted sequence are known.
    if (static_cast<int64_t>(first + i) < slot.scored) continue;
    slot.job->add({.kind = Event::Kind::kPrompt,
                   .token = llm::score_token({work.logits + i * vocab_size, vocab_size},
                                             prompt[first + i + 1], slot.job->options.logprobs)});
    slot.scored = static_cast<int64_t>(first + i) + 1;
  }
  // Only the last token has one to choose.
  work.logits += (work.wanted - 1) * runner_.vocab_size();
}

/// Chooses the next token, and further ones as long as drafts are accepted.
void Engine::advance(Work& work) {
  Slot& slot = *work.slot;
  llm::Generation& generation = *slot.generation;
  // A request for no tokens, whose prompt was scored.
  if (generation.end() != llm::Generation::End::kNone) return;
  const auto vocab_size = static_cast<size_t>(runner_.vocab_size());
  try {
    for (;; ++work.accepted) {
      Event event;
      event.text = generation.next(
          {work.logits + static_cast<size_t>(work.accepted) * vocab_size, vocab_size});
      if (const auto* token = generation.last()) event.token = *token;
      slot.job->add(std::move(event));
      if (generation.end() != llm::Generation::End::kNone || work.accepted == work.drafts ||
          generation.tokens().back() != work.tokens[static_cast<size_t>(work.accepted) + 1])
        break;
    }
  } catch (const Error& e) {
    slot.job->finish(llm::Generation::End::kNone, e);
  }
}

/// After `advance`: drops rejected drafts, and ends sequences.
void Engine::settle(Work& work) {
  Slot& slot = *work.slot;
  if (work.drafts > 0) {
    truncate(slot, slot.cached.size() - static_cast<size_t>(work.drafts - work.accepted));
    slot.speculation.report(work.drafts, work.accepted);
    slot.job->add_drafts(work.drafts, work.accepted);
    metrics_.add("draft_tokens_total", static_cast<double>(work.drafts));
    metrics_.add("draft_accepted_tokens_total", static_cast<double>(work.accepted));
  }
  metrics_.add("generated_tokens_total",
               static_cast<double>(work.accepted + (slot.generation->last() ? 1 : 0)));
  if (slot.generation->end() != llm::Generation::End::kNone) {
    const int64_t later_tokens = slot.generation->generated() - 1;
    if (later_tokens > 0)
      metrics_.observe(metric("time_per_output_token_seconds"),
                       seconds_since(slot.first_token) / static_cast<double>(later_tokens));
    metrics_.observe(metric("request_duration_seconds"), seconds_since(slot.asked));
    slot.job->finish(slot.generation->end());
  }
  if (slot.job->is_done()) release(slot);
}

/// Called when idle: returns unused memory of the cache to the system.
void Engine::trim_idle() {
  constexpr int64_t kMinBlocksToTrim = 16;
  const llm::CacheBlocks* const blocks = runner_.blocks();
  if (blocks && blocks->touched() - blocks->extent() >= kMinBlocksToTrim) runner_.trim();
}

std::string Engine::metric(const char* name) const {
  return str(name, "{", metric_label("model", name_), "}");
}

void Engine::fail_all(const Error& error) {
  for (Slot& slot : slots_) {
    if (slot.job) slot.job->finish(llm::Generation::End::kNone, error);
    release(slot);
    truncate(slot, 0);
  }
}

std::shared_ptr<const grammar::TokenTexts> Engine::token_texts() {
  const std::lock_guard lock(texts_mutex_);
  if (!texts_) texts_ = std::make_shared<const grammar::TokenTexts>(tokenizer_);
  return texts_;
}

void Engine::report() const {
  const std::lock_guard lock(mutex_);
  metrics_.set(metric("requests_running"), static_cast<double>(running_.load()));
  metrics_.set(metric("requests_waiting"), static_cast<double>(queue_.size()));
  if (!runner_.blocks()) return;
  metrics_.set(metric("cache_tokens"), static_cast<double>(runner_.cache_tokens()));
  metrics_.set(metric("cache_tokens_used"),
               static_cast<double>(blocks_used_.load() * llm::CacheBlocks::kTokens));
}

bool Engine::step() {
  drop_cancelled();
  resume();
  admit();
  share_prefixes();
  std::vector<Work> work = choose();
  allocate_blocks(work);
  if (work.empty()) {
    trim_idle();
    return false;
  }
  std::vector<llm::StepPart> parts;
  int64_t rows = 0;
  bool generates = true;  // and reads no prompt
  for (const Work& each : work) {
    parts.push_back({each.slot->sequence, each.tokens, each.wanted});
    rows += std::ssize(each.tokens);
    generates = generates && each.wanted == std::ssize(each.tokens);
  }
  const auto begin = Clock::now();
  const float* logits = nullptr;
  try {
    logits = runner_.step(parts);
  } catch (const Error& e) {
    fail_all(e);
    return true;
  }
  const double elapsed = seconds_since(begin);
  metrics_.add("steps_total");
  metrics_.add("step_seconds_total", elapsed);
  metrics_.add("step_rows_total", static_cast<double>(rows));
  if (generates) step_times_.report(rows, elapsed);
  if (rows >= 64) {
    constexpr double kNew = 0.3;
    const double rate = static_cast<double>(llm::Runner::planned_rows(rows)) / elapsed;
    rows_per_second_ += rows_per_second_ == 0 ? rate : kNew * (rate - rows_per_second_);
  }
  for (Work& each : work) {
    Slot& slot = *each.slot;
    const size_t before = slot.cached.size();
    slot.cached.insert(slot.cached.end(), each.tokens.begin(), each.tokens.end());
    if (each.wanted == 0) continue;
    each.logits = logits;
    logits += each.wanted * runner_.vocab_size();
    if (slot.job->scores_prompt && slot.generation->generated() == 0) score_prompt(each, before);
    if (slot.missing() <= 0 && slot.generation->generated() == 0) {
      slot.first_token = Clock::now();
      metrics_.observe(metric("time_to_first_token_seconds"), seconds_since(slot.asked));
    }
  }
  std::erase_if(work,
                [](const Work& each) { return each.wanted == 0 || each.slot->missing() > 0; });
  parallel_for(std::ssize(work), 1, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) advance(work[static_cast<size_t>(i)]);
  });
  for (Work& each : work) settle(each);
  if (const auto* blocks = runner_.blocks()) blocks_used_ = blocks->total() - blocks->free();
  return true;
}

// --- thread ---

EngineThread::EngineThread(std::vector<Engine*> engines)
    : engines_(std::move(engines)), thread_([this] { run(); }) {}

EngineThread::~EngineThread() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void EngineThread::wake() {
  {
    const std::lock_guard lock(mutex_);
    woken_ = true;
  }
  changed_.notify_all();
}

void EngineThread::run() {
  // A new thread has the libraries' own number of threads, whatever --threads says.
  const ThreadScope threads(thread_count());
  for (;;) {
    bool worked = false;
    for (Engine* engine : engines_) worked = engine->step() || worked;
    for (auto engine = engines_.begin(); !worked && engine != engines_.end(); ++engine)
      worked = (*engine)->prepare();
    std::unique_lock lock(mutex_);
    const auto called = [&] { return woken_ || stopping_; };
    if (!worked) changed_.wait(lock, called);
    woken_ = false;
    if (stopping_) return;
  }
}

}  // namespace paddle::serve
