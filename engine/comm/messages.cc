#include "comm/messages.h"

#include <algorithm>

#include "base/span.h"

namespace paddle::comm {
namespace {

size_t index_of(Exchange kind) { return static_cast<size_t>(kind); }

/// A number of the kind of an exchange and numbers that describe its ends (FNV-1a); never 0.
class GroupNumber {
 public:
  explicit GroupNumber(Exchange kind) { add(index_of(kind)); }
  void add(uint64_t value) { hash_ = (hash_ ^ value) * 0x100000001b3u; }
  uint64_t value() const { return hash_ == 0 ? 1 : hash_; }

 private:
  uint64_t hash_ = 0xcbf29ce484222325u;
};

/// The group of an exchange between `self` and peers that are in ascending order.
uint64_t group_number(Exchange kind, int self, const std::vector<std::pair<int, size_t>>& peers) {
  GroupNumber number(kind);
  bool added = false;
  for (const auto& [peer, pieces] : peers) {
    if (!added && self < peer) {
      number.add(static_cast<uint64_t>(self));
      added = true;
    }
    number.add(static_cast<uint64_t>(peer));
  }
  if (!added) number.add(static_cast<uint64_t>(self));
  return number.value();
}

uint64_t message_number(int from, int to, uint32_t tag) {
  GroupNumber number(Exchange::kMessage);
  for (const uint64_t part :
       {static_cast<uint64_t>(from), static_cast<uint64_t>(to), uint64_t{tag}})
    number.add(part);
  return number.value();
}

/// Adds the time of a scope to a cost.
class CostClock {
 public:
  explicit CostClock(ExchangeCost& cost) : cost_(cost), begun_(steady_nanoseconds()) {}
  ~CostClock() { cost_.nanoseconds += steady_nanoseconds() - begun_; }
  CostClock(const CostClock&) = delete;
  CostClock& operator=(const CostClock&) = delete;

 private:
  ExchangeCost& cost_;
  int64_t begun_;
};

/// Adds a piece to the message to or from a peer, which is the last one or a new one.
void add_piece(std::vector<std::pair<int, size_t>>& messages, int peer) {
  if (messages.empty() || messages.back().first != peer) messages.emplace_back(peer, 0);
  ++messages.back().second;
}

}  // namespace

void Messages::begin() {
  sent_pieces_.clear();
  received_pieces_.clear();
  sent_to_.clear();
  received_from_.clear();
}

void Messages::send(int peer, std::span<const std::byte> piece) {
  add_piece(sent_to_, peer);
  sent_pieces_.push_back(piece);
}

void Messages::receive(int peer, std::span<std::byte> piece) {
  add_piece(received_from_, peer);
  received_pieces_.push_back(piece);
}

void Messages::exchange(Exchange kind, int calls) {
  ExchangeCost& cost = costs_[index_of(kind)];
  const CostClock clock(cost);
  cost.calls += calls;
  sends_.clear();
  receives_.clear();
  size_t at = 0;
  for (const auto& [peer, pieces] : sent_to_) {
    sends_.push_back({peer, std::span(sent_pieces_).subspan(at, pieces)});
    cost.bytes += static_cast<int64_t>(size_of(sends_.back().pieces));
    at += pieces;
  }
  at = 0;
  for (const auto& [peer, pieces] : received_from_) {
    receives_.push_back({peer, std::span(received_pieces_).subspan(at, pieces)});
    at += pieces;
  }
  const int64_t begin = steady_nanoseconds();
  transport_->exchange(kind, sends_, receives_);
  if (!records_exchanges_) return;
  int64_t bytes = 0;
  for (const Outgoing& message : sends_) bytes += static_cast<int64_t>(size_of(message.pieces));
  // Of a broadcast or a gather each rank but the root knows only the root, and around a ring each
  // knows only its neighbors.
  const bool mutual =
      std::equal(sent_to_.begin(), sent_to_.end(), received_from_.begin(), received_from_.end(),
                 [](const auto& a, const auto& b) { return a.first == b.first; });
  note({.kind = kind,
        .bytes = bytes,
        .group = mutual ? group_number(kind, rank(), sent_to_) : 0,
        .background = in_background_},
       begin);
}

void Messages::isend(int peer, uint32_t tag, std::span<const std::byte> bytes) {
  ExchangeCost& cost = costs_[index_of(Exchange::kMessage)];
  const CostClock clock(cost);
  ++cost.calls;
  cost.bytes += static_cast<int64_t>(bytes.size());
  const int64_t begin = steady_nanoseconds();
  transport_->isend(peer, tag, bytes);
  note({.kind = Exchange::kMessage,
        .bytes = static_cast<int64_t>(bytes.size()),
        .group = message_number(rank(), peer, tag),
        .sends_only = true},
       begin);
}

void Messages::recv(int peer, uint32_t tag, std::span<std::byte> bytes) {
  const CostClock clock(costs_[index_of(Exchange::kMessage)]);
  const int64_t begin = steady_nanoseconds();
  transport_->recv(peer, tag, bytes);
  note({.kind = Exchange::kMessage, .group = message_number(peer, rank(), tag)}, begin);
}

void Messages::record() {
  records_exchanges_ = true;
  exchange_records_.clear();
}

std::vector<ExchangeRecord> Messages::take_records() {
  records_exchanges_ = false;
  return std::exchange(exchange_records_, {});
}

void Messages::note(ExchangeRecord record, int64_t begin) {
  if (!records_exchanges_ || exchange_records_.size() >= kMaxRecords) return;
  record.begin = begin;
  record.end = steady_nanoseconds();
  exchange_records_.push_back(record);
}

}  // namespace paddle::comm
