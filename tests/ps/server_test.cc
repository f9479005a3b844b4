// Servers: which workers they take, and that frames that are damaged in any way end a connection at
// most. PADDLE_DAMAGED_FRAMES sets how many are sent.

#include "ps/server.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <random>

#include "base/certificates.h"
#include "base/crc32c.h"
#include "base/error.h"
#include "base/module.h"
#include "base/scratch_folder.h"
#include "comm/socket_streams.h"
#include "ps/client.h"
#include "ps/opener.h"
#include "ps/sockets.h"

namespace paddle::ps {
namespace {

ServerOptions options_of(const std::string& output = "") {
  ServerOptions out;
  out.lanes = 2;
  out.open = test::opener();
  out.durability = Durability::kNone;
  out.output = output;
  return out;
}

WorkerPlace place(int worker, uint64_t session, int lanes = 2) {
  return {.worker = worker, .workers = 2, .session = session, .servers = 1, .lanes = lanes};
}

TEST(WorkerPlace, IsReadAsItIsWritten) {
  const auto read = WorkerPlace::parse(place(1, 77).text());
  ASSERT_TRUE(read);
  EXPECT_EQ(read->worker, 1);
  EXPECT_EQ(read->session, 77u);
  for (const char* wrong :
       {"", "tables", "tables 0 0 1 1 1", "tables 2 2 1 1 1", "rank 0 2 1 1 1", "tables 0 2 0 1 1",
        "tables 0 2 1 1 1 more", "tables -1 2 1 1 1", "tables 0 99999999999 1 1 1"})
    EXPECT_FALSE(WorkerPlace::parse(wrong)) << wrong;
}

TEST(Server, TakesWorkersOfTheNewestRun) {
  Server server(options_of());
  EXPECT_EQ(read_hello(server.begin_worker(place(0, 5))).size(), 2u);
  server.begin_worker(place(1, 5));
  EXPECT_THROW(server.begin_worker(place(1, 4)), Error);
  EXPECT_THROW(server.begin_worker(place(0, 5, 3)), Error);
  server.begin_worker(place(0, 6));
  EXPECT_THROW(server.begin_worker(place(1, 5)), Error);
  Lane::Answers answers;
  server.take({.kind = Kind::kBye, .worker = 0}, answers);
  EXPECT_FALSE(server.is_over());
  server.take({.kind = Kind::kBye, .worker = 1}, answers);
  EXPECT_TRUE(server.is_over());
}

/// The messages of a step of both workers, in frames.
std::vector<std::vector<std::byte>> frames_of_a_step() {
  std::vector<std::vector<std::byte>> out;
  for (const uint32_t worker : {0u, 1u}) {
    std::vector<Message> messages;
    messages.push_back({.kind = Kind::kOpen, .worker = worker});
    messages.back().body = declaration_of(test::spec(), 1, {});
    BodyWriter ask;
    ask.add<uint64_t>(0);
    ask.add<int64_t>(0);
    ask.add<uint32_t>(0);
    ask.add<uint8_t>(1);
    ask.add_list(std::span<const uint64_t>(std::vector<uint64_t>{1, 2, 3}));
    messages.push_back({.kind = Kind::kAsk, .worker = worker, .sequence = 1, .body = ask.take()});
    std::vector<uint64_t> keys;
    for (uint64_t key = 0; keys.size() < 4; ++key)
      if (tables::shard_of(key) < tables::kShards / 2) keys.push_back(key);
    BodyWriter push;
    push.add<uint32_t>(0);
    push.add<uint8_t>(1);
    push.add<uint64_t>(keys.size());
    push.add_list(std::span<const uint64_t>(keys));
    for (size_t i = 0; i < keys.size() * test::kWidth; ++i) push.add<double>(1);
    messages.push_back({.kind = Kind::kPush, .worker = worker, .sequence = 1, .body = push.take()});
    messages.push_back({.kind = Kind::kSquares, .worker = worker, .sequence = 1});
    BodyWriter update;
    update.add<double>(1);
    update.add<int64_t>(1);
    update.add<int64_t>(0);
    update.add<uint8_t>(0);
    messages.push_back(
        {.kind = Kind::kUpdate, .worker = worker, .sequence = 1, .body = update.take()});
    for (const Message& message : messages) append_frames(out.emplace_back(), message);
  }
  return out;
}

/// Changes some bytes of a frame, and sometimes computes its checksum again.
void damage(std::vector<std::byte>& frame, std::mt19937& random) {
  for (unsigned i = 0; i <= random() % 4; ++i)
    frame[random() % frame.size()] = static_cast<std::byte>(random());
  if (random() % 4 == 0) frame.resize(1 + random() % frame.size());
  if (random() % 4 == 0 || frame.size() < kHeaderBytes) return;
  const auto length = static_cast<uint32_t>(frame.size() - kHeaderBytes);
  constexpr size_t kLengthAt = 32, kChecksumAt = 36;
  const uint32_t magic = 0x31535050;
  std::memcpy(frame.data(), &magic, sizeof magic);
  std::memcpy(frame.data() + kLengthAt, &length, sizeof length);
  const auto all = std::span(frame);
  const uint32_t checksum = crc32c(all.subspan(kHeaderBytes), crc32c(all.first(kChecksumAt)));
  std::memcpy(frame.data() + kChecksumAt, &checksum, sizeof checksum);
}

TEST(Server, DamagedFramesEndAConnectionAtMost) {
  const char* const wanted = std::getenv("PADDLE_DAMAGED_FRAMES");
  const int64_t count = wanted ? std::atoll(wanted) : 20'000;
  const std::vector<std::vector<std::byte>> frames = frames_of_a_step();
  const ScratchFolder folder;
  std::mt19937 random(3);
  int64_t rejected = 0;
  uint64_t session = 1;
  Server server(options_of(folder.path()));
  for (int64_t sent = 0; sent < count;) {
    ++session;
    for (const int worker : {0, 1}) server.begin_worker(place(worker, session));
    FrameReader reader;
    for (const auto& frame : frames) {
      std::vector<std::byte> bytes = frame;
      if (random() % 2 == 0) {
        damage(bytes, random);
        ++sent;
      }
      Lane::Answers answers;
      try {
        reader.add(bytes);
        while (auto message = reader.next()) server.take(std::move(*message), answers);
      } catch (const Error& e) {
        ASSERT_TRUE(e.code() == ErrorCode::kPeer || e.code() == ErrorCode::kConfig) << e.what();
        ++rejected;
        reader = FrameReader();
      }
    }
  }
  EXPECT_GT(rejected, count / 4);
}

constexpr const char* kListenerName = "paddle-server";

std::unique_ptr<comm::StreamCaller> caller(const Wire& wire) {
  return wire.is_grpc ? comm::call_grpc_streams(wire.identity) : comm::call_socket_streams();
}

Wire wire_of(const CertificateAuthority& authority, CertificateRole role,
             std::chrono::seconds valid = std::chrono::hours(1)) {
  Certificate own = authority.issue(kListenerName, role, valid);
  return {.is_grpc = true,
          .identity = comm::TlsIdentity{.authority = authority.certificate(),
                                        .certificate = std::move(own.certificate),
                                        .key = std::move(own.key),
                                        .listener_name = kListenerName}};
}

class SocketServers : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const std::string kind = GetParam();
    if (kind == "sockets") return;
    if (!std::filesystem::exists(Module::default_path("grpc"))) GTEST_SKIP() << "without gRPC";
    if (kind == "tls" && !std::filesystem::exists(Module::default_path("crypto")))
      GTEST_SKIP() << "without OpenSSL";
    served.is_grpc = called.is_grpc = true;
    if (kind != "tls") return;
    const CertificateAuthority authority;
    served = wire_of(authority, CertificateRole::kListener);
    called = wire_of(authority, CertificateRole::kCaller);
  }
  Wire served, called;
};

INSTANTIATE_TEST_SUITE_P(Wires, SocketServers, testing::Values("sockets", "grpc", "tls"),
                         [](const auto& info) { return std::string(info.param); });

/// Workers that train on a server.
TEST_P(SocketServers, AnswersWorkersWhileOthersAreHostile) {
  Server server(options_of());
  SocketServer sockets(server, "127.0.0.1", 0, "token", served);
  std::atomic<bool> ends = false;
  std::thread thread([&] { sockets.run([&] { return ends.load(); }, true); });
  std::vector<comm::Socket> idle;
  for (int i = 0; i < 100; ++i) idle.push_back(comm::connect_to(sockets.address()));
  const auto client_of = [&](int worker, const std::string& token) {
    ClientOptions options;
    options.place = place(worker, 1);
    SocketLinkOptions link;
    link.address = [&](int) { return sockets.address(); };
    link.token = token;
    link.wire = called;
    link.timeout = std::chrono::milliseconds(20'000);
    return std::make_unique<Client>(std::move(options), socket_link(link));
  };
  {
    const auto first = client_of(0, "token"), second = client_of(1, "token");
    for (const auto& each : {std::cref(first), std::cref(second)})
      each.get()->open(test::spec(), 1);
    std::thread other([&] { second->happen(Kind::kMark); });
    EXPECT_EQ(first->happen(Kind::kMark).size(), 2u);
    other.join();
    // It says that it is another worker.
    comm::ChannelCaller liar(caller(called), "token");
    liar.connect(0, sockets.address(), place(1, 1).text(), std::chrono::milliseconds(2000));
    std::vector<std::byte> bytes;
    append_frames(bytes, {.kind = Kind::kAsk, .worker = 0});
    EXPECT_TRUE(liar.send(0, bytes, std::chrono::milliseconds(1000)));
    bool is_closed = false;
    for (int i = 0; i < 200 && !is_closed; ++i)
      for (const comm::StreamEvent& event : liar.wait(std::chrono::milliseconds(10)))
        is_closed = is_closed || event.kind == comm::StreamEvent::Kind::kClosed;
    EXPECT_TRUE(is_closed);
    EXPECT_EQ(first->ask(Kind::kCount, Kind::kCounts).size(), 2u);
  }
  comm::ChannelCaller other(caller(called), "another");
  EXPECT_THROW(
      other.connect(0, sockets.address(), place(0, 1).text(), std::chrono::milliseconds(2000)),
      Error);
  ends = true;
  thread.join();
}

/// The error with which a caller fails to connect with a server.
std::string rejection(const std::string& address, const Wire& wire) {
  comm::ChannelCaller other(caller(wire), "token");
  try {
    other.connect(0, address, place(0, 1).text(), std::chrono::milliseconds(3000));
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kPeer) << e.what();
    return e.message();
  }
  return "";
}

TEST(TlsServer, RejectsOtherCertificates) {
  for (const char* module : {"grpc", "crypto"})
    if (!std::filesystem::exists(Module::default_path(module))) GTEST_SKIP() << "no " << module;
  const CertificateAuthority authority, another;
  Server server(options_of());
  SocketServer sockets(server, "127.0.0.1", 0, "token",
                       wire_of(authority, CertificateRole::kListener));
  std::atomic<bool> ends = false;
  std::thread thread([&] { sockets.run([&] { return ends.load(); }, true); });
  const Wire right = wire_of(authority, CertificateRole::kCaller);
  const auto with = [&](auto change) {
    Wire wire = right;
    change(*wire.identity);
    return wire;
  };
  const std::pair<const char*, Wire> wrong[] = {
      {"of another authority", wire_of(another, CertificateRole::kCaller)},
      {"that does not know the server's",
       with([&](comm::TlsIdentity& of) { of.authority = another.certificate(); })},
      {"signed by another authority", with([&](comm::TlsIdentity& of) {
         const Certificate other = another.issue("worker", CertificateRole::kCaller);
         of.certificate = other.certificate;
         of.key = other.key;
       })},
      {"that has expired", wire_of(authority, CertificateRole::kCaller, std::chrono::seconds(-60))},
      {"of a listener", wire_of(authority, CertificateRole::kListener)},
      {"for a server of another name",
       with([](comm::TlsIdentity& of) { of.listener_name = "another-server"; })},
      {"without encryption", {.is_grpc = true}},
      {"over sockets", {}}};
  for (const auto& [name, wire] : wrong) EXPECT_NE(rejection(sockets.address(), wire), "") << name;
  // The server has lost nothing by it.
  EXPECT_EQ(rejection(sockets.address(), right), "");
  ends = true;
  thread.join();
}

}  // namespace
}  // namespace paddle::ps
