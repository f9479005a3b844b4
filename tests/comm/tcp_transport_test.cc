// Ranks that find each other through a rendezvous and exchange messages over TCP; the ranks are
// threads here.

#include "comm/tcp_transport.h"

#include <gtest/gtest.h>
#include <poll.h>

#include <cmath>
#include <thread>

#include "comm/communicator.h"
#include "comm/simulation.h"
#include "comm/sockets.h"

namespace paddle::comm {
namespace {

/// Runs `body` on ranks that joined over TCP.
template <class Body>
void run_over_tcp(int ranks, Body&& body, const std::function<void(Rendezvous&)>& meanwhile = {}) {
  Rendezvous rendezvous(ranks);
  if (meanwhile) meanwhile(rendezvous);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank] {
      Communicator peers(join({rank, ranks, rendezvous.address(), rendezvous.token()}));
      body(peers);
    });
  while (!rendezvous.complete()) {
    std::vector<pollfd> waits;
    for (const int descriptor : rendezvous.descriptors()) waits.push_back({descriptor, POLLIN, 0});
    ::poll(waits.data(), waits.size(), 100);
    rendezvous.advance();
  }
  for (std::thread& thread : threads) thread.join();
}

std::vector<float> sums(Communicator& peers, int64_t count) {
  std::vector<float> mine, out(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i)
    mine.push_back(std::sin(static_cast<float>(i * (peers.rank() + 3))));
  std::vector<std::byte> scratch(
      Communicator::all_reduce_scratch(DType::kF32, count, peers.all().size()));
  peers.all_reduce(mine.data(), out.data(), count, DType::kF32, Reduction::kSum, peers.all(),
                   scratch.data());
  return out;
}

TEST(TcpTransport, SumsHaveTheBitsOfASimulation) {
  for (const int ranks : {2, 3, 5})
    for (const int64_t count : {int64_t{5}, int64_t{300001}}) {
      std::vector<float> simulated;
      simulate(ranks, [&](const std::shared_ptr<Communicator>& peers) {
        const auto result = sums(*peers, count);
        if (peers->is_root()) simulated = result;
      });
      run_over_tcp(ranks, [&](Communicator& peers) { EXPECT_EQ(sums(peers, count), simulated); });
    }
}

TEST(TcpTransport, StrangersAreTurnedAway) {
  Socket stranger;
  run_over_tcp(
      2, [](Communicator& peers) { EXPECT_EQ(peers.max(peers.rank()), 1); },
      [&](Rendezvous& rendezvous) {
        stranger = connect_to(rendezvous.address());
        stranger.send_line("not-the-token 0 1234");
      });
}

TEST(TcpTransport, ALostPeerIsNamed) {
  run_over_tcp(2, [](Communicator& peers) {
    if (peers.rank() == 1) return peers.abort("");  // its connections close
    try {
      peers.barrier();
      ADD_FAILURE() << "expected an error";
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::kPeer);
      EXPECT_NE(e.message().find("rank 0 lost rank 1 during barrier"), std::string::npos)
          << e.message();
    }
  });
}

TEST(Membership, ComesFromTheEnvironment) {
  EXPECT_EQ(membership_from_environment().size, 1);
  ::setenv("PADDLE_WORLD_SIZE", "4", 1);
  ::setenv("PADDLE_RANK", "3", 1);
  ::setenv("PADDLE_RENDEZVOUS", "127.0.0.1:9", 1);
  EXPECT_EQ(membership_from_environment().rank, 3);
  ::setenv("PADDLE_RANK", "4", 1);
  EXPECT_THROW(membership_from_environment(), Error);
  ::setenv("PADDLE_RANK", "one", 1);
  EXPECT_THROW(membership_from_environment(), Error);
  for (const char* name : {"PADDLE_WORLD_SIZE", "PADDLE_RANK", "PADDLE_RENDEZVOUS"})
    ::unsetenv(name);
}

}  // namespace
}  // namespace paddle::comm
