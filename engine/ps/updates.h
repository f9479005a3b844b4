#pragma once
// How lanes take the updates of workers: `parameter_server:` of a config.

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace paddle::ps {

/// Of UpdateOptions::ahead.
inline constexpr int kMaxAhead = 64;

enum class Mode {
  kSync,   ///< one update a step, of the sums over all workers
  kAsync,  ///< one for each worker, as they arrive
  kGeo     ///< workers update rows of their own, whose changes are added from time to time
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
  // Of geo.
  /// Steps after which a worker sends the changes of its rows.
  int every = 400;
  /// Whether changes are divided by the number of workers before they are added.
  bool combines_by_mean = true;
  /// Memory for rows that a worker uses for `cache_refresh` of its steps; 0: none.
  uint64_t cache_bytes = 0;
  int cache_refresh = 16;
  /// Whether lanes write the order in which they take messages (ps/order_log.h).
  bool order_log = true;
  /// How long they keep it; nothing: all of it.
  std::optional<std::chrono::seconds> order_keep = {};

  bool is_sync() const { return mode == Mode::kSync; }
  bool is_geo() const { return mode == Mode::kGeo; }
  /// For comparison: workers and servers must have the same.
  std::string text() const;
};

}  // namespace paddle::ps
