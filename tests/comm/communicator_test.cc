// Collectives between the threads of a simulated run: values by hand, the order of sums, groups,
// and what happens when a rank fails.

#include "comm/communicator.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "comm/clock.h"
#include "comm/simulation.h"

namespace paddle::comm {
namespace {

using Peers = std::shared_ptr<Communicator>;

template <class T>
std::vector<T> all_reduced(Communicator& communicator, std::vector<T> values, Reduction reduction,
                           const std::vector<int>& group) {
  const auto count = static_cast<int64_t>(values.size());
  std::vector<std::byte> scratch(all_reduce_scratch(dtype_of<T>(), count, group.size()));
  std::vector<T> out(values.size());
  const ReduceBuffer tensor{values.data(), out.data(), count};
  communicator.collectives().all_reduce({&tensor, 1}, dtype_of<T>(), reduction,
                                        {.group = group, .scratch = scratch.data()});
  return out;
}

TEST(Communicator, OneProcessIsARunOfOneRank) {
  Communicator communicator;
  EXPECT_EQ(communicator.rank(), 0);
  EXPECT_EQ(communicator.size(), 1);
  EXPECT_TRUE(communicator.is_root());
  communicator.barrier();
  EXPECT_EQ(communicator.max(7), 7);
  EXPECT_EQ(all_reduced<float>(communicator, {1, 2}, Reduction::kSum, {0}),
            (std::vector<float>{1, 2}));
}

TEST(Communicator, NumbersOfAllRanks) {
  simulate(3, [](const Peers& communicator) {
    EXPECT_EQ(communicator->gather_numbers(10 * communicator->rank()),
              (std::vector<int64_t>{0, 10, 20}));
    EXPECT_EQ(communicator->max(communicator->rank() == 1 ? 15 : -3), 15);
    int64_t number = 100 + communicator->rank();
    communicator->broadcast(std::as_writable_bytes(std::span(&number, 1)), 2);
    EXPECT_EQ(number, 102);
  });
}

TEST(Communicator, SumsOfSmallAndLargeArrays) {
  for (const int ranks : {2, 3, 4, 5}) {
    simulate(ranks, [&](const Peers& communicator) {
      for (const size_t count : {size_t{0}, size_t{1}, size_t{7}, size_t{10007}}) {
        std::vector<int64_t> mine(count);
        for (size_t i = 0; i < count; ++i)
          mine[i] = static_cast<int64_t>(i) + 1000 * communicator->rank();
        const auto sums = all_reduced(*communicator, mine, Reduction::kSum, communicator->all());
        const auto largest = all_reduced(*communicator, mine, Reduction::kMax, communicator->all());
        const auto least = all_reduced(*communicator, mine, Reduction::kMin, communicator->all());
        for (size_t i = 0; i < count; ++i) {
          const auto at = static_cast<int64_t>(i);
          ASSERT_EQ(sums[i], ranks * at + 1000 * (ranks * (ranks - 1) / 2));
          ASSERT_EQ(largest[i], at + 1000 * (ranks - 1));
          ASSERT_EQ(least[i], at);
        }
      }
    });
  }
}

// Several tensors together have the sums that each has on its own.
TEST(Communicator, SumsOfSeveralTensors) {
  for (const int ranks : {1, 2, 3, 5})
    for (const int64_t scale : {1, 900}) {
      simulate(ranks, [&](const Peers& communicator) {
        std::vector<std::vector<float>> in, out, wanted;
        std::vector<ReduceBuffer> tensors;
        int64_t all = 0;
        for (const int64_t size : {3, 0, 1, 7, 2}) {
          std::vector<float> values;
          for (int64_t i = 0; i < size * scale; ++i)
            values.push_back(std::sin(static_cast<float>(i + 10 * size + communicator->rank())));
          wanted.push_back(
              all_reduced(*communicator, values, Reduction::kSum, communicator->all()));
          out.emplace_back(values.size());
          in.push_back(std::move(values));
          all += size * scale;
        }
        for (size_t i = 0; i < in.size(); ++i)
          tensors.push_back({in[i].data(), out[i].data(), static_cast<int64_t>(in[i].size())});
        std::vector<std::byte> scratch(
            all_reduce_scratch(DType::kF32, all, communicator->all().size()));
        communicator->collectives().all_reduce(
            tensors, DType::kF32, Reduction::kSum,
            {.group = communicator->all(), .scratch = scratch.data()});
        EXPECT_EQ(out, wanted);
      });
    }
}

// 1e8 + 1 is 1e8 in float32, so the order of additions shows: (1e8 + 1) + (-1e8 + 1) is
// 1e8 + (-1e8 + 1) = 0, while from left to right it is 1.
TEST(Communicator, AddsInATreeOverTheRanks) {
  for (const size_t count : {size_t{3}, size_t{9001}})
    simulate(4, [&](const Peers& communicator) {
      const float parts[] = {1e8f, 1.0f, -1e8f, 1.0f};
      const auto sums =
          all_reduced(*communicator, std::vector<float>(count, parts[communicator->rank()]),
                      Reduction::kSum, communicator->all());
      const float tree = (parts[0] + parts[1]) + (parts[2] + parts[3]);
      for (const float sum : sums) ASSERT_EQ(sum, tree);
    });
}

TEST(Communicator, MaximumKeepsNaN) {
  simulate(2, [](const Peers& communicator) {
    const float nan = std::nanf("");
    const std::vector<float> mine =
        communicator->rank() == 0 ? std::vector<float>{1, nan, 3} : std::vector<float>{nan, 2, 4};
    const auto largest = all_reduced(*communicator, mine, Reduction::kMax, communicator->all());
    EXPECT_TRUE(std::isnan(largest[0]));
    EXPECT_TRUE(std::isnan(largest[1]));
    EXPECT_EQ(largest[2], 4);
  });
}

TEST(Communicator, GroupsAreIndependent) {
  simulate(4, [](const Peers& communicator) {
    const std::vector<int> group =
        communicator->rank() % 2 == 0 ? std::vector<int>{0, 2} : std::vector<int>{1, 3};
    const auto sums = all_reduced<double>(
        *communicator, {static_cast<double>(communicator->rank())}, Reduction::kSum, group);
    EXPECT_EQ(sums[0], communicator->rank() % 2 == 0 ? 2 : 4);
  });
}

// Each rank has its part of what all_reduce gives to all, with the same bits.
TEST(Communicator, ScattersPartsOfASum) {
  for (const int ranks : {1, 2, 3, 4})
    simulate(ranks, [&](const Peers& communicator) {
      std::vector<int64_t> counts;
      int64_t total = 0, before = 0;
      for (int rank = 0; rank < ranks; ++rank) {
        counts.push_back(rank == 1 ? 0 : 1000 * rank + 7);
        if (rank < communicator->rank()) before += counts.back();
        total += counts.back();
      }
      std::vector<float> mine(static_cast<size_t>(total));
      for (size_t i = 0; i < mine.size(); ++i)
        mine[i] = std::sin(static_cast<float>(i) + 0.3f * static_cast<float>(communicator->rank()));
      const auto wanted = all_reduced(*communicator, mine, Reduction::kSum, communicator->all());
      const auto own = static_cast<size_t>(counts[static_cast<size_t>(communicator->rank())]);
      std::vector<float> part(own);
      std::vector<std::byte> scratch(
          reduce_scatter_scratch(own * sizeof(float), static_cast<size_t>(ranks)));
      communicator->reset_costs();
      communicator->collectives().reduce_scatter(
          mine.data(), part.data(), counts, DType::kF32, Reduction::kSum,
          {.group = communicator->all(), .scratch = scratch.data()});
      for (size_t i = 0; i < own; ++i)
        ASSERT_EQ(part[i], wanted[static_cast<size_t>(before) + i]) << i;
      const ExchangeCost& cost =
          communicator->costs()[static_cast<size_t>(Exchange::kReduceScatter)];
      EXPECT_EQ(cost.calls, ranks == 1 ? 0 : 1);
      EXPECT_EQ(cost.bytes, ranks == 1 ? 0 : 4 * (total - static_cast<int64_t>(own)));
    });
}

// Rank r sends r + i bytes to rank i, none from 0 to 0, in groups of some ranks as well.
TEST(Communicator, ExchangesPartsOfAllRanks) {
  for (const int ranks : {1, 2, 3, 5})
    simulate(ranks, [&](const Peers& communicator) {
      std::vector<int> group;
      for (int rank = communicator->rank() % 2; rank < ranks; rank += 2) group.push_back(rank);
      for (const std::vector<int>& members : {communicator->all(), group}) {
        std::vector<size_t> sent, received;
        std::vector<std::byte> mine, wanted;
        for (const int peer : members) {
          const int size = communicator->rank() + peer;
          sent.push_back(static_cast<size_t>(size));
          received.push_back(static_cast<size_t>(size));
          for (int i = 0; i < size; ++i) {
            mine.push_back(static_cast<std::byte>(40 * communicator->rank() + 7 * peer + i));
            wanted.push_back(static_cast<std::byte>(40 * peer + 7 * communicator->rank() + i));
          }
        }
        std::vector<std::byte> out(wanted.size());
        communicator->reset_costs();
        communicator->all_to_all(mine.data(), sent, out.data(), received, members);
        EXPECT_EQ(out, wanted);
        const ExchangeCost& cost = communicator->costs()[static_cast<size_t>(Exchange::kAllToAll)];
        EXPECT_EQ(cost.calls, members.size() == 1 ? 0 : 1);
        EXPECT_EQ(cost.bytes,
                  static_cast<int64_t>(mine.size()) - 2 * int64_t{communicator->rank()});
      }
    });
}

// Ranks that disagree on the size of a part stop with a message.
TEST(Communicator, RejectsPartsOfAnotherSize) {
  EXPECT_THROW(simulate(2,
                        [](const Peers& communicator) {
                          const std::vector<size_t> sent = {2, 2}, received = {2, 3};
                          std::vector<std::byte> in(4), out(5);
                          communicator->all_to_all(in.data(), sent, out.data(), received,
                                                   communicator->all());
                        }),
               Error);
}

TEST(Communicator, CostsOfAllRanks) {
  simulate(2, [](const Peers& communicator) {
    communicator->reset_costs();
    all_reduced<double>(*communicator, std::vector<double>(4), Reduction::kSum,
                        communicator->all());
    all_reduced<double>(*communicator, std::vector<double>(5000), Reduction::kSum,
                        communicator->all());
    const auto costs = communicator->gather_costs();
    ASSERT_EQ(costs.size(), 2u);
    for (const ExchangeCosts& rank : costs) {
      const ExchangeCost& cost = rank[static_cast<size_t>(Exchange::kAllReduce)];
      EXPECT_EQ(cost.calls, 2);
      EXPECT_EQ(cost.bytes, 4 * 8 + 5000 * 8);
      EXPECT_GE(cost.nanoseconds, 0);
    }
  });
}

TEST(Communicator, GathersPartsOfDifferentSizes) {
  simulate(3, [](const Peers& communicator) {
    const std::vector<size_t> bytes = {2, 0, 3};
    const std::string parts[] = {"ab", "", "cde"};
    std::string joined(5, ' ');
    communicator->all_gather(parts[communicator->rank()].data(), joined.data(), bytes,
                             communicator->all());
    EXPECT_EQ(joined, "abcde");

    std::string arrived[] = {std::string(2, ' '), "", std::string(3, ' ')};
    std::vector<std::span<std::byte>> places;
    for (std::string& text : arrived)
      places.push_back(std::as_writable_bytes(std::span(text.data(), text.size())));
    const std::string& mine = parts[communicator->rank()];
    communicator->gather(std::as_bytes(std::span(mine.data(), mine.size())), places, 0);
    if (communicator->is_root()) {
      EXPECT_EQ(arrived[0] + arrived[1] + arrived[2], "abcde");
    }
  });
}

TEST(Simulation, TheFirstErrorIsTheOneThatIsThrown) {
  try {
    simulate(3, [](const Peers& communicator) {
      if (communicator->rank() == 1) fail(ErrorCode::kData, "the data of rank 1 is bad");
      communicator->barrier();  // would wait for ever
    });
    FAIL() << "expected an error";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kData);
    EXPECT_EQ(e.message(), "the data of rank 1 is bad");
  }
}

TEST(Simulation, RanksOfDifferentProgramsAreToldApart) {
  try {
    simulate(2, [](const Peers& communicator) {
      if (communicator->rank() == 0)
        communicator->barrier();
      else
        communicator->max(1);
    });
    FAIL() << "expected an error";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kInternal);
    EXPECT_NE(e.message().find("do not run the same program"), std::string::npos) << e.message();
  }
}

TEST(Communicator, RecordsExchangesThatBelongTogether) {
  std::vector<std::vector<ExchangeRecord>> records(2);
  simulate(2, [&](const Peers& communicator) {
    const std::vector<int64_t> large(10007, 1);
    communicator->barrier();  // before recording
    communicator->record_exchanges();
    all_reduced<int64_t>(*communicator, {1, 2}, Reduction::kSum, communicator->all());
    all_reduced(*communicator, large, Reduction::kSum, communicator->all());
    int64_t number = communicator->rank();
    const auto bytes = std::as_writable_bytes(std::span(&number, 1));
    if (communicator->is_root())
      communicator->isend(1, 3, bytes);
    else
      communicator->recv(0, 3, bytes);
    records[static_cast<size_t>(communicator->rank())] = communicator->take_records();
    communicator->barrier();
    EXPECT_TRUE(communicator->take_records().empty());
  });
  ASSERT_EQ(records[0].size(), 4u);  // a large sum has two parts
  ASSERT_EQ(records[1].size(), 4u);
  for (size_t i = 0; i < 4; ++i) {
    const ExchangeRecord &a = records[0][i], &b = records[1][i];
    EXPECT_EQ(a.group, b.group) << i;
    EXPECT_NE(a.group, 0u);
    EXPECT_EQ(a.kind, i < 3 ? Exchange::kAllReduce : Exchange::kMessage);
    EXPECT_LE(a.begin, a.end);
    if (i < 3) {
      // Each waits for the other.
      EXPECT_LE(std::max(a.begin, b.begin), std::min(a.end, b.end)) << i;
    }
  }
  EXPECT_EQ(records[0][0].group, records[0][1].group);
  EXPECT_NE(records[0][0].group, records[0][3].group);
  EXPECT_EQ(records[0][0].bytes, 16);
  EXPECT_TRUE(records[0][3].sends_only);
  EXPECT_FALSE(records[1][3].sends_only);
}

TEST(Communicator, ClocksOfOneMachineAgree) {
  simulate(3, [](const Peers& communicator) {
    const std::vector<int64_t> offsets = clock_offsets(*communicator);
    EXPECT_EQ(offsets,
              communicator->is_root() ? std::vector<int64_t>(3, 0) : std::vector<int64_t>());
  });
}

}  // namespace
}  // namespace paddle::comm
