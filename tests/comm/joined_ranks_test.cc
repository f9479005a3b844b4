// Ranks that find each other through a rendezvous and exchange messages from memory to memory, over
// TCP or over Gloo; the ranks are threads here.

#include "comm/join.h"

#include <gtest/gtest.h>
#include <poll.h>

#include <atomic>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include "base/module.h"
#include "base/text.h"
#include "comm/communicator.h"
#include "comm/rendezvous.h"
#include "comm/simulation.h"
#include "comm/sockets.h"
#include "comm/transport_kind.h"

namespace paddle::comm {
namespace {

/// Runs `body` on ranks that joined.
template <class Body>
void run_ranks(int ranks, Body&& body, const std::function<void(Rendezvous&)>& meanwhile = {}) {
  Rendezvous rendezvous(ranks);
  if (meanwhile) meanwhile(rendezvous);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank] {
      Communicator communicator(join({rank, ranks, rendezvous.address(), rendezvous.token()}));
      body(communicator);
    });
  while (!rendezvous.complete()) {
    std::vector<pollfd> waits;
    for (const int descriptor : rendezvous.descriptors()) waits.push_back({descriptor, POLLIN, 0});
    ::poll(waits.data(), waits.size(), 100);
    rendezvous.advance();
  }
  for (std::thread& thread : threads) thread.join();
}

/// The parameter is a value of PADDLE_TRANSPORT.
class JoinedRanks : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (GetParam() == std::string("gloo") && !std::filesystem::exists(Module::default_path("gloo")))
      GTEST_SKIP() << "built without Gloo";
    ::setenv("PADDLE_TRANSPORT", GetParam(), 1);
  }
  void TearDown() override { ::unsetenv("PADDLE_TRANSPORT"); }
};
INSTANTIATE_TEST_SUITE_P(Transports, JoinedRanks, testing::Values("auto", "tcp", "gloo"),
                         [](const auto& info) { return std::string(info.param); });

/// A transport that is added while the program runs, over TCP connections.
TEST(TransportKinds, AreAddedWhileTheProgramRuns) {
  static std::atomic<int> opened = 0;
  transport_kinds().add({{"added", "as tcp",
                          [](JoinedRank joined) {
                            ++opened;
                            EXPECT_EQ(joined.hosts.size(), 2u);
                            return transport_kinds().find("tcp")->open(std::move(joined));
                          }}},
                        {"plugin.so"});
  EXPECT_THROW(transport_kinds().add({{"more", "", {}}, {"tcp", "", {}}}, {"other.so"}), Error);
  EXPECT_EQ(transport_kinds().find("more"), nullptr) << "all or nothing";
  ::setenv("PADDLE_TRANSPORT", "added", 1);
  run_ranks(
      2, [](Communicator& communicator) { EXPECT_EQ(communicator.max(communicator.rank()), 1); });
  ::unsetenv("PADDLE_TRANSPORT");
  EXPECT_EQ(opened, 2);
  transport_kinds().remove({"added"});
}

std::vector<float> sums(Communicator& communicator, int64_t count) {
  std::vector<float> mine, out(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i)
    mine.push_back(std::sin(static_cast<float>(i * (communicator.rank() + 3))));
  std::vector<std::byte> scratch(all_reduce_scratch(DType::kF32, count, communicator.all().size()));
  const ReduceBuffer tensor{mine.data(), out.data(), count};
  communicator.collectives().all_reduce({&tensor, 1}, DType::kF32, Reduction::kSum,
                                        {.group = communicator.all(), .scratch = scratch.data()});
  return out;
}

TEST_P(JoinedRanks, SumsHaveTheBitsOfASimulation) {
  for (const int ranks : {2, 3, 5})
    for (const int64_t count : {int64_t{5}, int64_t{300001}}) {
      std::vector<float> simulated;
      simulate(ranks, [&](const std::shared_ptr<Communicator>& communicator) {
        const auto result = sums(*communicator, count);
        if (communicator->is_root()) simulated = result;
      });
      run_ranks(ranks, [&](Communicator& communicator) {
        EXPECT_EQ(sums(communicator, count), simulated);
      });
    }
}

// In pieces that end elsewhere on both sides.
TEST_P(JoinedRanks, SeveralTensorsAreSummedTogether) {
  const auto together = [](Communicator& communicator) {
    std::vector<std::vector<float>> in, out;
    std::vector<ReduceBuffer> tensors;
    int64_t all = 0;
    for (const int64_t size : {100003, 1, 0, 65536, 9}) {
      auto& values = in.emplace_back();
      for (int64_t i = 0; i < size; ++i)
        values.push_back(std::sin(static_cast<float>(i * (communicator.rank() + 3) + size)));
      out.emplace_back(values.size());
      all += size;
    }
    for (size_t i = 0; i < in.size(); ++i)
      tensors.push_back({in[i].data(), out[i].data(), static_cast<int64_t>(in[i].size())});
    std::vector<std::byte> scratch(all_reduce_scratch(DType::kF32, all, communicator.all().size()));
    communicator.collectives().all_reduce(tensors, DType::kF32, Reduction::kSum,
                                          {.group = communicator.all(), .scratch = scratch.data()});
    return out;
  };
  for (const int ranks : {2, 3}) {
    std::vector<std::vector<float>> simulated;
    simulate(ranks, [&](const std::shared_ptr<Communicator>& communicator) {
      auto result = together(*communicator);
      if (communicator->is_root()) simulated = std::move(result);
    });
    run_ranks(ranks, [&](Communicator& communicator) {
      for (int i = 0; i < 3; ++i) EXPECT_EQ(together(communicator), simulated);
    });
  }
}

TEST_P(JoinedRanks, OtherClientsAreRejected) {
  Socket client;
  run_ranks(
      2, [](Communicator& communicator) { EXPECT_EQ(communicator.max(communicator.rank()), 1); },
      [&](Rendezvous& rendezvous) {
        client = connect_to(rendezvous.address());
        client.send_line("not-the-token 0 1234");
      });
}

TEST_P(JoinedRanks, ALostPeerIsNamed) {
  run_ranks(2, [](Communicator& communicator) {
    if (communicator.rank() == 1) return communicator.abort("");  // its connections close
    try {
      communicator.barrier();
      ADD_FAILURE() << "expected an error";
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::kPeer);
      EXPECT_NE(e.message().find("rank 0 lost rank 1 during barrier"), std::string::npos)
          << e.message();
    }
  });
}

TEST_P(JoinedRanks, PostedMessagesAreTakenByTag) {
  run_ranks(2, [](Communicator& communicator) {
    // Larger than the buffers of a socket: `isend` must not wait for the other rank.
    constexpr size_t kCount = 3 << 20;
    const auto message = [](int number) {
      std::vector<std::byte> out(kCount);
      for (size_t i = 0; i < kCount; ++i) out[i] = static_cast<std::byte>(i * (number + 3) >> 3);
      return out;
    };
    const int other = 1 - communicator.rank();
    for (int number = 0; number < 4; ++number)
      communicator.isend(other, static_cast<uint32_t>(number),
                         message(10 * communicator.rank() + number));
    for (const int number : {2, 0, 3, 1}) {
      std::vector<std::byte> found(kCount);
      communicator.recv(other, static_cast<uint32_t>(number), found);
      EXPECT_EQ(found, message(10 * other + number));
    }
    EXPECT_EQ(communicator.max(communicator.rank()), 1);
  });
}

TEST_P(JoinedRanks, MessagesMayOvertakeCollectives) {
  run_ranks(2, [](Communicator& communicator) {
    const int other = 1 - communicator.rank();
    std::vector<std::byte> bytes(5, std::byte{7}), found(5);
    communicator.isend(other, 1, bytes);
    communicator.barrier();
    communicator.recv(other, 1, found);
    EXPECT_EQ(found, bytes);
    EXPECT_EQ(communicator.sent_bytes(), 5);
  });
}

TEST_P(JoinedRanks, RankZeroHoldsTheRendezvousWithoutALauncher) {
  const int port = listen_on("127.0.0.1", 0).port();
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 3; ++rank)
    threads.emplace_back([&, rank] {
      Communicator communicator(join({rank, 3, str("127.0.0.1:", port), "job.7", "a test"}));
      EXPECT_EQ(communicator.max(communicator.rank()), 2);
    });
  for (std::thread& thread : threads) thread.join();
}

TEST(Join, RanksThatDoNotComeAreNamed) {
  const int port = listen_on("127.0.0.1", 0).port();
  JoinOptions options;
  options.join_timeout = std::chrono::milliseconds(300);
  try {
    join({0, 3, str("127.0.0.1:", port), "job", "a test"}, options);
    ADD_FAILURE() << "expected an error";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kPeer);
    EXPECT_NE(e.message().find("for rank 1, 2 at "), std::string::npos) << e.message();
  }
}

TEST_P(JoinedRanks, AWaitEndsAtTheTimeout) {
  Rendezvous rendezvous(2);
  std::atomic<bool> failed = false;
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 2; ++rank)
    threads.emplace_back([&, rank] {
      JoinOptions options;
      options.timeout = std::chrono::milliseconds(300);
      Communicator communicator(join({rank, 2, rendezvous.address(), rendezvous.token()}, options));
      communicator.set_step(5);
      if (rank == 1) {
        while (!failed) std::this_thread::sleep_for(std::chrono::milliseconds(10));
        return;
      }
      try {
        communicator.barrier();
        ADD_FAILURE() << "expected an error";
      } catch (const Error& e) {
        EXPECT_NE(e.message().find("waited for rank 1 in barrier 1 of step 5"), std::string::npos)
            << e.message();
      }
      failed = true;
    });
  while (!failed) {
    rendezvous.advance();
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace paddle::comm
