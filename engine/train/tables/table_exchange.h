#pragma once
// Messages about tables between the ranks that share them. Rank i owns the shards
// `tables::shards_of_part(i, ranks)` of every table.

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "tables/shards.h"

namespace paddle::train {

/// A message for or from each rank.
using RankMessages = std::vector<std::vector<std::byte>>;

class TableExchange {
 public:
  /// Null: one rank.
  explicit TableExchange(std::shared_ptr<comm::Communicator> communicator)
      : communicator_(std::move(communicator)) {}
  int ranks() const { return communicator_ ? communicator_->size() : 1; }
  int rank() const { return communicator_ ? communicator_->rank() : 0; }
  bool is_root() const { return rank() == 0; }
  std::pair<int, int> own_shards() const { return tables::shards_of_part(rank(), ranks()); }
  int owner_of(uint64_t key) const { return tables::part_of_shard(tables::shard_of(key), ranks()); }

  // All ranks must call these.
  /// The sizes of the messages that the other ranks send to this one in `all_to_all`.
  std::vector<size_t> sizes(const RankMessages& sent);
  /// Messages from all ranks, of these sizes.
  RankMessages all_to_all(const RankMessages& sent, std::span<const size_t> received);
  RankMessages all_to_all(const RankMessages& sent) { return all_to_all(sent, sizes(sent)); }
  /// The sum over ranks.
  int64_t sum(int64_t value);
  /// Numbers of all shards, of which each rank has its own.
  void gather_shards(std::span<double> by_shard);
  /// Messages of all ranks on the root; none on the others.
  RankMessages gather(std::vector<std::byte> message);

 private:
  std::shared_ptr<comm::Communicator> communicator_;
};

/// Appends the bytes of numbers to a message.
template <class T>
void append(std::vector<std::byte>& message, std::span<const T> values) {
  const auto bytes = std::as_bytes(values);
  message.insert(message.end(), bytes.begin(), bytes.end());
}

}  // namespace paddle::train
