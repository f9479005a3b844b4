#pragma once
// How lanes take the updates of workers: `parameter_server:` of a config.

#include <cstdint>
#include <optional>
#include <string>

namespace paddle::ps {

enum class Mode {
  kSync,  ///< one update a step, of the sums over all workers
  kAsync  ///< one for each worker, as they arrive
};

struct UpdateOptions {
  Mode mode = Mode::kSync;
  // Of asynchronous ones.
  /// Steps whose rows a worker asks for before it sends the gradients of the step before them.
  int ahead = 1;
  /// Steps by which a worker may be ahead of the slowest; nothing: any number.
  std::optional<int> staleness = {};
  /// Steps whose gradients a worker adds before it sends them.
  int merge = 1;
  /// Whether lanes write the order in which they take messages (ps/order_log.h).
  bool order_log = true;

  bool is_sync() const { return mode == Mode::kSync; }
  /// For comparison: workers and servers must have the same.
  std::string text() const;
};

}  // namespace paddle::ps
