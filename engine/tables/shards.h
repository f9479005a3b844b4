#pragma once
// How the keys of a table are divided: a key belongs to the shard that its hash says, for the life
// of the table. Files and the processes that share a table take ranges of shards.

#include <cstdint>
#include <utility>

#include "tensor/random.h"

namespace paddle::tables {

inline constexpr int kShards = 1024;

inline uint64_t hash_of(uint64_t key) { return mix64(key); }
/// A shard is a range of hashes.
inline int shard_of_hash(uint64_t hash) { return static_cast<int>(hash >> 54); }
inline int shard_of(uint64_t key) { return shard_of_hash(hash_of(key)); }

/// The shards [first, second) of one of `parts` owners.
inline std::pair<int, int> shards_of_part(int part, int parts) {
  return {kShards * part / parts, kShards * (part + 1) / parts};
}
/// The owner of a shard.
inline int part_of_shard(int shard, int parts) {
  int part = shard * parts / kShards;
  while (shards_of_part(part, parts).second <= shard) ++part;
  return part;
}

/// Keys are the 64 bits of an integer. The order of signed ones is that of these numbers.
inline uint64_t ordered(uint64_t key, bool is_signed) {
  return is_signed ? key ^ (uint64_t{1} << 63) : key;
}

}  // namespace paddle::tables
