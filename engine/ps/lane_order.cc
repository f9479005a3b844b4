// The order in which a lane takes the messages of workers that do not wait for each other: it is
// written, and a replay repeats it.

#include <algorithm>

#include "base/error.h"
#include "ps/lane.h"

namespace paddle::ps {

OrderEntry Lane::ordered(OrderKind kind, uint32_t worker, int64_t step) {
  constexpr int64_t kMaxStep = (int64_t{1} << 40) - 1;
  if (step < 0 || step > kMaxStep) reject_message("a message of step ", step);
  return {kind, worker, static_cast<uint64_t>(step)};
}

int64_t Lane::step_of_update(std::span<const std::byte> body) {
  BodyReader in(body);
  in.take<double>();
  return in.take<int64_t>();
}

bool Lane::is_too_early(int64_t step) const {
  const auto& staleness = options_.updates.staleness;
  return staleness && std::any_of(state_.steps.begin(), state_.steps.end(),
                                  [&](int64_t last) { return last < step - 1 - *staleness; });
}

bool Lane::is_turn(const OrderEntry& entry) {
  // Rows for steps after the end change nothing.
  if (!replay_ || static_cast<int64_t>(entry.step) > replay_->until()) return true;
  pass_marks();
  if (replay_->next() == entry) return true;
  if (!replay_->expects(entry))
    fail(ErrorCode::kDifference, replay_->place(), ": the replay differs from the run: worker ",
         entry.worker, entry.kind == OrderKind::kPull ? " asks for rows" : " sends gradients",
         " for step ", entry.step, ", which the order does not have here");
  return false;
}

void Lane::note_turn(const OrderEntry& entry, std::span<const std::byte> bytes) {
  if (!order_ || (replay_ && static_cast<int64_t>(entry.step) > replay_->until())) return;
  order_->add(entry, bytes);
  if (replay_) {
    replay_->advance();
    pass_marks();
  } else if (order_->needs_digest()) {
    order_->put_digest();
  }
}

void Lane::check_fence(uint32_t worker, int64_t step) const {
  if (replay_ && replayed_fence_ != step && replay_->expects_from(worker))
    fail(ErrorCode::kDifference, replay_->place(), ": the replay differs from the run: worker ",
         worker, " waits for the others after step ", step,
         ", before which the order has more of it");
}

void Lane::note_fence(int64_t step) {
  if (options_.order_folder.empty()) return;
  if (!order_) order_ = OrderLog::create(options_.order_folder, order_header());
  if (replay_ && replayed_fence_ != step) {
    pass_marks();
    const auto next = replay_->next();
    const bool is_next = next == OrderEntry{OrderKind::kFence, 0, static_cast<uint64_t>(step)};
    if (!is_next && (next || step < replay_->until()))
      fail(ErrorCode::kDifference, replay_->place(),
           ": the replay differs from the run: workers wait for each other after step ", step,
           ", which the order does not have here");
    if (is_next) replay_->advance();
    replayed_fence_ = step;
  }
  order_->fence(step);
  if (order_->start() == state_.order_start) return;
  order_ = OrderLog::create(options_.order_folder, order_header());
  order_->fence(step);
  if (options_.updates.order_keep)
    OrderLog::remove_old(options_.order_folder, options_.lane, state_.order_start,
                         *options_.updates.order_keep);
}

void Lane::pass_marks() {
  for (auto next = replay_->next(); next; next = replay_->next()) {
    if (next->kind == OrderKind::kRestart) {
      order_->restart();
    } else if (next->kind == OrderKind::kDigest) {
      const uint32_t digest = order_->put_digest();
      if (options_.replay->checks_digests && digest != next->step)
        fail(ErrorCode::kDifference, replay_->place(),
             ": the rows and gradients of the replay differ from those of the run");
    } else {
      return;
    }
    replay_->advance();
  }
}

OrderHeader Lane::order_header() const {
  return {.start = state_.order_start,
          .lane = options_.lane,
          .lanes = options_.lanes,
          .workers = state_.workers,
          .session = state_.session};
}

void Lane::reopen_order() {
  if (state_.order_start < 0 || options_.order_folder.empty()) return;
  order_ = OrderLog::reopen(options_.order_folder, order_header());
  if (!order_ && state_.ordered == 0) {
    if (state_.earlier_order >= 0) {
      OrderHeader earlier = order_header();
      earlier.start = state_.earlier_order;
      if (auto log = OrderLog::reopen(options_.order_folder, earlier))
        log->fence(state_.order_start);
    }
    order_ = OrderLog::create(options_.order_folder, order_header());
  }
  // The process may have died after the last event was logged and before its place was.
  if (order_ && state_.last_ordered.kind == OrderKind::kFence)
    order_->fence(static_cast<int64_t>(state_.last_ordered.step));
  else if (order_ && order_->updates() + 1 == state_.ordered)
    order_->add(state_.last_ordered, {});
  if (!order_ || order_->updates() != state_.ordered)
    fail(ErrorCode::kModel, options_.order_folder, ": the order of lane ", options_.lane,
         " is not that of its log");
  order_->restart();
}

}  // namespace paddle::ps
