#include "serve/engine.h"

#include <algorithm>
#include <chrono>

#include "base/parallel.h"

namespace paddle::serve {

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

size_t common_prefix(const std::vector<tokenizers::TokenId>& a,
                     const std::vector<tokenizers::TokenId>& b) {
  size_t n = 0;
  while (n < a.size() && n < b.size() && a[n] == b[n]) ++n;
  return n;
}

}  // namespace

// --- jobs ---

Job::State Job::take(int milliseconds) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, std::chrono::milliseconds(milliseconds),
                    [&] { return state_.done || !state_.pieces.empty(); });
  State out = state_;
  state_.pieces.clear();
  return out;
}

void Job::add(Piece piece) {
  const std::lock_guard lock(mutex_);
  if (piece.token && !piece.of_prompt) ++state_.generated;
  state_.pieces.push_back(std::move(piece));
  changed_.notify_all();
}

void Job::set_cached(int64_t tokens) {
  const std::lock_guard lock(mutex_);
  state_.cached = tokens;
}

void Job::wait_for_news(int milliseconds) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, std::chrono::milliseconds(milliseconds),
                    [&] { return state_.done || !state_.pieces.empty(); });
}

bool Job::is_done() {
  const std::lock_guard lock(mutex_);
  return state_.done;
}

void Job::finish(llm::Generation::End end, std::optional<Error> error) {
  const std::lock_guard lock(mutex_);
  if (state_.done) return;
  state_.done = true;
  state_.end = end;
  state_.error = std::move(error);
  changed_.notify_all();
}

// --- engine ---

Engine::Engine(std::string name, std::shared_ptr<llm::LoadedModel> model,
               tokenizers::Tokenizer tokenizer, llm::RunnerOptions runner,
               const EngineLimits& limits, Metrics& metrics)
    : name_(std::move(name)),
      tokenizer_(std::move(tokenizer)),
      model_(std::move(model)),
      runner_(model_, runner),
      limits_(limits),
      metrics_(metrics),
      slots_(static_cast<size_t>(limits.streams)) {
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
  slot.generation.reset();
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
      drop(slot.job);
      release(slot);
    }
}

/// Gives waiting jobs the free slot that holds most of their prompt, or else the one that was used
/// least recently.
void Engine::admit() {
  const std::lock_guard lock(mutex_);
  while (!queue_.empty()) {
    Slot* best = nullptr;
    size_t most = 0;
    const auto& prompt = queue_.front().first->prompt;
    for (Slot& slot : slots_) {
      if (slot.job) continue;
      const size_t same = common_prefix(slot.cached, prompt);
      if (!best || same > most || (same == most && slot.used < best->used)) {
        best = &slot;
        most = same;
      }
    }
    if (!best) return;
    best->asked = queue_.front().second;
    auto job = std::move(queue_.front().first);
    queue_.pop_front();
    start(*best, std::move(job), most);
  }
}

void Engine::start(Slot& slot, std::shared_ptr<Job> job, size_t same) {
  slot.used = ++clock_;
  // At least one token is computed, for its logits.
  same = job->scores_prompt ? 0 : std::min(same, job->prompt.size() - 1);
  slot.cached.resize(same);
  runner_.truncate(slot.sequence, static_cast<int64_t>(same));
  job->set_cached(static_cast<int64_t>(same));
  metrics_.add("prompt_tokens_total", static_cast<double>(job->prompt.size()));
  metrics_.add("cached_tokens_total", static_cast<double>(same));
  slot.generation.emplace(tokenizer_, job->prompt, job->options, model_->end_tokens(),
                          runner_.context());
  slot.job = std::move(job);
  ++running_;
  if (slot.generation->end() != llm::Generation::End::kNone && !slot.job->scores_prompt) {
    slot.job->finish(slot.generation->end());
    release(slot);
  }
}

/// Slots and how many of their tokens the next step computes: all texts that are being generated,
/// then prompts in the order in which they came, as far as the step's time allows.
std::vector<std::pair<Engine::Slot*, int64_t>> Engine::choose() const {
  std::vector<std::pair<Slot*, int64_t>> out;
  std::vector<Slot*> reading;
  int64_t rows = 0;
  for (const Slot& each : slots_) {
    auto& slot = const_cast<Slot&>(each);
    if (!slot.job) continue;
    if (slot.missing() > 1) {
      reading.push_back(&slot);
    } else {
      out.emplace_back(&slot, 1);
      ++rows;
    }
  }
  std::sort(reading.begin(), reading.end(),
            [](const Slot* a, const Slot* b) { return a->used < b->used; });
  constexpr int64_t kFewest = 16;  // so that prompts are read however slow steps are
  int64_t budget = llm::Runner::kMostRows;
  if (rows > 0 && rows_per_second_ > 0)
    budget = std::clamp(static_cast<int64_t>(rows_per_second_ * limits_.step_seconds),
                        rows + kFewest, budget);
  for (Slot* slot : reading) {
    const int64_t count = std::min(slot->missing(), budget - rows);
    if (count <= 0) break;
    out.emplace_back(slot, count);
    rows += count;
  }
  return out;
}

/// Reports the prompt's tokens that follow those from `first` on, by their logits.
void Engine::score_prompt(Slot& slot, size_t first, size_t count, const float* logits) {
  const auto& prompt = slot.job->prompt;
  const auto words = static_cast<size_t>(runner_.words());
  for (size_t i = 0; i < count && first + i + 1 < prompt.size(); ++i)
    slot.job->add({"",
                   llm::score_token({logits + i * words, words}, prompt[first + i + 1],
                                    slot.job->options.logprobs),
                   true});
}

void Engine::advance(Slot& slot, const float* logits) {
  // A text of no length, whose prompt was scored.
  if (slot.generation->end() != llm::Generation::End::kNone) return;
  try {
    Piece piece;
    piece.text = slot.generation->next({logits, static_cast<size_t>(runner_.words())});
    if (const auto* token = slot.generation->last()) piece.token = *token;
    slot.job->add(std::move(piece));
  } catch (const Error& e) {
    slot.job->finish(llm::Generation::End::kNone, e);
  }
}

void Engine::fail_all(const Error& error) {
  for (Slot& slot : slots_) {
    if (slot.job) slot.job->finish(llm::Generation::End::kNone, error);
    release(slot);
    slot.cached.clear();
    runner_.truncate(slot.sequence, 0);
  }
}

std::shared_ptr<const grammar::TokenTexts> Engine::token_texts() {
  const std::lock_guard lock(texts_mutex_);
  if (!texts_) texts_ = std::make_shared<const grammar::TokenTexts>(tokenizer_);
  return texts_;
}

void Engine::report() const {
  const std::lock_guard lock(mutex_);
  metrics_.set(str("requests_running{model=\"", name_, "\"}"),
               static_cast<double>(running_.load()));
  metrics_.set(str("requests_waiting{model=\"", name_, "\"}"), static_cast<double>(queue_.size()));
}

bool Engine::step() {
  drop_cancelled();
  admit();
  const auto chosen = choose();
  if (chosen.empty()) return false;
  std::vector<llm::StepPart> parts;
  int64_t rows = 0;
  for (const auto& [slot, count] : chosen) {
    const auto& tokens = slot->generation->tokens();
    const auto part = std::span(tokens).subspan(slot->cached.size(), static_cast<size_t>(count));
    const bool scores = slot->job->scores_prompt && slot->generation->generated() == 0;
    parts.push_back({slot->sequence, part, scores ? count : count == slot->missing() ? 1 : 0});
    rows += count;
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
  if (rows >= 64) {
    constexpr double kNew = 0.3;
    const double rate = static_cast<double>(rows) / elapsed;
    rows_per_second_ += rows_per_second_ == 0 ? rate : kNew * (rate - rows_per_second_);
  }
  std::vector<std::pair<Slot*, const float*>> wanted;
  for (size_t i = 0; i < parts.size(); ++i) {
    Slot& slot = *chosen[i].first;
    const size_t before = slot.cached.size();
    slot.cached.insert(slot.cached.end(), parts[i].tokens.begin(), parts[i].tokens.end());
    if (parts[i].wanted == 0) continue;
    if (slot.job->scores_prompt && slot.generation->generated() == 0)
      score_prompt(slot, before, parts[i].tokens.size(), logits);
    logits += parts[i].wanted * runner_.words();
    if (slot.missing() > 0) continue;
    wanted.emplace_back(&slot, logits - runner_.words());
    if (slot.generation->generated() == 0) {
      metrics_.add("time_to_first_token_seconds_sum", seconds_since(slot.asked));
      metrics_.add("time_to_first_token_seconds_count");
    }
  }
  parallel_for(static_cast<int64_t>(wanted.size()), 1, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i)
      advance(*wanted[static_cast<size_t>(i)].first, wanted[static_cast<size_t>(i)].second);
  });
  for (const auto& [slot, row] : wanted) {
    if (slot->generation->last()) metrics_.add("generated_tokens_total");
    if (slot->generation->end() != llm::Generation::End::kNone)
      slot->job->finish(slot->generation->end());
    if (slot->job->is_done()) release(*slot);
  }
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
  for (;;) {
    bool worked = false;
    for (Engine* engine : engines_) worked = engine->step() || worked;
    std::unique_lock lock(mutex_);
    if (!worked) changed_.wait(lock, [&] { return woken_ || stopping_; });
    woken_ = false;
    if (stopping_) return;
  }
}

}  // namespace paddle::serve
