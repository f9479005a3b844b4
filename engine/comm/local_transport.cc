#include "comm/local_transport.h"

#include <condition_variable>
#include <cstring>
#include <mutex>

namespace paddle::comm {
namespace {

/// A message that its sender has posted and its receiver has not yet copied.
struct Posted {
  bool full = false;
  Exchange kind = Exchange::kBarrier;
  std::span<const std::byte> bytes;
};

struct World {
  explicit World(int ranks)
      : size(ranks), posted(static_cast<size_t>(ranks) * static_cast<size_t>(ranks)) {}
  Posted& message(int from, int to) {
    return posted[static_cast<size_t>(from) * static_cast<size_t>(size) + static_cast<size_t>(to)];
  }

  const int size;
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<Posted> posted;
  bool aborted = false;
  std::string reason;
};

class LocalTransport final : public Transport {
 public:
  LocalTransport(std::shared_ptr<World> world, int rank) : world_(std::move(world)), rank_(rank) {}
  int rank() const override { return rank_; }
  int size() const override { return world_->size; }

  void exchange(Exchange kind, std::span<const Outgoing> sends,
                std::span<const Incoming> receives) override {
    std::unique_lock lock(world_->mutex);
    const auto wait = [&](auto&& ready) {
      world_->changed.wait(lock, [&] { return world_->aborted || ready(); });
      if (world_->aborted) fail(ErrorCode::kPeer, world_->reason);
    };
    for (const Outgoing& send : sends) {
      Posted& slot = world_->message(rank_, send.peer);
      wait([&] { return !slot.full; });
      slot = {true, kind, send.bytes};
    }
    world_->changed.notify_all();
    for (const Incoming& receive : receives) {
      Posted& slot = world_->message(receive.peer, rank_);
      wait([&] { return slot.full; });
      if (slot.kind != kind || slot.bytes.size() != receive.bytes.size())
        refuse_mismatch(rank_, kind, receive.bytes.size(), receive.peer, slot.kind,
                        slot.bytes.size());
      lock.unlock();  // the sender waits until the message is taken
      if (!receive.bytes.empty())
        std::memcpy(receive.bytes.data(), slot.bytes.data(), receive.bytes.size());
      lock.lock();
      slot.full = false;
      world_->changed.notify_all();
    }
    for (const Outgoing& send : sends)
      wait([&, &slot = world_->message(rank_, send.peer)] { return !slot.full; });
  }

  void abort(const std::string& reason) noexcept override {
    const std::lock_guard lock(world_->mutex);
    if (!world_->aborted) world_->reason = reason;
    world_->aborted = true;
    world_->changed.notify_all();
  }

 private:
  std::shared_ptr<World> world_;
  int rank_;
};

}  // namespace

std::vector<std::shared_ptr<Transport>> make_local_transports(int size) {
  const auto world = std::make_shared<World>(size);
  std::vector<std::shared_ptr<Transport>> out;
  for (int rank = 0; rank < size; ++rank)
    out.push_back(std::make_shared<LocalTransport>(world, rank));
  return out;
}

}  // namespace paddle::comm
