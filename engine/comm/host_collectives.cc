#include "comm/host_collectives.h"

#include <numeric>
#include <utility>
#include <vector>

#include "base/span.h"
#include "comm/background.h"

namespace paddle::comm {
namespace {

void check_host(paddle_stream stream) {
  if (stream)
    fail(ErrorCode::kUsage, "a collective on a stream needs the collectives of its device");
}

int64_t bytes_of(std::span<const ReduceBuffer> tensors, DType dtype) {
  int64_t count = 0;
  for (const ReduceBuffer& tensor : tensors) count += tensor.count;
  return storage_bytes(dtype, count);
}

int64_t bytes_of(std::span<const int64_t> counts, DType dtype) {
  return storage_bytes(dtype, std::accumulate(counts.begin(), counts.end(), int64_t{0}));
}

int64_t sum_of(std::span<const size_t> bytes) {
  return static_cast<int64_t>(std::accumulate(bytes.begin(), bytes.end(), size_t{0}));
}

/// The record of a collective, from here to the end of the scope.
FlightScope recorded(const Messages& messages, Exchange kind, std::span<const int> group,
                     int64_t bytes, const std::string* location) {
  return FlightScope(messages.flight(), [&](FlightRecorder& recorder) {
    return recorder.enter(kind, group, bytes, location);
  });
}

}  // namespace

HostCollectives::HostCollectives(Messages& messages) : messages_(messages) {}

HostCollectives::~HostCollectives() = default;

void HostCollectives::use(CollectiveForm form) {
  finish();
  algorithm_ = make_algorithm(form);
}

void HostCollectives::overlap(bool on) {
  finish();
  if (size() > 1) background_ = std::make_unique<Background>(on);
}

void HostCollectives::abandon(const std::function<void()>& abort) noexcept {
  if (!background_ || background_->idle()) return;
  abort();
  const bool has_thread = background_->has_thread();
  background_.reset();  // waits for the thread
  if (has_thread) background_ = std::make_unique<Background>(true);
}

void HostCollectives::start(std::function<void()> job) {
  if (!background_) background_ = std::make_unique<Background>(false);
  background_->add([this, job = std::move(job)] {
    messages_.in_background(background_->has_thread());
    job();
    messages_.in_background(false);
  });
}

bool HostCollectives::is_idle() const { return !background_ || background_->idle(); }

void HostCollectives::finish() {
  if (!background_) return;
  if (!messages_.records() || !background_->has_thread() || background_->idle())
    return background_->finish();
  const int64_t begin = steady_nanoseconds();
  background_->finish();
  messages_.note({.kind = Exchange::kAllReduce}, begin);
}

void HostCollectives::wait(paddle_stream stream) {
  check_host(stream);
  finish();
}

void HostCollectives::all_reduce(std::span<const ReduceBuffer> tensors, DType dtype,
                                 Reduction reduction, const CollectiveCall& call) {
  wait(call.stream);
  const FlightScope record = recorded(messages_, Exchange::kAllReduce, call.group,
                                      bytes_of(tensors, dtype), take_location());
  algorithm_->all_reduce(messages_, tensors, dtype, reduction, call.group, call.scratch);
}

void HostCollectives::reduce_scatter(const void* in, void* out, std::span<const int64_t> counts,
                                     DType dtype, Reduction reduction, const CollectiveCall& call) {
  wait(call.stream);
  const FlightScope record = recorded(messages_, Exchange::kReduceScatter, call.group,
                                      bytes_of(counts, dtype), take_location());
  algorithm_->reduce_scatter(messages_, in, out, counts, dtype, reduction, call.group,
                             call.scratch);
}

void HostCollectives::all_gather(const void* in, void* out, std::span<const size_t> bytes,
                                 const CollectiveCall& call) {
  wait(call.stream);
  const FlightScope record =
      recorded(messages_, Exchange::kAllGather, call.group, sum_of(bytes), take_location());
  algorithm_->all_gather(messages_, in, out, bytes, call.group);
}

void HostCollectives::all_to_all(const void* in, std::span<const size_t> sent, void* out,
                                 std::span<const size_t> received, const CollectiveCall& call) {
  wait(call.stream);
  const FlightScope record =
      recorded(messages_, Exchange::kAllToAll, call.group, sum_of(sent), take_location());
  messages_.begin();
  const auto* from = static_cast<const std::byte*>(in);
  auto* to = static_cast<std::byte*>(out);
  bool fits = true;
  for (size_t i = 0; i < call.group.size(); ++i) {
    if (call.group[i] == rank()) {
      fits = sent[i] == received[i];
      if (fits) copy_bytes(to, from, sent[i]);
    } else {
      messages_.send(call.group[i], {from, sent[i]});
      messages_.receive(call.group[i], {to, received[i]});
    }
    from += sent[i];
    to += received[i];
  }
  if (call.group.size() > 1) messages_.exchange(Exchange::kAllToAll);
  // Afterwards, so that the other ranks do not wait for this one.
  ensure(fits, "all_to_all: a rank keeps another number of bytes than it sends itself");
}

void HostCollectives::permute(std::span<const std::byte> in, std::span<std::byte> out,
                              int64_t shift, const CollectiveCall& call) {
  wait(call.stream);
  const FlightScope record = recorded(messages_, Exchange::kPermute, call.group,
                                      static_cast<int64_t>(in.size()), take_location());
  const auto ranks = static_cast<int64_t>(call.group.size());
  const auto self = static_cast<int64_t>(position_in(call.group, rank()));
  const int64_t forward = (shift % ranks + ranks) % ranks;
  if (forward == 0) {
    ensure(in.size() == out.size(), "permute: a rank keeps another number of bytes");
    return copy_bytes(out.data(), in.data(), in.size());
  }
  messages_.begin();
  messages_.send(call.group[static_cast<size_t>((self + forward) % ranks)], in);
  messages_.receive(call.group[static_cast<size_t>((self - forward + ranks) % ranks)], out);
  messages_.exchange(Exchange::kPermute);
}

void HostCollectives::send(std::span<const std::byte> bytes, int peer, uint32_t tag,
                           paddle_stream stream) {
  wait(stream);
  const FlightScope record(messages_.flight(), [&](FlightRecorder& recorder) {
    return recorder.enter_message(rank(), peer, tag, static_cast<int64_t>(bytes.size()),
                                  take_location());
  });
  messages_.isend(peer, tag, bytes);
}

void HostCollectives::recv(std::span<std::byte> bytes, int peer, uint32_t tag,
                           paddle_stream stream) {
  wait(stream);
  const FlightScope record(messages_.flight(), [&](FlightRecorder& recorder) {
    return recorder.enter_message(peer, rank(), tag, static_cast<int64_t>(bytes.size()),
                                  take_location());
  });
  messages_.recv(peer, tag, bytes);
}

void HostCollectives::start_all_reduce(std::span<const ReduceBuffer> tensors, DType dtype,
                                       Reduction reduction, const CollectiveCall& call) {
  check_host(call.stream);
  start([this, kept = std::vector(tensors.begin(), tensors.end()), dtype, reduction,
         ranks = std::vector(call.group.begin(), call.group.end()), scratch = call.scratch,
         location = take_location()] {
    const FlightScope record =
        recorded(messages_, Exchange::kAllReduce, ranks, bytes_of(kept, dtype), location);
    algorithm_->all_reduce(messages_, kept, dtype, reduction, ranks, scratch);
  });
}

void HostCollectives::start_reduce_scatter(const void* in, void* out,
                                           std::span<const int64_t> counts, DType dtype,
                                           Reduction reduction, const CollectiveCall& call) {
  check_host(call.stream);
  start([this, in, out, kept = std::vector(counts.begin(), counts.end()), dtype, reduction,
         ranks = std::vector(call.group.begin(), call.group.end()), scratch = call.scratch,
         location = take_location()] {
    const FlightScope record =
        recorded(messages_, Exchange::kReduceScatter, ranks, bytes_of(kept, dtype), location);
    algorithm_->reduce_scatter(messages_, in, out, kept, dtype, reduction, ranks, scratch);
  });
}

void HostCollectives::start_all_gather(const void* in, void* out, std::span<const size_t> bytes,
                                       const CollectiveCall& call,
                                       std::function<void(paddle_stream)> then) {
  check_host(call.stream);
  start([this, in, out, kept = std::vector(bytes.begin(), bytes.end()),
         ranks = std::vector(call.group.begin(), call.group.end()), then = std::move(then),
         location = take_location()] {
    const FlightScope record =
        recorded(messages_, Exchange::kAllGather, ranks, sum_of(kept), location);
    algorithm_->all_gather(messages_, in, out, kept, ranks);
    if (then) then(nullptr);
  });
}

}  // namespace paddle::comm
