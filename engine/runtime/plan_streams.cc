#include "runtime/plan_streams.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "paddle/plugin/device.h"

namespace paddle::runtime {

PlanStreams::PlanStreams(Device device)
    : device_(device),
      api_(device_api(device)),
      compute_(compute_stream(device)),
      copy_(copy_stream(device)) {
  for (paddle_event& event : finished_) {
    const int status = api_.create_event(device.index, &event);
    if (status != 0)
      for (paddle_event& made : finished_)
        if (made) api_.destroy_event(std::exchange(made, nullptr));
    check(status);
  }
}

PlanStreams::~PlanStreams() {
  // Errors of work that is not waited for are not reported.
  api_.synchronize_stream(copy_);
  api_.synchronize_stream(compute_);
  // An error while they were made leaves some out.
  const auto destroy = [&](paddle_event event) {
    if (event) api_.destroy_event(event);
  };
  const auto release = [&](void* memory) {
    if (memory) api_.release_host(memory);
  };
  std::ranges::for_each(events_, destroy);
  std::ranges::for_each(finished_, destroy);
  for (const Block& block : staging_) {
    std::ranges::for_each(block.read, destroy);
    std::ranges::for_each(block.memory, release);
  }
  for (const auto& [value, memory] : conditions_) release(memory);
}

int PlanStreams::new_event() {
  paddle_event event = nullptr;
  check(api_.create_event(device_.index, &event));
  events_.push_back(event);
  return static_cast<int>(events_.size()) - 1;
}

int PlanStreams::add_staging(std::vector<Staged> inputs,
                             std::array<std::shared_ptr<Storage>, 2> memory, int copied) {
  Block& block = staging_.emplace_back();
  block.inputs = std::move(inputs);
  block.on_device = std::move(memory);
  block.copied = copied;
  for (size_t i = 0; i < block.memory.size(); ++i) {
    check(api_.allocate_host(block.on_device[i]->bytes(), &block.memory[i]));
    check(api_.create_event(device_.index, &block.read[i]));
  }
  return static_cast<int>(staging_.size()) - 1;
}

void PlanStreams::add_condition(int value) {
  constexpr size_t kMaxElementBytes = 16;
  if (conditions_.contains(value)) return;
  void* memory = nullptr;
  check(api_.allocate_host(kMaxElementBytes, &memory));
  conditions_[value] = memory;
}

void PlanStreams::begin(const std::vector<void*>& inputs, const std::vector<uint8_t>& on_device,
                        size_t turn) {
  turn_ = turn;
  addresses_ = inputs;
  if (!staging_.empty()) check(api_.wait_event(copy_, finished_[turn]));
  for (Block& block : staging_) {
    check(api_.synchronize_event(block.read[turn]));
    block.begin = block.on_device[turn]->bytes();
    block.end = 0;
    for (const Staged& each : block.inputs) {
      if (each.input < on_device.size() && on_device[each.input]) continue;
      addresses_[each.input] = nullptr;
      if (each.bytes == 0) continue;
      std::memcpy(static_cast<std::byte*>(block.memory[turn]) + each.offset, inputs[each.input],
                  each.bytes);
      block.begin = std::min(block.begin, each.offset);
      block.end = std::max(block.end, each.offset + each.bytes);
    }
  }
}

void PlanStreams::join_copies() {
  for (const Block& block : staging_)
    check(api_.wait_event(compute_, events_[static_cast<size_t>(block.copied)]));
}

void PlanStreams::finish() { check(api_.record_event(finished_[turn_], compute_)); }

void PlanStreams::before(const Instruction& instruction) {
  for (const int event : instruction.waits)
    check(api_.wait_event(stream(instruction), events_[static_cast<size_t>(event)]));
}

void PlanStreams::after(const Instruction& instruction) {
  if (instruction.records >= 0)
    check(
        api_.record_event(events_[static_cast<size_t>(instruction.records)], stream(instruction)));
}

void PlanStreams::copy_in(size_t index) {
  const Block& block = staging_[index];
  if (block.begin >= block.end) return;
  check(api_.copy(copy_, block.on_device[turn_]->address() + block.begin,
                  static_cast<std::byte*>(block.memory[turn_]) + block.begin,
                  block.end - block.begin, PADDLE_COPY_TO_DEVICE));
  check(api_.record_event(block.read[turn_], copy_));
}

void PlanStreams::read_back(int value, const void* from, size_t bytes) {
  check(api_.copy(compute_, conditions_.at(value), from, bytes, PADDLE_COPY_TO_HOST));
}

const void* PlanStreams::condition(int value) const {
  check(api_.synchronize_stream(compute_));
  return conditions_.at(value);
}

void PlanStreams::copy(void* to, const void* from, size_t bytes) {
  if (bytes > 0) check(api_.copy(compute_, to, from, bytes, PADDLE_COPY_ON_DEVICE));
}

}  // namespace paddle::runtime
