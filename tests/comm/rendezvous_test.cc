// Heartbeats at the rendezvous: lost and late ranks are named, and lines of launchers are read.

#include "comm/rendezvous.h"

#include <gtest/gtest.h>

#include "base/text.h"

namespace paddle::comm {
namespace {

using std::chrono::milliseconds;

/// Ranks as bare connections.
struct Ranks {
  explicit Ranks(Rendezvous& to, int count) : rendezvous(to) {
    for (int r = 0; r < count; ++r) {
      sockets.push_back(connect_to(to.address()));
      sockets.back().send_line(str(to.token(), " rank ", r, " 127.0.0.1:1 0"));
    }
    settle();
    EXPECT_TRUE(to.complete());
  }
  void settle() {
    for (int i = 0; i < 20; ++i) {
      rendezvous.advance();
      std::this_thread::sleep_for(milliseconds(2));
    }
  }
  void say(size_t rank, const RankStatus& status) { sockets[rank].send_line(status.line()); }

  Rendezvous& rendezvous;
  std::vector<Socket> sockets;
};

TEST(RankStatus, Lines) {
  const RankStatus status{12, 40, Exchange::kAllReduce, 1, 3};
  const auto read = RankStatus::parse(status.line());
  ASSERT_TRUE(read);
  EXPECT_EQ(read->line(), status.line());
  for (const char* bad : {"", "alive", "alive 1 2 3", "dead 1 2 3 4 5", "alive a b c d e"})
    EXPECT_FALSE(RankStatus::parse(bad)) << bad;
}

TEST(Rendezvous, NamesTheRankThatOthersWaitFor) {
  Rendezvous rendezvous(3);
  Ranks ranks(rendezvous, 3);
  ranks.say(0, {8, 40, Exchange::kAllReduce, 1, 12});
  ranks.say(1, {7, 39, Exchange::kAllGather, -1, 14});
  ranks.say(2, {8, 40, Exchange::kAllReduce, 1, 12});
  ranks.settle();
  EXPECT_EQ(rendezvous.find_delay(std::chrono::seconds(10)),
            "rank 1 is late: it is at step 7 after all_gather 39; ranks 0, 2 have waited for it in "
            "all_reduce 40 of step 8 for 12 seconds");
  EXPECT_EQ(rendezvous.find_delay(std::chrono::seconds(10)), std::nullopt);  // once
}

TEST(Rendezvous, ASilentRankIsNotLate) {
  Rendezvous rendezvous(2);
  Ranks ranks(rendezvous, 2);
  ranks.say(1, {7, 39, Exchange::kAllGather, -1, 0});
  ranks.settle();
  std::this_thread::sleep_for(milliseconds(1100));
  ranks.say(0, {8, 40, Exchange::kAllReduce, 1, 12});
  ranks.settle();
  EXPECT_EQ(rendezvous.find_delay(std::chrono::seconds(1)), std::nullopt);
  const auto lost = rendezvous.find_lost(milliseconds(1000));
  ASSERT_TRUE(lost);
  EXPECT_EQ(lost->message,
            "rank 1 has sent no heartbeat for 1 seconds; rank 0 waits for it in all_reduce 40 "
            "of step 8");
}

TEST(Rendezvous, NamesASilentRankAndTellsTheOthers) {
  Rendezvous rendezvous(2);
  Ranks ranks(rendezvous, 2);
  ranks.say(1, {7, 39, Exchange::kAllGather, -1, 0});
  ranks.settle();
  EXPECT_FALSE(rendezvous.find_lost(std::chrono::seconds(10)));
  std::this_thread::sleep_for(milliseconds(30));
  const auto lost = rendezvous.find_lost(milliseconds(20));
  ASSERT_TRUE(lost);
  EXPECT_EQ(lost->rank, 1);
  EXPECT_NE(lost->message.find("rank 1 has sent no heartbeat"), std::string::npos);
  EXPECT_EQ(ranks.sockets[0].receive_line(), "127.0.0.1:1 127.0.0.1:1");
  EXPECT_EQ(ranks.sockets[0].receive_line(), "end " + lost->message);
  EXPECT_FALSE(rendezvous.find_lost(milliseconds(20)));  // once
}

TEST(Rendezvous, AnotherAttemptHasOtherRanks) {
  Rendezvous rendezvous(1);
  Ranks ranks(rendezvous, 1);
  rendezvous.start_over(1, 1);
  EXPECT_FALSE(rendezvous.complete());
  Socket late = connect_to(rendezvous.address()), fresh = connect_to(rendezvous.address());
  late.send_line(rendezvous.token() + " rank 0 127.0.0.1:1 0");
  ranks.settle();
  EXPECT_FALSE(rendezvous.complete());
  fresh.send_line(rendezvous.token() + " rank 0 127.0.0.1:1 1");
  ranks.settle();
  EXPECT_TRUE(rendezvous.complete());
}

TEST(Rendezvous, HearsLaunchersOfOtherMachines) {
  Rendezvous rendezvous(1, "127.0.0.1", 0, "token");
  Socket node = connect_to(rendezvous.address());
  node.send_line("token node 1 3");
  node.send_line("failed 7 rank 4 was killed");
  const auto settle = [&] {
    for (int i = 0; i < 20; ++i) {
      rendezvous.advance();
      std::this_thread::sleep_for(milliseconds(2));
    }
  };
  settle();
  EXPECT_EQ(rendezvous.node_ranks(2), (std::vector<int>{-1, 3}));
  EXPECT_EQ(rendezvous.next_node_line()->line, "failed 7 rank 4 was killed");
  rendezvous.send_to_nodes("end");
  EXPECT_EQ(node.receive_line(), "end");
  node.close();
  settle();
  EXPECT_EQ(rendezvous.next_node_line()->line, "");
}

TEST(Rendezvous, SurvivesNoise) {
  Rendezvous rendezvous(1);
  std::vector<Socket> clients;
  for (const char* text :
       {"", "GET / HTTP/1.1", "token", " rank 0", "\n\n", "rank rank rank 1 1"}) {
    clients.push_back(connect_to(rendezvous.address()));
    clients.back().send_line(text);
  }
  clients.push_back(connect_to(rendezvous.address()));
  clients.back().send_line(std::string(100000, 'x'));
  Ranks ranks(rendezvous, 1);
}

}  // namespace
}  // namespace paddle::comm
