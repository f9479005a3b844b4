#include "conformance/transports.h"

#include <poll.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <mutex>
#include <numeric>
#include <optional>
#include <thread>

#include "base/parallel.h"
#include "base/text.h"
#include "comm/communicator.h"
#include "comm/join.h"
#include "comm/rendezvous.h"
#include "comm/simulation.h"

namespace paddle::conformance {
namespace {

using comm::Communicator;
using comm::Exchange;
using comm::Transport;
using Bytes = std::vector<std::byte>;
using namespace std::chrono_literals;

constexpr auto kTimeout = 20s, kShortTimeout = 1s, kPatience = 60s;

/// The body of a rank. "" or what is wrong.
using Body = std::function<std::string(const std::shared_ptr<Transport>&)>;

/// Kept by all threads, as one that hangs outlives the check.
struct Run {
  explicit Run(int ranks) : rendezvous(ranks), results(static_cast<size_t>(ranks)) {}
  comm::Rendezvous rendezvous;
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::optional<std::string>> results;  ///< of the ranks that have returned
  bool complete() const {
    return std::ranges::all_of(results, [](const auto& result) { return result.has_value(); });
  }
};

/// Joins ranks of this process over the transport; "" or the first thing that is wrong.
std::string run_ranks(const KindChoice& kind, int ranks, std::chrono::milliseconds timeout,
                      const Body& body) {
  ::setenv("PADDLE_TRANSPORT", kind.name.c_str(), 1);
  const auto run = std::make_shared<Run>(ranks);
  const comm::JoinOptions options{
      .join_timeout = kTimeout, .timeout = timeout, .notice = {}, .transport = kind};
  for (int rank = 0; rank < ranks; ++rank)
    std::thread([run, rank, ranks, options, body] {
      forbid_parallel_regions_on_this_thread();
      std::string result;
      try {
        const auto transport =
            comm::join({rank, ranks, run->rendezvous.address(), run->rendezvous.token()}, options);
        result = body(transport);
      } catch (const std::exception& e) {
        result = str("rank ", rank, ": ", e.what());
      }
      const std::lock_guard lock(run->mutex);
      run->results[static_cast<size_t>(rank)] = result;
      run->changed.notify_all();
    }).detach();
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (true) {
    {
      std::unique_lock lock(run->mutex);
      if (run->changed.wait_for(lock, 10ms, [&] { return run->complete(); })) break;
    }
    if (std::chrono::steady_clock::now() > end) {
      const std::lock_guard lock(run->mutex);
      for (size_t rank = 0; rank < run->results.size(); ++rank)
        if (!run->results[rank])
          return str("rank ", rank, " has not returned after ", kPatience.count(), " seconds");
    }
    if (!run->rendezvous.complete()) run->rendezvous.advance();
  }
  for (const auto& result : run->results)
    if (!result->empty()) return *result;
  return "";
}

template <class T>
void append(Bytes& out, std::span<const T> values) {
  const auto bytes = std::as_bytes(values);
  out.insert(out.end(), bytes.begin(), bytes.end());
}

/// Numbers whose float sums depend on the order of additions.
template <class T>
std::vector<T> uneven(int rank, int64_t count) {
  std::vector<T> out;
  for (int64_t i = 0; i < count; ++i)
    out.push_back(static_cast<T>(std::sin(static_cast<double>(3 * i + 7 * rank)) *
                                 std::pow(10.0, static_cast<double>((i + rank) % 7))));
  return out;
}

template <class T>
void reduce_all(Communicator& c, int64_t count, Bytes& out) {
  using comm::Reduction;
  const size_t group = c.all().size();
  Bytes scratch(comm::all_reduce_scratch(dtype_of<T>(), count, group));
  for (const Reduction reduction : {Reduction::kSum, Reduction::kMax, Reduction::kMin}) {
    std::vector<T> values = uneven<T>(c.rank(), count);
    const comm::ReduceBuffer tensor{values.data(), values.data(), count};
    c.collectives().all_reduce({&tensor, 1}, dtype_of<T>(), reduction,
                               {.group = c.all(), .scratch = scratch.data()});
    append(out, std::span<const T>(values));
  }
  std::vector<int64_t> counts;
  std::vector<size_t> bytes;
  for (size_t rank = 0; rank < group; ++rank) {
    counts.push_back(count / static_cast<int64_t>(group) + static_cast<int64_t>(rank));
    bytes.push_back(static_cast<size_t>(counts.back()) * sizeof(T));
  }
  const int64_t total = std::accumulate(counts.begin(), counts.end(), int64_t{0});
  const std::vector<T> mine = uneven<T>(c.rank(), total);
  const size_t own = static_cast<size_t>(counts[static_cast<size_t>(c.rank())]);
  std::vector<T> part(own), all(static_cast<size_t>(total));
  Bytes part_scratch(comm::reduce_scatter_scratch(own * sizeof(T), group));
  c.collectives().start_reduce_scatter(mine.data(), part.data(), counts, dtype_of<T>(),
                                       Reduction::kSum,
                                       {.group = c.all(), .scratch = part_scratch.data()});
  c.collectives().wait(nullptr);
  c.collectives().all_gather(part.data(), all.data(), bytes, {.group = c.all()});
  append(out, std::span<const T>(part));
  append(out, std::span<const T>(all));
}

void move_all(Communicator& c, size_t block, Bytes& out) {
  const auto ranks = static_cast<size_t>(c.size());
  const auto rank = static_cast<size_t>(c.rank());
  std::vector<size_t> sent, received;
  for (size_t peer = 0; peer < ranks; ++peer) {
    sent.push_back(block * ((rank + 2 * peer) % 3));
    received.push_back(block * ((peer + 2 * rank) % 3));
  }
  Bytes in(std::accumulate(sent.begin(), sent.end(), size_t{0})),
      found(std::accumulate(received.begin(), received.end(), size_t{0}));
  for (size_t i = 0; i < in.size(); ++i) in[i] = static_cast<std::byte>(i * 7 + rank);
  c.all_to_all(in.data(), sent, found.data(), received, c.all());
  append(out, std::span<const std::byte>(found));
  Bytes mine(block, static_cast<std::byte>(rank)), shifted(block);
  for (const int64_t shift : {1, -1, 2}) {
    c.collectives().permute(mine, shifted, shift, {.group = c.all()});
    append(out, std::span<const std::byte>(shifted));
  }
  c.broadcast(mine, c.size() - 1);
  append(out, std::span<const std::byte>(mine));
  const std::vector<int64_t> numbers = c.gather_numbers(100 + c.rank());
  append(out, std::span<const int64_t>(numbers));
  c.barrier();
}

/// The bytes that a rank has after every kind of collective.
Bytes collective_results(Communicator& c, const Extent& extent) {
  Bytes out;
  for (const auto form : {comm::CollectiveForm::kTree, comm::CollectiveForm::kRing}) {
    c.collectives().use(form);
    for (const bool overlap : {false, true}) {
      c.collectives().overlap(overlap);
      for (const int64_t count : {int64_t{0}, int64_t{1}, int64_t{5}, int64_t{10007},
                                  int64_t{extent.quick ? 65536 : 300001}}) {
        reduce_all<float>(c, count, out);
        reduce_all<double>(c, std::min<int64_t>(count, 20000), out);
        reduce_all<int32_t>(c, std::min<int64_t>(count, 20000), out);
      }
    }
  }
  c.collectives().overlap(false);
  for (const size_t block : {size_t{0}, size_t{1}, size_t{1000}, size_t{200001}})
    move_all(c, block, out);
  return out;
}

std::string check_collectives(const KindChoice& kind, int ranks, const Extent& extent) {
  std::vector<Bytes> expected(static_cast<size_t>(ranks));
  comm::simulate(ranks, [&](const std::shared_ptr<Communicator>& c) {
    expected[static_cast<size_t>(c->rank())] = collective_results(*c, extent);
  });
  return run_ranks(kind, ranks, kTimeout, [expected, extent](const auto& transport) -> std::string {
    Communicator c(transport);
    const Bytes found = collective_results(c, extent);
    const Bytes& wanted = expected[static_cast<size_t>(c.rank())];
    const auto at = std::ranges::mismatch(found, wanted).in1 - found.begin();
    if (found == wanted) return "";
    return str("rank ", c.rank(), ": the results of collectives differ from byte ", at, " of ",
               wanted.size());
  });
}

std::byte pattern(int from, int to, size_t i) {
  return static_cast<std::byte>(i * 131 + static_cast<size_t>(from) * 17 +
                                static_cast<size_t>(to) * 59);
}

/// `bytes` in pieces of these sizes again and again, with empty ones.
template <class Byte>
std::vector<std::span<Byte>> pieces_of(std::span<Byte> bytes, size_t first, size_t second) {
  std::vector<std::span<Byte>> out;
  size_t size = first;
  while (!bytes.empty()) {
    const size_t n = std::min(size, bytes.size());
    out.push_back(bytes.first(n));
    bytes = bytes.subspan(n);
    size = size == first ? second : first;
    if (out.size() % 3 == 0) out.push_back(bytes.first(0));
  }
  out.push_back(bytes);
  return out;
}

/// Every rank exchanges a message with each other, divided differently at both ends.
std::string exchange_with_all(Transport& t, size_t bytes) {
  std::vector<Bytes> out, in;
  std::vector<std::vector<std::span<const std::byte>>> out_pieces;
  std::vector<std::vector<std::span<std::byte>>> in_pieces;
  std::vector<comm::Outgoing> sends;
  std::vector<comm::Incoming> receives;
  const size_t large = bytes / 3 + 1;
  for (int peer = 0; peer < t.size(); ++peer) {
    Bytes& to = out.emplace_back(bytes);
    for (size_t i = 0; i < bytes; ++i) to[i] = pattern(t.rank(), peer, i);
    in.emplace_back(bytes);
  }
  for (int peer = 0; peer < t.size(); ++peer) {
    const auto at = static_cast<size_t>(peer);
    out_pieces.push_back(pieces_of(std::span<const std::byte>(out[at]), large, 1));
    in_pieces.push_back(pieces_of(std::span(in[at]), large + 1, large));
  }
  for (int peer = 0; peer < t.size(); ++peer) {
    if (peer == t.rank()) continue;
    sends.push_back({peer, out_pieces[static_cast<size_t>(peer)]});
    receives.push_back({peer, in_pieces[static_cast<size_t>(peer)]});
  }
  t.exchange(Exchange::kAllToAll, sends, receives);
  for (int peer = 0; peer < t.size(); ++peer)
    for (size_t i = 0; peer != t.rank() && i < bytes; ++i)
      if (in[static_cast<size_t>(peer)][i] != pattern(peer, t.rank(), i))
        return str("rank ", t.rank(), ": byte ", i, " of ", bytes, " from rank ", peer,
                   " is another one");
  return "";
}

std::string check_sizes(const KindChoice& kind, int ranks, const Extent& extent) {
  const size_t largest = size_t{extent.quick ? 1u : 64u} << 20;
  return run_ranks(kind, ranks, kTimeout, [largest](const auto& transport) {
    std::string wrong;
    for (const size_t bytes :
         {size_t{0}, size_t{1}, size_t{3}, size_t{4096}, size_t{65537}, largest})
      if (wrong.empty()) wrong = exchange_with_all(*transport, bytes);
    return wrong;
  });
}

Bytes message(int from, uint32_t tag, size_t number) {
  Bytes out(number * 1000 + tag);
  for (size_t i = 0; i < out.size(); ++i) out[i] = pattern(from, static_cast<int>(tag), i + number);
  return out;
}

/// Messages of several tags, taken in another order than posted, with exchanges between.
std::string check_messages(const KindChoice& kind, int ranks) {
  return run_ranks(kind, ranks, kTimeout, [](const auto& transport) -> std::string {
    Transport& t = *transport;
    constexpr uint32_t kTags = 3;
    constexpr size_t kNumbers = 4;
    for (int peer = 0; peer < t.size(); ++peer)
      for (size_t number = 0; peer != t.rank() && number < kNumbers; ++number)
        for (uint32_t tag = 0; tag < kTags; ++tag) {
          Bytes posted = message(t.rank(), tag, number);
          t.isend(peer, tag, posted);
          std::ranges::fill(posted, std::byte{0});  // the transport has a copy
        }
    if (std::string wrong = exchange_with_all(t, 5000); !wrong.empty()) return wrong;
    for (int peer = t.size() - 1; peer >= 0; --peer)
      for (uint32_t tag = kTags; peer != t.rank() && tag-- > 0;)
        for (size_t number = 0; number < kNumbers; ++number) {
          const Bytes expected = message(peer, tag, number);
          Bytes found(expected.size());
          t.recv(peer, tag, found);
          if (found != expected)
            return str("rank ", t.rank(), ": message ", number, " of tag ", tag, " from rank ",
                       peer, " is another one");
        }
    return exchange_with_all(t, 17);
  });
}

/// "" if `f` throws an error of this code, at most `limit` from now.
std::string expect_error(ErrorCode code, std::chrono::seconds limit, int rank,
                         const std::function<void()>& f) {
  const auto begin = std::chrono::steady_clock::now();
  try {
    f();
  } catch (const Error& e) {
    if (e.code() != code)
      return str("rank ", rank, ": expected the status ", static_cast<int>(code), ", found ",
                 static_cast<int>(e.code()), ": ", e.message());
    if (std::chrono::steady_clock::now() - begin > limit)
      return str("rank ", rank, ": the error came after more than ", limit.count(), " seconds");
    return "";
  }
  return str("rank ", rank, ": expected the status ", static_cast<int>(code), ", found no error");
}

void exchange_one(Transport& t, Exchange kind, size_t bytes) {
  const int peer = 1 - t.rank();
  const Bytes out(bytes);
  Bytes in(bytes);
  const std::span<const std::byte> sent(out);
  const std::span<std::byte> received(in);
  const comm::Outgoing send{peer, {&sent, 1}};
  const comm::Incoming receive{peer, {&received, 1}};
  t.exchange(kind, {&send, 1}, {&receive, 1});
}

/// Ranks whose programs differ: by the number of bytes, or the kind of the exchange. The first to
/// notice ends the run for the other.
std::string check_mismatch(const KindChoice& kind) {
  for (const bool by_size : {true, false}) {
    const auto noticed = std::make_shared<std::atomic<int>>(0);
    std::string wrong =
        run_ranks(kind, 2, kTimeout, [by_size, noticed](const auto& t) -> std::string {
          try {
            if (by_size)
              exchange_one(*t, Exchange::kAllReduce, t->rank() == 0 ? 100 : 200);
            else
              exchange_one(*t, t->rank() == 0 ? Exchange::kAllReduce : Exchange::kGather, 100);
          } catch (const Error& e) {
            if (e.code() == ErrorCode::kInternal) ++*noticed;
            if (e.code() == ErrorCode::kInternal || e.code() == ErrorCode::kPeer) return "";
            throw;
          }
          return "ranks that exchange different things get no error";
        });
    if (!wrong.empty()) return wrong;
    if (*noticed == 0)
      return str("exchanges of different ", by_size ? "sizes" : "kinds",
                 ": no rank gets PADDLE_INTERNAL");
  }
  return "";
}

std::string check_abort(const KindChoice& kind) {
  return run_ranks(kind, 3, kTimeout, [](const auto& t) -> std::string {
    if (t->rank() == 0) {
      std::this_thread::sleep_for(200ms);
      t->abort("rank 0 stops");
      return "";
    }
    return expect_error(ErrorCode::kPeer, 10s, t->rank(), [&] {
      Bytes memory(10);
      if (t->rank() == 1)
        t->recv(0, 4, memory);
      else
        exchange_with_all(*t, 100);
    });
  });
}

std::string check_timeout(const KindChoice& kind) {
  return run_ranks(kind, 2, kShortTimeout, [](const auto& t) -> std::string {
    if (t->rank() == 1) {
      std::this_thread::sleep_for(3s);
      return "";
    }
    return expect_error(ErrorCode::kPeer, 10s, 0, [&] { exchange_one(*t, Exchange::kGather, 10); });
  });
}

/// A rank that ends with an error wakes up those that wait for it.
std::string check_lost_rank(const KindChoice& kind) {
  return run_ranks(kind, 3, kTimeout, [](const auto& t) -> std::string {
    exchange_with_all(*t, 10);
    if (t->rank() == 2) {
      std::this_thread::sleep_for(200ms);
      t->abort("rank 2 has failed");
      return "";
    }
    std::string wrong =
        expect_error(ErrorCode::kPeer, 10s, t->rank(), [&] { exchange_with_all(*t, 1000000); });
    if (!wrong.empty()) return wrong;
    // Once a rank is gone, every call fails.
    return expect_error(ErrorCode::kPeer, 10s, t->rank(), [&] { exchange_with_all(*t, 10); });
  });
}

/// Messages that were posted before a rank closes still arrive.
std::string check_close(const KindChoice& kind) {
  return run_ranks(kind, 3, kTimeout, [](const auto& t) -> std::string {
    const size_t bytes = 300000;
    if (t->rank() == 0) {
      for (int peer = 1; peer < t->size(); ++peer) t->isend(peer, 9, Bytes(bytes, std::byte{5}));
      return "";
    }
    std::this_thread::sleep_for(200ms * t->rank());
    Bytes found(bytes);
    t->recv(0, 9, found);
    return found == Bytes(bytes, std::byte{5}) ? "" : "a message of a rank that has closed differs";
  });
}

}  // namespace

std::vector<std::string> transport_checks(const Extent& extent) {
  std::vector<std::string> out;
  for (const char* check : {"collectives", "sizes", "messages"})
    for (const int ranks : {2, 3, 4})
      if (!extent.quick || ranks < 4) out.push_back(str(check, "/", ranks));
  for (const char* check : {"mismatch", "abort", "timeout", "lost_rank", "close"})
    out.emplace_back(check);
  return out;
}

std::string check_transport(const KindChoice& kind, const std::string& check,
                            const Extent& extent) {
  const size_t slash = check.find('/');
  const std::string name = check.substr(0, slash);
  const int ranks = slash == std::string::npos ? 2 : std::stoi(check.substr(slash + 1));
  if (name == "collectives") return check_collectives(kind, ranks, extent);
  if (name == "sizes") return check_sizes(kind, ranks, extent);
  if (name == "messages") return check_messages(kind, ranks);
  if (name == "mismatch") return check_mismatch(kind);
  if (name == "abort") return check_abort(kind);
  if (name == "timeout") return check_timeout(kind);
  if (name == "lost_rank") return check_lost_rank(kind);
  if (name == "close") return check_close(kind);
  fail(ErrorCode::kUsage, "unknown check of transports: '", check, "'");
}

}  // namespace paddle::conformance
