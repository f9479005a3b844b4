#include "comm/communicator.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include "base/span.h"
#include "comm/background.h"

namespace paddle::comm {
namespace {

thread_local Communicator* current = nullptr;

/// Below this, everybody sends everything to everybody: one exchange instead of two.
constexpr size_t kSmall = 16 * 1024;

/// The arrays may overlap, and those of no bytes may be null.
void copy(void* to, const void* from, size_t bytes) {
  if (bytes > 0 && to != from) std::memmove(to, from, bytes);
}

size_t bytes_of(DType dtype, int64_t count) {
  return static_cast<size_t>(storage_bytes(dtype, count));
}

/// Elements [begin, end) of `count` that position `i` of `parts` reduces.
std::pair<int64_t, int64_t> part(int64_t count, size_t i, size_t parts) {
  const auto at = [&](size_t n) {
    return static_cast<int64_t>(static_cast<__int128>(count) * static_cast<int64_t>(n) /
                                static_cast<int64_t>(parts));
  };
  return {at(i), at(i + 1)};
}

template <class T>
void combine(T* into, const T* other, int64_t count, Reduction reduction) {
  switch (reduction) {
    case Reduction::kSum:
      for (int64_t i = 0; i < count; ++i) into[i] = static_cast<T>(into[i] + other[i]);
      return;
    // A NaN wins, as in the kernels of max and min.
    case Reduction::kMax:
      for (int64_t i = 0; i < count; ++i)
        if (!(into[i] >= other[i]) && into[i] == into[i]) into[i] = other[i];
      return;
    case Reduction::kMin:
      for (int64_t i = 0; i < count; ++i)
        if (!(into[i] <= other[i]) && into[i] == into[i]) into[i] = other[i];
      return;
  }
}

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

}  // namespace

Communicator::Communicator() = default;
Communicator::Communicator(Communicator&&) noexcept = default;
Communicator& Communicator::operator=(Communicator&&) noexcept = default;

Communicator::~Communicator() {
  abort_pending();
  background_.reset();  // before the members that it uses
}

void Communicator::abort_pending() noexcept {
  if (!background_ || background_->idle()) return;
  abort("the rank has stopped");
  const bool has_thread = background_->has_thread();
  background_.reset();  // waits for the thread
  if (has_thread) background_ = std::make_unique<Background>(true);
}

void Communicator::overlap(bool on) {
  wait();
  if (size_ > 1) background_ = std::make_unique<Background>(on);
}

void Communicator::start(std::function<void()> job) {
  if (!background_) background_ = std::make_unique<Background>(false);
  background_->add([this, job = std::move(job)] {
    in_background_ = background_->has_thread();
    job();
    in_background_ = false;
  });
}

void Communicator::start_all_reduce(std::span<const ReduceBuffer> tensors, DType dtype,
                                    Reduction reduction, std::span<const int> group,
                                    std::byte* scratch) {
  start([this, kept = std::vector(tensors.begin(), tensors.end()), dtype, reduction,
         ranks = std::vector(group.begin(), group.end()),
         scratch] { reduce_now(kept, dtype, reduction, ranks, scratch); });
}

void Communicator::start_reduce_scatter(const void* in, void* out, std::span<const int64_t> counts,
                                        DType dtype, Reduction reduction,
                                        std::span<const int> group, std::byte* scratch) {
  start([this, in, out, kept = std::vector(counts.begin(), counts.end()), dtype, reduction,
         ranks = std::vector(group.begin(), group.end()),
         scratch] { scatter_now(in, out, kept, dtype, reduction, ranks, scratch); });
}

void Communicator::start_all_gather(const void* in, void* out, std::span<const size_t> bytes,
                                    std::span<const int> group, std::function<void()> then) {
  start([this, in, out, kept = std::vector(bytes.begin(), bytes.end()),
         ranks = std::vector(group.begin(), group.end()), then = std::move(then)] {
    gather_now(in, out, kept, ranks);
    if (then) then();
  });
}

void Communicator::wait() {
  if (!background_) return;
  if (!records_exchanges_ || !background_->has_thread() || background_->idle())
    return background_->finish();
  const int64_t begin = steady_nanoseconds();
  background_->finish();
  note({.kind = Exchange::kAllReduce}, begin);
}

void Communicator::record_exchanges() {
  wait();
  records_exchanges_ = true;
  exchange_records_.clear();
}

std::vector<ExchangeRecord> Communicator::take_records() {
  wait();
  records_exchanges_ = false;
  return std::exchange(exchange_records_, {});
}

void Communicator::note(ExchangeRecord record, int64_t begin) {
  if (!records_exchanges_ || exchange_records_.size() >= kMaxRecords) return;
  record.begin = begin;
  record.end = steady_nanoseconds();
  exchange_records_.push_back(record);
}

const ExchangeCosts& Communicator::costs() {
  wait();
  return costs_;
}

void Communicator::reset_costs() {
  wait();
  costs_ = {};
}

Communicator::Communicator(std::shared_ptr<Transport> transport)
    : transport_(std::move(transport)), rank_(transport_->rank()), size_(transport_->size()) {
  all_.resize(static_cast<size_t>(size_));
  std::iota(all_.begin(), all_.end(), 0);
}

bool Communicator::can_overlap() const { return transport_ && transport_->can_overlap(); }

void Communicator::barrier() {
  if (size_ == 1) return;
  wait();
  begin_messages();
  for (const int peer : all_)
    if (peer != rank_) {
      send(peer, {});
      receive(peer, {});
    }
  exchange(Exchange::kBarrier);
}

void Communicator::broadcast(std::span<std::byte> bytes, int root) {
  if (size_ == 1) return;
  wait();
  begin_messages();
  if (rank_ == root) {
    for (const int peer : all_)
      if (peer != rank_) send(peer, bytes);
  } else {
    receive(root, bytes);
  }
  exchange(Exchange::kBroadcast);
}

std::vector<int64_t> Communicator::gather_numbers(int64_t value) {
  std::vector<int64_t> out(all_.size());
  const std::vector<size_t> bytes(all_.size(), sizeof value);
  all_gather(&value, out.data(), bytes, all_);
  return out;
}

int64_t Communicator::max(int64_t value) {
  if (size_ == 1) return value;
  const std::vector<int64_t> values = gather_numbers(value);
  return *std::max_element(values.begin(), values.end());
}

size_t Communicator::all_reduce_scratch(DType dtype, int64_t count, size_t group) {
  if (group <= 1) return 0;
  const size_t bytes = bytes_of(dtype, count);
  if (bytes <= kSmall) return bytes * group;
  const auto largest = count / static_cast<int64_t>(group) + 1;
  return bytes_of(dtype, largest) * group;
}

uint64_t Communicator::all_reduce_sent_bytes(uint64_t bytes, size_t group) {
  if (group <= 1) return 0;
  return bytes <= kSmall ? bytes * (group - 1) : 2 * bytes / group * (group - 1);
}

void Communicator::reduce_parts(std::byte* parts, size_t stride, int64_t count, DType dtype,
                                Reduction reduction, size_t ranks) const {
  visit_dtype(dtype, [&]<class Tag>(Tag) {
    using T = typename Tag::type;
    const auto part_at = [&](size_t i) { return reinterpret_cast<T*>(parts + i * stride); };
    for (size_t step = 1; step < ranks; step *= 2)
      for (size_t i = 0; i + step < ranks; i += 2 * step)
        combine(part_at(i), part_at(i + step), count, reduction);
  });
}

void Communicator::all_reduce(const void* in, void* out, int64_t count, DType dtype,
                              Reduction reduction, std::span<const int> group, std::byte* scratch) {
  const ReduceBuffer one{in, out, count};
  all_reduce({&one, 1}, dtype, reduction, group, scratch);
}

namespace {

/// Visits the pieces of elements [begin, end) of concatenated tensors: the tensor, its first
/// element and the number of elements.
template <class Visit>
void for_each_piece(std::span<const ReduceBuffer> tensors, int64_t begin, int64_t end,
                    Visit&& visit) {
  int64_t at = 0;
  for (const ReduceBuffer& tensor : tensors) {
    const int64_t from = std::max(begin, at), to = std::min(end, at + tensor.count);
    if (from < to) visit(tensor, from - at, to - from);
    at += tensor.count;
  }
}

}  // namespace

void Communicator::all_reduce(std::span<const ReduceBuffer> tensors, DType dtype,
                              Reduction reduction, std::span<const int> group, std::byte* scratch) {
  wait();
  reduce_now(tensors, dtype, reduction, group, scratch);
}

void Communicator::reduce_now(std::span<const ReduceBuffer> tensors, DType dtype,
                              Reduction reduction, std::span<const int> group, std::byte* scratch) {
  const size_t ranks = group.size();
  int64_t count = 0;
  for (const ReduceBuffer& tensor : tensors) count += tensor.count;
  if (ranks <= 1) {
    for (const ReduceBuffer& tensor : tensors)
      copy(tensor.out, tensor.in, bytes_of(dtype, tensor.count));
    return;
  }
  const auto self =
      static_cast<size_t>(std::find(group.begin(), group.end(), rank_) - group.begin());
  const bool small = bytes_of(dtype, count) <= kSmall;
  const auto range = [&](size_t i) {
    return small ? std::pair<int64_t, int64_t>{0, count} : part(count, i, ranks);
  };
  const auto input = [&](const ReduceBuffer& tensor, int64_t first, int64_t n) {
    return std::span(static_cast<const std::byte*>(tensor.in) + bytes_of(dtype, first),
                     bytes_of(dtype, n));
  };
  const auto output = [&](const ReduceBuffer& tensor, int64_t first, int64_t n) {
    return std::span(static_cast<std::byte*>(tensor.out) + bytes_of(dtype, first),
                     bytes_of(dtype, n));
  };
  const auto [begin, end] = range(self);
  const size_t mine = bytes_of(dtype, end - begin);
  begin_messages();
  for (size_t i = 0; i < ranks; ++i) {
    const auto [from, to] = range(i);
    std::byte* place = scratch + i * mine;
    if (i == self) {
      for_each_piece(tensors, from, to, [&](const ReduceBuffer& tensor, int64_t first, int64_t n) {
        copy(place, input(tensor, first, n).data(), bytes_of(dtype, n));
        place += bytes_of(dtype, n);
      });
      continue;
    }
    if (from == to) send(group[i], {});
    for_each_piece(tensors, from, to, [&](const ReduceBuffer& tensor, int64_t first, int64_t n) {
      send(group[i], input(tensor, first, n));
    });
    receive(group[i], {place, mine});
  }
  exchange(Exchange::kAllReduce);
  reduce_parts(scratch, mine, end - begin, dtype, reduction, ranks);
  const std::byte* from = scratch;
  for_each_piece(tensors, begin, end, [&](const ReduceBuffer& tensor, int64_t first, int64_t n) {
    copy(output(tensor, first, n).data(), from, bytes_of(dtype, n));
    from += bytes_of(dtype, n);
  });
  if (small) return;
  begin_messages();
  for (size_t i = 0; i < ranks; ++i) {
    if (i == self) continue;
    const auto [first, last] = range(i);
    if (begin == end) send(group[i], {});
    if (first == last) receive(group[i], {});
    for_each_piece(tensors, begin, end, [&](const ReduceBuffer& tensor, int64_t at, int64_t n) {
      send(group[i], output(tensor, at, n));
    });
    for_each_piece(tensors, first, last, [&](const ReduceBuffer& tensor, int64_t at, int64_t n) {
      receive(group[i], output(tensor, at, n));
    });
  }
  exchange(Exchange::kAllReduce, 0);
}

void Communicator::reduce_scatter(const void* in, void* out, std::span<const int64_t> counts,
                                  DType dtype, Reduction reduction, std::span<const int> group,
                                  std::byte* scratch) {
  wait();
  scatter_now(in, out, counts, dtype, reduction, group, scratch);
}

void Communicator::scatter_now(const void* in, void* out, std::span<const int64_t> counts,
                               DType dtype, Reduction reduction, std::span<const int> group,
                               std::byte* scratch) {
  const auto self =
      static_cast<size_t>(std::find(group.begin(), group.end(), rank_) - group.begin());
  const size_t mine = bytes_of(dtype, counts[self]);
  if (group.size() <= 1) {
    copy(out, in, mine);
    return;
  }
  begin_messages();
  const auto* source = static_cast<const std::byte*>(in);
  for (size_t i = 0; i < group.size(); ++i) {
    const size_t bytes = bytes_of(dtype, counts[i]);
    if (i == self) {
      copy(scratch + i * mine, source, mine);
    } else {
      send(group[i], {source, bytes});
      receive(group[i], {scratch + i * mine, mine});
    }
    source += bytes;
  }
  exchange(Exchange::kReduceScatter);
  reduce_parts(scratch, mine, counts[self], dtype, reduction, group.size());
  copy(out, scratch, mine);
}

void Communicator::all_gather(const void* in, void* out, std::span<const size_t> bytes,
                              std::span<const int> group) {
  wait();
  gather_now(in, out, bytes, group);
}

void Communicator::gather_now(const void* in, void* out, std::span<const size_t> bytes,
                              std::span<const int> group) {
  begin_messages();
  auto* place = static_cast<std::byte*>(out);
  for (size_t i = 0; i < group.size(); ++i) {
    if (group[i] == rank_) {
      copy(place, in, bytes[i]);
      for (const int peer : group)
        if (peer != rank_) send(peer, {place, bytes[i]});
    } else {
      receive(group[i], {place, bytes[i]});
    }
    place += bytes[i];
  }
  if (group.size() > 1) exchange(Exchange::kAllGather);
}

void Communicator::all_to_all(const void* in, std::span<const size_t> sent, void* out,
                              std::span<const size_t> received, std::span<const int> group) {
  wait();
  begin_messages();
  const auto* from = static_cast<const std::byte*>(in);
  auto* to = static_cast<std::byte*>(out);
  bool fits = true;
  for (size_t i = 0; i < group.size(); ++i) {
    if (group[i] == rank_) {
      fits = sent[i] == received[i];
      if (fits) copy(to, from, sent[i]);
    } else {
      send(group[i], {from, sent[i]});
      receive(group[i], {to, received[i]});
    }
    from += sent[i];
    to += received[i];
  }
  if (group.size() > 1) exchange(Exchange::kAllToAll);
  // Afterwards, so that the other ranks do not wait for this one.
  ensure(fits, "all_to_all: a rank keeps another number of bytes than it sends itself");
}

void Communicator::gather(std::span<const std::byte> in, std::span<const std::span<std::byte>> out,
                          int root) {
  wait();
  begin_messages();
  if (rank_ != root) {
    send(root, in);
    return exchange(Exchange::kGather);
  }
  for (const int peer : all_) {
    const std::span<std::byte> place = out[static_cast<size_t>(peer)];
    if (peer != rank_)
      receive(peer, place);
    else
      copy(place.data(), in.data(), in.size());
  }
  if (size_ > 1) exchange(Exchange::kGather);
}

void Communicator::begin_messages() {
  sent_pieces_.clear();
  received_pieces_.clear();
  sent_to_.clear();
  received_from_.clear();
}

namespace {

/// Adds a piece to the message to or from a peer, which is the last one or a new one.
void add_piece(std::vector<std::pair<int, size_t>>& messages, int peer) {
  if (messages.empty() || messages.back().first != peer) messages.emplace_back(peer, 0);
  ++messages.back().second;
}

}  // namespace

void Communicator::send(int peer, std::span<const std::byte> piece) {
  add_piece(sent_to_, peer);
  sent_pieces_.push_back(piece);
}

void Communicator::receive(int peer, std::span<std::byte> piece) {
  add_piece(received_from_, peer);
  received_pieces_.push_back(piece);
}

void Communicator::exchange(Exchange kind, int calls) {
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
  // Of a broadcast or a gather each rank but the root knows only the root.
  const bool mutual = sent_to_.size() == received_from_.size();
  note({.kind = kind,
        .bytes = bytes,
        .group = mutual ? group_number(kind, rank_, sent_to_) : 0,
        .background = in_background_},
       begin);
}

uint64_t Communicator::sent_bytes() {
  wait();
  uint64_t bytes = 0;
  for (const ExchangeCost& cost : costs_) bytes += static_cast<uint64_t>(cost.bytes);
  return bytes;
}

std::vector<ExchangeCosts> Communicator::gather_costs() {
  const ExchangeCosts mine = costs();
  std::vector<ExchangeCosts> out(all_.size());
  const std::vector<size_t> bytes(all_.size(), sizeof mine);
  all_gather(&mine, out.data(), bytes, all_);
  return out;
}

void Communicator::isend(int peer, uint32_t tag, std::span<const std::byte> bytes) {
  wait();
  ExchangeCost& cost = costs_[index_of(Exchange::kMessage)];
  const CostClock clock(cost);
  ++cost.calls;
  cost.bytes += static_cast<int64_t>(bytes.size());
  const int64_t begin = steady_nanoseconds();
  transport_->isend(peer, tag, bytes);
  note({.kind = Exchange::kMessage,
        .bytes = static_cast<int64_t>(bytes.size()),
        .group = message_number(rank_, peer, tag),
        .sends_only = true},
       begin);
}

void Communicator::recv(int peer, uint32_t tag, std::span<std::byte> bytes) {
  wait();
  const CostClock clock(costs_[index_of(Exchange::kMessage)]);
  const int64_t begin = steady_nanoseconds();
  transport_->recv(peer, tag, bytes);
  note({.kind = Exchange::kMessage, .group = message_number(peer, rank_, tag)}, begin);
}

void Communicator::set_step(int64_t step) {
  if (transport_) transport_->set_step(step);
}

void Communicator::abort(const std::string& reason) noexcept {
  if (transport_) transport_->abort(reason);
}

Communicator* current_communicator() { return current; }

CommunicatorScope::CommunicatorScope(Communicator& communicator)
    : previous_(std::exchange(current, &communicator)) {}

CommunicatorScope::~CommunicatorScope() { current = previous_; }

}  // namespace paddle::comm
