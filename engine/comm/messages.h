#pragma once
// The exchanges of a rank: messages that a collective sends and receives at once over a transport,
// with their number, bytes and time by kind, and a record of each for timelines.

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "comm/flight.h"
#include "comm/transport.h"

namespace paddle::comm {

/// Calls of one kind: their number, the bytes that the rank sent, and their time.
struct ExchangeCost {
  int64_t calls = 0;
  int64_t bytes = 0;  ///< sent
  int64_t nanoseconds = 0;
};
using ExchangeCosts = std::array<ExchangeCost, kExchangeKinds>;

/// An exchange in time, for timelines. The n-th record of a rank with some `group` belongs to the
/// n-th of each other rank with the same one.
struct ExchangeRecord {
  Exchange kind = Exchange::kBarrier;
  int64_t begin = 0, end = 0;  ///< nanoseconds of the steady clock
  int64_t bytes = 0;           ///< sent
  uint64_t group = 0;       ///< of the kind and its ranks, or of a message's ends; 0: of no group
  bool sends_only = false;  ///< an `isend`, which does not wait
  bool background = false;  ///< overlapped with computation
};

/// One thread at a time uses it.
class Messages {
 public:
  /// `transport`: null for a run of one rank, which exchanges nothing.
  explicit Messages(std::shared_ptr<Transport> transport) : transport_(std::move(transport)) {}

  int rank() const { return transport_ ? transport_->rank() : 0; }
  int size() const { return transport_ ? transport_->size() : 1; }
  Transport* transport() const { return transport_.get(); }

  /// Begins the messages of the next exchange. Pieces for one peer follow each other; each message
  /// has at least one, which may be empty.
  void begin();
  void send(int peer, std::span<const std::byte> piece);
  void receive(int peer, std::span<std::byte> piece);
  /// Sends and receives what was added since `begin`. `calls`: 0 for a further exchange of a
  /// collective.
  void exchange(Exchange kind, int calls = 1);
  /// Single messages: see Transport.
  void isend(int peer, uint32_t tag, std::span<const std::byte> bytes);
  void recv(int peer, uint32_t tag, std::span<std::byte> bytes);

  /// Null if nothing is recorded in a file.
  FlightRecorder* flight() const { return flight_.get(); }
  void set_flight(std::unique_ptr<FlightRecorder> flight) { flight_ = std::move(flight); }
  ExchangeCosts& costs() { return costs_; }
  /// Keeps a record of each exchange from now on, of at most kMaxRecords.
  void record();
  std::vector<ExchangeRecord> take_records();
  bool records() const { return records_exchanges_; }
  /// Adds a record that begins at `begin` and ends now.
  void note(ExchangeRecord record, int64_t begin);
  /// Records that follow are of exchanges that are overlapped with computation.
  void in_background(bool on) { in_background_ = on; }
  static constexpr size_t kMaxRecords = size_t{1} << 20;

 private:
  std::shared_ptr<Transport> transport_;
  std::unique_ptr<FlightRecorder> flight_;
  ExchangeCosts costs_ = {};
  bool records_exchanges_ = false, in_background_ = false;
  std::vector<ExchangeRecord> exchange_records_;
  // Kept, so that a steady step allocates nothing.
  std::vector<std::span<const std::byte>> sent_pieces_;
  std::vector<std::span<std::byte>> received_pieces_;
  std::vector<std::pair<int, size_t>> sent_to_, received_from_;  ///< peer, number of pieces
  std::vector<Outgoing> sends_;
  std::vector<Incoming> receives_;
};

}  // namespace paddle::comm
