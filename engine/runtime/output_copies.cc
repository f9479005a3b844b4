#include "runtime/output_copies.h"

#include <cstring>

#include "paddle/plugin/device.h"

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
  waits_ = false;
  for (void* const memory : memory_) device_api(device_).release_host(memory);
  memory_.clear();
  arrays_.clear();
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
    for (const Array& output : outputs) {
      arrays_.push_back(Array::empty(output.dtype, output.shape));
      memory_.push_back(nullptr);
      check_device(device_, api.allocate_host(bytes_of(output), &memory_.back()));
    }
  }
  for (size_t i = 0; i < outputs.size(); ++i)
    if (const size_t bytes = bytes_of(outputs[i]); bytes > 0)
      check_device(device_, api.copy(compute_stream(device_), memory_[i], outputs[i].address(),
                                     bytes, PADDLE_COPY_TO_HOST));
  check_device(device_, api.record_event(copied_, compute_stream(device_)));
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
