#include "runtime/output_copies.h"

#include <cstring>

#include "paddle/plugin/device.h"
#include "tensor/device_functions.h"

namespace paddle::runtime {
namespace {

size_t bytes_of(const Array& array) {
  return static_cast<size_t>(storage_bytes(array.dtype, array.size()));
}

}  // namespace

OutputCopies::OutputCopies(Device device) : device_(device) {
  check_device(device_, device_api(device_).create_event(device_.index, &copied_));
}

OutputCopies::~OutputCopies() {
  release();
  device_api(device_).destroy_event(copied_);
}

void OutputCopies::release() {
  if (waits_) device_api(device_).synchronize_event(copied_);
  // After an error, copies may be queued that no event follows.
  if (queues_) device_api(device_).synchronize_stream(compute_stream(device_));
  waits_ = queues_ = false;
  for (void* const block : blocks_)
    if (block) device_api(device_).release_host(block);
  blocks_.clear();
  memory_.clear();
  places_.clear();
  arrays_.clear();
  gathered_ = nullptr;
  gathered_copy_ = nullptr;
}

void OutputCopies::allocate(const std::vector<Array>& outputs) {
  constexpr size_t kMaxSmall = size_t{64} << 10;
  const size_t alignment = device_properties(device_).alignment;
  const auto on_host = [&](size_t bytes) {
    check_device(device_, device_api(device_).allocate_host(bytes, &blocks_.emplace_back()));
    return static_cast<std::byte*>(blocks_.back());
  };
  std::vector<size_t> small;
  size_t total = 0;
  for (size_t i = 0; i < outputs.size(); ++i) {
    arrays_.push_back(Array::empty(outputs[i].dtype, outputs[i].shape));
    if (const size_t bytes = bytes_of(outputs[i]); bytes <= kMaxSmall && bytes > 0) {
      small.push_back(i);
      total += (bytes + alignment - 1) / alignment * alignment;
    }
  }
  places_.resize(outputs.size());
  memory_.resize(outputs.size());
  if (small.size() > 1) {
    gathered_ = Storage::allocate(total, device_);
    gathered_copy_ = on_host(total);
    size_t offset = 0;
    for (const size_t i : small) {
      places_[i] = gathered_->address() + offset;
      memory_[i] = gathered_copy_ + offset;
      offset += (bytes_of(outputs[i]) + alignment - 1) / alignment * alignment;
    }
  }
  for (size_t i = 0; i < outputs.size(); ++i)
    if (!places_[i]) memory_[i] = on_host(bytes_of(outputs[i]));
}

void OutputCopies::queue(const std::vector<Array>& outputs) {
  const paddle_device_api& api = device_api(device_);
  const auto fits = [&] {
    if (arrays_.size() != outputs.size()) return false;
    for (size_t i = 0; i < outputs.size(); ++i)
      if (arrays_[i].dtype != outputs[i].dtype || arrays_[i].shape != outputs[i].shape)
        return false;
    return true;
  };
  if (waits_) check_device(device_, api.synchronize_event(copied_));
  waits_ = false;
  if (!fits()) {
    release();
    allocate(outputs);
  }
  const paddle_stream stream = compute_stream(device_);
  queues_ = true;
  const auto copy = [&](void* to, const void* from, size_t bytes, paddle_copy_kind kind) {
    if (bytes > 0) check_device(device_, api.copy(stream, to, from, bytes, kind));
  };
  for (size_t i = 0; i < outputs.size(); ++i)
    copy(places_[i] ? places_[i] : memory_[i], outputs[i].address(), bytes_of(outputs[i]),
         places_[i] ? PADDLE_COPY_ON_DEVICE : PADDLE_COPY_TO_HOST);
  if (gathered_)
    copy(gathered_copy_, gathered_->address(), gathered_->bytes(), PADDLE_COPY_TO_HOST);
  check_device(device_, api.record_event(copied_, compute_stream(device_)));
  queues_ = false;
  waits_ = true;
}

const std::vector<Array>& OutputCopies::wait() {
  if (!waits_) return arrays_;
  check_device(device_, device_api(device_).synchronize_event(copied_));
  waits_ = false;
  for (size_t i = 0; i < arrays_.size(); ++i)
    if (const size_t bytes = bytes_of(arrays_[i]); bytes > 0)
      std::memcpy(arrays_[i].raw(), memory_[i], bytes);
  return arrays_;
}

}  // namespace paddle::runtime
