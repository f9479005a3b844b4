#pragma once
// The gradients that workers send for a table in a step, and their sums.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "program/row_table.h"

namespace paddle::ps {

/// The gradients of one worker for distinct keys: rows of the table's width, and, of a table that
/// observes them, the uses (tables::KeyUse). They need no alignment.
struct PushedRows {
  std::span<const uint64_t> keys;
  const std::byte* rows = nullptr;
  const std::byte* uses = nullptr;
};

/// The sums by rising shard and key.
struct MergedRows {
  std::vector<uint64_t> keys = {};
  Array gradients = {};  ///< [keys, width]
  std::vector<tables::KeyUse> uses = {};
};

/// Adds the gradients of a key over workers in the binary tree that collectives use; workers
/// without the key are left out, not added as zeros.
MergedRows merge(const program::TableSpec& spec, std::span<const PushedRows> by_worker);

/// Adds the sum of squares of each shard.
void add_squares(const program::TableSpec& spec, std::span<const uint64_t> keys,
                 const Array& gradients, std::span<double> by_shard);

/// Divides gradients by the shows of their keys in the step.
void divide_by_shows(std::span<const tables::KeyUse> uses, Array& gradients);

}  // namespace paddle::ps
