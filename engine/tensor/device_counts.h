#pragma once
// Counts of what a device did, which devices keep for `paddle_device_api::statistics`. Any thread
// may add to them.

#include <array>
#include <atomic>

#include "tensor/device_functions.h"

namespace paddle {

/// Copies, by paddle_copy_kind.
struct CopyCounts {
  std::array<uint64_t, 3> number = {}, bytes = {};
  void add(int kind, uint64_t size) {
    ++number.at(static_cast<size_t>(kind));
    bytes.at(static_cast<size_t>(kind)) += size;
  }
};

struct DeviceCounts {
  std::array<std::atomic<uint64_t>, 3> copies = {}, bytes = {};  ///< by paddle_copy_kind
  std::atomic<uint64_t> launches{0}, graph_launches{0}, waits{0}, allocations{0};

  void add_copy(int kind, uint64_t size) {
    ++copies.at(static_cast<size_t>(kind));
    bytes.at(static_cast<size_t>(kind)) += size;
  }
  /// The copies of a graph that was launched.
  void add(const CopyCounts& graph) {
    for (size_t kind = 0; kind < copies.size(); ++kind) {
      copies[kind] += graph.number[kind];
      bytes[kind] += graph.bytes[kind];
    }
  }
  paddle_device_statistics statistics() const {
    paddle_device_statistics all{};
    all.copies_to_device = copies[PADDLE_COPY_TO_DEVICE];
    all.copies_to_host = copies[PADDLE_COPY_TO_HOST];
    all.copies_on_device = copies[PADDLE_COPY_ON_DEVICE];
    all.bytes_to_device = bytes[PADDLE_COPY_TO_DEVICE];
    all.bytes_to_host = bytes[PADDLE_COPY_TO_HOST];
    all.launches = launches;
    all.graph_launches = graph_launches;
    all.waits = waits;
    all.allocations = allocations;
    return all;
  }
};

}  // namespace paddle
