// Room for the texts of an engine in a paged cache; a plain one has always room.

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "serve/engine.h"

namespace paddle::serve {

/// Blocks that running texts will take for the tokens that they have.
int64_t Engine::promised_blocks() const {
  int64_t out = 0;
  for (const Slot& slot : slots_)
    if (slot.job && !slot.paused)
      out += runner_.blocks_needed(slot.sequence, std::ssize(slot.generation->tokens()));
  return out;
}

/// Forgets the ended text that was used least recently, but not `kept`; false if there is none.
bool Engine::drop_ended_text(const Slot* kept) {
  Slot* oldest = nullptr;
  for (Slot& slot : slots_)
    if (!slot.job && &slot != kept && !slot.cached.empty() && (!oldest || slot.used < oldest->used))
      oldest = &slot;
  if (!oldest) return false;
  oldest->cached.clear();
  runner_.truncate(oldest->sequence, 0);
  return true;
}

/// Whether this number of blocks is free beside those that are promised, without some ended texts.
bool Engine::has_room(int64_t blocks, const Slot* kept) {
  if (!runner_.blocks()) return true;
  const int64_t needed = promised_blocks() + blocks;
  std::vector<int64_t> ended;
  for (const Slot& slot : slots_)
    if (!slot.job && &slot != kept) ended.push_back(slot.sequence);
  if (runner_.blocks()->free() + runner_.blocks()->freed_without(ended) < needed) return false;
  while (runner_.blocks()->free() < needed && drop_ended_text(kept)) continue;
  return true;
}

/// Takes the blocks of a running text. Its tokens are computed again when there is room.
void Engine::pause(Slot& slot) {
  slot.paused = true;
  slot.leader = nullptr;
  slot.cached.clear();
  runner_.truncate(slot.sequence, 0);
  for (Slot& other : slots_)
    if (other.leader == &slot) other.leader = nullptr;
  metrics_.add("texts_paused_total");
}

bool Engine::has_paused() const {
  return std::any_of(slots_.begin(), slots_.end(), [](const Slot& slot) { return slot.paused; });
}

/// Continues paused texts for which there is room, the oldest first.
void Engine::resume() {
  std::vector<Slot*> paused;
  bool reads = false;
  for (Slot& slot : slots_) {
    if (!slot.job) continue;
    if (slot.paused) paused.push_back(&slot);
    reads = reads || !slot.paused;
  }
  std::sort(paused.begin(), paused.end(),
            [](const Slot* a, const Slot* b) { return a->used < b->used; });
  for (Slot* slot : paused) {
    // With a block to grow into, so that it is not paused again at once.
    const int64_t length = std::min(
        std::ssize(slot->generation->tokens()) + llm::CacheBlocks::kTokens, runner_.context());
    if (!has_room(llm::CacheBlocks::count_for(length), nullptr) && reads) return;
    slot->paused = false;
    reads = true;
    if (slot->job->scores_prompt && slot->generation->generated() == 0) continue;
    for (const Slot& other : slots_)
      if (&other != slot) take_prefix(*slot, other);
  }
}

/// Makes room for the tokens of a step: without ended texts, then without guesses, then by pausing
/// the texts that began last.
void Engine::make_room(std::vector<Work>& work) {
  if (!runner_.blocks()) return;
  const auto needed = [&] {
    int64_t blocks = 0;
    for (const Work& each : work)
      blocks += runner_.blocks_needed(each.slot->sequence,
                                      std::ssize(each.slot->cached) + std::ssize(each.tokens));
    return blocks;
  };
  while (needed() > runner_.blocks()->free()) {
    if (drop_ended_text(nullptr)) continue;
    const auto guessing =
        std::find_if(work.begin(), work.end(), [](const Work& each) { return each.guesses > 0; });
    if (guessing != work.end()) {
      guessing->tokens.resize(guessing->tokens.size() - static_cast<size_t>(guessing->guesses));
      guessing->wanted -= std::exchange(guessing->guesses, 0);
      continue;
    }
    Slot* last = nullptr;
    for (Slot& slot : slots_)
      if (slot.job && !slot.paused && (!last || slot.used > last->used)) last = &slot;
    ensure(last != nullptr, "a paged cache has no room for a text");
    pause(*last);
    std::erase_if(work, [&](const Work& each) { return each.slot == last; });
  }
}

/// When there is nothing to do: unused memory of the cache goes back to the system.
void Engine::rest() {
  constexpr int64_t kWorthwhile = 16;
  const llm::CacheBlocks* const blocks = runner_.blocks();
  if (blocks && blocks->touched() - blocks->extent() >= kWorthwhile) runner_.trim();
}

}  // namespace paddle::serve
