#include "comm/communicator.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include "base/span.h"

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

Communicator::Communicator(std::shared_ptr<Transport> transport)
    : transport_(std::move(transport)), rank_(transport_->rank()), size_(transport_->size()) {
  all_.resize(static_cast<size_t>(size_));
  std::iota(all_.begin(), all_.end(), 0);
}

void Communicator::barrier() {
  if (size_ == 1) return;
  sends_.clear();
  receives_.clear();
  for (const int peer : all_)
    if (peer != rank_) {
      sends_.push_back({peer, {}});
      receives_.push_back({peer, {}});
    }
  exchange(Exchange::kBarrier);
}

void Communicator::broadcast(std::span<std::byte> bytes, int root) {
  if (size_ == 1) return;
  sends_.clear();
  receives_.clear();
  if (rank_ == root) {
    for (const int peer : all_)
      if (peer != rank_) sends_.push_back({peer, bytes});
  } else {
    receives_.push_back({root, bytes});
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
  const size_t total = bytes_of(dtype, count), ranks = group.size();
  if (ranks <= 1) {
    copy(out, in, total);
    return;
  }
  const auto self =
      static_cast<size_t>(std::find(group.begin(), group.end(), rank_) - group.begin());
  const bool small = total <= kSmall;
  const auto range = [&](size_t i) {
    return small ? std::pair<int64_t, int64_t>{0, count} : part(count, i, ranks);
  };
  const auto [begin, end] = range(self);
  const size_t mine = bytes_of(dtype, end - begin);
  sends_.clear();
  receives_.clear();
  for (size_t i = 0; i < ranks; ++i) {
    const auto [from, to] = range(i);
    const std::byte* const source = static_cast<const std::byte*>(in) + bytes_of(dtype, from);
    if (i == self) {
      copy(scratch + i * mine, source, mine);
      continue;
    }
    sends_.push_back({group[i], {source, bytes_of(dtype, to - from)}});
    receives_.push_back({group[i], {scratch + i * mine, mine}});
  }
  exchange(Exchange::kAllReduce);
  reduce_parts(scratch, mine, end - begin, dtype, reduction, ranks);
  if (small) {
    copy(out, scratch, total);
    return;
  }
  part_bytes_.clear();
  for (size_t i = 0; i < ranks; ++i) {
    const auto [from, to] = range(i);
    part_bytes_.push_back(bytes_of(dtype, to - from));
  }
  all_gather_as(Exchange::kAllReduce, scratch, out, part_bytes_, group);
}

void Communicator::reduce_scatter(const void* in, void* out, std::span<const int64_t> counts,
                                  DType dtype, Reduction reduction, std::span<const int> group,
                                  std::byte* scratch) {
  const auto self =
      static_cast<size_t>(std::find(group.begin(), group.end(), rank_) - group.begin());
  const size_t mine = bytes_of(dtype, counts[self]);
  if (group.size() <= 1) {
    copy(out, in, mine);
    return;
  }
  sends_.clear();
  receives_.clear();
  const auto* source = static_cast<const std::byte*>(in);
  for (size_t i = 0; i < group.size(); ++i) {
    const size_t bytes = bytes_of(dtype, counts[i]);
    if (i == self) {
      copy(scratch + i * mine, source, mine);
    } else {
      sends_.push_back({group[i], {source, bytes}});
      receives_.push_back({group[i], {scratch + i * mine, mine}});
    }
    source += bytes;
  }
  exchange(Exchange::kReduceScatter);
  reduce_parts(scratch, mine, counts[self], dtype, reduction, group.size());
  copy(out, scratch, mine);
}

void Communicator::all_gather(const void* in, void* out, std::span<const size_t> bytes,
                              std::span<const int> group) {
  all_gather_as(Exchange::kAllGather, in, out, bytes, group);
}

void Communicator::all_gather_as(Exchange kind, const void* in, void* out,
                                 std::span<const size_t> bytes, std::span<const int> group) {
  sends_.clear();
  receives_.clear();
  size_t at = 0;
  for (size_t i = 0; i < group.size(); ++i) {
    std::byte* const place = static_cast<std::byte*>(out) + at;
    at += bytes[i];
    if (group[i] != rank_) {
      receives_.push_back({group[i], {place, bytes[i]}});
      continue;
    }
    copy(place, in, bytes[i]);
    for (const int peer : group)
      if (peer != rank_) sends_.push_back({peer, {place, bytes[i]}});
  }
  if (group.size() > 1) exchange(kind, kind == Exchange::kAllReduce ? 0 : 1);
}

void Communicator::gather(std::span<const std::byte> in, std::span<const std::span<std::byte>> out,
                          int root) {
  if (rank_ != root) {
    sends_.assign({{root, in}});
    receives_.clear();
    return exchange(Exchange::kGather);
  }
  sends_.clear();
  receives_.clear();
  for (const int peer : all_) {
    const std::span<std::byte> place = out[static_cast<size_t>(peer)];
    if (peer != rank_)
      receives_.push_back({peer, place});
    else
      copy(place.data(), in.data(), in.size());
  }
  if (size_ > 1) exchange(Exchange::kGather);
}

void Communicator::exchange(Exchange kind, int calls) {
  ExchangeCost& cost = costs_[index_of(kind)];
  const CostClock clock(cost);
  cost.calls += calls;
  for (const Outgoing& send : sends_) cost.bytes += static_cast<int64_t>(send.bytes.size());
  transport_->exchange(kind, sends_, receives_);
}

uint64_t Communicator::sent_bytes() const {
  uint64_t bytes = 0;
  for (const ExchangeCost& cost : costs_) bytes += static_cast<uint64_t>(cost.bytes);
  return bytes;
}

std::vector<ExchangeCosts> Communicator::gather_costs() {
  const ExchangeCosts mine = costs_;
  std::vector<ExchangeCosts> out(all_.size());
  const std::vector<size_t> bytes(all_.size(), sizeof mine);
  all_gather(&mine, out.data(), bytes, all_);
  return out;
}

void Communicator::post(int peer, uint32_t tag, std::span<const std::byte> bytes) {
  ExchangeCost& cost = costs_[index_of(Exchange::kMessage)];
  const CostClock clock(cost);
  ++cost.calls;
  cost.bytes += static_cast<int64_t>(bytes.size());
  transport_->post(peer, tag, bytes);
}

void Communicator::take(int peer, uint32_t tag, std::span<std::byte> bytes) {
  const CostClock clock(costs_[index_of(Exchange::kMessage)]);
  transport_->take(peer, tag, bytes);
}

void Communicator::at_step(int64_t step) {
  if (transport_) transport_->at_step(step);
}

void Communicator::abort(const std::string& reason) noexcept {
  if (transport_) transport_->abort(reason);
}

Communicator* current_communicator() { return current; }

CommunicatorScope::CommunicatorScope(Communicator& communicator)
    : previous_(std::exchange(current, &communicator)) {}

CommunicatorScope::~CommunicatorScope() { current = previous_; }

}  // namespace paddle::comm
