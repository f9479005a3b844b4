// Heartbeats at the rendezvous: lost and late ranks are named, and lines of launchers are read.

#include "comm/rendezvous.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/module.h"
#include "base/text.h"
#include "comm/handshake.h"

namespace paddle::comm {
namespace {

using std::chrono::milliseconds;

void settle(Rendezvous& rendezvous) {
  for (int i = 0; i < 20; ++i) {
    rendezvous.advance();
    std::this_thread::sleep_for(milliseconds(2));
  }
}

/// A connection that asks to be admitted, and whether it was.
struct Caller {
  Caller(Rendezvous& to, const std::string& token, const std::string& request)
      : socket(connect_to(to.address())) {
    settle(to);
    Admission admission(token, request);
    const auto challenge = socket.receive_line(milliseconds(500));
    if (!challenge) return;
    socket.send_line(admission.answer(*challenge));
    settle(to);
    const auto welcome = socket.receive_line(milliseconds(500));
    admitted = welcome && admission.is_welcome(*welcome);
  }
  Socket socket;
  bool admitted = false;
};

/// Ranks as bare connections.
struct Ranks {
  explicit Ranks(Rendezvous& to, int count) : rendezvous(to) {
    for (int r = 0; r < count; ++r) {
      Caller caller(to, to.token(), str("rank ", r, " 127.0.0.1:1 0"));
      EXPECT_TRUE(caller.admitted);
      sockets.push_back(std::move(caller.socket));
    }
    settle();
    EXPECT_TRUE(to.complete());
  }
  void settle() { comm::settle(rendezvous); }
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
  const Caller late(rendezvous, rendezvous.token(), "rank 0 127.0.0.1:1 0");
  EXPECT_FALSE(late.admitted);
  EXPECT_FALSE(rendezvous.complete());
  const Caller fresh(rendezvous, rendezvous.token(), "rank 0 127.0.0.1:1 1");
  EXPECT_TRUE(fresh.admitted);
  EXPECT_TRUE(rendezvous.complete());
}

TEST(Rendezvous, HearsLaunchersOfOtherMachines) {
  Rendezvous rendezvous(1, "127.0.0.1", 0, "token");
  Caller caller(rendezvous, "token", "node 1 3 2");
  ASSERT_TRUE(caller.admitted);
  Socket node = std::move(caller.socket);
  node.send_line("failed 7 rank 4 was killed");
  settle(rendezvous);
  EXPECT_EQ(rendezvous.node_ranks(2), (std::vector<int>{-1, 3}));
  EXPECT_EQ(rendezvous.node_servers(2), (std::vector<int>{0, 2}));
  EXPECT_EQ(rendezvous.next_node_line()->line, "failed 7 rank 4 was killed");
  rendezvous.send_to_nodes("end");
  EXPECT_EQ(node.receive_line(), "end");
  node.close();
  settle(rendezvous);
  EXPECT_EQ(rendezvous.next_node_line()->line, "");
}

TEST(Rendezvous, HandsOutCertificates) {
  if (!std::filesystem::exists(Module::default_path("crypto"))) GTEST_SKIP() << "without OpenSSL";
  Rendezvous rendezvous(1, "127.0.0.1", 0, "token");
  std::atomic<bool> ends = false;
  std::thread thread([&] {
    for (; !ends; std::this_thread::sleep_for(milliseconds(1))) rendezvous.advance();
  });
  const auto request = [&](CertificateRole role) {
    return request_identity(rendezvous.address(), "token", role);
  };
  const TlsIdentity first = request(CertificateRole::kListener),
                    second = request(CertificateRole::kCaller);
  EXPECT_EQ(first.authority, second.authority);
  EXPECT_NE(first.certificate, second.certificate);
  EXPECT_TRUE(first.key.starts_with("-----BEGIN PRIVATE KEY-----"));
  EXPECT_EQ(second.listener_name, "paddle-server");
  EXPECT_THROW(request_identity(rendezvous.address(), "guess", CertificateRole::kCaller), Error);
  ends = true;
  thread.join();
  // Without the token the line is of no use.
  RunCertificates certificates;
  std::string line = certificates.sealed("token", CertificateRole::kCaller);
  EXPECT_FALSE(open_sealed_identity("token", line).key.empty());
  EXPECT_THROW(open_sealed_identity("guess", line), Error);
  line[100] = line[100] == 'A' ? 'B' : 'A';
  for (const std::string& wrong : {line, std::string(), std::string("no base64!")})
    EXPECT_THROW(open_sealed_identity("token", wrong), Error) << wrong;
}

TEST(Rendezvous, AdmitsOnlyCallersThatKnowTheToken) {
  Rendezvous rendezvous(1, "127.0.0.1", 0, "secret");
  EXPECT_FALSE(Caller(rendezvous, "guess", "rank 0 127.0.0.1:1 0").admitted);
  // Neither the answer to another challenge nor the token itself is enough.
  const Caller first(rendezvous, "secret", "rank 1 127.0.0.1:1 0");
  EXPECT_FALSE(first.admitted);  // there are fewer ranks
  Socket replay = connect_to(rendezvous.address());
  settle(rendezvous);
  Admission admission("secret", "rank 0 127.0.0.1:1 0");
  ASSERT_TRUE(replay.receive_line(milliseconds(500)));
  replay.send_line(admission.answer("challenge 0123456789abcdef0123456789abcdef"));
  settle(rendezvous);
  EXPECT_FALSE(replay.receive_line(milliseconds(100)));
  Socket plain = connect_to(rendezvous.address());
  plain.send_line("secret rank 0 127.0.0.1:1 0");
  settle(rendezvous);
  EXPECT_FALSE(rendezvous.complete());
  EXPECT_TRUE(Caller(rendezvous, "secret", "rank 0 127.0.0.1:1 0").admitted);
  EXPECT_TRUE(rendezvous.complete());
}

TEST(Rendezvous, TheTokenIsNotSent) {
  Challenge challenge;
  Admission admission("secret", "rank 0 127.0.0.1:1 0");
  const std::string answer = admission.answer(challenge.line());
  EXPECT_EQ(answer.find("secret"), std::string::npos);
  EXPECT_EQ(challenge.accept("other", answer), std::nullopt);
  EXPECT_EQ(challenge.accept("secret", answer), "rank 0 127.0.0.1:1 0");
  EXPECT_TRUE(admission.is_welcome(challenge.welcome()));
  EXPECT_FALSE(Admission("secret", "rank 0 127.0.0.1:1 0").is_welcome(challenge.welcome()));
  std::string changed = answer;
  changed.back() = '1';  // of the request
  EXPECT_EQ(Challenge().accept("secret", answer), std::nullopt);
  EXPECT_EQ(challenge.accept("secret", changed), std::nullopt);
  EXPECT_THROW(admission.answer("HTTP/1.1 400"), Error);
}

TEST(Rendezvous, ListensOnTheNamedAddressOnly) {
  Rendezvous rendezvous(1, "127.0.0.1");
  const int port = parse_address(rendezvous.address(), "address").port;
  EXPECT_EQ(rendezvous.address(), str("127.0.0.1:", port));
  EXPECT_THROW(connect_to(str("127.0.0.2:", port)), Error);
  try {
    Rendezvous elsewhere(1, "192.0.2.1");
    ADD_FAILURE() << "expected an error";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kUsage);
    EXPECT_NE(e.message().find("192.0.2.1 is not an address of this machine"), std::string::npos)
        << e.message();
  }
}

TEST(Rendezvous, SurvivesNoise) {
  Rendezvous rendezvous(1);
  std::vector<Socket> clients;
  for (const char* text : {"", "GET / HTTP/1.1", "token", " rank 0", "\n\n", "rank rank rank 1 1",
                           "0123456789abcdef0123456789abcdef 0 rank 0 127.0.0.1:1 0"}) {
    clients.push_back(connect_to(rendezvous.address()));
    clients.back().send_line(text);
  }
  clients.push_back(connect_to(rendezvous.address()));
  clients.back().send_line(std::string(100000, 'x'));
  Ranks ranks(rendezvous, 1);
}

}  // namespace
}  // namespace paddle::comm
