#pragma once
// A worker's end: sends messages to lanes and waits for their answers. Messages that were not
// answered are sent again when a server is back.

#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ps/server.h"

namespace paddle::ps {

/// How a worker reaches the servers of its run.
class Link {
 public:
  virtual ~Link() = default;
  /// Connects to a server; its kHello. kPeer if it does not answer in time.
  virtual Message connect(int server, const WorkerPlace& place) = 0;
  /// Sends messages; false if the connection is lost.
  virtual bool send(int server, std::span<const std::shared_ptr<const Message>> messages) = 0;
  struct Received {
    int server = 0;
    std::optional<Message> message = {};  ///< nothing: the connection is lost
  };
  /// The next message of any server; nothing after the timeout.
  virtual std::optional<Received> wait(std::chrono::milliseconds timeout) = 0;
};

struct ClientOptions {
  WorkerPlace place = {};
  TableSettings settings = {};
  /// The longest wait for an answer.
  std::chrono::milliseconds timeout = std::chrono::minutes(30);
  /// A note names a server that has not answered for this long.
  std::chrono::milliseconds slow_after = std::chrono::seconds(10);
  std::function<void(const std::string&)> notice = {};
};

class Client {
 public:
  Client(ClientOptions options, std::unique_ptr<Link> link);
  /// Says that this worker has ended.
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  int lanes() const { return options_.place.lanes; }
  int lane_of(uint64_t key) const { return tables::part_of_shard(tables::shard_of(key), lanes()); }
  bool is_root() const { return options_.place.worker == 0; }
  /// The events that this worker has taken part in.
  uint64_t events() const { return events_; }

  /// Opens a table in all lanes; its number.
  uint32_t open(const program::TableSpec& declared, uint64_t seed);

  /// Messages for lanes are kept until `flush`, and again until they are answered.
  void add(int lane, Kind kind, uint32_t table, uint64_t sequence, std::vector<std::byte> body);
  void flush();
  /// The answer of a lane to the message of a kind with this number. kPeer if it does not come;
  /// the error of the server if it has one.
  Message wait(int lane, Kind answer, uint64_t sequence);
  /// Begins the next event; its number.
  uint64_t begin_event() { return ++events_; }
  /// A number for questions.
  uint64_t next_ticket() { return ++tickets_; }
  /// The same body as an event for all lanes; waits until it has happened. The answers by lane.
  std::vector<Message> happen(Kind kind, const std::vector<std::byte>& body = {});
  /// The same question to all lanes, after the events so far.
  std::vector<Message> ask(Kind question, Kind answer, uint32_t table = 0,
                           std::span<const std::byte> body = {});

 private:
  using Kept = std::shared_ptr<const Message>;
  int server_of(int lane) const;
  void connect(int server);
  /// Takes one message; false after the timeout.
  bool receive(std::chrono::milliseconds timeout);
  /// Takes what was answered out of the unanswered; false if there is nothing: the answer has come
  /// twice.
  bool settle(const Message& answer);

  ClientOptions options_;
  std::unique_ptr<Link> link_;
  uint64_t events_ = 0, tickets_ = 0;
  uint32_t tables_ = 0;
  std::vector<char> connected_;               ///< by server
  std::vector<std::vector<Kept>> opened_;     ///< by server: what opens the tables
  std::vector<std::vector<Kept>> unsent_;     ///< by server
  std::vector<std::deque<Kept>> unanswered_;  ///< by lane
  std::vector<std::deque<Message>> answers_;  ///< by lane
  std::vector<uint64_t> confirmed_;           ///< events by lane
};

/// Servers in this process, for simulated runs and runs of one process.
class LocalServers {
 public:
  LocalServers(const ServerOptions& options, int workers);
  ~LocalServers();
  std::unique_ptr<Link> link(int worker);
  int servers() const;
  int lanes() const;

 private:
  struct Inbox;
  struct Shared;
  class LocalLink;
  std::shared_ptr<Shared> shared_;
};

}  // namespace paddle::ps
