// Admission: which waiting sequence gets a slot and the blocks of its prompt, and which tokens it
// takes from the caches of other sequences.

#include <algorithm>
#include <utility>

#include "serve/engine.h"

namespace paddle::serve {

namespace {

size_t common_prefix(const std::vector<tokenizers::TokenId>& a,
                     const std::vector<tokenizers::TokenId>& b) {
  size_t n = 0;
  while (n < a.size() && n < b.size() && a[n] == b[n]) ++n;
  return n;
}

}  // namespace

/// Blocks that running sequences still need for the tokens that they have.
int64_t Engine::reserved_blocks() const {
  int64_t out = 0;
  for (const Slot& slot : slots_)
    if (slot.job && !slot.preempted)
      out += runner_.blocks_needed(slot.sequence, std::ssize(slot.generation->tokens()));
  return out;
}

/// Evicts the least recently used ended sequence, but not `kept`; false if there is none.
bool Engine::evict_ended_sequence(const Slot* kept) {
  Slot* oldest = nullptr;
  for (Slot& slot : slots_)
    if (!slot.job && &slot != kept && !slot.cached.empty() && (!oldest || slot.used < oldest->used))
      oldest = &slot;
  if (!oldest) return false;
  truncate(*oldest, 0);
  return true;
}

/// Whether this number of blocks is free in addition to the reserved ones; evicts ended sequences
/// for them.
bool Engine::can_allocate(int64_t blocks, const Slot* kept) {
  if (!runner_.blocks()) return true;
  const int64_t needed = reserved_blocks() + blocks;
  std::vector<int64_t> ended;
  for (const Slot& slot : slots_)
    if (!slot.job && &slot != kept) ended.push_back(slot.sequence);
  if (runner_.blocks()->free() + runner_.blocks()->freed_without(ended) < needed) return false;
  while (runner_.blocks()->free() < needed && evict_ended_sequence(kept)) continue;
  return true;
}

/// Gives waiting jobs free slots.
void Engine::admit() {
  const std::lock_guard lock(mutex_);
  while (!queue_.empty() && admit_first()) continue;
}

/// The first job of the queue continues what a slot holds of its prompt: in this slot if it is free
/// and little of it would be lost, else as a copy in the one that was used least recently.
bool Engine::admit_first() {
  if (running_ >= limits_.streams || has_preempted()) return false;
  const std::shared_ptr<Job> job = queue_.front().first;
  Slot *oldest = nullptr, *source = nullptr;
  size_t most = 0;
  for (Slot& slot : slots_) {
    if (!slot.job && (!oldest || slot.used < oldest->used)) oldest = &slot;
    const size_t same = job->scores_prompt ? 0 : common_prefix(slot.cached, job->prompt);
    if (!source || same > most || (same == most && !slot.job && source->job)) {
      source = &slot;
      most = same;
    }
  }
  if (!oldest) return false;
  const int64_t length = std::min(std::ssize(job->prompt) + 1, runner_.context());
  if (!can_allocate(llm::CacheBlocks::count_for(length) -
                        static_cast<int64_t>(most) / llm::CacheBlocks::kTokens,
                    source)) {
    if (running_ > 0 || !can_allocate(llm::CacheBlocks::count_for(length), nullptr)) return false;
    most = common_prefix(source->cached, job->prompt);
  }
  constexpr size_t kFewTokens = 64;
  const bool continues = !source->job && most > 0 && source->cached.size() <= most + kFewTokens;
  Slot& target = continues ? *source : *oldest;
  target.asked = queue_.front().second;
  queue_.pop_front();
  start(target, job);
  if (!target.job || job->scores_prompt) return true;
  copy_prefix(target, *source);
  find_prefix_source(target);
  return true;
}

void Engine::start(Slot& slot, std::shared_ptr<Job> job) {
  slot.used = ++clock_;
  // At least one token is computed, for its logits.
  truncate(slot, job->scores_prompt
                     ? 0
                     : std::min(common_prefix(slot.cached, job->prompt), job->prompt.size() - 1));
  const size_t same = slot.cached.size();
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

/// Copies what another slot holds of the prompt, if that is more than the slot has.
void Engine::copy_prefix(Slot& slot, const Slot& from) {
  const auto& text = slot.generation->tokens();
  const auto same = static_cast<size_t>(runner_.reachable(
      from.sequence,
      static_cast<int64_t>(std::min(common_prefix(from.cached, text), text.size() - 1))));
  if (same <= slot.cached.size()) return;
  runner_.copy(from.sequence, slot.sequence, static_cast<int64_t>(same));
  if (slot.generation->generated() == 0) {
    metrics_.add("cached_tokens_total", static_cast<double>(same - slot.cached.size()));
    slot.job->set_cached(static_cast<int64_t>(same));
  }
  slot.cached.assign(text.begin(), text.begin() + static_cast<ptrdiff_t>(same));
}

/// The slot that reads most of this one's prompt, and began before it.
void Engine::find_prefix_source(Slot& slot) {
  constexpr int64_t kMinSharedTokens = 32;
  slot.prefix_source = nullptr;
  slot.shared = static_cast<int64_t>(slot.cached.size()) + kMinSharedTokens;
  for (Slot& other : slots_) {
    if (!other.job || other.preempted || other.used >= slot.used || other.missing() <= 1) continue;
    const auto same = static_cast<int64_t>(common_prefix(other.job->prompt, slot.job->prompt));
    if (same <= slot.shared) continue;
    slot.prefix_source = &other;
    slot.prefix_source_used = other.used;
    slot.shared = same;
  }
}

/// Copies the beginnings of prompts that other slots have read by now.
void Engine::share_prefixes() {
  for (Slot& slot : slots_) {
    if (!slot.job || !slot.prefix_source) continue;
    Slot& source = *slot.prefix_source;
    const bool reads = source.job && source.used == slot.prefix_source_used;
    if (reads && std::ssize(source.cached) < slot.shared) continue;
    copy_prefix(slot, source);
    find_prefix_source(slot);
  }
}

}  // namespace paddle::serve
