#pragma once
// Collectives in host memory over any transport, by one of the algorithms (algorithm.h).

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "comm/algorithm.h"
#include "comm/collectives.h"
#include "comm/messages.h"

namespace paddle::comm {

/// All functions reject a stream (kUsage): buffers of a device are copied to the host first.
class HostCollectives final : public Collectives {
 public:
  /// `messages` lives longer.
  explicit HostCollectives(Messages& messages);
  ~HostCollectives() override;
  HostCollectives(const HostCollectives&) = delete;
  HostCollectives& operator=(const HostCollectives&) = delete;

  /// The algorithm of the collectives from now on; the tree at first. The same on all ranks.
  void use(CollectiveForm form);
  /// Computes started collectives in a thread of their own, overlapped with the computation of the
  /// rank; else they are computed when they are waited for.
  void overlap(bool on);
  /// Calls `abort` if started collectives are pending, and drops them, since their memory is about
  /// to be freed. For ranks that cannot continue; does nothing otherwise.
  void abandon(const std::function<void()>& abort) noexcept;
  /// As `wait` for host memory.
  void finish();
  /// Whether all started collectives are complete.
  bool is_idle() const;

  int rank() const override { return messages_.rank(); }
  int size() const override { return messages_.size(); }
  void set_location(const std::string* location) override { location_ = location; }
  void all_reduce(std::span<const ReduceBuffer> tensors, DType dtype, Reduction reduction,
                  const CollectiveCall& call) override;
  void reduce_scatter(const void* in, void* out, std::span<const int64_t> counts, DType dtype,
                      Reduction reduction, const CollectiveCall& call) override;
  void all_gather(const void* in, void* out, std::span<const size_t> bytes,
                  const CollectiveCall& call) override;
  void all_to_all(const void* in, std::span<const size_t> sent, void* out,
                  std::span<const size_t> received, const CollectiveCall& call) override;
  void permute(std::span<const std::byte> in, std::span<std::byte> out, int64_t shift,
               const CollectiveCall& call) override;
  void send(std::span<const std::byte> bytes, int peer, uint32_t tag,
            paddle_stream stream) override;
  void recv(std::span<std::byte> bytes, int peer, uint32_t tag, paddle_stream stream) override;
  void start_all_reduce(std::span<const ReduceBuffer> tensors, DType dtype, Reduction reduction,
                        const CollectiveCall& call) override;
  void start_reduce_scatter(const void* in, void* out, std::span<const int64_t> counts, DType dtype,
                            Reduction reduction, const CollectiveCall& call) override;
  void start_all_gather(const void* in, void* out, std::span<const size_t> bytes,
                        const CollectiveCall& call,
                        std::function<void(paddle_stream)> then) override;
  void wait(paddle_stream stream) override;

 private:
  class Background;
  void start(std::function<void()> job);
  /// The location of the call at hand, which is that of no other one.
  const std::string* take_location() { return std::exchange(location_, nullptr); }

  Messages& messages_;
  std::unique_ptr<CollectiveAlgorithm> algorithm_ = make_tree();
  std::unique_ptr<Background> background_;
  const std::string* location_ = nullptr;
};

}  // namespace paddle::comm
