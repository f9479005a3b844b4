#pragma once
// A base and its deltas in a checkpoint are merged into a new base, on a thread of its own while
// training continues.

#include <atomic>
#include <future>
#include <string>

#include "tables/segments.h"

namespace paddle::train {

class ChainMerge {
 public:
  /// Begins to merge what `from`, the folder of a table in a checkpoint, has into `folder`, which
  /// is replaced. The checkpoint may be removed meanwhile.
  ChainMerge(const std::string& from, const std::string& folder, tables::TableFormat format);
  /// Ends it, and removes the folder.
  ~ChainMerge();
  ChainMerge(const ChainMerge&) = delete;
  ChainMerge& operator=(const ChainMerge&) = delete;

  bool is_over() const;
  /// Waits for the end; whether the base is there. It is not if a file was damaged or the disk is
  /// full.
  bool wait() { return done_.get(); }
  /// With the base.
  std::string base() const;

 private:
  std::string folder_;
  std::atomic<bool> stops_ = false;
  std::shared_future<bool> done_;
};

}  // namespace paddle::train
