#pragma once
// Signs of life of a rank: a thread that tells the rendezvous each second what the rank is doing,
// and hears from it when the run has lost a rank.

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "comm/rendezvous.h"

namespace paddle::comm {

/// The state of a rank, written by its main thread and read by the heartbeat.
class Activity {
 public:
  void at_step(int64_t step) { step_ = step; }
  void enter(Exchange kind) {
    kind_ = kind;
    ++exchanges_;
    since_ = now();
  }
  void wait_for(int peer) { waits_for_ = peer; }
  void leave() {
    waits_for_ = -1;
    since_ = now();
  }
  RankStatus status() const;
  /// "all_reduce 14 of step 3", for messages.
  std::string text() const;

 private:
  static int64_t now();
  std::atomic<int64_t> step_ = 0, exchanges_ = 0, since_ = now();
  std::atomic<Exchange> kind_ = Exchange::kBarrier;
  std::atomic<int> waits_for_ = -1;
};

class Heartbeat {
 public:
  /// `on_end` gets the reason for which the run must end, in the heartbeat's thread.
  Heartbeat(Socket rendezvous, const Activity& activity,
            std::function<void(const std::string&)> on_end);
  ~Heartbeat();

 private:
  void run();
  Socket socket_;
  const Activity& activity_;
  std::function<void(const std::string&)> on_end_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool ends_ = false;
  std::thread thread_;
};

}  // namespace paddle::comm
