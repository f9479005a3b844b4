#include "data/loading/read_ahead.h"

#include <algorithm>

#include "base/parallel.h"

namespace paddle::data {

ReadAhead::ReadAhead(const Loader& loader, NextIndex next_index, int threads)
    : loader_(loader),
      next_index_(std::move(next_index)),
      most_blocks_(static_cast<size_t>(threads) * 2) {
  for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { work(); });
}

ReadAhead::~ReadAhead() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

ReadAhead::Examined* ReadAhead::next() {
  if (!current_ || ++at_ == current_->count) {
    current_ = take();
    at_ = 0;
    if (!current_) return nullptr;
  }
  Examined& out = current_->samples[at_];
  if (out.error) std::rethrow_exception(out.error);
  return &out;
}

ReadAhead::BlockPtr ReadAhead::take() {
  std::unique_lock lock(mutex_);
  if (current_) {
    // Many small samples at a time, so that handing them over costs little; few large ones.
    constexpr size_t kBlockBytes = 1 << 18, kMaxSamples = 16;
    size_t bytes = 1;
    for (const Value& value : current_->samples[0].sample) bytes += value.bytes();
    block_size_ = std::clamp<size_t>(kBlockBytes / bytes, 1, kMaxSamples);
    spare_.push_back(std::move(current_));
  }
  if (blocks_.empty()) {
    const BlockPtr block = claim();
    lock.unlock();
    if (block) fill(*block);
    return block;
  }
  changed_.wait(lock, [&] { return blocks_.front()->done; });
  BlockPtr block = std::move(blocks_.front());
  blocks_.pop_front();
  lock.unlock();
  changed_.notify_all();
  return block;
}

/// The next samples of the order, or null; the mutex is held.
ReadAhead::BlockPtr ReadAhead::claim() {
  if (ended_) return nullptr;
  BlockPtr block;
  if (spare_.empty()) {
    block = std::make_shared<Block>();
  } else {
    block = std::move(spare_.back());
    spare_.pop_back();
  }
  block->count = 0;
  block->done = false;
  while (block->count < block_size_) {
    const std::optional<int64_t> index = next_index_();
    if (!index) {
      ended_ = true;
      break;
    }
    if (block->samples.size() == block->count) block->samples.emplace_back();
    block->samples[block->count++].index = *index;
  }
  return block->count > 0 ? block : nullptr;
}

void ReadAhead::fill(Block& block) const {
  for (size_t i = 0; i < block.count; ++i) {
    Examined& each = block.samples[i];
    each.rejection.reset();
    try {
      each.rejection = loader_.examine(each.index, each.sample);
    } catch (...) {
      each.error = std::current_exception();
      return;  // nothing after it is asked for
    }
  }
}

void ReadAhead::work() {
  forbid_parallel_regions_on_this_thread();
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return stopping_ || ended_ || blocks_.size() < most_blocks_; });
    if (stopping_ || ended_) return;
    const BlockPtr block = claim();
    if (!block) return;
    blocks_.push_back(block);
    lock.unlock();
    fill(*block);
    lock.lock();
    block->done = true;
    changed_.notify_all();
  }
}

}  // namespace paddle::data
