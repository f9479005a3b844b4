#pragma once
// The streams of the GPUs that the stand-in for the driver emulates. They run nothing until a
// caller waits, and then in a random order that events allow; captured work is kept for graphs.

#include <sys/mman.h>

#include <cstdint>
#include <cstdlib>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <vector>

#include "fake_driver.h"
#include "fake_memory.h"

namespace {

constexpr int kInvalid = 1, kOutOfMemory = 2, kNoDevice = 100, kInvalidContext = 201,
              kNoBinary = 209, kInvalidHandle = 400, kNotFound = 500, kNotReady = 600,
              kAlreadyEnabled = 704, kCaptureUnsupported = 900, kCaptureInvalidated = 901,
              kCaptureIsolation = 905;

std::mutex& lock_of_all() {
  static auto& mutex = *new std::mutex;
  return mutex;
}

// --- contexts ---

constexpr int kMaxDevices = 8;

struct FakeContext {
  int device = 0;
  Memory memory;
};
FakeContext& context_of(int device) {
  static auto& all = *new std::vector<FakeContext>(kMaxDevices);
  all[static_cast<size_t>(device)].device = device;
  return all[static_cast<size_t>(device)];
}
thread_local FakeContext* current = nullptr;

// --- streams ---

struct FakeStream;
struct FakeEvent {
  FakeStream* stream = nullptr;
  uint64_t count = 0;
  bool timed = false;
  std::shared_ptr<uint64_t> time;  ///< of the last record, once it is reached
};
struct Work {
  std::function<void()> run;  ///< null: only waits
  FakeEvent after;
};
/// Captured work, and an instance of it.
struct FakeGraph {
  std::vector<std::function<void()>> work;
  std::vector<std::string> kernels;
};
struct FakeStream {
  int device = 0;
  uint64_t pushed = 0, done = 0;
  std::deque<Work> queue;
  std::shared_ptr<FakeGraph> capture;
  bool is_spoiled = false;
};
/// The stream that this thread captures; whether it may allocate meanwhile.
thread_local FakeStream* captured = nullptr;
thread_local bool is_relaxed = false;

/// The error of a call that waits, allocates or loads while this thread captures, or 0.
int unsafe_call() {
  if (!captured || is_relaxed) return 0;
  captured->is_spoiled = true;
  return kCaptureUnsupported;
}
/// The same of a call on a stream that any thread captures.
int unsafe_on(FakeStream* stream) {
  if (!stream || !stream->capture) return 0;
  stream->is_spoiled = true;
  return kCaptureUnsupported;
}

struct World {
  std::vector<FakeStream*> streams;
  std::vector<FakeStream*> destroyed;  ///< events may name them
  std::mt19937_64 random{static_cast<uint64_t>(setting("SEED", 1))};
  std::map<std::string, uint64_t> launches;
  std::map<std::string, uint64_t> calls;
  std::string planted_call;  ///< fails after `planted_after` more calls
  uint64_t planted_after = 0;
  bool planted_lasts = false;  ///< fails at each call then, else once
  FakeCudaObjects live;
  int sticky = 0;      ///< an error of work that ran
  uint64_t clock = 0;  ///< pieces of work that ran
};
World& world() {
  static auto& one = *new World;
  return one;
}

/// Whether kernels are only counted.
bool is_idle() {
  static const bool idle = setting("IDLE", 0) != 0;
  return idle;
}

bool reached(const FakeEvent& event) { return !event.stream || event.stream->done >= event.count; }

/// Runs work in a random legal order until the stream has done `count` pieces.
int run_until(FakeStream* stream, uint64_t count) {
  World& all = world();
  if (stream->done < count) {
    for (int d = 0; d < kMaxDevices; ++d) context_of(d).memory.protect(PROT_READ | PROT_WRITE);
    while (stream->done < count) {
      std::vector<FakeStream*> ready;
      for (FakeStream* each : all.streams)
        if (!each->queue.empty() && reached(each->queue.front().after)) ready.push_back(each);
      if (ready.empty()) std::abort();  // streams wait for each other
      FakeStream* const next = ready[all.random() % ready.size()];
      const Work work = std::move(next->queue.front());
      next->queue.pop_front();
      ++all.clock;
      if (work.run && all.sticky == 0) work.run();
      ++next->done;
    }
    if (!is_idle())
      for (int d = 0; d < kMaxDevices; ++d) context_of(d).memory.protect(PROT_NONE);
  }
  return all.sticky;
}

int push(FakeStream* stream, std::function<void()> run, FakeEvent after = {}) {
  if (!stream) return kInvalidHandle;
  if (stream->capture) {
    if (run) stream->capture->work.push_back(std::move(run));
    return 0;
  }
  stream->queue.push_back({std::move(run), after});
  ++stream->pushed;
  return 0;
}

}  // namespace
