#include "comm/simulation.h"

#include <exception>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "base/parallel.h"
#include "base/span.h"
#include "comm/local_transport.h"

namespace paddle::comm {
namespace {

/// The error that explains the others: the first one that is not about a lost peer.
class FirstError {
 public:
  void add(std::exception_ptr error, bool of_peer) {
    const std::lock_guard lock(mutex_);
    std::exception_ptr& kept = of_peer ? lost_ : own_;
    if (!kept) kept = std::move(error);
  }
  void rethrow() const {
    if (own_) std::rethrow_exception(own_);
    if (lost_) std::rethrow_exception(lost_);
  }

 private:
  std::mutex mutex_;
  std::exception_ptr own_, lost_;
};

}  // namespace

void simulate(int ranks, const std::function<void(const std::shared_ptr<Communicator>&)>& body,
              std::vector<int> machines) {
  const auto transports = make_local_transports(ranks, std::move(machines));
  FirstError first;
  const auto run = [&](int rank) {
    forbid_parallel_regions_on_this_thread();
    set_span_rank(rank);
    const auto communicator = std::make_shared<Communicator>(transports[static_cast<size_t>(rank)]);
    try {
      body(communicator);
    } catch (const Error& e) {
      first.add(std::current_exception(), e.code() == ErrorCode::kPeer);
      communicator->abort(str("rank ", rank, " stopped: ", e.what()));
    } catch (const std::exception& e) {
      first.add(std::current_exception(), false);
      communicator->abort(str("rank ", rank, " stopped: ", e.what()));
    }
  };
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) threads.emplace_back(run, rank);
  for (std::thread& thread : threads) thread.join();
  first.rethrow();
}

}  // namespace paddle::comm
