#include "ps/client.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <utility>

#include "base/text.h"

namespace paddle::ps {
namespace {

using Clock = std::chrono::steady_clock;

/// Whether the answer is to this message.
bool answers(const Message& answer, const Message& message) {
  if (answer.sequence != message.sequence || answer.table != message.table) return false;
  switch (message.kind) {
    case Kind::kAsk:
      return answer.kind == Kind::kRows;
    case Kind::kSquares:
      return answer.kind == Kind::kSums || answer.kind == Kind::kDone;
    case Kind::kFinish:
      return answer.kind == Kind::kRemoved;
    case Kind::kAdd:
      return answer.kind == Kind::kAdded;
    case Kind::kCount:
      return answer.kind == Kind::kCounts;
    case Kind::kContent:
      return answer.kind == Kind::kContents;
    case Kind::kSave:
      return answer.kind == Kind::kSaved;
    default:
      return answer.kind == Kind::kDone;
  }
}

}  // namespace

Client::Client(ClientOptions options, std::unique_ptr<Link> link)
    : options_(std::move(options)), link_(std::move(link)) {
  const auto servers = static_cast<size_t>(options_.place.servers);
  const auto lanes = static_cast<size_t>(options_.place.lanes);
  connected_.assign(servers, 0);
  unsent_.resize(servers);
  opened_.resize(servers);
  unanswered_.resize(lanes);
  answers_.resize(lanes);
  confirmed_.assign(lanes, 0);
}

Client::~Client() {
  try {
    for (size_t server = 0; server < connected_.size(); ++server) {
      if (!connected_[server]) continue;
      const Kept bye = std::make_shared<const Message>(
          Message{.kind = Kind::kBye, .worker = static_cast<uint32_t>(options_.place.worker)});
      link_->send(static_cast<int>(server), {&bye, 1});
    }
  } catch (const std::exception&) {  // the server has ended before
  }
}

int Client::server_of(int lane) const {
  const WorkerPlace& place = options_.place;
  int server = lane * place.servers / place.lanes;
  while (lanes_of_server(server, place.servers, place.lanes).second <= lane) ++server;
  return server;
}

void Client::connect(int server) {
  const Message hello = link_->connect(server, options_.place);
  if (hello.kind == Kind::kError) rethrow(hello);
  const auto [first, last] = lanes_of_server(server, options_.place.servers, options_.place.lanes);
  const std::vector<LaneState> states = read_hello(hello);
  if (hello.kind != Kind::kHello || states.size() != static_cast<size_t>(last - first))
    fail(ErrorCode::kPeer, "tables: server ", server, " answers otherwise than a server");
  std::vector<Kept>& again = unsent_[static_cast<size_t>(server)];
  again = opened_[static_cast<size_t>(server)];
  for (int lane = first; lane < last; ++lane) {
    const auto of = static_cast<size_t>(lane);
    if (states[static_cast<size_t>(lane - first)].events < confirmed_[of])
      fail(ErrorCode::kPeer, "server ", server,
           " was started again and has lost the rows of its tables; the run can continue from its "
           "last checkpoint");
    again.insert(again.end(), unanswered_[of].begin(), unanswered_[of].end());
  }
  connected_[static_cast<size_t>(server)] = 1;
}

uint32_t Client::open(const program::TableSpec& declared, uint64_t seed) {
  const std::vector<std::byte> body = declaration_of(declared, seed, options_.settings);
  for (int lane = 0; lane < lanes(); ++lane) {
    add(lane, Kind::kOpen, tables_, 0, body);
    // It is kept for servers that are started again, and not among the unanswered.
    auto& kept = unanswered_[static_cast<size_t>(lane)];
    opened_[static_cast<size_t>(server_of(lane))].push_back(std::move(kept.back()));
    kept.pop_back();
  }
  return tables_++;
}

void Client::add(int lane, Kind kind, uint32_t table, uint64_t sequence,
                 std::vector<std::byte> body) {
  Kept message = std::make_shared<const Message>(
      Message{kind, table, static_cast<uint32_t>(lane),
              static_cast<uint32_t>(options_.place.worker), sequence, std::move(body)});
  unsent_[static_cast<size_t>(server_of(lane))].push_back(message);
  unanswered_[static_cast<size_t>(lane)].push_back(std::move(message));
}

void Client::flush() {
  for (size_t server = 0; server < unsent_.size(); ++server) {
    while (!unsent_[server].empty()) {
      // A connection that is made again sends all that was not answered.
      if (!connected_[server]) connect(static_cast<int>(server));
      const std::vector<Kept> messages = std::exchange(unsent_[server], {});
      if (!link_->send(static_cast<int>(server), messages)) {
        connected_[server] = 0;
        unsent_[server].emplace_back();  // `connect` replaces it
      }
    }
  }
}

bool Client::settle(const Message& answer) {
  const auto lane = static_cast<size_t>(answer.lane);
  auto& kept = unanswered_[lane];
  const auto first = std::find_if(kept.begin(), kept.end(), [&](const Kept& message) {
    return message->kind != Kind::kPush && answers(answer, *message);
  });
  if (first == kept.end()) return false;
  if (answer.kind != Kind::kDone && answer.kind != Kind::kRemoved) {
    const bool continues = answer.kind == Kind::kContents && !BodyReader(answer.body).take_flag();
    if (!continues) kept.erase(first);
    return true;
  }
  confirmed_[lane] = std::max(confirmed_[lane], answer.sequence);
  std::erase_if(kept, [&](const Kept& message) {
    return message->sequence == answer.sequence &&
           (message->kind == Kind::kPush || answers(answer, *message));
  });
  return true;
}

bool Client::receive(std::chrono::milliseconds timeout) {
  auto received = link_->wait(timeout);
  if (!received) return false;
  const auto server = static_cast<size_t>(received->server);
  if (!received->message) {
    connected_[server] = 0;
    unsent_[server].emplace_back();
    flush();
    return true;
  }
  Message& message = *received->message;
  if (message.kind == Kind::kError) rethrow(message);
  const auto [first, last] =
      lanes_of_server(received->server, options_.place.servers, options_.place.lanes);
  const auto lane = static_cast<int64_t>(message.lane);
  if (lane < first || lane >= last)
    fail(ErrorCode::kPeer, "tables: server ", server, " answers for lane ", lane);
  if (settle(message)) answers_[static_cast<size_t>(lane)].push_back(std::move(message));
  return true;
}

Message Client::wait(int lane, Kind answer, uint64_t sequence) {
  flush();
  auto& inbox = answers_[static_cast<size_t>(lane)];
  const auto begun = Clock::now();
  auto next_notice = begun + options_.slow_after;
  while (true) {
    const auto found = std::find_if(inbox.begin(), inbox.end(), [&](const Message& message) {
      return message.kind == answer && message.sequence == sequence;
    });
    if (found != inbox.end()) {
      Message message = std::move(*found);
      inbox.erase(found);
      return message;
    }
    constexpr auto kMoment = std::chrono::milliseconds(200);
    if (receive(kMoment)) continue;
    const auto now = Clock::now();
    const auto waited = std::chrono::duration_cast<std::chrono::seconds>(now - begun).count();
    if (now - begun > options_.timeout)
      fail(ErrorCode::kPeer, "server ", server_of(lane), " has not answered worker ",
           options_.place.worker, " for ", waited, " seconds (lane ", lane, ", event ", events_,
           ")");
    if (now < next_notice || !options_.notice) continue;
    next_notice = now + options_.slow_after;
    options_.notice(str("worker ", options_.place.worker, " waits for server ", server_of(lane),
                        ", lane ", lane, ", event ", events_, ", for ", waited, " seconds"));
  }
}

std::vector<Message> Client::happen(Kind kind, const std::vector<std::byte>& body) {
  const uint64_t event = begin_event();
  for (int lane = 0; lane < lanes(); ++lane) add(lane, kind, 0, event, body);
  std::vector<Message> out;
  for (int lane = 0; lane < lanes(); ++lane)
    out.push_back(wait(lane, kind == Kind::kFinish ? Kind::kRemoved : Kind::kDone, event));
  return out;
}

std::vector<Message> Client::ask(Kind question, Kind answer, uint32_t table,
                                 std::span<const std::byte> body) {
  const uint64_t ticket = next_ticket();
  for (int lane = 0; lane < lanes(); ++lane) {
    BodyWriter out;
    out.add(events_);
    out.add_bytes(body);
    add(lane, question, table, ticket, out.take());
  }
  std::vector<Message> out;
  for (int lane = 0; lane < lanes(); ++lane) {
    uint32_t pieces = 0;
    while (true) {
      Message message = wait(lane, answer, ticket);
      if (answer == Kind::kContents) {
        BodyReader in(message.body);
        const bool is_last = in.take_flag();
        // A server that was started again begins with the first piece.
        if (in.take<uint32_t>() == pieces) {
          ++pieces;
          out.push_back(std::move(message));
        }
        if (!is_last) continue;
      } else {
        out.push_back(std::move(message));
      }
      break;
    }
  }
  return out;
}

/// Messages for a worker.
struct LocalServers::Inbox {
  std::mutex mutex;
  std::condition_variable arrived;
  std::deque<Link::Received> messages;

  void put(int server, Message message) {
    const std::lock_guard lock(mutex);
    messages.push_back({server, std::move(message)});
    arrived.notify_one();
  }
};

struct LocalServers::Shared {
  struct Locked {
    std::mutex mutex;
    std::unique_ptr<Server> server;
  };
  std::vector<std::unique_ptr<Locked>> servers;
  std::vector<std::unique_ptr<Inbox>> inboxes;  ///< by worker
};

class LocalServers::LocalLink final : public Link {
 public:
  LocalLink(std::shared_ptr<Shared> shared, int worker)
      : shared_(std::move(shared)), worker_(worker) {}
  Message connect(int server, const WorkerPlace& place) override {
    Shared::Locked& of = *shared_->servers.at(static_cast<size_t>(server));
    const std::lock_guard lock(of.mutex);
    return of.server->begin_worker(place);
  }
  bool send(int server, std::span<const std::shared_ptr<const Message>> messages) override {
    Shared::Locked& of = *shared_->servers.at(static_cast<size_t>(server));
    const std::lock_guard lock(of.mutex);
    Lane::Answers answers;
    for (const auto& message : messages) of.server->take(*message, answers);
    for (Message& answer : answers) {
      Inbox& inbox = *shared_->inboxes.at(answer.worker);
      inbox.put(server, std::move(answer));
    }
    return true;
  }
  std::optional<Received> wait(std::chrono::milliseconds timeout) override {
    Inbox& inbox = *shared_->inboxes.at(static_cast<size_t>(worker_));
    std::unique_lock lock(inbox.mutex);
    if (!inbox.arrived.wait_for(lock, timeout, [&] { return !inbox.messages.empty(); }))
      return std::nullopt;
    Received out = std::move(inbox.messages.front());
    inbox.messages.pop_front();
    return out;
  }

 private:
  std::shared_ptr<Shared> shared_;
  int worker_;
};

LocalServers::LocalServers(const ServerOptions& options, int workers)
    : shared_(std::make_shared<Shared>()) {
  for (int server = 0; server < options.servers; ++server) {
    ServerOptions each = options;
    each.index = server;
    // They end with the workers.
    each.durability = Durability::kNone;
    shared_->servers.push_back(std::make_unique<Shared::Locked>());
    shared_->servers.back()->server = std::make_unique<Server>(std::move(each));
  }
  for (int worker = 0; worker < workers; ++worker)
    shared_->inboxes.push_back(std::make_unique<Inbox>());
}

LocalServers::~LocalServers() = default;

std::unique_ptr<Link> LocalServers::link(int worker) {
  return std::make_unique<LocalLink>(shared_, worker);
}

int LocalServers::servers() const { return static_cast<int>(shared_->servers.size()); }
int LocalServers::lanes() const { return shared_->servers[0]->server->options().lanes; }

}  // namespace paddle::ps
