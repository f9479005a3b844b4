#include "serve/job.h"

#include <chrono>

namespace paddle::serve {

Job::State Job::take(int milliseconds) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, std::chrono::milliseconds(milliseconds),
                    [&] { return state_.done || !state_.events.empty(); });
  State out = state_;
  state_.events.clear();
  return out;
}

void Job::add(Event event) {
  const std::lock_guard lock(mutex_);
  if (event.token && event.kind != Event::Kind::kPrompt) ++state_.generated;
  state_.events.push_back(std::move(event));
  changed_.notify_all();
}

void Job::set_cached(int64_t tokens) {
  const std::lock_guard lock(mutex_);
  state_.cached = tokens;
}

void Job::add_drafts(int64_t drafts, int64_t accepted) {
  const std::lock_guard lock(mutex_);
  state_.drafts += drafts;
  state_.accepted += accepted;
}

void Job::wait_for_tokens(int milliseconds) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, std::chrono::milliseconds(milliseconds),
                    [&] { return state_.done || !state_.events.empty(); });
}

bool Job::is_done() {
  const std::lock_guard lock(mutex_);
  return state_.done;
}

void Job::finish(llm::Generation::End end, std::optional<Error> error) {
  const std::lock_guard lock(mutex_);
  if (state_.done) return;
  state_.done = true;
  state_.end = end;
  state_.events.push_back({.kind = Event::Kind::kEnd, .end = end});
  state_.error = std::move(error);
  changed_.notify_all();
}

}  // namespace paddle::serve
