#pragma once
// Samples that are examined on several threads, in a given order.

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "data/loader.h"

namespace paddle::data {

/// Calls `Loader::examine` for samples ahead of their use. Besides the threads, the caller of
/// `next` works too; without threads it does all of the work.
class ReadAhead {
 public:
  struct Examined {
    int64_t index = 0;
    Sample sample = {};
    std::optional<Loader::Rejection> rejection = {};
    std::exception_ptr error = {};
  };
  /// The number of the next sample, or nullopt at the end. Called by one thread at a time.
  using NextIndex = std::function<std::optional<int64_t>()>;

  ReadAhead(const Loader& loader, NextIndex next_index, int threads);
  ~ReadAhead();
  ReadAhead(const ReadAhead&) = delete;
  ReadAhead& operator=(const ReadAhead&) = delete;

  /// The next sample, valid until the next call; null at the end. Throws what `examine` threw for
  /// it.
  Examined* next();

 private:
  /// Samples that one thread reads, one after the other.
  struct Block {
    std::vector<Examined> samples;
    size_t count = 0;
    bool done = false;
  };
  using BlockPtr = std::shared_ptr<Block>;

  void work();
  BlockPtr claim();
  void fill(Block& block) const;
  BlockPtr take();

  const Loader& loader_;
  BlockPtr current_;
  size_t at_ = 0;  ///< in it

  std::mutex mutex_;  ///< guards what follows
  std::condition_variable changed_;
  NextIndex next_index_;
  std::deque<BlockPtr> blocks_;  ///< claimed by threads, in order
  std::vector<BlockPtr> spare_;
  size_t block_size_ = 1, most_blocks_ = 0;
  bool ended_ = false, stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace paddle::data
