// Preemption: if the KV cache has no free blocks for a step, the sequences that began last give up
// theirs and are recomputed later. A cache that is not paged never preempts.

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "serve/engine.h"

namespace paddle::serve {

/// Frees the blocks of a running sequence. Its tokens are recomputed when blocks are free.
void Engine::preempt(Slot& slot) {
  slot.preempted = true;
  slot.prefix_source = nullptr;
  truncate(slot, 0);
  for (Slot& other : slots_)
    if (other.prefix_source == &slot) other.prefix_source = nullptr;
  metrics_.add("preemptions_total");
}

bool Engine::has_preempted() const {
  return std::any_of(slots_.begin(), slots_.end(), [](const Slot& slot) { return slot.preempted; });
}

/// Resumes preempted sequences that fit, the oldest first.
void Engine::resume() {
  std::vector<Slot*> preempted;
  bool reads = false;
  for (Slot& slot : slots_) {
    if (!slot.job) continue;
    if (slot.preempted) preempted.push_back(&slot);
    reads = reads || !slot.preempted;
  }
  std::sort(preempted.begin(), preempted.end(),
            [](const Slot* a, const Slot* b) { return a->used < b->used; });
  for (Slot* slot : preempted) {
    // With a block to grow into, so that it is not preempted again at once.
    const int64_t length = std::min(
        std::ssize(slot->generation->tokens()) + llm::CacheBlocks::kTokens, runner_.context());
    if (!can_allocate(llm::CacheBlocks::count_for(length), nullptr) && reads) return;
    slot->preempted = false;
    reads = true;
    if (slot->job->scores_prompt && slot->generation->generated() == 0) continue;
    for (const Slot& other : slots_)
      if (&other != slot) copy_prefix(*slot, other);
  }
}

/// Frees blocks for the tokens of a step: evicts ended sequences, then drops drafts, then preempts
/// the sequences that began last.
void Engine::allocate_blocks(std::vector<Work>& work) {
  if (!runner_.blocks()) return;
  const auto needed = [&] {
    int64_t blocks = 0;
    for (const Work& each : work)
      blocks += runner_.blocks_needed(each.slot->sequence,
                                      std::ssize(each.slot->cached) + std::ssize(each.tokens));
    return blocks;
  };
  while (needed() > runner_.blocks()->free()) {
    if (evict_ended_sequence(nullptr)) continue;
    const auto drafting =
        std::find_if(work.begin(), work.end(), [](const Work& each) { return each.drafts > 0; });
    if (drafting != work.end()) {
      drafting->tokens.resize(drafting->tokens.size() - static_cast<size_t>(drafting->drafts));
      drafting->wanted -= std::exchange(drafting->drafts, 0);
      continue;
    }
    Slot* last = nullptr;
    for (Slot& slot : slots_)
      if (slot.job && !slot.preempted && (!last || slot.used > last->used)) last = &slot;
    ensure(last != nullptr, "no free KV cache block for a sequence");
    preempt(*last);
    std::erase_if(work, [&](const Work& each) { return each.slot == last; });
  }
}

}  // namespace paddle::serve
