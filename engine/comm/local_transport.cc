#include "comm/local_transport.h"

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <tuple>

namespace paddle::comm {
namespace {

/// A message that its sender has posted and its receiver has not yet copied.
struct Posted {
  bool full = false;
  bool is_copied = false;  // its receiver reads the pieces now
  Exchange kind = Exchange::kBarrier;
  std::span<const std::span<const std::byte>> pieces;
};

/// Copies a message of the same size.
void copy(std::span<const std::span<const std::byte>> from,
          std::span<const std::span<std::byte>> to) {
  size_t piece = 0, at = 0;  // of `from`
  for (std::span<std::byte> place : to)
    while (!place.empty()) {
      const std::span<const std::byte> rest = from[piece].subspan(at);
      const size_t n = std::min(rest.size(), place.size());
      if (n > 0) std::memcpy(place.data(), rest.data(), n);
      place = place.subspan(n);
      at += n;
      if (at == from[piece].size()) {
        ++piece;
        at = 0;
      }
    }
}

struct World {
  World(int ranks, std::vector<int> machine_of_rank)
      : size(ranks),
        machines(std::move(machine_of_rank)),
        posted(static_cast<size_t>(ranks) * static_cast<size_t>(ranks)) {}
  Posted& message(int from, int to) {
    return posted[static_cast<size_t>(from) * static_cast<size_t>(size) + static_cast<size_t>(to)];
  }

  const int size;
  const std::vector<int> machines;
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<Posted> posted;
  /// Messages on their way, by sender, receiver and tag.
  std::map<std::tuple<int, int, uint32_t>, std::deque<std::vector<std::byte>>> mail;
  bool aborted = false;
  std::string reason;
};

class LocalTransport final : public Transport {
 public:
  LocalTransport(std::shared_ptr<World> world, int rank) : world_(std::move(world)), rank_(rank) {}
  int rank() const override { return rank_; }
  int size() const override { return world_->size; }
  int machine(int rank) const override {
    return world_->machines.empty() ? 0 : world_->machines[static_cast<size_t>(rank)];
  }

  void exchange(Exchange kind, std::span<const Outgoing> sends,
                std::span<const Incoming> receives) override {
    std::unique_lock lock(world_->mutex);
    const auto wait = [&](auto&& ready) {
      world_->changed.wait(lock, [&] { return world_->aborted || ready(); });
      if (world_->aborted) fail(ErrorCode::kPeer, world_->reason);
    };
    const Withdrawal withdrawal(*this, lock, sends);
    for (const Outgoing& send : sends) {
      Posted& slot = world_->message(rank_, send.peer);
      wait([&] { return !slot.full; });
      slot = {.full = true, .kind = kind, .pieces = send.pieces};
    }
    world_->changed.notify_all();
    for (const Incoming& receive : receives) {
      Posted& slot = world_->message(receive.peer, rank_);
      wait([&] { return slot.full; });
      if (slot.kind != kind || size_of(slot.pieces) != size_of(receive.pieces))
        reject_mismatch(rank_, kind, size_of(receive.pieces), receive.peer, slot.kind,
                        size_of(slot.pieces));
      slot.is_copied = true;  // the sender waits until the message is taken
      lock.unlock();
      copy(slot.pieces, receive.pieces);
      lock.lock();
      slot = {};
      world_->changed.notify_all();
    }
    for (const Outgoing& send : sends)
      wait([&, &slot = world_->message(rank_, send.peer)] { return !slot.full; });
  }

  void isend(int peer, uint32_t tag, std::span<const std::byte> bytes) override {
    std::vector<std::byte> copy(bytes.begin(), bytes.end());
    const std::lock_guard lock(world_->mutex);
    world_->mail[{rank_, peer, tag}].push_back(std::move(copy));
    world_->changed.notify_all();
  }

  void recv(int peer, uint32_t tag, std::span<std::byte> bytes) override {
    std::unique_lock lock(world_->mutex);
    auto& waiting = world_->mail[{peer, rank_, tag}];
    world_->changed.wait(lock, [&] { return world_->aborted || !waiting.empty(); });
    if (waiting.empty()) fail(ErrorCode::kPeer, world_->reason);
    const std::vector<std::byte> message = std::move(waiting.front());
    waiting.pop_front();
    lock.unlock();
    if (message.size() != bytes.size())
      reject_mismatch(rank_, Exchange::kMessage, bytes.size(), peer, Exchange::kMessage,
                      message.size());
    std::copy(message.begin(), message.end(), bytes.begin());
  }

  void abort(const std::string& reason) noexcept override {
    const std::lock_guard lock(world_->mutex);
    if (!world_->aborted) world_->reason = reason;
    world_->aborted = true;
    world_->changed.notify_all();
  }

 private:
  /// Takes back unread messages when an exchange ends with an error, since the caller then frees
  /// their memory. Without an error there are none.
  class Withdrawal {
   public:
    Withdrawal(LocalTransport& from, std::unique_lock<std::mutex>& lock,
               std::span<const Outgoing> sends)
        : from_(from), lock_(lock), sends_(sends) {}
    ~Withdrawal() {
      for (const Outgoing& send : sends_) {
        Posted& slot = from_.world_->message(from_.rank_, send.peer);
        from_.world_->changed.wait(lock_, [&] { return !slot.is_copied; });
        slot = {};
      }
    }
    Withdrawal(const Withdrawal&) = delete;
    Withdrawal& operator=(const Withdrawal&) = delete;

   private:
    LocalTransport& from_;
    std::unique_lock<std::mutex>& lock_;
    std::span<const Outgoing> sends_;
  };

  std::shared_ptr<World> world_;
  int rank_;
};

}  // namespace

std::vector<std::shared_ptr<Transport>> make_local_transports(int size, std::vector<int> machines) {
  const auto world = std::make_shared<World>(size, std::move(machines));
  std::vector<std::shared_ptr<Transport>> out;
  for (int rank = 0; rank < size; ++rank)
    out.push_back(std::make_shared<LocalTransport>(world, rank));
  return out;
}

}  // namespace paddle::comm
