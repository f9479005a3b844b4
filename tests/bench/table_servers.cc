// Pulls and pushes of rows: a server of tables over sockets, over gRPC or over gRPC with TLS, or
// Redis with pipelined MGET and MSET of values of as many bytes. Prints rows a second, those a
// second of the server's processor time, and the time of a pull (median, 99th percentile) while
// another client works as well.
//
//   bench_table_servers servers [BATCHES] [LANES] [sockets|grpc|tls]
//   bench_table_servers redis PORT [BATCHES]
//   bench_table_servers restart FOLDER [ROWS] [EVENTS]
//
// The last one fills a lane with rows, whose log is in a folder, and times how long it takes to
// make the lane again from there, against reading the files.

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/certificates.h"
#include "base/error.h"
#include "base/parallel.h"
#include "optim/optimizer_kind.h"
#include "program/memory_table.h"
#include "ps/sockets.h"

namespace {

using namespace paddle;
using Clock = std::chrono::steady_clock;

constexpr int64_t kWidth = 16, kKeys = 10'000'000, kBatch = 2048 * 26;
constexpr double kZipf = 1.05;
constexpr int kClients = 2;
constexpr size_t kValueBytes = 128;  // weights and states of a row
constexpr size_t kKeysOfCommand = 128;
const char* const kToken = "bench";

/// The distinct keys of batches with a Zipf distribution.
std::vector<std::vector<uint64_t>> make_batches(int count, unsigned seed) {
  static const std::vector<double> sums = [] {
    std::vector<double> out;
    double sum = 0;
    for (int64_t i = 0; i < kKeys; ++i)
      out.push_back(sum += std::pow(static_cast<double>(i + 1), -kZipf));
    return out;
  }();
  const double sum = sums.back();
  std::mt19937_64 random(seed);
  std::vector<std::vector<uint64_t>> out;
  for (int batch = 0; batch < count; ++batch) {
    std::set<uint64_t> keys;
    for (int64_t i = 0; i < kBatch; ++i) {
      const double at = std::uniform_real_distribution<double>(0, sum)(random);
      keys.insert(mix64(
          static_cast<uint64_t>(std::lower_bound(sums.begin(), sums.end(), at) - sums.begin())));
    }
    out.emplace_back(keys.begin(), keys.end());
    // As workers send them.
    std::sort(out.back().begin(), out.back().end(), [](uint64_t a, uint64_t b) {
      return std::pair(tables::shard_of(a), a) < std::pair(tables::shard_of(b), b);
    });
  }
  return out;
}

/// Seconds of processor time of a process so far.
double processor_seconds(int pid) {
  std::ifstream in("/proc/" + std::to_string(pid) + "/stat");
  std::string text((std::istreambuf_iterator<char>(in)), {});
  text.erase(0, text.rfind(')') + 2);
  unsigned long user = 0, system = 0;
  std::sscanf(text.c_str(), "%*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user, &system);
  return static_cast<double>(user + system) / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

struct Measured {
  double rows = 0;
  std::vector<double> pulls;  ///< seconds
};

void report(const char* name, std::vector<Measured> all, double seconds, double processor) {
  double rows = 0;
  std::vector<double> pulls;
  for (const Measured& each : all) {
    rows += each.rows;
    pulls.insert(pulls.end(), each.pulls.begin(), each.pulls.end());
  }
  std::sort(pulls.begin(), pulls.end());
  const auto at = [&](double share) {
    return 1e3 * pulls[static_cast<size_t>(share * static_cast<double>(pulls.size() - 1))];
  };
  std::printf(
      "%s: %.0f rows/s, %.0f rows/s of processor time of the server, pull %.2f ms median, %.2f ms "
      "p99\n",
      name, rows / seconds, rows / processor, at(0.5), at(0.99));
}

// ---- ours ---------------------------------------------------------------------------------------

ps::ServerOptions server_options(int lanes) {
  optim::OptimizerOptions options;
  options.rule = optim::make_rule("adagrad");
  options.lr = 0.05;
  options.groups = {{}};
  options.groups[0].match = {"*"};
  options.groups[0].lr = 0.05;
  auto rule = std::make_shared<const optim::Optimizer>(std::move(options));
  ps::ServerOptions out;
  out.lanes = lanes;
  out.durability = ps::Durability::kNone;
  out.open = [rule](program::TableSpec declared,
                    uint64_t seed) -> std::unique_ptr<program::RowTable> {
    return std::make_unique<program::MemoryTable>(std::move(declared), rule, seed);
  };
  return out;
}

class Worker {
 public:
  Worker(int number, int lanes, const std::string& address, const ps::Wire& wire) {
    ps::ClientOptions options;
    options.place = {
        .worker = number, .workers = kClients, .session = 1, .servers = 1, .lanes = lanes};
    ps::SocketLinkOptions link;
    link.address = [address](int) { return address; };
    link.token = kToken;
    link.wire = wire;
    client_ = std::make_unique<ps::Client>(std::move(options), ps::socket_link(link));
    client_->open({.path = "t",
                   .width = kWidth,
                   .dtype = DType::kF32,
                   .init = lang::Initializer::constant(0),
                   .key = DType::kU64},
                  1);
  }

  void step(const std::vector<uint64_t>& keys, Measured& measured) {
    const auto begun = Clock::now();
    by_lane_.assign(static_cast<size_t>(client_->lanes()), {});
    for (const uint64_t key : keys)
      by_lane_[static_cast<size_t>(client_->lane_of(key))].push_back(key);
    const uint64_t ticket = client_->next_ticket();
    for (int lane = 0; lane < client_->lanes(); ++lane) {
      ps::BodyWriter out;
      out.add(client_->events());
      out.add<int64_t>(0);
      out.add<uint32_t>(0);
      out.add<uint8_t>(1);
      out.add_list(std::span<const uint64_t>(by_lane_[static_cast<size_t>(lane)]));
      client_->add(lane, ps::Kind::kAsk, 0, ticket, out.take());
    }
    std::vector<std::vector<std::byte>> rows;
    for (int lane = 0; lane < client_->lanes(); ++lane)
      rows.push_back(client_->wait(lane, ps::Kind::kRows, ticket).body);
    measured.pulls.push_back(std::chrono::duration<double>(Clock::now() - begun).count());
    // The rows are sent back as gradients.
    const uint64_t event = client_->begin_event();
    ps::BodyWriter scalars;
    scalars.add<double>(1);
    scalars.add(static_cast<int64_t>(event));
    scalars.add<int64_t>(0);
    scalars.add<uint8_t>(0);
    for (int lane = 0; lane < client_->lanes(); ++lane) {
      const auto& of = by_lane_[static_cast<size_t>(lane)];
      ps::BodyWriter out;
      out.reserve(of.size() * (sizeof(uint64_t) + kWidth * sizeof(float)) + 64);
      out.add<uint32_t>(0);
      out.add<uint8_t>(1);
      out.add<uint64_t>(of.size());
      out.add_list(std::span<const uint64_t>(of));
      out.add_bytes(rows[static_cast<size_t>(lane)]);
      client_->add(lane, ps::Kind::kPush, 0, event, out.take());
      client_->add(lane, ps::Kind::kUpdate, 0, event, scalars.bytes());
    }
    for (int lane = 0; lane < client_->lanes(); ++lane) client_->wait(lane, ps::Kind::kDone, event);
    measured.rows += 2 * static_cast<double>(keys.size());
  }

 private:
  std::unique_ptr<ps::Client> client_;
  std::vector<std::vector<uint64_t>> by_lane_;
};

/// The carriers of frames at the server and at workers.
std::pair<ps::Wire, ps::Wire> wires_of(const std::string& kind) {
  if (kind == "sockets") return {};
  std::pair<ps::Wire, ps::Wire> out{{.is_grpc = true}, {.is_grpc = true}};
  if (kind == "grpc") return out;
  const CertificateAuthority authority;
  for (const auto role : {CertificateRole::kListener, CertificateRole::kCaller}) {
    const Certificate own = authority.issue("bench", role);
    (role == CertificateRole::kListener ? out.first : out.second).identity = {
        authority.certificate(), own.certificate, own.key, "bench"};
  }
  return out;
}

int measure_servers(int batches, int lanes, const std::string& kind) {
  const auto [served, called] = wires_of(kind);
  int pipe[2];
  if (::pipe(pipe) != 0) return 1;
  const pid_t server = ::fork();
  if (server == 0) {
    set_thread_count(1);
    ps::Server own(server_options(lanes));
    ps::SocketServer sockets(own, "127.0.0.1", 0, kToken, served);
    const std::string address = sockets.address();
    (void)!::write(pipe[1], address.data(), address.size());
    ::close(pipe[1]);
    sockets.run([] { return false; }, false);
    std::_Exit(0);
  }
  char buffer[64] = {};
  (void)!::read(pipe[0], buffer, sizeof buffer - 1);
  const std::string address = buffer;
  std::vector<std::vector<std::vector<uint64_t>>> keys;
  for (int i = 0; i < kClients; ++i)
    keys.push_back(make_batches(batches, 1 + static_cast<unsigned>(i)));
  double begun_processor = 0;
  Clock::time_point begun;
  std::vector<Measured> measured(kClients);
  {
    std::vector<std::unique_ptr<Worker>> workers;
    for (int i = 0; i < kClients; ++i)
      workers.push_back(std::make_unique<Worker>(i, lanes, address, called));
    // All rows are there in the second pass.
    for (const bool counts : {false, true}) {
      begun = Clock::now();
      begun_processor = processor_seconds(server);
      std::vector<std::thread> threads;
      for (size_t i = 0; i < kClients; ++i)
        threads.emplace_back([&, i] {
          Measured all;
          for (const auto& batch : keys[i]) workers[i]->step(batch, all);
          if (counts) measured[i] = std::move(all);
        });
      for (std::thread& thread : threads) thread.join();
    }
    const double seconds = std::chrono::duration<double>(Clock::now() - begun).count();
    report(("server of tables, " + kind).c_str(), measured, seconds,
           processor_seconds(server) - begun_processor);
  }
  ::waitpid(server, nullptr, 0);
  return 0;
}

// ---- Redis --------------------------------------------------------------------------------------

class Redis {
 public:
  explicit Redis(int port) : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int on = 1;
    ::setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (::connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0)
      fail(ErrorCode::kPeer, "no Redis at port ", port);
  }
  ~Redis() { ::close(socket_); }
  Redis(const Redis&) = delete;
  Redis& operator=(const Redis&) = delete;

  /// Sends commands while it reads `bytes` of replies.
  void exchange(const std::string& commands, size_t bytes) {
    std::thread sender([&] {
      for (size_t done = 0; done < commands.size();) {
        const ssize_t n = ::send(socket_, commands.data() + done, commands.size() - done, 0);
        if (n <= 0) return;
        done += static_cast<size_t>(n);
      }
    });
    buffer_.resize(size_t{1} << 20);
    for (size_t done = 0; done < bytes;) {
      const ssize_t n = ::recv(socket_, buffer_.data(), buffer_.size(), 0);
      if (n <= 0) break;
      done += static_cast<size_t>(n);
    }
    sender.join();
  }
  int process_id() {
    const std::string command = "*2\r\n$4\r\nINFO\r\n$6\r\nserver\r\n";
    (void)!::send(socket_, command.data(), command.size(), 0);
    buffer_.assign(1 << 16, 0);
    (void)!::recv(socket_, buffer_.data(), buffer_.size() - 1, 0);
    const char* const at = std::strstr(buffer_.data(), "process_id:");
    return at ? std::atoi(at + std::strlen("process_id:")) : 0;
  }

 private:
  int socket_;
  std::vector<char> buffer_;
};

struct Commands {
  std::string get, set;
  size_t got = 0, was_set = 0;  ///< bytes of the replies
};

Commands commands_of(const std::vector<uint64_t>& keys) {
  const std::string value(kValueBytes, 'x');
  const std::string in_reply = "$" + std::to_string(kValueBytes) + "\r\n" + value + "\r\n";
  const auto add = [](std::string& out, const std::string& text) {
    out += "$" + std::to_string(text.size()) + "\r\n" + text + "\r\n";
  };
  Commands out;
  for (size_t begin = 0; begin < keys.size(); begin += kKeysOfCommand) {
    const size_t count = std::min(kKeysOfCommand, keys.size() - begin);
    out.get += "*" + std::to_string(1 + count) + "\r\n$4\r\nMGET\r\n";
    out.set += "*" + std::to_string(1 + 2 * count) + "\r\n$4\r\nMSET\r\n";
    for (size_t i = begin; i < begin + count; ++i) {
      const std::string key(reinterpret_cast<const char*>(&keys[i]), sizeof keys[i]);
      add(out.get, key);
      add(out.set, key);
      add(out.set, value);
    }
    out.got += std::string("*\r\n").size() + std::to_string(count).size() + count * in_reply.size();
    out.was_set += std::string("+OK\r\n").size();
  }
  return out;
}

int measure_redis(int port, int batches) {
  std::vector<std::vector<Commands>> commands(kClients);
  std::vector<std::vector<size_t>> counts(kClients);
  for (size_t i = 0; i < kClients; ++i)
    for (const auto& batch : make_batches(batches, 1 + static_cast<unsigned>(i))) {
      commands[i].push_back(commands_of(batch));
      counts[i].push_back(batch.size());
    }
  const int process = Redis(port).process_id();
  std::vector<Measured> measured(kClients);
  double begun_processor = 0;
  Clock::time_point begun;
  for (const bool counted : {false, true}) {
    begun = Clock::now();
    begun_processor = processor_seconds(process);
    std::vector<std::thread> threads;
    for (size_t i = 0; i < kClients; ++i)
      threads.emplace_back([&, i] {
        Redis redis(port);
        Measured all;
        for (size_t batch = 0; batch < commands[i].size(); ++batch) {
          const Commands& of = commands[i][batch];
          if (counted) {
            const auto asked = Clock::now();
            redis.exchange(of.get, of.got);
            all.pulls.push_back(std::chrono::duration<double>(Clock::now() - asked).count());
          }
          redis.exchange(of.set, of.was_set);
          all.rows += 2 * static_cast<double>(counts[i][batch]);
        }
        if (counted) measured[i] = std::move(all);
      });
    for (std::thread& thread : threads) thread.join();
  }
  const double seconds = std::chrono::duration<double>(Clock::now() - begun).count();
  report("Redis", measured, seconds, processor_seconds(process) - begun_processor);
  return 0;
}

// ---- restart ------------------------------------------------------------------------------------

int measure_restart(const std::string& folder, int64_t rows, int events) {
  constexpr int64_t kDim = 8, kRowsOfMessage = 100'000;
  constexpr int kLanes = 4;
  set_thread_count(1);
  ps::ServerOptions options = server_options(kLanes);
  options.output = folder;
  options.durability = ps::Durability::kProcess;
  {
    ps::Server server(options);
    server.begin_worker({.worker = 0, .workers = 1, .session = 1, .servers = 1, .lanes = kLanes});
    ps::Lane::Answers answers;
    const auto send = [&](int lane, ps::Kind kind, uint64_t sequence, ps::BodyWriter body = {}) {
      server.take({.kind = kind,
                   .lane = static_cast<uint32_t>(lane),
                   .sequence = sequence,
                   .body = body.take()},
                  answers);
      answers.clear();
    };
    std::vector<std::vector<uint64_t>> keys(kLanes);
    for (int64_t key = 0; key < rows; ++key)
      keys[static_cast<size_t>(
               tables::part_of_shard(tables::shard_of(static_cast<uint64_t>(key)), kLanes))]
          .push_back(static_cast<uint64_t>(key));
    for (int lane = 0; lane < kLanes; ++lane) {
      ps::BodyWriter declared;
      declared.add_bytes(ps::declaration_of({.path = "t",
                                             .width = kDim,
                                             .dtype = DType::kF32,
                                             .init = lang::Initializer::constant(0),
                                             .key = DType::kU64},
                                            1, {}));
      send(lane, ps::Kind::kOpen, 0, std::move(declared));
      ps::BodyWriter seed;
      seed.add<uint64_t>(1);
      send(lane, ps::Kind::kLoad, 1, std::move(seed));
      const std::vector<uint64_t>& own = keys[static_cast<size_t>(lane)];
      uint64_t sent = 0;
      for (size_t begin = 0; begin < own.size(); begin += kRowsOfMessage) {
        const size_t count = std::min<size_t>(kRowsOfMessage, own.size() - begin);
        tables::TableContent content;
        content.keys = Array::empty(DType::kU64, {static_cast<int64_t>(count)});
        std::copy_n(own.begin() + static_cast<ptrdiff_t>(begin), count,
                    static_cast<uint64_t*>(content.keys.raw()));
        content.weight = Array::zeros(DType::kF32, {static_cast<int64_t>(count), kDim});
        ps::BodyWriter out;
        out.add<uint32_t>(0);
        out.add<uint8_t>(0);
        out.add_content(content);
        send(lane, ps::Kind::kAdd, ++sent, std::move(out));
      }
      send(lane, ps::Kind::kLoaded, 2);
      std::mt19937_64 random(1);
      for (int i = 0; i < events; ++i) {
        constexpr size_t kPushed = 3'000;
        std::set<uint64_t> some;
        while (some.size() < kPushed) some.insert(own[random() % own.size()]);
        ps::BodyWriter push;
        push.add<uint32_t>(0);
        push.add<uint8_t>(1);
        push.add<uint64_t>(some.size());
        push.add_list(std::span<const uint64_t>(std::vector<uint64_t>(some.begin(), some.end())));
        for (size_t k = 0; k < some.size() * kDim; ++k) push.add<float>(1);
        ps::BodyWriter update;
        update.add<double>(1);
        update.add<int64_t>(i + 1);
        update.add<int64_t>(0);
        update.add<uint8_t>(0);
        send(lane, ps::Kind::kPush, static_cast<uint64_t>(3 + i), std::move(push));
        send(lane, ps::Kind::kUpdate, static_cast<uint64_t>(3 + i), std::move(update));
      }
    }
  }
  const auto seconds_of = [](auto&& what) {
    const auto begun = Clock::now();
    what();
    return std::chrono::duration<double>(Clock::now() - begun).count();
  };
  for (int round = 0; round < 5; ++round) {
    const double read = seconds_of([&] {
      if (std::system(("cat " + folder + "/servers/*/* > /dev/null").c_str()) != 0) std::exit(1);
    });
    std::optional<ps::Server> server;
    const double made = seconds_of([&] { server.emplace(options); });
    std::printf("restart: %.2f s for %lld rows and %d events, cat %.2f s, %.2f times\n", made,
                static_cast<long long>(rows), events, read, made / read);
    if (!server->problem().empty()) return 1;
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  const auto number = [&](int at, int other) { return argc > at ? std::atoi(argv[at]) : other; };
  constexpr int kBatches = 50, kLanes = 4, kRedisPort = 6379;
  if (what == "servers")
    return measure_servers(number(2, kBatches), number(3, kLanes), argc > 4 ? argv[4] : "sockets");
  if (what == "redis") return measure_redis(number(2, kRedisPort), number(3, kBatches));
  constexpr int kRows = 10'000'000;
  if (what == "restart" && argc > 2)
    return measure_restart(argv[2], number(3, kRows), number(4, kBatches));
  std::fprintf(stderr,
               "bench_table_servers servers [BATCHES] [LANES] [sockets|grpc|tls] | "
               "redis PORT [BATCHES] | restart FOLDER [ROWS] [EVENTS]\n");
  return 2;
}
