// Algorithms of collectives: the ring, the tree over several machines, shifts around a group,
// messages, and collectives that are started and waited for.

#include "comm/collectives.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <thread>

#include "comm/communicator.h"
#include "comm/local_transport.h"
#include "comm/simulation.h"

namespace paddle::comm {
namespace {

using Peers = std::shared_ptr<Communicator>;

/// Values of a rank whose float sums depend on the order of additions.
std::vector<float> uneven(int rank, int64_t count) {
  std::vector<float> out;
  for (int64_t i = 0; i < count; ++i)
    out.push_back(std::sin(static_cast<float>(3 * i + 7 * rank)) *
                  std::pow(10.0f, static_cast<float>((i + rank) % 7)));
  return out;
}

template <class T>
std::vector<T> sum_of(Communicator& communicator, std::vector<T> values, bool starts = false) {
  const auto count = static_cast<int64_t>(values.size());
  std::vector<std::byte> scratch(
      all_reduce_scratch(dtype_of<T>(), count, communicator.all().size()));
  const ReduceBuffer tensor{values.data(), values.data(), count};  // in place
  const CollectiveCall call{.group = communicator.all(), .scratch = scratch.data()};
  HostCollectives& collectives = communicator.collectives();
  if (starts) {
    collectives.start_all_reduce({&tensor, 1}, dtype_of<T>(), Reduction::kSum, call);
    collectives.wait(nullptr);
  } else {
    collectives.all_reduce({&tensor, 1}, dtype_of<T>(), Reduction::kSum, call);
  }
  return values;
}

std::vector<int> machines_of(int ranks, int each) {
  std::vector<int> out;
  for (int rank = 0; rank < ranks; ++rank) out.push_back(rank / each);
  return out;
}

TEST(Collectives, RingAddsExactly) {
  for (const int ranks : {1, 2, 3, 5})
    simulate(ranks, [&](const Peers& communicator) {
      communicator->collectives().use(CollectiveForm::kRing);
      for (const size_t count : {size_t{0}, size_t{1}, size_t{4}, size_t{10007}}) {
        std::vector<int64_t> mine(count);
        for (size_t i = 0; i < count; ++i)
          mine[i] = static_cast<int64_t>(i * i) + 1000 * communicator->rank();
        const auto sums = sum_of(*communicator, mine);
        const auto started = sum_of(*communicator, mine, true);
        for (size_t i = 0; i < count; ++i)
          ASSERT_EQ(sums[i], ranks * static_cast<int64_t>(i * i) + 500 * ranks * (ranks - 1));
        EXPECT_EQ(started, sums);
      }
    });
}

// The order of a ring: the part of rank i is summed from rank i + 1 on, around the end.
TEST(Collectives, RingAddsInItsOrder) {
  constexpr int kRanks = 3;
  constexpr int64_t kCount = 9000;
  std::vector<std::vector<float>> results(kRanks);
  simulate(kRanks, [&](const Peers& communicator) {
    communicator->collectives().use(CollectiveForm::kRing);
    results[static_cast<size_t>(communicator->rank())] =
        sum_of(*communicator, uneven(communicator->rank(), kCount));
  });
  for (int64_t i = 0; i < kCount; ++i) {
    const int part = static_cast<int>(i / (kCount / kRanks));
    float wanted = uneven((part + 1) % kRanks, i + 1).back();
    for (int r = 2; r <= kRanks; ++r) wanted += uneven((part + r) % kRanks, i + 1).back();
    if (i % 500 == 0) {
      EXPECT_EQ(results[0][static_cast<size_t>(i)], wanted) << i;
    }
  }
  EXPECT_EQ(results[1], results[0]);
  EXPECT_EQ(results[2], results[0]);
}

TEST(Collectives, RingScattersAndGathers) {
  for (const bool even : {true, false})
    for (const int ranks : {1, 2, 3, 4})
      simulate(ranks, [&](const Peers& communicator) {
        HostCollectives& collectives = communicator->collectives();
        collectives.use(CollectiveForm::kRing);
        std::vector<int64_t> counts, mine;
        std::vector<size_t> bytes;
        int64_t before = 0;
        for (int rank = 0; rank < ranks; ++rank) {
          counts.push_back(even ? 5 : 2 + rank);
          bytes.push_back(static_cast<size_t>(counts.back()) * sizeof(int64_t));
          if (rank < communicator->rank()) before += counts.back();
        }
        const int64_t total = std::accumulate(counts.begin(), counts.end(), int64_t{0});
        for (int64_t i = 0; i < total; ++i) mine.push_back(i + 100 * communicator->rank());
        const size_t own = static_cast<size_t>(counts[static_cast<size_t>(communicator->rank())]);
        std::vector<int64_t> part(own), all(static_cast<size_t>(total));
        std::vector<std::byte> scratch(
            reduce_scatter_scratch(own * sizeof(int64_t), static_cast<size_t>(ranks)));
        const CollectiveCall call{.group = communicator->all(), .scratch = scratch.data()};
        collectives.reduce_scatter(mine.data(), part.data(), counts, DType::kI64, Reduction::kSum,
                                   call);
        for (size_t i = 0; i < own; ++i)
          ASSERT_EQ(part[i], ranks * (before + static_cast<int64_t>(i)) + 50 * ranks * (ranks - 1));
        collectives.all_gather(part.data(), all.data(), bytes, call);
        for (int64_t i = 0; i < total; ++i)
          ASSERT_EQ(all[static_cast<size_t>(i)], ranks * i + 50 * ranks * (ranks - 1));
      });
}

TEST(Collectives, RingExchangesWithNeighborsOnly) {
  simulate(4, [](const Peers& communicator) {
    communicator->collectives().use(CollectiveForm::kRing);
    communicator->reset_costs();
    sum_of(*communicator, std::vector<float>(8000, 1.0f));
    const ExchangeCost& cost = communicator->costs()[static_cast<size_t>(Exchange::kAllReduce)];
    EXPECT_EQ(cost.calls, 1);
    EXPECT_EQ(cost.bytes, 2 * 3 * 8000);  // three quarters of the array, twice
  });
}

// Sums over several machines have the bits of those over one, in fewer bytes between machines.
TEST(Collectives, TreeOverMachinesHasTheSameBits) {
  struct Case {
    int ranks, each;
    bool nests;  ///< in a tree of a power of two of ranks on each machine
  };
  for (const Case& c : {Case{4, 2, true}, {6, 2, true}, {8, 4, true}, {6, 3, false}, {5, 2, false}})
    for (const int64_t count : {int64_t{100}, int64_t{4097}, int64_t{20011}}) {
      std::vector<float> flat;
      int64_t flat_bytes = 0;
      simulate(c.ranks, [&](const Peers& communicator) {
        const auto sums = sum_of(*communicator, uneven(communicator->rank(), count));
        if (communicator->is_root()) {
          flat = sums;
          flat_bytes = static_cast<int64_t>(communicator->sent_bytes());
        }
      });
      simulate(
          c.ranks,
          [&](const Peers& communicator) {
            EXPECT_EQ(sum_of(*communicator, uneven(communicator->rank(), count)), flat)
                << c.ranks << " ranks, " << c.each << " on each machine";
            const auto bytes = static_cast<int64_t>(communicator->sent_bytes());
            const bool large = count * 4 > static_cast<int64_t>(kSmallAllReduce);
            if (communicator->is_root() && !(c.nests && large)) {
              EXPECT_EQ(bytes, flat_bytes);
            }
          },
          machines_of(c.ranks, c.each));
    }
}

/// A transport that counts the bytes that it sends to other machines.
class CountingTransport final : public Transport {
 public:
  CountingTransport(std::shared_ptr<Transport> inner, bool knows_machines)
      : inner_(std::move(inner)), knows_machines_(knows_machines) {}
  int rank() const override { return inner_->rank(); }
  int size() const override { return inner_->size(); }
  int machine(int rank) const override { return knows_machines_ ? inner_->machine(rank) : 0; }
  void exchange(Exchange kind, std::span<const Outgoing> sends,
                std::span<const Incoming> receives) override {
    for (const Outgoing& message : sends)
      if (inner_->machine(message.peer) != inner_->machine(rank()))
        outside += size_of(message.pieces);
    inner_->exchange(kind, sends, receives);
  }
  void isend(int peer, uint32_t tag, std::span<const std::byte> bytes) override {
    inner_->isend(peer, tag, bytes);
  }
  void recv(int peer, uint32_t tag, std::span<std::byte> bytes) override {
    inner_->recv(peer, tag, bytes);
  }
  void abort(const std::string& reason) noexcept override { inner_->abort(reason); }

  size_t outside = 0;

 private:
  std::shared_ptr<Transport> inner_;
  bool knows_machines_;
};

size_t bytes_between_machines(bool knows_machines) {
  constexpr int kRanks = 8;
  const auto inner = make_local_transports(kRanks, machines_of(kRanks, 4));
  std::vector<std::shared_ptr<CountingTransport>> transports;
  for (const auto& each : inner)
    transports.push_back(std::make_shared<CountingTransport>(each, knows_machines));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < kRanks; ++rank)
    threads.emplace_back([&, rank] {
      Communicator communicator(transports[static_cast<size_t>(rank)]);
      sum_of(communicator, uneven(rank, 80000));
    });
  for (std::thread& thread : threads) thread.join();
  size_t bytes = 0;
  for (const auto& each : transports) bytes += each->outside;
  return bytes;
}

TEST(Collectives, TreeOverMachinesSendsLessBetweenThem) {
  const size_t flat = bytes_between_machines(false), nested = bytes_between_machines(true);
  EXPECT_EQ(flat, 8u * 4 * 2 * 40000);  // each rank half of the array twice
  EXPECT_EQ(4 * nested, flat);
}

TEST(Collectives, PermuteShiftsAroundTheGroup) {
  for (const int ranks : {1, 2, 3, 4})
    simulate(ranks, [&](const Peers& communicator) {
      std::vector<int> group;
      for (int rank = communicator->rank() % 2; rank < ranks; rank += 2) group.push_back(rank);
      for (const std::vector<int>& members : {communicator->all(), group})
        for (const int64_t shift : {-1, 0, 1, 2, 7}) {
          const int64_t mine = 10 + communicator->rank();
          int64_t found = 0;
          communicator->collectives().permute(std::as_bytes(std::span(&mine, 1)),
                                              std::as_writable_bytes(std::span(&found, 1)), shift,
                                              {.group = members});
          const auto n = static_cast<int64_t>(members.size());
          const auto self = std::find(members.begin(), members.end(), communicator->rank());
          const int64_t from = ((self - members.begin() - shift) % n + n) % n;
          EXPECT_EQ(found, 10 + members[static_cast<size_t>(from)]);
        }
    });
}

TEST(Collectives, MessagesWaitForStartedCollectives) {
  for (const bool overlaps : {false, true})
    simulate(2, [&](const Peers& communicator) {
      HostCollectives& collectives = communicator->collectives();
      collectives.overlap(overlaps);
      const int other = 1 - communicator->rank();
      std::vector<double> values(5000, communicator->rank() + 1.0);
      std::vector<std::byte> scratch(all_reduce_scratch(DType::kF64, 5000, 2));
      const ReduceBuffer tensor{values.data(), values.data(), 5000};
      collectives.start_all_reduce({&tensor, 1}, DType::kF64, Reduction::kSum,
                                   {.group = communicator->all(), .scratch = scratch.data()});
      double sent = communicator->rank(), found = -1;
      collectives.send(std::as_bytes(std::span(&sent, 1)), other, 5, nullptr);
      EXPECT_EQ(values, std::vector<double>(5000, 3.0));
      collectives.recv(std::as_writable_bytes(std::span(&found, 1)), other, 5, nullptr);
      EXPECT_EQ(found, other);
    });
}

TEST(Collectives, OfTheHostRejectStreams) {
  Communicator communicator;
  const auto stream = reinterpret_cast<paddle_stream>(&communicator);
  EXPECT_THROW(communicator.collectives().wait(stream), Error);
}

}  // namespace
}  // namespace paddle::comm
