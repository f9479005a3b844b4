#include "comm/heartbeat.h"

#include <sys/socket.h>

#include <utility>

#include "base/text.h"

namespace paddle::comm {

int64_t Activity::now() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

RankStatus Activity::status() const {
  constexpr int64_t kMillisecondsPerSecond = 1000;
  return {step_, exchanges_, kind_, waits_for_, (now() - since_) / kMillisecondsPerSecond};
}

std::string Activity::text() const {
  const RankStatus s = status();
  return str(comm::text(s.kind), " ", s.exchanges, " of step ", s.step);
}

Heartbeat::Heartbeat(Socket rendezvous, const Activity& activity,
                     std::function<void(const std::string&)> on_end)
    : socket_(std::move(rendezvous)),
      activity_(activity),
      on_end_(std::move(on_end)),
      thread_([this] { run(); }) {
  socket_.set_blocking(false);
}

Heartbeat::~Heartbeat() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

void Heartbeat::send_line(std::string line) {
  {
    const std::lock_guard lock(mutex_);
    line_ = std::move(line);
  }
  wake_.notify_all();
}

void Heartbeat::run() {
  constexpr auto kInterval = std::chrono::milliseconds(500);
  std::string received;
  std::unique_lock lock(mutex_);
  while (!ends_) {
    std::string line = activity_.status().line() + "\n";
    if (!line_.empty()) line += std::exchange(line_, {}) + "\n";
    (void)!::send(socket_.descriptor(), line.data(), line.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    wake_.wait_for(lock, kInterval);
    char buffer[1024];
    const ssize_t n = ::recv(socket_.descriptor(), buffer, sizeof buffer, MSG_DONTWAIT);
    if (n > 0) received.append(buffer, static_cast<size_t>(n));
    const size_t end = received.find('\n');
    if (end == std::string::npos) continue;
    if (received.starts_with("end ")) on_end_(received.substr(4, end - 4));
    received.erase(0, end + 1);
  }
}

void Liveness::start(Socket rendezvous, std::unique_ptr<RendezvousThread> host,
                     std::function<void()> wake) {
  host_ = std::move(host);
  const auto end = [this, wake = std::move(wake)](const std::string& reason) {
    {
      const std::lock_guard lock(end_mutex_);
      end_reason_ = reason;
      ended_ = true;
    }
    if (wake) wake();
  };
  heartbeat_ = std::make_unique<Heartbeat>(std::move(rendezvous), activity_, end);
}

void Liveness::check() {
  if (!ended_) return;
  const std::lock_guard lock(end_mutex_);
  fail(ErrorCode::kPeer, end_reason_);
}

void Liveness::reject_lost(int rank, int peer, Exchange kind, const std::string& why) {
  check();
  fail(ErrorCode::kPeer, "rank ", rank, " lost rank ", peer, " during ", text(kind), ": ", why);
}

void Liveness::Scope::wait_for(int rank, int missing) const {
  life_.activity_.wait_for(missing);
  if (std::chrono::steady_clock::now() > until_)
    fail(ErrorCode::kPeer, "rank ", rank, " has waited for rank ", missing, " in ",
         life_.activity_.text(), " for ",
         std::chrono::duration_cast<std::chrono::seconds>(life_.timeout_).count(), " seconds");
}

}  // namespace paddle::comm
