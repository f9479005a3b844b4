#pragma once
// Heartbeats of a rank: a thread that reports to the rendezvous every 500 ms what the rank is
// doing, and is notified when the run has lost a rank.

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "comm/rendezvous.h"

namespace paddle::comm {

/// The state of a rank, written by its main thread and read by the heartbeat.
class Activity {
 public:
  void set_step(int64_t step) { step_ = step; }
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
  /// Sends a line with a heartbeat, soon.
  void send_line(std::string line);

 private:
  void run();
  Socket socket_;
  const Activity& activity_;
  std::function<void(const std::string&)> on_end_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool ends_ = false;
  std::string line_;  ///< to be sent
  std::thread thread_;
};

/// The part of a transport between processes that moves no bytes: heartbeats, and the end of
/// the run when a rank is lost.
class Liveness {
 public:
  explicit Liveness(std::chrono::milliseconds timeout) : timeout_(timeout) {}
  ~Liveness() { stop(); }
  Liveness(const Liveness&) = delete;
  Liveness& operator=(const Liveness&) = delete;

  /// Starts heartbeats over the connection `rendezvous`; `host` is the rendezvous if it is in
  /// this process. When the run has lost a rank, `wake` is called in another thread, for transports
  /// whose waits do not call `check` while they spin.
  void start(Socket rendezvous, std::unique_ptr<RendezvousThread> host,
             std::function<void()> wake = {});
  void stop() { heartbeat_.reset(); }
  void set_step(int64_t step) { activity_.set_step(step); }
  /// See Transport.
  void set_record_folder(const std::string& folder) {
    if (heartbeat_) heartbeat_->send_line("record " + folder);
  }

  /// The scope of an exchange: what the rank is doing, and how long it may wait.
  class Scope {
   public:
    Scope(Liveness& life, Exchange kind)
        : life_(life), until_(std::chrono::steady_clock::now() + life.timeout_) {
      life_.activity_.enter(kind);
    }
    ~Scope() { life_.activity_.leave(); }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;
    /// Notes that nothing comes from rank `missing`. kPeer if the time is up.
    void wait_for(int rank, int missing) const;

   private:
    Liveness& life_;
    std::chrono::steady_clock::time_point until_;
  };

  /// kPeer with the reason if the run has lost a rank.
  void check();
  /// kPeer: why the run has ended, else that rank `peer` is gone.
  [[noreturn]] void reject_lost(int rank, int peer, Exchange kind, const std::string& why);

 private:
  std::chrono::milliseconds timeout_;
  Activity activity_;
  std::mutex end_mutex_;
  std::string end_reason_;
  std::atomic<bool> ended_ = false;
  std::unique_ptr<RendezvousThread> host_;
  std::unique_ptr<Heartbeat> heartbeat_;
};

}  // namespace paddle::comm
