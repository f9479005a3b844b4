#include "comm/communicator.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace paddle::comm {

Communicator::Communicator() : Communicator(nullptr) {}

Communicator::Communicator(std::shared_ptr<Transport> transport)
    : messages_(std::move(transport)), collectives_(messages_) {
  all_.resize(static_cast<size_t>(size()));
  std::iota(all_.begin(), all_.end(), 0);
}

Communicator::~Communicator() { abort_pending(); }

void Communicator::abort_pending() noexcept {
  collectives_.abandon([this] { abort("the rank has stopped"); });
}

bool Communicator::can_overlap() const {
  return messages_.transport() && messages_.transport()->can_overlap();
}

uint64_t Communicator::enter(FlightRecorder& recorder, Exchange kind, size_t bytes) const {
  return recorder.enter(kind, all_, static_cast<int64_t>(bytes), nullptr);
}

void Communicator::barrier() {
  if (size() == 1) return;
  collectives_.finish();
  const FlightScope record(messages_.flight(), [&](FlightRecorder& recorder) {
    return enter(recorder, Exchange::kBarrier, 0);
  });
  messages_.begin();
  for (const int peer : all_)
    if (peer != rank()) {
      messages_.send(peer, {});
      messages_.receive(peer, {});
    }
  messages_.exchange(Exchange::kBarrier);
}

void Communicator::broadcast(std::span<std::byte> bytes, int root) {
  if (size() == 1) return;
  collectives_.finish();
  const FlightScope record(messages_.flight(), [&](FlightRecorder& recorder) {
    return enter(recorder, Exchange::kBroadcast, bytes.size());
  });
  messages_.begin();
  if (rank() == root) {
    for (const int peer : all_)
      if (peer != rank()) messages_.send(peer, bytes);
  } else {
    messages_.receive(root, bytes);
  }
  messages_.exchange(Exchange::kBroadcast);
}

std::vector<int64_t> Communicator::gather_numbers(int64_t value) {
  std::vector<int64_t> out(all_.size());
  const std::vector<size_t> bytes(all_.size(), sizeof value);
  all_gather(&value, out.data(), bytes, all_);
  return out;
}

int64_t Communicator::max(int64_t value) {
  if (size() == 1) return value;
  const std::vector<int64_t> values = gather_numbers(value);
  return *std::max_element(values.begin(), values.end());
}

void Communicator::all_gather(const void* in, void* out, std::span<const size_t> bytes,
                              std::span<const int> group) {
  collectives_.all_gather(in, out, bytes, {.group = group});
}

void Communicator::all_to_all(const void* in, std::span<const size_t> sent, void* out,
                              std::span<const size_t> received, std::span<const int> group) {
  collectives_.all_to_all(in, sent, out, received, {.group = group});
}

void Communicator::gather(std::span<const std::byte> in, std::span<const std::span<std::byte>> out,
                          int root) {
  collectives_.finish();
  const FlightScope record(messages_.flight(), [&](FlightRecorder& recorder) {
    return enter(recorder, Exchange::kGather, 0);  // parts have different sizes
  });
  messages_.begin();
  if (rank() != root) {
    messages_.send(root, in);
    return messages_.exchange(Exchange::kGather);
  }
  for (const int peer : all_) {
    const std::span<std::byte> place = out[static_cast<size_t>(peer)];
    if (peer != rank())
      messages_.receive(peer, place);
    else
      copy_bytes(place.data(), in.data(), in.size());
  }
  if (size() > 1) messages_.exchange(Exchange::kGather);
}

void Communicator::isend(int peer, uint32_t tag, std::span<const std::byte> bytes) {
  collectives_.send(bytes, peer, tag, nullptr);
}

void Communicator::recv(int peer, uint32_t tag, std::span<std::byte> bytes) {
  collectives_.recv(bytes, peer, tag, nullptr);
}

void Communicator::keep_record(const std::string& folder, int64_t clock_offset) {
  collectives_.finish();
  messages_.set_flight(std::make_unique<FlightRecorder>(str(folder, "/", rank(), ".flight"), rank(),
                                                        size(), clock_offset));
  if (messages_.transport()) messages_.transport()->set_record_folder(folder);
}

void Communicator::set_activity(const char* name) {
  FlightRecorder* const recorder = messages_.flight();
  // The thread of started collectives would write at the same time.
  if (recorder && collectives_.is_idle()) recorder->set_activity(name);
}

void Communicator::set_end(FlightEnd end) {
  if (messages_.flight()) messages_.flight()->set_end(end);
}

void Communicator::set_step(int64_t step) {
  if (messages_.flight()) messages_.flight()->set_step(step);
  if (messages_.transport()) messages_.transport()->set_step(step);
}

void Communicator::abort(const std::string& reason) noexcept {
  if (messages_.transport()) messages_.transport()->abort(reason);
}

const ExchangeCosts& Communicator::costs() {
  collectives_.finish();
  return messages_.costs();
}

void Communicator::reset_costs() {
  collectives_.finish();
  messages_.costs() = {};
}

uint64_t Communicator::sent_bytes() {
  uint64_t bytes = 0;
  for (const ExchangeCost& cost : costs()) bytes += static_cast<uint64_t>(cost.bytes);
  return bytes;
}

std::vector<ExchangeCosts> Communicator::gather_costs() {
  const ExchangeCosts mine = costs();
  std::vector<ExchangeCosts> out(all_.size());
  const std::vector<size_t> bytes(all_.size(), sizeof mine);
  all_gather(&mine, out.data(), bytes, all_);
  return out;
}

void Communicator::record_exchanges() {
  collectives_.finish();
  messages_.record();
}

std::vector<ExchangeRecord> Communicator::take_records() {
  collectives_.finish();
  return messages_.take_records();
}

}  // namespace paddle::comm
