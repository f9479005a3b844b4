#include "train/tables/table_exchange.h"

#include <algorithm>

namespace paddle::train {

std::vector<size_t> TableExchange::sizes(const RankMessages& sent) {
  std::vector<size_t> out;
  if (ranks() == 1) return {sent[0].size()};
  std::vector<int64_t> mine, all(sent.size() * sent.size());
  for (const auto& message : sent) mine.push_back(static_cast<int64_t>(message.size()));
  const std::vector<size_t> bytes(sent.size(), mine.size() * sizeof(int64_t));
  communicator_->all_gather(mine.data(), all.data(), bytes, communicator_->all());
  for (size_t from = 0; from < sent.size(); ++from)
    out.push_back(static_cast<size_t>(all[from * sent.size() + static_cast<size_t>(rank())]));
  return out;
}

RankMessages TableExchange::all_to_all(const RankMessages& sent, std::span<const size_t> received) {
  if (ranks() == 1) return sent;
  std::vector<std::byte> in, out;
  std::vector<size_t> sizes;
  for (const auto& message : sent) {
    in.insert(in.end(), message.begin(), message.end());
    sizes.push_back(message.size());
  }
  size_t total = 0;
  for (const size_t bytes : received) total += bytes;
  out.resize(total);
  communicator_->all_to_all(in.data(), sizes, out.data(), received, communicator_->all());
  RankMessages messages;
  auto at = out.begin();
  for (const size_t bytes : received) {
    messages.emplace_back(at, at + static_cast<ptrdiff_t>(bytes));
    at += static_cast<ptrdiff_t>(bytes);
  }
  return messages;
}

int64_t TableExchange::sum(int64_t value) {
  if (ranks() == 1) return value;
  int64_t out = 0;
  for (const int64_t each : communicator_->gather_numbers(value)) out += each;
  return out;
}

void TableExchange::gather_shards(std::span<double> by_shard) {
  if (ranks() == 1) return;
  std::vector<size_t> bytes;
  for (int part = 0; part < ranks(); ++part) {
    const auto [first, last] = tables::shards_of_part(part, ranks());
    bytes.push_back(static_cast<size_t>(last - first) * sizeof(double));
  }
  const auto [first, last] = own_shards();
  const std::vector<double> mine(by_shard.begin() + first, by_shard.begin() + last);
  communicator_->all_gather(mine.data(), by_shard.data(), bytes, communicator_->all());
}

RankMessages TableExchange::gather(std::vector<std::byte> message) {
  RankMessages out;
  if (ranks() == 1) {
    out.push_back(std::move(message));
    return out;
  }
  const std::vector<int64_t> sizes =
      communicator_->gather_numbers(static_cast<int64_t>(message.size()));
  std::vector<std::span<std::byte>> places(sizes.size());
  if (is_root())
    for (size_t i = 0; i < sizes.size(); ++i) {
      out.emplace_back(static_cast<size_t>(sizes[i]));
    }
  for (size_t i = 0; i < out.size(); ++i) places[i] = out[i];
  communicator_->gather(message, places, 0);
  return out;
}

}  // namespace paddle::train
